# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bring settings of a host to what is wished: read, compare, note, write, read back.

All input is judged before the first write. When a write fails, or does not
read back as asked, what this call changed is put back and the call fails:
nothing is left half applied without saying so.
"""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._host.access import (
    KnobError,
    NotSupported,
    NotThere,
    ReadOnly,
)
from ansible_collections.fastpath.bench.plugins.module_utils._host.journal import Journal, encode
from ansible_collections.fastpath.bench.plugins.module_utils._host.knob import Knob, Value

#: One pass writes what differs; a later write may disturb an earlier one, which a second pass finds.
_PASSES = 3


@dataclasses.dataclass(frozen=True)
class Wish:
    """A setting and what it should be. An optional one that cannot be had here is a finding, not a failure."""

    knob: Knob
    wish: t.Any
    optional: bool = False

    @property
    def name(self) -> tuple[str, str]:
        return (self.knob.kind, self.knob.key)


@dataclasses.dataclass(frozen=True)
class Change:
    """One difference between what is and what should be."""

    knob: Knob
    before: Value
    after: Value
    optional: bool = False

    @property
    def name(self) -> tuple[str, str]:
        return (self.knob.kind, self.knob.key)


@dataclasses.dataclass
class Outcome:
    """What a call did, or in check mode would do."""

    changes: list[Change] = dataclasses.field(default_factory=list)
    findings: list[dict[str, t.Any]] = dataclasses.field(default_factory=list)

    @property
    def changed(self) -> bool:
        return bool(self.changes)

    def as_result(self) -> dict[str, t.Any]:
        """The keyword arguments for ``AnsibleModule.exit_json``."""
        before = {repr(change.knob): _shown(change.before) for change in self.changes}
        after = {repr(change.knob): _shown(change.after) for change in self.changes}
        return {
            "changed": self.changed,
            "changes": [
                {
                    "kind": change.knob.kind,
                    "key": change.knob.key,
                    "before": encode(change.before),
                    "after": encode(change.after),
                }
                for change in self.changes
            ],
            "findings": self.findings,
            "diff": {"before": before, "after": after},
        }


def _shown(value: Value) -> t.Any:
    stored = encode(value)
    return stored.get("value", "(not there)")


def finding(code: str, severity: str, evidence: str, remedy: str) -> dict[str, t.Any]:
    """One finding in the form that trials and reports have."""
    return {"code": code, "severity": severity, "evidence": evidence, "remedy": remedy}


def plan(wishes: t.Sequence[Wish], current: t.Mapping[tuple[str, str], Value]) -> list[Change]:
    """The differences, in the order in which they must be written. Pure: it reads nothing and writes nothing."""
    changes = [
        Change(wish.knob, current[wish.name], wish.knob.resolve(current[wish.name], wish.wish), wish.optional)
        for wish in wishes
        if wish.name in current and not wish.knob.satisfied(current[wish.name], wish.wish)
    ]
    return sorted(changes, key=lambda change: change.knob.rank_to(change.after))


def reconcile(
    wishes: t.Sequence[Wish],
    journal: Journal,
    *,
    check_mode: bool = False,
    protected: t.Mapping[str, str] | None = None,
) -> Outcome:
    """Make the wishes true, or in check mode tell what that would change.

    :param protected: interface -> why it must not be changed (it carries the connection).
    """
    if check_mode:
        journal.load()
        journal.check_claim()
        return _Judge(wishes, protected or {}, check_mode=True).run()[0]
    with journal.locked():
        outcome, usable = _Judge(wishes, protected or {}, check_mode=False).run()
        if outcome.changes:
            _Applier(usable, outcome, journal).run()
        return outcome


class _Judge:
    """The reading half: every setting and every wish; all faults at once, in one error."""

    def __init__(self, wishes: t.Sequence[Wish], protected: t.Mapping[str, str], *, check_mode: bool) -> None:
        self.wishes = wishes
        self.protected = protected
        self.check_mode = check_mode
        self.outcome = Outcome()
        self.faults: list[BenchError] = []
        self.usable: list[Wish] = []
        self.missing: list[tuple[Wish, NotThere]] = []
        self.current: dict[tuple[str, str], Value] = {}

    def run(self) -> tuple[Outcome, list[Wish]]:
        _no_contradictions(self.wishes)
        for wish in self.wishes:
            self._read(wish)
        self.outcome.changes = plan(self.usable, self.current)
        self._place_missing()
        self._spare_the_connection()
        if self.faults:
            raise _joined(self.faults)
        return self.outcome, self.usable

    def _read(self, asked: Wish) -> None:
        wish = asked
        try:
            value = wish.knob.read()
            if wish.optional:
                possible, why_not = wish.knob.reduced(value, wish.wish)
                if why_not is not None:
                    _unsupported(self.outcome, wish.knob, why_not)
                wish = dataclasses.replace(wish, wish=possible)
            wish.knob.check(value, wish.wish)
        except NotThere as err:
            self.missing.append((wish, err))
        except (NotSupported, ReadOnly) as err:
            if wish.optional:
                _unsupported(self.outcome, wish.knob, err)
            else:
                self.faults.append(err)
        except BenchError as err:
            self.faults.append(err)
        else:
            self.current[wish.name] = value
            self.usable.append(wish)

    def _place_missing(self) -> None:
        making = {(change.knob.device, change.knob.kind) for change in self.outcome.changes}
        for wish, err in self.missing:
            if any((wish.knob.device, kind) in making for kind in wish.knob.made_by):
                self.usable.append(wish)  # it comes with another change of this call, and is read then
            elif wish.optional:
                _unsupported(self.outcome, wish.knob, err)
            elif self.check_mode:
                # On a bare host an earlier task, which check mode skipped, would have made it.
                _add_once(self.outcome, "not_there_yet", err)
            else:
                self.faults.append(err)

    def _spare_the_connection(self) -> None:
        for change in self.outcome.changes:
            device = change.knob.device
            if change.knob.risky and device is not None and device in self.protected:
                self.faults.append(
                    BenchError(
                        f"{change.knob.kind} would be changed on an interface that {self.protected[device]}",
                        where=device,
                        remedy="Name the testbed's interfaces, or set force when losing the connection is acceptable",
                        code="connection_interface",
                    )
                )


def _no_contradictions(wishes: t.Sequence[Wish]) -> None:
    seen: dict[tuple[str, str], t.Any] = {}
    for wish in wishes:
        if wish.name in seen and seen[wish.name] != wish.wish:
            raise BenchError(
                f"two values are asked for: {seen[wish.name]!r} and {wish.wish!r}",
                where=repr(wish.knob),
                code="contradiction",
            )
        seen[wish.name] = wish.wish


def _joined(found: list[BenchError]) -> BenchError:
    """All faults in one, each once: 64 queues that say the same say it once."""
    faults = list({fault.message: fault for fault in found}.values())
    if len(faults) == 1:
        return faults[0]
    return BenchError(
        "; ".join(fault.message.rstrip(".") for fault in faults),
        remedy="Nothing was changed",
        code=faults[0].code,
    )


def _add_once(outcome: Outcome, code: str, err: BenchError) -> None:
    remedy = err.remedy or "Without check mode this fails unless it exists by then"
    record = finding(code, "warning", f"{err.where}: {err.what}" if err.where else err.what, remedy)
    if record not in outcome.findings:
        outcome.findings.append(record)


def _unsupported(outcome: Outcome, knob: Knob, err: BenchError) -> None:
    """One finding for each kind of setting on each device, however many queues say the same."""
    bearer = knob.device or knob.key
    code = f"{err.code}:{knob.kind}:{bearer}"
    if any(found.get("id") == code for found in outcome.findings):
        return
    record = finding(
        "setting_unsupported",
        "warning",
        f"{knob.kind} {'not supported ' if isinstance(err, NotSupported) else ''}on {bearer}: {err.what}",
        err.remedy or "The measurement goes on without it",
    )
    outcome.findings.append({**record, "id": code, "kind": knob.kind, "where": bearer})


class _Applier:
    """The writing half of one call, under the journal's lock."""

    def __init__(self, wishes: t.Sequence[Wish], outcome: Outcome, journal: Journal) -> None:
        self.wishes = wishes
        self.outcome = outcome
        self.journal = journal
        #: Every setting that this call may touch, with its value before the call.
        self.before: dict[tuple[str, str], tuple[Knob, Value]] = {}
        self.given_up: set[tuple[str, str]] = set()

    def run(self) -> None:
        changes = self.outcome.changes
        try:
            for _pass in range(_PASSES):
                self._note(changes)
                for change in changes:
                    self._write(change)
                changes = self._still_missing()
                if not changes:
                    break
            else:
                self._give_up_or_fail(changes)
        except BenchError as err:
            raise self._rolled_back(err) from err
        self._settle()
        self._report()

    def _note(self, changes: t.Sequence[Change]) -> None:
        found: list[tuple[Knob, Value, Value]] = []
        beside: list[tuple[Knob, Value, Knob]] = []
        wanted = {change.name for change in changes}
        for change in changes:
            if change.name not in self.before:
                self.before[change.name] = (change.knob, change.before)
                found.append((change.knob, change.before, change.after))
        for change in changes:
            for guard in change.knob.collateral(change.before, change.after):
                name = (guard.kind, guard.key)
                if name in self.before or name in wanted:
                    continue
                try:
                    value = guard.read()
                except KnobError:
                    continue  # what cannot be read, or is not there, cannot be lost either
                self.before[name] = (guard, value)
                beside.append((guard, value, change.knob))
        if found or beside:
            for note in self.journal.record(found, beside):
                self.outcome.findings.append(
                    finding("changed_by_others", "warning", note, "Find out which service owns this setting")
                )

    def _write(self, change: Change) -> None:
        try:
            change.knob.write(change.after)
        except (NotSupported, NotThere, ReadOnly) as err:
            if not change.optional:
                raise
            _unsupported(self.outcome, change.knob, err)
            self.given_up.add(change.name)
        self.journal.hook(f"written {change.knob}")

    def _still_missing(self) -> list[Change]:
        """Read everything back, also what was right before: a write may have disturbed it."""
        current: dict[tuple[str, str], Value] = {}
        for wish in self.wishes:
            if wish.name not in self.given_up:
                current[wish.name] = wish.knob.read()
                wish.knob.check(current[wish.name], wish.wish)
        return plan(self.wishes, current)

    def _give_up_or_fail(self, changes: t.Sequence[Change]) -> None:
        for change in changes:
            if change.optional:
                err = NotSupported(f"accepted without an error, but it stays {_shown(change.before)!r}")
                _unsupported(self.outcome, change.knob, err)
        hard = [change for change in changes if not change.optional]
        if not hard:
            return
        told = "; ".join(f"{change.knob} is {change.before!r}, asked for {change.after!r}" for change in hard)
        raise BenchError(
            f"written without an error, but it does not read back as asked: {told}",
            remedy="Another service may own the setting, or the device takes only certain values",
            code="not_as_asked",
        )

    def _rolled_back(self, err: BenchError) -> BenchError:
        """Put back what this call changed; the error then says so, or says what could not be put back."""
        left = put_back(list(self.before.values()))
        lost = {(row.knob.kind, row.knob.key) for row in left}
        try:
            self.journal.settle([pair for name, pair in self.before.items() if name not in lost])
        except BenchError as second:
            return BenchError(f"{err.what}; then {second.message}", where=err.where, remedy=err.remedy, code=err.code)
        if not left:
            told = "What this call had changed was put back" if self.before else "Nothing was changed"
            return BenchError(
                err.what, where=err.where, remedy=f"{err.remedy}. {told}" if err.remedy else told, code=err.code
            )
        names = ", ".join(f"{row.knob} (should be {_shown(row.value)!r}: {row.why})" for row in left)
        return BenchError(
            f"{err.what}; and could not be put back: {names}",
            where=err.where,
            remedy="Run the playbook fastpath.bench.restore on this host",
            code="half_applied",
        )

    def _settle(self) -> None:
        now: list[tuple[Knob, Value]] = []
        for knob, value in self.before.values():
            try:
                now.append((knob, knob.read()))
            except NotThere:
                # It vanished with our change (the queues of a channel that is off): its old value stays noted.
                self.journal.hook(f"vanished {knob} {value!r}")
        self.journal.settle(now)

    def _report(self) -> None:
        """The changes as they came out, and what the kernel changed beside them."""
        wished = {wish.name for wish in self.wishes}
        changes: list[Change] = []
        beside: dict[str, list[str]] = {}
        for name, (knob, before) in self.before.items():
            try:
                after = knob.read()
            except NotThere:
                continue
            if knob.same(before, after):
                continue
            changes.append(Change(knob, before, after))
            if name not in wished:
                beside.setdefault(knob.kind, []).append(knob.key)
        for kind, keys in beside.items():
            self.outcome.findings.append(
                finding(
                    "changed_beside",
                    "info",
                    f"the kernel also changed by itself: {kind} {', '.join(sorted(keys))}",
                    "Restore puts it back; set it in the same call if it matters",
                )
            )
        self.outcome.changes = sorted(changes, key=lambda change: change.knob.rank_to(change.after))


