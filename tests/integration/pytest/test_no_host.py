# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An inventory that has no host to measure with: nothing was measured, so nothing may look as if it was."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
PLAYBOOK = pathlib.Path(sys.executable).with_name("ansible-playbook")


@pytest.mark.parametrize("playbook", ["plan", "site"])
def test_no_host_to_measure_with_is_an_error(tmp_path, playbook):
    inventory = tmp_path / "hosts.yml"
    inventory.write_text("all: {hosts: {alone: {}}}\n")
    ran = subprocess.run(
        [PLAYBOOK, "-i", inventory, ROOT / f"playbooks/{playbook}.yml", "-e", f"bench_results_dir={tmp_path}/results"],
        cwd=ROOT, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert ran.returncode == 2, ran.stdout + ran.stderr
    assert "no host of the inventory is in bench_testbeds" in " ".join(ran.stdout.split())
    # above all, no report of an earlier run
    assert "TASK [Make the report]" not in ran.stdout


def test_a_limit_that_leaves_out_the_reports_host_is_an_error(tmp_path):
    inventory = tmp_path / "hosts.yml"
    inventory.write_text("all: {children: {bench_testbeds: {hosts: {alone: {}}}}}\n")
    results = tmp_path / "results"
    ran = subprocess.run(
        [PLAYBOOK, "-i", inventory, ROOT / "playbooks/site.yml", "-l", "alone", "-e", f"bench_results_dir={results}"],
        cwd=ROOT, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert ran.returncode == 2, ran.stdout + ran.stderr
    assert "leaves out localhost" in " ".join(ran.stdout.split())
    assert not results.exists()
