# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import io
import ipaddress
import json
import subprocess
import tarfile

import pytest

from ansible_collections.fastpath.bench.plugins.module_utils._lab import accel, guest
from ansible_collections.fastpath.bench.plugins.module_utils._lab.names import LabNames
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

NAMES = LabNames("x")
TOPOLOGY = parse_topology(
    {
        "name": "x",
        "topology": {
            "nodes": {"dut": {"kind": "vm", "cpus": 2, "memory": "1GiB"}, "left": None},
            "links": [
                {
                    "endpoints": [{"node": "dut", "interface": "wan", "offloads": {"tso": False}}, "left:eth2"],
                    "queues": 2,
                },
                {"endpoints": ["left:eth1", "dut:lan"], "mtu": 9000},
            ],
        },
    }
)
DUT = TOPOLOGY.nodes[0]
SPEC = guest.spec(TOPOLOGY, DUT, "abc")
KEYS = {"user_public": "ssh-ed25519 U", "host_private": "PRIVATE", "host_public": "ssh-ed25519 H"}


def test_the_cards_are_the_cables_ends() -> None:
    assert [(card.name, card.queues, card.mtu_bytes) for card in SPEC.cards] == [("lan", 1, 9000), ("wan", 2, 1500)]
    macs = {card.mac for card in SPEC.cards}
    assert len(macs) == 2
    assert all(int(mac[:2], 16) & 3 == 2 for mac in macs)  # locally administered, of one card
    assert guest.spec(TOPOLOGY, DUT, "abc") == SPEC
    assert json.loads(json.dumps(SPEC.as_data())) == SPEC.as_data()


def test_the_command_of_a_guest() -> None:
    argv = guest.qemu_command(NAMES, "dut", SPEC, accel.TCG)
    words = " ".join(argv)
    assert "-smp 2 -m 1024" in words
    assert "tap,id=card0,ifname=_tap0,script=no,downscript=no -device virtio-net-pci,romfile=,netdev=card0" in words
    assert "ifname=_tap1,script=no,downscript=no,queues=2" in words
    assert "mq=on,vectors=6" in words
    assert "host_mtu=9000" in words
    assert "kvm" not in words
    assert "-accel kvm" in " ".join(guest.qemu_command(NAMES, "dut", SPEC, accel.KVM))


def test_the_management_network_is_none_that_a_testbed_uses() -> None:
    network = ipaddress.ip_network(guest.MANAGEMENT_NETWORK)
    assert network.is_link_local
    assert {ipaddress.ip_address(each) in network for each in (guest.MANAGEMENT_GUEST, guest.MANAGEMENT_HOST)} == {True}
    words = " ".join(guest.qemu_command(NAMES, "dut", SPEC, accel.TCG))
    assert f"user,id=mgmt0,net={network}" in words
    assert "restrict=on" in words


def test_the_seed_makes_an_image_this_host() -> None:
    with tarfile.open(fileobj=io.BytesIO(guest.seed(NAMES, "dut", SPEC, KEYS))) as archive:
        members = {member.name: member for member in archive.getmembers()}
        texts = {
            name: file.read().decode() for name, member in members.items() if (file := archive.extractfile(member))
        }
    assert members["root/.ssh"].mode == 0o700
    assert members["etc/ssh/ssh_host_ed25519_key"].mode == 0o600
    assert texts["etc/hostname"] == "dut\n"
    assert [line.split()[1:] for line in texts["etc/fastpath-lab/interfaces"].splitlines()] == [
        ["mgmt0", "1500", "1"],
        ["lan", "9000", "1"],
        ["wan", "1500", "2"],
    ]
    assert texts["etc/fastpath-lab/offloads"] == "wan tso tcp-segmentation-offload off\n"
    subprocess.run(["sh", "-n"], input=texts["etc/fastpath-lab/setup"], text=True, check=True)


def test_the_way_in_is_the_same_for_ansible_and_a_person() -> None:
    script = guest.ssh_script(NAMES, "dut")
    assert "nsenter --net=/run/netns/fpl-x-dut -- ssh -F /run/fastpath-lab/x/dut/ssh_config" in script
    config = guest.ssh_config(NAMES, "dut")
    assert "StrictHostKeyChecking yes" in config
    assert "IdentityFile /run/fastpath-lab/x/id_ed25519" in config


# -- the plan ----------------------------------------------------------------------------------------------


def found(
    state: str = RUNNING, *, joined: bool = True, images: frozenset[str] = frozenset(), **changed: object
) -> Found:
    nodes = {
        "dut": FoundNode("vm", state, {**SPEC.as_data(), "accelerator": "tcg", **changed}),
        "left": FoundNode("linux", RUNNING),
    }
    ends = {}
    for cable in TOPOLOGY.cables:
        for end, other in (cable.ends, cable.ends[::-1]):
            ends[end.key] = FoundEnd(other.key, end.queues, joined and end.node == "dut")
    every = [end for cable in TOPOLOGY.cables for end in cable.ends]
    return Found(nodes, ends, frozenset(ends), {end.key: end.settings() for end in every}, images)


WANTED = {"dut": SPEC.as_data()}
WAN, LAN = TOPOLOGY.cables


def test_a_running_guest_stays_as_it_is_though_its_image_is_gone() -> None:
    assert plan(found(), TOPOLOGY, WANTED) == Plan()


def test_from_nothing_the_image_is_built_first() -> None:
    todo = plan(Found(), TOPOLOGY, WANTED)
    assert todo == Plan(build=("abc",), start=("dut", "left"), lay=(WAN, LAN))
    assert todo.steps()[0] == "build image abc"
    assert plan(Found(images=frozenset({"abc"})), TOPOLOGY, WANTED).build == ()


def test_an_end_that_does_not_lead_to_the_guest_is_laid_anew() -> None:
    todo = plan(found(joined=False), TOPOLOGY, WANTED)
    assert todo == Plan(cut=("dut:lan", "dut:wan"), lay=(WAN, LAN))


@pytest.mark.parametrize("state", [RUNNING, BOOTING, DEAD])
def test_another_size_is_another_start_on_the_same_disk(state: str) -> None:
    todo = plan(found(state, cpus=1, images=frozenset({"abc"})), TOPOLOGY, WANTED)
    assert todo == Plan(start=("dut",), lay=(WAN, LAN))


def test_another_image_is_another_disk() -> None:
    todo = plan(found(image="old"), TOPOLOGY, WANTED)
    assert todo == Plan(build=("abc",), remove=("dut",), start=("dut",), lay=(WAN, LAN))


def test_one_seen_starting_is_waited_for() -> None:
    assert plan(found(BOOTING), TOPOLOGY, WANTED) == Plan(wait=("dut",))
