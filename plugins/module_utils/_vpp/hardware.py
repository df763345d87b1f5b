# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Facts that only VPP's text has (``show hardware-interfaces``, ``show interface features``), as typed records."""

from __future__ import annotations

import dataclasses
import re


@dataclasses.dataclass(frozen=True)
class Hardware:
    """What is printed for one interface and the API does not tell. None: it is not printed."""

    rx_frame_size_bytes: int | None = None
    #: Version of the kernel's packet ring. From 3 on, a packet may be larger than a frame.
    ring_version: int | None = None
    qdisc_bypass: bool | None = None
    checksum_gso: bool | None = None
    #: The kernel's device below an AF_XDP interface.
    netdev: str | None = None
    zero_copy: bool | None = None


# name, index, link state, name of the hardware
_HEAD = re.compile(r"^(\S+)\s+\d+\s+(?:up|down)\s+\S+\s*$")
_FRAME = re.compile(r"frame size:(\d+)")
_NETDEV = re.compile(r"^\s+netdev (\S+)")
_RING = re.compile(r"Linux PACKET socket interface v(\d+)")
_FLAGS = re.compile(r"^\s+flags: (.*)$")


def parse(text: str) -> dict[str, Hardware]:
    """From the text to a record for each interface in it."""
    blocks: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in text.replace("\0", "").splitlines():
        head = _HEAD.match(line)
        if head:
            lines = blocks.setdefault(head[1], [])
        else:
            lines.append(line)
    return {name: _record(block) for name, block in blocks.items()}


def _record(lines: list[str]) -> Hardware:
    text = "\n".join(lines)
    if "Linux PACKET socket" in text:
        received = text.split("RX Queue 0:", 1)
        frame = _FRAME.search(received[1]) if len(received) == 2 else None
        words = text.split()
        ring = _RING.search(text)
        return Hardware(
            ring_version=int(ring[1]) if ring else None,
            rx_frame_size_bytes=int(frame[1]) if frame else None,
            # printed only when it is on; the text says 'bpass'
            qdisc_bypass="qdisc-bpass-enabled" in words or "qdisc-bypass-enabled" in words,
            checksum_gso="cksum-gso-enabled" in words,
        )
    netdev = next((match[1] for match in map(_NETDEV.match, lines) if match), None)
    flags = next((match[1] for match in map(_FLAGS.match, lines) if match), None)
    return Hardware(netdev=netdev, zero_copy=None if flags is None or netdev is None else "zero-copy" in flags.split())


def features(text: str) -> dict[str, list[str]]:
    """From ``show interface NAME features``: arc -> the features on it."""
    arcs: dict[str, list[str]] = {}
    names: list[str] = []
    for line in text.splitlines():
        if not line.strip():
            continue
        if not line.startswith(" ") and line.rstrip().endswith(":"):
            names = arcs.setdefault(line.strip()[:-1], [])
        elif line.startswith(" ") and line.strip() != "none configured":
            names.append(line.strip())
    return arcs
