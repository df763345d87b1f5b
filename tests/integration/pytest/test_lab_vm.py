# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Labs with a virtual machine: its own kernel, its own systemd, reached by SSH.

One lab serves the tests of a running host, in the order in which they stand here: a start in software takes a minute.
"""

from __future__ import annotations

import json
import os
import pathlib
import shlex
import shutil
import signal
import subprocess
import sys
import time
import typing as t

import pytest

from ansible_collections.fastpath.bench.tests.integration.pytest.test_lab import (
    COLLECTIONS,
    ENV,
    PLAYBOOK,
    LabUnderTest,
    wait_until,
)

IMAGES = pathlib.Path("/var/cache/fastpath-bench/images")
#: What a first run may need to make the image, beyond the start.
LIMIT_S = 1800

pytestmark = [
    pytest.mark.lab,
    pytest.mark.vm,
    pytest.mark.slow,
    pytest.mark.skipif(
        os.geteuid() != 0
        or any(shutil.which(tool) is None for tool in ("systemd-nspawn", "qemu-system-x86_64", "mmdebstrap", "ssh")),
        reason="needs root, systemd-nspawn, qemu-system-x86_64, mmdebstrap and ssh",
    ),
]

#: dut -- client: a virtual machine and a host that shares the machine's kernel.
TOPOLOGY: dict[str, t.Any] = {
    "topology": {
        "nodes": {"client": None, "dut": {"kind": "vm"}, "sw": {"kind": "bridge"}},
        "links": [
            {"endpoints": ["client:eth1", "dut:eth1"], "mtu": 3000},
            {"endpoints": ["client:eth2", "sw:one"]},
            {
                "endpoints": [{"node": "dut", "interface": "cable-two", "offloads": {"tso": False}}, "sw:two"],
                "queues": 2,
            },
        ],
    }
}


class MachineLab(LabUnderTest):
    def call(self, job: str, data: object = None, *, check: bool = False) -> dict[str, t.Any]:
        argv = self.command(job, TOPOLOGY if data is None else data, check=check)
        done = subprocess.run(argv, capture_output=True, text=True, timeout=LIMIT_S, check=False)
        assert done.returncode == 0, done.stderr
        result: dict[str, t.Any] = json.loads(done.stdout)
        assert not result.get("failed"), result["msg"]
        return result

    def ssh(self, script: str, host: str = "dut") -> str:
        argv = [str(self.folder / host / "ssh"), host, script]
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=180, check=False)
        return done.stdout + done.stderr

    def qemu(self, host: str) -> list[str]:
        argv = ["pgrep", "-f", f"^qemu-system.*-name fpl-{self.name}-{host} "]
        return subprocess.run(argv, capture_output=True, text=True, check=False).stdout.split()

    def play(self, tmp_path: pathlib.Path, plays: list[dict[str, t.Any]]) -> subprocess.CompletedProcess[str]:
        book, inventory = tmp_path / "play.yml", tmp_path / "hosts.yml"
        book.write_text(json.dumps(plays))
        variables = {
            "ansible_connection": "fastpath.bench.lab",
            "ansible_python_interpreter": "/usr/bin/python3",
            "lab_name": self.name,
        }
        inventory.write_text(json.dumps({"all": {"hosts": {"client": None, "dut": None}, "vars": variables}}))
        argv = [str(PLAYBOOK), "-i", str(inventory), str(book)]
        return subprocess.run(argv, capture_output=True, text=True, timeout=600, check=False, env=ENV)


SENT_BYTES = 5_000_000
RECEIVE = """python3 -c '
import socket
peer, count = socket.create_server(("", 5009)).accept()[0], 0
while data := peer.recv(65536):
    count += len(data)
print(count)
'"""

#: What the roles of the test change.
STATE = (
    "sysctl -a 2>/dev/null |"
    " grep -E 'ip_forward|hash_policy|conf.(all|default|eth1|cable-two).(forwarding|rp_filter)';"
    " ip address show eth1; ip address show cable-two; ethtool -k eth1"
)


#: What the collection has on a host; an empty journal stays there, and is nothing that is left.
LEFT = (
    "find /var/lib/fastpath-bench -type f ! -path '*/journal/*' 2>/dev/null;"
    " grep '\"kind\"' /var/lib/fastpath-bench/journal/journal.json 2>/dev/null"
)


