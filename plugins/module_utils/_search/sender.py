# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What sends in a trial. A sender is made once with the traffic of a search, and sends it at many rates."""

from __future__ import annotations

import contextlib
import dataclasses
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._host.path_wire import family_of
from ansible_collections.fastpath.bench.plugins.module_utils._search.frames import Frames, Part
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.flows import PORTS

#: A sender has this long to come to its end after the time of a trial.
EXTRA_S = 15.0
#: By so many packets each stream of a paced sender may be ahead of its time.
AHEAD_PACKETS = 16


@dataclasses.dataclass(frozen=True)
class Settings:
    """The traffic, apart from its rate and duration."""

    server: str
    port: int
    frames: Frames
    #: Streams for each frame size.
    parallel: int = 1
    #: Source ports of each stream, for senders that make their own frames.
    flows: int = 1
    bind_address: str | None = None
    #: The folder of the user's TRex, for the sender that is one.
    trex_dir: str = "/opt/trex"

    def __post_init__(self) -> None:
        for name, value, most in (
            ("port", self.port, 65535),
            ("parallel", self.parallel, 64),
            ("flows", self.flows, PORTS),
        ):
            if not 1 <= value <= most:
                raise BenchError(f"{value} is not possible", where=f"option {name}", remedy=f"Use 1 to {most}",
                                 code="bad_option")  # fmt: skip
        for part in self.frames.parts:
            part.payload_bytes(self.ip_version)

    @property
    def ip_version(self) -> int:
        return 6 if family_of(self.server).name == "AF_INET6" else 4

    @property
    def streams(self) -> list[Part]:
        """The frame size of each stream."""
        return [part for part in self.frames.parts for _number in range(self.parallel)]

    def counts(self, packets: int) -> list[int]:
        """So many packets over the streams, by the recipe; their sum is exact."""
        edges, share = [0], 0.0
        for part in self.streams:
            share += part.share / self.parallel
            edges.append(round(share * packets))
        return [after - before for before, after in zip(edges, edges[1:])]

    def only_ipv4(self, generator: str) -> None:
        """:raises BenchError: the traffic is not IPv4, which is all that this sender makes."""
        if self.ip_version != 4:
            raise BenchError(
                f"{generator} sends IPv4 only",
                where="option server",
                remedy="Use an IPv4 address, or the generator iperf2",
                code="bad_option",
            )


@dataclasses.dataclass(frozen=True)
class Sent:
    """What one stream sent."""

    frame_bytes: int
    packets: int
    seconds: float
    #: What the tool printed on its side channel.
    said: str = ""

    def as_dict(self) -> dict[str, t.Any]:
        return {"frame_bytes": self.frame_bytes, "packets": self.packets, "seconds": self.seconds}


#: Waits for the end of a trial, and says what was sent.
#: Raises a BenchError when the tool failed.
Finish = t.Callable[[], "list[Sent]"]


class Sender(t.Protocol):
    """Sends one traffic."""

    settings: Settings

    @property
    def ahead_packets(self) -> int:
        """By so many packets it may be ahead of its time."""

    def prepare(self) -> None:
        """All that makes traffic of its own, or takes long. Asked for before each trial; does it once.

        :raises BenchError: it cannot send.
        """

    def sending(self, load_pps: float | None, duration_s: float) -> contextlib.AbstractContextManager[Finish]:
        """Begin to send at a rate, or as fast as it goes; at the end of the context nothing sends any more."""

    def least_pps(self, duration_s: float) -> float:
        """The lowest rate that it can keep in a trial of this length."""

    def describe(self) -> dict[str, t.Any]:
        """Name and version, and what else belongs in a report."""

    def close(self) -> None:
        """Put back what it changed. It may be asked for twice."""
