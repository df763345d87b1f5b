# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A UDP socket that counts what arrives at it and reads nothing.

A filter refuses each datagram, and the kernel counts what a socket refused. So every datagram that came through the
host's network stack is counted exactly, no program has to keep up with it, and nobody answers with an ICMP error.
"""

from __future__ import annotations

import ctypes
import socket
import struct

#: Not named by Python's socket module.
SO_ATTACH_FILTER = 26
SO_MEMINFO = 55
#: The place of the count of refused datagrams in the kernel's array, and how much of it is read.
_DROPS, _WORDS = 8, 9
#: One instruction of the classic packet filter: return 0, keep nothing.
_REFUSE_ALL = struct.pack("HBBI", 0x06, 0, 0, 0)
_WRAP = 1 << 32


class CountingSocket:
    """Bound to one address; :attr:`total` only ever grows."""

    def __init__(self, address: str, port: int = 0) -> None:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self._socket = socket.socket(family, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        self._last = 0
        self._total = 0
        try:
            program = ctypes.create_string_buffer(_REFUSE_ALL)
            attach = struct.pack("HP", 1, ctypes.addressof(program))
            # before it is bound, so that nothing can come in unfiltered
            self._socket.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, attach)
            if family == socket.AF_INET6:
                self._socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            self._socket.bind((address, port))
        except OSError:
            self._socket.close()
            raise
        self.port: int = self._socket.getsockname()[1]

    @property
    def total(self) -> int:
        """Datagrams since the socket was made. To be read before the kernel's 32 bits went round once."""
        self.update()
        return self._total

    def update(self) -> None:
        """Look at the kernel's counter. To be done before its 32 bits went round once."""
        words = struct.unpack(f"{_WORDS}I", self._socket.getsockopt(socket.SOL_SOCKET, SO_MEMINFO, 4 * _WORDS))
        self._total += (words[_DROPS] - self._last) % _WRAP
        self._last = words[_DROPS]

    def close(self) -> None:
        self._socket.close()
