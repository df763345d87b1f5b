# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Trials with dperf: the client from options to a record, and the server that they need."""

from __future__ import annotations

import dataclasses
import os
import re
import select
import signal
import tempfile
import time
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common import command
from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._common.paths import DPERF_DIR
from ansible_collections.fastpath.bench.plugins.module_utils._host import background, hugepages, pci
from ansible_collections.fastpath.bench.plugins.module_utils._host.access import Access
from ansible_collections.fastpath.bench.plugins.module_utils._traffic import dperf_judge, dperf_text, runner
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.batch import Record, record_of, run_batch
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.dperf_config import (
    Load,
    checked,
    contradictions,
    memory_bytes,
    render,
)
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.dperf_options import HostSide, Trial
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.dperf_text import Number, Output, Second
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.outcome import Outcome
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.record import CLIENT, SERVER

GENERATOR = "dperf"
_ROW = re.compile(rb"^seconds (\d{1,9})\s", re.MULTILINE)
#: dperf sees to its network cards and memory before its first second, and looks for the gateway for a good minute.
START_S = 120.0
#: After an interrupt it counts on for some seconds and prints its sums. Some were seen to take 8 s.
STOP_S = 20.0
_SETTLE_S = 1.0
_POLL_S = 0.05
_WORKER = "server"
#: Seconds without traffic between two clients; each waits 3 s before its first packet.
_PAUSE_S = 2
#: Its pages; the first name is that of a dperf that is alone.
_PAGES = r"(?:rte|dperf-?[0-9]+)map_[0-9]+"


def row_ends(data: bytes) -> t.Iterator[float]:
    """A block is printed at the end of its second."""
    return (float(row[1]) + 1 for row in _ROW.finditer(data))


def argv_of(program: str, conf: str) -> list[str]:
    """With line-wise output: dperf's own is held back when nobody looks at a terminal."""
    stdbuf = command.find_program("stdbuf")
    return [*([stdbuf, "-oL"] if stdbuf else []), program, "-c", conf]


def find_program(program: str) -> str:
    found = command.find_program(program)
    if found is None:
        raise BenchError(
            f"dperf ({program}) is not on this host",
            remedy="Give the role fastpath.bench.dperf a dperf_binary: a path, a package or a URL with its checksum",
            code="tool_absent",
        )
    return found


# --------------------------------------------------------------------------- before the start


def check_host(side: HostSide, load: Load, access: Access) -> None:
    """What the machine lacks.

    :raises BenchError: the first thing, the true cause before its consequences: a wrong PCI address looks like missing
        hugepages in dperf's own output.
    """
    if not side.check_hardware:
        return
    devices = [pci.check_for_user(access, nic.pci) for nic in side.end.nics]
    mounted = set(hugepages.mounts(access).values())
    free = hugepages.free_bytes(access, of=mounted)
    need = memory_bytes(load, side.end)
    lacking = hugepages.unmounted(access)
    # a hugetlbfs of another size hands out none of these
    if free < need and lacking and free + hugepages.free_bytes(access, of=lacking) >= need:
        raise BenchError(
            f"there are pages of {', '.join(map(hugepages.size_text, lacking))}, and no hugetlbfs hands them out",
            where="hugepages",
            remedy="Mount one (role fastpath.bench.host_prep, host_prep_mounts)",
            code="hugepages_not_mounted",
        )
    if free < need:
        raise BenchError(
            f"{free / 2**20:,.0f} MiB of hugepages are free, and this load needs at least {need / 2**20:,.0f} MiB",
            where="hugepages",
            remedy="Reserve more (role fastpath.bench.host_prep), or use fewer clients, ports or CPUs",
            code="not_enough_memory",
        )
    for node in sorted({device.numa_node for device in devices if device.numa_node is not None}):
        if len(hugepages.nodes(access)) > 1 and not hugepages.free_bytes(access, node, of=mounted):
            raise BenchError(
                f"no hugepages are free on NUMA node {node}, where the network card is",
                where="hugepages", remedy="Reserve them on that node", code="not_enough_memory",
            )  # fmt: skip


