# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The contract with VPP: run on the fake and, with the marker vpp, on a real VPP 26.06."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._vpp import info, interface_run, placement, route
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.errors import VppGone, VppRefused
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.session import NO_INDEX, Call
from ansible_collections.fastpath.bench.tests.unit.plugins.module_utils._vpp.conftest import HOST, Fake
from ansible_collections.fastpath.bench.tests.unit.plugins.module_utils._vpp.fake_vpp import FakeVpp

ANY = tuple(range(-200, 0))
MISSING = 4711


class FakeOfFour(Fake):
    """With four workers."""

    def __init__(self) -> None:
        self.vpp = FakeVpp(workers=4, host=HOST)


class Box:
    """Short words for the tests."""

    def __init__(self, vpp: t.Any) -> None:
        self.vpp = vpp

    def interfaces(self, *config: dict[str, t.Any], state: str = "merged", **options: t.Any) -> dict[str, t.Any]:
        with self.vpp.session() as session:
            return interface_run.run(session, config, state, links=self.vpp.links(session), **options)

    def routes(self, *routes: dict[str, t.Any], state: str = "replaced", **options: t.Any) -> dict[str, t.Any]:
        with self.vpp.session() as session:
            return route.run(session, routes, state, **options)

    def place(self, policy: str = "explicit", **options: t.Any) -> dict[str, t.Any]:
        with self.vpp.session() as session:
            return placement.run(session, policy=policy, **options)

    def raw(self, request: str, **fields: t.Any) -> t.Any:
        """The answer, whatever its retval."""
        with self.vpp.session() as session:
            return session.batch([Call(request, fields, ANY)])[0]

    def row(self, index: int) -> t.Any:
        return self.raw("sw_interface_dump", sw_if_index=index)[0]


@pytest.fixture
def box(vpp: t.Any) -> Box:
    return Box(vpp)


def af_packet(host: str = "eth1", **more: t.Any) -> dict[str, t.Any]:
    return {"type": "af_packet", "host_interface": host, **more}


def loopback(instance: int, **more: t.Any) -> dict[str, t.Any]:
    return {"type": "loopback", "instance": instance, **more}


def vlan(parent: str, number: int, **more: t.Any) -> dict[str, t.Any]:
    return {"type": "vlan", "parent": parent, "vlan_id": number, **more}


def refused(code: str, call: t.Callable[..., t.Any], *args: t.Any, **options: t.Any) -> BenchError:
    with pytest.raises(BenchError) as caught:
        call(*args, **options)
    assert caught.value.code == code, caught.value
    return caught.value


# What VPP itself answers, which the modules are built on


def test_retvals_of_creating_and_removing(box: Box) -> None:
    create = {"host_if_name": "eth1", "mode": 1, "use_random_hw_addr": True}
    first = box.raw("af_packet_create_v3", **create)
    assert first.retval == 0
    assert box.raw("af_packet_create_v3", **create).retval == -79
    assert box.raw("af_packet_create_v3", **{**create, "host_if_name": "nope"}).retval == -71
    sub = {"sw_if_index": first.sw_if_index, "sub_id": 5, "sub_if_flags": 18, "outer_vlan_id": 5}
    below = box.raw("create_subif", **sub)
    assert below.retval == 0
    assert box.raw("create_subif", **sub).retval == -56
    assert box.raw("create_subif", **{**sub, "sub_id": 6}).retval == -1
    # a number that no VLAN can have is accepted in silence
    assert box.raw("create_subif", **{**sub, "sub_id": 7, "outer_vlan_id": 5000}).retval == 0
    assert box.raw("delete_subif", sw_if_index=first.sw_if_index).retval == -98
    assert box.raw("delete_loopback", sw_if_index=first.sw_if_index).retval == -2
    # what lives in it dies with it
    assert box.raw("af_packet_delete", host_if_name="eth1").retval == 0
    assert box.raw("sw_interface_dump", sw_if_index=below.sw_if_index) == []
    assert box.raw("af_packet_delete", host_if_name="eth1").retval == -11
    assert box.raw("create_loopback_instance", is_specified=True, user_instance=3).retval == 0
    assert box.raw("create_loopback_instance", is_specified=True, user_instance=3).retval == -31
    assert box.raw("memif_create_v2", id=1, socket_id=0).retval == 0
    assert box.raw("memif_create_v2", id=1, socket_id=0).retval == -68
    assert box.raw("memif_create_v2", id=1, socket_id=9).retval == -73


