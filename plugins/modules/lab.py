#!/usr/bin/python
# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: lab
short_description: Build and remove a lab of hosts on one machine
version_added: 0.1.0
description:
  - Builds hosts and cables from a topology in containerlab's form, all on the machine that the module runs on.
  - A host is a C(systemd-nspawn) machine over a private copy-on-write layer above the machine's own root. It has its
    own network, mount, process, host name and IPC namespaces and its own systemd. None of the machine's enabled
    services, timers or sockets start in it.
  - A host of kind C(vm) is a virtual machine instead, with a stock kernel of its own, reached by SSH. Its disk image is
    built of the distribution's packages when it is not in C(/var/cache/fastpath-bench/images) yet.
  - A cable is a veth pair made straight inside the two namespaces; nothing shows in the machine's own namespace.
  - Everything is named by the lab, so that O(state=absent) finds all that belongs to it, also after an earlier call
    was killed.
author:
  - fastpath.bench contributors (@fastpath)
options:
  state:
    description:
      - V(present) builds the lab, or repairs what is missing or differs from O(topology). A host whose first process
        died is started again on its own disk.
      - V(absent) removes all that belongs to the lab.
      - V(gathered) only tells what is there.
    type: str
    choices:
      - present
      - absent
      - gathered
    default: present
  name:
    description:
      - Name of the lab. At most 20 lower case letters, digits and underscores.
      - Without it, the C(name) in O(topology) counts. One of the two must be given.
    type: str
  topology:
    description:
      - Hosts and cables, as read from a containerlab topology file.
      - Below C(topology.nodes) each node has a C(kind), V(linux) (the default), V(bridge) or V(vm).
      - A node of kind V(vm) may have C(cpus) (default 1), C(memory) (default C(512MiB)) and C(packages), which are
        built into its image.
      - Below C(topology.links) each link has C(endpoints), either C(host:interface) or a mapping with C(node),
        C(interface), C(queues), C(mtu) and C(offloads). The last three, given on the link, hold for both ends.
      - MTU and offloads are set when a cable is made, or when the topology changes. What a role sets on an interface
        later is the host's own affair and is left alone.
    type: dict
attributes:
  check_mode:
    description: Tells what would be done, and does nothing.
    support: full
  diff_mode:
    description: Shows hosts and cables before and after.
    support: full
requirements:
  - root
  - Linux 5.14 or newer
  - systemd-nspawn (package C(systemd-container)), C(ip), C(ethtool), C(nsenter) and C(unshare)
  - for hosts of kind C(vm) a Debian or Ubuntu on x86_64 with C(qemu-system-x86), C(qemu-utils), C(mmdebstrap),
    C(e2fsprogs) and C(openssh-client)
notes:
  - The hosts share the machine's kernel, and root in a host is root. A lab separates tests, not users.
seealso:
  - plugin: fastpath.bench.lab
    plugin_type: connection
"""

EXAMPLES = r"""
- name: Build two hosts with one cable
  fastpath.bench.lab:
    name: two
    topology:
      topology:
        nodes:
          left:
            kind: linux
          right:
            kind: linux
        links:
          - endpoints: ["left:eth1", "right:eth1"]
            mtu: 9000
            offloads:
              tso: false

- name: Build a virtual machine beside a host that shares the machine's kernel
  fastpath.bench.lab:
    name: gateway
    topology:
      topology:
        nodes:
          gateway:
            kind: vm
            memory: 1GiB
            packages: [strongswan-swanctl, charon-systemd]
          client:
        links:
          - endpoints: ["client:eth1", "gateway:eth1"]

- name: Remove them
  fastpath.bench.lab:
    name: two
    state: absent
"""

RETURN = r"""
hosts:
  description: The hosts of the lab and how they are - V(running), V(booting) or V(dead).
  returned: success
  type: dict
  sample:
    client: running
bridges:
  description: The bridge nodes of the lab.
  returned: success
  type: list
  elements: str
cables:
  description: The cables of the lab.
  returned: success
  type: list
  elements: dict
  contains:
    endpoints:
      description: The two ends, each C(host:interface).
      type: list
      elements: str
    queues:
      description: Receive queues of the first end.
      type: int
steps:
  description: What was done, or in check mode would be done.
  returned: success
  type: list
  elements: str
  sample:
    - start host client
code:
  description: A short word for what went wrong.
  returned: failure
  type: str
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._lab.manager import Lab
from ansible_collections.fastpath.bench.plugins.module_utils._lab.topology import check_lab_name, parse_topology


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["present", "absent", "gathered"], "default": "present"},
            "name": {"type": "str"},
            "topology": {"type": "dict"},
        },
        required_one_of=[("name", "topology")],
        required_if=[("state", "present", ("topology",))],
        supports_check_mode=True,
    )
    name, data = module.params["name"], module.params["topology"]
    try:
        topology = None if data is None else parse_topology(data, name=name)
        lab = Lab(check_lab_name(name) if topology is None else topology.name, check_mode=module.check_mode)
        if module.params["state"] == "gathered":
            result = lab.gather()
        elif module.params["state"] == "absent" or topology is None:
            result = lab.absent()
        else:
            result = lab.present(topology)
    except BenchError as err:
        module.fail_json(**err.as_result())
    if "before" in result:
        result["diff"] = {"before": result.pop("before"), "after": result.pop("after")}
    module.exit_json(**result)


if __name__ == "__main__":
    main()
