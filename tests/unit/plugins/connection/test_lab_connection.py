# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import os
import pathlib
import subprocess
import threading
import typing as t

import pytest
from ansible.errors import AnsibleConnectionFailure
from ansible.playbook.play_context import PlayContext
from ansible.plugins.loader import connection_loader

from ansible_collections.fastpath.bench.plugins.connection import lab as plugin
from ansible_collections.fastpath.bench.plugins.module_utils._lab import machine, names


@pytest.fixture
def connection(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> t.Iterator[plugin.Connection]:
    """A connection to host h of lab x, whose first process is a sleeping child."""
    monkeypatch.setattr(names, "LAB_DIR", str(tmp_path))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    child = subprocess.Popen(["sleep", "60"])
    seen = machine.process(child.pid)
    assert seen is not None
    (tmp_path / "x" / "h").mkdir(parents=True)
    record = {"pid": seen.pid, "start_ticks": seen.start_ticks, "cgroup": "/no/cgroup", "withheld": [16, 25]}
    (tmp_path / "x" / "h" / "init").write_text(json.dumps(record))
    made = connection_loader.get("fastpath.bench.lab", PlayContext())
    made.set_options(var_options={"inventory_hostname": "h", "lab_name": "x"})
    yield made
    child.kill()
    child.wait()


def test_options() -> None:
    made = connection_loader.get("fastpath.bench.lab", PlayContext())
    made.set_options(var_options={"inventory_hostname": "dut"})
    assert made.get_option("lab_name") == "default"
    assert made.get_option("remote_addr") == "dut"
    assert made.is_pipelining_enabled()
    made.set_options(var_options={"inventory_hostname": "dut", "ansible_lab_host": "other"})
    assert made.get_option("remote_addr") == "other"


def test_the_command_enters_all_namespaces_without_the_rights_withheld(connection: plugin.Connection) -> None:
    connection._connect()
    command = connection._command("id -u")
    pid = str(connection._init.pid)
    assert command[:4] == ["/bin/sh", "-c", 'echo 0 2>/dev/null >"$0/cgroup.procs"; exec "$@"', "/no/cgroup"]
    assert command[4:] == [
        *("nsenter", "--target", pid, "--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup", "--"),
        *("setpriv", "--bounding-set", "-cap_16,-cap_25", "--"),
        *("/usr/bin/env", "-i", *(f"{name}={value}" for name, value in plugin.ENVIRONMENT.items())),
        *("/bin/sh", "-c", "cd && id -u"),
    ]


def test_another_user_goes_by_sudo(connection: plugin.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    connection._connect()
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(plugin.shutil, "which", lambda tool: "/usr/bin/sudo")
    assert connection._command("true")[:4] == ["sudo", "-n", "/bin/sh", "-c"]
    with pytest.raises(AnsibleConnectionFailure, match="needs root: sudo: a password is required"):
        connection._check_failure(1, b"sudo: a password is required\n")
    connection._check_failure(1, b"sudo: unable to resolve host here\nno such file")
    monkeypatch.setattr(plugin.shutil, "which", lambda tool: None)
    with pytest.raises(AnsibleConnectionFailure, match="sudo is not installed"):
        connection._command("true")


def test_a_host_that_is_not_up(connection: plugin.Connection, tmp_path: pathlib.Path) -> None:
    (tmp_path / "x" / "h" / "init").unlink()
    with pytest.raises(AnsibleConnectionFailure, match="host h of lab x is not up"):
        connection._connect()


def test_a_host_that_died(connection: plugin.Connection) -> None:
    connection._connect()
    os.kill(connection._init.pid, 9)
    os.waitid(os.P_PID, connection._init.pid, os.WEXITED | os.WNOWAIT)
    with pytest.raises(AnsibleConnectionFailure, match="died while a command ran"):
        connection._check_failure(-9, b"")
    assert not connection.connected
    with pytest.raises(AnsibleConnectionFailure, match="has died"):
        connection.reset()


@pytest.mark.parametrize("code", [-9, 137])
def test_a_host_may_die_a_moment_after_its_command(connection: plugin.Connection, code: int) -> None:
    connection._connect()
    killer = threading.Timer(0.05, os.kill, (connection._init.pid, 9))
    killer.start()
    with pytest.raises(AnsibleConnectionFailure, match="died while a command ran"):
        connection._check_failure(code, b"")
    killer.join()


def test_a_number_taken_by_a_later_process_is_not_the_host(
    connection: plugin.Connection, tmp_path: pathlib.Path
) -> None:
    path = tmp_path / "x" / "h" / "init"
    record = json.loads(path.read_text())
    path.write_text(json.dumps({**record, "start_ticks": record["start_ticks"] - 1}))
    with pytest.raises(AnsibleConnectionFailure, match="has died"):
        connection._connect()


def test_a_command_that_fails_is_just_that(connection: plugin.Connection) -> None:
    connection._connect()
    connection._check_failure(1, b"sudo: not ours when run by root")
    connection._check_failure(-9, b"")  # killed, by whom ever; the host lives
    assert connection.connected


# -- a virtual machine -------------------------------------------------------------------------------------


@pytest.fixture
def guest(connection: plugin.Connection, tmp_path: pathlib.Path) -> plugin.Connection:
    """The same host, as a virtual machine. Its ssh prints its arguments, and what it reads."""
    path = tmp_path / "x" / "h" / "init"
    record = json.loads(path.read_text())
    path.write_text(json.dumps({"kind": "vm", "pid": record["pid"], "start_ticks": record["start_ticks"]}))
    ssh = tmp_path / "x" / "h" / "ssh"
    ssh.write_text('#!/bin/sh\necho "$@"; [ -t 0 ] || cat; [ ! -e "$0.fails" ] || exit 255\n')
    ssh.chmod(0o755)
    return connection


def test_a_virtual_machine_is_reached_by_the_labs_own_ssh(guest: plugin.Connection, tmp_path: pathlib.Path) -> None:
    code, out, _err = guest.exec_command("id -u", in_data=b"a module")
    assert code == 0
    words = out.decode()
    assert "ControlMaster=auto" in words
    assert f'ControlPath="{tmp_path}/x/h/' in words
    assert words.endswith("h id -u\na module")
    source = tmp_path / "source"
    source.write_text("content")
    guest.put_file(str(source), "/root/target")  # by the same ssh: no scp, no sftp that would not know the way


def test_a_virtual_machine_that_died_under_ssh(guest: plugin.Connection, tmp_path: pathlib.Path) -> None:
    guest._connect()
    (tmp_path / "x" / "h" / "ssh.fails").touch()
    with pytest.raises(AnsibleConnectionFailure, match="Failed to connect to the host via ssh"):
        guest.exec_command("true")
    os.kill(guest._init.pid, 9)
    os.waitid(os.P_PID, guest._init.pid, os.WEXITED | os.WNOWAIT)
    with pytest.raises(AnsibleConnectionFailure, match="host h of lab x died while a command ran"):
        guest.exec_command("true")
