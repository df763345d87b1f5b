# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads iperf2's comma separated report (-y C).

Its columns changed with the releases: 9 (TCP) or 14 (UDP) up to 2.1.x; 15 with
-e in 2.1.9, the interval still in one column; from 2.2 a header, the interval in
two columns, and 17 to 25 columns by the kind of row. With a header the names
count, without one only a known number of columns is read.
"""

from __future__ import annotations

import dataclasses
import re
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import ParseError
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.iperf_lines import (
    checked_loss,
    classify,
    lines_of,
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
    check_row,
    pick_final,
)

_PEERS = ("time", "srcaddress", "srcport", "dstaddr", "dstport", "transferid")
_LOSS = ("jitter", "errors", "datagrams", "errpercent", "outoforder")
_WRITE = ("writecnt", "writeerr", "tcpretry", "tcpcwnd", "tcprtt", "tcprttvar")
#: Number of columns -> their names, for reports without a header.
LAYOUTS: dict[int, tuple[str, ...]] = {
    9: (*_PEERS, "interval", "bytes", "speed"),
    14: (*_PEERS, "interval", "bytes", "speed", *_LOSS),
    15: (*_PEERS, "interval", "bytes", "speed", *_WRITE),
    17: (*_PEERS, "istart", "iend", "bytes", "speed", *_WRITE[:4], "tcppcwnd", *_WRITE[4:]),
    18: (*_PEERS, "istart", "iend", "bytes", "speed", *_LOSS, "writecnt", "writeerr", "pps"),
}
_TIME = re.compile(r"^(?:[-+]\d{4}:)?\d{14}(?:\.\d+)?$")
_NO_COUNT = 4294967295


def parse_csv(
    text: str,
    *,
    end: str,
    port: int | None = None,
    interval_s: float | None = None,
    stderr: str = "",
    version: str | None = None,
) -> Measurement:
    """Read a comma separated report. See iperf2_text.parse_text for the parameters."""
    names: tuple[str, ...] | None = None
    rows: dict[tuple[str, ...], list[Interval]] = {}
    roles: dict[tuple[str, ...], str | None] = {}
    left: list[str] = []
    for line in lines_of(text):
        fields = [field.strip() for field in line.split(",")]
        if fields[:2] == ["time", "srcaddress"]:
            names = tuple(fields)
            continue
        if len(fields) < 7 or not (fields[0][:1].isdigit() or fields[0][:1] in "+-"):
            left.append(line)
            continue
        record = _by_name(fields, names, line)
        key = tuple(record[name] for name in _PEERS[1:])
        row, role = _row(record, line)
        rows.setdefault(key, []).append(row)
        if roles.setdefault(key, role) != role:
            raise ParseError("one stream with two kinds of rows", line=line)
    flows: list[Flow] = []
    sums: list[Interval] = []
    for key, found in rows.items():
        if key[-1] == "-1" or key[1] == "0":
            sums.extend(found)
            continue
        flows.append(_flow(key, found, roles[key], keys=rows.keys(), end=end, port=port, interval_s=interval_s))
    directions = {flow.direction for flow in flows if not flow.peer_report}
    both = len(directions) > 1
    errors, warnings = classify([*left, *stderr.splitlines()])
    return Measurement(
        tool="iperf2",
        end=end,
        version=version,
        protocol="udp" if any(row.jitter_ms is not None for found in rows.values() for row in found) else None,
        flows=tuple(flows),
        sums=() if both else tuple(sums),
        sums_both=tuple(sums) if both else (),
        connected=len({flow.local for flow in flows if not flow.peer_report}),
        errors=tuple(errors),
        warnings=tuple(warnings),
    )


def _by_name(fields: list[str], names: tuple[str, ...] | None, line: str) -> dict[str, str]:
    names = names or LAYOUTS.get(len(fields))
    if names is None or len(names) != len(fields):
        expected = f"{len(names)}" if names else ", ".join(str(count) for count in LAYOUTS)
        raise ParseError(
            f"a row of {len(fields)} columns where {expected} are known", line=line, code="unknown_columns"
        )
    record = dict(zip(names, fields))
    if not _TIME.match(record["time"]):
        raise ParseError("a row without a time stamp", line=line)
    for name in ("srcport", "dstport"):
        if not record[name].isascii() or not record[name].isdigit():
            raise ParseError(f"{name} is no port", line=line)
    if "interval" in record:
        record["istart"], _dash, record["iend"] = record["interval"].partition("-")
    missing = [name for name in (*_PEERS, "istart", "iend", "bytes", "speed") if name not in record]
    if missing:
        raise ParseError(f"a header without {', '.join(missing)}", line=line, code="unknown_columns")
    return record


def _number(record: dict[str, str], name: str, line: str) -> float:
    if not re.match(r"^-?\d+(?:\.\d+)?$", record[name]):
        raise ParseError(f"{name} is no number", line=line)
    return float(record[name])


def _row(record: dict[str, str], line: str) -> tuple[Interval, str | None]:
    start, stop = _number(record, "istart", line), _number(record, "iend", line)
    row = Interval(start, stop, _number(record, "bytes", line), _number(record, "speed", line))
    decimals = len(record["iend"].partition(".")[2])
    check_row(row, line, time_step=10.0**-decimals)
    if "jitter" in record:
        sends = "writecnt" in record
        for name in ("errors", "datagrams"):
            _number(record, name, line)
        arrived, lost = checked_loss(line, record["errors"], record["datagrams"], record["errpercent"])
        if sends:
            return (
                Interval(
                    row.start_s, row.end_s, row.bytes, row.rate_bps, packets=int(_number(record, "writecnt", line))
                ),
                SENDER,
            )
        return (
            Interval(
                row.start_s,
                row.end_s,
                row.bytes,
                row.rate_bps,
                packets=arrived,
                lost=lost,
                jitter_ms=_number(record, "jitter", line),
                out_of_order=int(_number(record, "outoforder", line)),
            ),
            RECEIVER,
        )
    if "writecnt" in record:
        retries = int(_number(record, "tcpretry", line)) if "tcpretry" in record else -1
        known = None if retries < 0 or retries == _NO_COUNT else retries
        return Interval(row.start_s, row.end_s, row.bytes, row.rate_bps, retransmits=known), SENDER
    return row, RECEIVER if "readcnt" in record else None


def _flow(
    key: tuple[str, ...],
    found: list[Interval],
    role: str | None,
    *,
    keys: t.Collection[tuple[str, ...]],
    end: str,
    port: int | None,
    interval_s: float | None,
) -> Flow:
    source, source_port, target, target_port, stream = key
    local, remote = (source, int(source_port)), (target, int(target_port))
    if end == CLIENT:
        # Rows name the sending end first. What starts at the server's port is the other direction, or,
        # if the same stream also has rows of its own, what the server reported at the end.
        mirrored = (
            len(found) == 1
            and found[0].jitter_ms is not None
            and any(other[:4] == (target, target_port, source, source_port) for other in keys)
        )
        if port is not None and local[1] == port and remote[1] != port:
            intervals, final = pick_final(found, None if mirrored else interval_s)
            if mirrored:
                return Flow(stream, FORWARD, RECEIVER, local, remote, (), final, peer_report=True)
            return Flow(stream, REVERSE, role or RECEIVER, local, remote, intervals, final)
        direction = FORWARD
    else:
        direction = REVERSE if role == SENDER else FORWARD
    sends = (direction == FORWARD) == (end == CLIENT)
    if sends and role == RECEIVER:
        # the basic form prints the loss columns for a sender too, with nothing in them
        role = SENDER
        found = [
            dataclasses.replace(
                row,
                packets=row.packets + row.lost if row.packets is not None and row.lost is not None else None,
                lost=None,
                jitter_ms=None,
                out_of_order=None,
            )
            for row in found
        ]
    intervals, final = pick_final(found, interval_s)
    return Flow(stream, direction, role or (SENDER if sends else RECEIVER), local, remote, intervals, final)
