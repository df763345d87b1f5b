# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Does the path between two hosts carry what a benchmark sends over it?

Ping alone says little: it passes where TCP is dead because of checksums that
nobody fills in (veth into af_packet), it passes where frames of full size
vanish, and it passes by the wrong interface. So a responder on the server and
a prober on the client try each kind of traffic in each direction, and
:func:`judge` makes one verdict of what they saw.

The two sides also talk by UDP datagrams without a checksum. Those get through
where checksums are broken, and bring back how many segments the server threw
away for that reason.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
import errno
import os
import time
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._host.path_prober import (
    Datagram,
    Probe,
    Prober,
    Seen,
    Transfer,
)


@dataclasses.dataclass(frozen=True)
class Check:
    """One thing that was tried. ``ok`` is None when it could not be tried."""

    name: str
    ok: bool | None
    evidence: str
    remedy: str | None = None


@dataclasses.dataclass(frozen=True)
class Verdict:
    """What it all means; ``code`` is ``ok`` or a stable word for what is wrong."""

    code: str
    message: str
    remedy: str | None = None

    @property
    def ok(self) -> bool:
        return self.code == "ok"


def checks_of(seen: Seen) -> list[Check]:
    """All that was tried against one address, in the order in which one would look."""
    checks = [_route_check(seen)]
    if seen.udp is None and seen.tcp is None:
        return checks
    if seen.ping_impossible:
        checks += [Check(name, None, seen.ping_impossible, "Run as root (become)") for name in ("ping", "ping_mtu")]
    else:
        for name, echo in (("ping", seen.ping), ("ping_mtu", seen.ping_mtu)):
            if echo is not None:
                told = f"; {echo.named_by} says the MTU is {echo.named_mtu}" if echo.named_mtu else ""
                checks.append(Check(name, echo.ok, echo.text() + told))
    for name, datagram in (
        ("udp", seen.udp),
        ("udp_mtu_forward", seen.udp_mtu_forward),
        ("udp_mtu_reverse", seen.udp_mtu_reverse),
    ):
        if datagram is not None:
            checks.append(Check(name, datagram.answered, datagram.text()))
    checks += _way_checks(seen)
    if seen.tcp is not None:
        checks += _tcp_checks(seen.tcp)
    return checks


def _route_check(seen: Seen) -> Check:
    expected = seen.probe.expected_interface
    if seen.route_error is not None:
        return Check("route", False, seen.route_error)
    if seen.route_unknown is not None:
        # That is no fault of the path; but what was to be proven is then not proven.
        return Check("route", False if expected else None, seen.route_unknown)
    route = seen.route
    evidence = f"leaves by {route['device']} from {route['source']}" + (f" via {route['via']}" if route["via"] else "")
    if expected and route["device"] != expected:
        return Check(
            "route",
            False,
            f"{evidence}, not by {expected}",
            f"Set the addresses and routes so that it leaves by {expected}",
        )
    return Check("route", True, evidence)


def _way_checks(seen: Seen) -> list[Check]:
    """Where packets came in, and over how many routers."""
    if seen.udp is None or not seen.udp.answered:
        return []
    checks = []
    probe, answer = seen.udp, seen.udp.answer
    for name, expected, found, who in (
        ("interface_reverse", seen.probe.expected_interface, probe.interface, "the client"),
        ("interface_forward", seen.probe.expected_server_interface, answer.get("interface"), "the server"),
    ):
        if expected:
            remedy = None if found == expected else "Set the routes so that both directions use the data interfaces"
            checks.append(Check(name, found == expected, f"came in at {who} by {found}, expected {expected}", remedy))
    if seen.probe.expected_hops is not None:
        for name, hops in (("hops_forward", answer.get("hops")), ("hops_reverse", probe.hops)):
            good = hops == seen.probe.expected_hops
            remedy = None if good else "Traffic must pass the router under test, and nothing else"
            checks.append(Check(name, good, f"{hops} routers on the way, expected {seen.probe.expected_hops}", remedy))
    return checks


def _tcp_checks(transfer: Transfer) -> list[Check]:
    if not transfer.connected:
        evidence = f"no connection: {transfer.error}"
        return [Check("tcp_forward", False, evidence), Check("tcp_reverse", False, evidence)]
    wanted = transfer.wanted_bytes
    if transfer.server_bytes is None:
        forward = (
            f"{transfer.sent_bytes} of {wanted} bytes handed over, the server did not confirm them: {transfer.error}"
        )
    else:
        forward = f"the server received {transfer.server_bytes} of {wanted} bytes"
        if transfer.forward_intact is False:
            forward += ", and they were altered"
        elif transfer.forward_s:
            forward += f" in {1000 * transfer.forward_s:.0f} ms"
    reverse = f"{transfer.received_bytes} of {wanted} bytes received"
    if transfer.reverse_intact is False and transfer.received_bytes == wanted:
        reverse += ", and they were altered"
    elif transfer.error:
        reverse += f": {transfer.error}"
    elif transfer.reverse_s is not None:
        reverse += f" in {1000 * transfer.reverse_s:.0f} ms"
    return [Check("tcp_forward", transfer.forward_ok, forward), Check("tcp_reverse", transfer.reverse_ok, reverse)]


