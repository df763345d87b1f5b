# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hugepages: how many of which size on which NUMA node, and the file systems that hand them out.

Which sizes there are differs by machine: an arm64 kernel with pages of 64 KiB has 2 MiB, 512 MiB and 16 GiB.
"""

from __future__ import annotations

import fcntl
import os
import re
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._host.access import Access, KnobError, NotThere, Refused
from ansible_collections.fastpath.bench.plugins.module_utils._host.knob import ABSENT, RANK_OTHER, Knob, Value, register

_SIZE = re.compile(r"(\d+)\s*([KMG]?)i?B?", re.IGNORECASE)
_UNITS_KB = {"K": 1, "M": 1024, "G": 1024 * 1024}
_KEY = re.compile(r"(?:node(?P<node>\d+)|all)/(?P<size>\d+)kB")
_FOLDER = re.compile(r"hugepages-(\d+)kB")


def size_kb(text: str | int) -> int:
    """``2M``, ``1G``, ``2048kB`` in KiB; a bare number is KiB.

    :raises BenchError: it is no size.
    """
    match = _SIZE.fullmatch(str(text).strip())
    if match is None or int(match[1]) == 0:
        raise BenchError(f"{text!r} is not the size of a page", remedy="Write 2M or 1G", code="bad_size")
    return int(match[1]) * _UNITS_KB[(match[2] or "K").upper()]


def size_text(kb: int) -> str:
    """As mount and the kernel's command line want it."""
    for unit, size in (("G", _UNITS_KB["G"]), ("M", _UNITS_KB["M"])):
        if kb % size == 0:
            return f"{kb // size}{unit}"
    return f"{kb}K"


def sizes(access: Access) -> list[int]:
    """The sizes that this kernel has, in KiB."""
    names = access.list_dir(os.path.join(access.sys, "kernel/mm/hugepages"))
    return sorted(int(match[1]) for match in map(_FOLDER.fullmatch, names) if match)


def nodes(access: Access) -> list[int]:
    """The NUMA nodes; none where the kernel does not know of any."""
    names = access.list_dir(os.path.join(access.sys, "devices/system/node"))
    return sorted(int(name[4:]) for name in names if re.fullmatch(r"node\d+", name))


def free_bytes(access: Access, node: int | None = None, *, of: t.Collection[int] | None = None) -> int:
    """What is free, on one node or on all.

    :param of: sizes in KiB; all when not given.
    """
    total = 0
    for kb in sizes(access) if of is None else of:
        folder = _folder(access, node, kb)
        try:
            total += int(access.read_file(os.path.join(folder, "free_hugepages"))) * kb * 1024
        except (KnobError, ValueError):
            continue
    return total


def _folder(access: Access, node: int | None, kb: int) -> str:
    base = "kernel/mm" if node is None else f"devices/system/node/node{node}"
    return os.path.join(access.sys, base, f"hugepages/hugepages-{kb}kB")


def key_of(node: int | None, kb: int) -> str:
    return f"{'all' if node is None else f'node{node}'}/{kb}kB"


@register
class HugePages(Knob):
    """How many pages of one size there are, on one node or on the machine. Key: ``node0/2048kB`` or ``all/2048kB``."""

    kind = "hugepages"
    scope = "boot"

    def __init__(self, access: Access, key: str) -> None:
        match = _KEY.fullmatch(key)
        if match is None:
            raise BenchError("a node and a size are needed", where=repr(key), code="bad_key")
        super().__init__(access, key)
        self.node = None if match["node"] is None else int(match["node"])
        self.size_kb = int(match["size"])

    @property
    def folder(self) -> str:
        return _folder(self.access, self.node, self.size_kb)

    def read(self) -> Value:
        self._there()
        return int(self.access.read_file(os.path.join(self.folder, "nr_hugepages")))

    def _there(self) -> None:
        if self.size_kb not in sizes(self.access):
            known = ", ".join(map(size_text, sizes(self.access))) or "none"
            raise NotThere(
                f"this kernel has no pages of {size_text(self.size_kb)}",
                where="hugepages",
                remedy=f"Sizes that exist here: {known}",
            )
        if self.node is not None and self.node not in nodes(self.access):
            known = ", ".join(map(str, nodes(self.access))) or "none"
            raise NotThere(f"there is no NUMA node {self.node}", where="hugepages", remedy=f"There are: {known}")

    def check(self, current: Value, wish: t.Any) -> None:
        if isinstance(wish, bool) or not isinstance(wish, int) or wish < 0:
            raise BenchError(f"{wish!r} is not a number of pages", where=self.key, code="bad_value")

    def write(self, value: Value) -> None:
        path = os.path.join(self.folder, "nr_hugepages")
        self.access.write_file(path, str(value))
        got = self.read()
        if got < value:
            # free memory may only be in pieces
            self._compact()
            self.access.write_file(path, str(value))
            got = self.read()
        if got != value:
            why = "the others are in use" if got > value else "there is not enough free memory in one piece"
            raise Refused(
                f"{value} pages of {size_text(self.size_kb)} were asked for, {got} there are: {why}",
                where=self.key,
                remedy="Reserve them on the kernel's command line (host_prep_kernel_args), or ask for fewer",
            )

    def _compact(self) -> None:
        path = os.path.join(self.access.proc, "sys/vm/compact_memory")
        if self.access.is_writable(path):
            self.access.write_file(path, "1")


