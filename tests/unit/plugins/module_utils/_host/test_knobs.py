# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each kind of setting: what it reads from recorded outputs, what it refuses, what it says."""

from __future__ import annotations

import errno
import json
import os
import pathlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._host import access as access_module
from ansible_collections.fastpath.bench.plugins.module_utils._host import ethtool, kernel_file, route, settings, sysctl
from ansible_collections.fastpath.bench.plugins.module_utils._host.access import (
    Access,
    Busy,
    NotSupported,
    NotThere,
    ReadOnly,
    Refused,
    file_error,
    tool_error,
)
from ansible_collections.fastpath.bench.plugins.module_utils._host.address import Addresses
from ansible_collections.fastpath.bench.plugins.module_utils._host.connection import (
    protected_interfaces,
    ssh_connection,
)
from ansible_collections.fastpath.bench.plugins.module_utils._host.journal import Journal, Surroundings
from ansible_collections.fastpath.bench.plugins.module_utils._host.knob import make
from ansible_collections.fastpath.bench.plugins.module_utils._host.reconcile import Wish, plan, reconcile
from ansible_collections.fastpath.bench.tests.unit.fake_kernel import FakeKernel

FIXTURES = pathlib.Path(__file__).resolve().parents[3] / "fixtures" / "host"
HERE = Surroundings("boot-1", "cookie:1")


def fixture(name):
    return (FIXTURES / name).read_text()


def journal(folder):
    return Journal(str(folder), surroundings=HERE)


class Recorded(Access):
    """Answers with recorded outputs."""

    def call(self, argv):
        family = {"-4": "4", "-6": "6"}.get(argv[1])
        name = f"ip-6.1.0-route{family}.json" if family else "ip-6.1.0-address.json"
        return 0, fixture(name), ""


# ethtool


def test_features_of_a_veth_where_tso_waits_for_sg():
    features = ethtool.parse_features(fixture("ethtool-6.1-features-veth.txt"))
    assert features["scatter-gather"].active is False
    tso = features["tx-tcp-segmentation"]
    assert (tso.active, tso.wanted, tso.fixed, tso.group) == (False, True, False, "tcp-segmentation-offload")
    assert features["rx-vlan-filter"].fixed
    assert not features["generic-receive-offload"].fixed


@pytest.mark.parametrize(
    ("line", "state"),
    [
        ("scatter-gather: off", (False, False, False)),
        ("scatter-gather: off [fixed]", (False, False, True)),
        ("scatter-gather: on [fixed]", (True, True, True)),
        ("scatter-gather: off [requested on]", (False, True, False)),
        ("scatter-gather: on [requested off]", (True, False, False)),
        ("scatter-gather: off [fixed] [requested on]", (False, True, True)),
    ],
)
def test_the_marks_are_optional(line, state):
    feature = ethtool.parse_features(f"Features for eth1:\n{line}\n")["scatter-gather"]
    assert (feature.active, feature.wanted, feature.fixed) == state


@pytest.mark.parametrize("text", ["", "Features for eth1:\n", "Features for eth1:\nscatter-gather: maybe\n"])
def test_no_features_is_an_error(text):
    with pytest.raises(BenchError, match="ethtool -k"):
        ethtool.parse_features(text)


def test_channels():
    read = ethtool.parse_channels(fixture("ethtool-6.1-channels-veth.txt"))
    assert (read.most, read.now) == ({"rx": 4, "tx": 4}, {"rx": 2, "tx": 4})
    old = "Channel parameters for eth0:\nPre-set maximums:\nRX:\t\t0\nTX:\t\t0\nOther:\t\t1\nCombined:\t63\n"
    old += "Current hardware settings:\nRX:\t\t0\nTX:\t\t0\nOther:\t\t1\nCombined:\t8\n"
    read = ethtool.parse_channels(old)
    assert (read.most, read.now) == ({"other": 1, "combined": 63}, {"other": 1, "combined": 8})


@given(st.text(max_size=200))
def test_garbage_is_a_typed_error(text):
    for read in (ethtool.parse_features, ethtool.parse_channels, access_module.parse_ip_json):
        try:
            read(text)
        except BenchError:
            continue


