# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Recorded reports of real releases, and what they say."""

from __future__ import annotations

import time

import pytest
from iperf_cases import CASES, SLOW_4, STEADY, STEADY_2, WHOLE, WHOLE_2, Case, counted, report, text

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError, ParseError
from ansible_collections.fastpath.bench.plugins.module_utils._traffic import iperf2, iperf3, iperf3_json
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.record import (
    IncompleteError,
    Interval,
    pick_final,
)
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.steady import Window, figures


@pytest.mark.parametrize(
    "case", CASES, ids=lambda case: f"{case.file}-{case.direction}-{case.role}-{case.window.warmup_s}"
)
def test_figures(case: Case) -> None:
    found = counted(case.file, case.direction, case.role, case.window, peer=case.peer)
    assert found.rate_bps == pytest.approx(case.size * 8 / case.seconds, rel=2e-3)
    for name in ("packets", "lost", "retransmits"):
        expected = getattr(case, name)
        if expected is not None:
            assert getattr(found, name) == expected, name


def test_out_of_order_is_kept_and_is_no_row() -> None:
    assert counted("iperf-2.1.8_udp_p2_fd.server.txt", "forward", "receiver", WHOLE_2).out_of_order == 1
    assert counted("iperf-2.0.5_udp.client.txt", "forward", "receiver", Window(0, 10, 10), peer=True).out_of_order == 1
    assert counted("iperf-2.1.8_udp_fwd.server.txt", "forward", "receiver", WHOLE).out_of_order == 0
    assert counted("iperf-2.0.13_udp_p2.server.txt", "forward", "receiver", Window(0, 10, 1, 2)).out_of_order == 31


def test_sum_of_both_directions_is_no_direction() -> None:
    found = report("iperf-2.1.4_csv_duplex.client.txt", port=5001)
    window = Window(0, 10, 10)
    forward, reverse = figures(found, "forward", "sender", window), figures(found, "reverse", "receiver", window)
    assert forward is not None
    assert reverse is not None
    assert forward.rate_bps == pytest.approx(922837735, rel=1e-6)
    assert reverse.rate_bps == pytest.approx(941558069, rel=1e-6)
    assert [row.rate_bps for row in found.sums_both] == [1864417892]
    assert found.sums == ()


def test_a_sum_row_alone_counts() -> None:
    found = report("iperf-2.2.0_csv_udp_sum.client.txt")
    seen = figures(found, "forward", "sender", Window(0, 10, 10))
    assert seen is not None
    assert seen.rate_bps == pytest.approx(6275512320)


CSV = "20240101000000,10.0.0.1,40000,10.0.0.2,5001,3,0.0-10.0,{bytes},{speed}\n"


@pytest.mark.parametrize("fields", [8, 10, 12, 16, 30])
def test_unknown_number_of_columns_is_named(fields: int) -> None:
    line = ",".join((CSV.strip().format(bytes=1250000000, speed=1000000000) + ",0" * 40).split(",")[:fields]) + "\n"
    with pytest.raises(ParseError) as caught:
        iperf2.parse(line, end="client")
    assert caught.value.code == "unknown_columns"
    assert "20240101000000" in caught.value.message


def test_headed_rows_of_another_width_are_refused() -> None:
    broken = text("iperf-2.2.0_csv_tcp.client.txt").replace(",4294967295,0,0\n", ",0,0\n", 1)
    with pytest.raises(ParseError, match="columns"):
        iperf2.parse(broken, end="client")


@pytest.mark.parametrize("speed", [784439040, 6714797952, 6275636577 * 8])
def test_a_speed_that_is_not_bytes_over_time_is_refused(speed: int) -> None:
    with pytest.raises(ParseError, match="rate of a row"):
        iperf2.parse(CSV.format(bytes=7844390400, speed=speed), end="client")
    iperf2.parse(CSV.format(bytes=7844390400, speed=6275636577), end="client")


def test_misspelt_unit_is_an_error() -> None:
    line = "[  5]   0.00-10.00  sec   176 MBytes  147641 Kbis/sec                  receiver\n"
    for read in (lambda: iperf3.parse("[ ID] Interval\n" + line), lambda: iperf2.parse(line, end="client")):
        with pytest.raises(ParseError, match="cannot be read"):
            read()


