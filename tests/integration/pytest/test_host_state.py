# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Host settings on the real kernel, in network namespaces: changed, killed in the middle, put back."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import sys
import typing as t

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
DRIVER = pathlib.Path(__file__).with_name("host_state_driver.py")
NEEDED = ("ip", "ethtool", "unshare", "sysctl")

pytestmark = [
    pytest.mark.lab,
    pytest.mark.skipif(
        os.geteuid() != 0 or not all(map(shutil.which, NEEDED)), reason=f"needs root and {', '.join(NEEDED)}"
    ),
]


def run(folder: pathlib.Path, case: str, seed: str = "") -> dict[str, t.Any]:
    """One case in namespaces that end with it; its sysfs is that of its network namespace."""
    argv = ["unshare", "--net", "--mount", "--propagation", "private", sys.executable, str(DRIVER)]
    argv += [str(ROOT / ".cache" / "collections"), str(folder / "journal"), case, seed]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return t.cast("dict[str, t.Any]", json.loads(done.stdout))


@pytest.mark.parametrize("seed", range(12))
def test_random_changes_and_kills_come_back(tmp_path: pathlib.Path, seed: int) -> None:
    result = run(tmp_path, "random", str(seed))
    assert result["differences"] == []
    assert result["conflicts"] == []
    assert not result["again"]


def test_an_mtu_below_ipv6_comes_back(tmp_path: pathlib.Path) -> None:
    result = run(tmp_path, "mtu")
    assert result["lost"]
    assert "changed_beside" in result["codes"]
    assert result["differences"] == []


def test_what_a_link_loses_when_it_goes_down_comes_back(tmp_path: pathlib.Path) -> None:
    result = run(tmp_path, "down")
    assert result["lost"]
    assert result["differences"] == []


def test_router_settings(tmp_path: pathlib.Path) -> None:
    result = run(tmp_path, "router")
    assert result["fresh"] == ["0", "1"]
    assert not result["second"]
    assert "net/core/netdev_budget" in result["unsupported"]
    assert result["differences"] == []


@pytest.mark.skipif(not os.path.exists("/dev/net/tun"), reason="needs /dev/net/tun")
def test_tuning_of_devices_with_many_queues(tmp_path: pathlib.Path) -> None:
    result = run(tmp_path, "tuning")
    assert result["changed"] == [True, False, True, False]
    assert result["masks"] == 48
    has_not = ["coalesce", "flow_control", "irq.affinity", "rings", "rss.hash", "rss.table"]
    assert result["unsupported"]["eth1"] == result["unsupported"]["eth1 again"] == has_not
    assert "coalesce" in result["unsupported"]["tap1"]  # it has frames, and no times
    assert result["frames"] == ["8"]
    assert all("not supported on eth1" in line for line in result["evidence"] if not line.startswith("the kernel also"))
    assert result["second_s"] < 1.0
    assert result["same"]


def test_refusals_leave_nothing(tmp_path: pathlib.Path) -> None:
    result = run(tmp_path, "refused")
    assert result["told"] == {
        "gateway": "refused",
        "mtu": "refused",
        "cpu": "bad_cpu",
        "xps": "not_supported",
        "channels": "not_supported",
        "interface": "not_there",
    }
    assert result["differences"] == []
    assert result["entries"] == 0
