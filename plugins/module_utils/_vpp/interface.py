# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""VPP's interfaces as objects for the reconciler: how they are read, and the table of their properties."""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._vpp import hardware
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.interface_types import (
    DEFAULT_MTU,
    IF_TYPE_SUB,
    MODES,
    SUB_DOT1AD,
    TYPES,
    expected_name,
    type_of,
)
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.reconcile import (
    UNKNOWN,
    Found,
    Handle,
    Key,
    Kind,
    Plan,
    Prop,
    Values,
    Wish,
)
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.session import NO_INDEX, Call, Reply, Session

_MODE_NAMES = {number: name for name, number in MODES.items()}
ADMIN_UP, LINK_UP = 1, 2
NO_SUCH_ENTRY = -6


@dataclasses.dataclass(frozen=True)
class Mtu:
    """The four that VPP keeps for an interface; 0 means that the packet's applies, or for that the link's."""

    packet: int | None = None
    ip4: int | None = None
    ip6: int | None = None
    mpls: int | None = None

    def over(self, found: t.Any) -> Mtu:
        """What is asked, completed by what is there."""
        base = found if isinstance(found, Mtu) else Mtu(0, 0, 0, 0)
        pairs = zip(dataclasses.astuple(base), dataclasses.astuple(self))
        return Mtu(*(old if new is None else new for old, new in pairs))


@dataclasses.dataclass(frozen=True)
class AddOnly:
    """Addresses that should be there, whatever else is."""

    addresses: frozenset[str]


def _wanted_addresses(found: t.Any, wish: t.Any) -> t.Any:
    held = found if isinstance(found, frozenset) else frozenset()
    return held | wish.addresses if isinstance(wish, AddOnly) else wish


def _write_addresses(key: Key, index: Handle, before: t.Any, after: t.Any) -> list[Call]:
    held = before if isinstance(before, frozenset) else frozenset()
    changes = [(False, one) for one in sorted(held - after)] + [(True, one) for one in sorted(after - held)]
    return [
        Call(
            "sw_interface_add_del_address",
            {"sw_if_index": index, "is_add": add, "prefix": address},
            hint=f"The address is {address}; two interfaces of one VRF cannot have addresses of networks that overlap",
        )
        for add, address in changes
    ]


def _write_vrf(key: Key, index: Handle, before: t.Any, after: t.Any) -> list[Call]:
    return [
        Call("sw_interface_set_table", {"sw_if_index": index, "is_ipv6": is_ipv6, "vrf_id": after})
        for is_ipv6 in (False, True)
    ]


def _write_mtu(key: Key, index: Handle, before: t.Any, after: t.Any) -> list[Call]:
    return [Call("sw_interface_set_mtu", {"sw_if_index": index, "mtu": list(dataclasses.astuple(after))})]


def _write_link_mtu(key: Key, index: Handle, before: t.Any, after: t.Any) -> list[Call]:
    return [Call("hw_interface_set_mtu", {"sw_if_index": index, "mtu": after})]


def _write_mac(key: Key, index: Handle, before: t.Any, after: t.Any) -> list[Call]:
    return [Call("sw_interface_set_mac_address", {"sw_if_index": index, "mac_address": after})]


def _write_tag(key: Key, index: Handle, before: t.Any, after: t.Any) -> list[Call]:
    fields = {"sw_if_index": index, "is_add": bool(after), "tag": after}
    return [Call("sw_interface_tag_add_del", fields)]


def _write_rx_mode(key: Key, index: Handle, before: t.Any, after: t.Any) -> list[Call]:
    return [
        Call(
            "sw_interface_set_rx_mode",
            {"sw_if_index": index, "mode": MODES[after]},
            hint=f"The driver of this interface does not do {after}; VPP's log (show logging) says why",
        )
    ]


def _write_gso(key: Key, index: Handle, before: t.Any, after: t.Any) -> list[Call]:
    return [Call("feature_gso_enable_disable", {"sw_if_index": index, "enable_disable": after})]


