# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Both gateways from one description, and the files that come of it."""

from __future__ import annotations

import copy

import pytest

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._ipsec import options, swanctl


def params(gateway="gw1", **changes):
    found = {name: copy.deepcopy(spec.get("default")) for name, spec in options.PLAN_SPEC.items()}
    gateways = [
        {
            "name": name,
            "interfaces": [
                {"name": "eth1", "addresses": [f"10.73.{side}.254/24"], "mtu_bytes": 1500},
                {"name": "eth2", "addresses": [f"10.73.9.{side}/24", f"10.73.9.1{side}/24"], "mtu_bytes": 1500},
            ],
            "networks": [],
        }
        for side, name in ((1, "gw1"), (2, "gw2"))
    ]
    return {**found, "gateways": gateways, "gateway": gateway, **changes}


def both(**changes):
    return [options.planned(params(name, **changes)) for name in ("gw1", "gw2")]


def refused(**changes):
    with pytest.raises(BenchError) as caught:
        options.planned(params(**changes))
    return caught.value


def test_the_ends_mirror_each_other():
    one, other = both(tunnels=4)
    assert [link["name"] for link in one["interfaces"]] == ["ipsec1", "ipsec2", "ipsec3", "ipsec4"]
    assert [link["if_id"] for link in one["interfaces"]] == [42, 43, 44, 45]
    for mine, theirs in zip(one["tunnels"], other["tunnels"]):
        assert (mine["local"], mine["remote"]) == (theirs["remote"], theirs["local"])
        assert (mine["local_id"], mine["remote_id"]) == (theirs["remote_id"], theirs["local_id"])
        assert (mine["if_id"], mine["interface"]) == (theirs["if_id"], theirs["interface"])
    assert one["mtu_bytes"] == other["mtu_bytes"] == 1446
    assert one["ids"] == other["ids"]
    assert len(set(one["ids"])) == 8
    assert one["initiator"]
    assert not other["initiator"]
    assert one["routes"] == [{"dst": "10.73.2.0/24", "devs": ["ipsec1", "ipsec2", "ipsec3", "ipsec4"]}]
    assert one["interfaces"][0]["dev"] == "eth2"
    assert one["mss"][0] == "ipsec1 4 1406"
    assert one["probe"] == {"source": "10.73.1.254", "target": "10.73.2.254"}


def test_hexadecimal_ids_are_the_same_ids():
    (plan, _other) = both(first_if_id="0x2a")
    assert plan["interfaces"][0]["if_id"] == 42
    (plan, _other) = both(if_ids=[{"in": "0x2a", "out": 42}])
    assert plan["interfaces"][0]["if_id"] == 42


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"if_ids": [{"in": 42, "out": 43}]}, "if_id_mismatch"),
        ({"if_ids": [{"in": 42, "out": 42}, {"in": "0x2a", "out": "0x2a"}], "tunnels": 2}, "if_id_twice"),
        ({"if_ids": [{"in": 42, "out": 42}], "tunnels": 2}, "bad_if_id"),
        ({"first_if_id": 0}, "bad_if_id"),
        ({"first_if_id": "x"}, "bad_if_id"),
        ({"tunnels": 0}, "bad_option"),
        ({"tunnels": 2, "mode": "policy"}, "bad_option"),
        ({"esp": ["aes128gcm16-sha256"]}, "bad_proposal"),
        ({"esp": ["null-sha1"]}, "not_encrypting"),
        ({"esp": []}, "bad_proposal"),
        ({"outer": [["10.73.9.1", "10.73.9.2"], ["10.73.9.1", "10.73.9.2"]], "tunnels": 2}, "bad_option"),
        ({"outer": [["10.73.9.1", "10.73.9.99"]]}, "no_outer_addresses"),
        ({"outer": [["10.73.9.1"]]}, "bad_address"),
        ({"gateway": "gw3"}, "not_a_gateway"),
        ({"interface_prefix": "a-long-prefix-it-is"}, "bad_interface_name"),
        ({"path_mtu_bytes": 500}, "path_mtu_too_small"),
        ({"peer_esp": ["aes256gcm16"]}, "no_proposal_chosen"),
    ],
)
def test_what_cannot_be_is_told_before_a_host_is_touched(changes, code):
    assert refused(**changes).code == code


@pytest.mark.parametrize("network", ["10.73.0.0/16", "0.0.0.0/0", "10.73.9.2/32"])
def test_a_route_into_the_tunnel_that_covers_the_peer_is_refused(network):
    asked = params()
    asked["gateways"][1]["networks"] = [network]
    with pytest.raises(BenchError) as caught:
        options.planned(asked)
    assert caught.value.code == "route_covers_peer"
    assert "10.73.9.2" in caught.value.message
    assert network in caught.value.message


