# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""dut_sample, path_check and host_fingerprint on real links: client - dut - server, each a network namespace."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import pathlib
import subprocess
import sys
import time
import traceback
import uuid

import pytest

pytestmark = [
    pytest.mark.lab,
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root"),
]

COLLECTIONS = pathlib.Path(__file__).resolve().parents[3] / ".cache" / "collections"
PRELUDE = f"import sys; sys.path.insert(0, {str(COLLECTIONS)!r})\n"
MODULE_UTILS = "ansible_collections.fastpath.bench.plugins.module_utils._host"


def enter(namespace: str) -> None:
    """Move this process into a network namespace, with a /sys that shows it; as ``ip netns exec`` does."""
    libc = ctypes.CDLL(None, use_errno=True)

    def call(name: str, *arguments) -> None:
        if getattr(libc, name)(*arguments):
            raise OSError(ctypes.get_errno(), f"{name}: {os.strerror(ctypes.get_errno())}")

    new_net, new_mount, detach, recursive_slave = 0x40000000, 0x00020000, 2, (1 << 19) | (1 << 14)
    with open(f"/run/netns/{namespace}", encoding="ascii") as stream:
        call("setns", stream.fileno(), new_net)
    call("unshare", new_mount)
    call("mount", b"", b"/", b"none", recursive_slave, None)
    call("umount2", b"/sys", detach)
    call("mount", b"fpo", b"/sys", b"sysfs", 0, None)


def _write_all(descriptor: int, text: str) -> None:
    data = text.encode()
    while data:
        data = data[os.write(descriptor, data) :]


class Net:
    """Three namespaces in a row. Addresses end in 1 at the client's side and in 2 at the server's."""

    def __init__(self, tmp: pathlib.Path) -> None:
        self.mark = "fpo" + uuid.uuid4().hex[:6]
        self.tmp = tmp
        self.helpers: list[subprocess.Popen] = []

    def ns(self, host: str) -> str:
        return f"{self.mark}-{host}"

    def ip(self, host: str, *words: str) -> str:
        return subprocess.run(["ip", "-n", self.ns(host), *words], check=True, capture_output=True, text=True).stdout

    def run(self, host: str, *words: str, **options) -> subprocess.CompletedProcess:
        check = options.pop("check", True)
        command = ["ip", "netns", "exec", self.ns(host), *words]
        return subprocess.run(command, check=check, capture_output=True, text=True, timeout=30, **options)

    def python(self, host: str, body: str) -> dict:
        """Run a piece of Python in a host; it assigns what it found to ``result``."""
        read_end, write_end = os.pipe()
        child = os.fork()  # far quicker than a new interpreter, of which these tests would need a hundred
        if child == 0:
            try:
                enter(self.ns(host))
                names: dict = {}
                exec(PRELUDE + body, names)
                _write_all(write_end, json.dumps({"result": names["result"]}))
            finally:
                # Never back into the test run that this process is a copy of.
                if sys.exc_info()[0] is not None:
                    _write_all(write_end, json.dumps({"error": traceback.format_exc()}))
                os._exit(0)
        os.close(write_end)
        with os.fdopen(read_end) as stream:
            answer = json.loads(stream.read())
        os.waitpid(child, 0)
        assert "error" not in answer, answer["error"]
        return answer["result"]

    def start(self, host: str, body: str) -> subprocess.Popen:
        process = subprocess.Popen(
            ["ip", "netns", "exec", self.ns(host), sys.executable, "-c", PRELUDE + body],
            stdout=subprocess.PIPE,
            text=True,
        )
        self.helpers.append(process)
        return process

    def batch(self, host: str, *lines: str) -> None:
        """Many ip commands in one process."""
        subprocess.run(["ip", "-n", self.ns(host), "-batch", "-"], input="\n".join(lines), check=True, text=True)

    def build(self) -> None:
        hosts = ("client", "dut", "server")
        subprocess.run(
            ["ip", "-batch", "-"],
            input="\n".join(f"netns add {self.ns(host)}" for host in hosts),
            check=True,
            text=True,
        )
        for host in hosts:
            values = ["net.ipv6.conf.default.accept_dad=0", "net.ipv6.conf.default.router_solicitations=0"]
            if host == "dut":
                values += ["net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1"]
            self.run(host, "sysctl", "-qw", *values)
            self.batch(host, "link set lo up")
        self.cable("client", "eth1", "dut", "eth1", 1)
        self.cable("dut", "eth2", "server", "eth1", 2)
        self.batch("client", "route add default via 10.91.1.2", "route add default via fd91:1::2")
        self.batch("server", "route add default via 10.91.2.1", "route add default via fd91:2::1")

    def cable(self, left: str, left_name: str, right: str, right_name: str, number: int) -> None:
        queues = "numtxqueues 2 numrxqueues 2"
        peer = f"peer name {right_name} netns {self.ns(right)} {queues}"
        for host, name, last in ((left, left_name, 1), (right, right_name, 2)):
            self.batch(
                host,
                *([f"link add {name} {queues} type veth {peer}"] if last == 1 else []),
                f"address add 10.91.{number}.{last}/24 dev {name}",
                f"address add fd91:{number}::{last}/64 dev {name} nodad",
                f"link set {name} up",
            )

    def remove(self) -> None:
        for process in self.helpers:
            process.kill()
            process.wait()
        # Each for itself: one that is not there must not keep the others.
        lines = "\n".join(f"netns delete {self.ns(host)}" for host in ("client", "dut", "server"))
        subprocess.run(["ip", "-force", "-batch", "-"], input=lines, check=False, capture_output=True, text=True)


