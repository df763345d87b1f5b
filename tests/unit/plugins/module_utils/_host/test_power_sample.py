# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the CPUs really did, read from a tree of files and cut to windows."""

from __future__ import annotations

import pathlib
import typing as t

import pytest

from ansible_collections.fastpath.bench.plugins.module_utils._host import power_sample
from ansible_collections.fastpath.bench.plugins.module_utils._host.power_sample import Sampler, cut

CPU = "sys/devices/system/cpu"
RAPL = "sys/class/powercap"
WRAP = 262143328850


class Clock:
    """Time that passes when told."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        monkeypatch.setattr(power_sample.time, "monotonic", lambda: self.now)


class Machine:
    """Files below a folder."""

    def __init__(self, root: pathlib.Path) -> None:
        self.root = root
        self.put("proc/cpuinfo", "flags\t\t: fpu aes\ncpu MHz\t\t: 2600.000\n")
        self.put(f"{CPU}/possible", "0-1")

    def put(self, path: str, value: t.Any) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{value}\n")

    def full(self) -> None:
        for cpu in (0, 1):
            policy = f"{CPU}/cpufreq/policy{cpu}"
            self.put(f"{policy}/scaling_driver", "intel_pstate")
            self.put(f"{policy}/scaling_governor", "performance")
            self.put(f"{policy}/scaling_cur_freq", 3_000_000)
            self.put(f"{policy}/base_frequency", 2_600_000 + cpu)
            for number, name in enumerate(("POLL", "C6")):
                self.put(f"{CPU}/cpu{cpu}/cpuidle/state{number}/name", name)
                self.put(f"{CPU}/cpu{cpu}/cpuidle/state{number}/latency", 100 * number)
                self.put(f"{CPU}/cpu{cpu}/cpuidle/state{number}/disable", 0)
                self.put(f"{CPU}/cpu{cpu}/cpuidle/state{number}/time", 1000)
            for kind in ("core", "package"):
                self.put(f"{CPU}/cpu{cpu}/thermal_throttle/{kind}_throttle_count", 3)
        for zone, name in (("intel-rapl:0", "package-0"), ("intel-rapl:0:0", "dram")):
            self.put(f"{RAPL}/{zone}/name", name)
            self.put(f"{RAPL}/{zone}/max_energy_range_uj", WRAP)
            self.put(f"{RAPL}/{zone}/energy_uj", WRAP - 5_000_000)
        self.put(f"{RAPL}/intel-rapl/name", "control")


@pytest.fixture
def machine(tmp_path: pathlib.Path) -> Machine:
    return Machine(tmp_path)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def report(sampler: Sampler, records: list[dict[str, t.Any]], start: float, end: float) -> dict[str, t.Any]:
    return cut(lambda: records, sampler.header(), {"w": (start, end)}, 0.1)["w"]


def test_all_counters(machine: Machine, clock: Clock) -> None:
    machine.full()
    sampler = Sampler(str(machine.root))
    records = [sampler.sample()]
    clock.now += 10
    machine.put(f"{CPU}/cpufreq/policy0/scaling_cur_freq", 3_900_000)
    machine.put(f"{CPU}/cpu0/cpuidle/state1/time", 1000 + 4_000_000)
    machine.put(f"{CPU}/cpu1/thermal_throttle/core_throttle_count", 5)
    # Past its end, and on from 0.
    machine.put(f"{RAPL}/intel-rapl:0/energy_uj", 94_999_999)
    records.append(sampler.sample())
    found = report(sampler, records, 100, 110)
    assert (found["driver"], found["source"]) == ("intel_pstate (active)", "cpufreq")
    assert found["frequency"] == {"base_mhz": 2600.0, "mean_mhz": 3225.0, "min_mhz": 3000.0, "max_mhz": 3900.0}
    assert found["idle"] == {"POLL": 0.0, "C6": 0.2}
    assert found["throttle"] == {"core": 2, "package": 0}
    assert found["energy"] == {
        "package-0": {"joule": 100.0, "watt": 10.0},
        "package-0/dram": {"joule": 0.0, "watt": 0.0},
    }
    assert found["settings"]["governor"] == {"performance": "policy0-1"}
    assert found["settings_changed"] is False
    assert found["counted_s"] == 10
    assert found["reasons"] == {}


def test_governor_that_went_back_during_the_trial(machine: Machine, clock: Clock) -> None:
    machine.full()
    sampler = Sampler(str(machine.root))
    records = [sampler.sample()]
    for governor in ("performance", "powersave", "powersave"):
        clock.now += 5
        machine.put(f"{CPU}/cpufreq/policy1/scaling_governor", governor)
        records.append(sampler.sample())
    found = report(sampler, records, 100, 115)
    assert found["settings_changed"] is True
    assert found["settings"]["governor"] == {"performance": "policy0", "powersave": "policy1"}
    assert report(sampler, records, 100, 105)["settings_changed"] is False
    assert report(sampler, records, 110, 115)["settings_changed"] is False
    assert [("set" in record) for record in records] == [True, False, True, False], "only what changed is kept"


def test_registers_of_the_cpu_count_only_the_time_awake(
    machine: Machine, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.full()
    (machine.root / "dev/cpu").mkdir(parents=True)
    for cpu in (0, 1):
        (machine.root / CPU / f"cpufreq/policy{cpu}/base_frequency").unlink()
    counters = {"cpu0": [0, 1, 1], "cpu1": [0, 1, (1 << 64) - 1000]}
    monkeypatch.setattr(Sampler, "_registers", lambda _self, cpu: tuple(counters[cpu]))
    sampler = Sampler(str(machine.root))
    assert sampler.source == "msr"
    records = [sampler.sample()]
    clock.now += 2
    ticks = 2 * 2_000_000_000
    # One is awake half of the time, at 3 GHz where nominal is 2; the other nearly never, at 1 GHz.
    for cpu, awake, factor in (("cpu0", 0.5, 1.5), ("cpu1", 0.01, 0.5)):
        tsc, mperf, aperf = counters[cpu]
        grown = [tsc + ticks, mperf + ticks * awake, aperf + ticks * awake * factor]
        counters[cpu] = [int(value) % (1 << 64) for value in grown]
    records.append(sampler.sample())
    found = report(sampler, records, 100, 102)["frequency"]
    assert found["min_mhz"] == found["max_mhz"] == 3000.0
    assert found["base_mhz"] == 2000.0
    assert found["mean_mhz"] == pytest.approx(2000 * (0.75 + 0.005) / 0.51, abs=0.1)


def test_what_is_absent_is_null_with_a_reason(machine: Machine, clock: Clock) -> None:
    machine.put("proc/cpuinfo", "flags\t\t: fpu hypervisor\ncpu MHz\t\t: 2600.000\n")
    sampler = Sampler(str(machine.root))
    records = [sampler.sample()]
    clock.now += 2
    records.append(sampler.sample())
    found = report(sampler, records, 100, 102)
    assert found["driver"] is None
    assert (found["source"], found["frequency"]["mean_mhz"]) == ("nominal", 2600.0)
    assert [found[name] for name in ("idle", "throttle", "energy")] == [None] * 3
    assert set(found["reasons"]) == {"frequency", "idle", "throttle", "energy"}
    assert "nominal" in found["reasons"]["frequency"]


def test_no_frequency_at_all(machine: Machine, clock: Clock) -> None:
    machine.put("proc/cpuinfo", "processor : 0")
    sampler = Sampler(str(machine.root))
    records = [sampler.sample()]
    clock.now += 2
    found = report(sampler, [*records, sampler.sample()], 100, 102)
    assert found["frequency"] is None
    assert "msr" in found["reasons"]["frequency"]


def test_a_window_without_readings_has_no_numbers(machine: Machine, clock: Clock) -> None:
    machine.full()
    sampler = Sampler(str(machine.root))
    records = [sampler.sample()]
    clock.now += 10
    records.append(sampler.sample())
    found = report(sampler, records, 103, 106)
    assert found["energy"] is None
    assert found["reasons"]["energy"] == "0 readings in the window"
    assert found["counted_s"] is None


def test_a_cpu_that_goes_offline_is_left_out(machine: Machine, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.full()
    (machine.root / "dev/cpu").mkdir(parents=True)
    counters: dict[str, tuple[int, int, int] | None] = {"cpu0": (0, 1, 1), "cpu1": (10**12, 10**12, 10**12)}
    monkeypatch.setattr(Sampler, "_registers", lambda _self, cpu: counters[cpu])
    sampler = Sampler(str(machine.root))
    records = [sampler.sample()]
    for cpu1 in (None, (5, 5, 5)):
        clock.now += 1
        now = counters["cpu0"]
        assert now is not None
        counters["cpu0"] = (now[0] + 2 * 10**9, now[1] + 2 * 10**9, now[2] + 3 * 10**9)
        counters["cpu1"] = cpu1
        records.append(sampler.sample())
    assert report(sampler, records, 100, 102)["frequency"]["mean_mhz"] == 3000.0
