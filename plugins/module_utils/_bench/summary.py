# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From the trials on disk to what each point and the whole run say.

Trials are read one at a time and only their figures are kept, so that a run of many thousand trials needs little
memory. Everything the report prints is in :class:`RunSummary`; the report adds nothing of its own but form.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import statistics
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._bench import findings, observed, stats, units
from ansible_collections.fastpath.bench.plugins.module_utils._bench.findings import Finding, PointView, RunView
from ansible_collections.fastpath.bench.plugins.module_utils._bench.store import SCHEMA, RunStore, Unreadable
from ansible_collections.fastpath.bench.plugins.module_utils._common.metric import METRICS, metric_key

#: The value of an axis that means nothing at a point, such as the datapath where there is no DUT.
NONE = "none"

OK, PARTIAL, FAILED, INVALID, SKIPPED, MISSING = "ok", "partial", "failed", "invalid", "skipped", "missing"
#: Status of a point. ``partial``: some repetitions count, but fewer than were asked for.
STATES = (OK, PARTIAL, FAILED, INVALID, SKIPPED, MISSING)

#: Lines of evidence that are kept of a finding; how often it was seen is always counted.
EVIDENCE_KEPT = 3
POINTS_NAMED = 20
#: Nodes of VPP that are kept of a trial, those that took the most clocks.
NODES_KEPT = 3


@dataclasses.dataclass(frozen=True)
class DutFigures:
    """What the report shows of one DUT in one trial."""

    frames_per_s: float | None = None
    mean_frame_bytes: float | None = None
    busiest_cpu: str | None = None
    busiest_share: float | None = None
    busiest_kind: str | None = None
    vpp: observed.VppUse | None = None


@dataclasses.dataclass(frozen=True)
class TrialRow:
    """One repetition's last attempt, as far as the report needs it."""

    repetition: int
    attempt: int
    status: str
    code: str | None
    reason: str | None
    started: float | None
    duration_s: float | None
    headline: float | None
    peak: float | None
    dut: t.Mapping[str, DutFigures]

    @property
    def counts(self) -> bool:
        """Whether it is one of the n: measured well, and its headline is known."""
        return self.status == OK and self.headline is not None


@dataclasses.dataclass
class Noticed:
    """A finding with all it was seen at."""

    code: str
    severity: str
    level: str
    remedy: str
    evidence: list[str] = dataclasses.field(default_factory=list)
    points: list[str] = dataclasses.field(default_factory=list)
    count: int = 0

    def add(self, evidence: str, point_id: str | None = None) -> None:
        self.count += 1
        # Points that are added to one after the other: looking at the last one is enough.
        if point_id is not None and (not self.points or self.points[-1] != point_id):
            self.points.append(point_id)
        if evidence and evidence not in self.evidence and len(self.evidence) < EVIDENCE_KEPT:
            self.evidence.append(evidence)

    def as_dict(self) -> dict[str, t.Any]:
        return dataclasses.asdict(self)


@dataclasses.dataclass(frozen=True)
class MetricSummary:
    """One metric of a point over its repetitions."""

    unit: str
    layer: str | None
    direction: str
    kind: str
    summary: stats.Summary

    def as_dict(self) -> dict[str, t.Any]:
        return {
            "unit": self.unit,
            "layer": self.layer,
            "direction": self.direction,
            "kind": self.kind,
            **self.summary.as_dict(),
        }


@dataclasses.dataclass(frozen=True)
class Comparison:
    """A point's headline against that of its baseline."""

    point_id: str
    label: str
    difference: stats.Difference
    shown: bool
    reason: str | None
    #: ``at_least``: the true difference lies above ci95_low; ``at_most``: below ci95_high.
    bound: str | None = None

    @property
    def figures(self) -> tuple[float, float, float] | None:
        """The difference in percent and the ends of its 95 % interval; None where it is not shown."""
        found = self.difference
        if not self.shown or found.percent is None or found.low_percent is None or found.high_percent is None:
            return None
        return found.percent, found.low_percent, found.high_percent

    def as_dict(self) -> dict[str, t.Any]:
        return {
            "point_id": self.point_id,
            "label": self.label,
            "difference_percent": self.difference.percent,
            "ci95_low_percent": self.difference.low_percent,
            "ci95_high_percent": self.difference.high_percent,
            "shown": self.shown,
            "bound": self.bound,
            "reason": self.reason,
        }


