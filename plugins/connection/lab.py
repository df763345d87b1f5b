# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Connection into the hosts of the one-machine lab."""

from __future__ import annotations

DOCUMENTATION = r"""
name: lab
short_description: Reach the hosts of a fastpath lab on this machine
version_added: 0.1.0
author:
  - fastpath.bench contributors (@fastpath)
description:
  - Runs commands in a lab host that M(fastpath.bench.lab) built, as root, by entering the host's namespaces.
  - A host of kind C(vm) is reached by P(ansible.builtin.ssh#connection), with the key, the host key and the way to it
    that the lab has for it.
  - The host is found by its name and the lab's; the inventory holds no process number or other state.
  - On a controller that is not run by root, C(sudo -n) is used.
options:
  lab_name:
    description: Name of the lab.
    type: str
    default: default
    vars:
      - name: lab_name
      - name: ansible_lab_name
  remote_addr:
    description: Name of the host in the lab.
    type: str
    default: inventory_hostname
    vars:
      - name: inventory_hostname
      - name: ansible_host
      - name: ansible_lab_host
  executable:
    description: The shell that runs commands in the host.
    type: str
    default: /bin/sh
    vars:
      - name: ansible_executable
  pipelining:
    description:
      - Feed modules through standard input instead of copying them to the host first. There is nothing against it
        here, so it is on unless switched off.
    type: boolean
    default: true
    vars:
      - name: ansible_pipelining
"""

EXAMPLES = r"""
# inventories/lab/hosts.yml
all:
  vars:
    ansible_connection: fastpath.bench.lab
    ansible_python_interpreter: /usr/bin/python3
    lab_name: default
  hosts:
    client:
    dut:
    server:
"""

import contextlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import time
import typing as t

from ansible.errors import AnsibleConnectionFailure, AnsibleError, AnsibleFileNotFound
from ansible.plugins.connection import ConnectionBase
from ansible.plugins.loader import connection_loader
from ansible.utils.display import Display

from ansible_collections.fastpath.bench.plugins.module_utils._lab.machine import Process
from ansible_collections.fastpath.bench.plugins.module_utils._lab.names import LabNames

display = Display()

#: What root finds after logging in, whatever the controller's own environment is.
ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root",
    "USER": "root",
    "LOGNAME": "root",
    "SHELL": "/bin/sh",
    "LANG": "C.UTF-8",
}

#: What sudo says when it does not run the command at all.
SUDO_REFUSALS = (b"sudo: a password is required", b"not in the sudoers file", b"is not allowed to execute")

#: How long a host's first process may outlive a command that was killed with it.
DYING_S = 0.3


#: Until when a guest must have taken a connection; one in software is slow.
SSH_TIMEOUT_S = 60


