# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""summary.csv: a line for each metric of each point, numbers in full and in base units."""

from __future__ import annotations

import csv
import io
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._bench.summary import (
    MetricSummary,
    PointSummary,
    RunSummary,
)

_BEFORE_AXES = ("run_id", "testbed", "point_id")
_AFTER_AXES = (
    "status", "reason", "asked", "metric", "headline", "unit", "layer", "direction", "kind",
    "n", "median", "mean", "min", "max", "peak", "cv", "ci95_low", "ci95_high",
    "baseline_point_id", "difference_percent", "difference_ci95_low_percent", "difference_ci95_high_percent",
    "difference_shown", "difference_bound", "difference_reason", "findings",
)  # fmt: skip


def render(summary: RunSummary) -> str:
    axes = list(dict.fromkeys(axis for point in summary.points for axis in point.point))
    output = io.StringIO()
    writer = csv.writer(output, lineterminator="\n")
    writer.writerow([*_BEFORE_AXES, *(_text(axis) for axis in axes), *_AFTER_AXES])
    for point in summary.points:
        # A point without any metric has a line too: what is missing must be seen in the table.
        metrics: list[tuple[str, MetricSummary | None]] = [*sorted(point.metrics.items())] or [("", None)]
        for name, metric in metrics:
            writer.writerow(
                [
                    *(_text(value) for value in (summary.run_id, point.testbed, point.point_id)),
                    *(_text(point.point.get(axis, "")) for axis in axes),
                    *_row(point, name, metric),
                ]
            )
    return output.getvalue()


def _row(point: PointSummary, name: str, metric: MetricSummary | None) -> list[t.Any]:
    row: list[t.Any] = [point.status, _text(point.reason or ""), point.asked, _text(name)]
    if metric is None:
        return row + [""] * (len(_AFTER_AXES) - len(row) - 1) + [" ".join(point.findings)]
    is_headline = name == point.headline
    stats = metric.summary.as_dict()
    row += [str(is_headline).lower(), metric.unit, metric.layer or "", metric.direction, metric.kind]
    row += [_number(stats[key]) for key in ("n", "median", "mean", "min", "max", "peak", "cv", "ci95_low", "ci95_high")]
    against = point.baseline if is_headline else None
    if against is None:
        row += [""] * 7
    else:
        difference = against.difference
        row += [
            _text(against.point_id),
            *(_number(x) for x in (difference.percent, difference.low_percent, difference.high_percent)),
            str(against.shown).lower(),
            against.bound or "",
            _text(against.reason or ""),
        ]
    return [*row, " ".join(point.findings)]


def _number(value: float | None) -> str:
    return "" if value is None else repr(value)


def _text(value: str) -> str:
    """A spreadsheet takes text that starts so for a formula and runs it."""
    return "'" + value if value.startswith(("=", "+", "-", "@", "\t", "\r")) else value
