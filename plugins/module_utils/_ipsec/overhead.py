# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What ESP adds to a packet, and so the MTU that is left inside a tunnel.

RFC 4303: SPI and sequence number (8 bytes), the IV, the text with padding, pad length and next header (2 bytes), then
the integrity check value. In tunnel mode an outer IP header goes before; with NAT traversal a UDP header too
(RFC 3948).
"""

from __future__ import annotations

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._ipsec.proposal import Proposal

ESP_HEADER_BYTES = 8
#: Pad length and next header.
ESP_TRAILER_BYTES = 2
#: RFC 4303 section 2.4: the text ends on a four-byte boundary whatever the algorithm.
ESP_ALIGN_BYTES = 4
IP_HEADER_BYTES = {4: 20, 6: 40}
UDP_HEADER_BYTES = 8
TCP_HEADER_BYTES = 20
#: The least that IPv6 wants of a link (RFC 8200) and IPv4 of a host (RFC 791).
LEAST_MTU_BYTES = {4: 576, 6: 1280}


def _outside(proposal: Proposal, outer_version: int, nat_t: bool) -> int:
    udp = UDP_HEADER_BYTES if nat_t else 0
    return IP_HEADER_BYTES[outer_version] + udp + ESP_HEADER_BYTES + proposal.cipher.iv_bytes + proposal.icv_bytes


def _align(proposal: Proposal) -> int:
    return max(ESP_ALIGN_BYTES, proposal.cipher.block_bytes)


def packet_bytes(inner_bytes: int, proposal: Proposal, *, outer_version: int = 4, nat_t: bool = False) -> int:
    """The size of the outer packet that carries an inner one of this size."""
    align = _align(proposal)
    text = -(-(inner_bytes + ESP_TRAILER_BYTES) // align) * align
    return _outside(proposal, outer_version, nat_t) + text


def inner_mtu(path_mtu_bytes: int, proposal: Proposal, *, outer_version: int = 4, nat_t: bool = False) -> int:
    """The largest inner packet whose outer one fits the path in one piece."""
    align = _align(proposal)
    room = (path_mtu_bytes - _outside(proposal, outer_version, nat_t)) // align * align
    mtu = room - ESP_TRAILER_BYTES
    if mtu < LEAST_MTU_BYTES[4]:
        raise BenchError(
            f"a path of {path_mtu_bytes} bytes leaves {mtu} inside the tunnel",
            where=f"ESP proposal {proposal.text}",
            remedy=f"At least {LEAST_MTU_BYTES[4]} must be left",
            code="path_mtu_too_small",
        )
    return mtu


def mss(mtu_bytes: int, version: int = 4) -> int:
    """The largest TCP segment that a packet of this size carries, without options."""
    return mtu_bytes - IP_HEADER_BYTES[version] - TCP_HEADER_BYTES
