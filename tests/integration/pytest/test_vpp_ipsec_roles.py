# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""VPP at both ends of an IPsec tunnel, on lab hosts: nothing in the clear, back after a restart, measured, gone."""

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

pytestmark = [
    pytest.mark.vpp,
    pytest.mark.lab,
    pytest.mark.slow,
    pytest.mark.skipif(
        os.geteuid() != 0 or shutil.which("systemd-nspawn") is None, reason="needs root and systemd-nspawn"
    ),
]

HOSTS = ("client", "gwa", "gwb", "server")
BOTH = ("gwa", "gwb")
SCRIPT = "/etc/vpp/fastpath-ipsec.cli"
GATEWAYS = [
    {
        "name": name,
        "interfaces": [
            {"name": "eth1", "addresses": [f"10.73.{side}.254/24"], "mtu_bytes": 1500},
            {"name": "eth2", "addresses": [f"10.73.9.{side}/24"], "mtu_bytes": 1500},
        ],
    }
    for side, name in ((1, "gwa"), (2, "gwb"))
]
ENDS = {"client": 1, "server": 2}
VARIABLES: dict[str, t.Any] = {
    "ansible_connection": "fastpath.bench.lab",
    "ansible_python_interpreter": "/usr/bin/python3",
    "vpp_install": "present",
    "vpp_main_core": 0,
    "vpp_corelist_workers": "1",
    "vpp_main_heap_size": "256M",
    "vpp_buffers_page_size": "4K",
    "vpp_poll_sleep_usec": 100,
    "lab_topology": {
        "topology": {
            "nodes": dict.fromkeys(HOSTS),
            "links": [
                {"endpoints": ["client:eth1", "gwa:eth1"]},
                {"endpoints": ["gwa:eth2", "gwb:eth2"]},
                {"endpoints": ["gwb:eth1", "server:eth1"]},
            ],
        }
    },
    "bench_testbed": "lab",
    "bench_topologies": {
        "gateways": {
            "parts": {"client": "client", "dut1": "gwa", "dut2": "gwb", "server": "server"},
            "links": [
                {
                    "ends": [
                        {"part": one, "interface": "eth1", "addresses": [f"10.73.{side}.1/24"]},
                        {"part": other, "interface": "eth1", "addresses": [f"10.73.{side}.254/24"]},
                    ]
                }
                for one, other, side in (("client", "dut1", 1), ("server", "dut2", 2))
            ]
            + [
                {
                    "ends": [
                        {"part": f"dut{side}", "interface": "eth2", "addresses": [f"10.73.9.{side}/24"]}
                        for side in (1, 2)
                    ]
                }
            ],
        }
    },
    "bench_matrix": {
        "axes": {"topology": ["gateways"], "datapath": ["vpp_ipsec"], "traffic": ["tcp_large"],
                 "direction": ["forward"]},
        "repeats": 1,
    },
    "bench_duration_s": 2,
    "bench_warmup_s": 1,
}  # fmt: skip

#: By protocol of IP, what a cable had until it is told to stop.
SNIFF = """
import collections, json, os, socket
cable = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
cable.bind(("eth2", 0))
cable.settimeout(0.2)
seen = collections.Counter()
open("/run/sniffs", "w").close()
while not os.path.exists("/run/stop"):
    try:
        frame = cable.recv(65536)
    except TimeoutError:
        continue
    seen[frame[23] if frame[12:14] == b"\\x08\\x00" else frame[12:14].hex()] += 1
with open("/run/new", "w") as out:
    json.dump(seen, out)
os.rename("/run/new", "/run/seen")
"""


class Lab:
    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        self.inventory = folder / "hosts.yml"
        variables = {**VARIABLES, "lab_name": f"vi{os.getpid()}", "vpp_bin": find_vpp()}
        groups = {"bench_testbeds": {"hosts": dict.fromkeys(HOSTS)}}
        self.inventory.write_text(json.dumps({"all": {"children": groups, "vars": variables}}))
        self.environment = {
            **os.environ,
            "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
            "PATH": f"{BIN}:{os.environ['PATH']}",
            "ANSIBLE_NOCOLOR": "1",
        }

    def play(self, playbook: str | pathlib.Path, **variables: t.Any) -> subprocess.CompletedProcess[str]:
        command = [str(BIN / "ansible-playbook"), "-i", str(self.inventory), str(playbook), "-e", json.dumps(variables)]
        return subprocess.run(
            command, cwd=ROOT, env=self.environment, capture_output=True, text=True, timeout=600, check=False
        )

    def tasks(self, hosts: str, tasks: list[dict[str, t.Any]], **variables: t.Any) -> list[int]:
        """How many tasks changed something, by host; fails when one failed."""
        done = self.try_tasks(hosts, tasks, **variables)
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]
        return [int(one) for one in re.findall(r"changed=(\d+)", done.stdout)]

    def try_tasks(
        self, hosts: str, tasks: list[dict[str, t.Any]], **variables: t.Any
    ) -> subprocess.CompletedProcess[str]:
        book = self.folder / "play.yml"
        every = {"vpp_ipsec_gateways": GATEWAYS, **variables}
        book.write_text(json.dumps([{"hosts": hosts, "gather_facts": False, "vars": every, "tasks": tasks}]))
        return self.play(book)

    def role(self, entry: str, **variables: t.Any) -> list[int]:
        include = {"name": "fastpath.bench.vpp_ipsec", "tasks_from": entry}
        return self.tasks("gwa,gwb", [{"ansible.builtin.include_role": include}], **variables)

    def shell(self, host: str, command: str) -> str:
        words = [str(BIN / "ansible"), "-i", str(self.inventory), host, "-m", "ansible.builtin.shell", "-a"]
        done = subprocess.run(
            [*words, f"{command}\ntrue"], cwd=ROOT, env=self.environment, capture_output=True, text=True, timeout=120,
            check=True,
        )  # fmt: skip
        return done.stdout.split(">>\n", 1)[1]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> t.Iterator[Lab]:
    reason = why_not(papi=False)
    if reason is not None:
        pytest.skip(reason)
    lab = Lab(tmp_path_factory.mktemp("lab"))
    built = lab.play("playbooks/lab_up.yml")
    try:
        assert built.returncode == 0, built.stdout[-2000:]
        yield lab
    finally:
        lab.play("playbooks/lab_down.yml")


