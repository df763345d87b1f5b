# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kernel's network emulator on what leaves an interface: delay, loss, reordering, rate.

It stands where the interface's queueing discipline stands. One that somebody has set is not replaced; one that the
kernel made by itself comes back by itself when netem goes.
"""

from __future__ import annotations

import dataclasses
import json
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError, ParseError
from ansible_collections.fastpath.bench.plugins.module_utils._host.access import Refused
from ansible_collections.fastpath.bench.plugins.module_utils._host.device import DeviceKnob
from ansible_collections.fastpath.bench.plugins.module_utils._host.knob import (
    ABSENT,
    RANK_FEATURES,
    Value,
    register,
)

KIND = "netem"
#: What tc tells of a kernel that has no module for it.
_UNKNOWN = "qdisc kind is unknown"
#: The handle of a discipline that the kernel made by itself.
_OWN_HANDLE = "0:"
#: tc keeps parts as 32 bits, and times in ticks of some nanoseconds.
_NEAR = 0.01
#: Packets that wait for their delay; as many as the rate puts into it are needed.
_LEAST_LIMIT, _PACKET_BYTES, _MOST_LIMIT = 1000, 1500, 1_000_000


@dataclasses.dataclass(frozen=True)
class Settings:
    """What is asked. 0 is none."""

    delay_us: int = 0
    loss_ratio: float = 0.0
    reorder_ratio: float = 0.0
    bandwidth_bps: int = 0

    def check(self) -> None:
        for name, right, remedy in (
            ("delay_us", 0 <= self.delay_us <= 60_000_000, "Use 0 to 60000000"),
            ("loss_ratio", 0 <= self.loss_ratio <= 1, "Use 0 to 1"),
            ("reorder_ratio", 0 <= self.reorder_ratio <= 1, "Use 0 to 1"),
            ("reorder_ratio", not self.reorder_ratio or self.delay_us > 0, "What is not delayed cannot be overtaken"),
            ("bandwidth_bps", self.bandwidth_bps >= 0, "Use 0 (no limit) or more"),
        ):
            if not right:
                raise BenchError(f"{getattr(self, name)} is not possible", where=name, remedy=remedy, code="bad_option")

    @property
    def limit(self) -> int:
        """Packets that may wait: those that the rate puts into the delay, twice."""
        under_way = self.delay_us / 1e6 * (self.bandwidth_bps or 10**10) / 8 / _PACKET_BYTES
        return min(_MOST_LIMIT, max(_LEAST_LIMIT, int(under_way * 2)))

    def words(self) -> list[str]:
        made = ["limit", str(self.limit)]
        made += ["delay", f"{self.delay_us}us"] if self.delay_us else []
        made += ["loss", "random", f"{self.loss_ratio * 100:.6f}%"] if self.loss_ratio else []
        made += ["reorder", f"{self.reorder_ratio * 100:.6f}%"] if self.reorder_ratio else []
        return made + (["rate", f"{self.bandwidth_bps}bit"] if self.bandwidth_bps else [])


def parse(text: str) -> dict[str, t.Any] | None:
    """The root of ``tc -json qdisc show dev``; None when there is none. Pure."""
    try:
        rows = json.loads(text or "[]")
        return next((row for row in rows if row.get("root")), None)
    except (ValueError, AttributeError, TypeError) as error:
        raise ParseError("tc did not answer with its JSON", line=text[:200]) from error


def settings_of(row: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """A netem of tc as :class:`Settings` has it. Pure."""
    options = row.get("options") or {}
    return {
        "delay_us": round(float((options.get("delay") or {}).get("delay", 0)) * 1e6),
        "loss_ratio": float((options.get("loss-random") or {}).get("loss", 0)),
        "reorder_ratio": float((options.get("reorder") or {}).get("reorder", 0)),
        "bandwidth_bps": int((options.get("rate") or {}).get("rate", 0)) * 8,
    }


@register
class Netem(DeviceKnob):
    """Wish: the fields of :class:`Settings`, or ABSENT."""

    kind = "qdisc.netem"

    @property
    def rank(self) -> int:
        return RANK_FEATURES

    def _root(self) -> dict[str, t.Any] | None:
        return parse(self.access.told(["tc", "-json", "qdisc", "show", "dev", self.device], where=self.device))

    def read(self) -> Value:
        self.link  # noqa: B018 - tc tells nothing of an interface that is not there
        root = self._root()
        return settings_of(root) if root is not None and root.get("kind") == KIND else ABSENT

    def same(self, one: Value, other: Value) -> bool:
        if one is ABSENT or other is ABSENT:
            return one is other
        return all(abs(one[name] - other[name]) <= _NEAR * max(abs(one[name]), abs(other[name])) for name in one)

    def check(self, current: Value, wish: t.Any) -> None:
        root = self._root()
        if wish is ABSENT or root is None or root.get("kind") == KIND or root.get("handle") == _OWN_HANDLE:
            return
        raise Refused(
            f"somebody has set the queueing discipline {root.get('kind')} ({root.get('handle')}) there",
            where=self.device,
            remedy="Remove it first; what it was set to could not be put back",
        )

    def write(self, value: Value) -> None:
        argv = ["tc", "qdisc", "del", "dev", self.device, "root"]
        if value is not ABSENT:
            argv = ["tc", "qdisc", "replace", "dev", self.device, "root", KIND, *Settings(**value).words()]
        status, out, err = self.access.call(argv)
        self.access.forget()
        if status != 0 and _UNKNOWN in err:
            raise BenchError(
                "this kernel has no network emulator",
                where=self.device,
                remedy="Load the module sch_netem, or use VPP's simulator (fastpath.bench.vpp_nsim)",
                code="netem_unsupported",
            )
        if status != 0:
            raise Refused(f"{' '.join(argv)} ended with {status}: {(err or out).strip()}", where=self.device)
