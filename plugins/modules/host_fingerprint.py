#!/usr/bin/python
# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: host_fingerprint
short_description: Tell what a host is and how it is set
version_added: 0.1.0
description:
  - Gathers all that a measurement on this host depends on, in two parts with a digest each. Hardware and software
    (identity), and the settings that this collection changes and puts back (state).
  - A host is restored when the digest of its state is the same as before.
  - Secrets are not read. Words of the kernel's command line that could hold one are shown as C(<redacted>).
attributes:
  check_mode:
    support: full
    description: It changes nothing, and runs in check mode too.
  diff_mode:
    support: none
    description: It changes nothing.
author:
  - fastpath.bench contributors (@fastpath)
options:
  interfaces:
    description: The interfaces that are looked at. Without it, all but the loopback.
    type: list
    elements: str
    default: []
  compare_state:
    description:
      - The state part of an earlier fingerprint (RV(fingerprint.state)) of this host. With it the differences are
        returned.
    type: dict
"""

EXAMPLES = r"""
- name: Before anything is changed
  fastpath.bench.host_fingerprint:
  register: before

- name: After the host was restored
  fastpath.bench.host_fingerprint:
    compare_state: "{{ before.fingerprint.state }}"
  register: after
  failed_when: after.differences | length > 0
"""

RETURN = r"""
fingerprint:
  description: What was found.
  returned: success
  type: dict
  contains:
    schema:
      description: Version of this form.
      type: int
    digests:
      description: C(identity) and C(state), SHA-256 in hexadecimal digits.
      type: dict
    machine:
      description:
        - C(boot_id), C(booted) and C(kernel_instance). The last is the same for hosts that share one kernel
          (containers, lab hosts). Part of no digest.
      type: dict
    conntrack:
      description: Its C(max), C(buckets) and C(count), null while it is not loaded. Part of no digest.
      type: dict
    hypervisor:
      description: In the words of systemd-detect-virt, null on bare metal or when unknown.
      type: str
    container:
      description: The container manager, null outside of containers.
      type: str
    firmware:
      description: Maker, product, board and BIOS; no serial numbers.
      type: dict
    os:
      description: C(id), C(version) and C(name) of the distribution.
      type: dict
    kernel:
      description: C(release), C(version), C(architecture), C(cmdline), C(isolated_cpus) and C(nohz_full_cpus).
      type: dict
    cpu:
      description:
        - C(model), C(vendor), C(family), C(model_number), C(stepping), C(microcode), C(flags) that matter, C(threads),
          C(cores), C(sockets), C(smt), C(online), C(numa_nodes), C(max_frequency_khz) and C(vulnerabilities).
      type: dict
    memory:
      description: C(total_bytes) and C(default_hugepage_bytes).
      type: dict
    interfaces:
      description:
        - By name, C(driver), C(version), C(firmware), C(bus), C(numa_node), C(speed_bps), C(duplex),
          C(fixed_offloads), C(rx_queues) and C(tx_queues).
      type: dict
    tools:
      description: Versions of the tools that are used, null when there is none.
      type: dict
    python:
      description: C(version) and C(executable) of the Python that ran this module.
      type: dict
    state:
      description:
        - The settings. C(sysctls), C(interfaces) (MTU, offloads, rings, channels, coalescing, pause, hash fields, RPS
          and XPS masks, interrupt affinity), C(addresses), C(routes), C(rules), C(power), C(memory) (huge pages by
          size and by node), C(clocksource), C(services) and C(tuned_profile).
      type: dict
    unknown:
      description: Why a value is null, by its place.
      type: dict
differences:
  description: Where the state differs from O(compare_state), each with C(path), C(before) and C(after).
  returned: when O(compare_state) is given
  type: list
  elements: dict
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._host import fingerprint


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "interfaces": {"type": "list", "elements": "str", "default": []},
            "compare_state": {"type": "dict"},
        },
        supports_check_mode=True,
    )
    try:
        found = fingerprint.collect(module.params["interfaces"])
    except BenchError as error:
        module.fail_json(**error.as_result())
    result: dict[str, t.Any] = {"changed": False, "fingerprint": found}
    if module.params["compare_state"] is not None:
        result["differences"] = fingerprint.differences(module.params["compare_state"], found["state"])
    module.exit_json(**result)


if __name__ == "__main__":
    main()
