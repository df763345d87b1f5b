# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From the options of the modules to wishes: the one place that knows both."""

from __future__ import annotations

import os
import time
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._common.paths import JOURNAL_DIR
from ansible_collections.fastpath.bench.plugins.module_utils._host.access import Access, NotThere
from ansible_collections.fastpath.bench.plugins.module_utils._host.address import Addresses
from ansible_collections.fastpath.bench.plugins.module_utils._host.connection import (
    protected_interfaces,
    router_advertised_defaults,
    ssh_connection,
)
from ansible_collections.fastpath.bench.plugins.module_utils._host.cpumask import parse_wish
from ansible_collections.fastpath.bench.plugins.module_utils._host.ethtool import (
    ChannelCounts,
    Features,
    channel_access,
)
from ansible_collections.fastpath.bench.plugins.module_utils._host.irq import (
    IrqAffinity,
    IrqWish,
    irqbalance_runs,
    irqs_of,
)
from ansible_collections.fastpath.bench.plugins.module_utils._host.journal import Journal
from ansible_collections.fastpath.bench.plugins.module_utils._host.knob import ABSENT, Knob
from ansible_collections.fastpath.bench.plugins.module_utils._host.link import (
    Mtu,
    Promisc,
    TxQueueLength,
    Up,
    XskProgram,
)
from ansible_collections.fastpath.bench.plugins.module_utils._host.nic_params import (
    Coalesce,
    FlowControl,
    Rings,
    param_name,
)
from ansible_collections.fastpath.bench.plugins.module_utils._host.owners import ServiceRunning
from ansible_collections.fastpath.bench.plugins.module_utils._host.queue import (
    RpsFlowCount,
    RpsMask,
    XpsMask,
    power_of_two,
    queues_of,
)
from ansible_collections.fastpath.bench.plugins.module_utils._host.reconcile import Outcome, Wish, finding, reconcile
from ansible_collections.fastpath.bench.plugins.module_utils._host.restore import Restored, restore
from ansible_collections.fastpath.bench.plugins.module_utils._host.route import Route, route_key
from ansible_collections.fastpath.bench.plugins.module_utils._host.rss import (
    FLOWS,
    HashFields,
    IndirectionTable,
    TableWish,
)
from ansible_collections.fastpath.bench.plugins.module_utils._host.sysctl import Sysctl, expand, normal, outvoted

Params = t.Mapping[str, t.Any]
_POLL_S = 0.02
IRQBALANCE = "irqbalance.service"


def common_spec() -> dict[str, t.Any]:
    """The options that every changing module has."""
    return {
        "journal_dir": {"type": "path"},
        "owner": {"type": "str", "default": ""},
        "part": {"type": "str", "default": ""},
        "force": {"type": "bool", "default": False},
    }


def open_journal(params: Params) -> Journal:
    folder = params.get("journal_dir") or JOURNAL_DIR
    return Journal(folder, owner=params.get("owner") or "", part=params.get("part") or "")


def apply(access: Access, params: Params, wishes: list[Wish], *, check_mode: bool) -> Outcome:
    """Reconcile, sparing the interfaces that carry the connection."""
    protected = {}
    if not params["force"]:
        protected = protected_interfaces(access, ssh_connection(access, os.environ, os.getpid()))
    return reconcile(wishes, open_journal(params), check_mode=check_mode, protected=protected)


# Addresses, MTU, up, routes


def config_wishes(access: Access, params: Params) -> list[Wish]:
    wishes: list[Wish] = []
    for entry in _unique(params["interfaces"]):
        name = entry["name"]
        if entry.get("mtu_bytes") is not None:
            wishes.append(Wish(Mtu(access, name), entry["mtu_bytes"]))
        if entry.get("up") is not None:
            wishes.append(Wish(Up(access, name), entry["up"]))
        if entry.get("addresses") is not None:
            wish = {
                "addresses": entry["addresses"],
                "state": entry.get("addresses_state") or "exact",
                "dad": entry.get("dad", True),
                "mtu_bytes": entry.get("mtu_bytes"),
            }
            wishes.append(Wish(Addresses(access, name), wish))
    wanted: set[str] = set()
    for entry in params["routes"]:
        key = route_key(entry["dst"], entry.get("table"), entry.get("metric"))
        wanted.add(key)
        hop = {"via": entry.get("via"), "dev": entry.get("dev")}
        wishes.append(Wish(Route(access, key), ABSENT if entry.get("state") == "absent" else hop))
    if params["routes_state"] == "exact":
        wishes += [Wish(Route(access, key), ABSENT) for key in own_routes(open_journal(params)) if key not in wanted]
    return wishes


