# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""dperf for real, between two network cards of a virtual machine: hugepages, uio_pci_generic, both ends, all put back.

The variable DPERF_BIN names the program. What it is linked with goes to the machine beside it.
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import tarfile
import typing as t

import pytest

from ansible_collections.fastpath.bench.plugins.module_utils._lab.topology import MANAGEMENT
from ansible_collections.fastpath.bench.tests.integration.pytest.test_lab import ENV, PLAYBOOK
from ansible_collections.fastpath.bench.tests.integration.pytest.test_lab_vm import LEFT, MachineLab, make_lab

ROOT = pathlib.Path(__file__).resolve().parents[3]
PROGRAM = os.environ.get("DPERF_BIN", "")
#: Software emulation of a program that polls.
LIMIT_S = 3600
CPS = 200

pytestmark = [
    pytest.mark.lab,
    pytest.mark.vm,
    pytest.mark.slow,
    pytest.mark.skipif(
        os.geteuid() != 0
        or any(shutil.which(tool) is None for tool in ("systemd-nspawn", "qemu-system-x86_64", "mmdebstrap", "ssh")),
        reason="needs root, systemd-nspawn, qemu-system-x86_64, mmdebstrap and ssh",
    ),
    pytest.mark.skipif(not PROGRAM, reason="DPERF_BIN names no dperf"),
]

TOPOLOGY: dict[str, t.Any] = {
    "topology": {
        "nodes": {"dut": {"kind": "vm", "cpus": 2, "memory": "6GiB"}, "sw": {"kind": "bridge"}},
        "links": [{"endpoints": ["dut:eth1", "sw:one"]}, {"endpoints": ["dut:eth2", "sw:two"]}],
    }
}
#: Each end on a machine of its own; dperf polls on the second CPU.
END = {"kind": "vm", "cpus": 2, "memory": "4GiB"}
PAIR: dict[str, t.Any] = {
    "topology": {
        "nodes": {"client": END, "server": END},
        "links": [{"endpoints": ["client:eth1", "server:eth1"]}],
    }
}
CARDS = f"for card in {MANAGEMENT} eth1 eth2; do readlink -e /sys/class/net/$card/device; done"
STATE = (
    "cat /sys/kernel/mm/hugepages/*/nr_hugepages; grep hugetlbfs /proc/mounts;"
    " for card in /sys/bus/pci/devices/*; do echo $card $(readlink $card/driver) $(cat $card/driver_override); done;"
    f" {LEFT}"
)


@contextlib.contextmanager
def built(name: str, topology: dict[str, t.Any]) -> t.Iterator[MachineLab]:
    made = make_lab(name)
    try:
        made.call("present", topology)
        yield made
    finally:
        made.call("absent", topology)
    assert made.leftovers() == []


@pytest.fixture(scope="module")
def lab() -> t.Iterator[MachineLab]:
    with built("dp", TOPOLOGY) as made:
        yield made


@pytest.fixture
def pair() -> t.Iterator[MachineLab]:
    with built("dc", PAIR) as made:
        yield made


