# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import copy
import pathlib

import pytest
import yaml

from ansible_collections.fastpath.bench.plugins.module_utils._bench import plan as planning
from ansible_collections.fastpath.bench.plugins.module_utils._bench.catalog import catalog_of
from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError

ROOT = pathlib.Path(__file__).resolve().parents[5]
SHIPPED = yaml.safe_load((ROOT / "playbooks/vars/catalog.yml").read_text())["bench_shipped"]
LAB = yaml.safe_load((ROOT / "inventories/lab/group_vars/all/bench.yml").read_text())
HOSTS = ["client", "dut", "server"]


def lab(**changes):
    variables = copy.deepcopy(LAB)
    variables.update(changes)
    return variables


def plan(variables, hosts=None, name="lab"):
    hosts = HOSTS if hosts is None else hosts
    return planning.plan_testbed(name, hosts, variables["bench_matrix"], catalog_of(variables, SHIPPED))


def with_matrix(**changes):
    return lab(bench_matrix={**copy.deepcopy(LAB["bench_matrix"]), **changes})


def with_tcp_large(**changes):
    return lab(bench_traffic={"tcp_large": {"generator": "iperf2", **changes}})


def with_axes(**axes):
    matrix = copy.deepcopy(LAB["bench_matrix"])
    matrix["axes"].update(axes)
    return lab(bench_matrix=matrix)


def test_the_demo_has_twelve_points_and_thirty_six_trials_in_two_setups():
    testbed = plan(lab())
    assert len(testbed.points) == 2 * 2 * 3
    assert len(testbed.trials) == 36
    assert [(g["topology"], g["datapath"]) for g in testbed.groups] == [("direct", "none"), ("routed", "kernel")]
    assert planning.traffic_seconds(testbed.trials) == 72


def test_repetitions_are_spread():
    trials = plan(lab()).groups[0]["batches"][0]["trials"]
    assert [t["repetition"] for t in trials] == [1] * 6 + [2] * 6 + [3] * 6
    rounds = [[t["point_id"] for t in trials[i : i + 6]] for i in (0, 6, 12)]
    assert all(len(set(r)) == 6 for r in rounds)
    assert len({tuple(r) for r in rounds}) > 1, "each round has an order of its own"


def test_the_seed_alone_decides_the_order():
    first, again = plan(lab()), plan(lab())
    assert [t["id"] for t in first.trials] == [t["id"] for t in again.trials]
    other = plan(with_matrix(seed=7))
    assert sorted(t["id"] for t in other.trials) == sorted(t["id"] for t in first.trials)
    assert [t["id"] for t in other.trials] != [t["id"] for t in first.trials]


def test_interleaved_visits_each_setup_once_per_repetition():
    testbed = plan(with_matrix(order="interleaved"))
    assert [g["topology"] for g in testbed.groups] == ["direct", "routed"] * 3
    assert [{t["repetition"] for b in g["batches"] for t in b["trials"]} for g in testbed.groups] == [
        {1},
        {1},
        {2},
        {2},
        {3},
        {3},
    ]


def test_ports_and_instances_are_unique_in_a_batch():
    for group in plan(lab()).groups:
        for batch in group["batches"]:
            assert len({t["options"]["port"] for t in batch["trials"]}) == len(batch["trials"])
            assert len({t["instance"] for t in batch["trials"]}) == len(batch["trials"])


def test_addresses_and_routes_of_the_routed_topology():
    routed = plan(lab()).groups[1]
    assert routed["hosts"]["client"]["routes"] == [
        {"dst": "10.73.2.0/24", "via": "10.73.1.254", "dev": "eth1"},
        {"dst": "fd73:2::/64", "via": "fd73:1::fe", "dev": "eth1"},
    ]
    assert routed["hosts"]["server"]["routes"][0] == {"dst": "10.73.1.0/24", "via": "10.73.2.254", "dev": "eth1"}
    assert routed["hosts"]["dut"]["routes"] == []
    trial = routed["batches"][0]["trials"][0]
    assert (trial["options"]["server"], trial["options"]["bind"]) == ("10.73.2.1", "10.73.1.1")
    assert trial["interface"] == "eth1"


