# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the power settings of CPUs have in common: where they lie, and what a refused write means.

Three ways of not getting a setting are told apart: it is not there
(``NotThere``, ``Lacking``), firmware or surroundings do not permit it
(``NotPermitted``), it is there and does not take this value (``UnsupportedValue``).
"""

from __future__ import annotations

import errno
import os
import re
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._host.access import (
    Access,
    Busy,
    KnobError,
    NotSupported,
    NotThere,
    ReadOnly,
    Refused,
)
from ansible_collections.fastpath.bench.plugins.module_utils._host.knob import Knob

BASE = "devices/system/cpu"


class Lacking(NotSupported):
    """The file is there, the driver has nothing behind it."""

    default_code = "lacking"


class UnsupportedValue(NotSupported):
    """The setting is there and does not take this value."""

    default_code = "unsupported_value"


class NotPermitted(ReadOnly):
    """Firmware, hypervisor or surroundings hold the setting."""

    default_code = "not_permitted"


_FIRMWARE = (errno.EPERM, errno.EIO)


def explained(err: KnobError, path: str, text: str) -> KnobError:
    """What a failed write to a setting of the CPUs means."""
    number = getattr(err.__cause__, "errno", None)
    if number in _FIRMWARE:
        return NotPermitted(
            "not permitted by the firmware or hypervisor",
            where=path,
            remedy="Set it in the BIOS, over the management controller, or on the hypervisor",
        )
    if isinstance(err, ReadOnly):
        why = "read-only here, as in a container" if number == errno.EROFS else "not permitted to this user"
        return NotPermitted(why, where=path, remedy="Become root on the machine itself")
    if isinstance(err, Busy):
        return NotPermitted("busy: another setting locks it at the moment", where=path)
    if isinstance(err, NotSupported):
        return Lacking("the driver has nothing behind this file", where=path)
    if isinstance(err, Refused):
        return UnsupportedValue(f"the driver does not take {text!r}", where=path)
    return err


class CpuKnob(Knob):
    """One setting below ``/sys/devices/system/cpu``; the key names a policy, a CPU, or what the kind says."""

    scope = "boot"
    comes_back = True
    key_form: t.ClassVar[str] = r"policy\d+"

    def __init__(self, access: Access, key: str) -> None:
        if re.fullmatch(self.key_form, key) is None:
            raise BenchError("not the key of such a setting", where=f"{self.kind} {key!r}", code="bad_key")
        super().__init__(access, key)

    @property
    def folder(self) -> str:
        return os.path.join(self.access.sys, BASE, "cpufreq", self.key)

    def text(self, name: str) -> str:
        return self.access.read_file(os.path.join(self.folder, name))

    def number(self, name: str) -> int:
        return number_in(self.access, os.path.join(self.folder, name))

    def put(self, name: str, text: str) -> None:
        path = os.path.join(self.folder, name)
        try:
            self.access.write_file(path, text)
        except KnobError as err:
            raise explained(err, path, text) from err

    @property
    def files(self) -> tuple[str, ...]:
        """The files that a change writes."""
        return ()

    def check_permitted(self) -> None:
        """Raise when nobody could write here: what would fail in earnest is told in check mode too."""
        for name in self.files:
            path = os.path.join(self.folder, name)
            if not self.access.is_writable(path):
                raise NotPermitted(
                    "read-only here, as in a container, or not permitted to this user",
                    where=path,
                    remedy="Become root on the machine itself",
                )


def number_in(access: Access, path: str) -> int:
    text = access.read_file(path)
    try:
        return int(text)
    except ValueError:
        # What the kernel prints for a figure it does not have.
        raise NotThere(f"it says {text!r} instead of a number", where=path) from None


def numbered(access: Access, folder: str, pattern: str) -> list[str]:
    """The entries of a folder of that name and a number, by number."""
    found = (re.fullmatch(pattern + r"(\d+)", name) for name in access.list_dir(folder))
    return [match[0] for match in sorted(filter(None, found), key=lambda match: int(match[1]))]
