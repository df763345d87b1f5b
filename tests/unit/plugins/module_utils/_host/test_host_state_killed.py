# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Real processes, killed with SIGKILL at each point of a change and of a restore, on a tree of files.

64 queues and their interrupts on a machine of 256 CPUs.
"""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import os
import pathlib
import signal
import tempfile
import typing as t

import pytest

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._host import settings
from ansible_collections.fastpath.bench.plugins.module_utils._host.access import Access
from ansible_collections.fastpath.bench.plugins.module_utils._host.journal import Journal, Surroundings
from ansible_collections.fastpath.bench.plugins.module_utils._host.knob import make
from ansible_collections.fastpath.bench.plugins.module_utils._host.reconcile import Wish, reconcile
from ansible_collections.fastpath.bench.plugins.module_utils._host.restore import restore

HERE = Surroundings("boot-1", "cookie:1")
QUEUES = 64
_LIMIT_S = 60.0
#: The points of a journal where it stops, and those of single settings by how many were written.
SLOW = pytest.mark.slow
APPLY = [
    *("before_rename", "recorded", "written 65", "settled"),
    *(pytest.param(point, marks=SLOW) for point in ("written 1", "written 64", "written 130")),
]
RESTORE = [
    *("restore_begun", "put 100"),
    *(pytest.param(point, marks=SLOW) for point in ("before_rename", "put 1", "put 130", "restore_finished")),
]


class Tree(Access):
    """A tree of files that takes a value as the kernel does: as a whole, and either old or new."""

    def __init__(self, root: pathlib.Path, hook: t.Callable[[str], None] | None = None) -> None:
        super().__init__(proc=str(root / "proc"), sys=str(root / "sys"))
        self.hook = hook
        self.puts = 0

    def links(self) -> dict[str, dict[str, t.Any]]:
        return {"eth1": {"ifindex": 2}}

    def write_file(self, path: str, text: str) -> None:
        if path.endswith("rps_cpus"):
            groups = text.split(",")
            text = ",".join(["00000000"] * (8 - len(groups)) + groups)  # the kernel pads to its number of CPUs
        fresh = pathlib.Path(path + ".new")
        fresh.write_text(text + "\n", encoding="ascii")
        fresh.rename(path)
        self.puts += 1
        if self.hook:
            self.hook(f"put {self.puts}")


@pytest.fixture
def root() -> t.Iterator[pathlib.Path]:
    """In memory, when there is: the journal flushes each write, which a disk makes slow."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
        yield pathlib.Path(folder)


def build(root: pathlib.Path) -> None:
    for number in range(QUEUES):
        for name, text in ((f"rx-{number}/rps_cpus", "00000000," * 7 + "00000001"), (f"rx-{number}/rps_flow_cnt", "0")):
            put(root / "sys/class/net/eth1/queues" / name, text)
        put(root / "proc/irq" / str(100 + number) / "smp_affinity_list", f"{number * 2}-{number * 2 + 1}")
        put(root / "sys/class/net/eth1/device/msi_irqs" / str(100 + number), "msix")
    put(root / "sys/kernel/mm/transparent_hugepage/enabled", "madvise")
    put(root / "proc/sys/net/ipv4/ip_local_reserved_ports", "")
    for name in ("possible", "online"):
        put(root / "sys/devices/system/cpu" / name, "0-255")


