# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The addresses of an interface, as one setting.

One setting and not one for each address, as IPv4 addresses depend on each
other: the first of a network is the primary one, and deleting it deletes
the others of that network too.
"""

from __future__ import annotations

import ipaddress
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._host.device import DeviceKnob
from ansible_collections.fastpath.bench.plugins.module_utils._host.knob import (
    RANK_ADDRESSES,
    Knob,
    Value,
    register,
)
from ansible_collections.fastpath.bench.plugins.module_utils._host.route import routes_of

_FOREVER = 4294967295
_FLAGS = ("nodad", "noprefixroute", "home", "mngtmpaddr", "autojoin")
_EXACT = "exact"
_PRESENT = "present"


def parse_address(text: str) -> ipaddress.IPv4Interface | ipaddress.IPv6Interface:
    """An address with its prefix length, as the user wrote it."""
    try:
        if "/" not in text:
            raise ValueError("the prefix length is missing")
        return ipaddress.ip_interface(text.strip())
    except ValueError as err:
        raise BenchError(
            f"{text!r} is not an address with a prefix length ({err})",
            remedy="Write 10.0.0.1/24 or 2001:db8::1/64",
            code="bad_address",
        ) from err


def eui64(mac: str) -> str | None:
    """The link-local address that the kernel makes of a MAC address."""
    try:
        octets = [int(part, 16) for part in mac.split(":")]
    except ValueError:
        return None
    if len(octets) != 6:
        return None
    octets[0] ^= 2
    half = bytes([*octets[:3], 0xFF, 0xFE, *octets[3:]])
    return str(ipaddress.IPv6Address(b"\xfe\x80" + bytes(6) + half))


def _record(link: dict[str, t.Any], info: dict[str, t.Any]) -> dict[str, t.Any]:
    """What must be known to set this address again."""
    record: dict[str, t.Any] = {
        "address": f"{info['local']}/{info['prefixlen']}",
        "family": 4 if info["family"] == "inet" else 6,
        "scope": info.get("scope", "global"),
    }
    if "address" in info:
        record["peer"] = f"{info['address']}/{info['prefixlen']}"
        record["address"] = info["local"]
    for name in ("broadcast", "label", "metric"):
        if name in info:
            record[name] = info[name]
    flags = [flag for flag in _FLAGS if info.get(flag)]
    if flags:
        record["flags"] = flags
    if info.get("valid_life_time", _FOREVER) != _FOREVER:
        # Runs down all the time: kept to set it again, not to compare.
        record["lifetime_s"] = [info["valid_life_time"], info["preferred_life_time"]]
    if _is_kernel_made(link, info):
        record["kernel"] = True
    return record


def _is_kernel_made(link: dict[str, t.Any], info: dict[str, t.Any]) -> bool:
    """The link-local address made by the kernel, and what comes from router advertisements."""
    if info["family"] == "inet":
        return False
    if info.get("temporary") or info.get("protocol") in ("kernel_ll", "kernel_ra", "kernel_lo"):
        return True
    if info.get("mngtmpaddr") and info.get("dynamic"):
        return True
    if info.get("scope") != "link":
        return False
    # With another mode than eui64 the kernel's own address cannot be told from a set one.
    own = eui64(link.get("address", ""))
    return bool(link.get("inet6_addr_gen_mode", "eui64") != "eui64" or info["local"] == own)


def _set_ones(records: t.Iterable[dict[str, t.Any]]) -> list[dict[str, t.Any]]:
    """The addresses that a person or a program set; the kernel's own come and go by themselves."""
    return [record for record in records if not record.get("kernel")]


def _bare(record: dict[str, t.Any]) -> dict[str, t.Any]:
    bare = {key: value for key, value in record.items() if key != "lifetime_s"}
    bare["dynamic"] = "lifetime_s" in record
    return bare


def _local(record: dict[str, t.Any]) -> str:
    return str(record["address"])


