# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Searches on a simulated device: what they find, what they cost, and how they fail."""

from __future__ import annotations

import dataclasses
import statistics
import typing as t

import pytest

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._search import controller, search, verdict
from ansible_collections.fastpath.bench.plugins.module_utils._search.goals import DEFAULT_GOALS, NDR, Goal, rfc2544_goal
from ansible_collections.fastpath.bench.plugins.module_utils._search.simulated import Device, SimulatedMeasurer
from ansible_collections.fastpath.bench.plugins.module_utils._search.verdict import Count, Observation

Result = dict[str, t.Any]
QUIET = {"stall_s": 0.0, "jitter": 0.0}


def searched(plan: search.Plan | None = None, measurer: t.Any = None, **device: t.Any) -> Result:
    return search.run(plan or search.Plan(), measurer or SimulatedMeasurer(Device(**device)))


def goal_of(result: Result, name: str = "NDR") -> Result:
    return next(goal for goal in result["goals"] if goal["name"] == name)


@pytest.mark.parametrize("rate", [1_000_000.0, 650_000.0])
def test_noise_does_not_move_the_result(rate: float) -> None:
    """Stalls of 1 ms each 10 s: the spread, time and trials that the project has set itself as a limit."""
    results = [searched(search.Plan(validation_s=0), rate_pps=rate, seed=seed) for seed in range(30)]
    found = [goal_of(result)["conditional_throughput_pps"] for result in results]
    assert statistics.stdev(found) / statistics.mean(found) <= 0.01
    assert statistics.mean(found) == pytest.approx(rate, rel=0.006)
    assert statistics.mean(result["search"]["search_s"] for result in results) <= 60
    assert max(result["search"]["trials"] for result in results) <= 40
    assert all(goal["regular"] for result in results for goal in result["goals"])


def test_binary_search_beside_it_takes_the_noise_for_the_device() -> None:
    """One trial of 60 s decides on a load, and each holds some stalls: 16 minutes for a quarter of the rate."""
    goal = dataclasses.replace(rfc2544_goal(), initial_trial_s=60.0)
    plan = search.Plan((goal,), controller.BINARY, validation_s=0, search_limit_s=1e5)
    result = searched(plan, seed=3)
    assert result["search"]["search_s"] > 600
    assert goal_of(result, "throughput")["conditional_throughput_pps"] < 500_000
    quiet = searched(plan, **QUIET)
    assert goal_of(quiet, "throughput")["conditional_throughput_pps"] == pytest.approx(1e6, rel=0.01)


def test_partial_loss_allows_more_than_none() -> None:
    result = searched(**QUIET, queue_packets=0)
    ndr, pdr = goal_of(result), goal_of(result, "PDR")
    assert ndr["conditional_throughput_pps"] <= 1e6
    assert pdr["relevant_lower_bound_pps"] > 1e6
    assert pdr["relevant_upper_bound_pps"] > pdr["relevant_lower_bound_pps"]
    assert (ndr["relevant_upper_bound_pps"] - ndr["relevant_lower_bound_pps"]) / ndr[
        "relevant_upper_bound_pps"
    ] <= 0.005
    assert ndr["text"].startswith("NDR 99")


def test_any_goals() -> None:
    goals = (NDR, Goal("lossy", loss_ratio=0.1, width=0.02, duration_sum_s=3.0))
    result = searched(search.Plan(goals, validation_s=0), **QUIET)
    assert goal_of(result, "lossy")["relevant_lower_bound_pps"] == pytest.approx(1.1e6, rel=0.03)


def test_a_result_at_the_highest_load_is_at_least_that() -> None:
    for algorithm in (controller.MLRSEARCH, controller.BINARY):
        result = searched(search.Plan((NDR,), algorithm, validation_s=0), generator_pps=400_000.0, **QUIET)
        goal = goal_of(result)
        assert (goal["at_least"], goal["limited_by"], goal["regular"]) == (True, "max_load", False)
        assert goal["text"].startswith("NDR at least 400,000 packet/s")
        assert goal["relevant_upper_bound_pps"] is None


def test_a_result_at_what_the_generator_can_do_is_at_least_that() -> None:
    result = searched(search.Plan(max_load_pps=2e6), generator_pps=400_000.0, **QUIET)
    goal = goal_of(result)
    assert (goal["at_least"], goal["limited_by"], goal["regular"]) == (True, "generator", False)
    assert goal["relevant_lower_bound_pps"] == pytest.approx(400_000, rel=0.01)
    assert result["search"]["trials_below_intended"] > 0


def test_a_device_below_the_lowest_load_is_not_zero() -> None:
    result = searched(search.Plan(min_load_pps=2e6, max_load_pps=4e6), **QUIET)
    assert result["status"] == "ok"
    assert goal_of(result)["conditional_throughput_pps"] is None
    assert goal_of(result)["text"].startswith("NDR not found: below 2,000,000")
    assert result["validation"] is None


