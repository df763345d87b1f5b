# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import errno
import json
import os
import pathlib

import pytest

from ansible_collections.fastpath.bench.plugins.module_utils._bench import store as store_module
from ansible_collections.fastpath.bench.plugins.module_utils._bench.store import (
    RunStore,
    SchemaError,
    StoreFullError,
    TrialName,
    Unreadable,
)
from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError

POINT = "lab.routed.kernel.tcp_large.forward"


def trial(repetition=1, **more):
    return {"point_id": POINT, "repetition": repetition, "status": "ok", "metrics": {}, **more}


@pytest.fixture(name="run")
def _run(tmp_path):
    return RunStore.create(tmp_path / "results", "first", {"created": 1.0})


def files(store):
    return sorted(os.listdir(store.path / "trials"))


def test_a_trial_is_read_back_as_it_was_written(run):
    path = run.write_trial(trial(testbed="lab"))
    assert path.name == f"{POINT}-r1-a1.json"
    assert list(run.trials()) == [trial(testbed="lab", schema=1, run_id="first", attempt=1)]


def test_a_second_attempt_gets_its_own_file_and_is_the_one_that_counts(run):
    first = run.write_trial(trial(status="failed"))
    before = first.read_bytes()
    run.write_trial(trial(status="ok"))
    assert files(run) == [f"{POINT}-r1-a1.json", f"{POINT}-r1-a2.json"]
    assert first.read_bytes() == before
    assert [t["status"] for t in run.trials()] == ["ok"]


def test_the_tenth_attempt_is_later_than_the_ninth(run):
    for _n in range(10):
        run.write_trial(trial())
    assert [t["attempt"] for t in run.trials()] == [10]


def test_two_writers_at_once_never_overwrite(run, monkeypatch):
    run.write_trial(trial(status="ok"))
    monkeypatch.setattr(RunStore, "next_attempt", lambda *_: 1)
    assert run.write_trial(trial(status="failed")).name == f"{POINT}-r1-a2.json"


def test_a_file_system_without_hard_links_keeps_the_promise(run, monkeypatch):
    def no_links(*_args, **_kwargs):
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    run.write_trial(trial(status="ok"))
    run.write_trial(trial(status="failed"))
    assert files(run) == [f"{POINT}-r1-a1.json", f"{POINT}-r1-a2.json"]


def test_a_full_disk_is_a_typed_error_and_leaves_nothing_half_written(run, monkeypatch):
    run.write_trial(trial())
    before = files(run)

    def full(_descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreFullError, match="bench_results_dir") as caught:
        run.write_trial(trial(2))
    assert caught.value.code == "results_disk_full"
    assert files(run) == before
    with pytest.raises(StoreFullError):
        run.write_raw("x.txt", "x")
    assert os.listdir(run.path / "raw") == []


def test_a_really_full_disk(tmp_path):
    """On /dev/full every write fails as on a full disk."""
    with pytest.raises(StoreFullError), store_module.explained(tmp_path), open("/dev/full", "wb") as file:
        file.write(b"x" * 100_000)


def test_a_folder_that_may_not_be_written_says_so(tmp_path):
    (tmp_path / "results").write_text("a file, not a folder")
    with pytest.raises(BenchError, match="cannot be written") as caught:
        RunStore.create(tmp_path / "results", "r", {})
    assert caught.value.code == "results_not_writable"


@pytest.mark.parametrize("run_id", ["..", "../x", "/etc", "a/b", "", ".hidden", "latest", "a\nb", "x" * 300, "-rf"])
def test_a_run_id_cannot_leave_the_results_folder(tmp_path, run_id):
    with pytest.raises(BenchError) as caught:
        RunStore.create(tmp_path, run_id, {})
    assert caught.value.code == "bad_name"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("point_id", ["../../x", "a/b", "", ".", "x\0y"])
def test_a_point_id_cannot_leave_the_trials_folder(run, point_id):
    with pytest.raises(BenchError):
        run.write_trial({**trial(), "point_id": point_id})
    with pytest.raises(BenchError):
        run.write_raw(point_id, "x")
    assert files(run) == []


def test_a_latest_link_that_leads_out_of_the_results_is_refused(tmp_path):
    results = tmp_path / "results"
    RunStore.create(results, "r", {})
    (results / "latest").unlink()
    (results / "latest").symlink_to("../elsewhere")
    with pytest.raises(BenchError):
        RunStore.open(results)


