# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What all settings of one interface share."""

from __future__ import annotations

import re
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._host.access import Access
from ansible_collections.fastpath.bench.plugins.module_utils._host.knob import Knob

_NAME = re.compile(r"[^\s/:]{1,15}")
_NO_INTERFACE = 16  # IFNAMSIZ with the ending zero


def check_name(name: str) -> str:
    """An interface name that the kernel can have."""
    if not _NAME.fullmatch(name) or name in (".", ".."):
        raise BenchError(
            f"{name!r} cannot be the name of an interface",
            remedy=f"At most {_NO_INTERFACE - 1} characters, without blanks, slashes and colons",
            code="bad_interface_name",
        )
    return name


class DeviceKnob(Knob):
    """A setting of one interface; the key is its name."""

    def __init__(self, access: Access, key: str) -> None:
        super().__init__(access, key)
        check_name(self.device)

    @property
    def device(self) -> str:
        return self.key

    def identity(self) -> str | None:
        """The index, which a new interface of the same name does not get again."""
        return f"ifindex:{self.access.link(self.device)['ifindex']}"

    @property
    def link(self) -> dict[str, t.Any]:
        return self.access.link(self.device)

    def set_link(self, *words: str) -> None:
        self.access.change(["ip", "link", "set", "dev", self.device, *words], where=self.device)