def ends_up(lab: Lab) -> None:
    for host, side in ENDS.items():
        other = 3 - side
        lab.shell(
            host,
            f"ip link set eth1 up; ip addr replace 10.73.{side}.1/24 dev eth1; ethtool -K eth1 tx off >/dev/null;"
            f" ip route replace 10.73.{other}.0/24 via 10.73.{side}.254",
        )


def test_gateways_encrypt_all_and_come_back_after_a_restart(lab: Lab) -> None:
    ends_up(lab)
    assert min(lab.role("main", vpp_ipsec_tunnels=2)) > 0
    # what the role said was proven by the counters; here are the packets themselves
    lab.shell("gwb", f"cat >/run/sniff.py <<'X'\n{SNIFF}\nX\nsystemd-run --quiet python3 /run/sniff.py")
    lab.shell("gwb", "until [ -e /run/sniffs ]; do sleep .1; done")
    # VPP drops what it has to ask for a neighbour for
    lab.shell("client", "ping -c 3 -q -W 5 10.73.2.1")
    assert " 0% packet loss" in lab.shell("client", "ping -c 40 -i .1 -q -W 5 10.73.2.1")
    seen = json.loads(lab.shell("gwb", "touch /run/stop; until [ -e /run/seen ]; do sleep .1; done; cat /run/seen"))
    assert seen.get("50", 0) >= 40, seen
    # but for ARP and IPv6's housekeeping of the kernel, nothing else
    assert set(seen) <= {"50", "0806", "86dd"}, seen
    # the keys: for root alone, the same at both ends, the second run keeps them
    assert lab.shell("gwa", f"stat -c %a {SCRIPT}").strip() == "600"
    secrets = {lab.shell(host, f"grep secret {SCRIPT}").strip() for host in BOTH}
    assert len(secrets) == 1
    secret = secrets.pop().split()[-1]
    assert len(secret) == 48
    assert secret not in lab.shell("gwa", "cat /var/lib/fastpath-bench/journal/*; journalctl --no-pager")
    assert lab.role("main", vpp_ipsec_tunnels=2) == [0, 0]

    # a restart of VPP, without us
    lab.shell("gwa", "systemctl restart vpp; sleep 4")
    assert lab.role("main", vpp_ipsec_tunnels=2) == [0, 0]
    assert " 0% packet loss" in lab.shell("client", "ping -c 2 -W 5 10.73.2.1 >/dev/null; ping -c 3 -W 5 10.73.2.1")


def test_a_way_past_the_tunnels_is_seen_and_nothing_is_left(lab: Lab) -> None:
    lab.role("main", vpp_ipsec_tunnels=2)
    around = [{"prefix": "10.73.2.0/24", "paths": [{"via": "10.73.9.2", "interface": "host-eth2"}]}]
    lab.tasks("gwa", [{"fastpath.bench.vpp_route": {"state": "replaced", "routes": around}}])
    # by the counters, and by reading back
    asked = {"state": "gathered", "ping": "10.73.2.254", "packets": 5}
    done = lab.try_tasks("gwa", [{"fastpath.bench.vpp_ipsec": asked}])
    assert done.returncode != 0
    assert "plaintext_path" in done.stdout
    include = {"name": "fastpath.bench.vpp_ipsec", "tasks_from": "verify"}
    done = lab.try_tasks("gwa,gwb", [{"ansible.builtin.include_role": include}], vpp_ipsec_tunnels=2)
    assert done.returncode != 0
    assert "These do not hold: 10.73.2.0/24" in done.stdout, done.stdout[-3000:]
    assert lab.shell("gwa", f"grep secret {SCRIPT}").split()[-1] not in done.stdout

    assert min(lab.role("remove", vpp_ipsec_tunnels=2)) > 0
    for host in BOTH:
        assert "fastpath-ipsec" not in lab.shell(host, "ls /etc/vpp")
        assert lab.shell(host, "systemctl is-active vpp").strip() != "active"
        assert not re.search(r"10\.73\.", lab.shell(host, "ip -br addr"))


def test_the_matrix_measures_it(lab: Lab, tmp_path: pathlib.Path) -> None:
    done = lab.play("site.yml", bench_results_dir=str(tmp_path), bench_run_id="run")
    assert done.returncode == 0, done.stdout[-4000:]
    (trial,) = [json.loads(path.read_text()) for path in (tmp_path / "run/trials").glob("*.json")]
    assert trial["status"] == "ok", trial["reason"]
    goodput = trial["metrics"]["goodput_forward"]["value"]
    for host in BOTH:
        carried = trial["dut"][host]["vpp"]["ipsec"]["carried_bytes"]
        assert carried * 8 > goodput, host  # two seconds, so about twice as much
    assert "host_not_restored" not in (tmp_path / "run/summary.json").read_text()
