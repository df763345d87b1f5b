# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The daemon's state: what it has loaded, and its security associations with their counters."""

from __future__ import annotations

import dataclasses
import time
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common import command
from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._ipsec.plan import NAME
from ansible_collections.fastpath.bench.plugins.module_utils._ipsec.proposal import Proposal
from ansible_collections.fastpath.bench.plugins.module_utils._ipsec.vici import Message, Session, ViciError

INSTALLED = "INSTALLED"
_POLL_S = 0.2
#: In the daemon's log.
_TELLING = ("received ", "unable", "failed", "no ", "giving up", "mismatch", "retransmit 5")
#: Of the daemon's list of algorithms: how older versions call a section.
_SECTIONS = {"dh": "ke"}


@dataclasses.dataclass(frozen=True)
class Sa:
    """One CHILD_SA with its counters, which begin anew with each rekey."""

    connection: str
    child: str
    state: str
    mode: str
    encryption: str
    key_bits: int
    integrity: str | None
    if_id_in: int | None
    if_id_out: int | None
    spi_in: str
    spi_out: str
    local: str
    remote: str
    encap: bool
    bytes_in: int
    packets_in: int
    bytes_out: int
    packets_out: int

    @property
    def algorithm(self) -> str:
        return "/".join(part for part in (f"{self.encryption}-{self.key_bits}", self.integrity) if part)


def algorithms(answer: t.Mapping[str, t.Mapping[str, str]]) -> dict[str, frozenset[str]]:
    """The names that the daemon has loaded, by section; older versions call the key exchanges ``dh``."""
    return {_SECTIONS.get(section, section): frozenset(names) for section, names in answer.items()}


def loaded_algorithms(session: Session) -> dict[str, frozenset[str]]:
    found = algorithms(session.request("get-algorithms"))
    if not any(found.values()):
        raise ViciError("the daemon names no algorithm at all", remedy="Restart it", code="empty_answer")
    return found


def parse_sas(events: t.Sequence[Message]) -> list[Sa]:
    """The CHILD_SAs in the messages of ``list-sas``.

    :raises ViciError: a counter is missing or no number. It is never taken for 0.
    """
    found: list[Sa] = []
    for event in events:
        for connection, ike in event.items():
            for child in ike.get("child-sas", {}).values():
                found.append(_sa(connection, ike, child))
    return found


def _sa(connection: str, ike: Message, child: Message) -> Sa:
    name = str(child.get("name", ""))
    # an SA that is being made has no algorithms, ids and counters yet
    made = child.get("state") in ("INSTALLED", "REKEYING", "REKEYED", "DELETING", "UPDATING")
    counters = {key: _number(child, key, name, made) for key in ("bytes-in", "packets-in", "bytes-out", "packets-out")}
    return Sa(
        connection=connection,
        child=name,
        state=str(child.get("state", "")),
        mode=str(child.get("mode", "")),
        encryption=str(child.get("encr-alg", "")),
        key_bits=int(child.get("encr-keysize", 0)),
        integrity=str(child["integ-alg"]) if child.get("integ-alg") else None,
        if_id_in=_hex(child.get("if-id-in")),
        if_id_out=_hex(child.get("if-id-out")),
        spi_in=str(child.get("spi-in", "")),
        spi_out=str(child.get("spi-out", "")),
        local=str(ike.get("local-host", "")),
        remote=str(ike.get("remote-host", "")),
        encap=child.get("encap") == "yes",
        bytes_in=counters["bytes-in"],
        packets_in=counters["packets-in"],
        bytes_out=counters["bytes-out"],
        packets_out=counters["packets-out"],
    )


def _number(child: Message, key: str, name: str, made: bool) -> int:
    text = child.get(key)
    if text is None and not made:
        return 0
    if text is None or not str(text).isdigit():
        raise ViciError(f"CHILD_SA {name} has {text!r} as {key}", code="unreadable_output")
    return int(text)


def _hex(text: t.Any) -> int | None:
    return int(str(text), 16) if text else None


def list_sas(session: Session) -> list[Sa]:
    """The CHILD_SAs of this collection's connections."""
    return [sa for sa in parse_sas(session.stream("list-sas", "list-sa")) if sa.connection.startswith(f"{NAME}-")]


