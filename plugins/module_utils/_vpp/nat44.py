# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NAT44 of VPP as objects: the plugin's own settings, interfaces, pools and mappings.

VPP has two of them. The endpoint-dependent one (nat_plugin.so) knows a session
by both ends, the endpoint-independent one (nat44_ei_plugin.so) by the inside
end alone. Their requests differ in names, flags and in what they can do;
:class:`Mode` is where that is said.
"""

from __future__ import annotations

import dataclasses
import ipaddress
import re
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import ParseError
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.reconcile import (
    Found,
    Handle,
    Key,
    Kind,
    Prop,
    Values,
    Wish,
)
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.session import NO_INDEX, Call, Reply, Session

#: Retvals that mean that what was asked is so already (plugin on, off), and VPP's word for "off, but I counted wrong".
ALREADY_ENABLED, ALREADY_DISABLED, BUG = -170, -169, -168

PLUGIN: Key = ("nat44",)
#: Mappings come after pools and go before them: some need their address in a pool. This is no object of its own.
_MAPPINGS: Key = ("mappings",)
INTERFACE, POOL, INTERFACE_POOL = "interface", "pool", "interface pool"
STATIC, IDENTITY, BALANCED = "static mapping", "identity mapping", "load-balanced mapping"

PROTOCOLS: t.Final = {"tcp": 6, "udp": 17, "icmp": 1}
_PROTOCOL_NAMES = {number: name for name, number in PROTOCOLS.items()}
TWICE: t.Final = {"no": 0x00, "twice": 0x01, "self": 0x02}
_OUT2IN_ONLY, _ADDRESS_ONLY = 0x04, 0x08
ROLES: t.Final = ("inside", "outside", "both", "output")


@dataclasses.dataclass(frozen=True)
class Mode:
    """One of the two: how its requests are called and what it has."""

    name: str
    short: str
    plugin: str
    #: Settings that can only be given when the plugin is enabled, with what VPP takes when nothing is given.
    fixed: t.Mapping[str, t.Any]
    inside: int
    outside: int
    cli: str
    #: Twice-nat, out2in-only, load balancing, limits by VRF.
    rich: bool
    _names: t.Mapping[str, str] = dataclasses.field(default_factory=dict)

    def request(self, what: str) -> str:
        """The name of a request, from what it is about."""
        return self._names.get(what, f"nat44_ei_{what}" if self.short == "ei" else f"nat44_{what}")


ED: t.Final = Mode(
    "endpoint_dependent",
    "ed",
    "nat_plugin.so",
    {"sessions": 63 * 1024, "inside_vrf": 0, "outside_vrf": 0},
    inside=0x20,
    outside=0x10,
    cli="nat44",
    rich=True,
    _names={
        "plugin_enable_disable": "nat44_ed_plugin_enable_disable",
        "set_timeouts": "nat_set_timeouts",
        "set_mss_clamping": "nat_set_mss_clamping",
        "get_mss_clamping": "nat_get_mss_clamping",
        "add_del_output_interface": "nat44_ed_add_del_output_interface",
        "output_interface_get": "nat44_ed_output_interface_get",
        "add_del_static_mapping": "nat44_add_del_static_mapping_v2",
    },
)
EI: t.Final = Mode(
    "endpoint_independent",
    "ei",
    "nat44_ei_plugin.so",
    {
        "sessions": 10 * 1024,
        "users": 1024,
        # VPP takes the number of sessions
        "user_sessions": None,
        "inside_vrf": 0,
        "outside_vrf": 0,
        "static_mapping_only": False,
        "connection_tracking": False,
        "out2in_dpo": False,
    },
    inside=0x10,
    outside=0x20,
    cli="nat44 ei",
    rich=False,
)
MODES: t.Final = {mode.name: mode for mode in (ED, EI)}
_EI_FLAGS = {"static_mapping_only": 0x01, "connection_tracking": 0x02, "out2in_dpo": 0x04}
_ALL_FIXED = tuple(dict.fromkeys([*ED.fixed, *EI.fixed]))


@dataclasses.dataclass(frozen=True)
class Timeouts:
    """Seconds without a packet after which a session may go. None: as it is."""

    udp_s: int | None = None
    tcp_established_s: int | None = None
    tcp_transitory_s: int | None = None
    icmp_s: int | None = None


DEFAULT_TIMEOUTS: t.Final = Timeouts(300, 7440, 240, 60)


@dataclasses.dataclass(frozen=True)
class Limit:
    """How many sessions a thread has at most when a packet of this VRF asks for another."""

    vrf: int
    sessions: int


@dataclasses.dataclass(frozen=True)
class AddLimits:
    """Limits that should hold, whatever those of other VRFs are."""

    limits: frozenset[Limit]


@dataclasses.dataclass(frozen=True)
class Pool:
    """An address of the pool; it serves all VRFs, or one."""

    vrf: int | None = None


@dataclasses.dataclass(frozen=True)
class InterfacePool:
    """The pool has the first address of an interface, whatever that is."""


@dataclasses.dataclass(frozen=True)
class Static:
    local: str
    local_port: int = 0
    vrf: int = 0
    twice_nat: str = "no"
    out2in_only: bool = False
    tag: str = ""
    #: VPP does not tell twice_nat and out2in_only of one whose interface has no address yet.
    partial: bool | None = dataclasses.field(default=None, compare=False)


@dataclasses.dataclass(frozen=True)
class Identity:
    tag: str = ""


@dataclasses.dataclass(frozen=True)
class Backend:
    address: str
    port: int
    probability: int
    vrf: int = 0


@dataclasses.dataclass(frozen=True)
class Balanced:
    backends: frozenset[Backend]
    #: VPP never tells it, so it cannot make a difference.
    affinity_s: int = dataclasses.field(default=0, compare=False)
    twice_nat: str = "no"
    out2in_only: bool = False
    tag: str = ""


def _timeouts(found: t.Any, wish: t.Any) -> t.Any:
    held = dataclasses.asdict(found) if isinstance(found, Timeouts) else {}
    return Timeouts(**{**held, **{name: one for name, one in dataclasses.asdict(wish).items() if one is not None}})


def _limits(found: t.Any, wish: t.Any) -> t.Any:
    if not isinstance(wish, AddLimits):
        return wish
    held = {limit.vrf: limit for limit in found} if isinstance(found, frozenset) else {}
    return frozenset({**held, **{limit.vrf: limit for limit in wish.limits}}.values())


def _entry(found: t.Any, wish: t.Any) -> t.Any:
    if isinstance(found, Static) and found.partial:
        known = dataclasses.replace(wish, twice_nat=found.twice_nat, out2in_only=found.out2in_only)
        return found if known == found else wish
    return wish


class Nat44Kind(Kind):
    """All objects of one mode. Keys start with one of the words above."""

    def __init__(self, session: Session, mode: Mode) -> None:
        self.mode = mode
        self.names = {
            row.sw_if_index: row.interface_name for row in session.call("sw_interface_dump", sw_if_index=NO_INDEX)
        }
        self.indexes = {name: index for index, name in self.names.items()}
        fixed = [Prop(name, 10, None) for name in _ALL_FIXED]
        self.props = (
            *fixed,
            Prop("session_limits", 20, self._write_limits, resolve=_limits),
            Prop("timeouts", 20, self._write_timeouts, resolve=_timeouts),
            Prop("forwarding", 20, self._write_forwarding),
            Prop("mss_clamp_bytes", 20, self._write_mss),
            Prop("role", 30, self._write_role),
            Prop("entry", 40, self._write_entry, resolve=_entry),
        )
        self._sessions = 0

    # Reading

    def read(self, session: Session, wishes: t.Sequence[Wish], everything: bool) -> dict[Key, Found]:
        """Everything always: it takes one round, and what depends on an interface's address is only told apart so."""
        mode = self.mode
        config = session.call(mode.request("show_running_config"))
        if not config.sessions:
            # what VPP answers when the plugin is off
            return {}
        dumps = ["interface_dump", "output_interface_get", "address_dump", "interface_addr_dump"]
        dumps += ["static_mapping_dump", "identity_mapping_dump", "get_mss_clamping"]
        dumps += ["lb_static_mapping_dump"] if mode.rich else []
        calls = [Call(mode.request(name), {"cursor": 0} if name.endswith("_get") else {}) for name in dumps]
        rows = dict(zip(dumps, session.batch(calls)))
        self._sessions = config.sessions
        found = [
            Found(PLUGIN, None, self._plugin(session, config, rows["get_mss_clamping"]), self.name(PLUGIN)),
            *self._interfaces(rows["interface_dump"], rows["output_interface_get"]),
        ]
        owned = self._addresses(
            session,
            [row.sw_if_index for row in rows["interface_addr_dump"]]
            + [row.external_sw_if_index for row in rows["static_mapping_dump"]]
            + [row.sw_if_index for row in rows["identity_mapping_dump"]],
        )
        found += self._pools(rows["address_dump"], rows["interface_addr_dump"], owned)
        found += self._statics(rows["static_mapping_dump"], owned)
        found += self._identities(rows["identity_mapping_dump"], owned)
        found += [self._balanced(row) for row in rows.get("lb_static_mapping_dump", ())]
        return {one.key: one for one in found}

    def _plugin(self, session: Session, config: Reply, mss: Reply) -> Values:
        values: Values = {name: getattr(config, name) for name in self.mode.fixed if name not in _EI_FLAGS}
        if not self.mode.rich:
            values.update({name: bool(int(config.flags) & flag) for name, flag in _EI_FLAGS.items()})
        given = config.timeouts
        values["timeouts"] = Timeouts(given.udp, given.tcp_established, given.tcp_transitory, given.icmp)
        values["forwarding"] = bool(config.forwarding_enabled)
        values["mss_clamp_bytes"] = int(mss.mss_value) if mss.enable else 0
        if self.mode.rich:
            limits = read_limits(session)
            values["session_limits"] = frozenset(
                Limit(vrf, number) for vrf, number in limits.items() if number != config.sessions
            )
        return values

    def _interfaces(self, sides: t.Sequence[Reply], outputs: t.Sequence[Reply]) -> list[Found]:
        roles = {}
        for row in sides:
            inside, outside = int(row.flags) & self.mode.inside, int(row.flags) & self.mode.outside
            roles[row.sw_if_index] = "both" if inside and outside else "inside" if inside else "outside"
        roles.update({row.sw_if_index: "output" for row in outputs})
        return [self._found((INTERFACE, self._interface(index)), "role", role) for index, role in roles.items()]

    def _found(self, key: Key, prop: str, value: t.Any) -> Found:
        return Found(key, None, {prop: value}, self.name(key))

    def _interface(self, index: int) -> str:
        return str(self.names.get(index, index))

    def _addresses(self, session: Session, indexes: t.Sequence[int]) -> dict[int, set[str]]:
        """Of interfaces that pools and mappings follow: their addresses."""
        wanted = sorted({index for index in indexes if index != NO_INDEX})
        calls = [Call("ip_address_dump", {"sw_if_index": index, "is_ipv6": False}) for index in wanted]
        return {
            index: {str(row.prefix).split("/", maxsplit=1)[0] for row in rows}
            for index, rows in zip(wanted, session.batch(calls))
        }

    def _pools(
        self, addresses: t.Sequence[Reply], interfaces: t.Sequence[Reply], owned: t.Mapping[int, set[str]]
    ) -> list[Found]:
        found: list[Found] = []
        followed: set[tuple[str, bool]] = set()
        for row in interfaces:
            twice = self._twice(row) != "no"
            found.append(
                self._found((INTERFACE_POOL, self._interface(row.sw_if_index), twice), "entry", InterfacePool())
            )
            followed.update((address, twice) for address in owned[row.sw_if_index])
        for row in addresses:
            name = (str(row.ip_address), self._twice(row) != "no")
            # VPP shows the address that it took from an interface as one of its own too
            if name not in followed:
                vrf = None if row.vrf_id == NO_INDEX else row.vrf_id
                found.append(self._found((POOL, *name), "entry", Pool(vrf)))
        return found

    def _twice(self, row: Reply) -> str:
        """Only one of the two modes has twice-nat, and a record of the other need not have flags."""
        flags = int(getattr(row, "flags", 0)) if self.mode.rich else 0
        return "twice" if flags & TWICE["twice"] else "self" if flags & TWICE["self"] else "no"

    def _statics(self, rows: t.Sequence[Reply], owned: t.Mapping[int, set[str]]) -> list[Found]:
        plain: dict[tuple[t.Any, ...], Reply] = {}
        following: list[Reply] = []
        for row in rows:
            if row.external_sw_if_index != NO_INDEX:
                following.append(row)
            else:
                plain[(str(row.external_ip_address), str(row.local_ip_address), *self._ports(row))] = row
        found: list[Found] = []
        for row in following:
            # VPP shows what it made of it for the address of the interface too, and only there with all flags
            local, ports = str(row.local_ip_address), self._ports(row)
            twins = [plain.pop((one, local, *ports), None) for one in owned[row.external_sw_if_index]]
            twin = next((one for one in twins if one is not None), None)
            found.append(self._static(self._interface(row.external_sw_if_index), row, twin))
        return found + [self._static(str(row.external_ip_address), row, row) for row in plain.values()]

    def _static(self, place: str, row: Reply, told: Reply | None) -> Found:
        external_port, local_port, protocol = self._ports(row)
        only = bool(self.mode.rich and int((told or row).flags) & _OUT2IN_ONLY)
        twice = self._twice(told or row)
        partial = True if told is None and self.mode.rich else None
        local = str(row.local_ip_address)
        value = Static(local, local_port, self._vrf(row.vrf_id), twice, only, _text(row.tag), partial)
        return self._found((STATIC, place, external_port, protocol), "entry", value)

    def _ports(self, row: Reply) -> tuple[int, int, str]:
        if int(row.flags) & _ADDRESS_ONLY:
            return 0, 0, ""
        return row.external_port, row.local_port, self._protocol(row.protocol)

    def _identities(self, rows: t.Sequence[Reply], owned: t.Mapping[int, set[str]]) -> list[Found]:
        found: list[Found] = []
        followed: set[tuple[t.Any, ...]] = set()
        for row in sorted(rows, key=lambda row: row.sw_if_index == NO_INDEX):
            address_only = bool(int(row.flags) & _ADDRESS_ONLY)
            ports = (0, "") if address_only else (row.port, self._protocol(row.protocol))
            if row.sw_if_index != NO_INDEX:
                place = self._interface(row.sw_if_index)
                followed.update((one, ports) for one in owned[row.sw_if_index])
            else:
                place = str(row.ip_address)
                if (place, ports) in followed:
                    continue
            key = (IDENTITY, place, *ports, self._vrf(row.vrf_id))
            found.append(self._found(key, "entry", Identity(_text(row.tag))))
        return found

    def _balanced(self, row: Reply) -> Found:
        key = (BALANCED, str(row.external_addr), row.external_port, self._protocol(row.protocol))
        backends = frozenset(
            Backend(str(one.addr), one.port, one.probability, one.vrf_id) for one in row.locals[: row.local_num]
        )
        only = bool(int(row.flags) & _OUT2IN_ONLY)
        return self._found(key, "entry", Balanced(backends, row.affinity, self._twice(row), only, _text(row.tag)))

    def _protocol(self, number: int) -> str:
        return _PROTOCOL_NAMES.get(number, str(number))

    def _vrf(self, number: int) -> int:
        return 0 if number == NO_INDEX else int(number)

    # The plugin

    def parent(self, key: Key) -> Key | None:
        if key == PLUGIN:
            return None
        return _MAPPINGS if key[0] in (STATIC, IDENTITY, BALANCED) else PLUGIN

    def created_with(self, wish: Wish) -> Values:
        if wish.key != PLUGIN:
            return dict(wish.values)
        values: Values = {**dict.fromkeys(_ALL_FIXED), **self.mode.fixed}
        values.update({name: wish.values[name] for name in self.mode.fixed if name in wish.values})
        empty: frozenset[Limit] = frozenset()
        return {
            **values,
            "timeouts": DEFAULT_TIMEOUTS,
            "forwarding": False,
            "mss_clamp_bytes": 0,
            "session_limits": empty,
        }

    def create(self, wish: Wish, handles: t.Mapping[Key, Handle]) -> list[Call]:
        if wish.key == PLUGIN:
            return [self._enable(wish.values)]
        if wish.key[0] == INTERFACE:
            return self._write_role(wish.key, None, None, wish.values["role"])
        return [self._change(wish.key, wish.values["entry"], add=True)]

    def handle(self, reply: Reply) -> Handle:
        return None

    def remove(self, found: Found) -> list[Call]:
        if found.key == PLUGIN:
            fields = {"enable": False}
            request = self.mode.request("plugin_enable_disable")
            return [Call(request, fields, (ALREADY_DISABLED, BUG), found.name)]
        if found.key[0] == INTERFACE:
            return self._write_role(found.key, None, found.values["role"], None)
        return [self._change(found.key, found.values["entry"], add=False)]

    def _enable(self, values: t.Mapping[str, t.Any]) -> Call:
        given = {name: value for name, value in values.items() if name in self.mode.fixed and value is not None}
        flags = sum(flag for name, flag in _EI_FLAGS.items() if given.pop(name, False))
        # 0 is VPP's word for its default
        fields = {"enable": True, "flags": flags, **given}
        self._sessions = int(given.get("sessions") or t.cast("int", self.mode.fixed["sessions"]))
        return Call(
            self.mode.request("plugin_enable_disable"),
            fields,
            where=self.name(PLUGIN),
            hint=f"VPP's plugin is {self.mode.plugin}",
        )

    def _write_timeouts(self, key: Key, handle: Handle, before: t.Any, after: t.Any) -> list[Call]:
        fields = {name[: -len("_s")]: value for name, value in dataclasses.asdict(after).items()}
        return [Call(self.mode.request("set_timeouts"), fields)]

    def _write_forwarding(self, key: Key, handle: Handle, before: t.Any, after: t.Any) -> list[Call]:
        return [Call(self.mode.request("forwarding_enable_disable"), {"enable": after})]

    def _write_mss(self, key: Key, handle: Handle, before: t.Any, after: t.Any) -> list[Call]:
        return [Call(self.mode.request("set_mss_clamping"), {"mss_value": after, "enable": bool(after)})]

    def _write_limits(self, key: Key, handle: Handle, before: t.Any, after: t.Any) -> list[Call]:
        # a limit cannot be taken away, only be as high as the table is
        gone = {limit.vrf: self._sessions for limit in before}
        wanted = {**gone, **{limit.vrf: limit.sessions for limit in after}}
        return [
            Call(
                self.mode.request("set_session_limit"),
                {"session_limit": number, "vrf_id": vrf},
                where=f"session limit of VRF {vrf}",
                hint="VPP knows the VRF once an interface or a pool has it",
            )
            for vrf, number in sorted(wanted.items())
            if Limit(vrf, number) not in before
        ]

    # Interfaces

    def _write_role(self, key: Key, handle: Handle, before: t.Any, after: t.Any) -> list[Call]:
        sides = {"inside": {"inside"}, "outside": {"outside"}, "both": {"inside", "outside"}, "output": {"output"}}
        old: set[str] = sides.get(before, set())
        new: set[str] = sides.get(after, set())
        taken = [self._side(key, side, add=False) for side in sorted(old - new)]
        given = [self._side(key, side, add=True) for side in sorted(new - old)]
        # a side that is given first keeps the interface in NAT meanwhile; VPP refuses that with the output feature only
        return taken + given if "output" in old | new else given + taken

    def _side(self, key: Key, side: str, *, add: bool) -> Call:
        fields: Values = {"is_add": add, "sw_if_index": self.indexes.get(key[1], NO_INDEX)}
        if side == "output":
            return Call(self.mode.request("add_del_output_interface"), fields, where=self.name(key))
        fields["flags"] = self.mode.inside if side == "inside" else self.mode.outside
        return Call(self.mode.request("interface_add_del_feature"), fields, where=self.name(key))

    # Pools and mappings

    def _write_entry(self, key: Key, handle: Handle, before: t.Any, after: t.Any) -> list[Call]:
        # VPP cannot change one: it goes, with the sessions that came of it, and comes again
        return [self._change(key, before, add=False), self._change(key, after, add=True)]

    def _change(self, key: Key, value: t.Any, *, add: bool) -> Call:
        writers: dict[str, t.Callable[[Key, t.Any], tuple[str, Values]]] = {
            POOL: self._pool_fields,
            INTERFACE_POOL: self._interface_pool_fields,
            STATIC: self._static_fields,
            IDENTITY: self._identity_fields,
            BALANCED: self._balanced_fields,
        }
        request, fields = writers[key[0]](key, value)
        return Call(self.mode.request(request), {"is_add": add, **fields}, where=self.name(key))

    def _pool_fields(self, key: Key, value: Pool) -> tuple[str, Values]:
        fields: Values = {"first_ip_address": key[1], "last_ip_address": key[1]}
        fields["vrf_id"] = NO_INDEX if value.vrf is None else value.vrf
        if self.mode.rich:
            fields["flags"] = TWICE["twice"] if key[2] else 0
        return "add_del_address_range", fields

    def _interface_pool_fields(self, key: Key, value: InterfacePool) -> tuple[str, Values]:
        flags = TWICE["twice"] if key[2] else 0
        return "add_del_interface_addr", {"sw_if_index": self.indexes.get(key[1], NO_INDEX), "flags": flags}

    def _external(self, place: str) -> tuple[str, int]:
        """An address, or the interface whose address it is."""
        if _is_address(place):
            return place, NO_INDEX
        return "0.0.0.0", self.indexes.get(place, NO_INDEX)

    def _static_fields(self, key: Key, value: Static) -> tuple[str, Values]:
        address, index = self._external(key[1])
        return "add_del_static_mapping", {
            "flags": TWICE[value.twice_nat] | _OUT2IN_ONLY * value.out2in_only | _ADDRESS_ONLY * (not key[3]),
            "local_ip_address": value.local,
            "external_ip_address": address,
            "protocol": PROTOCOLS.get(key[3], 0),
            "local_port": value.local_port,
            "external_port": key[2],
            "external_sw_if_index": index,
            "vrf_id": value.vrf,
            "tag": value.tag,
        }

    def _identity_fields(self, key: Key, value: Identity) -> tuple[str, Values]:
        address, index = self._external(key[1])
        return "add_del_identity_mapping", {
            "flags": _ADDRESS_ONLY * (not key[3]),
            "ip_address": address,
            "protocol": PROTOCOLS.get(key[3], 0),
            "port": key[2],
            "sw_if_index": index,
            "vrf_id": key[4],
            "tag": value.tag,
        }

    def _balanced_fields(self, key: Key, value: Balanced) -> tuple[str, Values]:
        backends = sorted(value.backends, key=str)
        return "add_del_lb_static_mapping", {
            "flags": TWICE[value.twice_nat] | _OUT2IN_ONLY * value.out2in_only,
            "external_addr": key[1],
            "external_port": key[2],
            "protocol": PROTOCOLS[key[3]],
            "affinity": value.affinity_s,
            "tag": value.tag,
            "local_num": len(backends),
            "locals": [
                {"addr": one.address, "port": one.port, "probability": one.probability, "vrf_id": one.vrf}
                for one in backends
            ],
        }

    def name(self, key: Key) -> str:
        if key == PLUGIN:
            return f"NAT44 {self.mode.name.replace('_', '-')}"
        kind, place, *rest = key
        if kind in (POOL, INTERFACE_POOL):
            return f"{kind} {place}{' twice-nat' if rest[0] else ''}"
        if kind == INTERFACE:
            return f"{kind} {place}"
        port = f" {rest[1]} {rest[0]}" if rest[1] else ""
        return f"{kind} {place}{port}{f' vrf {rest[2]}' if len(rest) > 2 and rest[2] else ''}"


