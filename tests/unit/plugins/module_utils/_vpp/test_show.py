# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Outputs of VPP 26.06 as recorded, and of older releases in the columns that their sources print."""

from __future__ import annotations

import contextlib
import pathlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import ParseError
from ansible_collections.fastpath.bench.plugins.module_utils._vpp import show

FIXTURES = pathlib.Path(__file__).resolve().parents[3] / "fixtures" / "vpp"


def recorded(name: str) -> str:
    return (FIXTURES / name).read_text()


def row(name: str, state: str, calls: int, vectors: int, suspends: int, clocks: str, ratio: str) -> str:  # noqa: PLR0917
    return f"{name[:30]:<30}{state[:12]:^12}{calls:^16}{vectors:^16}{suspends:^16}{clocks:>16}{ratio:>16}"


HEAD = "             Name                 State         Calls          Vectors        Suspends     {}   Vectors/Call  "
RATES = "  vector rates in 3.9435e4, out 3.9435e4, drop 0.0000e0, punt 0.0000e0"
TIMES = {
    "2015": ("Time 96.8, average vectors/node 14.85, last 128 main loops 0.00 per node 0.00", "    Clocks    "),
    "10 sec": ("Time 96.8, 10 sec internal node vector rate 14.85 loops/sec 1453675.30", "    Clocks    "),
    "10.00 sec": ("Time 96.8, 10.00 sec internal node vector rate 14.85 loops/sec 1453675.30", "Packet-Clocks "),
    "10.000000 sec": (
        "Time 96.8, 10.000000 sec internal node vector rate 14.85 loops/sec 1453675.30",
        "Packet-Clocks ",
    ),
    "no loops": ("Time 96.8, 10 sec internal node vector rate 14.85 ", "    Clocks    "),
}


def runtime(generation: str, *rows: str, thread: str = "") -> str:
    time, column = TIMES[generation]
    return "\n".join([*([thread] if thread else []), time, RATES, HEAD.format(column), *rows]) + "\n"


def test_the_recorded_output_of_26_06_is_read_whole():
    main, worker = show.parse_runtime(recorded("show-runtime-26.06-workers.txt"))
    assert (main.thread, main.name, main.lcore) == (0, "vpp_main", 0)
    assert (worker.thread, worker.name, worker.lcore) == (1, "vpp_wk_0", 1)
    rx = next(node for node in worker.nodes if node.name == "af-packet-input")
    assert rx.state == "interrupt wa"
    assert (rx.calls, rx.vectors, rx.clocks) == (13, 13, 1.1e7)
    echo = next(node for node in main.nodes if node.name == "ip4-icmp-echo-request")
    assert (echo.calls, echo.vectors, echo.vectors_per_call) == (60, 60, 1.0)
    assert main.loops_per_s
    assert main.rate_in == pytest.approx(1.6889, rel=0.5)


def test_a_summary_has_threads_without_nodes():
    threads = show.parse_runtime(recorded("show-runtime-summary-26.06.txt"))
    assert [(thread.name, thread.nodes) for thread in threads] == [("vpp_main", ()), ("vpp_wk_0", ())]


@pytest.mark.parametrize("name", ["show-runtime-time-26.06.txt", "show-runtime-max-26.06.txt"])
def test_forms_with_other_columns_are_refused(name):
    with pytest.raises(ParseError, match="plain form"):
        show.parse_runtime(recorded(name))


@pytest.mark.parametrize("generation", TIMES)
def test_all_generations_of_the_header_read_alike(generation):
    text = runtime(generation, row("dpdk-input", "polling", 215610621, 3817733, 0, "2.98e4", ".02"))
    (thread,) = show.parse_runtime(text)
    assert (thread.thread, thread.name, thread.lcore) == (0, "vpp_main", None)
    assert (thread.duration_s, thread.vectors_per_node) == (96.8, 14.85)
    assert thread.nodes == (show.NodeRow("dpdk-input", "polling", 215610621, 3817733, 0, 2.98e4, 0.02),)


def test_a_long_name_that_touches_the_state_does_not_shift_the_columns():
    rows = [
        row("dhcp6-pd-reply-publisher-process", "event wait", 0, 0, 1, "4.55e3", "0.00"),
        row("send-dhcp6-client-message-process", "any wait", 0, 0, 1, "4.55e3", "0.00"),
        row("af-packet-input-with-a-long-name", "interrupt wait", 8211032318951, 0, 0, "3.07e1", "0.00"),
        row("dhcp6-reply-publisher-process", '"event wait"', 0, 0, 1, "4.42e3", "0.00"),
    ]
    (thread,) = show.parse_runtime(runtime("10 sec", *rows))
    assert [(node.name, node.state, node.calls) for node in thread.nodes] == [
        ("dhcp6-pd-reply-publisher-proce", "event wait", 0),
        ("send-dhcp6-client-message-proc", "any wait", 0),
        ("af-packet-input-with-a-long-na", "interrupt wa", 8211032318951),
        ("dhcp6-reply-publisher-process", "event wait", 0),
    ]
    assert thread.nodes[0].name_cut
    assert not thread.nodes[3].name_cut


