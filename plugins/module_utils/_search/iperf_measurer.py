# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Trials with iperf2 as the sender and a sink as the receiver.

iperf2 does not tell exactly how many datagrams it sent: its final row leaves out the closing one, which it sends once
when it waits for no report, and counts differ between releases. So before the first trial it is measured against a
counting socket on this host. What arrives is counted by the receiver's kernel.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import subprocess
import time
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common import command
from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._host.path_wire import family_of
from ansible_collections.fastpath.bench.plugins.module_utils._search.frames import Frames, Part
from ansible_collections.fastpath.bench.plugins.module_utils._search.verdict import Count, Limits, Observation
from ansible_collections.fastpath.bench.plugins.module_utils._traffic import iperf2, ping
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.counting import CountingSocket
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.iperf import PROGRAMS, probe
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.record import CLIENT, FORWARD, SENDER
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.sink import SinkClient

#: A tool that has not ended this long after its time is ended.
_EXTRA_S = 15.0
#: Nothing more is awaited when nothing came for so long (RFC 2544 waits for 2 s at most).
_QUIET_S, _SETTLE_S, _POLL_S = 0.1, 2.0, 0.01
#: Round-trip times are those of packets so far apart and so large.
_PING_EVERY_S, _PING_BYTES, _PING_MARGIN_S = 0.01, 56, 0.3
_CALIBRATION_PPS, _CALIBRATION_S = 1000.0, 0.2


@dataclasses.dataclass(frozen=True)
class Settings:
    """The traffic, apart from its rate and duration."""

    server: str
    port: int
    frames: Frames
    #: Senders for each frame size.
    parallel: int = 1
    bind_address: str | None = None
    settle_s: float = _SETTLE_S

    def __post_init__(self) -> None:
        if not 1 <= self.port <= 65535 or not 1 <= self.parallel <= 64:
            raise BenchError(
                "out of range",
                where="options port and parallel",
                remedy="A port is 1 to 65535, and 1 to 64 streams are possible",
                code="bad_option",
            )
        for part in self.frames.parts:
            part.payload_bytes(self.ip_version)

    @property
    def ip_version(self) -> int:
        return 6 if family_of(self.server).name == "AF_INET6" else 4


@dataclasses.dataclass(frozen=True)
class _Sent:
    """What one sender says."""

    part: Part
    packets: int
    seconds: float
    said: str


