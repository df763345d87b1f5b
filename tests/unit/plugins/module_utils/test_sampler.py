# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import pathlib
import time

import pytest

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError, ParseError
from ansible_collections.fastpath.bench.plugins.module_utils._host import background, procfs, sampler
from ansible_collections.fastpath.bench.plugins.module_utils._host.sampler import Window

COUNTERS = list(procfs.INTERFACE_COUNTERS)
EPOCH = 1_796_000_000.0  # the wall clock when the monotonic one of these recordings was 0


class Script:
    """A recording with one sample a second from 100 s on: 1000 packets of 100 bytes and 100 ticks per second."""

    def __init__(self, seconds: int = 10, cpus: int = 2, softnet_cpu: bool = True) -> None:
        self.header = {
            "type": "header",
            "schema": 1,
            "sample_id": "s",
            "interval_s": 1.0,
            "interfaces": ["eth1"],
            "links": {"eth1": {"mtu_bytes": 1500, "speed_bps": None}},
            "counters": COUNTERS,
            "queues": {},
            "nice": 0,
        }
        self.samples = []
        for second in range(seconds + 1):
            stat = "\n".join(f"cpu{n} 0 0 {10 * second} {60 * second} 0 0 {30 * second} 0 0 0" for n in range(cpus))
            values = dict.fromkeys(COUNTERS, 0)
            values.update(rx_packets=1000 * second, rx_bytes=100_000 * second, tx_packets=7, rx_dropped=second)
            column = " {:08x}" if softnet_cpu else ""
            rows = [
                f"{500 * second:08x} {0:08x} {second:08x} {'0 ' * 8}" + ("0" + column.format(n)) * softnet_cpu
                for n in range(cpus)
            ]
            self.samples.append(
                {
                    "m": 100.0 + second,
                    "o": EPOCH,
                    "stat": "cpu 0 0 0 0 0 0 0 0 0 0\n" + stat,
                    "if": {"eth1": [5, *(values[name] for name in COUNTERS)]},
                    "softnet_rows": cpus,
                    "softnet": {str(n): row for n, row in enumerate(rows)},
                    "softirqs": {
                        "NET_RX": "NET_RX: " + " ".join([str(50 * second)] * cpus),
                        "NET_TX": "NET_TX: " + " ".join(["0"] * cpus),
                    },
                }
            )
        self.footer = {"type": "footer", "reason": None, "cpu_s": 0.011, "samples": seconds}
        self.tail = ""

    def set(self, counter: str, values: dict[int, int]) -> None:
        for index, value in values.items():
            self.samples[index]["if"]["eth1"][1 + COUNTERS.index(counter)] = value

    def recording(self, died: str | None = None) -> sampler.Recording:
        records = [self.header, *self.samples, *([self.footer] if self.footer else [])]
        lines = [json.dumps(record) + "\n" for record in records] + ([self.tail] if self.tail else [])
        return sampler.Recording(lambda: lines, died=died, now=100.0 + len(self.samples) + 1)

    def cut(self, start: float, end: float, **clock) -> dict:
        return self.recording(clock.pop("died", None)).cut([Window("w", EPOCH + start, EPOCH + end)], **clock)["w"]


def test_window_between_samples_counts_whole_intervals():
    report = Script().cut(102.25, 106.75)
    interface = report["interfaces"]["eth1"]
    assert report["reason"] is None
    assert report["window"] == {"start": EPOCH + 102.25, "end": EPOCH + 106.75, "counted_s": 3.0, "clipped_s": 1.5}
    assert report["samples"] == 4
    assert (interface["rx_packets"], interface["rx_bytes"]) == (3000, 300_000)
    assert interface["rx_packet_rate"] == pytest.approx(1000)
    assert interface["rx_rate_bps"] == pytest.approx(800_000)
    assert interface["rx_mean_frame_bytes"] == 100
    assert interface["tx_packets"] == 0
    assert interface["tx_mean_frame_bytes"] is None  # no frame has no size
    assert interface["mtu_bytes"] == 1500
    assert report["largest_gap_s"] == 1.0
    cpu = report["cpu"]
    assert cpu["cpus"][1] == {
        "cpu": 1, "user": 0.0, "nice": 0.0, "system": 0.1, "idle": 0.6, "iowait": 0.0, "irq": 0.0, "softirq": 0.3,
        "steal": 0.0, "busy": 0.4, "reason": None,
    }  # fmt: skip
    assert cpu["busiest"] == {"cpu": 0, "busy": 0.4, "softirq": 0.3}
    assert cpu["mean_busy"] == 0.4
    assert report["softnet"]["processed"] == 2 * 1500
    assert report["softnet"]["time_squeeze"] == 2 * 3
    assert report["softnet"]["cpus"][1]["processed"] == 1500
    assert report["softirqs"][0] == {"cpu": 0, "net_tx": 0, "net_rx": 150}