def test_streams_that_reuse_a_number_are_kept_apart() -> None:
    dual = (
        "Client connecting to 192.0.2.2, TCP port 5001\n"
        "[  3] local 192.0.2.1 port 41000 connected with 192.0.2.2 port 5001\n"
        "[  4] local 192.0.2.1 port 5001 connected with 192.0.2.2 port 42000\n"
        "[  3]  0.0-10.0 sec  1.10 GBytes   945 Mbits/sec\n"
        "[  4]  0.0-10.0 sec   550 MBytes   461 Mbits/sec\n"
    )
    found = iperf2.parse(dual, end="client")
    window = Window(0, 10, 10)
    forward, reverse = figures(found, "forward", "sender", window), figures(found, "reverse", "receiver", window)
    assert forward is not None
    assert reverse is not None
    assert forward.rate_bps == pytest.approx(945e6, rel=0.01)
    assert reverse.rate_bps == pytest.approx(461e6, rel=0.01)


def test_the_last_row_is_not_the_final_one() -> None:
    final, late = Interval(0, 5.04, 100, 158.7), Interval(4, 5, 20, 160)
    intervals, found = pick_final([Interval(0, 4, 80, 160), final, late], 1.0)
    assert found is final
    assert intervals[-1] is late


def test_a_reverse_test_without_columns_is_known_by_its_connection() -> None:
    plain = (
        "Server listening on TCP port 5001\n"
        "[  1] local 192.0.2.2 port 5001 connected with 192.0.2.1 port 51918 (reverse)\n"
        "[  1] 0.0000-10.0000 sec  1.10 GBytes   945 Mbits/sec\n"
    )
    assert [(flow.direction, flow.role) for flow in iperf2.parse(plain, end="server").flows] == [("reverse", "sender")]


def test_sum_and_streams_must_agree() -> None:
    wrong = text("iperf-2.0.9_tcp_unaligned.client.txt").replace("738 MBytes  1183", "1476 MBytes  2363")
    with pytest.raises(ParseError, match="disagree"):
        figures(iperf2.parse(wrong, end="client", interval_s=1), "forward", "sender", Window(0, 5, 1, 3))


def test_sums_of_streams_that_do_not_run_at_the_same_time_are_no_contradiction() -> None:
    """Each stream's rows hold its own time; the tool adds them up by the time at which they came."""
    assert counted("iperf-2.1.8_slow_tcp_p4.client.txt", "forward", "sender", SLOW_4).out_of_step > 0.4
    assert counted("iperf-2.1.8_tcp_p2.client.txt", "forward", "sender", STEADY_2).out_of_step == 0
    wrong = text("iperf-2.1.8_slow_tcp_p4.client.txt").replace("8519920 Bytes  23723463", "9519920 Bytes  26507900")
    with pytest.raises(ParseError, match="disagree over the whole test"):
        figures(iperf2.parse(wrong, end="client", interval_s=0.5), "forward", "sender", SLOW_4)


def test_a_stream_that_began_late_leaves_no_figure() -> None:
    assert "-nan" in text("iperf-2.1.8_slow_tcp_p4.server.txt")
    with pytest.raises(IncompleteError, match="began late"):
        counted("iperf-2.1.8_slow_tcp_p4.server.txt", "forward", "receiver", SLOW_4)


def test_a_rate_over_no_time_is_none_and_over_any_time_an_error() -> None:
    row = "[  1] 0.0000-{0} sec  962888 Bytes  -nan bits/sec  10=2:0:0:1:0:0:0:7\n"
    (flow,) = iperf2.parse(row.format("0.0000"), end="server", interval_s=1).flows
    assert flow.intervals[0].rate_bps == 0
    with pytest.raises(ParseError, match="cannot be read"):
        iperf2.parse(row.format("0.5000"), end="server")


def test_a_connection_may_be_printed_after_its_first_row_but_not_never() -> None:
    slow = text("iperf-2.1.8_slow_udp_p2.client.txt")
    late = next(line for line in slow.splitlines() if line.startswith("[  2] local"))
    assert slow.index("[  2] 0.0000-0.5000") < slow.index(late)
    found = {flow.id: flow for flow in iperf2.parse(slow, end="client", interval_s=0.5).flows if not flow.peer_report}
    assert found["2"].remote == ("10.73.3.2", 5207)
    assert len(found["2"].intervals) == 5
    with pytest.raises(ParseError, match="never connected"):
        iperf2.parse(slow.replace(late + "\n", ""), end="client", interval_s=0.5)


def test_number_of_streams_must_be_the_asked_one() -> None:
    with pytest.raises(IncompleteError) as caught:
        figures(report("iperf-2.1.8_tcp_p2.server.txt"), "forward", "receiver", Window(0.5, 1, 0.5, 10))
    assert caught.value.code == "streams_mismatch"


