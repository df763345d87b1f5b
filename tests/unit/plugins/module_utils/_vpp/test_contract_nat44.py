# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The contract with VPP's NAT44: run on the fake and, with the marker vpp, on a real VPP 26.06."""

from __future__ import annotations

import json
import typing as t

import pytest

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._vpp import interface_run, nat44_run
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.session import NO_INDEX, Call

ANY = tuple(range(-200, 0))
ED, EI = "endpoint_dependent", "endpoint_independent"
PORTS = {
    ED: [{"name": "host-eth1", "role": "inside"}, {"name": "host-eth2", "role": "outside"}],
    EI: [{"name": "host-eth1", "role": "inside"}, {"name": "host-eth2", "role": "outside"}],
}
POOL = [{"first": "198.51.100.10", "last": "198.51.100.11"}]

FULL: dict[str, dict[str, t.Any]] = {
    ED: {
        "sessions": 20000,
        "forwarding": True,
        "mss_clamp_bytes": 1300,
        "timeouts": {"udp_s": 100, "icmp_s": 30},
        "session_limits": [{"vrf": 0, "sessions": 1000}],
        "interfaces": [
            {"name": "host-eth1", "role": "inside"},
            {"name": "host-eth2", "role": "both"},
            {"name": "loop0", "role": "output"},
        ],
        "pools": [
            *POOL,
            {"first": "198.51.100.40", "vrf": 7},
            {"first": "198.51.100.50", "twice_nat": True},
            {"interface": "host-eth2"},
        ],
        "static_mappings": [
            {"local": "10.0.0.5", "external": "198.51.100.30", "tag": "all of it"},
            {
                "local": "10.0.0.6",
                "external": "198.51.100.10",
                "protocol": "tcp",
                "local_port": 80,
                "external_port": 8080,
                "twice_nat": "twice",
            },
            {
                "local": "10.0.0.7",
                "external_interface": "host-eth2",
                "protocol": "udp",
                "local_port": 53,
                "external_port": 5353,
                "twice_nat": "self",
                "out2in_only": True,
            },
        ],
        "identity_mappings": [
            {"address": "10.0.0.9", "vrf": 7},
            {"interface": "host-eth2", "protocol": "udp", "port": 500},
        ],
        "load_balanced_mappings": [
            {
                "external": "198.51.100.11",
                "external_port": 443,
                "protocol": "tcp",
                "affinity_s": 60,
                "backends": [{"address": f"10.0.0.2{n}", "port": 443, "probability": 50} for n in (1, 2)],
            }
        ],
    },
    EI: {
        "mode": EI,
        "sessions": 20000,
        "users": 2000,
        "user_sessions": 500,
        "forwarding": True,
        "mss_clamp_bytes": 1300,
        "timeouts": {"udp_s": 100, "icmp_s": 30},
        "interfaces": [
            {"name": "host-eth1", "role": "inside"},
            {"name": "host-eth2", "role": "both"},
            {"name": "loop0", "role": "output"},
        ],
        "pools": [*POOL, {"first": "198.51.100.30"}, {"interface": "host-eth2"}],
        "static_mappings": [
            {"local": "10.0.0.5", "external": "198.51.100.30", "tag": "all of it"},
            {
                "local": "10.0.0.7",
                "external_interface": "host-eth2",
                "protocol": "udp",
                "local_port": 53,
                "external_port": 5353,
            },
        ],
        "identity_mappings": [
            {"address": "10.0.0.9", "vrf": 7},
            {"interface": "host-eth2", "protocol": "udp", "port": 500},
        ],
    },
}


