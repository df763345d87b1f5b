# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""report.html: one file that needs no network, reads in dark and light, and prints."""

from __future__ import annotations

import datetime
import json
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._bench import findings, units
from ansible_collections.fastpath.bench.plugins.module_utils._bench import summary as summaries
from ansible_collections.fastpath.bench.plugins.module_utils._bench.report import charts, layout, verdict
from ansible_collections.fastpath.bench.plugins.module_utils._bench.report.markup import Child, Markup, join, tag
from ansible_collections.fastpath.bench.plugins.module_utils._bench.report.style import STYLE
from ansible_collections.fastpath.bench.plugins.module_utils._bench.summary import (
    OK,
    PARTIAL,
    MetricSummary,
    PointSummary,
    RunSummary,
    TrialRow,
)

#: What keeps the page usable when a run has thousands of points. All of it is in summary.csv and in trials/.
CHARTS_SHOWN = 16
BARS_PER_CHART = 30
SENTENCES_SHOWN = 30
TRIALS_SHOWN = 1500
METRIC_ROWS_SHOWN = 1500
OPEN_GROUPS = 12


def render(summary: RunSummary, *, with_charts: bool = True) -> str:
    title = f"fastpath.bench {summary.run_id}"
    body = tag(
        "main",
        _header(summary),
        _verdict(summary),
        _results(summary, with_charts=with_charts),
        _dut(summary),
        _vpp(summary),
        _troubles(summary),
        _other_metrics(summary),
        _trials(summary),
        _conduct(summary),
        _words(),
    )
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name_="viewport", content="width=device-width, initial-scale=1"),
        # Whatever a name in the results might hold: the page can load nothing and run nothing.
        tag("meta", http_equiv="Content-Security-Policy", content="default-src 'none'; style-src 'unsafe-inline'"),
        tag("meta", name_="color-scheme", content="light dark"),
        tag("title", title),
        tag("style", Markup(STYLE)),
    )
    return f"<!DOCTYPE html>\n{tag('html', head, tag('body', body), lang='en')}\n"


# -- sections -----------------------------------------------------------------------------------------------------


def _header(summary: RunSummary) -> Markup:
    run = summary.run
    states = verdict.counts(summary)
    trials = sum(len(point.trials) for point in summary.points)
    harness = summary.harness or {}
    facts: list[tuple[str, Child]] = [
        ("Started", _time(run.get("created"))),
        ("Ended", _time(run.get("finished")) if run.get("finished") else "not ended"),
        ("Testbeds", ", ".join(summary.testbeds) or units.UNKNOWN),
        ("Points", f"{len(summary.points):,} ({', '.join(f'{n:,} {state}' for state, n in states.items())})"),
        ("Trials", f"{trials:,}"),
    ]
    if harness.get("harness_s_per_trial") is not None:
        facts.append(
            ("Harness time", tag("span", f"{harness['harness_s_per_trial']:.2f} s a trial",
                                 title="run wall time minus traffic time, divided by trials"))
        )  # fmt: skip
    return tag(
        "header",
        tag("p", "fastpath.bench report", class_="eyebrow"),
        tag("h1", summary.run_id),
        tag("dl", [tag("div", tag("dt", name), tag("dd", value)) for name, value in facts], class_="facts"),
    )


def _verdict(summary: RunSummary) -> Markup:
    several = len(summary.testbeds) > 1
    points = layout.ordered(summary)
    shown = points[:SENTENCES_SHOWN]
    left = len(points) - len(shown)
    cannot = verdict.cannot_carry(summary)
    return _section(
        "verdict",
        "What these numbers can and cannot carry",
        tag(
            "div",
            tag("div", tag("h3", "Can"), _list(verdict.can_carry(summary)), class_="card can"),
            tag(
                "div",
                tag("h3", "Cannot"),
                _list(cannot) if cannot else tag("p", "No finding limits them."),
                class_="card cannot",
            ),
            class_="cards",
        ),
        _findings(summary),
        tag("h3", "In one sentence each"),
        _list((verdict.sentence(point, with_testbed=several) for point in shown), class_="sentences"),
        tag("p", f"{left:,} more points are in the tables below.", class_="note") if left > 0 else None,
    )


