# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Trials along a path: a sender at one end, the kernel that counts at the other; one way, or both ways at once."""

from __future__ import annotations

import contextlib
import dataclasses
import time
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._search.sender import EXTRA_S, Sender, Sent
from ansible_collections.fastpath.bench.plugins.module_utils._search.verdict import Count, Limits, Observation
from ansible_collections.fastpath.bench.plugins.module_utils._traffic import ping
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.sink import Reading

#: Nothing may arrive for so long before it is taken for the end, and this is how long to wait for that at most.
_QUIET_S, _SETTLE_S, _POLL_S = 0.1, 2.0, 0.01
#: Round-trip times are measured with packets that are no load of their own.
_PING_EVERY_S, _PING_BYTES, _PING_MARGIN_S = 0.01, 56, 0.3


class Counter(t.Protocol):
    """What has arrived."""

    def read(self) -> Reading:
        """:raises BenchError: it is not known."""

    def close(self) -> None:
        """No more is asked."""


@dataclasses.dataclass
class Way:
    """One direction."""

    direction: str
    sender: Sender
    sink: Counter


class PathMeasurer:
    """Loads one direction, or both."""

    def __init__(self, ways: t.Sequence[Way], *, ping_to: str, ping_from: str | None = None) -> None:
        self.ways = list(ways)
        self._ping = (ping_to, ping_from)
        self.settle_s = _SETTLE_S

    @property
    def limits(self) -> Limits:
        return Limits(ahead_packets=max(way.sender.ahead_packets for way in self.ways))

    def now(self) -> float:
        return time.monotonic()

    def close(self) -> None:
        for way in self.ways:
            way.sender.close()
            way.sink.close()

    def least_pps(self, duration_s: float) -> float:
        return max(way.sender.least_pps(duration_s) for way in self.ways)

    def probe(self, duration_s: float) -> float:
        self._prepare()
        before = [way.sink.read() for way in self.ways]
        sent = self._send(None, duration_s)
        self._settled(before, sent)
        rates = [sum(one.packets / one.seconds for one in streams if one.seconds > 0) for streams in sent]
        for way, rate in zip(self.ways, rates):
            if rate <= 0:
                name = way.sender.describe()["name"]
                raise BenchError(f"{name} sent nothing {way.direction}", code="tool_error")
        return min(rates)

    def measure(self, load_pps: float, duration_s: float) -> Observation:
        try:
            self._prepare()
            before = [way.sink.read() for way in self.ways]
            started = time.time()
            sent = self._send(load_pps, duration_s)
            arrived = self._settled(before, sent)
        except BenchError as error:
            return Observation(error=(error.code, error.message))
        lengths = [max(one.seconds for one in streams) for streams in sent]
        # the one that is furthest from what was asked for tells of them all
        seconds = max(lengths, key=lambda length: abs(length - duration_s))
        counts = [
            Count(way.direction, sum(one.packets for one in streams), count - damaged)
            for way, streams, (count, damaged) in zip(self.ways, sent, arrived)
        ]
        said = [line for streams in sent for one in streams for line in one.said.strip().splitlines()]
        return Observation(
            counts=tuple(counts),
            offered_s=seconds,
            window=(started, started + max(lengths)),
            detail={
                "streams": [
                    {"direction": way.direction, **one.as_dict()}
                    for way, streams in zip(self.ways, sent)
                    for one in streams
                ],
                "damaged_packets": sum(damaged for _count, damaged in arrived),
                "said": said[:5],
            },
        )

    def latency(self, load_pps: float, duration_s: float) -> dict[str, t.Any] | None:
        """By ping along the same path: there and back, what is not loaded is without load."""
        wish = ping.Wish(
            address=self._ping[0],
            count=max(1, round(duration_s / _PING_EVERY_S)),
            interval_s=_PING_EVERY_S,
            size_bytes=_PING_BYTES,
            bind=self._ping[1],
            reply_timeout_s=1.0,
            time_limit_s=EXTRA_S,
        )
        found: list[dict[str, t.Any]] = []
        if load_pps:

            def beside() -> None:
                time.sleep(_PING_MARGIN_S)
                found.append(ping.measure(wish))

            # the load begins before it and ends after it
            self._prepare()
            self._send(load_pps, duration_s + 2 * _PING_MARGIN_S, beside)
        else:
            found.append(ping.measure(wish))
        del found[0]["raw"]
        return {"tool": "ping", "kind": "round trip", **found[0]}

    def profile(self) -> dict[str, t.Any]:
        settings = self.ways[0].sender.settings
        return {
            "generator": self.ways[0].sender.describe(),
            "frames": settings.frames.as_dict(),
            "ip_version": settings.ip_version,
            "protocol": "UDP",
            "directions": [way.direction for way in self.ways],
            "streams": len(settings.streams),
            "flows_per_stream": settings.flows,
            "destinations": [
                {
                    "direction": way.direction,
                    "address": way.sender.settings.server,
                    "port": way.sender.settings.port,
                    "count": 1,
                }
                for way in self.ways
            ],
            "modifiers": "none" if settings.flows == 1 else "source ports",
            "load": "constant",
            "deviations": [
                "no routing update and no learning frames before a trial: routes and neighbours are there before the"
                " search, and a warm-up trial that does not count comes first",
                f"after a trial, residual frames are waited for until none came for {_QUIET_S:g} s, at most"
                f" {self.settle_s:g} s, instead of 2 s",
                "no 5 s between two trials in which the device could restabilize",
            ],
            "receiver": "datagrams that reached the receiver's UDP layer, counted by its kernel",
        }

    def _prepare(self) -> None:
        for way in self.ways:
            way.sender.prepare()

    def _send(
        self, load_pps: float | None, duration_s: float, beside: t.Callable[[], None] | None = None
    ) -> list[list[Sent]]:
        """All directions at once."""
        with contextlib.ExitStack() as running:
            finish = [running.enter_context(way.sender.sending(load_pps, duration_s)) for way in self.ways]
            if beside is not None:
                beside()
            return [one() for one in finish]

    def _settled(self, before: t.Sequence[Reading], sent: t.Sequence[t.Sequence[Sent]]) -> list[tuple[int, int]]:
        """What has arrived of each direction when nothing more comes, and how many of it were damaged.

        All directions are waited for at once: one after the other, each trial would take longer.
        """
        waits = [_Wait(way.sink, was, sum(one.packets for one in streams), self.settle_s)
                 for way, was, streams in zip(self.ways, before, sent)]  # fmt: skip
        while True:
            over = [wait.over() for wait in waits]
            if all(over):
                return [(wait.arrived, wait.damaged) for wait in waits]
            time.sleep(_POLL_S)


class _Wait:
    """For the last packets of one direction."""

    def __init__(self, sink: Counter, before: Reading, sent: int, at_most_s: float) -> None:
        self._sink, self._before, self._sent = sink, before, sent
        self._since = time.monotonic()
        self._deadline = self._since + at_most_s
        self._over = False
        self.arrived, self.damaged = -1, 0

    def over(self) -> bool:
        if self._over:
            return True
        reading, now = self._sink.read(), time.monotonic()
        arrived = reading.datagrams - self._before.datagrams
        if arrived != self.arrived:
            self.arrived, self._since = arrived, now
        self.damaged = max(0, reading.checksum_errors - self._before.checksum_errors)
        self._over = arrived >= self._sent or now - self._since >= _QUIET_S or now > self._deadline
        return self._over
