# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Searches through a lab's kernel router: one of known rate, one that forwards nothing, and the playbook ndr."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import typing as t

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
BIN = pathlib.Path(sys.executable).parent
PLAYBOOK = "tests/integration/playbooks/throughput_search.yml"
#: A frame of 64 bytes counts as 60 at the token bucket, which knows no FCS.
RATE_PPS, QUEUED = 20_000, 1_000
RATE_BPS = RATE_PPS * 60 * 8

pytestmark = [
    pytest.mark.lab,
    pytest.mark.slow,
    pytest.mark.skipif(
        os.geteuid() != 0 or shutil.which("systemd-nspawn") is None, reason="needs root and systemd-nspawn"
    ),
]

#: The TRex of whoever runs the tests.
TREX_DIR = os.environ.get("TREX_DIR", "/opt/trex")
needs_trex = pytest.mark.skipif(
    not pathlib.Path(TREX_DIR, "_t-rex-64").exists(), reason=f"no TRex in {TREX_DIR} (variable TREX_DIR)"
)
#: What a generator must leave as it was.
STATE = (
    "tc qdisc show dev eth1; ip -br link show dev eth1; cat /sys/class/net/eth1/flags;"
    " ls -d /tmp/fastpath-trex-* /var/run/dpdk/fastpath-* 2>/dev/null;"
    " ps -e -o comm | grep -e t-rex -e testpmd; true"
)


