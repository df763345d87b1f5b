# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs a batch of trials in one module call on the client, and follows it from the controller.

The generator's module runs in the background there and spools each finished
trial. This side looks when a trial is due, not all the time: on a small
machine each look takes CPU from what is measured.
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import shlex
import signal
import time
import typing as t

from ansible.errors import AnsibleConnectionFailure, AnsibleError
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from ansible_collections.fastpath.bench.plugins.module_utils._bench.follow import (
    Progress,
    failed_record,
    next_look_s,
    read_spool_output,
    spool_command,
)
from ansible_collections.fastpath.bench.plugins.module_utils._bench.plan import TRIAL_LIMIT_S
from ansible_collections.fastpath.bench.plugins.module_utils._bench.store import RunStore
from ansible_collections.fastpath.bench.plugins.module_utils._common.files import replace_file
from ansible_collections.fastpath.bench.plugins.module_utils._common.paths import SPOOL_DIR

display = Display()

#: How long a lost connection to the client is tried again before the batch is given up.
RECONNECT_S = 60.0


@contextlib.contextmanager
def _undisturbed() -> t.Iterator[None]:
    """Let a signal wait. What is shown goes through a queue of Ansible's, and a worker that Ctrl-C ends while it holds
    its lock would leave the main process waiting for ever."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _tell(line: str) -> None:
    with _undisturbed():
        display.display(line)


class ActionModule(ActionBase):
    TRANSFERS_FILES = False
    _supports_check_mode = True
    _supports_async = False

    def run(self, tmp: t.Any = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        result: dict[str, t.Any] = super().run(tmp, task_vars)
        _dummy, args = self.validate_argument_spec(
            argument_spec={
                "batch": {"type": "dict", "required": True},
                "run_id": {"type": "str", "required": True},
                "run_dir": {"type": "str", "required": True},
                "headlines": {"type": "dict", "default": {}},
                "time_limit_s": {"type": "float", "default": TRIAL_LIMIT_S},
                "abort": {"type": "str", "default": ""},
                "abort_status": {"type": "str", "choices": ["failed", "skipped"], "default": "failed"},
                "refused": {"type": "dict", "default": {}},
                "state": {"type": "str", "choices": ["run", "recovered"], "default": "run"},
            },
        )
        batch = args["batch"]
        trials = batch["trials"]
        if args["abort"]:
            result["records"] = [
                {**failed_record(trial, f"setup_{args['abort_status']}", args["abort"]), "status": args["abort_status"]}
                for trial in trials
            ]
            result["windows"] = []
            return result
        if self._task.check_mode:
            result.update(skipped=True, msg="no traffic in check mode", records=[], windows=[])
            return result
        if args["state"] == "recovered":
            found, _ended = self._look(f"{SPOOL_DIR}/{args['run_id']}", [trial["id"] for trial in trials], "/dev/null")
            records = {record["id"]: record for record in found}
        else:
            asked = self._task.async_val
            try:
                records = self._measure(args, batch, trials, task_vars or {})
            finally:
                # the module ran in the background, this task did not
                self._task.async_val = asked
        result["records"] = [records[trial["id"]] for trial in trials if trial["id"] in records]
        result["windows"] = [
            {"id": record["id"], **record["window"]} for record in result["records"] if record.get("window")
        ]
        return result

    # -- the batch ------------------------------------------------------------------------------------------------

    def _measure(
        self,
        args: dict[str, t.Any],
        batch: dict[str, t.Any],
        trials: list[dict[str, t.Any]],
        task_vars: dict[str, t.Any],
    ) -> dict[str, dict[str, t.Any]]:
        spool = f"{SPOOL_DIR}/{args['run_id']}"
        kept = RunStore(pathlib.Path(args["run_dir"])).spool
        progress = Progress(batch, args["headlines"])
        records: dict[str, dict[str, t.Any]] = {}
        for trial in trials:
            refused = args["refused"].get(trial.get("instance"))
            if refused:
                records[trial["id"]] = failed_record(trial, refused["code"], f"server: {refused['reason']}")
                _tell(progress.line(records[trial["id"]]))
        trials = [trial for trial in trials if trial["id"] not in records]
        if not trials:
            return records
        job = self._start(batch["module"], trials, spool, args["time_limit_s"], task_vars)
        problem = str(job.get("msg", "the generator did not start")) if job.get("failed") else ""
        lost_since: float | None = None
        due = time.monotonic()
        deadline = due + self._task.async_val
        while not problem and any(trial["id"] not in records for trial in trials):
            missing = [trial for trial in trials if trial["id"] not in records]
            time.sleep(next_look_s(missing[0], due, time.monotonic()))
            try:
                found, ended = self._look(spool, [trial["id"] for trial in missing], job["results_file"])
            except AnsibleConnectionFailure as error:
                lost_since = lost_since or time.monotonic()
                if time.monotonic() - lost_since > RECONNECT_S:
                    problem = f"the connection to the client was lost: {error}"
                continue
            lost_since = None
            if ended and not found:
                # what could not be spooled (a full disk) is in the module's own answer
                found, problem = self._answer(job, [trial["id"] for trial in missing], task_vars)
            for record in found:
                records[record["id"]] = record
                self._keep(kept, record)
                _tell(progress.line(record))
                due = time.monotonic()
            if not problem and time.monotonic() > deadline:
                problem = "the generator did not end within its time limit"
        for trial in trials:
            if trial["id"] not in records:
                records[trial["id"]] = failed_record(trial, "generator_failed", problem)
                _tell(progress.line(records[trial["id"]]))
        self._clean(job, task_vars)
        return records

    @staticmethod
    def _keep(folder: pathlib.Path, record: dict[str, t.Any]) -> None:
        """What is here cannot be lost with the client any more. A full disk is no reason to stop measuring."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
            replace_file(folder / f"{record['id']}.json", json.dumps(record).encode())
        except OSError as error:
            with _undisturbed():
                display.warning(f"{folder}: {error.strerror}: until the batch ends, its trials are on the client only")

    def _start(
        self, module: str, trials: list[dict[str, t.Any]], spool: str, limit_s: float, task_vars: dict[str, t.Any]
    ) -> dict[str, t.Any]:
        each = [trial["options"]["duration_s"] + trial["options"]["warmup_s"] + limit_s for trial in trials]
        # async_wrapper ends the module after this time, whatever happens to the controller
        self._task.async_val = int(sum(each)) + 60
        return t.cast(
            "dict[str, t.Any]",
            self._execute_module(
                module_name=module,
                module_args={
                    "trials": [{"id": trial["id"], **trial["options"]} for trial in trials],
                    "spool_dir": spool,
                    "time_limit_s": limit_s,
                },
                task_vars=task_vars,
                wrap_async=True,
            ),
        )

    def _look(self, spool: str, missing: list[str], job_file: str) -> tuple[list[dict[str, t.Any]], bool]:
        """The trials that were spooled since the last look, and whether the module has ended."""
        answer = self._low_level_execute_command(spool_command(spool, missing, job_file), sudoable=True)
        if answer["rc"] != 0:
            raise AnsibleConnectionFailure(answer["stderr"] or "the spool could not be read")
        return read_spool_output(answer["stdout"])

    def _answer(
        self, job: dict[str, t.Any], missing: list[str], task_vars: dict[str, t.Any]
    ) -> tuple[list[dict[str, t.Any]], str]:
        """What the module returned itself: the records that are missing, and what it says when one is not there."""
        folder, name = os.path.split(job["results_file"])
        status: dict[str, t.Any] = self._execute_module(
            module_name="ansible.legacy.async_status",
            module_args={"jid": name, "mode": "status", "_async_dir": folder},
            task_vars=task_vars,
        )
        records = [record for record in status.get("trials") or [] if record["id"] in missing]
        said = status.get("msg") or status.get("module_stderr") or "the generator ended without a result for this trial"
        return records, "" if len(records) == len(missing) else str(said)

    def _clean(self, job: dict[str, t.Any], task_vars: dict[str, t.Any]) -> None:
        if "results_file" in job:
            try:
                self._low_level_execute_command(f"rm -f {shlex.quote(job['results_file'])}", sudoable=True)
            except (AnsibleConnectionFailure, AnsibleError) as error:
                display.vv(f"the job file of the batch stays on the client: {error}")
