# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From the options of the modules to descriptions, plans and wishes: the one place that knows both."""

from __future__ import annotations

import dataclasses
import ipaddress
import os
import stat
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common import files
from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._host.access import Access
from ansible_collections.fastpath.bench.plugins.module_utils._host.journal import Journal
from ansible_collections.fastpath.bench.plugins.module_utils._host.knob import ABSENT
from ansible_collections.fastpath.bench.plugins.module_utils._host.reconcile import Wish, finding
from ansible_collections.fastpath.bench.plugins.module_utils._host.route import Route, route_key
from ansible_collections.fastpath.bench.plugins.module_utils._ipsec import (
    charon,
    kernel_crypto,
    knobs,
    plan,
    proposal,
    swanctl,
)
from ansible_collections.fastpath.bench.plugins.module_utils._ipsec.vici import Session

Params = t.Mapping[str, t.Any]
#: nftables table of the clamp.
MSS_TABLE = "fastpath_ipsec"
_FILE_MODE = 0o600

PLAN_SPEC: dict[str, t.Any] = {
    "gateways": {
        "type": "list",
        "elements": "dict",
        "required": True,
        "options": {
            "name": {"type": "str", "required": True},
            "interfaces": {
                "type": "list",
                "elements": "dict",
                "default": [],
                "options": {
                    "name": {"type": "str", "required": True},
                    "addresses": {"type": "list", "elements": "str", "default": []},
                    "mtu_bytes": {"type": "int", "default": 1500},
                },
            },
            "networks": {"type": "list", "elements": "str", "default": []},
        },
    },
    "gateway": {"type": "str", "required": True},
    "mode": {"type": "str", "choices": [plan.ROUTE, plan.POLICY], "default": plan.ROUTE},
    "tunnels": {"type": "int", "default": 1},
    "outer": {"type": "list", "elements": "list", "default": []},
    "outer_pairs": {"type": "int", "default": 1},
    "ike": {"type": "list", "elements": "str", "default": list(plan.Description.ike)},
    "esp": {"type": "list", "elements": "str", "default": list(plan.Description.esp)},
    "peer_esp": {"type": "list", "elements": "str"},
    "peer_ike": {"type": "list", "elements": "str"},
    "if_ids": {"type": "list", "elements": "dict", "default": []},
    "first_if_id": {"type": "raw", "default": 42},
    "interface_prefix": {"type": "str", "default": "ipsec"},
    "path_mtu_bytes": {"type": "int"},
    "nat_t": {"type": "bool", "default": False},
    "auth": {"type": "str", "choices": [swanctl.PSK, swanctl.PUBKEY], "default": swanctl.PSK},
    "rekey_ike_s": {"type": "int", "default": 14400},
    "rekey_esp_s": {"type": "int", "default": 3600},
    "reauth_s": {"type": "int", "default": 0},
    "dpd_delay_s": {"type": "int", "default": 10},
    "start_action": {"type": "str", "choices": list(plan.START_ACTIONS), "default": "start"},
    "replay_window": {"type": "int", "default": 1024},
    "mss_clamp": {"type": "bool", "default": True},
}


def description(params: Params) -> plan.Description:
    """What the options ask for."""
    if len(params["gateways"]) != 2:
        raise BenchError(
            f"{len(params['gateways'])} gateways are named",
            where="gateways",
            remedy="A tunnel has two",
            code="bad_option",
        )
    one, other = (_gateway(raw) for raw in params["gateways"])
    plain = (
        *("mode", "tunnels", "interface_prefix", "path_mtu_bytes", "nat_t", "auth", "rekey_ike_s", "rekey_esp_s"),
        *("reauth_s", "dpd_delay_s", "start_action", "replay_window", "outer_pairs"),
    )
    return plan.Description(
        gateways=(one, other),
        outer=tuple(_pair(raw) for raw in params["outer"]),
        ike=tuple(params["ike"]),
        esp=tuple(params["esp"]),
        if_ids=tuple(
            (plan.parse_if_id(raw.get("in"), "if_ids"), plan.parse_if_id(raw.get("out"), "if_ids"))
            for raw in params["if_ids"]
        ),
        first_if_id=plan.parse_if_id(params["first_if_id"], "first_if_id"),
        **{name: params[name] for name in plain},
    )