def test_window_on_samples_is_exact():
    assert Script().cut(102, 106)["interfaces"]["eth1"]["rx_packets"] == 4000


def test_what_goes_on_beside_a_window_is_not_counted():
    """Small packets until 106.2, then the next trial's large segments: nothing of them, and nothing of the pause."""
    script = Script()
    script.set("rx_packets", {second: 6200 if second > 6 else 1000 * second for second in range(11)})
    script.set("rx_bytes", {second: 620_000 + 10**8 * (second - 6) for second in range(7, 11)})
    interface = script.cut(102.25, 106.15)["interfaces"]["eth1"]
    assert interface["rx_packet_rate"] == 1000
    assert interface["rx_mean_frame_bytes"] == 100


def test_too_few_samples_in_a_window_are_no_numbers():
    script = Script()
    del script.samples[3:7]
    report = script.cut(102.5, 107.5)
    assert report["interfaces"] is None
    assert "1 samples were taken in the window's 5.00 s" in report["reason"]
    assert script.cut(101.5, 108.5)["interfaces"]["eth1"]["rx_packets"] == 6000


@pytest.mark.parametrize("offset", [-3600.0, -0.5, 0.75, 86400.0])
def test_window_of_another_clock(offset):
    """The client's clock minus this host's: a client ahead by 0.75 s says 103 where this host says 102.25."""
    report = Script().cut(102.25 + offset, 106.75 + offset, clock_offset_s=offset)
    assert report["interfaces"]["eth1"]["rx_packets"] == 3000


def test_edges_just_outside_are_clipped_and_said():
    report = Script().cut(99.5, 110.25)
    assert report["window"]["clipped_s"] == 0.75
    assert report["window"]["counted_s"] == 10.0
    assert report["interfaces"]["eth1"]["rx_packet_rate"] == pytest.approx(1000)


@pytest.mark.parametrize(
    ("start", "end", "why"),
    [
        (90, 95, "begins 10.000 s before the first sample"),
        (98.5, 105, "begins 1.500 s before the first sample"),
        (105, 112, "ends 2.000 s after the last sample"),
        (102, 103, "shorter than two sampling intervals"),
        (105, 104, "ends before it begins"),
    ],
)
def test_not_covered_is_null_with_a_reason(start, end, why):
    report = Script().cut(start, end)
    assert why in report["reason"]
    assert (report["cpu"], report["interfaces"], report["softnet"], report["samples"]) == (None, None, None, 0)


def test_sampler_that_died_keeps_the_windows_before():
    script = Script()
    script.footer = None
    script.tail = '{"m": 111.0, "o": 17960'  # killed while it wrote
    died = "the sampler was no longer running"
    assert script.cut(102, 106, died=died)["interfaces"]["eth1"]["rx_packets"] == 4000
    late = script.cut(108, 114, died=died)
    assert late["interfaces"] is None
    assert died in late["reason"]


def test_no_recording_at_all(tmp_path):
    settings = sampler.Settings("none", directory=str(tmp_path))
    report = sampler.ensure_ended(settings, "stopped", [Window("w", 1.0, 9.0)])
    assert (report["changed"], report["ended"]) == (False, "absent")
    assert report["windows"]["w"]["reason"] == "there is no recording of none on this host"
    assert report["windows"]["w"]["interfaces"] is None


def test_garbage_in_the_middle_is_an_error_that_quotes_it():
    with pytest.raises(ParseError, match="what is this"):
        sampler.Recording(lambda: ["what is this\n", "{}\n"])


def test_recording_of_another_schema():
    script = Script()
    script.header["schema"] = 2
    with pytest.raises(BenchError, match="schema 2"):
        script.recording()


def test_32_bit_counter_wraps():
    script = Script()
    top = 2**32 - 150_000
    script.set("rx_bytes", {second: (top + 100_000 * second) % 2**32 for second in range(11)})
    assert script.cut(100, 110)["interfaces"]["eth1"]["rx_bytes"] == 1_000_000


