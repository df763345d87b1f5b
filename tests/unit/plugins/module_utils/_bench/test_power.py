# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pathlib

import pytest
import yaml

from ansible_collections.fastpath.bench.plugins.module_utils._bench import power
from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.modules import cpu_power

ROOT = pathlib.Path(__file__).resolve().parents[5]
SHIPPED = yaml.safe_load((ROOT / "roles/power_profile/vars/main.yml").read_text())["__power_profile_shipped"]
CURRENT = {"PowerRegulator": "DynamicPowerSavings", "WorkloadProfile": "GeneralPowerEfficientCompute", "Retries": 3}
WANTED = {"PowerRegulator": "StaticHighPerf"}


def resolve(name, **own):
    return power.resolve(name, SHIPPED, own)


# -- profiles -----------------------------------------------------------------------------------------------------


def test_every_shipped_profile_is_whole():
    for name in SHIPPED:
        profile = resolve(name)
        assert profile["name"] == name
        for driver in ({"mode": "active"}, {"mode": "passive"}, {"mode": None}):
            options = power.os_options(profile, {"driver": driver, "now": {}})
            assert set(options) <= set(power.OS_OPTIONS)


def test_the_catalog_offers_the_shipped_profiles():
    catalog = yaml.safe_load((ROOT / "playbooks/vars/catalog.yml").read_text())["bench_shipped"]
    assert list(catalog["power"]) == list(SHIPPED)


def test_options_are_those_of_the_module():
    beside = {"profile", "strict", "stop_owners", "owner", "part", "journal_dir", "force"}
    assert set(power.OS_OPTIONS) == set(cpu_power.argument_spec()) - beside


def test_as_found_asks_for_nothing():
    assert resolve("as_found") == {"name": "as_found", "os": {}, "bmc": {}, "hypervisor": {}}
    with pytest.raises(BenchError, match="nothing can be laid over it"):
        resolve(["as_found", "static_high"])
    with pytest.raises(BenchError, match="changes nothing"):
        resolve("as_found", as_found={"os": {"governor": "performance"}})


def test_profiles_are_laid_over_each_other():
    own = {
        "mine": {"os": {"boost": False, "where_present": {"min_frequency": None}}, "bmc": {"hpe": {"A": 1}}},
        "static_high": {"bmc": {"hpe": {"WorkloadProfile": None}}},
    }
    profile = resolve(["static_high", "mine"], **own)
    assert profile["name"] == "static_high+mine"
    assert profile["bmc"]["hpe"] == {"PowerRegulator": "StaticHighPerf", "A": 1}
    assert profile["os"]["boost"] is False
    assert "min_frequency" not in profile["os"]["where_present"]
    # and what is shipped stays as it is
    assert resolve("static_high")["bmc"]["hpe"]["WorkloadProfile"] == "Custom"


@pytest.mark.parametrize(
    ("name", "own", "said"),
    [
        ("static_hihg", {}, "Did you mean 'static_high'"),
        ([], {}, "no profile is named"),
        ("mine", {"mine": {"os": {"govenor": "x"}}}, "Did you mean 'governor'"),
        ("mine", {"mine": {"os": {"active": {"epp": "x"}}}}, "there is no key 'epp'"),
        ("mine", {"mine": {"hypervisor": {"policy": "static"}}}, "no power policy of ESXi 'static'"),
        ("mine", {"mine": {"bios": {}}}, "Did you mean"),
        ("mine", {"mine": "performance"}, "mine"),
    ],
)
def test_a_profile_that_is_wrong(name, own, said):
    with pytest.raises(BenchError) as caught:
        resolve(name, **own)
    assert said in caught.value.message


def test_what_the_driver_calls_it():
    dynamic = resolve("dynamic")
    present = {"energy_performance_preference": {"power": "all"}, "min_khz": {"800000": "all"}, "max_khz": None}
    assert power.os_options(dynamic, {"driver": {"mode": "active"}, "now": present}) == {
        "governor": "powersave",
        "energy_performance_preference": "balance_performance",
        "min_frequency": "min",
    }
    assert power.os_options(dynamic, {"driver": {"mode": None}, "now": {}}) == {"governor": "schedutil"}


# -- firmware -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("manufacturer", "vendor", "attributes"),
    [
        ("HPE", "", {"WorkloadProfile": "Custom", "PowerRegulator": "StaticHighPerf"}),
        ("Hewlett Packard Enterprise", "", {"WorkloadProfile": "Custom", "PowerRegulator": "StaticHighPerf"}),
        ("Dell Inc.", "", {"SysProfile": "PerfOptimized"}),
        ("Sushy Emulator", "dell", {"SysProfile": "PerfOptimized"}),
    ],
)
def test_attributes_by_make(manufacturer, vendor, attributes):
    assert power.attributes_of(resolve("static_high"), vendor, manufacturer) == attributes


