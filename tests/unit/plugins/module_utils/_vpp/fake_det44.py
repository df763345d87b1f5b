# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""DET44 of the VPP in memory, with the habits of VPP 26.06.

It answers 1 where it is switched on or off twice, and works while it is off. Taking an interface out puts its feature
on it once more, and being switched off later ends VPP. Locks of tables are never given back. Overlapping mappings are
taken, the first one counts.
"""

from __future__ import annotations

import dataclasses
import ipaddress
import typing as t
from types import SimpleNamespace as Reply

from ansible_collections.fastpath.bench.plugins.module_utils._vpp.errors import VppGone
from ansible_collections.fastpath.bench.tests.unit.plugins.module_utils._vpp.fake_nat44 import NatRefuse

_DEFAULT_TIMEOUTS = (300, 7440, 240, 60)
_FEATURES = {True: "det44-in2out", False: "det44-out2in"}
#: Inside address and port, outside address and port of the far end.
Flow = tuple[str, int, str, int]


@dataclasses.dataclass
class Det44:
    """Its state."""

    on: bool = False
    timeouts: tuple[int, ...] = _DEFAULT_TIMEOUTS
    #: VRF to the times that it was locked.
    locks: dict[int, int] = dataclasses.field(default_factory=dict)
    #: Interface to whether it is an inside.
    sides: dict[int, bool] = dataclasses.field(default_factory=dict)
    features: dict[int, list[str]] = dataclasses.field(default_factory=dict)
    maps: dict[tuple[str, str], set[Flow]] = dataclasses.field(default_factory=dict)
    #: An interface was taken out: it does not survive being switched off.
    stale: bool = False

    def flow(self, flow: Flow) -> None:
        for (inside, _outside), sessions in self.maps.items():
            if ipaddress.ip_address(flow[0]) in ipaddress.ip_network(inside):
                if sum(one[0] == flow[0] for one in sessions) < 1000:
                    sessions.add(flow)
                return

    def of_user(self, user: str) -> list[Flow]:
        return sorted(one for sessions in self.maps.values() for one in sessions if one[0] == user)


class Det44Requests:
    """What the session of the fake answers about DET44; ``vpp`` is the fake itself."""

    vpp: t.Any

    @property
    def _det(self) -> Det44:
        return t.cast("Det44", self.vpp.det44)

    def do_det44_plugin_enable_disable(self, enable: bool, inside_vrf: int, outside_vrf: int) -> Reply:
        if enable == self._det.on:
            return Reply(retval=1)
        self._det.on = enable
        if self._det.stale and not enable:
            self.vpp.restart()
            raise VppGone("VPP ended", code="vpp_gone")
        if enable:
            for vrf in (outside_vrf, inside_vrf):
                self._det.locks[vrf] = self._det.locks.get(vrf, 0) + 1
                self.vpp.tables.add((vrf, False))
            return Reply(retval=0)
        for index, inside in list(self._det.sides.items()):
            # whichever side it is: the one that a number that is not 0 stands for
            self._det.features.setdefault(index, []).append(_FEATURES[True])
            del self._det.sides[index]
            del inside
        self._det.maps.clear()
        self._det.timeouts = _DEFAULT_TIMEOUTS
        return Reply(retval=0)

    def do_det44_interface_add_del_feature(self, is_add: bool, is_inside: bool, sw_if_index: int) -> None:
        if sw_if_index not in self.vpp.interfaces:
            raise NatRefuse(-2)
        if is_add == (sw_if_index in self._det.sides):
            raise NatRefuse(-7)
        self._det.features.setdefault(sw_if_index, []).append(_FEATURES[is_inside])
        if is_add:
            self._det.sides[sw_if_index] = is_inside
        else:
            self._det.stale = True
            del self._det.sides[sw_if_index]

    def do_det44_interface_dump(self) -> list[Reply]:
        return [
            Reply(sw_if_index=index, is_inside=inside, is_outside=not inside)
            for index, inside in self._det.sides.items()
        ]

    def do_det44_add_del_map(self, is_add: bool, in_addr: str, in_plen: int, out_addr: str, out_plen: int) -> None:
        assert in_plen <= out_plen, "VPP ends with a signal"
        key = tuple(
            str(ipaddress.ip_network((address, length), strict=False))
            for address, length in ((in_addr, in_plen), (out_addr, out_plen))
        )
        if is_add == (key in self._det.maps):
            raise NatRefuse(-81 if is_add else -6)
        if is_add:
            self._det.maps[key[0], key[1]] = set()
        else:
            del self._det.maps[key[0], key[1]]

    def do_det44_map_dump(self) -> list[Reply]:
        rows = []
        for (inside, outside), sessions in self._det.maps.items():
            nets = [ipaddress.IPv4Network(text) for text in (inside, outside)]
            sharing = nets[0].num_addresses // nets[1].num_addresses
            rows.append(
                Reply(
                    in_addr=nets[0].network_address,
                    in_plen=nets[0].prefixlen,
                    out_addr=nets[1].network_address,
                    out_plen=nets[1].prefixlen,
                    sharing_ratio=sharing,
                    ports_per_host=64512 // sharing,
                    ses_num=len(sessions),
                )
            )
        return rows

    def do_det44_get_timeouts(self) -> Reply:
        udp, established, transitory, icmp = self._det.timeouts
        return Reply(retval=0, udp=udp, tcp_established=established, tcp_transitory=transitory, icmp=icmp)

    def do_det44_set_timeouts(self, udp: int, tcp_established: int, tcp_transitory: int, icmp: int) -> None:
        given = (udp, tcp_established, tcp_transitory, icmp)
        self._det.timeouts = tuple(new or old for new, old in zip(given, self._det.timeouts))

    def do_det44_session_dump(self, user_addr: str) -> list[Reply]:
        return [
            Reply(in_port=port, out_port=1024, ext_addr=far, ext_port=far_port, state=1, expire=300)
            for _user, port, far, far_port in self._det.of_user(str(user_addr))
        ]

    def do_det44_close_session_in(self, in_addr: str, in_port: int, ext_addr: str, ext_port: int) -> None:
        for sessions in self._det.maps.values():
            if (in_addr, in_port, ext_addr, ext_port) in sessions:
                sessions.remove((in_addr, in_port, ext_addr, ext_port))
                return
        raise NatRefuse(-6)

    def do_det44_close_session_out(self, out_addr: str, out_port: int, ext_addr: str, ext_port: int) -> None:
        raise NatRefuse(-6)

    def do_feature_enable_disable(self, sw_if_index: int, enable: bool, arc_name: str, feature_name: str) -> None:
        held = self._det.features.setdefault(sw_if_index, [])
        assert arc_name == "ip4-unicast"
        if enable:
            held.append(feature_name)
        elif feature_name in held:
            held.remove(feature_name)

    def det44_features(self, one: t.Any) -> str:
        held = self._det.features.get(getattr(one, "index", -1), [])
        return "\nip4-unicast:\n" + "".join(f"  {name}\n" for name in sorted(held) or ["none configured"])
