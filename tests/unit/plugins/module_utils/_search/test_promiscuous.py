# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An interface that a program left promiscuous, or no longer so."""

from __future__ import annotations

import os
import signal

import pytest

from ansible_collections.fastpath.bench.plugins.module_utils._common import command
from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
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


def test_one_search_at_a_time_has_an_interface(monkeypatch: pytest.MonkeyPatch) -> None:
    device = f"none{os.getpid()}"
    monkeypatch.setattr(promiscuous, "_CLAIM_S", 0.0)
    first = promiscuous.claim(device)
    with promiscuous.claim(f"{device}b"), pytest.raises(BenchError, match="another search sends") as caught:
        promiscuous.claim(device)
    assert caught.value.code == "interface_in_use"
    # a process that was forked has it too, until it has put things back
    child = os.fork()
    if child == 0:
        signal.pause()
    try:
        first.close()
        with pytest.raises(BenchError):
            promiscuous.claim(device)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    promiscuous.claim(device).close()
