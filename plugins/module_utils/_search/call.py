# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A search as a module is asked for it: from its parameters to a measurer and a plan."""

from __future__ import annotations

import contextlib
import dataclasses
import pathlib
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common import command
from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._host.path_prober import route_to
from ansible_collections.fastpath.bench.plugins.module_utils._search import controller, goals, library, search
from ansible_collections.fastpath.bench.plugins.module_utils._search.frames import parse_frames
from ansible_collections.fastpath.bench.plugins.module_utils._search.measurer import Measurer
from ansible_collections.fastpath.bench.plugins.module_utils._search.path_measurer import PathMeasurer, Way
from ansible_collections.fastpath.bench.plugins.module_utils._search.result import Trial
from ansible_collections.fastpath.bench.plugins.module_utils._search.sender import Settings
from ansible_collections.fastpath.bench.plugins.module_utils._search.senders import make_sender
from ansible_collections.fastpath.bench.plugins.module_utils._search.simulated import Device, SimulatedMeasurer
from ansible_collections.fastpath.bench.plugins.module_utils._search.source import RemoteSender
from ansible_collections.fastpath.bench.plugins.module_utils._search.verdict import Limits, Observation
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.batch import write_atomic
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.record import FORWARD, REVERSE
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.sink import LocalSink, SinkClient

_STATE_LIMIT_S = 10.0
DIRECTIONS = {FORWARD: (FORWARD,), REVERSE: (REVERSE,), "both": (FORWARD, REVERSE)}


class Asserting:
    """A measurer that asks after each trial whether what should hold does."""

    def __init__(self, inner: Measurer, argv: t.Sequence[str]) -> None:
        self._inner = inner
        self._argv = list(argv)

    @property
    def limits(self) -> Limits:
        return self._inner.limits

    def measure(self, load_pps: float, duration_s: float) -> Observation:
        seen = self._inner.measure(load_pps, duration_s)
        try:
            command.run(self._argv, limit_s=_STATE_LIMIT_S).check()
        except BenchError as error:
            return dataclasses.replace(seen, state=error.message)
        return seen

    def probe(self, duration_s: float) -> float:
        return self._inner.probe(duration_s)

    def latency(self, load_pps: float, duration_s: float) -> dict[str, t.Any] | None:
        return self._inner.latency(load_pps, duration_s)

    def least_pps(self, duration_s: float) -> float:
        return self._inner.least_pps(duration_s)

    def profile(self) -> dict[str, t.Any]:
        return {**self._inner.profile(), "state_command": self._argv}

    def now(self) -> float:
        return self._inner.now()


@dataclasses.dataclass(frozen=True)
class Call:
    """All that was asked for, checked before any traffic."""

    plan: search.Plan
    make: t.Callable[[contextlib.ExitStack], Measurer]
    state_command: tuple[str, ...] = ()
    spool_dir: str | None = None

    @classmethod
    def from_params(cls, params: t.Mapping[str, t.Any]) -> Call:
        """:raises BenchError: an option is wrong."""
        return cls(_plan(params), _maker(params), tuple(params["state_command"] or ()), params["spool_dir"])

    def run(self, open_things: contextlib.ExitStack) -> dict[str, t.Any]:
        """Search.

        :param open_things: what must be closed when the answer is there.
        """
        if self.plan.algorithm == controller.MLRSEARCH:
            library.load()
        measurer = self.make(open_things)
        if self.state_command:
            measurer = Asserting(measurer, self.state_command)
        return search.run(self.plan, measurer, note=self._note)

    def _note(self, trial: Trial) -> None:
        if self.spool_dir is None:
            return
        folder = pathlib.Path(self.spool_dir)
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_atomic(folder / f"search-{trial.number}.json", trial.as_dict())
        except OSError as error:
            raise BenchError(
                f"a trial cannot be kept: {error.strerror or error}",
                where=self.spool_dir,
                remedy="Free space on the host, or leave spool_dir out",
                code="spool_failed",
            ) from error


