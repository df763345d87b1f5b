# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Power settings with each driver and each way of not getting them."""

from __future__ import annotations

import errno
import pathlib
import time
import typing as t

import pytest

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._host import cpu_power
from ansible_collections.fastpath.bench.plugins.module_utils._host.access import Access
from ansible_collections.fastpath.bench.plugins.module_utils._host.cpu_power import CpuPower
from ansible_collections.fastpath.bench.plugins.module_utils._host.journal import Journal, Surroundings
from ansible_collections.fastpath.bench.plugins.module_utils._host.restore import restore
from ansible_collections.fastpath.bench.tests.support.fake_cpus import (
    CPU,
    GOVERNORS,
    LOWEST,
    NOMINAL,
    TURBO,
    FakeCpus,
    Service,
)

HERE = Surroundings("boot-1", "cookie:1")
STATIC_HIGH = {
    "governor": "performance",
    "boost": True,
    "min_frequency": "max",
    "max_frequency": "max",
    "max_exit_latency_us": 5,
}


class Host:
    """A host with its journal."""

    def __init__(self, access: FakeCpus, folder: pathlib.Path) -> None:
        self.cpus = access
        self.folder = folder

    @property
    def journal(self) -> Journal:
        return Journal(str(self.folder / "journal"), owner="run", surroundings=HERE)

    def power(self, *, check_mode: bool = False, **options: t.Any) -> dict[str, t.Any]:
        params = {"strict": False, "stop_owners": False, "profile": None, **options}
        return CpuPower(self.cpus, params, self.journal).run(check_mode=check_mode)

    def restored(self) -> None:
        result = restore(self.journal, self.cpus)
        assert result.conflicts == []
        assert result.remaining == 0


@pytest.fixture
def host(tmp_path: pathlib.Path) -> t.Callable[..., Host]:
    def make(*args: t.Any, **options: t.Any) -> Host:
        return Host(FakeCpus(*args, **options), tmp_path)

    return make


def statuses(result: dict[str, t.Any]) -> dict[str, str]:
    return {option: row["status"] for option, row in result["settings"].items()}


def codes(result: dict[str, t.Any]) -> set[str]:
    return {row["code"] for row in result["findings"]}


# Every driver


@pytest.mark.parametrize("driver", sorted(GOVERNORS))
@pytest.mark.parametrize("policy_boost", [False, True])
def test_static_high_with_each_driver(host: t.Any, driver: str, policy_boost: bool) -> None:
    machine = host(driver, policy_boost=policy_boost)
    machine.cpus._set_boost(False)
    before = machine.cpus.picture()
    told = machine.power(**STATIC_HIGH, check_mode=True)
    assert told["changed"]
    assert machine.cpus.picture() == before
    assert set(statuses(told).values()) <= {"would_change", "already"}
    result = machine.power(**STATIC_HIGH)
    assert set(statuses(result).values()) <= {"done", "already"}, result["settings"]
    assert result["power"]["effective"] is None
    for policy in machine.cpus.policies.values():
        assert (policy.governor, machine.cpus.low(policy), machine.cpus.high(policy)) == ("performance", TURBO, TURBO)
    assert machine.cpus.idle[0] == [False, False, True, True]
    writes = len(machine.cpus.writes)
    again = machine.power(**STATIC_HIGH)
    assert not again["changed"]
    assert set(statuses(again).values()) == {"already"}
    assert len(machine.cpus.writes) == writes
    machine.restored()
    assert machine.cpus.picture() == before


@pytest.mark.parametrize(
    ("driver", "status", "name", "mode"),
    [
        ("intel_pstate", None, "intel_pstate", "active"),
        ("intel_cpufreq", None, "intel_pstate", "passive"),
        ("amd-pstate-epp", None, "amd_pstate", "active"),
        ("amd-pstate", None, "amd_pstate", "passive"),
        ("amd-pstate", "guided", "amd_pstate", "guided"),
        ("acpi-cpufreq", None, "acpi-cpufreq", None),
    ],
)
def test_driver_and_its_mode(host: t.Any, driver: str, status: str | None, name: str, mode: str | None) -> None:
    assert host(driver, status=status).power()["driver"] == {"name": name, "mode": mode, "policies": 4}


