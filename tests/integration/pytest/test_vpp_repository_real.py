# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role vpp with ``vpp_install: repo``: a real apt, a signed repository over HTTP, and a VPP that runs from it."""

from __future__ import annotations

import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import typing as t

import pytest

from ansible_collections.fastpath.bench.tests.support.deb_repository import Repository, missing
from ansible_collections.fastpath.bench.tests.support.vpp_process import find_vpp, why_not

ROOT = pathlib.Path(__file__).resolve().parents[3]
BIN = pathlib.Path(sys.executable).parent
PLAYBOOK = "tests/integration/playbooks/vpp_repository.yml"
URL = "http://127.0.0.1:8099"
LEFT = "/etc/apt/sources.list.d/fdio.sources /etc/apt/keyrings/fdio.asc /etc/apt/preferences.d/fastpath-vpp"

pytestmark = [
    pytest.mark.vpp,
    pytest.mark.lab,
    pytest.mark.slow,
    pytest.mark.skipif(
        os.geteuid() != 0 or shutil.which("systemd-nspawn") is None, reason="needs root and systemd-nspawn"
    ),
]


class Host:
    def __init__(self) -> None:
        self.lab = f"repo{os.getpid()}"
        self.environment = {
            **os.environ,
            "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
            "PATH": f"{BIN}:{os.environ['PATH']}",
            "ANSIBLE_NOCOLOR": "1",
        }

    def run(self, *command: str, timeout: int = 400) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(BIN / command[0]), *command[1:]],
            cwd=ROOT,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    def play(self, playbook: str, *arguments: str, **variables: t.Any) -> subprocess.CompletedProcess[str]:
        extra = json.dumps({"lab_name": self.lab, **variables})
        return self.run("ansible-playbook", playbook, "-e", extra, *arguments)

    def changed(self, step: str, *arguments: str, **variables: t.Any) -> int:
        done = self.play(PLAYBOOK, *arguments, test_step=step, **variables)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
        return int(re.findall(r"^dut\s.*changed=(\d+)", done.stdout, re.M)[-1])

    def ad_hoc(self, module: str, arguments: str) -> str:
        extra = json.dumps({"lab_name": self.lab})
        done = self.run("ansible", "dut", "-e", extra, "-m", f"ansible.builtin.{module}", "-a", arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def shell(self, command: str) -> str:
        return self.ad_hoc("shell", f"{command}; true").split(">>\n", 1)[1]


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> t.Iterator[Host]:
    program = find_vpp()
    reason = why_not(papi=False) or missing()
    if reason is not None or program is None:
        pytest.skip(reason or "no vpp")
    if platform.freedesktop_os_release().get("ID") not in ("debian", "ubuntu"):
        pytest.skip("this distribution has no apt")
    wheels = sorted((pathlib.Path(program).resolve().parents[1] / "share" / "wheels").glob("vpp_papi-*.whl"))
    if not wheels:
        pytest.skip("no wheel of vpp_papi beside this VPP")
    suite = platform.freedesktop_os_release()["VERSION_CODENAME"]
    repository = Repository(tmp_path_factory.mktemp("fdio"), suite)
    host = Host()
    try:
        for version in ("26.06-release", "26.10-release"):
            repository.add_vpp(version, pathlib.Path(program), wheels[-1])
        repository.publish()
        built = host.play("playbooks/lab_up.yml")
        assert built.returncode == 0, built.stdout[-2000:]
        host.ad_hoc("copy", f"src={repository.www}/ dest=/srv/fdio/")
        # the host has no way out: only this repository may be read
        host.shell(
            "mkdir /root/sources; mv /etc/apt/sources.list /etc/apt/sources.list.d/* /root/sources/ 2>/dev/null;"
            # apt asks for no address of a family that the host has none of, its own aside
            "ip link set eth1 up; ip addr add 198.51.100.1/24 dev eth1;"
            "systemd-run --quiet python3 -m http.server 8099 --bind 127.0.0.1 --directory /srv/fdio; sleep 1"
        )
        yield host
    finally:
        repository.stop()
        host.play("playbooks/lab_down.yml")


FROM_HERE: dict[str, t.Any] = {"vpp_repository_url": f"{URL}/", "vpp_repository_key_url": f"{URL}/key.asc"}


def test_a_repository_that_somebody_else_signed_is_refused(host: Host) -> None:
    wrong = {**FROM_HERE, "vpp_repository_key_url": f"{URL}/other.asc"}
    done = host.play(PLAYBOOK, test_step="apply", **wrong)
    assert done.returncode != 0
    assert "NO_PUBKEY" in done.stdout + done.stderr or "not signed" in done.stdout + done.stderr, done.stdout[-3000:]
    assert host.shell("dpkg -l vpp 2>/dev/null | grep ^ii").strip() == ""
    host.changed("remove", **wrong)
    assert host.shell(f"ls {LEFT} 2>/dev/null").strip() == ""


def test_check_mode_on_a_new_host_changes_nothing(host: Host) -> None:
    assert host.changed("apply", "--check", **FROM_HERE) > 0
    assert host.shell(f"ls {LEFT} /usr/bin/vpp 2>/dev/null").strip() == ""


def test_from_a_repository_to_a_vpp_that_runs_and_back(host: Host) -> None:
    pinned = {**FROM_HERE, "vpp_version": "26.06"}
    assert host.changed("apply", **pinned) > 0
    assert host.changed("apply", **pinned) == 0
    assert host.shell("dpkg-query -W -f '${Version}' vpp").strip() == "26.06-release"
    assert "vpp v" in host.shell("/usr/bin/vppctl show version")
    assert host.shell("systemctl is-active vpp").strip() == "active"
    # the unit is the package's, the pin holds against the newer version, and the package touched no sysctl
    assert host.shell("ls /etc/systemd/system/vpp.service 2>/dev/null").strip() == ""
    assert "Inst vpp " not in host.shell("apt-get -s -o Debug::NoLocking=1 dist-upgrade")
    assert host.shell("ls /run/fastpath-test-sysctl-applied 2>/dev/null").strip() == ""

    assert host.changed("remove", **pinned) > 0
    assert host.shell(f"ls {LEFT} /usr/bin/vpp 2>/dev/null").strip() == ""
    assert host.shell("dpkg -l vpp 2>/dev/null | grep ^ii").strip() == ""
    assert host.changed("remove", **pinned) == 0


def test_a_version_that_is_not_there_is_named(host: Host) -> None:
    done = host.play(PLAYBOOK, test_step="apply", **FROM_HERE, vpp_version="99.99")
    assert done.returncode != 0
    assert "99.99" in done.stdout + done.stderr
    host.changed("remove", **FROM_HERE)


def test_the_newest_is_taken_without_a_pin(host: Host) -> None:
    done = host.play(PLAYBOOK, test_step="apply", **FROM_HERE)
    assert done.returncode == 0, done.stdout[-3000:]
    assert host.shell("dpkg-query -W -f '${Version}' vpp").strip() == "26.10-release"
    host.changed("remove", **FROM_HERE)
