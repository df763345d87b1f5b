# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a network device says of itself, asked through the ethtool ioctl.

The same answers as ``ethtool -i -k -g -l -c -a -S``, without a process per
question and without reading text meant for people. Read only.
"""

from __future__ import annotations

import array
import errno
import fcntl
import socket
import struct
import typing as t

SIOCETHTOOL = 0x8946
IFNAMSIZ = 16

_GDRVINFO = 0x03
_GCOALESCE = 0x0E
_GRINGPARAM = 0x10
_GPAUSEPARAM = 0x12
_GSTRINGS = 0x1B
_GSTATS = 0x1D
_GRXFH = 0x29
_GSSET_INFO = 0x37
_GFEATURES = 0x3A
_GCHANNELS = 0x3C

_SS_STATS = 1
_SS_FEATURES = 4
_STRING_LENGTH = 32

_RINGS = ("rx_max", "rx_mini_max", "rx_jumbo_max", "tx_max", "rx", "rx_mini", "rx_jumbo", "tx")
_CHANNELS = ("rx_max", "tx_max", "other_max", "combined_max", "rx", "tx", "other", "combined")
_COALESCE = (
    "rx_usecs",
    "rx_frames",
    "rx_usecs_irq",
    "rx_frames_irq",
    "tx_usecs",
    "tx_frames",
    "tx_usecs_irq",
    "tx_frames_irq",
    "stats_block_usecs",
    "adaptive_rx",
    "adaptive_tx",
    "pkt_rate_low",
    "rx_usecs_low",
    "rx_frames_low",
    "tx_usecs_low",
    "tx_frames_low",
    "pkt_rate_high",
    "rx_usecs_high",
    "rx_frames_high",
    "tx_usecs_high",
    "tx_frames_high",
    "sample_interval",
)
#: ethtool's flow types whose hash fields a user sets (``ethtool -N rx-flow-hash``).
_FLOW_TYPES = {"tcp4": 0x01, "udp4": 0x02, "tcp6": 0x05, "udp6": 0x06}
_HASH_BITS = ((1, "m"), (2, "v"), (3, "t"), (4, "s"), (5, "d"), (6, "f"), (7, "n"))

#: Errors that mean "this device or driver does not have that", as opposed to a fault.
_NOT_THERE = (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOTTY, errno.ENOSYS, errno.EPERM)

Ioctl = t.Callable[[str, bytes], bytes]


def kernel_ioctl() -> Ioctl:
    """A function that puts one ethtool question to the kernel of this network namespace."""
    handle = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)

    def ask(name: str, request: bytes) -> bytes:
        data = array.array("B", request)
        address, _length = data.buffer_info()
        fcntl.ioctl(handle.fileno(), SIOCETHTOOL, struct.pack("16sP", name.encode()[: IFNAMSIZ - 1], address))
        return data.tobytes()

    return ask


def _text(raw: bytes) -> str | None:
    return raw.split(b"\0", 1)[0].decode("utf-8", "replace").strip() or None


class Nic:
    """One device. A question that it does not support has the answer None."""

    def __init__(self, name: str, ask: Ioctl) -> None:
        self.name = name
        self._ask_kernel = ask
        self._stat_names: list[str] | None = None

    def _ask(self, request: bytes) -> bytes | None:
        try:
            return self._ask_kernel(self.name, request)
        except OSError as error:
            if error.errno in _NOT_THERE:
                return None
            raise

    def _words(self, command: int, names: tuple[str, ...]) -> dict[str, int] | None:
        answer = self._ask(struct.pack("=I", command) + bytes(4 * len(names)))
        if answer is None:
            return None
        return dict(zip(names, struct.unpack_from(f"={len(names)}I", answer, 4)))

    def driver(self) -> dict[str, str | None] | None:
        answer = self._ask(struct.pack("=I", _GDRVINFO) + bytes(192))
        if answer is None:
            return None
        driver, version, firmware, bus = struct.unpack_from("=32s32s32s32s", answer, 4)
        return {"driver": _text(driver), "version": _text(version), "firmware": _text(firmware), "bus": _text(bus)}

    def rings(self) -> dict[str, int] | None:
        return self._words(_GRINGPARAM, _RINGS)

    def channels(self) -> dict[str, int] | None:
        return self._words(_GCHANNELS, _CHANNELS)

    def coalesce(self) -> dict[str, int] | None:
        return self._words(_GCOALESCE, _COALESCE)

    def pause(self) -> dict[str, int] | None:
        return self._words(_GPAUSEPARAM, ("autoneg", "rx", "tx"))

    def hash_fields(self) -> dict[str, str] | None:
        """Hash fields per flow type in ethtool's letters, for example ``{"udp4": "sd"}``."""
        fields: dict[str, str] = {}
        for flow, number in _FLOW_TYPES.items():
            # struct ethtool_rxnfc is larger than what this question needs; the kernel reads and writes all of it.
            answer = self._ask(struct.pack("=IIQ", _GRXFH, number, 0) + bytes(192))
            if answer is not None:
                (bits,) = struct.unpack_from("=Q", answer, 8)
                fields[flow] = "".join(letter for bit, letter in _HASH_BITS if bits & (1 << bit))
        return fields or None

    def _strings(self, which: int) -> list[str] | None:
        answer = self._ask(struct.pack("=IIQI", _GSSET_INFO, 0, 1 << which, 0))
        if answer is None:
            return None
        mask, count = struct.unpack_from("=QI", answer, 8)
        if not mask or not count:
            return None
        answer = self._ask(struct.pack("=III", _GSTRINGS, which, count) + bytes(_STRING_LENGTH * count))
        if answer is None:
            return None
        return [
            _text(answer[12 + index * _STRING_LENGTH : 12 + (index + 1) * _STRING_LENGTH]) or ""
            for index in range(count)
        ]

    def features(self) -> tuple[dict[str, bool], list[str]] | None:
        """Offloads by the kernel's name (on or off), and those that cannot be changed."""
        names = self._strings(_SS_FEATURES)
        if names is None:
            return None
        blocks = (len(names) + 31) // 32
        answer = self._ask(struct.pack("=II", _GFEATURES, blocks) + bytes(16 * blocks))
        if answer is None:
            return None
        active: dict[str, bool] = {}
        fixed: list[str] = []
        for index, name in enumerate(names):
            if not name:
                continue
            available, _requested, now, never = struct.unpack_from("=4I", answer, 8 + 16 * (index // 32))
            bit = 1 << (index % 32)
            active[name] = bool(now & bit)
            if never & bit or not available & bit:
                fixed.append(name)
        return active, fixed

    def statistic_names(self) -> list[str]:
        """The names of ``ethtool -S``, in the order of :meth:`statistics`; empty when there are none."""
        return self._strings(_SS_STATS) or []

    def statistics(self, count: int) -> tuple[int, ...] | None:
        answer = self._ask(struct.pack("=II", _GSTATS, count) + bytes(8 * count))
        if answer is None:
            return None
        (really,) = struct.unpack_from("=I", answer, 4)
        if really != count:
            return None  # the set of statistics changed, for example with the number of queues
        return struct.unpack_from(f"={count}Q", answer, 8)