def test_all_features_go_in_one_command_and_what_was_dragged_is_told(tmp_path):
    kernel = FakeKernel()
    outcome = reconcile([Wish(make(kernel, "features", "eth1"), {"sg": False, "gro": False})], journal(tmp_path))
    commands = [words for words in kernel.commands if words[1] == "-K"]
    assert len(commands) == 1
    assert {"tx-scatter-gather", "rx-gro"} <= set(commands[0])
    assert outcome.changes[0].after["tx-tcp-segmentation"] == "off, wanted on"


def test_fixed_features(tmp_path):
    kernel = FakeKernel()
    knob = make(kernel, "features", "eth1")
    with pytest.raises(NotSupported, match="rxhash is fixed off by the driver"):
        reconcile([Wish(knob, {"rxhash": True, "gro": False})], journal(tmp_path))
    assert kernel.net["eth1"].wanted["generic-receive-offload"]
    outcome = reconcile([Wish(knob, {"rxhash": True, "highdma": True, "gro": False}, True)], journal(tmp_path))
    assert [f["code"] for f in outcome.findings] == ["setting_unsupported"]
    assert not kernel.net["eth1"].wanted["generic-receive-offload"]


def test_a_feature_that_stays_off_is_a_failure_and_is_put_back(tmp_path):
    kernel = FakeKernel()
    kernel.net["eth1"].wanted.update({"tx-scatter-gather": False, "tx-tcp-segmentation": False})
    before = kernel.picture()
    with pytest.raises(BenchError, match="does not read back as asked") as told:
        reconcile([Wish(make(kernel, "features", "eth1"), {"tx-tcp-segmentation": True})], journal(tmp_path))
    assert told.value.code == "not_as_asked"
    assert kernel.picture() == before


@pytest.mark.parametrize(
    ("wish", "message"),
    [({"rx": 5}, "At most 4"), ({"combined": 2}, "no combined channels"), ({"rx": -1}, "At most 4")],
)
def test_channels_that_cannot_be(tmp_path, wish, message):
    with pytest.raises(BenchError, match=message):
        reconcile([Wish(make(FakeKernel(), "channels", "eth1"), wish)], journal(tmp_path))


# Queues


def test_steering_that_a_device_does_not_support_is_told_once(tmp_path):
    kernel = FakeKernel(queues=64)
    kernel.net["eth1"].steering = False
    wishes = [Wish(make(kernel, "queue.rps", f"eth1/rx-{n}"), frozenset({1}), True) for n in range(64)]
    outcome = reconcile(wishes, journal(tmp_path))
    assert [f["evidence"] for f in outcome.findings] == [
        "queue.rps not supported on eth1: its queues do not support rps_cpus"
    ]
    assert not outcome.changed
    strict = [Wish(wish.knob, wish.wish) for wish in wishes]
    with pytest.raises(BenchError) as told:
        reconcile(strict, journal(tmp_path))
    assert told.value.code == "not_supported"
    assert told.value.message.count("do not support") == 1


def test_a_real_enoent_on_write_is_not_supported(tmp_path, monkeypatch):
    path = tmp_path / "rps_cpus"
    path.write_text("0")

    def refuse(handle, data):
        raise OSError(errno.ENOENT, "No such file or directory")

    monkeypatch.setattr(os, "write", refuse)
    with pytest.raises(NotSupported):
        Access().write_file(str(path), "1")


def tree(tmp_path, possible="0-255", queues=64):
    base = tmp_path / "class/net/eth1/queues"
    for number in range(queues):
        (base / f"rx-{number}").mkdir(parents=True)
        (base / f"rx-{number}" / "rps_cpus").write_text(",".join(["00000000"] * 8) + "\n")
    cpu = tmp_path / "devices/system/cpu"
    cpu.mkdir(parents=True)
    (cpu / "possible").write_text(possible + "\n")
    access = Access(sys=str(tmp_path))
    access.link = lambda name: {"ifindex": 2}
    return access


