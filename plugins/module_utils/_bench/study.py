# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The study of one kernel as a router on two kinds of machines: five topologies, power profiles, two traffic profiles,
two directions; peak and mean of each.

:func:`overrides` makes the matrix from two kinds of two hosts each. :func:`study_of` reads the run's summary and works
out the study's tables: every figure or why there is none, what the second power profile changes, one kind against
the other, and routed against direct. A difference is only ever the one that the report itself would show.
"""

from __future__ import annotations

import collections
import dataclasses
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._bench import units
from ansible_collections.fastpath.bench.plugins.module_utils._bench.shape import as_mapping
from ansible_collections.fastpath.bench.plugins.module_utils._bench.summary import (
    Comparison,
    PointSummary,
    RunSummary,
    compare,
)
from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError

SCHEMA = 1
#: Traffic profile to what it is called in the study's sentences.
TRAFFIC = {"tcp_large": "large packets", "udp_small": "small packets"}
DIRECTIONS = ("forward", "reverse")
#: Of each point: what is taken of its repetitions.
STATISTICS = ("mean", "peak")

_REFERENCE_FORM = "Write {source: text, figures: [{what: text, value: 3.0e+10, unit: bit/s}]}, or low and high of one"

#: Of many reasons, how many a sentence tells.
_REASONS_TOLD = 3

_NETWORK = "10.74.{network}.{host}/24"


@dataclasses.dataclass(frozen=True)
class Kind:
    """One of the two kinds of machines."""

    name: str
    hosts: tuple[str, str]


@dataclasses.dataclass(frozen=True)
class Layout:
    """One of the five topologies: who is client, DUT (of a routed one) and server."""

    name: str
    client: str
    server: str
    dut: str | None
    #: The topology with the same kind of endpoints and no DUT.
    direct: str | None = None


def kinds_of(raw: t.Mapping[str, t.Sequence[str]], where: str = "kinds") -> tuple[Kind, Kind]:
    """Check the two kinds.

    :raises BenchError: there are not two kinds of two hosts each, or a host is of both.
    """
    if len(raw) != 2:
        raise BenchError(
            f"there are {len(raw)} kinds of machines", where=where,
            remedy="Name two kinds with two hosts each, as {server: [a, b], desktop: [c, d]}",
        )  # fmt: skip
    seen: set[str] = set()
    kinds = []
    for name, hosts in raw.items():
        two = isinstance(hosts, (list, tuple)) and len(hosts) == 2 and all(isinstance(host, str) for host in hosts)
        if not two or hosts[0] == hosts[1]:
            raise BenchError(
                "the study takes two different hosts of each kind", where=f"{where}.{name}", remedy="Name two hosts"
            )
        twice = seen & set(hosts)
        if twice:
            raise BenchError(f"{', '.join(twice)} is of both kinds", where=f"{where}.{name}", remedy="Name it once")
        seen |= set(hosts)
        kinds.append(Kind(str(name), (str(hosts[0]), str(hosts[1]))))
    return kinds[0], kinds[1]


def layouts(kinds: tuple[Kind, Kind]) -> list[Layout]:
    """The five topologies of the study."""
    one, two = kinds
    same = [Layout(f"{k.name}_to_{k.name}", k.hosts[0], k.hosts[1], None) for k in kinds]
    return [
        *same,
        Layout(f"{one.name}_to_{two.name}", one.hosts[0], two.hosts[0], None),
        Layout(f"{one.name}_routes", two.hosts[0], two.hosts[1], one.hosts[0], same[1].name),
        Layout(f"{two.name}_routes", one.hosts[0], one.hosts[1], two.hosts[0], same[0].name),
    ]


def overrides(
    kinds: tuple[Kind, Kind],
    interfaces: t.Mapping[str, t.Sequence[str]],
    powers: t.Sequence[str],
    *,
    repeats: int,
    mtu_bytes: int,
    seed: int = 1,
) -> dict[str, t.Any]:
    """What is laid over the inventory's variables: ``bench_topologies`` and ``bench_matrix``.

    :param interfaces: by host, its interface in the first network and the one in the second.
    :raises BenchError: a host has not two interfaces, or a power profile is named twice.
    """
    for host in (host for kind in kinds for host in kind.hosts):
        names = interfaces.get(host) or ()
        if not isinstance(names, (list, tuple)) or len(names) != 2 or names[0] == names[1]:
            raise BenchError(
                f"{host} needs an interface in each of the two networks", where=f"interfaces.{host}",
                remedy=f"Name two, as {{{host}: [eth1, eth2]}}",
            )  # fmt: skip
    if not powers or len(set(powers)) != len(powers):
        raise BenchError(
            "no power profile, or one of them twice", where="powers", remedy="Name them, as [dynamic, static_high]"
        )

    def end(part: str, host: str, network: int, last: int) -> dict[str, t.Any]:
        address = _NETWORK.format(network=network, host=last)
        return {"part": part, "interface": interfaces[host][network - 1], "addresses": [address]}

    topologies = {}
    for layout in layouts(kinds):
        parts = {"client": layout.client, "server": layout.server}
        if layout.dut is None:
            links = [[end("client", layout.client, 1, 1), end("server", layout.server, 1, 2)]]
        else:
            parts["dut"] = layout.dut
            links = [
                [end("client", layout.client, 1, 1), end("dut", layout.dut, 1, 254)],
                [end("dut", layout.dut, 2, 254), end("server", layout.server, 2, 1)],
            ]
        topologies[layout.name] = {
            "parts": parts,
            "links": [{"ends": ends, "mtu_bytes": mtu_bytes} for ends in links],
        }
    return {
        "bench_topologies": topologies,
        "bench_matrix": {
            "axes": {
                "topology": list(topologies),
                "datapath": ["kernel"],
                "power": list(powers),
                "traffic": list(TRAFFIC),
                "direction": list(DIRECTIONS),
            },
            "repeats": repeats,
            "order": "spread",
            "seed": seed,
            "baseline": {"power": powers[0]},
        },
    }


def reference_of(raw: t.Any, where: str = "reference") -> dict[str, t.Any]:
    """Check figures that are shown beside one's own, before a long run ends in them.

    :raises BenchError: one of them has no name or no number.
    """
    entry = as_mapping(raw or {}, where)
    figures = entry.get("figures") or []
    if not isinstance(figures, (list, tuple)):
        raise BenchError("it is no list", where=f"{where}.figures", remedy=_REFERENCE_FORM)
    checked = []
    for number, figure in enumerate(figures):
        place = f"{where}.figures[{number}]"
        given = dict(as_mapping(figure, place))
        names = [key for key in ("value", "low", "high") if key in given]
        if not given.get("what") or names not in (["value"], ["low", "high"]):
            raise BenchError("a figure needs a name and a number, or two", where=place, remedy=_REFERENCE_FORM)
        for name in names:
            try:
                # 30.8e9 is a text to YAML
                given[name] = float(given[name])
            except (TypeError, ValueError):
                told = f"{given[name]!r} is no number"
                raise BenchError(told, where=f"{place}.{name}", remedy=_REFERENCE_FORM) from None
        checked.append(given)
    return {**entry, **({"figures": checked} if checked else {})}


# -- what was found -----------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Cell:
    """One figure of the study, or why there is none."""

    topology: str
    power: str
    traffic: str
    direction: str
    statistic: str
    value: float | None
    unit: str
    reason: str | None

    @property
    def text(self) -> str:
        return units.human(self.value, self.unit)


@dataclasses.dataclass(frozen=True)
class Versus:
    """One comparison of the study: of what with what, and what it says."""

    what: str
    traffic: str
    found: Comparison | None
    reason: str | None

    @property
    def text(self) -> str:
        if self.found is None or self.found.figures is None:
            why = self.reason or "not known"
            return why if why.startswith(("no ", "not ")) else f"not shown: {why}"
        percent, low, high = self.found.figures
        bound = {"at_least": "at least ", "at_most": "at most "}.get(self.found.bound or "", "")
        return f"{bound}{percent:+.1f} % (95 % {low:+.1f} to {high:+.1f})"

    def as_dict(self) -> dict[str, t.Any]:
        difference = self.found.as_dict() if self.found else None
        return {"what": self.what, "traffic": self.traffic, "difference": difference, "reason": self.reason}


@dataclasses.dataclass
class Study:
    run_id: str
    kinds: tuple[Kind, Kind]
    powers: list[str]
    cells: list[Cell]
    gains: list[Versus]
    between_kinds: list[Versus]
    routed: list[Versus]
    sentences: list[str]
    reference: t.Mapping[str, t.Any]

    def as_dict(self) -> dict[str, t.Any]:
        return {
            "schema": SCHEMA,
            "run_id": self.run_id,
            "kinds": {kind.name: list(kind.hosts) for kind in self.kinds},
            "powers": self.powers,
            "cells": [dataclasses.asdict(cell) for cell in self.cells],
            "gains": [versus.as_dict() for versus in self.gains],
            "between_kinds": [versus.as_dict() for versus in self.between_kinds],
            "routed_against_direct": [versus.as_dict() for versus in self.routed],
            "sentences": self.sentences,
            "reference": dict(self.reference),
        }


def study_of(
    summary: RunSummary, kinds: tuple[Kind, Kind], powers: t.Sequence[str], reference: t.Mapping[str, t.Any]
) -> Study:
    """Work out the study's tables and sentences from a run of :func:`overrides`."""
    found = {
        (p.point["topology"], p.point.get("power", ""), p.point["traffic"], p.point["direction"]): p
        for p in summary.points
    }

    def point(topology: str, power: str, traffic: str, direction: str) -> PointSummary | None:
        return found.get((topology, power, traffic, direction))

    plans = layouts(kinds)
    ways = [(traffic, direction) for traffic in TRAFFIC for direction in DIRECTIONS]
    cells = [
        _cell(point(layout.name, power, traffic, direction), (layout.name, power, traffic, direction), statistic)
        for layout in plans
        for traffic, direction in ways
        for power in powers
        for statistic in STATISTICS
    ]

    def versus(what: str, traffic: str, ours: PointSummary | None, theirs: PointSummary | None) -> Versus:
        if ours is None or theirs is None:
            return Versus(what, traffic, None, "the run has no such point")
        comparison = compare(ours, theirs)
        return Versus(what, traffic, comparison, None if comparison.figures else comparison.reason)

    gains = [
        versus(
            f"{layout.name} {traffic} {direction}: {power} over {powers[0]}", traffic,
            point(layout.name, power, traffic, direction), point(layout.name, powers[0], traffic, direction),
        )
        for layout in plans for traffic, direction in ways for power in powers[1:]
    ]  # fmt: skip
    one, two = plans[0].name, plans[1].name
    between = [
        versus(
            f"{one} over {two} {traffic} {direction}, {power}", traffic,
            point(one, power, traffic, direction), point(two, power, traffic, direction),
        )
        for traffic, direction in ways for power in powers
    ]  # fmt: skip
    routed = [
        versus(
            f"{layout.name} over {layout.direct} {traffic} {direction}, {power}", traffic,
            point(layout.name, power, traffic, direction), point(layout.direct or "", power, traffic, direction),
        )
        for layout in plans if layout.direct for traffic, direction in ways for power in powers
    ]  # fmt: skip
    study = Study(summary.run_id, kinds, list(powers), cells, gains, between, routed, [], reference)
    emulated = sorted({p.point.get("power", "") for p in summary.points if "power_emulated" in p.findings})
    study.sentences = _sentences(study, emulated)
    return study


