# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import pathlib
import subprocess

import pytest

from ansible_collections.fastpath.bench.plugins.module_utils._lab import disk, launch, machine
from ansible_collections.fastpath.bench.plugins.module_utils._lab.machine import LabError, Mount, parse_mountinfo
from ansible_collections.fastpath.bench.plugins.module_utils._lab.names import LabNames

HYBRID = """22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,name=systemd
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
42 27 254:0 /run/netns /run/netns rw,relatime shared:1 - ext4 /dev/vda rw
43 27 254:0 /x /mnt/with\\040space rw,relatime - ext4 /dev/vdb rw
"""
UNIFIED = """27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 27 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate
"""


def site(text: str, *, under_systemd: bool = False) -> launch.Site:
    mounts = parse_mountinfo(text)
    return launch.Site(mounts, machine.cgroup_root(mounts), under_systemd)


def test_mountinfo() -> None:
    mounts = parse_mountinfo(HYBRID)
    assert mounts[1] == Mount("/", "/", "ext4")
    assert mounts[-1] == Mount("/x", "/mnt/with space", "ext4")
    assert machine.cgroup_root(mounts) == "/sys/fs/cgroup/unified"
    assert machine.cgroup_v1_roots(mounts) == ["/sys/fs/cgroup/memory", "/sys/fs/cgroup/systemd"]
    assert machine.cgroup_root(parse_mountinfo(UNIFIED)) == "/sys/fs/cgroup"
    with pytest.raises(LabError, match="no cgroup2 hierarchy"):
        machine.cgroup_root(mounts[:2])


def test_a_disk_has_a_layer_for_each_mount_of_the_machines_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "_is_folder", lambda mount: mount.target != "/etc/hosts")
    mounts = [
        Mount("/", "/", "ext4"),
        Mount("/", "/proc", "proc"),
        Mount("/", "/usr", "ext4"),
        Mount("/", "/var/lib", "xfs"),
        Mount("/", "/var/lib/nfs/rpc_pipefs", "rpc_pipefs"),
        Mount("/", "/usrlocal", "ext4"),
        Mount("/h", "/etc/hosts", "ext4"),
        Mount("/", "/home/a,b", "ext4"),
        Mount("/", "/run/netns", "tmpfs"),
    ]
    assert disk.layers(mounts) == ["/", "/usr", "/var/lib"]
    assert disk.layer_folder("/d", "/var/lib") == "/d/%2Fvar%2Flib"


def test_the_start_script_on_a_hybrid_machine() -> None:
    script = launch.start_script(LabNames("my_lab"), "dut", site(HYBRID), ["/", "/var"])
    lines = script.splitlines()
    join = "echo $$ >/sys/fs/cgroup/unified/fastpath-lab/my_lab/dut/cgroup.procs"
    assert lines.index(join) < lines.index("umount --recursive /sys/fs/cgroup")
    assert "echo $$ >/sys/fs/cgroup/memory/cgroup.procs || :" in lines
    base = "/run/fastpath-lab/my_lab/dut"
    assert (
        f"mount -t overlay -o lowerdir=/var,upperdir={base}/disk/%2Fvar/upper,workdir={base}/disk/%2Fvar/work"
        f" overlay {base}/root/var"
    ) in lines
    assert "--machine=fpl-my.lab-dut " in lines[-1]
    assert "--network-namespace-path=/run/netns/fpl-my_lab-dut " in lines[-1]
    subprocess.run(["sh", "-n"], input=script, text=True, check=True)


def test_the_start_script_where_systemd_runs_the_machine() -> None:
    where = site(UNIFIED, under_systemd=True)
    script = launch.start_script(LabNames("x"), "dut", where, ["/"])
    assert "cgroup.procs" not in script
    assert "umount --recursive /sys/fs/cgroup" not in script
    assert launch.cgroup(LabNames("x"), "dut", where) == "/sys/fs/cgroup/system.slice/fastpath-lab-x-dut.service"


def test_the_names_alone_tell_the_lab(tmp_path: pathlib.Path) -> None:
    names = LabNames("lab")
    assert names.node_of_netns("fpl-lab-a-b") == "a-b"
    assert names.node_of_netns("fpl-lab2-a") is None
    for group in ("fastpath-lab/lab/b", "fastpath-lab/lab/a", "fastpath-lab/lab2/c"):
        (tmp_path / group).mkdir(parents=True)
    assert names.hosts_of_cgroups(str(tmp_path), under_systemd=False) == ["a", "b"]
    for unit in ("fastpath-lab-lab-x-y.service", "fastpath-lab-lab2-z.service", "other.service"):
        (tmp_path / "system.slice" / unit).mkdir(parents=True)
    assert names.hosts_of_cgroups(str(tmp_path), under_systemd=True) == ["x-y"]
    assert LabNames("none").hosts_of_cgroups(str(tmp_path / "no"), under_systemd=False) == []