def test_rfc2544_mode_complies() -> None:
    result = searched(search.Plan((rfc2544_goal(),), validation_s=0), **QUIET)
    goal = goal_of(result, "throughput")
    assert goal["rfc2544_compliance"] == "unconditional"
    assert goal["conditional_throughput_pps"] == goal["relevant_lower_bound_pps"]
    longest = max(trial["trial_duration_s"] for trial in result["trials"])
    assert longest == 60.0
    assert rfc2544_goal(2.0).compliance == "conditional"
    assert NDR.compliance == "none"


def test_validation_stands_beside_the_result() -> None:
    result = searched(seed=5)
    # 60 s hold some stalls that the search of 1 s trials rightly did not take for the device's
    assert result["validation"]["held"] is False
    assert result["validation"]["trial_duration_s"] == 60.0
    assert result["validation"]["trial_load_pps"] == goal_of(result)["relevant_lower_bound_pps"]
    assert "not held" in result["validation"]["text"]
    # and a queue hides in a second what it cannot in a minute
    assert searched(**QUIET, queue_packets=0)["validation"]["held"] is True


def test_all_that_a_test_report_must_have() -> None:
    """RFC 9971: unit and scope of the load, traffic profile, goals, range of loads, bounds, how loss is computed."""
    result = searched()
    report = result["report"]
    assert report["load_scope"] == "per interface"
    assert report["aggregate_factor"] == 1
    for name in ("load_unit", "traffic_profile", "max_load_pps", "min_load_pps", "trial_effective_duration",
                 "trial_loss_ratio", "duplicates", "reordering", "controller"):  # fmt: skip
        assert report[name], name
    assert "deviations_from_rfc2544_trials" in report
    for goal in result["goals"]:
        for name in ("goal_loss_ratio", "goal_exceed_ratio", "goal_final_trial_duration_s", "goal_duration_sum_s",
                     "goal_width", "goal_width_quantity", "goal_initial_trial_duration_s", "regular",
                     "relevant_lower_bound_pps", "relevant_upper_bound_pps", "conditional_throughput_pps"):  # fmt: skip
            assert goal[name] is not None, name
    for trial in result["trials"]:
        for name in ("trial_load_pps", "trial_duration_s", "trial_effective_duration_s", "trial_loss_ratio",
                     "trial_forwarding_ratio", "trial_forwarding_rate_pps", "verdict"):  # fmt: skip
            assert trial[name] is not None, name


class Faulty(SimulatedMeasurer):
    """Gives what ``fault`` makes of the first trials' observations."""

    def __init__(self, fault: t.Callable[[Observation], Observation], trials: range, **device: t.Any) -> None:
        super().__init__(Device(**{**QUIET, **device}))
        self._fault = fault
        self._faulty = trials

    def measure(self, load_pps: float, duration_s: float) -> Observation:
        number = self.trials
        seen = super().measure(load_pps, duration_s)
        return self._fault(seen) if number in self._faulty else seen


def duplicated(seen: Observation) -> Observation:
    count = seen.counts[0]
    return dataclasses.replace(seen, counts=(Count("forward", count.sent, (count.sent or 0) + 1),))


def silent(seen: Observation) -> Observation:
    return dataclasses.replace(seen, counts=(Count("forward", seen.counts[0].sent, 0),))


def half_silent(seen: Observation) -> Observation:
    there = seen.counts[0]
    return dataclasses.replace(seen, counts=(there, Count("reverse", there.sent, 0)))


@pytest.mark.parametrize("fault", [silent, half_silent])
@pytest.mark.parametrize("highest", [60.0, 10_000.0])
def test_a_dead_direction_is_seen_at_low_rates_too(
    fault: t.Callable[[Observation], Observation], highest: float
) -> None:
    """The lowest load of the range may be a handful of packets, of which to lose all says nothing."""
    result = searched(search.Plan(max_load_pps=highest), Faulty(fault, range(1000)))
    assert (result["status"], result["code"]) == ("failed", "direction_dead")
    assert len(result["trials"]) <= 2


