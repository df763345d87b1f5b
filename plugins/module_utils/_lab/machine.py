# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the lab needs from the machine it runs on: tools, mounts, control groups, processes."""

from __future__ import annotations

import dataclasses
import os
import re
import signal
import time
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common import command
from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError

#: tool -> what it comes with; the role ``lab`` has the package names by distribution.
TOOLS = {
    "systemd-nspawn": "systemd-container",
    "ip": "iproute2",
    "ethtool": "ethtool",
    "nsenter": "util-linux",
    "setpriv": "util-linux",
    "unshare": "util-linux",
}


class LabError(BenchError):
    """The lab cannot be brought into the state asked for."""


def run(argv: t.Sequence[str], *, stdin: str | None = None, check: bool = True) -> command.Result:
    """Run a tool; a failure says what was run and what it printed."""
    try:
        done = command.run(argv, limit_s=60, stdin=stdin)
        return done.check() if check else done.ended()
    except command.CommandError as error:
        raise LabError(error.what, remedy=error.remedy, code=error.code) from error


def has_tool(name: str) -> bool:
    return command.find_program(name) is not None


def preflight() -> None:
    """Refuse early, with one line, what cannot work later."""
    if os.geteuid() != 0:
        raise LabError(
            "a lab needs root: it makes namespaces and mounts", remedy="Run it with sudo or become", code="not_root"
        )
    missing = [tool for tool in TOOLS if not has_tool(tool)]
    if missing:
        packages = sorted({TOOLS[tool] for tool in missing})
        raise LabError(
            f"not installed: {', '.join(missing)}",
            remedy=f"Install {', '.join(packages)}, or use the role lab, which does",
            code="tool_absent",
        )
    if not {CAP_SYS_ADMIN, CAP_NET_ADMIN} <= capabilities("CapEff"):
        raise LabError(
            "root without CAP_SYS_ADMIN and CAP_NET_ADMIN cannot make a lab",
            remedy="Run it outside the container, or in a privileged one",
            code="no_capability",
        )


CAP_NET_ADMIN = 12
CAP_SYS_ADMIN = 21


def capabilities(kind: str, pid: int | str = "self") -> set[int]:
    """A process's capability set, ``CapEff`` or ``CapBnd``, as numbers."""
    with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as status:
        for line in status:
            if line.startswith(kind + ":"):
                bits = int(line.split()[1], 16)
                return {number for number in range(64) if bits >> number & 1}
    return set()


def withheld_capabilities(pid: int) -> list[int]:
    """The capabilities that nothing started by this process can have."""
    with open("/proc/sys/kernel/cap_last_cap", encoding="ascii") as source:
        last = int(source.read())
    return sorted(set(range(last + 1)) - capabilities("CapBnd", pid))


# -- mounts ------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Mount:
    root: str
    target: str
    fstype: str


def parse_mountinfo(text: str) -> list[Mount]:
    """The mounts in /proc/self/mountinfo, in the order in which they were made."""
    mounts = []
    for line in text.splitlines():
        left, right = line.split(" - ", 1)
        fields = left.split()
        mounts.append(Mount(_unescape(fields[3]), _unescape(fields[4]), right.split()[0]))
    return mounts


def _unescape(text: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match.group(1), 8)), text)


def mounts() -> list[Mount]:
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as source:
        return parse_mountinfo(source.read())


def is_mounted(path: str) -> bool:
    return any(mount.target == path for mount in mounts())


def unmount(path: str) -> None:
    """Take away all that is mounted at ``path``. A mount in use is detached."""
    while is_mounted(path):
        if run(["umount", path], check=False).rc != 0:
            run(["umount", "--lazy", path])


# -- control groups ----------------------------------------------------------------------------------------


def under_systemd() -> bool:
    """Whether systemd runs this machine (what sd_booted(3) looks at)."""
    return os.path.isdir("/run/systemd/system")


