# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""vm_resources, and the backend hypervisor of power_profile, with stand-ins for the modules of community.vmware.

There is no vCenter here and no simulator of one as a Python package. So what is tested is what the roles ask for, in
which order, and what they make of the answers; that the real modules have such options is looked up in their
documentation.
"""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

import ansible_collections
import pytest
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[3]
PLAYBOOK = pathlib.Path(sys.executable).with_name("ansible-playbook")
PASSWORD = "a-vcenter-password-of-tests"

pytestmark = pytest.mark.slow

#: Each takes any option, notes it down, and does what the real one says that it does.
MODULE = '''#!/usr/bin/python
import json, os
from ansible.module_utils.basic import AnsibleModule
HEAD = dict(hostname={}, username={}, password={"no_log": True}, port={"type": "int"}, validate_certs={"type": "bool"})
def start(**options):
    module = AnsibleModule(dict(HEAD, **options), supports_check_mode=True)
    path = os.environ["VMWARE_STAND_IN"]
    state = json.load(open(path))
    asked = {k: v for k, v in module.params.items() if v is not None and k != "password"}
    state["asked"].append([os.path.basename("%(name)s"), asked, module.check_mode])
    def finish(**result):
        json.dump(state, open(path, "w"))
        module.exit_json(**result)
    return module, state, finish
'''
INFO = """
module, state, finish = start(datacenter={}, name={}, schema={}, properties={"type": "list"})
vm = state["vm"]
finish(instance={
    "config": {
        "cpuAllocation": {"reservation": vm["cpu"]}, "memoryAllocation": {"reservation": vm["memory"]},
        "memoryReservationLockedToMax": vm["locked"], "hardware": {"numCPU": 4, "memoryMB": 8192},
        "extraConfig": [{"key": k, "value": v} for k, v in vm["extra"].items()],
    },
    "runtime": {"maxCpuUsage": 9576, "powerState": "poweredOn"},
})
"""
GUEST = """
module, state, finish = start(datacenter={}, name={}, state={}, hardware={"type": "dict"},
                              advanced_settings={"type": "list", "elements": "dict"})
vm, hardware = state["vm"], module.params["hardware"]
if not module.check_mode:
    vm["cpu"] = hardware["cpu_reservation"]
    vm["locked"] = hardware["memory_reservation_lock"]
    vm["memory"] = 8192 if vm["locked"] else hardware.get("mem_reservation", vm["memory"])
    for setting in module.params["advanced_settings"]:
        vm["extra"].pop(setting["key"], None)
        if setting["value"]:
            vm["extra"][setting["key"]] = setting["value"]
finish(changed=True)
"""
POLICY = """
module, state, finish = start(esxi_hostname={}, policy={})
before, policy = state["policy"], module.params["policy"]
# after the first look of a play someone else sets another one
state["policy"] = state.pop("overwritten", state["policy"])
if not module.check_mode and not state.get("keeps"):
    state["policy"] = policy
