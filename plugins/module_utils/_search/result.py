# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a search found, with all that RFC 9971 wants in a test report, and in words."""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._search import verdict
from ansible_collections.fastpath.bench.plugins.module_utils._search.controller import Bounds, Found, Range
from ansible_collections.fastpath.bench.plugins.module_utils._search.goals import Goal
from ansible_collections.fastpath.bench.plugins.module_utils._search.verdict import Limits, Observation, Verdict

SCHEMA = 1
#: Why a result is a lower limit of what the device can do.
AT_MAX_LOAD, AT_GENERATOR = "max_load", "generator"


@dataclasses.dataclass(frozen=True)
class Trial:
    """One trial as it went. Moments are on the measurer's clock."""

    number: int
    phase: str
    load_pps: float
    duration_s: float
    tries: int
    seen: Observation
    found: Verdict
    began: float
    ended: float

    @property
    def overhead_s(self) -> float:
        """What it took beside its traffic."""
        return self.ended - self.began - self.duration_s

    def as_dict(self) -> dict[str, t.Any]:
        found = self.found
        ratio = found.loss_ratio if found.usable else None
        return {
            "number": self.number,
            "phase": self.phase,
            "tries": self.tries,
            "trial_load_pps": self.load_pps,
            "trial_duration_s": self.duration_s,
            "trial_effective_duration_s": self.duration_s,
            "verdict": found.code,
            "usable": found.usable,
            "reason": found.reason,
            "flags": list(found.flags),
            "intended_packets": found.intended,
            "sent_packets": found.sent,
            "received_packets": found.received,
            "lost_packets": found.lost,
            "missing_packets": found.missing,
            "trial_loss_ratio": ratio,
            "trial_forwarding_ratio": None if ratio is None else 1 - ratio,
            "trial_forwarding_rate_pps": None if ratio is None else self.load_pps * (1 - ratio),
            "offered_s": self.seen.offered_s,
            "directions": [dataclasses.asdict(count) for count in self.seen.counts],
            "window": None if self.seen.window is None else dict(zip(("start", "end"), self.seen.window)),
            "overhead_s": self.overhead_s,
            "detail": self.seen.detail,
        }


def limit_of(goal: Goal, bounds: Bounds, trials: t.Sequence[Trial]) -> str | None:
    """What kept the search from finding more, if it was not the device.

    The upper bound may be one for packets that the generator did not send: then the lower bound is a lower limit.
    """
    if bounds.lower_pps is None:
        return None
    if bounds.upper_pps is None:
        return AT_MAX_LOAD
    there = [trial for trial in trials if trial.load_pps == bounds.upper_pps and trial.found.usable]
    bad = [trial for trial in there if (trial.found.loss_ratio or 0) > goal.loss_ratio]
    short = [trial for trial in bad if (trial.found.path_loss_ratio or 0) <= goal.loss_ratio]
    # some such trials among many with real loss say nothing of the generator
    short_s, bad_s = (sum(trial.duration_s for trial in group) for group in (short, bad))
    return AT_GENERATOR if short and short_s * 2 >= bad_s else None


def in_words(goal: Goal, bounds: Bounds, limit: str | None) -> str:
    """The result in one sentence, as it may be quoted."""
    if bounds.lower_pps is None:
        what = "not found"
        if bounds.upper_pps is not None:
            what += f": below {bounds.upper_pps:,.0f} packet/s, the lowest load that was tried"
        return f"{goal.name} {what}"
    value = bounds.conditional_pps if bounds.conditional_pps is not None else bounds.lower_pps
    text = f"{goal.name} {'at least ' if limit else ''}{value:,.0f} packet/s"
    if limit == AT_MAX_LOAD:
        return text + " (the highest load that could be offered)"
    if limit == AT_GENERATOR:
        return text + " (the generator could not offer more)"
    return text if bounds.regular else text + " (irregular: the search ended before it was exact)"


def _goal_result(
    goal: Goal, bounds: Bounds, trials: t.Sequence[Trial], profile: t.Mapping[str, t.Any]
) -> dict[str, t.Any]:
    limit = limit_of(goal, bounds, trials)
    frame_bytes = (profile.get("frames") or {}).get("mean_bytes")
    value = bounds.conditional_pps
    return {
        **goal.as_dict(),
        "regular": bounds.regular and limit is None,
        "at_least": limit is not None,
        "limited_by": limit,
        "relevant_lower_bound_pps": bounds.lower_pps,
        "relevant_upper_bound_pps": bounds.upper_pps,
        "conditional_throughput_pps": value,
        "conditional_throughput_l2_bps": None if value is None or frame_bytes is None else value * frame_bytes * 8,
        "text": in_words(goal, bounds, limit),
    }


