# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options of the module vpp_nat44 as wishes, objects as options again, and as lines of VPP's command line."""

from __future__ import annotations

import ipaddress
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.nat44 import (
    BALANCED,
    DEFAULT_TIMEOUTS,
    IDENTITY,
    INTERFACE,
    INTERFACE_POOL,
    PLUGIN,
    POOL,
    PROTOCOLS,
    STATIC,
    AddLimits,
    Backend,
    Balanced,
    Identity,
    InterfacePool,
    Limit,
    Mode,
    Pool,
    Static,
    Timeouts,
)
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.reconcile import Found, Key, Values, Wish
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.session import NO_INDEX

#: A pool as large as this is a slip of the pen: VPP keeps 64512 ports for each address and protocol.
MAX_POOL = 4096
_MAX_SESSIONS = 2**31 - 1
LISTS = ("interfaces", "pools", "static_mappings", "identity_mappings", "load_balanced_mappings")
SETTINGS = ("timeouts", "forwarding", "mss_clamp_bytes", "session_limits")


def bad(what: str, where: str, remedy: str | None = None) -> BenchError:
    return BenchError(what, where=where, remedy=remedy, code="bad_option")


def _address(text: t.Any, where: str) -> str:
    try:
        return str(ipaddress.IPv4Address(text))
    except ValueError as err:
        raise bad(f"this is not an IPv4 address: {err}", where) from err


def _between(value: int, low: int, high: int, where: str) -> int:
    if not low <= value <= high:
        raise bad(f"it is {value}, it can be {low} to {high}", where)
    return value


def _vrf(value: int | None, default: int, where: str) -> int:
    return default if value is None else _between(value, 0, NO_INDEX - 1, where)


def _ports(item: Values, names: t.Sequence[str], where: str) -> tuple[str, tuple[int, ...]]:
    """Protocol and ports: all of them, or none for the whole address."""
    protocol = item.get("protocol") or ""
    ports = [item.get(name) for name in names]
    if not protocol:
        if any(port is not None for port in ports):
            raise bad("a port needs its protocol", where)
        return "", (0,) * len(ports)
    missing = [name for name, port in zip(names, ports) if port is None]
    if missing:
        raise bad(f"{protocol} needs {' and '.join(missing)}", where, "Without protocol, the whole address is meant")
    return protocol, tuple(_between(int(t.cast("int", port)), 1, 65535, where) for port in ports)


def _place(item: Values, address: str, interface: str, where: str) -> str:
    given = [name for name in (address, interface) if item.get(name)]
    if len(given) != 1:
        raise bad(f"it needs either {address} or {interface}", where)
    return _address(item[address], where) if item.get(address) else str(item[interface])


def _twice(item: Values) -> str:
    return str(item.get("twice_nat") or "no")


def wishes_of(options: Values, mode: Mode, inside_vrf: int, *, keys_only: bool = False) -> list[Wish]:
    """Everything that is asked for, the plugin first.

    :param inside_vrf: the VRF of what names none.
    :param keys_only: only what identifies an object is needed.
    """
    _only_what_it_has(options, mode)
    wishes = [Wish(PLUGIN, _plugin(options, mode))]
    for number, item in enumerate(options.get("interfaces") or (), 1):
        where = f"interfaces, {item.get('name') or f'entry {number}'}"
        wishes.append(Wish((INTERFACE, item["name"]), {"role": item.get("role")}))
        if not item.get("role") and not keys_only:
            raise bad("it needs its role", where)
    for number, item in enumerate(options.get("pools") or (), 1):
        wishes += _pool(item, f"pools, entry {number}")
    for number, item in enumerate(options.get("static_mappings") or (), 1):
        wishes.append(_static(item, inside_vrf, f"static_mappings, entry {number}"))
    for number, item in enumerate(options.get("identity_mappings") or (), 1):
        wishes.append(_identity(item, inside_vrf, f"identity_mappings, entry {number}"))
    for number, item in enumerate(options.get("load_balanced_mappings") or (), 1):
        wishes.append(_balanced(item, inside_vrf, f"load_balanced_mappings, entry {number}"))
    seen: set[Key] = set()
    for wish in wishes:
        if wish.key in seen:
            raise bad("it stands twice", " ".join(str(part) for part in wish.key))
        seen.add(wish.key)
    return wishes


