# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A VPP in memory: what its binary API answers and does, as seen with VPP 26.06.

It has the habits that the modules must cope with: an MTU of 90000 and an rx
mode that the driver does not have are accepted in silence, a sub-interface
does not come up below a parent that is down, numbers of interfaces are used
again, a placement is told by thread and set by worker, MAC addresses are
random, a restart forgets everything. The contract tests run on this and on a
real VPP alike.
"""

from __future__ import annotations

import dataclasses
import ipaddress
import itertools
import random
import typing as t
from types import SimpleNamespace as Reply

from ansible_collections.fastpath.bench.plugins.module_utils._vpp.errors import (
    VppError,
    VppGone,
    VppRefused,
    message_missing,
)
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.session import NO_INDEX, Call
from ansible_collections.fastpath.bench.tests.unit.plugins.module_utils._vpp.fake_det44 import Det44, Det44Requests
from ansible_collections.fastpath.bench.tests.unit.plugins.module_utils._vpp.fake_ipsec import Ipsec, IpsecRequests
from ansible_collections.fastpath.bench.tests.unit.plugins.module_utils._vpp.fake_nat44 import (
    Nat44,
    Nat44Requests,
    NatRefuse,
)
from ansible_collections.fastpath.bench.tests.unit.plugins.module_utils._vpp.fake_nsim import Nsim, NsimRequests

ADMIN_UP, LINK_UP = 1, 2
SUB = 1
POLLING, INTERRUPT, ADAPTIVE = 1, 2, 3
API, CLI, INTERFACE, DEFAULT_ROUTE = 8, 9, 4, 20
#: Number, name and priority of the sources of routes that matter here; a lower priority wins.
SOURCES = ((1, "special", 0), (INTERFACE, "interface", 3), (API, "API", 128), (CLI, "CLI", 129))
SOURCES += ((15, "adjacency", 208), (DEFAULT_ROUTE, "default-route", 253))


_PLUGINS = """\
 Plugin path is: /usr/lib/vpp_plugins, plugins shown in load order

     Plugin                                   Version                          Description
  1. af_packet_plugin.so                      26.06-release                    af-packet
"""
_BUFFERS = """\
Pool Name            Index NUMA  Size  Data Size  Total  Avail  Cached   Used
default-numa-0         0     0   2304     2048    11956  11956     0       0
"""
_MEMORY = """\
  base 0x7f3269939000, size 512m, locked, unmap-on-destroy, name 'main heap'
    page stats: page-size 4K, total 131072, populated 22699, not-populated 108373
    total: 512.00M, used: 65.34M, free: 446.66M, trimmable: 423.34M
