# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""IPsec of the VPP in memory, with the habits of VPP 26.06.

An SA is told with the bytes of its salt in the other order. Deleting an interface that is protected takes the
protection with it, and deleting an SA that something uses keeps it until nothing does.
"""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.fastpath.bench.tests.unit.plugins.module_utils._vpp.fake_nat44 import NatRefuse

_ROW = "{name:<28}{op:<5}{engines}"


class Row:
    """An answer, or a part of one."""

    def __init__(self, **fields: t.Any) -> None:
        self.__dict__.update(fields)


@dataclasses.dataclass
class Ipsec:
    sas: dict[int, dict[str, t.Any]] = dataclasses.field(default_factory=dict)
    #: index of the interface -> instance, and -> outgoing and incoming SA
    itfs: dict[int, int] = dataclasses.field(default_factory=dict)
    protects: dict[int, tuple[int, list[int]]] = dataclasses.field(default_factory=dict)
    lenders: dict[int, int] = dataclasses.field(default_factory=dict)
    mss: dict[int, tuple[int, int, int, int]] = dataclasses.field(default_factory=dict)
    engine: str = "native"
    engines: tuple[str, ...] = ("native", "openssl")


class IpsecRequests:
    """The requests. Mixed into the session of the VPP in memory."""

    vpp: t.Any

    def do_ipsec_sad_entry_add(self, entry: dict[str, t.Any]) -> t.Any:
        sas = self.vpp.ipsec.sas
        if entry["sad_id"] in sas:
            raise NatRefuse(-56)
        sas[entry["sad_id"]] = entry
        return Row(retval=0, stat_index=len(sas) - 1)

    def do_ipsec_sad_entry_del(self, id: int) -> None:
        if self.vpp.ipsec.sas.pop(id, None) is None:
            raise NatRefuse(-6)

    def do_ipsec_sa_v3_dump(self, sa_id: int) -> list[t.Any]:
        found = []
        for number, (_id, entry) in enumerate(sorted(self.vpp.ipsec.sas.items())):
            shown = {
                **entry,
                "crypto_key": Row(**entry["crypto_key"]),
                "tunnel": Row(**entry["tunnel"]),
                "salt": int.from_bytes(entry["salt"].to_bytes(4, "big"), "little"),
            }
            found.append(Row(entry=Row(**shown), stat_index=number))
        return found

    def do_ipsec_itf_create(self, itf: dict[str, t.Any]) -> t.Any:
        name = f"ipsec{itf['user_instance']}"
        if self.vpp.named(name):
            raise NatRefuse(-56)
        made = self.vpp.new(name, "IPSEC", mtu=[9000, 0, 0, 0])
        self.vpp.ipsec.itfs[made.index] = itf["user_instance"]
        return Row(retval=0, sw_if_index=made.index)

    def do_ipsec_itf_delete(self, sw_if_index: int) -> None:
        ipsec = self.vpp.ipsec
        if sw_if_index not in ipsec.itfs:
            raise NatRefuse(-2)
        del ipsec.itfs[sw_if_index]
        for held in (ipsec.protects, ipsec.mss, ipsec.lenders):
            held.pop(sw_if_index, None)
        self.vpp.drop(self.vpp.get(sw_if_index))

    def do_ipsec_itf_dump(self, sw_if_index: int) -> list[t.Any]:
        found = self.vpp.ipsec.itfs.items()
        return [Row(itf=Row(user_instance=number, sw_if_index=index)) for index, number in found]

    def do_ipsec_tunnel_protect_update(self, tunnel: dict[str, t.Any]) -> None:
        self.vpp.get(tunnel["sw_if_index"])
        self.vpp.ipsec.protects[tunnel["sw_if_index"]] = (tunnel["sa_out"], list(tunnel["sa_in"]))

    def do_ipsec_tunnel_protect_del(self, sw_if_index: int, nh: t.Any) -> None:
        if self.vpp.ipsec.protects.pop(sw_if_index, None) is None:
            raise NatRefuse(-6)

    def do_ipsec_tunnel_protect_dump(self, sw_if_index: int) -> list[t.Any]:
        found = self.vpp.ipsec.protects.items()
        return [
            Row(tun=Row(sw_if_index=index, sa_out=out, n_sa_in=len(back), sa_in=back)) for index, (out, back) in found
        ]

    def do_sw_interface_set_unnumbered(self, sw_if_index: int, unnumbered_sw_if_index: int, is_add: bool) -> None:
        self.vpp.get(sw_if_index)
        self.vpp.get(unnumbered_sw_if_index)
        if is_add:
            self.vpp.ipsec.lenders[unnumbered_sw_if_index] = sw_if_index
        else:
            self.vpp.ipsec.lenders.pop(unnumbered_sw_if_index, None)

    def do_ip_unnumbered_dump(self, sw_if_index: int) -> list[t.Any]:
        found = self.vpp.ipsec.lenders.items()
        return [Row(sw_if_index=borrower, ip_sw_if_index=lender) for borrower, lender in found]

    def do_mss_clamp_enable_disable(
        self, sw_if_index: int, ipv4_mss: int, ipv6_mss: int, ipv4_direction: int, ipv6_direction: int
    ) -> None:
        self.vpp.get(sw_if_index)
        self.vpp.ipsec.mss[sw_if_index] = (ipv4_mss, ipv6_mss, ipv4_direction, ipv6_direction)

    def do_mss_clamp_get(self, cursor: int, sw_if_index: int) -> list[t.Any]:
        names = ("ipv4_mss", "ipv6_mss", "ipv4_direction", "ipv6_direction")
        return [Row(sw_if_index=index, **dict(zip(names, values))) for index, values in self.vpp.ipsec.mss.items()]

    def do_crypto_set_handler(self, alg_name: str, engine: str, oct: int, is_async: int) -> None:
        if engine not in self.vpp.ipsec.engines:
            raise NatRefuse(-1)
        self.vpp.ipsec.engine = engine

    # The command line

    def crypto_handlers(self, _words: list[str]) -> str:
        ipsec = self.vpp.ipsec
        told = " ".join(f"\x1b[36m{one}*\x1b[0m" if one == ipsec.engine else one for one in ipsec.engines)
        chained = "\x1b[0m \x1b[36mopenssl*\x1b[0m         "
        lines = ["\x1b[33mAlgorithm                   \x1b[0m Op   Simple            Chained         Async"]
        for name in ("aes-128-gcm", "aes-192-gcm", "aes-256-gcm", "chacha20-poly1305"):
            for op, shown in (("enc", name), ("dec", "")):
                lines.append(_ROW.format(name=shown, op=op, engines=f"{told}  {chained}  -    "))
        return "\n".join(lines) + "\n"
