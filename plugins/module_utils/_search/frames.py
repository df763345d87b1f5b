# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Frame sizes: what a search sends, named as the standards do: Ethernet frames with their FCS (RFC 2544, RFC 6985)."""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError

ETHERNET_BYTES = 14
FCS_BYTES = 4
VLAN_BYTES = 4
IP_BYTES = {4: 20, 6: 40}
UDP_BYTES = 8
#: What a frame takes on the wire beside itself: preamble, start of frame, inter-frame gap.
WIRE_GAP_BYTES = 20
#: RFC 2544, section 9.1.
RFC2544_SIZES = (64, 128, 256, 512, 1024, 1280, 1518)
#: Genome of the mixes that have a name: frame bytes -> parts.
RECIPES: dict[str, dict[int, int]] = {"imix": {64: 7, 594: 4, 1518: 1}}
#: iperf2's datagrams begin with a sequence number and time stamps.
LEAST_PAYLOAD_BYTES = 16


@dataclasses.dataclass(frozen=True)
class Part:
    """One size of a mix. ``share`` is its part of the frames."""

    frame_bytes: int
    share: float
    #: As the recipe has it.
    parts: int = 1

    def payload_bytes(self, ip_version: int) -> int:
        """The UDP payload that makes a frame of this size."""
        payload = self.frame_bytes - ETHERNET_BYTES - FCS_BYTES - IP_BYTES[ip_version] - UDP_BYTES
        if payload < LEAST_PAYLOAD_BYTES:
            least = self.frame_bytes - payload + LEAST_PAYLOAD_BYTES
            raise BenchError(
                f"a frame of {self.frame_bytes} bytes is too small for UDP over IPv{ip_version}",
                where="option frame",
                remedy=f"Use {least} bytes or more",
                code="bad_option",
            )
        return payload


@dataclasses.dataclass(frozen=True)
class Frames:
    """The frames of one search: one size, or a mix by recipe."""

    name: str
    parts: tuple[Part, ...]

    @property
    def mean_bytes(self) -> float:
        return sum(part.frame_bytes * part.share for part in self.parts)

    def l2_bps(self, frame_pps: float) -> float:
        """Bit/s of whole frames, FCS included."""
        return frame_pps * self.mean_bytes * 8

    def line_rate_pps(self, link_bps: float) -> float:
        """Frames per second that fill a link, gap and preamble included."""
        return link_bps / 8 / (self.mean_bytes + WIRE_GAP_BYTES)

    def as_dict(self) -> dict[str, t.Any]:
        return {
            "name": self.name,
            "size_layer": "L2 with FCS",
            "mean_bytes": self.mean_bytes,
            "recipe": [
                {"frame_bytes": part.frame_bytes, "share": part.share, "parts": part.parts} for part in self.parts
            ],
        }


def parse_frames(text: str, recipe: t.Mapping[t.Any, t.Any] | None = None) -> Frames:
    """Frames from ``64`` or ``imix``; a recipe of one's own is frame bytes -> parts."""
    name = str(text).strip().lower()
    if recipe:
        mix = {_number(size): _number(parts) for size, parts in recipe.items()}
    elif name in RECIPES:
        mix = RECIPES[name]
    else:
        mix = {_number(name): 1}
    total = sum(mix.values())
    return Frames(name, tuple(Part(size, parts / total, parts) for size, parts in sorted(mix.items())))


def _number(value: t.Any) -> int:
    try:
        number = int(value)
    except (TypeError, ValueError):
        number = 0
    if not 1 <= number <= 65535:
        raise BenchError(
            f"{value!r} is no frame size or part of a mix",
            where="option frame",
            remedy=f"Use bytes of a frame with its FCS, such as 64, or one of {', '.join(RECIPES)}",
            code="bad_option",
        )
    return number