def _findings(summary: RunSummary) -> Child:
    if not summary.noticed:
        return tag("p", "There is no finding.")
    rows = []
    for noticed in summary.noticed:
        rule = findings.REGISTRY.get(noticed.code)
        more = noticed.count - len(noticed.evidence)
        evidence: list[Child] = [tag("div", line) for line in noticed.evidence]
        if more > 0:
            evidence.append(tag("div", f"seen {noticed.count:,} times in all", class_="note"))
        rows.append(
            [
                tag("td", tag("span", noticed.severity, class_=f"badge {noticed.severity}")),
                tag("td", tag("code", noticed.code, title=rule.meaning if rule else None)),
                tag("td", evidence),
                tag("td", _where(noticed)),
                tag("td", noticed.remedy),
            ]
        )
    return [
        tag("h3", "Findings"),
        _table(["Severity", "Code", "Evidence", "Where", "What to do"], rows, class_="findings", text=True),
    ]


def _where(noticed: summaries.Noticed) -> Child:
    if not noticed.points:
        return "the run"
    names = noticed.points[: summaries.POINTS_NAMED]
    more = len(noticed.points) - len(names)
    listed = "\n".join(names) + (f"\nand {more} more" if more > 0 else "")
    if len(noticed.points) == 1:
        return names[0]
    return tag("span", f"{len(noticed.points):,} points", title=listed, class_="hint")


def _results(summary: RunSummary, *, with_charts: bool) -> Markup:
    colours = layout.series(summary)
    found = layout.groups(summary)
    several = len(summary.testbeds) > 1
    content: list[Child] = []
    drawn = 0
    for number, group in enumerate(found):
        heading = f"{group.testbed}: {group.traffic}" if several else group.traffic
        parts: list[Child] = []
        if with_charts and drawn < CHARTS_SHOWN:
            drawn += 1
            shown = group.points[:BARS_PER_CHART]
            parts.append(
                tag("figure", charts.bars(f"c{number}", group.metric, group.points[0].main.unit,
                                          [_bar(group, point, colours) for point in shown]))
            )  # fmt: skip
            if len(shown) < len(group.points):
                parts.append(
                    tag("p", f"The chart shows the first {len(shown)} of {len(group.points):,} points; "
                        "the table has them all.", class_="note")
                )  # fmt: skip
        parts.append(_points_table(group))
        content.append(
            tag(
                "details",
                tag("summary", tag("span", heading, class_="h3"), " ", tag("span", group.metric, class_="note")),
                parts,
                open=number < OPEN_GROUPS,
                class_="group",
            )
        )
    notes: list[Child] = [
        tag("p", "A bar reaches to the median; each dot is one trial, the first repetition above, the last below. "
            "Hold the pointer on a number for its exact value.", class_="note")
    ]  # fmt: skip
    if with_charts and len(found) > drawn:
        notes.append(
            tag("p", f"Charts are drawn for the first {drawn} of {len(found)} kinds of traffic; "
                "the tables have all points.", class_="note")
        )  # fmt: skip
    if not with_charts:
        notes.append(tag("p", "Charts were turned off for this report.", class_="note"))
    return _section("results", "Results", notes, _legend(colours) if with_charts else None, content)


def _legend(colours: t.Mapping[str, int]) -> Child:
    if len(colours) > charts.SERIES:
        return None  # colours repeat: the labels say it better
    items = [tag("li", tag("i", "", class_=f"swatch s{number}"), " ", name) for name, number in colours.items()]
    return tag("ul", items, class_="legend")


