# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The segment's bytes, what they mean, and their cut to the windows of trials."""

from __future__ import annotations

import contextlib
import itertools
import pathlib
import typing as t

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._vpp import cli, runtime, statseg, window
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.errors import VppError, VppNotRunning
from ansible_collections.fastpath.bench.tests.unit import fake_statseg

FIXTURES = pathlib.Path(__file__).resolve().parents[3] / "fixtures" / "vpp"
IDLE = (0, 0, 0, 0)


def nodes(factor: int = 1) -> dict[str, list[tuple[int, int, int, int]]]:
    """A router whose worker polls: most calls of its input find nothing."""
    f = factor
    return {
        "null-node": [IDLE, IDLE],
        "fib-walk": [(0, 0, 900, 7), IDLE],
        "af-packet-input": [IDLE, (1000 * f, 480 * f, 96000 * f, 0)],
        "ip4-lookup": [IDLE, (10 * f, 480 * f, 24000 * f, 0)],
        "ip4-rewrite": [IDLE, (10 * f, 480 * f, 48000 * f, 0)],
    }


def test_the_segment_is_read_as_it_was_laid_out():
    memory = fake_statseg.running(
        nodes(), errors={"ip4-input/ip4 ttl <= 1": [1, 2]}, interfaces={"host-eth1": {"drops": 3}}
    )
    segment = statseg.Segment("/x", memory)
    assert segment.scalar("/sys/num_worker_threads") == 1
    assert segment.scalar("/sys/none") is None
    assert segment.names("/sys/node/names") == list(nodes())
    assert [list(row) for row in segment.counters("/sys/node/vectors") or []] == [[0] * 5, [0, 0, 480, 480, 480]]
    assert segment.links_into("/node/errors", "/err/") == {0: "ip4-input/ip4 ttl <= 1"}


def test_another_layout_is_refused():
    with pytest.raises(statseg.SegmentError, match="version 1, not 2"):
        statseg.Segment("/x", fake_statseg.FakeSegment(version=1).build())
    with pytest.raises(statseg.SegmentError, match="version None"):
        statseg.Segment("/x", b"")


def test_a_segment_that_stays_in_progress_is_an_error_after_a_bounded_wait(monkeypatch):
    monkeypatch.setattr(statseg, "_SETTLE_S", 0.05)
    with pytest.raises(statseg.SegmentError, match="did not hold still"):
        statseg.Segment("/x", fake_statseg.FakeSegment(in_progress=1).build())


@given(st.data())
def test_damaged_memory_is_a_typed_error_or_harmless(data):
    statseg_settle, statseg._SETTLE_S = statseg._SETTLE_S, 0.0
    try:
        memory = bytearray(fake_statseg.running(nodes(), errors={"a/b": [1, 2]}, interfaces={"e": {}}))
        for _byte in range(data.draw(st.integers(1, 4))):
            memory[data.draw(st.integers(0, len(memory) - 1))] = data.draw(st.integers(0, 255))
        with contextlib.suppress(VppError):
            segment = statseg.Segment("/x", bytes(memory))
            for name in list(segment.directory):
                segment.counters(name)
                segment.names(name)
                segment.scalar(name)
    finally:
        statseg._SETTLE_S = statseg_settle


def test_nobody_behind_the_socket(tmp_path):
    with pytest.raises(VppNotRunning, match="no VPP listens there"):
        statseg.Segment.open(str(tmp_path / "stats.sock"))