def test_a_chain_of_two_duts_routes_through_both():
    variables = lab()
    variables["bench_topologies"] = {
        "routed": {
            "parts": {"client": "a", "dut1": "b", "dut2": "c", "server": "d"},
            "links": [
                {
                    "ends": [
                        {"part": "client", "interface": "e1", "addresses": ["10.0.1.1/24"]},
                        {"part": "dut1", "interface": "e1", "addresses": ["10.0.1.2/24"]},
                    ]
                },
                {
                    "ends": [
                        {"part": "dut1", "interface": "e2", "addresses": ["10.0.2.1/24"]},
                        {"part": "dut2", "interface": "e1", "addresses": ["10.0.2.2/24"]},
                    ]
                },
                {
                    "ends": [
                        {"part": "dut2", "interface": "e2", "addresses": ["10.0.3.1/24"]},
                        {"part": "server", "interface": "e1", "addresses": ["10.0.3.2/24"]},
                    ]
                },
            ],
        }
    }
    variables["bench_matrix"] = {"axes": {"topology": ["routed"], "traffic": ["tcp_single"]}}
    group = plan(variables, ["a", "b", "c", "d"]).groups[0]
    assert [(r["dst"], r["via"]) for r in group["hosts"]["a"]["routes"]] == [
        ("10.0.2.0/24", "10.0.1.2"),
        ("10.0.3.0/24", "10.0.1.2"),
    ]
    assert [(r["dst"], r["via"]) for r in group["hosts"]["b"]["routes"]] == [("10.0.3.0/24", "10.0.2.2")]
    assert group["duts"] == ["b", "c"]


def test_exclude_and_include():
    variables = with_matrix(
        exclude=[{"topology": "direct", "direction": ["reverse", "both"]}],
        include=[{"topology": "direct", "traffic": "udp_large", "direction": "both"}],
    )
    points = set(plan(variables).points)
    assert len(points) == 12 - 4 + 1
    assert "lab.direct.none.udp_large.both" in points


def test_a_users_trial_axis_changes_the_generators_options():
    variables = with_axes(streams=["one", "many"])
    variables["bench_axes"] = {
        "streams": {"level": "trial", "values": {"one": {"parallel": 1}, "many": {"parallel": 8}}}
    }
    trials = plan(variables).trials
    assert {t["options"]["parallel"] for t in trials if ".many" in t["id"]} == {8}
    assert {t["options"]["parallel"] for t in trials if ".one" in t["id"]} == {1}


def test_a_users_setup_axis_makes_setups_of_its_own_and_means_nothing_without_a_dut():
    variables = with_axes(rps=["no", "all"])
    variables["bench_matrix"]["axes"]["rps"] = ["unset", "all"]
    variables["bench_axes"] = {
        "rps": {"values": {"unset": {"kernel_router_rps": ""}, "all": {"kernel_router_rps": "3"}}}
    }
    testbed = plan(variables)
    assert [g["settings"].get("rps") for g in testbed.groups] == ["none", "unset", "all"]
    assert testbed.groups[2]["vars"] == {"kernel_router_rps": "3"}
    assert len(testbed.points) == 6 + 12


def test_what_is_done_is_left_out_and_what_failed_gets_the_next_attempt():
    testbed = plan(lab())
    done = {(t["point_id"], t["repetition"]): (1, True) for t in testbed.trials if t["repetition"] < 3}
    failed = next(t for t in testbed.trials if t["repetition"] == 3)
    done[failed["point_id"], 3] = (2, False)
    planning.keep_missing(testbed, done)
    assert len(testbed.trials) == 12
    assert [t["id"] for t in testbed.trials if t["point_id"] == failed["point_id"]] == [failed["point_id"] + "-r3-a3"]


def test_the_baseline_of_a_routed_point_is_the_direct_one():
    testbed = plan(lab())
    points = [entry["point"] for entry in testbed.points.values()]
    routed = testbed.points["lab.routed.kernel.tcp_large.both"]["point"]
    assert planning.baseline_of(routed, {"topology": "direct"}, points) == {
        "topology": "direct",
        "datapath": "none",
        "traffic": "tcp_large",
        "direction": "both",
    }
    direct = testbed.points["lab.direct.none.tcp_large.both"]["point"]
    assert planning.baseline_of(direct, {"topology": "direct"}, points) is None