class Box:
    """Short words for the tests."""

    def __init__(self, vpp: t.Any) -> None:
        self.vpp = vpp
        self.wire()

    def wire(self) -> None:
        ports = (("eth1", "10.0.0.1/8"), ("eth2", "198.51.100.1/24"))
        config: list[dict[str, t.Any]] = [
            {"type": "af_packet", "host_interface": name, "up": True, "addresses": [address]} for name, address in ports
        ]
        config.append({"type": "loopback", "instance": 0, "up": True, "addresses": ["192.0.2.1/24"]})
        with self.vpp.session() as session:
            interface_run.run(session, config, "merged", links=self.vpp.links(session))

    def nat(self, state: str = "merged", mode: str = ED, **options: t.Any) -> dict[str, t.Any]:
        more = {name: options.pop(name) for name in ("reenable", "check_mode") if name in options}
        with self.vpp.session() as session:
            given = {"mode": mode, **options}
            result = nat44_run.run(session, given, state, stats_socket=self.vpp.stats_socket, **more)
        json.dumps(result)  # Ansible could not hand it on otherwise
        return result

    def raw(self, request: str, **fields: t.Any) -> t.Any:
        """The answer, whatever its retval."""
        with self.vpp.session() as session:
            return session.batch([Call(request, fields, ANY)])[0]

    def index(self, name: str) -> int:
        rows = self.raw("sw_interface_dump", sw_if_index=NO_INDEX)
        return next(row.sw_if_index for row in rows if row.interface_name == name)


@pytest.fixture
def box(vpp: t.Any) -> Box:
    return Box(vpp)


def refused(code: str, call: t.Callable[..., t.Any], *args: t.Any, **options: t.Any) -> BenchError:
    with pytest.raises(BenchError) as caught:
        call(*args, **options)
    assert caught.value.code == code, caught.value
    return caught.value


# What VPP itself answers, which the module is built on


def test_retvals_of_the_endpoint_dependent_plugin(box: Box) -> None:
    inside, outside = box.index("host-eth1"), box.index("host-eth2")
    enable = "nat44_ed_plugin_enable_disable"
    address = {"first_ip_address": "198.51.100.10", "last_ip_address": "198.51.100.10", "vrf_id": NO_INDEX}
    assert box.raw("nat44_show_running_config").sessions == 0
    assert box.raw("nat44_add_del_address_range", is_add=True, **address).retval == -126
    assert box.raw("nat44_interface_add_del_feature", is_add=True, flags=0x20, sw_if_index=inside).retval == -126
    assert box.raw(enable, enable=False).retval == -169
    assert box.raw(enable, enable=True).retval == 0
    # the second call changes nothing
    assert box.raw(enable, enable=True, sessions=2000).retval == -170
    assert box.raw("nat44_show_running_config").sessions == 63 * 1024
    feature = "nat44_interface_add_del_feature"
    assert [box.raw(feature, is_add=True, flags=0x20, sw_if_index=inside).retval for _time in range(2)] == [0, 0]
    assert box.raw(feature, is_add=True, flags=0x10, sw_if_index=4711).retval == -2
    assert box.raw(feature, is_add=True, flags=0x10, sw_if_index=outside).retval == 0
    assert box.raw("nat44_ed_add_del_output_interface", is_add=True, sw_if_index=outside).retval == -81
    # of an interface with one side VPP takes that one, whichever was named
    assert box.raw(feature, is_add=False, flags=0x20, sw_if_index=outside).retval == 0
    assert [row.sw_if_index for row in box.raw("nat44_interface_dump")] == [inside]
    assert box.raw(feature, is_add=False, flags=0x20, sw_if_index=outside).retval == -6
    add = "nat44_add_del_address_range"
    assert [box.raw(add, is_add=True, **address).retval for _time in range(2)] == [0, -81]
    assert [box.raw(add, is_add=False, **address).retval for _time in range(2)] == [0, -6]
    assert box.raw("nat44_set_session_limit", session_limit=500, vrf_id=99).retval == -1
    # both at once are taken
    assert box.raw("nat44_ei_plugin_enable_disable", enable=True).retval == 0
    assert box.raw("nat44_ei_plugin_enable_disable", enable=True, sessions=5).retval == -170
    assert box.raw("nat44_ei_show_running_config").sessions == 10 * 1024
    assert box.raw("nat44_ei_plugin_enable_disable", enable=False).retval == 0


