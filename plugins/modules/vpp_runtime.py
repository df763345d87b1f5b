#!/usr/bin/python
# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: vpp_runtime
short_description: Read what VPP's threads and nodes did, and what VPP dropped
version_added: 0.1.0
description:
  - Reads calls, vectors and clocks of VPP's nodes by thread, and drops by interface, node and reason, from VPP's
    statistics segment. Says in words what the vectors per call mean.
  - With O(wait_s) it brackets a span of time. To have it for the trials of a run, use
    O(fastpath.bench.dut_sample#module:vpp), which records in the background and cuts to the trials' windows.
  - Where the segment cannot tell (its per-node counters are off, or it is renewed too rarely for O(wait_s)) the texts
    of VPP's command line are read.
attributes:
  check_mode:
    support: full
    description: Nothing is cleared. What is read is the same.
  diff_mode:
    support: none
    description: There is nothing to compare.
author:
  - fastpath.bench contributors (@fastpath)
options:
  stats_socket:
    description: Socket over which VPP hands out its statistics segment.
    type: path
    default: /run/vpp/stats.sock
  cli_socket:
    description:
      - Socket of VPP's command line. Needed for O(clear=true) and O(source=cli); otherwise it adds what the segment
        does not tell, the severities of reasons and the threads of the receive queues, when it is there.
    type: path
    default: /run/vpp/cli.sock
  vppctl:
    description: The program C(vppctl), or the folder it is in. Without it, it is looked for.
    type: path
  timeout_s:
    description: How long VPP may take for an answer.
    type: float
    default: 10.0
  source:
    description:
      - Where to read from. V(auto) is the segment, and the command line where the segment cannot tell.
      - V(stats_segment) fails then. V(cli) has clocks rounded to three digits.
    type: str
    choices: [auto, stats_segment, cli]
    default: auto
  clear:
    description:
      - Set VPP's counters of nodes and reasons to 0 first. Whoever else reads them sees that too; with O(wait_s) it is
        not needed, as the difference is reported.
      - Clears on each run, so it always reports a change.
    type: bool
    default: false
  wait_s:
    description:
      - Wait so long and report what happened meanwhile. Without it, all since the last clear is reported, or since VPP
        started; reasons of drops in the segment always count from VPP's start.
    type: float
    default: 0.0
  top:
    description: How many nodes to name, those that took the most clocks.
    type: int
    default: 20
"""

EXAMPLES = r"""
- name: See what VPP does right now
  fastpath.bench.vpp_runtime:
    wait_s: 2
  register: observed

- name: Say whether VPP has enough workers
  ansible.builtin.debug:
    msg: "{{ observed.runtime.meaning }}"

- name: Bracket a trial by hand, as one does with vppctl
  fastpath.bench.vpp_runtime:
    source: cli
    clear: true
    wait_s: 10
"""

RETURN = r"""
runtime:
  description: What VPP did.
  returned: success
  type: dict
  contains:
    source:
      description: Where it was read, V(stats_segment) or V(cli).
      type: str
    reason:
      description: Why threads and nodes are null, null when they are not.
      type: str
    seconds:
      description: The time that it is about, null when that is not known.
      type: float
    threads:
      description:
        - By thread C(thread), C(name), C(lcore), C(packets) (those of its busiest node), C(calls), C(vectors),
          C(vectors_per_call), C(clocks_per_packet), C(cpu_ratio) (of the time, how much it was on a CPU; a thread that
          polls is always there), C(batching), and C(polling) (its nodes that were also called for nothing).
        - Nodes that poll are left out of C(calls), C(vectors) and the ratios.
      type: list
      elements: dict
    busiest_thread:
      description: The thread with the most vectors, null when there were none.
      type: int
    batching:
      description:
        - V(idle), V(none) (about 1 packet a call), V(some), V(works) (tens) or V(saturated) (near 256), of the busiest
          thread.
      type: str
    meaning:
      description: The same in a sentence.
      type: str
    nodes:
      description: By thread and node C(calls), C(vectors), C(suspends), C(vectors_per_call) and C(clocks_per_packet).
      type: list
      elements: dict
    drops:
      description:
        - C(packets), those that VPP dropped; C(interfaces), by interface the counters of lost packets that are not 0;
          C(reasons), by C(node) and C(reason) the C(count) added up over the threads, with its C(severity) where known.
        - VPP counts there also what is no loss. What it calls C(info) is left out; a severity V(error) alone is no
          failure.
      type: dict
rx_queues:
  description:
    - By queue C(interface), C(queue), C(thread), C(thread_name), C(node) and C(mode) (V(polling), V(interrupt) or
      V(adaptive)). Null when the command line is out of reach.
  returned: success
  type: list
  elements: dict
why_cli:
  description: Why the segment was not used.
  returned: when O(source=auto) and the command line was read
  type: str
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._vpp import runtime
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.cli import Vppctl


def argument_spec() -> dict[str, t.Any]:
    return {
        "stats_socket": {"type": "path", "default": "/run/vpp/stats.sock"},
        "cli_socket": {"type": "path", "default": "/run/vpp/cli.sock"},
        "vppctl": {"type": "path"},
        "timeout_s": {"type": "float", "default": 10.0},
        "source": {"type": "str", "choices": ["auto", "stats_segment", "cli"], "default": "auto"},
        "clear": {"type": "bool", "default": False},
        "wait_s": {"type": "float", "default": 0.0},
        "top": {"type": "int", "default": 20},
    }


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    params = module.params
    wish = runtime.Wish(
        stats_socket=params["stats_socket"],
        cli=Vppctl(params["cli_socket"], params["vppctl"], params["timeout_s"]),
        source=params["source"],
        clear=params["clear"],
        wait_s=params["wait_s"],
        top=params["top"],
    )
    try:
        result = runtime.observe(wish, check_mode=module.check_mode)
    except BenchError as error:
        module.fail_json(**error.as_result())
    module.exit_json(**result)


if __name__ == "__main__":
    main()
