# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""dperf: what it printed in real runs, what that means, its configuration and the checks of it."""

from __future__ import annotations

import dataclasses
import json
import pathlib
import typing as t

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError, ParseError
from ansible_collections.fastpath.bench.plugins.module_utils._host.access import Access
from ansible_collections.fastpath.bench.plugins.module_utils._traffic import (
    dperf,
    dperf_config,
    dperf_judge,
    dperf_options,
    dperf_text,
)
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.dperf_config import (
    End,
    Load,
    Nic,
    Range,
    Vxlan,
    contradictions,
    render,
)
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.dperf_options import HostSide, Trial
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.outcome import Outcome
from ansible_collections.fastpath.bench.plugins.modules import dperf_run

FIXTURES = pathlib.Path(__file__).parents[3] / "fixtures" / "dperf"
RUNS = sorted(path.stem for path in FIXTURES.glob("*.txt"))


def load(kind: str = "cps", **more: t.Any) -> Load:
    values: dict[str, t.Any] = {
        "clients": (Range("10.9.0.1"),),
        "servers": (Range("10.9.0.2"),),
        "slow_start_s": 10,
        "duration_s": 5,
    }
    if kind == "cps":
        values["cps"] = 200
    return Load(kind, **{**values, **more})


LOADS = {
    "cps": load(cps=500),
    "udp": load("concurrent", protocol="udp", concurrent=50, keepalive_us=10_000, payload_bytes=64),
    "http": load("concurrent", protocol="http", cps=100, concurrent=100, keepalive_us=50_000),
    "flood": load("flood", protocol="udp", concurrent=20, keepalive_us=1000, payload_bytes=1000),
    # between two cards of a virtual machine, on uio_pci_generic and hugepages
    **{name: load(duration_s=10) for name in ("vm_cps", "vm_away", "vm_list")},
}
CLIENT_END = End((Nic("0000:01:00.0", "10.9.0.1", "10.9.0.2"),), (0,))
SERVER_END = End((Nic("0000:01:00.0", "10.9.0.2", "10.9.0.1"),), (1,))


def text(name: str) -> str:
    return (FIXTURES / f"{name}.txt").read_bytes().decode("utf-8", "replace")


def judged(name: str) -> Outcome:
    case, _dash, side = name.partition("-")
    return dperf.read(text(name), LOADS.get(case, load()), side)[0]


def codes(made: Outcome) -> set[str]:
    return {row["code"] for row in made.findings}


def value(made: Outcome, key: str) -> float:
    found = made.metrics[key].value
    assert found is not None
    return found


# --------------------------------------------------------------------------- what was printed


def test_numbers_are_found_by_key() -> None:
    output = dperf_text.parse(text("cps-client"))
    assert output.version == "1.9.0"
    assert [second.number for second in output.seconds] == list(range(19))
    assert output.seconds[9].get("skOpen") == 500
    assert output.seconds[3].get("rtt(us)") == 25048.0
    assert isinstance(output.seconds[0].get("rtt(us)"), float)
    # the other end prints other keys
    assert dperf_text.parse(text("cps-server")).seconds[9].get("rtt(us)") is None
    assert dperf_text.parse(text("udp-client")).seconds[9].get("synRx") is None


def test_numbers_in_colour() -> None:
    assert "\x1b[41;37m" in text("list-client")
    assert dperf_text.parse(text("list-client")).seconds[10].get("rstRx") == 204


def test_sums_of_the_run_are_no_second() -> None:
    output = dperf_text.parse(text("cps-client"))
    assert output.totals is not None
    assert output.totals["skOpen"] == 4948
    assert all((second.get("skOpen") or 0) <= 500 for second in output.seconds)


