# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How iperf2 and iperf3 write numbers, units and failures: what their text reports share."""

from __future__ import annotations

import dataclasses
import math
import re

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import ParseError
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.record import Interval, check_row

#: Bytes count in powers of 1024, bits in powers of 1000; so do both tools.
BYTE_UNITS = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3, "T": 1024**4}
BIT_UNITS = {"": 1, "K": 1000, "M": 1000**2, "G": 1000**3, "T": 1000**4}

_NUMBER = r"\d+(?:\.\d+)?"
ROW = re.compile(
    rf"""^\[\s*(?P<star>\*)?(?P<id>SUM(?:-\d+)?|FD\d+|\d+)\]
    (?:\[(?P<tag>[TR]X-[CS])\])?\s*
    (?P<start>{_NUMBER})\s*-\s*(?P<end>{_NUMBER})\s+sec\s+
    (?P<bytes>{_NUMBER})\s?(?P<bytes_unit>[KMGT]?)Bytes\s+
    (?P<rate>{_NUMBER}|-?nan|inf)\s?(?P<rate_unit>[KMGT]?)(?P<rate_kind>bits|Bytes)/sec
    (?P<rest>.*)$""",
    re.VERBOSE,
)
OUT_OF_ORDER = re.compile(
    rf"^\[\s*(?P<star>\*)?(?P<id>SUM(?:-\d+)?|\d+)\]\s*(?P<start>{_NUMBER})\s*-\s*(?P<end>{_NUMBER})\s+sec\s+"
    r"(?P<count>\d+) datagrams\s+received out-of-order$"
)
#: A line that means to be a row: if it cannot be read, nothing is.
LOOKS_LIKE_ROW = re.compile(
    r"^\[[^\]]*\].*\d\s*-\s*\d.*(?:sec\b|ytes|its/)|^\[[^\]]*\].*its?/s"
    r"|\d\.\d+\s*-\s*\d+\.\d+\s+sec\s"
)
CONNECTED = re.compile(
    r"^\[\s*(?P<id>\d+)\]\s+local (?P<local>\S+?)(?:%\S+)? port (?P<local_port>\d+) connected (?:with|to) "
    r"(?P<remote>\S+?)(?:%\S+)? port (?P<remote_port>\d+)(?P<rest>.*)$"
)

_FAILURES = (
    ("connection_refused", re.compile(r"connection refused", re.I)),
    ("port_busy", re.compile(r"address already in use", re.I)),
    (
        "unreachable",
        re.compile(r"no route to host|network is unreachable|host name lookup failure|name or service not known", re.I),
    ),
    ("connection_timeout", re.compile(r"connection timed out|connect.* timed? ?out", re.I)),
    ("bad_option", re.compile(r"unrecogni[sz]ed option|invalid option|parameter error|IPG delay target|usage:", re.I)),
    ("server_busy", re.compile(r"server is busy|unable to receive parameters|unable to send parameters", re.I)),
    (
        "connection_lost",
        re.compile(
            r"reset by peer|broken pipe|control socket has closed|unable to (?:write|read)|server has terminated"
            r"|interrupt - the",
            re.I,
        ),
    ),
    ("no_address", re.compile(r"cannot assign requested address", re.I)),
    (
        "tool_error",
        re.compile(
            r"^(?:iperf3: )?error\b|\bfailed\b|unable to |no such file|permission denied|operation not permitted", re.I
        ),
    ),
)
_WARNING = re.compile(r"\bWARNING\b|^warning:", re.I)
#: Says no more than that the connection above is gone.
_ECHO = re.compile(r"^shutdown failed", re.I)

REMEDIES = {
    "connection_refused": "See that the server runs, listens on this port and address, and that no firewall rejects it",
    "port_busy": "A server is already there, maybe an old one with other options: stop it, or choose another port",
    "unreachable": "Check the address, the routes and the links between client and server",
    "connection_timeout": "Packets are dropped on the way: check forwarding, firewall and return route",
    "bad_option": "The installed tool does not take an option that was asked for",
    "server_busy": "Another test runs against this server: give each trial an instance of its own",
    "connection_lost": "The other end died or the path broke while traffic ran",
    "no_address": "The bind address is not on this host",
}


