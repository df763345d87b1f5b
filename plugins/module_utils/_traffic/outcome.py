# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From a report to a result: metrics with their meaning, findings, and the verdict on the trial.

One end knows what it sent and what it received. merge_ends puts both ends
together; what neither counted stays null.
"""

from __future__ import annotations

import dataclasses
import re
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._common.metric import Metric, metric, metric_key
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.iperf_lines import REMEDIES, failure_code
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.options import TrialOptions
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.record import (
    BOTH,
    CLIENT,
    FORWARD,
    RECEIVER,
    REVERSE,
    SENDER,
    TOLERANCE,
    IncompleteError,
    Measurement,
)
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.steady import Figures, figures

OK, FAILED, INVALID = "ok", "failed", "invalid"

#: What a rate may exceed its target by before it is called implausible: bursts at the edges of an interval.
_OVER_TARGET = 1.10
_OVER_LINK = 1.05
_UNDER_TARGET = 0.95
#: What a UDP socket says when the other end has closed its own.
_UDP_CLOSED = re.compile(r"^(?:read|recvmsg|recv) failed: (?:Connection refused|Bad file descriptor)$")
#: Metrics that have no sum over both directions.
_NO_TOTAL = ("frame_loss_ratio", "tool_loss_ratio", "jitter")
Finding = dict[str, t.Any]


def finding(code: str, severity: str, evidence: str, remedy: str) -> Finding:
    return {"code": code, "severity": severity, "evidence": evidence, "remedy": remedy}


def metric_names(options: TrialOptions) -> list[str]:
    """The metrics that a trial with these options has when both ends have counted."""
    names = ["goodput", "sent_rate"]
    if options.protocol == "udp":
        names += ["forwarding_rate", "sent_packet_rate", "offered_rate", "frame_loss_ratio", "tool_loss_ratio"]
        names += ["jitter", "out_of_order"]
    else:
        names.append("retransmits")
    ways = [*options.directions]
    keys = [metric_key(name, way) for way in ways for name in names]
    if options.direction == BOTH:
        keys += [metric_key(name, BOTH) for name in names if name not in _NO_TOTAL]
    return keys


@dataclasses.dataclass
class Outcome:
    """What one end can say about a trial."""

    status: str = OK
    code: str | None = None
    reason: str | None = None
    metrics: dict[str, Metric] = dataclasses.field(default_factory=dict)
    intervals: list[dict[str, t.Any]] = dataclasses.field(default_factory=list)
    findings: list[Finding] = dataclasses.field(default_factory=list)
    #: direction -> datagrams and bytes over the whole run, warm-up included.
    counts: dict[str, dict[str, float | None]] = dataclasses.field(default_factory=dict)
    #: The part that was counted, in seconds from the first packet.
    window: tuple[float, float] | None = None

    def fail(self, code: str, reason: str, *, status: str = FAILED) -> None:
        """The first fault is the reason; later ones are mostly its consequence."""
        if self.status == OK:
            self.status, self.code, self.reason = status, code, reason

    def add(self, name: str, direction: str, value: float | None, **more: t.Any) -> None:
        key, made = metric(name, direction, value, **more)
        self.metrics[key] = made

    def as_dict(self) -> dict[str, t.Any]:
        return {
            "status": self.status,
            "code": self.code,
            "reason": self.reason,
            "metrics": {key: made.as_dict() for key, made in self.metrics.items()},
            "intervals": self.intervals,
            "findings": self.findings,
            "counts": self.counts,
        }


def failed(code: str, reason: str, options: TrialOptions) -> Outcome:
    """A trial without a number: the reason stands where the figure would."""
    made = Outcome()
    made.fail(code, reason)
    for direction in options.directions:
        made.add("goodput", direction, None, why=reason)
    return made


def evaluate(measurement: Measurement, options: TrialOptions) -> Outcome:
    """Judge one end's report. Never raises for what is in the report: the verdict says it."""
    at_the_end = measurement.protocol == "udp" and all(_UDP_CLOSED.match(error) for error in measurement.errors)
    if measurement.errors and not at_the_end:
        return _tool_failed(measurement.errors[0], options)
    made = Outcome()
    try:
        for direction in options.directions:
            _direction(made, measurement, options, direction)
    except BenchError as error:
        if measurement.errors:
            return _tool_failed(measurement.errors[0], options)
        return failed(error.code, error.message, options)
    if measurement.errors and not _heard(made, options, measurement.end):
        return _tool_failed(measurement.errors[0], options)
    for warning in (*measurement.errors, *measurement.warnings):
        made.findings.append(
            finding("tool_warning", "info", warning, "See the raw output of the tool if the figures surprise")
        )
    if options.direction == BOTH:
        _totals(made)
    return made