def judge(seen: Seen) -> Verdict:
    """One verdict. The first rule that fits decides, from the plainest cause to the subtlest."""
    checks = {check.name: check for check in checks_of(seen)}
    for rule in (_judge_route, _judge_silence, _judge_checksum, _judge_mtu, _judge_tcp, _judge_rest):
        verdict = rule(seen, checks)
        if verdict is not None:
            return verdict
    return Verdict("ok", f"the path to {seen.probe.address} carries ICMP, UDP and TCP in both directions")


_Checks = t.Mapping[str, Check]


def _judge_route(seen: Seen, checks: _Checks) -> Verdict | None:
    route = checks["route"]
    address = seen.probe.address
    if route.ok is False and seen.route_unknown:
        return Verdict(
            "route_unknown",
            f"by which interface traffic to {address} leaves is not known: {seen.route_unknown}",
            "Install iproute2 on the client, or leave expected_interface out",
        )
    if route.ok is False:
        code = "no_route" if seen.route_error else "wrong_interface"
        what = f"there is no route to {address}: " if seen.route_error else f"traffic to {address} "
        return Verdict(code, what + route.evidence, route.remedy or "Set an address and a route for it")
    for name in ("interface_forward", "interface_reverse"):
        if name in checks and checks[name].ok is False:
            return Verdict("wrong_interface", f"traffic of {address} {checks[name].evidence}", checks[name].remedy)
    for name in ("hops_forward", "hops_reverse"):
        if name in checks and checks[name].ok is False:
            return Verdict("wrong_path", f"{name} of {address}: {checks[name].evidence}", checks[name].remedy)
    return None


def _works(datagram: Datagram | None) -> bool:
    return datagram is not None and datagram.answered


def _judge_silence(seen: Seen, _checks: _Checks) -> Verdict | None:
    address, port = seen.probe.address, seen.probe.port
    tcp = seen.tcp or Transfer(0)
    if tcp.refused or (
        seen.udp is not None and seen.udp.error == os.strerror(errno.ECONNREFUSED) and not tcp.connected
    ):
        return Verdict(
            "server_missing",
            f"{address} is reached, but nothing listens on port {port}",
            "Start the responder there first (state=listening), and use the port that it returns",
        )
    ping_ok = seen.ping is not None and seen.ping.ok
    if ping_ok or _works(seen.udp) or _works(seen.without_checksum) or tcp.connected:
        return None
    said = (seen.ping.error if seen.ping else None) or tcp.error
    if said == os.strerror(errno.EHOSTUNREACH):
        by = seen.ping.named_by if seen.ping else None
        where = (
            f"router {by} reports it unreachable"
            if by and by != seen.route.get("source")
            else "no neighbour answers for it"
        )
        return Verdict(
            "unreachable", f"{address}: {where}", "Check that the interfaces are up and cabled, and the addresses right"
        )
    return Verdict(
        "silent",
        f"nothing comes back from {address}: neither ICMP nor UDP nor TCP",
        "Stop the responder with this result (option checked): its own count tells which direction is dead",
    )


def _errors_told(datagram: Datagram | None) -> int:
    told = datagram.answer.get("checksum_errors", {}) if datagram is not None else {}
    return sum(value or 0 for value in told.values())


def _judge_checksum(seen: Seen, checks: _Checks) -> Verdict | None:
    tcp = seen.tcp
    if tcp is None or (tcp.forward_ok and tcp.reverse_ok):
        return None
    at_server = _errors_told(seen.without_checksum) - _errors_told(seen.at_first)
    at_client = sum(value or 0 for value in seen.checksum_errors.values())
    if at_server <= 0 and not at_client:
        return None
    end, other, count = ("server", "client", at_server) if at_server > 0 else ("client", "server", at_client)
    return Verdict(
        "checksum",
        f"TCP to {seen.probe.address} is dead: the {end} threw {count} segments away because of a wrong checksum"
        + (", while ping works" if checks.get("ping") and checks["ping"].ok else ""),
        f"Switch tx checksum offload (and TSO, GSO) off on the {other}'s data interface: ethtool -K <interface> tx off",
    )


def _judge_mtu(seen: Seen, _checks: _Checks) -> Verdict | None:
    small = _works(seen.udp) or (seen.ping is not None and seen.ping.ok)
    forward, reverse = seen.udp_mtu_forward, seen.udp_mtu_reverse
    lost_forward = _works(seen.udp) and forward is not None and not forward.answered
    lost_reverse = _works(seen.udp) and reverse is not None and not reverse.answered
    echo = seen.ping_mtu
    lost_echo = seen.ping is not None and seen.ping.ok and echo is not None and not echo.ok
    if not small or not (lost_forward or lost_reverse or lost_echo):
        return None
    size, address = seen.mtu_bytes, seen.probe.address
    if echo is not None and echo.named_by == "this host":
        return Verdict(
            "mtu_local",
            f"packets of {size} bytes do not fit this host's interface"
            + (f", whose MTU is {echo.named_mtu}" if echo.named_mtu else ""),
            "Raise the interface's MTU, or check with a smaller mtu_bytes",
        )
    named = echo.named_mtu if echo is not None and echo.named_mtu else seen.learned_mtu
    if named is not None and named < size:
        by = (echo.named_by if echo is not None else None) or "a router on the way"
        return Verdict(
            "mtu_smaller",
            f"packets of {size} bytes do not fit the path to {address}: {by} names {named} bytes",
            "Set one MTU along the whole path, or check with a smaller mtu_bytes",
        )
    ways = [name for name, lost in (("forward", lost_forward), ("reverse", lost_reverse)) if lost]
    return Verdict(
        "mtu_hole",
        f"packets of {size} bytes vanish without a message between here and {address}"
        + (f" ({' and '.join(ways)})" if ways else "")
        + ", smaller ones pass",
        "Compare the MTU of every interface on the path, and the frame size of af_packet or the data plane's buffers",
    )


