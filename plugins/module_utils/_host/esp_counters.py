# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the kernel's security associations of ESP carried, with policies as over xfrm interfaces.

Over netlink (XFRM_MSG_GETSA, linux/xfrm.h), as ``ip -s xfrm state`` reads it. The bytes are those of the packets before
they are encrypted and after they are decrypted.
"""

from __future__ import annotations

import ipaddress
import socket
import struct
import time
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._host import netlink

_NETLINK_XFRM = 6
_GET_SA = 0x12
#: struct xfrm_usersa_id, all zero: no filter.
_ANY = bytes(24)
_ESP = 50
#: struct xfrm_usersa_info: id.daddr and id.spi, id.proto, saddr, curlft.bytes and .packets, family.
_ID, _PROTO, _SOURCE, _CURRENT, _FAMILY = 56, 76, 80, 160, 212
_TIMEOUT_S = 1.0
#: A reading that takes longer than this part of its interval is made less often.
_SHARE = 0.02


class Count(t.NamedTuple):
    """One security association: its direction is told by its addresses."""

    source: str
    target: str
    spi: int
    packets: int
    bytes: int


def read_state(message: bytes) -> Count | None:
    """One of the kernel's answers; None for what is not ESP. Pure."""
    if len(message) < _FAMILY + 2 or message[_PROTO] != _ESP:
        return None
    size = 4 if struct.unpack_from("=H", message, _FAMILY)[0] == socket.AF_INET else 16
    target, source = (str(ipaddress.ip_address(message[at : at + size])) for at in (_ID, _SOURCE))
    (spi,) = struct.unpack_from("!I", message, _ID + 16)
    carried, packets = struct.unpack_from("=QQ", message, _CURRENT)
    return Count(source, target, spi, packets, carried)


class Sampler:
    """The counts again and again, for a recording. Asks no more of a kernel that has refused once."""

    def __init__(self, interval_s: float) -> None:
        self._least_s = interval_s
        self._due = 0.0
        self._refused = False
        self._before: dict[str, list[int]] = {}

    def sample(self, *, last: bool = False) -> dict[str, list[int] | None] | None:
        """By ``source>target/spi`` packets and bytes of those that carried something since the last reading, and null
        for those that are gone; None when it is not time yet, or the kernel does not tell."""
        now = time.monotonic()
        if self._refused or (now < self._due and not last):
            return None
        try:
            counts = [read_state(one) for one in netlink.ask(
                _NETLINK_XFRM, _GET_SA, netlink.DUMP, _ANY, timeout_s=_TIMEOUT_S)]  # fmt: skip
        except OSError:
            self._refused = True
            return None
        self._due = now + max(self._least_s, (time.monotonic() - now) / _SHARE)
        read = {f"{one.source}>{one.target}/{one.spi:#x}": [one.packets, one.bytes] for one in counts if one}
        changed: dict[str, list[int] | None] = {}
        changed.update((name, count) for name, count in read.items() if self._before.get(name) != count)
        changed.update(dict.fromkeys(self._before.keys() - read.keys()))
        self._before = read
        return changed


def cut(series: t.Sequence[tuple[float, dict[str, list[int] | None]]], low: int, high: int) -> dict[str, t.Any]:
    """What was carried between two readings of a recording, by their numbers.

    New keys count from 0. What an association carried between its last reading and its end is not known, so that the
    sums are a lower bound where keys were renewed.

    :param series: the times of the readings, and what each of them found changed.
    :returns: ``packets`` and ``bytes`` of all, ``counted_s``, and in ``sas`` those of each, empty where there were
        none.
    """
    before: dict[str, list[int]] = {}
    grown: dict[str, list[int]] = {}
    for number, (_at, changed) in enumerate(series[: high + 1]):
        for name, now in changed.items():
            was = before.pop(name, [0, 0])
            if now is None:
                continue
            before[name] = now
            if number <= low:
                continue
            if now[0] < was[0]:
                was = [0, 0]  # another association of the same number
            sums = grown.setdefault(name, [0, 0])
            sums[0] += now[0] - was[0]
            sums[1] += now[1] - was[1]
    for name in before:
        grown.setdefault(name, [0, 0])
    sas = [
        {"source": name.partition(">")[0], "target": name.partition(">")[2].partition("/")[0],
         "spi": name.partition("/")[2], "packets": packets, "bytes": size}
        for name, (packets, size) in grown.items()
    ]  # fmt: skip
    return {
        "packets": sum(packets for packets, _size in grown.values()),
        "bytes": sum(size for _packets, size in grown.values()),
        "counted_s": round(series[high][0] - series[low][0], 6),
        "sas": sas,
    }
