# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A service of ours that stands at a port of this host until it is ended: had, found again, ended.

What it does is its own; that there is one of a name, with what was asked for, is the same for all.
"""

from __future__ import annotations

import dataclasses
import socket
import time
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._host import background
from ansible_collections.fastpath.bench.plugins.module_utils._host.path_wire import family_of

_WEEK_S = 7 * 86400


def check(name: str, port: int, lifetime_s: float, *, longest_s: int = _WEEK_S) -> None:
    """:raises BenchError: one of what every such service is asked for is not possible."""
    background.check_name(name)
    if not 0 <= port <= 65535:
        raise BenchError(f"{port} is not a port", where="option port", code="bad_option")
    if not 1 <= lifetime_s <= longest_s:
        raise BenchError(
            f"{lifetime_s:g} s is not possible",
            where="option lifetime_s",
            remedy=f"Use 1 to {longest_s}",
            code="bad_option",
        )


def listen(address: str, port: int, backlog: int) -> socket.socket:
    """A listener of TCP that does not block, of the address' own family alone.

    :raises OSError: the address is not this host's, or the port is taken.
    """
    family = family_of(address)
    listener = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind((address, port))
        listener.listen(backlog)
        listener.setblocking(False)
    except BaseException:
        listener.close()
        raise
    return listener


def listen_at(address: str, port: int, backlog: int) -> socket.socket:
    """The same for a service with the options bind_address and port.

    :raises BenchError: names them.
    """
    try:
        return listen(address, port, backlog)
    except OSError as error:
        raise BenchError(
            f"cannot listen on {address} port {port or '(any)'}: {error.strerror}",
            where="options bind_address and port",
            remedy="The address must be this host's own, and the port free",
            code="cannot_listen",
        ) from error


@dataclasses.dataclass(frozen=True)
class Standing:
    """Which service is meant, and what one that is there must serve to be it. Port 0 is any."""

    directory: str
    name: str
    port: int
    lifetime_s: float
    title: str
    #: Anything that JSON has.
    serves: t.Any
    stop_within_s: float = 3.0

    def ready(self, control: background.Control, port: int) -> None:
        """Told by the worker once it can be used."""
        control.ready({"port": port, "serves": self.serves})

    def ensure(
        self, work: t.Callable[[background.Control], None], *, check_mode: bool = False
    ) -> tuple[bool, background.Worker | None]:
        """Have one; whether that changes anything, and the worker. None in check mode when it would be a new one."""
        workers = background.Workers(self.directory)
        worker = workers.find(self.name)
        if worker is not None and self._is(worker):
            return False, worker
        if check_mode:
            return True, None
        if worker is not None:
            workers.stop(self.name, within_s=self.stop_within_s)
        workers.sweep()
        return True, workers.start(self.name, work, lifetime_s=self.lifetime_s, title=self.title)

    def _is(self, worker: background.Worker) -> bool:
        left_s = worker.started + worker.lifetime_s - time.time()
        return (
            # one of an earlier version may have told something else
            worker.info.get("serves") == self.serves
            and self.port in (0, worker.info["port"])
            # one that is about to end is no help to somebody who needs it from now on
            and left_s > self.lifetime_s / 2
        )

    def end(self, *, check_mode: bool = False) -> bool:
        """End it; whether there was one."""
        workers = background.Workers(self.directory)
        worker = workers.find(self.name)
        if not check_mode:
            workers.stop(self.name, within_s=self.stop_within_s)
        return worker is not None

    # What a module that has no more to say returns

    def present(self, work: t.Callable[[background.Control], None], *, check_mode: bool = False) -> dict[str, t.Any]:
        changed, worker = self.ensure(work, check_mode=check_mode)
        return {"changed": changed, "port": worker.info["port"] if worker is not None else self.port or None}

    def absent(self, *, check_mode: bool = False) -> dict[str, t.Any]:
        return {"changed": self.end(check_mode=check_mode), "port": None}
