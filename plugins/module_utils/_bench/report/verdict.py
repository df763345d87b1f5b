# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run says, in sentences and in a table for a terminal."""

from __future__ import annotations

import math
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._bench import findings, observed, units
from ansible_collections.fastpath.bench.plugins.module_utils._bench.summary import (
    OK,
    PARTIAL,
    STATES,
    Comparison,
    PointSummary,
    RunSummary,
)

#: Lines for a terminal; the files hold all.
TERMINAL_POINTS = 60

VPP_HEADS = (
    "Busiest thread", "Packets a call", "Clocks a packet", "Costliest nodes", "Receives by", "Drops", "Meaning",
)  # fmt: skip
VPP_NOTE = (
    "Of the thread with the most packets, in the trial with the median of packets a call (vectors per call, 256 at "
    "most); drops are those of all trials that count. About 1 is no batching, tens say that batching works, near 256 "
    "a thread is saturated: add workers. Clocks are those that passed, the time that a thread waited for a CPU "
    "included; a node's are by packet of its own."
)


def percent(value: float, digits: int | None = None) -> str:
    """Without a sign: ``45``, ``3.2``, ``0.41``."""
    size = abs(value)
    if digits is None:
        digits = 0 if size >= 10 else 1 if size >= 1 else 2
    return f"{size:,.{digits}f}"


def _inwards(bound: float) -> float:
    """A bound cut, not rounded: what is printed must hold."""
    scale = 1 if abs(bound) >= 10 else 10 if abs(bound) >= 1 else 100
    return math.trunc(bound * scale) / scale


def interval_digits(low: float, high: float) -> int:
    """As many digits as tell the ends of an interval apart, up to 2: ``44 to 46``, ``44.9 to 45.3``."""
    width = high - low
    return 0 if width >= 1.5 and max(abs(low), abs(high)) >= 10 else 1 if width >= 0.2 else 2


def metric_words(point: PointSummary) -> str:
    """``L4 goodput``, ``L4 forwarding rate``."""
    name = point.headline.rpartition("_")[0].replace("_", " ") or point.headline
    return f"{point.main.layer} {name}" if point.main.layer else name


def repetitions(point: PointSummary) -> str:
    """``n 3``, or ``n 2 of 3`` when some are missing or do not count."""
    n = point.main.summary.n
    return f"n {n}" if n == point.asked else f"n {n} of {point.asked}"


def comparison(against: Comparison, *, with_label: bool = True) -> str:
    """``45 % below direct (95 % 40 to 49)``, or why it is not shown."""
    name = f" {against.label}" if with_label else ""
    if against.figures is None:
        reason = against.reason or "not shown"
        return reason if reason.startswith(("not shown", "no difference")) else f"not shown: {reason}"
    difference, low, high = against.figures
    side = "above" if difference > 0 else "below"
    if against.bound is not None:
        bound = low if against.bound == "at_least" else high
        return f"at least {percent(_inwards(bound))} % {side}{name} (bound of the 95 % interval)"
    digits = interval_digits(low, high)
    near, far = sorted((abs(low), abs(high)))
    return f"{percent(difference, digits)} % {side}{name} (95 % {percent(near, digits)} to {percent(far, digits)})"


def comparison_figures(difference: float, low: float, high: float) -> tuple[str, str]:
    """A shown difference as (``-45 %``, ``-49 to -40``), with true minus signs."""
    digits = interval_digits(low, high)
    return f"{signed(difference, digits)} %", f"{signed(low, digits)} to {signed(high, digits)}"


