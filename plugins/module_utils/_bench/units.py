# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Numbers as people read them. The exact value always stands beside, in a tooltip or in the CSV."""

from __future__ import annotations

UNKNOWN = "\N{EN DASH}"

_SCALES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
#: Units that take a decimal prefix, and how they are written with one.
_PREFIXED = {"bit/s": "bit/s", "packet/s": "pps", "byte": "B"}


def scale_of(value: float, unit: str) -> tuple[float, str]:
    """The divisor and the written unit that suit ``value``: (1e9, "Gbit/s")."""
    if unit not in _PREFIXED:
        return (0.01, "%") if unit == "ratio" else (1.0, unit)
    for divisor, prefix in _SCALES:
        # 999.96 would be written as 1000: it belongs to the next prefix
        if abs(value) >= divisor * 0.9995:
            return divisor, prefix + _PREFIXED[unit]
    return 1.0, _PREFIXED[unit]


def significant(value: float) -> str:
    """Three digits that matter, never in powers of ten: 12.3, 4.06, 941, 0.0123."""
    size = abs(value)
    if size >= 99.95:
        return f"{value:,.0f}"
    if size >= 9.995:
        return f"{value:.1f}"
    if size >= 0.9995 or size == 0:
        return f"{value:.2f}" if size else "0"
    text = f"{value:.3g}"
    return text if "e" not in text else f"{value:.12f}".rstrip("0")[:14]


def human(value: float | None, unit: str) -> str:
    """``12.3 Gbit/s``, ``650 kpps``, ``2.1 %``, ``0.088 ms``."""
    if value is None:
        return UNKNOWN
    if unit == "count":
        return f"{value:,.0f}" if float(value).is_integer() else significant(value)
    divisor, written = scale_of(value, unit)
    return f"{significant(value / divisor)} {written}".rstrip()


def exact(value: float | None, unit: str) -> str:
    """``12,345,678,901 bit/s``: every digit that was measured."""
    if value is None:
        return "not known"
    number = f"{value:,.0f}" if float(value).is_integer() else f"{value:,.6f}".rstrip("0")
    return f"{number} {unit}"


def spread(cv: float | None) -> str:
    """The coefficient of variation in percent."""
    return UNKNOWN if cv is None else f"{100 * cv:.1f} %"


def seconds(value: float | None) -> str:
    if value is None:
        return UNKNOWN
    if value < 120:
        return f"{value:.2f} s" if value < 10 else f"{value:.0f} s"
    minutes, rest = divmod(round(value), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s"