def test_older_and_wider_forms() -> None:
    """A block of an older version: no tcpRx, two CPUs, columns that have grown together, a cleared screen."""
    block = (
        "\x1b[H\x1b[Jseconds {n}                 cpuUsage 52 48  \r\n"
        "pktRx   3,001,058          pktTx    3,001,025          bitsRx   2,272,799,040      "
        "bitsTx  1,920,657,600 dropTx  0\n"
        "synRx   100 synTx    100                finRx    0  finTx   0  rstRx   0     rstTx 0         \n"
        "skOpen  100                skClose  100                skCon    7  skErr   "
        "\x1b[41;37m12\x1b[0m rtt(us) 0.0\n\n"
    )
    output = dperf_text.parse(block.format(n=0) + block.format(n=1) + block.format(n=2))
    assert output.seconds[1].cpu_percent == (52, 48)
    assert output.seconds[1].get("pktRx") == 3001058
    assert output.seconds[1].get("bitsTx") == 1920657600
    assert output.seconds[1].get("skErr") == 12


@pytest.mark.parametrize(
    "damage",
    [
        ("pktRx   588", "pktRx   58,8"),
        ("pktRx   588", "pktRx   5x8"),
        ("pktRx   588", "pktRx   588 7"),
        ("seconds 3 ", "seconds 2 "),
        ("seconds 3 ", "seconds three "),
        ("cpuUsage 0", "cpuUsage 1000"),
        ("skOpen  196                skClose", "skOpen  196 skOpen 196 skClose"),
        ("tcpRx   588                tcpTx", "tcpRx   588 skCon 1 tcpTx"),
    ],
)
def test_damaged_counters_are_errors(damage: tuple[str, str]) -> None:
    whole = text("cps-client")
    assert damage[0] in whole
    with pytest.raises(ParseError):
        dperf_text.parse(whole.replace(*damage, 1))


@pytest.mark.parametrize("line", ["pktRx", "skOpen", "ierrors"])
def test_a_second_that_lacks_a_line_is_an_error(line: str) -> None:
    lines = text("cps-client").split("\n")
    del lines[[number for number, row in enumerate(lines) if row.startswith(line)][7]]
    with pytest.raises(ParseError, match="lacks"):
        dperf_text.parse("\n".join(lines))


# --------------------------------------------------------------------------- what it means


def test_a_clean_run() -> None:
    made = judged("cps-client")
    assert (made.status, made.window) == ("ok", (10.0, 15.0))
    assert codes(made) == {"closed_loop", "short_connections", "target_reached"}
    # from the rows of the steady part by hand: 496, 512, 476, 524, 480
    assert value(made, "connection_rate_forward") == pytest.approx((496 + 512 + 476 + 524 + 480) / 5)
    assert made.metrics["connection_rate_forward"].peak == 524
    assert made.metrics["sent_frame_bits_forward"].layer == "L2"


def test_a_clean_run_in_a_virtual_machine() -> None:
    client, server = judged("vm_cps-client"), judged("vm_cps-server")
    assert (client.status, client.window) == ("ok", (10.0, 20.0))
    assert codes(client) == {"closed_loop", "short_connections", "target_reached"}
    assert value(client, "connection_rate_forward") == pytest.approx(201.6)
    assert server.status == "ok"
    assert value(server, "received_frame_rate_forward") == pytest.approx(
        value(client, "sent_frame_rate_forward"), rel=0.02
    )


def test_both_ends_of_a_clean_run_agree() -> None:
    client, server = judged("cps-client"), judged("cps-server")
    assert server.status == "ok"
    sent, received = value(client, "sent_frame_rate_forward"), value(server, "received_frame_rate_forward")
    assert received == pytest.approx(sent, rel=0.02)


@pytest.mark.parametrize(
    ("name", "code", "words"),
    [
        ("away-client", "server_gone", "from second 13 on"),
        ("vm_away-client", "server_gone", "from second 18 on"),
        ("vm_list-client", "server_not_listening", "does not list these clients"),
        ("list-client", "server_not_listening", "does not list these clients"),
        ("port-client", "server_not_listening", "does not listen on this port"),
        ("no_memory-client", "not_enough_memory", "hugepages"),
        ("no_gateway-client", "gateway_unresolved", "gateway"),
    ],
)
def test_runs_that_went_wrong(name: str, code: str, words: str) -> None:
    made = judged(name)
    assert (made.status, made.code) == ("failed", code)
    assert words in (made.reason or "")


