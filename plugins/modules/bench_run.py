#!/usr/bin/python
# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: bench_run
short_description: Keep the description of a run up to date
version_added: 0.1.0
author:
  - fastpath.bench contributors (@fastpath)
description:
  - Writes what is known at the start and at the end of a run to its C(run.json) on the controller.
  - At the end it works out the harness time, and tells of hosts whose state is not the one found before.
attributes:
  check_mode:
    description: Can run in C(check_mode) and return changed status prediction without modifying the target.
    support: full
  diff_mode:
    description: Will return details on what has changed (or possibly needs changing in C(check_mode)), when in diff
      mode.
    support: none
  action:
    description: Runs on the controller.
    support: full
options:
  state:
    description:
      - V(started) writes versions and fingerprints.
      - V(finished) closes the run.
      - V(withdrawn) undoes the beginning of a session that was refused before it touched a host. A run that has nothing
        else is removed.
    type: str
    choices: [started, finished, withdrawn]
    required: true
  results_dir:
    description: The folder of all runs.
    type: path
    required: true
  run_id:
    description: The run.
    type: str
    required: true
  fingerprints:
    description: By host, what M(fastpath.bench.host_fingerprint) returned before the run.
    type: dict
    default: {}
  after:
    description: By host, what it returned after the restore.
    type: dict
    default: {}
  abandon:
    description: Broken-off runs of which nothing is left on any host.
    type: list
    elements: str
    default: []
  left:
    description: Hosts that could not be put back. The next run puts them back.
    type: list
    elements: str
    default: []
"""

EXAMPLES = r"""
- name: Close the run
  fastpath.bench.bench_run:
    state: finished
    results_dir: "{{ playbook_dir }}/results"
    run_id: "{{ bench_plan.run_id }}"
  run_once: true
"""

RETURN = r"""
harness:
  description: Wall time, traffic time and their difference for a trial, in seconds.
  type: dict
  returned: when O(state=finished)
removed:
  description: Whether the run had nothing else and was removed.
  type: bool
  returned: when O(state=withdrawn)
"""
