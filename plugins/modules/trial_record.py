#!/usr/bin/python
# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: trial_record
short_description: Write trials to the folder of a run
version_added: 0.1.0
author:
  - fastpath.bench contributors (@fastpath)
description:
  - Merges what client, server and samplers know of each trial, judges it, and writes it to the run's folder on the
    controller.
  - A trial is written whole or not at all, and never overwritten.
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
  results_dir:
    description: The folder of all runs.
    type: path
    required: true
  run_id:
    description: The run.
    type: str
    required: true
  group:
    description: The set-up, as M(fastpath.bench.bench_plan) returned it.
    type: dict
    required: true
  trials:
    description: The planned trials.
    type: list
    elements: dict
    required: true
  headlines:
    description: By point, its headline metric.
    type: dict
    required: true
  records:
    description: What M(fastpath.bench.run_trials) returned.
    type: list
    elements: dict
    default: []
  reports:
    description: By instance name, what the server's side counted.
    type: dict
    default: {}
  samples:
    description: By host, the windows that M(fastpath.bench.dut_sample) returned.
    type: dict
    default: {}
  about:
    description: By DUT, what its datapath tells of itself, which is stored beside its sample.
    type: dict
    default: {}
  power:
    description: By host, what the role P(fastpath.bench.power_profile#role) told of its profile.
    type: dict
    default: {}
"""

EXAMPLES = r"""
- name: Record the trials
  fastpath.bench.trial_record:
    results_dir: "{{ playbook_dir }}/results"
    run_id: "{{ bench_plan.run_id }}"
    group: "{{ bench_group }}"
    trials: "{{ bench_batch.trials }}"
    headlines: "{{ bench_plan.points }}"
    records: "{{ __bench_batch.records }}"
"""

RETURN = r"""
counts:
  description: How many trials were written with each status.
  type: dict
  returned: success
"""
