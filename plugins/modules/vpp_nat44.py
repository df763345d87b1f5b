#!/usr/bin/python
# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: vpp_nat44
short_description: Set NAT44 of VPP, count its sessions and clear them
version_added: 0.1.0
description:
  - Brings NAT44 of VPP, its interfaces, address pools and mappings to what is asked, in one call over one API session,
    and tells how many sessions it holds.
  - VPP has two NAT44, see O(mode). It would take both at the same time; this module refuses the second one.
  - What can only be given when NAT44 is switched on (O(sessions), O(users), O(user_sessions), O(inside_vrf),
    O(outside_vrf), O(static_mapping_only), O(connection_tracking), O(out2in_dpo)) is compared with what runs. VPP
    itself says "already enabled" and keeps the old value. Another value needs O(reenable).
  - A pool address or mapping that differs is removed and made again, as VPP cannot change one. The sessions that came
    of it are lost.
  - Running state only. A restart of VPP loses it. O(state=rendered) gives the lines for VPP's start-up script.
extends_documentation_fragment:
  - fastpath.bench.vpp
  - fastpath.bench.vpp.attributes
author:
  - fastpath.bench contributors (@fastpath)
options:
  state:
    description:
      - V(merged) switches NAT44 on and adds what is asked. Options that are not given, and other interfaces, pools and
        mappings, are left alone.
      - V(replaced) makes NAT44 exactly as asked. Options that are not given get VPP's default; other interfaces, pools
        and mappings are removed.
      - V(deleted) removes the interfaces, pools and mappings that are given; without any, it switches NAT44 off.
      - V(cleared) removes all sessions and sees that none is left. It fails when traffic opens them again.
      - V(gathered) reads, and returns RV(nat44) and RV(sessions).
      - V(rendered) asks no VPP. It returns RV(rendered).
    type: str
    choices: [merged, replaced, deleted, gathered, rendered, cleared]
    default: merged
  mode:
    description:
      - V(endpoint_dependent) knows a session by the addresses and ports of both ends, so that one outside port serves
        many destinations. It has load balancing, twice-nat and limits by VRF.
      - V(endpoint_independent) knows it by the inside end alone. It has limits by user.
    type: str
    choices: [endpoint_dependent, endpoint_independent]
    default: endpoint_dependent
  reenable:
    description:
      - Switch NAT44 off and on when only that brings what is asked. All sessions are lost; interfaces, pools and
        mappings that are there come back.
    type: bool
    default: false
  sessions:
    description:
      - How many sessions each thread can hold. VPP's default is 64512, and 10240 with O(mode=endpoint_independent).
    type: int
  users:
    description: How many inside addresses each thread can hold. Only with O(mode=endpoint_independent).
    type: int
  user_sessions:
    description: How many sessions an inside address can have. Only with O(mode=endpoint_independent).
    type: int
  inside_vrf:
    description: The VRF of the inside, which also is the one of mappings that name none.
    type: int
  outside_vrf:
    description: The VRF of the outside.
    type: int
  static_mapping_only:
    description: Only mappings translate, no pool. Only with O(mode=endpoint_independent).
    type: bool
  connection_tracking:
    description: With O(static_mapping_only=true), keep sessions nevertheless.
    type: bool
  out2in_dpo:
    description: Find packets from the outside by the route of the pool instead of by their interface. Only with
      O(mode=endpoint_independent).
    type: bool
  forwarding:
    description: Forward packets that match nothing, instead of dropping them.
    type: bool
  mss_clamp_bytes:
    description: Largest TCP segment that SYN packets are made to announce. V(0) leaves them alone.
    type: int
  timeouts:
    description: After how many seconds without a packet a session may go.
    type: dict
    suboptions:
      udp_s:
        description: Of UDP.
        type: int
      tcp_established_s:
        description: Of TCP, when the connection is open.
        type: int
      tcp_transitory_s:
        description: Of TCP, while it opens or closes.
        type: int
      icmp_s:
        description: Of ICMP.
        type: int
  session_limits:
    description:
      - How many sessions a thread may hold at most when a packet of this VRF asks for another one. The sessions of all
        VRFs count. Only with O(mode=endpoint_dependent).
    type: list
    elements: dict
    suboptions:
      vrf:
        description: The VRF, which an interface or a pool has to have.
        type: int
        default: 0
      sessions:
        description: The limit, at most O(sessions).
        type: int
        required: true
  interfaces:
    description: The interfaces that NAT44 works on.
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: VPP's name of the interface.
        type: str
        required: true
      role:
        description:
          - V(inside), V(outside), or V(both). With V(output), packets are translated when they leave by it, from
            whatever interface they came.
        type: str
        choices: [inside, outside, both, output]
  pools:
    description:
      - The outside addresses. With O(mode=endpoint_dependent), VPP takes one of them for an inside address, by that
        address, and never another one when its 64512 ports for a protocol and a destination are used up.
    type: list
    elements: dict
    default: []
    suboptions:
      first:
        description: The first address.
        type: str
      last:
        description: The last address. Without it, there is one.
        type: str
      interface:
        description: The first address of this interface, whatever it is, instead of O(pools[].first).
        type: str
      vrf:
        description: Only for this VRF. Without it, for all.
        type: int
      twice_nat:
        description: For the addresses of outside hosts in twice-nat.
        type: bool
        default: false
  static_mappings:
    description: One inside address, or a port of it, for one outside address or port.
    type: list
    elements: dict
    default: []
    suboptions:
      local:
        description: The inside address.
        type: str
        required: true
      external:
        description: The outside address.
        type: str
      external_interface:
        description: The first address of this interface, whatever it is, instead of O(static_mappings[].external).
        type: str
      protocol:
        description: Only this protocol, with both ports. Without it, the whole address.
        type: str
        choices: [tcp, udp, icmp]
      local_port:
        description: The inside port.
        type: int
      external_port:
        description: The outside port.
        type: int
      vrf:
        description: VRF of the inside address. Without it, O(inside_vrf).
        type: int
      twice_nat:
        description: V(twice) translates the outside host too; V(self) only when that is the inside address itself.
        type: str
        choices: ['no', twice, self]
        default: 'no'
      out2in_only:
        description: Only for sessions that come from the outside.
        type: bool
        default: false
      tag:
        description: A name for it.
        type: str
  identity_mappings:
    description: What is not translated.
    type: list
    elements: dict
    default: []
    suboptions:
      address:
        description: The address.
        type: str
      interface:
        description: The first address of this interface instead of O(identity_mappings[].address).
        type: str
      protocol:
        description: Only this protocol and port.
        type: str
        choices: [tcp, udp, icmp]
      port:
        description: The port.
        type: int
      vrf:
        description: Its VRF. Without it, O(inside_vrf).
        type: int
      tag:
        description: A name for it.
        type: str
  load_balanced_mappings:
    description: An outside port for several inside hosts. Only with O(mode=endpoint_dependent).
    type: list
    elements: dict
    default: []
    suboptions:
      external:
        description: The outside address, which a pool has to have unless O(load_balanced_mappings[].out2in_only).
        type: str
        required: true
      external_port:
        description: The outside port.
        type: int
        required: true
      protocol:
        description: The protocol.
        type: str
        choices: [tcp, udp, icmp]
        required: true
      backends:
        description: At least two.
        type: list
        elements: dict
        default: []
        suboptions:
          address:
            description: The inside address.
            type: str
            required: true
          port:
            description: The inside port.
            type: int
            required: true
          probability:
            description: Its share, 1 to 255.
            type: int
            default: 1
          vrf:
            description: Its VRF. Without it, O(inside_vrf).
            type: int
      affinity_s:
        description: For so many seconds an outside host stays with its backend. V(0) is not at all.
        type: int
        default: 0
      twice_nat:
        description: As O(static_mappings[].twice_nat).
        type: str
        choices: ['no', twice, self]
        default: 'no'
      out2in_only:
        description: As O(static_mappings[].out2in_only).
        type: bool
        default: false
      tag:
        description: A name for it.
        type: str
  stats_socket:
    description:
      - Socket of VPP's statistics, from which sessions by thread and dropped packets are read. When nobody listens
        there, these are null.
    type: path
    default: /run/vpp/stats.sock