def test_256_cpus_and_64_queues_in_a_tree(tmp_path):
    access = tree(tmp_path / "sys")
    entry = {"name": "eth1", "rps": "18-35,255"}
    wishes = [Wish(knob, wish) for knob, wish in settings._tuning_of(access, entry)]
    assert [wish.knob.key for wish in wishes][:3] == ["eth1/rx-0", "eth1/rx-1", "eth1/rx-2"]
    assert len(wishes) == 64
    assert reconcile(wishes, journal(tmp_path / "journal")).changed
    text = (tmp_path / "sys/class/net/eth1/queues/rx-63/rps_cpus").read_text()
    assert text == "80000000,00000000,00000000,00000000,00000000,00000000,0000000f,fffc0000\n"
    # The kernel may print it with other padding: still the same.
    (tmp_path / "sys/class/net/eth1/queues/rx-63/rps_cpus").write_text("00000000," + text)
    assert not reconcile(wishes, journal(tmp_path / "journal")).changed


def test_a_cpu_that_is_not_there(tmp_path):
    access = tree(tmp_path / "sys", "0-3", 1)
    with pytest.raises(BenchError, match=r"CPU 4-7 does not exist on this host\. CPUs of this host: 0-3"):
        reconcile([Wish(make(access, "queue.rps", "eth1/rx-0"), frozenset(range(8)))], journal(tmp_path / "journal"))


def test_masks_by_queue_and_queues_that_come_with_channels(tmp_path):
    kernel = FakeKernel()
    kernel.net["eth1"].channels = {"rx": 1, "tx": 1}
    params = {"unsupported": "fail", "interfaces": [{"name": "eth1", "rps": {"1": "2-3"}, "channels": {"rx": 2}}]}
    wishes = settings.tuning_wishes(kernel, params)
    reconcile(wishes, journal(tmp_path))
    assert kernel.net["eth1"].masks == {"rx-1/rps_cpus": "c"}
    with pytest.raises(NotThere, match=r"no queue rx-9. Its queues: rx-0, rx-1"):
        reconcile([Wish(make(kernel, "queue.rps", "eth1/rx-9"), frozenset())], journal(tmp_path))
    for number in ("x", "²"):
        with pytest.raises(BenchError, match="not the number of a queue"):
            settings.tuning_wishes(
                kernel, {"unsupported": "fail", "interfaces": [{"name": "eth1", "rps": {number: "1"}}]}
            )


@pytest.mark.parametrize(
    ("had", "asked", "queues"),
    [
        ({"combined": 2, "rx": 0}, {"combined": 4, "rx": 0}, 4),
        ({"combined": 2, "rx": 1}, {"combined": 4}, 5),
        ({"combined": 2, "rx": 1}, {"rx": 2}, 4),
        ({"combined": 2}, {"tx": 3}, 2),
        (None, {"combined": 8}, 4),
    ],
)
def test_masks_for_the_queues_of_one_direction_and_the_combined(monkeypatch, had, asked, queues):
    channels = None if had is None else ethtool.Channels(dict.fromkeys(had, 8), had)
    monkeypatch.setattr(settings, "channel_access", lambda _access, _device: channels)
    params = {"unsupported": "report", "interfaces": [{"name": "eth1", "rps": "0", "channels": asked}]}
    keys = [wish.knob.key for wish in settings.tuning_wishes(FakeKernel(), params) if wish.knob.kind == "queue.rps"]
    assert keys == [f"eth1/rx-{queue}" for queue in range(queues)]


def test_an_interface_that_is_not_there_is_no_setting_that_a_device_has_not(tmp_path):
    params = {"unsupported": "report", "interfaces": [{"name": "eth9", "features": {"gro": False}, "rps": "0"}]}
    wishes = settings.tuning_wishes(FakeKernel(), params)
    with pytest.raises(NotThere, match="Interfaces that exist here: eth1, eth2"):
        reconcile(wishes, journal(tmp_path))
    told = reconcile(wishes, journal(tmp_path), check_mode=True).findings
    assert [(row["code"], row["evidence"]) for row in told] == [("not_there_yet", "eth9: there is no such interface")]


# Kernel parameters


@pytest.mark.parametrize(
    ("key", "path"),
    [
        ("net.ipv4.ip_forward", "net/ipv4/conf/all/forwarding"),
        ("net.ipv4.conf.eth0.100.rp_filter", "net/ipv4/conf/eth0.100/rp_filter"),
        ("net.ipv4.conf.eth0/100.rp_filter", "net/ipv4/conf/eth0.100/rp_filter"),
        ("net/ipv4/conf/eth0.100/rp_filter", "net/ipv4/conf/eth0.100/rp_filter"),
        ("net.ipv6.neigh.br-1.2.gc_stale_time", "net/ipv6/neigh/br-1.2/gc_stale_time"),
        ("net.core.rmem_max", "net/core/rmem_max"),
    ],
)
def test_keys(key, path):
    assert sysctl.canonical(key) == path