def test_disabling_with_some_mappings_says_that_it_failed_and_does_it(box: Box) -> None:
    box.nat(static_mappings=[{"local": "10.0.0.5", "external": "198.51.100.30"}])
    assert box.raw("nat44_ed_plugin_enable_disable", enable=False).retval == 0
    box.nat(identity_mappings=[{"address": "10.0.0.9", "protocol": "udp", "port": 500, "vrf": 7}])
    assert box.raw("nat44_ed_plugin_enable_disable", enable=False).retval == -168
    assert box.raw("nat44_identity_mapping_dump") == []
    assert box.raw("nat44_show_running_config").sessions == 0


def test_the_other_plugins_retvals_when_it_is_off(box: Box) -> None:
    fields = {"first_ip_address": "198.51.100.10", "last_ip_address": "198.51.100.10", "vrf_id": NO_INDEX}
    assert box.raw("nat44_ei_add_del_address_range", is_add=True, **fields).retval == -169
    assert box.raw("nat44_ei_plugin_enable_disable", enable=False).retval == -169


# The module


@pytest.mark.parametrize("mode", [ED, EI])
def test_everything_is_made_read_back_and_kept(box: Box, mode: str) -> None:
    asked = {name: value for name, value in FULL[mode].items() if name != "mode"}
    wanted = box.nat(mode=mode, check_mode=True, **asked)
    assert wanted["changed"]
    assert box.nat("gathered", mode)["nat44"] == {"mode": mode, "enabled": False}
    made = box.nat(mode=mode, **asked)
    assert made["changes"] == wanted["changes"]
    told = made["nat44"]
    assert (told["sessions"], told["forwarding"], told["mss_clamp_bytes"]) == (20000, True, 1300)
    assert told["timeouts"] == {"udp_s": 100, "tcp_established_s": 7440, "tcp_transitory_s": 240, "icmp_s": 30}
    assert told["interfaces"] == asked["interfaces"]
    for state in ("merged", "replaced"):
        again = box.nat(state, mode, **asked)
        assert (again["changed"], again["changes"]) == (False, [])
    # and what was gathered makes the same
    told = box.nat("gathered", mode)["nat44"]
    back = {name: value for name, value in told.items() if name not in ("mode", "enabled")}
    assert not box.nat("replaced", mode, **back)["changed"]


@pytest.mark.parametrize("mode", [ED, EI])
def test_the_address_of_an_interface_is_not_taken_for_a_pool_of_its_own(box: Box, mode: str) -> None:
    asked = {name: value for name, value in FULL[mode].items() if name != "mode"}
    told = box.nat(mode=mode, **asked)["nat44"]
    assert [one.get("interface") for one in told["pools"] if "interface" in one] == ["host-eth2"]
    assert not any(one.get("first") == "198.51.100.1" for one in told["pools"])
    assert not any(one.get("external") == "198.51.100.1" for one in told["static_mappings"])
    assert not any(one.get("address") == "198.51.100.1" for one in told["identity_mappings"])


@pytest.mark.parametrize("mode", [ED, EI])
def test_replaced_removes_and_sets_to_defaults(box: Box, mode: str) -> None:
    asked = {name: value for name, value in FULL[mode].items() if name != "mode"}
    box.nat(mode=mode, **asked)
    fixed = {name: asked[name] for name in ("sessions", "users", "user_sessions") if name in asked}
    told = box.nat("replaced", mode, interfaces=PORTS[mode], **fixed)
    assert told["changed"]
    assert not told["reenabled"]
    nat = told["nat44"]
    assert (nat["forwarding"], nat["mss_clamp_bytes"], nat["timeouts"]["udp_s"]) == (False, 0, 300)
    assert (nat["pools"], nat["static_mappings"], nat["identity_mappings"]) == ([], [], [])
    assert (nat["load_balanced_mappings"], nat["session_limits"]) == ([], [])
    assert nat["interfaces"] == PORTS[mode]
    assert not box.nat("replaced", mode, interfaces=PORTS[mode], **fixed)["changed"]


