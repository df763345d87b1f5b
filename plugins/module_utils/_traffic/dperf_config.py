# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One description of a load, and from it the configurations of dperf's client and of its server.

What dperf would refuse only after it has taken the network cards is found here first; the limits are those of dperf
1.9, as its own test of configurations (``dperf -t``) tells them.
"""

from __future__ import annotations

import dataclasses
import ipaddress
import re
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.record import CLIENT, SERVER

#: What a load is about: connections per second, connections held, payload, packets without waiting for an answer.
CPS, CONCURRENT, THROUGHPUT, FLOOD = LOADS = ("cps", "concurrent", "throughput", "flood")
PROTOCOLS = ("tcp", "udp", "http")

SOCKET_BYTES = 80
#: What one worker takes beside its sockets: 1,500 MiB were seen not to suffice and 1,600 MiB to do.
WORKER_BYTES = 1500 * 1024 * 1024
#: dperf waits this long before the first packet, and after the last one, and counts it into the slow start.
WAIT_S = 3
SLOW_START_S = (10, 600)
_LARGEST_NUMBER = 32767
_PCI = re.compile(r"[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]")
_MAC = re.compile(r"(?:[0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}")
_PAYLOAD_LIMIT = {"tcp": 1460, "http": 1460, "udp": 1472}
#: Names that users know from older configurations, and what they are called here.
OLD_WORDS = {
    "packet_size": "payload_bytes, which is without the headers",
    "lport_range": "client_ports",
    "cc": "concurrent",
    "payload_size": "payload_bytes",
    "client_port_range": "client_ports",
}
Address = t.Union[ipaddress.IPv4Address, ipaddress.IPv6Address]


def _bad(what: str, where: str, remedy: str | None = None, code: str = "bad_option") -> BenchError:
    return BenchError(what, where=where, remedy=remedy, code=code)


def _address(text: str, where: str) -> Address:
    try:
        return ipaddress.ip_address(text)
    except ValueError as error:
        raise _bad(f"{text!r} is not an IP address", where) from error


@dataclasses.dataclass(frozen=True)
class Range:
    """Addresses that differ in their last byte."""

    start: str
    count: int = 1

    def first(self) -> int:
        return int(_address(self.start, "addresses"))

    def check(self, where: str) -> None:
        last = int(_address(self.start, where)) & 0xFF
        if not 1 <= self.count <= 254 or last < 1 or last + self.count - 1 > 254:
            raise _bad(
                f"{self.count} addresses from {self.start} on are not within the last byte",
                where,
                "A range ends at .254; give more ranges, one for each network card",
                "bad_range",
            )

    def overlaps(self, other: Range) -> bool:
        one, two = self.first(), other.first()
        return one < two + other.count and two < one + self.count

    def holds(self, address: str) -> bool:
        return self.overlaps(Range(address))

    def endings(self) -> set[int]:
        """The last two bytes of each address."""
        return {(self.first() + number) & 0xFFFF for number in range(self.count)}


@dataclasses.dataclass(frozen=True)
class Nic:
    """A network card that dperf takes: by PCI address, with the address it answers ARP for, and the next hop."""

    pci: str
    address: str
    gateway: str
    gateway_mac: str | None = None


@dataclasses.dataclass(frozen=True)
class End:
    """What differs between the machines: their cards and CPUs."""

    nics: tuple[Nic, ...]
    cpus: tuple[int, ...]
    #: MiB of hugepages from each NUMA node; without it, dperf takes what it needs.
    socket_mem_mb: tuple[int, ...] = ()


@dataclasses.dataclass(frozen=True)
class Vxlan:
    """Everything inside a VXLAN, with a tunnel end for each CPU."""

    vni: int
    inner_source_mac: str
    inner_destination_mac: str
    local: Range
    remote: Range

    def line(self, *, turned: bool) -> str:
        macs = [self.inner_source_mac, self.inner_destination_mac]
        ends = [self.local, self.remote]
        if turned:
            macs, ends = macs[::-1], ends[::-1]
        return " ".join([str(self.vni), *macs, *(f"{end.start} {end.count}" for end in ends)])


@dataclasses.dataclass(frozen=True)
class Load:
    """What the client does to the server. A range of clients and one of servers belongs to each card, in order."""

    kind: str
    clients: tuple[Range, ...]
    servers: tuple[Range, ...]
    protocol: str = "tcp"
    cps: int | None = None
    concurrent: int | None = None
    keepalive_us: int | None = None
    payload_bytes: int | None = None
    listen_port: int = 80
    listen_count: int = 1
    client_ports: tuple[int, int] = (1, 65535)
    #: The clients as the server sees them, where something between translates addresses.
    clients_seen: tuple[Range, ...] = ()
    vlan: int | None = None
    vxlan: Vxlan | None = None
    rss: bool = False
    slow_start_s: int = 30
    duration_s: int = 60
    retransmit_timeout_s: int = 2
    tx_burst: int | None = None
    launch_num: int | None = None

    @property
    def total_s(self) -> int:
        """From its first second to its last."""
        return self.slow_start_s + self.duration_s + WAIT_S + 1

    @property
    def steady(self) -> range:
        """The seconds that count, by dperf's own numbers."""
        return range(self.slow_start_s, self.slow_start_s + self.duration_s)