def _only_what_it_has(options: Values, mode: Mode) -> None:
    other = "endpoint_independent" if mode.rich else "endpoint_dependent"
    given = [name for name in ("users", "user_sessions") if options.get(name) is not None]
    given += [name for name in ("static_mapping_only", "connection_tracking", "out2in_dpo") if options.get(name)]
    wrong = given if mode.rich else []
    if not mode.rich:
        wrong += [name for name in ("session_limits", "load_balanced_mappings") if options.get(name)]
        entries = [*(options.get("pools") or ()), *(options.get("static_mappings") or ())]
        wrong += ["twice_nat"] if any(_twice(one) not in ("no", "False") for one in entries) else []
        wrong += ["out2in_only"] if any(one.get("out2in_only") for one in entries) else []
    if wrong:
        raise bad(f"NAT44 {mode.name} has no {', '.join(wrong)}", "mode", f"Those belong to {other}")


def _plugin(options: Values, mode: Mode) -> Values:
    values: Values = {name: options[name] for name in mode.fixed if options.get(name) is not None}
    for name in ("sessions", "users", "user_sessions"):
        if name in values:
            _between(values[name], 1, _MAX_SESSIONS, name)
    for name in ("inside_vrf", "outside_vrf"):
        if name in values:
            _vrf(values[name], 0, name)
    given = options.get("timeouts") or {}
    timeouts = {name: _between(value, 1, 2**31 - 1, name) for name, value in given.items() if value is not None}
    if timeouts:
        values["timeouts"] = Timeouts(**timeouts)
    if options.get("forwarding") is not None:
        values["forwarding"] = options["forwarding"]
    if options.get("mss_clamp_bytes") is not None:
        values["mss_clamp_bytes"] = _between(options["mss_clamp_bytes"], 0, 65535, "mss_clamp_bytes")
    limits = [
        Limit(_vrf(item.get("vrf"), 0, "session_limits"), _between(item["sessions"], 1, _MAX_SESSIONS, "sessions"))
        for item in options.get("session_limits") or ()
    ]
    if len({limit.vrf for limit in limits}) < len(limits):
        raise bad("a VRF stands twice", "session_limits")
    if limits:
        values["session_limits"] = AddLimits(frozenset(limits))
    return values


def filled(wish: Wish, mode: Mode) -> Wish:
    """The plugin as ``replaced`` wants it: what is not asked for is VPP's default."""
    values: Values = {name: value for name, value in mode.fixed.items() if value is not None}
    empty: frozenset[Limit] = frozenset()
    values.update({"timeouts": DEFAULT_TIMEOUTS, "forwarding": False, "mss_clamp_bytes": 0})
    values.update({"session_limits": empty} if mode.rich else {})
    values.update(wish.values)
    if "user_sessions" in mode.fixed:
        values.setdefault("user_sessions", values["sessions"])
    if "session_limits" in wish.values:
        values["session_limits"] = wish.values["session_limits"].limits
    return Wish(wish.key, values)


def _pool(item: Values, where: str) -> list[Wish]:
    twice = bool(item.get("twice_nat"))
    if item.get("interface"):
        if item.get("first") or item.get("last") or item.get("vrf") is not None:
            raise bad("interface excludes first, last and vrf", where)
        return [Wish((INTERFACE_POOL, item["interface"], twice), {"entry": InterfacePool()})]
    if not item.get("first"):
        raise bad("it needs first or interface", where)
    first = ipaddress.IPv4Address(_address(item["first"], where))
    last = ipaddress.IPv4Address(_address(item.get("last") or item["first"], where))
    if last < first:
        raise bad(f"the last address {last} is before the first {first}", where)
    if int(last) - int(first) >= MAX_POOL:
        raise bad(f"it has {int(last) - int(first) + 1} addresses, it can have {MAX_POOL}", where)
    vrf = None if item.get("vrf") is None else _vrf(item["vrf"], 0, where)
    return [
        Wish((POOL, str(ipaddress.IPv4Address(number)), twice), {"entry": Pool(vrf)})
        for number in range(int(first), int(last) + 1)
    ]


