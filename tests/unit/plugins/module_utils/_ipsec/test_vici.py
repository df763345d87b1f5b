# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The daemon's protocol, and what its security associations tell."""

from __future__ import annotations

import contextlib
import pathlib
import socket
import struct
import tempfile
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._ipsec import charon, proposal, vici

GCM = proposal.parse_all(["aes128gcm16"], proposal.ESP)

NAMES = st.text(st.characters(min_codepoint=97, max_codepoint=122), min_size=1, max_size=8)
MESSAGES = st.recursive(
    st.dictionaries(NAMES, st.text(max_size=20) | st.lists(st.text(max_size=9), max_size=3), max_size=4),
    lambda inner: st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)


@given(MESSAGES)
def test_a_message_comes_back_as_it_was(message):
    assert vici.decode(vici.encode(message)) == message


@given(st.binary(max_size=60))
def test_garbage_is_an_error_and_never_a_traceback(data):
    with contextlib.suppress(BenchError):
        vici.decode(data)


def test_a_message_that_is_cut_off():
    whole = vici.encode({"a": {"b": "c"}, "d": ["e"]})
    for size in range(1, len(whole)):
        with contextlib.suppress(vici.ViciError):
            assert vici.decode(whole[:size]) == {"a": {"b": "c"}}


# -- a daemon of our own


class Daemon:
    """Listens and answers as told: each request's name gives the packets that come back."""

    def __init__(self, answers):
        self.answers = answers
        self.folder = tempfile.TemporaryDirectory()
        self.path = str(pathlib.Path(self.folder.name) / "vici")
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen()
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                link, _peer = self.listener.accept()
                threading.Thread(target=self.talk, args=(link,), daemon=True).start()

    def talk(self, link):
        with contextlib.suppress(OSError, struct.error), link:
            while True:
                size = struct.unpack("!I", link.recv(4))[0]
                packet = link.recv(size)
                name = packet[2 : 2 + packet[1]].decode()
                for answer in self.answers.get((packet[0], name), []):
                    if answer is None:
                        return
                    link.sendall(struct.pack("!I", len(answer)) + answer)

    def close(self):
        self.listener.close()
        self.folder.cleanup()


VERSION = {(0, "version"): [b"\x01" + vici.encode({"daemon": "charon-systemd"})]}


@pytest.fixture
def daemon():
    made = []

    def make(answers):
        made.append(Daemon(answers))
        return made[-1]

    yield make
    for one in made:
        one.close()


def test_no_daemon(tmp_path):
    with vici.Session(str(tmp_path / "none")) as session, pytest.raises(vici.ViciError) as caught:
        session.connect(0.0)
    assert caught.value.code == "charon_absent"


def test_a_daemon_that_accepts_and_says_nothing_is_given_up(daemon):
    hung = daemon({})
    with vici.Session(hung.path, limit_s=0.2) as session, pytest.raises(vici.ViciError) as caught:
        session.connect(0.1)
    assert caught.value.code == "charon_hung"


def test_a_daemon_that_is_late(tmp_path, daemon):
    late = {}
    timer = threading.Timer(0.3, lambda: late.update(daemon=daemon(VERSION)))
    timer.start()
    link = tmp_path / "vici"
    timer.join()
    link.symlink_to(late["daemon"].path)
    with vici.Session(str(link)) as session:
        session.connect(5.0)
        assert session.request("version")["daemon"] == "charon-systemd"


def test_a_daemon_that_goes_away_in_the_middle(daemon):
    gone = daemon({**VERSION, (0, "get-conns"): [None]})
    with vici.Session(gone.path) as session:
        session.connect(1.0)
        with pytest.raises(vici.ViciError) as caught:
            session.request("get-conns")
    assert caught.value.code == "charon_gone"


def test_a_refusal_has_the_daemons_words(daemon):
    no = vici.encode({"success": "no", "errmsg": "CHILD_SA failed"})
    says_no = daemon({**VERSION, (0, "initiate"): [b"\x01" + no]})
    with vici.Session(says_no.path) as session:
        session.connect(1.0)
        with pytest.raises(vici.ViciError) as caught:
            session.request("initiate")
    assert caught.value.code == "vici_refused"
    assert "CHILD_SA failed" in caught.value.message


def test_no_algorithm_at_all_is_a_failure(daemon):
    empty = daemon({**VERSION, (0, "get-algorithms"): [b"\x01"]})
    with vici.Session(empty.path) as session:
        session.connect(1.0)
        with pytest.raises(vici.ViciError) as caught:
            charon.loaded_algorithms(session)
    assert caught.value.code == "empty_answer"


CONNS = {(0, "get-conns"): [b"\x01" + vici.encode({"conns": ["fastpath-1", "office"]})]}


def swanctl(monkeypatch, script):
    """In its place a program of our own."""
    run = charon.command.run
    monkeypatch.setattr(charon.command, "run", lambda argv, limit_s: run(["sh", "-c", script, *argv], limit_s=limit_s))


