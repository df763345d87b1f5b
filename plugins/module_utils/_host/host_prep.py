# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What DPDK needs of a host, from the module's options to wishes, and what a person should know beside."""

from __future__ import annotations

import os
import re
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._host import core_plan, kernel_args, pci
from ansible_collections.fastpath.bench.plugins.module_utils._host.access import Access, NotThere
from ansible_collections.fastpath.bench.plugins.module_utils._host.connection import (
    protected_interfaces,
    ssh_connection,
)
from ansible_collections.fastpath.bench.plugins.module_utils._host.hugepages import (
    HugePages,
    HugetlbMount,
    default_kb,
    key_of,
    nodes,
    size_kb,
    size_text,
    sizes,
    unmounted,
)
from ansible_collections.fastpath.bench.plugins.module_utils._host.kernel_file import SysFile
from ansible_collections.fastpath.bench.plugins.module_utils._host.reconcile import Wish, finding

Params = t.Mapping[str, t.Any]
Findings = list[dict[str, t.Any]]
_SYSCTL_FOLDERS = ("/run/sysctl.d", "/etc/sysctl.d", "/usr/local/lib/sysctl.d", "/usr/lib/sysctl.d", "/lib/sysctl.d")
_NO_IOMMU = "module/vfio/parameters/enable_unsafe_noiommu_mode"
_NR = re.compile(r"^\s*-?\s*vm[./]nr_hugepages\s*=\s*(\d+)\s*$", re.MULTILINE)


def wishes(access: Access, params: Params) -> list[Wish]:
    """What is asked for, as settings."""
    return [*_pages(access, params), *_mounts(access, params), *_drivers(access, params), *_args(access, params)]


def _pages(access: Access, params: Params) -> t.Iterator[Wish]:
    seen: dict[int, set[int | None]] = {}
    for entry in params["hugepages"]:
        kb = size_kb(entry["size"])
        node = entry.get("node")
        seen.setdefault(kb, set()).add(node)
        yield Wish(HugePages(access, key_of(node, kb)), entry["count"])
    for kb, asked in seen.items():
        if None in asked and len(asked) > 1:
            raise BenchError(
                f"pages of {size_text(kb)} are asked for both of a node and of the machine",
                where="hugepages",
                remedy="The machine's count is the sum of its nodes: give one of them",
                code="contradiction",
            )


def _mounts(access: Access, params: Params) -> t.Iterator[Wish]:
    for entry in params["mounts"]:
        yield Wish(HugetlbMount(access, entry["path"]), size_kb(entry["size"]))


def _drivers(access: Access, params: Params) -> t.Iterator[Wish]:
    for entry in params["drivers"]:
        device = pci.read_device(access, entry["pci"])
        refuse_management(access, device)
        if device.bifurcated:
            continue
        if entry["driver"] == "vfio-pci" and entry.get("no_iommu") and device.iommu_group is None:
            yield _without_iommu(access, device)
        yield Wish(pci.PciDriver(access, device.address), entry["driver"])


def _without_iommu(access: Access, device: pci.Device) -> Wish:
    if not os.path.exists(os.path.join(access.sys, _NO_IOMMU)):
        raise BenchError(
            "this kernel has no mode of vfio without an IOMMU",
            where=device.address,
            remedy="Load vfio-pci; if it is loaded, the kernel is built without VFIO_NOIOMMU: use uio_pci_generic",
            code="not_there",
        )
    return Wish(SysFile(access, _NO_IOMMU), "Y")


def _args(access: Access, params: Params) -> t.Iterator[Wish]:
    args = wanted_args(access, params)
    for kb, _count in kernel_args.hugepages_of(args, default_kb(access) if args else 0):
        if kb not in sizes(access):
            known = ", ".join(map(size_text, sizes(access))) or "none"
            # the kernel would leave the size out, and then count pages of another one
            raise NotThere(f"this kernel has no pages of {size_text(kb)}", where="kernel_args",
                           remedy=f"Sizes that exist here: {known}")  # fmt: skip
    if args:
        yield Wish(kernel_args.KernelArgs(access, kernel_args.way(access)), args)


def wanted_args(access: Access, params: Params) -> list[str]:
    """The arguments of the kernel: those that are named, and those of the plan of cores when it is to be isolated."""
    args = list(params["kernel_args"])
    cores = params.get("cores") or {}
    if cores.get("isolate"):
        made = plan(access, params)
        args += made.kernel_args() if made else []
    return kernel_args.check_args(args)


