#!/usr/bin/python
# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: kernel_study
short_description: Plan and report the study of one kernel as a router on two kinds of machines
version_added: 0.1.0
author:
  - fastpath.bench contributors (@fastpath)
description:
  - Two kinds of machines with two hosts each stand in for one another in five topologies. Both ends of the first kind,
    both of the second, one of each, and a host of each kind that routes between the two of the other.
  - With power profiles, two traffic profiles and two directions that makes 20 points for each power profile, and of
    each point the mean and the peak. With two power profiles these are 80 figures.
  - Used by the playbook C(fastpath.bench.kernel_matrix).
attributes:
  check_mode:
    description: Can run in C(check_mode) and return changed status prediction without modifying the target.
    support: full
  action:
    description: Runs on the controller, where the results are.
    support: full
  diff_mode:
    description: Will return details on what has changed (or possibly needs changing in C(check_mode)), when in diff
      mode.
    support: none
options:
  state:
    description:
      - With V(planned), return what has to be laid over the inventory's variables. Touches nothing.
      - With V(reported), write C(study.md) and C(study.json) into the run's folder, and print what was found.
    type: str
    choices: [planned, reported]
    required: true
  kinds:
    description: Two kinds of machines by name, with the inventory names of two hosts each.
    type: dict
    required: true
  powers:
    description: Power profiles, entries of C(bench_power). Others are compared with the first.
    type: list
    elements: str
    default: [dynamic, static_high]
  interfaces:
    description: By host, its interface in the first network and the one in the second. Needed with O(state=planned).
    type: dict
    default: {}
  repeats:
    description: Repetitions of each point.
    type: int
    default: 3
  mtu_bytes:
    description: MTU of both networks, in bytes.
    type: int
    default: 1500
  results_dir:
    description: The folder that holds the runs. Required with O(state=reported).
    type: path
  run_id:
    description: The run. With V(latest), the one that was started last.
    type: str
    default: latest
  reference:
    description: Published figures to show beside the measured ones, with C(source) and a list C(figures).
    type: dict
    default: {}
"""

EXAMPLES = r"""
- name: Plan the study
  fastpath.bench.kernel_study:
    state: planned
    kinds:
      server: [srv1, srv2]
      desktop: [pc1, pc2]
    interfaces:
      srv1: [ens1f0, ens1f1]
      srv2: [ens1f0, ens1f1]
      pc1: [enp3s0, enp4s0]
      pc2: [enp3s0, enp4s0]
  register: study

- name: Report it
  fastpath.bench.kernel_study:
    state: reported
    kinds:
      server: [srv1, srv2]
      desktop: [pc1, pc2]
    results_dir: /srv/results
"""

RETURN = r"""
overrides:
  description: C(bench_topologies) and C(bench_matrix) of the study.
  type: dict
  returned: O(state=planned)
run_id:
  description: The run that was reported.
  type: str
  returned: O(state=reported)
  sample: 20260301T120000Z-1a2b
files:
  description: The path of each file, by C(markdown) and C(json).
  type: dict
  returned: O(state=reported)
sentences:
  description: What was found, a sentence each, with the 95 % interval of each difference.
  type: list
  elements: str
  returned: O(state=reported)
  sample:
    - 80 of 80 figures were measured
"""