@pytest.fixture
def net(tmp_path):
    made = Net(tmp_path)
    try:
        made.build()
        yield made
    finally:
        made.remove()


# ----------------------------------------------------------------- dut_sample

SAMPLE = f"""
from {MODULE_UTILS} import sampler
from {MODULE_UTILS}.sampler import Settings, Window
settings = Settings('t', interval_s=0.05, queue_interval_s=0.05, max_duration_s=60, directory='DIR')
"""


class Sampling:
    def __init__(self, net: Net) -> None:
        self.net = net
        self.code = SAMPLE.replace("DIR", str(net.tmp / "sample"))

    def start(self, interfaces: tuple[str, ...] = ()) -> dict:
        code = self.code.replace("'t', ", f"'t', {interfaces!r}, ")
        started = self.net.python("dut", code + "result = sampler.ensure_started(settings)")
        time.sleep(0.2)  # windows may begin a little before what they are about
        return started

    def stop(self, *windows: tuple[str, float, float], **clock: float) -> dict:
        made = ", ".join(f"Window({name!r}, {start!r}, {end!r})" for name, start, end in windows)
        extra = "".join(f", {name}={value!r}" for name, value in clock.items())
        return self.net.python("dut", f"{self.code}result = sampler.ensure_ended(settings, 'stopped', [{made}]{extra})")


@pytest.fixture
def sampling(net):
    made = Sampling(net)
    yield made
    with contextlib.suppress(subprocess.CalledProcessError, AssertionError):
        made.stop()


def quiet(net: Net) -> dict[str, dict[str, int]]:
    """Wait until nothing moves for longer than two samples; the counters then."""
    before: dict[str, dict[str, int]] = {}
    while True:
        now = {name: counters(net, "dut", name) for name in ("eth1", "eth2")}
        if now == before:
            return now
        before = now
        time.sleep(0.12)


def counters(net: Net, host: str, name: str) -> dict[str, int]:
    (link,) = json.loads(net.ip(host, "-s", "-json", "link", "show", name))
    stats = link["stats64"]
    return {
        f"{way}_{what}": stats[way][what] for way in ("rx", "tx") for what in ("packets", "bytes", "dropped", "errors")
    }


SEND = """
import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
begin = time.time()
for n in range(PACKETS):
    s.sendto(bytes(SIZE), ('10.91.2.2', 9))
    if n % 50 == 0: time.sleep(0.005)
result = {'begin': begin, 'end': time.time()}
"""


