#!/usr/bin/python
# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: net_tuning
short_description: Set offloads, queues, interrupts and packet steering of interfaces, running state only
version_added: 0.1.0
description:
  - Brings offloads (features), numbers and sizes of queues, interrupts, flow control, spreading over queues and CPUs,
    transmit queue length and promiscuous mode of several interfaces to what is asked, in one call.
  - All features of an interface are set in one command and read back afterwards, as one drags others along; what was
    dragged is among the changes.
  - What a device has not is told as not supported, and is no change.
  - CPU masks work for any number of CPUs and are compared as sets, so padding makes no difference.
  - What was found is noted in the journal before the first change, and M(fastpath.bench.host_restore) puts it back.
extends_documentation_fragment:
  - fastpath.bench.host_state
  - fastpath.bench.host_state.attributes
author:
  - fastpath.bench contributors (@fastpath)
options:
  interfaces:
    description: The interfaces. An option that is not given is left as it is.
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description: Name of the interface. It must exist.
        type: str
        required: true
      mtu_bytes:
        description: The MTU, as in M(fastpath.bench.net_config).
        type: int
      features:
        description:
          - Name of a feature to whether it is on, with any name that C(ethtool) knows, short (V(gro)), printed
            (V(generic-receive-offload)) or the kernel's (V(rx-gro)).
        type: dict
      channels:
        description: Number of queues.
        type: dict
        suboptions:
          rx:
            description: Receive queues.
            type: int
          tx:
            description: Transmit queues.
            type: int
          combined:
            description: Queues for both.
            type: int
          other:
            description: Other channels.
            type: int
      rings:
        description: Number of descriptors. Some drivers take multiples or powers of two only, which is then an error.
        type: dict
        suboptions:
          rx:
            description: Of each receive queue.
            type: int
          rx_mini:
            description: For small packets.
            type: int
          rx_jumbo:
            description: For large packets.
            type: int
          tx:
            description: Of each transmit queue.
            type: int
      coalesce:
        description:
          - When an interrupt is raised, by the names of C(ethtool -C), for example C(adaptive-rx) and C(rx-usecs).
          - While a direction adapts by itself, its times and frames are not compared.
        type: dict
      flow_control:
        description: Pause frames.
        type: dict
        suboptions:
          autoneg:
            description: Agree with the other end.
            type: bool
          rx:
            description: Obey those that are received.
            type: bool
          tx:
            description: Send them.
            type: bool
      rss_hash:
        description:
          - Kind of flow (C(tcp4), C(udp4), C(tcp6), C(udp6) and the others of C(ethtool -N)) to the fields that its
            hash is made of, as letters of C(ethtool), for example V(sdfn) for addresses and ports, V(sd) for addresses.
        type: dict
      rss_queues:
        description: Spread received packets evenly over the first queues, as many as this.
        type: int
      rss_weights:
        description:
          - Spread received packets over the queues by these weights. Not together with O(interfaces[].rss_queues).
        type: list
        elements: int
      irq_cpus:
        description:
          - CPUs for the interrupts of the device, as O(interfaces[].rps). They must be online.
          - The interrupts are those that the device lists itself. A device without any is a warning. Those that the
            kernel manages itself are told as not permitted.
        type: raw
      irq_spread:
        description: One CPU of O(interfaces[].irq_cpus) for each interrupt in turn, instead of all of them for each.
        type: bool
        default: false
      rps:
        description:
          - CPUs for receive packet steering. A list of numbers, a text such as V(0-3,8), or a mask
            (V(mask:0000000f,fffc0000) or V(0xff)) for all receive queues, or a mapping from queue number to one of
            these for single queues.
          - An empty text or list switches it off.
        type: raw
      xps:
        description: CPUs for transmit packet steering, as O(interfaces[].rps), for transmit queues.
        type: raw
      rps_flow_count:
        description:
          - Size of the flow table of each receive queue (receive flow steering). The kernel makes it a power of two.
        type: int
      txqueuelen:
        description: Length of the transmit queue.
        type: int
      promisc:
        description: Promiscuous mode.
        type: bool
      xsk_program:
        description:
          - V(false) takes off the XDP program that AF_XDP's library put on the interface, and that stays when its user
            has ended. Restore does not put it on again.
        type: bool
        choices: [false]
  rps_sock_flow_entries:
    description:
      - Size of the machine's own table for receive flow steering, a power of two. Without it
        O(interfaces[].rps_flow_count) has no effect. A network namespace has none.
    type: int
  irqbalance:
    description:
      - V(stopped) stops the service irqbalance, which would move interrupts again. Restore starts it when it was
        running. With V(as_found), a running one is a warning where O(interfaces[].irq_cpus) is given.
    type: str
    choices: [as_found, stopped]
    default: as_found
  unsupported:
    description:
      - What to do about a setting that the device, driver or kernel does not have. V(fail) fails before anything is
        changed where that can be seen before. V(report) makes it a finding, once for each interface, and sets the rest.
    type: str
    choices: [fail, report]
    default: fail
