# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a NAT can hold and how fast: the steps of the playbook nat_capacity as one row for each datapath (RFC 9693)."""

from __future__ import annotations

import statistics
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._bench import nat_paths

Row = dict[str, t.Any]
Step = t.Mapping[str, t.Any]
ESTABLISHMENT, ESTABLISHED, CONNECTIONS = "establishment", "established", "connections"
PORTS, TABLE = "ports", "table"
#: Fewer sessions are gone too fast to tell how fast.
_ENOUGH_TO_CLEAR = 1000


def rows(found: t.Sequence[Step], loss_ratio: float = 0.0) -> list[Row]:
    """One row for each datapath, in the order in which they were measured.

    :param found: by ``datapath``, ``round`` and ``what`` the ``record`` of the generator, ``sessions_before``,
        ``sessions``, ``drops_before``, ``drops``, ``nodes``, ``clearing``; or ``skipped``, the reason.
    :param loss_ratio: up to this, a step counts as one without loss.
    """
    order = list(dict.fromkeys(one["datapath"] for one in found))
    return [_row(name, [one for one in found if one["datapath"] == name], loss_ratio) for name in order]


def _row(name: str, found: t.Sequence[Step], loss_ratio: float) -> Row:
    faults = [
        f"round {one['round']}, {one['what']}{_at(one)}: {fault}"
        for one in found
        if not one.get("skipped") and (fault := _fault(one))
    ]
    good = [one for one in found if not one.get("skipped") and not _fault(one)]
    row: Row = {"datapath": name, "rounds": len({one["round"] for one in found}), "faults": faults}
    chosen: dict[str, t.Sequence[Step]] = {}
    for what in (ESTABLISHMENT, ESTABLISHED):
        row[what], chosen[what] = _ladder([one for one in good if one["what"] == what], loss_ratio)
    row["teardown"] = _teardown(good)
    for what in (PORTS, TABLE):
        row[what] = _full([one for one in found if one["what"] == what], good)
    chosen[CONNECTIONS] = [one for one in good if one["what"] == CONNECTIONS]
    row[CONNECTIONS] = _connections(chosen[CONNECTIONS])
    row["nodes"] = _nodes(chosen)
    return row


def _at(one: Step) -> str:
    rate = one.get("rate_pps")
    return "" if rate is None else " as fast as it went" if rate == 0 else f" at {rate:g} packet/s"


def _fault(one: Step) -> str | None:
    """Why the figures of a step do not count."""
    record = one["record"]
    if record["status"] != "ok":
        return str(record["reason"])
    if one["sessions_before"] != 0:
        return f"{one['sessions_before']} sessions were there before"
    if one["sessions"] is None:
        return "its sessions were not counted"
    return _connections_fault(one) if one["what"] == CONNECTIONS else _flows_fault(one)


def _connections_fault(one: Step) -> str | None:
    return None if one["sessions"] else "there were connections and no session"


def _flows_fault(one: Step) -> str | None:
    opened, flows = _value(one, "flows_open_forward"), one["record"]["flows"]
    # a full table of the kernel forgets a connection that was never answered for a new one
    if one["what"] != TABLE and (opened is None or one["sessions"] < opened):
        return f"{opened} flows passed, and there are {one['sessions']} sessions"
    if one["sessions"] > flows:
        return f"{flows} flows made {one['sessions']} sessions"
    return None


def _ladder(steps: t.Sequence[Step], loss_ratio: float) -> tuple[Row, t.Sequence[Step]]:
    """Rates that were offered one after the other: the highest without loss, and the most that came through."""
    told = []
    by_rate: dict[float, list[Step]] = {}
    for one in steps:
        by_rate.setdefault(float(one["rate_pps"]), []).append(one)
    for rate, those in by_rate.items():
        lost = [_value(one, "frame_loss_ratio_forward") for one in those]
        told.append(
            {
                "asked_pps": rate or None,
                "sent_pps": _median(_value(one, "sent_packet_rate_forward") for one in those),
                "passed_pps": _median(_value(one, "forwarding_rate_forward") for one in those),
                "loss_ratio": _median(lost),
                "sessions": _median(one["sessions"] for one in those),
                "without_loss": all(part is not None and part <= loss_ratio for part in lost),
                "generator_limited": any(_limited(one) for one in those),
                **_costs(those),
            }
        )
    told.sort(key=lambda one: one["sent_pps"] or 0)
    clean = [one for one in told if one["without_loss"]]
    most = max(told, key=lambda one: one["passed_pps"] or 0, default=None)
    best = clean[-1] if clean else most
    row: Row = {
        "rate_pps": clean[-1]["passed_pps"] if clean else None,
        "most_pps": most["passed_pps"] if most else None,
        # nothing was lost at the highest that could be sent
        "generator_limited": bool(clean) and clean[-1] is told[-1],
        "flows": max((one["record"]["flows"] for one in steps), default=None),
        "clocks_nat": best["clocks_nat"] if best else None,
        "clocks_path": best["clocks_path"] if best else None,
        "vectors_per_call": best["vectors_per_call"] if best else None,
        "steps": told,
    }
    return row, by_rate.get(float(best["asked_pps"] or 0), ()) if best else ()


