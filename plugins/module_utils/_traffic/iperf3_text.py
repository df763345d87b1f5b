# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads iperf3's text report, for outputs that others recorded and for servers that print no JSON.

The heading tells what the columns are; the same digits mean retransmits under
one and datagrams under another.
"""

from __future__ import annotations

import dataclasses
import re

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import ParseError
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.iperf_lines import (
    CONNECTED,
    TextRow,
    checked_loss,
    classify,
    lines_of,
    read_row,
)
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.record import (
    CLIENT,
    FORWARD,
    RECEIVER,
    REVERSE,
    SENDER,
    Flow,
    Interval,
    Measurement,
    pick_final,
)

_NOISE = ("iperf3: OUT OF ORDER", "OUT OF ORDER")
_LOSS = re.compile(
    r"^\s+(?P<jitter>\d+(?:\.\d+)?) ms\s+(?P<lost>-?\d+)/\s*(?P<total>-?\d+) \((?P<percent>[^)]*)%\)"
    r"\s*(?P<end>sender|receiver)?$"
)
_TCP = re.compile(r"^(?:\s+(?P<retries>\d+))?(?:\s+[\d.]+ [KMGT]?Bytes)?(?:\s+(?P<end>sender|receiver))?$")
_DATAGRAMS = re.compile(r"^\s+(?P<total>\d+)(?:\s+(?P<end>sender|receiver))?$")
_PLAIN = re.compile(r"^(?:\s+(?P<end>sender|receiver))?$")
_OUT_OF_ORDER = re.compile(r"^\[\s*(?:SUM|\d+)\].*datagrams received out-of-order$")
_VERSION = re.compile(r"^iperf (3\.\d+(?:\.\d+)?)")


@dataclasses.dataclass
class _Stream:
    id: str
    direction: str
    role: str
    rows: list[Interval] = dataclasses.field(default_factory=list)
    finals: dict[str, Interval] = dataclasses.field(default_factory=dict)


class _Reader:
    def __init__(self, end: str) -> None:
        self.end = end
        self.reverse = False
        self.both = False
        self.heading = ""
        self.streams: dict[tuple[str, str | None], _Stream] = {}
        self.sums: list[Interval] = []
        self.connected = 0
        self.protocol: str | None = None

    def line(self, line: str) -> bool:
        if line.startswith("[ ID]"):
            self.heading = line
            if "Datagrams" in line:
                self.protocol = "udp"
            elif self.protocol is None:
                self.protocol = "tcp"
            return True
        if line.startswith("Reverse mode"):
            self.reverse = True
            return True
        if CONNECTED.match(line):
            self.connected += 1
            return True
        if _OUT_OF_ORDER.match(line):
            return True
        row = read_row(line)
        if row is None:
            return False
        self._row(row, line)
        return True

    def _columns(self, row: TextRow, line: str) -> tuple[Interval, str | None]:
        interval = row.interval
        loss = _LOSS.match(row.rest)
        if loss:
            arrived, lost = checked_loss(line, loss["lost"], loss["total"], loss["percent"])
            self.protocol = "udp"
            if loss["end"] == SENDER:
                total = int(loss["total"])
                return dataclasses.replace(interval, packets=total if total > 0 else None), SENDER
            if loss["total"] == "0":
                lost = None  # nothing arrived, nothing is known to be lost
            if loss["end"] == RECEIVER and self.end == CLIENT and lost:
                # older releases repeat the sender's bytes in the receiver's row
                total = int(loss["total"])
                interval = self._arrived(interval, arrived, total)
            return (
                dataclasses.replace(interval, jitter_ms=float(loss["jitter"]), packets=arrived, lost=lost),
                loss["end"],
            )
        if "Retr" in self.heading:
            tcp = _TCP.match(row.rest)
            if tcp:
                retries = int(tcp["retries"]) if tcp["retries"] else None
                return dataclasses.replace(interval, retransmits=retries), tcp["end"]
        elif "Datagrams" in self.heading:
            datagrams = _DATAGRAMS.match(row.rest)
            if datagrams:
                return dataclasses.replace(interval, packets=int(datagrams["total"])), datagrams["end"] or SENDER
        plain = _PLAIN.match(row.rest)
        if plain:
            return interval, plain["end"]
        raise ParseError("a row with columns that are not known", line=line)

    def _arrived(self, interval: Interval, arrived: int | None, total: int) -> Interval:
        """Whose bytes the row holds cannot be told from it: only datagrams are sure then."""
        sent = [stream.finals[SENDER] for stream in self.streams.values() if SENDER in stream.finals]
        if arrived is None or not any(row.bytes == interval.bytes for row in sent):
            return interval
        share = arrived / total
        return dataclasses.replace(interval, bytes=interval.bytes * share, rate_bps=interval.rate_bps * share)

    def _row(self, row: TextRow, line: str) -> None:
        interval, end = self._columns(row, line)
        if row.id.startswith("SUM"):
            if end is None:
                self.sums.append(interval)
            return
        if row.tag:
            self.both = True
            sends = row.tag.startswith("TX")
        else:
            sends = (self.end == CLIENT) != self.reverse
        direction = FORWARD if sends == (self.end == CLIENT) else REVERSE
        key = (row.id, row.tag)
        stream = self.streams.setdefault(key, _Stream(row.id, direction, SENDER if sends else RECEIVER))
        is_final = end is not None and row.rest.endswith(("sender", "receiver"))
        if is_final and end is not None:
            stream.finals[end] = interval
        else:
            stream.rows.append(interval)


def parse_text(text: str, *, end: str = CLIENT, stderr: str = "", interval_s: float | None = None) -> Measurement:
    """Read a text report."""
    reader = _Reader(end)
    left: list[str] = []
    version: str | None = None
    for line in lines_of(text):
        if line.startswith(_NOISE):
            continue
        found = _VERSION.match(line)
        if found:
            version = found[1]
        if not reader.line(line.rstrip()):
            left.append(line)
    flows: list[Flow] = []
    for stream in reader.streams.values():
        intervals, final = pick_final(stream.rows, interval_s)
        if stream.role in stream.finals:
            final = stream.finals[stream.role]
            intervals = tuple(row for row in stream.rows if not row.omitted)
        flows.append(Flow(stream.id, stream.direction, stream.role, None, None, intervals, final))
        for role, row in stream.finals.items():
            if role != stream.role:
                flows.append(Flow(stream.id, stream.direction, role, None, None, (), row, peer_report=True))
    errors, warnings = classify([*left, *stderr.splitlines()])
    return Measurement(
        tool="iperf3",
        end=end,
        version=version,
        protocol=reader.protocol,
        flows=tuple(flows),
        sums=() if reader.both else tuple(reader.sums),
        connected=reader.connected,
        errors=tuple(errors),
        warnings=tuple(warnings),
    )