@pytest.mark.parametrize("key", ["", "net", "net..x", "net/../../etc/passwd", "net. x", "..", "/"])
def test_bad_keys(key):
    with pytest.raises(BenchError, match="not the name"):
        sysctl.canonical(key)


@pytest.mark.parametrize(
    ("key", "remedy"),
    [
        ("net.netfilter.nf_conntrack_max", "module nf_conntrack is not loaded"),
        ("net.bridge.bridge-nf-call-iptables", "module br_netfilter is not loaded"),
        ("net.core.netdev_budget", "only once for the machine"),
        ("net.ipv4.conf.eth9.rp_filter", "Interfaces that have: eth1, eth2"),
    ],
)
def test_absent_parameters_tell_why(key, remedy):
    with pytest.raises(NotThere, match=remedy):
        make(FakeKernel(), "sysctl", key).read()


def test_the_larger_reverse_path_filter_counts():
    kernel = FakeKernel()
    make(kernel, "sysctl", "net.ipv4.conf.all.rp_filter").write("1")

    def told(**values):
        keys = {f"net.ipv4.conf.{name}.rp_filter": value for name, value in values.items()}
        params = {"values": keys, "optional_values": {}, "force": False}
        return settings.sysctl_outvoted(kernel, settings.sysctl_wishes(kernel, params))

    found = told(eth1=0)
    assert [row["code"] for row in found] == ["outvoted"]
    assert "eth1/rp_filter is 0, and 1 counts there" in found[0]["evidence"]
    assert "net.ipv4.conf.all.rp_filter" in found[0]["remedy"]
    assert told(eth1=2) == []
    assert told(eth1=0, all=0) == []
    assert len(told(eth1=0, eth2=0, all=2)) == 2
    assert told(default=0) == []
    assert sysctl.outvoted(kernel, "net/ipv4/ip_forward", "0") is None


def test_wildcards_and_precedence():
    kernel = FakeKernel()
    params = {
        "values": {"net.ipv4.conf.*.rp_filter": 0, "net.ipv4.conf.eth1.rp_filter": 2},
        "optional_values": {"net.core.netdev_*": 1, "net.ipv4.conf.all.rp_filter": 1},
        "force": False,
    }
    wishes = {wish.knob.key: wish.wish for wish in settings.sysctl_wishes(kernel, params)}
    assert wishes == {f"net/ipv4/conf/{name}/rp_filter": "0" for name in ("all", "default", "eth2")} | {
        "net/ipv4/conf/eth1/rp_filter": "2"
    }
    with pytest.raises(NotThere, match="nothing matches"):
        settings.sysctl_wishes(kernel, {**params, "values": {"net.mpls.*.x": 1}})
    twice = {"net.ipv4.ip_forward": 1, "net.ipv4.conf.all.forwarding": 0}
    with pytest.raises(BenchError, match="two values are asked for"):
        settings.sysctl_wishes(kernel, {**params, "values": twice})


def test_read_only_parameters(tmp_path):
    kernel = FakeKernel()
    kernel.read_only.add("net/ipv4/fib_multipath_hash_policy")
    knob = make(kernel, "sysctl", "net.ipv4.fib_multipath_hash_policy")
    with pytest.raises(ReadOnly):
        reconcile([Wish(knob, 1)], journal(tmp_path))
    assert reconcile([Wish(knob, 1, True)], journal(tmp_path)).findings[0]["code"] == "setting_unsupported"
    assert not reconcile([Wish(knob, 0)], journal(tmp_path)).changed  # nothing to write, nothing to refuse


def test_an_advertised_default_route_is_not_lost_by_forwarding():
    kernel = FakeKernel()
    kernel.table.append({"family": 6, "dst": "default", "protocol": "ra", "dev": "eth1", "gateway": "fe80::1"})
    params = {"values": {"net.ipv6.conf.all.forwarding": 1}, "optional_values": {}, "force": False}
    with pytest.raises(BenchError, match="router advertisement"):
        settings.sysctl_wishes(kernel, params)
    assert settings.sysctl_wishes(kernel, {**params, "force": True})
    values = {**params["values"], "net.ipv6.conf.eth1.accept_ra": 2}
    assert settings.sysctl_wishes(kernel, {**params, "values": values})