def cgroup_root(found: t.Iterable[Mount]) -> str:
    """Where the cgroup2 hierarchy is mounted: /sys/fs/cgroup, or .../unified on a hybrid machine."""
    for mount in found:
        if mount.fstype == "cgroup2":
            return mount.target
    raise LabError(
        "no cgroup2 hierarchy is mounted, so a lab host's processes cannot be kept together",
        remedy="Mount one: mkdir /run/cgroup2 && mount -t cgroup2 none /run/cgroup2",
        code="no_cgroup2",
    )


def cgroup_v1_roots(found: t.Iterable[Mount]) -> list[str]:
    return [mount.target for mount in found if mount.fstype == "cgroup"]


def cgroup_processes(path: str) -> list[int]:
    """The processes in a control group and in those below it."""
    pids: list[int] = []
    for folder, _folders, _files in os.walk(path):
        try:
            with open(f"{folder}/cgroup.procs", encoding="ascii") as procs:
                pids += [int(line) for line in procs]
        except OSError:
            continue  # the group went away, or is a threaded one whose processes its parent lists
    return pids


def kill_processes(path: str) -> None:
    """Kill all processes in a control group at once; new ones cannot escape. Nothing to do when there is none."""
    kill = f"{path}/cgroup.kill"
    if os.path.isdir(path) and not os.path.exists(kill):
        raise LabError("this kernel has no cgroup.kill", remedy="Linux 5.14 or newer is needed", code="old_kernel")
    try:
        with open(kill, "w", encoding="ascii") as target:
            target.write("1")
    except FileNotFoundError:
        return


def kill_cgroup(path: str, timeout_s: float = 20.0) -> None:
    """Kill all processes in a control group, and remove it."""
    kill_processes(path)
    if not os.path.isdir(path):
        return
    deadline = time.monotonic() + timeout_s
    while True:
        if _remove_cgroup(path):
            return
        if time.monotonic() > deadline:
            raise LabError(
                f"processes {cgroup_processes(path)} do not die",
                where=path,
                remedy="They hang in the kernel; see their /proc/<pid>/stack",
                code="unkillable",
            )
        time.sleep(0.01)


def _remove_cgroup(path: str) -> bool:
    for folder, _folders, _files in os.walk(path, topdown=False):
        try:
            os.rmdir(folder)
        except FileNotFoundError:
            continue
        except OSError:
            return False
    return True


# -- processes ---------------------------------------------------------------------------------------------


#: The kernel's flag of a process that has begun to end. Number 1 of a PID namespace shows it while it takes the
#: others along.
PF_EXITING = 0x4


@dataclasses.dataclass(frozen=True)
class Process:
    """A process that cannot be mistaken for a later one with the same number."""

    pid: int
    start_ticks: int

    def alive(self) -> bool:
        return process(self.pid) == self


def process(pid: int) -> Process | None:
    """The live process with this number; None when it is gone or going."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stat:
            text = stat.read()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The command's name is in parentheses and may hold anything.
    fields = text.rpartition(")")[2].split()
    gone = fields[0] in "ZX" or int(fields[6]) & PF_EXITING
    return None if gone else Process(pid, int(fields[19]))


def command_name(pid: int) -> str:
    """A process's name; nothing when it is gone."""
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as comm:
            return comm.read().strip()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def is_init(pid: int) -> bool:
    """Whether a process is number 1 of a PID namespace below this one."""
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as status:
            for line in status:
                if line.startswith("NSpid:"):
                    numbers = line.split()[1:]
                    return len(numbers) > 1 and numbers[-1] == "1"
    except (FileNotFoundError, ProcessLookupError):
        return False
    return False


def same_file(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False


def kill_in_netns(netns_file: str) -> None:
    """Kill what still runs in a network namespace: it would keep the namespace and its cables alive."""
    own = os.getpid()
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) != own and same_file(f"/proc/{entry}/ns/net", netns_file):
            try:
                os.kill(int(entry), signal.SIGKILL)
            except ProcessLookupError:
                continue