def _static(item: Values, inside_vrf: int, where: str) -> Wish:
    place = _place(item, "external", "external_interface", where)
    protocol, (local_port, external_port) = _ports(item, ("local_port", "external_port"), where)
    twice = _twice(item)
    if twice != "no" and not protocol:
        raise bad("twice-nat needs protocol and ports", where)
    value = Static(
        _address(item.get("local"), where),
        local_port,
        _vrf(item.get("vrf"), inside_vrf, where),
        twice,
        bool(item.get("out2in_only")),
        item.get("tag") or "",
    )
    return Wish((STATIC, place, external_port, protocol), {"entry": value})


def _identity(item: Values, inside_vrf: int, where: str) -> Wish:
    place = _place(item, "address", "interface", where)
    protocol, (port,) = _ports(item, ("port",), where)
    vrf = _vrf(item.get("vrf"), inside_vrf, where)
    return Wish((IDENTITY, place, port, protocol, vrf), {"entry": Identity(item.get("tag") or "")})


def _balanced(item: Values, inside_vrf: int, where: str) -> Wish:
    if not item.get("protocol"):
        raise bad("it needs protocol and external_port", where)
    protocol, (port,) = _ports({**item, "port": item.get("external_port")}, ("port",), where)
    backends = [
        Backend(
            _address(one.get("address"), where),
            _between(one["port"], 1, 65535, where),
            _between(one.get("probability") or 1, 1, 255, where),
            _vrf(one.get("vrf"), inside_vrf, where),
        )
        for one in item.get("backends") or ()
    ]
    if len(set(backends)) < 2:
        raise bad("VPP wants at least two backends", where, "One backend is a static mapping")
    value = Balanced(
        frozenset(backends),
        item.get("affinity_s") or 0,
        _twice(item),
        bool(item.get("out2in_only")),
        item.get("tag") or "",
    )
    return Wish((BALANCED, _address(item.get("external"), where), port, protocol), {"entry": value})


# Objects as options


def as_config(current: t.Mapping[Key, Found], mode: Mode) -> Values:
    """All objects in the form of the module's options; addresses that follow each other are one pool."""
    plugin = current.get(PLUGIN)
    if plugin is None:
        return {"mode": mode.name, "enabled": False}
    result: Values = {"mode": mode.name, "enabled": True}
    result.update({name: plugin.values[name] for name in mode.fixed})
    timeouts: Timeouts = plugin.values["timeouts"]
    result["timeouts"] = {name: getattr(timeouts, name) for name in timeouts.__dataclass_fields__}
    result.update({name: plugin.values[name] for name in ("forwarding", "mss_clamp_bytes")})
    limits = plugin.values.get("session_limits", ())
    result["session_limits"] = [
        {"vrf": one.vrf, "sessions": one.sessions} for one in sorted(limits, key=lambda one: one.vrf)
    ]
    rows: dict[str, list[Found]] = {}
    for found in current.values():
        rows.setdefault(found.key[0], []).append(found)
    for kind in rows.values():
        kind.sort(key=lambda found: tuple(str(part) for part in found.key))
    result["interfaces"] = [{"name": one.key[1], "role": one.values["role"]} for one in rows.get(INTERFACE, ())]
    result["pools"] = [*_ranges(rows.get(POOL, ())), *(_as_pool(one) for one in rows.get(INTERFACE_POOL, ()))]
    result["static_mappings"] = [_as_static(one) for one in rows.get(STATIC, ())]
    result["identity_mappings"] = [_as_identity(one) for one in rows.get(IDENTITY, ())]
    result["load_balanced_mappings"] = [_as_balanced(one) for one in rows.get(BALANCED, ())]
    return result


