# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""VPP's network simulator: delay, bandwidth, loss and reordering on what leaves an interface, or on a pair of them.

Its API sets and tells nothing, so what runs is read from the texts of the
command line. Three habits of VPP 26.06 shape what is here. Enabling twice
counts twice. ``show nsim`` names interfaces that were switched off long ago.
And VPP ends with a signal when its main thread sends a packet through the
simulator while only workers have a wheel: the main thread is given one too.
"""

from __future__ import annotations

import dataclasses
import re
import time
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError, ParseError
from ansible_collections.fastpath.bench.plugins.module_utils._vpp import hardware
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.errors import VppError, message_missing
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.session import NO_INDEX, Call, Session

STATES = ("merged", "replaced", "deleted", "gathered")
OUTPUT, CROSS_CONNECT = "output", "cross_connect"
#: Arc and feature by which one sees where it is on.
_FEATURES = {OUTPUT: ("interface-output", "nsim-output-feature"), CROSS_CONNECT: ("device-input", "nsim")}
_NOT_CONFIGURED = "not configured"
#: What one enable more than once needs; more is a fault.
_DISABLE_TIMES = 16
_DELAY_UNITS = {"us": 1e-6, "ms": 1e-3, "sec": 1.0}
_RATE_UNITS = {"bps": 1.0, "kbps": 1e3, "mbps": 1e6, "gbps": 1e9}
#: What is on the wheels when it is made anew never gives its buffers back, so they are let run empty.
_DRAIN_MARGIN_S, _DRAIN_LIMIT_S = 0.05, 10.0
_MAX_U32 = 0xFFFFFFFF
PACKET_BYTES = (64, 9000)
#: The last digit of a part that is shown. One that is too small for it is still told apart from none at all.
_PART_STEP = 1e-5
NONE = 0.0


@dataclasses.dataclass(frozen=True)
class Settings:
    """What is asked. 0 packets for a drop or a reordering is none."""

    delay_us: int
    bandwidth_bps: int
    packet_bytes: int = 1500
    packets_per_drop: int = 0
    packets_per_reorder: int = 0

    def check(self) -> None:
        low, high = PACKET_BYTES
        for name, value, least, most in (
            ("delay_us", self.delay_us, 1, _MAX_U32),
            ("bandwidth_bps", self.bandwidth_bps, 1, 2**63 - 1),
            ("packet_bytes", self.packet_bytes, low, high),
            ("packets_per_drop", self.packets_per_drop, 0, _MAX_U32),
            ("packets_per_reorder", self.packets_per_reorder, 0, _MAX_U32),
        ):
            if not least <= value <= most:
                raise BenchError(
                    f"{value} is not possible", where=name, remedy=f"Use {least} to {most}", code="bad_option"
                )

    @property
    def fields(self) -> dict[str, int]:
        return {
            "delay_in_usec": self.delay_us,
            "average_packet_size": self.packet_bytes,
            "bandwidth_in_bits_per_second": self.bandwidth_bps,
            "packets_per_drop": self.packets_per_drop,
            "packets_per_reorder": self.packets_per_reorder,
        }

    def wheel_packets(self, workers: int) -> int:
        """How many packets each thread can have under way, as VPP works it out: more are dropped."""
        of_all = int(self.delay_us * 1e-6 * self.bandwidth_bps / 8.0 + 0.5)
        return of_all // max(1, workers) // self.packet_bytes + 1


@dataclasses.dataclass(frozen=True)
class Running:
    """What ``show nsim`` tells, as rounded as it tells it."""

    delay_us: float
    bandwidth_bps: float
    packet_bytes: int
    loss_ratio: float
    reorder_ratio: float
    wheel_packets: int
    poll_main_thread: bool
    #: The unit of the last digit of delay and bandwidth, in microseconds and bit/s.
    delay_step_us: float = dataclasses.field(compare=False, default=0.0)
    bandwidth_step_bps: float = dataclasses.field(compare=False, default=0.0)
    #: The pair that was connected last, also when it is off.
    pair: tuple[str, str] | None = None

    def is_as(self, asked: Settings, workers: int) -> bool:
        """Whether these may be the settings that are asked for: VPP shows no more digits than that."""
        return (
            abs(self.delay_us - asked.delay_us) <= self.delay_step_us * 0.51
            and abs(self.bandwidth_bps - asked.bandwidth_bps) <= self.bandwidth_step_bps * 0.51
            and self.packet_bytes == asked.packet_bytes
            and _same_part(self.loss_ratio, asked.packets_per_drop)
            and _same_part(self.reorder_ratio, asked.packets_per_reorder)
            # delay and bandwidth in one number, with more digits
            and self.wheel_packets == asked.wheel_packets(workers)
        )

    def as_result(self) -> dict[str, t.Any]:
        names = ("delay_us", "bandwidth_bps", "packet_bytes", "loss_ratio", "reorder_ratio", "wheel_packets")
        return {**{name: getattr(self, name) for name in names}, "poll_main_thread": self.poll_main_thread}


def _same_part(shown: float, packets: int) -> bool:
    if not packets or shown == NONE:
        return not packets and shown == NONE
    return abs(shown - 1.0 / packets) <= 0.51 * _PART_STEP


def packets_of(ratio: float | None, packets: int | None, names: tuple[str, str]) -> int:
    """One of every so many packets, from that number or from a ratio.

    :raises BenchError: both are given, or no number of packets makes the ratio.
    """
    if ratio is not None and packets is not None:
        raise BenchError(f"{names[0]} and {names[1]} say the same", remedy="Give one of them", code="bad_option")
    if ratio is None:
        return packets or 0
    if not 0 <= ratio <= 1:
        raise BenchError(f"{ratio:g} is not possible", where=names[0], remedy="Use 0 to 1", code="bad_option")
    if ratio == 0:
        return 0
    number = round(1 / ratio)
    if number > _MAX_U32 or abs(1 / number - ratio) > ratio * 0.01:
        raise BenchError(
            f"VPP takes one packet out of a whole number, which does not come within 1 % of {ratio:g}",
            where=names[0],
            remedy=f"The next are {1 / (number + 1):.6g}, {1 / number:.6g}"
            + (f" and {1 / (number - 1):.6g}" if number > 1 else ""),
            code="bad_option",
        )
    return number


_LINE = re.compile(r"^ (delay|drop fraction|reorder fraction|packet size|worker wheel size|throughput): (.+)$", re.M)
_PAIR = re.compile(r"^cross-connect\n (\S+) and (\S+)$", re.M)


def parse(text: str) -> Running | None:
    """Of ``show nsim verbose``; None when the simulator is not configured.

    :raises ParseError: the text is another one.
    """
    if _NOT_CONFIGURED in text:
        return None
    told = {name: value.strip() for name, value in _LINE.findall(text)}
    poll = re.search(r"^ poll main thread: (\d)", text, re.M)
    try:
        delay, delay_step = _quantity(told["delay"], _DELAY_UNITS)
        rate, rate_step = _quantity(told["throughput"], _RATE_UNITS)
        pair = _PAIR.search(text)
        return Running(
            delay_us=round(delay * 1e6, 3),
            bandwidth_bps=round(rate, 3),
            packet_bytes=int(told["packet size"]),
            loss_ratio=_part(told["drop fraction"]),
            reorder_ratio=_part(told["reorder fraction"]),
            wheel_packets=int(told["worker wheel size"]),
            poll_main_thread=bool(poll and poll[1] == "1"),
            delay_step_us=delay_step * 1e6,
            bandwidth_step_bps=rate_step,
            pair=None if pair is None else (pair[1], pair[2]),
        )
    except (KeyError, ValueError) as error:
        raise ParseError("'show nsim verbose' is not as this collection knows it", line=text[:200]) from error


def _part(text: str) -> float:
    # none is written without digits behind a point; what is too small to be seen is taken as half of what could be
    return NONE if text == "0" else float(text) or _PART_STEP / 2


def _quantity(text: str, units: t.Mapping[str, float]) -> tuple[float, float]:
    """A number with its unit, and what one in its last digit is."""
    number, unit = text.split()
    digits = len(number.partition(".")[2])
    return float(number) * units[unit], units[unit] * 10.0**-digits


@dataclasses.dataclass(frozen=True)
class Found:
    """The simulator of a running VPP."""

    running: Running | None
    #: Interfaces with the output feature, and how many times it is there.
    output: t.Mapping[str, int]
    cross_connect: t.Mapping[str, int]

    @property
    def pair(self) -> list[str]:
        pair = self.running.pair if self.running is not None else None
        return list(pair) if pair is not None and all(self.cross_connect.get(name) for name in pair) else []

    @property
    def on(self) -> bool:
        return bool(self.output or self.cross_connect)

    def as_result(self) -> dict[str, t.Any]:
        told: dict[str, t.Any] = {"configured": self.running is not None}
        told.update(self.running.as_result() if self.running is not None else {})
        return {**told, OUTPUT: sorted(self.output), CROSS_CONNECT: self.pair}


class Nsim:
    """Reads and changes it."""

    def __init__(self, session: Session) -> None:
        if not session.has("nsim_configure2"):
            raise message_missing("nsim_configure2", session.version())
        self.session = session
        rows = session.call("sw_interface_dump", sw_if_index=NO_INDEX)
        #: Without sub-interfaces, which it does not take, and the one that no packet goes through.
        self.indexes = {row.interface_name: row.sw_if_index for row in rows if row.sw_if_index == row.sup_sw_if_index}
        self.indexes.pop("local0", None)
        kinds = [row.type for row in session.call("show_threads").thread_data]
        self.workers = sum(kind == "workers" for kind in kinds)

    def read(self) -> Found:
        texts = self.session.batch(
            [Call("cli_inband", {"cmd": "show nsim verbose"}, (-1,))]
            + [Call("cli_inband", {"cmd": f"show interface {name} features"}) for name in self.indexes]
        )
        count: dict[str, dict[str, int]] = {OUTPUT: {}, CROSS_CONNECT: {}}
        for name, answer in zip(self.indexes, texts[1:]):
            arcs = hardware.features(answer.reply)
            for what, (arc, feature) in _FEATURES.items():
                times = arcs.get(arc, []).count(feature)
                if times:
                    count[what][name] = times
        return Found(parse(texts[0].reply), count[OUTPUT], count[CROSS_CONNECT])

    def index(self, name: str, where: str) -> int:
        if name not in self.indexes:
            raise VppError(
                f"VPP has no interface {name} that the simulator could take",
                where=where,
                remedy=f"There are: {', '.join(sorted(self.indexes)) or 'none'}. Sub-interfaces cannot have it",
                code="no_interface",
            )
        return int(self.indexes[name])

    def configure(self, asked: Settings) -> None:
        if self.workers:
            # over the API only workers get a wheel, and a packet of the main thread then ends VPP
            line = f"set nsim delay {asked.delay_us} us bandwidth {asked.bandwidth_bps} bps"
            line += f" packet-size {asked.packet_bytes} poll-main-thread"
            self.session.call("cli_inband", cmd=line)
        self.session.call("nsim_configure2", **asked.fields)

    def switch_output(self, name: str, on: bool) -> None:
        fields = {"enable_disable": on, "sw_if_index": self.indexes[name]}
        hint = "It works on interfaces of hardware and the like, not on sub-interfaces"
        self.session.batch([Call("nsim_output_feature_enable_disable", fields, where=name, hint=hint)])

    def switch_pair(self, pair: t.Sequence[str], on: bool) -> None:
        first, second = (self.indexes[name] for name in pair)
        fields = {"enable_disable": on, "sw_if_index0": first, "sw_if_index1": second}
        self.session.batch([Call("nsim_cross_connect_enable_disable", fields, where=" and ".join(pair))])

    def switch_off(self, outputs: t.Collection[str], pairs: bool) -> None:
        """Off, however many times it was switched on."""
        for _time in range(_DISABLE_TIMES):
            found = self.read()
            left = [name for name in found.output if name in outputs]
            crossed = list(found.cross_connect) if pairs else []
            if not left and not crossed:
                return
            for name in left:
                self.switch_output(name, False)
            for name in crossed:
                # with itself: each interface loses one of its own
                self.switch_pair((name, name), False)
        raise VppError("the simulator stays on", where=", ".join([*left, *crossed]), code="not_as_asked")


def run(
    session: Session,
    state: str,
    *,
    settings: Settings | None = None,
    output: t.Sequence[str] | None = None,
    cross_connect: t.Sequence[str] | None = None,
    check_mode: bool = False,
    sleep: t.Callable[[float], None] = time.sleep,
) -> dict[str, t.Any]:
    """Returns the keyword arguments for ``exit_json``."""
    if settings is not None:
        settings.check()
    pair = list(cross_connect or [])
    if pair and (len(pair) != 2 or pair[0] == pair[1]):
        raise BenchError("a cross-connect has two interfaces", where=CROSS_CONNECT, code="bad_option")
    nsim = Nsim(session)
    for where, names in ((OUTPUT, output or ()), (CROSS_CONNECT, pair)):
        for name in names:
            nsim.index(name, where)
    found = nsim.read()
    if state == "gathered":
        return _result(found, found, [])
    if state == "deleted":
        settings = None
    want_output, want_pair = _wanted(state, found, output, pair)
    changes = _changes(nsim, found, settings, want_output, want_pair)
    if (want_output or want_pair) and settings is None and found.running is None:
        raise BenchError(
            "the simulator has no settings yet",
            remedy="Give delay_us and bandwidth_bps",
            code="nsim_not_configured",
        )
    if not changes:
        return _result(found, found, changes)
    if check_mode:
        return _result(found, found, changes, _planned(found, settings, want_output, want_pair))
    anew = settings if any(one["name"] == "settings" for one in changes) else None
    _apply(nsim, found, anew, (want_output, want_pair), sleep)
    after = nsim.read()
    left = _changes(nsim, after, settings, want_output, want_pair)
    if left:
        names = ", ".join(f"{one['name']} {one.get('property', '')}".strip() for one in left)
        raise VppError(
            f"VPP took it and does not have it: {names}",
            remedy="Somebody else may have changed it meanwhile; run it again",
            code="not_as_asked",
        )
    return _result(found, after, changes)


def _wanted(
    state: str, found: Found, output: t.Sequence[str] | None, pair: list[str]
) -> tuple[set[str], list[str] | None]:
    """The interfaces with the output feature, and the pair; a pair of None is left as it is."""
    if state == "deleted":
        if output is None and not pair:
            return set(), []
        left = set(found.output) - set(output or ())
        return left, [] if pair and set(pair) == set(found.pair) else None
    if state == "replaced":
        return set(output or ()), pair
    return set(found.output) | set(output or ()), pair or None


def _changes(
    nsim: Nsim, found: Found, settings: Settings | None, output: set[str], pair: list[str] | None
) -> list[dict[str, t.Any]]:
    changes: list[dict[str, t.Any]] = []
    running = found.running
    if settings is not None and (
        running is None
        or not running.is_as(settings, nsim.workers)
        or (nsim.workers > 0 and not running.poll_main_thread)
    ):
        changes.append(
            {
                "name": "settings",
                "action": "set",
                "property": "settings",
                "before": running.as_result() if running is not None else None,
                "after": dataclasses.asdict(settings),
            }
        )
    changes += [{"name": name, "action": "remove"} for name in sorted(set(found.output) - output)]
    changes += [{"name": name, "action": "create"} for name in sorted(output - set(found.output))]
    # twice on is a packet that is delayed, and lost, twice
    changes += [
        {"name": name, "action": "set", "property": "times", "before": times, "after": 1}
        for name, times in sorted(found.output.items())
        if name in output and times > 1
    ]
    if pair is not None and set(pair) != set(found.cross_connect):
        changes.append(
            {
                "name": CROSS_CONNECT,
                "action": "set",
                "property": "pair",
                "before": sorted(found.cross_connect),
                "after": pair,
            }
        )
    return changes


def _apply(
    nsim: Nsim,
    found: Found,
    settings: Settings | None,
    wanted: tuple[set[str], list[str] | None],
    sleep: t.Callable[[float], None],
) -> None:
    """:param settings: None leaves them as they are."""
    output, pair = wanted
    target = found.pair if pair is None else pair
    if settings is not None and found.on and found.running is not None:
        # nothing may be on the wheels that are thrown away
        nsim.switch_off(set(found.output), pairs=True)
        sleep(min(_DRAIN_LIMIT_S, found.running.delay_us * 1e-6 + _DRAIN_MARGIN_S))
        found = nsim.read()
    twice = {name for name, times in found.output.items() if times > 1}
    nsim.switch_off((set(found.output) - output) | twice, pairs=set(target) != set(found.cross_connect))
    if settings is not None:
        nsim.configure(settings)
    found = nsim.read()
    for name in sorted(output - set(found.output)):
        nsim.switch_output(name, True)
    if target and set(target) != set(found.cross_connect):
        nsim.switch_pair(target, True)


def _result(
    before: Found, after: Found, changes: list[dict[str, t.Any]], planned: t.Mapping[str, t.Any] | None = None
) -> dict[str, t.Any]:
    shown = {**after.as_result(), **(planned or {})}
    return {
        "changed": bool(changes),
        "changes": changes,
        "diff": {"before": before.as_result(), "after": shown},
        "nsim": shown,
    }


def _planned(found: Found, settings: Settings | None, output: set[str], pair: list[str] | None) -> dict[str, t.Any]:
    """As it would be, for check mode."""
    told: dict[str, t.Any] = {OUTPUT: sorted(output), CROSS_CONNECT: found.pair if pair is None else pair}
    return told if settings is None else {"configured": True, **_as_it_would_be(settings), **told}


def _as_it_would_be(settings: Settings) -> dict[str, t.Any]:
    return {
        "delay_us": settings.delay_us,
        "bandwidth_bps": settings.bandwidth_bps,
        "packet_bytes": settings.packet_bytes,
        "loss_ratio": 1 / settings.packets_per_drop if settings.packets_per_drop else 0.0,
        "reorder_ratio": 1 / settings.packets_per_reorder if settings.packets_per_reorder else 0.0,
    }
