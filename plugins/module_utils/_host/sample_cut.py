# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Windows cut out of a recording of counters.

How a window is cut. What is reported is the difference between the first and
the last sample within the window, over the time between them. Nothing is drawn
between two samples: traffic begins and ends there, and a straight line would
count a part of the pause, or of the next trial, as the window's. So a count is
that of ``counted_s`` seconds, which is up to two intervals less than the window.
A window that the samples do not cover has no numbers. Time is the monotonic clock's.
"""

from __future__ import annotations

import bisect
import dataclasses
import json
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError, ParseError
from ansible_collections.fastpath.bench.plugins.module_utils._host import esp_counters, power_sample, procfs
from ansible_collections.fastpath.bench.plugins.module_utils._vpp import window as vpp_window

SCHEMA = 1
#: A jump of the wall clock against the monotonic one; slewing stays far below this between two samples.
STEP_S = 0.02
#: A sample this close outside the edge of a window is on it: clocks do not agree better.
_EDGE_S = 0.001
#: The samples must cover this part of a window, or what they say may be another thing than what went on.
_LEAST_PART = 0.4


@dataclasses.dataclass(frozen=True)
class Window:
    """A span to report on, in seconds since the epoch by the clock of whoever asks."""

    window_id: str
    start: float
    end: float


@dataclasses.dataclass(frozen=True)
class _Place:
    """What of a window is counted: from sample ``low`` to sample ``high``, and their times by the monotonic clock."""

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
                self.total = self._advanced(self.total, at, values, names)
            self._index, self._last = index, values
        self._last_at = at

    def _advanced(self, total: list[int], at: float, values: list[int], names: t.Sequence[str]) -> list[int]:
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
            return list(values)
        return [before + delta for before, delta in zip(total, deltas)]

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
                needed.update((place.low, place.high))
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
        self._add_vpp(reports, places)
        self._add_power(reports, places)
        self._add_connections(reports, places)
        self._add_esp(reports, places)
        self._add_routes(reports, places)
        return reports

    def _add_esp(self, reports: dict[str, dict[str, t.Any]], places: dict[str, _Place | str]) -> None:
        """What the kernel's ESP carried; null where the kernel does not tell, or was not asked often enough."""
        series = [(record["m"], record["esp"]) for record in self._records() if "esp" in record]
        times = [at for at, _changed in series]
        for name, report in reports.items():
            place = places[name]
            found = _within(times, place.start, place.end) if isinstance(place, _Place) else None
            report["esp"] = esp_counters.cut(series, *found) if found is not None else None

    def _add_routes(self, reports: dict[str, dict[str, t.Any]], places: dict[str, _Place | str]) -> None:
        """Routes that changed in the window; null where the kernel could not be listened to."""
        found = [(record["m"], record["routes"]) for record in self._records() if "routes" in record and "m" in record]
        for name, report in reports.items():
            place = places[name]
            report["routes_changed"] = None
            if self.header.get("routes") and isinstance(place, _Place):
                # what a sample tells came after the one before it
                report["routes_changed"] = [
                    text for at, texts in found if place.start < at <= place.end for text in texts
                ]

    def _add_connections(self, reports: dict[str, dict[str, t.Any]], places: dict[str, _Place | str]) -> None:
        """How many connections the kernel kept, where it keeps any."""
        series = [(record["m"], record["connections"]) for record in self._records() if "connections" in record]
        for name, report in reports.items():
            place = places[name]
            report["conntrack"] = None
            if series and isinstance(place, _Place):
                report["conntrack"] = vpp_window.levels(series, place.start, place.end)

    def _add_power(self, reports: dict[str, dict[str, t.Any]], places: dict[str, _Place | str]) -> None:
        """How fast the CPUs ran in each window, how deep they slept, and what they drew."""
        spans = {name: (place.start, place.end) for name, place in places.items() if isinstance(place, _Place)}

        def records() -> t.Iterator[dict[str, t.Any]]:
            return (record["power"] for record in self._records() if "power" in record and "type" not in record)

        slack_s = float(self.header["interval_s"]) / 2 if self.header else 0.0
        found = power_sample.cut(records, self.header.get("power"), spans, slack_s) if spans else {}
        for name, report in reports.items():
            report["power"] = found.get(name)

    def _add_vpp(self, reports: dict[str, dict[str, t.Any]], places: dict[str, _Place | str]) -> None:
        """What VPP did in each window, where VPP was recorded; a host without VPP has nothing there."""
        spans = {name: (place.start, place.end) for name, place in places.items() if isinstance(place, _Place)}

        def records() -> t.Iterator[dict[str, t.Any]]:
            return (record["vpp"] for record in self._records() if "vpp" in record)

        found = vpp_window.cut(records, spans, float(self.header["interval_s"])) if spans else {}
        for name, report in reports.items():
            report["vpp"] = found.get(name)

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
        found = _within(self.times, start, end)
        if found is None:
            return self._too_few(start, end)
        low, high = found
        counted = self.times[high] - self.times[low]
        return _Place(self.times[low], self.times[high], max(0.0, end - start - counted), low, high)

    def _too_few(self, start: float, end: float) -> str:
        inside = sum(1 for at in self.times if start <= at <= end)
        return (
            f"{inside} samples were taken in the window's {end - start:.2f} s, of which they cover less than "
            f"{_LEAST_PART:.0%}: the recorder did not get the CPU in time"
        )

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
        edges = _Edges(states[low], states[high])
        gaps = [self.times[index] - self.times[index - 1] for index in range(low + 1, high + 1)]
        names = self.header["counters"]
        online = set(states[high].cpu)
        return {
            "cpu": _cpu_report(edges),
            "interfaces": {
                name: self._interface_report(name, track, edges, names, (low, high)) for name, track in tracks.items()
            },
            "softnet": _softnet_report(edges, online),
            "softirqs": _softirq_report(edges, online),
            "samples": high - low + 1,
            "interval_s": self.interval_s,
            "largest_gap_s": round(max(gaps), 6),
            "reason": None,
        }

    def _interface_report(
        self, name: str, track: _InterfaceTrack, edges: _Edges, names: list[str], bracket: tuple[int, int]
    ) -> dict[str, t.Any]:
        low, high = bracket
        link = self.header["links"][name]
        reason = track.broken(self.times[low], self.times[high])
        deltas = None if reason else edges.deltas(lambda state: state.interfaces.get(name))
        if deltas is None:
            nothing = dict.fromkeys((*names, *_DERIVED))
            reason = reason or "it was not read"
            return {**nothing, **link, **_no_queues(reason), "reason": reason}
        report: dict[str, t.Any] = {**dict(zip(names, deltas)), **link}
        value = dict(zip(names, deltas))
        for way in ("rx", "tx"):
            packets, size = value[f"{way}_packets"], value[f"{way}_bytes"]
            report[f"{way}_packet_rate"] = round(packets / edges.seconds, 3)
            report[f"{way}_rate_bps"] = round(8 * size / edges.seconds, 3)
            # No frame, no size: unknown, not 0.
            report[f"{way}_mean_frame_bytes"] = round(size / packets, 2) if packets else None
        queues = self._queue_report(name, edges.start, edges.end)
        report.update(_trusted_queues(queues, report) if isinstance(queues, dict) else _no_queues(queues))
        report["reason"] = None
        return report

    def _queue_report(self, name: str, start: float, end: float) -> dict[str, t.Any] | str:
        """Packets and bytes per queue, where the driver counts them; otherwise why not."""
        what = self.header.get("queues", {}).get(name)
        if not what:
            return "the driver does not count per queue, or it was switched off (queue_interval_s)"
        read = [(at, queues[name]) for at, queues in self._queue_samples if queues.get(name) is not None]
        # They are read after the rest of the sample, and less often when the driver is slow.
        slack = float(self.header["interval_s"]) / 2
        found = _within([at for at, _values in read], start - slack, end + slack, least_s=_LEAST_PART * (end - start))
        if found is None:
            return "the queues were not read often enough around the window"
        low, high = found
        for (_t0, before), (_t1, now) in zip(read[low:high], read[low + 1 : high + 1]):
            if len(before) != len(now) or any(b > n for b, n in zip(before, now)):
                return "the counters of the queues were reset"
        report: dict[str, t.Any] = {"rx": {}, "tx": {}, "counted_s": round(read[high][0] - read[low][0], 6)}
        for (way, queue, unit), first, last in zip(what, read[low][1], read[high][1]):
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


