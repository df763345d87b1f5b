# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two IPsec gateways on kernels of their own: the role as a user runs it, what it refuses, and that nothing is left.

One lab serves all tests, in the order in which they stand here. Each test makes the set-up that it needs, so that one
can be run alone too.
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
from ansible_collections.fastpath.bench.tests.integration.pytest.test_lab import ENV, PLAYBOOK, wait_until

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
BOTH = ("gwa", "gwb")
OWN = "{{ (ipsec_gateways | selectattr('name', 'equalto', inventory_hostname) | first).interfaces }}"
CONF = "/etc/swanctl/conf.d/fastpath-bench.conf"
SECRETS = "/etc/swanctl/conf.d/fastpath-bench-secrets.conf"
JOURNAL = "/var/lib/fastpath-bench/journal/journal.json"
LIMIT_S = 1500
#: What the role changes.
STATE = (
    "ip -br link; ip -br address; ip route; ip rule; nft list ruleset; find /etc/swanctl -type f | sort;"
    " systemctl is-active strongswan; sysctl -a 2>/dev/null | grep -E 'ip_forward |hash_policy|conf.*rp_filter'"
)
CBC = {"ipsec_esp": ["aes128-sha1"], "ipsec_ike": ["aes128-sha256-modp2048"]}
FOUR = {"ipsec_tunnels": 4, "ipsec_dpd_delay_s": 3}
#: For the module ipsec_sa: the first of them is to be there.
FIRST: dict[str, t.Any] = {
    "state": "installed",
    "esp": ["aes128gcm16"],
    "expected": [{"name": "fastpath-1", "if_id": 42}],
}


class Gateways(test_lab_vm.MachineLab):
    before: t.ClassVar[dict[str, str]] = {}
    made: t.ClassVar[dict[str, t.Any] | None] = None

    def run(
        self,
        folder: pathlib.Path,
        tasks: list[dict[str, t.Any]],
        of_host: dict[str, dict[str, t.Any]] | None = None,
        **more: t.Any,
    ) -> subprocess.CompletedProcess[str]:
        """Both gateways in one play."""
        # a limit, and no wait: emulated machines take their time
        variables = {"ipsec_gateways": GATEWAYS, "topology_interfaces": OWN, "ipsec_up_limit_s": 240, **more}
        play = {"hosts": "gwa,gwb", "gather_facts": False, "vars": variables, "tasks": tasks}
        book, inventory = folder / "play.yml", folder / "hosts.yml"
        book.write_text(json.dumps([play]))
        reach = {
            "ansible_connection": "fastpath.bench.lab",
            "ansible_python_interpreter": "/usr/bin/python3",
            "ansible_pipelining": True,
            "lab_name": self.name,
        }
        hosts = {name: (of_host or {}).get(name) for name in BOTH}
        inventory.write_text(json.dumps({"all": {"hosts": hosts, "vars": reach}}))
        argv = [str(PLAYBOOK), "-i", str(inventory), str(book)]
        return subprocess.run(argv, capture_output=True, text=True, timeout=LIMIT_S, check=False, env=ENV)

    def need(self, folder: pathlib.Path, **variables: t.Any) -> str:
        """Have both gateways as asked, whatever a test before left; the play's output when it was not so already."""
        if Gateways.made == variables:
            return ""
        Gateways.made = None
        done = self.run(folder, [role("topology"), role("ipsec")], **variables)
        assert done.returncode == 0, done.stdout
        Gateways.made = variables
        return done.stdout

    def module(self, host: str, name: str, **arguments: t.Any) -> dict[str, t.Any]:
        argv = self.ansible_command(host, "-m", f"fastpath.bench.{name}", "-a", json.dumps(arguments))
        env = {**ENV, "ANSIBLE_CALLBACK_RESULT_FORMAT": "json"}
        done = subprocess.run(argv, capture_output=True, text=True, timeout=LIMIT_S, check=False, env=env)
        result: dict[str, t.Any] = json.loads(done.stdout.split("=>", 1)[1])
        return result

    def sas(self, host: str) -> dict[str, dict[str, t.Any]]:
        return {
            row["child"]: row
            for row in self.module(host, "ipsec_sa", state="gathered")["sas"]
            if row["state"] == "INSTALLED"
        }

    def carries(self) -> bool:
        return " 0% packet loss" in self.sh("client", "ping -c 2 -W 2 10.73.2.1")

    def traffic(self, seconds: int, streams: int) -> subprocess.Popen[str]:
        """TCP from the client to the server, told for each second."""
        self.sh("server", "pgrep -x iperf3 >/dev/null || iperf3 -s -D --forceflush >/dev/null 2>&1; sleep 0.3")
        words = f"iperf3 -c 10.73.2.1 -J -t {seconds} -P {streams} --connect-timeout 5000"
        enter = ["nsenter", "-t", str(self.init("client")), "-m", "-u", "-i", "-n", "-p", "-C", "--"]
        return subprocess.Popen([*enter, *words.split()], stdout=subprocess.PIPE, text=True)


