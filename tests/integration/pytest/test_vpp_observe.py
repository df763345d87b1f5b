# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a real VPP counts: segment and command line agree, samples are cheap, a restart is noticed."""

from __future__ import annotations

import dataclasses
import os
import re
import statistics
import subprocess
import time
import typing as t

import pytest

from ansible_collections.fastpath.bench.plugins.module_utils._host import sampler
from ansible_collections.fastpath.bench.plugins.module_utils._host.sample_cut import Window
from ansible_collections.fastpath.bench.plugins.module_utils._vpp import ready, runtime, show
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.cli import CliError, Vppctl
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.errors import VppHung
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.session import PapiSession
from ansible_collections.fastpath.bench.tests.support.vpp_process import VppProcess, find_vpp, why_not

pytestmark = pytest.mark.vpp


@pytest.fixture(scope="module")
def process() -> t.Iterator[VppProcess]:
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)
    vpp = VppProcess(workers=1, only=("af_packet_plugin.so", "ping_plugin.so"))
    conf = vpp.folder / "startup.conf"
    conf.write_text(conf.read_text().replace("size 32M", "size 32M per-node-counters on update-interval 0.2"))
    try:
        vpp.add_veth("eth1")
        vpp.ip("addr", "add", "10.88.0.2/24", "dev", "eth1p")
        vpp.start()
        yield vpp
    finally:
        vpp.close()


@pytest.fixture
def vpp(process: VppProcess) -> VppProcess:
    if process.process is None:
        process.start()
    with PapiSession(process.api_socket) as session:
        session.version()
    if "host-eth1" not in process.vppctl("show interface"):
        for command in (
            "create host-interface name eth1",
            "set interface state host-eth1 up",
            "set interface ip address host-eth1 10.88.0.1/24",
        ):
            process.vppctl(command)
    return process


def wish(vpp: VppProcess, **changes: t.Any) -> runtime.Wish:
    cli = Vppctl(vpp.cli_socket, os.path.dirname(find_vpp() or ""))
    return dataclasses.replace(runtime.Wish(str(vpp.folder / "stats.sock"), cli), **changes)


def ping(vpp: VppProcess, address: str, count: int, every_s: float = 0.005) -> subprocess.Popen[bytes]:
    command = ["ip", "netns", "exec", vpp.name, "ping", "-q", "-c", str(count), "-i", str(every_s), address]
    return subprocess.Popen(command, stdout=subprocess.PIPE)


def vectors(record: dict[str, t.Any], node: str) -> int:
    return sum(row["vectors"] for row in record["nodes"] if row["node"] == node)


def test_segment_and_command_line_tell_the_same(vpp: VppProcess) -> None:
    vpp.vppctl("clear runtime")
    ping(vpp, "10.88.0.1", 100).wait()
    time.sleep(0.6)
    segment = runtime.observe(wish(vpp))
    texts = runtime.observe(wish(vpp, source="cli"))
    assert segment["runtime"]["source"] == "stats_segment"
    assert texts["runtime"]["source"] == "cli"
    assert vectors(segment["runtime"], "ip4-icmp-echo-request") == 100
    assert vectors(texts["runtime"], "ip4-icmp-echo-request") == 100
    # the kernel's own neighbour discovery goes on between the two
    received = vectors(segment["runtime"], "af-packet-input")
    assert received >= 100
    assert received <= vectors(texts["runtime"], "af-packet-input") <= received + 5
    assert [thread["name"] for thread in segment["runtime"]["threads"]] == ["vpp_main", "vpp_wk_0"]
    assert [thread["lcore"] for thread in texts["runtime"]["threads"]] == [
        thread["lcore"] for thread in segment["runtime"]["threads"]
    ]
    assert segment["rx_queues"][0]["interface"] == "host-eth1"
    assert segment["rx_queues"][0]["mode"] == "interrupt"


def test_a_bracket_counts_what_happened_in_it(vpp: VppProcess) -> None:
    running = ping(vpp, "10.88.0.1", 2000, 0.002)
    time.sleep(0.3)
    record = runtime.observe(wish(vpp, wait_s=1.0))["runtime"]
    running.terminate()
    running.wait()
    echoed = vectors(record, "ip4-icmp-echo-request")
    assert 100 < echoed / record["seconds"] < 700
    assert record["batching"] == "none"
    assert "no batching" in record["meaning"]


