# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bring a lab into the state asked for: look, plan, apply, look again."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import time
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common import files
from ansible_collections.fastpath.bench.plugins.module_utils._common.paths import LAB_DIR
from ansible_collections.fastpath.bench.plugins.module_utils._lab import cable, guest, image, launch, machine
from ansible_collections.fastpath.bench.plugins.module_utils._lab.machine import LabError
from ansible_collections.fastpath.bench.plugins.module_utils._lab.names import NETNS_DIR, LabNames
from ansible_collections.fastpath.bench.plugins.module_utils._lab.plan import (
    BOOTING,
    DEAD,
    RUNNING,
    Found,
    FoundNode,
    Plan,
    plan,
)
from ansible_collections.fastpath.bench.plugins.module_utils._lab.topology import (
    BRIDGE_DEVICE,
    KIND_BRIDGE,
    KIND_LINUX,
    KIND_VM,
    Topology,
)

LOCK_TIMEOUT_S = 120.0
HOST_KINDS = (KIND_LINUX, KIND_VM)


class Lab:
    """One lab by its name. Call :meth:`present`, :meth:`absent` or :meth:`gather`."""

    def __init__(self, name: str, *, check_mode: bool = False) -> None:
        self.names = LabNames(name)
        self.check_mode = check_mode

    # -- the three jobs ------------------------------------------------------------------------------------

    def present(self, topology: Topology) -> dict[str, t.Any]:
        machine.preflight()
        recipes = self._recipes(topology)
        specs = {node.name: guest.spec(topology, node, recipes[node.name].key) for node in topology.of_kind(KIND_VM)}
        as_data = {name: spec.as_data() for name, spec in specs.items()}
        by_key = {recipe.key: recipe for recipe in recipes.values()}
        built: list[str] = []
        while True:
            with self._locked():
                site = launch.survey()
                found = self._look(site)
                todo = plan(found, topology, as_data)
                if self.check_mode or not todo.build:
                    return self._reach(todo, found, topology, site, specs, built=built)
            # Without the lab's lock: it takes minutes, and does nothing to the lab.
            for key in todo.build:
                image.build(by_key[key])
                built.append(f"build image {key}")

    def _reach(
        self,
        todo: Plan,
        found: Found,
        topology: Topology,
        site: launch.Site,
        specs: t.Mapping[str, guest.Spec],
        *,
        built: list[str],
    ) -> dict[str, t.Any]:
        steps = built + todo.steps()
        before = describe(found)
        if self.check_mode:
            after = describe_wanted(topology)
            return {"changed": todo.changed, "steps": steps, "before": before, "after": after, **before}
        if todo.changed:
            self._apply(todo, found, topology, site, specs)
            found = self._look(site)
            left = plan(found, topology, {name: spec.as_data() for name, spec in specs.items()})
            if left.changed:
                raise LabError(
                    f"not as asked after all steps: {'; '.join(left.steps())}",
                    where=f"lab {self.names.lab}",
                    code="not_as_asked",
                )
        after = describe(found)
        return {"changed": bool(steps), "steps": steps, "before": before, "after": after, **after}

    def _recipes(self, topology: Topology) -> dict[str, image.Recipe]:
        """What each virtual machine's image is made of."""
        machines = topology.of_kind(KIND_VM)
        if machines:
            guest.preflight()
        return {node.name: image.recipe(node.packages) for node in machines}

    def absent(self) -> dict[str, t.Any]:
        machine.preflight()
        with self._locked():
            site = launch.survey()
            nodes = self._traces(site)
            # The lock's own file alone is no lab.
            changed = bool(nodes) or any(os.path.lexists(path) for path in self._folders(site)[:2])
            before = {"nodes": sorted(nodes)}
            if changed and not self.check_mode:
                self._remove_all(nodes, site)
            after = {"nodes": [] if changed else sorted(nodes)}
            return {
                "changed": changed,
                "steps": ["remove lab " + self.names.lab] if changed else [],
                "before": before,
                "after": after,
                "hosts": {},
                "bridges": [],
                "cables": [],
            }

    def gather(self) -> dict[str, t.Any]:
        machine.preflight()
        with self._locked():
            return {"changed": False, "steps": [], **describe(self._look(launch.survey()))}

    # -- looking -------------------------------------------------------------------------------------------

    def _traces(self, site: launch.Site) -> set[str]:
        """All nodes of which anything is left, by their names alone."""
        names = self.names
        nodes = set(names.hosts_of_cgroups(site.cgroup_root, under_systemd=site.under_systemd))
        with contextlib.suppress(FileNotFoundError):
            nodes |= {node for entry in os.listdir(NETNS_DIR) if (node := names.node_of_netns(entry))}
        with contextlib.suppress(FileNotFoundError), os.scandir(names.folder) as entries:
            nodes |= {entry.name for entry in entries if entry.is_dir(follow_symlinks=False)}
        return nodes

    def _look(self, site: launch.Site) -> Found:
        state = self._read_state()
        nodes: dict[str, FoundNode] = {}
        links: dict[str, cable.NodeLinks] = {}
        for node in sorted(self._traces(site)):
            netns = cable.has_netns(self.names, node)
            if netns:
                links[node] = cable.links_in(self.names, node)
            if node in state["bridges"]:
                up = netns and any(link["ifname"] == BRIDGE_DEVICE for link in links[node].links)
                nodes[node] = FoundNode(KIND_BRIDGE, RUNNING if up else DEAD)
            elif node in state["machines"]:
                host_state = self._guest_state(node, site) if netns else DEAD
                nodes[node] = FoundNode(KIND_VM, host_state, guest.read_spec(self.names, node))
            else:
                nodes[node] = FoundNode(KIND_LINUX, self._host_state(node, site) if netns else DEAD)
        ends = cable.find_ends(self.names, links)
        return Found(nodes, ends, frozenset(state["ends"]), state["applied"], frozenset(image.keys()))

    def _host_state(self, host: str, site: launch.Site) -> str:
        init = launch.find_init(self.names, host, site)
        if init is None or not machine.same_file(f"/proc/{init.pid}/ns/net", self.names.netns_file(host)):
            return DEAD
        # Without the file the connection plugin does not find the host: the call that started it was killed.
        if launch.is_ready(init) and os.path.exists(self.names.init_file(host)):
            return RUNNING
        return BOOTING

    def _guest_state(self, host: str, site: launch.Site) -> str:
        found = guest.find(self.names, host, site)
        if found is None or not machine.same_file(f"/proc/{found.pid}/ns/net", self.names.netns_file(host)):
            return DEAD
        return RUNNING if guest.is_ready(self.names, host, found) else BOOTING

    def _read_state(self) -> dict[str, t.Any]:
        empty: dict[str, t.Any] = {"bridges": [], "machines": [], "ends": [], "applied": {}}
        try:
            with open(self.names.state_file, encoding="utf-8") as source:
                return {**empty, **json.load(source)}
        except (FileNotFoundError, json.JSONDecodeError):
            return empty

    def _write_state(self, **state: t.Any) -> None:
        text = json.dumps(state, indent=1, sort_keys=True)
        files.replace_file(self.names.state_file, text.encode(), durable=False)

    # -- changing ------------------------------------------------------------------------------------------

    def _apply(
        self,
        todo: Plan,
        found: Found,
        topology: Topology,
        site: launch.Site,
        specs: t.Mapping[str, guest.Spec],
    ) -> None:
        names = self.names
        self._mount_folder()
        bridges = [node.name for node in topology.of_kind(KIND_BRIDGE)]
        kinds = {"bridges": bridges, "machines": sorted(specs)}
        wanted_ends = {end.key: end for each in topology.cables for end in each.ends}
        touched = {end.key for each in todo.lay for end in each.ends} | {end.key for end in todo.set}
        applied = {key: value for key, value in found.applied.items() if key in wanted_ends and key not in touched}
        # What is about to be made is written down before it is made.
        self._write_state(**kinds, ends=sorted({*found.known_ends, *wanted_ends}), applied=applied)

        for key in todo.cut:
            cable.cut(names, key)
        for node in todo.remove:
            self._remove_node(node, site, keep_disk=False)
        started: dict[str, t.Any] = {}
        for node in (*todo.make_bridge, *todo.start):
            self._remove_node(node, site, keep_disk=True)
            if node in specs:
                guest.make_namespace(names, node, specs[node])
            else:
                cable.make_netns(names, node)
        # Virtual machines first: they need the longest.
        for host in sorted(todo.start, key=lambda name: name not in specs):
            if host in specs:
                started[host] = guest.start(names, host, specs[host], site)
            else:
                started[host] = launch.start(names, host, site)
        started.update(dict.fromkeys(todo.wait))
        for node in todo.make_bridge:
            cable.make_bridge(names, node)
        cable.lay(names, todo.lay, bridges, specs)
        for host, spec in specs.items():
            guest.join(names, host, spec, {end.interface for each in todo.lay for end in each.ends if end.node == host})
        # A fresh cable has its MTU; what else is asked for differs from end to end. A guest sets its own cards.
        fresh = [end for each in todo.lay for end in each.ends if end.offloads]
        for end in (*fresh, *todo.set):
            if end.node not in specs:
                cable.set_end(names, end)
        launch.wait_ready(names, {host: each for host, each in started.items() if host not in specs}, site)
        guest.wait_ready(names, {host: each for host, each in started.items() if host in specs}, site)
        applied = {key: end.settings() for key, end in wanted_ends.items()}
        self._write_state(**kinds, ends=sorted(wanted_ends), applied=applied)

    def _mount_folder(self) -> None:
        folder = self.names.folder
        os.makedirs(folder, exist_ok=True)
        if not machine.is_mounted(folder):
            # The upper layer of an overlay cannot lie in the layer below it, so it gets a file system of its own.
            machine.run(["mount", "-t", "tmpfs", "-o", "mode=0755,size=50%", "fastpath-lab", folder])

    def _remove_node(self, node: str, site: launch.Site, *, keep_disk: bool) -> None:
        launch.stop(self.names, node, site)
        cable.remove_netns(self.names, node)
        if not keep_disk:
            shutil.rmtree(self.names.host_folder(node), ignore_errors=True)

    def _remove_all(self, nodes: t.Iterable[str], site: launch.Site) -> None:
        for node in sorted(nodes):
            self._remove_node(node, site, keep_disk=True)
        machine.unmount(self.names.folder)
        # The bare mount point, or what a call that was killed left there before it was one.
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(self.names.folder)
        for folder in self._folders(site)[1:]:
            with contextlib.suppress(OSError):
                os.rmdir(folder)  # the last one only when no other lab is left

    def _folders(self, site: launch.Site) -> list[str]:
        """The lab's folder, the control group of its hosts, and the one of all labs."""
        return [self.names.folder, *(f"{site.cgroup_root}/{group}" for group in self.names.cgroup_folders)]

    # -- one at a time -------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _locked(self) -> t.Iterator[None]:
        """Hold the lab's lock; the kernel gives it back when its holder is killed."""
        path = self.names.lock
        deadline = time.monotonic() + LOCK_TIMEOUT_S
        while True:
            try:
                os.makedirs(LAB_DIR, exist_ok=True)
                handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            except FileNotFoundError:
                continue  # the last other lab was removed just now, and the folder with it
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                owner = os.read(handle, 100).decode("ascii", "replace").strip()
                os.close(handle)
                if time.monotonic() > deadline:
                    raise LabError(
                        f"another call (process {owner or 'unknown'}) has worked on it for {LOCK_TIMEOUT_S:.0f} s",
                        where=f"lab {self.names.lab}",
                        code="locked",
                    ) from None
                time.sleep(0.05)
                continue
            # The holder before may have removed the file that was opened here.
            if _is_file(handle, path):
                break
            os.close(handle)
        try:
            os.ftruncate(handle, 0)
            os.write(handle, f"{os.getpid()}\n".encode("ascii"))
            yield
        finally:
            if not os.path.lexists(self.names.folder):
                os.unlink(path)
            os.close(handle)
            with contextlib.suppress(OSError):
                os.rmdir(LAB_DIR)  # only when no lab is left


def _is_file(handle: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))
    except FileNotFoundError:
        return False


def describe(found: Found) -> dict[str, t.Any]:
    """A lab as found, for the module's result and its diff."""
    cables = sorted({tuple(sorted((key, end.peer))) for key, end in found.ends.items() if end.peer})
    return {
        "hosts": {name: node.state for name, node in sorted(found.nodes.items()) if node.kind in HOST_KINDS},
        "bridges": [name for name, node in sorted(found.nodes.items()) if node.kind == KIND_BRIDGE],
        "cables": [{"endpoints": list(ends), "queues": found.ends[ends[0]].queues} for ends in cables],
    }


def describe_wanted(topology: Topology) -> dict[str, t.Any]:
    cables = sorted((tuple(sorted(end.key for end in each.ends)), each.a.queues) for each in topology.cables)
    return {
        "hosts": {node.name: RUNNING for node in topology.nodes if node.kind in HOST_KINDS},
        "bridges": [node.name for node in topology.of_kind(KIND_BRIDGE)],
        "cables": [{"endpoints": list(ends), "queues": queues} for ends, queues in cables],
    }
