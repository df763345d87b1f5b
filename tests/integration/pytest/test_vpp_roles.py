# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""VPP's roles, and what uses them, on lab hosts with a real VPP and a real systemd."""

from __future__ import annotations

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import typing as t

import pytest

from ansible_collections.fastpath.bench.tests.support.vpp_process import find_vpp, why_not

ROOT = pathlib.Path(__file__).resolve().parents[3]
BIN = pathlib.Path(sys.executable).parent
PLAYBOOK = "tests/integration/playbooks/vpp_router.yml"

pytestmark = [
    pytest.mark.vpp,
    pytest.mark.lab,
    pytest.mark.slow,
    pytest.mark.skipif(
        os.geteuid() != 0 or shutil.which("systemd-nspawn") is None, reason="needs root and systemd-nspawn"
    ),
]


class Lab:
    def __init__(self) -> None:
        self.name = f"vpp{os.getpid()}"
        self.environment = {
            **os.environ,
            "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
            "PATH": f"{BIN}:{os.environ['PATH']}",
            "ANSIBLE_NOCOLOR": "1",
        }

    def play(self, playbook: str, *arguments: str, **variables: t.Any) -> subprocess.CompletedProcess[str]:
        extra = json.dumps({"lab_name": self.name, "test_vpp_bin": find_vpp(), **variables})
        command = [str(BIN / "ansible-playbook"), playbook, "-e", extra, *arguments]
        return subprocess.run(
            command, cwd=ROOT, env=self.environment, capture_output=True, text=True, timeout=600, check=False
        )

    def changed(self, step: str, *arguments: str, **variables: t.Any) -> int:
        """How many tasks changed something on the router; fails when one failed."""
        done = self.play(PLAYBOOK, *arguments, test_step=step, **variables)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
        return int(re.findall(r"^dut\s.*changed=(\d+)", done.stdout, re.M)[-1])

    def shell(self, host: str, command: str) -> str:
        extra = json.dumps({"lab_name": self.name})
        arguments = [str(BIN / "ansible"), host, "-e", extra, "-m", "ansible.builtin.shell", "-a", f"{command}; true"]
        done = subprocess.run(
            arguments, cwd=ROOT, env=self.environment, capture_output=True, text=True, timeout=120, check=True
        )
        return done.stdout.split(">>\n", 1)[1]

    def answers(self) -> bool:
        """Both families, and TCP: with open checksums that nobody closes ping gets through and TCP does not."""
        self.shell("server", "mkdir -p /run/www; head -c 3000000 /dev/zero > /run/www/big")
        self.shell(
            "server",
            "ss -Hltn sport = :5001 | grep -q . || "
            "systemd-run --quiet python3 -m http.server 5001 --directory /run/www; sleep 1",
        )
        pings = self.shell("client", "ping -c 8 -i .3 -q 10.73.2.1; ping -6 -c 8 -i .3 -q fd73:2::1")
        fetch = 'import urllib.request as u; print(len(u.urlopen("http://10.73.2.1:5001/big", timeout=10).read()))'
        got = self.shell("client", f"timeout 20 python3 -c '{fetch}'").strip()
        received = [int(count) for count in re.findall(r"(\d+) received", pings)]
        return got == "3000000" and len(received) == 2 and min(received) > 0

    def state(self) -> str:
        return self.shell("dut", "for i in eth1 eth2; do ip -br -d addr show $i; cat /sys/class/net/$i/flags; done")


@pytest.fixture(scope="module")
def lab() -> t.Iterator[Lab]:
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)
    lab = Lab()
    built = lab.play("playbooks/lab_up.yml")
    try:
        assert built.returncode == 0, built.stdout[-2000:]
        yield lab
    finally:
        lab.play("playbooks/lab_down.yml")


def test_a_router_from_nothing_to_removal(lab: Lab) -> None:
    lab.shell("dut", "for i in eth1 eth2; do ip link set $i up; done; ip addr add 10.73.1.253/24 dev eth1; sleep 2")
    before = lab.state()

    # Check mode on a host that has nothing yet
    assert lab.changed("apply", "--check") > 0
    assert lab.state() == before
    assert lab.shell("dut", "ls /etc/vpp/startup.conf 2>/dev/null").strip() == ""

    assert lab.changed("apply") > 0
    assert lab.changed("apply") == 0
    assert lab.answers()

    # A restart of VPP, without us
    lab.shell("dut", "systemctl restart vpp; sleep 4")
    assert lab.answers()
    assert lab.changed("apply") == 0

    # Its start-up script stops in the middle: VPP runs, and the router is not there
    lab.shell("dut", "sed -i 's/^set interface ip address host-eth1 10.*/nonsense/' /etc/vpp/fastpath.cli")
    lab.shell("dut", "systemctl restart vpp; sleep 4")
    done = lab.play(PLAYBOOK, test_step="verify")
    assert done.returncode != 0
    assert "These do not hold" in done.stdout + done.stderr
    assert lab.changed("apply") > 0
    assert lab.answers()

    # VPP is killed: systemd brings it back, and it brings the router
    lab.shell("dut", "systemctl kill -s SIGKILL vpp; sleep 6")
    assert lab.changed("apply") == 0

    assert lab.changed("remove") > 0
    assert lab.state() == before
    assert lab.shell("dut", "ls /etc/systemd/system/vpp.service /etc/vpp/startup.conf 2>/dev/null").strip() == ""
    assert lab.changed("remove") == 0


