# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A statistics segment of VPP laid out in memory as VPP 26.06 lays it out."""

from __future__ import annotations

import struct
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._vpp import statseg

#: Where VPP has mapped it, which is not where we do.
BASE = 0x130000000


class FakeSegment:
    """Builds the bytes. Counters are given by thread."""

    def __init__(self, *, version: int = 2, epoch: int = 7, in_progress: int = 0) -> None:
        self._head = (version, epoch, in_progress)
        self._data = bytearray(64)
        self._entries: list[tuple[int, int, str]] = []

    def _vector(self, raw: bytes, count: int) -> int:
        """VPP's vectors have their length 8 bytes before their first element. The address of that."""
        while len(self._data) % 8:
            self._data.append(0)
        self._data += struct.pack("<II", count, 0)
        at = len(self._data)
        self._data += raw
        return BASE + at

    def scalar(self, name: str, value: int) -> None:
        self._entries.append((statseg.SCALAR, value, name))

    def counters(self, name: str, threads: t.Sequence[t.Sequence[int]]) -> None:
        pointers = [self._vector(struct.pack(f"<{len(row)}Q", *row), len(row)) for row in threads]
        address = self._vector(struct.pack(f"<{len(pointers)}Q", *pointers), len(pointers))
        self._entries.append((statseg.SIMPLE, address, name))

    def names(self, name: str, names: t.Sequence[str]) -> None:
        pointers = [self._vector(text.encode() + b"\0", len(text) + 1) if text else 0 for text in names]
        address = self._vector(struct.pack(f"<{len(pointers)}Q", *pointers), len(pointers))
        self._entries.append((statseg.NAMES, address, name))

    def link(self, name: str, target: str, place: int) -> None:
        index = next(index for index, entry in enumerate(self._entries) if entry[2] == target)
        self._entries.append((statseg.SYMLINK, index | place << 32, name))

    def build(self) -> bytes:
        rows = [struct.pack("<I4xQ128s", kind, value, name.encode()) for kind, value, name in self._entries]
        directory = self._vector(b"".join(rows), len(rows))
        version, epoch, in_progress = self._head
        struct.pack_into("<QQQQQ", self._data, 0, version, BASE, epoch, in_progress, directory)
        return bytes(self._data) + bytes(64)


def running(
    nodes: dict[str, t.Sequence[tuple[int, int, int, int]]],
    *,
    errors: dict[str, t.Sequence[int]] | None = None,
    interfaces: dict[str, dict[str, int]] | None = None,
    heartbeat: int = 1,
    workers: int = 1,
    with_nodes: bool = True,
) -> bytes:
    """The segment of a VPP.

    :param nodes: by name and thread calls, vectors, clocks and suspends.
    :param errors: by "node/reason" and thread the count.
    :param interfaces: by name the counters of losses on thread 0.
    """
    segment = FakeSegment()
    segment.scalar("/sys/heartbeat", heartbeat)
    segment.scalar("/sys/num_worker_threads", workers)
    errors, interfaces = errors or {}, interfaces or {}
    threads = range(workers + 1)
    segment.counters("/node/errors", [[row[thread] for row in errors.values()] for thread in threads])
    for place, name in enumerate(errors):
        segment.link(f"/err/{name}", "/node/errors", place)
    segment.names("/if/names", list(interfaces))
    for counter in ("drops", "rx-miss", "rx-no-buf", "rx-error", "tx-error"):
        first = [counts.get(counter, 0) for counts in interfaces.values()]
        segment.counters(f"/if/{counter}", [first] + [[0] * len(first) for _worker in range(workers)])
    if with_nodes:
        segment.names("/sys/node/names", list(nodes))
        for column, kind in enumerate(("calls", "vectors", "clocks", "suspends")):
            segment.counters(
                f"/sys/node/{kind}", [[row[thread][column] for row in nodes.values()] for thread in threads]
            )
    return segment.build()
