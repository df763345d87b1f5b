# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whole runs of site.yml on a real lab: measured, resumed, broken off, and with hosts that are away."""

from __future__ import annotations

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

import jsonschema
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
PLAYBOOK = pathlib.Path(sys.executable).with_name("ansible-playbook")
ANSIBLE = pathlib.Path(sys.executable).with_name("ansible")
LAB = f"e2e{os.getpid()}"

pytestmark = [
    pytest.mark.lab,
    pytest.mark.skipif(
        os.geteuid() != 0 or shutil.which("systemd-nspawn") is None, reason="needs root and systemd-nspawn"
    ),
]

MATRIX = {
    "bench_matrix": {
        "axes": {
            "topology": ["direct", "routed"],
            "traffic": ["tcp_large", "udp_small"],
            "direction": ["forward"],
        },
        "repeats": 1,
        "seed": 1,
        "baseline": {"topology": "direct"},
    },
    "bench_duration_s": 1,
    "bench_warmup_s": 0.5,
}
ROUTED_TCP = "lab.routed.kernel.tcp_large.forward"


def environment():
    path = f"{PLAYBOOK.parent}:{os.environ['PATH']}"
    return {**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "PATH": path}


def command(playbook, results, *arguments, **variables):
    values = {"lab_name": LAB, "bench_results_dir": str(results), **MATRIX, **variables}
    return [str(PLAYBOOK), str(ROOT / playbook), "-e", json.dumps(values), *arguments]


def play(playbook, results, *arguments, check=True, **variables):
    done = subprocess.run(
        command(playbook, results, *arguments, **variables),
        cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=300, check=False,
    )
    assert not check or done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    return done


def lab_host(host, *words):
    done = subprocess.run(
        [str(ANSIBLE), "-e", f"lab_name={LAB}", host, "-m", "ansible.builtin.raw", "-a", " ".join(words)],
        cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=60, check=True,
    )
    return done.stdout.split(">>\n", 1)[1]


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    play("playbooks/lab_up.yml", folder)
    yield folder
    play("playbooks/lab_down.yml", folder)
    assert not (pathlib.Path("/run/fastpath-lab") / LAB).exists()


@pytest.fixture(scope="module")
def measured(results):
    play("site.yml", results, bench_run_id="whole")
    return results / "whole"


def trials(run):
    return {path.name: json.loads(path.read_text()) for path in sorted((run / "trials").glob("*.json"))}


def schema(name):
    return json.loads((ROOT / "meta/schemas" / f"{name}.schema.json").read_text())


def test_every_point_is_measured_and_the_dut_saw_the_routed_ones(measured):
    found = trials(measured)
    assert {t["point_id"]: (t["status"], t["reason"]) for t in found.values()} == {
        f"lab.{path}.{traffic}.forward": ("ok", None)
        for path in ("direct.none", "routed.kernel")
        for traffic in ("tcp_large", "udp_small")
    }
    routed = found[f"{ROUTED_TCP}-r1-a1.json"]
    goodput = routed["metrics"]["goodput_forward"]["value"]
    seen = routed["dut"]["dut"]["interfaces"]["eth1"]
    assert seen["rx_rate_bps"] == pytest.approx(goodput, rel=0.15)
    assert found["lab.direct.none.tcp_large.forward-r1-a1.json"]["dut"] == {}


def test_files_follow_their_schemas(measured):
    jsonschema.validate(json.loads((measured / "run.json").read_text()), schema("run"))
    jsonschema.validate(json.loads((measured / "summary.json").read_text()), schema("summary"))
    for trial in trials(measured).values():
        jsonschema.validate(trial, schema("trial"))
        assert trial["raw"]
        for name in trial["raw"]:
            assert (measured / name).stat().st_size > 0
    assert not list((measured / "spool").iterdir())


