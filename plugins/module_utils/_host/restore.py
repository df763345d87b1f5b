# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Put a host back as its journal says it was found.

Safe to kill at any point and to run again: an entry leaves the journal only
after all settings were read back.
"""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._host import all_kinds
from ansible_collections.fastpath.bench.plugins.module_utils._host.access import Access, KnobError, NotThere
from ansible_collections.fastpath.bench.plugins.module_utils._host.journal import APPLIED, Entry, Journal, encode
from ansible_collections.fastpath.bench.plugins.module_utils._host.knob import Knob, Value, make
from ansible_collections.fastpath.bench.plugins.module_utils._host.reconcile import Change, finding, put_back

#: Held here so that every kind that a journal may name is known.
KNOWN_KINDS = all_kinds.KINDS


class NotRestored(BenchError):
    """Some settings could not be put back; they stay in the journal."""


@dataclasses.dataclass
class Restored:
    """What a restore did, or in check mode would do."""

    changes: list[Change] = dataclasses.field(default_factory=list)
    conflicts: list[dict[str, t.Any]] = dataclasses.field(default_factory=list)
    findings: list[dict[str, t.Any]] = dataclasses.field(default_factory=list)
    remaining: int = 0

    def as_result(self) -> dict[str, t.Any]:
        return {
            "changed": bool(self.changes),
            "complete": self.remaining == 0,
            "remaining": self.remaining,
            "restored": [
                {
                    "kind": change.knob.kind,
                    "key": change.knob.key,
                    "before": encode(change.before),
                    "after": encode(change.after),
                }
                for change in self.changes
            ],
            "conflicts": self.conflicts,
            "findings": self.findings,
            "diff": {
                "before": {repr(change.knob): _shown(change.before) for change in self.changes},
                "after": {repr(change.knob): _shown(change.after) for change in self.changes},
            },
        }


@dataclasses.dataclass
class _Item:
    entry: Entry
    knob: Knob
    now: Value
    there: bool


def restore(
    journal: Journal,
    access: Access,
    *,
    check_mode: bool = False,
    force: bool = False,
    take_over: bool = False,
    part: str | None = None,
    hold: bool = False,
    only_hold: bool = False,
) -> Restored:
    """Go back to the found values.

    :param force: also overwrite what someone else changed since.
    :param take_over: also restore what another run left.
    :param part: only what this part (a role) changed and no other part did too.
    :param hold: keep the host for the journal's owner afterwards.
    :param only_hold: put nothing back.
    """
    if check_mode:
        journal.load()
        if not take_over:
            journal.check_claim()
        return Restored() if only_hold else _Restorer(journal, access, force=force, part=part).judge()
    if not hold and not _has_journal(journal):
        return Restored()
    with journal.locked(take_over=take_over):
        if only_hold:
            (journal.hold if hold else journal.release)()
            return Restored(remaining=len(journal.entries()))
        return _Restorer(journal, access, force=force, part=part).run(hold=hold)


def _has_journal(journal: Journal) -> bool:
    """Without a journal there is nothing to restore, and no reason to make a folder."""
    journal.load()
    return bool(journal.entries() or journal.claim)


def _shown(value: Value) -> t.Any:
    return encode(value).get("value", "(not there)")


def _identity(knob: Knob) -> str | None:
    try:
        return knob.identity()
    except NotThere:
        return None


def _is_there(knob: Knob) -> bool:
    try:
        knob.read()
    except NotThere:
        return False
    except KnobError:
        return True
    return True


def _now(knobs: t.Iterable[Knob]) -> list[tuple[Knob, Value]]:
    """What they hold; without those that cannot be read or are not there."""
    pairs = []
    for knob in knobs:
        try:
            pairs.append((knob, knob.read()))
        except KnobError:
            continue
    return pairs


class _Restorer:
    def __init__(self, journal: Journal, access: Access, *, force: bool, part: str | None) -> None:
        self.journal = journal
        self.access = access
        self.force = force
        self.part = part
        self.result = Restored()
        self.items: list[_Item] = []
        self.gone: list[Entry] = []

    def judge(self) -> Restored:
        """Read all, and sort into: to restore, changed by someone else, gone."""
        self._drop_void()
        for entry in self._mine():
            knob = make(self.access, entry.kind, entry.key)
            if entry.identity is not None and _identity(knob) != entry.identity:
                self._gone(entry, "its interface is gone or was made anew")
                continue
            try:
                now, there = knob.read(), True
            except KnobError:
                now, there = None, False  # it may come back with another setting, or is reported below
            if there and self._is_foreign(entry, knob, now) and not self.force:
                self.result.conflicts.append(
                    {
                        "kind": entry.kind,
                        "key": entry.key,
                        "found": encode(entry.found),
                        "applied": encode(entry.applied),
                        "now": encode(now),
                    }
                )
                continue
            self.items.append(_Item(entry, knob, now, there))
        if self.result.conflicts:
            names = ", ".join(f"{c['kind']} {c['key']}" for c in self.result.conflicts)
            self.result.findings.append(
                finding(
                    "changed_by_others",
                    "warning",
                    f"someone else changed since: {names}",
                    "Left as it is; restore with force to go back to the values found first",
                )
            )
        self.items.sort(key=lambda item: (item.knob.rank_to(item.entry.found), -item.entry.order))
        self.result.changes = [
            Change(item.knob, item.now, item.entry.found)
            for item in self.items
            if item.there and not item.knob.same(item.now, item.entry.found)
        ]
        self.result.remaining = len(self.result.conflicts)
        return self.result

    def run(self, *, hold: bool = False) -> Restored:
        self.judge()
        ours = {item.entry.name for item in self.items}
        beside = self._beside(ours)
        new = {(knob.kind, knob.key) for knob, _value in beside if self.journal.get(knob) is None}
        self.journal.begin_restore([item.entry for item in self.items], beside)
        wanted = [(item.knob, item.entry.found) for item in self.items] + beside
        lost = {(row.knob.kind, row.knob.key): row for row in put_back(wanted)}
        left = [row for name, row in lost.items() if name in ours and not self._is_beside(name)]
        for name, row in lost.items():
            if name not in ours or self._is_beside(name):
                self.result.findings.append(
                    finding(
                        "lost_beside",
                        "warning",
                        f"{row.knob} cannot stay {_shown(row.value)!r}: {row.why}",
                        "It was not ours, and does not go with what was found; set it again if it is needed",
                    )
                )
        away = self._away()
        kept = {(row.knob.kind, row.knob.key) for row in left} | {item.entry.name for item in away}
        done = ((ours | new) - kept) | {entry.name for entry in self.gone}
        now = _now(knob for knob, _value in beside)
        others = [(knob, value) for knob, value in now if (knob.kind, knob.key) not in new]
        self.journal.finish_restore(done, others)
        self.result.remaining += len(left) + len(away)
        if left:
            told = "; ".join(f"{row.knob} should be {_shown(row.value)!r}: {row.why}" for row in left)
            raise NotRestored(
                f"not all could be restored: {told}",
                where=self.journal.path,
                remedy=f"{len(ours) - len(left)} others are restored, these stay in the journal: restore again later",
                code="not_restored",
            )
        if hold:
            self.journal.hold()
        elif self.part is None:
            self.journal.release()
        return self.result

    def _away(self) -> list[_Item]:
        """What is not there now, and would be back with our value: its entry stays for a later restore."""
        if self.force:
            return []
        away = [item for item in self.items if item.knob.comes_back and not _is_there(item.knob)]
        if away:
            names = ", ".join(repr(item.knob) for item in away)
            self.result.findings.append(
                finding(
                    "not_there_now",
                    "warning",
                    f"not there now, and comes back with what was set: {names}",
                    "Bring it back (a CPU that is offline) and restore again, or restore with force to forget it",
                )
            )
        return away

    def _is_beside(self, name: tuple[str, str]) -> bool:
        """An entry that only an earlier restore, which was broken off, had noted to keep."""
        return any(item.entry.name == name and not item.entry.parts for item in self.items)

    def _beside(self, ours: set[tuple[str, str]]) -> list[tuple[Knob, Value]]:
        """What the way back may disturb and is not itself put back, with what it holds."""
        beside: dict[tuple[str, str], tuple[Knob, Value]] = {}
        for item in self.items:
            if not item.there or item.knob.same(item.now, item.entry.found):
                continue
            for guard in item.knob.collateral(item.now, item.entry.found):
                name = (guard.kind, guard.key)
                if name not in ours and name not in beside:
                    for pair in _now([guard]):
                        beside[name] = pair
        return list(beside.values())

    def _mine(self) -> list[Entry]:
        if self.part is None:
            return self.journal.entries()
        mine = []
        for entry in self.journal.entries():
            if entry.parts and self.part not in entry.parts:
                continue
            if len(entry.parts) <= 1:
                mine.append(entry)
            else:
                others = ", ".join(part or "an unnamed part" for part in entry.parts if part != self.part)
                self.result.findings.append(
                    finding(
                        "shared_setting",
                        "info",
                        f"{entry.kind} {entry.key} was also changed by {others}",
                        "It is put back when that is restored too",
                    )
                )
                entry.parts.remove(self.part)
        return mine

    def _drop_void(self) -> None:
        for note in self.journal.drop_void():
            self.result.findings.append(finding("journal_void", "info", note, "Nothing to do"))

    def _gone(self, entry: Entry, why: str) -> None:
        self.gone.append(entry)
        self.result.findings.append(
            finding("journal_void", "info", f"{entry.kind} {entry.key}: {why}, nothing to restore", "Nothing to do")
        )

    @staticmethod
    def _is_foreign(entry: Entry, knob: Knob, now: Value) -> bool:
        return entry.state == APPLIED and not knob.same(now, entry.applied) and not knob.same(now, entry.found)
