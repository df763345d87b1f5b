# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a device spreads packets over its receive queues: the fields it hashes, and the table from hash to queue."""

from __future__ import annotations

import dataclasses
import re
import struct
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError, ParseError
from ansible_collections.fastpath.bench.plugins.module_utils._host.access import NotSupported, Refused, tool_error
from ansible_collections.fastpath.bench.plugins.module_utils._host.device import DeviceKnob
from ansible_collections.fastpath.bench.plugins.module_utils._host.knob import (
    RANK_FEATURES,
    RANK_QUEUES,
    RANK_RSS_TABLE,
    Value,
    register,
)

#: The kinds of flows whose fields can be set, as ethtool names them.
FLOWS = ("tcp4", "udp4", "ah4", "esp4", "sctp4", "tcp6", "udp6", "ah6", "esp6", "sctp6")
#: What ethtool prints for a field -> the letter that sets it, in the order of the letters.
_FIELDS = {
    "L2DA": "m",
    "VLAN tag": "v",
    "L3 proto": "t",
    "IP SA": "s",
    "IP DA": "d",
    "L4 bytes 0 & 1 [TCP/UDP src port]": "f",
    "L4 bytes 2 & 3 [TCP/UDP dst port]": "n",
}
_LETTERS = "".join(_FIELDS.values())
_DISCARD = "r"
_SRXFHINDIR = 0x39

_TABLE_HEAD = re.compile(r"RX flow hash indirection table for .+ with (\d+) RX ring\(s\):")
_TABLE_ROW = re.compile(r"\s*\d+:((?:\s+\d+)+)\s*")


def letters(text: str) -> str:
    """Letters in one order, each once."""
    unknown = sorted(set(text) - set(_LETTERS) - {_DISCARD})
    if unknown or (_DISCARD in text and set(text) != {_DISCARD}):
        raise BenchError(
            f"{text!r} are not fields of a packet",
            remedy=f"Use letters of {_LETTERS} (s and d addresses, f and n ports), or {_DISCARD} alone to discard",
            code="bad_value",
        )
    return "".join(letter for letter in _LETTERS + _DISCARD if letter in text)


