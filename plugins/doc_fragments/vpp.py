# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations


class ModuleDocFragment:
    """What the modules that talk to VPP share."""

    DOCUMENTATION = r"""
options:
  api_socket:
    description:
      - VPP's API socket, as the section C(socksvr) of its C(startup.conf) has it.
      - Without it, the environment variable E(VPP_API_SOCKET) on the managed host counts.
    type: path
    default: /run/vpp/api.sock
  api_timeout_s:
    description:
      - How long VPP may take for one answer. When it takes longer the module fails with the code V(vpp_hung).
    type: float
    default: 30.0
requirements:
  - A running VPP on the managed host, and a user who may use its API socket (root, or a member of the group C(vpp)).
  - The Python package C(vpp_papi) for the Python that runs the module. FD.io's repository has it as
    C(python3-vpp-api). The definitions of the API are taken from the running VPP.
"""

    ATTRIBUTES = r"""
attributes:
  check_mode:
    support: full
    description: Tells what would change. VPP is read, nothing is written.
  diff_mode:
    support: full
    description: The properties that differ, before and after.
"""

    READ_ONLY = r"""
attributes:
  check_mode:
    support: full
    description: Only reads, so it does the same in check mode.
  diff_mode:
    support: none
    description: Changes nothing, so there is nothing to show.
"""
