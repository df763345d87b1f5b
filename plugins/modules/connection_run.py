#!/usr/bin/python
# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: connection_run
short_description: Open a TCP connection for each request, as many as can be
version_added: 0.1.0
description:
  - Runs trials with C(ab) of the Apache project one after the other in one call. Each request has a connection of its
    own, which is what limits a NAT or a firewall.
  - What counts is what M(fastpath.bench.connection_server) at the far end has counted. C(ab) itself tells thousands of
    requests a second also when each connection was refused.
  - The server closes first, so that the client's ports are free again at once. After some 28000 connections they come
    again, so a NAT has fewer sessions than there were connections.
  - A trial that fails is a record with its reason and does not stop the others.
author:
  - fastpath.bench contributors (@fastpath)
options:
  trials:
    description:
      - The trials.
    type: list
    elements: dict
    required: true
    suboptions:
      id:
        description:
          - Name of the trial, also of its file in O(spool_dir).
        type: str
        required: true
      server:
        description:
          - Address of the server.
        type: str
      port:
        description:
          - Port of the server.
        type: int
      bind:
        description:
          - Address of this host that the connections come from. Without it, the kernel's choice.
        type: str
      direction:
        description:
          - From the client to the server.
        type: str
        choices: [forward]
        default: forward
      parallel:
        description:
          - Connections that are under way at the same time.
        type: int
        default: 32
      requests:
        description:
          - End after so many. Without it, after O(trials[].duration_s).
        type: int
      duration_s:
        description:
          - Seconds that count, at most; whole ones.
        type: float
        default: 10.0
      warmup_s:
        description:
          - Seconds of the same before those that count.
        type: float
        default: 0.0
      interval_s:
        description:
          - Taken for the sake of other generators.
        type: float
        default: 0.5
  spool_dir:
    description:
      - Folder on the host where each trial is written as C(<id>.json) as soon as it is finished.
    type: path
  time_limit_s:
    description:
      - Taken for the sake of other generators. Each wait has a limit of its own.
    type: float
    default: 60.0
attributes:
  check_mode:
    description: The options are checked; no traffic is sent and RV(trials) is empty.
    support: full
  diff_mode:
    description: It changes nothing on the host.
    support: none
requirements:
  - ab (package apache2-utils or httpd-tools)
notes:
  - Each question for the server's counts is one connection more, which a NAT on the way keeps too.
seealso:
  - module: fastpath.bench.connection_server
  - module: fastpath.bench.flow_run
"""

EXAMPLES = r"""
- name: Connections for ten seconds
  fastpath.bench.connection_run:
    trials:
      - id: connections
        server: 192.0.2.10
        port: 20001
        parallel: 64
"""

RETURN = r"""
trials:
  description:
    - One record for each trial, in the form of M(fastpath.bench.iperf_run), with C(metrics), C(counts), C(findings).
  returned: success
  type: list
  elements: dict
  contains:
    id:
      description: Name of the trial.
      type: str
    status:
      description: V(ok) or V(failed).
      type: str
    code:
      description: Why it is not ok, such as V(no_connection), V(answers_over_connections), V(server_silent).
      type: str
    reason:
      description: The same in words, with what to do.
      type: str
    metrics:
      description:
        - C(connection_rate_forward) (connections that the server answered each second), C(request_rate_forward) and
          C(answer_rate_forward) as ab has them, C(connections_failed_forward), C(connect_time_forward).
      type: dict
    counts:
      description: C(forward) with C(accepted) and C(answered), as the server counted them.
      type: dict
    findings:
      description: What was noticed. Codes are V(generator_limited) and V(connections_failed).
      type: list
      elements: dict
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._traffic import connection_run, planned, runner


def argument_spec() -> dict[str, t.Any]:
    return {
        "trials": {
            "type": "list",
            "elements": "dict",
            "required": True,
            "options": {"id": {"type": "str", "required": True}, **connection_run.trial_spec()},
        },
        "spool_dir": {"type": "path"},
        "time_limit_s": {"type": "float", "default": 60.0},
    }


def check_trial(trial: t.Mapping[str, t.Any], headline: str) -> None:
    """Called where a matrix is planned, on the controller: what this module would refuse later.

    :raises BenchError: an option is wrong, or the headline is none that such a trial has.
    """
    values = planned.checked_options(trial, connection_run.trial_spec(), "connection_run")
    # where it goes is settled by the plan
    connection_run.trial_from({**values, "port": 1, "server": values["server"] or "192.0.2.1"}, "checked")
    planned.counts(headline, connection_run.metric_names(), "a connection for each request")


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    runner.stop_on_signal()
    try:
        # all are checked before the first one runs
        trials = planned.unique(connection_run.trial_from(item, item["id"]) for item in module.params["trials"])
        records: list[dict[str, t.Any]] = []
        if not module.check_mode:
            records = connection_run.run_trials(trials, spool_dir=module.params["spool_dir"])
    except BenchError as err:
        module.fail_json(**err.as_result())
    module.exit_json(changed=False, trials=records)


if __name__ == "__main__":
    main()
