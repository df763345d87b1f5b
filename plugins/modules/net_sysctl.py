#!/usr/bin/python
# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: net_sysctl
short_description: Set kernel parameters, running state only
version_added: 0.1.0
description:
  - Brings parameters under C(/proc/sys) to what is asked, in the network namespace of the host. No file is read or
    written, so a foreign line in some configuration file does not matter.
  - What was found is noted in the journal before the first change, and M(fastpath.bench.host_restore) puts it back,
    together with what the kernel changes beside it (C(net.ipv4.ip_forward) changes C(forwarding) of each interface).
  - The values are read back. A value that the kernel rounds is a failure that tells what it became.
extends_documentation_fragment:
  - fastpath.bench.host_state
  - fastpath.bench.host_state.attributes
author:
  - fastpath.bench contributors (@fastpath)
options:
  values:
    description:
      - Parameter to value. Written with dots as in C(sysctl.conf), or with slashes. Interface names may have dots.
      - V(*) in a name stands for what exists now, C(net.ipv4.conf.*.rp_filter) also for C(all) and C(default).
    type: dict
    default: {}
  optional_values:
    description:
      - As O(values), for parameters that this host need not have. One that does not exist or cannot be written here is
        a finding, not a failure.
    type: dict
    default: {}
"""

EXAMPLES = r"""
- name: Forward, and do not filter by reverse path
  fastpath.bench.net_sysctl:
    part: kernel_router
    values:
      net.ipv4.ip_forward: 1
      net.ipv6.conf.all.forwarding: 1
      net.ipv4.conf.*.rp_filter: 0
    optional_values:
      net.core.netdev_budget: 600
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
    - What one should know. C(code) is V(setting_unsupported), V(not_there_yet) (check mode only), V(changed_beside),
      V(changed_by_others), or V(outvoted) where that of C(all) is larger and counts on the interface, as with
      C(rp_filter).
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
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._host import settings
from ansible_collections.fastpath.bench.plugins.module_utils._host.access import Access


def argument_spec() -> dict[str, t.Any]:
    return {
        **settings.common_spec(),
        "values": {"type": "dict", "default": {}},
        "optional_values": {"type": "dict", "default": {}},
    }


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    access = Access()
    try:
        wishes = settings.sysctl_wishes(access, module.params)
        result = settings.apply(access, module.params, wishes, check_mode=module.check_mode).as_result()
        result["findings"] += settings.sysctl_outvoted(access, wishes)
    except BenchError as err:
        module.fail_json(**err.as_result())
    settings.warn_about(module.warn, result["findings"])
    module.exit_json(**result)


if __name__ == "__main__":
    main()
