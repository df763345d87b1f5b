# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A pool of iperf servers: started at once, proven to listen, stopped within a bound, their reports read."""

from __future__ import annotations

import dataclasses
import pathlib
import time
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common import command
from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError, ParseError
from ansible_collections.fastpath.bench.plugins.module_utils._common.paths import IPERF_DIR
from ansible_collections.fastpath.bench.plugins.module_utils._traffic import iperf2, iperf3, outcome, sockets
from ansible_collections.fastpath.bench.plugins.module_utils._traffic import options as opt
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.iperf import PROGRAMS, probe
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.options import TrialOptions
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.options import from_params as from_trial_params
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.record import BOTH, SERVER, Measurement

UNIT = "fastpath-iperf@"
#: A server that has written nothing for so long, after its clients have ended, writes no more.
_STILL_S = 1.2
_POLL_S = 0.02
#: What a stopped instance has recorded is kept for this long, for a run that was broken off and is resumed.
KEEP_S = 24 * 3600.0
#: An instance of somebody else's that wrote a row this short ago is in use.
_BUSY_S = 10.0


@dataclasses.dataclass(frozen=True)
class Instance:
    """One server for one trial. It knows the trial, so that its report can be judged."""

    name: str
    trial: TrialOptions
    #: The address that it listens on; None is all of them.
    listen: str | None = None

    @property
    def port(self) -> int:
        return self.trial.port

    @property
    def unit(self) -> str:
        return f"{UNIT}{self.name}.service"

    @property
    def family(self) -> str:
        """The protocol whose port is waited for: iperf3 talks over TCP first, whatever it will measure."""
        return "tcp" if self.trial.tool == "iperf3" else self.trial.protocol

    @property
    def ipv6(self) -> bool:
        return self.trial.ipv6 or ":" in (self.listen or "")


def from_params(params: t.Mapping[str, t.Any]) -> Instance:
    """An instance from a module's parameters. ``bind`` among them is the client's address."""
    options = dict(params)
    options["server"] = options.get("server") or options.get("listen") or "0.0.0.0"
    options.pop("bind", None)
    return Instance(params["name"], from_trial_params(options, id=params["name"]), params.get("listen"))


@dataclasses.dataclass(frozen=True)
class State:
    """What the service manager says about an instance."""

    active: bool
    pid: int
    result: str


class Manager(t.Protocol):
    """What is needed of a service manager."""

    def start(self, units: t.Sequence[str]) -> None: ...

    def stop(self, units: t.Sequence[str]) -> None: ...

    def states(self, units: t.Sequence[str]) -> dict[str, State]: ...


class Systemd:
    """systemd, many units in one call each."""

    def __init__(self, limit_s: float = 30.0) -> None:
        self._limit_s = limit_s

    def _call(self, *words: str, check: bool = True) -> str:
        try:
            done = command.run(["systemctl", *words], limit_s=self._limit_s).ended()
        except command.CommandError as error:
            raise BenchError(
                error.what,
                remedy="Servers are started as units: the host needs systemd",
                code="service_manager",
            ) from error
        if check and done.rc:
            raise BenchError(
                f"systemctl {words[0]}: {done.message}",
                remedy="Apply the role fastpath.bench.iperf to this host; see journalctl for the unit",
                code="service_manager",
            )
        return done.stdout

    def start(self, units: t.Sequence[str]) -> None:
        self._call("start", *units)

    def stop(self, units: t.Sequence[str]) -> None:
        # iperf2 ends at once only at the second interrupt; systemd's own stop sends that one
        self._call("kill", "--signal=SIGINT", *units, check=False)
        self._call("stop", *units, check=False)
        self._call("reset-failed", *units, check=False)

    def states(self, units: t.Sequence[str]) -> dict[str, State]:
        text = self._call("show", "--property=Id,ActiveState,MainPID,Result", *units)
        found: dict[str, State] = {}
        for block in text.strip().split("\n\n"):
            fields = dict(line.partition("=")[::2] for line in block.splitlines())
            if "Id" in fields:
                found[fields["Id"]] = State(
                    fields.get("ActiveState") in ("active", "activating"),
                    int(fields.get("MainPID", "0")),
                    fields.get("Result", ""),
                )
        return found