"""


class Refuse(NatRefuse):
    """A request is answered with this retval."""


@dataclasses.dataclass
class Interface:
    index: int
    name: str
    device: str
    mac: str = "00:00:00:00:00:00"
    up: bool = False
    link_mtu: int = 9000
    mtu: list[int] = dataclasses.field(default_factory=lambda: [9000, 0, 0, 0])
    tag: str = ""
    parent: Interface | None = None
    sub_id: int = 0
    tags: tuple[int, int] = (0, 0)
    sub_flags: int = 0
    addresses: list[str] = dataclasses.field(default_factory=list)
    tables: dict[bool, int] = dataclasses.field(default_factory=lambda: {False: 0, True: 0})
    #: Mode and thread of each receive queue.
    queues: list[list[int]] = dataclasses.field(default_factory=list)
    tx_queues: int = 0
    gso: bool = False
    host: str = ""
    facts: dict[str, t.Any] = dataclasses.field(default_factory=dict)


class FakeVpp:
    """A running VPP. :meth:`session` gives connections to it."""

    def __init__(self, *, workers: int = 1, host: t.Mapping[str, int] | None = None) -> None:
        self.workers = workers
        #: Devices of the kernel in its network namespace, with their MTU.
        self.host: dict[str, int] = dict(host or {})
        self.tap_works = False
        #: Receive queues of each device of the kernel, as AF_XDP takes them.
        self.host_queues = 4
        self.without: set[str] = set()
        #: Counts down with each request; below 0 VPP is gone.
        self.die_in: int | None = None
        self.requests: list[str] = []
        #: What is accepted and not done, by request; to see that reading back notices it.
        self.ignores: set[str] = set()
        self.generation = 0
        self.restart()

    def restart(self) -> None:
        """Started anew: it has forgotten everything, and old connections are dead."""
        self.generation += 1
        self.interfaces: dict[int, Interface] = {0: Interface(0, "local0", "local", link_mtu=0, mtu=[0, 0, 0, 0])}
        self.free: list[int] = []
        self.tables: set[tuple[int, bool]] = {(0, False), (0, True)}
        self.routes: dict[tuple[int, str], dict[int, list[dict[str, t.Any]]]] = {}
        self.sockets: dict[int, str] = {0: "/run/vpp/memif.sock"}
        self.turn = itertools.count()
        self.nat = {"ed": Nat44(63 * 1024), "ei": Nat44(10 * 1024)}
        self.nsim = Nsim()
        self.det44 = Det44()
        self.ipsec = Ipsec()

    def session(self) -> FakeSession:
        return FakeSession(self)

    # Small things

    def get(self, index: int) -> Interface:
        if index not in self.interfaces:
            raise Refuse(-2)
        return self.interfaces[index]

    def new(self, name: str, device: str, **more: t.Any) -> Interface:
        index = self.free.pop() if self.free else max(self.interfaces) + 1
        made = Interface(index, name, device, **more)
        self.interfaces[index] = made
        return made

    def drop(self, gone: Interface) -> None:
        for child in [one for one in self.interfaces.values() if one.parent is gone]:
            self.drop(child)
        del self.interfaces[gone.index]
        self.free.append(gone.index)

    def queue(self, mode: int) -> list[int]:
        return [mode, 1 + next(self.turn) % self.workers if self.workers else 0]

    def named(self, name: str) -> Interface | None:
        return next((one for one in self.interfaces.values() if one.name == name), None)


def _random_mac() -> str:
    return "02:fe:" + ":".join(f"{random.randrange(256):02x}" for _number in range(4))


class FakeSession(Det44Requests, IpsecRequests, Nat44Requests, NsimRequests):
    """One connection, with the methods of the real session."""

    def __init__(self, vpp: FakeVpp) -> None:
        self.vpp = vpp
        self.socket_path = "/run/vpp/api.sock"
        self.generation = vpp.generation

    def __enter__(self) -> FakeSession:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def version(self) -> str:
        return "26.06-release"

    def pid(self) -> int | None:
        return None

    def has(self, request: str) -> bool:
        missing = any(request.startswith(prefix) for prefix in self.vpp.without)
        return not missing and hasattr(self, f"do_{request}")

    def call(self, request: str, **fields: t.Any) -> t.Any:
        return self.batch([Call(request, fields)])[0]

    def batch(self, calls: t.Sequence[Call]) -> list[t.Any]:
        for call in calls:
            if not self.has(call.request):
                raise message_missing(call.request, self.version())
        answers = [self._one(call) for call in calls]
        # as with the real one: what was sent has been done before the first refusal is noticed
        for call, answer in zip(calls, answers):
            retval = getattr(answer, "retval", 0)
            if retval < 0 and retval not in call.tolerated:
                raise VppRefused(call.request, retval, where=call.where, hint=call.hint)
        return answers

    def _one(self, call: Call) -> t.Any:
        vpp = self.vpp
        if vpp.die_in is not None:
            vpp.die_in -= 1
            if vpp.die_in < 0:
                vpp.die_in = None
                vpp.restart()
        if self.generation != vpp.generation:
            raise VppGone("VPP ended or was restarted in the middle", where=self.socket_path, code="vpp_gone")
        vpp.requests.append(call.request)
        if call.request in vpp.ignores:
            return Reply(retval=0)
        try:
            answer = getattr(self, f"do_{call.request}")(**call.fields)
        except NatRefuse as err:
            return Reply(retval=err.retval, sw_if_index=0, vrf_id=0, route=None, reply=err.reply)
        return Reply(retval=0) if answer is None else answer

    # Interfaces

    def do_sw_interface_dump(self, sw_if_index: int = NO_INDEX, name_filter_valid: bool = False) -> t.Any:
        rows = sorted(self.vpp.interfaces.values(), key=lambda one: one.index)
        return [self._row(one) for one in rows if sw_if_index in (NO_INDEX, one.index)]

    def _row(self, one: Interface) -> Reply:
        base = one.parent or one
        linked = base.device != "local" and (base.device in ("af-packet",) or base.up)
        return Reply(
            sw_if_index=one.index,
            sup_sw_if_index=base.index,
            interface_name=one.name,
            interface_dev_type=base.device,
            type=SUB if one.parent else 0,
            l2_address=one.mac,
            flags=ADMIN_UP * one.up | LINK_UP * linked,
            link_mtu=base.link_mtu,
            mtu=list(one.mtu),
            tag=one.tag,
            sub_id=one.sub_id,
            sub_number_of_tags=sum(bool(tag) for tag in one.tags),
            sub_outer_vlan_id=one.tags[0],
            sub_inner_vlan_id=one.tags[1],
            sub_if_flags=one.sub_flags,
        )

    def do_af_packet_create_v3(
        self,
        *,
        host_if_name: str,
        mode: int = 1,
        hw_addr: str = "",
        use_random_hw_addr: bool = False,
        num_rx_queues: int = 1,
        num_tx_queues: int = 1,
        rx_frame_size: int = 0,
        flags: int = 0,
    ) -> Reply:
        vpp = self.vpp
        if any(one.host == host_if_name and one.device == "af-packet" for one in vpp.interfaces.values()):
            raise Refuse(-79)
        if host_if_name not in vpp.host:
            raise Refuse(-71)
        if num_rx_queues == 0:
            # what VPP 26.06 really does
            vpp.restart()
            raise VppGone("VPP ended or was restarted in the middle", where=self.socket_path, code="vpp_gone")
        made = vpp.new(
            f"host-{host_if_name}",
            "af-packet",
            mac=_random_mac() if use_random_hw_addr else hw_addr,
            queues=[vpp.queue(INTERRUPT) for _number in range(num_rx_queues)],
            tx_queues=num_tx_queues,
            host=host_if_name,
            facts={"flags": flags, "frame": rx_frame_size or 2048},
        )
        return Reply(retval=0, sw_if_index=made.index)

    def do_af_packet_delete(self, host_if_name: str) -> None:
        found = [one for one in self.vpp.interfaces.values() if one.host == host_if_name and one.device == "af-packet"]
        if not found:
            raise Refuse(-11)
        self.vpp.drop(found[0])

    def do_af_packet_dump(self) -> list[Reply]:
        found = [one for one in self.vpp.interfaces.values() if one.device == "af-packet" and one.parent is None]
        return [Reply(sw_if_index=one.index, host_if_name=one.host) for one in found]

    def do_af_xdp_create_v3(
        self, host_if: str, name: str = "", rxq_num: int = 1, mode: int = 0, flags: int = 0
    ) -> Reply:
        vpp = self.vpp
        if host_if not in vpp.host:
            raise Refuse(-7)
        if any(one.host == host_if for one in vpp.interfaces.values()):
            raise Refuse(-12)
        if rxq_num > vpp.host_queues and rxq_num != 65535:
            raise Refuse(-3)
        # without a name it has the number of the device in it, counted from 0
        count = sum(one.device == "AF_XDP interface" for one in vpp.interfaces.values())
        queues = [vpp.queue(POLLING) for _number in range(min(rxq_num, vpp.host_queues))]
        made = vpp.new(
            name or f"{host_if}/{count}",
            "AF_XDP interface",
            mac=_random_mac(),
            queues=queues,
            host=host_if,
            facts={"lock": bool(vpp.workers) and not flags & 1},
        )
        return Reply(retval=0, sw_if_index=made.index)

    def do_af_xdp_delete(self, sw_if_index: int) -> None:
        if self.vpp.get(sw_if_index).device != "AF_XDP interface":
            raise Refuse(-2)
        self.vpp.drop(self.vpp.get(sw_if_index))

    def do_create_loopback_instance(
        self, mac_address: str = "00:00:00:00:00:00", is_specified: bool = False, user_instance: int = 0
    ) -> Reply:
        names = {one.name for one in self.vpp.interfaces.values()}
        number = user_instance if is_specified else next(n for n in itertools.count() if f"loop{n}" not in names)
        if f"loop{number}" in names:
            raise Refuse(-31)
        mac = mac_address if mac_address.strip("0:") else f"de:ad:00:00:{number >> 8:02x}:{number & 255:02x}"
        made = self.vpp.new(f"loop{number}", "Loopback", mac=mac)
        return Reply(retval=0, sw_if_index=made.index)

    def do_create_loopback(self, mac_address: str = "00:00:00:00:00:00") -> Reply:
        return self.do_create_loopback_instance(mac_address)

    def do_delete_loopback(self, sw_if_index: int) -> None:
        one = self.vpp.get(sw_if_index)
        if one.device != "Loopback" or one.parent:
            raise Refuse(-2)
        self.vpp.drop(one)

    def do_create_subif(
        self, sw_if_index: int, sub_id: int, sub_if_flags: int, outer_vlan_id: int = 0, inner_vlan_id: int = 0
    ) -> Reply:
        parent = self.vpp.get(sw_if_index)
        tags = (outer_vlan_id, inner_vlan_id)
        for one in self.vpp.interfaces.values():
            if one.parent is parent and one.sub_id == sub_id:
                raise Refuse(-56)
            if one.parent is parent and one.tags == tags:
                raise Refuse(-1)
        made = self.vpp.new(
            f"{parent.name}.{sub_id}",
            parent.device,
            parent=parent,
            sub_id=sub_id,
            tags=tags,
            sub_flags=sub_if_flags,
            mtu=[0, 0, 0, 0],
        )
        return Reply(retval=0, sw_if_index=made.index)

    def do_delete_subif(self, sw_if_index: int) -> None:
        one = self.vpp.get(sw_if_index)
        if one.parent is None:
            raise Refuse(-98)
        self.vpp.drop(one)

    def do_memif_create_v2(self, id: int, socket_id: int = 0, role: int = 0, **more: t.Any) -> Reply:
        vpp = self.vpp
        if socket_id not in vpp.sockets:
            raise Refuse(-73)
        if vpp.named(f"memif{socket_id}/{id}"):
            raise Refuse(-68)
        mac = more.get("hw_addr") or ""
        # no ring before the other end is connected, whatever was asked
        facts = {"id": id, "socket": socket_id, "role": role, "ring": 1}
        mac = mac if mac.strip("0:") else _random_mac()
        made = vpp.new(f"memif{socket_id}/{id}", "memif", mac=mac, facts=facts)
        return Reply(retval=0, sw_if_index=made.index)

    def do_memif_delete(self, sw_if_index: int) -> None:
        self.vpp.drop(self.vpp.get(sw_if_index))

    def do_memif_dump(self) -> list[Reply]:
        found = [one for one in self.vpp.interfaces.values() if one.device == "memif" and one.parent is None]
        return [
            Reply(
                sw_if_index=one.index,
                id=one.facts["id"],
                socket_id=one.facts["socket"],
                role=one.facts["role"],
                ring_size=one.facts["ring"],
            )
            for one in found
        ]

    def do_tap_create_v3(self, id: int = NO_INDEX, **more: t.Any) -> Reply:
        vpp = self.vpp
        if not vpp.tap_works:
            raise Refuse(-11)
        facts = {"id": id, "flags": more.get("tap_flags", 0), "space": more.get("host_namespace", "")}
        queues = [vpp.queue(POLLING) for _number in range(more.get("num_rx_queues", 1))]
        name = more.get("host_if_name") or f"tap{id}"
        mac = _random_mac() if more.get("use_random_mac") else more["mac_address"]
        made = vpp.new(f"tap{id}", "tap", mac=mac, queues=queues, facts=facts, host=name)
        return Reply(retval=0, sw_if_index=made.index)

    def do_tap_delete_v2(self, sw_if_index: int) -> None:
        self.vpp.drop(self.vpp.get(sw_if_index))

    def do_sw_interface_tap_v2_dump(self, sw_if_index: int = NO_INDEX) -> list[Reply]:
        found = [one for one in self.vpp.interfaces.values() if one.device == "tap" and one.parent is None]
        return [
            Reply(
                sw_if_index=one.index,
                id=one.facts["id"],
                tap_flags=one.facts["flags"],
                host_if_name=one.host,
                host_namespace=one.facts["space"],
            )
            for one in found
        ]

    # Properties

    def do_sw_interface_set_flags(self, sw_if_index: int, flags: int) -> None:
        one = self.vpp.get(sw_if_index)
        if flags & ADMIN_UP and one.parent is not None and not one.parent.up:
            raise Refuse(-1)
        one.up = bool(flags & ADMIN_UP)

    def do_sw_interface_set_mtu(self, sw_if_index: int, mtu: list[int]) -> None:
        self.vpp.get(sw_if_index).mtu = list(mtu)

    def do_hw_interface_set_mtu(self, sw_if_index: int, mtu: int) -> None:
        one = self.vpp.get(sw_if_index)
        if one.parent is not None:
            raise Refuse(-7)
        one.link_mtu = mtu

    def do_sw_interface_set_mac_address(self, sw_if_index: int, mac_address: str) -> None:
        one = self.vpp.get(sw_if_index)
        if one.parent is not None:
            raise Refuse(-9)
        one.mac = mac_address

    def do_sw_interface_tag_add_del(self, sw_if_index: int, is_add: bool, tag: str = "") -> None:
        self.vpp.get(sw_if_index).tag = tag if is_add else ""

    def do_feature_gso_enable_disable(self, sw_if_index: int, enable_disable: bool) -> None:
        self.vpp.get(sw_if_index).gso = enable_disable

    def do_sw_interface_set_rx_mode(
        self, sw_if_index: int, mode: int, queue_id_valid: bool = False, queue_id: int = 0
    ) -> None:
        one = self.vpp.get(sw_if_index)
        if one.parent is not None:
            raise Refuse(-7)
        refused: tuple[int, ...] = (ADAPTIVE,) if one.device == "af-packet" else ()
        if one.device == "AF_XDP interface" and one.facts["lock"]:
            refused = (ADAPTIVE, INTERRUPT)
        if mode in refused or (queue_id_valid and queue_id >= len(one.queues)):
            raise Refuse(-9)
        for number, queue in enumerate(one.queues):
            if not queue_id_valid or number == queue_id:
                # 0, 4 and 5 are nonsense and accepted
                queue[0] = mode

    def do_sw_interface_rx_placement_dump(self, sw_if_index: int = NO_INDEX) -> list[Reply]:
        return [
            Reply(sw_if_index=one.index, queue_id=number, worker_id=queue[1], mode=queue[0])
            for one in self.vpp.interfaces.values()
            for number, queue in enumerate(one.queues)
            if sw_if_index in (NO_INDEX, one.index)
        ]

    def do_sw_interface_tx_placement_get(self, sw_if_index: int = NO_INDEX, cursor: int = 0) -> list[Reply]:
        return [
            Reply(sw_if_index=one.index, queue_id=number)
            for one in self.vpp.interfaces.values()
            for number in range(one.tx_queues)
            if sw_if_index in (NO_INDEX, one.index)
        ]

    def do_sw_interface_set_rx_placement(
        self, sw_if_index: int, queue_id: int, worker_id: int = 0, is_main: bool = False
    ) -> None:
        one = self.vpp.get(sw_if_index)
        if queue_id >= len(one.queues) or (not is_main and worker_id >= self.vpp.workers):
            raise Refuse(-9)
        one.queues[queue_id][1] = 0 if is_main else worker_id + 1

    def do_show_threads(self) -> Reply:
        rows = [Reply(id=0, name="vpp_main", type="", pid=1, cpu_id=0, core=0, cpu_socket=0)]
        for number in range(self.vpp.workers):
            node = number * 2 // max(self.vpp.workers, 1)
            rows.append(
                Reply(
                    id=number + 1,
                    name=f"vpp_wk_{number}",
                    type="workers",
                    pid=2 + number,
                    cpu_id=number + 1,
                    core=number + 1,
                    cpu_socket=node if self.vpp.workers > 1 else 0,
                )
            )
        return Reply(retval=0, count=len(rows), thread_data=rows)

    def do_show_version(self) -> Reply:
        return Reply(retval=0, version=self.version(), build_date="2026-06-24T00:00:00", build_directory="")

    # Addresses and tables

    def do_sw_interface_add_del_address(
        self, sw_if_index: int, is_add: bool, prefix: str = "", del_all: bool = False
    ) -> None:
        one = self.vpp.get(sw_if_index)
        if del_all:
            one.addresses = []
            return
        asked = ipaddress.ip_interface(prefix)
        if asked.version == 6 and asked.is_link_local:
            if asked.network.prefixlen != 128:
                raise Refuse(-59)
            return  # taken as the link-local address, which is not listed
        text = asked.with_prefixlen
        if not is_add:
            if text not in one.addresses:
                raise Refuse(-60)
            one.addresses.remove(text)
            return
        table = one.tables[asked.version == 6]
        for other in self.vpp.interfaces.values():
            for held in map(ipaddress.ip_interface, other.addresses):
                if held.version != asked.version or other.tables[asked.version == 6] != table:
                    continue
                same_network = other is one and held.network == asked.network and held.ip != asked.ip
                if held.network.overlaps(asked.network) and not same_network:
                    raise Refuse(-105)
        one.addresses.append(text)

    def do_ip_address_dump(self, sw_if_index: int, is_ipv6: bool = False) -> list[Reply]:
        one = self.vpp.interfaces.get(sw_if_index)
        held = [ipaddress.ip_interface(text) for text in (one.addresses if one else ())]
        return [Reply(sw_if_index=sw_if_index, prefix=a) for a in held if (a.version == 6) == is_ipv6]

    def do_ip_table_add_del(self, table: dict[str, t.Any], is_add: bool = True) -> None:
        key = (table["table_id"], bool(table["is_ip6"]))
        if is_add:
            self.vpp.tables.add(key)
        else:
            self.vpp.tables.discard(key)

    def do_ip_table_dump(self) -> list[Reply]:
        return [Reply(table=Reply(table_id=number, is_ip6=is_ip6)) for number, is_ip6 in sorted(self.vpp.tables)]

    def do_sw_interface_set_table(self, sw_if_index: int, vrf_id: int, is_ipv6: bool = False) -> None:
        one = self.vpp.get(sw_if_index)
        if (vrf_id, is_ipv6) not in self.vpp.tables:
            raise Refuse(-3)
        if any((":" in text) == is_ipv6 for text in one.addresses) and one.tables[is_ipv6] != vrf_id:
            raise Refuse(-114)
        one.tables[is_ipv6] = vrf_id

    def do_sw_interface_get_table(self, sw_if_index: int, is_ipv6: bool = False) -> Reply:
        return Reply(retval=0, vrf_id=self.vpp.get(sw_if_index).tables[is_ipv6])

    # Routes

    def do_fib_source_dump(self) -> list[Reply]:
        return [Reply(src=Reply(id=number, name=name, priority=rank)) for number, name, rank in SOURCES]

    def do_ip_route_add_del_v2(self, route: dict[str, t.Any], is_add: bool = True, is_multipath: bool = False) -> Reply:
        vpp = self.vpp
        prefix = str(ipaddress.ip_network(route["prefix"], strict=False))
        if (route["table_id"], ":" in prefix) not in vpp.tables:
            raise Refuse(-3)
        held = vpp.routes.setdefault((route["table_id"], prefix), {})
        if not is_add:
            held.pop(API, None)
            return Reply(retval=0, stats_index=NO_INDEX)
        if not route["paths"]:
            raise Refuse(-52)
        if any(one["sw_if_index"] != NO_INDEX and one["sw_if_index"] not in vpp.interfaces for one in route["paths"]):
            raise Refuse(-54)
        held[API] = list(route["paths"]) if not is_multipath else held.get(API, []) + list(route["paths"])
        return Reply(retval=0, stats_index=1)

    def _sources(self, table: int, prefix: str) -> dict[int, list[dict[str, t.Any]]]:
        found = dict(self.vpp.routes.get((table, prefix), {}))
        for one in self.vpp.interfaces.values():
            for text in one.addresses:
                network = ipaddress.ip_interface(text).network
                if one.up and one.tables[network.version == 6] == table and str(network) == prefix:
                    found[INTERFACE] = [{"sw_if_index": one.index}]
        if prefix in ("0.0.0.0/0", "::/0"):
            found[DEFAULT_ROUTE] = [{"sw_if_index": NO_INDEX, "type": 2}]
        return found

    def do_ip_route_lookup_v2(self, table_id: int, prefix: t.Any, exact: int = 0) -> Reply:
        if (table_id, ":" in str(prefix)) not in self.vpp.tables:
            raise Refuse(-3)
        found = self._sources(table_id, str(prefix))
        if not found:
            raise Refuse(-6)
        ranks = {number: rank for number, _name, rank in SOURCES}
        source = min(found, key=lambda number: ranks[number])
        return Reply(retval=0, route=_route(table_id, str(prefix), source, found[source]))

    def do_ip_route_v2_dump(self, src: int, table: dict[str, t.Any]) -> list[Reply]:
        result = []
        for (number, prefix), held in self.vpp.routes.items():
            if number == table["table_id"] and (":" in prefix) == table["is_ip6"] and src in held:
                result.append(Reply(route=_route(number, prefix, src, held[src])))
        return result

    # The command line

    def do_cli_inband(self, cmd: str) -> Reply:
        words = cmd.split()
        for start, answer in (
            ("show hardware-interfaces", self._hardware),
            ("show interface", self._features),
            ("ip route del", self._cli_route_del),
            ("ip route add", self._cli_route),
            ("show plugins", lambda _words: _PLUGINS),
            ("show buffers", lambda _words: _BUFFERS),
            ("show memory main-heap", lambda _words: _MEMORY),
            ("show nat44 summary", self.nat_summary),
            ("show ip fib summary", self.fib_summary),
            ("clear nat44 ed sessions", self.nat_clear),
            ("clear nat44 ei sessions", self.nat_clear),
            ("show nsim", self.nsim_show),
            ("show crypto handlers", self.crypto_handlers),
            ("set nsim", self.nsim_set),
        ):
            if cmd.startswith(start):
                return Reply(retval=0, reply=answer(words))
        raise Refuse(-1)

    def _features(self, words: list[str]) -> str:
        one = self.vpp.named(words[2])
        state = "gso-ip4" if one is not None and one.gso else "none configured"
        others = f"{self.nsim_features(one)}{self.det44_features(one)}"
        return f"Feature paths configured on {words[2]}...\n\nip4-output:\n  {state}\n{others}"

    def _cli_route_del(self, words: list[str]) -> str:
        self.vpp.routes.get((int(words[5]), words[3]), {}).pop(CLI, None)
        return ""

    def _cli_route(self, words: list[str]) -> str:
        prefix, via = words[3], words[words.index("via") + 1]
        index = NO_INDEX
        if len(words) > words.index("via") + 2:
            one = self.vpp.named(words[words.index("via") + 2])
            assert one is not None
            index = one.index
        path = {"sw_if_index": index, "nh": {"address": {"ip4": via}}}
        self.vpp.routes.setdefault((0, prefix), {}).setdefault(CLI, []).append(path)
        return ""

    def _hardware(self, words: list[str]) -> str:
        names = words[2:]
        lines = ["              Name                Idx   Link  Hardware"]
        for one in self.vpp.interfaces.values():
            if one.parent is not None or (names and one.name not in names):
                continue
            lines.append(f"{one.name:<35}{one.index}     up   {one.name}")
            lines.append("  Link speed: unknown")
            if one.device == "af-packet":
                flags = one.facts["flags"]
                lines += ["  Linux PACKET socket interface v3", "  FEATURES:"]
                lines += ["    qdisc-bpass-enabled"] if flags & 1 else []
                lines += ["    cksum-gso-enabled"] if flags & 2 else []
                size = one.facts["frame"]
                lines += ["  RX Queue 0:", f"    block size:65536 nr:160  frame size:{size} nr:5120 next block:0"]
                lines += ["  TX Queue 0:", "    block size:69206016 nr:1  frame size:67584 nr:1024 next frame:0"]
            elif one.device == "AF_XDP interface":
                lines += [f"  netdev {one.host}\0\0\0", f"  flags: {'syscall-lock ' if one.facts['lock'] else ''}"]
        return "\n".join(lines) + "\n"


def _route(table: int, prefix: str, source: int, paths: list[dict[str, t.Any]]) -> Reply:
    shown = []
    for path in paths:
        address = path.get("nh", {}).get("address", {})
        attached = path["sw_if_index"] != NO_INDEX
        shown.append(
            Reply(
                sw_if_index=path["sw_if_index"],
                table_id=0 if attached else path.get("table_id", 0),
                weight=path.get("weight", 1),
                preference=path.get("preference", 0),
                type=path.get("type", 0),
                proto=int("ip6" in address) if address else int(":" in prefix),
                n_labels=path.get("n_labels", 0),
                nh=Reply(address=Reply(ip4=address.get("ip4", "0.0.0.0"), ip6=address.get("ip6", "::"))),
            )
        )
    network = ipaddress.ip_network(prefix)
    return Reply(table_id=table, prefix=network, src=source, n_paths=len(shown), paths=shown)


class FakeLinks:
    """The kernel's devices as the fake VPP sees them, with the methods of the real look-up."""

    def __init__(self, vpp: FakeVpp) -> None:
        self.vpp = vpp

    def known(self) -> bool:
        return True

    def mtu_bytes(self, name: str) -> int | None:
        return self.vpp.host.get(name)

    def require(self, name: str) -> None:
        if name == "lo":
            raise VppError("this is the loopback device", where=name, code="loopback_device")
        if name not in self.vpp.host:
            raise VppError("VPP sees no such interface", where=name, code="no_host_interface")
