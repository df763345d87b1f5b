# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run of site.yml with a power axis: the lab's DUT has the BMC of sushy-tools' emulator."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import sys

import jsonschema
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
PLAYBOOK = pathlib.Path(sys.executable).with_name("ansible-playbook")
LAB = f"pwr{os.getpid()}"
sys.path.insert(0, str(ROOT / "tests" / "integration" / "redfish"))

pytest.importorskip("sushy_tools", reason="the BMC emulator sushy-tools is not installed")
from bmc import ATTRIBUTES, Bmc  # noqa: E402

pytestmark = [
    pytest.mark.lab,
    pytest.mark.slow,
    pytest.mark.skipif(
        os.geteuid() != 0 or shutil.which("systemd-nspawn") is None, reason="needs root and systemd-nspawn"
    ),
]


def for_duts(**variables):
    return {"parts": "duts", "vars": {"power_profile_backends": ["bmc"], **variables}}


POWER = {
    # no cpufreq in the lab's usual surroundings
    "bare": for_duts(power_profile_name="static_high", power_profile_backends=["os"]),
    "as_found": for_duts(),
    # needs a reset, and may not
    "dynamic": for_duts(),
    "static_high": for_duts(power_profile_bmc_reset=True),
}
MATRIX = {
    "axes": {
        "topology": ["routed"],
        "traffic": ["tcp_large"],
        "direction": ["forward"],
        "power": list(POWER),
    },
    "repeats": 1,
    "seed": 1,
    "baseline": {"power": "as_found"},
}


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    folder = tmp_path_factory.mktemp("power")
    bmc = Bmc(folder / "bmc")
    bmc.start()
    variables = {
        **bmc.variables(), "lab_name": LAB, "bench_results_dir": str(folder / "results"), "bench_run_id": "power",
        "bench_matrix": MATRIX, "bench_power": POWER, "bench_duration_s": 1, "bench_warmup_s": 0.5,
    }  # fmt: skip
    # extra variables would win over those of bench_power
    del variables["power_profile_backends"]
    (folder / "variables.json").write_text(json.dumps(variables))

    def play(playbook, *arguments):
        return subprocess.run(
            [str(PLAYBOOK), playbook, "-e", f"@{folder / 'variables.json'}", *arguments],
            cwd=ROOT, env={**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg")},
            check=False, capture_output=True, text=True, timeout=1800,
        )  # fmt: skip

    try:
        up = play("playbooks/lab_up.yml")
        assert up.returncode == 0, up.stdout[-3000:]
        done = play("site.yml", "-vvv")
        assert done.returncode == 0, done.stdout[-4000:]
        yield folder / "results" / "power", bmc, done.stdout + done.stderr
    finally:
        play("playbooks/lab_down.yml")
        bmc.stop()


def trials(run):
    found = [json.loads(path.read_text()) for path in sorted((run / "trials").glob("*.json"))]
    return {trial["point"]["power"]: trial for trial in found}


def test_each_trial_tells_whether_its_profile_was_in_force(measured):
    run, _bmc, _output = measured
    schema = json.loads((ROOT / "meta/schemas/trial.schema.json").read_text())
    found = trials(run)
    for trial in found.values():
        jsonschema.validate(trial, schema)
    assert {name: trial["status"] for name, trial in found.items() if name != "bare"} == {
        "as_found": "ok", "dynamic": "ok", "static_high": "ok",
    }  # fmt: skip
    assert {name: trial["power"]["effective"] for name, trial in found.items() if name != "bare"} == {
        "as_found": True, "dynamic": False, "static_high": True,
    }  # fmt: skip
    assert found["static_high"]["power"]["hosts"]["dut"]["found"] == {
        "bmc": {"WorkloadProfile": "Custom", "PowerRegulator": "StaticHighPerf"}
    }
    assert [f["code"] for f in found["dynamic"]["findings"]].count("profile_not_effective") == 1
    assert "pending until the server is reset" in found["dynamic"]["power"]["reason"]


@pytest.mark.skipif(pathlib.Path("/sys/devices/system/cpu/cpufreq/policy0").exists(), reason="this machine has cpufreq")
def test_without_a_lever_the_point_is_skipped_and_says_where_it_is(measured):
    bare = trials(measured[0])["bare"]
    assert bare["status"] == "skipped"
    assert bare["reason"].startswith("dut: no lever for power profile static_high: ")


def test_a_profile_that_is_not_in_force_has_no_comparison(measured):
    summary = json.loads((measured[0] / "summary.json").read_text())
    dynamic = next(point for point in summary["points"] if point["point"]["power"] == "dynamic")
    assert dynamic["baseline"]["shown"] is False
    assert dynamic["baseline"]["reason"] == "not shown: finding profile_not_effective"


def test_the_firmware_is_put_back_and_the_password_is_nowhere(measured):
    run, bmc, output = measured
    assert (bmc.read("current"), bmc.read("pending")) == (ATTRIBUTES, {})
    assert bmc.resets == ["GracefulRestart"] * 2, "one for static_high, one at the end"
    assert list((bmc.folder / "record").iterdir()) == []
    assert bmc.password not in output
    for path in run.rglob("*"):
        assert path.is_dir() or bmc.password.encode() not in path.read_bytes()
