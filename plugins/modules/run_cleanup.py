#!/usr/bin/python
# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: run_cleanup
short_description: End what a run left running on a host, and delete what it recorded there
version_added: 0.1.0
author:
  - fastpath.bench contributors (@fastpath)
description:
  - Ends the batch of trials, the servers and receivers, the samplers and the path responders that a run left when its
    controller was killed. What they recorded stays for a day, so that the run can be resumed. Settings of the host are
    put back by M(fastpath.bench.host_restore).
  - Use it only on a host that belongs to no other run that is alive.
  - Deletes what was recorded of trials that are on the controller.
attributes:
  check_mode:
    description: Can run in C(check_mode) and return changed status prediction without modifying the target.
    support: full
  diff_mode:
    description: Will return details on what has changed (or possibly needs changing in C(check_mode)), when in diff
      mode.
    support: none
options:
  state:
    description:
      - V(ended) ends what is left running.
      - V(forgotten) ends nothing, and deletes what was recorded of O(batches) and the spool of O(run_id).
    type: str
    choices: [ended, forgotten]
    default: ended
  keep:
    description:
      - With O(state=ended), a run that is about to be resumed. Its servers and samplers are left running.
    type: str
  batches:
    description: With O(state=forgotten), the batches as the samplers are named by them.
    type: list
    elements: str
    default: []
  run_id:
    description: With O(state=forgotten), a run of which all trials are on the controller.
    type: str
"""

EXAMPLES = r"""
- name: End what a broken-off run left
  fastpath.bench.run_cleanup:

- name: Delete what is on the controller
  fastpath.bench.run_cleanup:
    state: forgotten
    batches: ["{{ bench_batch.sample_id }}"]
"""

RETURN = r"""
ended:
  description: What was ended, or would be in check mode.
  type: list
  elements: str
  returned: O(state=ended)
deleted:
  description: What was deleted, or would be in check mode.
  type: list
  elements: str
  returned: O(state=forgotten)
"""

import os
import re
import typing as t

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._common.paths import SPOOL_DIR
from ansible_collections.fastpath.bench.plugins.module_utils._host.leftovers import clean, forget
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.server import Systemd


def argument_spec() -> dict[str, t.Any]:
    return {
        "state": {"type": "str", "choices": ["ended", "forgotten"], "default": "ended"},
        "keep": {"type": "str"},
        "batches": {"type": "list", "elements": "str", "default": []},
        "run_id": {"type": "str"},
    }


def spool_of(run_id: str | None) -> str | None:
    """The spool folder of a run. It is deleted with all that is in it, so its name must be that of a run."""
    if run_id is None:
        return None
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", run_id):
        raise BenchError(f"{run_id!r} is no name of a run", where="option run_id", code="bad_name")
    return os.path.join(SPOOL_DIR, run_id)


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    params = module.params
    try:
        if params["state"] == "ended":
            key, done = "ended", clean(Systemd(), keep=params["keep"], check_mode=module.check_mode)
        else:
            spool = spool_of(params["run_id"])
            key, done = "deleted", forget(params["batches"], spool=spool, check_mode=module.check_mode)
    except BenchError as err:
        module.fail_json(**err.as_result())
    module.exit_json(changed=bool(done), **{key: done})


if __name__ == "__main__":
    main()
