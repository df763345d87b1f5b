#!/usr/bin/python
# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: dperf_run
short_description: Make connections with dperf as the client
version_added: 0.1.0
description:
  - Runs trials with dperf one after the other in one call, against a server that M(fastpath.bench.dperf_server)
    started, and returns connections, requests, frames and bits for each second, with what they mean in words and codes.
  - The configuration is made from the trial and checked before dperf takes the network card.
  - What counts are the seconds after the slow start, and all of them. dperf's sums over the whole run count nowhere as
    rates.
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
      load:
        description:
          - What the load is about. V(cps) opens and ends connections at a rate; V(concurrent) holds connections;
            V(throughput) sends requests over held connections one after the other; V(flood) sends without waiting for
            answers.
        type: str
        choices: [cps, concurrent, throughput, flood]
        default: cps
      protocol:
        description:
          - V(tcp) carries one small request and its answer, V(http) is HTTP/1.1, V(udp) a datagram and its answer.
        type: str
        choices: [tcp, udp, http]
        default: tcp
      direction:
        description:
          - Connections go from the client to the server; both directions are counted.
        type: str
        choices: [forward]
        default: forward
      server:
        description:
          - The only address of the servers. Either this or O(trials[].servers).
        type: str
      servers:
        description:
          - The servers' addresses, one range for each network card, in their order.
        type: list
        elements: dict
        suboptions: &range
          start:
            description:
              - The first address.
            type: str
            required: true
          count:
            description:
              - How many, within the last byte.
            type: int
            default: 1
      bind:
        description:
          - The only address of the clients. Either this or O(trials[].clients).
        type: str
      clients:
        description:
          - The clients' addresses, one range for each network card, in their order. No two of them may end in the same
            two bytes.
        type: list
        elements: dict
        suboptions: *range
      clients_seen:
        description:
          - The clients as the server sees them, such as the pool of a NAT in between. The server answers no others.
        type: list
        elements: dict
        suboptions: *range
      port:
        description:
          - First port of the servers.
        type: int
        default: 80
      listen_count:
        description:
          - Number of ports of the servers.
        type: int
        default: 1
      client_ports:
        description:
          - First and last port of the clients.
        type: list
        elements: int
        default: [1, 65535]
      cps:
        description:
          - New connections each second, of all CPUs together.
        type: int
      concurrent:
        description:
          - Connections that are held, of all CPUs together.
        type: int
      keepalive:
        description:
          - Time between two requests of a connection, such as V(10us), V(1ms) or V(60s).
        type: str
      payload_bytes:
        description:
          - Bytes of payload of a request and of an answer, without headers.
        type: int
      vlan:
        description:
          - VLAN of all frames.
        type: int
      vxlan:
        description:
          - All is sent inside a VXLAN, as the client sees it. The server has it the other way round.
        type: dict
        suboptions:
          vni:
            description:
              - Identifier of the VXLAN.
            type: int
            required: true
          inner_source_mac:
            description:
              - The client's MAC address inside.
            type: str
            required: true
          inner_destination_mac:
            description:
              - The server's MAC address inside.
            type: str
            required: true
          local:
            description:
              - The client's tunnel ends, one for each CPU of a network card.
            type: dict
            required: true
            suboptions: *range
          remote:
            description:
              - The server's tunnel ends, one for each CPU of a network card.
            type: dict
            required: true
            suboptions: *range
      rss:
        description:
          - The network card spreads packets over the CPUs. Without it, each CPU needs a server address of its own.
        type: bool
        default: false
      slow_start_s:
        description:
          - Seconds in which the load grows, 10 to 600. They do not count. Without it, O(trials[].warmup_s), at least
            10.
        type: int
      warmup_s:
        description:
          - Seconds before those that count.
        type: float
        default: 0.0
      duration_s:
        description:
          - Seconds that count. Whole ones.
        type: float
        default: 10.0
      interval_s:
        description:
          - Taken for the sake of other generators. dperf counts in seconds.
        type: float
        default: 1.0
      retransmit_timeout_s:
        description:
          - Seconds after which a segment is sent again.
        type: int
        default: 2
      tx_burst:
        description:
          - Packets that are handed to the network card at once, at most.
        type: int
      launch_num:
        description:
          - Connections that are begun at once. A smaller number is a smoother load.
        type: int
  program:
    description:
      - dperf itself. Without it, what the role P(fastpath.bench.dperf#role) wrote down on the host.
    type: path
  nics:
    description:
      - The network cards that dperf takes, in order. Without it, as O(program).
    type: list
    elements: dict
    suboptions:
      pci:
        description:
          - PCI address.
        type: str
        required: true
      address:
        description:
          - The address that dperf answers ARP and ping for on this card.
        type: str
        required: true
      gateway:
        description:
          - The next hop, or the other end's address on a direct cable.
        type: str
        required: true
      gateway_mac:
        description:
          - MAC address of the next hop. Without it, dperf asks by ARP and does not start before the answer.
        type: str
  cpus:
    description:
      - The CPUs of dperf, such as V(2-5). A multiple of the number of O(nics). Without it, as O(program).
    type: str
  socket_mem_mb:
    description:
      - MiB of hugepages from each NUMA node. Two dperf on one host need it, each its own part.
    type: list
    elements: int
  check_hardware:
    description:
      - Whether drivers and hugepages are looked at before the start. V(false) is for a dperf that opens virtual
        devices. Without it, what the role noted, or else V(true).
    type: bool
  spool_dir:
    description:
      - Folder on the host where each trial is written as C(<id>.json) as soon as it is finished.
    type: path
  time_limit_s:
    description:
      - Seconds that a trial may take beyond its traffic and the two minutes that dperf may need to start.
    type: float
    default: 30.0
attributes:
  check_mode:
    description: The options are checked; no traffic is sent and RV(trials) is empty.
    support: full
  diff_mode:
    description: It changes nothing on the host.
    support: none
notes:
  - Bits and frames are of layer 2 as the driver hands them over, without padding and FCS.
  - dperf has the network card to itself, puts a request in one packet, and does no routing.
seealso:
  - module: fastpath.bench.dperf_server
"""

EXAMPLES = r"""
- name: Fifty thousand new connections each second, for one minute
  fastpath.bench.dperf_run:
    trials:
      - id: cps
        cps: 50000
        bind: 10.9.0.1
        server: 10.9.1.1
        listen_count: 4
        slow_start_s: 30
        duration_s: 60

- name: A hundred thousand connections that are held, each with a request every ten seconds
  fastpath.bench.dperf_run:
    program: /opt/dperf/bin/dperf
    nics:
      - {pci: "0000:13:00.0", address: 10.9.0.100, gateway: 10.9.0.254}
    cpus: "2"
    trials:
      - id: held
        load: concurrent
        protocol: http
        concurrent: 100000
        keepalive: 10s
        clients: [{start: 10.9.0.1, count: 20}]
        servers: [{start: 10.9.1.1}]
"""

RETURN = r"""
trials:
  description:
    - One record for each trial, in the form of M(fastpath.bench.iperf_run), with C(metrics), C(intervals), C(findings).
    - Metrics are C(connection_rate_forward), C(connections_open_forward), C(request_rate_forward),
      C(answer_rate_reverse), C(round_trip_forward), C(sent_frame_rate_forward), C(received_frame_rate_reverse) and so
      on.
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
      description:
        - Why it is not ok, such as V(server_not_listening), V(server_gone), V(half_open), V(one_way_traffic),
          V(gateway_unresolved), V(insufficient_sockets), V(not_enough_memory), V(port_init) or V(ended_early).
      type: str
    reason:
      description: The same in words, with what to do.
      type: str
    reading:
      description: What the counters say, one sentence each, the verdict first.
      type: list
      elements: str
    metrics:
      description: The metrics, each with C(value), C(unit), C(layer), C(direction), C(kind) and C(peak).
      type: dict
    findings:
      description:
        - What was noticed. Codes are V(closed_loop), V(open_loop), V(half_open), V(short_connections), V(resets),
          V(connection_errors), V(http_errors), V(retransmits), V(late_answers), V(target_reached),
          V(generator_limited), V(concurrent_not_reached), V(drops_sending), V(drops_receiving), V(drops_unknown) and
          V(bad_frames).
      type: list
      elements: dict
    raw:
      description: What dperf printed, and its configuration.
      type: dict
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._traffic import dperf, dperf_judge, planned, runner
from ansible_collections.fastpath.bench.plugins.module_utils._traffic import dperf_options as options


def argument_spec() -> dict[str, t.Any]:
    return {
        "trials": {
            "type": "list",
            "elements": "dict",
            "required": True,
            "options": {"id": {"type": "str", "required": True}, **options.trial_spec()},
        },
        **options.end_spec(),
        "spool_dir": {"type": "path"},
        "time_limit_s": {"type": "float", "default": 30.0},
    }


def check_trial(trial: t.Mapping[str, t.Any], headline: str) -> None:
    """Called where a matrix is planned, on the controller: what this module would refuse later.

    :raises BenchError: an option is wrong, or the headline is none that such a trial has.
    """
    load = options.load_from(planned.checked_options(trial, options.trial_spec(), "dperf_run", options.old_word))
    planned.counts(headline, dperf_judge.metric_names(load), f"protocol {load.protocol}")


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    runner.stop_on_signal()
    try:
        trials = options.trials_from(module.params["trials"], "id")
        records: list[dict[str, t.Any]] = []
        if not module.check_mode:
            side = options.end_from(module.params)
            records = dperf.run_trials(
                trials, side, spool_dir=module.params["spool_dir"], limit_s=module.params["time_limit_s"]
            )
    except BenchError as err:
        module.fail_json(**err.as_result())
    module.exit_json(changed=False, trials=records)


if __name__ == "__main__":
    main()
