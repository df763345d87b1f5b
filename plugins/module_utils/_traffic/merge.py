# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One trial from what its two ends counted."""

from __future__ import annotations

import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common.metric import METRICS, metric
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.outcome import FAILED, OK, finding
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.record import BOTH, FORWARD, REVERSE

_LOSS_GAP = 0.005
_SUMMED = ("goodput", "sent_rate", "forwarding_rate", "sent_packet_rate", "offered_rate")


def merge_ends(client: dict[str, t.Any], server: dict[str, t.Any] | None, direction: str) -> dict[str, t.Any]:
    """The client's record of a trial, completed by the server's report.

    Figures of the receiving end come from the end that received, figures of
    the sending end from the one that sent. Loss is given twice: as the tool
    prints it, and from what was sent and what arrived over the whole run.

    :param client: a record of iperf_run.
    :param server: the report of the trial's instance from iperf_server; None if there is none.
    :param direction: forward, reverse or both.
    """
    record = dict(client)
    metrics = dict(client.get("metrics", {}))
    record["findings"] = list(client.get("findings", []))
    record["raw"] = {**client.get("raw", {}), **((server or {}).get("raw", {}))}
    directions = (FORWARD, REVERSE) if direction == BOTH else (direction,)
    if server is None:
        if FORWARD in directions and client.get("status") == OK:
            _without_server(record, metrics)
        record["metrics"] = metrics
        return record
    record["findings"] += [item for item in server.get("findings", []) if item not in record["findings"]]
    if client.get("status") == OK and server.get("status") != OK:
        record.update(
            status=server.get("status", FAILED),
            code=server.get("code"),
            reason=f"server's report: {server.get('reason')}",
        )
    for way in directions:
        receiver = server if way == FORWARD else client
        sender = client if way == FORWARD else server
        for name, (_unit, _layer, kind) in METRICS.items():
            key = f"{name}_{way}"
            source = receiver if kind == "received" else sender
            found = source.get("metrics", {}).get(key)
            if found is not None and (found.get("value") is not None or key not in metrics):
                metrics[key] = found
        _loss(record, metrics, way, sender, receiver)
    intervals = [item for item in server.get("intervals", []) if item["direction"] == FORWARD]
    if intervals and FORWARD in directions:
        intervals += [item for item in client.get("intervals", []) if item["direction"] == REVERSE]
        record["intervals"] = intervals
    if direction == BOTH:
        for name in _SUMMED:
            parts = [metrics.get(f"{name}_{way}") for way in directions]
            if all(part is not None for part in parts):
                values = [part["value"] for part in parts if part is not None]
                known = all(value is not None for value in values)
                key, made = metric(
                    name, BOTH, sum(values) if known else None, why=None if known else "one direction is not known"
                )
                metrics[key] = made.as_dict()
    record["findings"] = [
        item for item in record["findings"] if item["code"] not in ("warmup_included", "no_receiver_report")
    ]
    record["metrics"] = metrics
    return record


def _without_server(record: dict[str, t.Any], metrics: dict[str, t.Any]) -> None:
    goodput = metrics.get("goodput_forward")
    if goodput is not None and goodput.get("value") is None:
        reason = "no report of the receiver: what arrived is not known"
        record.update(status=FAILED, code="no_receiver_report", reason=reason)


def _loss(
    record: dict[str, t.Any],
    metrics: dict[str, t.Any],
    way: str,
    sender: dict[str, t.Any],
    receiver: dict[str, t.Any],
) -> None:
    sent = sender.get("counts", {}).get(way, {}).get("sent_packets")
    received = receiver.get("counts", {}).get(way, {}).get("received_packets")
    if not sent or received is None:
        return
    if received > sent * 1.001 + 64:
        record["findings"].append(
            finding(
                "more_received_than_sent",
                "error",
                f"{received:.0f} datagrams arrived {way} of {sent:.0f} that were sent",
                "The two reports do not belong to one test, or the path duplicates packets",
            )
        )
        return
    derived = max(0.0, (sent - received) / sent)
    key, made = metric("frame_loss_ratio", way, derived)
    metrics[key] = made.as_dict()
    told = metrics.get(f"tool_loss_ratio_{way}", {}).get("value")
    whole = _whole_run_loss(receiver, way)
    told = whole if whole is not None else told
    if told is not None and derived - told > _LOSS_GAP:
        record["findings"].append(
            finding(
                "hidden_loss",
                "warning",
                f"loss {way} is {derived:.4%} from sent and received, {told:.4%} as the tool says",
                "The tool does not see datagrams lost at the end of a test: use frame_loss_ratio",
            )
        )


def _whole_run_loss(receiver: dict[str, t.Any], way: str) -> float | None:
    counts = receiver.get("counts", {}).get(way, {})
    lost, received = counts.get("lost_packets"), counts.get("received_packets")
    if lost is None or received is None or lost + received == 0:
        return None
    return float(lost / (lost + received))