class Connection(ConnectionBase):
    """Commands and files by way of nsenter, or of ssh for a virtual machine."""

    transport = "fastpath.bench.lab"
    has_pipelining = True
    has_tty = False
    default_user = "root"

    _host: str
    _lab: str
    _init: Process
    _cgroup: str
    _withheld: list[int]
    #: The connection that does the work when the host is a virtual machine.
    _ssh: ConnectionBase | None = None

    def _connect(self) -> Connection:
        if not self._connected:
            self._host = self._option("remote_addr")
            self._lab = self._option("lab_name")
            self._find()
            display.vvv(f"LAB {self._lab}: first process is {self._init.pid}", host=self._host)
            self._connected = True
        return self

    def _option(self, name: str) -> str:
        return str(self._option_raw(name))

    def _find(self) -> None:
        path = LabNames(self._lab).init_file(self._host)
        try:
            with open(path, encoding="utf-8") as source:
                record = json.load(source)
        except (FileNotFoundError, NotADirectoryError):
            raise AnsibleConnectionFailure(
                f"host {self._host} of lab {self._lab} is not up. Run the playbook fastpath.bench.lab_up."
            ) from None
        self._init = Process(record["pid"], record["start_ticks"])
        self._check_alive("has died")
        if record.get("kind") == "vm":
            self._ssh = self._make_ssh()
        else:
            self._ssh = None
            self._cgroup = record["cgroup"]
            self._withheld = record["withheld"]

    def _make_ssh(self) -> ConnectionBase:
        names = LabNames(self._lab)
        made = connection_loader.get("ansible.builtin.ssh", self._play_context)
        options: dict[str, t.Any] = {
            "host": self._host,
            "remote_user": "root",
            # The lab's own ssh knows the way, the key and the host key.
            "ssh_executable": names.ssh_script(self._host),
            "ssh_args": "-C -o ControlMaster=auto -o ControlPersist=60s",
            "ssh_transfer_method": "piped",
            "pipelining": self._option_raw("pipelining"),
            "timeout": SSH_TIMEOUT_S,
        }
        if os.geteuid() == 0:
            # The socket goes with the host.
            options["control_path_dir"] = names.host_folder(self._host)
        made.set_options(direct=options)
        if self.become is not None:
            made.set_become_plugin(self.become)
        return t.cast("ConnectionBase", made)

    def _option_raw(self, name: str) -> t.Any:
        return t.cast("t.Any", self).get_option(name)

    def _check_alive(self, how: str) -> None:
        if not self._init.alive():
            self._connected = False
            raise AnsibleConnectionFailure(
                f"host {self._host} of lab {self._lab} {how}. The playbook fastpath.bench.lab_up starts it again."
            )

    def _command(self, command: str) -> list[str]:
        enter = [
            *("nsenter", "--target", str(self._init.pid)),
            *("--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup", "--"),
            # Entering namespaces takes no right away: what the host's own root may not do (set the machine's clock,
            # load modules) is taken away here.
            *("setpriv", "--bounding-set", ",".join(f"-cap_{number}" for number in self._withheld), "--"),
            *("/usr/bin/env", "-i", *(f"{name}={value}" for name, value in ENVIRONMENT.items())),
            *(self._option("executable"), "-c", f"cd && {command}"),
        ]
        # The shell moves itself into the host's control group, so that what is started there is counted there.
        join = ["/bin/sh", "-c", 'echo 0 2>/dev/null >"$0/cgroup.procs"; exec "$@"', self._cgroup, *enter]
        if os.geteuid() == 0:
            return join
        if shutil.which("sudo") is None:
            raise AnsibleConnectionFailure("entering a lab host needs root, and sudo is not installed")
        return ["sudo", "-n", *join]

    def _run(
        self, command: str, *, stdin: t.Any = subprocess.PIPE, stdout: t.Any = subprocess.PIPE, data: bytes = b""
    ) -> tuple[int, bytes, bytes]:
        try:
            process = subprocess.Popen(
                self._command(command), stdin=stdin, stdout=stdout, stderr=subprocess.PIPE, cwd="/"
            )
        except FileNotFoundError as exc:
            raise AnsibleConnectionFailure(f"{exc.filename} is not installed") from exc
        out, err = process.communicate(data if stdin == subprocess.PIPE else None)
        if process.returncode != 0:
            self._check_failure(process.returncode, err)
        return process.returncode, out or b"", err

    def _check_failure(self, code: int, err: bytes) -> None:
        """Tell a command that failed from a host that is gone."""
        # A host that dies takes its processes along; its first process may go a moment after the command.
        deadline = time.monotonic() + DYING_S
        killed = code in (-signal.SIGKILL, 128 + signal.SIGKILL)
        while killed and self._init.alive() and time.monotonic() < deadline:
            time.sleep(0.01)
        self._check_alive("died while a command ran")
        if os.geteuid() != 0 and any(word in err for word in SUDO_REFUSALS):
            raise AnsibleConnectionFailure(f"entering a lab host needs root: {err.decode('utf-8', 'replace').strip()}")

    @contextlib.contextmanager
    def _telling_death(self) -> t.Iterator[None]:
        """Say that the host is gone rather than what ssh makes of it."""
        try:
            yield
        except AnsibleConnectionFailure:
            self._check_alive("died while a command ran")
            raise

    def exec_command(self, cmd: str, in_data: bytes | None = None, sudoable: bool = True) -> tuple[int, bytes, bytes]:
        self._connect()
        if self._ssh is not None:
            with self._telling_death():
                return self._ssh.exec_command(cmd, in_data, sudoable)
        display.vvv(f"EXEC {cmd}", host=self._host)
        return self._run(cmd, data=in_data or b"")

    def put_file(self, in_path: str, out_path: str) -> None:
        self._connect()
        if self._ssh is not None:
            with self._telling_death():
                self._ssh.put_file(in_path, out_path)
            return
        display.vvv(f"PUT {in_path} TO {out_path}", host=self._host)
        try:
            with open(in_path, "rb") as source:
                code, _out, err = self._run(f"cat > {shlex.quote(out_path)}", stdin=source)
        except FileNotFoundError as exc:
            raise t.cast("t.Any", AnsibleFileNotFound)(f"file or module does not exist: {in_path}") from exc
        if code != 0:
            raise AnsibleError(f"cannot write {out_path} in lab host {self._host}: {err.decode('utf-8', 'replace')}")

    def fetch_file(self, in_path: str, out_path: str) -> None:
        self._connect()
        if self._ssh is not None:
            with self._telling_death():
                self._ssh.fetch_file(in_path, out_path)
            return
        display.vvv(f"FETCH {in_path} TO {out_path}", host=self._host)
        with open(out_path, "wb") as target:
            code, _out, err = self._run(f"cat {shlex.quote(in_path)}", stdout=target)
        if code != 0:
            raise AnsibleError(f"cannot read {in_path} in lab host {self._host}: {err.decode('utf-8', 'replace')}")

    def reset(self) -> None:
        """Look for the host anew: it may have been started again."""
        if self._ssh is not None:
            t.cast("t.Any", self._ssh).reset()
        self.close()
        self._connect()

    def set_become_plugin(self, plugin: t.Any) -> None:
        super().set_become_plugin(plugin)
        if self._ssh is not None:
            self._ssh.set_become_plugin(plugin)

    def close(self) -> None:
        if self._ssh is not None:
            self._ssh.close()
        self._connected = False
