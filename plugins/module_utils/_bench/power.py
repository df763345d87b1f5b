# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Power profiles: what a name stands for, what a server's firmware must be told, and whether it took effect.

Pure: the role ``power_profile`` reads and writes, this decides.
"""

from __future__ import annotations

import dataclasses
import difflib
import re
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._bench import power_proof
from ansible_collections.fastpath.bench.plugins.module_utils._bench.shape import as_mapping, known, only_keys
from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError

#: The profile that changes nothing.
AS_FOUND = "as_found"
BACKENDS = ("os", "bmc", "hypervisor")
PROFILE_KEYS = ("description", *BACKENDS)
#: What a trial tells of each host.
HOST_KEYS = ("profile", "wanted", "found", "effective", "reason", "emulated", "under_load")
#: How a BMC's ``Manufacturer`` begins, in lower case, and the key that its attributes have in a profile.
VENDORS = {"hpe": "hpe", "hewlett": "hpe", "dell": "dell"}
#: How the ``Manufacturer`` of one begins that keeps what it is told and is no server: sushy-tools, DMTF's mock-ups.
EMULATORS = ("sushy", "contoso")
ANY_VENDOR = "any"

#: Options of cpu_power that a profile may ask for, and where its RV(now) tells whether this machine has such a thing.
OS_OPTIONS = {
    "governor": "governor",
    "energy_performance_preference": "energy_performance_preference",
    "boost": "boost",
    "min_frequency": "min_khz",
    "max_frequency": "max_khz",
    "max_exit_latency_us": "idle_states_off",
    "disabled_idle_states": "idle_states_off",
    "uncore_min_frequency": "uncore_min_khz",
    "uncore_max_frequency": "uncore_max_khz",
}
#: Beside them: what only some drivers are asked for, and what is asked for only where the machine has it.
OS_GROUPS = ("active", "other", "where_present")
HYPERVISOR_KEYS = ("policy",)
POLICIES = ("high-performance", "balanced", "low-power", "custom")

#: What an answer of the Redfish modules means, by what it contains; the first that fits.
_ANSWERS: tuple[tuple[str, str, str, str], ...] = (
    (
        r"HTTP Error 401|Unauthorized", "bmc_credentials",
        "refuses these credentials", "Look at power_profile_bmc_username and power_profile_bmc_password",
    ),
    (
        r"HTTP Error 403|Forbidden", "bmc_privilege",
        "does not let this user do that", "Use an account with the privilege to configure components",
    ),
    (
        r"CERTIFICATE_VERIFY_FAILED|certificate verify failed", "bmc_certificate",
        "has a certificate that cannot be verified",
        "Give its authority in power_profile_bmc_ca_path, or set power_profile_bmc_validate_certs to false",
    ),
    (
        r"timed out|expected time frame|Timed out|timeout", "bmc_timeout",
        "did not answer in time", "It may be busy or restarting: try again, or raise power_profile_bmc_timeout_s",
    ),
    (
        r"Name or service not known|getaddrinfo|nodename nor servname|name resolution", "bmc_unknown_host",
        "is not known by this name", "Correct power_profile_bmc_baseuri",
    ),
    (
        r"Connection refused|Connection reset|Remote end closed|No route to host|unreachable|UNEXPECTED_EOF|"
        r"closed connection|Broken pipe|IncompleteRead", "bmc_gone",
        "is gone", "See whether it is powered and reachable, and whether power_profile_bmc_baseuri is right",
    ),
    (
        r"Key Bios not found|Bios resource not found|Settings resource for BIOS attributes not found", "bmc_no_bios",
        "tells of no BIOS attributes that could be set",
        "Its Redfish service may be too old, or the host has to be on once; update it, or use another backend",
    ),
    (
        r"System resource .* not found|HTTP Error 404", "bmc_no_system",
        "has no such system", "Correct power_profile_bmc_resource_id, the Id below /redfish/v1/Systems",
    ),
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Verdict:
    """Whether a profile took effect, as it goes into each trial."""

    profile: str
    wanted: dict[str, t.Any]
    found: dict[str, t.Any]
    #: None when it cannot be told
    effective: bool | None
    reason: str | None
    #: Why nothing could be set at all, so that the point cannot be measured.
    no_lever: str | None = None
    #: What stands for the server's firmware and is none, where something was asked of it.
    emulated: str | None = None

    def as_dict(self) -> dict[str, t.Any]:
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}


def names_of(raw: t.Any) -> list[str]:
    """A profile's name, or several that are laid over each other."""
    names = [str(name) for name in (raw if isinstance(raw, (list, tuple)) else [raw])]
    if not names or not all(names):
        raise BenchError("no profile is named", where="power_profile_name", remedy=f"{AS_FOUND} changes nothing")
    if AS_FOUND in names and len(names) > 1:
        raise BenchError(
            f"{AS_FOUND} changes nothing, so nothing can be laid over it", where="power_profile_name",
            remedy=f"Leave out {AS_FOUND}",
        )  # fmt: skip
    return names


