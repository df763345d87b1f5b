# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""VPP's ``show`` texts as typed records.

VPP prints fixed columns and cuts what is too long for its column, so that a
long name touches the next column: the texts are cut at columns, never at
blanks. A number that fills its column may have been cut and is not taken.
"""

from __future__ import annotations

import dataclasses
import re
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import ParseError

_NUMBER = r"(?:\d+\.\d*|\.\d+|\d+)"
_EXPONENT = r"(?:\d*\.?\d+(?:e[-+]?\d+)?|-?inf|-?nan)"
_THREAD = re.compile(r"Thread (\d+) ([^\s()]+)(?: \(lcore (\d+)\))?\s*")
_TIME = re.compile(
    rf"Time ({_NUMBER}), (?:average vectors/node ({_NUMBER}), last \d+ main loops {_NUMBER} per node {_NUMBER}"
    rf"|{_NUMBER} sec internal node vector rate ({_NUMBER})(?: loops/sec ({_NUMBER}))?)\s*"
)
_RATES = re.compile(rf"\s*vector rates in ({_EXPONENT}), out ({_EXPONENT}), drop ({_EXPONENT}), punt ({_EXPONENT})\s*")
_COLUMNS = ("Name", "State", "Calls", "Vectors", "Suspends")
#: One row behind its name and state. The ratio always has two decimals, so a row that was cut short is noticed.
#: VPP 19.x has a column of performance counters behind it.
_ROW = re.compile(r"\s*(\d+)\s+(\d+)\s+(\d+)\s+(\d*\.\d+e[-+]?\d+)\s+(\d*\.\d\d)(?:\s+\d*\.\d+(?:e[-+]?\d+)?)?\s*")
_NAME_WIDTH, _STATE_WIDTH = 30, 12
#: A row whose columns were lost on the way, as in a text that had its blanks squeezed. Only states that VPP has.
_SQUEEZED = re.compile(
    r"\s*(\S{1,29}) \s*(\"?(?:active|polling|disabled|interrupt wa(?:it)?|(?:any|event|clock|time or event|time) wait"
    r"|suspended|running|done|unknown|not started?)\"?)(\s.*)"
)
_EVENTS_PENDING = re.compile(r"\s+events pending,?\s*")


@dataclasses.dataclass(frozen=True)
class NodeRow:
    """A node's counters on one thread. Clocks are per packet, or per call or suspend when there were no packets."""

    name: str
    state: str
    calls: int
    vectors: int
    suspends: int
    clocks: float
    vectors_per_call: float

    @property
    def name_cut(self) -> bool:
        """VPP cuts names at 30 characters, so this one may be longer."""
        return len(self.name) >= _NAME_WIDTH


@dataclasses.dataclass(frozen=True)
class ThreadRuntime:
    """One thread's part of ``show runtime``."""

    thread: int
    name: str
    lcore: int | None
    duration_s: float
    vectors_per_node: float | None
    loops_per_s: float | None
    rate_in: float | None
    rate_out: float | None
    rate_drop: float | None
    rate_punt: float | None
    nodes: tuple[NodeRow, ...]


def _rate(text: str) -> float | None:
    """VPP divides by the time since the last clear, which may be 0."""
    return None if "inf" in text or "nan" in text else float(text)