@pytest.mark.parametrize(
    ("script", "expected", "code"),
    [
        ("echo loaded connection", ["fastpath-1"], None),
        # status 0 and not a word: it did nothing
        ("true", ["fastpath-1"], "empty_answer"),
        ("sleep 20", ["fastpath-1"], "tool_timeout"),
        ("echo loading failed >&2; exit 22", ["fastpath-1"], "tool_failed"),
        ("echo loaded 1 of 2", ["fastpath-1", "fastpath-2"], "connection_not_loaded"),
    ],
)
def test_loading_ends_with_connections_or_with_the_reason(daemon, monkeypatch, script, expected, code):
    up = daemon({**VERSION, **CONNS})
    swanctl(monkeypatch, script)
    with vici.Session(up.path) as session:
        session.connect(1.0)
        if code is None:
            charon.load(session, expected, limit_s=5.0)
            return
        with pytest.raises(BenchError) as caught:
            charon.load(session, expected, limit_s=0.5)
    assert caught.value.code == code


def test_a_daemon_that_goes_away_after_loading(daemon, monkeypatch):
    gone = daemon({**VERSION, **CONNS})
    with vici.Session(gone.path) as session:
        session.connect(1.0)
        swanctl(monkeypatch, f"rm {gone.path}; echo loaded")
        with pytest.raises(BenchError) as caught:
            charon.load(session, ["fastpath-1"], limit_s=0.5)
    assert caught.value.code == "charon_absent"


def test_why_an_attempt_failed_is_told_without_the_packets():
    lines = ["sending packet: from a to b", "received packet: from b to a (65 bytes)",
             "received AUTHENTICATION_FAILED notify error"]  # fmt: skip
    assert charon._telling([{"msg": line} for line in lines]) == ["received AUTHENTICATION_FAILED notify error"]


# as charon 5.9.8 told it
CHILD = {
    **{"name": "fastpath-1", "state": "INSTALLED", "mode": "TUNNEL", "protocol": "ESP", "reqid": "1"},
    **{"spi-in": "c78e9a86", "spi-out": "c9f40f65", "if-id-in": "0000002a", "if-id-out": "0000002a"},
    **{"encr-alg": "AES_GCM_16", "encr-keysize": "128", "bytes-in": "252", "packets-in": "3"},
    **{"bytes-out": "252", "packets-out": "3"},
}


def event(**changes):
    child = {key: value for key, value in {**CHILD, **changes}.items() if value is not None}
    ike = {"local-host": "10.73.9.1", "remote-host": "10.73.9.2", "child-sas": {"fastpath-1-2": child}}
    return [{"fastpath-1": ike}]


def test_list_sas_is_read_from_the_daemon(daemon):
    message = b"\x07\x07list-sa" + vici.encode(event()[0])
    talks = {
        **VERSION,
        (3, "list-sa"): [b"\x05"],
        (0, "list-sas"): [message, b"\x01"],
        (4, "list-sa"): [b"\x05"],
    }
    with vici.Session(daemon(talks).path) as session:
        session.connect(1.0)
        (sa,) = charon.list_sas(session)
    assert (sa.packets_in, sa.bytes_out, sa.if_id_in, sa.algorithm) == (3, 252, 42, "AES_GCM_16-128")


def test_a_counter_that_is_missing_is_no_zero():
    with pytest.raises(vici.ViciError):
        charon.parse_sas(event(**{"packets-in": None}))
    with pytest.raises(vici.ViciError):
        charon.parse_sas(event(**{"bytes-in": "many"}))


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"if-id-in": "0000002b"}, "if_id_mismatch"),
        ({"if-id-out": None}, "if_id_mismatch"),
        ({"encr-keysize": "256"}, "wrong_algorithm"),
        ({"encr-alg": "AES_CBC", "integ-alg": "HMAC_SHA1_96"}, "wrong_algorithm"),
        ({"mode": "TRANSPORT"}, "wrong_mode"),
    ],
)
def test_an_sa_that_is_not_as_asked(changes, code):
    _waiting, wrong = charon.judge(charon.parse_sas(event(**changes)), [charon.Expected("fastpath-1", GCM, 42)])
    assert wrong is not None
    assert wrong.code == code


def test_an_sa_that_is_not_there_yet():
    expected = [charon.Expected("fastpath-1", GCM, 42)]
    assert charon.judge([], expected) == (["fastpath-1 is not there"], None)
    made = charon.parse_sas(event(state="INSTALLING", **{"bytes-in": None, "encr-alg": None, "encr-keysize": None}))
    assert charon.judge(made, expected) == (["fastpath-1 is INSTALLING"], None)
    assert charon.judge(charon.parse_sas(event()), expected) == ([], None)


def test_what_was_carried_also_over_a_rekey():
    (before,) = charon.parse_sas(event())
    (after,) = charon.parse_sas(event(**{"packets-in": "13", "packets-out": "14"}))
    (new,) = charon.parse_sas(event(**{"spi-in": "aa", "spi-out": "bb"}))
    row = vars(before)
    assert charon.risen([row], [after])["fastpath-1"]["packets_in"] == 10
    assert charon.risen([row], [after, new])["fastpath-1"]["packets_out"] == 11 + 3


def test_a_path_in_the_clear_is_refused():
    one, other = {"packets_in": 6, "packets_out": 4}, {"packets_in": 4, "packets_out": 6}
    charon.prove({"fastpath-1": one, "fastpath-2": other}, 10)
    with pytest.raises(BenchError) as caught:
        charon.prove({"fastpath-1": {"packets_in": 10, "packets_out": 0}}, 10)
    assert caught.value.code == "plaintext_path"
    assert "packets out: 0" in caught.value.message
    with pytest.raises(BenchError):
        charon.prove({}, 1)
