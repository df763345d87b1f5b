# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From a matrix to an ordered list of trials.

Pure: the same input and seed give the same plan, so a run can be resumed by
planning again and leaving out what is done. Words: see docs/matrix.md.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import keyword
import random
import re
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._bench.shape import (
    as_flag,
    as_int,
    as_list,
    as_mapping,
    as_number,
    as_text,
    known,
    only_keys,
    suggest,
)
from ansible_collections.fastpath.bench.plugins.module_utils._bench.topology import (
    Topology,
    endpoint_path,
    parse,
    resolve,
)
from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._common.metric import METRICS, metric_key

#: Axes that the engine itself knows. A change of a set-up axis changes the testbed, so it costs time.
SETUP_AXES = ("topology", "datapath", "power")
TRIAL_AXES = ("traffic", "direction")
DIRECTIONS = ("forward", "reverse", "both")
ORDERS = ("spread", "interleaved", "sequential")
#: The value of an axis that means nothing at a point, such as the datapath where there is no DUT.
NONE = "none"

MATRIX_KEYS = ("axes", "include", "exclude", "repeats", "order", "seed", "baseline")
TRAFFIC_KEYS = ("description", "generator", "headline", "options", "duration_s", "warmup_s", "interval_s", "ip_version")
DATAPATH_KEYS = ("description", "role", "vars", "addresses", "stateful", "whole_checksums")
#: Who holds the addresses of a DUT's data interfaces: its kernel, or the datapath (the kernel then has none on them).
ADDRESS_HOLDERS = ("kernel", "datapath")
POWER_KEYS = ("description", "vars", "parts")
#: Which hosts of a set-up a power profile is for.
POWER_PARTS = ("all", "duts", "endpoints")
POWER_ROLE = "fastpath.bench.power_profile"
GENERATOR_KEYS = ("description", "role", "module", "options", "vars")
AXIS_KEYS = ("description", "level", "values")
#: Options of a trial that the engine itself gives, so a value of the user's would be lost in silence.
ENGINE_OPTIONS = {
    **dict.fromkeys(("server", "bind", "bind_address"), "It follows from the addresses in bench_topologies"),
    "port": "Each trial gets a port of its own",
    "direction": "It is the axis direction",
    **dict.fromkeys(("duration_s", "warmup_s", "interval_s"), "It is a key of the traffic profile, beside options"),
}

#: The entry points that the engine uses of a role.
POWER_ENTRIES = ("apply", "verify", "restore")
DATAPATH_ENTRIES = ("apply", "verify", "observe", "remove")
#: Of a datapath that keeps state between trials: removes it before each trial, and fails when some is left.
RESET_ENTRY = "reset"
GENERATOR_ENTRIES = ("main", "serve", "collect")

FIRST_PORT = 5201
#: Above, the kernel may have given a port to somebody else.
LAST_PORT = 32767
#: One module call runs at most this much, so that what it holds is collected now and then.
BATCH_MAX_TRIALS = 50
BATCH_MAX_S = 900.0
#: What a trial may take beyond its traffic.
TRIAL_LIMIT_S = 60.0
#: Rough costs for the forecast only: measured on the lab, see docs/benchmarks.md.
FORECAST_GROUP_S = 9.0
FORECAST_TRIAL_S = 0.4

_SECRET_RE = re.compile(r"password|passwd|secret|token", re.IGNORECASE)
_NAME_RE = re.compile(r"^[A-Za-z0-9][A-Za-z0-9_.+-]*$")
_VARIABLE_RE = re.compile(r"^[A-Za-z_][A-Za-z0-9_]*$")

Point = dict[str, str]


@dataclasses.dataclass(frozen=True)
class Catalog:
    """The dictionaries that the names in a matrix refer to. All are as a user wrote them."""

    topologies: t.Mapping[str, t.Any]
    datapaths: t.Mapping[str, t.Any]
    traffic: t.Mapping[str, t.Any]
    generators: t.Mapping[str, t.Any]
    power: t.Mapping[str, t.Any] = dataclasses.field(default_factory=dict)
    axes: t.Mapping[str, t.Any] = dataclasses.field(default_factory=dict)
    duration_s: t.Any = 10
    warmup_s: t.Any = 1
    interval_s: t.Any = 0.5


