# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What was observed on a host while a trial ran, and what is known of the host itself.

The one place that knows the keys of a host's sample (``dut`` and ``endpoints`` of a trial) and of a fingerprint. What a
host did not tell is None or empty, and no rule draws a conclusion from it.
"""

from __future__ import annotations

import dataclasses
import typing as t
from collections import abc

#: Bytes of an Ethernet header: what an interface counts on top of its MTU (the FCS is not counted by Linux).
ETHERNET_HEADER_BYTES = 14
#: Bytes of the headers of UDP and IPv4, the smaller of the two families.
UDP_HEADER_BYTES = 28
#: Packets a call of VPP's nodes, below which a thread has room: a full call has 256.
FEW_VECTORS = 16.0

_KINDS = ("softirq", "irq", "system", "user", "nice", "steal")


@dataclasses.dataclass(frozen=True)
class CpuUse:
    """One CPU over the trial's window; shares of the time, 0 to 1."""

    cpu: str
    busy: float
    #: What it was busy with most, and that kind's share.
    kind: str | None = None
    share: float | None = None


@dataclasses.dataclass(frozen=True)
class InterfaceUse:
    """One interface over the trial's window, as counted by the host."""

    name: str
    rx_packets: int | None = None
    rx_bytes: int | None = None
    tx_packets: int | None = None
    tx_bytes: int | None = None
    rx_dropped: int | None = None
    tx_dropped: int | None = None
    rx_errors: int | None = None
    tx_errors: int | None = None
    mtu_bytes: int | None = None
    speed_bps: float | None = None

    @property
    def known(self) -> bool:
        return self.rx_packets is not None

    @property
    def mean_rx_frame_bytes(self) -> float | None:
        """Mean size of a received frame, Ethernet header included, FCS not."""
        if not self.rx_packets or self.rx_bytes is None:
            return None
        return self.rx_bytes / self.rx_packets


@dataclasses.dataclass(frozen=True)
class VppThread:
    """One of VPP's threads over the trial's window."""

    number: int
    name: str
    packets: int
    vectors: int
    vectors_per_call: float | None
    #: Of the time, and not of work alone: what it waited for a CPU while it had packets is in it.
    clocks_per_packet: float | None
    cpu_ratio: float | None
    #: Nodes that were called for nothing as well, which only polling does.
    polling: tuple[str, ...] = ()

    @property
    def receives_by(self) -> str | None:
        """``polling`` or ``interrupt``, None where the counters cannot tell.

        A thread that polls asks again and again for nothing, unless there is always something: with few packets a
        call and no call for nothing, it was woken by its packets.
        """
        if self.polling:
            return "polling"
        few = self.vectors_per_call is not None and self.vectors_per_call < FEW_VECTORS
        return "interrupt" if few else None


@dataclasses.dataclass(frozen=True)
class VppNode:
    """One node of VPP's graph on one thread."""

    thread: int
    name: str
    vectors: int
    vectors_per_call: float | None
    clocks_per_packet: float | None


@dataclasses.dataclass(frozen=True)
class VppUse:
    """What VPP did on one host in one trial."""

    threads: tuple[VppThread, ...]
    #: Those that took the most clocks first.
    nodes: tuple[VppNode, ...]
    busiest_number: int | None
    #: What the vectors per call mean, in words.
    meaning: str | None
    #: Packets that VPP's interfaces dropped; None when that is not known.
    dropped: int | None
    #: (interface, counter) to packets lost, and (node, reason) to packets; only those that are not 0.
    lost: t.Mapping[tuple[str, str], int]
    reasons: t.Mapping[tuple[str, str], int]
    #: Why there are no figures, when there are none.
    reason: str | None = None
    #: What its security associations carried, in and out; None when it has none.
    ipsec_bytes: int | None = None

    @property
    def busiest(self) -> VppThread | None:
        return next((thread for thread in self.threads if thread.number == self.busiest_number), None)

    @property
    def costly_nodes(self) -> tuple[VppNode, ...]:
        """Nodes of the busiest thread, those that took the most clocks first."""
        return tuple(node for node in self.nodes if node.thread == self.busiest_number)


