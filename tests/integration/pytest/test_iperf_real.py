# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Real iperf between two network namespaces: figures, faults and the pool of servers.

The pool's service manager is replaced by one that starts the same commands
itself, as this machine need not run systemd; the role's unit is tested in the lab.
"""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import statistics
import subprocess
import threading
import time
import typing as t
import uuid

import pytest

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._traffic import iperf, runner, server
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.loss import derived_loss
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.options import TrialOptions

pytestmark = [
    pytest.mark.lab,
    pytest.mark.skipif(os.geteuid() != 0, reason="makes network namespaces"),
    pytest.mark.skipif(shutil.which("iperf") is None, reason="needs iperf"),
]

SERVER = "10.99.7.2"
_LIBC = ctypes.CDLL(None, use_errno=True)


def _enter(path: str) -> None:
    with open(path, "rb") as file:
        if _LIBC.setns(file.fileno(), 0x40000000):
            raise OSError(ctypes.get_errno(), "setns")


@contextlib.contextmanager
def inside(namespace: str) -> t.Iterator[None]:
    """Run in a network namespace, and start processes there."""
    here = "/proc/self/ns/net"
    with open(here, "rb") as home:
        _enter(f"/run/netns/{namespace}")
        try:
            yield
        finally:
            if _LIBC.setns(home.fileno(), 0x40000000):
                raise OSError(ctypes.get_errno(), "setns")


@dataclasses.dataclass
class Net:
    client: str
    server: str


@pytest.fixture(scope="module")
def net() -> t.Iterator[Net]:
    tag = uuid.uuid4().hex[:6]
    made = Net(f"ipf{tag}c", f"ipf{tag}s")
    try:
        for name in (made.client, made.server):
            subprocess.run(["ip", "netns", "add", name], check=True)
            subprocess.run(["ip", "-n", name, "link", "set", "lo", "up"], check=True)
        subprocess.run(
            ["ip", "link", "add", "e1", "netns", made.client, "type", "veth", "peer", "e1", "netns", made.server],
            check=True,
        )
        for name, address in ((made.client, "10.99.7.1/24"), (made.server, SERVER + "/24")):
            subprocess.run(["ip", "-n", name, "addr", "add", address, "dev", "e1"], check=True)
            subprocess.run(["ip", "-n", name, "link", "set", "e1", "up"], check=True)
        yield made
    finally:
        for name in (made.client, made.server):
            subprocess.run(["ip", "netns", "del", name], check=False)


class Direct:
    """A service manager that starts an instance's command by itself, as the unit would."""

    def __init__(self, folder: pathlib.Path, namespace: str, delay_s: float = 0.0) -> None:
        self.folder = folder
        self.namespace = namespace
        self.delay_s = delay_s
        self.running: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, units: t.Sequence[str]) -> None:
        for unit in units:
            name = unit.removeprefix(server.UNIT).removesuffix(".service")
            lines = (self.folder / f"{name}.env").read_text(encoding="utf-8").splitlines()
            command = dict(line.partition("=")[::2] for line in lines)["IPERF_COMMAND"]
            with open(self.folder / f"{name}.out", "wb") as out, open(self.folder / f"{name}.err", "wb") as err:
                wait = f"sleep {self.delay_s}; " if self.delay_s else ""
                self.running[unit] = subprocess.Popen(
                    ["/bin/sh", "-c", f"{wait}exec {command}"], stdout=out, stderr=err, start_new_session=True
                )

    def stop(self, units: t.Sequence[str]) -> None:
        for unit in units:
            process = self.running.get(unit)
            if process is None or process.poll() is not None:
                continue
            for _attempt in range(2):
                os.killpg(process.pid, signal.SIGINT)
                time.sleep(0.01)
            try:
                process.wait(2)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def states(self, units: t.Sequence[str]) -> dict[str, server.State]:
        found = {}
        for unit in units:
            process = self.running.get(unit)
            active = process is not None and process.poll() is None
            found[unit] = server.State(active, process.pid if process and active else 0, "")
        return found


