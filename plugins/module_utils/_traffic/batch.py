# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs a list of trials one after the other, and writes each result down before the next begins."""

from __future__ import annotations

import json
import pathlib
import time
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common import files
from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._host.batch_note import announce_batch
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.outcome import Outcome, finding

Record = dict[str, t.Any]
T = t.TypeVar("T")


def write_atomic(path: pathlib.Path, record: Record) -> None:
    """Write a record so that a reader sees all of it or nothing, also after a crash."""
    files.replace_file(path, json.dumps(record).encode())


def spool(folder: str | None, record: Record) -> None:
    """Keep a finished trial on this host. A full disk must not cost the trial: it is noted in the record."""
    if folder is None:
        return
    try:
        path = pathlib.Path(folder)
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_atomic(path / f"{record['id']}.json", record)
    except OSError as error:
        record["findings"].append(
            finding(
                "spool_failed",
                "warning",
                f"{folder}: {error.strerror or error}",
                "Free space on the host; the result was kept in the module's answer only",
            )
        )


def record_of(
    made: Outcome,
    *,
    trial_id: str,
    generator: str,
    duration_s: float,
    tool: tuple[str, str | None, t.Sequence[str]],
    started: float | None = None,
    ended: float | None = None,
    window: tuple[float, float] | None = None,
    tries: int = 1,
    raw: t.Mapping[str, str] | None = None,
) -> Record:
    """What a generator's module tells of a trial.

    :param tool: its name, its version and its command line.
    :param started: seconds since the epoch, as ``ended`` and both ends of ``window``; now where nothing is given.
    :param tries: how often the tool was started; 0 is never.
    """
    now = time.time()
    name, version, argv = tool
    return {
        "id": trial_id,
        "generator": generator,
        **made.as_dict(),
        "started": now if started is None else started,
        "ended": now if ended is None else ended,
        "window": None if window is None else {"start": window[0], "end": window[1]},
        "duration_s": duration_s,
        "tries": tries,
        "tool": {"name": name, "version": version, "command": list(argv)},
        "raw": dict(raw or {}),
    }


def run_batch(
    items: t.Sequence[T],
    run_one: t.Callable[[T], Record],
    fail_one: t.Callable[[T, BenchError], Record],
    *,
    spool_dir: str | None = None,
) -> list[Record]:
    """Run all items. One that fails is a record of its own and does not stop the others."""
    if spool_dir is not None:
        announce_batch(spool_dir)
    records: list[Record] = []
    for item in items:
        try:
            record = run_one(item)
        except BenchError as error:
            record = fail_one(item, error)
        spool(spool_dir, record)
        records.append(record)
    return records
