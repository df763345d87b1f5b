#!/usr/bin/python
# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: vpp_startup
short_description: Write VPP's startup.conf after it was judged against the host
version_added: 0.1.0
description:
  - Renders C(startup.conf) from options, and refuses what VPP would not start with on this host while the old file
    still stands. Cores must exist, be in the CPU set of the service and not be used twice; heap and buffers must fit
    the memory and the free huge pages of their size; plugins and the group must be there.
  - Does not restart VPP. RV(restart_needed) says whether VPP runs with an older file, also when an earlier run was
    broken off before its restart.
  - The file that was found at the first change is kept, and O(state=restored) puts it back.
attributes:
  check_mode:
    support: full
    description: The file is judged and not written. A group or program that an earlier task would bring may be missing.
  diff_mode:
    support: full
    description: The file before and after.
author:
  - fastpath.bench contributors (@fastpath)
options:
  state:
    description: V(present) writes the file, V(restored) puts back the one that was found, or none.
    type: str
    choices: [present, restored]
    default: present
  path:
    description: The file.
    type: path
    default: /etc/vpp/startup.conf
  vpp_bin:
    description: The program C(vpp), or the folder it is in. Without it, it is looked for.
    type: path
  unit:
    description: The systemd unit that VPP runs as, whose CPU set and memory limit count.
    type: str
    default: vpp.service
  main_core:
    description: CPU of the main thread.
    type: int
  workers:
    description: Number of workers; VPP chooses their CPUs. Not with O(corelist_workers).
    type: int
  corelist_workers:
    description: CPUs of the workers, such as V(2-4,6). Needs O(main_core).
    type: str
  skip_cores:
    description: How many CPUs, from the first, VPP does not use. Needs O(main_core).
    type: int
  main_heap_size:
    description: Size of the main heap, such as V(512M). VPP takes 1G.
    type: str
  main_heap_page_size:
    description: Size of its pages, V(4K), V(2M), V(1G), V(default) or V(default-hugepage).
    type: str
  default_hugepage_size:
    description:
      - The size of huge pages that VPP takes. Written by itself when O(main_heap_page_size) or O(buffers_page_size) is
        not the kernel's default.
    type: str
  buffers_per_numa:
    description: Number of buffers for each NUMA node. VPP takes 16384.
    type: int
  buffer_data_size:
    description: Bytes of data in a buffer. VPP takes 2048.
    type: int
  buffers_page_size:
    description: Size of the pages of the buffers. VPP takes huge pages when there are any.
    type: str
  statseg_size:
    description: Size of the statistics segment.
    type: str
    default: 32M
  per_node_counters:
    description: Whether calls, vectors and clocks by node are in the statistics segment.
    type: bool
    default: true
  stats_update_interval_s:
    description:
      - How often they are renewed. VPP's own 10 seconds are longer than most trials. Each time costs the main thread
        about 2 ms.
    type: float
    default: 0.5
  plugins_default:
    description: Whether plugins that are not named are loaded. VPP decides for each without it.
    type: str
    choices: [enable, disable]
  plugins_enabled:
    description: Plugins to load, such as V(linux_cp) or V(linux_cp_plugin.so). Each must be there.
    type: list
    elements: str
    default: []
  plugins_disabled:
    description: Plugins not to load.
    type: list
    elements: str
    default: []
  plugin_path:
    description: Folder of the plugins, for an installation where VPP does not find them.
    type: path
  group:
    description: The group that may use VPP's sockets. It must exist.
    type: str
    default: vpp
  log_file:
    description: VPP's log.
    type: path
    default: /var/log/vpp/vpp.log
  runtime_dir:
    description: Folder of VPP's sockets.
    type: path
    default: /run/vpp
  cli_socket:
    description: Socket of the command line.
    type: path
    default: /run/vpp/cli.sock
  api_socket:
    description: Socket of the binary API.
    type: path
    default: /run/vpp/api.sock
  stats_socket:
    description: Socket of the statistics segment.
    type: path
    default: /run/vpp/stats.sock
  api_prefix:
    description: Prefix of VPP's shared memory. Needed when several VPP share a C(/dev/shm).
    type: str
  startup_script:
    description: File with commands that VPP runs at its start.
    type: path
  poll_sleep_usec:
    description: Sleep so long between two polls. Saves CPU and costs throughput; for a machine that VPP shares.
    type: int
  extra:
    description:
      - Further sections, as they are. VPP joins sections of one name.
      - What has an option of its own here is refused in them.
    type: str
    default: ""
  planned:
    description: The interfaces that VPP shall get, to see whether buffers and memory are enough for them.
    type: dict
    suboptions:
      interfaces:
        description: How many.
        type: int
        required: true
      rx_queues:
        description: Receive queues of each.
        type: int
        default: 1
      tx_queues:
        description: Transmit queues of each.
        type: int
        default: 1
      kind:
        description: Their kind. The rings of af_packet take 66 MiB for each transmit queue, 10 for each receive queue.
        type: str
        choices: [af_packet, hardware]
        default: af_packet
