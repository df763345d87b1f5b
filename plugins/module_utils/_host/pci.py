# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which driver a PCI device is bound to, as a setting that is put back like all others."""

from __future__ import annotations

import dataclasses
import os
import re
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._host.access import Access, KnobError, NotThere, Refused
from ansible_collections.fastpath.bench.plugins.module_utils._host.knob import Knob, Value, register

ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
#: Drivers that hand a device over to a program.
USER_DRIVERS = ("vfio-pci", "uio_pci_generic", "igb_uio")
#: Drivers that DPDK works beside: the kernel keeps the device, and nothing is to be bound.
BIFURCATED = ("mlx4_core", "mlx5_core", "mana", "af_xdp")
#: What the kernel writes where there is no override.
_NO_OVERRIDE = "(null)"
_ETHERNET_CLASS = "0x02"


@dataclasses.dataclass(frozen=True)
class Device:
    """A PCI device as sysfs shows it."""

    address: str
    driver: str | None
    override: str
    numa_node: int | None
    pci_class: str
    iommu_group: str | None
    #: Interfaces of the kernel on it.
    interfaces: tuple[str, ...]

    @property
    def bifurcated(self) -> bool:
        return self.driver in BIFURCATED

    @property
    def for_user(self) -> bool:
        """Whether a program of DPDK can open it as it is."""
        return self.driver in USER_DRIVERS or self.bifurcated


def check_address(address: str) -> str:
    lower = address.lower()
    if not ADDRESS.fullmatch(lower):
        raise BenchError(f"{address!r} is not a PCI address", remedy="It is like 0000:13:00.0", code="bad_pci")
    return lower


def _folder(access: Access, address: str) -> str:
    return os.path.join(access.sys, "bus/pci/devices", check_address(address))


def _link(path: str) -> str | None:
    try:
        return os.path.basename(os.readlink(path))
    except OSError:
        return None


def _text(access: Access, path: str, otherwise: str = "") -> str:
    try:
        return access.read_file(path).strip()
    except KnobError:
        return otherwise


def read_device(access: Access, address: str) -> Device:
    """:raises NotThere: there is no such device; the error names the network devices that there are."""
    folder = _folder(access, address)
    if not os.path.isdir(folder):
        cards = ", ".join(network_devices(access)) or "none"
        raise NotThere("there is no such PCI device", where=address, remedy=f"Network devices that exist here: {cards}")
    node = _text(access, os.path.join(folder, "numa_node"))
    override = _text(access, os.path.join(folder, "driver_override"))
    return Device(
        check_address(address),
        _link(os.path.join(folder, "driver")),
        "" if override == _NO_OVERRIDE else override,
        int(node) if node.isdigit() else None,
        _text(access, os.path.join(folder, "class")),
        _link(os.path.join(folder, "iommu_group")),
        tuple(_interfaces(access, folder)),
    )


def _interfaces(access: Access, folder: str) -> list[str]:
    """Below the device itself, and for virtio one folder deeper."""
    names = access.list_dir(os.path.join(folder, "net"))
    for child in access.list_dir(folder):
        if child.startswith("virtio"):
            names += access.list_dir(os.path.join(folder, child, "net"))
    return sorted(names)


def network_devices(access: Access) -> list[str]:
    """The addresses of all network devices."""
    root = os.path.join(access.sys, "bus/pci/devices")
    return [
        name
        for name in access.list_dir(root)
        if _text(access, os.path.join(root, name, "class")).startswith(_ETHERNET_CLASS)
    ]


@register
class PciDriver(Knob):
    """The driver of a PCI device, with the override that says which one it may be.

    Value: ``{"driver": name or "", "override": name or ""}``.
    """

    kind = "pci.driver"
    scope = "boot"

    def __init__(self, access: Access, key: str) -> None:
        super().__init__(access, check_address(key))

    @property
    def folder(self) -> str:
        return _folder(self.access, self.key)

    def read(self) -> Value:
        device = read_device(self.access, self.key)
        return {"driver": device.driver or "", "override": device.override}

    def resolve(self, current: Value, wish: t.Any) -> Value:
        """A plain name is a driver to bind to; the override then says so too."""
        return {"driver": wish, "override": wish} if isinstance(wish, str) else wish

    def satisfied(self, current: Value, wish: t.Any) -> bool:
        """Bound to it is enough; by which override it came to that is of no concern."""
        return current["driver"] == wish if isinstance(wish, str) else self.same(current, wish)

    def check(self, current: Value, wish: t.Any) -> None:
        if not isinstance(wish, str) or current["driver"] == wish:
            return
        if not os.path.isdir(os.path.join(self.access.sys, "bus/pci/drivers", wish)):
            raise NotThere(
                f"the driver {wish} is not loaded",
                where=self.key,
                remedy=f"Load its module (modprobe {wish}); vfio-pci wants an IOMMU, uio_pci_generic legacy interrupts",
            )
        if current["driver"] in BIFURCATED:
            raise BenchError(
                f"its driver {current['driver']} works with DPDK as it is, and must keep the device",
                where=self.key, remedy="Leave this device out", code="bifurcated",
            )  # fmt: skip

    def write(self, value: Value) -> None:
        now = self.read()
        # an empty line takes the override away
        self.access.write_file(os.path.join(self.folder, "driver_override"), value["override"])
        if now["driver"] and now["driver"] != value["driver"]:
            self.access.write_file(os.path.join(self.folder, "driver/unbind"), self.key)
        if value["driver"] and now["driver"] != value["driver"]:
            self._bind(value["driver"])

    def _bind(self, driver: str) -> None:
        try:
            self.access.write_file(os.path.join(self.access.sys, "bus/pci/drivers_probe"), self.key)
        except KnobError as error:
            raise Refused(f"the driver {driver} did not take it: {error.what}", where=self.key) from error
        bound = read_device(self.access, self.key).driver
        if bound != driver:
            raise Refused(
                f"the driver {driver} did not take it; now it is bound to {bound or 'none'}",
                where=self.key,
                remedy="See the kernel's messages; vfio-pci without an IOMMU needs enable_unsafe_noiommu_mode",
            )


def check_for_user(access: Access, address: str) -> Device:
    """The device, when a program of DPDK can open it.

    :raises BenchError: it cannot, and why.
    """
    device = read_device(access, address)
    if not device.for_user:
        raise BenchError(
            f"bound to {device.driver or 'no driver'}, which DPDK cannot open",
            where=device.address,
            remedy=f"Bind it to {' or '.join(USER_DRIVERS[:2])}, with the role fastpath.bench.host_prep",
            code="bad_driver",
        )
    return device
