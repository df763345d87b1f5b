# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What only a real VPP can show of NAT44: a pool that is exhausted, a VPP that dies, what a session costs."""

from __future__ import annotations

import os
import re
import signal
import threading
import time
import typing as t

import pytest

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._vpp import interface_run, nat44, nat44_config, nat44_run
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.errors import VppGone
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.session import PapiSession
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.show import parse_runtime
from ansible_collections.fastpath.bench.tests.support import udp_flows
from ansible_collections.fastpath.bench.tests.support.vpp_process import VppProcess, why_not
from ansible_collections.fastpath.bench.tests.unit.plugins.module_utils._vpp.test_contract_nat44 import FULL

pytestmark = pytest.mark.vpp

MAC = "02:00:00:00:00:11"
ED = {
    "interfaces": [{"name": "host-eth1", "role": "inside"}, {"name": "host-eth2", "role": "outside"}],
    "pools": [{"first": "198.51.100.10"}],
}


class Router:
    """A VPP between two networks, with a host on the outside that takes everything."""

    def __init__(self, process: VppProcess) -> None:
        self.process = process

    def start(self) -> None:
        self.process.restart()
        config: list[dict[str, t.Any]] = [
            {"type": "af_packet", "host_interface": "eth1", "mac": MAC, "up": True, "addresses": ["10.0.0.1/8"]},
            {"type": "af_packet", "host_interface": "eth2", "up": True, "addresses": ["198.51.100.1/24"]},
            {"type": "af_packet", "host_interface": "eth3", "up": True, "addresses": ["203.0.113.1/24"]},
            {"type": "loopback", "instance": 0, "up": True, "addresses": ["192.0.2.1/24"]},
        ]
        with PapiSession(self.process.api_socket, timeout_s=60) as session:
            interface_run.run(session, config, "merged")
        self.process.vppctl("ip neighbor host-eth2 198.51.100.2 02:00:00:00:00:99")
        self.process.vppctl("ip neighbor host-eth3 203.0.113.2 02:00:00:00:00:99")

    def nat(self, state: str = "merged", **options: t.Any) -> dict[str, t.Any]:
        more = {name: options.pop(name) for name in ("reenable",) if name in options}
        with PapiSession(self.process.api_socket, timeout_s=60) as session:
            return nat44_run.run(session, options, state, stats_socket=self.stats_socket, **more)

    @property
    def stats_socket(self) -> str:
        return str(self.process.folder / "stats.sock")

    def flows(self, number: int, first: int = 0, *, settle: bool = True) -> None:
        ends = {"source": "10.1.0.1", "target": "198.51.100.2"}
        udp_flows.send(self.process.name, "eth1p", to_mac=MAC, **ends, flows=number, first=first)
        if settle:
            self.process.settle()

    def source_of(self, target: str, flow: int) -> str | None:
        """From which address a packet of a flow of 10.1.0.1 leaves to there, by VPP's trace; None when it does not."""
        self.process.vppctl("clear trace")
        self.process.vppctl("trace add af-packet-input 100")
        ends = {"source": "10.1.0.1", "target": target}
        udp_flows.send(self.process.name, "eth1p", to_mac=MAC, **ends, flows=1, first=flow)
        self.process.settle()
        for packet in self.process.vppctl("show trace max 100").split("Packet "):
            told = re.findall(r"UDP: (\S+\.\S+) -> (\S+\.\S+)", packet)
            if told and told[-1][1] == target and "-tx" in packet:
                return str(told[-1][0])
        return None

    def sessions(self, wanted: int, first: int = 0) -> dict[str, t.Any]:
        """Send the flows until all have their session; what a busy machine lost on the way is sent again."""
        for _time in range(10):
            self.flows(wanted, first)
            counts = self.nat("gathered")["sessions"]
            if counts["total"] >= wanted:
                break
        return t.cast("dict[str, t.Any]", counts)


@pytest.fixture(scope="module")
def process() -> t.Iterator[VppProcess]:
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)
    vpp = VppProcess(workers=1, only=[f"{name}_plugin.so" for name in ("af_packet", "nat", "nat44_ei")])
    try:
        for name in ("eth1", "eth2", "eth3"):
            vpp.add_veth(name)
        yield vpp
    finally:
        vpp.close()


@pytest.fixture
def router(process: VppProcess) -> Router:
    router = Router(process)
    router.start()
    return router


def refused(code: str, call: t.Callable[..., t.Any], *args: t.Any, **options: t.Any) -> BenchError:
    with pytest.raises(BenchError) as caught:
        call(*args, **options)
    assert caught.value.code == code, caught.value
    return caught.value


def test_fifty_thousand_flows_make_fifty_thousand_sessions(router: Router) -> None:
    router.nat(sessions=100_000, **ED)
    counts = router.sessions(50_000)
    assert (counts["total"], counts["protocols"]["udp"]["total"], counts["threads"]) == (50_000, 50_000, [0, 50_000])
    cleared = router.nat("cleared")
    assert (cleared["sessions_before"]["total"], cleared["sessions"]["total"]) == (50_000, 0)
    assert cleared["sessions"]["threads"] == [0, 0]