@dataclasses.dataclass(frozen=True)
class Change:
    """What a call did, or would do."""

    changed: bool
    before: dict[str, str]
    after: dict[str, str]
    #: Instances that cannot be served, and why.
    refused: dict[str, BenchError] = dataclasses.field(default_factory=dict)

    def as_result(self) -> dict[str, t.Any]:
        return {
            "changed": self.changed,
            "diff": {"before": self.before, "after": self.after},
            "refused": {name: {"code": err.code, "reason": err.message} for name, err in self.refused.items()},
        }


class Pool:
    """The instances of one host."""

    def __init__(
        self,
        manager: Manager,
        folder: str = IPERF_DIR,
        *,
        programs: t.Mapping[str, str] | None = None,
    ) -> None:
        self._manager = manager
        self._folder = pathlib.Path(folder)
        self._programs = dict(programs or PROGRAMS)

    def _file(self, instance: Instance, kind: str) -> pathlib.Path:
        return self._folder / f"{instance.name}.{kind}"

    def _environment(self, instance: Instance) -> str:
        program, version = probe(self._programs[instance.trial.tool])
        # it takes part in what the client asks for, and one that is too old serves another test than that
        opt.check_version(instance.trial, version)
        if instance.trial.tool == "iperf3":
            argv = iperf3.server_command(
                program,
                port=instance.port,
                interval_s=instance.trial.interval_s,
                bind_address=instance.listen,
                ipv6=instance.ipv6,
            )
        else:
            argv = iperf2.server_command(
                program,
                ports=instance.trial.ports,
                protocol=instance.trial.protocol,
                interval_s=instance.trial.interval_s,
                version=version,
                bind_address=instance.listen,
                length_bytes=instance.trial.length_bytes if instance.trial.protocol == "udp" else None,
                window_bytes=instance.trial.window_bytes,
                ipv6=instance.ipv6,
            )
        return f"IPERF_COMMAND={' '.join(argv)}\nLC_ALL=C\nTZ=UTC\n"

    def _wanted(self, instance: Instance, check: bool) -> str:
        try:
            return self._environment(instance)
        except BenchError as error:
            if check and error.code == "tool_absent":
                return ""  # the same check would have installed it
            raise

    def start(
        self, instances: t.Sequence[Instance], *, listen_s: float = 5.0, check: bool = False, partial: bool = False
    ) -> Change:
        """Have all instances run and listen.

        :param partial: one that cannot be served is told in the answer, and the others run.
        :raises BenchError: without ``partial``, the first reason why an instance cannot be served; none runs then.
        """
        _unique(instances)
        refused: dict[str, BenchError] = {}
        wanted: dict[str, str] = {}
        for instance in instances:
            try:
                wanted[instance.name] = self._wanted(instance, check)
            except BenchError as error:
                refused[instance.name] = error
        states = self._manager.states([instance.unit for instance in instances])
        running = {instance.name for instance in instances if states[instance.unit].active}
        same = {name for name in running.intersection(wanted) if self._recorded(name) == wanted[name]}
        before = {instance.name: "started" if instance.name in running else "stopped" for instance in instances}
        left = self._left_over(set(before))
        own = {state.pid for state in states.values()} | {pid for pid, _ports in left.values()}
        todo = [instance for instance in instances if instance.name in wanted and instance.name not in same]
        refused.update(self._busy(todo, own))
        if refused and not partial:
            raise next(iter(refused.values()))
        todo = [instance for instance in todo if instance.name not in refused]
        if todo and not check:
            in_the_way = {port for instance in todo for port in instance.trial.ports}
            stale = [instance.unit for instance in todo if instance.name in running]
            stale += [unit for unit, (_pid, ports) in left.items() if in_the_way.intersection(ports)]
            if stale:
                self._manager.stop(stale)
            forget_old(self._manager, self._folder)
            self._launch(todo, wanted)
            silent = self._await_listening(todo, listen_s)
            if silent:
                self._manager.stop([i.unit for i in todo if i.name in silent or not partial])
                if not partial:
                    raise next(iter(silent.values()))
                refused.update(silent)
        after = {name: "stopped" if name in refused else "started" for name in before}
        return Change(bool(todo), before, after, refused)

    def _launch(self, instances: t.Sequence[Instance], wanted: t.Mapping[str, str]) -> None:
        self._folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        for instance in instances:
            for kind in ("out", "err"):
                self._file(instance, kind).unlink(missing_ok=True)
            self._file(instance, "env").write_text(wanted[instance.name], encoding="utf-8")
        self._manager.start([instance.unit for instance in instances])

    def _recorded(self, name: str) -> str:
        """What a running instance was started with."""
        path = self._folder / f"{name}.env"
        return path.read_text(encoding="utf-8") if path.exists() else ""

    def _read(self, instance: Instance, kind: str) -> str:
        path = self._file(instance, kind)
        return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""

    def _sockets(self, instances: t.Sequence[Instance]) -> dict[str, list[sockets.Socket]]:
        table = sockets.waiting()
        return {
            instance.name: [
                item for item in table if item.port in instance.trial.ports and item.protocol == instance.family
            ]
            for instance in instances
        }

    def _left_over(self, wanted: set[str]) -> dict[str, tuple[int, range]]:
        """Idle instances of an earlier call that nobody stopped: unit -> process and ports."""
        names = [path.stem for path in self._folder.glob("*.env") if path.stem not in wanted]
        if not names:
            return {}
        states = self._manager.states([f"{UNIT}{name}.service" for name in names])
        found: dict[str, tuple[int, range]] = {}
        for unit, state in states.items():
            words = (self._folder / f"{_name(unit)}.env").read_text(encoding="utf-8").split()
            busy = time.time() - _changed(self._folder / f"{_name(unit)}.out") < _BUSY_S
            if state.active and not busy and "-p" in words:
                first, _dash, last = words[words.index("-p") + 1].partition("-")
                found[unit] = (state.pid, range(int(first), int(last or first) + 1))
        return found

    def _busy(self, instances: t.Sequence[Instance], own: set[int]) -> dict[str, BenchError]:
        """The instances whose ports belong to somebody else."""
        taken = {name: found for name, found in self._sockets(instances).items() if found}
        holders = sockets.owners({item.inode for found in taken.values() for item in found}) if taken else {}
        refused = {}
        for instance in instances:
            found = taken.get(instance.name, [])
            known = [holders[item.inode] for item in found if item.inode in holders]
            others = sorted({str(holder) for holder in known if holder.pid not in own})
            if found and (others or not known):
                who = ", ".join(others) or "a process that cannot be seen"
                refused[instance.name] = BenchError(
                    f"{instance.family.upper()} port {found[0].port} is taken by {who}",
                    where=f"instance {instance.name}",
                    remedy="Stop it, or give the instance another port",
                    code="port_busy",
                )
        return refused

    def _await_listening(self, instances: t.Sequence[Instance], limit_s: float) -> dict[str, BenchError]:
        """Wait until all listen that can. Those that do not, and why."""
        deadline = time.monotonic() + limit_s
        left = list(instances)
        silent: dict[str, BenchError] = {}
        while left:
            found = self._sockets(left)
            left = [
                instance for instance in left if len({s.port for s in found[instance.name]}) < len(instance.trial.ports)
            ]
            if not left:
                break
            states = self._manager.states([instance.unit for instance in left])
            late = time.monotonic() > deadline
            for instance in list(left):
                if late or not states[instance.unit].active:
                    silent[instance.name] = self._silence(instance, states[instance.unit].active, limit_s)
                    left.remove(instance)
            time.sleep(_POLL_S)
        listening = [instance for instance in instances if instance.name not in silent]
        return {**silent, **self._not_ours(listening)}

    def _silence(self, instance: Instance, active: bool, limit_s: float) -> BenchError:
        said = (self._read(instance, "err") or self._read(instance, "out")).strip().splitlines()
        how = f"does not listen after {limit_s:g} s" if active else "ended at once"
        return BenchError(
            f"the server {how}: {said[-1] if said else 'it printed nothing'}",
            where=f"instance {instance.name}",
            remedy=f"See journalctl -u {instance.unit}",
            code="server_not_listening",
        )

    def _not_ours(self, instances: t.Sequence[Instance]) -> dict[str, BenchError]:
        """The socket must belong to the unit, or the client would measure somebody else's server."""
        states = self._manager.states([instance.unit for instance in instances]) if instances else {}
        found = self._sockets(instances)
        inodes = {item.inode for items in found.values() for item in items}
        holders = sockets.owners(inodes)
        refused = {}
        for instance in instances:
            pids = {holders[item.inode].pid for item in found[instance.name] if item.inode in holders}
            if pids and states[instance.unit].pid not in pids:
                refused[instance.name] = BenchError(
                    f"port {instance.port} is served by pid {sorted(pids)[0]}, not by the unit",
                    where=f"instance {instance.name}",
                    code="port_busy",
                )
        return refused

    def collect(
        self, instances: t.Sequence[Instance], *, finish_s: float = 3.0
    ) -> tuple[Change, dict[str, dict[str, t.Any]]]:
        """Wait for the last rows, within a bound, then stop the instances and read their reports."""
        _unique(instances)
        units = [instance.unit for instance in instances]
        states = self._manager.states(units)
        deadline = time.monotonic() + finish_s
        waiting = [instance for instance in instances if states[instance.unit].active]
        # a flow whose last packets were all lost gets no last row, however long one waits
        still_s = max([_STILL_S, *(2 * instance.trial.interval_s for instance in instances)])
        written, since = -1, time.monotonic()
        while waiting and time.monotonic() < min(deadline, since + still_s):
            waiting = [instance for instance in waiting if not self._finished(instance)]
            now = sum(len(self._read(instance, "out")) for instance in waiting)
            if now != written:
                written, since = now, time.monotonic()
            if waiting:
                time.sleep(_POLL_S)
        late = {instance.name for instance in waiting}
        active = [instance for instance in instances if states[instance.unit].active]
        if active:
            self._manager.stop([instance.unit for instance in active])
        before = {i.name: "started" if states[i.unit].active else "stopped" for i in instances}
        change = Change(bool(active), before, dict.fromkeys(before, "stopped"))
        reports = {
            instance.name: self._report(instance, states[instance.unit], instance.name not in late)
            for instance in instances
        }
        return change, reports

    def ensure(
        self,
        state: str,
        instances: t.Sequence[Instance],
        *,
        listen_s: float = 5.0,
        finish_s: float = 3.0,
        check: bool = False,
        partial: bool = False,
    ) -> dict[str, t.Any]:
        """Bring the instances to a state. The keys of the answer are those of the module's."""
        if state == "started":
            return self.start(instances, listen_s=listen_s, check=check, partial=partial).as_result()
        if check:
            change, reports = self.stopping(instances), None
        else:
            change, reports = self.collect(instances, finish_s=finish_s if state == "stopped" else 0.0)
        result = change.as_result()
        if state == "absent":
            result["changed"] = self._remove_files(instances, check=check) or change.changed
        elif reports is not None:
            result["reports"] = reports
        return result

    def stopping(self, instances: t.Sequence[Instance]) -> Change:
        """What stopping would change."""
        states = self._manager.states([instance.unit for instance in instances])
        before = {i.name: "started" if states[i.unit].active else "stopped" for i in instances}
        return Change("started" in before.values(), before, dict.fromkeys(before, "stopped"))

    def _remove_files(self, instances: t.Sequence[Instance], *, check: bool) -> bool:
        paths = [self._file(instance, kind) for instance in instances for kind in ("env", "out", "err")]
        present = [path for path in paths if path.exists()]
        if not check:
            for path in present:
                path.unlink(missing_ok=True)
        return bool(present)

    def _parse(self, instance: Instance, *, ended: bool) -> Measurement:
        text, errors = self._read(instance, "out"), self._read(instance, "err")
        if instance.trial.tool == "iperf3":
            return iperf3.parse(text, end=SERVER, stderr=errors, interval_s=instance.trial.interval_s)
        return iperf2.parse(
            text, end=SERVER, port=instance.port, interval_s=instance.trial.interval_s, stderr=errors, ended=ended
        )

    def _finished(self, instance: Instance) -> bool:
        """Whether all rows that a finished test prints are there. A server that nobody used has none."""
        text = self._read(instance, "out")
        if instance.trial.tool == "iperf3":
            return not text.strip() or text.rstrip().endswith("}")
        if " connected with " not in text:
            return True
        try:
            seen = self._parse(instance, ended=True)
        except ParseError:
            return False  # a line is being written
        flows = len([flow for flow in seen.flows if flow.final is not None])
        return flows >= instance.trial.parallel * (2 if instance.trial.direction == BOTH else 1)

    def _report(self, instance: Instance, state: State, whole: bool) -> dict[str, t.Any]:
        options = instance.trial
        text, errors = self._read(instance, "out"), self._read(instance, "err")
        if not text.strip() or (instance.trial.tool == "iperf2" and " connected with " not in text):
            said = errors.strip().splitlines()
            reason = "the server saw no client" + (f": {said[-1]}" if said else "")
            made = outcome.failed("no_report", reason, options)
        else:
            made, _measurement = outcome.evaluate_text(lambda: self._parse(instance, ended=whole), options)
        # One whose report is whole has done its work, whoever ended it; one that printed nothing was not started.
        if not state.active and made.status != outcome.OK and text.strip():
            made.findings.append(
                outcome.finding(
                    "server_died",
                    "warning",
                    f"{instance.unit} had ended before it was stopped ({state.result or 'unknown result'})",
                    "Give each trial an instance of its own; see journalctl for the unit",
                )
            )
        if made.code == "ended_early" and not whole:
            made.reason = f"{made.reason} The server had not printed its last rows in time."
        return {**made.as_dict(), "raw": {"server.txt": text + errors}}


