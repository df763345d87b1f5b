# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The two NAT44 of the VPP in memory, with the habits of VPP 26.06.

Enabling twice keeps the old values. Disabling with some mappings says that it went
wrong although it did not. Both can be on at once. The address of an interface
shows up as a pool address and as a mapping of its own beside the record that
follows the interface, and that record does not tell all flags. The affinity of
a load-balanced mapping is never told, nor is the limit of a VRF by the API.
"""

from __future__ import annotations

import dataclasses
import typing as t
from types import SimpleNamespace as Reply

from ansible_collections.fastpath.bench.plugins.module_utils._vpp.session import NO_INDEX

UNSUPPORTED, EXISTS, NO_ENTRY, INVALID = -126, -81, -6, -7
_SUMMARY = """\
total sessions: {total} (timed out: 0)
tcp sessions:
    total: 0 (timed out: 0)
        established: 0 (timed out: 0)
        transitory: 0 (timed out: 0)
udp sessions:
    total: {total} (timed out: 0)
icmp sessions:
    total: 0 (timed out: 0)
other sessions:
    total: 0 (timed out: 0)
"""


class NatRefuse(Exception):
    def __init__(self, retval: int, reply: str = "") -> None:
        self.retval = retval
        #: Of a line of the command line.
        self.reply = reply
        super().__init__(retval)


@dataclasses.dataclass
class Nat44:
    """The state of one of the two."""

    default_sessions: int
    config: dict[str, t.Any] = dataclasses.field(default_factory=dict)
    timeouts: tuple[int, int, int, int] = (0, 0, 0, 0)
    forwarding: bool = False
    mss: int = 0
    limits: dict[int, int] = dataclasses.field(default_factory=dict)
    sides: dict[int, int] = dataclasses.field(default_factory=dict)
    outputs: list[int] = dataclasses.field(default_factory=list)
    pools: dict[tuple[str, bool], int] = dataclasses.field(default_factory=dict)
    interface_pools: list[tuple[int, bool]] = dataclasses.field(default_factory=list)
    statics: list[dict[str, t.Any]] = dataclasses.field(default_factory=list)
    identities: list[dict[str, t.Any]] = dataclasses.field(default_factory=list)
    balanced: list[dict[str, t.Any]] = dataclasses.field(default_factory=list)
    #: Source address and port of each session.
    sessions: set[tuple[str, int]] = dataclasses.field(default_factory=set)

    @property
    def on(self) -> bool:
        return bool(self.config)

    def need(self, retval: int) -> None:
        if not self.on:
            raise NatRefuse(retval)

    def enable(self, *, sessions: int = 0, **config: t.Any) -> None:
        if self.on:
            raise NatRefuse(-170)
        self.config = {"sessions": sessions or self.default_sessions, **config}
        self.timeouts, self.forwarding, self.mss = (300, 7440, 240, 60), False, 0
        self.limits = {0: self.config["sessions"]}

    def disable(self) -> None:
        self.need(-169)
        odd = any(row["vrf_id"] and row["protocol"] for row in self.identities)
        timeouts = self.timeouts
        self.__dict__.update(Nat44(self.default_sessions).__dict__)
        self.timeouts = timeouts
        if odd:
            raise NatRefuse(-168)

    def flow(self, source: tuple[str, int]) -> None:
        if len(self.sessions) < min(self.limits.values()):
            self.sessions.add(source)


class Nat44Requests:
    """What the session of the fake answers about NAT44; ``vpp`` is the fake itself."""

    vpp: t.Any

    # The plugins

    def _nat(self, short: str) -> Nat44:
        return t.cast("Nat44", self.vpp.nat[short])

    def do_nat44_ed_plugin_enable_disable(
        self, enable: bool, flags: int = 0, sessions: int = 0, inside_vrf: int = 0, outside_vrf: int = 0
    ) -> None:
        if not enable:
            self._nat("ed").disable()
            return
        if flags:
            raise NatRefuse(UNSUPPORTED)
        self._nat("ed").enable(sessions=sessions, inside_vrf=inside_vrf, outside_vrf=outside_vrf)

    def do_nat44_ei_plugin_enable_disable(
        self, enable: bool, flags: int = 0, sessions: int = 0, users: int = 0, user_sessions: int = 0, **vrfs: int
    ) -> None:
        if not enable:
            self._nat("ei").disable()
            return
        sessions = sessions or self._nat("ei").default_sessions
        more = {"users": users or 1024, "user_sessions": user_sessions or sessions, "flags": flags}
        self._nat("ei").enable(sessions=sessions, **more, **{"inside_vrf": 0, "outside_vrf": 0, **vrfs})

    def _config(self, short: str, flags: int) -> Reply:
        nat = self._nat(short)
        names = ("sessions", "users", "user_sessions", "inside_vrf", "outside_vrf")
        udp, established, transitory, icmp = nat.timeouts
        return Reply(
            retval=0,
            **{name: nat.config.get(name, 0) for name in names},
            flags=nat.config.get("flags", 0) | flags,
            forwarding_enabled=nat.forwarding,
            timeouts=Reply(udp=udp, tcp_established=established, tcp_transitory=transitory, icmp=icmp),
        )

    def do_nat44_show_running_config(self) -> Reply:
        return self._config("ed", 1)

    def do_nat44_ei_show_running_config(self) -> Reply:
        return self._config("ei", 0)

    def do_nat_set_timeouts(self, udp: int, tcp_established: int, tcp_transitory: int, icmp: int) -> None:
        self._nat("ed").timeouts = (udp, tcp_established, tcp_transitory, icmp)

    def do_nat44_ei_set_timeouts(self, udp: int, tcp_established: int, tcp_transitory: int, icmp: int) -> None:
        self._nat("ei").timeouts = (udp, tcp_established, tcp_transitory, icmp)

    def do_nat44_forwarding_enable_disable(self, enable: bool) -> None:
        self._nat("ed").forwarding = enable

    def do_nat44_ei_forwarding_enable_disable(self, enable: bool) -> None:
        self._nat("ei").forwarding = enable

    def do_nat_set_mss_clamping(self, mss_value: int, enable: bool) -> None:
        self._nat("ed").mss = mss_value * enable

    def do_nat44_ei_set_mss_clamping(self, mss_value: int, enable: bool) -> None:
        self._nat("ei").mss = mss_value * enable

    def do_nat_get_mss_clamping(self) -> Reply:
        return Reply(retval=0, mss_value=self._nat("ed").mss, enable=bool(self._nat("ed").mss))

    def do_nat44_ei_get_mss_clamping(self) -> Reply:
        return Reply(retval=0, mss_value=self._nat("ei").mss, enable=bool(self._nat("ei").mss))

    def do_nat44_set_session_limit(self, session_limit: int, vrf_id: int) -> None:
        if (vrf_id, False) not in self.vpp.tables:
            raise NatRefuse(-1)
        self._nat("ed").limits[vrf_id] = session_limit

    # Interfaces

    def _side(self, short: str, bit: int, is_add: bool, sw_if_index: int) -> None:
        nat = self._nat(short)
        self._known(sw_if_index)
        nat.need(UNSUPPORTED if short == "ed" else -169)
        if not is_add:
            if sw_if_index not in nat.sides:
                raise NatRefuse(NO_ENTRY)
            # of an interface with one side it takes that, whichever was named
            nat.sides[sw_if_index] = nat.sides[sw_if_index] & ~bit if nat.sides[sw_if_index] == 3 else 0
            if not nat.sides[sw_if_index]:
                del nat.sides[sw_if_index]
            return
        if sw_if_index in nat.outputs:
            raise NatRefuse(EXISTS)
        nat.sides[sw_if_index] = nat.sides.get(sw_if_index, 0) | bit

    def _known(self, sw_if_index: int) -> None:
        if sw_if_index not in self.vpp.interfaces:
            raise NatRefuse(-2)

    def do_nat44_interface_add_del_feature(self, is_add: bool, sw_if_index: int, flags: int) -> None:
        self._side("ed", 1 if flags & 0x20 else 2, is_add, sw_if_index)

    def do_nat44_ei_interface_add_del_feature(self, is_add: bool, sw_if_index: int, flags: int) -> None:
        self._side("ei", 1 if flags & 0x10 else 2, is_add, sw_if_index)

    def do_nat44_interface_dump(self) -> list[Reply]:
        return [
            Reply(sw_if_index=index, flags=0x20 * bool(bits & 1) | 0x10 * bool(bits & 2))
            for index, bits in self._nat("ed").sides.items()
        ]

    def do_nat44_ei_interface_dump(self) -> list[Reply]:
        return [
            Reply(sw_if_index=index, flags=0x10 * bool(bits & 1) | 0x20 * bool(bits & 2))
            for index, bits in self._nat("ei").sides.items()
        ]

    def _output(self, short: str, is_add: bool, sw_if_index: int) -> None:
        nat = self._nat(short)
        self._known(sw_if_index)
        nat.need(UNSUPPORTED if short == "ed" else -169)
        if not is_add:
            if sw_if_index not in nat.outputs:
                raise NatRefuse(NO_ENTRY)
            nat.outputs.remove(sw_if_index)
            return
        if sw_if_index in nat.outputs or sw_if_index in nat.sides:
            raise NatRefuse(EXISTS)
        nat.outputs.append(sw_if_index)

    def do_nat44_ed_add_del_output_interface(self, is_add: bool, sw_if_index: int) -> None:
        self._output("ed", is_add, sw_if_index)

    def do_nat44_ei_add_del_output_interface(self, is_add: bool, sw_if_index: int) -> None:
        self._output("ei", is_add, sw_if_index)

    def do_nat44_ed_output_interface_get(self, cursor: int) -> list[Reply]:
        return [Reply(sw_if_index=index) for index in self._nat("ed").outputs]

    def do_nat44_ei_output_interface_get(self, cursor: int) -> list[Reply]:
        return [Reply(sw_if_index=index) for index in self._nat("ei").outputs]

    # Pools

    def _pool(self, short: str, address: str, vrf: int, is_add: bool, twice: bool) -> None:
        nat = self._nat(short)
        held = {**nat.pools, **{(one, twice): 0 for one in self._owned(nat, twice)}}
        if not is_add:
            if (address, twice) not in held:
                raise NatRefuse(NO_ENTRY)
            nat.pools.pop((address, twice), None)
            return
        nat.need(UNSUPPORTED if short == "ed" else -169)
        if (address, twice) in held:
            raise NatRefuse(EXISTS)
        nat.pools[address, twice] = vrf
        self._table(vrf)

    def _table(self, vrf: int) -> None:
        """A VRF that NAT44 has to know is made."""
        if vrf != NO_INDEX:
            self.vpp.tables.add((vrf, False))

    def do_nat44_add_del_address_range(
        self, first_ip_address: str, last_ip_address: str, vrf_id: int, is_add: bool, flags: int = 0
    ) -> None:
        self._pool("ed", first_ip_address, vrf_id, is_add, bool(flags & 1))

    def do_nat44_ei_add_del_address_range(
        self, first_ip_address: str, last_ip_address: str, vrf_id: int, is_add: bool
    ) -> None:
        self._pool("ei", first_ip_address, vrf_id, is_add, False)

    def _address(self, index: int) -> str | None:
        one = self.vpp.interfaces.get(index)
        texts = [text for text in one.addresses if ":" not in text] if one is not None else []
        return texts[0].split("/")[0] if texts else None

    def _owned(self, nat: Nat44, twice: bool) -> list[str]:
        found = (self._address(index) for index, is_twice in nat.interface_pools if is_twice == twice)
        return [one for one in found if one]

    def _pools(self, short: str) -> list[Reply]:
        nat = self._nat(short)
        rows = dict(nat.pools)
        for twice in (False, True):
            rows.update({(one, twice): NO_INDEX for one in self._owned(nat, twice)})
        return [Reply(ip_address=address, vrf_id=vrf, flags=int(twice)) for (address, twice), vrf in rows.items()]

    def do_nat44_address_dump(self) -> list[Reply]:
        return self._pools("ed")

    def do_nat44_ei_address_dump(self) -> list[Reply]:
        return self._pools("ei")

    def _interface_pool(self, short: str, is_add: bool, sw_if_index: int, flags: int) -> None:
        nat, key = self._nat(short), (sw_if_index, bool(flags & 1) and short == "ed")
        self._known(sw_if_index)
        nat.need(UNSUPPORTED if short == "ed" else -169)
        if not is_add:
            if key not in nat.interface_pools:
                raise NatRefuse(NO_ENTRY)
            nat.interface_pools.remove(key)
        elif key in nat.interface_pools:
            raise NatRefuse(EXISTS)
        else:
            nat.interface_pools.append(key)

    def do_nat44_add_del_interface_addr(self, is_add: bool, sw_if_index: int, flags: int = 0) -> None:
        self._interface_pool("ed", is_add, sw_if_index, flags)

    def do_nat44_ei_add_del_interface_addr(self, is_add: bool, sw_if_index: int, flags: int = 0) -> None:
        self._interface_pool("ei", is_add, sw_if_index, flags)

    def do_nat44_interface_addr_dump(self) -> list[Reply]:
        return [Reply(sw_if_index=index, flags=int(twice)) for index, twice in self._nat("ed").interface_pools]

    def do_nat44_ei_interface_addr_dump(self) -> list[Reply]:
        return [Reply(sw_if_index=index) for index, _twice in self._nat("ei").interface_pools]

    # Mappings

    def _map(self, nat: Nat44, rows: list[dict[str, t.Any]], is_add: bool, fields: dict[str, t.Any]) -> None:
        if fields["flags"] & 8:
            fields = {**fields, **dict.fromkeys(("protocol", "local_port", "external_port", "port"), 0)}
        same = ("external", "external_port", "port", "protocol", "vrf_id")
        names = [name for name in same if name in fields and not (name == "vrf_id" and "local" in fields)]
        held = [row for row in rows if all(row.get(name) == fields[name] for name in names)]
        if not is_add:
            if not held:
                raise NatRefuse(NO_ENTRY)
            rows.remove(held[0])
            return
        if held:
            raise NatRefuse(EXISTS)
        rows.append(fields)
        self._table(fields.get("vrf_id", NO_INDEX))

    def _static(self, short: str, is_add: bool, more: dict[str, t.Any]) -> None:
        nat = self._nat(short)
        nat.need(UNSUPPORTED if short == "ed" else -169)
        flags = more["flags"]
        if short == "ed" and flags & 3 and flags & 8:
            raise NatRefuse(UNSUPPORTED)
        external = more["external_sw_if_index"]
        external = more["external_ip_address"] if external == NO_INDEX else external
        if is_add and not flags & 4 and short == "ed":
            ends = ("local_ip_address", "local_port", "protocol")
            if any(all(row[name] == more[name] for name in ends) for row in nat.statics):
                raise NatRefuse(EXISTS)
        self._map(nat, nat.statics, is_add, {**more, "external": external, "local": more["local_ip_address"]})

    def do_nat44_add_del_static_mapping_v2(self, is_add: bool, **more: t.Any) -> None:
        self._static("ed", is_add, more)

    def do_nat44_ei_add_del_static_mapping(self, is_add: bool, **more: t.Any) -> None:
        self._static("ei", is_add, more)

    def _statics(self, short: str) -> list[Reply]:
        found = []
        for row in self._nat(short).statics:
            names = ("local_ip_address", "local_port", "external_port", "protocol", "vrf_id", "tag", "flags")
            told = {name: row[name] for name in names}
            address, index = row["external_ip_address"], row["external_sw_if_index"]
            if index != NO_INDEX:
                # the record that follows the interface tells twice-nat alone
                hidden = {**told, "flags": row["flags"] & ~6}
                found.append(Reply(**hidden, external_ip_address="0.0.0.0", external_sw_if_index=index))
                address = self._address(index)
            if address:
                found.append(Reply(**told, external_ip_address=address, external_sw_if_index=NO_INDEX))
        return found

    def do_nat44_static_mapping_dump(self) -> list[Reply]:
        return self._statics("ed")

    def do_nat44_ei_static_mapping_dump(self) -> list[Reply]:
        return self._statics("ei")

    def _identity(self, short: str, is_add: bool, more: dict[str, t.Any]) -> None:
        nat = self._nat(short)
        nat.need(UNSUPPORTED if short == "ed" else -169)
        external = more["ip_address"] if more["sw_if_index"] == NO_INDEX else more["sw_if_index"]
        self._map(nat, nat.identities, is_add, {**more, "external": external})

    def do_nat44_add_del_identity_mapping(self, is_add: bool, **more: t.Any) -> None:
        self._identity("ed", is_add, more)

    def do_nat44_ei_add_del_identity_mapping(self, is_add: bool, **more: t.Any) -> None:
        self._identity("ei", is_add, more)

    def _identities(self, short: str) -> list[Reply]:
        found = []
        for row in self._nat(short).identities:
            told = {name: row[name] for name in ("port", "protocol", "vrf_id", "tag", "flags")}
            address, index = row["ip_address"], row["sw_if_index"]
            if index != NO_INDEX:
                found.append(Reply(**told, ip_address="0.0.0.0", sw_if_index=index))
                address = self._address(index)
            if address:
                found.append(Reply(**told, ip_address=address, sw_if_index=NO_INDEX))
        return found

    def do_nat44_identity_mapping_dump(self) -> list[Reply]:
        return self._identities("ed")

    def do_nat44_ei_identity_mapping_dump(self) -> list[Reply]:
        return self._identities("ei")

    def do_nat44_add_del_lb_static_mapping(self, is_add: bool, **more: t.Any) -> None:
        nat = self._nat("ed")
        nat.need(UNSUPPORTED)
        if is_add and more["local_num"] < 2:
            raise NatRefuse(INVALID)
        if is_add and not more["flags"] & 4 and (more["external_addr"], False) not in nat.pools:
            raise NatRefuse(NO_ENTRY)
        self._map(nat, nat.balanced, is_add, {**more, "external": more["external_addr"]})

    def do_nat44_lb_static_mapping_dump(self) -> list[Reply]:
        return [
            Reply(
                **{name: row[name] for name in ("external_addr", "external_port", "protocol", "flags", "tag")},
                affinity=0,
                local_num=row["local_num"],
                locals=[Reply(**one) for one in row["locals"]],
            )
            for row in self._nat("ed").balanced
        ]

    # Sessions

    def _users(self, short: str) -> list[Reply]:
        counts: dict[str, int] = {}
        for address, _port in self._nat(short).sessions:
            counts[address] = counts.get(address, 0) + 1
        return [
            Reply(ip_address=address, vrf_id=0, nsessions=number, nstaticsessions=0)
            for address, number in counts.items()
        ]

    def do_nat44_user_dump(self) -> list[Reply]:
        return self._users("ed")

    def do_nat44_ei_user_dump(self) -> list[Reply]:
        return self._users("ei")

    def do_nat44_ei_user_session_dump(self, ip_address: str, vrf_id: int) -> list[Reply]:
        return [Reply(protocol=17) for address, _port in self._nat("ei").sessions if address == ip_address]

    # The command line

    def nat_summary(self, _words: list[str]) -> str:
        nat = self._nat("ed")
        tables = sorted(number for number, is_ip6 in self.vpp.tables if not is_ip6)
        last = max((tables.index(vrf) for vrf in nat.limits if vrf in tables), default=-1)
        lines = [
            f"max translations per thread: {nat.limits.get(vrf, nat.config['sessions'])} fib {fib}"
            for fib, vrf in enumerate(tables[: last + 1])
        ]
        return "\n".join([*lines, _SUMMARY.format(total=len(nat.sessions))])

    def fib_summary(self, _words: list[str]) -> str:
        tables = sorted(number for number, is_ip6 in self.vpp.tables if not is_ip6)
        locks = {vrf: f"det44-hi:{times}, " for vrf, times in self.vpp.det44.locks.items()}
        return "".join(
            f"ipv4-VRF:{vrf}, fib_index:{fib}, flow hash:[src dst ] epoch:0 flags:none "
            f"locks:[API:1, {locks.get(vrf, '')}]\n"
            for fib, vrf in enumerate(tables)
        )

    def nat_clear(self, words: list[str]) -> str:
        self._nat(words[2]).sessions.clear()
        return ""
