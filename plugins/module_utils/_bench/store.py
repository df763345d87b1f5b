# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Results on disk: one folder for each run, one file for each attempt at a trial.

A trial's file is written once and never changed: it appears whole or not at
all, and a second attempt gets a number of its own. So whatever moment the
controller dies at, what was measured is there and readable.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import json
import os
import pathlib
import re
import shutil
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common import files
from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError

#: The version of run.json and of the trial files. Another version is refused, never guessed at.
SCHEMA = 1

LATEST = "latest"
RUN_FILE = "run.json"
TRIALS_DIR = "trials"
RAW_DIR = "raw"
SPOOL_DIR = "spool"

# Also what keeps a name inside its folder: no slash, no leading dot.
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,179}")
_TRIAL_FILE = re.compile(r"(?P<point_id>.+)-r(?P<repetition>[0-9]+)-a(?P<attempt>[0-9]+)\.json")
_FULL = {errno.ENOSPC, errno.EDQUOT}
_NO_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}


class StoreFullError(BenchError):
    """The results could not be written because the disk or the quota is full."""


class SchemaError(BenchError):
    """A file was written by another version of the collection."""


@dataclasses.dataclass(frozen=True, order=True)
class TrialName:
    """Which trial a file holds, as its name says."""

    point_id: str
    repetition: int
    attempt: int

    @property
    def filename(self) -> str:
        return f"{self.point_id}-r{self.repetition}-a{self.attempt}.json"

    @classmethod
    def parse(cls, filename: str) -> TrialName | None:
        """None when the file is no trial: a temporary file, or something a user put there."""
        match = _TRIAL_FILE.fullmatch(filename)
        if match is None:
            return None
        return cls(match["point_id"], int(match["repetition"]), int(match["attempt"]))


@dataclasses.dataclass(frozen=True)
class Unreadable:
    """A trial file that could not be used, and why."""

    name: TrialName
    path: str
    why: str


def check_name(name: str, what: str) -> str:
    """Return ``name`` when it can be a file's name; refuse whatever could leave the results folder."""
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name == LATEST:
        raise BenchError(
            f"{name!r} cannot be a {what}",
            remedy="Use letters, digits, '_', '-' and '.', starting with a letter, a digit or '_', at most 180 of them"
            + (f", and not '{LATEST}'" if what == "run id" else ""),
            code="bad_name",
        )
    return name


