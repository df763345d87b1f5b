# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The work of the module vpp_det44: options, states, sessions, results."""

from __future__ import annotations

import dataclasses
import ipaddress
import time
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._vpp import det44, info
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.det44 import (
    INTERFACE,
    MAP,
    PLUGIN,
    SESSIONS_PER_ADDRESS,
    Det44Kind,
    Mapping,
)
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.errors import VppError, message_missing
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.nat44 import DEFAULT_TIMEOUTS, ED, EI, Timeouts
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.nat44_config import bad
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.nat44_run import is_on
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.reconcile import (
    Found,
    Key,
    Values,
    Wish,
    difference,
    reconcile,
)
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.session import Call, Session

STATES = ("merged", "replaced", "deleted", "gathered", "cleared", "closed")
_STATES_OF_SESSIONS = (
    *("unknown", "udp_active", "tcp_syn_sent", "tcp_established", "tcp_fin_wait", "tcp_close_wait"),
    *("tcp_closing", "tcp_last_ack", "tcp_closed", "icmp_active"),
)
_CLEAR_TRIES, _SETTLE_S = 5, 0.1
_NEARLY_FULL = 0.9


def _network(text: t.Any, where: str) -> ipaddress.IPv4Network:
    try:
        return ipaddress.IPv4Network(str(text))
    except ValueError as err:
        raise bad(f"this is not an IPv4 network: {err}", where) from err


def mappings_of(options: Values) -> list[Mapping]:
    """:raises BenchError: one cannot be, or two overlap, of which VPP would take the first for all."""
    made: list[Mapping] = []
    for number, item in enumerate(options.get("mappings") or (), 1):
        where = f"mappings, entry {number}"
        one = Mapping(_network(item.get("inside"), where), _network(item.get("outside"), where))
        one.check()
        for other in made:
            for side in ("inside", "outside"):
                if getattr(one, side).overlaps(getattr(other, side)):
                    raise bad(f"{getattr(one, side)} and {getattr(other, side)} overlap", where)
        made.append(one)
    return made


def wishes_of(options: Values, *, keys_only: bool = False) -> list[Wish]:
    values: Values = {name: options[name] for name in ("inside_vrf", "outside_vrf") if options.get(name) is not None}
    given = {name: value for name, value in (options.get("timeouts") or {}).items() if value is not None}
    if any(not 1 <= value < 2**31 for value in given.values()):
        raise bad("a timeout can be 1 to 2147483647 seconds", "timeouts")
    if given:
        values["timeouts"] = Timeouts(**given)
    wishes = [Wish(PLUGIN, values)]
    for item in options.get("interfaces") or ():
        if not item.get("role") and not keys_only:
            raise bad("it needs its role", f"interfaces, {item['name']}")
        wishes.append(Wish((INTERFACE, item["name"]), {"role": item.get("role")}))
    wishes += [Wish(one.key, {}) for one in mappings_of(options)]
    keys = [wish.key for wish in wishes]
    twice = next((key for key in keys if keys.count(key) > 1), None)
    if twice:
        raise bad("it stands twice", " ".join(twice))
    return wishes


