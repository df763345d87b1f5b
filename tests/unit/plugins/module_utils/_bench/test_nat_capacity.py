# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tables of the playbook nat_capacity."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.fastpath.bench.plugins.module_utils._bench import nat_capacity

NODES = [
    {"thread": 1, "node": "nat44-ed-in2out", "calls": 10, "vectors": 1000, "clocks_per_packet": 100.0},
    {"thread": 1, "node": "nat44-ed-in2out-slowpath", "calls": 10, "vectors": 1000, "clocks_per_packet": 900.0},
]
NO_DROPS = {"out_of_ports": 0, "sessions_exceeded": 0}


def step(
    what: str, rate: float | None, sent: int, received: int, sessions: int | None, **more: t.Any
) -> dict[str, t.Any]:
    seconds = sent / (rate or 50_000)
    flows = more.pop("flows", sent)
    values = {
        "flows_open_forward": received if what != "established" else flows,
        "frame_loss_ratio_forward": (sent - received) / sent,
        "sent_packet_rate_forward": sent / seconds,
        "forwarding_rate_forward": received / seconds,
    }
    record = {
        "status": "ok",
        "reason": None,
        "flows": flows,
        "findings": [],
        "counts": {"forward": {"sent_packets": sent, "received_packets": received}},
        "metrics": {name: {"value": value} for name, value in values.items()},
    }
    one = {"datapath": "vpp_nat44", "round": 1, "what": what, "rate_pps": rate, "record": record, "nodes": NODES}
    one.update(
        sessions_before=0,
        sessions=sessions,
        total=sessions,
        drops_before=NO_DROPS,
        drops=NO_DROPS,
        limit=None,
        skipped=None,
    )
    one.update(clearing={"command_s": 0.01, "proven_s": 0.03, "tries": 1}, cleared=sessions, full=None)
    return {**one, **more}


def row(*steps: dict[str, t.Any], loss: float = 0.0) -> dict[str, t.Any]:
    (found,) = nat_capacity.rows(steps, loss)
    return found


def test_the_highest_rate_without_loss_and_the_most_of_any() -> None:
    told = row(
        step("establishment", 1000, 3000, 3000, 3000),
        step("establishment", 10_000, 30_000, 30_000, 30_000),
        step("establishment", 0, 50_000, 40_000, 40_500),
    )["establishment"]
    assert (told["rate_pps"], told["most_pps"]) == (10_000, 40_000)
    assert [one["without_loss"] for one in told["steps"]] == [True, True, False]
    assert [one["asked_pps"] for one in told["steps"]] == [1000, 10_000, None]
    assert not told["generator_limited"]
    assert told["clocks_nat"] == pytest.approx(1000)
    told = row(step("establishment", 0, 50_000, 40_000, 40_500))["establishment"]
    assert (told["rate_pps"], told["most_pps"]) == (None, 40_000)
    assert row(step("establishment", 0, 50_000, 49_990, 50_000), loss=0.001)["establishment"]["rate_pps"] == 49_990


def test_nothing_lost_at_the_senders_best_is_at_least() -> None:
    assert row(step("established", 0, 50_000, 50_000, 500, flows=500))["established"]["generator_limited"]


def test_a_rate_that_lost_in_one_round_is_none_without_loss() -> None:
    told = row(step("establishment", 1000, 3000, 3000, 3000), step("establishment", 1000, 3000, 2999, 3000, round=2))
    assert told["establishment"]["rate_pps"] is None
    assert told["rounds"] == 2


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"sessions_before": 7}, "7 sessions were there before"),
        ({"sessions": 2999}, "3000 flows passed, and there are 2999 sessions"),
        ({"sessions": 3001}, "3000 flows made 3001 sessions"),
        ({"sessions": None}, "its sessions were not counted"),
    ],
)
def test_sessions_that_do_not_fit_do_not_count(more: dict[str, t.Any], why: str) -> None:
    told = row({**step("establishment", 1000, 3000, 3000, 3000), **more})
    assert told["faults"] == [f"round 1, establishment at 1000 packet/s: {why}"]
    assert told["establishment"]["rate_pps"] is None


def test_how_fast_sessions_go() -> None:
    few = step("establishment", 1000, 3000, 3000, 3000)
    many = step("establishment", 0, 50_000, 50_000, 50_000, clearing={"command_s": 0.1, "proven_s": 0.2, "tries": 1})
    told = row(few, many)["teardown"]
    # what little it takes besides counts least where most was removed
    assert told == {"sessions": 50_000, "times": 1, "rate": pytest.approx(500_000), "command_s": 0.1, "proven_s": 0.2}
    assert row(step("establishment", 1000, 30, 30, 30))["teardown"] is None


def test_a_table_that_is_full() -> None:
    drops = {"out_of_ports": 3, "sessions_exceeded": 2500}
    told = row(step("table", 1000, 12_500, 10_000, 10_000, limit=10_000, drops_before={"out_of_ports": 3}, drops=drops))
    assert (told["table"]["sessions"], told["table"]["total_least"], told["table"]["total_most"]) == (10_000,) * 3
    assert told["table"]["drops"] == {"out_of_ports": 0, "sessions_exceeded": 2500}
    # the kernel takes the new one and forgets an old one
    told = row(step("table", 1000, 12_500, 12_500, 10_000, limit=10_000))
    assert (told["faults"], told["table"]["passed"]) == ([], 12_500)
    skipped = {"datapath": "kernel_nat", "round": 1, "what": "table", "rate_pps": 1, "skipped": "in a container"}
    told = row({**skipped, "clearing": None, "cleared": 0})
    assert (told["table"], told["ports"]) == ({"skipped": "in a container"}, None)


def test_connections() -> None:
    one = step("connections", None, 1, 1, 900)
    one["record"]["counts"] = {"forward": {"answered": 1000}}
    one["record"]["metrics"] = {"connection_rate_forward": {"value": 200.0}}
    told = row(one)["connections"]
    assert (told["rate"], told["sessions"], told["clocks_per_connection"]) == (200.0, 900, pytest.approx(1000))
    assert row({**one, "sessions": 0})["faults"] == ["round 1, connections: there were connections and no session"]


def test_clocks_by_node() -> None:
    told = row(
        step("establishment", 1000, 3000, 3000, 3000),
        step("established", 1000, 3000, 3000, 30, flows=30, nodes=NODES[:1]),
    )
    assert told["nodes"] == [
        {"node": "nat44-ed-in2out-slowpath", "establishment": 900.0, "established": None, "connections": None},
        {"node": "nat44-ed-in2out", "establishment": 100.0, "established": 100.0, "connections": None},
    ]
