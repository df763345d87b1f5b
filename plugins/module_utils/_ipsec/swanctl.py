# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""swanctl.conf from a gateway's plan. Secrets are a text of their own, for a file of its own."""

from __future__ import annotations

import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._ipsec.plan import NAME, Plan, Tunnel

#: Of the certificates and keys that the role brings; swanctl finds each kind in its own folder.
CA_FILE = f"{NAME}-ca.pem"
CERT_FILE = f"{NAME}-%s.pem"
PSK = "psk"
PUBKEY = "pubkey"

Section = dict[str, t.Any]


def connections(plan: Plan) -> Section:
    """The section ``connections``, as nested mappings."""
    return {tunnel.name: _connection(plan, tunnel) for tunnel in plan.tunnels}


def _connection(plan: Plan, tunnel: Tunnel) -> Section:
    asked = plan.description
    if asked.auth not in (PSK, PUBKEY):
        raise BenchError(
            f"{asked.auth!r} is no way of authentication", where="auth", remedy="psk or pubkey", code="bad_option"
        )
    local: Section = {"auth": asked.auth, "id": tunnel.local_id}
    remote: Section = {"auth": asked.auth, "id": tunnel.remote_id}
    if asked.auth == PUBKEY:
        local["certs"] = CERT_FILE % "cert"
        remote["cacerts"] = CA_FILE
    connection: Section = {
        "version": "2",
        "local_addrs": tunnel.local,
        "remote_addrs": tunnel.remote,
        "proposals": ", ".join(one.text for one in plan.ike),
        # MOBIKE would move IKE onto whatever interface looks like a path, the tunnel's own included
        "mobike": "no",
        "encap": "yes" if asked.nat_t else "no",
        "unique": "replace",
        # the responder waits for the initiator, or both would build a tunnel
        "keyingtries": "0" if plan.initiator else "1",
        "rekey_time": f"{asked.rekey_ike_s}s",
        "reauth_time": f"{asked.reauth_s}s",
        "dpd_delay": f"{asked.dpd_delay_s}s",
        "local": local,
        "remote": remote,
        "children": {tunnel.name: _child(plan, tunnel)},
    }
    return connection


def _child(plan: Plan, tunnel: Tunnel) -> Section:
    asked = plan.description
    keeps_up = plan.initiator and asked.start_action != "none"
    child: Section = {
        "mode": "tunnel",
        "local_ts": ", ".join(tunnel.local_ts),
        "remote_ts": ", ".join(tunnel.remote_ts),
        "esp_proposals": ", ".join(one.text for one in plan.esp),
        "rekey_time": f"{asked.rekey_esp_s}s",
        "start_action": asked.start_action if plan.initiator else "none",
        "dpd_action": "restart" if keeps_up else "clear",
        # a peer that restarts in good order says goodbye first
        "close_action": "start" if keeps_up else "none",
        "replay_window": str(asked.replay_window),
    }
    if tunnel.if_id is not None:
        child["if_id_in"] = str(tunnel.if_id)
        child["if_id_out"] = str(tunnel.if_id)
    return child


def secrets(plan: Plan, psk: str) -> Section:
    """The section ``secrets``: one secret for the identities of all tunnels."""
    ids = {f"id-{number}": name for number, name in enumerate(plan.as_result()["ids"], start=1)}
    return {f"ike-{NAME}": {**ids, "secret": psk}}


def render(sections: t.Mapping[str, Section]) -> str:
    """The text of a file."""
    lines = ["# Written by the Ansible role fastpath.bench.ipsec"]
    for name, body in sections.items():
        lines += _lines(name, body, 0)
    return "\n".join(lines) + "\n"


def _lines(name: str, body: t.Mapping[str, t.Any], depth: int) -> list[str]:
    pad = "  " * depth
    lines = [f"{pad}{name} {{"]
    for key, value in body.items():
        if isinstance(value, dict):
            lines += _lines(key, value, depth + 1)
        else:
            lines.append(f"{pad}  {key} = {_quoted(str(value))}")
    lines.append(f"{pad}}}")
    return lines


def _quoted(value: str) -> str:
    """A value as it is; in quotes where a character would mean something to the parser."""
    if any(ord(char) < 32 for char in value):
        raise BenchError("a value has a line break or a control character", where="swanctl.conf", code="bad_option")
    if value and not any(char in value for char in "#\"{}=\\'") and value == value.strip():
        return value
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