def test_counters_are_exactly_those_of_the_kernel(net, sampling):
    for host in ("client", "dut", "server"):
        net.run(host, "sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1")  # it speaks unasked
    started = sampling.start()
    assert started["interfaces"] == ["eth1", "eth2"]
    net.python("client", SEND.replace("PACKETS", "1").replace("SIZE", "10"))  # neighbours are known from here on
    before = quiet(net)
    begin = time.time()
    time.sleep(0.25)  # longer than the time between two samples, so that nothing moves around the window's edges
    sent = net.python("client", SEND.replace("PACKETS", "4000").replace("SIZE", "972"))
    after = quiet(net)
    end = time.time()
    result = sampling.stop(("all", begin, end), ("busy", sent["begin"], sent["end"]))
    for name in ("eth1", "eth2"):
        found = result["windows"]["all"]["interfaces"][name]
        assert found["reason"] is None
        for key, value in before[name].items():
            assert found[key] == after[name][key] - value, (name, key)
    there = result["windows"]["all"]["interfaces"]["eth1"]
    assert there["rx_packets"] >= 4000
    assert there["rx_mean_frame_bytes"] == pytest.approx(972 + 8 + 20 + 14, abs=3)
    busy = result["windows"]["busy"]
    length = sent["end"] - sent["begin"]
    counted = busy["window"]["counted_s"]
    assert length / 2 < counted <= length + 0.002
    # The samples lie within the traffic, so the rate is the sender's own, whatever lies beside the window.
    assert busy["interfaces"]["eth1"]["rx_packet_rate"] == pytest.approx(4000 / length, rel=0.15)
    assert busy["softnet"]["processed"] >= 4000 * 0.8 * counted / length
    assert 0 < busy["cpu"]["mean_busy"] <= 1
    assert sum(cpu["net_rx"] for cpu in busy["softirqs"]) > 0
    # 2 CPUs in the lab, 3 interfaces at most: the recorder must not show in what it records.
    assert result["overhead"]["cpu_per_sample_ms"] < 2


def test_window_in_the_clients_clock(net, sampling):
    sampling.start(("eth1",))
    sent = net.python("client", SEND.replace("PACKETS", "1000").replace("SIZE", "100"))
    time.sleep(0.2)
    window = ("w", sent["begin"] + 1000.0 - 0.1, sent["end"] + 1000.0 + 0.1)
    right = sampling.stop(window, clock_offset_s=1000.0)["windows"]["w"]
    assert right["interfaces"]["eth1"]["rx_packets"] >= 1000
    wrong = sampling.stop(window, clock_offset_s=0.0)["windows"]["w"]
    assert wrong["interfaces"] is None
    assert "after the last sample" in wrong["reason"]


def test_queue_counters(net, sampling):
    # veth counts per queue only where it polls: with GRO, and from a peer that does not segment.
    net.run("dut", "ethtool", "-K", "eth1", "gro", "on")
    net.run("client", "ethtool", "-K", "eth1", "tso", "off")
    sampling.start(("eth1",))
    sent = net.python("client", SEND.replace("PACKETS", "1000").replace("SIZE", "100"))
    time.sleep(0.2)
    names = net.run("dut", "ethtool", "-S", "eth1").stdout
    found = sampling.stop(("w", sent["begin"] - 0.1, sent["end"] + 0.15))["windows"]["w"]["interfaces"]["eth1"]
    assert ("rx_queue_1_xdp_packets" in names) == (found["queues"] is not None)
    assert set(found["queues"]["rx"]) == {"0", "1"}
    assert sum(queue["packets"] for queue in found["queues"]["rx"].values()) >= 950


def test_interface_that_vanishes_while_recorded(net, sampling):
    net.ip("dut", "link", "add", "dummy7", "type", "veth", "peer", "name", "dummy8")
    net.ip("dut", "link", "set", "dummy7", "up")
    sampling.start(("eth1", "dummy7"))
    begin = time.time()
    time.sleep(0.8)  # on a machine that has other things to do, a sample may be late by half a second
    middle = time.time()
    net.ip("dut", "link", "delete", "dummy7")
    time.sleep(0.2)
    net.ip("dut", "link", "add", "dummy7", "type", "veth", "peer", "name", "dummy8")
    time.sleep(0.2)
    end = time.time()
    time.sleep(0.1)
    windows = sampling.stop(("all", begin, end), ("first", begin, middle - 0.06))["windows"]
    assert windows["all"]["interfaces"]["dummy7"]["rx_packets"] is None
    assert windows["all"]["interfaces"]["dummy7"]["reason"]
    assert windows["all"]["interfaces"]["eth1"]["rx_packets"] is not None
    assert windows["first"]["interfaces"]["dummy7"]["reason"] is None