class Checks:
    """What only the surroundings of a plan know of the names in it. These know nothing and refuse nothing."""

    def role(self, name: str, entries: t.Sequence[str], where: str) -> None:
        """:raises BenchError: there is no such role, or it lacks an entry point."""

    def variables(self, role: str, names: t.Collection[str], where: str) -> None:
        """:raises BenchError: one of them looks like a variable of the role, and the role has none of that name."""

    def trial(self, module: str, options: t.Mapping[str, t.Any], headline: str, where: str) -> None:
        """:raises BenchError: the generator's module would refuse these options, or cannot count the headline."""

    def unset(self, host: str, role: str, variable: str, where: str) -> t.Any:
        """What a role's variable is on a host when no set-up sets it.

        :raises BenchError: it cannot be told.
        """
        del host, role, variable, where


NO_CHECKS = Checks()


@dataclasses.dataclass(frozen=True)
class Traffic:
    """A checked traffic profile: what to send, how long, and the metric it is about."""

    name: str
    generator: str
    headline: str
    options: dict[str, t.Any]
    duration_s: float
    warmup_s: float
    interval_s: float
    ip_version: int


@dataclasses.dataclass(frozen=True)
class Axis:
    """A user's own axis: a value stands for role variables (set-up level) or generator options (trial level)."""

    name: str
    level: str
    values: dict[str, dict[str, t.Any]]


@dataclasses.dataclass(frozen=True)
class Matrix:
    axes: dict[str, tuple[str, ...]]
    points: tuple[Point, ...]
    repeats: int
    order: str
    seed: int
    baseline: dict[str, str] | None

    def as_dict(self) -> dict[str, t.Any]:
        return {
            "axes": {name: list(values) for name, values in self.axes.items()},
            "points": [dict(p) for p in self.points],
            "repeats": self.repeats,
            "order": self.order,
            "seed": self.seed,
            "baseline": self.baseline,
        }


def slug(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "-", text).strip("-") or "x"


def short_slug(text: str) -> str:
    """A slug of at most 24 characters, for names that are only a part of a file's or a unit's."""
    name = slug(text)
    return name if len(name) <= 24 else f"{name[:15]}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def point_id(testbed: str, point: Point) -> str:
    """A readable name of a point, unique in a run and usable as a file name."""
    name = ".".join([slug(testbed), *(slug(v) for v in point.values())])
    if len(name) > 150:
        name = name[:130] + "-" + hashlib.sha256(name.encode()).hexdigest()[:16]
    return name


# --------------------------------------------------------------------------- dictionaries


def _options(raw: t.Any, where: str) -> dict[str, t.Any]:
    """Options of a generator's module, as a user may give them."""
    options = as_mapping(raw, where)
    for name in options:
        if name in ENGINE_OPTIONS:
            remedy = ENGINE_OPTIONS[name]
            raise BenchError("the engine gives this option itself", where=f"{where}.{name}", remedy=remedy)
    return options


def _variables(raw: t.Any, where: str) -> dict[str, t.Any]:
    """Variables that are set on hosts."""
    variables = as_mapping(raw, where)
    for name in variables:
        if not _VARIABLE_RE.match(name) or keyword.iskeyword(name):
            raise BenchError(
                f"{name!r} cannot be the name of a variable", where=where,
                remedy="Use letters, digits and _, not starting with a digit",
            )  # fmt: skip
    return variables


def _traffic(catalog: Catalog, name: str) -> Traffic:
    where = f"bench_traffic.{name}"
    entry = as_mapping(catalog.traffic[name], where)
    only_keys(entry, TRAFFIC_KEYS, where)
    generator = known(
        entry.get("generator", ""), catalog.generators, where + ".generator", "generator in bench_generators"
    )
    headline = known(entry.get("headline", "goodput"), METRICS, where + ".headline", "metric")
    duration = as_number(entry.get("duration_s", catalog.duration_s), where + ".duration_s", above=0)
    warmup = as_number(entry.get("warmup_s", catalog.warmup_s), where + ".warmup_s", low=0)
    interval = as_number(entry.get("interval_s", catalog.interval_s), where + ".interval_s", above=0)
    if interval > duration:
        raise BenchError(
            f"an interval of {interval:g} s is longer than the measurement of {duration:g} s",
            where=where + ".interval_s",
            remedy="Give a shorter interval_s or a longer duration_s",
        )
    for key, seconds in (("duration_s", duration), ("warmup_s", warmup)):
        # a steady window is made of whole intervals
        if abs(seconds / interval - round(seconds / interval)) > 1e-6:
            raise BenchError(
                f"{seconds:g} s is no whole number of intervals of {interval:g} s",
                where=f"{where}.{key}",
                remedy="Change it or interval_s",
            )
    version = as_int(entry.get("ip_version", 4), where + ".ip_version")
    if version not in (4, 6):
        raise BenchError(f"{version} is no IP version", where=where + ".ip_version", remedy="It is 4 or 6")
    options = _options(entry.get("options", {}), where + ".options")
    return Traffic(name, generator, headline, options, duration, warmup, interval, version)


