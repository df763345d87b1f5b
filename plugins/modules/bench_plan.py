#!/usr/bin/python
# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: bench_plan
short_description: Plan a run from a matrix
version_added: 0.1.0
author:
  - fastpath.bench contributors (@fastpath)
description:
  - Reads C(bench_matrix) and the dictionaries that it refers to from the variables of the testbed's hosts, checks them,
    and works out which trials run in which order.
  - Touches no host. A mistake in the matrix is one clear error.
  - With O(run_id) of a run that exists, plans what is missing in it.
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
      - V(planned) only plans.
      - V(created) also writes the run's folder, or opens the one that exists.
    type: str
    choices: [planned, created]
    default: planned
  hosts:
    description: The inventory hosts of all testbeds. A host's testbed is its variable C(bench_testbed).
    type: list
    elements: str
    required: true
  shipped:
    description: Shipped C(datapaths), C(traffic), C(generators), C(power) and C(axes), over which the user's are laid.
    type: dict
    default: {}
  overrides:
    description: Variables that are laid over those of every testbed, such as C(bench_matrix) of a playbook for one
      study.
    type: dict
    default: {}
  results_dir:
    description: The folder of all runs, on the controller.
    type: path
    required: true
  run_id:
    description: The run to open or to make. A new name is made when it is left out.
    type: str
"""

EXAMPLES = r"""
- name: Plan the matrix
  fastpath.bench.bench_plan:
    hosts: "{{ ansible_play_hosts_all }}"
    results_dir: "{{ playbook_dir }}/results"
  run_once: true
  register: bench_plan
"""

RETURN = r"""
run_id:
  description: The name of the run.
  type: str
  returned: success
run_dir:
  description: The folder of the run.
  type: str
  returned: success
resumed:
  description: Whether the run existed.
  type: bool
  returned: success
testbeds:
  description: By testbed its C(hosts) and C(groups); a group is a set-up with the batches of trials to run in it.
  type: dict
  returned: success
points:
  description: The headline metric of each point.
  type: dict
  returned: success
trials:
  description: How many trials are to be run.
  type: int
  returned: success
traffic_s:
  description: Seconds of measured traffic in them.
  type: float
  returned: success
forecast_s:
  description: About how many seconds the run takes.
  type: float
  returned: success
dead_runs:
  description: Runs of this controller that were broken off, and whose traces on the hosts may be put back.
  type: list
  elements: str
  returned: success
left_datapaths:
  description: By host, the datapaths that broken-off runs may have left in place, each with C(run), C(role) and
    C(interfaces).
  type: dict
  returned: success
lines:
  description: The plan for a person.
  type: list
  elements: str
  returned: success
"""
