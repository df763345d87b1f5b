#!/usr/bin/python
# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: ipsec_ladder
short_description: Plan and report the ladder of IPsec tuning
version_added: 0.1.0
description:
  - Eight steps from policies with AES-CBC to several tunnels between several pairs of addresses on tuned hosts. Each
    is a point of the matrix and is compared with the step before it, with the findings that explain what it brought.
  - Used by the playbook C(fastpath.bench.ipsec_ladder).
attributes:
  check_mode:
    support: full
    description: Writes nothing.
  action:
    support: full
    description: Runs on the controller, where the results are.
  diff_mode:
    support: none
    description: What it writes is made from the results alone.
author:
  - fastpath.bench contributors (@fastpath)
options:
  state:
    description:
      - With V(planned), return what has to be laid over the inventory's variables. Touches nothing.
      - With V(reported), write C(ladder.md) and C(ladder.json) into the run's folder, and print what was found.
    type: str
    choices: [planned, reported]
    required: true
  topologies:
    description: C(bench_topologies).
    type: dict
    required: true
  topology:
    description: Which of them; it has two DUTs, the gateways.
    type: str
    required: true
  traffic:
    description: Traffic profile.
    type: str
    default: tcp_large
  direction:
    description: Direction.
    type: str
    default: forward
  repeats:
    description: Repetitions of each step.
    type: int
    default: 3
  order:
    description:
      - With V(interleaved) each repetition takes all steps, so that what drifts is not taken for what a step brings.
      - With V(spread) each step is set up once, which is quicker.
    type: str
    choices: [interleaved, spread]
    default: interleaved
  rps:
    description: CPUs for receive packet steering, such as V(0-3), from the step C(rps) on. Without any it is skipped.
    type: str
    default: ""
  powers:
    description: Power profiles of the steps C(power) and C(reserved). A step without one is skipped.
    type: dict
    default: {}
  skip:
    description: Steps to leave out, each with the reason.
    type: dict
    default: {}
  results_dir:
    description: Folder of the runs.
    type: path
  run_id:
    description: The run.
    type: str
    default: latest
"""

EXAMPLES = r"""
- name: Make the matrix
  fastpath.bench.ipsec_ladder:
    state: planned
    topologies: "{{ bench_topologies }}"
    topology: gateways
    skip: {rps: the gateways have one CPU}
  register: ladder
"""

RETURN = r"""
overrides:
  description: What has to be laid over the inventory's variables.
  returned: when O(state) is V(planned)
  type: dict
skipped:
  description: Steps that are left out, with the reason.
  returned: when O(state) is V(planned)
  type: dict
steps:
  description: Each step with its figures, the comparison with the step before it, and what was noticed.
  returned: when O(state) is V(reported)
  type: list
  elements: dict
files:
  description: What was written.
  returned: when O(state) is V(reported)
  type: dict
"""
