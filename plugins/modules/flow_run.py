#!/usr/bin/python
# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: flow_run
short_description: Send UDP from many flows, each new or each established
version_added: 0.1.0
description:
  - Runs trials with many flows of UDP one after the other in one call. A flow is an own pair of source address and
    port, as in RFC 4814 and RFC 9693. M(fastpath.bench.traffic_sink) on the server counts what arrives.
  - With O(trials[].mode=new) each packet opens a flow, which is what limits a NAT. As each flow has one packet, what
    arrived is the number of flows that were opened. With O(trials[].mode=established) all flows are opened first and
    proven to pass, and then used over and over.
  - Frames are made before the clock runs and are sent many at a call by one thread. When that is the limit, the
    trial has the finding C(generator_limited), and its figure is a lower bound of what the device does.
  - A trial that fails is a record with its reason and does not stop the others.
author:
  - fastpath.bench contributors (@fastpath)
options:
  trials:
    description:
      - The trials.
    type: list
    elements: dict
    required: true
    suboptions:
      id:
        description:
          - Name of the trial, also of its file in O(spool_dir).
        type: str
        required: true
      server:
        description:
          - Address at which the sink counts.
        type: str
      port:
        description:
          - Port of the sink, of UDP and of TCP, by which it tells its count.
        type: int
      bind:
        description:
          - Taken for O(trials[].source) when that is not given.
        type: str
      direction:
        description:
          - From the client to the server.
        type: str
        choices: [forward]
        default: forward
      mode:
        description:
          - What each packet is.
        type: str
        choices: [new, established]
        default: new
      flows:
        description:
          - Number of flows, at most 64512 for each source address. Without it, what O(trials[].rate_pps) opens in
            O(trials[].duration_s). A trial with V(new) ends when all are opened.
        type: int
      source:
        description:
          - First source address. Without it, the one that the kernel would take.
        type: str
      sources:
        description:
          - Number of source addresses, counted up from the first. They need not be addresses of the host.
        type: int
        default: 1
      rate_pps:
        description:
          - Packets each second. V(0) is as fast as the sender can.
        type: float
        default: 0.0
      ramp_pps:
        description:
          - Packets each second while the flows of V(established) are opened. V(0) is as fast as the sender can.
        type: float
        default: 10000.0
      payload_bytes:
        description:
          - Bytes of UDP payload, 18 to 1472.
        type: int
        default: 18
      shuffle_seed:
        description:
          - With it, the flows come in a random order, which is the same for the same seed.
        type: int
      duration_s:
        description:
          - Seconds that count, at most.
        type: float
        default: 10.0
      warmup_s:
        description:
          - Seconds of traffic of V(established) before those that count.
        type: float
        default: 0.0
      interval_s:
        description:
          - Taken for the sake of other generators.
        type: float
        default: 0.5
  spool_dir:
    description:
      - Folder on the host where each trial is written as C(<id>.json) as soon as it is finished.
    type: path
  time_limit_s:
    description:
      - Taken for the sake of other generators. Each wait has a limit of its own.
    type: float
    default: 60.0
attributes:
  check_mode:
    description: The options are checked; no traffic is sent and RV(trials) is empty.
    support: full
  diff_mode:
    description: It changes nothing on the host.
    support: none
requirements:
  - root
notes:
  - IPv4 only.
  - The question for the count is one connection of TCP, which a NAT on the way keeps too.
seealso:
  - module: fastpath.bench.traffic_sink
  - module: fastpath.bench.vpp_nat44
  - module: fastpath.bench.kernel_nat
"""

EXAMPLES = r"""
- name: Fifty thousand new flows
  fastpath.bench.flow_run:
    trials:
      - id: new
        server: 192.0.2.10
        port: 20001
        flows: 50000
        rate_pps: 20000
"""

RETURN = r"""
trials:
  description:
    - One record for each trial, in the form of M(fastpath.bench.iperf_run), with C(metrics), C(counts), C(findings).
  returned: success
  type: list
  elements: dict
  contains:
    id:
      description: Name of the trial.
      type: str
    status:
      description: V(ok), V(failed) or V(invalid).
      type: str
    code:
      description: Why it is not ok, such as V(not_ramped), V(sink_silent), V(no_route), V(no_hop).
      type: str
    reason:
      description: The same in words, with what to do.
      type: str
    mode:
      description: The mode.
      type: str
    flows:
      description: How many flows there were to be.
      type: int
    metrics:
      description:
        - C(flow_rate_forward) (flows that were opened each second) and C(offered_flow_rate_forward) with V(new);
          C(flows_open_forward), C(forwarding_rate_forward), C(sent_packet_rate_forward), C(offered_rate_forward),
          C(frame_loss_ratio_forward), C(goodput_forward).
      type: dict
    counts:
      description: C(forward) with C(sent_packets) and C(received_packets), each counted exactly.
      type: dict
    findings:
      description: What was noticed. Codes are V(generator_limited) and V(sender_waited).
      type: list
      elements: dict
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._traffic import flow_run, planned, runner


def argument_spec() -> dict[str, t.Any]:
    return {
        "trials": {
            "type": "list",
            "elements": "dict",
            "required": True,
            "options": {"id": {"type": "str", "required": True}, **flow_run.trial_spec()},
        },
        "spool_dir": {"type": "path"},
        "time_limit_s": {"type": "float", "default": 60.0},
    }


def check_trial(trial: t.Mapping[str, t.Any], headline: str) -> None:
    """Called where a matrix is planned, on the controller: what this module would refuse later.

    :raises BenchError: an option is wrong, or the headline is none that such a trial has.
    """
    values = planned.checked_options(trial, flow_run.trial_spec(), "flow_run")
    # where it goes is settled by the plan
    made = flow_run.trial_from({**values, "port": 1, "server": values["server"] or "192.0.2.1"}, "checked")
    planned.counts(headline, flow_run.metric_names(made.mode), f"mode {made.mode}")


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    runner.stop_on_signal()
    try:
        # all are checked before the first one runs
        trials = planned.unique(flow_run.trial_from(item, item["id"]) for item in module.params["trials"])
        records: list[dict[str, t.Any]] = []
        if not module.check_mode:
            records = flow_run.run_trials(trials, spool_dir=module.params["spool_dir"])
    except BenchError as err:
        module.fail_json(**err.as_result())
    module.exit_json(changed=False, trials=records)


if __name__ == "__main__":
    main()
