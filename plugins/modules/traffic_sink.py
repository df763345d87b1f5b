#!/usr/bin/python
# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: traffic_sink
short_description: Count the datagrams that arrive at a host
version_added: 0.1.0
description:
  - Has a receiver on the host that counts each UDP datagram which comes in at a port, and reads none. The kernel
    counts, so no program has to keep up with the load, and no ICMP error is sent.
  - The sender asks for the count over TCP at the port of the same number. M(fastpath.bench.throughput_search) does.
  - The receiver ends by itself when O(lifetime_s) is over.
author:
  - fastpath.bench contributors (@fastpath)
options:
  state:
    description:
      - V(present) has the receiver, V(absent) ends it.
    type: str
    choices: [present, absent]
    default: present
  name:
    description:
      - Name of the receiver. A host may have several.
    type: str
    default: default
  bind_addresses:
    description:
      - Addresses of the host at which it counts. Each has a count of its own.
    type: list
    elements: str
    default: ["0.0.0.0"]
  port:
    description:
      - Port for both UDP and TCP. With V(0) the kernel chooses one.
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
notes:
  - Each counted datagram is also one of the host's C(InErrors) of UDP in C(/proc/net/snmp), as the kernel books what
    a socket refuses.
seealso:
  - module: fastpath.bench.throughput_search
"""

EXAMPLES = r"""
- name: Count what comes in from the router
  fastpath.bench.traffic_sink:
    bind_addresses: [192.0.2.10]
  register: sink

- name: End it
  fastpath.bench.traffic_sink:
    state: absent
"""

RETURN = r"""
port:
  description: The port. Null when there is no receiver, or when check mode cannot know it.
  returned: always
  type: int
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._traffic import sink


def argument_spec() -> dict[str, t.Any]:
    return {
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        "name": {"type": "str", "default": "default"},
        "bind_addresses": {"type": "list", "elements": "str", "default": ["0.0.0.0"]},
        "port": {"type": "int", "default": 0},
        "lifetime_s": {"type": "float", "default": 7200.0},
    }


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    params = dict(module.params)
    ensure = sink.ensure_present if params.pop("state") == "present" else sink.ensure_absent
    try:
        settings = sink.Settings(**{**params, "bind_addresses": tuple(params["bind_addresses"])})
        settings.check()
        result = ensure(settings, check_mode=module.check_mode)
    except BenchError as error:
        module.fail_json(**error.as_result())
    module.exit_json(**result)


if __name__ == "__main__":
    main()