"""

EXAMPLES = r"""
- name: Packets as on a wire, spread over eight CPUs
  fastpath.bench.net_tuning:
    part: kernel_router
    interfaces:
      - name: eth1
        features: {gro: false, gso: false, tso: false}
        rps: 0-7
      - name: eth2
        features: {gro: false, gso: false, tso: false}
        rps: {0: "0-3", 1: "4-7"}

- name: CPUs 18 to 35, on a machine with any number of them
  fastpath.bench.net_tuning:
    interfaces:
      - name: ens1f0
        rps: 18-35
        channels: {combined: 4}
    unsupported: report

- name: Four queues, each with an interrupt on a CPU of its own, and UDP spread by ports too
  fastpath.bench.net_tuning:
    irqbalance: stopped
    interfaces:
      - name: ens1f0
        channels: {combined: 4}
        rings: {rx: 4096, tx: 4096}
        coalesce: {adaptive-rx: false, rx-usecs: 8}
        flow_control: {autoneg: false, rx: false, tx: false}
        rss_hash: {udp4: sdfn, udp6: sdfn}
        rss_queues: 4
        irq_cpus: 2-5
        irq_spread: true
"""

RETURN = r"""
changes:
  description: Each setting that was changed, or in check mode would be; also those that the kernel changed beside it.
  returned: success
  type: list
  elements: dict
  contains:
    kind:
      description: Kind of the setting, such as V(link.mtu) or V(sysctl).
      type: str
    key:
      description: Which one, such as an interface or the path of a kernel parameter.
      type: str
    before:
      description: C(value), or C(absent) with V(true) when there was none.
      type: dict
    after:
      description: As C(before), read back from the host.
      type: dict
findings:
  description:
    - What one should know. C(code) is V(setting_unsupported), V(not_there_yet) (check mode only), V(changed_beside),
      V(irqbalance_runs) or V(changed_by_others).
  returned: success
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

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._host import settings
from ansible_collections.fastpath.bench.plugins.module_utils._host.access import Access


def argument_spec() -> dict[str, t.Any]:
    return {
        **settings.common_spec(),
        "interfaces": {
            "type": "list",
            "elements": "dict",
            "required": True,
            "options": {
                "name": {"type": "str", "required": True},
                "features": {"type": "dict"},
                "channels": {
                    "type": "dict",
                    "options": {kind: {"type": "int"} for kind in ("rx", "tx", "combined", "other")},
                },
                "mtu_bytes": {"type": "int"},
                "rings": {
                    "type": "dict",
                    "options": {kind: {"type": "int"} for kind in ("rx", "rx_mini", "rx_jumbo", "tx")},
                },
                "coalesce": {"type": "dict"},
                "flow_control": {
                    "type": "dict",
                    "options": {kind: {"type": "bool"} for kind in ("autoneg", "rx", "tx")},
                },
                "rss_hash": {"type": "dict"},
                "rss_queues": {"type": "int"},
                "rss_weights": {"type": "list", "elements": "int"},
                "irq_cpus": {"type": "raw"},
                "irq_spread": {"type": "bool", "default": False},
                "rps": {"type": "raw"},
                "xps": {"type": "raw"},
                "rps_flow_count": {"type": "int"},
                "txqueuelen": {"type": "int"},
                "promisc": {"type": "bool"},
                "xsk_program": {"type": "bool", "choices": [False]},
            },
        },
        "rps_sock_flow_entries": {"type": "int"},
        "irqbalance": {"type": "str", "choices": ["as_found", "stopped"], "default": "as_found"},
        "unsupported": {"type": "str", "choices": ["fail", "report"], "default": "fail"},
    }


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    access = Access()
    try:
        wishes = settings.tuning_wishes(access, module.params)
        result = settings.apply(access, module.params, wishes, check_mode=module.check_mode).as_result()
        result["findings"] += settings.irq_findings(access, module.params)
    except BenchError as err:
        module.fail_json(**err.as_result())
    settings.warn_about(module.warn, result["findings"])
    module.exit_json(**result)


if __name__ == "__main__":
    main()
