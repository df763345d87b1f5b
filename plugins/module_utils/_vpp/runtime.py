# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What VPP's threads did: calls, vectors, clocks, and what was dropped.

A worker polls, so its CPU is at 100 % whatever it does; how many packets it
takes at a time (vectors per call) is what tells its load.

VPP renews the node counters of its statistics segment every
``update-interval`` (10 s unless told otherwise); drops and interface counters
are counted in the segment itself and always fresh.
"""

from __future__ import annotations

import array
import contextlib
import dataclasses
import os
import time
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._vpp import show
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.cli import Vppctl
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.errors import VppError, VppNotRunning
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.statseg import Segment

#: How many nodes a report names, by the clocks that they took.
TOP_NODES = 20
#: VPP's frame: more than this many packets are never handled in one call.
FRAME_PACKETS = 256
#: From here to a full frame a thread always finds more work waiting than it can take.
_SATURATED = 200.0
_BATCHING = 10.0
_NO_BATCHING = 2.0

MEANINGS: dict[str, str] = {
    "idle": "No packets were handled.",
    "none": (
        "About one packet a call: no batching. The receive path or the load is thin; when more throughput is asked for "
        "while this stays so, VPP is not the bottleneck."
    ),
    "some": "A few packets a call: the threads are far from busy.",
    "works": "Tens of packets a call: batching works.",
    "saturated": "Near 256 packets a call: saturated. Add workers, and queues for them.",
}

#: Packets and bytes by security association.
IPSEC_COUNTERS = "/net/ipsec/sa"
#: Counters of an interface: a packet counted here was lost, and where.
LOSS_COUNTERS = ("drops", "rx-miss", "rx-no-buf", "rx-error", "tx-error")
#: Reasons that nodes count under severity "error" although nothing is lost by them.
NO_LOSS = frozenset(
    {
        ("af-packet-input", "timed out block"),
        ("af-packet-input", "total received block"),
        ("ip4-icmp-input", "echo_replies_sent"),
        ("ip4-icmp-input", "echo replies sent"),
        ("arp-reply", "replies_sent"),
        ("arp-reply", "ARP replies sent"),
        ("ip4-arp", "ARP requests sent"),
        ("ip4-glean", "ARP requests sent"),
        ("ip4-glean", "requests_sent"),
    }
)


def batching(vectors_per_call: float | None) -> str:
    """One word for what the vectors per call mean, a key of :data:`MEANINGS`."""
    if not vectors_per_call:
        return "idle"
    for word, limit in (("saturated", _SATURATED), ("works", _BATCHING), ("some", _NO_BATCHING)):
        if vectors_per_call >= limit:
            return word
    return "none"


@dataclasses.dataclass(frozen=True)
class Node:
    """What one node did on one thread in a span of time. ``clocks`` is None where only a rounded ratio is known."""

    thread: int
    name: str
    calls: int
    vectors: int
    clocks: float | None
    suspends: int = 0

    def as_dict(self) -> dict[str, t.Any]:
        return {
            "thread": self.thread,
            "node": self.name,
            "calls": self.calls,
            "vectors": self.vectors,
            "suspends": self.suspends,
            "vectors_per_call": ratio(self.vectors, self.calls),
            "clocks_per_packet": None if self.clocks is None else ratio(self.clocks, self.vectors, 1),
        }


@dataclasses.dataclass(frozen=True)
class Thread:
    """A thread of VPP."""

    thread: int
    name: str
    lcore: int | None = None
    cpu_ratio: float | None = None


def ratio(part: float, whole: float, digits: int = 2) -> float | None:
    """None where there is nothing to divide by: unknown, not 0."""
    return round(part / whole, digits) if whole else None


def _thread_report(thread: Thread, nodes: t.Sequence[Node]) -> dict[str, t.Any]:
    """A node that polls is also called when there is nothing; what it costs then is not a packet's cost.

    Nodes within the graph are called with at least one packet, so those with more calls than vectors are the polling
    ones, and are left out of the ratios.
    """
    working = [node for node in nodes if node.vectors >= max(node.calls, 1)]
    calls, vectors = sum(node.calls for node in working), sum(node.vectors for node in working)
    packets = max((node.vectors for node in nodes), default=0)
    clocks = None if any(node.clocks is None for node in working) else sum(node.clocks or 0.0 for node in working)
    per_call = ratio(vectors, calls)
    return {
        "thread": thread.thread,
        "name": thread.name,
        "lcore": thread.lcore,
        "packets": packets,
        "calls": calls,
        "vectors": vectors,
        "vectors_per_call": per_call,
        "clocks_per_packet": None if clocks is None else ratio(clocks, packets, 1),
        "cpu_ratio": thread.cpu_ratio,
        "batching": batching(per_call),
        "polling": [node.name for node in nodes if node.vectors and node.calls > node.vectors],
    }


def drops_report(
    interfaces: dict[str, dict[str, int]], reasons: dict[tuple[str, str], int], severities: dict[tuple[str, str], str]
) -> dict[str, t.Any]:
    """Packets lost, by interface and by reason.

    VPP counts in one place what it lost and what it merely did; what it is known to have done is left out.
    """
    rows = [
        {"node": node, "reason": reason, "count": count, "severity": severities.get((node, reason))}
        for (node, reason), count in reasons.items()
        if count and (node, reason) not in NO_LOSS and severities.get((node, reason)) != "info"
    ]
    lost = {name: {key: count for key, count in counts.items() if count} for name, counts in interfaces.items()}
    return {
        "packets": sum(counts.get("drops", 0) for counts in interfaces.values()) if interfaces else None,
        "interfaces": {name: counts for name, counts in lost.items() if counts},
        "reasons": sorted(rows, key=lambda row: (-t.cast("int", row["count"]), row["node"], row["reason"])),
    }


def report(
    source: str,
    threads: t.Sequence[Thread],
    nodes: t.Sequence[Node],
    drops: dict[str, t.Any],
    *,
    seconds: float | None,
    reason: str | None = None,
    top: int = TOP_NODES,
) -> dict[str, t.Any]:
    """The record of a span of time, as a trial holds it."""
    rows = [_thread_report(thread, [node for node in nodes if node.thread == thread.thread]) for thread in threads]
    busy = max(rows, key=lambda row: (row["vectors"], -row["thread"]), default=None)
    if busy is not None and not busy["vectors"]:
        busy = None
    carried = [node for node in nodes if node.vectors]
    carried.sort(key=lambda node: (-(node.clocks if node.clocks is not None else node.vectors), node.thread, node.name))
    word = busy["batching"] if busy else "idle"
    return {
        "source": source,
        "reason": reason,
        "seconds": None if seconds is None else round(seconds, 3),
        "threads": rows,
        "busiest_thread": busy["thread"] if busy else None,
        "batching": word if reason is None else None,
        "meaning": MEANINGS[word] if reason is None else None,
        "nodes": [node.as_dict() for node in carried[:top]],
        "drops": drops,
    }


# ---------------------------------------------------------------- threads of the process


def process_threads(pid: int, proc: str = "/proc") -> list[tuple[Thread, int]]:
    """VPP's main thread and workers with the time on a CPU (ns) of each, in VPP's numbering.

    The segment does not name threads, but VPP names them to the kernel: vpp_main, vpp_wk_0, ...
    """
    found = []
    folder = os.path.join(proc, str(pid), "task")
    try:
        tasks = os.listdir(folder)
    except OSError:
        return []
    for task in tasks:
        try:
            with open(os.path.join(folder, task, "comm"), encoding="utf-8", errors="replace") as stream:
                name = stream.read().strip()
            number = _thread_number(name, task == str(pid))
            if number is None:
                continue
            with open(os.path.join(folder, task, "status"), encoding="utf-8", errors="replace") as stream:
                allowed = [line.split()[1] for line in stream if line.startswith("Cpus_allowed_list:")]
            with open(os.path.join(folder, task, "schedstat"), encoding="ascii") as stream:
                on_cpu_ns = int(stream.read().split()[0])
        except (OSError, ValueError, IndexError):
            continue  # a thread that ended, or a kernel without these files: it is then known by number alone
        lcore = int(allowed[0]) if allowed and allowed[0].isdigit() else None
        found.append((Thread(number, name, lcore), on_cpu_ns))
    return sorted(found, key=lambda pair: pair[0].thread)


def _thread_number(name: str, is_main: bool) -> int | None:
    if is_main:
        return 0
    head, _underscore, number = name.rpartition("_")
    return int(number) + 1 if head == "vpp_wk" and number.isdigit() else None


def named_threads(count: int, pid: int) -> list[tuple[Thread, int | None]]:
    """``count`` threads; those that the process does not tell have the names that VPP gives by default."""
    known = {thread.thread: (thread, on_cpu) for thread, on_cpu in process_threads(pid)} if pid else {}
    return [
        known.get(index, (Thread(index, "vpp_main" if index == 0 else f"vpp_wk_{index - 1}"), None))
        for index in range(count)
    ]


# ---------------------------------------------------------------- the segment


@dataclasses.dataclass
class Snapshot:
    """Counters at one instant, only those that are not 0. ``nodes`` are as old as VPP's last update."""

    at: float
    heartbeat: int
    nodes: dict[tuple[int, str], tuple[int, int, int, int]]  # calls, vectors, clocks, suspends
    errors: dict[tuple[str, str], int]
    interfaces: dict[str, tuple[int, ...]]  # as LOSS_COUNTERS
    on_cpu_ns: dict[int, int]