# --------------------------------------------------------------------------- the text


def render(load: Load, end: End, side: str, *, server_duration_s: int | None = None) -> str:
    """The configuration of one end.

    :param server_duration_s: how long a server stays that nobody stops.
    """
    rows: list[tuple[str, t.Any]] = [("mode", side), ("cpu", " ".join(map(str, end.cpus)))]
    if end.socket_mem_mb:
        rows.append(("socket_mem", ",".join(map(str, end.socket_mem_mb))))
    rows.append(("protocol", load.protocol))
    client = side == CLIENT
    duration = load.duration_s if client else server_duration_s or load.total_s + 60
    rows.append(("duration", f"{duration}s"))
    if client:
        rows += [("slow_start", load.slow_start_s), ("wait", WAIT_S)]
        rows += [("cps", load.cps), ("cc", load.concurrent)]
        rows.append(("client_port_range", f"{load.client_ports[0]} {load.client_ports[1]}"))
        rows.append(("launch_num", load.launch_num))
        if load.kind == FLOOD:
            rows.append(("flood", ""))
    if load.keepalive_us is not None:
        # the server gives a connection up that is silent for this long
        keep = load.keepalive_us if client else max(1_000_000, 2 * load.keepalive_us)
        rows.append(("keepalive", time_text(keep)))
    rows += [("payload_size", load.payload_bytes), ("tx_burst", load.tx_burst), ("vlan", load.vlan)]
    if load.retransmit_timeout_s != 2:
        rows.append(("retransmit_timeout", load.retransmit_timeout_s))
    if load.rss:
        rows.append(("rss", ""))
    if load.vxlan is not None:
        rows.append(("vxlan", load.vxlan.line(turned=not client)))
    for nic in end.nics:
        rows.append(("port", " ".join(filter(None, (nic.pci, nic.address, nic.gateway, nic.gateway_mac)))))
    rows += [("client", f"{item.start} {item.count}") for item in clients_of(load, side)]
    rows += [("server", f"{item.start} {item.count}") for item in load.servers]
    rows.append(("listen", f"{load.listen_port} {load.listen_count}"))
    return "".join(f"{key} {value}".rstrip() + "\n" for key, value in rows if value is not None)


def clients_of(load: Load, side: str) -> tuple[Range, ...]:
    """The clients as this end has to list them."""
    return load.clients_seen if side == SERVER and load.clients_seen else load.clients


def time_text(us: int) -> str:
    """A time in the largest unit that holds it whole: 1ms, 10us, 60s.

    :raises BenchError: dperf has no such time.
    """
    for unit, size in (("s", 1_000_000), ("ms", 1_000), ("us", 1)):
        if us > 0 and us % size == 0 and us // size <= _LARGEST_NUMBER:
            return f"{us // size}{unit}"
    raise _bad(
        f"{us} us is no time that dperf can keep", "keepalive", "Use whole seconds, milliseconds or microseconds"
    )


# --------------------------------------------------------------------------- the checks