def test_forwarding_of_a_kernel_without_ipv6_is_a_finding_where_it_may_be_missing(tmp_path):
    kernel = FakeKernel()
    for path in [path for path in kernel.params if path.startswith("net/ipv6")]:
        del kernel.params[path]
    asked = {"net.ipv6.conf.all.forwarding": 1}
    wishes = settings.sysctl_wishes(kernel, {"values": {}, "optional_values": asked, "force": False})
    assert [row["code"] for row in reconcile(wishes, journal(tmp_path)).findings] == ["setting_unsupported"]
    wishes = settings.sysctl_wishes(kernel, {"values": asked, "optional_values": {}, "force": False})
    assert [row["code"] for row in reconcile(wishes, journal(tmp_path), check_mode=True).findings] == ["not_there_yet"]
    with pytest.raises(NotThere):
        reconcile(wishes, journal(tmp_path))


# Links, addresses, routes


@pytest.mark.parametrize(("mtu", "message"), [(70000, "At most 65535"), (60, "At least 68")])
def test_mtu_beyond_the_link(tmp_path, mtu, message):
    kernel = FakeKernel()
    wishes = [Wish(make(kernel, "link.txqueuelen", "eth1"), 5), Wish(make(kernel, "link.mtu", "eth1"), mtu)]
    with pytest.raises(Refused, match=message):
        reconcile(wishes, journal(tmp_path))
    assert kernel.net["eth1"].txqlen == 1000


def test_an_mtu_below_ipv6_and_an_ipv6_address_do_not_go_together(tmp_path):
    kernel = FakeKernel()
    entry = {"name": "eth1", "addresses": ["fd00::1/64"], "mtu_bytes": 1000}
    wishes = settings.config_wishes(kernel, config([entry], tmp_path))
    with pytest.raises(BenchError, match="at least 1280"):
        reconcile(wishes, journal(tmp_path))


def config(interfaces, folder, routes=(), **more):
    params = {"interfaces": interfaces, "routes": list(routes), "routes_state": "exact", "journal_dir": str(folder)}
    return {**params, "owner": "", "part": "topology", "force": False, **more}


@pytest.mark.parametrize("name", ["a" * 16, "a/b", "a b", "", "..", "a:b"])
def test_names_that_no_interface_can_have(name):
    with pytest.raises(BenchError, match="cannot be the name"):
        make(FakeKernel(), "link.mtu", name)


def test_recorded_addresses():
    records = Addresses(Recorded(), "v0").read()
    assert [record["address"] for record in records if record["family"] == 4] == [
        "10.0.0.1/24",
        "10.5.0.1/24",
        "10.6.0.1",
        "10.5.0.2/24",
    ]
    assert records[2]["peer"] == "10.6.0.2/32"
    by_address = {record["address"]: record for record in records}
    assert by_address["fe80::77/64"].get("kernel") is None
    assert [record["address"] for record in records if record.get("kernel")] == ["fe80::90a7:10ff:fe08:f2b9/64"]
    assert len(by_address["2001:db8::5/64"]["lifetime_s"]) == 2


def test_recorded_routes():
    rows = {route.key_of(row): route.record_of(row) for row in Recorded().routes() if route.is_settable(row)}
    assert rows["4 100 10.44.0.0/24 0"]["metrics"] == [{"mtu": 1400}]
    assert rows["4 main 10.45.0.0/24 50"]["onlink"]
    assert [hop["weight"] for hop in rows["4 main 10.8.0.0/16 0"]["nexthops"]] == [2, 1]
    assert rows["4 main 10.99.0.0/16 0"]["type"] == "blackhole"
    assert not [key for key in rows if key.startswith("6 main fe80")]
    assert not any("unknown" in record for record in rows.values())


@pytest.mark.parametrize(
    ("dst", "key"),
    [
        ("default", "4 main default 0"),
        ("default6", "6 main default 1024"),
        ("0.0.0.0/0", "4 main default 0"),
        ("::/0", "6 main default 1024"),
        ("192.0.2.7", "4 main 192.0.2.7 0"),
        ("192.0.2.7/32", "4 main 192.0.2.7 0"),
        ("2001:DB8::/32", "6 main 2001:db8::/32 1024"),
    ],
)
def test_destinations(dst, key):
    assert route.route_key(dst) == key