# No lever


def test_a_guest_without_cpufreq_is_unsupported_and_says_where_the_lever_is(host: t.Any) -> None:
    machine = host(None, idle=False)
    machine.cpus.texts["/sys/class/dmi/id/sys_vendor"] = "VMware, Inc."
    machine.cpus.texts["/sys/class/dmi/id/product_name"] = "VMware Virtual Platform"
    result = machine.power(**STATIC_HIGH)
    assert result["unsupported"]
    assert not result["changed"]
    assert set(statuses(result).values()) == {"absent"}
    assert "vmware" in result["findings"][0]["remedy"]
    assert "hypervisor's power policy" in result["findings"][0]["remedy"]
    assert result["power"]["effective"] is False
    assert not machine.folder.joinpath("journal", "journal.json").exists()
    with pytest.raises(BenchError, match=r"no driver scales.*hypervisor") as caught:
        machine.power(**STATIC_HIGH, strict=True)
    assert caught.value.code == "power_absent"


def test_bare_metal_without_a_driver_points_to_the_bios(host: t.Any) -> None:
    assert "BIOS" in host(None, idle=False).power(governor="performance")["settings"]["governor"]["remedy"]


def test_a_look_asks_for_nothing(host: t.Any) -> None:
    machine = host(None, idle=False)
    machine.cpus.services["tuned.service"] = Service(active=True)
    result = machine.power()
    assert not result["unsupported"]
    assert not result["changed"]
    assert result["findings"] == []
    assert result["owners"] == [{"unit": "tuned.service", "active": True, "enabled": False}]
    assert result["power"]["effective"] is None


def test_absent_knob_of_this_driver(host: t.Any) -> None:
    machine = host("acpi-cpufreq")
    result = machine.power(governor="performance", energy_performance_preference="performance")
    assert statuses(result) == {"governor": "done", "energy_performance_preference": "absent"}
    assert "acpi-cpufreq" in result["settings"]["energy_performance_preference"]["reason"]
    assert result["changed"]
    assert not result["unsupported"]
    assert "power_absent" in codes(result)
    assert result["power"]["effective"] is False


# Refused, unsupported, ignored


def test_boost_that_firmware_forbids(host: t.Any) -> None:
    machine = host("intel_pstate", boost_permitted=False)
    result = machine.power(boost=True, governor="performance")
    assert statuses(result) == {"boost": "refused", "governor": "done"}
    assert "firmware" in result["settings"]["boost"]["reason"]
    assert "power_refused" in codes(result)
    machine.restored()
    before = machine.cpus.picture()
    with pytest.raises(BenchError, match="firmware"):
        machine.power(boost=True, governor="performance", strict=True)
    assert machine.cpus.picture() == before, "a strict call leaves nothing half applied"


def test_boost_off_that_is_off_by_firmware_is_as_asked(host: t.Any) -> None:
    assert statuses(host("intel_pstate", boost_permitted=False).power(boost=False)) == {"boost": "already"}


def test_unknown_governor_names_driver_and_governors(host: t.Any) -> None:
    machine = host("intel_pstate")
    result = machine.power(governor="ondemand")
    row = result["settings"]["governor"]
    assert row["status"] == "unsupported_value"
    assert row["where"] == "all"
    assert "'ondemand'" in row["reason"]
    assert "intel_pstate" in row["reason"]
    assert "performance, powersave" in row["remedy"]
    assert not result["changed"]
    assert machine.cpus.writes == []


def test_governor_in_a_module_is_loaded_by_the_write(host: t.Any) -> None:
    machine = host("acpi-cpufreq")
    before = machine.cpus.picture()
    assert statuses(machine.power(governor="ondemand")) == {"governor": "done"}
    machine.restored()
    assert machine.cpus.picture() == before