def test_workers_alone_are_read_and_keep_their_numbers():
    rows = [row("ip4-lookup", "active", 10, 20, 0, "1.00e2", "2.00")]
    text = runtime("10 sec", *rows, thread="Thread 1 vpp_wk_0 (lcore 2)")
    text += "---------------\n" + runtime("10 sec", *rows, thread="Thread 2 vpp_wk_1 (lcore 3)")
    assert [(thread.thread, thread.name, thread.lcore) for thread in show.parse_runtime(text)] == [
        (1, "vpp_wk_0", 2),
        (2, "vpp_wk_1", 3),
    ]


def test_pending_events_are_no_row():
    rows = [
        row("fib-walk", "any wait", 0, 0, 7, "1.57e4", "0.00"),
        "    events pending, ",
        row("ip4-lookup", "active", 10, 20, 0, "1.00e2", "2.00"),
    ]
    (thread,) = show.parse_runtime(runtime("10.000000 sec", *rows))
    assert [node.name for node in thread.nodes] == ["fib-walk", "ip4-lookup"]


def test_a_row_that_contradicts_itself_is_refused():
    with pytest.raises(ParseError, match=r"are not 14\.69 a call"):
        show.parse_runtime(runtime("10 sec", row("sample", "active", 259829, 38177, 0, "2.33e2", "14.69")))


def test_rates_right_after_a_clear_are_unknown_and_not_zero():
    text = runtime("10 sec").replace("in 3.9435e4", "in inf").replace("drop 0.0000e0", "drop -nan")
    (thread,) = show.parse_runtime(text)
    assert (thread.rate_in, thread.rate_drop, thread.rate_out) == (None, None, 3.9435e4)


def test_a_text_that_lost_its_columns_is_still_read():
    lines = [" ".join(line.split()) for line in recorded("show-runtime-26.06-workers.txt").splitlines()]
    squeezed = show.parse_runtime("\n".join(lines[:3] + lines[4:5] * 0 + lines[3:4]))
    assert squeezed[0].nodes == ()
    kept = [line for line in lines if len(line.split()[0].split('"')[0]) < 30 or line[0] in "T-"]
    whole = show.parse_runtime("\n".join(kept))
    assert "ip4-lookup" in [node.name for node in whole[0].nodes]
    assert {node.state for node in whole[0].nodes} >= {"active", "any wait", "suspended"}


def test_errors_of_26_06_are_added_up_over_the_threads_plain_and_verbose():
    plain = show.parse_errors(recorded("show-errors-26.06.txt"))
    verbose = show.parse_errors(recorded("show-errors-verbose-26.06.txt"))
    assert plain == verbose
    by_node = {(row.node, row.reason): row for row in plain}
    assert by_node["af-packet-input", "timed out block"].count == 61 + 13
    assert by_node["ip4-icmp-input", "echo replies sent"].severity == "info"


def error_row(layout: tuple[int, int, int], count: int, node: str, reason: str, *tail: str) -> str:
    text = f"{count:>{layout[0]}}{node[: layout[1]]:^{layout[1]}}"
    if not layout[2]:
        return text + reason
    return text + f"{reason[: layout[2]]:^{layout[2]}}" + "".join(f"{word:^10}" for word in tail)


def error_head(layout: tuple[int, int, int], *more: str) -> str:
    def centred(word: str, width: int) -> str:
        left = (width - len(word) + 1) // 2
        return " " * left + word + " " * (width - len(word) - left)

    text = centred("Count", layout[0]) + centred("Node", layout[1]) + centred("Reason", layout[2] or 20)
    return text + "".join(centred(word, 10) for word in more)


@pytest.mark.parametrize(
    ("layout", "severity"),
    [((16, 40, 0), False), ((10, 40, 0), False), ((10, 30, 20), True), ((10, 35, 35), True)],
    ids=["2015", "2019", "20.10", "20.11"],
)
def test_all_generations_of_show_errors_read_alike(layout, severity):
    tail = ("error",) if severity else ()
    lines = [
        error_head(layout, *(["Severity"] if severity else [])),
        error_row(layout, 32258, "dpdk-input", "no error here", *tail),
        error_row(layout, 32256, "dpdk-input", "no error here", *tail),
        error_row(layout, 7, "nat44-ed-in2out-output-slowpath", "out of ports", *tail),
    ]
    rows = show.parse_errors("\n".join(lines) + "\n")
    expected_node = "nat44-ed-in2out-output-slowpath"[: layout[1]]
    assert rows == [
        show.ErrorCount("dpdk-input", "no error here", 64514, "error" if severity else None),
        show.ErrorCount(expected_node, "out of ports", 7, "error" if severity else None),
    ]


