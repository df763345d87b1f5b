# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Counters of a host, recorded while traffic runs and cut into windows afterwards.

The recorder does as little as it can while traffic runs: it keeps the files
open, writes the text of what changed, and leaves all reading of that text to
:mod:`sample_cut`, which runs when the traffic is over.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import json
import os
import resource
import time
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._common.paths import SAMPLE_DIR
from ansible_collections.fastpath.bench.plugins.module_utils._host import (
    background,
    esp_counters,
    nicinfo,
    power_sample,
    procfs,
)
from ansible_collections.fastpath.bench.plugins.module_utils._host.route_watch import Watch
from ansible_collections.fastpath.bench.plugins.module_utils._host.sample_cut import SCHEMA, Recording, Window
from ansible_collections.fastpath.bench.plugins.module_utils._vpp import window as vpp_window

#: Recordings that nobody fetched are removed when the next one starts on the host.
KEEP_S = 24 * 3600
_MIN_INTERVAL_S = 0.02
#: How many connections the kernel keeps, of the network namespace.
CONNECTIONS = "proc/sys/net/netfilter/nf_conntrack_count"
_IFF_UP = 0x1
#: A reading of the NICs' own statistics that takes longer than this part of its interval is made less often.
_QUEUE_SHARE = 0.005
#: The same for the power: only a machine with hundreds of CPUs, which has one to spare, takes as long as that.
_POWER_SHARE = 0.02


@dataclasses.dataclass(frozen=True)
class Settings:
    """What to record. An empty list of interfaces means those that are there and up, and all physical ones."""

    sample_id: str
    interfaces: tuple[str, ...] = ()
    interval_s: float = 0.25
    max_duration_s: float = 3600.0
    queue_interval_s: float = 0.25
    power_interval_s: float = 0.5
    max_bytes: int = 128 * 1024 * 1024
    #: The socket of the statistics of a VPP on this host, whose counters are then recorded too.
    vpp_stats_socket: str | None = None
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
        if self.power_interval_s < 0:
            raise BenchError("it is negative", where="option power_interval_s", remedy="0 is off", code="bad_option")
        if self.max_bytes < 65536:
            raise BenchError("the recording needs at least 65536 bytes", where="option max_bytes", code="bad_option")

    @property
    def recording(self) -> str:
        return os.path.join(self.directory, self.sample_id + ".jsonl")


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
        # A virtual interface has no device, and whatever speed it names (veth: 10 Gbit/s) is no limit.
        if not os.path.exists(os.path.join(self._base, "device")):
            return
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

    @property
    def index(self) -> int:
        return self._index

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
        self._routes = Watch(lambda: [interface.index for interface in self.interfaces]) if root == "/" else None
        self._esp = esp_counters.Sampler(settings.interval_s) if root == "/" else None
        self._stat = _TextFile(os.path.join(root, "proc/stat"))
        self._connections = os.path.join(root, CONNECTIONS)
        self._softnet = _TextFile(os.path.join(root, "proc/net/softnet_stat"))
        self._softirqs = _TextFile(os.path.join(root, "proc/softirqs"))
        self._vpp = vpp_window.Sampler(settings.vpp_stats_socket) if settings.vpp_stats_socket else None
        self._softnet_before: list[str] = []
        self._softirqs_before: dict[str, str] = {}
        self._queue_interval_s = settings.queue_interval_s
        self._queues_due = 0.0
        self._power = power_sample.Sampler(root) if settings.power_interval_s > 0 else None
        self._power_interval_s = settings.power_interval_s
        self._power_due = 0.0

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
            "routes": self._routes.reason is None if self._routes is not None else False,
            "power": self._power.header() if self._power is not None else None,
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
        if self._vpp is not None:
            record["vpp"] = self._vpp.sample()
        with contextlib.suppress(OSError, ValueError):
            # a kernel that keeps no connections does not have it
            record["connections"] = int(read_text(self._connections))
        carried = self._esp.sample(last=last) if self._esp is not None else None
        if carried is not None:
            record["esp"] = carried
        changes = self._routes.changes() if self._routes is not None else []
        if changes:
            record["routes"] = changes
        self._sample_power(record, last)
        return record

    def _sample_power(self, record: dict[str, t.Any], last: bool) -> None:
        """A machine with many CPUs has thousands of these counters, so this too is done less often when it is slow."""
        now = time.monotonic()
        if self._power is None or (now < self._power_due and not last):
            return
        record["power"] = self._power.sample(last=last)
        self._power_interval_s = max(self.settings.power_interval_s, (time.monotonic() - now) / _POWER_SHARE)
        self._power_due = now + self._power_interval_s

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
