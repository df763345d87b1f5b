# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kernel's NAT: the table's text and what nft tells of it, and the kernel's connections."""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
import sys
import typing as t

import pytest

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._host import conntrack, masquerade


def listing(expression: list[dict[str, t.Any]], **chain: t.Any) -> str:
    """As nft 1.0.6 has it."""
    place = {"family": "ip", "table": masquerade.TABLE}
    hook = {"type": "nat", "hook": "postrouting", "prio": 100, "policy": "accept", **chain}
    return json.dumps(
        {
            "nftables": [
                {"metainfo": {"version": "1.0.6", "json_schema_version": 1}},
                {"table": {"family": "ip", "name": masquerade.TABLE, "handle": 1}},
                {"chain": {**place, "name": "postrouting", "handle": 1, **hook}},
                {"rule": {**place, "chain": "postrouting", "handle": 3, "expr": expression}},
            ]
        }
    )


def matches(right: t.Any) -> dict[str, t.Any]:
    return {"match": {"op": "==", "left": {"meta": {"key": "oifname"}}, "right": right}}


def test_what_nft_tells_in_the_form_of_the_options() -> None:
    plain = listing([matches({"set": ["eth3", "eth2"]}), {"masquerade": None}])
    assert masquerade.parse(plain) == {"outside": ["eth2", "eth3"], "ports": "kept"}
    for flags in ("fully-random", ["fully-random"]):
        text = listing([matches("eth2"), {"masquerade": {"flags": flags}}])
        assert masquerade.parse(text) == {"outside": ["eth2"], "ports": "fully_random"}
    assert masquerade.parse('{"nftables": [{"metainfo": {}}]}') is None


@pytest.mark.parametrize(
    "text",
    [
        listing([{"masquerade": None}]),
        listing([matches("eth2"), {"accept": None}]),
        listing([matches("eth2"), {"masquerade": None}], prio=0),
        listing([matches("eth2"), {"masquerade": None}], hook="output"),
    ],
)
def test_a_table_that_someone_changed_is_never_taken_for_ours(text: str) -> None:
    found = masquerade.parse(text)
    assert found is not None
    assert found["other"]


def test_one_step_makes_the_table_whether_it_was_there_or_not() -> None:
    text = masquerade.script(["eth3", "eth2"], "random")
    assert text.index("table ip") < text.index("delete table ip") < text.index("postrouting")
    assert 'oifname { "eth2", "eth3" } masquerade random' in text
    with pytest.raises(BenchError, match="no name of an interface"):
        masquerade.work("present", ['a" drop'], "kept", check_mode=True)


def attribute(kind: int, data: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(data), kind) + data + bytes(-len(data) % 4)


def test_a_connection_as_the_kernel_writes_it() -> None:
    protocol = attribute(0x8002, attribute(1, b"\x11") + attribute(2, b"\x13\x89"))
    entry = attribute(0x8001, attribute(0x8001, bytes(16)) + protocol) + attribute(3, struct.pack("!I", 0x19A))
    assert conntrack.read_entry(entry) == (17, 0x19A)
    assert conntrack.read_entry(b"") == (0, 0)
    assert conntrack.read_entry(b"\x01\x00\x01\x00") == (0, 0)


def test_drops_are_added_up_over_the_cpus() -> None:
    text = "entries  searched insert_failed drop early_drop\n00000009 00000000 00000001 0000000a 00000000\n"
    text += "00000009 00000000 00000002 00000001 000000ff\n"
    assert conntrack.read_drops(text) == {"insert_failed": 3, "drop": 11, "early_drop": 255}


@pytest.mark.lab
@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("nft") is None, reason="needs root and nft")
def test_a_real_kernel_counts_and_forgets() -> None:
    """In a namespace of its own: a datagram that is translated on its way out of a device."""
    name = f"fpn-{os.getpid()}"
    code = """
import json, socket
from ansible_collections.fastpath.bench.plugins.module_utils._host import masquerade as m
out = [m.work("present", ["out0"], "kept", check_mode=False)["changed"] for _time in range(2)]
for port in range(5):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.bind(("192.0.2.9", 0)); one.sendto(b"x", ("198.51.100.9", 5000 + port))
out.append(m.work("gathered", [], "kept", check_mode=False)["connections"]["protocols"])
out.append(m.work("cleared", [], "kept", check_mode=False)["connections"]["total"])
out += [m.work("absent", [], "kept", check_mode=False)["changed"] for _time in range(2)]
print(json.dumps(out))
"""
    setup = "import runpy; runpy.run_path('tests/unit/conftest.py');"
    commands = [
        f"ip netns add {name}",
        f"ip -n {name} link add out0 type veth peer name far0",
        f"ip -n {name} addr add 192.0.2.1/24 dev out0",
        f"ip -n {name} addr add 192.0.2.9/32 dev out0",
        f"ip -n {name} link set out0 up",
        f"ip -n {name} link set far0 up",
        f"ip -n {name} route add 198.51.100.0/24 dev out0 src 192.0.2.1",
        f"ip -n {name} neigh add 198.51.100.9 lladdr 02:00:00:00:00:09 dev out0",
    ]
    try:
        for command in commands:
            subprocess.run(command.split(), check=True, timeout=20)
        argv = ["ip", "netns", "exec", name, sys.executable, "-c", setup + code]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout) == [True, False, {"udp": 5}, 0, True, False]
    finally:
        subprocess.run(["ip", "netns", "del", name], check=False, timeout=20)
