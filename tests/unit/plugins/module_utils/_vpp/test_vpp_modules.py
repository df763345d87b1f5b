# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options, texts and tables that need no VPP; and what only the VPP in memory can be made to do."""

from __future__ import annotations

import dataclasses
import json
import pathlib
import re
import typing as t

import pytest

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError, ParseError
from ansible_collections.fastpath.bench.plugins.module_utils._vpp import (
    daemon,
    errors,
    hardware,
    info,
    interface_config,
    interface_run,
    placement,
    route,
)
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.definitions import Definitions
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.interface_types import TYPES
from ansible_collections.fastpath.bench.plugins.modules import vpp_interface, vpp_route, vpp_rx_placement
from ansible_collections.fastpath.bench.tests.support.vpp_process import find_vpp
from ansible_collections.fastpath.bench.tests.unit.plugins.module_utils._vpp.fake_vpp import FakeLinks, FakeVpp


def run(vpp: FakeVpp, *config: dict[str, t.Any], state: str = "merged", **options: t.Any) -> dict[str, t.Any]:
    with vpp.session() as session:
        return interface_run.run(session, config, state, links=t.cast("t.Any", FakeLinks(vpp)), **options)


# Options


@pytest.mark.parametrize(
    ("item", "says"),
    [
        ({}, "neither name nor type"),
        ({"type": "af_packet"}, "needs host_interface"),
        ({"type": "vlan", "parent": "a"}, "needs vlan_id"),
        ({"type": "loopback", "instance": 1, "vlan_id": 5}, "vlan_id cannot be given"),
        ({"type": "loopback", "instance": 1, "link_mtu_bytes": 1500}, "link_mtu_bytes cannot be given"),
        ({"type": "af_packet", "host_interface": "x" * 16}, "1 to 15 bytes"),
        ({"type": "af_packet", "host_interface": "a b"}, "no blank"),
        ({"type": "af_packet", "host_interface": "a/b"}, "no slash"),
        # one of these kills VPP, one makes it send frames with another tag
        ({"type": "af_packet", "host_interface": "a", "rx_queues": 0}, "dies of 0"),
        ({"type": "vlan", "parent": "a", "vlan_id": 4095}, "it can be 1 to 4094"),
        ({"type": "loopback", "instance": -1}, "it can be 0 to 16383"),
        ({"type": "tap", "instance": 2**32}, "it can be 0 to 16383"),
        ({"name": "a", "mtu_ip6_bytes": 1279}, "IPv6 needs 1280"),
        ({"name": "a", "tag": "two words"}, "no blanks"),
        ({"type": "memif", "memif_id": 1, "ring_size": 1000}, "power of two"),
        ({"type": "af_packet", "host_interface": "a", "rx_mode": "adaptive"}, "polling and interrupt"),
        ({"type": "loopback", "instance": 1, "rx_mode": "polling"}, "no receive queues"),
    ],
)
def test_bad_options_are_said_before_vpp_is_asked(item: dict[str, t.Any], says: str) -> None:
    with pytest.raises(BenchError, match=re.escape(says)):
        interface_config.check(item, "here")


@pytest.mark.parametrize(
    ("text", "normal"),
    [("192.0.2.1/24", "192.0.2.1/24"), ("2001:DB8:0::1/64", "2001:db8::1/64"), ("10.0.0.1/32", "10.0.0.1/32")],
)
def test_addresses_are_compared_in_one_form(text: str, normal: str) -> None:
    assert interface_config.normal_address(text, "here") == normal


@pytest.mark.parametrize("text", ["192.0.2.1", "192.0.2.1/33", "fe80::1/64", "224.0.0.1/24", "0.0.0.0/0", "host/24"])
def test_addresses_that_an_interface_cannot_have(text: str) -> None:
    with pytest.raises(BenchError):
        interface_config.normal_address(text, "here")


def test_macs_are_compared_in_one_form() -> None:
    for text in ("02:AA:bb:00:00:01", "02-aa-bb-00-00-01", "02aa.bb00.0001"):
        assert interface_config.normal_mac(text, "here") == "02:aa:bb:00:00:01"
    for text in ("01:00:5e:00:00:01", "00:00:00:00:00:00", "02:00:00:00:01", "nope"):
        with pytest.raises(BenchError):
            interface_config.normal_mac(text, "here")


