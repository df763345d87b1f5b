# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import dataclasses

import pytest

from ansible_collections.fastpath.bench.plugins.module_utils._bench import ladder
from ansible_collections.fastpath.bench.plugins.module_utils._bench.stats import summarise
from ansible_collections.fastpath.bench.plugins.module_utils._bench.summary import (
    MetricSummary,
    PointSummary,
    RunSummary,
)
from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError


def topology(pairs=1):
    return {
        "parts": {"client": "c", "dut1": "a", "dut2": "b", "server": "s"},
        "links": [
            {"ends": [{"part": "client", "addresses": ["10.1.0.1/24"]}]},
            {
                "ends": [
                    {"part": "dut1", "addresses": [f"10.9.0.{n}/24" for n in range(1, pairs + 1)]},
                    {"part": "dut2", "addresses": [f"10.9.0.{n + 100}/24" for n in range(1, pairs + 1)]},
                ]
            },
        ],
    }


ASKED = ladder.Asked("gateways", "tcp_large", "forward", 3, "0-3", {"power": "static_high", "reserved": "reserved"}, {})


def test_all_steps_set_the_same_variables_and_have_one_power_profile_each():
    made = ladder.overrides(ASKED, {"gateways": topology(4)})
    values = made["bench_axes"]["step"]["values"]
    assert list(values) == list(ladder.NAMES)
    assert len({tuple(sorted(value)) for value in values.values()}) == 1
    assert values["outer_pairs"]["ipsec_outer_pairs"] == 4
    assert values["route_gcm"]["kernel_router_rps"] == ""
    assert values["ecmp4"]["kernel_router_rps"] == "0-3"
    matrix = made["bench_matrix"]
    assert matrix["axes"]["power"] == ["as_found", "static_high", "reserved"]
    assert {"step": "power", "power": ["as_found", "reserved"]} in matrix["exclude"]
    assert {"step": "route_gcm", "power": ["static_high", "reserved"]} in matrix["exclude"]
    assert matrix["order"] == "interleaved"
    quick = ladder.overrides(dataclasses.replace(ASKED, order="spread"), {"gateways": topology(4)})
    assert quick["bench_matrix"] == {**matrix, "order": "spread"}


def test_steps_are_skipped_with_the_reason():
    asked = dataclasses.replace(ASKED, powers={"power": "static_high"}, skip={"rps": "one CPU"})
    found = ladder.skipped(asked, {"gateways": topology(1)})
    assert found["rps"] == "one CPU"
    assert "ipsec_ladder_reserved" in found["reserved"]
    assert "1 pair of addresses" in found["outer_pairs"]
    made = ladder.overrides(asked, {"gateways": topology(1)})
    values = made["bench_axes"]["step"]["values"]
    assert list(values) == ["policy_cbc_sha1", "route_cbc_sha1", "route_gcm", "ecmp4", "power"]
    assert {value["ipsec_outer_pairs"] for value in values.values()} == {1}
    assert {value["kernel_router_rps"] for value in values.values()} == {""}


WRONG = [
    {"skip": {"nothing": "x"}},
    {"skip": {"rps": " "}},
    {"topology": "other"},
    {"skip": dict.fromkeys(ladder.NAMES, "no")},
]


@pytest.mark.parametrize("changes", WRONG)
def test_what_cannot_be(changes):
    with pytest.raises(BenchError):
        ladder.overrides(dataclasses.replace(ASKED, **changes), {"gateways": topology(4)})


def test_without_cpus_there_is_no_steering():
    found = ladder.skipped(dataclasses.replace(ASKED, rps=""), {"gateways": topology(4)})
    assert list(found) == ["rps"]
    assert "ipsec_ladder_rps" in found["rps"]


def test_one_dut_is_no_pair_of_gateways():
    one = topology()
    del one["parts"]["dut2"]
    with pytest.raises(BenchError, match="1 DUTs"):
        ladder.skipped(ASKED, {"gateways": one})


def point(step, *values):
    made = PointSummary(f"lab.{step}", "lab", {"topology": "gateways", "step": step}, "goodput_forward", 3)
    made.values = list(values)
    if values:
        made.status, made.reason = "ok", None
        made.metrics = {"goodput_forward": MetricSummary("bit/s", "L4", "forward", "received", summarise(made.values))}
    else:
        made.status, made.reason = "failed", "tunnel_not_up"
    return made


def test_each_step_is_compared_with_the_last_one_that_was_measured():
    cbc, ecmp = point("route_cbc_sha1", 700e6, 702e6, 701e6), point("ecmp4", 1.06e9, 1.061e9, 1.062e9)
    points = [cbc, point("route_gcm"), ecmp]
    seen = {"code": "ipsec_one_outer_pair", "evidence": "gw2: CPU 1 99 % busy"}
    told = ladder.told_of([{"point_id": "lab.ecmp4", "findings": [seen]}] * 2)
    rungs = ladder.ladder_of(RunSummary("r1", {}, points, []), {"policy_cbc_sha1": "not asked for"}, told)
    assert [rung.step for rung in rungs] == list(ladder.NAMES)
    by_name = {rung.step: rung for rung in rungs}
    assert by_name["policy_cbc_sha1"].reason == "not asked for"
    assert by_name["route_gcm"].reason == "tunnel_not_up"
    assert by_name["ecmp4"].before == "route_cbc_sha1"
    figures = by_name["ecmp4"].comparison.figures
    assert figures is not None
    assert 50 < figures[0] < 53
    text = ladder.markdown("r1", rungs)
    assert "| ecmp4 | 1.06 Gbit/s |" in text
    assert text.count("ipsec_one_outer_pair") == 1
    assert "| rps | skipped: it is not in this run" in text
