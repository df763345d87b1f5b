# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The server's end of a path check: answers on TCP and UDP, and counts what reached it."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import hashlib
import json
import os
import select
import socket
import threading
import time
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common import files
from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._common.paths import PATH_DIR
from ansible_collections.fastpath.bench.plugins.module_utils._host import background, standing
from ansible_collections.fastpath.bench.plugins.module_utils._host.path_wire import (
    MAGIC,
    MOST_BYTES,
    SO_NO_CHECK,
    UDP_NO_CHECK6_TX,
    checksum_errors,
    errors_since,
    family_of,
    pattern,
    read_header,
    receive,
    udp_socket,
)

_MOST_CONNECTIONS = 16
_MOST_TOKENS = 1000


@dataclasses.dataclass(frozen=True)
class Listening:
    """What the responder listens on. Port 0 lets the kernel choose; TCP and UDP have the same."""

    name: str = "default"
    bind_addresses: tuple[str, ...] = ("0.0.0.0",)
    port: int = 0
    lifetime_s: float = 120.0
    directory: str = PATH_DIR

    def check(self) -> None:
        standing.check(self.name, self.port, self.lifetime_s, longest_s=86400)
        for address in self.bind_addresses:
            family_of(address)

    def standing(self) -> standing.Standing:
        return standing.Standing(
            self.directory, self.name, self.port, self.lifetime_s, "fastpath-path", list(self.bind_addresses)
        )


class Responder:
    """Answers probes on several addresses; keeps count of what reached it, by the client's address."""

    def __init__(self, settings: Listening) -> None:
        self.settings = settings
        self.before = checksum_errors()
        self.seen: dict[str, dict[str, t.Any]] = {}
        #: Datagrams by check: a responder can outlive many checks, good ones and bad ones.
        self.tokens: dict[str, int] = {}
        self._lock = threading.Lock()
        self._connections = threading.Semaphore(_MOST_CONNECTIONS)
        self.tcp: list[socket.socket] = []
        self.udp: list[socket.socket] = []
        self.port = self._bind()

    def _bind(self) -> int:
        # A port that the kernel chose for TCP can be in use for UDP: then it chooses another.
        for attempt in range(20):
            try:
                return self._bind_all(self.settings.port)
            except OSError as error:
                self.close()
                if error.errno == errno.EADDRINUSE and self.settings.port == 0 and attempt < 19:
                    continue
                raise BenchError(
                    f"cannot listen on {', '.join(self.settings.bind_addresses)} port {self.settings.port or '(any)'}: "
                    f"{error.strerror}",
                    where="options bind_addresses and port",
                    remedy="The addresses must be this host's own, and the port free",
                    code="cannot_listen",
                ) from error
        raise AssertionError("the loop above ends by return or raise")

    def _bind_all(self, port: int) -> int:
        for address in self.settings.bind_addresses:
            listener = standing.listen(address, port, _MOST_CONNECTIONS)
            self.tcp.append(listener)
            port = listener.getsockname()[1]
            family = family_of(address)
            datagrams = udp_socket(family)
            self.udp.append(datagrams)
            datagrams.setblocking(False)
            if family == socket.AF_INET6:
                datagrams.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            datagrams.bind((address, port))
        return port

    def close(self) -> None:
        for made in (*self.tcp, *self.udp):
            made.close()
        self.tcp, self.udp = [], []

    def count(self, address: str, what: str, amount: int = 1) -> None:
        with self._lock:
            entry = self.seen.setdefault(address, {"udp": 0, "tcp_connections": 0, "tcp_bytes": 0})
            entry[what] += amount

    def _note(self, token: str) -> None:
        with self._lock:
            self.tokens[token] = self.tokens.get(token, 0) + 1
            while len(self.tokens) > _MOST_TOKENS:
                del self.tokens[next(iter(self.tokens))]

    def serve(self, wake_fd: int, ending: t.Callable[[], bool], until: float) -> None:
        while not ending():
            left = max(0.0, until - time.monotonic())
            handles = [wake_fd, *(made.fileno() for made in (*self.tcp, *self.udp))]
            readable = set(select.select(handles, [], [], left)[0])
            for listener in self.tcp:
                if listener.fileno() in readable:
                    self._accept(listener)
            for datagrams in self.udp:
                if datagrams.fileno() in readable:
                    self._answer(datagrams)

    def _answer(self, source: socket.socket) -> None:
        try:
            arrival = receive(source)
        except OSError:
            return  # an ICMP error about an earlier answer
        try:
            ask = json.loads(arrival.data.split(b"\n", 1)[0])
            if ask["magic"] != MAGIC:
                return
            size = int(ask.get("reply_bytes", 0))
        except (ValueError, KeyError, TypeError):
            return  # not ours
        client = _plain(arrival.peer[0])
        self.count(client, "udp")
        self._note(str(ask.get("token")))
        with self._lock:
            seen = dict(self.seen[client])
        body = json.dumps(
            {
                "magic": MAGIC,
                "token": ask.get("token"),
                "kind": ask.get("kind"),
                "received_bytes": len(arrival.data),
                "interface": arrival.interface,
                "hops": arrival.hops,
                "seen": seen,
                "checksum_errors": errors_since(self.before),
            }
        ).encode()
        option = _no_checksum_option(source.family)
        try:
            source.setsockopt(*option, 0 if ask.get("checksum", True) else 1)
            source.sendto(body + b"\n" + bytes(max(0, size - len(body) - 1)), arrival.peer)
        except OSError:
            return  # nothing can be told over a path that takes nothing; the client counts the silence
        finally:
            source.setsockopt(*option, 0)

    def _accept(self, listener: socket.socket) -> None:
        try:
            connection, peer = listener.accept()
        except OSError:
            return  # it was gone before it was taken
        if not self._connections.acquire(blocking=False):
            connection.close()
            return
        threading.Thread(target=self._converse, args=(connection, _plain(peer[0])), daemon=True).start()

    def _converse(self, connection: socket.socket, client: str) -> None:
        self.count(client, "tcp_connections")
        try:
            with connection:
                connection.settimeout(10)
                _serve_transfer(connection, lambda amount: self.count(client, "tcp_bytes", amount))
        except (OSError, ValueError, KeyError, TypeError):
            return  # the client went away or was none of ours; it says itself what it missed
        finally:
            self._connections.release()

    def report(self) -> dict[str, t.Any]:
        with self._lock:
            return {
                "seen": dict(self.seen),
                "arrived": dict(self.tokens),
                "checksum_errors": errors_since(self.before),
            }


