# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plans a run on the controller. No host is touched: it only reads their variables."""

from __future__ import annotations

import collections
import typing as t

from ansible.plugins.action import ActionBase

from ansible_collections.fastpath.bench.plugins.module_utils._bench.catalog import catalog_of
from ansible_collections.fastpath.bench.plugins.module_utils._bench.plan import Testbed, plan_testbed
from ansible_collections.fastpath.bench.plugins.module_utils._bench.run import (
    dead_runs,
    describe,
    left_datapaths,
    open_run,
    plan_result,
)
from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.plugin_utils.checks import AnsibleChecks


class ActionModule(ActionBase):
    _requires_connection = False
    TRANSFERS_FILES = False

    def run(self, tmp: t.Any = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        result: dict[str, t.Any] = super().run(tmp, task_vars)
        task_vars = task_vars or {}
        _dummy, args = self.validate_argument_spec(
            argument_spec={
                "state": {"type": "str", "choices": ["planned", "created"], "default": "planned"},
                "hosts": {"type": "list", "elements": "str", "required": True},
                "shipped": {"type": "dict", "default": {}},
                "overrides": {"type": "dict", "default": {}},
                "results_dir": {"type": "str", "required": True},
                "run_id": {"type": "str"},
            },
        )
        try:
            testbeds = self._testbeds(args["hosts"], args["shipped"], args["overrides"], task_vars)
            run = open_run(
                testbeds,
                results_dir=args["results_dir"],
                run_id=args["run_id"] or None,
                create=args["state"] == "created" and not self._task.check_mode,
            )
        except BenchError as error:
            result.update(failed=True, **error.as_result())
            return result
        result.update(changed=run.created, **plan_result(run))
        result["lines"] = describe(run)
        result["dead_runs"] = dead_runs(args["results_dir"], but=run.run_id)
        own = [run.run_id] if run.resumed and (run.trials or run.unfinished) else []
        result["left_datapaths"] = left_datapaths(args["results_dir"], [*result["dead_runs"], *own])
        return result

    def _testbeds(
        self,
        hosts: list[str],
        shipped: dict[str, t.Any],
        overrides: dict[str, t.Any],
        task_vars: dict[str, t.Any],
    ) -> list[Testbed]:
        members: dict[str, list[str]] = {}
        hostvars = task_vars["hostvars"]
        for host in hosts:
            name = hostvars[host].get("bench_testbed", "testbed")
            # a number is a name too
            if isinstance(name, bool) or not isinstance(name, (str, int)) or not str(name).strip():
                raise BenchError(
                    f"bench_testbed cannot be {name!r}", where=f"host {host}",
                    remedy="Give the name of the testbed that the host belongs to",
                )  # fmt: skip
            members.setdefault(str(name), []).append(str(host))
        if not members:
            raise BenchError(
                "there is no host to measure with", where="inventory",
                remedy="Put the testbed's hosts in the group bench_testbeds, see docs/matrix.md",
            )
        checks = AnsibleChecks(self._loader, hostvars)
        testbeds = []
        for name, machines in members.items():
            variables = collections.ChainMap(overrides, hostvars[machines[0]])
            matrix = variables.get("bench_matrix")
            if matrix is None:
                raise BenchError(
                    "bench_matrix is not defined", where=f"testbed {name}",
                    remedy="Define it in the inventory's group_vars or with -e @file, see docs/matrix.md",
                )
            testbeds.append(plan_testbed(name, machines, matrix, catalog_of(variables, shipped), checks))
        return testbeds
