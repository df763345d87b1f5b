# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import pathlib

import pytest
import yaml

from ansible_collections.fastpath.bench.plugins.module_utils._bench import study, topology
from ansible_collections.fastpath.bench.plugins.module_utils._bench.stats import summarise
from ansible_collections.fastpath.bench.plugins.module_utils._bench.summary import (
    MetricSummary,
    PointSummary,
    RunSummary,
)
from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError

ROOT = pathlib.Path(__file__).parents[5]
KINDS = {"server": ["s1", "s2"], "desktop": ["d1", "d2"]}
INTERFACES = {host: ["eth1", "eth2"] for hosts in KINDS.values() for host in hosts}
POWERS = ["dynamic", "static_high"]
REFERENCE = yaml.safe_load((ROOT / "playbooks/vars/kernel_matrix.yml").read_text())["kernel_matrix_published"]


def planned(kinds=None, interfaces=None, powers=None):
    return study.overrides(
        study.kinds_of(kinds or KINDS), interfaces or INTERFACES, powers or POWERS, repeats=3, mtu_bytes=1500
    )


def test_it_has_five_topologies_and_eighty_figures():
    made = planned()
    axes = made["bench_matrix"]["axes"]
    assert axes["topology"] == [
        "server_to_server", "desktop_to_desktop", "server_to_desktop", "server_routes", "desktop_routes",
    ]  # fmt: skip
    points = len(axes["topology"]) * len(axes["power"]) * len(axes["traffic"]) * len(axes["direction"])
    assert points * len(study.STATISTICS) == 80
    parts = {name: entry["parts"] for name, entry in made["bench_topologies"].items()}
    assert parts["server_routes"] == {"client": "d1", "server": "d2", "dut": "s1"}
    assert parts["desktop_routes"] == {"client": "s1", "server": "s2", "dut": "d1"}


def test_every_topology_can_be_set_up_and_a_dut_leads_from_one_network_to_the_other():
    for name, entry in planned()["bench_topologies"].items():
        made = topology.parse(name, entry, list(INTERFACES))
        setups = {setup.part: setup for setup in topology.resolve(made).values()}
        if "dut" in setups:
            assert [i["name"] for i in setups["dut"].interfaces] == ["eth1", "eth2"]
            assert [(r["dst"], r["via"]) for r in setups["client"].routes] == [("10.74.2.0/24", "10.74.1.254")]


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"kinds": {"server": ["a", "b"]}}, "there are 1 kinds"),
        ({"kinds": {"server": ["a", "b"], "desktop": ["c"]}}, "kinds.desktop: the study takes two different hosts"),
        ({"kinds": {"server": ["a", "a"], "desktop": ["c", "d"]}}, "kinds.server: the study takes two different hosts"),
        ({"kinds": {"server": ["a", "b"], "desktop": ["b", "c"]}}, "b is of both kinds"),
        ({"interfaces": {**INTERFACES, "d2": ["eth1"]}}, "interfaces.d2: d2 needs an interface in each"),
        ({"interfaces": {**INTERFACES, "d2": ["eth1", "eth1"]}}, "interfaces.d2: d2 needs an interface in each"),
        ({"interfaces": {**INTERFACES, "d2": 5}}, "interfaces.d2: d2 needs an interface in each"),
        ({"interfaces": {"d1": ["a", "b"]}}, "interfaces.s1: s1 needs an interface in each"),
        ({"kinds": {"server": None, "desktop": ["c", "d"]}}, "kinds.server: the study takes two different hosts"),
        ({"kinds": {"server": "ab", "desktop": ["c", "d"]}}, "kinds.server: the study takes two different hosts"),
        ({"kinds": {"server": [["a"], "b"], "desktop": ["c", "d"]}}, "kinds.server: the study takes two different"),
        ({"powers": ["dynamic", "dynamic"]}, "twice"),
    ],
)
def test_wrong_input_is_one_clear_error(changes, told):
    with pytest.raises(BenchError) as caught:
        planned(**changes)
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("reference", "told"),
    [
        (["a"], "reference: "),
        ({"figures": {"a": 1}}, "reference.figures: it is no list"),
        ({"figures": [{"value": 1}]}, "reference.figures[0]: a figure needs a name"),
        ({"figures": [{"what": "x"}]}, "reference.figures[0]: a figure needs a name and a number"),
        ({"figures": [{"what": "x", "low": 1}]}, "reference.figures[0]: a figure needs a name and a number"),
        ({"figures": [{"what": "x", "value": "30 Gbit/s"}]}, "figures[0].value: '30 Gbit/s' is no number"),
    ],
)
def test_published_figures_of_ones_own_are_checked_before_the_run(reference, told):
    with pytest.raises(BenchError) as caught:
        study.reference_of(reference)
    assert told in str(caught.value)
    assert study.reference_of(REFERENCE)["figures"][2]["value"] == 30.8e9
    assert study.reference_of(None) == {}


