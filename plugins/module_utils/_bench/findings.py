# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the tool notices about a trial, a point or a run, and what that means for the numbers.

A finding is one function below. It is given a view of a trial, a point or a run, and yields a line of evidence for
each time the thing was seen, always with the figures it rests on. Where a host did not tell what a rule needs, the
rule says nothing: no finding is never a guess.

To add one: write a function and put ``@rule(...)`` above it. It is then recorded with each trial, shown in the report
and listed in docs/findings.md.
"""

from __future__ import annotations

import dataclasses
import statistics
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._bench import observed, units
from ansible_collections.fastpath.bench.plugins.module_utils._bench.observed import HostUse, InterfaceUse, VppUse
from ansible_collections.fastpath.bench.plugins.module_utils._bench.stats import Summary

INFO, WARNING, ERROR = "info", "warning", "error"
SEVERITIES = (ERROR, WARNING, INFO)

TRIAL, POINT, RUN = "trial", "point", "run"

#: What a finding does to the numbers.
INVALIDATES = "invalidates"  # the trial is not counted
BOUNDS = "bounds"  # the point's figure is a lower bound: "at least"
BLOCKS = "blocks"  # no difference is shown for the point

#: A direct path this close to the routed one shows that the endpoints are the limit, not the DUT.
ENDPOINT_LIMITED_RATIO = 0.95
UNSTABLE_CV = 0.05
SATURATED = 0.95
IDLE = 0.5
#: Retransmitted bytes of all bytes, beyond which TCP's figure tells more of the loss than of the path.
RETRANSMIT_RATIO = 0.01
#: Over the whole run nothing more can arrive than was sent.
RECEIVED_OVER_SENT = 1.01
#: More received than sent or asked for by this much is no effect of where the window was cut: each end cuts it by a
#: clock of its own, and between them lie buffers.
OVER_IN_THE_WINDOW = 1.25
OVER_ASKED = 1.10
#: Each stream's closing datagrams are counted by one end only.
CLOSING_PACKETS = 64
#: TCP's usual payload in a frame of 1518 bytes with time stamps; to turn a count of retransmits into bytes.
USUAL_SEGMENT_BYTES = 1448
#: Packets a call of VPP's nodes, from which on a thread always finds more waiting than it can take (256 at most).
VPP_SATURATED = 200.0
#: As many sessions come and go with what a host does besides, such as the connection that Ansible came by.
NAT_FEW_SESSIONS = 100
#: Of what a gateway sent into its tunnels, what one of them has when it has all but noise; and how much it must be.
IPSEC_ONE_TUNNEL = 0.95
IPSEC_FEW_BYTES = 1_000_000
#: Frames lost beyond this are a finding.
LOSS_RATIO = 0.001


@dataclasses.dataclass(frozen=True)
class Finding:
    """Something that was noticed: what, how bad, on what evidence, and what to do."""

    code: str
    severity: str
    evidence: str
    remedy: str

    def as_dict(self) -> dict[str, t.Any]:
        return dataclasses.asdict(self)


@dataclasses.dataclass(frozen=True)
class Rule:
    """An entry of the registry."""

    code: str
    level: str
    severity: str
    remedy: str
    meaning: str
    effect: str | None
    #: The effect is on differences between points that differ in this axis; on all of them where it is None.
    axis: str | None
    #: What the numbers can then not be used for, as the end of "These numbers cannot carry ...".
    cannot: str | None
    check: t.Callable[[t.Any], t.Iterable[str]]

    def findings(self, view: t.Any) -> list[Finding]:
        return [Finding(self.code, self.severity, evidence, self.remedy) for evidence in self.check(view)]


#: Code to rule, in the order in which they are written below.
REGISTRY: dict[str, Rule] = {}

_Check = t.TypeVar("_Check", bound=t.Callable[[t.Any], t.Iterable[str]])


def rule(
    code: str,
    level: str,
    severity: str,
    *,
    remedy: str,
    effect: str | None = None,
    axis: str | None = None,
    cannot: str | None = None,
) -> t.Callable[[_Check], _Check]:
    """Put a function into the registry; its docstring is the finding's meaning in the documentation."""

    def register(check: _Check) -> _Check:
        if code in REGISTRY:
            raise ValueError(f"two findings have the code {code!r}")
        meaning = " ".join((check.__doc__ or "").split())
        REGISTRY[code] = Rule(code, level, severity, remedy, meaning, effect, axis, cannot, check)
        return check

    return register


def rules(level: str) -> list[Rule]:
    return [entry for entry in REGISTRY.values() if entry.level == level]


def has_effect(codes: t.Iterable[str], effect: str, differing: t.Collection[str] | None = None) -> str | None:
    """The first code that has the effect, if any does.

    :param differing: the axes in which two points differ; None for a question of one point alone.
    """
    for code in codes:
        entry = REGISTRY.get(code)
        if entry is None or entry.effect != effect:
            continue
        if entry.axis is None or (differing is not None and entry.axis in differing):
            return code
    return None


@dataclasses.dataclass(frozen=True)
class Counted:
    """What the sender and the receiver of one direction counted over the whole run."""

    unit: str
    sent: float
    received: float
    #: By how much the one count may be larger for no other reason than how the tool counts.
    slack: float


# -- views --------------------------------------------------------------------------------------------------------


class TrialView:
    """A trial as the rules read it."""

    def __init__(self, trial: t.Mapping[str, t.Any]) -> None:
        self.trial = trial
        self.direction = str((trial.get("point") or {}).get("direction", "forward"))
        self.intervals: t.Sequence[t.Mapping[str, t.Any]] = trial.get("intervals") or ()
        self.dut: dict[str, HostUse] = {
            str(host): observed.host_use(sample or {}) for host, sample in sorted((trial.get("dut") or {}).items())
        }
        self.endpoints: dict[str, HostUse] = {
            str(host): observed.host_use(sample or {})
            for host, sample in sorted((trial.get("endpoints") or {}).items())
        }

    @property
    def directions(self) -> tuple[str, ...]:
        return ("forward", "reverse") if self.direction == "both" else (self.direction,)

    def metric(self, name: str, direction: str | None = None) -> float | None:
        """The value of ``<name>_<direction>``; without a direction, of the sum or of the only direction."""
        key = (
            f"{name}_{direction}" if direction else f"{name}_{'total' if self.direction == 'both' else self.direction}"
        )
        entry = (self.trial.get("metrics") or {}).get(key)
        value = entry.get("value") if isinstance(entry, t.Mapping) else None
        return value if isinstance(value, (int, float)) else None

    def counts(self, direction: str) -> Counted | None:
        """What both ends counted over the whole run, if they did: datagrams, or else bytes."""
        entry = (self.trial.get("counts") or {}).get(direction) or {}
        for unit, slack in (("packets", CLOSING_PACKETS), ("bytes", 0)):
            sent, received = entry.get(f"sent_{unit}"), entry.get(f"received_{unit}")
            if isinstance(sent, (int, float)) and isinstance(received, (int, float)) and sent > 0:
                return Counted(unit, sent, received, slack)
        return None

    @property
    def headline(self) -> tuple[float | None, str]:
        entry = (self.trial.get("metrics") or {}).get(str(self.trial.get("headline"))) or {}
        return entry.get("value"), str(entry.get("unit", ""))


