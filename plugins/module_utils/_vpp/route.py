# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Routes of VPP: static ones, those that its API or its command line set. All others are left alone."""

from __future__ import annotations

import contextlib
import dataclasses
import ipaddress
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.errors import VppError
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.reconcile import (
    Found,
    Handle,
    Key,
    Kind,
    Plan,
    Prop,
    Values,
    Wish,
    difference,
    reconcile,
)
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.session import NO_INDEX, Call, Reply, Session

STATES = ("merged", "replaced", "overridden", "deleted", "gathered", "rendered")
#: vnet/fib/fib_types.api of VPP 26.06.
PATH_NORMAL, PATH_DROP = 0, 2
_NO_LABEL = 0x100000
_LABELS = 16
NO_SUCH_FIB, NO_SUCH_ENTRY = -3, -6
#: VPP's names of the sources that make a route a static one.
API, CLI = "API", "CLI"


@dataclasses.dataclass(frozen=True)
class Path:
    """One way that a route leads. Several with equal preference share the traffic by their weights."""

    via: str | None = None
    interface: str | None = None
    #: Table in which a next hop without interface is looked up.
    table: int = 0
    weight: int = 1
    preference: int = 0
    drop: bool = False
    #: What this module cannot express, such as labels; never equal to anything asked.
    other: str | None = None


@dataclasses.dataclass(frozen=True)
class AddPaths:
    """Paths that should be there, whatever others are."""

    paths: frozenset[Path]


def _resolve(found: t.Any, wish: t.Any) -> t.Any:
    held = found if isinstance(found, frozenset) else frozenset()
    return held | wish.paths if isinstance(wish, AddPaths) else wish


class RouteKind(Kind):
    """Static routes. A key is ``("route", table, prefix)``; the handle is the source that VPP has it from."""

    def __init__(self, session: Session) -> None:
        self.props = (Prop("paths", 50, self._write, resolve=_resolve),)
        self.names: dict[int, str] = {}
        for row in session.call("sw_interface_dump", sw_if_index=NO_INDEX):
            self.names[row.sw_if_index] = row.interface_name
        self.indexes = {name: index for index, name in self.names.items()}
        self.sources: dict[int, tuple[str, int]] = {
            row.src.id: (row.src.name, row.src.priority) for row in session.call("fib_source_dump")
        }
        self.static = {number: name for number, (name, rank) in self.sources.items() if name in (API, CLI)}
        self.tables = {(row.table.table_id, bool(row.table.is_ip6)) for row in session.call("ip_table_dump")}
        #: Prefixes that something stronger than a static route has, and who that is.
        self.taken: dict[Key, str] = {}

    def read(self, session: Session, wishes: t.Sequence[Wish], everything: bool) -> dict[Key, Found]:
        keys = {wish.key for wish in wishes}
        # one question for each prefix, or when that is asked the whole tables, by source
        found = {route.key: route for route in self._looked_up(session, sorted(keys, key=str))}
        if everything:
            self.tables = {(row.table.table_id, bool(row.table.is_ip6)) for row in session.call("ip_table_dump")}
            found.update({route.key: route for route in self._dumped(session)})
        return found

    def _looked_up(self, session: Session, keys: t.Sequence[Key]) -> list[Found]:
        calls = [
            Call(
                "ip_route_lookup_v2",
                {"table_id": table, "exact": 1, "prefix": prefix},
                tolerated=(NO_SUCH_FIB, NO_SUCH_ENTRY),
                where=prefix,
            )
            for _kind, table, prefix in keys
        ]
        result = []
        for key, reply in zip(keys, session.batch(calls)):
            if reply.retval < 0:
                continue
            source = int(reply.route.src)
            if source in self.static:
                result.append(self._found(key, reply.route))
            elif self._stronger(source):
                self.taken[key] = self.sources[source][0]
        return result

    def _stronger(self, source: int) -> bool:
        """Whether VPP uses this source's route rather than a static one. A lower number wins."""
        priorities = [priority for name, priority in self.sources.values() if name == API]
        return source in self.sources and bool(priorities) and self.sources[source][1] < priorities[0]

    def _dumped(self, session: Session) -> list[Found]:
        calls = [
            Call("ip_route_v2_dump", {"src": source, "table": {"table_id": table, "is_ip6": is_ip6, "name": ""}})
            for table, is_ip6 in sorted(self.tables)
            # the API's last: it is the one that VPP uses when both have the prefix
            for source in sorted(self.static, reverse=True)
        ]
        routes = [one.route for records in session.batch(calls) for one in records]
        return [self._found(("route", route.table_id, str(route.prefix)), route) for route in routes]

    def _found(self, key: Key, route: Reply) -> Found:
        paths = frozenset(self._path(one, is_ip6=":" in key[2]) for one in route.paths[: route.n_paths])
        return Found(key, self.static.get(int(route.src), API), {"paths": paths}, self.name(key))

    def _path(self, one: Reply, *, is_ip6: bool) -> Path:
        kind = int(one.type)
        if kind == PATH_DROP:
            return Path(drop=True)
        if kind != PATH_NORMAL or one.n_labels:
            return Path(other=f"type {kind}, {one.n_labels} labels")
        # the next hop's family can be another than the route's
        address = one.nh.address.ip6 if int(one.proto) == 1 else one.nh.address.ip4
        interface = self.names.get(one.sw_if_index, str(one.sw_if_index)) if one.sw_if_index != NO_INDEX else None
        via = None if ipaddress.ip_address(str(address)).is_unspecified else str(address)
        if via is None and interface is None:
            return Path(other="a special path")
        table = int(one.table_id) if interface is None else 0
        return Path(via, interface, table, int(one.weight), int(one.preference))

    def created_with(self, wish: Wish) -> Values:
        return {"paths": _resolve(None, wish.values["paths"])}

    def prepare(self, todo: Plan) -> list[Call]:
        needed = {(wish.key[1], ":" in wish.key[2]) for wish in todo.create}
        return [
            Call(
                "ip_table_add_del",
                {"is_add": True, "table": {"table_id": table, "is_ip6": is_ip6, "name": ""}},
                where=f"table {table}",
            )
            for table, is_ip6 in sorted(needed - self.tables)
            if table
        ]

    def create(self, wish: Wish, handles: t.Mapping[Key, Handle]) -> list[Call]:
        return self._write(wish.key, None, frozenset(), _resolve(None, wish.values["paths"]))

    def handle(self, reply: Reply) -> Handle:
        return API

    def _write(self, key: Key, handle: Handle, before: t.Any, after: t.Any) -> list[Call]:
        # all paths in one request: VPP puts them in the place of those that the API gave before
        paths = [self._fields(path) for path in sorted(after, key=str)]
        return [self._change(key, True, paths)]

    def _change(self, key: Key, add: bool, paths: list[dict[str, t.Any]]) -> Call:
        route = {"table_id": key[1], "prefix": key[2], "src": 0, "n_paths": len(paths), "paths": paths}
        fields = {"is_add": add, "is_multipath": False, "route": route}
        return Call("ip_route_add_del_v2", fields, where=self.name(key))

    def _fields(self, path: Path) -> dict[str, t.Any]:
        is_ip6 = path.via is not None and ":" in path.via
        address = {"ip6" if is_ip6 else "ip4": path.via or "0.0.0.0"}
        return {
            "sw_if_index": NO_INDEX if path.interface is None else self.indexes[path.interface],
            "table_id": path.table,
            "rpf_id": NO_INDEX,
            "weight": path.weight,
            "preference": path.preference,
            "type": PATH_DROP if path.drop else PATH_NORMAL,
            "flags": 0,
            "proto": int(is_ip6),
            "nh": {"address": address, "via_label": _NO_LABEL, "obj_id": 0, "classify_table_index": 0},
            "n_labels": 0,
            "label_stack": [{}] * _LABELS,
        }

    def remove(self, found: Found) -> list[Call]:
        # the API's and the command line's are two routes, of which the other shows when one is gone
        line = f"ip route del {found.key[2]} table {found.key[1]}"
        return [self._change(found.key, False, []), Call("cli_inband", {"cmd": line}, where=found.name)]

    def name(self, key: Key) -> str:
        return f"{key[2]}{f' in table {key[1]}' if key[1] else ''}"