@pytest.mark.parametrize(
    ("fault", "status"),
    [
        (errno.EPERM, "refused"),
        (errno.EIO, "refused"),
        (errno.EBUSY, "refused"),
        (errno.EACCES, "refused"),
        (errno.EINVAL, "unsupported_value"),
        (errno.ENOENT, "absent"),
        (0, "ignored"),
    ],
)
def test_ways_of_not_taking_a_write(host: t.Any, fault: int, status: str) -> None:
    machine = host("amd-pstate-epp", cpus=8)
    machine.cpus.faults["policy[67]/energy_performance_preference"] = fault
    before = machine.cpus.picture()
    wish = {"energy_performance_preference": "power", "max_frequency": "2000000"}
    with pytest.raises(BenchError):
        machine.power(**wish, strict=True)
    assert machine.cpus.picture() == before
    result = machine.power(**wish)
    assert statuses(result) == {"energy_performance_preference": status, "max_frequency": "done"}
    assert result["settings"]["energy_performance_preference"]["where"] == "policy6-7"
    assert [row["code"] for row in result["findings"]] == [f"power_{status}"]
    assert result["now"]["energy_performance_preference"] == {"power": "policy0-5", "balance_performance": "policy6-7"}
    assert result["power"]["effective"] is False
    machine.restored()
    assert machine.cpus.picture() == before


def test_read_only_tree_is_refused_before_any_write_and_in_check_mode(host: t.Any) -> None:
    machine = host("intel_pstate")
    machine.cpus.read_only.append("/sys/")
    for check_mode in (True, False):
        result = machine.power(governor="performance", max_exit_latency_us=0, check_mode=check_mode)
        assert set(statuses(result).values()) == {"refused"}
        assert not result["changed"]


def test_value_that_the_driver_rounds_is_told(host: t.Any) -> None:
    machine = host("acpi-cpufreq", step_khz=100_000)
    before = machine.cpus.picture()
    result = machine.power(max_frequency="2450000")
    row = result["settings"]["max_frequency"]
    assert row["status"] == "unsupported_value"
    assert "2500000" in row["reason"]
    machine.restored()
    assert machine.cpus.picture() == before


# Locks and order


@pytest.mark.parametrize("old_kernel", [False, True])
def test_preference_and_governor(host: t.Any, old_kernel: bool) -> None:
    machine = host("intel_pstate", old_kernel=old_kernel)
    before = machine.cpus.picture()
    with pytest.raises(BenchError, match="locks it") as caught:
        machine.power(governor="performance", energy_performance_preference="balance_performance")
    assert caught.value.code == "contradiction"
    assert machine.cpus.writes == []
    result = machine.power(governor="performance", energy_performance_preference="performance")
    assert set(statuses(result).values()) == {"done"}
    assert not [path for path, _text in machine.cpus.writes if path.endswith("_preference")], "no write needed"
    with pytest.raises(BenchError, match="locks it"):
        machine.power(energy_performance_preference="power")
    result = machine.power(governor="powersave", energy_performance_preference="power")
    assert set(statuses(result).values()) == {"done"}
    machine.restored()
    assert machine.cpus.picture() == before


def test_passive_mode_does_not_lock_the_preference(host: t.Any) -> None:
    machine = host("intel_cpufreq")
    result = machine.power(governor="performance", energy_performance_preference="power")
    assert set(statuses(result).values()) == {"done"}


def test_default_is_no_preference_that_could_be_read_back(host: t.Any) -> None:
    assert statuses(host("intel_pstate").power(energy_performance_preference="default")) == {
        "energy_performance_preference": "unsupported_value"
    }


@pytest.mark.parametrize(
    ("first", "then"),
    [
        (("min", "1000000"), ("2000000", "3000000")),
        (("2000000", "3000000"), ("min", "1000000")),
        (("50%", "75%"), ("100%", "100%")),
        (("max", "max"), ("min", "min")),
    ],
)
def test_limits_move_past_each_other(host: t.Any, first: tuple[str, str], then: tuple[str, str]) -> None:
    machine = host("acpi-cpufreq")
    before = machine.cpus.picture()
    for low, high in (first, then):
        result = machine.power(min_frequency=low, max_frequency=high)
        assert set(statuses(result).values()) <= {"done", "already"}, result["settings"]
    machine.restored()
    assert machine.cpus.picture() == before


