#!/usr/bin/python
# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: run_cleanup
short_description: End what a broken-off run left running on a host
version_added: 0.1.0
author:
  - fastpath.bench contributors (@fastpath)
description:
  - Ends the batch of trials, the iperf servers, the samplers and the path responders that a run left when its
    controller was killed. Settings of the host are put back by M(fastpath.bench.host_restore).
  - Use it only on a host that belongs to no other run that is alive.
attributes:
  check_mode:
    description: Can run in C(check_mode) and return changed status prediction without modifying the target.
    support: full
  diff_mode:
    description: Will return details on what has changed (or possibly needs changing in C(check_mode)), when in diff
      mode.
    support: none
options:
  keep:
    description:
      - A run that is about to be resumed. Its servers and samplers are left, since what they recorded is still wanted.
    type: str
"""

EXAMPLES = r"""
- name: End what a broken-off run left
  fastpath.bench.run_cleanup:
"""

RETURN = r"""
ended:
  description: What was ended, or would be in check mode.
  type: list
  elements: str
  returned: success
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._host.leftovers import clean
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.server import Systemd


def main() -> None:
    module = AnsibleModule(argument_spec={"keep": {"type": "str"}}, supports_check_mode=True)
    try:
        ended = clean(Systemd(), keep=module.params["keep"], check_mode=module.check_mode)
    except BenchError as err:
        module.fail_json(**err.as_result())
    module.exit_json(changed=bool(ended), ended=ended)


if __name__ == "__main__":
    main()