def wish_of(item: Values, position: int, state: str) -> Wish:
    """One entry of the option ``routes``."""
    where = item.get("prefix") or f"entry {position + 1}"
    try:
        network = ipaddress.ip_network(item["prefix"])
    except ValueError as err:
        remedy = None
        with contextlib.suppress(ValueError):
            remedy = f"The network is {ipaddress.ip_network(item['prefix'], strict=False)}"
        raise _bad(f"this is not a network: {err}", where, remedy) from err
    table = item.get("table") or 0
    if not 0 <= table < NO_INDEX:
        raise _bad(f"table is {table}, it can be 0 to {NO_INDEX - 1}", where)
    key = ("route", table, str(network))
    if state in ("deleted", "gathered"):
        return Wish(key, {})
    if item.get("drop"):
        if item.get("paths"):
            raise _bad("drop and paths exclude each other", where)
        return Wish(key, {"paths": frozenset({Path(drop=True)})})
    if not item.get("paths"):
        raise _bad("a route needs paths, or drop", where)
    paths = [_path_of(one, table, network.version, where) for one in item["paths"]]
    ways = [(path.via, path.interface, path.table) for path in paths]
    if len(set(ways)) < len(ways):
        raise _bad("the same next hop stands twice among the paths", where, "For more traffic on one, give it a weight")
    if state == "merged":
        return Wish(key, {"paths": AddPaths(frozenset(paths))})
    return Wish(key, {"paths": frozenset(paths)})