def test_silent_acceptance_and_other_habits(box: Box) -> None:
    index = box.raw("af_packet_create_v3", host_if_name="eth1", mode=1, use_random_hw_addr=True).sw_if_index
    row = box.row(index)
    assert (row.interface_name, row.link_mtu, list(row.mtu)) == ("host-eth1", 9000, [9000, 0, 0, 0])
    assert str(row.l2_address).startswith("02:fe:")
    assert box.raw("sw_interface_set_mtu", sw_if_index=index, mtu=[90000, 0, 0, 0]).retval == 0
    assert list(box.row(index).mtu) == [90000, 0, 0, 0]
    mode = {"sw_if_index": index}
    assert [box.raw("sw_interface_set_rx_mode", **mode, mode=one).retval for one in (1, 2, 3)] == [0, 0, -9]
    # nonsense is accepted, and the mode is then none of the known ones
    assert box.raw("sw_interface_set_rx_mode", **mode, mode=5).retval == 0
    assert int(box.raw("sw_interface_rx_placement_dump", sw_if_index=index)[0].mode) == 5
    place = {"sw_if_index": index, "queue_id": 0}
    assert box.raw("sw_interface_set_rx_placement", **{**place, "queue_id": 7}).retval == -9
    assert box.raw("sw_interface_set_rx_placement", **place, worker_id=7).retval == -9
    assert box.raw("sw_interface_set_rx_placement", **place, worker_id=0).retval == 0
    # set by worker, told by thread
    assert box.raw("sw_interface_rx_placement_dump", sw_if_index=index)[0].worker_id == 1
    assert box.raw("sw_interface_set_rx_placement", **place, is_main=True).retval == 0
    assert box.raw("sw_interface_rx_placement_dump", sw_if_index=index)[0].worker_id == 0
    below = box.raw("create_subif", sw_if_index=index, sub_id=5, sub_if_flags=18, outer_vlan_id=5).sw_if_index
    assert list(box.row(below).mtu) == [0, 0, 0, 0]
    assert box.raw("sw_interface_set_flags", sw_if_index=below, flags=1).retval == -1
    assert box.raw("sw_interface_set_flags", sw_if_index=index, flags=1).retval == 0
    assert box.raw("sw_interface_set_flags", sw_if_index=below, flags=1).retval == 0
    assert box.raw("sw_interface_set_rx_mode", sw_if_index=below, mode=1).retval == -7
    assert box.raw("sw_interface_set_mac_address", sw_if_index=below, mac_address="02:00:00:00:00:01").retval == -9
    assert box.raw("sw_interface_set_flags", sw_if_index=MISSING, flags=1).retval == -2


def test_retvals_of_addresses_and_tables(box: Box) -> None:
    one, two = (box.raw("create_loopback").sw_if_index for _time in range(2))

    def add(index: int, prefix: str, is_add: bool = True) -> int:
        return int(box.raw("sw_interface_add_del_address", sw_if_index=index, is_add=is_add, prefix=prefix).retval)

    assert add(one, "192.0.2.1/24") == 0
    assert [add(one, text) for text in ("192.0.2.1/24", "192.0.2.1/25", "192.0.2.9/32")] == [-105, -105, -105]
    assert add(one, "192.0.2.2/24") == 0
    assert [add(two, text) for text in ("192.0.2.3/24", "192.0.0.3/16")] == [-105, -105]
    assert add(one, "198.51.100.1/24", is_add=False) == -60
    assert add(one, "fe80::1/64") == -59
    assert add(one, "2001:db8::1/64") == 0
    assert [str(row.prefix) for row in box.raw("ip_address_dump", sw_if_index=one, is_ipv6=True)] == ["2001:db8::1/64"]
    assert box.raw("ip_address_dump", sw_if_index=MISSING, is_ipv6=True) == []
    assert box.raw("sw_interface_set_table", sw_if_index=two, is_ipv6=False, vrf_id=7).retval == -3
    table = {"table_id": 7, "is_ip6": False, "name": ""}
    assert [box.raw("ip_table_add_del", is_add=True, table=table).retval for _time in range(2)] == [0, 0]
    assert box.raw("sw_interface_set_table", sw_if_index=one, is_ipv6=False, vrf_id=7).retval == -114
    assert box.raw("sw_interface_set_table", sw_if_index=two, is_ipv6=False, vrf_id=7).retval == 0
    # in another table there is no conflict
    assert add(two, "192.0.2.3/24") == 0


