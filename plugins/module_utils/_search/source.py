# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A sender at the other end of a path, for loads of the direction that comes back.

It sends only to the address from which it is asked, so it loads nobody else. It serves one search at a time.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import select
import signal
import socket
import time
import types
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._common.paths import SOURCE_DIR
from ansible_collections.fastpath.bench.plugins.module_utils._host import background, standing
from ansible_collections.fastpath.bench.plugins.module_utils._host.path_wire import family_of
from ansible_collections.fastpath.bench.plugins.module_utils._search.frames import parse_frames
from ansible_collections.fastpath.bench.plugins.module_utils._search.sender import (
    EXTRA_S,
    Finish,
    Sender,
    Sent,
    Settings,
)
from ansible_collections.fastpath.bench.plugins.module_utils._search.senders import make_sender

MAGIC = "fastpath-source-1"
_LINE_LIMIT = 65536
_BACKLOG = 16
#: Who asks nothing for so long makes room for the next one.
_IDLE_S = 600.0
_LONGEST_TRIAL_S = 86_400.0
_STOP_WITHIN_S = 5.0
_BROKEN = (OSError, ValueError, KeyError, TypeError)


@dataclasses.dataclass(frozen=True)
class Service:
    """Where it takes orders. Port 0 lets the kernel choose."""

    name: str = "default"
    bind_address: str = "0.0.0.0"
    port: int = 0
    lifetime_s: float = 7200.0
    directory: str = SOURCE_DIR

    def check(self) -> None:
        """:raises BenchError: an option is wrong."""
        standing.check(self.name, self.port, self.lifetime_s)
        family_of(self.bind_address)

    def standing(self) -> standing.Standing:
        return standing.Standing(
            self.directory,
            self.name,
            self.port,
            self.lifetime_s,
            "fastpath-source",
            self.bind_address,
            stop_within_s=_STOP_WITHIN_S,
        )


class Source:
    """The socket, and what is done for who asks."""

    def __init__(self, service: Service) -> None:
        self._listener = standing.listen_at(service.bind_address, service.port, _BACKLOG)
        self._client: socket.socket | None = None
        self._waiting = b""
        self._sender: Sender | None = None
        self._asked_at = 0.0
        self.port: int = self._listener.getsockname()[1]

    def serve(self, wake_fd: int, ending: t.Callable[[], bool], until: float) -> None:
        while not ending():
            # the one that is served first: it may just have gone, and the next one is waiting
            sources: list[t.Any] = [wake_fd, *([self._client] if self._client else []), self._listener]
            left = max(0.0, min(until - time.monotonic(), _IDLE_S))
            for ready in select.select(sources, [], [], left)[0]:
                if ready is self._listener:
                    self._accept()
                elif ready is self._client:
                    self._read(self._client)

    def _accept(self) -> None:
        try:
            connection, _peer = self._listener.accept()
        except OSError:  # it was gone before it was taken
            return
        if self._client is not None and time.monotonic() - self._asked_at < _IDLE_S:
            with connection, contextlib.suppress(OSError):
                connection.sendall(_line({"error": "it sends for somebody else", "code": "source_busy"}))
            return
        self._leave()
        connection.settimeout(EXTRA_S)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._client, self._waiting, self._asked_at = connection, b"", time.monotonic()

    def _read(self, client: socket.socket) -> None:
        try:
            data = client.recv(_LINE_LIMIT)
            self._waiting += data
            if not data or len(self._waiting) > _LINE_LIMIT:
                raise ConnectionError
            while b"\n" in self._waiting:
                line, _newline, self._waiting = self._waiting.partition(b"\n")
                client.sendall(_line(self._answer(client, line)))
                self._asked_at = time.monotonic()
        except OSError:  # it went away, or is none of ours; it says itself what it missed
            self._leave()

    def _answer(self, client: socket.socket, line: bytes) -> dict[str, t.Any]:
        try:
            order = json.loads(line)
            if order["magic"] != MAGIC:
                raise ValueError("it is no order")
            if order["do"] == "prepare":
                return self._prepare(client, order)
            return self._send(order)
        except BenchError as error:
            return {"error": error.message, "code": error.code}
        except (ValueError, KeyError, TypeError) as error:
            return {"error": f"{type(error).__name__}: {error}", "code": "bad_order"}

    def _prepare(self, client: socket.socket, order: dict[str, t.Any]) -> dict[str, t.Any]:
        self._drop()
        settings = Settings(
            server=client.getpeername()[0],
            port=int(order["port"]),
            frames=parse_frames(str(order["frame"]), order["recipe"]),
            parallel=int(order["parallel"]),
            flows=int(order["flows"]),
            bind_address=client.getsockname()[0],
        )
        self._sender = make_sender(str(order["generator"]), settings)
        self._sender.prepare()
        return {
            "generator": self._sender.describe(),
            "least_pps": self._sender.least_pps(1.0),
            "ahead_packets": self._sender.ahead_packets,
        }

    def _send(self, order: dict[str, t.Any]) -> dict[str, t.Any]:
        if self._sender is None:
            raise ValueError("it is not prepared")
        load, seconds = order["load_pps"], float(order["duration_s"])
        if not 0 < seconds <= _LONGEST_TRIAL_S or (load is not None and not 0 < float(load) < 1e12):
            raise ValueError("load or time out of range")
        with self._sender.sending(None if load is None else float(load), seconds) as finish:
            return {"streams": [dataclasses.asdict(one) for one in finish()]}

    def _drop(self) -> None:
        if self._sender is not None:
            self._sender.close()
            self._sender = None

    def _leave(self) -> None:
        self._drop()
        if self._client is not None:
            self._client.close()
            self._client = None

    def close(self) -> None:
        self._leave()
        self._listener.close()


