# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One search from beginning to end: what the generator can do, the search itself, and a long trial beside it."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import time
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._search import controller, verdict
from ansible_collections.fastpath.bench.plugins.module_utils._search.controller import Bounds, Found, Range
from ansible_collections.fastpath.bench.plugins.module_utils._search.goals import DEFAULT_GOALS, Goal
from ansible_collections.fastpath.bench.plugins.module_utils._search.measurer import Measurer
from ansible_collections.fastpath.bench.plugins.module_utils._search.result import Trial, result_record
from ansible_collections.fastpath.bench.plugins.module_utils._search.verdict import Verdict

PROBE, WARMUP, SEARCH, CONFIRM, VALIDATION = "probe", "warmup", "search", "confirm", "validation"
#: A week.
LONGEST_S = 604_800.0
#: Without a lowest load, this part of the highest one.
_LEAST_PART = 1000
#: Parts of the last goal's throughput at which round-trip times are measured.
LATENCY_LOADS = (0.0, 0.1, 0.5, 0.9)
#: How long a trial takes that tells a dead direction from a device that is overrun.
_CONFIRM_S = 0.5


@dataclasses.dataclass(frozen=True)
class Plan:
    """What is to be searched, and how."""

    goals: tuple[Goal, ...] = DEFAULT_GOALS
    algorithm: str = controller.MLRSEARCH
    #: None asks the generator.
    max_load_pps: float | None = None
    min_load_pps: float | None = None
    search_limit_s: float = 1200.0
    probe_s: float = 1.0
    #: 0 leaves the trial out.
    validation_s: float = 60.0
    #: Seconds of round-trip times at each of LATENCY_LOADS; 0 leaves them out.
    latency_s: float = 0.0
    #: How often a trial without a usable result is repeated before the search is given up.
    retries: int = 2

    def __post_init__(self) -> None:
        for name in ("probe_s", "search_limit_s"):
            if not 0 < getattr(self, name) <= LONGEST_S:
                raise BenchError(f"{name} must be above 0, and at most {LONGEST_S:.0f}", where=f"option {name}",
                                 code="bad_option")  # fmt: skip
        for name in ("validation_s", "latency_s"):
            # a number that is none is not above the limit either
            if math.isnan(getattr(self, name)) or getattr(self, name) > LONGEST_S:
                raise BenchError(f"{name} must be at most {LONGEST_S:.0f}", where=f"option {name}", code="bad_option")
        if min(self.validation_s, self.latency_s, self.retries) < 0:
            raise BenchError(
                "a negative number is not possible",
                where="options validation_s, latency_s, trial_retries",
                code="bad_option",
            )


class SearchAbort(BenchError):
    """The search cannot go on: what it measures would be something else."""


class _Runner:
    """Performs and notes trials."""

    def __init__(self, measurer: Measurer, plan: Plan, note: t.Callable[[Trial], None]) -> None:
        self.measurer = measurer
        self.plan = plan
        self.note = note
        self.trials: list[Trial] = []
        self.least_pps = 0.0
        self.alive = False

    def attempt(self, load_pps: float, duration_s: float, phase: str = SEARCH) -> Verdict:
        """One trial with a usable result.

        :raises SearchAbort: there is none to be had.
        """
        for tries in range(self.plan.retries + 1):
            found = self._once(load_pps, duration_s, phase, tries + 1)
            if found.usable:
                break
        else:
            raise SearchAbort(
                f"{self.plan.retries + 1} trials in a row at {load_pps:.0f} packet/s gave no result: {found.reason}",
                remedy=_REMEDIES.get(found.code),
                code=found.code,
            )
        if found.code == verdict.DIRECTION_DEAD:
            self._see_life(load_pps, found)
        elif found.received:
            self.alive = True
        return found

    def _once(self, load_pps: float, duration_s: float, phase: str, tries: int) -> Verdict:
        began = self.measurer.now()
        seen = self.measurer.measure(load_pps, duration_s)
        found = verdict.judge(load_pps, duration_s, seen, self.measurer.limits)
        trial = Trial(len(self.trials) + 1, phase, load_pps, duration_s, tries, seen, found, began, self.measurer.now())
        self.trials.append(trial)
        self.note(trial)
        return found

    def _see_life(self, load_pps: float, found: Verdict) -> None:
        """A device that is overrun can lose all; one that forwards nothing at the lowest load is not connected."""
        if self.alive:
            return
        # enough packets to tell: a trial in which a handful is lost says nothing of a direction
        least_pps = max(self.least_pps, 2 * verdict.FEW / _CONFIRM_S)
        least = self._once(least_pps, _CONFIRM_S, CONFIRM, 1) if least_pps < load_pps else found
        if not least.usable or least.code == verdict.DIRECTION_DEAD:
            raise SearchAbort(least.reason or "nothing arrived", remedy=_REMEDIES[verdict.DIRECTION_DEAD],
                              code=verdict.DIRECTION_DEAD)  # fmt: skip
        self.alive = True


