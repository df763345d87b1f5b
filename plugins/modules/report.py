#!/usr/bin/python
# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: report
short_description: Make the report of a run from its stored trials
version_added: 0.1.0
author:
  - fastpath.bench contributors (@fastpath)
description:
  - Reads the trials of a run and writes C(report.html), C(report.md), C(summary.csv), C(summary.json) and C(junit.xml)
    into its folder.
  - Everything is made from what is stored, so a report can be made again at any time, also while the run goes on. Made
    again from the same trials it is the same to the byte, and nothing changes.
  - A trial that cannot be read is told as a finding, and the rest is reported.
requirements:
  - scipy
  - matplotlib, unless O(charts=false)
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
  results_dir:
    description: The folder that holds the runs.
    type: path
    required: true
  run_id:
    description: The run. With V(latest), the one that was started last.
    type: str
    default: latest
  charts:
    description: Draw charts into C(report.html).
    type: bool
    default: true
  show:
    description: Print the verdict, the table of points and the path of C(report.html).
    type: bool
    default: true
"""

EXAMPLES = r"""
- name: Make the report of the run that was started last
  fastpath.bench.report:
    results_dir: "{{ lookup('ansible.builtin.env', 'PWD') }}/results"
  register: bench_report

- name: Make the report of an older run, without charts
  fastpath.bench.report:
    results_dir: /srv/results
    run_id: 20260301T120000Z-1a2b
    charts: false
    show: false
"""

RETURN = r"""
run_id:
  description: The run that was reported.
  type: str
  returned: success
  sample: 20260301T120000Z-1a2b
files:
  description: The path of each file, by C(html), C(markdown), C(csv), C(json) and C(junit).
  type: dict
  returned: success
  sample:
    html: /srv/results/20260301T120000Z-1a2b/report.html
updated:
  description: Names of the files that changed, or would change in check mode.
  type: list
  elements: str
  returned: success
verdict:
  description: What the numbers can and cannot carry, and each point in a sentence, for a terminal.
  type: list
  elements: str
  returned: success
  sample:
    - >-
      routed kernel tcp_large forward: median 12.3 Gbit/s (L4 goodput, n 3, spread 2.1 %), 45 % below direct (95 % 40 to
      49)
table:
  description: The points as lines of an aligned table.
  type: list
  elements: str
  returned: success
comparisons:
  description: Each comparison with the baseline as a sentence, with the 95 % intervals of both means and of the
    difference.
  type: list
  elements: str
  returned: success
states:
  description: How many points are C(ok), C(partial), C(failed), C(invalid), C(skipped) and C(missing).
  type: dict
  returned: success
  sample:
    ok: 18
findings:
  description: The findings of the run, the worst first.
  type: list
  elements: dict
  returned: success
  contains:
    code:
      description: A stable word; see the documentation of findings.
      type: str
      returned: always
    severity:
      description: How bad it is; C(error), C(warning) or C(info).
      type: str
      returned: always
    level:
      description: What it is about; C(trial), C(point) or C(run).
      type: str
      returned: always
    evidence:
      description: Up to three lines of evidence.
      type: list
      elements: str
      returned: always
    remedy:
      description: What to do.
      type: str
      returned: always
    count:
      description: How often it was seen.
      type: int
      returned: always
harness:
  description: Wall time, traffic time, trials, and harness time of a trial; null while the run has not ended.
  type: dict
  returned: success
"""