def _write_up(key: Key, index: Handle, before: t.Any, after: t.Any) -> list[Call]:
    hint = "A sub-interface comes up only when its parent is up" if key[0] == "vlan" else None
    return [Call("sw_interface_set_flags", {"sw_if_index": index, "flags": ADMIN_UP if after else 0}, hint=hint)]


#: The one table of properties. What has no ``write`` is settled when the interface is made.
PROPS: t.Final[tuple[Prop, ...]] = (
    *(
        Prop(name)
        for name in (
            "rx_queues",
            "tx_queues",
            "rx_frame_size_bytes",
            "checksum_gso",
            "qdisc_bypass",
            "xdp_mode",
            "host_interface",
            "host_namespace",
            "memif_role",
            "ring_size",
            "vlan_id",
            "inner_vlan_id",
            "dot1ad",
        )
    ),
    Prop("link_mtu_bytes", 30, _write_link_mtu),
    Prop("mac", 31, _write_mac),
    Prop("mtu", 32, _write_mtu, resolve=lambda found, wish: wish.over(found)),
    Prop("vrf", 40, _write_vrf, default=0, clears={"addresses": frozenset()}),
    Prop("tag", 50, _write_tag, default=""),
    Prop("gso", 51, _write_gso),
    Prop("rx_mode", 52, _write_rx_mode),
    Prop("addresses", 60, _write_addresses, default=frozenset(), resolve=_wanted_addresses, take_rank=20),
    Prop("up", 90, _write_up, default=False),
)


def default_mtu(key: Key) -> Mtu:
    """What VPP gives a new interface: a sub-interface takes all from its parent."""
    return Mtu(0 if key[0] == "vlan" else DEFAULT_MTU, 0, 0, 0)


