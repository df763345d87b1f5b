# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether VPP has come up, and stays up.

systemd calls a service started that ends a moment later and is started again.
So a VPP counts as up only when one and the same process has answered over its
API and its command line for a while.
"""

from __future__ import annotations

import dataclasses
import os
import re
import subprocess
import time
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.cli import Vppctl
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.errors import VppError, VppPapiMissing
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.session import PapiSession, peer_pid

_LOG_LINES = 15
_PAUSE_S = 0.1
_PROPERTIES = (
    "LoadState",
    "ActiveState",
    "SubState",
    "Result",
    "NRestarts",
    "MainPID",
    "ActiveEnterTimestampMonotonic",
)


class NotUp(VppError):
    """VPP did not come up, or did not stay up."""


@dataclasses.dataclass(frozen=True)
class UnitState:
    """What systemd says of the service."""

    load: str
    active: str
    sub: str
    result: str
    restarts: int
    pid: int
    entered: str

    @property
    def mark(self) -> tuple[int, int, str]:
        """The same as long as it is the same start."""
        return self.restarts, self.pid, self.entered


def parse_unit(text: str) -> UnitState:
    """``systemctl show`` with the properties above."""
    values = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    number = {
        name: int(values.get(name) or 0) for name in ("NRestarts", "MainPID") if (values.get(name) or "0").isdigit()
    }
    return UnitState(
        load=values.get("LoadState", ""),
        active=values.get("ActiveState", ""),
        sub=values.get("SubState", ""),
        result=values.get("Result", ""),
        restarts=number.get("NRestarts", 0),
        pid=number.get("MainPID", 0),
        entered=values.get("ActiveEnterTimestampMonotonic", ""),
    )


def _run(arguments: list[str], timeout_s: float = 10.0) -> str:
    try:
        done = subprocess.run(arguments, stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout_s, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BenchError(f"{arguments[0]} did not answer: {error}", code="no_systemd") from error
    return done.stdout.decode("utf-8", "replace")


def unit_state(unit: str) -> UnitState:
    return parse_unit(_run(["systemctl", "show", unit, *(f"--property={name}" for name in _PROPERTIES)]))


def log_tail(unit: str, log_file: str | None) -> str:
    """The last that VPP said, for the message: its standard error is in the journal, the rest in its own log."""
    lines = _run(["journalctl", "--no-pager", "--output=cat", f"--lines={_LOG_LINES}", f"--unit={unit}"]).splitlines()
    if log_file and os.path.exists(log_file):
        with open(log_file, encoding="utf-8", errors="replace") as stream:
            lines += stream.read()[-4000:].splitlines()[-_LOG_LINES:]
    told = [line for line in lines if re.search(r"error|fail|not available|unknown|panic|abort|SIG|refus", line, re.I)]
    return "\n".join((told or lines)[-_LOG_LINES:])


@dataclasses.dataclass(frozen=True)
class Wish:
    """What to wait for."""

    unit: str | None = "vpp.service"
    api_socket: str = "/run/vpp/api.sock"
    cli: Vppctl = dataclasses.field(default_factory=Vppctl)
    timeout_s: float = 30.0
    stable_s: float = 3.0
    log_file: str | None = "/var/log/vpp/vpp.log"


def _ask(wish: Wish) -> tuple[str, str]:
    """The version as VPP tells it, and over what it was asked."""
    try:
        with PapiSession(wish.api_socket, timeout_s=5.0) as session:
            return session.version(), "api"
    except VppPapiMissing:
        # Without the Python package the command line has to do; that the API listens was seen by its socket.
        text = wish.cli.run("show version")
        found = re.match(r"vpp v(\S+)", text)
        return (found[1] if found else text.strip()), "cli"


def wait(wish: Wish) -> dict[str, t.Any]:
    """Wait until VPP is up and has been for ``stable_s``.

    :raises NotUp: it is not, with the reason and the last lines of its log.
    """
    began = time.monotonic()
    limit = began + wish.timeout_s
    first = unit_state(wish.unit) if wish.unit else None
    if first is not None and first.load == "not-found":
        raise NotUp(f"there is no unit {wish.unit}", where=wish.unit, code="unit_absent")
    starts = first.restarts if first else 0
    mark: t.Any = None
    since = began
    last: BenchError | None = None
    version = over = ""
    while True:
        state = unit_state(wish.unit) if wish.unit else None
        if state is not None and state.restarts - starts >= 2:
            raise _not_up(
                wish, f"VPP ends right after its start, again and again ({state.restarts} restarts)", "crash_loop"
            )
        if state is not None and state.active == "failed":
            raise _not_up(wish, f"the unit has failed ({state.result})", "unit_failed")
        now = time.monotonic()
        try:
            if state is not None and state.active != "active":
                raise NotUp(f"the unit is {state.active} ({state.sub})", code="not_active")
            pid = peer_pid(wish.api_socket)
            if pid is None and not os.path.exists(wish.api_socket):
                raise NotUp("there is no API socket yet", where=wish.api_socket, code="no_api")
            seen = (state.mark if state else None, pid)
            if seen != mark:
                version, over = _ask(wish)
                mark, since = seen, time.monotonic()
            elif now - since >= wish.stable_s:
                version, over = _ask(wish)
                return {
                    "version": version,
                    "asked_over": over,
                    "pid": pid or (state.pid if state else None),
                    "restarts": state.restarts if state else None,
                    "came_up_s": round(since - began, 3),
                    "stable_s": round(now - since, 3),
                }
            last = None
        except BenchError as error:
            last, mark = error, None
        if time.monotonic() >= limit:
            why = f": {last.what}" if last else f": it has not been up for {wish.stable_s:g} s on end"
            raise _not_up(wish, f"VPP is not up after {wish.timeout_s:g} s{why}", "not_up")
        time.sleep(_PAUSE_S)


def _not_up(wish: Wish, what: str, code: str) -> NotUp:
    tail = log_tail(wish.unit, wish.log_file) if wish.unit else ""
    return NotUp(what, where=wish.unit or wish.api_socket, remedy=f"Its last words: {tail or 'none'}", code=code)
