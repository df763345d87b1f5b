# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NAT44's texts and options, and what only the VPP in memory can be made to do."""

from __future__ import annotations

import re
import typing as t

import pytest

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError, ParseError
from ansible_collections.fastpath.bench.plugins.module_utils._vpp import nat44, nat44_config, nat44_run, nat44_sessions
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.errors import VppGone, VppMessageMissing
from ansible_collections.fastpath.bench.plugins.modules import vpp_nat44
from ansible_collections.fastpath.bench.tests.unit.plugins.module_utils._vpp.fake_vpp import FakeSession, FakeVpp

#: As VPP 26.06 says it, with sessions of all kinds.
BLOCKS = """\
max translations per thread: 100000 fib 0
max translations per thread: 500 fib 1
tcp LRU min session timeout 7443 (now 3)
udp LRU min session timeout 303 (now 3)
total sessions: 61 (timed out: 5)
tcp sessions:
    total: 50 (timed out: 1)
        established: 40 (timed out: 0)
        transitory: 10 (timed out: 1)
udp sessions:
    total: 8 (timed out: 4)
icmp sessions:
    total: 2 (timed out: 0)
other sessions:
    total: 1 (timed out: 0)
"""
#: As VPP of about 20.09 said it.
LINES = """\
max translations per thread: 81920
max translations per user: 81920
total timed out sessions: 3
total sessions: 61
total tcp sessions: 50
total tcp established sessions: 40
total tcp transitory sessions: 10
total tcp transitory (WAIT-CLOSED) sessions: 4
total tcp transitory (CLOSED) sessions: 2
total udp sessions: 8
total icmp sessions: 3
"""


def test_both_forms_of_the_summary() -> None:
    total, timed_out, protocols = nat44_sessions.parse_summary(BLOCKS)
    assert (total, timed_out) == (61, 5)
    assert protocols == {
        "tcp": {"total": 50, "timed_out": 1, "established": 40, "transitory": 10},
        "udp": {"total": 8, "timed_out": 4},
        "icmp": {"total": 2, "timed_out": 0},
        "other": {"total": 1, "timed_out": 0},
    }
    total, timed_out, protocols = nat44_sessions.parse_summary(LINES)
    assert (total, timed_out) == (61, 3)
    assert protocols["tcp"] == {"total": 50, "established": 40, "transitory": 10}
    assert {name: counts["total"] for name, counts in protocols.items()} == {"tcp": 50, "udp": 8, "icmp": 3}


@pytest.mark.parametrize(
    "text",
    ["", "nat44 plugin: disabled", "total: 5 (timed out: 0)\ntotal sessions: 5", "total sessions: 1\ntcp sessions:"],
)
def test_a_summary_that_is_none_is_not_guessed_at(text: str) -> None:
    with pytest.raises(ParseError):
        nat44_sessions.parse_summary(text)


ONE = {"external": "198.51.100.10", "external_port": 80, "protocol": "tcp"}


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"sessions": 0}, "it can be 1 to"),
        ({"mss_clamp_bytes": 70000}, "it can be 0 to 65535"),
        ({"user_sessions": 5}, "has no user_sessions"),
        ({"mode": "endpoint_independent", "load_balanced_mappings": [ONE]}, "has no load_balanced_mappings"),
        ({"mode": "endpoint_independent", "pools": [{"first": "192.0.2.1", "twice_nat": True}]}, "has no twice_nat"),
        ({"interfaces": [{"name": "a"}]}, "needs its role"),
        ({"interfaces": [{"name": "a", "role": "inside"}] * 2}, "stands twice"),
        ({"pools": [{}]}, "first or interface"),
        ({"pools": [{"first": "10.0.0.0", "last": "10.1.0.0"}]}, "it can have 4096"),
        ({"pools": [{"first": "10.0.0.0", "interface": "a"}]}, "interface excludes"),
        ({"pools": [{"first": "2001:db8::1"}]}, "not an IPv4 address"),
        ({"static_mappings": [{"local": "10.0.0.1"}]}, "either external or external_interface"),
        ({"static_mappings": [{"local": "10.0.0.1", "external": "10.0.0.2", "local_port": 5}]}, "needs its protocol"),
        ({"static_mappings": [{"local": "10.0.0.1", **ONE}]}, "tcp needs local_port"),
        ({"static_mappings": [{"local": "10.0.0.1", "external": "10.0.0.2", "twice_nat": "self"}]}, "needs protocol"),
        ({"load_balanced_mappings": [{**ONE, "backends": []}]}, "two backends"),
        ({"session_limits": [{"vrf": 1, "sessions": 5}] * 2}, "stands twice"),
    ],
)
def test_bad_options_are_said_before_vpp_is_asked(options: dict[str, t.Any], says: str) -> None:
    mode = nat44.MODES[options.get("mode", nat44.ED.name)]
    with pytest.raises(BenchError, match=re.escape(says)):
        nat44_config.wishes_of(options, mode, 0)