def test_killed_recorder_is_null_with_a_reason(net, sampling):
    started = sampling.start()
    begin = time.time()
    time.sleep(0.8)
    middle = time.time()
    os.kill(started["pid"], 9)
    time.sleep(0.5)
    result = sampling.stop(("before", begin, middle - 0.06), ("after", begin, time.time()))
    assert (result["ended"], result["changed"]) == ("gone", False)
    assert result["windows"]["before"]["interfaces"]["eth1"]["rx_packets"] is not None
    late = result["windows"]["after"]
    assert (late["cpu"], late["interfaces"]) == (None, None)
    assert "no longer running" in late["reason"]


# ----------------------------------------------------------------- path_check

LISTEN = f"""
from {MODULE_UTILS} import path_responder
settings = path_responder.Listening(bind_addresses=('10.91.2.2', 'fd91:2::2'), lifetime_s=60, directory='DIR')
"""
CHECK = f"""
from {MODULE_UTILS} import pathcheck
from {MODULE_UTILS}.path_prober import Probe
result = pathcheck.check_paths([Probe(address, PORT, **OPTIONS) for address in ADDRESSES])
"""


class Path:
    def __init__(self, net: Net) -> None:
        self.net = net
        self.code = LISTEN.replace("DIR", str(net.tmp / "path"))
        self.port = net.python("server", self.code + "result = path_responder.ensure_listening(settings)")["port"]

    def stop(self) -> dict:
        return self.net.python("server", self.code + "result = path_responder.ensure_stopped(settings)")

    def check(self, *addresses: str, port: int = 0, **options) -> dict:
        code = CHECK.replace("PORT", str(port or self.port)).replace("ADDRESSES", repr(addresses or ("10.91.2.2",)))
        return self.net.python("client", code.replace("OPTIONS", repr(options)))


@pytest.fixture
def path(net):
    made = Path(net)
    yield made
    made.stop()


def check_of(result: dict, name: str) -> dict:
    (found,) = [check for check in result["checks"] if check["name"] == name]
    return found


def test_all_is_well(net, path):
    path.check("10.91.2.2", "fd91:2::2")  # neighbours are found
    result = path.check(
        "10.91.2.2",
        "fd91:2::2",
        mtu_bytes=1500,
        expected_interface="eth1",
        expected_server_interface="eth1",
        expected_hops=1,
    )
    assert result["ok"], result["message"]
    assert result["seconds"] < 0.5
    assert {check["name"] for check in result["checks"]} == {
        "route", "ping", "ping_mtu", "udp", "udp_mtu_forward", "udp_mtu_reverse", "interface_forward",
        "interface_reverse", "hops_forward", "hops_reverse", "tcp_forward", "tcp_reverse",
    }  # fmt: skip
    assert all(check["ok"] for check in result["checks"])
    assert "1048576 of 1048576 bytes" in check_of({"checks": result["targets"][1]["checks"]}, "tcp_forward")["evidence"]
    assert result["targets"][0]["route"]["device"] == "eth1"
    assert result["targets"][0]["source"] == "10.91.1.1"
    seen = path.stop()["seen"]
    assert seen["10.91.1.1"]["tcp_bytes"] == 2 * 1024 * 1024
    assert seen["fd91:1::1"]["tcp_connections"] == 2


def test_responder_is_idempotent_and_bounded(net, path):
    again = net.python("server", path.code + "result = path_responder.ensure_listening(settings)")
    assert (again["changed"], again["port"]) == (False, path.port)
    listening = net.run("server", "ss", "-Hlntu").stdout
    assert listening.count(f":{path.port} ") == 4
    assert path.stop()["changed"] is True
    assert path.stop() == {"changed": False, "seen": None, "arrived": None, "checksum_errors": None}
    assert net.run("server", "ss", "-Hlntu").stdout == ""