@dataclasses.dataclass
class Bed:
    net: Net
    manager: Direct
    pool: server.Pool
    folder: pathlib.Path

    def start(self, *trials: TrialOptions, listen_s: float = 5.0) -> list[server.Instance]:
        instances = [server.Instance(trial.id, trial) for trial in trials]
        with inside(self.net.server):
            self.pool.start(instances, listen_s=listen_s)
        return instances

    def run(self, *trials: TrialOptions, **more: t.Any) -> list[dict[str, t.Any]]:
        with inside(self.net.client):
            return iperf.run_trials(trials, **more)

    def collect(self, instances: list[server.Instance]) -> dict[str, dict[str, t.Any]]:
        with inside(self.net.server):
            return self.pool.collect(instances)[1]


@pytest.fixture
def bed(net: Net, tmp_path: pathlib.Path) -> t.Iterator[Bed]:
    manager = Direct(tmp_path, net.server)
    made = Bed(net, manager, server.Pool(manager, str(tmp_path)), tmp_path)
    yield made
    for process in manager.running.values():
        if process.poll() is None:
            process.kill()
            process.wait()


_PORTS = iter(range(21000, 29000, 8))


def trial(name: str = "one", **more: t.Any) -> TrialOptions:
    values: dict[str, t.Any] = {"duration_s": 0.5, "warmup_s": 0.25, "interval_s": 0.25, "port": next(_PORTS)}
    return TrialOptions(id=name, server=SERVER, **{**values, **more})


def value(record: dict[str, t.Any], key: str) -> float:
    found = record["metrics"][key]["value"]
    assert found is not None, (key, record["metrics"][key])
    return float(found)


def ends(direction: str, client: dict[str, t.Any], report: dict[str, t.Any]) -> tuple[t.Any, t.Any]:
    """The sending and the receiving end of a direction."""
    return (client, report) if direction == "forward" else (report, client)


@pytest.mark.parametrize("protocol", ["tcp", "udp"])
def test_all_directions_and_streams_as_both_ends_count_them(bed: Bed, protocol: str) -> None:
    more: dict[str, t.Any] = {"protocol": protocol}
    if protocol == "udp":
        more.update(length_bytes=200, rate_pps=4000)
    trials = [
        trial(
            f"{direction}-{parallel}",
            direction=direction,
            parallel=parallel,
            port_per_stream=protocol == "udp" and parallel > 1,
            **more,
        )
        for direction in ("forward", "reverse", "both")
        for parallel in (1, 2)
    ]
    instances = bed.start(*trials)
    records = bed.run(*trials)
    reports = bed.collect(instances)
    # a single trial may be late: TCP waits for a retransmission, a flood's lost end is waited for
    assert statistics.median(record["ended"] - record["started"] for record in records) < 0.75 + 0.3
    for options, record in zip(trials, records):
        report = reports[options.id]
        assert (record["status"], report["status"]) == ("ok", "ok"), (options.id, record["reason"], report["reason"])
        assert record["window"]["end"] - record["window"]["start"] == pytest.approx(0.5, abs=0.15)
        for direction in options.directions:
            sender, receiver = ends(direction, record, report)
            assert value(receiver, f"goodput_{direction}") == pytest.approx(
                value(sender, f"sent_rate_{direction}"), rel=0.35
            )
            sent, received = sender["counts"][direction], receiver["counts"][direction]
            assert len([i for i in receiver["intervals"] if i["direction"] == direction]) == 2
            if protocol == "tcp":
                assert sent["sent_bytes"] == received["received_bytes"]
                assert value(sender, f"retransmits_{direction}") >= 0
            else:
                gap = sent["sent_packets"] - received["received_packets"] - received["lost_packets"]
                assert abs(gap) <= 3 * options.parallel
                assert value(receiver, f"tool_loss_ratio_{direction}") == pytest.approx(0, abs=0.05)
                ratio, _findings = derived_loss(record, report, direction)
                assert ratio is not None
                assert ratio[1].value == pytest.approx(0, abs=0.05)


