# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""vppctl says 0 to everything: its text is what counts."""

from __future__ import annotations

import json
import pathlib
import socket
import stat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._vpp import cli, show
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.errors import VppHung, VppNotRunning

FIXTURES = pathlib.Path(__file__).resolve().parents[3] / "fixtures" / "vpp"

#: What VPP 26.06 answered, with exit status 0, or what older ones are known to answer.
REFUSALS = [
    ("foo bar", "unknown input `foo bar'", "unknown_command"),
    ("lcp create", "unknown input `lcp create'", "unknown_command"),
    ("sho", "show: unknown input `'", "unknown_input"),
    ("show interface nope", "show interface: unknown input `nope'", "unknown_input"),
    (
        "set interface rx-placement n3 queue 1 worker 0",
        "set interface rx-placement: unknown queue 1 on interface n3",
        "unknown_queue",
    ),
    (
        "set interface rx-placement host-vp1 queue 1 worker 7",
        "set interface rx-placement: please specify valid worker thread or main",
        "unknown_worker",
    ),
    (
        "set interface rx-mode host-vp1 adaptive",
        "set interface rx-mode: unable to set rx-mode on interface host-vp1 queue-id 4294967295.",
        "unsupported",
    ),
    ("create host-interface name nope", "create host-interface: Invalid interface name", "unknown_interface"),
    ("create host-interface name vp1", "create host-interface: Interface already exists", "already_exists"),
    ("set int state foo up", "set interface state: unknown interface `foo up'", "unknown_interface"),
    ("nat44 plugin enable", "nat44 plugin: already enabled", "already_enabled"),
    ("nat44 plugin enable", "nat44 plugin enable: already enabled", "already_enabled"),
    ("exec /nonexist", "exec: failed to open `/nonexist': No such file or directory", "not_found"),
    ("exec /run/x.cli", "exec: CLI line error: nope up", "failed"),
    ("ip route add 1.2.3.4/99 via foo", "ip route: parse error `via foo'", "unknown_input"),
    (
        "set interface ip address host-vp1 10.1.0.1/24",
        "set interface ip address: failed to add 10.1.0.1/24 on host-vp1 which conflicts with 10.1.0.1/24",
        "already_exists",
    ),
    (
        "create loopback interface instance 5",
        "create loopback interface: vnet_create_loopback_interface failed",
        "failed",
    ),
]


@pytest.mark.parametrize(("command", "answer", "kind"), REFUSALS)
def test_refusals_are_seen_and_named(command, answer, kind):
    line = cli.error_line(command, answer + "\n")
    assert line == answer
    assert cli.kind_of(line) == kind


def test_an_error_behind_an_answer_is_seen():
    """VPP 26.06 prints all of 'show runtime' and then refuses the word behind it."""
    text = (FIXTURES / "show-runtime-26.06-workers.txt").read_text()
    assert cli.error_line("show runtime foo", text + "unknown input `foo'\n") == "unknown input `foo'"


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("show runtime", "show-runtime-26.06-workers.txt"),
        ("show errors", "show-errors-26.06.txt"),
        ("show errors verbose", "show-errors-verbose-26.06.txt"),
        ("show interface rx-placement", "show-rx-placement-26.06.txt"),
        ("show threads", "show-threads-26.06.txt"),
    ],
)
def test_answers_are_no_refusals(command, name):
    assert cli.error_line(command, (FIXTURES / name).read_text()) is None


def test_a_terminal_session_is_stripped_to_its_answers():
    # Kept as JSON: carriage returns and colours belong to the recording.
    text = cli.clean("".join(json.loads((FIXTURES / "pty-session-26.06.json").read_text(encoding="utf-8"))))
    assert "\x1b" not in text
    assert "\r" not in text
    assert "vpp#" not in text
    assert text.startswith("vpp v26.06-release")
    errors = show.parse_errors(text.split("\n", 1)[1])
    assert {row.node for row in errors} >= {"af-packet-input", "ip4-icmp-input"}


def test_a_piped_session_is_stripped_too():
    recorded = (FIXTURES / "piped-session-26.06.txt").read_text(encoding="utf-8")
    text = cli.clean(recorded.replace("\n", "\r\n"))  # as VPP ends its lines
    assert "\r" not in text
    assert text.splitlines()[0].startswith("vpp v26.06")


def test_the_plain_banner_and_other_prompts_are_stripped():
    banner = (
        "    _______    _        _   _____  ___ \n __/ __/ _ \\  (_)__    | | / / _ \\/ _ \\\n"
        " _/ _// // / / / _ \\   | |/ / ___/ ___/\n /_/ /____(_)_/\\___/   |___/_/  /_/    \n\n"
    )
    assert cli.clean(banner + "DBGvpp# show version\r\nvpp v1\r\nvpp# ") == "vpp v1\n"


@given(st.text())
def test_cleaning_takes_any_text_and_is_stable(text):
    once = cli.clean(text)
    assert "\r" not in once
    assert cli.clean(once) in (once, cli.clean(cli.clean(once)))


@pytest.fixture
def listener(tmp_path):
    path = tmp_path / "cli.sock"
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(path))
    server.listen(1)
    yield str(path)
    server.close()


def program(tmp_path: pathlib.Path, body: str) -> str:
    path = tmp_path / "vppctl"
    path.write_text("#!/bin/sh\n" + body)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def test_a_refusal_with_status_0_raises_unless_tolerated(tmp_path, listener):
    ctl = cli.Vppctl(listener, program(tmp_path, "echo 'nat44 plugin: already enabled'\n"))
    with pytest.raises(cli.CliError) as caught:
        ctl.run("nat44 plugin enable")
    assert caught.value.code == "already_enabled"
    assert "already enabled" in caught.value.message
    assert ctl.run("nat44 plugin enable", tolerate=["already_enabled"]) == "nat44 plugin: already enabled\n"


def test_a_hanging_vpp_is_an_error_after_the_limit(tmp_path, listener):
    ctl = cli.Vppctl(listener, program(tmp_path, "exec sleep 30\n"), timeout_s=0.2)
    with pytest.raises(VppHung, match="did not answer"):
        ctl.run("show version")


def test_no_socket_and_nobody_behind_it_are_told_apart_from_refusals(tmp_path, listener):
    with pytest.raises(VppNotRunning, match="no VPP listens there"):
        cli.Vppctl(str(tmp_path / "none.sock"), program(tmp_path, "true\n")).run("show version")
    refused = program(tmp_path, "echo 'connect: Connection refused' >&2; exit 1\n")
    with pytest.raises(VppNotRunning):
        cli.Vppctl(listener, refused).run("show version")


def test_no_permission_names_socket_user_and_group(tmp_path, listener):
    denied = program(tmp_path, "echo 'connect: Permission denied' >&2; exit 1\n")
    with pytest.raises(BenchError) as caught:
        cli.Vppctl(listener, denied).run("show version")
    assert caught.value.code == "vpp_no_permission"
    for word in (listener, "user ", "group", "become"):
        assert word in caught.value.message


def test_a_missing_program_says_which_role_brings_it(monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setattr(cli, "PROGRAM_FOLDERS", ("/nonexistent",))
    with pytest.raises(BenchError, match=r"role fastpath\.bench\.vpp"):
        cli.find_program()
