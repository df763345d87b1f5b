# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Real labs: built, repaired, killed in the middle, removed without a trace."""

from __future__ import annotations

import json
import os
import pathlib
import random
import shlex
import shutil
import signal
import subprocess
import sys
import time
import typing as t

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
COLLECTIONS = ROOT / ".cache" / "collections"
ANSIBLE = pathlib.Path(sys.executable).with_name("ansible")
PLAYBOOK = pathlib.Path(sys.executable).with_name("ansible-playbook")

pytestmark = [
    pytest.mark.lab,
    pytest.mark.skipif(
        os.geteuid() != 0 or shutil.which("systemd-nspawn") is None, reason="needs root and systemd-nspawn"
    ),
]

#: Runs one call as the module does, in a process that can be killed.
DRIVER = """
import json, sys
sys.path.insert(0, sys.argv[1])
from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._lab import launch, manager, topology
job, name, data, check = sys.argv[2], sys.argv[3], json.loads(sys.argv[4]), sys.argv[5] == "check"
if len(sys.argv) > 6:
    launch.WITHHELD = ()  # for a lab within a lab host
lab = manager.Lab(name, check_mode=check)
try:
    if job == "present":
        result = lab.present(topology.parse_topology(data, name=name))
    else:
        result = lab.absent() if job == "absent" else lab.gather()
except BenchError as err:
    result = {"failed": True, **err.as_result()}
print(json.dumps(result))
"""

PAIR: dict[str, t.Any] = {
    "topology": {
        "nodes": {"left": None, "right": {"kind": "linux"}},
        "links": [{"endpoints": ["left:eth1", "right:eth1"]}],
    }
}


