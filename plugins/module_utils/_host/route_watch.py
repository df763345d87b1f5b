# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Changes of the routing table, as the kernel itself announces them.

Next hops that change while traffic runs spread its flows anew. The kernel tells of each change over netlink, so nothing
has to be read again and again, and a change that is taken back within one interval is seen as well.
"""

from __future__ import annotations

import errno
import socket
import struct
import typing as t

_ROUTE4, _ROUTE6, _NEXTHOP = 1 << 6, 1 << 10, 1 << 31
_NEW_ROUTE, _DEL_ROUTE, _NEW_NEXTHOP, _DEL_NEXTHOP = 24, 25, 104, 105
_VERBS = {_NEW_ROUTE: "set", _DEL_ROUTE: "deleted", _NEW_NEXTHOP: "set", _DEL_NEXTHOP: "deleted"}
_DST, _OIF, _MULTIPATH, _NH_OIF, _NH_ID = 1, 4, 9, 5, 1
#: Made by the kernel itself with an address, by a router's advertisement, or a redirect.
_NOT_SET = (1, 2, 9)
_CLONED = 0x200
_LOCAL_TABLE = 255
_UNICAST = 1
_AT_ONCE = 65536
#: More than these in one reading are only counted.
_KEPT = 8


class Watch:
    """Listens from its making on; :meth:`changes` tells what came since it was last asked.

    :param indexes: gives the numbers of the interfaces that matter.
    """

    def __init__(self, indexes: t.Callable[[], t.Collection[int]]) -> None:
        self._indexes = indexes
        self._socket: socket.socket | None = None
        self.reason: str | None = None
        try:
            listener = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.NETLINK_ROUTE)
            listener.setblocking(False)
            listener.bind((0, _ROUTE4 | _ROUTE6 | _NEXTHOP))
            self._socket = listener
        except (OSError, AttributeError) as error:
            self.reason = f"the kernel does not tell of changed routes: {error}"

    def changes(self) -> list[str]:
        found: list[str] = []
        while self._socket is not None:
            try:
                data = self._socket.recv(_AT_ONCE)
            except OSError as error:
                if error.errno == errno.ENOBUFS:
                    found.append("more changes than the kernel could tell")
                    continue
                break
            found += announced(data, self._indexes())
        if len(found) > _KEPT:
            found[_KEPT:] = [f"{len(found) - _KEPT} others"]
        return found


def announced(data: bytes, indexes: t.Collection[int]) -> list[str]:
    """The changes that one message tells of and that concern these interfaces."""
    found = []
    at = 0
    while at + 16 <= len(data):
        length, kind = struct.unpack_from("=IH", data, at)
        if length < 16 or at + length > len(data):
            break
        text = _text_of(kind, data[at + 16 : at + length], indexes)
        if text is not None:
            found.append(text)
        at += (length + 3) & ~3
    return found


def _text_of(kind: int, body: bytes, indexes: t.Collection[int]) -> str | None:
    if kind in (_NEW_NEXTHOP, _DEL_NEXTHOP):
        attributes = dict(_attributes(body[8:]))
        if _NH_OIF in attributes and _number(attributes[_NH_OIF]) not in indexes:
            return None
        return f"next hop {_number(attributes.get(_NH_ID, b''))} {_VERBS[kind]}"
    if kind not in (_NEW_ROUTE, _DEL_ROUTE) or len(body) < 12:
        return None
    family, prefix, _src, _tos, table, protocol, _scope, route_type, flags = struct.unpack_from("=8BI", body)
    if protocol in _NOT_SET or flags & _CLONED or table == _LOCAL_TABLE or route_type != _UNICAST:
        return None
    attributes = dict(_attributes(body[12:]))
    out = [_number(attributes[_OIF])] if _OIF in attributes else _hops(attributes.get(_MULTIPATH, b""))
    if out and not set(out) & set(indexes):
        return None
    return f"{_destination(family, prefix, attributes.get(_DST))} {_VERBS[kind]}"


def _attributes(data: bytes) -> t.Iterator[tuple[int, bytes]]:
    at = 0
    while at + 4 <= len(data):
        length, kind = struct.unpack_from("=HH", data, at)
        if length < 4 or at + length > len(data):
            return
        yield kind & 0x3FFF, data[at + 4 : at + length]
        at += (length + 3) & ~3


def _hops(data: bytes) -> list[int]:
    """The interfaces of a route with several next hops."""
    found = []
    at = 0
    while at + 8 <= len(data):
        length, _flags, _weight, index = struct.unpack_from("=HBBi", data, at)
        if length < 8:
            break
        found.append(index)
        at += (length + 3) & ~3
    return found


def _number(data: bytes) -> int:
    return int(struct.unpack_from("=i", data)[0]) if len(data) >= 4 else 0


def _destination(family: int, prefix: int, data: bytes | None) -> str:
    if data is None:
        return "default" if family == socket.AF_INET else "default (IPv6)"
    try:
        return f"{socket.inet_ntop(family, data)}/{prefix}"
    except (OSError, ValueError):
        return "a route"