def test_counter_reset_is_no_number_but_only_where_it_happened():
    script = Script()
    script.set("rx_packets", {second: 1000 * (second - 6) for second in range(6, 11)})
    script.set("rx_bytes", {second: 100_000 * (second - 6) for second in range(6, 11)})
    interface = script.cut(102, 108)["interfaces"]["eth1"]
    assert interface["rx_packets"] is None
    assert interface["rx_packet_rate"] is None
    assert interface["reason"] == "rx_packets fell from 5000 to 0: counters were reset"
    assert script.cut(102, 108)["cpu"]["mean_busy"] == 0.4
    assert script.cut(101, 105)["interfaces"]["eth1"]["rx_packets"] == 4000
    assert script.cut(106, 110)["interfaces"]["eth1"]["rx_packets"] == 4000


def test_interface_that_vanishes_and_comes_back():
    script = Script()
    for second in (4, 5):
        script.samples[second]["if"]["eth1"] = None
    for second in range(6, 11):
        script.samples[second]["if"]["eth1"][0] = 9
    assert script.cut(101, 103)["interfaces"]["eth1"]["rx_packets"] == 2000
    for start, end in ((101, 104.5), (104.2, 107), (101, 109), (103.5, 106.6)):
        interface = script.cut(start, end)["interfaces"]["eth1"]
        assert (interface["rx_packets"], interface["reason"]) == (None, "the interface was not there")
    assert script.cut(106, 110)["interfaces"]["eth1"]["rx_packets"] == 4000


def test_interface_that_never_comes_back():
    script = Script()
    for second in range(4, 11):
        script.samples[second]["if"]["eth1"] = None
    assert script.cut(106, 110)["interfaces"]["eth1"]["reason"] == "the interface was not there"


def test_interface_replaced_between_two_samples():
    script = Script()
    for second in range(5, 11):
        script.samples[second]["if"]["eth1"][0] = 9
    assert "replaced" in script.cut(102, 108)["interfaces"]["eth1"]["reason"]


def test_softnet_wraps_more_than_once():
    script = Script(seconds=6)
    for second, sample in enumerate(script.samples):
        value = (second * 3_000_000_000) % 2**32
        sample["softnet"] = {str(n): f"{value:08x} {'0 ' * 11}{n:x}" for n in range(2)}
    assert script.cut(100, 106)["softnet"]["cpus"][0]["processed"] == 18_000_000_000


def test_softnet_lines_that_did_not_change_are_remembered():
    script = Script()
    for sample in script.samples[1:]:
        del sample["softnet"]["1"]
    softnet = script.cut(102, 106)["softnet"]
    assert [row["processed"] for row in softnet["cpus"]] == [2000, 0]


def test_softnet_of_a_kernel_that_does_not_name_the_cpu():
    script = Script(softnet_cpu=False)
    assert len(script.samples[0]["softnet"]["0"].split()) == 11
    assert [row["processed"] for row in script.cut(102, 106)["softnet"]["cpus"]] == [2000, 2000]


def test_cpu_taken_offline_is_unknown_and_not_idle():
    script = Script()
    for sample in script.samples[5:]:
        sample["stat"] = sample["stat"].rsplit("\n", 1)[0]
    cpu = script.cut(102, 108)["cpu"]
    assert cpu["cpus"][1]["busy"] is None
    assert cpu["cpus"][1]["reason"] == "it was offline for a part of the window"
    assert cpu["mean_busy"] == 0.4


def test_idle_corrected_downwards_is_no_negative_ratio():
    script = Script()
    for second, sample in enumerate(script.samples):
        sample["stat"] = f"cpu0 {10 * second} 0 0 {1000 - second} {1000 - second} 0 0 0 0 0"
    cpu = script.cut(102, 108)["cpu"]["cpus"][0]
    assert (cpu["user"], cpu["idle"], cpu["busy"]) == (1.0, 0.0, 1.0)


def test_stolen_time_is_not_free():
    script = Script()
    for second, sample in enumerate(script.samples):
        sample["stat"] = f"cpu0 {10 * second} 0 0 {40 * second} 0 0 0 {50 * second} 0 0"
    assert script.cut(102, 108)["cpu"]["cpus"][0]["busy"] == 0.6


def step(script: Script, second: int, size: float) -> None:
    for sample in script.samples[second:]:
        sample["o"] += size