# --------------------------------------------------------------------------- the client


def read(text: str, load: Load, side: str) -> tuple[Outcome, Output | None]:
    """Parse and judge; what cannot be read is a failed trial that says why."""
    try:
        output = dperf_text.parse(text)
    except BenchError as error:
        made = Outcome()
        made.fail(error.code, error.message)
        return made, None
    return dperf_judge.evaluate(output, load, side), output


def run_trial(trial: Trial, side: HostSide, *, limit_s: float, access: Access | None = None) -> Record:
    """Run one trial: configuration, checks, dperf, verdict."""
    load = trial.load
    checked(load, side.end, CLIENT)
    program = find_program(side.program)
    check_host(side, load, access or Access())
    text = render(load, side.end, CLIENT)
    with tempfile.NamedTemporaryFile("w", prefix="fastpath-dperf-", suffix=".conf", encoding="utf-8") as conf:
        conf.write(text)
        conf.flush()
        argv = argv_of(program, conf.name)
        result = runner.run(argv, limit_s=START_S + load.total_s + limit_s, row_ends=row_ends)
    hugepages.release_left(access or Access(), _PAGES)
    made, output = read(result.stdout + result.stderr, load, CLIENT)
    if result.flooded:
        made.fail("output_flood", "dperf printed more than can be kept")
    if result.timed_out:
        made.fail("time_limit", f"dperf was ended at its time limit of {START_S + load.total_s + limit_s:g} s")
    if result.returncode and not result.timed_out:
        made.fail("tool_error", f"dperf ended with {result.returncode}")
    zero = result.zero if result.zero is not None else result.ended - load.total_s
    record = record_of(
        made,
        trial_id=trial.id,
        generator=GENERATOR,
        duration_s=float(load.duration_s),
        tool=("dperf", output.version if output else None, argv),
        started=result.started,
        ended=result.ended,
        window=None if made.window is None else (zero + made.window[0], zero + made.window[1]),
        raw={"client.txt": result.stdout + result.stderr, "client.conf": text},
    )
    return {**record, "reading": dperf_judge.read_in_words(made)}


def failed_record(trial: Trial, error: BenchError) -> Record:
    """The record of a trial that could not be started."""
    made = Outcome()
    made.fail(error.code, error.message)
    record = record_of(
        made,
        trial_id=trial.id,
        generator=GENERATOR,
        duration_s=float(trial.load.duration_s),
        tool=("dperf", None, []),
        tries=0,
    )
    return {**record, "reading": dperf_judge.read_in_words(made)}


def run_trials(
    trials: t.Sequence[Trial], side: HostSide, *, spool_dir: str | None = None, limit_s: float = 30.0
) -> list[Record]:
    """Run trials one after the other."""
    return run_batch(trials, lambda trial: run_trial(trial, side, limit_s=limit_s), failed_record, spool_dir=spool_dir)


# --------------------------------------------------------------------------- the server


@dataclasses.dataclass(frozen=True)
class Served:
    """The trials that one server can serve, as one load; and those that it cannot, and why."""

    load: Load | None
    names: tuple[str, ...]
    refused: dict[str, BenchError]


def join(instances: t.Sequence[Trial]) -> Served:
    """One server for all: dperf has the network card to itself, so there is one at a time."""
    refused: dict[str, BenchError] = {}
    taken: list[Trial] = []
    for item in instances:
        differs = contradictions(taken[0].load, item.load) if taken else []
        if differs:
            refused[item.id] = BenchError(
                f"differs from {taken[0].id} in {', '.join(differs)}",
                where=f"instance {item.id}",
                remedy="dperf has its network card to itself: serve it in a batch of its own",
                code="one_server",
            )
        else:
            taken.append(item)
    if not taken:
        return Served(None, (), refused)
    first = min(item.load.listen_port for item in taken)
    last = max(item.load.listen_port + item.load.listen_count for item in taken)
    longest = sum(item.load.total_s for item in taken)
    load = dataclasses.replace(taken[0].load, listen_port=first, listen_count=last - first, duration_s=longest)
    return Served(load, tuple(item.id for item in taken), refused)


