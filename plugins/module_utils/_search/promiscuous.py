# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""DPDK's programs make the kernel's interface take all frames, or no longer do so, and leave it like that.

So only one of them has an interface at a time: what a second one finds is not how the interface was.
"""

from __future__ import annotations

import errno
import pathlib
import socket
import time
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common import command
from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError

_FLAG = 0x100
_LIMIT_S = 5.0
#: One that was killed a moment ago is still putting things back.
_CLAIM_S, _LOOK_S = 5.0, 0.05


def claim(device: str) -> socket.socket:
    """Have the interface for this process and those it forks, until they have closed what is returned, or ended.

    An abstract socket is of the network namespace, as the interface is, and leaves nothing behind.

    :raises BenchError: another search has it.
    """
    held = socket.socket(socket.AF_UNIX)
    limit = time.monotonic() + _CLAIM_S
    while True:
        try:
            held.bind(f"\0fastpath.bench/sends/{device}")
        except OSError as error:
            if error.errno == errno.EADDRINUSE and time.monotonic() < limit:
                time.sleep(_LOOK_S)
                continue
            held.close()
            raise BenchError(
                f"another search sends on {device}",
                remedy="Wait for its end, or use the generator flow",
                code="interface_in_use",
            ) from error
        return held


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
