#!/usr/bin/python
# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: vpp_nsim
short_description: Have VPP delay, lose and reorder packets
version_added: 0.1.0
description:
  - Sets VPP's network simulator (plugin nsim) and says where it works, on what leaves an interface or between a pair
    of interfaces. VPP has one simulator, so the settings hold for all of them.
  - VPP's API does not tell what is set. It is read from the texts of its command line, which round the delay and the
    bandwidth. Values that are shown alike count as the same.
  - Running state only.
extends_documentation_fragment:
  - fastpath.bench.vpp
  - fastpath.bench.vpp.attributes
author:
  - fastpath.bench contributors (@fastpath)
options:
  state:
    description:
      - V(merged) sets what is given and switches it on where it is asked for.
      - V(replaced) switches it off everywhere else besides.
      - V(deleted) switches it off at O(output) and O(cross_connect), or everywhere when neither is given. VPP keeps the
        settings, and goes on polling, until it is restarted.
      - V(gathered) only reads.
    type: str
    choices: [merged, replaced, deleted, gathered]
    default: merged
  delay_us:
    description:
      - Each packet leaves so many microseconds later, at least 1. Needs O(bandwidth_bps). Without both, the settings
        stay as they are.
    type: int
  bandwidth_bps:
    description:
      - With the delay it says how many packets may be under way; what comes then is dropped.
    type: int
  packet_bytes:
    description: Average size of a packet, from which that number of packets follows. 64 to 9000.
    type: int
    default: 1500
  loss_ratio:
    description: Part of the packets that is lost, such as V(0.02). VPP takes one packet out of a whole number.
    type: float
  packets_per_drop:
    description: One packet out of so many is lost, at random. V(0) is none.
    type: int
  reorder_ratio:
    description: Part of the packets that is sent at once, before those that wait.
    type: float
  packets_per_reorder:
    description: One packet out of so many is sent at once. V(0) is none.
    type: int
  output:
    description: VPP's names of the interfaces whose outgoing packets it takes.
    type: list
    elements: str
  cross_connect:
    description: The two interfaces between which all packets go through it, past routing.
    type: list
    elements: str
notes:
  - Where VPP has workers, the main thread polls too from then on and takes a CPU. Without that, VPP ends with a signal
    as soon as its main thread sends a packet (ARP, ping) through the simulator.
  - When the settings change, it is switched off first until the packets under way are gone, and then on again.
seealso:
  - module: fastpath.bench.vpp_interface
  - module: fastpath.bench.vpp_nat44
"""

EXAMPLES = r"""
- name: Ten milliseconds and two percent of loss towards the server
  fastpath.bench.vpp_nsim:
    delay_us: 10000
    bandwidth_bps: 1000000000
    loss_ratio: 0.02
    output: [host-eth2]

- name: Switch it off everywhere
  fastpath.bench.vpp_nsim:
    state: deleted
"""

RETURN = r"""
changes:
  description: What was changed, or in check mode would be.
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: An interface, V(settings) or V(cross_connect).
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
nsim:
  description: The simulator as read back; in check mode as it would be.
  returned: success
  type: dict
  contains:
    configured:
      description: Whether it has settings. Without them, the following are not there.
      type: bool
    delay_us:
      description: The delay, as rounded as VPP tells it.
      type: float
    bandwidth_bps:
      description: The bandwidth, as rounded as VPP tells it.
      type: float
    packet_bytes:
      description: Average size of a packet.
      type: int
    loss_ratio:
      description: Part of the packets that is lost.
      type: float
    reorder_ratio:
      description: Part of the packets that overtakes others.
      type: float
    wheel_packets:
      description: How many packets each thread can have under way.
      type: int
    poll_main_thread:
      description: Whether VPP's main thread can send through it.
      type: bool
    output:
      description: Interfaces whose outgoing packets it takes.
      type: list
      elements: str
    cross_connect:
      description: The pair between which it is, or empty.
      type: list
      elements: str
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.fastpath.bench.plugins.module_utils._vpp import nsim
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.options import connection_spec, failing, session_of


def argument_spec() -> dict[str, t.Any]:
    return {
        **connection_spec(),
        "state": {"type": "str", "choices": list(nsim.STATES), "default": "merged"},
        "delay_us": {"type": "int"},
        "bandwidth_bps": {"type": "int"},
        "packet_bytes": {"type": "int", "default": 1500},
        "loss_ratio": {"type": "float"},
        "packets_per_drop": {"type": "int"},
        "reorder_ratio": {"type": "float"},
        "packets_per_reorder": {"type": "int"},
        "output": {"type": "list", "elements": "str"},
        "cross_connect": {"type": "list", "elements": "str"},
    }


def settings_from(params: t.Mapping[str, t.Any]) -> nsim.Settings | None:
    if params["delay_us"] is None:
        return None
    return nsim.Settings(
        delay_us=params["delay_us"],
        bandwidth_bps=params["bandwidth_bps"],
        packet_bytes=params["packet_bytes"],
        packets_per_drop=nsim.packets_of(
            params["loss_ratio"], params["packets_per_drop"], ("loss_ratio", "packets_per_drop")
        ),
        packets_per_reorder=nsim.packets_of(
            params["reorder_ratio"], params["packets_per_reorder"], ("reorder_ratio", "packets_per_reorder")
        ),
    )


def main() -> None:
    module = AnsibleModule(
        argument_spec=argument_spec(),
        supports_check_mode=True,
        required_together=[("delay_us", "bandwidth_bps")],
        required_by=dict.fromkeys(
            ("loss_ratio", "packets_per_drop", "reorder_ratio", "packets_per_reorder"), "delay_us"
        ),
        mutually_exclusive=[("output", "cross_connect")],
    )
    params = module.params
    with failing(module):
        settings = settings_from(params)
        with session_of(module) as session:
            result = nsim.run(
                session,
                params["state"],
                settings=settings,
                output=params["output"],
                cross_connect=params["cross_connect"],
                check_mode=module.check_mode,
            )
        module.exit_json(**result)


if __name__ == "__main__":
    main()
