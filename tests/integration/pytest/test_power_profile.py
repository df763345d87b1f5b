# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role power_profile against a BMC: sushy-tools' emulator, see ../redfish/emulator.py."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import time

import pytest
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[3]
PLAYBOOK = pathlib.Path(sys.executable).with_name("ansible-playbook")
sys.path.insert(0, str(ROOT / "tests" / "integration" / "redfish"))

pytest.importorskip("sushy_tools", reason="the BMC emulator sushy-tools is not installed")
from bmc import ATTRIBUTES, Bmc  # noqa: E402

pytestmark = pytest.mark.slow

STATIC = {"WorkloadProfile": "Custom", "PowerRegulator": "StaticHighPerf"}


@pytest.fixture
def bmc(tmp_path):
    made = Bmc(tmp_path / "bmc")
    made.start()
    try:
        yield made
    finally:
        made.stop()


def play(bmc, *steps, arguments=(), timeout=300, between=None):
    """Run the role once for each step (an entry point and variables); its output, and what each step told."""
    told = bmc.folder / "told"
    told.unlink(missing_ok=True)
    tasks = []
    for entry, variables in steps:
        tasks += [
            {
                "name": f"Role, {entry}",
                "ansible.builtin.include_role": {"name": "fastpath.bench.power_profile", "tasks_from": entry},
                "vars": variables,
            },
            {
                "name": "Tell",
                "ansible.builtin.copy": {
                    "content": "{{ power_profile_result | default({}) | to_json }}",
                    "dest": f"{told}{len(tasks) // 2}",
                    "mode": "0600",
                },
                "check_mode": False,
            },
        ]
    if between is not None:
        tasks.insert(2, between)
    variables = bmc.folder / "variables.json"
    variables.write_text(json.dumps(bmc.variables()))
    book = bmc.folder / "play.yml"
    book.write_text(yaml.safe_dump([{"hosts": "localhost", "gather_facts": False, "tasks": tasks}]))
    done = subprocess.run(
        [str(PLAYBOOK), str(book), "-e", f"@{variables}", *arguments],
        env={**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "HOME": str(bmc.folder)},
        check=False, capture_output=True, text=True, timeout=timeout,
    )  # fmt: skip
    done.output = " ".join((done.stdout + done.stderr).split())
    done.told = [json.loads(path.read_text()) for path in sorted(bmc.folder.glob("told*"))]
    return done


def test_a_profile_is_pending_until_the_reset_and_comes_back(bmc):
    done = play(bmc, ("main", {"power_profile_name": "static_high"}), arguments=("-vvv",))
    assert done.returncode == 0, done.output
    assert bmc.password not in done.stdout + done.stderr
    told = done.told[0]
    assert told["effective"] is False
    assert told["wanted"] == {"bmc": STATIC}
    assert "pending until the server is reset" in told["reason"]
    assert "power_profile_bmc_reset: true" in told["reason"]
    assert (bmc.read("current"), bmc.read("pending"), bmc.resets) == (ATTRIBUTES, STATIC, [])

    record = next((bmc.folder / "record").iterdir())
    assert bmc.password not in record.read_text()
    assert {n: a["found"] for n, a in json.loads(record.read_text())["attributes"].items()} == {
        name: ATTRIBUTES[name] for name in STATIC
    }

    done = play(
        bmc,
        ("main", {"power_profile_name": "static_high", "power_profile_bmc_reset": True}),
        ("main", {"power_profile_name": "static_high", "power_profile_bmc_reset": True}),
        ("restore", {"power_profile_restored": ["bmc"], "power_profile_bmc_reset": True}),
        arguments=("-vvv",),
        timeout=600,
    )
    assert done.returncode == 0, done.output
    assert bmc.password not in done.stdout + done.stderr
    assert [told["effective"] for told in done.told] == [True, True, True]
    assert bmc.resets == ["GracefulRestart"] * 2, "what is in force already needs no reset"
    assert (bmc.read("current"), bmc.read("pending")) == (ATTRIBUTES, {})
    assert list((bmc.folder / "record").iterdir()) == []


def test_a_change_that_waits_is_taken_back(bmc):
    done = play(
        bmc,
        ("main", {"power_profile_name": "static_high"}),
        ("restore", {"power_profile_restored": ["bmc"]}),
    )
    assert done.returncode == 0, done.output
    assert bmc.resets == []
    waiting = {name: value for name, value in bmc.read("pending").items() if value != ATTRIBUTES[name]}
    assert (bmc.read("current"), waiting) == (ATTRIBUTES, {})
    assert list((bmc.folder / "record").iterdir()) == []


def test_as_found_and_check_mode_touch_nothing(bmc):
    done = play(
        bmc,
        ("main", {"power_profile_name": "as_found"}),
        ("main", {"power_profile_name": "dynamic"}),
        arguments=("--check",),
    )
    assert done.returncode == 0, done.output
    assert done.told[0]["effective"] is True
    assert (bmc.read("current"), bmc.read("pending"), bmc.resets) == (ATTRIBUTES, {}, [])
    assert not (bmc.folder / "record").exists()


def test_wrong_credentials_are_told_and_not_tried_again(bmc):
    wrong = "not-the-password-of-it"
    done = play(
        bmc, ("main", {"power_profile_name": "dynamic"}),
        arguments=("-vvv", "-e", json.dumps({"power_profile_bmc_password": wrong})),
    )  # fmt: skip
    assert done.returncode != 0
    assert "the BMC refuses these credentials" in done.output
    assert "power_profile_bmc_password" in done.output
    assert wrong not in done.stdout + done.stderr
    refused = [line for line in (bmc.folder / "log").read_text().splitlines() if line.endswith(" 401 -")]
    assert len(refused) == 1