class RunStore:
    """The folder of one run. Use :meth:`create` or :meth:`open`."""

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path
        self.run_id = path.name

    # -- open and create ------------------------------------------------------------------------------------------

    @classmethod
    def create(cls, results_dir: str | os.PathLike[str], run_id: str, run: t.Mapping[str, t.Any]) -> RunStore:
        """Make the folder of a new run, write its run.json, and point ``latest`` at it."""
        root = pathlib.Path(results_dir)
        path = root / check_name(run_id, "run id")
        with explained(path):
            (path / TRIALS_DIR).mkdir(parents=True, exist_ok=True)
            (path / RAW_DIR).mkdir(exist_ok=True)
        store = cls(path)
        # The folder alone is no run: a controller killed right after mkdir leaves one that may be used again.
        if (path / RUN_FILE).exists():
            raise BenchError(
                f"run {run_id!r} exists already",
                where=str(path),
                remedy="Resume it, or choose another run id",
                code="run_exists",
            )
        store.write_run(run)
        with explained(root):
            _point_latest_at(root, run_id)
        return store

    @classmethod
    def open(cls, results_dir: str | os.PathLike[str], run_id: str | None = None) -> RunStore:
        """Open a run that exists; without an id, or with ``latest``, the one that was started last."""
        root = pathlib.Path(results_dir)
        if not run_id or run_id == LATEST:
            run_id = _latest_of(root)
        path = root / check_name(run_id, "run id")
        if not (path / RUN_FILE).is_file():
            raise BenchError(f"there is no run {run_id!r}", where=str(root), remedy=_what_exists(root), code="no_run")
        store = cls(path)
        store.read_run()
        return store

    def remove(self) -> None:
        """Remove the run, and let ``latest`` be the one that was made before it."""
        root = self.path.parent
        with explained(self.path):
            shutil.rmtree(self.path)
        if os.path.islink(root / LATEST) and os.readlink(root / LATEST) == self.run_id:
            others = [path for path in root.glob(f"*/{RUN_FILE}") if path.parent.name != LATEST]
            with explained(root):
                if others:
                    _point_latest_at(root, max(others, key=lambda path: path.stat().st_mtime).parent.name)
                else:
                    (root / LATEST).unlink()

    # -- run.json -------------------------------------------------------------------------------------------------

    def read_run(self) -> dict[str, t.Any]:
        """The run's description; refused when another schema version wrote it."""
        path = self.path / RUN_FILE
        try:
            run = json.loads(path.read_bytes())
        except ValueError as error:
            raise BenchError(
                f"this is not the JSON of a run: {error}",
                where=str(path),
                remedy="Put the file back from a copy; the trials beside it are not touched",
                code="run_unreadable",
            ) from error
        found = run.get("schema") if isinstance(run, dict) else None
        if found != SCHEMA:
            raise SchemaError(
                f"this run has results of schema {found!r}, and this version of fastpath.bench reads schema {SCHEMA}",
                where=str(path),
                remedy="Use the version of fastpath.bench that wrote it, or start a new run under another run id",
                code="other_schema",
            )
        return t.cast("dict[str, t.Any]", run)

    def write_run(self, run: t.Mapping[str, t.Any]) -> None:
        """Write run.json whole: the one file of a run that is replaced while it goes on."""
        with explained(self.path / RUN_FILE):
            files.replace_file(self.path / RUN_FILE, encode({**run, "schema": SCHEMA, "run_id": self.run_id}))

    # -- trials ---------------------------------------------------------------------------------------------------

    def write_trial(self, trial: t.Mapping[str, t.Any]) -> pathlib.Path:
        """Store one trial under the next free attempt number, and return its path.

        The number in ``trial`` is not used: the folder decides, so that no file is ever overwritten, not even
        by two controllers at once.
        """
        point_id = check_name(trial["point_id"], "point id")
        repetition = int(trial["repetition"])
        folder = self.path / TRIALS_DIR
        with explained(folder):
            attempt = self.next_attempt(point_id, repetition)
            while True:
                name = TrialName(point_id, repetition, attempt)
                record = {**trial, "schema": SCHEMA, "run_id": self.run_id, "attempt": attempt}
                try:
                    write_new(folder / name.filename, encode(record))
                except FileExistsError:
                    attempt += 1
                    continue
                return folder / name.filename

    def next_attempt(self, point_id: str, repetition: int) -> int:
        taken = [n.attempt for n in self.names() if n.point_id == point_id and n.repetition == repetition]
        return max(taken, default=0) + 1

    def names(self) -> list[TrialName]:
        """Every attempt there is, sorted; from the names alone, so that resuming reads no file."""
        try:
            entries = os.listdir(self.path / TRIALS_DIR)
        except FileNotFoundError:
            return []
        return sorted(name for name in map(TrialName.parse, entries) if name is not None)

    def latest_names(self) -> list[TrialName]:
        """For each point and repetition the last attempt, which is the one that counts."""
        latest = {(name.point_id, name.repetition): name for name in self.names()}
        return list(latest.values())

    def read_trial(self, name: TrialName) -> dict[str, t.Any] | Unreadable:
        """One trial; a file that is broken is told as such and stops nothing."""
        path = self.path / TRIALS_DIR / name.filename
        try:
            trial = json.loads(path.read_bytes())
        except ValueError as error:
            return Unreadable(name, str(path), f"not whole JSON ({error})")
        except OSError as error:
            return Unreadable(name, str(path), f"cannot be read ({error.strerror})")
        why = _not_a_trial(trial, name)
        return Unreadable(name, str(path), why) if why else t.cast("dict[str, t.Any]", trial)

    def trials(self) -> t.Iterator[dict[str, t.Any] | Unreadable]:
        """The trials that count, one by one: a run of many thousands never lies in memory as a whole."""
        for name in self.latest_names():
            yield self.read_trial(name)

    # -- spool ----------------------------------------------------------------------------------------------------

    @property
    def spool(self) -> pathlib.Path:
        """Where the client's half of a trial lies from its end to the end of its batch."""
        return self.path / SPOOL_DIR

    def waiting(self) -> list[TrialName]:
        """Measured trials whose session was broken off before the other half of them was collected."""
        try:
            entries = os.listdir(self.spool)
        except FileNotFoundError:
            return []
        done = set(self.names())
        return sorted(name for name in map(TrialName.parse, entries) if name is not None and name not in done)

    # -- raw output -----------------------------------------------------------------------------------------------

    def write_raw(self, name: str, content: str | bytes) -> str:
        """Keep a tool's output as it came; returns the path to put into the trial's ``raw``."""
        stem, dot, suffix = check_name(name, "raw file name").rpartition(".")
        data = content.encode("utf-8", "surrogateescape") if isinstance(content, str) else content
        number = 1
        with explained(self.path / RAW_DIR):
            (self.path / RAW_DIR).mkdir(exist_ok=True)
            while True:
                try:
                    write_new(self.path / RAW_DIR / name, data)
                except FileExistsError:
                    number += 1
                    name = f"{stem}.{number}{dot}{suffix}" if dot else f"{suffix}.{number}"
                    continue
                return f"{RAW_DIR}/{name}"


