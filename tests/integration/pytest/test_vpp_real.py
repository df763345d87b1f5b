# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What only a real VPP can show: connections that fail, death in the middle, the start-up script."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import threading
import time
import typing as t

import pytest

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._vpp import errors, interface_run, placement, route
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.host_links import HostLinks
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.session import PapiSession
from ansible_collections.fastpath.bench.tests.support.vpp_process import VppProcess, why_not

pytestmark = pytest.mark.vpp

ROOT = pathlib.Path(__file__).resolve().parents[3]
NOBODY = 65534
PLUGINS = ("af_packet_plugin.so", "memif_plugin.so")


@pytest.fixture(scope="module")
def process() -> t.Iterator[VppProcess]:
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)
    vpp = VppProcess(workers=1, only=PLUGINS)
    try:
        vpp.add_veth("eth1")
        vpp.start()
        yield vpp
    finally:
        vpp.close()


@pytest.fixture
def vpp(process: VppProcess) -> VppProcess:
    if process.process is None:
        process.start()
    return process


def failure(socket_path: str, timeout_s: float = 1.0) -> BenchError:
    with pytest.raises(BenchError) as caught, PapiSession(socket_path, timeout_s=timeout_s) as session:
        session.version()
    return caught.value


def run(vpp: VppProcess, *config: dict[str, t.Any], state: str = "merged", **options: t.Any) -> dict[str, t.Any]:
    with PapiSession(vpp.api_socket) as session:
        return interface_run.run(session, config, state, **options)


# Connections that fail


def test_no_socket_and_something_else_in_its_place(tmp_path: pathlib.Path) -> None:
    error = failure(str(tmp_path / "api.sock"))
    assert (error.code, error.where) == ("vpp_no_socket", str(tmp_path / "api.sock"))
    assert "startup.conf" in str(error)
    (tmp_path / "file").write_text("")
    assert failure(str(tmp_path / "file")).code == "vpp_no_socket"


def test_a_socket_that_is_left_over(tmp_path: pathlib.Path) -> None:
    path = str(tmp_path / "api.sock")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(path)
    assert failure(path).code == "vpp_not_running"


def test_no_permission_names_socket_user_and_group(vpp: VppProcess) -> None:
    vpp.folder.chmod(0o755)
    os.chmod(vpp.api_socket, 0o660)
    # all of PAPI while it can be read: the other user may not see where it lies
    with PapiSession(vpp.api_socket) as session:
        session.version()
    groups = os.getgroups()
    os.setgroups([])
    os.setegid(NOBODY)
    os.seteuid(NOBODY)
    try:
        error = failure(vpp.api_socket)
    finally:
        os.seteuid(0)
        os.setegid(0)
        os.setgroups(groups)
    assert error.code == "vpp_no_permission"
    for word in ("nobody", "group root", "0660", vpp.api_socket, "become"):
        assert word in str(error)


def test_a_stopped_vpp_is_given_up_in_bounded_time(vpp: VppProcess) -> None:
    with vpp.frozen():
        began = time.monotonic()
        assert failure(vpp.api_socket, 0.5).code == "vpp_hung"
        assert time.monotonic() - began < 2
    with PapiSession(vpp.api_socket, timeout_s=0.5) as session:
        session.version()
        with vpp.frozen():
            began = time.monotonic()
            with pytest.raises(errors.VppHung, match="show_threads"):
                session.call("show_threads")
            assert time.monotonic() - began < 2
    # and it is usable again afterwards
    with PapiSession(vpp.api_socket) as session:
        assert session.version()


def test_a_module_ends_in_bounded_time_too(vpp: VppProcess) -> None:
    with vpp.frozen():
        began = time.monotonic()
        result = module(vpp, "vpp_info", {}, api_timeout_s=0.5)
        assert time.monotonic() - began < 10
    assert (result["failed"], result["code"]) == (True, "vpp_hung")


def test_a_plugin_that_is_not_loaded(vpp: VppProcess) -> None:
    with pytest.raises(errors.VppMessageMissing, match=r"nsim_plugin.so \{ enable \}"):
        call(vpp, "nsim_configure2")
    error = failure_of(run, vpp, {"type": "tap", "instance": 1})
    assert "tap_plugin.so" in str(error)


def call(vpp: VppProcess, request: str) -> t.Any:
    with PapiSession(vpp.api_socket) as session:
        return session.call(request)


def failure_of(function: t.Callable[..., t.Any], *args: t.Any, **options: t.Any) -> BenchError:
    with pytest.raises(BenchError) as caught:
        function(*args, **options)
    return caught.value


def test_an_interface_of_another_namespace_is_told_so(vpp: VppProcess) -> None:
    # this process is not in VPP's namespace, and its own has a loopback device
    here = next(name for name in os.listdir("/sys/class/net") if name not in ("lo", "eth1", "eth1p"))
    error = failure_of(run, vpp, {"type": "af_packet", "host_interface": here})
    assert error.code == "wrong_namespace"
    assert vpp.name in str(error)
    with PapiSession(vpp.api_socket) as session:
        links = HostLinks(session.pid())
    assert (links.mtu_bytes("eth1"), links.mtu_bytes(here)) == (1500, None)


def test_papi_missing_says_how_to_get_it(vpp: VppProcess, tmp_path: pathlib.Path) -> None:
    (tmp_path / "vpp_papi.py").write_text("raise ImportError('not here')\n")
    result = module(vpp, "vpp_info", {}, PYTHONPATH=str(tmp_path))
    assert result["code"] == "vpp_papi_missing"
    assert "python3-vpp-api" in result["msg"]


