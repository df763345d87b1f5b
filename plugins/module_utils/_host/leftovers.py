# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run that was broken off leaves running on a host: a batch of trials, servers, samplers, path responders.

All of them end by themselves after a while. The next run cannot wait for
that, since they would load the host that it measures. Only a host that
belongs to no other run (see the journal) may be cleaned.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import shutil
import signal
import time
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common import paths
from ansible_collections.fastpath.bench.plugins.module_utils._host.background import Workers, start_ticks
from ansible_collections.fastpath.bench.plugins.module_utils._host.batch_note import running_batch
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.server import UNIT, Manager, forget_old

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


def end_batch(pid: int) -> None:
    """End the process of a batch, which ends the tool that it runs.

    It is told first and alone: a tool that ends before it would be taken for a trial that failed.
    """
    started = {each: start_ticks(each) for each in descendants(pid)}

    def alive(each: int) -> bool:
        return started[each] is not None and start_ticks(each) == started[each]

    _signal([pid], signal.SIGTERM)
    deadline = time.monotonic() + GRACE_S
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    _signal([each for each in started if alive(each)], signal.SIGKILL)


def _signal(pids: t.Iterable[int], number: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def clean(
    manager: Manager,
    *,
    keep: str | None,
    check_mode: bool,
    batch_file: str = paths.BATCH_FILE,
    iperf_dir: str = paths.IPERF_DIR,
    sample_dir: str = paths.SAMPLE_DIR,
    path_dir: str = paths.PATH_DIR,
    receiver_dirs: t.Sequence[str] = (paths.SINK_DIR, paths.CONNECTION_DIR),
) -> list[str]:
    """End what is left running, and say what it was.

    What servers and samplers have recorded stays for a day: their run may be resumed later, and its trials are in the
    spool.

    :param keep: a run that is about to be resumed, whose servers and samplers are left. Its batch ends as well: what it
        had finished is spooled.
    """
    ended = []
    pid = running_batch(batch_file)
    if pid is not None:
        ended.append(f"batch of trials (process {pid})")
        if not check_mode:
            end_batch(pid)
    servers = _active(manager, [p.stem for p in pathlib.Path(iperf_dir).glob("*.env") if not _belongs(p.stem, keep)])
    ended.extend(f"server {name}" for name in servers)
    if servers and not check_mode:
        manager.stop([f"{UNIT}{name}.service" for name in servers])
    if not check_mode:
        forget_old(manager, iperf_dir)
    receivers = [("receiver", directory) for directory in receiver_dirs]
    for title, directory in (("sampler", sample_dir), ("path responder", path_dir), *receivers):
        workers = Workers(directory)
        for name in workers.names():
            if title != "path responder" and _belongs(name, keep):
                continue
            if workers.find(name) is not None:
                ended.append(f"{title} {name}")
            if not check_mode:
                workers.stop(name)
    return ended


def forget(
    batches: t.Iterable[str],
    *,
    check_mode: bool,
    spool: str | None = None,
    iperf_dir: str = paths.IPERF_DIR,
    sample_dir: str = paths.SAMPLE_DIR,
) -> list[str]:
    """Delete what servers and samplers recorded of batches whose trials are on the controller, and the spool of a run
    that is recorded as a whole. Its path is what is told of each file."""
    found = [
        path
        for folder in (iperf_dir, sample_dir)
        for path in sorted(pathlib.Path(folder).glob("*"))
        if any(path.name.startswith((f"{batch}.", f"{batch}-p")) for batch in batches)
    ]
    if spool is not None and os.path.isdir(spool):
        found.append(pathlib.Path(spool))
    if not check_mode:
        for path in found:
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
    return [str(path) for path in found]


def _active(manager: Manager, names: t.Iterable[str]) -> list[str]:
    units = {f"{UNIT}{name}.service": name for name in sorted(names)}
    states = manager.states(list(units)) if units else {}
    return [name for unit, name in units.items() if unit in states and states[unit].active]


def _belongs(name: str, run: str | None) -> bool:
    return run is not None and name.startswith(f"{run}.")
