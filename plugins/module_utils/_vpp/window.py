# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""VPP's counters in the recording of a host, and cut to the windows of trials.

A sample holds what changed since the one before. A counter's value at an edge
of a window is taken by straight line between the readings around it. The node
counters stand still between two updates of VPP, so for them only the first
reading after an update counts.
"""

from __future__ import annotations

import bisect
import dataclasses
import time
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._vpp import runtime
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.errors import VppError

#: A VPP that is not there is looked for this often only.
_RETRY_S = 1.0


class Sampler:
    """One recording's eye on VPP. Never raises for a VPP that is absent or ends: the sample then says why."""

    def __init__(self, path: str) -> None:
        self._reader = runtime.Reader(path)
        self._generation = 0
        self._heartbeat = -1
        self._last = _State()
        self._why: str | None = None
        self._retry_at = 0.0

    def sample(self) -> dict[str, t.Any]:
        """A reading, as JSON. About 1 ms, and less when VPP has not renewed its node counters."""
        now = time.monotonic()
        if now < self._retry_at:
            return {"m": round(now, 6), "why": self._why}
        try:
            return self._read()
        except VppError as error:
            self._why = error.message
            self._retry_at = now + _RETRY_S
            self._reader.close()
            return {"m": round(now, 6), "why": self._why}

    def _read(self) -> dict[str, t.Any]:
        reader = self._reader
        reader.check_alive()
        heartbeat = reader.heartbeat()
        fresh = heartbeat != self._heartbeat or reader.generation != self._generation
        snapshot = reader.snapshot(with_nodes=fresh)
        record: dict[str, t.Any] = {"m": round(snapshot.at, 6)}
        if reader.generation != self._generation:
            self._generation = reader.generation
            self._last = _State()
            threads = runtime.named_threads(reader.thread_count, reader.segment.pid)
            record["threads"] = [dataclasses.astuple(thread)[:3] for thread, _ns in threads]
            record["has_nodes"] = reader.has_nodes
        record["g"] = self._generation
        if fresh:
            self._heartbeat = heartbeat
            record["n"] = _changed(self._last.nodes, {_key(*key): list(now) for key, now in snapshot.nodes.items()})
        record["e"] = _changed(self._last.errors, {_key(*key): count for key, count in snapshot.errors.items()})
        record["i"] = _changed(self._last.interfaces, {name: list(now) for name, now in snapshot.interfaces.items()})
        record["cpu"] = {str(thread): ns for thread, ns in snapshot.on_cpu_ns.items()}
        record["s"] = reader.nat_sessions()
        carried = reader.ipsec_bytes()
        if carried is not None:
            record["x"] = carried
        return {key: value for key, value in record.items() if value != {} or key == "n"}


def _key(first: int | str, second: str) -> str:
    """Neither threads nor nodes have a slash in their names here: VPP writes it as an underscore."""
    return f"{first}/{second}"


def _split(key: str) -> tuple[str, str]:
    first, _slash, second = key.partition("/")
    return first, second


def _changed(last: dict[str, t.Any], now: dict[str, t.Any]) -> dict[str, t.Any]:
    """What differs from ``last``, which is brought up to date."""
    found = {key: value for key, value in now.items() if last.get(key) != value}
    # What is gone (cleared to 0, or an interface that was deleted) must not be counted on.
    found.update(dict.fromkeys(last.keys() - now.keys()))
    last.clear()
    last.update(now)
    return found


@dataclasses.dataclass
class _State:
    nodes: dict[str, list[int]] = dataclasses.field(default_factory=dict)
    errors: dict[str, int] = dataclasses.field(default_factory=dict)
    interfaces: dict[str, list[int]] = dataclasses.field(default_factory=dict)
    cpu: dict[str, int] = dataclasses.field(default_factory=dict)
    sessions: dict[str, int] = dataclasses.field(default_factory=dict)

    def feed(self, record: dict[str, t.Any]) -> None:
        kept: tuple[tuple[str, dict[str, t.Any]], ...] = (
            ("n", self.nodes),
            ("e", self.errors),
            ("i", self.interfaces),
        )
        for name, values in kept:
            for key, value in record.get(name, {}).items():
                if value is None:
                    values.pop(key, None)
                else:
                    values[key] = value
        self.cpu = record.get("cpu", {})
        self.sessions = record.get("s", {})

    def copy(self) -> _State:
        return _State(dict(self.nodes), dict(self.errors), dict(self.interfaces), dict(self.cpu), dict(self.sessions))


@dataclasses.dataclass(frozen=True)
class _Edges:
    """Numbers of the readings around the two edges of a window, and the parts of the way between them."""

    start: tuple[int, int, float]
    end: tuple[int, int, float]

    @property
    def needed(self) -> set[int]:
        return {*self.start[:2], *self.end[:2]}