def _gateway(raw: Params) -> plan.Gateway:
    where = f"gateway {raw['name']}"
    try:
        links = tuple(
            plan.Link(
                link["name"], tuple(ipaddress.ip_interface(text) for text in link["addresses"]), link["mtu_bytes"]
            )
            for link in raw["interfaces"]
        )
        networks = tuple(ipaddress.ip_network(text) for text in raw["networks"])
    except ValueError as err:
        raise BenchError(str(err), where=where, code="bad_address") from err
    return plan.Gateway(raw["name"], links, networks)


def _pair(raw: t.Sequence[str]) -> tuple[plan.Address, plan.Address]:
    try:
        one, other = (ipaddress.ip_address(text) for text in raw)
    except ValueError as err:
        raise BenchError(
            f"{raw!r} is no pair of addresses", where="outer",
            remedy="Write [address of the first gateway, address of the second]", code="bad_address",
        ) from err  # fmt: skip
    return one, other


def planned(params: Params) -> dict[str, t.Any]:
    """The result of the module ipsec_plan."""
    asked = description(params)
    made = plan.make(asked, params["gateway"])
    for name, own in (("ike", made.ike), ("esp", made.esp)):
        theirs = params.get(f"peer_{name}")
        if theirs:
            others = proposal.parse_all(theirs, own[0].protocol)
            proposal.agreed(own, others, (made.gateway, made.peer))
    result = made.as_result()
    result["connections"] = swanctl.render({"connections": swanctl.connections(made)})
    result["ike"] = [one.text for one in made.ike]
    result["esp"] = [one.text for one in made.esp]
    result["interfaces"] = [
        {**link, "dev": lower_of(asked, made, tunnel)} for link, tunnel in zip(made.interfaces, made.tunnels)
    ]
    result["mss"] = _mss_rows(made) if params["mss_clamp"] else []
    result["expected"] = [{"name": tunnel.name, "if_id": tunnel.if_id} for tunnel in made.tunnels]
    return result


def lower_of(asked: plan.Description, made: plan.Plan, tunnel: plan.Tunnel) -> str | None:
    """The interface that has a tunnel's outer address, when it is among those described."""
    gateway = next(one for one in asked.gateways if one.name == made.gateway)
    for link in gateway.links:
        if any(str(address.ip) == tunnel.local for address in link.addresses):
            return link.name
    return None


def _mss_rows(made: plan.Plan) -> list[str]:
    sizes = made.as_result()["mss_bytes"]
    families = sorted({ipaddress.ip_network(network).version for network in made.networks})
    if made.interfaces:
        return [f"{link['name']} {family} {sizes[family]}" for link in made.interfaces for family in families]
    return [f"{network} {ipaddress.ip_network(network).version} {sizes[ipaddress.ip_network(network).version]}"
            for network in made.networks]  # fmt: skip


GATEWAY_SPEC: dict[str, t.Any] = {
    "files": {
        "type": "list",
        "elements": "dict",
        "options": {
            "path": {"type": "path", "required": True},
            "content": {"type": "str", "no_log": True},
        },
    },
    "daemon": {"type": "str", "choices": list(knobs.UNITS)},
    "interfaces": {
        "type": "list",
        "elements": "dict",
        "options": {
            "name": {"type": "str", "required": True},
            "if_id": {"type": "int", "required": True},
            "dev": {"type": "str"},
            "mtu_bytes": {"type": "int", "required": True},
            "up": {"type": "bool", "default": True},
        },
    },
    "routes": {
        "type": "list",
        "elements": "dict",
        "options": {
            "dst": {"type": "str", "required": True},
            "devs": {"type": "list", "elements": "str", "required": True},
        },
    },
    "mss": {"type": "list", "elements": "str"},
}


def file_wishes(access: Access, params: Params, journal: Journal) -> list[Wish]:
    wishes: list[Wish] = []
    paths = [raw["path"] for raw in params["files"] or ()]
    wishes += [Wish(knobs.OwnFile(access, path), "there") for path in paths]
    if params["files"] is not None:
        wishes += _left_over(access, journal, knobs.OwnFile, paths)
    return wishes


