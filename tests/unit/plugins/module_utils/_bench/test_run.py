# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import os
import pathlib
import subprocess
import time

import pytest
import yaml

from ansible_collections.fastpath.bench.plugins.module_utils._bench import follow, merge
from ansible_collections.fastpath.bench.plugins.module_utils._bench import run as running
from ansible_collections.fastpath.bench.plugins.module_utils._bench.catalog import catalog_of
from ansible_collections.fastpath.bench.plugins.module_utils._bench.plan import plan_testbed
from ansible_collections.fastpath.bench.plugins.module_utils._bench.store import RunStore
from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError

ROOT = pathlib.Path(__file__).resolve().parents[5]
SHIPPED = yaml.safe_load((ROOT / "playbooks/vars/catalog.yml").read_text())["bench_shipped"]


def make_testbeds(**changes):
    variables = yaml.safe_load((ROOT / "inventories/lab/group_vars/all/bench.yml").read_text())
    variables["bench_matrix"].update(changes)
    return [plan_testbed("lab", ["client", "dut", "server"], variables["bench_matrix"], catalog_of(variables, SHIPPED))]


def record(trial, status="ok", duration_s=2.0, **metrics):
    return {**follow.failed_record(trial, "x", "y"), "status": status, "duration_s": duration_s, "metrics": metrics}


def store_trial(store, trial, status="ok"):
    point = {"topology": "direct"}
    store.write_trial(
        merge.merge(
            trial, record(trial, status, goodput_forward=received(1.0)), None,
            testbed="lab", point=point, headline="goodput_forward", samples={}, duts=(),
        )
    )


def received(value, direction="forward", kind="received"):
    return {"value": value, "unit": "bit/s", "layer": "L4", "direction": direction, "kind": kind, "peak": None}


def test_planning_only_writes_nothing(tmp_path):
    run = running.open_run(make_testbeds(), results_dir=str(tmp_path), run_id=None, create=False)
    assert run.trials == 36
    assert list(tmp_path.iterdir()) == []


def test_a_resumed_run_does_what_is_missing_and_failed(tmp_path):
    run = running.open_run(make_testbeds(), results_dir=str(tmp_path), run_id="a", create=True)
    store = RunStore.open(tmp_path, "a")
    trials = run.testbeds[0].trials
    for trial in trials[:10]:
        store_trial(store, trial)
    store_trial(store, trials[10], "failed")
    again = running.open_run(make_testbeds(), results_dir=str(tmp_path), run_id="a", create=True)
    assert again.resumed
    assert again.trials == 26
    left = {trial["id"] for trial in again.testbeds[0].trials}
    assert trials[10]["id"].replace("-a1", "-a2") in left
    assert len(store.read_run()["sessions"]) == 2


def test_another_matrix_under_the_same_run_id_is_refused(tmp_path):
    running.open_run(make_testbeds(), results_dir=str(tmp_path), run_id="a", create=True)
    with pytest.raises(BenchError) as caught:
        running.open_run(make_testbeds(repeats=4), results_dir=str(tmp_path), run_id="a", create=True)
    assert caught.value.code == "other_matrix"


@pytest.mark.parametrize("run_id", ["../x", "latest", ".hidden", "a/b", "a b"])
def test_a_run_id_that_leaves_the_folder_is_refused(tmp_path, run_id):
    with pytest.raises(BenchError, match="run id"):
        running.open_run(make_testbeds(), results_dir=str(tmp_path), run_id=run_id, create=True)


def test_harness_time_is_wall_time_without_traffic_per_trial(tmp_path):
    run = running.open_run(make_testbeds(), results_dir=str(tmp_path), run_id="a", create=True)
    store = RunStore.open(tmp_path, "a")
    for trial in run.testbeds[0].trials[:4]:
        store_trial(store, trial)
    document = store.read_run()
    document["sessions"] = [{"started": time.time() - 20.0, "finished": None}]
    store.write_run(document)
    harness = running.finish_session(store)
    assert harness["trials"] == 4
    assert harness["traffic_s"] == 8.0
    assert harness["harness_s_per_trial"] == pytest.approx((20 - 8) / 4, abs=0.1)


def test_the_start_of_a_process_is_the_kernels():
    started = time.time()
    child = subprocess.Popen(["sleep", "5"])
    try:
        assert running.process_start(child.pid) == pytest.approx(started, abs=0.1)
    finally:
        child.kill()
        child.wait()


def test_what_was_not_restored_is_named():
    before = {"dut": {"state": {"sysctl": {"a": 1}, "nics": {}}}, "client": {"state": {"a": 1}}}
    after = {"dut": {"state": {"sysctl": {"a": 2}, "nics": {}}}, "client": {"state": {"a": 1}}}
    found = running.not_restored(before, after, ["server"])
    assert list(found) == ["dut", "server"]
    assert "sysctl" in found["dut"]
    assert "was not put back" in found["server"]
    assert running.not_restored(before, {**before, "away": {}}) == {}


