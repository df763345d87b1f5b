# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbooks nat_paths, nat_capacity and impairment on a lab, with a real VPP."""

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
        assert row["established"]["sessions"] == 16
    # about 17 on an idle machine, by clocks that other programs' turns are in too
    assert vpp["clocks_ratio_nat"] > 5
    assert kernel["clocks_ratio_nat"] is None


@pytest.mark.usefixtures("lab")
def test_what_a_nat_holds_and_how_fast(tmp_path: pathlib.Path) -> None:
    sizes = {"bench_nat_capacity_rates_pps": [5000], "bench_nat_capacity_duration_s": 2}
    sizes.update(bench_nat_capacity_connections_s=2, bench_nat_capacity_table=4000, bench_nat_capacity_established=1000)
    # a busy machine loses some at any rate
    done = playbook("nat_capacity", bench_results_dir=str(tmp_path), bench_nat_capacity_loss_ratio=0.2, **sizes)
    found = results(done, tmp_path, "nat_capacity")
    vpp, kernel = found["datapaths"]
    assert (vpp["datapath"], kernel["datapath"]) == ("vpp_nat44", "kernel_nat")
    assert vpp["faults"] == kernel["faults"] == []
    for row in (vpp, kernel):
        assert 0 < row["establishment"]["steps"][0]["sessions"] <= 10_000
        assert row["established"]["steps"][0]["sessions"] == 1000
        assert row["connections"]["rate"] > 0
        assert row["connections"]["sessions"] > 0
        assert row["teardown"]["rate"] > 0
        # one address has 64512 ports for one destination
        assert row["ports"]["sessions"] <= 64_512
    assert vpp["ports"]["drops"]["out_of_ports"] > 0
    assert (vpp["table"]["total"], vpp["table"]["full"]) == (4000, 1.0)
    assert vpp["table"]["drops"]["sessions_exceeded"] > 0
    nodes = {node["node"] for node in vpp["nodes"]}
    assert "nat44-ed-in2out-slowpath" in nodes
    # where the limit is not the host's own to set, as in a lab of containers, it says so
    assert kernel["table"]["skipped"] or kernel["table"]["sessions"] <= 4000


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
    (page,) = tmp_path.glob("impairment-*/report.html")
    drawn = page.read_text(encoding="utf-8")
    # both points, and the curves of both models
    assert "10 ms, 2 % lost" in drawn
    assert drawn.count("stroke-dasharray") == 1


@pytest.mark.usefixtures("lab")
def test_the_kernels_emulator_where_there_is_one(tmp_path: pathlib.Path) -> None:
    sizes = {"bench_impairment_loss": [0.02], "bench_impairment_delay_ms": [10], "bench_impairment_duration_s": 3}
    sizes["bench_impairment_simulator"] = "netem"
    found = results(playbook("impairment", bench_results_dir=str(tmp_path), **sizes), tmp_path, "impairment")
    (point,) = found["points"]
    if point["status"] == "skipped":
        assert "this kernel has no network emulator" in point["reason"]
    else:
        assert point["rtt_min_ms"] > 10
        assert point["simulated"]["loss_ratio"] == pytest.approx(0.02, rel=0.01)
