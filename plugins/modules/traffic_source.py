#!/usr/bin/python
# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: traffic_source
short_description: Send a load back to the host that asks for it
version_added: 0.1.0
description:
  - Has a sender on the host that takes orders over TCP, so that M(fastpath.bench.throughput_search) can load the
    direction that comes back, or both at once. What it sends with is told by who asks.
  - It sends UDP to the address from which it is asked and to no other, and serves one search at a time.
  - It ends by itself when O(lifetime_s) is over.
author:
  - fastpath.bench contributors (@fastpath)
options:
  state:
    description:
      - V(present) has the sender, V(absent) ends it.
    type: str
    choices: [present, absent]
    default: present
  name:
    description:
      - Name of the sender. A host may have several.
    type: str
    default: default
  bind_address:
    description:
      - Address of the host at which it takes orders.
    type: str
    default: "0.0.0.0"
  port:
    description:
      - Port at which it takes orders. With V(0) the kernel chooses one.
    type: int
    default: 0
  lifetime_s:
    description:
      - Seconds after which it ends by itself.
    type: float
    default: 7200.0
attributes:
  check_mode:
    description: Nothing is started or ended.
    support: full
  diff_mode:
    description: It changes no settings.
    support: none
requirements:
  - What O(fastpath.bench.throughput_search#module:generator) names, on this host too.
notes:
  - Who reaches its port can have this host send to them. Bind it to an address of the testbed.
seealso:
  - module: fastpath.bench.throughput_search
"""

EXAMPLES = r"""
- name: Take orders from the other end
  fastpath.bench.traffic_source:
    bind_address: 192.0.2.10
  register: source

- name: End it
  fastpath.bench.traffic_source:
    state: absent
"""

RETURN = r"""
port:
  description: The port. Null when there is no sender, or when check mode cannot know it.
  returned: always
  type: int
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._search import source


def argument_spec() -> dict[str, t.Any]:
    return {
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        "name": {"type": "str", "default": "default"},
        "bind_address": {"type": "str", "default": "0.0.0.0"},
        "port": {"type": "int", "default": 0},
        "lifetime_s": {"type": "float", "default": 7200.0},
    }


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    params = dict(module.params)
    ensure = source.ensure_present if params.pop("state") == "present" else source.ensure_absent
    try:
        service = source.Service(**params)
        service.check()
        result = ensure(service, check_mode=module.check_mode)
    except BenchError as error:
        module.fail_json(**error.as_result())
    module.exit_json(**result)


if __name__ == "__main__":
    main()
