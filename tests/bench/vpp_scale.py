# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""256 interfaces with an address each, and as many routes: the modules beside what one would do without them.

Prints one JSON document. VPP is started anew before each measurement, in its own namespace, without workers: on a small
machine a worker's barrier costs more than all the rest and hides it. The ways take turns. Measured are

- a bare PAPI script with the same calls, one after the other, as one writes it by hand, against the modules; each as a
  process of its own, and by the time that it works,
- the whole task in a playbook, against ``vppcfg apply`` of the same state where there is a vppcfg (VPPCFG_BIN or PATH),
- a loop of ``vppctl`` command tasks, of which 20 are run and the rest reckoned.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import typing as t

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "unit")]

import conftest  # noqa: E402 - makes the collection importable

from ansible_collections.fastpath.bench.tests.support.vpp_process import VppProcess, find_vpp, why_not  # noqa: E402

COUNT = 256
LOOP_CALLS = 20
#: Goals of the project.
MOST_OF_BARE, LEAST_OF_LOOP = 1.5, 50.0


def interfaces(kind: str) -> list[dict[str, t.Any]]:
    """What is asked of vpp_interface."""
    if kind == "loopback":
        return [{"type": "loopback", "instance": n, "addresses": [f"10.{n}.0.1/24"], "up": True} for n in range(COUNT)]
    below = {"type": "loopback", "instance": 0, "up": True}
    above = [
        {"type": "vlan", "parent": "loop0", "vlan_id": n + 1, "addresses": [f"10.{n}.0.1/24"], "up": True}
        for n in range(COUNT)
    ]
    return [below, *above]


def routes() -> list[dict[str, t.Any]]:
    return [{"prefix": f"172.16.{n}.0/24", "paths": [{"via": f"10.{n}.0.9"}]} for n in range(COUNT)]


# Each way of doing it; every one prints how long it worked


def bare(socket: str, kind: str, part: str) -> None:
    """By hand: PAPI as its documentation shows it."""
    began = time.perf_counter()
    from vpp_papi import VPPApiClient  # noqa: PLC0415 - importing it is part of the time

    vpp = VPPApiClient(server_address=socket, bootstrapapi=True, read_timeout=30)
    vpp.connect("bare")
    if part == "interfaces":
        parent = None
        if kind == "vlan":
            parent = vpp.api.create_loopback_instance(is_specified=True, user_instance=0).sw_if_index
            vpp.api.sw_interface_set_flags(sw_if_index=parent, flags=1)
        for n in range(COUNT):
            if parent is None:
                reply = vpp.api.create_loopback_instance(is_specified=True, user_instance=n)
            else:
                tag = n + 1
                reply = vpp.api.create_subif(sw_if_index=parent, sub_id=tag, sub_if_flags=18, outer_vlan_id=tag)
            assert reply.retval == 0
            index = reply.sw_if_index
            assert vpp.api.sw_interface_set_flags(sw_if_index=index, flags=1).retval == 0
            add = vpp.api.sw_interface_add_del_address(sw_if_index=index, is_add=True, prefix=f"10.{n}.0.1/24")
            assert add.retval == 0
    else:
        none = 0xFFFFFFFF
        for n in range(COUNT):
            path = {"sw_if_index": none, "table_id": 0, "rpf_id": none, "weight": 1, "preference": 0, "type": 0}
            path.update({"flags": 0, "proto": 0, "n_labels": 0, "label_stack": [{}] * 16})
            path["nh"] = {"address": {"ip4": f"10.{n}.0.9"}, "via_label": 0x100000}
            route = {"table_id": 0, "prefix": f"172.16.{n}.0/24", "src": 0, "n_paths": 1, "paths": [path]}
            assert vpp.api.ip_route_add_del_v2(is_add=True, is_multipath=False, route=route).retval == 0
    vpp.disconnect()
    print(json.dumps({"work_s": time.perf_counter() - began}))