def own_connections(session: Session) -> list[str]:
    """The names of this collection's connections that the daemon has."""
    names = session.request("get-conns").get("conns", [])
    return [name for name in names if name.startswith(f"{NAME}-")]


def load(session: Session, expected: t.Collection[str], *, limit_s: float) -> None:
    """Have the daemon read its files, and see that our connections came with it.

    swanctl is told to be quiet about nothing: no output with status 0 was seen from one that did nothing.
    """
    argv = ["swanctl", "--load-all", "--noprompt"]
    if session.path:
        argv += ["--uri", f"unix://{session.path}"]
    done = command.run(argv, limit_s=limit_s).check()
    if not (done.stdout + done.stderr).strip():
        raise ViciError(
            "swanctl --load-all said nothing", remedy="It did nothing, then: look at the daemon", code="empty_answer"
        )
    # the daemon was seen to go away right after loading
    session.connect(min(limit_s, 5.0))
    missing = sorted(set(expected) - set(own_connections(session)))
    if missing:
        said = " / ".join(line for line in done.message.split(" / ") if "fail" in line or NAME in line)
        raise ViciError(
            f"the daemon did not take {', '.join(missing)}: {said or done.message}",
            remedy="A word in swanctl.conf is unknown to this version, or a proposal has an algorithm that it lacks",
            code="connection_not_loaded",
        )


def unload(session: Session) -> list[str]:
    """End this collection's tunnels and forget their connections; the names of those that were there."""
    names = own_connections(session)
    for name in names:
        session.request("unload-conn", {"name": name})
    up = {name for event in session.stream("list-sas", "list-sa") for name in event if name.startswith(f"{NAME}-")}
    for name in sorted(up):
        # forced: a peer that is gone must not delay it; the daemon says no when the SA has just ended by itself
        try:
            session.request("terminate", {"ike": name, "force": True, "timeout": 3000}, limit_s=6.0)
        except ViciError as err:
            if err.code != "vici_refused":
                raise
    try:
        session.request("unload-shared", {"id": f"ike-{NAME}"})
    except ViciError as err:
        if err.code != "vici_refused":  # there was none
            raise
    return sorted({*names, *up})


@dataclasses.dataclass(frozen=True)
class Expected:
    """What a tunnel's SA must be."""

    name: str
    proposals: tuple[Proposal, ...]
    if_id: int | None


def judge(sas: t.Sequence[Sa], expected: t.Sequence[Expected]) -> tuple[list[str], BenchError | None]:
    """What is not up yet, and what is up and wrong."""
    waiting: list[str] = []
    for tunnel in expected:
        up = [sa for sa in sas if sa.child == tunnel.name and sa.state == INSTALLED]
        if not up:
            states = sorted({sa.state for sa in sas if sa.child == tunnel.name})
            waiting.append(f"{tunnel.name} is {', '.join(states) or 'not there'}")
            continue
        for sa in up:
            wrong = _wrong(sa, tunnel)
            if wrong:
                return waiting, wrong
    return waiting, None


def _wrong(sa: Sa, tunnel: Expected) -> BenchError | None:
    asked = [_algorithm(one) for one in tunnel.proposals]
    if sa.algorithm not in asked:
        return BenchError(
            f"{sa.child} uses {sa.algorithm}, asked for was {' or '.join(asked)}",
            where="CHILD_SA",
            code="wrong_algorithm",
        )
    if (sa.if_id_in, sa.if_id_out) != (tunnel.if_id, tunnel.if_id):
        shown = [f"{one:#x}" if one is not None else "none" for one in (sa.if_id_in, sa.if_id_out, tunnel.if_id)]
        return BenchError(
            f"{sa.child} has if_id {shown[0]} in and {shown[1]} out, its interface has {shown[2]}",
            where="CHILD_SA",
            remedy="Traffic would pass the tunnel by or be dropped; apply the role again on both gateways",
            code="if_id_mismatch",
        )
    if sa.mode != "TUNNEL":
        return BenchError(f"{sa.child} is in mode {sa.mode}", where="CHILD_SA", code="wrong_mode")
    return None