def test_numbers_of_interfaces_are_used_again(box: Box) -> None:
    one, two = (box.raw("create_loopback").sw_if_index for _time in range(2))
    assert box.raw("delete_loopback", sw_if_index=one).retval == 0
    assert box.raw("create_loopback").sw_if_index == one != two


def test_a_restart_forgets_everything_and_breaks_sessions(box: Box) -> None:
    box.interfaces(af_packet(up=True), loopback(1))
    mac = next(one["mac"] for one in box.interfaces(state="gathered")["gathered"] if one["type"] == "af_packet")
    with box.vpp.session() as session:
        box.vpp.restart()
        with pytest.raises(VppGone):
            session.call("show_version")
    assert box.interfaces(state="gathered")["gathered"] == []
    again = box.interfaces(af_packet(up=True), loopback(1))
    assert again["changed"]
    assert next(one["mac"] for one in again["interfaces"] if one["type"] == "af_packet") != mac


# vpp_interface

ROUTER = (
    vlan("host-eth2", 100, addresses=["10.9.0.1/24", "2001:db8:9::1/64"], up=True),
    af_packet(
        "eth2",
        rx_queues=2,
        tx_queues=2,
        mtu_bytes=9000,
        mtu_ip6_bytes=1400,
        up=True,
        addresses=["192.0.2.1/24"],
        rx_mode="polling",
        tag="wan",
        vrf=5,
        mac="02-00-00-00-00-99",
        checksum_gso=False,
    ),
    loopback(3, addresses=["10.8.0.1/32"], up=True, gso=True),
    {"type": "memif", "memif_id": 4, "memif_role": "master"},
)


def test_a_whole_router_in_one_call_and_again(box: Box) -> None:
    told = box.interfaces(*ROUTER, check_mode=True)
    assert told["changed"]
    assert box.interfaces(state="gathered")["gathered"] == []
    done = box.interfaces(*ROUTER)
    assert done["diff"] == told["diff"]
    assert {one["name"] for one in done["changes"]} == {"host-eth2", "host-eth2.100", "loop3", "memif0/4"}
    there = {one["name"]: one for one in done["interfaces"]}
    wan = there["host-eth2"]
    assert (wan["rx_queues"], wan["tx_queues"], wan["rx_mode"], wan["vrf"]) == (2, 2, "polling", 5)
    assert (wan["mac"], wan["tag"], wan["checksum_gso"]) == ("02:00:00:00:00:99", "wan", False)
    assert there["host-eth2.100"]["addresses"] == ["10.9.0.1/24", "2001:db8:9::1/64"]
    again = box.interfaces(*ROUTER)
    assert (again["changed"], again["changes"], again["diff"]) == (False, [], {"before": {}, "after": {}})


def test_what_is_gathered_can_be_given_back(box: Box) -> None:
    box.interfaces(*ROUTER)
    gathered = box.interfaces(state="gathered")["gathered"]
    assert not box.interfaces(*gathered, state="overridden")["changed"]
    box.vpp.restart()
    assert box.interfaces(*gathered, state="overridden")["changed"]
    assert not box.interfaces(*gathered)["changed"]


def test_merged_leaves_alone_what_is_not_given(box: Box) -> None:
    box.interfaces(loopback(1, addresses=["10.0.1.1/24", "10.0.1.2/24"], tag="kept", up=True))
    assert not box.interfaces({"name": "loop1", "up": True})["changed"]
    only = box.interfaces({"name": "loop1", "addresses": ["10.0.2.1/24"], "addresses_state": "present"})
    assert only["interfaces"][0]["addresses"] == ["10.0.1.1/24", "10.0.1.2/24", "10.0.2.1/24"]
    exact = box.interfaces({"name": "loop1", "addresses": ["10.0.2.1/24"]})
    assert exact["interfaces"][0]["addresses"] == ["10.0.2.1/24"]
    assert exact["interfaces"][0]["tag"] == "kept"