@dataclasses.dataclass(frozen=True)
class IpsecUse:
    """What an IPsec gateway was set up as."""

    mode: str
    #: The xfrm interfaces, one for each tunnel; none with policies.
    interfaces: tuple[str, ...]
    tunnels: int
    outer_pairs: int
    hash_policy: int | None
    #: Algorithm to its driver, of those that the processor is known not to help with.
    plain: t.Mapping[str, str]
    #: VPP encrypts: the kernel's counters say nothing of it.
    by_vpp: bool = False


@dataclasses.dataclass(frozen=True)
class HostUse:
    """What one host did in one trial."""

    window_s: float | None
    cpus: tuple[CpuUse, ...]
    interfaces: tuple[InterfaceUse, ...]
    softnet_dropped: int | None
    softnet_squeezed: int | None
    #: VPP ran on this host, so a CPU at 100 % user time may be a worker that polls, and no sign of load.
    polls: bool
    #: Why there are no figures, when there are none.
    reason: str | None = None
    #: What VPP did, where it ran.
    vpp: VppUse | None = None
    #: As which gateway it was set up, where it was one.
    ipsec: IpsecUse | None = None
    #: What the kernel's ESP carried in the window, in and out; None when the kernel does not tell.
    esp_bytes: float | None = None

    @property
    def tunnel_interfaces(self) -> tuple[InterfaceUse, ...]:
        """The counters of its tunnels."""
        names = self.ipsec.interfaces if self.ipsec else ()
        return tuple(interface for interface in self.interfaces if interface.name in names)

    @property
    def ipsec_bytes(self) -> float | None:
        """What its tunnels carried, in and out; None when that is not known."""
        if self.vpp is not None and self.vpp.ipsec_bytes is not None:
            return self.vpp.ipsec_bytes
        if self.ipsec is not None and self.ipsec.by_vpp:
            return None
        if self.esp_bytes is not None:
            return self.esp_bytes
        counts = [count for one in self.tunnel_interfaces for count in (one.rx_bytes, one.tx_bytes)]
        return _total(counts) if counts and None not in counts else None

    @property
    def busiest_cpu(self) -> CpuUse | None:
        return max(self.cpus, key=lambda cpu: cpu.busy, default=None)

    @property
    def ingress(self) -> InterfaceUse | None:
        """The interface that received most bytes: where the data came in."""
        known = [interface for interface in self.interfaces if interface.rx_bytes is not None]
        return max(known, key=lambda interface: interface.rx_bytes or 0, default=None)

    @property
    def rx_packets(self) -> int | None:
        return _total(interface.rx_packets for interface in self.interfaces)

    @property
    def rx_bytes(self) -> int | None:
        return _total(interface.rx_bytes for interface in self.interfaces)

    @property
    def rx_frames_per_s(self) -> float | None:
        """Frames received on all sampled interfaces, acknowledgements and both directions included."""
        if self.rx_packets is None or not self.window_s:
            return None
        return self.rx_packets / self.window_s


def host_use(sample: t.Mapping[str, t.Any]) -> HostUse:
    """Read a host's sample of one trial, as module dut_sample cuts it."""
    softnet = _mapping(sample.get("softnet"))
    cpus = _mapping(sample.get("cpu")).get("cpus")
    return HostUse(
        window_s=_number(_mapping(sample.get("window")), "counted_s"),
        cpus=tuple(cpu for cpu in map(_cpu, cpus if isinstance(cpus, list) else ()) if cpu is not None),
        interfaces=tuple(
            _interface(str(name), _mapping(counters))
            for name, counters in sorted(_mapping(sample.get("interfaces")).items())
            if name != "lo"
        ),
        softnet_dropped=_count(softnet, "dropped"),
        softnet_squeezed=_count(softnet, "time_squeeze"),
        polls=bool(sample.get("vpp")),
        reason=str(sample["reason"]) if sample.get("reason") else None,
        vpp=_vpp(sample["vpp"]) if isinstance(sample.get("vpp"), abc.Mapping) else None,
        ipsec=_ipsec(sample["ipsec"]) if isinstance(sample.get("ipsec"), abc.Mapping) else None,
        esp_bytes=_esp_bytes(_mapping(sample.get("esp")), _number(_mapping(sample.get("window")), "counted_s")),
    )


