# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What every generator's ``check_trial`` has in common.

A trial is looked at on the controller when a matrix is planned, so that what the generator's module would refuse is
told before a host is touched."""

from __future__ import annotations

import typing as t

from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible.module_utils.errors import UnsupportedError

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError


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