def _bar(group: layout.Group, point: PointSummary, colours: t.Mapping[str, int]) -> charts.Bar:
    unit = point.main.unit
    median = point.main.summary.median
    number = colours[layout.path_name(point)]
    dots = [
        (trial.headline, f"repetition {trial.repetition}: {units.exact(trial.headline, unit)}")
        for trial in point.trials
        if trial.counts and trial.headline is not None
    ]
    note = ("≥ " if point.at_least else "") + units.human(median, unit) if median is not None else point.status
    return charts.Bar(
        label=group.label(point),
        median=median,
        dots=dots,
        title=verdict.sentence(point),
        series=0 if number == 0 else 1 + (number - 1) % (charts.SERIES - 1),
        note=note,
        block=point.point.get("direction", ""),
    )


def _points_table(group: layout.Group) -> Markup:
    heads: list[str | tuple[str, ...]] = [
        "Point", ("Median", "n"), ("Min", "n"), ("Max", "n"), ("Peak", "n", "highest interval of the steady window"),
        ("Mean", "n"), ("95 % of the mean", "n", "Student's t"),
        ("Spread", "n", "standard deviation divided by mean"), ("n", "n", "repetitions that count, of those asked for"),
        ("Against the baseline", "", "ratio of geometric means, 95 % interval by Welch's t"),
        ("Direct path", "n", "the same traffic without the DUT"), "State",
    ]  # fmt: skip
    rows = []
    for point in group.points:
        main, stats = point.main, point.main.summary
        interval = (
            tag("span", _interval(main), title=f"{units.exact(stats.ci95_low, main.unit)} to "
                f"{units.exact(stats.ci95_high, main.unit)}")
            if stats.ci95_low is not None
            else units.UNKNOWN
        )  # fmt: skip
        rows.append(
            [
                tag("th", group.label(point), scope="row", title=point.point_id),
                tag("td", "≥ " if point.at_least else None, _value(stats.median, main), class_="n strong"),
                *(tag("td", _value(x, main), class_="n") for x in (stats.min, stats.max, stats.peak, stats.mean)),
                tag("td", interval, class_="n"),
                tag("td", units.spread(stats.cv), class_="n"),
                tag("td", f"{stats.n} of {point.asked}" if stats.n != point.asked else str(stats.n), class_="n"),
                tag("td", _against(point), class_="against"),
                tag("td", _direct(point), class_="n"),
                tag("td", _state(point)),
            ]
        )
    return _table(heads, rows)


def _interval(metric: MetricSummary) -> str:
    low, high = metric.summary.ci95_low, metric.summary.ci95_high
    if low is None or high is None:
        return units.UNKNOWN
    divisor, written = units.scale_of(max(abs(low), abs(high)), metric.unit)
    return f"{units.significant(low / divisor)} to {units.significant(high / divisor)} {written}"


def _against(point: PointSummary) -> Child:
    if point.is_baseline:
        return tag("span", "baseline", class_="note")
    if point.baseline is None:
        return units.UNKNOWN
    against = point.baseline
    figures = against.figures
    if figures is None:
        reason = (against.reason or "").removeprefix("not shown: ")
        if reason.startswith("no difference shown"):
            return tag("span", tag("b", "no difference shown"), tag("br"), reason.partition(": ")[2], class_="small")
        return tag("span", tag("b", "not shown"), tag("br"), reason, class_="small")
    if against.bound is not None:
        words = verdict.comparison(against, with_label=False).partition(" (")[0]
        return [tag("b", words), tag("div", f"against {against.label}", class_="note")]
    figure, interval = verdict.comparison_figures(*figures)
    return [tag("b", figure), f" ({interval})", tag("div", f"against {against.label}", class_="note")]


def _direct(point: PointSummary) -> Child:
    if point.direct_id is None:
        return units.UNKNOWN
    if point.direct_percent is None:
        return tag("span", "no result", class_="note", title=point.direct_id)
    return tag("span", f"{verdict.percent(point.direct_percent)} % of it", title=point.direct_id)