def measured(value_of, findings=lambda _power: ()):
    """A run of the study: value_of(topology, power, traffic, direction) gives the repetitions, or a reason."""
    points = []
    for layout in study.layouts(study.kinds_of(KINDS)):
        for power in POWERS:
            for traffic in study.TRAFFIC:
                for direction in study.DIRECTIONS:
                    point = {
                        "topology": layout.name, "datapath": "kernel" if layout.dut else "none", "power": power,
                        "traffic": traffic, "direction": direction,
                    }  # fmt: skip
                    unit = "bit/s" if traffic == "tcp_large" else "packet/s"
                    made = PointSummary(".".join(point.values()), "t", point, "x", 3)
                    values = value_of(layout.name, power, traffic, direction)
                    if isinstance(values, str):
                        made.status, made.reason = "skipped", values
                    else:
                        made.values = values
                        peaks = [1.1 * value for value in values]
                        made.metrics["x"] = MetricSummary(unit, "L4", direction, "received", summarise(values, peaks))
                        made.status, made.reason = "ok", None
                    made.findings += findings(power)
                    points.append(made)
    return study.study_of(RunSummary("r", {}, points, []), study.kinds_of(KINDS), POWERS, REFERENCE)


def around(value):
    return [value * 0.999, value, value * 1.001]


def whole():
    def value_of(name, power, traffic, direction):
        base = 30e9 if traffic == "tcp_large" else 1e6
        routed = 0.5 if name.endswith("routes") else 1.0
        # 100 % more for large packets in one cell, 10 % elsewhere; small packets lose 10 %
        gain = {"dynamic": 1.0}.get(power) or (0.9 if traffic == "udp_small" else 1.1)
        if (name, power, traffic, direction) == ("server_routes", "static_high", "tcp_large", "forward"):
            gain = 2.0
        return around(base * routed * gain)

    return measured(value_of)


def test_all_figures_and_what_follows_from_them():
    made = whole()
    assert len(made.cells) == 80
    assert all(cell.value is not None for cell in made.cells)
    assert made.sentences[0] == "80 of 80 figures were measured"
    large = next(line for line in made.sentences if line.startswith("large packets, static_high over dynamic"))
    assert "from +10.0 %" in large
    assert "to +100.0 %" in large
    assert "shown in 10 of 10 comparisons" in large
    small = next(line for line in made.sentences if line.startswith("small packets, static_high over dynamic"))
    assert "-10.0 %" in small
    # 20 gains, 8 between the kinds, 16 routed against direct
    assert any(line.startswith("of the 44 comparisons made, about 2 would show") for line in made.sentences)
    # the same on both kinds
    assert any(
        line.startswith("large packets, server over desktop") and "no difference is shown in any of 4" in line
        for line in made.sentences
    )
    # half of 30 Gbit/s, doubled, and 10 % above as peak
    assert "best peak routed, large packets: 33.0 Gbit/s (server_routes, static_high, forward)" in made.sentences
    what = "server_routes over desktop_to_desktop tcp_large reverse, dynamic"
    routed = next(versus for versus in made.routed if versus.what == what)
    assert routed.found.figures[0] == pytest.approx(-50.0, abs=0.01)


def test_what_an_emulator_was_told_is_no_gain_and_the_rest_is_compared():
    def value_of(name, power, _traffic, _direction):
        return around(1e9 * (2 if power == "static_high" else 1) * (0.5 if name.endswith("routes") else 1))

    made = measured(value_of, lambda _power: ["power_emulated"])
    assert made.sentences[0] == "80 of 80 figures were measured"
    assert made.sentences[1].startswith("dynamic and static_high: set in emulators of a BMC")
    assert all(versus.text == "not shown: finding power_emulated" for versus in made.gains)
    assert any(line.endswith("in any of 10 comparisons: finding power_emulated (10)") for line in made.sentences)
    assert all(versus.found is not None and versus.found.figures is not None for versus in made.routed)


def test_a_figure_that_is_not_there_has_a_reason():
    made = measured(lambda _n, power, _t, _d: around(1e9) if power == "dynamic" else "skipped: no lever")
    assert made.sentences[0] == "40 of 80 figures were measured; the others were not: skipped: no lever (40)"
    assert all(versus.found is not None and not versus.found.shown and versus.reason for versus in made.gains)
    text = study.markdown(made)
    assert "\n1. skipped: no lever\n" in text
    assert "| static_high: 1 |" in text
    assert "has no result (skipped)" in text


def test_the_files_are_whole_and_the_published_figures_stand_beside():
    made = whole()
    text = study.markdown(made)
    # what is compared is not the mean that stands in the table of figures, so it is called by its name
    assert "| of what | difference of the geometric means |" in text
    assert text.count("| server_routes | tcp_large |") == 2
    assert "30.8 Gbit/s" in text
    assert "+1.5 % to +106 %" in text
    assert "of other hardware" in text
    # and how little of them is at hand
    assert (REFERENCE["complete"], REFERENCE["published"], len(REFERENCE["figures"])) == (False, 80, 5)
    assert "its single figures are not at hand" in " ".join(text.split())
    assert "Of the 80 figures published, 5 that sum them up are here." in text
    document = json.loads(json.dumps(made.as_dict()))
    assert len(document["cells"]) == 80
    assert {"topology", "power", "traffic", "direction", "statistic", "value", "unit", "reason"} == set(
        document["cells"][0]
    )
