# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook restore.yml where something cannot be put back: all else is, and all that is left is told at the end."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
PLAYBOOK = pathlib.Path(sys.executable).with_name("ansible-playbook")
LAB = f"rst{os.getpid()}"
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
NODES = {
    "nodes": {name: {"kind": "linux"} for name in ("good", "bad")},
    "links": [{"endpoints": ["good:eth1", "bad:eth1"]}],
}
CHANGE = [
    {
        "hosts": "good,bad",
        "gather_facts": False,
        "tasks": [
            {
                "name": "Change the host",
                "fastpath.bench.net_tuning": {"interfaces": [{"name": "eth1", "txqueuelen": 77}], "owner": "dead"},
            },
            {
                "name": "Change the firmware",
                "ansible.builtin.include_role": {"name": "fastpath.bench.power_profile"},
            },
        ],
    }
]


def play(folder, *arguments):
    return subprocess.run(
        [PLAYBOOK, "-i", folder / "hosts.json", *arguments, "-e", json.dumps({"lab_name": LAB})],
        cwd=ROOT, env={**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg")}, check=False, capture_output=True,
        text=True, timeout=600,
    )  # fmt: skip


@pytest.fixture
def changed(tmp_path):
    """Two hosts that were changed, with their firmware; one of them has a virtual machine's record too."""
    bmcs = {name: Bmc(tmp_path / name, name=name) for name in ("good", "bad")}
    hosts = {
        name: {
            **bmc.variables(), "power_profile_name": "static_high", "power_profile_bmc_timeout_s": 5,
            "power_profile_bmc_tries": 1, "vm_resources_record_dir": str(tmp_path / "vm"),
            "vm_resources_hostname": "127.0.0.1", "vm_resources_port": 9, "vm_resources_username": "u",
            "vm_resources_password": "no-such-password", "vm_resources_name": f"vm-{name}",
        }
        for name, bmc in bmcs.items()
    }  # fmt: skip
    inventory = {
        "all": {
            "vars": {"ansible_connection": "fastpath.bench.lab", "lab_topology": {"name": LAB, "topology": NODES}},
            "hosts": hosts,
        }
    }
    (tmp_path / "hosts.json").write_text(json.dumps(inventory))
    (tmp_path / "change.json").write_text(json.dumps(CHANGE))
    try:
        up = play(tmp_path, ROOT / "playbooks/lab_up.yml")
        assert up.returncode == 0, up.stdout[-3000:]
        for bmc in bmcs.values():
            bmc.start()
        done = play(tmp_path, tmp_path / "change.json")
        assert done.returncode == 0, done.stdout[-3000:]
        yield tmp_path, bmcs
    finally:
        play(tmp_path, ROOT / "playbooks/lab_down.yml")
        for bmc in bmcs.values():
            bmc.stop()


def test_each_thing_is_tried_and_all_that_failed_is_told(changed):
    folder, bmcs = changed
    bmcs["bad"].stop()
    (folder / "vm").mkdir()
    record = folder / "vm/127.0.0.1_ha-datacenter_vm-bad.json"
    record.write_text(json.dumps({"schema": 1, "found": {"cpu_reservation_mhz": 0}, "set": {}}))

    done = play(folder, ROOT / "playbooks/restore.yml")
    told = " ".join(done.stdout.split())
    assert done.returncode == 2, done.stdout[-3000:]
    # the BMC that is gone keeps neither the virtual machine nor the other host from being tried
    left = told.split("bad was not put back: ", 1)[1]
    assert "the BMC is gone" in left
    assert "vm-bad" in left or "127.0.0.1" in left.split("the BMC is gone", 1)[1]
    assert "good was not put back" not in told
    assert {**bmcs["good"].read("current"), **bmcs["good"].read("pending")} == ATTRIBUTES
    assert record.exists()
    look = play(folder, str(_book(folder)))
    assert look.stdout.count("qlen 1000") == 2, look.stdout

    # when it is back, so is what was found, and a further restore has nothing to do
    record.unlink()
    bmcs["bad"].start()
    done = play(folder, ROOT / "playbooks/restore.yml")
    assert done.returncode == 0, done.stdout[-3000:]
    assert {**bmcs["bad"].read("current"), **bmcs["bad"].read("pending")} == ATTRIBUTES
    again = play(folder, ROOT / "playbooks/restore.yml")
    assert again.returncode == 0
    assert again.stdout.count("changed=0") == 2


def _book(folder):
    book = folder / "look.json"
    command = {"name": "Look", "ansible.builtin.command": "ip link show eth1", "register": "seen"}
    tell = {"name": "Tell", "ansible.builtin.debug": {"var": "seen.stdout"}}
    book.write_text(json.dumps([{"hosts": "all", "gather_facts": False, "tasks": [command, tell]}]))
    return book


def test_the_firmware_of_a_host_that_is_away_is_put_back(changed):
    folder, bmcs = changed
    inventory = json.loads((folder / "hosts.json").read_text())
    inventory["all"]["hosts"]["bad"]["ansible_connection"] = "ssh"
    inventory["all"]["hosts"]["bad"]["ansible_host"] = "192.0.2.1"
    inventory["all"]["hosts"]["bad"]["ansible_ssh_common_args"] = "-o ConnectTimeout=2"
    away = folder / "away"
    away.mkdir()
    (away / "hosts.json").write_text(json.dumps(inventory))
    done = play(away, ROOT / "playbooks/restore.yml")
    assert done.returncode == 2, done.stdout[-3000:]
    told = " ".join(done.stdout.split())
    assert "bad was not put back: it could not be reached" in told
    for bmc in bmcs.values():
        assert {**bmc.read("current"), **bmc.read("pending")} == ATTRIBUTES