def vpp_cells(use: observed.VppUse) -> list[str]:
    """What VPP did on a DUT, in the order of :data:`VPP_HEADS`."""
    thread = use.busiest
    lost = findings.vpp_losses(use) or (units.UNKNOWN if use.dropped is None else "none")
    meaning = use.reason or use.meaning or units.UNKNOWN
    if thread is None:
        return [units.UNKNOWN] * 5 + [lost, meaning]
    share = "" if thread.cpu_ratio is None else f", {100 * thread.cpu_ratio:.0f} % on a CPU"
    nodes = [
        f"{node.name} {node.clocks_per_packet:,.0f}" for node in use.costly_nodes if node.clocks_per_packet is not None
    ]
    return [
        thread.name + share,
        units.human(thread.vectors_per_call, "count"),
        units.UNKNOWN if thread.clocks_per_packet is None else f"{thread.clocks_per_packet:,.0f}",
        ", ".join(nodes) or units.UNKNOWN,
        thread.receives_by or units.UNKNOWN,
        lost,
        meaning,
    ]


def sentence(point: PointSummary, *, with_testbed: bool = False) -> str:
    """One point in one sentence."""
    label = f"{point.testbed}: {point.label}" if with_testbed else point.label
    summary = point.main.summary
    if point.status not in (OK, PARTIAL):
        reason = point.reason or "no reason was given"
        return f"{label}: {reason}" if reason.startswith(point.status) else f"{label}: {point.status}: {reason}"
    value = units.human(summary.median, point.main.unit)
    spread = f", spread {units.spread(summary.cv)}" if summary.cv is not None else ""
    limit = "at least " if point.at_least else ""
    text = f"{label}: median {limit}{value} ({metric_words(point)}, {repetitions(point)}{spread})"
    if point.is_baseline:
        return f"{text}, the baseline"
    if point.baseline is None:
        return text
    if point.baseline.shown:
        return f"{text}, {comparison(point.baseline)}"
    return f"{text}; against {point.baseline.label}: {comparison(point.baseline)}"


def with_interval(point: PointSummary) -> str:
    """``18.2 Gbit/s (95 % 17.9 to 18.5 Gbit/s)``: the mean of a point, to which its interval belongs."""
    main = point.main
    text = units.human(main.summary.mean, main.unit)
    low, high = main.summary.ci95_low, main.summary.ci95_high
    if low is None or high is None:
        return f"{text} (n {main.summary.n}, no interval)"
    return f"{text} (95 % {units.human(max(0.0, low), main.unit)} to {units.human(high, main.unit)})"


def versus(summary: RunSummary, points: t.Sequence[PointSummary]) -> list[str]:
    """Each comparison with the baseline as one sentence that carries its own evidence."""
    lines = []
    for point in points:
        base = summary.by_id(point.baseline.point_id) if point.baseline is not None else None
        if point.baseline is None or base is None or point.main.summary.n == 0 or base.main.summary.n == 0:
            continue
        rest = " ".join(value for axis, value in point.point.items() if value == base.point.get(axis))
        ours = " ".join(value for axis, value in point.point.items() if value != base.point.get(axis))
        against = point.baseline
        if against.figures is not None and against.bound is None:
            figure, interval = comparison_figures(*against.figures)
            result = f"{figure} ({interval} %)"
        else:
            result = comparison(against, with_label=False)
        lines.append(f"{rest}: {ours} {with_interval(point)}, {against.label} {with_interval(base)}: {result}")
    return lines


def counts(summary: RunSummary) -> dict[str, int]:
    """How many points are in each state."""
    return {state: n for state in STATES for n in [sum(p.status == state for p in summary.points)] if n}


def can_carry(summary: RunSummary) -> list[str]:
    """What the numbers can be used for."""
    lines = []
    measured = [point for point in summary.points if point.status in (OK, PARTIAL)]
    if not measured:
        return ["Nothing: no point has a result."]
    whole = sum(point.status == OK for point in measured)
    lines.append(f"{len(measured)} of {len(summary.points)} points have a result, {whole} with every repetition.")
    compared = [point.baseline for point in measured if point.baseline is not None]
    shown = sum(against.shown for against in compared)
    if compared:
        lines.append(
            f"{shown} of {len(compared)} differences from the baseline are carried by their 95 % interval"
            + (f"; {len(compared) - shown} not shown, each with its reason." if shown < len(compared) else ".")
        )
    if any(point.main.summary.n > 2 for point in measured):
        lines.append("Ratios of like with like within this run, as far as their intervals reach.")
    return lines


