# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The same tests for the VPP in memory and for a real one: what holds for one must hold for the other."""

from __future__ import annotations

import contextlib
import typing as t

import pytest

from ansible_collections.fastpath.bench.plugins.module_utils._vpp.host_links import HostLinks
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.session import PapiSession
from ansible_collections.fastpath.bench.tests.support.vpp_process import VppProcess, why_not
from ansible_collections.fastpath.bench.tests.unit.plugins.module_utils._vpp.fake_vpp import FakeLinks, FakeVpp

#: Devices of the kernel that each test finds, with their MTU.
HOST = {"eth1": 1500, "eth2": 9000}


class Fake:
    """The VPP in memory, with the handles that the tests need."""

    real = False

    def __init__(self) -> None:
        self.vpp = FakeVpp(workers=1, host=HOST)

    def session(self) -> t.Any:
        return self.vpp.session()

    def links(self, session: t.Any) -> t.Any:
        return FakeLinks(self.vpp)

    def restart(self) -> None:
        self.vpp.restart()


class Real:
    """A VPP process."""

    real = True

    def __init__(self, process: VppProcess) -> None:
        self.process = process

    def session(self) -> t.Any:
        return PapiSession(self.process.api_socket, timeout_s=10)

    def links(self, session: t.Any) -> t.Any:
        return HostLinks(session.pid())

    def restart(self) -> None:
        self.process.restart()


@pytest.fixture(scope="session")
def vpp_process() -> t.Iterator[VppProcess]:
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)
    # only what the tests use: it starts in half the time
    process = VppProcess(workers=1, only=[f"{name}_plugin.so" for name in ("af_packet", "af_xdp", "memif", "tap")])
    with contextlib.closing(process):
        for name, mtu in HOST.items():
            process.add_veth(name, mtu_bytes=mtu)
        yield process


@pytest.fixture
def real_vpp(vpp_process: VppProcess) -> Real:
    """Started anew, so with nothing in it."""
    vpp_process.restart()
    return Real(vpp_process)


@pytest.fixture(params=["fake", pytest.param("real", marks=pytest.mark.vpp)])
def vpp(request: pytest.FixtureRequest) -> t.Any:
    return Fake() if request.param == "fake" else request.getfixturevalue("real_vpp")