def test_a_make_that_no_profile_knows():
    with pytest.raises(BenchError, match=r"for a server of Contoso.*bmc\.any.*known are: hpe, dell"):
        power.attributes_of(resolve("static_high"), "", "Contoso")
    profile = resolve("static_high", static_high={"bmc": {"any": {"Mode": "Max"}}})
    assert power.attributes_of(profile, "", "Contoso") == {"Mode": "Max"}
    assert power.attributes_of(profile, "", "Dell Inc.") == {"Mode": "Max", "SysProfile": "PerfOptimized"}


def test_an_attribute_that_is_not_there():
    with pytest.raises(BenchError) as caught:
        power.bios_plan({"PowerRegulatr": "x", "PowerProfile": "y", "Zzz": 1}, CURRENT, {})
    message = caught.value.message
    assert "no attribute PowerRegulatr, PowerProfile, Zzz" in message
    assert "Similar to PowerRegulatr are: PowerRegulator" in message
    assert "Similar to PowerProfile are: " in message
    assert "WorkloadProfile" in message
    assert "Nothing is similar to Zzz" in message
    assert caught.value.code == "bmc_unknown_attribute"


def test_a_plan_writes_what_differs():
    plan = power.bios_plan({**WANTED, "Retries": "3"}, CURRENT, CURRENT)
    assert plan["change"] == WANTED
    assert plan["withdraw"] == {}
    assert plan["wanted"]["Retries"] == 3, "in the type that the firmware has"


def test_what_waits_already_is_not_written_again():
    plan = power.bios_plan(WANTED, CURRENT, WANTED)
    assert (plan["change"], plan["withdraw"]) == ({}, {})
    assert plan["differs"] == ["PowerRegulator"], "but it is recorded: the next reset changes it"


def test_what_waits_and_is_not_wanted_is_withdrawn():
    back = {"PowerRegulator": "DynamicPowerSavings"}
    plan = power.bios_plan(back, CURRENT, WANTED)
    assert (plan["change"], plan["withdraw"]) == ({}, back)


def test_pending_until_reset_is_not_in_force():
    plan = power.bios_plan(WANTED, CURRENT, {})
    state = power.bios_state(plan, CURRENT, WANTED)
    assert state["effective"] is False
    assert state["needs_reset"] is True
    assert "PowerRegulator is DynamicPowerSavings and will be StaticHighPerf" in state["reason"]
    assert power.bios_state(plan, {**CURRENT, **WANTED}, {**CURRENT, **WANTED}) == {
        "wanted": WANTED, "found": WANTED, "pending": {}, "refused": [],
        "needs_reset": False, "effective": True, "reason": None,
    }  # fmt: skip


def test_what_the_firmware_takes_and_keeps():
    plan = power.bios_plan(WANTED, CURRENT, {})
    state = power.bios_state(plan, CURRENT, CURRENT)
    assert (state["effective"], state["needs_reset"], state["refused"]) == (False, False, ["PowerRegulator"])
    assert "did not take PowerRegulator=StaticHighPerf" in state["reason"]


def test_in_force_and_leaving_with_the_next_reset():
    plan = power.bios_plan({"Retries": 3}, CURRENT, {})
    state = power.bios_state(plan, CURRENT, {"Retries": 5})
    assert state["effective"] is True
    assert state["pending"] == {"Retries": 5}
    assert "still pending: Retries is 3 and will be 5" in state["reason"]


