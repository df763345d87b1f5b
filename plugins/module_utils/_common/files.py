# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files that are there as a whole or not at all.

The journal of a host writes its own file, since its tests have to end it between any two steps.
"""

from __future__ import annotations

import contextlib
import os
import typing as t

Path = t.Union[str, "os.PathLike[str]"]


def replace_file(path: Path, data: bytes, *, mode: int | None = None, durable: bool = True) -> None:
    """Write ``path`` whole; what stood there before is replaced in one step.

    :param mode: permissions of the file; None takes those that the umask gives.
    :param durable: have it on the disk before it counts, so that a crash leaves the old or the new one. Not needed
        below /run, which a crash empties.
    :raises OSError: nothing is changed then, and nothing is left beside.
    """
    temporary = write_temporary(path, data, mode=mode, durable=durable)
    try:
        os.replace(temporary, path)
    except BaseException:
        remove(temporary)
        raise
    if durable:
        sync_folder(os.path.dirname(path) or ".")


def write_temporary(path: Path, data: bytes, *, mode: int | None = None, durable: bool = True) -> str:
    """Write a new file beside ``path``, hidden and with an end that no reader of configuration looks for."""
    folder, name = os.path.split(path)
    temporary = os.path.join(folder, f".{name}.{os.getpid()}.tmp")
    # of a process that had the same number and was killed; also no link is followed
    remove(temporary)
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        with os.fdopen(os.open(temporary, flags, 0o666 if mode is None else mode), "wb") as file:
            if mode is not None:
                os.fchmod(file.fileno(), mode)
            file.write(data)
            file.flush()
            if durable:
                os.fsync(file.fileno())
    except BaseException:
        remove(temporary)
        raise
    return temporary


def remove(path: Path) -> None:
    """Remove a file unless it is gone already."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


def sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
