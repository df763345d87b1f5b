#!/usr/bin/python
# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: vpp_det44
short_description: Set deterministic NAT of VPP, count its sessions, close and clear them
version_added: 0.1.0
description:
  - Brings VPP's deterministic NAT (DET44, for carriers), its interfaces and its mappings to what is asked, in one call
    over one API session. Each inside address has a fixed part of the ports of a fixed outside address, so that no
    log is needed to tell who it was.
  - VPP does not tell whether DET44 is on. It is taken for on when it has an interface or a mapping; otherwise only the
    answer to switching it on tells, so that check mode says that it would be.
  - VPP puts the feature on an interface once more when it is taken out. This module counts features, takes off those
    without a use, and reads that back.
  - Mappings that VPP does not survive are refused, such as those whose sessions do not fit its main heap, and those
    that overlap, which it takes in silence.
  - Running state only. A restart of VPP loses it.
extends_documentation_fragment:
  - fastpath.bench.vpp
  - fastpath.bench.vpp.attributes
author:
  - fastpath.bench contributors (@fastpath)
options:
  state:
    description:
      - V(merged) switches DET44 on and adds what is asked. What is not given is left alone.
      - V(replaced) makes it exactly as asked. Timeouts that are not given get VPP's default; other interfaces and
        mappings are removed.
      - V(deleted) removes the interfaces and mappings that are given; without any, all of them. VPP 26.06 can end
        with a signal when DET44 is switched off, so it is left on with nothing in it.
      - V(cleared) removes all sessions and sees that none is left. It fails when traffic opens them again.
      - V(closed) closes the sessions of O(close).
      - V(gathered) reads, and returns RV(det44) and RV(sessions).
    type: str
    choices: [merged, replaced, deleted, gathered, cleared, closed]
    default: merged
  inside_vrf:
    description:
      - The VRF of the inside. It is given when DET44 is switched on and cannot be changed without a restart of VPP.
        It is not told, so only one in which DET44 never was makes a difference.
    type: int
  outside_vrf:
    description: The VRF of the outside, as O(inside_vrf).
    type: int
  timeouts:
    description: After how many seconds without a packet a session goes.
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
  interfaces:
    description: The interfaces that DET44 works on.
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: VPP's name of the interface.
        type: str
        required: true
      role:
        description: Which side it is.
        type: str
        choices: [inside, outside]
  mappings:
    description:
      - Inside networks and their outside networks. An inside address has 1000 sessions at most, which VPP keeps room
        for from the start (24 bytes each).
    type: list
    elements: dict
    default: []
    suboptions:
      inside:
        description: The inside network, such as V(10.0.0.0/24), a /12 at most.
        type: str
        required: true
      outside:
        description: The outside network, with as many addresses at most.
        type: str
        required: true
  users:
    description: Inside addresses whose sessions are listed in RV(sessions).
    type: list
    elements: str
    default: []
  close:
    description: With O(state=closed), the sessions to close.
    type: list
    elements: dict
    default: []
    suboptions:
      inside:
        description: The inside address.
        type: str
        required: true
      inside_port:
        description: Its port.
        type: int
        required: true
      external:
        description: The far end's address.
        type: str
        required: true
      external_port:
        description: Its port.
        type: int
        required: true
seealso:
  - module: fastpath.bench.vpp_nat44
"""

EXAMPLES = r"""
- name: 256 inside addresses share two outside ones
  fastpath.bench.vpp_det44:
    interfaces:
      - {name: host-eth1, role: inside}
      - {name: host-eth2, role: outside}
    mappings:
      - {inside: 10.1.0.0/24, outside: 198.51.100.16/31}

- name: The sessions of one inside address
  fastpath.bench.vpp_det44:
    state: gathered
    users: [10.1.0.5]

- name: Take everything out
  fastpath.bench.vpp_det44:
    state: deleted
"""

RETURN = r"""
changes:
  description: What was changed, or in check mode would be.
  returned: when O(state) is V(merged), V(replaced), V(deleted) or V(gathered)
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
det44:
  description: DET44 as read back, in the form of the options, with C(enabled).
  returned: when O(state) is V(merged), V(replaced), V(deleted) or V(gathered)
  type: dict
sessions:
  description: The sessions that are there now.
  returned: when O(state) is not V(closed)
  type: dict
  contains:
    total:
      description: All.
      type: int
    mappings:
      description:
        - By mapping C(inside), C(outside), C(sessions), C(sharing) (inside addresses for each outside one),
          C(ports_per_address) and C(full), the part of its sessions in use.
      type: list
      elements: dict
    users:
      description: By address of O(users) its sessions, with both ends, C(outside_port) and C(state).
      returned: when O(users) has any
      type: dict
    users_full:
      description: Those of O(users) that have 900 sessions or more.
      returned: when O(users) has any
      type: list
      elements: str
sessions_before:
  description: The sessions before they were cleared.
  returned: when O(state=cleared)
  type: dict
closed:
  description: Those of O(close) that were there.
  returned: when O(state=closed)
  type: list
  elements: dict
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.fastpath.bench.plugins.module_utils._vpp import det44, det44_run
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.options import connection_spec, failing, session_of


def _list_of(**options: dict[str, t.Any]) -> dict[str, t.Any]:
    return {"type": "list", "elements": "dict", "default": [], "options": options}


def argument_spec() -> dict[str, t.Any]:
    text, number = {"type": "str", "required": True}, {"type": "int", "required": True}
    return {
        **connection_spec(),
        "state": {"type": "str", "choices": list(det44_run.STATES), "default": "merged"},
        "inside_vrf": {"type": "int"},
        "outside_vrf": {"type": "int"},
        "timeouts": {
            "type": "dict",
            "options": {f"{name}_s": {"type": "int"} for name in ("udp", "tcp_established", "tcp_transitory", "icmp")},
        },
        "interfaces": _list_of(name=text, role={"type": "str", "choices": list(det44.ROLES)}),
        "mappings": _list_of(inside=text, outside=text),
        "users": {"type": "list", "elements": "str", "default": []},
        "close": _list_of(inside=text, inside_port=number, external=text, external_port=number),
    }


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    params = module.params
    with failing(module):
        with session_of(module) as session:
            result = det44_run.run(session, params, params["state"], check_mode=module.check_mode)
        module.exit_json(**result)


if __name__ == "__main__":
    main()
