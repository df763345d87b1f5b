# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Only the definitions of the requests that are used, out of all that VPP hands out.

VPP describes its whole API as JSON: about 1,600 messages, of which a module
needs two dozen. Building all of them costs half a second of processor time
each time, so the definitions are kept as they came and each message is built,
with the types that it needs, when it is first used.
"""

from __future__ import annotations

import json
import re
import typing as t

_TYPE = re.compile(r"^vl_api_(\w+)_t$")
_KINDS = ("types", "unions", "enums", "enumflags")


class Definitions:
    """All definitions of one VPP, and which of them PAPI already has."""

    def __init__(self, text: str) -> None:
        self.messages: dict[str, list[t.Any]] = {}
        self.services: dict[str, dict[str, t.Any]] = {}
        self.types: dict[str, tuple[str, t.Any]] = {}
        self._built: set[str] = set()
        for module in json.loads(text):
            self._take(module)

    def _take(self, module: dict[str, t.Any]) -> None:
        for kind in _KINDS:
            for definition in module.get(kind, ()):
                self.types[definition[0]] = (kind, definition)
        for name, definition in module.get("aliases", {}).items():
            self.types[name] = ("aliases", definition)
        for message in module.get("messages", ()):
            self.messages[message[0]] = message
        self.services.update(module.get("services", {}))

    def excerpt(self, request: str) -> str | None:
        """A request with its answers and their types, as one JSON text for PAPI; None when VPP has no such request."""
        if request not in self.services:
            return None
        service = self.services[request]
        names = [request, service["reply"], service.get("stream_msg")]
        part: dict[str, t.Any] = {kind: [] for kind in _KINDS}
        part.update({"aliases": {}, "messages": [], "services": {request: service}})
        for name in names:
            if name in self.messages and name not in self._built:
                self._built.add(name)
                part["messages"].append(self.messages[name])
                for field in self.messages[name][1:]:
                    self._need(field, part)
        return json.dumps(part)

    def _need(self, field: t.Any, part: dict[str, t.Any]) -> None:
        """Add the type of a field, after the types that it is made of."""
        if not isinstance(field, list) or not field or not isinstance(field[0], str):
            return
        match = _TYPE.match(field[0])
        name = match[1] if match else ""
        if name not in self.types or f"type {name}" in self._built:
            return
        self._built.add(f"type {name}")
        kind, definition = self.types[name]
        if kind == "aliases":
            self._need([definition["type"]], part)
            part["aliases"][name] = definition
            return
        if kind in ("types", "unions"):
            for inner in definition[1:]:
                self._need(inner, part)
        part[kind].append(definition)