class Script:
    """A VPP whose segment is another one at each reading."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, memories: t.Sequence[bytes | VppError]) -> None:
        self.left = list(memories)
        self.clock = itertools.count(100)
        monkeypatch.setattr(statseg.Segment, "open", classmethod(lambda _cls, path, **_k: self.segment(path)))

    def segment(self, path: str) -> statseg.Segment:
        memory = self.left[0]
        if isinstance(memory, VppError):
            raise memory
        return statseg.Segment(path, memory)


def snapshot(memory: bytes, monkeypatch: pytest.MonkeyPatch) -> runtime.Snapshot:
    Script(monkeypatch, [memory])
    return runtime.Reader("/x").snapshot()


def test_polling_nodes_stay_out_of_the_ratios_of_a_thread(monkeypatch):
    before, after = (snapshot(fake_statseg.running(nodes(factor)), monkeypatch) for factor in (1, 3))
    found, _errors, _interfaces = runtime.difference(before, after)
    record = runtime.report(
        "stats_segment", [runtime.Thread(0, "vpp_main"), runtime.Thread(1, "vpp_wk_0")], found, {}, seconds=2.0
    )
    main, worker = record["threads"]
    assert (main["vectors_per_call"], main["clocks_per_packet"], main["batching"]) == (None, None, "idle")
    assert worker["packets"] == 960
    assert worker["vectors_per_call"] == 48.0
    assert worker["clocks_per_packet"] == 150.0
    assert worker["polling"] == ["af-packet-input"]
    assert (record["busiest_thread"], record["batching"]) == (1, "works")
    assert "batching works" in record["meaning"]
    assert [node["node"] for node in record["nodes"]] == ["af-packet-input", "ip4-rewrite", "ip4-lookup"]


@pytest.mark.parametrize(
    ("per_call", "word"),
    [(None, "idle"), (0.0, "idle"), (1.0, "none"), (1.9, "none"), (4.0, "some"), (30.0, "works"), (254.0, "saturated")],
)
def test_vectors_per_call_have_a_meaning_in_words(per_call, word):
    assert runtime.batching(per_call) == word
    assert runtime.MEANINGS[word]


def test_reasons_are_added_up_over_threads_and_what_is_no_loss_is_left_out(monkeypatch):
    errors = {
        "dpdk-input/no error": [0, 0],
        "ip4-input/ip4 ttl <= 1": [32258, 32256],
        "af-packet-input/timed out block": [0, 500],
        "my-node/packets seen": [0, 7],
    }
    memory = fake_statseg.running(nodes(), errors=errors, interfaces={"host-eth1": {"drops": 9, "rx-miss": 2}, "l": {}})
    _nodes, reasons, interfaces = runtime.difference(runtime._NOTHING, snapshot(memory, monkeypatch))
    drops = runtime.drops_report(interfaces, reasons, {("my-node", "packets seen"): "info"})
    assert drops["reasons"] == [{"node": "ip4-input", "reason": "ip4 ttl <= 1", "count": 64514, "severity": None}]
    assert drops["packets"] == 9
    assert drops["interfaces"] == {"host-eth1": {"drops": 9, "rx_miss": 2}}


def test_counters_that_went_back_are_not_a_difference(monkeypatch):
    later, earlier = (snapshot(fake_statseg.running(nodes(factor)), monkeypatch) for factor in (1, 2))
    with pytest.raises(runtime.WentBack, match="cleared, or VPP was restarted"):
        runtime.difference(earlier, later)


def cli_of(monkeypatch: pytest.MonkeyPatch, answers: dict[str, str]) -> cli.Vppctl:
    monkeypatch.setattr(cli.Vppctl, "run", lambda _self, command, **_k: answers[command])
    return cli.Vppctl()


def answers() -> dict[str, str]:
    return {
        "show runtime": (FIXTURES / "show-runtime-26.06-workers.txt").read_text(),
        "show errors": (FIXTURES / "show-errors-26.06.txt").read_text(),
        "show interface rx-placement": (FIXTURES / "show-rx-placement-26.06.txt").read_text(),
        "clear runtime": "",
        "clear errors": "",
    }


def test_without_node_counters_the_command_line_is_read_and_says_why(monkeypatch):
    Script(monkeypatch, [fake_statseg.running(nodes(), with_nodes=False)])
    result = runtime.observe(runtime.Wish("/x", cli_of(monkeypatch, answers())))
    assert "switched off" in result["why_cli"]
    record = result["runtime"]
    assert record["source"] == "cli"
    assert [thread["name"] for thread in record["threads"]] == ["vpp_main", "vpp_wk_0"]
    assert record["batching"] == "none"
    assert result["rx_queues"][1]["thread"] == 1
    assert {row["node"] for row in record["drops"]["reasons"]} == {"ethernet-input"}


def test_asked_for_the_segment_alone_it_says_what_to_set(monkeypatch):
    Script(monkeypatch, [fake_statseg.running(nodes(), with_nodes=False)])
    with pytest.raises(VppError, match="per-node-counters on") as caught:
        runtime.observe(runtime.Wish("/x", cli_of(monkeypatch, answers()), source="stats_segment"))
    assert caught.value.code == "vpp_no_node_counters"


def test_the_segment_is_preferred_and_check_mode_clears_nothing(monkeypatch):
    cleared: list[str] = []
    Script(monkeypatch, [fake_statseg.running(nodes())])
    monkeypatch.setattr(runtime, "_too_slow", lambda _reader, _wait: None)
    monkeypatch.setattr(cli.Vppctl, "run", lambda _self, command, **_k: cleared.append(command) or answers()[command])
    result = runtime.observe(runtime.Wish("/x", cli.Vppctl(), clear=True), check_mode=True)
    assert result["changed"] is True
    assert not [command for command in cleared if command.startswith("clear")]
    runtime.observe(runtime.Wish("/x", cli.Vppctl(), clear=True))
    assert [command for command in cleared if command.startswith("clear")] == ["clear runtime", "clear errors"]


# ---------------------------------------------------------------- windows


def recording(
    monkeypatch: pytest.MonkeyPatch, steps: t.Sequence[tuple[float, bytes | VppError]]
) -> list[dict[str, t.Any]]:
    """Samples of a VPP that is as given at each time."""
    now = {"at": 0.0}
    monkeypatch.setattr(window.time, "monotonic", lambda: now["at"])
    monkeypatch.setattr(runtime.time, "monotonic", lambda: now["at"])
    script = Script(monkeypatch, [])
    sampler = window.Sampler("/x")
    records = []
    for at, memory in steps:
        now["at"] = at
        script.left = [memory]
        segment = sampler._reader._segment
        if segment is not None:
            if isinstance(memory, VppError):
                monkeypatch.setattr(runtime.Reader, "check_alive", lambda _self, error=memory: _raise(error))
            else:
                segment._memory = memory
        records.append(sampler.sample())
        if isinstance(memory, VppError):
            monkeypatch.setattr(runtime.Reader, "check_alive", lambda _self: None)
    monkeypatch.undo()
    return records


def _raise(error: VppError) -> t.NoReturn:
    raise error


def steady(seconds: int, step_s: float = 0.25, update_every: int = 2) -> list[tuple[float, bytes]]:
    """A load that grows evenly; the node counters are renewed at every second sample."""
    steps = []
    for number in range(int(seconds / step_s) + 1):
        update = number // update_every * update_every
        memory = fake_statseg.running(
            nodes(1 + update),
            errors={"ip4-input/ip4 ttl <= 1": [0, 4 * number]},
            interfaces={"host-eth1": {"drops": 4 * number}},
            heartbeat=1 + number // update_every,
        )
        steps.append((100 + number * step_s, memory))
    return steps


def test_a_window_holds_what_happened_in_it(monkeypatch):
    records = recording(monkeypatch, steady(6))
    assert "n" not in records[1]
    assert records[2]["n"]["1/ip4-lookup"] == [30, 1440, 72000, 0]
    (report,) = window.cut(lambda: records, {"w": (101.0, 105.0)}, 0.25).values()
    assert report["reason"] is None
    worker = report["threads"][1]
    assert (worker["vectors_per_call"], worker["clocks_per_packet"]) == (48.0, 150.0)
    assert worker["packets"] == 480 * 16
    assert report["drops"]["packets"] == 64
    assert report["drops"]["reasons"] == [
        {"node": "ip4-input", "reason": "ip4 ttl <= 1", "count": 64, "severity": None}
    ]


@given(st.floats(100.3, 103.0), st.floats(1.5, 2.9))
def test_a_steady_load_is_the_same_in_any_window(start, length):
    with pytest.MonkeyPatch.context() as patch:
        records = recording(patch, steady(6))
    (report,) = window.cut(lambda: records, {"w": (start, start + length)}, 0.25).values()
    assert report["threads"][1]["packets"] == pytest.approx(480 * 4 * length, rel=0.02)
    assert report["drops"]["packets"] == pytest.approx(16 * length, abs=1)


def test_updates_that_are_too_rare_for_the_window_are_said(monkeypatch):
    records = recording(monkeypatch, steady(12, update_every=40))
    (report,) = window.cut(lambda: records, {"w": (103.0, 105.0)}, 0.25).values()
    assert report["threads"] is None
    assert "update-interval" in report["reason"]
    assert report["drops"]["packets"] == 32


def test_a_restart_in_the_middle_is_said_and_gives_no_number(monkeypatch):
    gone = VppNotRunning("VPP ended")
    first = steady(2)
    records = recording(monkeypatch, [*first, (102.5, gone), *((at + 4, memory) for at, memory in steady(3))])
    reports = window.cut(lambda: records, {"across": (101.0, 105.5), "later": (104.5, 106.5)}, 0.25)
    assert "VPP ended" in reports["across"]["reason"]
    assert reports["across"]["threads"] is None
    assert reports["later"]["reason"] is None
    assert reports["later"]["threads"][1]["packets"] == 480 * 8


def test_counters_cleared_in_the_middle_are_said(monkeypatch):
    steps = steady(4)
    late = [(at + 4.25, memory) for at, memory in steady(4)]
    records = recording(monkeypatch, [*steps, *late])
    (report,) = window.cut(lambda: records, {"w": (103.0, 106.0)}, 0.25).values()
    assert "cleared" in report["reason"]
    assert report["threads"] is None


def test_a_host_without_vpp_has_nothing(monkeypatch):
    records = recording(monkeypatch, [(100.0, VppNotRunning("no VPP")), (101.5, VppNotRunning("no VPP"))])
    assert [record["why"] for record in records] == ["no VPP.", "no VPP."]
    assert window.cut(lambda: records, {"w": (100.0, 101.0)}, 0.25) == {}


def test_node_counters_that_are_off_leave_the_drops(monkeypatch):
    steps = [
        (100 + number * 0.25, fake_statseg.running({}, interfaces={"e": {"drops": number}}, with_nodes=False))
        for number in range(9)
    ]
    records = recording(monkeypatch, steps)
    (report,) = window.cut(lambda: records, {"w": (100.5, 101.5)}, 0.25).values()
    assert "switched off" in report["reason"]
    assert report["drops"]["packets"] == 4


def test_threads_are_named_as_the_kernel_knows_them(tmp_path):
    for task, comm, cpus in ((50, "vpp_main", "0"), (51, "vpp_wk_0", "2"), (52, "vpp_wk_1", "4-5"), (53, "other", "1")):
        folder = tmp_path / "50" / "task" / str(task)
        folder.mkdir(parents=True)
        (folder / "comm").write_text(comm + "\n")
        (folder / "status").write_text(f"Name:\t{comm}\nCpus_allowed_list:\t{cpus}\n")
        (folder / "schedstat").write_text(f"{task}000 5 6\n")
    found = runtime.process_threads(50, str(tmp_path))
    assert found == [
        (runtime.Thread(0, "vpp_main", 0), 50000),
        (runtime.Thread(1, "vpp_wk_0", 2), 51000),
        (runtime.Thread(2, "vpp_wk_1", None), 52000),
    ]


@pytest.mark.parametrize(
    ("wish", "where"),
    [
        (runtime.Wish("/x", cli.Vppctl(), wait_s=-1.0), "wait_s"),
        (runtime.Wish("/x", cli.Vppctl(), top=0), "top"),
        (runtime.Wish("/x", cli.Vppctl(timeout_s=0.0)), "timeout_s"),
    ],
)
def test_what_cannot_be_asked_is_refused_before_vpp_is(wish: runtime.Wish, where: str) -> None:
    with pytest.raises(BenchError) as caught:
        runtime.observe(wish)
    assert (caught.value.code, caught.value.where) == ("bad_option", where)
