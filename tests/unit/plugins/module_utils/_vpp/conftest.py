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
from ansible_collections.fastpath.bench.tests.support import udp_flows
from ansible_collections.fastpath.bench.tests.support.vpp_process import VppProcess, why_not
from ansible_collections.fastpath.bench.tests.unit.plugins.module_utils._vpp.fake_vpp import FakeLinks, FakeVpp

PLUGINS = ("af_packet", "af_xdp", "memif", "tap", "nat", "nat44_ei", "det44", "nsim", "ping", "mss_clamp")
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

    stats_socket: str | None = None

    def flows(self, number: int, first: int = 0) -> None:
        """One UDP packet of each flow arrives on eth1, for a host behind eth2."""
        for nat in self.vpp.nat.values():
            for flow in range(first, first + number):
                if nat.on and nat.sides and nat.pools:
                    nat.flow((f"10.1.0.{1 + flow // 50_000}", 10_000 + flow % 50_000))


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

    @property
    def stats_socket(self) -> str | None:
        return str(self.process.folder / "stats.sock")

    def flows(self, number: int, first: int = 0) -> None:
        self.process.vppctl("ip neighbor host-eth2 198.51.100.2 02:00:00:00:00:99")
        words = self.process.vppctl("show hardware-interfaces host-eth1").split()
        mac = words[words.index("address") + 1]
        ends = {"source": "10.1.0.1", "target": "198.51.100.2"}
        udp_flows.send(self.process.name, "eth1p", to_mac=mac, **ends, flows=number, first=first)
        self.process.settle()


@pytest.fixture(scope="session")
def vpp_process() -> t.Iterator[VppProcess]:
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)
    # only what the tests use: it starts in half the time
    process = VppProcess(workers=1, only=[f"{name}_plugin.so" for name in PLUGINS])
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