def _judge_tcp(seen: Seen, checks: _Checks) -> Verdict | None:
    tcp = seen.tcp
    if tcp is None or (tcp.forward_ok and tcp.reverse_ok):
        return None
    address = seen.probe.address
    if not tcp.connected:
        others = [name for name in ("ping", "udp") if name in checks and checks[name].ok]
        return Verdict(
            "tcp_dead",
            f"no TCP connection to {address} ({tcp.error})"
            + (f", while {' and '.join(others)} works" if others else ""),
            "Look for a filter on the path, or checksum offload on virtual interfaces",
        )
    if tcp.forward_intact is False and tcp.server_bytes == tcp.wanted_bytes:
        return Verdict(
            "corrupt", f"the data was altered on its way to {address}", "Look for a faulty device or checksum offload"
        )
    if tcp.reverse_intact is False and tcp.received_bytes == tcp.wanted_bytes:
        return Verdict(
            "corrupt", f"the data was altered on its way from {address}", "Look for a faulty device or checksum offload"
        )
    way = "tcp_forward" if not tcp.forward_ok else "tcp_reverse"
    return Verdict(
        f"{way}_stalled",
        f"a TCP connection to {address} comes up, but its data stalls: {checks[way].evidence}",
        "Look at MTU, segmentation offload and drops on the path, or allow more time (timeout_s)",
    )


def _judge_rest(seen: Seen, checks: _Checks) -> Verdict | None:
    failed = [check for check in checks.values() if check.ok is False]
    if not failed:
        return None
    words = {"ping": "icmp_dead", "ping_mtu": "icmp_dead", "udp": "udp_dead"}
    first = failed[0]
    return Verdict(
        words.get(first.name, first.name),
        f"{first.name} to {seen.probe.address} failed while TCP works: {first.evidence}",
        first.remedy or "Look for a filter on the path",
    )


def explain_silence(checked: t.Mapping[str, t.Any], arrived: t.Mapping[str, int]) -> Verdict | None:
    """Where nothing came back, the server's count of what reached it tells which direction is dead.

    :param checked: the client's result (of :func:`check_paths`).
    :param arrived: the server's count of datagrams by check (of the responder's report).
    """
    for target in checked.get("targets") or []:
        if target.get("code") != "silent":
            continue
        client, server = target.get("source"), target.get("address")
        count = arrived.get(str(target.get("token")), 0)
        if count:
            return Verdict(
                "reverse_dead",
                f"{count} datagrams of {client} arrived at {server}, but no answer came back",
                "Look at the server's route back, and at the return direction of the device between",
            )
        return Verdict(
            "forward_dead",
            f"nothing of what {client} sent arrived at {server}",
            "Look at the client's route, and at the forward direction of the device between",
        )
    return None


def check_paths(probes: t.Sequence[Probe]) -> dict[str, t.Any]:
    """Try all addresses at once. The module's result."""
    for probe in probes:
        probe.check()
    begun = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(max_workers=16) as pool:
        targets = [_target(seen) for seen in pool.map(lambda probe: Prober(probe).run(), probes)]
    bad = [target for target in targets if not target["ok"]]
    return {
        "ok": not bad,
        "code": bad[0]["code"] if bad else "ok",
        "message": bad[0]["message"] if bad else f"{len(targets)} of {len(targets)} paths carry all kinds of traffic",
        "remedy": bad[0]["remedy"] if bad else None,
        "targets": targets,
        "checks": [{"target": target["address"], **check} for target in targets for check in target["checks"]],
        "seconds": round(time.monotonic() - begun, 4),
    }


def _target(seen: Seen) -> dict[str, t.Any]:
    verdict = judge(seen)
    return {
        "address": seen.probe.address,
        "source": seen.route.get("source"),
        "ok": verdict.ok,
        "code": verdict.code,
        "message": verdict.message,
        "remedy": verdict.remedy,
        "route": seen.route or None,
        "mtu_bytes": seen.mtu_bytes,
        "rtt_ms": round(min(seen.ping.rtt_ms), 4) if seen.ping and seen.ping.rtt_ms else None,
        "checks": [dataclasses.asdict(check) for check in checks_of(seen)],
        "seconds": round(seen.seconds, 4),
        "token": seen.token,
    }