def forget_old(manager: Manager, folder: str | pathlib.Path, *, keep_s: float = KEEP_S) -> None:
    """Files of instances that are long stopped would fill /run; younger ones may still be asked for."""
    young = time.time() - keep_s
    names = [path.stem for path in pathlib.Path(folder).glob("*.env") if _changed(path) < young]
    if not names:
        return
    states = manager.states([f"{UNIT}{name}.service" for name in sorted(names)])
    for unit, state in states.items():
        if not state.active:
            for kind in ("env", "out", "err"):
                (pathlib.Path(folder) / f"{_name(unit)}.{kind}").unlink(missing_ok=True)


def _name(unit: str) -> str:
    return unit.removeprefix(UNIT).removesuffix(".service")


def _changed(path: pathlib.Path) -> float:
    """When a file was last written; long ago if it is not there."""
    return path.stat().st_mtime if path.exists() else 0.0


def _unique(instances: t.Sequence[Instance]) -> None:
    names = [instance.name for instance in instances]
    ports = [f"{instance.family} {port}" for instance in instances for port in instance.trial.ports]
    for what, values in (("name", names), ("port", ports)):
        twice = sorted({value for value in values if values.count(value) > 1})
        if twice:
            raise BenchError(
                f"the {what} {twice[0]} is given twice", where="instances", remedy="Make it unique", code="bad_option"
            )
