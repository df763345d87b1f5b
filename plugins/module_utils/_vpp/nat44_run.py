# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The work of the module vpp_nat44: states, conflicts, results."""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._vpp import nat44_config, nat44_sessions
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.errors import VppError, message_missing
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.nat44 import (
    ED,
    EI,
    INTERFACE,
    INTERFACE_POOL,
    MODES,
    PLUGIN,
    POOL,
    Mode,
    Nat44Kind,
)
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.reconcile import (
    Found,
    Key,
    Outcome,
    Values,
    Wish,
    difference,
    reconcile,
)
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.session import Session

STATES = ("merged", "replaced", "deleted", "gathered", "rendered", "cleared")
#: From here on a table counts as nearly full.
NEARLY_FULL = 0.9


def run(
    session: Session,
    options: Values,
    state: str,
    *,
    reenable: bool = False,
    stats_socket: str | None = None,
    check_mode: bool = False,
) -> dict[str, t.Any]:
    """Everything but ``rendered``. Returns the keyword arguments for ``exit_json``."""
    mode = MODES[options.get("mode") or ED.name]
    deleting = state == "deleted"
    # bad options are said before VPP is asked
    nat44_config.wishes_of(options, mode, 0, keys_only=deleting)
    if not session.has(mode.request("show_running_config")):
        raise message_missing(mode.request("plugin_enable_disable"), session.version())
    if state == "cleared":
        return _clear(session, mode, stats_socket, check_mode=check_mode)
    kind = Nat44Kind(session, mode)
    if state == "gathered":
        current = kind.read(session, (), everything=True)
        return {"changed": False, "changes": [], **_told(session, mode, current, stats_socket)}
    inside_vrf = options.get("inside_vrf")
    if inside_vrf is None:
        inside_vrf = session.call(mode.request("show_running_config")).inside_vrf
    wishes = nat44_config.wishes_of(options, mode, inside_vrf, keys_only=deleting)
    if state == "replaced":
        wishes[0] = nat44_config.filled(wishes[0], mode)
    keys = [wish.key for wish in wishes]
    if not deleting:
        _refuse_both(session, mode)

    def judge(current: dict[Key, Found]) -> None:
        if not deleting:
            _judge(kind, wishes, current)

    def doomed(current: dict[Key, Found]) -> list[Key]:
        if deleting:
            return keys[1:] or [PLUGIN]
        if state == "replaced":
            return [key for key in current if key not in set(keys)]
        return []

    try:
        outcome = reconcile(
            kind,
            session,
            [] if deleting else wishes,
            also=keys,
            remove=doomed,
            recreate=reenable,
            check_mode=check_mode,
            judge=judge,
        )
    except BenchError as err:
        if err.code == "needs_recreate":
            raise _needs_reenable(err) from err
        raise
    removed = {found.key for found in outcome.plan.prune}
    created = {wish.key for wish in outcome.plan.create}
    return {
        "changed": outcome.changed,
        "reenabled": PLUGIN in removed and PLUGIN in created,
        **_shown(kind, outcome),
        **_told(session, mode, outcome.after, stats_socket),
    }


def _shown(kind: Nat44Kind, outcome: Outcome) -> dict[str, t.Any]:
    """Changes and difference; what only comes back as it was after a re-enable is none."""
    told = difference(kind, outcome)
    before, after = told["diff"]["before"], told["diff"]["after"]
    same = {name for name in before if name in after and before[name] == after[name]}
    changes = [change for change in told["changes"] if change["name"] not in same]
    for side in (before, after):
        for name in same:
            del side[name]
    return {"changes": changes, "diff": {"before": before, "after": after}}


def _needs_reenable(err: BenchError) -> VppError:
    return VppError(
        str(err.what).replace("cannot be changed in place: ", "only switching NAT44 off and on changes it: "),
        remedy="With reenable: true that is done: all sessions are lost, interfaces, pools and mappings come back. "
        "Nothing was changed",
        code="needs_reenable",
    )


def is_on(session: Session, mode: Mode) -> bool:
    request = mode.request("show_running_config")
    return session.has(request) and bool(session.call(request).sessions)


