# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How fast CPUs may and should run: governor, energy preference, boost, limits of frequency.

CPUs that share a clock form a policy, and a setting of it is written once.
"""

from __future__ import annotations

import dataclasses
import os
import re
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._host.access import Access, KnobError, NotThere
from ansible_collections.fastpath.bench.plugins.module_utils._host.cpu_knob import (
    BASE,
    CpuKnob,
    UnsupportedValue,
    numbered,
)
from ansible_collections.fastpath.bench.plugins.module_utils._host.knob import (
    RANK_BOOST_ALL,
    RANK_BOOST_ONE,
    RANK_FREQUENCY_LIMITS,
    RANK_GOVERNOR,
    RANK_WITH_GOVERNOR,
    RANK_WITHIN_LIMITS,
    Knob,
    Value,
    register,
)

UNCORE = f"{BASE}/intel_uncore_frequency"
PERFORMANCE = "performance"

#: Drivers that choose the frequency themselves: their governors are but two names, and one of them locks the EPP.
_OWN_GOVERNORS = ("intel_pstate", "amd-pstate-epp")
#: Governors that a kernel may have as a module, which a write loads.
_LOADABLE = frozenset({"conservative", "ondemand", "powersave", "performance", "schedutil", "userspace"})
_NAMES = {
    "intel_pstate": "intel_pstate",
    "intel_cpufreq": "intel_pstate",
    "amd-pstate": "amd_pstate",
    "amd-pstate-epp": "amd_pstate",
}


@dataclasses.dataclass(frozen=True)
class Driver:
    """Who sets the frequency. ``name`` is None where no driver does; ``mode`` is that of the pstate drivers."""

    name: str | None
    mode: str | None
    policies: tuple[str, ...]

    @property
    def title(self) -> str:
        return "no driver" if self.name is None else f"{self.name} ({self.mode})" if self.mode else self.name


_GOVERNOR_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")


def policies(access: Access) -> list[str]:
    return numbered(access, os.path.join(access.sys, BASE, "cpufreq"), "policy")


def find_driver(access: Access) -> Driver:
    names = tuple(policies(access))
    found = [text for text in (_text(access, f"cpufreq/{name}/scaling_driver") for name in names) if text is not None]
    if not found:
        return Driver(None, None, names)
    raw = found[0]
    name = _NAMES.get(raw, raw)
    mode = _text(access, f"{name}/status") if name in _NAMES.values() else None
    if mode is None and name in _NAMES.values():
        mode = "active" if raw in _OWN_GOVERNORS else "passive"
    return Driver(name, mode, names)


def _text(access: Access, name: str) -> str | None:
    try:
        return access.read_file(os.path.join(access.sys, BASE, name))
    except KnobError:
        return None


def locks_preference(access: Access, policy: str) -> bool:
    """Whether this policy's energy preference is locked while its governor is ``performance``."""
    return _text(access, f"cpufreq/{policy}/scaling_driver") in _OWN_GOVERNORS


@register
class Governor(CpuKnob):
    """What chooses the frequency of a policy."""

    kind = "cpufreq.governor"
    files = ("scaling_governor",)

    @property
    def rank(self) -> int:
        return RANK_GOVERNOR

    def read(self) -> Value:
        return self.text("scaling_governor")

    def write(self, value: Value) -> None:
        self.put("scaling_governor", value)

    def check(self, current: Value, wish: t.Any) -> None:
        known = self.text("scaling_available_governors").split()
        if wish in known or wish == current:
            return
        driver = self.text("scaling_driver")
        if driver in _OWN_GOVERNORS or wish not in _LOADABLE:
            raise UnsupportedValue(
                f"governor {wish!r} is not available with driver {driver}",
                where=self.key,
                remedy=f"Available governors: {', '.join(known) or 'none'}",
            )

    def collateral(self, current: Value, desired: Value) -> list[Knob]:
        """The preference that ``performance`` overrides, and what the old governor forgets when it goes."""
        beside: list[Knob] = [EnergyPreference(self.access, self.key)]
        if current == "userspace":
            beside.append(SetSpeed(self.access, self.key))
        # a policy whose CPUs are all offline has something else than a name there
        if _GOVERNOR_NAME.fullmatch(str(current)):
            beside += [Tunables(self.access, key) for key in (current, f"{self.key}/{current}")]
        return beside