seealso:
  - module: fastpath.bench.vpp_interface
  - module: fastpath.bench.vpp_runtime
"""

EXAMPLES = r"""
- name: A NAT with two addresses
  fastpath.bench.vpp_nat44:
    sessions: 100000
    interfaces:
      - {name: host-eth1, role: inside}
      - {name: host-eth2, role: outside}
    pools:
      - {first: 198.51.100.10, last: 198.51.100.11}

- name: More sessions, although those that are there are lost
  fastpath.bench.vpp_nat44:
    sessions: 500000
    reenable: true

- name: No session is left from what was measured before
  fastpath.bench.vpp_nat44:
    state: cleared

- name: Switch it off
  fastpath.bench.vpp_nat44:
    state: deleted
"""

RETURN = r"""
changes:
  description: What was changed, or in check mode would be.
  returned: when O(state) is not V(rendered)
  type: list
  elements: dict
  contains:
    name:
      description: What it is of.
      type: str
    action:
      description: V(create), V(remove) or V(set).
      type: str
    property:
      description: Which property.
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
reenabled:
  description: Whether NAT44 was switched off and on, so that all sessions were lost.
  returned: when O(state) is V(merged), V(replaced) or V(deleted)
  type: bool
nat44:
  description: NAT44 as read back, in the form of the options, with C(enabled).
  returned: when O(state) is not V(rendered) and not V(cleared)
  type: dict