def cannot_carry(summary: RunSummary) -> list[str]:
    """What the numbers must not be used for, from the findings."""
    lines = []
    for noticed in summary.noticed:
        rule = findings.REGISTRY.get(noticed.code)
        if rule is not None and rule.cannot:
            where = f", {_points(len(noticed.points))}" if noticed.points else ""
            lines.append(f"{rule.cannot[0].upper()}{rule.cannot[1:]} ({noticed.code}{where}).")
    lost = sum(point.status not in (OK, PARTIAL) for point in summary.points)
    if lost:
        lines.append(f"Anything about {_points(lost)} without a result.")
    return lines


def _points(number: int) -> str:
    return f"{number:,} point" if number == 1 else f"{number:,} points"


def verdict(summary: RunSummary, points: t.Sequence[PointSummary], limit: int = TERMINAL_POINTS) -> list[str]:
    """The verdict for a terminal, with ``points`` in the order given."""
    lines = [f"run {summary.run_id}"]
    lines += [f"can carry: {text}" for text in can_carry(summary)]
    lines += [f"cannot carry: {text}" for text in cannot_carry(summary)]
    several = len(summary.testbeds) > 1
    lines += [sentence(point, with_testbed=several) for point in points[:limit]]
    if len(points) > limit:
        lines.append(f"and {len(points) - limit} more points: see the report")
    cost = harness(summary)
    if cost:
        lines.append(cost)
    return lines


def harness(summary: RunSummary) -> str | None:
    """``harness time 0.62 s a trial (run 71 s, traffic 60 s, 18 trials)``."""
    found = summary.harness
    if not found or found.get("harness_s_per_trial") is None:
        return None
    return (
        f"harness time {found['harness_s_per_trial']:.2f} s a trial "
        f"(run {units.seconds(found.get('wall_s'))}, traffic {units.seconds(found.get('traffic_s'))}, "
        f"{found.get('trials')} trials)"
    )


def table(summary: RunSummary, points: t.Sequence[PointSummary], limit: int = TERMINAL_POINTS) -> list[str]:
    """``points`` as an aligned table of text."""
    rows = [("point", "median", "min", "max", "spread", "n", "against the baseline", "state")]
    several = len(summary.testbeds) > 1
    for point in points[:limit]:
        main = point.main
        rows.append(
            (
                f"{point.testbed}: {point.label}" if several else point.label,
                ("≥ " if point.at_least else "") + units.human(main.summary.median, main.unit),
                units.human(main.summary.min, main.unit),
                units.human(main.summary.max, main.unit),
                units.spread(main.summary.cv),
                f"{main.summary.n}/{point.asked}",
                _short(point),
                point.status,
            )
        )
    lines = align(rows, right={1, 2, 3, 4, 5})
    if len(points) > limit:
        lines.append(f"... and {len(points) - limit} more points: see the report")
    return lines


def align(rows: t.Sequence[t.Sequence[str]], right: t.Collection[int]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(
            cell.rjust(widths[column]) if column in right else cell.ljust(widths[column])
            for column, cell in enumerate(row)
        ).rstrip()
        for row in rows
    ]


def _short(point: PointSummary) -> str:
    if point.is_baseline:
        return "baseline"
    if point.baseline is None:
        return ""
    against = point.baseline
    if against.figures is None:
        return "no difference" if (against.reason or "").startswith("no difference") else "not shown"
    difference, low, high = against.figures
    if against.bound is not None:
        bound = low if against.bound == "at_least" else high
        return f"{'≥' if against.bound == 'at_least' else '≤'} {signed(_inwards(bound))} %"
    figure, interval = comparison_figures(difference, low, high)
    return f"{figure} ({interval})"


def signed(value: float | None, digits: int | None = None) -> str:
    """``+45``, ``-3.2``, with a true minus sign."""
    if value is None:
        return units.UNKNOWN
    return ("+" if value > 0 else "\N{MINUS SIGN}" if value < 0 else "") + percent(value, digits)
