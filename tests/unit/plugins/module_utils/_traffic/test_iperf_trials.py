# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options, command lines, verdicts, batches."""

from __future__ import annotations

import json
import pathlib
import typing as t

import pytest
from iperf_cases import report, text

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._traffic import (
    batch,
    iperf,
    iperf2,
    iperf3,
    loss,
    options,
    outcome,
    planned,
    sockets,
)
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.options import TrialOptions

V218 = options.parse_version("iperf version 2.1.8 (12 August 2022) pthreads")
V312 = options.parse_version("iperf 3.12 (cJSON 1.7.15)")


def trial(**more: t.Any) -> TrialOptions:
    values = {"id": "t", "server": "192.0.2.1", "port": 5001, "duration_s": 1.0, "warmup_s": 0.5, "interval_s": 0.5}
    return TrialOptions(**{**values, **more})


@pytest.mark.parametrize(
    ("printed", "tool", "numbers"),
    [
        ("iperf version 2.0.5 (08 Jul 2010) pthreads", "iperf2", (2, 0, 5)),
        ("iperf version 2.0.14a (2 October 2020) pthreads", "iperf2", (2, 0, 14)),
        ("iperf version 2.2.1 (4 Nov 2024) pthreads", "iperf2", (2, 2, 1)),
        ("iperf 3.19 (cJSON 1.7.15)", "iperf3", (3, 19)),
    ],
)
def test_versions(printed: str, tool: str, numbers: tuple[int, ...]) -> None:
    found = options.parse_version(printed)
    assert (found.tool, found.numbers) == (tool, numbers)


def test_an_unreadable_version_is_an_error() -> None:
    with pytest.raises(BenchError, match="version"):
        options.parse_version("command not found")


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, "-p 5001 -t 1.5 -i 0.5 -f b -e"),
        (
            {"parallel": 4, "mss_bytes": 1200, "direction": "both", "tos": 32},
            "-p 5001 -t 1.5 -i 0.5 -f b -e -P 4 -M 1200 -S 32 --full-duplex",
        ),
        ({"protocol": "udp", "length_bytes": 64}, "-p 5001 -t 1.5 -i 0.5 -f b -e -u -b 1000g -l 64"),
        (
            {"protocol": "udp", "rate_pps": 10000, "parallel": 2, "direction": "reverse", "port_per_stream": True},
            "-p 5001 -t 1.5 -i 0.5 -f b -e -P 2 --incr-dstport -u -b 5000pps --reverse",
        ),
        (
            {"rate_bps": 10_000_000, "bind_address": "192.0.2.9"},
            "-p 5001 -t 1.5 -i 0.5 -f b -e -b 10000000 -B 192.0.2.9",
        ),
    ],
)
def test_iperf2_command(more: dict[str, t.Any], expected: str) -> None:
    assert iperf2.client_command("iperf", trial(**more), V218) == ["iperf", "-c", "192.0.2.1", *expected.split()]


def test_ipv6_is_known_by_the_address() -> None:
    assert "-V" in iperf2.client_command("iperf", trial(server="2001:db8::1"), V218)
    assert "-6" in iperf3.client_command("iperf3", trial(server="fe80::1%eth0", tool="iperf3"), V312)


def test_iperf3_runs_whole_seconds() -> None:
    command = iperf3.client_command(
        "iperf3", trial(tool="iperf3", protocol="udp", rate_pps=1000, length_bytes=100, parallel=2), V312
    )
    assert command[command.index("-t") + 1] == "2"
    assert command[command.index("-b") + 1] == "400000"


@pytest.mark.parametrize(
    ("version", "more", "needed"),
    [
        ("iperf version 2.0.13 (21 Jan 2019)", {"direction": "both"}, "2.1.0"),
        ("iperf version 2.0.5 (08 Jul 2010)", {"protocol": "udp", "rate_pps": 5}, "2.0.8"),
        ("iperf version 2.1.2 (1 July 2021)", {"protocol": "udp", "rate_pps": 5, "direction": "reverse"}, "2.1.4"),
        ("iperf 3.6 (cJSON 1.5.2)", {"tool": "iperf3", "direction": "both"}, "3.7"),
        ("iperf version 2.0.4 (7 Apr 2008)", {}, "2.0.5"),
    ],
)
def test_what_a_release_cannot_do_is_refused(version: str, more: dict[str, t.Any], needed: str) -> None:
    with pytest.raises(BenchError) as caught:
        options.check_version(trial(**more), options.parse_version(version))
    assert caught.value.code == "tool_too_old"
    assert needed in caught.value.message


def test_the_oldest_release_is_asked_for_nothing_new() -> None:
    old = options.parse_version("iperf version 2.0.5 (08 Jul 2010) pthreads")
    assert "-e" not in iperf2.client_command("iperf", trial(), old)


