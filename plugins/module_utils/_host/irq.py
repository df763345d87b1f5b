# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which CPUs serve the interrupts of an interface.

The interrupts are those that the device itself lists. Their names in
/proc/interrupts are the driver's own, and tell nothing about the interface.
"""

from __future__ import annotations

import dataclasses
import errno
import os
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._host.access import (
    Access,
    KnobError,
    NotSupported,
    NotThere,
    ReadOnly,
)
from ansible_collections.fastpath.bench.plugins.module_utils._host.cpumask import format_list, parse_list
from ansible_collections.fastpath.bench.plugins.module_utils._host.device import DeviceKnob
from ansible_collections.fastpath.bench.plugins.module_utils._host.knob import RANK_PER_QUEUE, Value, register


def irqs_of(access: Access, device: str) -> list[int]:
    """The interrupts of an interface, by number; none for one that is not hardware.

    A virtio device has none of its own, the PCI device above it has them.
    """
    own = os.path.join(access.sys, "class/net", device, "device")
    for folder in (own, os.path.join(own, "..")):
        numbers = [int(name) for name in access.list_dir(os.path.join(folder, "msi_irqs")) if name.isdigit()]
        if numbers:
            return sorted(numbers)
        try:
            line = access.read_file(os.path.join(folder, "irq"))
        except KnobError:
            continue
        if line.isdigit() and int(line) > 0:
            return [int(line)]
    return []


def irqbalance_runs(access: Access) -> bool:
    """Whether the service that moves interrupts runs, whoever started it."""
    for pid in access.list_dir(access.proc):
        if pid.isdigit():
            try:
                if access.read_file(os.path.join(access.proc, pid, "comm")) == "irqbalance":
                    return True
            except KnobError:
                continue  # it has just ended
    return False


@dataclasses.dataclass(frozen=True)
class IrqWish:
    """All interrupts on these CPUs, or one CPU for each in turn."""

    cpus: frozenset[int]
    spread: bool = False


def _by_number_of(value: t.Mapping[str, str], now: t.Mapping[str, str]) -> dict[str, str]:
    """The CPUs of interrupts, by the numbers that they have now."""
    if len(value) != len(now) and any(irq in now for irq in value):
        return dict(value)
    return {irq: value[old] for irq, old in zip(sorted(now, key=int), sorted(value, key=int))}


@register
class IrqAffinity(DeviceKnob):
    """The CPUs of each interrupt of an interface, as one setting, since interrupts come and go with queues.

    Value: number of the interrupt, as text -> list of CPUs. When a driver
    asked for all of them anew and got other numbers, the first one is still
    the first one.
    """

    kind = "irq.affinity"

    @property
    def rank(self) -> int:
        return RANK_PER_QUEUE

    def _path(self, irq: int | str) -> str:
        return os.path.join(self.access.proc, "irq", str(irq), "smp_affinity_list")

    def read(self) -> Value:
        self.access.link(self.device)
        cpus: dict[str, str] = {}
        for irq in irqs_of(self.access, self.device):
            try:
                cpus[str(irq)] = format_list(parse_list(self.access.read_file(self._path(irq))))
            except NotThere:
                continue  # allocated, but not in use
        if not cpus:
            raise NotSupported("it has no interrupts of its own", where=self.device)
        return cpus

    def same(self, one: Value, other: Value) -> bool:
        # With fewer of them it is not the same, though those that are left may hold: the others come back some day.
        return len(one) == len(other) and _by_number_of(one, other) == other

    def resolve(self, current: Value, wish: t.Any) -> Value:
        in_order = sorted(current, key=int)
        if not wish.spread:
            return dict.fromkeys(in_order, format_list(wish.cpus))
        cpus = sorted(wish.cpus)
        return {irq: str(cpus[number % len(cpus)]) for number, irq in enumerate(in_order)}

    def check(self, current: Value, wish: t.Any) -> None:
        if not wish.cpus:
            raise BenchError("an interrupt needs a CPU", where=self.device, code="bad_cpu")
        online = parse_list(self.access.read_file(os.path.join(self.access.sys, "devices/system/cpu/online")))
        missing = sorted(wish.cpus - online)
        if missing:
            raise BenchError(
                f"CPU {format_list(missing)} is not online on this host",
                where=self.device,
                remedy=f"CPUs that are: {format_list(online)}",
                code="bad_cpu",
            )

    def write(self, value: Value) -> None:
        """What differs. An interrupt whose CPUs the kernel itself manages cannot be had; the others can."""
        now = self.read()
        managed = []
        for irq, cpus in _by_number_of(value, now).items():
            if irq not in now or now[irq] == cpus:
                continue
            try:
                self.access.write_file(self._path(irq), cpus)
            except KnobError as err:
                if not isinstance(err.__cause__, OSError) or err.__cause__.errno != errno.EIO:
                    raise
                managed.append(irq)
        if managed:
            raise ReadOnly(
                f"not permitted: the kernel manages the CPUs of interrupt {', '.join(managed)} itself",
                where=self.device,
                remedy="Such interrupts follow the queues and the CPUs that are online (isolcpus=managed_irq)",
            )