@pytest.mark.parametrize("dst", ["10.0.0.1/24", "x", "", "10.0.0.0/33"])
def test_bad_destinations(dst):
    with pytest.raises(BenchError, match="not a destination"):
        route.route_key(dst)


@pytest.mark.parametrize("address", ["10.0.0.1", "10.0.0.300/24", "", "224.0.0.1/4", "0.0.0.0/0"])
def test_bad_addresses(tmp_path, address):
    wishes = settings.config_wishes(FakeKernel(), config([{"name": "eth1", "addresses": [address]}], tmp_path))
    with pytest.raises(BenchError):
        reconcile(wishes, journal(tmp_path))


def test_routes_of_an_earlier_call_go_those_of_others_stay(tmp_path):
    kernel = FakeKernel()
    kernel.table.append(
        {"family": 4, "type": "unicast", "dst": "10.7.0.0/24", "table": "main", "protocol": "static"}
        | {"scope": "global", "flags": [], "gateway": "10.1.0.8", "dev": "eth1"}
    )
    entry = {"name": "eth1", "addresses": ["10.1.0.1/24"]}
    for dst in ("10.8.0.0/24", "10.9.0.0/24"):
        params = config([entry], tmp_path, [{"dst": dst, "via": "10.1.0.9"}])
        book = settings.open_journal(params)
        book.surroundings = HERE
        wishes = settings.config_wishes(kernel, params)
        # open_journal sees this machine's own boot; the entries were noted with the same.
        reconcile(wishes, settings.open_journal(params))
        assert not reconcile(settings.config_wishes(kernel, params), settings.open_journal(params)).changed
    assert sorted(row["dst"] for row in kernel.table) == ["10.7.0.0/24", "10.9.0.0/24"]


@pytest.mark.parametrize(
    ("hop", "message"),
    [
        ({"via": None, "dev": None}, "needs via or dev"),
        ({"via": "fd00::1"}, "another family"),
        ({"via": "x"}, "not an address"),
        ({"dev": "eth9"}, "no such interface"),
    ],
)
def test_bad_routes(tmp_path, hop, message):
    with pytest.raises(BenchError, match=message):
        reconcile([Wish(make(FakeKernel(), "route", "4 main 10.9.0.0/24 0"), hop)], journal(tmp_path))


# All of one call


def test_all_faults_are_told_before_the_first_write(tmp_path):
    kernel = FakeKernel()
    wishes = [
        Wish(make(kernel, "link.txqueuelen", "eth1"), 5),
        Wish(make(kernel, "link.mtu", "eth1"), 70000),
        Wish(make(kernel, "link.mtu", "eth9"), 1400),
    ]
    with pytest.raises(BenchError) as told:
        reconcile(wishes, journal(tmp_path))
    assert "70000" in told.value.message
    assert "eth9" in told.value.message
    assert kernel.picture() == FakeKernel().picture()


def test_in_check_mode_what_is_not_there_yet_is_a_finding(tmp_path):
    kernel = FakeKernel()
    wishes = [Wish(make(kernel, "link.mtu", "eth9"), 1400), Wish(make(kernel, "link.mtu", "eth1"), 1400)]
    outcome = reconcile(wishes, journal(tmp_path), check_mode=True)
    assert [finding["code"] for finding in outcome.findings] == ["not_there_yet"]
    assert [change.knob.key for change in outcome.changes] == ["eth1"]


def test_two_values_for_one_setting(tmp_path):
    kernel = FakeKernel()
    wishes = [Wish(make(kernel, "link.mtu", "eth1"), value) for value in (1400, 1500)]
    with pytest.raises(BenchError, match="two values"):
        reconcile(wishes, journal(tmp_path))