@pytest.mark.parametrize(
    "more",
    [
        {"id": "../x"},
        {"port": 0},
        {"parallel": 0},
        {"duration_s": 0},
        {"duration_s": 0.7},
        {"warmup_s": 0.3},
        {"protocol": "sctp"},
        {"direction": "sideways"},
        {"rate_pps": 5},
        {"protocol": "udp", "rate_pps": 5, "rate_bps": 5},
        {"protocol": "udp", "length_bytes": 8},
        {"protocol": "udp", "mss_bytes": 1400},
        {"rate_bps": 2, "parallel": 4},
        {"tos": 256},
        {"tool": "iperf3", "port_per_stream": True},
    ],
)
def test_bad_options_are_refused(more: dict[str, t.Any]) -> None:
    with pytest.raises(BenchError) as caught:
        trial(**more)
    assert caught.value.code == "bad_option"


@pytest.mark.parametrize(
    ("rate", "expected"),
    [
        ("0", (None, None)),
        ("2500000", (2_500_000, None)),
        ("1.5G", (1_500_000_000, None)),
        ("10m", (10_000_000, None)),
        ("100kpps", (None, 100_000)),
    ],
)
def test_rates(rate: str, expected: tuple[int | None, int | None]) -> None:
    assert options.parse_rate(rate) == expected


@pytest.mark.parametrize("rate", ["", "fast", "-1", "10 M", "1e9", "10Mbit"])
def test_what_is_no_rate(rate: str) -> None:
    with pytest.raises(BenchError, match="no rate"):
        options.parse_rate(rate)


def test_a_name_given_twice_is_refused() -> None:
    with pytest.raises(BenchError, match="twice"):
        planned.unique([trial(), trial()])


def test_udp_metrics_carry_unit_layer_and_kind() -> None:
    made = outcome.evaluate(
        report("iperf-2.1.8_udp_fwd.client.txt"), trial(protocol="udp", length_bytes=64, duration_s=1.5, warmup_s=0)
    )
    assert made.status == "ok"
    metrics = {key: metric.as_dict() for key, metric in made.metrics.items()}
    assert metrics["forwarding_rate_forward"]["value"] == pytest.approx(151334 / 1.4963)
    assert metrics["forwarding_rate_forward"]["unit"] == "packet/s"
    assert metrics["goodput_forward"]["kind"] == "received"
    assert metrics["sent_rate_forward"]["peak"] == 84722880
    assert metrics["offered_rate_forward"]["value"] is None
    assert metrics["tool_loss_ratio_forward"]["value"] == pytest.approx(82301 / 233635)
    assert metrics["frame_loss_ratio_forward"]["value"] == pytest.approx((233634 - 151334) / 233634)


def test_streams_that_were_apart_in_time_are_told() -> None:
    more: dict[str, t.Any] = {"parallel": 4, "duration_s": 2.0}
    made = outcome.evaluate(report("iperf-2.1.8_slow_tcp_p4.client.txt"), trial(**more))
    assert made.status == "ok"
    (found,) = (item for item in made.findings if item["code"] == "streams_out_of_step")
    assert "by up to 44%" in found["evidence"]


def test_what_only_the_other_end_knows_is_null_with_the_reason() -> None:
    made = outcome.evaluate(report("iperf-2.1.8_tcp_fwd.client.txt"), trial(duration_s=1.0))
    goodput = made.metrics["goodput_forward"]
    assert (goodput.value, goodput.why) == (None, "counted by the other end only")
    assert made.metrics["retransmits_forward"].value == 0


@pytest.mark.parametrize(
    ("file", "more", "code"),
    [
        ("iperf-2.1.8_refused_tcp.client.txt", {}, "connection_refused"),
        ("iperf-2.1.8_refused_udp.client.txt", {"protocol": "udp"}, "connection_refused"),
        ("iperf-2.1.8_died_tcp.client.txt", {"duration_s": 1.5}, "connection_lost"),
        ("iperf-2.1.8_died_tcp_fd.client.txt", {"duration_s": 1.5, "direction": "both"}, "connection_lost"),
        ("iperf-2.1.8_died_udp.client.txt", {"duration_s": 1.5, "protocol": "udp"}, "connection_refused"),
        (
            "iperf-2.1.8_died_udp_rev.client.txt",
            {"duration_s": 1.5, "protocol": "udp", "direction": "reverse"}, "sender_vanished",
        ),
        ("iperf-2.1.8_tcp_fwd.client.txt", {"direction": "reverse"}, "no_report"),
        ("iperf-2.1.8_tcp_fwd.client.txt", {"parallel": 2}, "streams_mismatch"),
        ("iperf3-3.12_died.json", {"tool": "iperf3"}, "connection_lost"),
        ("iperf3-3.12_ref.json", {"tool": "iperf3"}, "connection_refused"),
    ],
)  # fmt: skip
def test_failures_have_a_code_and_no_figure(file: str, more: dict[str, t.Any], code: str) -> None:
    made = outcome.evaluate(report(file), trial(**more))
    assert (made.status, made.code) == ("failed", code)
    assert made.reason
    assert {metric.value for metric in made.metrics.values()} == {None}


