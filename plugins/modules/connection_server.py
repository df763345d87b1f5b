#!/usr/bin/python
# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: connection_server
short_description: Answer one HTTP request on each TCP connection, and count
version_added: 0.1.0
description:
  - Has a small server on the host that takes connections, answers one request on each, closes it first, and counts. A
    client such as M(fastpath.bench.connection_run) asks it for its counts over the same port.
  - It is one process with one thread. Where that is the limit, the client's trial has the finding C(generator_limited).
  - The server ends by itself when O(lifetime_s) is over.
author:
  - fastpath.bench contributors (@fastpath)
options:
  state:
    description:
      - V(present) has the server, V(absent) ends it.
    type: str
    choices: [present, absent]
    default: present
  name:
    description:
      - Name of the server. A host may have several.
    type: str
    default: default
  bind_address:
    description:
      - Address of the host at which it answers.
    type: str
    default: "0.0.0.0"
  port:
    description:
      - Port. With V(0) the kernel chooses one.
    type: int
    default: 0
  answer_bytes:
    description:
      - Bytes of each answer, without its head, at most 16384.
    type: int
    default: 64
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
seealso:
  - module: fastpath.bench.connection_run
"""

EXAMPLES = r"""
- name: Answer what comes in from the router
  fastpath.bench.connection_server:
    bind_address: 192.0.2.10
  register: server

- name: End it
  fastpath.bench.connection_server:
    state: absent
"""

RETURN = r"""
port:
  description: The port. Null when there is no server, or when check mode cannot know it.
  returned: always
  type: int
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._traffic import answerer


def argument_spec() -> dict[str, t.Any]:
    return {
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        "name": {"type": "str", "default": "default"},
        "bind_address": {"type": "str", "default": "0.0.0.0"},
        "port": {"type": "int", "default": 0},
        "answer_bytes": {"type": "int", "default": 64},
        "lifetime_s": {"type": "float", "default": 7200.0},
    }


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    params = dict(module.params)
    ensure = answerer.ensure_present if params.pop("state") == "present" else answerer.ensure_absent
    try:
        settings = answerer.Settings(**params)
        settings.check()
        result = ensure(settings, check_mode=module.check_mode)
    except BenchError as error:
        module.fail_json(**error.as_result())
    module.exit_json(**result)


if __name__ == "__main__":
    main()
