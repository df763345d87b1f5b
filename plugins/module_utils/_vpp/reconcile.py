# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bring objects inside VPP to what is wished: read, plan, prune, create, sync, read back.

What differs between kinds of objects is data: a :class:`Kind` says how they
are read, made and removed, and lists their properties, each with how it is
compared and written and whether that can be done in place. The plan is a pure
function of what is and what is wished, so check mode, the difference shown
and the applying cannot disagree.
"""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.errors import VppError
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.session import Call, Reply, Session

#: What identifies an object: a tuple that starts with the name of its kind.
Key = tuple[t.Any, ...]
#: What VPP calls the object, such as its sw_if_index; only good until VPP restarts.
Handle = t.Any
Values = dict[str, t.Any]
#: VPP may change one property along with another; what is still amiss after the first pass gets one more.
_PASSES = 2


class _Unknown:
    def __repr__(self) -> str:
        return "(cannot be read from VPP)"


#: A value that VPP does not tell. It is equal to whatever is wished, as nothing else can be proven.
UNKNOWN: t.Final = _Unknown()


@dataclasses.dataclass(frozen=True)
class Prop:
    """One property of a kind of object."""

    name: str
    #: Lower is written earlier, over all objects of the call.
    rank: int = 50
    #: What to send to change it; None when only making the object anew does it.
    write: t.Callable[[Key, Handle, t.Any, t.Any], list[Call]] | None = None
    #: What ``replaced`` brings it to when nothing is asked; UNKNOWN leaves it alone.
    default: t.Any = UNKNOWN
    #: Properties that must have these values while this one is written; they get their own value back afterwards.
    clears: t.Mapping[str, t.Any] = dataclasses.field(default_factory=dict)
    #: What the wish comes to, given what is there. Addresses that are only added need it.
    resolve: t.Callable[[t.Any, t.Any], t.Any] = lambda found, wish: wish
    #: For a set of which parts can be taken away and added: what is taken goes at this rank, before anything is
    #: given to any object at ``rank``. So an address can move from one interface to another in one call.
    take_rank: int | None = None


@dataclasses.dataclass(frozen=True)
class Wish:
    """An object that should exist, with the properties that it should have; others are left alone."""

    key: Key
    values: t.Mapping[str, t.Any]


@dataclasses.dataclass(frozen=True)
class Found:
    """An object that exists."""

    key: Key
    handle: Handle
    values: t.Mapping[str, t.Any]
    #: How VPP names it, for messages.
    name: str = ""
    #: Whether it can be removed; a network card cannot.
    removable: bool = True


@dataclasses.dataclass(frozen=True)
class Step:
    """One property of one object from one value to another."""

    key: Key
    prop: str
    before: t.Any
    after: t.Any
    rank: int


@dataclasses.dataclass(frozen=True)
class Blocked:
    """A difference that only removing and making the object again can settle."""

    key: Key
    prop: str
    before: t.Any
    after: t.Any


@dataclasses.dataclass
class Plan:
    prune: list[Found] = dataclasses.field(default_factory=list)
    create: list[Wish] = dataclasses.field(default_factory=list)
    sync: list[Step] = dataclasses.field(default_factory=list)
    blocked: list[Blocked] = dataclasses.field(default_factory=list)

    @property
    def empty(self) -> bool:
        return not (self.prune or self.create or self.sync or self.blocked)


class Kind:
    """A kind of object, or several kinds that are handled together."""

    props: t.Sequence[Prop] = ()

    def read(self, session: Session, wishes: t.Sequence[Wish], everything: bool) -> dict[Key, Found]:
        """What is there: at least the objects that are wished, or all."""
        raise NotImplementedError

    def parent(self, key: Key) -> Key | None:
        """The object that this one lives in and dies with."""
        return None

    def created_with(self, wish: Wish) -> dict[str, t.Any]:
        """What a new object has before any property is written."""
        return {}

    def prepare(self, todo: Plan) -> list[Call]:
        """What must exist before anything is created or changed."""
        return []

    def create(self, wish: Wish, handles: t.Mapping[Key, Handle]) -> list[Call]:
        """What makes it; the last answer holds the handle."""
        raise NotImplementedError

    def handle(self, reply: Reply) -> Handle:
        """The handle, out of the answer."""
        raise NotImplementedError

    def remove(self, found: Found) -> list[Call]:
        """What removes it."""
        raise NotImplementedError

    def name(self, key: Key) -> str:
        """For messages and differences."""
        return " ".join(str(part) for part in key)


def plan(
    kind: Kind,
    current: t.Mapping[Key, Found],
    wishes: t.Sequence[Wish],
    *,
    remove: t.Collection[Key] = (),
    recreate: bool = False,
) -> Plan:
    """What has to be done, in order. Pure.

    :param remove: objects that must not exist. What lives in them goes too.
    :param recreate: make an object anew when a property cannot be changed in place.
    """
    result = Plan()
    by_key = {wish.key: wish for wish in wishes}
    props = {prop.name: prop for prop in kind.props}
    doomed = {key for key in remove if key in current and current[key].removable}
    anew: set[Key] = set()
    for wish in wishes:
        found = current.get(wish.key)
        if found is None or found.key in doomed:
            continue
        fixed = [
            Blocked(wish.key, name, found.values.get(name, UNKNOWN), value)
            for name, value in wish.values.items()
            if props[name].write is None and _differs(props[name], found.values.get(name, UNKNOWN), value)
        ]
        if not fixed:
            continue
        if recreate and found.removable:
            anew.add(wish.key)
        else:
            result.blocked.extend(fixed)
    gone = _with_children(kind, current, doomed | anew)
    # children first: a parent that has some may not be removable
    result.prune = [current[key] for key in sorted(gone, key=lambda key: (-_depth(kind, key), str(key)))]
    # a child of a recreated object comes back as it was, unless it is to go
    revived = {key for key in gone if key not in doomed and not _under(kind, key, doomed)}
    targets: dict[Key, Wish] = {key: Wish(key, _known(current[key].values)) for key in revived}
    for key, wish in by_key.items():
        base = dict(targets[key].values) if key in targets else {}
        targets[key] = Wish(key, {**base, **_resolved(props, current.get(key) if key in revived else None, wish)})
    for key in sorted(targets, key=lambda key: _depth(kind, key)):
        wish = targets[key]
        found = None if key in gone else current.get(key)
        if found is None:
            result.create.append(wish)
        before = found.values if found is not None else {**_defaults(kind), **kind.created_with(wish)}
        result.sync.extend(_steps(props, wish, before, new=found is None))
    # an object is ready before what lives in it
    result.sync.sort(key=lambda step: (step.rank, _depth(kind, step.key)))
    return result


def _differs(prop: Prop, found: t.Any, wish: t.Any) -> bool:
    return found is not UNKNOWN and prop.resolve(found, wish) != found


def _known(values: t.Mapping[str, t.Any]) -> Values:
    return {name: value for name, value in values.items() if value is not UNKNOWN}


def _defaults(kind: Kind) -> Values:
    return {prop.name: prop.default for prop in kind.props}


def _resolved(props: t.Mapping[str, Prop], found: Found | None, wish: Wish) -> Values:
    """What only adds is completed here when its object is made anew."""
    if found is None:
        return dict(wish.values)
    return {name: props[name].resolve(found.values.get(name, UNKNOWN), value) for name, value in wish.values.items()}


def _steps(props: t.Mapping[str, Prop], wish: Wish, before: t.Mapping[str, t.Any], *, new: bool) -> list[Step]:
    """What to write to one object. Pure."""
    now = dict(before)
    steps: list[Step] = []
    held: Values = {}
    # what clears others comes first, so that the others know what they will find
    for name in sorted(wish.values, key=lambda name: (not props[name].clears, props[name].rank)):
        prop, old = props[name], now.get(name, UNKNOWN)
        after = prop.resolve(held.get(name, old), wish.values[name])
        # what cannot be read cannot be said to differ; only a new object gets it written
        if prop.write is None or old == after or after is UNKNOWN or (old is UNKNOWN and not new):
            continue
        for other, empty in prop.clears.items():
            if now.get(other, UNKNOWN) not in (UNKNOWN, empty):
                steps.extend(_change(wish.key, props[other], now[other], empty))
                held[other], now[other] = now[other], empty
        steps.extend(_change(wish.key, prop, old, after))
    for other, value in held.items():
        if other not in wish.values:
            steps.extend(_change(wish.key, props[other], now[other], value))
    return steps


def _change(key: Key, prop: Prop, before: t.Any, after: t.Any) -> list[Step]:
    if prop.take_rank is None or before is UNKNOWN:
        return [Step(key, prop.name, before, after, prop.rank)]
    kept = before & after
    pairs = ((before, kept, prop.take_rank), (kept, after, prop.rank))
    return [Step(key, prop.name, old, new, rank) for old, new, rank in pairs if old != new]


def _with_children(kind: Kind, current: t.Mapping[Key, Found], keys: t.Collection[Key]) -> set[Key]:
    return {key for key in current if key in keys or _under(kind, key, keys)}


def _under(kind: Kind, key: Key, keys: t.Collection[Key]) -> bool:
    parent = kind.parent(key)
    while parent is not None:
        if parent in keys:
            return True
        parent = kind.parent(parent)
    return False


def _depth(kind: Kind, key: Key) -> int:
    depth, parent = 0, kind.parent(key)
    while parent is not None:
        depth, parent = depth + 1, kind.parent(parent)
    return depth


@dataclasses.dataclass
class Outcome:
    """What a call did, or in check mode would do."""

    plan: Plan
    before: dict[Key, Found]
    after: dict[Key, Found]

    @property
    def changed(self) -> bool:
        return not self.plan.empty


def apply(kind: Kind, session: Session, todo: Plan, current: t.Mapping[Key, Found]) -> dict[Key, Handle]:
    """Do what the plan says: prune, create, sync, each as few rounds as their order allows."""
    session.batch([call for found in todo.prune for call in kind.remove(found)] + kind.prepare(todo))
    removed = {found.key for found in todo.prune}
    handles = {key: found.handle for key, found in current.items() if key not in removed}
    waves: dict[int, list[Wish]] = {}
    for wish in todo.create:
        waves.setdefault(_depth(kind, wish.key), []).append(wish)
    for depth in sorted(waves):
        calls: list[Call] = []
        ends: list[tuple[Key, int]] = []
        for wish in waves[depth]:
            calls.extend(kind.create(wish, handles))
            ends.append((wish.key, len(calls) - 1))
        replies = session.batch(calls)
        handles.update({key: kind.handle(replies[end]) for key, end in ends})
    writers = {prop.name: prop.write for prop in kind.props}
    calls = []
    for step in todo.sync:
        write = writers[step.prop]
        if write is None:
            raise ValueError(f"{step.prop} cannot be written")
        calls.extend(
            call if call.where else call._replace(where=kind.name(step.key))
            for call in write(step.key, handles[step.key], step.before, step.after)
        )
    session.batch(calls)
    return handles


def reconcile(
    kind: Kind,
    session: Session,
    wishes: t.Sequence[Wish],
    *,
    also: t.Sequence[Key] = (),
    remove: t.Callable[[dict[Key, Found]], t.Collection[Key]] | None = None,
    everything: bool = False,
    recreate: bool = False,
    check_mode: bool = False,
    judge: t.Callable[[dict[Key, Found]], None] | None = None,
) -> Outcome:
    """Make the wishes true, or in check mode tell what that would change.

    :param also: objects that are read although nothing is wished of them.
    :param remove: given what is there, the objects that must go.
    :param judge: given what is there, raises when a wish can never come true.
    """
    to_read = [*wishes, *(Wish(key, {}) for key in also)]
    current = kind.read(session, to_read, everything)
    if judge is not None:
        judge(current)
    doomed = remove(current) if remove is not None else ()
    todo = plan(kind, current, wishes, remove=doomed, recreate=recreate)
    if todo.blocked:
        raise _blocked(kind, todo.blocked)
    outcome = Outcome(todo, current, current)
    if todo.empty or check_mode:
        return outcome
    left = todo
    for _dummy in range(_PASSES):
        apply(kind, session, left, outcome.after)
        outcome.after = kind.read(session, to_read, everything)
        left = plan(kind, outcome.after, wishes, remove=doomed)
        if left.empty:
            return outcome
        if left.blocked or left.create or left.prune:
            break
    raise _not_as_asked(kind, left)


def _blocked(kind: Kind, found: t.Sequence[Blocked]) -> BenchError:
    parts = [f"{kind.name(one.key)}: {one.prop} is {one.before!r}, asked is {one.after!r}" for one in found]
    return VppError(
        f"cannot be changed in place: {'; '.join(parts)}",
        remedy="With recreate it is removed and made again: traffic stops meanwhile, its routes and queue placements "
        "are lost. Nothing was changed",
        code="needs_recreate",
    )


def _not_as_asked(kind: Kind, left: Plan) -> BenchError:
    parts = [f"{kind.name(step.key)}: {step.prop} is {step.before!r}, asked was {step.after!r}" for step in left.sync]
    parts += [f"{kind.name(one.key)}: {one.prop} is {one.before!r}, asked was {one.after!r}" for one in left.blocked]
    parts += [f"{kind.name(wish.key)} is not there" for wish in left.create]
    parts += [f"{kind.name(found.key)} is still there" for found in left.prune]
    return VppError(
        f"VPP accepted everything, but reading back shows otherwise: {'; '.join(parts)}",
        remedy="See VPP's log (show logging); the driver may not support the value, or something else changes it too",
        code="not_as_asked",
    )


def show(values: t.Mapping[str, t.Any]) -> Values:
    """Values in the form of results and differences."""
    return {name: _shown(value) for name, value in values.items() if value is not UNKNOWN}


def _shown(value: t.Any) -> t.Any:
    if isinstance(value, (frozenset, set)):
        return sorted((_shown(one) for one in value), key=str)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        pairs = ((field.name, getattr(value, field.name)) for field in dataclasses.fields(value))
        return {name: _shown(one) for name, one in pairs if one is not None}
    return value


def difference(kind: Kind, outcome: Outcome) -> dict[str, t.Any]:
    """Before and after of what changes, for ``diff``, and the list of changes."""
    before: dict[str, t.Any] = {}
    after: dict[str, t.Any] = {}
    changes: list[dict[str, t.Any]] = []
    for found in outcome.plan.prune:
        name = found.name or kind.name(found.key)
        before[name] = show(found.values)
        changes.append({"name": name, "action": "remove"})
    for wish in outcome.plan.create:
        name = kind.name(wish.key)
        after[name] = show({**wish.values})
        changes.append({"name": name, "action": "create"})
    created = {wish.key for wish in outcome.plan.create}
    first: dict[tuple[Key, str], t.Any] = {}
    last: dict[tuple[Key, str], t.Any] = {}
    for step in outcome.plan.sync:
        if step.key in created:
            continue
        first.setdefault((step.key, step.prop), step.before)
        last[step.key, step.prop] = step.after
    for (key, prop), old in first.items():
        new = last[key, prop]
        if old == new:
            continue  # cleared for another property and set again
        name = outcome.before[key].name or kind.name(key)
        before.setdefault(name, {})[prop] = None if old is UNKNOWN else _shown(old)
        after.setdefault(name, {})[prop] = _shown(new)
        changes.append(
            {
                "name": name,
                "action": "set",
                "property": prop,
                "before": None if old is UNKNOWN else _shown(old),
                "after": _shown(new),
            }
        )
    return {"changes": changes, "diff": {"before": before, "after": after}}
