# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import time

import pytest
from ansible.errors import AnsibleActionFail

from ansible_collections.fastpath.bench.plugins.action import clock_offset


class Probing(clock_offset.ActionModule):
    """The plugin with a target whose clock is ahead, reached after the given delays."""

    def __init__(self, answers, ahead: float = 0.0) -> None:
        self.answers = list(answers)
        self.ahead = ahead
        self.commands: list[str] = []

    def _low_level_execute_command(self, command, **_options):
        self.commands.append(command)
        answer = self.answers.pop(0)
        if isinstance(answer, dict):
            return {"rc": 0, "stdout": "", "stderr": "", **answer}
        time.sleep(answer / 2)
        stamp = f"{time.time() + self.ahead:.9f}\n"
        time.sleep(answer / 2)
        return {"rc": 0, "stdout": stamp, "stderr": ""}


@pytest.mark.parametrize("ahead", [0.0, 3600.5, -0.25])
def test_shortest_round_trip_counts(ahead):
    plugin = Probing([0.05, 0.01, 0.03], ahead)
    probes = [plugin._probe() for _turn in range(3)]
    best = clock_offset.best_probe(probes)
    assert best is probes[1]
    assert 0.009 < best["round_trip_s"] < 0.05
    assert best["offset_s"] == pytest.approx(ahead, abs=best["round_trip_s"] / 2)
    assert set(plugin.commands) == {"date +%s.%N"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1796037190.229013999\n", 1796037190.229014),
        ("1796037190.229013999\r\n", 1796037190.229014),  # through a terminal
        ("Welcome to dut1\n1796037190.000000001\n", 1796037190.0),  # a greeting of the login shell
        ("1796037190.%N\n", None),
        ("1796037190.\n", None),  # busybox
        ("1796037190\n", None),
        ("", None),
    ],
)
def test_stamp(text, expected):
    assert clock_offset.parse_stamp(text) == expected


def test_date_without_nanoseconds_is_said():
    with pytest.raises(AnsibleActionFail, match="GNU coreutils"):
        Probing([{"stdout": "1796037190.%N\n"}])._probe()


def test_failing_command_is_quoted():
    with pytest.raises(AnsibleActionFail, match="status 127: sh: date: not found"):
        Probing([{"rc": 127, "stderr": "sh: date: not found\n"}])._probe()
