# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""ping's summary, as recorded from iputils 20221126."""

from __future__ import annotations

import os
import pathlib

import pytest

from ansible_collections.fastpath.bench.plugins.module_utils._common.command import CommandError
from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError, ParseError
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.ping import Wish, measure, parse_ping

FIXTURES = pathlib.Path(__file__).resolve().parents[3] / "fixtures" / "ping"


def recorded(name: str) -> str:
    return (FIXTURES / f"iputils-20221126_{name}.txt").read_text(encoding="utf-8")


def wish(**changes: object) -> Wish:
    base = {"address": "192.0.2.1", "count": 5, "interval_s": 0.01, "size_bytes": 56, "bind": None}
    return Wish(**{**base, "reply_timeout_s": 1.0, "time_limit_s": 5.0, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "counts", "times"),
    [
        ("ok", (200, 200, 0), (0.024, 0.035, 0.073, 0.004)),
        ("ipv6", (3, 3, 0), (0.027, 0.042, 0.062, 0.014)),
        ("adaptive_pace", (3, 3, 0), (0.004, 0.010, 0.023, 0.008)),
        # nothing came back: there is no time, and 0 would be the best of all
        ("silence", (5, 0, 0), (None, None, None, None)),
        ("errors", (3, 0, 3), (None, None, None, None)),
    ],
)
def test_recorded(name: str, counts: tuple[int, ...], times: tuple[float | None, ...]) -> None:
    trips = parse_ping(recorded(name))
    assert (trips.transmitted, trips.received, trips.errors) == counts
    assert (trips.min_ms, trips.mean_ms, trips.max_ms, trips.mdev_ms) == times
    assert trips.loss_ratio == 1 - counts[1] / counts[0]


def test_some_lost_and_some_twice() -> None:
    text = recorded("ok").replace("200 received, 0%", "150 received, +7 duplicates, +2 errors, 25%")
    trips = parse_ping(text)
    assert (trips.received, trips.duplicates, trips.errors, trips.loss_ratio) == (150, 7, 2, 0.25)


def test_carriage_returns() -> None:
    assert parse_ping(recorded("ok").replace("\n", "\r\n")) == parse_ping(recorded("ok"))


@pytest.mark.parametrize(
    "text",
    [
        "",
        recorded("ok").split("---")[0],
        recorded("ok").split("rtt")[0],
        recorded("ok") * 2,
        recorded("ok").replace("200 received", "201 received"),
        recorded("ok").replace("200 received", "100 received"),
        recorded("ok").replace("0.024/0.035", "0.074/0.035"),
        recorded("ok").replace("0.024", "nan"),
        recorded("silence") + "rtt min/avg/max/mdev = 0.000/0.000/0.000/0.000 ms\n",
        # busybox has no deviation and other words
        "3 packets transmitted, 3 packets received, 0% packet loss\nround-trip min/avg/max = 0.045/0.065/0.099 ms\n",
    ],
)
def test_what_is_no_whole_summary_is_refused(text: str) -> None:
    with pytest.raises(ParseError):
        parse_ping(text)


def test_nothing_sent_is_no_loss() -> None:
    assert parse_ping("0 packets transmitted, 0 received\n").loss_ratio is None


@pytest.mark.parametrize(
    "changes", [{"count": 0}, {"interval_s": 0.0}, {"interval_s": float("nan")}, {"size_bytes": 8}, {"address": "-f"}]
)
def test_impossible_options(changes: dict[str, object]) -> None:
    with pytest.raises(BenchError):
        wish(**changes).check()


def script(folder: pathlib.Path, text: str, status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    file = folder / "ping"
    lines = ["#!/bin/sh", "cat <<'E'", f"{text}E", f'echo "$*" > {folder}/words']
    lines += [f"[ {status} = 2 ] && echo 'ping: no' >&2", f"exit {status}", ""]
    file.write_text("\n".join(lines), encoding="utf-8")
    file.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


def test_the_record(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script(tmp_path, recorded("ok"), 0, monkeypatch)
    record = measure(wish(bind="192.0.2.9"))
    assert (record["status"], record["code"], record["mean_ms"], record["loss_ratio"]) == ("ok", None, 0.035, 0)
    assert record["started"] <= record["ended"]
    words = (tmp_path / "words").read_text(encoding="utf-8").strip()
    assert words == "-q -n -c 5 -i 0.01 -s 56 -W 1 -I 192.0.2.9 192.0.2.1"


def test_the_record_of_silence(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script(tmp_path, recorded("silence"), 1, monkeypatch)
    record = measure(wish())
    assert (record["status"], record["code"], record["mean_ms"], record["loss_ratio"]) == (
        "failed",
        "no_reply",
        None,
        1,
    )


def test_a_ping_that_did_not_run_is_an_error(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script(tmp_path, "", 2, monkeypatch)
    with pytest.raises(CommandError, match="ping: no"):
        measure(wish())
