# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The one way by which the libraries run another program.

They work without an AnsibleModule, so they cannot use its ``run_command``. Each command gets a time limit, an
environment whose messages can be read by a program, no terminal, and a session of its own, so that all it started
ends with it.
"""

from __future__ import annotations

import dataclasses
import os
import shutil
import signal
import subprocess
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError

#: Where tools are, whoever asks: the PATH of a user, or of a job, often leaves the sbin folders out.
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

#: How much of a tool's words goes into a message; all of them are in the error.
_SHOWN = 1000

#: How long to wait for the last output of a command that was killed.
_LAST_WORDS_S = 1.0


class CommandError(BenchError):
    """A command could not be started, did not end in time, or failed. ``rc`` is None when it did not start."""

    def __init__(
        self,
        what: str,
        *,
        argv: t.Sequence[str],
        rc: int | None = None,
        stdout: str = "",
        stderr: str = "",
        remedy: str | None = None,
        code: str = "tool_failed",
    ) -> None:
        self.argv = tuple(argv)
        self.rc = rc
        self.stdout = stdout
        self.stderr = stderr
        super().__init__(what, remedy=remedy, code=code)

    def as_result(self) -> dict[str, t.Any]:
        """With the names under which Ansible's own modules return a command."""
        own = {"cmd": list(self.argv), "rc": self.rc, "stdout": self.stdout, "stderr": self.stderr}
        return {**super().as_result(), **own}


@dataclasses.dataclass(frozen=True)
class Result:
    """What a command left. ``rc`` is minus the signal's number when a signal ended it."""

    argv: tuple[str, ...]
    rc: int
    stdout: str
    stderr: str
    timed_out: bool = False
    limit_s: float = 0.0

    def ended(self) -> Result:
        """The result of a command that ended by itself, with whatever status.

        :raises CommandError: it was stopped at its time limit.
        """
        if self.timed_out:
            raise self._error(f"{' '.join(self.argv)} did not end within {self.limit_s:g} s", "tool_timeout")
        return self

    def check(self) -> Result:
        """The result of a command that did what it was asked for.

        :raises CommandError: it was stopped, or its status is not 0.
        """
        self.ended()
        if self.rc != 0:
            said = f"{' '.join(self.argv)} ended with {self.rc}: {self.message or 'no message'}"
            raise self._error(said, "tool_failed")
        return self

    @property
    def message(self) -> str:
        """What the tool said about a failure, in one line, without a full stop."""
        lines = (line.strip() for line in (self.stderr.strip() or self.stdout.strip()).splitlines())
        text = " / ".join(line for line in lines if line).rstrip(".")
        return text if len(text) <= _SHOWN else "..." + text[-_SHOWN:]

    def _error(self, what: str, code: str) -> CommandError:
        return CommandError(what, argv=self.argv, rc=self.rc, stdout=self.stdout, stderr=self.stderr, code=code)


def search_path() -> str:
    """The caller's PATH, and after it the system's folders that it leaves out."""
    folders = [folder for folder in os.environ.get("PATH", "").split(":") if folder]
    return ":".join(folders + [folder for folder in SYSTEM_PATH.split(":") if folder not in folders])


def find_program(name: str) -> str | None:
    """The full path of a tool as :func:`run` would find it; None when it is not there."""
    return shutil.which(name, path=search_path())


def run(
    argv: t.Sequence[str], *, limit_s: float, stdin: str | None = None, env: t.Mapping[str, str] | None = None
) -> Result:
    """Run a command to its end, or to the limit.

    :param stdin: what it reads; nothing when not given.
    :param env: variables beyond the caller's own.
    :raises CommandError: it cannot be started. Any other end is for :meth:`Result.ended` and :meth:`Result.check`.
    """
    return finish(start(argv, with_stdin=stdin is not None, env=env), limit_s=limit_s, stdin=stdin)


def start(
    argv: t.Sequence[str], *, with_stdin: bool = False, env: t.Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Set a command going whose output is read; for :func:`finish`, or for a caller who reads it piece by piece."""
    variables = {**os.environ, "PATH": search_path(), "LC_ALL": "C", **(env or {})}
    return _open(argv, subprocess.PIPE if with_stdin else subprocess.DEVNULL, subprocess.PIPE, env=variables)


def finish(process: subprocess.Popen[bytes], *, limit_s: float, stdin: str | None = None) -> Result:
    """Wait for a command of :func:`start`; at the limit it is killed. It never outlives this call."""
    timed_out = False
    out: bytes | None
    err: bytes | None
    try:
        try:
            data = None if stdin is None else stdin.encode("utf-8", "surrogateescape")
            out, err = process.communicate(data, timeout=max(0.0, limit_s))
        except subprocess.TimeoutExpired:
            timed_out = True
            kill(process)
            out, err = _last_words(process)
    finally:
        if process.returncode is None:
            kill(process)
            process.wait()
    text = [(part or b"").decode("utf-8", "replace") for part in (out, err)]
    argv = tuple(str(word) for word in t.cast("list[str]", process.args))
    return Result(argv, process.returncode, text[0], text[1], timed_out, limit_s)


def spawn(argv: t.Sequence[str]) -> subprocess.Popen[bytes]:
    """Set a command going that outlives its caller: it keeps none of the caller's files, terminal or variables."""
    variables = {"PATH": SYSTEM_PATH, "LC_ALL": "C"}
    return _open(argv, subprocess.DEVNULL, subprocess.DEVNULL, env=variables, cwd="/")


def kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a command and all it started that did not leave its session."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return  # it ended by itself


def _last_words(process: subprocess.Popen[bytes]) -> tuple[bytes | None, bytes | None]:
    """The output up to the end. A process that left the session may hold the pipes open for ever."""
    try:
        return process.communicate(timeout=_LAST_WORDS_S)
    except subprocess.TimeoutExpired as expired:
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()
        process.wait()
        return expired.output, expired.stderr


def _open(
    argv: t.Sequence[str], stdin: int, output: int, *, env: t.Mapping[str, str], cwd: str | None = None
) -> subprocess.Popen[bytes]:
    try:
        # ansible-test wants AnsibleModule.run_command in what modules use. These libraries work without an
        # AnsibleModule, as in action plugins, and follow a tool while it runs. This is the one place that starts any.
        return subprocess.Popen(  # pylint: disable=ansible-bad-function
            list(argv), stdin=stdin, stdout=output, stderr=output, start_new_session=True, env=env, cwd=cwd
        )
    except FileNotFoundError as error:
        raise CommandError(
            f"{argv[0]} is not installed",
            argv=argv,
            remedy=f"Install the package that has {os.path.basename(argv[0])}",
            code="tool_absent",
        ) from error
    except OSError as error:
        said = f"{argv[0]} cannot be started: {error.strerror or error}"
        raise CommandError(said, argv=argv, code="tool_refused") from error
