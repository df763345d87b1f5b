#!/usr/bin/python
# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: vpp_interface
short_description: Make, set up and remove interfaces of VPP
version_added: 0.1.0
description:
  - Brings any number of VPP's interfaces to what is asked, in one call over one API session. What is there is read
    first, only what differs is written, and all is read back.
  - Running state only. A restart of VPP loses it. O(state=rendered) gives the same configuration as lines for the
    script that VPP runs at its start.
  - Nothing is undone when VPP refuses something in the middle. The failure names it, and running the task again does
    what is left.
extends_documentation_fragment:
  - fastpath.bench.vpp
  - fastpath.bench.vpp.attributes
author:
  - fastpath.bench contributors (@fastpath)
options:
  state:
    description:
      - V(merged) makes what is missing and sets the options that are given. All else is left alone.
      - V(replaced) also brings the other properties of the interfaces in O(config) to their defaults; down, no
        addresses, VRF 0, no tag, MTU as VPP gives it. MAC, receive mode and GSO stay.
      - V(overridden) is V(replaced), and removes all other interfaces. Network cards, and tunnels and other kinds that
        this module does not make, are not removed; they are reset as V(replaced) does.
      - V(deleted) removes the interfaces in O(config); network cards are reset.
      - V(gathered) reads, and returns RV(gathered) in the form of O(config).
      - V(rendered) asks no VPP. It returns RV(rendered). VPP's command line keeps one of the four MTUs, so more than
        one for an interface is refused here.
    type: str
    choices: [merged, replaced, overridden, deleted, gathered, rendered]
    default: merged
  recreate:
    description:
      - Remove and make an interface anew when a property differs that VPP cannot change, such as the number of queues.
        It keeps what is not asked to change, also its MAC, and its sub-interfaces come back. Its routes and queue
        placements are lost.
      - Without it such a difference is an error.
    type: bool
    default: false
  config:
    description: The interfaces.
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description:
          - VPP's name of an interface that exists. With another O(config[].type) than V(hardware) it is not needed, as
            VPP makes the name itself; see RV(interfaces).
        type: str
      type:
        description:
          - What kind of interface it is. Not needed for one that exists.
          - V(af_packet) and V(af_xdp) take over a device of the kernel, named by O(config[].host_interface), which must
            be in the network namespace of VPP.
          - V(vlan) is a sub-interface of O(config[].parent).
          - V(hardware) is a network card that VPP has by itself.
        type: str
        choices: [af_packet, af_xdp, tap, memif, loopback, vlan, hardware]
      host_interface:
        description: Device of the kernel, for V(af_packet) and V(af_xdp). For V(tap) the name of the kernel's end.
        type: str
      host_namespace:
        description: For V(tap), network namespace of the kernel's end.
        type: str
      instance:
        description: Number of a V(loopback) or V(tap).
        type: int
      parent:
        description: For V(vlan), VPP's name of the interface below. It can be made in the same call.
        type: str
      sub_id:
        description: For V(vlan), number of the sub-interface. Without it, O(config[].vlan_id).
        type: int
      vlan_id:
        description: For V(vlan), the VLAN tag, the outer one if there are two.
        type: int
      inner_vlan_id:
        description: For V(vlan), the inner tag.
        type: int
      dot1ad:
        description: For V(vlan), whether the outer tag is of 802.1ad. Without it, 802.1Q.
        type: bool
      memif_id:
        description: For V(memif), number on its socket. Both ends have the same.
        type: int
      memif_socket_id:
        description: For V(memif), number of the socket, which must exist. Without it, 0, which VPP makes itself.
        type: int
      memif_role:
        description: For V(memif). One end is the master. Without it, V(slave).
        type: str
        choices: [master, slave]
      ring_size:
        description: For V(memif), entries of a ring, a power of two. Without it, 1024. A difference is not noticed.
        type: int
      rx_queues:
        description:
          - Number of receive queues. Without it, 1, and for V(af_xdp) as many as the device has, since VPP never sees
            what arrives on another one. Only O(recreate=true) changes it.
          - VPP does not tell the queues of a V(memif), so a difference there is not noticed.
        type: int
      tx_queues:
        description: Number of transmit queues, as O(config[].rx_queues).
        type: int
      rx_frame_size_bytes:
        description: For V(af_packet), size of a frame of the receive ring. Without it, VPP's 2048.
        type: int
      checksum_gso:
        description:
          - For V(af_packet) and V(tap), take and give packets with open checksums and segments. Without it, V(true) for
            V(af_packet), as on VPP's command line, and V(false) for V(tap). Only O(recreate=true) changes it.
        type: bool
      qdisc_bypass:
        description:
          - For V(af_packet), send past the kernel's queueing discipline. Without it, V(true), as on VPP's command line.
            Only O(recreate=true) changes it.
        type: bool
      xdp_mode:
        description: For V(af_xdp). VPP does not tell it afterwards, so a difference is not noticed.
        type: str
        choices: [auto, copy, zero_copy]
      up:
        description: Whether the interface is administratively up. A sub-interface needs its parent up.
        type: bool
      mtu_bytes:
        description:
          - The largest packet. More than the link carries is refused; VPP itself would accept it and lose the packets.
            For V(af_packet) and V(af_xdp) the MTU of the kernel's device counts. With V(af_xdp) a packet must also fit
            into a buffer less 270 bytes, which is 1778 with the buffers that VPP has by itself.
        type: int
      mtu_ip4_bytes:
        description: MTU for IPv4 alone.
        type: int
      mtu_ip6_bytes:
        description: MTU for IPv6 alone.
        type: int
      mtu_mpls_bytes:
        description: MTU for MPLS alone.
        type: int
      link_mtu_bytes:
        description: For V(hardware), what the card itself should carry.
        type: int
      addresses:
        description: Addresses with their prefix lengths, IPv4 and IPv6. Link-local ones are VPP's own affair.
        type: list
        elements: str
      addresses_state:
        description: V(exact) removes all other addresses, V(present) only adds what is missing.
        type: str
        choices: [exact, present]
        default: exact
      vrf:
        description:
          - Routing table of the interface, for IPv4 and IPv6. It is made when it does not exist. Addresses are taken
            off for the change and set again.
        type: int
      mac:
        description: MAC address. Without it VPP takes a random one each time the interface is made.
        type: str
      tag:
        description: Free text of at most 63 bytes without blanks. An empty one removes it.
        type: str
      rx_mode:
        description:
          - How packets are fetched. V(af_packet) and V(af_xdp) do V(polling) and V(interrupt) only. With V(af_xdp)
            VPP takes V(adaptive) and does V(interrupt), so it is refused.
        type: str
        choices: [polling, interrupt, adaptive]
      gso:
        description: Whether VPP itself cuts large segments on the way out.
        type: bool
