# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a handful of repetitions can say, and what they cannot.

Sources:

* Interval of a mean: Student's t with n - 1 degrees of freedom ("Student", "The probable error of a mean",
  Biometrika 6, 1908).
* Difference of two series that need not spread alike: Welch's t ("The generalization of 'Student's' problem when
  several different population variances are involved", Biometrika 34, 1947) with the degrees of freedom of
  Satterthwaite (Biometrics Bulletin 2, 1946).
* The difference is taken between logarithms, so that it is a ratio with an interval of its own (Bland and Altman,
  "Transformations, means, and confidence intervals", BMJ 312, 1996): "A is 20 % above B" and "B is 17 % below A" are
  then one statement, and the interval can never reach below -100 %. What is compared are the geometric means.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import statistics
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError

CONFIDENCE = 0.95


@dataclasses.dataclass(frozen=True)
class Summary:
    """What n values say. Unknown is None: one value has no spread and no interval."""

    n: int
    median: float | None = None
    mean: float | None = None
    min: float | None = None
    max: float | None = None
    peak: float | None = None
    #: Standard deviation divided by the mean.
    cv: float | None = None
    ci95_low: float | None = None
    ci95_high: float | None = None

    def as_dict(self) -> dict[str, t.Any]:
        return dataclasses.asdict(self)


@dataclasses.dataclass(frozen=True)
class Difference:
    """How far a series lies from its baseline, in percent of the baseline."""

    percent: float | None
    low_percent: float | None
    high_percent: float | None
    shown: bool
    reason: str | None

    @classmethod
    def unknown(cls, reason: str) -> Difference:
        return cls(None, None, None, shown=False, reason=reason)


def summarise(values: t.Sequence[float], peaks: t.Iterable[float | None] = ()) -> Summary:
    """Describe ``values``; ``peaks`` are the highest intervals of the same trials."""
    known_peaks = [peak for peak in peaks if peak is not None]
    peak = max(known_peaks, default=None)
    if not values:
        return Summary(n=0, peak=peak)
    low, high = min(values), max(values)
    # A mean of equal floats can differ from them in the last bit; it must not lie outside of what was measured.
    mean = min(max(statistics.fmean(values), low), high)
    summary = Summary(n=len(values), median=statistics.median(values), mean=mean, min=low, max=high, peak=peak)
    if len(values) < 2:
        return summary
    deviation = statistics.stdev(values, xbar=mean)
    half = t_quantile(len(values) - 1) * deviation / math.sqrt(len(values))
    return dataclasses.replace(
        summary, cv=deviation / abs(mean) if mean else None, ci95_low=mean - half, ci95_high=mean + half
    )


def difference(values: t.Sequence[float], baseline: t.Sequence[float]) -> Difference:
    """``values`` against ``baseline`` by Welch's t on the logarithms."""
    reason = _why_not(values, baseline)
    if reason:
        return Difference.unknown(reason)
    ours, theirs = [math.log(v) for v in values], [math.log(v) for v in baseline]
    share, share_base = statistics.variance(ours) / len(ours), statistics.variance(theirs) / len(theirs)
    return _as_percent(
        statistics.fmean(ours) - statistics.fmean(theirs),
        share + share_base,
        lambda: welch_freedom(share, len(ours), share_base, len(theirs)),
    )


def paired_difference(pairs: t.Sequence[tuple[float, float]]) -> Difference:
    """As :func:`difference`, for values measured in turn (ours, baseline): what drifts drops out of each pair."""
    reason = _why_not([ours for ours, _theirs in pairs], [theirs for _ours, theirs in pairs])
    if reason:
        return Difference.unknown(reason)
    ratios = [math.log(ours / theirs) for ours, theirs in pairs]
    return _as_percent(
        statistics.fmean(ratios), statistics.variance(ratios) / len(ratios), lambda: float(len(ratios) - 1)
    )


def welch_freedom(share_a: float, n_a: int, share_b: float, n_b: int) -> float:
    """Degrees of freedom after Welch and Satterthwaite; a share is variance divided by n."""
    # As parts of the whole, so that variances near the smallest float cannot vanish when squared.
    whole = share_a + share_b
    part_a, part_b = share_a / whole, share_b / whole
    return 1 / (part_a**2 / (n_a - 1) + part_b**2 / (n_b - 1))


@functools.lru_cache(maxsize=4096)
def t_quantile(freedom: float) -> float:
    """How many standard errors the two-sided 95 % interval reaches."""
    try:
        from scipy.special import stdtrit  # noqa: PLC0415 - only a report needs it, not a target
    except ImportError as error:
        raise missing_library("scipy") from error
    return float(stdtrit(freedom, 1 - (1 - CONFIDENCE) / 2))


def missing_library(name: str) -> BenchError:
    return BenchError(
        f"the Python library {name} is missing on the controller",
        remedy=f"Install it for the Python that runs Ansible there: python3 -m pip install {name}",
        code="missing_library",
    )


def _why_not(values: t.Sequence[float], baseline: t.Sequence[float]) -> str | None:
    if min(len(values), len(baseline)) < 2:
        return f"needs at least 2 repetitions on both sides, has {len(values)} and {len(baseline)} for the baseline"
    if min(*values, *baseline) <= 0:
        return "a value is zero or negative, so that a ratio means nothing"
    return None


def _as_percent(difference_log: float, variance: float, freedom: t.Callable[[], float]) -> Difference:
    # Repetitions that agree to the last digit leave nothing to spread: the interval is the point itself.
    half = t_quantile(freedom()) * math.sqrt(variance) if variance > 0 else 0.0
    percent, low, high = (_percent(x) for x in (difference_log, difference_log - half, difference_log + half))
    if low <= 0 <= high:
        return Difference(
            percent,
            low,
            high,
            shown=False,
            reason=f"no difference shown: the 95 % interval {low:+.1f} to {high:+.1f} % holds 0",
        )
    return Difference(percent, low, high, shown=True, reason=None)


def _percent(log_ratio: float) -> float:
    # Two repetitions that lie far apart can give an interval beyond what a float holds.
    return 100 * math.expm1(min(log_ratio, 700.0))
