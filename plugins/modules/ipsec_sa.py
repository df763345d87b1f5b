#!/usr/bin/python
# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: ipsec_sa
short_description: Load strongSwan's connections, wait for the security associations, read their counters
version_added: 0.1.0
description:
  - Talks to strongSwan's daemon over vici, each step within a time limit. A daemon that hangs, is late, is not there or
    answers with nothing is an error.
  - A tunnel counts as up when both directions of its CHILD_SA are C(INSTALLED), with an algorithm that was asked for
    and the interface id of its xfrm interface.
  - No secret passes through this module.
extends_documentation_fragment:
  - fastpath.bench.host_state
attributes:
  check_mode:
    support: full
    description: Tells whether connections would be loaded or unloaded. With V(installed) and V(gathered) it only reads.
  diff_mode:
    support: none
    description: What is loaded has secrets.
author:
  - fastpath.bench contributors (@fastpath)
options:
  state:
    description:
      - V(loaded) checks the proposals against the algorithms that the daemon and the kernel have, and has the daemon
        read its files when it does not have the connections of O(expected), or with O(reload).
      - V(installed) waits until all tunnels of O(expected) are up; the gateway with O(initiator) builds those that are
        not.
      - V(gathered) only reads.
      - V(absent) ends this collection's tunnels and forgets its connections.
    type: str
    choices: [loaded, installed, gathered, absent]
    default: gathered
  expected:
    description: The tunnels, C(name) and C(if_id), as M(fastpath.bench.ipsec_plan) returns them.
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: Name of the connection and its child.
        type: str
        required: true
      if_id:
        description: Interface id; none with policies.
        type: int
  ike:
    description: IKE proposals.
    type: list
    elements: str
    default: []
  esp:
    description: ESP proposals. One of them must be what the SA uses.
    type: list
    elements: str
    default: []
  initiator:
    description: Whether this gateway builds the tunnels.
    type: bool
    default: false
  reload:
    description: Have the files read although the connections are there, as they have changed.
    type: bool
    default: false
  since:
    description: The RV(sas) of a call before. RV(carried) is then what was carried since.
    type: list
    elements: dict
    default: []
  packets:
    description:
      - How many packets were sent in each direction since O(since). Fewer in the counters of the security associations
        is an error, as the path is then not encrypted.
    type: int
    default: 0
  wait_s:
    description: How long to wait for the daemon.
    type: float
    default: 20
  time_limit_s:
    description: How long a step, or with V(installed) all of it, may take.
    type: float
    default: 45
  socket:
    description: The daemon's vici socket. Without it, the usual places.
    type: path
"""

EXAMPLES = r"""
- name: Wait until the tunnel is up
  fastpath.bench.ipsec_sa:
    state: installed
    expected: [{name: fastpath-1, if_id: 42}]
    esp: [aes128gcm16]
    initiator: true
  register: before

- name: The packets that were sent went through it
  fastpath.bench.ipsec_sa:
    since: "{{ before.sas }}"
    packets: 10
"""

RETURN = r"""
sas:
  description: The CHILD_SAs of this collection's connections, with their counters.
  returned: success
  type: list
  elements: dict
  contains:
    child:
      description: Its name.
      type: str
    state:
      description: As the daemon names it, such as V(INSTALLED).
      type: str
    encryption:
      description: Such as V(AES_GCM_16).
      type: str
    if_id_in:
      description: Interface id.
      type: int
    bytes_in:
      description: Bytes that were decrypted.
      type: int
    packets_in:
      description: Packets that were decrypted.
      type: int
    bytes_out:
      description: Bytes that were encrypted.
      type: int
    packets_out:
      description: Packets that were encrypted.
      type: int
carried:
  description: By tunnel, C(packets_in), C(packets_out), C(bytes_in) and C(bytes_out) since O(since).
  returned: when O(since) is given
  type: dict
kernel:
  description: What the kernel has for the ESP proposals, C(name), C(driver) and whether it is C(accelerated).
  returned: when O(state) is V(loaded)
  type: list
  elements: dict
findings:
  description: What one should know. C(code) is V(ipsec_no_acceleration).
  returned: success
  type: list
  elements: dict
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._host import settings
from ansible_collections.fastpath.bench.plugins.module_utils._host.access import Access
from ansible_collections.fastpath.bench.plugins.module_utils._host.reconcile import Wish
from ansible_collections.fastpath.bench.plugins.module_utils._ipsec import charon, knobs, options
from ansible_collections.fastpath.bench.plugins.module_utils._ipsec.plan import NAME
from ansible_collections.fastpath.bench.plugins.module_utils._ipsec.vici import Session, ViciError


def argument_spec() -> dict[str, t.Any]:
    return {
        **settings.common_spec(),
        "state": {"type": "str", "choices": ["loaded", "installed", "gathered", "absent"], "default": "gathered"},
        "expected": {
            "type": "list",
            "elements": "dict",
            "default": [],
            "options": {"name": {"type": "str", "required": True}, "if_id": {"type": "int"}},
        },
        "ike": {"type": "list", "elements": "str", "default": []},
        "esp": {"type": "list", "elements": "str", "default": []},
        "initiator": {"type": "bool", "default": False},
        "reload": {"type": "bool", "default": False},
        "since": {"type": "list", "elements": "dict", "default": []},
        "packets": {"type": "int", "default": 0},
        "wait_s": {"type": "float", "default": 20},
        "time_limit_s": {"type": "float", "default": 45},
        "socket": {"type": "path"},
    }


def _loaded(module: AnsibleModule, session: Session) -> dict[str, t.Any]:
    params, access = module.params, Access()
    options.check_algorithms(session, params)
    kernel, findings = options.crypto_findings(access, params["esp"]) if params["esp"] else ([], [])
    names = {raw["name"] for raw in params["expected"]}
    stale = set(charon.own_connections(session)) != names or params["reload"]
    if not module.check_mode:
        # noted first, so that a restore unloads them
        settings.apply(access, params, [Wish(knobs.Connections(access, NAME), True)], check_mode=False)
        if stale:
            charon.load(session, names, limit_s=params["time_limit_s"])
    return {"changed": stale, "kernel": kernel, "findings": findings}


def run(module: AnsibleModule) -> dict[str, t.Any]:
    params = module.params
    with Session(params["socket"], limit_s=min(10.0, params["time_limit_s"])) as session:
        try:
            session.connect(params["wait_s"] if params["state"] != "absent" else 0.0)
        except ViciError as err:
            if params["state"] == "absent" and err.code == "charon_absent":
                return {"changed": False, "sas": [], "findings": []}
            raise
        result: dict[str, t.Any] = {"changed": False, "findings": []}
        if params["state"] == "loaded":
            result = _loaded(module, session)
        elif params["state"] == "absent":
            there = bool(charon.own_connections(session) or charon.list_sas(session))
            result["changed"] = there
            if there and not module.check_mode:
                charon.unload(session)
        if params["state"] == "installed" and not module.check_mode:
            sas = charon.wait_installed(
                session, options.expected(params), limit_s=params["time_limit_s"], initiator=params["initiator"]
            )
        else:
            sas = charon.list_sas(session)
    result["sas"] = options.sas_as_result(sas)
    if params["since"] or params["packets"]:
        result["carried"] = charon.risen(params["since"], sas)
        charon.prove(result["carried"], params["packets"])
    return result


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    try:
        result = run(module)
    except BenchError as err:
        module.fail_json(**err.as_result())
    settings.warn_about(module.warn, result["findings"])
    module.exit_json(**result)


if __name__ == "__main__":
    main()