def _state(point: PointSummary) -> Child:
    level = {OK: "ok", PARTIAL: "warning", summaries.SKIPPED: "info", summaries.MISSING: "info"}
    badge = tag("span", point.status, class_=f"badge {level.get(point.status, 'error')}", title=point.reason)
    codes = [tag("span", code, class_="code") for code in point.findings]
    return [badge, tag("div", codes, class_="codes") if codes else None]


def _dut(summary: RunSummary) -> Child:
    rows = []
    for group in layout.groups(summary):
        for point in group.points:
            for host, seen in summaries.median_dut(point).items():
                busy = (
                    f"CPU {seen.busiest_cpu}: {100 * seen.busiest_share:.0f} %"
                    + (f", mostly {seen.busiest_kind}" if seen.busiest_kind else "")
                    if seen.busiest_share is not None
                    else units.UNKNOWN
                )
                rows.append(
                    [
                        tag("th", _full_label(summary, point), scope="row", title=point.point_id),
                        tag("td", host),
                        tag("td", _figure(seen.frames_per_s, "packet/s"), class_="n"),
                        tag("td", units.UNKNOWN if seen.mean_frame_bytes is None
                            else f"{seen.mean_frame_bytes:,.0f} bytes", class_="n"),
                        tag("td", busy),
                    ]
                )  # fmt: skip
    if not rows:
        return None
    return _section(
        "dut",
        "What the DUT saw",
        tag("p", "Counted by the DUT itself: frames received on all its sampled interfaces, acknowledgements included; "
            "the mean frame on the interface that received most bytes (L2, without FCS). A mean frame above the MTU "
            "tells segments from packets.", class_="note"),
        _table(["Point", "DUT", ("Frames received (L2)", "n"), ("Mean frame (L2)", "n"), "Busiest CPU"], rows),
    )  # fmt: skip


def _vpp(summary: RunSummary) -> Child:
    rows = [
        [
            tag("th", _full_label(summary, point), scope="row", title=point.point_id),
            tag("td", host),
            *(tag("td", cell, class_="n" if number in (1, 2) else None)
              for number, cell in enumerate(verdict.vpp_cells(use))),
        ]
        for group in layout.groups(summary)
        for point in group.points
        for host, use in summaries.median_vpp(point).items()
    ]  # fmt: skip
    if not rows:
        return None
    heads = [(head, "n") if number in (1, 2) else head for number, head in enumerate(verdict.VPP_HEADS)]
    return _section(
        "vpp",
        "What VPP did",
        tag("p", verdict.VPP_NOTE, class_="note"),
        _table(["Point", "DUT", *heads], rows, text=True),
    )


def _troubles(summary: RunSummary) -> Child:
    points = [point for point in summary.points if point.status != OK]
    if not points:
        return None
    rows = [
        [
            tag("th", _full_label(summary, point), scope="row", title=point.point_id),
            tag("td", _state(point)),
            tag("td", f"{point.counted} of {point.asked}", class_="n"),
            tag("td", point.reason),
        ]
        for point in points
    ]
    return _section(
        "troubles", "Failed, invalid, skipped and missing",
        _table(["Point", "State", ("Repetitions that count", "n"), "Why"], rows, text=True),
    )  # fmt: skip


def _other_metrics(summary: RunSummary) -> Child:
    rows: list[list[Child]] = []
    total = 0
    for group in layout.groups(summary):
        for point in group.points:
            for name, metric in sorted(point.metrics.items()):
                if name == point.headline:
                    continue
                total += 1
                if len(rows) >= METRIC_ROWS_SHOWN:
                    continue
                stats = metric.summary
                rows.append(
                    [
                        tag("th", _full_label(summary, point), scope="row", title=point.point_id),
                        tag("td", name.rpartition("_")[0].replace("_", " ")),
                        tag("td", ", ".join(filter(None, (metric.layer, metric.direction, metric.kind)))),
                        *(
                            tag("td", _value(x, metric), class_="n")
                            for x in (stats.median, stats.min, stats.max, stats.peak)
                        ),
                        tag("td", str(stats.n), class_="n"),
                    ]
                )
    if not rows:
        return None
    return _section(
        "metrics",
        "Other metrics",
        _folded(
            f"{total:,} metrics beside the headlines",
            _left_out(len(rows), total, "metrics", "summary.csv"),
            _table(
                ["Point", "Metric", "Layer, direction, kind", ("Median", "n"), ("Min", "n"), ("Max", "n"),
                 ("Peak", "n"), ("n", "n")],
                rows,
            ),
        ),
    )  # fmt: skip


