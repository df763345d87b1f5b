# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How many sessions a NAT44 of VPP holds, and getting rid of them."""

from __future__ import annotations

import dataclasses
import re
import time
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import ParseError
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.errors import VppError
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.nat44 import ED, PROTOCOLS, Mode, read_limits
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.runtime import Reader
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.session import Call, Session

#: Above this, VPP is not asked for each session only to learn its protocol.
MAX_LISTED = 10_000
#: What a packet is dropped for when it would open a session, by the reason that VPP counts it under.
DROPS = {"out of ports": "out_of_ports", "maximum sessions exceeded": "sessions_exceeded"}
#: Packets that were under way when the table was cleared open sessions again. Traffic that goes on does so for ever.
_CLEAR_TRIES, _SETTLE_S = 5, 0.1


@dataclasses.dataclass
class Counts:
    """Sessions of one NAT44. None is unknown."""

    total: int
    timed_out: int | None = None
    #: By protocol: total, timed_out, and for tcp established and transitory.
    protocols: dict[str, dict[str, int | None]] | None = None
    #: By thread of VPP; 0 is the main thread.
    threads: list[int] | None = None
    #: How many a thread can hold.
    max_per_thread: int = 0
    #: VRF -> its limit, where there are such limits.
    limits: dict[int, int] | None = None
    #: Packets that opened no session, since VPP's counters were cleared.
    drops: dict[str, int] | None = None
    why: str | None = None

    @property
    def full(self) -> float | None:
        """Part of what it may hold that the fullest thread has in use; the tightest limit of a VRF counts."""
        fullest = max(self.threads) if self.threads else self.total
        room = min([self.max_per_thread, *(self.limits or {}).values()])
        return fullest / room if room else None

    def as_result(self) -> dict[str, t.Any]:
        result = {name: value for name, value in dataclasses.asdict(self).items() if name != "why" or value}
        return {**result, "full": self.full}


@dataclasses.dataclass(frozen=True)
class Clearing:
    """How long it took until there were no sessions: what VPP did, and until none was found any more."""

    command_s: float
    proven_s: float
    tries: int


_TOTAL = re.compile(r"total sessions: (\d+)(?: \(timed out: (\d+)\))?")
_BLOCK = re.compile(r"(\w+) sessions:")
_PART = re.compile(r"(total|established|transitory): (\d+)(?: \(timed out: (\d+)\))?")
#: As VPP of about 20.09 has it: each count on a line of its own.
_OLD_TIMED_OUT = re.compile(r"total timed out sessions: (\d+)")
_OLD_COUNT = re.compile(r"total (tcp|udp|icmp|other)(?: (established|transitory))? sessions: (\d+)")


def parse_summary(text: str) -> tuple[int, int | None, dict[str, dict[str, int | None]]]:
    """The counts of ``show nat44 summary``: total, timed out, and by protocol.

    Today it has a block for each protocol, in which "total:" is that protocol's; VPP of about 20.09 has lines.
    """
    total: int | None = None
    timed_out: int | None = None
    protocols: dict[str, dict[str, int | None]] = {}
    block: dict[str, int | None] | None = None
    for line in (raw.strip() for raw in text.splitlines()):
        if found := _TOTAL.fullmatch(line):
            total, timed_out, block = int(found[1]), int(found[2]) if found[2] else timed_out, None
        elif found := _BLOCK.fullmatch(line):
            block = protocols.setdefault(found[1], {})
        elif found := _PART.fullmatch(line):
            if block is None:
                raise ParseError("a count in VPP's 'show nat44 summary' belongs to no protocol", line=line)
            block[found[1]] = int(found[2])
            if found[1] == "total":
                block["timed_out"] = int(found[3]) if found[3] else None
        elif found := _OLD_TIMED_OUT.fullmatch(line):
            timed_out = int(found[1])
        elif found := _OLD_COUNT.fullmatch(line):
            protocols.setdefault(found[1], {})[found[2] or "total"] = int(found[3])
    if total is None:
        raise ParseError("VPP's 'show nat44 summary' has no total", line=text.strip().split("\n", maxsplit=1)[0])
    for name, counts in protocols.items():
        if "total" not in counts:
            raise ParseError(f"VPP's 'show nat44 summary' has no total for {name}", line=name)
    return total, timed_out, protocols


