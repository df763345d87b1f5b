# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whatever of the CPUs' power is changed, fails or is killed: after the restore it is as before."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import tempfile
import typing as t

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._host.cpu_power import CpuPower
from ansible_collections.fastpath.bench.plugins.module_utils._host.journal import Journal, Surroundings
from ansible_collections.fastpath.bench.plugins.module_utils._host.restore import restore
from ansible_collections.fastpath.bench.tests.support.fake_cpus import GOVERNORS, FakeCpus, Service
from ansible_collections.fastpath.bench.tests.unit.fake_kernel import Killed

HERE = Surroundings("boot-1", "cookie:1")
#: Memory, when there is: the journal flushes each write, which a disk makes slow.
FOLDER = "/dev/shm" if os.path.isdir("/dev/shm") else None
FREQUENCY = st.one_of(st.none(), st.sampled_from(["min", "max", "30%", "75%", "1200000", "2600000", "3500000"]))
OPTIONS = st.fixed_dictionaries(
    {
        "governor": st.sampled_from(
            [None, "performance", "powersave", "userspace", "ondemand", "schedutil", "conservative"]
        ),
        "energy_performance_preference": st.sampled_from([None, "performance", "balance_power", "power"]),
        "boost": st.sampled_from([None, True, False]),
        "min_frequency": FREQUENCY,
        "max_frequency": FREQUENCY,
        "max_exit_latency_us": st.sampled_from([None, 0, 5, 200]),
        "uncore_min_frequency": st.sampled_from([None, "min", "max", "1600000"]),
        "uncore_max_frequency": st.sampled_from([None, "max", "50%"]),
        "strict": st.booleans(),
        "stop_owners": st.booleans(),
    }
)
COUNT = st.one_of(st.none(), st.integers(0, 20))
FAULTS = st.dictionaries(
    st.sampled_from(["scaling_governor", "policy1/", "_preference", "no_turbo|boost", "state2/disable", "max_freq"]),
    st.sampled_from([errno.EPERM, errno.EBUSY, errno.EINVAL, errno.EIO, 0]),
    max_size=2,
)
#: One call: options, at which write it fails, at which write or note of the journal it is killed, what is refused.
CALLS = st.tuples(OPTIONS, COUNT, COUNT, COUNT, st.booleans(), FAULTS)
KILLS = st.lists(st.tuples(COUNT, COUNT, st.booleans()), max_size=3)
MACHINES = st.builds(
    dict,
    driver=st.sampled_from(sorted(GOVERNORS)),
    cpus=st.just(3),
    per_policy=st.sampled_from([1, 2]),
    uncore=st.sampled_from([(), ("package_00_die_00",)]),
    policy_boost=st.booleans(),
    boost_permitted=st.sampled_from([True, True, False]),
    old_kernel=st.booleans(),
    step_khz=st.sampled_from([1, 1, 100_000]),
)
#: What the machine's owner had set before, and the governor of a service that runs.
FOUND = st.tuples(OPTIONS, st.sampled_from([None, None, "performance", "powersave"]))


class Dying(Journal):
    """A journal whose process dies at the n-th of its points."""

    def __init__(self, folder: str, die_at: int | None, part: str = "") -> None:
        super().__init__(folder, owner="run", part=part, surroundings=HERE, hook=self._point)
        self.left = die_at

    def _point(self, point: str) -> None:
        if self.left is None:
            return
        self.left -= 1
        if self.left < 0:
            raise Killed


def arm(cpus: FakeCpus, fail: int | None, kill: int | None, after_effect: bool) -> None:
    cpus.fail_in, cpus.kill_in, cpus.kill_after_effect = fail, kill, after_effect


def initial(machine: dict[str, t.Any], found: tuple[dict[str, t.Any], str | None], folder: str) -> FakeCpus:
    """A machine in some state that its owner made, with a service that may run."""
    cpus = FakeCpus(**machine)
    own = os.path.join(folder, "owner")
    options, governor = found
    with contextlib.suppress(BenchError):
        CpuPower(cpus, {**options, "strict": False}, Journal(own, surroundings=HERE)).run(check_mode=False)
    shutil.rmtree(own, ignore_errors=True)
    for name in cpus.tunables:
        cpus.tunables[name] = {key: str(int(text) + 1) for key, text in cpus.tunables[name].items()}
    if governor is not None:
        cpus.services["tuned.service"] = Service(governor=governor)
        cpus.call(["systemctl", "start", "tuned.service"])
    return cpus