def run(session: Session, options: Values, state: str, *, check_mode: bool = False) -> dict[str, t.Any]:
    """Returns the keyword arguments for ``exit_json``."""
    deleting = state == "deleted"
    wishes = wishes_of(options, keys_only=deleting)
    if not session.has("det44_plugin_enable_disable"):
        raise message_missing("det44_plugin_enable_disable", session.version())
    kind = Det44Kind(session)
    users = [str(one) for one in options.get("users") or ()]
    if state == "gathered":
        current = kind.read(session, (), everything=True)
        return {"changed": False, "changes": [], **_told(session, kind, current, users)}
    if state == "cleared":
        return _clear(session, kind, check_mode=check_mode)
    if state == "closed":
        return _close(session, options.get("close") or (), check_mode=check_mode)
    if state == "replaced":
        wishes[0] = Wish(PLUGIN, {"timeouts": DEFAULT_TIMEOUTS, **wishes[0].values})
    keys = [wish.key for wish in wishes]

    def doomed(current: dict[Key, Found]) -> list[Key]:
        if deleting:
            return keys[1:] or list(current)
        return [key for key in current if key not in keys] if state == "replaced" else []

    switched = False
    if not deleting:
        _judge(session, kind, wishes, kind.read(session, wishes, everything=True), keep=state == "merged")
        if not check_mode and not kind.known_on:
            # VPP tells whether it was on only in the answer to this
            switched = session.batch([det44.switch_on(wishes[0].values)])[0].retval != det44.ALREADY
            kind.known_on = True
    try:
        outcome = reconcile(
            kind,
            session,
            [] if deleting else wishes,
            also=keys,
            remove=doomed,
            check_mode=check_mode,
        )
    except BenchError as err:
        if err.code == "needs_recreate":
            raise VppError(
                "DET44 is on in other VRFs, and VPP does not survive that it is switched off",
                where="inside_vrf, outside_vrf",
                remedy="Restart VPP, and ask for these VRFs first",
                code="needs_restart",
            ) from err
        raise
    told = difference(kind, outcome)
    if switched:
        told["changes"].insert(0, {"name": kind.name(PLUGIN), "action": "create"})
        told["diff"]["after"].setdefault(kind.name(PLUGIN), {})
    left = det44.surplus(session, kind)
    if not check_mode:
        det44.take_off(session, kind, left)
        if left and det44.surplus(session, kind):
            raise VppError("VPP's features of DET44 stay on interfaces that it is not on", code="not_as_asked")
    return {
        "changed": outcome.changed or switched or bool(left),
        **told,
        **_told(session, kind, outcome.after, users),
    }


def _judge(
    session: Session, kind: Det44Kind, wishes: t.Sequence[Wish], current: t.Mapping[Key, Found], *, keep: bool
) -> None:
    """Raise when VPP cannot make it true, also where VPP itself would not say so, or would not survive it."""
    interfaces = {wish.key[1] for wish in wishes if wish.key[0] == INTERFACE}
    for name in interfaces:
        if name not in kind.indexes:
            names = ", ".join(sorted(one for one in kind.indexes if one != "local0")) or "none"
            raise VppError(
                f"VPP has no interface {name}", where=INTERFACE, remedy=f"There are: {names}", code="no_interface"
            )
    for mode in (ED, EI):
        if is_on(session, mode):
            rows = session.call(mode.request("interface_dump"))
            both = sorted(interfaces & {kind.names.get(row.sw_if_index, "") for row in rows})
            if both:
                raise VppError(
                    f"NAT44 {mode.name} is on the same interface, and a packet would meet whichever is first",
                    where=", ".join(both),
                    remedy="Take it off there first, with vpp_nat44",
                    code="nat44_conflict",
                )
    wanted = [_mapping(wish.key) for wish in wishes if wish.key[0] == MAP]
    there = [_mapping(key) for key in current if key[0] == MAP]
    for one in wanted:
        for other in there if keep else ():
            if one != other and (one.inside.overlaps(other.inside) or one.outside.overlaps(other.outside)):
                raise VppError(
                    f"{one.inside} to {one.outside} overlaps {other.inside} to {other.outside}, which is there",
                    where="mappings",
                    remedy="Remove that one first (state deleted), or use state replaced",
                    code="det44_overlap",
                )
    needed = sum(one.memory_bytes for one in wanted if one not in there)
    if needed:
        free = info.read(session, ["memory"])["memory"]["free_bytes"]
        if needed > free:
            raise VppError(
                f"VPP keeps {SESSIONS_PER_ADDRESS} sessions for each inside address, so these mappings take "
                f"{needed // 2**20} MiB of its main heap, of which {free // 2**20} MiB are free; without any it ends",
                where="mappings",
                remedy="Give VPP a larger main-heap-size in startup.conf, or map fewer addresses",
                code="no_memory",
            )


def _mapping(key: Key) -> Mapping:
    return Mapping(*(ipaddress.IPv4Network(text) for text in key[1:]))