@dataclasses.dataclass
class PointSummary:
    """All that is known of a point."""

    point_id: str
    testbed: str
    point: dict[str, str]
    headline: str
    asked: int
    status: str = MISSING
    reason: str | None = "never run"
    #: Repetitions that were measured and not collected.
    waiting: int = 0
    #: Files of trials that could not be read.
    unreadable: int = 0
    trials: list[TrialRow] = dataclasses.field(default_factory=list)
    metrics: dict[str, MetricSummary] = dataclasses.field(default_factory=dict)
    values: list[float] = dataclasses.field(default_factory=list)
    findings: list[str] = dataclasses.field(default_factory=list)
    is_baseline: bool = False
    baseline: Comparison | None = None
    direct_id: str | None = None
    #: Headline median in percent of the direct path's.
    direct_percent: float | None = None

    @property
    def counted(self) -> int:
        return sum(trial.counts for trial in self.trials)

    @property
    def main(self) -> MetricSummary:
        """The headline metric; without a value its unit and layer are still those of its name."""
        found = self.metrics.get(self.headline)
        if found is not None:
            return found
        name, _sep, direction = self.headline.rpartition("_")
        unit, layer, kind = METRICS.get(name, ("", None, "derived"))
        return MetricSummary(unit, layer, "both" if direction == "total" else direction, kind, stats.Summary(n=0))

    @property
    def label(self) -> str:
        """``routed kernel tcp_large forward``."""
        return label_of(self.point)

    @property
    def at_least(self) -> bool:
        return findings.has_effect(self.findings, findings.BOUNDS) is not None

    def as_dict(self) -> dict[str, t.Any]:
        return {
            "point": self.point,
            "point_id": self.point_id,
            "testbed": self.testbed,
            "status": self.status,
            "reason": self.reason,
            "headline": self.headline,
            "asked": self.asked,
            "counted": self.counted,
            "at_least": self.at_least,
            "metrics": {name: metric.as_dict() for name, metric in sorted(self.metrics.items())},
            "is_baseline": self.is_baseline,
            "baseline": self.baseline.as_dict() if self.baseline else None,
            "direct": {"point_id": self.direct_id, "percent": self.direct_percent} if self.direct_id else None,
            "findings": self.findings,
        }


@dataclasses.dataclass
class RunSummary:
    """All that is known of a run."""

    run_id: str
    run: dict[str, t.Any]
    points: list[PointSummary]
    noticed: list[Noticed]

    @property
    def harness(self) -> dict[str, t.Any] | None:
        return self.run.get("harness")

    @functools.cached_property
    def testbeds(self) -> dict[str, list[PointSummary]]:
        return _by_testbed(self.points)

    def by_id(self, point_id: str) -> PointSummary | None:
        return next((point for point in self.points if point.point_id == point_id), None)

    def as_dict(self) -> dict[str, t.Any]:
        return {
            "schema": SCHEMA,
            "run_id": self.run_id,
            "created": self.run.get("created"),
            "finished": self.run.get("finished"),
            "points": [point.as_dict() for point in self.points],
            "findings": [noticed.as_dict() for noticed in self.noticed],
            "harness": self.harness,
        }


def label_of(point: t.Mapping[str, str]) -> str:
    return " ".join(str(value) for value in point.values() if str(value) != NONE)


# -- from trials to points ----------------------------------------------------------------------------------------


def summarise_run(store: RunStore) -> RunSummary:
    """Read a run and work out everything that can be said of it."""
    run = store.read_run()
    gathered = _Gathered(run)
    for trial in store.trials():
        gathered.add(trial)
    waiting = {(name.point_id, name.repetition) for name in store.waiting()}
    points = gathered.finish(collections.Counter(point_id for point_id, _repetition in waiting))
    _compare(run, points, gathered.noticed)
    without_direct = [
        testbed
        for testbed, members in sorted(_by_testbed(points).items())
        if any(p.point.get("datapath", NONE) != NONE for p in members)
        and all(p.point.get("datapath", NONE) != NONE for p in members)
    ]
    view = RunView(
        run=run,
        missing_points=[point.point_id for point in points if point.status == MISSING],
        unreadable=gathered.unreadable,
        without_direct=without_direct,
        waiting=len(waiting),
    )
    for entry in run.get("findings") or ():
        if isinstance(entry, t.Mapping) and entry.get("code"):
            gathered.noticed.add(Finding(
                str(entry["code"]), str(entry.get("severity") or findings.WARNING),
                str(entry.get("evidence") or ""), str(entry.get("remedy") or ""),
            ), findings.RUN)  # fmt: skip
    for entry in findings.rules(findings.RUN):
        for finding in entry.findings(view):
            gathered.noticed.add(finding, findings.RUN)
    return RunSummary(store.run_id, run, points, gathered.noticed.ordered())


