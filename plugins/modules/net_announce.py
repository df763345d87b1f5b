#!/usr/bin/python
# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: net_announce
short_description: Tell the neighbours which MAC address an address has now
version_added: 0.1.0
description:
  - Sends a gratuitous ARP for each IPv4 address and an unsolicited neighbour advertisement for each IPv6 address, so
    that neighbours do not go on sending to the MAC address that they knew. By themselves they take about 8 seconds.
  - Needed when an address moves between the kernel and a datapath in user space that has a MAC address of its own.
attributes:
  check_mode:
    support: full
    description: Nothing is sent.
  diff_mode:
    support: none
    description: The host does not change.
author:
  - fastpath.bench contributors (@fastpath)
options:
  interfaces:
    description: The interfaces to send from.
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description: Name of the kernel's interface. It must be up.
        type: str
        required: true
      addresses:
        description: The addresses; a prefix length is left out. Without it, those that the kernel has on the interface.
        type: list
        elements: str
      mac:
        description: The MAC address to announce. Without it, the interface's own.
        type: str
  router:
    description: Announce IPv6 addresses as those of a router.
    type: bool
    default: true
  repeat:
    description: How often to send each.
    type: int
    default: 2
"""

EXAMPLES = r"""
- name: VPP has the router's addresses now
  fastpath.bench.net_announce:
    interfaces:
      - name: eth1
        addresses: [192.0.2.1/24, "2001:db8:1::1/64"]
        mac: 02:fe:00:00:00:01

- name: The kernel has its own again
  fastpath.bench.net_announce:
    interfaces:
      - name: eth1
"""

RETURN = r"""
announced:
  description: What was sent, or in check mode would be, each with C(interface), C(address) and C(mac).
  returned: success
  type: list
  elements: dict
"""

import dataclasses
import typing as t

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._host import announce
from ansible_collections.fastpath.bench.plugins.module_utils._host.access import Access


def argument_spec() -> dict[str, t.Any]:
    return {
        "interfaces": {
            "type": "list",
            "elements": "dict",
            "required": True,
            "options": {
                "name": {"type": "str", "required": True},
                "addresses": {"type": "list", "elements": "str"},
                "mac": {"type": "str"},
            },
        },
        "router": {"type": "bool", "default": True},
        "repeat": {"type": "int", "default": 2},
    }


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    params = module.params
    try:
        announcements = announce.wanted(Access(), params["interfaces"])
        if not module.check_mode:
            announce.send(announcements, router=params["router"], repeat=params["repeat"])
    except BenchError as error:
        module.fail_json(**error.as_result())
    module.exit_json(changed=False, announced=[dataclasses.asdict(what) for what in announcements])


if __name__ == "__main__":
    main()