def _costs(those: t.Sequence[Step]) -> Row:
    costs = [nat_paths.clocks(one["nodes"]) for one in those]
    return {
        "clocks_nat": _median(cost["nat"] for cost in costs),
        "clocks_path": _median(cost["path"] for cost in costs),
        "vectors_per_call": _median(cost["vectors_per_call"] for cost in costs),
    }


def _teardown(steps: t.Sequence[Step]) -> Row | None:
    """Sessions that were removed each second, all at once, and proven to be gone (RFC 9693, section 4.7)."""
    cleared = [one for one in steps if one.get("clearing") and one["cleared"] >= _ENOUGH_TO_CLEAR]
    if not cleared:
        return None
    largest = max(one["cleared"] for one in cleared)
    # what little it takes besides counts least where most was removed
    those = [one for one in cleared if one["cleared"] >= largest * 0.9]
    return {
        "sessions": largest,
        "times": len(those),
        "rate": _median(one["cleared"] / max(one["clearing"]["command_s"], 1e-9) for one in those),
        "command_s": _median(one["clearing"]["command_s"] for one in those),
        "proven_s": _median(one["clearing"]["proven_s"] for one in those),
    }


def _full(steps: t.Sequence[Step], good: t.Sequence[Step]) -> Row | None:
    """More was offered than there is room for: what was reached, and what the others were dropped for."""
    those = [one for one in steps if one in good]
    if not those:
        return {"skipped": next((one["skipped"] for one in steps if one.get("skipped")), None)} if steps else None
    # the question for the receiver's count is a session too
    reached = [one["total"] for one in those]
    return {
        "skipped": None,
        "limit": those[0]["limit"],
        "offered": _median(one["record"]["counts"]["forward"]["sent_packets"] for one in those),
        "passed": _median(one["record"]["counts"]["forward"]["received_packets"] for one in those),
        "sessions": _median(one["sessions"] for one in those),
        "total": _median(reached),
        "total_least": min(reached),
        "total_most": max(reached),
        "full": _median(one.get("full") for one in those),
        "drops": _drops(those),
    }


def _drops(those: t.Sequence[Step]) -> dict[str, float | None] | None:
    """By reason, what was dropped meanwhile."""
    changes: dict[str, list[float]] = {}
    for one in those:
        if one["drops"] is None or one["drops_before"] is None:
            return None
        for reason, number in one["drops"].items():
            changes.setdefault(reason, []).append(number - one["drops_before"].get(reason, 0))
    return {reason: _median(numbers) for reason, numbers in changes.items()}


def _connections(those: t.Sequence[Step]) -> Row | None:
    if not those:
        return None
    spent = []
    for one in those:
        answered = one["record"]["counts"]["forward"].get("answered")
        clocks = nat_paths.clocks_of_all(one["nodes"])
        spent.append(clocks / answered if answered and clocks else None)
    return {
        "rate": _median(_value(one, "connection_rate_forward") for one in those),
        "failed": _median(_value(one, "connections_failed_forward") for one in those),
        "connect_ms": _median(_value(one, "connect_time_forward") for one in those),
        "answered": _median(one["record"]["counts"]["forward"].get("answered") for one in those),
        "sessions": _median(one["sessions"] for one in those),
        "clocks_per_connection": _median(spent),
        "generator_limited": any(_limited(one) for one in those),
        "drops": _drops(those),
    }


def _nodes(chosen: t.Mapping[str, t.Sequence[Step]]) -> list[Row]:
    """By node the clocks for each packet, the dearest of those that open a session first."""
    costs = {what: [nat_paths.by_node(one["nodes"]) for one in those] for what, those in chosen.items()}
    names = list(dict.fromkeys(name for made in costs.values() for cost in made for name in cost))
    told = [
        {"node": name, **{what: _median(cost.get(name) for cost in made) for what, made in costs.items()}}
        for name in names
    ]
    return sorted(told, key=lambda row: -(row[ESTABLISHMENT] or 0))


def _limited(one: Step) -> bool:
    return any(found["code"] == "generator_limited" for found in one["record"]["findings"])


def _value(one: Step, name: str) -> t.Any:
    return (one["record"]["metrics"].get(name) or {}).get("value")


def _median(values: t.Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None
