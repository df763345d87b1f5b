# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ladder of IPsec as a user of one machine runs it: with the inventory for it, by its playbooks."""

from __future__ import annotations

import base64
import json
import os
import pathlib
import subprocess
import typing as t

import pytest

from ansible_collections.fastpath.bench.tests.integration.pytest import test_lab_vm
from ansible_collections.fastpath.bench.tests.integration.pytest.test_lab import ENV, PLAYBOOK

pytestmark = test_lab_vm.pytestmark

ROOT = pathlib.Path(__file__).resolve().parents[3]
INVENTORY = ROOT / "inventories/gateways/hosts.yml"
LIMIT_S = 1800
WHY = "left out by the test"
SECRET = "a-secret-of-the-test-that-must-be-seen-nowhere"
SKIPPED = {"policy_cbc_sha1": WHY, "route_cbc_sha1": WHY, "rps": WHY, "ecmp4": WHY}


def play(name: str, **variables: t.Any) -> subprocess.CompletedProcess[str]:
    extra = {"lab_name": f"v{os.getpid()}_ladder", **variables}
    argv = [str(PLAYBOOK), "-i", str(INVENTORY), str(ROOT / f"playbooks/{name}.yml"), "-e", json.dumps(extra)]
    return subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT_S, check=False, env=ENV)


@pytest.fixture(scope="module")
def lab() -> t.Iterator[None]:
    built = play("lab_up")
    try:
        assert built.returncode == 0, built.stdout[-3000:]
        yield
    finally:
        down = play("lab_down")
    assert down.returncode == 0, down.stdout[-3000:]


@pytest.mark.usefixtures("lab")
def test_one_tunnel_and_four_between_four_pairs_of_addresses(tmp_path: pathlib.Path) -> None:
    sizes = {"ipsec_ladder_repeats": 2, "bench_duration_s": 4, "bench_warmup_s": 1}
    done = play(
        "ipsec_ladder", ipsec_ladder_skip=SKIPPED, ipsec_psk=SECRET, bench_results_dir=str(tmp_path), **sizes
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]
    (file,) = tmp_path.glob("*-*/ladder.json")
    rungs = {rung["step"]: rung for rung in json.loads(file.read_text())["steps"]}
    assert {name for name, rung in rungs.items() if rung["median"] is not None} == {"route_gcm", "outer_pairs"}
    assert rungs["outer_pairs"]["before"] == "route_gcm"
    assert {rungs[name]["reason"] for name in SKIPPED} == {WHY}
    assert "no power profile is named" in rungs["power"]["reason"]
    use = {name: "\n".join(rungs[name]["findings"]) for name in ("route_gcm", "outer_pairs")}
    assert "1 CHILD_SA (route) between 1 pair of outer addresses" in use["route_gcm"]
    assert "4 CHILD_SAs (route) between 4 pairs of outer addresses" in use["outer_pairs"]

    trials = [json.loads(path.read_text()) for path in (file.parent / "trials").glob("*.json")]
    assert [trial["status"] for trial in trials] == ["ok"] * 4, [trial["reason"] for trial in trials]
    for trial in trials:
        goodput = trial["metrics"]["goodput_forward"]["value"]
        tunnels = 4 if trial["point"]["step"] == "outer_pairs" else 1
        for host in ("gw1", "gw2"):
            esp = trial["dut"][host]["esp"]
            # the kernel's own count: of each tunnel both ways, together what arrived
            assert len(esp["sas"]) == 2 * tunnels
            assert esp["bytes"] * 8 / esp["counted_s"] > 0.7 * goodput, host
    # the secret is nowhere, plain or as strongSwan's file has it
    texts = [path.read_text(errors="replace") for path in file.parent.rglob("*") if path.is_file()]
    for text in [done.stdout, done.stderr, *texts]:
        assert SECRET not in text
        assert base64.b64encode(SECRET.encode()).decode() not in text
    assert "host_not_restored" not in (file.parent / "summary.json").read_text()