def test_a_lowest_frequency_above_the_highest_is_not_tried(host: t.Any) -> None:
    machine = host("acpi-cpufreq")
    result = machine.power(min_frequency="3000000", max_frequency="2000000")
    assert set(statuses(result).values()) == {"unsupported_value"}
    assert machine.cpus.writes == []
    machine.power(max_frequency="1000000")
    assert "Ask for both" in machine.power(min_frequency="2000000")["settings"]["min_frequency"]["remedy"]
    assert statuses(machine.power(max_frequency="9000000")) == {"max_frequency": "unsupported_value"}


def test_a_percentage_follows_boost(host: t.Any) -> None:
    machine = host("acpi-cpufreq")
    machine.cpus.boost = False
    machine.power(boost=True, max_frequency="100%", min_frequency="50%")
    assert machine.cpus.low(machine.cpus.policies[0]) == TURBO // 2
    machine.power(boost=False, max_frequency="100%", min_frequency="50%")
    assert machine.cpus.low(machine.cpus.policies[0]) == NOMINAL // 2
    assert machine.cpus.high(machine.cpus.policies[0]) == NOMINAL


def test_limits_that_boost_moves_come_back(host: t.Any) -> None:
    machine = host("intel_pstate")
    machine.power(min_frequency="3000000")
    before = machine.cpus.picture()
    other = Journal(str(machine.folder / "other"), surroundings=HERE)
    options = {"strict": False, "stop_owners": False, "boost": False, "min_frequency": "min"}
    options["max_frequency"] = "1000000"
    CpuPower(machine.cpus, options, other).run(check_mode=False)
    assert machine.cpus.high(machine.cpus.policies[0]) == 1_000_000
    restore(other, machine.cpus)
    assert machine.cpus.picture() == before


def test_what_a_governor_forgets_comes_back(host: t.Any) -> None:
    machine = host("acpi-cpufreq")
    machine.cpus._put_governor(machine.cpus.policies[0], "userspace")
    machine.cpus.policies[0].speed = 1_700_000
    for number in (1, 2, 3):
        machine.cpus._put_governor(machine.cpus.policies[number], "ondemand")
    machine.cpus.tunables["ondemand"]["up_threshold"] = "95"
    before = machine.cpus.picture()
    machine.power(governor="performance")
    assert machine.cpus.tunables == {}
    machine.restored()
    assert machine.cpus.picture() == before


@pytest.mark.parametrize("found", ["sched-util2", "Vendor_X", "", "<unsupported>", "a b", "../x"])
def test_whatever_stands_where_the_governor_is_comes_back(tmp_path: pathlib.Path, found: str) -> None:
    folder = tmp_path / "sys/devices/system/cpu/cpufreq" / "policy0"
    folder.mkdir(parents=True)
    files = {"scaling_driver": "acpi-cpufreq", "scaling_available_governors": "performance powersave"}
    for name, text in {**files, "scaling_governor": found}.items():
        (folder / name).write_text(text + "\n")
    access = Access(proc=str(tmp_path / "proc"), sys=str(tmp_path / "sys"))
    journal = Journal(str(tmp_path / "journal"), owner="run", surroundings=HERE)
    options = {"strict": False, "stop_owners": False, "profile": None, "governor": "performance"}
    CpuPower(access, options, journal).run(check_mode=False)
    assert (folder / "scaling_governor").read_text() == "performance\n"
    assert restore(journal, access).remaining == 0
    assert (folder / "scaling_governor").read_text() == found + "\n"


@pytest.mark.parametrize("force", [False, True])
def test_a_cpu_that_is_offline_at_the_restore_waits_for_its_return(host: t.Any, force: bool) -> None:
    machine = host("intel_pstate")
    before = machine.cpus.picture()
    machine.power(governor="performance")
    machine.cpus.without.append("policy1(/|$)")
    result = restore(machine.journal, machine.cpus, force=force)
    assert machine.cpus.policies[0].governor == "powersave"
    if force:
        assert result.remaining == 0
        return
    assert result.remaining == 2, "its governor and its preference"
    assert [row["code"] for row in result.findings] == ["not_there_now"]
    machine.cpus.without.clear()
    machine.restored()
    assert machine.cpus.picture() == before


# Idle states and uncore


