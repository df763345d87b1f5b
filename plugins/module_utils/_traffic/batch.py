# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs a list of trials one after the other, and writes each result down before the next begins."""

from __future__ import annotations

import json
import pathlib
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common import files
from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._host.batch_note import announce_batch
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.outcome import finding

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
