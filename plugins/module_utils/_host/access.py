# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The one way by which this code reaches a host: its /proc, its /sys and its tools.

Everything else in this folder works on an :class:`Access`, so tests give it
another tree, or a kernel that exists in memory only.
"""

from __future__ import annotations

import errno
import json
import os
import re
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common import command
from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError, ParseError
from ansible_collections.fastpath.bench.plugins.module_utils._host.nicinfo import kernel_ioctl

_TIMEOUT_S = 30.0


class KnobError(BenchError):
    """A setting could not be read or written."""

    default_code = "refused"

    def __init__(self, what: str, *, where: str | None = None, remedy: str | None = None) -> None:
        super().__init__(what, where=where, remedy=remedy, code=self.default_code)


class NotThere(KnobError):
    """The setting, or the thing that carries it, does not exist."""

    default_code = "not_there"


class NotSupported(KnobError):
    """The setting exists in general; this kernel, driver or device does not have it."""

    default_code = "not_supported"


class Refused(KnobError):
    """The kernel refused this value."""

    default_code = "refused"


class Busy(KnobError):
    """Something else holds the setting at the moment."""

    default_code = "busy"


class ReadOnly(KnobError):
    """The setting may be read here, not written."""

    default_code = "read_only"


_BY_ERRNO: dict[int, tuple[type[KnobError], str]] = {
    errno.ENOENT: (NotThere, "does not exist"),
    errno.ENOTDIR: (NotThere, "does not exist"),
    errno.ENODEV: (NotThere, "the device is gone"),
    errno.ENXIO: (NotThere, "the device is gone"),
    errno.EOPNOTSUPP: (NotSupported, "the driver or kernel does not support it"),
    errno.ENOSYS: (NotSupported, "the driver or kernel does not support it"),
    errno.EBUSY: (Busy, "it is busy"),
    errno.EAGAIN: (Busy, "it is busy"),
    errno.EROFS: (ReadOnly, "the file system is read-only here"),
    errno.EACCES: (ReadOnly, "it is not permitted here"),
    errno.EPERM: (ReadOnly, "it is not permitted here"),
}

_BY_TEXT: tuple[tuple[str, type[KnobError]], ...] = (
    (r"operation not supported|not supported by|opnotsupp", NotSupported),
    (r"cannot find device|no such device|does not exist|no device matches", NotThere),
    (r"operation not permitted|permission denied|read-only file system", ReadOnly),
    (r"device or resource busy", Busy),
)


class Access:
    """A host's kernel interfaces, with what was read from ``ip`` kept until something is written.

    All settings of one call share one, or one would not see what another wrote.
    """

    def __init__(self, proc: str = "/proc", sys: str | None = None) -> None:
        self.proc = proc
        #: For tests of whole plays, the tree of another machine; with a journal of its own.
        self.sys = sys or os.environ.get("FASTPATH_BENCH_SYSFS_ROOT") or "/sys"
        self._links: dict[str, dict[str, t.Any]] | None = None
        self._routes: list[dict[str, t.Any]] | None = None
        self._told: dict[tuple[str, ...], str] = {}

    # Files

    def read_file(self, path: str) -> str:
        """The text of a kernel file without its last line end."""
        try:
            with open(path, encoding="utf-8", errors="surrogateescape") as stream:
                return stream.read().rstrip("\n")
        except OSError as err:
            raise file_error(err, path) from err

    def write_file(self, path: str, text: str) -> None:
        """One write(2), as kernel files want it; the line end makes an empty value a write at all."""
        self.forget()
        try:
            handle = os.open(path, os.O_WRONLY | os.O_TRUNC)  # as a shell does
        except OSError as err:
            raise file_error(err, path) from err
        try:
            os.write(handle, (text + "\n").encode("utf-8", "surrogateescape"))
        except OSError as err:
            if err.errno == errno.ENOENT:
                # The file is there, so this is the driver's answer: queues without receive steering say so.
                raise NotSupported("the device does not support it", where=path) from err
            raise file_error(err, path) from err
        finally:
            os.close(handle)

    def list_dir(self, path: str) -> list[str]:
        """The names in a folder, sorted; none when it does not exist."""
        try:
            return sorted(os.listdir(path))
        except (FileNotFoundError, NotADirectoryError):
            return []

    def is_writable(self, path: str) -> bool:
        """Whether a write would be let in. /proc/sys says no also to root where it is read-only."""
        return os.access(path, os.W_OK)

    # Tools

    def call(self, argv: t.Sequence[str]) -> tuple[int, str, str]:
        """Run a tool: exit status, output, error output."""
        done = command.run(argv, limit_s=_TIMEOUT_S).ended()
        return done.rc, done.stdout, done.stderr

    def run(self, argv: t.Sequence[str], *, where: str) -> str:
        """Run a tool that only reads; its output, or a typed error."""
        status, out, err = self.call(argv)
        if status != 0:
            raise tool_error(argv, status, out, err, where)
        return out

    def told(self, argv: t.Sequence[str], *, where: str) -> str:
        """As :meth:`run`, and kept until something is written."""
        key = tuple(argv)
        if key not in self._told:
            self._told[key] = self.run(argv, where=where)
        return self._told[key]

    def device_ioctl(self, device: str, request: bytes) -> bytes:
        """Put a changing ethtool request to the kernel, where the tool has no words for it."""
        self.forget()
        try:
            return kernel_ioctl()(device, request)
        except OSError as err:
            raise file_error(err, device) from err

    def change(self, argv: t.Sequence[str], *, where: str) -> str:
        """Run a tool that changes the host."""
        self.forget()
        return self.run(argv, where=where)

    def forget(self) -> None:
        """Drop what tools told: the host has changed."""
        self._told = {}
        self._links = None
        self._routes = None

    # Links and routes

    def links(self) -> dict[str, dict[str, t.Any]]:
        """All interfaces of this network namespace by name, as ``ip -d -json address show`` tells them."""
        if self._links is None:
            records = parse_ip_json(self.run(["ip", "-d", "-json", "address", "show"], where="ip address"))
            self._links = {record["ifname"]: record for record in records if "ifname" in record}
        return self._links

    def link(self, name: str) -> dict[str, t.Any]:
        """One interface; the error names those that exist."""
        found = self.links().get(name)
        if found is None:
            raise missing_interface(name, self.links())
        return found

    def routes(self) -> list[dict[str, t.Any]]:
        """All routes of all tables, each with a ``family`` of 4 or 6."""
        if self._routes is None:
            rows: list[dict[str, t.Any]] = []
            for family in (4, 6):
                argv = ["ip", f"-{family}", "-d", "-json", "route", "show", "table", "all"]
                rows += [{**row, "family": family} for row in parse_ip_json(self.run(argv, where="ip route"))]
            self._routes = rows
        return self._routes


def missing_interface(name: str, existing: t.Iterable[str]) -> NotThere:
    names = ", ".join(sorted(existing)) or "none"
    return NotThere("there is no such interface", where=name, remedy=f"Interfaces that exist here: {names}")


def parse_ip_json(text: str) -> list[dict[str, t.Any]]:
    """The records of ``ip -json``: an array, or nothing at all when there is nothing to show."""
    if not text.strip():
        return []
    try:
        records = json.loads(text)
    except ValueError as err:
        raise ParseError("ip did not answer with JSON", line=text.strip().splitlines()[0]) from err
    if not isinstance(records, list):
        raise ParseError("ip answered with something else than a list", line=text.strip().splitlines()[0])
    # Some versions put an empty record for each link that a filter left out.
    return [record for record in records if isinstance(record, dict) and record]


def file_error(err: OSError, path: str) -> KnobError:
    cls, words = _BY_ERRNO.get(err.errno or 0, (Refused, f"refused: {err.strerror}"))
    return cls(words, where=path)


def tool_error(argv: t.Sequence[str], status: int, out: str, err: str, where: str) -> KnobError:
    """What a tool said, with the command; the kind of error from its words, as exit states do not tell."""
    text = " / ".join(line.strip() for line in (err.strip() or out.strip()).splitlines() if line.strip())
    text = text.rstrip(".")
    cls: type[KnobError] = Refused
    for pattern, kind in _BY_TEXT:
        if re.search(pattern, text, re.IGNORECASE):
            cls = kind
            break
    return cls(f"{' '.join(argv)} ended with {status}: {text or 'no message'}", where=where)
