# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan: pure, so tested without any VPP."""

from __future__ import annotations

import dataclasses
import typing as t

import pytest

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.reconcile import (
    UNKNOWN,
    Found,
    Key,
    Kind,
    Prop,
    Step,
    Wish,
    plan,
    reconcile,
)
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.session import Call


def no_calls(key: Key, handle: t.Any, before: t.Any, after: t.Any) -> list[Call]:
    return []


class Things(Kind):
    """Boxes, and things in boxes, held in a dict."""

    props = (
        Prop("size"),
        Prop("colour", 10, no_calls, default="grey"),
        Prop("room", 40, no_calls, default=0, clears={"tags": frozenset()}),
        Prop("tags", 60, no_calls, default=frozenset(), take_rank=20),
    )

    def __init__(self, *found: Found) -> None:
        self.things = {one.key: one for one in found}
        #: Writes that have no effect.
        self.deaf: set[str] = set()
        self.log: list[tuple[str, t.Any]] = []
        self.props = tuple(
            dataclasses.replace(prop, write=self._writer(prop.name)) if prop.write else prop for prop in Things.props
        )

    def _writer(self, name: str) -> t.Callable[..., list[Call]]:
        return lambda key, handle, before, after: [Call("set", {"key": key, "name": name, "value": after})]

    def read(self, session: t.Any, wishes: t.Sequence[Wish], everything: bool) -> dict[Key, Found]:
        return dict(self.things)

    def parent(self, key: Key) -> Key | None:
        return key[1] if key[0] == "in" else None

    def created_with(self, wish: Wish) -> dict[str, t.Any]:
        return {"colour": "grey"}

    def create(self, wish: Wish, handles: t.Mapping[Key, t.Any]) -> list[Call]:
        return [Call("create", {"wish": wish})]

    def handle(self, reply: t.Any) -> t.Any:
        return reply

    def remove(self, found: Found) -> list[Call]:
        return [Call("remove", {"key": found.key})]

    # it is its own session
    def batch(self, calls: t.Sequence[Call]) -> list[t.Any]:
        for call in calls:
            self._do(call.request, **call.fields)
        return [1] * len(calls)

    def _do(self, request: str, **fields: t.Any) -> None:
        if request == "remove":
            del self.things[fields["key"]]
            self.log.append(("remove", fields["key"]))
        elif request == "create":
            wish = fields["wish"]
            values = {"size": wish.values.get("size", 1), "colour": "grey", "room": 0, "tags": frozenset()}
            self.things[wish.key] = Found(wish.key, 1, values)
            self.log.append(("create", wish.key))
        else:
            self.log.append((f"{fields['name']}={fields['value']!r}", fields["key"]))
            if fields["name"] not in self.deaf:
                one = self.things[fields["key"]]
                values = {**one.values, fields["name"]: fields["value"]}
                self.things[fields["key"]] = dataclasses.replace(one, values=values)


BOX: Key = ("box", "a")
INSIDE: Key = ("in", BOX, 1)


def found(key: Key, **values: t.Any) -> Found:
    base = {"size": 1, "colour": "grey", "room": 0, "tags": frozenset()}
    return Found(key, 1, {**base, **values})


def wish(key: Key, **values: t.Any) -> Wish:
    return Wish(key, values)


def planned(things: Things, *wishes: Wish, **options: t.Any) -> t.Any:
    return plan(things, things.things, wishes, **options)


def test_nothing_to_do() -> None:
    things = Things(found(BOX, colour="red"))
    assert planned(things, wish(BOX, colour="red", size=1)).empty
    assert planned(things, wish(BOX)).empty


def test_only_what_is_asked_is_compared() -> None:
    todo = planned(Things(found(BOX, colour="red", room=3)), wish(BOX, colour="blue"))
    assert todo.sync == [Step(BOX, "colour", "red", "blue", 10)]


def test_what_is_taken_away_goes_before_anything_is_given() -> None:
    other: Key = ("box", "b")
    things = Things(found(BOX, tags=frozenset("xy")), found(other, tags=frozenset("z")))
    todo = planned(things, wish(BOX, tags=frozenset("yz")), wish(other, tags=frozenset("x")))
    assert [(step.key[1], sorted(step.after)) for step in todo.sync] == [
        ("a", ["y"]),
        ("b", []),
        ("a", ["y", "z"]),
        ("b", ["x"]),
    ]


