# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs inside a network and mount namespace of its own: one case of test_host_state.py, its result as JSON."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
import time
import typing as t

sys.path.insert(0, sys.argv[1])

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._host import settings
from ansible_collections.fastpath.bench.plugins.module_utils._host.access import Access
from ansible_collections.fastpath.bench.plugins.module_utils._host.journal import Journal
from ansible_collections.fastpath.bench.plugins.module_utils._host.knob import ABSENT, make
from ansible_collections.fastpath.bench.plugins.module_utils._host.reconcile import Wish, reconcile
from ansible_collections.fastpath.bench.plugins.module_utils._host.restore import restore

FOLDER = sys.argv[2]
KILLED = 77
#: One for the whole call, as in the modules: it keeps what it read until it writes.
ACCESS = Access()


def sh(command: str) -> str:
    return subprocess.run(command, shell=True, capture_output=True, text=True, check=True).stdout


def build() -> None:
    sh(
        "mount -t sysfs sysfs /sys; ip link set lo up;"
        "sysctl -qw net.ipv6.conf.default.accept_dad=0 net.ipv6.conf.all.accept_dad=0;"
        "for n in 1 2; do ip link add eth$n numtxqueues 4 numrxqueues 4 type veth"
        " peer name far$n numtxqueues 4 numrxqueues 4; ip link set far$n up; ip link set eth$n up; done;"
        "ip addr add 10.1.0.1/24 dev eth1; ip addr add fd00:1::1/64 dev eth1 nodad;"
        "ip addr add fd00:1::2/64 dev eth1 nodad; ip addr add 10.2.0.1/24 dev eth2; ip addr add 10.2.0.2/24 dev eth2;"
        "ip route add 10.7.0.0/24 via 10.1.0.9 metric 50; ip -6 route add fd77::/64 via fd00:1::9;"
        "ip route add 10.8.0.0/24 nexthop via 10.1.0.9 weight 2 nexthop via 10.2.0.9;"
        "ethtool -K eth2 sg off tso on >/dev/null;"
        "echo 1 > /sys/class/net/eth1/queues/rx-3/rps_cpus; echo 2 > /sys/class/net/eth2/queues/tx-2/xps_cpus;"
        "sysctl -qw net.ipv6.conf.eth1.accept_ra=2 net.ipv4.conf.eth2.rp_filter=2"
    )


def picture() -> dict[str, t.Any]:
    """All that must be the same; not what the kernel makes itself, and not how long it has been so."""
    links = json.loads(sh("ip -d -j addr show"))
    for link in links:
        link["addr_info"] = [
            {key: value for key, value in info.items() if key not in ("tentative", "valid_life_time")}
            for info in link["addr_info"]
            if info["scope"] != "link"
        ]
        link["addr_info"].sort(key=lambda info: info["local"] if info["family"] == "inet6" else "")
        link.pop("operstate")
        link["flags"] = sorted(set(link["flags"]) - {"LOWER_UP", "NO-CARRIER", "M-DOWN"})
        link["qdisc"] = None  # chosen when the link first comes up, and kept when it goes down
    routes = sorted(line for line in sh("ip -4 route; ip -6 route").splitlines() if "proto kernel" not in line)
    files = {}
    for line in sh(
        "grep -r . /proc/sys/net/ipv4/conf /proc/sys/net/ipv6/conf /proc/sys/net/ipv4/fib_multipath_hash_policy"
        " /sys/class/net/*/queues/*/*ps_cpus 2>/dev/null; true"
    ).splitlines():
        name, _colon, value = line.partition(":")
        files[name] = value
    tuning = {name: sh(f"ethtool -k {name}; ethtool -l {name}") for name in ("eth1", "eth2")}
    return {"links": links, "routes": [re.sub(r" (dead|linkdown)", "", r) for r in routes], "files": files, "t": tuning}


def differences(one: t.Any, other: t.Any, at: str = "") -> list[str]:
    if isinstance(one, dict) and isinstance(other, dict):
        return [d for key in {**one, **other} for d in differences(one.get(key), other.get(key), f"{at}/{key}")]
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return [d for n, pair in enumerate(zip(one, other)) for d in differences(*pair, f"{at}/{n}")]
    return [] if one == other else [f"{at}: {one!r} -> {other!r}"]


def wish(kind: str, key: str, value: t.Any, optional: bool = False) -> Wish:
    return Wish(make(ACCESS, kind, key), value, optional)


def apply(*wishes: Wish, hook: t.Callable[[str], None] | None = None) -> t.Any:
    ACCESS.forget()
    return reconcile(wishes, Journal(FOLDER, owner="test", hook=hook))