@pytest.mark.parametrize("window", [WHOLE, STEADY])
@pytest.mark.parametrize(
    ("file", "direction", "role"),
    [
        ("iperf-2.1.8_died_tcp.client.txt", "forward", "sender"),
        ("iperf-2.1.8_died_tcp.server.txt", "forward", "receiver"),
        ("iperf-2.1.8_died_tcp_rev.client.txt", "reverse", "receiver"),
        ("iperf-2.1.8_died_tcp_fd.client.txt", "reverse", "receiver"),
        ("iperf-2.1.8_died_udp.server.txt", "forward", "receiver"),
        ("iperf-2.1.8_died_udp_rev.client.txt", "reverse", "receiver"),
        ("iperf-2.1.8_died_udp_fd.client.txt", "reverse", "receiver"),
    ],
)
def test_a_test_that_ended_early_has_no_figure(file: str, direction: str, role: str, window: Window) -> None:
    with pytest.raises(IncompleteError):
        figures(report(file), direction, role, window)


def test_lost_closing_datagrams_do_not_dilute_the_figure() -> None:
    """The receiver waited 2 s for an end it was not told; its final row says half of what arrived."""
    row = "[ *1] {0:.4f}-{1:.4f} sec  640000 Bytes  10240000 bits/sec   0.001 ms 0/10000 (0%)\n"
    idle = "[ *1] {0:.4f}-{1:.4f} sec  0.000 Bytes  0.000 bits/sec   0.000 ms 0/0 (0%) -/-/-/- ms 0 pps\n"
    lines = [row.format(n / 2, n / 2 + 0.5) for n in range(4)] + [idle.format(n / 2, n / 2 + 0.5) for n in range(4, 8)]
    lines.append("[ *1] 0.0000-4.0000 sec  2560000 Bytes  5120000 bits/sec   0.001 ms 0/40000 (0%)\n")
    seen = figures(iperf2.parse("".join(lines), end="client", interval_s=0.5), "reverse", "receiver", Window(0, 2, 0.5))
    assert seen is not None
    assert seen.rate_bps == pytest.approx(10240000)


def test_stalled_intervals_are_zero_and_counted() -> None:
    stalled = (
        "[ ID] Interval           Transfer     Bitrate         Retr  Cwnd\n"
        "[  5]   0.00-1.00   sec   100 KBytes   819 Kbits/sec    0   1.41 KBytes\n"
        "[  5]   1.00-2.00   sec  0.00 Bytes  0.00 bits/sec    1   1.41 KBytes\n"
        "[  5]   2.00-3.00   sec  0.00 Bytes  0.00 bits/sec    0   1.41 KBytes\n"
        "- - - - - - - - - - - - - - - - - - - - - - - - -\n"
        "[  5]   0.00-3.00   sec   100 KBytes   273 Kbits/sec    1             sender\n"
        "[  5]   0.00-3.00   sec  0.00 Bytes  0.00 bits/sec                  receiver\n"
    )
    found = iperf3.parse(stalled, interval_s=1)
    seen = figures(found, "forward", "sender", Window(0, 3, 1))
    assert seen is not None
    assert seen.zero_intervals == 2
    assert seen.retransmits == 1
    got = figures(found, "forward", "receiver", Window(0, 3, 1), peer_report=True)
    assert got is not None
    assert got.rate_bps == 0


def test_loss_comes_from_the_counts_not_the_percentage() -> None:
    line = (
        "[ ID] Interval           Transfer     Bitrate         Jitter    Lost/Total Datagrams\n"
        "[  5]   0.00-10.00  sec   153 MBytes   128 Mbits/sec  0.000 ms  0/109771 (0%)  sender\n"
        "[  5]   0.00-10.00  sec   198 KBytes   163 Kbits/sec  11185108.147 ms  109632/109771 (1e+02%)  receiver\n"
    )
    found = iperf3.parse(line)
    seen = figures(found, "forward", "receiver", Window(0, 10, 10), peer_report=True)
    assert seen is not None
    assert (seen.lost, seen.packets) == (109632, 139)


def test_percentage_that_contradicts_the_counts_is_refused() -> None:
    wrong = text("iperf-2.1.8_udp_fwd.server.txt").replace("(42%)", "(12%)", 1)
    with pytest.raises(ParseError, match="percentage"):
        iperf2.parse(wrong, end="server", interval_s=0.5)


def test_error_document_is_an_error() -> None:
    found = report("iperf3-3.12_ref.json")
    assert found.errors == ("unable to connect to server: Connection refused",)
    assert found.flows == ()


def test_no_json_at_all_is_no_report() -> None:
    with pytest.raises(IncompleteError) as caught:
        iperf3.parse("")
    assert caught.value.code == "no_report"


