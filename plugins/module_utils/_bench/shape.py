# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of the shape of what a user wrote, each with one clear error."""

from __future__ import annotations

import difflib
import math
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError


def _kind(value: t.Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, str):
        return f"the text {str(value)!r}"
    if isinstance(value, bool):
        return f"the truth value {value}"
    if isinstance(value, t.Mapping):
        return "a mapping"
    if isinstance(value, t.Sequence):
        return "a list"
    return repr(value)


def as_mapping(value: t.Any, where: str) -> dict[str, t.Any]:
    if not isinstance(value, t.Mapping):
        raise BenchError(f"a mapping is needed, not {_kind(value)}", where=where)
    return {str(key): item for key, item in value.items()}


def as_list(value: t.Any, where: str) -> list[t.Any]:
    if isinstance(value, (str, bytes)) or not isinstance(value, t.Sequence):
        raise BenchError(f"a list is needed, not {_kind(value)}", where=where)
    return list(value)


def as_text(value: t.Any, where: str) -> str:
    if not isinstance(value, str) or not value:
        raise BenchError(f"a text is needed, not {_kind(value)}", where=where)
    return str(value)


def as_flag(value: t.Any, where: str) -> bool:
    if not isinstance(value, bool):
        raise BenchError(f"true or false is needed, not {_kind(value)}", where=where)
    return value


def as_int(value: t.Any, where: str, *, low: int | None = None, high: int | None = None) -> int:
    return int(_number(value, where, low, high, whole=True))


def as_number(value: t.Any, where: str, *, low: float | None = None, above: float | None = None) -> float:
    number = _number(value, where, low, None, whole=False)
    if above is not None and number <= above:
        raise BenchError(f"{value} is too small", where=where, remedy=f"It must be more than {above:g}")
    return number


def _number(value: t.Any, where: str, low: float | None, high: float | None, *, whole: bool) -> float:
    # -e on the command line gives text, so digits in a text are taken as the number they spell
    if isinstance(value, bool) or value is None:
        raise BenchError(f"a number is needed, not {_kind(value)}", where=where)
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise BenchError(f"a number is needed, not {_kind(value)}", where=where) from None
    if not math.isfinite(number):
        raise BenchError(f"a finite number is needed, not {value}", where=where)
    if whole and number != int(number):
        raise BenchError(f"a whole number is needed, not {value}", where=where)
    if (low is not None and number < low) or (high is not None and number > high):
        allowed = f"{low:g} or more" if high is None else f"{low:g} to {high:g}"
        raise BenchError(f"{value} is out of range", where=where, remedy=f"Allowed is {allowed}")
    return number


def only_keys(entry: t.Mapping[str, t.Any], allowed: t.Collection[str], where: str) -> None:
    for key in entry:
        if key not in allowed:
            raise BenchError(f"there is no key {key!r}", where=where, remedy=suggest(key, allowed))


def known(value: t.Any, names: t.Collection[str], where: str, what: str) -> str:
    text = str(value)
    if text not in names:
        raise BenchError(f"there is no {what} {text!r}", where=where, remedy=suggest(text, names))
    return text


def suggest(text: str, names: t.Collection[str]) -> str:
    close = difflib.get_close_matches(text, list(names), n=1)
    listed = ", ".join(sorted(names)) or "none"
    return f"Did you mean {close[0]!r}? Known are: {listed}" if close else f"Known are: {listed}"