class Inventory:
    """All interfaces of a VPP, by key and by name; cheap facts only."""

    def __init__(self, session: Session) -> None:
        self.rows: dict[Key, Reply] = {}
        self.extra: dict[Key, Values] = {}
        dump = session.call("sw_interface_dump", sw_if_index=NO_INDEX)
        kinds = {str(row.interface_dev_type) for row in dump}
        hosts = self._af_packets(session) if "af-packet" in kinds else {}
        memifs = {one.sw_if_index: one for one in session.call("memif_dump")} if "memif" in kinds else {}
        taps = self._taps(session) if kinds & {"tap", "virtio"} else {}
        self.hardware: dict[str, hardware.Hardware] = {}
        xdp = [row.interface_name for row in dump if "AF_XDP" in row.interface_dev_type and row.type != IF_TYPE_SUB]
        self.read_hardware(session, xdp)
        by_index: dict[int, Key] = {}
        for row in sorted(dump, key=lambda row: int(row.type) == IF_TYPE_SUB):
            if row.interface_name == "local0":
                continue
            key, extra = self._identify(row, by_index, hosts, memifs, taps)
            self.rows[key] = row
            self.extra[key] = extra
            by_index[row.sw_if_index] = key
        self.by_name: dict[str, Key] = {row.interface_name: key for key, row in self.rows.items()}
        self.by_index = by_index

    @staticmethod
    def _af_packets(session: Session) -> dict[int, str]:
        return {one.sw_if_index: one.host_if_name for one in session.call("af_packet_dump")}

    @staticmethod
    def _taps(session: Session) -> dict[int, Reply]:
        if not session.has("sw_interface_tap_v2_dump"):
            return {}
        return {one.sw_if_index: one for one in session.call("sw_interface_tap_v2_dump", sw_if_index=NO_INDEX)}

    def read_hardware(self, session: Session, names: t.Sequence[str]) -> None:
        """Ask for what only the text of VPP's command line has, for these interfaces."""
        missing = [name for name in names if name not in self.hardware]
        if missing:
            reply = session.call("cli_inband", cmd=f"show hardware-interfaces {' '.join(missing)}")
            self.hardware.update(hardware.parse(reply.reply))

    def _identify(
        self,
        row: Reply,
        by_index: t.Mapping[int, Key],
        hosts: t.Mapping[int, str],
        memifs: t.Mapping[int, Reply],
        taps: t.Mapping[int, Reply],
    ) -> tuple[Key, Values]:
        index, name, device = row.sw_if_index, row.interface_name, row.interface_dev_type
        key: Key = ("hardware", name)
        extra: Values = {}
        if int(row.type) == IF_TYPE_SUB:
            parent = by_index.get(row.sup_sw_if_index)
            if parent is not None and row.sub_number_of_tags:
                key = ("vlan", parent, row.sub_id)
                extra = {
                    "vlan_id": row.sub_outer_vlan_id,
                    "inner_vlan_id": row.sub_inner_vlan_id or None,
                    "dot1ad": bool(int(row.sub_if_flags) & SUB_DOT1AD),
                }
        elif index in hosts:
            key = ("af_packet", hosts[index])
        elif index in memifs:
            one = memifs[index]
            key = ("memif", one.socket_id, one.id)
            # the size of the rings is told as 1 until the other end connects
            extra = {"memif_role": "slave" if int(one.role) else "master", "ring_size": UNKNOWN}
        elif index in taps:
            one = taps[index]
            key = ("tap", one.id)
            # flags 1 and 2: GSO brings checksum offload along
            extra = {"host_interface": one.host_if_name, "checksum_gso": bool(int(one.tap_flags) & 1)}
            extra["host_namespace"] = one.host_namespace or None
        elif device == "Loopback" and name.startswith("loop") and name[4:].isdigit():
            key = ("loopback", int(name[4:]))
        elif "AF_XDP" in device:
            record = self.hardware.get(name, hardware.Hardware())
            if record.netdev:
                key = ("af_xdp", record.netdev)
                # whether it was asked for or came about is not told
                extra = {"xdp_mode": UNKNOWN}
        return key, extra

    def name(self, key: Key) -> str:
        row = self.rows.get(key)
        return str(row.interface_name) if row is not None else expected_name(key)

    def handle(self, key: Key) -> int:
        return int(self.rows[key].sw_if_index)


