# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cables: veth pairs made straight inside the namespaces of two nodes. Nothing shows in the machine's own."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import re
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._lab import machine
from ansible_collections.fastpath.bench.plugins.module_utils._lab.machine import LabError
from ansible_collections.fastpath.bench.plugins.module_utils._lab.names import LabNames
from ansible_collections.fastpath.bench.plugins.module_utils._lab.plan import FoundEnd
from ansible_collections.fastpath.bench.plugins.module_utils._lab.topology import BRIDGE_DEVICE, Cable, Endpoint

#: The short names that ``ethtool -K`` takes, as ``ethtool -k`` prints them. Other features have one name only.
LONG_NAMES = {
    "rx": "rx-checksumming",
    "tx": "tx-checksumming",
    "sg": "scatter-gather",
    "tso": "tcp-segmentation-offload",
    "gso": "generic-segmentation-offload",
    "gro": "generic-receive-offload",
    "lro": "large-receive-offload",
    "rxvlan": "rx-vlan-offload",
    "txvlan": "tx-vlan-offload",
    "ntuple": "ntuple-filters",
    "rxhash": "receive-hashing",
}

#: Devices of the lab's own begin so; no interface of a topology does.
OWN_PREFIX = "_"
#: What the end of a cable in a virtual machine's namespace is called when it leads to the guest's card.
JOINED = "fastpath-lab: joined"


def make_netns(names: LabNames, node: str) -> None:
    machine.run(["ip", "netns", "add", names.netns(node)])


def has_netns(names: LabNames, node: str) -> bool:
    """Whether the file is a namespace; a call that was killed can leave an empty file."""
    try:
        return os.stat(names.netns_file(node)).st_dev == os.stat("/proc/self/ns/net").st_dev
    except FileNotFoundError:
        return False


def remove_netns(names: LabNames, node: str) -> None:
    path = names.netns_file(node)
    if has_netns(names, node):
        machine.kill_in_netns(path)
        # The kernel removes a namespace's interfaces some time later, but a cable's far end has to be gone now.
        for link in links_in(names, node).links:
            if "link_netnsid" in link:
                machine.run(["ip", "-n", names.netns(node), "link", "del", link["ifname"]], check=False)
        machine.run(["ip", "netns", "del", names.netns(node)], check=False)
    machine.unmount(path)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


def make_bridge(names: LabNames, node: str) -> None:
    """A plain switch: no spanning tree, no delay, no snooping, no addresses."""
    in_netns = ["nsenter", f"--net={names.netns_file(node)}", "--"]
    machine.run(
        [*in_netns, "ip", "-batch", "-"],
        stdin=f"link set lo up\n"
        f"link add {BRIDGE_DEVICE} type bridge stp_state 0 forward_delay 0 mcast_snooping 0\n"
        f"link set {BRIDGE_DEVICE} addrgenmode none\n"
        f"link set {BRIDGE_DEVICE} up\n",
    )


@dataclasses.dataclass(frozen=True)
class NodeLinks:
    """What ``ip`` tells of a node: its interfaces, and which of its numbers stands for which named namespace."""

    links: list[dict[str, t.Any]]
    netns_by_id: dict[int, str]


def links_in(names: LabNames, node: str) -> NodeLinks:
    netns = names.netns(node)
    links = _ip_json(["ip", "-n", netns, "-json", "-details", "link", "show"])
    ids = _ip_json(["ip", "-n", netns, "-json", "netns", "list-id"])
    return NodeLinks(links, {entry["nsid"]: entry["name"] for entry in ids if "name" in entry})


def _ip_json(argv: list[str]) -> list[dict[str, t.Any]]:
    printed = machine.run(argv).stdout
    # Some versions print nothing at all for an empty list.
    return t.cast("list[dict[str, t.Any]]", json.loads(printed or "[]"))


