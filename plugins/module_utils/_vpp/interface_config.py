# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From the options of vpp_interface to wishes; everything that can be told to be wrong is told before VPP is asked."""

from __future__ import annotations

import ipaddress
import re
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.errors import VppError
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.interface import (
    PROPS,
    AddOnly,
    Inventory,
    Mtu,
    default_mtu,
)
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.interface_types import TYPES, expected_name, type_of
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.reconcile import UNKNOWN, Key, Values, Wish

#: A network interface's name in Linux has at most this many bytes (IFNAMSIZ less the end mark).
NAME_BYTES = 15
_MTU_OPTIONS = ("mtu_bytes", "mtu_ip4_bytes", "mtu_ip6_bytes", "mtu_mpls_bytes")
_COMMON = {"name", "type", "up", "addresses", "addresses_state", "vrf", "tag", *_MTU_OPTIONS}
_RANGES = {
    "rx_queues": (1, 64),
    "tx_queues": (1, 64),
    "vlan_id": (1, 4094),
    "inner_vlan_id": (1, 4094),
    "sub_id": (1, 2**32 - 2),
    "vrf": (0, 2**32 - 2),
    "mtu_bytes": (64, 65535),
    "mtu_ip4_bytes": (68, 65535),
    "mtu_ip6_bytes": (1280, 65535),
    "mtu_mpls_bytes": (64, 65535),
    "link_mtu_bytes": (64, 65535),
    "instance": (0, 16383),
    "memif_id": (0, 2**32 - 2),
    "memif_socket_id": (0, 2**32 - 2),
    "ring_size": (16, 32768),
    "rx_frame_size_bytes": (256, 65536),
}
_WHY = {
    "rx_queues": "VPP 26.06 itself dies of 0",
    "instance": "VPP numbers so many",
    "vlan_id": "VPP accepts more, and sends frames with another number",
    "mtu_ip6_bytes": "IPv6 needs 1280 on every link",
}


def _bad(what: str, where: str, remedy: str | None = None, code: str = "bad_option") -> BenchError:
    return BenchError(what, where=where, remedy=remedy, code=code)


def check(item: Values, where: str) -> None:
    """One entry of the option ``config``, by itself."""
    kind = TYPES.get(item.get("type") or "")
    given = {name for name, value in item.items() if value is not None and name != "addresses_state"}
    if kind is None:
        if "name" not in given:
            raise _bad("neither name nor type says which interface is meant", where)
    else:
        missing = [name for name in kind.needs if name not in given]
        if missing:
            raise _bad(f"an interface of type {kind.name} needs {', '.join(missing)}", where)
        foreign = sorted(given - _COMMON - allowed(kind.name))
        if foreign:
            raise _bad(f"{', '.join(foreign)} cannot be given for an interface of type {kind.name}", where)
    for name, (low, high) in _RANGES.items():
        value = item.get(name)
        if value is not None and not low <= value <= high:
            why = f": {_WHY[name]}" if name in _WHY else ""
            raise _bad(f"{name} is {value}, it can be {low} to {high}{why}", where)
    ring = item.get("ring_size")
    if ring is not None and ring & (ring - 1):
        raise _bad(f"ring_size is {ring}, it must be a power of two", where)
    _check_names(item, where)
    if item.get("rx_mode") is not None and kind is not None:
        check_rx_mode(kind.name, item["rx_mode"], where)


def allowed(type_name: str) -> set[str]:
    """The options that a type takes beside the common ones."""
    kind = TYPES[type_name]
    # a type without receive queues has a message of its own for rx_mode
    names = {*kind.identity, *kind.made_with, "rx_mode"}
    names |= {"mac"} if kind.has_mac else set()
    names |= {"gso"} if kind.has_gso else set()
    return names | ({"link_mtu_bytes"} if kind.name == "hardware" else set())


