# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run that was broken off leaves running on a host: a batch of trials, servers, samplers, path responders.

All of them end by themselves after a while. The next run cannot wait for
that, since they would load the host that it measures. Only a host that
belongs to no other run (see the journal) may be cleaned.
"""

from __future__ import annotations

import os
import pathlib
import signal
import time
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common import paths
from ansible_collections.fastpath.bench.plugins.module_utils._host.background import Workers, start_ticks
from ansible_collections.fastpath.bench.plugins.module_utils._host.batch_note import running_batch
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.server import UNIT, Manager

#: A process that does not end at SIGTERM gets SIGKILL after this time.
GRACE_S = 2.0


def descendants(pid: int) -> list[int]:
    """The process and all that it started, parents first."""
    children: dict[int, list[int]] = {}
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            except OSError:
                continue
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    found = [pid]
    for parent in found:
        found.extend(children.get(parent, ()))
    return found


def _end(pids: t.Sequence[int]) -> None:
    started = {pid: start_ticks(pid) for pid in pids}
    for number in (signal.SIGTERM, signal.SIGKILL):
        for pid, ticks in started.items():
            if ticks is not None and start_ticks(pid) == ticks:
                try:
                    os.kill(pid, number)
                except ProcessLookupError:
                    continue
        deadline = time.monotonic() + GRACE_S
        while time.monotonic() < deadline:
            if all(ticks is None or start_ticks(pid) != ticks for pid, ticks in started.items()):
                return
            time.sleep(0.02)


def clean(
    manager: Manager,
    *,
    keep: str | None,
    check_mode: bool,
    batch_file: str = paths.BATCH_FILE,
    iperf_dir: str = paths.IPERF_DIR,
    sample_dir: str = paths.SAMPLE_DIR,
    path_dir: str = paths.PATH_DIR,
) -> list[str]:
    """End what is left running, and say what it was.

    :param keep: a run that is about to be resumed: what its servers and samplers have recorded is still wanted, so
        they are left. Its batch ends as well: what it had finished is spooled.
    """
    ended = []
    pid = running_batch(batch_file)
    if pid is not None:
        ended.append(f"batch of trials (process {pid})")
        if not check_mode:
            _end(descendants(pid))
    servers = [p.stem for p in sorted(pathlib.Path(iperf_dir).glob("*.env")) if not _belongs(p.stem, keep)]
    ended.extend(f"server {name}" for name in servers)
    if servers and not check_mode:
        manager.stop([f"{UNIT}{name}.service" for name in servers])
        for name in servers:
            for kind in ("env", "out", "err"):
                (pathlib.Path(iperf_dir) / f"{name}.{kind}").unlink(missing_ok=True)
    for title, directory in (("sampler", sample_dir), ("path responder", path_dir)):
        workers = Workers(directory)
        for name in workers.names():
            if title == "sampler" and _belongs(name, keep):
                continue
            if workers.find(name) is not None:
                ended.append(f"{title} {name}")
            if not check_mode:
                workers.stop(name)
    return ended


def _belongs(name: str, run: str | None) -> bool:
    return run is not None and name.startswith(f"{run}.")
