# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host did under load decides whether its power profile took effect."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.fastpath.bench.plugins.module_utils._bench.power import trial_power
from ansible_collections.fastpath.bench.plugins.module_utils._bench.power_proof import proven

FAST = {"governor": "performance", "min_frequency": "max", "max_exit_latency_us": 5}
SEEN = {
    "driver": "intel_pstate (active)",
    "source": "msr",
    "frequency": {"base_mhz": 2600.0, "mean_mhz": 3400.0, "min_mhz": 3300.0, "max_mhz": 3900.0},
    "idle": {"POLL": 0.0, "C1": 0.4, "C6": 0.0},
    "throttle": {"core": 0, "package": 0},
    "energy": None,
    "settings": {
        "governor": {"performance": "policy0-3"},
        "max_khz": {"3900000": "policy0-3"},
        "idle_states_off": {"C1E, C6": "cpu0-3"},
    },
    "settings_changed": False,
}
VM = {**SEEN, "driver": None, "source": "nominal", "throttle": None}


def judged(
    wanted: dict[str, t.Any], seen: dict[str, t.Any] | None, effective: bool | None = None
) -> tuple[bool | None, str | None]:
    state = {"profile": "p", "wanted": {"os": wanted}, "found": {}, "effective": effective, "reason": "os: before"}
    power = trial_power("p", {"dut": state}, {"dut": seen})
    assert power is not None
    assert power["hosts"]["dut"]["effective"] is power["effective"]
    return power["effective"], power["reason"]


def test_fast_and_seen_to_be_fast() -> None:
    effective, reason = judged(FAST, SEEN)
    assert effective is True
    assert reason == "dut: seen under load: CPUs ran at 3400 MHz on average; idle C1 40%"


@pytest.mark.parametrize(
    ("wanted", "change", "says"),
    [
        (FAST, {"settings_changed": True}, "changed while traffic ran"),
        (FAST, {"settings": {"governor": {"performance": "policy0", "powersave": "policy1"}}}, "powersave on policy1"),
        (FAST, {"throttle": {"core": 7, "package": 0}}, "core 7 times"),
        (FAST, {"frequency": {**SEEN["frequency"], "mean_mhz": 1200.0}}, "1,200 MHz, below the 2,600 MHz"),
        (
            FAST,
            {"source": "cpufreq", "frequency": {**SEEN["frequency"], "max_mhz": 1300.0}},
            "1,300 MHz, below the 2,600 MHz",
        ),
        (FAST, {"idle": {"C1": 0.2, "C6": 0.3}}, "30.0% of the time in idle state C6"),
        ({"boost": False}, {}, "3900 MHz, above the nominal"),
        ({"max_frequency": "2000000"}, {"settings": {"max_khz": {"2000000": "policy0-3"}}}, "above the highest"),
        (
            {"energy_performance_preference": "power"},
            {"settings": {"energy_performance_preference": {"performance": "policy0-3"}}},
            "energy_performance_preference was performance",
        ),
    ],
)
@pytest.mark.parametrize("effective", [None, True])
def test_what_speaks_against_it(
    wanted: dict[str, t.Any], change: dict[str, t.Any], says: str, effective: bool | None
) -> None:
    found, reason = judged(wanted, {**SEEN, **change}, effective)
    assert found is False
    assert says in str(reason)


@pytest.mark.parametrize(
    ("wanted", "seen"),
    [
        (FAST, None),
        (FAST, VM),
        (FAST, {**SEEN, "frequency": {**SEEN["frequency"], "base_mhz": None}}),
        (FAST, {**SEEN, "settings_changed": None}),
        ({"governor": "powersave"}, {**VM, "settings": {}}),
    ],
)
def test_no_proof_leaves_it_open(wanted: dict[str, t.Any], seen: dict[str, t.Any] | None) -> None:
    assert judged(wanted, seen) == (None, "dut: os: before")


def test_an_idle_cpu_of_the_past_is_no_slow_cpu() -> None:
    frequency = {**SEEN["frequency"], "mean_mhz": 1500.0, "max_mhz": 3000.0}
    assert judged(FAST, {**SEEN, "source": "cpufreq", "frequency": frequency})[0] is True


def test_a_limit_below_nominal_is_what_was_asked_for() -> None:
    frequency = {**SEEN["frequency"], "mean_mhz": 1990.0, "max_mhz": 2000.0}
    settings = {"governor": {"performance": "policy0-3"}, "max_khz": {"2000000": "policy0-3"}}
    seen = {**SEEN, "frequency": frequency, "settings": settings}
    assert judged({"governor": "performance", "max_frequency": "2000000"}, seen)[0] is True


@pytest.mark.parametrize(("mhz", "effective"), [(3800.0, True), (3000.0, None), (1900.0, False)])
def test_without_a_nominal_frequency_only_the_extremes_tell(mhz: float, effective: bool | None) -> None:
    """All CPUs at once do not reach the boost of one, which is what the highest frequency is."""
    frequency = {"base_mhz": None, "mean_mhz": mhz, "min_mhz": mhz, "max_mhz": mhz}
    assert judged(FAST, {**SEEN, "frequency": frequency})[0] is effective


def test_what_was_not_had_stays_so() -> None:
    assert judged(FAST, SEEN, effective=False) == (False, "dut: os: before")


def test_nothing_asked_of_the_system_needs_no_proof() -> None:
    read = {"wanted": {"os": {}, "bmc": {"A": 1}}, "effective": True, "reason": None}
    found = proven(read, {**SEEN, "settings_changed": True})
    assert found.pop("under_load") == {"frequency": SEEN["frequency"], "source": "msr", "settings_changed": True}
    assert found == read
