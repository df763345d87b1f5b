# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The end of a run, where a host that took part does not answer any more."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
PLAYBOOK = pathlib.Path(sys.executable).with_name("ansible-playbook")


def test_a_host_that_does_not_answer_at_the_end_counts_as_not_put_back(tmp_path):
    run = tmp_path / "results" / "r1"
    (run / "trials").mkdir(parents=True)
    (run / "run.json").write_text(
        json.dumps({"schema": 1, "run_id": "r1", "sessions": [{"started": 0, "finished": None}], "fingerprints": {}})
    )
    held = {"__bench_reached": {}, "__bench_held": {"complete": True}}
    run_of = {
        "bench_owner": "r1",
        "bench_plan": {"run_id": "r1", "axes": []},
        "__bench_results_dir": str(tmp_path / "results"),
    }
    play = {
        "hosts": "all",
        "gather_facts": False,
        "ignore_unreachable": True,
        "tasks": [
            {"ansible.builtin.set_fact": {**held, **run_of}},
            {"ansible.builtin.include_tasks": str(ROOT / "playbooks/tasks/finish.yml")},
        ],
    }
    # nobody listens at port 1
    host = {"ansible_host": "127.0.0.1", "ansible_port": 1}
    (tmp_path / "hosts.json").write_text(json.dumps({"all": {"hosts": {"away": host}}}))
    (tmp_path / "play.yml").write_text(json.dumps([play]))
    ran = subprocess.run(
        [PLAYBOOK, "-i", tmp_path / "hosts.json", tmp_path / "play.yml"],
        cwd=ROOT, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    told = ran.stdout + ran.stderr
    assert "UNREACHABLE" in told, told
    assert list(json.loads((run / "run.json").read_text())["not_restored"]) == ["away"], told
