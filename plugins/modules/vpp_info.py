#!/usr/bin/python
# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: vpp_info
short_description: Read what a running VPP is and has
version_added: 0.1.0
description:
  - Version and build, threads with their CPUs, plugins, interfaces, buffers and memory of a running VPP.
  - Warns when the VPP that runs is not the one that is installed.
extends_documentation_fragment:
  - fastpath.bench.vpp
  - fastpath.bench.vpp.read_only
author:
  - fastpath.bench contributors (@fastpath)
options:
  subsets:
    description: What to read.
    type: list
    elements: str
    choices: [version, threads, plugins, interfaces, buffers, memory]
    default: [version, threads, plugins, interfaces, buffers, memory]
seealso:
  - module: fastpath.bench.vpp_runtime
  - module: fastpath.bench.vpp_interface
"""

EXAMPLES = r"""
- name: See whether VPP runs, and which
  fastpath.bench.vpp_info:
    subsets: [version, threads]
  register: vpp
"""

RETURN = r"""
vpp:
  description: What was read, one entry for each of O(subsets).
  returned: success
  type: dict
  contains:
    version:
      description: The program.
      type: dict
      contains:
        version:
          description: Version as VPP says it.
          type: str
          sample: 26.06-release
        build_date:
          description: When it was built.
          type: str
        build_directory:
          description: Where it was built.
          type: str
        pid:
          description: Its process, when that can be seen.
          type: int
        binary:
          description: The program file, when that can be seen.
          type: str
        installed_version:
          description: Version of the installed package C(vpp), if there is one.
          type: str
        conflict:
          description: A sentence when another release is installed than runs.
          type: str
    threads:
      description: The threads. C(worker) is the number as VPP's command line counts.
      type: list
      elements: dict
    workers:
      description: How many workers there are.
      type: int
    plugins:
      description: The loaded plugins, each with C(name), C(version) and C(description).
      type: list
      elements: dict
    interfaces:
      description: The interfaces, as M(fastpath.bench.vpp_interface) returns them.
      type: list
      elements: dict
    buffers:
      description: The pools, each with C(name), C(numa), C(size_bytes), C(total), C(available), C(cached) and C(used).
      type: list
      elements: dict
    memory:
      description: The main heap, with C(total_bytes), C(used_bytes), C(free_bytes) and C(page_size).
      type: dict
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.fastpath.bench.plugins.module_utils._vpp import info
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.options import connection_spec, failing, session_of


def argument_spec() -> dict[str, t.Any]:
    subsets = list(info.SUBSETS)
    return {
        **connection_spec(),
        "subsets": {"type": "list", "elements": "str", "choices": subsets, "default": subsets},
    }


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    with failing(module):
        with session_of(module) as session:
            vpp = info.read(session, module.params["subsets"])
        conflict = vpp.get("version", {}).get("conflict")
        if conflict:
            module.warn(conflict)
        module.exit_json(changed=False, vpp=vpp)


if __name__ == "__main__":
    main()