finish(changed=before != policy, result={"esx1": {"previous_state": before, "current_state": policy}})
"""
MODULES = {"vmware_guest_info": INFO, "vmware_guest": GUEST, "vmware_host_powermgmt_policy": POLICY}
VM = {"cpu": 0, "memory": 512, "locked": False, "extra": {}}


class Vcenter:
    def __init__(self, folder):
        self.folder = folder
        modules = folder / "ansible_collections/community/vmware/plugins/modules"
        modules.mkdir(parents=True)
        for name, text in MODULES.items():
            (modules / f"{name}.py").write_text(MODULE % {"name": name} + text)
        self.file = folder / "state.json"
        self.write(vm=VM, policy="balanced", asked=[])

    def write(self, **values):
        before = json.loads(self.file.read_text()) if self.file.exists() else {}
        self.file.write_text(json.dumps({**before, **values}))

    def read(self, key):
        return json.loads(self.file.read_text())[key]

    def asked(self):
        return self.read("asked")

    def play(self, *steps, arguments=(), **variables):
        values = {
            "vm_resources_hostname": "vc", "vm_resources_username": "u", "vm_resources_password": PASSWORD,
            "vm_resources_name": "dut-vm", "vm_resources_record_dir": str(self.folder / "record"),
            "power_profile_hypervisor_hostname": "vc", "power_profile_hypervisor_username": "u",
            "power_profile_hypervisor_password": PASSWORD, "power_profile_hypervisor_esxi_hostname": "esx1",
            "power_profile_backends": ["hypervisor"], "power_profile_restored": ["hypervisor"],
            "power_profile_record_dir": str(self.folder / "record"), **variables,
        }  # fmt: skip
        tasks = [
            {"name": f"{role} {entry}", "ansible.builtin.include_role": {"name": role, "tasks_from": entry}}
            for role, entry in steps
        ]
        results = "{{ [vm_resources_result | default({}), power_profile_result | default({})] | to_json }}"
        told = self.folder / "told"
        copy = {"content": results, "dest": str(told), "mode": "0600"}
        tasks.append({"name": "Tell", "ansible.builtin.copy": copy, "check_mode": False})
        (self.folder / "variables.json").write_text(json.dumps(values))
        book = self.folder / "play.yml"
        book.write_text(yaml.safe_dump([{"hosts": "localhost", "gather_facts": False, "tasks": tasks}]))
        done = subprocess.run(
            [str(PLAYBOOK), str(book), "-vvv", "-e", f"@{self.folder / 'variables.json'}", *arguments],
            env={
                **os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "VMWARE_STAND_IN": str(self.file),
                "ANSIBLE_COLLECTIONS_PATH": f"{self.folder}:{ROOT / '.cache/collections'}",
            },
            check=False, capture_output=True, text=True, timeout=300,
        )  # fmt: skip
        assert PASSWORD not in done.stdout + done.stderr
        done.output = " ".join((done.stdout + done.stderr).split())
        done.told = json.loads(told.read_text()) if told.exists() else None
        return done


@pytest.fixture
def vcenter(tmp_path):
    return Vcenter(tmp_path)


RESOURCES = "fastpath.bench.vm_resources"
POWER = "fastpath.bench.power_profile"


def real_options(name):
    for place in ansible_collections.__path__:
        path = pathlib.Path(place) / "community/vmware/plugins/modules" / f"{name}.py"
        if path.exists():
            text = path.read_text().split("DOCUMENTATION = r'''", 1)[1].split("'''", 1)[0]
            return yaml.safe_load(text)["options"]
    pytest.skip("community.vmware is not installed")


def test_resources_are_reserved_recorded_and_put_back(vcenter):
    done = vcenter.play((RESOURCES, "main"), (RESOURCES, "main"))
    assert done.returncode == 0, done.output
    full = {"cpu": 9576, "memory": 8192, "locked": True, "extra": {"sched.cpu.latencySensitivity": "high"}}
    assert vcenter.read("vm") == full
    assert done.told[0]["effective"] is True
    writes = [asked for name, asked, _check in vcenter.asked() if name == "vmware_guest"]
    assert len(writes) == 1, "what is as asked is not written again"
    assert writes[0]["hardware"] == {"cpu_reservation": 9576, "memory_reservation_lock": True}

    base = {"hostname", "username", "password", "port", "validate_certs"}
    for name, asked, _check in vcenter.asked():
        assert set(asked) <= set(real_options(name)) | base
    assert set(writes[0]["hardware"]) <= set(real_options("vmware_guest")["hardware"]["suboptions"])

    done = vcenter.play((RESOURCES, "restore"))
    assert done.returncode == 0, done.output
    assert vcenter.read("vm") == VM
    assert list((vcenter.folder / "record").iterdir()) == []


def test_resources_in_check_mode_and_what_someone_else_set(vcenter):
    done = vcenter.play((RESOURCES, "main"), arguments=("--check",))
    assert done.returncode == 0, done.output
    assert vcenter.read("vm") == VM
    assert not (vcenter.folder / "record").exists()

    assert vcenter.play((RESOURCES, "main")).returncode == 0
    vcenter.write(vm={**vcenter.read("vm"), "cpu": 1000})
    done = vcenter.play((RESOURCES, "restore"))
    assert done.returncode != 0
    assert "Someone else changed dut-vm since" in done.output
    assert vcenter.read("vm")["cpu"] == 1000


def test_a_second_apply_that_was_broken_off_before_its_change_is_no_change_by_someone_else(vcenter):
    assert vcenter.play((RESOURCES, "main")).returncode == 0
    first = vcenter.read("vm")
    assert vcenter.play((RESOURCES, "main"), vm_resources_latency_sensitivity="low").returncode == 0
    vcenter.write(vm=first)  # its record was written, the machine not yet
    done = vcenter.play((RESOURCES, "restore"))
    assert done.returncode == 0, done.output
    assert vcenter.read("vm") == VM


def test_the_hypervisors_policy_is_set_recorded_and_put_back(vcenter):
    done = vcenter.play((POWER, "main"), power_profile_name="static_high")
    assert done.returncode == 0, done.output
    told = done.told[1]
    assert (told["effective"], told["found"]) == (True, {"hypervisor": {"policy": "high-performance"}})
    assert vcenter.read("policy") == "high-performance"
    # a second machine on the same host finds the record, and what was found first stays
    done = vcenter.play((POWER, "main"), power_profile_name="dynamic")
    assert vcenter.read("policy") == "balanced"
    done = vcenter.play((POWER, "main"), (POWER, "restore"), power_profile_name="static_high")
    assert done.returncode == 0, done.output
    assert vcenter.read("policy") == "balanced"
    assert list((vcenter.folder / "record").iterdir()) == []
    for name, asked, _check in vcenter.asked():
        base = {"hostname", "username", "password", "port", "validate_certs"}
        assert set(asked) <= set(real_options(name)) | base
    assert {asked["policy"] for _name, asked, _check in vcenter.asked()} <= set(
        real_options("vmware_host_powermgmt_policy")["policy"]["choices"]
    )

    vcenter.write(keeps=True)
    done = vcenter.play((POWER, "main"), power_profile_name="static_high")
    assert done.told[1]["effective"] is False
    assert "esx1 has power policy balanced, not high-performance" in done.told[1]["reason"]


def test_a_policy_that_someone_else_set_while_it_was_measured_does_not_hold(vcenter):
    done = vcenter.play((POWER, "main"), (POWER, "verify"), power_profile_name="static_high")
    assert done.told[1]["effective"] is True
    # the policy is asked for, and is not what stays
    vcenter.write(policy="high-performance", overwritten="low-power")
    done = vcenter.play((POWER, "main"), (POWER, "verify"), power_profile_name="static_high")
    assert done.returncode == 0, done.output
    assert done.told[1]["effective"] is False
    assert done.told[1]["reason"] == "hypervisor: someone else set power policy low-power since"


def test_a_policy_that_someone_else_set_is_told_and_left(vcenter):
    assert vcenter.play((POWER, "main"), power_profile_name="static_high").returncode == 0
    vcenter.write(policy="low-power")
    done = vcenter.play((POWER, "restore"))
    assert done.returncode != 0
    assert "Someone else changed the power policy of esx1 since: it is low-power" in done.output
    assert vcenter.read("policy") == "low-power"
    assert list((vcenter.folder / "record").iterdir()) != []

    # a host that does not take it back is told too, and its record stays
    vcenter.write(policy="high-performance", keeps=True)
    done = vcenter.play((POWER, "restore"))
    assert done.returncode != 0
    assert "esx1 has power policy high-performance, not balanced as it was found" in done.output
    assert list((vcenter.folder / "record").iterdir()) != []

    vcenter.write(policy="low-power", keeps=False)
    done = vcenter.play((POWER, "restore"), power_profile_force=True)
    assert done.returncode == 0, done.output
    assert vcenter.read("policy") == "balanced"
    assert list((vcenter.folder / "record").iterdir()) == []
