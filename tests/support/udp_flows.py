# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One small UDP packet for each of many flows, out of a device of a network namespace.

A flow is an own pair of source address and port. What a receiver's ring has no
room for is lost, so the packets go out in bursts with a pause in between.
"""

from __future__ import annotations

import ipaddress
import pathlib
import socket
import struct
import subprocess
import sys
import time
import typing as t

#: Ports of one source address that are used.
_PORTS = 50_000
_FIRST_PORT = 10_000
_BURST, _PAUSE_S = 500, 0.004


def send(
    namespace: str,
    device: str,
    *,
    to_mac: str,
    source: str,
    target: str,
    flows: int,
    first: int = 0,
    target_port: int = 7,
) -> None:
    """Send the flows ``first`` to ``first + flows - 1``. They start at ``source`` and count up."""
    words = [device, to_mac, source, target, str(target_port), str(first), str(flows)]
    argv = ["ip", "netns", "exec", namespace, sys.executable, str(pathlib.Path(__file__)), *words]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr)


def frames(to_mac: str, ends: tuple[str, str], target_port: int, first: int, flows: int) -> t.Iterator[bytes]:
    ethernet = bytes.fromhex(to_mac.replace(":", "")) + bytes.fromhex("020000000001") + b"\x08\x00"
    base, goal = (int(ipaddress.IPv4Address(end)) for end in ends)
    for number in range(first, first + flows):
        address, port = base + number // _PORTS, _FIRST_PORT + number % _PORTS
        header = struct.pack("!BBHHHBBHII", 0x45, 0, 46, 0, 0, 64, 17, 0, address, goal)
        total = sum(struct.unpack("!10H", header))
        total = (total & 0xFFFF) + (total >> 16)
        checksum = ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF
        # no checksum of the payload, which UDP over IPv4 allows
        udp = struct.pack("!HHHH", port, target_port, 26, 0)
        yield ethernet + header[:10] + struct.pack("!H", checksum) + header[12:] + udp + bytes(18)


def main(device: str, to_mac: str, source: str, target: str, *numbers: str) -> None:
    target_port, first, flows = (int(word) for word in numbers)
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as out:
        out.bind((device, 0))
        for count, frame in enumerate(frames(to_mac, (source, target), target_port, first, flows), 1):
            out.send(frame)
            if count % _BURST == 0:
                time.sleep(_PAUSE_S)


if __name__ == "__main__":
    main(*sys.argv[1:])