class InterfaceKind(Kind):
    """All types of interfaces, for the reconciler."""

    props = PROPS

    def __init__(self, inventory: Inventory, *, full: bool = False) -> None:
        #: Read all properties, not only the wished ones: what is made anew gets the others back too.
        self.full = full
        self.inventory = inventory
        # the first reading need not ask again for what the caller has just read
        self._fresh = True

    # Reading

    def read(self, session: Session, wishes: t.Sequence[Wish], everything: bool) -> dict[Key, Found]:
        if not self._fresh:
            self.inventory = Inventory(session)
        self._fresh = False
        inventory = self.inventory
        asked = {wish.key for wish in wishes}
        below = {parent for key in asked for parent in self._parents(key)}
        keys = [key for key in inventory.rows if everything or key in below or self._concerned(key, asked)]
        needed = {name for wish in wishes for name in wish.values}
        if self.full or everything:
            needed = {prop.name for prop in PROPS}
        values: dict[Key, Values] = {key: self._row_values(key) for key in keys}
        self._add_addresses(session, values, needed)
        self._add_vrf(session, values, needed)
        self._add_queues(session, values, needed)
        self._add_gso(session, values, needed)
        self._add_hardware(session, values, needed)
        return {
            key: Found(key, inventory.handle(key), values[key], inventory.name(key), type_of(key).removable)
            for key in keys
        }

    def _parents(self, key: Key) -> t.Iterator[Key]:
        """What it lives in: needed to make it."""
        while key[0] == "vlan":
            key = key[1]
            yield key

    def _concerned(self, key: Key, asked: t.Collection[Key]) -> bool:
        """What is asked about, and what lives in it."""
        return key in asked or (key[0] == "vlan" and self._concerned(key[1], asked))

    def _row_values(self, key: Key) -> Values:
        row = self.inventory.rows[key]
        values: Values = {
            "up": bool(int(row.flags) & ADMIN_UP),
            "mtu": Mtu(*(int(one) for one in row.mtu)),
            "link_mtu_bytes": int(row.link_mtu),
            "tag": str(row.tag),
        }
        if type_of(key).has_mac:
            values["mac"] = str(row.l2_address)
        return {**values, **self.inventory.extra[key]}

    def _add_addresses(self, session: Session, values: dict[Key, Values], needed: t.Collection[str]) -> None:
        # a change of VRF needs to know them too
        if not ({"addresses", "vrf"} & set(needed)):
            return
        calls = [
            Call("ip_address_dump", {"sw_if_index": self.inventory.handle(key), "is_ipv6": is_ipv6})
            for key in values
            for is_ipv6 in (False, True)
        ]
        answers = iter(session.batch(calls))
        for found in values.values():
            found["addresses"] = frozenset(str(one.prefix) for family in (4, 6) for one in next(answers))

    def _add_vrf(self, session: Session, values: dict[Key, Values], needed: t.Collection[str]) -> None:
        if "vrf" not in needed:
            return
        calls = [
            Call("sw_interface_get_table", {"sw_if_index": self.inventory.handle(key), "is_ipv6": is_ipv6})
            for key in values
            for is_ipv6 in (False, True)
        ]
        answers = iter(session.batch(calls))
        for found in values.values():
            ip4, ip6 = int(next(answers).vrf_id), int(next(answers).vrf_id)
            found["vrf"] = ip4 if ip4 == ip6 else f"IPv4 {ip4}, IPv6 {ip6}"

    def _add_queues(self, session: Session, values: dict[Key, Values], needed: t.Collection[str]) -> None:
        needed = set(needed) & {"rx_queues", "tx_queues", "rx_mode"}
        if not needed:
            return
        modes: dict[int, list[int]] = {}
        for one in session.call("sw_interface_rx_placement_dump", sw_if_index=NO_INDEX):
            modes.setdefault(one.sw_if_index, []).append(int(one.mode))
        sent: dict[int, int] | None = None
        if "tx_queues" in needed and session.has("sw_interface_tx_placement_get"):
            sent = {}
            # VPP answers NO_SUCH_ENTRY when no interface has a queue at all
            everywhere = Call("sw_interface_tx_placement_get", {"sw_if_index": NO_INDEX, "cursor": 0}, (NO_SUCH_ENTRY,))
            for one in session.batch([everywhere])[0]:
                sent[one.sw_if_index] = sent.get(one.sw_if_index, 0) + 1
        for key, found in values.items():
            index = self.inventory.handle(key)
            if key[0] in ("loopback", "vlan"):
                continue
            held = modes.get(index, [])
            # a memif has its queues only while the other end is connected, so they cannot be compared
            found["rx_queues"] = len(held) if held and key[0] != "memif" else UNKNOWN
            found["tx_queues"] = UNKNOWN
            if sent is not None and key[0] == "af_packet":
                found["tx_queues"] = sent.get(index, UNKNOWN)
            if held:
                names = {_MODE_NAMES.get(mode, "unknown") for mode in held}
                found["rx_mode"] = names.pop() if len(names) == 1 else "mixed"

    def _add_gso(self, session: Session, values: dict[Key, Values], needed: t.Collection[str]) -> None:
        if "gso" not in needed:
            return
        # the request feature_is_enabled of VPP 26.06 answers true for interfaces that never had it, the text does not
        keys = [key for key in values if type_of(key).has_gso]
        calls = [Call("cli_inband", {"cmd": f"show interface {self.inventory.name(key)} features"}) for key in keys]
        for key, reply in zip(keys, session.batch(calls)):
            values[key]["gso"] = "gso-ip4" in hardware.features(reply.reply).get("ip4-output", [])

    def _add_hardware(self, session: Session, values: dict[Key, Values], needed: t.Collection[str]) -> None:
        only_in_text = {"checksum_gso", "qdisc_bypass", "rx_frame_size_bytes"}
        keys = [key for key in values if key[0] == "af_packet"]
        if not keys or not (only_in_text & set(needed)):
            return
        self.inventory.read_hardware(session, [self.inventory.name(key) for key in keys])
        for key in keys:
            record = self.inventory.hardware.get(self.inventory.name(key), hardware.Hardware())
            for name in only_in_text:
                value = getattr(record, name)
                values[key][name] = UNKNOWN if value is None else value

    # Making and removing

    def parent(self, key: Key) -> Key | None:
        return key[1] if key[0] == "vlan" else None

    def created_with(self, wish: Wish) -> Values:
        kind = type_of(wish.key)
        mac = wish.values.get("mac", UNKNOWN) if kind.has_mac and kind.made_with_mac else UNKNOWN
        return {"mtu": default_mtu(wish.key), "mac": mac, "link_mtu_bytes": DEFAULT_MTU}

    def prepare(self, todo: Plan) -> list[Call]:
        """The tables that interfaces are put into. VPP takes making one that exists as a success."""
        tables = sorted({int(step.after) for step in todo.sync if step.prop == "vrf" and step.after})
        return [
            Call(
                "ip_table_add_del",
                {"is_add": True, "table": {"table_id": table, "is_ip6": is_ip6, "name": ""}},
                where=f"table {table}",
            )
            for table in tables
            for is_ip6 in (False, True)
        ]

    def create(self, wish: Wish, handles: t.Mapping[Key, Handle]) -> list[Call]:
        create = type_of(wish.key).create
        if create is None:
            raise ValueError(f"{wish.key} cannot be made")
        return [create(wish.key, dict(wish.values), handles)._replace(where=self.name(wish.key))]

    def handle(self, reply: Reply) -> Handle:
        return int(reply.sw_if_index)

    def remove(self, found: Found) -> list[Call]:
        remove = type_of(found.key).remove
        if remove is None:
            raise ValueError(f"{found.key} cannot be removed")
        return [remove(found)._replace(where=found.name)]

    def name(self, key: Key) -> str:
        return self.inventory.name(key)