def _generator(catalog: Catalog, name: str) -> dict[str, t.Any]:
    where = f"bench_generators.{name}"
    entry = as_mapping(catalog.generators[name], where)
    only_keys(entry, GENERATOR_KEYS, where)
    return {
        **{key: as_text(entry.get(key), f"{where}.{key}") for key in ("role", "module")},
        "options": _options(entry.get("options", {}), where + ".options"),
        "vars": _variables(entry.get("vars", {}), where + ".vars"),
    }


def _datapath(catalog: Catalog, name: str) -> dict[str, t.Any]:
    if name == NONE:
        return {"role": None, "vars": {}, "addresses": "kernel", "stateful": False, "whole_checksums": False}
    where = f"bench_datapaths.{name}"
    entry = as_mapping(catalog.datapaths[name], where)
    only_keys(entry, DATAPATH_KEYS, where)
    return {
        "role": as_text(entry.get("role"), where + ".role"),
        "vars": _variables(entry.get("vars", {}), where + ".vars"),
        "addresses": known(
            entry.get("addresses", "kernel"), ADDRESS_HOLDERS, where + ".addresses", "holder of addresses"
        ),
        "stateful": as_flag(entry.get("stateful", False), where + ".stateful"),
        "whole_checksums": as_flag(entry.get("whole_checksums", False), where + ".whole_checksums"),
    }


def _power(catalog: Catalog, name: str) -> dict[str, t.Any]:
    """A power profile: variables of the role, and which hosts it is for. Its own name is the role's profile."""
    where = f"bench_power.{name}"
    entry = as_mapping(catalog.power[name] or {}, where)
    only_keys(entry, POWER_KEYS, where)
    variables = _variables(entry.get("vars", {}), where + ".vars")
    for key in variables:
        if _SECRET_RE.search(key):
            raise BenchError(
                f"{key} is a secret, and what is here is written into the results", where=where + ".vars",
                remedy="Put it in the inventory, best in a vault",
            )  # fmt: skip
    return {
        "vars": {"power_profile_name": name, **variables},
        "parts": known(entry.get("parts", "all"), POWER_PARTS, where + ".parts", "choice of hosts"),
    }


def _axes(catalog: Catalog) -> dict[str, Axis]:
    axes = {}
    if NONE in catalog.datapaths:
        raise BenchError(
            f"a datapath cannot be called {NONE!r}: a point says so where there is no DUT",
            where="bench_datapaths", remedy="Give it another name",
        )  # fmt: skip
    for name, raw in as_mapping(catalog.axes, "bench_axes").items():
        where = f"bench_axes.{name}"
        if name in SETUP_AXES + TRIAL_AXES:
            raise BenchError(f"{name!r} is an axis of the engine and cannot be defined anew", where=where)
        entry = as_mapping(raw, where)
        only_keys(entry, AXIS_KEYS, where)
        level = known(entry.get("level", "setup"), ("setup", "trial"), where + ".level", "level")
        read = _options if level == "trial" else _variables
        values = {
            key: read(value, f"{where}.values.{key}")
            for key, value in as_mapping(entry.get("values"), where + ".values").items()
        }
        if NONE in values:
            raise BenchError(
                f"a value cannot be called {NONE!r}: a point says so where an axis means nothing",
                where=where + ".values", remedy="Call it unset, off or another name",
            )  # fmt: skip
        keys = {key: set(value) for key, value in values.items()}
        union = set().union(*keys.values()) if keys else set()
        for key, have in keys.items():
            if level == "setup" and union - have:
                # a variable set at one value and not at another would keep the other value's setting
                raise BenchError(
                    f"value {key!r} does not set {', '.join(sorted(union - have))}, which another value sets",
                    where=where + ".values",
                    remedy="Each value of a set-up axis sets the same variables",
                )
        axes[name] = Axis(name, level, values)
    return axes