def test_a_property_that_clears_another_gives_it_back() -> None:
    things = Things(found(BOX, tags=frozenset("xy")))
    todo = planned(things, wish(BOX, room=2))
    assert [(step.prop, step.after) for step in todo.sync] == [
        ("tags", frozenset()),
        ("room", 2),
        ("tags", frozenset("xy")),
    ]
    todo = planned(things, wish(BOX, room=2, tags=frozenset("z")))
    assert [(step.prop, step.after) for step in todo.sync] == [
        ("tags", frozenset()),
        ("room", 2),
        ("tags", frozenset("z")),
    ]


def test_a_new_object_gets_only_what_differs_from_how_it_is_made() -> None:
    todo = planned(Things(), wish(BOX, colour="grey", room=2, size=3, tags=frozenset("x")))
    assert [one.key for one in todo.create] == [BOX]
    assert [(step.prop, step.before, step.after) for step in todo.sync] == [
        ("room", 0, 2),
        ("tags", frozenset(), frozenset("x")),
    ]


def test_parents_are_made_first_and_removed_last() -> None:
    todo = planned(Things(), wish(INSIDE, colour="red"), wish(BOX, colour="red"))
    assert [one.key for one in todo.create] == [BOX, INSIDE]
    assert [step.key for step in todo.sync] == [BOX, INSIDE]
    things = Things(found(BOX), found(INSIDE))
    assert [one.key for one in planned(things, remove=[BOX]).prune] == [INSIDE, BOX]


def test_a_fixed_property_blocks_or_recreates_with_all_that_was() -> None:
    things = Things(found(BOX, size=1, colour="red", tags=frozenset("x")), found(INSIDE, colour="blue"))
    todo = planned(things, wish(BOX, size=2))
    assert [(one.prop, one.before, one.after) for one in todo.blocked] == [("size", 1, 2)]
    todo = planned(things, wish(BOX, size=2), recreate=True)
    assert not todo.blocked
    assert [one.key for one in todo.prune] == [INSIDE, BOX]
    assert [(one.key, one.values["size"]) for one in todo.create] == [(BOX, 2), (INSIDE, 1)]
    assert {(step.key, step.prop) for step in todo.sync} == {(BOX, "colour"), (BOX, "tags"), (INSIDE, "colour")}


def test_what_is_to_go_is_not_revived_with_its_parent() -> None:
    things = Things(found(BOX), found(INSIDE))
    todo = planned(things, wish(BOX, size=2), recreate=True, remove=[INSIDE])
    assert [one.key for one in todo.create] == [BOX]


def test_what_cannot_be_read_is_not_said_to_differ() -> None:
    things = Things(found(BOX, size=UNKNOWN, colour=UNKNOWN))
    assert planned(things, wish(BOX, size=2, colour="red")).empty


def test_check_mode_writes_nothing_and_says_the_same() -> None:
    things = Things(found(BOX, colour="red"))
    told = reconcile(things, t.cast("t.Any", things), [wish(BOX, colour="blue"), wish(INSIDE)], check_mode=True)
    assert things.log == []
    done = reconcile(things, t.cast("t.Any", things), [wish(BOX, colour="blue"), wish(INSIDE)])
    assert (told.plan, told.changed) == (done.plan, True)
    again = reconcile(things, t.cast("t.Any", things), [wish(BOX, colour="blue"), wish(INSIDE)])
    assert not again.changed


def test_what_does_not_read_back_fails() -> None:
    things = Things(found(BOX, colour="red"))
    things.deaf = {"colour"}
    with pytest.raises(BenchError, match="colour is 'red', asked was 'blue'") as caught:
        reconcile(things, t.cast("t.Any", things), [wish(BOX, colour="blue")])
    assert caught.value.code == "not_as_asked"
    # tried twice, not for ever
    assert len(things.log) == 2


def test_nothing_is_written_when_one_object_is_blocked() -> None:
    things = Things(found(BOX, size=1), found(INSIDE, colour="red"))
    with pytest.raises(BenchError, match="Nothing was changed"):
        reconcile(things, t.cast("t.Any", things), [wish(BOX, size=2), wish(INSIDE, colour="blue")])
    assert things.log == []
