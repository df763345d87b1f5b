# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What ethtool sets as named numbers and switches: ring sizes, coalescing, flow control.

A driver has some of them only; what it has not is ``n/a``. ethtool's text is
read, not its JSON: 6.1 has it for flow control alone, and says ``true`` there
whatever the device does.
"""

from __future__ import annotations

import dataclasses
import re
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError, ParseError
from ansible_collections.fastpath.bench.plugins.module_utils._host.access import NotSupported, Refused
from ansible_collections.fastpath.bench.plugins.module_utils._host.device import DeviceKnob
from ansible_collections.fastpath.bench.plugins.module_utils._host.irq import IrqAffinity
from ansible_collections.fastpath.bench.plugins.module_utils._host.knob import (
    RANK_FEATURES,
    RANK_RINGS,
    Knob,
    Value,
    register,
)

_LINE = re.compile(r"(?P<label>[A-Za-z][A-Za-z -]*):\s*(?P<value>\S+)")
_PAIR = re.compile(r"(?P<name>Adaptive|CQE mode) RX: (?P<rx>on|off|n/a)\s+TX: (?P<tx>on|off|n/a)")
_NOT_HAD = "n/a"

Setting = t.Union[int, bool]


@dataclasses.dataclass(frozen=True)
class Params:
    """What a device has, by the name with which ethtool sets it. ``most`` is empty where there are no limits."""

    now: dict[str, Setting]
    most: dict[str, int] = dataclasses.field(default_factory=dict)


def _number(text: str, line: str) -> int:
    if not text.isdigit():
        raise ParseError("ethtool told something else than a number", line=line)
    return int(text)


def _switch(text: str, line: str) -> bool:
    if text not in ("on", "off"):
        raise ParseError("ethtool told something else than on or off", line=line)
    return text == "on"


# Rings

_RINGS = {"RX": "rx", "RX Mini": "rx-mini", "RX Jumbo": "rx-jumbo", "TX": "tx"}


def parse_rings(text: str) -> Params:
    """The output of ``ethtool -g``. Further lines of newer versions (buffer length, push) are not rings."""
    most: dict[str, int] = {}
    now: dict[str, int] = {}
    target: dict[str, int] | None = None
    for line in text.splitlines():
        stripped = line.strip()
        if not stripped or stripped.startswith("Ring parameters"):
            continue
        if stripped.startswith("Pre-set maximums"):
            target = most
        elif stripped.startswith("Current hardware settings"):
            target = now
        else:
            match = _LINE.fullmatch(stripped)
            if match is None or target is None:
                raise ParseError("ethtool -g told something else than rings", line=line)
            if match["label"] in _RINGS and match["value"] != _NOT_HAD:
                target[_RINGS[match["label"]]] = _number(match["value"], line)
    return _rings(most, now, text)


def _rings(most: dict[str, int], now: dict[str, int], text: str) -> Params:
    # Old versions print 0 for what a driver has not.
    kinds = [kind for kind in now if most.get(kind, 0) > 0]
    if not kinds:
        raise ParseError("ethtool -g told no rings", line=text.strip()[:200])
    return Params({kind: now[kind] for kind in kinds}, {kind: most[kind] for kind in kinds})


# Coalescing


def param_name(name: str) -> str:
    """The name that sets it: ethtool prints ``rx-frame-low`` for ``rx-frames-low``, options have no hyphens."""
    return name.replace("_", "-").replace("-frame-", "-frames-")


def parse_coalesce(text: str) -> Params:
    """The output of ``ethtool -c``. The steps of an adaptive direction, which newer versions add, are not read."""
    now: dict[str, Setting] = {}
    seen = False
    for line in text.splitlines():
        stripped = line.strip()
        if not stripped or stripped.startswith(("Coalesce parameters", "rx-profile:", "tx-profile:", "{")):
            continue
        pair = _PAIR.fullmatch(stripped)
        if pair is not None:
            word = {"Adaptive": "adaptive", "CQE mode": "cqe-mode"}[pair["name"]]
            now.update({f"{word}-{d}": _switch(pair[d], line) for d in ("rx", "tx") if pair[d] != _NOT_HAD})
            seen = True
            continue
        match = _LINE.fullmatch(stripped)
        if match is None:
            raise ParseError("ethtool -c told something else than coalescing", line=line)
        seen = True
        if match["value"] != _NOT_HAD:
            now[param_name(match["label"])] = _number(match["value"], line)
    if not seen:
        raise ParseError("ethtool -c told nothing", line=text.strip()[:200])
    return Params(now)


# Flow control

_PAUSE = {"Autonegotiate": "autoneg", "RX": "rx", "TX": "tx"}


def parse_pause(text: str) -> Params:
    """The output of ``ethtool -a``. What was negotiated with the other end is not a setting."""
    now: dict[str, Setting] = {}
    for line in text.splitlines():
        stripped = line.strip()
        if not stripped or stripped.startswith("Pause parameters"):
            continue
        match = _LINE.fullmatch(stripped)
        if match is None:
            raise ParseError("ethtool -a told something else than flow control", line=line)
        if match["label"] in _PAUSE:
            now[_PAUSE[match["label"]]] = _switch(match["value"], line)
        elif not match["label"].endswith("negotiated"):
            raise ParseError("ethtool -a told something else than flow control", line=line)
    if set(now) != set(_PAUSE.values()):
        raise ParseError("ethtool -a told not all of flow control", line=text.strip()[:200])
    return Params(now)


# The settings


class _ParamsKnob(DeviceKnob):
    """Value: name -> number or switch, of what the driver has. Wish: some of these names."""

    risky = True
    show: t.ClassVar[str]
    change: t.ClassVar[str]
    #: What it is called in an error.
    noun: t.ClassVar[str]

    @staticmethod
    def of_text(text: str) -> Params:
        raise NotImplementedError

    @property
    def rank(self) -> int:
        return RANK_FEATURES

    def _params(self) -> Params:
        self.access.link(self.device)  # so that a missing interface is told in our words
        return self.of_text(self.access.told(["ethtool", self.show, self.device], where=self.device))

    def read(self) -> Value:
        return self._params().now

    def resolve(self, current: Value, wish: t.Any) -> Value:
        return {**current, **wish}

    def satisfied(self, current: Value, wish: t.Any) -> bool:
        return all(current.get(name) == value for name, value in wish.items())

    def check(self, current: Value, wish: t.Any) -> None:
        params = self._params()
        _possible, err = self._split(params, wish)
        if err is not None:
            raise err
        for name, value in wish.items():
            if isinstance(params.now[name], bool) != isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise Refused(f"{name} cannot be {value!r}", where=self.device)
            if name in params.most and value > params.most[name]:
                raise Refused(f"{name} {self.noun} {value} is too much", where=self.device, remedy=self._limits(params))

    @staticmethod
    def _limits(params: Params) -> str:
        return "At most " + ", ".join(f"{name} {most}" for name, most in params.most.items())

    def reduced(self, current: Value, wish: t.Any) -> tuple[t.Any, BenchError | None]:
        return self._split(self._params(), wish)

    def _split(self, params: Params, wish: t.Mapping[str, Setting]) -> tuple[dict[str, Setting], BenchError | None]:
        possible = {name: value for name, value in wish.items() if name in params.now}
        missing = [name for name in wish if name not in params.now]
        if not missing:
            return possible, None
        return possible, NotSupported(
            f"its driver has no {self.noun} {', '.join(missing)}",
            where=self.device,
            remedy=f"It has: {', '.join(sorted(params.now)) or 'none'}",
        )

    def write(self, value: Value) -> None:
        """What differs, in one command."""
        self._set(value)

    def _set(self, wanted: t.Mapping[str, Setting]) -> None:
        now = self.read()
        words: list[str] = []
        for name, setting in wanted.items():
            if name in now and now[name] != setting:
                words += [name, ("on" if setting else "off") if isinstance(setting, bool) else str(setting)]
        if words:
            self.access.change(["ethtool", self.change, self.device, *words], where=self.device)


@register
class Rings(_ParamsKnob):
    """Descriptors of each ring: rx, rx-mini, rx-jumbo, tx."""

    kind = "rings"
    show, change, noun = "-g", "-G", "ring"
    of_text = staticmethod(parse_rings)

    @property
    def rank(self) -> int:
        return RANK_RINGS

    def collateral(self, current: Value, desired: Value) -> list[Knob]:
        """Most drivers open the device anew, and some then ask for their interrupts anew."""
        return [IrqAffinity(self.access, self.device)]


@register
class Coalesce(_ParamsKnob):
    """When the device raises an interrupt: adaptive-rx, rx-usecs, tx-frames …

    While a direction is adaptive its times and frames move by themselves, so
    they are not compared.
    """

    kind = "coalesce"
    risky = False
    show, change, noun = "-c", "-C", "coalescing"
    of_text = staticmethod(parse_coalesce)

    @staticmethod
    def _moving(value: t.Mapping[str, Setting]) -> set[str]:
        return {
            f"{direction}-{what}"
            for direction in ("rx", "tx")
            if value.get(f"adaptive-{direction}") is True
            for what in ("usecs", "frames")
        }

    def same(self, one: Value, other: Value) -> bool:
        moving = self._moving(one) & self._moving(other)
        return {**one, **dict.fromkeys(moving)} == {**other, **dict.fromkeys(moving)}

    def check(self, current: Value, wish: t.Any) -> None:
        super().check(current, wish)
        fixed = sorted(self._moving(wish) & set(wish))
        if fixed:
            raise BenchError(
                f"{', '.join(fixed)} cannot be set while it is asked to adapt by itself",
                where=self.device,
                remedy="Leave one of the two out",
                code="contradiction",
            )

    def write(self, value: Value) -> None:
        """A direction that is to adapt gets its times first, while they can be set: they count again when it stops."""
        adapting = {name for name in value if name.startswith("adaptive-") and value[name] is True}
        moving = self._moving(self.read())
        self._set({name: setting for name, setting in value.items() if name not in adapting | moving})
        self._set({name: value[name] for name in sorted(adapting)})
        self._set({name: setting for name, setting in value.items() if name in moving - self._moving(value)})


@register
class FlowControl(_ParamsKnob):
    """Pause frames: autoneg, rx, tx."""

    kind = "flow_control"
    show, change, noun = "-a", "-A", "flow control"
    of_text = staticmethod(parse_pause)
