# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from ansible_collections.fastpath.bench.plugins.module_utils._lab.plan import (
    BOOTING,
    DEAD,
    RUNNING,
    Found,
    FoundEnd,
    FoundNode,
    Plan,
    plan,
)
from ansible_collections.fastpath.bench.plugins.module_utils._lab.topology import parse_topology

WANTED = parse_topology(
    {
        "name": "x",
        "topology": {
            "nodes": {"a": None, "b": None, "c": None, "sw": {"kind": "bridge"}},
            "links": [["a:eth1", "b:eth1"], ["b:eth2", "c:eth1"], ["c:eth2", "sw:p1"]],
        },
    }
)
AB, BC, CS = WANTED.cables


def found(**states: str) -> Found:
    """The wanted lab complete, but for the states given; ``gone`` leaves a node out."""
    kinds = {"a": "linux", "b": "linux", "c": "linux", "sw": "bridge"}
    nodes = {name: FoundNode(kind, states.get(name, RUNNING)) for name, kind in kinds.items()}
    nodes = {name: node for name, node in nodes.items() if node.state != "gone"}
    ends: dict[str, FoundEnd] = {}
    for cable in WANTED.cables:
        if cable.a.node in nodes and cable.b.node in nodes:
            ends[cable.a.key] = FoundEnd(cable.b.key, 1)
            ends[cable.b.key] = FoundEnd(cable.a.key, 1)
    every = [end for cable in WANTED.cables for end in cable.ends]
    return Found(nodes, ends, frozenset(end.key for end in every), {end.key: end.settings() for end in every})


def test_nothing_to_do() -> None:
    assert plan(found(), WANTED) == Plan()
    assert not plan(found(), WANTED).changed


def test_from_nothing() -> None:
    todo = plan(Found(), WANTED)
    assert todo == Plan(make_bridge=("sw",), start=("a", "b", "c"), lay=(AB, BC, CS))
    assert todo.steps() == [
        "make bridge sw",
        "start host a",
        "start host b",
        "start host c",
        "lay cable a:eth1 -- b:eth1",
        "lay cable b:eth2 -- c:eth1",
        "lay cable c:eth2 -- sw:p1",
    ]


@pytest.mark.parametrize("state", [DEAD, "gone"])
def test_a_dead_host_is_started_and_its_cables_laid_anew(state: str) -> None:
    # The ends on a and c go with b's namespace, so nothing has to be cut.
    assert plan(found(b=state), WANTED) == Plan(start=("b",), lay=(AB, BC))


def test_a_dead_bridge() -> None:
    assert plan(found(sw=DEAD), WANTED) == Plan(make_bridge=("sw",), lay=(CS,))


def test_a_booting_host_is_waited_for() -> None:
    assert plan(found(c=BOOTING), WANTED) == Plan(wait=("c",))


def test_a_node_of_another_kind_is_made_anew() -> None:
    now = found()
    now.nodes["sw"] = FoundNode("linux", RUNNING)
    assert plan(now, WANTED) == Plan(remove=("sw",), make_bridge=("sw",), lay=(CS,))


def test_a_host_no_longer_wanted() -> None:
    now = found()
    now.nodes["old"] = FoundNode("linux", RUNNING)
    now.ends["old:eth1"] = FoundEnd("a:eth9", 1)
    now.ends["a:eth9"] = FoundEnd("old:eth1", 1)
    todo = plan(Found(now.nodes, now.ends, now.known_ends | {"a:eth9", "old:eth1"}, now.applied), WANTED)
    assert todo == Plan(remove=("old",))


def test_a_cable_no_longer_wanted_is_cut_at_one_end() -> None:
    now = found()
    now.ends.update({"a:eth9": FoundEnd("c:eth9", 1), "c:eth9": FoundEnd("a:eth9", 1)})
    assert plan(now, WANTED) == Plan()  # not one of ours: made in the hosts by their user
    known = Found(now.nodes, now.ends, now.known_ends | {"a:eth9", "c:eth9"}, now.applied)
    assert plan(known, WANTED) == Plan(cut=("a:eth9",))


def test_a_cable_with_other_queues_or_another_far_end_is_laid_anew() -> None:
    now = found()
    now.ends["a:eth1"] = FoundEnd("b:eth1", 4)
    assert plan(now, WANTED) == Plan(cut=("a:eth1",), lay=(AB,))
    now = found()
    now.ends["a:eth1"] = FoundEnd("c:eth1", 1)
    now.ends["c:eth1"] = FoundEnd("a:eth1", 1)
    now.ends["b:eth1"] = FoundEnd(None, 1)
    now.ends["b:eth2"] = FoundEnd(None, 1)
    assert plan(now, WANTED) == Plan(cut=("a:eth1", "b:eth1", "b:eth2"), lay=(AB, BC))


def test_a_missing_cable() -> None:
    now = found()
    del now.ends["a:eth1"], now.ends["b:eth1"]
    assert plan(now, WANTED) == Plan(lay=(AB,))


def test_settings_that_differ_from_what_was_last_asked() -> None:
    now = found()
    now.applied["b:eth2"] = {"mtu": 9000, "offloads": {}}
    del now.applied["c:eth2"]  # a call was killed before it had set it
    assert plan(now, WANTED) == Plan(set=(BC.a, CS.a))
