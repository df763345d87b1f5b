# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs a traffic tool once, with a hard end, and notes when its rows came."""

from __future__ import annotations

import dataclasses
import os
import re
import selectors
import signal
import subprocess
import time
import types
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common import command
from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError

#: A tool that floods its output is stopped here rather than when memory is gone.
OUTPUT_LIMIT = 64 * 1024 * 1024
_INTERVAL_END = re.compile(rb"^\[[^\]]*\]\s*(\d+\.\d+)\s*-\s*(\d+\.\d+)\s+sec ", re.MULTILINE)


@dataclasses.dataclass(frozen=True)
class ProcessResult:
    """What a finished process left."""

    returncode: int
    stdout: str
    stderr: str
    started: float
    ended: float
    timed_out: bool = False
    flooded: bool = False
    #: The moment that the tool counts its seconds from, seen by when its rows came.
    zero: float | None = None


def find_program(name: str) -> str:
    """The full path of a tool.

    :raises BenchError: it is not installed.
    """
    found = command.find_program(name)
    if found is None:
        raise BenchError(
            f"the program {name} is not on this host",
            remedy="Apply the role fastpath.bench.iperf to it, or install the package by hand",
            code="tool_absent",
        )
    return found


def stop_on_signal() -> None:
    """Let SIGTERM and SIGHUP unwind the stack, so that a running tool is ended with its caller."""

    def leave(number: int, _frame: types.FrameType | None) -> None:
        raise SystemExit(128 + number)

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, leave)


def _row_ends(data: bytes) -> t.Iterator[float]:
    return (float(row[2]) for row in _INTERVAL_END.finditer(data))


def run(
    argv: t.Sequence[str],
    *,
    limit_s: float,
    interrupt_s: float | None = None,
    row_ends: t.Callable[[bytes], t.Iterable[float]] = _row_ends,
) -> ProcessResult:
    """Run a command to its end or to the limit, whichever comes first.

    :param interrupt_s: interrupt it, once, this long after its own second 0: it may end and print its last rows.
    :param row_ends: from a piece of output, the tool's own seconds at which the rows in it ended.
    """
    started = time.time()
    process = command.start(argv, env={"TZ": "UTC"})
    finished = False
    try:
        result = _collect(process, started, limit_s, interrupt_s, row_ends)
        finished = True
        return result
    finally:
        if not finished:
            command.kill(process)
            process.wait()


def _collect(
    process: subprocess.Popen[bytes],
    started: float,
    limit_s: float,
    interrupt_s: float | None,
    row_ends: t.Callable[[bytes], t.Iterable[float]],
) -> ProcessResult:
    stdout, stderr = process.stdout, process.stderr
    if stdout is None or stderr is None:
        raise ValueError("the process has no pipes")
    chunks: dict[int, list[bytes]] = {stdout.fileno(): [], stderr.fileno(): []}
    size = 0
    zero: float | None = None
    timed_out = flooded = False
    deadline = time.monotonic() + limit_s
    with selectors.DefaultSelector() as selector:
        for pipe in (stdout, stderr):
            selector.register(pipe, selectors.EVENT_READ)
        while selector.get_map():
            left = deadline - time.monotonic()
            if left <= 0 or size > OUTPUT_LIMIT:
                timed_out, flooded = left <= 0, size > OUTPUT_LIMIT
                command.kill(process)
                break
            if interrupt_s is not None and zero is not None:
                due = zero + interrupt_s - time.time()
                if due <= 0:
                    process.send_signal(signal.SIGINT)
                    interrupt_s = None
                else:
                    left = min(left, due)
            for key, _events in selector.select(left):
                data = os.read(key.fd, 1 << 16)
                now = time.time()
                if not data:
                    selector.unregister(key.fileobj)
                    continue
                size += len(data)
                chunks[key.fd].append(data)
                if key.fd == stdout.fileno():
                    for end_s in row_ends(data):
                        moment = now - end_s
                        zero = moment if zero is None else min(zero, moment)
    try:
        returncode = process.wait(max(0.1, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        timed_out = True
        command.kill(process)
        returncode = process.wait()
    ended = time.time()
    text = [b"".join(chunks[pipe.fileno()]).decode("utf-8", "replace") for pipe in (stdout, stderr)]
    stdout.close()
    stderr.close()
    return ProcessResult(returncode, text[0], text[1], started, ended, timed_out, flooded, zero)
