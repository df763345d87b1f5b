# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""TRex as the sender, stateless (STL), where the user has it: on the kernel's interface, by TRex's mode for small
machines. Its server is started once, and told of each trial."""

from __future__ import annotations

import contextlib
import os
import pathlib
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._search import promiscuous, trex_driver
from ansible_collections.fastpath.bench.plugins.module_utils._search.sender import (
    AHEAD_PACKETS,
    EXTRA_S,
    Finish,
    Sent,
    Settings,
)
from ansible_collections.fastpath.bench.plugins.module_utils._traffic import flows
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.flow_run import way_out

#: TRex sends no smaller frame, and a ring of the kernel that it asks for has no room for a much larger one.
LEAST_BYTES, MOST_BYTES = 64, 1518


class TrexSender:
    """One TRex with a stream for each of ours."""

    def __init__(self, settings: Settings) -> None:
        settings.only_ipv4("trex")
        if settings.flows != 1:
            raise BenchError("trex sends one flow of each stream", where="option flows",
                             remedy="Use the generator flow for many", code="bad_option")  # fmt: skip
        for part in settings.frames.parts:
            if not LEAST_BYTES <= part.frame_bytes <= MOST_BYTES:
                raise BenchError(f"trex sends no frame of {part.frame_bytes} bytes here", where="option frame",
                                 remedy=f"Use {LEAST_BYTES} to {MOST_BYTES}", code="bad_option")  # fmt: skip
        if os.geteuid() != 0:
            raise BenchError("only root may send frames", remedy="Use become", code="no_permission")
        for name in (trex_driver.SERVER, trex_driver.CLIENT):
            if not pathlib.Path(settings.trex_dir, name).exists():
                raise BenchError(
                    f"no TRex is there: it has no {name}",
                    where=settings.trex_dir,
                    remedy="Unpack a release of TRex on this host, and give its folder as trex_dir",
                    code="tool_absent",
                )
        self.settings = settings
        # asked for here: a search without a way to the receiver does not begin
        self._way = way_out(settings.server)
        self._claim = promiscuous.claim(self._way.device)
        self.ahead_packets = AHEAD_PACKETS * len(settings.streams)
        self._driver: trex_driver.Driver | None = None
        self._frames: list[str] = []

    def prepare(self) -> None:
        if self._driver is not None:
            return
        settings, way = self.settings, self._way
        source = settings.bind_address or way.source
        target = (settings.server, settings.port)
        self._frames = [
            flows.frames(way.macs, [pair], target, part.payload_bytes(4)).hex()
            for part, pair in zip(settings.streams, flows.ends(source, len(settings.streams), 1))
        ]
        place = trex_driver.Place(settings.trex_dir, way, max(os.sched_getaffinity(0)))
        self._driver = trex_driver.Driver(place)

    @contextlib.contextmanager
    def sending(self, load_pps: float | None, duration_s: float) -> t.Iterator[Finish]:
        self.prepare()
        driver = t.cast(trex_driver.Driver, self._driver)
        streams = self.settings.streams
        counts: list[int | None] = [None] * len(streams)
        if load_pps is not None:
            counts = list(self.settings.counts(int(load_pps * duration_s)))
        rate = trex_driver.TOO_MANY_PPS if load_pps is None else load_pps
        wanted = [
            {"frame": frame, "packets": count, "pps": rate * part.share / self.settings.parallel}
            for frame, part, count in zip(self._frames, streams, counts)
        ]
        finished = False

        def finish() -> list[Sent]:
            nonlocal finished
            said = driver.answer(duration_s + EXTRA_S)
            finished = True
            # TRex counts its port. The streams go in step, so the sum is exact, and each one's part that of the recipe.
            parts = self.settings.counts(int(said["packets"]))
            return [Sent(part.frame_bytes, packets, said["seconds"]) for part, packets in zip(streams, parts)]

        try:
            driver.order({"streams": wanted, "duration_s": duration_s})
            driver.answer(EXTRA_S)
            yield finish
        finally:
            if not finished:  # its answer would be taken for that of the next trial
                self._end()

    def least_pps(self, duration_s: float) -> float:
        return 0.0

    def describe(self) -> dict[str, t.Any]:
        return {
            "name": "trex",
            "version": None if self._driver is None else self._driver.version,
            "mode": "STL on af_packet, low end",
        }

    def close(self) -> None:
        self._end()
        self._claim.close()

    def _end(self) -> None:
        if self._driver is not None:
            driver, self._driver = self._driver, None
            driver.close()