def own_routes(journal: Journal) -> list[str]:
    """The routes that this part added before: there was none when they were first noted."""
    journal.load()
    return [
        entry.key
        for entry in journal.entries()
        if entry.kind == Route.kind
        and entry.found is ABSENT
        and entry.applied is not ABSENT
        and journal.part in entry.parts
        and journal.is_void(entry) is None
    ]


def wait_until_ready(access: Access, params: Params, timeout_s: float) -> float:
    """Wait until each link that should be up has a carrier and each address is usable; the seconds it took."""
    names = [entry["name"] for entry in params["interfaces"] if entry.get("up")]
    begin = time.monotonic()
    while True:
        access.forget()
        waiting = {name: why for name in names for why in [_not_ready(access.link(name))] if why}
        waited_s = time.monotonic() - begin
        if not waiting:
            return waited_s
        if waited_s >= timeout_s:
            told = "; ".join(f"{name}: {why}" for name, why in waiting.items())
            raise BenchError(
                f"not ready within {timeout_s:g} s: {told}",
                remedy="See to the cable and to the interface at its other end, which must be up too",
                code="no_carrier",
            )
        time.sleep(_POLL_S)


def _not_ready(link: dict[str, t.Any]) -> str | None:
    if "LOWER_UP" not in link["flags"]:
        return "no carrier"
    for info in link.get("addr_info", []):
        if info.get("dadfailed"):
            return f"{info['local']} is used by another host on this link"
        if info.get("tentative") and info.get("scope") == "global":
            return f"{info['local']} is still being checked for duplicates"
    return None


# Offloads, queues, masks


def tuning_wishes(access: Access, params: Params) -> list[Wish]:
    optional = params["unsupported"] == "report"
    wishes: list[Wish] = []
    for entry in _unique(params["interfaces"]):
        if entry["name"] not in access.links():
            # Told once, by the reconciler, and not for each option: it is no setting that a device has not.
            wishes.append(Wish(TxQueueLength(access, entry["name"]), entry.get("txqueuelen")))
            continue
        for knob, wish in _tuning_of(access, entry):
            # An interface without interrupts is a warning in any case: most virtual ones have none.
            without = isinstance(knob, IrqAffinity) and not irqs_of(access, knob.device)
            wishes.append(Wish(knob, wish, optional or without))
    if params.get("rps_sock_flow_entries") is not None:
        size = power_of_two(params["rps_sock_flow_entries"])
        wishes.append(Wish(Sysctl(access, "net/core/rps_sock_flow_entries"), size, optional))
    if params.get("irqbalance") == "stopped":
        wishes.append(Wish(ServiceRunning(access, IRQBALANCE), False, optional))
    return wishes


def irq_findings(access: Access, params: Params) -> list[dict[str, t.Any]]:
    """A warning when what was set may be moved away again."""
    asked = [entry["name"] for entry in params["interfaces"] if entry.get("irq_cpus") is not None]
    if not asked or params.get("irqbalance") == "stopped" or not irqbalance_runs(access):
        return []
    told = f"irqbalance runs, and may move the interrupts of {', '.join(asked)} to other CPUs"
    return [finding("irqbalance_runs", "warning", told, "Set irqbalance to stopped; restore starts it again")]


