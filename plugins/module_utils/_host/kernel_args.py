# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the kernel is started with: a drop-in of GRUB, or the distribution's own tool where it has one."""

from __future__ import annotations

import os
import re
import shlex
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common import files
from ansible_collections.fastpath.bench.plugins.module_utils._common.command import CommandError
from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._host.access import (
    Access,
    NotSupported,
    NotThere,
    file_error,
)
from ansible_collections.fastpath.bench.plugins.module_utils._host.hugepages import size_kb
from ansible_collections.fastpath.bench.plugins.module_utils._host.knob import ABSENT, Knob, Value, register

FILE_NAME = "95-fastpath-bench.cfg"
GRUB_FOLDER = "/etc/default/grub.d"
GRUBBY = "grubby"
_ARG = re.compile(r"[A-Za-z0-9_.-]+(?:=[A-Za-z0-9_.,:/+-]*)?")
_HEAD = "# Written by the collection fastpath.bench; its restore takes it away.\n"
_LINE = re.compile(r'^GRUB_CMDLINE_LINUX_DEFAULT="\$GRUB_CMDLINE_LINUX_DEFAULT ?(.*)"$', re.MULTILINE)


def check_args(args: t.Iterable[str]) -> list[str]:
    """The arguments, if none could be more than one argument to a shell or to GRUB."""
    found = list(args)
    for arg in found:
        if not _ARG.fullmatch(arg):
            raise BenchError(f"{arg!r} is not an argument of the kernel", where="kernel_args", code="bad_value")
    return found


def running(access: Access) -> list[str]:
    """What the running kernel was started with."""
    return access.read_file(os.path.join(access.proc, "cmdline")).split()


def pending(access: Access, args: t.Sequence[str]) -> list[str]:
    """The arguments that a restart would bring."""
    now = running(access)
    return [arg for arg in args if arg not in now]


def hugepages_of(args: t.Sequence[str], default_kb: int) -> list[tuple[int, int]]:
    """The pages that the kernel reserves with these arguments: size in KiB and count, each size once.

    A count belongs to the size before it, and without one to the default size, which is an argument too.

    :raises BenchError: a size or a count is none.
    """
    found: dict[int, int] = {}
    given = dict(arg.split("=", 1) for arg in args if "=" in arg)
    if "default_hugepagesz" in given:
        default_kb = size_kb(given["default_hugepagesz"])
        found[default_kb] = 0
    now = default_kb
    for arg in args:
        name, _equals, value = arg.partition("=")
        if name == "hugepagesz":
            now = size_kb(value)
            found.setdefault(now, 0)
        elif name == "hugepages":
            # one number, or for each node 0:2,1:4
            counts = [part.rpartition(":")[2] for part in value.split(",")]
            if not all(count.isdigit() for count in counts):
                raise BenchError(f"{arg!r} has no count", where="kernel_args", code="bad_value")
            found[now] = sum(map(int, counts))
    return sorted(found.items())


def way(access: Access, folder: str = GRUB_FOLDER) -> str:
    """The key of the knob that works on this host.

    :raises NotSupported: none is known.
    """
    try:
        if access.call([GRUBBY, "--version"])[0] == 0:
            return GRUBBY
    except CommandError as error:
        if error.code != "tool_absent":
            raise
    if os.path.exists(os.path.join(os.path.dirname(folder), "grub")):
        return os.path.join(folder, FILE_NAME)
    raise NotSupported(
        "this host is started by something else than GRUB, or its settings are elsewhere",
        where="kernel_args",
        remedy="Set the arguments by hand, restart, and leave kernel_args out",
    )


@register
class KernelArgs(Knob):
    """Arguments for the next start. Value: the arguments in one line; ABSENT when there is no drop-in.

    The key is the path of GRUB's drop-in, or C(grubby), where the value is all that the default kernel gets.
    """

    kind = "kernel.args"
    scope = "disk"

    def __init__(self, access: Access, key: str) -> None:
        if key != GRUBBY and not (os.path.isabs(key) and os.path.basename(key) == FILE_NAME):
            raise BenchError("not a way to set the kernel's arguments", where=repr(key), code="bad_key")
        super().__init__(access, key)

    def read(self) -> Value:
        if self.key == GRUBBY:
            out = self.access.run([GRUBBY, "--info=DEFAULT"], where=GRUBBY)
            match = re.search(r'^args="(.*)"$', out, re.MULTILINE)
            if match is None:
                raise NotSupported("the default kernel's arguments cannot be read", where=GRUBBY)
            return match[1]
        try:
            text = self.access.read_file(self.key)
        except NotThere:
            return ABSENT
        match = _LINE.search(text)
        return match[1] if match else text

    def resolve(self, current: Value, wish: t.Any) -> Value:
        if wish is ABSENT or isinstance(wish, str):
            return wish
        args = check_args(wish)
        if self.key != GRUBBY:
            return " ".join(args)
        kept = [arg for arg in shlex.split(current) if _name(arg) not in {_name(new) for new in args}]
        return " ".join([*kept, *args])

    def check(self, current: Value, wish: t.Any) -> None:
        if wish is not ABSENT and not isinstance(wish, str):
            check_args(wish)

    def write(self, value: Value) -> None:
        if self.key == GRUBBY:
            self._grubby(value)
            return
        before = self.access.read_file(self.key) if os.path.exists(self.key) else None
        text = f'{_HEAD}GRUB_CMDLINE_LINUX_DEFAULT="$GRUB_CMDLINE_LINUX_DEFAULT {value}"\n'
        self._put(None if value is ABSENT else text)
        try:
            self.access.change(["update-grub"], where="GRUB")
        except BenchError:
            # a later run of it by somebody else must not bring what failed here
            self._put(before)
            raise

    def _put(self, text: str | None) -> None:
        try:
            if text is None:
                if os.path.exists(self.key):
                    os.unlink(self.key)
            else:
                os.makedirs(os.path.dirname(self.key), exist_ok=True)
                # a machine that starts with half of it would not have what it had
                files.replace_file(self.key, text.encode())
        except OSError as error:
            raise file_error(error, self.key) from error

    def _grubby(self, value: str) -> None:
        old, new = shlex.split(self.read()), shlex.split(value)
        gone = [arg for arg in old if arg not in new]
        come = [arg for arg in new if arg not in old]
        words = [GRUBBY, "--update-kernel=ALL"]
        if gone:
            words.append(f"--remove-args={' '.join(gone)}")
        if come:
            words.append(f"--args={' '.join(come)}")
        if gone or come:
            self.access.change(words, where=GRUBBY)


def _name(arg: str) -> str:
    return arg.partition("=")[0]
