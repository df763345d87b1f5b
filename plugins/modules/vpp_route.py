#!/usr/bin/python
# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: vpp_route
short_description: Set static routes of VPP
version_added: 0.1.0
description:
  - Brings any number of static routes, with one or several paths, in any table, to what is asked, in one call over one
    API session.
  - Static routes are those that VPP's API or command line set. Routes that VPP makes itself, for addresses of
    interfaces and for neighbours, are never touched.
  - Running state only. A restart of VPP loses it. O(state=rendered) gives the lines for VPP's start-up script.
extends_documentation_fragment:
  - fastpath.bench.vpp
  - fastpath.bench.vpp.attributes
author:
  - fastpath.bench contributors (@fastpath)
options:
  state:
    description:
      - V(replaced) makes the paths of the prefixes in O(routes) exactly those. Other prefixes are left alone.
      - V(merged) adds paths to the prefixes.
      - V(overridden) is V(replaced), and removes all other static routes from all tables.
      - V(deleted) removes the prefixes in O(routes), with all paths.
      - V(gathered) reads, and returns RV(gathered) in the form of O(routes).
      - V(rendered) asks no VPP. It returns RV(rendered).
    type: str
    choices: [merged, replaced, overridden, deleted, gathered, rendered]
    default: replaced
  routes:
    description: The routes.
    type: list
    elements: dict
    default: []
    suboptions:
      prefix:
        description: The network, IPv4 or IPv6. An address with bits set behind the prefix is refused.
        type: str
        required: true
      table:
        description: The routing table. It is made when it does not exist.
        type: int
        default: 0
      drop:
        description: Drop what goes there.
        type: bool
        default: false
      paths:
        description: Where to send it. Several paths share the traffic.
        type: list
        elements: dict
        suboptions:
          via:
            description: Address of the next hop.
            type: str
          interface:
            description: VPP's name of the interface to leave by. Without O(routes[].paths[].via), the network is on its
              link.
            type: str
          next_hop_table:
            description: Where a next hop without interface is looked up. Without it, in O(routes[].table).
            type: int
          weight:
            description: Share of the traffic, 1 to 255.
            type: int
            default: 1
          preference:
            description: Only paths with the lowest number are used, 0 to 255.
            type: int
            default: 0
seealso:
  - module: fastpath.bench.vpp_interface
"""

EXAMPLES = r"""
- name: A default route, and a network over two next hops
  fastpath.bench.vpp_route:
    routes:
      - prefix: 0.0.0.0/0
        paths:
          - via: 192.0.2.254
            interface: host-eth1
      - prefix: 2001:db8:100::/40
        paths:
          - via: 2001:db8:1::2
          - via: 2001:db8:2::2
            weight: 3

- name: No other static routes than these
  fastpath.bench.vpp_route:
    state: overridden
    routes: "{{ router_routes }}"
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
routes:
  description: The routes of O(routes) as read back, in its form. A path that O(routes) cannot say has C(other).
  returned: when O(state) is not V(rendered)
  type: list
  elements: dict
gathered:
  description: The static routes in the form of O(routes); those that O(routes) names, or all.
  returned: when O(state=gathered)
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

from ansible_collections.fastpath.bench.plugins.module_utils._vpp import route
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.options import connection_spec, failing, session_of


def argument_spec() -> dict[str, t.Any]:
    return {
        **connection_spec(),
        "state": {"type": "str", "choices": list(route.STATES), "default": "replaced"},
        "routes": {
            "type": "list",
            "elements": "dict",
            "default": [],
            "options": {
                "prefix": {"type": "str", "required": True},
                "table": {"type": "int", "default": 0},
                "drop": {"type": "bool", "default": False},
                "paths": {
                    "type": "list",
                    "elements": "dict",
                    "options": {
                        "via": {"type": "str"},
                        "interface": {"type": "str"},
                        "next_hop_table": {"type": "int"},
                        "weight": {"type": "int", "default": 1},
                        "preference": {"type": "int", "default": 0},
                    },
                },
            },
        },
    }


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    routes, state = module.params["routes"], module.params["state"]
    with failing(module):
        if state == "rendered":
            module.exit_json(changed=False, rendered=route.render(routes))
        with session_of(module) as session:
            result = route.run(session, routes, state, check_mode=module.check_mode)
        module.exit_json(**result)


if __name__ == "__main__":
    main()
