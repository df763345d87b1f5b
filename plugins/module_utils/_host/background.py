# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A bounded worker that goes on after the module that started it has answered.

The worker holds none of the module's file descriptors, has a session of its
own, and ends by itself at its deadline: a controller that is killed leaves
nothing behind for longer than that. Whoever comes later finds it through
``<directory>/<name>.pid``, which says with the process' start time which
process is meant, so that a recycled PID is never signalled.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import fcntl
import json
import os
import re
import select
import signal
import sys
import time
import traceback
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common import files
from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError

#: A worker that ignores its own deadline is killed by the kernel's alarm this much later.
ALARM_GRACE_S = 5
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_ERROR_TEXT_LIMIT = 4000


def check_name(name: str, *, option: str = "name") -> str:
    """A name becomes part of file names, so only plain ones are taken."""
    if not _NAME.fullmatch(name):
        raise BenchError(
            f"{name!r} is not a usable name",
            where=f"option {option}",
            remedy="Use 1 to 100 letters, digits, dots, underscores and hyphens, beginning with a letter or digit",
            code="bad_name",
        )
    return name


def parse_process_stat(text: str) -> tuple[str, int]:
    """State letter and start time (clock ticks) from ``/proc/<pid>/stat``.

    The command's name stands in brackets and can itself hold blanks and brackets.
    """
    fields = text[text.rfind(")") + 1 :].split()
    return fields[0], int(fields[19])


def start_ticks(pid: int) -> int | None:
    """When the process started, in clock ticks since boot; None when there is no such (living) process."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stream:
            state, ticks = parse_process_stat(stream.read())
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if state in ("Z", "X", "x") else ticks


def boot_id() -> str:
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as stream:
        return stream.read().strip()


@dataclasses.dataclass(frozen=True)
class Worker:
    """A worker as its pid file describes it."""

    name: str
    pid: int
    start_ticks: int
    boot_id: str
    started: float
    lifetime_s: float
    info: dict[str, t.Any]

    def alive(self) -> bool:
        return self.boot_id == boot_id() and start_ticks(self.pid) == self.start_ticks


@dataclasses.dataclass(frozen=True)
class Ended:
    """How a worker was found or brought to its end.

    ``how``: ``asked`` (ended on request), ``killed`` (did not end in time), ``gone``
    (had ended before without tidying up), ``absent`` (there is none by that name).
    """

    how: str
    worker: Worker | None = None
    error: str | None = None


class Control:
    """What the worker's function gets: to say that it is ready, to wait, to learn that it shall end."""

    def __init__(self, pipe: int, lifetime_s: float, publish: t.Callable[[dict[str, t.Any]], None]) -> None:
        self._pipe = pipe
        self._publish = publish
        self._asked = False
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_write, False)
        self.deadline = time.monotonic() + lifetime_s

    def _on_signal(self, _number: int, _frame: t.Any) -> None:
        self._asked = True
        with contextlib.suppress(BlockingIOError):
            os.write(self._wake_write, b"x")

    def ready(self, info: dict[str, t.Any]) -> None:
        """Publish the pid file, then let the module answer. To be called once, when the work really runs."""
        self._publish(info)
        _tell(self._pipe, "ready", info)
        os.close(self._pipe)
        self._pipe = -1

    @property
    def asked(self) -> bool:
        """Ended by request, not by its deadline."""
        return self._asked

    @property
    def ending(self) -> bool:
        return self._asked or time.monotonic() >= self.deadline

    def wait(self, seconds: float) -> bool:
        """Sleep, at most to the deadline. True when it is time to end."""
        if self.ending:
            return True
        bounded = max(0.0, min(seconds, self.deadline - time.monotonic()))
        select.select([self._wake_read], [], [], bounded)
        return self.ending

    @property
    def wake_fd(self) -> int:
        """Readable as soon as the worker is asked to end; for workers that wait on sockets."""
        return self._wake_read