def test_an_address_asked_for_twice() -> None:
    both = [{"type": "loopback", "instance": n, "addresses": ["10.0.0.1/24"]} for n in (1, 2)]
    with pytest.raises(BenchError, match="asked for on loop1 too"):
        run(FakeVpp(), *both)
    # in two VRFs it is right
    run(FakeVpp(), {**both[0], "vrf": 1}, {**both[1], "vrf": 2})


def test_an_interface_named_twice() -> None:
    with pytest.raises(BenchError, match="entry 1 already"):
        run(FakeVpp(), *[{"type": "loopback", "instance": 1}] * 2)


def test_the_modules_take_what_the_types_know() -> None:
    spec = vpp_interface.argument_spec()
    options = spec["config"]["options"]
    assert set(options["type"]["choices"]) == set(TYPES)
    assert spec["state"]["choices"] == list(interface_run.STATES)
    for name in TYPES:
        assert interface_config.allowed(name) <= set(options)
    assert vpp_route.argument_spec()["state"]["choices"] == list(route.STATES)
    assert vpp_rx_placement.argument_spec()["policy"]["choices"] == list(placement.POLICIES)


# Rendering


def test_rendered_needs_no_vpp_and_makes_parents_first() -> None:
    lines = interface_run.render(
        [
            {"type": "vlan", "parent": "host-eth1", "vlan_id": 100, "inner_vlan_id": 5, "addresses": ["10.0.0.1/24"]},
            {"type": "af_packet", "host_interface": "eth1", "rx_queues": 4, "qdisc_bypass": False, "vrf": 7, "up": 1},
            {"type": "vlan", "parent": "TenGigabitEthernet3/0/0", "vlan_id": 9, "dot1ad": True},
            {"name": "TenGigabitEthernet3/0/0", "mtu_bytes": 1500, "up": True},
        ]
    )
    assert lines[:3] == [
        "create host-interface name eth1 num-rx-queues 4 qdisc-bypass-disable",
        "create sub-interfaces host-eth1 100 dot1q 100 inner-dot1q 5 exact-match",
        "create sub-interfaces TenGigabitEthernet3/0/0 9 dot1ad 9 exact-match",
    ]
    assert "ip6 table add 7" in lines
    assert lines.index("ip table add 7") < lines.index("set interface ip table host-eth1 7")
    assert lines[-2:] == ["set interface state host-eth1 up", "set interface state TenGigabitEthernet3/0/0 up"]


def test_rendered_refuses_a_name_that_vpp_will_not_give() -> None:
    made = {"type": "af_packet", "host_interface": "eth1"}
    assert interface_run.render([{**made, "name": "host-eth1"}]) == ["create host-interface name eth1"]
    with pytest.raises(BenchError, match="VPP names this interface host-eth1") as caught:
        interface_run.render([{**made, "name": "uplink"}])
    assert caught.value.code == "name_mismatch"


def test_rendered_routes() -> None:
    lines = route.render(
        [
            {"prefix": "203.0.113.0/24", "table": 9, "paths": [{"via": "10.1.1.9"}]},
            {"prefix": "203.0.114.0/24", "paths": [{"via": "10.1.1.9", "interface": "host-eth1", "weight": 2}]},
            {"prefix": "2001:db8::/32", "drop": True},
        ]
    )
    assert lines == [
        "ip table add 9",
        "ip route add 203.0.113.0/24 table 9 via 10.1.1.9 next-hop-table 9",
        "ip route add 203.0.114.0/24 via 10.1.1.9 host-eth1 weight 2",
        "ip route add 2001:db8::/32 via drop",
    ]


# Placement policies, with more workers than the machines of the tests have


def queues(*counts: int) -> list[tuple[t.Any, ...]]:
    return [("queue", f"if{place}", queue) for place, count in enumerate(counts) for queue in range(count)]