class IperfMeasurer:
    """Sends with one iperf2 for each stream, all at once."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.path, self.version = probe(PROGRAMS["iperf2"])
        said = command.run([self.path, "--help"], limit_s=5)
        if iperf2.NO_FIN not in said.stdout + said.stderr:
            raise BenchError(
                f"iperf {self.version.text} has no {iperf2.NO_FIN}",
                remedy="Install a newer iperf2: 2.1.8 has it",
                code="tool_too_old",
            )
        self.sink = SinkClient(settings.server, settings.port, bind=settings.bind_address)
        self.streams = [part for part in settings.frames.parts for _number in range(settings.parallel)]

    @property
    def limits(self) -> Limits:
        return Limits(streams=len(self.streams))

    def now(self) -> float:
        return time.monotonic()

    def close(self) -> None:
        self.sink.close()

    @functools.cached_property
    def uncounted(self) -> int:
        """Datagrams that each sender sends and its final row does not tell of.

        :raises BenchError: it cannot be told.
        """
        address = "::1" if self.settings.ip_version == 6 else "127.0.0.1"
        with contextlib.closing(CountingSocket(address)) as counter:
            part = self.settings.frames.parts[0]
            argv = self._command(part, (address, counter.port), _CALIBRATION_PPS, _CALIBRATION_S)
            (found,) = self._run([(part, argv)], _CALIBRATION_S)
            uncounted = counter.total - found.packets
        if not 0 <= uncounted <= 4:
            raise BenchError(
                f"iperf {self.version.text} says that it sent {found.packets} datagrams and {uncounted:+d} arrived on "
                "this host itself",
                remedy="Its counts cannot be used: install another release",
                code="generator_uncounted",
            )
        return uncounted

    def probe(self, duration_s: float) -> float:
        reading = self.sink.read()
        sent = self._send(None, duration_s)
        self._settled(reading.datagrams, sum(one.packets for one in sent))
        rate = sum(one.packets / one.seconds for one in sent if one.seconds > 0)
        if rate <= 0:
            raise BenchError("iperf2 sent nothing", code="tool_error")
        return rate

    def measure(self, load_pps: float, duration_s: float) -> Observation:
        try:
            # asked for before any traffic, as it makes some
            uncounted = self.uncounted
            before = self.sink.read()
            started = time.time()
            sent = self._send(load_pps, duration_s)
            packets = sum(one.packets + uncounted for one in sent)
            arrived, damaged = self._settled(before.datagrams, packets, before.checksum_errors)
        except BenchError as error:
            return Observation(error=(error.code, error.message))
        seconds = max(one.seconds for one in sent)
        broken = [line for one in sent for line in one.said.strip().splitlines()]
        return Observation(
            counts=(Count(FORWARD, packets, arrived - damaged),),
            offered_s=seconds,
            window=(started, started + seconds),
            detail={
                "streams": [
                    {"frame_bytes": one.part.frame_bytes, "packets": one.packets + uncounted, "seconds": one.seconds}
                    for one in sent
                ],
                "damaged_packets": damaged,
                "said": broken[:5],
            },
        )

    def latency(self, load_pps: float, duration_s: float) -> dict[str, t.Any] | None:
        """By ping along the same path: there and back, the way back without load."""
        wish = ping.Wish(
            address=self.settings.server,
            count=max(1, round(duration_s / _PING_EVERY_S)),
            interval_s=_PING_EVERY_S,
            size_bytes=_PING_BYTES,
            bind=self.settings.bind_address,
            reply_timeout_s=1.0,
            time_limit_s=_EXTRA_S,
        )
        found: list[dict[str, t.Any]] = []
        if load_pps:
            # the load begins before it and ends after it
            around_s = duration_s + 2 * _PING_MARGIN_S

            def beside() -> None:
                time.sleep(_PING_MARGIN_S)
                found.append(ping.measure(wish))

            self._send(load_pps, around_s, beside)
        else:
            found.append(ping.measure(wish))
        del found[0]["raw"]
        return {"tool": "ping", "kind": "round trip", **found[0]}

    def _send(
        self, load_pps: float | None, duration_s: float, beside: t.Callable[[], None] | None = None
    ) -> list[_Sent]:
        shares = [part.share / self.settings.parallel for part in self.streams]
        rates = [None if load_pps is None else load_pps * share for share in shares]
        settings = self.settings
        return self._run(
            [
                (part, self._command(part, (settings.server, settings.port), rate, duration_s, settings.bind_address))
                for part, rate in zip(self.streams, rates)
            ],
            duration_s,
            beside,
        )

    def _command(
        self, part: Part, to: tuple[str, int], rate_pps: float | None, duration_s: float, bind: str | None = None
    ) -> list[str]:
        return iperf2.load_command(
            self.path,
            server=to[0],
            port=to[1],
            length_bytes=part.payload_bytes(self.settings.ip_version),
            rate_pps=rate_pps,
            duration_s=duration_s,
            bind_address=bind,
            ipv6=self.settings.ip_version == 6,
        )

    def _run(
        self,
        wanted: t.Sequence[tuple[Part, list[str]]],
        duration_s: float,
        beside: t.Callable[[], None] | None = None,
    ) -> list[_Sent]:
        """All at once. None outlives this call, also when it is broken off."""
        limit = time.monotonic() + duration_s + _EXTRA_S
        running: list[subprocess.Popen[bytes]] = []
        try:
            for _part, argv in wanted:
                running.append(command.start(argv, env={"TZ": "UTC"}))
            if beside is not None:
                beside()
            results = [command.finish(process, limit_s=limit - time.monotonic()) for process in running]
        finally:
            for process in running:
                if process.returncode is None:
                    command.kill(process)
                    process.wait()
        return [self._read(part, result) for (part, _argv), result in zip(wanted, results)]

    def _read(self, part: Part, result: command.Result) -> _Sent:
        if result.timed_out or result.rc:
            said = (result.stderr or result.stdout).strip().splitlines()
            how = "did not end" if result.timed_out else f"ended with {result.rc}"
            raise BenchError(f"iperf2 {how}: {said[-1] if said else 'it said nothing'}", code="tool_error")
        measured = iperf2.parse(
            result.stdout, end=CLIENT, interval_s=None, stderr=result.stderr, version=self.version.text
        )
        finals = [flow.final for flow in measured.of(FORWARD, SENDER) if flow.final is not None]
        if len(finals) != 1 or finals[0].packets is None:
            why = (measured.errors or ("its report has no final row",))[0]
            raise BenchError(f"iperf2: {why}", code="tool_error")
        return _Sent(part, finals[0].packets, finals[0].length_s, result.stderr)

    def _settled(self, before: int, sent: int, damaged_before: int = 0) -> tuple[int, int]:
        """What has arrived when nothing more comes, and how many of it were damaged."""
        deadline = time.monotonic() + self.settings.settle_s
        last, since = -1, time.monotonic()
        while True:
            reading = self.sink.read()
            arrived, now = reading.datagrams - before, time.monotonic()
            if arrived != last:
                last, since = arrived, now
            if arrived >= sent or now - since >= _QUIET_S or now > deadline:
                return arrived, max(0, reading.checksum_errors - damaged_before)
            time.sleep(_POLL_S)

    def profile(self) -> dict[str, t.Any]:
        settings = self.settings
        return {
            "generator": {"name": "iperf2", "version": self.version.text},
            "frames": settings.frames.as_dict(),
            "ip_version": settings.ip_version,
            "protocol": "UDP",
            "directions": [FORWARD],
            "streams": len(self.streams),
            "destination": {"address": settings.server, "port": settings.port, "count": 1},
            "modifiers": "none",
            "receiver": "datagrams that reached the receiver's UDP layer, counted by its kernel",
        }