def count(session: Session, mode: Mode, stats_socket: str | None = None) -> Counts | None:
    """What is there now; None when this NAT44 is off."""
    config = session.call(mode.request("show_running_config"))
    if not config.sessions:
        return None
    if mode is ED:
        text = session.call("cli_inband", cmd="show nat44 summary").reply
        total, timed_out, protocols = parse_summary(text)
        counts = Counts(total, timed_out, dict(protocols), limits=read_limits(session))
        counts.max_per_thread = max(config.sessions, *(counts.limits or {0: 0}).values())
    else:
        users = session.call(mode.request("user_dump"))
        counts = Counts(sum(user.nsessions + user.nstaticsessions for user in users), max_per_thread=config.sessions)
        counts.protocols = _listed(session, mode, users, counts.total)
        if counts.protocols is None:
            counts.why = f"more than {MAX_LISTED} sessions, whose protocols are not asked for one by one"
    if stats_socket:
        _from_segment(counts, mode, stats_socket)
    return counts


def _listed(
    session: Session, mode: Mode, users: t.Sequence[t.Any], total: int
) -> dict[str, dict[str, int | None]] | None:
    if total > MAX_LISTED:
        return None
    calls = [
        Call(mode.request("user_session_dump"), {"ip_address": user.ip_address, "vrf_id": user.vrf_id})
        for user in users
    ]
    names = {number: name for name, number in PROTOCOLS.items()}
    protocols: dict[str, dict[str, int | None]] = {name: {"total": 0} for name in (*PROTOCOLS, "other")}
    for row in (row for rows in session.batch(calls) for row in rows):
        held = protocols[names.get(int(row.protocol), "other")]
        held["total"] = (held["total"] or 0) + 1
    return protocols


def _from_segment(counts: Counts, mode: Mode, path: str) -> None:
    """What only VPP's statistics tell: sessions by thread, and packets that opened none."""
    reader = Reader(path)
    try:
        rows = reader.segment.counters(f"/nat44-{mode.short}/total-sessions")
        errors = reader.snapshot(with_nodes=False).errors
    except VppError as err:
        counts.why = f"not by thread, and no drops: {err}"
        return
    finally:
        reader.close()
    counts.threads = None if rows is None else [sum(row) for row in rows]
    counts.drops = dict.fromkeys(DROPS.values(), 0)
    for (node, reason), number in errors.items():
        if node.startswith(f"nat44-{mode.short}-") and reason in DROPS:
            counts.drops[DROPS[reason]] += number


def clear(session: Session, mode: Mode, stats_socket: str | None = None) -> tuple[Counts, Clearing]:
    """Remove all sessions, and see that none is left.

    :raises VppError: sessions are there again each time, so traffic goes on.
    """
    left = 0
    command_s = 0.0
    begin = time.monotonic()
    for attempt in range(_CLEAR_TRIES):
        if attempt:
            time.sleep(_SETTLE_S)
        asked = time.monotonic()
        _clear(session, mode)
        command_s += time.monotonic() - asked
        counts = count(session, mode, stats_socket)
        if counts is None:
            raise VppError("NAT44 was switched off meanwhile", where=mode.name, code="nat44_off")
        left = max(counts.total, sum(counts.threads or ()))
        if not left:
            return counts, Clearing(command_s, time.monotonic() - begin, attempt + 1)
    raise VppError(
        f"{left} sessions were there again after each of {_CLEAR_TRIES} tries",
        where=mode.name,
        remedy="Stop the traffic first: each of its packets opens its session again",
        code="sessions_left",
    )


def _clear(session: Session, mode: Mode) -> None:
    """VPP's API can only remove one session at a time. The command was renamed when there came to be two NAT44."""
    last: VppError | None = None
    for command in (f"clear nat44 {mode.short} sessions", "clear nat44 sessions"):
        try:
            session.call("cli_inband", cmd=command)
        except VppError as err:
            last = err
            if getattr(err, "retval", None) != -1:
                raise
        else:
            return
    raise VppError(
        f"this VPP has no command that clears the sessions: {last}", where=mode.name, code="vpp_request_unknown"
    )