def test_idle_states_by_name(host: t.Any) -> None:
    machine = host("intel_pstate")
    assert statuses(machine.power(disabled_idle_states=["c6", "state2"])) == {"disabled_idle_states": "done"}
    assert machine.cpus.idle[3] == [False, False, True, True]
    result = machine.power(disabled_idle_states=[])
    assert machine.cpus.idle[3] == [False] * 4
    assert result["now"]["idle_states_off"] == {"none": "cpu0-3"}
    result = machine.power(disabled_idle_states=["C10"])
    row = result["settings"]["disabled_idle_states"]
    assert row["status"] == "unsupported_value"
    assert row["remedy"] == "Idle states here: C1, C1E, C6, POLL"


def test_an_idle_state_that_some_cpus_lack(host: t.Any) -> None:
    machine = host("intel_pstate")
    machine.cpus.without.append("cpu[23]/cpuidle/state3")
    assert statuses(machine.power(disabled_idle_states=["C6"])) == {"disabled_idle_states": "done"}
    assert [cpu for cpu, off in machine.cpus.idle.items() if off[3]] == [0, 1]


@pytest.mark.parametrize("names", [("package_00_die_00", "package_01_die_00"), ("package_00_die_00", "uncore00")])
def test_uncore(host: t.Any, names: tuple[str, str]) -> None:
    machine = host("intel_pstate", uncore=names)
    before = machine.cpus.picture()
    result = machine.power(uncore_min_frequency="max", uncore_max_frequency="max")
    assert set(statuses(result).values()) <= {"done", "already"}
    written = {path.split("/")[-2] for path, _text in machine.cpus.writes}
    assert written == ({"uncore00"} if "uncore00" in names else set(names))
    machine.restored()
    assert machine.cpus.picture() == before


def test_no_uncore(host: t.Any) -> None:
    assert statuses(host("amd-pstate").power(uncore_min_frequency="max")) == {"uncore_min_frequency": "absent"}


# Other owners


def tuned(machine: Host, **options: t.Any) -> Service:
    service = Service(**options)
    machine.cpus.services["tuned.service"] = service
    return service


def test_another_owner_is_reported_and_left_alone(host: t.Any) -> None:
    machine = host("intel_pstate")
    service = tuned(machine, active=True, enabled=True)
    machine.cpus.services["irqbalance.service"] = Service(active=True)
    result = machine.power(governor="performance")
    assert service.active
    assert {"power_owner_active", "irq_owner_active"} <= codes(result)
    assert "tuned.service is running" in next(r for r in result["findings"] if "owner" in r["code"])["evidence"]


def test_another_owner_is_stopped_when_asked_and_started_by_the_restore(host: t.Any) -> None:
    machine = host("intel_pstate")
    service = tuned(machine, governor="performance")
    # It had found powersave, and puts that back when it is stopped.
    machine.cpus.call(["systemctl", "start", "tuned.service"])
    machine.cpus.services["irqbalance.service"] = Service(active=True)
    before = machine.cpus.picture()
    told = machine.power(max_frequency="2000000", stop_owners=True, check_mode=True)
    assert told["changed"]
    assert service.active
    result = machine.power(governor="performance", max_frequency="2000000", stop_owners=True)
    assert not service.active
    assert machine.cpus.services["irqbalance.service"].active
    assert machine.cpus.policies[0].governor == "performance"
    assert statuses(result)["max_frequency"] == "done"
    assert "power_owner_active" in codes(result)
    assert machine.cpus.writes[1] == ("stop", "tuned.service"), "before it can disturb anything"
    machine.restored()
    assert machine.cpus.picture() == before
    assert service.active
    assert machine.cpus.writes[-1] == ("start", "tuned.service"), "when all is back"


def test_an_owner_is_left_alone_where_nothing_can_be_had(host: t.Any) -> None:
    machine = host(None, idle=False)
    service = tuned(machine, active=True)
    result = machine.power(governor="performance", stop_owners=True)
    assert (result["unsupported"], result["changed"], service.active) == (True, False, True)
    told = next(row for row in result["findings"] if row["code"] == "power_owner_active")
    assert told["severity"] == "warning"
    assert "was left" in told["evidence"]