def _told(
    session: Session, kind: Det44Kind, current: t.Mapping[Key, Found], users: t.Sequence[str]
) -> dict[str, t.Any]:
    plugin = current.get(PLUGIN)
    told: Values = {"enabled": plugin is not None}
    if plugin is not None:
        told["timeouts"] = dataclasses.asdict(plugin.values["timeouts"])
        sides = sorted((key[1], found.values["role"]) for key, found in current.items() if key[0] == INTERFACE)
        told["interfaces"] = [{"name": name, "role": role} for name, role in sides]
        told["mappings"] = [
            {"inside": key[1], "outside": key[2]} for key in sorted(key for key in current if key[0] == MAP)
        ]
    return {"det44": told, "sessions": _counts(session, kind, users)}


def _counts(session: Session, kind: Det44Kind, users: t.Sequence[str]) -> dict[str, t.Any]:
    kind.read(session, (), everything=True)
    rows = []
    for key, number in sorted(kind.sessions.items()):
        one = _mapping(key)
        room = one.inside.num_addresses * min(SESSIONS_PER_ADDRESS, one.ports)
        rows.append(
            {
                "inside": key[1],
                "outside": key[2],
                "sharing": one.sharing,
                "ports_per_address": one.ports,
                "sessions": number,
                "full": number / room,
            }
        )
    listed = [one for user in users for one in _of_user(session, user)]
    told: dict[str, t.Any] = {"total": sum(kind.sessions.values()), "mappings": rows}
    if users:
        told["users"] = {user: [one for one in listed if one["inside"] == user] for user in users}
        told["users_full"] = [user for user in users if len(told["users"][user]) >= _NEARLY_FULL * SESSIONS_PER_ADDRESS]
    return told


def _of_user(session: Session, user: str) -> list[dict[str, t.Any]]:
    return [
        {
            "inside": user,
            "inside_port": row.in_port,
            "outside_port": row.out_port,
            "external": str(row.ext_addr),
            "external_port": row.ext_port,
            "state": _STATES_OF_SESSIONS[row.state] if row.state < len(_STATES_OF_SESSIONS) else str(row.state),
        }
        for row in session.call("det44_session_dump", user_addr=user)
    ]


def _clear(session: Session, kind: Det44Kind, *, check_mode: bool) -> dict[str, t.Any]:
    """Its sessions live in the mappings: one that is made again has none."""
    kind.read(session, (), everything=True)
    before = sum(kind.sessions.values())
    result: dict[str, t.Any] = {"changed": before > 0, "sessions_before": _counts(session, kind, ())}
    result["diff"] = {"before": {"sessions": before}, "after": {"sessions": 0}}
    if not check_mode:
        for attempt in range(_CLEAR_TRIES):
            if attempt:
                time.sleep(_SETTLE_S)
            session.batch(kind.clearing([key for key, number in kind.sessions.items() if number]))
            kind.read(session, (), everything=True)
            if not sum(kind.sessions.values()):
                break
        else:
            raise VppError(
                f"{sum(kind.sessions.values())} sessions were there again after each of {_CLEAR_TRIES} tries",
                where="DET44",
                remedy="Stop the traffic first: each of its packets opens its session again",
                code="sessions_left",
            )
    return {**result, "sessions": _counts(session, kind, ())}


def _close(session: Session, those: t.Sequence[Values], *, check_mode: bool) -> dict[str, t.Any]:
    """Single sessions, by their inside end."""
    there = {
        (one["inside"], one["inside_port"], one["external"], one["external_port"])
        for user in sorted({str(item["inside"]) for item in those})
        for one in _of_user(session, user)
    }
    names = ("inside", "inside_port", "external", "external_port")
    asked = [tuple(str(item[name]) if "port" not in name else int(item[name]) for name in names) for item in those]
    found = [one for one in asked if one in there]
    # VPP answers with the reply of this one, so it has to be known by then
    if not check_mode and session.has("det44_close_session_out"):
        session.batch(
            [
                Call(
                    "det44_close_session_in",
                    {"in_addr": one[0], "in_port": one[1], "ext_addr": one[2], "ext_port": one[3]},
                    # it may have gone by itself meanwhile
                    (-6,),
                )
                for one in found
            ]
        )
    return {"changed": bool(found), "closed": [dict(zip(names, one)) for one in found]}
