# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keeps a run's description on the controller up to date."""

from __future__ import annotations

import pathlib
import typing as t

from ansible.plugins.action import ActionBase
from ansible.release import __version__ as ansible_version

from ansible_collections.fastpath.bench.plugins.module_utils._bench import run as bench_run
from ansible_collections.fastpath.bench.plugins.module_utils._bench.store import RunStore
from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError

COLLECTION = pathlib.Path(__file__).resolve().parents[2]


class ActionModule(ActionBase):
    _requires_connection = False
    TRANSFERS_FILES = False

    def run(self, tmp: t.Any = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        result: dict[str, t.Any] = super().run(tmp, task_vars)
        _dummy, args = self.validate_argument_spec(
            argument_spec={
                "state": {"type": "str", "choices": ["started", "finished", "withdrawn"], "required": True},
                "results_dir": {"type": "str", "required": True},
                "run_id": {"type": "str", "required": True},
                "fingerprints": {"type": "dict", "default": {}},
                "after": {"type": "dict", "default": {}},
                "abandon": {"type": "list", "elements": "str", "default": []},
                "left": {"type": "list", "elements": "str", "default": []},
            },
        )
        if self._task.check_mode:
            result.update(skipped=True, msg="no run is written in check mode")
            return result
        try:
            store = RunStore.open(args["results_dir"], args["run_id"])
            if args["state"] == "started":
                bench_run.update_run(
                    store,
                    fingerprints={h: f for h, f in args["fingerprints"].items() if f},
                    versions=bench_run.versions(COLLECTION, ansible_version),
                )
                bench_run.abandon(args["results_dir"], args["abandon"])
            elif args["state"] == "withdrawn":
                result["removed"] = bench_run.withdraw(store)
            else:
                result["harness"] = bench_run.finish_session(store, args["left"], args["after"])
        except BenchError as error:
            result.update(failed=True, **error.as_result())
            return result
        result["changed"] = True
        return result