def test_held_connections() -> None:
    made = judged("http-client")
    assert (made.status, codes(made)) == ("ok", {"closed_loop"})
    assert value(made, "connections_open_forward") == 100
    assert value(made, "answer_rate_reverse") == 1540


def test_udp() -> None:
    made = judged("udp-client")
    assert {"half_open", "late_answers"} <= codes(made)
    assert "connection_rate_forward" not in made.metrics


def test_a_flood_is_no_loop_and_its_loss_needs_both_ends() -> None:
    client, server = judged("flood-client"), judged("flood-server")
    assert codes(client) == {"open_loop"}
    assert client.counts["forward"] == {"sent_packets": 225756}
    assert server.counts["forward"]["received_packets"] == 138542


def change(name: str, second: int, **values: int) -> str:
    """A real output with other numbers in each second from this one on."""
    output = dperf_text.parse(text(name))
    rows = []
    for row in output.seconds:
        more = values if row.number >= second else {}
        shown = {**row.values, **more}
        rows.append(f"seconds {row.number} cpuUsage {values.get('cpuUsage', 3) if more else 3}")
        rows += [f"{key} {number}" for key, number in shown.items() if key != "cpuUsage"]
    return "\n".join(
        [*rows, "", "Total Numbers:", *(f"{key} {number}" for key, number in (output.totals or {}).items()), ""]
    )


@pytest.mark.parametrize(
    ("values", "code"),
    [
        ({"imissed": 4}, "drops_receiving"),
        ({"dropTx": 1}, "drops_sending"),
        ({"tcpDrop": 1}, "drops_unknown"),
        ({"httpErr": 2}, "http_errors"),
        ({"badRx": 2}, "bad_frames"),
        ({"rstRx": 2}, "resets"),
        ({"skErr": 2}, "connection_errors"),
        ({"ackRt": 2}, "retransmits"),
        ({"cpuUsage": 99}, "generator_limited"),
        ({"skOpen": 400}, "generator_limited"),
        ({"synRx": 400}, "half_open"),
    ],
)
def test_what_counters_say(values: dict[str, int], code: str) -> None:
    made = dperf.read(change("cps-client", 10, **values), LOADS["cps"], "client")[0]
    assert made.status == "ok"
    assert code in codes(made)
    assert any(line.startswith(code) for line in dperf_judge.read_in_words(made))


@pytest.mark.parametrize(
    ("second", "values", "code"),
    [
        (10, {"pktTx": 0}, "nothing_sent"),
        (0, {"synRx": 0, "tcpRx": 0, "pktRx": 0, "http2XX": 0}, "half_open"),
        (10, {"synRx": 900}, "more_answers"),
        (0, {"synTx": 0, "synRx": 0, "tcpRx": 0, "pktRx": 0, "http2XX": 0, "synRt": 0}, "one_way_traffic"),
    ],
)
def test_verdicts(second: int, values: dict[str, int], code: str) -> None:
    made = dperf.read(change("cps-client", second, **values), LOADS["cps"], "client")[0]
    assert made.code == code


def test_the_edges_of_the_window_are_no_contradiction() -> None:
    """At one connection each second an answer falls into the next one."""
    slow = {"synTx": 1, "synRx": 1, "skOpen": 1, "httpGet": 1, "http2XX": 1, "pktTx": 3, "pktRx": 3, "tcpRx": 3}
    text_of = change("cps-client", 0, **slow)
    late = text_of.replace("synRx 1\n", "synRx 2\n", 11).replace("synRx 2\n", "synRx 1\n", 10)
    assert late != text_of
    made = dperf.read(late, load(cps=1), "client")[0]
    assert made.status == "ok"
    assert "closed_loop" in codes(made)
    head, _last, tail = text_of.rpartition("synRx 1\n")
    made = dperf.read(f"{head}synRx 0\n{tail}", load(cps=1), "client")[0]
    assert made.status == "ok"


