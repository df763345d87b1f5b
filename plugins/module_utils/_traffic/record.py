# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a traffic generator said, as typed records: the common form of all its tools and output formats.

A parser fills these and computes nothing but what the text says. What is
counted, and what the figures are worth, is decided in steady.py.
"""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError, ParseError

FORWARD = "forward"
REVERSE = "reverse"
BOTH = "both"
SENDER = "sender"
RECEIVER = "receiver"
CLIENT = "client"
SERVER = "server"

#: Rates and byte counts of one row may differ by this much before the row is called wrong.
TOLERANCE = 0.01


class IncompleteError(BenchError):
    """The output is readable, but it does not hold the whole test."""


@dataclasses.dataclass(frozen=True)
class Interval:
    """One row of a report. What the tool did not say is None."""

    start_s: float
    end_s: float
    bytes: float
    rate_bps: float
    #: Datagrams that were sent (sender) or that arrived (receiver).
    packets: int | None = None
    lost: int | None = None
    retransmits: int | None = None
    jitter_ms: float | None = None
    out_of_order: int | None = None
    #: The tool itself marked the row as warm-up.
    omitted: bool = False

    @property
    def length_s(self) -> float:
        return self.end_s - self.start_s


@dataclasses.dataclass(frozen=True)
class Flow:
    """One stream in one direction as one end saw it."""

    id: str
    direction: str
    role: str
    local: tuple[str, int] | None
    remote: tuple[str, int] | None
    intervals: tuple[Interval, ...]
    final: Interval | None
    #: The row was counted by the other end and only repeated here.
    peer_report: bool = False


@dataclasses.dataclass(frozen=True)
class Measurement:
    """One tool's output."""

    tool: str
    end: str
    version: str | None = None
    protocol: str | None = None
    flows: tuple[Flow, ...] = ()
    #: The tool's own rows over all streams of one direction.
    sums: tuple[Interval, ...] = ()
    #: The tool's own rows over both directions at once: no direction's figure.
    sums_both: tuple[Interval, ...] = ()
    connected: int = 0
    #: When the first interval began, if the output tells it.
    started: float | None = None
    errors: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def of(self, direction: str, role: str, *, peer_report: bool = False) -> list[Flow]:
        return [
            flow
            for flow in self.flows
            if flow.direction == direction and flow.role == role and flow.peer_report == peer_report
        ]

    def as_dict(self) -> dict[str, t.Any]:
        """The form at rest."""
        return dataclasses.asdict(self)


def pick_final(rows: t.Sequence[Interval], interval_s: float | None) -> tuple[tuple[Interval, ...], Interval | None]:
    """Part the rows of one stream into intervals and the row over the whole test.

    Neither the last row nor the order tells: rows of several streams are mixed.
    The final row starts at 0 and ends last. A lone row is the final one only
    if no intervals were asked for, or if it is longer than an interval.
    """
    rows = [row for row in rows if not row.omitted]
    if not rows:
        return (), None
    last_end = max(row.end_s for row in rows)
    candidates = [row for row in rows if row.start_s == 0 and row.end_s == last_end]
    if not candidates:
        return tuple(rows), None
    final = candidates[-1]
    if len(rows) == 1 and interval_s is not None and final.end_s <= interval_s * 1.05:
        return tuple(rows), None
    intervals = [row for row in rows if row is not final]
    counted = sum(row.bytes for row in intervals)
    if counted > final.bytes * (1 + TOLERANCE) + 1:
        raise ParseError(
            "the intervals of a stream hold more bytes than its final row", line=f"{counted:.0f} > {final.bytes:.0f}"
        )
    return tuple(intervals), final


def check_row(
    row: Interval, line: str, *, bytes_step: float = 1.0, rate_step: float = 1.0, time_step: float = 0.0
) -> Interval:
    """Refuse a row whose rate is not its bytes over its time.

    The steps are the worth of the last digit that was printed: what rounding
    may hide is not called an error.
    """
    if row.end_s < row.start_s or row.bytes < 0 or row.rate_bps < 0:
        raise ParseError("a row runs backwards", line=line)
    if row.length_s <= 0:
        if row.bytes > 0 and row.rate_bps > 0:
            raise ParseError("a row holds bytes but no time", line=line)
        return row
    computed = row.bytes * 8 / row.length_s
    slack = bytes_step * 4 / row.length_s + rate_step / 2
    times = 1 if row.start_s == 0 else 2
    slack += max(computed, row.rate_bps) * max(TOLERANCE, times * time_step / 2 / row.length_s)
    if abs(computed - row.rate_bps) > slack:
        raise ParseError(
            f"the rate of a row is not its bytes over its time ({computed:.0f} bit/s computed,"
            f" {row.rate_bps:.0f} bit/s printed)",
            line=line,
            code="contradictory_output",
        )
    return row
