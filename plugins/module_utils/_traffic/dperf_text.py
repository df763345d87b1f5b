# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What dperf printed, as typed records.

It prints a block each second: keys, each followed by its value. Which keys there are differs by version, protocol and
end, columns grow together, numbers have commas, and those that are errors have colours. So a value is found by its key
alone. What it prints last under "Total Numbers" looks like a block and is none: these are sums, not rates.
"""

from __future__ import annotations

import dataclasses
import re
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import ParseError

Number = t.Union[int, float]
#: With cursor movements of ``clear_screen`` and the colours of errors.
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_KEY = re.compile(r"[A-Za-z][A-Za-z0-9_]*(?:\([a-z]+\))?")
_NUMBER = re.compile(r"(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]{1,20})(?:\.[0-9]{1,9})?")
_NUMBER_LIMIT = 32
_TOTALS = "Total Numbers:"
_SECOND, _CPU = "seconds", "cpuUsage"
#: Each version prints these in each block; a block without one is no whole block.
ALWAYS = ("pktRx", "pktTx", "bitsRx", "bitsTx", "skOpen", "skClose", "skCon", "skErr")
_BANNER = re.compile(r"-{5,}|dperf Test Finished|License:.*|Author:.*")
_VERSION = re.compile(r"(?:dperf )?[Vv]ersion:?\s+([0-9]+(?:\.[0-9]+)+)\S*")


@dataclasses.dataclass(frozen=True)
class Second:
    """One block: what was counted in the second ``number``, from ``number`` to ``number + 1`` after the start."""

    number: int
    #: Use of each worker's CPU, in percent.
    cpu_percent: tuple[int, ...]
    values: t.Mapping[str, Number]

    def get(self, key: str) -> Number | None:
        """None when this version or mode does not print the key."""
        return self.values.get(key)

    def sum(self, *keys: str) -> Number | None:
        """The sum of those that are printed; None when none is."""
        found = [self.values[key] for key in keys if key in self.values]
        return sum(found) if found else None


@dataclasses.dataclass(frozen=True)
class Output:
    """All of it."""

    version: str | None
    seconds: tuple[Second, ...]
    #: Sums over the whole run; None when it did not come to its end.
    totals: t.Mapping[str, Number] | None
    #: What it said besides: errors and warnings.
    messages: tuple[str, ...]

    @property
    def finished(self) -> bool:
        return self.totals is not None


def parse_number(text: str) -> Number:
    """``3,001,058`` is 3001058, ``0.0`` a fraction.

    :raises ParseError: it is no number as dperf writes them.
    """
    if len(text) > _NUMBER_LIMIT or not _NUMBER.fullmatch(text):
        raise ParseError("this is not a number", line=text)
    plain = text.replace(",", "")
    return float(plain) if "." in plain else int(plain)


def plain(text: str) -> str:
    """The text without colours and cursor movements."""
    return _CONTROL.sub("", text).replace("\r", "")


class _Block:
    """A block while its lines come."""

    def __init__(self, number: int | None, cpu_percent: tuple[int, ...] = ()) -> None:
        self.number = number
        self.cpu_percent = cpu_percent
        self.values: dict[str, Number] = {}

    def add(self, words: t.Sequence[str], line: str) -> None:
        if len(words) % 2:
            raise ParseError("a line of counters has a key without a value", line=line)
        for key, value in zip(words[::2], words[1::2]):
            if not _KEY.fullmatch(key):
                raise ParseError(f"{key!r} is not the name of a counter", line=line)
            if key in self.values or key in (_SECOND, _CPU):
                raise ParseError(f"{key} is there twice in one second", line=line)
            self.values[key] = parse_number(value)


def parse(text: str) -> Output:
    """Read all that dperf printed, or the part that was printed when it was killed.

    A last block that is cut off is left out: less was counted in it than happened.

    :raises ParseError: something looks like counters and cannot be read.
    """
    lines = plain(text).split("\n")
    unfinished = lines.pop()  # without a line end it may be half a number
    blocks: list[_Block] = []
    totals: _Block | None = None
    messages: list[str] = []
    version: str | None = None
    for raw in lines:
        line = raw.strip()
        words = line.split()
        if not words or _BANNER.fullmatch(line):
            continue
        found = _VERSION.fullmatch(line)
        if found:
            version = found[1]
        elif line == _TOTALS:
            if totals is not None:
                raise ParseError("two runs in one output", line=line)
            totals = _Block(None)
        elif words[0] == _SECOND:
            if totals is not None:
                raise ParseError("a second after the sums of the run", line=line)
            blocks.append(_start(words, line, blocks[-1] if blocks else None))
        elif (blocks or totals) and _is_counters(words):
            (totals or blocks[-1]).add(words, line)
        else:
            messages.append(line)
    if unfinished.strip() and totals is None and not blocks:
        messages.append(unfinished.strip())
    return Output(version, _whole(blocks, totals is None), _sums(totals, blocks), tuple(messages))


def _is_counters(words: t.Sequence[str]) -> bool:
    """A line of a block: a key, and what begins as a number. Any other is a message."""
    return len(words) > 1 and _KEY.fullmatch(words[0]) is not None and words[1][0] in "0123456789"


def _start(words: t.Sequence[str], line: str, before: _Block | None) -> _Block:
    """``seconds 3 cpuUsage 52 48``: one value for each CPU."""
    if len(words) < 2 or (len(words) > 2 and words[2] != _CPU):
        raise ParseError("the head of a second is not as expected", line=line)
    number, *cpus = (parse_number(word) for word in (words[1], *words[3:]))
    if not isinstance(number, int) or any(not isinstance(cpu, int) or cpu > 100 for cpu in cpus):
        raise ParseError("the head of a second is not as expected", line=line)
    if before is not None and before.number is not None and number <= before.number:
        raise ParseError(f"second {number} after second {before.number}", line=line)
    return _Block(number, tuple(int(cpu) for cpu in cpus))


def _whole(blocks: list[_Block], cut: bool) -> tuple[Second, ...]:
    if not blocks:
        return ()
    keys = set(blocks[0].values)
    seconds = []
    for block in blocks:
        missing = [key for key in ALWAYS if key not in block.values] or sorted(keys - set(block.values))
        if missing and block is blocks[-1] and cut:
            break
        if missing:
            raise ParseError(f"second {block.number} lacks {missing[0]}", line=f"{_SECOND} {block.number}")
        seconds.append(Second(t.cast(int, block.number), block.cpu_percent, block.values))
    if cut and seconds and seconds[-1].number == blocks[-1].number and len(blocks) == 1:
        # nothing tells whether the only block is whole
        return ()
    return tuple(seconds)


def _sums(totals: _Block | None, blocks: list[_Block]) -> t.Mapping[str, Number] | None:
    """The sums, when they are whole: as many keys as a second has."""
    if totals is None:
        return None
    keys = set(blocks[0].values) if blocks else set(ALWAYS)
    return totals.values if keys <= set(totals.values) else None
