# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The errors that the collection raises on purpose.

Anything else that escapes is a fault in the collection, and is left to show
its traceback.
"""

from __future__ import annotations

import typing as t


class BenchError(Exception):
    """Something is wrong that the user can put right.

    :param what: what is wrong, as one sentence without a full stop.
    :param where: the file, option, host, interface or line it was found at.
    :param remedy: what would be right, or what to do.
    :param code: a short stable word for programs and tests.
    """

    def __init__(self, what: str, *, where: str | None = None, remedy: str | None = None, code: str = "error") -> None:
        self.what = what
        self.where = where
        self.remedy = remedy
        self.code = code
        super().__init__(self.message)

    @property
    def message(self) -> str:
        text = f"{self.where}: {self.what}" if self.where else self.what
        return f"{text}. {self.remedy}." if self.remedy else f"{text}."

    def as_result(self) -> dict[str, t.Any]:
        """The keyword arguments for ``AnsibleModule.fail_json``."""
        return {"msg": self.message, "code": self.code, "where": self.where, "remedy": self.remedy}


class ParseError(BenchError):
    """A tool's output could not be read. Quotes the line; never guesses a number."""

    def __init__(self, what: str, *, line: str, remedy: str | None = None, code: str = "unreadable_output") -> None:
        self.line = line
        shown = line if len(line) <= 200 else line[:200] + "..."
        super().__init__(f"{what}: {shown!r}", remedy=remedy, code=code)