@register
class Addresses(DeviceKnob):
    """All addresses of an interface; those that the kernel makes itself are marked, and neither compared nor set.

    Value: IPv4 in order, then IPv6 sorted.
    Wish: ``{"state": "exact" | "present", "addresses": [...], "dad": bool}``.
    """

    kind = "addresses"
    risky = True

    @property
    def rank(self) -> int:
        return RANK_ADDRESSES

    def read(self) -> Value:
        link = self.link
        records = [_record(link, info) for info in link.get("addr_info", []) if "local" in info]
        old = [record for record in records if record["family"] == 4]
        new = sorted((record for record in records if record["family"] == 6), key=_local)
        return old + new

    def same(self, one: Value, other: Value) -> bool:
        return [_bare(record) for record in _set_ones(one)] == [_bare(record) for record in _set_ones(other)]

    def satisfied(self, current: Value, wish: t.Any) -> bool:
        want = {str(parse_address(text)) for text in wish["addresses"]}
        if not want <= {_local(record) for record in current if "peer" not in record}:
            return False
        return bool(wish.get("state", _EXACT) == _PRESENT) or {_local(record) for record in _set_ones(current)} <= want

    def resolve(self, current: Value, wish: t.Any) -> Value:
        want = [parse_address(text) for text in wish["addresses"]]
        texts = {str(address) for address in want}
        keep_all = wish.get("state", _EXACT) == _PRESENT
        keep = [
            record
            for record in current
            if keep_all or record.get("kernel") or ("peer" not in record and _local(record) in texts)
        ]
        have = {_local(record) for record in keep if "peer" not in record}
        fresh = [self._fresh(address, bool(wish.get("dad", True))) for address in want if str(address) not in have]
        old = [record for record in keep + fresh if record["family"] == 4]
        new = sorted((record for record in keep + fresh if record["family"] == 6), key=_local)
        return old + new

    def _fresh(self, address: ipaddress.IPv4Interface | ipaddress.IPv6Interface, dad: bool) -> dict[str, t.Any]:
        scope = "link" if address.ip.is_link_local and address.version == 6 else "global"
        record: dict[str, t.Any] = {"address": str(address), "family": address.version, "scope": scope}
        if address.version == 4:
            record["label"] = self.device
        elif not dad:
            record["flags"] = ["nodad"]
        return record

    def check(self, current: Value, wish: t.Any) -> None:
        seen: set[str] = set()
        mtu = int(self.link["mtu"])
        for text in wish["addresses"]:
            address = parse_address(text)
            if address.ip.is_multicast or address.ip.is_unspecified:
                raise BenchError(f"{text} cannot be set on an interface", where=self.device, code="bad_address")
            if str(address) in seen:
                raise BenchError(f"{text} is given twice", where=self.device, code="bad_address")
            seen.add(str(address))
            if address.version == 6 and int(wish.get("mtu_bytes") or mtu) < 1280:
                raise BenchError(
                    f"{text} needs an MTU of at least 1280: below that the kernel takes IPv6 off the interface",
                    where=self.device,
                    code="mtu_below_ipv6",
                )

    def write(self, value: Value) -> None:
        """Keep what is right in place, so that a connection over an address that stays does not break."""
        for family in (6, 4):
            self._write_family([record for record in _set_ones(value) if record["family"] == family], family)

    def _now(self, family: int) -> list[dict[str, t.Any]]:
        return [record for record in _set_ones(self.read()) if record["family"] == family]

    def _write_family(self, wanted: list[dict[str, t.Any]], family: int) -> None:
        if family == 6:
            bare = [_bare(record) for record in wanted]
            for record in self._now(6):
                if _bare(record) not in bare:
                    self._delete(record)
        else:
            self._delete_from_first_difference(wanted)
        have = [_bare(record) for record in self._now(family)]
        for record in wanted:
            if _bare(record) not in have:
                self._add(record)

    def _delete_from_first_difference(self, wanted: list[dict[str, t.Any]]) -> None:
        """IPv4 addresses keep their order, so all behind the first wrong one go, last first."""
        now = self._now(4)
        keep = 0
        while keep < min(len(now), len(wanted)) and _bare(now[keep]) == _bare(wanted[keep]):
            keep += 1
        for record in reversed(now[keep:]):
            # A primary address may have taken its secondary ones along.
            if _bare(record) in [_bare(other) for other in self._now(4)]:
                self._delete(record)

    def _words(self, record: dict[str, t.Any]) -> list[str]:
        words = [_local(record)]
        if "peer" in record:
            words += ["peer", record["peer"]]
        return words

    def _delete(self, record: dict[str, t.Any]) -> None:
        argv = ["ip", f"-{record['family']}", "address", "del", *self._words(record), "dev", self.device]
        self.access.change(argv, where=self.device)

    def _add(self, record: dict[str, t.Any]) -> None:
        argv = ["ip", f"-{record['family']}", "address", "add", *self._words(record), "dev", self.device]
        for name in ("broadcast", "label", "metric"):
            if name in record:
                argv += [name, str(record[name])]
        if record["family"] == 4:
            argv += ["scope", record["scope"]]
        if "lifetime_s" in record:
            valid, preferred = record["lifetime_s"]
            argv += ["valid_lft", str(valid), "preferred_lft", str(preferred)]
        argv += record.get("flags", [])
        self.access.change(argv, where=self.device)

    def collateral(self, current: Value, desired: Value) -> list[Knob]:
        """With the last address of a family, or the source address of a route, routes go too."""
        return list(routes_of(self.access, self.device))
