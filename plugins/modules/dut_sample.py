#!/usr/bin/python
# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: dut_sample
short_description: Record CPU use and interface counters of a host while traffic runs
version_added: 0.1.0
description:
  - Records in the background, from O(state=started) to O(state=stopped), the use of each CPU by kind, the counters of
    the interfaces, the counters of the kernel's packet backlog (softnet), and packets per queue where the driver
    counts them.
  - When it is stopped it is told the windows in which traffic ran, by the clock of whoever sent the traffic, and
    reports for each window what this host did meanwhile.
  - What is reported is the difference between the first and the last sample within the window. Nothing is drawn between
    samples, as traffic begins and ends there. What is not known is null with a reason, never 0.
  - The recorder ends by itself after O(max_duration_s), also when nobody stops it.
attributes:
  check_mode:
    support: full
    description: Nothing is started, stopped or deleted. Windows are reported from what is recorded so far.
  diff_mode:
    support: none
    description: There is no state of the host that it would change beside its own recorder.
author:
  - fastpath.bench contributors (@fastpath)
options:
  sample_id:
    description: Name of the recording. One host can have several at a time.
    type: str
    required: true
    aliases: [name]
  state:
    description:
      - V(started) starts the recorder, and does nothing when it runs already.
      - V(stopped) ends it and reports the O(windows). The recording stays, so that asking again gives the same answer.
      - V(gathered) reports the O(windows) without ending it.
      - V(absent) ends it and deletes the recording.
    type: str
    choices: [started, stopped, gathered, absent]
    default: started
  interfaces:
    description:
      - The interfaces whose counters are recorded. Each must be there when the recorder starts.
      - Without it, all interfaces that are up and all physical ones, but not the loopback.
    type: list
    elements: str
    default: []
  interval_s:
    description: Time between two samples.
    type: float
    default: 0.25
  queue_interval_s:
    description:
      - Time between two readings of the counters per queue. Some drivers answer slowly, and the recorder then prolongs
        it so that it spends at most 0.5 % of the time with that. V(0) switches it off.
    type: float
    default: 0.25
  power_interval_s:
    description:
      - Time between two readings of what the CPUs do with their power. It is prolonged like O(queue_interval_s) where
        a reading is slow, as with hundreds of CPUs. V(0) switches it off.
    type: float
    default: 0.5
  max_duration_s:
    description: After this time the recorder ends by itself.
    type: float
    default: 3600.0
  max_bytes:
    description: At this size of the recording, which lies in memory (C(/run)), the recorder ends by itself.
    type: int
    default: 134217728
  vpp:
    description: Record also what a VPP on this host does.
    type: dict
    suboptions:
      stats_socket:
        description:
          - The socket over which VPP hands out its statistics. VPP need not run yet, and may be restarted meanwhile.
          - Calls, vectors and clocks by node need C(per-node-counters on) and a short C(update-interval) in the section
            C(statseg) of its C(startup.conf).
        type: path
        default: /run/vpp/stats.sock
  windows:
    description: The spans of time to report on.
    type: list
    elements: dict
    default: []
    suboptions:
      id:
        description: Name of the window, the key in the result.
        type: str
        required: true
      start:
        description: Begin, in seconds since the epoch, by the clock that O(clock_offset_s) refers to.
        type: float
        required: true
      end:
        description: End, in seconds since the epoch.
        type: float
        required: true
  clock_offset_s:
    description: The clock that the windows are given in, minus this host's clock.
    type: float
    default: 0.0
  clock_offset_time:
    description:
      - When O(clock_offset_s) was measured, in seconds since the epoch by the clock that the windows are given in.
      - Needed only when this host's clock is set while the recorder runs. Without it the windows of such a recording
        have no numbers, because it is not known whether the offset holds before or after the jump.
    type: float
  return_raw:
    description: Whether to return the recording's text.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Record the router while traffic runs
  fastpath.bench.dut_sample:
    sample_id: "{{ run_id }}-routed"
    interfaces: [eth1, eth2]
    state: started