#: In the order in which snapshots hold them.
_NODE_COUNTERS = ("calls", "vectors", "clocks", "suspends")


class Reader:
    """Reads snapshots of a running VPP, and opens its segment anew after a restart."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._segment: Segment | None = None
        self._epoch_names: tuple[list[str], dict[int, tuple[str, str]], list[str]] | None = None
        self.generation = 0
        self._started: str | None = None

    @property
    def segment(self) -> Segment:
        if self._segment is None:
            self._segment = Segment.open(self.path)
            self._started = _start_mark(self._segment.pid)
            self._epoch_names = None
            self.generation += 1
        return self._segment

    def close(self) -> None:
        if self._segment is not None:
            self._segment.close()
            self._segment = None

    def check_alive(self) -> None:
        """The memory of a dead VPP stays readable and would look like a VPP that is idle.

        :raises VppNotRunning: it ended.
        """
        segment = self._segment
        if segment is not None and segment.pid and _start_mark(segment.pid) != self._started:
            self.close()
            raise VppNotRunning("VPP ended", where=self.path, code="vpp_gone")

    @property
    def thread_count(self) -> int:
        return (self.segment.scalar("/sys/num_worker_threads") or 0) + 1

    @property
    def has_nodes(self) -> bool:
        """Per-node counters are switched on."""
        return self.segment.names("/sys/node/names") is not None

    def heartbeat(self) -> int:
        """Counts up at each update of the node counters."""
        return self.segment.scalar("/sys/heartbeat") or 0

    def nat_sessions(self) -> dict[str, int]:
        """Sessions of each NAT44 that this VPP has the plugin of."""
        found = {mode: self.segment.counters(f"/nat44-{mode}/total-sessions") for mode in ("ed", "ei")}
        return {mode: sum(map(sum, rows)) for mode, rows in found.items() if rows is not None}

    def ipsec_bytes(self) -> int | None:
        """Bytes that all security associations carried; None when this VPP has none."""
        rows = self.segment.counters(IPSEC_COUNTERS)
        return sum(sum(one[1::2]) for one in rows) if rows and any(rows) else None

    def _names(self) -> tuple[list[str], dict[int, tuple[str, str]], list[str]]:
        segment = self.segment
        if self._epoch_names is None or segment.changed:
            errors = {}
            for place, rest in segment.links_into("/node/errors", "/err/").items():
                node, _slash, reason = rest.partition("/")
                errors[place] = (node, reason)
            self._epoch_names = (segment.names("/sys/node/names") or [], errors, segment.names("/if/names") or [])
        return self._epoch_names

    def snapshot(self, *, with_nodes: bool = True) -> Snapshot:
        """One reading; about half a millisecond."""
        self.check_alive()
        segment = self.segment
        nodes, errors, interfaces = self._names()
        count = self.thread_count
        heartbeat = self.heartbeat()
        return Snapshot(
            at=time.monotonic(),
            heartbeat=heartbeat,
            nodes=self._nodes(nodes, count) if with_nodes else {},
            errors=_errors(segment.counters("/node/errors") or [], errors),
            interfaces=self._interfaces(interfaces),
            on_cpu_ns={thread.thread: ns for thread, ns in process_threads(segment.pid)} if segment.pid else {},
        )

    def _nodes(self, names: list[str], threads: int) -> dict[tuple[int, str], tuple[int, int, int, int]]:
        vectors = [self.segment.counters(f"/sys/node/{kind}") for kind in _NODE_COUNTERS]
        if any(kind is None for kind in vectors):
            return {}
        calls, packets, clocks, suspends = t.cast("list[list[array.array[int]]]", vectors)
        found = {}
        for thread in range(min(threads, len(packets))):
            # Only what carried packets; processes and idle nodes are the many.
            rows = zip(calls[thread], packets[thread], clocks[thread], suspends[thread], names)
            for called, carried, spent, suspended, name in rows:
                if carried or (called and not suspended):
                    found[thread, name] = (called, carried, spent, suspended)
        return found

    def _interfaces(self, names: list[str]) -> dict[str, tuple[int, ...]]:
        sums = []
        for counter in LOSS_COUNTERS:
            by_thread = self.segment.counters(f"/if/{counter}") or []
            sums.append([sum(column) for column in zip(*by_thread)] if by_thread else [])
        return {
            name: tuple(column[index] if index < len(column) else 0 for column in sums)
            for index, name in enumerate(names)
            if name
        }


def _start_mark(pid: int) -> str | None:
    """Tells one process from a later one with the same number."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stream:
            text = stream.read()
    except OSError:
        return None
    fields = text[text.rfind(")") + 1 :].split()
    return fields[19] if len(fields) > 19 and fields[0] not in ("Z", "X") else None


