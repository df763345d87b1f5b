# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Many flows of UDP out of one device: frames that are made before the clock runs, and sent many at a call.

A flow is an own pair of source address and port (RFC 4814, RFC 9693). No source needs to be an address of the host:
the frames go out below its network stack, and the receiver answers none of them.
"""

from __future__ import annotations

import array
import ctypes
import errno
import ipaddress
import os
import random
import socket
import struct
import time
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError

#: Source ports from 1024 on, as RFC 4814 has it.
FIRST_PORT, PORTS = 1024, 64512
#: Bytes of a UDP payload that fill the smallest frame, and that fit a 1500-byte MTU.
MIN_PAYLOAD, MAX_PAYLOAD = 18, 1472
_ETHERNET, _IP, _UDP = 14, 20, 8
_SOL_PACKET, _PACKET_QDISC_BYPASS = 263, 20
#: Frames of one call.
BATCH = 64
_BUSY = (errno.ENOBUFS, errno.EAGAIN)
#: sendmmsg's structures are words of a pointer's size: iovec is two of them, mmsghdr eight, of which the third points
#: to the iovec and the fourth says that it is one.
_VECTOR_WORDS, _MESSAGE_WORDS = 2, 8


def ends(first_source: str, flows: int, sources: int, *, seed: int | None = None) -> list[tuple[int, int]]:
    """Source address (as a number) and port of each flow, no two alike; in order, or shuffled by a seed.

    :raises BenchError: there are more flows than pairs.
    """
    if flows > sources * PORTS:
        raise BenchError(
            f"{sources} source addresses have {sources * PORTS} pairs of address and port, and {flows} flows are asked",
            where="sources",
            remedy=f"Use {-(-flows // PORTS)} sources",
            code="bad_option",
        )
    base = int(ipaddress.IPv4Address(first_source))
    # over the addresses first, so that few flows use all of them too
    made = [(base + number % sources, FIRST_PORT + number // sources) for number in range(flows)]
    if seed is not None:
        random.Random(seed).shuffle(made)
    return made


def _fold(total: int) -> int:
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def frames(
    macs: tuple[str, str], pairs: t.Sequence[tuple[int, int]], target: tuple[str, int], payload_bytes: int = MIN_PAYLOAD
) -> bytes:
    """The frames of the flows, one behind the other, all of one length.

    :param macs: of the next hop, and of the device.
    """
    to_mac, from_mac = (bytes.fromhex(mac.replace(":", "")) for mac in macs)
    ethernet = to_mac + from_mac + b"\x08\x00"
    goal = int(ipaddress.IPv4Address(target[0]))
    length = _UDP + payload_bytes
    fixed = struct.pack("!BBHHHBB", 0x45, 0, _IP + length, 0, 0, 64, 17)
    of_header = sum(struct.unpack("!5H", fixed)) + (goal >> 16) + (goal & 0xFFFF)
    # of the pseudo header, the UDP header and a payload of zeros
    of_udp = (goal >> 16) + (goal & 0xFFFF) + 17 + 2 * length + target[1]
    head, tail = ethernet + fixed, bytes(payload_bytes)
    pack = struct.Struct("!HIIHHHH").pack
    made = []
    for address, port in pairs:
        halves = (address >> 16) + (address & 0xFFFF)
        header_sum = ~_fold(of_header + halves) & 0xFFFF
        udp_sum = (~_fold(of_udp + halves + port) & 0xFFFF) or 0xFFFF
        made.append(head + pack(header_sum, address, goal, port, target[1], length, udp_sum) + tail)
    return b"".join(made)


class Sender:
    """Sends frames of one length out of a device, from the first to the last and over again."""

    def __init__(self, device: str, data: bytes, frame_bytes: int) -> None:
        self.count = len(data) // frame_bytes
        self.position = 0
        #: Times that the device had no room.
        self.busy = 0
        self._data = ctypes.create_string_buffer(data, len(data))
        start = ctypes.addressof(self._data)
        places = range(start, start + self.count * frame_bytes, frame_bytes)
        self._vectors = array.array("L", [word for place in places for word in (place, frame_bytes)])
        first = self._vectors.buffer_info()[0]
        size = _VECTOR_WORDS * self._vectors.itemsize
        places = range(first, first + self.count * size, size)
        words = [word for place in places for word in (0, 0, place, 1, 0, 0, 0, 0)]
        self._messages = array.array("L", words)
        self._first_message = self._messages.buffer_info()[0]
        self._message_bytes = _MESSAGE_WORDS * self._messages.itemsize
        self._call = ctypes.CDLL(None, use_errno=True).sendmmsg
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        try:
            self._socket.setsockopt(_SOL_PACKET, _PACKET_QDISC_BYPASS, 1)
            self._socket.bind((device, 0))
        except OSError:
            self._socket.close()
            raise

    def close(self) -> None:
        self._socket.close()

    def send(self, most: int) -> int:
        """Up to so many frames with one call; gives how many went out."""
        number = min(most, BATCH, self.count - self.position)
        place = ctypes.c_void_p(self._first_message + self.position * self._message_bytes)
        sent = int(self._call(self._socket.fileno(), place, number, 0))
        if sent < 0:
            code = ctypes.get_errno()
            if code not in _BUSY:
                raise BenchError(f"sending failed: {os.strerror(code)}", code="send_failed")
            self.busy += 1
            return 0
        self.position = (self.position + sent) % self.count
        return sent

    def run(self, frames_: int | None, *, rate: float, until: float | None = None) -> tuple[int, float, float]:
        """Send so many frames, or until a moment of the monotonic clock; gives how many, and begin and end.

        :param rate: frames a second; 0 is as fast as it goes.
        """
        began = now = time.monotonic()
        sent = 0
        while (frames_ is None or sent < frames_) and (until is None or now < until):
            due = BATCH if rate == 0 else int((now - began) * rate) + 1 - sent
            if frames_ is not None:
                due = min(due, frames_ - sent)
            if due <= 0:
                # a batch need not be whole: a timer is not finer than this
                time.sleep(min(0.001, (sent + 1) / rate - (now - began)) if rate else 0)
            else:
                sent += self.send(due)
            now = time.monotonic()
        return sent, began, now