UDP_317 = (
    '{"start": {"test_start": {"protocol": "UDP", "num_streams": 1, "reverse": 0}, "version": "iperf 3.17.1"},'
    ' "intervals": [], "end": {"streams": [{"udp": {"socket": 5, "start": 0, "end": 10, "seconds": 10,'
    ' "bytes": 1000000, "bits_per_second": 800000, "jitter_ms": 0.01, "lost_packets": 100, "packets": 1000,'
    ' "lost_percent": 10, "out_of_order": 0}}], "sum": {"bytes": 1000000}@}}'
)


def test_udp_means_the_same_in_old_and_new_json() -> None:
    old = UDP_317.replace("@", "")
    new = UDP_317.replace("@", ', "sum_sent": {"bytes": 1000000}, "sum_received": {"bytes": 900000}')
    for document in (old, new):
        seen = figures(iperf3.parse(document), "forward", "receiver", Window(0, 10, 10), peer_report=True)
        assert seen is not None
        assert seen.rate_bps == pytest.approx(720000)
        assert (seen.packets, seen.lost) == (900, 100)


def test_udp_bytes_and_losses_that_contradict_are_refused() -> None:
    wrong = UDP_317.replace("@", ', "sum_received": {"bytes": 1000000}')
    with pytest.raises(ParseError, match="disagree"):
        iperf3.parse(wrong)


@pytest.mark.parametrize("token", ["nan", "-nan", "NaN", "inf"])
def test_not_a_number_is_unknown(token: str) -> None:
    document = (
        '{"start": {"test_start": {"protocol": "UDP", "num_streams": 1, "reverse": 1}}, "intervals": [{"streams":'
        ' [{"socket": 5, "start": 0, "end": 1, "seconds": 1, "bytes": 0, "bits_per_second": 0, "jitter_ms": 0,'
        ' "lost_packets": 0, "packets": 0, "lost_percent": @, "omitted": false, "sender": false}]}], "end": {}}'
    ).replace("@", token)
    found = iperf3.parse(document, interval_s=0.5)
    assert [flow.final.lost for flow in found.flows if flow.final] == [None]


def test_omitted_intervals_do_not_count() -> None:
    row = (
        '{"streams": [{"socket": 5, "start": %d, "end": %d, "seconds": 1, "bytes": %d, "bits_per_second": %d,'
        ' "omitted": %s, "sender": true}]}'
    )
    rows = [row % (0, 1, 1000, 8000, "true"), row % (0, 1, 4000, 32000, "false"), row % (1, 2, 4000, 32000, "false")]
    document = '{"start": {"test_start": {"protocol": "TCP"}}, "intervals": [' + ",".join(rows) + '], "end": {}}'
    found = iperf3.parse(document)
    assert [row.bytes for flow in found.flows for row in flow.intervals] == [4000, 4000]


def test_log_flood_is_read_in_bounded_time() -> None:
    flood = "iperf3: OUT OF ORDER - incoming packet = 5 and received packet = 6 AND SP = 5\n" * 100_000
    begin = time.monotonic()
    found = iperf3.parse(flood + text("iperf3-3.12_udp.json"), interval_s=0.5)
    assert time.monotonic() - begin < 5
    assert len(found.flows) == 2


def test_server_report_inside_the_client_json_gives_the_intervals() -> None:
    found = iperf3.parse_client(text("iperf3-3.12_udpg.json"), interval_s=0.5)
    received = [flow for flow in found.flows if flow.role == "receiver"]
    assert [flow.peer_report for flow in received] == [False]
    assert iperf3_json.server_output(text("iperf3-3.12_udp.json")) is None


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("iperf-2.1.8_refused_tcp.client.txt", "tcp connect failed: Connection refused"),
        ("iperf-2.1.8_refused_udp.client.txt", "read failed: Connection refused"),
        ("iperf-2.1.8_died_tcp.client.txt", "tcp write failed: Connection reset by peer"),
    ],
)
def test_failures_on_stderr_are_errors(file: str, message: str) -> None:
    assert message in report(file).errors


@pytest.mark.parametrize("where", ["stdout", "stderr"])
@pytest.mark.parametrize(
    "message",
    [
        "connect failed: Connection refused",
        "bind failed: Address already in use",
        "listener bind failed: Address already in use",
    ],
)
def test_failures_are_errors_wherever_they_are(where: str, message: str) -> None:
    found = iperf2.parse(
        message + "\n" if where == "stdout" else "", end="client", stderr=message if where == "stderr" else ""
    )
    assert found.errors == (message,)


def test_a_cut_line_is_refused() -> None:
    with pytest.raises(ParseError, match="cut off"):
        iperf2.parse("[  1] 0.0000-0.5000 sec  640140 Bytes  1024", end="client")


def test_errors_are_bench_errors() -> None:
    assert issubclass(ParseError, BenchError)
    assert issubclass(IncompleteError, BenchError)