@dataclasses.dataclass(frozen=True)
class PointView:
    """A point as the rules read it."""

    point: t.Mapping[str, str]
    asked: int
    #: Repetitions that count.
    counted: int
    unit: str
    headline: Summary
    #: Mean of the trials' frame loss ratios; None when it is not known.
    loss_ratio: float | None
    offered_limited: bool
    #: The same traffic without a DUT: point id and headline.
    direct_id: str | None = None
    direct: Summary | None = None
    #: DUT to what VPP did there in the trial with the median of vectors per call.
    vpp: t.Mapping[str, VppUse] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class RunView:
    """A run as the rules read it."""

    run: t.Mapping[str, t.Any]
    missing_points: t.Sequence[str]
    #: (path, why) of each trial file that could not be read.
    unreadable: t.Sequence[tuple[str, str]]
    #: Testbeds that measured a DUT and have no direct path to compare it with.
    without_direct: t.Sequence[str]
    #: Trials that were measured and not collected.
    waiting: int = 0

    @property
    def testbeds(self) -> dict[str, list[str]]:
        return {
            str(name): [str(host) for host in (details or {}).get("hosts", ())]
            for name, details in (self.run.get("testbeds") or {}).items()
        }

    def fingerprint(self, host: str) -> t.Mapping[str, t.Any]:
        found = (self.run.get("fingerprints") or {}).get(host)
        return found if isinstance(found, t.Mapping) else {}


# -- trial --------------------------------------------------------------------------------------------------------


@rule(
    "nothing_received", TRIAL, ERROR, effect=INVALIDATES,
    remedy="Look at the trial's raw output and at the path: addresses, routes, firewall, MTU, checksum offload",
)  # fmt: skip
def _nothing_received(view: TrialView) -> t.Iterator[str]:
    """Traffic was sent and the receiver counted nothing. That is no throughput of zero: the path is broken, or the
    receiver was. The trial is not counted."""
    if view.direction == "both":
        received = [view.metric("goodput", way) for way in view.directions]
        if all(value == 0 for value in received):
            yield "the receivers of both directions counted 0 bit/s"
    elif view.metric("goodput") == 0 or view.metric("forwarding_rate") == 0:
        yield f"the receiver counted 0 bit/s {view.direction}"


@rule(
    "one_direction_dead", TRIAL, ERROR, effect=INVALIDATES,
    remedy="Look at routes, firewall and reverse-path filter of the dead direction; the sum of both is not a result",
)  # fmt: skip
def _one_direction_dead(view: TrialView) -> t.Iterator[str]:
    """Both directions were asked for, and one carried nothing. The sum would hide it, so the trial is not counted."""
    if view.direction != "both":
        return
    received = {way: view.metric("goodput", way) for way in view.directions}
    dead = [way for way, value in received.items() if value == 0]
    alive = [way for way, value in received.items() if value]
    if len(dead) == 1 and alive:
        yield f"{dead[0]} received 0 bit/s while {alive[0]} received {units.human(received[alive[0]], 'bit/s')}"


@rule(
    "implausible_rate", TRIAL, ERROR, effect=INVALIDATES,
    remedy="Do not use the figure; look at the trial's raw output of both ends and report what was printed",
)  # fmt: skip
def _implausible_rate(view: TrialView) -> t.Iterator[str]:
    """More arrived than was sent, than was asked for, or than the link carries. Such a number comes from a report that
    belongs to something else, or from a tool's fault. The trial is not counted."""
    for way in view.directions:
        whole_run = view.counts(way)
        for got_name, sent_name, unit, limit, was in (
            ("goodput", "sent_rate", "bit/s", OVER_IN_THE_WINDOW, "sent"),
            ("forwarding_rate", "sent_packet_rate", "packet/s", OVER_IN_THE_WINDOW, "sent"),
            ("forwarding_rate", "offered_rate", "packet/s", OVER_ASKED, "asked for"),
        ):
            got, sent = view.metric(got_name, way), view.metric(sent_name, way)
            if got is None or sent is None or got <= sent * limit:
                continue
            # The ends' counts over the whole run are sure, where their windows are not: see more_received_than_sent.
            if was == "sent" and whole_run is not None:
                continue
            yield f"{way}: {units.human(got, unit)} received of {units.human(sent, unit)} {was}"
            break
    goodput = max((view.metric("goodput", way) or 0 for way in view.directions), default=0)
    for host, use in view.dut.items():
        ingress = use.ingress
        if ingress is None or not ingress.speed_bps or ingress.rx_bytes is None or not use.window_s:
            continue
        # A veth pair names a speed of 10 Gbit/s and goes beyond it: believe a link's speed only if its counters do.
        counted = 8 * ingress.rx_bytes / use.window_s
        # With less than half of it counted, the traffic took another way: that is dut_saw_no_traffic.
        if goodput > ingress.speed_bps >= counted >= goodput / 2:
            yield (
                f"{units.human(goodput, 'bit/s')} in one direction over {host} {ingress.name}, a link of "
                f"{units.human(ingress.speed_bps, 'bit/s')} that counted {units.human(counted, 'bit/s')}"
            )


@rule(
    "more_received_than_sent", TRIAL, ERROR, effect=INVALIDATES,
    remedy="The ends' reports do not belong to one test, or the path duplicates packets: look at the raw output",
)  # fmt: skip
def _more_received_than_sent(view: TrialView) -> t.Iterator[str]:
    """Over the whole run the receiver counted more than the sender. Either the reports belong to two tests, or packets
    were duplicated on the way. The trial is not counted."""
    for way in view.directions:
        counted = view.counts(way)
        if counted is not None and counted.received > counted.sent * RECEIVED_OVER_SENT + counted.slack:
            yield f"{way}: {counted.received:,.0f} {counted.unit} received of {counted.sent:,.0f} sent"


