# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A NAT's slow path (each packet opens a session) beside its fast path (all have one)."""

from __future__ import annotations

import statistics
import typing as t

Row = dict[str, t.Any]
NEW, ESTABLISHED = "new", "established"
PATHS = (NEW, ESTABLISHED)
_NAT_NODES = ("nat44", "nat-")
#: They fetch packets, and wait for them within a call: what they take is no packet's cost.
_FETCHING = ("af-packet-input", "af_xdp-input", "dpdk-input", "memif-input", "tap-input", "virtio-input")
#: A node that fewer packets went through is about something else.
_ON_THE_WAY = 0.5


def clocks(nodes: t.Sequence[t.Mapping[str, t.Any]] | None) -> dict[str, float | None]:
    """Clocks for each packet, of the nodes that translate and of all on the packet's way, from a window of VPP.

    A node that polls also costs when there is nothing, so it is on nobody's way: those have more calls than packets.
    """
    found: dict[str, float | None] = {"nat": None, "path": None, "vectors_per_call": None}
    working = _working(nodes or ())
    translating = [node for node in working if str(node["node"]).startswith(_NAT_NODES)]
    packets = _packets(translating)
    if not packets:
        return found
    found["nat"] = _clocks(translating) / packets
    found["path"] = _clocks(working) / packets
    calls = sum(node["calls"] for node in translating)
    found["vectors_per_call"] = sum(node["vectors"] for node in translating) / calls
    return found


def _working(nodes: t.Sequence[t.Mapping[str, t.Any]]) -> list[t.Mapping[str, t.Any]]:
    return [
        node
        for node in nodes
        if node["clocks_per_packet"] is not None
        and node["vectors"] >= max(node["calls"], 1)
        and node["node"] not in _FETCHING
    ]


def clocks_of_all(nodes: t.Sequence[t.Mapping[str, t.Any]] | None) -> float:
    """Clocks of all nodes on the way, of all packets that there were."""
    return _clocks(_working(nodes or ()))


def by_node(nodes: t.Sequence[t.Mapping[str, t.Any]] | None) -> dict[str, float]:
    """Clocks for each packet of the nodes that most packets went through."""
    named: dict[str, list[t.Mapping[str, t.Any]]] = {}
    for node in _working(nodes or ()):
        named.setdefault(node["node"], []).append(node)
    most = max((_packets(rows_) for rows_ in named.values()), default=0)
    return {
        name: _clocks(rows_) / _packets(rows_)
        for name, rows_ in named.items()
        if _packets(rows_) and _packets(rows_) >= most * _ON_THE_WAY
    }


def _nodes(turns: t.Sequence[t.Mapping[str, t.Any]]) -> list[Row]:
    """By node the medians of both paths, the dearest of the slow path first."""
    costs = {path: [by_node(turn[path]["nodes"]) for turn in turns] for path in PATHS}
    names = list(dict.fromkeys(name for path in PATHS for cost in costs[path] for name in cost))
    made = [
        {"node": name, **{path: _median([cost.get(name) for cost in costs[path]]) for path in PATHS}} for name in names
    ]
    return sorted(made, key=lambda row: -(row[NEW] or 0))


def _packets(nodes: t.Sequence[t.Mapping[str, t.Any]]) -> int:
    """Those of the busiest node, over all threads: each packet goes through that one once."""
    by_name: dict[str, int] = {}
    for node in nodes:
        by_name[node["node"]] = by_name.get(node["node"], 0) + node["vectors"]
    return max(by_name.values(), default=0)


def _clocks(nodes: t.Sequence[t.Mapping[str, t.Any]]) -> float:
    return float(sum(node["clocks_per_packet"] * node["vectors"] for node in nodes))


def rows(found: t.Sequence[t.Mapping[str, t.Any]]) -> list[Row]:
    """One row for each datapath, in the order in which they were measured: medians over its rounds.

    :param found: by datapath, round and path the ``record`` of flow_run, ``sessions_before``, ``sessions``, ``nodes``.
    """
    turns: dict[tuple[str, int], Row] = {}
    for one in found:
        key = (one["datapath"], int(one["round"]))
        turns.setdefault(key, {"datapath": key[0], "round": key[1]})[one["path"]] = one
    whole = [turn for turn in turns.values() if all(path in turn for path in PATHS)]
    order = list(dict.fromkeys(turn["datapath"] for turn in whole))
    return [_row(name, [turn for turn in whole if turn["datapath"] == name]) for name in order]


def _row(name: str, turns: t.Sequence[t.Mapping[str, t.Any]]) -> Row:
    row: Row = {"datapath": name, "rounds": len(turns), "faults": []}
    for path in PATHS:
        good = []
        for turn in turns:
            one = turn[path]
            fault = _fault(path, one)
            if fault:
                row["faults"].append(f"round {turn['round']}, {path}: {fault}")
            else:
                good.append(one)
        costs = [clocks(one["nodes"]) for one in good]
        row[path] = {
            "rounds": len(good),
            "rate_pps": _median([_value(one, "forwarding_rate_forward") for one in good]),
            "loss_ratio": _median([_value(one, "frame_loss_ratio_forward") for one in good]),
            "sessions": _median([one["sessions"] for one in good]),
            "generator_limited": any(
                finding["code"] == "generator_limited" for one in good for finding in one["record"]["findings"]
            ),
            **{f"clocks_{what}": _median([cost[what] for cost in costs]) for what in ("nat", "path")},
            "vectors_per_call": _median([cost["vectors_per_call"] for cost in costs]),
        }
    new, old = row[NEW], row[ESTABLISHED]
    row["rate_ratio"] = _ratio(new["rate_pps"], old["rate_pps"])
    row["clocks_ratio_nat"] = _ratio(new["clocks_nat"], old["clocks_nat"])
    row["clocks_ratio_path"] = _ratio(new["clocks_path"], old["clocks_path"])
    row["spread_of_clocks_ratio"] = _spread(turns)
    row["nodes"] = _nodes(turns)
    return row


def _fault(path: str, one: t.Mapping[str, t.Any]) -> str | None:
    """Why the figures of a path in a round do not count."""
    record = one["record"]
    if record["status"] != "ok":
        return str(record["reason"])
    if one["sessions_before"] != 0:
        return f"{one['sessions_before']} sessions were there before"
    opened = _value(one, "flows_open_forward")
    if one["sessions"] is None or opened is None or one["sessions"] < opened:
        return f"{opened} flows passed, and there are {one['sessions']} sessions"
    if path == ESTABLISHED and one["sessions"] > record["flows"]:
        return f"{record['flows']} flows made {one['sessions']} sessions"
    return None


def _value(one: t.Mapping[str, t.Any], name: str) -> t.Any:
    return (one["record"]["metrics"].get(name) or {}).get("value")


def _median(values: t.Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def _ratio(above: float | None, below: float | None) -> float | None:
    return above / below if above is not None and below else None


def _spread(turns: t.Sequence[t.Mapping[str, t.Any]]) -> float | None:
    """Largest less smallest ratio of the rounds, as a part of the median."""
    ratios = []
    for turn in turns:
        if not any(_fault(path, turn[path]) for path in PATHS):
            one = _ratio(*(clocks(turn[path]["nodes"])["nat"] for path in PATHS))
            ratios += [] if one is None else [one]
    return (max(ratios) - min(ratios)) / statistics.median(ratios) if len(ratios) > 1 else None
