#!/usr/bin/python
# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: vpp_ready
short_description: Wait until VPP is up and stays up
version_added: 0.1.0
description:
  - Waits until one and the same VPP process has answered for a while. A service that systemd starts again and again is
    not up, and fails with the last lines of VPP's log.
attributes:
  check_mode:
    support: full
    description: Changes nothing in any mode. In check mode a VPP that is not up is reported and not a failure.
  diff_mode:
    support: none
    description: There is nothing to compare.
author:
  - fastpath.bench contributors (@fastpath)
options:
  unit:
    description: The systemd unit. An empty text looks at the sockets alone.
    type: str
    default: vpp.service
  api_socket:
    description: Socket of VPP's binary API.
    type: path
    default: /run/vpp/api.sock
  cli_socket:
    description: Socket of VPP's command line, asked where the Python package C(vpp_papi) is missing.
    type: path
    default: /run/vpp/cli.sock
  vppctl:
    description: The program C(vppctl), or the folder it is in. Without it, it is looked for.
    type: path
  log_file:
    description: VPP's log, quoted when VPP is not up.
    type: path
    default: /var/log/vpp/vpp.log
  timeout_s:
    description: How long to wait at most.
    type: float
    default: 30.0
  stable_s:
    description: How long it must have been up.
    type: float
    default: 3.0
"""

EXAMPLES = r"""
- name: See that VPP has come up, not only that it was started
  fastpath.bench.vpp_ready:
    stable_s: 3
"""

RETURN = r"""
up:
  description: Whether it is up. V(false) in check mode only.
  returned: success
  type: bool
version:
  description: Version that VPP told.
  returned: when it is up
  type: str
asked_over:
  description: V(api), or V(cli) where C(vpp_papi) is missing.
  returned: when it is up
  type: str
pid:
  description: The process.
  returned: when it is up
  type: int
restarts:
  description: How often systemd has restarted it by itself.
  returned: when it is up
  type: int
came_up_s:
  description: How long it took to come up.
  returned: when it is up
  type: float
stable_s:
  description: How long it was watched.
  returned: when it is up
  type: float
running:
  description:
    - Whether the unit has a process, or systemd is about to start one. A VPP that hangs or ends again and again is
      running and not up. Null where the unit cannot be looked at.
  returned: success
  type: bool
reason:
  description: Why it is not up.
  returned: when it is not, in check mode
  type: str
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._vpp import ready
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.cli import Vppctl


def argument_spec() -> dict[str, t.Any]:
    return {
        "unit": {"type": "str", "default": "vpp.service"},
        "api_socket": {"type": "path", "default": "/run/vpp/api.sock"},
        "cli_socket": {"type": "path", "default": "/run/vpp/cli.sock"},
        "vppctl": {"type": "path"},
        "log_file": {"type": "path", "default": "/var/log/vpp/vpp.log"},
        "timeout_s": {"type": "float", "default": 30.0},
        "stable_s": {"type": "float", "default": 3.0},
    }


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    params = module.params
    wish = ready.Wish(
        unit=params["unit"] or None,
        api_socket=params["api_socket"],
        cli=Vppctl(params["cli_socket"], params["vppctl"]),
        timeout_s=0.0 if module.check_mode else params["timeout_s"],
        stable_s=0.0 if module.check_mode else params["stable_s"],
        log_file=params["log_file"],
    )
    try:
        result = ready.wait(wish)
    except BenchError as error:
        if module.check_mode:
            module.exit_json(changed=False, up=False, running=ready.running(wish.unit), reason=error.message)
        module.fail_json(**error.as_result())
    module.exit_json(changed=False, up=True, running=True, **result)


if __name__ == "__main__":
    main()
