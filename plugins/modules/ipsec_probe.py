#!/usr/bin/python
# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: ipsec_probe
short_description: Find out whether a host can be an IPsec gateway
version_added: 0.1.0
description:
  - Has the kernel take a security association for each ESP proposal, and an xfrm interface, in a network namespace that
    is gone afterwards. So it is known before anything is installed or changed.
attributes:
  check_mode:
    support: full
    description: It changes nothing in any case.
  diff_mode:
    support: none
    description: It changes nothing.
author:
  - fastpath.bench contributors (@fastpath)
options:
  esp:
    description: ESP proposals.
    type: list
    elements: str
    required: true
  interfaces:
    description: Whether xfrm interfaces are needed.
    type: bool
    default: true
"""

EXAMPLES = r"""
- name: Can this host be a gateway?
  fastpath.bench.ipsec_probe:
    esp: [aes128gcm16]
  register: probe
"""

RETURN = r"""
reason:
  description: What the kernel lacks; empty when nothing, or when it could not be tried.
  returned: success
  type: str
swanctl:
  description: Where strongSwan's program swanctl is; empty when it is not there.
  returned: success
  type: str
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.fastpath.bench.plugins.module_utils._common import command
from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._ipsec import proposal, support


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "esp": {"type": "list", "elements": "str", "required": True},
            "interfaces": {"type": "bool", "default": True},
        },
        supports_check_mode=True,
    )
    try:
        proposals = proposal.parse_all(module.params["esp"], proposal.ESP)
        reason = support.why_not(proposals, interfaces=module.params["interfaces"])
    except BenchError as err:
        module.fail_json(**err.as_result())
    module.exit_json(changed=False, reason=reason or "", swanctl=command.find_program("swanctl") or "")


if __name__ == "__main__":
    main()
