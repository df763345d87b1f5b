#!/usr/bin/python
# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: kernel_nat
short_description: Have the Linux kernel masquerade, count its connections and clear them
version_added: 0.1.0
description:
  - Keeps one nftables table of its own, C(fastpath_bench_nat), which masquerades what leaves by the outside interfaces.
    Other tables are never touched. Running state only.
  - Counts the connections that the kernel keeps, and those of them that are translated, over netlink.
attributes:
  check_mode:
    support: full
    description: Tells what would change.
  diff_mode:
    support: full
    description: What differs, before and after.
author:
  - fastpath.bench contributors (@fastpath)
options:
  state:
    description:
      - V(present) has the table as asked, V(absent) removes it.
      - V(cleared) forgets all connections of the network namespace and sees that none that is translated is left. Those
        that go on without translation, such as the one that Ansible came by, are taken up again by the kernel.
      - V(gathered) reads.
    type: str
    choices: [present, absent, gathered, cleared]
    default: present
  outside:
    description: The interfaces by which translated packets leave.
    type: list
    elements: str
    default: []
  ports:
    description: Whether the source port is kept where it is free, or one is taken at random.
    type: str
    choices: [kept, random, fully_random]
    default: kept
seealso:
  - module: fastpath.bench.vpp_nat44
"""

EXAMPLES = r"""
- name: Masquerade
  fastpath.bench.kernel_nat:
    outside: [eth2]

- name: No connection is left from what was measured before
  fastpath.bench.kernel_nat:
    state: cleared
"""

RETURN = r"""
nat:
  description: What the table does, in the form of the options; null when there is none.
  returned: when O(state) is not V(cleared)
  type: dict
connections:
  description: The connections that the kernel keeps now.
  returned: when O(state) is not V(absent)
  type: dict
  contains:
    total:
      description: All.
      type: int
    translated:
      description: Those of which an end is translated.
      type: int
    protocols:
      description: The translated ones by protocol.
      type: dict
    max:
      description: How many the kernel keeps at most. Null is unknown.
      type: int
    buckets:
      description: Size of the kernel's table.
      type: int
    drops:
      description: What could not be kept since the host was started, by the kernel's names. Null is unknown.
      type: dict
    full:
      description: Part of the most that is in use.
      type: float
connections_before:
  description: The connections before they were cleared.
  returned: when O(state=cleared)
  type: dict
clearing:
  description: How long that took; null when there was nothing to clear, and in check mode.
  returned: when O(state=cleared)
  type: dict
  contains:
    command_s:
      description: Seconds that the kernel's request to forget all connections had.
      type: float
    proven_s:
      description: Seconds until it was seen that none is left.
      type: float
    tries:
      description: How many times it was done.
      type: int
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._host import masquerade


def argument_spec() -> dict[str, t.Any]:
    return {
        "state": {"type": "str", "choices": list(masquerade.STATES), "default": "present"},
        "outside": {"type": "list", "elements": "str", "default": []},
        "ports": {"type": "str", "choices": list(masquerade.PORTS), "default": "kept"},
    }


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    params = module.params
    try:
        result = masquerade.work(params["state"], params["outside"], params["ports"], check_mode=module.check_mode)
    except BenchError as err:
        module.fail_json(**err.as_result())
    else:
        module.exit_json(**result)


if __name__ == "__main__":
    main()
