#!/usr/bin/python
# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: host_prep
short_description: Hugepages, isolated CPUs and drivers for programs that use DPDK
version_added: 0.1.0
description:
  - Reserves hugepages, mounts what hands them out, binds network cards to a driver of DPDK, and sets the arguments of
    the kernel's next start.
  - Makes one plan of the host's cores that all tools share.
  - Everything that was found is noted in the journal before the first change and read back after it, and
    M(fastpath.bench.host_restore) puts it back.
  - The card that the connection or the default route uses is never taken, whatever O(force) says. A driver that DPDK
    works beside (mlx5_core and the like) keeps its card.
extends_documentation_fragment:
  - fastpath.bench.host_state
  - fastpath.bench.host_state.attributes
author:
  - fastpath.bench contributors (@fastpath)
options:
  hugepages:
    description:
      - How many pages of which size. Either of the whole machine or of its nodes.
    type: list
    elements: dict
    default: []
    suboptions:
      size:
        description:
          - Size of a page, such as V(2M) or V(1G). The sizes that there are differ by machine.
        type: str
        required: true
      count:
        description:
          - Number of pages.
        type: int
        required: true
      node:
        description:
          - NUMA node. Without it, the kernel spreads them over all nodes.
        type: int
  mounts:
    description:
      - Where the pages are handed out.
    type: list
    elements: dict
    default: []
    suboptions:
      path:
        description:
          - Folder; made when it is not there.
        type: path
        required: true
      size:
        description:
          - Size of the pages.
        type: str
        required: true
  drivers:
    description:
      - Network cards and the drivers they are bound to.
    type: list
    elements: dict
    default: []
    suboptions:
      pci:
        description:
          - PCI address.
        type: str
        required: true
      driver:
        description:
          - V(vfio-pci) wants an IOMMU, V(uio_pci_generic) legacy interrupts. Its kernel module must be loaded.
        type: str
        choices: [vfio-pci, uio_pci_generic, igb_uio]
        default: vfio-pci
      no_iommu:
        description:
          - Let V(vfio-pci) take a card that is in no IOMMU group, as in most virtual machines. The program that has the
            card can then write to all of the memory.
        type: bool
        default: false
  kernel_args:
    description:
      - Arguments of the kernel from its next start on, such as V(hugepagesz=1G), in a drop-in of GRUB or by C(grubby).
      - RV(reboot_needed) tells whether the running kernel lacks one.
    type: list
    elements: str
    default: []
  cores:
    description:
      - What the plan of cores is made from. RV(cores) is the plan.
    type: dict
    suboptions:
      housekeeping:
        description:
          - Cores for the system, from CPU 0 on. What nobody needs joins them.
        type: int
        default: 1
      workers:
        description:
          - Cores for a DUT's forwarding.
        type: int
        default: 0
      generator:
        description:
          - Cores for a traffic generator.
        type: int
        default: 0
      nic:
        description:
          - PCI address of the network card; the cores that work are of its NUMA node.
        type: str
      node:
        description:
          - NUMA node, instead of O(cores.nic).
        type: int
      isolate:
        description:
          - Add C(isolcpus), C(nohz_full), C(rcu_nocbs) and C(irqaffinity) to the arguments of the kernel.
        type: bool
        default: false
"""

EXAMPLES = r"""
- name: Pages on the card's node, and the card for DPDK
  fastpath.bench.host_prep:
    part: host_prep
    hugepages:
      - {size: 2M, count: 2048, node: 0}
    mounts:
      - {path: /dev/hugepages, size: 2M}
    drivers:
      - {pci: "0000:13:00.0", driver: vfio-pci}
    cores: {housekeeping: 2, generator: 4, nic: "0000:13:00.0"}
  register: prepared

- name: Pages of 1 GiB from the next start on, and cores that nothing else uses
  fastpath.bench.host_prep:
    part: host_prep
    kernel_args: [default_hugepagesz=1G, hugepagesz=1G, hugepages=8]
    cores: {housekeeping: 2, workers: 4, isolate: true}
"""

RETURN = r"""
changes:
  description: Each setting that was changed, or in check mode would be.
  returned: success
  type: list
  elements: dict
findings:
  description:
    - What one should know. C(code) is V(bifurcated), V(no_iommu), V(hugepages_other_owner), V(hugepages_not_mounted),
      V(hugepages_fewer) (the kernel started with fewer pages than its arguments say) or one of
      M(fastpath.bench.net_sysctl).
  returned: success
  type: list
  elements: dict
reboot_needed:
  description: The arguments that the running kernel lacks; none when no restart is needed.
  returned: success
  type: list
  elements: str
cores:
  description:
    - The plan, C(housekeeping), C(workers), C(generator), C(idle) and C(isolated) as lists of CPUs, C(lists) with the
      same as text, and C(kernel_args).
  returned: when O(cores) is given
  type: dict
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._host import host_prep, kernel_args, settings
from ansible_collections.fastpath.bench.plugins.module_utils._host.access import Access


def argument_spec() -> dict[str, t.Any]:
    return {
        **settings.common_spec(),
        "hugepages": {
            "type": "list",
            "elements": "dict",
            "default": [],
            "options": {
                "size": {"type": "str", "required": True},
                "count": {"type": "int", "required": True},
                "node": {"type": "int"},
            },
        },
        "mounts": {
            "type": "list",
            "elements": "dict",
            "default": [],
            "options": {"path": {"type": "path", "required": True}, "size": {"type": "str", "required": True}},
        },
        "drivers": {
            "type": "list",
            "elements": "dict",
            "default": [],
            "options": {
                "pci": {"type": "str", "required": True},
                "driver": {
                    "type": "str",
                    "choices": ["vfio-pci", "uio_pci_generic", "igb_uio"],
                    "default": "vfio-pci",
                },
                "no_iommu": {"type": "bool", "default": False},
            },
        },
        "kernel_args": {"type": "list", "elements": "str", "default": []},
        "cores": {
            "type": "dict",
            "options": {
                "housekeeping": {"type": "int", "default": 1},
                "workers": {"type": "int", "default": 0},
                "generator": {"type": "int", "default": 0},
                "nic": {"type": "str"},
                "node": {"type": "int"},
                "isolate": {"type": "bool", "default": False},
            },
        },
    }


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    access = Access()
    try:
        plan = host_prep.plan(access, module.params)
        told = host_prep.findings(access, module.params)
        wishes = host_prep.wishes(access, module.params)
        result = settings.apply(access, module.params, wishes, check_mode=module.check_mode).as_result()
        result["reboot_needed"] = kernel_args.pending(access, host_prep.wanted_args(access, module.params))
    except BenchError as err:
        module.fail_json(**err.as_result())
    result["findings"] += told
    if plan is not None:
        result["cores"] = plan.as_dict()
    settings.warn_about(module.warn, result["findings"])
    module.exit_json(**result)


if __name__ == "__main__":
    main()
