# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Routes. One setting is all that stands in one table for one destination with one metric.

The key is ``family table destination metric``, for example
``4 main 10.9.0.0/24 0``. The value is a list, as IPv6 and ``ip route
append`` allow several; ABSENT when there is none.
"""

from __future__ import annotations

import ipaddress
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._host.access import Access, Refused, missing_interface
from ansible_collections.fastpath.bench.plugins.module_utils._host.device import check_name
from ansible_collections.fastpath.bench.plugins.module_utils._host.knob import (
    ABSENT,
    RANK_ROUTES,
    Knob,
    Value,
    register,
)

#: Kept of a route, besides family, table, destination and metric, which are the key.
_FIELDS = ("type", "gateway", "via", "dev", "protocol", "scope", "prefsrc", "pref", "metrics", "nexthops")
#: Told by ip, and no setting.
_STATE = ("dst", "table", "metric", "family", "flags", "expires", "cache", "used", "age", "users", "error")
_STATE_FLAGS = ("linkdown", "dead", "offload", "trap", "rt_offload", "rt_trap", "rt_offload_failed", "offload_failed")
_IPV6_METRIC = 1024
_ANY = {4: "0.0.0.0/0", 6: "::/0"}


def parse_destination(text: str) -> tuple[int, str]:
    """Family and normal form of a destination: a network, an address, ``default`` (IPv4) or ``default6``."""
    if text in ("default", "default4"):
        return 4, "default"
    if text == "default6":
        return 6, "default"
    try:
        network = ipaddress.ip_network(text.strip())
    except ValueError as err:
        raise BenchError(
            f"{text!r} is not a destination ({err})",
            remedy="Write a network such as 10.9.0.0/24 with no bit set behind the prefix, an address, or default",
            code="bad_destination",
        ) from err
    if network.prefixlen == 0:
        return network.version, "default"
    # ip leaves the prefix length of a single address out.
    return network.version, str(network.network_address) if network.prefixlen == network.max_prefixlen else str(network)


def route_key(dst: str, table: str | int | None = None, metric: int | None = None) -> str:
    """The key of a route that a user describes."""
    family, normal = parse_destination(dst)
    name = {"254": "main", "255": "local", "253": "default"}.get(str(table), str(table)) if table else "main"
    return f"{family} {name} {normal} {_IPV6_METRIC if metric is None and family == 6 else metric or 0}"


def key_of(row: dict[str, t.Any]) -> str:
    """The key of a row that ip told."""
    return f"{row['family']} {row.get('table', 'main')} {row['dst']} {row.get('metric', 0)}"


def is_settable(row: dict[str, t.Any]) -> bool:
    """Not the routes that the kernel makes with an address or from router advertisements."""
    return row.get("protocol") not in ("kernel", "ra") and row.get("table") != "local"


def routes_of(access: Access, device: str) -> list[Knob]:
    """Each set route that leaves by this interface."""
    keys = []
    for row in access.routes():
        devices = {row.get("dev"), *(hop.get("dev") for hop in row.get("nexthops", []))}
        if device in devices and is_settable(row) and key_of(row) not in keys:
            keys.append(key_of(row))
    return [Route(access, key) for key in keys]


def record_of(row: dict[str, t.Any]) -> dict[str, t.Any]:
    """What must be known to set this route again."""
    record = {name: row[name] for name in _FIELDS if name in row}
    unknown = sorted(set(row) - set(_FIELDS) - set(_STATE))
    if unknown:
        record["unknown"] = unknown
    if "onlink" in row.get("flags", []):
        record["onlink"] = True
    if "nexthops" in record:
        record["nexthops"] = [
            {
                **{name: value for name, value in hop.items() if name not in ("flags",)},
                **({"onlink": True} if "onlink" in hop.get("flags", []) else {}),
            }
            for hop in record["nexthops"]
        ]
    return record


@register
class Route(Knob):
    """Wish: ``{"via": address or None, "dev": name or None}``, or ABSENT.

    With ``devs``, a list of interfaces, instead: one next hop by each, of equal weight.
    """

    kind = "route"
    risky = True

    def __init__(self, access: Access, key: str) -> None:
        super().__init__(access, key)
        family, self.table, self.dst, metric = key.split(" ")
        self.family, self.metric = int(family), int(metric)

    @property
    def rank(self) -> int:
        return RANK_ROUTES

    @property
    def device(self) -> str | None:
        """Only the default route of the main table can cut the host off: its present interface."""
        if self.dst != "default" or self.table != "main":
            return None
        rows = self._rows()
        return rows[0].get("dev") if rows else None

    def _rows(self) -> list[dict[str, t.Any]]:
        return [row for row in self.access.routes() if key_of(row) == self.key and is_settable(row)]

    def read(self) -> Value:
        records = [record_of(row) for row in self._rows()]
        return records or ABSENT

    def satisfied(self, current: Value, wish: t.Any) -> bool:
        if wish is ABSENT or current is ABSENT:
            return wish is current
        if len(wish.get("devs") or ()) > 1:
            there = current[0].get("nexthops", [])
            hops = [(hop.get("dev"), hop.get("gateway"), hop.get("weight", 1)) for hop in there]
            return len(current) == 1 and sorted(hops) == sorted((name, None, 1) for name in wish["devs"])
        return len(current) == 1 and self._meets(current[0], _single(wish))

    @staticmethod
    def _meets(record: dict[str, t.Any], wish: dict[str, t.Any]) -> bool:
        if wish.get("via"):
            gateway = record.get("gateway") or (record.get("via") or {}).get("host")
            if gateway is None or ipaddress.ip_address(gateway) != ipaddress.ip_address(wish["via"]):
                return False
        elif "gateway" in record or "via" in record:
            return False
        if record.get("type", "unicast") != "unicast" or "nexthops" in record:
            return False
        return not wish.get("dev") or record.get("dev") == wish["dev"]

    def resolve(self, current: Value, wish: t.Any) -> Value:
        if wish is ABSENT:
            return ABSENT
        record: dict[str, t.Any] = {"type": "unicast", "protocol": "static"}
        if len(wish.get("devs") or ()) > 1:
            record["nexthops"] = [{"dev": name, "weight": 1} for name in wish["devs"]]
            return [record]
        wish = _single(wish)
        if wish.get("via"):
            record["gateway"] = str(ipaddress.ip_address(wish["via"]))
        if wish.get("dev"):
            record["dev"] = wish["dev"]
        return [record]

    def check(self, current: Value, wish: t.Any) -> None:
        if wish is ABSENT:
            return
        for name in wish.get("devs") or ():
            if check_name(name) not in self.access.links():
                raise missing_interface(name, self.access.links())
        if wish.get("devs"):
            return
        if not wish.get("via") and not wish.get("dev"):
            raise BenchError("a route needs via or dev", where=self.dst, code="bad_route")
        if wish.get("via"):
            try:
                gateway = ipaddress.ip_address(wish["via"])
            except ValueError as err:
                raise BenchError(f"{wish['via']!r} is not an address", where=self.dst, code="bad_route") from err
            if gateway.version != self.family:
                raise BenchError(
                    f"the gateway {gateway} is of another family than the destination", where=self.dst, code="bad_route"
                )
        if wish.get("dev") and check_name(wish["dev"]) not in self.access.links():
            raise missing_interface(wish["dev"], self.access.links())

    def write(self, value: Value) -> None:
        unknown = sorted({name for record in ([] if value is ABSENT else value) for name in record.get("unknown", [])})
        if unknown:
            raise Refused(f"it has parts that cannot be set again: {', '.join(unknown)}", where=self.key)
        now = self.read()
        if value is not ABSENT and now is not ABSENT and len(value) == len(now) == 1:
            # In one step, so that no packet finds no route.
            self._ip("replace", value[0])
            return
        for record in [] if now is ABSENT else now:
            self._ip("del", {name: val for name, val in record.items() if name in ("type", "gateway", "via", "dev")})
        for index, record in enumerate([] if value is ABSENT else value):
            self._ip("append" if index else "add", record)

    def _ip(self, verb: str, record: dict[str, t.Any]) -> None:
        argv = ["ip", f"-{self.family}", "route", verb, record.get("type", "unicast"), self.dst, *_hop_words(record)]
        argv += ["table", self.table]
        if self.metric:
            argv += ["metric", str(self.metric)]
        for name, word in (("protocol", "proto"), ("prefsrc", "src"), ("pref", "pref")):
            if name in record:
                argv += [word, str(record[name])]
        if "scope" in record and self.family == 4:
            argv += ["scope", str(record["scope"])]
        for metrics in record.get("metrics", []):
            for name, value in metrics.items():
                argv += [name, str(value)]
        for hop in record.get("nexthops", []):
            argv += ["nexthop", *_hop_words(hop)]
            if "weight" in hop:
                argv += ["weight", str(hop["weight"])]
        self.access.change(argv, where=f"route {self.dst}")


def _single(wish: dict[str, t.Any]) -> dict[str, t.Any]:
    """A list of one interface is that interface."""
    return {**wish, "dev": wish["devs"][0]} if wish.get("devs") else wish


def _hop_words(hop: dict[str, t.Any]) -> list[str]:
    words = []
    if "gateway" in hop:
        words += ["via", hop["gateway"]]
    elif "via" in hop:
        words += ["via", hop["via"]["family"], hop["via"]["host"]]
    if "dev" in hop:
        words += ["dev", hop["dev"]]
    if hop.get("onlink"):
        words.append("onlink")
    return words
