# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The senders by their names."""

from __future__ import annotations

import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._host.path_prober import device_mtu, route_to
from ansible_collections.fastpath.bench.plugins.module_utils._search.flow_sender import FlowSender
from ansible_collections.fastpath.bench.plugins.module_utils._search.frames import ETHERNET_BYTES, FCS_BYTES
from ansible_collections.fastpath.bench.plugins.module_utils._search.iperf_sender import IperfSender
from ansible_collections.fastpath.bench.plugins.module_utils._search.sender import Sender, Settings
from ansible_collections.fastpath.bench.plugins.module_utils._search.testpmd_sender import TestpmdSender
from ansible_collections.fastpath.bench.plugins.module_utils._search.trex_sender import TrexSender

_MAKERS: dict[str, t.Callable[[Settings], Sender]] = {
    "iperf2": IperfSender,
    "flow": FlowSender,
    "testpmd": TestpmdSender,
    "trex": TrexSender,
}
NAMES = tuple(_MAKERS)


def make_sender(name: str, settings: Settings) -> Sender:
    """:raises BenchError: there is none of that name, or it cannot send this traffic here."""
    if name not in _MAKERS:
        raise BenchError(f"{name!r} is no sender", where="option generator", remedy=f"Use {', '.join(NAMES)}",
                         code="bad_option")  # fmt: skip
    _check_mtu(settings)
    return _MAKERS[name](settings)


def _check_mtu(settings: Settings) -> None:
    """:raises BenchError: a frame would leave in pieces, and each piece would be a frame."""
    found = route_to(settings.server, settings.bind_address).found
    mtu = found.get("mtu") or device_mtu(found.get("device"))
    largest = max(part.frame_bytes for part in settings.frames.parts)
    if mtu is not None and largest > mtu + ETHERNET_BYTES + FCS_BYTES:
        raise BenchError(
            f"a frame of {largest} bytes does not fit {found['device']}, whose MTU of {mtu} takes"
            f" {mtu + ETHERNET_BYTES + FCS_BYTES}",
            where="option frame",
            remedy="Set a larger MTU on the whole path, or use smaller frames",
            code="frame_over_mtu",
        )