def parse_hash_fields(text: str) -> str:
    """The output of ``ethtool -n IF rx-flow-hash FLOW`` as letters; no letter when nothing is hashed."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if len(lines) == 1 and lines[0].endswith("All matching flows discarded on RX"):
        return _DISCARD
    if len(lines) < 2 or not lines[0].endswith("use these fields for computing Hash flow key:"):
        raise ParseError("ethtool -n told something else than hash fields", line=text.strip())
    if lines[1:] == ["None"]:
        return ""
    for line in lines[1:]:
        if line not in _FIELDS:
            raise ParseError("ethtool -n told a field of another kind", line=line)
    return letters("".join(_FIELDS[line] for line in lines[1:]))


@register
class HashFields(DeviceKnob):
    """The fields of one kind of flow; the key is ``interface/flow``, such as ``eth1/udp4``."""

    kind = "rss.hash"

    @property
    def device(self) -> str:
        return self.key.split("/")[0]

    @property
    def flow(self) -> str:
        return self.key.split("/")[1]

    @property
    def rank(self) -> int:
        return RANK_FEATURES

    def read(self) -> Value:
        self.access.link(self.device)
        argv = ["ethtool", "-n", self.device, "rx-flow-hash", self.flow]
        text = self.access.told(argv, where=self.device)
        if not text.strip():
            # Some versions end with 0 although the driver refused.
            raise NotSupported(f"its driver tells no hash fields of {self.flow}", where=self.device)
        return parse_hash_fields(text)

    def resolve(self, current: Value, wish: t.Any) -> Value:
        return letters(wish)

    def check(self, current: Value, wish: t.Any) -> None:
        letters(wish)

    def write(self, value: Value) -> None:
        argv = ["ethtool", "-N", self.device, "rx-flow-hash", self.flow, value]
        self.access.forget()
        status, out, err = self.access.call(argv)
        if status != 0 or err.strip():  # 6.1 ends with 0 also when the driver refused
            raise tool_error(argv, status, out, err, self.device)


@dataclasses.dataclass(frozen=True)
class Table:
    """Which queue each hash goes to; ``rings`` is the number of queues that there are."""

    rings: int
    queues: list[int]


def parse_table(text: str, device: str) -> Table:
    """The output of ``ethtool -x``; the key that follows the table is of no concern."""
    lines = text.strip().splitlines()
    head = _TABLE_HEAD.fullmatch(lines[0].strip()) if lines else None
    if head is None:
        raise ParseError("ethtool -x told something else than a table", line=lines[0] if lines else "")
    queues: list[int] = []
    for line in lines[1:]:
        if line.startswith("RSS hash key"):
            break
        if "not supported" in line.lower():
            raise NotSupported("its driver has no table from hash to queue", where=device)
        row = _TABLE_ROW.fullmatch(line)
        if row is None:
            raise ParseError("ethtool -x told something else than queues", line=line)
        queues += [int(word) for word in row[1].split()]
    if not queues:
        raise NotSupported("its driver has no table from hash to queue", where=device)
    return Table(int(head[1]), queues)


def equal_table(size: int, queues: int) -> list[int]:
    return [index % queues for index in range(size)]


def weighted_table(size: int, weights: t.Sequence[int]) -> list[int]:
    """As ethtool fills it: neighbouring hashes go to one queue, as many as its weight asks for."""
    total, partial, queue = sum(weights), 0, -1
    table = []
    for index in range(size):
        while index >= size * partial // total:
            queue += 1
            partial += weights[queue]
        table.append(queue)
    return table


@dataclasses.dataclass(frozen=True)
class TableWish:
    """The first ``equal`` queues alike, or queues by weight."""

    equal: int | None = None
    weights: tuple[int, ...] = ()

    @property
    def most(self) -> int:
        return self.equal if self.equal is not None else len(self.weights)


@register
class IndirectionTable(DeviceKnob):
    """The queue of each hash, as a list."""

    kind = "rss.table"

    @property
    def rank(self) -> int:
        return RANK_RSS_TABLE

    def rank_to(self, value: Value) -> int:
        """A table for the queues that there are goes first: fewer queues are refused while one has to do with more."""
        try:
            fits = max(value) < self._table().rings
        except BenchError:
            return self.rank
        return RANK_QUEUES - 1 if fits else self.rank

    def _table(self) -> Table:
        self.access.link(self.device)
        return parse_table(self.access.told(["ethtool", "-x", self.device], where=self.device), self.device)

    def read(self) -> Value:
        return self._table().queues

    def resolve(self, current: Value, wish: t.Any) -> Value:
        if wish.equal is not None:
            return equal_table(len(current), wish.equal)
        return weighted_table(len(current), wish.weights)

    def check(self, current: Value, wish: t.Any) -> None:
        if wish.most < 1 or (wish.weights and (min(wish.weights) < 0 or not sum(wish.weights))):
            raise BenchError("packets need a queue to go to", where=self.device, code="bad_queue")
        if sum(wish.weights) > len(current) or wish.most > len(current):
            raise Refused("the table is smaller than this", where=self.device, remedy=f"It has {len(current)} places")

    def write(self, value: Value) -> None:
        """The driver's own table is asked for as such: it then goes on to follow the number of queues."""
        table = self._table()
        if value == equal_table(len(value), table.rings):
            self._set("default")
            if self.read() == value:
                return
        if value == equal_table(len(value), max(value) + 1):
            self._set("equal", str(max(value) + 1))
            return
        weights = [value.count(queue) for queue in range(max(value) + 1)]
        if value == weighted_table(len(value), weights):
            self._set("weight", *map(str, weights))
            return
        # No words of ethtool stand for such a table; the kernel takes any.
        request = struct.pack(f"={2 + len(value)}I", _SRXFHINDIR, len(value), *value)
        self.access.device_ioctl(self.device, request)

    def _set(self, *words: str) -> None:
        argv = ["ethtool", "-X", self.device, *words]
        self.access.forget()
        status, out, err = self.access.call(argv)
        if status != 0:
            raise tool_error(argv, status, out, err, self.device)
