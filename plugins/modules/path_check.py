#!/usr/bin/python
# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: path_check
short_description: Prove that the path between two hosts carries what a benchmark sends
version_added: 0.1.0
description:
  - Ping can work while TCP is dead, because nobody fills checksums in (veth into af_packet), while frames of full size
    vanish, or by the wrong interface. So this module tries ICMP, UDP and TCP, small and of full size, counts what
    arrives at both ends, and gives one verdict.
  - On the server a responder is started first (O(state=listening)), then each client checks (O(state=checked)), and
    the responder is stopped (O(state=stopped)). It also ends by itself after O(lifetime_s).
attributes:
  check_mode:
    support: full
    description: Nothing is started, stopped or sent. A check returns C(ok) null.
  diff_mode:
    support: none
    description: There is no state of the host that it would change beside its own responder.
author:
  - fastpath.bench contributors (@fastpath)
options:
  state:
    description:
      - V(listening) starts the responder, and does nothing when it runs already with the same addresses and port and
        has at least half of O(lifetime_s) left.
      - V(checked) tries the path to each of O(addresses).
      - V(stopped) ends the responder and returns what had reached it.
    type: str
    choices: [listening, checked, stopped]
    default: checked
  name:
    description: Name of the responder. One host can have several.
    type: str
    default: default
  bind_addresses:
    description: Addresses of the server that the responder listens on.
    type: list
    elements: str
    default: [0.0.0.0]
  port:
    description:
      - The responder's port, the same for TCP and UDP. V(0) lets the kernel choose; a check needs the real one.
    type: int
    default: 0
  lifetime_s:
    description: After this time the responder ends by itself.
    type: float
    default: 120.0
  addresses:
    description: Addresses of the server that are checked, all at once. IPv4 and IPv6; names are refused.
    type: list
    elements: str
    default: []
  bind_address:
    description: The address that a check sends from. It then has to be of the family of all O(addresses).
    type: str
  mtu_bytes:
    description:
      - The size of IP packet, header included, that must pass unfragmented in both directions.
      - Without it, the MTU of the route or of the interface by which the traffic leaves.
    type: int
  bytes:
    description: How much TCP carries in each direction.
    type: int
    default: 1048576
  expected_interface:
    description: The client's interface by which traffic must leave and come back.
    type: str
  expected_server_interface:
    description: The server's interface on which traffic must arrive.
    type: str
  expected_hops:
    description:
      - How many routers there must be on the way. V(0) on one link or through a bridge, V(1) through one router.
        Without it, any number.
    type: int
  timeout_s:
    description:
      - Time limit of the traffic of a check. A path on which all is well needs far less. On a dead one up to 1.7
        seconds are added, for neighbours that are not known yet and for asking the server why.
    type: float
    default: 3.0
  fail_on_error:
    description: Whether the task fails when a check does. Otherwise the verdict is only returned.
    type: bool
    default: true
  checked:
    description:
      - The result of a check, given to O(state=stopped) on the server. Where nothing came back to the client it tells
        which direction is dead, in RV(verdict).
    type: dict
notes:
  - ICMP is sent through a socket of its own, so no ping program is needed. Without root (become) that can be refused,
    and those checks are then null.
  - Whether a segment was thrown away because of its checksum is read from the counters of both hosts. The server's come
    by UDP datagrams without a checksum.
"""

EXAMPLES = r"""
- name: Answer on the data network
  fastpath.bench.path_check:
    state: listening
    bind_addresses: [10.1.2.2]
  delegate_to: server
  register: responder

- name: The routed path carries what will be measured
  fastpath.bench.path_check:
    addresses: [10.1.2.2]
    port: "{{ responder.port }}"
    mtu_bytes: 1500
    expected_interface: eth1
    expected_hops: 1
  delegate_to: client

- name: Done with checking
  fastpath.bench.path_check:
    state: stopped
  delegate_to: server
"""

RETURN = r"""
port:
  description: The port that the responder listens on.
  returned: O(state=listening)
  type: int
pid:
  description: The responder's process.
  returned: O(state=listening)
  type: int
bind_addresses:
  description: The addresses that it listens on.
  returned: O(state=listening)
  type: list
  elements: str
ok:
  description: Whether all checks of all addresses passed. Null in check mode.
  returned: O(state=checked)
  type: bool
code:
  description:
    - V(ok), or a word for what is wrong with the first bad address, V(no_route), V(route_unknown), V(wrong_interface),
      V(wrong_path),
      V(server_missing), V(unreachable), V(silent), V(checksum), V(mtu_local), V(mtu_smaller), V(mtu_hole), V(tcp_dead),
      V(tcp_forward_stalled), V(tcp_reverse_stalled), V(corrupt), V(icmp_dead), V(udp_dead), or the name of a check.
  returned: O(state=checked)
  type: str
message:
  description: The verdict as a sentence. It is also the task's C(msg) when that fails.
  returned: O(state=checked), unless in check mode
  type: str
