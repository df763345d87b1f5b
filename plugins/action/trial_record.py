# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes the trials of a batch to the run's folder on the controller."""

from __future__ import annotations

import contextlib
import typing as t

from ansible.plugins.action import ActionBase

from ansible_collections.fastpath.bench.plugins.module_utils._bench.findings import assess
from ansible_collections.fastpath.bench.plugins.module_utils._bench.merge import merge, raw_files
from ansible_collections.fastpath.bench.plugins.module_utils._bench.power import trial_power
from ansible_collections.fastpath.bench.plugins.module_utils._bench.store import RunStore
from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError


class ActionModule(ActionBase):
    _requires_connection = False
    TRANSFERS_FILES = False

    def run(self, tmp: t.Any = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        result: dict[str, t.Any] = super().run(tmp, task_vars)
        _dummy, args = self.validate_argument_spec(
            argument_spec={
                "results_dir": {"type": "str", "required": True},
                "run_id": {"type": "str", "required": True},
                "group": {"type": "dict", "required": True},
                "trials": {"type": "list", "elements": "dict", "required": True},
                "headlines": {"type": "dict", "required": True},
                "records": {"type": "list", "elements": "dict", "default": []},
                "reports": {"type": "dict", "default": {}},
                "samples": {"type": "dict", "default": {}},
                "power": {"type": "dict", "default": {}},
                "about": {"type": "dict", "default": {}},
            },
        )
        if self._task.check_mode:
            result.update(skipped=True, msg="nothing is measured in check mode")
            return result
        counts = {"ok": 0, "failed": 0, "invalid": 0, "skipped": 0}
        try:
            store = RunStore.open(args["results_dir"], args["run_id"])
            context = store.read_run()
            records = {record["id"]: record for record in args["records"]}
            for trial in args["trials"]:
                record = records.get(trial["id"])
                if record is not None:
                    counts[self._store(store, context, args, trial, record)] += 1
        except BenchError as error:
            result.update(failed=True, **error.as_result())
            return result
        result.update(changed=bool(records), counts=counts)
        return result

    @staticmethod
    def _store(
        store: RunStore,
        context: dict[str, t.Any],
        args: dict[str, t.Any],
        trial: dict[str, t.Any],
        record: dict[str, t.Any],
    ) -> str:
        group = args["group"]
        report = args["reports"].get(str(trial.get("instance")))
        point = context["points"][trial["point_id"]]["point"]
        merged = merge(
            trial,
            record,
            report,
            testbed=group["testbed"],
            point=point,
            headline=args["headlines"][trial["point_id"]],
            samples={host: windows.get(trial["id"]) for host, windows in args["samples"].items() if windows},
            duts=group["duts"],
        )
        for host, about in args["about"].items():
            # beside what was sampled, what the datapath tells of itself
            if merged["dut"].get(host):
                merged["dut"][host] = {**merged["dut"][host], **about}
        merged["setup"] = group["id"]
        seen = {**merged["dut"], **merged["endpoints"]}
        samples = {host: (sample or {}).get("power") for host, sample in seen.items()}
        merged["power"] = trial_power(group.get("power"), args["power"], samples)
        assessment = assess(merged)
        merged.update(
            status=assessment.status,
            code=assessment.code,
            reason=assessment.reason,
            findings=[finding.as_dict() for finding in assessment.findings],
        )
        merged["raw"] = [store.write_raw(name, text) for name, text in raw_files(trial, record, report).items()]
        store.write_trial(merged)
        with contextlib.suppress(FileNotFoundError):
            (store.spool / f"{trial['id']}.json").unlink()
        return str(merged["status"])
