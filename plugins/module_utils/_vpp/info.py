# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a running VPP is and has: the work of the module vpp_info."""

from __future__ import annotations

import re
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import ParseError
from ansible_collections.fastpath.bench.plugins.module_utils._vpp import daemon
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.interface import InterfaceKind, Inventory, as_state
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.placement import threads_of
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.reconcile import Values
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.session import Session

SUBSETS = ("version", "threads", "plugins", "interfaces", "buffers", "memory")
_PLUGIN = re.compile(r"^\s*\d+\.\s+(\S+\.so)\s+(\S+)(?:\s+(.*\S))?\s*$")
_POOL = re.compile(r"^(\S+)\s+(\d+)\s+(\d+)\s+(\d+)\s+(\d+)\s+(\d+)\s+(\d+)\s+(\d+)\s+(\d+)\s*$")
_POOL_FIELDS = ("index", "numa", "size_bytes", "data_size_bytes", "total", "available", "cached", "used")
_HEAP = re.compile(r"total: ([\d.]+)([kKMGT]?), used: ([\d.]+)([kKMGT]?), free: ([\d.]+)([kKMGT]?)")
_PAGE = re.compile(r"page-size (\S+),")
_FACTORS = {"": 1, "k": 2**10, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


def parse_plugins(text: str) -> list[Values]:
    """From ``show plugins``."""
    rows = [match for match in map(_PLUGIN.match, text.splitlines()) if match]
    return [{"name": row[1], "version": row[2], "description": row[3] or ""} for row in rows]


def parse_buffers(text: str) -> list[Values]:
    """From ``show buffers``: one record for each pool."""
    pools = []
    for line in text.splitlines():
        if not line.strip() or line.startswith("Pool Name"):
            continue
        match = _POOL.match(line)
        if match is None:
            raise ParseError("a line of 'show buffers' cannot be read", line=line)
        pools.append({"name": match[1], **{name: int(match[at + 2]) for at, name in enumerate(_POOL_FIELDS)}})
    return pools


def parse_memory(text: str) -> Values:
    """From ``show memory main-heap``. VPP rounds to two decimals of its unit."""
    match = _HEAP.search(text)
    if match is None:
        raise ParseError("the text of 'show memory main-heap' has no line with total, used and free", line=text.strip())
    sizes = [int(float(match[at]) * _FACTORS[match[at + 1]]) for at in (1, 3, 5)]
    page = _PAGE.search(text)
    return {**dict(zip(("total_bytes", "used_bytes", "free_bytes"), sizes)), "page_size": page[1] if page else None}


def read(session: Session, subsets: t.Sequence[str] = SUBSETS) -> dict[str, t.Any]:
    """The parts that are asked for."""
    result: dict[str, t.Any] = {}

    def text(command: str) -> str:
        return str(session.call("cli_inband", cmd=command).reply)

    if "version" in subsets:
        result["version"] = _version(session)
    if "threads" in subsets:
        threads = threads_of(session)
        result["threads"] = [one.as_dict() for one in threads]
        result["workers"] = sum(one.worker is not None for one in threads)
    if "plugins" in subsets:
        result["plugins"] = parse_plugins(text("show plugins"))
    if "interfaces" in subsets:
        inventory = Inventory(session)
        found = InterfaceKind(inventory, full=True).read(session, [], everything=True)
        result["interfaces"] = [as_state(inventory, one) for one in found.values()]
    if "buffers" in subsets:
        result["buffers"] = parse_buffers(text("show buffers"))
    if "memory" in subsets:
        result["memory"] = parse_memory(text("show memory main-heap"))
    return result


def _version(session: Session) -> Values:
    reply = session.call("show_version")
    pid = session.pid()
    installed = daemon.installed_version()
    return {
        "version": str(reply.version),
        "build_date": str(reply.build_date),
        "build_directory": str(reply.build_directory),
        "pid": pid,
        "binary": daemon.binary_of(pid),
        "installed_version": installed,
        "conflict": daemon.version_conflict(str(reply.version), installed),
    }
