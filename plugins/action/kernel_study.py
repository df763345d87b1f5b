# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plans the study of one kernel on two kinds of machines, and reports it; on the controller."""

from __future__ import annotations

import typing as t

from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from ansible_collections.fastpath.bench.plugins.module_utils._bench import study
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
        _dummy, args = self.validate_argument_spec(
            argument_spec={
                "state": {"type": "str", "choices": ["planned", "reported"], "required": True},
                "kinds": {"type": "dict", "required": True},
                "powers": {"type": "list", "elements": "str", "default": ["dynamic", "static_high"]},
                "interfaces": {"type": "dict", "default": {}},
                "repeats": {"type": "int", "default": 3},
                "mtu_bytes": {"type": "int", "default": 1500},
                "results_dir": {"type": "path"},
                "run_id": {"type": "str", "default": "latest"},
                "reference": {"type": "dict", "default": {}},
            },
            required_if=[("state", "reported", ["results_dir"])],
        )
        try:
            kinds = study.kinds_of(args["kinds"])
            reference = study.reference_of(args["reference"])
            if args["state"] == "planned":
                result["overrides"] = study.overrides(
                    kinds, args["interfaces"], args["powers"], repeats=args["repeats"], mtu_bytes=args["mtu_bytes"]
                )
                return result
            store = RunStore.open(args["results_dir"], args["run_id"])
            made = study.study_of(summarise_run(store), kinds, args["powers"], reference)
            result.update(self._write(store, made))
        except BenchError as error:
            result.update(failed=True, **error.as_result())
            return result
        # not by the result: a callback would break the lines
        display.display("\n".join(["", *made.sentences, "", f"study: {result['files']['markdown']}", ""]))
        result.update(run_id=store.run_id, sentences=made.sentences)
        return result

    def _write(self, store: RunStore, made: study.Study) -> dict[str, t.Any]:
        contents = {
            "markdown": ("study.md", study.markdown(made).encode("utf-8", "replace")),
            "json": ("study.json", encode(made.as_dict())),
        }
        files, changed = {}, False
        for kind, (name, content) in contents.items():
            path = store.path / name
            files[kind] = str(path)
            if path.is_file() and path.read_bytes() == content:
                continue
            changed = True
            if not self._task.check_mode:
                with explained(path):
                    replace_file(path, content)
        return {"files": files, "changed": changed}
