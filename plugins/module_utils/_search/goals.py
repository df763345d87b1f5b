# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Search goals in the words of RFC 9971, and what they comply with."""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError

#: RFC 2544, section 24: the duration of a throughput trial.
RFC2544_TRIAL_S = 60.0
_LONGEST_S = 86_400.0


@dataclasses.dataclass(frozen=True)
class Goal:
    """One search goal. Ratios are parts of one."""

    name: str
    loss_ratio: float = 0.0
    exceed_ratio: float = 0.5
    #: Relative: the distance of the bounds as a part of the upper one.
    width: float = 0.005
    initial_trial_s: float = 1.0
    final_trial_s: float = 1.0
    duration_sum_s: float = 9.0
    #: How the search goes about it; no part of what is found.
    preceding_targets: int = 2
    expansion_coefficient: int = 2

    def __post_init__(self) -> None:
        for name, low, high in (("loss_ratio", 0, 1), ("exceed_ratio", 0, 1), ("width", 1e-6, 1)):
            if not low <= getattr(self, name) < high:
                raise self._bad(name, f"{getattr(self, name):g} is out of range", f"Use {low:g} to below {high:g}")
        if not 0.1 <= self.initial_trial_s <= self.final_trial_s <= self.duration_sum_s:
            raise self._bad(
                "initial_trial_s, final_trial_s, duration_sum_s",
                f"{self.initial_trial_s:g}, {self.final_trial_s:g} and {self.duration_sum_s:g} s do not fit together",
                "None may be shorter than the one before it, and 0.1 s is the shortest",
            )
        if self.duration_sum_s > _LONGEST_S:
            raise self._bad("duration_sum_s", f"{self.duration_sum_s:g} s is too long", f"Use at most {_LONGEST_S:g}")
        if self.preceding_targets < (1 if self.initial_trial_s < self.duration_sum_s else 0):
            raise self._bad("preceding_targets", f"{self.preceding_targets} are too few", "Use 1 or more")
        if self.expansion_coefficient < 2:
            raise self._bad("expansion_coefficient", f"{self.expansion_coefficient} is too small", "Use 2 or more")

    def _bad(self, option: str, what: str, remedy: str) -> BenchError:
        return BenchError(what, where=f"goal {self.name}: {option}", remedy=remedy, code="bad_option")

    @property
    def compliance(self) -> str:
        """RFC 9971, section on compliance with RFC 2544: unconditional, conditional or none."""
        if self.loss_ratio > 0 or self.exceed_ratio > 0:
            return "none"
        return "unconditional" if self.final_trial_s >= RFC2544_TRIAL_S else "conditional"

    def as_dict(self) -> dict[str, t.Any]:
        """The attributes under the names of the RFC."""
        return {
            "name": self.name,
            "goal_loss_ratio": self.loss_ratio,
            "goal_exceed_ratio": self.exceed_ratio,
            "goal_final_trial_duration_s": self.final_trial_s,
            "goal_duration_sum_s": self.duration_sum_s,
            "goal_initial_trial_duration_s": self.initial_trial_s,
            "goal_width": self.width,
            "goal_width_quantity": "relative to the upper bound",
            "preceding_targets": self.preceding_targets,
            "expansion_coefficient": self.expansion_coefficient,
            "rfc2544_compliance": self.compliance,
        }


NDR = Goal("NDR")
PDR = Goal("PDR", loss_ratio=0.005)
DEFAULT_GOALS = (NDR, PDR)


def rfc2544_goal(trial_s: float = RFC2544_TRIAL_S, *, width: float = 0.005) -> Goal:
    """The one goal whose result is RFC 2544's throughput."""
    return Goal(
        "throughput",
        exceed_ratio=0.0,
        width=width,
        initial_trial_s=min(1.0, trial_s),
        final_trial_s=trial_s,
        duration_sum_s=trial_s,
    )


def from_params(wanted: t.Sequence[t.Mapping[str, t.Any]]) -> tuple[Goal, ...]:
    """Goals from a module's option; what is not given is as in :class:`Goal`."""
    known = {field.name for field in dataclasses.fields(Goal)}
    goals = tuple(Goal(**{key: value for key, value in entry.items() if key in known and value is not None})
                  for entry in wanted)  # fmt: skip
    names = [goal.name for goal in goals]
    if len(set(names)) != len(names):
        raise BenchError("two goals have one name", where="option goals", remedy="Name each once", code="bad_option")
    same = {dataclasses.replace(goal, name="") for goal in goals}
    if not goals or len(same) != len(goals):
        raise BenchError("there is no goal, or two are the same", where="option goals", code="bad_option")
    return goals