def sockets_per_worker(load: Load, end: End) -> int:
    """Of the worker that has the fewest."""
    if not end.nics or not load.clients or not load.servers:
        return 0
    per_nic = max(1, len(end.cpus) // len(end.nics))
    ports = load.client_ports[1] - load.client_ports[0] + 1
    return min(
        clients.count * ports * (servers.count if load.rss or per_nic == 1 else 1) * load.listen_count
        for clients, servers in zip(load.clients, load.servers)
    )


def memory_bytes(load: Load, end: End) -> int:
    """The least that dperf needs: its sockets, and one worker's buffers. Several workers need more."""
    return WORKER_BYTES + SOCKET_BYTES * sockets_per_worker(load, end) * max(1, len(end.cpus))


def problems(load: Load, end: End, side: str) -> list[BenchError]:
    """All that is wrong with this end's configuration, as far as it can be told without the machine."""
    found: list[BenchError] = []
    for check in (_numbers, _targets, _ranges, _cards, _overlay, _sockets):
        try:
            check(load, end, side)
        except BenchError as error:
            found.append(error)
    return found


def checked(load: Load, end: End, side: str) -> None:
    """:raises BenchError: with all that is wrong."""
    found = problems(load, end, side)
    if len(found) == 1:
        raise found[0]
    if found:
        raise BenchError(" ".join(error.message for error in found).rstrip("."), code=found[0].code)


def _within(name: str, value: int | None, low: int, high: int) -> None:
    if value is not None and not low <= value <= high:
        raise _bad(f"{value} is out of range", name, f"Use {low} to {high}")


def _numbers(load: Load, end: End, side: str) -> None:
    for name, choices in (("load", LOADS), ("protocol", PROTOCOLS)):
        value = load.kind if name == "load" else load.protocol
        if value not in choices:
            raise _bad(f"{value!r} is not known", name, f"Choose one of {', '.join(choices)}")
    _within("slow_start_s", load.slow_start_s, *SLOW_START_S)
    _within("duration_s", load.duration_s, 1, 7 * 86400)
    _within("listen_port", load.listen_port, 1, 65535)
    _within("listen_count", load.listen_count, 1, 65536 - load.listen_port)
    low, high = load.client_ports
    _within("client_ports", low, 1, 65535)
    _within("client_ports", high, low, 65535)
    _within("payload_bytes", load.payload_bytes, 1, _PAYLOAD_LIMIT[load.protocol])
    _within("retransmit_timeout_s", load.retransmit_timeout_s, 2, 300)
    _within("tx_burst", load.tx_burst, 1, 1024)
    if load.keepalive_us is not None:
        if load.keepalive_us % 2:
            raise _bad("must be a multiple of 2 us", "keepalive")
        time_text(load.keepalive_us)


def _targets(load: Load, end: End, side: str) -> None:
    held = load.kind in (CONCURRENT, THROUGHPUT, FLOOD)
    if load.kind == CPS and not load.cps:
        raise _bad("a load of new connections needs cps", "cps", code="no_targets")
    if held and not load.concurrent:
        raise _bad(f"the load {load.kind} needs the number of connections", "concurrent", code="no_targets")
    if load.concurrent and not load.keepalive_us:
        remedy = "Give the time between two requests of a connection"
        raise _bad("connections that are held need keepalive", "keepalive", remedy, "keepalive_needed")
    for name in ("cps", "concurrent"):
        _within(name, getattr(load, name), 1, 2_000_000_000)


def _ranges(load: Load, end: End, side: str) -> None:
    shown = clients_of(load, side)
    families = set()
    for name, ranges in (("clients", load.clients), ("servers", load.servers), ("clients_seen", load.clients_seen)):
        for item in ranges:
            item.check(name)
            families.add(_address(item.start, name).version)
    for nic in end.nics:
        for name, text in (("address", nic.address), ("gateway", nic.gateway)):
            version = _address(text, f"nic {nic.pci}: {name}").version
            if load.vxlan is None:
                families.add(version)
    if len(families) > 1:
        raise _bad("IPv4 and IPv6 are mixed", "clients, servers and nics", "dperf runs one of them at a time")
    if not shown or not load.servers:
        raise _bad("there must be clients and servers", "clients and servers", code="bad_range")
    _no_conflicts(shown, load.servers, end, side)


def _no_conflicts(clients: t.Sequence[Range], servers: t.Sequence[Range], end: End, side: str) -> None:
    if any(client.overlaps(server) for client in clients for server in servers):
        raise _bad("clients and servers have addresses in common", "clients and servers", code="address_conflict")
    for name, ranges in (("servers", servers), ("clients", clients)):
        if any(one.overlaps(two) for number, one in enumerate(ranges) for two in ranges[:number]):
            raise _bad("two ranges have addresses in common", name, code="address_conflict")
    seen: set[int] = set()
    for client in clients:
        if seen & client.endings():
            raise _bad(
                "the last two bytes of an address are there twice", "clients",
                "dperf tells its clients apart by them", "address_conflict",
            )  # fmt: skip
        seen |= client.endings()
    own, theirs = (clients, servers) if side == CLIENT else (servers, clients)
    for nic in end.nics:
        if any(item.holds(nic.gateway) for item in own):
            raise _bad(f"the gateway {nic.gateway} is one of this end's own addresses", f"nic {nic.pci}",
                       code="address_conflict")  # fmt: skip
        if any(item.holds(nic.address) for item in theirs):
            raise _bad(f"the address {nic.address} belongs to the other end", f"nic {nic.pci}",
                       code="address_conflict")  # fmt: skip


def _cards(load: Load, end: End, side: str) -> None:
    if not end.nics or not end.cpus:
        raise _bad("there must be a network card and a CPU", side, code="no_card")
    for nic in end.nics:
        if not _PCI.fullmatch(nic.pci):
            raise _bad(f"{nic.pci!r} is not a PCI address", "nics", "It is like 0000:13:00.0", "bad_pci")
        if nic.gateway_mac is not None and not _MAC.fullmatch(nic.gateway_mac):
            raise _bad(f"{nic.gateway_mac!r} is not a MAC address", f"nic {nic.pci}")
    for name, items in (("nics", [nic.pci for nic in end.nics]), ("cpus", list(end.cpus))):
        if len(set(items)) < len(items):
            raise _bad("one is given twice", name)
    cards, cpus = len(end.nics), len(end.cpus)
    if cpus % cards:
        raise _bad(
            f"{cpus} CPUs cannot be shared by {cards} network cards", "cpus",
            "The number of CPUs must be a multiple of the number of cards", "cpus_not_multiple",
        )  # fmt: skip
    ranges = [("servers", load.servers)] + ([("clients", load.clients)] if side == CLIENT else [])
    for name, given in ranges:
        if len(given) != cards:
            raise _bad(
                f"{len(given)} ranges of {name} for {cards} network cards", name,
                "Give one range for each card, in the same order", "ranges_not_cards",
            )  # fmt: skip
    per_card = cpus // cards
    if per_card > 1 and not load.rss and any(item.count != per_card for item in load.servers):
        raise _bad(
            f"{per_card} CPUs of a card, and not as many server addresses", "servers",
            f"Give ranges of {per_card} servers, or set rss", "rss_needed",
        )  # fmt: skip


def _overlay(load: Load, end: End, side: str) -> None:
    if load.vlan is not None and load.vxlan is not None:
        raise _bad("VLAN and VXLAN cannot be had at once", "vlan and vxlan", code="contradiction")
    _within("vlan", load.vlan, 1, 4094)
    if load.vxlan is None:
        return
    if load.rss:
        raise _bad("RSS cannot be had with VXLAN", "rss and vxlan", code="contradiction")
    _within("vxlan: vni", load.vxlan.vni, 0, 2**24 - 1)
    for mac in (load.vxlan.inner_source_mac, load.vxlan.inner_destination_mac):
        if not _MAC.fullmatch(mac):
            raise _bad(f"{mac!r} is not a MAC address", "vxlan")
    tunnel = load.vxlan.local if side == CLIENT else load.vxlan.remote
    per_card = len(end.cpus) // max(1, len(end.nics))
    for item in (load.vxlan.local, load.vxlan.remote):
        item.check("vxlan")
    if tunnel.count != per_card:
        raise _bad(f"{tunnel.count} tunnel ends for {per_card} CPUs", "vxlan", "Give as many as a card has CPUs")


def _sockets(load: Load, end: End, side: str) -> None:
    if side != CLIENT or not end.cpus:
        return
    workers = len(end.cpus)
    have = sockets_per_worker(load, end)
    asked = [("concurrent", load.concurrent), ("cps", (load.cps or 0) * load.retransmit_timeout_s)]
    for name, total in asked:
        need = (total or 0) // workers
        if need > have:
            raise _bad(
                f"a worker needs {need:,} sockets and has {have:,}"
                + (f" (each connection for {load.retransmit_timeout_s} s)" if name == "cps" else ""),
                name,
                "Sockets are clients x client ports x servers x listen ports: give more clients or listen_count",
                "insufficient_sockets",
            )


def contradictions(one: Load, other: Load) -> list[str]:
    """What must be the same for one server to serve both loads, and is not."""
    names = ("protocol", "payload_bytes", "keepalive_us", "servers", "vlan", "vxlan", "rss", "clients", "clients_seen")
    return [name for name in names if getattr(one, name) != getattr(other, name)]
