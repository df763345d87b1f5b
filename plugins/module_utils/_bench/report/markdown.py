# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""report.md: the page in Markdown, for a pull request or a wiki."""

from __future__ import annotations

import html
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._bench import units
from ansible_collections.fastpath.bench.plugins.module_utils._bench.report import layout, verdict
from ansible_collections.fastpath.bench.plugins.module_utils._bench.report.markup import legal
from ansible_collections.fastpath.bench.plugins.module_utils._bench.summary import (
    OK,
    PointSummary,
    RunSummary,
    median_dut,
    median_vpp,
)

_HEADS = (
    "point", "median", "min", "max", "peak", "mean", "spread", "n", "against the baseline", "direct path", "state",
)  # fmt: skip


def render(summary: RunSummary) -> str:
    several = len(summary.testbeds) > 1
    lines = [f"# fastpath.bench {_text(summary.run_id)}", "", "## What these numbers can and cannot carry", ""]
    lines += [f"- Can: {_text(line)}" for line in verdict.can_carry(summary)]
    lines += [f"- Cannot: {_text(line)}" for line in verdict.cannot_carry(summary)]
    lines += _findings(summary)
    lines += ["", "## Results"]
    for group in layout.groups(summary):
        name = f"{group.testbed}: {group.traffic}" if several else group.traffic
        lines += ["", f"### {_text(name)} ({_text(group.metric)})", ""]
        lines += _table(
            _HEADS,
            [_row(group, point) for point in group.points],
            right={1, 2, 3, 4, 5, 6, 7},
        )  # fmt: skip
    lines += _dut(summary, several=several)
    lines += _vpp(summary, several=several)
    troubled = [point for point in summary.points if point.status != OK]
    if troubled:
        lines += ["", "## Failed, invalid, skipped and missing", ""]
        lines += _table(
            ["point", "state", "why"], [[_name(point, several), point.status, point.reason or ""] for point in troubled]
        )
    lines += _conduct(summary)
    return "\n".join(lines) + "\n"


def _findings(summary: RunSummary) -> list[str]:
    if not summary.noticed:
        return []
    rows = []
    for noticed in summary.noticed:
        where = "the run" if not noticed.points else f"{len(noticed.points)} points"
        if len(noticed.points) == 1:
            where = noticed.points[0]
        rows.append([noticed.severity, noticed.code, "; ".join(noticed.evidence), where, noticed.remedy])
    return ["", "### Findings", "", *_table(["severity", "code", "evidence", "where", "what to do"], rows)]


def _row(group: layout.Group, point: PointSummary) -> list[str]:
    main, stats = point.main, point.main.summary
    against = "baseline" if point.is_baseline else units.UNKNOWN
    if point.baseline is not None:
        against = verdict.comparison(point.baseline)
    return [
        group.label(point),
        ("at least " if point.at_least else "") + units.human(stats.median, main.unit),
        *(units.human(value, main.unit) for value in (stats.min, stats.max, stats.peak, stats.mean)),
        units.spread(stats.cv),
        f"{stats.n} of {point.asked}" if stats.n != point.asked else str(stats.n),
        against,
        units.UNKNOWN if point.direct_percent is None else f"{verdict.percent(point.direct_percent)} % of it",
        point.status,
    ]


def _dut(summary: RunSummary, *, several: bool) -> list[str]:
    rows = [
        [
            _name(point, several),
            host,
            units.human(seen.frames_per_s, "packet/s"),
            units.UNKNOWN if seen.mean_frame_bytes is None else f"{seen.mean_frame_bytes:,.0f} bytes",
            units.UNKNOWN if seen.busiest_share is None
            else f"CPU {seen.busiest_cpu}: {100 * seen.busiest_share:.0f} %",
        ]
        for group in layout.groups(summary)
        for point in group.points
        for host, seen in median_dut(point).items()
    ]  # fmt: skip
    if not rows:
        return []
    heads = ["point", "DUT", "frames received (L2)", "mean frame (L2)", "busiest CPU"]
    return ["", "## What the DUT saw", "", *_table(heads, rows, right={2, 3})]


def _vpp(summary: RunSummary, *, several: bool) -> list[str]:
    rows = [
        [_name(point, several), host, *verdict.vpp_cells(use)]
        for group in layout.groups(summary)
        for point in group.points
        for host, use in median_vpp(point).items()
    ]
    if not rows:
        return []
    return [
        "", "## What VPP did", "", _text(verdict.VPP_NOTE), "",
        *_table(["point", "DUT", *(head.lower() for head in verdict.VPP_HEADS)], rows, right={3, 4}),
    ]  # fmt: skip


def _conduct(summary: RunSummary) -> list[str]:
    run = summary.run
    lines = ["", "## How it was measured", ""]
    for key in ("order", "seed", "repeats"):
        lines.append(f"- {key}: {_text(str(run.get(key, units.UNKNOWN)))}")
    baseline = run.get("baseline")
    if baseline:
        lines.append("- baseline: " + _text(", ".join(f"{axis} {value}" for axis, value in baseline.items())))
    lines += [f"- {_text(str(name))}: {_text(str(v))}" for name, v in sorted((run.get("versions") or {}).items())]
    cost = verdict.harness(summary)
    return [*lines, f"- {cost}"] if cost else lines


def _name(point: PointSummary, several: bool) -> str:
    return f"{point.testbed}: {point.label}" if several else point.label


def _table(heads: t.Sequence[str], rows: t.Iterable[t.Sequence[str]], right: t.Collection[int] = ()) -> list[str]:
    return [
        "| " + " | ".join(heads) + " |",
        "|" + "|".join("---:" if column in right else "---" for column in range(len(heads))) + "|",
        *("| " + " | ".join(_text(cell) for cell in row) + " |" for row in rows),
    ]


def _text(text: str) -> str:
    """Text that stays text: no markup of HTML or Markdown, no new cell, one line."""
    plain = html.escape(" ".join(legal(text).split()), quote=False)
    for character in "\\`*_[]|":
        plain = plain.replace(character, "\\" + character)
    return plain