def role(name: str, entry: str = "main") -> dict[str, t.Any]:
    return {"ansible.builtin.include_role": {"name": f"fastpath.bench.{name}", "tasks_from": entry}}


@pytest.fixture(scope="module")
def lab() -> t.Iterator[Gateways]:
    lab = Gateways(f"v{os.getpid()}_ipsec")
    Gateways.made = None
    try:
        lab.call("present", TOPOLOGY)
        for side, host in ((1, "client"), (2, "server")):
            words = f"ip address add 10.73.{side}.1/24 dev eth1; ip route add 10.73.0.0/16 via 10.73.{side}.254"
            assert lab.sh(host, words) == ""
        Gateways.before = {host: lab.ssh(STATE, host) for host in BOTH}
        yield lab
    finally:
        lab.call("absent", TOPOLOGY)
    assert lab.leftovers() == []


def secret(lab: Gateways, host: str) -> str:
    text = lab.ssh(f"cat {SECRETS}", host)
    found = re.search(r"secret = 0s(\S+)", text)
    assert found, text
    return found[1]


def kernel_packets(lab: Gateways, host: str) -> int:
    """What the kernel's own SAs carried, in and out."""
    return sum(int(one) for one in re.findall(r"(\d+)\(packets\)", lab.ssh("ip -s xfrm state", host)))


# What is refused before a host is touched


def test_ends_that_differ_are_refused_with_both_proposals(lab: Gateways, tmp_path: pathlib.Path) -> None:
    done = lab.run(tmp_path, [role("ipsec")], of_host={"gwb": {"ipsec_esp": ["aes256gcm16"]}})
    assert done.returncode != 0
    assert "no_proposal_chosen" in done.stdout
    assert "aes128gcm16" in done.stdout
    assert "aes256gcm16" in done.stdout
    assert Gateways.before["gwa"] == lab.ssh(STATE, "gwa")


@pytest.mark.parametrize(
    ("variables", "code"),
    [
        ({"ipsec_if_ids": [{"in": 42, "out": "0x2b"}]}, "if_id_mismatch"),
        ({"ipsec_gateways": [{**one, "networks": ["10.73.0.0/16"]} for one in GATEWAYS]}, "route_covers_peer"),
        ({"ipsec_gateways": [{**one, "networks": ["0.0.0.0/0"]} for one in GATEWAYS]}, "route_covers_peer"),
        ({"ipsec_esp": ["aes128gcm16-sha256"]}, "bad_proposal"),
    ],
)
def test_what_could_not_work_is_refused(
    lab: Gateways, tmp_path: pathlib.Path, variables: dict[str, t.Any], code: str
) -> None:
    done = lab.run(tmp_path, [role("ipsec")], **variables)
    assert done.returncode != 0
    assert code in done.stdout, done.stdout