def test_latest_is_the_run_that_was_created_last(tmp_path):
    RunStore.create(tmp_path, "b", {})
    RunStore.create(tmp_path, "a", {})
    assert os.readlink(tmp_path / "latest") == "a"
    assert RunStore.open(tmp_path).run_id == "a"
    assert RunStore.open(tmp_path, "latest").run_id == "a"
    assert RunStore.open(tmp_path, "b").run_id == "b"


def test_a_run_is_not_created_twice(run):
    with pytest.raises(BenchError, match="exists already") as caught:
        RunStore.create(run.path.parent, "first", {})
    assert caught.value.code == "run_exists"


def test_an_absent_run_names_those_that_exist(run):
    with pytest.raises(BenchError, match="one of those that are there: first"):
        RunStore.open(run.path.parent, "second")


def test_no_results_at_all_says_what_to_do(tmp_path):
    with pytest.raises(BenchError, match=r"fastpath\.bench\.site"):
        RunStore.open(tmp_path / "absent")


@pytest.mark.parametrize("schema", [2, 0, None, "1"])
def test_a_run_of_another_schema_is_refused_with_what_to_do(run, schema):
    (run.path / "run.json").write_text(json.dumps({"schema": schema}))
    with pytest.raises(SchemaError, match="start a new run under another run id") as caught:
        RunStore.open(run.path.parent, "first")
    assert caught.value.code == "other_schema"
    assert repr(schema) in caught.value.message


def test_a_truncated_run_file_is_one_clear_error(run):
    (run.path / "run.json").write_text('{"schema": 1, "po')
    with pytest.raises(BenchError) as caught:
        RunStore.open(run.path.parent, "first")
    assert caught.value.code == "run_unreadable"


def test_run_json_is_replaced_whole(run):
    run.write_run({"created": 1.0, "finished": 2.0})
    assert run.read_run() == {"schema": 1, "run_id": "first", "created": 1.0, "finished": 2.0}
    assert sorted(os.listdir(run.path)) == ["raw", "run.json", "trials"]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ('{"schema": 1, "point_id": "x", "met', "not whole JSON"),
        ("", "not whole JSON"),
        ("\xff\xfe", "not whole JSON"),
        ("[1, 2]", "holds no trial"),
        ('{"schema": 7}', "has schema 7, not 1"),
        ('{"schema": 1, "point_id": "x", "repetition": 1}', "belongs to another trial"),
        (json.dumps({"schema": 1, "point_id": POINT, "repetition": 2, "status": "fine"}), "unknown status 'fine'"),
        (json.dumps({"schema": 1, "point_id": POINT, "repetition": 2, "status": "ok"}), "has no metrics"),
    ],
)
def test_a_broken_trial_is_told_and_the_others_are_read(run, content, why):
    run.write_trial(trial(1))
    (run.path / "trials" / f"{POINT}-r2-a1.json").write_bytes(content.encode("latin-1"))
    good, broken = run.trials()
    assert good["repetition"] == 1
    assert isinstance(broken, Unreadable)
    assert broken.name == TrialName(POINT, 2, 1)
    assert why in broken.why


def test_other_files_among_the_trials_are_left_alone(run):
    (run.path / "trials" / "notes.txt").write_text("mine")
    (run.path / "trials" / f".{POINT}-r1-a1.json.1.tmp").write_text("{")
    assert run.names() == []


def test_a_point_id_that_looks_like_a_repetition_is_read_right():
    assert TrialName.parse("a-r1-a2-r3-a4.json") == TrialName("a-r1-a2", 3, 4)


def test_raw_output_is_kept_byte_for_byte_and_never_replaced(run):
    assert run.write_raw("p-r1-a1-client.txt", b"\xff\x00one") == "raw/p-r1-a1-client.txt"
    assert run.write_raw("p-r1-a1-client.txt", "two") == "raw/p-r1-a1-client.2.txt"
    assert run.write_raw("plain", "three") == "raw/plain"
    assert run.write_raw("plain", "four") == "raw/plain.2"
    assert (run.path / "raw/p-r1-a1-client.txt").read_bytes() == b"\xff\x00one"


def test_a_number_that_is_none_is_refused(run):
    with pytest.raises(ValueError, match="not JSON compliant"):
        run.write_trial(trial(metrics={"x": float("nan")}))
    assert files(run) == []


def test_a_folder_left_by_a_kill_between_mkdir_and_run_json_is_used_again(tmp_path):
    (tmp_path / "r" / "trials").mkdir(parents=True)
    assert RunStore.create(tmp_path, "r", {}).path == pathlib.Path(tmp_path / "r")