def by_module(socket: str, kind: str, part: str) -> None:
    """The work of the module, without Ansible around it."""
    began = time.perf_counter()
    from ansible_collections.fastpath.bench.plugins.module_utils._vpp import (  # noqa: PLC0415
        interface_run,
        route,
    )
    from ansible_collections.fastpath.bench.plugins.module_utils._vpp.session import PapiSession  # noqa: PLC0415

    with PapiSession(socket, timeout_s=30) as session:
        if part == "interfaces":
            result = interface_run.run(session, interfaces(kind), "merged")
        else:
            result = route.run(session, routes(), "replaced")
    print(json.dumps({"work_s": time.perf_counter() - began, "changed": result["changed"]}))


def run(way: str, socket: str, kind: str, part: str) -> dict[str, t.Any]:
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, __file__, "--way", way, "--socket", socket, "--kind", kind, "--part", part],
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
    )
    return {"wall_s": time.perf_counter() - began, **json.loads(done.stdout)}


def play(socket: str, folder: pathlib.Path, kind: str) -> dict[str, t.Any]:
    """The whole task in a playbook, timed inside of it; then the same task again."""
    file = folder / "play.yml"
    stamp = {"ansible.builtin.set_fact": {"stamps": "{{ stamps | default([]) + [now().timestamp()] }}"}}
    task = {"fastpath.bench.vpp_interface": {"api_socket": socket, "api_timeout_s": 30, "config": interfaces(kind)}}
    tasks = [stamp, {**task, "register": "first"}, stamp, {**task, "register": "second"}, stamp]
    result = "{{ {'stamps': stamps, 'first': first.changed, 'second': second.changed} | to_json }}"
    tasks.append({"ansible.builtin.copy": {"content": result, "dest": str(folder / "stamps.json"), "mode": "0644"}})
    file.write_text(json.dumps([{"hosts": "localhost", "gather_facts": False, "tasks": tasks}]), encoding="utf-8")
    _ansible(file)
    told = json.loads((folder / "stamps.json").read_text(encoding="utf-8"))
    one, two, three = told["stamps"]
    assert (told["first"], told["second"]) == (True, False), told
    return {"task_s": two - one, "task_again_s": three - two}


def loop(cli_socket: str, folder: pathlib.Path) -> float:
    """Seconds for one command in a loop of vppctl command tasks."""
    file = folder / "loop.yml"
    vppctl = str(pathlib.Path(find_vpp() or "").with_name("vppctl"))
    stamp = {"ansible.builtin.set_fact": {"stamps": "{{ stamps | default([]) + [now().timestamp()] }}"}}
    lines = [f"create loopback interface instance {1000 + n}" for n in range(LOOP_CALLS)]
    command = {"argv": [vppctl, "-s", cli_socket, "{{ item }}"]}
    tasks = [stamp, {"ansible.builtin.command": command, "loop": lines}, stamp]
    content = {"content": "{{ stamps | to_json }}", "dest": str(folder / "loop.json"), "mode": "0644"}
    tasks.append({"ansible.builtin.copy": content})
    file.write_text(json.dumps([{"hosts": "localhost", "gather_facts": False, "tasks": tasks}]), encoding="utf-8")
    _ansible(file)
    one, two = json.loads((folder / "loop.json").read_text(encoding="utf-8"))
    return float((two - one) / LOOP_CALLS)


def _ansible(file: pathlib.Path) -> None:
    environment = {
        **os.environ,
        "ANSIBLE_COLLECTIONS_PATH": str(conftest.COLLECTIONS),
        "ANSIBLE_PYTHON_INTERPRETER": sys.executable,
        "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
        "ANSIBLE_LOCALHOST_WARNING": "false",
    }
    play = str(pathlib.Path(sys.executable).with_name("ansible-playbook"))
    argv = [play, "-i", "localhost,", "-c", "local", str(file)]
    done = subprocess.run(argv, capture_output=True, text=True, env=environment, timeout=600, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stdout + done.stderr)


#: vppcfg 1.2 writes to the default socket whatever it is told, so VPP's folder is put there, for it alone.
_AT_DEFAULT = 'mount -t tmpfs none /run && mkdir /run/vpp && mount --bind "$0" /run/vpp && exec "$@"'


