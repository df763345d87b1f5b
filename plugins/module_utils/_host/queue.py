# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of single queues: receive and transmit packet steering, receive flow steering.

The key is ``interface/queue``: ``eth1/rx-0``, ``eth1/tx-3``.
"""

from __future__ import annotations

import os
import re
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._host.access import Access, NotSupported, NotThere
from ansible_collections.fastpath.bench.plugins.module_utils._host.cpumask import (
    format_list,
    format_mask,
    parse_list,
    parse_mask,
)
from ansible_collections.fastpath.bench.plugins.module_utils._host.device import DeviceKnob
from ansible_collections.fastpath.bench.plugins.module_utils._host.knob import (
    RANK_PER_QUEUE,
    Knob,
    Value,
    register,
)

_QUEUE = re.compile(r"(rx|tx)-(\d+)")


def power_of_two(count: int) -> int:
    """The size that the kernel makes of one that is asked for: its flow tables are powers of two."""
    if count < 0:
        raise BenchError(f"a flow table cannot have {count} entries", remedy="Give 0 or more", code="bad_value")
    return 1 << (count - 1).bit_length() if count > 0 else 0


def queues_of(access: Access, device: str, direction: str) -> list[str]:
    """The names of an interface's queues in their order: rx-0, rx-1 … rx-10."""
    names = access.list_dir(os.path.join(access.sys, "class/net", device, "queues"))
    mine = [match for match in map(_QUEUE.fullmatch, names) if match and match[1] == direction]
    return [match[0] for match in sorted(mine, key=lambda match: int(match[2]))]


def possible_cpus(access: Access) -> frozenset[int]:
    """The CPUs that this machine can have."""
    return parse_list(access.read_file(os.path.join(access.sys, "devices/system/cpu/possible")))


def queue_knobs(access: Access, device: str) -> list[Knob]:
    """Every steering setting of every queue."""
    knobs: list[Knob] = []
    for queue in queues_of(access, device, "rx"):
        knobs += [RpsMask(access, f"{device}/{queue}"), RpsFlowCount(access, f"{device}/{queue}")]
    knobs += [XpsMask(access, f"{device}/{queue}") for queue in queues_of(access, device, "tx")]
    return knobs


class _QueueKnob(DeviceKnob):
    made_by = frozenset({"channels"})
    file_name: t.ClassVar[str]
    direction: t.ClassVar[str]

    @property
    def device(self) -> str:
        return self.key.split("/")[0]

    @property
    def queue(self) -> str:
        return self.key.split("/")[1]

    @property
    def rank(self) -> int:
        return RANK_PER_QUEUE

    @property
    def path(self) -> str:
        return os.path.join(self.access.sys, "class/net", self.device, "queues", self.queue, self.file_name)

    def _text(self) -> str:
        try:
            return self.access.read_file(self.path)
        except NotThere as err:
            folder = os.path.dirname(self.path)
            if os.path.basename(folder) in self.access.list_dir(os.path.dirname(folder)):
                raise NotSupported(f"its queues have no {self.file_name}", where=self.device) from err
            self.access.link(self.device)
            queues = queues_of(self.access, self.device, self.direction)
            raise NotThere(
                f"{self.device} has no queue {self.queue}",
                where=self.device,
                remedy=f"Its queues: {', '.join(queues) or 'none'}",
            ) from err

    def _put(self, text: str) -> None:
        try:
            self.access.write_file(self.path, text)
        except NotSupported as err:
            raise NotSupported(f"its queues do not support {self.file_name}", where=self.device) from err


class _Mask(_QueueKnob):
    """Value: the mask in its normal form, which has no padding to differ in."""

    def read(self) -> Value:
        return format_mask(parse_mask(self._text()))

    def write(self, value: Value) -> None:
        self._put(value)

    def resolve(self, current: Value, wish: t.Any) -> Value:
        return format_mask(wish)

    def check(self, current: Value, wish: t.Any) -> None:
        possible = possible_cpus(self.access)
        missing = sorted(set(wish) - possible)
        if missing:
            raise BenchError(
                f"CPU {format_list(missing)} does not exist on this host",
                where=self.device,
                remedy=f"CPUs of this host: {format_list(possible)}",
                code="bad_cpu",
            )


@register
class RpsMask(_Mask):
    """Which CPUs may take over the packets of a receive queue."""

    kind = "queue.rps"
    file_name = "rps_cpus"
    direction = "rx"


@register
class XpsMask(_Mask):
    """Which CPUs send through a transmit queue."""

    kind = "queue.xps"
    file_name = "xps_cpus"
    direction = "tx"


@register
class RpsFlowCount(_QueueKnob):
    """Size of a receive queue's flow table."""

    kind = "queue.rps_flow_cnt"
    file_name = "rps_flow_cnt"
    direction = "rx"

    def read(self) -> Value:
        return int(self._text())

    def check(self, current: Value, wish: t.Any) -> None:
        power_of_two(wish)

    def resolve(self, current: Value, wish: t.Any) -> Value:
        return power_of_two(wish)

    def write(self, value: Value) -> None:
        self._put(str(value))
