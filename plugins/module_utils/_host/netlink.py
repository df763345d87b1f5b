# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Questions to the kernel over netlink (linux/netlink.h), of the network namespace of this process."""

from __future__ import annotations

import errno
import os
import socket
import struct
import typing as t

REQUEST, ACK, DUMP = 0x01, 0x04, 0x300
_ERROR, _DONE = 2, 3
_HEADER = struct.Struct("=IHHII")
#: A message of a dump is at most 32 KiB.
_AT_ONCE = 1 << 18
_NUMBER_BYTES = 4


def ask(family: int, kind: int, flags: int, body: bytes, *, timeout_s: float) -> t.Iterator[bytes]:
    """What the kernel answers, message by message, without their headers.

    :param family: the protocol, such as NETLINK_XFRM.
    :param flags: beside REQUEST: DUMP for all there are, ACK to be told of the end of what is done.
    :raises OSError: the kernel refuses, does not know the protocol, or does not answer in time.
    """
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, family) as link:
        link.settimeout(timeout_s)
        link.send(_HEADER.pack(_HEADER.size + len(body), kind, REQUEST | flags, 1, 0) + body)
        while True:
            data = link.recv(_AT_ONCE)
            place = 0
            while place + _HEADER.size <= len(data):
                length, what, _flags, _sequence, _port = _HEADER.unpack_from(data, place)
                message = data[place + _HEADER.size : place + length]
                if length < _HEADER.size:
                    raise OSError(errno.EBADMSG, os.strerror(errno.EBADMSG))
                if what in (_ERROR, _DONE):
                    # a dump that broke off half way ends with its error, too
                    number = -struct.unpack_from("=i", message)[0] if len(message) >= _NUMBER_BYTES else 0
                    if number > 0:
                        raise OSError(number, os.strerror(number))
                    return
                yield message
                place += (length + 3) & ~3