def _tool_failed(message: str, options: TrialOptions) -> Outcome:
    code = failure_code(message)
    remedy = REMEDIES.get(code)
    return failed(code, f"{message}. {remedy}." if remedy else message, options)


def _heard(made: Outcome, options: TrialOptions, end: str) -> bool:
    """Whether this end received until the end of the test. Then a UDP socket that is refused later means only that
    the other end closed first."""
    receiving = REVERSE if end == CLIENT else FORWARD
    direction = receiving if receiving in options.directions else options.direction
    heard = made.metrics.get(metric_key("goodput", direction))
    return heard is not None and heard.value is not None


def _direction(made: Outcome, measurement: Measurement, options: TrialOptions, direction: str) -> None:
    window = options.window()
    sends = (direction == FORWARD) == (measurement.end == CLIENT)
    own_role, other_role = (SENDER, RECEIVER) if sends else (RECEIVER, SENDER)
    own = figures(measurement, direction, own_role, window)
    if own is None:
        raise IncompleteError(
            f"the {measurement.end}'s report says nothing on the {direction} direction", code="no_report"
        )
    other = figures(measurement, direction, other_role, window) or figures(
        measurement, direction, other_role, window, peer_report=True
    )
    sent, received = (own, other) if sends else (other, own)
    _metrics(made, options, direction, sent, received)
    shown = received if received is not None and received.intervals else own
    made.intervals.extend(_intervals(shown, direction))
    made.counts[direction] = {
        "sent_packets": sent.total_packets if sent else None,
        "received_packets": received.total_packets if received else None,
        "sent_bytes": sent.total_bytes if sent else None,
        "received_bytes": received.total_bytes if received else None,
        "lost_packets": received.total_lost if received else None,
    }
    span = (own.start_s, own.end_s)
    made.window = span if made.window is None else (min(made.window[0], span[0]), max(made.window[1], span[1]))
    _judge(made, options, direction, sent, received)
    if received is None and direction == FORWARD and measurement.end == CLIENT:
        made.findings.append(
            finding(
                "no_receiver_report",
                "info",
                "the client was not told what arrived in the forward direction",
                "Read the server's report (iperf_server, state stopped)",
            )
        )


def _intervals(seen: Figures, direction: str) -> list[dict[str, t.Any]]:
    return [
        {
            "direction": direction,
            "start_s": row.start_s,
            "end_s": row.end_s,
            "bytes": row.bytes,
            "rate_bps": row.rate_bps,
            "packets": row.packets,
            "lost": row.lost,
            "retransmits": row.retransmits,
        }
        for row in seen.intervals
    ]


def _metrics(
    made: Outcome, options: TrialOptions, direction: str, sent: Figures | None, received: Figures | None
) -> None:
    udp = options.protocol == "udp"
    if received is not None:
        made.add("goodput", direction, received.rate_bps, peak=received.peak_bps)
    else:
        made.add("goodput", direction, None, why="counted by the other end only")
    if sent is not None:
        made.add("sent_rate", direction, sent.rate_bps, peak=sent.peak_bps)
        if not udp:
            made.add("retransmits", direction, sent.retransmits)
    if not udp:
        return
    made.add("offered_rate", direction, options.offered_pps())
    if sent is not None:
        made.add("sent_packet_rate", direction, _per_second(sent), peak=_peak_pps(sent))
    if received is None:
        return
    made.add("forwarding_rate", direction, _per_second(received), peak=_peak_pps(received))
    made.add("tool_loss_ratio", direction, _ratio(received.lost, received.packets))
    made.add("jitter", direction, received.jitter_ms)
    made.add("out_of_order", direction, received.out_of_order)
    if sent is not None:
        made.add("frame_loss_ratio", direction, _derived_loss(sent.total_packets, received.total_packets, options))