def _file(directory: str, kind: str) -> str:
    return os.path.join(directory, f"{_WORKER}.{kind}")


def _text_of(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            return stream.read(runner.OUTPUT_LIMIT)
    except FileNotFoundError:
        return ""


def _serve(argv: t.Sequence[str], directory: str, info: dict[str, t.Any], control: background.Control) -> None:
    """The background worker: starts dperf, says when it is up, and ends it."""
    path = _file(directory, "out")
    # workers ignore it, and what is ignored is handed down
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    with open(path, "wb") as sink:
        process = command.start(argv)
        out, err = process.stdout, process.stderr
        if out is None or err is None:
            raise ValueError("the process has no pipes")
        reader = _Copy((out.fileno(), err.fileno()), sink.fileno())
        try:
            begin = time.monotonic()
            ready = False
            while process.poll() is None and not control.ending:
                reader.wait(_POLL_S)
                if not ready and (reader.counting or (reader.started and time.monotonic() - begin > _SETTLE_S)):
                    ready = True
                    control.ready({**info, "pid": process.pid})
            _end(process, reader)
        finally:
            if process.poll() is None:
                command.kill(process)
                process.wait()
        reader.drain()
    if not ready:
        said = dperf_judge.failure(dperf_text.plain(_text_of(path)).splitlines())
        raise said or BenchError(
            f"dperf ended with {process.returncode} before it was up", where=path, code="server_not_up"
        )


class _Copy:
    """Copies what dperf prints to a file at once, and sees how far it has come."""

    def __init__(self, sources: t.Sequence[int], sink: int) -> None:
        self._sources = list(sources)
        self._sink = sink
        self._tail = b""
        self._size = 0
        self.started = False
        self.counting = False

    def wait(self, seconds: float) -> None:
        if not self._sources:
            time.sleep(seconds)
            return
        for source in select.select(self._sources, [], [], seconds)[0]:
            data = os.read(source, 1 << 16)
            if not data:
                self._sources.remove(source)
                continue
            self._size += len(data)
            if self._size <= runner.OUTPUT_LIMIT:
                os.write(self._sink, data)
            self._tail = (self._tail + data)[-(1 << 16) :]
            self.started = self.started or b"socket allocation succeeded" in self._tail
            self.counting = self.counting or b"\nseconds 0" in self._tail

    def drain(self) -> None:
        limit = time.monotonic() + 1.0
        while self._sources and time.monotonic() < limit:
            self.wait(0.05)


def _end(process: t.Any, reader: _Copy) -> None:
    """Interrupt it, so that it prints its sums; kill it when it does not end."""
    if process.poll() is not None:
        return
    process.send_signal(signal.SIGINT)
    limit = time.monotonic() + STOP_S
    while process.poll() is None and time.monotonic() < limit:
        reader.wait(_POLL_S)


def start_server(
    instances: t.Sequence[Trial],
    side: HostSide,
    *,
    lifetime_s: float,
    listen_s: float,
    directory: str = DPERF_DIR,
    check_mode: bool = False,
    partial: bool = False,
    access: Access | None = None,
) -> dict[str, t.Any]:
    """Have a server that serves these instances. The module's result."""
    served = join(instances)
    if served.refused and not partial:
        raise next(iter(served.refused.values()))
    result: dict[str, t.Any] = {"refused": _told(served.refused), "changed": False}
    if served.load is None:
        return result
    checked(served.load, side.end, SERVER)
    text = render(served.load, side.end, SERVER, server_duration_s=int(lifetime_s) + 60)
    workers = background.Workers(directory)
    found = workers.find(_WORKER)
    info = {"text": text, "names": list(served.names)}
    if found is not None and {key: found.info.get(key) for key in info} == info:
        return result
    result["changed"] = True
    result["diff"] = {"before": (found.info.get("text", "") if found else ""), "after": text}
    if check_mode:
        return result
    program = find_program(side.program)
    if found is not None:
        workers.stop(_WORKER, within_s=STOP_S + 5)
    check_host(side, served.load, access or Access())
    os.makedirs(directory, mode=0o755, exist_ok=True)
    conf = _file(directory, "conf")
    with open(conf, "w", encoding="utf-8") as stream:
        stream.write(text)
    argv = argv_of(program, conf)
    workers.start(
        _WORKER,
        lambda control: _serve(argv, directory, info, control),
        lifetime_s=lifetime_s,
        title="fastpath-dperf",
        ready_within_s=listen_s,
    )
    return result


def _told(refused: t.Mapping[str, BenchError]) -> dict[str, dict[str, str]]:
    return {name: {"code": error.code, "reason": error.message} for name, error in refused.items()}


def stop_server(
    instances: t.Sequence[Trial], *, directory: str = DPERF_DIR, check_mode: bool = False, reports: bool = True
) -> dict[str, t.Any]:
    """End the server and read what it counted. The module's result."""
    workers = background.Workers(directory)
    changed = workers.find(_WORKER) is not None
    if check_mode:
        return {"changed": changed}
    workers.stop(_WORKER, within_s=STOP_S + 5)
    hugepages.release_left(Access(), _PAGES)
    if not reports:
        for kind in ("conf", "out"):
            if os.path.exists(_file(directory, kind)):
                os.unlink(_file(directory, kind))
                changed = True
        return {"changed": changed}
    return {"changed": changed, "reports": report(instances, _text_of(_file(directory, "out")))}


def report(instances: t.Sequence[Trial], text: str) -> dict[str, dict[str, t.Any]]:
    """What the server counted, by instance. Several clients came one after the other, with a pause between them."""
    try:
        output = dperf_text.parse(text)
    except BenchError as error:
        return {item.id: _no_report(error, text) for item in instances}
    parts = bursts(output)
    if len(instances) == 1:
        parts = [output]
    if len(parts) != len(instances):
        why = BenchError(
            f"{len(parts)} clients were seen, and {len(instances)} were expected: they cannot be told apart",
            remedy="See the clients' results; run the trials one by one for the server's figures",
            code="no_report",
        )
        return {item.id: _no_report(dperf_judge.failure(output.messages) or why, text) for item in instances}
    reports = {}
    for item, part in zip(instances, parts):
        made = dperf_judge.evaluate(part, item.load, SERVER)
        reports[item.id] = {**made.as_dict(), "raw": {"server.txt": text}}
    return reports


def _no_report(error: BenchError, text: str) -> dict[str, t.Any]:
    made = Outcome()
    made.fail(error.code, error.message)
    return {**made.as_dict(), "raw": {"server.txt": text}}


def bursts(output: Output) -> list[Output]:
    """The output of each client that came, with sums of its own."""
    groups: list[list[Second]] = []
    silent = _PAUSE_S
    for second in output.seconds:
        if not second.sum("tcpRx", "udpRx", "synRx"):
            silent += 1
            if groups:
                groups[-1].append(second)
            continue
        if silent >= _PAUSE_S:
            groups.append([])
        silent = 0
        groups[-1].append(second)
    found = []
    for group in groups:
        totals: dict[str, Number] = {}
        for second in group:
            for key, value in second.values.items():
                if key.endswith(("Rx", "Tx")):
                    totals[key] = totals.get(key, 0) + value
        found.append(Output(output.version, tuple(group), totals, output.messages))
    return found
