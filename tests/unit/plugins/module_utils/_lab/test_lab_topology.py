# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pathlib
import typing as t

import pytest
import yaml

from ansible_collections.fastpath.bench.plugins.module_utils._lab.topology import (
    Cable,
    Endpoint,
    Node,
    TopologyError,
    parse_topology,
)

ROOT = pathlib.Path(__file__).resolve().parents[5]


def topology(links: list[t.Any], nodes: object = None, **top: t.Any) -> dict[str, t.Any]:
    return {"name": "lab1", "topology": {"nodes": nodes or {"a": None, "b": {}}, "links": links}, **top}


def test_shipped_topology() -> None:
    data = yaml.safe_load((ROOT / "roles" / "lab" / "files" / "topology.yml").read_text())
    parsed = parse_topology(data)
    assert parsed.name == "default"
    assert parsed.nodes == (Node("client", "linux"), Node("dut", "linux"), Node("server", "linux"))
    assert [cable.key for cable in parsed.cables] == [
        "client:eth1 -- dut:eth1",
        "dut:eth2 -- server:eth1",
        "client:eth2 -- server:eth2",
    ]


@pytest.mark.parametrize(
    ("link", "cable"),
    [
        ({"endpoints": ["a:eth1", "b:eth1"]}, Cable(Endpoint("a", "eth1"), Endpoint("b", "eth1"))),
        (["a:eth1", "b:eth1"], Cable(Endpoint("a", "eth1"), Endpoint("b", "eth1"))),
        (
            {"type": "veth", "endpoints": [{"node": "a", "interface": "eth1"}, "b:p1.5"], "mtu": 9000, "queues": 4},
            Cable(Endpoint("a", "eth1", 4, 9000), Endpoint("b", "p1.5", 4, 9000)),
        ),
        (
            {
                "endpoints": [
                    {"node": "a", "interface": "e", "queues": 2, "mtu": 68, "offloads": {"tso": True}},
                    {"node": "b", "interface": "e"},
                ],
                "mtu": 65535,
                "offloads": {"tso": False, "gro": False},
            },
            Cable(
                Endpoint("a", "e", 2, 68, (("gro", False), ("tso", True))),
                Endpoint("b", "e", 1, 65535, (("gro", False), ("tso", False))),
            ),
        ),
    ],
)
def test_links(link: object, cable: Cable) -> None:
    assert parse_topology(topology([link])).cables == (cable,)


def test_a_name_given_overrides_the_files() -> None:
    assert parse_topology(topology([]), name="other").name == "other"
    assert parse_topology({"topology": {"nodes": {"a": None}}}, name="other").cables == ()


def extended(**end: t.Any) -> dict[str, t.Any]:
    return {"endpoints": [{"node": "a", "interface": "eth1", **end}, "b:eth1"]}


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ([], "topology file: must be a mapping"),
        ({"name": "x", "topolgy": {}}, "unknown key 'topolgy'"),
        (topology([], name="my-lab"), "'my-lab' cannot be the name of a lab"),
        (topology([], name=None), "None cannot be the name"),
        ({"name": "x", "topology": {"nodes": {}}}, "at least one node"),
        (topology([], {"Client": None}), "'Client' cannot be a host name"),
        (topology([], {"a_b": None}), "'a_b' cannot be a host name"),
        (topology([], {"a" * 33: None}), "cannot be a host name"),
        (topology([], {"-a": None}), "cannot be a host name"),
        (topology([], {1: None}), "1 cannot be a host name"),
        (topology([], {"a": {"kind": "srl"}}), "topology.nodes.a: unknown kind 'srl'. Known kinds: linux, bridge, vm."),
        (topology([], {"a": {"image": "x"}}), "unknown key 'image'"),
        (topology("a:eth1"), "topology.links: must be a list"),  # type: ignore[arg-type]
        (topology([{"endpoints": ["a:eth1"]}]), "exactly two endpoints"),
        (topology([{"endpoints": ["a:eth1", "b:eth1"], "type": "macvlan"}]), "unknown type 'macvlan'"),
        (topology([["a:eth1", "c:eth1"]]), "topology.links[0].endpoints[1]: unknown node 'c'. Known nodes: a, b."),
        (topology([["a:eth1", "b"]]), "'b' is not an endpoint"),
        (topology([["a:eth1", "a:eth2"]]), "both ends are on a"),
        (topology([["a:eth1", "b:eth1"], ["b:eth1", "a:eth2"]]), "b:eth1 is used twice (first in topology.links[0])"),
        (topology([["a:abcdefghijklmnop", "b:eth1"]]), "has 16 characters"),
        (topology([["a:eth 1", "b:eth1"]]), "'eth 1' cannot be an interface name"),
        (topology([["a:eth1;rm", "b:eth1"]]), "cannot be an interface name"),
        (topology([["a:..", "b:eth1"]]), "cannot be an interface name"),
        (topology([["a:", "b:eth1"]]), "'' cannot be an interface name"),
        (topology([["a:lo", "b:eth1"]]), "'lo' is taken already"),
        (topology([extended(interface=7)]), "7 cannot be an interface name"),
        (topology([extended(mtu=67)]), "mtu is 67. It must be a number from 68 to 65535"),
        (topology([extended(mtu=65536)]), "mtu is 65536"),
        (topology([extended(mtu="1500")]), "mtu is '1500'"),
        (topology([extended(mtu=True)]), "mtu is True"),
        (topology([extended(queues=0)]), "queues is 0"),
        (topology([extended(queues=65)]), "queues is 65"),
        (topology([extended(offloads=["tso"])]), "must be a mapping"),
        (topology([extended(offloads={"tso": "off"})]), "offload 'tso': 'off' cannot be set"),
        (topology([extended(offloads={"-t": True})]), "offload '-t'"),
        (topology([extended(speed=10)]), "unknown key 'speed'"),
        (
            topology([["a:eth1", "b:eth1"]], {"a": {"kind": "bridge"}, "b": {"kind": "bridge"}}),
            "joins two bridges, a and b",
        ),
        (topology([["a:br0", "b:eth1"]], {"a": {"kind": "bridge"}, "b": None}), "'br0' is taken already"),
    ],
)
def test_a_mistake_is_one_clear_error(data: object, words: str) -> None:
    with pytest.raises(TopologyError) as caught:
        parse_topology(data)
    assert words in caught.value.message
    assert caught.value.code == "bad_topology"