def test_replaced_and_overridden(box: Box) -> None:
    box.interfaces(*ROUTER)
    done = box.interfaces({"name": "host-eth2", "up": True}, state="replaced")
    assert {one["property"] for one in done["changes"]} == {"addresses", "vrf", "tag", "mtu"}
    assert not box.interfaces({"name": "host-eth2", "up": True}, state="replaced")["changed"]
    box.interfaces(loopback(3, up=True), state="overridden")
    assert [one["name"] for one in box.interfaces(state="gathered")["gathered"]] == ["loop3"]
    assert box.interfaces(state="overridden")["changed"]
    assert box.interfaces(state="gathered")["gathered"] == []


def test_deleted_twice(box: Box) -> None:
    box.interfaces(*ROUTER)
    done = box.interfaces(*ROUTER, state="deleted")
    assert [one["action"] for one in done["changes"]] == ["remove"] * 4
    assert not box.interfaces(*ROUTER, state="deleted")["changed"]
    refused("bad_option", box.interfaces, state="deleted")


def test_an_address_moves_from_one_interface_to_another_in_one_call(box: Box) -> None:
    box.interfaces(loopback(1, addresses=["10.0.0.1/24"]), loopback(2, addresses=["10.0.1.1/24"]))
    box.interfaces(loopback(1, addresses=["10.0.1.1/24"]), loopback(2, addresses=["10.0.0.1/24"]))
    there = {one["name"]: one["addresses"] for one in box.interfaces(state="gathered")["gathered"]}
    assert there == {"loop1": ["10.0.1.1/24"], "loop2": ["10.0.0.1/24"]}


def test_a_change_of_vrf_keeps_the_addresses(box: Box) -> None:
    addresses = ["10.0.0.1/24", "2001:db8::1/64"]
    box.interfaces(loopback(1, addresses=addresses))
    done = box.interfaces({"name": "loop1", "vrf": 9})
    assert [one["property"] for one in done["changes"]] == ["vrf"]
    there = done["interfaces"][0]
    assert (there["vrf"], there["addresses"]) == (9, addresses)


def test_what_cannot_be_changed_in_place_needs_recreate(box: Box) -> None:
    box.interfaces(*ROUTER)
    changed = af_packet("eth2", rx_queues=1, checksum_gso=True)
    error = refused("needs_recreate", box.interfaces, changed)
    assert "rx_queues is 2, asked is 1" in str(error)
    assert "checksum_gso" in str(error)
    done = box.interfaces(changed, recreate=True)
    assert {(one["name"], one["action"]) for one in done["changes"]} == {
        (name, action) for name in ("host-eth2", "host-eth2.100") for action in ("remove", "create")
    }
    # all else is as it was, also what lives in it and the MAC
    there = {one["name"]: one for one in box.interfaces(state="gathered")["gathered"]}
    wan = there["host-eth2"]
    assert (wan["rx_queues"], wan["checksum_gso"], wan["tx_queues"]) == (1, True, 2)
    assert (wan["mac"], wan["vrf"], wan["addresses"], wan["up"]) == ("02:00:00:00:00:99", 5, ["192.0.2.1/24"], True)
    assert there["host-eth2.100"]["addresses"] == ["10.9.0.1/24", "2001:db8:9::1/64"]
    assert there["host-eth2.100"]["up"]
    assert not box.interfaces(changed, recreate=True)["changed"]


def test_recreated_keeps_a_mac_that_nobody_asked_for(box: Box) -> None:
    mac = box.interfaces(af_packet(rx_queues=1))["interfaces"][0]["mac"]
    assert box.interfaces(af_packet(rx_queues=2), recreate=True)["interfaces"][0]["mac"] == mac


def test_an_mtu_over_the_link_is_refused(box: Box) -> None:
    error = refused("mtu_over_link", box.interfaces, af_packet("eth1", mtu_bytes=9000))
    assert "eth1 carries 1500" in str(error)
    assert box.interfaces(state="gathered")["gathered"] == []
    refused("mtu_over_link", box.interfaces, af_packet("eth2", mtu_bytes=9001))
    box.interfaces(af_packet("eth1", mtu_bytes=1500))
    for one in ("mtu_ip4_bytes", "mtu_ip6_bytes", "mtu_mpls_bytes"):
        refused("mtu_over_link", box.interfaces, {"name": "host-eth1", one: 1501})
    refused("mtu_over_link", box.interfaces, vlan("host-eth1", 5, mtu_bytes=1501))
    refused("mtu_over_link", box.interfaces, loopback(1, mtu_bytes=9001))
    done = box.interfaces(af_packet("eth2", mtu_bytes=9000))
    # a ring of version 3 carries packets that are larger than its frames, so it is told, not warned
    assert [(one["code"], one["severity"]) for one in done["findings"]] == [("mtu_over_frame", "info")]
    box.interfaces(af_packet("eth2", rx_frame_size_bytes=16384), recreate=True)
    assert box.interfaces(af_packet("eth2", mtu_bytes=9000))["findings"] == []


