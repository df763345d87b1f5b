# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A device under test that does not exist: a queue of known size before a server of known rate, with known noise.

It forwards ``rate_pps``, and stops for ``stall_s`` each ``stall_every_s``: as a software router whose core the
operating system takes away for a moment. Time is simulated, so that a search of an hour takes a moment.
"""

from __future__ import annotations

import dataclasses
import math
import random
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._search.verdict import Count, Limits, Observation


@dataclasses.dataclass(frozen=True)
class Device:
    """What is simulated."""

    rate_pps: float = 1_000_000.0
    queue_packets: int = 256
    stall_s: float = 0.001
    stall_every_s: float = 10.0
    #: Standard deviation of the rate from trial to trial, as a part of it.
    jitter: float = 0.0003
    #: What the generator can send at most.
    generator_pps: float = 14_880_952.0
    #: Between two trials.
    pause_s: float = 0.05
    seed: int = 1

    def __post_init__(self) -> None:
        for name, above_zero in (
            *(("rate_pps", True), ("generator_pps", True), ("stall_every_s", True)),
            *(("queue_packets", False), ("stall_s", False), ("jitter", False), ("pause_s", False)),
        ):
            value = float(getattr(self, name))
            if not math.isfinite(value) or value < 0 or (above_zero and value == 0):
                raise ValueError(f"{name} {value:g}")


class SimulatedMeasurer:
    """Trials on a simulated device. Also counts what a search cost."""

    def __init__(self, device: Device = Device()) -> None:
        self.device = device
        self.clock_s = 0.0
        self.traffic_s = 0.0
        self.trials = 0
        self._random = random.Random(device.seed)
        self._phase_s = self._random.uniform(0, device.stall_every_s)

    @property
    def limits(self) -> Limits:
        return Limits()

    def measure(self, load_pps: float, duration_s: float) -> Observation:
        device = self.device
        began, ends = self.clock_s, self.clock_s + duration_s
        load = min(load_pps, device.generator_pps)
        sent = int(load * duration_s)
        rate = device.rate_pps * (1 + self._random.gauss(0, device.jitter))
        lost = max(0.0, (load - rate) * duration_s - device.queue_packets)
        # what comes in while it stands still fills the queue, which is full already above its rate
        room = device.queue_packets if load < rate else 0
        lost += self._stalls(began, ends) * max(0.0, load * device.stall_s - room)
        received = sent - min(sent, int(lost))
        self.clock_s = ends + device.pause_s
        self.traffic_s += duration_s
        self.trials += 1
        return Observation((Count("forward", sent, received),), duration_s, window=(began, ends))

    def _stalls(self, began: float, ends: float) -> int:
        every = self.device.stall_every_s
        first = math.ceil((began - self._phase_s) / every)
        return max(0, math.ceil((ends - self._phase_s) / every) - first)

    def probe(self, duration_s: float) -> float:
        self.measure(self.device.generator_pps, duration_s)
        return self.device.generator_pps

    def least_pps(self, duration_s: float) -> float:
        return 0.0

    def latency(self, load_pps: float, duration_s: float) -> dict[str, t.Any] | None:
        return None

    def profile(self) -> dict[str, t.Any]:
        return {"generator": {"name": "simulated", **dataclasses.asdict(self.device)}, "directions": ["forward"]}

    def now(self) -> float:
        return self.clock_s