BAD = [
    (with_axes(traffic=["tcp_lage"]), "bench_matrix.axes.traffic[0]", "Did you mean 'tcp_large'"),
    (with_axes(topology=["dirct"]), "bench_matrix.axes.topology", "Did you mean 'direct'"),
    (with_axes(direction=["up"]), "bench_matrix.axes.direction[0]", "forward"),
    (with_axes(datapth=["kernel"]), "bench_matrix.axes", "Did you mean 'datapath'"),
    (with_axes(direction=[]), "bench_matrix.axes.direction", "no value"),
    (with_axes(direction=["forward", "forward"]), "bench_matrix.axes.direction[1]", "listed twice"),
    (with_axes(datapath=["none"]), "bench_matrix.axes.datapath", "has a DUT"),
    (with_matrix(repeats=0), "bench_matrix.repeats", "1 to 10000"),
    (with_matrix(repeats=1.5), "bench_matrix.repeats", "whole number"),
    (with_matrix(order="any"), "bench_matrix.order", "spread"),
    (with_matrix(seed="x"), "bench_matrix.seed", "number"),
    (with_matrix(repeat=3), "bench_matrix", "Did you mean 'repeats'"),
    (with_matrix(exclude=[{"topology": ["direct", "routed"]}]), "bench_matrix", "no point is left"),
    (with_matrix(exclude=[{"traffic": "udp_large"}]), "bench_matrix.exclude[0]", "matches no point"),
    (with_matrix(exclude=[{}]), "bench_matrix.exclude[0]", "names no axis"),
    (with_matrix(include=[{"topology": "other"}]), "bench_matrix.include[0]", "direct"),
    (with_matrix(baseline={"topology": ["direct", "routed"]}), "bench_matrix.baseline.topology", "one value"),
    (lab(bench_duration_s=0), "bench_traffic.tcp_large.duration_s", "more than 0"),
    (lab(bench_duration_s="long"), "bench_traffic.tcp_large.duration_s", "number"),
    (lab(bench_duration_s=0.1), "bench_traffic.tcp_large.interval_s", "longer than"),
    (lab(bench_warmup_s=0.3), "bench_traffic.tcp_large.warmup_s", "whole number of intervals"),
    (lab(bench_warmup_s=-1), "bench_traffic.tcp_large.warmup_s", "0 or more"),
    (with_tcp_large(generator="iperf9"), "bench_traffic.tcp_large.generator", "iperf2"),
    (with_tcp_large(headline="speed"), "bench_traffic.tcp_large.headline", "goodput"),
    (with_tcp_large(ip_version=5), "bench_traffic.tcp_large.ip_version", "4 or 6"),
    (lab(bench_traffic=[]), "bench_traffic", "mapping"),
    (with_matrix(include={"topology": "direct"}), "bench_matrix.include", "a list is needed"),
    (with_matrix(include=["direct"]), "bench_matrix.include[0]", "a mapping is needed"),
    *(
        (with_tcp_large(options={name: 1}), f"bench_traffic.tcp_large.options.{name}", "the engine gives this option")
        for name in planning.ENGINE_OPTIONS
    ),
    (
        lab(bench_axes={"a": {"level": "trial", "values": {"one": {"port": 1}}}}),
        "bench_axes.a.values.one.port",
        "the engine gives this option",
    ),
    (
        lab(bench_axes={"a": {"values": {"one": {"a-b": 1}}}}),
        "bench_axes.a.values.one",
        "'a-b' cannot be the name of a variable",
    ),
    (
        lab(bench_datapaths={"kernel": {"role": "a.b.c", "vars": {"for": 1}}}),
        "bench_datapaths.kernel.vars",
        "'for' cannot be the name of a variable",
    ),
]


@pytest.mark.parametrize(("variables", "where", "hint"), BAD, ids=[f"{where}: {hint}" for _v, where, hint in BAD])
def test_a_mistake_is_one_clear_error(variables, where, hint):
    with pytest.raises(BenchError) as caught:
        plan(variables)
    assert caught.value.where == where
    assert hint in caught.value.message