@dataclasses.dataclass(frozen=True)
class TextRow:
    """A row as matched, its numbers converted and cross-checked."""

    id: str
    star: bool
    tag: str | None
    interval: Interval
    rest: str


def _step(number: str, unit: float) -> float:
    decimals = len(number.partition(".")[2])
    return unit / float(10**decimals)


def read_row(line: str) -> TextRow | None:
    """Read a row; None if the line is none; ParseError if it should be one but cannot be read."""
    match = ROW.match(line)
    if match is None:
        if LOOKS_LIKE_ROW.search(line) and not OUT_OF_ORDER.match(line):
            raise ParseError("a report row that cannot be read", line=line)
        return None
    bytes_unit = BYTE_UNITS[match["bytes_unit"]]
    rate_unit: float = BIT_UNITS[match["rate_unit"]]
    if match["rate_kind"] == "Bytes":
        rate_unit = 8 * BYTE_UNITS[match["rate_unit"]]
    rate = float(match["rate"])
    if not math.isfinite(rate):
        # what 2.1.8 makes of bytes over no time; over any time it is no figure
        if float(match["start"]) != float(match["end"]):
            raise ParseError("a report row that cannot be read", line=line)
        rate = 0.0
    rest = match["rest"].rstrip()
    omitted = rest.endswith("(omitted)")
    if omitted:
        rest = rest[: -len("(omitted)")].rstrip()
    row = Interval(
        start_s=float(match["start"]),
        end_s=float(match["end"]),
        bytes=float(match["bytes"]) * bytes_unit,
        rate_bps=rate * rate_unit,
        omitted=omitted,
    )
    if not match["id"].startswith("FD"):
        check_row(
            row,
            line,
            bytes_step=_step(match["bytes"], bytes_unit),
            rate_step=_step(match["rate"], rate_unit),
            time_step=_step(match["end"], 1),
        )
    return TextRow(match["id"], bool(match["star"]), match["tag"], row, rest)


def checked_loss(line: str, lost: str, total: str, percent: str) -> tuple[int | None, int | None]:
    """Datagrams that arrived, and that were lost. The printed percentage must agree with the counts.

    The percentage itself is never used: it has two digits, and comes as 1e+02 or nan.
    """
    try:
        lost_count, total_count = int(lost), int(total)
    except ValueError:
        raise ParseError("a count of datagrams that is no whole number", line=line) from None
    if lost_count < 0 or total_count < 0 or lost_count > total_count:
        return None, None  # duplicates or a lost count that wrapped: known to be unknown
    try:
        printed = float(percent)
    except ValueError:
        raise ParseError("a loss percentage that is no number", line=line) from None
    if total_count and not math.isnan(printed):
        computed = 100.0 * lost_count / total_count
        if abs(printed - computed) > max(0.06 * computed, 0.001):
            raise ParseError("the lost datagrams and their percentage disagree", line=line, code="contradictory_output")
    return total_count - lost_count, lost_count


def lines_of(text: str, *, cut_is_error: bool = True) -> list[str]:
    """The lines of a report. A last line without its line feed was cut off: its numbers cannot be trusted."""
    if text and not text.endswith("\n") and cut_is_error:
        raise ParseError("the output is cut off in the middle of a line", line=text.rsplit("\n", 1)[-1])
    return text.replace("\r\n", "\n").splitlines()


def classify(lines: list[str]) -> tuple[list[str], list[str]]:
    """The errors and the warnings among lines of stdout or stderr."""
    errors: list[str] = []
    warnings: list[str] = []
    for line in (line.strip() for line in lines):
        if not line or _ECHO.match(line):
            continue
        if _WARNING.search(line):
            warnings.append(line)
        elif any(pattern.search(line) for _code, pattern in _FAILURES) and line not in errors:
            errors.append(line)
    return errors, warnings


def failure_code(message: str) -> str:
    for code, pattern in _FAILURES:
        if pattern.search(message):
            return code
    return "tool_error"
