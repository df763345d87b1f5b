# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which sockets are open in this network namespace, and whose they are."""

from __future__ import annotations

import dataclasses
import os
import pathlib

_TCP_LISTEN = "0A"


@dataclasses.dataclass(frozen=True)
class Socket:
    """A listening TCP socket or a UDP socket that is not connected."""

    protocol: str
    port: int
    inode: int


@dataclasses.dataclass(frozen=True)
class Owner:
    pid: int
    name: str

    def __str__(self) -> str:
        return f"{self.name} (pid {self.pid})"


def parse_table(text: str, protocol: str) -> list[Socket]:
    """The waiting sockets of /proc/net/tcp, tcp6, udp or udp6."""
    found: list[Socket] = []
    for line in text.splitlines()[1:]:
        fields = line.split()
        if len(fields) < 10:
            continue
        waits = fields[3] == _TCP_LISTEN if protocol == "tcp" else fields[2].endswith(":0000")
        if waits:
            found.append(Socket(protocol, int(fields[1].rpartition(":")[2], 16), int(fields[9])))
    return found


def waiting(proc: pathlib.Path = pathlib.Path("/proc")) -> list[Socket]:
    """All waiting sockets."""
    found: list[Socket] = []
    for protocol in ("tcp", "udp"):
        for suffix in ("", "6"):
            table = proc / "net" / f"{protocol}{suffix}"
            if table.exists():
                found += parse_table(table.read_text(encoding="ascii"), protocol)
    return found


def _links(folder: pathlib.Path) -> list[str]:
    """What a process has open. Files that it closes meanwhile are left out."""
    found: list[str] = []
    try:
        names = os.listdir(folder)
    except OSError:
        return found  # it ended
    for name in names:
        try:
            found.append(os.readlink(folder / name))
        except OSError:
            continue  # closed meanwhile; one of them is the listing itself
    return found


def owners(inodes: set[int], proc: pathlib.Path = pathlib.Path("/proc")) -> dict[int, Owner]:
    """The process that holds each of the sockets, as far as it can be seen."""
    wanted = {f"socket:[{inode}]": inode for inode in inodes}
    found: dict[int, Owner] = {}
    for folder in proc.iterdir():
        if not folder.name.isdigit() or len(found) == len(wanted):
            continue
        held = {wanted[link] for link in _links(folder / "fd") if link in wanted}
        if not held:
            continue
        try:
            name = (folder / "comm").read_text(encoding="utf-8", errors="replace").strip()
        except OSError:
            continue  # it ended while it was looked at
        for inode in held:
            found[inode] = Owner(int(folder.name), name)
    return found