_REMEDIES = {
    verdict.TOOL_ERROR: "Look at what the tool said, in the trial's detail",
    verdict.GENERATOR_INVALID: "Have nothing else run on the generator's host; see the trial's detail",
    verdict.RECEIVED_MORE_THAN_SENT: "Something else sends to the receiver's port, or the path duplicates packets",
    verdict.WRONG_DURATION: "The generator's host is too busy: give it more CPU",
    verdict.DIRECTION_DEAD: "This is no loss but a misconfiguration: check addresses, routes, filters and cables",
    verdict.STATE_ASSERTION: "What is to hold during a trial does not hold: see the command of the option",
}


def run(plan: Plan, measurer: Measurer, *, note: t.Callable[[Trial], None] = lambda _trial: None) -> dict[str, t.Any]:
    """Search. The answer is a result also when the search had to be given up: status and reason say so."""
    runner = _Runner(measurer, plan, note)
    began, wall = measurer.now(), time.time()
    found: Found | None = None
    loads: Range | None = None
    validation: Trial | None = None
    abort: BenchError | None = None
    latency: list[dict[str, t.Any]] = []
    try:
        loads = _loads(plan, runner)
        found = _search(plan, loads, runner)
        searched = measurer.now()
        latency = _latency(plan, found, runner)
        validation = _validate(plan, found, runner)
    except BenchError as error:
        abort = error
        searched = measurer.now()
    return result_record(
        goals=plan.goals,
        loads=loads,
        max_load_given=plan.max_load_pps is not None,
        found=found,
        trials=runner.trials,
        validation=validation,
        latency=latency,
        profile=measurer.profile(),
        limits=measurer.limits,
        abort=abort,
        started=wall,
        search_s=searched - began,
        ended_s=measurer.now() - began,
    )


def _loads(plan: Plan, runner: _Runner) -> Range:
    """The range of loads. Asking the generator, or one trial that does not count, also fills caches and tables."""
    highest = plan.max_load_pps
    if highest is None:
        highest = runner.measurer.probe(plan.probe_s)
    lowest = plan.min_load_pps or max(highest / _LEAST_PART, runner.measurer.least_pps(_CONFIRM_S))
    loads = Range(lowest, highest, plan.search_limit_s)
    runner.least_pps = loads.min_pps
    runner.attempt(loads.max_pps, plan.probe_s, WARMUP)
    return loads


def _search(plan: Plan, loads: Range, runner: _Runner) -> Found:
    if plan.algorithm == controller.BINARY:
        return controller.binary(plan.goals, loads, runner.attempt, runner.measurer.now)
    return controller.mlrsearch(plan.goals, loads, runner.attempt)


def _validate(plan: Plan, found: Found, runner: _Runner) -> Trial | None:
    """The first goal's lower bound, once, for long. It stands beside the result and does not change it."""
    bounds: Bounds = found.bounds[plan.goals[0].name]
    if not plan.validation_s or bounds.lower_pps is None:
        return None
    with contextlib.suppress(SearchAbort):  # what spoilt it is in the trial, and the search was good
        runner.attempt(bounds.lower_pps, plan.validation_s, VALIDATION)
    return runner.trials[-1]


def _latency(plan: Plan, found: Found, runner: _Runner) -> list[dict[str, t.Any]]:
    """Round-trip times at parts of the last goal's throughput, which is PDR's by default."""
    goal = plan.goals[-1].name
    throughput = found.bounds[goal].conditional_pps
    if not plan.latency_s or throughput is None:
        return []
    rows = []
    for part in LATENCY_LOADS:
        row: dict[str, t.Any] = {"goal": goal, "part": part, "load_pps": part * throughput, "reason": None}
        try:
            times = runner.measurer.latency(part * throughput, plan.latency_s)
        except BenchError as error:
            row["reason"], times = error.message, {}
        if times is None:
            return []
        rows.append({**row, **times})
    return rows
