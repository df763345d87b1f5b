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


def start(playbook, results, log="/dev/null", **variables):
    with open(log, "wb") as output:
        return subprocess.Popen(
            command(playbook, results, **variables), cwd=ROOT, env=environment(), stdout=output, stderr=output,
            start_new_session=True,
        )  # fmt: skip


def wait_for(true, limit_s):
    deadline = time.monotonic() + limit_s
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.05)


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
def test_a_datapath_has_its_variables_and_leaves_none_to_the_next_set_up(results):
    datapaths = {"rps": {"role": "fastpath.bench.kernel_router", "vars": {"kernel_router_rps": "0-1"}}}
    matrix = {
        "axes": {"topology": ["routed"], "datapath": ["kernel", "rps"], "traffic": ["tcp_large"]},
        "repeats": 2,
        "order": "interleaved",
    }
    play("site.yml", results, bench_run_id="rps", bench_datapaths=datapaths, bench_matrix=matrix)
    steered = {
        name: trial["dut"]["dut"]["softnet"]["received_rps"] > 0 for name, trial in trials(results / "rps").items()
    }
    assert steered == {name: ".rps." in name for name in steered}
    assert len(steered) == 4


@pytest.mark.slow
def test_a_second_run_on_the_same_hosts_is_refused_and_the_first_one_goes_on(results):
    first = start("site.yml", results, bench_run_id="first")
    wait_for(lambda: list((results / "first" / "spool").glob("*")), 90)
    second = play("site.yml", results, check=False, bench_run_id="second")
    assert second.returncode != 0
    assert "this host is in use by first" in second.stdout + second.stderr
    assert not (results / "second").exists()
    assert first.wait(120) == 0
    assert {t["status"] for t in trials(results / "first").values()} == {"ok"}


@pytest.mark.slow
def test_a_run_interrupted_while_hosts_are_put_back_is_opened_again_to_end_that(results, tmp_path):
    log = tmp_path / "log"
    child = start("site.yml", results, log, bench_run_id="interrupted")
    wait_for(lambda: b"Remove the datapath | lab-g02" in log.read_bytes(), 120)
    os.killpg(child.pid, signal.SIGINT)
    child.wait(20)
    assert "inet 10.73" in lab_host("client", "ip", "address"), "it was stopped before the hosts were put back"
    done = play("site.yml", results, bench_run_id="interrupted")
    assert "0 trials" in done.stdout
    assert "inet 10.73" not in lab_host("client", "ip", "address")
    assert lab_host("dut", "sysctl", "-n", "net.ipv4.ip_forward").strip() == "0"


@pytest.mark.slow
def test_what_was_measured_when_it_was_interrupted_survives_another_run(results):
    matrix = {"axes": {"topology": ["direct"], "traffic": ["tcp_large", "udp_small"]}, "repeats": 4}
    variables = {"bench_run_id": "stopped", "bench_matrix": matrix}
    run = results / "stopped"
    child = start("site.yml", results, **variables)
    wait_for(lambda: len(list((run / "spool").glob("*"))) >= 3, 120)
    os.killpg(child.pid, signal.SIGINT)
    child.wait(20)
    kept = {path.name: json.loads(path.read_text())["started"] for path in (run / "spool").glob("*.json")}
    assert not trials(run)
    told = play("playbooks/report.yml", results, bench_run_id="stopped").stdout
    assert "measured and not collected yet: resume the run" in told
    play("playbooks/restore.yml", results)
    assert "iperf" not in lab_host("server", "ps", "-e", "-o", "comm")
    play("site.yml", results, bench_run_id="between", bench_matrix={**matrix, "repeats": 1})
    play("site.yml", results, **variables)
    found = trials(run)
    assert {t["status"] for t in found.values()} == {"ok"}
    assert len(found) == 8
    assert {name: found[name]["started"] for name in kept} == kept


@pytest.mark.slow
def test_one_port_that_is_taken_costs_one_trial(results):
    code = "import socket,time; s=socket.socket(); s.bind(('0.0.0.0',5201)); s.listen(); time.sleep(600)"
    init = json.loads((pathlib.Path("/run/fastpath-lab") / LAB / "server" / "init").read_text())["pid"]
    other = subprocess.Popen(["nsenter", "-n", "-t", str(init), sys.executable, "-c", code])
    try:
        axes = {"topology": ["direct"], "traffic": ["tcp_large"], "direction": ["forward", "reverse"]}
        matrix = {"axes": axes, "repeats": 1, "order": "sequential"}
        play("site.yml", results, bench_run_id="taken", bench_matrix=matrix)
    finally:
        other.kill()
        other.wait()
    found = {name: (t["status"], t["code"]) for name, t in trials(results / "taken").items()}
    assert found == {
        "lab.direct.none.tcp_large.forward-r1-a1.json": ("failed", "port_busy"),
        "lab.direct.none.tcp_large.reverse-r1-a1.json": ("ok", None),
    }


@pytest.mark.slow
def test_a_host_that_could_not_be_put_back_is_told_and_ends_the_run_with_an_error(results, tmp_path):
    run = results / "meddled"
    axes = {"topology": ["routed"], "traffic": ["tcp_large"]}
    log = tmp_path / "log"
    child = start("site.yml", results, log, bench_run_id="meddled", bench_matrix={"axes": axes, "repeats": 1})
    wait_for(lambda: list((run / "spool").glob("*")), 120)
    # somebody else changes what the run has changed: that is not overwritten
    lab_host("dut", "sysctl", "-qw", "net.ipv4.conf.eth1.rp_filter=1")
    try:
        assert child.wait(120) != 0
        told = log.read_text()
        assert "dut differs after the restore in" in told
        assert "rp_filter" in told, told[-1500:]
        assert "The figures stand, but" in told
        summary = json.loads((run / "summary.json").read_text())
        assert "host_not_restored" in {finding["code"] for finding in summary["findings"]}
        assert trials(run)[f"{ROUTED_TCP}-r1-a1.json"]["status"] == "ok"
    finally:
        play("playbooks/restore.yml", results, restore_force=True)


