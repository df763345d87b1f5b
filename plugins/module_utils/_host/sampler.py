# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Counters of a host, recorded while traffic runs and cut into windows afterwards.

The recorder does as little as it can while traffic runs: it keeps the files
open, writes the text of what changed, and leaves all reading of that text to
:func:`cut`, which runs when the traffic is over.

How a window is cut. Counters only grow, so a counter's value at an instant
between two samples lies between their values; it is taken by straight line
between the two samples around each edge of the window, and what is reported is
the difference of the two edges. Spacing comes from the monotonic clock.
Nothing is extrapolated: a window that the samples do not cover has no numbers.
"""

from __future__ import annotations

import bisect
import contextlib
import dataclasses
import errno
import json
import os
import resource
import time
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError, ParseError
from ansible_collections.fastpath.bench.plugins.module_utils._common.paths import SAMPLE_DIR
from ansible_collections.fastpath.bench.plugins.module_utils._host import background, nicinfo, procfs

SCHEMA = 1
#: A jump of the wall clock against the monotonic one; slewing stays far below this between two samples.
STEP_S = 0.02
#: Recordings that nobody fetched are removed when the next one starts on the host.
KEEP_S = 24 * 3600
_MIN_INTERVAL_S = 0.02
_IFF_UP = 0x1
#: A reading of the NICs' own statistics that takes longer than this part of its interval is made less often.
_QUEUE_SHARE = 0.005


@dataclasses.dataclass(frozen=True)
class Settings:
    """What to record. An empty list of interfaces means those that are there and up, and all physical ones."""

    sample_id: str
    interfaces: tuple[str, ...] = ()
    interval_s: float = 0.25
    max_duration_s: float = 3600.0
    queue_interval_s: float = 1.0
    max_bytes: int = 128 * 1024 * 1024
    directory: str = SAMPLE_DIR

    def check(self) -> None:
        background.check_name(self.sample_id, option="sample_id")
        if not _MIN_INTERVAL_S <= self.interval_s <= 60:
            raise BenchError(
                f"{self.interval_s:g} s is not a usable interval",
                where="option interval_s",
                remedy=f"Use {_MIN_INTERVAL_S:g} to 60",
                code="bad_option",
            )
        if not self.interval_s <= self.max_duration_s <= 7 * 86400:
            raise BenchError(
                f"{self.max_duration_s:g} s is not a usable duration",
                where="option max_duration_s",
                remedy="Use at least one interval and at most 7 days",
                code="bad_option",
            )
        if self.queue_interval_s < 0:
            raise BenchError("it is negative", where="option queue_interval_s", remedy="0 is off", code="bad_option")
        if self.max_bytes < 65536:
            raise BenchError("the recording needs at least 65536 bytes", where="option max_bytes", code="bad_option")

    @property
    def recording(self) -> str:
        return os.path.join(self.directory, self.sample_id + ".jsonl")


# ---------------------------------------------------------------- recording


def read_text(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as stream:
        return stream.read().strip()


def default_interfaces(root: str = "/") -> list[str]:
    """All that are up, and the physical ones also when they are down; never the loopback."""
    folder = os.path.join(root, "sys/class/net")
    names = []
    for name in sorted(os.listdir(folder)):
        base = os.path.join(folder, name)
        try:
            up = int(read_text(os.path.join(base, "flags")), 16) & _IFF_UP
        except OSError:
            continue  # not a device (bonding_masters is a plain file), or gone between the listing and now
        if name != "lo" and (up or os.path.exists(os.path.join(base, "device"))):
            names.append(name)
    return names


class _Interface:
    """One interface's counters through file handles that stay open."""

    def __init__(self, root: str, name: str, ask: nicinfo.Ioctl | None) -> None:
        self.name = name
        self._base = os.path.join(root, "sys/class/net", name)
        self._handles: list[int] = []
        self._index = 0
        self.mtu_bytes: int | None = None
        self.speed_bps: float | None = None
        self._ask = ask
        self.queues: tuple[tuple[int, tuple[str, int, str]], ...] = ()
        self._nic: nicinfo.Nic | None = None
        self._statistics = 0
        self.open()

    def open(self) -> bool:
        """Open the handles; False when there is no such interface (now)."""
        self.close()
        try:
            self._index = int(read_text(os.path.join(self._base, "ifindex")))
            for counter in procfs.INTERFACE_COUNTERS:
                self._handles.append(os.open(os.path.join(self._base, "statistics", counter), os.O_RDONLY))
        except (FileNotFoundError, NotADirectoryError):
            self.close()
            return False
        except OSError as error:
            if error.errno != errno.ENODEV:
                raise
            self.close()
            return False
        self._read_link()
        self._find_queues()
        return True

    def _read_link(self) -> None:
        """What a reader of the counters needs: segments are larger than the MTU, a full link has its speed."""
        self.mtu_bytes = self.speed_bps = None
        with contextlib.suppress(OSError, ValueError):
            self.mtu_bytes = int(read_text(os.path.join(self._base, "mtu")))
        # Refused while the link is down, and -1 where the driver does not know.
        with contextlib.suppress(OSError, ValueError):
            speed = int(read_text(os.path.join(self._base, "speed")))
            self.speed_bps = speed * 1e6 if speed > 0 else None

    def _find_queues(self) -> None:
        self.queues = ()
        if self._ask is None:
            return
        self._nic = nicinfo.Nic(self.name, self._ask)
        try:
            names = self._nic.statistic_names()
        except OSError:
            return  # gone again; the next reading says so
        self._statistics = len(names)
        found = ((index, procfs.queue_counter(name)) for index, name in enumerate(names))
        self.queues = tuple((index, what) for index, what in found if what is not None)

    def close(self) -> None:
        for handle in self._handles:
            os.close(handle)
        self._handles = []

    def read(self) -> list[int] | None:
        """The interface's index and its counters; None while it is not there."""
        if not self._handles and not self.open():
            return None
        try:
            return [self._index, *(int(os.pread(handle, 32, 0)) for handle in self._handles)]
        except OSError as error:
            if error.errno not in (errno.ENODEV, errno.EINVAL):
                raise
            self.close()  # an interface of the same name may come back; it is then another one
            return None

    def read_queues(self) -> list[int] | None:
        if self._nic is None or not self.queues or not self._handles:
            return None
        try:
            values = self._nic.statistics(self._statistics)
        except OSError:
            return None
        return None if values is None else [values[index] for index, _what in self.queues]