def test_the_first_value_is_recorded_and_comes_back():
    plan = power.bios_plan(WANTED, CURRENT, {})
    record = power.bios_record({}, plan, "192.0.2.1", "1")
    assert record["attributes"] == {"PowerRegulator": {"found": "DynamicPowerSavings", "set": "StaticHighPerf"}}
    # another profile: the first value stays, and what is not named goes back to it
    now = {**CURRENT, **WANTED}
    wanted = power.with_record(record, {"WorkloadProfile": "Custom"})
    assert wanted == {"PowerRegulator": "DynamicPowerSavings", "WorkloadProfile": "Custom"}
    record = power.bios_record(record, power.bios_plan(wanted, now, now), "192.0.2.1", "1")
    assert record["attributes"] == {
        "PowerRegulator": {"found": "DynamicPowerSavings", "set": "DynamicPowerSavings"},
        "WorkloadProfile": {"found": "GeneralPowerEfficientCompute", "set": "Custom"},
    }
    later = {**now, "WorkloadProfile": "Custom"}
    back = power.bios_restore(record, later, later, False)
    assert back["conflicts"] == ["PowerRegulator is StaticHighPerf, not DynamicPowerSavings as it was set "
                                 "(found first: DynamicPowerSavings)"]  # fmt: skip
    pending = {**later, "PowerRegulator": "DynamicPowerSavings"}
    assert power.bios_restore(record, later, pending, False) == {
        "wanted": {n: CURRENT[n] for n in ("PowerRegulator", "WorkloadProfile")}, "conflicts": [],
    }  # fmt: skip


def test_what_someone_else_set_is_left_unless_forced():
    record = power.bios_record({}, power.bios_plan(WANTED, CURRENT, {}), "192.0.2.1", "1")
    other = {**CURRENT, "PowerRegulator": "OsControl"}
    back = power.bios_restore(record, other, {}, False)
    assert back["wanted"] == {}
    assert "PowerRegulator is OsControl, not StaticHighPerf as it was set" in back["conflicts"][0]
    assert power.bios_restore(record, other, {}, True)["wanted"] == {"PowerRegulator": "DynamicPowerSavings"}


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("HTTP Error 401 on GET request to 'https://h/redfish/v1/Systems', extended message: ''", "bmc_credentials"),
        ("Status code was 401 and not [200]: HTTP Error 401: UNAUTHORIZED", "bmc_credentials"),
        ("URL Error on GET request to 'https://h/redfish/v1/': 'timed out'", "bmc_timeout"),
        ("Failed GET request to 'https://h/': 'The read operation timed out'", "bmc_timeout"),
        ("Timed out after 30 second(s).", "bmc_timeout"),
        ("URL Error on GET request to 'https://h/': '[Errno 111] Connection refused'", "bmc_gone"),
        ("Failed GET request to 'x': 'Remote end closed connection without response'", "bmc_gone"),
        ("URL Error on GET request to 'x': '[SSL: CERTIFICATE_VERIFY_FAILED] self-signed'", "bmc_certificate"),
        ("URL Error on GET request to 'x': '[Errno -2] Name or service not known'", "bmc_unknown_host"),
        ("System resource 7 not found", "bmc_no_system"),
        ("Key Bios not found", "bmc_no_bios"),
        ("something else", "bmc_error"),
    ],
)
def test_what_an_error_means(message, code):
    answer = power.explain(message, "192.0.2.1")
    assert answer["code"] == code
    assert message in answer["msg"]
    assert "192.0.2.1" in answer["msg"]


# -- verdict ------------------------------------------------------------------------------------------------------

NO_LEVER = {"wanted": {"governor": "performance"}, "found": {}, "effective": False, "no_lever": "no cpufreq here"}
IN_FORCE = {"wanted": WANTED, "found": WANTED, "effective": True, "reason": None}
PENDING = {"wanted": WANTED, "found": {}, "effective": False, "reason": "pending until the server is reset"}
UNTOLD = {"wanted": {"governor": "performance"}, "found": {}, "effective": None, "reason": None}


@pytest.mark.parametrize(
    ("backends", "effective", "skipped"),
    [
        ({"os": IN_FORCE}, True, False),
        ({"os": UNTOLD}, None, False),
        ({"os": UNTOLD, "bmc": IN_FORCE}, None, False),
        ({"os": UNTOLD, "bmc": PENDING}, False, False),
        ({"os": NO_LEVER}, None, True),
        ({"os": NO_LEVER, "bmc": IN_FORCE}, True, False),
        ({"os": NO_LEVER, "bmc": PENDING}, False, False),
        ({"bmc": {**IN_FORCE, "emulated": "Sushy Emulator"}}, None, False),
        ({"bmc": {**PENDING, "emulated": "Sushy Emulator"}}, False, False),
        ({"bmc": {**IN_FORCE, "wanted": {}, "emulated": "Sushy Emulator"}}, True, False),
    ],
)
def test_the_verdict_over_backends(backends, effective, skipped):
    verdict = power.verdict("static_high", backends, "dut")
    assert verdict.effective is effective
    assert bool(verdict.no_lever) is skipped
    if skipped:
        assert verdict.no_lever == "dut: no lever for power profile static_high: no cpufreq here"