@pytest.mark.slow
def test_the_oldest_ansible_core_measures_and_reports_too(results):
    done = subprocess.run([ROOT / "scripts/oldest-core"], check=True, capture_output=True, text=True, timeout=300)
    folder = ROOT / done.stdout.strip() / "bin"
    version = subprocess.run([folder / "ansible", "--version"], check=True, capture_output=True, text=True).stdout
    assert "core 2.19" in version
    community = next((PLAYBOOK.parents[1] / "lib").glob("python3.*/site-packages"))
    with_core = {
        **environment(),
        "PATH": f"{folder}:{os.environ['PATH']}",
        "ANSIBLE_COLLECTIONS_PATH": f"{ROOT / '.cache/collections'}:{community}",
    }
    words = command("site.yml", results, bench_run_id="oldest")
    ran = subprocess.run(
        [str(folder / "ansible-playbook"), *words[1:]], cwd=ROOT, env=with_core, capture_output=True, text=True,
        timeout=300, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout[-4000:] + ran.stderr[-2000:]
    assert json.loads((results / "oldest" / "run.json").read_text())["versions"]["ansible-core"].startswith("2.19.")
    assert {t["status"] for t in trials(results / "oldest").values()} == {"ok"}


def side(name, number):
    """One of two testbeds: a cable of its own between two hosts."""
    ends = [
        {"part": part, "interface": "eth1", "addresses": [f"10.73.{number}.{last}/24"]}
        for part, last in (("client", 1), ("server", 2))
    ]
    return {
        "hosts": {f"{name}-{part}": None for part in ("client", "server")},
        "vars": {
            "bench_testbed": name,
            "bench_topologies": {
                "direct": {"parts": {p: f"{name}-{p}" for p in ("client", "server")}, "links": [{"ends": ends}]}
            },
        },
    }


@pytest.mark.slow
def test_two_testbeds_of_one_inventory_are_measured_side_by_side(tmp_path):
    lab = f"two{os.getpid()}"
    sides = {"left": side("left", 1), "right": side("right", 2)}
    inventory = {
        "all": {
            "vars": {
                "lab_name": lab, "ansible_connection": "fastpath.bench.lab", "bench_results_dir": str(tmp_path),
                "bench_duration_s": 2, "bench_warmup_s": 0.5,
                "bench_matrix": {"axes": {"topology": ["direct"], "traffic": ["tcp_single"]}, "repeats": 2},
            },
            "children": {"bench_testbeds": {"children": sides}},
        }
    }  # fmt: skip
    nodes = {host: {"kind": "linux"} for entry in sides.values() for host in entry["hosts"]}
    links = [{"endpoints": [f"{name}-client:eth1", f"{name}-server:eth1"]} for name in sides]
    (tmp_path / "hosts.json").write_text(json.dumps(inventory))

    def run(playbook, **variables):
        words = [
            str(PLAYBOOK), "-i", str(tmp_path / "hosts.json"), str(ROOT / playbook), "-e", json.dumps(variables),
        ]  # fmt: skip
        done = subprocess.run(
            words, cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]

    topology = {"name": lab, "topology": {"nodes": nodes, "links": links}}
    run("playbooks/lab_up.yml", lab_name=lab, lab_topology=topology)
    try:
        run("site.yml", bench_run_id="two")
    finally:
        run("playbooks/lab_down.yml", lab_name=lab)
    found = trials(tmp_path / "two")
    assert {(t["testbed"], t["repetition"], t["status"]) for t in found.values()} == {
        (name, repetition, "ok") for name in sides for repetition in (1, 2)
    }
    spans = {
        name: [(t["started"], t["started"] + t["duration_s"]) for t in found.values() if t["testbed"] == name]
        for name in sides
    }
    assert any(a < d and c < b for a, b in spans["left"] for c, d in spans["right"]), "they took turns"


def test_a_run_without_any_result_has_failed(results):
    topology = {
        "parts": {"client": "client", "server": "server"},
        "links": [
            {
                "ends": [
                    {"part": "client", "interface": "eth9", "addresses": ["10.73.9.1/24"]},
                    {"part": "server", "interface": "eth2", "addresses": ["10.73.9.2/24"]},
                ]
            }
        ],
    }
    axes = {"topology": ["bad"], "traffic": ["tcp_large"]}
    done = play(
        "site.yml", results, check=False, bench_run_id="nothing", bench_topologies={"bad": topology},
        bench_matrix={"axes": axes, "repeats": 1},
    )  # fmt: skip
    assert done.returncode != 0
    assert "No point has a result" in done.stdout + done.stderr
    (trial,) = trials(results / "nothing").values()
    assert "eth9: there is no such interface" in trial["reason"]


@pytest.mark.slow
def test_a_killed_run_keeps_what_it_measured_and_the_next_one_cleans_up(results):
    run = results / "killed"
    variables = {"bench_run_id": "killed", "bench_matrix": {**MATRIX["bench_matrix"], "repeats": 3}}
    child = start("site.yml", results, **variables)
    wait_for(lambda: list(run.glob("trials/*direct*")), 90)
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


@pytest.mark.slow
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
