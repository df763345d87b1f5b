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


def run(playbook, *arguments, before=(), **variables):
    return subprocess.run(
        [*before, PLAYBOOK, "-i", INVENTORY, *arguments, ROOT / "playbooks" / playbook,
         "-e", json.dumps({"lab_name": LAB, **variables})],
        cwd=ROOT, env={**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg")}, capture_output=True, text=True,
        timeout=7200, check=False,  # a machine that is busy takes much longer than one that is not
    )  # fmt: skip


def play(playbook, *arguments, **variables):
    done = run(playbook, *arguments, **variables)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    return done.stdout


@pytest.fixture(scope="module")
def _lab():
    play("lab_up.yml")
    yield
    play("lab_down.yml")


def short(folder, **variables):
    return {
        "bench_results_dir": str(folder), "bench_run_id": "study", "kernel_matrix_repeats": 1, "bench_duration_s": 1,
        **variables,
    }  # fmt: skip


@pytest.mark.usefixtures("_lab")
def test_every_figure_is_there_or_has_a_reason(tmp_path):
    told = play("kernel_matrix.yml", **short(tmp_path))
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


@pytest.mark.usefixtures("_lab")
def test_with_a_bmc_for_each_host_every_figure_is_measured_and_none_is_called_a_gain(tmp_path):
    pytest.importorskip("sushy_tools", reason="the BMC emulator sushy-tools is not installed")
    emulated = [sys.executable, ROOT / "scripts/emulated-bmcs", "server1", "server2", "desktop1", "desktop2", "--"]
    done = run("kernel_matrix.yml", "-i", "{bmcs}", before=emulated, **short(tmp_path))
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]

    study = json.loads((tmp_path / "study/study.json").read_text())
    assert len(study["cells"]) == 80
    assert study["powers"] == ["dynamic", "static_high"]
    assert [cell for cell in study["cells"] if not cell["value"]] == []
    assert "80 of 80 figures were measured" in done.stdout
    assert [gain["reason"] for gain in study["gains"]] == ["not shown: finding power_emulated"] * 20
    assert "dynamic and static_high: set in emulators of a BMC" in done.stdout

    trials = [json.loads(path.read_text()) for path in (tmp_path / "study/trials").glob("*.json")]
    assert len(trials) == 40
    for trial in trials:
        wanted = {"dynamic": "DynamicPowerSavings", "static_high": "StaticHighPerf"}[trial["point"]["power"]]
        assert trial["power"]["effective"] is None
        for host in trial["power"]["hosts"].values():
            assert host["found"]["bmc"]["PowerRegulator"] == wanted
            assert host["emulated"] == "Sushy Emulator"


def _hosts_hold_nothing():
    """What a journal that was given back leaves on each host of the lab."""
    book = ("server1", "server2", "desktop1", "desktop2")
    seen = {}
    for host in book:
        look = (
            "ip -br address show; cat /proc/sys/net/ipv4/ip_forward; "
            # an empty journal holds nothing: no setting, and nobody who has the host
            """grep -hE '"(kind|owner)"' /var/lib/fastpath-bench/journal/*.json 2>/dev/null; pgrep -a iperf; true"""
        )
        done = subprocess.run(
            [PLAYBOOK.with_name("ansible"), "-i", INVENTORY, host, "-m", "ansible.builtin.raw", "-a", look,
             "-e", json.dumps({"lab_name": LAB})],
            cwd=ROOT, env={**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg")}, capture_output=True, text=True,
            timeout=120, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        seen[host] = done.stdout
    return seen


@pytest.mark.usefixtures("_lab")
def test_a_host_that_is_away_and_a_wrong_interface_cost_their_cells_alone(tmp_path):
    before = _hosts_hold_nothing()
    away = {"ansible_connection": "ssh", "ansible_host": "192.0.2.1", "ansible_ssh_common_args": "-o ConnectTimeout=2"}
    (tmp_path / "away.json").write_text(json.dumps({"all": {"hosts": {"desktop2": away}}}))
    interfaces = {host: ["eth1", "eth2"] for host in ("server1", "server2", "desktop1", "desktop2")}
    interfaces["server2"] = ["eth1", "eth9"]
    told = play(
        "kernel_matrix.yml", "-i", tmp_path / "away.json",
        **short(tmp_path, kernel_matrix_powers=["as_found"], kernel_matrix_interfaces=interfaces),
    )  # fmt: skip
    study = json.loads((tmp_path / "study/study.json").read_text())
    reasons = {}
    for cell in study["cells"]:
        assert bool(cell["value"]) != bool(cell["reason"])
        reasons.setdefault(cell["topology"], set()).add(cell["reason"])
    assert reasons["server_to_server"] == reasons["server_to_desktop"] == {None}
    for topology in ("desktop_to_desktop", "server_routes"):
        assert all("desktop2 could not be reached" in reason for reason in reasons[topology]), reasons
    assert all("eth9" in reason and "there is no such interface" in reason for reason in reasons["desktop_routes"])
    assert "16 of 40 figures were measured" in told
    # the others are as they were
    assert _hosts_hold_nothing() == before


@pytest.mark.usefixtures("_lab")
def test_check_mode_and_what_is_wrong_in_the_inventory_change_nothing(tmp_path):
    before = _hosts_hold_nothing()
    done = run("kernel_matrix.yml", "--check", **short(tmp_path))
    assert done.returncode == 0, done.stdout[-4000:]
    assert not (tmp_path / "study").exists()
    kinds = {"server": ["server1", "server9"], "desktop": ["desktop1", "desktop2"]}
    interfaces = {host: ["eth1", "eth2"] for hosts in kinds.values() for host in hosts}
    done = run("kernel_matrix.yml", **short(tmp_path, kernel_matrix_kinds=kinds, kernel_matrix_interfaces=interfaces))
    assert done.returncode == 2
    assert "host 'server9' is not in the inventory" in " ".join(done.stdout.replace("''", "'").split())
    assert list(tmp_path.iterdir()) == []
    assert _hosts_hold_nothing() == before
