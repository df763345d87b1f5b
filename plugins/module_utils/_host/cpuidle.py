# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How deep idle CPUs may sleep (C-states)."""

from __future__ import annotations

import dataclasses
import os
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._host.access import Access, NotThere
from ansible_collections.fastpath.bench.plugins.module_utils._host.cpu_knob import (
    BASE,
    CpuKnob,
    number_in,
    numbered,
)
from ansible_collections.fastpath.bench.plugins.module_utils._host.knob import Value, register


@dataclasses.dataclass(frozen=True)
class IdleState:
    """One state that a CPU can sleep in: its folder, its name, and how long waking takes."""

    folder: str
    name: str
    exit_latency_us: int


@dataclasses.dataclass(frozen=True)
class IdleWish:
    """Which states are off: those of these names, or those that take longer to leave. All others are on."""

    names: frozenset[str] | None = None
    max_exit_latency_us: int | None = None

    def is_off(self, state: IdleState) -> bool:
        if self.names is not None:
            return state.name.lower() in self.names or state.folder in self.names
        return self.max_exit_latency_us is not None and state.exit_latency_us > self.max_exit_latency_us


@register
class IdleStates(CpuKnob):
    """The switches of one CPU's states: folder to whether it is off."""

    kind = "cpuidle.disable"
    key_form = r"cpu\d+"

    def __init__(self, access: Access, key: str) -> None:
        super().__init__(access, key)
        self._states: list[IdleState] | None = None

    @property
    def folder(self) -> str:
        return os.path.join(self.access.sys, BASE, self.key, "cpuidle")

    @property
    def files(self) -> tuple[str, ...]:
        return tuple(f"{state}/disable" for state in self._folders()[:1])

    def _folders(self) -> list[str]:
        return numbered(self.access, self.folder, "state")

    def states(self) -> list[IdleState]:
        """They are fixed from the boot on."""
        if self._states is None:
            self._states = [
                IdleState(name, self.text(f"{name}/name"), number_in(self.access, f"{self.folder}/{name}/latency"))
                for name in self._folders()
            ]
        return self._states

    def read(self) -> Value:
        folders = self._folders()
        if not folders:
            raise NotThere("this CPU has no idle states", where=self.key)
        return {name: self.text(f"{name}/disable") != "0" for name in folders}

    def write(self, value: Value) -> None:
        now = self.read()
        for name, off in value.items():
            if now.get(name) != off:
                self.put(f"{name}/disable", "1" if off else "0")

    def resolve(self, current: Value, wish: t.Any) -> Value:
        return {state.folder: wish.is_off(state) for state in self.states()}


def cpus_with_states(access: Access) -> list[str]:
    base = os.path.join(access.sys, BASE)
    return [name for name in numbered(access, base, "cpu") if access.list_dir(os.path.join(base, name, "cpuidle"))]