def _names(catalog: Catalog, own: t.Mapping[str, Axis]) -> dict[str, t.Collection[str]]:
    names: dict[str, t.Collection[str]] = {
        "topology": list(catalog.topologies),
        "datapath": [*catalog.datapaths, NONE],
        "power": list(catalog.power),
        "traffic": list(catalog.traffic),
        "direction": DIRECTIONS,
    }
    names.update({name: list(axis.values) for name, axis in own.items()})
    return names


# --------------------------------------------------------------------------- matrix


def _value_list(raw: t.Any, where: str) -> list[t.Any]:
    return as_list(raw, where) if isinstance(raw, t.Sequence) and not isinstance(raw, (str, bytes)) else [raw]


def _axis_values(name: str, raw: t.Any, where: str, names: t.Mapping[str, t.Collection[str]]) -> tuple[str, ...]:
    if name not in names:
        raise BenchError(f"there is no axis {name!r}", where=where, remedy=suggest(name, names))
    values = []
    for number, value in enumerate(_value_list(raw, f"{where}.{name}")):
        at = f"{where}.{name}[{number}]"
        if isinstance(value, bool):
            # YAML 1.1 reads a bare on or off as a truth value
            raise BenchError(f"YAML read a bare on, off, yes or no as {value}", where=at, remedy="Put it in quotes")
        text = known(value, names[name], at, f"{name}")
        if text in values:
            raise BenchError(f"{text!r} is listed twice", where=at)
        if not _NAME_RE.match(text):
            raise BenchError(f"{text!r} is no usable name", where=at, remedy="Use letters, digits, _ . + and -")
        values.append(text)
    if not values:
        raise BenchError("the axis has no value", where=f"{where}.{name}")
    return tuple(values)


def parse_matrix(raw: t.Any, catalog: Catalog, topologies: t.Mapping[str, Topology]) -> Matrix:
    """Check ``bench_matrix`` and expand it to its points.

    :raises BenchError: with the key that is wrong and what would be right.
    """
    where = "bench_matrix"
    entry = as_mapping(raw, where)
    only_keys(entry, MATRIX_KEYS, where)
    own = _axes(catalog)
    names = _names(catalog, own)
    raw_axes = as_mapping(entry.get("axes"), where + ".axes")
    for needed in ("topology", "traffic"):
        if needed not in raw_axes:
            remedy = suggest(needed, names[needed])
            raise BenchError(f"axis {needed!r} is missing", where=where + ".axes", remedy=remedy)
    axes = {name: _axis_values(name, values, where + ".axes", names) for name, values in raw_axes.items()}
    axes.setdefault("datapath", ("kernel",) if "kernel" in catalog.datapaths else (NONE,))
    axes.setdefault("direction", ("forward",))
    order_of_axes = [a for a in ("topology", "datapath", "power", "traffic", "direction") if a in axes]
    axes = {name: axes[name] for name in order_of_axes + [a for a in axes if a not in order_of_axes]}

    points = [dict(zip(axes, combination)) for combination in itertools.product(*axes.values())]
    for number, raw_rule in enumerate(as_list(entry.get("exclude", []), where + ".exclude")):
        rule = _rule(raw_rule, f"{where}.exclude[{number}]", axes, names)
        left = [p for p in points if not all(p[a] in values for a, values in rule.items())]
        if len(left) == len(points):
            raise BenchError(
                "this exclude matches no point",
                where=f"{where}.exclude[{number}]",
                remedy="Take it out, or name values that the axes have",
            )
        points = left
    for number, raw_rule in enumerate(as_list(entry.get("include", []), where + ".include")):
        rule = _rule(raw_rule, f"{where}.include[{number}]", axes, names)
        full = {a: rule.get(a, values) for a, values in axes.items()}
        points.extend(dict(zip(full, combination)) for combination in itertools.product(*full.values()))

    normalised: dict[tuple[str, ...], Point] = {}
    for point in points:
        fitted = _fit(point, topologies, own, catalog)
        normalised.setdefault(tuple(fitted.values()), fitted)
    if not normalised:
        raise BenchError("no point is left", where=where, remedy="The excludes take out everything that the axes give")

    return Matrix(
        axes=axes,
        points=tuple(normalised.values()),
        repeats=as_int(entry.get("repeats", 3), where + ".repeats", low=1, high=10000),
        order=known(entry.get("order", "spread"), ORDERS, where + ".order", "order"),
        seed=as_int(entry.get("seed", 1), where + ".seed", low=0),
        baseline=_baseline(entry.get("baseline"), axes, names),
    )


