# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The page of the playbook impairment: TCP by loss and delay as measured, in the curves of what models expect."""

from __future__ import annotations

import statistics
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._bench import tcp_model, units
from ansible_collections.fastpath.bench.plugins.module_utils._bench.report import charts
from ansible_collections.fastpath.bench.plugins.module_utils._bench.report.markup import Child, Markup, tag
from ansible_collections.fastpath.bench.plugins.module_utils._bench.report.style import STYLE
from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError

Row = t.Mapping[str, t.Any]
#: The first colour is for what stands apart from a series.
_FIRST_SERIES = 1
#: The curves go on a little to both sides of what was measured.
_BEYOND = 1.25
#: When every point lost nothing, or the same.
_NARROW = 4.0


def page(rows: t.Sequence[Row], *, mss_bytes: int, bandwidth_bps: float, about: t.Sequence[str]) -> str:
    """One file that needs no network.

    :param rows: of :func:`tcp_model.expected`.
    :param about: sentences that stand above all else.
    """
    title = "TCP by loss and delay"
    body = tag(
        "main",
        tag("h1", title),
        *(tag("p", text) for text in about),
        _chart(rows, mss_bytes, bandwidth_bps),
        tag("h2", "Every point"),
        _table(rows),
        tag("h2", "What the models are"),
        tag(
            "p",
            f"Both are for one connection with segments of {mss_bytes} bytes, and are cut at "
            f"{units.human(bandwidth_bps, 'bit/s')}. Solid: CUBIC by RFC 9438. Broken: Reno by Mathis and others. "
            "Where the round trip is short, they are one line. "
            "They know of no time-outs, which are frequent from a few percent of loss on, so less than they expect is "
            "no fault there.",
        ),
    )
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name_="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", http_equiv="Content-Security-Policy", content="default-src 'none'; style-src 'unsafe-inline'"),
        tag("meta", name_="color-scheme", content="light dark"),
        tag("title", title),
        tag("style", Markup(STYLE)),
    )
    return f"<!DOCTYPE html>\n{tag('html', head, tag('body', body), lang='en')}\n"


def _chart(rows: t.Sequence[Row], mss_bytes: int, bandwidth_bps: float) -> Child:
    lossy = sorted({row["loss_ratio"] for row in rows if row["loss_ratio"]})
    if not lossy:
        return tag("p", "No point lost anything, so there is nothing to draw.")
    ends = (lossy[0] / _BEYOND, lossy[-1] * _BEYOND)
    # what lost nothing has no place on a logarithmic axis, so it stands left of all
    none_at = lossy[0] / (_NARROW if len(lossy) == 1 else min(_NARROW, lossy[1] / lossy[0]))
    ticks = {none_at: "none", **{loss: f"{loss * 100:g} %" for loss in lossy}}
    made = []
    for number, delay in enumerate(sorted({row["delay_ms"] for row in rows})):
        those = [row for row in rows if row["delay_ms"] == delay]
        lines = _lines(those, mss_bytes=mss_bytes, bandwidth_bps=bandwidth_bps, losses=ends)
        series = (_FIRST_SERIES + number) % charts.SERIES
        made.append(charts.Curve(f"{delay:g} ms delay", series, lines, _dots(those, none_at)))
    try:
        drawn = charts.curves("tcp", ("packets lost", "goodput of one connection"), "bit/s", ticks, made)
    except BenchError as error:
        return tag("p", f"Not drawn: {error.message}")
    legend = [tag("span", tag("span", class_=f"swatch s{one.series}"), f" {one.label}; ") for one in made]
    return [tag("p", legend, "Dots are measured, lines are expected."), tag("figure", drawn)]


def _lines(
    rows: t.Sequence[Row], *, mss_bytes: int, bandwidth_bps: float, losses: tuple[float, float]
) -> list[tuple[t.Sequence[tuple[float, float]], bool]]:
    times = [row["rtt_ms"] for row in rows if row["rtt_ms"]]
    if not times:
        return []
    rtt_s = statistics.median(times) / 1000
    models = ((tcp_model.cubic_bps, False), (tcp_model.mathis_bps, True))
    return [
        (tcp_model.curve(model, mss_bytes=mss_bytes, rtt_s=rtt_s, bandwidth_bps=bandwidth_bps, losses=losses), broken)
        for model, broken in models
    ]


def _dots(rows: t.Sequence[Row], none_at: float) -> list[tuple[float, float, str]]:
    return [
        (row["loss_ratio"] or none_at, row["goodput_bps"], _title(row))
        for row in rows
        if row["status"] == "ok" and row["goodput_bps"]
    ]


def _title(row: Row) -> str:
    return f"{row['delay_ms']:g} ms, {row['loss_ratio'] * 100:g} % lost: {units.human(row['goodput_bps'], 'bit/s')}"


def _table(rows: t.Sequence[Row]) -> Markup:
    heads = [*("delay", "lost", "round trip", "goodput", "of the one without loss"), *("Mathis", "measured to Mathis")]
    heads += ["CUBIC", "retransmits", ""]
    return tag(
        "table",
        tag("thead", tag("tr", [tag("th", text) for text in heads])),
        tag("tbody", [tag("tr", [tag("td", text, class_="n") for text in _cells(row)]) for row in rows]),
    )


def _cells(row: Row) -> list[str]:
    def rate(name: str) -> str:
        return units.human(row.get(name), "bit/s")

    def part(name: str, form: str) -> str:
        return "-" if row.get(name) is None else form.format(row[name])

    return [
        f"{row['delay_ms']:g} ms",
        f"{row['loss_ratio']:.2%}",
        part("rtt_ms", "{:.2f} ms"),
        rate("goodput_bps"),
        part("left_ratio", "{:.1%}"),
        rate("mathis_bps"),
        part("to_mathis", "{:.2f}"),
        rate("cubic_bps"),
        part("retransmits", "{:.0f}"),
        "" if row["status"] == "ok" else str(row["reason"]),
    ]
