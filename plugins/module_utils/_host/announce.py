# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tell the neighbours on a link which MAC address an IP address has now.

A neighbour that knew another one goes on sending to it for about 8 seconds.
The frames: a gratuitous ARP request (RFC 5227) and an unsolicited neighbour
advertisement (RFC 4861, section 7.2.6).
"""

from __future__ import annotations

import contextlib
import dataclasses
import ipaddress
import re
import socket
import struct
import time
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._host.access import Access

_ETH_ARP, _ETH_IPV6 = 0x0806, 0x86DD
_MAC = re.compile(r"[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}")
_ALL_NODES = ipaddress.IPv6Address("ff02::1")
#: Between two sends: one frame may be lost on a link that has just come up.
_PAUSE_S = 0.05


@dataclasses.dataclass(frozen=True)
class Announcement:
    """One address of one interface."""

    interface: str
    address: str
    mac: str


def parse_mac(text: str, *, where: str) -> bytes:
    if not _MAC.fullmatch(text):
        raise BenchError(f"{text!r} is no MAC address", where=where, remedy="Write 02:fe:00:00:00:01", code="bad_mac")
    return bytes.fromhex(text.replace(":", ""))


def _checksum(data: bytes) -> int:
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def arp_frame(mac: bytes, address: ipaddress.IPv4Address) -> bytes:
    head = b"\xff" * 6 + mac + struct.pack("!H", _ETH_ARP)
    body = struct.pack("!HHBBH", 1, 0x0800, 6, 4, 1) + mac + address.packed + bytes(6) + address.packed
    return (head + body).ljust(60, b"\0")


def advertisement_frame(mac: bytes, address: ipaddress.IPv6Address, *, router: bool) -> bytes:
    flags = 0x20000000 | (0x80000000 if router else 0)  # overrides what is known
    body = struct.pack("!BBHI", 136, 0, 0, flags) + address.packed + bytes([2, 1]) + mac
    pseudo = address.packed + _ALL_NODES.packed + struct.pack("!IxxxB", len(body), 58)
    body = body[:2] + struct.pack("!H", _checksum(pseudo + body)) + body[4:]
    packet = struct.pack("!IHBB", 6 << 28, len(body), 58, 255) + address.packed + _ALL_NODES.packed + body
    return bytes.fromhex("333300000001") + mac + struct.pack("!H", _ETH_IPV6) + packet


def frame(what: Announcement, *, router: bool) -> bytes:
    where = f"interface {what.interface}"
    mac = parse_mac(what.mac, where=where)
    try:
        address = ipaddress.ip_interface(what.address).ip
    except ValueError as error:
        raise BenchError(f"{what.address!r} is no address", where=where, code="bad_address") from error
    if isinstance(address, ipaddress.IPv4Address):
        return arp_frame(mac, address)
    return advertisement_frame(mac, address, router=router)


def wanted(access: Access, interfaces: t.Sequence[dict[str, t.Any]]) -> list[Announcement]:
    """Addresses and MAC address as given, and the kernel's own where they are not."""
    found = []
    for item in interfaces:
        link = access.link(item["name"])
        addresses = item.get("addresses")
        if addresses is None:
            addresses = [info["local"] for info in link.get("addr_info", ()) if info.get("scope") != "host"]
        mac = item.get("mac") or link.get("address", "")
        found += [Announcement(item["name"], address, mac) for address in addresses]
    return found


def send(announcements: t.Sequence[Announcement], *, router: bool, repeat: int) -> None:
    """Send each announcement ``repeat`` times."""
    frames = [(what, frame(what, router=router)) for what in announcements]
    with contextlib.ExitStack() as stack:
        sockets: dict[str, socket.socket] = {}
        for what, _data in frames:
            if what.interface not in sockets:
                sockets[what.interface] = stack.enter_context(_open(what.interface))
        for number in range(repeat):
            if number:
                time.sleep(_PAUSE_S)
            for what, data in frames:
                try:
                    sockets[what.interface].send(data)
                except OSError as error:
                    raise BenchError(
                        f"nothing can be sent: {error.strerror}",
                        where=f"interface {what.interface}",
                        remedy="The interface must be up",
                        code="not_sent",
                    ) from error


def _open(interface: str) -> socket.socket:
    try:
        # Protocol 0: it only sends, and must not take in what others receive.
        opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    except PermissionError as error:
        raise BenchError("sending frames needs root", remedy="Use become", code="permission") from error
    try:
        opened.bind((interface, 0))
    except OSError as error:
        opened.close()
        raise BenchError(
            f"it cannot be used: {error.strerror}", where=f"interface {interface}", code="not_sent"
        ) from error
    return opened