- name: What the router did in each trial
  fastpath.bench.dut_sample:
    sample_id: "{{ run_id }}-routed"
    state: stopped
    clock_offset_s: "{{ client_offset_s - router_offset_s }}"
    windows:
      - id: lab.routed.kernel.tcp_large.forward-r1-a1
        start: 1796040000.25
        end: 1796040002.25
  register: observed

- name: Delete the recording
  fastpath.bench.dut_sample:
    sample_id: "{{ run_id }}-routed"
    state: absent
"""

RETURN = r"""
pid:
  description: The recorder's process.
  returned: O(state=started), unless in check mode
  type: int
interfaces:
  description: The interfaces that are recorded.
  returned: O(state=started), unless in check mode
  type: list
  elements: str
started:
  description: When the recorder was started, by this host's clock.
  returned: O(state=started), unless in check mode
  type: float
ended:
  description:
    - How the recorder was found or brought to its end, V(asked), V(killed), V(gone) (it had ended before), V(absent),
      or V(running).
  returned: all states but V(started)
  type: str
reason:
  description: Why the recorder ended without being asked to, null if it did not.
  returned: O(state=stopped) and O(state=gathered)
  type: str
overhead:
  description: What the recorder itself cost, C(cpu_s), C(samples) and C(cpu_per_sample_ms).
  returned: O(state=stopped) and O(state=gathered)
  type: dict
windows:
  description: The report of each window by its id.
  returned: O(state=stopped) and O(state=gathered)
  type: dict
  contains:
    reason:
      description: Why there are no numbers, null when there are.
      type: str
    window:
      description:
        - C(start) and C(end) as asked, C(counted_s), the time between the samples that were counted, which all counts
          refer to, and C(clipped_s), by how much less that is (mostly less than one interval on each side).
      type: dict
    samples:
      description: Number of samples within the window.
      type: int
    interval_s:
      description: The asked time between two samples.
      type: float
    largest_gap_s:
      description: The longest time between two samples that bear on this window.
      type: float
    cpu:
      description:
        - C(cpus), a list with C(cpu), C(user), C(nice), C(system), C(idle), C(iowait), C(irq), C(softirq),
          C(steal) and C(busy) as ratios of the window's time; C(busiest) with C(cpu), C(busy) and C(softirq);
          C(mean_busy).
        - Busy is all but C(idle) and C(iowait), so time stolen by the hypervisor is in it.
      type: dict
    interfaces:
      description:
        - By interface, C(rx_packets), C(rx_bytes), C(rx_dropped), C(rx_errors), C(rx_missed_errors), C(rx_packet_rate),
          C(rx_rate_bps), C(rx_mean_frame_bytes), the same with C(tx_) (but for C(missed_errors)), C(mtu_bytes),
          C(speed_bps), C(queues), C(queues_reason) and C(reason).
        - Bytes are those of the frame with its link header and without its check sequence, as Linux counts them.
        - C(speed_bps) is null for a virtual interface. Whatever speed veth names, it is no limit.
        - C(queues) has C(rx) and C(tx), and in each by queue number C(packets) and C(bytes), and C(counted_s), the time
          that these refer to. Each direction, and the
          whole, is null when the driver does not count all packets that way, and C(queues_reason) says so. (veth counts
          per queue only what it polls for, so only with GRO on.)
      type: dict
    softnet:
      description:
        - C(processed), C(dropped), C(time_squeeze), C(received_rps) and C(flow_limit), added up, and in C(cpus) for
          each CPU.
      type: dict
    conntrack:
      description:
        - How many connections the kernel kept, C(before) any traffic of the recording, at C(window_start) and
          C(window_end), the C(most) in the window, and C(after) all traffic; null where the kernel keeps none.
      type: dict
    esp:
      description:
        - What the security associations of the kernel's ESP carried, C(packets) and C(bytes), in and out added up, in
          C(counted_s), and in C(sas) for each with C(source), C(target) and C(spi). The bytes are those of the packets
          without ESP. Null when the kernel does not tell, or has so many that it was not asked often enough.
        - Where keys are renewed in the window the sums are a lower bound.
      type: dict
    routes_changed:
      description:
        - Routes and next hops by the recorded interfaces that were set or deleted in the window, as texts; null when
          the kernel could not be listened to. Those that the kernel makes by itself are left out.
      type: list
      elements: str
    vpp:
      description:
        - With O(vpp), what VPP did in the window, as RV(fastpath.bench.vpp_runtime#module:runtime); null when there was
          no VPP.
        - C(nat44) has the same counts as C(conntrack) of each NAT44 of VPP, C(ed) and C(ei).
        - Drops are counted to the moment. Calls, vectors and clocks are as old as the last of VPP's own updates, so
          their ratios are better than their sums.
      type: dict
    power:
      description:
        - What the CPUs did with their power; null when it was not recorded. Each part that is null has a reason in
          C(reasons).
        - C(frequency), C(mean_mhz) over the time that CPUs were awake, and C(min_mhz) and C(max_mhz) of single
          readings, beside C(base_mhz), the nominal one where it is known.
        - C(source) says where it is from. V(msr) are the CPU's own counters (aperf and mperf, needs the kernel module
          C(msr)), V(cpufreq) and V(cpuinfo) what the kernel says, and V(nominal) is what a virtual machine prints,
          which says nothing of the CPU.
        - C(idle), by idle state the share of the time of all CPUs that was spent in it.
        - C(throttle), how often (C(core), C(package)) the CPU slowed down to stay cool, added up over the CPUs.
        - C(energy), by RAPL zone C(joule) and C(watt).
        - C(settings), what M(fastpath.bench.cpu_power) returns as C(now), without the uncore, and C(settings_changed),
          whether it changed within the window.
        - C(driver) and C(counted_s).
      type: dict
    softirqs:
      description: For each C(cpu) how often C(net_rx) and C(net_tx) ran.
      type: list
      elements: dict
