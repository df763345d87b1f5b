#!/usr/bin/python
# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: throughput_search
short_description: Search the highest rate at which no more than a stated part of the packets is lost
version_added: 0.1.0
description:
  - Searches the throughput of a path for one or more goals, such as NDR (no loss) and PDR (0.5 % loss), in one call.
    The module runs on the host that sends; M(fastpath.bench.traffic_sink) counts on the host that receives.
  - The search is that of the MLRsearch library (RFC 9971). V(rfc2544) asks it for a result that complies with RFC
    2544, and V(binary) is plain binary search for comparison.
  - Before its loss is looked at, each trial is judged. Looked for are, in this order, an error of the tool, a
    generator whose figures cannot be used, less offered than was intended, more received than sent, a wrong
    duration, a direction that forwards nothing, and a state that does not hold. A trial without a usable result is
    repeated; when that does not help, or when a direction is dead, the search fails. Packets that were not offered
    count as lost, and the trial is flagged.
  - A result that the generator or the highest load limited is told as at least that much.
author:
  - fastpath.bench contributors (@fastpath)
requirements:
  - The Python package C(MLRsearch) (1.2.0 or newer) on the host, unless O(algorithm=binary). The role
    P(fastpath.bench.throughput_search#role) brings it.
  - iperf2 with C(--no-udp-fin), such as 2.1.8, for O(generator=iperf2).
  - root for O(generator=flow), O(generator=testpmd) and O(generator=trex).
  - C(dpdk-testpmd) and C(tc) for O(generator=testpmd).
  - TRex, 3.08 was tried, in O(trex_dir) for O(generator=trex). Its client runs on the host's Python.
options:
  generator:
    description:
      - What sends UDP at a packet rate to a receiver of M(fastpath.bench.traffic_sink).
      - V(iperf2) is a program of the host's network stack, one for each stream.
      - V(flow) is the collection's own sender, that of M(fastpath.bench.flow_run). It makes IPv4 frames and sends them
        below the host's network stack.
      - V(testpmd) is C(dpdk-testpmd) of DPDK in its mode C(txonly), on the kernel's interface by the driver
        C(af_packet), without hugepages. It sends IPv4 frames of one size. As it has no rate of its own, the module has
        the kernel's token bucket on the interface while it searches.
      - V(trex) is TRex in its stateless mode, where the user has it (O(trex_dir)), on the kernel's interface by the
        driver C(af_packet), in its mode for small machines, without hugepages. It is started once for the search and
        ends with it. It sends IPv4 frames of 64 to 1518 bytes or a mix of them, from this host only. Its server
        takes orders on two TCP ports of this host's addresses while it runs.
      - V(simulated) is a device that does not exist, for trying out goals. See O(simulated).
    type: str
    choices: [iperf2, flow, testpmd, trex, simulated]
    default: iperf2
  direction:
    description:
      - V(forward) is from this host to O(server), V(reverse) back, V(both) the two at once, each with the whole load.
      - For V(reverse) and V(both), M(fastpath.bench.traffic_source) sends at the other end, and this host counts.
    type: str
    choices: [forward, reverse, both]
    default: forward
  server:
    description:
      - Address of the receiver. Required with every O(generator) but V(simulated).
    type: str
  port:
    description:
      - Port of the receiver. Required with every O(generator) but V(simulated).
    type: int
  source_port:
    description:
      - Port of M(fastpath.bench.traffic_source) at O(server).
    type: int
  bind:
    description:
      - Address that is sent from.
    type: str
  frame:
    description:
      - Bytes of an Ethernet frame with its FCS, such as V(64), or V(imix), which is 7 frames of 64 bytes to 4 of 594
        and 1 of 1518.
      - The smallest is 62 over IPv4 and 82 over IPv6.
    type: str
    default: "64"
  recipe:
    description:
      - A mix of one's own, frame bytes to parts. O(frame) is then its name.
    type: dict
  parallel:
    description:
      - Streams for each frame size. Each is a process, with V(testpmd) a queue, with V(trex) a stream of its one core.
    type: int
    default: 1
  flows:
    description:
      - Source ports of each stream with O(generator=flow). The others send from one port for each stream.
    type: int
    default: 1
  trex_dir:
    description:
      - The folder of TRex on this host, that of its C(t-rex-64), for O(generator=trex).
    type: path
    default: /opt/trex
  algorithm:
    description:
      - V(mlrsearch), V(rfc2544) or V(binary).
      - With V(rfc2544) and V(binary), O(goals) are by default one goal without loss, and O(trial_s) is how long a
        trial takes.
    type: str
    choices: [mlrsearch, rfc2544, binary]
    default: mlrsearch
  goals:
    description:
      - The goals. By default NDR with a loss ratio of 0 and PDR with one of 0.005.
    type: list
    elements: dict
    suboptions:
      name:
        description: Name of the goal.
        type: str
        required: true
      loss_ratio:
        description: Part of the packets that may be lost.
        type: float
        default: 0.0
      exceed_ratio:
        description: Part of the trials that may lose more, so that a rare disturbance does not decide.
        type: float
        default: 0.5
      width:
        description: How close the bounds must be, as a part of the upper one.
        type: float
        default: 0.005
      initial_trial_s:
        description: Seconds of the shortest trials.
        type: float
        default: 1.0
      final_trial_s:
        description: Seconds of the trials that decide.
        type: float
        default: 1.0
      duration_sum_s:
        description: Seconds of trials at one load that are enough to decide on it.
        type: float
        default: 9.0
      preceding_targets:
        description: How many coarser searches come before.
        type: int
        default: 2
      expansion_coefficient:
        description: By what an interval grows that holds no bound.
        type: int
        default: 2
  trial_s:
    description:
      - Seconds of a trial with O(algorithm=rfc2544) and O(algorithm=binary). With less than 60 the result does not
        comply with RFC 2544 unconditionally, and says so.
    type: float
    default: 60.0
  max_load_pps:
    description:
      - The highest load, packets per second. Without it, what the generator sends when nothing holds it back.
    type: float
  min_load_pps:
    description:
      - The lowest load. Without it, a thousandth of the highest.
    type: float
  search_limit_s:
    description:
      - Seconds after which the search ends with what it has.
    type: float
    default: 1200.0
  validation_s:
    description:
      - Seconds of a last trial at the first goal's lower bound. It stands beside the result. V(0) leaves it out.
    type: float
    default: 60.0
  latency_s:
    description:
      - Seconds for which round-trip times are measured at each of 0, 10, 50 and 90 % of the last goal's throughput,
        by ping along the same path. A direction that is not searched is without load. V(0) leaves it out.
    type: float
    default: 0.0
  trial_retries:
    description:
      - How often a trial without a usable result is repeated. The last trial of all may stay without one.
    type: int
    default: 2
  state_command:
    description:
      - A command that is run on the host after each trial. When it fails, what should have held did not, and the
        trial does not count.
    type: list
    elements: str
  spool_dir:
    description:
      - Folder on the host where each trial is written as C(search-<number>.json) as soon as it is finished.
    type: path
  simulated:
    description:
      - What is simulated with O(generator=simulated). C(rate_pps) is forwarded, C(queue_packets) are kept; for
        C(stall_s) each C(stall_every_s) nothing is. C(generator_pps) can be sent, and C(seed) makes it the same each
        time.
    type: dict
    default: {}
attributes:
  check_mode:
    description: The options are checked; no traffic is sent, and RV(search_result) is null.
    support: full
  diff_mode:
    description: It changes nothing on the host.
    support: none
notes:
  - With O(direction=both) the load of a trial is that of one direction, and the trial's loss that of both together.
seealso:
  - module: fastpath.bench.traffic_sink
  - module: fastpath.bench.traffic_source
"""

EXAMPLES = r"""
- name: Count on the server
  fastpath.bench.traffic_sink:
    bind_addresses: [192.0.2.10]
  delegate_to: server
  register: sink

- name: Search NDR and PDR with small packets
  fastpath.bench.throughput_search:
    server: 192.0.2.10
    port: "{{ sink.port }}"
    frame: 64
    parallel: 2

- name: Throughput as RFC 2544 has it
  fastpath.bench.throughput_search:
    server: 192.0.2.10
    port: "{{ sink.port }}"
    frame: 1518
    algorithm: rfc2544
"""

RETURN = r"""
search_result:
  description: What was found. Also returned when the search failed, with the trials up to then.
  returned: always
  type: dict
  contains:
    status:
      description: V(ok) or V(failed).
      type: str
    code:
      description: A short stable word for what went wrong, such as V(direction_dead) or V(search_limit).
      type: str
    reason:
      description: What went wrong.
      type: str
    report:
      description:
        - What RFC 9971 wants in a test report besides the results, such as the traffic profile, the attributes of
          the goals, the range of loads, and how loss is computed.
      type: dict
    goals:
      description:
        - For each goal its attributes and what was found, with C(relevant_lower_bound_pps),
          C(relevant_upper_bound_pps), C(conditional_throughput_pps), C(conditional_throughput_l2_bps), C(regular),
          C(at_least), C(limited_by) and C(text).
      type: list
      elements: dict
    validation:
      description: The last trial, with C(held) and C(text).
      type: dict
    latency:
      description: Round-trip times at parts of the last goal's throughput, with C(part), C(load_pps) and those of ping.
      type: list
      elements: dict
    search:
      description: How long it took, with C(search_s), C(total_s), C(trials), C(traffic_s) and C(overhead_s_mean).
      type: dict
    trials:
      description: Each trial with its verdict, counts and loss ratio.
      type: list
      elements: dict
"""

import contextlib
import typing as t

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._search import call, senders
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.runner import stop_on_signal


def argument_spec() -> dict[str, t.Any]:
    goal = {
        "name": {"type": "str", "required": True},
        "loss_ratio": {"type": "float", "default": 0.0},
        "exceed_ratio": {"type": "float", "default": 0.5},
        "width": {"type": "float", "default": 0.005},
        "initial_trial_s": {"type": "float", "default": 1.0},
        "final_trial_s": {"type": "float", "default": 1.0},
        "duration_sum_s": {"type": "float", "default": 9.0},
        "preceding_targets": {"type": "int", "default": 2},
        "expansion_coefficient": {"type": "int", "default": 2},
    }
    return {
        "generator": {"type": "str", "choices": [*senders.NAMES, "simulated"], "default": "iperf2"},
        "direction": {"type": "str", "choices": list(call.DIRECTIONS), "default": "forward"},
        "server": {"type": "str"},
        "port": {"type": "int"},
        "source_port": {"type": "int"},
        "bind": {"type": "str"},
        "frame": {"type": "str", "default": "64"},
        "recipe": {"type": "dict"},
        "parallel": {"type": "int", "default": 1},
        "flows": {"type": "int", "default": 1},
        "trex_dir": {"type": "path", "default": "/opt/trex"},
        "algorithm": {"type": "str", "choices": ["mlrsearch", "rfc2544", "binary"], "default": "mlrsearch"},
        "goals": {"type": "list", "elements": "dict", "options": goal},
        "trial_s": {"type": "float", "default": 60.0},
        "max_load_pps": {"type": "float"},
        "min_load_pps": {"type": "float"},
        "search_limit_s": {"type": "float", "default": 1200.0},
        "validation_s": {"type": "float", "default": 60.0},
        "latency_s": {"type": "float", "default": 0.0},
        "trial_retries": {"type": "int", "default": 2},
        "state_command": {"type": "list", "elements": "str"},
        "spool_dir": {"type": "path"},
        "simulated": {"type": "dict", "default": {}},
    }


def main() -> None:
    module = AnsibleModule(
        argument_spec=argument_spec(),
        required_if=[("generator", name, ("server", "port")) for name in senders.NAMES],
        supports_check_mode=True,
    )
    stop_on_signal()
    try:
        with contextlib.ExitStack() as open_things:
            wish = call.Call.from_params(module.params)
            result = None if module.check_mode else wish.run(open_things)
    except BenchError as error:
        module.fail_json(**error.as_result())
    if result is not None and result["status"] != "ok":
        module.fail_json(msg=result["reason"], code=result["code"], search_result=result)
    module.exit_json(changed=False, search_result=result)


if __name__ == "__main__":
    main()
