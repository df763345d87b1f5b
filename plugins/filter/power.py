# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role power_profile's way to what ``_bench/power.py`` knows."""

from __future__ import annotations

import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._bench import power
from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError


def _verdict(backends: t.Mapping[str, t.Mapping[str, t.Any]], profile: str, host: str) -> dict[str, t.Any]:
    return power.verdict(profile, backends, host).as_dict()


#: What the role may ask for, by the name it uses.
_QUESTIONS: dict[str, t.Callable[..., t.Any]] = {
    "resolve": power.resolve,
    "os_options": power.os_options,
    "os_state": power.os_state,
    "attributes": power.attributes_of,
    "emulator": power.emulator_of,
    "plan": power.bios_plan,
    "state": power.bios_state,
    "record": power.bios_record,
    "with_record": power.with_record,
    "restore": power.bios_restore,
    "explain": power.explain,
    "verdict": _verdict,
}


def _plain(value: t.Any) -> t.Any:
    """Ansible's containers resolve their templates when they are read; what is pure gets plain ones."""
    if isinstance(value, t.Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, (list, tuple)) else value


def power_profile(value: t.Any, question: str, *args: t.Any) -> t.Any:
    """Answer a question of the role; an error of ours is an answer too, under ``error``."""
    try:
        return _QUESTIONS[question](_plain(value), *map(_plain, args))
    except BenchError as error:
        return {"error": error.as_result()["msg"]}


class FilterModule:
    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"power_profile": power_profile}
