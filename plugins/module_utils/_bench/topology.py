# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Topologies: which inventory host plays which part, how parts are cabled and addressed.

:func:`parse` checks an entry of ``bench_topologies``; :func:`resolve` works
out what each host needs: addresses, and the static routes by which every part
reaches every network. Only DUTs forward, so a path never leads through an
endpoint.
"""

from __future__ import annotations

import collections
import dataclasses
import ipaddress
import re
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._bench.shape import (
    as_int,
    as_list,
    as_mapping,
    as_text,
    known,
    only_keys,
)
from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError

Interface = t.Union[ipaddress.IPv4Interface, ipaddress.IPv6Interface]
Network = t.Union[ipaddress.IPv4Network, ipaddress.IPv6Network]

PART_RE = re.compile(r"^(client|server|dut[0-9]*)$")
#: Linux refuses longer names (IFNAMSIZ is 16 with the closing NUL, linux/if.h).
IFNAME_MAX = 15
#: Of one of `routes`: what the role topology takes.
ROUTE_KEYS = ("dst", "via", "dev", "table", "metric")
DEFAULT_MTU_BYTES = 1500


@dataclasses.dataclass(frozen=True)
class End:
    """One end of a link: the interface of a part and its addresses."""

    part: str
    interface: str
    addresses: tuple[Interface, ...]

    def address(self, version: int) -> Interface | None:
        return next((a for a in self.addresses if a.version == version), None)


@dataclasses.dataclass(frozen=True)
class Link:
    ends: tuple[End, ...]
    mtu_bytes: int

    def network(self, version: int) -> Network | None:
        return next((a.network for e in self.ends for a in e.addresses if a.version == version), None)


@dataclasses.dataclass(frozen=True)
class Topology:
    name: str
    parts: dict[str, str]
    links: tuple[Link, ...]
    routes: dict[str, tuple[dict[str, t.Any], ...]] = dataclasses.field(default_factory=dict)

    @property
    def duts(self) -> tuple[str, ...]:
        """The parts that forward, in the order of their names."""
        return tuple(sorted(p for p in self.parts if p.startswith("dut")))


@dataclasses.dataclass(frozen=True)
class HostSetup:
    """What one host needs: the input of the role ``topology``."""

    host: str
    part: str
    interfaces: tuple[dict[str, t.Any], ...]
    routes: tuple[dict[str, t.Any], ...]


def _parse_end(raw: t.Any, where: str, parts: t.Mapping[str, str]) -> End:
    entry = as_mapping(raw, where)
    only_keys(entry, {"part", "interface", "addresses"}, where)
    part = as_text(entry.get("part"), where + ".part")
    if part not in parts:
        raise BenchError(
            f"part {part!r} is not one of the topology's parts", where=where, remedy=f"Parts are: {', '.join(parts)}"
        )
    interface = as_text(entry.get("interface"), where + ".interface")
    if len(interface) > IFNAME_MAX or not re.match(r"^[^/\s:]+$", interface) or interface in (".", ".."):
        raise BenchError(
            f"{interface!r} is no interface name", where=where + ".interface",
            remedy=f"Linux takes at most {IFNAME_MAX} characters, without blanks, slashes and colons",
        )
    if interface == "lo":
        raise BenchError(
            "the loopback interface is no end of a cable", where=where + ".interface",
            remedy="Name the interface that carries the test traffic",
        )  # fmt: skip
    addresses = []
    for number, text in enumerate(as_list(entry.get("addresses", []), where + ".addresses")):
        at = f"{where}.addresses[{number}]"
        if not isinstance(text, str) or "/" not in text:
            raise BenchError(f"{text!r} has no prefix length", where=at, remedy="Write it as 192.0.2.1/24")
        try:
            address = ipaddress.ip_interface(text)
        except ValueError as error:
            raise BenchError(f"{text!r} is no address: {error}", where=at) from error
        if address.ip == address.network.network_address and address.network.prefixlen < address.max_prefixlen - 1:
            raise BenchError(f"{text} is the address of the network itself", where=at, remedy="Give a host address")
        kind = next((k for k in ("multicast", "loopback", "unspecified") if getattr(address.ip, f"is_{k}")), None)
        if kind or address.ip == ipaddress.IPv4Address("255.255.255.255"):
            raise BenchError(f"{text} is a {kind or 'broadcast'} address", where=at, remedy="Give a host address")
        broadcast = address.version == 4 and address.network.prefixlen < 31 and address.network.broadcast_address
        if address.ip == broadcast:
            raise BenchError(f"{text} is the broadcast address of its network", where=at, remedy="Give a host address")
        addresses.append(address)
    return End(part, interface, tuple(addresses))


def _check_link(link: Link, where: str) -> None:
    if len(link.ends) < 2:
        raise BenchError("a link needs at least two ends", where=where)
    for version in (4, 6):
        have = [e for e in link.ends if e.address(version)]
        if not have:
            continue
        if len(have) != len(link.ends):
            missing = next(e for e in link.ends if not e.address(version))
            raise BenchError(
                f"{missing.part}:{missing.interface} has no IPv{version} address although the other end has one",
                where=where,
            )
        networks = {e.address(version).network for e in have}  # type: ignore[union-attr]
        if len(networks) > 1:
            raise BenchError(
                f"the ends lie in different networks: {', '.join(sorted(map(str, networks)))}", where=where,
                remedy="Both ends of a link share one network",
            )
        addresses = [e.address(version).ip for e in have]  # type: ignore[union-attr]
        if len(set(addresses)) != len(addresses):
            raise BenchError(f"address {addresses[0]} is given twice", where=where)


def _parse_parts(raw: t.Any, where: str, hosts: t.Collection[str]) -> dict[str, str]:
    parts: dict[str, str] = {}
    for part, host in as_mapping(raw, where).items():
        if not PART_RE.match(str(part)):
            raise BenchError(f"{part!r} is no part", where=where, remedy="Parts are client, server, dut, dut2")
        if host not in hosts:
            raise BenchError(
                f"host {host!r} is not in the inventory of this testbed",
                where=f"{where}.{part}",
                remedy=f"Its hosts are: {', '.join(sorted(hosts))}",
            )
        if host in parts.values():
            raise BenchError(f"host {host!r} plays two parts", where=f"{where}.{part}")
        parts[str(part)] = str(host)
    for needed in ("client", "server"):
        if needed not in parts:
            raise BenchError(f"there is no {needed}", where=where)
    return parts


def _parse_route(raw: t.Any, where: str, own: t.Sequence[End]) -> dict[str, t.Any]:
    """One further route of a part.

    :param own: the ends of links that are the part's.
    """
    entry = as_mapping(raw, where)
    only_keys(entry, ROUTE_KEYS, where)
    destination = as_text(entry.get("dst"), where + ".dst")
    if destination not in ("default", "default6"):
        try:
            ipaddress.ip_network(destination)
        except ValueError as error:
            raise BenchError(
                f"{destination!r} is no network: {error}", where=where + ".dst",
                remedy="Write it as 192.0.2.0/24, or as default or default6",
            ) from error  # fmt: skip
    if entry.get("via") is not None:
        text = as_text(entry["via"], where + ".via")
        try:
            via = ipaddress.ip_address(text)
        except ValueError as error:
            raise BenchError(f"{text!r} is no address: {error}", where=where + ".via") from error
        networks = [address.network for end in own for address in end.addresses]
        link_local = via.version == 6 and via.is_link_local
        if not link_local and not any(via in network for network in networks):
            raise BenchError(
                f"{text} is in none of the networks of this part", where=where + ".via",
                remedy=f"They are: {', '.join(map(str, networks)) or 'none'}",
            )  # fmt: skip
    if entry.get("dev") is not None:
        known(entry["dev"], [end.interface for end in own], where + ".dev", "interface of this part")
    return entry


def parse(name: str, raw: t.Any, hosts: t.Collection[str]) -> Topology:
    """Check one entry of ``bench_topologies``.

    :param hosts: the inventory hosts of the testbed.
    :raises BenchError: names the key that is wrong and what would be right.
    """
    where = f"bench_topologies.{name}"
    entry = as_mapping(raw, where)
    only_keys(entry, {"parts", "links", "mtu_bytes", "routes", "description"}, where)
    parts = _parse_parts(entry.get("parts"), where + ".parts", hosts)
    default_mtu = as_int(entry.get("mtu_bytes", DEFAULT_MTU_BYTES), where + ".mtu_bytes", low=68, high=65535)
    links = []
    for number, raw_link in enumerate(as_list(entry.get("links"), where + ".links")):
        at = f"{where}.links[{number}]"
        link_entry = as_mapping(raw_link, at)
        only_keys(link_entry, {"ends", "mtu_bytes", "name"}, at)
        raw_ends = as_list(link_entry.get("ends"), at + ".ends")
        ends = [_parse_end(end, f"{at}.ends[{i}]", parts) for i, end in enumerate(raw_ends)]
        mtu = as_int(link_entry.get("mtu_bytes", default_mtu), at + ".mtu_bytes", low=68, high=65535)
        link = Link(tuple(ends), mtu)
        _check_link(link, at)
        links.append(link)
    seen: dict[tuple[str, str], int] = {}
    for number, link in enumerate(links):
        for end in link.ends:
            if (end.part, end.interface) in seen:
                raise BenchError(
                    f"{end.part}:{end.interface} is an end of two links", where=f"{where}.links[{number}]",
                    remedy="An interface is cabled once",
                )
            seen[end.part, end.interface] = number
    routes: dict[str, tuple[dict[str, t.Any], ...]] = {}
    for part, items in as_mapping(entry.get("routes", {}), where + ".routes").items():
        if part not in parts:
            raise BenchError(f"part {part!r} is not one of the topology's parts", where=where + ".routes")
        own = [end for link in links for end in link.ends if end.part == part]
        listed = as_list(items, f"{where}.routes.{part}")
        routes[part] = tuple(_parse_route(r, f"{where}.routes.{part}[{i}]", own) for i, r in enumerate(listed))
    topology = Topology(name, parts, tuple(links), routes)
    if not any(_path(topology, "client", version) for version in (4, 6)):
        raise BenchError(
            "the links lead from the client to no server", where=where + ".links",
            remedy="Cable and address client, DUTs and server in a chain",
        )
    return topology


def _next_hops(topology: Topology, start: str, version: int) -> dict[Network, tuple[str, Interface]]:
    """For each network that ``start`` is not on: (its own interface, address of the next hop)."""
    own = {link.network(version) for link in topology.links for e in link.ends if e.part == start}
    result: dict[Network, tuple[str, Interface]] = {}
    queue: collections.deque[tuple[str, tuple[str, Interface] | None]] = collections.deque([(start, None)])
    visited = {start}
    while queue:
        part, first = queue.popleft()
        for link in topology.links:
            here = next((e for e in link.ends if e.part == part), None)
            network = link.network(version)
            if here is None or network is None:
                continue
            if first is not None and network not in own and network not in result:
                result[network] = first
            for end in link.ends:
                if end.part in visited:
                    continue
                via = end.address(version)
                if via is None:
                    continue
                visited.add(end.part)
                if end.part.startswith("dut"):
                    queue.append((end.part, first or (here.interface, via)))
    return result


def _path(topology: Topology, start: str, version: int) -> tuple[str, Interface] | None:
    """(interface of ``start``, address of the other endpoint) of the way from one endpoint to the other."""
    other = "server" if start == "client" else "client"
    for link in topology.links:
        ends = {e.part: e for e in link.ends}
        if start in ends and other in ends and ends[other].address(version):
            return ends[start].interface, t.cast(Interface, ends[other].address(version))
    hops = _next_hops(topology, start, version)
    for link in topology.links:
        for end in link.ends:
            network = link.network(version)
            if end.part == other and network in hops:
                return hops[network][0], t.cast(Interface, end.address(version))
    return None


def endpoint_path(topology: Topology, start: str, version: int) -> tuple[str, str]:
    """The interface by which ``start`` (client or server) reaches the other endpoint, and that one's address.

    :raises BenchError: when there is no such path for this IP version.
    """
    found = _path(topology, start, version)
    if found is None:
        raise BenchError(
            f"there is no IPv{version} path between client and server", where=f"bench_topologies.{topology.name}",
            remedy=f"Give the ends of its links IPv{version} addresses, or take another ip_version",
        )
    return found[0], str(found[1].ip)


def resolve(topology: Topology) -> dict[str, HostSetup]:
    """What each inventory host of the topology needs, by host name."""
    setups = {}
    for part, host in topology.parts.items():
        interfaces = []
        for link in topology.links:
            for end in link.ends:
                if end.part == part:
                    addresses = [str(address) for address in end.addresses]
                    interfaces.append({"name": end.interface, "addresses": addresses, "mtu_bytes": link.mtu_bytes})
        routes: list[dict[str, t.Any]] = []
        for version in (4, 6):
            hops = _next_hops(topology, part, version)
            for network in sorted(hops, key=str):
                interface, via = hops[network]
                routes.append({"dst": str(network), "via": str(via.ip), "dev": interface})
        routes.extend(topology.routes.get(part, ()))
        setups[host] = HostSetup(host, part, tuple(interfaces), tuple(routes))
    return setups
