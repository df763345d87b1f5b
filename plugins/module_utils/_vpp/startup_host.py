# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host has for VPP, which VPP runs there, and the file of its start-up."""

from __future__ import annotations

import dataclasses
import difflib
import glob
import grp
import importlib.util
import json
import os
import re
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common import files
from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._common.paths import STATE_DIR
from ansible_collections.fastpath.bench.plugins.module_utils._vpp import cli, startup
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.startup import HostFacts, Planned, Startup

#: Where the file that was found is kept until it is put back.
KEPT_DIR = STATE_DIR + "/vpp"


@dataclasses.dataclass(frozen=True)
class Running:
    """A VPP that runs."""

    pid: int
    started: float  # epoch seconds
    memory_bytes: int
    hugepage_bytes: int
    replaced: bool = False  # its program was replaced since


def _read(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            return stream.read()
    except OSError:
        return None


def _cpus(text: str | None) -> tuple[int, ...] | None:
    text = (text or "").strip()
    return startup.parse_cpus(text, option="the kernel's list of CPUs") if text else None


def _meminfo(root: str) -> dict[str, int]:
    found = {}
    for line in (_read(os.path.join(root, "proc/meminfo")) or "").splitlines():
        match = re.match(r"(\w+):\s+(\d+) kB", line)
        if match:
            found[match[1]] = int(match[2]) * 1024
    return found


def _cgroup_folders(root: str, unit: str) -> list[str]:
    """Where the service will run, from the innermost group outwards."""
    base = os.path.join(root, "sys/fs/cgroup")
    return [os.path.join(base, f"system.slice/{unit}"), os.path.join(base, "system.slice"), base]


def allowed_cpus(root: str, unit: str, online: tuple[int, ...]) -> tuple[int, ...]:
    """The CPUs that the service may be pinned to.

    That is its cgroup's set. The affinity of this process counts only without cgroups, as a process may widen it.
    """
    for folder in _cgroup_folders(root, unit):
        found = _cpus(_read(os.path.join(folder, "cpuset.cpus.effective")))
        if found:
            return tuple(cpu for cpu in online if cpu in found)
    for line in (_read(os.path.join(root, "proc/self/status")) or "").splitlines():
        if line.startswith("Cpus_allowed_list:"):
            mine = set(_cpus(line.partition(":")[2]) or online)
            mine.update(_cpus(_read(os.path.join(root, "sys/devices/system/cpu/isolated"))) or ())
            return tuple(cpu for cpu in online if cpu in mine)
    return online


def _memory_limit(root: str, unit: str) -> int | None:
    limits = []
    for folder in _cgroup_folders(root, unit):
        text = (_read(os.path.join(folder, "memory.max")) or "").strip()
        if text.isdigit():
            limits.append(int(text))
    return min(limits, default=None)


def _hugepages(root: str) -> dict[int, tuple[int, int]]:
    pools = {}
    for folder in glob.glob(os.path.join(root, "sys/kernel/mm/hugepages/hugepages-*kB")):
        found = re.search(r"hugepages-(\d+)kB$", folder)
        counts = [(_read(os.path.join(folder, name)) or "0").strip() for name in ("nr_hugepages", "free_hugepages")]
        if found and all(count.isdigit() for count in counts):
            pools[int(found[1]) * 1024] = (int(counts[0]), int(counts[1]))
    return pools


def _numa_nodes(root: str) -> int:
    nodes = glob.glob(os.path.join(root, "sys/devices/system/node/node[0-9]*"))
    return max(1, len([node for node in nodes if (_read(os.path.join(node, "cpulist")) or "").strip()]))


def plugin_folder(program: str | None, option: str | None) -> str | None:
    """Where VPP looks for its plugins: beside its program unless told otherwise."""
    if option:
        return option
    if program is None:
        return None
    prefix = os.path.dirname(os.path.dirname(os.path.realpath(program)))
    for pattern in ("lib/*/vpp_plugins", "lib/vpp_plugins", "lib64/vpp_plugins"):
        for folder in sorted(glob.glob(os.path.join(prefix, pattern))):
            return folder
    return None


def gather(program: str | None, wish: Startup, unit: str, running: Running | None, root: str = "/") -> HostFacts:
    """What bears on a start of VPP on this host. What a running VPP holds becomes free when it is restarted."""
    online = _cpus(_read(os.path.join(root, "sys/devices/system/cpu/online"))) or tuple(range(os.cpu_count() or 1))
    meminfo = _meminfo(root)
    memory = meminfo.get("MemAvailable")
    if memory is not None and running is not None:
        memory += running.memory_bytes
    limit = _memory_limit(root, unit)
    if limit is not None:
        memory = limit if memory is None else min(memory, limit)
    pools = _hugepages(root)
    default = meminfo.get("Hugepagesize")
    if running is not None and default in pools:
        total, free = pools[default]
        pools[default] = (total, min(total, free + running.hugepage_bytes // default))
    folder = plugin_folder(program, wish.plugin_path)
    plugins = None
    if folder is not None and os.path.isdir(folder):
        plugins = frozenset(name for name in os.listdir(folder) if name.endswith(".so"))
    return HostFacts(
        online=online,
        allowed=allowed_cpus(root, unit, online),
        memory_bytes=memory,
        page_bytes=os.sysconf("SC_PAGE_SIZE"),
        default_hugepage_bytes=default,
        hugepages=pools,
        numa_nodes=_numa_nodes(root),
        plugins=plugins,
        groups=frozenset(entry.gr_name for entry in grp.getgrall()),
    )


def running_vpp(path: str) -> Running | None:
    """The VPP that was started with this file, in the PID namespace that this process is in."""
    mine = os.readlink("/proc/self/ns/pid")
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        arguments = (_read(f"/proc/{entry}/cmdline") or "").split("\0")
        if path not in arguments or "-c" not in arguments or not os.path.basename(arguments[0]).startswith("vpp"):
            continue
        try:
            if os.readlink(f"/proc/{entry}/ns/pid") != mine:
                continue
        except OSError:
            continue  # it ended meanwhile
        status = _read(f"/proc/{entry}/status") or ""
        sizes = {name: int(size) * 1024 for name, size in re.findall(r"(\w+):\s+(\d+) kB", status)}
        started = _started(int(entry))
        if started is not None:
            replaced = os.readlink(f"/proc/{entry}/exe").endswith(" (deleted)")
            return Running(int(entry), started, sizes.get("VmRSS", 0), sizes.get("HugetlbPages", 0), replaced)
    return None


def _started(pid: int) -> float | None:
    text = _read(f"/proc/{pid}/stat")
    boot = re.search(r"^btime (\d+)$", _read("/proc/stat") or "", re.M)
    if text is None or boot is None:
        return None
    fields = text[text.rfind(")") + 1 :].split()
    return int(boot[1]) + int(fields[19]) / os.sysconf("SC_CLK_TCK")


# ---------------------------------------------------------------- the file


def write(path: str, text: str) -> None:
    """Whole or not at all, and on the disk before it counts."""
    os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
    files.replace_file(path, text.encode(), mode=0o644)


def _kept_path(path: str, folder: str) -> str:
    return os.path.join(folder, os.path.basename(path) + ".found.json")


def keep(path: str, folder: str = KEPT_DIR) -> None:
    """Note the file as it was found, before the first change; a later call changes nothing."""
    kept = _kept_path(path, folder)
    if os.path.exists(kept):
        return
    write(kept, json.dumps({"path": path, "text": _read(path)}))


@dataclasses.dataclass(frozen=True)
class Result:
    """What the module answers."""

    changed: bool
    before: str
    after: str
    path: str
    program: str | None
    restart_needed: bool
    restart_reason: str | None
    findings: list[dict[str, str]]

    def as_result(self) -> dict[str, t.Any]:
        return {
            "changed": self.changed,
            "path": self.path,
            "program": self.program,
            "restart_needed": self.restart_needed,
            "restart_reason": self.restart_reason,
            "papi": _has_papi(),
            "findings": self.findings,
            "diff": {
                "before": self.before,
                "after": self.after,
                "before_header": self.path,
                "after_header": self.path,
            },
        }


def _has_papi() -> bool:
    """Whether this Python can import it. A folder without a file, as a removed package leaves it, is none."""
    spec = importlib.util.find_spec("vpp_papi")
    return spec is not None and spec.origin is not None


def _restart(running: Running | None, path: str, before: str | None, after: str, check_mode: bool) -> str | None:
    """Why VPP must be restarted for the file to count; None when it need not be.

    Told from the file's age, so that a run that was broken off between writing and restarting is made good by the next.
    """
    if running is None:
        return "VPP does not run"
    if running.replaced:
        return "another program was installed than the one that runs"
    if check_mode and before != after:
        return "startup.conf changes"
    try:
        changed = os.stat(path).st_mtime
    except OSError:
        return None
    # A process' start is known to a hundredth of a second, and the boot time to a second.
    return "startup.conf is newer than the running VPP" if changed > running.started + 1.5 else None


def ensure(
    wish: Startup,
    path: str,
    *,
    vpp_bin: str | None = None,
    unit: str = "vpp.service",
    planned: Planned | None = None,
    head: str = "",
    check_mode: bool = False,
    kept: str = KEPT_DIR,
) -> Result:
    """Judge, and write when it differs.

    :raises BenchError: VPP would not start with it; the old file is kept.
    """
    startup.check_words(wish)
    for numbers in (wish, planned or Planned()):
        startup.check_numbers(numbers)
    try:
        program: str | None = cli.find_program("vpp", option=vpp_bin)
    except BenchError:
        # In check mode the package that brings it is not installed either.
        if not check_mode:
            raise
        program = None
    running = running_vpp(path)
    facts = gather(program, wish, unit, running)
    if check_mode:
        # What makes the group would have run before, were this not check mode.
        facts = dataclasses.replace(facts, groups=None)
    judgement = startup.judge(wish, facts, planned)
    judgement.raise_problems(path)
    before = _read(path)
    after = startup.render(wish, default_hugepage_size=startup.needs_default_hugepage(wish, facts), head=head)
    changed = before != after
    if changed and not check_mode:
        keep(path, kept)
        write(path, after)
        back = _read(path)
        if back != after:
            difference = "\n".join(difflib.unified_diff(after.splitlines(), (back or "").splitlines(), lineterm=""))
            raise BenchError(f"it does not read back as written:\n{difference}", where=path, code="not_as_asked")
    reason = _restart(running, path, before, after, check_mode)
    return Result(changed, before or "", after, path, program, reason is not None, reason, judgement.findings)


def restore(path: str, *, check_mode: bool = False, kept: str = KEPT_DIR) -> Result:
    """Put back the file that was found, or take it away when there was none."""
    noted = _read(_kept_path(path, kept))
    before = _read(path)
    if noted is None:
        return Result(False, before or "", before or "", path, None, False, None, [])
    after = json.loads(noted)["text"]
    if not check_mode:
        if after is None:
            if before is not None:
                os.unlink(path)
        else:
            write(path, after)
        os.unlink(_kept_path(path, kept))
    running = running_vpp(path)
    restart = running is not None and before != after
    return Result(
        before != after, before or "", after or "", path, None, restart, "startup.conf changes" if restart else None, []
    )