def put(path: pathlib.Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n", encoding="ascii")


def picture(root: pathlib.Path) -> dict[str, str]:
    return {
        str(path.relative_to(root)): path.read_text(encoding="ascii")
        for top in ("sys", "proc")
        for path in (root / top).rglob("*")
        if path.is_file() and path.suffix != ".new"
    }


def wishes(access: Access) -> list[Wish]:
    entry = {"name": "eth1", "rps": "18-35,255", "rps_flow_count": 4096, "irq_cpus": "100-163", "irq_spread": True}
    rows = settings.tuning_wishes(access, {"interfaces": [entry], "unsupported": "fail"})
    rows.append(Wish(make(access, "sysfs", "kernel/mm/transparent_hugepage/enabled"), "never"))
    rows.append(Wish(make(access, "sysctl", "net/ipv4/ip_local_reserved_ports"), "8080"))
    return rows


def book(root: pathlib.Path, hook: t.Callable[[str], None] | None = None) -> Journal:
    return Journal(str(root / "journal"), owner="run", surroundings=HERE, hook=hook, lock_wait_s=0.2)


def act(root: pathlib.Path, what: str, hook: t.Callable[[str], None] | None = None) -> None:
    if what == "apply":
        access = Tree(root)
        reconcile(wishes(access), book(root, hook))
    else:
        restore(book(root, hook), Tree(root, hook))


def _stop_at(root: str, what: str, point: str, line: multiprocessing.connection.Connection) -> None:
    """In a process of its own: stop at the point, and wait there for the end."""
    written = 0

    def hook(here: str) -> None:
        nonlocal written
        if here.startswith("written "):
            written += 1
            here = f"written {written}"
        if here == point:
            line.send(here)
            signal.pause()

    act(pathlib.Path(root), what, hook)
    line.send("end")


def kill_at(root: pathlib.Path, what: str, point: str) -> None:
    fork = multiprocessing.get_context("fork")
    here, there = fork.Pipe()
    process = fork.Process(target=_stop_at, args=(str(root), what, point, there))
    process.start()
    assert process.pid is not None
    there.close()
    try:
        assert here.poll(_LIMIT_S), f"{what} did not come to {point}"
        assert here.recv() == point
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        here.close()


@pytest.mark.parametrize("point", APPLY)
def test_killed_in_a_change(root: pathlib.Path, point: str) -> None:
    build(root)
    before = picture(root)
    kill_at(root, "apply", point)
    changed = picture(root) != before
    assert changed == (point not in ("before_rename", "recorded"))
    act(root, "restore")
    assert picture(root) == before
    assert book(root).entries() == []


@pytest.mark.parametrize("point", RESTORE)
def test_killed_in_a_restore(root: pathlib.Path, point: str) -> None:
    build(root)
    before = picture(root)
    act(root, "apply")
    kill_at(root, "restore", point)
    # The half-restored host is changed again before anybody restores it: the first note still counts.
    act(root, "apply")
    act(root, "restore")
    assert picture(root) == before
    act(root, "restore")
    assert picture(root) == before


def test_killed_in_a_change_and_then_in_its_restore(root: pathlib.Path) -> None:
    build(root)
    before = picture(root)
    kill_at(root, "apply", "written 65")
    kill_at(root, "restore", "put 10")
    kill_at(root, "restore", "put 10")
    act(root, "restore")
    assert picture(root) == before


def test_a_second_run_is_refused_while_the_first_one_changes(root: pathlib.Path) -> None:
    build(root)
    fork = multiprocessing.get_context("fork")
    here, there = fork.Pipe()
    process = fork.Process(target=_stop_at, args=(str(root), "apply", "written 1", there))
    process.start()
    try:
        assert here.poll(_LIMIT_S)
        for what in ("apply", "restore"):
            with pytest.raises(BenchError, match=rf"owner run, process {process.pid}, for \d+ s") as told:
                act(root, what)
            assert told.value.code == "host_locked"
    finally:
        process.kill()
        process.join()
    act(root, "restore")  # the lock ended with its process


def test_what_someone_else_set_in_the_meantime_is_left_unless_forced(root: pathlib.Path) -> None:
    build(root)
    before = picture(root)
    act(root, "apply")
    foreign = root / "proc/irq/110/smp_affinity_list"
    put(foreign, "7")
    result = restore(book(root), Tree(root))
    assert [(row["kind"], row["key"]) for row in result.conflicts] == [("irq.affinity", "eth1")]
    assert foreign.read_text() == "7\n"
    restore(book(root), Tree(root), force=True)
    assert picture(root) == before