def put_back(hook: t.Callable[[str], None] | None = None) -> t.Any:
    return restore(Journal(FOLDER, owner="test", hook=hook), Access())


def random_wish(chance: random.Random) -> Wish:
    device = chance.choice(["eth1", "eth2"])
    addresses = ["10.1.0.1/24", "10.1.0.5/24", "10.3.0.1/24", "fd00:1::1/64", "fd00:3::1/64"]
    return wish(
        *chance.choice(
            [
                ("link.mtu", device, chance.choice([1000, 1400, 1500, 9000])),
                ("link.up", device, chance.random() < 0.5),
                ("link.promisc", device, chance.random() < 0.5),
                ("link.txqueuelen", device, chance.choice([0, 500, 1000])),
                ("channels", device, {chance.choice(["rx", "tx"]): chance.randint(1, 4)}),
                ("features", device, {chance.choice(["sg", "tso", "gso", "gro", "tx"]): chance.random() < 0.5}),
                ("queue.rps", f"{device}/rx-{chance.randint(0, 3)}", frozenset({chance.randint(0, 1)})),
                ("queue.xps", f"{device}/tx-{chance.randint(0, 3)}", frozenset({chance.randint(0, 1)})),
                ("sysctl", "net.ipv4.ip_forward", chance.randint(0, 1)),
                ("sysctl", "net.ipv6.conf.all.forwarding", chance.randint(0, 1)),
                (
                    "sysctl",
                    f"net.ipv4.conf.{chance.choice(['default', 'all', device])}.rp_filter",
                    chance.randint(0, 2),
                ),
                ("route", f"4 main 10.7.0.0/24 {chance.choice([0, 50])}", chance.choice([ABSENT, {"via": "10.1.0.8"}])),
                ("route", "6 main fd77::/64 1024", chance.choice([ABSENT, {"via": "fd00:1::8"}])),
                (
                    "addresses",
                    device,
                    {
                        "addresses": chance.sample(addresses, chance.randint(0, 4)),
                        "state": chance.choice(["exact", "present"]),
                        "dad": False,
                    },
                ),
            ]
        )
    )


def in_child(act: t.Callable[[t.Callable[[str], None]], t.Any], die_at: int | None) -> int:
    """Run it in a process that dies at once at the n-th point."""
    pid = os.fork()
    if pid == 0:
        left = [die_at]

        def hook(point: str) -> None:
            if left[0] is not None:
                left[0] -= 1
                if left[0] < 0:
                    os._exit(KILLED)

        try:
            act(hook)
        except BenchError:
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def case_random(seed: str) -> dict[str, t.Any]:
    chance = random.Random(seed)
    build()
    before = picture()
    codes = []
    for _case in range(chance.randint(2, 5)):
        wishes = [random_wish(chance) for _wish in range(chance.randint(1, 6))]
        die_at = chance.choice([None, None, chance.randint(0, 8)])
        codes.append(in_child(lambda hook, w=wishes: apply(*w, hook=hook), die_at))
    for _change in range(chance.randint(0, 2)):
        codes.append(in_child(put_back, chance.randint(0, 3)))
    result = put_back()
    return {
        "codes": codes,
        "differences": differences(before, picture()),
        "conflicts": result.conflicts,
        "again": bool(put_back().changes),
    }


def case_mtu(_seed: str) -> dict[str, t.Any]:
    """Below 1280 the kernel takes IPv6 off the interface, its settings too."""
    build()
    before = picture()
    outcome = apply(wish("link.mtu", "eth1", 1000))
    lost = "fd00:1::1" not in sh("ip addr show eth1") and not os.path.exists("/proc/sys/net/ipv6/conf/eth1")
    put_back()
    codes = [found["code"] for found in outcome.findings]
    return {"lost": lost, "codes": codes, "differences": differences(before, picture())}


def case_down(_seed: str) -> dict[str, t.Any]:
    build()
    before = picture()
    apply(wish("link.up", "eth1", False))
    lost = "10.7.0.0/24" not in sh("ip route") and "fd00:1::1" not in sh("ip addr show eth1")
    put_back()
    return {"lost": lost, "differences": differences(before, picture())}


