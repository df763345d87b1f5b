# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which load to try next: MLRsearch, or plain binary search for comparison. Both end with bounds for each goal."""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._search import library
from ansible_collections.fastpath.bench.plugins.module_utils._search.goals import Goal
from ansible_collections.fastpath.bench.plugins.module_utils._search.verdict import Verdict

MLRSEARCH, BINARY = "mlrsearch", "binary"


@dataclasses.dataclass(frozen=True)
class Range:
    """The loads that a search may try, packets per second of one direction, and how long it may take."""

    min_pps: float
    max_pps: float
    search_limit_s: float = 1200.0

    def __post_init__(self) -> None:
        if not 0 < self.min_pps < self.max_pps:
            raise BenchError(
                f"loads from {self.min_pps:g} to {self.max_pps:g} packets per second are no range",
                where="options min_load_pps and max_load_pps",
                remedy="The lowest must be above 0 and below the highest",
                code="bad_option",
            )


@dataclasses.dataclass(frozen=True)
class Bounds:
    """What is known of one goal at the end. None is a bound that was not found."""

    lower_pps: float | None
    upper_pps: float | None
    conditional_pps: float | None
    #: The stopping condition was met: a result that is not regular is no measured throughput (RFC 9971).
    regular: bool


@dataclasses.dataclass(frozen=True)
class Found:
    controller: dict[str, t.Any]
    bounds: dict[str, Bounds]
    #: Why the search ended before its goals were met.
    stopped: tuple[str, str] | None = None


#: Performs a trial; called with the load and the duration.
Try = t.Callable[[float, float], Verdict]


class _Adapter:
    """The library's measurer."""

    def __init__(self, result: t.Any, attempt: Try) -> None:
        self._result = result
        self._attempt = attempt

    def measure(self, intended_duration: float, intended_load: float) -> t.Any:
        verdict = self._attempt(intended_load, intended_duration)
        return self._result(
            intended_duration=intended_duration,
            intended_load=intended_load,
            intended_count=verdict.intended,
            offered_count=verdict.sent,
            forwarding_count=verdict.received,
        )


def mlrsearch(goals: t.Sequence[Goal], loads: Range, attempt: Try) -> Found:
    """Search all goals at once with the library."""
    package, origin = library.load()
    theirs = {goal.name: _their_goal(package, goal) for goal in goals}
    config = package.Config()
    config.goals = list(theirs.values())
    # its setters refuse a lower limit above the upper one that they still hold
    config.max_load = max(loads.max_pps, config.max_load)
    config.min_load = loads.min_pps
    config.max_load = loads.max_pps
    config.search_duration_max = loads.search_limit_s
    config.warmup_duration = None
    search = package.MultipleLossRatioSearch(config=config)
    stopped: tuple[str, str] | None = None
    try:
        found = dict(search.search(measurer=_Adapter(package.MeasurementResult, attempt), debug=lambda _text: None))
    except RuntimeError as error:
        # it raises this for its time limit, and for a fault of its own
        stopped = ("search_limit" if "too long" in str(error) else "controller_failed", str(error))
        found = _as_far_as_it_got(package, search, theirs)
    bounds = {name: _bounds(found.get(goal), _named(goals, name), stopped is None) for name, goal in theirs.items()}
    return Found({"name": MLRSEARCH, "library": library.PACKAGE, "found_in": origin}, bounds, stopped)


def _their_goal(package: t.Any, goal: Goal) -> t.Any:
    return package.SearchGoal(
        loss_ratio=goal.loss_ratio,
        exceed_ratio=goal.exceed_ratio,
        relative_width=goal.width,
        initial_trial_duration=goal.initial_trial_s,
        final_trial_duration=goal.final_trial_s,
        duration_sum=goal.duration_sum_s,
        preceding_targets=goal.preceding_targets,
        expansion_coefficient=goal.expansion_coefficient,
        # a lowest load that is too high is a result, not an error
        fail_fast=False,
    )


def _named(goals: t.Sequence[Goal], name: str) -> Goal:
    return next(goal for goal in goals if goal.name == name)


def _as_far_as_it_got(package: t.Any, search: t.Any, theirs: t.Mapping[str, t.Any]) -> dict[t.Any, t.Any]:
    scaling, database = getattr(search, "scaling", None), getattr(search, "database", None)
    if scaling is None or database is None:
        return {}
    targets = scaling.goal_to_final_target
    return {
        goal: package.GoalResult.from_bounds(bounds=database.get_relevant_bounds(target=targets[goal]))
        for goal in theirs.values()
    }


def _bounds(result: t.Any, goal: Goal, finished: bool) -> Bounds:
    lower, upper, conditional = (
        _float(getattr(result, name, None))
        for name in ("relevant_lower_bound", "relevant_upper_bound", "conditional_throughput")
    )
    narrow = lower is not None and upper is not None and (upper - lower) / upper <= goal.width * (1 + 1e-9)
    return Bounds(lower, upper, conditional, finished and narrow)


def _float(value: t.Any) -> float | None:
    return None if value is None else float(value)


def binary(goals: t.Sequence[Goal], loads: Range, attempt: Try, now: t.Callable[[], float]) -> Found:
    """One goal after the other by halving: one trial of full length decides on a load, whatever noise hit it."""
    began = now()
    bounds: dict[str, Bounds] = {}
    stopped: tuple[str, str] | None = None
    for goal in goals:
        lower: tuple[float, float] | None = None
        upper: float | None = None
        load = loads.max_pps
        while stopped is None:
            if now() - began > loads.search_limit_s:
                stopped = ("search_limit", f"the search did not end within {loads.search_limit_s:g} s")
                break
            ratio = attempt(load, goal.final_trial_s).loss_ratio
            if ratio is not None and ratio <= goal.loss_ratio:
                lower = (load, load * (1 - ratio))
            else:
                upper = load
            if upper is None or upper <= loads.min_pps:
                break
            floor = lower[0] if lower else loads.min_pps
            if lower and (upper - floor) / upper <= goal.width:
                break
            near = (upper - loads.min_pps) / upper <= goal.width
            load = loads.min_pps if lower is None and near else (floor + upper) / 2
        regular = stopped is None and lower is not None and upper is not None
        bounds[goal.name] = Bounds(lower[0] if lower else None, upper, lower[1] if lower else None, regular)
    return Found({"name": BINARY, "library": None, "found_in": None}, bounds, stopped)
