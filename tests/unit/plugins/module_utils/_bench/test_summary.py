# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import os
import pathlib

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ansible_collections.fastpath.bench.plugins.module_utils._bench.store import RunStore
from ansible_collections.fastpath.bench.plugins.module_utils._bench.summary import median_vpp, summarise_run
from ansible_collections.fastpath.bench.tests.unit.fake_run import fake_run, trial, vpp_runtime

SCHEMAS = pathlib.Path(__file__).parents[5] / "meta" / "schemas"


def validator(name):
    schema = json.loads((SCHEMAS / f"{name}.schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


SUMMARY = validator("summary")


@pytest.fixture(name="stored")
def _stored(tmp_path, monkeypatch):
    """Stores a run whose trials a test may change on the way; a change that returns None drops the trial."""
    monkeypatch.setattr(os, "fsync", lambda _descriptor: None)  # tests need no disk
    number = iter(range(1000))

    def build(change=lambda made: made, **options):
        run, trials = fake_run(**options)
        store = RunStore.create(tmp_path / str(next(number)), "fake", run)
        for made in trials:
            changed = change(made)
            if changed is not None:
                store.write_trial(changed)
        return store

    return build


def only(*point_ids, **changes):
    """Change these points and leave the rest."""

    def change(made):
        if made["point_id"] in point_ids:
            made = {**made, **changes}
        return made

    return change


def scaled(factors):
    """Multiply the headlines of points."""

    def change(made):
        factor = factors.get(made["point_id"])
        if factor:
            for entry in made["metrics"].values():
                if entry["unit"] in ("bit/s", "packet/s"):
                    entry["value"] *= factor
            for sample in made["dut"].values():
                for interface in sample["interfaces"].values():
                    interface["rx_bytes"] = int(interface["rx_bytes"] * factor)
                    interface["rx_packets"] = int(interface["rx_packets"] * factor)
        return made

    return change


KERNEL, VPP, DIRECT = (
    f"lab.{path}.tcp_large.forward" for path in ("routed.kernel", "routed.vpp_af_packet", "direct.none")
)


def test_all_that_is_written_fits_the_schemas(stored):
    store = stored(lambda made: None if made["point_id"] == VPP else made)
    validator("run").validate(store.read_run())
    for made in store.trials():
        validator("trial").validate(made)
    validator("summary").validate(json.loads(json.dumps(summarise_run(store).as_dict())))


@pytest.mark.parametrize(
    ("name", "key", "value"),
    [("trial", "schema", 2), ("trial", "status", "fine"), ("trial", "raw", ["../x"]), ("trial", "repetition", 0),
     ("run", "repeats", 0), ("run", "points", {"a/b": {}})],
)  # fmt: skip
def test_the_schemas_refuse_what_is_wrong(name, key, value):
    run, trials = fake_run()
    good = trials[0] if name == "trial" else run
    validator(name).validate(good)
    with pytest.raises(jsonschema.ValidationError):
        validator(name).validate({**good, key: value})


def test_what_was_measured_and_not_collected_is_told_apart_from_what_never_ran(stored):
    store = stored(lambda made: None if made["point_id"] in (VPP, KERNEL) else made)
    store.spool.mkdir()
    for name in (f"{VPP}-r1-a1.json", f"{VPP}-r2-a1.json", f"{DIRECT}-r1-a1.json", ".x.json.77.tmp"):
        (store.spool / name).write_text("{}")
    summary = summarise_run(store)
    assert summary.by_id(VPP).reason == "2 measured and not collected yet: resume the run"
    assert summary.by_id(KERNEL).reason == "never run"
    assert summary.by_id(DIRECT).status == "ok"
    (noticed,) = [entry for entry in summary.noticed if entry.code == "not_collected"]
    assert noticed.evidence == ["2 measured trials are not in this report"]


def test_points_come_in_the_order_of_the_plan_with_their_figures(stored):
    store = stored()
    summary = summarise_run(store)
    assert [point.point_id for point in summary.points] == list(store.read_run()["points"])
    values = [made["metrics"]["goodput_forward"]["value"] for made in store.trials() if made["point_id"] == KERNEL]
    point = summary.by_id(KERNEL)
    assert (point.status, point.counted, point.asked) == ("ok", 3, 3)
    assert sorted(values)[1] == point.main.summary.median
    assert point.main.summary.peak == pytest.approx(max(values) * 1.03)


def test_the_last_attempt_counts(stored):
    store = stored(only(KERNEL, status="failed", reason="refused", metrics={}))
    assert summarise_run(store).by_id(KERNEL).status == "failed"
    for repetition in (1, 2, 3):
        store.write_trial(trial(KERNEL, repetition=repetition))
    point = summarise_run(store).by_id(KERNEL)
    assert (point.status, [row.attempt for row in point.trials]) == ("ok", [2, 2, 2])


def test_a_failed_repetition_leaves_no_trace_in_the_figures(stored):
    def change(made):
        if made["point_id"] == KERNEL and made["repetition"] == 2:
            made = {**made, "status": "failed", "code": "connect", "reason": "Connection refused"}
            made["metrics"]["goodput_forward"]["value"] = 1e15
        return made

    point = summarise_run(stored(change)).by_id(KERNEL)
    assert (point.status, point.counted, point.main.summary.n) == ("partial", 2, 2)
    assert point.reason == "failed: Connection refused (1 of 3)"
    assert point.main.summary.max < 1e14
    assert point.findings == ["incomplete_point", "few_repetitions"]


def test_an_invalid_trial_is_found_at_the_report_when_nobody_noticed_before(stored):
    def change(made):
        if made["point_id"] == KERNEL:
            for interface in made["dut"]["dut"]["interfaces"].values():
                interface.update(rx_packets=10, rx_bytes=800)
        return made

    point = summarise_run(stored(change)).by_id(KERNEL)
    assert point.status == "invalid"
    assert "dut_saw_no_traffic" in point.findings
    assert point.reason.startswith("invalid: dut received")


def test_missing_points_are_points(stored):
    store = stored(lambda made: None if made["point_id"] == VPP else made)
    summary = summarise_run(store)
    point = summary.by_id(VPP)
    assert (point.status, point.reason, point.main.unit, point.main.summary.n) == ("missing", "never run", "bit/s", 0)
    assert "missing_points" in [noticed.code for noticed in summary.noticed]


def test_missing_repetitions_are_counted(stored):
    store = stored(lambda made: None if made["point_id"] == KERNEL and made["repetition"] > 1 else made)
    point = summarise_run(store).by_id(KERNEL)
    assert (point.status, point.reason) == ("partial", "missing: never run (2 of 3)")


def test_an_unknown_headline_is_no_value(stored):
    def change(made):
        if made["point_id"] == KERNEL:
            made["metrics"]["goodput_forward"].update(value=None, peak=None)
        return made

    point = summarise_run(stored(change)).by_id(KERNEL)
    assert (point.status, point.main.summary.n) == ("invalid", 0)
    assert point.reason == "goodput_forward is not known (3 of 3)"


def test_a_trial_that_the_plan_does_not_know_is_shown(stored):
    store = stored()
    store.write_trial(trial("lab.routed.other.tcp_large.forward"))
    assert summarise_run(store).by_id("lab.routed.other.tcp_large.forward").status == "partial"


def test_a_truncated_trial_is_a_finding_and_not_fatal(stored):
    store = stored()
    path = store.path / "trials" / f"{KERNEL}-r2-a1.json"
    path.write_bytes(path.read_bytes()[:300])
    summary = summarise_run(store)
    (noticed,) = [noticed for noticed in summary.noticed if noticed.code == "unreadable_trial"]
    assert noticed.severity == "error"
    assert f"trials/{KERNEL}-r2-a1.json: not whole JSON" in noticed.evidence[0]
    assert summary.noticed[0] is noticed
    assert summary.by_id(KERNEL).status == "partial"
    # it was measured, so it does not count as never run
    assert "the file cannot be read" in summary.by_id(KERNEL).reason
    assert "never run" not in summary.by_id(KERNEL).reason


# -- differences --------------------------------------------------------------------------------------------------


def test_a_routed_point_is_held_against_the_direct_path(stored):
    summary = summarise_run(stored(noise=0.005))
    point = summary.by_id(KERNEL)
    assert (point.baseline.point_id, point.baseline.label, point.baseline.shown) == (DIRECT, "direct", True)
    assert point.baseline.difference.percent == pytest.approx(-45, abs=2)
    assert point.direct_percent == pytest.approx(55, abs=2)
    assert summary.by_id(DIRECT).is_baseline
    assert summary.by_id(DIRECT).baseline is None


def with_baseline(store, baseline):
    store.write_run({**store.read_run(), "baseline": baseline})
    return summarise_run(store)


def test_datapath_against_datapath(stored):
    summary = with_baseline(stored(noise=0.005), {"datapath": "kernel"})
    against = summary.by_id(VPP).baseline
    assert (against.point_id, against.label, against.shown) == (KERNEL, "kernel", True)
    assert against.difference.percent == pytest.approx(20, abs=3)
    assert summary.by_id(KERNEL).is_baseline
    assert summary.by_id(DIRECT).baseline is None


def test_an_endpoint_limited_point_is_a_lower_bound(stored):
    summary = summarise_run(stored(scaled({KERNEL: 1.8}), noise=0.005))
    point = summary.by_id(KERNEL)
    assert "endpoint_limited" in point.findings
    assert point.at_least
    assert not point.baseline.shown
    assert "carries at least" in point.baseline.reason


def test_a_lower_bound_still_carries_at_least(stored):
    summary = with_baseline(stored(scaled({VPP: 1.5}), noise=0.005), {"datapath": "kernel"})
    assert (summary.by_id(VPP).baseline.shown, summary.by_id(VPP).baseline.bound) == (True, "at_least")
    summary = with_baseline(stored(scaled({KERNEL: 1.8}), noise=0.005), {"datapath": "kernel"})
    assert (summary.by_id(VPP).baseline.shown, summary.by_id(VPP).baseline.bound) == (True, "at_most")
    summary = with_baseline(stored(scaled({KERNEL: 1.8, VPP: 1.5}), noise=0.005), {"datapath": "kernel"})
    assert (summary.by_id(VPP).baseline.shown, summary.by_id(VPP).baseline.bound) == (False, None)
    assert "on both sides" in summary.by_id(VPP).baseline.reason


def test_a_baseline_that_is_a_lower_bound_carries_no_gain(stored):
    summary = with_baseline(stored(scaled({KERNEL: 1.8, VPP: 1.35}), noise=0.001), {"datapath": "vpp_af_packet"})
    assert summary.by_id(KERNEL).at_least
    summary = with_baseline(stored(scaled({VPP: 1.5}), noise=0.005), {"datapath": "vpp_af_packet"})
    assert summary.by_id(KERNEL).baseline.bound == "at_most"


def test_no_difference_is_said_so(stored):
    summary = with_baseline(stored(scaled({VPP: 1 / 1.2}), noise=0.03), {"datapath": "kernel"})
    assert not summary.by_id(VPP).baseline.shown
    assert summary.by_id(VPP).baseline.reason.startswith("no difference shown: the 95 % interval")


def test_one_repetition_carries_no_difference(stored):
    against = summarise_run(stored(repeats=1)).by_id(KERNEL).baseline
    assert not against.shown
    assert "at least 2 repetitions" in against.reason


def test_a_profile_without_effect_blocks_the_difference(stored):
    summary = summarise_run(stored(only(KERNEL, power={"effective": False, "reason": "e"}), noise=0.001))
    assert summary.by_id(KERNEL).baseline.reason == "not shown: finding profile_not_effective"


def test_a_baseline_without_result_is_named(stored):
    summary = summarise_run(stored(only(DIRECT, status="failed", reason="r")))
    assert summary.by_id(KERNEL).baseline.reason == "the baseline has no result (failed)"
    assert summary.by_id(KERNEL).direct_percent is None


def test_an_axis_of_the_user_is_kept_apart(stored):
    summary = summarise_run(stored(streams=("1", "4"), noise=0.005))
    point = summary.by_id("lab.routed.kernel.4.tcp_large.forward")
    assert point.baseline.point_id == point.direct_id == "lab.direct.none.4.tcp_large.forward"


def test_testbeds_are_never_compared_with_each_other(stored):
    summary = summarise_run(stored(testbeds=("one", "two")))
    assert list(summary.testbeds) == ["one", "two"]
    for point in summary.points:
        for other in (point.direct_id, point.baseline and point.baseline.point_id):
            assert other is None or other.startswith(point.testbed)


def test_a_testbed_may_have_a_matrix_of_its_own(stored):
    store = stored(testbeds=("one", "two"))
    run = store.read_run()
    run["testbeds"]["two"]["matrix"] = {"repeats": 5, "baseline": {"datapath": "kernel"}}
    store.write_run(run)
    summary = summarise_run(store)
    assert summary.by_id("one.routed.kernel.tcp_large.forward").asked == 3
    assert summary.by_id("two.routed.kernel.tcp_large.forward").asked == 5
    assert summary.by_id("two.routed.vpp_af_packet.tcp_large.forward").baseline.label == "kernel"


def test_without_a_direct_path_the_limit_is_not_known(stored):
    store = stored(lambda made: None if ".direct." in made["point_id"] else made)
    run = store.read_run()
    run["points"] = {pid: point for pid, point in run["points"].items() if ".direct." not in pid}
    store.write_run(run)
    summary = summarise_run(store)
    assert "no_direct_path" in [noticed.code for noticed in summary.noticed]
    assert summary.by_id(KERNEL).direct_id is None


def test_of_several_direct_paths_none_is_guessed_and_one_can_be_named(stored):
    store = stored()
    run = store.read_run()
    other = "lab.straight.none.tcp_large.forward"
    run["points"][other] = {
        **run["points"][DIRECT],
        "point": {**run["points"][DIRECT]["point"], "topology": "straight"},
    }
    store.write_run(run)
    assert summarise_run(store).by_id(KERNEL).direct_id is None
    run["points"][KERNEL]["direct"] = DIRECT
    store.write_run(run)
    assert summarise_run(store).by_id(KERNEL).direct_id == DIRECT


def with_vpp(per_call_by_repetition, point_id="lab.routed.vpp_af_packet.udp_small.forward"):
    """VPP's counters in the trials of one point; each repetition dropped 5 packets."""

    def change(made):
        if made["point_id"] == point_id:
            drops = {
                "packets": 5,
                "interfaces": {"host-eth1": {"drops": 5}},
                "reasons": [{"node": "ip4-lookup", "reason": "no route", "count": 5, "severity": "error"}],
            }
            per_call = per_call_by_repetition[made["repetition"] - 1]
            made["dut"]["dut"]["vpp"] = vpp_runtime(per_call, drops=drops, meaning=f"{per_call} a call")
        return made

    return change  # fmt: skip


def test_what_vpp_did_is_a_metric_and_a_point_of_its_own(stored):
    summary = summarise_run(stored(with_vpp([9.0, 2.0, 3.0])))
    SUMMARY.validate(json.loads(json.dumps(summary.as_dict())))
    point = summary.by_id("lab.routed.vpp_af_packet.udp_small.forward")
    metric = point.metrics["vpp_vectors_per_call_forward"]
    assert (metric.summary.median, metric.summary.max, metric.summary.n) == (3.0, 9.0, 3)
    assert (metric.unit, metric.layer, metric.kind) == ("count", None, "derived")
    assert point.metrics["vpp_clocks_per_packet_forward"].summary.median == 1900.5
    use = median_vpp(point)["dut"]
    assert (use.busiest.vectors_per_call, use.meaning) == (3.0, "3.0 a call")
    assert (use.dropped, use.reasons) == (15, {("ip4-lookup", "no route"): 15})
    assert [node.name for node in use.costly_nodes] == ["host-eth2-tx", "ip4-lookup"]
    assert {"vpp_not_the_limit", "vpp_drops"} <= set(point.findings)
    other = summary.by_id("lab.routed.kernel.udp_small.forward")
    assert not median_vpp(other)
    assert not [name for name in other.metrics if name.startswith("vpp")]


def test_one_trial_without_counters_of_vpp_takes_nothing_from_the_others(stored):
    summary = summarise_run(stored(with_vpp([None, 120.0, 240.0])))
    point = summary.by_id("lab.routed.vpp_af_packet.udp_small.forward")
    assert median_vpp(point)["dut"].busiest.vectors_per_call == 120.0
    assert point.metrics["vpp_vectors_per_call_forward"].summary.n == 2
    assert "vpp_saturated" in point.findings
    assert "vpp_not_the_limit" not in point.findings


def test_findings_are_counted_once_for_each_time_and_their_points_named(stored):
    summary = summarise_run(stored(only(KERNEL, VPP, tries=2)))
    (noticed,) = [noticed for noticed in summary.noticed if noticed.code == "setup_retried"]
    assert (noticed.count, noticed.points, noticed.evidence) == (6, [KERNEL, VPP], ["set up at try 2"])


def test_the_same_point_is_named_once_even_when_trials_interleave(stored):
    store = stored(only(KERNEL, VPP, tries=2))
    summary = summarise_run(store)
    for noticed in summary.noticed:
        assert len(noticed.points) == len(set(noticed.points)), noticed.code


def test_findings_of_the_run_itself_are_kept(stored):
    store = stored()
    store.write_run(
        {**store.read_run(), "findings": [{"code": "low_disk", "severity": "info", "evidence": "e", "remedy": "r"}]}
    )
    assert summarise_run(store).noticed[-1].code == "low_disk"


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["ok", "failed", "invalid", "skipped"]),
            st.one_of(st.none(), st.floats(min_value=0, max_value=1e12)),
        ),
        min_size=1,
        max_size=6,
    )
)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_figures_always_lie_within_what_was_measured(tmp_path_factory, results):
    run, _trials = fake_run(repeats=len(results))
    run["points"] = {KERNEL: run["points"][KERNEL]}
    store = RunStore.create(tmp_path_factory.mktemp("run"), "fake", run)
    for repetition, (status, value) in enumerate(results, start=1):
        made = trial(KERNEL, repetition=repetition, status=status)
        made["metrics"]["goodput_forward"]["value"] = value
        (store.path / "trials" / f"{KERNEL}-r{repetition}-a1.json").write_text(json.dumps(made))
    summary = summarise_run(store)
    document = summary.as_dict()
    assert SUMMARY.is_valid(json.loads(json.dumps(document, allow_nan=False)))
    point = summary.by_id(KERNEL)
    figures = point.main.summary
    counted = [row.headline for row in point.trials if row.status == "ok" and row.headline is not None]
    assert figures.n == len(counted)
    if counted:
        assert min(counted) == figures.min <= figures.median <= figures.max == max(counted)
        assert figures.min <= figures.mean <= figures.max
    assert figures.n == point.counted
    assert (point.status == "ok") == (figures.n == point.asked)