def _path_of(item: Values, table: int, version: int, where: str) -> Path:
    via, interface = item.get("via"), item.get("interface")
    if via is None and interface is None:
        raise _bad("a path needs via, interface or both", where)
    if via is not None:
        try:
            address = ipaddress.ip_address(via)
        except ValueError as err:
            raise _bad(f"via is not an address: {err}", where) from err
        if address.is_link_local and interface is None:
            raise _bad(f"the next hop {via} is link-local, which needs its interface", where)
        via = str(address)
    weight, preference = item.get("weight") or 1, item.get("preference") or 0
    for name, value, low in (("weight", weight, 1), ("preference", preference, 0)):
        if not low <= value <= 255:
            raise _bad(f"{name} is {value}, it can be {low} to 255", where)
    # a next hop without interface is looked up where the route is, unless it is said otherwise
    asked = item.get("next_hop_table")
    lookup = 0 if interface is not None else table if asked is None else asked
    return Path(via, interface, lookup, weight, preference)


def _bad(what: str, where: str, remedy: str | None = None) -> BenchError:
    return BenchError(what, where=where, remedy=remedy, code="bad_option")


def wishes_of(routes: t.Sequence[Values], state: str) -> list[Wish]:
    wishes = [wish_of(item, position, state) for position, item in enumerate(routes)]
    seen: set[Key] = set()
    for wish in wishes:
        if wish.key in seen:
            raise _bad("the same prefix of the same table stands twice", wish.key[2], "Give all its paths in one entry")
        seen.add(wish.key)
    return wishes


def run(session: Session, routes: t.Sequence[Values], state: str, *, check_mode: bool = False) -> dict[str, t.Any]:
    """Everything but ``rendered``. Returns the keyword arguments for ``exit_json``."""
    wishes = wishes_of(routes, state)
    if state == "deleted" and not wishes:
        raise BenchError(
            "nothing is named",
            where="routes",
            remedy="Name what to delete; all static routes are deleted by state overridden with empty routes",
            code="bad_option",
        )
    kind = RouteKind(session)
    keys = [wish.key for wish in wishes]
    if state == "gathered":
        found = kind.read(session, wishes, everything=not wishes)
        gathered = [as_config(one) for one in found.values()]
        return {"changed": False, "changes": [], "gathered": gathered, "routes": gathered}
    wanted = [] if state == "deleted" else wishes

    def judge(current: dict[Key, Found]) -> None:
        for wish in wanted:
            _judge(kind, wish, current)

    def doomed(current: dict[Key, Found]) -> list[Key]:
        if state == "deleted":
            return keys
        return [key for key in current if key not in set(keys)] if state == "overridden" else []

    outcome = reconcile(
        kind,
        session,
        wanted,
        also=keys,
        remove=doomed,
        everything=state == "overridden",
        check_mode=check_mode,
        judge=judge,
    )
    there = [as_config(outcome.after[key]) for key in keys if key in outcome.after]
    return {"changed": outcome.changed, "routes": there, **difference(kind, outcome)}


def _judge(kind: RouteKind, wish: Wish, current: t.Mapping[Key, Found]) -> None:
    where = kind.name(wish.key)
    if wish.key in kind.taken and wish.key not in current:
        raise VppError(
            f"VPP has this prefix from a stronger source ({kind.taken[wish.key]}), so a static route would do nothing",
            where=where,
            remedy="A prefix of an interface's own address needs no route",
            code="prefix_taken",
        )
    value = wish.values["paths"]
    for path in value.paths if isinstance(value, AddPaths) else value:
        if path.interface is not None and path.interface not in kind.indexes:
            names = ", ".join(sorted(name for name in kind.indexes if name != "local0")) or "none"
            raise VppError(
                f"VPP has no interface {path.interface}", where=where, remedy=f"There are: {names}", code="no_interface"
            )


def as_config(found: Found) -> Values:
    """A route in the form of the option ``routes``."""
    table, prefix = found.key[1:]
    result: Values = {"prefix": prefix, "table": table}
    paths = sorted(found.values["paths"], key=str)
    if any(path.drop for path in paths):
        return {**result, "drop": True}
    shown = []
    for path in paths:
        one: Values = {"weight": path.weight, "preference": path.preference}
        one.update({name: getattr(path, name) for name in ("via", "interface", "other") if getattr(path, name)})
        if path.interface is None and path.other is None:
            one["next_hop_table"] = path.table
        shown.append(one)
    return {**result, "paths": shown}


def render(routes: t.Sequence[Values]) -> list[str]:
    """The same as lines of VPP's command line. Pure."""
    lines: list[str] = []
    wishes = wishes_of(routes, "replaced")
    tables = sorted({(wish.key[1], ":" in wish.key[2]) for wish in wishes if wish.key[1]})
    lines += [f"{'ip6' if is_ip6 else 'ip'} table add {table}" for table, is_ip6 in tables]
    for wish in wishes:
        table, prefix = wish.key[1:]
        head = f"ip route add {prefix}{f' table {table}' if table else ''} via"
        for path in sorted(wish.values["paths"], key=str):
            if path.drop:
                lines.append(f"{head} drop")
                continue
            words = [head, *(word for word in (path.via, path.interface) if word)]
            if path.interface is None and path.table:
                words.append(f"next-hop-table {path.table}")
            words += [f"weight {path.weight}"] if path.weight != 1 else []
            words += [f"preference {path.preference}"] if path.preference else []
            lines.append(" ".join(words))
    return lines
