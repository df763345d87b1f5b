# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One execution of a matrix: opened anew or resumed, followed while it goes on, and finished."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import pathlib
import secrets
import socket
import sys
import time
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._bench import plan
from ansible_collections.fastpath.bench.plugins.module_utils._bench.store import (
    LATEST,
    RUN_FILE,
    RunStore,
    TrialName,
    Unreadable,
    check_name,
)
from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._host.fingerprint import differences


@dataclasses.dataclass
class Run:
    """What is to be done: the plan without the trials that are done already."""

    run_id: str
    path: pathlib.Path
    testbeds: list[plan.Testbed]
    all_trials: int
    created: bool
    resumed: bool
    #: Its last session did not come to its end, so it may have left something on hosts.
    unfinished: bool = False

    @property
    def trials(self) -> int:
        return sum(len(testbed.trials) for testbed in self.testbeds)

    @property
    def traffic_s(self) -> float:
        return plan.traffic_seconds(trial for testbed in self.testbeds for trial in testbed.trials)

    @property
    def forecast_s(self) -> float:
        """Testbeds run side by side, so the longest counts."""
        return max((plan.forecast_s(testbed) for testbed in self.testbeds), default=0.0)


def new_run_id(now: float | None = None) -> str:
    return time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now)) + "-" + secrets.token_hex(2)


