#!/usr/bin/python
# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: iperf_server
short_description: Start, stop and read a pool of iperf servers
version_added: 0.1.0
description:
  - Runs iperf servers as systemd units, many in one call. Each serves one trial on a port of its own, as iperf 2.1.8's
    UDP server was seen to die after its second client.
  - When it returns from V(started), each server listens and the socket belongs to its unit.
  - When it returns from V(stopped), the servers are gone and their reports are returned with what they counted.
author:
  - fastpath.bench contributors (@fastpath)
options:
  state:
    description:
      - V(started) has all O(instances) listening. One that runs with the same options is left alone.
      - V(stopped) waits for the last rows, within O(finish_s), stops them and reads their reports.
      - V(absent) stops them and deletes their files.
    type: str
    choices: [started, stopped, absent]
    default: started
  instances:
    description:
      - The servers. A trial of M(fastpath.bench.iperf_run) with a C(name) is an instance; its options tell how the
        report has to be judged.
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description:
          - Name of the instance.
        type: str
        required: true
      listen:
        description:
          - Address that the server listens on. Without it, on all.
        type: str
      server:
        description:
          - Address that the client connects to. With an IPv6 address the server takes IPv6.
        type: str
      port:
        description:
          - Port of the server. Without it the tool's own, 5001 for iperf2 and 5201 for iperf3.
        type: int
      tool:
        description:
          - The tool. iperf2 is the program C(iperf), 2.0.5 to 2.2.x; iperf3 the program C(iperf3), from 3.1.
        type: str
        choices: [iperf2, iperf3]
        default: iperf2
      protocol:
        description:
          - Transport protocol.
        type: str
        choices: [tcp, udp]
        default: tcp
      direction:
        description:
          - V(forward) is from client to server, V(reverse) from server to client, V(both) is both at once over the
            same connections.
          - iperf2 has V(reverse) and V(both) since 2.1.0, iperf3 has V(both) since 3.7.
        type: str
        choices: [forward, reverse, both]
        default: forward
      parallel:
        description:
          - Number of streams. All of them must connect, or the trial fails.
        type: int
        default: 1
      port_per_stream:
        description:
          - Gives each stream a port of its own on the server, C(port) and those after it. The server must do likewise.
          - iperf 2.1.8 loses a stream now and then when several UDP streams with direction V(reverse) or V(both)
            start on one port at once. iperf2 only, since 2.1.5.
        type: bool
        default: false
      length_bytes:
        description:
          - Bytes of one write for TCP, of one datagram's payload for UDP.
        type: int
      mss_bytes:
        description:
          - Maximum segment size. TCP only.
        type: int
      window_bytes:
        description:
          - Size of the socket buffers.
        type: int
      rate:
        description:
          - What is sent in each direction, by all streams together.
          - Bit/s of payload such as V(2500000), V(10M) or V(1.5G), or datagrams per second such as V(5000pps). V(0)
            is as fast as the sender can.
        type: str
        default: "0"
      duration_s:
        description:
          - Seconds that count. A whole number of C(interval_s).
        type: float
        default: 10.0
      warmup_s:
        description:
          - Seconds of traffic before, that do not count. A whole number of C(interval_s).
          - With V(0) the tool's final rows count, otherwise the intervals after the warm-up.
        type: float
        default: 0.0
      interval_s:
        description:
          - Seconds of one interval.
        type: float
        default: 0.5
      bind:
        description:
          - Address on the client that it sends from. Not used here.
        type: str
      tos:
        description:
          - Value of the type-of-service byte. A DSCP times four.
        type: int
      congestion_control:
        description:
          - TCP congestion control of the client.
        type: str
      link_speed_bps:
        description:
          - Speed of the slowest link on the path. A figure above it makes the trial invalid.
        type: int
  listen_s:
    description:
      - Seconds within which the servers must listen.
    type: float
    default: 5.0
  partial:
    description:
      - At V(started), V(true) serves what can be served and tells of the others in RV(refused). V(false) fails if one
        cannot be served, and then none is.
    type: bool
    default: false
  finish_s:
    description:
      - Seconds to wait at V(stopped) for the last rows of a server that a client used.
    type: float
    default: 3.0
attributes:
  check_mode:
    description: Tells what would be started or stopped, and refuses busy ports. No report is read.
    support: full
  diff_mode:
    description: Shows which instances run before and after.
    support: full
requirements:
  - root
  - systemd 248 or newer
  - The unit C(fastpath-iperf@.service), which the role P(fastpath.bench.iperf#role) installs
seealso:
  - module: fastpath.bench.iperf_run
"""

EXAMPLES = r"""
- name: Two servers, both listening when the task is over
  fastpath.bench.iperf_server:
    instances:
      - name: bulk
        port: 20001
        duration_s: 5
        warmup_s: 1
      - name: small
        port: 20002
        protocol: udp
        duration_s: 5
        warmup_s: 1

- name: Stop them and read what they counted
  fastpath.bench.iperf_server:
    state: stopped
    instances:
      - name: bulk
        port: 20001
        duration_s: 5
        warmup_s: 1
      - name: small
        port: 20002
        protocol: udp
        duration_s: 5
        warmup_s: 1
  register: result
"""

RETURN = r"""
refused:
  description: With O(partial), by instance that is not served, C(code) and C(reason).
  returned: when O(state=started)
  type: dict
reports:
  description:
    - By instance, C(status), C(code), C(reason), C(metrics), C(intervals), C(counts), C(findings) and C(raw), as
      M(fastpath.bench.iperf_run) has them, counted by the server.
    - An instance that no client reached has the status V(failed) and the code V(no_report).
  returned: when O(state=stopped) and not in check mode
  type: dict
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._traffic import options, server


def argument_spec() -> dict[str, t.Any]:
    return {
        "state": {"type": "str", "choices": ["started", "stopped", "absent"], "default": "started"},
        "instances": {
            "type": "list",
            "elements": "dict",
            "required": True,
            "options": {
                "name": {"type": "str", "required": True},
                "listen": {"type": "str"},
                **options.trial_spec(),
            },
        },
        "listen_s": {"type": "float", "default": 5.0},
        "finish_s": {"type": "float", "default": 3.0},
        "partial": {"type": "bool", "default": False},
    }


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    try:
        result = server.Pool(server.Systemd()).ensure(
            module.params["state"],
            [server.from_params(item) for item in module.params["instances"]],
            listen_s=module.params["listen_s"],
            finish_s=module.params["finish_s"],
            check=module.check_mode,
            partial=module.params["partial"],
        )
    except BenchError as err:
        module.fail_json(**err.as_result())
    module.exit_json(**result)


if __name__ == "__main__":
    main()
