# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which thread of VPP serves which receive queue.

VPP's command line counts workers from 0 and so does everything here. VPP's
API counts threads when it tells a placement (0 is the main thread, worker 0
is thread 1) and workers when it is told one.
"""

from __future__ import annotations

import dataclasses
import os
import re
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.errors import VppError
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.interface import Inventory
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.interface_types import MODES
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.reconcile import (
    Found,
    Handle,
    Key,
    Kind,
    Prop,
    Values,
    Wish,
    difference,
    reconcile,
)
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.session import NO_INDEX, Call, Session

POLICIES = ("explicit", "round_robin", "spread", "numa")
MAIN: t.Final = "main"
_MODE_NAMES = {number: name for name, number in MODES.items()}
_NUMA = re.compile(r"\bnuma (\d+)")


@dataclasses.dataclass(frozen=True)
class Thread:
    """One thread of VPP. A worker has a number; the main thread and others have none."""

    number: int
    name: str
    worker: int | None
    cpu: int
    numa: int

    def as_dict(self) -> Values:
        return {"thread": self.number, "name": self.name, "worker": self.worker, "cpu": self.cpu, "numa": self.numa}


def threads_of(session: Session) -> list[Thread]:
    rows = session.call("show_threads").thread_data
    first = min((row.id for row in rows if row.type == "workers"), default=0)
    return [
        Thread(row.id, row.name, row.id - first if row.type == "workers" else None, row.cpu_id, row.cpu_socket)
        for row in rows
    ]


class PlacementKind(Kind):
    """Receive queues. A key is ``("queue", interface, number)``, its one property the worker's number or ``main``."""

    def __init__(self, session: Session) -> None:
        self.props = (Prop("worker", 50, self._write),)
        self.threads = threads_of(session)
        self.workers = {one.worker: one for one in self.threads if one.worker is not None}
        self.by_thread: dict[int, int | str] = {one.number: number for number, one in self.workers.items()}
        self.by_thread[0] = MAIN
        self.inventory = Inventory(session)
        self.modes: dict[Key, str] = {}

    def read(self, session: Session, wishes: t.Sequence[Wish], everything: bool) -> dict[Key, Found]:
        found: dict[Key, Found] = {}
        names = {index: self.inventory.name(key) for index, key in self.inventory.by_index.items()}
        rows = session.call("sw_interface_rx_placement_dump", sw_if_index=NO_INDEX)
        for row in sorted(rows, key=lambda row: (row.sw_if_index, row.queue_id)):
            key = ("queue", names.get(row.sw_if_index, str(row.sw_if_index)), int(row.queue_id))
            worker = self.by_thread.get(row.worker_id, f"thread {row.worker_id}")
            found[key] = Found(key, row.sw_if_index, {"worker": worker}, self.name(key), removable=False)
            self.modes[key] = _MODE_NAMES.get(int(row.mode), "unknown")
        return found

    def _write(self, key: Key, handle: Handle, before: t.Any, after: t.Any) -> list[Call]:
        fields = {"sw_if_index": handle, "queue_id": key[2], "is_main": after == MAIN}
        fields["worker_id"] = 0 if after == MAIN else after
        hint = "VPP answers so for a queue or a worker that does not exist"
        return [Call("sw_interface_set_rx_placement", fields, hint=hint)]

    def name(self, key: Key) -> str:
        return f"{key[1]} queue {key[2]}"


def _queues(found: t.Mapping[Key, Found], interface: str) -> list[int]:
    return sorted(key[2] for key in found if key[1] == interface)


def _which(numbers: t.Sequence[t.Any]) -> str:
    return ", ".join(str(number) for number in numbers) or "none"


def explicit(kind: PlacementKind, found: t.Mapping[Key, Found], placements: t.Sequence[Values]) -> list[Wish]:
    """The placements as they are asked for, each judged against what exists."""
    wishes: dict[Key, Wish] = {}
    asked: dict[str, list[int]] = {}
    for position, item in enumerate(placements):
        if (item.get("worker") is None) == (not item.get("main")):
            raise BenchError(
                "either worker or main says where a queue goes",
                where=f"{item['interface']}, entry {position + 1}",
                code="bad_option",
            )
        asked.setdefault(item["interface"], []).append(item["queue"])
    for interface, numbers in asked.items():
        _judge_queues(kind, found, interface, numbers)
    for item in placements:
        key = ("queue", item["interface"], item["queue"])
        worker = MAIN if item.get("main") else item["worker"]
        _judge_worker(kind, key, worker)
        wishes[key] = Wish(key, {"worker": worker})
    return list(wishes.values())


def _judge_queues(
    kind: PlacementKind, found: t.Mapping[Key, Found], interface: str, numbers: t.Sequence[int]
) -> None:
    there = _queues(found, interface)
    if interface not in kind.inventory.by_name:
        names = _which(sorted(kind.inventory.by_name))
        raise VppError(
            f"VPP has no interface {interface}", where=interface, remedy=f"There are: {names}", code="no_interface"
        )
    if not there:
        raise VppError("the interface has no receive queues", where=interface, code="no_queues")
    twice = sorted({number for number in numbers if numbers.count(number) > 1})
    if twice:
        raise BenchError(f"queue {_which(twice)} is placed more than once", where=interface, code="duplicate_queue")
    absent = sorted(set(numbers) - set(there))
    if len(numbers) > len(there):
        raise VppError(
            f"{len(numbers)} queues are placed, the interface has {len(there)}",
            where=interface,
            remedy=f"Its queues are {_which(there)}. The number of queues is settled when the interface is made",
            code="more_than_queues",
        )
    if absent:
        raise VppError(
            f"the interface has no queue {_which(absent)}",
            where=interface,
            remedy=f"Its queues are {_which(there)}",
            code="no_queue",
        )


