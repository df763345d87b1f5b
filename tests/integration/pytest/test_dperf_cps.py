# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook dperf_cps on two hosts of a lab, with a program in dperf's place that prints what dperf printed."""

from __future__ import annotations

import base64
import json
import os
import pathlib
import shutil
import typing as t

import pytest

from ansible_collections.fastpath.bench.tests.integration.pytest.test_throughput_search import Lab

FIXTURES = pathlib.Path(__file__).resolve().parents[2] / "unit" / "fixtures" / "dperf"
PROGRAM = "/opt/fastpath-test/dperf"
#: The server stays until it is interrupted.
SCRIPT = """#!/bin/sh
cd /opt/fastpath-test
grep -q '^mode client' "$2" && exec cat cps-client.txt
trap 'exit 0' INT
cat cps-server.txt
while :; do sleep 0.1; done
"""

pytestmark = [
    pytest.mark.lab,
    pytest.mark.slow,
    pytest.mark.skipif(
        os.geteuid() != 0 or shutil.which("systemd-nspawn") is None, reason="needs root and systemd-nspawn"
    ),
]


@pytest.fixture
def lab(tmp_path: pathlib.Path) -> t.Iterator[Lab]:
    made = Lab(tmp_path, "cps")
    made.play("playbooks/lab_up.yml")
    for host in ("client", "server"):
        texts = {"dperf": SCRIPT, **{path.name: path.read_text() for path in FIXTURES.glob("cps-*.txt")}}
        for name, text in texts.items():
            data = base64.b64encode(text.encode()).decode()
            made.shell(host, f"mkdir -p /opt/fastpath-test; echo {data} | base64 -d >/opt/fastpath-test/{name}")
        made.shell(host, f"chmod 755 {PROGRAM}")
    yield made
    made.play("playbooks/lab_down.yml")


def test_the_table_of_cores(lab: Lab) -> None:
    own, other = (
        f"10.9.0.{{{{ {one} if inventory_hostname == 'client' else {two} }}}}" for one, two in ((1, 2), (2, 1))
    )
    done = lab.play(
        "playbooks/dperf_cps.yml",
        dperf_binary=PROGRAM,
        dperf_nics=[{"pci": "0000:00:00.0", "address": own, "gateway": other}],
        dperf_check_hardware=False,
        dperf_cpus="0",
        bench_dperf_cpus=[0, 1],
        bench_dperf_cores=[[1, 1], [2, 2]],
        bench_dperf_cps_per_core=500,
        bench_dperf_options={"bind": "10.9.0.1", "server": "10.9.0.2", "cps": 500, "slow_start_s": 10, "duration_s": 5},
    )
    (folder,) = lab.folder.glob("dperf-*")
    report = (folder / "report.md").read_text(encoding="utf-8")
    # the same figure with twice the cores is half of it for each
    assert "| 1 | 1 | at least 498 | 524 | 100 % |" in report
    assert "| 2 | 2 | at least 498 | 524 | 50 % |" in report
    assert "| 2 | 2 |" in done.stdout
    rows = json.loads((folder / "results.json").read_text(encoding="utf-8"))["rows"]
    assert [row["record"]["status"] for row in rows] == ["ok", "ok"]
    assert "cpu 0 1" in rows[1]["record"]["raw"]["client.conf"]
    assert "dperf" not in lab.shell(
        "server", "ps -e -o args | grep [f]astpath-test || true; ls /var/lib/fastpath-bench"
    )
