# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From dperf's seconds to a result: the steady part, the metrics, and what the counters say, in words and codes.

dperf counts frames as the driver hands them over: from the Ethernet header on, without padding, without FCS. So its
bits are of layer 2, but not those of the wire.
"""

from __future__ import annotations

import dataclasses
import re
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.dperf_config import CPS, FLOOD, Load
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.dperf_text import Number, Output, Second
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.outcome import INVALID, OK, Outcome, finding
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.record import (
    CLIENT,
    FORWARD,
    REVERSE,
    SERVER,
)

#: SYNs sent and answered this close to each other are a closed loop; the same for requests and answers.
CLOSED = 0.02
#: What is reached of the target, and of the CPU.
REACHED = 0.95
BUSY_PERCENT = 95
_SHORT = 0.1
_SILENT_S = 2
#: Answers of a few more or less are the edges of the window.
_EDGE = 4

#: What dperf says when it cannot go on -> code, remedy. The first that matches counts.
_FAILURES: tuple[tuple[str, str, str], ...] = (
    (r"bad gateway", "gateway_unresolved",
     "Nobody answered for the gateway's address: see to the cable, the VLAN and the gateway, or give gateway_mac"),
    (r"another primary process running", "other_primary",
     "Another program of DPDK runs here: end it, or give each dperf of this host socket_mem_mb, which parts them"),
    (r"insufficient sockets", "insufficient_sockets", "Give more client addresses or listen ports"),
    (r"socket allocation failed", "not_enough_memory", "Reserve more hugepages, or use fewer sockets"),
    (r"work space init error|pkt_pool_create error|mbuf pool error|[Cc]annot allocate memory|Out of memory",
     "not_enough_memory", "Reserve more hugepages on the card's NUMA node, and have them mounted"),
    # the hint on hugepages of another size that stands beside it is no cause
    (r"port init fail|port start error|[Nn]o such device|[Nn]o (?:Ethernet )?ports?\b", "port_init",
     "Check the PCI address first, then that the card is bound to a driver of DPDK; see role fastpath.bench.host_prep"),
    (r"dose not support FDIR", "no_flow_director", "Set rss: this card cannot direct flows to queues"),
    (r"[Nn]o free [^.]{0,40}hugepages|Cannot get hugepage|FATAL: ", "eal", "See the first lines of the raw output"),
    (r"^line [0-9]{1,9}: |unknown config keyword", "configuration",
     "This version of dperf does not know what the configuration says"),
    (r"^Error\b|\bError: ", "tool_failed", "See the raw output"),
)  # fmt: skip

_ROWS: tuple[tuple[str, str, tuple[str, ...], str], ...] = (
    ("drops_sending", "warning", ("dropTx", "oerrors"),
     "The driver did not take these frames: the card or its queue is the limit; use more CPUs or a smaller tx_burst"),
    ("drops_receiving", "warning", ("imissed",),
     "The card had no room left, as the worker did not fetch in time: give this end more CPUs"),
    ("bad_frames", "warning", ("ierrors", "badRx"), "Frames arrived damaged: check cable, optics and MTU"),
    ("drops_unknown", "warning", ("tcpDrop", "udpDrop"),
     "Packets came that belong to no connection: something else sends, or addresses are translated on the way"),
    ("http_errors", "error", ("httpErr",), "The other end answered with something else than success"),
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Steady:
    """The seconds that count, and what was summed over them."""

    seconds: tuple[Second, ...]

    def sum(self, *keys: str) -> Number | None:
        """None when one second does not tell any of them."""
        parts = [second.sum(*keys) for second in self.seconds]
        if not parts or any(part is None for part in parts):
            return None
        return sum(t.cast("list[Number]", parts))

    def rate(self, *keys: str) -> float | None:
        total = self.sum(*keys)
        return None if total is None else total / len(self.seconds)

    def peak(self, *keys: str) -> float | None:
        parts = [second.sum(*keys) for second in self.seconds]
        known = [float(part) for part in parts if part is not None]
        return max(known) if known and len(known) == len(parts) else None

    @property
    def busiest_percent(self) -> float | None:
        """The mean of the CPU that was busiest in each second."""
        parts = [max(second.cpu_percent) for second in self.seconds if second.cpu_percent]
        return sum(parts) / len(parts) if parts else None


def evaluate(output: Output, load: Load, side: str) -> Outcome:
    """Judge what one end printed. Never raises for what is in it: the verdict says it."""
    made = Outcome()
    try:
        steady = client_window(output, load) if side == CLIENT else server_window(output, load)
    except BenchError as error:
        made.fail(error.code, error.message)
        return made
    first = steady.seconds[0].number
    made.window = (float(first), float(first + len(steady.seconds)))
    _metrics(made, steady, load, side)
    _intervals(made, steady, side)
    _counts(made, output, load, side)
    if side == CLIENT:
        _read_client(made, steady, output, load)
    for code, severity, keys, remedy in _ROWS:
        for key in keys:
            count = steady.sum(key)
            if count:
                made.findings.append(finding(code, severity, f"{key} is {count:,} at the {side}", remedy))
    return made


def failure(messages: t.Sequence[str]) -> BenchError | None:
    """What dperf said why it could not go on, if it said so."""
    for pattern, code, remedy in _FAILURES:
        for message in messages:
            if re.search(pattern, message):
                return BenchError(f"dperf said: {message.rstrip('.')[:200]}", remedy=remedy, code=code)
    return None


def client_window(output: Output, load: Load) -> Steady:
    """The seconds after the slow start, as many as were asked for: all of them must be there, one after the other.

    :raises BenchError: they are not.
    """
    found = {second.number: second for second in output.seconds}
    said = failure(output.messages)
    if not found and said is not None:
        raise said
    if not found:
        last = f"; the last it said is {output.messages[-1][:120]!r}" if output.messages else ""
        raise BenchError(
            f"dperf counted no second{last}",
            remedy="It waits for the gateway's MAC address first: see to the cable and the gateway",
            code="nothing_counted",
        )
    missing = [number for number in load.steady if number not in found]
    if missing:
        raise said or BenchError(
            f"second {missing[0]} is not there, of {load.steady.start} to {load.steady.stop - 1} that count;"
            f" the last one is {max(found)}",
            remedy="It was ended before its time, or this host had no time for it: see the raw output",
            code="ended_early",
        )
    return Steady(tuple(found[number] for number in load.steady))


def server_window(output: Output, load: Load) -> Steady:
    """The seconds up to the one before the last with traffic.

    The two ends count by clocks of their own. The last second with traffic is a part of one, the steady part ends
    before it; and its first may hold a part of the slow start.

    :raises BenchError: there are not as many.
    """
    said = failure(output.messages)
    busy = [number for number, second in enumerate(output.seconds) if second.sum("tcpRx", "udpRx", "synRx")]
    if not busy:
        raise said or BenchError(
            "no packet of a client came",
            remedy="See the client's result; behind NAT, list the translated addresses in clients_seen",
            code="no_report",
        )
    part = output.seconds[max(0, busy[-1] - load.duration_s + 1) : busy[-1]]
    if not part:
        raise BenchError("the traffic was too short to be read", code="ended_early")
    return Steady(tuple(part))


def _metrics(made: Outcome, steady: Steady, load: Load, side: str) -> None:
    sends, receives = (FORWARD, REVERSE) if side == CLIENT else (REVERSE, FORWARD)
    for name, way, keys in (
        ("sent_frame_rate", sends, ("pktTx",)),
        ("received_frame_rate", receives, ("pktRx",)),
        ("sent_frame_bits", sends, ("bitsTx",)),
        ("received_frame_bits", receives, ("bitsRx",)),
    ):
        made.add(name, way, steady.rate(*keys), peak=steady.peak(*keys))
    if load.protocol == "udp":
        made.add("sent_packet_rate", sends, steady.rate("udpTx"), peak=steady.peak("udpTx"))
        made.add("forwarding_rate", receives, steady.rate("udpRx"), peak=steady.peak("udpRx"))
    lost = ("udpRt",) if load.protocol == "udp" else ("synRt", "finRt", "ackRt", "pushRt")
    made.add("retransmits", sends, steady.sum(*lost))
    if side != CLIENT:
        return
    if load.protocol != "udp":
        # an answered SYN is a connection as the client knows it
        made.add("connection_rate", FORWARD, steady.rate("synRx"), peak=steady.peak("synRx"))
        if load.kind == CPS:
            made.add("offered_connection_rate", FORWARD, float(load.cps or 0))
        made.add("request_rate", FORWARD, steady.rate("httpGet", "httpPost"), peak=steady.peak("httpGet", "httpPost"))
        made.add("answer_rate", REVERSE, steady.rate("http2XX"), peak=steady.peak("http2XX"))
        _round_trip(made, steady)
    made.add("connections_open", FORWARD, steady.rate("skCon"), peak=steady.peak("skCon"))


def _round_trip(made: Outcome, steady: Steady) -> None:
    """Only of seconds in which a SYN was answered: otherwise dperf prints 0.0 and means nothing."""
    parts = [(second.get("rtt(us)"), second.get("synRx")) for second in steady.seconds]
    known = [(float(rtt), weight) for rtt, weight in parts if rtt is not None and weight]
    if known:
        weights = sum(weight for _rtt, weight in known)
        made.add("round_trip", FORWARD, sum(rtt * weight for rtt, weight in known) / weights / 1000)


def _intervals(made: Outcome, steady: Steady, side: str) -> None:
    """Received bits of each second; their start is counted from the first second that counts."""
    direction = REVERSE if side == CLIENT else FORWARD
    for number, second in enumerate(steady.seconds):
        bits = second.get("bitsRx")
        made.intervals.append(
            {
                "direction": direction,
                "start_s": float(number),
                "end_s": float(number + 1),
                "bytes": None if bits is None else bits / 8,
                "rate_bps": bits,
                "packets": second.get("pktRx"),
                "lost": None,
                "retransmits": None,
            }
        )


def _counts(made: Outcome, output: Output, load: Load, side: str) -> None:
    """Datagrams over the whole run, for the loss between the ends. TCP's are none: it sends again."""
    if load.protocol != "udp" or output.totals is None:
        return
    sends, receives = (FORWARD, REVERSE) if side == CLIENT else (REVERSE, FORWARD)
    made.counts[sends] = {"sent_packets": output.totals.get("udpTx")}
    made.counts[receives] = {"received_packets": output.totals.get("udpRx")}