@rule(
    "dut_saw_no_traffic", TRIAL, ERROR, effect=INVALIDATES,
    remedy="Check addresses and routes of the endpoints (the traffic takes another way), "
    "and that the DUT's data interfaces are the ones that are sampled",
)  # fmt: skip
def _dut_saw_no_traffic(view: TrialView) -> t.Iterator[str]:
    """The DUT's own counters hold less than half of what the receiver got: the traffic did not pass through the DUT,
    so this is no measurement of it. The trial is not counted."""
    goodput, rate = view.metric("goodput"), view.metric("forwarding_rate")
    for host, use in view.dut.items():
        if not use.window_s:
            continue
        # Bytes rather than packets: the kernel may hand on many packets as one.
        if use.rx_bytes is not None and goodput:
            seen, expected, unit = 8 * use.rx_bytes / use.window_s, goodput, "bit/s"
        elif use.rx_frames_per_s is not None and rate:
            seen, expected, unit = use.rx_frames_per_s, rate, "packet/s"
        else:
            continue
        if seen < expected / 2:
            yield f"{host} received {units.human(seen, unit)}, the endpoints received {units.human(expected, unit)}"


@rule(
    "dut_not_observed", TRIAL, INFO,
    remedy="Look at the reason; without the DUT's counters it is not proven that the traffic passed through it",
)  # fmt: skip
def _dut_not_observed(view: TrialView) -> t.Iterator[str]:
    """The trial has a DUT and no counters of it, so that nothing shows what the DUT saw and did."""
    for host, use in view.dut.items():
        if use.reason or (not any(interface.known for interface in use.interfaces) and not use.cpus):
            yield f"{host}: {use.reason or 'no sample'}"
    if not view.dut and (view.trial.get("point") or {}).get("datapath", "none") != "none":
        yield "the trial holds no sample of a DUT"


@rule(
    "gso_segments", TRIAL, WARNING,
    remedy="For packets as on a wire, turn off TSO, GSO and GRO on the path (net_tuning or topology offloads), "
    "or measure with udp_small",
    cannot="a packet rate: the kernel forwarded large segments, each of many packets",
)  # fmt: skip
def _gso_segments(view: TrialView) -> t.Iterator[str]:
    """The mean frame that the DUT received is larger than the MTU allows on a wire, so what it forwarded were
    segments that the kernel had not yet cut into packets. Work per packet, and thus the DUT's packet rate, was not
    measured."""
    for host, use in view.dut.items():
        for interface in use.interfaces:
            size, mtu = interface.mean_rx_frame_bytes, interface.mtu_bytes
            if size is not None and mtu and size > mtu + observed.ETHERNET_HEADER_BYTES:
                yield (
                    f"{host} {interface.name}: mean received frame {size:,.0f} bytes, "
                    f"MTU {mtu:,} + {observed.ETHERNET_HEADER_BYTES} bytes of header"
                )


@rule(
    "fragmented_datagrams", TRIAL, WARNING,
    remedy="Send datagrams that fit the path's MTU: its bytes less 28 with IPv4 and 48 with IPv6 (option length_bytes)",
    cannot="a packet rate: each datagram was cut into several frames",
)  # fmt: skip
def _fragmented_datagrams(view: TrialView) -> t.Iterator[str]:
    """A datagram was larger than an interface's MTU allows, so each was cut into fragments. What is counted as one
    packet was several frames on the way, and one lost frame loses them all."""
    mtus = [
        (interface.mtu_bytes, f"{host} {interface.name}")
        for hosts in (view.endpoints, view.dut)
        for host, use in hosts.items()
        for interface in use.interfaces
        if interface.mtu_bytes and (interface.rx_packets or interface.tx_packets)
    ]
    if not mtus:
        return
    mtu, where = min(mtus)
    for way in view.directions:
        goodput, rate = view.metric("goodput", way), view.metric("forwarding_rate", way)
        size = goodput / 8 / rate if goodput and rate else 0
        if size + observed.UDP_HEADER_BYTES > mtu + 0.5:
            yield (
                f"{way}: datagrams of {size:,.0f} bytes and {observed.UDP_HEADER_BYTES} bytes of headers, "
                f"{where} has MTU {mtu:,}"
            )


@rule(
    "single_core_saturated", TRIAL, WARNING,
    remedy="Spread the load: more rx queues, RPS masks, or one VPP worker for each queue; else the figure is that of "
    "one core",
)  # fmt: skip
def _single_core_saturated(view: TrialView) -> t.Iterator[str]:
    """One CPU of the DUT had no time left while the others idled on average. The figure is the limit of one core,
    and says nothing of the whole machine. A CPU on which VPP polls is always at 100 % and is left out."""
    for host, use in view.dut.items():
        cpus = [cpu for cpu in use.cpus if not (use.polls and cpu.kind == "user" and cpu.busy >= 0.9)]
        if len(cpus) < 2:
            continue
        busiest = max(cpus, key=lambda cpu: cpu.busy)
        others = statistics.fmean(cpu.busy for cpu in cpus if cpu is not busiest)
        if busiest.busy >= SATURATED and others < IDLE:
            yield (
                f"{host}: CPU {busiest.cpu} {100 * busiest.busy:.0f} % busy{_mostly(busiest)}, "
                f"the other {len(cpus) - 1} on average {100 * others:.0f} %"
            )


@rule(
    "endpoint_cpu_saturated", TRIAL, WARNING,
    remedy="Give the endpoints more streams, queues or cores, and compare with the direct path",
)  # fmt: skip
def _endpoint_cpu_saturated(view: TrialView) -> t.Iterator[str]:
    """A CPU of a traffic generator had no time left, so that the generator may be the limit and not the DUT."""
    for host, use in view.endpoints.items():
        busiest = use.busiest_cpu
        if busiest is not None and busiest.busy >= SATURATED:
            yield f"{host}: CPU {busiest.cpu} {100 * busiest.busy:.0f} % busy{_mostly(busiest)}"


@rule(
    "softnet_drops", TRIAL, WARNING,
    remedy="Raise net.core.netdev_max_backlog and net.core.netdev_budget, or spread the load over more CPUs",
)  # fmt: skip
def _softnet_drops(view: TrialView) -> t.Iterator[str]:
    """The DUT's kernel dropped packets because the queue between the interface and the stack was full."""
    for host, use in view.dut.items():
        if use.softnet_dropped:
            yield f"{host}: {use.softnet_dropped:,} packets dropped in softnet during the trial"