@pytest.mark.skipif(shutil.which("iperf3") is None, reason="needs iperf3")
def test_iperf3_knows_both_ends(bed: Bed) -> None:
    trials = [
        trial("tcp", tool="iperf3", direction="both", parallel=2),
        trial("udp", tool="iperf3", protocol="udp", length_bytes=200, rate_pps=4000),
    ]
    instances = bed.start(*trials)
    tcp, udp = bed.run(*trials)
    reports = bed.collect(instances)
    assert (tcp["status"], udp["status"]) == ("ok", "ok"), (tcp["reason"], udp["reason"])
    assert value(tcp, "goodput_total") > 0
    assert value(udp, "forwarding_rate_forward") == pytest.approx(4000, rel=0.1)
    assert {report["status"] for report in reports.values()} == {"ok"}, reports


def test_refused_is_tried_again_within_bounds_and_has_no_figure(bed: Bed) -> None:
    (record,) = bed.run(trial(), retries=1)
    assert (record["status"], record["code"], record["tries"]) == ("failed", "connection_refused", 2)
    assert record["metrics"]["goodput_forward"]["value"] is None
    assert "Connection refused" in record["raw"]["client.txt"]


def test_udp_without_a_server_has_no_figure(bed: Bed) -> None:
    (record,) = bed.run(trial(protocol="udp", rate_pps=1000))
    assert (record["status"], record["code"]) == ("failed", "connection_refused")
    assert {metric["value"] for metric in record["metrics"].values()} == {None}


def test_unlimited_udp_in_both_directions_over_several_streams(bed: Bed) -> None:
    """Floods lose their closing datagrams; neither the figures nor the clock may suffer."""
    trials = [
        trial(
            f"{direction}-{turn}",
            protocol="udp",
            length_bytes=64,
            direction=direction,
            parallel=2,
            port_per_stream=True,
        )
        for direction in ("reverse", "both")
        for turn in range(2)
    ]
    instances = bed.start(*trials)
    records = bed.run(*trials)
    reports = bed.collect(instances)
    for options, record in zip(trials, records):
        assert record["status"] == "ok", (options.id, record["reason"], record["raw"]["client.txt"])
        assert reports[options.id]["status"] == "ok", (options.id, reports[options.id]["reason"])
        assert value(record, "forwarding_rate_reverse") > 1000
    assert statistics.median(record["ended"] - record["started"] for record in records) < 0.75 + 1.2


def test_a_server_that_dies_in_the_middle_fails_the_trial(bed: Bed) -> None:
    options = trial(duration_s=1.5)
    instances = bed.start(options)
    process = bed.manager.running[instances[0].unit]
    timer = threading.Timer(0.7, process.kill)
    timer.start()
    (record,) = bed.run(options)
    report = bed.collect(instances)[options.id]
    assert (record["status"], record["code"]) == ("failed", "connection_lost")
    assert report["status"] == "failed"
    assert [found["code"] for found in report["findings"]] == ["server_died"]


def test_a_server_nobody_used_has_no_report(bed: Bed) -> None:
    options = trial()
    report = bed.collect(bed.start(options))[options.id]
    assert (report["status"], report["code"]) == ("failed", "no_report")
    assert report["metrics"]["goodput_forward"]["value"] is None


@pytest.mark.parametrize(("protocol", "kind"), [("tcp", socket.SOCK_STREAM), ("udp", socket.SOCK_DGRAM)])
def test_a_busy_port_is_refused_and_its_owner_named(bed: Bed, protocol: str, kind: int) -> None:
    options = trial(protocol=protocol)
    with inside(bed.net.server), socket.socket(socket.AF_INET, kind) as other:
        other.bind(("0.0.0.0", options.port))
        if protocol == "tcp":
            other.listen()
        with pytest.raises(BenchError) as caught:
            bed.pool.start([server.Instance("one", options)])
    assert caught.value.code == "port_busy"
    assert f"(pid {os.getpid()})" in caught.value.message
    assert bed.manager.running == {}


def script(folder: pathlib.Path, version: str, body: str) -> str:
    path = folder / "iperf"
    path.write_text(f'#!/bin/sh\n[ "$1" = --version ] && {{ echo "{version}"; exit 0; }}\n{body}\n', encoding="utf-8")
    path.chmod(0o755)
    return str(path)


