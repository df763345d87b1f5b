# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The study of two kinds of machines on a lab of four hosts: every figure, or why there is none."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
PLAYBOOK = pathlib.Path(sys.executable).with_name("ansible-playbook")
INVENTORY = ROOT / "inventories/four_hosts/hosts.yml"
LAB = f"four{os.getpid()}"

pytestmark = [
    pytest.mark.lab,
    pytest.mark.slow,
    pytest.mark.skipif(
        os.geteuid() != 0 or shutil.which("systemd-nspawn") is None, reason="needs root and systemd-nspawn"
    ),
]


def play(playbook, **variables):
    done = subprocess.run(
        [PLAYBOOK, "-i", INVENTORY, ROOT / "playbooks" / playbook, "-e", json.dumps({"lab_name": LAB, **variables})],
        cwd=ROOT, env={**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg")}, capture_output=True, text=True,
        timeout=1200, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    return done.stdout


def test_every_figure_is_there_or_has_a_reason(tmp_path):
    play("lab_up.yml")
    try:
        told = play(
            "kernel_matrix.yml", bench_results_dir=str(tmp_path), bench_run_id="study", kernel_matrix_repeats=1,
            bench_duration_s=1,
        )  # fmt: skip
    finally:
        play("lab_down.yml")
    study = json.loads((tmp_path / "study/study.json").read_text())
    assert len(study["cells"]) == 80
    assert {bool(cell["value"]) != bool(cell["reason"]) for cell in study["cells"]} == {True}
    assert {cell["topology"] for cell in study["cells"] if cell["power"] == "as_found" and not cell["value"]} == set()
    # a lab host has no lever of its own, and is then not measured as if it had
    if not pathlib.Path("/sys/devices/system/cpu/cpu0/cpufreq").exists():
        reasons = {cell["reason"] for cell in study["cells"] if cell["power"] == "static_high"}
        assert all("no lever for power profile static_high" in reason for reason in reasons)
    assert "figures were measured" in told
    assert (tmp_path / "study/study.md").read_text().startswith("# One kernel, two kinds of machines")
