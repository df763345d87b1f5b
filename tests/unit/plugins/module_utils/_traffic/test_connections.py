# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A connection for each request: what ab prints, what the server counts, and what a trial says of both."""

from __future__ import annotations

import contextlib
import pathlib
import socket
import threading
import typing as t

import pytest

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError, ParseError
from ansible_collections.fastpath.bench.plugins.module_utils._traffic import answerer, connection_run
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.outcome import Outcome
from ansible_collections.fastpath.bench.plugins.modules import connection_run as module

GOOD = """\
This is ApacheBench, Version 2.3 <$Revision$>
Copyright 1996 Adam Twiss, Zeus Technology Ltd, http://www.zeustech.net/

Benchmarking 127.0.0.1 (be patient).....done


Server Software:        fastpath-connections-1
Server Hostname:        127.0.0.1
Server Port:            18080

Concurrency Level:      4
Time taken for tests:   0.104 seconds
Complete requests:      100
Failed requests:        0
Total transferred:      18700 bytes
HTML transferred:       300 bytes
Requests per second:    963.35 [#/sec] (mean)
Time per request:       4.152 [ms] (mean)
Transfer rate:          175.93 [Kbytes/sec] received

Connection Times (ms)
              min  mean[+/-sd] median   max
Connect:        0    1   0.5      2       4
Processing:     1    3   3.1      2      26
Waiting:        0    3   2.8      2      23
Total:          1    3   3.1      3      26
"""
#: Each connection was refused. It ended with 0.
REFUSED = """\
This is ApacheBench, Version 2.3 <$Revision$>
Server Software:
Concurrency Level:      4
Time taken for tests:   0.002 seconds
Complete requests:      100
Failed requests:        150
   (Connect: 0, Receive: 100, Length: 0, Exceptions: 50)
Total transferred:      0 bytes
Requests per second:    54229.93 [#/sec] (mean)

Connection Times (ms)
              min  mean[+/-sd] median   max
Connect:        0    0   0.0      0       0
"""
TRIAL = connection_run.Trial("one", "192.0.2.1", 80, parallel=4, duration_s=1)


def judged(text: str, accepted: int, answered: int, *, cpu_s: tuple[float, float] = (0.0, 0.0)) -> Outcome:
    made = Outcome()
    connection_run.judge(TRIAL, made, connection_run.parse(text), (accepted, answered), cpu_s)
    return made


def test_what_ab_prints_is_read() -> None:
    report = connection_run.parse(GOOD)
    assert (report.version, report.seconds, report.complete, report.failed) == ("2.3", 0.104, 100, 0)
    assert (report.connect_ms, report.kinds, report.refused) == (2.0, {}, 0)
    assert connection_run.parse(GOOD + "Non-2xx responses:      7\n").refused == 7
    with pytest.raises(ParseError, match="complete"):
        connection_run.parse("Time taken for tests:   0.104 seconds\napr_socket_recv: Connection refused (111)\n")


def test_the_servers_count_is_the_figure() -> None:
    made = judged(GOOD, 104, 102)
    assert made.status == "ok"
    assert made.metrics["connection_rate_forward"].value == pytest.approx(102 / 0.104)
    assert made.metrics["connections_failed_forward"].value == 0
    assert made.findings == []


def test_connections_that_were_all_refused_are_no_figure() -> None:
    made = judged(REFUSED, 0, 0)
    assert (made.status, made.code) == ("failed", "no_connection")
    assert made.metrics["connection_rate_forward"].value == 0
    assert made.metrics["answer_rate_forward"].value == 0
    assert "100 of 100 connections failed (receive 100, exceptions 50)" in made.findings[0]["evidence"]


def test_answers_of_somebody_else_are_no_figure() -> None:
    made = judged(GOOD, 50, 50)
    assert (made.status, made.code) == ("failed", "answers_over_connections")
    # those that were under way when ab ended
    assert judged(GOOD, 96, 96).status == "ok"