def as_config(inventory: Inventory, found: Found) -> Values:
    """An interface in the form of the option ``config``, so that it can be given back."""
    kind = TYPES[found.key[0]]
    identity = dict(zip(kind.identity, found.key[1:]))
    if kind.name == "vlan":
        identity["parent"] = inventory.name(found.key[1])
    result: Values = {"name": found.name, "type": kind.name, **identity}
    for name in sorted(found.values):
        value = found.values[name]
        if value is UNKNOWN or value is None or (name == "link_mtu_bytes" and kind.name != "hardware"):
            continue
        if isinstance(value, Mtu):
            parts = ("mtu_bytes", "mtu_ip4_bytes", "mtu_ip6_bytes", "mtu_mpls_bytes")
            result.update({part: size for part, size in zip(parts, dataclasses.astuple(value)) if size})
        elif name == "vrf" and not isinstance(value, int):
            continue  # one for each family: nothing that the option can say
        elif name == "rx_mode" and value not in MODES:
            continue
        else:
            result[name] = sorted(value) if isinstance(value, frozenset) else value
    return result


def as_state(inventory: Inventory, found: Found) -> Values:
    """An interface as it is, with what only VPP decides."""
    row = inventory.rows[found.key]
    facts = {
        "sw_if_index": found.handle,
        "link_up": bool(int(row.flags) & LINK_UP),
        "link_mtu_bytes": int(row.link_mtu),
    }
    return {**as_config(inventory, found), **facts}
