# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Start and stop the hosts of a lab: systemd-nspawn machines in namespaces of their own."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import subprocess
import time
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common import command, files
from ansible_collections.fastpath.bench.plugins.module_utils._common.paths import LAB_DIR
from ansible_collections.fastpath.bench.plugins.module_utils._lab import disk, machine
from ansible_collections.fastpath.bench.plugins.module_utils._lab.machine import LabError, Process
from ansible_collections.fastpath.bench.plugins.module_utils._lab.names import SLICE, LabNames

BOOT_TIMEOUT_S = 90.0
POLL_S = 0.02

#: Beyond what systemd-nspawn grants by itself: what network daemons, VPP and tracing need. Kept from a host is what
#: reaches the machine itself: the clock, kernel modules, raw I/O, device nodes.
GRANTED = ("CAP_NET_ADMIN", "CAP_IPC_LOCK", "CAP_BPF", "CAP_PERFMON", "CAP_SYSLOG")
WITHHELD = ("CAP_MKNOD",)
#: systemd-nspawn keeps it from a host also when CAP_BPF is granted; AF_XDP needs it.
SYSTEM_CALLS = ("bpf",)
DEVICES = ("/dev/vhost-net",)


class Site(t.NamedTuple):
    """What the machine is like; read once for each call."""

    mounts: list[machine.Mount]
    cgroup_root: str
    under_systemd: bool


def survey() -> Site:
    mounts = machine.mounts()
    return Site(mounts, machine.cgroup_root(mounts), machine.under_systemd())


def cgroup(names: LabNames, host: str, site: Site) -> str:
    return f"{site.cgroup_root}/{names.cgroup(host, under_systemd=site.under_systemd)}"


def find_init(names: LabNames, host: str, site: Site) -> Process | None:
    """The first process of a host, looked for among those of its control group."""
    for pid in machine.cgroup_processes(cgroup(names, host, site) + "/payload"):
        if machine.is_init(pid):
            return machine.process(pid)
    return None


def is_ready(init: Process) -> bool:
    return os.path.exists(f"/proc/{init.pid}/root{disk.READY_PATH}") and init.alive()


def nspawn_command(names: LabNames, host: str, root: str) -> list[str]:
    return [
        "systemd-nspawn",
        "--quiet",
        "--register=no",
        "--keep-unit",
        "--settings=no",
        f"--directory={root}",
        f"--machine={names.machine(host)}",
        f"--hostname={host}",
        f"--network-namespace-path={names.netns_file(host)}",
        "--resolv-conf=off",
        "--timezone=off",
        "--link-journal=no",
        "--console=read-only",
        "--kill-signal=SIGRTMIN+3",
        f"--capability={','.join(GRANTED)}",
        f"--drop-capability={','.join(WITHHELD)}",
        f"--system-call-filter={' '.join(SYSTEM_CALLS)}",
        *(f"--bind={device}" for device in DEVICES if os.path.exists(device)),
        disk.INIT_PATH,
    ]


def script_head(names: LabNames, host: str, site: Site) -> list[str]:
    """How each script begins that becomes a host."""
    quote = shlex.quote
    lines = [
        "#!/bin/sh",
        f"# Starts host {host} of lab {names.lab}; written anew at each start.",
        "set -eu",
        f"exec </dev/null >>{quote(names.console_log(host))} 2>&1",
    ]
    if not site.under_systemd:
        # First of all: whatever comes later can be found and killed by the control group.
        lines.append(f"echo $$ >{quote(cgroup(names, host, site))}/cgroup.procs")
        lines += [f"echo $$ >{quote(top)}/cgroup.procs || :" for top in machine.cgroup_v1_roots(site.mounts)]
    return lines


def start_script(names: LabNames, host: str, site: Site, layers: t.Sequence[str]) -> str:
    """What runs in a mount namespace of its own, so that a host's mounts end with its last process."""
    folder = names.host_folder(host)
    root = f"{folder}/root"
    quote = shlex.quote
    lines = script_head(names, host, site)
    if site.cgroup_root != "/sys/fs/cgroup":
        lines += ["umount --recursive /sys/fs/cgroup", "mount -t cgroup2 cgroup2 /sys/fs/cgroup"]
    lines += [
        "# Copies of other labs' mounts would keep them alive after their removal.",
        f"for other in {quote(LAB_DIR)}/*/; do",
        f'    [ "$other" = {quote(names.folder + "/")} ] || umount --lazy "$other" 2>/dev/null || :',
        "done",
        "# systemd-nspawn leaves lock files and folders here.",
        "mkdir -p /run/systemd",
        "mount -t tmpfs -o mode=0755 tmpfs /run/systemd",
    ]
    for layer in layers:
        base = disk.layer_folder(f"{folder}/disk", layer)
        options = f"lowerdir={layer},upperdir={base}/upper,workdir={base}/work"
        target = root if layer == "/" else root + layer
        lines.append(f"mount -t overlay -o {quote(options)} overlay {quote(target)}")
    lines += [
        "export SYSTEMD_NSPAWN_API_VFS_WRITABLE=network",
        f"exec {shlex.join(nspawn_command(names, host, root))}",
    ]
    return "\n".join(lines) + "\n"