def test_port_in_use(net, path):
    code = path.code.replace("lifetime_s", f"name='other', port={path.port}, lifetime_s")
    body = "\nfrom ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError\n"
    body += "try:\n    result = path_responder.ensure_listening(settings)\n"
    body += "except BenchError as error:\n    result = error.as_result()"
    result = net.python("server", code + body)
    assert result["code"] == "cannot_listen"
    assert "Address already in use" in result["msg"]


def test_server_missing(net, path):
    result = path.check(port=9)
    assert (result["ok"], result["code"]) == (False, "server_missing")
    assert check_of(result, "ping")["ok"] is True
    assert result["seconds"] < 3.5


def test_no_route(net, path):
    net.ip("client", "route", "del", "default")
    result = path.check()
    assert result["code"] == "no_route"
    assert "Network is unreachable" in result["message"]
    assert result["seconds"] < 1


def test_wrong_interface(net, path):
    """A second network (think of the management one) that also leads to the server."""
    net.cable("client", "mgmt0", "dut", "mgmt0", 7)
    net.ip("client", "route", "add", "10.91.2.0/24", "via", "10.91.7.2")
    result = path.check(expected_interface="eth1")
    assert result["code"] == "wrong_interface"
    assert "leaves by mgmt0 from 10.91.7.1 via 10.91.7.2, not by eth1" in result["message"]
    assert check_of(result, "tcp_forward")["ok"] is True


def test_answers_come_back_by_another_interface(net, path):
    net.cable("client", "mgmt0", "dut", "mgmt0", 7)
    net.ip("dut", "route", "add", "10.91.1.1/32", "via", "10.91.7.1")
    net.run("client", "sysctl", "-qw", "net.ipv4.conf.all.rp_filter=0", "net.ipv4.conf.mgmt0.rp_filter=0")
    result = path.check(expected_interface="eth1")
    assert result["code"] == "wrong_interface"
    assert "came in at the client by mgmt0, expected eth1" in result["message"]


def test_traffic_that_bypasses_the_router(net, path):
    net.cable("client", "eth9", "server", "eth9", 9)
    net.ip("client", "route", "add", "10.91.2.2/32", "via", "10.91.9.2")
    net.ip("server", "route", "add", "10.91.9.0/32", "dev", "eth9")
    result = path.check(expected_hops=1)
    assert result["code"] == "wrong_path"
    assert "0 routers on the way, expected 1" in result["message"]


def test_server_is_down(net, path):
    net.ip("server", "link", "set", "eth1", "down")
    result = path.check(timeout_s=0.45)
    assert result["code"] in ("unreachable", "silent")
    assert result["seconds"] < 2.5


@pytest.mark.parametrize(("interface", "expected"), [("eth1", "forward_dead"), ("eth2", "reverse_dead")])
def test_one_direction_dead(net, path, interface, expected):
    path.check()
    net.ip("dut", "rule", "add", "iif", interface, "blackhole", "priority", "10")
    result = path.check(timeout_s=0.45)
    assert result["code"] == "silent"
    assert result["seconds"] < 2.2
    report = path.stop()
    # The same responder has also seen a good check before, which must not count.
    verdict = net.python(
        "server",
        f"from {MODULE_UTILS} import pathcheck\n"
        f"result = pathcheck.explain_silence({result!r}, {report['arrived']!r}).code",
    )
    assert verdict == expected
    # TCP never got through, in neither case.
    assert report["seen"]["10.91.1.1"]["tcp_connections"] == 1


@pytest.mark.parametrize("family", ["-4", "-6"])
def test_tcp_blocked_while_all_else_works(net, path, family):
    address = "10.91.2.2" if family == "-4" else "fd91:2::2"
    path.check(address)  # neighbours are found
    net.ip("dut", family, "rule", "add", "iif", "eth1", "ipproto", "tcp", "blackhole", "priority", "10")
    result = path.check(address, timeout_s=0.45)
    assert result["code"] == "tcp_dead"
    assert "while ping and udp works" in result["message"]
    assert check_of(result, "udp_mtu_reverse")["ok"] is True
    assert result["seconds"] < 2.2