def addresses(lab: MachineLab, host: str = "dut") -> list[str]:
    """Where the cards are on the machine's bus: that of the management, then the others."""
    lines = lab.ssh(CARDS, host).split()
    return [re.findall(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]", line)[-1] for line in lines]


def copies(tmp_path: pathlib.Path) -> list[dict[str, t.Any]]:
    """Tasks that bring the program and what it is linked with to a machine."""
    wrapper = '#!/bin/sh\nLD_LIBRARY_PATH=/opt/dperf/lib exec /opt/dperf/dperf "$@"\n'
    archive = tmp_path / "dperf.tar.gz"
    with tarfile.open(archive, "w:gz", compresslevel=1) as tar:
        tar.add(os.path.realpath(PROGRAM), "dperf")
        for path in libraries():
            tar.add(os.path.realpath(path), f"lib/{pathlib.Path(path).name}")
    return [
        {"ansible.builtin.file": {"path": "/opt/dperf", "state": "directory", "mode": "0755"}},
        {"ansible.builtin.unarchive": {"src": str(archive), "dest": "/opt/dperf"}},
        {"ansible.builtin.copy": {"content": wrapper, "dest": "/opt/dperf/run", "mode": "0755"}},
    ]


def libraries() -> list[str]:
    told = subprocess.run(["ldd", PROGRAM], capture_output=True, text=True, check=True).stdout
    found = re.findall(r"=> (/\S+) ", told)
    # the C library is the machine's own
    return [
        path for path in found if not re.match(r"(?:libc|libm|ld-|libpthread|libdl|librt)\b", pathlib.Path(path).name)
    ]


def inventory(lab: MachineLab, tmp_path: pathlib.Path, hosts: dict[str, t.Any], **variables: t.Any) -> pathlib.Path:
    known = {
        "ansible_connection": "fastpath.bench.lab",
        "ansible_python_interpreter": "/usr/bin/python3",
        "lab_name": lab.name,
        **variables,
    }
    file = tmp_path / "hosts.yml"
    file.write_text(json.dumps({"all": {"hosts": hosts, "vars": known}}))
    return file


def run(hosts: pathlib.Path, playbook: pathlib.Path) -> str:
    argv = [str(PLAYBOOK), "-i", str(hosts), str(playbook)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=LIMIT_S, check=False, env=ENV)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def play(
    lab: MachineLab,
    tmp_path: pathlib.Path,
    tasks: list[dict[str, t.Any]],
    hosts: t.Iterable[str] = ("dut",),
    **variables: t.Any,
) -> str:
    book = tmp_path / "play.yml"
    book.write_text(json.dumps([{"hosts": "all", "gather_facts": False, "tasks": tasks}]))
    return run(inventory(lab, tmp_path, dict.fromkeys(hosts), **variables), book)


def role(name: str, entry: str = "main") -> dict[str, t.Any]:
    return {"ansible.builtin.include_role": {"name": f"fastpath.bench.{name}", "tasks_from": entry}}


#: The server goes away in the middle of the client's steady part.
GO_AWAY = (
    "cd /run/fastpath-bench/dperf;"
    " for _ in $(seq 600); do grep -Eq 'synRx +[1-9]' server.out 2>/dev/null && break; sleep 0.5; done;"
    " sleep 12; kill -KILL $(sed -E 's/.*\"pid\": ([0-9]+)\\}.*/\\1/' server.pid)"
)


def served(
    name: str,
    common: dict[str, t.Any],
    client: dict[str, t.Any],
    server: dict[str, t.Any],
    beside: t.Sequence[t.Any] = (),
) -> list[dict[str, t.Any]]:
    """A trial with its server; what both said is in ``<name>_client`` and ``<name>_server``."""
    instances = {"instances": [{"name": name, **common}]}
    return [
        {"fastpath.bench.dperf_server": {**instances, **server, "listen_s": 300, "lifetime_s": 900}},
        *beside,
        {"fastpath.bench.dperf_run": {**client, "trials": [{"id": name, **common}], "time_limit_s": 300},
         "register": f"{name}_client"},
        {"fastpath.bench.dperf_server": {"state": "stopped", **instances}, "register": f"{name}_server"},
    ]  # fmt: skip


def test_dperf_between_two_cards(lab: MachineLab, tmp_path: pathlib.Path) -> None:
    management, client, server = addresses(lab)
    before = lab.ssh(STATE)
    common = {"cps": CPS, "bind": "10.9.0.1", "server": "10.9.0.2", "slow_start_s": 10, "duration_s": 10}
    # both ends are on one machine: without it, the second one finds the first one in its way
    memory = {"socket_mem_mb": [2200]}
    ends = {
        "client": {"nics": [{"pci": client, "address": "10.9.0.1", "gateway": "10.9.0.2"}], "cpus": "0", **memory},
        "server": {"nics": [{"pci": server, "address": "10.9.0.2", "gateway": "10.9.0.1"}], "cpus": "1", **memory},
    }
    try:
        play(
            lab,
            tmp_path,
            [
                *copies(tmp_path),
                role("host_prep"),
                role("dperf"),
                *served("one", common, ends["client"], ends["server"]),
                *served("away", common, ends["client"], ends["server"], [{"ansible.builtin.shell": GO_AWAY,
                                                                         "async": 600, "poll": 0}]),
                *served("list", common, ends["client"], {**ends["server"], "instances": [
                    {"name": "list", **common, "clients_seen": [{"start": "10.9.0.77"}]}]}),
                {"ansible.builtin.copy": {"content": "{{ told | to_json }}",
                                          "dest": str(tmp_path / "told.json"), "mode": "0600"},
                 "delegate_to": "localhost",
                 "vars": {"ansible_connection": "local", "told": {
                     name: {end: f"{{{{ {name}_{end} }}}}" for end in ("client", "server")}
                     for name in ("one", "away", "list")}}},
            ],
            host_prep_hugepages=[{"size": "2M", "count": 2500}],
            host_prep_mounts=[{"path": "/mnt/huge", "size": "2M"}],
            host_prep_drivers=[{"pci": card, "driver": "uio_pci_generic"} for card in (client, server)],
            dperf_binary="/opt/dperf/run",
            dperf_nics=ends["client"]["nics"],
            dperf_cpus="0",
        )  # fmt: skip
        told = json.loads((tmp_path / "told.json").read_text())
        record = told["one"]["client"]["trials"][0]
        assert record["status"] == "ok", record["reason"]
        rate = record["metrics"]["connection_rate_forward"]["value"]
        assert rate == pytest.approx(CPS, rel=0.1), record["reading"]
        assert any(line.startswith("closed_loop") for line in record["reading"])
        assert told["one"]["server"]["reports"]["one"]["status"] == "ok"
        for name, code in (("away", "server_gone"), ("list", "server_not_listening")):
            failed = told[name]["client"]["trials"][0]
            assert (failed["status"], failed["code"]) == ("failed", code), failed["reading"]
        held = lab.ssh("cat /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages")
        assert held.strip() == "2500"
    finally:
        play(lab, tmp_path, [role("dperf", "remove"), role("host_prep", "remove")])
    assert lab.ssh(STATE).splitlines() == before.splitlines()
    refused = [{"fastpath.bench.host_prep": {"drivers": [{"pci": management, "driver": "uio_pci_generic"}]},
                "register": "told", "failed_when": "told.code | default('') != 'management_nic'"}]  # fmt: skip
    play(lab, tmp_path, refused)


def test_the_table_of_cores_between_two_machines(pair: MachineLab, tmp_path: pathlib.Path) -> None:
    ends = {"client": ("10.9.0.1", "10.9.0.2"), "server": ("10.9.0.2", "10.9.0.1")}
    hosts = {}
    for host, (own, other) in ends.items():
        _management, card = addresses(pair, host)[:2]
        hosts[host] = {
            "dperf_nics": [{"pci": card, "address": own, "gateway": other}],
            "host_prep_drivers": [{"pci": card, "driver": "uio_pci_generic"}],
        }
    before = {host: pair.ssh(STATE, host) for host in ends}
    play(pair, tmp_path, copies(tmp_path), hosts=ends)
    variables = {
        "host_prep_hugepages": [{"size": "2M", "count": 1250}],
        "host_prep_mounts": [{"path": "/mnt/huge", "size": "2M"}],
        "dperf_binary": "/opt/dperf/run",
        "dperf_cpus": "1",
        "dperf_listen_s": 300,
        "bench_dperf_cpus": [1],
        "bench_dperf_cores": [[1, 1]],
        "bench_dperf_cps_per_core": CPS,
        "bench_dperf_options": {"bind": "10.9.0.1", "server": "10.9.0.2", "slow_start_s": 10, "duration_s": 10},
        "bench_results_dir": str(tmp_path / "results"),
    }
    told = run(inventory(pair, tmp_path, hosts, **variables), ROOT / "playbooks/dperf_cps.yml")
    (file,) = (tmp_path / "results").glob("dperf-*/results.json")
    (row,) = json.loads(file.read_text())["rows"]
    assert row["record"]["status"] == "ok", row["record"]["reason"]
    rate = row["record"]["metrics"]["connection_rate_forward"]["value"]
    assert rate == pytest.approx(CPS, rel=0.1), row["record"]["reading"]
    # what was asked for was reached: the figure is no limit of these machines
    assert "| 1 | 1 | at least" in told
    for host, state in before.items():
        assert pair.ssh(STATE, host).splitlines() == state.splitlines()