@rule(
    "interface_drops", TRIAL, WARNING,
    remedy="Look at ring sizes, flow control and queue placement of the named interface",
)  # fmt: skip
def _interface_drops(view: TrialView) -> t.Iterator[str]:
    """Interfaces of the DUT counted drops or errors."""
    for host, use in view.dut.items():
        for interface in use.interfaces:
            lost = _losses(interface)
            if lost:
                yield f"{host} {interface.name}: {lost}"


@rule(
    "zero_intervals", TRIAL, WARNING,
    remedy="Look for MTU or MSS trouble, loss bursts and CPU starvation; the mean hides the stall",
)  # fmt: skip
def _zero_intervals(view: TrialView) -> t.Iterator[str]:
    """In some intervals nothing arrived, in others it did: the flow stalled. A typical cause is a path MTU that large
    segments do not pass."""
    for way in view.directions:
        amounts = [i.get("bytes") for i in view.intervals if i.get("direction") == way]
        known = [amount for amount in amounts if amount is not None]
        zero = known.count(0)
        if zero and zero < len(known):
            yield f"{way}: {zero} of {len(known)} intervals received 0 bytes"


@rule(
    "retransmits_high", TRIAL, WARNING,
    remedy="Find where packets are lost (softnet, interface drops, ring sizes), or use fewer streams",
)  # fmt: skip
def _retransmits_high(view: TrialView) -> t.Iterator[str]:
    """TCP sent more than 1 % of its bytes again (each retransmit taken as 1,448 bytes): the figure tells of the loss
    and of the congestion control as much as of the path."""
    duration_s = view.trial.get("duration_s")
    for way in view.directions:
        count, goodput = view.metric("retransmits", way), view.metric("goodput", way)
        if not count or not goodput or not duration_s:
            continue
        ratio = count * USUAL_SEGMENT_BYTES * 8 / (goodput * float(duration_s))
        if ratio > RETRANSMIT_RATIO:
            yield (
                f"{way}: {count:,.0f} retransmits in {units.seconds(float(duration_s))} at "
                f"{units.human(goodput, 'bit/s')}, about {100 * ratio:.1f} % of the bytes"
            )


@rule(
    "offered_below_intended", TRIAL, WARNING,
    remedy="The sender is the limit at this rate: use more streams or another generator, or ask for less",
)  # fmt: skip
def _offered_below_intended(view: TrialView) -> t.Iterator[str]:
    """The sender sent less than 95 % of the rate that was asked for, so the DUT was never offered that load."""
    for way in view.directions:
        asked, sent = view.metric("offered_rate", way), view.metric("sent_packet_rate", way)
        if asked and sent is not None and sent < 0.95 * asked:
            yield f"{way}: {units.human(sent, 'packet/s')} sent of {units.human(asked, 'packet/s')} asked for"


@rule(
    "setup_retried", TRIAL, INFO,
    remedy="Nothing, when it is rare; otherwise look at the server's start and the control connection",
)  # fmt: skip
def _setup_retried(view: TrialView) -> t.Iterator[str]:
    """The generator had to try more than once to set the trial up. No data had moved before the try that counted."""
    tries = view.trial.get("tries")
    if isinstance(tries, int) and tries > 1:
        yield f"set up at try {tries}"


@rule(
    "profile_not_effective", TRIAL, WARNING, effect=BLOCKS,
    remedy="Look at what the power profile's read-back says: firmware, hypervisor or another service holds the setting",
    cannot="a comparison of power profiles where one did not take effect",
)  # fmt: skip
def _profile_not_effective(view: TrialView) -> t.Iterator[str]:
    """A power profile was applied and what was read back, or a reading under load, shows that it did not take effect.
    Differences from and to such a point are not shown."""
    power = view.trial.get("power")
    if isinstance(power, t.Mapping) and power.get("effective") is False:
        profile = power.get("profile") or "the profile"
        yield f"{profile}: {power.get('reason') or 'it was applied and did not take effect'}"


@rule(
    "power_emulated", TRIAL, WARNING, effect=BLOCKS, axis="power",
    remedy="Run it on servers whose own BMC sets their firmware",
    cannot="what a power profile changes: it was set in an emulator of a BMC, and no CPU has its clock from there",
)  # fmt: skip
def _power_emulated(view: TrialView) -> t.Iterator[str]:
    """A power profile reads back as asked from the emulator of a BMC. Such a one keeps what it is told and sets no
    CPU, so differences between power profiles are not shown, whatever the figures are. Other differences are."""
    power = view.trial.get("power")
    if not isinstance(power, t.Mapping) or power.get("effective") is not None:
        return
    for host, state in (power.get("hosts") or {}).items():
        if state.get("emulated") and state.get("effective") is None:
            yield f"{power.get('profile')}: the BMC of {host} is {state['emulated']}, an emulator"


@rule(
    "routes_changed", TRIAL, WARNING, effect=BLOCKS,
    remedy="Find who changes routes (a routing daemon, a DHCP client, another user) and measure again without",
    cannot="a comparison: the way through the network changed while traffic ran",
)  # fmt: skip
def _routes_changed(view: TrialView) -> t.Iterator[str]:
    """Routes or next hops by the interfaces of the measurement were set or deleted on a host while traffic ran. Flows
    are then spread anew over next hops, or take another way, and the figure is that of no one state."""
    for part in ("dut", "endpoints"):
        for host, sample in sorted((view.trial.get(part) or {}).items()):
            changes = (sample or {}).get("routes_changed")
            if changes:
                yield f"{host}: {', '.join(changes[:5])}" + (" and others" if len(changes) > 5 else "")


@rule(
    "vpp_saturated", TRIAL, WARNING,
    remedy="Add workers to VPP (vpp_workers), and receive queues so that each has one",
)  # fmt: skip
def _vpp_saturated(view: TrialView) -> t.Iterator[str]:
    """A thread of VPP handled 200 packets a call or more, of the 256 that fit: there were always more waiting than it
    could take. VPP is the limit, and the figure is that of so many threads."""
    for host, use in view.dut.items():
        for thread in use.vpp.threads if use.vpp else ():
            if thread.vectors_per_call is not None and thread.vectors_per_call >= VPP_SATURATED:
                clocks = thread.clocks_per_packet
                yield f"{host}: {thread.name} {thread.vectors_per_call:.0f} packets a call, of 256 that fit" + (
                    "" if clocks is None else f", {clocks:,.0f} clocks a packet"
                )


