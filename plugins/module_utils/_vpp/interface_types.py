# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The types of interfaces that can be made, as data: what each takes, how VPP makes and removes it, how VPP names it.

A key identifies an interface without VPP's numbers and names, which a restart
or a new version may change: ``("af_packet", "eth1")``, ``("loopback", 5)``,
``("vlan", <key of the parent>, 100)``.
"""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._vpp.reconcile import Found, Key, Values
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.session import Call

#: VPP's own values (plugins/*/*.api, vnet/interface_types.api of VPP 26.06); they are part of its stable API.
AF_PACKET_ETHERNET = 1
AF_PACKET_QDISC_BYPASS, AF_PACKET_CKSUM_GSO = 1, 2
AF_XDP_MODES = {"auto": 0, "copy": 1, "zero_copy": 2}
AF_XDP_ALL_QUEUES = 65535
#: VPP locks around system calls for kernels before 5.6, and with workers then refuses interrupt mode.
AF_XDP_NO_SYSCALL_LOCK = 1
#: The kernel keeps this much in front of a received frame; the frame has the rest of a buffer (seen with Linux 6.18).
XDP_HEADROOM_BYTES = 256
ETHERNET_HEADER_BYTES = 14
MEMIF_ROLES = {"master": 0, "slave": 1}
TAP_GSO, TAP_CSUM = 1, 2
SUB_ONE_TAG, SUB_TWO_TAGS, SUB_DOT1AD, SUB_EXACT = 2, 4, 8, 16
IF_TYPE_SUB = 1
MODES = {"polling": 1, "interrupt": 2, "adaptive": 3}
#: What a device that VPP makes carries, and what a new interface has.
DEFAULT_MTU = 9000
NO_MAC = "00:00:00:00:00:00"


@dataclasses.dataclass(frozen=True)
class Type:
    """One type of interface."""

    name: str
    #: What identifies it, in the order of the key.
    identity: tuple[str, ...]
    #: What it is made with. What VPP can tell of these afterwards is compared.
    made_with: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    #: The rx modes of its driver; None when that is not known here.
    rx_modes: tuple[str, ...] | None = ()
    #: Needs a device of the kernel in the network namespace of VPP.
    on_host: bool = False
    removable: bool = True
    has_mac: bool = True
    #: Whether it can be made with a MAC address; otherwise that is set afterwards.
    made_with_mac: bool = True
    has_gso: bool = True
    create: t.Callable[[Key, Values, t.Mapping[Key, int]], Call] | None = None
    remove: t.Callable[[Found], Call] | None = None
    #: The name that VPP 26.06 gives; only for what is not made yet.
    expected: t.Callable[[Key], str] = lambda key: str(key[-1])
    #: The lines of VPP's command line that make it.
    script: t.Callable[[Key, Values], str] | None = None


def _mac(values: Values) -> dict[str, t.Any]:
    mac = values.get("mac")
    return {"hw_addr": mac or NO_MAC, "use_random_hw_addr": mac is None}


def _create_af_packet(key: Key, values: Values, handles: t.Mapping[Key, int]) -> Call:
    flags = AF_PACKET_QDISC_BYPASS * values.get("qdisc_bypass", True)
    flags |= AF_PACKET_CKSUM_GSO * values.get("checksum_gso", True)
    fields = {
        "mode": AF_PACKET_ETHERNET,
        "host_if_name": key[1],
        "num_rx_queues": values.get("rx_queues", 1),
        "num_tx_queues": values.get("tx_queues", 1),
        "rx_frame_size": values.get("rx_frame_size_bytes", 0),
        "flags": flags,
        **_mac(values),
    }
    return Call("af_packet_create_v3", fields, hint="VPP looks for it in its own network namespace")


def _script_af_packet(key: Key, values: Values) -> str:
    words = ["create host-interface", f"name {key[1]}"]
    words += _option("num-rx-queues", values, "rx_queues") + _option("num-tx-queues", values, "tx_queues")
    words += _option("rx-size", values, "rx_frame_size_bytes") + _option("hw-addr", values, "mac")
    words += ["qdisc-bypass-disable"] if values.get("qdisc_bypass") is False else []
    words += ["cksum-gso-disable"] if values.get("checksum_gso") is False else []
    return " ".join(words)


def _option(word: str, values: Values, name: str) -> list[str]:
    return [f"{word} {values[name]}"] if values.get(name) is not None else []


def _create_af_xdp(key: Key, values: Values, handles: t.Mapping[Key, int]) -> Call:
    fields = {
        "host_if": key[1],
        # VPP's own name for it counts the interfaces, so that it says something else after a restart
        "name": expected_name(key),
        # what arrives on a queue that VPP does not have goes to the kernel
        "rxq_num": values.get("rx_queues", AF_XDP_ALL_QUEUES),
        "mode": AF_XDP_MODES[values.get("xdp_mode", "auto")],
        "flags": AF_XDP_NO_SYSCALL_LOCK,
    }
    hint = (
        "The kernel's device must be up, in the network namespace of VPP and not used by another AF_XDP program, its "
        "driver must take an XDP program at this MTU, and zero copy needs a driver that has it; VPP's log (show "
        "logging) has the reason"
    )
    return Call("af_xdp_create_v3", fields, hint=hint)


def _script_af_xdp(key: Key, values: Values) -> str:
    words = ["create interface af_xdp", f"host-if {key[1]}", f"name {expected_name(key)}"]
    words += [f"num-rx-queues {values.get('rx_queues', 'all')}", "no-syscall-lock"]
    mode = {"copy": "no-zero-copy", "zero_copy": "zero-copy"}.get(values.get("xdp_mode", "auto"))
    return " ".join(words + ([mode] if mode else []))


def _create_tap(key: Key, values: Values, handles: t.Mapping[Key, int]) -> Call:
    offload = values.get("checksum_gso", False)
    mac, host, space = values.get("mac"), values.get("host_interface"), values.get("host_namespace")
    fields = {
        "id": key[1],
        "use_random_mac": mac is None,
        "mac_address": mac or NO_MAC,
        "num_rx_queues": values.get("rx_queues", 1),
        "num_tx_queues": values.get("tx_queues", 1),
        "tap_flags": (TAP_GSO | TAP_CSUM) if offload else 0,
        "host_if_name_set": host is not None,
        "host_if_name": host or "",
        "host_namespace_set": space is not None,
        "host_namespace": space or "",
        "tag": "",
    }
    hint = "A tap needs /dev/net/tun and /dev/vhost-net on the host (module vhost_net)"
    return Call("tap_create_v3", fields, hint=hint)


def _script_tap(key: Key, values: Values) -> str:
    words = [f"create tap id {key[1]}", *_option("hw-addr", values, "mac")]
    words += _option("num-rx-queues", values, "rx_queues") + _option("num-tx-queues", values, "tx_queues")
    words += _option("host-ns", values, "host_namespace") + _option("host-if-name", values, "host_interface")
    # 'gso' brings checksum offload along
    return " ".join(words + (["gso"] if values.get("checksum_gso") else []))


def _create_memif(key: Key, values: Values, handles: t.Mapping[Key, int]) -> Call:
    fields = {
        "role": MEMIF_ROLES[values.get("memif_role", "slave")],
        "mode": 0,
        "rx_queues": values.get("rx_queues", 1),
        "tx_queues": values.get("tx_queues", 1),
        "id": key[2],
        "socket_id": key[1],
        "ring_size": values.get("ring_size", 1024),
        "buffer_size": 2048,
        "hw_addr": values.get("mac") or NO_MAC,
        "secret": "",
    }
    return Call("memif_create_v2", fields)


def _script_memif(key: Key, values: Values) -> str:
    words = [f"create interface memif id {key[2]} socket-id {key[1]}", *_option("ring-size", values, "ring_size")]
    words += [*_option("hw-addr", values, "mac"), values.get("memif_role", "slave")]
    return " ".join(words + _option("rx-queues", values, "rx_queues") + _option("tx-queues", values, "tx_queues"))


def _create_loopback(key: Key, values: Values, handles: t.Mapping[Key, int]) -> Call:
    fields = {"mac_address": values.get("mac") or NO_MAC, "is_specified": True, "user_instance": key[1]}
    return Call("create_loopback_instance", fields)


def _create_vlan(key: Key, values: Values, handles: t.Mapping[Key, int]) -> Call:
    inner = values.get("inner_vlan_id") or 0
    flags = SUB_EXACT | (SUB_TWO_TAGS if inner else SUB_ONE_TAG) | SUB_DOT1AD * values.get("dot1ad", False)
    fields = {
        "sw_if_index": handles[key[1]],
        "sub_id": key[2],
        "sub_if_flags": flags,
        "outer_vlan_id": values["vlan_id"],
        "inner_vlan_id": inner,
    }
    hint = "Another sub-interface of the parent may have the same VLAN tags"
    return Call("create_subif", fields, hint=hint)


def _script_vlan(key: Key, values: Values) -> str:
    outer = "dot1ad" if values.get("dot1ad") else "dot1q"
    words = [f"create sub-interfaces {expected_name(key[1])} {key[2]} {outer} {values['vlan_id']}"]
    words += [f"inner-dot1q {values['inner_vlan_id']}"] if values.get("inner_vlan_id") else []
    return " ".join([*words, "exact-match"])


def _by_index(request: str) -> t.Callable[[Found], Call]:
    return lambda found: Call(request, {"sw_if_index": found.handle})


_QUEUES = ("rx_queues", "tx_queues")

TYPES: t.Final[dict[str, Type]] = {
    kind.name: kind
    for kind in (
        Type(
            "af_packet",
            ("host_interface",),
            (*_QUEUES, "checksum_gso", "qdisc_bypass", "rx_frame_size_bytes"),
            needs=("host_interface",),
            rx_modes=("polling", "interrupt"),
            on_host=True,
            create=_create_af_packet,
            remove=lambda found: Call("af_packet_delete", {"host_if_name": found.key[1]}),
            expected=lambda key: f"host-{key[1]}",
            script=_script_af_packet,
        ),
        Type(
            "af_xdp",
            ("host_interface",),
            ("rx_queues", "xdp_mode"),
            needs=("host_interface",),
            rx_modes=("polling", "interrupt"),
            on_host=True,
            made_with_mac=False,
            create=_create_af_xdp,
            remove=_by_index("af_xdp_delete"),
            expected=lambda key: f"xdp-{key[1]}",
            script=_script_af_xdp,
        ),
        Type(
            "tap",
            ("instance",),
            (*_QUEUES, "checksum_gso", "host_interface", "host_namespace"),
            needs=("instance",),
            rx_modes=("polling", "interrupt", "adaptive"),
            create=_create_tap,
            remove=_by_index("tap_delete_v2"),
            expected=lambda key: f"tap{key[1]}",
            script=_script_tap,
        ),
        Type(
            "memif",
            ("memif_socket_id", "memif_id"),
            (*_QUEUES, "memif_role", "ring_size"),
            needs=("memif_id",),
            rx_modes=("polling", "interrupt", "adaptive"),
            create=_create_memif,
            remove=_by_index("memif_delete"),
            expected=lambda key: f"memif{key[1]}/{key[2]}",
            script=_script_memif,
        ),
        Type(
            "loopback",
            ("instance",),
            needs=("instance",),
            create=_create_loopback,
            remove=_by_index("delete_loopback"),
            expected=lambda key: f"loop{key[1]}",
            script=lambda key, values: " ".join(
                ["create loopback interface", *_option("mac", values, "mac"), f"instance {key[1]}"]
            ),
        ),
        Type(
            "vlan",
            ("parent", "sub_id"),
            ("vlan_id", "inner_vlan_id", "dot1ad"),
            needs=("parent", "vlan_id"),
            has_mac=False,
            create=_create_vlan,
            remove=_by_index("delete_subif"),
            expected=lambda key: f"{expected_name(key[1])}.{key[2]}",
            script=_script_vlan,
        ),
        # a network card, or anything else that is made elsewhere
        Type("hardware", ("name",), needs=("name",), rx_modes=None, removable=False),
    )
}


def type_of(key: Key) -> Type:
    return TYPES[key[0]]


def expected_name(key: Key) -> str:
    """How VPP 26.06 names it. What exists is called by the name that VPP told instead."""
    return type_of(key).expected(key)