class LabUnderTest:
    def __init__(self, name: str) -> None:
        self.name = name
        self.folder = pathlib.Path("/run/fastpath-lab") / name

    def command(self, job: str, data: object = None, *, check: bool = False) -> list[str]:
        mode = "check" if check else "real"
        topology = json.dumps(PAIR if data is None else data)
        return [sys.executable, "-c", DRIVER, str(COLLECTIONS), job, self.name, topology, mode]

    def call(self, job: str, data: object = None, *, check: bool = False) -> dict[str, t.Any]:
        done = subprocess.run(
            self.command(job, data, check=check), capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, done.stderr
        result: dict[str, t.Any] = json.loads(done.stdout)
        assert not result.get("failed"), result["msg"]
        return result

    def init(self, host: str) -> int:
        return int(json.loads((self.folder / host / "init").read_text())["pid"])

    def sh(self, host: str, script: str) -> str:
        pid = str(self.init(host))
        done = subprocess.run(
            ["nsenter", "-t", pid, "-m", "-u", "-i", "-n", "-p", "-C", "--", "sh", "-c", script],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return done.stdout + done.stderr

    def ansible(self, host: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.ansible_command(host, *arguments), capture_output=True, text=True, timeout=120, check=False, env=ENV
        )

    def ansible_command(self, host: str, *arguments: str) -> list[str]:
        return [
            *(str(ANSIBLE), "-i", f"{host},", host, "-c", "fastpath.bench.lab"),
            *("-e", f"lab_name={self.name}", "-e", "ansible_python_interpreter=/usr/bin/python3", *arguments),
        ]

    def leftovers(self) -> list[str]:
        """All on this machine that still has to do with the lab."""
        marks = (f"/run/fastpath-lab/{self.name}/", f"fpl-{self.name}-")
        found = [f"file {path}" for path in pathlib.Path("/run/fastpath-lab").glob("*") if path.stem == self.name]
        found += [f"netns {path}" for path in pathlib.Path("/run/netns").glob(f"fpl-{self.name}-*")]
        for pattern in ("fastpath-lab/" + self.name, f"system.slice/fastpath-lab-{self.name}-*"):
            found += [f"cgroup {path}" for path in pathlib.Path("/sys/fs/cgroup").glob(f"**/{pattern}")]
        for proc in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                mounts = (proc / "mountinfo").read_text()
                command = (proc / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except (OSError, ValueError):
                continue
            if any(mark in mounts or mark in command for mark in marks) or f"fastpath-lab/{self.name} " in mounts:
                found.append(f"process {proc.name} {command}")
        return found


ENV = {
    "PATH": os.environ["PATH"],
    "HOME": os.environ.get("HOME", "/root"),
    "ANSIBLE_COLLECTIONS_PATH": str(COLLECTIONS),
    "ANSIBLE_LOCALHOST_WARNING": "false",
    "LANG": "C.UTF-8",
}


@pytest.fixture
def lab(request: pytest.FixtureRequest) -> t.Iterator[LabUnderTest]:
    link = COLLECTIONS / "ansible_collections" / "fastpath" / "bench"
    link.parent.mkdir(parents=True, exist_ok=True)
    if not link.exists():
        link.symlink_to(ROOT, target_is_directory=True)
    lab = LabUnderTest(f"t{os.getpid()}_{abs(hash(request.node.name)) % 10000}")
    yield lab
    lab.call("absent")
    assert lab.leftovers() == []


def netns_of_machine() -> str:
    return subprocess.run(["ip", "-o", "link"], capture_output=True, text=True, check=True).stdout


def test_twice_changes_nothing_and_absent_leaves_nothing(lab: LabUnderTest) -> None:
    planned = lab.call("present", check=True)
    assert planned["changed"]
    assert lab.leftovers() == []
    before = netns_of_machine()
    built = lab.call("present")
    assert built["changed"]
    assert built["steps"] == planned["steps"]
    assert built["hosts"] == {"left": "running", "right": "running"}
    assert built["cables"] == [{"endpoints": ["left:eth1", "right:eth1"], "queues": 1}]
    assert netns_of_machine() == before
    inits = [lab.init("left"), lab.init("right")]
    assert lab.call("present") == {**lab.call("present"), "changed": False, "steps": []}
    assert [lab.init("left"), lab.init("right")] == inits
    assert lab.call("gathered")["hosts"] == built["hosts"]
    assert lab.call("absent", check=True)["changed"]
    assert lab.call("gathered")["hosts"] == built["hosts"]
    assert lab.call("absent")["changed"]
    assert lab.leftovers() == []
    assert not lab.call("absent")["changed"]


def test_a_host_is_a_machine_of_its_own(lab: LabUnderTest) -> None:
    lab.call("present")
    assert lab.sh("left", "hostname") == "left\n"
    assert lab.sh("left", "systemctl is-system-running") == "running\n"
    assert lab.sh("left", "systemctl --failed --no-legend") == ""
    machine_id = pathlib.Path("/etc/machine-id").read_text() if os.path.exists("/etc/machine-id") else ""
    ids = {lab.sh(host, "cat /etc/machine-id") for host in ("left", "right")}
    assert len(ids | {machine_id}) == 3
    assert lab.sh("left", "ls /sys/class/net") == "eth1\nlo\n"
    # Its own files, invisible outside.
    assert lab.sh("left", "echo mine > /etc/fastpath-test && cat /etc/fastpath-test") == "mine\n"
    assert not os.path.exists("/etc/fastpath-test")
    # What the machine has noted about its own settings is none of the host's business.
    assert lab.sh("left", "ls /var/lib/fastpath-bench 2>&1 | grep -c 'No such'") == "1\n"


def test_a_host_sets_its_own_network_and_nothing_of_the_machine(lab: LabUnderTest) -> None:
    lab.call("present")
    assert lab.sh("left", "f=/sys/class/net/eth1/queues/rx-0/rps_cpus; echo 1 > $f && cat $f").strip("0\n,") == "1"
    assert lab.sh("left", "sysctl -w net.ipv4.ip_forward=1") == "net.ipv4.ip_forward = 1\n"
    for path in (
        "/sys/kernel/mm/ksm/run",
        "/sys/devices/system/cpu/cpu0/online",
        "/sys/kernel/mm/transparent_hugepage/enabled",
        "/proc/sys/kernel/panic",
        "/proc/sys/vm/swappiness",
        "/proc/irq/default_smp_affinity",
    ):
        if os.path.exists(path):
            assert "Read-only file system" in lab.sh("left", f"echo 1 > {path}"), path
    done = lab.ansible(
        "left", "-m", "ansible.builtin.raw", "-a", "mknod /root/disk b 254 0; grep CapBnd /proc/self/status"
    )
    assert "Operation not permitted" in done.stdout
    bounding = int(done.stdout.split("CapBnd:")[1].split()[0], 16)
    for name, number in {"sys_module": 16, "sys_rawio": 17, "sys_time": 25, "mknod": 27}.items():
        assert not bounding >> number & 1, name


def test_nothing_the_machine_starts_by_itself_starts_in_a_host(lab: LabUnderTest) -> None:
    lab.call("present")
    # A role starts a service with the usual dependencies: it pulls in sysinit, basic, sockets and timers.
    unit = "[Service]\\nExecStart=/bin/sleep 600\\n[Install]\\nWantedBy=multi-user.target\\n"
    script = f"printf '{unit}' > /etc/systemd/system/role.service && systemctl enable --now role.service"
    lab.sh("left", script)
    assert lab.sh("left", "systemctl is-active role.service") == "active\n"
    running = lab.sh("left", "systemctl list-units --type=service,timer,socket,path --state=active --plain --no-legend")
    units = {line.split()[0] for line in running.splitlines()}
    assert units <= {
        "role.service",
        "fastpath-lab-ready.service",
        "systemd-journald.service",
        "systemd-journald.socket",
        "systemd-journald-dev-log.socket",
        "systemd-sysctl.service",
        "systemd-tmpfiles-setup.service",
        "systemd-tmpfiles-setup-dev.service",
        "systemd-tmpfiles-setup-dev-early.service",
        "dbus.service",
        "dbus.socket",
        "dbus-broker.service",
    }
    processes = lab.sh("left", "cat /proc/[0-9]*/comm").split()
    assert set(processes) <= {"systemd", "systemd-journal", "sleep", "cat", "sh", "dbus-daemon"}


def test_a_cable_carries_frames_with_the_mtu_queues_and_offloads_asked_for(lab: LabUnderTest) -> None:
    data = {
        "topology": {
            "nodes": PAIR["topology"]["nodes"],
            "links": [
                {
                    "endpoints": [
                        {"node": "left", "interface": "eth1", "offloads": {"tso": False}},
                        {"node": "right", "interface": "eth1", "queues": 4},
                    ],
                    "mtu": 9000,
                    "queues": 2,
                }
            ],
        }
    }
    lab.call("present", data)
    assert not lab.call("present", data)["changed"]
    lab.sh("left", "ip addr add 192.0.2.1/24 dev eth1")
    lab.sh("right", "ip addr add 192.0.2.2/24 dev eth1")
    assert " 0% packet loss" in lab.sh("left", "ping -c 1 -w 5 -M do -s 8972 192.0.2.2")
    assert lab.sh("left", "ls -d /sys/class/net/eth1/queues/rx-* | wc -l").strip() == "2"
    assert lab.sh("right", "ls -d /sys/class/net/eth1/queues/rx-* | wc -l").strip() == "4"
    assert "tcp-segmentation-offload: off" in lab.sh("left", "ethtool -k eth1")
    assert "tcp-segmentation-offload: on" in lab.sh("right", "ethtool -k eth1")
    # What a role sets later is left alone; a change of the topology is not.
    lab.sh("left", "ip link set eth1 mtu 1400")
    assert not lab.call("present", data)["changed"]
    data["topology"]["links"][0]["mtu"] = 3000
    assert lab.call("present", data)["steps"] == ["set left:eth1", "set right:eth1"]
    assert "mtu 3000" in lab.sh("left", "ip link show eth1")
    assert "192.0.2.1" in lab.sh("left", "ip addr show eth1")


def test_an_offload_that_the_kernel_refuses_is_one_clear_error(lab: LabUnderTest) -> None:
    data = {
        "topology": {
            **PAIR["topology"],
            "links": [{"endpoints": ["left:eth1", "right:eth1"], "offloads": {"lro": True}}],
        }
    }
    done = subprocess.run(lab.command("present", data), capture_output=True, text=True, timeout=120, check=True)
    result = json.loads(done.stdout)
    assert result["code"] == "offload_refused"
    assert "lro" in result["msg"]


def test_a_bridge_joins_three_hosts(lab: LabUnderTest) -> None:
    hosts = ("one", "two", "three")
    data = {
        "topology": {
            "nodes": {**dict.fromkeys(hosts), "sw": {"kind": "bridge"}},
            "links": [{"endpoints": [f"{host}:eth1", f"sw:{host}"]} for host in hosts],
        }
    }
    lab.call("present", data)
    assert not lab.call("present", data)["changed"]
    for number, host in enumerate(hosts, 1):
        lab.sh(host, f"ip addr add 192.0.2.{number}/24 dev eth1")
    for number in (2, 3):
        assert " 0% packet loss" in lab.sh("one", f"ping -c 1 -w 5 192.0.2.{number}")


def test_a_changed_topology_touches_only_what_differs(lab: LabUnderTest) -> None:
    lab.call("present")
    left = lab.init("left")
    lab.sh("left", "ip addr add 192.0.2.1/24 dev eth1")
    data = {
        "topology": {
            "nodes": {**PAIR["topology"]["nodes"], "third": None},
            "links": [*PAIR["topology"]["links"], {"endpoints": ["left:eth2", "third:eth1"]}],
        }
    }
    assert lab.call("present", data)["steps"] == ["start host third", "lay cable left:eth2 -- third:eth1"]
    assert lab.init("left") == left
    assert "192.0.2.1" in lab.sh("left", "ip addr show eth1")
    assert lab.call("present")["steps"] == ["remove node third"]
    assert lab.init("left") == left
    assert lab.sh("left", "ls /sys/class/net") == "eth1\nlo\n"


def test_what_broke_is_repaired(lab: LabUnderTest) -> None:
    lab.call("present")
    lab.sh("right", "echo kept > /root/kept")
    right, left = lab.init("right"), lab.init("left")
    os.kill(right, signal.SIGKILL)
    wait_until(lambda: not os.path.exists(f"/proc/{right}"))
    assert lab.call("gathered")["hosts"] == {"left": "running", "right": "dead"}
    repaired = lab.call("present")
    assert repaired["steps"] == ["start host right", "lay cable left:eth1 -- right:eth1"]
    assert lab.init("left") == left
    assert lab.init("right") != right
    assert lab.sh("right", "cat /root/kept") == "kept\n"
    # The same when the supervisor goes, and for a cable.
    supervisor = subprocess.run(
        ["pgrep", "-f", f"^systemd-nspawn.*/fpl-{lab.name}-right "], capture_output=True, text=True, check=True
    ).stdout.split()
    assert len(supervisor) == 1
    os.kill(int(supervisor[0]), signal.SIGKILL)
    lab.sh("left", "ip link del eth1")
    lab.call("present")
    assert not lab.call("present")["changed"]
    lab.sh("left", "ip link del eth1")
    assert lab.call("present")["steps"] == ["lay cable left:eth1 -- right:eth1"]


def test_two_labs_side_by_side(lab: LabUnderTest) -> None:
    other = LabUnderTest(lab.name + "b")
    try:
        lab.call("present")
        other.call("present")
        init = other.init("left")
        lab.call("absent")
        assert lab.leftovers() == []
        assert other.init("left") == init
        assert not other.call("present")["changed"]
    finally:
        other.call("absent")
    assert other.leftovers() == []


def test_a_process_in_a_namespace_does_not_outlive_the_lab(lab: LabUnderTest) -> None:
    lab.call("present")
    guest = subprocess.Popen(["nsenter", f"--net=/run/netns/fpl-{lab.name}-left", "sleep", "600"])
    wait_until(lambda: os.readlink(f"/proc/{guest.pid}/ns/net") != os.readlink("/proc/self/ns/net"))
    lab.call("absent")
    assert guest.wait(5) == -signal.SIGKILL


def test_where_systemd_runs_the_machine(lab: LabUnderTest) -> None:
    """A lab within a lab host: there systemd is the first process and control groups are of version 2 alone."""
    if any(pathlib.Path(path).is_relative_to("/tmp") for path in (ROOT, sys.executable)):
        pytest.skip("a lab host has a /tmp of its own, so it cannot run a checkout that lies there")
    machine = {"topology": {"nodes": {"machine": None}}}
    subprocess.run([*lab.command("present", machine), "nested"], check=True, capture_output=True, timeout=120)

    def call(job: str) -> dict[str, t.Any]:
        inner = LabUnderTest("inner")
        printed = lab.sh("machine", f"cd / && {shlex.join(inner.command(job))}")
        return t.cast("dict[str, t.Any]", json.loads(printed.splitlines()[-1]))

    assert call("present")["hosts"] == {"left": "running", "right": "running"}
    assert not call("present")["changed"]
    assert lab.sh("machine", "systemctl is-active fastpath-lab-inner-left.service") == "active\n"
    lab.sh("machine", "systemctl kill --signal=SIGKILL fastpath-lab-inner-left.service")
    assert call("present")["steps"] == ["start host left", "lay cable left:eth1 -- right:eth1"]
    assert call("absent")["changed"]
    for left in ("ls -A /run/fastpath-lab /run/netns", "find /sys/fs/cgroup -name 'fastpath-lab-inner*'"):
        assert "inner" not in lab.sh("machine", left)
    assert lab.sh("machine", "systemctl list-units --all --plain --no-legend 'fastpath-lab-inner*'") == ""
    # taking a lab down is no failure in the machine's journal
    journal = lab.sh("machine", "journalctl --sync; journalctl --no-pager -u 'fastpath-lab-inner-*'")
    assert "Started fastpath-lab-inner-left" in journal
    assert "Failed" not in journal


# -- the connection ----------------------------------------------------------------------------------------


def test_ansible_reaches_a_host_by_its_name(lab: LabUnderTest, tmp_path: pathlib.Path) -> None:
    down = lab.ansible("left", "-m", "ansible.builtin.raw", "-a", "true")
    assert "UNREACHABLE" in down.stdout
    assert "lab_up" in down.stdout
    lab.call("present")
    done = lab.ansible("left", "-m", "ansible.builtin.raw", "-a", "hostname; env | sort; cat /proc/self/cgroup")
    assert done.returncode == 0, done.stdout
    lines = done.stdout.splitlines()
    assert lines[1] == "left"
    assert "HOME=/root" in lines
    assert not [line for line in lines if line.startswith(("ANSIBLE", "VIRTUAL_ENV"))]
    assert "0::/fastpath-exec" in lines
    assert lab.ansible("left", "-m", "ansible.builtin.ping").returncode == 0
    # Files in both directions, bytes that are no text, and an empty one.
    for content in (bytes(range(256)) * 5000, b""):
        source, target = tmp_path / "source", tmp_path / "target"
        source.write_bytes(content)
        arguments: dict[str, t.Any] = {"src": str(source), "dest": "/root/a file", "mode": "0600"}
        put = lab.ansible("left", "-m", "ansible.builtin.copy", "-a", json.dumps(arguments))
        assert put.returncode == 0, put.stdout
        arguments = {"src": "/root/a file", "dest": str(target), "flat": True}
        get = lab.ansible("left", "-m", "ansible.builtin.fetch", "-a", json.dumps(arguments))
        assert get.returncode == 0, get.stdout
        assert target.read_bytes() == content


def test_a_host_that_dies_under_a_command_is_unreachable_not_a_hang(lab: LabUnderTest) -> None:
    lab.call("present")
    command = lab.ansible_command("left", "-m", "ansible.builtin.raw", "-a", "sleep 77.7")
    running = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=ENV)
    wait_until(lambda: "sleep" in lab.sh("left", "cat /proc/[0-9]*/comm").split(), 60)
    os.kill(lab.init("left"), signal.SIGKILL)
    out, _err = running.communicate(timeout=30)
    assert "UNREACHABLE" in out
    assert "died while a command ran" in out


# -- killed in the middle ----------------------------------------------------------------------------------


def kill_somewhere(lab: LabUnderTest, job: str, after_s: float) -> None:
    running = subprocess.Popen(
        lab.command(job), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    time.sleep(after_s)
    if running.poll() is None:
        os.killpg(running.pid, signal.SIGKILL)
    running.wait()


def kill_and_recover(lab: LabUnderTest, seed: int) -> None:
    chance = random.Random(seed)
    for _change in range(chance.choice((1, 1, 2, 3))):
        kill_somewhere(lab, chance.choice(("present", "present", "absent")), chance.uniform(0.05, 0.45))
    if chance.random() < 0.5:
        lab.call("present")
        assert not lab.call("present")["changed"]
        assert lab.sh("left", "hostname") == "left\n"
        if chance.random() < 0.5:
            kill_somewhere(lab, "absent", chance.uniform(0.03, 0.25))
    lab.call("absent")
    assert lab.leftovers() == [], f"seed {seed}"


def test_killed_at_any_moment(lab: LabUnderTest) -> None:
    for seed in range(8):
        kill_and_recover(lab, seed)


@pytest.mark.slow
def test_killed_at_any_moment_many_times(lab: LabUnderTest) -> None:
    first = int(os.environ.get("LAB_KILL_SEED", "1000"))
    for seed in range(first, first + 150):
        kill_and_recover(lab, seed)


@pytest.mark.slow
def test_playbook_killed_at_any_moment(lab: LabUnderTest) -> None:
    chance = random.Random(7)
    playbook = [str(PLAYBOOK), "-i", "localhost,", "-e", f"lab_name={lab.name}"]
    for _round in range(12):
        up, down = ([*playbook, str(ROOT / "playbooks" / name)] for name in ("lab_up.yml", "lab_down.yml"))
        running = subprocess.Popen(up, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=ENV)
        time.sleep(chance.uniform(0.8, 1.6))
        running.kill()
        running.wait()
        subprocess.run(down, check=True, capture_output=True, env=ENV)
        assert lab.leftovers() == []


def wait_until(condition: t.Callable[[], bool], timeout_s: float = 5.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)