def test_tunnels_take_the_outer_pairs_in_turn():
    pairs = [["10.73.9.1", "10.73.9.2"], ["10.73.9.11", "10.73.9.12"]]
    one, other = both(tunnels=4, outer=pairs)
    assert [tunnel["local"] for tunnel in one["tunnels"]] == ["10.73.9.1", "10.73.9.11"] * 2
    assert other["tunnels"][1]["local"] == "10.73.9.12"
    assert one["outer_pairs"] == 2


def test_pairs_are_taken_from_the_addresses_in_the_shared_network():
    one, other = both(tunnels=4, outer_pairs=2)
    assert [tunnel["local"] for tunnel in one["tunnels"]] == ["10.73.9.1", "10.73.9.11"] * 2
    assert [tunnel["local"] for tunnel in other["tunnels"]] == ["10.73.9.2", "10.73.9.12"] * 2
    assert refused(tunnels=4, outer_pairs=3).code == "no_outer_addresses"
    assert refused(outer_pairs=2).code == "no_outer_addresses"


def test_policies_have_no_interface_and_name_the_networks():
    one, other = both(mode="policy")
    assert one["interfaces"] == []
    assert one["routes"] == []
    assert one["tunnels"][0]["local_ts"] == ("10.73.1.0/24",)
    assert other["tunnels"][0]["local_ts"] == ("10.73.2.0/24",)
    assert "if_id" not in one["connections"]
    assert one["mss"] == ["10.73.2.0/24 4 1406"]


def test_both_families_and_a_mixed_mtu():
    asked = params(esp=["aes128gcm16", "aes128-sha1"])
    for side, gateway in enumerate(asked["gateways"], start=1):
        gateway["interfaces"][0]["addresses"].append(f"fd73:{side}::fe/64")
    plan = options.planned(asked)
    assert plan["mtu_bytes"] == 1438  # whichever is agreed on
    assert plan["mss"] == ["ipsec1 4 1398", "ipsec1 6 1378"]
    assert plan["tunnels"][0]["remote_ts"] == ("0.0.0.0/0", "::/0")
    assert [route["dst"] for route in plan["routes"]] == ["10.73.2.0/24", "fd73:2::/64"]


def test_the_smaller_mtu_of_both_ends_counts():
    asked = params()
    asked["gateways"][1]["interfaces"][1]["mtu_bytes"] = 1400
    assert options.planned(asked)["mtu_bytes"] == 1346


WANTED = """\
# Written by the Ansible role fastpath.bench.ipsec
connections {
  fastpath-1 {
    version = 2
    local_addrs = 10.73.9.1
    remote_addrs = 10.73.9.2
    proposals = aes128gcm16-prfsha256-x25519
    mobike = no
    encap = no
    unique = replace
    keyingtries = 0
    rekey_time = 14400s
    reauth_time = 0s
    dpd_delay = 10s
    local {
      auth = psk
      id = a1.fastpath.invalid
    }
    remote {
      auth = psk
      id = b1.fastpath.invalid
    }
    children {
      fastpath-1 {
        mode = tunnel
        local_ts = 0.0.0.0/0
        remote_ts = 0.0.0.0/0
        esp_proposals = aes128gcm16
        rekey_time = 3600s
        start_action = start
        dpd_action = restart
        close_action = start
        replay_window = 1024
        if_id_in = 42
        if_id_out = 42
      }
    }
  }
}
"""


def test_swanctl_conf():
    one, other = both()
    assert one["connections"] == WANTED
    assert "start_action = none" in other["connections"]
    assert "dpd_action = clear" in other["connections"]
    assert "mobike = no" in other["connections"]
    assert "secret" not in one["connections"]


def test_certificates():
    one, _other = both(auth="pubkey")
    assert "certs = fastpath-cert.pem" in one["connections"]
    assert "cacerts = fastpath-ca.pem" in one["connections"]


@pytest.mark.parametrize(
    ("value", "text"),
    [("a", "a"), ("a b", "a b"), ("a#b", '"a#b"'), ('a"b', '"a\\"b"'), ("a\\", '"a\\\\"'), ("", '""'), (" a", '" a"')],
)
def test_values_that_the_parser_would_misread_are_quoted(value, text):
    assert f"  key = {text}\n" in swanctl.render({"section": {"key": value}})


def test_a_value_with_a_line_break_is_refused():
    with pytest.raises(BenchError):
        swanctl.render({"section": {"key": "a\nb = c"}})
