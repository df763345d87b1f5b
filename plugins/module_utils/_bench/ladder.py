# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ladder of IPsec tuning: each step is a point, and is compared with the step before it.

:func:`overrides` makes the matrix; :func:`ladder_of` reads the run's summary and tells of each step what it brought, or
why it was skipped, or why no difference is shown, with the findings that explain it.
"""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._bench import units
from ansible_collections.fastpath.bench.plugins.module_utils._bench.summary import (
    Comparison,
    PointSummary,
    RunSummary,
    compare,
)
from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError

SCHEMA = 1
AXIS = "step"
DATAPATH = "ipsec"
AS_FOUND = "as_found"


@dataclasses.dataclass(frozen=True)
class Step:
    """One step, in the words of the role's variables; all steps set the same ones."""

    name: str
    mode: str = "route"
    esp: tuple[str, ...] = ("aes128gcm16",)
    tunnels: int = 1
    outer_pairs: int = 1
    rps: bool = False
    #: power, reserved: under which of the caller's power profiles
    power: str | None = None


STEPS = (
    Step("policy_cbc_sha1", mode="policy", esp=("aes128-sha1",)),
    Step("route_cbc_sha1", esp=("aes128-sha1",)),
    Step("route_gcm"),
    Step("rps", rps=True),
    Step("ecmp4", rps=True, tunnels=4),
    Step("outer_pairs", rps=True, tunnels=4, outer_pairs=4),
    Step("power", rps=True, tunnels=4, outer_pairs=4, power="power"),
    Step("reserved", rps=True, tunnels=4, outer_pairs=4, power="reserved"),
)
NAMES = tuple(step.name for step in STEPS)


@dataclasses.dataclass(frozen=True)
class Asked:
    """What a caller asks for."""

    topology: str
    traffic: str
    direction: str
    repeats: int
    rps: str
    #: power, reserved -> name of a power profile; empty skips the step
    powers: t.Mapping[str, str]
    #: step -> why it is left out
    skip: t.Mapping[str, str]
    #: interleaved: each repetition takes all steps, so that drift is not taken for what a step brings; spread: each
    #: step is set up once
    order: str = "interleaved"


def skipped(asked: Asked, topologies: t.Mapping[str, t.Any]) -> dict[str, str]:
    """The steps that are left out, with the reason.

    :raises BenchError: a step is named that does not exist, or the topology is not one of two gateways.
    """
    for name, why in asked.skip.items():
        if name not in NAMES:
            raise BenchError(f"there is no step {name!r}", where="skip", remedy=f"Steps are: {', '.join(NAMES)}")
        if not str(why).strip():
            raise BenchError(f"step {name} is skipped without a reason", where=f"skip.{name}", remedy="Write why")
    if asked.topology not in topologies:
        raise BenchError(
            f"there is no topology {asked.topology!r}", where="topology",
            remedy=f"bench_topologies has: {', '.join(topologies) or 'none'}",
        )  # fmt: skip
    pairs = _outer_pairs(topologies[asked.topology])
    found = {name: str(why) for name, why in asked.skip.items()}
    for step in STEPS:
        if step.name in found:
            continue
        if step.name == "rps" and not asked.rps:
            found[step.name] = "no CPUs are named for it (ipsec_ladder_rps: 0-3)"
        elif step.power is not None and not asked.powers.get(step.power):
            found[step.name] = f"no power profile is named for it (ipsec_ladder_{step.power})"
        elif step.name == "outer_pairs" and pairs < step.outer_pairs:
            found[step.name] = (
                f"the gateways have {pairs} pair{'s' if pairs != 1 else ''} of addresses on the link between them, and "
                f"it needs {step.outer_pairs}"
            )
    return found


def _outer_pairs(topology: t.Mapping[str, t.Any]) -> int:
    """How many IPv4 addresses both gateways have on the link between them."""
    parts = sorted(str(part) for part in topology.get("parts") or {} if str(part).startswith("dut"))
    if len(parts) != 2:
        raise BenchError(
            f"the topology has {len(parts)} DUTs",
            where="topology",
            remedy="The ladder needs two gateways, dut1 and dut2",
        )
    for link in topology.get("links") or ():
        ends = {str(end.get("part")): end.get("addresses") or [] for end in link.get("ends") or ()}
        if set(ends) == set(parts):
            return min(sum(":" not in str(address) for address in addresses) for addresses in ends.values())
    return 0