def find_ends(names: LabNames, nodes: t.Mapping[str, NodeLinks]) -> dict[str, FoundEnd]:
    """The interfaces of the lab's nodes. Each end of a veth pair tells where its peer is, by namespace and index."""
    by_index = {(node, link["ifindex"]): link["ifname"] for node, found in nodes.items() for link in found.links}
    ends: dict[str, FoundEnd] = {}
    for node, found in nodes.items():
        for link in found.links:
            if link["ifname"] in ("lo", BRIDGE_DEVICE) or link["ifname"].startswith(OWN_PREFIX):
                continue
            peer = None
            other = names.node_of_netns(found.netns_by_id.get(link.get("link_netnsid", -1), ""))
            name = by_index.get((other or "", link.get("link_index", 0)))
            if name is not None and link.get("linkinfo", {}).get("info_kind") == "veth":
                peer = f"{other}:{name}"
            ends[f"{node}:{link['ifname']}"] = FoundEnd(
                peer, link.get("num_rx_queues", 1), joined=link.get("ifalias") == JOINED
            )
    return ends


def lay_command(names: LabNames, cable: Cable) -> str:
    """One line for ``ip -batch``."""

    def end(endpoint: Endpoint) -> str:
        return (
            f"name {endpoint.interface} netns {names.netns(endpoint.node)} mtu {endpoint.mtu_bytes}"
            f" numtxqueues {endpoint.queues} numrxqueues {endpoint.queues}"
        )

    return f"link add {end(cable.a)} type veth peer {end(cable.b)}\n"


def lay(names: LabNames, cables: t.Sequence[Cable], bridges: t.Container[str], machines: t.Container[str] = ()) -> None:
    if not cables:
        return
    machine.run(["ip", "-batch", "-"], stdin="".join(lay_command(names, cable) for cable in cables))
    by_node: dict[str, list[Endpoint]] = {}
    for cable in cables:
        for end in cable.ends:
            by_node.setdefault(end.node, []).append(end)
    for node, ends in by_node.items():
        lines = []
        for end in ends:
            if node in bridges or node in machines:
                lines.append(f"link set {end.interface} addrgenmode none")
            if node in bridges:
                lines.append(f"link set {end.interface} master {BRIDGE_DEVICE}")
            lines.append(f"link set {end.interface} up")
        machine.run(["ip", "-n", names.netns(node), "-batch", "-"], stdin="\n".join(lines) + "\n")


def join(names: LabNames, node: str, interface: str, device: str) -> None:
    """Let all frames pass between a cable's end and another device of the namespace, whatever they are."""
    netns = names.netns(node)
    # A card outlives its cable, and with it the way to the cable before.
    machine.run(["tc", "-n", netns, "qdisc", "del", "dev", device, "ingress"], check=False)
    lines = []
    for one, other in ((interface, device), (device, interface)):
        lines.append(f"qdisc add dev {one} ingress")
        lines.append(
            f"filter add dev {one} parent ffff: protocol all u32 match u32 0 0"
            f" action mirred egress redirect dev {other}"
        )
    machine.run(["tc", "-n", netns, "-batch", "-"], stdin="\n".join(lines) + "\n")
    # Said last: an end without the word is laid anew.
    machine.run(["ip", "-n", netns, "link", "set", interface, "alias", JOINED])


def cut(names: LabNames, end_key: str) -> None:
    node, interface = end_key.split(":", 1)
    machine.run(["ip", "-n", names.netns(node), "link", "del", interface])


def set_end(names: LabNames, end: Endpoint) -> None:
    """Set an interface's MTU and offloads, and read them back."""
    netns = names.netns(end.node)
    machine.run(["ip", "-n", netns, "link", "set", end.interface, "mtu", str(end.mtu_bytes)])
    if not end.offloads:
        return
    in_netns = ["nsenter", f"--net={names.netns_file(end.node)}", "--"]
    wanted = [word for name, on in end.offloads for word in (name, "on" if on else "off")]
    done = machine.run([*in_netns, "ethtool", "-K", end.interface, *wanted], check=False)
    features = parse_features(machine.run([*in_netns, "ethtool", "-k", end.interface]).stdout)
    wrong = [name for name, on in end.offloads if features.get(LONG_NAMES.get(name, name)) != on]
    if wrong:
        raise LabError(
            f"offloads not as asked after ethtool -K: {', '.join(wrong)}"
            + (f" ({done.stderr.strip()})" if done.stderr.strip() else ""),
            where=end.key,
            code="offload_refused",
        )


def parse_features(text: str) -> dict[str, bool]:
    """The features that ``ethtool -k`` prints."""
    features = {}
    for line in text.splitlines():
        match = re.fullmatch(r"\s*([a-z0-9-]+): (on|off)(?: \[.*\])?\s*", line)
        if match:
            features[match.group(1)] = match.group(2) == "on"
    return features