def test_held_connections_that_are_too_few() -> None:
    made = dperf.read(change("http-client", 10, skCon=40), LOADS["http"], "client")[0]
    assert "concurrent_not_reached" in codes(made)


@pytest.mark.parametrize(
    ("said", "code"),
    [
        # what stands first in a log is not the cause
        ("EAL: No available 1048576 kB hugepages reported\nport init fail\n", "port_init"),
        ("42 hugepages of size 1073741824 reserved, but no mounted hugetlbfs found for that size\n"
         "port start error: Cannot allocate memory\n", "not_enough_memory"),
        ("Error: insufficient sockets. worker=0 (sockets=65535 < cc=100000)\n", "insufficient_sockets"),
        ("Error: socket allocation failed, memory size 4.88GB socket num 65535000.\n", "not_enough_memory"),
        ("Error: Interface dose not support FDIR. Please use 'rss'!\n", "no_flow_director"),
        ("line 8: unknown config keyword(\"foo\")\n", "configuration"),
        ("EAL: Cannot create lock on '/var/run/dpdk/rte/config'. Is another primary process running?\n"
         "EAL: FATAL: Cannot init config\n", "other_primary"),
        ("Error: something new\n", "tool_failed"),
        ("", "nothing_counted"),
        ("seconds 0 cpuUsage 0\npktRx 0 ", "nothing_counted"),
    ],
)  # fmt: skip
def test_why_it_did_not_start(said: str, code: str) -> None:
    made = dperf.read(said, load(), "client")[0]
    assert (made.status, made.code) == ("failed", code)
    assert not made.metrics


def test_an_output_that_is_cut_off_gives_no_figure_or_the_same_one() -> None:
    whole = text("cps-client")
    expected = {key: made.value for key, made in judged("cps-client").metrics.items()}
    for length in range(0, len(whole), 97):
        made = dperf.read(whole[:length], LOADS["cps"], "client")[0]
        if made.status == "ok":
            assert {key: metric.value for key, metric in made.metrics.items()} == expected
        else:
            assert not made.metrics


# --------------------------------------------------------------------------- any text

_WORDS = st.sampled_from(
    ["seconds", "cpuUsage", "pktRx", "pktTx", "skOpen", "skClose", "skCon", "skErr", "bitsRx", "bitsTx",
     "Total Numbers:", "\n", "\r\n", "\x1b[41;37m", "\x1b[0m", "1,000", "0", "12", "0.0", "-1", "9" * 4400, "\u0663",
     "Error:", "line 9: error"]
)  # fmt: skip


@given(st.one_of(st.text(max_size=300), st.lists(_WORDS, max_size=40).map(" ".join)))
@settings(max_examples=50, deadline=None)
def test_no_text_yields_a_number_or_an_untyped_error(anything: str) -> None:
    for side in ("client", "server"):
        made = dperf.read(anything, load(), side)[0]
        assert made.status != "ok"
        assert not made.metrics


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_a_damaged_output_raises_nothing_else(data: st.DataObject) -> None:
    whole = text(data.draw(st.sampled_from(RUNS)))[:6000]
    at = data.draw(st.integers(0, max(0, len(whole) - 1)))
    piece = data.draw(st.text(max_size=5))
    dperf.read(whole[:at] + piece + whole[at + len(piece) :], load(), "client")


# --------------------------------------------------------------------------- the configuration