def _tuning_of(access: Access, entry: Params) -> t.Iterator[tuple[Knob, t.Any]]:
    name = entry["name"]
    channels = _given(entry.get("channels"))
    if entry.get("mtu_bytes") is not None:
        yield Mtu(access, name), entry["mtu_bytes"]
    if channels:
        yield ChannelCounts(access, name), channels
    for option, params_of in (("rings", Rings), ("coalesce", Coalesce), ("flow_control", FlowControl)):
        given = _given(entry.get(option))
        if given:
            yield params_of(access, name), {param_name(key): _setting(value) for key, value in given.items()}
    features = _given(entry.get("features"))
    if features:
        yield Features(access, name), {key: _switch(value, f"{name}: {key}") for key, value in features.items()}
    yield from _spreading_of(access, entry)
    for option, plain in (("txqueuelen", TxQueueLength), ("promisc", Promisc), ("xsk_program", XskProgram)):
        if entry.get(option) is not None:
            yield plain(access, name), entry[option]
    for option, cls in (("rps", RpsMask), ("xps", XpsMask)):
        if entry.get(option) is not None:
            queues = _queues(access, name, cls.direction, channels)
            for queue, cpus in _by_queue(entry[option], f"{name}: {option}", queues):
                yield cls(access, f"{name}/{cls.direction}-{queue}"), parse_wish(cpus)
    if entry.get("rps_flow_count") is not None:
        for queue in _queues(access, name, "rx", channels):
            yield RpsFlowCount(access, f"{name}/rx-{queue}"), entry["rps_flow_count"]


def _spreading_of(access: Access, entry: Params) -> t.Iterator[tuple[Knob, t.Any]]:
    """What the hardware itself spreads: by hash to queues, and their interrupts to CPUs."""
    name = entry["name"]
    for flow, fields in (entry.get("rss_hash") or {}).items():
        if flow not in FLOWS:
            raise BenchError(
                f"{flow!r} is not a kind of flow", where=name, remedy=f"Use {', '.join(FLOWS)}", code="bad_value"
            )
        yield HashFields(access, f"{name}/{flow}"), str(fields)
    queues, weights = entry.get("rss_queues"), entry.get("rss_weights")
    if queues is not None and weights is not None:
        raise BenchError("rss_queues and rss_weights contradict each other", where=name, code="contradiction")
    if queues is not None or weights is not None:
        yield IndirectionTable(access, name), TableWish(queues, tuple(weights or ()))
    if entry.get("irq_cpus") is not None:
        yield IrqAffinity(access, name), IrqWish(parse_wish(entry["irq_cpus"]), bool(entry.get("irq_spread")))


def _given(options: Params | None) -> dict[str, t.Any]:
    """The suboptions that were given at all."""
    return {name: value for name, value in (options or {}).items() if value is not None}


_ON = ("on", "yes", "true")
_OFF = ("off", "no", "false")


def _setting(value: t.Any) -> t.Any:
    """A value of a free mapping: YAML and the command line write numbers and switches in many ways."""
    text = str(value).lower()
    if isinstance(value, bool) or text in _ON + _OFF:
        return text in _ON
    return int(text) if text.isdecimal() else value


def _switch(value: t.Any, where: str) -> bool:
    state = _setting(value)
    if not isinstance(state, bool):
        raise BenchError(f"{value!r} is neither on nor off", where=where, code="bad_value")
    return state


def _queues(access: Access, name: str, direction: str, channels: t.Mapping[str, int]) -> list[int]:
    """The numbers of the queues that will be there once the channels are set: of one direction and combined ones."""
    had = channel_access(access, name) if channels else None
    if had is not None:
        kinds = [kind for kind in (direction, "combined") if kind in had.now]
        return list(range(sum(channels.get(kind, had.now[kind]) for kind in kinds)))
    return [int(queue.partition("-")[2]) for queue in queues_of(access, name, direction)]


def _by_queue(wish: t.Any, where: str, queues: list[int]) -> list[tuple[int, t.Any]]:
    """Queue -> CPUs: the same for all queues, or those that a mapping names."""
    if not isinstance(wish, dict):
        return [(queue, wish) for queue in queues]
    pairs = []
    for number, cpus in wish.items():
        if not str(number).isdecimal():
            raise BenchError(f"{number!r} is not the number of a queue", where=where, code="bad_queue")
        pairs.append((int(str(number)), cpus))
    return pairs


# Kernel parameters


