# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Arguments of the kernel for real: a virtual machine that GRUB starts, a drop-in, a restart, pages of 1 GiB, put back.

The lab gives its machines a kernel directly. Here that kernel is GRUB itself, which reads the machine's own grub.cfg
once there is one.
"""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import typing as t

import pytest

from ansible_collections.fastpath.bench.plugins.module_utils._lab import guest, image
from ansible_collections.fastpath.bench.plugins.module_utils._lab.names import LabNames
from ansible_collections.fastpath.bench.tests.integration.pytest.test_lab import ENV, PLAYBOOK
from ansible_collections.fastpath.bench.tests.integration.pytest.test_lab_vm import LEFT, MachineLab, make_lab

LIMIT_S = 3600
GRUB_FILES = pathlib.Path("/usr/lib/grub/i386-pc")
PACKAGES = ("grub-pc-bin", "grub2-common")

pytestmark = [
    pytest.mark.lab,
    pytest.mark.vm,
    pytest.mark.slow,
    pytest.mark.skipif(
        os.geteuid() != 0
        or any(shutil.which(tool) is None for tool in ("systemd-nspawn", "qemu-system-x86_64", "mmdebstrap", "ssh"))
        or os.uname().machine != "x86_64",
        reason="needs root, systemd-nspawn, qemu-system-x86_64, mmdebstrap and ssh on x86_64",
    ),
    pytest.mark.skipif(
        shutil.which("grub-mkimage") is None or not (GRUB_FILES / "lnxboot.img").exists(),
        reason="needs grub-mkimage and GRUB's files for i386-pc (package grub-pc-bin)",
    ),
]

TOPOLOGY: dict[str, t.Any] = {
    "topology": {
        "nodes": {
            "dut": {"kind": "vm", "cpus": 2, "memory": "4GiB", "packages": list(PACKAGES)},
            "sw": {"kind": "bridge"},
        },
        "links": [{"endpoints": ["dut:eth1", "sw:one"]}],
    }
}
MODULES = "biosdisk ext2 normal configfile linux test echo search search_label search_fs_uuid minicmd"
#: The first start: there is no grub.cfg yet.
EARLY = """set root=(hd0)
set prefix=(hd0)/boot/grub
if [ -f (hd0)/boot/grub/grub.cfg ]; then
  configfile (hd0)/boot/grub/grub.cfg
fi
linux (hd0)/vmlinuz {line}
initrd (hd0)/initrd.img
boot
"""
SETTINGS = """GRUB_DEFAULT=0
GRUB_TIMEOUT=0
GRUB_DISTRIBUTOR=Debian
GRUB_CMDLINE_LINUX_DEFAULT="quiet"
GRUB_CMDLINE_LINUX="{line}"
GRUB_DISABLE_OS_PROBER=true
GRUB_TERMINAL=console
"""
ARGS = ["hugepagesz=1G", "hugepages=1", "fastpath.test=1"]
STATE = (
    "cat /sys/kernel/mm/hugepages/*/nr_hugepages; ls /etc/default/grub.d 2>/dev/null;"
    f" {LEFT};"
    " sed -e '/^### BEGIN/d' /boot/grub/grub.cfg | sha256sum"
)


@pytest.fixture
def lab(tmp_path: pathlib.Path) -> t.Iterator[MachineLab]:
    made = make_lab("gr")
    base = image.build(image.recipe(PACKAGES))
    kernel, kept = pathlib.Path(base.kernel), pathlib.Path(base.kernel + ".kept")
    early, core = tmp_path / "early.cfg", tmp_path / "core.img"
    early.write_text(EARLY.format(line=guest.kernel_line(LabNames(made.name), "dut")))
    argv = ["grub-mkimage", "-O", "i386-pc", "-o", str(core), "-p", "(hd0)/boot/grub", "-c", str(early)]
    subprocess.run([*argv, *MODULES.split()], check=True, timeout=60)
    if not kept.exists():
        kernel.rename(kept)
    try:
        kernel.write_bytes((GRUB_FILES / "lnxboot.img").read_bytes() + core.read_bytes())
        made.call("present", TOPOLOGY)
        yield made
    finally:
        made.call("absent", TOPOLOGY)
        kept.replace(kernel)
    assert made.leftovers() == []


def play(lab: MachineLab, tmp_path: pathlib.Path, entry: str, *words: str, **variables: t.Any) -> str:
    book, inventory = tmp_path / "play.yml", tmp_path / "hosts.yml"
    task = {"ansible.builtin.include_role": {"name": "fastpath.bench.host_prep", "tasks_from": entry}}
    book.write_text(json.dumps([{"hosts": "dut", "gather_facts": False, "tasks": [task]}]))
    known = {
        "ansible_connection": "fastpath.bench.lab",
        "ansible_python_interpreter": "/usr/bin/python3",
        "lab_name": lab.name,
        **variables,
    }
    inventory.write_text(json.dumps({"all": {"hosts": {"dut": None}, "vars": known}}))
    argv = [str(PLAYBOOK), "-i", str(inventory), str(book), *words]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=LIMIT_S, check=False, env=ENV)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def boot_of(lab: MachineLab) -> str:
    return lab.ssh("cat /proc/sys/kernel/random/boot_id")


def ssh(lab: MachineLab, script: str) -> str:
    """For what takes an emulated machine minutes."""
    argv = [str(lab.folder / "dut" / "ssh"), "dut", script]
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=900, check=False)
    return done.stdout + done.stderr


def test_pages_of_1_gib_from_the_next_start_on(lab: MachineLab, tmp_path: pathlib.Path) -> None:
    line = guest.kernel_line(LabNames(lab.name), "dut").partition(" rw ")[2]
    ssh(lab, "mkdir -p /boot/grub && cp -r /usr/lib/grub/i386-pc /boot/grub/")
    settings = SETTINGS.format(line=line)
    told = ssh(lab, f"cat >/etc/default/grub <<'EOF'\n{settings}EOF\nupdate-grub")
    assert "done" in told
    before, first = lab.ssh(STATE), boot_of(lab)

    # what would be changed is shown, and nothing is restarted without leave
    shown = play(lab, tmp_path, "main", "--check", "--diff", host_prep_kernel_args=ARGS)
    assert "hugepagesz=1G hugepages=1 fastpath.test=1" in shown
    assert "must be restarted before hugepagesz=1G" in shown
    assert lab.ssh(STATE) == before
    assert boot_of(lab) == first

    pages = [{"size": "1G", "count": 1}]
    play(lab, tmp_path, "main", host_prep_kernel_args=ARGS, host_prep_hugepages=pages, host_prep_reboot=True,
         host_prep_reboot_timeout_s=600)  # fmt: skip
    second = boot_of(lab)
    assert second != first
    cmdline = lab.ssh("cat /proc/cmdline")
    # GRUB's own word
    assert "BOOT_IMAGE=" in cmdline
    assert "hugepagesz=1G hugepages=1" in lab.ssh("cat /etc/default/grub.d/95-fastpath-bench.cfg")
    assert all(arg in cmdline.split() for arg in ARGS)
    assert lab.ssh("cat /sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages").strip() == "1"

    play(lab, tmp_path, "remove")
    assert "95-fastpath" not in lab.ssh("ls /etc/default/grub.d")
    assert "hugepagesz" not in lab.ssh("grep linux /boot/grub/grub.cfg")
    assert lab.ssh(STATE).splitlines()[-1] == before.splitlines()[-1]
