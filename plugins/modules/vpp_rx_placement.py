#!/usr/bin/python
# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: vpp_rx_placement
short_description: Place receive queues of VPP on its threads
version_added: 0.1.0
description:
  - Says which worker, or the main thread, serves each receive queue. Either each placement is given, or a policy makes
    them from the queues and workers that exist.
  - Workers are counted from 0, as VPP's command line does. VPP's threads are counted besides; thread 0 is the main
    thread, so worker 0 is thread 1.
  - Running state only. RV(rendered) has the lines for VPP's start-up script.
extends_documentation_fragment:
  - fastpath.bench.vpp
  - fastpath.bench.vpp.attributes
author:
  - fastpath.bench contributors (@fastpath)
options:
  policy:
    description:
      - V(explicit) takes O(placements). Queues that are not in it stay where they are.
      - V(round_robin) goes through all queues of O(interfaces) in order and gives each the next worker.
      - V(spread) gives each queue the worker with the fewest queues, counting those of other interfaces.
      - V(numa) is V(round_robin) among the workers on the NUMA node of the interface's device. A virtual device belongs
        to no node and may have any worker.
    type: str
    choices: [explicit, round_robin, spread, numa]
    default: explicit
  placements:
    description: The placements, for O(policy=explicit).
    type: list
    elements: dict
    default: []
    suboptions:
      interface:
        description: VPP's name of the interface.
        type: str
        required: true
      queue:
        description: Number of the receive queue, from 0.
        type: int
        required: true
      worker:
        description: Number of the worker, from 0.
        type: int
      main:
        description: The main thread serves it.
        type: bool
        default: false
  interfaces:
    description: VPP's names of the interfaces that a policy places. Without it, all that have receive queues.
    type: list
    elements: str
seealso:
  - module: fastpath.bench.vpp_interface
  - module: fastpath.bench.vpp_info
"""

EXAMPLES = r"""
- name: Each of four queues on a worker of its own
  fastpath.bench.vpp_rx_placement:
    policy: round_robin
    interfaces: [host-eth1]

- name: One queue on worker 2, one on the main thread
  fastpath.bench.vpp_rx_placement:
    placements:
      - interface: host-eth1
        queue: 0
        worker: 2
      - interface: host-eth1
        queue: 1
        main: true
"""

RETURN = r"""
changes:
  description: What was changed, or in check mode would be.
  returned: success
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
placements:
  description: The queues of the named interfaces, and who serves them, as read back; in check mode as it would be.
  returned: success
  type: list
  elements: dict
  contains:
    interface:
      description: VPP's name.
      type: str
    queue:
      description: Number of the queue.
      type: int
    worker:
      description: Number of the worker; none for the main thread.
      type: int
    main:
      description: Whether the main thread serves it.
      type: bool
    thread:
      description: Number of the thread.
      type: int
    thread_name:
      description: VPP's name of the thread.
      type: str
    cpu:
      description: The CPU that the thread runs on.
      type: int
    mode:
      description: How packets are fetched.
      type: str
threads:
  description: All threads of VPP.
  returned: success
  type: list
  elements: dict
  contains:
    thread:
      description: Number of the thread.
      type: int
    name:
      description: VPP's name of it.
      type: str
    worker:
      description: Number of the worker, if it is one.
      type: int
    cpu:
      description: Its CPU.
      type: int
    numa:
      description: NUMA node of the CPU.
      type: int
rendered:
  description: Lines of VPP's command line for the same placements.
  returned: success
  type: list
  elements: str
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.fastpath.bench.plugins.module_utils._vpp import placement
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.options import connection_spec, failing, session_of


def argument_spec() -> dict[str, t.Any]:
    return {
        **connection_spec(),
        "policy": {"type": "str", "choices": list(placement.POLICIES), "default": "explicit"},
        "placements": {
            "type": "list",
            "elements": "dict",
            "default": [],
            "options": {
                "interface": {"type": "str", "required": True},
                "queue": {"type": "int", "required": True},
                "worker": {"type": "int"},
                "main": {"type": "bool", "default": False},
            },
        },
        "interfaces": {"type": "list", "elements": "str"},
    }


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    with failing(module):
        with session_of(module) as session:
            result = placement.run(
                session,
                policy=module.params["policy"],
                placements=module.params["placements"],
                interfaces=module.params["interfaces"],
                check_mode=module.check_mode,
            )
        module.exit_json(**result)


if __name__ == "__main__":
    main()
