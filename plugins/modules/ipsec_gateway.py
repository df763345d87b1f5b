#!/usr/bin/python
# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: ipsec_gateway
short_description: xfrm interfaces, routes over them, TCP's segment size and the daemon of an IPsec gateway
version_added: 0.1.0
description:
  - Brings what M(fastpath.bench.ipsec_plan) worked out to a host. What was found is noted in the journal first, and
    M(fastpath.bench.host_restore) puts it back - it takes away the interfaces, the rules and the files, and stops a
    daemon that did not run.
  - An option that is left out leaves its part as it is. Interfaces, routes and files that this part made before and
    that are not asked for any more are taken away.
extends_documentation_fragment:
  - fastpath.bench.host_state
  - fastpath.bench.host_state.attributes
author:
  - fastpath.bench contributors (@fastpath)
options:
  files:
    description:
      - Files that are this collection's. They have mode 0600 and are deleted at a restore. What is in them is neither
        noted nor shown.
    type: list
    elements: dict
    suboptions:
      path:
        description: A path whose last part begins with C(fastpath).
        type: path
        required: true
      content:
        description: What is in it. Without it, what is in it stays.
        type: str
  daemon:
    description: The service of strongSwan, which is started.
    type: str
    choices: [strongswan.service, strongswan-swanctl.service]
  interfaces:
    description: xfrm interfaces.
    type: list
    elements: dict
    suboptions:
      name:
        description: Its name.
        type: str
        required: true
      if_id:
        description: Its interface id, which the CHILD_SA has too.
        type: int
        required: true
      dev:
        description: The interface that has the outer address.
        type: str
      mtu_bytes:
        description: Its MTU.
        type: int
        required: true
      up:
        description: Whether it is up.
        type: bool
        default: true
  routes:
    description: Routes, each with a next hop by each of its interfaces.
    type: list
    elements: dict
    suboptions:
      dst:
        description: Network.
        type: str
        required: true
      devs:
        description: Interfaces.
        type: list
        elements: str
        required: true
  mss:
    description: Clamps of TCP's segment size, as M(fastpath.bench.ipsec_plan) returns them. An empty list removes them.
    type: list
    elements: str
"""

EXAMPLES = r"""
- name: One tunnel's interface, and the network behind it
  fastpath.bench.ipsec_gateway:
    part: ipsec
    interfaces:
      - {name: ipsec1, if_id: 42, dev: eth2, mtu_bytes: 1446}
    routes:
      - {dst: 10.73.2.0/24, devs: [ipsec1]}
    mss: [ipsec1 4 1406]
"""

RETURN = r"""
changes:
  description: Each setting that was changed, or in check mode would be.
  returned: success
  type: list
  elements: dict
  contains:
    kind:
      description: Kind of the setting, such as V(ipsec.xfrm_link) or V(route).
      type: str
    key:
      description: Which one.
      type: str
    before:
      description: C(value), or C(absent) with V(true) when there was none.
      type: dict
    after:
      description: As C(before), read back from the host.
      type: dict
written:
  description: The O(files) that were written.
  returned: success
  type: list
  elements: str
findings:
  description: What one should know.
  returned: success
  type: list
  elements: dict
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._host import settings
from ansible_collections.fastpath.bench.plugins.module_utils._host.access import Access
from ansible_collections.fastpath.bench.plugins.module_utils._ipsec import options


def argument_spec() -> dict[str, t.Any]:
    return {**settings.common_spec(), **options.GATEWAY_SPEC}


def run(module: AnsibleModule) -> dict[str, t.Any]:
    access, params = Access(), module.params
    journal = settings.open_journal(params)
    result: dict[str, t.Any] = {"changed": False, "changes": [], "findings": [], "diff": {"before": {}, "after": {}}}
    # files come first, as a daemon that is started reads them; routes are judged when their interfaces are there
    for wishes_of in (options.file_wishes, options.link_wishes, options.route_wishes):
        wishes = wishes_of(access, params, journal)
        part = settings.apply(access, params, wishes, check_mode=module.check_mode).as_result()
        result["changed"] = result["changed"] or part["changed"]
        result["changes"] += part["changes"]
        result["findings"] += part["findings"]
        for side in ("before", "after"):
            result["diff"][side].update(part["diff"][side])
        if wishes_of is options.file_wishes:
            result["written"] = options.write_files(params, check_mode=module.check_mode)
            result["changed"] = result["changed"] or bool(result["written"])
    return result


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    try:
        result = run(module)
    except BenchError as err:
        module.fail_json(**err.as_result())
    settings.warn_about(module.warn, result["findings"])
    module.exit_json(**result)


if __name__ == "__main__":
    main()