def test_the_module_takes_what_the_modes_know() -> None:
    spec = vpp_nat44.argument_spec()
    assert set(nat44.ED.fixed) | set(nat44.EI.fixed) <= set(spec)
    assert set(nat44_config.LISTS) | set(nat44_config.SETTINGS) <= set(spec)


def make(vpp: FakeVpp, state: str = "merged", **options: t.Any) -> dict[str, t.Any]:
    with vpp.session() as session:
        return nat44_run.run(session, options, state)


def test_sessions_that_come_back_each_time_are_no_empty_table(monkeypatch: pytest.MonkeyPatch) -> None:
    vpp = FakeVpp()
    make(vpp, pools=[{"first": "198.51.100.10"}])
    vpp.nat["ed"].sessions = {("10.0.0.1", port) for port in range(7)}
    monkeypatch.setattr(nat44_sessions, "_SETTLE_S", 0)
    monkeypatch.setattr(FakeSession, "nat_clear", lambda _self, _words: "")
    with pytest.raises(BenchError, match="7 sessions were there again after each of 5 tries") as caught:
        make(vpp, "cleared")
    assert caught.value.code == "sessions_left"


def test_a_command_that_has_the_old_name(monkeypatch: pytest.MonkeyPatch) -> None:
    vpp = FakeVpp()
    make(vpp)
    vpp.nat["ed"].sessions = {("10.0.0.1", 5)}
    ask = FakeSession.do_cli_inband

    def old(self: FakeSession, cmd: str) -> t.Any:
        if cmd == "clear nat44 sessions":
            return ask(self, "clear nat44 ed sessions")
        return ask(self, "nonsense" if cmd == "clear nat44 ed sessions" else cmd)

    monkeypatch.setattr(FakeSession, "do_cli_inband", old)
    assert make(vpp, "cleared")["sessions"]["total"] == 0


def test_a_vpp_that_dies_in_the_middle() -> None:
    vpp = FakeVpp()
    pools = [{"first": "198.51.100.10", "last": "198.51.100.99"}]
    vpp.die_in = 40
    with pytest.raises(VppGone):
        make(vpp, pools=pools)
    assert make(vpp, pools=pools)["changed"]
    assert not make(vpp, pools=pools)["changed"]


def test_a_plugin_that_is_not_loaded_is_named() -> None:
    vpp = FakeVpp()
    vpp.without = {"nat44_ei"}
    with pytest.raises(VppMessageMissing, match=r"nat44_ei_plugin\.so is not loaded"):
        make(vpp, mode="endpoint_independent")
    # and does not keep the other one from working
    assert make(vpp)["changed"]


def test_what_vpp_does_not_do_is_noticed() -> None:
    vpp = FakeVpp()
    vpp.ignores = {"nat_set_mss_clamping"}
    with pytest.raises(BenchError, match="mss_clamp_bytes is 0, asked was 1200"):
        make(vpp, mss_clamp_bytes=1200)


def test_the_rendered_lines() -> None:
    lines = nat44_config.render(
        {
            "sessions": 1000,
            "inside_vrf": 3,
            "interfaces": [{"name": "host-eth1", "role": "output"}],
            "pools": [{"first": "198.51.100.10", "last": "198.51.100.11"}],
            "identity_mappings": [{"interface": "host-eth1", "protocol": "udp", "port": 500}],
            "session_limits": [{"vrf": 3, "sessions": 10}],
        },
        nat44.ED,
    )
    assert lines == [
        "nat44 plugin enable sessions 1000 inside-vrf 3",
        "set interface nat44 out host-eth1 output-feature",
        "nat44 add address 198.51.100.10",
        "nat44 add address 198.51.100.11",
        "nat44 add identity mapping external host-eth1 udp 500 vrf 3",
        "set nat44 session limit 10 vrf 3",
    ]