def _errors(counts: list[array.array[int]], names: dict[int, tuple[str, str]]) -> dict[tuple[str, str], int]:
    """Added up over the threads."""
    found: dict[tuple[str, str], int] = {}
    for vector in counts:
        if not any(vector):
            continue
        for place, count in enumerate(vector):
            if count and place in names:
                key = names[place]
                found[key] = found.get(key, 0) + count
    return found


class WentBack(VppError):
    """A counter is smaller than before: it was cleared, or VPP was restarted."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} went back: it was cleared, or VPP was restarted, in the middle", code="vpp_cleared")


def difference(
    before: Snapshot, after: Snapshot
) -> tuple[list[Node], dict[tuple[str, str], int], dict[str, dict[str, int]]]:
    """What happened between two snapshots.

    :raises WentBack: the counters do not belong together.
    """
    nodes = []
    for (thread, name), now in after.nodes.items():
        then = before.nodes.get((thread, name), (0, 0, 0, 0))
        grown = [new - old for new, old in zip(now, then)]
        if min(grown) < 0:
            raise WentBack(f"node {name} of thread {thread}")
        if any(grown):
            nodes.append(Node(thread, name, grown[0], grown[1], grown[2], grown[3]))
    errors = {}
    for key, count in after.errors.items():
        grown_by = count - before.errors.get(key, 0)
        if grown_by < 0:
            raise WentBack(f"counter {key[0]}/{key[1]}")
        if grown_by:
            errors[key] = grown_by
    interfaces = {}
    for name, counts in after.interfaces.items():
        earlier = before.interfaces.get(name, (0,) * len(counts))
        grown = [new - old for new, old in zip(counts, earlier)]
        if min(grown, default=0) < 0:
            raise WentBack(f"interface {name}")
        interfaces[name] = dict(zip((key.replace("-", "_") for key in LOSS_COUNTERS), grown))
    return nodes, errors, interfaces


_NOTHING = Snapshot(0.0, 0, {}, {}, {}, {})


# ---------------------------------------------------------------- one reading, for the module


@dataclasses.dataclass(frozen=True)
class Wish:
    """What the module is asked for."""

    stats_socket: str
    cli: Vppctl
    source: str = "auto"
    clear: bool = False
    wait_s: float = 0.0
    top: int = TOP_NODES


def _severities(cli: Vppctl) -> dict[tuple[str, str], str]:
    """What VPP itself calls harmless, which the segment does not say; nothing without the command line."""
    try:
        rows = show.parse_errors(cli.run("show errors"))
    except BenchError:
        return {}
    return {(row.node, row.reason): row.severity for row in rows if row.severity}


def clear(cli: Vppctl) -> None:
    """Set the counters of nodes and reasons to 0, for everybody who reads them."""
    cli.run("clear runtime")
    cli.run("clear errors")


def observe(wish: Wish, *, check_mode: bool = False) -> dict[str, t.Any]:
    """Clear if asked to, wait if asked to, read. The module's result."""
    limits = (("wait_s", wish.wait_s, 0), ("top", wish.top, 1), ("timeout_s", wish.cli.timeout_s, 0.1))
    for name, value, least in limits:
        if value < least:
            raise BenchError(f"{value:g} is too small", where=name, remedy=f"Give {least} or more", code="bad_option")
    if wish.source == "cli":
        return _by_cli(wish, check_mode)
    reader = Reader(wish.stats_socket)
    try:
        why = None if reader.has_nodes else "its per-node counters are switched off"
        if why is None and (wish.wait_s > 0 or wish.clear):
            why = _too_slow(reader, max(wish.wait_s, 2.0) if wish.clear else wish.wait_s)
        if why is not None and wish.source == "auto":
            return {**_by_cli(wish, check_mode), "why_cli": why}
        if why is not None:
            raise VppError(
                f"the statistics segment cannot tell: {why}",
                where=wish.stats_socket,
                remedy="In startup.conf: statseg { per-node-counters on update-interval 0.5 }, then restart VPP",
                code="vpp_no_node_counters",
            )
        return _by_segment(reader, wish, check_mode)
    except VppError:
        if wish.source == "auto" and reader.generation == 0:
            return {**_by_cli(wish, check_mode), "why_cli": "the statistics segment was not reached"}
        raise
    finally:
        reader.close()


