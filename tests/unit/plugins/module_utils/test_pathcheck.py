# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import contextlib
import dataclasses
import errno
import os
import socket
import struct
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._host import (
    path_prober,
    path_responder,
    path_wire,
    pathcheck,
)
from ansible_collections.fastpath.bench.plugins.module_utils._host.path_prober import (
    Datagram,
    Echo,
    Probe,
    Seen,
    Transfer,
)

PROBE = Probe("10.0.0.2", 5000, timeout_s=1.0)
ROUTE = {"device": "eth1", "source": "10.0.0.1", "via": None, "mtu": None}
GOOD_TCP = Transfer(
    100, connected=True, sent_bytes=100, server_bytes=100, forward_intact=True, received_bytes=100, reverse_intact=True
)  # fmt: skip
NO_TCP = Transfer(100, error="nothing more came in time")


def answered(**extra) -> Datagram:
    return Datagram(
        100, 100, sent=1, answered=True, interface="eth1", hops=1, answer={"interface": "eth7", "hops": 1}, **extra
    )


def silent() -> Datagram:
    return Datagram(100, 100, sent=3)


def seen(**changes) -> Seen:
    good = Seen(
        PROBE,
        1500,
        dict(ROUTE),
        ping=Echo(84, 3, 3, [0.1]),
        ping_mtu=Echo(1500, 2, 2, [0.1]),
        udp=answered(),
        udp_mtu_forward=answered(),
        udp_mtu_reverse=answered(),
        tcp=GOOD_TCP,
        checksum_errors={"tcp": 0, "udp": 0, "udp6": None},
    )
    return dataclasses.replace(good, **changes)


NOTHING = {
    "ping": Echo(84, 3),
    "ping_mtu": Echo(1500, 2),
    "udp": silent(),
    "udp_mtu_forward": silent(),
    "udp_mtu_reverse": silent(),
    "tcp": NO_TCP,
}
FULL_LOST = {"ping_mtu": Echo(1500, 2), "udp_mtu_forward": silent()}


def told(count: int) -> Datagram:
    made = answered()
    made.answer = {"checksum_errors": {"tcp": count, "udp": 0, "udp6": None}}
    return made