@pytest.mark.parametrize("mode", [ED, EI])
def test_another_limit_needs_reenable_and_brings_all_back(box: Box, mode: str) -> None:
    asked = {name: value for name, value in FULL[mode].items() if name != "mode"}
    before = box.nat(mode=mode, **asked)["nat44"]
    error = refused("needs_reenable", box.nat, mode=mode, sessions=30000)
    for word in ("sessions is 20000, asked is 30000", "reenable: true", "Nothing was changed"):
        assert word in str(error)
    assert box.nat("gathered", mode)["nat44"] == before
    refused("needs_reenable", box.nat, mode=mode, sessions=30000, check_mode=True)
    said = box.nat(mode=mode, sessions=30000, reenable=True, check_mode=True)
    assert (said["changed"], said["reenabled"], said["nat44"]["sessions"]) == (True, True, 20000)
    done = box.nat(mode=mode, sessions=30000, reenable=True)
    assert (done["changed"], done["reenabled"]) == (True, True)
    assert done["changes"] == said["changes"]
    assert done["nat44"] == {**before, "sessions": 30000}
    again = box.nat(mode=mode, sessions=30000, reenable=True)
    assert (again["changed"], again["reenabled"]) == (False, False)


def test_one_of_the_two_at_a_time(box: Box) -> None:
    box.nat(sessions=1000)
    error = refused("nat44_conflict", box.nat, mode=EI)
    assert "state deleted" in str(error)
    assert box.nat("gathered", EI)["nat44"] == {"mode": EI, "enabled": False}
    assert not box.nat("deleted", EI)["changed"]
    assert box.nat("deleted")["changed"]
    assert box.nat(mode=EI)["changed"]
    refused("nat44_conflict", box.nat)
    # someone had both before: it can still be cleaned up
    box.raw("nat44_ed_plugin_enable_disable", enable=True)
    refused("nat44_conflict", box.nat, mode=EI)
    assert box.nat("deleted")["changed"]
    assert not box.nat(mode=EI)["changed"]


def test_roles_of_an_interface_change_in_every_way(box: Box) -> None:
    roles = ("inside", "outside", "both", "output", "inside", "both", "outside", "output", "both", "inside")
    for mode in (ED, EI):
        for role in roles:
            told = box.nat(mode=mode, interfaces=[{"name": "host-eth1", "role": role}])
            assert told["nat44"]["interfaces"] == [{"name": "host-eth1", "role": role}]
        assert box.nat("deleted", mode, interfaces=[{"name": "host-eth1"}])["changed"]
        assert box.nat("gathered", mode)["nat44"]["interfaces"] == []
        box.nat("deleted", mode)


def test_pools_and_mappings_that_differ_are_made_again(box: Box) -> None:
    mapping = {"local": "10.0.0.5", "external": "198.51.100.30"}
    box.nat(pools=[{"first": "198.51.100.40"}], static_mappings=[mapping])
    told = box.nat(pools=[{"first": "198.51.100.40", "vrf": 7}], static_mappings=[{**mapping, "local": "10.0.0.6"}])
    assert [change["action"] for change in told["changes"]] == ["set", "set"]
    assert told["nat44"]["pools"] == [{"first": "198.51.100.40", "last": "198.51.100.40", "vrf": 7}]
    assert told["nat44"]["static_mappings"] == [{"local": "10.0.0.6", "external": "198.51.100.30", "vrf": 0}]
    gone = box.nat("deleted", static_mappings=[mapping])
    assert gone["nat44"]["static_mappings"] == []
    assert gone["nat44"]["pools"]
    assert not box.nat("deleted", static_mappings=[mapping])["changed"]