def _trials(summary: RunSummary) -> Child:
    rows: list[list[Child]] = []
    total = 0
    created = summary.run.get("created")
    for points in summary.testbeds.values():
        trials = [(point, trial) for point in points for trial in point.trials]
        trials.sort(key=lambda item: (item[1].started or 0, item[0].point_id, item[1].repetition))
        total += len(trials)
        end: float | None = None
        for point, trial in trials[: max(0, TRIALS_SHOWN - len(rows))]:
            gap = trial.started - end if trial.started is not None and end is not None else None
            rows.append(_trial_row(summary, point, trial, created, gap))
            if trial.started is not None:
                end = trial.started + (trial.duration_s or 0)
    if not rows:
        return None
    return _section(
        "trials",
        "Trials",
        _folded(
            f"{total:,} trials in the order in which they ran",
            _left_out(len(rows), total, "trials", "the folder trials/"),
            _table(
                ["Point", ("Repetition", "n"), ("Attempt", "n"), "State", ("Started after", "n"), ("Traffic", "n"),
                 ("Time before it", "n", "from the end of the trial before to the start of this one"),
                 ("Headline", "n"), ("Peak", "n"), "Reason"],
                rows,
            ),
        ),
    )  # fmt: skip


def _trial_row(
    summary: RunSummary, point: PointSummary, trial: TrialRow, created: float | None, gap: float | None
) -> list[Child]:
    after = trial.started - created if trial.started is not None and created is not None else None
    level = {OK: "ok", summaries.SKIPPED: "info"}.get(trial.status, "error")
    return [
        tag("th", _full_label(summary, point), scope="row", title=point.point_id),
        tag("td", str(trial.repetition), class_="n"),
        tag("td", str(trial.attempt), class_="n"),
        tag("td", tag("span", trial.status, class_=f"badge {level}")),
        tag("td", units.seconds(after), class_="n"),
        tag("td", units.seconds(trial.duration_s), class_="n"),
        tag("td", units.seconds(gap) if gap is None or gap >= 0 else units.UNKNOWN, class_="n"),
        tag("td", _value(trial.headline, point.main), class_="n"),
        tag("td", _value(trial.peak, point.main), class_="n"),
        tag("td", trial.reason or ""),
    ]


def _conduct(summary: RunSummary) -> Markup:
    run = summary.run
    baseline = run.get("baseline")
    facts: list[tuple[str, Child]] = [
        ("Order", str(run.get("order", units.UNKNOWN))),
        ("Seed", str(run.get("seed", units.UNKNOWN))),
        ("Repetitions", str(run.get("repeats", units.UNKNOWN))),
        ("Baseline", ", ".join(f"{axis} {value}" for axis, value in baseline.items()) if baseline else "none"),
        *((name, str(version)) for name, version in sorted((run.get("versions") or {}).items())),
    ]
    cost = verdict.harness(summary)
    if cost:
        facts.append(("Harness", cost))
    fingerprints = [
        _folded(str(host), _pairs(print_), level="host")
        for host, print_ in sorted((run.get("fingerprints") or {}).items())
    ]
    return _section(
        "conduct",
        "How it was measured",
        tag("dl", [tag("div", tag("dt", name), tag("dd", value)) for name, value in facts], class_="facts"),
        _folded("The matrix as it was resolved", tag("pre", _json(run.get("matrix")))),
        tag("h3", "Fingerprints of the hosts"),
        fingerprints or tag("p", "None were taken.", class_="note"),
    )