def resolve(raw: t.Any, shipped: t.Mapping[str, t.Any], own: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """What the named profiles ask for: the later one wins, a user's is laid over the shipped one of the same name.

    A value of None takes out what is beneath it.
    """
    everything = [*shipped, *(name for name in own if name not in shipped)]
    names = names_of(raw)
    merged: dict[str, t.Any] = {}
    for name in names:
        known(name, everything, "power_profile_name", "power profile")
        for where, source in (("shipped", shipped), ("power_profile_profiles", own)):
            entry = as_mapping(source.get(name) or {}, f"{where}.{name}")
            only_keys(entry, PROFILE_KEYS, f"{where}.{name}")
            _lay(merged, entry)
    if names == [AS_FOUND] and any(merged.get(backend) for backend in BACKENDS):
        raise BenchError(f"{AS_FOUND} is the profile that changes nothing", where=f"power_profile_profiles.{AS_FOUND}")
    asked = {backend: _without_none(as_mapping(merged.get(backend) or {}, backend)) for backend in BACKENDS}
    where = "power profile " + "+".join(names)
    only_keys(asked["os"], (*OS_OPTIONS, *OS_GROUPS), f"{where}: os")
    for group in OS_GROUPS:
        only_keys(as_mapping(asked["os"].get(group, {}), f"{where}: os.{group}"), OS_OPTIONS, f"{where}: os.{group}")
    only_keys(asked["hypervisor"], HYPERVISOR_KEYS, f"{where}: hypervisor")
    if "policy" in asked["hypervisor"]:
        known(asked["hypervisor"]["policy"], POLICIES, f"{where}: hypervisor.policy", "power policy of ESXi")
    return {"name": "+".join(names), **asked}


def os_options(profile: t.Mapping[str, t.Any], seen: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """The options of cpu_power for this machine.

    The same wish has other names with another driver: one in active mode calls its governor that follows the load
    powersave, which with any other means the lowest frequency.

    :param seen: what cpu_power returns when it only looks.
    """
    asked = as_mapping(profile.get("os") or {}, "os")
    options = {name: value for name, value in asked.items() if name not in OS_GROUPS}
    mode = (seen.get("driver") or {}).get("mode")
    options.update(asked.get("active" if mode == "active" else "other") or {})
    now = seen.get("now") or {}
    present = asked.get("where_present") or {}
    options.update({name: value for name, value in present.items() if now.get(OS_OPTIONS[name]) is not None})
    return options


def os_state(result: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """What a backend tells of the answer of cpu_power."""
    power = result.get("power") or {}
    state = {key: power.get(key) for key in ("wanted", "found", "effective", "reason")}
    if result.get("unsupported"):
        said = dict.fromkeys(
            f"{setting['reason']}. {setting['remedy']}" if setting.get("remedy") else str(setting["reason"])
            for setting in (result.get("settings") or {}).values()
            if setting.get("reason")
        )
        state["no_lever"] = "; ".join(said) or str(result.get("reason"))
    return state


def _lay(target: dict[str, t.Any], over: t.Mapping[str, t.Any]) -> None:
    for key, value in over.items():
        if isinstance(value, t.Mapping) and isinstance(target.get(key), dict):
            _lay(target[key], value)
        else:
            target[key] = _copy(value)


def _copy(value: t.Any) -> t.Any:
    return {k: _copy(v) for k, v in value.items()} if isinstance(value, t.Mapping) else value


def _without_none(entry: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    return {
        key: _without_none(value) if isinstance(value, t.Mapping) else value
        for key, value in entry.items()
        if value is not None
    }


# --------------------------------------------------------------------------- firmware


def emulator_of(manufacturer: str) -> str | None:
    """The manufacturer, when it is that of an emulator."""
    return manufacturer if manufacturer.strip().lower().startswith(EMULATORS) else None


def vendor_of(manufacturer: str) -> str | None:
    text = manufacturer.strip().lower()
    return next((vendor for start, vendor in VENDORS.items() if text.startswith(start)), None)


def attributes_of(profile: t.Mapping[str, t.Any], vendor: str, manufacturer: str) -> dict[str, t.Any]:
    """The BIOS attributes that a profile asks of this server.

    :param vendor: the key to take, when the user says it; else it follows from the manufacturer.
    """
    asked = as_mapping(profile.get("bmc") or {}, f"power profile {profile.get('name')}.bmc")
    for key, value in asked.items():
        as_mapping(value, f"power profile {profile.get('name')}.bmc.{key}")
    chosen = vendor or vendor_of(manufacturer)
    attributes = {**asked.get(ANY_VENDOR, {}), **(asked.get(chosen, {}) if chosen else {})}
    if not attributes:
        raise BenchError(
            f"profile {profile.get('name')!r} names no BIOS attributes for a server of {manufacturer or 'unknown make'}"
            + (f" (vendor {chosen})" if chosen else ""),
            where="power_profile_profiles", code="bmc_no_attributes",
            remedy=f"Name them in power_profile_profiles.<profile>.bmc.{chosen or ANY_VENDOR}, as its firmware calls "
            "them, or set power_profile_bmc_vendor; known are: " + (", ".join(asked) or "none"),
        )  # fmt: skip
    return attributes


def bios_plan(
    wanted: t.Mapping[str, t.Any], current: t.Mapping[str, t.Any], pending: t.Mapping[str, t.Any]
) -> dict[str, t.Any]:
    """What has to be written so that ``wanted`` holds after the next reset.

    ``change`` differs from what is in force; ``withdraw`` is in force already, but something else waits for a reset.

    :raises BenchError: an attribute is not there; with those of a similar name.
    """
    unknown = [name for name in wanted if name not in current]
    if unknown:
        raise BenchError(
            "the server's firmware has no attribute " + ", ".join(unknown),
            where="power_profile_profiles", code="bmc_unknown_attribute",
            remedy=". ".join(_similar(name, current) for name in unknown),
        )  # fmt: skip
    fitted = {name: _fit(value, current[name]) for name, value in wanted.items()}
    later = {name: pending.get(name, current[name]) for name in wanted}
    return {
        "wanted": fitted,
        "found": {name: current[name] for name in wanted},
        "pending": {name: later[name] for name in wanted if later[name] != current[name]},
        "change": {n: v for n, v in fitted.items() if later[n] != v and current[n] != v},
        "withdraw": {n: v for n, v in fitted.items() if later[n] != v and current[n] == v},
        # a reset changes it, also where somebody else had asked for the same before
        "differs": [n for n, v in fitted.items() if current[n] != v],
    }


def _similar(name: str, known_names: t.Iterable[str]) -> str:
    by_folded = {known_name.lower(): known_name for known_name in known_names}
    close = difflib.get_close_matches(name.lower(), list(by_folded), n=4, cutoff=0.5)
    # parts of names: PowerProfile is near to SysProfile, which a comparison of all letters does not see
    words = [word.lower() for word in re.findall(r"[A-Z][a-z]{3,}", name)]
    close += [folded for folded in sorted(by_folded) if folded not in close and any(word in folded for word in words)]
    listed = ", ".join(by_folded[folded] for folded in close[:6])
    return f"Similar to {name} are: {listed}" if listed else f"Nothing is similar to {name}"


def _fit(value: t.Any, like: t.Any) -> t.Any:
    """The wanted value in the type that the firmware has: YAML and the command line make text of numbers."""
    if isinstance(like, bool) or isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return value
    if isinstance(like, int) and isinstance(value, str) and re.fullmatch(r"-?\d+", value.strip()):
        return int(value)
    return str(value) if isinstance(like, str) else value


def bios_state(
    plan: t.Mapping[str, t.Any], current: t.Mapping[str, t.Any], pending: t.Mapping[str, t.Any]
) -> dict[str, t.Any]:
    """After writing: what holds, what waits for a reset, and what the firmware did not take."""
    wanted = plan["wanted"]
    found = {name: current.get(name) for name in wanted}
    wrong = [name for name, value in wanted.items() if found[name] != value]
    waiting = [name for name in wrong if pending.get(name) == wanted[name]]
    refused = [name for name in wrong if name not in waiting]
    # in force, and with the next reset no more
    leaving = [n for n, v in wanted.items() if n not in wrong and pending.get(n, v) != v]
    parts = []
    if waiting:
        parts.append(
            "pending until the server is reset: "
            + ", ".join(f"{name} is {found[name]} and will be {wanted[name]}" for name in waiting)
        )
    if refused:
        parts.append(
            "the firmware did not take "
            + ", ".join(f"{name}={wanted[name]}, it stays {found[name]}" for name in refused)
            + " (it may be read-only, or depend on another attribute)"
        )
    if leaving:
        parts.append(
            "still pending: " + ", ".join(f"{name} is {found[name]} and will be {pending[name]}" for name in leaving)
        )
    return {
        "wanted": dict(wanted),
        "found": found,
        "pending": {name: pending[name] for name in waiting + leaving},
        "refused": refused,
        "needs_reset": bool(waiting),
        "effective": not wrong,
        "reason": "; ".join(parts) or None,
    }


def with_record(record: t.Mapping[str, t.Any], wanted: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """``wanted``, and for what a profile before had set and this one does not name, what was found first."""
    return {**{n: a["found"] for n, a in (record.get("attributes") or {}).items()}, **wanted}


def bios_record(
    record: t.Mapping[str, t.Any], plan: t.Mapping[str, t.Any], baseuri: str, resource_id: str
) -> dict[str, t.Any]:
    """What is kept before the first change: for each attribute the value that was in force, and what is set."""
    attributes = {name: dict(entry) for name, entry in (record.get("attributes") or {}).items()}
    for name, value in plan["wanted"].items():
        # the first one wins: a later one is of our own making
        if name in attributes or name in plan["differs"] or name in plan["withdraw"]:
            attributes.setdefault(name, {"found": plan["found"][name]})["set"] = value
    return {"schema": 1, "baseuri": baseuri, "resource_id": resource_id, "attributes": attributes}


def bios_restore(
    record: t.Mapping[str, t.Any], current: t.Mapping[str, t.Any], pending: t.Mapping[str, t.Any], force: bool
) -> dict[str, t.Any]:
    """What has to be wanted so that all is as found; what someone else set meanwhile is left, and told."""
    wanted, conflicts = {}, []
    for name, entry in (record.get("attributes") or {}).items():
        later = pending.get(name, current.get(name))
        ours = [entry["found"], entry.get("set", entry["found"])]
        if later in ours or force:
            wanted[name] = entry["found"]
        else:
            conflicts.append(f"{name} is {later}, not {ours[1]} as it was set (found first: {ours[0]})")
    return {"wanted": wanted, "conflicts": conflicts}


def explain(message: str, baseuri: str) -> dict[str, t.Any]:
    """What an error of the Redfish modules means and what to do, as the result of a failed task."""
    for pattern, code, what, remedy in _ANSWERS:
        if re.search(pattern, message):
            return BenchError(f"the BMC {what} ({message})", where=baseuri, remedy=remedy, code=code).as_result()
    return BenchError(f"the BMC says: {message}", where=baseuri, code="bmc_error").as_result()


# --------------------------------------------------------------------------- verdict


def verdict(profile: str, backends: t.Mapping[str, t.Mapping[str, t.Any]], host: str) -> Verdict:
    """One verdict of what the backends read back.

    A backend without a lever says so in ``no_lever``. That of another one is enough: firmware that holds the
    frequency itself, as asked, often takes cpufreq away.
    """
    lacking = {name: str(result["no_lever"]) for name, result in backends.items() if result.get("no_lever")}
    used = {name: result for name, result in backends.items() if name not in lacking}
    wanted = {name: result.get("wanted") or {} for name, result in backends.items()}
    found = {name: result.get("found") or {} for name, result in backends.items()}
    if lacking and not used:
        why = "; ".join(lacking.values())
        return Verdict(profile, wanted, found, None, why, f"{host}: no lever for power profile {profile}: {why}")
    emulated = next((str(r["emulated"]) for r in used.values() if r.get("emulated") and r.get("wanted")), None)
    states = [result.get("effective") for result in used.values()]
    effective = False if False in states else None if None in states or emulated else True
    reasons = [f"{name}: {result['reason']}" for name, result in used.items() if result.get("reason")]
    if emulated and effective is None:
        reasons.append(f"an emulated BMC ({emulated}), which sets no CPU: what reads back is no proof")
    reasons += [f"{name}: {why}" for name, why in lacking.items()]
    return Verdict(profile, wanted, found, effective, "; ".join(reasons) or None, emulated=emulated)


def trial_power(
    profile: str | None,
    read: t.Mapping[str, t.Mapping[str, t.Any]],
    samples: t.Mapping[str, t.Mapping[str, t.Any] | None],
) -> dict[str, t.Any] | None:
    """What goes into a trial: the profile, whether it took effect on all hosts, and what each of them read back.

    :param samples: by host, what ``dut_sample`` tells of the CPUs' power during the trial.
    """
    if profile is None:
        return None
    hosts = {host: power_proof.proven(result, samples.get(host) or {}) for host, result in read.items()}
    states = [result.get("effective") for result in hosts.values()]
    effective = False if False in states else None if None in states or not states else True
    reasons = [
        f"{host}: {result['reason']}"
        for host, result in hosts.items()
        if result.get("reason") and result.get("effective") is effective
    ]
    return {
        "profile": profile,
        "effective": effective,
        "reason": "; ".join(reasons) or (None if states else "no host told of it"),
        "hosts": {host: {key: result.get(key) for key in HOST_KEYS} for host, result in hosts.items()},
    }