sessions:
  description: The sessions that are there now; null when NAT44 is off.
  returned: when O(state) is not V(rendered)
  type: dict
  contains:
    total:
      description: All.
      type: int
    timed_out:
      description: Those that are older than their timeout and stay until their place is needed. Null is unknown.
      type: int
    protocols:
      description:
        - By protocol C(total), and as far as VPP tells C(timed_out), and of TCP C(established) and C(transitory).
        - Null when VPP would have to be asked for each of many sessions.
      type: dict
    threads:
      description: By thread of VPP; the first is its main thread. Null is unknown.
      type: list
      elements: int
    max_per_thread:
      description: How many a thread can hold.
      type: int
    limits:
      description: VRF to its limit.
      type: dict
    drops:
      description:
        - Packets that opened no session as all ports were taken (C(out_of_ports)) or the table was full
          (C(sessions_exceeded)), since VPP's counters were cleared.
      type: dict
    full:
      description: Part of what it may hold that the fullest thread has in use. The tightest limit of a VRF counts.
      type: float
    why:
      description: Why something is null.
      type: str
sessions_before:
  description: The sessions before they were cleared.
  returned: when O(state=cleared)
  type: dict
clearing:
  description: How long that took; null when there was nothing to clear, and in check mode.
  returned: when O(state=cleared)
  type: dict
  contains:
    command_s:
      description: Seconds that VPP's command to remove all sessions had.
      type: float
    proven_s:
      description: Seconds until it was seen that none is left.
      type: float
    tries:
      description: How many times it was done.
      type: int
findings:
  description: What needs attention.
  returned: when O(state) is not V(rendered) and not V(cleared)
  type: list
  elements: dict
rendered:
  description: Lines of VPP's command line that make the same from nothing.
  returned: when O(state=rendered)
  type: list
  elements: str
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.fastpath.bench.plugins.module_utils._vpp import nat44, nat44_config, nat44_run
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.options import (
    connection_spec,
    failing,
    session_of,
    warn_about,
)
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.statseg import DEFAULT_SOCKET


def _list_of(**options: dict[str, t.Any]) -> dict[str, t.Any]:
    return {"type": "list", "elements": "dict", "default": [], "options": options}


def argument_spec() -> dict[str, t.Any]:
    protocol = {"type": "str", "choices": list(nat44_config.PROTOCOL_CHOICES)}
    twice = {"type": "str", "choices": list(nat44.TWICE), "default": "no"}
    flag = {"type": "bool", "default": False}
    number, text = {"type": "int"}, {"type": "str"}
    needed, needed_number = {"type": "str", "required": True}, {"type": "int", "required": True}
    return {
        **connection_spec(),
        "state": {"type": "str", "choices": list(nat44_run.STATES), "default": "merged"},
        "mode": {"type": "str", "choices": list(nat44.MODES), "default": nat44.ED.name},
        "reenable": flag,
        "sessions": number,
        "users": number,
        "user_sessions": number,
        "inside_vrf": number,
        "outside_vrf": number,
        "static_mapping_only": {"type": "bool"},
        "connection_tracking": {"type": "bool"},
        "out2in_dpo": {"type": "bool"},
        "forwarding": {"type": "bool"},
        "mss_clamp_bytes": number,
        "timeouts": {
            "type": "dict",
            "options": dict.fromkeys(("udp_s", "tcp_established_s", "tcp_transitory_s", "icmp_s"), number),
        },
        "session_limits": {
            "type": "list",
            "elements": "dict",
            "options": {"vrf": {"type": "int", "default": 0}, "sessions": needed_number},
        },
        "interfaces": _list_of(name=needed, role={"type": "str", "choices": list(nat44.ROLES)}),
        "pools": _list_of(first=text, last=text, interface=text, vrf=number, twice_nat=flag),
        "static_mappings": _list_of(
            local=needed,
            external=text,
            external_interface=text,
            protocol=protocol,
            local_port=number,
            external_port=number,
            vrf=number,
            twice_nat=twice,
            out2in_only=flag,
            tag=text,
        ),
        "identity_mappings": _list_of(
            address=text, interface=text, protocol=protocol, port=number, vrf=number, tag=text
        ),
        "load_balanced_mappings": _list_of(
            external=needed,
            external_port=needed_number,
            protocol={**protocol, "required": True},
            backends=_list_of(
                address=needed, port=needed_number, probability={"type": "int", "default": 1}, vrf=number
            ),
            affinity_s={"type": "int", "default": 0},
            twice_nat=twice,
            out2in_only=flag,
            tag=text,
        ),
        "stats_socket": {"type": "path", "default": DEFAULT_SOCKET},
    }


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    params = module.params
    with failing(module):
        if params["state"] == "rendered":
            rendered = nat44_config.render(params, nat44.MODES[params["mode"]])
            module.exit_json(changed=False, rendered=rendered)
        with session_of(module) as session:
            result = nat44_run.run(
                session,
                params,
                params["state"],
                reenable=params["reenable"],
                stats_socket=params["stats_socket"],
                check_mode=module.check_mode,
            )
        warn_about(module, result.get("findings", ()))
        module.exit_json(**result)


if __name__ == "__main__":
    main()