"""

EXAMPLES = r"""
- name: One main thread and four workers
  fastpath.bench.vpp_startup:
    main_core: 0
    corelist_workers: 1-4
    main_heap_size: 1G
    buffers_per_numa: 65536
    plugins_disabled: [dpdk]
    planned:
      interfaces: 2
      rx_queues: 4
      tx_queues: 4
  register: startup

- name: Restart VPP when it is needed
  ansible.builtin.systemd_service:
    name: vpp
    state: restarted
  when: startup.restart_needed
"""

RETURN = r"""
path:
  description: The file.
  returned: success
  type: str
program:
  description: The program C(vpp) that was found; null in check mode when there is none yet.
  returned: success
  type: str
restart_needed:
  description: Whether VPP does not run, or runs with an older file.
  returned: success
  type: bool
restart_reason:
  description: Why, null when it need not be restarted.
  returned: success
  type: str
papi:
  description: Whether this host's Python has the package C(vpp_papi).
  returned: success
  type: bool
findings:
  description: What one should know, each with C(code), C(severity), C(evidence) and C(remedy).
  returned: success
  type: list
  elements: dict
"""

import dataclasses
import typing as t

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._vpp import startup, startup_host

_HEAD = "Written by the Ansible module fastpath.bench.vpp_startup; changes made here are lost."


def argument_spec() -> dict[str, t.Any]:
    return {
        "state": {"type": "str", "choices": ["present", "restored"], "default": "present"},
        "path": {"type": "path", "default": "/etc/vpp/startup.conf"},
        "vpp_bin": {"type": "path"},
        "unit": {"type": "str", "default": "vpp.service"},
        "main_core": {"type": "int"},
        "workers": {"type": "int"},
        "corelist_workers": {"type": "str"},
        "skip_cores": {"type": "int"},
        "main_heap_size": {"type": "str"},
        "main_heap_page_size": {"type": "str"},
        "default_hugepage_size": {"type": "str"},
        "buffers_per_numa": {"type": "int"},
        "buffer_data_size": {"type": "int"},
        "buffers_page_size": {"type": "str"},
        "statseg_size": {"type": "str", "default": "32M"},
        "per_node_counters": {"type": "bool", "default": True},
        "stats_update_interval_s": {"type": "float", "default": 0.5},
        "plugins_default": {"type": "str", "choices": ["enable", "disable"]},
        "plugins_enabled": {"type": "list", "elements": "str", "default": []},
        "plugins_disabled": {"type": "list", "elements": "str", "default": []},
        "plugin_path": {"type": "path"},
        "group": {"type": "str", "default": "vpp"},
        "log_file": {"type": "path", "default": "/var/log/vpp/vpp.log"},
        "runtime_dir": {"type": "path", "default": "/run/vpp"},
        "cli_socket": {"type": "path", "default": "/run/vpp/cli.sock"},
        "api_socket": {"type": "path", "default": "/run/vpp/api.sock"},
        "stats_socket": {"type": "path", "default": "/run/vpp/stats.sock"},
        "api_prefix": {"type": "str"},
        "startup_script": {"type": "path"},
        "poll_sleep_usec": {"type": "int"},
        "extra": {"type": "str", "default": ""},
        "planned": {
            "type": "dict",
            "options": {
                "interfaces": {"type": "int", "required": True},
                "rx_queues": {"type": "int", "default": 1},
                "tx_queues": {"type": "int", "default": 1},
                "kind": {"type": "str", "choices": ["af_packet", "hardware"], "default": "af_packet"},
            },
        },
    }


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    params = module.params
    try:
        if params["state"] == "restored":
            result = startup_host.restore(params["path"], check_mode=module.check_mode)
        else:
            values: dict[str, t.Any] = {
                field.name: tuple(params[field.name]) if isinstance(params[field.name], list) else params[field.name]
                for field in dataclasses.fields(startup.Startup)
            }
            result = startup_host.ensure(
                startup.Startup(**values),
                params["path"],
                vpp_bin=params["vpp_bin"],
                unit=params["unit"],
                planned=startup.Planned(**params["planned"]) if params["planned"] else None,
                head=_HEAD,
                check_mode=module.check_mode,
            )
    except BenchError as error:
        module.fail_json(**error.as_result())
    for finding in result.findings:
        if finding["severity"] != "info":
            module.warn(f"{finding['evidence']}. {finding['remedy']}.")
    module.exit_json(**result.as_result())


if __name__ == "__main__":
    main()
