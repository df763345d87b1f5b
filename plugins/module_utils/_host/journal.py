# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The record of each host setting as it was found, from which restore puts it back.

One file, ``journal.json``, replaced as a whole: written beside, flushed,
renamed, and the folder flushed too. So a crash or a full disk leaves the
old journal or the new one, and never half of either.

An entry is in one of three states:

``pending``
    noted, the change may or may not have happened (a crash in between);
``applied``
    changed and read back, ``applied`` is what was read;
``restoring``
    being put back: whatever it holds now is our doing.

Only for an applied entry can one tell that someone else changed it since.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import fcntl
import json
import os
import socket
import time
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._common.paths import JOURNAL_DIR
from ansible_collections.fastpath.bench.plugins.module_utils._host.knob import ABSENT, Knob, Value

SCHEMA = 1
PENDING = "pending"
APPLIED = "applied"
RESTORING = "restoring"
STATES = (PENDING, APPLIED, RESTORING)

_SO_NETNS_COOKIE = 71
_LOCK_WAIT_S = 10.0
_LOCK_POLL_S = 0.05


def encode(value: Value) -> dict[str, t.Any]:
    return {"absent": True} if value is ABSENT else {"value": value}


def decode(stored: dict[str, t.Any]) -> Value:
    if stored.get("absent") is True:
        return ABSENT
    return stored["value"]


@dataclasses.dataclass
class Entry:
    """One setting: what was found, and what we left."""

    kind: str
    key: str
    found: Value
    applied: Value
    state: str
    scope: str
    boot_id: str
    netns: str | None
    identity: str | None
    order: int
    time: float
    owner: str
    parts: list[str]

    @property
    def name(self) -> tuple[str, str]:
        return (self.kind, self.key)

    def as_dict(self) -> dict[str, t.Any]:
        record = dict(vars(self))
        record["found"] = encode(self.found)
        record["applied"] = encode(self.applied)
        return record

    @classmethod
    def from_dict(cls, record: dict[str, t.Any]) -> Entry:
        values = dict(record)
        values["found"] = decode(record["found"])
        values["applied"] = decode(record["applied"])
        entry = cls(**values)
        if entry.state not in STATES or not isinstance(entry.parts, list):
            raise ValueError(f"state {entry.state!r}")
        return entry


@dataclasses.dataclass(frozen=True)
class Claim:
    """The run that holds this host, from its first change to its restore.

    A run that ``held`` it has it also while nothing is changed, till it lets go or the machine restarts: between two
    set-ups a host looks as if nobody needed it.
    """

    owner: str
    since: float
    last_used: float
    held: bool = False
    boot_id: str = ""

    def age_s(self, now: float) -> float:
        return max(0.0, now - self.last_used)


@dataclasses.dataclass
class Surroundings:
    """What a running value lives in: the boot and the network namespace."""

    boot_id: str
    netns: str

    @classmethod
    def of_this_host(cls) -> Surroundings:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as stream:
            return cls(boot_id=stream.read().strip(), netns=_netns_identity())


