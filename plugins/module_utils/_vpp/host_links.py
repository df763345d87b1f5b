# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kernel's devices as VPP sees them: those of its network namespace, not of the shell's."""

from __future__ import annotations

import json
import os
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common import command
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.errors import VppError

_TIMEOUT_S = 10


class HostLinks:
    """Looks devices up in the network namespace of a process."""

    def __init__(self, pid: int | None) -> None:
        self.pid = pid
        self._links: dict[str, dict[str, t.Any]] | None = None

    def known(self) -> bool:
        """Whether the namespace can be looked into: VPP runs on this host, and this user may."""
        return self._load() is not None

    def mtu_bytes(self, name: str) -> int | None:
        link = (self._load() or {}).get(name)
        return None if link is None else int(link["mtu"])

    def require(self, name: str) -> None:
        """Raise when VPP cannot see the device, and say where it is."""
        links = self._load()
        if links is None:
            return
        if name in links:
            if links[name].get("link_type") == "loopback":
                raise VppError(
                    "this is the loopback device: all that VPP sends there comes back to it",
                    where=name,
                    remedy="Give a network card or one end of a veth pair",
                    code="loopback_device",
                )
            return
        here = os.path.exists(f"/sys/class/net/{name}")
        if here and self._elsewhere():
            raise VppError(
                f"VPP runs in another network namespace ({self._namespace()}) and cannot see this interface",
                where=name,
                remedy=f"Move it there: ip link set {name} netns {self.pid}",
                code="wrong_namespace",
            )
        raise VppError(
            f"there is no such interface in the network namespace of VPP ({self._namespace()})",
            where=name,
            remedy=f"There are: {', '.join(sorted(links)) or 'none'}",
            code="no_host_interface",
        )

    def _elsewhere(self) -> bool:
        try:
            return os.stat("/proc/self/ns/net").st_ino != os.stat(f"/proc/{self.pid}/ns/net").st_ino
        except OSError:
            return False

    def _namespace(self) -> str:
        out = _run(["ip", "netns", "identify", str(self.pid)])
        return (out or "").strip() or f"that of process {self.pid}"

    def _load(self) -> dict[str, dict[str, t.Any]] | None:
        if self._links is None and self.pid is not None:
            argv = ["ip", "-json", "link", "show"]
            if self._elsewhere():
                argv = ["nsenter", f"--net=/proc/{self.pid}/ns/net", *argv]
            out = _run(argv)
            if out is None:
                self.pid = None
            else:
                self._links = {row["ifname"]: row for row in json.loads(out or "[]")}
        return self._links


def _run(argv: list[str]) -> str | None:
    """The text, or None when it cannot be had: then what depends on it is not checked beforehand."""
    if command.find_program(argv[0]) is None:
        return None
    done = command.run(argv, limit_s=_TIMEOUT_S)
    return done.stdout if done.rc == 0 else None