class _NoticedBy:
    """Findings by code, as they come in."""

    def __init__(self) -> None:
        self._by_code: dict[tuple[str, str], Noticed] = {}

    def add(self, finding: Finding, level: str, point: PointSummary | None = None) -> None:
        key = (finding.code, level)
        if key not in self._by_code:
            self._by_code[key] = Noticed(finding.code, finding.severity, level, finding.remedy)
        entry = self._by_code[key]
        if findings.SEVERITIES.index(finding.severity) < findings.SEVERITIES.index(entry.severity):
            entry.severity = finding.severity
        entry.add(finding.evidence, point.point_id if point else None)
        if point is not None and finding.code not in point.findings:
            point.findings.append(finding.code)

    def ordered(self) -> list[Noticed]:
        """The worst first, then as the registry has them, then codes that a generator brought."""
        place = {code: number for number, code in enumerate(findings.REGISTRY)}
        return sorted(
            self._by_code.values(),
            key=lambda n: (findings.SEVERITIES.index(n.severity), place.get(n.code, len(place)), n.code),
        )


class _Series:
    """One metric's values over the repetitions of a point."""

    __slots__ = ("direction", "kind", "layer", "peaks", "unit", "values")

    def __init__(self, entry: t.Mapping[str, t.Any]) -> None:
        self.unit = str(entry.get("unit", ""))
        self.layer: str | None = entry.get("layer")
        self.direction = str(entry.get("direction", ""))
        self.kind = str(entry.get("kind", ""))
        self.values: list[float] = []
        self.peaks: list[float] = []

    def add(self, entry: t.Mapping[str, t.Any]) -> None:
        value, peak = entry.get("value"), entry.get("peak")
        if isinstance(value, (int, float)):
            self.values.append(value)
        if isinstance(peak, (int, float)):
            self.peaks.append(peak)


class _Gathered:
    """Trials as they are read, one by one."""

    def __init__(self, run: t.Mapping[str, t.Any]) -> None:
        self.run = run
        self.noticed = _NoticedBy()
        self.unreadable: list[tuple[str, str]] = []
        self.points: dict[str, PointSummary] = {
            str(point_id): PointSummary(
                point_id=str(point_id),
                testbed=str(planned.get("testbed", "")),
                point={str(axis): str(value) for axis, value in (planned.get("point") or {}).items()},
                headline=str(planned.get("headline", "")),
                asked=repeats_of(run, str(planned.get("testbed", ""))),
            )
            for point_id, planned in (run.get("points") or {}).items()
        }
        self.series: dict[str, dict[str, _Series]] = {}

    def add(self, trial: t.Mapping[str, t.Any] | Unreadable) -> None:
        if isinstance(trial, Unreadable):
            self.unreadable.append((f"trials/{trial.name.filename}", trial.why))
            if trial.name.point_id in self.points:
                self.points[trial.name.point_id].unreadable += 1
            return
        point = self.points.get(trial["point_id"])
        if point is None:
            # Measured, but not in run.json: shown all the same, as nothing that was measured is dropped in silence.
            point = PointSummary(
                trial["point_id"],
                str(trial.get("testbed", "")),
                {str(axis): str(value) for axis, value in (trial.get("point") or {}).items()},
                str(trial.get("headline", "")),
                repeats_of(self.run, str(trial.get("testbed", ""))),
            )
            self.points[point.point_id] = point
        view = findings.TrialView(trial)
        assessment = findings.assess(trial, view)
        for finding in assessment.findings:
            rule = findings.REGISTRY.get(finding.code)
            self.noticed.add(finding, rule.level if rule else findings.TRIAL, point)
        headline = trial["metrics"].get(point.headline) or {}
        point.trials.append(
            TrialRow(
                repetition=int(trial["repetition"]),
                attempt=int(trial.get("attempt", 1)),
                status=assessment.status,
                code=assessment.code,
                reason=assessment.reason,
                started=trial.get("started"),
                duration_s=trial.get("duration_s"),
                headline=headline.get("value"),
                peak=headline.get("peak"),
                dut=_dut_figures(view),
            )
        )
        if assessment.status != OK:
            return
        series = self.series.setdefault(point.point_id, {})
        for name, entry in (*trial["metrics"].items(), *_vpp_metrics(view)):
            if isinstance(entry, t.Mapping):
                series.setdefault(str(name), _Series(entry)).add(entry)

    def finish(self, waiting: t.Mapping[str, int]) -> list[PointSummary]:
        for point in self.points.values():
            point.waiting = waiting.get(point.point_id, 0)
            point.trials.sort(key=lambda trial: trial.repetition)
            point.asked = max(point.asked, len(point.trials))
            for name, series in self.series.get(point.point_id, {}).items():
                point.metrics[name] = MetricSummary(
                    series.unit, series.layer, series.direction, series.kind,
                    stats.summarise(series.values, series.peaks),
                )  # fmt: skip
            main = self.series.get(point.point_id, {}).get(point.headline)
            point.values = main.values if main else []
            point.status, point.reason = _state(point)
        return list(self.points.values())


