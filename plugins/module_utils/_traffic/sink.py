# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The receiver of a load: counts datagrams on some addresses, and tells the sender over TCP how many there were.

One number is the port of both. It keeps no state between questions, so that any number of searches may use it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import json
import select
import socket
import time
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._common.paths import SINK_DIR
from ansible_collections.fastpath.bench.plugins.module_utils._host import background, standing
from ansible_collections.fastpath.bench.plugins.module_utils._host.path_wire import checksum_errors, family_of
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.counting import CountingSocket

MAGIC = "fastpath-sink-1"
_LINE_LIMIT = 4096
_BACKLOG = 16
#: Often enough for 32 bits at any rate that a host can take.
_READ_EVERY_S = 60.0


@dataclasses.dataclass(frozen=True)
class Settings:
    """Where it counts. Port 0 lets the kernel choose."""

    name: str = "default"
    bind_addresses: tuple[str, ...] = ("0.0.0.0",)
    port: int = 0
    lifetime_s: float = 7200.0
    directory: str = SINK_DIR

    def check(self) -> None:
        standing.check(self.name, self.port, self.lifetime_s)
        for address in self.bind_addresses:
            family_of(address)
        if not self.bind_addresses:
            raise BenchError("there is no address", where="option bind_addresses", code="bad_option")

    def standing(self) -> standing.Standing:
        return standing.Standing(
            self.directory, self.name, self.port, self.lifetime_s, "fastpath-sink", list(self.bind_addresses)
        )


class Sink:
    """The sockets, and the answers."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.listeners: dict[socket.socket, CountingSocket] = {}
        self.open: dict[socket.socket, tuple[CountingSocket, bytearray]] = {}
        self.port = self._bind()

    def _bind(self) -> int:
        # A port that is free for TCP may be taken for UDP: then the kernel chooses another.
        for last in (*[False] * 19, True):
            try:
                return self._bind_all()
            except OSError as error:
                self.close()
                if error.errno == errno.EADDRINUSE and self.settings.port == 0 and not last:
                    continue
                raise BenchError(
                    f"cannot count on {', '.join(self.settings.bind_addresses)} port {self.settings.port or '(any)'}: "
                    f"{error.strerror}",
                    where="options bind_addresses and port",
                    remedy="The addresses must be this host's own, and the port free",
                    code="cannot_listen",
                ) from error
        raise AssertionError("the last try returns or raises")

    def _bind_all(self) -> int:
        port = self.settings.port
        for address in self.settings.bind_addresses:
            listener = standing.listen(address, port, _BACKLOG)
            with contextlib.ExitStack() as undo:
                undo.callback(listener.close)
                port = listener.getsockname()[1]
                self.listeners[listener] = CountingSocket(address, port)
                undo.pop_all()
        return port

    def serve(self, wake_fd: int, ending: t.Callable[[], bool], until: float) -> None:
        while not ending():
            left = min(_READ_EVERY_S, max(0.0, until - time.monotonic()))
            for counter in self.listeners.values():
                counter.update()
            sources: list[int | socket.socket] = [wake_fd, *self.listeners, *self.open]
            for source in select.select(sources, [], [], left)[0]:
                if source in self.listeners:
                    self._accept(source)
                elif source in self.open:
                    self._answer(source)

    def _accept(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):  # it was gone before it was taken
            connection, _peer = listener.accept()
            connection.setblocking(False)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.open[connection] = (self.listeners[listener], bytearray())

    def _answer(self, connection: socket.socket) -> None:
        counter, waiting = self.open[connection]
        try:
            data = connection.recv(_LINE_LIMIT)
            waiting += data
            if not data or len(waiting) > _LINE_LIMIT:
                raise ConnectionError
            while b"\n" in waiting:
                line, _newline, rest = bytes(waiting).partition(b"\n")
                waiting[:] = rest
                if line.decode("ascii", "replace").strip() != MAGIC:
                    raise ConnectionError
                answer = {"magic": MAGIC, "datagrams": counter.total, "checksum_errors": _checksum_errors()}
                connection.send(json.dumps(answer).encode() + b"\n")
        except OSError:  # the client went away or is none of ours; it says itself what it missed
            del self.open[connection]
            connection.close()

    def close(self) -> None:
        for listener, counter in self.listeners.items():
            listener.close()
            counter.close()
        for connection in self.open:
            connection.close()
        self.listeners, self.open = {}, {}


def _checksum_errors() -> int:
    found = checksum_errors()
    return (found["udp"] or 0) + (found["udp6"] or 0)


@dataclasses.dataclass(frozen=True)
class Reading:
    """What a sink has counted since it was started."""

    datagrams: int
    #: Of the whole host: they are counted as datagrams too, but did not arrive as they were sent.
    checksum_errors: int


class LocalSink:
    """Counts in this process, for a load that comes to this host itself."""

    def __init__(self, address: str) -> None:
        self._socket = CountingSocket(address)

    @property
    def port(self) -> int:
        return self._socket.port

    def read(self) -> Reading:
        return Reading(self._socket.total, _checksum_errors())

    def close(self) -> None:
        self._socket.close()


class SinkClient:
    """Asks a sink. The connection stays open, and is made anew when it broke."""

    def __init__(self, address: str, port: int, *, bind: str | None = None, timeout_s: float = 3.0) -> None:
        self._address = address
        self._port = port
        self._bind = bind
        self._timeout_s = timeout_s
        self._connection: socket.socket | None = None

    def read(self) -> Reading:
        """The counts now.

        :raises BenchError: the sink does not answer.
        """
        for last in (False, True):
            try:
                return self._ask()
            except (OSError, ValueError, KeyError) as error:
                self.close()
                if last:
                    raise BenchError(
                        f"the sink at {self._address} port {self._port} does not answer: {error}",
                        remedy="Start it on the receiver with fastpath.bench.traffic_sink, and let TCP to it through",
                        code="sink_silent",
                    ) from error
        raise AssertionError("the last try returns or raises")

    def _ask(self) -> Reading:
        if self._connection is None:
            source = None if self._bind is None else (self._bind, 0)
            self._connection = socket.create_connection((self._address, self._port), self._timeout_s, source)
            self._connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._connection.sendall(MAGIC.encode() + b"\n")
        data = b""
        while b"\n" not in data:
            part = self._connection.recv(_LINE_LIMIT)
            if not part:
                raise ConnectionError("it closed the connection")
            data += part
        answer = json.loads(data)
        if answer["magic"] != MAGIC:
            raise ValueError("it is none")
        return Reading(int(answer["datagrams"]), int(answer["checksum_errors"]))

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _work(settings: Settings, control: background.Control) -> None:
    sink = Sink(settings)
    settings.standing().ready(control, sink.port)
    sink.serve(control.wake_fd, lambda: control.ending, control.deadline)
    sink.close()


def ensure_present(settings: Settings, *, check_mode: bool = False) -> dict[str, t.Any]:
    """Have a sink that counts on these addresses. The module's result."""
    return settings.standing().present(lambda control: _work(settings, control), check_mode=check_mode)


def ensure_absent(settings: Settings, *, check_mode: bool = False) -> dict[str, t.Any]:
    """End the sink. The module's result."""
    return settings.standing().absent(check_mode=check_mode)
