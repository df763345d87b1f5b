# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What both ends of a path check must agree on: the sockets, the words, the bytes of a transfer."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import hashlib
import socket
import struct
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._host import procfs

MAGIC = "fastpath-path-1"
#: Sockets options that Python's socket module does not name on all versions.
SO_NO_CHECK = 11
IP_MTU = 14
IPV6_MTU = 24
IP_MTU_DISCOVER = 10
IPV6_MTU_DISCOVER = 23
PMTUDISC_PROBE = 3  # set DF, and send whatever the kernel has learnt of the path
IP_RECVERR = 11
IPV6_RECVERR = 25
IP_PKTINFO = 8
IP_RECVTTL = 12
IPV6_RECVHOPLIMIT = 51
IPV6_HOPLIMIT = 52
IPV6_RECVPKTINFO = 49
IPV6_PKTINFO = 50
UDP_NO_CHECK6_TX = 101
UDP_NO_CHECK6_RX = 102

HOP_LIMIT = 64
HEADER_LIMIT = 1024
MOST_BYTES = 64 * 1024 * 1024
IP_HEADER = {socket.AF_INET: 20, socket.AF_INET6: 40}
L4_HEADER = 8  # ICMP echo and UDP alike


def family_of(address: str) -> socket.AddressFamily:
    for family in (socket.AF_INET, socket.AF_INET6):
        with contextlib.suppress(OSError):
            socket.inet_pton(family, address.split("%", 1)[0])
            return family
    raise BenchError(
        f"{address!r} is not an IP address",
        remedy="Give addresses, not names: a name can resolve to the management network",
        code="bad_address",
    )


def pattern(token: str, direction: str, count: int) -> bytes:
    """The bytes of one transfer: both ends know them, and no two transfers are alike."""
    return hashlib.shake_128(f"{MAGIC}/{token}/{direction}".encode()).digest(count)


def checksum_errors() -> dict[str, int | None]:
    """How many segments and datagrams this host has thrown away because of their checksum."""
    with open("/proc/net/snmp", encoding="ascii") as stream:
        snmp = stream.read()
    try:
        with open("/proc/net/snmp6", encoding="ascii") as stream:
            snmp6 = stream.read()
    except FileNotFoundError:
        snmp6 = ""  # no IPv6 here
    return {
        "tcp": procfs.parse_snmp(snmp, "Tcp", "InCsumErrors"),
        "udp": procfs.parse_snmp(snmp, "Udp", "InCsumErrors"),
        "udp6": procfs.parse_snmp6(snmp6, "Udp6InCsumErrors"),
    }


def errors_since(before: dict[str, int | None]) -> dict[str, int | None]:
    now = checksum_errors()
    return {
        name: None
        if now[name] is None or before.get(name) is None
        else t.cast(int, now[name]) - t.cast(int, before[name])
        for name in now
    }


def udp_socket(family: socket.AddressFamily, *, checksum: bool = True) -> socket.socket:
    """A socket that never fragments, and tells of each datagram where it came in and over how many hops."""
    made = socket.socket(family, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
    if family == socket.AF_INET:
        made.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, PMTUDISC_PROBE)
        made.setsockopt(socket.IPPROTO_IP, IP_RECVTTL, 1)
        made.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, HOP_LIMIT)
        made.setsockopt(socket.IPPROTO_IP, IP_PKTINFO, 1)
        if not checksum:
            made.setsockopt(socket.SOL_SOCKET, SO_NO_CHECK, 1)
    else:
        made.setsockopt(socket.IPPROTO_IPV6, IPV6_MTU_DISCOVER, PMTUDISC_PROBE)
        made.setsockopt(socket.IPPROTO_IPV6, IPV6_RECVHOPLIMIT, 1)
        made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_UNICAST_HOPS, HOP_LIMIT)
        made.setsockopt(socket.IPPROTO_IPV6, IPV6_RECVPKTINFO, 1)
        made.setsockopt(socket.IPPROTO_UDP, UDP_NO_CHECK6_RX, 1)
        if not checksum:
            made.setsockopt(socket.IPPROTO_UDP, UDP_NO_CHECK6_TX, 1)
    return made


@dataclasses.dataclass(frozen=True)
class Arrival:
    """A datagram with what the kernel told of its way."""

    data: bytes
    peer: tuple[t.Any, ...]
    interface: str | None
    hops: int | None


def receive(source: socket.socket) -> Arrival:
    data, extra, _flags, peer = source.recvmsg(65535, 512)
    interface = hops = None
    for level, kind, value in extra:
        if (level, kind) in ((socket.IPPROTO_IP, socket.IP_TTL), (socket.IPPROTO_IPV6, IPV6_HOPLIMIT)):
            hops = HOP_LIMIT - struct.unpack_from("=i", value)[0]
        elif level == socket.IPPROTO_IP and kind == IP_PKTINFO:
            interface = _interface_name(struct.unpack_from("=I", value)[0])
        elif level == socket.IPPROTO_IPV6 and kind == IPV6_PKTINFO:
            interface = _interface_name(struct.unpack_from("=I", value, 16)[0])
    return Arrival(data, peer, interface, hops)


def _interface_name(index: int) -> str | None:
    try:
        return socket.if_indextoname(index)
    except OSError:
        return None


def read_header(connection: socket.socket) -> tuple[bytes, bytes]:
    data = b""
    while b"\n" not in data:
        part = connection.recv(65536)
        if not part:
            raise ConnectionResetError(errno.ECONNRESET, "the other end closed before it said anything")
        data += part
        if len(data) > 65536 + HEADER_LIMIT:
            raise ValueError("no header")
    line, _newline, rest = data.partition(b"\n")
    return line, rest