def _link(*ends, **more):
    return {"ends": [{"part": p, "interface": i, "addresses": a} for p, i, a in ends], **more}


GOOD_END = ("client", "eth2", ["10.0.0.1/24"])
BAD_TOPOLOGIES = [
    ({"parts": {"client": "client"}, "links": []}, "no server"),
    ({"parts": {"client": "client", "server": "nowhere"}, "links": []}, "not in the inventory"),
    ({"parts": {"client": "client", "server": "client"}, "links": []}, "two parts"),
    ({"parts": {"client": "client", "switch": "dut"}, "links": []}, "no part"),
    ({"parts": {"client": "client", "server": "server"}, "links": []}, "no server"),
    ({"links": [_link(GOOD_END, ("server", "eth2", ["10.0.1.2/24"]))]}, "different networks"),
    ({"links": [_link(GOOD_END, ("server", "eth2", ["10.0.0.1/24"]))]}, "given twice"),
    ({"links": [_link(GOOD_END, ("server", "eth2", ["10.0.0.2"]))]}, "no prefix length"),
    ({"links": [_link(GOOD_END, ("server", "eth2", ["10.0.0.0/24"]))]}, "network itself"),
    ({"links": [_link(GOOD_END, ("server", "eth2", ["10.0.0.300/24"]))]}, "no address"),
    ({"links": [_link(GOOD_END, ("server", "a-name-of-16-ch.", ["10.0.0.2/24"]))]}, "15 characters"),
    ({"links": [_link(GOOD_END, ("server", "eth2", []))]}, "has no IPv4 address"),
    ({"links": [_link(GOOD_END)]}, "at least two ends"),
    ({"links": [_link(GOOD_END, ("server", "eth2", ["10.0.0.2/24"]), mtu_bytes=67)]}, "68 to 65535"),
    ({"links": [_link(GOOD_END, ("server", "eth2", ["10.0.0.2/24"]))] * 2}, "end of two links"),
    ({"links": [_link(GOOD_END, ("server", "eth2", ["10.0.0.2/24"]))], "route": []}, "Did you mean 'routes'"),
    ({"links": [_link(GOOD_END, ("server", "..", ["10.0.0.2/24"]))]}, "no interface name"),
    ({"links": [_link(GOOD_END, ("server", "lo", ["10.0.0.2/24"]))]}, "loopback interface"),
    ({"links": [_link(GOOD_END, ("server", "eth2", ["10.0.0.255/24"]))]}, "broadcast address of its network"),
    ({"links": [_link(GOOD_END, ("server", "eth2", ["224.0.0.1/24"]))]}, "multicast"),
    ({"links": [_link(GOOD_END, ("server", "eth2", ["ff02::5/64"]))]}, "multicast"),
    ({"links": [_link(GOOD_END, ("server", "eth2", ["127.0.0.2/8"]))]}, "loopback address"),
    *(
        ({"links": [_link(GOOD_END, ("server", "eth2", ["10.0.0.2/24"]))], "routes": {"client": [route]}}, told)
        for route, told in (
            ({"via": "10.0.0.2"}, "a text is needed"),
            ({"dst": "10.9.0.1/24", "via": "10.0.0.2"}, "no network"),
            ({"dst": "default", "via": "there"}, "no address"),
            ({"dst": "default", "via": "10.1.0.2"}, "none of the networks of this part. They are: 10.0.0.0/24"),
            ({"dst": "default", "dev": "eth9"}, "no interface of this part 'eth9'"),
            ({"dest": "default"}, "Did you mean 'dst'"),
        )
    ),
]


@pytest.mark.parametrize("dst", ["default", "default6", "10.9.0.0/16", "10.9.0.1", "fd00::/8"])
def test_further_routes_are_handed_on(dst):
    variables = lab()
    route = {"dst": dst, "via": "10.73.3.2", "dev": "eth2", "metric": 5}
    variables["bench_topologies"]["direct"]["routes"] = {"client": [route]}
    assert route in plan(variables).groups[0]["hosts"]["client"]["routes"]


