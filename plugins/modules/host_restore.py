#!/usr/bin/python
# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: host_restore
short_description: Put a host back as it was found
version_added: 0.1.0
description:
  - Puts each setting that a module of this collection changed back to the value that the journal has, exactly, also
    when that was 0, empty or not there, and reads it back.
  - It can be killed at any moment and run again. On a host without a journal it does nothing.
  - What is gone by itself is only noted - after a restart of the machine, or when an interface was made anew, there is
    nothing to put back.
attributes:
  check_mode:
    support: full
    description: Tells what would be put back. Nothing is written.
  diff_mode:
    support: full
    description: The settings that differ, before and after.
author:
  - fastpath.bench contributors (@fastpath)
options:
  journal_dir:
    description: Folder of the journal on the host. Without it, C(/var/lib/fastpath-bench/journal).
    type: path
  owner:
    description: Who restores. A host that belongs to another owner is refused, unless O(take_over=true).
    type: str
    default: ""
  part:
    description:
      - Put back only what this part (see M(fastpath.bench.net_config)) changed. A setting that another part changed as
        well stays until that part is put back too.
    type: str
  force:
    description:
      - Also put back settings that someone else changed since. Without it they are reported in RV(conflicts) and left.
    type: bool
    default: false
  take_over:
    description: Restore also what another owner changed, for example a run that died.
    type: bool
    default: false
  restore:
    description:
      - V(false) puts nothing back. With O(hold) it only takes the host for O(owner), without it lets it go.
    type: bool
    default: true
  hold:
    description:
      - Keep the host for O(owner) afterwards, also while nothing is changed on it, so that another owner is refused. It
        is let go by a call without O(hold) and O(part), and by a restart of the machine.
    type: bool
    default: false
  take_over_from:
    description: Restore also what one of these owners changed, as they are known to be dead.
    type: list
    elements: str
    default: []
  stale_after_s:
    description:
      - Take over by itself when the other owner's last change is at least this long ago. V(0) never does.
    type: float
    default: 0
"""

EXAMPLES = r"""
- name: Put the host back at the end of a run
  fastpath.bench.host_restore:
    owner: "{{ bench_run_id }}"

- name: Have the host for a run from its beginning to its end
  fastpath.bench.host_restore:
    owner: "{{ bench_run_id }}"
    restore: false
    hold: true

- name: Put back what one role changed
  fastpath.bench.host_restore:
    part: kernel_router

- name: Clean up after a run that died
  fastpath.bench.host_restore:
    take_over: true
"""

RETURN = r"""
complete:
  description: Whether nothing is left to put back (of the part, when one is given).
  returned: success
  type: bool
remaining:
  description: Number of settings that were not put back.
  returned: success
  type: int
restored:
  description: Each setting that was put back, or in check mode would be.
  returned: success
  type: list
  elements: dict
  contains:
    kind:
      description: Kind of the setting.
      type: str
    key:
      description: Which one.
      type: str
    before:
      description: C(value), or C(absent) with V(true).
      type: dict
    after:
      description: The value as first found.
      type: dict
conflicts:
  description: Settings that someone else changed since, and that were left.
  returned: success
  type: list
  elements: dict
  contains:
    kind:
      description: Kind of the setting.
      type: str
    key:
      description: Which one.
      type: str
    found:
      description: What was found first.
      type: dict
    applied:
      description: What this collection had set.
      type: dict
    now:
      description: What it is now.
      type: dict
findings:
  description:
    - What one should know. C(code) is V(changed_by_others), V(journal_void), V(lost_beside), V(not_there_now),
      V(shared_setting) or V(taken_over).
  returned: success
  type: list
  elements: dict
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._host import settings


def argument_spec() -> dict[str, t.Any]:
    return {
        "journal_dir": {"type": "path"},
        "owner": {"type": "str", "default": ""},
        "part": {"type": "str"},
        "force": {"type": "bool", "default": False},
        "take_over": {"type": "bool", "default": False},
        "restore": {"type": "bool", "default": True},
        "hold": {"type": "bool", "default": False},
        "take_over_from": {"type": "list", "elements": "str", "default": []},
        "stale_after_s": {"type": "float", "default": 0},
    }


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    try:
        result = settings.restore_host(module.params, check_mode=module.check_mode).as_result()
    except BenchError as err:
        module.fail_json(**err.as_result())
    settings.warn_about(module.warn, result["findings"])
    module.exit_json(**result)


if __name__ == "__main__":
    main()