def make_lab(name: str) -> MachineLab:
    link = COLLECTIONS / "ansible_collections" / "fastpath" / "bench"
    assert link.exists()
    return MachineLab(f"v{os.getpid()}_{name}")


@pytest.fixture(scope="module")
def built() -> t.Iterator[tuple[MachineLab, dict[str, t.Any]]]:
    lab = make_lab("a")
    try:
        yield lab, lab.call("present")
    finally:
        lab.call("absent")
    assert lab.leftovers() == []


@pytest.fixture
def lab(built: tuple[MachineLab, dict[str, t.Any]]) -> MachineLab:
    return built[0]


def test_it_is_built_and_a_second_run_changes_nothing(built: tuple[MachineLab, dict[str, t.Any]]) -> None:
    lab, result = built
    assert result["hosts"] == {"client": "running", "dut": "running"}
    assert result["bridges"] == ["sw"]
    assert {"start host dut", "start host client", "lay cable client:eth1 -- dut:eth1"} <= set(result["steps"])
    init = lab.init("dut")
    again = lab.call("present")
    assert not again["changed"]
    assert again["steps"] == []
    assert lab.init("dut") == init
    assert not lab.call("present", check=True)["changed"]


def test_it_has_its_own_kernel_and_a_whole_systemd(lab: MachineLab) -> None:
    assert "cloud" in lab.ssh("uname -r") or lab.ssh("uname -r").strip() != os.uname().release
    assert lab.ssh("cat /etc/hostname; hostname") == "dut\ndut\n"
    assert lab.ssh("systemctl is-system-running --wait") == "running\n"
    assert lab.ssh("systemctl --failed --no-legend") == ""
    # What a lab host of the machine's kernel cannot do.
    assert lab.ssh("modprobe xfrm_interface && modprobe sch_netem && sysctl -n vm.swappiness") == "60\n"


def test_no_traffic_can_leave_by_the_management_card(lab: MachineLab) -> None:
    routes = lab.ssh("ip -4 route show")
    assert "default" not in routes
    assert "10.0.2." not in lab.ssh("ip address show")
    assert [line.split()[0] for line in routes.splitlines()] == ["169.254.22.0/24"]


def test_cables_carry_frames_as_asked_for(lab: MachineLab) -> None:
    names = lab.ssh("ls /sys/class/net").split()
    assert sorted(names) == ["cable-two", "eth1", "lo", "mgmt0"]
    lab.ssh("ip address add 192.0.2.1/24 dev eth1; ip address add 198.51.100.1/24 dev cable-two")
    lab.sh("client", "ip address add 192.0.2.2/24 dev eth1; ip address add 198.51.100.2/24 dev eth2")
    assert " 0% packet loss" in lab.sh("client", "ping -c 2 -w 20 -M do -s 2972 192.0.2.1")
    assert " 0% packet loss" in lab.ssh("ping -c 2 -w 20 198.51.100.2")
    assert "mtu 3000" in lab.ssh("ip link show eth1")
    assert "tcp-segmentation-offload: off" in lab.ssh("ethtool -k cable-two")
    assert lab.ssh("ls -d /sys/class/net/cable-two/queues/rx-* | wc -l").strip() == "2"
    # Frames of other kinds, and segments larger than a frame, pass as they do between two hosts.
    lab.ssh("ip address add 2001:db8::1/64 dev eth1 nodad")
    lab.sh("client", "ip address add 2001:db8::2/64 dev eth1 nodad")
    assert " 0% packet loss" in lab.sh("client", "ping -6 -c 2 -w 20 2001:db8::1")
    receiver = subprocess.Popen([str(lab.folder / "dut" / "ssh"), "dut", RECEIVE], stdout=subprocess.PIPE, text=True)
    send = f'import socket as s; s.create_connection(("192.0.2.1", 5009)).sendall(bytes({SENT_BYTES}))'
    for _try in range(100):
        if not lab.sh("client", f"python3 -c '{send}'"):
            break
        time.sleep(0.3)
    assert receiver.communicate(timeout=60)[0].strip() == str(SENT_BYTES)


