# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Services that set the power of CPUs too, and may set it differently at any time."""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common.command import CommandError
from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._host import cpufreq, cpuidle
from ansible_collections.fastpath.bench.plugins.module_utils._host.access import Access, NotThere, Refused
from ansible_collections.fastpath.bench.plugins.module_utils._host.knob import (
    RANK_OWNERS_START,
    RANK_OWNERS_STOP,
    Knob,
    Value,
    register,
)

#: unit -> whether it sets what this collection sets, so that stopping it makes sense.
UNITS: t.Mapping[str, bool] = {
    "tuned.service": True,
    "power-profiles-daemon.service": True,
    "tlp.service": True,
    "cpupower.service": True,
    "cpufrequtils.service": True,
    "auto-cpufreq.service": True,
    "irqbalance.service": False,
}
_ACTIVE = ("active", "activating", "reloading")


@dataclasses.dataclass(frozen=True)
class Owner:
    """A service that is running, or will be after the next start of the machine."""

    unit: str
    active: bool
    enabled: bool

    @property
    def sets_power(self) -> bool:
        return UNITS[self.unit]


def find(access: Access) -> tuple[list[Owner], str | None]:
    """The services that are there, and why they are not known when they cannot be asked."""
    try:
        status, out, err = access.call(
            ["systemctl", "--no-pager", "show", "--property=Id,ActiveState,UnitFileState", *UNITS]
        )
    except CommandError as error:
        # Where there is no systemd, none of its units runs.
        return ([], None) if error.code == "tool_absent" else ([], error.what)
    if "=" not in out:
        said = " ".join((err or out).split())
        return [], None if "not been booted with systemd" in said else f"systemctl ended with {status}: {said}"
    owners = []
    for block in out.strip().split("\n\n"):
        row = dict(line.split("=", 1) for line in block.splitlines() if "=" in line)
        unit = row.get("Id", "")
        active, enabled = row.get("ActiveState") in _ACTIVE, row.get("UnitFileState") == "enabled"
        if unit in UNITS and (active or enabled):
            owners.append(Owner(unit, active, enabled))
    return owners, None


@register
class ServiceRunning(Knob):
    """Whether a service runs; stopped before all other settings change, and started when they are back."""

    kind = "service.running"
    scope = "boot"

    def __init__(self, access: Access, key: str) -> None:
        if key not in UNITS:
            raise BenchError("not a service that sets the power of CPUs", where=repr(key), code="bad_key")
        super().__init__(access, key)

    @property
    def rank(self) -> int:
        return RANK_OWNERS_STOP

    def rank_to(self, value: Value) -> int:
        return RANK_OWNERS_START if value else RANK_OWNERS_STOP

    def read(self) -> Value:
        try:
            _status, out, _err = self.access.call(["systemctl", "is-active", self.key])
        except CommandError as error:
            raise NotThere(error.what, where=self.key) from error
        return out.strip() in _ACTIVE

    def write(self, value: Value) -> None:
        verb = "start" if value else "stop"
        try:
            status, out, err = self.access.call(["systemctl", verb, self.key])
        except CommandError as error:
            raise Refused(error.what, where=self.key) from error
        if status != 0:
            said = " ".join((err or out).split()) or f"status {status}"
            raise Refused(f"systemctl {verb} failed: {said}", where=self.key)

    def collateral(self, current: Value, desired: Value) -> list[Knob]:
        """All it may set: some put back at their end what they found at their start."""
        idle = [cpuidle.IdleStates(self.access, name) for name in cpuidle.cpus_with_states(self.access)]
        return [*cpufreq.knobs_of(self.access), *idle]