def test_an_algorithm_that_the_kernel_lacks_is_told_before_anything_changes(
    lab: Gateways, tmp_path: pathlib.Path
) -> None:
    rule = "/etc/modprobe.d/without.conf"
    lab.ssh(f"echo 'install chacha20poly1305 /bin/false' >{rule}", "gwa")
    try:
        done = lab.run(tmp_path, [role("ipsec")], ipsec_esp=["chacha20poly1305"])
    finally:
        lab.ssh(f"rm {rule}", "gwa")
    assert done.returncode != 0
    assert "gwa cannot be an IPsec gateway: the kernel does not take ESP with chacha20poly1305" in done.stdout
    assert Gateways.before["gwa"] == lab.ssh(STATE, "gwa")


# Tunnels


def test_policies_with_certificates_and_cbc_are_proven_by_esp(lab: Gateways, tmp_path: pathlib.Path) -> None:
    lab.need(tmp_path, ipsec_mode="policy", ipsec_auth="pubkey", **CBC)
    assert "type xfrm" not in lab.ssh("ip -d link", "gwa")
    state = lab.ssh("ip xfrm state", "gwa")
    assert state.count("cbc(aes)") == state.count("hmac(sha1)") == 2
    said = lab.ssh("journalctl -u strongswan -o cat | grep 'authentication of'", "gwa")
    assert "with ECDSA" in said, said
    # the private key is root's alone, in no file of the controller and not in the journal
    assert lab.ssh("stat -c %a /etc/swanctl/private/fastpath-key.pem", "gwa").strip() == "600"
    assert "PRIVATE" not in lab.ssh(f"cat {JOURNAL}", "gwa")
    before = kernel_packets(lab, "gwa"), kernel_packets(lab, "gwb")
    assert " 0% packet loss" in lab.sh("client", "ping -c 20 -i 0.1 -W 5 10.73.2.1")
    for host, was in zip(BOTH, before):
        assert kernel_packets(lab, host) - was >= 40, host


def test_one_tunnel_over_an_interface_with_cbc(lab: Gateways, tmp_path: pathlib.Path) -> None:
    """From policies, certificates and all: what is not asked for any more is gone."""
    lab.need(tmp_path, **CBC)
    state = lab.ssh("ip xfrm state", "gwa")
    assert state.count("cbc(aes)") == state.count("if_id 0x2a") == 2
    assert "ipsec1" in lab.ssh("ip route get 10.73.2.1", "gwa")
    assert "fastpath-key" not in lab.ssh("find /etc/swanctl -type f", "gwa")
    assert lab.carries()


def test_four_tunnels_come_up_and_a_second_run_changes_nothing(lab: Gateways, tmp_path: pathlib.Path) -> None:
    roles = [role("topology"), role("ipsec")]
    said = lab.need(tmp_path, **FOUR)
    # the role itself has proven by the counters of ESP that the path is encrypted; this is the kernel's own word
    state = lab.ssh("ip xfrm state", "gwa")
    assert state.count("rfc4106(gcm(aes))") == 8
    assert [state.count(f"if_id {number:#x}") for number in range(42, 46)] == [2, 2, 2, 2]
    assert "nexthop dev ipsec4" in lab.ssh("ip route", "gwa")
    # the largest packet that fits, and one byte more
    ping = "ping -c 1 -w 20 -M do -I 10.73.1.254 10.73.2.254 -s"
    assert " 0% packet loss" in lab.ssh(f"{ping} 1418", "gwa")
    assert "message too long" in lab.ssh(f"{ping} 1419", "gwa")
    # one secret, for root's eyes only, and in no output
    assert secret(lab, "gwa") == secret(lab, "gwb")
    assert secret(lab, "gwa") not in said
    assert lab.ssh("stat -c %a /etc/swanctl/conf.d/fastpath-*", "gwa").split() == ["600", "600"]
    assert secret(lab, "gwa") not in lab.ssh(f"cat {JOURNAL}", "gwa")
    again = lab.run(tmp_path, roles, **FOUR)
    assert again.returncode == 0, again.stdout
    assert re.findall(r"changed=(\d+)", again.stdout) == ["0", "0"], again.stdout