def test_ansible_reaches_it_by_its_name(lab: MachineLab, tmp_path: pathlib.Path) -> None:
    assert lab.ansible("dut", "-m", "ansible.builtin.ping").returncode == 0
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(bytes(range(256)) * 500)
    arguments: dict[str, t.Any] = {"src": str(source), "dest": "/root/a file", "mode": "0600"}
    put = lab.ansible("dut", "-m", "ansible.builtin.copy", "-a", json.dumps(arguments))
    assert put.returncode == 0, put.stdout
    arguments = {"src": "/root/a file", "dest": str(target), "flat": True}
    get = lab.ansible("dut", "-m", "ansible.builtin.fetch", "-a", json.dumps(arguments))
    assert get.returncode == 0, get.stdout
    assert target.read_bytes() == source.read_bytes()
    become = lab.ansible(
        "dut", "-m", "ansible.builtin.command", "-a", "id -un", "-b", "-e", "ansible_become_user=nobody"
    )
    assert become.stdout.splitlines()[-1] == "nobody", become.stdout
    # And by Ansible's own ssh, with nothing but paths that the lab's name gives.
    script = str(lab.folder / "dut" / "ssh")
    argv = [*lab.ansible_command("dut", "-m", "ansible.builtin.command", "-a", "hostname")]
    argv[argv.index("fastpath.bench.lab")] = "ansible.builtin.ssh"
    argv += ["-e", f"ansible_ssh_executable={script}", "-e", "ansible_ssh_transfer_method=piped"]
    plain = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False, env=ENV)
    assert "dut" in plain.stdout.split(), plain.stdout + plain.stderr


def test_roles_work_over_ssh_and_put_back_exactly(lab: MachineLab, tmp_path: pathlib.Path) -> None:
    lab.ssh("ip address flush dev cable-two scope global; ip address flush dev eth1 scope global")
    before = lab.ssh(STATE)
    play: dict[str, t.Any] = {
        "hosts": "dut",
        "gather_facts": False,
        "tasks": [
            {
                "ansible.builtin.include_role": {"name": "fastpath.bench.topology"},
                "vars": {
                    "topology_interfaces": [
                        {"name": "eth1", "addresses": ["192.0.2.1/24"], "mtu_bytes": 1500},
                        {"name": "cable-two", "addresses": ["198.51.100.1/24"]},
                    ]
                },
            },
            {
                "ansible.builtin.include_role": {"name": "fastpath.bench.kernel_router"},
                "vars": {
                    "kernel_router_interfaces": ["eth1", "cable-two"],
                    "kernel_router_features": {"gro": False},
                    "kernel_router_modules": ["nf_conntrack"],
                },
            },
        ],
    }
    first = lab.play(tmp_path, [play])
    assert first.returncode == 0, first.stdout + first.stderr
    assert "changed=0" not in first.stdout
    assert lab.ssh("sysctl -n net.ipv4.ip_forward; cat /sys/class/net/eth1/mtu") == "1\n1500\n"
    assert lab.ssh("grep -c ^nf_conntrack /proc/modules") == "1\n"
    second = lab.play(tmp_path, [play])
    assert "changed=0" in second.stdout, second.stdout
    restore = {"hosts": "dut", "gather_facts": False, "tasks": [{"fastpath.bench.host_restore": {}}]}
    restored = lab.play(tmp_path, [restore])
    assert restored.returncode == 0, restored.stdout
    assert lab.ssh(STATE) == before


def test_a_neighbour_that_died_gets_its_cable_back(lab: MachineLab) -> None:
    dut = lab.init("dut")
    os.kill(lab.init("client"), signal.SIGKILL)
    steps = lab.call("present")["steps"]
    assert steps[0] == "start host client"
    assert "lay cable client:eth1 -- dut:eth1" in steps
    assert lab.init("dut") == dut
    lab.ssh("ip address replace 192.0.2.1/24 dev eth1")
    lab.sh("client", "ip address add 192.0.2.2/24 dev eth1")
    assert " 0% packet loss" in lab.sh("client", "ping -c 2 -w 20 192.0.2.1")
    assert not lab.call("present")["changed"]


def test_one_that_died_is_unreachable_and_starts_again_on_its_own_disk(lab: MachineLab) -> None:
    lab.ssh("echo kept >/root/kept; sync")
    os.kill(lab.init("dut"), signal.SIGKILL)
    assert lab.call("gathered")["hosts"] == {"client": "running", "dut": "dead"}
    gone = lab.ansible("dut", "-m", "ansible.builtin.ping")
    assert "UNREACHABLE" in gone.stdout
    assert "has died" in gone.stdout
    # What it is asked for now it gets with this start.
    data = json.loads(json.dumps(TOPOLOGY))
    data["topology"]["nodes"]["dut"]["memory"] = "400MiB"
    steps = lab.call("present", data)["steps"]
    assert steps[0] == "start host dut"
    assert lab.ssh("cat /root/kept") == "kept\n"
    assert not lab.call("present", data)["changed"]
    assert lab.call("present", check=True)["steps"][0] == "start host dut"