raw:
  description: The recording as it was written, a JSON document a line, by file name.
  returned: when O(return_raw=true) and there is a recording
  type: dict
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._host import sampler
from ansible_collections.fastpath.bench.plugins.module_utils._host.sample_cut import Window


def argument_spec() -> dict[str, t.Any]:
    return {
        "sample_id": {"type": "str", "required": True, "aliases": ["name"]},
        "state": {"type": "str", "choices": ["started", "stopped", "gathered", "absent"], "default": "started"},
        "interfaces": {"type": "list", "elements": "str", "default": []},
        "interval_s": {"type": "float", "default": 0.25},
        "queue_interval_s": {"type": "float", "default": 0.25},
        "power_interval_s": {"type": "float", "default": 0.5},
        "max_duration_s": {"type": "float", "default": 3600.0},
        "max_bytes": {"type": "int", "default": 128 * 1024 * 1024},
        "vpp": {
            "type": "dict",
            "options": {"stats_socket": {"type": "path", "default": "/run/vpp/stats.sock"}},
        },
        "windows": {
            "type": "list",
            "elements": "dict",
            "default": [],
            "options": {
                "id": {"type": "str", "required": True},
                "start": {"type": "float", "required": True},
                "end": {"type": "float", "required": True},
            },
        },
        "clock_offset_s": {"type": "float", "default": 0.0},
        "clock_offset_time": {"type": "float"},
        "return_raw": {"type": "bool", "default": False},
    }


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    params = module.params
    settings = sampler.Settings(
        sample_id=params["sample_id"],
        interfaces=tuple(params["interfaces"]),
        interval_s=params["interval_s"],
        max_duration_s=params["max_duration_s"],
        queue_interval_s=params["queue_interval_s"],
        power_interval_s=params["power_interval_s"],
        max_bytes=params["max_bytes"],
        vpp_stats_socket=params["vpp"]["stats_socket"] if params["vpp"] else None,
    )
    windows = [Window(window["id"], window["start"], window["end"]) for window in params["windows"]]
    try:
        settings.check()
        if params["state"] == "started":
            result = sampler.ensure_started(settings, check_mode=module.check_mode)
        else:
            result = sampler.ensure_ended(
                settings,
                params["state"],
                windows,
                clock_offset_s=params["clock_offset_s"],
                clock_offset_time=params["clock_offset_time"],
                return_raw=params["return_raw"],
                check_mode=module.check_mode,
            )
    except BenchError as error:
        module.fail_json(**error.as_result())
    module.exit_json(**result)


if __name__ == "__main__":
    main()