def _cell(point: PointSummary | None, place: tuple[str, str, str, str], statistic: str) -> Cell:
    topology, power, traffic, direction = place
    if point is None:
        return Cell(topology, power, traffic, direction, statistic, None, "", "the run has no such point")
    value = getattr(point.main.summary, statistic)
    reason = None
    if value is None:
        reason = point.reason or "its value is not known"
    return Cell(topology, power, traffic, direction, statistic, value, point.main.unit, reason)


def _sentences(study: Study, emulated: t.Sequence[str]) -> list[str]:
    (first, second), cells, powers = study.kinds, study.cells, study.powers
    plans = layouts(study.kinds)
    lines = [_count_of(cells)]
    if emulated:
        lines.append(
            f"{' and '.join(emulated)}: set in emulators of a BMC, which keep what they are told and set no CPU: their "
            "figures show that the study runs, and nothing of power"
        )
    for traffic, called in TRAFFIC.items():
        if len(powers) > 1:
            lines.append(_range_of(f"{called}, {' and '.join(powers[1:])} over {powers[0]}", traffic, study.gains))
        between = f"{called}, {first.name} over {second.name} (both ends of a kind)"
        lines.append(_range_of(between, traffic, study.between_kinds))
        lines.append(_range_of(f"{called}, through a router over direct", traffic, study.routed))
        for title, those in (
            ("direct", {layout.name for layout in plans if layout.dut is None}),
            ("routed", {layout.name for layout in plans if layout.dut is not None}),
        ):
            peaks = [
                c for c in cells
                if c.traffic == traffic and c.statistic == "peak" and c.topology in those and c.value is not None
            ]  # fmt: skip
            if peaks:
                best = max(peaks, key=lambda cell: cell.value or 0.0)
                where = f"{best.topology}, {best.power}, {best.direction}"
                lines.append(f"best peak {title}, {called}: {best.text} ({where})")
    drawn = [versus for versus in (*study.gains, *study.between_kinds, *study.routed) if _was_drawn(versus)]
    if drawn:
        # each has an interval that misses the truth one time in twenty
        lines.append(
            f"of the {len(drawn)} comparisons made, about {len(drawn) * 0.05:.0f} would show a difference by chance "
            "alone: take a single one for a hint, and many that agree for a result"
        )
    return lines