@rule(
    "vpp_drops", TRIAL, WARNING,
    remedy="Look at the named node's reason and interface: 'no buffers' asks for more buffers, a full ring or queue "
    "for a faster way out or more queues, and the rest is mostly a route, neighbour or MTU that does not fit",
)  # fmt: skip
def _vpp_drops(view: TrialView) -> t.Iterator[str]:
    """VPP itself dropped packets during the trial, with the counts of its interfaces and the reasons that its nodes
    gave. What VPP counts there and is no loss is left out."""
    for host, use in view.dut.items():
        if use.vpp and (use.vpp.dropped or use.vpp.lost or use.vpp.reasons):
            yield f"{host}: {vpp_losses(use.vpp)}"


@rule(
    "af_packet_path", TRIAL, INFO,
    remedy="For what VPP does on a real card, bind the card to DPDK or a native driver",
    cannot="what VPP does with a DPDK or native driver: its packets went through af_packet, sockets of the kernel",
)  # fmt: skip
def _af_packet_path(view: TrialView) -> t.Iterator[str]:
    """VPP took its packets from af_packet, so each went through the kernel twice and was copied. The figure is that
    of this way, and says nothing of a card that VPP drives itself."""
    for host, use in view.dut.items():
        taken = sum(node.vectors for node in use.vpp.nodes if node.name == "af-packet-input") if use.vpp else 0
        if taken:
            yield f"{host}: af-packet-input took {taken:,} packets"


@rule(
    "ipsec_not_carried", TRIAL, ERROR, effect=INVALIDATES,
    remedy="The traffic does not go through the tunnels: look at routes, policies and interface ids of both gateways",
)  # fmt: skip
def _ipsec_not_carried(view: TrialView) -> t.Iterator[str]:
    """The tunnels of a gateway carried less than half of what the receiver got: the traffic passed them by, and the
    figure is one of a path in the clear. The trial is not counted."""
    goodput = view.metric("goodput")
    for host, use in view.dut.items():
        if not goodput or not use.window_s or use.ipsec is None or use.ipsec_bytes is None:
            continue
        carried = 8 * use.ipsec_bytes / use.window_s
        if carried < goodput / 2:
            yield (
                f"{host}: its tunnels carried {units.human(carried, 'bit/s')}, the endpoints received "
                f"{units.human(goodput, 'bit/s')}"
            )


@rule(
    "ipsec_use", TRIAL, INFO,
    remedy="Read it with the other findings: what the hash of the card sees are the pairs of outer addresses",
)  # fmt: skip
def _ipsec_use(view: TrialView) -> t.Iterator[str]:
    """How the traffic was laid out over security associations and CPUs: one SA is worked on by one CPU at a time, and
    all SAs between two addresses come in by one queue."""
    for host, use in view.dut.items():
        if use.ipsec is None or not use.ipsec.tunnels:
            continue
        parts = [
            f"{_several(use.ipsec.tunnels, 'CHILD_SA')} ({use.ipsec.mode}) between "
            f"{_several(use.ipsec.outer_pairs, 'pair')} of outer addresses"
        ]
        sent = [one.tx_bytes or 0 for one in use.tunnel_interfaces]
        total = sum(sent)
        if len(sent) > 1 and total:
            parts.append("of what it sent they had " + ", ".join(f"{100 * one / total:.0f} %" for one in sent))
        busiest = use.busiest_cpu
        if busiest is not None:
            parts.append(f"CPU {busiest.cpu} {100 * busiest.busy:.0f} % busy{_mostly(busiest)}")
            others = [cpu.busy for cpu in use.cpus if cpu is not busiest]
            if others:
                parts.append(f"the other {len(others)} on average {100 * statistics.fmean(others):.0f} %")
        yield f"{host}: {', '.join(parts)}"


