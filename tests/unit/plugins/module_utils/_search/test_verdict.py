# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The verdict on a trial: each check, and that an earlier one wins."""

from __future__ import annotations

import dataclasses

import pytest

from ansible_collections.fastpath.bench.plugins.module_utils._search import verdict
from ansible_collections.fastpath.bench.plugins.module_utils._search.verdict import Count, Observation, Verdict, judge

LOAD, SECONDS = 1000.0, 2.0
WANTED = 2000


def seen(sent: int | None = WANTED, received: int | None = WANTED, **more: object) -> Observation:
    base = Observation((Count("forward", sent, received),), SECONDS)
    return dataclasses.replace(base, **more)  # type: ignore[arg-type]


def verdict_of(observation: Observation) -> Verdict:
    return judge(LOAD, SECONDS, observation)


def test_a_trial_without_loss() -> None:
    found = verdict_of(seen())
    assert (found.code, found.usable, found.loss_ratio, found.flags) == (verdict.OK, True, 0.0, ())


def test_loss_is_of_what_was_sent() -> None:
    found = verdict_of(seen(received=1990))
    assert (found.code, found.lost, found.missing) == (verdict.LOSS, 10, 0)
    assert found.loss_ratio == pytest.approx(0.005)


def test_missing_packets_count_as_lost_and_are_flagged() -> None:
    found = verdict_of(seen(sent=1500, received=1500))
    assert (found.code, found.usable, found.flags) == ("offered_below_intended", True, ("offered_below_intended",))
    assert (found.missing, found.lost) == (500, 0)
    assert found.loss_ratio == pytest.approx(0.25)
    assert found.path_loss_ratio == 0.0


def test_an_offered_load_within_the_tolerance_is_the_intended_one() -> None:
    found = verdict_of(seen(sent=1995, received=1995))
    assert (found.code, found.intended, found.loss_ratio, found.flags) == (verdict.OK, 1995, 0.0, ())
    assert verdict_of(seen(sent=1980, received=1980)).flags == ("offered_below_intended",)


def test_more_received_than_sent_is_never_clamped() -> None:
    found = verdict_of(seen(received=WANTED + 1))
    assert (found.code, found.usable) == (verdict.RECEIVED_MORE_THAN_SENT, False)
    assert found.received == WANTED + 1
    assert "2001 received of 2000" in (found.reason or "")


def test_one_direction_cannot_make_up_for_the_other() -> None:
    both = Observation((Count("forward", WANTED, WANTED + 5), Count("reverse", WANTED, WANTED - 50)), SECONDS)
    assert verdict_of(both).code == verdict.RECEIVED_MORE_THAN_SENT
    dead = Observation((Count("forward", WANTED, WANTED), Count("reverse", WANTED, 0)), SECONDS)
    found = verdict_of(dead)
    assert found.code == verdict.DIRECTION_DEAD
    assert "reverse" in (found.reason or "")
    short = Observation((Count("forward", WANTED, WANTED), Count("reverse", WANTED // 2, WANTED // 2)), SECONDS)
    assert verdict_of(short).loss_ratio == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("observation", "code", "usable"),
    [
        (seen(error=("tool_error", "it ended with 1")), "tool_error", False),
        (Observation(), "generator_invalid", False),
        (seen(sent=None), "generator_invalid", False),
        (seen(received=None), "generator_invalid", False),
        (seen(sent=0, received=0), "generator_invalid", False),
        (seen(sent=2100), "generator_invalid", False),
        (seen(generator="its host was stopped"), "generator_invalid", False),
        (seen(offered_s=2.5), "wrong_duration", False),
        (seen(offered_s=1.8), "wrong_duration", False),
        (seen(received=0), "direction_dead", True),
        (seen(state="sessions are full"), "state_assertion", False),
    ],
)
def test_each_check(observation: Observation, code: str, usable: bool) -> None:
    found = verdict_of(observation)
    assert (found.code, found.usable) == (code, usable)
    assert found.reason


def test_the_order_of_the_checks() -> None:
    """All faults at once, and then one after the other is put right."""
    faulty = Observation((Count("forward", 1000, 1500), Count("reverse", 1000, 0)), 9.0, ("x", "x"), "bad", "bad")
    repairs: list[dict[str, object]] = [
        {},
        {"error": None},
        {"generator": None},
        {"counts": (Count("forward", 1000, 900), Count("reverse", 1000, 0))},
        {"offered_s": SECONDS},
        {"counts": (Count("forward", 1000, 900), Count("reverse", 1000, 900))},
        {"state": None},
        {"counts": (Count("forward", WANTED, 900), Count("reverse", WANTED, 900))},
    ]
    codes, flagged = [], []
    for repair in repairs:
        faulty = dataclasses.replace(faulty, **repair)  # type: ignore[arg-type]
        found = verdict_of(faulty)
        codes.append(found.code)
        flagged.append(bool(found.flags))
    # what was not offered is flagged whatever else is wrong, as soon as the counts are known
    others = [code for code in verdict.ORDER if code not in ("offered_below_intended", "loss")]
    assert codes == [*others, "offered_below_intended", "loss"]
    assert flagged == [False, False, *[True] * 5, False]


def test_a_few_packets_say_nothing_of_a_dead_direction() -> None:
    few = Observation((Count("forward", 5, 0),), 0.1)
    assert judge(50.0, 0.1, few).code == verdict.LOSS
