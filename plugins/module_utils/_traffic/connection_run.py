# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Trials with a connection for each request, by ``ab`` of the Apache project.

What counts is what the far end (connection_server) counted. ``ab`` alone would not do: it ends with 0 and prints
thousands of requests per second when every connection was refused.
"""

from __future__ import annotations

import dataclasses
import re
import resource
import time
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common import command
from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError, ParseError
from ansible_collections.fastpath.bench.plugins.module_utils._common.metric import METRICS, metric_key
from ansible_collections.fastpath.bench.plugins.module_utils._host.path_wire import family_of
from ansible_collections.fastpath.bench.plugins.module_utils._traffic import answerer, planned
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.batch import Record, record_of, run_batch
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.outcome import FAILED, Outcome, finding
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.record import FORWARD

GENERATOR = "connections"
PROGRAM = "ab"
#: ab keeps some 40 bytes for each request that it may make, so it is told of no more than could ever be made.
_MOST_PER_S = 60_000
#: ab's own limit is a check between requests: one that waits is given up after this long.
_ANSWER_S = 5
_MARGIN_S = 15.0
_SETTLE_S = 0.2
#: From this part of a CPU on, one of both ends was the limit.
_BUSY = 0.9
METRIC_NAMES = ("connection_rate", "request_rate", "answer_rate", "connections_failed", "connect_time")


@dataclasses.dataclass(frozen=True)
class Trial:
    """One trial as the options have it."""

    id: str
    server: str
    port: int
    bind: str | None = None
    parallel: int = 32
    requests: int | None = None
    duration_s: float = 10.0
    warmup_s: float = 0.0
    interval_s: float = 0.5
    direction: str = FORWARD

    def check(self) -> None:
        """:raises BenchError: it could not be run anywhere."""
        for name, right, remedy in (
            ("port", 1 <= self.port <= 65535, "Use 1 to 65535"),
            ("parallel", 1 <= self.parallel <= 10_000, "Use 1 to 10000"),
            ("requests", self.requests is None or self.requests >= self.parallel, "Use at least as many as parallel"),
            ("duration_s", 1 <= self.duration_s <= 3600, "Use 1 to 3600"),
            ("warmup_s", 0 <= self.warmup_s <= 3600, "Use 0 to 3600"),
        ):
            if not right:
                raise BenchError(f"{getattr(self, name)} is not possible", where=name, remedy=remedy, code="bad_option")
        for address in (self.server, self.bind):
            if address is not None:
                family_of(address)

    @property
    def most(self) -> int:
        return self.requests or int(self.duration_s * _MOST_PER_S)


def trial_spec() -> dict[str, t.Any]:
    """The argument spec of one trial, without its id."""
    return {
        "server": {"type": "str"},
        "port": {"type": "int"},
        "bind": {"type": "str"},
        "direction": {"type": "str", "choices": [FORWARD], "default": FORWARD},
        "parallel": {"type": "int", "default": 32},
        "requests": {"type": "int"},
        "duration_s": {"type": "float", "default": 10.0},
        "warmup_s": {"type": "float", "default": 0.0},
        "interval_s": {"type": "float", "default": 0.5},
    }


def trial_from(params: t.Mapping[str, t.Any], name: str) -> Trial:
    """:raises BenchError: an option is missing or wrong."""
    return planned.made_from(Trial, params, name)


def metric_names() -> list[str]:
    return [metric_key(name, FORWARD) for name in METRIC_NAMES]


# --------------------------------------------------------------------------- what ab says


@dataclasses.dataclass(frozen=True)
class Report:
    """What ``ab`` printed, as far as it is used."""

    version: str
    seconds: float
    complete: int
    failed: int
    #: Answers with another status than 2xx.
    refused: int
    #: Of those that failed: connect, receive, length, exceptions.
    kinds: dict[str, int]
    #: Milliseconds until a connection stood: the median.
    connect_ms: float | None


_VERSION = re.compile(r"^This is ApacheBench, Version (\S+)", re.M)
_FIELDS = {
    "seconds": re.compile(r"^Time taken for tests:\s+(\d+(?:\.\d+)?) seconds", re.M),
    "complete": re.compile(r"^Complete requests:\s+(\d+)", re.M),
    "failed": re.compile(r"^Failed requests:\s+(\d+)", re.M),
}
_REFUSED = re.compile(r"^Non-2xx responses:\s+(\d+)", re.M)
_KINDS = re.compile(r"^\s+\(Connect: (\d+), Receive: (\d+), Length: (\d+), Exceptions: (\d+)\)", re.M)
_CONNECT = re.compile(r"^Connect:\s+\d+\s+\d+\s+\d+\.\d+\s+(\d+)\s+\d+", re.M)


def parse(text: str) -> Report:
    """:raises ParseError: a figure is not there."""
    found: dict[str, str] = {}
    for name, pattern in _FIELDS.items():
        match = pattern.search(text)
        if match is None:
            last = next((line for line in reversed(text.splitlines()) if line.strip()), "")
            raise ParseError(f"ab does not say its {name}", line=last)
        found[name] = match[1]
    version, refused, kinds, connect = (one.search(text) for one in (_VERSION, _REFUSED, _KINDS, _CONNECT))
    names = ("connect", "receive", "length", "exceptions")
    return Report(
        version[1] if version else "",
        float(found["seconds"]),
        int(found["complete"]),
        int(found["failed"]),
        int(refused[1]) if refused else 0,
        dict(zip(names, map(int, kinds.groups()))) if kinds else {},
        float(connect[1]) if connect else None,
    )


# --------------------------------------------------------------------------- running


def arguments(trial: Trial, program: str, *, seconds: float | None = None, most: int | None = None) -> list[str]:
    """The command line. ``-n`` stands behind ``-t``, which sets it too."""
    host = f"[{trial.server}]" if ":" in trial.server else trial.server
    limit = max(1, round(seconds if seconds is not None else trial.duration_s))
    words = [program, "-q", "-r", "-l", "-d", "-s", str(_ANSWER_S), "-c", str(trial.parallel)]
    words += ["-t", str(limit), "-n", str(most or trial.most)]
    words += ["-B", trial.bind] if trial.bind else []
    return [*words, f"http://{host}:{trial.port}/"]


def run_trial(trial: Trial) -> Record:
    """:raises BenchError: it could not begin."""
    program = command.find_program(PROGRAM)
    if program is None:
        raise BenchError(
            "there is no program ab",
            remedy="Install apache2-utils, or httpd-tools, or apply the role fastpath.bench.connections",
            code="tool_absent",
        )
    started = time.time()
    # that it is there, and ours, is known before the clock runs
    answerer.ask(trial.server, trial.port, bind=trial.bind)
    if trial.warmup_s:
        _ab(arguments(trial, program, seconds=trial.warmup_s, most=int(trial.warmup_s * _MOST_PER_S) + trial.parallel))
        time.sleep(_SETTLE_S)
    before = answerer.ask(trial.server, trial.port, bind=trial.bind)
    own_before = resource.getrusage(resource.RUSAGE_CHILDREN)
    argv = arguments(trial, program)
    begin = time.time()
    done = _ab(argv)
    made = Outcome()
    raw = {"client.txt": done.stdout + done.stderr}
    report = None
    try:
        report = parse(done.check().stdout)
    except BenchError as error:
        made.fail(error.code or "tool_failed", error.message)
    own = resource.getrusage(resource.RUSAGE_CHILDREN)
    # those that ab gave up at its end are closed meanwhile
    time.sleep(_SETTLE_S)
    after = answerer.ask(trial.server, trial.port, bind=trial.bind)
    window = None
    if report is not None:
        cpu_s = (own.ru_utime + own.ru_stime - own_before.ru_utime - own_before.ru_stime, after.cpu_s - before.cpu_s)
        counts = (after.accepted - before.accepted, after.answered - before.answered)
        judge(trial, made, report, counts, cpu_s)
        window = (begin, begin + report.seconds)
    return record_of(
        made,
        trial_id=trial.id,
        generator=GENERATOR,
        duration_s=trial.duration_s,
        tool=(PROGRAM, report.version if report else "", argv),
        started=started,
        window=window,
        raw=raw,
    )


def _ab(argv: t.Sequence[str]) -> command.Result:
    limit_s = float(argv[argv.index("-t") + 1])
    return command.run(argv, limit_s=limit_s + _ANSWER_S + _MARGIN_S)


def judge(trial: Trial, made: Outcome, report: Report, counts: tuple[int, int], cpu_s: tuple[float, float]) -> None:
    """What the trial says: figures of the far end, and what the near end saw fail. Pure.

    :param counts: connections that the far end took, and answered.
    :param cpu_s: seconds of CPU of ab and of the far end.
    """
    accepted, answered = counts
    seconds = max(report.seconds, 1e-6)
    good = max(0, report.complete - _lost(report) - report.refused)
    made.add("connection_rate", FORWARD, answered / seconds)
    made.add("request_rate", FORWARD, report.complete / seconds)
    made.add("answer_rate", FORWARD, good / seconds)
    made.add("connections_failed", FORWARD, _lost(report) + report.refused)
    made.add("connect_time", FORWARD, report.connect_ms)
    made.counts[FORWARD] = {"sent_packets": None, "received_packets": None, "accepted": accepted, "answered": answered}
    if answered == 0:
        made.fail("no_connection", f"none of {report.complete} connections reached the server")
    # some are under way when ab ends; more than those were answered by somebody else
    elif good > answered + trial.parallel:
        told = f"ab has {good} answers and the server gave {answered}: somebody else answers for it"
        made.fail("answers_over_connections", told, status=FAILED)
    failed = _lost(report) + report.refused
    if failed:
        kinds = ", ".join(f"{name} {number}" for name, number in report.kinds.items() if number)
        kinds += f"{', ' if kinds else ''}refused by status {report.refused}" if report.refused else ""
        made.findings.append(
            finding(
                "connections_failed",
                "warning",
                f"{failed} of {report.complete} connections failed{f' ({kinds})' if kinds else ''}",
                "Look at what the device dropped for lack of sessions or ports, and at the server's backlog",
            )
        )
    for name, used in zip(("The client (ab)", "The server"), cpu_s):
        if used >= _BUSY * seconds:
            made.findings.append(
                finding(
                    "generator_limited",
                    "warning",
                    f"{name} used its one CPU for {used / seconds:.0%} of the time",
                    "The figure is what this end can do; the device does at least that",
                )
            )


def _lost(report: Report) -> int:
    """ab counts one that broke more than once, by what broke."""
    kinds = report.kinds
    return min(report.complete, max(kinds.get("connect", 0), kinds.get("receive", 0), kinds.get("exceptions", 0)))


def failed_record(trial: Trial, error: BenchError) -> Record:
    made = Outcome()
    made.fail(error.code or "failed", error.message)
    for name in METRIC_NAMES:
        if name in METRICS:
            made.add(name, FORWARD, None, why=error.message)
    return record_of(
        made, trial_id=trial.id, generator=GENERATOR, duration_s=trial.duration_s, tool=(PROGRAM, "", [PROGRAM])
    )


def run_trials(trials: t.Sequence[Trial], *, spool_dir: str | None = None) -> list[Record]:
    return run_batch(trials, run_trial, failed_record, spool_dir=spool_dir)