def test_the_text_of_both_ends() -> None:
    made = load("concurrent", concurrent=100, keepalive_us=1000, payload_bytes=64, clients_seen=(Range("10.8.0.1", 4),))
    client = dict(line.partition(" ")[::2] for line in render(made, CLIENT_END, "client").splitlines())
    server = dict(line.partition(" ")[::2] for line in render(made, SERVER_END, "server").splitlines())
    assert (client["mode"], server["mode"]) == ("client", "server")
    assert (client["client"], server["client"]) == ("10.9.0.1 1", "10.8.0.1 4")
    assert (client["keepalive"], server["keepalive"]) == ("1ms", "1s")
    assert client["port"] == "0000:01:00.0 10.9.0.1 10.9.0.2"
    assert client["payload_size"] == "64"
    for key in ("cc", "slow_start", "client_port_range", "wait"):
        assert key in client
        assert key not in server
    for old in ("packet_size", "lport_range"):
        assert old not in client


def test_a_tunnel_is_turned_round_for_the_server() -> None:
    tunnel = Vxlan(5, "02:00:00:00:00:01", "02:00:00:00:00:02", Range("10.1.0.1"), Range("10.1.0.2"))
    made = load(vxlan=tunnel)
    assert "vxlan 5 02:00:00:00:00:01 02:00:00:00:00:02 10.1.0.1 1 10.1.0.2 1\n" in render(made, CLIENT_END, "client")
    assert "vxlan 5 02:00:00:00:00:02 02:00:00:00:00:01 10.1.0.2 1 10.1.0.1 1\n" in render(made, SERVER_END, "server")


def test_what_dperf_itself_takes_is_taken() -> None:
    for side, end in (("client", CLIENT_END), ("server", SERVER_END)):
        for made in LOADS.values():
            assert dperf_config.problems(made, end, side) == []


TWO = (Nic("0000:01:00.0", "10.9.0.3", "10.9.0.254"), Nic("0000:01:00.1", "10.9.1.3", "10.9.1.254"))
TUNNEL = Vxlan(5, "02:00:00:00:00:01", "02:00:00:00:00:02", Range("10.1.0.1"), Range("10.1.0.2"))


@pytest.mark.parametrize(
    ("more", "end", "code"),
    [
        ({"cps": None}, {}, "no_targets"),
        ({"kind": "concurrent"}, {}, "no_targets"),
        ({"kind": "concurrent", "concurrent": 10}, {}, "keepalive_needed"),
        ({"cps": 40_000}, {}, "insufficient_sockets"),
        ({"cps": 10_000, "retransmit_timeout_s": 10}, {}, "insufficient_sockets"),
        ({"concurrent": 100_000, "keepalive_us": 1_000_000}, {}, "insufficient_sockets"),
        ({"client_ports": (1000, 1099)}, {}, "insufficient_sockets"),
        ({}, {"nics": TWO, "cpus": (0, 1, 2)}, "cpus_not_multiple"),
        ({}, {"nics": TWO, "cpus": (0, 1)}, "ranges_not_cards"),
        ({}, {"cpus": (0, 1)}, "rss_needed"),
        ({"clients": (Range("10.9.0.1"), Range("10.8.0.1"))}, {}, "address_conflict"),
        ({"clients": (Range("10.9.0.2"),)}, {}, "address_conflict"),
        ({"clients": (Range("10.9.0.250", 6),)}, {}, "bad_range"),
        ({"clients": (Range("2001:db8::1"),)}, {}, "bad_option"),
        ({"slow_start_s": 5}, {}, "bad_option"),
        ({"payload_bytes": 1464}, {}, "bad_option"),
        ({"listen_port": 65535, "listen_count": 2}, {}, "bad_option"),
        ({"vlan": 0}, {}, "bad_option"),
        ({"vlan": 5, "vxlan": TUNNEL}, {}, "contradiction"),
        ({"rss": True, "vxlan": TUNNEL}, {}, "contradiction"),
        ({"concurrent": 10, "keepalive_us": 3}, {}, "bad_option"),
        ({}, {"nics": (Nic("1:0", "10.9.0.1", "10.9.0.2"),)}, "bad_pci"),
        ({}, {"nics": (Nic("0000:01:00.0", "10.9.0.2", "10.9.0.9"),)}, "address_conflict"),
        ({}, {"nics": (Nic("0000:01:00.0", "10.9.0.3", "10.9.0.1"),)}, "address_conflict"),
        ({}, {"nics": ()}, "no_card"),
    ],
)
def test_what_dperf_would_refuse(more: dict[str, t.Any], end: dict[str, t.Any], code: str) -> None:
    made = dataclasses.replace(load(), **more)
    with pytest.raises(BenchError) as caught:
        dperf_config.checked(made, dataclasses.replace(CLIENT_END, **end), "client")
    assert caught.value.code == code


