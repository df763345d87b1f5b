# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The work of the module vpp_interface: states, checks against what is there, results."""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._vpp import interface_config as config_of
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.errors import VppError
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.host_links import HostLinks
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.info import parse_buffers
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.interface import (
    AddOnly,
    InterfaceKind,
    Inventory,
    Mtu,
    as_config,
    as_state,
)
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.interface_types import (
    ETHERNET_HEADER_BYTES,
    XDP_HEADROOM_BYTES,
    expected_name,
    type_of,
)
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.reconcile import (
    Found,
    Key,
    Outcome,
    Values,
    Wish,
    difference,
    reconcile,
)
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.session import Session

STATES = ("merged", "replaced", "overridden", "deleted", "gathered", "rendered")


def finding(code: str, severity: str, evidence: str, remedy: str) -> dict[str, t.Any]:
    return {"code": code, "severity": severity, "evidence": evidence, "remedy": remedy}


def run(
    session: Session,
    config: t.Sequence[Values],
    state: str,
    *,
    recreate: bool = False,
    check_mode: bool = False,
    links: HostLinks | None = None,
) -> dict[str, t.Any]:
    """Everything but ``rendered``, which needs no VPP. Returns the keyword arguments for ``exit_json``."""
    for position, item in enumerate(config):
        config_of.check(item, config_of.label(item, position))
    inventory = Inventory(session)
    if state == "gathered":
        return _gather(session, inventory, config)
    if state == "deleted" and not config:
        raise BenchError(
            "nothing is named",
            where="config",
            remedy="Name what to delete; everything is deleted by state overridden with an empty config",
            code="bad_option",
        )
    deleting = state == "deleted"
    pairs = _pairs(config, inventory, must_exist=not deleting)
    wishes = [wish for key, wish in pairs]
    keys = [wish.key for wish in wishes]
    asked = {wish.key: wish for wish in wishes}
    if deleting:
        wishes = [config_of.filled(Wish(key, {})) for key in keys if key in inventory.rows and not removable(key)]
    elif state in ("replaced", "overridden"):
        wishes = [config_of.filled(wish) for wish in wishes]
    if state == "overridden":
        others = [key for key in inventory.rows if key not in keys and not removable(key)]
        wishes += [config_of.filled(Wish(key, {})) for key in others]
    config_of.check_addresses(wishes)
    links = links if links is not None else HostLinks(session.pid())

    def judge(current: dict[Key, Found]) -> None:
        # what the state fills in is VPP's own default, and is not held against the user
        for key, wish in asked.items():
            if not deleting:
                _judge(session, wish, current.get(key), inventory, links)

    def doomed(current: dict[Key, Found]) -> list[Key]:
        if deleting:
            return [key for key in keys if removable(key)]
        if state == "overridden":
            wanted = set(keys)
            return [key for key in current if key not in wanted and removable(key)]
        return []

    kind = InterfaceKind(inventory, full=recreate)
    outcome = reconcile(
        kind,
        session,
        wishes,
        also=keys if deleting else (),
        remove=doomed,
        everything=state == "overridden",
        recreate=recreate,
        check_mode=check_mode,
        judge=judge,
    )
    findings = _frame_findings(session, kind.inventory, list(asked.values()), outcome.after)
    result = {"changed": outcome.changed, "findings": findings, **difference(kind, outcome)}
    result["interfaces"] = _interfaces(kind, outcome, keys, check_mode=check_mode)
    return result


def removable(key: Key) -> bool:
    return type_of(key).removable


def _pairs(config: t.Sequence[Values], inventory: Inventory, *, must_exist: bool) -> list[tuple[Key, Wish]]:
    pairs: list[tuple[Key, Wish]] = []
    try:
        keys = config_of.keys_of(config, inventory.by_name)
    except BenchError as err:
        # a sub-interface whose parent is gone is gone itself
        if must_exist or err.code != "no_parent":
            raise
        config = [item for item in config if item.get("type") != "vlan" or item["parent"] in inventory.by_name]
        keys = config_of.keys_of(config, inventory.by_name)
    for position, (item, key) in enumerate(zip(config, keys)):
        where = config_of.label(item, position)
        if key is None:
            if must_exist:
                raise config_of.missing(item, where, inventory)
            continue
        kind = type_of(key)
        if not item.get("type"):
            config_of.check({**item, "type": kind.name, **_identity(key, inventory)}, where)
        config_of.check_name(item, key, where, inventory)
        pairs.append((key, Wish(key, config_of.values_of(item, key, where))))
    return pairs


def _identity(key: Key, inventory: Inventory) -> Values:
    """What the key says, as options: an entry that names an existing interface need not repeat it."""
    kind = type_of(key)
    values = dict(zip(kind.identity, key[1:]))
    if kind.name == "vlan":
        values["parent"] = inventory.name(key[1])
        values["vlan_id"] = inventory.extra.get(key, {}).get("vlan_id", key[2])
    return values