remedy:
  description: What to do, null when all is well.
  returned: O(state=checked), unless in check mode
  type: str
checks:
  description: Each thing that was tried.
  returned: O(state=checked)
  type: list
  elements: dict
  contains:
    target:
      description: The address.
      type: str
    name:
      description:
        - V(route), V(ping), V(ping_mtu), V(udp), V(udp_mtu_forward), V(udp_mtu_reverse), V(interface_reverse),
          V(interface_forward), V(hops_forward), V(hops_reverse), V(tcp_forward) or V(tcp_reverse).
      type: str
    ok:
      description: Whether it passed, null when it could not be tried.
      type: bool
    evidence:
      description: What was seen.
      type: str
    remedy:
      description: What to do.
      type: str
targets:
  description:
    - The verdict by address, each with C(address), C(source), C(ok), C(code), C(message), C(remedy), C(route)
      (C(device), C(source), C(via) and C(mtu)), C(mtu_bytes), C(rtt_ms), C(checks),
      C(seconds) and C(token), by which the responder knows this check.
  returned: O(state=checked), unless in check mode
  type: list
  elements: dict
seconds:
  description: How long the check took.
  returned: O(state=checked), unless in check mode
  type: float
seen:
  description:
    - What had reached the responder, by the client's address, C(udp) datagrams, C(tcp_connections) and C(tcp_bytes).
      Null when there was none or in check mode.
  returned: O(state=stopped)
  type: dict
arrived:
  description: Datagrams that reached the responder, by the C(token) of the check. Null like RV(seen).
  returned: O(state=stopped)
  type: dict
checksum_errors:
  description: How many C(tcp) segments, C(udp) and C(udp6) datagrams the server threw away meanwhile.
  returned: O(state=stopped)
  type: dict
verdict:
  description:
    - C(code) (V(forward_dead) or V(reverse_dead)), C(message) and C(remedy). Null when O(checked) was not silent.
  returned: O(state=stopped) when O(checked) is given
  type: dict
"""

import dataclasses
import typing as t

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._host import path_prober, path_responder, pathcheck


def argument_spec() -> dict[str, t.Any]:
    return {
        "state": {"type": "str", "choices": ["listening", "checked", "stopped"], "default": "checked"},
        "name": {"type": "str", "default": "default"},
        "bind_addresses": {"type": "list", "elements": "str", "default": ["0.0.0.0"]},
        "port": {"type": "int", "default": 0},
        "lifetime_s": {"type": "float", "default": 120.0},
        "addresses": {"type": "list", "elements": "str", "default": []},
        "bind_address": {"type": "str"},
        "mtu_bytes": {"type": "int"},
        "bytes": {"type": "int", "default": 1024 * 1024},
        "expected_interface": {"type": "str"},
        "expected_server_interface": {"type": "str"},
        "expected_hops": {"type": "int"},
        "timeout_s": {"type": "float", "default": 3.0},
        "fail_on_error": {"type": "bool", "default": True},
        "checked": {"type": "dict"},
    }


def serve(params: dict[str, t.Any], check_mode: bool) -> dict[str, t.Any]:
    settings = path_responder.Listening(
        name=params["name"],
        bind_addresses=tuple(params["bind_addresses"]),
        port=params["port"],
        lifetime_s=params["lifetime_s"],
    )
    settings.check()
    if params["state"] == "listening":
        return path_responder.ensure_listening(settings, check_mode=check_mode)
    result = path_responder.ensure_stopped(settings, check_mode=check_mode)
    if params["checked"] is not None:
        verdict = (
            pathcheck.explain_silence(params["checked"], result["arrived"]) if result["arrived"] is not None else None
        )
        result["verdict"] = dataclasses.asdict(verdict) if verdict else None
    return result


def check(params: dict[str, t.Any], check_mode: bool) -> dict[str, t.Any]:
    options = ("port", "bind_address", "mtu_bytes", "bytes", "expected_interface", "expected_server_interface")
    probes = [
        path_prober.Probe(
            address=address,
            expected_hops=params["expected_hops"],
            timeout_s=params["timeout_s"],
            **{name: params[name] for name in options},
        )
        for address in params["addresses"]
    ]
    for probe in probes:
        probe.check()
    if check_mode:
        return {"changed": False, "ok": None, "code": None, "checks": []}
    return {"changed": False, **pathcheck.check_paths(probes)}


def main() -> None:
    module = AnsibleModule(
        argument_spec=argument_spec(),
        required_if=[("state", "checked", ("addresses", "port"))],
        supports_check_mode=True,
    )
    try:
        work = check if module.params["state"] == "checked" else serve
        result = work(module.params, module.check_mode)
    except BenchError as error:
        module.fail_json(**error.as_result())
    if result.get("ok") is False and module.params["fail_on_error"]:
        remedy = f". {result['remedy']}." if result["remedy"] else "."
        module.fail_json(msg=result["message"] + remedy, **result)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