def test_an_error_fails_a_trial_whose_report_is_whole() -> None:
    found = report("iperf-2.1.8_tcp_fwd.client.txt", stderr="tcp write failed: Connection reset by peer\n")
    made = outcome.evaluate(found, trial())
    assert (made.status, made.code) == ("failed", "connection_lost")


def test_a_full_duplex_socket_refused_after_the_end_is_no_failure() -> None:
    found = report("iperf-2.1.8_udp_fd.client.txt", stderr="recvmsg failed: Connection refused\n")
    made = outcome.evaluate(found, trial(protocol="udp", direction="both", duration_s=1.0))
    assert made.status == "ok"
    assert "recvmsg failed: Connection refused" in [item["evidence"] for item in made.findings]


@pytest.mark.parametrize("more", [{"rate_bps": 1_000_000}, {"link_speed_bps": 10_000_000_000}])
def test_more_than_asked_or_than_the_link_carries_is_invalid(more: dict[str, t.Any]) -> None:
    made = outcome.evaluate(report("iperf-2.1.8_tcp_fwd.server.txt"), trial(duration_s=1.0, **more))
    assert (made.status, made.code) == ("invalid", "implausible_rate")


def test_nothing_received_is_a_failure_that_keeps_the_zero() -> None:
    rows = "".join(
        f"[ *1] {n / 2:.4f}-{n / 2 + 0.5:.4f} sec  0.000 Bytes  0.000 bits/sec   0.000 ms 0/0 (0%)\n" for n in range(3)
    )
    made = outcome.evaluate(
        iperf2.parse(rows, end="client", interval_s=0.5), trial(protocol="udp", direction="reverse")
    )
    assert (made.status, made.code) == ("failed", "nothing_received")
    assert made.metrics["goodput_reverse"].value == 0
    assert made.metrics["tool_loss_ratio_reverse"].value is None


def test_loss_at_the_end_is_seen_by_both_counts() -> None:
    client = {"counts": {"forward": {"sent_packets": 1000}}}
    server = {"counts": {"forward": {"received_packets": 900, "lost_packets": 0}}}
    ratio, findings = loss.derived_loss(client, server, "forward")
    assert ratio is not None
    assert ratio[0] == "frame_loss_ratio_forward"
    assert ratio[1].value == pytest.approx(0.1)
    assert [item["code"] for item in findings] == ["hidden_loss"]
    server["counts"]["forward"]["received_packets"] = 2000
    assert loss.derived_loss(client, server, "forward") == (None, [])


def test_a_failed_trial_does_not_stop_the_others(tmp_path: pathlib.Path) -> None:
    def run_one(options: TrialOptions) -> batch.Record:
        if options.id == "b":
            raise BenchError("broken", code="tool_absent")
        return {"id": options.id, "status": "ok", "findings": []}

    records = batch.run_batch(
        [trial(id=name) for name in "abc"], run_one, iperf.failed_record, spool_dir=str(tmp_path / "new" / "spool")
    )
    assert [record["status"] for record in records] == ["ok", "failed", "ok"]
    assert records[1]["metrics"]["goodput_forward"]["value"] is None
    written = {
        path.name: json.loads(path.read_text(encoding="utf-8")) for path in (tmp_path / "new" / "spool").iterdir()
    }
    assert sorted(written) == ["a.json", "b.json", "c.json"]
    assert written["b.json"]["code"] == "tool_absent"


def test_what_cannot_be_spooled_is_kept_in_the_answer(tmp_path: pathlib.Path) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    records = batch.run_batch(
        [trial()],
        lambda options: {"id": options.id, "status": "ok", "findings": []},
        iperf.failed_record,
        spool_dir=str(tmp_path / "file"),
    )
    assert records[0]["status"] == "ok"
    assert [item["code"] for item in records[0]["findings"]] == ["spool_failed"]


def test_socket_tables() -> None:
    head = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
    tcp = head + (
        "   0: 00000000:1389 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4242 1 0 100 0\n"
        "   1: 0100007F:1389 0100007F:9999 01 00000000:00000000 00:00000000 00000000     0        0 4243 1 0 100 0\n"
    )
    udp = head + (
        "   0: 00000000:138A 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 51 2 0 0\n"
        "   1: 0100007F:138A 0100007F:9999 01 00000000:00000000 00:00000000 00000000     0        0 52 2 0 0\n"
    )
    assert sockets.parse_table(tcp, "tcp") == [sockets.Socket("tcp", 5001, 4242)]
    assert sockets.parse_table(udp, "udp") == [sockets.Socket("udp", 5002, 51)]


def test_the_server_of_iperf3_prints_a_document_more_when_it_is_stopped() -> None:
    found = iperf3.parse(text("iperf3-3.12_many.server.json"), end="server", interval_s=0.5)
    assert found.errors == ()
    assert found.flows
