# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The collection's own sender (that of flow_run): frames made before the clock runs, many of them at a system call.

Each stream is a process of its own, as one thread of Python does not fill two cores.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import json
import os
import platform
import select
import signal
import time
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._search.sender import (
    AHEAD_PACKETS,
    EXTRA_S,
    Finish,
    Sent,
    Settings,
)
from ansible_collections.fastpath.bench.plugins.module_utils._traffic import flows
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.flow_run import WayOut, way_out

#: A sender of the right rate is at its last packet a moment later than the trial's time: a timer is no finer.
_GRACE_S = 0.002
_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG
_ANSWER_LIMIT = 65536
_AT_LEAST_FRAMES = 4 * flows.BATCH


class FlowSender:
    """Sends out of the device that leads to the receiver, below this host's network stack."""

    def __init__(self, settings: Settings) -> None:
        settings.only_ipv4("flow")
        if settings.flows * len(settings.streams) > flows.PORTS:
            raise BenchError(
                f"{settings.flows} flows of each of {len(settings.streams)} streams are more than there are ports",
                where="option flows",
                remedy=f"Use {flows.PORTS // len(settings.streams)} or fewer",
                code="bad_option",
            )
        if os.geteuid() != 0:
            raise BenchError("only root may send frames", remedy="Use become", code="no_permission")
        self.settings = settings
        self.ahead_packets = AHEAD_PACKETS * len(settings.streams)
        self._open = contextlib.ExitStack()

    def prepare(self) -> None:
        _made = self._senders

    @functools.cached_property
    def way(self) -> WayOut:
        return way_out(self.settings.server)

    @functools.cached_property
    def _senders(self) -> list[flows.Sender]:
        settings, way = self.settings, self.way
        source = settings.bind_address or way.source
        streams = settings.streams
        pairs = flows.ends(source, settings.flows * len(streams), 1)
        made = []
        for number, part in enumerate(streams):
            own = pairs[number * settings.flows : (number + 1) * settings.flows]
            data = flows.frames(way.macs, own, (settings.server, settings.port), part.payload_bytes(4))
            # a system call takes frames that lie one behind the other, so there must be more than one
            copies = -(-_AT_LEAST_FRAMES // len(own))
            one = flows.Sender(way.device, data * copies, len(data) // len(own))
            self._open.callback(one.close)
            made.append(one)
        return made

    @contextlib.contextmanager
    def sending(self, load_pps: float | None, duration_s: float) -> t.Iterator[Finish]:
        senders, streams = self._senders, self.settings.streams
        counts: list[int | None] = [None] * len(streams)
        if load_pps is not None:
            counts = list(self.settings.counts(int(load_pps * duration_s)))
        children: list[tuple[int, int]] = []

        def finish() -> list[Sent]:
            limit = time.monotonic() + duration_s + EXTRA_S
            return [Sent(part.frame_bytes, *_answer(pipe, limit)) for part, (_pid, pipe) in zip(streams, children)]

        try:
            for one, count in zip(senders, counts):
                children.append(_child(one, count, duration_s))
            yield finish
        finally:
            for pid, pipe in children:
                os.close(pipe)
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)

    def least_pps(self, duration_s: float) -> float:
        return 0.0

    def describe(self) -> dict[str, t.Any]:
        return {"name": "flow", "version": f"Python {platform.python_version()}", "call": "sendmmsg on a packet socket"}

    def close(self) -> None:
        self._open.close()


def _child(sender: flows.Sender, packets: int | None, duration_s: float) -> tuple[int, int]:
    """A process that sends; its number, and the pipe on which it tells how many and how long."""
    parent = os.getpid()
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid:
        os.close(write_end)
        return pid, read_end
    code = 1
    try:
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, int(signal.SIGKILL))
        if os.getppid() == parent:
            os.write(write_end, json.dumps(_send(sender, packets, duration_s)).encode())
            code = 0
    finally:
        # nothing of the module may run in here
        os._exit(code)


def _send(sender: flows.Sender, packets: int | None, duration_s: float) -> dict[str, t.Any]:
    until = time.monotonic() + duration_s
    rate = 0.0
    if packets is not None:
        rate, until = packets / duration_s, until + _GRACE_S
        if packets == 0:
            return {"packets": 0, "seconds": duration_s}
    try:
        sent, began, ended = sender.run(packets, rate=rate, until=until)
    except BenchError as error:
        return {"error": error.message, "code": error.code}
    # the last packet's own time belongs to it
    return {"packets": sent, "seconds": ended - began + (1 / rate if rate and sent == packets else 0)}


def _answer(pipe: int, limit: float) -> tuple[int, float]:
    data = b""
    while True:
        left = limit - time.monotonic()
        if left <= 0 or not select.select([pipe], [], [], left)[0]:
            raise BenchError("a sender did not end", code="tool_error")
        part = os.read(pipe, _ANSWER_LIMIT)
        if not part:
            break
        data += part
    if not data:
        raise BenchError("a sender ended without a word", code="tool_error")
    said = json.loads(data)
    if "error" in said:
        raise BenchError(said["error"], code="tool_error")
    return int(said["packets"]), float(said["seconds"])
