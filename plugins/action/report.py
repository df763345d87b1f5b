# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes the report of a run on the controller, and prints what it says."""

from __future__ import annotations

import typing as t

from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from ansible_collections.fastpath.bench.plugins.module_utils._bench.report import Report, make_report
from ansible_collections.fastpath.bench.plugins.module_utils._bench.report.verdict import counts
from ansible_collections.fastpath.bench.plugins.module_utils._bench.store import RunStore
from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError

display = Display()


class ActionModule(ActionBase):
    _requires_connection = False
    TRANSFERS_FILES = False

    def run(self, tmp: t.Any = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        result: dict[str, t.Any] = super().run(tmp, task_vars)
        _dummy, args = self.validate_argument_spec(
            argument_spec={
                "results_dir": {"type": "path", "required": True},
                "run_id": {"type": "str", "default": "latest"},
                "charts": {"type": "bool", "default": True},
                "show": {"type": "bool", "default": True},
            },
        )
        try:
            store = RunStore.open(args["results_dir"], args["run_id"])
            report = make_report(store, with_charts=args["charts"], write=not self._task.check_mode)
        except BenchError as error:
            result.update(failed=True, **error.as_result())
            return result
        if args["show"]:
            # Not by the result: a callback would break the table's lines.
            display.display("\n".join(_shown(report)))
        result.update(
            changed=bool(report.changed),
            run_id=store.run_id,
            files=report.files,
            updated=report.changed,
            verdict=report.verdict,
            table=report.table,
            comparisons=report.comparisons,
            states=counts(report.summary),
            findings=[
                {key: value for key, value in noticed.as_dict().items() if key != "points"}
                for noticed in report.summary.noticed
            ],
            harness=report.summary.harness,
        )
        return result


def _shown(report: Report) -> list[str]:
    return ["", *report.verdict, "", *report.table, "", *report.comparisons, "", f"report: {report.files['html']}", ""]
