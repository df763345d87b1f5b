# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The power axis of a matrix."""

from __future__ import annotations

import copy
import pathlib

import pytest
import yaml

from ansible_collections.fastpath.bench.plugins.module_utils._bench import plan as planning
from ansible_collections.fastpath.bench.plugins.module_utils._bench.catalog import catalog_of
from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError

ROOT = pathlib.Path(__file__).resolve().parents[5]
SHIPPED = yaml.safe_load((ROOT / "playbooks/vars/catalog.yml").read_text())["bench_shipped"]
LAB = yaml.safe_load((ROOT / "inventories/lab/group_vars/all/bench.yml").read_text())
HOSTS = ["client", "dut", "server"]


class Defaults(planning.Checks):
    """The role's defaults, as Ansible would find them."""

    def __init__(self):
        self.roles = []

    def role(self, name, entries, where):
        self.roles.append((name, tuple(entries)))

    def unset(self, host, role, variable, where):
        return f"{role}'s default of {variable} on {host}"


def plan(power, checks=None, **entries):
    variables = copy.deepcopy(LAB)
    variables["bench_matrix"]["axes"]["power"] = power
    variables["bench_power"] = entries
    catalog = catalog_of(variables, SHIPPED)
    return planning.plan_testbed("lab", HOSTS, variables["bench_matrix"], catalog, checks or Defaults())


def test_each_power_profile_is_a_setup_of_its_own():
    checks = Defaults()
    testbed = plan(["dynamic", "static_high"], checks)
    assert [(g["topology"], g["power"]) for g in testbed.groups] == [
        ("direct", "dynamic"), ("direct", "static_high"), ("routed", "dynamic"), ("routed", "static_high"),
    ]  # fmt: skip
    assert [g["vars"]["power_profile_name"] for g in testbed.groups] == ["dynamic", "static_high"] * 2
    assert [sorted(g["power_hosts"]) for g in testbed.groups] == [["client", "server"]] * 2 + [HOSTS] * 2
    assert len(testbed.points) == 2 * 12
    assert (planning.POWER_ROLE, ("apply", "verify", "restore")) in checks.roles


def test_without_the_axis_no_host_has_a_power_profile():
    testbed = planning.plan_testbed("lab", HOSTS, LAB["bench_matrix"], catalog_of(LAB, SHIPPED))
    assert [(g["power"], g["power_hosts"]) for g in testbed.groups] == [(None, []), (None, [])]


def test_a_profile_for_duts_means_nothing_without_one():
    testbed = plan(["a", "b"], a={"parts": "duts"}, b={"parts": "duts", "vars": {}})
    assert [(g["topology"], g["power"], g["power_hosts"]) for g in testbed.groups] == [
        ("direct", None, []), ("routed", "a", ["dut"]), ("routed", "b", ["dut"]),
    ]  # fmt: skip
    assert "lab.direct.none.none.tcp_large.forward" in testbed.points


def test_a_profile_for_endpoints():
    testbed = plan("mine", mine={"parts": "endpoints"})
    assert [sorted(g["power_hosts"]) for g in testbed.groups] == [["client", "server"]] * 2


def test_variables_of_one_profile_do_not_stay_for_another():
    values = {"power_profile_name": "static_high", "power_profile_strict": True}
    testbed = plan(["as_found", "mine"], mine={"vars": values})
    found, mine = testbed.groups[:2]
    assert mine["vars"] == values
    assert "unset" in mine
    assert not mine["unset"].get("client")
    assert found["unset"]["client"] == {
        "power_profile_strict": "fastpath.bench.power_profile's default of power_profile_strict on client"
    }
    # nor are they looked for among the datapath's
    asked = [value for group in testbed.groups for unset in group["unset"].values() for value in unset.values()]
    assert asked
    assert all(value.startswith(planning.POWER_ROLE) for value in asked)


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"vars": {"power_profile_bmc_password": "hidden"}}, "is a secret, and what is here is written into"),
        ({"part": "duts"}, "Did you mean 'parts'"),
        ({"parts": "dut"}, "Did you mean 'duts'"),
    ],
)
def test_an_entry_that_is_wrong(entry, said):
    with pytest.raises(BenchError) as caught:
        plan("mine", mine=entry)
    assert said in caught.value.message
    assert "hidden" not in caught.value.message