@register
class Tunables(CpuKnob):
    """The governor's own parameters, of a policy (``policy0/schedutil``) or of all (``ondemand``); name to text."""

    kind = "cpufreq.tunables"
    comes_back = False
    key_form = rf"(policy\d+/)?{_GOVERNOR_NAME.pattern}"

    @property
    def rank(self) -> int:
        return RANK_WITH_GOVERNOR

    def read(self) -> Value:
        values = {}
        for name in self.access.list_dir(self.folder):
            try:
                values[name] = self.text(name)
            except KnobError:
                continue  # it can only be written
        if not values:
            raise NotThere("this governor has no parameters now", where=self.folder)
        return values

    def write(self, value: Value) -> None:
        now = self.read()
        for name, text in value.items():
            if now.get(name) != text:
                self.put(name, text)


@register
class SetSpeed(CpuKnob):
    """The frequency that governor ``userspace`` holds, in kHz."""

    kind = "cpufreq.setspeed"
    comes_back = False
    files = ("scaling_setspeed",)

    @property
    def rank(self) -> int:
        return RANK_WITHIN_LIMITS

    def read(self) -> Value:
        return self.number("scaling_setspeed")

    def write(self, value: Value) -> None:
        self.put("scaling_setspeed", str(value))


@register
class EnergyPreference(CpuKnob):
    """Energy performance preference (EPP) of a policy."""

    kind = "cpufreq.epp"
    files = ("energy_performance_preference",)

    @property
    def rank(self) -> int:
        return RANK_WITH_GOVERNOR

    def read(self) -> Value:
        return self.text("energy_performance_preference")

    def write(self, value: Value) -> None:
        # Governor performance sets it by itself, and then locks it even against the value it has.
        if self.read() != value:
            self.put("energy_performance_preference", value)

    def check(self, current: Value, wish: t.Any) -> None:
        known = [name for name in self.text("energy_performance_available_preferences").split() if name != "default"]
        if wish not in known and wish != current:
            raise UnsupportedValue(
                f"energy performance preference {wish!r} is not available",
                where=self.key,
                remedy=f"Available: {', '.join(known) or 'none'}",
            )


class _Boost(CpuKnob):
    """Whether frequencies above the nominal one are allowed; a boolean."""

    file: t.ClassVar[str] = "boost"
    inverted: t.ClassVar[bool] = False

    @property
    def files(self) -> tuple[str, ...]:
        return (self.file,)

    def read(self) -> Value:
        return (self.text(self.file) == "1") != self.inverted

    def write(self, value: Value) -> None:
        # A policy follows the switch of all, and refuses to be told again what it already does.
        if self.read() != value:
            self.put(self.file, "1" if value != self.inverted else "0")

    def collateral(self, current: Value, desired: Value) -> list[Knob]:
        """The highest frequency there is changes with it, and limits with that."""
        return [FrequencyLimits(self.access, name) for name in self._policies()]

    def _policies(self) -> list[str]:
        return policies(self.access)


@register
class Boost(_Boost):
    """The switch of all CPUs: ``intel_pstate`` (``no_turbo``, the other way round) or ``cpufreq``."""

    kind = "cpufreq.boost"
    key_form = r"intel_pstate|cpufreq"

    @property
    def folder(self) -> str:
        return os.path.join(self.access.sys, BASE, self.key)

    @property
    def file(self) -> str:  # type: ignore[override]
        return "no_turbo" if self.key == "intel_pstate" else "boost"

    @property
    def inverted(self) -> bool:  # type: ignore[override]
        return self.key == "intel_pstate"

    @property
    def rank(self) -> int:
        return RANK_BOOST_ALL

    def collateral(self, current: Value, desired: Value) -> list[Knob]:
        return [*(PolicyBoost(self.access, name) for name in self._policies()), *super().collateral(current, desired)]


@register
class PolicyBoost(_Boost):
    """The switch of one policy."""

    kind = "cpufreq.policy_boost"

    @property
    def rank(self) -> int:
        return RANK_BOOST_ONE

    def _policies(self) -> list[str]:
        return [self.key]


