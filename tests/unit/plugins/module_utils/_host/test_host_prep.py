# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hugepages, drivers, the kernel's arguments and the plan of cores, on the tree of a machine that is not there."""

from __future__ import annotations

import fcntl
import json
import os
import pathlib
import shutil
import typing as t

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.fastpath.bench.plugins.module_utils._common.command import CommandError
from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._host import (
    core_plan,
    host_prep,
    hugepages,
    kernel_args,
    pci,
)
from ansible_collections.fastpath.bench.plugins.module_utils._host.access import Access
from ansible_collections.fastpath.bench.plugins.module_utils._host.core_plan import Cpu, make_plan
from ansible_collections.fastpath.bench.plugins.module_utils._host.journal import Journal, Surroundings
from ansible_collections.fastpath.bench.plugins.module_utils._host.knob import ABSENT
from ansible_collections.fastpath.bench.plugins.module_utils._host.reconcile import Outcome, Wish, reconcile
from ansible_collections.fastpath.bench.plugins.module_utils._host.restore import restore

CARD, OTHER, MELLANOX = "0000:13:00.0", "0000:13:00.1", "0000:5e:00.0"
NATIVE = {CARD: "ixgbe", OTHER: "virtio-pci", MELLANOX: "mlx5_core"}


class Machine(Access):
    """A machine of two NUMA nodes. It does what the kernel does when its files are written, and what tools do."""

    def __init__(self, root: pathlib.Path) -> None:
        super().__init__(str(root / "proc"), str(root / "sys"))
        self.root = root
        #: Pages of 2 MiB that each node can give.
        self.room = {0: 1000, 1: 500}
        self.mounted: dict[str, str] = {}
        self.calls: list[list[str]] = []
        self.link_rows: dict[str, dict[str, t.Any]] = {}
        self.default_route = "eth9"
        self.tools = {"update-grub"}
        for kb in (2048, 1048576):
            for base in ("kernel/mm", "devices/system/node/node0", "devices/system/node/node1"):
                self._put(f"sys/{base}/hugepages/hugepages-{kb}kB/nr_hugepages", "0")
                self._put(f"sys/{base}/hugepages/hugepages-{kb}kB/free_hugepages", "0")
        self._put("proc/meminfo", "MemTotal: 1 kB\nHugepagesize:       2048 kB\n")
        self._put("proc/cmdline", "BOOT_IMAGE=/vmlinuz root=/dev/sda1 quiet")
        self._put("proc/self/mountinfo", "")
        self._put("proc/sys/vm/compact_memory", "")
        self._put("sys/bus/pci/drivers_probe", "")
        for name in ("vfio-pci", "uio_pci_generic", *NATIVE.values()):
            self._put(f"sys/bus/pci/drivers/{name}/unbind", "")
        for number, (address, driver) in enumerate(NATIVE.items()):
            folder = f"sys/bus/pci/devices/{address}"
            self._put(f"{folder}/class", "0x020000")
            self._put(f"{folder}/numa_node", str(number % 2))
            self._put(f"{folder}/driver_override", "(null)")
            self._put(f"{folder}/{'virtio3/' if driver == 'virtio-pci' else ''}net/eth{number}/mtu", "1500")
            (root / folder / "driver").symlink_to(root / "sys/bus/pci/drivers" / driver)

    def _put(self, path: str, text: str) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text + "\n")

    def _get(self, path: str) -> str:
        return (self.root / path).read_text().strip()

    def write_file(self, path: str, text: str) -> None:
        where = os.path.relpath(path, self.root)
        if where.endswith("nr_hugepages"):
            self._pages(where, int(text))
        elif where.endswith("driver_override"):
            self._put(where, text or "(null)")
        elif where.endswith("/unbind"):
            os.unlink(self.root / f"sys/bus/pci/devices/{text}/driver")
        elif where.endswith("drivers_probe"):
            override = self._get(f"sys/bus/pci/devices/{text}/driver_override")
            driver = NATIVE[text] if override == "(null)" else override
            (self.root / f"sys/bus/pci/devices/{text}/driver").symlink_to(self.root / "sys/bus/pci/drivers" / driver)
        else:
            super().write_file(path, text)
        self.forget()

    def _pages(self, where: str, count: int) -> None:
        size = where.split("/")[-2]
        if "/node/" in where:
            node = int(where.partition("/node/node")[2].partition("/")[0])
            self._put(where, str(min(count, self.room[node])))
        else:
            for node, share in ((0, count // 2), (1, count - count // 2)):
                self._put(f"sys/devices/system/node/node{node}/hugepages/{size}/nr_hugepages", str(share))
        nodes = [self._get(f"sys/devices/system/node/node{node}/hugepages/{size}/nr_hugepages") for node in (0, 1)]
        self._put(f"sys/kernel/mm/hugepages/{size}/nr_hugepages", str(sum(map(int, nodes))))

    def call(self, argv: t.Sequence[str]) -> tuple[int, str, str]:
        self.calls.append(list(argv))
        if argv[0] == "mount":
            self.mounted[argv[-1]] = argv[4].split(",")[0]
        elif argv[0] == "umount":
            del self.mounted[argv[-1]]
        elif argv[0] not in self.tools:
            raise CommandError(f"{argv[0]} is not installed", argv=argv, code="tool_absent")
        rows = [f"30 1 0:26 / {path} rw - hugetlbfs hugetlbfs rw,{size}" for path, size in self.mounted.items()]
        self._put("proc/self/mountinfo", "\n".join(rows))
        return 0, "", ""

    def links(self) -> dict[str, dict[str, t.Any]]:
        return self.link_rows

    def routes(self) -> list[dict[str, t.Any]]:
        return [{"dst": "default", "dev": self.default_route, "family": 4}]


@pytest.fixture
def machine(tmp_path: pathlib.Path) -> Machine:
    return Machine(tmp_path / "machine")


def journal(machine: Machine) -> Journal:
    return Journal(str(machine.root / "journal"), part="host_prep", surroundings=Surroundings("boot", "net"))


def params(**more: t.Any) -> dict[str, t.Any]:
    return {"hugepages": [], "mounts": [], "drivers": [], "kernel_args": [], "cores": None, **more}


def apply(machine: Machine, check_mode: bool = False, **more: t.Any) -> Outcome:
    return reconcile(host_prep.wishes(machine, params(**more)), journal(machine), check_mode=check_mode)


def put_back(machine: Machine) -> None:
    assert restore(journal(machine), machine).remaining == 0


def shape(machine: Machine) -> dict[str, str]:
    """The whole machine, as text."""
    found = {}
    for path in sorted((machine.root / "sys").rglob("*")):
        if path.is_symlink():
            found[str(path)] = os.readlink(path)
        elif path.is_file() and path.name != "drivers_probe":
            found[str(path)] = path.read_text()
    return found


# --------------------------------------------------------------------------- hugepages


@pytest.mark.parametrize(
    ("text", "kb"), [("2M", 2048), ("1G", 1048576), ("2048kB", 2048), ("512M", 524288), ("64k", 64)]
)
def test_sizes(text: str, kb: int) -> None:
    assert hugepages.size_kb(text) == kb


@pytest.mark.parametrize("text", ["", "0", "2X", "-2M", "2.5M"])
def test_sizes_that_are_none(text: str) -> None:
    with pytest.raises(BenchError):
        hugepages.size_kb(text)


def test_pages_of_each_node_and_where_they_are_handed_out(machine: Machine) -> None:
    before = shape(machine)
    folder = machine.root / "mnt/huge"
    wish = {
        "hugepages": [{"size": "2M", "count": 300, "node": 0}, {"size": "2M", "count": 100, "node": 1}],
        "mounts": [{"path": str(folder), "size": "2M"}],
    }
    assert apply(machine, check_mode=True, **wish).changed
    assert shape(machine) == before
    assert apply(machine, **wish).changed
    assert hugepages.HugePages(machine, "all/2048kB").read() == 400
    assert machine.mounted == {str(folder): "pagesize=2M"}
    assert not apply(machine, **wish).changed
    put_back(machine)
    assert shape(machine) == before
    assert (machine.mounted, folder.exists()) == ({}, False)


def test_pages_are_given_back_after_what_holds_them(machine: Machine) -> None:
    pages = hugepages.HugePages(machine, "all/2048kB")
    mount = hugepages.HugetlbMount(machine, "/mnt/huge")
    assert mount.rank_to(ABSENT) < pages.rank_to(0)
    assert mount.rank_to(0) < pages.rank_to(0)
    assert mount.rank_to(2048) >= pages.rank_to(8)


def test_files_that_a_killed_program_left_are_deleted_and_those_in_use_are_not(machine: Machine) -> None:
    folder = machine.root / "huge"
    folder.mkdir()
    machine.call(["mount", "-t", "hugetlbfs", "-o", "pagesize=2M,mode=0700", "hugetlbfs", str(folder)])
    for name in ("rtemap_0", "rtemap_1", "dperf-77map_3", "vppmap_0", "notes"):
        (folder / name).write_text("")
    with open(folder / "rtemap_1", encoding="utf-8") as used:
        fcntl.flock(used, fcntl.LOCK_SH)
        assert hugepages.release_left(machine, r"(?:rte|dperf-?[0-9]+)map_[0-9]+") == 2
    assert sorted(path.name for path in folder.iterdir()) == ["notes", "rtemap_1", "vppmap_0"]


def test_fewer_pages_than_asked_for_is_a_failure_and_leaves_nothing(machine: Machine) -> None:
    before = shape(machine)
    with pytest.raises(BenchError, match=r"600 pages of 2M were asked for, 500 there are") as caught:
        apply(machine, hugepages=[{"size": "2M", "count": 300, "node": 0}, {"size": "2M", "count": 600, "node": 1}])
    assert "kernel's command line" in caught.value.message
    assert shape(machine) == before


@pytest.mark.parametrize(
    ("entries", "code"),
    [
        ([{"size": "512M", "count": 1}], "not_there"),
        ([{"size": "2M", "count": 1, "node": 7}], "not_there"),
        ([{"size": "2M", "count": -1}], "bad_value"),
        ([{"size": "2M", "count": 1}, {"size": "2M", "count": 1, "node": 0}], "contradiction"),
    ],
)
def test_pages_that_cannot_be_had(machine: Machine, entries: list[dict[str, t.Any]], code: str) -> None:
    with pytest.raises(BenchError) as caught:
        apply(machine, hugepages=entries)
    assert caught.value.code == code


def test_the_machines_own_sizes_are_named(machine: Machine) -> None:
    """An arm64 kernel with pages of 64 KiB."""
    shutil.rmtree(machine.root / "sys/kernel/mm/hugepages/hugepages-1048576kB")
    for kb in (524288, 16777216):
        machine._put(f"sys/kernel/mm/hugepages/hugepages-{kb}kB/nr_hugepages", "0")
    with pytest.raises(BenchError, match=r"2M, 512M, 16G"):
        apply(machine, hugepages=[{"size": "1G", "count": 1}])


def test_a_folder_with_pages_of_another_size_is_refused(machine: Machine) -> None:
    machine.call(["mount", "-t", "hugetlbfs", "-o", "pagesize=1G,mode=0700", "hugetlbfs", "/dev/huge"])
    with pytest.raises(BenchError) as caught:
        apply(machine, mounts=[{"path": "/dev/huge", "size": "2M"}])
    assert caught.value.code == "mount_taken"


def test_another_owner_of_the_count_and_pages_that_nobody_hands_out(machine: Machine, tmp_path: pathlib.Path) -> None:
    early, late = tmp_path / "etc", tmp_path / "usr"
    for folder in (early, late):
        folder.mkdir()
    (early / "80-vpp.conf").write_text("# VPP\nvm.nr_hugepages=1024\nvm.max_map_count=3096\n")
    (late / "80-vpp.conf").write_text("vm.nr_hugepages=9\n")  # hidden by the other folder's file
    (late / "90-same.conf").write_text("vm.nr_hugepages = 300\n")
    wish = params(hugepages=[{"size": "2M", "count": 300}])
    machine.write_file(os.path.join(machine.sys, "kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"), "300")
    found = host_prep.findings(machine, wish, (str(early), str(late)))
    assert [row["code"] for row in found] == ["hugepages_other_owner", "hugepages_not_mounted"]
    assert "80-vpp.conf sets vm.nr_hugepages to 1024, 300 are asked for" in found[0]["evidence"]


# --------------------------------------------------------------------------- drivers


@pytest.mark.parametrize("driver", ["vfio-pci", "uio_pci_generic"])
@pytest.mark.parametrize("address", [CARD, OTHER])
def test_a_card_is_bound_and_given_back(machine: Machine, driver: str, address: str) -> None:
    before = shape(machine)
    wish = {"drivers": [{"pci": address.upper(), "driver": driver}]}
    assert apply(machine, **wish).changed
    device = pci.check_for_user(machine, address)
    assert (device.driver, device.override) == (driver, driver)
    assert not apply(machine, **wish).changed
    put_back(machine)
    assert shape(machine) == before


def test_a_card_whose_driver_works_beside_dpdk_is_left_alone(machine: Machine) -> None:
    wish = {"drivers": [{"pci": MELLANOX, "driver": "vfio-pci"}]}
    assert not apply(machine, **wish).changed
    assert [row["code"] for row in host_prep.findings(machine, params(**wish), ())] == ["bifurcated"]
    assert pci.check_for_user(machine, MELLANOX).bifurcated
    with pytest.raises(BenchError) as caught:
        reconcile([Wish(pci.PciDriver(machine, MELLANOX), "vfio-pci")], journal(machine))
    assert caught.value.code == "bifurcated"


@pytest.mark.parametrize(
    ("route", "links"),
    [
        ("eth0", {"eth0": {}}),
        ("bond0", {"bond0": {}, "eth0": {"master": "bond0"}}),
        ("eth0.7", {"eth0.7": {"link": "eth0"}, "eth0": {}}),
        ("br0", {"br0": {}, "eth0.7": {"link": "eth0", "master": "br0"}, "eth0": {}}),
    ],
)
def test_the_card_of_the_default_route_is_refused(machine: Machine, route: str, links: dict[str, t.Any]) -> None:
    machine.default_route, machine.link_rows = route, links
    with pytest.raises(BenchError) as caught:
        apply(machine, drivers=[{"pci": CARD, "driver": "vfio-pci"}])
    assert (caught.value.code, caught.value.where) == ("management_nic", CARD)
    # the one beside it can be had
    assert apply(machine, drivers=[{"pci": OTHER, "driver": "vfio-pci"}]).changed


def test_a_driver_that_is_not_loaded_or_does_not_take_the_card(machine: Machine) -> None:
    with pytest.raises(BenchError, match="modprobe igb_uio"):
        apply(machine, drivers=[{"pci": CARD, "driver": "igb_uio"}])
    with pytest.raises(BenchError, match=r"0000:13:00\.0, 0000:13:00\.1"):
        apply(machine, drivers=[{"pci": "0000:77:00.0", "driver": "vfio-pci"}])
    with pytest.raises(BenchError) as caught:
        pci.check_for_user(machine, CARD)
    assert caught.value.code == "bad_driver"


# --------------------------------------------------------------------------- the kernel's arguments


def test_a_drop_in_of_grub(machine: Machine) -> None:
    file = machine.root / "etc/default/grub.d" / kernel_args.FILE_NAME
    machine._put("etc/default/grub", "GRUB_DEFAULT=0")
    knob = kernel_args.KernelArgs(machine, kernel_args.way(machine, str(file.parent)))
    args = ["hugepagesz=1G", "hugepages=8", "isolcpus=managed_irq,domain,2-3"]
    done = reconcile([Wish(knob, args)], journal(machine))
    assert done.as_result()["diff"]["after"] == {f"kernel.args {file}": " ".join(args)}
    assert f'="$GRUB_CMDLINE_LINUX_DEFAULT {" ".join(args)}"' in file.read_text()
    assert machine.calls[-1] == ["update-grub"]
    assert kernel_args.pending(machine, args) == args
    assert not reconcile([Wish(knob, args)], journal(machine)).changed
    machine._put("proc/cmdline", f"root=/dev/sda1 {' '.join(args)}")
    assert kernel_args.pending(machine, args) == []
    put_back(machine)
    assert knob.read() is ABSENT
    assert machine.calls[-1] == ["update-grub"]


def test_a_drop_in_that_grub_does_not_take_leaves_nothing(machine: Machine) -> None:
    folder = machine.root / "etc/default/grub.d"
    folder.parent.mkdir(parents=True)
    knob = kernel_args.KernelArgs(machine, str(folder / kernel_args.FILE_NAME))
    machine.tools = set()
    with pytest.raises(BenchError, match="update-grub"):
        reconcile([Wish(knob, ["hugepages=4"])], journal(machine))
    assert knob.read() is ABSENT


def test_an_unknown_way_to_start_is_said(machine: Machine) -> None:
    with pytest.raises(BenchError, match="by hand"):
        kernel_args.way(machine, str(machine.root / "etc/default/grub.d"))


@pytest.mark.parametrize("arg", ["quiet splash", 'a="b"', "$(reboot)", "a=`b`", "", "a=b;c"])
def test_arguments_that_would_be_more_than_one(arg: str) -> None:
    with pytest.raises(BenchError):
        kernel_args.check_args([arg])


class Grubby(Machine):
    """A machine with grubby, which keeps what the default kernel gets."""

    args = "root=/dev/sda1 quiet hugepages=2"

    def call(self, argv: t.Sequence[str]) -> tuple[int, str, str]:
        if argv[0] != "grubby":
            return super().call(argv)
        words = self.args.split()
        for word in argv[1:]:
            name, _equals, value = word.partition("=")
            if name == "--remove-args":
                words = [item for item in words if item not in value.split()]
            elif name == "--args":
                words += value.split()
        self.args = " ".join(words)
        return 0, f'index=0\nargs="{self.args}"\n' if "--info=DEFAULT" in argv else "", ""


def test_grubby(tmp_path: pathlib.Path) -> None:
    machine = Grubby(tmp_path / "machine")
    assert apply(machine, kernel_args=["hugepages=8", "iommu=pt"]).changed
    assert machine.args == "root=/dev/sda1 quiet hugepages=8 iommu=pt"
    assert not apply(machine, kernel_args=["hugepages=8", "iommu=pt"]).changed
    put_back(machine)
    assert sorted(machine.args.split()) == sorted(Grubby.args.split())


# --------------------------------------------------------------------------- the plan of cores


def two_sockets() -> list[Cpu]:
    """Two sockets of four cores with two threads: CPU n and n + 8 are one core."""
    return [Cpu(n, frozenset({n % 8, n % 8 + 8}), n % 8 // 4) for n in range(16)]


def test_cores_of_the_cards_node_without_their_other_threads() -> None:
    plan = make_plan(two_sockets(), housekeeping=1, workers=2, generator=1, node=1)
    assert (plan.workers, plan.generator, plan.idle) == ((4, 5), (6,), (12, 13, 14))
    assert plan.housekeeping == (0, 1, 2, 3, 7, 8, 9, 10, 11, 15)
    assert plan.kernel_args() == [
        "isolcpus=managed_irq,domain,4-6,12-14",
        "nohz_full=4-6,12-14",
        "rcu_nocbs=4-6,12-14",
        "irqaffinity=0-3,7-11,15",
    ]


def test_too_few_cores_on_the_node_are_said() -> None:
    with pytest.raises(BenchError, match="on NUMA node 0, where the network card is"):
        make_plan(two_sockets(), housekeeping=2, generator=3, node=0)
    with pytest.raises(BenchError, match=r"cores\.housekeeping"):
        make_plan(two_sockets(), housekeeping=0, generator=1)


@given(
    st.tuples(st.integers(1, 16), st.integers(1, 4), st.integers(1, 2)),
    st.tuples(st.integers(1, 4), st.integers(0, 6), st.integers(0, 6)),
    st.sampled_from([None, 0, 1]),
)
def test_a_plan_gives_each_cpu_one_use(
    machine_of: tuple[int, int, int], wanted: tuple[int, int, int], node: int | None
) -> None:
    cores, threads, nodes = machine_of
    kept, workers, generator = wanted
    cpus = [
        Cpu(core + thread * cores, frozenset(core + other * cores for other in range(threads)), core % nodes)
        for core in range(cores)
        for thread in range(threads)
    ]
    free = [core for core in range(kept, cores) if node is None or core % nodes == node]
    if len(free) < workers + generator:
        with pytest.raises(BenchError, match="cores are wanted"):
            make_plan(cpus, housekeeping=kept, workers=workers, generator=generator, node=node)
        return
    plan = make_plan(cpus, housekeeping=kept, workers=workers, generator=generator, node=node)
    shares = (plan.housekeeping, plan.workers, plan.generator, plan.idle)
    assert sorted(cpu for share in shares for cpu in share) == sorted(cpu.number for cpu in cpus)
    assert (len(plan.workers), len(plan.generator)) == (workers, generator)
    by_number = {cpu.number: cpu for cpu in cpus}
    at_work = {*plan.workers, *plan.generator}
    for number in at_work:
        assert node is None or by_number[number].node == node
        assert by_number[number].siblings & (at_work - {number}) == set()
        assert by_number[number].siblings & set(plan.housekeeping) == set()


def test_the_cpus_of_a_machine(machine: Machine) -> None:
    machine._put("sys/devices/system/cpu/online", "0-2")
    for cpu, siblings in ((0, "0,2"), (1, "1,3"), (2, "0,2")):
        machine._put(f"sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list", siblings)
    machine._put("sys/devices/system/node/node0/cpulist", "0,2")
    machine._put("sys/devices/system/node/node1/cpulist", "1,3")
    # CPU 3 is offline
    assert core_plan.read_cpus(machine) == [
        Cpu(0, frozenset({0, 2}), 0), Cpu(1, frozenset({1}), 1), Cpu(2, frozenset({0, 2}), 0),
    ]  # fmt: skip
    made = host_prep.plan(machine, params(cores={"housekeeping": 1, "workers": 0, "generator": 1, "nic": OTHER}))
    assert made is not None
    assert json.loads(json.dumps(made.as_dict()))["lists"]["generator"] == "1"


# --------------------------------------------------------------------------- pages from the start, vfio without IOMMU


@pytest.mark.parametrize(
    ("args", "pages"),
    [
        ("hugepages=4", {2048: 4}),
        ("default_hugepagesz=1G hugepagesz=1G hugepages=8", {1048576: 8}),
        ("hugepagesz=1G hugepages=8 hugepagesz=2M hugepages=512", {1048576: 8, 2048: 512}),
        ("hugepagesz=1G hugepages=0:2,1:4", {1048576: 6}),
        ("default_hugepagesz=1G hugepages=3", {1048576: 3}),
        ("quiet", {}),
    ],
)
def test_pages_that_arguments_reserve(args: str, pages: dict[int, int]) -> None:
    assert dict(kernel_args.hugepages_of(args.split(), 2048)) == pages


def test_fewer_pages_than_the_kernel_was_started_with(machine: Machine) -> None:
    """Field case I18: the count is looked at after the restart."""
    args = ["hugepagesz=1G", "hugepages=4"]
    assert not [row for row in host_prep.findings(machine, params(kernel_args=args), []) if row["severity"] == "error"]
    machine._put("proc/cmdline", "quiet hugepagesz=1G hugepages=4")
    machine._put("sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages", "3")
    machine.forget()
    codes = [row["code"] for row in host_prep.findings(machine, params(kernel_args=args), [])]
    assert "hugepages_fewer" in codes
    machine._put("sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages", "4")
    machine.forget()
    codes = [row["code"] for row in host_prep.findings(machine, params(kernel_args=args), [])]
    assert "hugepages_fewer" not in codes


def test_arguments_with_a_size_that_the_kernel_has_not(machine: Machine) -> None:
    """Field case I15: it would leave the size out, and count what follows as pages of another one."""
    with pytest.raises(BenchError, match="no pages of 512M"):
        apply(machine, kernel_args=["hugepagesz=512M", "hugepages=2"])


def test_vfio_without_an_iommu(machine: Machine) -> None:
    wish = {"drivers": [{"pci": CARD, "driver": "vfio-pci", "no_iommu": True}]}
    with pytest.raises(BenchError, match="VFIO_NOIOMMU"):
        apply(machine, **wish)
    mode = "sys/module/vfio/parameters/enable_unsafe_noiommu_mode"
    machine._put(mode, "N")
    machine.forget()
    before = shape(machine)
    assert [change.knob.kind for change in apply(machine, **wish).changes] == ["sysfs", "pci.driver"]
    assert machine._get(mode) == "Y"
    assert pci.read_device(machine, CARD).driver == "vfio-pci"
    assert not host_prep.findings(machine, params(**wish), [])
    put_back(machine)
    assert shape(machine) == before
