# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import pathlib

import pytest
import yaml
from ansible.parsing.dataloader import DataLoader
from ansible.playbook.task import Task

from ansible_collections.fastpath.bench.plugins.action import report as action
from ansible_collections.fastpath.bench.plugins.module_utils._bench.store import RunStore
from ansible_collections.fastpath.bench.tests.unit.fake_run import fake_run

MODULE = pathlib.Path(__file__).parents[4] / "plugins" / "modules" / "report.py"


@pytest.fixture(name="printed")
def _printed(monkeypatch):
    lines = []
    monkeypatch.setattr(action.display, "display", lambda text, *_args, **_kwargs: lines.extend(text.splitlines()))
    return lines


@pytest.fixture(name="results")
def _results(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda _descriptor: None)
    run, trials = fake_run()
    store = RunStore.create(tmp_path, "fake", run)
    for trial in trials:
        store.write_trial(trial)
    return tmp_path


def execute(*, check=False, **args):
    task = Task()
    task.action = "fastpath.bench.report"
    task.args = args
    task.check_mode = check
    plugin = action.ActionModule(
        task=task, connection=None, play_context=None, loader=DataLoader(), templar=None, shared_loader_obj=None
    )
    plugin._connection = type("NoConnection", (), {"_shell": type("Shell", (), {"tmpdir": None})()})()
    return plugin.run(task_vars={})


def documented():
    return yaml.safe_load(MODULE.read_text(encoding="utf-8").split('RETURN = r"""')[1].split('"""')[0])


def test_it_returns_what_is_documented_and_prints_it(results, printed):
    result = execute(results_dir=str(results))
    assert set(documented()) <= set(result)
    assert (result["changed"], result["run_id"], result["states"]) == (True, "fake", {"ok": 18})
    assert all(os.path.isfile(path) for path in result["files"].values())
    assert set(documented()["findings"]["contains"]) == set(result["findings"][0])
    assert set(result["table"]) < set(printed)
    assert printed[-1] == f"report: {result['files']['html']}"


def test_again_nothing_changes(results, printed):
    execute(results_dir=str(results), charts=False)
    result = execute(results_dir=str(results), charts=False)
    assert (result["changed"], result["updated"]) == (False, [])


def test_check_mode_tells_and_writes_nothing(results, printed):
    result = execute(results_dir=str(results), run_id="fake", check=True, show=False)
    assert result["changed"]
    assert not os.path.exists(result["files"]["html"])
    assert printed == []


def test_a_run_of_another_schema_is_one_clear_error(results, printed):
    (results / "fake" / "run.json").write_text('{"schema": 99}')
    result = execute(results_dir=str(results))
    assert (result["failed"], result["code"]) == (True, "other_schema")
    assert "start a new run under another run id" in result["msg"]
    assert printed == []