@example(
    # A service puts back at its end what it found: that is not what was found by us.
    machine={"driver": "intel_pstate"},
    found=({"governor": "powersave", "stop_owners": False}, "performance"),
    calls=[({"governor": "powersave", "stop_owners": True, "strict": True}, None, None, None, False, {})],
    kills=[],
)
@settings(max_examples=40, deadline=None)
@given(machine=MACHINES, found=FOUND, calls=st.lists(CALLS, min_size=1, max_size=4), kills=KILLS)
def test_state_before_is_state_after(machine: t.Any, found: t.Any, calls: t.Any, kills: t.Any) -> None:
    check(machine, found, calls, kills)


@pytest.mark.slow
@settings(max_examples=1000, deadline=None)
@given(machine=MACHINES, found=FOUND, calls=st.lists(CALLS, min_size=1, max_size=6), kills=KILLS)
def test_state_before_is_state_after_in_many_more_cases(
    machine: t.Any, found: t.Any, calls: t.Any, kills: t.Any
) -> None:
    check(machine, found, calls, kills)


def check(machine: t.Any, found: t.Any, calls: t.Any, kills: t.Any) -> None:
    with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
        cpus = initial(machine, found, folder)
        before = cpus.picture()
        place = os.path.join(folder, "journal")
        for number, (options, fail, kill, die, after_effect, faults) in enumerate(calls):
            arm(cpus, fail, kill, after_effect)
            cpus.faults = faults
            was = cpus.picture()
            try:
                result = CpuPower(cpus, options, Dying(place, die, f"part{number % 2}")).run(check_mode=False)
                honest(cpus, result)
            except BenchError as err:
                if err.code != "half_applied":
                    assert cpus.picture() == was, "a call that fails leaves nothing half applied"
            except Killed:
                pass
            cpus.faults = {}
        for kill, die, after_effect in kills:
            arm(cpus, None, kill, after_effect)
            with contextlib.suppress(Killed):
                restore(Dying(place, die), cpus)
        arm(cpus, None, None, False)
        result = restore(Journal(place, owner="run", surroundings=HERE), cpus)
        assert result.conflicts == []
        assert cpus.picture() == before
        assert not restore(Journal(place, owner="run", surroundings=HERE), cpus).changes


def honest(cpus: FakeCpus, result: dict[str, t.Any]) -> None:
    """What is called done is so."""
    settled = {name for name, row in result["settings"].items() if row["status"] in ("done", "already")}
    assert not {row["status"] for row in result["settings"].values()} & {"would_change", None}
    wanted = {name: row["wanted"] for name, row in result["settings"].items()}
    for number, policy in cpus.policies.items():
        if "governor" in settled:
            assert policy.governor == wanted["governor"], number
        if "energy_performance_preference" in settled:
            assert policy.epp == wanted["energy_performance_preference"], number
    if "boost" in settled:
        assert cpus.boost == wanted["boost"]


@settings(max_examples=20, deadline=None)
@given(machine=MACHINES, found=FOUND, options=OPTIONS)
def test_a_second_call_changes_nothing_and_check_mode_tells_the_truth(
    machine: t.Any, found: t.Any, options: t.Any
) -> None:
    with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
        cpus = initial(machine, found, folder)
        place = os.path.join(folder, "journal")

        def run(check_mode: bool) -> dict[str, t.Any]:
            return CpuPower(cpus, options, Journal(place, surroundings=HERE)).run(check_mode=check_mode)

        before = cpus.picture()
        try:
            told = run(True)
            assert cpus.picture() == before
            done = run(False)
        except BenchError:
            assert cpus.picture() == before
            return
        # Only a write shows what is refused.
        missed = {row["status"] for row in done["settings"].values()} & {"refused", "unsupported_value", "ignored"}
        if not missed:
            assert told["changed"] == done["changed"]
            assert not run(False)["changed"]