def test_check_mode_does_not_tell_that_an_owner_was_stopped(host: t.Any) -> None:
    machine = host("intel_pstate")
    tuned(machine, active=True)
    result = machine.power(governor="performance", stop_owners=True, check_mode=True)
    told = next(row for row in result["findings"] if row["code"] == "power_owner_active")
    assert told["evidence"] == "tuned.service is running and sets the power: it would be stopped"


def test_an_owner_that_starts_with_the_machine_is_reported(host: t.Any) -> None:
    machine = host("intel_pstate")
    tuned(machine, enabled=True)
    findings = machine.power(governor="performance")["findings"]
    assert [(row["code"], row["severity"]) for row in findings if row["code"] != "changed_beside"] == [
        ("power_owner_active", "info")
    ]


def test_no_systemd_is_no_finding(host: t.Any) -> None:
    machine = host("intel_pstate")
    machine.cpus.systemd = False
    assert "power_owners_unknown" not in codes(machine.power(governor="performance", stop_owners=True))


@pytest.mark.parametrize(
    ("said", "known"),
    [("System has not been booted with systemd as init system (PID 1). Can't operate.", True), ("Timeout", False)],
)
def test_systemctl_that_does_not_answer(host: t.Any, said: str, known: bool) -> None:
    machine = host("intel_pstate")
    machine.cpus.call = lambda argv: (1, "", said)
    assert ("power_owners_unknown" not in codes(machine.power(governor="performance"))) is known


# Many CPUs


def test_256_cpus_one_write_for_each_policy(host: t.Any) -> None:
    machine = host("acpi-cpufreq", cpus=256, per_policy=2)
    before = machine.cpus.picture()
    begun = time.process_time()
    result = machine.power(governor="performance", max_frequency="2000000")
    assert result["now"]["governor"] == {"performance": "policy" + ",".join(str(n) for n in range(0, 256, 2))}
    assert len([1 for path, _text in machine.cpus.writes if path.endswith("scaling_governor")]) == 128
    assert not machine.power(governor="performance", max_frequency="2000000")["changed"]
    machine.restored()
    assert machine.cpus.picture() == before
    assert time.process_time() - begun < 10


# Options


@pytest.mark.parametrize("text", ["fast", "120%", "0%", "-1", "2.4 GHz", "800"])
def test_not_a_frequency(host: t.Any, text: str) -> None:
    with pytest.raises(BenchError, match="not a frequency"):
        host("intel_pstate").power(min_frequency=text)


@pytest.mark.parametrize(
    ("text", "khz"), [("min", LOWEST), ("max", TURBO), ("50%", TURBO // 2), ("1%", LOWEST), ("2400000", 2_400_000)]
)
def test_frequencies(host: t.Any, text: str, khz: int) -> None:
    machine = host("intel_pstate")
    machine.power(min_frequency=text)
    assert machine.cpus.low(machine.cpus.policies[0]) == khz


def test_two_ways_of_naming_idle_states(host: t.Any) -> None:
    with pytest.raises(BenchError, match="both say"):
        host("intel_pstate").power(max_exit_latency_us=0, disabled_idle_states=["C6"])
    with pytest.raises(BenchError, match="negative"):
        host("intel_pstate").power(max_exit_latency_us=-1)


# Real files


def test_on_real_files(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tree of a machine, copied to disk, and found there by the variable that tests of whole plays use."""
    model = FakeCpus("acpi-cpufreq", cpus=2)
    for path, (get, _put) in model._files.items():
        file = tmp_path / "sys" / path[len("/sys/") :]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(get() + "\n")
    monkeypatch.setenv("FASTPATH_BENCH_SYSFS_ROOT", str(tmp_path / "sys"))
    machine = Host(t.cast(FakeCpus, Access()), tmp_path)
    result = machine.power(governor="performance", max_exit_latency_us=0, boost=False)
    assert set(statuses(result).values()) == {"done"}
    assert (tmp_path / CPU[1:] / "cpufreq/policy1/scaling_governor").read_text().strip() == "performance"
    machine.restored()
    assert (tmp_path / CPU[1:] / "cpufreq/policy1/scaling_governor").read_text().strip() == "powersave"


def test_on_this_machine() -> None:
    """Whatever this machine has can be read."""
    now = cpu_power.picture(Access())
    assert set(now) >= {"governor", "boost", "idle_states_off"}
