# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads iperf3's JSON report, 3.1 to 3.19, of either end."""

from __future__ import annotations

import dataclasses
import json
import math
import re
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import ParseError
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.iperf_lines import classify
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.record import (
    CLIENT,
    FORWARD,
    RECEIVER,
    REVERSE,
    SENDER,
    SERVER,
    TOLERANCE,
    Flow,
    IncompleteError,
    Interval,
    Measurement,
    check_row,
    pick_final,
)

#: Printed where a ratio has no denominator; no JSON.
_NOT_A_NUMBER = re.compile(r"(?<=[:\[,])(\s*)-?(?:nan|inf(?:inity)?)(?=\s*[,}\]\n])", re.IGNORECASE)
_NOISE = re.compile(r"^(?:iperf3: )?(?:OUT OF ORDER|warning:|WARNING:).*$", re.MULTILINE)


def load(text: str) -> dict[str, t.Any]:
    """The JSON document of an output, whatever lines of text stand around it.

    A server prints one for each test and, when it is stopped, one more that holds an error only:
    the last one with intervals counts.
    """
    if not text.strip():
        raise IncompleteError(
            "iperf3 printed no report",
            remedy="With -s -J it prints nothing when a test fails before it starts: see the other end",
            code="no_report",
        )
    text = _NOT_A_NUMBER.sub(r"\1null", _NOISE.sub("", text))
    decoder = json.JSONDecoder()
    found: dict[str, t.Any] | None = None
    place = text.find("{")
    while place >= 0:
        try:
            value, place = decoder.raw_decode(text, place)
        except json.JSONDecodeError as error:
            raise ParseError(f"invalid JSON ({error.msg})", line=text[error.pos :][:120]) from None
        except RecursionError:
            raise ParseError("JSON nested too deep", line=text[:120]) from None
        if isinstance(value, dict) and (found is None or value.get("intervals") or not found.get("intervals")):
            found = value
        place = text.find("{", place)
    if found is None:
        raise ParseError("no JSON in the output of iperf3", line=text.strip()[:200])
    return found


def _number(record: t.Mapping[str, t.Any], name: str) -> float:
    value = record.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ParseError(f"{name} is missing or no number", line=json.dumps(record)[:200])
    return float(value)


def _maybe(record: t.Mapping[str, t.Any], name: str) -> int | None:
    value = record.get(name)
    if value is None or isinstance(value, bool) or not isinstance(value, (int, float)) or value < 0:
        return None
    return int(value)


def _list(record: t.Mapping[str, t.Any], name: str) -> list[dict[str, t.Any]]:
    value = record.get(name, [])
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise ParseError(f"{name} is no list of objects", line=json.dumps(value)[:200])
    return value


def _object(record: t.Mapping[str, t.Any], name: str) -> dict[str, t.Any]:
    value = record.get(name, {})
    if not isinstance(value, dict):
        raise ParseError(f"{name} is no object", line=json.dumps(value)[:200])
    return value


def _row(record: t.Mapping[str, t.Any], *, sends: bool, udp: bool) -> Interval:
    row = Interval(
        start_s=_number(record, "start"),
        end_s=_number(record, "end"),
        bytes=_number(record, "bytes"),
        rate_bps=_number(record, "bits_per_second"),
        omitted=record.get("omitted") is True,
    )
    check_row(row, json.dumps(record)[:200])
    if not udp:
        return dataclasses.replace(row, retransmits=_maybe(record, "retransmits") if sends else None)
    total, lost = _maybe(record, "packets"), _maybe(record, "lost_packets")
    if sends:
        return dataclasses.replace(row, packets=total)
    if total is None or lost is None or lost > total:
        return dataclasses.replace(row, packets=None, lost=None)
    if total == 0 and record.get("lost_percent") is None:
        lost = None  # nan: nothing arrived and nothing is known to be lost
    return dataclasses.replace(
        row,
        packets=total - (lost or 0),
        lost=lost,
        jitter_ms=_number(record, "jitter_ms") if record.get("jitter_ms") is not None else None,
        out_of_order=_maybe(record, "out_of_order"),
    )


def _udp_final(record: t.Mapping[str, t.Any], *, sends: bool, rows: t.Sequence[Interval]) -> Interval | None:
    """The final row of a UDP stream. Its bytes are the sender's: what arrived follows from the datagrams.

    A server that receives prints 0 bytes there; then its own intervals tell.
    """
    total, lost = _maybe(record, "packets"), _maybe(record, "lost_packets")
    start, end = _number(record, "start"), _number(record, "end")
    size = _number(record, "bytes")
    if sends or not total or lost is None or lost > total:
        if total and not size:
            return None
        return Interval(start, end, size, size * 8 / (end - start) if end > start else 0.0, packets=total)
    arrived = size * (total - lost) / total
    if not size and total > lost:
        if not rows:
            return None
        arrived = sum(row.bytes for row in rows)
        start, end = min(row.start_s for row in rows), max(row.end_s for row in rows)
    return Interval(
        start,
        end,
        arrived,
        arrived * 8 / (end - start) if end > start else 0.0,
        packets=total - lost,
        lost=lost,
        jitter_ms=_number(record, "jitter_ms") if record.get("jitter_ms") is not None else None,
        out_of_order=_maybe(record, "out_of_order"),
    )


