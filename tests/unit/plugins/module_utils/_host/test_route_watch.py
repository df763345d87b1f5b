# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Next hops that change while traffic runs."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

from ansible_collections.fastpath.bench.plugins.module_utils._bench import findings
from ansible_collections.fastpath.bench.plugins.module_utils._host.route_watch import announced
from ansible_collections.fastpath.bench.plugins.module_utils._host.sample_cut import Recording, Window

ROOT = pathlib.Path(__file__).parents[5]
IN_A_NAMESPACE = """
import socket, subprocess, sys
sys.path.insert(0, sys.argv[1])
from ansible_collections.fastpath.bench.plugins.module_utils._host.route_watch import Watch
def sh(text):
    subprocess.run(text, shell=True, check=True)
sh("ip link set lo up; ip link add e1 type veth peer name f1; ip link add e2 type veth peer name f2;"
   "for n in e1 e2 f1 f2; do ip link set $n up; done;"
   "ip address add 10.1.0.1/24 dev e1; ip address add 10.2.0.1/24 dev e2; ip address add fd00::1/64 dev e1 nodad;"
   "ip route add 10.9.0.0/24 nexthop via 10.1.0.9 nexthop via 10.2.0.9")
watch = Watch(lambda: [socket.if_nametoindex("e1")])
assert watch.reason is None and watch.changes() == []
sh("ip route replace 10.9.0.0/24 nexthop via 10.1.0.8 nexthop via 10.2.0.9")
print(watch.changes(), watch.changes())
sh("ip address add 10.3.0.1/24 dev e1; ip route add 10.8.0.0/24 via 10.2.0.9")
print(watch.changes())
sh("ip -6 route add default via fd00::2; ip route del 10.9.0.0/24; ip nexthop add id 7 via 10.1.0.7 dev e1")
print(watch.changes())
for number in range(40):
    sh(f"ip route add 10.50.{number}.0/24 via 10.1.0.9")
print(watch.changes()[-1])
"""


@pytest.mark.lab
@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("unshare") is None, reason="needs root and unshare")
def test_the_kernel_tells_of_next_hops_that_change() -> None:
    argv = ["unshare", "--net", sys.executable, "-c", IN_A_NAMESPACE, str(ROOT / ".cache" / "collections")]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "['10.9.0.0/24 set'] []",
        # that of another interface, and the one that came with an address, are no concern
        "[]",
        "['default (IPv6) set', '10.9.0.0/24 deleted', 'next hop 7 set']",
        "32 others",
    ]


@pytest.mark.parametrize("size", [0, 3, 15, 16, 40])
def test_messages_that_are_cut_off_are_no_error(size: int) -> None:
    whole = bytes.fromhex("3c00000018000000000000000000000002180000fe0300010000000008000100" + "0a09000008000400" * 3)
    assert announced(whole[:size], [2]) == []


def test_a_window_has_the_changes_in_it_and_the_trial_is_marked() -> None:
    head = '{"type":"header","schema":1,"interval_s":1,"interfaces":[],"counters":[],"routes":%s}\n'
    sample = '{"m":%d,"o":0,"stat":"cpu0 1 1 1 1 1 1 1 1 1 1","if":{},"softnet_rows":0,"softnet":{}%s}\n'
    lines = [sample % (at, ',"routes":["10.9.0.0/24 set"]' if at == 7 else "") for at in range(12)]
    windows = [Window("before", 1, 5), Window("during", 5, 9), Window("after", 8, 11)]

    def cut(listening: str) -> dict[str, dict[str, object]]:
        return Recording(lambda: [head % listening, *lines]).cut(windows)

    found = {name: report["routes_changed"] for name, report in cut("true").items()}
    assert found == {"before": [], "during": ["10.9.0.0/24 set"], "after": []}
    assert {report["routes_changed"] for report in cut("false").values()} == {None}

    trial = {"status": "ok", "metrics": {}, "dut": {"r": {"routes_changed": found["during"]}}, "endpoints": {}}
    told = list(findings.REGISTRY["routes_changed"].findings(findings.TrialView(trial)))
    assert [finding.evidence for finding in told] == ["r: 10.9.0.0/24 set"]
    assert findings.has_effect(["routes_changed"], findings.BLOCKS) == "routes_changed"
