# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which interfaces must not be touched, as the host is reached through them."""

from __future__ import annotations

import os
import re
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._host.access import Access, KnobError

_PARENT = re.compile(r"^PPid:\s+(\d+)", re.MULTILINE)
_MOST_PARENTS = 20


def ssh_connection(access: Access, environ: t.Mapping[str, str], pid: int) -> str | None:
    """The variable SSH_CONNECTION, from this process or one above: sudo drops it from its own child."""
    if environ.get("SSH_CONNECTION"):
        return environ["SSH_CONNECTION"]
    for _parent in range(_MOST_PARENTS):
        try:
            match = _PARENT.search(access.read_file(os.path.join(access.proc, str(pid), "status")))
            if match is None or match[1] == "0":
                return None
            pid = int(match[1])
            variables = access.read_file(os.path.join(access.proc, str(pid), "environ")).split("\0")
        except KnobError:
            return None
        for variable in variables:
            if variable.startswith("SSH_CONNECTION="):
                return variable.partition("=")[2]
    return None


def protected_interfaces(access: Access, ssh: str | None) -> dict[str, str]:
    """Interface -> why it must stay as it is."""
    reasons: dict[str, str] = {}
    for row in access.routes():
        if row.get("dst") != "default" or row.get("table", "main") != "main" or row.get("type", "unicast") != "unicast":
            continue
        for hop in [row, *row.get("nexthops", [])]:
            if hop.get("dev"):
                reasons.setdefault(hop["dev"], "carries the default route")
    words = (ssh or "").split()
    if len(words) == 4:
        peer, own = words[0], words[2]
        for name, link in access.links().items():
            if any(info.get("local") == own for info in link.get("addr_info", [])):
                reasons[name] = f"carries the connection from {peer}"
    return reasons


def router_advertised_defaults(access: Access) -> list[str]:
    """Interfaces whose IPv6 default route came from a router advertisement."""
    return sorted(
        {
            row["dev"]
            for row in access.routes()
            if row["family"] == 6 and row.get("dst") == "default" and row.get("protocol") == "ra" and row.get("dev")
        }
    )
