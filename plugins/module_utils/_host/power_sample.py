# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the CPUs really did: frequency, sleep, throttling and energy, in the recording of a host and cut to windows.

A machine of 256 CPUs has thousands of such counters, so a reading is summed
up at once, and the recorder makes it less often when it takes long.
"""

from __future__ import annotations

import bisect
import dataclasses
import os
import re
import struct
import time
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._host import cpu_power, cpufreq, cpuidle
from ansible_collections.fastpath.bench.plugins.module_utils._host.access import Access
from ansible_collections.fastpath.bench.plugins.module_utils._host.cpu_knob import BASE, numbered

#: Model specific registers: time stamp, and cycles while awake at the nominal and at the real frequency.
_TSC, _MPERF, _APERF = 0x10, 0xE7, 0xE8
_WRAP_64 = 1 << 64
#: A CPU that was awake for less of the time does not tell how fast CPUs run.
_AWAKE = 0.1
_SETTINGS_S = 2.0
#: Reading the settings takes at most this part of the time.
_SHARE = 0.002
#: The samples must cover this part of a window.
_LEAST_PART = 0.4
_NOMINAL = "a virtual machine prints the nominal frequency, whatever the CPU does"
#: What of the settings a change during a trial matters for.
_SETTINGS = ("governor", "energy_performance_preference", "boost", "min_khz", "max_khz", "idle_states_off")


class Sampler:
    """Reads all that this machine has. What it does not have is None, and the header says why."""

    def __init__(self, root: str = "/") -> None:
        self._root = root
        self._access = Access(proc=os.path.join(root, "proc"), sys=os.path.join(root, "sys"))
        self._base = os.path.join(self._access.sys, BASE)
        self.reasons: dict[str, str] = {}
        self._cpus = numbered(self._access, self._base, "cpu")
        self._policies = cpufreq.policies(self._access)
        self._idle = self._find_idle()
        self._throttle = self._find_throttle()
        self.zones = self._find_zones()
        self.source = self._find_source()
        self._last: dict[str, tuple[int, ...]] = {}
        self._total = [0, 0, 0]
        self._settings: dict[str, t.Any] | None = None
        self._settings_due = 0.0

    def header(self) -> dict[str, t.Any]:
        driver = cpufreq.find_driver(self._access)
        return {
            "driver": None if driver.name is None else driver.title,
            "source": self.source,
            "base_khz": self._base_khz(),
            "zones": {path: [name, wrap] for path, (name, wrap) in self.zones.items()},
            "reasons": self.reasons,
        }

    # What there is

    def _find_source(self) -> str | None:
        why = self._why_no_msr()
        if why is None:
            return "msr"
        if self._current_khz(self._policies):
            return "cpufreq"
        if self._cpuinfo_mhz():
            if cpu_power.hypervisor(self._access) is not None:
                self.reasons["frequency"] = _NOMINAL
                return "nominal"
            return "cpuinfo"
        self.reasons["frequency"] = f"{why}, no cpufreq, and /proc/cpuinfo has no frequency"
        return None

    def _why_no_msr(self) -> str | None:
        if not os.path.isdir(os.path.join(self._root, "dev/cpu")):
            return "the kernel module msr is not loaded"
        if not any(self._registers(cpu) for cpu in self._cpus):
            return "the CPU's registers cannot be read"
        return None

    def _find_idle(self) -> list[tuple[str, str]]:
        """(name, path of its time) of each state of each CPU."""
        found = []
        for cpu in cpuidle.cpus_with_states(self._access):
            knob = cpuidle.IdleStates(self._access, cpu)
            found += [(state.name, os.path.join(knob.folder, state.folder, "time")) for state in knob.states()]
        if not found:
            self.reasons["idle"] = "CPUs have no idle states here"
        return found

    def _find_throttle(self) -> list[tuple[str, str]]:
        found = []
        for cpu in self._cpus:
            for kind in ("core", "package"):
                path = os.path.join(self._base, cpu, "thermal_throttle", f"{kind}_throttle_count")
                if os.path.exists(path):
                    found.append((kind, path))
        if not found:
            self.reasons["throttle"] = "the kernel does not count throttling here"
        return found

    def _find_zones(self) -> dict[str, tuple[str, int]]:
        """Counters of energy: path to name and where it wraps."""
        folder = os.path.join(self._access.sys, "class/powercap")
        zones: dict[str, tuple[str, int]] = {}
        for name in self._access.list_dir(folder):
            if not re.fullmatch(r"intel-rapl(:\d+)+", name):
                continue
            path = os.path.join(folder, name)
            if self._number(os.path.join(path, "energy_uj")) is None:
                continue
            title = self._text(os.path.join(path, "name")) or name
            parent = zones.get(os.path.join(folder, name.rpartition(":")[0]))
            title = f"{parent[0]}/{title}" if parent else title
            zones[path] = (title, self._number(os.path.join(path, "max_energy_range_uj")) or 0)
        if not zones:
            self.reasons["energy"] = "there is no counter of energy (RAPL) that can be read"
        return zones

    # One reading

    def sample(self, *, last: bool = False) -> dict[str, t.Any]:
        begun = time.monotonic()
        record: dict[str, t.Any] = {}
        if self.source == "msr":
            record["perf"] = self._perf()
        elif self.source is not None:
            khz = self._current_khz(self._policies) or [round(1000 * mhz) for mhz in self._cpuinfo_mhz()]
            record["khz"] = [round(sum(khz) / len(khz)), min(khz), max(khz)] if khz else None
        if self._idle:
            record["idle"] = self._added(self._idle)
            record["idle_cpus"] = len({path.split("/cpuidle/")[0] for _name, path in self._idle})
        if self._throttle:
            record["throttle"] = self._added(self._throttle)
        if self.zones:
            record["energy"] = {path: self._number(os.path.join(path, "energy_uj")) for path in self.zones}
        record["m"] = round((begun + time.monotonic()) / 2, 6)
        self._add_settings(record, last)
        return record

    def _add_settings(self, record: dict[str, t.Any], last: bool) -> None:
        """They are read rarely, and at the end: another service may have changed them while traffic ran."""
        now = time.monotonic()
        if now < self._settings_due and not last:
            return
        picture = cpu_power.picture(self._access)
        self._settings_due = now + max(_SETTINGS_S, (time.monotonic() - now) / _SHARE)
        record["set_read"] = True
        settings = {name: picture[name] for name in _SETTINGS if picture[name] is not None}
        if settings != self._settings:
            self._settings = record["set"] = settings

    def _perf(self) -> dict[str, t.Any]:
        """Cycles of all CPUs since the recording began, and the slowest and fastest of those that were awake."""
        slowest: float | None = None
        fastest: float | None = None
        now_s = time.monotonic()
        cpus = 0
        for cpu in self._cpus:
            values = self._registers(cpu)
            before = self._last.get(cpu)
            if values is None:
                self._last.pop(cpu, None)  # it went offline, and its counters may begin anew
                continue
            self._last[cpu] = (*values, int(now_s * 1e9))
            if before is None:
                continue
            tsc, mperf, aperf = ((now - then) % _WRAP_64 for now, then in zip(values, before))
            seconds = now_s - before[3] / 1e9
            cpus += 1
            for place, delta in enumerate((tsc, mperf, aperf)):
                self._total[place] += delta
            if seconds > 0 and tsc and mperf / tsc >= _AWAKE:
                mhz = aperf / mperf * tsc / seconds / 1e6
                slowest = mhz if slowest is None else min(slowest, mhz)
                fastest = mhz if fastest is None else max(fastest, mhz)
        return {
            "total": list(self._total),
            "cpus": cpus,
            "slowest": None if slowest is None else round(slowest, 1),
            "fastest": None if fastest is None else round(fastest, 1),
        }

    def _registers(self, cpu: str) -> tuple[int, int, int] | None:
        path = os.path.join(self._root, "dev/cpu", cpu[len("cpu") :], "msr")
        try:
            handle = os.open(path, os.O_RDONLY)
        except OSError:
            return None
        try:
            read = [struct.unpack("<Q", os.pread(handle, 8, register))[0] for register in (_TSC, _MPERF, _APERF)]
        except (OSError, struct.error):
            return None  # a virtual CPU without these registers, or one that is offline
        finally:
            os.close(handle)
        return (read[0], read[1], read[2]) if read[1] else None

    def _base_khz(self) -> int | None:
        """The nominal frequency, which a CPU without boost can keep up: the lowest, where CPUs differ."""
        found = [self._number(os.path.join(self._base, "cpufreq", name, "base_frequency")) for name in self._policies]
        if not any(found):
            mhz = [self._number(os.path.join(self._base, cpu, "acpi_cppc", "nominal_freq")) for cpu in self._cpus]
            found = [1000 * value for value in mhz if value]
        return min((value for value in found if value), default=None)

    def _current_khz(self, policies: t.Sequence[str]) -> list[int]:
        paths = (os.path.join(self._base, "cpufreq", name, "scaling_cur_freq") for name in policies)
        return [khz for khz in (self._number(path) for path in paths) if khz]

    def _cpuinfo_mhz(self) -> list[float]:
        text = self._text(os.path.join(self._access.proc, "cpuinfo")) or ""
        return [float(mhz) for mhz in re.findall(r"^cpu MHz\s*: (\d+(?:\.\d+)?)$", text, re.MULTILINE) if float(mhz)]

    def _added(self, counters: t.Sequence[tuple[str, str]]) -> dict[str, int]:
        sums: dict[str, int] = {}
        for name, path in counters:
            value = self._number(path)
            if value is not None:
                sums[name] = sums.get(name, 0) + value
        return sums

    def _number(self, path: str) -> int | None:
        text = self._text(path)
        return int(text) if text is not None and text.isdigit() else None

    def _text(self, path: str) -> str | None:
        """Without the layers of a text file: there are thousands of these, and each is opened anew."""
        try:
            handle = os.open(path, os.O_RDONLY)
        except OSError:
            return None
        try:
            parts = [os.read(handle, 65536)]
            while parts[-1]:
                parts.append(os.read(handle, 65536))
            return b"".join(parts).decode("ascii", "replace").rstrip("\n")
        except OSError:
            return None  # the CPU went offline
        finally:
            os.close(handle)


# From the recording to windows

_Records = t.Callable[[], t.Iterable[dict[str, t.Any]]]


@dataclasses.dataclass
class _Span:
    """What lies in one window: its first and last reading, and the extremes between."""

    start: float
    end: float
    first: dict[str, t.Any] | None = None
    last: dict[str, t.Any] | None = None
    low: float | None = None
    high: float | None = None
    khz: list[int] = dataclasses.field(default_factory=list)
    settings: list[dict[str, t.Any]] = dataclasses.field(default_factory=list)
    readings: int = 0


def cut(
    records: _Records, header: t.Mapping[str, t.Any] | None, spans: t.Mapping[str, tuple[float, float]], slack_s: float
) -> dict[str, dict[str, t.Any]]:
    """The report of each window by its id.

    :param records: gives the readings in their order.
    :param header: what :meth:`Sampler.header` said; None for a recording without.
    :param spans: begin and end of each window by the monotonic clock.
    :param slack_s: how far a reading may lie outside a window and still count: it is made after the rest of a sample.
    """
    if header is None:
        return {}
    windows = {name: _Span(*span) for name, span in spans.items()}
    order = sorted(windows.values(), key=lambda span: span.start)
    starts = [span.start - slack_s for span in order]
    energy = _Energy(header["zones"])
    settings: dict[str, t.Any] | None = None
    for reading in records():
        record = {**reading, "joule": energy.feed(reading.get("energy"))}
        settings = record.get("set", settings)
        at = record["m"]
        for span in order[: bisect.bisect_right(starts, at)]:
            if at <= span.end + slack_s:
                _feed(span, record, settings)
    return {name: _report(span, header) for name, span in windows.items()}


class _Energy:
    """Counters of energy freed from wraps."""

    def __init__(self, zones: t.Mapping[str, t.Sequence[t.Any]]) -> None:
        self._zones = zones
        self._last: dict[str, int] = {}
        self._total: dict[str, int] = {}

    def feed(self, reading: t.Mapping[str, int | None] | None) -> dict[str, float]:
        for path, value in (reading or {}).items():
            if value is None:
                continue
            delta = value - self._last.get(path, value)
            if delta < 0:
                delta += self._zones[path][1] + 1 if self._zones[path][1] else -delta
            self._total[path] = self._total.get(path, 0) + delta
            self._last[path] = value
        return {path: total / 1e6 for path, total in self._total.items()}


def _feed(span: _Span, record: dict[str, t.Any], settings: dict[str, t.Any] | None) -> None:
    span.readings += 1
    if span.first is None:
        span.first = record
    else:
        # What the first reading says of the time before it is not of this window.
        perf = record.get("perf") or {}
        if perf.get("slowest") is not None:
            span.low = perf["slowest"] if span.low is None else min(span.low, perf["slowest"])
            span.high = perf["fastest"] if span.high is None else max(span.high, perf["fastest"])
    khz = record.get("khz")
    if khz:
        span.khz.append(khz[0])
        span.low = khz[1] / 1000 if span.low is None else min(span.low, khz[1] / 1000)
        span.high = khz[2] / 1000 if span.high is None else max(span.high, khz[2] / 1000)
    if settings is not None and (not span.settings or span.settings[-1] != settings):
        span.settings.append(settings)
    span.last = record


def _report(span: _Span, header: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    reasons = dict(header["reasons"])
    report: dict[str, t.Any] = {"driver": header["driver"], "source": header["source"]}
    for name in ("frequency", "idle", "throttle", "energy"):
        report[name] = None
    report.update(settings=span.settings[-1] if span.settings else None, settings_changed=None, counted_s=None)
    first, last = span.first, span.last
    if first is None or last is None or last["m"] - first["m"] < _LEAST_PART * (span.end - span.start):
        few = f"{span.readings} readings in the window"
        report["reasons"] = {**dict.fromkeys(("frequency", "idle", "throttle", "energy"), few), **reasons}
        return report
    seconds = last["m"] - first["m"]
    report.update(
        counted_s=round(seconds, 6),
        settings_changed=len(span.settings) > 1 if span.settings else None,
        frequency=_frequency(span, first, last, seconds, header),
        idle=_idle(first, last, seconds),
        throttle=_throttle(first, last),
        energy=_energy(first, last, seconds, header["zones"]),
    )
    if report["frequency"] is None:
        reasons.setdefault("frequency", "no CPU was awake long enough to tell")
    report["reasons"] = reasons
    return report


def _frequency(
    span: _Span, first: dict[str, t.Any], last: dict[str, t.Any], seconds: float, header: t.Mapping[str, t.Any]
) -> dict[str, t.Any] | None:
    mean: float | None = None
    if "perf" in last and "perf" in first:
        tsc, mperf, aperf = (now - then for now, then in zip(last["perf"]["total"], first["perf"]["total"]))
        if mperf and last["perf"]["cpus"]:
            mean = aperf / mperf * tsc / last["perf"]["cpus"] / seconds / 1e6
    elif span.khz:
        mean = sum(span.khz) / len(span.khz) / 1000
    if mean is None:
        return None
    low, high = span.low, span.high
    base = None if header["base_khz"] is None else header["base_khz"] / 1000
    if base is None and "perf" in last and last["perf"]["cpus"]:
        # The time stamp counts at the nominal frequency.
        tsc = last["perf"]["total"][0] - first["perf"]["total"][0]
        base = tsc / last["perf"]["cpus"] / seconds / 1e6
    return {
        "base_mhz": None if base is None else round(base, 1),
        "mean_mhz": round(mean, 1),
        "min_mhz": None if low is None else round(low, 1),
        "max_mhz": None if high is None else round(high, 1),
    }


def _idle(first: dict[str, t.Any], last: dict[str, t.Any], seconds: float) -> dict[str, float] | None:
    if "idle" not in last or "idle" not in first:
        return None
    whole = last["idle_cpus"] * seconds * 1e6
    return {name: round(max(0, last["idle"][name] - first["idle"].get(name, 0)) / whole, 4) for name in last["idle"]}


def _throttle(first: dict[str, t.Any], last: dict[str, t.Any]) -> dict[str, int] | None:
    if "throttle" not in last or "throttle" not in first:
        return None
    return {name: max(0, count - first["throttle"].get(name, 0)) for name, count in last["throttle"].items()}


def _energy(
    first: dict[str, t.Any], last: dict[str, t.Any], seconds: float, zones: t.Mapping[str, t.Sequence[t.Any]]
) -> dict[str, t.Any] | None:
    if not last["joule"] or "energy" not in first:
        return None
    report = {}
    for path, total in last["joule"].items():
        joule = total - first["joule"].get(path, 0.0)
        report[zones[path][0]] = {"joule": round(joule, 3), "watt": round(joule / seconds, 3)}
    return report