def _no_checksum_option(family: int) -> tuple[int, int]:
    if family == socket.AF_INET6:
        return socket.IPPROTO_UDP, UDP_NO_CHECK6_TX
    return socket.SOL_SOCKET, SO_NO_CHECK


def _plain(address: str) -> str:
    return address.split("%", 1)[0]


def _serve_transfer(connection: socket.socket, count: t.Callable[[int], None]) -> None:
    """The server's side of one counted transfer: take ``up`` bytes, tell what came, send ``down`` bytes."""
    line, rest = read_header(connection)
    ask = json.loads(line)
    if ask["magic"] != MAGIC:
        return
    token, up, down = str(ask["token"]), int(ask["up"]), int(ask["down"])
    if not (0 <= up <= MOST_BYTES and 0 <= down <= MOST_BYTES):
        return
    count(len(rest))
    received = hashlib.sha256(rest)
    total = len(rest)
    while total < up:
        part = connection.recv(min(262144, up - total))
        if not part:
            break
        total += len(part)
        count(len(part))
        received.update(part)
    data = pattern(token, "reverse", down)
    answer = {
        "received_bytes": total,
        "received_sha256": received.hexdigest(),
        "sent_sha256": hashlib.sha256(data).hexdigest(),
    }
    connection.sendall(json.dumps(answer).encode() + b"\n" + data)
    connection.shutdown(socket.SHUT_WR)
    connection.recv(1)  # until the client has read all and closes


def _work(settings: Listening, control: background.Control) -> None:
    responder = Responder(settings)
    settings.standing().ready(control, responder.port)
    responder.serve(control.wake_fd, lambda: control.ending, control.deadline)
    files.replace_file(_report_path(settings), json.dumps(responder.report()).encode(), durable=False)
    responder.close()


def _report_path(settings: Listening) -> str:
    return os.path.join(settings.directory, settings.name + ".json")


def ensure_listening(settings: Listening, *, check_mode: bool = False) -> dict[str, t.Any]:
    """Start the responder, unless it runs with the same addresses (and port). The module's result."""
    asked = settings.standing()
    changed, worker = asked.ensure(lambda control: _work(settings, control), check_mode=check_mode)
    return {
        "changed": changed,
        "port": worker.info["port"] if worker is not None else settings.port or None,
        "pid": worker.pid if worker is not None else None,
        "bind_addresses": asked.serves,
    }


def ensure_stopped(settings: Listening, *, check_mode: bool = False) -> dict[str, t.Any]:
    """End the responder and tell what had reached it. The module's result."""
    changed = settings.standing().end(check_mode=check_mode)
    if check_mode:
        return {"changed": changed, "seen": None, "arrived": None, "checksum_errors": None}
    report: dict[str, t.Any] = {"seen": None, "arrived": None, "checksum_errors": None}
    with contextlib.suppress(FileNotFoundError), open(_report_path(settings), encoding="utf-8") as stream:
        report = json.load(stream)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(_report_path(settings))
    return {"changed": changed, **report}
