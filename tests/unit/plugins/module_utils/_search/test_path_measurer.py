# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The measurer with a program in iperf2's place that really sends, and reports as 2.1.8 does; both ways at once."""

from __future__ import annotations

import json
import os
import pathlib
import socket
import sys
import threading
import time
import typing as t

import pytest

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._search import source, verdict
from ansible_collections.fastpath.bench.plugins.module_utils._search.frames import parse_frames
from ansible_collections.fastpath.bench.plugins.module_utils._search.iperf_sender import IperfSender
from ansible_collections.fastpath.bench.plugins.module_utils._search.path_measurer import PathMeasurer, Way
from ansible_collections.fastpath.bench.plugins.module_utils._search.sender import Settings
from ansible_collections.fastpath.bench.plugins.module_utils._traffic import iperf, sink

LOOPBACK = "127.0.0.1"
#: FAKE_* in its environment make it misbehave.
PROGRAM = '''#!{python} -SE
import os, socket, sys
words = sys.argv[1:]
if words == ["--version"]:
    print("iperf version 2.1.8 (12 August 2022) pthreads"); sys.exit()
if words == ["--help"]:
    print(os.environ.get("FAKE_HELP", "      --no-udp-fin  No final server to client stats")); sys.exit()
given = dict(zip(words, words[1:]))
rate = given["-b"]
pps = 400 if rate.endswith("g") else int(rate[:-3])
seconds, size, port = float(given["-t"]), int(given["-l"]), int(given["-p"])
calibration = given["-t"] == "0.2"
count = int(pps * seconds)
hidden = int(os.environ.get("FAKE_HIDDEN", "1"))
lost = 0 if calibration else int(os.environ.get("FAKE_LOST", "0"))
if os.environ.get("FAKE_FAILS") and not calibration:
    print("write failed: Network is unreachable", file=sys.stderr); sys.exit(1)
if os.environ.get("FAKE_HANGS") and not calibration:
    import pathlib, time
    pathlib.Path(os.environ["FAKE_HANGS"]).write_text(str(os.getpid())); time.sleep(60)
out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
out.connect((given["-c"], port))
for number in range(count + hidden - lost):
    out.send(bytes(size))
bits = count * size * 8
took = seconds + float(os.environ.get("FAKE_LATE", "0"))
print(f"""[  1] local 127.0.0.1 port 5 connected with 127.0.0.1 port {{port}} (no-udp-fin) on 2026-11-30 14:37:36 (UTC)
------------------------------------------------------------
Client connecting to 127.0.0.1, UDP port {{port}} with pid 26331 (1 flows)
TOS set to 0x0 (Nagle on)
Sending {{size}} byte datagrams, IPG target: 10.00 us (kalman adjust)
UDP buffer size: 212992 Byte (default)
------------------------------------------------------------
[ ID] Interval            Transfer     Bandwidth      Write/Err  PPS
[  1] 0.0000-{{took:.4f}} sec {{count * size}} Bytes  {{bits / took:.0f}} bits/sec {{count}}/0 {{count / took:.0f}} pps
[  1] Sent {{count + 2}} datagrams""")
'''

Make = t.Callable[..., PathMeasurer]


