# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rings, coalescing, flow control, spreading by hash and interrupts.

The recorded outputs are those of the drivers e1000e, vmxnet3 and virtio_net.
"""

from __future__ import annotations

import contextlib
import errno
import os
import pathlib
import typing as t

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._host import ethtool, irq, nic_params, rss, settings
from ansible_collections.fastpath.bench.plugins.module_utils._host.access import (
    Access,
    NotSupported,
    NotThere,
    file_error,
)
from ansible_collections.fastpath.bench.plugins.module_utils._host.journal import Journal, Surroundings
from ansible_collections.fastpath.bench.plugins.module_utils._host.knob import make
from ansible_collections.fastpath.bench.plugins.module_utils._host.queue import power_of_two
from ansible_collections.fastpath.bench.plugins.module_utils._host.reconcile import Outcome, Wish, reconcile
from ansible_collections.fastpath.bench.plugins.module_utils._host.restore import restore
from ansible_collections.fastpath.bench.tests.unit.fake_kernel import FakeKernel

FIXTURES = pathlib.Path(__file__).resolve().parents[3] / "fixtures" / "host"
HERE = Surroundings("boot-1", "cookie:1")
EQUAL_4 = [index % 4 for index in range(16)]


def fixture(name: str) -> str:
    return (FIXTURES / f"ethtool-{name}.txt").read_text()


def journal(folder: pathlib.Path) -> Journal:
    return Journal(str(folder / "journal"), surroundings=HERE)


def tuned(access: Access, folder: pathlib.Path, unsupported: str = "fail", **entry: t.Any) -> Outcome:
    """One call of net_tuning on one interface."""
    params = {"unsupported": unsupported, "interfaces": [{"name": "eth1", **entry}]}
    return reconcile(settings.tuning_wishes(access, params), journal(folder))


# Parsers


def test_rings_by_driver_and_version() -> None:
    read = nic_params.parse_rings(fixture("6.1-rings-vmxnet3"))
    assert read.now == {"rx": 1024, "rx-jumbo": 512, "tx": 512}
    assert read.most == {"rx": 4096, "rx-jumbo": 4096, "tx": 4096}
    assert nic_params.parse_rings(fixture("6.1-rings-e1000e")).now == {"rx": 256, "tx": 256}
    assert nic_params.parse_rings(fixture("6.14-rings-virtio")).now == {"rx": 256, "tx": 256}
    # Before 5.10 what a driver has not was 0.
    old = "Ring parameters for eth0:\nPre-set maximums:\nRX:\t\t4096\nRX Mini:\t0\nRX Jumbo:\t0\nTX:\t\t4096\n"
    old += "Current hardware settings:\nRX:\t\t512\nRX Mini:\t0\nRX Jumbo:\t0\nTX:\t\t512\n\n"
    assert nic_params.parse_rings(old) == nic_params.Params({"rx": 512, "tx": 512}, {"rx": 4096, "tx": 4096})


def test_coalescing_by_driver_and_version() -> None:
    assert nic_params.parse_coalesce(fixture("6.1-coalesce-e1000e")).now == {"rx-usecs": 3}
    virtio = {"rx-usecs": 0, "rx-frames": 1, "tx-usecs": 0, "tx-frames": 1}
    assert nic_params.parse_coalesce(fixture("6.1-coalesce-virtio")).now == virtio
    assert nic_params.parse_coalesce(fixture("6.14-coalesce-virtio")).now == {"adaptive-rx": False, **virtio}
    text = "Coalesce parameters for eth0:\nAdaptive RX: on  TX: off\nrx-frame-low: 7\nCQE mode RX: on  TX: n/a\n"
    text += "rx-profile:\n{.usec =   1, .pkts = 256, .comps = n/a,},\ntx-profile:\tn/a\n"
    read = nic_params.parse_coalesce(text).now
    assert read == {"adaptive-rx": True, "adaptive-tx": False, "rx-frames-low": 7, "cqe-mode-rx": True}


def test_flow_control() -> None:
    text = fixture("6.1-pause-e1000e")
    assert nic_params.parse_pause(text).now == {"autoneg": True, "rx": True, "tx": True}
    assert nic_params.parse_pause(
        text.rstrip() + "\nRX negotiated: off\nTX negotiated: off\n"
    ) == nic_params.parse_pause(text)


def test_hash_fields() -> None:
    assert rss.parse_hash_fields(fixture("6.1-hash-e1000e-tcp4")) == "sdfn"
    assert rss.parse_hash_fields(fixture("6.1-hash-e1000e-udp4")) == "sd"
    assert rss.parse_hash_fields(fixture("6.1-hash-none-virtio")) == ""
    assert rss.parse_hash_fields("TCP over IPV4 flows - All matching flows discarded on RX\n") == "r"
    assert rss.letters("nfds") == "sdfn"


@pytest.mark.parametrize("text", ["x", "rs", "s d"])
def test_letters_that_are_no_fields(text: str) -> None:
    with pytest.raises(BenchError, match="not fields of a packet"):
        rss.letters(text)


def test_tables_from_hash_to_queue() -> None:
    for name in ("6.1-table-virtio", "6.1-table-vmxnet3"):
        table = rss.parse_table(fixture(name), "eth0")
        assert table == rss.Table(4, rss.equal_table(128, 4))
    with pytest.raises(NotSupported):
        rss.parse_table(fixture("6.14-table-virtio"), "eth0")


def test_channels_of_more_drivers() -> None:
    assert ethtool.parse_channels(fixture("6.1-channels-vmxnet3")).now == {"other": 1, "combined": 4}


def test_weights_as_ethtool_spreads_them() -> None:
    assert rss.weighted_table(8, [1, 1, 2]) == [0, 0, 1, 1, 2, 2, 2, 2]
    assert rss.weighted_table(8, [0, 1]) == [1] * 8
    assert rss.weighted_table(8, [3, 0, 1]) == [0] * 6 + [2] * 2


@given(st.one_of(st.text(), st.text(alphabet="RXT: on/af0123456789\n-AdptiveCQm")))
def test_garbage_is_a_typed_error(text: str) -> None:
    for read in (nic_params.parse_rings, nic_params.parse_coalesce, nic_params.parse_pause, rss.parse_hash_fields):
        with contextlib.suppress(BenchError):
            read(text)
    with contextlib.suppress(BenchError):
        rss.parse_table(text, "eth0")


# Rings, coalescing, flow control


def test_one_command_for_all_of_a_kind(tmp_path: pathlib.Path) -> None:
    kernel = FakeKernel()
    before = kernel.picture()
    asked = {
        "rings": {"rx": 512, "tx": 1024, "rx_mini": None},
        "coalesce": {"adaptive-rx": "off", "rx_usecs": "8"},
        "flow_control": {"autoneg": False, "rx": False, "tx": False},
        "features": {"gro": "off", "tso": "no"},
    }
    outcome = tuned(kernel, tmp_path, **asked)
    assert [change.knob.kind for change in outcome.changes] == ["rings", "coalesce", "flow_control", "features"]
    changing = [words for words in kernel.commands if words[0] == "ethtool" and words[1].isupper()]
    assert [words for words in changing if words[1][1] in "GCA"] == [
        ["ethtool", "-G", "eth1", "rx", "512", "tx", "1024"],
        ["ethtool", "-C", "eth1", "rx-usecs", "8"],
        ["ethtool", "-A", "eth1", "autoneg", "off", "rx", "off", "tx", "off"],
    ]
    assert len([words for words in changing if words[1] == "-K"]) == 1
    assert not kernel.net["eth1"].wanted["tx-tcp-segmentation"]
    assert not tuned(kernel, tmp_path, **asked).changed
    restore(journal(tmp_path), kernel)
    assert kernel.picture() == before


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"rings": {"rx": 5000}}, "rx ring 5000 is too much. At most rx 4096"),
        ({"rings": {"rx": -1}}, "cannot be -1"),
        ({"coalesce": {"rx-usecs": "often"}}, "cannot be 'often'"),
        ({"coalesce": {"adaptive-rx": 1}}, "cannot be 1"),
        ({"coalesce": {"adaptive-rx": True, "rx-usecs": 5}}, "adapt by itself"),
        ({"features": {"gro": 3}}, "neither on nor off"),
        ({"rss_hash": {"tcp5": "sd"}}, "not a kind of flow"),
        ({"rss_hash": {"tcp4": "src"}}, "not fields of a packet"),
        ({"rss_queues": 2, "rss_weights": [1]}, "contradict"),
        ({"rss_queues": 0}, "need a queue"),
        ({"rss_weights": [0, 0]}, "need a queue"),
        ({"rss_weights": [16, 1]}, "It has 16 places"),
        ({"irq_cpus": "4"}, "CPU 4 is not online on this host. CPUs that are: 0-3"),
        ({"irq_cpus": ""}, "needs a CPU"),
        ({"rps_flow_count": -1}, "a flow table cannot have -1 entries"),
        ({"txqueuelen": -1}, "a queue cannot have a length of -1"),
    ],
)
def test_what_cannot_be_is_told_before_the_first_write(tmp_path: pathlib.Path, entry: t.Any, message: str) -> None:
    kernel = FakeKernel()
    before = kernel.picture()
    with pytest.raises(BenchError) as told:
        tuned(kernel, tmp_path, **{"txqueuelen": 5, **entry})
    assert message in told.value.message
    assert kernel.picture() == before


def test_what_a_driver_has_not_is_told_once_and_the_rest_is_set(tmp_path: pathlib.Path) -> None:
    kernel = FakeKernel()
    outcome = tuned(kernel, tmp_path, "report", rings={"rx": 512, "rx_mini": 7, "rx_jumbo": 7})
    assert [found["evidence"] for found in outcome.findings] == [
        "rings not supported on eth1: its driver has no ring rx-mini, rx-jumbo"
    ]
    assert kernel.net["eth1"].rings == {"rx": 512, "tx": 256}
    again = tuned(kernel, tmp_path, "report", rings={"rx": 512, "rx_mini": 7})
    assert (again.changed, len(again.findings)) == (False, 1)
    with pytest.raises(NotSupported, match="no ring rx-mini"):
        tuned(kernel, tmp_path, rings={"rx_mini": 7})


def test_channels_that_a_driver_has_are_set_also_beside_ones_that_it_has_not(tmp_path: pathlib.Path) -> None:
    kernel = FakeKernel()
    asked = {"channels": {"rx": 2, "combined": 0}, "rps": "0"}
    with pytest.raises(NotSupported, match="it has no combined channels"):
        tuned(kernel, tmp_path, **asked)
    outcome = tuned(kernel, tmp_path, unsupported="report", **asked)
    assert [row["code"] for row in outcome.findings if row["severity"] == "warning"] == ["setting_unsupported"]
    assert kernel.net["eth1"].channels["rx"] == 2
    assert kernel.net["eth1"].masks == {"rx-0/rps_cpus": "1", "rx-1/rps_cpus": "1"}
    assert not tuned(kernel, tmp_path, unsupported="report", **asked).changed


def test_times_behind_an_adaptive_direction_come_back_too(tmp_path: pathlib.Path) -> None:
    kernel = FakeKernel()
    own = kernel.net["eth1"].coalesce
    own["adaptive-rx"] = True
    tuned(kernel, tmp_path, coalesce={"adaptive-rx": False, "rx-usecs": 0})
    assert own == {"adaptive-rx": False, "rx-usecs": 0, "tx-usecs": 0}
    restore(journal(tmp_path), kernel)
    assert own == {"adaptive-rx": True, "rx-usecs": 3, "tx-usecs": 0}


def test_times_that_move_by_themselves_are_no_change_by_others(tmp_path: pathlib.Path) -> None:
    kernel = FakeKernel()
    tuned(kernel, tmp_path, coalesce={"adaptive-rx": True})
    kernel.net["eth1"].coalesce["rx-usecs"] = 62
    assert not tuned(kernel, tmp_path, coalesce={"adaptive-rx": True}).changed
    result = restore(journal(tmp_path), kernel)
    assert result.conflicts == []
    assert kernel.net["eth1"].coalesce == {"adaptive-rx": False, "rx-usecs": 3, "tx-usecs": 0}


def test_a_flow_table_of_the_machine_has_no_negative_size(tmp_path: pathlib.Path) -> None:
    kernel = FakeKernel()
    params = {"unsupported": "report", "interfaces": [], "rps_sock_flow_entries": -5}
    with pytest.raises(BenchError, match="a flow table cannot have -5 entries"):
        settings.tuning_wishes(kernel, params)


def test_sizes_of_flow_tables_are_powers_of_two(tmp_path: pathlib.Path) -> None:
    assert [power_of_two(count) for count in (0, 1, 2, 3, 1000, 4096)] == [0, 1, 2, 4, 1024, 4096]
    kernel = FakeKernel()
    kernel.params["net/core/rps_sock_flow_entries"] = "0"
    params = {"unsupported": "fail", "interfaces": [{"name": "eth1", "rps_flow_count": 1000}]}
    for changed in (True, False):
        wishes = settings.tuning_wishes(kernel, {**params, "rps_sock_flow_entries": 20000})
        assert reconcile(wishes, journal(tmp_path)).changed is changed
    assert kernel.params["net/core/rps_sock_flow_entries"] == "32768"
    assert {kernel.net["eth1"].masks[f"rx-{queue}/rps_flow_cnt"] for queue in range(4)} == {"400"}


# Spreading by hash


class Words(Access):
    """ethtool answers with these: option -> status, output, errors."""

    def __init__(self, answers: dict[str, tuple[int, str, str]]) -> None:
        super().__init__()
        self.answers = answers
        self.asked: list[list[str]] = []

    def link(self, name: str) -> dict[str, t.Any]:
        return {"ifindex": 2}

    def call(self, argv: t.Sequence[str]) -> tuple[int, str, str]:
        self.asked.append(list(argv))
        return self.answers[argv[1]]


def test_a_refusal_that_ends_with_status_0() -> None:
    said = "Cannot change RX network flow hashing options: Operation not supported\n"
    access = Words({"-n": (0, fixture("6.1-hash-e1000e-udp4"), ""), "-N": (0, "", said)})
    with pytest.raises(NotSupported, match="Cannot change"):
        make(access, "rss.hash", "eth1/udp4").write("sdfn")


def test_a_question_is_asked_once_until_something_changes() -> None:
    access = Words({"-g": (0, fixture("6.1-rings-e1000e"), ""), "-G": (0, "", "")})
    knob = make(access, "rings", "eth1")
    for _time in range(3):
        knob.read()
    knob.check(knob.read(), {"rx": 512})
    assert len(access.asked) == 1
    knob.write({"rx": 512, "tx": 256})
    knob.read()
    assert [argv[1] for argv in access.asked] == ["-g", "-G", "-g"]


@pytest.mark.parametrize("table", [[3, 1, 0, 0] * 4, [0] * 8 + [2] * 8, EQUAL_4, [0, 1] * 8])
def test_any_table_comes_back(tmp_path: pathlib.Path, table: list[int]) -> None:
    kernel = FakeKernel()
    kernel.net["eth1"].table = table
    assert tuned(kernel, tmp_path, rss_queues=3).changed
    assert kernel.net["eth1"].spread == [index % 3 for index in range(16)]
    restore(journal(tmp_path), kernel)
    assert kernel.net["eth1"].spread == table


def test_the_drivers_own_table_comes_back_as_such(tmp_path: pathlib.Path) -> None:
    """It must go on to follow the number of queues; one set by hand stands in the way of fewer."""
    kernel = FakeKernel()
    tuned(kernel, tmp_path, rss_weights=[1, 2])
    assert kernel.net["eth1"].table == [0] * 5 + [1] * 11
    restore(journal(tmp_path), kernel)
    assert kernel.net["eth1"].table is None


def test_a_table_for_fewer_queues_goes_before_them_one_for_more_after(tmp_path: pathlib.Path) -> None:
    kernel = FakeKernel()
    kernel.net["eth1"].table = [3, 2, 1, 0] * 4
    before = kernel.picture()
    with pytest.raises(BenchError, match="too low"):
        tuned(kernel, tmp_path, channels={"rx": 2})
    assert kernel.picture() == before
    assert tuned(kernel, tmp_path, channels={"rx": 2}, rss_queues=2).changed
    assert not tuned(kernel, tmp_path, channels={"rx": 2}, rss_queues=2).changed
    assert tuned(kernel, tmp_path, channels={"rx": 4}, rss_queues=4).changed
    restore(journal(tmp_path), kernel)
    assert kernel.picture() == before


# Interrupts


class Tree(Access):
    """A tree of files that takes a value as the kernel does: as a whole."""

    def __init__(self, root: pathlib.Path) -> None:
        super().__init__(proc=str(root / "proc"), sys=str(root / "sys"))
        self.managed: set[str] = set()

    def links(self) -> dict[str, dict[str, t.Any]]:
        return {"eth1": {"ifindex": 2, "flags": [], "txqlen": 1000}}

    def write_file(self, path: str, text: str) -> None:
        self.forget()
        if os.path.basename(os.path.dirname(path)) in self.managed:
            err = OSError(errno.EIO, "Input/output error")
            raise file_error(err, path) from err
        pathlib.Path(path).write_text(text + "\n", encoding="ascii")


def device(root: pathlib.Path, irqs: t.Iterable[int], cpus: int = 256, *, below: str = "") -> Tree:
    """A PCI device with these interrupts; ``below`` it a virtio device, whose the interface then is."""
    pci = root / "sys/devices/pci0000:00/0000:00:03.0"
    (pci / "msi_irqs").mkdir(parents=True)
    (pci / "irq").write_text("0\n")
    for number in irqs:
        (pci / "msi_irqs" / str(number)).write_text("msix\n")
        (root / "proc/irq" / str(number)).mkdir(parents=True)
        (root / "proc/irq" / str(number) / "smp_affinity_list").write_text(f"0-{cpus - 1}\n")
    (pci / below).mkdir(exist_ok=True)
    net = root / "sys/class/net/eth1"
    net.mkdir(parents=True)
    (net / "device").symlink_to(pci / below)
    (root / "sys/devices/system/cpu").mkdir(parents=True)
    for name in ("online", "possible"):
        (root / "sys/devices/system/cpu" / name).write_text(f"0-{cpus - 1}\n")
    return Tree(root)


def affinities(root: pathlib.Path) -> dict[str, str]:
    return {path.parent.name: path.read_text().strip() for path in root.glob("proc/irq/*/smp_affinity_list")}


@pytest.mark.parametrize("below", ["", "virtio2"])
def test_interrupts_are_those_that_the_device_lists(tmp_path: pathlib.Path, below: str) -> None:
    access = device(tmp_path, [131, 9, 130], below=below)
    assert irq.irqs_of(access, "eth1") == [9, 130, 131]
    assert tuned(access, tmp_path, irq_cpus="18-35,255").changed
    assert set(affinities(tmp_path).values()) == {"18-35,255"}
    assert not tuned(access, tmp_path, irq_cpus="18-35,255").changed
    restore(journal(tmp_path), access)
    assert set(affinities(tmp_path).values()) == {"0-255"}


def test_one_cpu_for_each_interrupt_in_turn(tmp_path: pathlib.Path) -> None:
    access = device(tmp_path, range(64))
    tuned(access, tmp_path, irq_cpus="100-131", irq_spread=True)
    found = affinities(tmp_path)
    assert [found[str(number)] for number in (0, 1, 31, 32, 63)] == ["100", "101", "131", "100", "131"]
    (tmp_path / "proc/irq/7/smp_affinity_list").write_text("5\n")
    assert len(tuned(access, tmp_path, irq_cpus="100-131", irq_spread=True).changes) == 1


def test_no_interrupts_is_a_warning_and_no_failure(tmp_path: pathlib.Path) -> None:
    access = device(tmp_path, [])
    outcome = tuned(access, tmp_path, "fail", irq_cpus="1")
    assert not outcome.changed
    assert [(f["severity"], f["evidence"]) for f in outcome.findings] == [
        ("warning", "irq.affinity not supported on eth1: it has no interrupts of its own")
    ]


def test_an_interrupt_that_the_kernel_manages_is_not_permitted(tmp_path: pathlib.Path) -> None:
    access = device(tmp_path, [30, 31, 32])
    access.managed = {"31", "32"}
    with pytest.raises(BenchError, match="not permitted: the kernel manages the CPUs of interrupt 31, 32 itself"):
        tuned(access, tmp_path, irq_cpus="1")
    assert set(affinities(tmp_path).values()) == {"0-255"}
    outcome = tuned(access, tmp_path, "report", irq_cpus="1")
    assert affinities(tmp_path) == {"30": "1", "31": "0-255", "32": "0-255"}
    assert "not permitted" in outcome.findings[0]["evidence"]
    access.managed.add("30")
    assert not tuned(access, tmp_path, "report", irq_cpus="2").changed
    access.managed.clear()
    restore(journal(tmp_path), access)
    assert set(affinities(tmp_path).values()) == {"0-255"}


def test_interrupts_of_queues_that_went_are_no_loss(tmp_path: pathlib.Path) -> None:
    kernel = FakeKernel()
    kernel.net["eth1"].irqs = {2000: "0", 2001: "1", 2002: "2-3", 2003: "3"}
    before = kernel.picture()
    tuned(kernel, tmp_path, irq_cpus="1", irq_spread=False)
    tuned(kernel, tmp_path, channels={"rx": 2})
    assert set(kernel.net["eth1"].irqs) == {2004, 2005}  # new numbers
    tuned(kernel, tmp_path, irq_cpus="0-1", irq_spread=True)
    assert kernel.net["eth1"].irqs == {2004: "0", 2005: "1"}
    result = restore(journal(tmp_path), kernel)
    assert result.conflicts == []
    assert kernel.picture() == before


def test_interrupts_that_come_with_queues_are_spread_in_the_same_call(tmp_path: pathlib.Path) -> None:
    kernel = FakeKernel()
    kernel.net["eth1"].channels["rx"] = 1
    kernel.net["eth1"]._irqs_anew()
    entry = {"channels": {"rx": 4}, "irq_cpus": "0-3", "irq_spread": True}
    tuned(kernel, tmp_path, **entry)
    assert list(kernel.net["eth1"].irqs.values()) == ["0", "1", "2", "3"]
    assert not tuned(kernel, tmp_path, **entry).changed


def test_irqbalance_is_a_warning_where_interrupts_are_set(tmp_path: pathlib.Path) -> None:
    access = device(tmp_path, [30])
    params: dict[str, t.Any] = {"interfaces": [{"name": "eth1", "irq_cpus": "1"}], "irqbalance": "as_found"}
    assert settings.irq_findings(access, params) == []
    (tmp_path / "proc/77").mkdir()
    (tmp_path / "proc/77/comm").write_text("irqbalance\n")
    assert [found["code"] for found in settings.irq_findings(access, params)] == ["irqbalance_runs"]
    assert settings.irq_findings(access, {**params, "irqbalance": "stopped"}) == []
    assert settings.irq_findings(access, {**params, "interfaces": [{"name": "eth1"}]}) == []


def test_irqbalance_is_stopped_only_when_asked(tmp_path: pathlib.Path) -> None:
    access = device(tmp_path, [30])
    params = {"unsupported": "fail", "interfaces": [{"name": "eth1", "irq_cpus": "1"}]}
    kinds = [wish.knob.kind for wish in settings.tuning_wishes(access, params)]
    assert kinds == ["irq.affinity"]
    wishes = settings.tuning_wishes(access, {**params, "irqbalance": "stopped"})
    assert [(wish.knob.kind, wish.knob.key, wish.wish) for wish in wishes][1:] == [
        ("service.running", "irqbalance.service", False)
    ]


def test_an_interface_that_is_not_there(tmp_path: pathlib.Path) -> None:
    kernel = FakeKernel()
    for kind, key in (("rings", "eth9"), ("rss.hash", "eth9/tcp4"), ("rss.table", "eth9"), ("irq.affinity", "eth9")):
        with pytest.raises(NotThere, match="Interfaces that exist here: eth1, eth2"):
            reconcile([Wish(make(kernel, kind, key), {})], journal(tmp_path))
