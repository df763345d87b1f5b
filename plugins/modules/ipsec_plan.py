#!/usr/bin/python
# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: ipsec_plan
short_description: Work out one gateway's side of IPsec tunnels from a description of both
version_added: 0.1.0
description:
  - From one description of both gateways it works out what one of them has to have - tunnels, interface ids, xfrm
    interfaces with their MTU, routes, the clamp of TCP's segment size, and the text of swanctl.conf. Called for each
    gateway with the same description, the ends cannot differ.
  - Proposals are judged before a host is touched. It runs on the controller, changes nothing and asks no host.
attributes:
  check_mode:
    support: full
    description: It changes nothing in any case.
  diff_mode:
    support: none
    description: It changes nothing.
author:
  - fastpath.bench contributors (@fastpath)
options:
  gateways:
    description: Both gateways. The first one builds the tunnels, the second one answers.
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description: Its name.
        type: str
        required: true
      interfaces:
        description: Its interfaces.
        type: list
        elements: dict
        default: []
        suboptions:
          name:
            description: Name of the interface.
            type: str
            required: true
          addresses:
            description: Addresses with prefix lengths.
            type: list
            elements: str
            default: []
          mtu_bytes:
            description: MTU.
            type: int
            default: 1500
      networks:
        description:
          - Networks behind it, which are reached through the tunnel. Without any, the networks of its interfaces that
            the other gateway has no part in.
        type: list
        elements: str
        default: []
  gateway:
    description: Whose side is worked out.
    type: str
    required: true
  mode:
    description:
      - V(route) has an xfrm interface for each tunnel and routes over them. V(policy) has policies alone, and one
        tunnel.
    type: str
    choices: [route, policy]
    default: route
  tunnels:
    description: Number of tunnels, each with an IKE_SA and a CHILD_SA of its own.
    type: int
    default: 1
  outer:
    description:
      - Pairs of outer addresses, the first gateway's first. Several tunnels take them in turn.
      - Without any, the addresses in the first network that both gateways are in.
    type: list
    elements: list
    default: []
  outer_pairs:
    description: How many pairs are taken of the addresses in that network, where O(outer) names none.
    type: int
    default: 1
  ike:
    description: IKE proposals as strongSwan writes them.
    type: list
    elements: str
    default: [aes128gcm16-prfsha256-x25519]
  esp:
    description: ESP proposals. The first that both ends have is taken.
    type: list
    elements: str
    default: [aes128gcm16]
  peer_ike:
    description:
      - What the peer has instead of O(ike), when someone else sets it up. Refused when they have none in common.
    type: list
    elements: str
  peer_esp:
    description: As O(peer_ike), for O(esp).
    type: list
    elements: str
  if_ids:
    description:
      - Interface id of each tunnel, as C(in) and C(out), which must be the same, decimal or hexadecimal. Without any,
        O(first_if_id) and those that follow.
    type: list
    elements: dict
    default: []
  first_if_id:
    description: Interface id of the first tunnel, decimal or hexadecimal.
    type: raw
    default: 42
  interface_prefix:
    description: Names of the xfrm interfaces, before the number.
    type: str
    default: ipsec
  path_mtu_bytes:
    description: MTU of the path between the outer addresses. Without it, the smallest of the interfaces that have them.
    type: int
  nat_t:
    description: Have ESP in UDP also without a NAT on the way.
    type: bool
    default: false
  auth:
    description: V(psk) or certificates (V(pubkey)).
    type: str
    choices: [psk, pubkey]
    default: psk
  rekey_ike_s:
    description: After how many seconds IKE makes new keys. V(0) never.
    type: int
    default: 14400
  rekey_esp_s:
    description: After how many seconds ESP gets new keys. V(0) never.
    type: int
    default: 3600
  reauth_s:
    description: After how many seconds the peers authenticate anew. V(0) never.
    type: int
    default: 0
  dpd_delay_s:
    description: How often the peer is asked whether it lives.
    type: int
    default: 10
  start_action:
    description: What the first gateway does when the daemon starts.
    type: str
    choices: [none, start, trap]
    default: start
  replay_window:
    description: Size of the replay window in packets. A small one drops packets that several CPUs put out of order.
    type: int
    default: 1024
  mss_clamp:
    description: Whether TCP's segment size is to be clamped to what fits the tunnel.
    type: bool
    default: true
"""

EXAMPLES = r"""
- name: This gateway's side
  fastpath.bench.ipsec_plan:
    gateway: "{{ inventory_hostname }}"
    gateways:
      - name: gw1
        interfaces:
          - {name: eth1, addresses: [10.73.1.254/24]}
          - {name: eth2, addresses: [10.73.9.1/24]}
      - name: gw2
        interfaces:
          - {name: eth1, addresses: [10.73.2.254/24]}
          - {name: eth2, addresses: [10.73.9.2/24]}
    tunnels: 4
    esp: [aes128gcm16]
  register: plan
"""

RETURN = r"""
connections:
  description: Text of swanctl.conf, without secrets.
  returned: success
  type: str
interfaces:
  description: The xfrm interfaces, C(name), C(if_id), C(dev), C(mtu_bytes), C(up).
  returned: success
  type: list
  elements: dict
routes:
  description: Routes over the tunnels, C(dst) and C(devs).
  returned: success
  type: list
  elements: dict
mss:
  description: Clamps of TCP's segment size, each C(interface version size) or C(network version size).
  returned: success
  type: list
  elements: str
mtu_bytes:
  description: The largest packet that fits into a tunnel.
  returned: success
  type: int
ids:
  description: The IKE identities of both ends of all tunnels.
  returned: success
  type: list
  elements: str
expected:
  description: What M(fastpath.bench.ipsec_sa) is to wait for.
  returned: success
  type: list
  elements: dict
outer_pairs:
  description: How many pairs of outer addresses the tunnels have.
  returned: success
  type: int
"""