def _rule(
    raw: t.Any, where: str, axes: t.Mapping[str, tuple[str, ...]], names: t.Mapping[str, t.Collection[str]]
) -> dict[str, tuple[str, ...]]:
    rule = as_mapping(raw, where)
    if not rule:
        raise BenchError("the entry names no axis", where=where)
    for axis in rule:
        if axis not in axes:
            raise BenchError(f"there is no axis {axis!r} in this matrix", where=where, remedy=suggest(axis, axes))
    return {axis: _axis_values(axis, value, where, names) for axis, value in rule.items()}


def _baseline(
    raw: t.Any, axes: t.Mapping[str, tuple[str, ...]], names: t.Mapping[str, t.Collection[str]]
) -> dict[str, str] | None:
    if raw is None:
        return None
    rule = _rule(raw, "bench_matrix.baseline", axes, names)
    for axis, values in rule.items():
        if len(values) != 1:
            raise BenchError("a baseline has one value for an axis", where=f"bench_matrix.baseline.{axis}")
    return {axis: values[0] for axis, values in rule.items()}


def _fit(
    point: Point, topologies: t.Mapping[str, Topology], own: t.Mapping[str, Axis], catalog: Catalog
) -> Point:
    """The point with `none` for each axis that means nothing at it.

    Without a DUT there is no datapath, what a set-up axis of the user sets is set on DUTs, and a power profile may be
    for DUTs only.
    """
    if topologies[point["topology"]].duts:
        if point["datapath"] == NONE:
            raise BenchError(
                f"topology {point['topology']!r} has a DUT but the point has no datapath",
                where="bench_matrix.axes.datapath",
                remedy="Name a datapath of bench_datapaths",
            )
        return dict(point)
    setup_axes = {"datapath", *(name for name, axis in own.items() if axis.level == "setup")}
    if "power" in point and _power(catalog, point["power"])["parts"] == "duts":
        setup_axes.add("power")
    return {axis: NONE if axis in setup_axes else value for axis, value in point.items()}


def baseline_of(point: Point, baseline: t.Mapping[str, str], points: t.Collection[Point]) -> Point | None:
    """The point that ``point`` is compared with, or None when it is one itself or there is none."""
    wanted = {**point, **baseline}
    if wanted == point:
        return None
    exact = next((p for p in points if p == wanted), None)
    if exact is not None:
        return exact
    # at a topology without a DUT the set-up axes say `none`
    return next((p for p in points if p != point and all(p[a] in (v, NONE) for a, v in wanted.items())), None)


# --------------------------------------------------------------------------- plan


@dataclasses.dataclass
class Testbed:
    """One testbed's part of a plan."""

    name: str
    hosts: tuple[str, ...]
    catalog: Catalog
    matrix: Matrix
    topologies: dict[str, Topology]
    groups: list[dict[str, t.Any]]
    points: dict[str, dict[str, t.Any]]

    @property
    def trials(self) -> list[dict[str, t.Any]]:
        return [trial for group in self.groups for batch in group["batches"] for trial in batch["trials"]]


