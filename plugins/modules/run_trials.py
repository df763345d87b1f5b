#!/usr/bin/python
# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: run_trials
short_description: Run a batch of trials on the client and follow it
version_added: 0.1.0
author:
  - fastpath.bench contributors (@fastpath)
description:
  - Starts a generator's module in the background on the client, with all trials of a batch.
  - Collects each trial as soon as the client has spooled it, so that a crash of either side loses none that is
    finished.
  - Shows one line for each, with its figure and the time left.
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
  batch:
    description: A batch of the plan that M(fastpath.bench.bench_plan) returned.
    type: dict
    required: true
  run_id:
    description: The run.
    type: str
    required: true
  run_dir:
    description: The run's folder on the controller.
    type: path
    required: true
  headlines:
    description: By point, the metric that is shown while it runs.
    type: dict
    default: {}
  time_limit_s:
    description: Seconds that a trial may take beyond its traffic.
    type: float
    default: 60.0
  state:
    description:
      - V(run) runs the trials.
      - V(recovered) runs nothing and returns those that an earlier, broken-off call has finished and nobody collected.
    type: str
    choices: [run, recovered]
    default: run
  refused:
    description:
      - By name of a server's instance, C(code) and C(reason) why it does not serve. Its trial does not run and gets
        this reason.
    type: dict
    default: {}
  abort:
    description: When not empty, nothing runs and each trial gets this reason.
    type: str
    default: ""
  abort_status:
    description: The status of a trial that does not run because of O(abort).
    type: str
    choices: [failed, skipped]
    default: failed
"""

EXAMPLES = r"""
- name: Run the trials
  fastpath.bench.run_trials:
    batch: "{{ bench_batch }}"
    run_id: "{{ bench_plan.run_id }}"
    run_dir: "{{ bench_plan.run_dir }}"
"""

RETURN = r"""
records:
  description: One record for each trial of the batch, in its order.
  type: list
  elements: dict
  returned: always
windows:
  description: C(id), C(start) and C(end) of the measured window of each trial, in epoch seconds of the client's clock.
  type: list
  elements: dict
  returned: always
"""