@pytest.mark.parametrize(("topology", "hint"), BAD_TOPOLOGIES, ids=[h for _t, h in BAD_TOPOLOGIES])
def test_a_wrong_topology_is_one_clear_error(topology, hint):
    variables = lab()
    variables["bench_topologies"]["direct"] = {"parts": {"client": "client", "server": "server"}, **topology}
    with pytest.raises(BenchError) as caught:
        plan(variables)
    assert "bench_topologies.direct" in str(caught.value.where)
    assert hint in caught.value.message


def test_a_bare_off_in_yaml_is_pointed_out():
    with pytest.raises(BenchError, match="quotes"):
        plan(with_axes(direction=[False]))


def test_an_ip_version_without_a_path_is_refused():
    variables = lab(bench_traffic={"tcp_large": {"generator": "iperf2", "ip_version": 6}})
    for link in variables["bench_topologies"]["direct"]["links"]:
        for end in link["ends"]:
            end["addresses"] = end["addresses"][:1]
    with pytest.raises(BenchError, match="no IPv6 path"):
        plan(variables)


def test_setup_axis_values_must_set_the_same_variables():
    variables = lab(bench_axes={"rps": {"values": {"a": {"x": 1}, "b": {}}}})
    with pytest.raises(BenchError, match="which another value sets"):
        plan(variables)


def test_long_batches_are_cut():
    batches = plan(with_matrix(repeats=40)).groups[0]["batches"]
    assert sum(len(b["trials"]) for b in batches) == 240
    assert max(len(b["trials"]) for b in batches) <= planning.BATCH_MAX_TRIALS


def test_a_datapath_that_keeps_state_has_one_trial_in_a_batch_and_is_reset():
    variables = with_axes(datapath=["kernel", "nat"])
    variables["bench_datapaths"] = {"nat": {"role": "my.collection.nat", "stateful": True}}
    asked = {}

    class Asked(planning.Checks):
        def role(self, name, entries, where):
            asked[name] = entries

    catalog = catalog_of(variables, SHIPPED)
    testbed = planning.plan_testbed("lab", HOSTS, variables["bench_matrix"], catalog, Asked())
    sizes = {group["datapath"]: {len(batch["trials"]) for batch in group["batches"]} for group in testbed.groups}
    assert sizes == {"none": {18}, "kernel": {18}, "nat": {1}}
    assert [group["stateful"] for group in testbed.groups] == [False, False, True]
    assert len({batch["id"] for group in testbed.groups for batch in group["batches"]}) == 20
    assert "reset" in asked["my.collection.nat"]
    assert "reset" not in asked["fastpath.bench.kernel_router"]
    variables["bench_datapaths"]["nat"]["stateful"] = "yes"
    with pytest.raises(BenchError, match="true or false is needed"):
        plan(variables)


# -- generators, roles and modules ------------------------------------------------------------------------------------


def test_trials_of_two_generators_make_few_batches():
    variables = with_axes(traffic=["tcp_large", "three"])
    variables["bench_traffic"] = {"three": {"generator": "iperf3", "options": {"protocol": "tcp"}}}
    testbed = plan(variables)
    for group in testbed.groups:
        assert [batch["generator"] for batch in group["batches"]] == ["iperf2", "iperf3", "iperf2", "iperf3"]
        assert [len(batch["trials"]) for batch in group["batches"]] == [3, 6, 6, 3]
        order = [trial["repetition"] for batch in group["batches"] for trial in batch["trials"]]
        assert order == sorted(order), "rounds stay one after the other"
    assert {trial["options"]["tool"] for trial in testbed.trials} == {"iperf2", "iperf3"}


def test_options_of_a_profile_win_over_those_of_its_generator():
    variables = lab(
        bench_generators={"mine": {"role": "a.b.c", "module": "a.b.m", "options": {"x": 1, "y": 2}, "vars": {"v": 3}}},
        bench_traffic={"tcp_large": {"generator": "mine", "options": {"y": 5}}},
    )
    variables["bench_matrix"]["axes"]["traffic"] = ["tcp_large"]
    testbed = plan(variables)
    assert testbed.trials[0]["options"].items() >= {"x": 1, "y": 5}.items()
    assert testbed.groups[0]["batches"][0]["vars"] == {"v": 3}


