# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What one connection of TCP can carry when packets are lost at random.

Mathis, Semke, Mahdavi, Ott, "The Macroscopic Behavior of the TCP Congestion Avoidance Algorithm" (1997) for Reno, and
the average windows of RFC 9438 (section 5.1 and 4.3) for CUBIC. They are models: a path carries no more than its
bandwidth, and at a few percent of loss time-outs, which they do not know, make it less.
"""

from __future__ import annotations

import math
import typing as t

#: Reno with an acknowledgement for each segment: the square root of 3/2.
MATHIS = math.sqrt(1.5)
_CUBIC_C, _CUBIC_BETA = 0.4, 0.7


def mathis_bps(mss_bytes: int, rtt_s: float, loss: float) -> float:
    return MATHIS * mss_bytes * 8 / (rtt_s * math.sqrt(loss))


def cubic_bps(mss_bytes: int, rtt_s: float, loss: float) -> float:
    """The larger of CUBIC's own window and of the one by which it is no slower than Reno."""
    factor = math.pow(_CUBIC_C * (3 + _CUBIC_BETA) / (4 * (1 - _CUBIC_BETA)), 0.25)
    own = factor * math.pow(rtt_s / loss, 0.75)
    return max(own, MATHIS / math.sqrt(loss)) * mss_bytes * 8 / rtt_s


def curve(
    model: t.Callable[[int, float, float], float],
    *,
    mss_bytes: int,
    rtt_s: float,
    bandwidth_bps: float,
    losses: tuple[float, float],
    points: int = 48,
) -> list[tuple[float, float]]:
    """What a model expects from one loss to another, at steps that are even on a logarithmic axis."""
    low, high = (math.log(loss) for loss in losses)
    steps = [math.exp(low + (high - low) * number / (points - 1)) for number in range(points)]
    return [(loss, min(bandwidth_bps, model(mss_bytes, rtt_s, loss))) for loss in steps]


def expected(
    found: t.Sequence[t.Mapping[str, t.Any]], *, mss_bytes: int, bandwidth_bps: float
) -> list[dict[str, t.Any]]:
    """The points with what the models say beside, and how much of the point without loss is left.

    :param found: points with ``delay_ms``, ``loss_ratio``, ``rtt_ms``, ``goodput_bps``, ``status``.
    """
    whole = {
        one["delay_ms"]: one["goodput_bps"]
        for one in found
        if one["loss_ratio"] == 0 and one["status"] == "ok" and one["goodput_bps"]
    }
    rows = []
    for one in found:
        loss, rtt_s = one["loss_ratio"], (one["rtt_ms"] or 0) / 1000
        row: dict[str, t.Any] = {**one, "mathis_bps": None, "cubic_bps": None, "left_ratio": None, "to_mathis": None}
        if loss and rtt_s:
            row["mathis_bps"] = min(bandwidth_bps, mathis_bps(mss_bytes, rtt_s, loss))
            row["cubic_bps"] = min(bandwidth_bps, cubic_bps(mss_bytes, rtt_s, loss))
        good = one["goodput_bps"] if one["status"] == "ok" else None
        if good is not None and one["delay_ms"] in whole:
            row["left_ratio"] = good / whole[one["delay_ms"]]
        if good is not None and row["mathis_bps"]:
            row["to_mathis"] = good / row["mathis_bps"]
        rows.append(row)
    return rows
