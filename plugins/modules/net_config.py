#!/usr/bin/python
# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: net_config
short_description: Set addresses, MTU and routes of interfaces, running state only
version_added: 0.1.0
description:
  - Brings the running state of several interfaces, and routes, to what is asked, in one call. No configuration file
    is touched, so a restart of the host undoes it.
  - What was found is noted in the journal before the first change, and M(fastpath.bench.host_restore) puts it back.
  - All input is judged before the first write. When a write fails in the middle, or does not read back as asked, what
    this call had changed is put back and the module fails.
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
    default: []
    suboptions:
      name:
        description: Name of the interface. It must exist.
        type: str
        required: true
      addresses:
        description: Addresses with their prefix lengths, IPv4 and IPv6.
        type: list
        elements: str
      addresses_state:
        description:
          - V(exact) removes all other addresses, V(present) only adds what is missing.
          - Addresses that the kernel makes itself (link-local, from router advertisements) stay in any case.
        type: str
        choices: [exact, present]
        default: exact
      mtu_bytes:
        description:
          - The MTU. More than the link carries is refused before anything is changed.
          - Below 1280 the kernel takes IPv6 off the interface.
        type: int
      up:
        description: Whether the interface is administratively up.
        type: bool
      dad:
        description:
          - Whether a new IPv6 address is first checked for duplicates on the link, which takes about a second in which
            it cannot be used.
        type: bool
        default: true
  routes:
    description: Routes.
    type: list
    elements: dict
    default: []
    suboptions:
      dst:
        description: Network or address, V(default) for IPv4 or V(default6) for IPv6.
        type: str
        required: true
      via:
        description: The next hop. It must be of the family of O(routes[].dst).
        type: str
      dev:
        description: The interface to leave by. Needed without O(routes[].via).
        type: str
      table:
        description: Routing table, by number or name.
        type: str
        default: main
      metric:
        description: Metric; the kernel's own (0, for IPv6 1024) without it.
        type: int
      state:
        description: Whether the route should be there. Without O(routes[].via) and O(routes[].dev) any is removed.
        type: str
        choices: [present, absent]
        default: present
  routes_state:
    description:
      - V(exact) also removes routes that an earlier call with the same O(part) added and that are not in O(routes) any
        more. Routes that others made are left alone. V(present) leaves those too.
    type: str
    choices: [exact, present]
    default: exact
  ready_timeout_s:
    description:
      - How long to wait, after the change, until each interface with O(interfaces[].up=true) has a carrier and its IPv6
        addresses are usable. V(0) does not wait.
    type: float
    default: 0
"""

EXAMPLES = r"""
- name: Address the two data interfaces of a router
  fastpath.bench.net_config:
    owner: "{{ bench_run_id }}"
    part: topology
    interfaces:
      - name: eth1
        addresses: [192.0.2.1/24, "2001:db8:1::1/64"]
        mtu_bytes: 1500
        up: true
      - name: eth2
        addresses: [198.51.100.1/24]
        up: true
    routes:
      - dst: 203.0.113.0/24
        via: 198.51.100.9
    ready_timeout_s: 5

- name: Put everything back
  fastpath.bench.host_restore:
    owner: "{{ bench_run_id }}"
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
waited_s:
  description: How long it took until all were ready.
  returned: when O(ready_timeout_s) is not 0 and not in check mode
  type: float
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
            "default": [],
            "options": {
                "name": {"type": "str", "required": True},
                "addresses": {"type": "list", "elements": "str"},
                "addresses_state": {"type": "str", "choices": ["exact", "present"], "default": "exact"},
                "mtu_bytes": {"type": "int"},
                "up": {"type": "bool"},
                "dad": {"type": "bool", "default": True},
            },
        },
        "routes": {
            "type": "list",
            "elements": "dict",
            "default": [],
            "options": {
                "dst": {"type": "str", "required": True},
                "via": {"type": "str"},
                "dev": {"type": "str"},
                "table": {"type": "str", "default": "main"},
                "metric": {"type": "int"},
                "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            },
        },
        "routes_state": {"type": "str", "choices": ["exact", "present"], "default": "exact"},
        "ready_timeout_s": {"type": "float", "default": 0},
    }


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    access = Access()
    try:
        wishes = settings.config_wishes(access, module.params)
        result = settings.apply(access, module.params, wishes, check_mode=module.check_mode).as_result()
        if module.params["ready_timeout_s"] and not module.check_mode:
            result["waited_s"] = settings.wait_until_ready(access, module.params, module.params["ready_timeout_s"])
    except BenchError as err:
        module.fail_json(**err.as_result())
    settings.warn_about(module.warn, result["findings"])
    module.exit_json(**result)


if __name__ == "__main__":
    main()
