# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""DPDK's own generator, dpdk-testpmd in its mode txonly, on the kernel's interface through the driver af_packet.

testpmd has no rate of its own: it sends as fast as its ring takes packets. So the kernel's token bucket behind the
ring holds it to the rate; what does not fit waits in the ring and is not dropped. What testpmd gave to the ring is
what is sent. It is started once, and told to begin and to stop for each trial.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import re
import select
import socket
import subprocess
import time
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common import command
from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError, ParseError
from ansible_collections.fastpath.bench.plugins.module_utils._search import promiscuous
from ansible_collections.fastpath.bench.plugins.module_utils._search.frames import FCS_BYTES
from ansible_collections.fastpath.bench.plugins.module_utils._search.sender import Finish, Sent, Settings
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.flow_run import WayOut, way_out

PROGRAM = "dpdk-testpmd"
_PROMPT = b"testpmd> "
#: Frames of the ring of a queue. Few, as what is in it at the end is sent after the end.
RING_FRAMES = 32
_SOURCE_PORT = 1024
_MEMORY_MB = 512
_TC_LIMIT_S, _START_S, _ANSWER_S = 5.0, 20.0, 5.0
#: By this handle our token bucket is known again, also when another process left it behind.
_HANDLE = "fb9e:"
#: Tokens are kept for a moment in which the host has no time: for this long, or longer up to a burst that rings take.
_BURST_S, _LONG_BURST_S, _BURST_FRAMES = 0.001, 0.01, 256
_QUEUES = 16
_STATISTICS = re.compile(r"Forward statistics for port 0 .*?\n.*?TX-packets:\s+(\d+)\s+TX-dropped:\s+(\d+)", re.DOTALL)
_CHATTER = re.compile(
    r"EAL: (?:Detected|RTE Version|Selected|Probing|Physical addresses|Static memory layout)|testpmd: (?:create|pref)"
)
_VERSION = re.compile(r"DPDK\s+(\d+\.\d+(?:\.\d+)?)")


@dataclasses.dataclass(frozen=True)
class Statistics:
    """What testpmd says at its stop."""

    packets: int
    #: That the ring had no room for. They were not sent.
    dropped: int


def parse_statistics(text: str) -> Statistics:
    """:raises ParseError: it is not there, or there twice."""
    found = _STATISTICS.findall(text)
    if len(found) != 1:
        raise ParseError(f"{len(found)} statistics of port 0 instead of one", line=text.strip()[-200:])
    return Statistics(int(found[0][0]), int(found[0][1]))