def _text(tag: t.Any) -> str:
    return str(tag).split("\0", maxsplit=1)[0]


def _is_address(text: str) -> bool:
    try:
        ipaddress.IPv4Address(text)
    except ValueError:
        return False
    return True


#: VPP of about 20.09 had one limit, for all.
_LIMIT = re.compile(r"max translations per thread: (\d+)(?: fib (\d+))?")
_FIB = re.compile(r"(?:ipv4-VRF:(\d+)|\S+), fib_index:(\d+)")


def read_limits(session: Session) -> dict[int, int]:
    """VRF -> sessions that a thread has at most. VPP's API can set this limit and cannot tell it."""
    text = session.call("cli_inband", cmd="show nat44 summary").reply
    by_fib = {int(fib or 0): int(number) for number, fib in _LIMIT.findall(text)}
    if not by_fib:
        raise ParseError("VPP's 'show nat44 summary' has no limit in it", line=text.strip().split("\n", maxsplit=1)[0])
    if set(by_fib) == {0}:
        return {0: by_fib[0]}
    tables = session.call("cli_inband", cmd="show ip fib summary").reply
    vrfs = {int(fib): int(vrf) for vrf, fib in _FIB.findall(tables) if vrf}
    return {vrfs[fib]: number for fib, number in by_fib.items() if fib in vrfs}
