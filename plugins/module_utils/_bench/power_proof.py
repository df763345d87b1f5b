# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a power profile did what it says while traffic ran.

A setting that reads back as asked is not yet a CPU that runs so: firmware caps
it, heat slows it down, another service takes it back. What a host recorded
during the trial (``power`` of its sample) decides, as far as it can tell.
"""

from __future__ import annotations

import typing as t

#: A frequency this much beside what it should be is still it: counters and clocks are not exact.
_TOLERANCE = 0.05
#: Of the frequency that was set, what CPUs reach together even where it is that of one alone with boost.
_HALF = 0.5
#: More of the time than this in an idle state that is off is no error of counting.
_SLEPT = 0.01
#: Sources that tell what the CPU did, and not what it is called.
_REAL = ("msr", "cpufreq")
_HELD = ("governor", "energy_performance_preference")
#: What asks for speed where no setting of the operating system does: BIOS attributes, and ESXi's policy.
_FAST_FIRMWARE = (("PowerRegulator", "StaticHighPerf"), ("SysProfile", "PerfOptimized"), ("policy", "high-performance"))

_Map = t.Mapping[str, t.Any]


def proven(read: _Map, seen: _Map) -> dict[str, t.Any]:
    """What a host read back, with what its CPUs did during the trial laid over it.

    :param seen: what ``dut_sample`` tells of the CPUs' power in the trial's window; empty when it tells nothing.
    """
    state = {**read, "under_load": {key: seen.get(key) for key in ("frequency", "source", "settings_changed")}}
    everything = state.get("wanted") or {}
    wanted = everything.get("os")
    if state.get("effective") is False or state.get("no_lever"):
        return state
    if not wanted:
        asked = {**(everything.get("bmc") or {}), **(everything.get("hypervisor") or {})}
        return _held_by_firmware(state, asked, seen)
    if not seen:
        return state
    against = _against(wanted, seen)
    if against:
        return {**state, "effective": False, "reason": "under load: " + "; ".join(against)}
    if state.get("effective") is None and _shown(wanted, seen):
        return {**state, "effective": True, "reason": "seen under load: " + _summary(seen)}
    return state


def _held_by_firmware(state: dict[str, t.Any], asked: _Map, seen: _Map) -> dict[str, t.Any]:
    """What firmware or hypervisor holds: their own word counts, unless CPUs were seen to be slow."""
    fast = any(asked.get(name) == value for name, value in _FAST_FIRMWARE)
    if state.get("effective") is not True or not fast:
        return state
    against = [*_throttled(seen), *_too_slow(seen)]
    if against:
        return {**state, "effective": False, "reason": "under load: " + "; ".join(against)}
    real, (_least, enough, _what) = _real(seen), _floor(seen)
    if real is not None and enough is not None and real >= enough:
        return {**state, "reason": "seen under load: " + _summary(seen)}
    return {**state, "reason": "read back as asked, and not seen under load: nothing here tells how fast the CPUs run"}


def _against(wanted: _Map, seen: _Map) -> list[str]:
    """All that says that the profile was not in force."""
    settings = seen.get("settings") or {}
    found = []
    if seen.get("settings_changed"):
        found.append("the settings changed while traffic ran, so another service sets them too")
    for name in _HELD:
        held = settings.get(name)
        if name in wanted and held:
            found += [f"{name} was {value} on {where}" for value, where in held.items() if value != wanted[name]]
    if _is_fast(wanted):
        found += _throttled(seen)
        found += _too_slow(seen)
    found += _too_fast(wanted, seen)
    found += _slept(wanted, seen)
    return found


def _is_fast(wanted: _Map) -> bool:
    """Whether the profile asks for speed: then nothing below the nominal frequency is right."""
    return wanted.get("governor") == "performance" or wanted.get("min_frequency") in ("max", "100%")


def _throttled(seen: _Map) -> list[str]:
    counts = {name: count for name, count in (seen.get("throttle") or {}).items() if count}
    told = ", ".join(f"{name} {count} times" for name, count in counts.items())
    return [f"the CPU slowed down to stay cool ({told})"] if told else []


def _too_slow(seen: _Map) -> list[str]:
    real, (least, _enough, what) = _real(seen), _floor(seen)
    if real is None or least is None or real >= least:
        return []
    return [f"CPUs ran at {real:,.0f} MHz, below {what}: firmware, hypervisor, heat or a power limit holds them down"]


def _real(seen: _Map) -> float | None:
    """How fast CPUs ran. One that sleeps tells a frequency of the past, and only registers count the time awake."""
    frequency = _frequency(seen) or {}
    real: float | None = frequency.get("mean_mhz") if seen.get("source") == "msr" else frequency.get("max_mhz")
    return frequency.get("mean_mhz") if real is None else real


def _floor(seen: _Map) -> tuple[float | None, float | None, str]:
    """Below which frequency CPUs are surely held down, from which on they surely are not, and what that is.

    Boost need not reach all CPUs at once, the nominal frequency does. Where that is not known, the range between is
    wide. A limit below it is someone's wish.
    """
    settings = seen.get("settings") or {}
    base, highest = (_frequency(seen) or {}).get("base_mhz"), _lowest(settings.get("max_khz"))
    if base:
        floor = min(base, highest or base)
        return floor * (1 - _TOLERANCE), floor * (1 - _TOLERANCE), f"the {floor:,.0f} MHz that they can keep up"
    limit = _lowest(settings.get("min_khz")) or highest
    if not limit:
        return None, None, ""
    return limit * _HALF, limit * (1 - _TOLERANCE), f"half of the {limit:,.0f} MHz that were set"


def _too_fast(wanted: _Map, seen: _Map) -> list[str]:
    frequency = _frequency(seen)
    if frequency is None or frequency.get("max_mhz") is None:
        return []
    limits = {}
    if wanted.get("boost") is False:
        limits["the nominal frequency although boost is off"] = frequency.get("base_mhz")
    if wanted.get("max_frequency") not in (None, "max", "100%"):
        limits["the highest frequency that was set"] = _highest((seen.get("settings") or {}).get("max_khz"))
    return [
        f"a CPU ran at {frequency['max_mhz']:.0f} MHz, above {what} ({limit:.0f} MHz)"
        for what, limit in limits.items()
        if limit and frequency["max_mhz"] > limit * (1 + _TOLERANCE)
    ]


def _slept(wanted: _Map, seen: _Map) -> list[str]:
    if wanted.get("max_exit_latency_us") is None and wanted.get("disabled_idle_states") is None:
        return []
    off = (seen.get("settings") or {}).get("idle_states_off") or {}
    if len(off) != 1:
        return []  # CPUs differ, and what they slept is known of all of them together only
    names = next(iter(off)).split(", ")
    return [
        f"CPUs spent {share:.1%} of the time in idle state {name}, which is off"
        for name, share in (seen.get("idle") or {}).items()
        if name in names and share > _SLEPT
    ]


def _shown(wanted: _Map, seen: _Map) -> bool:
    """Whether the record carries a yes: the settings held, and for a fast profile the CPUs were seen to be fast."""
    if seen.get("settings") is None or seen.get("settings_changed") is not False:
        return False
    frequency = _frequency(seen)
    if _is_fast(wanted):
        real, (_least, enough, _what) = _real(seen), _floor(seen)
        return real is not None and enough is not None and real >= enough
    if wanted.get("boost") is False:
        return frequency is not None and frequency.get("base_mhz") is not None
    if "governor" in wanted or "max_frequency" in wanted:
        return frequency is not None
    return seen.get("idle") is not None


def _frequency(seen: _Map) -> _Map | None:
    frequency = seen.get("frequency")
    return frequency if isinstance(frequency, dict) and seen.get("source") in _REAL else None


def _lowest(limits: _Map | None) -> float | None:
    return min((int(khz) / 1000 for khz in limits), default=None) if limits else None


def _highest(limits: _Map | None) -> float | None:
    return max((int(khz) / 1000 for khz in limits), default=None) if limits else None


def _summary(seen: _Map) -> str:
    parts = []
    frequency = _frequency(seen)
    if frequency is not None:
        parts.append(f"CPUs ran at {frequency['mean_mhz']:.0f} MHz on average")
    idle = {name: share for name, share in (seen.get("idle") or {}).items() if share > _SLEPT}
    if idle:
        parts.append("idle " + ", ".join(f"{name} {share:.0%}" for name, share in idle.items()))
    return "; ".join(parts) or "the settings held"
