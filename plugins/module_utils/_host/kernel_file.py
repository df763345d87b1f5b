# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One file of /sys, or of /proc outside /proc/sys, that holds one value."""

from __future__ import annotations

import os
import re
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._host.access import Access
from ansible_collections.fastpath.bench.plugins.module_utils._host.knob import Knob, Value, register

_CHOSEN = re.compile(r"(?:^|\s)\[([^\]\s]+)\](?:\s|$)")


def chosen(text: str) -> str:
    """The value of a file; of ``always [madvise] never`` it is ``madvise``."""
    match = _CHOSEN.search(text)
    return match[1] if match else " ".join(text.split())


class _KernelFile(Knob):
    scope = "boot"

    def __init__(self, access: Access, key: str) -> None:
        if key.startswith("/") or ".." in key.split("/") or not key:
            raise BenchError("a path below the tree is needed", where=repr(key), code="bad_key")
        super().__init__(access, key)

    @property
    def root(self) -> str:
        raise NotImplementedError

    @property
    def path(self) -> str:
        return os.path.join(self.root, self.key)

    def read(self) -> Value:
        return chosen(self.access.read_file(self.path))

    def write(self, value: Value) -> None:
        self.access.write_file(self.path, value)

    def resolve(self, current: Value, wish: t.Any) -> Value:
        return str(int(wish)) if isinstance(wish, bool) else " ".join(str(wish).split())


@register
class SysFile(_KernelFile):
    """A file below /sys, of the whole machine."""

    kind = "sysfs"

    @property
    def root(self) -> str:
        return self.access.sys


@register
class ProcFile(_KernelFile):
    """A file below /proc, such as the affinity of an interrupt."""

    kind = "proc"

    @property
    def root(self) -> str:
        return self.access.proc
