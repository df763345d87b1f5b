# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which process runs a batch of trials on this client, so that it can be found when nobody waits for it any more."""

from __future__ import annotations

import json
import os
import pathlib

from ansible_collections.fastpath.bench.plugins.module_utils._common import paths
from ansible_collections.fastpath.bench.plugins.module_utils._host.background import start_ticks


def announce_batch(spool_dir: str, path: str = paths.BATCH_FILE) -> None:
    """Note that this process runs a batch of trials, so that it can be found when nobody waits for it any more."""
    pathlib.Path(path).parent.mkdir(parents=True, exist_ok=True)
    pid = os.getpid()
    note = {"pid": pid, "start_ticks": start_ticks(pid), "run": pathlib.PurePath(spool_dir).name}
    pathlib.Path(path).write_text(json.dumps(note), encoding="utf-8")


def running_batch(path: str = paths.BATCH_FILE) -> int | None:
    """The process of the batch that runs on this host."""
    try:
        note = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
        pid, ticks = int(note["pid"]), int(note["start_ticks"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return pid if pid != os.getpid() and start_ticks(pid) == ticks else None
