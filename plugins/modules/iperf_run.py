#!/usr/bin/python
# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: iperf_run
short_description: Measure throughput with iperf as the client
version_added: 0.1.0
description:
  - Runs trials with iperf2 or iperf3 one after the other in one call, and returns what was counted with unit, layer,
    direction and whether it was sent or received.
  - What is not known is null, never 0. iperf2's TCP client does not know what arrived; for that read the report of the
    server with M(fastpath.bench.iperf_server).
  - A trial that fails is a record with its reason and does not stop the others. A report that contradicts itself, lacks
    a stream or ends early is a failed trial, not a smaller number.
  - Only a set-up that failed before any data moved is tried again.
author:
  - fastpath.bench contributors (@fastpath)
options:
  trials:
    description:
      - The trials. Either this or O(server) must be given.
    type: list
    elements: dict
    suboptions:
      id:
        description:
          - Name of the trial, also of its file in O(spool_dir).
        type: str
        required: true
      server: &server
        description:
          - Address or name of the server. An IPv6 address makes it an IPv6 test.
        type: str
      port: &port
        description:
          - Port of the server. Without it the tool's own, 5001 for iperf2 and 5201 for iperf3.
        type: int
      tool: &tool
        description:
          - The tool. iperf2 is the program C(iperf), 2.0.5 to 2.2.x; iperf3 the program C(iperf3), from 3.1.
        type: str
        choices: [iperf2, iperf3]
        default: iperf2
      protocol: &protocol
        description:
          - Transport protocol.
        type: str
        choices: [tcp, udp]
        default: tcp
      direction: &direction
        description:
          - V(forward) is from client to server, V(reverse) from server to client, V(both) is both at once over the
            same connections.
          - iperf2 has V(reverse) and V(both) since 2.1.0, iperf3 has V(both) since 3.7.
        type: str
        choices: [forward, reverse, both]
        default: forward
      parallel: &parallel
        description:
          - Number of streams. All of them must connect, or the trial fails.
        type: int
        default: 1
      port_per_stream: &port_per_stream
        description:
          - Gives each stream a port of its own on the server, C(port) and those after it. The server must do likewise.
          - iperf 2.1.8 loses a stream now and then when several UDP streams with direction V(reverse) or V(both)
            start on one port at once. iperf2 only, since 2.1.5.
        type: bool
        default: false
      length_bytes: &length_bytes
        description:
          - Bytes of one write for TCP, of one datagram's payload for UDP.
        type: int
      mss_bytes: &mss_bytes
        description:
          - Maximum segment size. TCP only.
        type: int
      window_bytes: &window_bytes
        description:
          - Size of the socket buffers.
        type: int
      rate: &rate
        description:
          - What is sent in each direction, by all streams together.
          - Bit/s of payload such as V(2500000), V(10M) or V(1.5G), or datagrams per second such as V(5000pps). V(0)
            is as fast as the sender can.
        type: str
        default: "0"
      duration_s: &duration_s
        description:
          - Seconds that count. A whole number of C(interval_s).
        type: float
        default: 10.0
      warmup_s: &warmup_s
        description:
          - Seconds of traffic before, that do not count. A whole number of C(interval_s).
          - With V(0) the tool's final rows count, otherwise the intervals after the warm-up.
        type: float
        default: 0.0
      interval_s: &interval_s
        description:
          - Seconds of one interval.
        type: float
        default: 0.5
      bind: &bind
        description:
          - Address on the client that it sends from.
        type: str
      tos: &tos
        description:
          - Value of the type-of-service byte. A DSCP times four.
        type: int
      congestion_control: &congestion_control
        description:
          - TCP congestion control of the client.
        type: str
      link_speed_bps: &link_speed_bps
        description:
          - Speed of the slowest link on the path. A figure above it makes the trial invalid.
        type: int
  server: *server
  port: *port
  tool: *tool
  protocol: *protocol
  direction: *direction
  parallel: *parallel
  port_per_stream: *port_per_stream
  length_bytes: *length_bytes
  mss_bytes: *mss_bytes
  window_bytes: *window_bytes
  rate: *rate
  duration_s: *duration_s
  warmup_s: *warmup_s
  interval_s: *interval_s
  bind: *bind
  tos: *tos
  congestion_control: *congestion_control
  link_speed_bps: *link_speed_bps
  repetitions:
    description:
      - How often the one trial of O(server) is run. Their names are C(trial-1) and so on.
    type: int
    default: 1
  spool_dir:
    description:
      - Folder on the host where each trial is written as C(<id>.json) as soon as it is finished. It is made if needed.
      - A full disk is a finding of the trial; its result is returned all the same.
    type: path
  time_limit_s:
    description:
      - Seconds that a trial may take beyond its traffic. Then the tool is ended and the trial has failed.
    type: float
    default: 15.0
  setup_retries:
    description:
      - How often a refused or busy server is tried again. The tries are counted in the result.
    type: int
    default: 2
attributes:
  check_mode:
    description: The options are checked; no traffic is sent and RV(trials) is empty.
    support: full
  diff_mode:
    description: It changes nothing on the host.
    support: none
notes:
  - iperf3 takes whole seconds. What it runs longer than C(warmup_s) plus C(duration_s) does not count.
