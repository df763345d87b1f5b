# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What ethtool sets: features (offloads) and channels (queues)."""

from __future__ import annotations

import dataclasses
import re
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError, ParseError
from ansible_collections.fastpath.bench.plugins.module_utils._host.access import (
    Access,
    NotSupported,
    Refused,
    tool_error,
)
from ansible_collections.fastpath.bench.plugins.module_utils._host.device import DeviceKnob
from ansible_collections.fastpath.bench.plugins.module_utils._host.irq import IrqAffinity
from ansible_collections.fastpath.bench.plugins.module_utils._host.knob import (
    RANK_FEATURES,
    RANK_QUEUES,
    Knob,
    Value,
    register,
)
from ansible_collections.fastpath.bench.plugins.module_utils._host.queue import queue_knobs
from ansible_collections.fastpath.bench.plugins.module_utils._host.rss import IndirectionTable

_FEATURE_LINE = re.compile(r"(?P<indent>\s*)(?P<name>\S+): (?P<state>on|off)(?P<marks>( \[[^\]]*\])*)\s*")
_TITLE = re.compile(r"Features for (.+):")
#: ethtool's short names, for the names that it prints.
_SHORT = {
    "rx": "rx-checksumming",
    "tx": "tx-checksumming",
    "sg": "scatter-gather",
    "tso": "tcp-segmentation-offload",
    "ufo": "udp-fragmentation-offload",
    "gso": "generic-segmentation-offload",
    "gro": "generic-receive-offload",
    "lro": "large-receive-offload",
    "rxvlan": "rx-vlan-offload",
    "txvlan": "tx-vlan-offload",
    "ntuple": "ntuple-filters",
    "rxhash": "receive-hashing",
}
#: The kernel's names of single features that ethtool prints under an old name.
_KERNEL = {
    "rx-checksum": "rx-checksumming",
    "tx-generic-segmentation": "generic-segmentation-offload",
    "rx-gro": "generic-receive-offload",
    "rx-lro": "large-receive-offload",
    "rx-vlan-hw-parse": "rx-vlan-offload",
    "tx-vlan-hw-insert": "tx-vlan-offload",
    "rx-ntuple-filter": "ntuple-filters",
    "rx-hashing": "receive-hashing",
}
_PRINTED_TO_KERNEL = {printed: kernel for kernel, printed in _KERNEL.items()}


@dataclasses.dataclass(frozen=True)
class Feature:
    """``active`` is what is, ``wanted`` what was asked for: they differ while another feature is missing."""

    name: str
    active: bool
    wanted: bool
    fixed: bool
    #: The line it is indented under, for a group such as tcp-segmentation-offload.
    group: str | None


def parse_features(text: str) -> dict[str, Feature]:
    """The output of ``ethtool -k`` by printed name."""
    features: dict[str, Feature] = {}
    group = None
    for line in text.splitlines():
        if not line.strip() or _TITLE.fullmatch(line.strip()):
            continue
        match = _FEATURE_LINE.fullmatch(line)
        if match is None:
            raise ParseError("ethtool -k told something else than a feature", line=line)
        name, active, marks = match["name"], match["state"] == "on", match["marks"]
        wanted = active
        if "[requested on]" in marks:
            wanted = True
        elif "[requested off]" in marks:
            wanted = False
        inner = bool(match["indent"])
        if not inner:
            group = name
        features[name] = Feature(name, active, wanted, "[fixed]" in marks, group if inner else None)
    if not features:
        raise ParseError("ethtool -k told no feature", line=text.strip())
    return features


def groups(features: t.Mapping[str, Feature]) -> dict[str, list[str]]:
    """Printed name of each group -> the features in it."""
    found: dict[str, list[str]] = {}
    for feature in features.values():
        if feature.group is not None:
            found.setdefault(feature.group, []).append(feature.name)
    return found


def leaves(features: t.Mapping[str, Feature], name: str) -> list[Feature]:
    """The single features that a name of any kind stands for."""
    printed = _SHORT.get(name, _KERNEL.get(name, name))
    members = groups(features).get(printed)
    if members:
        return [features[member] for member in members]
    return [features[printed]] if printed in features else []