def _algorithm(proposal: Proposal) -> str:
    integrity = proposal.integrity.name if proposal.integrity else None
    return "/".join(part for part in (f"{proposal.cipher.name}-{proposal.cipher.key_bits}", integrity) if part)


def initiate(session: Session, name: str, *, limit_s: float) -> str | None:
    """Build one tunnel; None when it is up, else why not, with the daemon's own words."""
    options = {"ike": name, "child": name, "timeout": int(limit_s * 1000), "loglevel": 1}
    try:
        session.stream("initiate", "control-log", options, limit_s=limit_s + 2.0)
    except ViciError as err:
        if err.code == "vici_refused":
            return " / ".join([*_telling(err.events), err.what])
        raise
    return None


def _telling(events: t.Sequence[Message]) -> list[str]:
    """Of what the daemon told of an attempt, the lines that say why it failed."""
    lines = [str(event.get("msg", "")) for event in events]
    told = (line for line in lines if not line.startswith("received packet"))
    return list(dict.fromkeys(line for line in told if any(word in line for word in _TELLING)))[-3:]


def wait_installed(session: Session, expected: t.Sequence[Expected], *, limit_s: float, initiator: bool) -> list[Sa]:
    """Wait until each tunnel has an SA that is installed and as asked; the initiator builds those that are not there.

    :raises BenchError: not within the limit, or one is not as asked.
    """
    deadline = time.monotonic() + limit_s
    said: dict[str, str] = {}
    while True:
        sas = list_sas(session)
        waiting, wrong = judge(sas, expected)
        if wrong:
            raise wrong
        if not waiting:
            return sas
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            told = "; ".join([*waiting, *(f"{name}: {why}" for name, why in said.items())])
            raise BenchError(
                f"not all tunnels are up after {limit_s:g} s: {told}",
                where="CHILD_SA",
                remedy="Compare proposals, secret and addresses of both gateways; look at the daemon's journal",
                code="tunnel_not_up",
            )
        there = {sa.child for sa in sas} | _begun(session)
        for tunnel in expected if initiator else ():
            if tunnel.name not in there and time.monotonic() < deadline:
                why = initiate(session, tunnel.name, limit_s=max(1.0, min(10.0, deadline - time.monotonic())))
                # a later attempt for which the time did not suffice says less than one that was answered
                if why and (tunnel.name not in said or " / " in why):
                    said[tunnel.name] = why
        time.sleep(_POLL_S)


def _begun(session: Session) -> set[str]:
    """The connections that are being built, by the daemon itself or by the peer."""
    events = session.stream("list-sas", "list-sa")
    return {name for event in events for name, ike in event.items() if ike.get("state") == "CONNECTING"}


def risen(before: t.Sequence[t.Mapping[str, t.Any]], now: t.Sequence[Sa]) -> dict[str, dict[str, int]]:
    """By tunnel, what its SAs carried since. A new SA (a rekey) counts from 0."""
    old = {(row["spi_in"], row["spi_out"]): row for row in before}
    found: dict[str, dict[str, int]] = {}
    for sa in now:
        row = found.setdefault(sa.child, dict.fromkeys(("packets_in", "packets_out", "bytes_in", "bytes_out"), 0))
        was = old.get((sa.spi_in, sa.spi_out), {})
        for key in row:
            row[key] += getattr(sa, key) - int(was.get(key, 0))
    return found


def prove(carried: t.Mapping[str, t.Mapping[str, int]], packets: int) -> None:
    """Refuse to call a path encrypted whose SAs did not carry what was sent.

    :param packets: how many were sent in each direction.
    """
    totals = {key: sum(row[key] for row in carried.values()) for key in ("packets_in", "packets_out")}
    short = [f"{key.replace('_', ' ')}: {value}" for key, value in totals.items() if value < packets]
    if short:
        raise BenchError(
            f"{packets} packets were sent each way, and the security associations counted {', '.join(short)}",
            where="ESP",
            remedy="The traffic does not go through the tunnel: look at routes, policies and interface ids",
            code="plaintext_path",
        )