def check_rx_mode(type_name: str, mode: str, where: str) -> None:
    modes = TYPES[type_name].rx_modes
    if modes is not None and mode not in modes:
        known = f"It does {' and '.join(modes)}" if modes else "It has no receive queues of its own"
        raise _bad(f"rx_mode {mode} is not supported by the driver {type_name}", where, known, "rx_mode_unsupported")


def _check_names(item: Values, where: str) -> None:
    host = item.get("host_interface")
    if host is not None:
        length = len(host.encode())
        if not 0 < length <= NAME_BYTES or re.search(r"[\s/]", host):
            raise _bad(
                f"host_interface {host!r} is not a name that Linux gives: 1 to {NAME_BYTES} bytes, no blank, no slash",
                where,
                code="bad_interface_name",
            )
    tag = item.get("tag")
    if tag is not None and (len(tag.encode()) > 63 or re.search(r"\s", tag)):
        raise _bad("a tag has at most 63 bytes and no blanks", where)


def normal_mac(text: str, where: str) -> str:
    digits = re.sub(r"[:.-]", "", text).lower()
    if not re.fullmatch(r"[0-9a-f]{12}", digits):
        raise _bad(f"{text!r} is not a MAC address", where)
    if int(digits[:2], 16) & 1 or int(digits, 16) == 0:
        raise _bad(f"{text!r} is not the MAC address of one interface (group bit set, or all zero)", where)
    return ":".join(digits[start : start + 2] for start in range(0, 12, 2))


def normal_address(text: str, where: str) -> str:
    try:
        address = ipaddress.ip_interface(text)
    except ValueError as err:
        raise _bad(f"{text!r} is not an address with prefix length: {err}", where) from err
    if "/" not in text:
        raise _bad(f"{text!r} has no prefix length", where, f"For a host address: {address.with_prefixlen}")
    if address.ip.is_link_local and address.version == 6:
        raise _bad(
            f"{text!r} is link-local, which VPP makes itself and does not list among the addresses",
            where,
            code="link_local_address",
        )
    if address.ip.is_multicast or address.ip.is_unspecified:
        raise _bad(f"{text!r} is not the address of an interface", where)
    return address.with_prefixlen


def key_of(item: Values, where: str, by_name: t.Mapping[str, Key]) -> Key | None:
    """Which interface an entry means; None when it names one that is not there."""
    if not item.get("type"):
        return by_name.get(item["name"])
    kind = TYPES[item["type"]]
    if kind.name == "vlan":
        parent = by_name.get(item["parent"])
        if parent is None:
            raise _bad(
                f"there is no interface {item['parent']}",
                where,
                f"There are: {', '.join(sorted(by_name)) or 'none'}; or make it in the same call",
                "no_parent",
            )
        return ("vlan", parent, item.get("sub_id") or item["vlan_id"])
    if kind.name == "memif":
        return ("memif", item.get("memif_socket_id") or 0, item["memif_id"])
    if kind.name == "hardware":
        # whatever else has this name is not a network card, but it is meant
        return by_name.get(item["name"])
    return (kind.name, *(item[name] for name in kind.identity))


def keys_of(config: t.Sequence[Values], known: t.Mapping[str, Key]) -> list[Key | None]:
    """The keys of all entries. A sub-interface may stand before its parent, or in one that this call makes."""
    by_name = dict(known)
    result: list[Key | None] = [None] * len(config)
    todo = list(range(len(config)))
    while todo:
        later: list[int] = []
        for position in todo:
            item = config[position]
            if item.get("type") == "vlan" and item["parent"] not in by_name and len(todo) > 1:
                later.append(position)
                continue
            key = key_of(item, label(item, position), by_name)
            result[position] = key
            if key is not None:
                by_name.setdefault(item.get("name") or expected_name(key), key)
                by_name.setdefault(expected_name(key), key)
        if len(later) == len(todo):
            key_of(config[later[0]], label(config[later[0]], later[0]), by_name)
        todo = later
    seen: dict[Key, int] = {}
    for position, key in enumerate(result):
        if key is None:
            continue
        if key in seen:
            raise _bad(f"the same interface stands in entry {seen[key] + 1} already", label(config[position], position))
        seen[key] = position
    return result


