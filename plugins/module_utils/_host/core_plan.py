# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which CPU is for what: one plan that all tools of a host share.

Whole cores are given out. The other hardware threads of a core that works are kept idle, since they would share its
caches and units. Those that work are of the network card's NUMA node.
"""

from __future__ import annotations

import dataclasses
import os
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._host.access import Access, KnobError
from ansible_collections.fastpath.bench.plugins.module_utils._host.cpumask import format_list, parse_list


@dataclasses.dataclass(frozen=True)
class Cpu:
    """One hardware thread."""

    number: int
    #: All threads of its core, itself among them.
    siblings: frozenset[int]
    node: int = 0


@dataclasses.dataclass(frozen=True)
class Plan:
    """The CPUs by their use. Each online CPU is in one of them."""

    housekeeping: tuple[int, ...]
    workers: tuple[int, ...]
    generator: tuple[int, ...]
    #: Threads beside those that work: nothing runs on them.
    idle: tuple[int, ...]

    @property
    def isolated(self) -> tuple[int, ...]:
        return tuple(sorted((*self.workers, *self.generator, *self.idle)))

    def kernel_args(self) -> list[str]:
        """What keeps the kernel's own work away from the isolated CPUs."""
        if not self.isolated:
            return []
        away = format_list(self.isolated)
        return [
            f"isolcpus=managed_irq,domain,{away}",
            f"nohz_full={away}",
            f"rcu_nocbs={away}",
            f"irqaffinity={format_list(self.housekeeping)}",
        ]

    def as_dict(self) -> dict[str, t.Any]:
        return {
            **{field.name: list(getattr(self, field.name)) for field in dataclasses.fields(self)},
            "isolated": list(self.isolated),
            "lists": {field.name: format_list(getattr(self, field.name)) for field in dataclasses.fields(self)},
            "kernel_args": self.kernel_args(),
        }


def read_cpus(access: Access) -> list[Cpu]:
    """The CPUs that are online."""
    root = os.path.join(access.sys, "devices/system/cpu")
    online = parse_list(access.read_file(os.path.join(root, "online")))
    node_of: dict[int, int] = {}
    nodes = os.path.join(access.sys, "devices/system/node")
    for name in access.list_dir(nodes):
        if name.startswith("node") and name[4:].isdigit():
            for cpu in parse_list(access.read_file(os.path.join(nodes, name, "cpulist"))):
                node_of[cpu] = int(name[4:])
    return [Cpu(cpu, _siblings(access, root, cpu) & online | {cpu}, node_of.get(cpu, 0)) for cpu in sorted(online)]


def _siblings(access: Access, root: str, cpu: int) -> frozenset[int]:
    try:
        return parse_list(access.read_file(os.path.join(root, f"cpu{cpu}", "topology/thread_siblings_list")))
    except KnobError:
        return frozenset([cpu])


def make_plan(
    cpus: t.Sequence[Cpu], *, housekeeping: int = 1, workers: int = 0, generator: int = 0, node: int | None = None
) -> Plan:
    """Give out whole cores: housekeeping first, from CPU 0 on, then those that work, from the network card's node.

    :param housekeeping: cores for the system, at least one; all that nobody else needs join them.
    :param workers: cores for a DUT's forwarding.
    :param generator: cores for a traffic generator.
    :param node: NUMA node of the network card; None when it does not matter.
    :raises BenchError: there are not enough.
    """
    for name, count in (("housekeeping", housekeeping), ("workers", workers), ("generator", generator)):
        if count < (1 if name == "housekeeping" else 0):
            raise BenchError(f"{count} cores are not possible", where=f"cores.{name}", code="bad_value")
    cores = sorted({tuple(sorted(cpu.siblings)) for cpu in cpus}, key=lambda core: core[0])
    node_of = {cpu.number: cpu.node for cpu in cpus}
    kept, free = cores[:housekeeping], cores[housekeeping:]
    near = [core for core in free if node is None or node_of[core[0]] == node]
    wanted = workers + generator
    if len(near) < wanted:
        place = "" if node is None else f" on NUMA node {node}, where the network card is"
        raise BenchError(
            f"{wanted} cores are wanted for work, and {len(near)} are left{place}"
            f" ({len(cores)} in all, {len(kept)} for the system)",
            where="cores",
            remedy="Ask for fewer, or use a card on another node",
            code="not_enough_cores",
        )
    at_work, dealt = near[:workers], near[workers:wanted]
    used = {core[0] for core in (*at_work, *dealt)}
    system = [cpu for core in cores if core[0] not in used for cpu in core]
    return Plan(
        housekeeping=tuple(sorted(system)),
        workers=tuple(core[0] for core in at_work),
        generator=tuple(core[0] for core in dealt),
        idle=tuple(sorted(cpu for core in (*at_work, *dealt) for cpu in core[1:])),
    )
