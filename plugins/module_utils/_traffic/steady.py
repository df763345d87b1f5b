# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From a report to the figures of the steady window: what is counted, how streams are added, what is refused.

With a warm-up, only the intervals inside the window count. Without one, the
final rows do. A figure that the report does not carry in full is an error,
never a smaller number.
"""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError, ParseError
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.record import (
    RECEIVER,
    TOLERANCE,
    Flow,
    IncompleteError,
    Interval,
    Measurement,
)

#: How far an interval's start may lie from its place, in parts of an interval.
_GRID_SLACK = 0.25
#: A UDP receiver that ends this long after its time was not told that the sender stopped.
_OVERTIME_S = 0.25


@dataclasses.dataclass(frozen=True)
class Window:
    """The part of a test that counts."""

    warmup_s: float
    duration_s: float
    interval_s: float
    parallel: int = 1

    def __post_init__(self) -> None:
        for name in ("warmup_s", "duration_s"):
            value = getattr(self, name)
            if abs(value / self.interval_s - round(value / self.interval_s)) > 1e-6:
                raise BenchError(
                    f"{name} ({value:g}) is no whole number of intervals of {self.interval_s:g} s",
                    where=name,
                    remedy="Choose interval_s so that it divides both warmup_s and duration_s",
                    code="bad_option",
                )

    @property
    def count(self) -> int:
        return round(self.duration_s / self.interval_s)

    @property
    def end_s(self) -> float:
        return self.warmup_s + self.duration_s

    @property
    def early_s(self) -> float:
        """A report that ends before this is not whole. A receiver's clock starts with the first packet."""
        return self.end_s - max(self.interval_s * _GRID_SLACK, 0.15, self.end_s * 0.05)


@dataclasses.dataclass(frozen=True)
class Figures:
    """One direction as one end counted it."""

    rate_bps: float
    peak_bps: float | None
    seconds: float
    start_s: float
    end_s: float
    packets: int | None
    lost: int | None
    retransmits: int | None
    jitter_ms: float | None
    out_of_order: int | None
    zero_intervals: int
    intervals: tuple[Interval, ...]
    #: Over the whole run, warm-up included: what the ends can be compared by.
    total_bytes: float | None
    total_packets: int | None
    total_lost: int | None
    #: Only the row over the whole run was there.
    whole_run: bool = False
    #: By how much the tool's own sum of an interval differs at most from its streams' rows, as a part of the larger.
    out_of_step: float = 0.0


def _total(values: t.Iterable[float | None]) -> float | None:
    """The sum; unknown if one part is."""
    total: float = 0
    for value in values:
        if value is None:
            return None
        total += value
    return total


def _count(values: t.Iterable[int | None]) -> int | None:
    total = _total(values)
    return None if total is None else int(total)