def test_what_could_not_be_read_is_no_setting_that_was_not_put_back():
    routes = [{"dst": "10.0.0.0/8"}]
    read = {"state": {"routes": routes, "a": 1}, "unknown": {}}
    unread = {"state": {"routes": None, "a": 1}, "unknown": {"state.routes": "ip: no answer within 30 s"}}
    assert running.not_restored({"dut": unread}, {"dut": read}) == {}
    assert running.not_restored({"dut": read}, {"dut": unread}) == {
        "dut": "could not be compared after the restore: routes (ip: no answer within 30 s)"
    }
    gone = {"state": {"routes": [], "a": 2}, "unknown": {}}
    assert "routes" in running.not_restored({"dut": read}, {"dut": gone})["dut"]
    assert running.not_restored({"dut": unread}, {"dut": gone})["dut"] == "differs after the restore in a (1, now 2)"


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0 s"), (59.4, "59 s"), (60, "1 min"), (200, "3 min 20 s"), (7500, "2 h 5 min")]
)
def test_lengths_of_time(seconds, text):
    assert running.clock_text(seconds) == text


# --------------------------------------------------------------------------- follow


def shell(command):
    return subprocess.run(["sh", "-c", command], check=True, capture_output=True, text=True).stdout


def test_the_spool_is_read_by_one_shell_command(tmp_path):
    (tmp_path / "a-r1-a1.json").write_text(json.dumps({"id": "a-r1-a1", "x": "==\n'\""}))
    command = follow.spool_command(str(tmp_path), ["a-r1-a1", "b-r1-a1"], str(tmp_path / "job"))
    records, ended = follow.read_spool_output(shell(command))
    assert [r["id"] for r in records] == ["a-r1-a1"]
    assert not ended


@pytest.mark.parametrize(
    ("job", "ended"),
    [
        ('{"started": 1, "finished": 0, "ansible_job_id": "1"}', False),
        ('{"started": true, "finished": false, "ansible_job_id": "1"}', False),
        ('{"trials": [], "changed": false, "invocation": {}}', True),
        ('{"failed": true, "msg": "no"}', True),
        ("", False),
    ],
)
def test_the_end_of_the_module_is_seen(tmp_path, job, ended):
    (tmp_path / "job").write_text(job)
    printed = shell(follow.spool_command(str(tmp_path), ["a"], str(tmp_path / "job")))
    assert follow.read_spool_output(printed)[1] is ended


def test_the_progress_line_has_number_figure_and_time_left():
    trials = [
        {"id": f"p-r{i}-a1", "point_id": "p", "options": {"duration_s": 2, "warmup_s": 0.6}} for i in (1, 2, 3)
    ]
    progress = follow.Progress({"trials": trials, "first": 5, "total": 9, "left_after_s": 60}, {"p": "goodput_forward"})
    line = progress.line(record(trials[0], goodput_forward=received(12.34e9)))
    assert line == "  [5/9] p-r1-a1: 12.3 Gbit/s; about 1 min 6 s left"
    assert "failed: server missing" in progress.line({**record(trials[1], "failed"), "reason": "server missing"})


# --------------------------------------------------------------------------- merge


def test_what_was_received_is_taken_from_the_receiver_and_what_was_sent_from_the_sender():
    client = {
        "goodput_forward": received(100), "sent_rate_forward": received(101, kind="sent"),
        "goodput_reverse": received(200, "reverse"), "sent_rate_reverse": received(999, "reverse", "sent"),
    }
    server = {
        "goodput_forward": received(99), "sent_rate_forward": received(998, kind="sent"),
        "goodput_reverse": received(997, "reverse"), "sent_rate_reverse": received(201, "reverse", "sent"),
    }
    merged = merge.merge_metrics(client, server)
    assert {k: m["value"] for k, m in merged.items()} == {
        "goodput_forward": 99, "sent_rate_forward": 101, "goodput_reverse": 200, "sent_rate_reverse": 201,
        "goodput_total": 299, "sent_rate_total": 302,
    }


def test_an_unknown_value_is_taken_from_the_other_end():
    merged = merge.merge_metrics({"goodput_forward": received(100)}, {"goodput_forward": received(None)})
    assert merged["goodput_forward"]["value"] == 100


def test_counts_over_the_whole_run_are_the_senders_and_the_receivers():
    trial = make_testbeds()[0].trials[0]
    client = {**record(trial), "counts": {
        "forward": {"sent_bytes": 100, "sent_packets": None, "received_bytes": 7}, "reverse": {"received_bytes": 50},
    }}  # fmt: skip
    server = {"status": "ok", "metrics": {}, "counts": {
        "forward": {"received_bytes": 90, "sent_bytes": None}, "reverse": {"sent_bytes": 60, "received_bytes": 8},
    }}  # fmt: skip
    merged = merge.merge(
        trial, client, server, testbed="lab", point={}, headline="goodput_forward", samples={}, duts=()
    )
    assert merged["counts"] == {
        "forward": {"sent_bytes": 100, "received_bytes": 90}, "reverse": {"sent_bytes": 60, "received_bytes": 50},
    }  # fmt: skip