def test_udp_packets_are_what_the_receiver_counted(measured):
    (path,) = (measured / "raw").glob("lab.direct.none.udp_small.forward-r1-a1*server*")
    received = 0
    for line in path.read_text().splitlines():
        # by hand from the rows of each stream: lost and total of the intervals after the warm-up of 0.5 s
        row = re.search(r"^\[ *\d+\] (\d\.\d+)-(\d\.\d+) sec .* (\d+)/(\d+) \(", line)
        if row and 0.45 < float(row[1]) < 1.45 and float(row[2]) < 1.55:
            received += int(row[4]) - int(row[3])
    trial = trials(measured)["lab.direct.none.udp_small.forward-r1-a1.json"]
    assert trial["metrics"]["forwarding_rate_forward"]["value"] == pytest.approx(received, rel=0.03)
    assert received > 1000
    assert 0 <= trial["metrics"]["frame_loss_ratio_forward"]["value"] < 1


def test_hosts_are_as_before(measured):
    run = json.loads((measured / "run.json").read_text())
    assert run["findings"] == []
    assert set(run["fingerprints"]) == {"client", "dut", "server"}
    assert "inet 10.73" not in lab_host("dut", "ip", "address")
    assert lab_host("dut", "sysctl", "-n", "net.ipv4.ip_forward").strip() == "0"
    assert "iperf" not in lab_host("server", "ps", "-e", "-o", "comm")


def test_a_finished_run_has_nothing_left_and_its_report_is_made_again_the_same(measured, results):
    before = (measured / "report.html").read_bytes()
    done = play("site.yml", results, bench_run_id="whole")
    assert "0 trials" in done.stdout
    assert len(trials(measured)) == 4
    (measured / "report.html").unlink()
    play("playbooks/report.yml", results, bench_run_id="whole")
    assert b"</html>" in before
    assert (measured / "report.html").stat().st_size > 10000


def test_a_missing_trial_is_measured_alone(measured, results):
    (measured / "trials" / f"{ROUTED_TCP}-r1-a1.json").unlink()
    done = play("site.yml", results, bench_run_id="whole")
    assert "[1/1]" in done.stdout
    assert trials(measured)[f"{ROUTED_TCP}-r1-a1.json"]["status"] == "ok"


def test_check_mode_touches_nothing(results):
    before = lab_host("dut", "ip", "-br", "address")
    play("site.yml", results, "--check", bench_run_id="checked")
    assert not (results / "checked").exists()
    assert lab_host("dut", "ip", "-br", "address") == before


def test_a_mistake_in_the_matrix_touches_nothing(results):
    done = play("site.yml", results, check=False, bench_run_id="mistake", bench_duration_s=0)
    assert done.returncode != 0
    assert "bench_traffic.tcp_large.duration_s: 0 is too small" in done.stdout + done.stderr
    assert not (results / "mistake").exists()


@pytest.mark.slow
def test_a_killed_run_keeps_what_it_measured_and_the_next_one_cleans_up(results):
    run = results / "killed"
    variables = {"bench_run_id": "killed", "bench_matrix": {**MATRIX["bench_matrix"], "repeats": 3}}
    child = subprocess.Popen(
        command("site.yml", results, **variables), cwd=ROOT, env=environment(), stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, start_new_session=True,
    )
    deadline = time.monotonic() + 90
    while not list(run.glob("trials/*direct*")) and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(6)
    os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    kept = trials(run)
    assert kept
    assert "inet 10.73" in lab_host("client", "ip", "address"), "it was killed while a set-up was in place"

    play("site.yml", results, bench_run_id="after")
    assert {t["status"] for t in trials(results / "after").values()} == {"ok"}
    assert "inet 10.73" not in lab_host("client", "ip", "address")

    play("site.yml", results, **variables)
    resumed = trials(run)
    assert {t["status"] for t in resumed.values()} == {"ok"}
    assert len(resumed) == 12
    assert all(resumed[name] == trial for name, trial in kept.items()), "what was measured stays as it was"


def test_a_dut_that_is_away_costs_only_its_points(results):
    init = json.loads((pathlib.Path("/run/fastpath-lab") / LAB / "dut" / "init").read_text())["pid"]
    os.kill(init, signal.SIGKILL)
    play("site.yml", results, bench_run_id="away")
    found = trials(results / "away")
    assert {t["status"] for name, t in found.items() if ".direct." in name} == {"ok"}
    for name, trial in found.items():
        if ".routed." in name:
            assert trial["status"] == "failed"
            assert "dut could not be reached" in trial["reason"]
    play("playbooks/lab_up.yml", results)
