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
from ansible_collections.fastpath.bench.plugins.module_utils._search import controller, goals, library, search
from ansible_collections.fastpath.bench.plugins.module_utils._search.frames import parse_frames
from ansible_collections.fastpath.bench.plugins.module_utils._search.iperf_measurer import IperfMeasurer, Settings
from ansible_collections.fastpath.bench.plugins.module_utils._search.measurer import Measurer
from ansible_collections.fastpath.bench.plugins.module_utils._search.result import Trial
from ansible_collections.fastpath.bench.plugins.module_utils._search.simulated import Device, SimulatedMeasurer
from ansible_collections.fastpath.bench.plugins.module_utils._search.verdict import Limits, Observation
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.batch import write_atomic

_STATE_LIMIT_S = 10.0


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
    settings = Settings(
        server=params["server"],
        port=params["port"],
        frames=parse_frames(params["frame"], params["recipe"]),
        parallel=params["parallel"],
        bind_address=params["bind"],
    )

    def make(open_things: contextlib.ExitStack) -> Measurer:
        made = IperfMeasurer(settings)
        open_things.callback(made.close)
        return made

    return make


def _device(wanted: t.Mapping[str, t.Any]) -> Device:
    fields = {name: type(value) for name, value in dataclasses.asdict(Device()).items()}
    try:
        return Device(**{name: fields[name](value) for name, value in wanted.items()})
    except (KeyError, TypeError, ValueError) as error:
        raise BenchError(f"{error} is not possible", where="option simulated",
                         remedy=f"It knows the numbers {', '.join(fields)}", code="bad_option") from error  # fmt: skip
