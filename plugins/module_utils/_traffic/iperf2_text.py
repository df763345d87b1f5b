# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads iperf2's text report, 2.0.5 to 2.2.x, enhanced (-e) or not, of either end.

The columns tell what a stream did: Write/Err is a sender's row, Reads=Dist or
jitter a receiver's. Stream numbers are no key: they come again, and both
directions of a test carry the same one.
"""

from __future__ import annotations

import dataclasses
import datetime
import re

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import ParseError
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.iperf_lines import (
    CONNECTED,
    OUT_OF_ORDER,
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

_UDP_SENT = re.compile(r"^\s+(?P<writes>\d+)/(?P<errors>\d+)(?:/\d+)?\s+\d+ pps$")
_UDP_RECEIVED = re.compile(
    r"^\s+(?P<jitter>\d+(?:\.\d+)?) ms\s+(?P<lost>-?\d+)/\s*(?P<total>-?\d+) \((?P<percent>[^)]*)%\)"
    r"(?P<more>[-\w./()=: ]*)$"
)
_TCP_SENT = re.compile(r"^\s+-?\d+/-?\d+(?:\s+(?P<retries>\d+))?(?:\s+(?:[-\dKNA()/.]+).*)?$")
_TCP_RECEIVED = re.compile(r"^\s.*\b\d+=\d+(?::\d+){7}$|^\s+\d+=\d+(?::\d+){7}$")
_SUM_REST = re.compile(r"^[-\w./()=:% +]*$")
_REPORT = re.compile(r"^\[\s*(?P<id>\d+)\] Server Report:$")
_SENT = re.compile(r"^\[\s*(?P<id>SUM(?:-\d+)?|\d+)\] Sent (?P<count>\d+) datagrams$")
_BANNER = re.compile(r"(?:Client connecting to \S+,|Server listening on) (?P<protocol>TCP|UDP) port (?P<port>\d+)")
_STARTED = re.compile(r" on (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(?:\.(\d+))? \(UTC\)")
#: iperf prints the unsigned form of -1 where the kernel gave no count.
_NO_COUNT = 4294967295


@dataclasses.dataclass
class _Stream:
    """One stream while its rows are read."""

    id: str
    star: bool
    peer_report: bool = False
    role: str | None = None
    local: tuple[str, int] | None = None
    remote: tuple[str, int] | None = None
    tag: str = ""
    rows: list[Interval] = dataclasses.field(default_factory=list)


class _Reader:
    def __init__(self, end: str, port: int | None, interval_s: float | None) -> None:
        self.end = end
        self.port = port
        self.interval_s = interval_s
        self.protocol: str | None = None
        self.started: float | None = None
        self.streams: list[_Stream] = []
        self.current: dict[tuple[str, bool], _Stream] = {}
        self.peers: dict[str, _Stream] = {}
        #: stream number -> its first row, while its connection is still to be printed
        self.early: dict[str, str] = {}
        self.reports: set[str] = set()
        self.sums: list[Interval] = []
        self.connected = 0
        self.duplex = False

    def line(self, line: str) -> bool:
        """Take a line in; False if it is not part of the report."""
        banner = _BANNER.search(line)
        if banner:
            self.protocol = banner["protocol"].lower()
            self.port = self.port or int(banner["port"])
            return True
        report = _REPORT.match(line)
        if report:
            self.reports.add(report["id"])
            return True
        if line.startswith(("[ ID]", "[SUM-cnt]")) or _SENT.match(line):
            return True
        if self._connection(line) or self._out_of_order(line):
            return True
        row = read_row(line)
        if row is not None:
            self._row(row, line)
        return row is not None

    def _connection(self, line: str) -> bool:
        match = CONNECTED.match(line)
        if match is None:
            return False
        if match["local_port"] == "0":
            return True  # printed by 2.1.x also when the connection failed
        self.connected += 1
        self.duplex = self.duplex or "(full-duplex)" in match["rest"]
        self.started = self.started or _moment(match["rest"])
        peer = _Stream(
            match["id"],
            False,
            local=(match["local"], int(match["local_port"])),
            remote=(match["remote"], int(match["remote_port"])),
            tag=match["rest"],
        )
        self.peers[match["id"]] = peer
        # On a busy machine a stream's thread prints its connection after the reporter printed the stream's first rows.
        early = self.early.pop(match["id"], None) is not None
        for star in (False, True):
            stream = self.current.get((match["id"], star)) if early else None
            if stream is not None:
                stream.local, stream.remote, stream.tag = peer.local, peer.remote, peer.tag
            else:
                self.current.pop((match["id"], star), None)
        return True

    def _out_of_order(self, line: str) -> bool:
        match = OUT_OF_ORDER.match(line)
        if match is None:
            return False
        if match["id"].startswith("SUM"):
            if self.sums and (self.sums[-1].start_s, self.sums[-1].end_s) == (
                float(match["start"]),
                float(match["end"]),
            ):
                self.sums[-1] = dataclasses.replace(self.sums[-1], out_of_order=int(match["count"]))
            return True
        stream = self.current.get((match["id"], bool(match["star"])))
        span = (float(match["start"]), float(match["end"]))
        if stream is None or not stream.rows or (stream.rows[-1].start_s, stream.rows[-1].end_s) != span:
            raise ParseError("an out-of-order count that belongs to no row", line=line)
        stream.rows[-1] = dataclasses.replace(stream.rows[-1], out_of_order=int(match["count"]))
        return True

    def _row(self, row: TextRow, line: str) -> None:
        if row.id.startswith("FD"):
            return  # both directions of one stream added up: its parts are rows of their own
        if row.id.startswith("SUM"):
            if not _SUM_REST.match(row.rest):
                raise ParseError("a sum row with columns that are not known", line=line)
            if row.interval.length_s > 0:  # 2.1.8 prints sums over no time when streams begin one after the other
                self.sums.append(row.interval)
            return
        role, interval = self._columns(row, line)
        stream = self._stream(row, line)
        if role is not None:
            if stream.role not in (None, role):
                raise ParseError("one stream both sends and receives", line=line)
            stream.role = role
        stream.rows.append(interval)

    def _stream(self, row: TextRow, line: str) -> _Stream:
        if row.id in self.reports:
            self.reports.discard(row.id)
            stream = _Stream(row.id, row.star, peer_report=True)
            self.streams.append(stream)
            self.current[(row.id, row.star)] = stream
            return stream
        stream_or_none = self.current.get((row.id, row.star))
        if stream_or_none is not None:
            return stream_or_none
        peer = self.peers.get(row.id)
        if peer is None:
            self.early.setdefault(row.id, line)
        stream = dataclasses.replace(peer, star=row.star, rows=[]) if peer else _Stream(row.id, row.star)
        self.streams.append(stream)
        self.current[(row.id, row.star)] = stream
        return stream

    def _columns(self, row: TextRow, line: str) -> tuple[str | None, Interval]:
        """What the columns after the rate say: the role, and the row completed."""
        rest, interval = row.rest, row.interval
        if not rest:
            return None, interval
        sent = _UDP_SENT.match(rest)
        if sent:
            return SENDER, dataclasses.replace(interval, packets=int(sent["writes"]))
        received = _UDP_RECEIVED.match(rest)
        if received:
            arrived, lost = checked_loss(line, received["lost"], received["total"], received["percent"])
            return RECEIVER, dataclasses.replace(
                interval, jitter_ms=float(received["jitter"]), packets=arrived, lost=lost
            )
        if _TCP_RECEIVED.match(rest):
            return RECEIVER, interval
        written = _TCP_SENT.match(rest)
        if written:
            retries = int(written["retries"]) if written["retries"] else None
            return SENDER, dataclasses.replace(interval, retransmits=None if retries == _NO_COUNT else retries)
        raise ParseError("a row with columns that are not known", line=line)

    def close(self) -> None:
        """All lines were read: what is still missing will not come."""
        # a part of a report may hold no connection at all
        if self.peers and self.early:
            raise ParseError("a row of a stream that never connected", line=next(iter(self.early.values())))

    def direction(self, stream: _Stream) -> str:
        if stream.peer_report:
            return FORWARD
        if stream.role is not None:
            sends = stream.role == SENDER
            direction = FORWARD if sends == (self.end == CLIENT) else REVERSE
            if stream.star and direction == FORWARD:
                raise ParseError(
                    "a row of the reverse direction with the columns of the forward one", line=f"[ *{stream.id}]"
                )
            return direction
        if stream.star or ("(reverse)" in stream.tag):
            return REVERSE
        if stream.local and stream.remote and self.port:
            # dual tests of old: the server opens a second connection, to the client's listening port
            here, there = stream.local[1] == self.port, stream.remote[1] == self.port
            if here != there and here == (self.end == CLIENT):
                return REVERSE
        return FORWARD

    def flow(self, stream: _Stream, ended: bool) -> Flow:
        direction = self.direction(stream)
        sends = (direction == FORWARD) == (self.end == CLIENT)
        role = RECEIVER if stream.peer_report else stream.role or (SENDER if sends else RECEIVER)
        rows = stream.rows
        if role == RECEIVER and self.protocol == "udp":
            rows = [
                dataclasses.replace(row, out_of_order=0)
                # a row that may be the last one may still have had its line to come
                if row.out_of_order is None and (ended or (row.start_s > 0 and row is not rows[-1]))
                else row
                for row in rows
            ]
        intervals, final = pick_final(rows, None if stream.peer_report else self.interval_s)
        return Flow(stream.id, direction, role, stream.local, stream.remote, intervals, final, stream.peer_report)


def _moment(text: str) -> float | None:
    """The time stamp of a connection. 2.1.8 prints 1970 for some."""
    match = _STARTED.search(text)
    if match is None or match[1].startswith("1970"):
        return None
    try:
        moment = datetime.datetime.strptime(match[1], "%Y-%m-%d %H:%M:%S").replace(tzinfo=datetime.timezone.utc)
    except ValueError:
        raise ParseError("a time stamp that is none", line=text) from None
    return moment.timestamp() + float("0." + (match[2] or "0"))


def parse_text(
    text: str,
    *,
    end: str,
    port: int | None = None,
    interval_s: float | None = None,
    stderr: str = "",
    ended: bool = True,
    version: str | None = None,
) -> Measurement:
    """Read a report.

    :param end: the end that printed it, ``client`` or ``server``.
    :param port: the server's port, if no banner in the text tells it.
    :param interval_s: what was asked for with -i; None without it.
    :param ended: the tool ended by itself or was stopped when it was idle, so no line is missing at the end.
    """
    reader = _Reader(end, port, interval_s)
    left: list[str] = []
    for line in lines_of(text):
        if not reader.line(line):
            left.append(line)
    reader.close()
    if reader.protocol is None and any(row.jitter_ms is not None for s in reader.streams for row in s.rows):
        reader.protocol = "udp"
    flows = tuple(reader.flow(stream, ended) for stream in reader.streams if stream.rows)
    directions = {flow.direction for flow in flows if not flow.peer_report}
    both = reader.duplex or len(directions) > 1
    errors, warnings = classify([*left, *stderr.splitlines()])
    return Measurement(
        tool="iperf2",
        end=end,
        version=version,
        protocol=reader.protocol,
        flows=flows,
        sums=() if both else tuple(reader.sums),
        sums_both=tuple(reader.sums) if both else (),
        connected=reader.connected,
        started=reader.started,
        errors=tuple(errors),
        warnings=tuple(warnings),
    )
