# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""iperf2 as the sender: one process for each stream, all at once.

iperf2 does not tell exactly how many datagrams it sent: its final row leaves out the closing one, which it sends once
when it waits for no report, and counts differ between releases. So before the first trial it is measured against a
counting socket on this host.
"""

from __future__ import annotations

import contextlib
import functools
import subprocess
import time
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common import command
from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._search.frames import Part
from ansible_collections.fastpath.bench.plugins.module_utils._search.sender import (
    AHEAD_PACKETS,
    EXTRA_S,
    Finish,
    Sent,
    Settings,
)
from ansible_collections.fastpath.bench.plugins.module_utils._traffic import iperf2
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.counting import CountingSocket
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.iperf import PROGRAMS, probe
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.record import CLIENT, FORWARD, SENDER

_CALIBRATION_PPS, _CALIBRATION_S = 1000.0, 0.2


class IperfSender:
    """Sends with one iperf2 for each stream."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.ahead_packets = AHEAD_PACKETS * len(settings.streams)
        self.path, self.version = probe(PROGRAMS["iperf2"])
        said = command.run([self.path, "--help"], limit_s=5)
        if iperf2.NO_FIN not in said.stdout + said.stderr:
            raise BenchError(
                f"iperf {self.version.text} has no {iperf2.NO_FIN}",
                remedy="Install a newer iperf2: 2.1.8 has it",
                code="tool_too_old",
            )

    def prepare(self) -> None:
        _counted = self.uncounted

    @functools.cached_property
    def uncounted(self) -> int:
        """Datagrams that each sender sends and its final row does not tell of.

        :raises BenchError: it cannot be told.
        """
        address = "::1" if self.settings.ip_version == 6 else "127.0.0.1"
        with contextlib.closing(CountingSocket(address)) as counter:
            part = self.settings.frames.parts[0]
            argv = self._command(part, (address, counter.port), _CALIBRATION_PPS, _CALIBRATION_S)
            with self._running([(part, argv)], _CALIBRATION_S) as finish:
                (found,) = finish()
            uncounted = counter.total - found.packets
        if not 0 <= uncounted <= 4:
            raise BenchError(
                f"iperf {self.version.text} says that it sent {found.packets} datagrams and {uncounted:+d} arrived on "
                "this host itself",
                remedy="Its counts cannot be used: install another release",
                code="generator_uncounted",
            )
        return uncounted

    @contextlib.contextmanager
    def sending(self, load_pps: float | None, duration_s: float) -> t.Iterator[Finish]:
        settings, uncounted = self.settings, self.uncounted
        to, bind = (settings.server, settings.port), settings.bind_address
        wanted = []
        for part in settings.streams:
            rate = None if load_pps is None else load_pps * part.share / settings.parallel
            wanted.append((part, self._command(part, to, rate, duration_s, bind)))

        with self._running(wanted, duration_s) as finish:
            yield lambda: [Sent(one.frame_bytes, one.packets + uncounted, one.seconds, one.said) for one in finish()]

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

    @contextlib.contextmanager
    def _running(self, wanted: t.Sequence[tuple[Part, list[str]]], duration_s: float) -> t.Iterator[Finish]:
        """All at once. None outlives this context, also when it is broken off."""
        limit = time.monotonic() + duration_s + EXTRA_S
        running: list[subprocess.Popen[bytes]] = []

        def finish() -> list[Sent]:
            results = [command.finish(process, limit_s=limit - time.monotonic()) for process in running]
            return [self._read(part, result) for (part, _argv), result in zip(wanted, results)]

        try:
            for _part, argv in wanted:
                running.append(command.start(argv, env={"TZ": "UTC"}))
            yield finish
        finally:
            for process in running:
                if process.returncode is None:
                    command.kill(process)
                    process.wait()

    def _read(self, part: Part, result: command.Result) -> Sent:
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
        return Sent(part.frame_bytes, finals[0].packets, finals[0].length_s, result.stderr)

    def least_pps(self, duration_s: float) -> float:
        return 0.0

    def describe(self) -> dict[str, t.Any]:
        return {"name": "iperf2", "version": self.version.text}

    def close(self) -> None:
        """There is nothing to close."""
