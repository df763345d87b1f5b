# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Trials with iperf2 or iperf3: from options to a record."""

from __future__ import annotations

import functools
import time
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._traffic import iperf2, iperf3, outcome, runner
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.batch import Record, record_of, run_batch
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.options import (
    ToolVersion,
    TrialOptions,
    parse_version,
)
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.record import CLIENT, FORWARD, Measurement

PROGRAMS = {"iperf2": "iperf", "iperf3": "iperf3"}
#: Failures before any traffic that may be gone a moment later.
SETUP_CODES = frozenset({"connection_refused", "server_busy"})
RETRY_DELAY_S = 0.3
#: iperf2's UDP receiver waits 2 s for closing datagrams that were lost. It is told to end this long after its time.
CLOSING_S = 0.4


@functools.cache
def probe(program: str) -> tuple[str, ToolVersion]:
    """The path and the release of a tool. Asked once per process."""
    path = runner.find_program(program)
    answer = runner.run([path, "--version"], limit_s=5)
    return path, parse_version(answer.stdout + answer.stderr)


def _command(path: str, options: TrialOptions, version: ToolVersion) -> list[str]:
    if options.tool == "iperf3":
        return iperf3.client_command(path, options, version)
    return iperf2.client_command(path, options, version)


def read(options: TrialOptions, result: runner.ProcessResult, version: ToolVersion) -> Measurement:
    """The client's report."""
    if options.tool == "iperf3":
        return iperf3.parse_client(result.stdout, stderr=result.stderr, interval_s=options.interval_s)
    return iperf2.parse(
        result.stdout,
        end=CLIENT,
        port=options.port,
        interval_s=options.interval_s,
        stderr=result.stderr,
        ended=not result.timed_out,
        version=version.text,
    )


def judge(
    options: TrialOptions, result: runner.ProcessResult, version: ToolVersion
) -> tuple[outcome.Outcome, Measurement | None]:
    if result.flooded:
        return outcome.failed("output_flood", "the tool printed more than can be kept", options), None
    if result.timed_out:
        limit = f"{options.limit_s:g} s"
        return outcome.failed("time_limit", f"the tool was ended at its time limit of {limit}", options), None
    made, measurement = outcome.evaluate_text(lambda: read(options, result, version), options)
    if result.returncode and made.status == outcome.OK:
        first = (result.stderr or result.stdout).strip().splitlines()
        made.fail("tool_error", f"{version.tool} ended with {result.returncode}: {first[-1] if first else ''}")
    return made, measurement


def _moved_data(measurement: Measurement | None) -> bool:
    return measurement is not None and any(
        row.bytes for flow in measurement.flows for row in (*flow.intervals, *([flow.final] if flow.final else []))
    )


def _closing(options: TrialOptions) -> float | None:
    receives = options.tool == "iperf2" and options.protocol == "udp" and options.direction != FORWARD
    return options.total_s + CLOSING_S if receives else None


def _zero(options: TrialOptions, result: runner.ProcessResult, measurement: Measurement | None) -> float:
    """The moment that the tool's second 0 was, on this host's clock."""
    if result.zero is not None:
        return result.zero
    ends = [flow.final.end_s for flow in measurement.flows if flow.final] if measurement else []
    return result.ended - max(ends, default=options.total_s)


def run_trial(options: TrialOptions, *, retries: int = 2, program: str | None = None) -> Record:
    """Run one trial. Only a failed set-up is tried again; what moved data is not."""
    path, version = probe(program or PROGRAMS[options.tool])
    command = _command(path, options, version)
    tries = 0
    while True:
        tries += 1
        result = runner.run(command, limit_s=options.limit_s, interrupt_s=_closing(options))
        made, measurement = judge(options, result, version)
        if made.code not in SETUP_CODES or _moved_data(measurement) or tries > retries:
            break
        time.sleep(RETRY_DELAY_S)
    zero = _zero(options, result, measurement)
    return record_of(
        made,
        trial_id=options.id,
        generator=options.tool,
        duration_s=options.duration_s,
        tool=(version.tool, version.text, command),
        started=result.started,
        ended=result.ended,
        window=None if made.window is None else (zero + made.window[0], zero + made.window[1]),
        tries=tries,
        raw={"client.txt": result.stdout + result.stderr},
    )


def failed_record(options: TrialOptions, error: BenchError) -> Record:
    """The record of a trial that could not be started."""
    return record_of(
        outcome.failed(error.code, error.message, options),
        trial_id=options.id,
        generator=options.tool,
        duration_s=options.duration_s,
        tool=(options.tool, None, []),
        tries=0,
    )


def run_trials(
    trials: t.Sequence[TrialOptions],
    *,
    spool_dir: str | None = None,
    retries: int = 2,
    program: str | None = None,
) -> list[Record]:
    """Run trials one after the other."""
    return run_batch(
        trials,
        lambda options: run_trial(options, retries=retries, program=program),
        failed_record,
        spool_dir=spool_dir,
    )