@pytest.fixture
def iperf2(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> t.Iterator[None]:
    program = tmp_path / "iperf"
    program.write_text(PROGRAM.format(python=sys.executable), encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setitem(iperf.PROGRAMS, "iperf2", str(program))
    iperf.probe.cache_clear()
    yield
    iperf.probe.cache_clear()


@pytest.fixture
def make(iperf2: None) -> t.Iterator[Make]:
    counting = sink.Sink(sink.Settings(bind_addresses=(LOOPBACK,)))
    ended = threading.Event()
    wake, end = os.pipe()
    thread = threading.Thread(target=counting.serve, args=(wake, ended.is_set, time.monotonic() + 60))
    thread.start()
    made: list[PathMeasurer] = []

    def measurer(frame: str = "64", *back: Way, **options: t.Any) -> PathMeasurer:
        settings = Settings(LOOPBACK, counting.port, parse_frames(frame), **options)
        way = Way("forward", IperfSender(settings), sink.SinkClient(LOOPBACK, counting.port))
        made.append(PathMeasurer([way, *back], ping_to=LOOPBACK))
        return made[-1]

    yield measurer
    for one in made:
        one.close()
    ended.set()
    os.write(end, b"x")
    thread.join()
    counting.close()
    os.close(wake)
    os.close(end)


def test_what_the_report_leaves_out_is_counted(make: Make) -> None:
    measurer = make()
    seen = measurer.measure(500, 1.0)
    found = verdict.judge(500, 1.0, seen, measurer.limits)
    assert (found.code, found.sent, found.received) == (verdict.OK, 501, 501)
    assert seen.window is not None


def test_another_release_may_leave_out_another_number(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_HIDDEN", "0")
    seen = make().measure(500, 1.0)
    assert seen.counts[0].sent == seen.counts[0].received == 500


def test_counts_that_cannot_be_used_are_refused(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_HIDDEN", "-3")
    seen = make().measure(500, 1.0)
    assert seen.error is not None
    assert seen.error[0] == "generator_uncounted"


def test_a_mix_is_sent_by_its_recipe(make: Make) -> None:
    measurer = make("imix", parallel=2)
    seen = measurer.measure(1200, 1.0)
    sizes = {stream["frame_bytes"]: 0 for stream in seen.detail["streams"]}
    for stream in seen.detail["streams"]:
        sizes[stream["frame_bytes"]] += stream["packets"]
    assert sizes == {64: 702, 594: 402, 1518: 102}
    assert seen.counts[0].received == 1206
    assert measurer.profile()["streams"] == 6


def test_a_lost_packet_is_lost(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_LOST", "1")
    measurer = make()
    found = verdict.judge(500, 1.0, measurer.measure(500, 1.0), measurer.limits)
    assert (found.code, found.lost, found.sent) == (verdict.LOSS, 1, 501)


def test_a_tool_that_fails_is_a_tool_error(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_FAILS", "1")
    seen = make().measure(500, 1.0)
    assert seen.error is not None
    assert "Network is unreachable" in seen.error[1]
    with pytest.raises(BenchError, match="Network is unreachable"):
        make().probe(1.0)


def test_a_late_end_is_seen(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_LATE", "0.5")
    measurer = make()
    found = verdict.judge(500, 1.0, measurer.measure(500, 1.0), measurer.limits)
    assert found.code == verdict.WRONG_DURATION


def test_the_highest_rate_is_asked_for_without_a_limit(make: Make) -> None:
    assert make(parallel=3).probe(1.0) == pytest.approx(1203)


def test_a_release_without_the_option_is_refused(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_HELP", "nothing of it")
    with pytest.raises(BenchError, match="no-udp-fin"):
        make()


def test_no_receiver_is_a_tool_error(make: Make) -> None:
    measurer = make()
    measurer.ways[0].sink = sink.SinkClient(LOOPBACK, 1, timeout_s=0.2)
    seen = measurer.measure(500, 1.0)
    assert seen.error is not None
    assert seen.error[0] == "sink_silent"


# --------------------------------------------------------------------------- the direction that comes back


@pytest.fixture
def other_end() -> t.Iterator[source.Source]:
    made = source.Source(source.Service(bind_address=LOOPBACK))
    ended = threading.Event()
    wake, end = os.pipe()
    thread = threading.Thread(target=made.serve, args=(wake, ended.is_set, time.monotonic() + 60))
    thread.start()
    yield made
    ended.set()
    os.write(end, b"x")
    thread.join()
    made.close()
    os.close(wake)
    os.close(end)


def way_back(other_end: source.Source, frame: str = "64", **options: t.Any) -> Way:
    counter = sink.LocalSink(LOOPBACK)
    settings = Settings(LOOPBACK, counter.port, parse_frames(frame), **options)
    return Way("reverse", source.RemoteSender(settings, "iperf2", (LOOPBACK, other_end.port)), counter)


def test_both_ways_at_once(make: Make, other_end: source.Source) -> None:
    measurer = make("imix", way_back(other_end, "imix"))
    began = time.monotonic()
    seen = measurer.measure(600, 1.0)
    found = verdict.judge(600, 1.0, seen, measurer.limits)
    assert [(count.direction, count.sent, count.received) for count in seen.counts] == [
        ("forward", 603, 603),
        ("reverse", 603, 603),
    ]
    assert (found.code, found.sent) == (verdict.OK, 1206)
    # the second trial prepares nothing any more
    assert measurer.measure(100, 0.5).error is None
    assert time.monotonic() - began < 60
    profile = measurer.profile()
    # RFC 9971: a report says where a trial differs from that of RFC 2544, and whether the load is constant
    assert len(profile["deviations"]) == 3
    assert (profile["load"], profile["modifiers"]) == ("constant", "none")
    assert [part["parts"] for part in profile["frames"]["recipe"]] == [7, 4, 1]
    assert profile["directions"] == ["forward", "reverse"]
    assert [row["direction"] for row in profile["destinations"]] == ["forward", "reverse"]
    assert measurer.probe(1.0) == pytest.approx(3 * 401)


def test_one_direction_that_is_dead(make: Make, other_end: source.Source) -> None:
    back = way_back(other_end)
    nobody = sink.LocalSink(LOOPBACK)
    back.sink, counted = nobody, back.sink
    measurer = make("64", back)
    measurer.settle_s = 0.2
    found = verdict.judge(500, 1.0, measurer.measure(500, 1.0), measurer.limits)
    assert (found.code, found.reason) == (verdict.DIRECTION_DEAD, "nothing of what was sent reverse arrived")
    counted.close()


def test_what_the_other_end_cannot_do_is_told(
    make: Make, other_end: source.Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    measurer = make("64", way_back(other_end))
    assert measurer.measure(100, 0.2).error is None
    monkeypatch.setenv("FAKE_FAILS", "1")
    seen = PathMeasurer([measurer.ways[1]], ping_to=LOOPBACK).measure(500, 0.3)
    assert seen.error is not None
    assert "Network is unreachable" in seen.error[1]
    monkeypatch.delenv("FAKE_FAILS")
    assert measurer.measure(100, 0.2).error is None


def test_a_source_that_serves_somebody_else_says_so(make: Make, other_end: source.Source) -> None:
    first, second = way_back(other_end), way_back(other_end)
    first.sender.prepare()
    with pytest.raises(BenchError, match="somebody else") as busy:
        second.sender.prepare()
    assert busy.value.code == "source_busy"
    for way in (first, second):
        way.sender.close()
        way.sink.close()


@pytest.mark.parametrize(
    "order",
    [
        b"GET / HTTP/1.0",
        b"{}",
        b"[]",
        b'{"magic": "fastpath-source-1", "do": "send", "load_pps": 1, "duration_s": 1}',
        b'{"magic": "fastpath-source-1", "do": "prepare", "generator": "rm", "port": 1, "frame": "64", "recipe": null,'
        b' "parallel": 1, "flows": 1}',
        b'{"magic": "fastpath-source-1", "do": "prepare", "generator": "iperf2", "port": 99999, "frame": "64",'
        b' "recipe": null, "parallel": 1, "flows": 1}',
    ],
)
def test_orders_that_are_none_are_answered_by_errors(other_end: source.Source, order: bytes) -> None:
    with socket.create_connection((LOOPBACK, other_end.port), 5) as client:
        client.sendall(order + b"\n")
        assert "error" in json.loads(client.recv(65536))


def test_a_source_that_is_not_there(make: Make, other_end: source.Source) -> None:
    back = way_back(other_end)
    back.sender = source.RemoteSender(back.sender.settings, "iperf2", (LOOPBACK, 1))
    seen = make("64", back).measure(100, 0.2)
    assert seen.error is not None
    assert seen.error[0] == "source_silent"


def test_a_source_that_is_ended_takes_what_it_sends_with_it(
    iperf2: None, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    note = tmp_path / "pid"
    monkeypatch.setenv("FAKE_HANGS", str(note))
    service = source.Service(bind_address=LOOPBACK, lifetime_s=60.0, directory=str(tmp_path / "run"))
    port = source.ensure_present(service)["port"]
    assert source.ensure_present(service) == {"changed": False, "port": port}
    back = Way("reverse", source.RemoteSender(Settings(LOOPBACK, 9, parse_frames("64")), "iperf2", (LOOPBACK, port)),
               sink.LocalSink(LOOPBACK))  # fmt: skip
    back.sender.prepare()
    with back.sender.sending(100, 60.0):
        deadline = time.monotonic() + 20
        while not (note.exists() and note.read_text()) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert source.ensure_absent(service)["changed"]
    assert not os.path.exists(f"/proc/{note.read_text()}")
    assert not source.ensure_absent(service)["changed"]
    back.sink.close()
