# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Round-trip times by ``ping`` of iputils: its summary, and a run of it."""

from __future__ import annotations

import dataclasses
import math
import re
import time
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common import command
from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError, ParseError

_NUMBER = r"\d+(?:\.\d+)?"
_COUNTS = re.compile(
    r"^(?P<sent>\d+) packets transmitted, (?P<received>\d+) received"
    r"(?P<more>(?:, \+\d+ (?:duplicates|corrupted|errors))*)"
    rf"(?:, (?P<loss>{_NUMBER})% packet loss)?(?:, time \d+ms)?$",
    re.MULTILINE,
)
_MORE = re.compile(r"\+(\d+) (\w+)")
_TIMES = re.compile(
    rf"^rtt min/avg/max/mdev = (?P<min>{_NUMBER})/(?P<mean>{_NUMBER})/(?P<max>{_NUMBER})/(?P<mdev>{_NUMBER}) ms"
    r"(?:, .*)?$",
    re.MULTILINE,
)
#: ping ends with 0 when something came back, with 1 when nothing did; anything else is that it did not run.
_RAN = (0, 1)


@dataclasses.dataclass(frozen=True)
class RoundTrips:
    """What one run of ping found. Times are None when nothing came back, never 0."""

    transmitted: int
    received: int
    duplicates: int
    errors: int
    min_ms: float | None
    mean_ms: float | None
    max_ms: float | None
    mdev_ms: float | None

    @property
    def loss_ratio(self) -> float | None:
        """None when nothing was sent."""
        return 1 - self.received / self.transmitted if self.transmitted else None


@dataclasses.dataclass(frozen=True)
class Wish:
    """What to run."""

    address: str
    count: int
    interval_s: float
    size_bytes: int
    bind: str | None
    reply_timeout_s: float
    time_limit_s: float

    def check(self) -> None:
        """:raises BenchError: an option is not possible."""
        above_zero = ("count", "interval_s", "reply_timeout_s", "time_limit_s")
        for name in above_zero:
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0):
                raise BenchError(f"{value} is not possible", where=name, remedy="Give a number above 0")
        if not self.address or self.address.startswith("-"):
            raise BenchError(f"{self.address!r} is no address", where="address")
        # without room for a time stamp ping tells no times
        if not 16 <= self.size_bytes <= 65507:
            raise BenchError(f"{self.size_bytes} is not possible", where="size_bytes", remedy="Give 16 to 65507")

    @property
    def argv(self) -> list[str]:
        """``-q``: a line for each reply would cost time between two of them."""
        words = ["ping", "-q", "-n", "-c", str(self.count), "-i", f"{self.interval_s:g}", "-s", str(self.size_bytes)]
        words += ["-W", f"{self.reply_timeout_s:g}"]
        return [*words, *(["-I", self.bind] if self.bind else []), self.address]


def parse_ping(text: str) -> RoundTrips:
    """The summary that ping prints at its end.

    :raises ParseError: there is none, or it contradicts itself.
    """
    text = text.replace("\r\n", "\n")
    counts = _COUNTS.findall(text)
    if len(counts) != 1:
        last = next((line for line in reversed(text.splitlines()) if line.strip()), "")
        raise ParseError(f"ping printed {len(counts)} summaries instead of one", line=last)
    found = t.cast("re.Match[str]", _COUNTS.search(text))
    sent, received = int(found["sent"]), int(found["received"])
    more = {name: int(count) for count, name in _MORE.findall(found["more"])}
    times = _TIMES.search(text)
    if received > sent:
        raise ParseError("ping received more than it sent", line=found[0])
    if found["loss"] is not None and sent and abs(float(found["loss"]) / 100 - (1 - received / sent)) > 0.01:
        raise ParseError("ping's loss is not that of its own counts", line=found[0])
    if received and times is None:
        raise ParseError("ping received replies and tells no times", line=found[0])
    if times is not None and (not received or not float(times["min"]) <= float(times["mean"]) <= float(times["max"])):
        raise ParseError("ping's times contradict themselves", line=times[0])
    return RoundTrips(
        transmitted=sent,
        received=received,
        duplicates=more.get("duplicates", 0),
        errors=more.get("errors", 0),
        min_ms=float(times["min"]) if times else None,
        mean_ms=float(times["mean"]) if times else None,
        max_ms=float(times["max"]) if times else None,
        mdev_ms=float(times["mdev"]) if times else None,
    )


def measure(wish: Wish) -> dict[str, t.Any]:
    """Run ping, and return the record of it. That nothing came back is a record too.

    :raises BenchError: ping is not there, refused, or did not end.
    """
    started = time.time()
    limit_s = wish.count * wish.interval_s + wish.reply_timeout_s + wish.time_limit_s
    done = command.run(wish.argv, limit_s=limit_s).ended()
    ended = time.time()
    if done.rc not in _RAN:
        done.check()
    trips = parse_ping(done.stdout)
    lost = trips.received == 0
    return {
        "status": "failed" if lost else "ok",
        "code": "no_reply" if lost else None,
        "reason": f"none of {trips.transmitted} packets to {wish.address} was answered" if lost else None,
        "started": started,
        "ended": ended,
        **dataclasses.asdict(trips),
        "loss_ratio": trips.loss_ratio,
        "command": wish.argv,
        "raw": done.stdout,
    }
