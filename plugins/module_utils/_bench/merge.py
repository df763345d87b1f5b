# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One trial from its pieces: what both endpoints counted, and what the DUT saw meanwhile."""

from __future__ import annotations

import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._traffic.loss import derived_loss

MetricDict = dict[str, t.Any]

#: Metrics whose value for both directions is the sum of the two.
_SUMMED = ("goodput", "sent_rate", "forwarding_rate", "sent_packet_rate", "offered_rate", "retransmits", "out_of_order")


#: What a client finds lacking by itself, and the server's report then tells.
_ANSWERED_BY_THE_SERVER = ("no_receiver_report", "warmup_included")


def counting_end(metric: t.Mapping[str, t.Any]) -> str:
    """Which endpoint knows a metric at first hand: what was received, the receiver; what was sent, the sender."""
    receiver = "server" if metric["direction"] == "forward" else "client"
    sender = "client" if receiver == "server" else "server"
    return sender if metric["kind"] in ("sent", "offered") else receiver


def merge_metrics(client: t.Mapping[str, MetricDict], server: t.Mapping[str, MetricDict]) -> dict[str, MetricDict]:
    """Take each metric from the end that counted it; from the other one when that end does not know it.

    For UDP forwarding rate and loss there is no other end: a sender that
    speaks for a receiver is not believed, so such a value is dropped by the
    generator's module already.
    """
    merged: dict[str, MetricDict] = {}
    for key in [*client, *(k for k in server if k not in client)]:
        mine, theirs = client.get(key), server.get(key)
        metric = client[key] if key in client else server[key]
        if metric["direction"] == "both":
            continue
        first, second = (mine, theirs) if counting_end(metric) == "client" else (theirs, mine)
        chosen = first if first is not None and first.get("value") is not None else second or metric
        merged[key] = dict(chosen)
    _add_totals(merged)
    for key in [*client, *server]:
        if key not in merged:
            merged[key] = dict(client.get(key) or server[key])
    return merged


def _add_totals(merged: dict[str, MetricDict]) -> None:
    for name in _SUMMED:
        pair = [merged.get(f"{name}_{direction}") for direction in ("forward", "reverse")]
        if None in pair:
            continue
        values = [p["value"] for p in pair if p]
        total = dict(t.cast(MetricDict, pair[0]))
        total.update(direction="both", value=None if None in values else sum(values), peak=None)
        merged[f"{name}_total"] = total


def merge(
    trial: t.Mapping[str, t.Any],
    record: t.Mapping[str, t.Any],
    report: t.Mapping[str, t.Any] | None,
    *,
    testbed: str,
    point: t.Mapping[str, str],
    headline: str,
    samples: t.Mapping[str, t.Mapping[str, t.Any] | None],
    duts: t.Collection[str],
) -> dict[str, t.Any]:
    """The trial as it goes to disk.

    :param record: what the client's side returned for this trial.
    :param report: what the server's side counted, or None when there is no such report.
    :param samples: by host, what ``dut_sample`` cut out for this trial.
    """
    status, code, reason = record["status"], record.get("code"), record.get("reason")
    server_metrics = (report or {}).get("metrics") or {}
    metrics = merge_metrics(record.get("metrics") or {}, server_metrics)
    findings = _once([*(record.get("findings") or []), *((report or {}).get("findings") or [])])
    for direction in ("forward", "reverse"):
        loss, odd = derived_loss(record, report or {}, direction)
        if loss is not None:
            metrics[loss[0]] = loss[1].as_dict()
        findings.extend(odd)
    if report is not None and report.get("status") == "ok":
        findings = [finding for finding in findings if finding.get("code") not in _ANSWERED_BY_THE_SERVER]
    if status == "ok" and report is not None and report.get("status") not in (None, "ok"):
        findings.append(
            {
                "code": "server_report_missing",
                "severity": "warning",
                "evidence": str(report.get("reason") or "the server gave no report"),
                "remedy": "Look at the server's raw output; the figure is what the client knows",
            }
        )
    if status == "ok" and (metrics.get(headline) or {}).get("value") is None:
        why = (metrics.get(headline) or {}).get("why") or (report or {}).get("reason") or "no end counted it"
        status, code, reason = "failed", "no_headline", f"{headline} is not known: {why}"
    return {
        "testbed": testbed,
        "point": dict(point),
        "point_id": trial["point_id"],
        "repetition": trial["repetition"],
        "attempt": trial["attempt"],
        "started": record["started"],
        "duration_s": record["duration_s"],
        "window": record.get("window"),
        "tries": record.get("tries", 1),
        "status": status,
        "code": code,
        "reason": reason,
        "tool": record["tool"],
        "headline": headline,
        "metrics": metrics,
        "counts": _counts(record, report or {}),
        "intervals": _intervals(record, report or {}),
        "dut": {host: sample for host, sample in samples.items() if host in duts},
        "endpoints": {host: sample for host, sample in samples.items() if host not in duts},
        "findings": findings,
        "raw": [],
    }


def _counts(client: t.Mapping[str, t.Any], server: t.Mapping[str, t.Any]) -> dict[str, dict[str, float]]:
    """By direction, what was sent as its sender counted it, and what was received as its receiver did: whole run."""
    counts: dict[str, dict[str, float]] = {}
    for direction in ("forward", "reverse"):
        sender, receiver = (client, server) if direction == "forward" else (server, client)
        known = {}
        for end, words in ((sender, ("sent",)), (receiver, ("received", "lost"))):
            found = (end.get("counts") or {}).get(direction) or {}
            known.update({key: value for key, value in found.items() if key.startswith(words) and value is not None})
        if known:
            counts[direction] = known
    return counts


def _once(findings: list[dict[str, t.Any]]) -> list[dict[str, t.Any]]:
    """Both ends may notice the same thing: the first one that says it is enough."""
    return list({(finding["code"], finding.get("evidence")): finding for finding in findings}.values())


def _intervals(client: t.Mapping[str, t.Any], server: t.Mapping[str, t.Any]) -> list[dict[str, t.Any]]:
    """The intervals of each direction as its receiver counted them; the sender's where the receiver has none."""
    chosen: list[dict[str, t.Any]] = []
    for direction, ends in (("forward", (server, client)), ("reverse", (client, server))):
        for end in ends:
            found = [i for i in end.get("intervals") or [] if i["direction"] == direction]
            if found:
                chosen.extend(found)
                break
    return chosen


def raw_files(
    trial: t.Mapping[str, t.Any], record: t.Mapping[str, t.Any], report: t.Mapping[str, t.Any] | None
) -> dict[str, str]:
    """File name -> text, for the raw folder of the run."""
    texts = {**(record.get("raw") or {})}
    for name, text in ((report or {}).get("raw") or {}).items():
        texts[name if name not in texts else f"server-{name}"] = text
    return {f"{trial['id']}.{name}": text for name, text in texts.items() if text}