def test_rx_modes_that_the_driver_does_not_have(box: Box) -> None:
    error = refused("rx_mode_unsupported", box.interfaces, af_packet(rx_mode="adaptive"))
    assert "af_packet" in str(error)
    assert "polling and interrupt" in str(error)
    refused("rx_mode_unsupported", box.interfaces, loopback(1, rx_mode="polling"))
    box.interfaces({"type": "memif", "memif_id": 1})
    refused("no_queues", box.interfaces, {"name": "memif0/1", "rx_mode": "polling"})


def test_a_mode_that_is_none_is_noticed(box: Box) -> None:
    index = box.interfaces(af_packet())["interfaces"][0]["sw_if_index"]
    box.raw("sw_interface_set_rx_mode", sw_if_index=index, mode=5)
    done = box.interfaces(af_packet(rx_mode="interrupt"))
    assert (done["changes"][0]["before"], done["changes"][0]["after"]) == ("unknown", "interrupt")


def test_what_is_not_there_is_named_with_what_is(box: Box) -> None:
    box.interfaces(loopback(1))
    assert "loop1" in str(refused("no_interface", box.interfaces, {"name": "nope", "up": True}))
    assert "loop1" in str(refused("no_parent", box.interfaces, vlan("nope", 5)))
    refused("no_host_interface", box.interfaces, af_packet("nope"))
    refused("loopback_device", box.interfaces, af_packet("lo"))
    box.interfaces(vlan("loop1", 5))
    assert "loop1.5" in str(refused("vlan_taken", box.interfaces, vlan("loop1", 5, sub_id=6)))


def test_a_name_that_the_other_options_contradict(box: Box) -> None:
    box.interfaces(af_packet("eth1"), loopback(1))
    error = refused("name_mismatch", box.interfaces, {**af_packet("eth1", up=True), "name": "loop1"})
    assert "which is host-eth1" in str(error)
    error = refused("name_mismatch", box.interfaces, {**loopback(2), "name": "uplink"})
    assert "names this interface loop2" in str(error)
    refused("name_mismatch", box.interfaces, {**loopback(1), "name": "host-eth1"}, state="deleted")
    assert not box.interfaces({**loopback(1), "name": "loop1"})["changed"]


def test_a_refusal_names_request_retval_and_interface(box: Box) -> None:
    box.interfaces(loopback(1, addresses=["10.0.0.1/24"]))
    with pytest.raises(VppRefused) as caught:
        box.interfaces(loopback(2, addresses=["10.0.0.2/24"]))
    assert (caught.value.retval_name, caught.value.where) == ("ADDRESS_IN_USE", "loop2")
    assert "10.0.0.2/24" in str(caught.value)
    # what was done before stays, and the rest follows when it is put right
    assert box.interfaces(loopback(2, addresses=["10.0.1.2/24"]))["changed"]
    with pytest.raises(VppRefused, match=r"SYSCALL_ERROR_1.*vhost"):
        box.interfaces({"type": "tap", "instance": 1})


def test_af_xdp(box: Box) -> None:
    asked = {"type": "af_xdp", "host_interface": "eth1", "xdp_mode": "copy", "mac": "02:fe:00:00:00:01", "up": True}
    done = box.interfaces({**asked, "rx_mode": "interrupt", "mtu_bytes": 1500})
    # VPP's own name for it would depend on how many there are. All queues that the device has, as the others' packets
    # would pass VPP by.
    held = done["interfaces"][0]
    assert (held["name"], held["mac"], held["rx_queues"]) == ("xdp-eth1", asked["mac"], 4)
    assert held["rx_mode"] == "interrupt"
    assert not box.interfaces(asked)["changed"]
    box.interfaces({"type": "loopback", "instance": 3})
    assert box.interfaces(asked, state="deleted")["changed"]
    assert box.interfaces({**asked, "rx_queues": 2, "rx_mode": "polling"})["interfaces"][0]["rx_queues"] == 2