# --------------------------------------------------------------------------- the reading of the client's counters


def _read_client(made: Outcome, steady: Steady, output: Output, load: Load) -> None:
    sent, received = steady.sum("pktTx") or 0, steady.sum("pktRx") or 0
    if not sent:
        made.fail("nothing_sent", "no packet was sent in the steady part")
        return
    earlier = [second for second in output.seconds if second.number < load.steady.start]
    before = (earlier[-1].get("skCon") or 0) if earlier else 0
    answered_before = any(second.sum("tcpRx", "udpRx") for second in earlier)
    read = _read_udp if load.protocol == "udp" else _read_tcp
    read(made, steady, load, answered_before, before)
    if not received and load.kind != FLOOD:
        made.fail(
            "one_way_traffic",
            f"{sent:,} packets were sent and none came back. Check the gateway, the server's listen ports and that it"
            " is up.",
        )
    _limits(made, steady, load)


def _gone(made: Outcome, steady: Steady, key: str) -> bool:
    """Whether answers came and then stopped for good: the end of the list is silent while this end sends."""
    silent = 0
    for second in reversed(steady.seconds):
        if second.get(key) or not second.get("pktTx"):
            break
        silent += 1
    # one may be the answer that comes in the next second
    if silent < _SILENT_S:
        return False
    first = steady.seconds[-silent].number
    made.fail(
        "server_gone",
        f"from second {first} on, nothing was answered any more: the server went away, or the way to it",
    )
    return True