def test_an_invalid_trial_is_repeated() -> None:
    result = searched(measurer=Faulty(duplicated, range(4, 6)))
    assert result["status"] == "ok"
    assert result["search"]["trials_by_verdict"]["received_more_than_sent"] == 2
    assert goal_of(result)["conditional_throughput_pps"] == pytest.approx(1e6, rel=0.01)
    retried = [trial for trial in result["trials"] if not trial["usable"]]
    assert all(trial["trial_loss_ratio"] is None for trial in retried)


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (duplicated, "received_more_than_sent"),
        (lambda seen: dataclasses.replace(seen, error=("sink_silent", "gone")), "tool_error"),
        (lambda seen: dataclasses.replace(seen, state="full"), "state_assertion"),
        (lambda seen: dataclasses.replace(seen, offered_s=99.0), "wrong_duration"),
    ],
)
def test_a_search_that_gets_no_result_is_given_up(fault: t.Callable[[Observation], Observation], code: str) -> None:
    result = searched(measurer=Faulty(fault, range(3, 1000)))
    assert (result["status"], result["code"]) == ("failed", code)
    assert result["goals"] == []
    assert [trial["verdict"] for trial in result["trials"]][-3:] == [code] * 3


def test_a_dead_direction_ends_the_search_at_once() -> None:
    result = searched(measurer=Faulty(silent, range(1000)))
    assert (result["status"], result["code"]) == ("failed", "direction_dead")
    assert "misconfiguration" in result["reason"]
    # the highest load, and the lowest to tell it from a device that is overrun
    assert [trial["phase"] for trial in result["trials"]] == ["warmup", "confirm"]


def test_a_device_that_is_overrun_is_no_dead_direction() -> None:
    result = searched(measurer=Faulty(silent, range(1, 2)))
    assert result["status"] == "ok"
    assert [trial["phase"] for trial in result["trials"]][:3] == ["warmup", "confirm", "search"]


def test_a_search_that_takes_too_long_tells_what_it_has() -> None:
    goal = dataclasses.replace(rfc2544_goal(), initial_trial_s=60.0)
    plan = search.Plan((goal,), controller.BINARY, search_limit_s=200, validation_s=0)
    result = searched(plan, **QUIET)
    assert (result["status"], result["code"]) == ("failed", "search_limit")
    found = goal_of(result, "throughput")
    assert found["regular"] is False
    assert found["relevant_upper_bound_pps"] is not None


def test_the_librarys_own_limit_is_told_the_same_way() -> None:
    result = searched(search.Plan(search_limit_s=1e-6, validation_s=0), **QUIET)
    assert (result["status"], result["code"]) == ("failed", "search_limit")
    assert [goal["regular"] for goal in result["goals"]] == [False, False]


def test_trials_are_noted_one_by_one() -> None:
    noted: list[int] = []
    result = search.run(search.Plan(), SimulatedMeasurer(), note=lambda trial: noted.append(trial.number))
    assert noted == [trial["number"] for trial in result["trials"]] == list(range(1, len(noted) + 1))
    assert result["trials"][-1]["phase"] == search.VALIDATION
    assert sum(result["search"]["trials_by_verdict"].values()) == len(noted)
    assert set(result["search"]["trials_by_verdict"]) == {verdict.OK, *verdict.ORDER}


def test_the_default_goals() -> None:
    assert [(goal.name, goal.loss_ratio) for goal in DEFAULT_GOALS] == [("NDR", 0.0), ("PDR", 0.005)]


def test_a_validation_that_the_generator_spoilt_shows_nothing() -> None:
    """It could hold the rate for a second and not for a minute."""

    def short(seen: Observation) -> Observation:
        if (seen.offered_s or 0) < 60:
            return seen
        sent = round((seen.counts[0].sent or 0) * 0.9)
        return dataclasses.replace(seen, counts=(Count("forward", sent, sent),))

    validation = searched(measurer=Faulty(short, range(1000)))["validation"]
    assert validation["held"] is None
    assert "10.0" in validation["text"]
    assert "not shown" in validation["text"]


def test_a_validation_without_a_result_does_not_cost_the_search() -> None:
    def late(seen: Observation) -> Observation:
        return seen if (seen.offered_s or 0) < 60 else dataclasses.replace(seen, offered_s=99.0)

    result = searched(measurer=Faulty(late, range(1000)))
    assert result["status"] == "ok"
    assert result["validation"]["held"] is None
    assert "wrong_duration" in result["validation"]["text"]


def test_latency_is_measured_at_parts_of_the_last_goals_throughput() -> None:
    class Timed(SimulatedMeasurer):
        def latency(self, load_pps: float, duration_s: float) -> dict[str, t.Any]:
            if load_pps > 600_000:
                raise BenchError("ping was refused")
            return {"mean_ms": 0.1, "seconds": duration_s}

    result = searched(search.Plan(latency_s=2), Timed(Device(**QUIET)))
    throughput = goal_of(result, "PDR")["conditional_throughput_pps"]
    assert [row["load_pps"] for row in result["latency"]] == [part * throughput for part in (0, 0.1, 0.5, 0.9)]
    assert [row.get("mean_ms") for row in result["latency"]] == [0.1, 0.1, 0.1, None]
    assert result["latency"][-1]["reason"] == "ping was refused."
    assert searched(search.Plan(latency_s=2))["latency"] == []