def _as_pool(found: Found) -> Values:
    return {"interface": found.key[1], **({"twice_nat": True} if found.key[2] else {})}


def _ranges(pools: t.Sequence[Found]) -> list[Values]:
    result: list[tuple[int, int, bool, int | None]] = []
    rows = [(found.key[2], int(ipaddress.IPv4Address(found.key[1])), found.values["entry"].vrf) for found in pools]
    for twice, number, vrf in sorted(rows, key=lambda row: row[:2]):
        if result and result[-1][1] == number - 1 and result[-1][2:] == (twice, vrf):
            result[-1] = (result[-1][0], number, twice, vrf)
        else:
            result.append((number, number, twice, vrf))
    shown = []
    for first, last, twice, vrf in result:
        one: Values = {"first": str(ipaddress.IPv4Address(first)), "last": str(ipaddress.IPv4Address(last))}
        one.update({"twice_nat": True} if twice else {})
        shown.append({**one, **({} if vrf is None else {"vrf": vrf})})
    return shown


def _placed(found: Found, address: str, interface: str) -> Values:
    place = found.key[1]
    try:
        ipaddress.IPv4Address(place)
    except ValueError:
        return {interface: place}
    return {address: place}


def _more(value: t.Any) -> Values:
    result: Values = {}
    if getattr(value, "twice_nat", "no") != "no":
        result["twice_nat"] = value.twice_nat
    if getattr(value, "out2in_only", False):
        result["out2in_only"] = True
    return {**result, **({"tag": value.tag} if value.tag else {})}


def _as_static(found: Found) -> Values:
    value: Static = found.values["entry"]
    result: Values = {"local": value.local, **_placed(found, "external", "external_interface")}
    if found.key[3]:
        result.update(protocol=found.key[3], local_port=value.local_port, external_port=found.key[2])
    return {**result, "vrf": value.vrf, **_more(value)}


def _as_identity(found: Found) -> Values:
    result = _placed(found, "address", "interface")
    if found.key[3]:
        result.update(protocol=found.key[3], port=found.key[2])
    return {**result, "vrf": found.key[4], **_more(found.values["entry"])}


def _as_balanced(found: Found) -> Values:
    value: Balanced = found.values["entry"]
    backends = [
        {"address": one.address, "port": one.port, "probability": one.probability, "vrf": one.vrf}
        for one in sorted(value.backends, key=str)
    ]
    result: Values = {"external": found.key[1], "external_port": found.key[2], "protocol": found.key[3]}
    result["backends"] = backends
    return {**result, **({"affinity_s": value.affinity_s} if value.affinity_s else {}), **_more(value)}


# The command line


def render(options: Values, mode: Mode) -> list[str]:
    """The same as lines of VPP's command line, from nothing. Pure."""
    wishes = wishes_of(options, mode, options.get("inside_vrf") or 0)
    lines = _render_plugin(wishes[0].values, mode)
    for wish in wishes[1:]:
        value = wish.values.get("entry")
        if getattr(value, "tag", ""):
            raise BenchError(
                "VPP's command line cannot give a mapping a tag",
                where=" ".join(str(part) for part in wish.key if part != ""),
                code="not_renderable",
            )
        lines.append(_LINES[wish.key[0]](wish, mode))
    lines += _render_limits(wishes[0].values, mode)
    return lines


