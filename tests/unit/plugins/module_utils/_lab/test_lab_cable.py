# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._lab.cable import (
    NodeLinks,
    find_ends,
    lay_command,
    parse_features,
)
from ansible_collections.fastpath.bench.plugins.module_utils._lab.names import LabNames
from ansible_collections.fastpath.bench.plugins.module_utils._lab.plan import FoundEnd
from ansible_collections.fastpath.bench.plugins.module_utils._lab.topology import Cable, Endpoint

NAMES = LabNames("default")


def link(index: int, name: str, peer_index: int | None = None, netnsid: int | None = None) -> dict[str, t.Any]:
    """As iproute2 6.1 prints it with -json -details, without what is not read."""
    shown: dict[str, t.Any] = {"ifindex": index, "ifname": name, "num_tx_queues": 1, "num_rx_queues": 1}
    if peer_index is not None:
        shown.update(link_index=peer_index, link_netnsid=netnsid, linkinfo={"info_kind": "veth"})
    return shown


def test_ends_as_found_in_the_default_lab() -> None:
    nodes = {
        "client": NodeLinks(
            [link(1, "lo"), link(2, "eth1", 2, 0), link(3, "eth2", 3, 1)],
            {0: "fpl-default-dut", 1: "fpl-default-server"},
        ),
        "dut": NodeLinks(
            [link(1, "lo"), link(2, "eth1", 2, 1), link(3, "eth2", 2, 0)],
            {0: "fpl-default-server", 1: "fpl-default-client"},
        ),
        "server": NodeLinks(
            [link(1, "lo"), link(2, "eth1", 3, 0), link(3, "eth2", 3, 1)],
            {0: "fpl-default-dut", 1: "fpl-default-client"},
        ),
    }
    assert find_ends(NAMES, nodes) == {
        "client:eth1": FoundEnd("dut:eth1", 1),
        "client:eth2": FoundEnd("server:eth2", 1),
        "dut:eth1": FoundEnd("client:eth1", 1),
        "dut:eth2": FoundEnd("server:eth1", 1),
        "server:eth1": FoundEnd("dut:eth2", 1),
        "server:eth2": FoundEnd("client:eth2", 1),
    }


def test_two_pairs_that_look_alike_are_told_apart() -> None:
    pairs = {"a": "b", "b": "a", "c": "d", "d": "c"}
    nodes = {node: NodeLinks([link(2, "eth1", 2, 0)], {0: f"fpl-default-{other}"}) for node, other in pairs.items()}
    assert {key: end.peer for key, end in find_ends(NAMES, nodes).items()} == {
        f"{node}:eth1": f"{other}:eth1" for node, other in pairs.items()
    }


def test_a_far_end_outside_the_lab_is_no_peer() -> None:
    nodes = {
        # Of another lab whose name begins alike, of no name at all, and no veth.
        "a": NodeLinks([link(2, "eth1", 2, 0), link(3, "eth2", 2, 7), link(4, "dummy0")], {0: "fpl-default2-b"}),
        "b": NodeLinks([link(2, "eth1")], {}),
    }
    assert find_ends(NAMES, nodes) == {
        "a:eth1": FoundEnd(None, 1),
        "a:eth2": FoundEnd(None, 1),
        "a:dummy0": FoundEnd(None, 1),
        "b:eth1": FoundEnd(None, 1),
    }


def test_a_cable_is_one_line() -> None:
    cable = Cable(Endpoint("client", "eth1", 2, 9000), Endpoint("dut", "eth1", 1, 1500))
    assert lay_command(NAMES, cable) == (
        "link add name eth1 netns fpl-default-client mtu 9000 numtxqueues 2 numrxqueues 2"
        " type veth peer name eth1 netns fpl-default-dut mtu 1500 numtxqueues 1 numrxqueues 1\n"
    )


def test_features() -> None:
    # ethtool 6.1, shortened.
    text = """Features for eth1:
rx-checksumming: on
tx-checksumming: on
\ttx-checksum-ipv4: off [fixed]
\ttx-checksum-ip-generic: on
tcp-segmentation-offload: off
large-receive-offload: off [fixed]
tx-udp-segmentation: on [requested off]
"""
    assert parse_features(text) == {
        "rx-checksumming": True,
        "tx-checksumming": True,
        "tx-checksum-ipv4": False,
        "tx-checksum-ip-generic": True,
        "tcp-segmentation-offload": False,
        "large-receive-offload": False,
        "tx-udp-segmentation": True,
    }
