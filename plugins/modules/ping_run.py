#!/usr/bin/python
# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: ping_run
short_description: Measure round-trip times with ping
version_added: 0.1.0
description:
  - Runs C(ping) of iputils once and returns its shortest, mean and longest time, their deviation, and what was lost.
  - When nothing comes back the times are null, never 0, and RV(ping.status) is V(failed); the task itself fails only
    when ping could not run.
attributes:
  check_mode:
    support: full
    description: The options are checked, nothing is sent, and RV(ping) is null.
  diff_mode:
    support: none
    description: It changes nothing on the host.
author:
  - fastpath.bench contributors (@fastpath)
options:
  address:
    description: The address to ping, IPv4 or IPv6.
    type: str
    required: true
  count:
    description: How many packets to send.
    type: int
    default: 200
  interval_s:
    description:
      - Seconds between two packets. A longer reply than that does not hold up the next packet. Less than 0.002 needs
        root, with older iputils less than 0.2.
    type: float
    default: 0.01
  size_bytes:
    description: Bytes of one packet's payload, at least the 16 that its time stamp takes.
    type: int
    default: 56
  bind:
    description: Address or interface on the host to send from.
    type: str
  reply_timeout_s:
    description: How long to wait for replies after the last packet was sent.
    type: float
    default: 1.0
  time_limit_s:
    description: Seconds that ping may take beyond its packets. Then it is ended and the task fails.
    type: float
    default: 15.0
notes:
  - Other programs named ping print another summary and are refused.
"""

EXAMPLES = r"""
- name: Measure the round trip through a router
  fastpath.bench.ping_run:
    address: 192.0.2.10
    count: 200
  register: measured

- name: Show the mean
  ansible.builtin.debug:
    msg: "{{ measured.ping.mean_ms }} ms"
"""

RETURN = r"""
ping:
  description: What was found, null in check mode.
  returned: success
  type: dict
  contains:
    status:
      description: V(ok), or V(failed) when nothing came back.
      type: str
    code:
      description: V(no_reply) when nothing came back, otherwise null.
      type: str
    reason:
      description: The same in words.
      type: str
    started:
      description: When ping was started, seconds since the epoch on the host's clock.
      type: float
    ended:
      description: When it had ended.
      type: float
    transmitted:
      description: Packets sent.
      type: int
    received:
      description: Packets that were answered.
      type: int
    duplicates:
      description: Replies beyond the first to a packet.
      type: int
    errors:
      description: Packets that someone answered with an error, such as that the host is unreachable.
      type: int
    loss_ratio:
      description: The part of the packets that was not answered.
      type: float
    min_ms:
      description: The shortest time, null when nothing came back.
      type: float
    mean_ms:
      description: The mean time.
      type: float
    max_ms:
      description: The longest time.
      type: float
    mdev_ms:
      description: The standard deviation as ping computes it.
      type: float
    command:
      description: What was run.
      type: list
      elements: str
    raw:
      description: What ping printed.
      type: str
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._traffic import ping


def argument_spec() -> dict[str, t.Any]:
    return {
        "address": {"type": "str", "required": True},
        "count": {"type": "int", "default": 200},
        "interval_s": {"type": "float", "default": 0.01},
        "size_bytes": {"type": "int", "default": 56},
        "bind": {"type": "str"},
        "reply_timeout_s": {"type": "float", "default": 1.0},
        "time_limit_s": {"type": "float", "default": 15.0},
    }


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    wish = ping.Wish(**module.params)
    try:
        wish.check()
        result = None if module.check_mode else ping.measure(wish)
    except BenchError as error:
        module.fail_json(**error.as_result())
    module.exit_json(changed=False, ping=result)


if __name__ == "__main__":
    main()