def _was_drawn(versus: Versus) -> bool:
    return versus.found is not None and versus.found.difference.percent is not None


def _count_of(cells: list[Cell]) -> str:
    known = sum(cell.value is not None for cell in cells)
    text = f"{known} of {len(cells)} figures were measured"
    reasons: dict[str, int] = {}
    for cell in cells:
        if cell.value is None:
            reasons[str(cell.reason)] = reasons.get(str(cell.reason), 0) + 1
    if not reasons:
        return text
    return f"{text}; the others were not: " + "; ".join(f"{reason} ({count})" for reason, count in reasons.items())


def _range_of(title: str, traffic: str, of: list[Versus]) -> str:
    those = [versus for versus in of if versus.traffic == traffic]
    shown = [(versus.found.figures, versus) for versus in those if versus.found and versus.found.figures]
    if not shown:
        why = collections.Counter(versus.text.removeprefix("not shown: ") for versus in those)
        told = "; ".join(f"{reason} ({count})" for reason, count in why.most_common(_REASONS_TOLD))
        return f"{title}: no difference is shown in any of {len(those)} comparisons: {told}"
    figures = sorted((figure, versus.text) for figure, versus in shown if figure is not None)
    ends = figures[0][1] if len(figures) == 1 else f"from {figures[0][1]} to {figures[-1][1]}"
    return f"{title}: {ends}; shown in {len(shown)} of {len(those)} comparisons"