def test_the_plan_is_pure_and_in_order():
    kernel = FakeKernel()
    rows = [("route", "4 main 10.9.0.0/24 0", {"dev": "eth1"}), ("link.up", "eth1", True), ("link.mtu", "eth1", 9000)]
    wishes = [Wish(make(kernel, *row[:2]), row[2]) for row in rows]
    current = {("link.mtu", "eth1"): 1500, ("link.up", "eth1"): False, wishes[0].name: [{"dev": "eth2"}]}
    kernel.commands.clear()
    assert [change.knob.kind for change in plan(wishes, current)] == ["link.mtu", "link.up", "route"]
    assert kernel.commands == []


def test_the_interface_of_the_connection_is_spared(tmp_path):
    kernel = FakeKernel()
    kernel.net["eth1"].addresses.append({"family": "inet", "local": "192.0.2.1", "prefixlen": 24})
    kernel.table.append({"family": 4, "dst": "default", "dev": "eth2", "gateway": "198.51.100.1"})
    spared = protected_interfaces(kernel, "203.0.113.7 51000 192.0.2.1 22")
    assert spared == {"eth2": "carries the default route", "eth1": "carries the connection from 203.0.113.7"}
    with pytest.raises(BenchError, match="carries the default route") as told:
        reconcile([Wish(make(kernel, "link.mtu", "eth2"), 1400)], journal(tmp_path), protected=spared)
    assert told.value.code == "connection_interface"
    same = [Wish(make(kernel, "link.mtu", "eth2"), 1500), Wish(make(kernel, "link.txqueuelen", "eth1"), 5)]
    assert reconcile(same, journal(tmp_path), protected=spared).changed


def test_the_connection_is_found_above_sudo(tmp_path):
    for pid, parent, environ in (
        (30, 20, "A=1\0"),
        (20, 10, "B=2\0SSH_CONNECTION=1.1.1.1 2 3.3.3.3 22\0"),
        (10, 0, ""),
    ):
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "status").write_text(f"Name:\tx\nPPid:\t{parent}\n")
        (tmp_path / str(pid) / "environ").write_text(environ)
    access = Access(proc=str(tmp_path))
    assert ssh_connection(access, {}, 30) == "1.1.1.1 2 3.3.3.3 22"
    assert ssh_connection(access, {}, 10) is None
    assert ssh_connection(access, {"SSH_CONNECTION": "x"}, 30) == "x"


# Errors told apart, single files


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (errno.ENOENT, NotThere),
        (errno.EOPNOTSUPP, NotSupported),
        (errno.EBUSY, Busy),
        (errno.EROFS, ReadOnly),
        (errno.EPERM, ReadOnly),
        (errno.EINVAL, Refused),
        (errno.EOVERFLOW, Refused),
    ],
)
def test_errors_by_number(number, kind):
    assert isinstance(file_error(OSError(number, os.strerror(number)), "/x"), kind)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("netlink error: Operation not supported", NotSupported),
        ('Cannot find device "nope"', NotThere),
        ("netlink error: no device matches name (offset 24)", NotThere),
        ("RTNETLINK answers: Operation not permitted", ReadOnly),
        ("RTNETLINK answers: Device or resource busy", Busy),
        ("Error: mtu greater than device maximum.", Refused),
    ],
)
def test_errors_by_text(text, kind):
    err = tool_error(["ip", "x"], 2, "", text, "eth1")
    assert isinstance(err, kind)
    assert ".." not in err.message


def test_a_tool_that_is_not_installed():
    with pytest.raises(BenchError, match="surely-not-here is not installed"):
        Access().run(["surely-not-here"], where="x")


@pytest.mark.parametrize(
    ("text", "value"), [("always [madvise] never\n", "madvise"), ("performance\n", "performance"), ("\n", "")]
)
def test_files_with_a_choice(tmp_path, text, value):
    (tmp_path / "file").write_text(text)
    assert make(Access(sys=str(tmp_path)), "sysfs", "file").read() == value
    assert kernel_file.chosen(text) == value


@pytest.mark.parametrize("key", ["/etc/passwd", "../x", ""])
def test_files_outside_the_tree(key):
    with pytest.raises(BenchError, match="below the tree"):
        make(Access(), "proc", key)


def test_ip_that_does_not_answer_with_json():
    assert access_module.parse_ip_json("") == []
    assert access_module.parse_ip_json(json.dumps([{}, {"a": 1}])) == [{"a": 1}]
    for text in ("Usage: ip", "{}"):
        with pytest.raises(BenchError, match="ip "):
            access_module.parse_ip_json(text)