def test_clock_step_without_the_offsets_time_gives_no_numbers():
    script = Script()
    step(script, 5, 30.0)
    report = script.cut(101, 104)
    assert report["interfaces"] is None
    assert "this host's clock was set by +30.000 s, 5.0 s after the sampler started" in report["reason"]


@pytest.mark.parametrize("size", [30.0, -5.0, 0.1])
def test_clock_step_with_the_offsets_time(size):
    script = Script()
    step(script, 5, size)
    # Measured before the step, when both clocks agreed: windows after it are found by the monotonic clock too.
    before = {"clock_offset_s": 0.0, "clock_offset_time": EPOCH + 85}
    for start, end in ((101, 104), (102, 108), (106, 109)):
        report = script.cut(start, end, **before)
        assert report["interfaces"]["eth1"]["rx_packets"] == 1000 * (end - start)
        assert report["window"]["counted_s"] == pytest.approx(end - start)
    # Measured after it: this host is ahead by the step.
    after = {"clock_offset_s": -size, "clock_offset_time": EPOCH + 111}
    assert script.cut(102, 108, **after)["window"]["counted_s"] == pytest.approx(6)
    assert script.cut(102, 108, **after)["interfaces"]["eth1"]["rx_packets"] == 6000


def test_clock_set_back_over_the_offsets_time():
    """It was EPOCH + 78 twice on this host: before the sampler started, and again after the step."""
    script = Script()
    step(script, 5, -30.0)
    report = script.cut(102, 108, clock_offset_s=30.0, clock_offset_time=EPOCH + 108)
    assert report["interfaces"] is None
    assert "showed clock_offset_time 2 times" in report["reason"]


def test_slewing_clock_is_followed():
    """500 ppm against the monotonic clock, and a window given in the wall clock."""
    script = Script()
    for second, sample in enumerate(script.samples):
        sample["o"] += 0.0005 * second
    report = script.cut(102.001, 108.004)
    assert report["window"]["counted_s"] == pytest.approx(6.0, abs=1e-4)
    assert report["interfaces"]["eth1"]["rx_packets"] == 6000


def test_queues():
    script = Script()
    script.header["queues"] = {
        "eth1": [["rx", 0, "packets"], ["rx", 0, "bytes"], ["rx", 1, "packets"], ["tx", 0, "packets"]]
    }
    for second in (0, 2, 4, 6, 8, 10):
        script.samples[second].update(
            queues_m=100.0 + second, queues={"eth1": [900 * second, 90000 * second, 100 * second, 3]}
        )
    queues = script.cut(101, 109)["interfaces"]["eth1"]["queues"]
    assert queues == {
        "rx": {"0": {"packets": 5400, "bytes": 540000}, "1": {"packets": 600, "bytes": None}},
        "tx": {"0": {"packets": 0, "bytes": None}},
        "counted_s": 6.0,
    }
    assert script.cut(101, 109)["interfaces"]["eth1"]["queues_reason"] is None
    for second in (4, 6, 8, 10):
        script.samples[second]["queues"]["eth1"][0] = 0
    interface = script.cut(101, 109)["interfaces"]["eth1"]
    assert (interface["queues"], interface["queues_reason"]) == (None, "the counters of the queues were reset")
    assert "not read often enough" in script.cut(105, 107)["interfaces"]["eth1"]["queues_reason"]
    assert (
        script.cut(104, 109)["interfaces"]["eth1"]["queues_reason"]
        == "rx: the driver counted 400 of 4000 packets per queue"
    )


def test_256_cpus_and_many_samples_cut_fast():
    script = Script(seconds=600, cpus=256)
    recording = script.recording()
    begun = time.process_time()
    reports = recording.cut([Window(str(n), EPOCH + 100 + n * 5, EPOCH + 104 + n * 5) for n in range(100)])
    assert time.process_time() - begun < 10
    assert len(reports["99"]["cpu"]["cpus"]) == 256
    assert reports["99"]["softnet"]["processed"] == 256 * 2000


# ---------------------------------------------------------------- recording