def _mean(values: t.Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def add_rows(rows: t.Sequence[Interval]) -> Interval:
    """The rows of parallel streams over the same time as one: bytes over the longest of them."""
    start = min(row.start_s for row in rows)
    end = max(row.end_s for row in rows)
    total = sum(row.bytes for row in rows)
    return Interval(
        start_s=start,
        end_s=end,
        bytes=total,
        rate_bps=total * 8 / (end - start) if end > start else 0.0,
        packets=_count(row.packets for row in rows),
        lost=_count(row.lost for row in rows),
        retransmits=_count(row.retransmits for row in rows),
        jitter_ms=_mean(row.jitter_ms for row in rows),
        out_of_order=_count(row.out_of_order for row in rows),
    )


def _agree(summed: Interval, own: Interval) -> None:
    if _difference(summed, own) > TOLERANCE:
        raise ParseError(
            "the tool's sum and its streams disagree over the whole test",
            line=f"streams {summed.bytes:.0f} bytes, sum {own.bytes:.0f} bytes",
            code="contradictory_output",
        )


def _difference(summed: Interval, own: Interval) -> float:
    """As a part of the larger; one byte is none."""
    return max(0.0, abs(summed.bytes - own.bytes) - 1) / max(summed.bytes, own.bytes, 1)


def _out_of_step(rows: t.Sequence[Interval], sums: t.Sequence[Interval], window: Window) -> float:
    """How far the streams were apart in time.

    iperf2 adds to a sum what its streams report while that interval is the current one. A stream that began late, or
    whose row came late, is in the sum of another interval. Its own row holds its own time, so the rows are right; but
    they do not cover the same time.
    """
    own = _by_slot(sums, window)
    # a last, shorter interval may have been summed before all of its streams had ended
    return max((_difference(row, own[n]) for n, row in enumerate(rows[:-1]) if n in own), default=0.0)


def _with_order(summed: Interval, own: Interval) -> Interval:
    """Some releases count datagrams out of order for the sum only."""
    if own.out_of_order is None:
        return summed
    return dataclasses.replace(summed, out_of_order=max(own.out_of_order, summed.out_of_order or 0))


def _slot(row: Interval, window: Window) -> int | None:
    place = (row.start_s - window.warmup_s) / window.interval_s
    number = round(place)
    return number if abs(place - number) <= _GRID_SLACK and 0 <= number < window.count else None


def _is_interval(row: Interval, window: Window) -> bool:
    return 0 < row.length_s <= window.interval_s * (1 + _GRID_SLACK)


def _by_slot(rows: t.Iterable[Interval], window: Window) -> dict[int, Interval]:
    slots: dict[int, Interval] = {}
    for row in rows:
        number = None if row.omitted or not _is_interval(row, window) else _slot(row, window)
        if number is not None and slots.setdefault(number, row) is not row:
            raise ParseError("two rows of one stream for one interval", line=f"{row.start_s:g}-{row.end_s:g} sec")
    return slots


def _tail(flow: Flow, slots: dict[int, Interval], window: Window) -> None:
    """The last interval, if the stream ended just before it was due: what the final row has on top of the others."""
    last = window.count - 1
    if last in slots or flow.final is None or flow.final.end_s > window.end_s + 0.001:
        return
    start = window.end_s - window.interval_s
    if flow.final.end_s - start < window.interval_s * (1 - _GRID_SLACK):
        return
    before = [row for row in flow.intervals if row.end_s <= start + window.interval_s * _GRID_SLACK]
    if abs(sum(row.length_s for row in before) - start) > window.interval_s * _GRID_SLACK:
        return
    counted = flow.final.bytes - sum(row.bytes for row in before)
    slots[last] = Interval(start, flow.final.end_s, counted, counted * 8 / (flow.final.end_s - start))


def _steady(flows: list[Flow], sums: t.Sequence[Interval], window: Window) -> list[Interval]:
    slots = [_by_slot(flow.intervals, window) for flow in flows]
    for flow, found in zip(flows, slots):
        _tail(flow, found, window)
    own = _by_slot(sums, window)
    finals = [flow.final for flow in flows if flow.final is not None]
    whole = _final_sum(sums, window)
    if whole is not None and finals and len(finals) == len(flows):
        _agree(add_rows(finals), whole)
    rows: list[Interval] = []
    for number in range(window.count):
        parts = [found[number] for found in slots if number in found]
        if parts and len(parts) == len(flows):
            summed = add_rows(parts)
            if number in own and number < window.count - 1:
                summed = _with_order(summed, own[number])
            if number < window.count - 1 and any(row.length_s < window.interval_s * (1 - _GRID_SLACK) for row in parts):
                raise IncompleteError(
                    f"a stream stopped at {min(row.end_s for row in parts):g} s",
                    remedy="It died, or began late on a busy machine: see the messages of the tool on both ends",
                    code="ended_early",
                )
            rows.append(summed)
        elif number in own and not flows:
            rows.append(own[number])
        else:
            begin = window.warmup_s + number * window.interval_s
            raise IncompleteError(
                f"the report has no row of all {len(flows) or 'its'} streams from {begin:g} to"
                f" {begin + window.interval_s:g} s",
                remedy="The test ended early, a stream began late, or the report was cut off",
                code="ended_early",
            )
    _check_end(rows[-1].end_s, window)
    return rows


def _overtime(finals: t.Iterable[Interval | None], window: Window) -> bool:
    """Whether a UDP receiver waited for an end that it was not told of: its final row is diluted by the wait."""
    return max((final.end_s for final in finals if final is not None), default=0.0) > window.end_s + _OVERTIME_S


def _check_alive(rows: t.Sequence[Interval], flows: t.Sequence[Flow], window: Window) -> None:
    """Tell a sender whose closing datagrams were lost from one that died: the latter's last intervals are empty."""
    if any(row.bytes > 0 for flow in flows for row in flow.intervals if row.start_s >= window.end_s - 0.001):
        return  # it was only slow: something came after its time
    rates = sorted(row.rate_bps for row in rows)
    if rows[-1].rate_bps < 0.5 * rates[len(rates) // 2] or rows[-1].rate_bps == 0:
        raise IncompleteError(
            f"the receiver heard nothing from the sender before the test's end at {window.end_s:g} s",
            remedy="The sender died, or the path broke",
            code="sender_vanished",
        )


def _final_sum(sums: t.Sequence[Interval], window: Window) -> Interval | None:
    longer_than = window.interval_s * (1 + _GRID_SLACK) if window.end_s > window.interval_s else 0.0
    last = max((row.end_s for row in sums), default=0.0)
    final = [
        row for row in sums if row.start_s == 0 and row.end_s > longer_than and row.end_s >= last - window.interval_s
    ]
    return final[-1] if final else None


def _whole(flows: list[Flow], sums: t.Sequence[Interval], window: Window) -> Interval:
    finals = [flow.final for flow in flows if flow.final is not None]
    own = _final_sum(sums, window)
    if flows and len(finals) != len(flows):
        raise IncompleteError(
            f"{len(flows) - len(finals)} of {len(flows)} streams have no final row",
            remedy="The test ended early, or the report was cut off",
            code="ended_early",
        )
    if not flows:
        if own is None:
            raise IncompleteError("the report has no final row", code="ended_early")
        whole = own
    else:
        whole = add_rows(finals)
        if own is not None:
            _agree(whole, own)
            whole = _with_order(whole, own)
            whole = dataclasses.replace(whole, bytes=own.bytes, end_s=own.end_s, rate_bps=own.rate_bps)
    _check_end(whole.end_s, window)
    return whole


def _check_end(end_s: float, window: Window) -> None:
    if end_s < window.early_s:
        raise IncompleteError(
            f"the test was to last {window.end_s:g} s and ended after {end_s:g} s",
            remedy="See the messages of the tool on both ends",
            code="ended_early",
        )


def figures(
    measurement: Measurement, direction: str, role: str, window: Window, *, peer_report: bool = False
) -> Figures | None:
    """What one end counted in one direction; None if it says nothing on it.

    :raises IncompleteError: the report begins but does not hold the window in full.
    :raises ParseError: the report contradicts itself.
    """
    flows = measurement.of(direction, role, peer_report=peer_report)
    sums = () if peer_report else measurement.sums
    if not flows and not (sums and not measurement.flows):
        return None
    if flows and len(flows) != window.parallel:
        raise IncompleteError(
            f"{window.parallel} streams were asked for and {len(flows)} are in the report",
            remedy="See the messages of the tool: streams that failed to connect make any sum wrong",
            code="streams_mismatch",
        )
    finals = [flow.final for flow in flows]
    late = not peer_report and role == RECEIVER and measurement.protocol == "udp" and _overtime(finals, window)
    if peer_report:
        rows = [_whole(flows, (), window)]
    elif window.warmup_s > 0 or late:
        rows = _steady(flows, sums, window)
        if late:
            _check_alive(rows, flows, window)
    else:
        rows = [_whole(flows, sums, window)]
    whole_run = peer_report or (window.warmup_s <= 0 and not late)
    shown = rows
    if whole_run and not peer_report:
        shown = _shown(flows, sums, window)
    begin, end = rows[0].start_s, rows[-1].end_s
    seconds = end - begin
    if seconds <= 0:
        raise IncompleteError("the report covers no time", code="ended_early")
    received = role == RECEIVER
    return Figures(
        rate_bps=sum(row.bytes for row in rows) * 8 / seconds,
        peak_bps=max((row.rate_bps for row in shown if row.length_s >= window.interval_s / 2), default=None)
        if not peer_report
        else None,
        seconds=seconds,
        start_s=begin,
        end_s=end,
        packets=_count(row.packets for row in rows),
        lost=_count(row.lost for row in rows) if received else None,
        retransmits=_count(row.retransmits for row in rows) if not received else None,
        jitter_ms=_mean(row.jitter_ms for row in rows),
        out_of_order=_count(row.out_of_order for row in rows) if received else None,
        zero_intervals=sum(1 for row in shown if row.bytes == 0),
        intervals=tuple(shown) if not peer_report else (),
        total_bytes=_total(final.bytes if final else None for final in finals) if finals else None,
        total_packets=_count(final.packets if final else None for final in finals) if finals else None,
        total_lost=_count(final.lost if final else None for final in finals) if finals and received else None,
        whole_run=whole_run,
        out_of_step=_out_of_step(rows, sums, window) if flows and not whole_run else 0.0,
    )


def _shown(flows: list[Flow], sums: t.Sequence[Interval], window: Window) -> list[Interval]:
    """The intervals to show where the final rows make the figure. They may be absent."""
    try:
        return _steady(flows, sums, window)
    except IncompleteError:
        return []