class _Index:
    """When readings were taken, and which of them go together."""

    def __init__(self, records: t.Iterable[dict[str, t.Any]]) -> None:
        self.live: list[tuple[float, int]] = []  # time, number of the record
        self.nodes: list[tuple[float, int]] = []
        self.generations: dict[int, int] = {}
        self.absent: list[tuple[float, str]] = []
        self.threads: dict[int, list[runtime.Thread]] = {}
        self.has_nodes: dict[int, bool] = {}
        self.sessions: list[tuple[float, dict[str, int]]] = []
        self.ipsec: list[tuple[float, int]] = []
        for number, record in enumerate(records):
            at = record["m"]
            if "why" in record:
                self.absent.append((at, record["why"]))
                continue
            generation = record["g"]
            self.generations[number] = generation
            self.live.append((at, number))
            if "threads" in record:
                self.threads[generation] = [runtime.Thread(*row) for row in record["threads"]]
                self.has_nodes[generation] = record["has_nodes"]
            if "n" in record:
                self.nodes.append((at, number))
            if "s" in record:
                self.sessions.append((at, record["s"]))
            if "x" in record:
                self.ipsec.append((at, record["x"]))

    def why_absent(self, start: float, end: float) -> str | None:
        """VPP was away at some time in the window."""
        for at, why in self.absent:
            if start <= at <= end:
                return why
        return None

    def edges(self, series: list[tuple[float, int]], start: float, end: float, slack_s: float) -> _Edges | str:
        if len(series) < 2:
            return "fewer than two readings were taken"
        times = [at for at, _number in series]
        if times[0] > start + slack_s or times[-1] < end - slack_s:
            return "the readings do not cover the window"
        return _Edges(_around(series, times, start), _around(series, times, end))


def _around(series: list[tuple[float, int]], times: list[float], at: float) -> tuple[int, int, float]:
    right = min(max(1, bisect.bisect_left(times, at)), len(times) - 1)
    first, second = times[right - 1], times[right]
    part = (min(max(at, first), second) - first) / (second - first) if second > first else 1.0
    return series[right - 1][1], series[right][1], part


_Records = t.Callable[[], t.Iterable[t.Dict[str, t.Any]]]  # noqa: UP006  (Python 3.9 evaluates it)


def cut(records: _Records, spans: dict[str, tuple[float, float]], interval_s: float) -> dict[str, dict[str, t.Any]]:
    """The report of each window, by its id; a window of a recording in which VPP never was has none.

    :param records: gives the samples in their order, each time that it is called.
    :param spans: begin and end of each window by the monotonic clock.
    """
    index = _Index(records())
    if not index.live:
        return {}
    plans: dict[str, tuple[_Edges | str, _Edges | str]] = {}
    needed: set[int] = set()
    for name, (start, end) in spans.items():
        live = index.edges(index.live, start, end, 2 * interval_s)
        nodes = _node_edges(index, start, end, interval_s)
        why = index.why_absent(start, end)
        if why is not None:
            live = nodes = f"VPP was away: {why}"
        plans[name] = (live, nodes)
        for edges in plans[name]:
            if isinstance(edges, _Edges):
                needed |= edges.needed
    states = _states(records(), needed, index)
    reports = {name: _report(index, states, plans[name], *spans[name]) for name in spans}
    for name, span in spans.items():
        reports[name]["nat44"] = _nat_sessions(index, *span)
        reports[name]["ipsec"] = _ipsec_bytes(index, *span)
    return reports


def _nat_sessions(index: _Index, start: float, end: float) -> dict[str, dict[str, int]] | None:
    """How many sessions each NAT44 of VPP held."""
    modes = sorted({mode for _at, counts in index.sessions for mode in counts})
    result = {mode: levels([(at, counts.get(mode, 0)) for at, counts in index.sessions], start, end) for mode in modes}
    return result or None


def _ipsec_bytes(index: _Index, start: float, end: float) -> dict[str, int] | None:
    """What the security associations carried in the window; None without any."""
    if not index.ipsec:
        return None
    counted = levels(index.ipsec, start, end)
    return {"carried_bytes": counted["window_end"] - counted["window_start"]}


def levels(series: t.Sequence[tuple[float, int]], start: float, end: float) -> dict[str, int]:
    """How many there were, by readings: at the recording's begin and end, and in the window.

    A recording of one trial begins before the trial's first packet and ends after its last one.
    """
    inside = [count for at, count in series if start <= at <= end]
    before = [count for at, count in series if at <= start] or [series[0][1]]
    return {
        "before": series[0][1],
        "window_start": before[-1],
        "window_end": (inside or before)[-1],
        "most": max([*inside, before[-1]]),
        "after": series[-1][1],
    }