def _read_udp(made: Outcome, steady: Steady, load: Load, answered_before: bool, before: Number) -> None:
    sent, answered = steady.sum("udpTx") or 0, steady.sum("udpRx") or 0
    if load.kind == FLOOD:
        share = answered / sent if sent else 0.0
        text = f"{sent:,} packets sent without waiting, {answered:,} came back ({share:.1%})"
        made.findings.append(finding("open_loop", "info", text, "What arrived is counted by the server"))
        return
    if (answered or answered_before) and _gone(made, steady, "udpRx"):
        return
    _loop(made, sent, answered, "datagrams", before)
    again = steady.sum("udpRt")
    if again:
        made.findings.append(
            finding(
                "late_answers", "warning", f"{again:,} of {sent:,} datagrams were sent again for want of an answer",
                "Answers are lost or late: look at the DUT, then at the server's CPU",
            )
        )  # fmt: skip


def _read_tcp(made: Outcome, steady: Steady, load: Load, answered_before: bool, before: Number) -> None:
    syn, answered, resets = (steady.sum(key) or 0 for key in ("synTx", "synRx", "rstRx"))
    again = steady.sum("synRt") or 0
    new = syn - again
    requests, answers = steady.sum("httpGet", "httpPost") or 0, steady.sum("http2XX") or 0
    if resets and not answered and not answers:
        made.fail(
            "server_not_listening",
            f"all {syn:,} SYNs were answered by resets ({resets:,}): the server does not listen on this port, or does"
            " not list these clients. Behind NAT it must list the translated addresses (clients_seen).",
        )
        return
    alive = "synRx" if load.kind == CPS else "tcpRx"
    if (answered or answers or answered_before) and _gone(made, steady, alive):
        return
    if resets:
        made.findings.append(
            finding("resets", "error", f"{resets:,} resets came for {syn:,} SYNs",
                    "The server, or a device on the way, refuses a part of the connections")
        )  # fmt: skip
    errors = steady.sum("skErr") or 0
    if errors:
        made.findings.append(
            finding("connection_errors", "error", f"{errors:,} connections failed",
                    "They were given up after several tries: look for loss on the way")
        )  # fmt: skip
    if load.kind == CPS:
        if new > 0 and not answered:
            made.fail("half_open", f"{new:,} connections were begun, and no SYN was answered")
            return
        _loop(made, new, answered, "SYNs", before)
        held = steady.rate("skCon") or 0.0
        rate = steady.rate("skOpen") or 0.0
        if not errors and rate and held <= rate * _SHORT:
            text = f"{held:,.0f} connections were open at a time, at {rate:,.0f} new ones each second"
            made.findings.append(
                finding("short_connections", "info", text, "As meant: each one ends after one request")
            )
    else:
        _loop(made, requests, answers, "requests", before)
    _retransmits(made, steady)