def test_af_xdp_that_would_lose_packets(box: Box) -> None:
    asked = {"type": "af_xdp", "host_interface": "eth2", "up": True}
    # a device of 9000 gives larger packets than a buffer holds
    assert "carries 1778" in str(refused("mtu_over_frame", box.interfaces, asked))
    refused("mtu_over_frame", box.interfaces, {**asked, "mtu_bytes": 1779})
    refused("rx_mode_unsupported", box.interfaces, {**asked, "rx_mode": "adaptive"})


# vpp_rx_placement


def test_placement(box: Box) -> None:
    box.interfaces(af_packet(rx_queues=2))
    asked = [
        {"interface": "host-eth1", "queue": 0, "worker": 0},
        {"interface": "host-eth1", "queue": 1, "main": True},
    ]
    told = box.place(placements=asked, check_mode=True)
    assert [(one["thread"], one["thread_name"]) for one in told["placements"]] == [(1, "vpp_wk_0"), (0, "vpp_main")]
    done = box.place(placements=asked)
    assert done["placements"] == told["placements"]
    assert [(one["name"], one["before"], one["after"]) for one in done["changes"]] == [("host-eth1 queue 1", 0, "main")]
    assert not box.place(placements=asked)["changed"]
    assert box.place("round_robin")["changed"]
    assert not box.place("spread", interfaces=["host-eth1"])["changed"]
    assert not box.place("numa")["changed"]


def test_placements_that_cannot_be(box: Box) -> None:
    box.interfaces(af_packet(rx_queues=2), loopback(1))

    def place(*queues: int, interface: str = "host-eth1", worker: int = 0) -> BenchError:
        asked = [{"interface": interface, "queue": queue, "worker": worker} for queue in queues]
        with pytest.raises(BenchError) as caught:
            box.place(placements=asked)
        return caught.value

    absent = place(7)
    assert (absent.code, "Its queues are 0, 1" in str(absent)) == ("no_queue", True)
    worker = place(0, worker=3)
    assert (worker.code, "0 (vpp_wk_0, thread 1)" in str(worker)) == ("no_worker", True)
    many = place(0, 1, 2, 3)
    assert (many.code, "4 queues are placed, the interface has 2" in str(many)) == ("more_than_queues", True)
    assert place(1, 1).code == "duplicate_queue"
    assert place(0, interface="loop1").code == "no_queues"
    assert place(0, interface="nope").code == "no_interface"


def test_four_queues_on_four_workers_in_the_vpp_in_memory() -> None:
    """VPP wants a CPU for each worker, so a real one with four needs five; see roles/vpp/README.md."""
    box = Box(FakeOfFour())
    box.interfaces(af_packet(rx_queues=4))
    asked = [{"interface": "host-eth1", "queue": number, "worker": number} for number in range(4)]
    done = box.place(placements=asked)
    threads = [(one["queue"], one["worker"], one["thread"], one["thread_name"]) for one in done["placements"]]
    assert threads == [(number, number, number + 1, f"vpp_wk_{number}") for number in range(4)]
    assert not box.place(placements=asked)["changed"]
    with pytest.raises(BenchError) as caught:
        box.place(placements=[{"interface": "host-eth1", "queue": 0, "worker": 4}])
    assert (caught.value.code, "3 (vpp_wk_3, thread 4)" in str(caught.value)) == ("no_worker", True)


# vpp_route


