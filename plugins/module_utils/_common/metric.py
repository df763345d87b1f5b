# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A measured number with all that is needed to read it.

Names follow RFC 1242 and RFC 2285 (forwarding rate, frame loss ratio) and
RFC 2647 (goodput).
"""

from __future__ import annotations

import dataclasses
import typing as t

DIRECTIONS = ("forward", "reverse", "both")
KINDS = ("offered", "sent", "received", "derived")
LAYERS = ("L2", "L3", "L4")

#: name -> (unit, layer, kind). The key of a metric is name + "_" + direction,
#: or name + "_total" for the sum of both directions.
METRICS: dict[str, tuple[str, str | None, str]] = {
    "goodput": ("bit/s", "L4", "received"),
    "sent_rate": ("bit/s", "L4", "sent"),
    "forwarding_rate": ("packet/s", "L4", "received"),
    "offered_rate": ("packet/s", "L4", "offered"),
    "sent_packet_rate": ("packet/s", "L4", "sent"),
    "frame_loss_ratio": ("ratio", "L4", "derived"),
    "tool_loss_ratio": ("ratio", "L4", "received"),
    "jitter": ("ms", "L4", "received"),
    "out_of_order": ("count", "L4", "received"),
    "retransmits": ("count", "L4", "sent"),
    # generators of connections
    "connection_rate": ("connection/s", "L4", "derived"),
    "offered_connection_rate": ("connection/s", "L4", "offered"),
    "connections_open": ("count", "L4", "derived"),
    "connections_failed": ("count", "L4", "sent"),
    "connect_time": ("ms", "L4", "derived"),
    # flows of datagrams, each with an own pair of ends
    "flow_rate": ("flow/s", "L4", "received"),
    "offered_flow_rate": ("flow/s", "L4", "offered"),
    "flows_open": ("count", "L4", "received"),
    "request_rate": ("request/s", "L4", "sent"),
    "answer_rate": ("request/s", "L4", "received"),
    "round_trip": ("ms", "L4", "derived"),
    # frames as a driver hands them over, without padding and FCS
    "sent_frame_rate": ("packet/s", "L2", "sent"),
    "received_frame_rate": ("packet/s", "L2", "received"),
    "sent_frame_bits": ("bit/s", "L2", "sent"),
    "received_frame_bits": ("bit/s", "L2", "received"),
}


@dataclasses.dataclass(frozen=True)
class Metric:
    """One number. ``value`` is None when it is not known; 0 means measured as zero."""

    value: float | None
    unit: str
    layer: str | None
    direction: str
    kind: str
    peak: float | None = None
    why: str | None = None

    def as_dict(self) -> dict[str, t.Any]:
        record = dataclasses.asdict(self)
        if self.why is None:
            del record["why"]
        return record


def metric_key(name: str, direction: str) -> str:
    """The key of a metric in a trial: ``goodput_forward``, ``goodput_total``."""
    return f"{name}_total" if direction == "both" else f"{name}_{direction}"


def metric(
    name: str, direction: str, value: float | None, *, peak: float | None = None, why: str | None = None
) -> tuple[str, Metric]:
    """A key and a :class:`Metric` with the unit, layer and kind that its name has."""
    unit, layer, kind = METRICS[name]
    if direction not in DIRECTIONS:
        raise ValueError(f"direction {direction!r} is none of {', '.join(DIRECTIONS)}")
    return metric_key(name, direction), Metric(value, unit, layer, direction, kind, peak, why)
