# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Mistakes in what a matrix names, found before a host is touched."""

from __future__ import annotations

import copy
import pathlib

import pytest
import yaml
from ansible.parsing.dataloader import DataLoader

from ansible_collections.fastpath.bench.plugins.module_utils._bench.catalog import catalog_of
from ansible_collections.fastpath.bench.plugins.module_utils._bench.plan import DATAPATH_ENTRIES, plan_testbed
from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.plugin_utils.checks import AnsibleChecks

ROOT = pathlib.Path(__file__).resolve().parents[4]
SHIPPED = yaml.safe_load((ROOT / "playbooks/vars/catalog.yml").read_text())["bench_shipped"]
LAB = yaml.safe_load((ROOT / "inventories/lab/group_vars/all/bench.yml").read_text())
HOSTS = ["client", "dut", "server"]


def make(tmp_path, **hostvars):
    loader = DataLoader()
    loader.set_basedir(str(tmp_path))
    return AnsibleChecks(loader, dict.fromkeys(HOSTS, hostvars))


def plan(tmp_path, axes, **changes):
    variables = {**copy.deepcopy(LAB), **changes}
    variables["bench_matrix"]["axes"].update(axes)
    checks = make(tmp_path, **variables)
    return plan_testbed("lab", HOSTS, variables["bench_matrix"], catalog_of(variables, SHIPPED), checks)


def test_everything_shipped_is_all_right(tmp_path):
    datapaths = list(SHIPPED["datapaths"])
    flows = [name for name, profile in SHIPPED["traffic"].items() if profile["generator"] in ("flow", "connections")]
    # these come from the client alone
    assert plan(tmp_path, {"datapath": datapaths, "traffic": flows, "direction": ["forward"]}).trials
    others = [name for name in SHIPPED["traffic"] if name not in flows]
    assert plan(tmp_path, {"datapath": datapaths, "traffic": others}).trials


@pytest.mark.parametrize(
    ("options", "headline", "told"),
    [
        ({"protocl": "udp"}, "goodput", "protocl"),
        ({"protocol": "sctp"}, "goodput", "value of protocol must be one of: tcp, udp, got: sctp"),
        ({"rate": "fast"}, "goodput", "fast"),
        ({"protocol": "udp", "length_bytes": 80000}, "goodput", "80000 is out of range"),
        ({"length_bytes": "many"}, "goodput", "many"),
        ({"protocol": "udp", "mss_bytes": 1400}, "goodput", "UDP has no segment size"),
        ({"protocl": "udp"}, "goodput", "there is no option protocl"),
        ({"length_bytes": -5}, "goodput", "length_bytes: -5 is out of range"),
        ({"mss_bytes": 40000}, "goodput", "mss_bytes: 40000 is out of range"),
        ({}, "forwarding_rate", "a trial with protocol tcp does not count forwarding_rate_"),
        ({"protocol": "udp"}, "retransmits", "does not count retransmits_"),
    ],
)
def test_a_wrong_option_of_a_traffic_profile(tmp_path, options, headline, told):
    profile = {"generator": "iperf2", "headline": headline, "options": options}
    with pytest.raises(BenchError) as caught:
        plan(tmp_path, {"traffic": ["mine"]}, bench_traffic={"mine": profile})
    assert caught.value.where == "bench_traffic.mine.options"
    assert told in caught.value.what


def test_a_wrong_option_of_an_own_axis(tmp_path):
    axes = {"streams": {"level": "trial", "values": {"less": {"length_bytes": -3}}}}
    with pytest.raises(BenchError, match="-3"):
        plan(tmp_path, {"streams": ["less"]}, bench_axes=axes)


@pytest.mark.parametrize("name", ["no.such.role", "nowhere", "fastpath.bench.kernel_ruoter"])
def test_a_role_that_is_not_there(tmp_path, name):
    with pytest.raises(BenchError) as caught:
        plan(tmp_path, {"datapath": ["mine"]}, bench_datapaths={"mine": {"role": name}})
    assert (caught.value.code, caught.value.where) == ("no_role", "bench_datapaths.mine.role")


