# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two IPsec gateways on kernels of their own: the role as a user runs it, what it refuses, and that nothing is left.

One lab serves all tests, in the order in which they stand here.
"""

from __future__ import annotations

import json
import os
import pathlib
import re
import subprocess
import typing as t

import pytest

from ansible_collections.fastpath.bench.tests.integration.pytest import test_lab_vm
from ansible_collections.fastpath.bench.tests.integration.pytest.test_lab import ENV, PLAYBOOK

pytestmark = test_lab_vm.pytestmark

NODE = {
    "kind": "vm",
    "cpus": 1,
    "packages": ["strongswan-swanctl", "charon-systemd", "libstrongswan-standard-plugins"],
}
TOPOLOGY: dict[str, t.Any] = {
    "topology": {
        "nodes": {"gwa": NODE, "gwb": NODE, "client": None, "server": None},
        "links": [
            {"endpoints": ["client:eth1", "gwa:eth1"]},
            {"endpoints": ["gwa:eth2", "gwb:eth2"]},
            {"endpoints": ["gwb:eth1", "server:eth1"]},
        ],
    }
}
GATEWAYS = [
    {
        "name": name,
        "interfaces": [
            {"name": "eth1", "addresses": [f"10.73.{side}.254/24"]},
            {"name": "eth2", "addresses": [f"10.73.9.{side}/24"]},
        ],
    }
    for side, name in ((1, "gwa"), (2, "gwb"))
]
OWN = "{{ (ipsec_gateways | selectattr('name', 'equalto', inventory_hostname) | first).interfaces }}"
LIMIT_S = 1500
#: What the role changes.
STATE = (
    "ip -br link; ip -br address; ip route; ip rule; nft list ruleset; find /etc/swanctl -type f | sort;"
    " systemctl is-active strongswan; sysctl -a 2>/dev/null | grep -E 'ip_forward |hash_policy|conf.*rp_filter'"
)


class Gateways(test_lab_vm.MachineLab):
    before: t.ClassVar[dict[str, str]] = {}

    def run(
        self, folder: pathlib.Path, tasks: list[dict[str, t.Any]], **more: t.Any
    ) -> subprocess.CompletedProcess[str]:
        """Both gateways in one play."""
        variables = {"ipsec_gateways": GATEWAYS, "topology_interfaces": OWN, **more}
        play = {"hosts": "gwa,gwb", "gather_facts": False, "vars": variables, "tasks": tasks}
        book, inventory = folder / "play.yml", folder / "hosts.yml"
        book.write_text(json.dumps([play]))
        reach = {
            "ansible_connection": "fastpath.bench.lab",
            "ansible_python_interpreter": "/usr/bin/python3",
            "lab_name": self.name,
        }
        inventory.write_text(json.dumps({"all": {"hosts": {"gwa": None, "gwb": None}, "vars": reach}}))
        argv = [str(PLAYBOOK), "-i", str(inventory), str(book)]
        return subprocess.run(argv, capture_output=True, text=True, timeout=LIMIT_S, check=False, env=ENV)


def role(name: str, entry: str = "main") -> dict[str, t.Any]:
    return {"ansible.builtin.include_role": {"name": f"fastpath.bench.{name}", "tasks_from": entry}}


@pytest.fixture(scope="module")
def lab() -> t.Iterator[Gateways]:
    lab = Gateways(f"v{os.getpid()}_ipsec")
    try:
        lab.call("present", TOPOLOGY)
        Gateways.before = {host: lab.ssh(STATE, host) for host in ("gwa", "gwb")}
        yield lab
    finally:
        lab.call("absent", TOPOLOGY)
    assert lab.leftovers() == []


def secret(lab: Gateways, host: str) -> str:
    text = lab.ssh("cat /etc/swanctl/conf.d/fastpath-bench-secrets.conf", host)
    found = re.search(r"secret = 0s(\S+)", text)
    assert found, text
    return found[1]


def test_two_tunnels_come_up_and_carry_and_a_second_run_changes_nothing(lab: Gateways, tmp_path: pathlib.Path) -> None:
    roles = [role("topology"), role("ipsec")]
    done = lab.run(tmp_path, roles, ipsec_tunnels=2)
    assert done.returncode == 0, done.stdout
    # the role itself has proven by the counters of ESP that the path is encrypted; this is the kernel's own word
    state = lab.ssh("ip xfrm state", "gwa")
    assert state.count("rfc4106(gcm(aes))") == 4
    assert state.count("if_id 0x2a") == state.count("if_id 0x2b") == 2
    assert "nexthop dev ipsec1" in lab.ssh("ip route", "gwa")
    # the largest packet that fits, and one byte more
    ping = "ping -c 1 -w 20 -M do -I 10.73.1.254 10.73.2.254 -s"
    assert " 0% packet loss" in lab.ssh(f"{ping} 1418", "gwa")
    assert "message too long" in lab.ssh(f"{ping} 1419", "gwa")
    # one secret, for root's eyes only, and in no output
    assert secret(lab, "gwa") == secret(lab, "gwb")
    assert secret(lab, "gwa") not in done.stdout
    assert lab.ssh("stat -c %a /etc/swanctl/conf.d/fastpath-*", "gwa").split() == ["600", "600"]
    assert secret(lab, "gwa") not in lab.ssh("cat /var/lib/fastpath-bench/journal/journal.json", "gwa")
    again = lab.run(tmp_path, roles, ipsec_tunnels=2)
    assert again.returncode == 0, again.stdout
    assert re.findall(r"changed=(\d+)", again.stdout) == ["0", "0"], again.stdout


def test_packets_that_pass_the_tunnel_by_are_seen(lab: Gateways, tmp_path: pathlib.Path) -> None:
    """Counters that did not rise, and an interface with another id than its SA, whose traffic would be dropped."""
    asked = {"since": [], "packets": 1_000_000}
    done = lab.ansible("gwa", "-m", "fastpath.bench.ipsec_sa", "-a", json.dumps(asked))
    assert "plaintext_path" in done.stdout
    lab.ssh("ip link delete ipsec1; ip link add name ipsec1 type xfrm dev eth2 if_id 99; ip link set ipsec1 up", "gwa")
    done = lab.run(tmp_path, [role("ipsec", "verify")], ipsec_tunnels=2)
    assert done.returncode != 0
    assert "do not hold any more: ipsec1" in done.stdout, done.stdout


def test_a_wrong_secret_is_told_in_the_daemons_words(lab: Gateways, tmp_path: pathlib.Path) -> None:
    path = "/etc/swanctl/conf.d/fastpath-bench-secrets.conf"
    lab.ssh(f"sed -i 's/secret = .*/secret = other/' {path}; swanctl --load-creds --clear --noprompt", "gwb")
    lab.ssh("for n in 1 2; do swanctl --terminate --ike fastpath-$n --force --timeout 3; done", "gwa")
    done = lab.run(tmp_path, [role("ipsec", "verify")], ipsec_tunnels=2, ipsec_up_limit_s=15)
    assert done.returncode != 0
    assert "tunnel_not_up" in done.stdout, done.stdout
    assert "AUTH" in done.stdout, done.stdout


def test_a_daemon_that_hangs_or_is_gone_ends_in_time(lab: Gateways) -> None:
    asked = json.dumps({"state": "gathered", "wait_s": 1, "time_limit_s": 2})
    lab.ssh("pkill -STOP -x charon-systemd", "gwa")
    try:
        assert "charon_hung" in lab.ansible("gwa", "-m", "fastpath.bench.ipsec_sa", "-a", asked).stdout
    finally:
        lab.ssh("pkill -CONT -x charon-systemd", "gwa")
    lab.ssh("systemctl stop strongswan", "gwa")
    try:
        assert "charon_absent" in lab.ansible("gwa", "-m", "fastpath.bench.ipsec_sa", "-a", asked).stdout
    finally:
        lab.ssh("systemctl start strongswan", "gwa")


def test_nothing_is_left(lab: Gateways, tmp_path: pathlib.Path) -> None:
    done = lab.run(tmp_path, [role("ipsec", "remove"), role("topology", "remove")], ipsec_force=True)
    assert done.returncode == 0, done.stdout
    for host, before in Gateways.before.items():
        assert lab.ssh(STATE, host) == before
        assert json.loads(lab.ssh("cat /var/lib/fastpath-bench/journal/journal.json", host))["entries"] == []