def test_a_drop_is_told_with_its_reason(vpp: VppProcess) -> None:
    before = runtime.Reader(str(vpp.folder / "stats.sock"))
    first = before.snapshot()
    # nobody has this address, so VPP drops what it would have to resolve first
    vpp.ip("route", "replace", "10.89.0.0/24", "via", "10.88.0.1")
    ping(vpp, "10.89.0.9", 20, 0.01).wait()
    _nodes, reasons, interfaces = runtime.difference(first, before.snapshot())
    before.close()
    drops = runtime.drops_report(interfaces, reasons, {})
    assert drops["packets"] >= 20
    assert interfaces["host-eth1"]["drops"] >= 20
    assert sum(row["count"] for row in drops["reasons"]) >= 20


def test_a_sample_is_cheap(vpp: VppProcess) -> None:
    reader = runtime.Reader(str(vpp.folder / "stats.sock"))
    reader.snapshot()
    times = []
    for _number in range(50):
        began = time.process_time()
        reader.snapshot()
        times.append(time.process_time() - began)
    reader.close()
    assert statistics.median(times) < 0.003


def test_the_recorder_has_vpp_in_its_windows_and_notices_a_restart(vpp: VppProcess, tmp_path: t.Any) -> None:
    settings = sampler.Settings(
        "vpp-observe",
        ("lo",),
        interval_s=0.1,
        max_duration_s=60,
        queue_interval_s=0,
        vpp_stats_socket=str(vpp.folder / "stats.sock"),
        directory=str(tmp_path),
    )
    sampler.ensure_started(settings)
    windows: list[Window] = []
    try:
        running = ping(vpp, "10.88.0.1", 4000, 0.002)
        time.sleep(0.5)
        start = time.time()
        time.sleep(2.0)
        end = time.time()
        running.terminate()
        running.wait()
        time.sleep(0.6)
        vpp.kill()
        time.sleep(0.5)
        vpp.start()
        time.sleep(1.5)
        windows += [Window("steady", start, end), Window("across", end - 0.5, time.time() - 0.2)]
    finally:
        result = sampler.ensure_ended(settings, "stopped", windows)
    steady, across = (result["windows"][name]["vpp"] for name in ("steady", "across"))
    assert steady["reason"] is None
    assert steady["threads"][1]["packets"] > 200 or steady["threads"][0]["packets"] > 200
    assert vectors(steady, "ip4-icmp-echo-request") / (end - start) == pytest.approx(350, abs=250)
    assert across["threads"] is None
    assert across["reason"]
    assert result["overhead"]["cpu_per_sample_ms"] < 6


def test_real_refusals_are_seen_although_vppctl_ends_with_0(vpp: VppProcess) -> None:
    cli = wish(vpp).cli
    for command, code in (
        ("foo bar", "unknown_command"),
        ("set interface rx-placement host-eth1 queue 7 worker 0", "unknown_queue"),
        ("set interface rx-mode host-eth1 adaptive", "unsupported"),
        ("create host-interface name nope", "unknown_interface"),
        ("show interface nope", "unknown_input"),
    ):
        with pytest.raises(CliError) as caught:
            cli.run(command)
        assert caught.value.code == code, caught.value.message
    assert re.match(r"vpp v\d+\.\d+", cli.run("show version"))


def test_a_frozen_vpp_is_an_error_in_time(vpp: VppProcess) -> None:
    cli = dataclasses.replace(wish(vpp).cli, timeout_s=0.5)
    with vpp.frozen(), pytest.raises(VppHung):
        cli.run("show version")
    assert cli.run("show version")


def test_the_text_of_this_vpp_is_read_whole(vpp: VppProcess) -> None:
    cli = wish(vpp).cli
    assert show.parse_runtime(cli.run("show runtime verbose"))
    show.parse_errors(cli.run("show errors verbose"))
    assert show.parse_rx_placement(cli.run("show interface rx-placement"))


def test_watching_leaves_no_connection_behind(vpp: VppProcess) -> None:
    """VPP 26.06 keeps a connection that is only opened and closed after an earlier session, and spins on it."""
    asked = ready.Wish(unit=None, api_socket=vpp.api_socket, cli=wish(vpp).cli, stable_s=0.5)
    folder = f"/proc/{vpp.pid}/fd"
    before = len(os.listdir(folder))
    for _number in range(3):
        assert ready.wait(asked)["asked_over"] == "api"
    time.sleep(0.5)
    assert len(os.listdir(folder)) <= before + 1
