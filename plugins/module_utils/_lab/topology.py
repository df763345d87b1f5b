# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lab's topology: nodes and cables, in containerlab's form.

Accepted per link: the brief form ``endpoints: ["client:eth1", "dut:eth1"]`` and the
extended form, where an endpoint is ``{node, interface, queues, mtu, offloads}``.
``queues``, ``mtu`` and ``offloads`` on the link hold for both ends.
"""

from __future__ import annotations

import dataclasses
import re
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError

KIND_LINUX = "linux"
KIND_BRIDGE = "bridge"
KIND_VM = "vm"
KINDS = (KIND_LINUX, KIND_BRIDGE, KIND_VM)

#: No dash: in ``fpl-<lab>-<host>`` the first dash after the prefix ends the lab's name,
#: so that the names alone tell which lab a namespace belongs to.
LAB_NAME = re.compile(r"[a-z0-9][a-z0-9_]{0,19}")
NODE_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?")
INTERFACE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
OFFLOAD_NAME = re.compile(r"[a-z0-9][a-z0-9-]*")

INTERFACE_NAME_MAX = 15
MTU_MIN_BYTES = 68
MTU_MAX_BYTES = 65535
MTU_DEFAULT_BYTES = 1500
QUEUES_MAX = 64
QUEUES_DEFAULT = 1

#: The bridge device inside a bridge node; no port may take its name.
BRIDGE_DEVICE = "br0"
#: The card of a virtual machine that leads to the lab; no cable may take its name.
MANAGEMENT = "mgmt0"

CPUS_DEFAULT, CPUS_MAX = 1, 64
MEMORY_DEFAULT_MIB, MEMORY_MIN_MIB, MEMORY_MAX_MIB = 512, 256, 1 << 20
MEMORY = re.compile(r"([1-9][0-9]*) ?(MiB|GiB)")
PACKAGE_NAME = re.compile(r"[a-z0-9][a-z0-9+.-]+")


class TopologyError(BenchError):
    """The topology cannot be built as written."""

    def __init__(self, what: str, *, where: str, remedy: str | None = None) -> None:
        super().__init__(what, where=where, remedy=remedy, code="bad_topology")


@dataclasses.dataclass(frozen=True)
class Node:
    name: str
    kind: str
    # of virtual machines
    cpus: int = CPUS_DEFAULT
    memory_mib: int = MEMORY_DEFAULT_MIB
    packages: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Endpoint:
    """One end of a cable."""

    node: str
    interface: str
    queues: int = QUEUES_DEFAULT
    mtu_bytes: int = MTU_DEFAULT_BYTES
    offloads: tuple[tuple[str, bool], ...] = ()

    @property
    def key(self) -> str:
        return f"{self.node}:{self.interface}"

    def settings(self) -> dict[str, t.Any]:
        """What can be set on the interface without making the cable anew."""
        return {"mtu": self.mtu_bytes, "offloads": dict(self.offloads)}


@dataclasses.dataclass(frozen=True)
class Cable:
    a: Endpoint
    b: Endpoint

    @property
    def key(self) -> str:
        return f"{self.a.key} -- {self.b.key}"

    @property
    def ends(self) -> tuple[Endpoint, Endpoint]:
        return (self.a, self.b)


@dataclasses.dataclass(frozen=True)
class Topology:
    name: str
    nodes: tuple[Node, ...]
    cables: tuple[Cable, ...]

    def node(self, name: str) -> Node | None:
        return next((node for node in self.nodes if node.name == name), None)

    def of_kind(self, kind: str) -> tuple[Node, ...]:
        return tuple(node for node in self.nodes if node.kind == kind)


def check_lab_name(name: object, where: str = "name") -> str:
    if not isinstance(name, str) or not LAB_NAME.fullmatch(name):
        raise TopologyError(
            f"{name!r} cannot be the name of a lab",
            where=where,
            remedy="Use at most 20 lower case letters, digits and underscores, a letter or digit first",
        )
    return name


def parse_topology(data: object, *, name: str | None = None) -> Topology:
    """Check a topology as read from YAML. ``name`` overrides the one that the file gives."""
    top = _mapping(data, "topology file", ("name", "topology", "prefix"))
    lab = check_lab_name(top.get("name") if name is None else name)
    body = _mapping(top.get("topology"), "topology", ("nodes", "links"))
    nodes = _parse_nodes(body.get("nodes"))
    links = body.get("links")
    if links is None:
        links = []
    if not isinstance(links, list):
        raise TopologyError("must be a list", where="topology.links")
    kinds = {node.name: node.kind for node in nodes}
    cables: list[Cable] = []
    used: dict[str, str] = {}
    for number, link in enumerate(links):
        where = f"topology.links[{number}]"
        cable = _parse_link(link, where, kinds)
        for end in cable.ends:
            if end.key in used:
                raise TopologyError(
                    f"{end.key} is used twice (first in {used[end.key]})",
                    where=where,
                    remedy="An interface takes one cable; for a shared segment use a node of kind bridge",
                )
            used[end.key] = where
        cables.append(cable)
    return Topology(lab, nodes, tuple(cables))


def _mapping(data: object, where: str, known: tuple[str, ...]) -> dict[str, t.Any]:
    if not isinstance(data, dict):
        raise TopologyError("must be a mapping", where=where, remedy=f"Known keys: {', '.join(known)}")
    for key in data:
        if key not in known:
            raise TopologyError(f"unknown key {key!r}", where=where, remedy=f"Known keys: {', '.join(known)}")
    return data


def _parse_nodes(data: object) -> tuple[Node, ...]:
    if not isinstance(data, dict) or not data:
        raise TopologyError(
            "must name at least one node", where="topology.nodes", remedy="Write for example client: {kind: linux}"
        )
    nodes = []
    for name, body in data.items():
        where = f"topology.nodes.{name}"
        if not isinstance(name, str) or not NODE_NAME.fullmatch(name):
            raise TopologyError(
                f"{name!r} cannot be a host name",
                where="topology.nodes",
                remedy="Use at most 32 lower case letters, digits and dashes, neither first nor last a dash",
            )
        settings = _mapping({} if body is None else body, where, ("kind", "cpus", "memory", "packages"))
        kind = settings.get("kind", KIND_LINUX)
        if kind not in KINDS:
            raise TopologyError(f"unknown kind {kind!r}", where=where, remedy=f"Known kinds: {', '.join(KINDS)}")
        if kind != KIND_VM and len(settings) > len({"kind"} & set(settings)):
            extra = ", ".join(key for key in settings if key != "kind")
            raise TopologyError(
                f"a node of kind {kind} takes no {extra}", where=where, remedy="That is for nodes of kind vm"
            )
        nodes.append(
            Node(
                name,
                kind,
                _integer("cpus", settings, where, CPUS_DEFAULT, (1, CPUS_MAX)),
                _memory(settings.get("memory", MEMORY_DEFAULT_MIB), where),
                _packages(settings.get("packages"), where),
            )
        )
    return tuple(nodes)


def _memory(value: object, where: str) -> int:
    """In MiB: a number, or text with a unit."""
    match = MEMORY.fullmatch(value) if isinstance(value, str) else None
    if match:
        value = int(match.group(1)) * (1024 if match.group(2) == "GiB" else 1)
    if isinstance(value, bool) or not isinstance(value, int) or not MEMORY_MIN_MIB <= value <= MEMORY_MAX_MIB:
        raise TopologyError(
            f"memory is {value!r}",
            where=where,
            remedy=f"Write for example 512MiB or 2GiB, {MEMORY_MIN_MIB} MiB or more",
        )
    return value


def _packages(data: object, where: str) -> tuple[str, ...]:
    if data is None:
        return ()
    if not isinstance(data, list) or not all(isinstance(one, str) and PACKAGE_NAME.fullmatch(one) for one in data):
        raise TopologyError("packages must be a list of names of packages", where=where)
    return tuple(sorted(set(data)))


def _parse_link(data: object, where: str, kinds: dict[str, str]) -> Cable:
    # A bare list of two is the shortest way to write a link.
    link = {"endpoints": data} if isinstance(data, list) else data
    body = _mapping(link, where, ("endpoints", "type", "queues", "mtu", "offloads"))
    if body.get("type", "veth") != "veth":
        raise TopologyError(f"unknown type {body['type']!r}", where=where, remedy="The only type is veth")
    ends = body.get("endpoints")
    if not isinstance(ends, list) or len(ends) != 2:
        raise TopologyError("a link has exactly two endpoints", where=f"{where}.endpoints")
    first, second = (_parse_endpoint(end, f"{where}.endpoints[{index}]", body, kinds) for index, end in enumerate(ends))
    if first.node == second.node:
        raise TopologyError(f"both ends are on {first.node}", where=where)
    if kinds[first.node] == kinds[second.node] == KIND_BRIDGE:
        raise TopologyError(f"joins two bridges, {first.node} and {second.node}", where=where, remedy="Use one bridge")
    return Cable(first, second)


def _parse_endpoint(data: object, where: str, link: dict[str, t.Any], kinds: dict[str, str]) -> Endpoint:
    if isinstance(data, str):
        node, colon, interface = data.partition(":")
        if not colon:
            raise TopologyError(f"{data!r} is not an endpoint", where=where, remedy="Write <host>:<interface>")
        body: dict[str, t.Any] = {}
    else:
        body = _mapping(data, where, ("node", "interface", "queues", "mtu", "offloads"))
        node, interface = body.get("node"), body.get("interface")  # type: ignore[assignment]
    if node not in kinds:
        raise TopologyError(f"unknown node {node!r}", where=where, remedy=f"Known nodes: {', '.join(kinds)}")
    _check_interface(interface, where, kinds[node])
    return Endpoint(
        node,
        interface,
        _integer("queues", link | body, where, QUEUES_DEFAULT, (1, QUEUES_MAX)),
        _integer("mtu", link | body, where, MTU_DEFAULT_BYTES, (MTU_MIN_BYTES, MTU_MAX_BYTES)),
        _offloads(body, link, where),
    )


def _check_interface(name: object, where: str, kind: str) -> None:
    if not isinstance(name, str) or not INTERFACE_NAME.fullmatch(name):
        raise TopologyError(
            f"{name!r} cannot be an interface name",
            where=where,
            remedy="Use letters, digits, dots, dashes and underscores, a letter or digit first",
        )
    if len(name) > INTERFACE_NAME_MAX:
        raise TopologyError(
            f"interface name {name!r} has {len(name)} characters, the kernel takes {INTERFACE_NAME_MAX}", where=where
        )
    own = {KIND_BRIDGE: BRIDGE_DEVICE, KIND_VM: MANAGEMENT}
    if name in ("lo", "all", "default", own.get(kind)):
        raise TopologyError(f"interface name {name!r} is taken already", where=where)


def _integer(key: str, body: dict[str, t.Any], where: str, default: int, limits: tuple[int, int]) -> int:
    value = body.get(key, default)
    low, high = limits
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise TopologyError(f"{key} is {value!r}", where=where, remedy=f"It must be a number from {low} to {high}")
    return value


def _offloads(end: dict[str, t.Any], link: dict[str, t.Any], where: str) -> tuple[tuple[str, bool], ...]:
    merged: dict[str, bool] = {}
    for data in (link.get("offloads"), end.get("offloads")):
        if data is None:
            continue
        if not isinstance(data, dict):
            raise TopologyError("offloads must be a mapping such as {tso: false}", where=where)
        for key, value in data.items():
            if not isinstance(key, str) or not OFFLOAD_NAME.fullmatch(key) or not isinstance(value, bool):
                raise TopologyError(
                    f"offload {key!r}: {value!r} cannot be set",
                    where=where,
                    remedy="Give ethtool's name of the feature and true or false",
                )
            merged[key] = value
    return tuple(sorted(merged.items()))