def _judge_worker(kind: PlacementKind, key: Key, worker: t.Any) -> None:
    if worker == MAIN or worker in kind.workers:
        return
    there = [f"{number} ({one.name}, thread {one.number})" for number, one in sorted(kind.workers.items())]
    raise VppError(
        f"VPP has no worker {worker}",
        where=kind.name(key),
        remedy=f"Its workers are {_which(there)}. They are made at VPP's start, by the section cpu of startup.conf",
        code="no_worker",
    )


def by_policy(
    policy: str,
    queues: t.Sequence[Key],
    workers: t.Sequence[Thread],
    *,
    load: t.Mapping[int, int] | None = None,
    numa_of: t.Callable[[str], int | None] = lambda interface: None,
) -> list[Wish]:
    """Queues over workers. Pure.

    :param load: how many other queues a worker serves already.
    """
    numbers = [one.worker for one in workers if one.worker is not None]
    result: list[Wish] = []
    if policy == "round_robin":
        result = [Wish(key, {"worker": numbers[place % len(numbers)]}) for place, key in enumerate(queues)]
    elif policy == "spread":
        held = {number: (load or {}).get(number, 0) for number in numbers}
        for key in queues:
            number = min(numbers, key=lambda one: (held[one], one))
            held[number] += 1
            result.append(Wish(key, {"worker": number}))
    elif policy == "numa":
        turns: dict[int | None, int] = {}
        for key in queues:
            node = numa_of(key[1])
            near = [one.worker for one in workers if one.worker is not None and (node is None or one.numa == node)]
            # a node without workers: better a far one than none
            choice = near or numbers
            turn = turns.get(node, 0)
            turns[node] = turn + 1
            result.append(Wish(key, {"worker": choice[turn % len(choice)]}))
    else:
        raise ValueError(policy)
    return result


def numa_reader(session: Session, inventory: Inventory) -> t.Callable[[str], int | None]:
    """Tells the NUMA node of an interface: from the kernel's device, or from what VPP prints of its card."""

    def numa_of(interface: str) -> int | None:
        key = inventory.by_name.get(interface)
        if key is not None and key[0] in ("af_packet", "af_xdp"):
            try:
                with open(os.path.join("/sys/class/net", key[1], "device/numa_node"), encoding="ascii") as file:
                    node = int(file.read())
            except (OSError, ValueError):
                return None  # a virtual device belongs to no node
            return node if node >= 0 else None  # -1: the machine has one node only
        match = _NUMA.search(session.call("cli_inband", cmd=f"show hardware-interfaces {interface}").reply)
        return int(match[1]) if match else None

    return numa_of


def run(
    session: Session,
    *,
    policy: str,
    placements: t.Sequence[Values] = (),
    interfaces: t.Sequence[str] | None = None,
    check_mode: bool = False,
) -> dict[str, t.Any]:
    """Returns the keyword arguments for ``exit_json``."""
    kind = PlacementKind(session)
    found = kind.read(session, [], everything=True)
    named = [item["interface"] for item in placements] if policy == "explicit" else interfaces
    if policy == "explicit":
        wishes = explicit(kind, found, placements)
    else:
        wishes = _planned(session, kind, found, policy, interfaces)
    outcome = reconcile(kind, session, wishes, check_mode=check_mode)
    after = {key: dict(one.values) for key, one in outcome.after.items()}
    if check_mode:
        after.update({wish.key: dict(wish.values) for wish in wishes})
    shown = [key for key in after if named is None or not named or key[1] in named]
    return {
        "changed": outcome.changed,
        "placements": [_row(kind, key, after[key]["worker"]) for key in shown],
        "threads": [one.as_dict() for one in kind.threads],
        "rendered": [_line(wish.key, wish.values["worker"]) for wish in wishes],
        **difference(kind, outcome),
    }


def _planned(
    session: Session,
    kind: PlacementKind,
    found: t.Mapping[Key, Found],
    policy: str,
    interfaces: t.Sequence[str] | None,
) -> list[Wish]:
    for interface in interfaces or ():
        _judge_queues(kind, found, interface, [])
    if not kind.workers:
        raise VppError(
            "VPP has no workers to place queues on",
            where="policy",
            remedy="Give it some in the section cpu of startup.conf, or place the queues on main",
            code="no_worker",
        )
    order = list(interfaces) if interfaces else sorted({key[1] for key in found})
    queues = [key for name in order for key in sorted(found, key=lambda key: key[2]) if key[1] == name]
    load: dict[int, int] = {}
    for key, one in found.items():
        worker = one.values["worker"]
        if key not in queues and isinstance(worker, int):
            load[worker] = load.get(worker, 0) + 1
    workers = [kind.workers[number] for number in sorted(kind.workers)]
    return by_policy(policy, queues, workers, load=load, numa_of=numa_reader(session, kind.inventory))


def _row(kind: PlacementKind, key: Key, worker: t.Any) -> Values:
    thread = kind.threads[0] if worker == MAIN else kind.workers.get(worker)
    return {
        "interface": key[1],
        "queue": key[2],
        "worker": worker if isinstance(worker, int) else None,
        "main": worker == MAIN,
        "thread": None if thread is None else thread.number,
        "thread_name": None if thread is None else thread.name,
        "cpu": None if thread is None else thread.cpu,
        "mode": kind.modes.get(key),
    }


def _line(key: Key, worker: t.Any) -> str:
    place = "main" if worker == MAIN else f"worker {worker}"
    return f"set interface rx-placement {key[1]} queue {key[2]} {place}"