def label(item: Values, position: int) -> str:
    """How an entry is called in messages."""
    for name in ("name", "host_interface"):
        if item.get(name):
            return str(item[name])
    if item.get("parent") is not None:
        return f"{item['parent']}.{item.get('sub_id') or item.get('vlan_id')}"
    number = item.get("instance", item.get("memif_id"))
    return f"{item.get('type')} {number}" if number is not None else f"entry {position + 1}"


def values_of(item: Values, key: Key, where: str) -> Values:
    """The properties that an entry asks for."""
    kind = type_of(key)
    names = {prop.name for prop in PROPS}
    values = {name: value for name, value in item.items() if name in names and value is not None}
    values = {name: value for name, value in values.items() if name not in kind.identity}
    mtus = [item.get(name) for name in _MTU_OPTIONS]
    if any(value is not None for value in mtus):
        values["mtu"] = Mtu(*mtus)
    if item.get("mac") is not None:
        values["mac"] = normal_mac(item["mac"], where)
    if item.get("addresses") is not None:
        addresses = frozenset(normal_address(text, where) for text in item["addresses"])
        values["addresses"] = AddOnly(addresses) if item.get("addresses_state") == "present" else addresses
    return values


def check_addresses(wishes: t.Sequence[Wish]) -> None:
    """One address on two interfaces of the same VRF is a mistake, and VPP would keep the first."""
    seen: dict[tuple[t.Any, str], str] = {}
    for wish in wishes:
        held = wish.values.get("addresses", frozenset())
        for text in held.addresses if isinstance(held, AddOnly) else held:
            place = (wish.values.get("vrf", "as it is"), text.split("/")[0])
            name = expected_name(wish.key)
            if seen.setdefault(place, name) != name:
                raise _bad(f"the address {place[1]} is asked for on {seen[place]} too", name, code="duplicate_address")


def filled(wish: Wish) -> Wish:
    """The wish with the defaults of what it does not mention, as ``replaced`` has it."""
    values: Values = {prop.name: prop.default for prop in PROPS if prop.default is not UNKNOWN}
    kind = type_of(wish.key)
    values["mtu"] = default_mtu(wish.key)
    if kind.name == "hardware":
        values.pop("mtu")
    asked = dict(wish.values)
    if isinstance(asked.get("mtu"), Mtu) and "mtu" in values:
        asked["mtu"] = asked["mtu"].over(values["mtu"])
    return Wish(wish.key, {**values, **asked})


def check_name(item: Values, key: Key, where: str, inventory: Inventory) -> None:
    """VPP makes the name itself: another one means another interface, or a wish that would not come true."""
    name = item.get("name")
    actual = inventory.name(key)
    if not name or name == actual:
        return
    if name in inventory.by_name:
        what = f"{name} is another interface than the {key[0]} that the other options describe, which is {actual}"
    else:
        what = _MADE.format(actual)
    raise _bad(what, where, f"Leave name out, or give {actual}", "name_mismatch")


_MADE = "VPP names this interface {}, and the name cannot be chosen"


def check_made_name(item: Values, made: str, where: str) -> None:
    """The same where no VPP is asked: ``made`` is the name that it would give."""
    if item.get("name") not in (None, made):
        raise _bad(_MADE.format(made), where, f"Leave name out, or give {made}", "name_mismatch")


def missing(item: Values, where: str, inventory: Inventory) -> VppError:
    names = ", ".join(sorted(inventory.by_name)) or "none"
    return VppError(
        f"VPP has no interface {item['name']}",
        where=where,
        remedy=f"There are: {names}. To have one made, give its type",
        code="no_interface",
    )
