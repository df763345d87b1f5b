# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""VPP's statistics segment, read in place.

VPP hands out one file descriptor of shared memory over a socket; from then on
reading costs VPP nothing, and this process a copy of some kilobytes. The
layout is version 2 (VPP 20.05 and later): a header, a directory of entries of
144 bytes, and vectors of counters, one for each thread.

VPP writes while it is read. It says so in ``in_progress`` and counts ``epoch``
up when the directory changes; whoever read meanwhile reads again.
"""

from __future__ import annotations

import array
import contextlib
import dataclasses
import errno
import mmap
import os
import socket
import struct
import time
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._vpp.cli import socket_denied
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.errors import VppError, VppHung, VppNotRunning

DEFAULT_SOCKET = "/run/vpp/stats.sock"

_VERSION = 2
_HEADER = struct.Struct("=QQQQQ")  # version, base, epoch, in_progress, directory
_EPOCH_AND_PROGRESS = struct.Struct("=QQ")
_ENTRY = struct.Struct("=I4xQ128s")
_U32 = struct.Struct("=I")
#: Kinds of entries.
SCALAR, SIMPLE, COMBINED, NAMES, EMPTY, SYMLINK, GAUGE = 1, 2, 3, 4, 5, 6, 9
#: A changed directory settles within microseconds; a VPP that died in the middle of a change never does.
_SETTLE_S = 0.5
_Result = t.TypeVar("_Result")


@dataclasses.dataclass(frozen=True)
class Entry:
    """One entry of the directory. ``value`` is a number, an address, or for a symbolic link two indices."""

    index: int
    kind: int
    value: int

    @property
    def target(self) -> tuple[int, int]:
        """Of a symbolic link: the index of the entry that it points into, and the place there."""
        return self.value & 0xFFFFFFFF, self.value >> 32


class SegmentError(VppError):
    """The segment does not hold what it should."""

    def __init__(self, what: str, path: str, remedy: str | None = None) -> None:
        super().__init__(what, where=path, remedy=remedy, code="vpp_stats_unreadable")


class _Moved(Exception):
    """The segment changed while it was read."""


class Segment:
    """An open statistics segment.

    :ivar pid: VPP's process, 0 when the kernel does not tell (another PID namespace).
    """

    def __init__(self, path: str, memory: mmap.mmap | bytes, pid: int = 0) -> None:
        self.path = path
        self.pid = pid
        self._memory = memory
        self._size = len(memory)
        self._epoch = -1
        self._base = 0
        self.directory: dict[str, Entry] = {}
        self._kinds: list[tuple[int, int]] = []
        if self._size < _HEADER.size or self._header()[0] != _VERSION:
            found = self._header()[0] if self._size >= _HEADER.size else None
            raise SegmentError(f"its layout is version {found}, not {_VERSION}", path, "Use VPP 20.05 or later")
        self.refresh()

    @classmethod
    def open(cls, path: str = DEFAULT_SOCKET, *, timeout_s: float = 2.0) -> Segment:
        """Ask VPP for its segment.

        :raises VppError: there is no VPP, it does not answer, or this user must not ask.
        """
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
            client.settimeout(timeout_s)
            try:
                client.connect(path)
                credentials = client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
                _data, control, _flags, _address = client.recvmsg(1, socket.CMSG_SPACE(4))
            except socket.timeout as error:
                raise VppHung(
                    f"VPP did not hand out its statistics within {timeout_s:g} s", where=path, code="vpp_hung"
                ) from error
            except PermissionError as error:
                raise socket_denied(path) from error
            except OSError as error:
                if error.errno in (errno.ENOENT, errno.ECONNREFUSED, errno.ENOTSOCK):
                    raise VppNotRunning(
                        "no VPP listens there",
                        where=path,
                        remedy="Start VPP, with a section statseg in its startup.conf when this is another path",
                        code="vpp_not_running",
                    ) from error
                raise VppError(f"VPP's statistics were not reached: {error.strerror}", where=path) from error
        descriptors = array.array("i")
        for level, kind, data in control:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                descriptors.frombytes(data[: len(data) - len(data) % descriptors.itemsize])
        if not descriptors:
            raise SegmentError("VPP handed out no memory", path)
        try:
            memory = mmap.mmap(descriptors[0], os.fstat(descriptors[0]).st_size, mmap.MAP_SHARED, mmap.PROT_READ)
        except (OSError, ValueError) as error:
            raise SegmentError(f"its memory cannot be read: {error}", path) from error
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
        return cls(path, memory, struct.unpack("3i", credentials)[0])

    def close(self) -> None:
        if isinstance(self._memory, mmap.mmap):
            self._memory.close()

    def __enter__(self) -> Segment:
        return self

    def __exit__(self, *_what: object) -> None:
        self.close()

    # -- raw access, always within the memory

    def _header(self) -> tuple[int, int, int, int, int]:
        return t.cast("tuple[int, int, int, int, int]", _HEADER.unpack_from(self._memory, 0))

    def _place(self, address: int, size: int) -> int:
        offset = address - self._base
        if offset < _HEADER.size or offset + size > self._size:
            raise _Moved
        return offset

    def _vector(self, address: int, element: int) -> tuple[int, int]:
        """Offset and number of elements of a VPP vector, whose length stands 8 bytes before it."""
        if address == 0:
            return 0, 0
        offset = self._place(address, 0)
        length: int = _U32.unpack_from(self._memory, self._place(address - 8, 4))[0]
        self._place(address, length * element)
        return offset, length

    def _numbers(self, address: int, width: int = 1) -> array.array[int]:
        offset, length = self._vector(address, 8 * width)
        numbers = array.array("Q")
        numbers.frombytes(self._memory[offset : offset + 8 * width * length])
        return numbers

    @property
    def changed(self) -> bool:
        """The directory is not the one that was read."""
        return bool(_EPOCH_AND_PROGRESS.unpack_from(self._memory, 16)[0] != self._epoch)

    def _settled(self, read: t.Callable[[], _Result]) -> _Result:
        """What ``read`` gives when nothing moved under it."""
        limit = time.monotonic() + _SETTLE_S
        while True:
            epoch, busy = _EPOCH_AND_PROGRESS.unpack_from(self._memory, 16)
            if not busy:
                with contextlib.suppress(_Moved):
                    result = read()
                    if _EPOCH_AND_PROGRESS.unpack_from(self._memory, 16) == (epoch, 0):
                        return result
            if time.monotonic() >= limit:
                raise SegmentError(
                    f"it did not hold still for {_SETTLE_S:g} s",
                    self.path,
                    "VPP died in the middle of a change, or hangs",
                )
            time.sleep(0.0005)

    def refresh(self) -> None:
        """Read the directory."""

        def read() -> tuple[int, int, dict[str, Entry], list[tuple[int, int]]]:
            _version, base, epoch, _busy, vector = self._header()
            self._base = base
            offset, length = self._vector(vector, _ENTRY.size)
            directory, kinds = {}, []
            raw = self._memory[offset : offset + length * _ENTRY.size]
            for index, (kind, value, name) in enumerate(_ENTRY.iter_unpack(raw)):
                kinds.append((kind, value))
                if kind not in (0, EMPTY):
                    directory[name.split(b"\0", 1)[0].decode("utf-8", "replace")] = Entry(index, kind, value)
            return epoch, base, directory, kinds

        self._epoch, self._base, self.directory, self._kinds = self._settled(read)

    # -- what is in it

    def _entry(self, name: str, kinds: t.Collection[int]) -> Entry | None:
        if self.changed:
            self.refresh()
        entry = self.directory.get(name)
        return entry if entry is not None and entry.kind in kinds else None

    def scalar(self, name: str) -> int | None:
        """A single number; None when this VPP has none of that name."""
        entry = self._entry(name, (SCALAR, GAUGE))
        if entry is None:
            return None

        def read() -> int:
            offset, length = self._vector(self._header()[4], _ENTRY.size)
            if entry.index >= length:
                raise _Moved
            return t.cast("int", _ENTRY.unpack_from(self._memory, offset + entry.index * _ENTRY.size)[1])

        return self._settled(read)

    def counters(self, name: str) -> list[array.array[int]] | None:
        """By thread the vector of counters; of packet and byte pairs one after the other. None when there is none."""
        entry = self._entry(name, (SIMPLE, COMBINED))
        if entry is None:
            return None
        width = 2 if entry.kind == COMBINED else 1

        def read() -> list[array.array[int]]:
            # The address is read anew: a vector that grew has moved.
            offset, length = self._vector(self._header()[4], _ENTRY.size)
            if entry.index >= length:
                raise _Moved
            address = _ENTRY.unpack_from(self._memory, offset + entry.index * _ENTRY.size)[1]
            return [self._numbers(pointer, width) for pointer in self._numbers(address)]

        return self._settled(read)

    def names(self, name: str) -> list[str] | None:
        """A vector of names by index; an unused place is an empty text."""
        entry = self._entry(name, (NAMES,))
        if entry is None:
            return None

        def read() -> list[str]:
            offset, length = self._vector(self._header()[4], _ENTRY.size)
            if entry.index >= length:
                raise _Moved
            address = _ENTRY.unpack_from(self._memory, offset + entry.index * _ENTRY.size)[1]
            return [self._text(pointer) for pointer in self._numbers(address)]

        return self._settled(read)

    def _text(self, address: int) -> str:
        offset, length = self._vector(address, 1)
        raw: bytes = self._memory[offset : offset + length]
        return raw.split(b"\0", 1)[0].decode("utf-8", "replace")

    def links_into(self, target: str, prefix: str) -> dict[int, str]:
        """Of the symbolic links below ``prefix`` that point into ``target``: place there -> rest of the name."""
        if self.changed:
            self.refresh()
        aim = self.directory.get(target)
        if aim is None:
            return {}
        found = {}
        for name, entry in self.directory.items():
            if entry.kind == SYMLINK and name.startswith(prefix):
                index, place = entry.target
                if index == aim.index:
                    found[place] = name[len(prefix) :]
        return found
