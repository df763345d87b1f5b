#!/usr/bin/python
# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: net_tuning
short_description: Set offloads, queues and packet steering of interfaces, running state only
version_added: 0.1.0
description:
  - Brings offloads (features), numbers of queues, steering masks, transmit queue length and promiscuous mode of several
    interfaces to what is asked, in one call.
  - All features of an interface are set in one command and read back afterwards, as one drags others along; what was
    dragged is among the changes.
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
        description: Size of the flow table of each receive queue (receive flow steering).
        type: int
      txqueuelen:
        description: Length of the transmit queue.
        type: int
      promisc:
        description: Promiscuous mode.
        type: bool
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
    - What one should know. C(code) is V(setting_unsupported), V(not_there_yet) (check mode only), V(changed_beside) or
      V(changed_by_others).
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
                "rps": {"type": "raw"},
                "xps": {"type": "raw"},
                "rps_flow_count": {"type": "int"},
                "txqueuelen": {"type": "int"},
                "promisc": {"type": "bool"},
            },
        },
        "unsupported": {"type": "str", "choices": ["fail", "report"], "default": "fail"},
    }


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    access = Access()
    try:
        wishes = settings.tuning_wishes(access, module.params, check_mode=module.check_mode)
        result = settings.apply(access, module.params, wishes, check_mode=module.check_mode).as_result()
    except BenchError as err:
        module.fail_json(**err.as_result())
    settings.warn_about(module.warn, result["findings"])
    module.exit_json(**result)


if __name__ == "__main__":
    main()