def test_an_emulated_bmc_is_no_proof_of_a_cpu():
    emulated = power.emulator_of("Sushy Emulator")
    assert [power.emulator_of(name) for name in ("HPE", "Dell Inc.", "")] == [None] * 3
    read = power.verdict("static_high", {"bmc": {**IN_FORCE, "emulated": emulated}}, "dut").as_dict()
    # nor are CPUs that are fast by themselves
    trial = power.trial_power("static_high", {"dut": read}, {"dut": SAMPLE})
    assert (trial["effective"], trial["hosts"]["dut"]["emulated"]) == (None, "Sushy Emulator")
    assert "emulated BMC (Sushy Emulator), which sets no CPU" in trial["reason"]


@pytest.mark.parametrize(
    ("wanted", "sample", "effective", "said"),
    [
        ({"PowerRegulator": "StaticHighPerf"}, "fast", True, "seen under load: CPUs ran at 2990 MHz"),
        ({"PowerRegulator": "StaticHighPerf"}, "slow", False, "800 MHz, below half of the 3,000 MHz"),
        ({"PowerRegulator": "StaticHighPerf"}, None, True, "read back as asked, and not seen under load"),
        ({"PowerRegulator": "DynamicPowerSavings"}, "slow", True, None),
        ({}, "slow", True, None),
    ],
)
def test_what_firmware_holds_is_looked_at_under_load(wanted, sample, effective, said):
    samples = {"fast": SAMPLE, "slow": {**SAMPLE, "frequency": {"mean_mhz": 800.0}}}
    state = {"wanted": wanted, "found": wanted, "effective": True, "reason": None}
    read = power.verdict("static_high", {"bmc": state}, "dut").as_dict()
    trial = power.trial_power("static_high", {"dut": read}, {"dut": samples.get(sample)})
    assert trial["effective"] is effective
    assert (said in trial["reason"]) if said else trial["reason"] is None


def test_the_answer_of_the_operating_system():
    setting = {"reason": "no driver scales here", "remedy": "the lever is the hypervisor's power policy"}
    answer = {
        "unsupported": True,
        "settings": {"governor": setting, "min_frequency": setting},
        "power": {"wanted": {"governor": "performance"}, "found": {}, "effective": False, "reason": "absent"},
    }
    assert power.os_state(answer)["no_lever"] == "no driver scales here. the lever is the hypervisor's power policy"
    assert "no_lever" not in power.os_state({**answer, "unsupported": False})


def test_a_trial_tells_of_all_hosts():
    hosts = {
        "client": {"profile": "p", "wanted": {}, "found": {}, "effective": True, "reason": None, "no_lever": None},
        "dut": {"profile": "p", "wanted": {}, "found": {}, "effective": False, "reason": "os: kept", "no_lever": None},
    }
    trial = power.trial_power("p", hosts, {})
    assert (trial["profile"], trial["effective"], trial["reason"]) == ("p", False, "dut: os: kept")
    assert set(trial["hosts"]["dut"]) == {"profile", "wanted", "found", "effective", "reason", "emulated", "under_load"}
    assert power.trial_power(None, {}, {}) is None
    assert power.trial_power("p", {"dut": {}}, {})["effective"] is None


FREQUENCY = {"mean_mhz": 2990.0, "min_mhz": 2900.0, "max_mhz": 3000.0}
SAMPLE = {
    "source": "msr", "frequency": FREQUENCY,
    "settings": {"min_khz": {"3000000": "policy0-1"}}, "settings_changed": False,
}  # fmt: skip


@pytest.mark.parametrize(
    ("sample", "effective", "said"),
    [
        (SAMPLE, True, "seen under load: CPUs ran at 2990 MHz"),
        ({**SAMPLE, "frequency": {"mean_mhz": 800.0}}, False, "800 MHz, below half of the 3,000 MHz"),
        ({**SAMPLE, "settings_changed": True}, False, "the settings changed while traffic ran"),
        ({**SAMPLE, "source": "nominal"}, None, None),
        ({**SAMPLE, "frequency": None}, None, None),
        ({}, None, None),
    ],
)
def test_a_reading_under_load_decides_what_reading_back_cannot(sample, effective, said):
    read = {"wanted": {"os": {"min_frequency": "max"}}, "found": {}, "effective": None, "reason": None}
    host = power.trial_power("static_high", {"dut": read}, {"dut": sample})["hosts"]["dut"]
    assert host["effective"] is effective
    assert (host["reason"] is None) if said is None else (said in host["reason"])
    assert host["under_load"]["frequency"] == sample.get("frequency")