def _render_plugin(values: t.Mapping[str, t.Any], mode: Mode) -> list[str]:
    words = [mode.cli, "plugin enable"]
    spelled = {name: name.replace("_", "-") for name in values}
    # VPP itself has it with this slip
    spelled["static_mapping_only"] = "static-mapping-only"
    for name, value in values.items():
        if name in mode.fixed and value is not False:
            words.append(spelled[name] if value is True else f"{spelled[name]} {value}")
    lines = [" ".join(words)]
    timeouts = values.get("timeouts")
    if timeouts is not None:
        given = {name: getattr(timeouts, name) for name in timeouts.__dataclass_fields__}
        verb = "set nat timeout" if mode.rich else "set nat44 ei timeout"
        lines += [f"{verb} {name[:-2].replace('_', '-')} {value}" for name, value in given.items() if value is not None]
    if "forwarding" in values:
        lines.append(f"{mode.cli} forwarding {'enable' if values['forwarding'] else 'disable'}")
    if values.get("mss_clamp_bytes"):
        lines.append(f"{'nat' if mode.rich else mode.cli} mss-clamping {values['mss_clamp_bytes']}")
    return lines


def _render_limits(values: t.Mapping[str, t.Any], mode: Mode) -> list[str]:
    """After the rest, as a VRF has to be known."""
    given = values.get("session_limits")
    limits = given.limits if isinstance(given, AddLimits) else given or ()
    return [f"set nat44 session limit {one.sessions} vrf {one.vrf}" for one in sorted(limits, key=lambda one: one.vrf)]


def _line_interface(wish: Wish, mode: Mode) -> str:
    name, role = wish.key[1], wish.values["role"]
    sides = {"inside": f"in {name}", "outside": f"out {name}", "both": f"in {name} out {name}"}
    return f"set interface {mode.cli} {sides.get(role, f'out {name} output-feature')}"


def _line_pool(wish: Wish, mode: Mode) -> str:
    vrf = wish.values["entry"].vrf
    tenant = "" if vrf is None else f" tenant-vrf {vrf}"
    return f"{mode.cli} add address {wish.key[1]}{tenant}{' twice-nat' if wish.key[2] else ''}"


def _line_interface_pool(wish: Wish, mode: Mode) -> str:
    return f"{mode.cli} add interface address {wish.key[1]}{' twice-nat' if wish.key[2] else ''}"


def _options(value: t.Any) -> str:
    words = {"twice": " twice-nat", "self": " self-twice-nat"}.get(value.twice_nat, "")
    return words + (" out2in-only" if value.out2in_only else "")


def _line_static(wish: Wish, mode: Mode) -> str:
    value, (place, port, protocol) = wish.values["entry"], wish.key[1:]
    words = [mode.cli, "add static mapping", *([protocol] if protocol else [])]
    words += ["local", value.local, *([str(value.local_port)] if protocol else [])]
    words += ["external", place, *([str(port)] if protocol else []), f"vrf {value.vrf}"]
    return " ".join(words) + _options(value)


def _line_identity(wish: Wish, mode: Mode) -> str:
    place, port, protocol, vrf = wish.key[1:]
    where = place if place[0].isdigit() and place.count(".") == 3 else f"external {place}"
    ports = f" {protocol} {port}" if protocol else ""
    return f"{mode.cli} add identity mapping {where}{ports} vrf {vrf}"


def _line_balanced(wish: Wish, mode: Mode) -> str:
    value, (place, port, protocol) = wish.values["entry"], wish.key[1:]
    words = [f"{mode.cli} add load-balancing static mapping protocol {protocol} external {place}:{port}"]
    words += [
        f"local {one.address}:{one.port} vrf {one.vrf} probability {one.probability}"
        for one in sorted(value.backends, key=str)
    ]
    words += [f"affinity {value.affinity_s}"] if value.affinity_s else []
    return " ".join(words) + _options(value)


_LINES: t.Final[dict[str, t.Callable[[Wish, Mode], str]]] = {
    INTERFACE: _line_interface,
    POOL: _line_pool,
    INTERFACE_POOL: _line_interface_pool,
    STATIC: _line_static,
    IDENTITY: _line_identity,
    BALANCED: _line_balanced,
}
#: What the module takes as a protocol.
PROTOCOL_CHOICES: t.Final = tuple(PROTOCOLS)