def test_an_end_without_cpu_left_is_said() -> None:
    found = judged(GOOD, 100, 100, cpu_s=(0.05, 0.1)).findings
    assert [(one["code"], one["evidence"]) for one in found] == [
        ("generator_limited", "The server used its one CPU for 96% of the time")
    ]


def test_the_command_line() -> None:
    argv = connection_run.arguments(TRIAL, "ab")
    assert argv[argv.index("-t") :] == ["-t", "1", "-n", "60000", "http://192.0.2.1:80/"]
    trial = connection_run.trial_from({"server": "2001:db8::1", "port": 8080, "bind": "2001:db8::2"}, "six")
    assert connection_run.arguments(trial, "ab")[-3:] == ["-B", "2001:db8::2", "http://[2001:db8::1]:8080/"]


@pytest.mark.parametrize(
    ("options", "where"),
    [
        ({"parallel": 0}, "parallel"),
        ({"requests": 3}, "requests"),
        ({"duration_s": 0.5}, "duration_s"),
        ({"port": 0}, "port"),
    ],
)
def test_what_could_not_run_is_refused(options: dict[str, t.Any], where: str) -> None:
    with pytest.raises(BenchError) as caught:
        connection_run.trial_from({"server": "192.0.2.1", "port": 80, **options}, "bad")
    assert (caught.value.code, caught.value.where) == ("bad_option", where)


def test_a_planned_trial_is_checked() -> None:
    module.check_trial({"parallel": 8}, "connection_rate_forward")
    with pytest.raises(BenchError, match="does not count goodput_forward"):
        module.check_trial({"parallel": 8}, "goodput_forward")
    with pytest.raises(BenchError, match="there is no option streams"):
        module.check_trial({"streams": 8}, "connection_rate_forward")


@pytest.fixture
def server() -> t.Iterator[answerer.Answerer]:
    made = answerer.Answerer(answerer.Settings(bind_address="127.0.0.1", answer_bytes=10))
    wake, tell = socket.socketpair()
    ended = threading.Event()
    thread = threading.Thread(target=made.serve, args=(wake.fileno(), ended.is_set))
    thread.start()
    try:
        yield made
    finally:
        ended.set()
        tell.send(b"x")
        thread.join()
        made.close()
        wake.close()
        tell.close()


def get(port: int, *parts: bytes) -> bytes:
    data = b""
    with socket.create_connection(("127.0.0.1", port), 5) as connection:
        for part in parts:
            connection.sendall(part)
        with contextlib.suppress(ConnectionResetError):
            while some := connection.recv(4096):
                data += some
    return data


def test_the_server_answers_closes_and_counts(server: answerer.Answerer) -> None:
    for _time in range(5):
        assert get(server.port, b"GET / HTTP/1.0\r\n\r\n").endswith(b"\r\n\r\n" + b"x" * 10)
    # a request in two parts, and one that never becomes one
    assert get(server.port, b"GET / HT", b"TP/1.0\r\n\r\n").startswith(b"HTTP/1.0 200 OK")
    assert get(server.port, b"x" * 9000) == b""
    counts = answerer.ask("127.0.0.1", server.port)
    assert (counts.accepted, counts.answered) == (7, 6)
    # who asks is not counted
    assert answerer.ask("127.0.0.1", server.port).accepted == 7


def test_one_that_is_not_ours_is_no_server() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        with pytest.raises(BenchError) as caught:
            answerer.ask("127.0.0.1", free.getsockname()[1], timeout_s=1)
    assert caught.value.code == "server_silent"


def test_the_module_has_one_and_ends_it(tmp_path: pathlib.Path) -> None:
    settings = answerer.Settings(bind_address="127.0.0.1", directory=str(tmp_path), lifetime_s=60)
    assert answerer.ensure_present(settings, check_mode=True) == {"changed": True, "port": None}
    made = answerer.ensure_present(settings)
    try:
        assert answerer.ask("127.0.0.1", made["port"]).answered == 0
        assert answerer.ensure_present(settings) == {"changed": False, "port": made["port"]}
    finally:
        assert answerer.ensure_absent(settings)["changed"]
    assert not answerer.ensure_absent(settings)["changed"]
