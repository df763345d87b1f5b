# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How the points of a run are put into groups and order: the same for the page, its charts and the Markdown."""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._bench.report import verdict
from ansible_collections.fastpath.bench.plugins.module_utils._bench.summary import (
    NONE,
    PointSummary,
    RunSummary,
    label_of,
)

_PATH_AXES = ("topology", "datapath", "power")
_DIRECTIONS = ("forward", "reverse", "both")


@dataclasses.dataclass(frozen=True)
class Group:
    """Points of one testbed with the same traffic: what one table and one chart show."""

    testbed: str
    traffic: str
    points: t.Sequence[PointSummary]

    @property
    def metric(self) -> str:
        """``L4 goodput, received``."""
        first = self.points[0]
        return f"{verdict.metric_words(first)}, {first.main.kind}"

    def label(self, point: PointSummary) -> str:
        """The point without what the whole group shares."""
        return label_of({a: v for a, v in point.point.items() if a != "traffic"}) or point.label


def groups(summary: RunSummary) -> list[Group]:
    """In the order of the plan; within a group the direct path stands right before the routed ones."""
    found: dict[tuple[str, str], list[PointSummary]] = {}
    for point in summary.points:
        found.setdefault((point.testbed, point.point.get("traffic", point.headline)), []).append(point)
    rank: dict[tuple[str, str], int] = {("direction", way): number for number, way in enumerate(_DIRECTIONS)}
    for point in summary.points:
        for axis, value in point.point.items():
            rank.setdefault((axis, value), len(rank))

    def order(point: PointSummary) -> list[int]:
        # NONE ranks before every value, so that a direct path stands first
        return [
            -1 if point.point[axis] == NONE else rank[axis, point.point[axis]]
            for axis in sorted(point.point, key=_weight)
        ]

    return [Group(testbed, traffic, sorted(points, key=order)) for (testbed, traffic), points in found.items()]


def ordered(summary: RunSummary) -> list[PointSummary]:
    """All points as the groups have them."""
    return [point for group in groups(summary) for point in group.points]


def _weight(axis: str) -> int:
    """Direction sorts first and the path last; the axes between keep the order of the plan."""
    return {"direction": 0, "datapath": 2, "topology": 3}.get(axis, 1)


def series(summary: RunSummary) -> dict[str, int]:
    """A colour's number for each path; those without a DUT share number 0."""
    numbers: dict[str, int] = {}
    for point in summary.points:
        name = path_name(point)
        if name not in numbers:
            direct = point.point.get("datapath", NONE) == NONE
            numbers[name] = 0 if direct else 1 + sum(number > 0 for number in numbers.values())
    return numbers


def path_name(point: PointSummary) -> str:
    """Through what the traffic went: ``routed kernel``. Other axes say how it was sent, and have no colour."""
    return label_of({axis: v for axis, v in point.point.items() if axis in _PATH_AXES}) or point.label
