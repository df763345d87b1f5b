# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What everything that belongs to a lab is called, and where it lies.

A lab can be removed knowing nothing but its name: all is found by the names made here.
"""

from __future__ import annotations

import dataclasses
import os

from ansible_collections.fastpath.bench.plugins.module_utils._common.paths import LAB_DIR

NETNS_DIR = "/run/netns"
NETNS_PREFIX = "fpl-"
CGROUP_PREFIX = "fastpath-lab"
#: Where systemd runs the machine, each lab host is a unit of its own in the usual slice.
SLICE = "system.slice"
UNIT_PREFIX = "fastpath-lab-"


@dataclasses.dataclass(frozen=True)
class LabNames:
    lab: str

    @property
    def lock(self) -> str:
        # Beside the folder, not inside: the folder is a mount point that comes and goes under the lock.
        return f"{LAB_DIR}/{self.lab}.lock"

    @property
    def folder(self) -> str:
        return f"{LAB_DIR}/{self.lab}"

    @property
    def state_file(self) -> str:
        return f"{self.folder}/lab.json"

    @property
    def netns_prefix(self) -> str:
        return f"{NETNS_PREFIX}{self.lab}-"

    def netns(self, node: str) -> str:
        return self.netns_prefix + node

    def netns_file(self, node: str) -> str:
        return f"{NETNS_DIR}/{self.netns(node)}"

    def node_of_netns(self, netns: str) -> str | None:
        return netns[len(self.netns_prefix) :] if netns.startswith(self.netns_prefix) else None

    def host_folder(self, host: str) -> str:
        return f"{self.folder}/{host}"

    def init_file(self, host: str) -> str:
        return f"{self.host_folder(host)}/init"

    def console_log(self, host: str) -> str:
        return f"{self.host_folder(host)}/console.log"

    def start_script(self, host: str) -> str:
        return f"{self.host_folder(host)}/start.sh"

    # -- of virtual machines

    def spec_file(self, host: str) -> str:
        return f"{self.host_folder(host)}/spec.json"

    def ready_file(self, host: str) -> str:
        """What the guest says on its second serial line."""
        return f"{self.host_folder(host)}/ready"

    @property
    def key_file(self) -> str:
        """The lab's private key to its guests."""
        return f"{self.folder}/id_ed25519"

    def host_key_file(self, host: str) -> str:
        return f"{self.host_folder(host)}/host_key"

    def known_hosts(self, host: str) -> str:
        return f"{self.host_folder(host)}/known_hosts"

    def ssh_config(self, host: str) -> str:
        return f"{self.host_folder(host)}/ssh_config"

    def ssh_script(self, host: str) -> str:
        return f"{self.host_folder(host)}/ssh"

    # -- of systemd-nspawn and systemd

    def machine(self, host: str) -> str:
        """The machine name that systemd-nspawn is given; it takes no underscore."""
        return self.netns(host).replace("_", ".")

    @property
    def unit_prefix(self) -> str:
        return f"{UNIT_PREFIX}{self.lab}-"

    def unit(self, host: str) -> str:
        return f"{self.unit_prefix}{host}.service"

    def cgroup(self, host: str, *, under_systemd: bool) -> str:
        """The host's control group, below the root of the cgroup2 hierarchy."""
        return f"{SLICE}/{self.unit(host)}" if under_systemd else f"{CGROUP_PREFIX}/{self.lab}/{host}"

    @property
    def cgroup_folders(self) -> tuple[str, str]:
        """Where systemd does not run the machine: the groups above the hosts', innermost first."""
        return f"{CGROUP_PREFIX}/{self.lab}", CGROUP_PREFIX

    def hosts_of_cgroups(self, cgroup_root: str, *, under_systemd: bool) -> list[str]:
        """The hosts of this lab that have a control group."""
        if under_systemd:
            found = [
                entry[len(self.unit_prefix) : -len(".service")]
                for entry in _folders(f"{cgroup_root}/{SLICE}")
                if entry.startswith(self.unit_prefix) and entry.endswith(".service")
            ]
        else:
            found = _folders(f"{cgroup_root}/{CGROUP_PREFIX}/{self.lab}")
        return sorted(found)


def _folders(path: str) -> list[str]:
    try:
        with os.scandir(path) as entries:
            return [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    except FileNotFoundError:
        return []