@pytest.mark.parametrize(
    ("changes", "code", "words"),
    [
        ({}, "ok", "in both directions"),
        (
            {"route_error": "Network is unreachable", "route": {}, "udp": None, "tcp": None},
            "no_route",
            "Network is unreachable",
        ),
        ({"route_unknown": "ip is not installed", "route": {}}, "ok", ""),
        (
            {
                "route_unknown": "ip is not installed",
                "route": {},
                "probe": dataclasses.replace(PROBE, expected_interface="eth1"),
            },
            "route_unknown",
            "ip is not installed",
        ),
        ({"probe": dataclasses.replace(PROBE, expected_interface="eth5")}, "wrong_interface", "leaves by eth1"),
        (
            {"probe": dataclasses.replace(PROBE, expected_server_interface="eth8")},
            "wrong_interface",
            "at the server by eth7",
        ),
        ({"probe": dataclasses.replace(PROBE, expected_hops=0)}, "wrong_path", "1 routers on the way, expected 0"),
        (NOTHING, "silent", "neither ICMP nor UDP nor TCP"),
        (
            {**NOTHING, "ping": Echo(84, 3, error=os.strerror(errno.EHOSTUNREACH), named_by="10.0.0.1")},
            "unreachable",
            "no neighbour answers",
        ),
        (
            {**NOTHING, "ping": Echo(84, 3, error=os.strerror(errno.EHOSTUNREACH), named_by="10.0.0.254")},
            "unreachable",
            "router 10.0.0.254 reports",
        ),
        (
            {"tcp": Transfer(100, error="Connection refused", refused=True), "udp": silent()},
            "server_missing",
            "port 5000",
        ),
        ({"tcp": NO_TCP}, "tcp_dead", "while ping and udp works"),
        ({"tcp": NO_TCP, "udp": silent(), "without_checksum": told(7)}, "checksum", "the server threw 7 segments"),
        ({"tcp": NO_TCP, "without_checksum": told(7), "at_first": told(7)}, "tcp_dead", "no TCP connection"),
        ({"tcp": NO_TCP, "checksum_errors": {"tcp": 3, "udp": None}}, "checksum", "the client threw 3 segments"),
        ({"checksum_errors": {"tcp": 3, "udp": None}}, "ok", ""),  # somebody else's, on a path that works
        (FULL_LOST, "mtu_hole", "(forward), smaller ones pass"),
        ({"ping_mtu": Echo(1500, 2), "udp_mtu_reverse": silent()}, "mtu_hole", "(reverse)"),
        ({"udp_mtu_reverse": silent()}, "mtu_hole", "(reverse)"),
        ({**FULL_LOST, "learned_mtu": 1400}, "mtu_smaller", "a router on the way names 1400"),
        ({"learned_mtu": 1400}, "ok", ""),  # from an earlier time; now full size passes
        (
            {**FULL_LOST, "ping_mtu": Echo(1500, 2, named_mtu=1400, named_by="10.0.0.254")},
            "mtu_smaller",
            "10.0.0.254 names 1400",
        ),
        (
            {**FULL_LOST, "ping_mtu": Echo(1500, 1, named_mtu=1400, named_by="this host")},
            "mtu_local",
            "whose MTU is 1400",
        ),
        (
            {**FULL_LOST, "tcp": dataclasses.replace(GOOD_TCP, server_bytes=None)},
            "mtu_hole",
            "vanish without a message",
        ),
        (
            {"tcp": Transfer(100, connected=True, sent_bytes=70, error="nothing more came in time")},
            "tcp_forward_stalled",
            "70 of 100 bytes handed over",
        ),
        (
            {
                "tcp": dataclasses.replace(
                    GOOD_TCP, received_bytes=60, reverse_intact=False, error="nothing more came in time"
                )
            },
            "tcp_reverse_stalled",
            "60 of 100 bytes received",
        ),
        ({"tcp": dataclasses.replace(GOOD_TCP, forward_intact=False)}, "corrupt", "on its way to"),
        ({"tcp": dataclasses.replace(GOOD_TCP, reverse_intact=False)}, "corrupt", "on its way from"),
        ({"udp": silent(), "udp_mtu_forward": silent(), "udp_mtu_reverse": silent()}, "udp_dead", "while TCP works"),
        ({"ping": Echo(84, 3), "ping_mtu": Echo(1500, 2)}, "icmp_dead", "while TCP works"),
        ({"ping": None, "ping_mtu": None, "ping_impossible": "no ICMP socket: Permission denied"}, "ok", ""),
    ],
)
def test_verdicts(changes, code, words):
    verdict = pathcheck.judge(seen(**changes))
    assert verdict.code == code, verdict
    assert words in verdict.message
    assert (verdict.remedy is None) == (code == "ok")


def test_ping_that_could_not_be_tried_is_null():
    checks = pathcheck.checks_of(seen(ping=None, ping_mtu=None, ping_impossible="no ICMP socket: Permission denied"))
    assert [(check.name, check.ok) for check in checks if "ping" in check.name] == [("ping", None), ("ping_mtu", None)]


def silent_result() -> dict:
    return {"targets": [{"code": "silent", "source": "10.0.0.1", "address": "10.0.0.2", "token": "ab"}]}


@pytest.mark.parametrize(
    ("there", "code"),
    [({}, "forward_dead"), ({"cd": 4}, "forward_dead"), ({"ab": 4}, "reverse_dead")],
)
def test_silence_explained_by_the_server(there, code):
    verdict = pathcheck.explain_silence(silent_result(), there)
    assert verdict is not None
    assert verdict.code == code


def test_nothing_to_explain():
    assert pathcheck.explain_silence({"targets": [{"code": "ok"}]}, {}) is None
    assert pathcheck.explain_silence({}, {}) is None