# -- files --------------------------------------------------------------------------------------------------------


def encode(document: t.Mapping[str, t.Any]) -> bytes:
    """JSON as every file of a run has it. NaN and infinity are refused: they are no JSON, and no measurement."""
    return (json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


def write_new(path: pathlib.Path, data: bytes) -> None:
    """Write ``path`` whole or not at all; raises FileExistsError rather than replace a file."""
    temporary = files.write_temporary(path, data)
    try:
        try:
            os.link(temporary, path)
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            # A file system without hard links: take the name first, then fill it in one step.
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
            os.replace(temporary, path)
    finally:
        files.remove(temporary)
    files.sync_folder(path.parent)


@contextlib.contextmanager
def explained(where: pathlib.Path) -> t.Iterator[None]:
    """Turn the operating system's refusal to write into an error that says what to do."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise StoreFullError(
                f"no space is left for the results ({error.strerror})",
                where=str(where),
                remedy="Make room, or set bench_results_dir to a larger disk, and resume the run: "
                "what was stored before is whole",
                code="results_disk_full",
            ) from error
        raise BenchError(
            f"the results cannot be written ({error.strerror})",
            where=str(error.filename or where),
            remedy="Set bench_results_dir to a folder that this user may write to",
            code="results_not_writable",
        ) from error


def _point_latest_at(root: pathlib.Path, run_id: str) -> None:
    link = root / LATEST
    temporary = root / f".{LATEST}.{os.getpid()}.tmp"
    files.remove(temporary)
    temporary.symlink_to(run_id, target_is_directory=True)
    try:
        os.replace(temporary, link)
    except BaseException:
        files.remove(temporary)
        raise


def _latest_of(root: pathlib.Path) -> str:
    try:
        return os.readlink(root / LATEST)
    except OSError as error:
        raise BenchError("there is no latest run", where=str(root), remedy=_what_exists(root), code="no_run") from error


def _what_exists(root: pathlib.Path) -> str:
    try:
        runs = sorted(entry.name for entry in os.scandir(root) if (pathlib.Path(entry.path) / RUN_FILE).is_file())
    except OSError:
        return "The folder is not there: set bench_results_dir, or run playbook fastpath.bench.site first"
    runs = [name for name in runs if name != LATEST]
    if not runs:
        return "The folder holds no run: set bench_results_dir, or run playbook fastpath.bench.site first"
    shown = ", ".join(runs[-10:])
    return f"Set bench_run_id to one of those that are there: {shown}"


def _not_a_trial(trial: t.Any, name: TrialName) -> str | None:
    if not isinstance(trial, dict):
        return "holds no trial"
    if trial.get("schema") != SCHEMA:
        return f"has schema {trial.get('schema')!r}, not {SCHEMA}"
    if (trial.get("point_id"), trial.get("repetition")) != (name.point_id, name.repetition):
        return "its content belongs to another trial than its name says"
    if trial.get("status") not in ("ok", "failed", "invalid", "skipped"):
        return f"has the unknown status {trial.get('status')!r}"
    if not isinstance(trial.get("metrics"), dict):
        return "has no metrics"
    return None
