# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One small UDP packet for each of many flows, out of a device of a network namespace.

What a receiver's ring has no room for is lost, so the packets go out at a rate that any machine takes.
"""

from __future__ import annotations

import ipaddress
import os
import pathlib
import subprocess
import sys

# as a program of its own it finds it by PYTHONPATH
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.flows import FIRST_PORT, Sender, frames

_ROOT = pathlib.Path(__file__).resolve().parents[2]
_RATE_PPS = 80_000.0
#: Flows of one source address.
_PORTS = 50_000


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
    environment = {**os.environ, "PYTHONPATH": str(_ROOT / ".cache" / "collections")}
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr)


def main(device: str, to_mac: str, source: str, target: str, *numbers: str) -> None:
    target_port, first, number = (int(word) for word in numbers)
    base = int(ipaddress.IPv4Address(source))
    pairs = [(base + flow // _PORTS, FIRST_PORT + flow % _PORTS) for flow in range(first, first + number)]
    data = frames((to_mac, "02:00:00:00:00:01"), pairs, (target, target_port))
    sender = Sender(device, data, len(data) // number)
    sender.run(number, rate=_RATE_PPS)


if __name__ == "__main__":
    main(*sys.argv[1:])
