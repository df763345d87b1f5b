# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What ``ip link`` sets: MTU, up or down, promiscuous mode, length of the transmit queue."""

from __future__ import annotations

import os
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._host.access import Refused
from ansible_collections.fastpath.bench.plugins.module_utils._host.address import Addresses
from ansible_collections.fastpath.bench.plugins.module_utils._host.device import DeviceKnob
from ansible_collections.fastpath.bench.plugins.module_utils._host.knob import (
    RANK_FEATURES,
    RANK_LINK,
    RANK_MTU,
    Knob,
    Value,
    register,
)
from ansible_collections.fastpath.bench.plugins.module_utils._host.route import routes_of
from ansible_collections.fastpath.bench.plugins.module_utils._host.sysctl import Sysctl

#: Below it the kernel takes IPv6 off the interface: addresses, routes and settings are lost.
IPV6_MIN_MTU = 1280


@register
class Mtu(DeviceKnob):
    kind = "link.mtu"
    risky = True

    @property
    def rank(self) -> int:
        return RANK_MTU

    def read(self) -> Value:
        return int(self.link["mtu"])

    def write(self, value: Value) -> None:
        self.set_link("mtu", str(value))

    def check(self, current: Value, wish: t.Any) -> None:
        link = self.link
        low, high = int(link.get("min_mtu") or 0), int(link.get("max_mtu") or 0)
        if wish < low:
            raise Refused(f"MTU {wish} is below the smallest of this link", where=self.device, remedy=f"At least {low}")
        if high and wish > high:
            raise Refused(f"MTU {wish} is more than this link carries", where=self.device, remedy=f"At most {high}")
        lower = self.access.links().get(link.get("link", ""))
        stacked = link.get("linkinfo", {}).get("info_kind") in ("vlan", "macvlan", "ipvlan")
        if lower and stacked and wish > int(lower["mtu"]):
            raise Refused(
                f"MTU {wish} is more than {lower['ifname']} below it carries",
                where=self.device,
                remedy=f"Raise the MTU of {lower['ifname']} (now {lower['mtu']}) first",
            )

    def collateral(self, current: Value, desired: Value) -> list[Knob]:
        guards: list[Knob] = []
        for name, other in self.access.links().items():
            # An interface on top of this one, or the bridge it is a port of, may follow.
            if other.get("link") == self.device or name == self.link.get("master"):
                guards += [Mtu(self.access, name), Up(self.access, name)]
        if min(current, desired) < IPV6_MIN_MTU:
            guards += [Addresses(self.access, self.device), *routes_of(self.access, self.device)]
            folder = f"net/ipv6/conf/{self.device}"
            for leaf in self.access.list_dir(os.path.join(self.access.proc, "sys", folder)):
                if leaf != "mtu":  # follows the MTU of the link by itself
                    guards.append(Sysctl(self.access, f"{folder}/{leaf}"))
        return guards


@register
class Up(DeviceKnob):
    """Administratively up; the carrier is another matter."""

    kind = "link.up"
    risky = True

    @property
    def rank(self) -> int:
        return RANK_LINK

    def read(self) -> Value:
        return "UP" in self.link["flags"]

    def write(self, value: Value) -> None:
        self.set_link("up" if value else "down")

    def collateral(self, current: Value, desired: Value) -> list[Knob]:
        """Going down takes the IPv6 addresses and all routes along; coming up does not bring them back."""
        return [Addresses(self.access, self.device), *routes_of(self.access, self.device)]


@register
class Promisc(DeviceKnob):
    """Promiscuous mode as set by the administrator; a running capture does not show here."""

    kind = "link.promisc"

    @property
    def rank(self) -> int:
        return RANK_FEATURES

    def read(self) -> Value:
        return "PROMISC" in self.link["flags"]

    def write(self, value: Value) -> None:
        self.set_link("promisc", "on" if value else "off")


@register
class XskProgram(DeviceKnob):
    """Whether the device has the XDP program that AF_XDP's library puts on it; it stays when its user has ended."""

    kind = "link.xsk_program"

    @property
    def rank(self) -> int:
        return RANK_LINK

    def read(self) -> Value:
        program = self.link.get("xdp", {}).get("prog", {})
        return str(program.get("name", "")).startswith("xsk_def_")

    def same(self, one: Value, other: Value) -> bool:
        # only its user can put it on, so that it is gone is as good
        return one == other or other is True

    def write(self, value: Value) -> None:
        self.set_link("xdp", "off")


@register
class TxQueueLength(DeviceKnob):
    kind = "link.txqueuelen"

    @property
    def rank(self) -> int:
        return RANK_FEATURES

    def read(self) -> Value:
        # ip leaves the key out when the length is 0.
        return int(self.link.get("txqlen", 0))

    def check(self, current: Value, wish: t.Any) -> None:
        if wish < 0:
            # The kernel would take it for a number near 2^32.
            raise Refused(f"a queue cannot have a length of {wish}", where=self.device, remedy="Give 0 or more")

    def write(self, value: Value) -> None:
        self.set_link("txqueuelen", str(value))