@pytest.fixture
def tree(tmp_path: pathlib.Path) -> pathlib.Path:
    root = tmp_path / "root"
    (root / "proc/net").mkdir(parents=True)
    (root / "proc/stat").write_text(
        "cpu 1 1 1 1 1 1 1 1 1 1\n"
        + "".join(f"cpu{n} {n} 0 0 0 0 0 0 0 0 0\n" for n in range(256))
        + "intr 5 0 0\nctxt 1\n",
        encoding="ascii",
    )
    (root / "proc/net/softnet_stat").write_text(
        "".join("00000001 " * 12 + f"{n:08x}\n" for n in range(256)), encoding="ascii"
    )
    row = " ".join(["1234567"] * 256)
    (root / "proc/softirqs").write_text(
        f"   CPU0\n HI: {row}\n NET_TX: {row}\n NET_RX: {row}\n RCU: {row}\n", encoding="ascii"
    )
    for index, (name, flags, physical) in enumerate(
        [
            ("lo", "0x9", False),
            ("eth0", "0x1003", True),
            ("eth1", "0x1002", True),
            ("veth7", "0x1003", False),
            ("ifb0", "0x82", False),
        ]
    ):
        base = root / "sys/class/net" / name
        (base / "statistics").mkdir(parents=True)
        for counter in COUNTERS:
            (base / "statistics" / counter).write_text("18446744073709551615\n", encoding="ascii")
        for key, value in (("flags", flags), ("ifindex", str(index + 1)), ("mtu", "1500"), ("speed", "25000")):
            (base / key).write_text(value + "\n", encoding="ascii")
        if physical:
            (base / "device").mkdir()
    (root / "sys/class/net/bonding_masters").write_text("bond0\n", encoding="ascii")
    return root


def test_default_interfaces(tree):
    assert sampler.default_interfaces(str(tree)) == ["eth0", "eth1", "veth7"]


def test_recorder_keeps_what_changed(tree):
    recorder = sampler.Recorder(sampler.Settings("s", ("eth0", "veth7", "eth0")), root=str(tree), ask=None)
    assert recorder.header()["interfaces"] == ["eth0", "veth7"]
    assert recorder.header()["links"]["eth0"] == {"mtu_bytes": 1500, "speed_bps": 25e9}
    assert recorder.header()["links"]["veth7"] == {"mtu_bytes": 1500, "speed_bps": None}, "a speed that is no limit"
    first = recorder.sample()
    assert len(first["softnet"]) == 256
    assert first["stat"].splitlines()[-1] == "cpu255 255 0 0 0 0 0 0 0 0 0"
    assert set(first["softirqs"]) == {"NET_RX", "NET_TX"}
    assert first["if"]["eth0"] == [2, *[2**64 - 1] * len(COUNTERS)]
    second = recorder.sample()
    assert second["softnet"] == {}
    assert "softirqs" not in second
    text = (tree / "proc/net/softnet_stat").read_text(encoding="ascii")
    (tree / "proc/net/softnet_stat").write_text(text.replace("00000001", "00000009", 1), encoding="ascii")
    assert list(recorder.sample()["softnet"]) == ["0"]


def test_recorder_needs_little_of_a_large_host(tree):
    recorder = sampler.Recorder(sampler.Settings("s", ("eth0", "veth7", "eth1")), root=str(tree), ask=None)
    recorder.sample()
    begun = time.process_time()
    for _turn in range(50):
        json.dumps(recorder.sample())
    assert (time.process_time() - begun) / 50 < 0.002


def test_recorder_refuses_an_interface_that_is_not_there(tree):
    with pytest.raises(BenchError, match="no interface eth8") as caught:
        sampler.Recorder(sampler.Settings("s", ("eth8", "eth0")), root=str(tree), ask=None)
    assert caught.value.code == "interface_absent"
    assert "veth7" in (caught.value.remedy or "")


def test_recording_made_here_is_read_here(tree):
    recorder = sampler.Recorder(sampler.Settings("s", ("eth0",), interval_s=0.02), root=str(tree), ask=None)
    records = [recorder.header()]
    for _turn in range(5):
        records.append(recorder.sample())
        time.sleep(0.02)
    lines = [json.dumps(record) + "\n" for record in records]
    recording = sampler.Recording(lambda: lines)
    times = [at + offset for at, offset in zip(recording.times, recording.offsets)]
    report = recording.cut([Window("w", times[0], times[-1])])["w"]
    assert report["reason"] is None
    assert report["interfaces"]["eth0"]["rx_packets"] == 0
    assert report["cpu"]["cpus"][0]["reason"] == "its clock did not advance"
    assert report["cpu"]["mean_busy"] is None
    assert report["power"]["source"] is None
    assert set(report["power"]["reasons"]) == {"frequency", "idle", "throttle", "energy"}