def test_columns_that_touch_are_cut_where_vpp_cuts_them():
    layout = (10, 35, 35)
    reason = "a reason of exactly thirty-five char"[:35]
    line = error_row(layout, 3, "n" * 35, reason, "warn")
    (found,) = show.parse_errors(error_head(layout, "Severity") + "\n" + line)
    assert (found.node, found.reason, found.severity) == ("n" * 35, reason, "warn")


def test_a_count_that_fills_its_column_may_be_cut_and_is_not_known():
    layout = (10, 35, 35)
    text = error_head(layout, "Severity") + "\n" + error_row(layout, 1234567890, "drop", "lost", "error")
    (found,) = show.parse_errors(text)
    assert found.count is None
    assert show.sum_errors([found]) == {}


def test_show_errors_without_rows_is_no_error():
    assert show.parse_errors(error_head((10, 35, 35), "Severity") + "\n") == []


def test_errors_without_their_columns_are_still_read():
    text = "Count Node Reason Severity\n 3 ip4-input ip4 ttl <= 1 error\n 10 arp-reply ARP replies sent info\n"
    assert show.parse_errors(text) == [
        show.ErrorCount("ip4-input", "ip4 ttl <= 1", 3, "error"),
        show.ErrorCount("arp-reply", "ARP replies sent", 10, "info"),
    ]


def test_a_thread_without_a_node_line_has_the_node_before_it():
    """VPP 26.06 prints the node only where it changes, also over the border of a thread."""
    assert show.parse_rx_placement(recorded("show-rx-placement-26.06.txt")) == [
        show.RxQueue("host-vp1", 0, 0, "vpp_main", "af-packet-input", "interrupt"),
        show.RxQueue("host-vp1", 1, 1, "vpp_wk_0", "af-packet-input", "interrupt"),
        show.RxQueue("host-vp2", 0, 1, "vpp_wk_0", "af-packet-input", "interrupt"),
    ]


@pytest.mark.parametrize("indent", [" ", "  "])
@pytest.mark.parametrize("mode", ["", " (polling)", " (unknown)"])
def test_placement_of_all_versions_with_several_nodes_in_one_thread(indent, mode):
    text = (
        f"Thread 1 (vpp_wk_0):\n{indent}node dpdk-input:\n    TenGigabitEthernet5/0/0 queue 0{mode}\n"
        f"{indent}node vhost-user-input:\n    VirtualEthernet0/0/1 queue 2{mode}\nThread 2 (vpp_wk_1):\n"
        f"{indent}node dpdk-input:\n    TenGigabitEthernet5/0/0 queue 1{mode}\n"
    )
    word = mode.strip(" ()") or None
    assert [(q.interface, q.queue, q.thread, q.node, q.mode) for q in show.parse_rx_placement(text)] == [
        ("TenGigabitEthernet5/0/0", 0, 1, "dpdk-input", word),
        ("VirtualEthernet0/0/1", 2, 1, "vhost-user-input", word),
        ("TenGigabitEthernet5/0/0", 1, 2, "dpdk-input", word),
    ]


PARSERS = [
    (show.parse_runtime, "show-runtime-26.06-workers.txt"),
    (show.parse_errors, "show-errors-verbose-26.06.txt"),
    (show.parse_rx_placement, "show-rx-placement-26.06.txt"),
]


@pytest.mark.parametrize(("parser", "_name"), PARSERS)
@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=300))
def test_garbage_is_a_typed_error_or_nothing(parser, _name, text):
    try:
        result = parser(text)
    except ParseError:
        return
    assert result == []


@pytest.mark.parametrize(("parser", "name"), PARSERS)
@given(st.data())
def test_a_text_cut_anywhere_never_yields_another_number(parser, name, data):
    text = recorded(name)
    whole = parser(text)
    cut = text[: data.draw(st.integers(0, len(text)))]
    try:
        part = parser(cut)
    except ParseError:
        return
    if parser is show.parse_runtime:
        known = {(thread.thread, node) for thread in whole for node in thread.nodes}
        assert {(thread.thread, node) for thread in part for node in thread.nodes} <= known
    elif parser is show.parse_errors:
        known_counts = {(row.node, row.reason): row.count for row in whole}
        assert all(known_counts[row.node, row.reason] >= row.count for row in part)
    else:
        assert set(part) <= set(whole)


@given(st.sampled_from(PARSERS), st.data())
def test_a_damaged_character_is_a_typed_error_or_harmless(case, data):
    parser, name = case
    text = recorded(name)
    at = data.draw(st.integers(0, len(text) - 1))
    damaged = text[:at] + data.draw(st.characters(codec="utf-8")) + text[at + 1 :]
    with contextlib.suppress(ParseError):
        parser(damaged)