def _too_slow(reader: Reader, wait_s: float) -> str | None:
    """Wait for the next update, so that a bracket begins with fresh counters; or say that they come too rarely."""
    limit = time.monotonic() + max(0.1, min(wait_s / 2, 2.0))
    first = reader.heartbeat()
    while reader.heartbeat() == first:
        if time.monotonic() >= limit:
            return f"it renews its node counters too rarely for {wait_s:g} s (statseg {{ update-interval }})"
        time.sleep(0.005)
    return None


def _by_segment(reader: Reader, wish: Wish, check_mode: bool) -> dict[str, t.Any]:
    cleared = wish.clear and not check_mode
    if cleared:
        clear(wish.cli)
        _too_slow(reader, 4.0)
    before = reader.snapshot() if wish.wait_s > 0 or wish.clear else dataclasses.replace(_NOTHING)
    seconds = None
    if wish.wait_s > 0:
        time.sleep(wish.wait_s)
        # End on an update, as it began: between two updates the node counters stand still.
        _too_slow(reader, 4.0)
    after = reader.snapshot()
    if wish.wait_s > 0:
        seconds = after.at - before.at
    nodes, errors, interfaces = difference(before, after)
    threads = []
    for thread, on_cpu in named_threads(reader.thread_count, reader.segment.pid):
        then = before.on_cpu_ns.get(thread.thread)
        share = None
        if seconds and on_cpu is not None and then is not None:
            share = round((after.on_cpu_ns.get(thread.thread, then) - then) / 1e9 / seconds, 3)
        threads.append(dataclasses.replace(thread, cpu_ratio=share))
    drops = drops_report(interfaces, errors, _severities(wish.cli))
    record = report("stats_segment", threads, nodes, drops, seconds=seconds, top=wish.top)
    return {"changed": wish.clear, "runtime": record, "rx_queues": _placement(wish.cli)}