def test_one_that_cannot_be_served_is_told_and_the_others_run(bed: Bed) -> None:
    busy, good = trial("busy"), trial("good")
    instances = [server.Instance(options.id, options) for options in (busy, good)]
    with inside(bed.net.server), socket.socket() as other:
        other.bind(("0.0.0.0", busy.port))
        other.listen()
        told = bed.pool.start(instances, partial=True).as_result()
    assert told["refused"]["busy"]["code"] == "port_busy"
    assert list(told["refused"]) == ["busy"]
    (record,) = bed.run(good)
    assert record["status"] == "ok", record["reason"]
    reports = bed.collect(instances)
    assert reports["good"]["status"] == "ok"
    assert (reports["busy"]["code"], reports["busy"]["findings"]) == ("no_report", [])


def test_a_server_too_old_is_refused_for_the_trials_that_need_more(bed: Bed, tmp_path: pathlib.Path) -> None:
    """Its client is new and knows nothing of it: forward would be measured in place of what was asked for."""
    old = script(tmp_path, "iperf version 2.0.13 (21 Jan 2019) pthreads", f'exec {shutil.which("iperf")} "$@"')
    pool = server.Pool(bed.manager, str(tmp_path), programs={"iperf2": old})
    instances = [server.Instance(name, trial(name, direction=name)) for name in ("forward", "reverse", "both")]
    with inside(bed.net.server):
        refused = pool.start(instances, partial=True).refused
    assert {name: error.code for name, error in refused.items()} == dict.fromkeys(("reverse", "both"), "tool_too_old")
    assert set(bed.manager.running) == {instances[0].unit}
    with inside(bed.net.server), pytest.raises(BenchError, match=r"2\.0\.13 is too old"):
        pool.start(instances)


def test_a_whole_report_is_no_less_for_a_server_that_ended(bed: Bed) -> None:
    """As when the run that had started it was broken off, and is resumed."""
    options = trial()
    instances = bed.start(options)
    (record,) = bed.run(options)
    assert record["status"] == "ok", record["reason"]
    time.sleep(0.5)
    bed.manager.stop([instances[0].unit])
    report = bed.collect(instances)[options.id]
    assert (report["status"], report["findings"]) == ("ok", [])


def test_what_a_stopped_server_counted_survives_the_next_start(bed: Bed) -> None:
    options = trial("first")
    instances = bed.start(options)
    (record,) = bed.run(options)
    assert record["status"] == "ok", record["reason"]
    bed.collect(instances)
    bed.start(trial("second"))
    assert bed.collect(instances)["first"]["status"] == "ok"
    os.utime(bed.folder / "first.env", (0, 0))
    bed.start(trial("third"))
    assert not (bed.folder / "first.out").exists()


def test_a_flow_without_its_last_row_is_not_waited_for_to_the_end(bed: Bed) -> None:
    options = trial("lost", protocol="udp", rate_pps=1000)
    instances = bed.start(options)
    (record,) = bed.run(options)
    assert record["status"] == "ok", record["reason"]
    # as iperf leaves it when the packets at the end of a flow were lost: it runs, and says no more
    out = bed.folder / f"{instances[0].name}.out"
    rows = out.read_text(encoding="utf-8").splitlines(keepends=True)
    kept = [row for row in rows if not re.search(r" 0\.0+-0\.[5-9]", row)]
    assert len(kept) < len(rows)
    out.write_text("".join(kept), encoding="utf-8")
    begin = time.monotonic()
    bed.collect(instances)
    assert 1.0 < time.monotonic() - begin < 2.5


def test_start_waits_for_a_slow_server(net: Net, tmp_path: pathlib.Path) -> None:
    manager = Direct(tmp_path, net.server, delay_s=1.0)
    slow = Bed(net, manager, server.Pool(manager, str(tmp_path)), tmp_path)
    options = trial(protocol="udp", rate_pps=1000)
    begin = time.monotonic()
    instances = slow.start(options)
    assert time.monotonic() - begin > 0.9
    (record,) = slow.run(options)
    assert record["status"] == "ok", record["reason"]
    assert slow.collect(instances)[options.id]["status"] == "ok"