def start(names: LabNames, host: str, site: Site) -> subprocess.Popen[bytes] | None:
    """Set a host going; its disk is kept when it has one. Its network namespace exists already."""
    folder = names.host_folder(host)
    os.makedirs(f"{folder}/root", exist_ok=True)
    layers = disk.prepare(f"{folder}/disk", host, site.mounts)
    with open(names.console_log(host), "w", encoding="utf-8"):
        pass  # of the last boot only
    script = start_script(names, host, site, layers)
    return set_going(names, host, site, script, prefix=("unshare", "--mount", "--propagation", "slave", "--"))


def set_going(
    names: LabNames, host: str, site: Site, script: str, *, prefix: t.Sequence[str] = ()
) -> subprocess.Popen[bytes] | None:
    """Run a host's script in its control group; it outlives this call. Returns nothing where systemd looks after it."""
    path = names.start_script(host)
    with open(path, "w", encoding="utf-8") as target:
        target.write(script)
    argv = [*prefix, "/bin/sh", path]
    if site.under_systemd:
        machine.run(
            [
                "systemd-run",
                "--quiet",
                "--collect",
                f"--unit={names.unit(host)}",
                f"--slice={SLICE}",
                f"--description=Host {host} of lab {names.lab}",
                "--property=Delegate=yes",
                "--property=KillMode=mixed",
                "--property=TimeoutStopSec=5",
                "--property=TasksMax=infinity",
                # To be killed is how a host is stopped: no failure in the machine's journal.
                "--property=SuccessExitStatus=SIGKILL",
                "--",
                *argv,
            ]
        )
        return None
    os.makedirs(cgroup(names, host, site), exist_ok=True)
    return command.spawn(argv)


def wait_ready(
    names: LabNames, hosts: t.Mapping[str, subprocess.Popen[bytes] | None], site: Site
) -> dict[str, Process]:
    """Wait until each host's target is reached. The error quotes the console of the first that does not get there."""
    ready: dict[str, Process] = {}
    deadline = time.monotonic() + BOOT_TIMEOUT_S
    while len(ready) < len(hosts):
        for host, starter in hosts.items():
            if host in ready:
                continue
            init = find_init(names, host, site)
            if init is not None and is_ready(init):
                _write_init_file(names, host, init, site)
                ready[host] = init
            elif starter is not None and starter.poll() is not None:
                raise failed(names, host, f"ended with {starter.returncode} while it started")
            elif time.monotonic() > deadline:
                raise failed(names, host, f"is not up after {BOOT_TIMEOUT_S:.0f} s")
        if len(ready) < len(hosts):
            time.sleep(POLL_S)
    return ready


def failed(names: LabNames, host: str, how: str) -> LabError:
    try:
        with open(names.console_log(host), encoding="utf-8", errors="replace") as log:
            tail = log.read()[-2000:].strip()
    except FileNotFoundError:
        tail = ""
    return LabError(
        f"host {host} {how}. Its console: {tail or '(nothing)'}", where=f"lab {names.lab}", code="host_not_up"
    )


def _write_init_file(names: LabNames, host: str, init: Process, site: Site) -> None:
    """Leave for the connection plugin where the host is."""
    # A leaf beside systemd's own groups, for what is run in the host from outside.
    leaf = f"{cgroup(names, host, site)}/payload/fastpath-exec"
    os.makedirs(leaf, exist_ok=True)
    record = {
        "pid": init.pid,
        "start_ticks": init.start_ticks,
        "cgroup": leaf,
        "withheld": machine.withheld_capabilities(init.pid),
    }
    write_init_record(names, host, record)


def write_init_record(names: LabNames, host: str, record: t.Mapping[str, t.Any]) -> None:
    files.replace_file(names.init_file(host), json.dumps(record).encode(), durable=False)


def stop(names: LabNames, host: str, site: Site) -> None:
    """Kill all of a host's processes; its mounts go with them."""
    group = cgroup(names, host, site)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(names.init_file(host))
    if site.under_systemd:
        # Killed at once, as when the power goes; then systemd clears its own record.
        machine.kill_processes(group)
        machine.run(["systemctl", "stop", names.unit(host)], check=False)
        machine.run(["systemctl", "reset-failed", names.unit(host)], check=False)
    machine.kill_cgroup(group)