def test_flows_spread_over_the_tunnels(lab: Gateways, tmp_path: pathlib.Path) -> None:
    lab.need(tmp_path, **FOUR)
    before = lab.sas("gwa")
    flows = lab.traffic(5, 16)
    told = json.loads(flows.communicate(timeout=60)[0])
    assert told["end"]["sum_received"]["bytes"] > 1_000_000
    after = lab.sas("gwa")
    sent = {name: row["packets_out"] - before[name]["packets_out"] for name, row in after.items()}
    assert len(sent) == 4
    # sixteen flows: that none falls on one of four tunnels has a chance of four in a hundred, on two next to none
    assert sum(packets > 50 for packets in sent.values()) >= 3, sent


def test_new_keys_during_traffic_lose_no_run(lab: Gateways, tmp_path: pathlib.Path) -> None:
    lab.need(tmp_path, **FOUR)
    old = {row["spi_out"] for row in lab.sas("gwa").values()}
    rekey = "sleep 1; for n in 1 2 3 4; do swanctl --rekey --child fastpath-$n; done"
    for seconds in (12, 40, 120):
        flows = lab.traffic(seconds, 8)
        assert lab.ssh(rekey, "gwa").count("completed") == 4
        in_time = flows.poll() is None
        told = json.loads(flows.communicate(timeout=seconds + 60)[0])
        if in_time:
            break  # else the machine was too slow for so little traffic
    assert in_time
    assert "error" not in told, told["error"]
    assert told["end"]["sum_received"]["seconds"] > seconds - 1
    # it goes on under the new keys; a single second without a byte may be the machine's
    assert sum(one["sum"]["bytes"] > 0 for one in told["intervals"]) > seconds * 0.7
    assert any(one["sum"]["bytes"] > 0 for one in told["intervals"][-4:])
    assert not old & {row["spi_out"] for row in lab.sas("gwa").values()}


def test_a_peer_that_restarts_gets_its_tunnels_back(lab: Gateways, tmp_path: pathlib.Path) -> None:
    """In good order, and killed: then the other end has to notice by itself."""
    lab.need(tmp_path, **FOUR)
    expected = [{"name": f"fastpath-{number}", "if_id": 41 + number} for number in range(1, 5)]
    for how in ("systemctl restart strongswan", "pkill -KILL -x charon-systemd; systemctl restart strongswan"):
        lab.ssh(how, "gwb")
        up = lab.module("gwb", "ipsec_sa", **{**FIRST, "expected": expected, "time_limit_s": 240})
        assert "msg" not in up, up["msg"]
        wait_until(lab.carries, 120)
        # IKE does not go through the tunnel
        assert {row["local"] for row in lab.sas("gwa").values()} == {"10.73.9.1"}


# What goes wrong


def test_a_daemon_that_hangs_is_late_or_gone_ends_in_time(lab: Gateways, tmp_path: pathlib.Path) -> None:
    lab.need(tmp_path, **FOUR)
    asked = {"state": "gathered", "wait_s": 1, "time_limit_s": 2}
    lab.ssh("pkill -STOP -x charon-systemd", "gwa")
    try:
        assert lab.module("gwa", "ipsec_sa", **asked)["code"] == "charon_hung"
    finally:
        lab.ssh("pkill -CONT -x charon-systemd", "gwa")
    lab.ssh("systemctl stop strongswan", "gwa")
    try:
        assert lab.module("gwa", "ipsec_sa", **asked)["code"] == "charon_absent"
    finally:
        lab.ssh("systemd-run --on-active=4 systemctl start strongswan", "gwa")
    # it is not there yet
    up = lab.module("gwa", "ipsec_sa", wait_s=120)
    assert "sas" in up, up["msg"]


