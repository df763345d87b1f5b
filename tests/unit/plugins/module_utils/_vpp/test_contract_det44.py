# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The contract with VPP's deterministic NAT: run on the fake and, with the marker vpp, on a real VPP 26.06."""

from __future__ import annotations

import json
import typing as t

import pytest

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._vpp import (
    det44,
    det44_run,
    hardware,
    interface_run,
    nat44_run,
)
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.errors import VppGone
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.session import NO_INDEX, Call
from ansible_collections.fastpath.bench.plugins.modules import vpp_det44

ANY = tuple(range(-200, 0))
PORTS = [{"name": "host-eth1", "role": "inside"}, {"name": "host-eth2", "role": "outside"}]
MAPS = [{"inside": "10.1.0.0/28", "outside": "198.51.100.16/31"}]
FULL: dict[str, t.Any] = {"interfaces": PORTS, "mappings": MAPS, "timeouts": {"udp_s": 100, "icmp_s": 30}}


class Box:
    """Short words for the tests."""

    def __init__(self, vpp: t.Any) -> None:
        self.vpp = vpp
        config: list[dict[str, t.Any]] = [
            {"type": "af_packet", "host_interface": "eth1", "up": True, "addresses": ["10.0.0.1/8"]},
            {"type": "af_packet", "host_interface": "eth2", "up": True, "addresses": ["198.51.100.1/24"]},
        ]
        with vpp.session() as session:
            interface_run.run(session, config, "merged", links=vpp.links(session))

    def det(self, state: str = "merged", **options: t.Any) -> dict[str, t.Any]:
        more = {name: options.pop(name) for name in ("reenable", "check_mode") if name in options}
        with self.vpp.session() as session:
            result = det44_run.run(session, options, state, **more)
        json.dumps(result)  # Ansible could not hand it on otherwise
        return result

    def raw(self, request: str, **fields: t.Any) -> t.Any:
        """The answer, whatever its retval."""
        with self.vpp.session() as session:
            assert session.has("det44_close_session_out")
            return session.batch([Call(request, fields, ANY)])[0]

    def index(self, name: str) -> int:
        rows = self.raw("sw_interface_dump", sw_if_index=NO_INDEX)
        return next(row.sw_if_index for row in rows if row.interface_name == name)

    def features(self, name: str) -> list[str]:
        text = self.raw("cli_inband", cmd=f"show interface {name} features").reply
        return [one for one in hardware.features(text).get(det44.ARC, []) if one.startswith("det44")]

    def locks(self) -> dict[int, int]:
        return det44.locks(self.raw("cli_inband", cmd="show ip fib summary").reply)

    def flows(self, number: int) -> None:
        """One UDP packet of each from 10.1.0.1 arrives on eth1, for a host behind eth2."""
        if self.vpp.real:
            self.vpp.flows(number)
            return
        for flow in range(number):
            self.vpp.vpp.det44.flow(("10.1.0.1", 10_000 + flow, "198.51.100.2", 9))


@pytest.fixture
def box(vpp: t.Any) -> Box:
    return Box(vpp)


def refused(code: str, call: t.Callable[..., t.Any], *args: t.Any, **options: t.Any) -> BenchError:
    with pytest.raises(BenchError) as caught:
        call(*args, **options)
    assert caught.value.code == code, caught.value
    return caught.value


# What VPP itself answers, which the module is built on


def test_retvals_and_habits(box: Box) -> None:
    switch = "det44_plugin_enable_disable"
    vrfs = {"inside_vrf": 0, "outside_vrf": 0}
    assert box.locks() == {}
    assert [box.raw(switch, enable=True, **vrfs).retval for _time in range(2)] == [0, 1]
    assert box.locks() == {0: 2}
    side = {"is_inside": True, "sw_if_index": box.index("host-eth1")}
    add = "det44_interface_add_del_feature"
    assert [box.raw(add, is_add=True, **side).retval for _time in range(2)] == [0, -7]
    assert box.features("host-eth1") == ["det44-in2out"]
    # taken out, it has its feature once more
    assert [box.raw(add, is_add=False, **side).retval for _time in range(2)] == [0, -7]
    assert box.features("host-eth1") == ["det44-in2out"] * 2
    feature = {"enable": False, "arc_name": det44.ARC, "feature_name": "det44-in2out"}
    for _time in range(3):
        assert box.raw("feature_enable_disable", sw_if_index=side["sw_if_index"], **feature).retval == 0
    assert box.features("host-eth1") == []
    one = {"in_addr": "10.1.0.0", "in_plen": 24, "out_addr": "198.51.100.16", "out_plen": 31}
    assert [box.raw("det44_add_del_map", is_add=True, **one).retval for _time in range(2)] == [0, -81]
    # one that overlaps is taken in silence
    assert box.raw("det44_add_del_map", is_add=True, **{**one, "in_plen": 25}).retval == 0
    assert [box.raw("det44_add_del_map", is_add=False, **one).retval for _time in range(2)] == [0, -6]
    fields = {"in_addr": "10.9.0.1", "in_port": 1, "ext_addr": "198.51.100.2", "ext_port": 1}
    assert box.raw("det44_close_session_in", **fields).retval == -6