# -- as text ------------------------------------------------------------------------------------------------------


def markdown(study: Study) -> str:
    """``study.md``: the sentences, every cell, the comparisons, and the published figures beside them."""
    lines = [f"# One kernel, two kinds of machines: {study.run_id}", ""]
    lines += [f"- {_text(sentence)}" for sentence in study.sentences]
    lines += ["", "## Every figure", ""]
    heads = ["topology", "traffic", "direction"]
    heads += [f"{power} {statistic}" for power in study.powers for statistic in STATISTICS]
    reasons = list(dict.fromkeys(cell.reason for cell in study.cells if cell.reason))
    lines += _table([*heads, "why not"], [_figures(study, place, reasons) for place in _places(study)])
    lines += ["", *(f"{number}. {_text(reason)}" for number, reason in enumerate(reasons, start=1))] if reasons else []
    for title, those in (
        (f"What each power profile changes against {study.powers[0]}", study.gains),
        ("One kind against the other", study.between_kinds),
        ("Routed against direct", study.routed),
    ):
        if those:
            lines += ["", f"## {title}", ""]
            lines += _table(
                ["of what", "difference of the geometric means"], [[versus.what, versus.text] for versus in those]
            )
    if study.reference.get("figures"):
        lines += ["", "## Published figures, of other hardware", "", _text(str(study.reference.get("source", ""))), ""]
        lines += _table(
            ["what", "published"],
            [[str(figure["what"]), _published(figure)] for figure in study.reference["figures"]],
        )
        published, here = study.reference.get("published"), len(study.reference["figures"])
        if study.reference.get("complete") is False:
            lines += ["", f"Of the {published} figures published, {here} that sum them up are here."]
        lines += ["", "They were measured on other machines: a difference to them says nothing of either."]
    return "\n".join(lines) + "\n"


def _places(study: Study) -> list[tuple[str, str, str]]:
    return list(dict.fromkeys((cell.topology, cell.traffic, cell.direction) for cell in study.cells))


def _figures(study: Study, place: tuple[str, str, str], reasons: list[str]) -> list[str]:
    those = [cell for cell in study.cells if (cell.topology, cell.traffic, cell.direction) == place]
    why = dict.fromkeys(f"{cell.power}: {reasons.index(cell.reason) + 1}" for cell in those if cell.reason)
    return [*place, *(cell.text for cell in those), ", ".join(why)]


def _published(figure: t.Mapping[str, t.Any]) -> str:
    values = [figure[key] for key in ("value", "low", "high") if key in figure]
    unit = str(figure.get("unit", ""))
    texts = [f"{value:+g} %" if unit == "percent" else units.human(float(value), unit) for value in values]
    return " to ".join(texts)


def _table(heads: t.Sequence[str], rows: t.Iterable[t.Sequence[str]]) -> list[str]:
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    lines += ["| " + " | ".join(_text(value) for value in row) + " |" for row in rows]
    return lines


def _text(value: str) -> str:
    return " ".join(value.split()).replace("|", "\\|").replace("<", "&lt;")