def test_a_process_is_known_by_its_start() -> None:
    child = subprocess.Popen(["sleep", "60"])
    try:
        seen = machine.process(child.pid)
        assert seen is not None
        assert seen.alive()
        assert not machine.Process(seen.pid, seen.start_ticks + 1).alive()
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert not seen.alive()  # still in the table, as a zombie
    finally:
        child.kill()
        child.wait()
    assert machine.process(child.pid) is None
    assert not machine.is_init(os.getpid())


def test_a_tool_that_fails_is_quoted() -> None:
    with pytest.raises(LabError, match="sh -c echo no >&2; exit 3 ended with 3: no"):
        machine.run(["sh", "-c", "echo no >&2; exit 3"])
    with pytest.raises(LabError, match="fastpath-no-such-tool is not installed"):
        machine.run(["fastpath-no-such-tool"])


def test_refusals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(LabError, match="needs root") as caught:
        machine.preflight()
    assert "sudo" in caught.value.message
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(machine.command, "find_program", lambda tool: None if tool == "systemd-nspawn" else tool)
    with pytest.raises(LabError, match="not installed: systemd-nspawn"):
        machine.preflight()
    monkeypatch.setattr(machine.command, "find_program", lambda tool: tool)
    monkeypatch.setattr(machine, "capabilities", lambda kind: {machine.CAP_NET_ADMIN})
    with pytest.raises(LabError, match="without CAP_SYS_ADMIN"):
        machine.preflight()


def test_the_shipped_generators_and_units_are_masked_on_a_new_disk(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = {
        "/etc": ["rc2.d", "rc.local", "rcfoo.d"],
        "/etc/systemd/system": ["multi-user.target.wants", "sysinit.target.d", "ssh.service"],
        "/usr/lib/systemd/system-generators": ["systemd-fstab-generator"],
        "/usr/lib/systemd/system": ["sysinit.target.wants", "x.service"],
        "/usr/lib/systemd/system/sysinit.target.wants": [
            "cryptsetup.target",
            "kmod-static-nodes.service",
            "systemd-journald.service",
        ],
    }
    monkeypatch.setattr(disk, "_names", lambda folder: names.get(folder, []))
    emptied: list[str] = []
    hidden: list[str] = []
    monkeypatch.setattr(disk.Disk, "empty", lambda self, path: emptied.append(path))
    monkeypatch.setattr(disk.Disk, "hide", lambda self, path: hidden.append(path))
    monkeypatch.setattr(os, "chown", lambda *args: None)
    assert disk.prepare(str(tmp_path / "disk"), "dut", [Mount("/", "/", "ext4")]) == ["/"]
    upper = tmp_path / "disk" / "%2F" / "upper"
    assert (upper / "etc/hostname").read_text() == "dut\n"
    assert (upper / "etc/fstab").read_text() == ""
    assert len((upper / "etc/machine-id").read_text().strip()) == 32
    assert emptied == [
        "/etc/rc2.d",
        "/etc/systemd/system/multi-user.target.wants",
        "/etc/systemd/system/sysinit.target.d",
    ]
    assert hidden == ["/var/lib/fastpath-bench"]
    system = upper / "etc/systemd"
    assert os.readlink(system / "system-generators/systemd-fstab-generator") == "/dev/null"
    assert os.readlink(system / "system/kmod-static-nodes.service") == "/dev/null"
    assert os.readlink(system / "system/systemd-udevd.service") == "/dev/null"
    for kept in ("systemd-journald.service", "cryptsetup.target", "x.service"):
        assert not (system / "system" / kept).is_symlink()
    subprocess.run(["sh", "-n", str(upper) + disk.INIT_PATH], check=True)
    # Prepared once; a disk that was not finished is made anew.
    identity = (upper / "etc/machine-id").read_text()
    disk.prepare(str(tmp_path / "disk"), "dut", [Mount("/", "/", "ext4")])
    assert (upper / "etc/machine-id").read_text() == identity
    (tmp_path / "disk" / ".prepared").unlink()
    disk.prepare(str(tmp_path / "disk"), "dut", [Mount("/", "/", "ext4")])
    assert (upper / "etc/machine-id").read_text() != identity