def link_wishes(access: Access, params: Params, journal: Journal) -> list[Wish]:
    wishes: list[Wish] = []
    if params["daemon"]:
        wishes.append(Wish(knobs.Daemon(access, params["daemon"]), True))
    for link in params["interfaces"] or ():
        wish = {name: link[name] for name in ("if_id", "dev", "mtu_bytes", "up")}
        wishes.append(Wish(knobs.XfrmLink(access, link["name"]), wish))
    if params["interfaces"] is not None:
        wishes += _left_over(access, journal, knobs.XfrmLink, [link["name"] for link in params["interfaces"]])
    if params["mss"] is not None:
        wishes.append(Wish(knobs.MssClamp(access, MSS_TABLE), params["mss"] or ABSENT))
    return wishes


def write_files(params: Params, *, check_mode: bool) -> list[str]:
    """Have the files hold what they should; the paths of those that did not. They are the journal's already."""
    written = []
    for raw in params["files"] or ():
        if raw["content"] is None:
            continue  # it is kept as it is
        data = raw["content"].encode()
        try:
            with open(raw["path"], "rb") as stream:
                same = stream.read() == data and stat.S_IMODE(os.fstat(stream.fileno()).st_mode) == _FILE_MODE
        except FileNotFoundError:
            same = False
        if not same:
            written.append(raw["path"])
            if not check_mode:
                _replace(raw["path"], data)
    return written


def _replace(path: str, data: bytes) -> None:
    try:
        files.replace_file(path, data, mode=_FILE_MODE)
    except OSError as err:
        raise BenchError(f"cannot be written: {err.strerror}", where=path, code="not_written") from err


def route_wishes(access: Access, params: Params, journal: Journal) -> list[Wish]:
    wanted = {route_key(route["dst"]): {"devs": route["devs"]} for route in params["routes"] or ()}
    wishes = [Wish(Route(access, key), wish) for key, wish in wanted.items()]
    if params["routes"] is not None:
        wishes += _left_over(access, journal, Route, list(wanted))
    return wishes


def _left_over(access: Access, journal: Journal, kind: type[t.Any], wanted: t.Collection[str]) -> list[Wish]:
    """What this part made before and is not asked for any more."""
    journal.load()
    return [
        Wish(kind(access, entry.key), ABSENT)
        for entry in journal.entries()
        if entry.kind == kind.kind
        and entry.found is ABSENT
        and entry.applied is not ABSENT
        and entry.parts == [journal.part]
        and entry.key not in wanted
        and journal.is_void(entry) is None
    ]


def crypto_findings(access: Access, esp: t.Sequence[str]) -> tuple[list[dict[str, t.Any]], list[dict[str, t.Any]]]:
    """What the kernel has for the ESP proposals, and what is to be said about it.

    :raises BenchError: the kernel does not have an algorithm.
    """
    proposals = proposal.parse_all(esp, proposal.ESP)
    found = kernel_crypto.survey(proposals, read=lambda: access.read_file(f"{access.proc}/crypto"))
    findings = []
    for one in found:
        if one.available is False:
            raise BenchError(
                f"this kernel does not have {one.name}",
                where=f"ESP proposal {', '.join(esp)}",
                remedy="Load its module or take another algorithm",
                code="algorithm_not_in_kernel",
            )
        if one.accelerated is False:
            findings.append(
                finding(
                    "ipsec_no_acceleration",
                    "warning",
                    f"the kernel computes {one.name} by {one.driver}, without instructions of the processor for it",
                    "Let the machine's CPU flags (aes, pclmulqdq) through to a guest, load aesni_intel or its like",
                )
            )
    return [one.as_result() for one in found], findings


def expected(params: Params) -> list[charon.Expected]:
    esp = proposal.parse_all(params["esp"], proposal.ESP)
    return [charon.Expected(raw["name"], esp, raw.get("if_id")) for raw in params["expected"]]


def sas_as_result(sas: t.Sequence[charon.Sa]) -> list[dict[str, t.Any]]:
    return [dataclasses.asdict(sa) for sa in sas]


def check_algorithms(session: Session, params: Params) -> None:
    """The proposals against what the daemon has loaded."""
    loaded = charon.loaded_algorithms(session)
    for protocol, name in ((proposal.IKE, "ike"), (proposal.ESP, "esp")):
        if params[name]:
            proposal.check_loaded(proposal.parse_all(params[name], protocol), loaded)
