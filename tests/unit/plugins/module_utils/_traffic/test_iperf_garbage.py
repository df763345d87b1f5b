# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""No text, truncated, changed or made up, yields a wrong figure or an exception that is not ours."""

from __future__ import annotations

import typing as t

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from iperf_cases import CASES, FIXTURES, Case, text

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._traffic import iperf2, iperf3
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.record import Measurement
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.steady import Figures, Window, figures

RELAXED = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)


def read(case: Case, content: str, *, ended: bool) -> Measurement:
    end = "server" if ".server." in case.file else "client"
    if case.file.startswith("iperf3"):
        return iperf3.parse(content, end=end, interval_s=case.window.interval_s)
    return iperf2.parse(content, end=end, interval_s=case.window.interval_s, ended=ended)


def attempt(case: Case, content: str, *, ended: bool = False) -> Figures | None:
    """The figures, or None if the report is refused for a reason that is ours."""
    try:
        return figures(read(case, content, ended=ended), case.direction, case.role, case.window, peer_report=case.peer)
    except BenchError:
        return None


def same(found: Figures, whole: Figures) -> bool:
    """Equal, or unknown where the whole text knows."""
    # a stream's own final row stands in for the tool's sum that is not there yet
    if abs(found.rate_bps - whole.rate_bps) > 0.1 * whole.rate_bps:
        return False
    pairs = ((getattr(found, n), getattr(whole, n)) for n in ("packets", "lost", "retransmits", "out_of_order"))
    return all(mine is None or mine == full for mine, full in pairs)


@pytest.mark.parametrize(
    "case", CASES, ids=lambda case: f"{case.file}-{case.direction}-{case.role}-{case.window.warmup_s}"
)
def test_no_prefix_yields_a_wrong_figure(case: Case) -> None:
    content = text(case.file)
    whole = attempt(case, content, ended=True)
    assert whole is not None
    refused = 0
    # each line's end and the middle of each line; every character would only repeat the same lines
    places = {place + offset for place, char in enumerate(content) if char == "\n" for offset in (-7, 0, 1, 9)}
    for place in sorted(p for p in places if 0 <= p < len(content)):
        found = attempt(case, content[:place])
        if found is None:
            refused += 1
        else:
            assert same(found, whole), f"cut at {place}: {found}"
    assert refused


def test_every_single_prefix_of_one_report() -> None:
    for name in ("iperf-2.1.8_udp_p2.server.txt", "iperf3-3.12_udp0.json", "iperf-2.2.0_csv_tcp.client.txt"):
        case = next(case for case in CASES if case.file == name)
        content = text(name)
        whole = attempt(case, content, ended=True)
        assert whole is not None
        for place in range(len(content)):
            found = attempt(case, content[:place])
            assert found is None or same(found, whole), f"{name} cut at {place}"


def any_parser(content: str) -> t.Iterator[Measurement]:
    for end in ("client", "server"):
        for parse in (
            lambda: iperf2.parse(content, end=end, interval_s=0.5),  # noqa: B023
            lambda: iperf3.parse(content, end=end, interval_s=0.5),  # noqa: B023
        ):
            try:
                yield parse()
            except BenchError:
                continue


@RELAXED
@given(st.text(max_size=400))
def test_made_up_text_has_no_figure(content: str) -> None:
    for found in any_parser(content):
        for direction in ("forward", "reverse"):
            for role in ("sender", "receiver"):
                try:
                    assert figures(found, direction, role, Window(0, 1, 0.5)) is None
                except BenchError:
                    continue


@RELAXED
@given(st.text(alphabet='[]0123456789.-/:=SUM secBytsbit{}",\n', max_size=400))
def test_text_that_looks_like_a_report_raises_nothing_else(content: str) -> None:
    for found in any_parser(content):
        found.as_dict()


@RELAXED
@given(st.data())
def test_changed_reports_yield_no_wrong_figure(data: st.DataObject) -> None:
    """One changed digit or lost character in a row is refused, or moves the figure within the tool's own rounding."""
    case = data.draw(st.sampled_from([case for case in CASES if case.file.startswith("iperf-2.1.8") and not case.peer]))
    content = text(case.file)
    whole = attempt(case, content, ended=True)
    assert whole is not None
    places = [place for place, char in enumerate(content) if char.isdigit()]
    place = data.draw(st.sampled_from(places))
    new = data.draw(st.sampled_from(["", "0", "9", "x", "-", ".", " ", "\n"]))
    found = attempt(case, content[:place] + new + content[place + 1 :], ended=True)
    if found is not None:
        assert found.rate_bps == pytest.approx(whole.rate_bps, rel=0.03)


@RELAXED
@given(st.data())
def test_lines_lost_or_doubled_yield_no_other_total(data: st.DataObject) -> None:
    case = data.draw(st.sampled_from([case for case in CASES if case.file.startswith("iperf-2.1.8") and not case.peer]))
    lines = text(case.file).splitlines(keepends=True)
    whole = attempt(case, "".join(lines), ended=True)
    assert whole is not None
    place = data.draw(st.integers(0, len(lines) - 1))
    times = data.draw(st.sampled_from([0, 2]))
    changed = [*lines[:place], *(lines[place : place + 1] * times), *lines[place + 1 :]]
    found = attempt(case, "".join(changed), ended=True)
    if found is not None:
        assert found.rate_bps == pytest.approx(whole.rate_bps, rel=0.1)


def test_all_fixtures_are_read_without_surprise() -> None:
    for path in sorted(FIXTURES.iterdir()):
        for found in any_parser(path.read_text(encoding="utf-8")):
            assert found.tool in ("iperf2", "iperf3")
