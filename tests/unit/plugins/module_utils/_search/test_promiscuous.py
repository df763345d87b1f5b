# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An interface that a program left promiscuous, or no longer so."""

from __future__ import annotations

import pytest

from ansible_collections.fastpath.bench.plugins.module_utils._common import command
from ansible_collections.fastpath.bench.plugins.module_utils._search import promiscuous


@pytest.mark.parametrize(
    ("before", "after", "word"),
    [(False, True, "off"), (True, False, "on"), (True, True, None), (False, None, None), (None, True, None)],
)
def test_it_is_put_back(
    before: bool | None, after: bool | None, word: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, calls = [before, after], []

    def run(argv: list[str], **_more: object) -> command.Result:
        calls.append(argv)
        return command.Result(tuple(argv), 0, "", "")

    monkeypatch.setattr(promiscuous, "_read", lambda _device: found.pop(0))
    monkeypatch.setattr(promiscuous.command, "run", run)
    promiscuous.keep("eth1")()
    assert [argv[-1] for argv in calls] == ([word] if word else [])


def test_an_interface_that_is_not_there() -> None:
    promiscuous.keep("fastpath-none")()