@dataclasses.dataclass(frozen=True)
class Left:
    """A setting that could not be put back, and why."""

    knob: Knob
    value: Value
    why: str
    missing: bool


def put_back(values: t.Sequence[tuple[Knob, Value]]) -> list[Left]:
    """Write these values wherever they differ, in order, until all hold; returns those that do not.

    Several passes, as putting one back may disturb another, and something
    that is not there yet may come with a later one. What is still not there
    when all else is back was not there in the beginning either: a queue that
    had come with a change of ours, the IPv6 settings below the smallest MTU.
    """
    ordered = sorted(values, key=lambda pair: pair[0].rank_to(pair[1]))
    left: list[Left] = []
    for _pass in range(_PASSES):
        for knob, value in ordered:
            try:
                if not knob.same(knob.read(), value):
                    knob.write(value)
            except BenchError:
                continue  # judged below, by what it holds after the pass
        left = [lost for lost in (_unlike(knob, value) for knob, value in ordered) if lost is not None]
        if all(lost.missing for lost in left):
            return []
    return left


def _unlike(knob: Knob, value: Value) -> Left | None:
    try:
        now = knob.read()
        if knob.same(now, value):
            return None
        knob.write(value)
        now = knob.read()
        return None if knob.same(now, value) else Left(knob, value, f"it stays {_shown(now)!r}", missing=False)
    except BenchError as err:
        return Left(knob, value, err.message.rstrip("."), missing=isinstance(err, NotThere))