def _text(feature: Feature) -> str:
    if feature.active == feature.wanted:
        return "on" if feature.active else "off"
    return "off, wanted on" if feature.wanted else "on, wanted off"


@register
class Features(DeviceKnob):
    """All features that can change, as one setting, as one drags others along.

    Value: printed name of each single feature -> on, off, ``off, wanted on``.
    Wish: any of ethtool's names -> bool.
    """

    kind = "features"
    risky = True

    @property
    def rank(self) -> int:
        return RANK_FEATURES

    def _features(self) -> dict[str, Feature]:
        return parse_features(self.access.told(["ethtool", "-k", self.device], where=self.device))

    def read(self) -> Value:
        self.access.link(self.device)  # so that a missing interface is told in our words
        features = self._features()
        inside = groups(features)
        return {name: _text(f) for name, f in sorted(features.items()) if not f.fixed and name not in inside}

    def wish_leaves(self, current: Value, wish: t.Mapping[str, bool]) -> dict[str, bool]:
        """The single features that the wish is about, as far as they can change here."""
        wanted: dict[str, bool] = {}
        for name, state in wish.items():
            for leaf in self._members(current, name):
                wanted[leaf] = state
        return wanted

    @staticmethod
    def _members(current: Value, name: str) -> list[str]:
        printed = _SHORT.get(name, _KERNEL.get(name, name))
        if printed in _GROUP_PATTERNS:
            return [leaf for leaf in current if _GROUP_PATTERNS[printed].fullmatch(leaf)]
        return [printed] if printed in current else []

    def satisfied(self, current: Value, wish: t.Any) -> bool:
        return all(
            current[name] == ("on" if state else "off") for name, state in self.wish_leaves(current, wish).items()
        )

    def resolve(self, current: Value, wish: t.Any) -> Value:
        return {**current, **{n: "on" if state else "off" for n, state in self.wish_leaves(current, wish).items()}}

    def check(self, current: Value, wish: t.Any) -> None:
        features = self._features()
        opposed: dict[str, bool] = {}
        for name, state in wish.items():
            for leaf in leaves(features, name):
                if opposed.setdefault(leaf.name, state) != state:
                    raise BenchError(f"{leaf.name} is asked to be on and off", where=self.device, code="contradiction")
        _within_reach, err = self._possible(features, wish)
        if err is not None:
            raise err

    def reduced(self, current: Value, wish: t.Any) -> tuple[t.Any, BenchError | None]:
        return self._possible(self._features(), wish)

    def _possible(
        self, features: t.Mapping[str, Feature], wish: t.Mapping[str, bool]
    ) -> tuple[dict[str, bool], NotSupported | None]:
        """A group may have fixed members; it is out of reach only when all are fixed, and one otherwise."""
        why = []
        possible = {}
        for name, state in wish.items():
            members = leaves(features, name)
            if not members:
                why.append(f"there is no feature {name}")
            elif all(leaf.fixed for leaf in members) and any(leaf.active != state for leaf in members):
                why.append(f"{name} is fixed {'on' if members[0].active else 'off'} by the driver")
            else:
                possible[name] = state
        if not why:
            return possible, None
        return possible, NotSupported(
            ", ".join(why), where=self.device, remedy=f"ethtool -k {self.device} lists what can change"
        )

    def write(self, value: Value) -> None:
        """All in one command. ethtool's status tells only whether something moved, so reading back decides."""
        now = self.read()
        words: list[str] = []
        for name, state in value.items():
            if name in now and now[name] != state:
                wanted = "on" if state in ("on", "off, wanted on") else "off"
                words += [_PRINTED_TO_KERNEL.get(name, name), wanted]
        if not words:
            return
        argv = ["ethtool", "-K", self.device, *words]
        self.access.forget()
        status, out, err = self.access.call(argv)
        if status != 0 and "Actual changes" not in out:
            raise tool_error(argv, status, out, err, self.device)