def _netns_identity() -> str:
    """The namespace's cookie, unique until the machine restarts; its inode where kernels have no cookie."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            cookie = probe.getsockopt(socket.SOL_SOCKET, _SO_NETNS_COOKIE, 8)
        except OSError:
            return f"inode:{os.stat('/proc/self/ns/net').st_ino}"
    return f"cookie:{int.from_bytes(cookie, 'little')}"


class Journal:
    """The journal of one host. Changes need :meth:`locked`; reading does not."""

    def __init__(
        self,
        folder: str = JOURNAL_DIR,
        *,
        owner: str = "",
        part: str = "",
        surroundings: Surroundings | None = None,
        lock_wait_s: float = _LOCK_WAIT_S,
        hook: t.Callable[[str], None] | None = None,
    ) -> None:
        self.folder = folder
        self.owner = owner
        self.part = part
        self.lock_wait_s = lock_wait_s
        self.surroundings = surroundings or Surroundings.of_this_host()
        #: Called at each point where a crash would be the most unkind; for tests.
        self.hook: t.Callable[[str], None] = hook or (lambda point: None)
        self.claim: Claim | None = None
        self._entries: dict[tuple[str, str], Entry] = {}
        self._next = 1
        self._locked = False

    # Reading

    @property
    def path(self) -> str:
        return os.path.join(self.folder, "journal.json")

    def load(self) -> None:
        """Read the file. No file is an empty journal; a file that cannot be understood is an error."""
        self._entries, self.claim, self._next = {}, None, 1
        try:
            with open(self.path, encoding="utf-8") as stream:
                document = json.load(stream)
        except FileNotFoundError:
            return
        except OSError as err:
            raise BenchError(f"cannot be read: {err.strerror}", where=self.path, code="journal_unreadable") from err
        except ValueError as err:
            raise self._unreadable(str(err)) from err
        schema = document.get("schema") if isinstance(document, dict) else None
        if schema != SCHEMA:
            raise BenchError(
                f"the journal has schema {schema!r}, this version of the collection reads {SCHEMA}",
                where=self.path,
                remedy="Restore the host with the version that wrote it, or move the file away if nothing is amiss",
                code="journal_schema",
            )
        try:
            entries = [Entry.from_dict(record) for record in document["entries"]]
            self._entries = {entry.name: entry for entry in entries}
            self._next = int(document["next"])
            if document["claim"] is not None:
                self.claim = Claim(**document["claim"])
        except (KeyError, TypeError, ValueError) as err:
            self._entries, self.claim, self._next = {}, None, 1
            raise self._unreadable(f"{type(err).__name__} {err}") from err

    def _unreadable(self, why: str) -> BenchError:
        return BenchError(
            f"the journal cannot be understood ({why})",
            where=self.path,
            remedy="Nothing was changed. Compare the host with the file by hand, then move the file away",
            code="journal_unreadable",
        )

    def entries(self) -> list[Entry]:
        """All entries, oldest first."""
        return sorted(self._entries.values(), key=lambda entry: entry.order)

    def get(self, knob: Knob) -> Entry | None:
        return self._entries.get((knob.kind, knob.key))

    def is_void(self, entry: Entry) -> str | None:
        """Why an entry's state is gone by itself (another boot, another namespace), or None."""
        if entry.scope == "disk":
            return None
        if entry.boot_id != self.surroundings.boot_id:
            return "the machine was restarted since"
        if entry.scope == "net" and entry.netns != self.surroundings.netns:
            return "its network namespace is gone"
        return None

    def drop_void(self) -> list[str]:
        """Forget the entries whose state is gone; a note for each."""
        notes = []
        for entry in self.entries():
            why = self.is_void(entry)
            if why is not None:
                notes.append(f"{entry.kind} {entry.key}: {why}, nothing to restore")
                del self._entries[entry.name]
        return notes

    # The lock of one call, and the claim of one run

    @contextlib.contextmanager
    def locked(self, *, take_over: bool = False) -> t.Iterator[None]:
        """Hold the journal for one call, and read it.

        The lock is the kernel's (flock): it ends with the process that held
        it, however that ended. Its text only tells who holds it.
        """
        self._make_folder()
        path = os.path.join(self.folder, "lock")
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            self._wait_for_lock(handle, path)
            os.ftruncate(handle, 0)
            holder = {"owner": self.owner, "pid": os.getpid(), "since": time.time()}
            # Only a help for the reader: a full disk must not fail here, it fails where it matters.
            with contextlib.suppress(OSError):
                os.pwrite(handle, json.dumps(holder).encode(), 0)
            self.load()
            if not take_over:
                self.check_claim()
            self._locked = True
            yield
        finally:
            self._locked = False
            os.close(handle)

    def _make_folder(self) -> None:
        try:
            os.makedirs(self.folder, mode=0o700, exist_ok=True)
        except OSError as err:
            raise BenchError(
                f"the journal's folder cannot be made: {err.strerror}", where=self.folder, code="journal_unwritable"
            ) from err

    def _wait_for_lock(self, handle: int, path: str) -> None:
        deadline = time.monotonic() + self.lock_wait_s
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except OSError as err:
                if err.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                    raise BenchError(f"cannot be locked: {err.strerror}", where=path, code="journal_lock") from err
            if time.monotonic() >= deadline:
                raise BenchError(
                    f"another call is changing this host: {self._holder(handle)}",
                    where=path,
                    remedy="Wait until it has ended",
                    code="host_locked",
                )
            time.sleep(_LOCK_POLL_S)

    @staticmethod
    def _holder(handle: int) -> str:
        try:
            holder = json.loads(os.pread(handle, 4096, 0))
            age_s = max(0.0, time.time() - float(holder["since"]))
            return f"owner {holder['owner'] or 'none'}, process {holder['pid']}, for {age_s:.0f} s"
        except (OSError, ValueError, KeyError, TypeError):
            return "unknown process"

    def check_claim(self, now: float | None = None) -> None:
        """Refuse when another run holds this host. A claim on nothing but vanished state holds nothing."""
        if self.claim is None or self.claim.owner == self.owner:
            return
        held = self.claim.held and self.claim.boot_id == self.surroundings.boot_id
        if not held and all(self.is_void(entry) for entry in self.entries()):
            return
        moment = time.time() if now is None else now
        held_s = max(0.0, moment - self.claim.since)
        raise BenchError(
            f"this host is in use by {self.claim.owner or 'a play without an owner'}, since {held_s:.0f} s, "
            f"last change {self.claim.age_s(moment):.0f} s ago",
            where=self.folder,
            remedy="Wait for that run to end; if it is dead, restore the host (playbook fastpath.bench.restore)",
            code="host_in_use",
        )

    # Writing

    def record(
        self, found: t.Sequence[tuple[Knob, Value, Value]], beside: t.Sequence[tuple[Knob, Value, Knob]] = ()
    ) -> list[str]:
        """Note all of one call in one write, before the first change.

        The first note of a setting stays. The exception: an applied setting
        that holds neither our value nor the found one was changed by
        someone else since; then that value is the one to go back to.

        :param found: setting, value found, value wanted.
        :param beside: setting, value found, and the setting whose change may disturb it. It belongs to the same
            parts, so that both are put back together.
        :returns: a text for each setting that was changed by others or made anew.
        """
        self._need_lock()
        now = time.time()
        notes = self.drop_void()
        for knob, value, wanted in found:
            notes += self._note(knob, value, wanted, now)
        for knob, value, cause in beside:
            notes += self._note(knob, value, value, now)
            entry, causing = self.get(knob), self.get(cause)
            if entry is not None and causing is not None:
                entry.parts += [part for part in causing.parts if part not in entry.parts]
        own = self.claim if self.claim and self.claim.owner == self.owner else None
        self.claim = self._claim(now, held=own is not None and own.held)
        self._save()
        self.hook("recorded")
        return notes

    def _claim(self, now: float, *, held: bool) -> Claim:
        since = self.claim.since if self.claim and self.claim.owner == self.owner else now
        return Claim(self.owner, since, now, held, self.surroundings.boot_id)

    def hold(self) -> None:
        """Have the host for this owner until :meth:`release`, also while nothing is changed on it."""
        self._need_lock()
        self.claim = self._claim(time.time(), held=True)
        self._save()

    def _note(self, knob: Knob, value: Value, wanted: Value, now: float) -> list[str]:
        notes = []
        entry = self.get(knob)
        if entry is not None and entry.identity != knob.identity():
            notes.append(f"{knob}: it was made anew since, its old value is gone")
            entry = None
        if entry is None:
            self._add(knob, value, wanted, now)
            return notes
        if entry.state == APPLIED and not knob.same(value, entry.applied) and not knob.same(value, entry.found):
            notes.append(
                f"{knob}: someone else changed it from {entry.applied!r} to {value!r} since; "
                "restore will go back to their value"
            )
            entry.found = value
        entry.state = PENDING
        entry.applied = wanted
        if self.part not in entry.parts:
            entry.parts.append(self.part)
        return notes

    def _add(self, knob: Knob, value: Value, wanted: Value, now: float) -> None:
        self._entries[(knob.kind, knob.key)] = Entry(
            kind=knob.kind,
            key=knob.key,
            found=value,
            applied=wanted,
            state=PENDING,
            scope=knob.scope,
            boot_id=self.surroundings.boot_id,
            netns=self.surroundings.netns if knob.scope == "net" else None,
            identity=knob.identity(),
            order=self._next,
            time=now,
            owner=self.owner,
            parts=[self.part],
        )
        self._next += 1

    def settle(self, now_is: t.Sequence[tuple[Knob, Value]]) -> None:
        """After the change: what each noted setting holds now. One that is as found needs no entry any more."""
        self._need_lock()
        for knob, value in now_is:
            entry = self.get(knob)
            if entry is None:
                continue
            if knob.same(value, entry.found):
                del self._entries[entry.name]
            else:
                entry.applied = value
                entry.state = APPLIED
        self._release_when_empty()
        self._save()
        self.hook("settled")

    def begin_restore(self, entries: t.Iterable[Entry], beside: t.Iterable[tuple[Knob, Value]] = ()) -> None:
        """From here on, until :meth:`finish_restore`, these settings are ours whatever they hold.

        :param beside: settings that the way back may disturb, with what they hold and are to hold after.
        """
        self._need_lock()
        for entry in entries:
            entry.state = RESTORING
        for knob, value in beside:
            other = self.get(knob)
            if other is not None:
                other.state = PENDING  # another part's: for the time being it may hold anything
                continue
            self._add(knob, value, value, time.time())
            noted = self._entries[(knob.kind, knob.key)]
            noted.state, noted.parts = RESTORING, []
        self._save()
        self.hook("restore_begun")

    def finish_restore(self, done: t.Iterable[tuple[str, str]], others: t.Iterable[tuple[Knob, Value]]) -> None:
        """Forget what is back; ``others`` are another part's, with what they hold now."""
        self._need_lock()
        for name in done:
            self._entries.pop(name, None)
        for knob, value in others:
            entry = self.get(knob)
            if entry is not None:
                entry.applied = value
                entry.state = APPLIED
        self._release_when_empty()
        self._save()
        self.hook("restore_finished")

    def release(self) -> None:
        """Give the host free although entries remain (conflicts that were reported)."""
        self._need_lock()
        self.claim = None
        self._save()

    def _release_when_empty(self) -> None:
        if not self._entries and not (self.claim and self.claim.held):
            self.claim = None

    def _need_lock(self) -> None:
        if not self._locked:
            raise RuntimeError("the journal is written only under its lock")

    def _save(self) -> None:
        document = {
            "schema": SCHEMA,
            "claim": None if self.claim is None else dataclasses.asdict(self.claim),
            "next": self._next,
            "entries": [entry.as_dict() for entry in self.entries()],
        }
        fresh = self.path + ".new"
        try:
            handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            try:
                _write_all(handle, json.dumps(document, indent=1, sort_keys=True).encode("utf-8", "surrogateescape"))
                os.fsync(handle)
            finally:
                os.close(handle)
            self.hook("before_rename")
            os.rename(fresh, self.path)
            folder = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        except OSError as err:
            with contextlib.suppress(OSError):
                os.unlink(fresh)
            raise BenchError(
                f"the journal cannot be written: {err.strerror}",
                where=self.path,
                remedy="Make room on that disk"
                if err.errno in (errno.ENOSPC, errno.EDQUOT)
                else "The folder must be writable for root",
                code="journal_disk_full" if err.errno in (errno.ENOSPC, errno.EDQUOT) else "journal_unwritable",
            ) from err


def _write_all(handle: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]