def test_switching_it_off(box: Box) -> None:
    box.det(**FULL)
    off = {"enable": False, "inside_vrf": 0, "outside_vrf": 0}
    assert [box.raw("det44_plugin_enable_disable", **off).retval for _time in range(2)] == [0, 1]
    assert box.raw("det44_map_dump") == []
    # what it locked stays locked
    assert box.locks() == {0: 2}


def test_vpp_does_not_survive_that_it_is_switched_off_once_an_interface_was_taken_out(box: Box) -> None:
    box.det(**FULL)
    assert box.det("deleted", interfaces=PORTS[:1])["changed"]
    with pytest.raises(VppGone):
        box.raw("det44_plugin_enable_disable", enable=False, inside_vrf=0, outside_vrf=0)


# The module


def test_everything_is_made_read_back_and_kept(box: Box) -> None:
    assert box.det("gathered")["det44"] == {"enabled": False}
    wanted = box.det(check_mode=True, **FULL)
    assert wanted["changed"]
    assert box.det("gathered")["det44"] == {"enabled": False}
    made = box.det(**FULL)
    assert sorted(one["name"] for one in made["changes"] if one["action"] == "create") == [
        "DET44",
        "interface host-eth1",
        "interface host-eth2",
        "mapping 10.1.0.0/28 to 198.51.100.16/31",
    ]
    told = made["det44"]
    assert told["timeouts"] == {"udp_s": 100, "tcp_established_s": 7440, "tcp_transitory_s": 240, "icmp_s": 30}
    assert (told["interfaces"], told["mappings"]) == (PORTS, MAPS)
    assert made["sessions"]["mappings"][0]["ports_per_address"] == 8064
    for state in ("merged", "replaced"):
        again = box.det(state, **FULL)
        assert (again["changed"], again["changes"]) == (False, [])
        assert not box.det(state, check_mode=True, **FULL)["changed"]
    back = {name: value for name, value in box.det("gathered")["det44"].items() if name != "enabled"}
    assert not box.det("replaced", **back)["changed"]


def test_switched_on_alone_it_is_known_to_be_on(box: Box) -> None:
    assert box.det()["changed"]
    assert not box.det()["changed"]
    # nothing is seen of it
    assert box.det("gathered")["det44"] == {"enabled": False}
    assert [one["name"] for one in box.det(interfaces=PORTS[:1])["changes"]] == ["interface host-eth1"]


def test_replaced_removes_and_sets_to_defaults(box: Box) -> None:
    box.det(**FULL)
    told = box.det("replaced", interfaces=PORTS[:1])
    assert told["changed"]
    assert told["det44"]["interfaces"] == PORTS[:1]
    assert (told["det44"]["mappings"], told["det44"]["timeouts"]["udp_s"]) == ([], 300)
    assert box.features("host-eth2") == []


def test_deleted_leaves_no_feature_behind(box: Box) -> None:
    box.det(**FULL)
    gone = box.det("deleted", interfaces=[{"name": "host-eth2"}])
    assert gone["changed"]
    assert (box.features("host-eth1"), box.features("host-eth2")) == (["det44-in2out"], [])
    box.det(interfaces=PORTS)
    assert box.det("deleted")["changed"]
    assert (box.features("host-eth1"), box.features("host-eth2")) == ([], [])
    assert box.det("gathered")["det44"] == {"enabled": False}
    assert not box.det("deleted")["changed"]
    assert box.det(**FULL)["changed"]
    assert not box.det(**FULL)["changed"]


def test_features_that_another_left_are_taken_off(box: Box) -> None:
    box.det(**FULL)
    # as one does who does not know VPP
    box.raw("det44_plugin_enable_disable", enable=False, inside_vrf=0, outside_vrf=0)
    assert box.features("host-eth2")
    said = box.det(check_mode=True, interfaces=PORTS[:1])
    assert said["changed"]
    box.det(interfaces=PORTS[:1])
    assert (box.features("host-eth1"), box.features("host-eth2")) == (["det44-in2out"], [])


def test_roles_of_an_interface_change(box: Box) -> None:
    for role in ("inside", "outside", "inside"):
        told = box.det(interfaces=[{"name": "host-eth1", "role": role}])
        assert told["det44"]["interfaces"] == [{"name": "host-eth1", "role": role}]
        assert box.features("host-eth1") == [det44.FEATURES[role]]