def test_sockets_are_counted_as_dperf_does() -> None:
    """The figures are those that dperf -t printed for such configurations."""
    one = dataclasses.replace(load(), servers=(Range("10.9.0.20", 2),))
    assert dperf_config.sockets_per_worker(one, CLIENT_END) == 131070
    two = dataclasses.replace(
        load(),
        clients=(Range("10.9.0.1"), Range("10.9.1.10", 3)),
        servers=(Range("10.9.0.20", 2), Range("10.9.1.20", 2)),
    )
    end = End(TWO, (0, 1, 2, 3))
    assert dperf_config.sockets_per_worker(two, end) == 65535
    assert dperf_config.sockets_per_worker(dataclasses.replace(two, rss=True), end) == 131070


@pytest.mark.parametrize(("us", "words"), [(1000, "1ms"), (10, "10us"), (60_000_000, "60s"), (1_500_000, "1500ms")])
def test_times(us: int, words: str) -> None:
    assert dperf_config.time_text(us) == words
    assert dperf_options.keepalive_us(words) == us


@pytest.mark.parametrize("words", ["10", "1.5us", "0s", "1 h", ""])
def test_times_that_are_none(words: str) -> None:
    with pytest.raises(BenchError):
        dperf_options.keepalive_us(words)


# --------------------------------------------------------------------------- the host, the server, the run


@pytest.fixture
def host(tmp_path: pathlib.Path) -> Access:
    """A host with a card on vfio-pci, 2,000 pages of 2 MiB and a hugetlbfs."""
    device = tmp_path / "sys/bus/pci/devices/0000:01:00.0"
    device.mkdir(parents=True)
    (device / "class").write_text("0x020000\n")
    (device / "numa_node").write_text("0\n")
    driver = tmp_path / "sys/bus/pci/drivers/vfio-pci"
    driver.mkdir(parents=True)
    (device / "driver").symlink_to(driver)
    pages = tmp_path / "sys/kernel/mm/hugepages/hugepages-2048kB"
    pages.mkdir(parents=True)
    for name in ("nr_hugepages", "free_hugepages"):
        (pages / name).write_text("2000\n")
    (tmp_path / "sys/devices/system/node/node0").mkdir(parents=True)
    (tmp_path / "proc/self").mkdir(parents=True)
    line = "30 1 0:26 / /dev/hugepages rw shared:2 - hugetlbfs hugetlbfs rw,pagesize=2M\n"
    (tmp_path / "proc/self/mountinfo").write_text(line)
    return Access(str(tmp_path / "proc"), str(tmp_path / "sys"))


def side(**more: t.Any) -> HostSide:
    return HostSide(
        more.pop("program", "/nowhere/dperf"), more.pop("end", CLIENT_END), more.pop("check_hardware", True)
    )


def test_a_host_that_is_ready(host: Access) -> None:
    dperf.check_host(side(), load(), host)