def _esp_bytes(esp: t.Mapping[str, t.Any], window_s: float | None) -> float | None:
    """For the window: slow readings of the associations are made less often than those of the other counters."""
    carried, counted_s = _number(esp, "bytes"), _number(esp, "counted_s")
    return carried / counted_s * window_s if carried is not None and counted_s and window_s else None


def _ipsec(about: t.Mapping[str, t.Any]) -> IpsecUse:
    kernel = about.get("kernel")
    rows = [row for row in kernel if isinstance(row, abc.Mapping)] if isinstance(kernel, list) else []
    return IpsecUse(
        mode=str(about.get("mode")),
        interfaces=tuple(str(name) for name in about.get("interfaces") or ()),
        tunnels=_count(about, "tunnels") or 0,
        outer_pairs=_count(about, "outer_pairs") or 0,
        hash_policy=_count(about, "hash_policy"),
        plain={str(row.get("name")): str(row.get("driver")) for row in rows if row.get("accelerated") is False},
        # only a gateway of VPP tells which engines compute
        by_vpp="engines" in about,
    )


# -- fingerprints -------------------------------------------------------------------------------------------------


def hypervisor(fingerprint: t.Mapping[str, t.Any]) -> str | None:
    """The hypervisor's name when the host's CPUs are virtual, else None (also when it is not known)."""
    name = fingerprint.get("hypervisor", _mapping(fingerprint.get("cpu")).get("hypervisor"))
    return str(name) if name and str(name).lower() not in ("none", "no", "false") else None


def emulated(fingerprint: t.Mapping[str, t.Any]) -> bool:
    """Whether QEMU computes the host's CPUs: with KVM its name would be kvm, and the processor's model its own."""
    model = str(_mapping(fingerprint.get("cpu")).get("model") or "")
    return hypervisor(fingerprint) == "qemu" or "QEMU TCG" in model


def machines(fingerprints: t.Mapping[str, t.Mapping[str, t.Any]]) -> list[list[str]]:
    """Hosts in groups, each of which runs on one kernel; hosts of which nothing is known are left out.

    A container may be shown a boot id of its own making, so the kernel's word for itself comes first. Only two boot
    ids that are known and differ tell hosts apart that look alike otherwise, such as clones started together.
    """
    groups: dict[tuple[str, str], list[str]] = {}
    for host, fingerprint in fingerprints.items():
        found = _mapping(fingerprint.get("machine"))
        kernel, boot = found.get("kernel_instance"), found.get("boot_id")
        if not kernel and not boot:
            continue
        alike = [key for key in groups if kernel and key[0] == kernel and (not boot or key[1] in ("", boot))]
        same_boot = [key for key in groups if boot and key[1] == boot]
        key = (same_boot or alike or [(str(kernel or ""), str(boot or ""))])[0]
        groups.setdefault(key, []).append(host)
    return list(groups.values())


def drivers(fingerprint: t.Mapping[str, t.Any]) -> dict[str, str]:
    """Interface to driver."""
    return {
        str(name): str(_mapping(details)["driver"])
        for name, details in sorted(_mapping(fingerprint.get("interfaces")).items())
        if _mapping(details).get("driver")
    }


# -- reading ------------------------------------------------------------------------------------------------------


def _mapping(value: t.Any) -> t.Mapping[str, t.Any]:
    return value if isinstance(value, abc.Mapping) else {}