class _RuntimeReader:
    """Reads the lines in their order: a thread (only with workers), its times, its rates, a header, its rows."""

    def __init__(self) -> None:
        self.threads: list[ThreadRuntime] = []
        self._thread: tuple[int, str, int | None] | None = None
        self._time: tuple[float, float | None, float | None] | None = None
        self._rates: tuple[float | None, float | None, float | None, float | None] | None = None
        self._header = False
        self._nodes: list[NodeRow] = []

    def line(self, line: str) -> None:
        if not line.strip() or set(line.strip()) == {"-"}:
            return
        found = _THREAD.fullmatch(line)
        if found:
            self._close(line)
            self._thread = (int(found[1]), found[2], int(found[3]) if found[3] else None)
            return
        found = _TIME.fullmatch(line)
        if found:
            if self._time is not None:
                self._close(line)
            per_node = found[2] if found[2] is not None else found[3]
            self._time = (float(found[1]), float(per_node), float(found[4]) if found[4] else None)
            return
        found = _RATES.fullmatch(line)
        if found and self._time is not None and self._rates is None:
            self._rates = (_rate(found[1]), _rate(found[2]), _rate(found[3]), _rate(found[4]))
            return
        words = line.split()
        if words[:1] == ["Name"] and "Max" in words:
            raise ParseError("this is not the plain form of 'show runtime'", line=line, remedy="Ask without options")
        if tuple(words[:5]) == _COLUMNS and words[6:7] == ["Vectors/Call"] and words[7:] in ([], ["Perf", "Ticks"]):
            if words[5] not in ("Clocks", "Packet-Clocks"):
                raise ParseError(
                    "this is not the plain form of 'show runtime'", line=line, remedy="Ask without options"
                )
            self._header = True
            return
        if _EVENTS_PENDING.fullmatch(line) and self._nodes:
            return
        self._row(line)

    def _row(self, line: str) -> None:
        if not self._header or self._rates is None:
            raise ParseError("unexpected line in 'show runtime'", line=line)
        name = line[:_NAME_WIDTH].strip()
        state = line[_NAME_WIDTH : _NAME_WIDTH + _STATE_WIDTH].strip()
        found = _ROW.fullmatch(line[_NAME_WIDTH + _STATE_WIDTH :])
        if found is None or not name or not state or " " in name or state[0].isdigit():
            squeezed = _SQUEEZED.fullmatch(line)
            if squeezed is not None:
                name, state = squeezed[1], squeezed[2]
                found = _ROW.fullmatch(squeezed[3])
        if found is None or not name or not state or " " in name or state[0].isdigit():
            raise ParseError("unreadable row in 'show runtime'", line=line)
        state = state.strip('"')
        calls, vectors, ratio = int(found[1]), int(found[2]), float(found[5])
        expected = vectors / calls if calls else 0.0
        if abs(expected - ratio) > 0.0051 + 1e-9 * expected:
            raise ParseError(f"{vectors} vectors in {calls} calls are not {ratio} a call in 'show runtime'", line=line)
        self._nodes.append(NodeRow(name, state, calls, vectors, int(found[3]), float(found[4]), ratio))

    def _close(self, line: str) -> None:
        """A thread is complete, and ``line`` is the first behind it."""
        if self._time is None:
            if self._thread is not None:
                raise ParseError(f"thread {self._thread[0]} has no times in 'show runtime'", line=line)
            return
        if self._rates is None:
            raise ParseError("vector rates are missing in 'show runtime'", line=line)
        thread, name, lcore = self._thread or (0, "vpp_main", None)
        if any(known.thread == thread for known in self.threads):
            raise ParseError(f"thread {thread} is there twice in 'show runtime'", line=line)
        self.threads.append(ThreadRuntime(thread, name, lcore, *self._time, *self._rates, tuple(self._nodes)))
        self._thread = self._time = self._rates = None
        self._header = False
        self._nodes = []

    def end(self, last: str) -> list[ThreadRuntime]:
        self._close(last)
        if not self.threads:
            raise ParseError("there is no thread in 'show runtime'", line=last)
        return self.threads


def parse_runtime(text: str) -> list[ThreadRuntime]:
    """``show runtime``, of all its generations, with or without ``verbose`` or ``summary``."""
    reader = _RuntimeReader()
    last = ""
    for line in text.splitlines():
        reader.line(line)
        last = line if line.strip() else last
    return reader.end(last)


@dataclasses.dataclass(frozen=True)
class ErrorCount:
    """How often a node counted a reason, added up over the threads. ``count`` is None when VPP cut its digits."""

    node: str
    reason: str
    count: int | None
    severity: str | None


@dataclasses.dataclass(frozen=True)
class _ErrorColumns:
    count: int
    node: int
    reason: int | None  # None: to the end of the line

    @property
    def reason_at(self) -> int:
        return self.count + self.node


#: Where the word "Node" begins in the header tells the generation, as it stands centred over its column:
#: 16+40 (2015), 10+40 (2019), 10+30 (2020.10), 10+35 (since 2020.11).
_ERROR_LAYOUTS = {
    34: _ErrorColumns(16, 40, None),
    28: _ErrorColumns(10, 40, None),
    23: _ErrorColumns(10, 30, 20),
    26: _ErrorColumns(10, 35, 35),
}
_SQUEEZED_ERRORS = _ErrorColumns(0, 0, None)  # a text that had its blanks squeezed
_INDEX = r"\s+\d+"
_SEVERITIES = ("error", "warn", "info", "unknown")


