# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""VPP's command line, for what its binary API lacks.

``vppctl`` ends with 0 whatever VPP answered, and has no time limit of its own.
So each answer's text is judged here, and a VPP that does not answer is an
error after a bounded wait.
"""

from __future__ import annotations

import dataclasses
import grp
import os
import pwd
import re
import shutil
import stat
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common import command as tool
from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.errors import (
    VppError,
    VppHung,
    VppNoPermission,
    VppNotRunning,
)

DEFAULT_SOCKET = "/run/vpp/cli.sock"
#: Beside PATH, where an installation that is no package lies.
PROGRAM_FOLDERS = ("/usr/bin", "/usr/local/bin", "/opt/vpp/bin")

_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_PROMPT = re.compile(r"^[A-Za-z0-9_.-]*vpp[A-Za-z0-9_.-]*# ?")
#: The lines that VPP greets a terminal with.
_BANNER = (
    "    _______    _        _   _____  ___ ",
    " __/ __/ _ \\  (_)__    | | / / _ \\/ _ \\",
    " _/ _// // / / / _ \\   | |/ / ___/ ___/",
    " /_/ /____(_)_/\\___/   |___/_/  /_/    ",
)
_BANNER_WORDS = {tuple(line.split()) for line in _BANNER}


class CliError(VppError):
    """VPP answered a command with an error. ``code`` says which kind, ``answer`` is its text."""

    def __init__(self, command: str, answer: str, code: str, remedy: str | None = None) -> None:
        self.command = command
        self.answer = answer
        super().__init__(f"VPP refused: {answer}", where=f"vppctl {command}", remedy=remedy, code=code)


#: What an error line of VPP means. The first that fits counts, so the particular stand before the general.
_KINDS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("already_enabled", re.compile(r"already enabled", re.I)),
    ("already_exists", re.compile(r"already exists|conflicts with|in use|failed to add \S+ on", re.I)),
    ("unknown_queue", re.compile(r"unknown queue", re.I)),
    ("unknown_worker", re.compile(r"specify valid worker|unknown worker|no such thread", re.I)),
    ("unsupported", re.compile(r"not supported|unsupported|unable to set rx-mode", re.I)),
    ("unknown_interface", re.compile(r"unknown interface|no such interface|invalid interface( name)?", re.I)),
    ("unknown_command", re.compile(r"^unknown (command|input)|no sub-commands|ambiguous", re.I)),
    (
        "unknown_input",
        re.compile(r"unknown (input|flags|parameter|argument)|parse error|expected|please specify", re.I),
    ),
    ("not_found", re.compile(r"no such file|not found|does not exist|doesn't exist", re.I)),
    ("failed", re.compile(r"fail|error|invalid|unable|cannot|can't|must|missing|unknown|not enabled|not ", re.I)),
)


def clean(text: str) -> str:
    """Take off what a terminal session leaves around the answers: banner, prompts and echoed commands, CR, colours."""
    lines = []
    for raw in text.replace("\r\n", "\n").split("\n"):
        line = _ANSI.sub("", raw).replace("\r", "").replace("\x00", "")
        if tuple(line.split()) in _BANNER_WORDS:
            continue
        if _PROMPT.match(line):
            continue  # the prompt with the echo of what was typed
        lines.append(line)
    while lines and not lines[0].strip():
        lines.pop(0)
    while lines and not lines[-1].strip():
        lines.pop()
    return "\n".join(lines) + "\n" if lines else ""


def error_line(command: str, answer: str) -> str | None:
    """The line of an answer by which VPP refused ``command``; None when there is none.

    VPP puts the full path of the command and a colon before an error, or says
    ``unknown input``. Commands may be abbreviated (``set int state``), so each
    word of the path need only begin with the word that was typed.
    """
    words = command.split()
    for line in answer.splitlines():
        if re.match(r"unknown (input|command) ?[`:'\"]", line, re.I):
            return line.strip()
        path, colon, _rest = line.partition(": ")
        parts = path.split()
        if not colon or not parts or line[0].isspace() or len(parts) > 6:
            continue
        if len(words) >= 1 and all(part.startswith(word) for part, word in zip(parts, words)):
            return line.strip()
        if " ".join(parts) == " ".join(words[: len(parts)]):
            return line.strip()
    return None


def kind_of(line: str) -> str:
    """A short stable word for an error line of VPP."""
    for code, pattern in _KINDS:
        if pattern.search(line):
            # A message that names its command knew the command, so only the rest of it was not understood.
            return "unknown_input" if code == "unknown_command" and not line.lower().startswith("unknown") else code
    return "failed"


def find_program(name: str = "vppctl", *, option: str | None = None) -> str:
    """The full path of one of VPP's programs.

    :param option: a path, or the folder of the programs, that the user gave.
    """
    if option:
        path = os.path.join(option, name) if os.path.isdir(option) else option
        if not os.access(path, os.X_OK):
            raise BenchError(f"{path} is no program that can be run", code="tool_absent")
        return path
    found = shutil.which(name) or shutil.which(name, path=os.pathsep.join(PROGRAM_FOLDERS))
    if found is None:
        raise BenchError(
            f"the program {name} is not on this host",
            remedy="Apply the role fastpath.bench.vpp, or name the folder of VPP's programs",
            code="tool_absent",
        )
    return found


@dataclasses.dataclass(frozen=True)
class Vppctl:
    """One VPP's command line.

    :param program: ``vppctl`` or the folder that it is in; looked for when not given.
    """

    socket: str = DEFAULT_SOCKET
    program: str | None = None
    timeout_s: float = 10.0

    def run(self, command: str, *, tolerate: t.Collection[str] = ()) -> str:
        """What VPP answered, cleaned.

        :param tolerate: kinds of error that the caller takes for an answer.
        :raises CliError: VPP refused the command.
        :raises BenchError: VPP was not reached or did not answer in time.
        """
        program = find_program(option=self.program)
        self._check_socket()
        arguments = [program, "-s", self.socket, *command.split()]
        try:
            done = tool.run(arguments, limit_s=self.timeout_s).ended()
        except tool.CommandError as error:
            if error.code != "tool_timeout":
                raise
            raise VppHung(
                f"VPP did not answer '{command}' within {self.timeout_s:g} s",
                where=self.socket,
                remedy="It hangs or its main thread is busy; look at its log, and restart it when it stays so",
                code="vpp_hung",
            ) from error
        if done.rc != 0:
            raise self._unreachable(done.stderr.strip() or f"vppctl ended with {done.rc}")
        answer = clean(done.stdout)
        line = error_line(command, answer)
        if line is not None:
            kind = kind_of(line)
            if kind not in tolerate:
                raise CliError(command, line, kind)
        return answer

    def _check_socket(self) -> None:
        if not os.path.exists(self.socket):
            raise self._unreachable("No such file or directory")
        if not os.access(self.socket, os.R_OK | os.W_OK):
            raise self._unreachable("Permission denied")

    def _unreachable(self, reason: str) -> VppError:
        if "Permission denied" in reason:
            return socket_denied(self.socket)
        if "refused" in reason or "No such file" in reason:
            return VppNotRunning(
                "no VPP listens there",
                where=self.socket,
                remedy="Start VPP, or name the socket that its startup.conf has in unix { cli-listen }",
                code="vpp_not_running",
            )
        return VppError(f"VPP was not reached: {reason}", where=self.socket, code="vpp_unreachable")


def socket_denied(path: str) -> VppNoPermission:
    """Who asked and whom the socket lets in: a new group holds only for sessions that began after it was given."""
    return VppNoPermission(
        f"{asking_user()} must not use the socket ({socket_owner(path)})",
        where=path,
        remedy="Run with become, or add the user to that group and log in anew: a running session does not get the new "
        "group",
        code="vpp_no_permission",
    )


def asking_user() -> str:
    uid = os.geteuid()
    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:
        name = f"uid {uid}"
    groups = []
    for gid in sorted({os.getegid(), *os.getgroups()}):
        try:
            groups.append(grp.getgrgid(gid).gr_name)
        except KeyError:
            groups.append(str(gid))
    return f"user {name} (groups {', '.join(groups)})"


def socket_owner(path: str) -> str:
    """Owner, group and mode of the socket, or of the folder that hides it."""
    for place in (path, os.path.dirname(path)):
        try:
            found = os.stat(place)
        except OSError:
            continue
        try:
            owner, group = pwd.getpwuid(found.st_uid).pw_name, grp.getgrgid(found.st_gid).gr_name
        except KeyError:
            owner, group = str(found.st_uid), str(found.st_gid)
        kind = "socket" if place == path else "its folder"
        return f"{kind} owned by user {owner}, group {group}, mode {stat.S_IMODE(found.st_mode):04o}"
    return "its owner cannot be seen either"
