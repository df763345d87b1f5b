# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller's half of ``clock_offset``: only it can tell how long a question was under way."""

from __future__ import annotations

import re
import time
import typing as t

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

_STAMP = re.compile(r"^(\d{9,11})\.(\d{9})$", re.MULTILINE)
_MOST_PROBES = 100


def parse_stamp(text: str) -> float | None:
    """Seconds from the output of ``date +%s.%N``; None when this host's ``date`` does not know nanoseconds."""
    match = _STAMP.search(text.replace("\r", ""))
    return int(match[1]) + int(match[2]) / 1e9 if match else None


def best_probe(probes: list[dict[str, float]]) -> dict[str, float]:
    """The probe with the shortest round trip: the clock was read somewhere within it, so it is the surest."""
    return min(probes, key=lambda probe: probe["round_trip_s"])


class ActionModule(ActionBase):
    """Reads the target's clock several times over the connection."""

    _VALID_ARGS = frozenset(("probes",))
    _requires_connection = True

    def run(self, tmp: str | None = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        result: dict[str, t.Any] = super().run(tmp, task_vars)
        del tmp
        _checked, arguments = self.validate_argument_spec({"probes": {"type": "int", "default": 5}})
        count = arguments["probes"]
        if not 1 <= count <= _MOST_PROBES:
            raise AnsibleActionFail(f"option probes: {count} is not possible. Use 1 to {_MOST_PROBES}.")
        probes = [self._probe() for _turn in range(count)]
        best = best_probe(probes)
        result.update(
            changed=False,
            offset_s=round(best["offset_s"], 6),
            error_s=round(best["round_trip_s"] / 2, 6),
            measured=round(best["measured"], 6),
            probes=[{name: round(value, 6) for name, value in probe.items()} for probe in probes],
        )
        return result

    def _probe(self) -> dict[str, float]:
        # The wall clock could be set within the round trip, so its length comes from the monotonic clock.
        wall, before = time.time(), time.monotonic()
        answer = self._low_level_execute_command("date +%s.%N", sudoable=False)
        round_trip = time.monotonic() - before
        if answer["rc"]:
            said = (answer.get("stderr") or answer.get("stdout") or "").strip()
            raise AnsibleActionFail(f"'date +%s.%N' failed on the target with status {answer['rc']}: {said}")
        stamp = parse_stamp(answer["stdout"])
        if stamp is None:
            raise AnsibleActionFail(
                f"'date +%s.%N' printed {answer['stdout'].strip()[:100]!r} on the target. "
                "A date that knows nanoseconds (GNU coreutils) is needed."
            )
        return {"offset_s": stamp - (wall + round_trip / 2), "round_trip_s": round_trip, "measured": wall}