@register
class HugetlbMount(Knob):
    """A hugetlbfs on a folder. Value: the size of its pages in KiB; 0 for a folder without one, ABSENT for none."""

    kind = "hugetlbfs"
    scope = "boot"

    def __init__(self, access: Access, key: str) -> None:
        if not os.path.isabs(key) or os.path.normpath(key) != key or any(char.isspace() for char in key):
            raise BenchError("a plain absolute path is needed", where=repr(key), code="bad_key")
        super().__init__(access, key)

    def rank_to(self, value: Value) -> int:
        """Files in it hold pages, so it goes before they do."""
        return RANK_OTHER if value not in (ABSENT, 0) else RANK_OTHER - 1

    def read(self) -> Value:
        found = mounts(self.access).get(self.key)
        if found is not None:
            return found
        return 0 if os.path.isdir(self.key) else ABSENT

    def check(self, current: Value, wish: t.Any) -> None:
        if current not in (ABSENT, 0) and current != wish:
            raise BenchError(
                f"a hugetlbfs with pages of {size_text(current)} is mounted here already",
                where=self.key, remedy="Take another folder", code="mount_taken",
            )  # fmt: skip

    def write(self, value: Value) -> None:
        now = self.read()
        if now not in (ABSENT, 0):
            self.access.change(["umount", self.key], where=self.key)
        if value is ABSENT:
            if os.path.isdir(self.key):
                os.rmdir(self.key)
        else:
            os.makedirs(self.key, mode=0o755, exist_ok=True)
            if value:
                options = f"pagesize={size_text(value)},mode=0700"
                self.access.change(["mount", "-t", "hugetlbfs", "-o", options, "hugetlbfs", self.key], where=self.key)


def mounts(access: Access) -> dict[str, int]:
    """Where a hugetlbfs is mounted -> the size of its pages in KiB."""
    found: dict[str, int] = {}
    for line in access.read_file(os.path.join(access.proc, "self/mountinfo")).splitlines():
        before, _dash, after = line.partition(" - ")
        kind, *rest = after.split()
        if kind == "hugetlbfs":
            match = re.search(r"\bpagesize=(\w+)", rest[-1])
            # older kernels leave the default size out
            found[before.split()[4]] = size_kb(match[1]) if match else default_kb(access)
    return found


def default_kb(access: Access) -> int:
    match = re.search(
        r"^Hugepagesize:\s+(\d+) kB", access.read_file(os.path.join(access.proc, "meminfo")), re.MULTILINE
    )
    if match is None:
        raise NotThere("this kernel has no hugepages", where="/proc/meminfo")
    return int(match[1])


def unmounted(access: Access) -> list[int]:
    """Sizes of which there are pages, and no file system that hands them out: DPDK then finds none of them."""
    mounted = set(mounts(access).values())
    return [
        kb for kb in sizes(access) if kb not in mounted and t.cast(int, HugePages(access, key_of(None, kb)).read()) > 0
    ]


def release_left(access: Access, name: str) -> int:
    """Delete the files of pages that a program of DPDK has left, as it does when it is killed; how many there were.

    A program that runs has its files locked, so those are left alone, as DPDK itself does it.

    :param name: regular expression of the files' names.
    """
    gone = 0
    for folder in mounts(access):
        for entry in access.list_dir(folder):
            if re.fullmatch(name, entry) and _unlink_unlocked(os.path.join(folder, entry)):
                gone += 1
    return gone


def _unlink_unlocked(path: str) -> bool:
    try:
        handle = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False  # it has just gone
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.unlink(path)
    except OSError:
        return False
    finally:
        os.close(handle)
    return True
