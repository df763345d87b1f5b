# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Trials with many flows: what a device that keeps sessions does with packets that open one, or that have one.

The receiver (traffic_sink) counts. Each flow that is opened has one packet, so what arrived is what was opened: a
device that keeps sessions passes no packet on before there is one.
"""

from __future__ import annotations

import contextlib
import dataclasses
import ipaddress
import json
import os
import platform
import socket
import time
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common import command
from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._common.metric import METRICS, metric_key
from ansible_collections.fastpath.bench.plugins.module_utils._host.path_prober import route_to
from ansible_collections.fastpath.bench.plugins.module_utils._traffic import planned
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.batch import Record, record_of, run_batch
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.flows import (
    MAX_PAYLOAD,
    MIN_PAYLOAD,
    PORTS,
    Sender,
    ends,
    frames,
)
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.outcome import FAILED, INVALID, Outcome, finding
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.record import FORWARD
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.sink import SinkClient

GENERATOR = "flow"
NEW, ESTABLISHED = "new", "established"
MODES = (NEW, ESTABLISHED)
_LIMIT_S = 5.0
#: What is in rings and queues is given so long to arrive once no more is sent.
_STILL_S, _ARRIVE_S = 0.3, 10.0
_RAMP_PASSES = 5
#: Below this part of the rate that was asked for, the sender is the limit.
_UNDER_TARGET = 0.95


@dataclasses.dataclass(frozen=True)
class Trial:
    """One trial as the options have it."""

    id: str
    server: str
    port: int
    mode: str = NEW
    flows: int | None = None
    source: str | None = None
    sources: int = 1
    rate_pps: float = 0.0
    ramp_pps: float = 10_000.0
    payload_bytes: int = MIN_PAYLOAD
    shuffle_seed: int | None = None
    duration_s: float = 10.0
    warmup_s: float = 0.0
    interval_s: float = 0.5
    direction: str = FORWARD

    def check(self) -> None:
        """:raises BenchError: it could not be run anywhere."""
        for name, right, remedy in (
            ("flows", self.flows is None or 1 <= self.flows <= 10_000_000, "Use 1 to 10000000"),
            ("sources", 1 <= self.sources <= 65536, "Use 1 to 65536"),
            ("port", 1 <= self.port <= 65535, "Use 1 to 65535"),
            ("rate_pps", self.rate_pps >= 0, "Use 0 (as fast as it goes) or more"),
            ("ramp_pps", self.ramp_pps >= 0, "Use 0 (as fast as it goes) or more"),
            ("duration_s", 0 < self.duration_s <= 86400, "Use more than 0, at most 86400"),
            ("warmup_s", 0 <= self.warmup_s <= 86400, "Use 0 to 86400"),
            (
                "payload_bytes",
                MIN_PAYLOAD <= self.payload_bytes <= MAX_PAYLOAD,
                f"Use {MIN_PAYLOAD} to {MAX_PAYLOAD}",
            ),
        ):
            if not right:
                raise BenchError(f"{getattr(self, name)} is not possible", where=name, remedy=remedy, code="bad_option")
        for name, address in (("server", self.server), ("source", self.source)):
            try:
                ipaddress.IPv4Address(address or "0.0.0.0")
            except ValueError as error:
                raise BenchError(f"{address} is no IPv4 address", where=name, code="bad_option") from error
        if self.flows is None and (self.mode == ESTABLISHED or self.rate_pps == 0):
            raise BenchError(
                "the number of flows does not follow from a rate and a time here",
                where="flows",
                remedy="Give it",
                code="bad_option",
            )
        if self.count > self.sources * PORTS:
            ends("0.0.0.0", self.count, self.sources)

    @property
    def count(self) -> int:
        """How many flows; all that the rate opens in the time when they are not given."""
        return self.flows if self.flows is not None else max(1, int(self.rate_pps * self.duration_s))


def trial_spec() -> dict[str, t.Any]:
    """The argument spec of one trial, without its id."""
    return {
        "server": {"type": "str"},
        "port": {"type": "int"},
        "bind": {"type": "str"},
        "direction": {"type": "str", "choices": [FORWARD], "default": FORWARD},
        "mode": {"type": "str", "choices": list(MODES), "default": NEW},
        "flows": {"type": "int"},
        "source": {"type": "str"},
        "sources": {"type": "int", "default": 1},
        "rate_pps": {"type": "float", "default": 0.0},
        "ramp_pps": {"type": "float", "default": 10_000.0},
        "payload_bytes": {"type": "int", "default": MIN_PAYLOAD},
        "shuffle_seed": {"type": "int"},
        "duration_s": {"type": "float", "default": 10.0},
        "warmup_s": {"type": "float", "default": 0.0},
        "interval_s": {"type": "float", "default": 0.5},
    }


def trial_from(params: t.Mapping[str, t.Any], name: str) -> Trial:
    """:raises BenchError: an option is missing or wrong."""
    return planned.made_from(Trial, params, name, source=params.get("source") or params.get("bind"))


def metric_names(mode: str) -> list[str]:
    names = ["forwarding_rate", "sent_packet_rate", "offered_rate", "frame_loss_ratio", "goodput", "flows_open"]
    names += ["flow_rate", "offered_flow_rate"] if mode == NEW else []
    return [metric_key(name, FORWARD) for name in names]


# --------------------------------------------------------------------------- the way out


@dataclasses.dataclass(frozen=True)
class WayOut:
    """Where frames to the server leave this host."""

    device: str
    source: str
    #: Of the next hop, and of the device.
    macs: tuple[str, str]


def way_out(server: str) -> WayOut:
    """Ask the kernel; the next hop's MAC address is resolved first when it is not known.

    :raises BenchError: there is no way, or nobody answers for the next hop.
    """
    route = route_to(server, None)
    device = route.found.get("device")
    if device is None or device == "lo":
        told = route.error or route.unknown or "no interface leads there"
        raise BenchError(told, where=server, remedy="Set the route", code="no_route")
    hop = route.found["via"] or server
    for _time in range(10):
        known = [row for row in _ip("neigh", "show", hop, "dev", device) if row.get("lladdr")]
        if known:
            with open(f"/sys/class/net/{device}/address", encoding="ascii") as file:
                return WayOut(device, route.found["source"], (known[0]["lladdr"], file.read().strip()))
        # to the next hop itself, and not past it: that would be a flow
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe, contextlib.suppress(OSError):
            probe.sendto(b"", (hop, 9))
        time.sleep(0.2)
    raise BenchError("it does not answer ARP", where=hop, remedy="Look at the cable and the addresses", code="no_hop")


def _ip(*words: str) -> list[dict[str, t.Any]]:
    done = command.run(["ip", "-4", "-json", *words], limit_s=_LIMIT_S).ended()
    if done.rc != 0:
        raise BenchError(f"ip {' '.join(words)}: {done.stderr.strip()}", code="no_route")
    return list(json.loads(done.stdout or "[]"))


# --------------------------------------------------------------------------- running


class Arrivals:
    """What the sink has counted. Its own connection stays open: it is one flow more, over TCP."""

    def __init__(self, client: SinkClient) -> None:
        self.client = client
        self.first = client.read().datagrams

    def now(self) -> int:
        return self.client.read().datagrams - self.first

    def still(self) -> int:
        """The count once nothing comes any more."""
        deadline = time.monotonic() + _ARRIVE_S
        seen, since = self.now(), time.monotonic()
        while time.monotonic() - since < _STILL_S and time.monotonic() < deadline:
            time.sleep(0.05)
            count = self.now()
            if count != seen:
                seen, since = count, time.monotonic()
        return seen


def run_trial(trial: Trial) -> Record:
    """:raises BenchError: it could not begin."""
    if os.geteuid() != 0:
        raise BenchError("only root may send frames", remedy="Use become", code="no_permission")
    way = way_out(trial.server)
    pairs = ends(trial.source or way.source, trial.count, trial.sources, seed=trial.shuffle_seed)
    data = frames(way.macs, pairs, (trial.server, trial.port), trial.payload_bytes)
    with contextlib.ExitStack() as stack:
        client = SinkClient(trial.server, trial.port)
        stack.callback(client.close)
        arrivals = Arrivals(client)
        sender = Sender(way.device, data, len(data) // trial.count)
        stack.callback(sender.close)
        started = time.time()
        made = Outcome()
        if trial.mode == ESTABLISHED:
            _ramp(trial, sender, arrivals, made)
        window = _measure(trial, sender, arrivals, made)
    return _record(trial, made, started, window)


def _ramp(trial: Trial, sender: Sender, arrivals: Arrivals, made: Outcome) -> None:
    """Have all flows before the clock runs. A pass of which all arrives is the proof."""
    for _pass in range(_RAMP_PASSES):
        before = arrivals.still()
        sender.run(trial.count, rate=trial.ramp_pps)
        if arrivals.still() - before == trial.count:
            break
    else:
        got = arrivals.still() - before
        made.fail(
            "not_ramped",
            f"{got} of {trial.count} flows passed when each was sent once at {trial.ramp_pps:g} packet/s. "
            "Give the device room for more sessions, or ramp at a lower ramp_pps",
            status=INVALID,
        )
    if trial.warmup_s:
        sender.run(None, rate=trial.rate_pps, until=time.monotonic() + trial.warmup_s)


def _measure(trial: Trial, sender: Sender, arrivals: Arrivals, made: Outcome) -> tuple[float, float]:
    before = arrivals.still()
    sender.position, sender.busy = 0, 0
    begin = time.time()
    most = trial.count if trial.mode == NEW else None
    sent, start, end = sender.run(most, rate=trial.rate_pps, until=time.monotonic() + trial.duration_s)
    received = arrivals.still() - before
    seconds = max(end - start, 1e-6)
    opened = received if trial.mode == NEW else trial.count
    # a flow of which nothing arrived was not opened; one that arrived twice is none that this sender sent
    if received > sent:
        made.fail(
            "received_over_sent", f"{received} datagrams arrived of {sent}: somebody else sends too", status=FAILED
        )
    offered = trial.rate_pps or None
    made.add("forwarding_rate", FORWARD, received / seconds)
    made.add("sent_packet_rate", FORWARD, sent / seconds)
    made.add("offered_rate", FORWARD, offered, why=None if offered else "as fast as the sender could")
    made.add("frame_loss_ratio", FORWARD, (sent - received) / sent if sent else None)
    made.add("goodput", FORWARD, received * trial.payload_bytes * 8 / seconds)
    made.add("flows_open", FORWARD, opened)
    if trial.mode == NEW:
        made.add("flow_rate", FORWARD, received / seconds)
        made.add("offered_flow_rate", FORWARD, sent / seconds)
    made.counts[FORWARD] = {"sent_packets": sent, "received_packets": received}
    made.intervals.append(
        {
            "direction": FORWARD,
            "start_s": 0.0,
            "end_s": seconds,
            "bytes": received * trial.payload_bytes,
            "rate_bps": received * trial.payload_bytes * 8 / seconds,
            "packets": received,
            "lost": max(0, sent - received),
            "retransmits": None,
        }
    )
    _judge(trial, sender, made, sent, seconds)
    return begin, begin + seconds


def _judge(trial: Trial, sender: Sender, made: Outcome, sent: int, seconds: float) -> None:
    rate = sent / seconds
    lost = sent - int(made.counts[FORWARD]["received_packets"] or 0)
    if trial.rate_pps and rate < trial.rate_pps * _UNDER_TARGET:
        evidence = f"{rate:.0f} of {trial.rate_pps:.0f} packet/s were sent"
    elif not trial.rate_pps and not lost:
        evidence = f"All of the {rate:.0f} packet/s that one thread could send came through"
    else:
        evidence = ""
    if evidence:
        made.findings.append(
            finding(
                "generator_limited",
                "warning",
                evidence,
                "The figure is what this sender can do; the device does at least that",
            )
        )
    if sender.busy:
        made.findings.append(
            finding(
                "sender_waited",
                "info",
                f"The device had no room {sender.busy} times",
                "What it did not take was sent again and is not counted twice",
            )
        )


def _record(
    trial: Trial, made: Outcome, started: float | None = None, window: tuple[float, float] | None = None
) -> Record:
    record = record_of(
        made,
        trial_id=trial.id,
        generator=GENERATOR,
        duration_s=trial.duration_s,
        tool=("flow_run", f"Python {platform.python_version()}", ["sendmmsg"]),
        started=started,
        window=window,
    )
    return {**record, "mode": trial.mode, "flows": trial.count}


def failed_record(trial: Trial, error: BenchError) -> Record:
    made = Outcome()
    made.fail(error.code or "failed", error.message)
    for key in metric_names(trial.mode):
        name = key.rpartition("_")[0]
        if name in METRICS:
            made.add(name, FORWARD, None, why=error.message)
    return _record(trial, made)


def run_trials(trials: t.Sequence[Trial], *, spool_dir: str | None = None) -> list[Record]:
    return run_batch(trials, run_trial, failed_record, spool_dir=spool_dir)
