# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""testpmd as the sender: what it prints at its stop, and its command line."""

from __future__ import annotations

import pathlib

import pytest

from ansible_collections.fastpath.bench.plugins.module_utils._common import command
from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError, ParseError
from ansible_collections.fastpath.bench.plugins.module_utils._search import testpmd_sender
from ansible_collections.fastpath.bench.plugins.module_utils._search.frames import parse_frames
from ansible_collections.fastpath.bench.plugins.module_utils._search.sender import Settings
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.flow_run import WayOut

STOP = (pathlib.Path(__file__).parents[3] / "fixtures" / "testpmd" / "stop.txt").read_text(encoding="utf-8")


def test_what_was_sent() -> None:
    """What testpmd of DPDK 22.11 printed at a stop, on an interface through af_packet."""
    found = testpmd_sender.parse_statistics(STOP)
    assert (found.packets, found.dropped) == (49824, 0)


@pytest.mark.parametrize("text", ["", STOP + STOP, STOP.replace("TX-packets", "TX-bytes"), STOP[:200]])
def test_statistics_that_are_none(text: str) -> None:
    with pytest.raises(ParseError):
        testpmd_sender.parse_statistics(text)


def test_why_it_ended() -> None:
    said = """EAL: Detected CPU lcores: 2
EAL: RTE Version: 'DPDK 22.11.11'
EAL: Option --legacy-mem is not compatible with --in-memory

Usage: dpdk-testpmd [options]
"""
    assert testpmd_sender.complaint(said) == "EAL: Option --legacy-mem is not compatible with --in-memory"
    assert testpmd_sender.complaint("\n") == "it said nothing"


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> testpmd_sender.TestpmdSender:
    monkeypatch.setattr(testpmd_sender.command, "find_program", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(testpmd_sender.os, "geteuid", lambda: 0)
    return testpmd_sender.TestpmdSender(Settings("192.0.2.10", 5001, parse_frames("128"), parallel=2))


def test_its_command_line(made: testpmd_sender.TestpmdSender) -> None:
    words = made.command(WayOut("eth1", "192.0.2.1", ("02:00:00:00:00:01", "02:00:00:00:00:02")))
    assert words[:2] == ["/usr/bin/stdbuf", "-oL"]
    for word in ("--no-huge", "--no-pci", "--txpkts=124", "--eth-peer=0,02:00:00:00:00:01", "--nb-cores=2",
                 "--tx-ip=192.0.2.1,192.0.2.10", "--tx-udp=1024,5001", "--forward-mode=txonly"):  # fmt: skip
        assert word in words
    assert any(word.startswith("net_af_packet0,iface=eth1,qpairs=2") for word in words)
    # what is in the ring at the end is at most a quarter
    assert made.least_pps(0.5) == 4 * 32 * 2 / 0.5


@pytest.mark.parametrize(
    ("shown", "code"),
    [
        ('[{"kind":"noqueue","handle":"0:","root":true}]', None),
        ('[{"kind":"mq","handle":"0:","root":true},{"kind":"fq_codel","handle":"0:","parent":":1"}]', None),
        ('[{"kind":"tbf","handle":"fb9e:","root":true}]', None),
        ('[{"kind":"netem","handle":"1:","root":true}]', "qdisc_in_use"),
        ("", None),
    ],
)
def test_a_queue_discipline_that_somebody_set(shown: str, code: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def run(argv: list[str], **_more: object) -> command.Result:
        calls.append(argv)
        return command.Result(tuple(argv), 0, shown, "")

    monkeypatch.setattr(testpmd_sender.command, "run", run)
    bucket = testpmd_sender.TokenBucket("eth1")
    if code is None:
        bucket.check()
    else:
        with pytest.raises(BenchError) as caught:
            bucket.check()
        assert caught.value.code == code
        return
    bucket.release()
    # one that another search left behind is taken away, and the kernel's own stays
    assert (["tc", "qdisc", "del", "dev", "eth1", "root"] in calls) == ("fb9e" in shown)


def test_the_bucket_is_taken_away_also_when_the_rest_fails(
    made: testpmd_sender.TestpmdSender, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise BenchError("ip is not installed", code="tool_absent")

    released = []
    bucket = testpmd_sender.TokenBucket("eth1")
    monkeypatch.setattr(bucket, "release", lambda: released.append(True))
    made._bucket, made._put_back = bucket, fail
    with pytest.raises(BenchError, match="not installed"):
        made.close()
    assert released == [True]