def _plan(params: t.Mapping[str, t.Any]) -> search.Plan:
    asked = params["algorithm"]
    if params["goals"] is not None:
        wanted = goals.from_params(params["goals"])
    elif asked == "mlrsearch":
        wanted = goals.DEFAULT_GOALS
    else:
        wanted = (goals.rfc2544_goal(params["trial_s"]),)
    if asked == "rfc2544" and any(goal.compliance == "none" for goal in wanted):
        raise BenchError(
            "a goal with loss_ratio or exceed_ratio above 0 does not comply with RFC 2544",
            where="option goals",
            remedy="Set both to 0, or choose another algorithm",
            code="bad_option",
        )
    if params["max_load_pps"] is not None and params["min_load_pps"] is not None:
        controller.Range(params["min_load_pps"], params["max_load_pps"])
    return search.Plan(
        goals=wanted,
        algorithm=controller.BINARY if asked == "binary" else controller.MLRSEARCH,
        max_load_pps=params["max_load_pps"],
        min_load_pps=params["min_load_pps"],
        search_limit_s=params["search_limit_s"],
        validation_s=params["validation_s"],
        latency_s=params["latency_s"],
        retries=params["trial_retries"],
    )


def _maker(params: t.Mapping[str, t.Any]) -> t.Callable[[contextlib.ExitStack], Measurer]:
    if params["generator"] == "simulated":
        device = _device(params["simulated"])
        return lambda _open_things: SimulatedMeasurer(device)
    if params["server"] is None or params["port"] is None:
        raise BenchError("both are needed", where="options server and port", code="bad_option")
    settings = Settings(
        server=params["server"],
        port=params["port"],
        frames=parse_frames(params["frame"], params["recipe"]),
        parallel=params["parallel"],
        flows=params["flows"],
        bind_address=params["bind"],
        trex_dir=params["trex_dir"],
    )
    directions = DIRECTIONS[params["direction"]]
    if REVERSE in directions and params["generator"] == "trex":
        raise BenchError(
            f"trex sends from this host only, and {params['direction']} was asked for",
            where="option direction",
            remedy="Use forward, or the generator flow",
            code="bad_option",
        )
    if REVERSE in directions and params["source_port"] is None:
        raise BenchError(
            "nobody sends back",
            where="option source_port",
            remedy="Start a source at the other end with fastpath.bench.traffic_source, and give its port",
            code="bad_option",
        )

    def make(open_things: contextlib.ExitStack) -> Measurer:
        ways: list[Way] = []
        if FORWARD in directions:
            sink = SinkClient(settings.server, settings.port, bind=settings.bind_address)
            open_things.callback(sink.close)
            ways.append(Way(FORWARD, make_sender(params["generator"], settings), sink))
        if REVERSE in directions:
            ways.append(_way_back(settings, params))
        made = PathMeasurer(ways, ping_to=settings.server, ping_from=settings.bind_address)
        open_things.callback(made.close)
        return made

    return make


def _way_back(settings: Settings, params: t.Mapping[str, t.Any]) -> Way:
    """The other end sends, and this host counts at the address that the other end sees."""
    address = settings.bind_address or _own_address(settings.server)
    sink = LocalSink(address)
    back = dataclasses.replace(settings, server=address, port=sink.port, bind_address=None)
    at = (settings.server, int(params["source_port"]))
    return Way(REVERSE, RemoteSender(back, params["generator"], at, settings.bind_address), sink)


def _own_address(server: str) -> str:
    found = route_to(server, None)
    if found.found.get("source") is None:
        raise BenchError(found.error or "no way leads there", where=server, remedy="Set the route", code="no_route")
    return str(found.found["source"])


def _device(wanted: t.Mapping[str, t.Any]) -> Device:
    fields = {name: type(value) for name, value in dataclasses.asdict(Device()).items()}
    try:
        return Device(**{name: fields[name](value) for name, value in wanted.items()})
    except (KeyError, TypeError, ValueError) as error:
        raise BenchError(f"{error} is not possible", where="option simulated",
                         remedy=f"It knows the numbers {', '.join(fields)}", code="bad_option") from error  # fmt: skip