def _line(what: dict[str, t.Any]) -> bytes:
    return json.dumps(what).encode() + b"\n"


class RemoteSender:
    """A source as a sender. Its settings are those of what it sends: to this host."""

    def __init__(self, settings: Settings, generator: str, at: tuple[str, int], bind: str | None = None) -> None:
        self.settings = settings
        self._generator = generator
        self._at = at
        self._bind = bind
        self._connection: socket.socket | None = None
        self._told: dict[str, t.Any] = {}

    @property
    def ahead_packets(self) -> int:
        return int(self._told.get("ahead_packets", 0))

    def prepare(self) -> None:
        if self._told:
            return
        self.close()
        try:
            source = None if self._bind is None else (self._bind, 0)
            self._connection = socket.create_connection(self._at, EXTRA_S, source)
            self._connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError as error:
            raise self._silent(error) from error
        settings = self.settings
        recipe = {str(part.frame_bytes): part.parts for part in settings.frames.parts}
        self._order(
            {
                "do": "prepare",
                "generator": self._generator,
                "port": settings.port,
                "frame": settings.frames.name,
                "recipe": recipe,
                "parallel": settings.parallel,
                "flows": settings.flows,
            }
        )
        self._told = self._reply(EXTRA_S)

    @contextlib.contextmanager
    def sending(self, load_pps: float | None, duration_s: float) -> t.Iterator[Finish]:
        self._order({"do": "send", "load_pps": load_pps, "duration_s": duration_s})
        done = False

        def finish() -> list[Sent]:
            nonlocal done
            done = True
            answer = self._reply(duration_s + 2 * EXTRA_S)
            return [Sent(**one) for one in answer["streams"]]

        try:
            yield finish
        finally:
            if not done:  # its answer would be taken for that of the next trial
                self.close()

    def least_pps(self, duration_s: float) -> float:
        return float(self._told.get("least_pps", 0.0)) / min(1.0, duration_s)

    def describe(self) -> dict[str, t.Any]:
        return dict(self._told.get("generator") or {"name": self._generator})

    def close(self) -> None:
        self._told = {}
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _order(self, what: dict[str, t.Any]) -> None:
        try:
            if self._connection is None:
                raise ConnectionError("it is not connected")
            self._connection.sendall(_line({"magic": MAGIC, **what}))
        except OSError as error:
            self.close()
            raise self._silent(error) from error

    def _reply(self, within_s: float) -> dict[str, t.Any]:
        try:
            if self._connection is None:
                raise ConnectionError("it is not connected")
            self._connection.settimeout(within_s)
            data = b""
            while b"\n" not in data:
                part = self._connection.recv(_LINE_LIMIT)
                if not part:
                    raise ConnectionError("it closed the connection")
                data += part
            answer = json.loads(data)
            if "error" in answer:
                raise BenchError(
                    f"the source at {self._at[0]}: {answer['error']}", code=str(answer.get("code") or "tool_error")
                )
            return dict(answer)
        except _BROKEN as error:
            self.close()
            raise self._silent(error) from error

    def _silent(self, error: Exception) -> BenchError:
        return BenchError(
            f"the source at {self._at[0]} port {self._at[1]} does not answer: {error}",
            remedy="Start it at the other end with fastpath.bench.traffic_source, and let TCP to it through",
            code="source_silent",
        )


# --------------------------------------------------------------------------- in the background


class _Leave(Exception):
    """Asked to end while it sends."""


def _work(service: Service, control: background.Control) -> None:
    source = Source(service)
    told = signal.getsignal(signal.SIGTERM)

    def leave(number: int, frame: types.FrameType | None) -> None:
        if callable(told):
            told(number, frame)
        raise _Leave

    with contextlib.suppress(_Leave), contextlib.closing(source):
        signal.signal(signal.SIGTERM, leave)
        service.standing().ready(control, source.port)
        source.serve(control.wake_fd, lambda: control.ending, control.deadline)


def ensure_present(service: Service, *, check_mode: bool = False) -> dict[str, t.Any]:
    """Have a source that takes orders there. The module's result."""
    return service.standing().present(lambda control: _work(service, control), check_mode=check_mode)


def ensure_absent(service: Service, *, check_mode: bool = False) -> dict[str, t.Any]:
    """End the source. The module's result."""
    return service.standing().absent(check_mode=check_mode)
