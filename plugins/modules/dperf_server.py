#!/usr/bin/python
# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: dperf_server
short_description: Run dperf as the server of connections
version_added: 0.1.0
description:
  - Starts one dperf server that serves all the instances, ends it, and returns what it counted for each.
  - dperf has its network card to itself, so there is one server at a time on a host, and the instances must not differ
    in protocol, payload, addresses or tunnels.
  - It ends by itself after O(lifetime_s), also when nobody stops it.
author:
  - fastpath.bench contributors (@fastpath)
options:
  state:
    description:
      - V(started) has a server for O(instances). V(stopped) ends it and returns what it counted. V(absent) also deletes
        its files.
    type: str
    choices: [started, stopped, absent]
    default: started
  instances:
    description:
      - The trials that are served, each with the options of its trial.
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description:
          - Name of the instance.
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
          - The only address of the servers. Either this or O(instances[].servers).
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
          - The only address of the clients. Either this or O(instances[].clients).
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
          - Seconds in which the load grows, 10 to 600. They do not count. Without it, O(instances[].warmup_s), at least
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
  listen_s:
    description:
      - Seconds within which the server must be up.
    type: float
    default: 60.0
  lifetime_s:
    description:
      - Seconds after which it ends by itself.
    type: float
    default: 3600.0
  partial:
    description:
      - At V(started), V(true) serves what can be served and tells of the others in RV(refused). V(false) fails if one
        cannot be served.
    type: bool
    default: false
attributes:
  check_mode:
    support: full
    description: It tells what it would start or end.
  diff_mode:
    support: full
    description: The server's configuration is shown.
notes:
  - The server is up before its gateway has answered, as on a direct cable the gateway is the client. It waits for it
    for a minute and a half; give C(gateway_mac) where the client comes later than that.
seealso:
  - module: fastpath.bench.dperf_run
"""

EXAMPLES = r"""
- name: A server for one trial
  fastpath.bench.dperf_server:
    instances:
      - name: cps
        cps: 50000
        bind: 10.9.0.1
        server: 10.9.1.1
        listen_count: 4

- name: End it and read what it counted
  fastpath.bench.dperf_server:
    state: stopped
    instances:
      - name: cps
        cps: 50000
        bind: 10.9.0.1
        server: 10.9.1.1
        listen_count: 4
  register: result
"""

RETURN = r"""
refused:
  description: The instances that are not served, each with C(code) and C(reason).
  returned: when O(state=started)
  type: dict
reports:
  description:
    - By instance, C(status), C(code), C(reason), C(metrics), C(intervals), C(counts), C(findings) and C(raw), as
      M(fastpath.bench.dperf_run) has them, counted by the server.
    - An instance whose client never came has the status V(failed) and the code V(no_report).
  returned: when O(state=stopped) and not in check mode
  type: dict
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._traffic import dperf
from ansible_collections.fastpath.bench.plugins.module_utils._traffic import dperf_options as options


def argument_spec() -> dict[str, t.Any]:
    return {
        "state": {"type": "str", "choices": ["started", "stopped", "absent"], "default": "started"},
        "instances": {
            "type": "list",
            "elements": "dict",
            "required": True,
            "options": {"name": {"type": "str", "required": True}, **options.trial_spec()},
        },
        **options.end_spec(),
        "listen_s": {"type": "float", "default": 60.0},
        "lifetime_s": {"type": "float", "default": 3600.0},
        "partial": {"type": "bool", "default": False},
    }


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    params = module.params
    try:
        instances = options.trials_from(params["instances"], "name")
        if params["state"] == "started":
            result = dperf.start_server(
                instances,
                options.end_from(params),
                lifetime_s=params["lifetime_s"],
                listen_s=params["listen_s"],
                check_mode=module.check_mode,
                partial=params["partial"],
            )
        else:
            reports = params["state"] == "stopped"
            result = dperf.stop_server(instances, check_mode=module.check_mode, reports=reports)
    except BenchError as err:
        module.fail_json(**err.as_result())
    module.exit_json(**result)


if __name__ == "__main__":
    main()
