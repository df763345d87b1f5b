# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""HTML by functions: what is not markup made here is escaped, so no text of a user can become markup."""

from __future__ import annotations

import html
import re
import typing as t

#: Control characters that neither HTML nor XML 1.0 allows, and lone surrogates that UTF-8 cannot hold.
_ILLEGAL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")

_VOID = {"br", "meta", "link", "hr", "col"}


class Markup(str):
    """Text that is markup already."""

    __slots__ = ()


Child = t.Union[str, int, float, None, t.Iterable["Child"]]


def legal(text: str) -> str:
    """``text`` with a visible mark in place of what HTML and XML forbid."""
    return _ILLEGAL.sub("\ufffd", text)


def escape(text: str) -> Markup:
    return Markup(html.escape(legal(text)))


def tag(name: str, /, *children: Child, **attributes: str | int | bool | None) -> Markup:
    """``tag("td", 5, class_="n", title="x")``. An attribute that is None or False is left out."""
    opening = name
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        word = key.rstrip("_").replace("_", "-")
        opening += f" {word}" if value is True else f' {word}="{html.escape(legal(str(value)))}"'
    if name in _VOID:
        return Markup(f"<{opening}>")
    return Markup(f"<{opening}>{join(children)}</{name}>")


def join(children: Child) -> Markup:
    """All children one after the other; None is nothing, plain text is escaped."""
    if children is None:
        return Markup("")
    if isinstance(children, Markup):
        return children
    if isinstance(children, (str, int, float)):
        return escape(str(children))
    return Markup("".join(join(child) for child in children))
