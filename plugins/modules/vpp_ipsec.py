#!/usr/bin/python
# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: vpp_ipsec
short_description: IPsec tunnels of a running VPP, with static keys
version_added: 0.1.0
description:
  - Makes a tunnel of two security associations and an ipsec interface that they protect, over VPP's binary API. What is
    routed over the interface is encrypted, and nothing else is.
  - The keys are worked out from one secret and what both ends know, so that the ends cannot differ. They are in no
    option, result or log.
  - Static keys are for measurements alone. AES-GCM must not begin to count anew under the same key, which a restart of
    VPP does.
  - Reads the counters of the security associations, by which one proves that traffic was encrypted.
extends_documentation_fragment:
  - fastpath.bench.vpp
  - fastpath.bench.vpp.attributes
author:
  - fastpath.bench contributors (@fastpath)
options:
  state:
    description:
      - V(replaced) has the O(tunnels) and no others of this collection. Tunnels of others are left alone.
      - V(deleted) has none.
      - V(gathered) only reads.
    type: str
    choices: [replaced, deleted, gathered]
    default: replaced
  tunnels:
    description: The tunnels as this end sees them.
    type: list
    elements: dict
    default: []
    suboptions:
      number:
        description: Number of the interface, which is then C(ipsec<number>).
        type: int
        required: true
      local:
        description: Outer address of this end.
        type: str
        required: true
      remote:
        description: Outer address of the other end.
        type: str
        required: true
      spi_in:
        description: SPI of what comes in, the other end's O(tunnels[].spi_out). From 256.
        type: int
        required: true
      spi_out:
        description: SPI of what goes out.
        type: int
        required: true
      unnumbered:
        description: Interface whose address the ipsec interface takes, as VPP names it.
        type: str
        required: true
      mtu_bytes:
        description: The largest packet that fits into the tunnel.
        type: int
        required: true
      mss_bytes:
        description: Largest TCP segment over IPv4 that is announced. V(0) leaves it alone.
        type: int
        default: 0
      mss6_bytes:
        description: As O(tunnels[].mss_bytes), over IPv6.
        type: int
        default: 0
  algorithm:
    description: Algorithm of ESP, as strongSwan writes it.
    type: str
    choices: [aes128gcm16, aes192gcm16, aes256gcm16]
    default: aes128gcm16
  secret:
    description:
      - What the keys are worked out from, the same at both ends. At least 16 characters. Needed for V(replaced).
    type: str
  engine:
    description: Which of VPP's crypto engines computes it. V(any) is the one that VPP chose.
    type: str
    choices: [native, openssl, any]
    default: native
  script:
    description:
      - File that gets the commands by which VPP makes the same at its start, with the secret and the keys, mode 0600.
        With V(deleted) it is removed.
    type: path
  since:
    description: The RV(sas) of a call before. RV(carried) is then what was carried since.
    type: list
    elements: dict
    default: []
  ping:
    description:
      - Address inside the other end's networks, to which VPP itself sends O(packets) packets. They and their replies
        have to be in the counters of the security associations. The address that VPP sends from has to be one that the
        other end reaches through the tunnel.
    type: str
  packets:
    description:
      - How many packets were sent in each direction since O(since). Fewer in the counters of the security associations
        is an error, as the path is then not encrypted.
    type: int
    default: 0
  stats_socket:
    description: Socket of VPP's statistics.
    type: path
    default: /run/vpp/stats.sock
"""

EXAMPLES = r"""
- name: One end of a tunnel
  fastpath.bench.vpp_ipsec:
    secret: "{{ vault_ipsec_secret }}"
    tunnels:
      - number: 0
        local: 10.73.9.1
        remote: 10.73.9.2
        spi_in: 1001
        spi_out: 1002
        unnumbered: host-eth2
        mtu_bytes: 1446

- name: The network behind the other end
  fastpath.bench.vpp_route:
    routes: [{prefix: 10.73.2.0/24, paths: [{interface: ipsec0}]}]

- name: Packets to the other end go through it
  fastpath.bench.vpp_ipsec:
    state: gathered
    ping: 10.73.2.254
    packets: 10
"""

RETURN = r"""
changes:
  description: What was changed, or in check mode would be, with C(name), C(action) and the C(properties) that differ.
  returned: success
  type: list
  elements: dict
tunnels:
  description:
    - The tunnels as they are, without their keys. C(number), C(interface), C(local), C(remote), C(spi_in), C(spi_out),
      C(algorithm), C(unnumbered), C(mtu_bytes), C(mss_bytes), C(up).
  returned: success
  type: list
  elements: dict
engines:
  description: The crypto engines that compute O(algorithm).
  returned: success
  type: list
  elements: str
sas:
  description:
    - Of each tunnel its counters. C(child) (the interface), C(spi_in), C(spi_out), C(packets_in), C(packets_out),
      C(bytes_in), C(bytes_out).
  returned: success, not in check mode with something to change
  type: list
  elements: dict