def _judge(session: Session, wish: Wish, found: Found | None, inventory: Inventory, links: HostLinks) -> None:
    """Raise when VPP cannot make it true, also where VPP itself would not say so."""
    kind, values = type_of(wish.key), wish.values
    where = found.name if found is not None else expected_name(wish.key)
    if found is None:
        if kind.create is None:
            raise VppError("VPP has no such interface and it cannot be made", where=where, code="no_interface")
        if kind.on_host:
            links.require(wish.key[1])
    if "rx_mode" in values and found is not None and "rx_mode" not in found.values:
        raise VppError(
            "rx_mode cannot be set: the interface has no receive queues now",
            where=where,
            remedy="A memif gets its queues when the other end connects",
            code="no_queues",
        )
    if isinstance(values.get("mtu"), Mtu):
        _judge_mtu(wish, where, inventory, links)
    if kind.name == "af_xdp":
        _judge_xdp_frame(session, wish, where, links, new=found is None)
    if kind.name == "vlan" and found is None:
        _judge_tags(wish, where, inventory)


def _judge_mtu(wish: Wish, where: str, inventory: Inventory, links: HostLinks) -> None:
    mtu: Mtu = wish.values["mtu"]
    base = wish.key
    while base[0] == "vlan":
        base = base[1]
    row = inventory.rows.get(base)
    carries = wish.values.get("link_mtu_bytes") or (int(row.link_mtu) if row is not None else 9000)
    source = "VPP's link"
    if base[0] in ("af_packet", "af_xdp"):
        host = links.mtu_bytes(base[1])
        # VPP assumes 9000 for any of them
        if host is not None and host < carries:
            carries, source = host, f"the host's interface {base[1]}"
    sizes = zip(("mtu_bytes", "mtu_ip4_bytes", "mtu_ip6_bytes", "mtu_mpls_bytes"), dataclasses.astuple(mtu))
    for name, size in sizes:
        if size and size > carries:
            raise VppError(
                f"{name} is {size}, {source} carries {carries}",
                where=where,
                remedy=f"Ask for at most {carries}, or raise the MTU of {source} first; VPP would accept it and lose "
                "the larger packets",
                code="mtu_over_link",
            )


def _judge_xdp_frame(session: Session, wish: Wish, where: str, links: HostLinks, *, new: bool) -> None:
    """With AF_XDP a packet has to fit into one buffer, beside what the kernel keeps in front of it."""
    mtu = wish.values.get("mtu")
    asked = (mtu.packet or 0) if isinstance(mtu, Mtu) else 0
    # larger packets would arrive when the kernel's device takes them
    size = asked or (links.mtu_bytes(wish.key[1]) or 0 if new else 0)
    if not size:
        return
    pools = parse_buffers(session.call("cli_inband", cmd="show buffers").reply)
    room = min((pool["data_size_bytes"] for pool in pools), default=0)
    limit = room - XDP_HEADROOM_BYTES - ETHERNET_HEADER_BYTES
    if pools and size > limit:
        raise VppError(
            f"the MTU {'asked for' if asked else 'of the kernel device'} is {size}, AF_XDP with buffers of {room} "
            f"bytes carries {limit}",
            where=where,
            remedy=f"Ask for at most {limit}, or have VPP start with larger buffers (buffer_data_size, up to a page "
            "less VPP's own 256 bytes); VPP would accept it and the kernel would drop the larger packets",
            code="mtu_over_frame",
        )


def _judge_tags(wish: Wish, where: str, inventory: Inventory) -> None:
    for key, extra in inventory.extra.items():
        if key[0] == "vlan" and key[1] == wish.key[1] and key != wish.key:
            same = all(extra.get(name) == wish.values.get(name) for name in ("vlan_id", "inner_vlan_id"))
            if same:
                raise VppError(
                    f"{inventory.name(key)} has the same VLAN tags",
                    where=where,
                    remedy=f"Use that one (sub_id {key[2]}), or delete it first",
                    code="vlan_taken",
                )


def _frame_findings(
    session: Session, inventory: Inventory, wishes: t.Sequence[Wish], after: t.Mapping[Key, Found]
) -> list[dict[str, t.Any]]:
    """Packets that do not fit into one frame of af_packet's ring."""
    large = [
        wish.key
        for wish in wishes
        if wish.key[0] == "af_packet"
        and isinstance(wish.values.get("mtu"), Mtu)
        and (wish.values["mtu"].packet or 0) > 2000
        and wish.key in after
    ]
    if not large:
        return []
    names = {key: inventory.name(key) for key in large}
    inventory.read_hardware(session, list(names.values()))
    result = []
    for key in large:
        record = inventory.hardware.get(names[key])
        mtu = after[key].values["mtu"]
        size = record.rx_frame_size_bytes if record is not None else None
        if record is not None and size and isinstance(mtu, Mtu) and (mtu.packet or 0) + 18 > size:
            result.append(
                finding(
                    "mtu_over_frame",
                    # seen with VPP 26.06: a ring of version 3 carries packets larger than its frames, older ones do not
                    "info" if (record.ring_version or 0) >= 3 else "warning",
                    f"{names[key]}: the MTU of {mtu.packet} is larger than a frame of the receive ring ({size} bytes)",
                    "Send packets of the full size with the don't-fragment bit through it before you trust it, or make "
                    "the interface with a larger rx_frame_size_bytes",
                )
            )
    return result


