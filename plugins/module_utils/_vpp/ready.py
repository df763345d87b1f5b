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
import time
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common import command
from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.cli import Vppctl
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.errors import (
    VppError,
    VppNoPermission,
    VppPapiMissing,
)
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.session import PapiSession

_LOG_LINES = 15
_PAUSE_S = 0.1
#: VPP gives its sockets to their group a moment after it made them; who may not use them after that will not.
_DENIED_S = 2.0
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

    @property
    def runs(self) -> bool:
        """Whether there is a process, or systemd is about to make one: also of a VPP that answers nobody."""
        return self.active not in ("", "inactive", "failed")


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
        return command.run(arguments, limit_s=timeout_s).ended().stdout
    except command.CommandError as error:
        raise BenchError(error.what, remedy=error.remedy, code="no_systemd") from error


def unit_state(unit: str) -> UnitState:
    return parse_unit(_run(["systemctl", "show", unit, *(f"--property={name}" for name in _PROPERTIES)]))


def running(unit: str | None) -> bool | None:
    """Whether the unit has a process or is about to; None where that cannot be told."""
    try:
        return unit_state(unit).runs if unit else None
    except BenchError:
        return None


def log_tail(unit: str, log_file: str | None) -> str:
    """The last that VPP said, for the message: its standard error is in the journal, the rest in its own log."""
    # Of this start first: what an earlier one said at its end is no reason of now.
    start = _run(["systemctl", "show", unit, "--property=InvocationID", "--value"]).strip()
    matches = [[f"_SYSTEMD_INVOCATION_ID={start}"]] if start else []
    lines: list[str] = []
    for match in [*matches, [f"--unit={unit}"]]:
        lines = (
            lines
            or _run(
                ["journalctl", "--quiet", "--no-pager", "--output=cat", f"--lines={_LOG_LINES}", *match]
            ).splitlines()
        )
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


def _ask(wish: Wish, timeout_s: float) -> tuple[str, str, int | None]:
    """The version as VPP tells it, over what it was asked, and the process that answered.

    A whole session, never a connection that is only opened and closed: VPP 26.06 takes the end of such a one for
    "try again" after an earlier session, keeps it, and its main thread spins on it until it answers nobody.
    """
    try:
        with PapiSession(wish.api_socket, timeout_s=timeout_s) as session:
            return session.version(), "api", session.pid()
    except VppPapiMissing:
        # Without the Python package the command line has to do; that the API listens is seen by its socket.
        text = dataclasses.replace(wish.cli, timeout_s=timeout_s).run("show version")
        found = re.match(r"vpp v(\S+)", text)
        return (found[1] if found else text.strip()), "cli", None


@dataclasses.dataclass
class _Watch:
    """What was seen, and since when it has been the same."""

    mark: t.Any = None
    since: float = 0.0
    version: str = ""
    over: str = ""
    pid: int | None = None


def wait(wish: Wish) -> dict[str, t.Any]:
    """Wait until VPP is up and has been for ``stable_s``.

    :raises NotUp: it is not, with the reason and the last lines of its log.
    """
    began = time.monotonic()
    limit = began + wish.timeout_s
    first = unit_state(wish.unit) if wish.unit else None
    if first is not None and first.load == "not-found":
        raise NotUp(f"there is no unit {wish.unit}", where=wish.unit, code="unit_absent")
    watch = _Watch()
    last: BenchError | None = None
    while True:
        state = unit_state(wish.unit) if wish.unit else None
        if state is not None and first is not None and state.restarts - first.restarts >= 2:
            what = f"VPP ends right after its start, again and again ({state.restarts} restarts)"
            raise _not_up(wish, what, "crash_loop")
        if state is not None and state.active == "failed":
            raise _not_up(wish, f"the unit has failed ({state.result})", "unit_failed")
        try:
            if _step(wish, watch, state, max(1.0, limit - time.monotonic())):
                return {
                    "version": watch.version,
                    "asked_over": watch.over,
                    "pid": (state.pid if state else None) or watch.pid,
                    "restarts": state.restarts if state else None,
                    "came_up_s": round(watch.since - began, 3),
                    "stable_s": round(time.monotonic() - watch.since, 3),
                }
            last = None
        except BenchError as error:
            last, watch.mark = error, None
            if isinstance(error, VppNoPermission) and time.monotonic() - began >= min(_DENIED_S, wish.timeout_s):
                raise
        if time.monotonic() >= limit:
            why = f": {last.what}" if last else f": it has not been up for {wish.stable_s:g} s on end"
            raise _not_up(wish, f"VPP is not up after {wish.timeout_s:g} s{why}", "not_up")
        time.sleep(_PAUSE_S)


def _step(wish: Wish, watch: _Watch, state: UnitState | None, timeout_s: float) -> bool:
    """Look once. True when the same VPP answers at the end of the watch as at its begin."""
    if state is not None and state.active != "active":
        raise NotUp(f"the unit is {state.active} ({state.sub})", code="not_active")
    if not os.path.exists(wish.api_socket):
        raise NotUp("there is no API socket yet", where=wish.api_socket, code="no_api")
    mark = state.mark if state else "no unit"
    if mark == watch.mark and time.monotonic() - watch.since < wish.stable_s:
        return False
    version, over, pid = _ask(wish, timeout_s)
    if (mark, pid) == (watch.mark, watch.pid):
        return True
    watch.mark, watch.pid, watch.version, watch.over = mark, pid, version, over
    watch.since = time.monotonic()
    return wish.stable_s <= 0


def _not_up(wish: Wish, what: str, code: str) -> NotUp:
    tail = log_tail(wish.unit, wish.log_file) if wish.unit else ""
    return NotUp(what, where=wish.unit or wish.api_socket, remedy=f"Its last words: {tail or 'none'}", code=code)
