# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Deterministic NAT of VPP (DET44) as objects: the plugin, its interfaces, its mappings of networks.

Habits of VPP 26.06 shape what is here. It does not tell whether DET44 is on,
nor in which VRFs: only the locks that it takes on a table when it is switched
on are seen, and it never gives them back. Switching it off ends VPP with a
signal when an interface was ever taken out before, so it stays on with nothing
in it. Taking an interface out puts its feature on it once more, so features
are counted and taken off here. Some mappings end VPP too: those are refused.
"""

from __future__ import annotations

import dataclasses
import ipaddress
import re
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._vpp import hardware
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.nat44 import DEFAULT_TIMEOUTS, Timeouts
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.reconcile import (
    UNKNOWN,
    Found,
    Handle,
    Key,
    Kind,
    Prop,
    Values,
    Wish,
)
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.session import NO_INDEX, Call, Reply, Session

PLUGIN: Key = ("det44",)
INTERFACE, MAP = "interface", "mapping"
INSIDE, OUTSIDE = "inside", "outside"
ROLES: t.Final = (INSIDE, OUTSIDE)
#: Answers of the plugin's switch: it is so already. Positive, so no refusal.
ALREADY = 1
ARC = "ip4-unicast"
FEATURES: t.Final = {INSIDE: "det44-in2out", OUTSIDE: "det44-out2in"}
#: VPP keeps so many for each inside address, whether they are used or not, and each is so large.
SESSIONS_PER_ADDRESS, _SESSION_BYTES = 1000, 24
_PORTS = 65535 - 1023
#: Below, the number of sessions does not fit a number of VPP.
_LARGEST = 12

_TABLE = re.compile(r"ipv4-VRF:(\d+), fib_index:\d+,.* locks:\[([^\]]*)\]")
_LOCK = "det44-hi"


@dataclasses.dataclass(frozen=True)
class Mapping:
    """Inside addresses, each with its own part of the ports of an outside address."""

    inside: ipaddress.IPv4Network
    outside: ipaddress.IPv4Network

    @property
    def key(self) -> Key:
        return (MAP, str(self.inside), str(self.outside))

    @property
    def sharing(self) -> int:
        """Inside addresses for each outside address."""
        return self.inside.num_addresses // self.outside.num_addresses

    @property
    def ports(self) -> int:
        """Ports of each inside address, as VPP works it out."""
        return _PORTS // self.sharing

    @property
    def memory_bytes(self) -> int:
        return self.inside.num_addresses * SESSIONS_PER_ADDRESS * _SESSION_BYTES

    def check(self) -> None:
        """:raises BenchError: VPP would end with a signal."""
        where = f"{self.inside} to {self.outside}"
        if self.inside.prefixlen > self.outside.prefixlen:
            raise BenchError(
                "the inside network is smaller than the outside one, which VPP does not survive",
                where=where,
                remedy="Give the outside network as many addresses at most",
                code="bad_option",
            )
        if self.inside.prefixlen < _LARGEST:
            raise BenchError(
                f"the inside network is larger than a /{_LARGEST}, whose sessions VPP cannot number",
                where=where,
                remedy="Give it in parts",
                code="bad_option",
            )
        if self.sharing > _PORTS:
            raise BenchError(
                f"{self.sharing} inside addresses share one outside address, which has {_PORTS} ports",
                where=where,
                remedy="Give more outside addresses",
                code="bad_option",
            )


def locks(text: str) -> dict[int, int]:
    """From ``show ip fib summary``: VRF to the number of times that DET44 was switched on for it. Pure."""
    found: dict[int, int] = {}
    for vrf, held in _TABLE.findall(text):
        times = re.search(rf"\b{_LOCK}:(\d+)", held)
        if times is not None:
            found[int(vrf)] = int(times[1])
    return found


def _timeouts(found: t.Any, wish: t.Any) -> t.Any:
    held = dataclasses.asdict(found) if isinstance(found, Timeouts) else {}
    return Timeouts(**{**held, **{name: one for name, one in dataclasses.asdict(wish).items() if one is not None}})


class Det44Kind(Kind):
    """All objects."""

    def __init__(self, session: Session) -> None:
        self.names = {
            row.sw_if_index: row.interface_name for row in session.call("sw_interface_dump", sw_if_index=NO_INDEX)
        }
        self.indexes = {name: index for index, name in self.names.items()}
        #: It was switched on, or found to be, by this call.
        self.known_on = False
        self.sessions: dict[Key, int] = {}
        self.props = (
            Prop("inside_vrf", 10, None),
            Prop("outside_vrf", 10, None),
            Prop("timeouts", 20, self._write_timeouts, resolve=_timeouts),
            Prop("role", 30, self._write_role),
        )

    # Reading

    def read(self, session: Session, wishes: t.Sequence[Wish], everything: bool) -> dict[Key, Found]:
        sides, maps, timeouts = session.batch(
            [Call("det44_interface_dump"), Call("det44_map_dump"), Call("det44_get_timeouts")]
        )
        held = locks(session.call("cli_inband", cmd="show ip fib summary").reply)
        found: list[Found] = []
        if self.known_on or sides or maps:
            asked = next((wish.values for wish in wishes if wish.key == PLUGIN), {})
            values: Values = {
                "timeouts": Timeouts(timeouts.udp, timeouts.tcp_established, timeouts.tcp_transitory, timeouts.icmp)
            }
            # which VRF it is of is not told; where there is no lock, it cannot be
            for name in ("inside_vrf", "outside_vrf"):
                values[name] = None if name in asked and held and asked[name] not in held else UNKNOWN
            found.append(Found(PLUGIN, None, values, self.name(PLUGIN), removable=False))
        for row in sides:
            key = (INTERFACE, str(self.names.get(row.sw_if_index, row.sw_if_index)))
            found.append(Found(key, None, {"role": INSIDE if row.is_inside else OUTSIDE}, self.name(key)))
        self.sessions = {}
        for row in maps:
            key = mapping_of(row).key
            self.sessions[key] = int(row.ses_num)
            found.append(Found(key, None, {}, self.name(key)))
        return {one.key: one for one in found}

    # Changing

    def parent(self, key: Key) -> Key | None:
        return None if key == PLUGIN else PLUGIN

    def created_with(self, wish: Wish) -> Values:
        if wish.key != PLUGIN:
            return dict(wish.values)
        return {
            **{name: wish.values.get(name, 0) for name in ("inside_vrf", "outside_vrf")},
            "timeouts": DEFAULT_TIMEOUTS,
        }

    def create(self, wish: Wish, handles: t.Mapping[Key, Handle]) -> list[Call]:
        if wish.key == PLUGIN:
            self.known_on = True
            return [switch_on(wish.values)]
        if wish.key[0] == INTERFACE:
            return [self._side(wish.key, wish.values["role"], add=True)]
        return [self._map(wish.key, add=True)]

    def handle(self, reply: Reply) -> Handle:
        return None

    def remove(self, found: Found) -> list[Call]:
        if found.key[0] == INTERFACE:
            return [self._side(found.key, found.values["role"], add=False)]
        return [self._map(found.key, add=False)]

    def _write_timeouts(self, key: Key, handle: Handle, before: t.Any, after: t.Any) -> list[Call]:
        fields = {name[: -len("_s")]: value for name, value in dataclasses.asdict(after).items()}
        return [Call("det44_set_timeouts", fields)]

    def _write_role(self, key: Key, handle: Handle, before: t.Any, after: t.Any) -> list[Call]:
        return [self._side(key, before, add=False), self._side(key, after, add=True)]

    def _side(self, key: Key, role: str, *, add: bool) -> Call:
        fields = {"is_add": add, "is_inside": role == INSIDE, "sw_if_index": self.indexes.get(key[1], NO_INDEX)}
        return Call("det44_interface_add_del_feature", fields, where=self.name(key))

    def _map(self, key: Key, *, add: bool) -> Call:
        inside, outside = (ipaddress.IPv4Network(text) for text in key[1:])
        fields = {
            "is_add": add,
            "in_addr": str(inside.network_address),
            "in_plen": inside.prefixlen,
            "out_addr": str(outside.network_address),
            "out_plen": outside.prefixlen,
        }
        return Call("det44_add_del_map", fields, where=self.name(key))

    def clearing(self, keys: t.Iterable[Key]) -> list[Call]:
        """A mapping that is made again has no session."""
        return [self._map(key, add=add) for key in keys for add in (False, True)]

    def name(self, key: Key) -> str:
        if key == PLUGIN:
            return "DET44"
        return f"{key[0]} {' to '.join(key[1:])}"


def switch_on(values: t.Mapping[str, t.Any]) -> Call:
    fields = {name: values.get(name, 0) for name in ("inside_vrf", "outside_vrf")}
    return Call("det44_plugin_enable_disable", {"enable": True, **fields}, hint="VPP's plugin is det44_plugin.so")


def mapping_of(row: Reply) -> Mapping:
    inside, outside = (
        ipaddress.IPv4Network((str(address), length))
        for address, length in ((row.in_addr, row.in_plen), (row.out_addr, row.out_plen))
    )
    return Mapping(inside, outside)


def surplus(session: Session, kind: Det44Kind) -> list[tuple[str, str, int]]:
    """Interface, feature and how many times it is there without a use."""
    roles = {row.sw_if_index: INSIDE if row.is_inside else OUTSIDE for row in session.call("det44_interface_dump")}
    names = [name for name, index in kind.indexes.items() if index != 0]
    texts = session.batch([Call("cli_inband", {"cmd": f"show interface {name} features"}) for name in names])
    found = []
    for name, answer in zip(names, texts):
        there = hardware.features(answer.reply).get(ARC, [])
        for role, feature in FEATURES.items():
            extra = there.count(feature) - (roles.get(kind.indexes[name]) == role)
            if extra > 0:
                found.append((name, feature, extra))
    return found


def take_off(session: Session, kind: Det44Kind, those: t.Iterable[tuple[str, str, int]]) -> None:
    session.batch(
        [
            Call(
                "feature_enable_disable",
                {
                    "sw_if_index": kind.indexes[name],
                    "enable": False,
                    "arc_name": ARC,
                    "feature_name": feature,
                },
                where=f"interface {name}",
            )
            for name, feature, times in those
            for _time in range(times)
        ]
    )
