#!/usr/bin/python
# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: cpu_power
short_description: Set how fast the CPUs of a Linux host run and how deep they sleep
version_added: 0.1.0
description:
  - Sets governor, energy performance preference, boost, limits of frequency, idle states (C-states) and limits of the
    uncore, in the running system only, through C(/sys/devices/system/cpu). Works with C(intel_pstate) (active and
    passive), C(amd_pstate) (active, passive and guided), C(acpi-cpufreq) and what else uses the kernel's C(cpufreq).
  - What was found is noted in the journal before the first change, and M(fastpath.bench.host_restore) puts it back
    exactly. CPUs that share a clock are written once.
  - Every setting is read back. What this machine does not have (C(absent)), what firmware, hypervisor or a read-only
    system forbids (C(refused)), what the driver does not take (C(unsupported_value)) and what was written and did
    nothing (C(ignored)) are told apart in RV(settings), and never counted as done.
  - A virtual machine mostly has no lever at all. The module then changes nothing, returns RV(unsupported=true) and says
    in RV(reason) where the lever is.
  - In check mode it is looked at whether each file is there, knows the value and could be written by this user. What
    only a write shows is not known then and stays C(would_change), firmware that forbids it, a driver that is busy or
    that takes the value and ignores it, so the call in earnest may tell of more that could not be had.
  - Without any setting the module only looks.
extends_documentation_fragment:
  - fastpath.bench.host_state
  - fastpath.bench.host_state.attributes
author:
  - fastpath.bench contributors (@fastpath)
options:
  profile:
    description: Name of the set of settings, for RV(power) and what is made of it. It changes nothing.
    type: str
  governor:
    description: What chooses the frequency, such as V(performance), V(powersave), V(schedutil) or V(ondemand).
    type: str
  energy_performance_preference:
    description:
      - What a CPU that chooses its frequency by itself leans to, such as V(performance), V(balance_performance),
        V(balance_power) or V(power).
      - C(intel_pstate) and C(amd_pstate) in active mode lock it while the governor is V(performance). To ask then for
        anything but V(performance) is an error, and nothing is changed.
    type: str
    aliases: [epp]
  boost:
    description: Whether CPUs may run above their nominal frequency (turbo).
    type: bool
    aliases: [turbo]
  min_frequency:
    description:
      - The lowest frequency, as a number of kHz (V(2400000)), as a percentage of the highest that there is (V(80%)),
        or V(min) or V(max).
    type: str
  max_frequency:
    description: The highest frequency, written as O(min_frequency).
    type: str
  max_exit_latency_us:
    description:
      - Idle states that take longer than this to leave are switched off, all others on. V(0) leaves only polling.
      - Mutually exclusive with O(disabled_idle_states).
    type: int
  disabled_idle_states:
    description:
      - Names of the idle states to switch off, such as V(C6), or V(state2). All others are switched on, so an empty
        list switches all on.
    type: list
    elements: str
  uncore_min_frequency:
    description: As O(min_frequency), for what the cores of a package share. Needs C(intel_uncore_frequency).
    type: str
  uncore_max_frequency:
    description: As O(uncore_min_frequency).
    type: str
  strict:
    description:
      - Whether a setting that cannot be had is an error. Then nothing is changed.
      - Otherwise the rest is set, and what is missing is told in RV(settings) and RV(findings).
    type: bool
    default: false
  stop_owners:
    description:
      - Stop services that set the power too (tuned, power-profiles-daemon, TLP, cpupower, cpufrequtils, auto-cpufreq)
        when they run and something of what is asked can be had. Restoring the host starts them again. Without it they
        are only reported.
    type: bool
    default: false
notes:
  - irqbalance is reported and never stopped by this module.
seealso:
  - module: fastpath.bench.host_restore
"""

EXAMPLES = r"""
- name: As fast as this machine can, all the time
  fastpath.bench.cpu_power:
    part: power_profile
    profile: static_high
    governor: performance
    energy_performance_preference: performance
    boost: true
    min_frequency: max
    max_frequency: max
    max_exit_latency_us: 10
    stop_owners: true
  register: power

- name: Say what could not be had
  ansible.builtin.debug:
    msg: "{{ power.reason }}"
  when: power.reason is not none