def parse_errors(text: str) -> list[ErrorCount]:
    """``show errors``, of all its generations, plain or ``verbose``. Rows of one node and reason are added up."""
    layout: _ErrorColumns | None = None
    has_severity = has_index = False
    totals: dict[tuple[str, str], ErrorCount] = {}
    for line in text.splitlines():
        if not line.strip() or re.fullmatch(r"Thread \d+ \(\S*\):\s*", line):
            continue
        if re.fullmatch(r"Total:\s*", line):
            break  # the same counts once more
        words = line.split()
        if words[:3] == ["Count", "Node", "Reason"]:
            layout = _ERROR_LAYOUTS.get(line.index("Node"), _SQUEEZED_ERRORS)
            has_severity, has_index = "Severity" in words, words[-1] == "Index"
            continue
        if layout is None:
            raise ParseError("'show errors' has no header", line=line)
        row = _error_row(line, layout, has_severity, has_index)
        known = totals.get((row.node, row.reason))
        if known is not None:
            count = None if known.count is None or row.count is None else known.count + row.count
            row = dataclasses.replace(row, count=count)
        totals[row.node, row.reason] = row
    if layout is None:
        raise ParseError("'show errors' has no header", line="")
    return list(totals.values())


def _error_row(line: str, layout: _ErrorColumns, has_severity: bool, has_index: bool) -> ErrorCount:
    if layout.count:
        digits, node, rest = (
            line[: layout.count],
            line[layout.count : layout.reason_at].strip(),
            line[layout.reason_at :],
        )
    else:
        found = re.fullmatch(r"\s*(\d+)\s+(\S{1,29})\s+(.*)", line)
        digits, node, rest = found.groups() if found else ("", "", "")
    width = layout.reason
    severity = None
    reason: str | None = rest
    if has_severity:
        # Without its own column the reason ends where the last words begin.
        pattern = rf"(.{{{width}}})\s*" if width else r"(.*?)\s+"
        found = re.fullmatch(pattern + rf"({'|'.join(_SEVERITIES)}){_INDEX if has_index else ''}\s*", rest)
        reason, severity = (found[1], found[2]) if found else (None, None)
    elif has_index:
        found = re.fullmatch(rf"(.*?){_INDEX}\s*", rest)
        reason = found[1] if found else None
    if not re.fullmatch(r"\s*\d+", digits) or len(node.split()) != 1 or not (reason and reason.strip()):
        raise ParseError("unreadable row in 'show errors'", line=line)
    # VPP cuts a number that is too long for its column, at its end.
    count = int(digits) if not layout.count or len(digits.strip()) < layout.count else None
    return ErrorCount(node, reason.strip(), count, severity)


@dataclasses.dataclass(frozen=True)
class RxQueue:
    """A receive queue and the thread that serves it."""

    interface: str
    queue: int
    thread: int
    thread_name: str
    node: str
    mode: str | None


def parse_rx_placement(text: str) -> list[RxQueue]:
    """``show interface rx-placement``, of all its generations.

    Since 21.01 VPP prints the node only where it differs from the one before,
    also over the border of a thread, so a thread can have none of its own.
    """
    queues: list[RxQueue] = []
    thread: tuple[int, str] | None = None
    node: str | None = None
    for whole in text.splitlines(keepends=True):
        line = whole.rstrip("\r\n")
        if not line.strip():
            continue
        found = re.fullmatch(r"Thread (\d+) \((\S+)\):\s*", line)
        if found:
            thread = (int(found[1]), found[2])
            continue
        found = re.fullmatch(r"\s+node (\S+):\s*", line)
        if found and thread is not None:
            node = found[1]
            continue
        found = re.fullmatch(r"\s+(\S+) queue (\d+)(?: \(([^()]+(?:\([^()]*\))?|\(unknown\))\))?\s*", line)
        # Old versions print no mode; then only the line's end tells that nothing of it is missing.
        if not found or thread is None or node is None or (found[3] is None and line == whole):
            raise ParseError("unreadable line in 'show interface rx-placement'", line=line)
        queues.append(RxQueue(found[1], int(found[2]), thread[0], thread[1], node, found[3]))
    return queues


def sum_errors(rows: t.Iterable[ErrorCount]) -> dict[tuple[str, str], int]:
    """Counts by node and reason; those that VPP cut are left out."""
    return {(row.node, row.reason): row.count for row in rows if row.count is not None}