def test_internet_checksum():
    # The example of RFC 1071, an echo request with its checksum in place, and an odd length.
    assert path_prober.internet_checksum(bytes.fromhex("0001f203f4f5f6f7")) == 0xFFFF - 0xDDF2
    assert path_prober.internet_checksum(bytes.fromhex("0800e5ca12340001")) == 0
    assert path_prober.internet_checksum(b"\x01") == 0xFEFF


@given(st.binary(max_size=200))
def test_internet_checksum_verifies_itself(data):
    if len(data) % 2:
        data += b"\0"
    total = path_prober.internet_checksum(data)
    assert path_prober.internet_checksum(data + struct.pack("!H", total)) in (0, 0xFFFF)


def test_patterns_differ():
    one = path_wire.pattern("a", "forward", 1000)
    assert len(one) == 1000
    assert len({one, path_wire.pattern("a", "reverse", 1000), path_wire.pattern("b", "forward", 1000)}) == 3


@pytest.mark.parametrize(
    "wrong",
    [
        {"address": "server.example"},
        {"address": "10.0.0.300"},
        {"port": 0},
        {"port": 70000},
        {"mtu_bytes": 100},
        {"address": "fd00::1", "mtu_bytes": 1000},
        {"bind_address": "fd00::2"},
        {"bytes": 0},
        {"timeout_s": 0},
    ],
)
def test_probes_that_make_no_sense(wrong):
    with pytest.raises(BenchError):
        dataclasses.replace(PROBE, **wrong).check()


# ----------------------------------------------------- over the own loopback


@pytest.fixture
def responder():
    made = path_responder.Responder(path_responder.Listening(bind_addresses=("127.0.0.1",)))
    wake, stop = os.pipe()
    ending = threading.Event()
    thread = threading.Thread(target=made.serve, args=(wake, ending.is_set, float("1e9")))
    thread.start()
    yield made
    ending.set()
    os.write(stop, b"x")
    thread.join(5)
    made.close()
    os.close(wake)
    os.close(stop)


def test_whole_check_over_the_loopback(responder):
    result = pathcheck.check_paths([Probe("127.0.0.1", responder.port, bytes=200_000, expected_hops=0, timeout_s=5)])
    failed = [check for check in result["checks"] if check["ok"] is False]
    assert failed == []
    assert result["ok"]
    assert responder.seen["127.0.0.1"]["tcp_bytes"] == 200_000


def test_nothing_listens():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    result = pathcheck.check_paths([Probe("127.0.0.1", port, timeout_s=1)])
    assert result["code"] == "server_missing"
    assert result["seconds"] < 2


@pytest.mark.parametrize(
    "junk", [b"", b"\n", b"GET / HTTP/1.1\r\n\r\n", b"[]\n", b'{"magic": "x"}\n', b'{"magic": 1', b"\xff" * 70000]
)
def test_strangers_are_no_harm(responder, junk):
    with socket.create_connection(("127.0.0.1", responder.port), timeout=5) as connection:
        connection.sendall(junk)
        connection.shutdown(socket.SHUT_WR)
        connection.settimeout(5)
        with contextlib.suppress(ConnectionResetError):  # what it had not read was thrown away
            assert connection.recv(100) == b""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as channel:
        channel.sendto(junk[:60000], ("127.0.0.1", responder.port))
    assert pathcheck.check_paths([Probe("127.0.0.1", responder.port, bytes=1000, timeout_s=5)])["ok"]


def test_what_answers_is_no_responder():
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        connection, _peer = listener.accept()
        with connection:
            connection.recv(100)
            connection.sendall(b"220 mail.example ESMTP\r\n")

    thread = threading.Thread(target=serve)
    thread.start()
    result = pathcheck.check_paths([Probe("127.0.0.1", listener.getsockname()[1], bytes=10, timeout_s=0.5)])
    thread.join(5)
    listener.close()
    assert not result["ok"]
    (forward,) = [check for check in result["checks"] if check["name"] == "tcp_forward"]
    assert "not this collection's responder" in forward["evidence"]
