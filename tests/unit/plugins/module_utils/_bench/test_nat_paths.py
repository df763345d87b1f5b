# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tables of the playbooks nat_paths and impairment."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.fastpath.bench.plugins.module_utils._bench import nat_paths, tcp_model
from ansible_collections.fastpath.bench.plugins.module_utils._bench.report import impairment


def node(name: str, vectors: int, clocks: float, calls: int = 10, thread: int = 1) -> dict[str, t.Any]:
    return {"thread": thread, "node": name, "calls": calls, "vectors": vectors, "clocks_per_packet": clocks}


SLOW = [
    node("nat44-ed-in2out", 1000, 100.0),
    node("nat44-ed-in2out-slowpath", 1000, 900.0),
    node("ip4-lookup", 1000, 50.0),
    # polls
    node("some-process", 1000, 9999.0, calls=100_000),
    # fetches, and waits meanwhile
    node("af-packet-input", 1000, 99999.0),
    # the answers
    node("nat44-ed-out2in", 3, 5000.0, calls=3),
]
FAST = [node("nat44-ed-in2out", 500, 100.0), node("nat44-ed-in2out", 500, 100.0, thread=2)]


def found(path: str, rate: float, nodes: t.Any, sessions: int | None, **more: t.Any) -> dict[str, t.Any]:
    flows = 1000 if path == "new" else 10
    record = {
        "status": "ok",
        "reason": None,
        "flows": flows,
        "findings": [],
        "metrics": {"forwarding_rate_forward": {"value": rate}, "flows_open_forward": {"value": flows}},
    }
    one = {"datapath": "vpp_nat44", "round": 1, "path": path, "record": record, "nodes": nodes}
    return {**one, "sessions_before": 0, "sessions": sessions, **more}


def test_clocks_of_a_packet_on_its_way() -> None:
    told = nat_paths.clocks(SLOW)
    assert (told["nat"], told["path"]) == (pytest.approx(1015), pytest.approx(1065))
    assert nat_paths.by_node(SLOW) == {
        "nat44-ed-in2out": 100.0,
        "nat44-ed-in2out-slowpath": 900.0,
        "ip4-lookup": 50.0,
    }
    # two threads share the packets
    assert nat_paths.clocks(FAST)["nat"] == 100.0
    assert nat_paths.clocks(None) == nat_paths.clocks([]) == {"nat": None, "path": None, "vectors_per_call": None}


def test_slow_beside_fast() -> None:
    (row,) = nat_paths.rows([found("new", 100.0, SLOW, 1000), found("established", 400.0, FAST, 10)])
    assert (row["clocks_ratio_nat"], row["rate_ratio"], row["faults"]) == (pytest.approx(10.15), 0.25, [])
    assert row["nodes"][0] == {"node": "nat44-ed-in2out-slowpath", "new": 900.0, "established": None}
    assert row["nodes"][1] == {"node": "nat44-ed-in2out", "new": 100.0, "established": 100.0}
    assert row["spread_of_clocks_ratio"] is None
    assert row["new"]["sessions"] == 1000


def test_a_kernel_has_rates_alone() -> None:
    (row,) = nat_paths.rows([found("new", 100.0, None, 1000), found("established", 400.0, None, 10)])
    assert (row["clocks_ratio_nat"], row["rate_ratio"]) == (None, 0.25)


@pytest.mark.parametrize(
    ("path", "more", "says"),
    [
        ("new", {"sessions_before": 5}, "5 sessions were there before"),
        ("new", {"sessions": 999}, "1000 flows passed, and there are 999 sessions"),
        ("new", {"sessions": None}, "there are None sessions"),
        ("established", {"sessions": 11}, "10 flows made 11 sessions"),
    ],
)
def test_a_round_whose_sessions_are_not_proven_does_not_count(path: str, more: dict[str, t.Any], says: str) -> None:
    turns = [found("new", 100.0, SLOW, 1000), found("established", 400.0, FAST, 10)]
    (row,) = nat_paths.rows([{**one, **(more if one["path"] == path else {})} for one in turns])
    assert says in row["faults"][0]
    assert row["clocks_ratio_nat"] is None
    assert row[path]["rounds"] == 0


def test_what_models_of_tcp_expect() -> None:
    # the known example: 1460 bytes, 100 ms, one in 10^4 lost
    assert tcp_model.mathis_bps(1460, 0.1, 1e-4) == pytest.approx(14.3e6, rel=0.01)
    # RFC 9438, table 1 and 2: at 100 ms and 10^-4 Reno has 120 segments and CUBIC 187; at 10 ms they are equal at 10^-2
    assert tcp_model.cubic_bps(1500, 0.1, 1e-4) == pytest.approx(187 * 1500 * 8 / 0.1, rel=0.01)
    assert tcp_model.cubic_bps(1500, 0.01, 1e-2) == pytest.approx(12 * 1500 * 8 / 0.01, rel=0.03)
    points = [
        {"delay_ms": 10.0, "loss_ratio": loss, "rtt_ms": 10.0, "goodput_bps": rate, "status": "ok"}
        for loss, rate in ((0.0, 800e6), (0.02, 8e6))
    ]
    whole, lossy = tcp_model.expected(points, mss_bytes=1448, bandwidth_bps=1e9)
    assert (whole["mathis_bps"], whole["left_ratio"]) == (None, 1.0)
    assert lossy["left_ratio"] == 0.01
    assert lossy["to_mathis"] == pytest.approx(0.8, rel=0.02)
    (broken,) = tcp_model.expected([{**points[1], "status": "failed"}], mss_bytes=1448, bandwidth_bps=1e6)
    assert (broken["left_ratio"], broken["to_mathis"], broken["mathis_bps"]) == (None, None, 1e6)


def test_the_page_has_the_points_in_their_curves() -> None:
    points = [
        {"delay_ms": delay, "loss_ratio": loss, "rtt_ms": delay, "goodput_bps": rate, "status": "ok", "reason": None}
        for delay in (1.0, 10.0)
        for loss, rate in ((0.0, 800e6 / delay), (0.001, 90e6 / delay), (0.02, 8e6 / delay))
    ]
    points.append({**points[0], "loss_ratio": 0.05, "goodput_bps": None, "status": "failed", "reason": "<no> way"})
    rows = tcp_model.expected(points, mss_bytes=1448, bandwidth_bps=1e9)
    page = impairment.page(rows, mss_bytes=1448, bandwidth_bps=1e9, about=["On a desk."])
    drawn = page[page.index("<figure>") : page.index("</figure>")]
    # a dot for each point that was measured, and two lines for each delay
    assert drawn.count("<title>") == 6
    assert "10 ms, 2 % lost: 800 kbit/s" in drawn
    assert [f"var(--s{number})" in drawn for number in (1, 2, 3)] == [True, True, False]
    assert drawn.count("stroke-dasharray") == 2
    assert "&lt;no&gt; way" in page
    assert "http" not in page.replace("http-equiv", "")
    whole = [row for row in rows if not row["loss_ratio"]]
    assert "nothing to draw" in impairment.page(whole, mss_bytes=1448, bandwidth_bps=1e9, about=[])


def test_curves_are_the_models() -> None:
    line = tcp_model.curve(tcp_model.mathis_bps, mss_bytes=1448, rtt_s=0.01, bandwidth_bps=20e6, losses=(1e-4, 1e-2))
    assert line[0] == (pytest.approx(1e-4), 20e6)
    assert line[-1] == (pytest.approx(1e-2), pytest.approx(tcp_model.mathis_bps(1448, 0.01, 1e-2)))