def test_what_vpp_would_not_start_with_is_refused_and_a_crash_loop_is_no_start(lab: Lab) -> None:
    done = lab.play(PLAYBOOK, test_step="apply", vpp_corelist_workers="77")
    assert done.returncode != 0
    assert "CPUs 77 for workers do not exist" in done.stdout + done.stderr
    done = lab.play(PLAYBOOK, test_step="apply", vpp_startup_extra="nosuchsection { x }")
    assert done.returncode != 0
    assert "again and again" in done.stdout + done.stderr
    assert "nosuchsection" in done.stdout + done.stderr
    lab.changed("remove")


def test_a_router_over_af_xdp_and_nothing_left_behind(lab: Lab) -> None:
    xdp = {"test_datapath": "vpp_af_xdp"}
    lab.shell("dut", "for i in eth1 eth2; do ip link set $i up; done; sleep 2")
    before = lab.state()
    assert lab.changed("apply", **xdp) > 0
    assert lab.changed("apply", **xdp) == 0
    assert lab.answers()

    # VPP is killed: its XDP program stays on the device, and the next VPP takes it over
    lab.shell("dut", "systemctl kill -s SIGKILL vpp; sleep 6")
    assert lab.answers()
    assert lab.changed("apply", **xdp) == 0

    # Larger packets than a buffer holds would be lost
    done = lab.play(PLAYBOOK, test_step="apply", test_mtu_bytes=3000, **xdp)
    assert done.returncode != 0
    assert "carries 1778" in done.stdout + done.stderr

    assert lab.changed("remove", **xdp) > 0
    assert lab.state() == before
    assert "xsk_def" not in lab.shell("dut", "ip -d link")


def test_a_matrix_measures_af_xdp_where_it_can_be_had_and_skips_it_elsewhere(lab: Lab, tmp_path: pathlib.Path) -> None:
    disabled = {"vpp_af_xdp": ["dpdk"], "no_plugin": ["dpdk", "af_xdp"]}
    shipped = {"role": "fastpath.bench.vpp_af_xdp", "addresses": "datapath", "whole_checksums": True}
    axes = {"topology": ["routed"], "datapath": ["vpp_af_xdp", "no_plugin"]}
    done = lab.play(
        "playbooks/site.yml",
        # the endpoints are still addressed by the tests before
        bench_take_over=True,
        bench_results_dir=str(tmp_path),
        bench_datapaths={
            name: {**shipped, "vars": {"vpp_plugins_disabled": plugins}} for name, plugins in disabled.items()
        },
        bench_matrix={"axes": {**axes, "traffic": ["tcp_large"], "direction": ["forward"]}, "repeats": 1},
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    summary = json.loads((tmp_path / "latest" / "summary.json").read_text(encoding="utf-8"))
    points = {point["point"]["datapath"]: point for point in summary["points"]}
    assert points["vpp_af_xdp"]["status"] == "ok", points["vpp_af_xdp"]["reason"]
    assert points["no_plugin"]["status"] == "skipped"
    assert "af_xdp_plugin.so is not loaded" in points["no_plugin"]["reason"]
    assert "xsk_def" not in lab.shell("dut", "ip -d link")
    for host in ("client", "server"):
        assert "tx-checksumming: on" in lab.shell(host, "ethtool -k eth1")


def test_rx_mode_latency_measures_what_the_driver_has_and_says_what_it_has_not(
    lab: Lab, tmp_path: pathlib.Path
) -> None:
    lab.shell("dut", "for i in eth1 eth2; do ip link set $i up; done; sleep 2")
    before = lab.state()
    done = lab.play(
        "playbooks/rx_mode_latency.yml",
        bench_take_over=True,
        bench_results_dir=str(tmp_path),
        bench_rx_mode_repeats=1,
        bench_rx_mode_pings=50,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    [folder] = tmp_path.glob("rx_mode_latency-*")
    text = "".join(path.read_text(encoding="utf-8") for path in folder.glob("*.md"))
    rows = {row.split("|")[1].strip(): row for row in text.splitlines() if row.startswith("| ")}
    for mode in ("polling", "interrupt"):
        assert re.search(r"\d+ of 50", rows[mode]), rows[mode]
        assert re.search(r"\d\.\d{3} \|", rows[mode]), rows[mode]
    assert "not supported by this driver" in rows["adaptive"]
    # a word, never VPP's number of it
    assert "| adaptive | - | - |" in text
    assert lab.state() == before
    assert lab.shell("dut", "systemctl is-active vpp").strip() != "active"
    assert lab.shell("dut", "ls /run/fastpath-bench/sample 2>/dev/null").strip() == ""