def test_ports_stay_below_those_that_the_kernel_gives_away():
    testbed = plan(with_traffic_of(1000))
    ports = [trial["options"]["port"] for trial in testbed.trials]
    assert max(ports) + 1000 <= 32768
    assert min(ports) == 5201
    for batch in (batch for group in testbed.groups for batch in group["batches"]):
        taken = sorted(trial["options"]["port"] for trial in batch["trials"])
        assert all(after - before >= 1000 for before, after in zip(taken, taken[1:]))


def with_traffic_of(streams):
    variables = with_matrix(repeats=20)
    variables["bench_matrix"]["axes"] = {
        "topology": ["direct"],
        "traffic": ["udp_small"],
        "direction": ["forward", "both"],
    }
    variables["bench_traffic"] = {"udp_small": {"generator": "iperf2", "options": {"parallel": streams}}}
    return variables


class Surroundings(planning.Checks):
    def __init__(self):
        self.roles, self.trials = [], []

    def role(self, name, entries, where):
        self.roles.append((name, tuple(entries), where))

    def trial(self, module, options, headline, where):
        self.trials.append((module, headline, where))

    def unset(self, host, role, variable, where):
        return f"{host} {role} {variable} {where}"


def plan_with(checks, variables):
    return planning.plan_testbed("lab", HOSTS, variables["bench_matrix"], catalog_of(variables, SHIPPED), checks)


def test_roles_and_trials_are_looked_at_before_anything_runs():
    checks = Surroundings()
    plan_with(checks, lab())
    assert checks.roles == [
        ("fastpath.bench.kernel_router", ("apply", "verify", "observe", "remove"), "bench_datapaths.kernel.role"),
        ("fastpath.bench.iperf", ("main", "serve", "collect"), "bench_generators.iperf2.role"),
    ]
    looked_at = {(headline, where) for _module, headline, where in checks.trials}
    assert looked_at == {
        (f"{metric}_{way}", f"bench_traffic.{traffic}.options")
        for traffic, metric in (("tcp_large", "goodput"), ("udp_small", "forwarding_rate"))
        for way in ("forward", "reverse", "total")
    }


def test_what_one_set_up_sets_does_not_hold_for_the_next_one():
    variables = with_axes(datapath=["kernel", "rps"])
    variables["bench_datapaths"] = {
        "rps": {"role": "fastpath.bench.kernel_router", "vars": {"kernel_router_rps": "0-1"}},
        "other": {"role": "fastpath.bench.other", "vars": {"other": 1}},
    }
    variables["bench_matrix"]["axes"]["datapath"].append("other")
    groups = {group["datapath"]: group for group in plan_with(Surroundings(), variables).groups}
    assert groups["rps"]["unset"] == groups["other"]["unset"] == groups["none"]["unset"] == {}
    assert groups["kernel"]["unset"] == {
        "dut": {"kernel_router_rps": "dut fastpath.bench.kernel_router kernel_router_rps bench_datapaths.kernel.vars"}
    }


def test_none_is_no_name_for_a_value_of_an_own_axis():
    """It would be taken for a point at which the axis means nothing, and what it sets would not be set."""
    variables = with_axes(streams=["none"])
    variables["bench_axes"] = {"streams": {"level": "trial", "values": {"none": {"parallel": 1}}}}
    with pytest.raises(BenchError, match=r"^bench_axes\.streams\.values: a value cannot be called 'none'"):
        plan(variables)
    with pytest.raises(BenchError, match=r"^bench_datapaths: a datapath cannot be called 'none'"):
        plan(lab(bench_datapaths={"none": {"role": "a.b.c"}}))


@pytest.mark.parametrize("name", ["a" * 24, "a" * 25, "rack " * 40])
def test_a_long_name_of_a_testbed_makes_no_long_names_of_its_parts(name):
    testbed = plan(lab(), name=name)
    assert {len(group["id"]) <= 28 for group in testbed.groups} == {True}
    assert len({planning.short_slug(f"{name}{n}") for n in range(3)}) == 3