def _interfaces(
    kind: InterfaceKind, outcome: Outcome, keys: t.Sequence[Key], *, check_mode: bool
) -> list[dict[str, t.Any]]:
    """The state of what was named: as read back, or in check mode as it is."""
    result = [as_state(kind.inventory, outcome.after[key]) for key in keys if key in outcome.after]
    if check_mode:
        result += [{"name": expected_name(wish.key), "type": wish.key[0]} for wish in outcome.plan.create]
    return result


def _gather(session: Session, inventory: Inventory, config: t.Sequence[Values]) -> dict[str, t.Any]:
    kind = InterfaceKind(inventory, full=True)
    found = kind.read(session, [], everything=True)
    wanted = {pair[0] for pair in _pairs(config, inventory, must_exist=False)} if config else set(found)
    there = [one for key, one in found.items() if key in wanted]
    return {
        "changed": False,
        "changes": [],
        "findings": [],
        "gathered": [as_config(inventory, one) for one in there],
        "interfaces": [as_state(inventory, one) for one in there],
    }


def render(config: t.Sequence[Values]) -> list[str]:
    """The same wishes as lines of VPP's command line, for the script that VPP runs at its start. Pure."""
    for position, item in enumerate(config):
        config_of.check(item, config_of.label(item, position))
    named = {item["name"]: ("hardware", item["name"]) for item in config if item.get("type") == "hardware"}
    named.update({item["name"]: ("hardware", item["name"]) for item in config if not item.get("type")})
    parents = {item["parent"]: ("hardware", item["parent"]) for item in config if item.get("type") == "vlan"}
    made = {expected_name(key) for key in _made(config)}
    known = {**named, **{name: key for name, key in parents.items() if name not in made}}
    keys = config_of.keys_of(config, t.cast("dict[str, Key]", known))
    create: list[str] = []
    tables: set[int] = set()
    setup: list[str] = []
    ups: list[str] = []
    for position, (key, item) in enumerate(zip(keys, config)):
        if key is not None:
            config_of.check_made_name(item, expected_name(key), config_of.label(item, position))
    pairs = [(key, item) for key, item in zip(keys, config) if key is not None]
    for key, item in sorted(pairs, key=lambda pair: str(pair[0]).count("vlan")):
        where = expected_name(key)
        kind = type_of(key)
        values = config_of.values_of(item, key, where)
        if kind.script is not None:
            create.append(kind.script(key, values))
        if values.get("mac") and not (kind.script and kind.made_with_mac):
            setup.append(f"set interface mac address {where} {values['mac']}")
        setup += _script_lines(where, values, tables)
        if values.get("up") is not None:
            ups.append(f"set interface state {where} {'up' if values['up'] else 'down'}")
    table_lines = [f"{family} table add {table}" for table in sorted(tables) for family in ("ip", "ip6")]
    return [*create, *table_lines, *setup, *ups]


def _made(config: t.Sequence[Values]) -> list[Key]:
    keys: list[Key] = []
    for position, item in enumerate(config):
        if item.get("type") and item["type"] not in ("vlan", "hardware"):
            key = config_of.key_of(item, config_of.label(item, position), {})
            keys += [key] if key is not None else []
    return keys


def _script_lines(name: str, values: Values, tables: set[int]) -> list[str]:
    lines: list[str] = []
    if values.get("link_mtu_bytes"):
        lines.append(f"set interface mtu {values['link_mtu_bytes']} {name}")
    mtu = values.get("mtu")
    if isinstance(mtu, Mtu):
        parts = (("packet", mtu.packet), ("ip4", mtu.ip4), ("ip6", mtu.ip6), ("mpls", mtu.mpls))
        given = [(word, size) for word, size in parts if size]
        if len(given) > 1:
            raise BenchError(
                "VPP's command line keeps one MTU and clears the others; asked are "
                + ", ".join(pair[0] for pair in given),
                where=name,
                remedy="Ask for one of them where it must come from the start-up script",
                code="not_renderable",
            )
        lines += [f"set interface mtu {word} {size} {name}" for word, size in given]
    if values.get("vrf"):
        tables.add(values["vrf"])
        lines += [f"set interface {family} table {name} {values['vrf']}" for family in ("ip", "ip6")]
    if values.get("tag"):
        lines.append(f"set interface tag {name} {values['tag']}")
    if values.get("gso") is not None:
        lines.append(f"set interface feature gso {name} {'enable' if values['gso'] else 'disable'}")
    if values.get("rx_mode"):
        lines.append(f"set interface rx-mode {name} {values['rx_mode']}")
    held = values.get("addresses", frozenset())
    addresses = held.addresses if isinstance(held, AddOnly) else held
    return lines + [f"set interface ip address {name} {address}" for address in sorted(addresses)]
