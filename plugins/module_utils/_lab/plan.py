# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What has to be done to a lab: found and wanted in, steps out. Touches nothing."""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._lab.topology import KIND_BRIDGE, Cable, Endpoint, Topology

#: How a host was found.
RUNNING = "running"
BOOTING = "booting"
DEAD = "dead"


@dataclasses.dataclass(frozen=True)
class FoundNode:
    """A node of which anything exists."""

    kind: str
    state: str
    #: What a virtual machine was started as.
    spec: dict[str, t.Any] | None = None


@dataclasses.dataclass(frozen=True)
class FoundEnd:
    """An interface that is one end of a veth pair. ``peer`` is None when the other end is in no node of the lab."""

    peer: str | None
    queues: int
    #: In a virtual machine's namespace: whether it leads to the guest's card.
    joined: bool = False


@dataclasses.dataclass(frozen=True)
class Found:
    """A lab as it is. ``ends`` are keyed ``node:interface``."""

    nodes: dict[str, FoundNode] = dataclasses.field(default_factory=dict)
    ends: dict[str, FoundEnd] = dataclasses.field(default_factory=dict)
    #: The ends that earlier calls made or were about to make.
    known_ends: frozenset[str] = frozenset()
    #: What was last set on an end. A role may have changed it since: that is the host's own affair.
    applied: dict[str, dict[str, t.Any]] = dataclasses.field(default_factory=dict)
    #: The images that are there already, by key.
    images: frozenset[str] = frozenset()


@dataclasses.dataclass(frozen=True)
class Plan:
    remove: tuple[str, ...] = ()
    #: Images of virtual machines, by key.
    build: tuple[str, ...] = ()
    make_bridge: tuple[str, ...] = ()
    start: tuple[str, ...] = ()
    #: Hosts that were seen booting: only to be waited for.
    wait: tuple[str, ...] = ()
    cut: tuple[str, ...] = ()
    lay: tuple[Cable, ...] = ()
    set: tuple[Endpoint, ...] = ()

    @property
    def changed(self) -> bool:
        return self != Plan()

    def steps(self) -> list[str]:
        """The plan in words, one step a line."""
        return [
            *(f"build image {key}" for key in self.build),
            *(f"remove node {name}" for name in self.remove),
            *(f"cut cable at {key}" for key in self.cut),
            *(f"make bridge {name}" for name in self.make_bridge),
            *(f"start host {name}" for name in self.start),
            *(f"wait for host {name}" for name in self.wait),
            *(f"lay cable {cable.key}" for cable in self.lay),
            *(f"set {end.key}" for end in self.set),
        ]


def plan(found: Found, wanted: Topology, specs: t.Mapping[str, dict[str, t.Any]] | None = None) -> Plan:
    """The steps from ``found`` to ``wanted``; what is right already stays as it is.

    :param specs: what each virtual machine is to be like. A running one that differs is started anew on its disk; on
        another image it gets another disk.
    """
    specs = specs or {}
    kinds = {node.name: node.kind for node in wanted.nodes}
    remove = [
        name
        for name, node in found.nodes.items()
        if kinds.get(name) != node.kind or (node.spec and _differs(node.spec, specs[name], "image"))
    ]
    make_bridge: list[str] = []
    start: list[str] = []
    wait: list[str] = []
    for node in wanted.nodes:
        there = found.nodes.get(node.name)
        state = DEAD if there is None or node.name in remove else there.state
        if there is not None and node.name in specs and _differs(there.spec or {}, specs[node.name]):
            state = DEAD
        if state == BOOTING:
            wait.append(node.name)
        elif state == DEAD:
            (make_bridge if node.kind == KIND_BRIDGE else start).append(node.name)

    # A node that is removed or made anew loses its namespace, and with it its ends and their peers.
    lost = {*remove, *make_bridge, *start}
    left = {
        key: end
        for key, end in found.ends.items()
        if _node(key) not in lost and (end.peer is None or _node(end.peer) not in lost)
    }
    wanted_ends = {end.key for cable in wanted.cables for end in cable.ends}
    cut = {key for key in left if key in found.known_ends and key not in wanted_ends}
    lay: list[Cable] = []
    change: list[Endpoint] = []
    for cable in wanted.cables:
        if _is_laid(cable, left, specs):
            change += [end for end in cable.ends if found.applied.get(end.key) != end.settings()]
            continue
        lay.append(cable)
        cut |= {end.key for end in cable.ends if end.key in left}
    needed = {specs[name]["image"] for name in start if name in specs}
    return Plan(
        build=tuple(sorted(needed - found.images)),
        remove=tuple(sorted(remove)),
        make_bridge=tuple(make_bridge),
        start=tuple(start),
        wait=tuple(wait),
        cut=tuple(sorted(_one_end_each(cut, left))),
        lay=tuple(lay),
        set=tuple(change),
    )


def _node(key: str) -> str:
    return key.partition(":")[0]


def _differs(one: t.Mapping[str, t.Any], other: t.Mapping[str, t.Any], *keys: str) -> bool:
    return any(one.get(key) != other[key] for key in keys or other)


def _is_laid(cable: Cable, ends: dict[str, FoundEnd], joining: t.Container[str]) -> bool:
    return all(
        end.key in ends
        and ends[end.key].peer == other.key
        and ends[end.key].queues == end.queues
        and (end.node not in joining or ends[end.key].joined)
        for end, other in (cable.ends, cable.ends[::-1])
    )


def _one_end_each(keys: set[str], ends: dict[str, FoundEnd]) -> set[str]:
    """One end of a cable takes the other along."""
    chosen: set[str] = set()
    for key in sorted(keys):
        if ends[key].peer not in chosen:
            chosen.add(key)
    return chosen
