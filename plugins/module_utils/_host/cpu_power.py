# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The power settings of a host's CPUs: from options to wishes, and what became of each option.

An option that this machine does not take is never counted as done. Its
status says which of three it is: ``absent``, ``refused`` or
``unsupported_value``; ``ignored`` is a write that went through and did nothing.
"""

from __future__ import annotations

import dataclasses
import re
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._host import cpufreq, cpuidle, fingerprint, owners
from ansible_collections.fastpath.bench.plugins.module_utils._host.access import (
    Access,
    KnobError,
    NotSupported,
    NotThere,
    ReadOnly,
)
from ansible_collections.fastpath.bench.plugins.module_utils._host.cpu_knob import CpuKnob, Lacking, UnsupportedValue
from ansible_collections.fastpath.bench.plugins.module_utils._host.cpumask import format_list
from ansible_collections.fastpath.bench.plugins.module_utils._host.journal import Journal
from ansible_collections.fastpath.bench.plugins.module_utils._host.knob import Knob, Value
from ansible_collections.fastpath.bench.plugins.module_utils._host.reconcile import Outcome, Wish, finding, reconcile

Params = t.Mapping[str, t.Any]

#: What can become of an option.
DONE, ALREADY, WOULD_CHANGE = "done", "already", "would_change"
ABSENT, REFUSED, UNSUPPORTED, IGNORED = "absent", "refused", "unsupported_value", "ignored"
REACHED = (DONE, ALREADY, WOULD_CHANGE)
#: The worst first: what an option with several outcomes is called.
_BY_GRAVITY = (REFUSED, IGNORED, UNSUPPORTED, ABSENT, WOULD_CHANGE, DONE, ALREADY)
#: Options that need a driver of frequency scaling.
_OF_CPUFREQ = ("governor", "energy_performance_preference", "boost", "min_frequency", "max_frequency")


@dataclasses.dataclass
class _Part:
    """One option on one policy, CPU or package."""

    option: str
    knob: Knob
    wish: t.Any
    found: Value = None
    status: str | None = None
    why: str | None = None
    remedy: str | None = None

    @property
    def name(self) -> tuple[str, str]:
        return (self.knob.kind, self.knob.key)

    def missed(self, status: str, err: BenchError) -> None:
        self.status, self.why, self.remedy = status, err.what, err.remedy


def wanted(params: Params) -> dict[str, t.Any]:
    """The options that ask for something, as they were given."""
    names = (
        *_OF_CPUFREQ,
        "max_exit_latency_us",
        "disabled_idle_states",
        "uncore_min_frequency",
        "uncore_max_frequency",
    )
    return {name: params[name] for name in names if params.get(name) is not None}


def check_options(params: Params) -> None:
    """What contradicts itself on any machine."""
    for name in ("min_frequency", "max_frequency", "uncore_min_frequency", "uncore_max_frequency"):
        text = params.get(name)
        if text is not None and not cpufreq.is_frequency(text):
            raise BenchError(
                f"{text!r} is not a frequency",
                where=f"option {name}",
                remedy="A whole number of kHz (2400000), a percentage of the highest one (80%), min or max",
                code="bad_option",
            )
    latency = params.get("max_exit_latency_us")
    if latency is not None and latency < 0:
        raise BenchError("it is negative", where="option max_exit_latency_us", code="bad_option")
    if latency is not None and params.get("disabled_idle_states") is not None:
        raise BenchError(
            "both say which idle states are off",
            where="options max_exit_latency_us and disabled_idle_states",
            remedy="Give one of them",
            code="contradiction",
        )


class CpuPower:
    """One call on one host."""

    def __init__(self, access: Access, params: Params, journal: Journal) -> None:
        self.access = access
        self.params = params
        self.journal = journal
        self.wanted = wanted(params)
        self.driver = cpufreq.find_driver(access)
        self.parts: list[_Part] = []
        #: Both limits that are asked of a policy or package.
        self._limits: dict[tuple[str, str], dict[str, str]] = {}
        #: option -> why nothing on this machine carries it
        self.nowhere: dict[str, tuple[str, str]] = {}
        self.findings: list[dict[str, t.Any]] = []

    def run(self, *, check_mode: bool) -> dict[str, t.Any]:
        check_options(self.params)
        self._collect()
        self._check_preference()
        for part in self.parts:
            if isinstance(part.wish, dict):
                self._limits.setdefault(part.name, {}).update(part.wish)
        for part in self.parts:
            self._judge(part)
        self._fail_if_strict()
        running = self._owners()
        wishes = self._wishes()
        wishes = [*self._stops(running, any_wish=bool(wishes), check_mode=check_mode), *wishes]
        outcome = Outcome()
        if wishes:
            outcome = reconcile(wishes, self.journal, check_mode=check_mode)
        self._read_back(outcome, check_mode)
        return self._result(outcome, running)

    # From options to settings

    def _collect(self) -> None:
        ask = self.wanted
        names = self.driver.policies
        if "boost" in ask:
            self._add("boost", [(knob, ask["boost"]) for knob in cpufreq.boost_knobs(self.access)])
        if "governor" in ask:
            self._add("governor", [(cpufreq.Governor(self.access, name), ask["governor"]) for name in names])
        if "energy_performance_preference" in ask:
            wish = ask["energy_performance_preference"]
            rows = [(cpufreq.EnergyPreference(self.access, name), wish) for name in names]
            self._add("energy_performance_preference", rows)
        for option, key in (("min_frequency", "min_khz"), ("max_frequency", "max_khz")):
            if option in ask:
                self._add(option, [(cpufreq.FrequencyLimits(self.access, name), {key: ask[option]}) for name in names])
        domains = cpufreq.uncore_domains(self.access)
        for option, key in (("uncore_min_frequency", "min_khz"), ("uncore_max_frequency", "max_khz")):
            if option in ask:
                self._add(option, [(cpufreq.UncoreLimits(self.access, name), {key: ask[option]}) for name in domains])
        self._add_idle()

    def _add_idle(self) -> None:
        cpus = cpuidle.cpus_with_states(self.access)
        if "max_exit_latency_us" in self.wanted:
            wish = cpuidle.IdleWish(max_exit_latency_us=self.wanted["max_exit_latency_us"])
            self._add("max_exit_latency_us", [(cpuidle.IdleStates(self.access, cpu), wish) for cpu in cpus])
        if "disabled_idle_states" in self.wanted:
            names = frozenset(name.lower() for name in self.wanted["disabled_idle_states"])
            rows = [(cpuidle.IdleStates(self.access, cpu), cpuidle.IdleWish(names=names)) for cpu in cpus]
            self._add("disabled_idle_states", rows)
            self._check_idle_names(names)

    def _check_idle_names(self, names: frozenset[str]) -> None:
        """A name must be known to some CPU; not to each, as some machines have CPUs of two kinds."""
        mine = [part for part in self.parts if part.option == "disabled_idle_states"]
        known: dict[str, str] = {}
        for part in mine:
            for state in t.cast(cpuidle.IdleStates, part.knob).states():
                known.setdefault(state.name.lower(), state.name)
                known.setdefault(state.folder, state.folder)
        unknown = sorted(names - set(known))
        if mine and unknown:
            shown = sorted(name for name in set(known.values()) if not re.fullmatch(r"state\d+", name))
            why = UnsupportedValue(
                f"no idle state is called {', '.join(unknown)}", remedy=f"Idle states here: {', '.join(shown)}"
            )
            for part in mine:
                part.missed(UNSUPPORTED, why)

    def _add(self, option: str, rows: t.Iterable[tuple[Knob, t.Any]]) -> None:
        parts = [_Part(option, knob, wish) for knob, wish in rows]
        self.parts += parts
        if not parts:
            self.nowhere[option] = self._why_nowhere(option)

    def _why_nowhere(self, option: str) -> tuple[str, str]:
        if option in _OF_CPUFREQ and not self.driver.policies:
            return "no driver scales the frequency of CPUs here", lever(self.access)
        if option == "boost":
            return f"{self.driver.title} has no switch for boost", "Set it in the BIOS"
        if option.startswith("uncore"):
            return (
                "the uncore's frequency cannot be set here",
                "It needs an Intel server CPU and the kernel module intel_uncore_frequency; else set it in the BIOS",
            )
        return "CPUs have no idle states that could be switched here", lever(self.access)

    # Before the first write

    def _check_preference(self) -> None:
        """With some drivers the preference is locked while the governor is ``performance``."""
        wish = self.wanted.get("energy_performance_preference")
        if wish is None or wish == cpufreq.PERFORMANCE:
            return
        held = []
        for name in self.driver.policies:
            if not cpufreq.locks_preference(self.access, name):
                continue
            governor = self.wanted.get("governor")
            if governor is None:
                try:
                    governor = cpufreq.Governor(self.access, name).read()
                except KnobError:
                    continue  # told where the governor is judged
            if governor == cpufreq.PERFORMANCE:
                held.append(name)
        if held:
            raise BenchError(
                f"energy performance preference {wish!r} cannot be had with governor performance: {self.driver.title} "
                f"locks it ({_keys(held)})",
                where="option energy_performance_preference",
                remedy="Ask for governor powersave, or for the preference performance",
                code="contradiction",
            )

    def _judge(self, part: _Part) -> None:
        if part.status is not None:
            return
        knob = part.knob
        try:
            part.found = knob.read()
            knob.check(part.found, part.wish)
            if isinstance(knob, (cpufreq.FrequencyLimits, cpufreq.UncoreLimits)):
                self._check_limits(part, knob)
            if isinstance(knob, CpuKnob) and not knob.satisfied(part.found, part.wish):
                knob.check_permitted()
        except KnobError as err:
            part.missed(_status_of(err), err)
            if isinstance(err, NotThere):
                part.why = f"{knob.kind} is not there with {self.driver.title}"

    def _check_limits(self, part: _Part, knob: cpufreq.FrequencyLimits | cpufreq.UncoreLimits) -> None:
        """Both limits of one call count together, or raising both would fail on the old upper one."""
        knob.check_reachable(part.found, self._limits[part.name])

    def _fail_if_strict(self) -> None:
        if not self.params["strict"]:
            return
        told, remedies = [], []
        code = None
        for option, record in self._settings().items():
            if record["status"] not in (None, *REACHED):
                code = code or record["status"]
                told.append(f"{option} {self.wanted[option]!r}: {record['reason']}")
                remedies.append(record["remedy"])
        if told:
            remedy = ". ".join([*dict.fromkeys(filter(None, remedies)), "Nothing was changed"])
            raise BenchError("; ".join(told), where=self.driver.title, remedy=remedy, code=f"power_{code}")

    def _wishes(self) -> list[Wish]:
        """One wish for each setting: both limits of a policy are one."""
        wishes: dict[tuple[str, str], Wish] = {}
        for part in self.parts:
            if part.status is not None:
                continue
            before = wishes.get(part.name)
            wish = {**before.wish, **part.wish} if before is not None else part.wish
            wishes[part.name] = Wish(part.knob, wish, optional=not self.params["strict"])
        return list(wishes.values())

    # Others who set the same

    def _owners(self) -> list[owners.Owner]:
        found, why = owners.find(self.access)
        if why is not None:
            self.findings.append(
                finding(
                    "power_owners_unknown",
                    "warning",
                    f"whether another service sets the power is not known: {why}",
                    "Look with systemctl",
                )
            )
        return found

    def _stops(self, running: t.Sequence[owners.Owner], *, any_wish: bool, check_mode: bool) -> list[Wish]:
        """They are stopped for a change that is asked for and can be had, not for a look."""
        if not self.wanted:
            return []
        stop = self.params["stop_owners"] and any_wish
        for owner in running:
            fate = "will_stop" if check_mode else "stopped"
            self._report_owner(owner, fate if stop and owner.active and owner.sets_power else "")
        units = [owner.unit for owner in running if owner.active and owner.sets_power]
        return [Wish(owners.ServiceRunning(self.access, unit), False) for unit in units] if stop else []

    def _report_owner(self, owner: owners.Owner, fate: str) -> None:
        if not owner.sets_power:
            if owner.active:
                self.findings.append(
                    finding(
                        "irq_owner_active",
                        "info",
                        f"{owner.unit} is running and moves interrupts",
                        "Stop it for measurements that pin interrupts",
                    )
                )
            return
        if not owner.active:
            text, remedy = "starts with the machine and sets the power then", "Disable it if these settings are to last"
        elif fate == "stopped":
            text, remedy = "was running and set the power: stopped", "Restoring the host starts it again"
        elif fate:
            text, remedy = "is running and sets the power: it would be stopped", "Restoring the host starts it again"
        elif self.params["stop_owners"]:
            text, remedy = "is running, and was left as nothing that is asked for can be had", "Nothing to do"
        else:
            text, remedy = "is running and may set the power again at any time", "Stop it, or set stop_owners"
        severity = "info" if fate or not owner.active else "warning"
        self.findings.append(finding("power_owner_active", severity, f"{owner.unit} {text}", remedy))

    # After

    def _read_back(self, outcome: Outcome, check_mode: bool) -> None:
        # Its id is the code of the error, the kind and the key.
        told = {
            tuple(row["id"].split(":", 2)[1:]): row for row in outcome.findings if row["code"] == "setting_unsupported"
        }
        self.findings += [row for row in outcome.findings if row["code"] != "setting_unsupported"]
        changed = {change.name for change in outcome.changes}
        for part in self.parts:
            if part.status is not None:
                continue
            failed = told.get(part.name)
            if part.name in changed and check_mode:
                same = part.knob.satisfied(part.found, part.wish)
                part.status = ALREADY if same else WOULD_CHANGE
                continue
            now = part.knob.read()
            if part.knob.satisfied(now, part.wish):
                part.status = ALREADY if part.knob.satisfied(part.found, part.wish) else DONE
            elif failed is not None:
                part.why = failed["evidence"].partition(": ")[2]
                part.remedy = failed["remedy"]
                part.status = _status_of_code(failed["id"].partition(":")[0])
                if part.status == IGNORED and not part.knob.same(now, part.found):
                    part.status, part.why = UNSUPPORTED, f"the driver took another value: {_shown(now)}"
            else:
                part.status, part.why = IGNORED, f"it is {_shown(now)}"

    def _settings(self) -> dict[str, dict[str, t.Any]]:
        records: dict[str, dict[str, t.Any]] = {}
        for option, asked in self.wanted.items():
            mine = [part for part in self.parts if part.option == option]
            record: dict[str, t.Any] = {"wanted": asked, "status": None, "reason": None, "remedy": None, "where": None}
            if not mine:
                why, remedy = self.nowhere[option]
                record.update(status=ABSENT, reason=why, remedy=remedy, where="all")
            elif all(part.status is not None for part in mine) or any(
                part.status not in (None, *REACHED) for part in mine
            ):
                record["status"] = status = next(
                    word for word in _BY_GRAVITY if any(part.status == word for part in mine)
                )
                if status not in REACHED:
                    missed = [part for part in mine if part.status not in (None, *REACHED)]
                    record["reason"] = "; ".join(dict.fromkeys(str(part.why) for part in missed))
                    record["remedy"] = next((part.remedy for part in missed if part.remedy), None)
                    record["where"] = "all" if len(missed) == len(mine) else _keys([p.knob.key for p in missed])
            records[option] = record
        return records

    def _result(self, outcome: Outcome, running: t.Sequence[owners.Owner]) -> dict[str, t.Any]:
        settings = self._settings()
        missed = {option: row for option, row in settings.items() if row["status"] not in REACHED}
        for option, row in missed.items():
            place = "" if row["where"] == "all" else f" ({row['where']})"
            self.findings.append(
                finding(
                    f"power_{row['status']}",
                    "warning",
                    f"{option} {row['wanted']!r}{place}: {row['reason']}",
                    row["remedy"] or f"The driver is {self.driver.title}; the measurement goes on without it",
                )
            )
        reason = "; ".join(f"{option}: {row['status']}, {row['reason']}" for option, row in missed.items()) or None
        now = picture(self.access)
        outcome.findings = self.findings
        return {
            **outcome.as_result(),
            "driver": {"name": self.driver.name, "mode": self.driver.mode, "policies": len(self.driver.policies)},
            "settings": settings,
            "unsupported": bool(self.wanted) and len(missed) == len(settings),
            "reason": reason,
            "owners": [dataclasses.asdict(owner) for owner in running],
            "now": now,
            "power": {
                "profile": self.params.get("profile"),
                "wanted": self.wanted,
                "found": now,
                "effective": False if missed else None,
                "reason": reason or ("not yet seen under load" if self.wanted else "nothing was asked for"),
            },
        }


def picture(access: Access) -> dict[str, t.Any]:
    """What all CPUs hold now, short: value to the policies, CPUs or packages that have it; null where there is none."""
    names = cpufreq.policies(access)
    limits = [cpufreq.FrequencyLimits(access, name) for name in names]
    uncore = [cpufreq.UncoreLimits(access, name) for name in cpufreq.uncore_domains(access)]
    idle = [cpuidle.IdleStates(access, name) for name in cpuidle.cpus_with_states(access)]
    return {
        "governor": _gathered([cpufreq.Governor(access, name) for name in names]),
        "energy_performance_preference": _gathered([cpufreq.EnergyPreference(access, name) for name in names]),
        "boost": _gathered(cpufreq.boost_knobs(access)),
        "min_khz": _gathered(limits, lambda value, _knob: value["min_khz"]),
        "max_khz": _gathered(limits, lambda value, _knob: value["max_khz"]),
        "idle_states_off": _gathered(idle, _idle_off),
        "uncore_min_khz": _gathered(uncore, lambda value, _knob: value["min_khz"]),
        "uncore_max_khz": _gathered(uncore, lambda value, _knob: value["max_khz"]),
    }


def _idle_off(value: Value, knob: Knob) -> str:
    states = t.cast(cpuidle.IdleStates, knob).states()
    return ", ".join(state.name for state in states if value.get(state.folder)) or "none"


def _gathered(
    knobs: t.Sequence[Knob], pick: t.Callable[[Value, Knob], t.Any] = lambda value, _knob: value
) -> dict[str, str] | None:
    by_value: dict[str, list[str]] = {}
    for knob in knobs:
        try:
            by_value.setdefault(_shown(pick(knob.read(), knob)), []).append(knob.key)
        except KnobError:
            continue
    return {value: _keys(keys) for value, keys in by_value.items()} or None


def _shown(value: Value) -> str:
    return {True: "on", False: "off"}.get(value, str(value)) if isinstance(value, bool) else str(value)


def _keys(keys: t.Sequence[str]) -> str:
    """``policy0-255`` for many, names that have no number as they are."""
    by_word: dict[str, list[int]] = {}
    rest = []
    for key in keys:
        match = re.fullmatch(r"([a-z]+)(\d+)", key)
        if match:
            by_word.setdefault(match[1], []).append(int(match[2]))
        else:
            rest.append(key)
    return ", ".join([*(word + format_list(numbers) for word, numbers in by_word.items()), *rest])


def _status_of(err: KnobError) -> str:
    if isinstance(err, (NotThere, Lacking)):
        return ABSENT
    if isinstance(err, UnsupportedValue):
        return UNSUPPORTED
    if isinstance(err, NotSupported):
        return IGNORED
    return REFUSED


def _status_of_code(code: str) -> str:
    words = {
        NotThere.default_code: ABSENT,
        Lacking.default_code: ABSENT,
        UnsupportedValue.default_code: UNSUPPORTED,
        NotSupported.default_code: IGNORED,
        ReadOnly.default_code: REFUSED,
    }
    return words.get(code, REFUSED)


def lever(access: Access) -> str:
    """Who can set the power when the system cannot."""
    host = hypervisor(access)
    if host is not None:
        name = "" if host == "unknown" else f" ({host})"
        return (
            f"This is a virtual machine{name}: the lever is the hypervisor's power policy, and below it the firmware "
            "of the machine that it runs on"
        )
    return (
        "The lever is the BIOS or the management controller, where the power must be left to the system (OS control), "
        "or the kernel's command line has the driver switched off"
    )


def hypervisor(access: Access) -> str | None:
    """What this machine is a guest of; None on bare metal."""

    def text(path: str) -> str:
        try:
            return access.read_file(path)
        except KnobError:
            return ""

    dmi = f"{access.sys}/class/dmi/id"
    name = text(f"{access.sys}/hypervisor/type") or fingerprint.hypervisor_by_firmware(
        text(f"{dmi}/sys_vendor"), text(f"{dmi}/product_name")
    )
    if name is None and fingerprint.parse_cpuinfo(text(f"{access.proc}/cpuinfo"))["virtual"]:
        return "unknown"
    return name