def plan_testbed(
    name: str, hosts: t.Sequence[str], raw_matrix: t.Any, catalog: Catalog, checks: Checks = NO_CHECKS
) -> Testbed:
    """Plan all trials of one testbed. Touches nothing; raises BenchError for whatever is wrong in the input."""
    if not hosts:
        raise BenchError("the testbed has no host", where=f"testbed {name}", remedy="Put its hosts in bench_testbeds")
    matrix_entry = as_mapping(raw_matrix, "bench_matrix")
    wanted = as_mapping(matrix_entry.get("axes"), "bench_matrix.axes").get("topology", [])
    topologies = {}
    for topology in _value_list(wanted, "bench_matrix.axes.topology"):
        known(topology, catalog.topologies, "bench_matrix.axes.topology", "topology in bench_topologies")
        topologies[str(topology)] = parse(str(topology), catalog.topologies[topology], hosts)
    for number, rule in enumerate(as_list(matrix_entry.get("include", []), "bench_matrix.include")):
        where = f"bench_matrix.include[{number}]"
        for topology in _value_list(as_mapping(rule, where).get("topology", []), where):
            known(topology, catalog.topologies, where, "topology in bench_topologies")
            topologies.setdefault(str(topology), parse(str(topology), catalog.topologies[topology], hosts))
    matrix = parse_matrix(raw_matrix, catalog, topologies)
    own = _axes(catalog)
    setup_axes = [a for a in matrix.axes if a in SETUP_AXES or (a in own and own[a].level == "setup")]
    traffic = {p["traffic"]: _traffic(catalog, p["traffic"]) for p in matrix.points}
    testbed = Testbed(name, tuple(hosts), catalog, matrix, topologies, [], {})

    by_setup: dict[tuple[str, ...], list[Point]] = {}
    for point in matrix.points:
        by_setup.setdefault(tuple(point[a] for a in setup_axes), []).append(point)
    rounds = range(1, matrix.repeats + 1)
    visits: list[tuple[list[Point], list[int]]] = (
        [(points, [repetition]) for repetition in rounds for points in by_setup.values()]
        if matrix.order == "interleaved"
        else [(points, list(rounds)) for points in by_setup.values()]
    )
    for number, (points, repetitions) in enumerate(visits, start=1):
        group = _group(testbed, f"{short_slug(name)}-g{number:02d}", points[0], own)
        group["batches"] = _batches(
            testbed, group, _ordered(points, repetitions, matrix, number, traffic), traffic, own
        )
        group["path"] = _path_of(group)
        testbed.groups.append(group)
        for point in points:
            profile = traffic[point["traffic"]]
            testbed.points.setdefault(
                point_id(name, point),
                {
                    "testbed": name,
                    "point": dict(point),
                    "headline": metric_key(profile.headline, point["direction"]),
                    "setup": group["id"],
                },
            )
    _check(testbed, checks)
    _leave_nothing_over(testbed, checks)
    if len(testbed.points) != len(matrix.points):
        raise BenchError("two points would have the same name", where="bench_matrix.axes", remedy="Rename a value")
    return testbed


def _check(testbed: Testbed, checks: Checks) -> None:
    """Have the surroundings look at every role, and at every kind of trial once."""
    for name in dict.fromkeys(group["datapath"] for group in testbed.groups):
        role = _datapath(testbed.catalog, name)["role"]
        if role is not None:
            stateful = _datapath(testbed.catalog, name)["stateful"]
            entries = (*DATAPATH_ENTRIES, RESET_ENTRY) if stateful else DATAPATH_ENTRIES
            checks.role(role, entries, f"bench_datapaths.{name}.role")
            checks.variables(role, _datapath(testbed.catalog, name)["vars"], f"bench_datapaths.{name}.vars")
            for axis in (own for own in _axes(testbed.catalog).values() if own.name in testbed.matrix.axes):
                for variables in axis.values.values() if axis.level == "setup" else ():
                    checks.variables(role, variables, f"bench_axes.{axis.name}.values")
    if any(group["power_hosts"] for group in testbed.groups):
        checks.role(POWER_ROLE, POWER_ENTRIES, "bench_power")
    for name in dict.fromkeys(group["power"] for group in testbed.groups if group["power_hosts"]):
        checks.variables(POWER_ROLE, _power(testbed.catalog, name)["vars"], f"bench_power.{name}.vars")
    for name in dict.fromkeys(batch["generator"] for group in testbed.groups for batch in group["batches"]):
        generator = _generator(testbed.catalog, name)
        checks.role(generator["role"], GENERATOR_ENTRIES, f"bench_generators.{name}.role")
        checks.variables(generator["role"], generator["vars"], f"bench_generators.{name}.vars")
    seen = set()
    for group in testbed.groups:
        for batch in group["batches"]:
            for trial in batch["trials"]:
                point = testbed.points[trial["point_id"]]
                kind = {**trial["options"], "port": None}
                key = (batch["module"], point["headline"], repr(sorted(kind.items(), key=str)))
                if key not in seen:
                    seen.add(key)
                    where = f"bench_traffic.{point['point']['traffic']}.options"
                    checks.trial(batch["module"], trial["options"], point["headline"], where)


