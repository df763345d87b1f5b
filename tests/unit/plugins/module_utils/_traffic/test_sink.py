# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Counting by the kernel: real sockets on the loopback interface."""

from __future__ import annotations

import os
import pathlib
import socket
import threading
import time
import typing as t

import pytest

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._traffic import sink
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.counting import CountingSocket

LOOPBACK = "127.0.0.1"


def send(port: int, count: int, size: int = 18, address: str = LOOPBACK) -> None:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as sender:
        sender.connect((address, port))
        for _number in range(count):
            # an ICMP error would be told here
            sender.send(bytes(size))


@pytest.fixture
def serving() -> t.Iterator[sink.Sink]:
    made = sink.Sink(sink.Settings(bind_addresses=(LOOPBACK,)))
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


def test_each_datagram_is_counted_whatever_its_size() -> None:
    counter = CountingSocket(LOOPBACK)
    try:
        assert counter.total == 0
        for size in (0, 1, 18, 1472, 60000):
            send(counter.port, 100, size)
        assert counter.total == 500
        # many more than a socket's buffer holds
        send(counter.port, 5000, 1000)
        assert counter.total == 5500
    finally:
        counter.close()


def test_the_count_goes_on_where_the_kernels_32_bits_end(monkeypatch: pytest.MonkeyPatch) -> None:
    counter = CountingSocket(LOOPBACK)
    try:
        counter._last = (1 << 32) - 3
        counter._total = counter._last
        send(counter.port, 7)
        # the kernel says 7, which is 10 after the last one
        assert counter.total == (1 << 32) - 3 + 10
    finally:
        counter.close()


def test_a_sink_tells_the_sender(serving: sink.Sink) -> None:
    client = sink.SinkClient(LOOPBACK, serving.port)
    before = client.read()
    send(serving.port, 123)
    assert client.read().datagrams - before.datagrams == 123
    client.close()
    # another connection, the same count
    assert client.read().datagrams - before.datagrams == 123
    client.close()


def test_others_on_its_port_do_not_disturb_it(serving: sink.Sink) -> None:
    for said in (b"GET / HTTP/1.0\r\n\r\n", b"x" * 10000, b""):
        with socket.create_connection((LOOPBACK, serving.port)) as stranger:
            stranger.sendall(said)
    client = sink.SinkClient(LOOPBACK, serving.port)
    assert client.read().datagrams == 0
    client.close()


def test_a_sink_that_is_not_there() -> None:
    with socket.socket() as taken:
        taken.bind((LOOPBACK, 0))
        client = sink.SinkClient(LOOPBACK, taken.getsockname()[1], timeout_s=0.5)
        with pytest.raises(BenchError, match="traffic_sink") as silent:
            client.read()
    assert silent.value.code == "sink_silent"


def test_a_taken_port_is_named() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind((LOOPBACK, 0))
        with pytest.raises(BenchError, match="cannot count") as refused:
            sink.Sink(sink.Settings(bind_addresses=(LOOPBACK,), port=taken.getsockname()[1]))
    assert refused.value.code == "cannot_listen"


@pytest.mark.parametrize(
    "options",
    [{"port": 70000}, {"lifetime_s": 0}, {"bind_addresses": ()}, {"bind_addresses": ("host",)}, {"name": "../x"}],
)
def test_what_cannot_be_is_refused(options: dict[str, t.Any]) -> None:
    with pytest.raises(BenchError):
        sink.Settings(**options).check()


def test_it_is_there_until_it_is_ended(tmp_path: pathlib.Path) -> None:
    settings = sink.Settings(bind_addresses=(LOOPBACK,), lifetime_s=60, directory=str(tmp_path))
    assert sink.ensure_present(settings, check_mode=True) == {"changed": True, "port": None}
    made = sink.ensure_present(settings)
    try:
        assert made["changed"]
        assert sink.ensure_present(settings) == {"changed": False, "port": made["port"]}
        client = sink.SinkClient(LOOPBACK, made["port"])
        send(made["port"], 10)
        assert client.read().datagrams == 10
        client.close()
        assert sink.ensure_absent(settings, check_mode=True)["changed"]
    finally:
        assert sink.ensure_absent(settings)["changed"]
    assert not sink.ensure_absent(settings)["changed"]
