# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbooks nat_paths and impairment on a lab, with a real VPP."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import sys
import typing as t

import pytest

from ansible_collections.fastpath.bench.tests.support.vpp_process import find_vpp

ROOT = pathlib.Path(__file__).resolve().parents[3]
BIN = pathlib.Path(sys.executable).parent

pytestmark = [
    pytest.mark.lab,
    pytest.mark.slow,
    pytest.mark.vpp,
    pytest.mark.skipif(
        os.geteuid() != 0 or shutil.which("systemd-nspawn") is None, reason="needs root and systemd-nspawn"
    ),
    pytest.mark.skipif(find_vpp() is None, reason="no vpp"),
]
LAB = f"natp{os.getpid()}"


def playbook(name: str, **variables: t.Any) -> subprocess.CompletedProcess[str]:
    extra = json.dumps({"lab_name": LAB, **variables})
    environment = {**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "PATH": f"{BIN}:{os.environ['PATH']}"}
    return subprocess.run(
        [str(BIN / "ansible-playbook"), f"playbooks/{name}.yml", "-e", extra],
        cwd=ROOT,
        env={**environment, "ANSIBLE_NOCOLOR": "1"},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )


@pytest.fixture(scope="module")
def lab() -> t.Iterator[None]:
    built = playbook("lab_up")
    try:
        assert built.returncode == 0, built.stdout[-2000:]
        yield
    finally:
        playbook("lab_down")


def results(done: subprocess.CompletedProcess[str], folder: pathlib.Path, name: str) -> dict[str, t.Any]:
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    (found,) = folder.glob(f"{name}-*/results.json")
    assert (found.parent / "report.md").read_text(encoding="utf-8").startswith("# ")
    return t.cast("dict[str, t.Any]", json.loads(found.read_text(encoding="utf-8")))


@pytest.mark.usefixtures("lab")
def test_the_slow_path_is_dearer_and_each_flow_has_its_session(tmp_path: pathlib.Path) -> None:
    sizes = {"bench_nat_paths_rounds": 1, "bench_nat_paths_flows": 20_000, "bench_nat_paths_duration_s": 3}
    done = playbook("nat_paths", bench_results_dir=str(tmp_path), **sizes)
    found = results(done, tmp_path, "nat_paths")
    vpp, kernel = found["datapaths"]
    assert (vpp["datapath"], kernel["datapath"]) == ("vpp_nat44", "kernel_nat")
    assert vpp["faults"] == kernel["faults"] == []
    for row in (vpp, kernel):
        # what a busy machine lost on the way opened none; that each which passed has one is among the faults
        assert 0 < row["new"]["sessions"] <= 20_000
        assert row["established"]["sessions"] == 500
    assert vpp["clocks_ratio_nat"] > 2
    assert kernel["clocks_ratio_nat"] is None


@pytest.mark.usefixtures("lab")
def test_loss_makes_tcp_collapse(tmp_path: pathlib.Path) -> None:
    sizes = {"bench_impairment_loss": [0, 0.02], "bench_impairment_delay_ms": [10], "bench_impairment_duration_s": 5}
    done = playbook("impairment", bench_results_dir=str(tmp_path), **sizes)
    whole, lossy = results(done, tmp_path, "impairment")["points"]
    assert (whole["status"], lossy["status"]) == ("ok", "ok")
    assert whole["rtt_min_ms"] > 10
    assert whole["left_ratio"] == 1
    assert lossy["left_ratio"] < 0.5
    assert lossy["mathis_bps"] > 0