class Workers:
    """The workers of one kind: those whose files lie in one directory."""

    def __init__(self, directory: str) -> None:
        self.directory = directory

    def _path(self, name: str, suffix: str) -> str:
        return os.path.join(self.directory, name + suffix)

    @contextlib.contextmanager
    def _locked(self) -> t.Iterator[None]:
        """Two modules at once must not both start, or start while the other stops."""
        os.makedirs(self.directory, mode=0o755, exist_ok=True)
        descriptor = os.open(os.path.join(self.directory, ".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            limit = time.monotonic() + 15
            while True:
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() >= limit:
                        raise BenchError(
                            "another process has held the lock for 15 s",
                            where=self.directory,
                            remedy="Look for a hanging module on this host",
                            code="locked",
                        ) from None
                    time.sleep(0.02)
            yield
        finally:
            # The forked worker has closed its copy, but unlock by name of the lock, not by closing alone.
            fcntl.flock(descriptor, fcntl.LOCK_UN)
            os.close(descriptor)

    def _load(self, name: str) -> Worker | None:
        try:
            with open(self._path(name, ".pid"), encoding="utf-8") as stream:
                record = json.load(stream)
            return Worker(**record)
        except FileNotFoundError:
            return None
        except (ValueError, TypeError):
            # Written atomically, so only a foreign or older file looks like this: as good as none.
            return None

    def find(self, name: str) -> Worker | None:
        """The living worker of that name."""
        worker = self._load(name)
        return worker if worker is not None and worker.alive() else None

    def names(self) -> list[str]:
        try:
            entries = os.listdir(self.directory)
        except FileNotFoundError:
            return []
        return sorted(entry[: -len(".pid")] for entry in entries if entry.endswith(".pid"))

    def start(
        self,
        name: str,
        work: t.Callable[[Control], None],
        *,
        lifetime_s: float,
        title: str,
        ready_within_s: float = 10.0,
    ) -> Worker:
        """Fork ``work`` into the background; returns once it has called :meth:`Control.ready`.

        A living worker of that name is left alone and returned.
        """
        check_name(name)
        with self._locked():
            found = self.find(name)
            if found is not None:
                return found
            self._forget(name)
            return self._launch(name, work, lifetime_s, title, ready_within_s)

    def _launch(
        self, name: str, work: t.Callable[[Control], None], lifetime_s: float, title: str, ready_within_s: float
    ) -> Worker:
        read_end, write_end = os.pipe()
        child = os.fork()
        if child == 0:
            # Nothing of the module may run in here: neither its exit handlers nor its buffers.
            code = 1
            try:
                os.setsid()
                if os.fork() == 0:
                    self._run_worker(name, work, lifetime_s, title, write_end)
                code = 0
            finally:
                os._exit(code)
        os.close(write_end)
        os.waitpid(child, 0)
        try:
            answers = _read_answers(read_end, ready_within_s)
        finally:
            os.close(read_end)
        worker = Worker(**answers["worker"]) if "worker" in answers else None
        if worker is not None and "ready" in answers:
            return dataclasses.replace(worker, info=answers["ready"])
        if worker is not None and worker.alive():
            _signal(worker, signal.SIGKILL)
            _wait_gone(worker, 2.0)
        remedy = self._error_text(name) or "It left no message"
        self._forget(name)
        if "error" in answers:
            raise BenchError(**answers["error"])
        raise BenchError(
            f"the background worker {name} did not get ready within {ready_within_s:g} s",
            where=self.directory,
            remedy=remedy,
            code="worker_not_ready",
        )

    def _run_worker(
        self, name: str, work: t.Callable[[Control], None], lifetime_s: float, title: str, pipe: int
    ) -> t.NoReturn:
        code = 1
        try:
            self._detach(name, title, pipe)
            pid = os.getpid()
            worker = Worker(name, pid, start_ticks(pid) or 0, boot_id(), time.time(), lifetime_s, {})
            _tell(pipe, "worker", dataclasses.asdict(worker))

            def publish(info: dict[str, t.Any]) -> None:
                record = dataclasses.asdict(dataclasses.replace(worker, info=info))
                files.replace_file(self._path(name, ".pid"), json.dumps(record).encode(), durable=False)

            control = Control(pipe, lifetime_s, publish)
            signal.signal(signal.SIGTERM, control._on_signal)
            for ignored in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
                signal.signal(ignored, signal.SIG_IGN)
            # A worker that hangs is ended by the kernel: the default action of this signal ends a process.
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(int(lifetime_s) + ALARM_GRACE_S)
            try:
                work(control)
                code = 0
            except BenchError as error:
                self._report(control, error)
            finally:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(self._path(name, ".pid"))
        finally:
            # Nobody waits for this process: its file of errors is the only place for a traceback.
            if sys.exc_info()[0] is not None:
                os.write(2, traceback.format_exc().encode())
            os._exit(code)

    def _report(self, control: Control, error: BenchError) -> None:
        os.write(2, error.message.encode() + b"\n")
        if control._pipe >= 0:
            fields = {"what": error.what, "where": error.where, "remedy": error.remedy, "code": error.code}
            _tell(control._pipe, "error", fields)

    def _detach(self, name: str, title: str, pipe: int) -> None:
        """Let go of all that belongs to the module: its pipes above all, or the connection would wait for them."""
        os.chdir("/")
        os.umask(0o077)
        null = os.open(os.devnull, os.O_RDWR)
        errors = os.open(self._path(name, ".err"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
        for source, target in ((null, 0), (null, 1), (errors, 2)):
            os.dup2(source, target)
        for entry in os.listdir("/proc/self/fd"):
            descriptor = int(entry)
            if descriptor > 2 and descriptor != pipe:
                with contextlib.suppress(OSError):  # the descriptor of this very listing is closed already
                    os.close(descriptor)
        with open("/proc/self/comm", "w", encoding="ascii") as stream:
            stream.write(title[:15])

    def _error_text(self, name: str) -> str | None:
        try:
            with open(self._path(name, ".err"), encoding="utf-8", errors="replace") as stream:
                text = stream.read().strip()
        except FileNotFoundError:
            return None
        return text[-_ERROR_TEXT_LIMIT:] or None

    def _forget(self, name: str) -> None:
        for suffix in (".pid", ".err"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._path(name, suffix))

    def stop(self, name: str, *, within_s: float = 3.0) -> Ended:
        """Ask the worker to end, kill it when it does not; afterwards there is no such worker."""
        check_name(name)
        if not os.path.isdir(self.directory):
            return Ended("absent")
        with self._locked():
            return self._end(name, within_s=within_s)

    def _end(self, name: str, *, within_s: float) -> Ended:
        worker = self._load(name)
        if worker is None:
            error = self._error_text(name)
            return Ended("gone" if os.path.exists(self._path(name, ".err")) else "absent", None, error)
        how = "gone"
        if worker.alive():
            how = "asked"
            _signal(worker, signal.SIGTERM)
            if not _wait_gone(worker, within_s):
                how = "killed"
                _signal(worker, signal.SIGKILL)
                if not _wait_gone(worker, 2.0):
                    raise BenchError(
                        f"process {worker.pid} does not end, not even by SIGKILL",
                        where=self._path(name, ".pid"),
                        remedy="It hangs in the kernel; look at its stack in /proc",
                        code="worker_stuck",
                    )
        error = self._error_text(name)
        self._forget(name)
        return Ended(how, worker, error)

    def sweep(self) -> list[str]:
        """Remove the pid files of workers that are gone; their names."""
        if not os.path.isdir(self.directory):
            return []
        with self._locked():
            stale = [name for name in self.names() if self.find(name) is None]
            for name in stale:
                self._forget(name)
        return stale


def _tell(pipe: int, word: str, what: dict[str, t.Any]) -> None:
    os.write(pipe, json.dumps({word: what}).encode() + b"\n")


def _read_answers(descriptor: int, within_s: float) -> dict[str, t.Any]:
    """What the worker said, up to ``ready`` or its end: short of that when it ended, or said nothing in time."""
    data = b""
    answers: dict[str, t.Any] = {}
    limit = time.monotonic() + within_s
    while "ready" not in answers:
        left = limit - time.monotonic()
        if left <= 0 or not select.select([descriptor], [], [], left)[0]:
            break
        chunk = os.read(descriptor, 65536)
        if not chunk:
            break
        *lines, data = (data + chunk).split(b"\n")
        for line in lines:
            answers.update(json.loads(line))
    return answers


def _signal(worker: Worker, number: signal.Signals) -> None:
    try:
        os.kill(worker.pid, number)
    except OSError as error:
        if error.errno != errno.ESRCH:
            raise BenchError(
                f"cannot signal process {worker.pid}: {error.strerror}",
                remedy="Run as the user who started it, or as root (become)",
                code="permission",
            ) from error


def _wait_gone(worker: Worker, within_s: float) -> bool:
    limit = time.monotonic() + within_s
    pause = 0.002
    while worker.alive():
        if time.monotonic() >= limit:
            return False
        time.sleep(pause)
        pause = min(pause * 1.5, 0.05)
    return True