class _TextFile:
    """A /proc file, read whole from the start through one open handle."""

    def __init__(self, path: str) -> None:
        self._handle = os.open(path, os.O_RDONLY)
        self._size = 16384

    def read(self) -> str:
        parts: list[bytes] = []
        offset = 0
        while True:
            part = os.pread(self._handle, self._size, offset)
            if not part:
                break
            parts.append(part)
            offset += len(part)
        self._size = max(self._size, offset + 4096)
        return b"".join(parts).decode("ascii", "replace")


def _clocks() -> tuple[float, float]:
    """Monotonic time, and the wall clock minus it, read so close together that a switch between does not show."""
    best = (float("inf"), 0.0, 0.0)
    for _attempt in range(5):
        before = time.monotonic()
        wall = time.time()
        after = time.monotonic()
        best = min(best, (after - before, before, wall - (before + after) / 2))
        if best[0] < 0.001:
            break
    return best[1], best[2]


class Recorder:
    """Reads all counters once per call of :meth:`sample`, and remembers what has changed."""

    def __init__(
        self, settings: Settings, *, root: str = "/", ask: t.Callable[[], nicinfo.Ioctl] | None = nicinfo.kernel_ioctl
    ) -> None:
        self.settings = settings
        names = settings.interfaces or tuple(default_interfaces(root))
        ioctl = ask() if ask is not None and settings.queue_interval_s > 0 else None
        self.interfaces = [_Interface(root, name, ioctl) for name in dict.fromkeys(names)]
        missing = [interface.name for interface in self.interfaces if interface.read() is None]
        if missing:
            there = sorted(os.listdir(os.path.join(root, "sys/class/net")))
            raise BenchError(
                f"there is no interface {', '.join(missing)}",
                where="option interfaces",
                remedy=f"This host has {', '.join(there)}",
                code="interface_absent",
            )
        self._stat = _TextFile(os.path.join(root, "proc/stat"))
        self._softnet = _TextFile(os.path.join(root, "proc/net/softnet_stat"))
        self._softirqs = _TextFile(os.path.join(root, "proc/softirqs"))
        self._softnet_before: list[str] = []
        self._softirqs_before: dict[str, str] = {}
        self._queue_interval_s = settings.queue_interval_s
        self._queues_due = 0.0

    def header(self) -> dict[str, t.Any]:
        return {
            "type": "header",
            "schema": SCHEMA,
            "sample_id": self.settings.sample_id,
            "interval_s": self.settings.interval_s,
            "interfaces": [interface.name for interface in self.interfaces],
            "links": {
                interface.name: {"mtu_bytes": interface.mtu_bytes, "speed_bps": interface.speed_bps}
                for interface in self.interfaces
            },
            "counters": list(procfs.INTERFACE_COUNTERS),
            "queues": {
                interface.name: [what for _index, what in interface.queues]
                for interface in self.interfaces
                if interface.queues
            },
            "nice": os.nice(0),
        }

    def sample(self, *, last: bool = False) -> dict[str, t.Any]:
        before, offset = _clocks()
        stat = self._stat.read()
        softnet = self._softnet.read().splitlines()
        rows = self._softirqs.read()
        counters = {interface.name: interface.read() for interface in self.interfaces}
        after = time.monotonic()
        record: dict[str, t.Any] = {
            "m": round((before + after) / 2, 6),
            "o": round(offset, 6),
            "stat": stat[: stat.find("\nintr")] if "\nintr" in stat else stat,
            "if": counters,
            "softnet_rows": len(softnet),
            "softnet": {
                str(index): line
                for index, line in enumerate(softnet)
                if index >= len(self._softnet_before) or line != self._softnet_before[index]
            },
        }
        self._softnet_before = softnet
        softirqs = {}
        for name in ("NET_TX", "NET_RX"):
            at = rows.find(name + ":")
            line = rows[at : rows.find("\n", at)].strip() if at >= 0 else ""
            if line and line != self._softirqs_before.get(name):
                softirqs[name] = self._softirqs_before[name] = line
        if softirqs:
            record["softirqs"] = softirqs
        self._sample_queues(record, last)
        return record

    def _sample_queues(self, record: dict[str, t.Any], last: bool) -> None:
        """Devices of some drivers take milliseconds to answer, so this is done less often, and still less when slow."""
        now = time.monotonic()
        if not self._queue_interval_s or (now < self._queues_due and not last):
            return
        queues = {interface.name: interface.read_queues() for interface in self.interfaces if interface.queues}
        if not queues:
            return
        took = time.monotonic() - now
        self._queue_interval_s = max(self.settings.queue_interval_s, took / _QUEUE_SHARE)
        self._queues_due = now + self._queue_interval_s
        record["queues_m"] = round(now + took / 2, 6)
        record["queues"] = queues


