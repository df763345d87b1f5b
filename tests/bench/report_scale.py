# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long a report of 10,000 stored trials takes, and how much memory.

Writes the trials of two made-up runs (many points with few repetitions, few points with many), makes the report of
each in a process of its own as the module does, and prints a line of JSON for each.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "unit")]

importlib.import_module("conftest")  # makes the collection importable

from ansible_collections.fastpath.bench.plugins.module_utils._bench.report import make_report  # noqa: E402
from ansible_collections.fastpath.bench.plugins.module_utils._bench.store import RunStore, TrialName  # noqa: E402
from ansible_collections.fastpath.bench.tests.unit.fake_run import fake_run  # noqa: E402

LIMIT_S = 20.0
LIMIT_MB = 500.0
#: name -> (values of an axis of its own, repetitions); a value stands for 18 points
SHAPES = {"many_points": (186, 3), "many_repetitions": (6, 93)}


def write_run(root: pathlib.Path, name: str) -> int:
    values, repeats = SHAPES[name]
    run, trials = fake_run(streams=[str(n + 1) for n in range(values)], repeats=repeats)
    store = RunStore.create(root, name, run)
    for trial in trials:
        # Not by the store: a run never writes 10,000 trials in one go, and each one is synced to the disk.
        file = TrialName(trial["point_id"], trial["repetition"], 1).filename
        (store.path / "trials" / file).write_text(json.dumps({**trial, "run_id": name}), encoding="utf-8")
    return len(trials)


def measure(root: pathlib.Path, name: str) -> None:
    begun = time.perf_counter()
    report = make_report(RunStore.open(root, name))
    print(
        json.dumps(
            {
                "seconds": round(time.perf_counter() - begun, 2),
                "cpu_seconds": round(time.process_time(), 2),
                "megabytes": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
                "points": len(report.summary.points),
                "html_megabytes": round(os.path.getsize(report.files["html"]) / 1e6, 2),
            }
        )
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keep", type=pathlib.Path, help="write the runs here and leave them")
    parser.add_argument("--measure", nargs=2, metavar=("DIR", "RUN"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        measure(pathlib.Path(arguments.measure[0]), arguments.measure[1])
        return 0
    good = True
    with tempfile.TemporaryDirectory() as temporary:
        root = arguments.keep or pathlib.Path(temporary)
        for name in SHAPES:
            trials = write_run(root, name)
            done = subprocess.run(
                [sys.executable, __file__, "--measure", str(root), name], check=True, capture_output=True, text=True
            )
            result = {"run": name, "trials": trials, **json.loads(done.stdout)}
            result["within_limits"] = result["seconds"] < LIMIT_S and result["megabytes"] < LIMIT_MB
            good = good and result["within_limits"]
            print(json.dumps(result))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
