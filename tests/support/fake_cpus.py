# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The CPUs of a host in memory: what ``/sys/devices/system/cpu`` would say and do with each driver.

Plain files take every write; these have the habits of the drivers (Linux 5.4
to 6.18): the energy preference is busy while the governor is ``performance``,
which sets it by itself; limits follow boost; the switch of all policies moves
that of each, which then refuses to differ; a governor that goes forgets its
parameters; firmware forbids boost; a write is taken and does nothing.
"""

from __future__ import annotations

import copy
import dataclasses
import errno
import os
import re
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common.command import CommandError
from ansible_collections.fastpath.bench.plugins.module_utils._host.access import Access, NotSupported, file_error
from ansible_collections.fastpath.bench.tests.unit.fake_kernel import Killed

CPU = "/sys/devices/system/cpu"
LOWEST, NOMINAL, TURBO = 800_000, 2_600_000, 3_900_000
PREFERENCES = ("default", "performance", "balance_performance", "balance_power", "power")
#: What governors can be adjusted in, and where they start.
TUNABLES = {
    "ondemand": {"up_threshold": "80", "sampling_rate": "4000"},
    "schedutil": {"rate_limit_us": "1000"},
    "conservative": {"freq_step": "5"},
}
ACTIVE = ("intel_pstate", "amd-pstate-epp")
#: driver -> governors that are there from the beginning
GOVERNORS = {
    "intel_pstate": ("performance", "powersave"),
    "amd-pstate-epp": ("performance", "powersave"),
    "intel_cpufreq": ("performance", "powersave", "schedutil", "userspace"),
    "amd-pstate": ("performance", "powersave", "schedutil", "userspace"),
    "acpi-cpufreq": ("performance", "powersave", "schedutil", "userspace"),
}
MODULES = ("ondemand", "conservative")
STATES = (("POLL", 0), ("C1", 2), ("C1E", 10), ("C6", 133))


@dataclasses.dataclass
class Policy:
    cpus: list[int]
    governor: str = "powersave"
    epp: str = "balance_performance"
    epp_before: str = "balance_performance"
    low: int = LOWEST
    high: int = TURBO
    boost: bool = True
    speed: int = LOWEST


@dataclasses.dataclass
class Service:
    active: bool = False
    enabled: bool = False
    #: What it sets at its start: governor. At its end it puts back what it found then.
    governor: str | None = None
    found: dict[int, str] = dataclasses.field(default_factory=dict)


_Read = t.Callable[[], str]
_Write = t.Optional[t.Callable[[str], None]]


class FakeCpus(Access):
    def __init__(
        self,
        driver: str | None = "intel_pstate",
        *,
        cpus: int = 4,
        per_policy: int = 1,
        status: str | None = None,
        idle: bool = True,
        uncore: t.Sequence[str] = (),
        policy_boost: bool = False,
        boost_permitted: bool = True,
        old_kernel: bool = False,
        step_khz: int = 1,
    ) -> None:
        super().__init__("/proc", "/sys")
        self.driver = driver
        self.cpus = cpus
        self.status = status or {"amd-pstate": "passive", "intel_cpufreq": "passive"}.get(driver or "", "active")
        self.policies: dict[int, Policy] = {}
        if driver is not None:
            for first in range(0, cpus, per_policy):
                self.policies[first] = Policy(list(range(first, min(first + per_policy, cpus))))
        self.idle = {cpu: [False] * len(STATES) for cpu in range(cpus)} if idle else {}
        self.uncore = {name: [800_000, 2_400_000] for name in uncore}
        self.policy_boost = policy_boost
        self.boost_permitted = boost_permitted
        self.boost = boost_permitted
        self.old_kernel = old_kernel
        self.step_khz = step_khz
        self.tunables: dict[str, dict[str, str]] = {}
        self.services: dict[str, Service] = {}
        self.systemd = True
        #: What the machine itself says, beyond its CPUs: path to text.
        self.texts: dict[str, str] = {"/proc/cpuinfo": "flags\t\t: fpu aes\n"}
        #: Pattern of a path -> the error that a write gets; 0 for one that is taken and does nothing.
        self.faults: dict[str, int] = {}
        #: Patterns of paths that do not exist.
        self.without: list[str] = []
        #: Patterns of paths that are mounted read-only.
        self.read_only: list[str] = []
        self.fail_in: int | None = None
        self.kill_in: int | None = None
        self.kill_after_effect = False
        self.writes: list[tuple[str, str]] = []
        self._files: dict[str, tuple[_Read, _Write]] = {}
        self._folders: dict[str, list[str]] = {}
        for path, get, put in self._tree():
            self._files[path] = (get, put)
        for path in self._files:
            self._enter(path)

    def _enter(self, path: str) -> None:
        """Make it a name in its folder, and that in its own."""
        folder, name = os.path.split(path)
        names = self._folders.setdefault(folder, [])
        if name not in names:
            names.append(name)
            if folder != "/sys":
                self._enter(folder)

    # What is there

    def _tree(self) -> t.Iterator[tuple[str, _Read, _Write]]:
        yield f"{CPU}/possible", lambda: f"0-{self.cpus - 1}", None
        if self.driver in ("intel_pstate", "intel_cpufreq"):
            yield f"{CPU}/intel_pstate/status", lambda: self.status, None
            yield f"{CPU}/intel_pstate/no_turbo", lambda: "0" if self.boost else "1", self._put_no_turbo
        elif self.driver is not None:
            yield f"{CPU}/cpufreq/boost", lambda: "1" if self.boost else "0", self._put_boost
        if self.driver in ("amd-pstate", "amd-pstate-epp"):
            yield f"{CPU}/amd_pstate/status", lambda: self.status, None
        for number, policy in self.policies.items():
            yield from self._policy_files(f"{CPU}/cpufreq/policy{number}", policy)
        for cpu, off in self.idle.items():
            for number, (name, latency) in enumerate(STATES):
                base = f"{CPU}/cpu{cpu}/cpuidle/state{number}"
                yield f"{base}/name", lambda name=name: name, None  # type: ignore[misc]
                yield f"{base}/latency", lambda latency=latency: str(latency), None  # type: ignore[misc]
                get, put = _switch(off, number)
                yield f"{base}/disable", get, put
        for name, limits in self.uncore.items():
            base = f"{CPU}/intel_uncore_frequency/{name}"
            yield f"{base}/initial_min_freq_khz", lambda: "800000", None
            yield f"{base}/initial_max_freq_khz", lambda: "2400000", None
            for place, word in enumerate(("min", "max")):
                get, put = _limit(limits, place)
                yield f"{base}/{word}_freq_khz", get, put

    def _policy_files(self, base: str, policy: Policy) -> t.Iterator[tuple[str, _Read, _Write]]:
        driver = str(self.driver)
        yield f"{base}/scaling_driver", lambda: driver, None
        yield f"{base}/affected_cpus", lambda: " ".join(map(str, policy.cpus)), None
        yield f"{base}/scaling_available_governors", lambda: " ".join(GOVERNORS[driver]), None
        yield f"{base}/scaling_governor", lambda: policy.governor, lambda text: self._put_governor(policy, text)
        yield f"{base}/cpuinfo_min_freq", lambda: str(LOWEST), None
        yield f"{base}/cpuinfo_max_freq", lambda: str(self.highest(policy)), None
        yield f"{base}/scaling_min_freq", lambda: str(self.low(policy)), lambda text: self._put_low(policy, text)
        yield f"{base}/scaling_max_freq", lambda: str(self.high(policy)), lambda text: self._put_high(policy, text)
        yield f"{base}/scaling_setspeed", lambda: self._speed(policy), lambda text: self._put_speed(policy, text)
        if driver in ACTIVE or driver == "intel_cpufreq":
            yield f"{base}/energy_performance_available_preferences", lambda: " ".join(PREFERENCES), None
            path = f"{base}/energy_performance_preference"
            yield path, lambda: policy.epp, lambda text: self._put_epp(policy, text)
        if self.policy_boost:
            path = f"{base}/boost"
            yield path, lambda: "1" if policy.boost else "0", lambda text: self._put_policy_boost(policy, text)

    # What the drivers do

    def highest(self, policy: Policy) -> int:
        return TURBO if self.boost and (policy.boost or not self.policy_boost) else NOMINAL

    def high(self, policy: Policy) -> int:
        return max(LOWEST, min(policy.high, self.highest(policy)))

    def low(self, policy: Policy) -> int:
        return max(LOWEST, min(policy.low, self.high(policy)))

    def _put_low(self, policy: Policy, text: str) -> None:
        value = -(-_whole(text) // self.step_khz) * self.step_khz
        if value > self.high(policy):
            raise OSError(errno.EINVAL, "Invalid argument")
        policy.low = value

    def _put_high(self, policy: Policy, text: str) -> None:
        value = -(-_whole(text) // self.step_khz) * self.step_khz
        if value < self.low(policy):
            raise OSError(errno.EINVAL, "Invalid argument")
        policy.high = value

    def _put_governor(self, policy: Policy, text: str) -> None:
        active = self.driver in ACTIVE
        if text not in GOVERNORS[str(self.driver)] and (active or text not in MODULES):
            raise OSError(errno.EINVAL, "Invalid argument")
        old, policy.governor = policy.governor, text
        if old == text:
            return
        if active and text == "performance":
            policy.epp_before, policy.epp = policy.epp, "performance"
        elif active and policy.epp == "performance":
            policy.epp = policy.epp_before
        if text == "userspace":
            policy.speed = LOWEST
        if not any(other.governor == old for other in self.policies.values()):
            self.tunables.pop(old, None)
        if text in TUNABLES:
            self.tunables.setdefault(text, dict(TUNABLES[text]))

    def _put_epp(self, policy: Policy, text: str) -> None:
        if text not in PREFERENCES:
            raise OSError(errno.EINVAL, "Invalid argument")
        locked = self.driver in ACTIVE and policy.governor == "performance"
        if locked and (self.old_kernel or text != "performance"):
            raise OSError(errno.EBUSY, "Device or resource busy")
        policy.epp = "balance_performance" if text == "default" else text

    def _speed(self, policy: Policy) -> str:
        return str(policy.speed) if policy.governor == "userspace" else "<unsupported>"

    def _put_speed(self, policy: Policy, text: str) -> None:
        if policy.governor != "userspace":
            raise OSError(errno.EINVAL, "Invalid argument")
        policy.speed = max(self.low(policy), min(_whole(text), self.high(policy)))

    def _put_no_turbo(self, text: str) -> None:
        self._set_boost(not _bit(text))

    def _put_boost(self, text: str) -> None:
        self._set_boost(_bit(text))

    def _set_boost(self, value: bool) -> None:
        if not self.boost_permitted:
            raise OSError(errno.EPERM, "Operation not permitted")
        self.boost = value
        for policy in self.policies.values():
            policy.boost = value

    def _put_policy_boost(self, policy: Policy, text: str) -> None:
        if not self.boost:
            raise OSError(errno.EINVAL, "Invalid argument")
        policy.boost = _bit(text)

    # Files

    def _dynamic(self, path: str) -> tuple[str, str] | None:
        match = re.fullmatch(rf"{CPU}/cpufreq/([a-z]+)/([a-z_]+)", path)
        return (match[1], match[2]) if match and match[2] in self.tunables.get(match[1], ()) else None

    def _hidden(self, path: str) -> bool:
        return any(re.search(pattern, path) for pattern in self.without)

    def read_file(self, path: str) -> str:
        if path in self.texts:
            return self.texts[path]
        place = self._dynamic(path)
        if place:
            return self.tunables[place[0]][place[1]]
        if path not in self._files or self._hidden(path):
            raise _error(errno.ENOENT, path)
        return self._files[path][0]()

    def write_file(self, path: str, text: str) -> None:
        place = self._dynamic(path)
        if (place is None and path not in self._files) or self._hidden(path):
            raise _error(errno.ENOENT, path)
        if any(re.search(pattern, path) for pattern in self.read_only):
            raise _error(errno.EROFS, path)
        self._before_change(path)
        for pattern, number in self.faults.items():
            if re.search(pattern, path):
                if number == errno.ENOENT:
                    raise NotSupported("the device does not support it", where=path)
                if number:
                    raise _error(number, path)
                return
        self.writes.append((path, text))
        if place:
            self.tunables[place[0]][place[1]] = text
        else:
            put = self._files[path][1]
            if put is None:
                raise _error(errno.EACCES, path)
            try:
                put(text)
            except OSError as err:
                raise file_error(err, path) from err
        self._after_change()

    def list_dir(self, path: str) -> list[str]:
        names = list(self._folders.get(path, ()))
        base = f"{CPU}/cpufreq"
        if path == base:
            names += [name for name in self.tunables if self.tunables[name]]
        if os.path.dirname(path) == base and os.path.basename(path) in self.tunables:
            names += self.tunables[os.path.basename(path)]
        return sorted(name for name in names if not self._hidden(f"{path}/{name}"))

    def is_writable(self, path: str) -> bool:
        return not any(re.search(pattern, path) for pattern in self.read_only)

    # Services

    def call(self, argv: t.Sequence[str]) -> tuple[int, str, str]:
        # cpupower and its like are often not there for the running kernel: the kernel's own files are enough
        assert argv[0] == "systemctl", argv
        if not self.systemd:
            raise CommandError("systemctl is not installed", argv=argv, code="tool_absent")
        words = [word for word in argv[1:] if not word.startswith("-")]
        verb, units = words[0], words[1:]
        if verb == "show":
            return 0, "\n".join(self._shown(unit) for unit in units), ""
        service = self.services.get(units[0], Service())
        if verb == "is-active":
            return (0, "active\n", "") if service.active else (3, "inactive\n", "")
        self._before_change(units[0])
        if units[0] not in self.services:
            return 5, "", f"Failed to {verb} {units[0]}: Unit {units[0]} not loaded."
        self.writes.append((verb, units[0]))
        if verb == "start" and not service.active:
            service.active = True
            service.found = {number: policy.governor for number, policy in self.policies.items()}
            for policy in self.policies.values():
                self._put_governor(policy, service.governor or policy.governor)
        elif verb == "stop" and service.active:
            service.active = False
            for number, governor in service.found.items():
                self._put_governor(self.policies[number], governor)
        self._after_change()
        return 0, "", ""

    def _shown(self, unit: str) -> str:
        service = self.services.get(unit)
        if service is None:
            return f"Id={unit}\nActiveState=inactive\nUnitFileState=\n"
        return (
            f"Id={unit}\nActiveState={'active' if service.active else 'inactive'}\n"
            f"UnitFileState={'enabled' if service.enabled else 'disabled'}\n"
        )

    # What may go wrong

    def _before_change(self, what: str) -> None:
        if self.fail_in is not None:
            self.fail_in -= 1
            if self.fail_in < 0:
                self.fail_in = None
                raise _error(errno.EINVAL, what)
        if self.kill_in is not None and not self.kill_after_effect:
            self._count_to_death()

    def _after_change(self) -> None:
        if self.kill_in is not None and self.kill_after_effect:
            self._count_to_death()

    def _count_to_death(self) -> None:
        assert self.kill_in is not None
        self.kill_in -= 1
        if self.kill_in < 0:
            self.kill_in = None
            raise Killed

    def picture(self) -> dict[str, t.Any]:
        """All that can be read, and must be the same after a restore."""
        files = {path: get() for path, (get, put) in self._files.items() if put is not None}
        running = {unit: service.active for unit, service in self.services.items()}
        return copy.deepcopy({"files": files, "tunables": self.tunables, "services": running})


def _error(number: int, path: str) -> Exception:
    cause = OSError(number, os.strerror(number))
    err = file_error(cause, path)
    err.__cause__ = cause
    return err


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise OSError(errno.EINVAL, "Invalid argument") from None


def _bit(text: str) -> bool:
    if text not in ("0", "1"):
        raise OSError(errno.EINVAL, "Invalid argument")
    return text == "1"


def _switch(off: list[bool], number: int) -> tuple[_Read, _Write]:
    def put(text: str) -> None:
        off[number] = _bit(text)

    return lambda: "1" if off[number] else "0", put


def _limit(limits: list[int], place: int) -> tuple[_Read, _Write]:
    def put(text: str) -> None:
        changed = list(limits)
        changed[place] = _whole(text)
        if changed[0] > changed[1]:
            raise OSError(errno.EINVAL, "Invalid argument")
        limits[:] = changed

    return lambda: str(limits[place]), put