# Death in the middle


def module(
    vpp: VppProcess, name: str, args: dict[str, t.Any], api_timeout_s: float = 10, **env: str
) -> dict[str, t.Any]:
    """Run a module in a process of its own, as Ansible does on a host."""
    code = f"from ansible_collections.fastpath.bench.plugins.modules.{name} import main; main()"
    given = {"api_socket": vpp.api_socket, "api_timeout_s": api_timeout_s, **args}
    shell = (
        "import sys; from ansible.utils.collection_loader._collection_finder import _AnsibleCollectionFinder as F;"
        f"F(paths=[{str(ROOT / '.cache' / 'collections')!r}])._install();"
        "import ansible.module_utils.basic as b;"
        f"b._ANSIBLE_ARGS={json.dumps({'ANSIBLE_MODULE_ARGS': given}).encode()!r};b._ANSIBLE_PROFILE='legacy';{code}"
    )
    done = subprocess.run(
        [sys.executable, "-c", shell],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, **env},
    )
    assert done.stdout.strip(), done.stderr
    result: dict[str, t.Any] = json.loads(done.stdout)
    return result


MANY = [{"type": "loopback", "instance": n, "addresses": [f"10.{n}.0.1/24"], "up": True} for n in range(200)]


@pytest.mark.parametrize("delay_s", [0.0, 0.05, 0.15, 0.3])
def test_killed_in_the_middle_is_said_and_a_rerun_converges(vpp: VppProcess, delay_s: float) -> None:
    vpp.restart()

    def kill_when_it_works() -> None:
        # from the moment that the first interface exists
        with PapiSession(vpp.api_socket) as session:
            deadline = time.monotonic() + 20
            while time.monotonic() < deadline:
                if len(session.call("sw_interface_dump")) > 1:
                    break
        time.sleep(delay_s)
        os.kill(vpp.pid, signal.SIGKILL)

    killer = threading.Thread(target=kill_when_it_works)
    killer.start()
    result = module(vpp, "vpp_interface", {"config": MANY})
    killer.join()
    if delay_s == 0.0:
        assert result["failed"]
    if result.get("failed"):
        assert (result["code"], "run the task again" in result["msg"]) == ("vpp_gone", True)
    vpp.restart()
    assert module(vpp, "vpp_interface", {"config": MANY})["changed"]
    assert not module(vpp, "vpp_interface", {"config": MANY})["changed"]
    assert len(run(vpp, state="gathered")["gathered"]) == 200


# The start-up script


def test_the_rendered_script_makes_what_the_modules_ask(vpp: VppProcess) -> None:
    vpp.restart()
    interfaces = [
        {
            "type": "af_packet",
            "host_interface": "eth1",
            "rx_queues": 2,
            "tx_queues": 2,
            "qdisc_bypass": False,
            "checksum_gso": False,
            "mac": "02:00:00:00:00:77",
            "mtu_bytes": 1400,
            "rx_mode": "polling",
            "tag": "wan",
            "addresses": ["192.0.2.1/24", "2001:db8:1::1/64"],
            "up": True,
        },
        {"type": "vlan", "parent": "host-eth1", "vlan_id": 100, "vrf": 7, "addresses": ["10.7.0.1/24"], "up": True},
        {"type": "vlan", "parent": "host-eth1", "sub_id": 9, "vlan_id": 200, "inner_vlan_id": 30, "dot1ad": True},
        {"type": "loopback", "instance": 5, "mac": "02:00:00:00:00:55", "gso": True, "up": True},
        {"type": "memif", "memif_id": 3, "memif_role": "master", "ring_size": 512, "rx_queues": 1},
    ]
    routes = [
        {"prefix": "203.0.113.0/24", "paths": [{"via": "192.0.2.9", "interface": "host-eth1", "weight": 2}]},
        {"prefix": "203.0.114.0/24", "table": 7, "paths": [{"via": "10.7.0.9"}]},
        {"prefix": "2001:db8:f::/48", "paths": [{"via": "2001:db8:1::9"}, {"via": "2001:db8:1::8", "weight": 3}]},
        {"prefix": "203.0.116.0/24", "drop": True},
    ]
    placements = [
        {"interface": "host-eth1", "queue": 0, "main": True},
        {"interface": "host-eth1", "queue": 1, "worker": 0},
    ]
    script = vpp.folder / "start.vpp"
    lines = interface_run.render(interfaces) + route.render(routes)
    lines += [f"set interface rx-placement host-eth1 queue {place}" for place in ("0 main", "1 worker 0")]
    script.write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert vpp.vppctl(f"exec {script}").strip() == ""
    told = run(vpp, *interfaces)
    assert told["changes"] == []
    with PapiSession(vpp.api_socket) as session:
        assert route.run(session, routes, "overridden")["changes"] == []
        placed = placement.run(session, policy="explicit", placements=placements)
    assert placed["changes"] == []
    assert placed["rendered"] == lines[-2:]
    # and the other way round: from nothing by the modules
    vpp.restart()
    assert run(vpp, *interfaces)["changed"]
    assert not run(vpp, *interfaces)["changed"]
    # what the command line cannot hold is refused, not lost
    both = {**interfaces[0], "mtu_ip4_bytes": 1300}
    assert failure_of(interface_run.render, [both]).code == "not_renderable"
    assert run(vpp, both)["changed"]
    assert not run(vpp, both)["changed"]