def test_attributes_that_are_not_there_or_stay(bmc):
    profiles = {"mine": {"bmc": {"any": {"PowerRegulater": "StaticHighPerf"}}}}
    done = play(bmc, ("main", {"power_profile_name": "mine", "power_profile_profiles": profiles}))
    assert done.returncode != 0
    assert "the server's firmware has no attribute PowerRegulater" in done.output
    assert "Similar to PowerRegulater are: PowerRegulator" in done.output
    assert bmc.read("pending") == {}

    bmc.write("settings", {"read_only": ["PowerRegulator"]})
    done = play(bmc, ("main", {"power_profile_name": "static_high"}))
    assert done.returncode == 0, done.output
    assert "the firmware did not take PowerRegulator=StaticHighPerf" in done.told[0]["reason"]
    done = play(bmc, ("main", {"power_profile_name": "static_high", "power_profile_strict": True}))
    assert done.returncode != 0
    assert "Power profile static_high is not in force" in done.output


def test_a_bmc_that_is_slow(bmc):
    bmc.write("settings", {"delay_s": 300})
    started = time.monotonic()
    done = play(
        bmc, ("main", {"power_profile_name": "dynamic"}),
        arguments=("-e", json.dumps({"power_profile_bmc_timeout_s": 2, "power_profile_bmc_tries": 2})),
    )  # fmt: skip
    assert done.returncode != 0
    assert "the BMC did not answer in time" in done.output
    assert time.monotonic() - started < 200


def test_a_bmc_that_goes_away_in_the_middle(bmc):
    # it takes what is written, and answers no more
    bmc.write("settings", {"delay_after_patch_s": 300})
    done = play(
        bmc, ("main", {"power_profile_name": "static_high"}),
        arguments=("-e", json.dumps({"power_profile_bmc_timeout_s": 3, "power_profile_bmc_tries": 1})),
    )  # fmt: skip
    assert done.returncode != 0
    assert "the BMC did not answer in time" in done.output
    assert bmc.read("pending") == STATIC
    record = next((bmc.folder / "record").iterdir())
    assert set(json.loads(record.read_text())["attributes"]) == set(STATIC)

    bmc.stop()
    done = play(
        bmc, ("restore", {"power_profile_restored": ["bmc"]}),
        arguments=("-e", json.dumps({"power_profile_bmc_timeout_s": 3, "power_profile_bmc_tries": 1})),
    )  # fmt: skip
    assert done.returncode != 0
    assert "the BMC is gone" in done.output
    assert record.exists()

    # and when it is back, so is what was found
    (bmc.folder / "wrote").unlink()
    bmc.write("settings", {})
    bmc.start()
    done = play(bmc, ("restore", {"power_profile_restored": ["bmc"]}))
    assert done.returncode == 0, done.output
    assert {**bmc.read("current"), **bmc.read("pending")} == ATTRIBUTES
    assert not record.exists()


def test_a_firmware_that_someone_else_changes_does_not_hold_any_more(bmc):
    variables = {"power_profile_name": "static_high", "power_profile_bmc_reset": True}
    bmc.write("current", {**ATTRIBUTES, **STATIC})
    done = play(bmc, ("main", variables), ("verify", variables))
    assert done.returncode == 0, done.output
    assert [told["effective"] for told in done.told] == [True, True]

    change = {
        "name": "Someone else",
        "ansible.builtin.copy": {
            "content": json.dumps({**ATTRIBUTES, **STATIC, "PowerRegulator": "OsControl"}),
            "dest": str(bmc.folder / "current.json"),
            "mode": "0600",
        },
    }
    done = play(bmc, ("main", variables), ("verify", variables), between=change)
    assert done.returncode == 0, done.output
    assert [told["effective"] for told in done.told] == [True, False]
    assert done.told[1]["reason"] == "bmc: someone else changed PowerRegulator since it was set"


def test_an_emulator_is_told_from_a_server(bmc):
    (bmc.folder / "manufacturer").unlink()
    variables = {"power_profile_name": "static_high", "power_profile_bmc_reset": True}
    done = play(bmc, ("main", variables))
    assert done.returncode != 0
    assert "names no BIOS attributes for a server of Sushy Emulator" in done.output

    done = play(bmc, ("main", {**variables, "power_profile_bmc_vendor": "hpe"}))
    assert done.returncode == 0, done.output
    told = done.told[0]
    assert told["found"] == {"bmc": STATIC}
    assert (told["effective"], told["emulated"]) == (None, "Sushy Emulator")
    assert "an emulated BMC (Sushy Emulator), which sets no CPU" in told["reason"]


def test_what_someone_else_set_is_left(bmc):
    done = play(bmc, ("main", {"power_profile_name": "static_high"}))
    assert done.returncode == 0, done.output
    bmc.write("pending", {**STATIC, "PowerRegulator": "OsControl"})
    done = play(bmc, ("restore", {"power_profile_restored": ["bmc"]}))
    assert done.returncode != 0
    assert "someone else changed the firmware since: PowerRegulator is OsControl" in done.output
    assert bmc.read("pending")["PowerRegulator"] == "OsControl"
    done = play(bmc, ("restore", {"power_profile_restored": ["bmc"], "power_profile_force": True}))
    assert done.returncode == 0, done.output
    assert {**bmc.read("current"), **bmc.read("pending")} == ATTRIBUTES