def _placement(cli: Vppctl) -> list[dict[str, t.Any]] | None:
    """Which thread serves which queue, polling or by interrupt; None where the command line is out of reach."""
    with contextlib.suppress(BenchError):
        return [dataclasses.asdict(queue) for queue in show.parse_rx_placement(cli.run("show interface rx-placement"))]
    return None


def _by_cli(wish: Wish, check_mode: bool) -> dict[str, t.Any]:
    """From texts. Exact for calls and vectors; clocks as VPP rounds them."""
    if wish.clear and not check_mode:
        clear(wish.cli)
    before: dict[tuple[int, str], show.NodeRow] = {}
    errors_before: dict[tuple[str, str], int] = {}
    began = time.monotonic()
    if wish.wait_s > 0 and not (wish.clear and not check_mode):
        for thread in show.parse_runtime(wish.cli.run("show runtime")):
            before.update({(thread.thread, row.name): row for row in thread.nodes})
        errors_before = show.sum_errors(show.parse_errors(wish.cli.run("show errors")))
        began = time.monotonic()
    if wish.wait_s > 0:
        time.sleep(wish.wait_s)
    parsed = show.parse_runtime(wish.cli.run("show runtime"))
    seconds = time.monotonic() - began if wish.wait_s > 0 else (parsed[0].duration_s if parsed else None)
    rows = show.parse_errors(wish.cli.run("show errors"))
    nodes = []
    for thread in parsed:
        for row in thread.nodes:
            then = before.get((thread.thread, row.name))
            calls, vectors = row.calls - (then.calls if then else 0), row.vectors - (then.vectors if then else 0)
            if calls < 0 or vectors < 0:
                raise WentBack(f"node {row.name} of thread {thread.thread}")
            # The clocks of a difference would be a difference of two rounded numbers.
            clocks = row.clocks * row.vectors if then is None and row.vectors else None
            if calls or vectors:
                nodes.append(Node(thread.thread, row.name, calls, vectors, clocks, row.suspends))
    counts = show.sum_errors(rows)
    errors = {key: count - errors_before.get(key, 0) for key, count in counts.items()}
    severities = {(row.node, row.reason): row.severity for row in rows if row.severity}
    lost = drops_report({}, errors, severities)
    lost["packets"] = sum(node.vectors for node in nodes if node.name == "error-drop")
    threads = [Thread(thread.thread, thread.name, thread.lcore) for thread in parsed]
    record = report("cli", threads, nodes, lost, seconds=seconds, top=wish.top)
    return {"changed": wish.clear, "runtime": record, "rx_queues": _placement(wish.cli)}