def _several(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


@rule(
    "ipsec_one_tunnel", TRIAL, WARNING,
    remedy="Set the multipath hash policy to 1 (addresses and ports), and send at least as many flows as there are "
    "tunnels",
    cannot="what several tunnels are good for: one of them carried the traffic",
)  # fmt: skip
def _ipsec_one_tunnel(view: TrialView) -> t.Iterator[str]:
    """There were several tunnels, and nearly all that a gateway sent left by one: its route has as many next hops, and
    the hash that chooses between them saw no difference between the flows."""
    for host, use in view.dut.items():
        sent = {one.name: one.tx_bytes for one in use.tunnel_interfaces if one.tx_bytes}
        if use.ipsec is None or use.ipsec.tunnels < 2 or not sent:
            continue
        most = max(sent, key=lambda name: sent[name] or 0)
        total = sum(count or 0 for count in sent.values())
        # acknowledgements of a few flows say nothing of the spread
        if total < IPSEC_FEW_BYTES or (sent[most] or 0) < IPSEC_ONE_TUNNEL * total:
            continue
        policy = "" if use.ipsec.hash_policy is None else f", hash policy {use.ipsec.hash_policy}"
        yield f"{host}: {most} of {use.ipsec.tunnels} tunnels carried {100 * (sent[most] or 0) / total:.0f} %{policy}"


@rule(
    "ipsec_one_outer_pair", TRIAL, WARNING,
    remedy="Use several pairs of outer addresses (ipsec_outer), so that the card's hash sees several flows, or let the "
    "card do the encryption",
)  # fmt: skip
def _ipsec_one_outer_pair(view: TrialView) -> t.Iterator[str]:
    """All ESP packets had the same two addresses and no ports, so that the card put them into one queue: one CPU was
    full while others idled, and neither RPS nor more tunnels between these addresses can spread that."""
    for host, use in view.dut.items():
        busiest = use.busiest_cpu
        if use.ipsec is None or use.ipsec.outer_pairs != 1 or len(use.cpus) < 2 or busiest is None:
            continue
        others = statistics.fmean(cpu.busy for cpu in use.cpus if cpu is not busiest)
        if busiest.busy >= SATURATED and others < IDLE and busiest.kind in ("softirq", "system"):
            yield (
                f"{host}: {use.ipsec.tunnels} tunnel{'s' if use.ipsec.tunnels != 1 else ''} between one pair of "
                f"addresses, CPU {busiest.cpu} {100 * busiest.busy:.0f} % busy{_mostly(busiest)}, "
                f"the other {len(use.cpus) - 1} on average {100 * others:.0f} %"
            )


@rule(
    "ipsec_no_acceleration", TRIAL, WARNING,
    remedy="Let the CPU flags (aes, pclmulqdq) through to a guest, load aesni_intel or its like, or take an algorithm "
    "that the processor helps with",
)  # fmt: skip
def _ipsec_no_acceleration(view: TrialView) -> t.Iterator[str]:
    """The kernel of a gateway computes an algorithm of ESP without instructions of the processor for it, which takes
    several times as long."""
    for host, use in view.dut.items():
        if use.ipsec and use.ipsec.plain:
            told = ", ".join(f"{name} by {driver}" for name, driver in use.ipsec.plain.items())
            yield f"{host}: {told}"


@rule(
    "ipsec_decrypt_bound", TRIAL, WARNING,
    remedy="Spread what arrives (several outer pairs, more receive queues), take an algorithm with acceleration, or "
    "give that gateway a faster core",
)  # fmt: skip
def _ipsec_decrypt_bound(view: TrialView) -> t.Iterator[str]:
    """The gateway that decrypted had a CPU without time left, the one that encrypted had not: decryption is the
    limit."""
    gateways = {host: use for host, use in view.dut.items() if use.ipsec and use.tunnel_interfaces}
    if len(gateways) != 2:
        return
    one_end, other_end = gateways.items()
    for (host, use), (other_host, other) in ((one_end, other_end), (other_end, one_end)):
        received = sum(one.rx_bytes or 0 for one in use.tunnel_interfaces)
        sent = sum(one.tx_bytes or 0 for one in use.tunnel_interfaces)
        busiest, theirs = use.busiest_cpu, other.busiest_cpu
        if received <= sent or busiest is None or theirs is None:
            continue
        if busiest.busy >= SATURATED > theirs.busy and busiest.kind in ("softirq", "system"):
            yield (
                f"{host} decrypts: CPU {busiest.cpu} {100 * busiest.busy:.0f} % busy{_mostly(busiest)}; "
                f"{other_host} encrypts: at most {100 * theirs.busy:.0f} %"
            )


def _sessions(view: TrialView) -> t.Iterator[tuple[str, dict[str, int]]]:
    """What each translating or tracking table of a DUT held around the trial."""
    for host, sample in sorted((view.trial.get("dut") or {}).items()):
        vpp = (sample or {}).get("vpp") or {}
        for mode, levels in sorted((vpp.get("nat44") or {}).items()):
            yield f"{host}: NAT44 {mode} of VPP", levels
        if (sample or {}).get("conntrack"):
            yield f"{host}: the kernel's conntrack", sample["conntrack"]


@rule(
    "nat_established_path", TRIAL, INFO,
    remedy="Measure also with a generator that opens a connection per request or sends many flows",
    cannot="how many new sessions a second the NAT can open: only the established path was measured",
)  # fmt: skip
def _nat_established_path(view: TrialView) -> t.Iterator[str]:
    """The traffic passed a table of sessions and opened hardly any while it was measured. What limits a NAT is how many
    sessions it can open in a second, and a packet that opens one costs many times what the others cost."""
    for name, held in _sessions(view):
        opened = held["window_end"] - held["window_start"]
        if held["most"] and opened < NAT_FEW_SESSIONS:
            yield f"{name} held {held['most']:,} sessions, {max(opened, 0):,} of them opened in the window"


@rule(
    "nat_dirty_table", TRIAL, WARNING,
    remedy="Reset the datapath before each trial (stateful: true of bench_datapaths, entry point reset of its role)",
)  # fmt: skip
def _nat_dirty_table(view: TrialView) -> t.Iterator[str]:
    """Sessions were left from before when the trial began, so it met another table than a first trial does: fuller,
    with ports taken, and near its limit at worst."""
    for name, held in _sessions(view):
        if held["before"] > NAT_FEW_SESSIONS:
            yield f"{name} held {held['before']:,} sessions before the trial's first packet"


# -- point --------------------------------------------------------------------------------------------------------


@rule(
    "incomplete_point", POINT, WARNING,
    remedy="See the reasons beside the point, then resume the run with its bench_run_id: only what is missing runs",
)  # fmt: skip
def _incomplete_point(view: PointView) -> t.Iterator[str]:
    """Fewer trials count than were asked for, because some failed, were invalid or never ran."""
    if 0 < view.counted < view.asked:
        yield f"{view.counted} of {view.asked} repetitions count"


@rule(
    "few_repetitions", POINT, INFO,
    remedy="Set repeats to 3 or more (5 for differences of a few percent)",
)  # fmt: skip
def _few_repetitions(view: PointView) -> t.Iterator[str]:
    """With fewer than 3 repetitions the spread is hardly known: with 1 there is none, with 2 the 95 % interval is
    12.7 standard errors wide."""
    if 0 < view.headline.n < 3:
        yield f"n {view.headline.n}"


@rule(
    "unstable", POINT, WARNING,
    remedy="Look for other load on the hosts, power saving and thermal limits; take longer trials and more of them",
)  # fmt: skip
def _unstable(view: PointView) -> t.Iterator[str]:
    """The repetitions spread by more than 5 % (standard deviation divided by mean)."""
    summary = view.headline
    if summary.cv is not None and summary.cv > UNSTABLE_CV:
        yield (
            f"spread {100 * summary.cv:.1f} % over n {summary.n}, "
            f"{units.human(summary.min, view.unit)} to {units.human(summary.max, view.unit)}"
        )


@rule(
    "endpoint_limited", POINT, WARNING, effect=BOUNDS,
    remedy="Use faster endpoints or more streams until the direct path is clearly faster than the routed one",
    cannot="the DUT's limit where the endpoints are the limit: the figures are lower bounds",
)  # fmt: skip
def _endpoint_limited(view: PointView) -> t.Iterator[str]:
    """The path through the DUT is no slower than 95 % of the direct path without it. The endpoints are then the limit,
    and the DUT carries at least that much. Such a figure is printed with "at least", and a difference is not shown
    unless the bound alone carries it."""
    if view.direct is None or view.unit not in ("bit/s", "packet/s"):
        return
    ours, theirs = view.headline.median, view.direct.median
    if ours and theirs and ours >= ENDPOINT_LIMITED_RATIO * theirs:
        yield (
            f"{units.human(ours, view.unit)} is {100 * ours / theirs:.0f} % of the direct path's "
            f"{units.human(theirs, view.unit)} ({view.direct_id})"
        )


@rule(
    "vpp_not_the_limit", POINT, INFO,
    remedy="Look at the receive path (queues, ring and block sizes, rx mode, veth, the kernel's share) and at who else "
    "uses the CPUs of VPP's threads; more workers alone do not help",
)  # fmt: skip
def _vpp_not_the_limit(view: PointView) -> t.Iterator[str]:
    """More was asked of the path than it carried (frames were lost, or it is slower than the direct path), and VPP's
    threads handled fewer than 16 packets a call, of the 256 that fit. The bottleneck is then the way into VPP and out
    of it (af_packet, veth, the kernel) or the share of a CPU that VPP's threads get, and not VPP's graph."""
    short = []
    if view.loss_ratio is not None and view.loss_ratio > LOSS_RATIO:
        short.append(f"{units.human(view.loss_ratio, 'ratio')} of the frames lost")
    ours, theirs = view.headline.median, view.direct.median if view.direct else None
    if ours and theirs and view.unit in ("bit/s", "packet/s") and ours < ENDPOINT_LIMITED_RATIO * theirs:
        short.append(f"{100 * ours / theirs:.0f} % of the direct path ({view.direct_id})")
    if not short:
        return
    for host, use in view.vpp.items():
        # The fullest calls of any thread: one that is short of room is enough for VPP to be the limit.
        fullest = max(
            (thread for thread in use.threads if thread.vectors_per_call is not None),
            key=lambda thread: thread.vectors_per_call or 0,
            default=None,
        )
        if fullest is None or not fullest.vectors_per_call or fullest.vectors_per_call >= observed.FEW_VECTORS:
            continue
        share = fullest.cpu_ratio
        yield (
            f"{' and '.join(short)}, while {fullest.name} of {host} handled {fullest.vectors_per_call:.3g} packets a "
            f"call" + ("" if share is None else f" and was on a CPU {100 * share:.0f} % of the time")
        )


@rule(
    "loss_at_overload", POINT, INFO,
    remedy="For throughput with a stated loss, use the throughput search (playbook fastpath.bench.ndr)",
    cannot="RFC 2544 throughput: frames were lost while the rate was measured",
)  # fmt: skip
def _loss_at_overload(view: PointView) -> t.Iterator[str]:
    """More than 0.1 % of the frames were lost. The figure is the forwarding rate under that load (RFC 2285), which is
    not the throughput of RFC 1242, the highest rate without loss."""
    if view.loss_ratio is not None and view.loss_ratio > LOSS_RATIO:
        load = "the load that was asked for" if view.offered_limited else "as much as the sender could send"
        yield f"{units.human(view.loss_ratio, 'ratio')} of the frames lost on average, offered {load}"


# -- run ----------------------------------------------------------------------------------------------------------


@rule(
    "unreadable_trial", RUN, ERROR,
    remedy="Resume the run with its bench_run_id: the repetition is measured again as a new attempt",
)  # fmt: skip
def _unreadable_trial(view: RunView) -> t.Iterator[str]:
    """A trial's file is broken or was written by another version. It is left out, and everything else is reported."""
    for path, why in view.unreadable:
        yield f"{path}: {why}"


@rule(
    "missing_points", RUN, WARNING,
    remedy="Resume the run with its bench_run_id: only what is missing runs",
)  # fmt: skip
def _missing_points(view: RunView) -> t.Iterator[str]:
    """Points of the plan have no trial at all."""
    if view.missing_points:
        shown = ", ".join(view.missing_points[:5])
        more = len(view.missing_points) - 5
        yield f"never run ({len(view.missing_points)}): {shown}" + (f" and {more} more" if more > 0 else "")


@rule(
    "not_collected", RUN, WARNING,
    remedy="Resume the run with its bench_run_id: it collects them from the endpoints, where they are kept for a day",
)  # fmt: skip
def _not_collected(view: RunView) -> t.Iterator[str]:
    """The run was broken off in the middle of a batch: trials were measured, and what the server and the DUT counted
    was not yet brought together with what the client did."""
    if view.waiting:
        yield f"{view.waiting} measured {'trials are' if view.waiting > 1 else 'trial is'} not in this report"


@rule(
    "run_unfinished", RUN, INFO,
    remedy="Resume the run with its bench_run_id, or report again once it has ended",
)  # fmt: skip
def _run_unfinished(view: RunView) -> t.Iterator[str]:
    """The run has not ended: it goes on while this is written, or it was stopped."""
    if not view.run.get("finished"):
        yield "run.json holds no end of the run"


@rule(
    "host_not_restored", RUN, ERROR,
    remedy="Run playbook fastpath.bench.restore and compare the host by hand",
)  # fmt: skip
def _host_not_restored(view: RunView) -> t.Iterator[str]:
    """The run left a host otherwise than it found it: it did not answer, a setting could not be put back, or somebody
    else changed it meanwhile. The figures stand; the playbook ends with an error, so that it is not overlooked."""
    for host, what in (view.run.get("not_restored") or {}).items():
        yield f"{host} {what}"


@rule(
    "no_direct_path", RUN, INFO,
    remedy="Add a topology without a DUT to the matrix",
    cannot="whether the DUT or the endpoints were the limit",
)  # fmt: skip
def _no_direct_path(view: RunView) -> t.Iterator[str]:
    """No point of the testbed was measured without the DUT, so it is not known whether the endpoints could do more."""
    for testbed in view.without_direct:
        yield f"testbed {testbed} has routed points and none without a DUT"


@rule(
    "virtual_cpus", RUN, WARNING,
    remedy="For absolute figures measure on real machines, or reserve the CPUs (role vm_resources)",
    cannot="absolute rates of real hardware: the CPUs are virtual",
)  # fmt: skip
def _virtual_cpus(view: RunView) -> t.Iterator[str]:
    """The hosts run under a hypervisor, which may take their CPUs away at any moment. Like-with-like ratios of the run
    are not touched by that, as long as they repeat."""
    for testbed, hosts in view.testbeds.items():
        found: dict[str, list[str]] = {}
        for host in hosts:
            name = observed.hypervisor(view.fingerprint(host))
            if name:
                found.setdefault(name, []).append(host)
        for name, members in sorted(found.items()):
            yield f"testbed {testbed}: {', '.join(members)} under {name}"


@rule(
    "emulated_cpus", RUN, WARNING,
    remedy="Give the virtual machines KVM, or measure on real machines",
    cannot="any rate, and how dear one kind of work is beside another: the CPUs are computed in software",
)  # fmt: skip
def _emulated_cpus(view: RunView) -> t.Iterator[str]:
    """Hosts whose CPUs an emulator computes instruction by instruction (QEMU without KVM). What that costs is not what
    a processor needs: encryption, for one, has no instructions of its own there. Only ratios of like with like mean
    something, and mostly the explanations: which CPU was full, by what, and how traffic was spread."""
    for testbed, hosts in view.testbeds.items():
        found = [host for host in hosts if observed.emulated(view.fingerprint(host))]
        if found:
            yield f"testbed {testbed}: {', '.join(found)} by QEMU without KVM"


@rule(
    "shared_cpus", RUN, WARNING,
    remedy="For absolute figures put each part on a machine of its own",
    cannot="absolute rates of a DUT alone: generator and DUT competed for the same CPUs",
)  # fmt: skip
def _shared_cpus(view: RunView) -> t.Iterator[str]:
    """Several hosts of the testbed are one machine: what a generator uses of the CPUs, the DUT lacks. Like-with-like
    ratios of the run are not touched by that, as long as they repeat."""
    for testbed, hosts in view.testbeds.items():
        known = {host: view.fingerprint(host) for host in hosts}
        shared = [members for members in observed.machines(known) if len(members) > 1]
        for members in shared:
            yield f"testbed {testbed}: {', '.join(members)} run on the same machine"
        lab = (view.run["testbeds"][testbed] or {}).get("lab")
        if lab and not shared and len(hosts) > 1:
            yield f"testbed {testbed}: {', '.join(hosts)} are hosts of the lab {lab!r} on one machine"


@rule(
    "veth_path", RUN, WARNING,
    remedy="For absolute figures use real network cards",
    cannot="what a network card and its driver cost: the cables are veth pairs",
)  # fmt: skip
def _veth_path(view: RunView) -> t.Iterator[str]:
    """Cables of the testbed are veth pairs: no card, no driver, no DMA and no wire took part."""
    for testbed, hosts in view.testbeds.items():
        found = [
            f"{host} {name}"
            for host in hosts
            for name, driver in observed.drivers(view.fingerprint(host)).items()
            if driver == "veth"
        ]
        if found:
            yield (
                f"testbed {testbed}: "
                + ", ".join(found[:6])
                + (f" and {len(found) - 6} more" if len(found) > 6 else "")
            )


@rule(
    "no_fingerprint", RUN, INFO,
    remedy="Let the engine take fingerprints (host_fingerprint); virtual and shared CPUs are not seen without",
)  # fmt: skip
def _no_fingerprint(view: RunView) -> t.Iterator[str]:
    """Nothing is known of a host: what it is, and what it ran. Such figures can hardly be compared with others."""
    for testbed, hosts in view.testbeds.items():
        unknown = [host for host in hosts if not view.fingerprint(host)]
        if unknown:
            yield f"testbed {testbed}: {', '.join(unknown)}"


# -- use ----------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Assessment:
    """What a trial is worth."""

    status: str
    code: str | None
    reason: str | None
    findings: list[Finding]


def assess(trial: t.Mapping[str, t.Any], view: TrialView | None = None) -> Assessment:
    """Status and findings of a trial. Asked again about its own answer, it gives the same.

    What the trial already carries stands first and counts once; only a trial that was measured (``ok`` or
    ``invalid``) is looked at, since a failed or skipped one has no figures. ``view`` spares reading its samples again.
    """
    findings = [
        Finding(
            str(entry.get("code")),
            entry["severity"] if entry.get("severity") in SEVERITIES else WARNING,
            str(entry.get("evidence") or ""),
            str(entry.get("remedy") or ""),
        )
        for entry in trial.get("findings") or ()
        if isinstance(entry, t.Mapping) and entry.get("code")
    ]
    status, code, reason = str(trial.get("status")), trial.get("code"), trial.get("reason")
    if status in ("ok", "invalid"):
        carried = {finding.code for finding in findings}
        view = view or TrialView(trial)
        for entry in rules(TRIAL):
            if entry.code not in carried:
                findings.extend(entry.findings(view))
    if status == "ok":
        culprit = has_effect((finding.code for finding in findings), INVALIDATES)
        if culprit:
            status, code = "invalid", culprit
            reason = next(finding.evidence for finding in findings if finding.code == culprit)
    return Assessment(status, code, reason, findings)


def reference() -> str:
    """docs/findings.md: the registry in words."""
    lines = [
        "# Findings",
        "",
        "A finding is something the tool noticed about a trial, a point or a run. Each has a code, the evidence (the",
        "figures it rests on) and a remedy. This page is made from the registry in",
        "`plugins/module_utils/_bench/findings.py`, and a test keeps both the same.",
        "",
        "What a finding does to the numbers:",
        "",
        "- **invalidates**: the trial is not counted.",
        '- **bounds**: the figure is a lower bound and is printed with "at least".',
        "- **blocks**: no difference from or to the point is shown.",
        "- nothing of these: the figure stands, with the finding beside it.",
        "",
        "| code | about a | severity | effect |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| [`{entry.code}`](#{entry.code}) | {entry.level} | {entry.severity} | {entry.effect or ''} |"
        for entry in REGISTRY.values()
    ]
    for entry in REGISTRY.values():
        lines += ["", f"## {entry.code}", "", entry.meaning, "", f"**What to do:** {entry.remedy}."]
        if entry.cannot:
            lines += ["", f"**The numbers then cannot carry** {entry.cannot}."]
    return "\n".join(lines) + "\n"


def _mostly(cpu: observed.CpuUse) -> str:
    return f", mostly {cpu.kind} ({100 * cpu.share:.0f} %)" if cpu.kind and cpu.share is not None else ""


def vpp_losses(use: VppUse) -> str:
    """What VPP lost, by interface and by reason: ``eth1 rx-miss 12; ip4-lookup: no route 7``."""
    return "; ".join(
        [f"{name} {counter} {count:,}" for (name, counter), count in use.lost.items()]
        + [f"{node}: {reason} {count:,}" for (node, reason), count in use.reasons.items()]
        or ([f"{use.dropped:,} dropped"] if use.dropped else [])
    )


def _losses(interface: InterfaceUse) -> str:
    counts = {
        "received and dropped": interface.rx_dropped,
        "dropped at sending": interface.tx_dropped,
        "receive errors": interface.rx_errors,
        "send errors": interface.tx_errors,
    }
    return ", ".join(f"{count:,} {what}" for what, count in counts.items() if count)
