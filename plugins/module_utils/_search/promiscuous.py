# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""DPDK's programs make the kernel's interface take all frames, or no longer do so, and leave it like that."""

from __future__ import annotations

import pathlib
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common import command

_FLAG = 0x100
_LIMIT_S = 5.0


def keep(device: str) -> t.Callable[[], None]:
    """What makes the interface as it is now. That does nothing where it is so already, or where it is gone."""
    found = _read(device)

    def put_back() -> None:
        if found is not None and _read(device) not in (found, None):
            words = ["ip", "link", "set", "dev", device, "promisc", "on" if found else "off"]
            command.run(words, limit_s=_LIMIT_S).check()

    return put_back


def _read(device: str) -> bool | None:
    try:
        flags = pathlib.Path("/sys/class/net", device, "flags").read_text(encoding="ascii")
    except OSError:
        return None
    return bool(int(flags, 16) & _FLAG)