def _node_edges(index: _Index, start: float, end: float, interval_s: float) -> _Edges | str:
    edges = index.edges(index.nodes, start, end, 2 * interval_s)
    if isinstance(edges, str):
        return f"VPP does not renew its node counters often enough: {edges} (statseg {{ update-interval }})"
    times = [at for at, _number in index.nodes]
    low, high = bisect.bisect_right(times, start) - 1, bisect.bisect_left(times, end)
    gaps = [later - earlier for earlier, later in zip(times[max(low, 0) : high], times[max(low, 0) + 1 : high + 1])]
    if gaps and max(gaps) > (end - start) / 2:
        return (
            f"VPP renews its node counters every {max(gaps):.1f} s, too rarely for a window of {end - start:.1f} s "
            "(statseg { update-interval })"
        )
    return edges


def _states(records: t.Iterable[dict[str, t.Any]], needed: set[int], index: _Index) -> dict[int, _State]:
    states: dict[int, _State] = {}
    state = _State()
    generation = None
    for number, record in enumerate(records):
        if "why" in record:
            continue
        if index.generations[number] != generation:
            generation, state = index.generations[number], _State()
        state.feed(record)
        if number in needed:
            states[number] = state.copy()
    return states


def _report(
    index: _Index,
    states: dict[int, _State],
    plan: tuple[_Edges | str, _Edges | str],
    start: float,
    end: float,
) -> dict[str, t.Any]:
    live, nodes = plan
    if isinstance(live, str):
        return _nothing(live)
    generations = {index.generations[number] for number in live.needed}
    if len(generations) > 1:
        return _nothing("VPP was restarted in the middle")
    generation = generations.pop()
    try:
        errors = _grown(states, live, lambda state: state.errors, "counter")
        interfaces = _grown(states, live, lambda state: state.interfaces, "interface")
        cpu = _grown(states, live, lambda state: state.cpu, "thread")
    except runtime.WentBack as error:
        return _nothing(error.what)
    lost = {
        name: dict(zip((key.replace("-", "_") for key in runtime.LOSS_COUNTERS), counts))
        for name, counts in interfaces.items()
    }
    reasons = {_split(key): counts[0] for key, counts in errors.items()}
    drops = runtime.drops_report(lost, reasons, {})
    threads = [
        dataclasses.replace(
            thread,
            cpu_ratio=round(cpu[str(thread.thread)][0] / 1e9 / (end - start), 3) if str(thread.thread) in cpu else None,
        )
        for thread in index.threads[generation]
    ]
    if not index.has_nodes[generation]:
        nodes = "VPP's per-node counters are switched off (statseg { per-node-counters on })"
    if not isinstance(nodes, str) and {index.generations[number] for number in nodes.needed} != {generation}:
        nodes = "VPP was restarted around the window"
    if isinstance(nodes, str):
        return {**_nothing(nodes), "drops": drops, "seconds": round(end - start, 3)}
    try:
        grown = _grown(states, nodes, lambda state: state.nodes, "node")
    except runtime.WentBack as error:
        return {**_nothing(error.what), "drops": drops, "seconds": round(end - start, 3)}
    rows = []
    for key, (calls, vectors, clocks, suspends) in grown.items():
        thread_number, name = _split(key)
        if calls or vectors:
            rows.append(runtime.Node(int(thread_number), name, calls, vectors, clocks, suspends))
    return runtime.report("stats_segment", threads, rows, drops, seconds=end - start)


def _nothing(reason: str) -> dict[str, t.Any]:
    return {
        "source": "stats_segment",
        "reason": reason,
        "seconds": None,
        "threads": None,
        "busiest_thread": None,
        "batching": None,
        "meaning": None,
        "nodes": None,
        "drops": None,
    }


def _grown(
    states: dict[int, _State], edges: _Edges, pick: t.Callable[[_State], dict[str, t.Any]], what: str
) -> dict[str, list[int]]:
    """How much each counter grew between the two edges.

    :raises runtime.WentBack: one became smaller.
    """
    around = {number: pick(states[number]) for number in sorted(edges.needed)}
    last = around[max(around)]
    grown = {}
    for key, value in last.items():
        rows = {number: _row(values.get(key)) or [0] * len(_row(value)) for number, values in around.items()}
        inorder = list(rows.values())
        if any(later < earlier for first, second in zip(inorder, inorder[1:]) for earlier, later in zip(first, second)):
            raise runtime.WentBack(f"{what} {key}")
        begin = _between(rows[edges.start[0]], rows[edges.start[1]], edges.start[2])
        finish = _between(rows[edges.end[0]], rows[edges.end[1]], edges.end[2])
        grown[key] = [round(high - low) for low, high in zip(begin, finish)]
    gone = {key for values in around.values() for key in values} - last.keys()
    if gone and what != "interface":  # an interface may be deleted; a counter does not go away
        raise runtime.WentBack(f"{what} {min(gone)}")
    return grown


def _row(value: t.Any) -> list[int]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def _between(low: list[int], high: list[int], part: float) -> list[float]:
    return [first + part * (second - first) for first, second in zip(low, high)]
