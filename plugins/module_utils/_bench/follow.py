# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Following a batch of trials while it runs: what to ask the client, when, and what to tell a person."""

from __future__ import annotations

import json
import shlex
import time
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._bench.run import clock_text

_MARK = "==fastpath-bench=="
#: After a trial is due, how often to look for it.
_LATE_S = 0.3


def spool_command(spool: str, missing: t.Iterable[str], job_file: str) -> str:
    """One shell command: prints each spooled trial that is new, then whether the module has ended.

    The end is looked at first, so that a trial spooled right before it is not missed.
    """
    files = " ".join(shlex.quote(f"{spool}/{name}.json") for name in missing)
    job = shlex.quote(job_file)
    return (
        f"if grep -qE '\"finished\": *(1|true)|\"(changed|failed|msg)\":' {job} 2>/dev/null; then e=1; else e=0; fi; "
        f"for f in {files}; do if [ -f \"$f\" ]; then echo {_MARK}; cat \"$f\"; echo; fi; done; "
        f"echo {_MARK}; echo ended=$e"
    )


def read_spool_output(text: str) -> tuple[list[dict[str, t.Any]], bool]:
    """The records that :func:`spool_command` printed, and whether the module has ended."""
    records = []
    ended = False
    for part in map(str.strip, text.split(_MARK)):
        if part.startswith("ended="):
            ended = part.startswith("ended=1")
        elif part:
            records.append(json.loads(part))
    return records, ended


def next_look_s(trial: t.Mapping[str, t.Any], since: float, now: float) -> float:
    """Seconds to wait: till the trial can be over, then at short intervals."""
    options = trial["options"]
    due: float = since + options["duration_s"] + options["warmup_s"] + 0.15
    return max(due - now, _LATE_S)


def failed_record(trial: t.Mapping[str, t.Any], code: str, reason: str) -> dict[str, t.Any]:
    """The record of a trial that did not happen."""
    now = time.time()
    return {
        "id": trial["id"],
        "status": "failed",
        "code": code,
        "reason": reason,
        "started": now,
        "ended": now,
        "window": None,
        "duration_s": None,
        "tries": 0,
        "tool": {"name": None, "version": None, "command": None},
        "metrics": {},
        "intervals": [],
        "findings": [],
        "raw": {},
    }


_SCALES = ((1e9, "G"), (1e6, "M"), (1e3, "k"))


def figure_text(metric: t.Mapping[str, t.Any] | None) -> str:
    if not metric or metric.get("value") is None:
        return "no figure"
    value, unit = float(metric["value"]), str(metric["unit"])
    for scale, letter in _SCALES:
        if abs(value) >= scale:
            return f"{value / scale:.3g} {letter}{unit}"
    return f"{value:.3g} {unit}"


#: What the client shows in place of what only the server knows.
_SENT = {"goodput": "sent_rate", "forwarding_rate": "sent_packet_rate"}


def _figure(metrics: t.Mapping[str, t.Any], headline: str) -> str:
    if (metrics.get(headline) or {}).get("value") is not None:
        return figure_text(metrics[headline])
    name, _sep, direction = headline.rpartition("_")
    if direction == "total":
        ways = (f"{way} {_figure(metrics, f'{name}_{way}')}" for way in ("forward", "reverse"))
        return ", ".join(ways)
    sent = metrics.get(f"{_SENT.get(name, '')}_{direction}") or {}
    return f"sent {figure_text(sent)}" if sent.get("value") is not None else figure_text(None)


class Progress:
    """One line for each finished trial: which of how many, its figure, and the time left."""

    def __init__(self, batch: t.Mapping[str, t.Any], headlines: t.Mapping[str, str]) -> None:
        self._number = int(batch.get("first", 1)) - 1
        self._total = int(batch.get("total", len(batch["trials"])))
        self._left_after_s = float(batch.get("left_after_s", 0.0))
        self._todo = {trial["id"]: trial for trial in batch["trials"]}
        self._headlines = headlines

    def line(self, record: t.Mapping[str, t.Any]) -> str:
        trial = self._todo.pop(record["id"])
        self._number += 1
        left = self._left_after_s + sum(
            other["options"]["duration_s"] + other["options"]["warmup_s"] + 0.4 for other in self._todo.values()
        )
        if record["status"] == "ok":
            text = _figure(record["metrics"], self._headlines.get(trial["point_id"], ""))
        else:
            text = f"{record['status']}: {record['reason']}"
        return f"  [{self._number}/{self._total}] {record['id']}: {text}; about {clock_text(left)} left"