seealso:
  - module: fastpath.bench.iperf_server
"""

EXAMPLES = r"""
- name: One minute of TCP over four streams to a server that runs already
  fastpath.bench.iperf_run:
    server: 192.0.2.10
    parallel: 4
    duration_s: 60
    warmup_s: 2
    interval_s: 1

- name: Two trials, each kept on the host as soon as it is finished
  fastpath.bench.iperf_run:
    spool_dir: /var/lib/fastpath-bench/spool/today
    trials:
      - id: small-packets
        server: 192.0.2.10
        port: 20001
        protocol: udp
        length_bytes: 64
        rate: 100000pps
        duration_s: 5
        warmup_s: 1
      - id: both-ways
        server: 192.0.2.10
        port: 20002
        direction: both
        duration_s: 5
        warmup_s: 1
"""

RETURN = r"""
trials:
  description: One record for each trial, in the order that was asked for.
  returned: always
  type: list
  elements: dict
  contains:
    id:
      description: Name of the trial.
      type: str
    generator:
      description: The tool that was asked for.
      type: str
    status:
      description: V(ok), V(failed), or V(invalid) when the figure is not plausible.
      type: str
    code:
      description: A short stable word for what went wrong, such as V(connection_refused) or V(ended_early).
      type: str
    reason:
      description: What went wrong.
      type: str
    started:
      description: When the tool was started, seconds since the epoch on the host's clock.
      type: float
    ended:
      description: When it had ended.
      type: float
    window:
      description: C(start) and C(end) of the part that was counted, on the host's clock.
      type: dict
    duration_s:
      description: Seconds that were to count.
      type: float
    tries:
      description: How often the set-up was tried.
      type: int
    tool:
      description: C(name), C(version) and C(command).
      type: dict
    metrics:
      description:
        - Name to C(value), C(unit), C(layer), C(direction), C(kind) and C(peak), the highest interval.
        - Names are C(goodput), C(sent_rate), C(retransmits), and for UDP C(offered_rate), C(sent_packet_rate),
          C(forwarding_rate), C(tool_loss_ratio), C(frame_loss_ratio), C(jitter) and C(out_of_order), followed by
          C(_forward), C(_reverse) or C(_total).
      type: dict
    intervals:
      description:
        - The intervals that were counted, C(direction), C(start_s), C(end_s), C(bytes), C(rate_bps), C(packets),
          C(lost) and C(retransmits). Those of the receiver where this end knows them.
      type: list
      elements: dict
    counts:
      description:
        - By direction, datagrams and bytes over the whole run, warm-up included, by which the ends can be compared.
      type: dict
    findings:
      description: What one should know, C(code), C(severity), C(evidence) and C(remedy).
      type: list
      elements: dict
    raw:
      description: The tool's output as it came.
      type: dict
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._traffic import iperf, options, outcome, planned, runner


def argument_spec() -> dict[str, t.Any]:
    trial = options.trial_spec()
    return {
        **trial,
        "trials": {
            "type": "list",
            "elements": "dict",
            "options": {"id": {"type": "str", "required": True}, **trial},
        },
        "repetitions": {"type": "int", "default": 1},
        "spool_dir": {"type": "path"},
        "time_limit_s": {"type": "float", "default": 15.0},
        "setup_retries": {"type": "int", "default": 2},
    }


def wanted(params: dict[str, t.Any]) -> list[options.TrialOptions]:
    """The trials that the parameters ask for, all checked before the first one runs."""
    limit = params["time_limit_s"]
    if params["trials"] is not None:
        return planned.unique(options.from_params(trial, extra_s=limit) for trial in params["trials"])
    names = [f"trial-{number + 1}" for number in range(params["repetitions"])]
    return [options.from_params(params, id=name, extra_s=limit) for name in names]


def check_trial(trial: t.Mapping[str, t.Any], headline: str) -> None:
    """Called where a matrix is planned, on the controller: what this module would refuse later.

    :raises BenchError: an option is wrong, or the headline is none that such a trial has.
    """
    values = planned.checked_options(trial, options.trial_spec(), "iperf_run")
    try:
        made = options.from_params(values, id="checked")
    except BenchError as error:
        # the trial has no name yet, so what tells where it is is the option alone
        option = (error.where or "").rpartition(": ")[2]
        raise BenchError(error.what, where=option or None, remedy=error.remedy, code=error.code) from error
    planned.counts(headline, outcome.metric_names(made), f"protocol {made.protocol}")


def main() -> None:
    module = AnsibleModule(
        argument_spec=argument_spec(),
        required_one_of=[("trials", "server")],
        mutually_exclusive=[("trials", "server")],
        supports_check_mode=True,
    )
    runner.stop_on_signal()
    try:
        trials = wanted(module.params)
        records = (
            []
            if module.check_mode
            else iperf.run_trials(trials, spool_dir=module.params["spool_dir"], retries=module.params["setup_retries"])
        )
    except BenchError as err:
        module.fail_json(**err.as_result())
    if module.params["trials"] is None and records and all(record["status"] != "ok" for record in records):
        module.fail_json(msg=records[-1]["reason"], code=records[-1]["code"], trials=records)
    module.exit_json(changed=False, trials=records)


if __name__ == "__main__":
    main()