carried:
  description: By tunnel, C(packets_in), C(packets_out), C(bytes_in) and C(bytes_out) since O(since).
  returned: when O(since), O(ping) or O(packets) is given, and not in check mode with something to change
  type: dict
findings:
  description: What needs attention. C(code) is V(no_mss_clamp).
  returned: success
  type: list
  elements: dict
"""

import os
import stat
import typing as t

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.fastpath.bench.plugins.module_utils._common import files
from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._vpp import ipsec
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.options import (
    connection_spec,
    failing,
    session_of,
    warn_about,
)
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.statseg import DEFAULT_SOCKET

_FILE_MODE = 0o600
_SECRET_LEAST = 16


def argument_spec() -> dict[str, t.Any]:
    text, number = {"type": "str", "required": True}, {"type": "int", "required": True}
    return {
        **connection_spec(),
        "state": {"type": "str", "choices": list(ipsec.STATES), "default": "replaced"},
        "tunnels": {
            "type": "list",
            "elements": "dict",
            "default": [],
            "options": {
                "number": number,
                "local": text,
                "remote": text,
                "spi_in": number,
                "spi_out": number,
                "unnumbered": text,
                "mtu_bytes": number,
                "mss_bytes": {"type": "int", "default": 0},
                "mss6_bytes": {"type": "int", "default": 0},
            },
        },
        "algorithm": {"type": "str", "choices": list(ipsec.ALGORITHMS), "default": "aes128gcm16"},
        "secret": {"type": "str", "no_log": True},
        "engine": {"type": "str", "choices": list(ipsec.ENGINES), "default": "native"},
        "script": {"type": "path"},
        "since": {"type": "list", "elements": "dict", "default": []},
        "ping": {"type": "str"},
        "packets": {"type": "int", "default": 0},
        "stats_socket": {"type": "path", "default": DEFAULT_SOCKET},
    }


def _held(path: str) -> bytes | None:
    """What the file holds; None when it is not there or others can read it."""
    try:
        with open(path, "rb") as stream:
            return stream.read() if stat.S_IMODE(os.fstat(stream.fileno()).st_mode) == _FILE_MODE else None
    except FileNotFoundError:
        return None


def _write_script(path: str, content: bytes | None, *, check_mode: bool) -> bool:
    """Have the file hold it, or be gone; whether that changes something."""
    if content is None:
        if not os.path.lexists(path):
            return False
        if not check_mode:
            os.unlink(path)
        return True
    if _held(path) == content:
        return False
    if not check_mode:
        files.replace_file(path, content, mode=_FILE_MODE)
    return True


def _scripted(params: t.Mapping[str, t.Any], tunnels: t.Sequence[ipsec.Tunnel], *, check_mode: bool) -> bool:
    path, state = params["script"], params["state"]
    if path is None or state == "gathered":
        return False
    content = None
    if state == "replaced":
        content = ipsec.script(tunnels, params["secret"], params["algorithm"]).encode()
    try:
        return _write_script(path, content, check_mode=check_mode)
    except OSError as err:
        raise BenchError(f"cannot be written: {err.strerror}", where=path, code="not_written") from err


def main() -> None:
    module = AnsibleModule(
        argument_spec=argument_spec(),
        supports_check_mode=True,
        required_if=[("state", "replaced", ["secret"])],
    )
    params = module.params
    with failing(module):
        tunnels = ipsec.tunnels_of(params["tunnels"])
        secret = params["secret"] or ""
        if params["state"] == "replaced" and (len(secret) < _SECRET_LEAST or not secret.isprintable()):
            raise BenchError(
                f"the secret has fewer than {_SECRET_LEAST} characters, or some that cannot be printed",
                where="secret",
                code="bad_option",
            )
        with session_of(module) as session:
            result, found = ipsec.run(
                session,
                params["state"],
                tunnels=tunnels,
                secret=secret,
                algorithm=params["algorithm"],
                engine=params["engine"],
                check_mode=module.check_mode,
            )
            if params["ping"] and not module.check_mode:
                result["carried"] = ipsec.ping(
                    session, found.sas, params["ping"], params["packets"], params["stats_socket"]
                )
        if _scripted(params, tunnels, check_mode=module.check_mode):
            result["changed"] = True
            result["changes"].append({"name": params["script"], "action": "write"})
        if not (module.check_mode and result["changed"]):
            result["sas"] = ipsec.counters(found.sas, params["stats_socket"])
            if not params["ping"] and (params["since"] or params["packets"]):
                result["carried"] = ipsec.risen(params["since"], result["sas"])
        if "carried" in result:
            ipsec.prove(result["carried"], params["packets"])
    warn_about(module, result["findings"])
    module.exit_json(**result)


if __name__ == "__main__":
    main()