def result_record(
    *,
    goals: t.Sequence[Goal],
    loads: Range | None,
    max_load_given: bool,
    found: Found | None,
    trials: t.Sequence[Trial],
    validation: Trial | None,
    latency: t.Sequence[dict[str, t.Any]],
    profile: t.Mapping[str, t.Any],
    limits: Limits,
    abort: BenchError | None,
    started: float,
    search_s: float,
    ended_s: float,
) -> dict[str, t.Any]:
    """All of a search in one document."""
    status, code, reason = "ok", None, None
    if abort is not None:
        status, code, reason = "failed", abort.code, abort.message
    elif found is not None and found.stopped is not None:
        status, code, reason = "failed", found.stopped[0], found.stopped[1]
    profile = dict(profile)
    deviations = list(profile.pop("deviations", []))
    directions = list(profile.get("directions") or ["forward"])
    report = {
        "specification": "RFC 9971",
        "load_unit": "packet/s of one direction on one interface",
        "load_scope": "per interface",
        "aggregate_factor": len(directions),
        "traffic_profile": profile,
        "deviations_from_rfc2544_trials": deviations,
        "max_load_pps": loads.max_pps if loads else None,
        "max_load_source": "given" if max_load_given else "what the generator sent at most",
        "min_load_pps": loads.min_pps if loads else None,
        "trial_effective_duration": "equal to the trial duration",
        "trial_loss_ratio": (
            "packets that did not arrive, and those that were to be offered and were not, over the intended packets; "
            f"an offered load within {limits.offered_tolerance:.2%} of the intended one is the intended one"
        ),
        "duplicates": "a trial in which more is received than was sent is invalid and is repeated",
        "reordering": "reordered packets count as received",
        "goals": [goal.as_dict() for goal in goals],
        "controller": found.controller if found else None,
    }
    counted = [trial for trial in trials if trial.phase != "validation"]
    overheads = [trial.overhead_s for trial in trials]
    return {
        "schema": SCHEMA,
        "status": status,
        "code": code,
        "reason": reason,
        "report": report,
        "goals": [
            _goal_result(goal, found.bounds[goal.name], counted, profile)
            for goal in goals
            if found is not None and goal.name in found.bounds
        ],
        "validation": _validation(goals[0], validation),
        "latency": list(latency),
        "search": {
            "started": started,
            "search_s": search_s,
            "total_s": ended_s,
            "trials": len(counted),
            "traffic_s": sum(trial.duration_s for trial in trials),
            "overhead_s_mean": sum(overheads) / len(overheads) if overheads else None,
            "overhead_s_max": max(overheads, default=None),
            "trials_by_verdict": {
                name: sum(trial.found.code == name for trial in trials) for name in (verdict.OK, *verdict.ORDER)
            },
            "trials_below_intended": sum(verdict.OFFERED_BELOW_INTENDED in trial.found.flags for trial in trials),
        },
        "trials": [trial.as_dict() for trial in trials],
    }


def _validation(goal: Goal, trial: Trial | None) -> dict[str, t.Any] | None:
    if trial is None:
        return None
    found = trial.found
    if not found.usable:
        text = f"{trial.duration_s:g} s at {trial.load_pps:,.0f} packet/s gave no result: {found.code}, {found.reason}"
        return {**trial.as_dict(), "goal": goal.name, "held": None, "text": text}
    ratio, path_ratio = found.loss_ratio, found.path_loss_ratio
    held: bool | None = ratio is not None and ratio <= goal.loss_ratio
    shown = "unknown" if ratio is None else f"{ratio:.6%}"
    said = f"{goal.name}'s loss ratio is {'held' if held else 'not held'}"
    if found.missing:
        shown += f", of it {found.missing / found.intended:.6%} that the generator did not offer"
        if not held and path_ratio is not None and path_ratio <= goal.loss_ratio:
            held = None
            said = f"whether {goal.name}'s loss ratio is held at this load is not shown"
    return {
        **trial.as_dict(),
        "goal": goal.name,
        "held": held,
        "text": f"{trial.duration_s:g} s at {trial.load_pps:,.0f} packet/s: loss {shown}; {said}",
    }