def repeats_of(run: t.Mapping[str, t.Any], testbed: str) -> int:
    """How many repetitions were asked for: testbeds may have matrices of their own."""
    return int(_matrix_of(run, testbed).get("repeats") or run.get("repeats") or 1)


def _matrix_of(run: t.Mapping[str, t.Any], testbed: str) -> t.Mapping[str, t.Any]:
    details = (run.get("testbeds") or {}).get(testbed) or {}
    own = details.get("matrix") if isinstance(details, t.Mapping) else None
    return own if isinstance(own, t.Mapping) else run


def _state(point: PointSummary) -> tuple[str, str | None]:
    statuses = [trial.status for trial in point.trials]
    if not statuses:
        return MISSING, _why_missing(point, point.asked)
    if point.counted == point.asked:
        return OK, None
    reasons: dict[str, int] = {}
    for trial in point.trials:
        if trial.counts:
            continue
        text = f"{trial.status}: {trial.reason or trial.code or 'no reason was given'}"
        if trial.status == OK:
            text = f"{point.headline} is not known"
        reasons[text] = reasons.get(text, 0) + 1
    never = point.asked - len(statuses)
    if never:
        reasons[f"{MISSING}: {_why_missing(point, never)}"] = never
    reason = "; ".join(f"{text} ({count} of {point.asked})" for text, count in reasons.items())
    if point.counted:
        return PARTIAL, reason
    # Nothing counts: the worst that happened names the point.
    return next((state for state in (FAILED, INVALID, SKIPPED) if state in statuses), INVALID), reason


def _why_missing(point: PointSummary, missing: int) -> str:
    if point.unreadable:
        return f"{min(point.unreadable, missing)} measured, and the file cannot be read (unreadable_trial)"
    if not point.waiting:
        return "never run"
    return f"{min(point.waiting, missing)} measured and not collected yet: resume the run"


def _dut_figures(view: findings.TrialView) -> dict[str, DutFigures]:
    figures = {}
    for host, use in view.dut.items():
        cpu, ingress = use.busiest_cpu, use.ingress
        figures[host] = DutFigures(
            frames_per_s=use.rx_frames_per_s,
            mean_frame_bytes=ingress.mean_rx_frame_bytes if ingress else None,
            busiest_cpu=cpu.cpu if cpu else None,
            busiest_share=cpu.busy if cpu else None,
            busiest_kind=cpu.kind if cpu else None,
            vpp=dataclasses.replace(use.vpp, nodes=use.vpp.costly_nodes[:NODES_KEPT]) if use.vpp else None,
        )
    return figures


def median_dut(point: PointSummary) -> dict[str, DutFigures]:
    """Per DUT the medians over the trials that count; the busiest CPU is that of the busiest trial."""
    hosts = sorted({host for trial in point.trials for host in trial.dut})
    result = {}
    for host in hosts:
        seen = [trial.dut[host] for trial in point.trials if trial.counts and host in trial.dut]
        if not seen:
            continue
        busiest = max(seen, key=lambda figures: figures.busiest_share or 0)
        result[host] = dataclasses.replace(
            busiest,
            frames_per_s=_median(figures.frames_per_s for figures in seen),
            mean_frame_bytes=_median(figures.mean_frame_bytes for figures in seen),
        )
    return result


