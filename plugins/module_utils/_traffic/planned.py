# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the generators have in common where trials are made of options, here and in their ``check_trial``.

A trial is looked at on the controller when a matrix is planned, so that what the generator's module would refuse is
told before a host is touched."""

from __future__ import annotations

import dataclasses
import typing as t

from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible.module_utils.errors import UnsupportedError

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError


class Trial(t.Protocol):
    """A trial of any generator."""

    @property
    def id(self) -> str: ...


class Checked(Trial, t.Protocol):
    def check(self) -> None: ...


AnyTrial = t.TypeVar("AnyTrial", bound=Trial)
AnyChecked = t.TypeVar("AnyChecked", bound=Checked)


def unique(trials: t.Iterable[AnyTrial]) -> list[AnyTrial]:
    """The trials, if no name is given twice: each is a file."""
    found: dict[str, AnyTrial] = {}
    for trial in trials:
        if trial.id in found:
            raise BenchError(f"the id {trial.id} is given twice", where="trials", code="bad_option")
        found[trial.id] = trial
    return list(found.values())


def made_from(kind: type[AnyChecked], params: t.Mapping[str, t.Any], name: str, **more: t.Any) -> AnyChecked:
    """A trial of a dataclass whose fields are the options, from what is given of them.

    :raises BenchError: an option is missing or wrong.
    """
    for needed in ("server", "port"):
        if params.get(needed) is None:
            raise BenchError("it is missing", where=f"{name}: {needed}", code="bad_option")
    names = {field.name for field in dataclasses.fields(t.cast("t.Any", kind))}
    given = {key: value for key, value in params.items() if key in names and value is not None}
    trial = kind(**{**given, **more, "id": name})
    trial.check()
    return trial


def checked_options(
    trial: t.Mapping[str, t.Any],
    spec: dict[str, t.Any],
    module: str,
    instead: t.Callable[[str], str | None] = lambda _option: None,
) -> dict[str, t.Any]:
    """A trial's options with their defaults, as the module's argument spec has them.

    :param instead: for an option that is not in the spec, the one that is meant.
    :raises BenchError: names each option that is wrong.
    """
    result = ArgumentSpecValidator(spec).validate(dict(trial))
    if result.error_messages:
        told = "; ".join(_told(error, instead) for error in result.errors)
        raise BenchError(told.rstrip("."), remedy=f"See ansible-doc fastpath.bench.{module}")
    return t.cast("dict[str, t.Any]", result.validated_parameters)


def _told(error: t.Any, instead: t.Callable[[str], str | None]) -> str:
    if not isinstance(error, UnsupportedError):
        return str(error.msg)
    meant = instead(str(error.msg).partition(".")[0])
    return f"there is no option {error.msg}" + (f": use {meant}" if meant else "")


def counts(headline: str, known: t.Sequence[str], of: str) -> None:
    """:raises BenchError: the headline is none that a trial ``of`` this kind has."""
    if headline not in known:
        raise BenchError(f"a trial with {of} does not count {headline}", remedy=f"It counts {', '.join(known)}")