def complaint(text: str) -> str:
    """The line that says why; it may be followed by pages on how the program is used."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and not _CHATTER.match(line)]
    return (lines or ["it said nothing"])[0][:200]


class TokenBucket:
    """The rate of a device, as the kernel's tbf keeps it. Only in place of the kernel's default."""

    def __init__(self, device: str) -> None:
        self._device = device
        self._set = False

    def check(self) -> None:
        """:raises BenchError: somebody else set a queue discipline."""
        done = command.run(["tc", "-json", "qdisc", "show", "dev", self._device], limit_s=_TC_LIMIT_S).check()
        for row in json.loads(done.stdout or "[]"):
            if not row.get("root") or row.get("handle") in (None, "0:"):
                continue
            if row["handle"] == _HANDLE:
                self._set = True
                continue
            raise BenchError(
                f"{self._device} has the queue discipline {row.get('kind')} {row['handle']}, which somebody set",
                remedy="testpmd is held to a rate by one of its own: take that one away, or use another generator",
                code="qdisc_in_use",
            )

    def hold(self, rate_bps: float, burst_bytes: int, limit_bytes: int) -> None:
        words = ["tc", "qdisc", "replace", "dev", self._device, "root", "handle", _HANDLE, "tbf"]
        words += ["rate", f"{max(8, round(rate_bps))}bit", "burst", str(burst_bytes), "limit", str(limit_bytes)]
        command.run(words, limit_s=_TC_LIMIT_S).check()
        self._set = True

    def release(self) -> None:
        if self._set:
            command.run(["tc", "qdisc", "del", "dev", self._device, "root"], limit_s=_TC_LIMIT_S).check()
            self._set = False


class TestpmdSender:
    """One testpmd with a queue for each stream."""

    #: Not a test, whatever its name begins with.
    __test__ = False

    def __init__(self, settings: Settings) -> None:
        settings.only_ipv4("testpmd")
        if len(settings.frames.parts) != 1:
            raise BenchError("testpmd sends frames of one size", where="option frame",
                             remedy="Use iperf2 or flow for a mix", code="bad_option")  # fmt: skip
        if settings.flows != 1:
            raise BenchError("testpmd sends one flow", where="option flows",
                             remedy="Use the generator flow for many", code="bad_option")  # fmt: skip
        if settings.parallel > _QUEUES:
            raise BenchError(f"testpmd has at most {_QUEUES} queues on such a device", where="option parallel",
                             code="bad_option")  # fmt: skip
        if os.geteuid() != 0:
            raise BenchError("only root may send frames", remedy="Use become", code="no_permission")
        path = command.find_program(PROGRAM)
        if path is None:
            raise BenchError(
                f"{PROGRAM} is not on this host",
                remedy="Install it: Debian's package dpdk-dev has it",
                code="tool_absent",
            )
        self.settings = settings
        # what is in the ring when it is stopped is sent all the same
        self.ahead_packets = 2 * RING_FRAMES * settings.parallel
        self.path = path
        self.frame_bytes = settings.frames.parts[0].frame_bytes
        self._process: subprocess.Popen[bytes] | None = None
        self._bucket: TokenBucket | None = None
        self._claim: socket.socket | None = None
        self._put_back: t.Callable[[], None] | None = None
        self._version: str | None = None

    # ------------------------------------------------------------------ the program

    def prepare(self) -> None:
        if self._process is not None and self._process.poll() is None:
            return
        way = way_out(self.settings.server)
        if self._claim is None:
            self._claim = promiscuous.claim(way.device)
        if self._bucket is None:
            self._bucket = TokenBucket(way.device)
            self._bucket.check()
        if self._put_back is None:
            self._put_back = promiscuous.keep(way.device)
        self._process = command.start(self.command(way), with_stdin=True)
        try:
            said = self._until_prompt(_START_S)
        except BenchError:
            self._end()
            raise
        found = _VERSION.search(said)
        self._version = found[1] if found else None

    def command(self, way: WayOut) -> list[str]:
        settings, queues = self.settings, self.settings.parallel
        source = settings.bind_address or way.source
        cpus = ",".join(map(str, sorted(os.sched_getaffinity(0))))
        ring = f"framecnt={RING_FRAMES},framesz=2048,blocksz=4096"
        # past the queue discipline nothing would hold it to a rate
        device = f"net_af_packet0,iface={way.device},qpairs={queues},{ring},qdisc_bypass=0"
        # its own output is held back where no terminal is
        stdbuf = command.find_program("stdbuf")
        return [
            *((stdbuf, "-oL") if stdbuf else ()),
            self.path,
            # no hugepages, no card, no files, no sockets; the kernel may move its threads
            *("-v", "--no-huge", "-m", str(_MEMORY_MB), "--no-pci", "--no-telemetry", "--no-shconf"),
            "--lcores=" + ",".join(f"{core}@({cpus})" for core in range(queues + 1)),
            *("--vdev", device, "--"),
            *("--interactive", "--forward-mode=txonly", f"--nb-cores={queues}", f"--rxq={queues}", f"--txq={queues}"),
            *(f"--txpkts={self.frame_bytes - FCS_BYTES}", f"--eth-peer=0,{way.macs[0]}"),
            *(f"--tx-ip={source},{settings.server}", f"--tx-udp={_SOURCE_PORT},{settings.port}"),
            *("--total-num-mbufs=16384", "--no-lsc-interrupt"),
        ]

    def _tell(self, word: str) -> None:
        process = self._process
        if process is None or process.stdin is None:
            raise BenchError("testpmd does not run", code="tool_error")
        try:
            process.stdin.write(word.encode() + b"\n")
            process.stdin.flush()
        except OSError as error:
            raise BenchError(f"testpmd ended: {error.strerror}", code="tool_error") from error

    def _until_prompt(self, within_s: float) -> str:
        """What it printed up to where it waits for the next word."""
        process = self._process
        if process is None or process.stdout is None or process.stderr is None:
            raise BenchError("testpmd does not run", code="tool_error")
        said = {process.stdout: b"", process.stderr: b""}
        sources = list(said)
        limit = time.monotonic() + within_s
        # something else may be printed behind it, such as that the link is up
        while _PROMPT not in said[process.stdout]:
            ready = select.select(sources, [], [], max(0.0, limit - time.monotonic()))[0]
            for source in ready:
                data = os.read(source.fileno(), 1 << 16)
                said[source] += data
                if not data:
                    sources.remove(source)
            if not sources or not ready:
                why = "ended" if not sources else f"did not answer within {within_s:g} s"
                told = [text.decode("utf-8", "replace") for text in said.values()]
                raise BenchError(f"testpmd {why}: {complaint(told[1] + told[0])}", code="tool_error")
        return b"".join(said.values()).decode("utf-8", "replace")

    # ------------------------------------------------------------------ a trial

    def least_pps(self, duration_s: float) -> float:
        """What is in the ring at the end must be a small part of the whole."""
        return 4 * RING_FRAMES * self.settings.parallel / duration_s

    @contextlib.contextmanager
    def sending(self, load_pps: float | None, duration_s: float) -> t.Iterator[Finish]:
        self.prepare()
        bucket = t.cast(TokenBucket, self._bucket)
        size, ring = self.frame_bytes - FCS_BYTES, RING_FRAMES * self.settings.parallel
        early_s, at_once = 0.0, RING_FRAMES
        if load_pps is None:
            bucket.release()
        else:
            tokens = max(2, round(load_pps * _BURST_S), min(_BURST_FRAMES, round(load_pps * _LONG_BURST_S)))
            bucket.hold(load_pps * size * 8, tokens * size, (ring + tokens) * size * 2)
            # what it began it brings to its end
            at_once = max(1, min(RING_FRAMES, int(load_pps * duration_s) // 1000))
            # what waits in the ring, and the tokens of the beginning, are sent beside the rate's own
            early_s = (ring + tokens + at_once / 2) / load_pps
        self._tell(f"set burst {at_once}")
        self._until_prompt(_ANSWER_S)
        self._tell("start")
        self._until_prompt(_ANSWER_S)
        began = time.monotonic()
        stopped = False

        def finish() -> list[Sent]:
            nonlocal stopped
            time.sleep(max(0.0, began + duration_s - early_s - time.monotonic()))
            self._tell("stop")
            ended = time.monotonic()
            said = self._until_prompt(_ANSWER_S)
            stopped = True
            time.sleep(max(0.0, began + duration_s - time.monotonic()))
            found = parse_statistics(said)
            return [Sent(self.frame_bytes, found.packets, ended - began + early_s)]

        try:
            yield finish
        finally:
            if not stopped:
                self._end()

    def describe(self) -> dict[str, t.Any]:
        return {
            "name": "testpmd",
            "version": self._version,
            "mode": "txonly on af_packet, held to the rate by the kernel's token bucket",
        }

    def _end(self) -> None:
        """At the end of its input it stops and ends by itself."""
        if self._process is not None:
            process, self._process = self._process, None
            command.finish(process, limit_s=2.0)

    def close(self) -> None:
        """Each is put back, also when another one could not be."""
        with contextlib.ExitStack() as stack:
            if self._claim is not None:
                stack.callback(self._claim.close)
                self._claim = None
            if self._bucket is not None:
                stack.callback(self._bucket.release)
            if self._put_back is not None:
                stack.callback(self._put_back)
            self._end()
