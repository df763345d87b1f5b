# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The far end of a load of connections: it takes each, answers one HTTP request, closes it, and counts.

It tells what it counted to whoever asks for one path. It closes first, so that no port of the client has to wait
before it can be used again.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import select
import socket
import time
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._common.paths import CONNECTION_DIR
from ansible_collections.fastpath.bench.plugins.module_utils._host import background, standing
from ansible_collections.fastpath.bench.plugins.module_utils._host.path_wire import family_of

MAGIC = "fastpath-connections-1"
COUNT_PATH = "/fastpath-count"
#: What fits into the smallest send buffer, so that an answer never has to wait.
MAX_ANSWER = 16_384
_REQUEST_LIMIT = 8192
_BACKLOG = 4096
#: Connections that are taken before the others are looked at.
_AT_ONCE = 64
_POLL_S = 1.0
#: Seconds that the kernel keeps a connection back until it has data.
_DEFER_S = 2


@dataclasses.dataclass(frozen=True)
class Settings:
    """Where it answers. Port 0 lets the kernel choose."""

    name: str = "default"
    bind_address: str = "0.0.0.0"
    port: int = 0
    answer_bytes: int = 64
    lifetime_s: float = 7200.0
    directory: str = CONNECTION_DIR

    def check(self) -> None:
        standing.check(self.name, self.port, self.lifetime_s)
        family_of(self.bind_address)
        if not 0 <= self.answer_bytes <= MAX_ANSWER:
            raise BenchError(
                f"{self.answer_bytes} is not possible",
                where="option answer_bytes",
                remedy=f"Use 0 to {MAX_ANSWER}",
                code="bad_option",
            )

    def standing(self) -> standing.Standing:
        return standing.Standing(
            self.directory,
            self.name,
            self.port,
            self.lifetime_s,
            "fastpath-connections",
            [self.bind_address, self.answer_bytes],
        )


@dataclasses.dataclass(frozen=True)
class Counts:
    """What an answerer has counted since it was started, without those who asked for it."""

    accepted: int
    answered: int
    #: Of its one thread.
    cpu_s: float


def _answer(body: bytes) -> bytes:
    head = f"HTTP/1.0 200 OK\r\nServer: {MAGIC}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    return head.encode("ascii") + body


class Answerer:
    """The listener, and those of its connections whose request has not come yet."""

    def __init__(self, settings: Settings) -> None:
        self._whole = _answer(b"x" * settings.answer_bytes)
        self._waiting: dict[int, tuple[socket.socket, bytes]] = {}
        self.accepted = self.answered = 0
        self.listener = standing.listen_at(settings.bind_address, settings.port, _BACKLOG)
        # a connection is handed over with its request: two waits less for each
        self.listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, _DEFER_S)
        self.port: int = self.listener.getsockname()[1]
        self._events = select.epoll()
        self._events.register(self.listener.fileno(), select.EPOLLIN)

    def serve(self, wake_fd: int, ending: t.Callable[[], bool]) -> None:
        self._events.register(wake_fd, select.EPOLLIN)
        own = self.listener.fileno()
        while not ending():
            for number, _event in self._events.poll(_POLL_S):
                if number == own:
                    self._accept()
                elif number in self._waiting:
                    connection, begun = self._waiting.pop(number)
                    self._events.unregister(number)
                    self._take(connection, begun)

    def _accept(self) -> None:
        for _time in range(_AT_ONCE):
            try:
                connection, _peer = self.listener.accept()
            except OSError:
                # none is left, or it was gone before it was taken
                return
            self.accepted += 1
            self._take(connection, b"")

    def _take(self, connection: socket.socket, begun: bytes) -> None:
        try:
            data = connection.recv(_REQUEST_LIMIT, socket.MSG_DONTWAIT)
        except BlockingIOError:
            self._wait(connection, begun)
            return
        except OSError:
            connection.close()
            return
        request = begun + data
        if not data or len(request) > _REQUEST_LIMIT:
            connection.close()
        elif b"\r\n\r\n" not in request:
            self._wait(connection, request)
        else:
            self._reply(connection, request)

    def _wait(self, connection: socket.socket, begun: bytes) -> None:
        self._waiting[connection.fileno()] = (connection, begun)
        self._events.register(connection.fileno(), select.EPOLLIN)

    def _reply(self, connection: socket.socket, request: bytes) -> None:
        asks = request.split(b" ", 2)[1:2] == [COUNT_PATH.encode("ascii")]
        if asks:
            self.accepted -= 1
        try:
            connection.send(self._counts() if asks else self._whole, socket.MSG_DONTWAIT)
            self.answered += not asks
        except OSError:
            # it went away without waiting for the answer; the client counts it as failed
            pass
        finally:
            connection.close()

    def _counts(self) -> bytes:
        # those who ask are none: this one is taken off already
        told = {"magic": MAGIC, "accepted": self.accepted, "answered": self.answered, "cpu_s": time.process_time()}
        return _answer(json.dumps(told).encode("ascii"))

    def close(self) -> None:
        self.listener.close()
        for connection, _begun in self._waiting.values():
            connection.close()
        self._events.close()


def ask(address: str, port: int, *, bind: str | None = None, timeout_s: float = 3.0) -> Counts:
    """What the answerer has counted.

    :raises BenchError: it does not answer, or somebody else does.
    """
    source = None if bind is None else (bind, 0)
    data = b""
    try:
        with socket.create_connection((address, port), timeout_s, source) as connection:
            connection.sendall(f"GET {COUNT_PATH} HTTP/1.0\r\n\r\n".encode("ascii"))
            while part := connection.recv(4096):
                data += part
        told = json.loads(data.partition(b"\r\n\r\n")[2])
        if told["magic"] != MAGIC:
            raise ValueError("somebody else answers")
        return Counts(int(told["accepted"]), int(told["answered"]), float(told["cpu_s"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BenchError(
            f"the server at {address} port {port} does not tell its counts: {error}",
            remedy="Start it there with fastpath.bench.connection_server, and let TCP to it through",
            code="server_silent",
        ) from error


def _work(settings: Settings, control: background.Control) -> None:
    answerer = Answerer(settings)
    with contextlib.closing(answerer):
        settings.standing().ready(control, answerer.port)
        answerer.serve(control.wake_fd, lambda: control.ending)


def ensure_present(settings: Settings, *, check_mode: bool = False) -> dict[str, t.Any]:
    """Have a server that answers there. The module's result."""
    return settings.standing().present(lambda control: _work(settings, control), check_mode=check_mode)


def ensure_absent(settings: Settings, *, check_mode: bool = False) -> dict[str, t.Any]:
    """End the server. The module's result."""
    return settings.standing().absent(check_mode=check_mode)