def sysctl_wishes(access: Access, params: Params) -> list[Wish]:
    wishes: dict[str, Wish] = {}
    exact: dict[tuple[str, str], str] = {}
    # A name without a pattern counts more than one with, and a needed value more than an optional one.
    for option in ("optional_values", "values"):
        rows = [(key, value, expand(access, key)) for key, value in params[option].items()]
        for key, value, paths in sorted(rows, key=lambda row: "*" not in row[0]):
            if value is None or isinstance(value, (dict, list)):
                raise BenchError(f"{value!r} is not a value", where=key, code="bad_value")
            if not paths and option == "values":
                raise NotThere("nothing matches this pattern", where=key)
            for path in paths:
                if "*" not in key and exact.setdefault((option, path), normal(value)) != normal(value):
                    raise BenchError(
                        f"two values are asked for: {exact[option, path]} and {normal(value)}",
                        where=path,
                        code="contradiction",
                    )
                wishes[path] = Wish(Sysctl(access, path), normal(value), option == "optional_values")
    if not params["force"]:
        _spare_advertised_route(access, wishes)
    return list(wishes.values())


def sysctl_outvoted(access: Access, wishes: t.Sequence[Wish]) -> list[dict[str, t.Any]]:
    """What is set on an interface and does not count there, as that of all interfaces is larger."""
    asked = {wish.knob.key: str(wish.wish) for wish in wishes}
    told = []
    for path, value in asked.items():
        leaf = path.rpartition("/")[2]
        counts = outvoted(access, path, value, asked.get(f"net/ipv4/conf/all/{leaf}"))
        if counts is not None:
            evidence = f"{path} is {value}, and {counts} counts there: the larger of it and net/ipv4/conf/all/{leaf}"
            told.append(finding("outvoted", "warning", evidence, f"Set net.ipv4.conf.all.{leaf} too"))
    return told


def _spare_advertised_route(access: Access, wishes: t.Mapping[str, Wish]) -> None:
    """A host that starts to forward IPv6 forgets the default routes that routers advertised to it."""
    wish = wishes.get("net/ipv6/conf/all/forwarding")
    if wish is None or wish.wish == "0":
        return
    try:
        if wish.knob.read() != "0":
            return
    except NotThere:
        return  # a kernel without IPv6 has no such route; that the parameter is missing is told by the reconciler
    for device in router_advertised_defaults(access):
        path = f"net/ipv6/conf/{device}/accept_ra"
        asked = wishes.get(path)
        if (asked.wish if asked else Sysctl(access, path).read()) != "2":
            raise BenchError(
                "IPv6 forwarding would drop the default route that was learnt from a router advertisement",
                where=device,
                remedy=f"Set {path} to 2 first, or set force when losing that route is acceptable",
                code="connection_interface",
            )


def _unique(entries: t.Sequence[Params]) -> t.Sequence[Params]:
    names = [entry["name"] for entry in entries]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise BenchError(f"given twice: {', '.join(twice)}", where="interfaces", code="contradiction")
    return entries


# Restore


def restore_host(params: Params, *, check_mode: bool) -> Restored:
    """Restore, taking over from another owner when that is asked for or its last change is long ago."""
    journal = open_journal(params)
    journal.load()
    take_over = params["take_over"]
    claim = journal.claim
    other = claim is not None and claim.owner != journal.owner
    if claim is not None and other:
        stale = 0 < params["stale_after_s"] <= claim.age_s(time.time())
        take_over = take_over or stale or claim.owner in params["take_over_from"]
    result = restore(
        journal,
        Access(),
        check_mode=check_mode,
        force=params["force"],
        take_over=take_over,
        part=params["part"],
        hold=params["hold"],
        only_hold=not params["restore"],
    )
    if claim is not None and other and take_over:
        result.findings.append(
            finding(
                "taken_over",
                "warning",
                f"the host belonged to {claim.owner or 'a play without an owner'}",
                "What it had changed is put back" if params["restore"] else "What it had changed can be put back now",
            )
        )
    return result


def warn_about(warn: t.Callable[[str], None], findings: t.Iterable[t.Mapping[str, t.Any]]) -> None:
    """Findings that a person should see even when the play goes on."""
    for found in findings:
        if found["severity"] != "info":
            warn(f"{found['evidence']}. {found['remedy']}.")