def test_a_server_that_never_listens_is_an_error_within_the_bound(net: Net, tmp_path: pathlib.Path) -> None:
    manager = Direct(tmp_path, net.server, delay_s=30.0)
    never = Bed(net, manager, server.Pool(manager, str(tmp_path)), tmp_path)
    with pytest.raises(BenchError) as caught:
        never.start(trial(), listen_s=0.3)
    assert caught.value.code == "server_not_listening"
    assert all(process.poll() is not None for process in manager.running.values())


def test_starting_twice_changes_nothing_and_other_options_do(bed: Bed) -> None:
    options = trial()
    instances = bed.start(options)
    pid = bed.manager.running[instances[0].unit].pid
    with inside(bed.net.server):
        assert bed.pool.start(instances).changed is False
        assert bed.manager.running[instances[0].unit].pid == pid
        other = [server.Instance(options.id, dataclasses.replace(options, window_bytes=65536))]
        assert bed.pool.start(other, check=True).changed is True
        assert bed.manager.running[instances[0].unit].pid == pid
        assert bed.pool.start(other).changed is True
        assert bed.manager.running[instances[0].unit].pid != pid


def test_an_idle_server_of_an_earlier_run_makes_room(bed: Bed) -> None:
    options = trial("earlier")
    bed.start(options)
    os.utime(bed.folder / "earlier.out", (0, 0))
    instances = bed.start(dataclasses.replace(options, id="later"))
    (record,) = bed.run(dataclasses.replace(options, id="later"))
    assert record["status"] == "ok", record["reason"]
    assert bed.collect(instances)["later"]["status"] == "ok"


def test_a_tool_that_does_not_end_is_ended_with_its_children(bed: Bed, tmp_path: pathlib.Path) -> None:
    program = script(tmp_path, "iperf version 2.1.8 (12 August 2022)", f"sleep 61 & echo $! > {tmp_path}/child; wait")
    (record,) = bed.run(trial(extra_s=0.3), program=program)
    assert (record["status"], record["code"]) == ("failed", "time_limit")
    assert record["ended"] - record["started"] < 3
    child = int((tmp_path / "child").read_text(encoding="utf-8"))
    status = pathlib.Path(f"/proc/{child}/status")
    deadline = time.monotonic() + 5  # it was killed, but a busy machine may not have got to it yet
    while status.exists() and "(zombie)" not in status.read_text(encoding="utf-8"):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_tool_too_old_is_named_with_what_is_needed(bed: Bed, tmp_path: pathlib.Path) -> None:
    program = script(tmp_path, "iperf version 2.0.13 (21 Jan 2019) pthreads", "exit 1")
    reverse, forward = bed.run(trial("r", direction="reverse"), trial("f"), program=program)
    assert reverse["code"] == "tool_too_old"
    assert "2.0.13" in reverse["reason"]
    assert "2.1.0" in reverse["reason"]
    assert forward["code"] != "tool_too_old"


def test_an_absent_tool_is_named(bed: Bed) -> None:
    with pytest.raises(BenchError) as caught:
        iperf.run_trial(trial(), program="iperf-that-is-not-there")
    assert caught.value.code == "tool_absent"
    with pytest.raises(BenchError, match="not on this host"):
        runner.find_program("iperf-that-is-not-there")


def test_a_full_disk_costs_no_result(bed: Bed, tmp_path: pathlib.Path) -> None:
    spool = tmp_path / "spool"
    spool.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8k", "tmpfs", str(spool)], check=True)
    try:
        trials = [trial(f"t{number}", duration_s=0.25, parallel=2) for number in range(4)]
        instances = bed.start(*trials)
        records = bed.run(*trials, spool_dir=str(spool))
        bed.collect(instances)
        assert [record["status"] for record in records] == ["ok"] * 4
        failed = [record for record in records if "spool_failed" in [f["code"] for f in record["findings"]]]
        assert 0 < len(failed) < 4
        kept = sorted(path.name for path in spool.iterdir())
        assert kept == sorted(f"{record['id']}.json" for record in records if record not in failed)
        for name in kept:
            assert json.loads((spool / name).read_text(encoding="utf-8"))["status"] == "ok"
    finally:
        subprocess.run(["umount", str(spool)], check=True)