def _vpp_metrics(view: findings.TrialView) -> list[tuple[str, dict[str, t.Any]]]:
    """VPP's figures as metrics of the trial: of the busiest thread, with several DUTs of the fullest one."""
    threads = [use.vpp.busiest for use in view.dut.values() if use.vpp]
    fullest = max((one for one in threads if one), key=lambda one: one.vectors_per_call or 0, default=None)
    if fullest is None:
        return []
    return [
        (
            metric_key(name, view.direction),
            {"value": value, "unit": "count", "layer": None, "direction": view.direction, "kind": "derived"},
        )
        for name, value in (
            ("vpp_vectors_per_call", fullest.vectors_per_call),
            ("vpp_clocks_per_packet", fullest.clocks_per_packet),
        )
    ]


def median_vpp(point: PointSummary) -> dict[str, observed.VppUse]:
    """Per DUT what VPP did in the trial with the median of vectors per call, with the drops of all that count."""
    result = {}
    for host in sorted({host for trial in point.trials for host in trial.dut}):
        figures = [trial.dut[host].vpp for trial in point.trials if trial.counts and host in trial.dut]
        seen = [use for use in figures if use is not None]
        if not seen:
            continue
        known = sorted((use for use in seen if use.busiest), key=_fullness)
        dropped = [use.dropped for use in seen if use.dropped is not None]
        result[host] = dataclasses.replace(
            known[(len(known) - 1) // 2] if known else seen[0],
            dropped=sum(dropped) if dropped else None,
            lost=_added(use.lost for use in seen),
            reasons=_added(use.reasons for use in seen),
        )
    return result


def _fullness(use: observed.VppUse) -> float:
    return (use.busiest.vectors_per_call or 0) if use.busiest else 0


def _added(parts: t.Iterable[t.Mapping[tuple[str, str], int]]) -> dict[tuple[str, str], int]:
    total: dict[tuple[str, str], int] = {}
    for part in parts:
        for key, count in part.items():
            total[key] = total.get(key, 0) + count
    return dict(sorted(total.items(), key=lambda item: (-item[1], item[0])))


def _median(values: t.Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def _by_testbed(points: t.Iterable[PointSummary]) -> dict[str, list[PointSummary]]:
    grouped: dict[str, list[PointSummary]] = {}
    for point in points:
        grouped.setdefault(point.testbed, []).append(point)
    return grouped


# -- comparisons --------------------------------------------------------------------------------------------------


class Partners:
    """Finds a point by axis values, where an axis that means nothing at a point (``none``) fits any value.

    Points are kept by which of their axes mean something, so that a run of thousands of points is searched at once.
    """

    def __init__(self, points: t.Iterable[PointSummary]) -> None:
        self._by_axes: dict[tuple[str, ...], dict[tuple[str, ...], list[PointSummary]]] = {}
        for point in points:
            axes = tuple(axis for axis, value in point.point.items() if value != NONE)
            values = tuple(point.point[axis] for axis in axes)
            self._by_axes.setdefault(axes, {}).setdefault(values, []).append(point)

    def find(self, wanted: t.Mapping[str, str], ignore: str | None = None) -> list[PointSummary]:
        """All points that fit; the one that fits in most axes first."""
        found: list[PointSummary] = []
        for axes, by_values in sorted(self._by_axes.items(), key=lambda item: -len(item[0])):
            if any(axis not in wanted for axis in axes):
                continue
            if ignore is None or ignore not in axes:
                found += by_values.get(tuple(wanted[axis] for axis in axes), [])
                continue
            place = axes.index(ignore)
            rest = tuple(wanted[axis] for axis in axes if axis != ignore)
            found += [p for values, ps in by_values.items() if values[:place] + values[place + 1 :] == rest for p in ps]
        return found


def _compare(run: t.Mapping[str, t.Any], points: list[PointSummary], noticed: _NoticedBy) -> None:
    """Point-level findings, and each point against the direct path and against its baseline."""
    planned = run.get("points") or {}
    for testbed, members in _by_testbed(points).items():
        directs = Partners(p for p in members if p.point.get("datapath", NONE) == NONE)
        everyone = Partners(members)
        by_id = {point.point_id: point for point in members}
        baseline = _matrix_of(run, testbed).get("baseline") or run.get("baseline")
        for point in members:
            direct = None
            if point.point.get("datapath", NONE) != NONE:
                named = (planned.get(point.point_id) or {}).get("direct")
                found = [by_id[named]] if named in by_id else directs.find(point.point, ignore="topology")
                # Several direct paths and none named: which one has the same endpoints is not known.
                direct = found[0] if len(found) == 1 else None
            _notice_point(point, direct, noticed)
        for point in members:
            if isinstance(baseline, t.Mapping) and baseline:
                _against_baseline(point, {str(a): str(v) for a, v in baseline.items()}, everyone)


def _notice_point(point: PointSummary, direct: PointSummary | None, noticed: _NoticedBy) -> None:
    if direct is not None:
        point.direct_id = direct.point_id
        ours, theirs = point.main.summary.median, direct.main.summary.median
        if ours is not None and theirs:
            point.direct_percent = 100 * ours / theirs
    losses = [m.summary.mean for name, m in point.metrics.items() if name.startswith("frame_loss_ratio_")]
    known_losses = [loss for loss in losses if loss is not None]
    view = PointView(
        point=point.point,
        asked=point.asked,
        counted=point.counted,
        unit=point.main.unit,
        headline=point.main.summary,
        loss_ratio=max(known_losses, default=None),
        offered_limited=any(
            name.startswith("offered_rate_") and metric.summary.n for name, metric in point.metrics.items()
        ),
        direct_id=point.direct_id,
        direct=direct.main.summary if direct else None,
        vpp=median_vpp(point),
    )
    for entry in findings.rules(findings.POINT):
        for finding in entry.findings(view):
            noticed.add(finding, findings.POINT, point)


def _against_baseline(point: PointSummary, baseline: t.Mapping[str, str], everyone: Partners) -> None:
    found = everyone.find({**point.point, **baseline})
    if not found:
        return
    other = found[0]
    if other is point:
        point.is_baseline = True
        return
    point.baseline = compare(point, other)


def compare(point: PointSummary, other: PointSummary) -> Comparison:
    """A point's headline against that of another one, and whether the evidence carries a difference."""
    differing = {axis: value for axis, value in other.point.items() if point.point.get(axis) != value}
    label = label_of(differing) or other.label
    reason = None
    if not point.values or not other.values:
        which = point if not point.values else other
        reason = f"{'this point' if which is point else 'the baseline'} has no result ({which.status})"
    elif point.main.unit != other.main.unit:
        reason = f"{point.main.unit} cannot be compared with {other.main.unit}"
    if reason is not None:
        return Comparison(other.point_id, label, stats.Difference.unknown(reason), False, reason)
    return _judged(point, other, label, stats.difference(point.values, other.values))


def _judged(point: PointSummary, other: PointSummary, label: str, difference: stats.Difference) -> Comparison:
    """Whether the evidence carries the difference, and in which sense."""
    reason, bound = difference.reason, None
    apart = {axis for axis in (*point.point, *other.point) if point.point.get(axis) != other.point.get(axis)}
    blocked = findings.has_effect((*point.findings, *other.findings), findings.BLOCKS, apart)
    if blocked:
        reason = f"not shown: finding {blocked}"
    elif point.at_least or other.at_least:
        reason, bound = _bounded(point, other, difference)
    return Comparison(other.point_id, label, difference, shown=reason is None, reason=reason, bound=bound)


def _bounded(point: PointSummary, other: PointSummary, difference: stats.Difference) -> tuple[str | None, str | None]:
    """Why a difference is not shown when a side is a lower bound, or which bound it is itself."""
    low, high = difference.low_percent, difference.high_percent
    if point.at_least and other.at_least:
        return "not shown: the endpoints are the limit on both sides (endpoint_limited)", None
    if point.at_least:
        if low is not None and low > 0:
            return None, "at_least"
        value = units.human(point.main.summary.median, point.main.unit)
        return f"not shown: the endpoints are the limit, the DUT carries at least {value}", None
    if high is not None and high < 0:
        return None, "at_most"
    return "not shown: the endpoints are the limit at the baseline (endpoint_limited)", None