class _Limits(CpuKnob):
    """``min_khz`` and ``max_khz``, written in the order in which the first never exceeds the second.

    A wish has one of them or both: a number of kHz, ``min``, ``max``, or a percentage of the highest.
    """

    low_file: t.ClassVar[str]
    high_file: t.ClassVar[str]
    #: The hardware's own.
    lowest_file: t.ClassVar[str]
    highest_file: t.ClassVar[str]

    @property
    def files(self) -> tuple[str, ...]:
        return (self.low_file, self.high_file)

    def read(self) -> Value:
        return {"min_khz": self.number(self.low_file), "max_khz": self.number(self.high_file)}

    def write(self, value: Value) -> None:
        now = self.read()
        rows = [("max_khz", self.high_file), ("min_khz", self.low_file)]
        if value["max_khz"] < now["min_khz"]:
            rows.reverse()
        for name, file in rows:
            if value[name] != now[name]:
                self.put(file, str(value[name]))

    def bounds(self) -> tuple[int, int]:
        return self.number(self.lowest_file), self.number(self.highest_file)

    def resolve(self, current: Value, wish: t.Any) -> Value:
        lowest, highest = self.bounds()
        return {**current, **{name: in_khz(text, lowest, highest) for name, text in wish.items()}}

    def check_reachable(self, current: Value, wish: t.Any) -> None:
        """Raise when no order of writing leads there. Not in ``check``: boost in the same call moves the bounds."""
        lowest, highest = self.bounds()
        target = self.resolve(current, wish)
        for name, word in (("min_khz", "lowest"), ("max_khz", "highest")):
            if name in wish and not lowest <= target[name] <= highest:
                raise UnsupportedValue(
                    f"{word} frequency {target[name]} kHz is beyond what there is",
                    where=self.key,
                    remedy=f"From {lowest} to {highest} kHz",
                )
        if target["min_khz"] > target["max_khz"]:
            raise UnsupportedValue(
                f"the lowest frequency {target['min_khz']} kHz would be above the highest {target['max_khz']} kHz",
                where=self.key,
                remedy="Ask for both",
            )


def in_khz(text: str, lowest: int, highest: int) -> int:
    """A wish for a frequency in kHz."""
    if text in ("min", "max"):
        return lowest if text == "min" else highest
    percent = re.fullmatch(r"(\d+(?:\.\d+)?) ?%", text)
    if percent:
        return max(lowest, round(highest * float(percent[1]) / 100))
    return int(text)


def is_frequency(text: str) -> bool:
    """Whether a user's text is a wish that :func:`in_khz` understands."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?) ?%", text)
    if match:
        return 0 < float(match[1]) <= 100
    return text in ("min", "max") or re.fullmatch(r"[1-9]\d{3,8}", text) is not None


@register
class FrequencyLimits(_Limits):
    """Between which frequencies a policy may choose."""

    kind = "cpufreq.limits"
    low_file, high_file = "scaling_min_freq", "scaling_max_freq"
    lowest_file, highest_file = "cpuinfo_min_freq", "cpuinfo_max_freq"

    @property
    def rank(self) -> int:
        return RANK_FREQUENCY_LIMITS


@register
class UncoreLimits(_Limits):
    """The same for what the cores of a package share: caches, memory controller, mesh."""

    kind = "uncore.limits"
    key_form = r"package_\d+_die_\d+|uncore\d+"
    low_file, high_file = "min_freq_khz", "max_freq_khz"
    lowest_file, highest_file = "initial_min_freq_khz", "initial_max_freq_khz"

    @property
    def folder(self) -> str:
        return os.path.join(self.access.sys, UNCORE, self.key)


def uncore_domains(access: Access) -> list[str]:
    """Domains of the uncore; where there are clusters, those, as a package is only a name for all of its clusters."""
    folder = os.path.join(access.sys, UNCORE)
    clusters = numbered(access, folder, "uncore")
    return clusters or [name for name in access.list_dir(folder) if name.startswith("package_")]


def boost_knobs(access: Access) -> list[Knob]:
    """Every switch of boost that this machine has; none when it has none."""
    knobs: list[Knob] = []
    for key in ("intel_pstate", "cpufreq"):
        knob = Boost(access, key)
        if knob.file in access.list_dir(knob.folder):
            knobs.append(knob)
            break
    names = [name for name in policies(access) if "boost" in access.list_dir(PolicyBoost(access, name).folder)]
    return [*knobs, *(PolicyBoost(access, name) for name in names)]


def knobs_of(access: Access) -> list[Knob]:
    """Every setting of frequency that is there: what another owner may change."""
    knobs: list[Knob] = list(boost_knobs(access))
    for name in policies(access):
        knobs += [Governor(access, name), EnergyPreference(access, name), FrequencyLimits(access, name)]
    knobs += [UncoreLimits(access, name) for name in uncore_domains(access)]
    return knobs
