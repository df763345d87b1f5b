# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan of both gateways from one description.

Nothing is asked of a host. What both ends must have alike (proposals, interface ids, MTU, names) is worked out once,
and each gateway gets its own side of it, so that the ends cannot differ.
"""

from __future__ import annotations

import dataclasses
import ipaddress
import re
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._ipsec import overhead, proposal

Address = t.Union[ipaddress.IPv4Address, ipaddress.IPv6Address]
Network = t.Union[ipaddress.IPv4Network, ipaddress.IPv6Network]

ROUTE = "route"
POLICY = "policy"
#: Of the names that the collection gives to connections, so that its own are told from a user's.
NAME = "fastpath"
IFNAME_MAX = 15
TUNNELS_MAX = 64
START_ACTIONS = ("none", "start", "trap")
_ANY = {4: "0.0.0.0/0", 6: "::/0"}


def parse_if_id(value: t.Any, where: str) -> int:
    """An interface id, decimal or hexadecimal: 42 and 0x2a are the same."""
    try:
        number = value if isinstance(value, int) and not isinstance(value, bool) else int(str(value).strip(), 0)
    except ValueError as err:
        raise BenchError(f"{value!r} is no number", where=where, remedy="Write 42 or 0x2a", code="bad_if_id") from err
    if not 1 <= number <= 0xFFFFFFFF:
        raise BenchError(
            f"{value!r} is no interface id", where=where,
            remedy="1 to 4294967295; 0 would be no id at all, and traffic would pass the tunnel by", code="bad_if_id",
        )  # fmt: skip
    return number


@dataclasses.dataclass(frozen=True)
class Link:
    """An interface of a gateway with its addresses."""

    name: str
    addresses: tuple[ipaddress.IPv4Interface | ipaddress.IPv6Interface, ...]
    mtu_bytes: int


@dataclasses.dataclass(frozen=True)
class Gateway:
    """What is known of a gateway before the tunnels.

    ``networks`` are those behind it; without them, the networks of its links that the other gateway has no part in.
    """

    name: str
    links: tuple[Link, ...]
    networks: tuple[Network, ...] = ()


@dataclasses.dataclass(frozen=True)
class Description:
    """What is asked for."""

    gateways: tuple[Gateway, Gateway]
    mode: str = ROUTE
    tunnels: int = 1
    #: address of the first gateway, address of the second
    outer: tuple[tuple[Address, Address], ...] = ()
    #: how many pairs are taken from the addresses of a network that both are in, where none are named
    outer_pairs: int = 1
    ike: tuple[str, ...] = ("aes128gcm16-prfsha256-x25519",)
    esp: tuple[str, ...] = ("aes128gcm16",)
    #: of each tunnel, in then out; empty counts up from ``first_if_id``
    if_ids: tuple[tuple[int, int], ...] = ()
    first_if_id: int = 42
    interface_prefix: str = "ipsec"
    path_mtu_bytes: int | None = None
    nat_t: bool = False
    auth: str = "psk"
    rekey_ike_s: int = 14400
    rekey_esp_s: int = 3600
    reauth_s: int = 0
    dpd_delay_s: int = 10
    start_action: str = "start"
    replay_window: int = 1024


@dataclasses.dataclass(frozen=True)
class Tunnel:
    """One tunnel as one gateway sees it."""

    number: int
    name: str
    interface: str | None
    if_id: int | None
    local: str
    remote: str
    local_id: str
    remote_id: str
    local_ts: tuple[str, ...]
    remote_ts: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Plan:
    """What one gateway has to have."""

    gateway: str
    peer: str
    initiator: bool
    description: Description
    tunnels: tuple[Tunnel, ...]
    networks: tuple[str, ...]
    mtu_bytes: int
    path_mtu_bytes: int
    outer_links: tuple[str, ...]
    esp: tuple[proposal.Proposal, ...]
    ike: tuple[proposal.Proposal, ...]
    probe: dict[str, str] | None

    @property
    def interfaces(self) -> list[dict[str, t.Any]]:
        """The xfrm interfaces; none with policies."""
        links = [tunnel for tunnel in self.tunnels if tunnel.interface is not None]
        return [
            {"name": tunnel.interface, "if_id": tunnel.if_id, "mtu_bytes": self.mtu_bytes, "up": True}
            for tunnel in links
        ]

    @property
    def routes(self) -> list[dict[str, t.Any]]:
        """One route for each network behind the peer; over several tunnels it has several next hops."""
        names = [interface["name"] for interface in self.interfaces]
        if not names:
            return []
        return [{"dst": network, "devs": names} for network in self.networks]

    def as_result(self) -> dict[str, t.Any]:
        return {
            "gateway": self.gateway,
            "peer": self.peer,
            "initiator": self.initiator,
            "mode": self.description.mode,
            "interfaces": self.interfaces,
            "routes": self.routes,
            "networks": list(self.networks),
            "mtu_bytes": self.mtu_bytes,
            "mss_bytes": {version: overhead.mss(self.mtu_bytes, version) for version in (4, 6)},
            "path_mtu_bytes": self.path_mtu_bytes,
            "outer_links": list(self.outer_links),
            "outer_pairs": len({(tunnel.local, tunnel.remote) for tunnel in self.tunnels}),
            "probe": self.probe,
            "ids": sorted({name for tunnel in self.tunnels for name in (tunnel.local_id, tunnel.remote_id)}),
            "tunnels": [dataclasses.asdict(tunnel) for tunnel in self.tunnels],
        }


def make(description: Description, gateway: str) -> Plan:
    """The plan of one of the two gateways.

    :raises BenchError: something asked for cannot be, with the reason.
    """
    names = [one.name for one in description.gateways]
    if gateway not in names:
        raise BenchError(f"{gateway} is neither {names[0]} nor {names[1]}", where="gateways", code="not_a_gateway")
    if names[0] == names[1]:
        raise BenchError("both gateways are the same host", where="gateways", code="not_a_gateway")
    side = names.index(gateway)
    here, there = description.gateways[side], description.gateways[1 - side]
    _check_numbers(description)
    ike = proposal.parse_all(description.ike, proposal.IKE)
    esp = proposal.parse_all(description.esp, proposal.ESP)
    for one in esp:
        if one.cipher.name in proposal.NOT_ENCRYPTING:
            raise BenchError(
                f"{one.text} leaves the traffic readable", where="ESP proposal",
                remedy="Name an algorithm that encrypts; a plaintext path must not be measured as encrypted",
                code="not_encrypting",
            )  # fmt: skip
    outer = _outer_pairs(description)
    if_ids = _if_ids(description)
    behind = [networks_behind(description, index) for index in (0, 1)]
    path_mtu = description.path_mtu_bytes or _path_mtu(description, outer)
    version = max(address.version for pair in outer for address in pair)
    # of several proposals it is not known beforehand which one is agreed on, so the smallest MTU holds
    mtu = min(overhead.inner_mtu(path_mtu, one, outer_version=version, nat_t=description.nat_t) for one in esp)
    families = sorted({network.version for network in (*behind[0], *behind[1])})
    if 6 in families and mtu < overhead.LEAST_MTU_BYTES[6]:
        raise BenchError(
            f"an MTU of {mtu} is left inside the tunnel, and IPv6 needs {overhead.LEAST_MTU_BYTES[6]}",
            where="path_mtu_bytes", code="path_mtu_too_small",
        )  # fmt: skip
    if description.mode == ROUTE:
        _check_routes(behind[1 - side], [pair[1 - side] for pair in outer], there.name)
    tunnels = []
    for index in range(description.tunnels):
        pair = outer[index % len(outer)]
        ts = [
            tuple(str(n) for n in behind[end]) if description.mode == POLICY else tuple(_ANY[f] for f in families)
            for end in (0, 1)
        ]
        tunnels.append(
            Tunnel(
                number=index + 1,
                name=f"{NAME}-{index + 1}",
                interface=f"{description.interface_prefix}{index + 1}" if description.mode == ROUTE else None,
                if_id=if_ids[index] if description.mode == ROUTE else None,
                local=str(pair[side]),
                remote=str(pair[1 - side]),
                local_id=identity(side, index),
                remote_id=identity(1 - side, index),
                local_ts=ts[side],
                remote_ts=ts[1 - side],
            )
        )
    outer_links = tuple(
        dict.fromkeys(
            link.name for pair in outer for link in here.links if any(pair[side] == a.ip for a in link.addresses)
        )
    )
    return Plan(
        gateway=here.name,
        peer=there.name,
        initiator=side == 0,
        description=description,
        tunnels=tuple(tunnels),
        networks=tuple(str(network) for network in behind[1 - side]),
        mtu_bytes=mtu,
        path_mtu_bytes=path_mtu,
        outer_links=outer_links,
        esp=esp,
        ike=ike,
        probe=_probe(here, there, behind[side], behind[1 - side]),
    )


def _probe(
    here: Gateway, there: Gateway, own: t.Sequence[Network], theirs: t.Sequence[Network]
) -> dict[str, str] | None:
    """Two addresses, of the gateways themselves, between which packets have to go through the tunnels."""
    sources, targets = (
        [a.ip for link in gateway.links for a in link.addresses if any(a.ip in network for network in networks)]
        for gateway, networks in ((here, own), (there, theirs))
    )
    for source in sources:
        for target in targets:
            if source.version == target.version:
                return {"source": str(source), "target": str(target)}
    return None


def identity(side: int, index: int) -> str:
    """The IKE identity of an end of a tunnel.

    Each tunnel has its own: with one identity for several tunnels of one address pair, the responder would take the
    first of them for all, and the interface ids of the ends would not fit.
    """
    return f"{'ab'[side]}{index + 1}.{NAME}.invalid"


def _check_numbers(description: Description) -> None:
    if description.mode not in (ROUTE, POLICY):
        raise BenchError(f"{description.mode!r} is no mode", where="mode", remedy="route or policy", code="bad_option")
    if not 1 <= description.tunnels <= TUNNELS_MAX:
        raise BenchError(
            f"{description.tunnels} tunnels", where="tunnels", remedy=f"1 to {TUNNELS_MAX}", code="bad_option"
        )
    if description.mode == POLICY and description.tunnels != 1:
        raise BenchError(
            f"{description.tunnels} tunnels with policies", where="tunnels",
            remedy="Policies of the same networks take one tunnel; use mode route for several", code="bad_option",
        )  # fmt: skip
    longest = f"{description.interface_prefix}{description.tunnels}"
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_.-]*", description.interface_prefix) or len(longest) > IFNAME_MAX:
        raise BenchError(
            f"{longest!r} is no interface name", where="interface_prefix",
            remedy=f"At most {IFNAME_MAX} characters, a letter first", code="bad_interface_name",
        )  # fmt: skip
    if description.start_action not in START_ACTIONS:
        raise BenchError(
            f"{description.start_action!r} is no start action", where="start_action",
            remedy=f"One of {', '.join(START_ACTIONS)}", code="bad_option",
        )  # fmt: skip
    for name in ("rekey_ike_s", "rekey_esp_s", "reauth_s", "dpd_delay_s", "replay_window"):
        if getattr(description, name) < 0:
            raise BenchError(f"{getattr(description, name)} is negative", where=name, code="bad_option")


def _if_ids(description: Description) -> list[int]:
    """One id for each tunnel, the same in both directions and on no other tunnel."""
    if not description.if_ids:
        first = description.first_if_id
        return list(range(first, first + description.tunnels))
    if len(description.if_ids) != description.tunnels:
        raise BenchError(
            f"{len(description.if_ids)} interface ids for {description.tunnels} tunnels", where="if_ids",
            code="bad_if_id",
        )  # fmt: skip
    for number, (inward, outward) in enumerate(description.if_ids, start=1):
        if inward != outward:
            raise BenchError(
                f"tunnel {number} has if_id {inward} ({inward:#x}) in and {outward} ({outward:#x}) out", where="if_ids",
                remedy="Give both the same, the interface's own: else traffic passes the tunnel by, or is dropped",
                code="if_id_mismatch",
            )  # fmt: skip
    ids = [inward for inward, _out in description.if_ids]
    twice = sorted({one for one in ids if ids.count(one) > 1})
    if twice:
        raise BenchError(
            f"interface id {', '.join(map(str, twice))} is given to several tunnels", where="if_ids",
            remedy="Each tunnel needs its own", code="if_id_twice",
        )  # fmt: skip
    return ids


def _outer_pairs(description: Description) -> list[tuple[Address, Address]]:
    """The addresses that the tunnels go between; without any named, those of the first link of both gateways."""
    if not description.outer:
        found = _shared(description)
        if not found:
            names = " and ".join(gateway.name for gateway in description.gateways)
            raise BenchError(
                f"{names} share no network, so the tunnel's outer addresses are not known", where="outer",
                remedy="Name the pairs of outer addresses", code="no_outer_addresses",
            )  # fmt: skip
        if not 1 <= description.outer_pairs <= min(len(found), description.tunnels):
            raise BenchError(
                f"{description.outer_pairs} pairs of outer addresses for {description.tunnels} tunnels",
                where="outer_pairs",
                remedy=f"The gateways have {len(found)}, and there is at most one for each tunnel",
                code="no_outer_addresses",
            )
        return found[: description.outer_pairs]
    if len(description.outer) > description.tunnels:
        raise BenchError(
            f"{len(description.outer)} pairs of outer addresses for {description.tunnels} tunnels", where="outer",
            remedy="At most one pair for each tunnel", code="bad_option",
        )  # fmt: skip
    if len(set(description.outer)) != len(description.outer):
        raise BenchError("a pair of outer addresses is given twice", where="outer", code="bad_option")
    for pair in description.outer:
        if pair[0].version != pair[1].version or pair[0] == pair[1]:
            raise BenchError(f"{pair[0]} and {pair[1]} are no pair", where="outer", code="bad_option")
        for address, gateway in zip(pair, description.gateways):
            own = [a.ip for link in gateway.links for a in link.addresses]
            if own and address not in own:
                raise BenchError(
                    f"{address} is no address of {gateway.name}", where="outer",
                    remedy=f"It has {', '.join(map(str, own))}", code="no_outer_addresses",
                )  # fmt: skip
    return list(description.outer)


def _shared(description: Description) -> list[tuple[Address, Address]]:
    """The address pairs of the networks that both gateways are in, each address once, IPv4 first."""
    one, other = ([a for link in gateway.links for a in link.addresses] for gateway in description.gateways)
    networks = dict.fromkeys(a.network for a in one if any(a.network == b.network for b in other))
    pairs: list[tuple[Address, Address]] = []
    for network in sorted(networks, key=lambda found: found.version):
        sides = [[a.ip for a in side if a.network == network] for side in (one, other)]
        pairs += [pair for pair in zip(*sides) if pair[0] != pair[1]]
    # of one family, so that one MTU and one header hold for all
    return [pair for pair in pairs if pair[0].version == pairs[0][0].version]


def _path_mtu(description: Description, outer: t.Sequence[tuple[Address, Address]]) -> int:
    """The smallest MTU of the links with outer addresses, of both ends."""
    found = [
        link.mtu_bytes
        for side, gateway in enumerate(description.gateways)
        for link in gateway.links
        for address in link.addresses
        if any(address.ip == pair[side] for pair in outer)
    ]
    return min(found, default=1500)


def networks_behind(description: Description, side: int) -> tuple[Network, ...]:
    """The networks behind a gateway."""
    gateway, other = description.gateways[side], description.gateways[1 - side]
    if gateway.networks:
        return gateway.networks
    theirs = {a.network for link in other.links for a in link.addresses}
    found = [
        a.network
        for link in gateway.links
        for a in link.addresses
        if a.network not in theirs and a.network.prefixlen < a.max_prefixlen and not a.ip.is_link_local
    ]
    if not found:
        raise BenchError(
            f"no network behind {gateway.name} is known", where="networks", remedy="Name the networks behind it",
            code="no_networks",
        )  # fmt: skip
    return tuple(dict.fromkeys(found))


def _check_routes(networks: t.Iterable[Network], peers: t.Iterable[Address], name: str) -> None:
    """No route into the tunnel may cover what the tunnel itself is sent to."""
    peer_list = list(peers)
    for network in networks:
        for peer in peer_list:
            if peer.version == network.version and peer in network:
                raise BenchError(
                    f"the route to {network} goes into the tunnel and covers {peer}, the outer address of {name}",
                    where="routes",
                    remedy="ESP and IKE would be sent into their own tunnel; name the networks behind the peer alone",
                    code="route_covers_peer",
                )