#: A driver that counted less than this part of an interface's packets per queue does not tell how they spread.
_QUEUE_SHARE = 0.8


def _no_queues(reason: str) -> dict[str, t.Any]:
    return {"queues": None, "queues_reason": reason}


def _trusted_queues(queues: dict[str, t.Any], interface: dict[str, t.Any]) -> dict[str, t.Any]:
    """Drop a direction in which the driver does not count all packets: veth counts only what it polls for."""
    reasons = []
    for way in ("rx", "tx"):
        packets = [queue["packets"] for queue in queues[way].values() if queue["packets"] is not None]
        expected = interface[f"{way}_packet_rate"] * queues["counted_s"]
        if not packets:
            queues[way] = None
            reasons.append(f"{way}: the driver does not count packets per queue")
        elif sum(packets) < _QUEUE_SHARE * expected:
            queues[way] = None
            reasons.append(f"{way}: the driver counted {sum(packets)} of {expected:.0f} packets per queue")
    known = any(queues[way] is not None for way in ("rx", "tx"))
    return {"queues": queues if known else None, "queues_reason": "; ".join(reasons) or None}


def _within(
    times: t.Sequence[float], start: float, end: float, *, least_s: float | None = None
) -> tuple[int, int] | None:
    """The first and the last of ``times`` that lie in the span; None when they cover too little of it."""
    low = bisect.bisect_left(times, start - _EDGE_S)
    high = bisect.bisect_right(times, end + _EDGE_S) - 1
    least = _LEAST_PART * (end - start) if least_s is None else least_s
    return (low, high) if high > low and times[high] - times[low] >= least else None