def test_udp_blocked_while_all_else_works(net, path):
    net.ip("dut", "rule", "add", "iif", "eth1", "ipproto", "udp", "blackhole", "priority", "10")
    result = path.check(timeout_s=1.5)
    assert result["code"] == "udp_dead"
    assert check_of(result, "tcp_reverse")["ok"] is True


def test_hop_with_a_smaller_mtu_names_itself(net, path):
    path.check("10.91.2.2", "fd91:2::2")  # neighbours are found
    for family_address, hop in (("10.91.2.2", "10.91.1.2"), ("fd91:2::2", "fd91:1::2")):
        net.ip("dut", "link", "set", "eth2", "mtu", "1400")
        result = path.check(family_address, mtu_bytes=1500, timeout_s=1.5)
        assert result["code"] == "mtu_smaller", result["message"]
        # Routers ration these messages, so it may have reached TCP and not ping, and is then without its sender.
        named = [f"{by} names 1400 bytes" in result["message"] for by in (hop, "a router on the way")]
        assert any(named), result["message"]
        assert check_of(result, "ping")["ok"] is True


@pytest.mark.parametrize(("host", "name", "way"), [("server", "eth1", "forward"), ("client", "eth1", "reverse")])
def test_frames_of_full_size_vanish_silently(net, path, host, name, way):
    """A veth throws frames away that are larger than its own MTU, and tells nobody."""
    net.ip(host, "link", "set", name, "mtu", "1400")
    if host == "client":
        # Sending full size is still possible by the peer alone, so ask for the answers' size only.
        result = path.check(mtu_bytes=1400, timeout_s=0.45)
        assert result["ok"], result["message"]
        return
    result = path.check(mtu_bytes=1500, timeout_s=0.45)
    assert result["code"] == "mtu_hole", result["message"]
    assert "forward" in result["message"]
    assert check_of(result, "ping")["ok"] is True
    assert check_of(result, "udp")["ok"] is True
    assert check_of(result, "udp_mtu_forward")["ok"] is False


def test_mtu_larger_than_the_own_interface(net, path):
    result = path.check(mtu_bytes=9000, timeout_s=0.45)
    assert result["code"] == "mtu_local"
    assert "MTU is 1500" in result["message"]


# A user-space forwarder on packet sockets, as af_packet data planes are: it takes frames as they lie in memory, whose
# checksums the sender left for hardware that does not exist.
RELAY = """
import select, socket
pair = []
for name in ('in0', 'out0'):
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    s.bind((name, 0))
    pair.append(s)
print('ready', flush=True)
while True:
    for ready in select.select(pair, [], [])[0]:
        data, where = ready.recvfrom(65535)
        if where[2] != socket.PACKET_OUTGOING and len(data) <= LIMIT:
            pair[1 - pair.index(ready)].send(data)
"""


@pytest.fixture
def relayed(net):
    """client and server on one subnet, joined by the relay in the DUT instead of its routing."""

    def build(limit: int = 65535) -> Path:
        for left, left_name, right, right_name in (
            ("client", "data0", "dut", "in0"),
            ("server", "data0", "dut", "out0"),
        ):
            net.ip(left, "link", "add", left_name, "type", "veth", "peer", "name", right_name, "netns", net.ns(right))
            net.ip(left, "link", "set", left_name, "up")
            net.ip(right, "link", "set", right_name, "up", "promisc", "on")
        for family in ("10.91.3.{}/24", "fd91:3::{}/64"):
            net.ip("client", "address", "add", family.format(1), "dev", "data0", "nodad")
            net.ip("server", "address", "add", family.format(2), "dev", "data0", "nodad")
        relay = net.start("dut", RELAY.replace("LIMIT", str(limit)))
        assert relay.stdout.readline() == "ready\n"
        made.append(Path.__new__(Path))
        made[0].net = net
        made[0].code = LISTEN.replace("DIR", str(net.tmp / "path")).replace("2.2", "3.2").replace("91:2::", "91:3::")
        made[0].port = net.python("server", made[0].code + "result = path_responder.ensure_listening(settings)")["port"]
        return made[0]

    made: list[Path] = []
    yield build
    for path in made:
        path.stop()