def _per_second(seen: Figures) -> float | None:
    return None if seen.packets is None else seen.packets / seen.seconds


def _peak_pps(seen: Figures) -> float | None:
    rates = [row.packets / row.length_s for row in seen.intervals if row.packets is not None and row.length_s > 0]
    return max(rates) if rates and len(rates) == len(seen.intervals) else None


def _ratio(lost: int | None, arrived: int | None) -> float | None:
    if lost is None or arrived is None or lost + arrived == 0:
        return None
    return lost / (lost + arrived)


def _derived_loss(sent: float | None, received: float | None, options: TrialOptions | None = None) -> float | None:
    """Loss from what was sent and what arrived, over the whole run: it sees lost last datagrams too."""
    if not sent or received is None:
        return None
    # each stream's closing datagrams are in the one count and not in the other
    extra = 2 * options.parallel if options else 2
    if received > sent + max(extra, sent * 0.001):
        return None
    return max(0.0, (sent - received) / sent)


def _judge(
    made: Outcome, options: TrialOptions, direction: str, sent: Figures | None, received: Figures | None
) -> None:
    for what, seen in (("sent", sent), ("received", received)):
        if seen is None:
            continue
        for limit, factor, name in (
            (options.target_bps(), _OVER_TARGET, "the rate that was asked for"),
            (float(options.link_speed_bps) if options.link_speed_bps else None, _OVER_LINK, "the link's speed"),
        ):
            if limit is not None and seen.rate_bps > limit * factor:
                evidence = f"{what} {seen.rate_bps:.0f} bit/s {direction}, over {name} ({limit:.0f} bit/s)"
                made.findings.append(
                    finding(
                        "implausible_rate", "error", evidence, "Do not use the figure; look at the tool's raw output"
                    )
                )
                made.fail("implausible_rate", evidence, status=INVALID)
    if received is not None and received.rate_bps == 0:
        made.fail("nothing_received", f"0 bytes were received in the {direction} direction")
    counted = received or sent
    if counted is not None and counted.zero_intervals:
        made.findings.append(
            finding(
                "zero_intervals",
                "warning",
                f"{counted.zero_intervals} of {len(counted.intervals)} intervals {direction} moved 0 bytes",
                "Traffic stalled: check MTU, MSS and path MTU discovery, then drops on the DUT",
            )
        )
    apart = max((seen.out_of_step for seen in (sent, received) if seen is not None), default=0.0)
    if apart > TOLERANCE:
        made.findings.append(
            finding(
                "streams_out_of_step",
                "warning",
                f"the tool's own sum of an interval {direction} differs by up to {apart:.0%} from its streams' rows:"
                " they did not run at the same time, so the figure may be above what they carried together",
                "The machine was too busy to start all streams at once: give it more CPU, or test longer",
            )
        )
    target = options.target_bps()
    if sent is not None and target is not None and sent.rate_bps < target * _UNDER_TARGET:
        made.findings.append(
            finding(
                "offered_below_intended",
                "warning",
                f"sent {sent.rate_bps:.0f} bit/s {direction} of {target:.0f} bit/s asked for",
                "The sender is the limit: give it more CPU, or ask for less",
            )
        )
    if received is not None and received.whole_run and options.warmup_s > 0 and not received.intervals:
        made.findings.append(
            finding(
                "warmup_included",
                "info",
                f"the receiver's figure {direction} covers the whole run, the first {options.warmup_s:g} s too",
                "Read the receiver's own report (iperf_server) for the steady window",
            )
        )


def _totals(made: Outcome) -> None:
    for name in ("goodput", "sent_rate", "forwarding_rate", "sent_packet_rate"):
        parts = [made.metrics.get(metric_key(name, direction)) for direction in (FORWARD, REVERSE)]
        values = [part.value for part in parts if part is not None and part.value is not None]
        if len(values) == 2:
            made.add(name, BOTH, sum(values))
        elif any(part is not None for part in parts):
            made.add(name, BOTH, None, why="one direction is not known")


def evaluate_text(read: t.Callable[[], Measurement], options: TrialOptions) -> tuple[Outcome, Measurement | None]:
    """Read and judge; what cannot be read is a failed trial that says why."""
    try:
        measurement = read()
    except BenchError as error:
        return failed(error.code, error.message, options), None
    return evaluate(measurement, options), measurement
