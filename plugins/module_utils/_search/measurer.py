# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a search asks of a generator: one trial at a load, and what it can do at most."""

from __future__ import annotations

import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._search.verdict import Limits, Observation


class Measurer(t.Protocol):
    """Performs trials. Set up once with all that stays the same during a search (RFC 9971: Traffic Profile)."""

    @property
    def limits(self) -> Limits:
        """How exact it is."""

    def measure(self, load_pps: float, duration_s: float) -> Observation:
        """Offer a load in each direction for a time. A failed trial is an observation too, not an exception."""

    def probe(self, duration_s: float) -> float:
        """The load that it can offer at most, packets per second of one direction.

        :raises BenchError: it cannot send at all.
        """

    def least_pps(self, duration_s: float) -> float:
        """The lowest load that it can keep in trials of this length; 0 is any."""

    def latency(self, load_pps: float, duration_s: float) -> dict[str, t.Any] | None:
        """Round-trip times while a load is offered, 0 is none; None when it cannot tell.

        :raises BenchError: they could not be measured.
        """

    def profile(self) -> dict[str, t.Any]:
        """The Traffic Profile as a report states it."""

    def now(self) -> float:
        """Seconds on the clock that trials take place by."""