def test_a_role_that_is_no_datapath(tmp_path):
    with pytest.raises(BenchError, match="no entry point apply, verify, observe") as caught:
        plan(tmp_path, {"datapath": ["mine"]}, bench_datapaths={"mine": {"role": "fastpath.bench.topology"}})
    assert caught.value.code == "no_entry_point"


def test_a_role_beside_the_playbook(tmp_path):
    tasks = tmp_path / "roles" / "mine" / "tasks"
    tasks.mkdir(parents=True)
    for entry in DATAPATH_ENTRIES:
        (tasks / f"{entry}.yaml").write_text("[]\n")
    assert plan(tmp_path, {"datapath": ["mine"]}, bench_datapaths={"mine": {"role": "mine"}}).trials


def test_a_module_that_is_not_there(tmp_path):
    generator = {"role": "fastpath.bench.iperf", "module": "fastpath.bench.iprf_run"}
    with pytest.raises(BenchError) as caught:
        plan(
            tmp_path,
            {"traffic": ["mine"]},
            bench_generators={"mine": generator},
            bench_traffic={"mine": {"generator": "mine"}},
        )
    assert (caught.value.code, caught.value.where) == ("no_module", "bench_traffic.mine.generator")


RPS = {"rps": {"role": "fastpath.bench.kernel_router", "vars": {"kernel_router_rps": "0-1"}}}


def kernel_beside_rps(tmp_path, datapaths, **variables):
    testbed = plan(tmp_path, {"datapath": ["kernel", "rps"]}, bench_datapaths=datapaths, **variables)
    return next(group for group in testbed.groups if group["datapath"] == "kernel")["unset"]


def test_a_variable_that_another_datapath_sets_goes_back_to_its_default(tmp_path):
    assert kernel_beside_rps(tmp_path, RPS) == {"dut": {"kernel_router_rps": None}}


def test_a_variable_that_another_datapath_sets_goes_back_to_the_inventorys(tmp_path):
    assert kernel_beside_rps(tmp_path, RPS, kernel_router_rps="3") == {"dut": {"kernel_router_rps": "3"}}


def test_a_default_that_cannot_be_told_is_to_be_set(tmp_path):
    changed = {"rps": {**RPS["rps"], "vars": {"kernel_router_interfaces": ["eth1"]}}}
    with pytest.raises(BenchError, match=r"its default in role .* is a template") as caught:
        kernel_beside_rps(tmp_path, changed)
    assert caught.value.where == "bench_datapaths.kernel.vars"


def test_a_variable_that_a_role_does_not_have(tmp_path):
    """It would be set and used by nobody, and the plain datapath measured under the name of the tuned one."""
    datapath = {"role": "fastpath.bench.kernel_router", "vars": {"kernel_router_rpss": "0-1", "my_own": 1}}
    with pytest.raises(BenchError, match="Did you mean 'kernel_router_rps'") as caught:
        plan(tmp_path, {"datapath": ["mine"]}, bench_datapaths={"mine": datapath})
    assert (caught.value.code, caught.value.where) == ("no_variable", "bench_datapaths.mine.vars")
    datapath["vars"]["kernel_router_rps"] = datapath["vars"].pop("kernel_router_rpss")
    assert plan(tmp_path, {"datapath": ["mine"]}, bench_datapaths={"mine": datapath}).trials


def test_a_variable_of_a_setup_axis_that_the_role_does_not_have(tmp_path):
    axes = {"rps": {"values": {"all": {"kernel_router_rpss": "0-1"}}}}
    with pytest.raises(BenchError, match="Did you mean 'kernel_router_rps'") as caught:
        plan(tmp_path, {"rps": ["all"]}, bench_axes=axes)
    assert caught.value.where == "bench_axes.rps.values"
