#!/usr/bin/python
# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: clock_offset
short_description: Measure how far a host's clock is from the controller's
version_added: 0.1.0
description:
  - Reads the host's clock a few times over Ansible's own connection, and takes the reading with the shortest round
    trip.
  - The clock was read at an unknown moment within that round trip, so the true offset lies within RV(error_s) of
    the result.
  - Two hosts are compared through the controller. The offset of host A from host B is the difference of both results.
attributes:
  check_mode:
    support: full
    description: It changes nothing, and runs in check mode too.
  diff_mode:
    support: none
    description: It changes nothing.
author:
  - fastpath.bench contributors (@fastpath)
options:
  probes:
    description: How often the clock is read, 1 to 100.
    type: int
    default: 5
notes:
  - This module is an action plugin. What is written here is its documentation.
  - Needs a C(date) on the host that knows nanoseconds, as that of GNU coreutils does.
"""

EXAMPLES = r"""
- name: Measure this host's clock
  fastpath.bench.clock_offset:
  register: clock
"""

RETURN = r"""
offset_s:
  description: The host's clock minus the controller's clock.
  returned: success
  type: float
  sample: -0.000412
error_s:
  description: Half of the shortest round trip. The true offset differs by at most this.
  returned: success
  type: float
  sample: 0.0031
measured:
  description: When the reading was taken, in seconds since the epoch by the controller's clock.
  returned: success
  type: float
  sample: 1796036880.517
probes:
  description: All readings, each with C(offset_s), C(round_trip_s) and C(measured).
  returned: success
  type: list
  elements: dict
"""

from ansible.module_utils.basic import AnsibleModule


def main() -> None:
    """Reached only when the action plugin was passed by."""
    module = AnsibleModule(argument_spec={"probes": {"type": "int", "default": 5}}, supports_check_mode=True)
    module.fail_json(msg="clock_offset works through its action plugin. Use it as a task of a playbook.")


if __name__ == "__main__":
    main()
