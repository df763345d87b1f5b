# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The network simulator of the VPP in memory, with the habits of VPP 26.06.

Enabling counts, so that twice needs disabling twice. ``show nsim`` goes on
naming what was switched off. Nothing can be taken back but by a restart.
"""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.fastpath.bench.tests.unit.plugins.module_utils._vpp.fake_nat44 import NatRefuse


@dataclasses.dataclass
class Nsim:
    config: dict[str, int] = dataclasses.field(default_factory=dict)
    poll_main: bool = False
    output: dict[int, int] = dataclasses.field(default_factory=dict)
    crossed: dict[int, int] = dataclasses.field(default_factory=dict)
    #: What was ever told to it.
    told_output: list[int] = dataclasses.field(default_factory=list)
    told_pair: tuple[int, int] = (0, 0)


def _part(packets: int) -> str:
    return f"{1 / packets:.5f}".removeprefix("0") if packets else "0"


def _delay(seconds: float) -> str:
    if seconds < 1e-3:
        return f"{seconds * 1e6:.1f} us"
    return f"{seconds * 1e3:.1f} ms" if seconds < 1 else f"{seconds:f} sec"


def _rate(rate: float) -> str:
    for least, unit in ((1e9, "gbps"), (1e6, "mbps"), (1e3, "kbps")):
        if rate >= least:
            return f"{rate / least:.1f} {unit}"
    return f"{rate:f} bps"


class NsimRequests:
    """The requests. Mixed into the session of the VPP in memory."""

    vpp: t.Any

    def do_nsim_configure2(
        self,
        *,
        delay_in_usec: int,
        average_packet_size: int,
        bandwidth_in_bits_per_second: int,
        packets_per_drop: int,
        packets_per_reorder: int,
    ) -> None:
        for wrong, retval in (
            (bandwidth_in_bits_per_second == 0, -7),
            (delay_in_usec == 0, -8),
            (not 64 <= average_packet_size <= 9000, -150),
        ):
            if wrong:
                raise NatRefuse(retval)
        self.vpp.nsim.config = {
            "delay": delay_in_usec,
            "size": average_packet_size,
            "rate": bandwidth_in_bits_per_second,
            "drop": packets_per_drop,
            "reorder": packets_per_reorder,
        }

    def do_nsim_output_feature_enable_disable(self, *, enable_disable: bool, sw_if_index: int) -> None:
        self._configured()
        self._physical(sw_if_index, -2)
        sim = self.vpp.nsim
        sim.told_output = sorted({*sim.told_output, sw_if_index})
        _count(sim.output, sw_if_index, enable_disable)

    def do_nsim_cross_connect_enable_disable(
        self, *, enable_disable: bool, sw_if_index0: int, sw_if_index1: int
    ) -> None:
        self._physical(sw_if_index0, -2)
        self._physical(sw_if_index1, -10)
        self._configured()
        sim = self.vpp.nsim
        sim.told_pair = (sw_if_index0, sw_if_index1)
        for index in sim.told_pair:
            _count(sim.crossed, index, enable_disable)

    def _configured(self) -> None:
        if not self.vpp.nsim.config:
            raise NatRefuse(-100)

    def _physical(self, index: int, absent: int) -> None:
        if index not in self.vpp.interfaces:
            raise NatRefuse(absent)
        if self.vpp.interfaces[index].parent is not None:
            raise NatRefuse(-2)

    # The command line

    def nsim_set(self, words: list[str]) -> str:
        numbers = dict(zip(words[2:], words[3:]))
        self.do_nsim_configure2(
            delay_in_usec=int(numbers["delay"]),
            average_packet_size=int(numbers["packet-size"]),
            bandwidth_in_bits_per_second=int(numbers["bandwidth"]),
            packets_per_drop=0,
            packets_per_reorder=0,
        )
        self.vpp.nsim.poll_main = self.vpp.nsim.poll_main or words[-1] == "poll-main-thread"
        return self.nsim_show(words)

    def nsim_show(self, _words: list[str]) -> str:
        sim, workers = self.vpp.nsim, max(1, self.vpp.workers)
        if not sim.config:
            raise NatRefuse(-1, "show nsim: Network simulator not configured\n")
        delay = sim.config["delay"] * 1e-6
        wheel = int(delay * sim.config["rate"] / 8 + 0.5) // workers // sim.config["size"] + 1
        lines = ["configuration", f" delay: {_delay(delay)}", f" drop fraction: {_part(sim.config['drop'])}"]
        lines += [f" reorder fraction: {_part(sim.config['reorder'])}", f" packet size: {sim.config['size']}"]
        lines += [f" worker wheel size: {wheel}", f" throughput: {_rate(sim.config['rate'])}"]
        lines += [f" poll main thread: {int(sim.poll_main)}", " memory: 4k bytes per thread 4k bytes total", ""]
        names = {index: one.name for index, one in self.vpp.interfaces.items()}
        if sim.told_pair[0]:
            lines += ["cross-connect", " {} and {}".format(*(names[index] for index in sim.told_pair))]
        elif sim.told_output:
            lines += ["output feature arcs to:", *(f" {names[index]} {index}" for index in sim.told_output)]
        else:
            lines.append(" nsim not enabled")
        return "\n".join(lines) + "\n"

    def nsim_features(self, one: t.Any) -> str:
        index = getattr(one, "index", None)
        crossed = ["  nsim\n"] * self.vpp.nsim.crossed.get(index, 0)
        output = ["  nsim-output-feature\n"] * self.vpp.nsim.output.get(index, 0)
        none = ["  none configured\n"]
        return "".join(["\ndevice-input:\n", *(crossed or none), "\ninterface-output:\n", *(output or none)])


def _count(held: dict[int, int], index: int, more: bool) -> None:
    held[index] = max(0, held.get(index, 0) + (1 if more else -1))