@dataclasses.dataclass(frozen=True)
class _Edges:
    """The first and the last sample of what is counted."""

    first: _State
    last: _State

    @property
    def start(self) -> float:
        return self.first.at

    @property
    def end(self) -> float:
        return self.last.at

    @property
    def seconds(self) -> float:
        return self.last.at - self.first.at

    def deltas(self, pick: t.Callable[[_State], t.Sequence[int] | None]) -> list[int] | None:
        """How much each counter grew; None when a sample lacks it."""
        first, last = pick(self.first), pick(self.last)
        if first is None or last is None:
            return None
        return [after - before for before, after in zip(first, last)]


def _cpu_report(edges: _Edges) -> dict[str, t.Any]:
    cpus: list[dict[str, t.Any]] = []
    for cpu in sorted(set(edges.first.cpu) | set(edges.last.cpu)):
        deltas = edges.deltas(lambda state, cpu=cpu: state.cpu.get(cpu))  # type: ignore[misc]
        # Idle and iowait are estimates that the kernel corrects downwards now and then.
        parts = None if deltas is None else [max(0, delta) for delta in deltas]
        total = sum(parts) if parts else 0
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
        values = [None] * len(_SOFTNET) if deltas is None else deltas
        cpus.append({"cpu": cpu, **dict(zip(_SOFTNET, values))})
    complete = bool(cpus) and all(entry["processed"] is not None for entry in cpus)
    totals = {name: sum(entry[name] for entry in cpus) if complete else None for name in _SOFTNET}
    return {**totals, "cpus": cpus}


def _softirq_report(edges: _Edges, online: set[int]) -> list[dict[str, t.Any]]:
    report = []
    for cpu in sorted(online):
        deltas = edges.deltas(lambda state, cpu=cpu: state.softirqs.get(cpu))  # type: ignore[misc]
        net_tx, net_rx = (None, None) if deltas is None else deltas
        report.append({"cpu": cpu, "net_tx": net_tx, "net_rx": net_rx})
    return report