def test_routes(box: Box) -> None:
    box.interfaces(af_packet(addresses=["10.1.1.1/24"], up=True))
    asked = [
        {
            "prefix": "203.0.113.0/24",
            "paths": [
                {"via": "10.1.1.9", "interface": "host-eth1"},
                {"via": "10.1.1.10", "interface": "host-eth1", "weight": 3},
            ],
        },
        {"prefix": "203.0.114.0/24", "table": 9, "paths": [{"via": "10.1.1.9"}]},
        {"prefix": "2001:db8:f::/48", "paths": [{"via": "fe80::1", "interface": "host-eth1"}]},
        {"prefix": "0.0.0.0/0", "paths": [{"via": "10.1.1.9"}]},
        {"prefix": "203.0.116.0/24", "drop": True},
    ]
    told = box.routes(*asked, check_mode=True)
    assert box.routes(state="gathered")["gathered"] == []
    done = box.routes(*asked)
    assert done["diff"] == told["diff"]
    assert len(done["changes"]) == 5
    assert not box.routes(*asked)["changed"]
    gathered = box.routes(state="gathered")["gathered"]
    assert len(gathered) == 5
    assert not box.routes(*gathered, state="overridden")["changed"]
    one = box.routes({"prefix": "203.0.113.0/24", "paths": [{"via": "10.1.1.11"}]})
    assert [path["via"] for path in one["routes"][0]["paths"]] == ["10.1.1.11"]
    more = box.routes({"prefix": "203.0.113.0/24", "paths": [{"via": "10.1.1.12"}]}, state="merged")
    assert [path["via"] for path in more["routes"][0]["paths"]] == ["10.1.1.11", "10.1.1.12"]
    assert not box.routes({"prefix": "203.0.113.0/24", "paths": [{"via": "10.1.1.12"}]}, state="merged")["changed"]
    assert box.routes({"prefix": "203.0.113.0/24"}, state="deleted")["changed"]
    assert not box.routes({"prefix": "203.0.113.0/24"}, state="deleted")["changed"]
    assert box.routes(state="overridden")["changed"]
    assert box.routes(state="gathered")["gathered"] == []


def test_routes_of_the_command_line_are_static_ones_too(box: Box) -> None:
    box.interfaces(af_packet(addresses=["10.1.1.1/24"], up=True))
    box.raw("cli_inband", cmd="ip route add 203.0.113.0/24 via 10.1.1.9 host-eth1")
    asked = {"prefix": "203.0.113.0/24", "paths": [{"via": "10.1.1.9", "interface": "host-eth1"}]}
    assert not box.routes(asked)["changed"]
    other = {"prefix": "203.0.113.0/24", "paths": [{"via": "10.1.1.10", "interface": "host-eth1"}]}
    assert box.routes(other)["changed"]
    # the one that VPP uses is told
    assert [one["via"] for one in box.routes(state="gathered")["gathered"][0]["paths"]] == ["10.1.1.10"]
    assert not box.routes(other, state="overridden")["changed"]
    # both are gone, not only the one that hid the other
    assert box.routes(other, state="deleted")["changed"]
    assert box.routes(state="gathered")["gathered"] == []


def test_routes_that_cannot_be(box: Box) -> None:
    box.interfaces(af_packet(addresses=["10.1.1.1/24"], up=True))
    refused("prefix_taken", box.routes, {"prefix": "10.1.1.0/24", "drop": True})
    via = [{"via": "10.1.1.9", "interface": "nope"}]
    assert "host-eth1" in str(refused("no_interface", box.routes, {"prefix": "203.0.113.0/24", "paths": via}))
    assert "203.0.113.0/24" in str(refused("bad_option", box.routes, {"prefix": "203.0.113.1/24", "drop": True}))
    refused("bad_option", box.routes, {"prefix": "203.0.113.0/24"})
    refused("bad_option", box.routes, {"prefix": "2001:db8::/32", "paths": [{"via": "fe80::1"}]})


# vpp_info


def test_info(box: Box) -> None:
    box.interfaces(loopback(1, up=True))
    with box.vpp.session() as session:
        read = info.read(session)
    assert set(read) == {*info.SUBSETS, "workers"}
    assert read["version"]["version"].startswith("26.06")
    assert read["workers"] == 1
    assert [(one["thread"], one["worker"]) for one in read["threads"]] == [(0, None), (1, 0)]
    assert "af_packet_plugin.so" in {one["name"] for one in read["plugins"]}
    assert [one["name"] for one in read["interfaces"]] == ["loop1"]
    assert read["buffers"][0]["total"] > read["buffers"][0]["used"] >= 0
    assert 0 < read["memory"]["used_bytes"] < read["memory"]["total_bytes"] == 512 * 2**20


def test_unknown_requests_are_named(box: Box) -> None:
    with box.vpp.session() as session:
        assert not session.has("frobnicate")
        refused("vpp_request_unknown", session.call, "frobnicate")
        assert session.call("sw_interface_dump", sw_if_index=NO_INDEX)[0].interface_name == "local0"
