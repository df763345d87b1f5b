#!/usr/bin/python
# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: net_netem
short_description: Delay, lose and reorder what leaves an interface, with the kernel's emulator
version_added: 0.1.0
description:
  - Sets netem of the kernel on what leaves an interface, running state only. It is noted in the journal that there was
    none, and M(fastpath.bench.host_restore) takes it off.
  - A queueing discipline that somebody has set is not replaced. The one that the kernel makes by itself comes back.
  - A kernel without netem is the failure C(netem_unsupported).
extends_documentation_fragment:
  - fastpath.bench.host_state
  - fastpath.bench.host_state.attributes
author:
  - fastpath.bench contributors (@fastpath)
options:
  state:
    description:
      - V(present) has it as asked, V(absent) takes it off.
    type: str
    choices: [present, absent]
    default: present
  device:
    description: The interface.
    type: str
    required: true
  delay_us:
    description: Microseconds that each packet is late.
    type: int
    default: 0
  loss_ratio:
    description: Part of the packets that is lost, at random.
    type: float
    default: 0.0
  reorder_ratio:
    description: Part of the packets that is not delayed, and so overtakes others.
    type: float
    default: 0.0
  bandwidth_bps:
    description: Bits each second that leave at most. V(0) is no limit.
    type: int
    default: 0
notes:
  - It loses what the kernel hands over as one. Have segmentation offload off where that is not to be many packets.
requirements:
  - tc (package iproute2 or iproute-tc)
seealso:
  - module: fastpath.bench.vpp_nsim
"""

EXAMPLES = r"""
- name: Two packets of a hundred are lost, all are 10 ms late
  fastpath.bench.net_netem:
    device: eth2
    delay_us: 10000
    loss_ratio: 0.02
"""

RETURN = r"""
changes:
  description: What was changed, or in check mode would be, as of M(fastpath.bench.net_sysctl).
  returned: success
  type: list
  elements: dict
findings:
  description: What one should know, as of M(fastpath.bench.net_sysctl).
  returned: success
  type: list
  elements: dict
netem:
  description: What runs now, in the form of the options; null when there is none.
  returned: success
  type: dict
"""

import dataclasses
import typing as t

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._host import settings
from ansible_collections.fastpath.bench.plugins.module_utils._host.access import Access
from ansible_collections.fastpath.bench.plugins.module_utils._host.knob import ABSENT
from ansible_collections.fastpath.bench.plugins.module_utils._host.netem import Netem, Settings
from ansible_collections.fastpath.bench.plugins.module_utils._host.reconcile import Wish


def argument_spec() -> dict[str, t.Any]:
    return {
        **settings.common_spec(),
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        "device": {"type": "str", "required": True},
        "delay_us": {"type": "int", "default": 0},
        "loss_ratio": {"type": "float", "default": 0.0},
        "reorder_ratio": {"type": "float", "default": 0.0},
        "bandwidth_bps": {"type": "int", "default": 0},
    }


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    params = module.params
    access = Access()
    try:
        asked = Settings(**{field.name: params[field.name] for field in dataclasses.fields(Settings)})
        asked.check()
        knob = Netem(access, params["device"])
        wish = dataclasses.asdict(asked) if params["state"] == "present" else ABSENT
        result = settings.apply(access, params, [Wish(knob, wish)], check_mode=module.check_mode).as_result()
        now = knob.read()
    except BenchError as err:
        module.fail_json(**err.as_result())
    settings.warn_about(module.warn, result["findings"])
    module.exit_json(**result, netem=None if now is ABSENT else now)


if __name__ == "__main__":
    main()