@dataclasses.dataclass
class _Stream:
    sends: bool
    rows: list[Interval] = dataclasses.field(default_factory=list)


def parse_json(
    text: str,
    *,
    end: str = CLIENT,
    stderr: str = "",
    interval_s: float | None = None,
) -> Measurement:
    """Read a report. What the tool calls an error is in ``errors``; then there may be no figures."""
    return _measurement(load(text), end=end, stderr=stderr, interval_s=interval_s)


def server_output(text: str, *, interval_s: float | None = None) -> Measurement | None:
    """The server's own report inside a client's (--get-server-output), if it is there."""
    inner = load(text).get("server_output_json")
    if not isinstance(inner, dict):
        return None
    return _measurement(inner, end=SERVER, stderr="", interval_s=interval_s)


def _measurement(document: dict[str, t.Any], *, end: str, stderr: str, interval_s: float | None) -> Measurement:
    start = _object(document, "start")
    test = _object(start, "test_start")
    protocol = str(test.get("protocol", "")).lower() or None
    udp = protocol == "udp"
    errors, warnings = classify(stderr.splitlines())
    error = document.get("error")
    if error is not None and str(error) not in errors:
        errors.insert(0, str(error))
    connected = _list(start, "connected")
    asked = _maybe(test, "num_streams")
    streams: dict[int, _Stream] = {}
    for interval in _list(document, "intervals"):
        for record in _list(interval, "streams"):
            number = int(_number(record, "socket"))
            sends = record.get("sender")
            if not isinstance(sends, bool):
                sends = (end == CLIENT) != bool(test.get("reverse"))
            stream = streams.setdefault(number, _Stream(sends))
            if stream.sends != sends:
                raise ParseError("one stream both sends and receives", line=json.dumps(record)[:200])
            stream.rows.append(_row(record, sends=sends, udp=udp))
    finals = _object(document, "end")
    flows = _flows(finals, streams, end=end, test=test, interval_s=interval_s)
    if udp and flows and "sum_received" in finals and "sum_bidir_reverse" not in finals:
        _check_received(finals, flows)
    if asked is not None and connected and not test.get("bidirectional") and len(connected) not in (asked, 2 * asked):
        errors.append(f"{asked} streams were to connect and {len(connected)} did")
    stamp = start.get("timestamp")
    started = _maybe(stamp, "timesecs") if isinstance(stamp, dict) else None
    version = re.search(r"\d+\.\d+(?:\.\d+)?", str(start.get("version", "")))
    return Measurement(
        tool="iperf3",
        end=end,
        version=version[0] if version else None,
        protocol=protocol,
        flows=tuple(flows),
        connected=len(connected),
        started=float(started) if started is not None else None,
        errors=tuple(errors),
        warnings=tuple(warnings),
    )


def _flows(
    finals: dict[str, t.Any],
    streams: dict[int, _Stream],
    *,
    end: str,
    test: dict[str, t.Any],
    interval_s: float | None,
) -> list[Flow]:
    """One flow for each stream and end. What the other end counted comes as a peer's report."""
    own_final: dict[int, Interval] = {}
    flows: list[Flow] = []
    for record in _list(finals, "streams"):
        parts = {name: _object(record, name) for name in ("sender", "receiver", "udp") if name in record}
        number = int(_number(next(iter(parts.values()), {}), "socket"))
        if number not in streams:
            sent_here = (end == CLIENT) != bool(test.get("reverse"))
            streams[number] = _Stream(sent_here)
        sends = streams[number].sends
        direction = FORWARD if sends == (end == CLIENT) else REVERSE
        for role in (SENDER, RECEIVER):
            final: Interval | None
            if "udp" in parts:
                own = [row for row in streams[number].rows if not row.omitted]
                final = _udp_final(parts["udp"], sends=role == SENDER, rows=own if (role == SENDER) == sends else ())
            elif role in parts:
                final = _row(parts[role], sends=role == SENDER, udp=False)
            else:
                continue
            if final is None:
                continue
            if (role == SENDER) == sends:
                own_final[number] = final
            elif end == CLIENT and final.end_s > 0:
                flows.append(Flow(str(number), direction, role, None, None, (), final, peer_report=True))
    for number, stream in streams.items():
        direction = FORWARD if stream.sends == (end == CLIENT) else REVERSE
        rows = list(stream.rows)
        kept, final = pick_final(rows, interval_s) if number not in own_final else (None, own_final[number])
        intervals = tuple(row for row in rows if not row.omitted) if kept is None else kept
        role = SENDER if stream.sends else RECEIVER
        flows.append(Flow(str(number), direction, role, None, None, intervals, final))
    return flows


def _check_received(finals: dict[str, t.Any], flows: list[Flow]) -> None:
    told = _number(_object(finals, "sum_received"), "bytes")
    counted = sum(flow.final.bytes for flow in flows if flow.role == RECEIVER and flow.final is not None)
    if told and counted and abs(told - counted) > TOLERANCE * max(told, counted):
        raise ParseError(
            "the bytes that arrived and the datagrams that were lost disagree",
            line=f"sum_received {told:.0f} bytes, computed {counted:.0f} bytes",
            code="contradictory_output",
        )