def _loop(made: Outcome, sent: Number, answered: Number, what: str, open_before: Number) -> None:
    """Whether what was sent is what was answered. More answers than questions is no loop, either.

    :param open_before: connections that were open when the steady part began: their answers may be in it.
    """
    if not sent:
        return
    missing = sent - answered
    text = f"{sent:,} {what} sent, {answered:,} answered ({answered / sent:.1%})"
    slack = max(CLOSED * sent, _EDGE, open_before if missing < 0 else 0)
    if abs(missing) <= slack:
        made.findings.append(finding("closed_loop", "info", text, "Nothing to do: all that was asked was answered"))
    elif missing > 0:
        made.findings.append(
            finding(
                "half_open", "warning", text, "The others were lost or late: look at the DUT, then at the server's CPU"
            )
        )
    else:
        made.fail("more_answers", f"{text}: the figures contradict each other", status=INVALID)


def _retransmits(made: Outcome, steady: Steady) -> None:
    parts = [
        f"{key} {count:,}" for key in ("synRt", "finRt", "ackRt", "pushRt") for count in [steady.sum(key)] if count
    ]
    if parts:
        made.findings.append(
            finding("retransmits", "warning", f"segments were sent again: {', '.join(parts)}",
                    "Something is lost or late on the way, or an end is out of CPU")
        )  # fmt: skip


def _limits(made: Outcome, steady: Steady, load: Load) -> None:
    """Whether the client itself was the limit."""
    busiest = steady.busiest_percent
    reasons = []
    if busiest is not None and busiest >= BUSY_PERCENT:
        reasons.append(f"a CPU of the client was {busiest:.0f} % busy")
    opened = steady.rate("skOpen")
    if load.kind == CPS and load.cps and opened is not None:
        text = f"it opened {opened:,.0f} connections each second of {load.cps:,} asked for"
        if opened < load.cps * REACHED:
            reasons.append(text)
        elif made.status == OK:
            made.findings.append(
                finding("target_reached", "info", text, "This is no limit of anything: ask for more to find one")
            )
    held = steady.rate("skCon")
    if load.concurrent and held is not None and held < load.concurrent * REACHED:
        made.findings.append(
            finding("concurrent_not_reached", "warning",
                    f"{held:,.0f} connections were open of {load.concurrent:,} asked for",
                    "Give a longer slow start, a higher cps, or look for what ends connections")
        )  # fmt: skip
    if reasons:
        made.findings.append(
            finding("generator_limited", "warning", "; ".join(reasons),
                    "The figure is at least this: give the client more CPUs, or ask for less")
        )  # fmt: skip


def metric_names(load: Load) -> list[str]:
    """The metrics that a trial of this load has, with the client's alone."""
    names = ["sent_frame_rate_forward", "received_frame_rate_reverse"]
    names += ["sent_frame_bits_forward", "received_frame_bits_reverse", "retransmits_forward"]
    if load.protocol == "udp":
        return [*names, "sent_packet_rate_forward", "forwarding_rate_reverse", "connections_open_forward"]
    names += ["connection_rate_forward"] + (["offered_connection_rate_forward"] if load.kind == CPS else [])
    return [*names, "request_rate_forward", "answer_rate_reverse", "round_trip_forward", "connections_open_forward"]


def read_in_words(made: Outcome) -> list[str]:
    """The reading, one sentence for each thing that was noticed; the verdict first."""
    first = f"{made.status}: {made.reason or 'the figures can be used'}"
    return [first, *(f"{row['code']}: {row['evidence']}. {row['remedy']}." for row in made.findings)]


__all__ = ["CLIENT", "SERVER", "client_window", "evaluate", "failure", "read_in_words", "server_window"]
