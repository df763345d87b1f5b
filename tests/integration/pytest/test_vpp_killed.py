# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A real VPP that is killed while it is being configured: a clear error, and the next call brings the whole state."""

from __future__ import annotations

import pathlib
import typing as t

import pytest

from ansible_collections.fastpath.bench.plugins.module_utils._vpp import interface_run
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.errors import VppGone
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.session import Call, PapiSession
from ansible_collections.fastpath.bench.tests.support.vpp_process import VppProcess, why_not

pytestmark = [pytest.mark.vpp, pytest.mark.skipif(why_not() is not None, reason=str(why_not()))]

WANTED = [
    {"type": "loopback", "instance": number, "addresses": [f"10.200.{number}.1/24"], "up": True} for number in range(40)
]


class Killed(PapiSession):
    """A session whose VPP is killed at the n-th batch of requests, some of which it has answered by then."""

    process: VppProcess
    left: int

    def batch(self, calls: t.Sequence[Call]) -> list[t.Any]:
        self.left -= 1
        if self.left == 0:
            done = super().batch(calls[: len(calls) // 2])
            self.process.kill()
            return done + super().batch(calls[len(calls) // 2 :])
        return super().batch(calls)


@pytest.mark.parametrize("at", [2, 4, 5])
def test_killed_in_the_middle_and_converged_by_the_next_call(at: int) -> None:
    with VppProcess(only=["ping_plugin.so"]) as process:
        with Killed(process.api_socket, timeout_s=5) as session:
            session.process, session.left = process, at
            with pytest.raises(VppGone) as caught:
                interface_run.run(session, WANTED, "merged")
        assert "restarted" in str(caught.value) or "ended" in str(caught.value)
        process.start()
        with PapiSession(process.api_socket, timeout_s=10) as again:
            assert interface_run.run(again, WANTED, "merged")["changed"]
            assert not interface_run.run(again, WANTED, "merged")["changed"]
        name = process.name
    assert not list(pathlib.Path("/dev/shm").glob(f"{name}-*"))