def test_power_that_is_not_recorded_is_null(tree):
    quiet = sampler.Settings("s", ("eth0",), interval_s=0.02, power_interval_s=0)
    recorder = sampler.Recorder(quiet, root=str(tree), ask=None)
    records = [recorder.header(), recorder.sample()]
    time.sleep(0.05)
    records.append(recorder.sample())
    assert not any("power" in record for record in records[1:])
    recording = sampler.Recording(lambda: [json.dumps(record) + "\n" for record in records])
    times = [at + offset for at, offset in zip(recording.times, recording.offsets)]
    report = recording.cut([Window("w", times[0], times[-1])])["w"]
    assert (report["reason"], report["power"]) == (None, None)


@pytest.mark.parametrize(
    "wrong",
    [
        {"interval_s": 0.0},
        {"interval_s": 61},
        {"max_duration_s": 0.1},
        {"queue_interval_s": -1},
        {"power_interval_s": -1},
        {"max_bytes": 10},
        {"sample_id": "../x"},
    ],
)
def test_settings_that_make_no_sense(wrong):
    with pytest.raises(BenchError):
        sampler.Settings(**{"sample_id": "s", **wrong}).check()


# -------------------------------------------------------------- in real time


@pytest.fixture
def settings(tmp_path):
    made = sampler.Settings("live", ("lo",), interval_s=0.05, max_duration_s=20, directory=str(tmp_path / "run"))
    yield made
    background.Workers(made.directory).stop("live")


def test_start_stop_is_idempotent(settings):
    assert sampler.ensure_started(settings, check_mode=True) == {"changed": True}
    assert sampler.ensure_ended(settings, "gathered")["ended"] == "absent"
    started = sampler.ensure_started(settings)
    assert (started["changed"], started["interfaces"]) == (True, ["lo"])
    again = sampler.ensure_started(settings)
    assert (again["changed"], again["pid"]) == (False, started["pid"])
    begin = time.time()
    time.sleep(0.4)
    window = [Window("w", begin, begin + 0.35)]
    seen = sampler.ensure_ended(settings, "gathered", window)
    assert (seen["changed"], seen["ended"], seen["windows"]["w"]["reason"]) == (False, "running", None)
    checked = sampler.ensure_ended(settings, "stopped", window, check_mode=True)
    assert (checked["changed"], checked["ended"]) == (True, "running")
    stopped = sampler.ensure_ended(settings, "stopped", window, return_raw=True)
    assert (stopped["changed"], stopped["ended"], stopped["reason"]) == (True, "asked", None)
    assert stopped["windows"]["w"]["samples"] >= 5
    assert stopped["overhead"]["cpu_per_sample_ms"] < 2
    assert list(stopped["raw"]) == ["live.jsonl"]
    twice = sampler.ensure_ended(settings, "stopped", window)
    assert (twice["changed"], twice["windows"]) == (False, stopped["windows"])
    assert sampler.ensure_ended(settings, "absent", check_mode=True)["changed"] is True
    assert sampler.ensure_ended(settings, "absent")["changed"] is True
    assert sampler.ensure_ended(settings, "absent")["changed"] is False


def test_ends_at_its_longest_duration_and_says_so(tmp_path):
    settings = sampler.Settings("short", ("lo",), interval_s=0.05, max_duration_s=0.3, directory=str(tmp_path))
    sampler.ensure_started(settings)
    begin = time.time()
    time.sleep(0.6)
    result = sampler.ensure_ended(settings, "stopped", [Window("w", begin, begin + 0.55)])
    assert result["changed"] is False
    assert "longest duration of 0.3 s was over" in result["windows"]["w"]["reason"]


def test_ends_at_its_largest_size_and_says_so(settings):
    small = sampler.Settings("live", ("lo",), interval_s=0.02, max_bytes=65536, directory=settings.directory)
    object.__setattr__(small, "max_bytes", 2000)
    sampler.ensure_started(small)
    time.sleep(0.3)
    assert "max_bytes" in sampler.ensure_ended(small, "stopped")["reason"]


def test_absent_interface_is_told_by_the_starter(settings):
    wrong = sampler.Settings("live", ("nosuch0",), directory=settings.directory)
    with pytest.raises(BenchError, match="no interface nosuch0"):
        sampler.ensure_started(wrong)