def _record(settings: Settings, control: background.Control) -> None:
    """The worker: one line per sample until asked to end, out of time, or out of room."""
    # On a host whose CPUs are full of traffic the samples must still be taken in time.
    with contextlib.suppress(PermissionError):
        os.nice(-10)
    recorder = Recorder(settings)
    output = os.open(settings.recording, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
    written = 0

    def put(record: dict[str, t.Any]) -> None:
        nonlocal written
        line = json.dumps(record, separators=(",", ":")).encode() + b"\n"
        os.write(output, line)
        written += len(line)

    header = recorder.header()
    put(header)
    put(recorder.sample())
    begun = resource.getrusage(resource.RUSAGE_SELF)
    samples = 0
    first = time.monotonic()
    control.ready({"interfaces": header["interfaces"], "interval_s": settings.interval_s})
    tick = 1
    reason = None
    while True:
        ending = control.wait(first + tick * settings.interval_s - time.monotonic())
        put(recorder.sample(last=ending))
        samples += 1
        if ending:
            reason = None if control.asked else f"its longest duration of {settings.max_duration_s:g} s was over"
            break
        if written >= settings.max_bytes:
            reason = f"the recording had reached max_bytes ({settings.max_bytes})"
            break
        # Ticks that were missed stay missed: catching up would bunch the samples.
        tick = max(tick + 1, int((time.monotonic() - first) / settings.interval_s) + 1)
    ended = resource.getrusage(resource.RUSAGE_SELF)
    cpu_s = (ended.ru_utime + ended.ru_stime) - (begun.ru_utime + begun.ru_stime)
    put({"type": "footer", "reason": reason, "cpu_s": round(cpu_s, 6), "samples": samples})


def ensure_started(settings: Settings, *, check_mode: bool = False) -> dict[str, t.Any]:
    """Start the recorder, unless one of that id is running. The module's result."""
    workers = background.Workers(settings.directory)
    worker = workers.find(settings.sample_id)
    changed = worker is None
    if worker is None:
        if check_mode:
            return {"changed": True}
        workers.sweep()
        _remove_old(settings.directory)
        worker = workers.start(
            settings.sample_id,
            lambda control: _record(settings, control),
            lifetime_s=settings.max_duration_s,
            title="fastpath-sample",
        )
    return {
        "changed": changed,
        "pid": worker.pid,
        "interfaces": worker.info["interfaces"],
        "interval_s": worker.info["interval_s"],
        "started": worker.started,
    }


def ensure_ended(
    settings: Settings,
    state: str,
    windows: t.Sequence[Window] = (),
    *,
    clock_offset_s: float = 0.0,
    clock_offset_time: float | None = None,
    return_raw: bool = False,
    check_mode: bool = False,
) -> dict[str, t.Any]:
    """End the recorder (``stopped``, ``absent``) or only look (``gathered``). The module's result."""
    workers = background.Workers(settings.directory)
    worker = workers.find(settings.sample_id)
    there = os.path.exists(settings.recording)
    ended: background.Ended | None = None
    if state == "gathered" or check_mode:
        if worker is None:
            ended = background.Ended("gone" if there else "absent")
    else:
        ended = workers.stop(settings.sample_id)
    result: dict[str, t.Any] = {
        "changed": state != "gathered" and (worker is not None or (state == "absent" and there)),
        "ended": ended.how if ended else "running",
    }
    if state == "absent":
        if there and not check_mode:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(settings.recording)
        return result
    recording = load(settings, ended)
    result["windows"] = recording.cut(windows, clock_offset_s=clock_offset_s, clock_offset_time=clock_offset_time)
    result["reason"] = recording.why_ended()
    result["overhead"] = recording.overhead()
    if return_raw and there:
        with open(settings.recording, encoding="ascii", errors="replace") as stream:
            result["raw"] = {os.path.basename(settings.recording): stream.read()}
    return result


def _remove_old(directory: str) -> None:
    if not os.path.isdir(directory):
        return
    alive = set(background.Workers(directory).names())
    for entry in os.listdir(directory):
        path = os.path.join(directory, entry)
        name, suffix = os.path.splitext(entry)
        if suffix in (".jsonl", ".err") and name not in alive:
            with contextlib.suppress(FileNotFoundError):
                if time.time() - os.stat(path).st_mtime > KEEP_S:
                    os.unlink(path)


# ------------------------------------------------------------------ cutting


@dataclasses.dataclass(frozen=True)
class Window:
    """A span to report on, in seconds since the epoch by the clock of whoever asks."""

    window_id: str
    start: float
    end: float


@dataclasses.dataclass(frozen=True)
class _Place:
    """Where a window lies among the samples, on the monotonic clock.

    ``low`` is the first sample after ``start``, ``high`` the first at or after ``end``.
    """

    start: float
    end: float
    clipped_s: float
    low: int
    high: int


@dataclasses.dataclass
class _State:
    """All counters at one sample, freed from wraps: each goes on growing."""

    at: float
    cpu: dict[int, tuple[int, ...]]
    softnet: dict[int, tuple[int, ...]]
    softirqs: dict[int, tuple[int, ...]]
    interfaces: dict[str, tuple[int, ...] | None]


@dataclasses.dataclass
class _Break:
    """From ``begins`` to ``ends`` an interface's counters do not continue each other."""

    begins: float
    ends: float
    text: str


class _InterfaceTrack:
    """Follows one interface's counters through wraps, resets and absences."""

    def __init__(self) -> None:
        self.total: list[int] | None = None
        self._index: int | None = None
        self._last: list[int] = []
        self._last_at = 0.0
        self.breaks: list[_Break] = []

    def feed(self, at: float, reading: list[int] | None, names: t.Sequence[str]) -> None:
        if reading is None:
            if self.total is not None or not self.breaks:
                self.breaks.append(_Break(self._last_at, at, "the interface was not there"))
            else:
                self.breaks[-1].ends = at
            self.total = None
        else:
            index, *values = reading
            if self.total is None:
                if self.breaks:
                    self.breaks[-1].ends = at
                self.total = list(values)
            elif index != self._index:
                self.breaks.append(_Break(self._last_at, at, "the interface was replaced by another of its name"))
                self.total = list(values)
            else:
                self._advance(at, values, names)
            self._index, self._last = index, values
        self._last_at = at

    def _advance(self, at: float, values: list[int], names: t.Sequence[str]) -> None:
        assert self.total is not None
        deltas = [now - before for now, before in zip(values, self._last)]
        fallen = [position for position, delta in enumerate(deltas) if delta < 0]
        # A driver with 32-bit counters wraps one at a time, from the top of the range to its bottom. A reset
        # takes all counters that were not zero at once, and what was counted between the samples is lost.
        wrapped = len(fallen) == 1 and _looks_wrapped(self._last[fallen[0]], values[fallen[0]])
        if wrapped:
            deltas[fallen[0]] += procfs.WRAP_32
        elif fallen:
            position = fallen[0]
            text = f"{names[position]} fell from {self._last[position]} to {values[position]}: counters were reset"
            self.breaks.append(_Break(self._last_at, at, text))
            self.total = list(values)
            return
        self.total = [total + delta for total, delta in zip(self.total, deltas)]

    def broken(self, start: float, end: float) -> str | None:
        for gap in self.breaks:
            if gap.begins < end and gap.ends > start:
                return gap.text
        return None


def _looks_wrapped(before: int, now: int) -> bool:
    quarter = procfs.WRAP_32 // 4
    return 3 * quarter <= before < procfs.WRAP_32 and now < quarter


class _WrappingTrack:
    """Counters of 32 bits per CPU that are known to wrap."""

    def __init__(self) -> None:
        self.total: dict[int, tuple[int, ...]] = {}
        self._last: dict[int, tuple[int, ...]] = {}

    def feed(self, cpu: int, values: tuple[int, ...]) -> None:
        last = self._last.get(cpu)
        if last is None or len(last) != len(values):
            self.total[cpu] = values
        else:
            grown = (
                total + (now - before) % procfs.WRAP_32 for total, now, before in zip(self.total[cpu], values, last)
            )
            self.total[cpu] = tuple(grown)
        self._last[cpu] = values


class Recording:
    """A file that a recorder wrote. Reads it twice: for the times, then for the samples around the edges.

    :param lines: gives the lines anew each time it is called.
    :param died: why there may be no proper end.
    :param now: the monotonic clock; no time of this recording's story can be later.
    """

    def __init__(
        self, lines: t.Callable[[], t.Iterable[str]], *, died: str | None = None, now: float = float("inf")
    ) -> None:
        self._lines = lines
        self._now = now
        self.header: dict[str, t.Any] = {}
        self.footer: dict[str, t.Any] | None = None
        self.times: list[float] = []
        self.offsets: list[float] = []
        self._queue_samples: list[tuple[float, dict[str, t.Any]]] = []
        self._died = died
        for record in self._records():
            kind = record.get("type")
            if kind == "header":
                self.header = record
            elif kind == "footer":
                self.footer = record
            else:
                self.times.append(record["m"])
                self.offsets.append(record["o"])
                if "queues" in record:
                    self._queue_samples.append((record["queues_m"], record["queues"]))
        if self.header and self.header.get("schema") != SCHEMA:
            raise BenchError(
                f"the recording has schema {self.header.get('schema')!r}, this version reads {SCHEMA}",
                remedy="Stop the sampler with the version of the collection that started it",
                code="schema",
            )
        #: Where the wall clock jumped: index of the first sample after it, and by how much.
        self.steps = [
            (index, self.offsets[index] - self.offsets[index - 1])
            for index in range(1, len(self.offsets))
            if abs(self.offsets[index] - self.offsets[index - 1]) >= STEP_S
        ]

    def _records(self) -> t.Iterator[dict[str, t.Any]]:
        pending: str | None = None
        for line in self._lines():
            if pending is not None:
                yield self._record(pending)
            pending = line
        # Only the last line can be torn: the recorder was killed, or is writing right now.
        if pending is not None and pending.endswith("\n"):
            yield self._record(pending)

    @staticmethod
    def _record(line: str) -> dict[str, t.Any]:
        try:
            record = json.loads(line)
            if not isinstance(record, dict) or not ("type" in record or ("m" in record and "o" in record)):
                raise ValueError
        except ValueError:
            raise ParseError("a line of the recording is not a sample", line=line.rstrip("\n")) from None
        return record

    @property
    def interval_s(self) -> float | None:
        return self.header.get("interval_s")

    def why_ended(self) -> str | None:
        if self.footer is not None:
            reason: str | None = self.footer["reason"]
            return reason
        return self._died

    def overhead(self) -> dict[str, t.Any]:
        """What the recorder itself cost; nulls while it runs or when it was killed."""
        if self.footer is None or not self.footer["samples"]:
            return {"cpu_s": None, "samples": len(self.times), "cpu_per_sample_ms": None}
        cpu_s, samples = self.footer["cpu_s"], self.footer["samples"]
        return {"cpu_s": cpu_s, "samples": samples, "cpu_per_sample_ms": round(1000 * cpu_s / samples, 4)}

    # -- time

    def _offset_span(self, measured: float | None, clock_offset_s: float) -> tuple[int, int] | str:
        """The samples (from, to) between two steps of the clock to which the measured offset belongs."""
        if not self.steps:
            return 0, len(self.times)
        if measured is None:
            index, size = self.steps[0]
            since = self.times[index] - self.times[0]
            return (
                f"this host's clock was set by {size:+.3f} s, {since:.1f} s after the sampler started, and "
                "clock_offset_time does not say when the offset was measured"
            )
        local = measured - clock_offset_s
        edges = [0, *(index for index, _size in self.steps), len(self.times)]
        possible = []
        for first, last in zip(edges, edges[1:]):
            # If the offset belongs to this span, it was measured at this time of the monotonic clock.
            at = local - self.offsets[first if first else last - 1]
            begins = self.times[first] if first else float("-inf")
            ends = self.times[last] if last < len(self.times) else self._now
            if begins - STEP_S <= at <= ends + STEP_S:
                possible.append((first, last))
        if len(possible) == 1:
            return possible[0]
        return (
            f"this host's clock was set while the sampler ran and showed clock_offset_time {len(possible)} times, "
            "so it is not known which of its times the offset belongs to"
        )

    def _monotonic(self, epoch: float, span: tuple[int, int]) -> float:
        """A wall clock instant of this host on the monotonic clock, following the slewing within the span."""
        first, last = span
        stamps = [self.times[index] + self.offsets[index] for index in range(first, last)]
        position = bisect.bisect_right(stamps, epoch)
        if position == 0:
            return epoch - self.offsets[first]
        if position == len(stamps):
            return epoch - self.offsets[last - 1]
        low, high = stamps[position - 1], stamps[position]
        part = (epoch - low) / (high - low) if high > low else 0.0
        start = self.times[first + position - 1]
        return start + part * (self.times[first + position] - start)

    # -- windows

    def cut(
        self, windows: t.Sequence[Window], *, clock_offset_s: float = 0.0, clock_offset_time: float | None = None
    ) -> dict[str, dict[str, t.Any]]:
        """The report of each window, by its id."""
        places = {window.window_id: self._place(window, clock_offset_s, clock_offset_time) for window in windows}
        needed: set[int] = set()
        for place in places.values():
            if isinstance(place, _Place):
                needed.update((place.low - 1, place.low, place.high - 1, place.high))
        states, tracks = self._states(needed)
        reports: dict[str, dict[str, t.Any]] = {}
        for window in windows:
            place = places[window.window_id]
            span: dict[str, t.Any] = {"start": window.start, "end": window.end, "counted_s": None, "clipped_s": None}
            if isinstance(place, str):
                reports[window.window_id] = {**self._no_report(place), "window": span}
                continue
            span["counted_s"] = round(place.end - place.start, 6)
            span["clipped_s"] = round(place.clipped_s, 6)
            reports[window.window_id] = {**self._report(states, tracks, place), "window": span}
        return reports

    def _place(self, window: Window, clock_offset_s: float, measured: float | None) -> _Place | str:
        """Where the window lies, or why it has no numbers."""
        if not window.end > window.start:
            return "the window ends before it begins"
        if len(self.times) < 2:
            return self._no_samples()
        span = self._offset_span(measured, clock_offset_s)
        if isinstance(span, str):
            return span
        start = self._monotonic(window.start - clock_offset_s, span)
        end = self._monotonic(window.end - clock_offset_s, span)
        first, last = self.times[0], self.times[-1]
        early, late = max(0.0, first - start), max(0.0, end - last)
        reason = self._not_covered(end - start, early, late)
        if reason:
            return reason
        start, end = max(start, first), min(end, last)
        low = min(max(1, bisect.bisect_right(self.times, start)), len(self.times) - 1)
        high = max(1, bisect.bisect_left(self.times, end))
        return _Place(start, end, early + late, low, high)

    def _not_covered(self, length: float, early: float, late: float) -> str | None:
        interval = float(self.header["interval_s"])
        # Clocks agree to milliseconds at best, so an edge that misses the samples by less than one interval
        # is moved onto them; the counted time says so.
        if length < 2 * interval:
            return f"the window is shorter than two sampling intervals of {interval:g} s"
        if early > interval:
            return f"the window begins {early:.3f} s before the first sample"
        if late > interval:
            reason = self.why_ended()
            ended = f" ({reason})" if reason else ""
            return f"the window ends {late:.3f} s after the last sample{ended}"
        return None

    def _no_samples(self) -> str:
        if not self.header:
            return self._died or "there is no recording"
        reason = self.why_ended()
        return f"fewer than two samples were taken{f' ({reason})' if reason else ''}"

    def _no_report(self, reason: str) -> dict[str, t.Any]:
        return {
            "cpu": None,
            "interfaces": None,
            "softnet": None,
            "softirqs": None,
            "samples": 0,
            "interval_s": self.interval_s,
            "largest_gap_s": None,
            "reason": reason,
        }

    def _states(self, needed: set[int]) -> tuple[dict[int, _State], dict[str, _InterfaceTrack]]:
        states: dict[int, _State] = {}
        tracks = {name: _InterfaceTrack() for name in self.header.get("interfaces", ())}
        softnet, softirqs = _WrappingTrack(), _WrappingTrack()
        softnet_lines: list[str] = []
        rows: dict[str, list[int]] = {}
        names = self.header.get("counters", ())
        index = -1
        for record in self._records():
            if "type" in record:
                continue
            index += 1
            at = record["m"]
            for name, track in tracks.items():
                track.feed(at, record["if"].get(name), names)
            _feed_softnet(softnet, softnet_lines, record)
            if "softirqs" in record:
                rows.update(procfs.parse_softirq_row(line) for line in record["softirqs"].values())
                for cpu, pair in enumerate(zip(rows.get("NET_TX", ()), rows.get("NET_RX", ()))):
                    softirqs.feed(cpu, pair)
            if index in needed:
                states[index] = _State(
                    at,
                    procfs.parse_cpu_times(record["stat"]),
                    dict(softnet.total),
                    dict(softirqs.total),
                    {name: tuple(track.total) if track.total is not None else None for name, track in tracks.items()},
                )
        return states, tracks

    def _report(self, states: dict[int, _State], tracks: dict[str, _InterfaceTrack], place: _Place) -> dict[str, t.Any]:
        low, high = place.low, place.high
        edges = _Edges(states[low - 1], states[low], place.start, states[high - 1], states[high], place.end)
        gaps = [self.times[index] - self.times[index - 1] for index in range(low, high + 1)]
        names = self.header["counters"]
        online = set(states[high].cpu)
        return {
            "cpu": _cpu_report(edges),
            "interfaces": {
                name: self._interface_report(name, track, edges, names, (low, high)) for name, track in tracks.items()
            },
            "softnet": _softnet_report(edges, online),
            "softirqs": _softirq_report(edges, online),
            "samples": sum(1 for at in self.times[low - 1 : high + 1] if place.start <= at <= place.end),
            "interval_s": self.interval_s,
            "largest_gap_s": round(max(gaps), 6) if gaps else None,
            "reason": None,
        }

    def _interface_report(
        self, name: str, track: _InterfaceTrack, edges: _Edges, names: list[str], bracket: tuple[int, int]
    ) -> dict[str, t.Any]:
        low, high = bracket
        link = self.header["links"][name]
        reason = track.broken(self.times[low - 1], self.times[high])
        deltas = None if reason else edges.deltas(lambda state: state.interfaces.get(name))
        if deltas is None:
            nothing = dict.fromkeys((*names, *_DERIVED))
            return {**nothing, **link, "queues": None, "reason": reason or "it was not read"}
        report: dict[str, t.Any] = {**{counter: round(delta) for counter, delta in zip(names, deltas)}, **link}
        value = dict(zip(names, deltas))
        for way in ("rx", "tx"):
            packets, size = value[f"{way}_packets"], value[f"{way}_bytes"]
            report[f"{way}_packet_rate"] = round(packets / edges.seconds, 3)
            report[f"{way}_rate_bps"] = round(8 * size / edges.seconds, 3)
            # No frame, no size: unknown, not 0.
            report[f"{way}_mean_frame_bytes"] = round(size / packets, 2) if round(packets) else None
        report["queues"] = self._queue_report(name, edges.start, edges.end)
        report["reason"] = None
        return report

    def _queue_report(self, name: str, start: float, end: float) -> dict[str, t.Any] | None:
        """Packets and bytes per queue, where the driver counts them; null where it does not or its counters broke."""
        what = self.header.get("queues", {}).get(name)
        if not what:
            return None
        read = [(at, queues[name]) for at, queues in self._queue_samples if queues.get(name) is not None]
        times = [at for at, _values in read]
        if len(times) < 2:
            return None
        # Read less often than the rest: an edge may lie before the first or after the last of them by the time
        # between the two readings of one sample; more than that is not covered.
        slack = float(self.header["interval_s"])
        if times[0] > start + slack or times[-1] < end - slack:
            return None
        low = min(max(1, bisect.bisect_right(times, start)), len(times) - 1)
        high = min(max(1, bisect.bisect_left(times, end)), len(times) - 1)
        for (_t0, before), (_t1, now) in zip(read[low - 1 : high], read[low : high + 1]):
            if len(before) != len(now) or any(b > n for b, n in zip(before, now)):
                return None
        begin = _between(times[low - 1], read[low - 1][1], times[low], read[low][1], max(start, times[0]))
        finish = _between(times[high - 1], read[high - 1][1], times[high], read[high][1], min(end, times[-1]))
        report: dict[str, t.Any] = {"rx": {}, "tx": {}}
        for (way, queue, unit), first, last in zip(what, begin, finish):
            report[way].setdefault(str(queue), {"packets": None, "bytes": None})[unit] = round(last - first)
        return report


#: Keys that an interface's report has besides its counters.
_DERIVED = (
    "rx_packet_rate",
    "rx_rate_bps",
    "rx_mean_frame_bytes",
    "tx_packet_rate",
    "tx_rate_bps",
    "tx_mean_frame_bytes",
)


def _between(
    before_at: float, before: t.Sequence[float], after_at: float, after: t.Sequence[float], at: float
) -> list[float]:
    part = (at - before_at) / (after_at - before_at) if after_at > before_at else 1.0
    return [low + part * (high - low) for low, high in zip(before, after)]


@dataclasses.dataclass(frozen=True)
class _Edges:
    """The two samples around each edge of a window."""

    start_before: _State
    start_after: _State
    start: float
    end_before: _State
    end_after: _State
    end: float

    @property
    def seconds(self) -> float:
        return self.end - self.start

    def deltas(self, pick: t.Callable[[_State], t.Sequence[int] | None]) -> list[float] | None:
        """How much each counter grew within the window; None when a sample lacks it."""
        around = [pick(state) for state in (self.start_before, self.start_after, self.end_before, self.end_after)]
        if any(values is None for values in around):
            return None
        first, second, third, fourth = t.cast("list[t.Sequence[int]]", around)
        begin = _between(self.start_before.at, first, self.start_after.at, second, self.start)
        finish = _between(self.end_before.at, third, self.end_after.at, fourth, self.end)
        return [high - low for low, high in zip(begin, finish)]


def _cpu_report(edges: _Edges) -> dict[str, t.Any]:
    cpus: list[dict[str, t.Any]] = []
    for cpu in sorted(set(edges.start_before.cpu) | set(edges.end_after.cpu)):
        deltas = edges.deltas(lambda state, cpu=cpu: state.cpu.get(cpu))  # type: ignore[misc]
        # Idle and iowait are estimates that the kernel corrects downwards now and then.
        parts = None if deltas is None else [max(0.0, delta) for delta in deltas]
        total = sum(parts) if parts else 0.0
        if parts is None or total <= 0:
            reason = "it was offline for a part of the window" if parts is None else "its clock did not advance"
            cpus.append({"cpu": cpu, **dict.fromkeys((*procfs.CPU_FIELDS, "busy")), "reason": reason})
            continue
        ratios = {name: part / total for name, part in zip(procfs.CPU_FIELDS, parts)}
        # Busy is all that traffic could not have had: stolen time too.
        busy = 1 - ratios["idle"] - ratios["iowait"]
        rounded = {name: round(ratio, 4) for name, ratio in ratios.items()}
        cpus.append({"cpu": cpu, **rounded, "busy": round(max(0.0, busy), 4), "reason": None})
    known = [entry for entry in cpus if entry["busy"] is not None]
    if not known:
        return {"cpus": cpus, "busiest": None, "mean_busy": None}
    top = max(known, key=lambda entry: (entry["busy"], -entry["cpu"]))
    return {
        "cpus": cpus,
        "busiest": {"cpu": top["cpu"], "busy": top["busy"], "softirq": top["softirq"]},
        "mean_busy": round(sum(entry["busy"] for entry in known) / len(known), 4),
    }


_SOFTNET = ("processed", "dropped", "time_squeeze", "received_rps", "flow_limit")


def _feed_softnet(track: _WrappingTrack, lines: list[str], record: dict[str, t.Any]) -> None:
    count = record["softnet_rows"]
    del lines[count:]
    lines.extend([""] * (count - len(lines)))
    online: list[int] | None = None
    for position, line in record["softnet"].items():
        index = int(position)
        lines[index] = line
        row = procfs.parse_softnet_row(line)
        cpu = row.cpu
        if cpu is None:
            # Older kernels print a line for each online CPU, in order.
            online = online or sorted(procfs.parse_cpu_times(record["stat"]))
            cpu = online[index]
        track.feed(cpu, tuple(getattr(row, name) for name in _SOFTNET))


def _softnet_report(edges: _Edges, online: set[int]) -> dict[str, t.Any]:
    cpus: list[dict[str, t.Any]] = []
    for cpu in sorted(online):
        deltas = edges.deltas(lambda state, cpu=cpu: state.softnet.get(cpu))  # type: ignore[misc]
        values = [None] * len(_SOFTNET) if deltas is None else [round(delta) for delta in deltas]
        cpus.append({"cpu": cpu, **dict(zip(_SOFTNET, values))})
    complete = bool(cpus) and all(entry["processed"] is not None for entry in cpus)
    totals = {name: sum(entry[name] for entry in cpus) if complete else None for name in _SOFTNET}
    return {**totals, "cpus": cpus}


def _softirq_report(edges: _Edges, online: set[int]) -> list[dict[str, t.Any]]:
    report = []
    for cpu in sorted(online):
        deltas = edges.deltas(lambda state, cpu=cpu: state.softirqs.get(cpu))  # type: ignore[misc]
        net_tx, net_rx = (None, None) if deltas is None else (round(deltas[0]), round(deltas[1]))
        report.append({"cpu": cpu, "net_tx": net_tx, "net_rx": net_rx})
    return report


def load(settings: Settings, ended: background.Ended | None) -> Recording:
    """The recording of a sampler; without numbers, but with a reason, when there is none.

    :param ended: how the sampler ended; None while it runs.
    """
    died = None
    if ended is not None:
        died = "the sampler was no longer running when it was stopped"
        if ended.how == "killed":
            died = "the sampler did not end when asked and was killed"
        if ended.error:
            died += f": {ended.error.splitlines()[-1]}"

    def lines() -> t.Iterator[str]:
        with open(settings.recording, encoding="ascii", errors="replace") as stream:
            yield from stream

    if not os.path.exists(settings.recording):
        return Recording(lambda: (), died=f"there is no recording of {settings.sample_id} on this host")
    return Recording(lines, died=died, now=time.monotonic())