def test_a_call_killed_at_any_moment_leaves_what_the_next_can_use_or_remove() -> None:
    lab = make_lab("k")
    alone = {"topology": {"nodes": {"dut": {"kind": "vm"}, "left": None}, "links": [["dut:eth1", "left:eth1"]]}}
    try:
        for after_s in (0.3, 0.8, 1.5, None):
            running = subprocess.Popen(lab.command("present", alone), stdout=subprocess.DEVNULL, start_new_session=True)
            if after_s is None:
                wait_until(lambda: lab.qemu("dut") != [], 60)
            else:
                time.sleep(after_s)
            os.killpg(running.pid, signal.SIGKILL)
            running.wait()
            if after_s is not None:
                lab.call("absent")
                assert lab.leftovers() == [], after_s
        # The guest goes on starting; the next call waits for it, and starts none of its own.
        qemu = lab.qemu("dut")
        assert "wait for host dut" in lab.call("present", alone)["steps"]
        assert lab.qemu("dut") == qemu
        assert lab.ssh("hostname") == "dut\n"
        assert not lab.call("present", alone)["changed"]
    finally:
        lab.call("absent")
    assert lab.leftovers() == []


def test_one_that_cannot_be_as_asked_says_why_and_leaves_nothing() -> None:
    lab = make_lab("f")
    data = {
        "topology": {
            "nodes": {"dut": {"kind": "vm"}, "left": None},
            "links": [
                {"endpoints": [{"node": "dut", "interface": "eth1", "offloads": {"tls-hw-record": True}}, "left:eth1"]}
            ],
        }
    }
    try:
        done = subprocess.run(lab.command("present", data), capture_output=True, text=True, timeout=LIMIT_S, check=True)
        result = json.loads(done.stdout)
        assert result["code"] == "host_not_up"
        assert "offload tls-hw-record is not on" in result["msg"]
        assert lab.call("gathered")["hosts"]["dut"] == "dead"
    finally:
        lab.call("absent")
    assert lab.leftovers() == []


def test_where_systemd_runs_the_machine() -> None:
    """A lab within a lab host: there systemd looks after QEMU."""
    if any(pathlib.Path(path).is_relative_to("/tmp") for path in (COLLECTIONS, sys.executable)):
        pytest.skip("a lab host has a /tmp of its own, so it cannot run a checkout that lies there")
    outer, inner = make_lab("n"), MachineLab("inner")
    alone = {"topology": {"nodes": {"dut": {"kind": "vm"}, "left": None}, "links": [["dut:eth1", "left:eth1"]]}}

    def inside(script: str) -> str:
        enter = ["nsenter", "-t", str(outer.init("machine")), "-m", "-u", "-i", "-n", "-p", "-C", "--", "sh", "-c"]
        done = subprocess.run([*enter, script], capture_output=True, text=True, timeout=600, check=False)
        return done.stdout + done.stderr

    def call(job: str) -> dict[str, t.Any]:
        printed = inside(f"cd / && {shlex.join(inner.command(job, alone))}")
        return t.cast("dict[str, t.Any]", json.loads(printed.splitlines()[-1]))

    try:
        argv = [*outer.command("present", {"topology": {"nodes": {"machine": None}}}), "nested"]
        subprocess.run(argv, check=True, capture_output=True, timeout=120)
        assert call("present")["hosts"] == {"dut": "running", "left": "running"}
        assert not call("present")["changed"]
        assert inside("/run/fastpath-lab/inner/dut/ssh dut hostname") == "dut\n"
        assert inside("systemctl is-active fastpath-lab-inner-dut.service") == "active\n"
        assert call("absent")["changed"]
        assert "inner" not in inside("ls -A /run/fastpath-lab /run/netns; find /sys/fs/cgroup -name 'fastpath-lab-*'")
        assert inside("pgrep -a qemu") == ""
    finally:
        outer.call("absent")
    assert outer.leftovers() == []
