# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The roles vpp_nat44 and kernel_nat on a lab host: from nothing to removal, and what the server sees."""

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

from ansible_collections.fastpath.bench.tests.support.vpp_process import find_vpp

ROOT = pathlib.Path(__file__).resolve().parents[3]
BIN = pathlib.Path(sys.executable).parent
PLAYBOOK = "tests/integration/playbooks/nat.yml"

pytestmark = [
    pytest.mark.lab,
    pytest.mark.slow,
    pytest.mark.skipif(
        os.geteuid() != 0 or shutil.which("systemd-nspawn") is None, reason="needs root and systemd-nspawn"
    ),
]


class Lab:
    def __init__(self) -> None:
        self.name = f"nat{os.getpid()}"
        self.environment = {
            **os.environ,
            "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
            "PATH": f"{BIN}:{os.environ['PATH']}",
            "ANSIBLE_NOCOLOR": "1",
        }

    def command(self, *words: str, **variables: t.Any) -> subprocess.CompletedProcess[str]:
        extra = json.dumps({"lab_name": self.name, **variables})
        return subprocess.run(
            [str(BIN / words[0]), *words[1:], "-e", extra],
            cwd=ROOT,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    def changed(self, role: str, step: str) -> int:
        """How many tasks changed something on the router; fails when one failed."""
        done = self.command("ansible-playbook", PLAYBOOK, test_role=role, test_step=step)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
        return int(re.findall(r"^dut\s.*changed=(\d+)", done.stdout, re.M)[-1])

    def shell(self, host: str, command: str) -> str:
        done = self.command("ansible", host, "-m", "ansible.builtin.shell", "-a", f"{command}; true")
        assert done.returncode == 0, done.stdout
        return done.stdout.split(">>\n", 1)[1]

    def seen_as(self) -> str:
        """The address that the server sees the client by, over TCP."""
        serve = (
            "import socket; s = socket.create_server(('10.73.2.1', 5001)); c, peer = s.accept();"
            "c.sendall(peer[0].encode()); c.close()"
        )
        self.shell("server", f'systemd-run --quiet --collect python3 -c "{serve}"; sleep 1')
        fetch = "import socket; print(socket.create_connection(('10.73.2.1', 5001), timeout=20).recv(99).decode())"
        return self.shell("client", f'python3 -c "{fetch}"').strip()


@pytest.fixture(scope="module")
def lab() -> t.Iterator[Lab]:
    lab = Lab()
    built = lab.command("ansible-playbook", "playbooks/lab_up.yml")
    try:
        assert built.returncode == 0, built.stdout[-2000:]
        yield lab
    finally:
        lab.command("ansible-playbook", "playbooks/lab_down.yml")


def test_the_kernel_translates_and_is_put_back(lab: Lab) -> None:
    assert lab.changed("kernel_nat", "apply") > 0
    assert lab.changed("kernel_nat", "apply") == 0
    assert lab.seen_as() == "10.73.2.254"
    assert lab.changed("kernel_nat", "reset") > 0
    assert lab.changed("kernel_nat", "remove") > 0
    assert "fastpath_bench_nat" not in lab.shell("dut", "nft list ruleset")
    assert lab.changed("kernel_nat", "remove") == 0


@pytest.mark.vpp
@pytest.mark.skipif(find_vpp() is None, reason="no vpp")
def test_vpp_translates_also_after_a_restart(lab: Lab) -> None:
    assert lab.changed("vpp_nat44", "apply") > 0
    assert lab.changed("vpp_nat44", "apply") == 0
    assert lab.seen_as() == "10.73.2.254"
    assert lab.changed("vpp_nat44", "reset") > 0
    lab.shell("dut", "systemctl restart vpp; sleep 5")
    assert lab.changed("vpp_nat44", "verify") == 0
    assert lab.seen_as() == "10.73.2.254"
    assert lab.changed("vpp_nat44", "apply") == 0
    assert lab.changed("vpp_nat44", "remove") > 0
    assert lab.changed("vpp_nat44", "remove") == 0