@pytest.mark.parametrize(
    ("path", "content", "code"),
    [
        ("kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "700\n", "not_enough_memory"),
        ("../proc/self/mountinfo", "", "hugepages_not_mounted"),
        ("bus/pci/devices/0000:01:00.0/driver", None, "bad_driver"),
        ("bus/pci/devices/0000:01:00.0/class", "gone", "not_there"),
    ],
)
def test_a_host_that_is_not(host: Access, path: str, content: str | None, code: str) -> None:
    file = pathlib.Path(host.sys) / path
    if content is None:
        file.unlink()
    elif content == "gone":
        file.parent.rename(file.parent.with_name("0000:02:00.0"))
    else:
        file.write_text(content)
    with pytest.raises(BenchError) as caught:
        dperf.check_host(side(), load(), host)
    assert caught.value.code == code


def test_pages_of_a_size_that_nothing_hands_out_do_not_count(host: Access) -> None:
    """Field case I3: pages of 1 GiB, and a hugetlbfs of 2 MiB alone."""
    small = pathlib.Path(host.sys) / "kernel/mm/hugepages/hugepages-2048kB"
    large = small.with_name("hugepages-1048576kB")
    large.mkdir()
    for name, count in (("nr_hugepages", 42), ("free_hugepages", 42)):
        (large / name).write_text(f"{count}\n")
        (small / name).write_text("8\n")
    with pytest.raises(BenchError, match="pages of 1G, and no hugetlbfs") as caught:
        dperf.check_host(side(), load(), host)
    assert caught.value.code == "hugepages_not_mounted"
    with open(pathlib.Path(host.proc) / "self/mountinfo", "a", encoding="utf-8") as mounts:
        mounts.write("31 1 0:27 / /mnt/huge rw shared:3 - hugetlbfs hugetlbfs rw,pagesize=1024M\n")
    dperf.check_host(side(), load(), host)


def test_one_server_for_several_trials() -> None:
    first, second = Trial("a", load(listen_port=20001)), Trial("b", load(listen_port=20003, cps=50))
    other = Trial("c", load(listen_port=20004, protocol="udp"))
    served = dperf.join([first, second, other])
    assert served.load is not None
    assert (served.load.listen_port, served.load.listen_count) == (20001, 3)
    assert (served.names, set(served.refused)) == (("a", "b"), {"c"})
    assert served.refused["c"].code == "one_server"
    assert contradictions(first.load, second.load) == []


def test_what_a_server_counted_is_told_apart_by_client() -> None:
    """Two clients, one after the other, as one server printed them."""
    whole = dperf_text.parse(text("cps-server"))
    later = [dataclasses.replace(row, number=row.number + 40) for row in whole.seconds]
    both = dataclasses.replace(whole, seconds=(*whole.seconds, *later))
    parts = dperf.bursts(both)
    assert len(parts) == 2
    rates = [value(dperf_judge.evaluate(part, LOADS["cps"], "server"), "received_frame_rate_forward") for part in parts]
    assert rates[0] == rates[1] == value(judged("cps-server"), "received_frame_rate_forward")
    reports = dperf.report([Trial("a", LOADS["cps"]), Trial("b", LOADS["cps"])], text("cps-server"))
    assert {row["code"] for row in reports.values()} == {"no_report"}


def fake_dperf(tmp_path: pathlib.Path, run: str, *, tail: str = "exit 0") -> str:
    program = tmp_path / "dperf"
    program.write_text(f"#!/bin/sh\ntest -f \"$2\" || exit 9\ncat '{FIXTURES / run}.txt'\n{tail}\n")
    program.chmod(0o755)
    return str(program)


def test_a_trial_from_options_to_record(tmp_path: pathlib.Path) -> None:
    trial = Trial("t1", LOADS["cps"])
    mine = side(program=fake_dperf(tmp_path, "cps-client"), check_hardware=False)
    (record,) = dperf.run_trials([trial], mine, spool_dir=str(tmp_path / "spool"))
    assert (record["status"], record["generator"], record["tool"]["version"]) == ("ok", "dperf", "1.9.0")
    assert record["window"]["end"] - record["window"]["start"] == pytest.approx(5)
    assert record["reading"][0].startswith("ok")
    assert "cps 500" in record["raw"]["client.conf"]
    assert json.loads((tmp_path / "spool/t1.json").read_text())["id"] == "t1"


def test_a_trial_that_cannot_start_does_not_stop_the_others(tmp_path: pathlib.Path) -> None:
    bad, good = Trial("bad", load(cps=40_000)), Trial("good", LOADS["cps"])
    records = dperf.run_trials([bad, good], side(program=fake_dperf(tmp_path, "cps-client"), check_hardware=False))
    assert [(row["status"], row["code"]) for row in records] == [("failed", "insufficient_sockets"), ("ok", None)]
    (absent,) = dperf.run_trials([good], side(check_hardware=False))
    assert absent["code"] == "tool_absent"


def test_a_server_in_the_background(tmp_path: pathlib.Path) -> None:
    program = fake_dperf(tmp_path, "away-server", tail="trap 'echo bye; exit 0' INT\nwhile :; do sleep 0.05; done")
    mine = side(program=program, end=SERVER_END, check_hardware=False)
    folder = str(tmp_path / "run")
    wanted = [Trial("a", load())]
    call = {"lifetime_s": 30.0, "listen_s": 15.0, "directory": folder}
    assert dperf.start_server(wanted, mine, check_mode=True, **call)["changed"]
    try:
        assert dperf.start_server(wanted, mine, **call)["changed"]
        assert not dperf.start_server(wanted, mine, **call)["changed"]
    finally:
        stopped = dperf.stop_server(wanted, directory=folder)
    assert stopped["changed"]
    # it was asked to end, and had the time to say its last words
    assert "bye" in stopped["reports"]["a"]["raw"]["server.txt"]
    assert stopped["reports"]["a"]["status"] == "ok"
    assert not dperf.stop_server(wanted, directory=folder)["changed"]


def test_a_server_that_does_not_come_up_says_why(tmp_path: pathlib.Path) -> None:
    mine = side(program=fake_dperf(tmp_path, "no_memory-client", tail="exit 255"), end=SERVER_END, check_hardware=False)
    with pytest.raises(BenchError) as caught:
        dperf.start_server([Trial("a", load())], mine, lifetime_s=30, listen_s=15, directory=str(tmp_path / "run"))
    assert caught.value.code == "not_enough_memory"


def test_a_host_that_nobody_prepared(tmp_path: pathlib.Path) -> None:
    with pytest.raises(BenchError, match=r"role fastpath\.bench\.dperf"):
        dperf_options.end_from({}, path=str(tmp_path / "none.json"))
    file = tmp_path / "dperf.json"
    nic = {"pci": "0000:01:00.0", "address": "10.9.0.1", "gateway": "10.9.0.2"}
    file.write_text(json.dumps({"program": "/x/dperf", "nics": [nic], "cpus": "2-3"}))
    found = dperf_options.end_from({"cpus": "4"}, path=str(file))
    assert (found.program, found.end.cpus, found.check_hardware) == ("/x/dperf", (4,), True)


@pytest.mark.parametrize(
    ("options", "headline", "words"),
    [
        ({"cps": 10}, "goodput_forward", "does not count goodput_forward"),
        ({"cps": 10, "packet_size": 16}, "connection_rate_forward", "use payload_bytes, which is without the headers"),
        ({"cps": 10, "direction": "reverse"}, "connection_rate_forward", "direction must be one of"),
        ({"cps": 10, "duration_s": 1.5}, "connection_rate_forward", "counts in seconds"),
        ({"protocol": "udp"}, "connection_rate_forward", "protocol udp does not count"),
    ],
)
def test_a_plan_is_told_what_the_module_would_refuse(options: dict[str, t.Any], headline: str, words: str) -> None:
    with pytest.raises(BenchError, match=words):
        dperf_run.check_trial({"bind": "10.9.0.1", "server": "10.9.0.2", **options}, headline)


def test_a_plan_that_is_right() -> None:
    engine = {"bind": "10.9.0.1", "server": "10.9.0.2", "port": 20001, "direction": "forward"}
    engine |= {"duration_s": 10, "warmup_s": 1, "interval_s": 1}
    dperf_run.check_trial({"cps": 10, **engine}, "connection_rate_forward")