def case_router(_seed: str) -> dict[str, t.Any]:
    """A new interface takes the default; the larger of all and its own counts."""
    build()
    before = picture()
    keys = {"net.ipv4.ip_forward": 1, "net.ipv6.conf.all.forwarding": 1}
    keys.update({f"net.ipv4.conf.{name}.rp_filter": 0 for name in ("all", "default", "eth1", "eth2")})
    keys.update({f"net.ipv{family}.fib_multipath_hash_policy": 1 for family in (4, 6)})
    outcome = apply(
        *(wish("sysctl", key, value, "multipath" in key) for key, value in keys.items()),
        wish("sysctl", "net.core.netdev_budget", 600, True),
    )
    second = apply(*(wish("sysctl", key, value, "multipath" in key) for key, value in keys.items()))
    sh("ip link add late type veth peer name far3")
    fresh = sh("sysctl -n net.ipv4.conf.late.rp_filter net.ipv4.conf.late.forwarding").split()
    sh("ip link del late")
    put_back()
    return {
        "fresh": fresh,
        "second": second.changed,
        "unsupported": [found["where"] for found in outcome.findings if found["code"] == "setting_unsupported"],
        "differences": differences(before, picture()),
    }


TUNED = {
    "rps": "0",
    "xps": "0",
    "rps_flow_count": 1000,
    "features": {"gro": "on", "tso": "off", "sg": "off"},
    "channels": {"rx": 48},
    "rings": {"rx": 512},
    "coalesce": {"rx-frames": 8, "rx-usecs": 5},
    "flow_control": {"rx": False},
    "rss_hash": {"tcp4": "sdfn", "udp4": "sdfn"},
    "rss_queues": 2,
    "irq_cpus": "0",
    "txqueuelen": 500,
    "promisc": True,
    "mtu_bytes": 1400,
}


def tune(name: str, **more: t.Any) -> tuple[t.Any, float]:
    """One call of net_tuning, and the time of this process that it took."""
    access = Access()
    entry = {**TUNED, "name": name, **more}
    params = {"interfaces": [entry], "unsupported": "report", "journal_dir": FOLDER, "owner": "test", "part": ""}
    begin = time.process_time()
    wishes = settings.tuning_wishes(access, params)
    outcome = settings.apply(access, {**params, "force": False}, wishes, check_mode=False)
    return outcome, time.process_time() - begin


def case_tuning(_seed: str) -> dict[str, t.Any]:
    """A device with 64 queues, and one that has coalescing; what they have not is told once."""
    sh(
        "mount -t sysfs sysfs /sys; ip link add eth1 numtxqueues 64 numrxqueues 64 type veth"
        " peer name eth2 numtxqueues 64 numrxqueues 64; ip tuntap add tap1 mode tap multi_queue"
    )

    def seen() -> str:
        names = ("eth1", "tap1")
        shown = "".join(
            sh(f"ethtool -k {n}; ethtool -l {n}; ethtool -c {n} || true; ip -d link show {n}") for n in names
        )
        return shown + sh("grep . /sys/class/net/*/queues/*/*ps_* 2>/dev/null; true")

    before = seen()
    first, _s = tune("eth1")
    second, second_s = tune("eth1")
    tap, _s = tune("tap1", channels=None, mtu_bytes=None)
    tap_again, _s = tune("tap1", channels=None, mtu_bytes=None)
    frames = re.findall(r"rx-frames: (\d+)", sh("ethtool -c tap1"))
    put_back()
    return {
        "changed": [first.changed, second.changed, tap.changed, tap_again.changed],
        "masks": sum(change.knob.kind == "queue.rps" for change in first.changes),
        "unsupported": {
            name: sorted(found["kind"] for found in outcome.findings if found["code"] == "setting_unsupported")
            for name, outcome in (("eth1", first), ("eth1 again", second), ("tap1", tap))
        },
        "evidence": [found["evidence"] for found in first.findings],
        "frames": frames,
        "second_s": second_s,
        "same": seen() == before,
    }


def case_refused(_seed: str) -> dict[str, t.Any]:
    """What fails in the middle is put back; what a device has not is told apart."""
    build()
    before = picture()
    told = {}
    for name, wishes in {
        "gateway": [wish("link.mtu", "eth1", 1400), wish("route", "4 main 10.99.0.0/24 0", {"via": "192.0.2.1"})],
        "mtu": [wish("link.txqueuelen", "eth1", 5), wish("link.mtu", "eth1", 70000)],
        "cpu": [wish("queue.rps", "eth1/rx-0", frozenset({4000}))],
        "xps": [wish("queue.xps", "lo/tx-0", frozenset({0}))],
        "channels": [wish("channels", "lo", {"rx": 1})],
        "interface": [wish("link.mtu", "eth9", 1400)],
    }.items():
        try:
            apply(*wishes)
        except BenchError as err:
            told[name] = err.code
    journal = Journal(FOLDER)
    journal.load()
    return {"told": told, "differences": differences(before, picture()), "entries": len(journal.entries())}


if __name__ == "__main__":
    print(json.dumps(globals()[f"case_{sys.argv[3]}"](sys.argv[4])))