#: What the kernel counts into a group that ethtool prints.
_GROUP_PATTERNS = {
    "tx-checksumming": re.compile(r"tx-checksum-.+"),
    "scatter-gather": re.compile(r"tx-scatter-gather(-fraglist)?"),
    "tcp-segmentation-offload": re.compile(r"tx-tcp.*-segmentation"),
}

_CHANNEL_LINE = re.compile(r"(RX|TX|Other|Combined):\s+(\d+|n/a)\s*")


@dataclasses.dataclass(frozen=True)
class Channels:
    """Queues by kind: rx, tx, combined, other. A kind that the driver has not is left out."""

    most: dict[str, int]
    now: dict[str, int]


def parse_channels(text: str) -> Channels:
    """The output of ``ethtool -l``."""
    most: dict[str, int] = {}
    now: dict[str, int] = {}
    target: dict[str, int] | None = None
    for line in text.splitlines():
        stripped = line.strip()
        if not stripped or stripped.startswith("Channel parameters"):
            continue
        if stripped.startswith("Pre-set maximums"):
            target = most
        elif stripped.startswith("Current hardware settings"):
            target = now
        else:
            match = _CHANNEL_LINE.fullmatch(stripped)
            if match is None or target is None:
                raise ParseError("ethtool -l told something else than channels", line=line)
            if match[2] != "n/a":
                target[match[1].lower()] = int(match[2])
    if not now:
        raise ParseError("ethtool -l told no channels", line=text.strip())
    # Old versions print 0 for what a driver has not.
    kinds = [kind for kind in now if most.get(kind, 0) > 0]
    return Channels({kind: most[kind] for kind in kinds}, {kind: now[kind] for kind in kinds})


@register
class ChannelCounts(DeviceKnob):
    """Number of queues. Value: kind -> count. Wish: some of these kinds."""

    kind = "channels"
    risky = True

    @property
    def rank(self) -> int:
        return RANK_QUEUES

    def _channels(self) -> Channels:
        self.access.link(self.device)
        return parse_channels(self.access.told(["ethtool", "-l", self.device], where=self.device))

    def read(self) -> Value:
        return self._channels().now

    def resolve(self, current: Value, wish: t.Any) -> Value:
        return {**current, **wish}

    def check(self, current: Value, wish: t.Any) -> None:
        most = self._channels().most
        _possible, err = self._split(most, wish)
        if err is not None:
            raise err
        for kind, count in wish.items():
            if not 0 <= count <= most[kind]:
                raise Refused(
                    f"{count} {kind} channels are asked for", where=self.device, remedy=f"At most {most[kind]}"
                )

    def reduced(self, current: Value, wish: t.Any) -> tuple[t.Any, BenchError | None]:
        return self._split(self._channels().most, wish)

    def _split(self, most: t.Mapping[str, int], wish: t.Mapping[str, int]) -> tuple[dict[str, int], BenchError | None]:
        possible = {kind: count for kind, count in wish.items() if kind in most}
        missing = [kind for kind in wish if kind not in most]
        if not missing:
            return possible, None
        return possible, NotSupported(
            f"it has no {', '.join(missing)} channels", where=self.device, remedy=f"It has: {', '.join(most) or 'none'}"
        )

    def write(self, value: Value) -> None:
        now = self.read()
        words = [word for kind, count in value.items() if now.get(kind) != count for word in (kind, str(count))]
        if words:
            self.access.change(["ethtool", "-L", self.device, *words], where=self.device)

    def collateral(self, current: Value, desired: Value) -> list[Knob]:
        """A queue that goes takes its masks along; some drivers reset those of all, and ask for interrupts anew."""
        queues = queue_knobs(self.access, self.device)
        return [*queues, IndirectionTable(self.access, self.device), IrqAffinity(self.access, self.device)]


def channel_access(access: Access, device: str) -> Channels | None:
    """The channels of an interface, or None when its driver has none."""
    try:
        return parse_channels(access.run(["ethtool", "-l", device], where=device))
    except NotSupported:
        return None