def digest(testbeds: t.Iterable[plan.Testbed]) -> str:
    """What a run measures, in one word: two runs of the same matrix on the same testbeds have the same."""
    text = json.dumps([[bed.name, bed.hosts, bed.groups] for bed in testbeds], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def open_run(testbeds: list[plan.Testbed], *, results_dir: str, run_id: str | None, create: bool) -> Run:
    """Open a new run, or the one that ``run_id`` names so that only what is missing runs.

    :param create: write it to disk. Without, nothing is written (forecast, check mode).
    :raises BenchError: when the run was made from another matrix, or cannot be written.
    """
    name = check_name(run_id or new_run_id(), "run id")
    path = pathlib.Path(results_dir) / name
    total = sum(len(testbed.trials) for testbed in testbeds)
    made_of = digest(testbeds)
    resumed = (path / RUN_FILE).is_file()
    unfinished = False
    if resumed:
        store = RunStore.open(results_dir, name)
        description = store.read_run()
        if description.get("plan_digest") != made_of:
            raise BenchError(
                "this run was made from another matrix, topology or profile, and would mix what cannot be compared",
                where=str(path), remedy="Put the variables back as they were, or leave bench_run_id out for a new run",
                code="other_matrix",
            )
        unfinished = _left_something((description.get("sessions") or [{}])[-1])
        attempts = attempts_of(store)
        for testbed in testbeds:
            plan.keep_missing(testbed, attempts)
    elif create:
        RunStore.create(results_dir, name, _description(testbeds, made_of))
    if create:
        _start_session(RunStore.open(results_dir, name))
    return Run(name, path, testbeds, total, create and not resumed, resumed, unfinished)


def attempts_of(store: RunStore) -> dict[tuple[str, int], tuple[int, bool]]:
    """For each (point, repetition): the highest attempt, and whether it was measured well."""
    attempts = {}
    for name in store.latest_names():
        trial = store.read_trial(name)
        done = not isinstance(trial, Unreadable) and trial["status"] == "ok"
        attempts[name.point_id, name.repetition] = (name.attempt, done)
    return attempts


def _description(testbeds: list[plan.Testbed], made_of: str) -> dict[str, t.Any]:
    first = testbeds[0]
    return {
        "created": time.time(),
        "finished": None,
        "plan_digest": made_of,
        "testbeds": {bed.name: {"hosts": list(bed.hosts), "matrix": bed.matrix.as_dict()} for bed in testbeds},
        "matrix": first.matrix.as_dict(),
        "axes": list(first.matrix.axes),
        "baseline": first.matrix.baseline,
        "seed": first.matrix.seed,
        "order": first.matrix.order,
        "repeats": first.matrix.repeats,
        "points": {pid: point for bed in testbeds for pid, point in bed.points.items()},
        "groups": [
            {
                **{key: value for key, value in group.items() if key != "batches"},
                "trials": [trial["id"] for batch in group["batches"] for trial in batch["trials"]],
            }
            for bed in testbeds
            for group in bed.groups
        ],
        "versions": {},
        "fingerprints": {},
        "findings": [],
        "sessions": [],
        "harness": None,
    }


def process_start(pid: int) -> float:
    """When a process of this machine was started, in epoch seconds; now, where the kernel does not tell."""
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        uptime = float(pathlib.Path("/proc/uptime").read_text(encoding="ascii").split()[0])
    except (OSError, ValueError, IndexError):
        return time.time()
    # field 22 of proc_pid_stat(5), in clock ticks of 1/100 s, counted from the boot
    return time.time() - (uptime - int(fields[19]) / 100)


def _start_session(store: RunStore) -> None:
    run = store.read_run()
    # the parent of the process that executes a task is ansible-playbook itself
    pid = os.getppid()
    run.setdefault("sessions", []).append(
        {"started": process_start(pid), "finished": None, "controller": {"host": socket.gethostname(), "pid": pid}}
    )
    store.write_run(run)


def _is_running(pid: int, started: float) -> bool:
    """Whether this process of this machine is the one that was started then, and no later one of its number."""
    return os.path.exists(f"/proc/{pid}") and abs(process_start(pid) - started) < 2.0


def _left_something(session: t.Mapping[str, t.Any]) -> bool:
    """Whether a session that is over may have left something on hosts: it was broken off, or a host was away."""
    return not session.get("abandoned") and bool(not session.get("finished") or session.get("left"))


def dead_runs(results_dir: str, but: str) -> list[str]:
    """Runs that this controller began and whose playbook is gone without an end (killed, or cut off by a crash), or
    could not put back all hosts.

    What they changed on hosts may be put back by the next run. A run of another controller is never
    among them, since nobody here can tell whether it is alive.
    """
    dead = []
    for path in sorted(pathlib.Path(results_dir).glob(f"*/{RUN_FILE}")):
        try:
            session = json.loads(path.read_bytes())["sessions"][-1]
            controller = session["controller"]
        except (OSError, ValueError, LookupError, TypeError):
            continue
        name = path.parent.name
        if name in (but, LATEST) or not _left_something(session):
            continue
        if controller["host"] != socket.gethostname():
            continue
        if session.get("finished") or not _is_running(controller["pid"], session["started"]):
            dead.append(name)
    return dead


def left_datapaths(results_dir: str, run_ids: t.Iterable[str]) -> dict[str, list[dict[str, t.Any]]]:
    """By host, the datapaths that broken-off runs may have left in place: run, role and the host's interfaces.

    The settings of a host are in its journal; a datapath that is a program of its own (VPP) is not, and has to be
    removed by its role.
    """
    left: dict[str, list[dict[str, t.Any]]] = {}
    for run_id in run_ids:
        for group in RunStore.open(results_dir, run_id).read_run()["groups"]:
            for host in group["duts"]:
                entry = {"run": run_id, "role": group["role"], **group["hosts"][host]}
                if entry["role"] and entry not in left.setdefault(host, []):
                    left[host].append(entry)
    return left


def abandon(results_dir: str, run_ids: t.Iterable[str]) -> None:
    """Note that nothing of these runs is left on any host, so that they are not looked for again."""
    for run_id in run_ids:
        store = RunStore.open(results_dir, run_id)
        run = store.read_run()
        run["sessions"][-1]["abandoned"] = True
        store.write_run(run)


def update_run(store: RunStore, **changes: t.Any) -> None:
    """Change top-level keys of run.json; mappings are merged, lists are extended."""
    run = store.read_run()
    for key, value in changes.items():
        if isinstance(value, t.Mapping) and isinstance(run.get(key), dict):
            run[key].update(value)
        elif isinstance(value, list) and isinstance(run.get(key), list):
            run[key].extend(item for item in value if item not in run[key])
        else:
            run[key] = value
    store.write_run(run)


def withdraw(store: RunStore) -> bool:
    """Undo the beginning of a session that measured nothing, since it was refused. True if the run is gone with it."""
    run = store.read_run()
    run["sessions"] = (run.get("sessions") or [])[:-1]
    if run["sessions"] or store.names():
        store.write_run(run)
        return False
    store.remove()
    return True


def finish_session(
    store: RunStore, left: t.Iterable[str] = (), after: t.Mapping[str, t.Any] | None = None
) -> dict[str, t.Any]:
    """Close the running session and work out the harness time over all sessions of the run.

    :param left: hosts that were not put back.
    :param after: by host, its fingerprint as the run leaves it.
    """
    run = store.read_run()
    # what an earlier session said of it is no longer true
    run["not_restored"] = not_restored(run.get("fingerprints") or {}, after or {}, sorted(left))
    now = time.time()
    sessions = run.get("sessions") or [{"started": now, "finished": None}]
    sessions[-1]["finished"] = now
    sessions[-1]["left"] = sorted(left)
    wall = traffic = 0.0
    trials = 0
    for trial in store.trials():
        if not isinstance(trial, Unreadable) and trial["status"] == "ok":
            trials += 1
            traffic += float(trial["duration_s"] or 0.0)
    for session in sessions:
        # a session that was killed has no end; what it cost is not known
        if session["finished"] is not None:
            wall += session["finished"] - session["started"]
    harness = {
        "wall_s": round(wall, 3),
        "traffic_s": round(traffic, 3),
        "trials": trials,
        "harness_s_per_trial": round((wall - traffic) / trials, 3) if trials else None,
    }
    run.update(sessions=sessions, finished=now, harness=harness)
    store.write_run(run)
    return harness


def versions(collection_path: pathlib.Path, ansible_version: str) -> dict[str, str]:
    return {
        "fastpath.bench": collection_version(collection_path),
        "ansible-core": ansible_version,
        "python": ".".join(map(str, sys.version_info[:3])),
    }


def collection_version(path: pathlib.Path) -> str:
    """From the manifest of an installed collection, or the galaxy.yml of a checkout."""
    try:
        return str(json.loads((path / "MANIFEST.json").read_text(encoding="utf-8"))["collection_info"]["version"])
    except (OSError, ValueError, KeyError):
        pass
    try:
        for line in (path / "galaxy.yml").read_text(encoding="utf-8").splitlines():
            if line.startswith("version:"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return "unknown"


def plan_result(run: Run) -> dict[str, t.Any]:
    """The plan as the playbook's tasks use it."""
    testbeds = {}
    for testbed in run.testbeds:
        total = len(testbed.trials)
        done = 0
        left = plan.forecast_s(testbed)
        for group in testbed.groups:
            left -= plan.FORECAST_GROUP_S
            for batch in group["batches"]:
                batch["first"] = done + 1
                # with the run's name, so that what a broken-off run left can be told from one that is resumed
                batch["sample_id"] = f"{run.run_id}.{batch['id']}"
                for trial in batch["trials"]:
                    trial["instance"] = f"{run.run_id}.{trial['instance']}"
                batch["instances"] = [{"name": trial["instance"], **trial["options"]} for trial in batch["trials"]]
                batch["total"] = total
                # every trial of it may take all the time that it has
                batch["longest_s"] = 60 + sum(
                    trial["options"]["duration_s"] + trial["options"]["warmup_s"] + plan.TRIAL_LIMIT_S
                    for trial in batch["trials"]
                )
                done += len(batch["trials"])
                left -= sum(
                    plan.FORECAST_TRIAL_S + trial["options"]["duration_s"] + trial["options"]["warmup_s"]
                    for trial in batch["trials"]
                )
                batch["left_after_s"] = round(max(0.0, left), 1)
        testbeds[testbed.name] = {"hosts": list(testbed.hosts), "groups": testbed.groups}
    return {
        "run_id": run.run_id,
        "run_dir": str(run.path),
        "resumed": run.resumed,
        # with nothing left to measure there may still be something to put back
        "to_do": bool(run.trials or run.unfinished),
        "testbeds": testbeds,
        "axes": list(dict.fromkeys(axis for bed in run.testbeds for axis in bed.matrix.axes)),
        "points": {pid: point["headline"] for bed in run.testbeds for pid, point in bed.points.items()},
        "trials": run.trials,
        "traffic_s": run.traffic_s,
        "forecast_s": run.forecast_s,
    }


def clock_text(seconds: float) -> str:
    """A length of time as a person says it: ``45 s``, ``3 min 20 s``, ``2 h 5 min``."""
    whole = int(seconds + 0.5)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s" if whole % 60 else f"{whole // 60} min"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def describe(run: Run) -> list[str]:
    """What would run, in which order, and how long it takes, for a person."""
    state = f"resumed, {run.all_trials - run.trials} of {run.all_trials} trials are done" if run.resumed else "new"
    lines = [f"run {run.run_id} ({state})"]
    if not run.trials:
        lines.append("nothing is left to measure")
    for testbed in run.testbeds:
        trials = testbed.trials
        lines.append(
            f"testbed {testbed.name}: {len(testbed.groups)} set-ups, {len(trials)} trials, "
            f"{clock_text(plan.traffic_seconds(trials))} of traffic, "
            f"about {clock_text(plan.forecast_s(testbed))} in all"
        )
        for group in testbed.groups:
            parts = ", ".join(f"{s['part']}={host}" for host, s in group["hosts"].items())
            settings = ", ".join(f"{axis} {value}" for axis, value in group["settings"].items())
            lines.append(f"  set-up {group['id']}: {settings} ({parts})")
            for batch in group["batches"]:
                for trial in batch["trials"]:
                    options = trial["options"]
                    lines.append(
                        f"    {trial['id']:<58} {batch['generator']}, {options['duration_s']:g} s"
                        + (f" + {options['warmup_s']:g} s warm-up" if options["warmup_s"] else "")
                    )
    return lines


def trial_name(trial: t.Mapping[str, t.Any]) -> TrialName:
    return TrialName(trial["point_id"], trial["repetition"], trial["attempt"])


def _unread(fingerprint: t.Mapping[str, t.Any]) -> dict[str, str]:
    """The parts of a fingerprint's state that could not be read, with the reason."""
    unknown = (fingerprint.get("unknown") or {}).items()
    return {name[len("state.") :].replace(".", "/"): str(why) for name, why in unknown if name.startswith("state.")}


def not_restored(
    before: t.Mapping[str, t.Any], after: t.Mapping[str, t.Any], left: t.Iterable[str] = ()
) -> dict[str, str]:
    """By host whose state after the restore is not the one found before the run: what is known of it.

    :param left: hosts that were held, and whose restore failed or was not tried since they did not answer.
    """
    found = dict.fromkeys(left, "was not put back: its restore failed, or it did not answer")
    for host, fingerprint in after.items():
        first = (before.get(host) or {}).get("state")
        last = (fingerprint or {}).get("state")
        if host in found or not first or not last or first == last:
            continue
        then, now = _unread(before[host]), _unread(fingerprint)
        # what could not be read before the run has nothing to be compared with
        differing = [d for d in differences(first, last) if d["path"] not in then]
        shown = [f"{d['path']} ({d['before']!r}, now {d['after']!r})" for d in differing if d["path"] not in now]
        unread = [f"{d['path']} ({now[d['path']]})" for d in differing if d["path"] in now]
        if shown:
            found[host] = f"differs after the restore in {'; '.join(shown[:5])}"
        elif unread:
            found[host] = f"could not be compared after the restore: {'; '.join(unread[:5])}"
    return dict(sorted(found.items()))
