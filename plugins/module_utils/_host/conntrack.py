# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kernel's connections as its own interface tells them: counted, those that are translated apart, and removed.

Over netlink, as the program ``conntrack`` does it, so that this program need
not be there. All of it is of the network namespace of this process.
"""

from __future__ import annotations

import dataclasses
import socket
import struct
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._host import netlink

#: linux/netfilter/nfnetlink.h, linux/netfilter/nfnetlink_conntrack.h, nf_conntrack_common.h
_NETLINK_NETFILTER = 12
_CTNETLINK_GET, _CTNETLINK_DELETE = 0x0101, 0x0102
_CTA_TUPLE_ORIG, _CTA_STATUS = 1, 3
_CTA_TUPLE_PROTO, _CTA_PROTO_NUM = 2, 1
_TYPE_MASK = 0x3FFF
_SOURCE_TRANSLATED, _TARGET_TRANSLATED = 1 << 4, 1 << 5
_ATTRIBUTE = struct.Struct("=HH")
_NAMES = {1: "icmp", 6: "tcp", 17: "udp"}
_TIMEOUT_S = 20.0
_SYSCTL = "/proc/sys/net/netfilter"
_STATISTICS = "/proc/net/stat/nf_conntrack"
#: What the kernel counts when it could not keep a connection.
DROPS = ("insert_failed", "drop", "early_drop")


@dataclasses.dataclass
class Counts:
    """Connections that the kernel keeps."""

    total: int
    #: Of which an end is translated.
    translated: int
    #: The translated ones by protocol.
    protocols: dict[str, int]
    max: int | None
    buckets: int | None
    drops: dict[str, int] | None

    @property
    def full(self) -> float | None:
        return self.total / self.max if self.max else None

    def as_result(self) -> dict[str, t.Any]:
        return {**dataclasses.asdict(self), "full": self.full}


def _attributes(data: bytes) -> t.Iterator[tuple[int, bytes]]:
    place = 0
    while place + _ATTRIBUTE.size <= len(data):
        length, kind = _ATTRIBUTE.unpack_from(data, place)
        if length < _ATTRIBUTE.size:
            return
        yield kind & _TYPE_MASK, data[place + _ATTRIBUTE.size : place + length]
        place += (length + 3) & ~3


def read_entry(data: bytes) -> tuple[int, int]:
    """Protocol and status of one connection. Pure."""
    protocol = status = 0
    for kind, value in _attributes(data):
        if kind == _CTA_STATUS:
            status = struct.unpack("!I", value)[0]
        elif kind == _CTA_TUPLE_ORIG:
            for inner, part in _attributes(value):
                if inner == _CTA_TUPLE_PROTO:
                    protocol = next((one[0] for name, one in _attributes(part) if name == _CTA_PROTO_NUM), 0)
    return protocol, status


def _ask(kind: int, flags: int) -> t.Iterator[bytes]:
    """What the kernel answers, message by message, without their headers."""
    family_and_version = struct.pack("=BBH", socket.AF_UNSPEC, 0, 0)
    try:
        for message in netlink.ask(_NETLINK_NETFILTER, kind, flags, family_and_version, timeout_s=_TIMEOUT_S):
            yield message[4:]
    except OSError as err:
        raise BenchError(
            f"the kernel does not tell its connections: {err.strerror or err}",
            where="conntrack",
            remedy="Run as root, on a kernel with nf_conntrack and ctnetlink (module nf_conntrack_netlink)",
            code="no_conntrack",
        ) from err


def _number(path: str) -> int | None:
    try:
        with open(path, encoding="ascii") as stream:
            return int(stream.read())
    except (OSError, ValueError):
        return None


def read_drops(text: str) -> dict[str, int]:
    """Of ``/proc/net/stat/nf_conntrack``: a head line, and a line of hexadecimal numbers for each CPU. Pure."""
    head, *rows = text.splitlines()
    names = head.split()
    return {
        name: sum(int(row.split()[names.index(name)], 16) for row in rows if row.strip())
        for name in DROPS
        if name in names
    }


def count() -> Counts:
    protocols: dict[str, int] = {}
    total = translated = 0
    for entry in _ask(_CTNETLINK_GET, netlink.DUMP):
        protocol, status = read_entry(entry)
        total += 1
        if status & (_SOURCE_TRANSLATED | _TARGET_TRANSLATED):
            translated += 1
            name = _NAMES.get(protocol, "other")
            protocols[name] = protocols.get(name, 0) + 1
    try:
        with open(_STATISTICS, encoding="ascii") as stream:
            drops: dict[str, int] | None = read_drops(stream.read())
    except (OSError, ValueError, IndexError):
        drops = None  # a kernel without these
    most, buckets = (_number(f"{_SYSCTL}/nf_conntrack_{name}") for name in ("max", "buckets"))
    return Counts(total, translated, protocols, most, buckets, drops)


def flush() -> None:
    """Forget all connections. The kernel takes up those that go on with their next packet, but translates them anew."""
    for _nothing in _ask(_CTNETLINK_DELETE, netlink.ACK):
        pass
