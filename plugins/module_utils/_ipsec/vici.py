# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A client of vici, the control protocol of strongSwan's daemon.

Written anew because the daemon may hang or be late, and each step here has a time limit; and because distributions that
ship strongSwan do not all ship its Python client. The protocol: packets with a length in front (four bytes, network
order), a type, for some a name, and a message of sections, values and lists.
"""

from __future__ import annotations

import os
import socket
import struct
import time
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError

#: Where the daemon listens, by distribution.
SOCKETS = ("/run/charon.vici", "/var/run/charon.vici", "/run/strongswan/charon.vici")

_CMD_REQUEST, _CMD_RESPONSE, _CMD_UNKNOWN = 0, 1, 2
_EVENT_REGISTER, _EVENT_UNREGISTER, _EVENT_CONFIRM, _EVENT_UNKNOWN, _EVENT = 3, 4, 5, 6, 7
_SECTION_START, _SECTION_END, _KEY_VALUE, _LIST_START, _LIST_ITEM, _LIST_END = 1, 2, 3, 4, 5, 6
#: The daemon's own limit of a message is 512 KiB.
_LARGEST = 1 << 20
_POLL_S = 0.1
#: A daemon that is up answers this at once; one that hangs accepts and says nothing.
_HELLO_S = 2.0


Message = dict[str, t.Any]


class ViciError(BenchError):
    """The daemon cannot be reached, does not answer, or refuses."""

    def __init__(self, what: str, *, remedy: str | None = None, code: str = "vici_failed") -> None:
        super().__init__(what, where="strongSwan", remedy=remedy, code=code)
        #: What the daemon told while it worked on the command.
        self.events: list[Message] = []


def encode(message: t.Mapping[str, t.Any]) -> bytes:
    """A message as the protocol has it. Numbers and truths become text."""
    parts: list[bytes] = []
    for key, value in message.items():
        name = _short(key)
        if isinstance(value, t.Mapping):
            parts += [bytes([_SECTION_START]), name, encode(value), bytes([_SECTION_END])]
        elif isinstance(value, (list, tuple)):
            parts += [bytes([_LIST_START]), name]
            parts += [bytes([_LIST_ITEM]) + _long(item) for item in value]
            parts.append(bytes([_LIST_END]))
        else:
            parts += [bytes([_KEY_VALUE]), name, _long(value)]
    return b"".join(parts)


def _short(text: str) -> bytes:
    data = text.encode()
    return bytes([len(data)]) + data


def _long(value: t.Any) -> bytes:
    text = {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)
    data = text.encode()
    return struct.pack("!H", len(data)) + data


def decode(data: bytes) -> Message:
    """A message as nested mappings, lists and texts.

    :raises ViciError: it is cut off or not a message.
    """
    try:
        message, end = _decode(data, 0, top=True)
    except (IndexError, struct.error, ValueError) as err:
        raise ViciError("the daemon's answer cannot be read", code="unreadable_output") from err
    if end != len(data):
        raise ViciError("the daemon's answer goes on behind its end", code="unreadable_output")
    return message


def _decode(data: bytes, at: int, *, top: bool) -> tuple[Message, int]:
    found: Message = {}
    while at < len(data):
        kind = data[at]
        at += 1
        if kind == _SECTION_END:
            if top:
                raise ValueError("end of a section that did not begin")
            return found, at
        if kind not in (_SECTION_START, _KEY_VALUE, _LIST_START):
            raise ValueError(f"element {kind}")
        name, at = _take(data, at, 1)
        if kind == _SECTION_START:
            found[name], at = _decode(data, at, top=False)
        elif kind == _KEY_VALUE:
            found[name], at = _take(data, at, 2)
        else:
            items = []
            while data[at] == _LIST_ITEM:
                item, at = _take(data, at + 1, 2)
                items.append(item)
            if data[at] != _LIST_END:
                raise ValueError("list")
            at += 1
            found[name] = items
    if not top:
        raise ValueError("section without an end")
    return found, at


def _take(data: bytes, at: int, width: int) -> tuple[str, int]:
    size = int.from_bytes(data[at : at + width], "big")
    start, end = at + width, at + width + size
    if end > len(data):
        raise ValueError("cut off")
    return data[start:end].decode("utf-8", "replace"), end


class Session:
    """One connection to the daemon. Each request ends within its limit, with an answer or an error."""

    def __init__(self, path: str | None = None, *, limit_s: float = 10.0) -> None:
        self.path = path
        self.limit_s = limit_s
        self._socket: socket.socket | None = None

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def connect(self, wait_s: float) -> None:
        """Wait until the daemon listens and answers; a service is called active before it does."""
        deadline = time.monotonic() + wait_s
        while True:
            why, code = self._try_to_connect(deadline)
            if not why:
                return
            if time.monotonic() >= deadline:
                raise ViciError(
                    f"the daemon is not there after {wait_s:g} s: {why}",
                    remedy="Look at the service strongswan and at its journal",
                    code=code,
                )
            time.sleep(_POLL_S)

    def _try_to_connect(self, deadline: float) -> tuple[str, str]:
        paths = [self.path] if self.path else [path for path in SOCKETS if os.path.exists(path)]
        if not paths or not os.path.exists(paths[0]):
            return f"there is no {self.path or SOCKETS[0]}", "charon_absent"
        self.close()
        link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        link.settimeout(min(_HELLO_S, self.limit_s))
        try:
            link.connect(paths[0])
        except OSError as err:
            link.close()
            return f"{paths[0]}: {err.strerror or err}", "charon_absent"
        self._socket = link
        try:
            self.request("version", limit_s=max(0.2, min(_HELLO_S, deadline - time.monotonic())))
        except ViciError as err:
            self.close()
            return f"{paths[0]}: {err.what}", err.code
        return "", ""

    def request(
        self, command: str, message: t.Mapping[str, t.Any] | None = None, *, limit_s: float | None = None
    ) -> Message:
        """The answer to a command.

        :raises ViciError: none came in time, or it says that the command failed.
        """
        deadline = time.monotonic() + (limit_s or self.limit_s)
        self._send(_CMD_REQUEST, command, message, deadline)
        while True:
            kind, body = self._receive(deadline, command)
            if kind == _CMD_RESPONSE:
                return self._judged(command, decode(body))
            if kind == _CMD_UNKNOWN:
                raise ViciError(f"this strongSwan does not know the command {command}", code="vici_unknown_command")
            if kind != _EVENT:
                raise ViciError(f"the daemon answered {command} with a packet of kind {kind}", code="unreadable_output")

    def stream(
        self, command: str, event: str, message: t.Mapping[str, t.Any] | None = None, *, limit_s: float | None = None
    ) -> list[Message]:
        """The messages of an event that a command sets off, until its answer."""
        deadline = time.monotonic() + (limit_s or self.limit_s)
        self._event(_EVENT_REGISTER, event, deadline)
        found: list[Message] = []
        self._send(_CMD_REQUEST, command, message, deadline)
        while True:
            kind, body = self._receive(deadline, command)
            if kind == _EVENT:
                name, at = _take(body, 0, 1)
                if name == event:
                    found.append(decode(body[at:]))
            elif kind == _CMD_RESPONSE:
                try:
                    self._judged(command, decode(body))
                except ViciError as err:
                    err.events = found
                    raise
                break
            else:
                raise ViciError(f"this strongSwan does not know the command {command}", code="vici_unknown_command")
        self._event(_EVENT_UNREGISTER, event, deadline)
        return found

    def _event(self, kind: int, event: str, deadline: float) -> None:
        self._send(kind, event, None, deadline)
        while True:
            answer, _body = self._receive(deadline, event)
            if answer == _EVENT_CONFIRM:
                return
            if answer == _EVENT_UNKNOWN:
                raise ViciError(f"this strongSwan does not know the event {event}", code="vici_unknown_command")

    @staticmethod
    def _judged(command: str, answer: Message) -> Message:
        if answer.get("success", "yes") != "yes":
            raise ViciError(f"{command} failed: {answer.get('errmsg') or 'no reason given'}", code="vici_refused")
        return answer

    def _send(self, kind: int, name: str, message: t.Mapping[str, t.Any] | None, deadline: float) -> None:
        packet = bytes([kind]) + _short(name) + encode(message or {})
        link = self._link(deadline, name)
        try:
            link.sendall(struct.pack("!I", len(packet)) + packet)
        except OSError as err:
            raise self._lost(name, err) from err

    def _receive(self, deadline: float, name: str) -> tuple[int, bytes]:
        size = struct.unpack("!I", self._exactly(4, deadline, name))[0]
        if not 1 <= size <= _LARGEST:
            raise ViciError(f"the daemon sent a packet of {size} bytes", code="unreadable_output")
        packet = self._exactly(size, deadline, name)
        return packet[0], packet[1:]

    def _exactly(self, size: int, deadline: float, name: str) -> bytes:
        parts: list[bytes] = []
        left = size
        while left:
            try:
                part = self._link(deadline, name).recv(left)
            except OSError as err:
                raise self._lost(name, err) from err
            if not part:
                self.close()
                raise ViciError(f"the daemon closed the connection during {name}", code="charon_gone")
            parts.append(part)
            left -= len(part)
        return b"".join(parts)

    def _link(self, deadline: float, name: str) -> socket.socket:
        if self._socket is None:
            raise ViciError(f"not connected for {name}", code="charon_gone")
        # at least a moment, as a time-out of 0 would mean not to wait at all
        self._socket.settimeout(max(0.01, deadline - time.monotonic()))
        return self._socket

    def _lost(self, name: str, err: OSError) -> ViciError:
        self.close()  # what comes later would be taken for the answer to something else
        if isinstance(err, socket.timeout):
            return ViciError(
                f"the daemon did not answer {name} in time",
                remedy="It hangs, or it is busy: look at its journal, restart the service strongswan",
                code="charon_hung",
            )
        return ViciError(f"{name}: {err.strerror or err}", code="charon_gone")