def test_what_vpp_would_refuse_or_take_in_silence(box: Box) -> None:
    error = refused("no_interface", box.nat, interfaces=[{"name": "nope", "role": "inside"}])
    assert "host-eth1" in str(error)
    refused("no_interface", box.nat, pools=[{"interface": "nope"}])
    # nothing was switched on by that
    assert not box.nat("gathered")["nat44"]["enabled"]
    refused("bad_option", box.nat, sessions=100, session_limits=[{"vrf": 0, "sessions": 101}])
    refused("bad_option", box.nat, users=5)
    refused("bad_option", box.nat, mode=EI, session_limits=[{"vrf": 0, "sessions": 1}])
    refused("bad_option", box.nat, pools=[{"first": "198.51.100.9", "last": "198.51.100.1"}])
    one = {"external": "198.51.100.10", "external_port": 80, "protocol": "tcp"}
    refused("bad_option", box.nat, load_balanced_mappings=[{**one, "backends": [{"address": "10.0.0.1", "port": 1}]}])
    two = [{"address": f"10.0.0.{n}", "port": 1} for n in (1, 2)]
    error = refused("vpp_refused", box.nat, load_balanced_mappings=[{**one, "backends": two}])
    assert "NO_SUCH_ENTRY" in str(error)
    # the address comes first when both are asked for at once
    assert box.nat(pools=POOL, load_balanced_mappings=[{**one, "backends": two}])["changed"]


def test_limits_by_vrf(box: Box) -> None:
    box.nat(sessions=1000, pools=[{"first": "198.51.100.40", "vrf": 7}])
    told = box.nat(session_limits=[{"vrf": 7, "sessions": 10}])
    assert told["nat44"]["session_limits"] == [{"vrf": 7, "sessions": 10}]
    told = box.nat(session_limits=[{"vrf": 0, "sessions": 20}])
    assert told["nat44"]["session_limits"] == [{"vrf": 0, "sessions": 20}, {"vrf": 7, "sessions": 10}]
    told = box.nat("replaced", sessions=1000, pools=[{"first": "198.51.100.40", "vrf": 7}])
    assert told["nat44"]["session_limits"] == []


# Sessions


@pytest.mark.parametrize("mode", [ED, EI])
def test_sessions_are_counted_exactly_and_cleared_to_none(box: Box, mode: str) -> None:
    refused("nat44_off", box.nat, "cleared", mode)
    box.nat(mode=mode, sessions=10000, interfaces=PORTS[mode], pools=POOL)
    assert box.nat("cleared", mode)["changed"] is False
    box.vpp.flows(5000)
    counts = box.nat("gathered", mode)["sessions"]
    assert (counts["total"], counts["max_per_thread"], counts["full"]) == (5000, 10000, 0.5)
    assert counts["protocols"]["udp"]["total"] == 5000
    assert counts["protocols"]["tcp"]["total"] == 0
    if box.vpp.real:
        assert counts["threads"] == [0, 5000]
        assert counts["drops"] == {"out_of_ports": 0, "sessions_exceeded": 0}
    # a flow that has its session does not open another
    box.vpp.flows(100)
    assert box.nat("gathered", mode)["sessions"]["total"] == 5000
    said = box.nat("cleared", mode, check_mode=True)
    assert (said["changed"], said["sessions"]["total"]) == (True, 5000)
    cleared = box.nat("cleared", mode)
    assert (cleared["changed"], cleared["sessions_before"]["total"], cleared["sessions"]["total"]) == (True, 5000, 0)
    assert box.nat("cleared", mode)["changed"] is False
    # it goes on translating
    box.vpp.flows(300)
    assert box.nat("gathered", mode)["sessions"]["total"] == 300


def test_a_limit_that_is_reached_and_a_full_table_are_told(box: Box) -> None:
    limits = [{"vrf": 0, "sessions": 1000}]
    box.nat(sessions=10000, interfaces=PORTS[ED], pools=POOL, session_limits=limits)
    box.vpp.flows(1500)
    told = box.nat("gathered")
    assert told["sessions"]["total"] == 1000
    assert told["sessions"]["limits"] == {0: 1000}
    assert [one["code"] for one in told["findings"]] == ["nat_table_nearly_full"]
    if box.vpp.real:
        assert told["sessions"]["drops"]["sessions_exceeded"] == 500
    # the sessions survive a change that needs no re-enable, and not one that does
    assert box.nat(mss_clamp_bytes=1200)["sessions"]["total"] == 1000
    told = box.nat(sessions=20000, reenable=True)
    assert (told["reenabled"], told["sessions"]["total"]) == (True, 0)