def _words() -> Markup:
    words = [
        ("forward, reverse, both", "client to server, server to client, the sum of the two at once"),
        ("L4, L3, L2", "payload of TCP or UDP; IP packets; Ethernet frames"),
        ("peak", "the highest interval within the steady window of any trial"),
        ("spread", "standard deviation of the repetitions divided by their mean"),
        ("against the baseline", "ratio of geometric means; 95 % interval by Welch's t on logarithms. Shown when both "
         "sides have at least 2 repetitions, the interval does not hold 0, and no finding speaks against it"),
        ("at least, ≥", "the endpoints were the limit, so the true figure may be higher"),
    ]  # fmt: skip
    return _section("words", "Words", tag("dl", [join([tag("dt", a), tag("dd", b)]) for a, b in words], class_="words"))


# -- pieces -------------------------------------------------------------------------------------------------------


def _section(anchor: str, title: str, *children: Child) -> Markup:
    return tag("section", tag("h2", title), *children, id=anchor)


def _folded(title: str, *children: Child, level: str = "fold") -> Markup:
    return tag("details", tag("summary", title), *children, class_=level)


def _list(lines: t.Iterable[str], class_: str | None = None) -> Markup:
    return tag("ul", [tag("li", line) for line in lines], class_=class_)


def _table(
    heads: t.Sequence[str | tuple[str, ...]],
    rows: t.Iterable[t.Iterable[Child]],
    *,
    class_: str = "",
    text: bool = False,
) -> Markup:
    cells = []
    for head in heads:
        name, kind, title = (head, "", "") if isinstance(head, str) else (*head, "")[:3]
        cells.append(tag("th", name, scope="col", class_=kind or None, title=title or None))
    body = [tag("tr", row) for row in rows]
    table = tag("table", tag("thead", tag("tr", cells)), tag("tbody", body), class_=f"{class_}{' text' * text}".strip())
    return tag("div", table, class_="scroll")


def _figure(value: float | None, unit: str) -> Child:
    return units.UNKNOWN if value is None else tag("span", units.human(value, unit), title=units.exact(value, unit))


def _value(value: float | None, metric: MetricSummary) -> Child:
    if value is None:
        return units.UNKNOWN
    about = " ".join(filter(None, (metric.layer, metric.direction, metric.kind)))
    return tag("span", units.human(value, metric.unit), title=f"{units.exact(value, metric.unit)}, {about}")


def _full_label(summary: RunSummary, point: PointSummary) -> str:
    return f"{point.testbed}: {point.label}" if len(summary.testbeds) > 1 else point.label


def _left_out(shown: int, total: int, what: str, where: str) -> Child:
    if shown >= total:
        return None
    return tag("p", f"The first {shown:,} of {total:,} {what} are shown; {where} has them all.", class_="note")


def _pairs(value: t.Any) -> Markup:
    rows = [[tag("th", name, scope="row"), tag("td", text)] for name, text in _flat(value)]
    return _table(["What", "Value"], rows, class_="pairs", text=True)


def _flat(value: t.Any, name: str = "") -> t.Iterator[tuple[str, str]]:
    """A nested record as ``a.b.c`` and text."""
    if isinstance(value, t.Mapping) and value:
        for key, item in sorted(value.items(), key=lambda pair: str(pair[0])):
            yield from _flat(item, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list) and any(isinstance(item, (t.Mapping, list)) for item in value):
        for number, item in enumerate(value):
            yield from _flat(item, f"{name}[{number}]")
    elif isinstance(value, list):
        yield name, ", ".join(str(item) for item in value)
    else:
        yield name, "not known" if value is None else str(value)


def _json(value: t.Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


def _time(epoch_s: t.Any) -> str:
    if not isinstance(epoch_s, (int, float)):
        return units.UNKNOWN
    return datetime.datetime.fromtimestamp(epoch_s, datetime.timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")
