# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CPU sets as the kernel writes them: hexadecimal masks and lists.

A mask is groups of 32 bits, eight hexadecimal digits each, the highest
group first, joined by commas. The kernel refuses an empty group and "0x".
It reads a short group, and pads what it prints to the number of CPUs it was
built or booted for: so masks are compared as sets, never as text.
"""

from __future__ import annotations

import re
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError, ParseError

_GROUP_BITS = 32
_GROUP = re.compile(r"[0-9a-fA-F]{1,8}")
_RANGE = re.compile(r"(\d+)(?:-(\d+)(?::(\d+)/(\d+))?)?")
#: More CPUs than any kernel supports: a typing error, not a machine.
MAX_CPUS = 65536
_HOW = "Use a list such as 0-3,8 or mask:f"


def parse_mask(text: str) -> frozenset[int]:
    """The CPUs of a mask such as ``0000000f,fffc0000``."""
    groups = text.strip().split(",")
    value = 0
    for group in groups:
        if not _GROUP.fullmatch(group):
            raise ParseError("this is not a CPU mask", line=text)
        value = (value << _GROUP_BITS) | int(group, 16)
    return frozenset(bit for bit in range(len(groups) * _GROUP_BITS) if value >> bit & 1)


def format_mask(cpus: t.Iterable[int]) -> str:
    """The mask of these CPUs, every group full: ``00000001,00000000`` for CPU 32."""
    value = 0
    for cpu in cpus:
        if not 0 <= cpu < MAX_CPUS:
            raise BenchError(f"CPU {cpu} is out of range", remedy=f"Use 0 to {MAX_CPUS - 1}", code="bad_cpu")
        value |= 1 << cpu
    count = max(1, -(-value.bit_length() // _GROUP_BITS))
    groups = [value >> (_GROUP_BITS * index) & 0xFFFFFFFF for index in range(count)]
    return ",".join(f"{group:08x}" for group in reversed(groups))


def same_mask(one: str, other: str) -> bool:
    """True when two masks name the same CPUs, whatever their padding."""
    return parse_mask(one) == parse_mask(other)


def parse_list(text: str) -> frozenset[int]:
    """The CPUs of a list such as ``0-3,8,16-31:2/4`` (the kernel's own form); empty text is no CPU."""
    cpus: set[int] = set()
    if not text.strip():
        return frozenset()
    for part in text.strip().split(","):
        match = _RANGE.fullmatch(part.strip())
        if match is None:
            raise ParseError("this is not a CPU list", line=text)
        first = int(match[1])
        last = int(match[2]) if match[2] else first
        used, group = (int(match[3]), int(match[4])) if match[3] else (1, 1)
        if last < first or last >= MAX_CPUS or not 0 < used <= group:
            raise ParseError("this is not a CPU list", line=text)
        cpus.update(cpu for cpu in range(first, last + 1) if (cpu - first) % group < used)
    return frozenset(cpus)


def format_list(cpus: t.Iterable[int]) -> str:
    """A list in the shortest form: ``0-3,8``."""
    parts: list[str] = []
    run: list[int] = []
    for cpu in [*sorted(set(cpus)), None]:
        if run and cpu is not None and cpu == run[-1] + 1:
            run.append(cpu)
            continue
        if run:
            parts.append(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}")
        run = [] if cpu is None else [cpu]
    return ",".join(parts)


def parse_wish(value: str | int | t.Sequence[int]) -> frozenset[int]:
    """The CPUs that a user named: a list of numbers, a list text (``0-3``) or a mask (``mask:f``, ``0xf``).

    A bare text is always a list of CPUs, so that ``10`` is CPU 10 and never
    the mask of CPU 4.
    """
    if isinstance(value, bool):
        raise BenchError(f"{value!r} names no CPU", remedy=_HOW, code="bad_cpu")
    if isinstance(value, int):
        return frozenset([_one(value)])
    if isinstance(value, (list, tuple, set, frozenset)):
        return frozenset(_one(cpu) for cpu in value)
    if not isinstance(value, str):
        raise BenchError(f"{value!r} names no CPU", remedy=_HOW, code="bad_cpu")
    text = value.strip()
    if text.startswith("mask:"):
        return parse_mask(text[len("mask:") :])
    if text.lower().startswith("0x"):
        return parse_mask(text[2:])
    return parse_list(text)


def _one(cpu: int) -> int:
    if isinstance(cpu, bool) or not isinstance(cpu, int) or not 0 <= cpu < MAX_CPUS:
        raise BenchError(f"{cpu!r} is not the number of a CPU", code="bad_cpu")
    return cpu