def test_why_a_tunnel_does_not_come_up_is_told_in_the_daemons_words(lab: Gateways, tmp_path: pathlib.Path) -> None:
    """Another secret, other proposals, a peer that is away; each put back, and the tunnel comes."""
    lab.need(tmp_path, **FOUR)
    asked = {**FIRST, "initiator": True}
    end = "swanctl --terminate --ike fastpath-1 --force --timeout 3"

    lab.ssh(f"cp {SECRETS} /root/secrets; sed -i 's/secret = .*/secret = other/' {SECRETS}", "gwb")
    lab.ssh("swanctl --load-creds --clear --noprompt", "gwb")
    lab.ssh(end, "gwa")
    wrong = lab.module("gwa", "ipsec_sa", **asked, time_limit_s=15)
    assert wrong["code"] == "tunnel_not_up"
    assert "AUTH" in wrong["msg"], wrong["msg"]
    lab.ssh(f"mv /root/secrets {SECRETS}; swanctl --load-creds --clear --noprompt", "gwb")

    lab.ssh(f"cp {CONF} /root/conf; sed -i 's/esp_proposals = .*/esp_proposals = aes256-sha256/' {CONF}", "gwb")
    lab.ssh("swanctl --load-conns", "gwb")
    lab.ssh(end, "gwa")
    wrong = lab.module("gwa", "ipsec_sa", **asked, time_limit_s=15)
    assert wrong["code"] == "tunnel_not_up"
    assert "NO_PROPOSAL_CHOSEN" in wrong["msg"] or "NO_PROP" in wrong["msg"], wrong["msg"]
    lab.ssh(f"mv /root/conf {CONF}; swanctl --load-conns", "gwb")

    lab.ssh("ip link set eth2 down", "gwb")
    lab.ssh(end, "gwa")
    wrong = lab.module("gwa", "ipsec_sa", **asked, time_limit_s=15)
    assert wrong["code"] == "tunnel_not_up"
    lab.ssh("ip link set eth2 up", "gwb")
    up = lab.module("gwa", "ipsec_sa", **asked, time_limit_s=240)
    assert "msg" not in up, up["msg"]


def test_packets_that_pass_the_tunnel_by_are_seen(lab: Gateways, tmp_path: pathlib.Path) -> None:
    """Counters that did not rise; SAs with another id than their interface; an interface with another one."""
    lab.need(tmp_path, **FOUR)
    assert lab.module("gwa", "ipsec_sa", state="gathered", packets=1_000_000)["code"] == "plaintext_path"
    other = {"name": "fastpath-1", "if_id": 43}
    wrong = lab.module("gwa", "ipsec_sa", **{**FIRST, "expected": [other]})
    assert wrong["code"] == "if_id_mismatch"
    assert "0x2a in and 0x2a out, its interface has 0x2b" in wrong["msg"]
    Gateways.made = None
    lab.ssh("ip link delete ipsec1; ip link add name ipsec1 type xfrm dev eth2 if_id 99; ip link set ipsec1 up", "gwa")
    done = lab.run(tmp_path, [role("ipsec", "verify")], **FOUR)
    assert done.returncode != 0
    assert "do not hold any more: ipsec1" in done.stdout, done.stdout


def test_nothing_is_left(lab: Gateways, tmp_path: pathlib.Path) -> None:
    Gateways.made = None
    done = lab.run(tmp_path, [role("ipsec", "remove"), role("topology", "remove")], ipsec_force=True)
    assert done.returncode == 0, done.stdout
    for host, before in Gateways.before.items():
        assert lab.ssh(STATE, host) == before
        entries = lab.ssh(f"test ! -e {JOURNAL} || cat {JOURNAL}", host)
        assert not entries or json.loads(entries)["entries"] == []