WORKERS = [placement.Thread(n + 1, f"vpp_wk_{n}", n, cpu=n + 1, numa=n // 2) for n in range(4)]


def placed(policy: str, keys: list[tuple[t.Any, ...]], **options: t.Any) -> list[t.Any]:
    return [wish.values["worker"] for wish in placement.by_policy(policy, keys, WORKERS, **options)]


def test_round_robin_goes_on_from_one_interface_to_the_next() -> None:
    assert placed("round_robin", queues(3, 3)) == [0, 1, 2, 3, 0, 1]


def test_spread_counts_what_workers_have_already() -> None:
    assert placed("spread", queues(4), load={0: 2, 1: 1}) == [2, 3, 1, 2]


def test_numa_stays_on_the_node() -> None:
    nodes = {"if0": 1, "if1": 0, "if2": None, "if3": 7}
    assert placed("numa", queues(3, 2, 2, 1), numa_of=nodes.get) == [2, 3, 2, 0, 1, 0, 1, 0]


def test_four_queues_each_on_its_own_worker() -> None:
    vpp = FakeVpp(workers=4, host={"eth1": 1500})
    run(vpp, {"type": "af_packet", "host_interface": "eth1", "rx_queues": 4})
    asked = [{"interface": "host-eth1", "queue": number, "worker": 3 - number} for number in range(4)]
    with vpp.session() as session:
        done = placement.run(session, policy="explicit", placements=asked)
    assert [(one["queue"], one["worker"], one["thread"], one["cpu"]) for one in done["placements"]] == [
        (number, 3 - number, 4 - number, 4 - number) for number in range(4)
    ]
    with vpp.session() as session:
        assert not placement.run(session, policy="explicit", placements=asked)["changed"]
        assert placement.run(session, policy="round_robin")["changed"]


def test_no_workers_at_all() -> None:
    vpp = FakeVpp(workers=0, host={"eth1": 1500})
    run(vpp, {"type": "af_packet", "host_interface": "eth1"})
    with vpp.session() as session:
        with pytest.raises(BenchError, match=r"startup.conf"):
            placement.run(session, policy="spread")
        asked = [{"interface": "host-eth1", "queue": 0, "main": True}]
        done = placement.run(session, policy="explicit", placements=asked)
    assert done["placements"][0]["main"]


# What only the VPP in memory can be made to do


@pytest.mark.parametrize("at", range(0, 32, 3))
def test_vpp_dies_at_any_request_and_a_rerun_converges(at: int) -> None:
    vpp = FakeVpp(host={"eth1": 1500})
    config = [
        {"type": "af_packet", "host_interface": "eth1", "vrf": 3, "addresses": ["10.0.0.1/24"], "up": True},
        *({"type": "vlan", "parent": "host-eth1", "vlan_id": n, "addresses": [f"10.0.{n}.1/24"]} for n in range(1, 4)),
    ]
    vpp.die_in = at
    with pytest.raises(errors.VppGone):
        run(vpp, *config)
    assert run(vpp, *config)["changed"]
    assert not run(vpp, *config)["changed"]


@pytest.mark.parametrize(
    "request_name", ["set_rx_mode", "set_mtu", "tag_add_del", "set_flags", "set_mac_address", "add_del_address"]
)
def test_accepted_and_not_done_is_noticed(request_name: str) -> None:
    vpp = FakeVpp(host={"eth1": 1500})
    config = {"type": "af_packet", "host_interface": "eth1"}
    run(vpp, config)
    vpp.ignores = {f"sw_interface_{request_name}"}
    config.update({"rx_mode": "polling", "tag": "x", "mac": "02:00:00:00:00:01", "addresses": ["10.0.0.1/24"]})
    config.update({"mtu_bytes": 1400, "up": True})
    with pytest.raises(BenchError) as caught:
        run(vpp, config)
    assert caught.value.code == "not_as_asked"


def test_a_plugin_that_is_not_loaded_is_named() -> None:
    vpp = FakeVpp(host={"eth1": 1500})
    vpp.without = {"af_packet_"}
    with pytest.raises(errors.VppMessageMissing, match=r"plugin af_packet_plugin.so \{ enable \}"):
        run(vpp, {"type": "af_packet", "host_interface": "eth1"})


def test_a_tap_where_the_host_has_vhost() -> None:
    vpp = FakeVpp()
    vpp.tap_works = True
    config = {"type": "tap", "instance": 1, "host_interface": "vpp1", "checksum_gso": True, "rx_mode": "adaptive"}
    assert run(vpp, config)["interfaces"][0]["name"] == "tap1"
    assert not run(vpp, config)["changed"]
    with pytest.raises(BenchError, match="checksum_gso is True, asked is False"):
        run(vpp, {**config, "checksum_gso": False})


def test_network_cards_are_reset_and_not_removed() -> None:
    vpp = FakeVpp()
    mtu = {"link_mtu": 1500, "mtu": [1500, 0, 0, 0]}
    vpp.new("TenGigabitEthernet3/0/0", "dpdk", mac="02:00:00:00:00:01", queues=[[1, 1]], **mtu)
    card = {"name": "TenGigabitEthernet3/0/0", "type": "hardware"}
    assert run(vpp, {**card, "addresses": ["10.0.0.1/24"], "up": True})["changed"]
    with pytest.raises(BenchError, match="link carries 1500"):
        run(vpp, {**card, "mtu_bytes": 9000})
    done = run(vpp, {**card, "mtu_bytes": 9000, "link_mtu_bytes": 9000})
    assert {one["property"] for one in done["changes"]} == {"mtu", "link_mtu_bytes"}
    reset = run(vpp, state="overridden")
    assert {one["property"] for one in reset["changes"]} == {"addresses", "up"}
    with pytest.raises(BenchError, match="VPP has no interface"):
        run(vpp, {"name": "TenGigabitEthernet3/0/1", "type": "hardware", "up": True})


def test_an_interface_comes_up_when_it_is_complete() -> None:
    vpp = FakeVpp()
    run(vpp, {"type": "loopback", "instance": 1, "addresses": ["10.0.0.1/24"], "vrf": 5, "tag": "x", "up": True})
    writes = [name for name in vpp.requests if re.search(r"_set_|_add_del|create_", name)]
    assert writes[-1] == "sw_interface_set_flags"
    assert writes.index("sw_interface_set_table") < writes.index("sw_interface_add_del_address")


def test_a_call_for_many_interfaces_asks_in_few_rounds() -> None:
    vpp = FakeVpp()
    config = [
        {"type": "loopback", "instance": n, "addresses": [f"10.{n}.0.1/24"], "up": True, "vrf": 5} for n in range(100)
    ]
    run(vpp, *config)
    # one dump before and one after, the table made once for each family
    assert vpp.requests.count("sw_interface_dump") == 2
    assert vpp.requests.count("ip_table_add_del") == 2
    assert vpp.requests.count("create_loopback_instance") == 100


# Texts

HARDWARE = """\
              Name                Idx   Link  Hardware
host-v1                            1     up   host-v1
  Link speed: unknown
  Ethernet address 03:00:00:00:00:09
  Linux PACKET socket interface v3
  FEATURES:
    qdisc-bpass-enabled
    cksum-gso-enabled
    fanout-enabled
  RX Queue 0:
    block size:65536 nr:160  frame size:2048 nr:5120 next block:0
  TX Queue 0:
    block size:69206016 nr:1  frame size:67584 nr:1024 next frame:0
host-v2                            2     up   host-v2
  Linux PACKET socket interface v2
  FEATURES:
  RX Queue 0:
    block size:65536 nr:160  frame size:4096 nr:5120 next block:0
loop5                              4    down  loop5
  Link speed: unknown
v3/0                               7    down  v3/0
  netdev v3\0\0\0\0
  flags: syscall-lock zero-copy
"""


def test_hardware_text() -> None:
    read = hardware.parse(HARDWARE)
    assert read["host-v1"] == hardware.Hardware(2048, 3, True, True)
    assert read["host-v2"] == hardware.Hardware(4096, 2, False, False)
    assert read["loop5"] == hardware.Hardware()
    assert dataclasses.astuple(read["v3/0"])[-2:] == ("v3", True)


def test_feature_text() -> None:
    text = "Feature paths configured on a...\n\nip4-output:\n  gso-ip4\n  other\n\nip6-output:\n  none configured\n"
    assert hardware.features(text) == {"ip4-output": ["gso-ip4", "other"], "ip6-output": []}


def test_info_texts_that_cannot_be_read_are_said() -> None:
    with pytest.raises(ParseError):
        info.parse_buffers("default-numa-0 broken")
    with pytest.raises(ParseError):
        info.parse_memory("nothing")
    assert info.parse_memory("total: 1.00G, used: 512.00k, free: 100")["used_bytes"] == 512 * 1024


def test_versions_that_differ() -> None:
    assert daemon.version_conflict("26.06-release", "26.06-release") is None
    assert daemon.version_conflict("26.06-release", "26.06-1~g123") is None
    assert daemon.version_conflict("26.06-release", None) is None
    assert daemon.version_conflict("unreadable", "26.06") is None
    assert "25.10" in str(daemon.version_conflict("26.06-release", "25.10-release"))


def test_a_program_that_was_replaced_since_vpp_started(monkeypatch: pytest.MonkeyPatch) -> None:
    for binary, warned in (("/usr/bin/vpp (deleted)", 1), ("/usr/bin/vpp", 0), (None, 0)):
        monkeypatch.setattr(daemon, "binary_of", lambda pid, binary=binary: binary)
        assert len(daemon.warnings_about(7)) == warned


# Tables


def test_every_retval_has_words() -> None:
    for number, name in errors.NAMES.items():
        assert errors.meaning_of(number)
        assert errors.name_of(number) == name
    assert "does not know" in errors.meaning_of(-9999)
    assert set(errors.MEANINGS) | set(errors.REMEDIES) <= set(errors.NAMES.values())
    assert "INVALID_QUEUE (-125)" in str(errors.VppRefused("x", -125))


@pytest.mark.vpp
def test_retvals_are_those_of_the_vpp_here() -> None:
    binary = find_vpp()
    header = pathlib.Path(binary or "/").parents[1] / "include/vnet/error.h"
    if not header.is_file():
        pytest.skip(f"no header {header}")
    text = header.read_text(encoding="utf-8")
    there = {int(number): name for name, number in re.findall(r"_ ?\((\w+), (-\d+),", text)}
    assert there == errors.NAMES


def test_plugins_of_requests() -> None:
    assert errors.plugin_of("nat44_ei_plugin_enable_disable") == "nat44_ei_plugin.so"
    assert errors.plugin_of("nat44_ed_plugin_enable_disable") == "nat_plugin.so"
    assert errors.plugin_of("sw_interface_dump") is None


def test_only_the_definitions_that_are_used_are_handed_on() -> None:
    module = (
        '[{"types": [["inner", ["u8", "x"]], ["outer", ["vl_api_inner_t", "i"], ["vl_api_name_t", "n"]], ["unused"]],'
        '"enums": [["colour", ["RED", 0], {"enumtype": "u8"}]], "unions": [], "enumflags": [],'
        '"aliases": {"name": {"type": "u8", "length": 4}},'
        '"messages": [["ask", ["u16", "_vl_msg_id"], ["vl_api_outer_t", "o"], {"crc": "0x1"}],'
        '["ask_reply", ["u16", "_vl_msg_id"], ["vl_api_colour_t", "c"], {"crc": "0x2"}], ["other", {"crc": "0x3"}]],'
        '"services": {"ask": {"reply": "ask_reply"}, "other": {"reply": "null"}}}]'
    )
    definitions = Definitions(module)
    assert definitions.excerpt("nothing") is None
    part = json.loads(definitions.excerpt("ask") or "")
    assert [one[0] for one in part["types"]] == ["inner", "outer"]
    assert [one[0] for one in part["enums"]] == ["colour"]
    assert list(part["aliases"]) == ["name"]
    assert [one[0] for one in part["messages"]] == ["ask", "ask_reply"]
    assert json.loads(definitions.excerpt("ask") or "")["messages"] == []