def test_an_exhausted_pool_is_told_by_what_was_dropped(router: Router) -> None:
    router.nat(sessions=200_000, **ED)
    # one address has 64512 ports for one destination, and VPP gives up when it does not soon find a free one
    router.flows(70_000)
    router.flows(70_000)
    counts = router.nat("gathered")["sessions"]
    assert 60_000 < counts["total"] <= 64_512
    assert counts["drops"]["out_of_ports"] > 0
    assert counts["drops"]["sessions_exceeded"] == 0
    # a second address has room for the others, without a re-enable
    told = router.nat(pools=[{"first": "198.51.100.11"}])
    assert told["sessions"]["total"] == counts["total"]
    # VPP has one address of the pool for an inside address, and never takes another one for it
    router.nat("cleared")
    assert router.sessions(70_000)["total"] == 70_000


def test_a_table_that_is_full_lets_no_other_session_in(router: Router) -> None:
    router.nat(sessions=2000, **ED)
    router.flows(2500)
    told = router.nat("gathered")
    assert told["sessions"]["total"] == 2000
    assert told["sessions"]["drops"]["sessions_exceeded"] >= 1
    assert told["sessions"]["full"] == 1.0
    assert "nat_table_nearly_full" in [one["code"] for one in told["findings"]]


@pytest.mark.parametrize("mode", [nat44.ED.name, nat44.EI.name])
def test_what_leaves_by_another_interface_is_not_translated(router: Router, mode: str) -> None:
    router.nat(mode=mode, **ED)
    assert router.source_of("198.51.100.2", flow=0) == "198.51.100.10"
    # it comes in by the inside, and leaves by one that is no outside
    assert router.source_of("203.0.113.2", flow=1) == "10.1.0.1"
    assert router.nat("gathered", mode=mode)["sessions"]["total"] == 1
    # one that knows a session by its inside end alone looks no further
    translated = mode == nat44.EI.name
    assert router.source_of("203.0.113.2", flow=0) == ("198.51.100.10" if translated else "10.1.0.1")


@pytest.mark.parametrize("mode", [nat44.ED.name, nat44.EI.name])
def test_the_rendered_script_makes_what_the_module_asks(router: Router, mode: str) -> None:
    asked = {**FULL[mode], "mode": mode}
    error = refused("not_renderable", nat44_config.render, asked, nat44.MODES[mode])
    assert "tag" in str(error)
    mappings = [{name: value for name, value in one.items() if name != "tag"} for one in asked["static_mappings"]]
    asked["static_mappings"] = mappings
    lines = nat44_config.render(asked, nat44.MODES[mode])
    script = router.process.folder / "nat.vpp"
    script.write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert router.process.vppctl(f"exec {script}").strip() == ""
    assert router.nat("replaced", **asked)["changes"] == []


def test_a_vpp_that_dies_in_the_middle_is_said_and_a_rerun_converges(router: Router) -> None:
    mappings = [
        {"local": f"10.9.{n // 200}.{1 + n % 200}", "external": f"203.0.{n // 200}.{1 + n % 200}"} for n in range(1500)
    ]
    asked = {**ED, "sessions": 1000, "static_mappings": mappings}
    pid = router.process.pid

    def kill_when_it_works() -> None:
        deadline = time.monotonic() + 20
        with PapiSession(router.process.api_socket, timeout_s=60) as session:
            while time.monotonic() < deadline:
                if len(session.call("nat44_static_mapping_dump")) > 200:
                    break
        os.kill(pid, signal.SIGKILL)

    killer = threading.Thread(target=kill_when_it_works)
    killer.start()
    try:
        with pytest.raises(VppGone, match="run the task again"):
            router.nat(**asked)
    finally:
        killer.join()
    # it comes back with nothing, and so with no NAT44
    router.start()
    assert not router.nat("gathered")["nat44"]["enabled"]
    refused("nat44_off", router.nat, "cleared")
    assert router.nat(**asked)["changed"]
    assert not router.nat(**asked)["changed"]


def test_a_packet_that_opens_a_session_is_dearer_than_one_that_has_it(router: Router) -> None:
    router.nat(sessions=100_000, **ED)
    nodes = ("nat44-ed-in2out", "nat44-ed-in2out-slowpath")

    def clocks(flows: int) -> float:
        """Clocks of these nodes for each packet of the first of them, while so many flows are sent, over and over."""
        router.process.vppctl("clear runtime")
        for _time in range(20_000 // flows):
            router.flows(flows, settle=False)
        router.process.settle()
        rows = [node for thread in parse_runtime(router.process.vppctl("show runtime")) for node in thread.nodes]
        packets = sum(node.vectors for node in rows if node.name == nodes[0])
        return sum(node.clocks * node.vectors for node in rows if node.name in nodes) / packets

    slow = clocks(20_000)
    # few flows, whose sessions are at hand
    fast = clocks(500)
    print(f"clocks for each packet: {slow:.0f} with a new session, {fast:.0f} without: {slow / fast:.1f} times")
    assert slow > 2 * fast