def test_another_vrf_needs_a_restart(box: Box) -> None:
    before = box.det(**FULL)["det44"]
    for check_mode in (True, False):
        error = refused("needs_restart", box.det, outside_vrf=7, check_mode=check_mode)
        assert "Restart VPP" in str(error)
    assert box.det("gathered")["det44"] == before
    assert not box.det(outside_vrf=0)["changed"]


def test_a_restart_brings_another_vrf(box: Box) -> None:
    box.vpp.restart()
    again = Box(box.vpp)
    assert again.det(outside_vrf=7, **FULL)["changed"]
    assert not again.det(outside_vrf=7, **FULL)["changed"]
    assert set(again.locks()) == {0, 7}


@pytest.mark.parametrize(
    ("inside", "outside"),
    [
        ("10.1.0.0/28", "198.51.100.16/27"),
        ("10.0.0.0/28", "198.51.100.0/24"),
        ("10.0.0.0/11", "198.51.100.0/24"),
        ("10.0.0.0/12", "198.51.100.1/32"),
        ("10.0.0.1/28", "198.51.100.1/32"),
        ("fd00::/120", "198.51.100.1/32"),
    ],
)
def test_mappings_that_vpp_would_not_survive_are_refused(box: Box, inside: str, outside: str) -> None:
    refused("bad_option", box.det, mappings=[{"inside": inside, "outside": outside}])
    assert box.det("gathered")["det44"] == {"enabled": False}


def test_what_vpp_would_take_in_silence(box: Box) -> None:
    error = refused("no_interface", box.det, interfaces=[{"name": "nope", "role": "inside"}])
    assert "host-eth1" in str(error)
    refused("bad_option", box.det, interfaces=[{"name": "host-eth1"}])
    refused("bad_option", box.det, timeouts={"udp_s": 0})
    two = [MAPS[0], {"inside": "10.1.0.0/29", "outside": "198.51.100.32/32"}]
    refused("bad_option", box.det, mappings=two)
    box.det(mappings=MAPS)
    refused("det44_overlap", box.det, mappings=two[1:])
    assert box.det("replaced", mappings=two[1:])["det44"]["mappings"] == two[1:]
    # 65536 addresses with 1000 sessions each are 1.5 GiB
    error = refused("no_memory", box.det, mappings=[{"inside": "10.2.0.0/16", "outside": "198.51.100.64/26"}])
    assert "main heap" in str(error)


def test_not_on_an_interface_of_nat44(box: Box) -> None:
    with box.vpp.session() as session:
        nat44_run.run(session, {"interfaces": PORTS[:1]}, "merged")
    error = refused("nat44_conflict", box.det, **FULL)
    assert "host-eth1" in str(error)
    assert box.det(interfaces=PORTS[1:])["changed"]


# Sessions


def test_sessions_are_counted_listed_closed_and_cleared(box: Box) -> None:
    assert not box.det("cleared")["changed"]
    box.det(**FULL)
    box.flows(300)
    told = box.det("gathered", users=["10.1.0.1", "10.1.0.2"])["sessions"]
    assert (told["total"], told["mappings"][0]["sessions"]) == (300, 300)
    assert (len(told["users"]["10.1.0.1"]), told["users"]["10.1.0.2"], told["users_full"]) == (300, [], [])
    one = told["users"]["10.1.0.1"][0]
    assert (one["state"], one["external"]) == ("udp_active", "198.51.100.2")
    ends = {name: one[name] for name in ("inside", "inside_port", "external", "external_port")}
    assert box.det("closed", close=[ends], check_mode=True)["changed"]
    assert box.det("closed", close=[ends])["closed"] == [ends]
    assert not box.det("closed", close=[ends])["changed"]
    assert box.det("gathered")["sessions"]["total"] == 299
    assert box.det("cleared", check_mode=True)["sessions"]["total"] == 299
    cleared = box.det("cleared")
    assert (cleared["changed"], cleared["sessions_before"]["total"], cleared["sessions"]["total"]) == (True, 299, 0)
    # it goes on translating
    box.flows(20)
    assert box.det("gathered")["sessions"]["total"] == 20


def test_an_inside_address_has_a_thousand_sessions(box: Box) -> None:
    box.det(**FULL)
    box.flows(1200)
    told = box.det("gathered", users=["10.1.0.1"])["sessions"]
    assert (told["total"], told["users_full"]) == (1000, ["10.1.0.1"])


def test_the_modules_options_are_those_of_the_work() -> None:
    spec = vpp_det44.argument_spec()
    assert set(spec["state"]["choices"]) == set(det44_run.STATES)
    assert spec["interfaces"]["options"]["role"]["choices"] == list(det44.ROLES)