def _leave_nothing_over(testbed: Testbed, checks: Checks) -> None:
    """Give each set-up the variables that only others set, with what they are when nobody sets them.

    Ansible cannot take a host's variable back, so what one set-up had set would hold for all after it.
    """
    names: dict[str, set[str]] = {}
    powered = [group for group in testbed.groups if group["power_hosts"]]
    values = {group["power"]: _power(testbed.catalog, group["power"])["vars"] for group in powered}
    of_power = set().union(*values.values())
    for group in testbed.groups:
        if group["role"] is not None:
            names.setdefault(group["role"], set()).update(set(group["vars"]) - of_power)
    for group in testbed.groups:
        missing = sorted(names.get(group["role"], set()) - set(group["vars"]))
        where = f"bench_datapaths.{group['datapath']}.vars"
        group["unset"] = {
            host: {name: checks.unset(host, group["role"], name, where) for name in missing}
            for host in (group["duts"] if missing else ())
        }
    for group in powered:
        missing = sorted(of_power - set(group["vars"]))
        where = f"bench_power.{group['power']}.vars"
        for host in group["power_hosts"] if missing else ():
            group["unset"].setdefault(host, {}).update(
                {name: checks.unset(host, POWER_ROLE, name, where) for name in missing}
            )


def _ordered(
    points: list[Point], repetitions: list[int], matrix: Matrix, visit: int, traffic: t.Mapping[str, Traffic]
) -> list[tuple[Point, int]]:
    """Repetitions spread: each round takes every point once, in an order of its own that the seed fixes.

    A batch has one generator. So within a round those of one generator are neighbours, and the next round begins with
    the generator that this one ends with.
    """
    if matrix.order == "sequential":
        return [(point, repetition) for point in points for repetition in repetitions]
    result: list[tuple[Point, int]] = []
    generators = list(dict.fromkeys(traffic[point["traffic"]].generator for point in points))
    for number, repetition in enumerate(repetitions):
        order = list(points)
        # only the order of measurements depends on it, no secret does
        random.Random(f"{matrix.seed}/{visit}/{repetition}").shuffle(order)
        order.sort(key=lambda point: generators.index(traffic[point["traffic"]].generator), reverse=number % 2 == 1)
        result.extend((point, repetition) for point in order)
    return result


def _group(testbed: Testbed, group_id: str, point: Point, own: t.Mapping[str, Axis]) -> dict[str, t.Any]:
    topology = testbed.topologies[point["topology"]]
    datapath = _datapath(testbed.catalog, point["datapath"])
    settings = {a: point[a] for a in point if a in SETUP_AXES or (a in own and own[a].level == "setup")}
    variables = dict(datapath["vars"])
    for axis, value in settings.items():
        if axis in own and value != NONE:
            variables.update(own[axis].values[value])
    setups = resolve(topology)
    duts = [topology.parts[part] for part in topology.duts]
    power = point.get("power", NONE)
    powered: list[str] = []
    if power != NONE:
        profile = _power(testbed.catalog, power)
        variables.update(profile["vars"])
        powered = [h for h in setups if profile["parts"] == "all" or (h in duts) == (profile["parts"] == "duts")]
    return {
        "id": group_id,
        "testbed": testbed.name,
        "topology": topology.name,
        "datapath": point["datapath"],
        "power": None if power == NONE else power,
        "power_hosts": powered,
        "settings": settings,
        "role": datapath["role"],
        "addresses": datapath["addresses"],
        "whole_checksums": datapath["whole_checksums"],
        "stateful": datapath["stateful"],
        "vars": variables,
        "client": topology.parts["client"],
        "server": topology.parts["server"],
        "duts": duts,
        "hosts": {
            host: {"part": s.part, "interfaces": list(s.interfaces), "routes": list(s.routes)}
            for host, s in setups.items()
        },
        "mtu_bytes": min(link.mtu_bytes for link in topology.links),
    }