def refuse_management(access: Access, device: pci.Device) -> None:
    """Never take away the card that the host is reached by, whatever force says.

    :raises BenchError: it is that one.
    """
    protected = protected_interfaces(access, ssh_connection(access, os.environ, os.getpid()))
    for name, why in protected.items():
        for lower in _under(access, name):
            if lower in device.interfaces:
                through = "" if lower == name else f" through {name}"
                raise BenchError(
                    f"its interface {lower} {why}{through}",
                    where=device.address,
                    remedy="Take another network card for the test",
                    code="management_nic",
                )


def _under(access: Access, name: str) -> set[str]:
    """An interface and all that carry it: members of a bond or bridge, what a VLAN is on."""
    links = access.links()
    found: set[str] = set()
    todo = [name]
    while todo:
        now = todo.pop()
        if now in found:
            continue
        found.add(now)
        todo += [other for other, link in links.items() if link.get("master") == now]
        lower = links.get(now, {}).get("link")
        if lower:
            todo.append(lower)
    return found


def plan(access: Access, params: Params) -> core_plan.Plan | None:
    """The plan of cores, when one is asked for."""
    cores = params.get("cores")
    if not cores:
        return None
    node = cores.get("node")
    if node is None and cores.get("nic"):
        node = pci.read_device(access, cores["nic"]).numa_node
    return core_plan.make_plan(
        core_plan.read_cpus(access),
        housekeeping=cores["housekeeping"],
        workers=cores["workers"],
        generator=cores["generator"],
        node=node if len(nodes(access)) > 1 else None,
    )


# --------------------------------------------------------------------------- what one should know


def findings(access: Access, params: Params, folders: t.Sequence[str] = _SYSCTL_FOLDERS) -> Findings:
    return [
        *_left_alone(access, params),
        *_other_owner(access, params, folders),
        *_not_mounted(access, params),
        *_fewer_than_started_with(access, params),
    ]


def _left_alone(access: Access, params: Params) -> t.Iterator[dict[str, t.Any]]:
    for entry in params["drivers"]:
        device = pci.read_device(access, entry["pci"])
        if device.bifurcated:
            yield finding(
                "bifurcated", "info", f"{device.address} stays bound to {device.driver}",
                "Nothing to do: DPDK works beside this driver",
            )  # fmt: skip
        elif entry["driver"] == "vfio-pci" and device.iommu_group is None and not entry.get("no_iommu"):
            yield finding(
                "no_iommu", "warning", f"{device.address} is in no IOMMU group, which vfio-pci wants",
                "Switch the IOMMU on (intel_iommu=on iommu=pt), set no_iommu, or use uio_pci_generic",
            )  # fmt: skip


def _other_owner(access: Access, params: Params, folders: t.Sequence[str]) -> t.Iterator[dict[str, t.Any]]:
    """A file that sets the same at the next start, or whenever all of them are loaded, as VPP's own package has one."""
    asked = [entry for entry in params["hugepages"] if size_kb(entry["size"]) == default_kb(access)]
    if not asked:
        return
    total = sum(entry["count"] for entry in asked)
    files: dict[str, str] = {}
    for folder in folders:
        for name in access.list_dir(folder):
            if name.endswith(".conf"):
                files.setdefault(name, os.path.join(folder, name))
    for name in sorted(files):
        for value in _NR.findall(access.read_file(files[name])):
            if int(value) != total:
                yield finding(
                    "hugepages_other_owner", "warning",
                    f"{files[name]} sets vm.nr_hugepages to {value}, {total} are asked for",
                    "Change that file, or it takes effect again at the next start",
                )  # fmt: skip


def _not_mounted(access: Access, params: Params) -> t.Iterator[dict[str, t.Any]]:
    coming = {size_kb(entry["size"]) for entry in params["mounts"]}
    for kb in unmounted(access):
        if kb not in coming:
            yield finding(
                "hugepages_not_mounted", "warning",
                f"there are pages of {size_text(kb)}, and no hugetlbfs hands them out", "Add it to mounts",
            )  # fmt: skip


def _fewer_than_started_with(access: Access, params: Params) -> t.Iterator[dict[str, t.Any]]:
    """The kernel says nothing when it starts with less memory than it was told to reserve."""
    args = wanted_args(access, params)
    if not args or kernel_args.pending(access, args):
        return
    for kb, count in kernel_args.hugepages_of(args, default_kb(access)):
        there = t.cast(int, HugePages(access, key_of(None, kb)).read())
        if there < count:
            yield finding(
                "hugepages_fewer", "error",
                f"the kernel was started with {count} pages of {size_text(kb)}, and there are {there}",
                "The machine has not the memory for them, or somebody gave them back: ask for fewer",
            )  # fmt: skip