- name: Only look
  fastpath.bench.cpu_power:
"""

RETURN = r"""
driver:
  description:
    - C(name) of the driver that scales the frequency, null when there is none; C(mode), V(active), V(passive) or
      V(guided) where the driver has modes; C(policies), the number of groups of CPUs that share a clock.
  returned: success
  type: dict
settings:
  description: What became of each option that asked for something, by its name.
  returned: success
  type: dict
  contains:
    wanted:
      description: As asked.
      type: raw
    status:
      description:
        - V(done), V(already) (it was so), V(would_change) (check mode), V(absent), V(refused), V(unsupported_value) or
          V(ignored).
      type: str
    reason:
      description: Why it is not as asked, null when it is.
      type: str
    remedy:
      description: What to do, null when there is nothing to say.
      type: str
    where:
      description: The policies, CPUs or packages that are not as asked; V(all) for all of them.
      type: str
unsupported:
  description: Whether something was asked for and nothing of it can be had on this machine.
  returned: success
  type: bool
reason:
  description: What could not be had and why, null when all is as asked.
  returned: success
  type: str
owners:
  description: Services that set the power too, and run or start with the machine, with C(unit), C(active), C(enabled).
  returned: success
  type: list
  elements: dict
now:
  description:
    - What the CPUs hold now. For C(governor), C(energy_performance_preference), C(boost), C(min_khz), C(max_khz),
      C(idle_states_off), C(uncore_min_khz) and C(uncore_max_khz), each value with the policies, CPUs or packages that
      have it; null where there is none.
  returned: success
  type: dict
power:
  description:
    - For a trial, C(profile), C(wanted), C(found) (as RV(now)), C(effective) and C(reason).
    - C(effective) is V(false) when something could not be had, and else null, as only a reading under load shows it.
  returned: success
  type: dict
changes:
  description: Each setting that was changed, or in check mode would be; also those that the kernel changed beside it.
  returned: success
  type: list
  elements: dict
  contains:
    kind:
      description: Kind of the setting, such as V(cpufreq.governor).
      type: str
    key:
      description: Which one, such as V(policy0).
      type: str
    before:
      description: C(value), or C(absent) with V(true) when there was none.
      type: dict
    after:
      description: As C(before), read back from the host.
      type: dict
findings:
  description:
    - What one should know. C(code) is V(power_absent), V(power_refused), V(power_unsupported_value), V(power_ignored),
      V(power_owner_active), V(power_owners_unknown), V(irq_owner_active), V(changed_beside) or V(changed_by_others).
  returned: success
  type: list
  elements: dict
  contains:
    code:
      description: A short stable word.
      type: str
    severity:
      description: V(info), V(warning) or V(error).
      type: str
    evidence:
      description: What was seen.
      type: str
    remedy:
      description: What to do.
      type: str
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._host import settings
from ansible_collections.fastpath.bench.plugins.module_utils._host.access import Access
from ansible_collections.fastpath.bench.plugins.module_utils._host.cpu_power import CpuPower


def argument_spec() -> dict[str, t.Any]:
    return {
        **settings.common_spec(),
        "profile": {"type": "str"},
        "governor": {"type": "str"},
        "energy_performance_preference": {"type": "str", "aliases": ["epp"]},
        "boost": {"type": "bool", "aliases": ["turbo"]},
        "min_frequency": {"type": "str"},
        "max_frequency": {"type": "str"},
        "max_exit_latency_us": {"type": "int"},
        "disabled_idle_states": {"type": "list", "elements": "str"},
        "uncore_min_frequency": {"type": "str"},
        "uncore_max_frequency": {"type": "str"},
        "strict": {"type": "bool", "default": False},
        "stop_owners": {"type": "bool", "default": False},
    }


def main() -> None:
    module = AnsibleModule(
        argument_spec=argument_spec(),
        supports_check_mode=True,
        mutually_exclusive=[("max_exit_latency_us", "disabled_idle_states")],
    )
    try:
        call = CpuPower(Access(), module.params, settings.open_journal(module.params))
        result = call.run(check_mode=module.check_mode)
    except BenchError as err:
        module.fail_json(**err.as_result())
    settings.warn_about(module.warn, result["findings"])
    module.exit_json(**result)


if __name__ == "__main__":
    main()
