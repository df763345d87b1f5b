# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What one trial of a search is worth: the checks in their order, before anybody looks at its loss.

A trial whose figures contradict each other is no trial with some loss: it is repeated, and a search that gets no
better one is ended. Nothing is clamped.
"""

from __future__ import annotations

import dataclasses
import typing as t

OK = "ok"
#: In the order in which they are looked for.
TOOL_ERROR = "tool_error"
GENERATOR_INVALID = "generator_invalid"
OFFERED_BELOW_INTENDED = "offered_below_intended"
RECEIVED_MORE_THAN_SENT = "received_more_than_sent"
WRONG_DURATION = "wrong_duration"
DIRECTION_DEAD = "direction_dead"
STATE_ASSERTION = "state_assertion"
LOSS = "loss"
ORDER = (
    TOOL_ERROR,
    GENERATOR_INVALID,
    OFFERED_BELOW_INTENDED,
    RECEIVED_MORE_THAN_SENT,
    WRONG_DURATION,
    DIRECTION_DEAD,
    STATE_ASSERTION,
    LOSS,
)
#: Fewer packets than these, all lost, say nothing of a dead direction.
FEW = 20


@dataclasses.dataclass(frozen=True)
class Count:
    """One direction: what was sent into it and what came out at its end. None is not known."""

    direction: str
    sent: int | None
    received: int | None


@dataclasses.dataclass(frozen=True)
class Observation:
    """What a measurer saw in one trial."""

    counts: tuple[Count, ...] = ()
    #: Seconds during which packets were really sent.
    offered_s: float | None = None
    #: Why there is no result: code and reason.
    error: tuple[str, str] | None = None
    #: What is wrong with the generator although it gave figures.
    generator: str | None = None
    #: What should have held during the trial and did not.
    state: str | None = None
    #: Begin and end of the traffic on the sender's clock.
    window: tuple[float, float] | None = None
    detail: dict[str, t.Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Limits:
    """By how much a trial may differ from what was asked for."""

    #: An offered load this much off the intended one is the intended one.
    offered_tolerance: float = 0.005
    duration_tolerance: float = 0.05
    duration_slack_s: float = 0.1
    #: Packets that a paced sender may be ahead of its time by.
    ahead_packets: int = 16


@dataclasses.dataclass(frozen=True)
class Verdict:
    """``code`` is the first check that did not hold. A usable trial has counts and a loss ratio."""

    code: str
    reason: str | None = None
    usable: bool = True
    flags: tuple[str, ...] = ()
    intended: int = 0
    sent: int | None = None
    received: int | None = None

    @property
    def missing(self) -> int:
        """Packets that were to be sent and were not; 0 within the tolerance."""
        return max(0, self.intended - self.sent) if self.sent is not None else 0

    @property
    def lost(self) -> int | None:
        """Packets that were sent and did not arrive."""
        return None if self.sent is None or self.received is None else self.sent - self.received

    @property
    def loss_ratio(self) -> float | None:
        """Trial Loss Ratio: missing packets count as lost ones."""
        overall = max(self.intended, self.sent or 0)
        return None if self.lost is None or not overall else (self.lost + self.missing) / overall

    @property
    def path_loss_ratio(self) -> float | None:
        """The part of what was sent that did not arrive."""
        return None if self.lost is None or not self.sent else self.lost / self.sent


def judge(load_pps: float, duration_s: float, seen: Observation, limits: Limits = Limits()) -> Verdict:
    """Decide on a trial. ``load_pps`` is the intended load of one direction."""
    wanted = int(load_pps * duration_s)
    if seen.error is not None:
        return Verdict(TOOL_ERROR, f"{seen.error[0]}: {seen.error[1]}", usable=False)
    unusable = _generator(wanted, seen, limits)
    if unusable:
        return Verdict(GENERATOR_INVALID, unusable, usable=False)
    sent = sum(count.sent or 0 for count in seen.counts)
    received = sum(count.received or 0 for count in seen.counts)
    below = [count for count in seen.counts if (count.sent or 0) < wanted * (1 - limits.offered_tolerance) - 1]
    flags = (OFFERED_BELOW_INTENDED,) if below else ()
    # within the tolerance the offered load is the intended one
    intended = sum(wanted if count in below else (count.sent or 0) for count in seen.counts)

    verdict = Verdict(OK, None, True, flags, intended, sent, received)
    for code, usable, reason in _checks(wanted, duration_s, seen, limits, verdict):
        if reason is not None:
            return dataclasses.replace(verdict, code=code, usable=usable, reason=reason)
    return verdict


def _checks(
    wanted: int, duration_s: float, seen: Observation, limits: Limits, counted: Verdict
) -> t.Iterator[tuple[str, bool, str | None]]:
    """The checks of a trial whose counts are known: code, whether it stays usable, and what does not hold."""
    more = [count for count in seen.counts if (count.received or 0) > (count.sent or 0)]
    said = ", ".join(f"{count.received} received of {count.sent} sent {count.direction}" for count in more)
    yield RECEIVED_MORE_THAN_SENT, False, said or None
    apart = abs((seen.offered_s or 0) - duration_s)
    late = apart > max(limits.duration_slack_s, duration_s * limits.duration_tolerance)
    yield WRONG_DURATION, False, f"sent for {seen.offered_s:.3f} s instead of {duration_s:.3f} s" if late else None
    dead = [count.direction for count in seen.counts if not count.received and (count.sent or 0) >= FEW]
    yield DIRECTION_DEAD, True, f"nothing of what was sent {' and '.join(dead)} arrived" if dead else None
    yield STATE_ASSERTION, False, seen.state
    if counted.flags:
        wanted_all = wanted * len(seen.counts)
        yield (
            OFFERED_BELOW_INTENDED,
            True,
            f"{counted.sent} of {wanted_all} packets were sent: the others count as lost",
        )
    yield LOSS, True, f"{counted.lost} of {counted.sent} packets were lost" if counted.lost else None


def _generator(wanted: int, seen: Observation, limits: Limits) -> str | None:
    if seen.generator is not None:
        return seen.generator
    if not seen.counts or seen.offered_s is None:
        return "the generator gave no counts"
    for count in seen.counts:
        if count.sent is None or count.received is None:
            return f"{'sent' if count.sent is None else 'received'} packets {count.direction} are not known"
        if count.sent > wanted * (1 + limits.offered_tolerance) + limits.ahead_packets:
            return f"{count.sent} packets were sent {count.direction} and {wanted} were asked for"
        if count.sent == 0 and wanted >= FEW:
            return f"no packet was sent {count.direction}"
    return None