def _number(values: t.Mapping[str, t.Any], *keys: str) -> float | None:
    for key in keys:
        value = values.get(key)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return value
    return None


def _count(values: t.Mapping[str, t.Any], key: str) -> int | None:
    number = _number(values, key)
    return None if number is None else int(number)


def _cpu(entry: t.Any) -> CpuUse | None:
    kinds = _mapping(entry)
    busy = _number(kinds, "busy")
    if busy is None:
        return None
    shares = {kind: share for kind in _KINDS for share in [_number(kinds, kind)] if share is not None}
    kind = max(shares, key=lambda word: shares[word], default=None)
    return CpuUse(str(kinds.get("cpu")), busy, kind, shares[kind] if kind else None)


def _interface(name: str, counters: t.Mapping[str, t.Any]) -> InterfaceUse:
    return InterfaceUse(
        name=name,
        rx_packets=_count(counters, "rx_packets"),
        rx_bytes=_count(counters, "rx_bytes"),
        tx_packets=_count(counters, "tx_packets"),
        tx_bytes=_count(counters, "tx_bytes"),
        rx_dropped=_count(counters, "rx_dropped"),
        tx_dropped=_count(counters, "tx_dropped"),
        rx_errors=_count(counters, "rx_errors"),
        tx_errors=_count(counters, "tx_errors"),
        mtu_bytes=_count(counters, "mtu_bytes"),
        speed_bps=_number(counters, "speed_bps"),
    )


def _vpp(runtime: t.Mapping[str, t.Any]) -> VppUse:
    """Read what module vpp_runtime documents as ``runtime``."""
    drops = _mapping(runtime.get("drops"))
    lost = {
        (str(name), str(counter)): int(count)
        for name, counters in sorted(_mapping(drops.get("interfaces")).items())
        for counter, count in sorted(_mapping(counters).items())
        if isinstance(count, (int, float)) and count
    }
    reasons: dict[tuple[str, str], int] = {}
    for row in _rows(drops.get("reasons")):
        count = _count(row, "count")
        if count:
            key = (str(row.get("node")), str(row.get("reason")))
            reasons[key] = reasons.get(key, 0) + count
    return VppUse(
        threads=tuple(_vpp_thread(row) for row in _rows(runtime.get("threads"))),
        nodes=tuple(
            VppNode(
                thread=_count(row, "thread") or 0,
                name=str(row.get("node")),
                vectors=_count(row, "vectors") or 0,
                vectors_per_call=_number(row, "vectors_per_call"),
                clocks_per_packet=_number(row, "clocks_per_packet"),
            )
            for row in _rows(runtime.get("nodes"))
        ),
        busiest_number=_count(runtime, "busiest_thread"),
        meaning=str(runtime["meaning"]) if runtime.get("meaning") else None,
        dropped=_count(drops, "packets"),
        lost=lost,
        reasons=reasons,
        reason=str(runtime["reason"]) if runtime.get("reason") else None,
        ipsec_bytes=_count(_mapping(runtime.get("ipsec")), "carried_bytes"),
    )


def _vpp_thread(row: t.Mapping[str, t.Any]) -> VppThread:
    polling = row.get("polling")
    number = _count(row, "thread") or 0
    return VppThread(
        number=number,
        name=str(row.get("name") or f"thread {number}"),
        packets=_count(row, "packets") or 0,
        vectors=_count(row, "vectors") or 0,
        vectors_per_call=_number(row, "vectors_per_call"),
        clocks_per_packet=_number(row, "clocks_per_packet"),
        cpu_ratio=_number(row, "cpu_ratio"),
        polling=tuple(map(str, polling)) if isinstance(polling, list) else (),
    )


def _rows(value: t.Any) -> list[t.Mapping[str, t.Any]]:
    return [row for row in value if isinstance(row, abc.Mapping)] if isinstance(value, list) else []


def _total(values: t.Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