class Lab:
    def __init__(self, folder: pathlib.Path, name: str = "ndr") -> None:
        self.name = f"{name}{os.getpid()}"
        self.folder = folder
        self.environment = {
            **os.environ,
            "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
            "PATH": f"{BIN}:{os.environ['PATH']}",
            "ANSIBLE_NOCOLOR": "1",
        }

    def play(self, playbook: str, **variables: t.Any) -> subprocess.CompletedProcess[str]:
        extra = json.dumps({"lab_name": self.name, "bench_results_dir": str(self.folder), **variables})
        done = subprocess.run(
            [str(BIN / "ansible-playbook"), playbook, "-e", extra],
            cwd=ROOT, env=self.environment, capture_output=True, text=True, timeout=600, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
        return done

    def search(self, *, dead: str = "", **options: t.Any) -> dict[str, t.Any]:
        out = self.folder / "found.json"
        self.play(PLAYBOOK, test_out=str(out), test_rate_bps=RATE_BPS, test_dead=dead, test_search=options)
        found: dict[str, t.Any] = json.loads(out.read_text(encoding="utf-8"))
        return found

    def shell(self, host: str, command: str) -> str:
        extra = json.dumps({"lab_name": self.name})
        words = [str(BIN / "ansible"), host, "-e", extra, "-m", "ansible.builtin.shell", "-a", command]
        done = subprocess.run(
            words, cwd=ROOT, env=self.environment, capture_output=True, text=True, timeout=120, check=True
        )
        return done.stdout.split(">>\n", 1)[1]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> t.Iterator[Lab]:
    made = Lab(tmp_path_factory.mktemp("ndr"))
    made.play("playbooks/lab_up.yml")
    yield made
    made.play("playbooks/lab_down.yml")


def test_a_router_of_known_rate(lab: Lab) -> None:
    """What a token bucket lets through in a second: its rate, and once what it holds and queues."""
    found = lab.search(frame="64", max_load_pps=3 * RATE_PPS, validation_s=3, trial_retries=10)
    result = found["search_result"]
    assert result["status"] == "ok"
    for goal in result["goals"]:
        # a sender that other programs hold up sends in bursts, which the queue does not take
        assert 0.8 * RATE_PPS <= goal["conditional_throughput_pps"] <= 1.01 * (RATE_PPS + QUEUED)
    assert result["goals"][0]["relevant_lower_bound_pps"] <= result["goals"][1]["relevant_lower_bound_pps"]
    assert result["validation"]["trial_duration_s"] == 3
    # some of the trials wait for a CPU that other programs have
    assert statistics.median(trial["overhead_s"] for trial in result["trials"]) <= 0.5
    measured = [trial for trial in result["trials"] if trial["usable"]]
    assert all(trial["received_packets"] <= trial["sent_packets"] for trial in measured)


def test_a_router_that_forwards_none_of_it_is_a_misconfiguration(lab: Lab) -> None:
    found = lab.search(dead="forward", frame="64", max_load_pps=10_000)
    assert found["code"] == "direction_dead"
    assert "misconfiguration" in found["msg"]
    assert len(found["search_result"]["trials"]) == 2


@pytest.mark.parametrize(
    ("generator", "direction"),
    [
        ("flow", "forward"),
        ("testpmd", "forward"),
        pytest.param("trex", "forward", marks=needs_trex),
        ("flow", "both"),
    ],
)
def test_other_generators_find_the_same(lab: Lab, generator: str, direction: str) -> None:
    """The bucket limits the way there; with both ways loaded, its loss is half of what both lose."""
    before = lab.shell("client", STATE)
    found = lab.search(
        generator=generator, direction=direction, frame="64", max_load_pps=3 * RATE_PPS, validation_s=3,
        trex_dir=TREX_DIR, goals=[{"name": "NDR", "duration_sum_s": 1}], trial_retries=10,
    )  # fmt: skip
    result = found["search_result"]
    assert result["status"] == "ok", found["msg"]
    ndr = result["goals"][0]
    assert ndr["relevant_lower_bound_pps"] <= 1.01 * (RATE_PPS + QUEUED)
    # testpmd polls, so on a busy machine it gets too little time for its rate; that must then be said
    assert ndr["limited_by"] == "generator" if ndr["at_least"] else ndr["relevant_lower_bound_pps"] >= 0.8 * RATE_PPS
    assert result["report"]["traffic_profile"]["generator"]["name"] == generator
    assert result["report"]["aggregate_factor"] == (2 if direction == "both" else 1)
    assert statistics.median(trial["overhead_s"] for trial in result["trials"]) <= 0.5
    for trial in result["trials"]:
        assert [count["direction"] for count in trial["directions"]] == (
            ["forward", "reverse"] if direction == "both" else ["forward"]
        )
    # the token bucket that holds testpmd to its rate is gone, and so is the server of TRex with what it set
    assert lab.shell("client", STATE) == before


def test_a_generator_that_is_the_limit_says_at_least(lab: Lab) -> None:
    # so low that what a sender has to make up for after half a second without a CPU still fits into the router's queue
    found = lab.search(generator="flow", frame="64", max_load_pps=1_000, validation_s=0, trial_retries=10)
    ndr = found["search_result"]["goals"][0]
    assert (ndr["at_least"], ndr["limited_by"]) == (True, "max_load")
    assert "at least" in ndr["text"]


def test_one_direction_that_is_dead_is_a_misconfiguration(lab: Lab) -> None:
    found = lab.search(dead="reverse", generator="flow", direction="both", frame="64", max_load_pps=10_000)
    assert found["code"] == "direction_dead"
    assert "nothing of what was sent reverse arrived" in found["msg"]
    assert len(found["search_result"]["trials"]) == 2
    assert "fastpath-source" not in lab.shell("server", "ps -e -o comm")


def test_the_playbook_ndr(lab: Lab) -> None:
    goals = [{"name": "NDR", "duration_sum_s": 1}, {"name": "PDR", "loss_ratio": 0.005, "duration_sum_s": 1}]
    options = {"validation_s": 2, "latency_s": 0.5, "goals": goals, "trial_retries": 10}
    mix = {"name": "halves", "recipe": {"64": 1, "1518": 1}}
    before = lab.shell("dut", "sysctl -n net.ipv4.ip_forward; ip -br address")
    done = lab.play("playbooks/ndr.yml", bench_ndr_frames=[128, mix], bench_ndr_options=options)
    assert "| 128 | NDR |" in done.stdout
    (folder,) = lab.folder.glob("ndr-*")
    document = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    assert [search["frame"] for search in document["searches"]] == ["128", "halves"]
    for search in document["searches"]:
        assert search["result"]["status"] == "ok"
        assert [goal["name"] for goal in search["result"]["goals"]] == ["NDR", "PDR"]
        assert all(goal["relevant_lower_bound_pps"] for goal in search["result"]["goals"])
        assert [at["part"] for at in search["result"]["latency"]] == [0, 0.1, 0.5, 0.9]
        assert all(at["mean_ms"] > 0 for at in search["result"]["latency"])
        assert search["result"]["validation"]["trial_duration_s"] == 2
    assert document["searches"][1]["result"]["report"]["traffic_profile"]["frames"]["mean_bytes"] == 791
    report = (folder / "report.md").read_text(encoding="utf-8")
    assert "1 (50.0 %) of 64 bytes" in report
    # RFC 9971: a report has the device's configuration, and where a trial differs from that of RFC 2544
    assert "Unlike the trials of RFC 2544" in report
    assert document["devices"]["dut"]["kernel"]["release"] in report
    assert document["devices"]["dut"]["state"]["sysctls"]
    assert lab.shell("dut", "sysctl -n net.ipv4.ip_forward; ip -br address") == before
    assert "fastpath-sink" not in lab.shell("server", "ps -e -o comm")