@pytest.mark.parametrize("address", ["10.91.3.2", "fd91:3::2"])
def test_checksums_that_nobody_fills_in(net, relayed, address):
    """Ping passes, TCP is dead: the fault that an L3 test never sees."""
    path = relayed()
    result = path.check(address, timeout_s=0.45)
    assert result["code"] == "checksum", result["message"]
    assert "ethtool -K" in result["remedy"]
    assert "client's data interface" in result["remedy"]
    assert check_of(result, "ping")["ok"] is True
    assert check_of(result, "tcp_forward")["ok"] is False
    assert result["seconds"] < 2.2
    net.run("client", "ethtool", "-K", "data0", "tx", "off")
    result = path.check(address, timeout_s=0.45)
    assert result["code"] == "checksum", result["message"]  # now the answers
    assert "server's data interface" in result["remedy"]
    net.run("server", "ethtool", "-K", "data0", "tx", "off")
    result = path.check(address)
    assert result["ok"], result["message"]


def test_frame_buffers_that_are_too_small(net, relayed):
    """Frames over some size vanish in a data plane whose buffers hold less than the MTU."""
    path = relayed(limit=1024)
    for host in ("client", "server"):
        net.run(host, "ethtool", "-K", "data0", "tx", "off")
    result = path.check("10.91.3.2", mtu_bytes=1500, timeout_s=0.45)
    assert result["code"] == "mtu_hole"
    assert "(forward and reverse)" in result["message"]
    assert check_of(result, "ping")["ok"] is True
    assert path.check("10.91.3.2", mtu_bytes=1000, bytes=400, timeout_s=0.45)["ok"]


# ----------------------------------------------------------- host_fingerprint

FINGERPRINT = f"""
import subprocess, time
from {MODULE_UTILS} import fingerprint
begin = time.perf_counter()
before = fingerprint.collect()
result = {{'took_s': time.perf_counter() - begin, 'before': before, 'changed': [], 'again': []}}
for there, back in CHANGES:
    subprocess.run(['sh', '-c', there], check=True)
    result['changed'].append(fingerprint.collect())
    subprocess.run(['sh', '-c', back], check=True)
after = fingerprint.collect()
result['after'] = after
result['differences'] = fingerprint.differences(before['state'], after['state'])
"""


def test_fingerprint_sees_a_change_and_its_undoing(net):
    found = net.run("dut", "cat", "/proc/sys/net/ipv4/conf/eth1/rp_filter").stdout.strip()
    other = "1" if found == "2" else "2"
    changes = [
        ("ethtool -K eth1 gro on", "ethtool -K eth1 gro off"),
        ("ip link set eth2 mtu 1400", "ip link set eth2 mtu 1500"),
        ("ip route add 10.99.0.0/24 via 10.91.1.1", "ip route del 10.99.0.0/24"),
        (f"sysctl -qw net.ipv4.conf.eth1.rp_filter={other}", f"sysctl -qw net.ipv4.conf.eth1.rp_filter={found}"),
        ("echo 3 > /sys/class/net/eth1/queues/rx-1/rps_cpus", "echo 0 > /sys/class/net/eth1/queues/rx-1/rps_cpus"),
    ]
    result = net.python("dut", FINGERPRINT.replace("CHANGES", repr(changes)))
    before = result["before"]
    assert list(before["interfaces"]) == ["eth1", "eth2"]
    assert before["interfaces"]["eth1"]["driver"] == "veth"
    assert before["state"]["interfaces"]["eth1"]["channels"]["rx"] == 2
    assert before["state"]["sysctls"]["net/ipv4/ip_forward"] == "1"
    for change, (there, _back) in zip(result["changed"], changes):
        assert change["digests"]["state"] != before["digests"]["state"], there
        assert change["digests"]["identity"] == before["digests"]["identity"]
    assert result["differences"] == []
    assert result["after"]["digests"] == before["digests"]
    assert result["took_s"] < 1.0
