# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plans the ladder of IPsec tuning, and reports it; on the controller."""

from __future__ import annotations

import typing as t

from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from ansible_collections.fastpath.bench.plugins.module_utils._bench import ladder
from ansible_collections.fastpath.bench.plugins.module_utils._bench.store import (
    RunStore,
    encode,
    explained,
)
from ansible_collections.fastpath.bench.plugins.module_utils._bench.summary import summarise_run
from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._common.files import replace_file

display = Display()


class ActionModule(ActionBase):
    _requires_connection = False
    TRANSFERS_FILES = False

    def run(self, tmp: t.Any = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        result: dict[str, t.Any] = super().run(tmp, task_vars)
        del tmp
        _dummy, args = self.validate_argument_spec(
            argument_spec={
                "state": {"type": "str", "choices": ["planned", "reported"], "required": True},
                "topologies": {"type": "dict", "required": True},
                "topology": {"type": "str", "required": True},
                "traffic": {"type": "str", "default": "tcp_large"},
                "direction": {"type": "str", "default": "forward"},
                "repeats": {"type": "int", "default": 3},
                "order": {"type": "str", "choices": ["interleaved", "spread"], "default": "interleaved"},
                "rps": {"type": "str", "default": ""},
                "powers": {"type": "dict", "default": {}},
                "skip": {"type": "dict", "default": {}},
                "results_dir": {"type": "path"},
                "run_id": {"type": "str", "default": "latest"},
            },
            required_if=[("state", "reported", ["results_dir"])],
        )
        names = ("topology", "traffic", "direction", "repeats", "order", "rps", "powers", "skip")
        asked = ladder.Asked(**{name: args[name] for name in names})
        try:
            if args["state"] == "planned":
                result.update(
                    overrides=ladder.overrides(asked, args["topologies"]),
                    skipped=ladder.skipped(asked, args["topologies"]),
                )
                return result
            store = RunStore.open(args["results_dir"], args["run_id"])
            left_out = ladder.skipped(asked, args["topologies"])
            told = ladder.told_of(trial for trial in store.trials() if isinstance(trial, dict))
            rungs = ladder.ladder_of(summarise_run(store), left_out, told)
            result.update(self._write(store, rungs))
        except BenchError as error:
            result.update(failed=True, **error.as_result())
            return result
        # not by the result: a callback would break the lines
        display.display("\n" + ladder.markdown(store.run_id, rungs))
        result.update(run_id=store.run_id, steps=[rung.as_dict() for rung in rungs])
        return result

    def _write(self, store: RunStore, rungs: list[ladder.Rung]) -> dict[str, t.Any]:
        document = {"schema": ladder.SCHEMA, "run_id": store.run_id, "steps": [rung.as_dict() for rung in rungs]}
        contents = {
            "ladder.md": ladder.markdown(store.run_id, rungs).encode("utf-8", "replace"),
            "ladder.json": encode(document),
        }
        files, changed = {}, False
        for name, content in contents.items():
            path = store.path / name
            files[name] = str(path)
            if path.is_file() and path.read_bytes() == content:
                continue
            changed = True
            if not self._task.check_mode:
                with explained(path):
                    replace_file(path, content)
        return {"files": files, "changed": changed}