def _batches(
    testbed: Testbed,
    group: dict[str, t.Any],
    ordered: list[tuple[Point, int]],
    traffic: t.Mapping[str, Traffic],
    own: t.Mapping[str, Axis],
) -> list[dict[str, t.Any]]:
    topology = testbed.topologies[group["topology"]]
    batches: list[dict[str, t.Any]] = []
    seconds = 0.0
    for point, repetition in ordered:
        profile = traffic[point["traffic"]]
        length = profile.duration_s + profile.warmup_s
        current = batches[-1] if batches else None
        if (
            current is None
            # what one trial leaves would be in the way of the next, and is removed between batches
            or group["stateful"]
            or current["generator"] != profile.generator
            or len(current["trials"]) >= BATCH_MAX_TRIALS
            or seconds + length > BATCH_MAX_S
            or _next_port(current["trials"]) + _streams(profile) - 1 > LAST_PORT
        ):
            seconds = 0.0
            current = {
                "id": f"{group['id']}-b{len(batches) + 1:02d}",
                "generator": profile.generator,
                **_generator(testbed.catalog, profile.generator),
                "trials": [],
            }
            batches.append(current)
        seconds += length
        options = {**current["options"], **profile.options}
        for axis, value in point.items():
            if axis in own and own[axis].level == "trial" and value != NONE:
                options.update(own[axis].values[value])
        interface, server = endpoint_path(topology, "client", profile.ip_version)
        server_interface, client = endpoint_path(topology, "server", profile.ip_version)
        pid = point_id(testbed.name, point)
        port = _next_port(current["trials"])
        current["trials"].append(
            {
                "id": f"{pid}-r{repetition}-a1",
                "point_id": pid,
                "repetition": repetition,
                "attempt": 1,
                # a server of its own for each trial, so that none measures what another one left behind
                "instance": f"{current['id']}-p{port}",
                "interface": interface,
                "server_interface": server_interface,
                "options": {
                    **options,
                    "server": server,
                    "bind": client,
                    "port": port,
                    "direction": point["direction"],
                    "duration_s": profile.duration_s,
                    "warmup_s": profile.warmup_s,
                    "interval_s": profile.interval_s,
                },
            }
        )
    return batches


def _next_port(trials: t.Sequence[t.Mapping[str, t.Any]]) -> int:
    """With room for generators that take a port for each stream."""
    return FIRST_PORT + sum(_parallel(trial["options"], "options.parallel") for trial in trials)


def _parallel(options: t.Mapping[str, t.Any], where: str) -> int:
    return as_int(options.get("parallel", 1), where, low=1, high=1000)


def _streams(profile: Traffic) -> int:
    return _parallel(profile.options, f"bench_traffic.{profile.name}.options.parallel")


def _path_of(group: dict[str, t.Any]) -> dict[str, t.Any]:
    """What the path check of a set-up has to prove."""
    trials = [trial for batch in group["batches"] for trial in batch["trials"]]
    return {
        "addresses": sorted({trial["options"]["server"] for trial in trials}),
        "interface": trials[0]["interface"],
        "server_interface": trials[0]["server_interface"],
        "hops": len(group["duts"]),
        "mtu_bytes": group["mtu_bytes"],
    }


def keep_missing(testbed: Testbed, attempts: t.Mapping[tuple[str, int], tuple[int, bool]]) -> None:
    """Leave out of the plan what is done, and number what is tried again.

    :param attempts: for (point id, repetition): its highest attempt, and whether that one counts as done.
    """
    for group in testbed.groups:
        for batch in group["batches"]:
            left = []
            for trial in batch["trials"]:
                attempt, done = attempts.get((trial["point_id"], trial["repetition"]), (0, False))
                if done:
                    continue
                trial["attempt"] = attempt + 1
                trial["id"] = f"{trial['point_id']}-r{trial['repetition']}-a{trial['attempt']}"
                left.append(trial)
            batch["trials"] = left
        group["batches"] = [b for b in group["batches"] if b["trials"]]
    testbed.groups = [g for g in testbed.groups if g["batches"]]


def traffic_seconds(trials: t.Iterable[t.Mapping[str, t.Any]]) -> float:
    return sum(float(trial["options"]["duration_s"]) for trial in trials)


def forecast_s(testbed: Testbed) -> float:
    """About how long the testbed's trials will take, set-up of its groups included, in seconds."""
    trials = testbed.trials
    warmup = sum(float(trial["options"]["warmup_s"]) for trial in trials)
    return traffic_seconds(trials) + warmup + FORECAST_TRIAL_S * len(trials) + FORECAST_GROUP_S * len(testbed.groups)