def overrides(asked: Asked, topologies: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """What is laid over the inventory's variables."""
    left_out = skipped(asked, topologies)
    steps = [step for step in STEPS if step.name not in left_out]
    if not steps:
        raise BenchError("all steps are skipped", where="skip")
    # without several pairs the steps behind go on as far as the ladder came
    pairs = 1 if "outer_pairs" in left_out else 4
    values = {
        step.name: {
            "ipsec_mode": step.mode,
            "ipsec_esp": list(step.esp),
            "ipsec_tunnels": step.tunnels,
            "ipsec_outer_pairs": min(step.outer_pairs, pairs),
            "kernel_router_rps": asked.rps if step.rps and "rps" not in left_out else "",
        }
        for step in steps
    }
    common = {"topology": [asked.topology], "datapath": [DATAPATH], "traffic": [asked.traffic]}
    plain = [step.name for step in steps if step.power is None]
    powered = [step for step in steps if step.power is not None]
    axes: dict[str, t.Any] = {**common, "direction": [asked.direction], AXIS: list(values)}
    matrix: dict[str, t.Any] = {"axes": axes, "repeats": asked.repeats, "order": asked.order}
    if powered:
        of_step = {**dict.fromkeys(plain, AS_FOUND), **{step.name: asked.powers[step.power or ""] for step in powered}}
        axes["power"] = list(dict.fromkeys(of_step.values()))
        matrix["exclude"] = [
            {AXIS: name, "power": [power for power in axes["power"] if power != own]}
            for name, own in of_step.items()
            if len(axes["power"]) > 1
        ]
    return {"bench_axes": {AXIS: {"level": "setup", "values": values}}, "bench_matrix": matrix}


@dataclasses.dataclass(frozen=True)
class Rung:
    """What became of one step."""

    step: str
    status: str
    reason: str | None
    median: float | None
    peak: float | None
    unit: str
    before: str | None
    comparison: Comparison | None
    findings: tuple[str, ...]

    def as_dict(self) -> dict[str, t.Any]:
        return {
            **{name: getattr(self, name) for name in ("step", "status", "reason", "median", "peak", "unit", "before")},
            "comparison": self.comparison.as_dict() if self.comparison else None,
            "findings": list(self.findings),
        }


def told_of(trials: t.Iterable[t.Mapping[str, t.Any]]) -> dict[str, list[str]]:
    """By point, what was noticed in its trials, each once for each host or direction that it tells of."""
    told: dict[str, list[str]] = {}
    for trial in trials:
        lines = told.setdefault(str(trial.get("point_id")), [])
        for finding in trial.get("findings") or ():
            line = f"{finding.get('code')}: {finding.get('evidence')}"
            whose, colon, _rest = str(finding.get("evidence")).partition(": ")
            begin = f"{finding.get('code')}: {whose + colon if colon else ''}"
            if not any(other.startswith(begin) for other in lines):
                lines.append(line)
    return told


def ladder_of(
    run: RunSummary, left_out: t.Mapping[str, str], told: t.Mapping[str, t.Sequence[str]] | None = None
) -> list[Rung]:
    """Each step in its order, compared with the nearest one before it that was measured.

    :param told: by point, what was noticed, as :func:`told_of` gives it.
    """
    points = {point.point.get(AXIS): point for point in run.points}
    rungs: list[Rung] = []
    before: PointSummary | None = None
    for name in NAMES:
        point = points.get(name)
        if point is None:
            why = left_out.get(name, "it is not in this run")
            rungs.append(Rung(name, "skipped", why, None, None, "", None, None, ()))
            continue
        measured = bool(point.values)
        main = point.main
        rungs.append(
            Rung(
                step=name,
                status=point.status,
                reason=point.reason,
                median=main.summary.median,
                peak=main.summary.peak,
                unit=main.unit,
                before=before.point[AXIS] if before else None,
                comparison=compare(point, before) if before and measured else None,
                findings=tuple((told or {}).get(point.point_id, ())),
            )
        )
        if measured:
            before = point
    return rungs


def markdown(run_id: str, rungs: t.Sequence[Rung]) -> str:
    """The ladder for a person."""
    lines = [
        f"# IPsec ladder, run {run_id}",
        "",
        "Each step is compared with the one before it that was measured.",
        "",
        "| step | median | peak | against | difference (95 %) |",
        "|---|---|---|---|---|",
    ]
    for rung in rungs:
        if rung.median is None:
            lines.append(f"| {rung.step} | {rung.status}: {rung.reason or 'no figure'} | | | |")
            continue
        peak = units.human(rung.peak, rung.unit) if rung.peak is not None else ""
        median = units.human(rung.median, rung.unit)
        lines.append(f"| {rung.step} | {median} | {peak} | {rung.before or ''} | {_difference(rung)} |")
    for rung in rungs:
        if rung.findings:
            lines += ["", f"## {rung.step}", "", *(f"- {finding}" for finding in rung.findings)]
    return "\n".join(lines) + "\n"


def _difference(rung: Rung) -> str:
    if rung.comparison is None:
        return ""
    figures = rung.comparison.figures
    if figures is None:
        return rung.comparison.reason or "not shown"
    percent, low, high = figures
    gain = "" if low > 0 or high < 0 else ", no difference is certain"
    return f"{percent:+.1f} % ({low:+.1f} to {high:+.1f}){gain}"
