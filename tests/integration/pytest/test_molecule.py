# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each Molecule scenario, by Molecule itself; what this machine cannot run is skipped with the reason."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

from ansible_collections.fastpath.bench.tests.support.vpp_process import find_vpp, why_not

ROOT = pathlib.Path(__file__).resolve().parents[3]
BIN = pathlib.Path(sys.executable).parent
COLLECTIONS = ROOT / ".cache" / "collections"
LIMIT_S = 900
# the role brings vpp_papi to the hosts; the Python of these tests needs none
WHY_NOT_VPP = why_not(papi=False)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        os.geteuid() != 0 or shutil.which("systemd-nspawn") is None, reason="needs root and systemd-nspawn"
    ),
    pytest.mark.skipif(shutil.which("molecule", path=str(BIN)) is None, reason="no molecule beside this Python"),
]


def run_scenario(name: str) -> None:
    environment = {
        **os.environ,
        "PATH": f"{BIN}:{os.environ['PATH']}",
        "ANSIBLE_COLLECTIONS_PATH": str(COLLECTIONS),
        "VPP_BIN": find_vpp() or "",
        "NO_COLOR": "1",
    }
    # molecule finds the collection by the path that it is started in
    folder = COLLECTIONS / "ansible_collections" / "fastpath" / "bench"
    done = subprocess.run(
        [str(BIN / "molecule"), "test", "-s", name],
        cwd=folder,
        env={**environment, "PWD": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-6000:]


def test_every_scenario_is_run_here() -> None:
    there = {file.parent.name for file in (ROOT / "molecule").glob("*/molecule.yml")}
    assert there == {"default", "ipsec", "vpp"}


@pytest.mark.lab
def test_default() -> None:
    run_scenario("default")


@pytest.mark.vpp
@pytest.mark.skipif(WHY_NOT_VPP is not None, reason=str(WHY_NOT_VPP))
def test_vpp() -> None:
    run_scenario("vpp")


@pytest.mark.vm
@pytest.mark.skipif(
    any(shutil.which(tool) is None for tool in ("qemu-system-x86_64", "mmdebstrap", "ssh")),
    reason="needs qemu-system-x86_64, mmdebstrap and ssh",
)
def test_ipsec() -> None:
    run_scenario("ipsec")