def test_a_total_with_an_unknown_part_is_unknown():
    merged = merge.merge_metrics({"goodput_forward": received(None), "goodput_reverse": received(5, "reverse")}, {})
    assert merged["goodput_total"]["value"] is None


def test_a_trial_without_its_headline_is_failed_and_not_zero():
    trial = make_testbeds()[0].trials[0]
    merged = merge.merge(
        trial,
        record(trial, forwarding_rate_forward=received(None)),
        {"status": "failed", "reason": "no final row", "metrics": {}},
        testbed="lab",
        point={},
        headline="forwarding_rate_forward",
        samples={},
        duts=(),
    )
    assert (merged["status"], merged["code"]) == ("failed", "no_headline")
    assert "no final row" in merged["reason"]


def test_raw_texts_of_both_ends_are_kept_apart():
    files = merge.raw_files({"id": "x"}, {"raw": {"out.txt": "a"}}, {"raw": {"out.txt": "b"}})
    assert files == {"x.out.txt": "a", "x.server-out.txt": "b"}


def test_pid_of_this_process_is_readable():
    assert running.process_start(os.getpid()) <= time.time()


def test_a_run_whose_playbook_is_gone_is_dead_and_one_that_lives_is_not(tmp_path):
    for name in ("killed", "alive", "elsewhere", "mine"):
        running.open_run(make_testbeds(), results_dir=str(tmp_path), run_id=name, create=True)
    for name, changes in (
        ("killed", {"started": 1000.0}),
        ("elsewhere", {"started": 1000.0, "controller": {"host": "another", "pid": 1}}),
    ):
        store = RunStore.open(tmp_path, name)
        document = store.read_run()
        document["sessions"][-1].update(changes)
        store.write_run(document)
    assert running.dead_runs(str(tmp_path), but="mine") == ["killed"]
    running.abandon(str(tmp_path), ["killed"])
    assert running.dead_runs(str(tmp_path), but="mine") == []


def test_what_a_later_session_puts_back_is_no_longer_named(tmp_path):
    running.open_run(make_testbeds(), results_dir=str(tmp_path), run_id="a", create=True)
    store = RunStore.open(tmp_path, "a")
    running.finish_session(store, ["dut"])
    assert list(store.read_run()["not_restored"]) == ["dut"]
    running.finish_session(store)
    assert store.read_run()["not_restored"] == {}


def test_a_run_that_could_not_put_back_a_host_is_taken_up_by_the_next_one(tmp_path):
    for name, left in (("whole", []), ("away", ["dut"])):
        running.open_run(make_testbeds(), results_dir=str(tmp_path), run_id=name, create=True)
        running.finish_session(RunStore.open(tmp_path, name), left)
    assert running.dead_runs(str(tmp_path), but="mine") == ["away"]
    assert running.open_run(make_testbeds(), results_dir=str(tmp_path), run_id="away", create=False).unfinished
    assert not running.open_run(make_testbeds(), results_dir=str(tmp_path), run_id="whole", create=False).unfinished


def test_a_broken_off_run_with_all_trials_is_opened_to_put_hosts_back(tmp_path):
    run = running.open_run(make_testbeds(), results_dir=str(tmp_path), run_id="a", create=True)
    assert not run.unfinished
    store = RunStore.open(tmp_path, "a")
    for trial in run.testbeds[0].trials:
        store_trial(store, trial)
    again = running.open_run(make_testbeds(), results_dir=str(tmp_path), run_id="a", create=True)
    assert (again.trials, again.unfinished) == (0, True)
    assert running.plan_result(again)["to_do"]
    running.finish_session(store)
    assert not running.plan_result(
        running.open_run(make_testbeds(), results_dir=str(tmp_path), run_id="a", create=False)
    )["to_do"]


def test_a_refused_session_leaves_no_trace(tmp_path):
    running.open_run(make_testbeds(), results_dir=str(tmp_path), run_id="first", create=True)
    running.open_run(make_testbeds(), results_dir=str(tmp_path), run_id="second", create=True)
    assert os.readlink(tmp_path / "latest") == "second"
    assert running.withdraw(RunStore.open(tmp_path, "second"))
    assert not (tmp_path / "second").exists()
    assert os.readlink(tmp_path / "latest") == "first"
    running.open_run(make_testbeds(), results_dir=str(tmp_path), run_id="first", create=True)
    assert not running.withdraw(RunStore.open(tmp_path, "first"))
    assert len(RunStore.open(tmp_path, "first").read_run()["sessions"]) == 1
    assert running.withdraw(RunStore.open(tmp_path, "first"))
    assert list(tmp_path.iterdir()) == []