def vppcfg(socket: str, folder: pathlib.Path, kind: str) -> float | str:
    """Seconds of ``vppcfg apply``, or why there are none."""
    binary = os.environ.get("VPPCFG_BIN") or shutil.which("vppcfg")
    if not binary:
        return "no vppcfg: set VPPCFG_BIN, or have it in the PATH"
    if kind != "loopback":
        return "its VLANs need a real port below"
    lines = ["interfaces: {}", "loopbacks:"]
    for n in range(COUNT):
        lines += [f"  loop{n}:", f"    addresses: [10.{n}.0.1/24]"]
    config = folder / "vppcfg.yaml"
    config.write_text("\n".join(lines) + "\n", encoding="utf-8")
    began = time.perf_counter()
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", _AT_DEFAULT, os.path.dirname(socket), binary, "apply", "-c", str(config)],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    if done.returncode != 0:
        return f"it failed: {(done.stderr or done.stdout).strip()[-300:]}"
    return time.perf_counter() - began


def middle(values: t.Sequence[float]) -> float:
    return round(statistics.median(values), 3)


def compare(kind: str, rounds: int) -> dict[str, t.Any]:
    taken: dict[str, list[float]] = {}

    def note(name: str, seconds: float) -> None:
        taken.setdefault(name, []).append(seconds)

    cfg: float | str = ""
    with contextlib.closing(VppProcess(workers=0, poll_sleep_usec=0)) as vpp, tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        for _dummy in range(rounds):
            for way in ("bare", "module"):
                vpp.restart()
                for part in ("interfaces", "routes"):
                    done = run(way, vpp.api_socket, kind, part)
                    note(f"{way}_{part}_process", done["wall_s"])
                    note(f"{way}_{part}", done["work_s"])
                if way == "module":
                    for part in ("interfaces", "routes"):
                        again = run(way, vpp.api_socket, kind, part)
                        assert not again["changed"], part
                        note(f"module_{part}_again", again["work_s"])
            vpp.restart()
            for name, seconds in play(vpp.api_socket, folder, kind).items():
                note(name, seconds)
            vpp.restart()
            cfg = vppcfg(vpp.api_socket, folder, kind)
            if isinstance(cfg, float):
                note("vppcfg_apply", cfg)
        vpp.restart()
        command = loop(vpp.cli_socket, folder)
    median = {name: middle(values) for name, values in taken.items()}
    reckoned = command * COUNT * 3
    ratio = {
        part: round(statistics.median(m / b for m, b in zip(taken[f"module_{part}"], taken[f"bare_{part}"])), 3)
        for part in ("interfaces", "routes")
    }
    result: dict[str, t.Any] = {
        "kind": kind,
        "count": COUNT,
        "rounds": rounds,
        "seconds": median,
        "module_to_bare": ratio,
        "module_to_bare_goal": f"at most {MOST_OF_BARE}",
        "vppctl_command_s": round(command, 3),
        "vppctl_loop_s": round(reckoned, 1),
        "loop_to_task": round(reckoned / median["task_s"], 1),
        "loop_to_task_goal": f"at least {LEAST_OF_LOOP:g}",
        "second_run_changed": False,
        "load": [round(one, 1) for one in os.getloadavg()],
    }
    if "vppcfg_apply" in median:
        result["task_to_vppcfg"] = round(median["task_s"] / median["vppcfg_apply"], 3)
        result["task_to_vppcfg_goal"] = "at most 1"
    else:
        result["vppcfg"] = cfg
    met = all(one <= MOST_OF_BARE for one in ratio.values()) and result["loop_to_task"] >= LEAST_OF_LOOP
    result["met"] = met and result.get("task_to_vppcfg", 0) <= 1
    return result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--kinds", nargs="+", default=["loopback", "vlan"], choices=["loopback", "vlan"])
    parser.add_argument("--way", choices=["bare", "module"], help=argparse.SUPPRESS)
    parser.add_argument("--socket", help=argparse.SUPPRESS)
    parser.add_argument("--kind", help=argparse.SUPPRESS)
    parser.add_argument("--part", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.way:
        {"bare": bare, "module": by_module}[options.way](options.socket, options.kind, options.part)
        return 0
    reason = why_not()
    if reason is not None:
        print(json.dumps({"skipped": reason}))
        return 0
    results = [compare(kind, options.rounds) for kind in options.kinds]
    print(json.dumps(results, indent=2))
    return 0 if all(one["met"] for one in results) else 1


if __name__ == "__main__":
    sys.exit(main())