notes:
  - A tag, a queue number or a mode that VPP accepts without doing it is found by reading back, and fails with the code
    V(not_as_asked).
seealso:
  - module: fastpath.bench.vpp_rx_placement
  - module: fastpath.bench.vpp_route
  - module: fastpath.bench.vpp_info
"""

EXAMPLES = r"""
- name: A router with two ports and a VLAN
  fastpath.bench.vpp_interface:
    config:
      - type: af_packet
        host_interface: eth1
        rx_queues: 4
        tx_queues: 4
        mtu_bytes: 9000
        addresses: [192.0.2.1/24, "2001:db8:1::1/64"]
        up: true
      - type: af_packet
        host_interface: eth2
        rx_queues: 4
        tx_queues: 4
        up: true
      - type: vlan
        parent: host-eth2
        vlan_id: 100
        vrf: 7
        addresses: [198.51.100.1/24]
        up: true

- name: Poll instead of waiting for interrupts
  fastpath.bench.vpp_interface:
    config:
      - name: host-eth1
        rx_mode: polling

- name: The same for the script that VPP runs at its start
  fastpath.bench.vpp_interface:
    state: rendered
    config: "{{ router_interfaces }}"
  register: script

- name: Remove everything that VPP was made to have
  fastpath.bench.vpp_interface:
    state: overridden
    config: []