def _refuse_both(session: Session, mode: Mode) -> None:
    other = EI if mode is ED else ED
    if is_on(session, other):
        raise VppError(
            f"NAT44 {other.name} is on in this VPP, which would take both, and a packet would meet whichever is first",
            where=mode.name,
            remedy=f"Switch the other one off first: mode {other.name}, state deleted",
            code="nat44_conflict",
        )


def _judge(kind: Nat44Kind, wishes: t.Sequence[Wish], current: t.Mapping[Key, Found]) -> None:
    """Raise when VPP cannot make it true, also where VPP itself would not say so."""
    for wish in wishes[1:]:
        place = wish.key[1]
        named = wish.key[0] in (INTERFACE, INTERFACE_POOL) or not place.replace(".", "").isdigit()
        if named and place not in kind.indexes:
            names = ", ".join(sorted(name for name in kind.indexes if name != "local0")) or "none"
            raise VppError(
                f"VPP has no interface {place}",
                where=kind.name(wish.key),
                remedy=f"There are: {names}",
                code="no_interface",
            )
    running = current[PLUGIN].values if PLUGIN in current else {}
    asked = wishes[0].values
    sessions = asked.get("sessions") or running.get("sessions") or kind.mode.fixed["sessions"]
    given = asked.get("session_limits")
    for limit in getattr(given, "limits", given) or ():
        if limit.sessions > sessions:
            raise BenchError(
                f"the limit {limit.sessions} of VRF {limit.vrf} is above the {sessions} sessions of a thread",
                where="session_limits",
                remedy="Ask for more sessions",
                code="bad_option",
            )
    if asked.get("connection_tracking") and not asked.get("static_mapping_only"):
        raise nat44_config.bad("it means something with static_mapping_only alone", "connection_tracking")


def _told(session: Session, mode: Mode, current: t.Mapping[Key, Found], stats_socket: str | None) -> dict[str, t.Any]:
    counts = nat44_sessions.count(session, mode, stats_socket) if PLUGIN in current else None
    result: dict[str, t.Any] = {"nat44": nat44_config.as_config(current, mode)}
    result["sessions"] = counts.as_result() if counts is not None else None
    result["findings"] = _findings(counts, current)
    return result


def _findings(counts: nat44_sessions.Counts | None, current: t.Mapping[Key, Found]) -> list[dict[str, t.Any]]:
    found: list[dict[str, t.Any]] = []
    if counts is None:
        return found
    if counts.full is not None and counts.full >= NEARLY_FULL:
        found.append(
            {
                "code": "nat_table_nearly_full",
                "severity": "warning",
                "evidence": f"A thread has {counts.full:.0%} of the sessions that it may hold ({counts.total} in all)",
                "remedy": "Clear the sessions before measuring (state cleared), or ask for more sessions",
            }
        )
    kinds = {key[0] for key in current}
    if INTERFACE in kinds and POOL not in kinds and INTERFACE_POOL not in kinds:
        found.append(
            {
                "code": "nat_without_pool",
                "severity": "info",
                "evidence": "No pool has an address, so only mappings translate",
                "remedy": "Give pools",
            }
        )
    return found


def _clear(session: Session, mode: Mode, stats_socket: str | None, *, check_mode: bool) -> dict[str, t.Any]:
    before = nat44_sessions.count(session, mode, stats_socket)
    if before is None:
        raise VppError(
            "NAT44 is off, so it has no sessions to clear",
            where=mode.name,
            remedy="Have it first, with state merged",
            code="nat44_off",
        )
    result: dict[str, t.Any] = {"changed": before.total > 0, "sessions_before": before.as_result()}
    after = before
    result["clearing"] = None
    if before.total and not check_mode:
        after, clearing = nat44_sessions.clear(session, mode, stats_socket)
        result["clearing"] = dataclasses.asdict(clearing)
    result["sessions"] = after.as_result()
    changes = [{"name": "sessions", "action": "set", "property": "total", "before": before.total, "after": 0}]
    result["changes"] = changes if before.total else []
    shown = {"sessions": before.total}
    result["diff"] = {"before": shown, "after": {"sessions": 0} if before.total else shown}
    return result
