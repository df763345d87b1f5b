# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Many flows: the frames themselves, and what a trial says of what was sent and what arrived."""

from __future__ import annotations

import ipaddress
import struct
import typing as t

import pytest

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._traffic import flow_run, flows
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.outcome import Outcome
from ansible_collections.fastpath.bench.plugins.modules import flow_run as module

MACS = ("02:00:00:00:00:01", "02:00:00:00:00:02")


def ones_sum(data: bytes) -> int:
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def test_no_two_flows_have_the_same_ends() -> None:
    pairs = flows.ends("10.0.0.255", 150_000, 3)
    assert len(set(pairs)) == 150_000
    assert {address for address, _port in pairs} == {int(ipaddress.IPv4Address("10.0.0.255")) + n for n in range(3)}
    assert min(port for _address, port in pairs) == 1024
    shuffled = flows.ends("10.0.0.255", 150_000, 3, seed=1)
    assert shuffled != pairs
    assert sorted(shuffled) == sorted(pairs)
    assert shuffled == flows.ends("10.0.0.255", 150_000, 3, seed=1)
    assert max(port for _address, port in flows.ends("10.0.0.1", flows.PORTS, 1)) == 65535
    with pytest.raises(BenchError, match="64513 flows") as caught:
        flows.ends("10.0.0.1", flows.PORTS + 1, 1)
    assert caught.value.remedy == "Use 2 sources"


@pytest.mark.parametrize("payload", [18, 64, 1472])
@pytest.mark.parametrize("target", [("10.9.8.7", 7), ("255.255.255.254", 65535)])
def test_frames_are_whole(payload: int, target: tuple[str, int]) -> None:
    pairs = flows.ends("192.168.255.254", 500, 4)
    data = flows.frames(MACS, pairs, target, payload)
    size = 42 + payload
    assert len(data) == size * len(pairs)
    for number, (address, port) in enumerate(pairs):
        frame = data[number * size : (number + 1) * size]
        assert frame[:14] == bytes.fromhex("0200000000010200000000020800")
        ip, udp = frame[14:34], frame[34:]
        assert ones_sum(ip) == 0xFFFF
        assert struct.unpack("!H", ip[2:4])[0] == size - 14
        assert struct.unpack("!II", ip[12:20]) == (address, int(ipaddress.IPv4Address(target[0])))
        assert struct.unpack("!HHH", udp[:6]) == (port, target[1], 8 + payload)
        assert ones_sum(ip[12:20] + struct.pack("!HH", 17, len(udp)) + udp) == 0xFFFF


class Path:
    """A sender and a sink with a device between them that loses some."""

    def __init__(self, flows_: int, lose: t.Sequence[int] = (), rate: float = 100_000.0) -> None:
        self.count = flows_
        self.position = self.busy = self.arrived = 0
        self.lose = list(lose)
        self.rate = rate

    def run(self, frames_: int | None, *, rate: float, until: float | None = None) -> tuple[int, float, float]:
        sent = self.count * 4 if frames_ is None else frames_
        self.arrived += sent - (self.lose.pop(0) if self.lose else 0)
        return sent, 0.0, sent / min(rate or self.rate, self.rate)

    def still(self) -> int:
        return self.arrived


def trial(**options: t.Any) -> flow_run.Trial:
    return flow_run.trial_from({"server": "192.0.2.1", "port": 9, **options}, "one")


def measured(asked: flow_run.Trial, path: Path) -> Outcome:
    made = Outcome()
    both = t.cast("t.Any", path)
    if asked.mode == flow_run.ESTABLISHED:
        flow_run._ramp(asked, both, both, made)
    flow_run._measure(asked, both, both, made)
    return made


def test_what_arrived_of_new_flows_is_what_was_opened() -> None:
    made = measured(trial(flows=1000, rate_pps=1000), Path(1000, lose=[100]))
    values = {name: one.value for name, one in made.metrics.items()}
    assert values["flow_rate_forward"] == pytest.approx(900)
    assert values["offered_flow_rate_forward"] == pytest.approx(1000)
    assert (values["flows_open_forward"], values["frame_loss_ratio_forward"]) == (900, 0.1)
    assert (made.status, made.findings) == ("ok", [])
    assert set(values) == set(flow_run.metric_names("new"))


@pytest.mark.parametrize(("rate", "limited"), [(0, True), (50_000, False), (500_000, True)])
def test_a_sender_that_is_the_limit_says_so(rate: float, limited: bool) -> None:
    made = measured(trial(flows=1000, rate_pps=rate), Path(1000))
    assert [one["code"] for one in made.findings] == ["generator_limited"] * limited


def test_flows_are_open_before_they_are_measured() -> None:
    asked = trial(flows=1000, mode="established")
    assert measured(asked, Path(1000, lose=[7, 1])).status == "ok"
    made = measured(asked, Path(1000, lose=[7] * 5))
    assert (made.status, made.code) == ("invalid", "not_ramped")
    assert "993 of 1000" in str(made.reason)
    assert set(made.metrics) == set(flow_run.metric_names("established"))


def test_more_than_was_sent_is_no_result() -> None:
    assert measured(trial(flows=1000), Path(1000, lose=[-1])).code == "received_over_sent"


def test_the_number_of_flows_follows_from_rate_and_time() -> None:
    assert trial(rate_pps=5000, duration_s=2).count == 10_000


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"mode": "established", "rate_pps": 5.0},
        {"flows": 0},
        {"flows": 70_000},
        {"flows": 1, "payload_bytes": 17},
        {"flows": 1, "payload_bytes": 1473},
        {"flows": 1, "server": "fd00::1"},
        {"flows": 1, "port": None},
        {"flows": 1, "rate_pps": -1.0},
    ],
)
def test_what_cannot_be_run_is_refused_before(options: dict[str, t.Any]) -> None:
    with pytest.raises(BenchError) as caught:
        trial(**options)
    assert caught.value.code == "bad_option"


def test_a_plan_is_checked() -> None:
    module.check_trial({"flows": 5, "port": None}, "flow_rate_forward")
    with pytest.raises(BenchError, match="does not count goodput_reverse"):
        module.check_trial({"flows": 5}, "goodput_reverse")
    with pytest.raises(BenchError, match="there is no option flow"):
        module.check_trial({"flow": 5}, "flow_rate_forward")


def test_one_that_cannot_begin_is_a_record(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere(_server: str) -> flow_run.WayOut:
        raise BenchError("no way", code="no_route")

    monkeypatch.setattr(flow_run, "way_out", nowhere)
    monkeypatch.setattr("os.geteuid", lambda: 0)
    (record,) = flow_run.run_trials([trial(flows=1)])
    assert (record["status"], record["code"], record["window"]) == ("failed", "no_route", None)
    assert record["metrics"]["flow_rate_forward"]["value"] is None