"""

RETURN = r"""
changes:
  description: What was changed, or in check mode would be.
  returned: when O(state) is not V(rendered)
  type: list
  elements: dict
  contains:
    name:
      description: VPP's name of the interface.
      type: str
    action:
      description: V(create), V(remove) or V(set). A recreated interface has V(remove) and V(create).
      type: str
    property:
      description: Which property, as in O(config); C(mtu) for all four together.
      returned: when C(action) is V(set)
      type: str
    before:
      description: Its value before.
      returned: when C(action) is V(set)
      type: raw
    after:
      description: Its value after.
      returned: when C(action) is V(set)
      type: raw
interfaces:
  description:
    - The interfaces of O(config) as read back, with the options of O(config) that VPP tells, and besides
      C(sw_if_index), C(link_up) and C(link_mtu_bytes). In check mode, what does not exist yet has C(name) and C(type)
      alone.
  returned: when O(state) is not V(rendered)
  type: list
  elements: dict
  contains:
    name:
      description: VPP's name.
      type: str
      sample: host-eth1
    type:
      description: As O(config[].type).
      type: str
    sw_if_index:
      description: VPP's number of it, until VPP restarts or the interface is made anew.
      type: int
    link_up:
      description: Whether its link is up.
      type: bool
    link_mtu_bytes:
      description: What VPP takes its link to carry.
      type: int
gathered:
  description: The interfaces in the form of O(config); those that O(config) names, or all.
  returned: when O(state=gathered)
  type: list
  elements: dict
rendered:
  description:
    - Lines of VPP's command line that make the same from nothing. Names are those that VPP 26.06 gives.
  returned: when O(state=rendered)
  type: list
  elements: str
findings:
  description: What one should know, such as V(mtu_over_frame).
  returned: when O(state) is not V(rendered)
  type: list
  elements: dict
  contains:
    code:
      description: A short stable word.
      type: str
    severity:
      description: V(info), V(warning) or V(error).
      type: str
    evidence:
      description: What was seen.
      type: str
    remedy:
      description: What to do.
      type: str
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.fastpath.bench.plugins.module_utils._vpp import interface_run
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.options import (
    connection_spec,
    failing,
    session_of,
    warn_about,
)


def argument_spec() -> dict[str, t.Any]:
    texts = ("name", "host_interface", "host_namespace", "parent", "mac", "tag")
    numbers = (
        *("instance", "sub_id", "vlan_id", "inner_vlan_id", "memif_id", "memif_socket_id", "ring_size"),
        *("rx_queues", "tx_queues", "rx_frame_size_bytes", "mtu_bytes", "mtu_ip4_bytes", "mtu_ip6_bytes"),
        *("mtu_mpls_bytes", "link_mtu_bytes", "vrf"),
    )
    return {
        **connection_spec(),
        "state": {"type": "str", "choices": list(interface_run.STATES), "default": "merged"},
        "recreate": {"type": "bool", "default": False},
        "config": {
            "type": "list",
            "elements": "dict",
            "default": [],
            "options": {
                "type": {
                    "type": "str",
                    "choices": ["af_packet", "af_xdp", "tap", "memif", "loopback", "vlan", "hardware"],
                },
                **{name: {"type": "str"} for name in texts},
                **{name: {"type": "int"} for name in numbers},
                **{name: {"type": "bool"} for name in ("dot1ad", "checksum_gso", "qdisc_bypass", "up", "gso")},
                "memif_role": {"type": "str", "choices": ["master", "slave"]},
                "xdp_mode": {"type": "str", "choices": ["auto", "copy", "zero_copy"]},
                "rx_mode": {"type": "str", "choices": ["polling", "interrupt", "adaptive"]},
                "addresses": {"type": "list", "elements": "str"},
                "addresses_state": {"type": "str", "choices": ["exact", "present"], "default": "exact"},
            },
        },
    }


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    config, state = module.params["config"], module.params["state"]
    with failing(module):
        if state == "rendered":
            module.exit_json(changed=False, rendered=interface_run.render(config))
        with session_of(module) as session:
            result = interface_run.run(
                session, config, state, recreate=module.params["recreate"], check_mode=module.check_mode
            )
        warn_about(module, result["findings"])
        module.exit_json(**result)


if __name__ == "__main__":
    main()
