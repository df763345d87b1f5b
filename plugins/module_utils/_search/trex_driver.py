# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A user's TRex in a process of its own, which has its server on an interface and commands it by TRex's own client.

The client brings releases of Python packages that must not get among a module's own, and the server must end with
the search in whatever way that ends: the process takes its orders from a socket, and at the end of that it ends the
server and puts the interface back.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import json
import os
import pathlib
import platform
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import typing as t
import warnings

from ansible_collections.fastpath.bench.plugins.module_utils._common import command
from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._search import promiscuous
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.flow_run import WayOut

SERVER = "_t-rex-64"
CLIENT = "automation/trex_control_plane/interactive"
#: TRex has ports in pairs. The second one is none.
_PORT = 0
_START_S, _ANSWER_S, _END_S = 60.0, 20.0, 5.0
_POLL_S, _LOOK_S, _STILL_S = 0.05, 0.002, 0.02
#: A packet that is late by less is sent at once, and the others keep their times; past that TRex lets time go.
_LATE_S = 10.0
#: A sender of the right rate has sent all a moment after the trial's time, by this or by a part of that time.
_GRACE_S, _GRACE = 0.005, 0.002
#: Packets each second of which no interface of a kernel sends as many.
TOO_MANY_PPS = 20e6
_LINE_LIMIT = 1 << 22
_DPDK_RUN = "/var/run/dpdk"
_CHATTER = re.compile(r"Starting|Trying to bind|Using configuration|port limit|zmq publisher|WARNING", re.IGNORECASE)


@dataclasses.dataclass(frozen=True)
class Place:
    """Which TRex, and where it sends."""

    folder: str
    way: WayOut
    #: One that this host gives to its programs.
    core: int = 0


# --------------------------------------------------------------------------- the server


def configuration(place: Place, ports: tuple[int, int], prefix: str) -> str:
    """TRex's own file: its mode for small machines, on the kernel's interface, without hugepages."""
    to_mac, from_mac = place.way.macs
    return f"""\
- version: 2
  low_end: true
  low_end_core: {place.core}
  interfaces: ["{place.way.device}", "dummy"]
  port_limit: 2
  prefix: {prefix}
  zmq_pub_port: {ports[0]}
  zmq_rpc_port: {ports[1]}
  port_info:
    - dest_mac: "{to_mac}"
      src_mac: "{from_mac}"
    - dest_mac: "{from_mac}"
      src_mac: "{to_mac}"
"""


def server_command(place: Place, config: str, log: str) -> list[str]:
    """The server itself: the script before it prepares cards and hugepages, which this has none of."""
    setpriv = command.find_program("setpriv")
    server = [f"./{SERVER}", "-i", "--cfg", config, "--iom", "0", "--no-key", "--no-termio", "--no-watchdog", "-w", "0"]
    bound = [setpriv, "--pdeathsig", "KILL"] if setpriv else []
    # what it prints must not wait for somebody to read it
    return [*bound, "sh", "-c", 'log=$1; shift; cd "$0" && exec "$@" >"$log" 2>&1', place.folder, log, *server]


def complaint(text: str) -> str:
    """What the server said last, in one line."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and not _CHATTER.match(line.strip())]
    return " / ".join(lines[-4:])[:400] or "it said nothing"


def _free_ports() -> tuple[int, int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _number in range(2)]
        for one in sockets:
            one.bind(("", 0))
        first, second = (int(one.getsockname()[1]) for one in sockets)
    return first, second


class Server:
    """TRex on an interface, as long as the context is."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.ports = _free_ports()
        self._open = contextlib.ExitStack()

    def __enter__(self) -> Server:
        try:
            self._begin()
        except BaseException:
            self._open.close()
            raise
        return self

    def __exit__(self, *_why: object) -> None:
        self._open.close()

    def _begin(self) -> None:
        self._open.callback(promiscuous.keep(self.place.way.device))
        folder = self._open.enter_context(tempfile.TemporaryDirectory(prefix=_scratch(os.getpid())))
        config, log = pathlib.Path(folder, "trex.yaml"), pathlib.Path(folder, "log")
        config.write_text(configuration(self.place, self.ports, _prefix(os.getpid())), encoding="utf-8")
        self._open.callback(_forget_run, os.getpid())
        process = command.start(
            server_command(self.place, str(config), str(log)), env={"LD_LIBRARY_PATH": self.place.folder}
        )
        self._open.callback(_end, process)
        limit = time.monotonic() + _START_S
        while not _listens(self.ports[1]):
            why = None if process.poll() is None else "ended"
            why = "did not start" if time.monotonic() > limit else why
            if why is not None:
                said = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
                raise BenchError(f"TRex {why}: {complaint(said)}", where=self.place.folder, code="tool_error")
            time.sleep(_POLL_S)


def _scratch(pid: int) -> str:
    """How the folder of a server begins that this process started."""
    return f"fastpath-trex-{pid}-"


def _prefix(pid: int) -> str:
    return f"fastpath-{pid}"


def _forget_run(pid: int) -> None:
    """DPDK leaves its files."""
    shutil.rmtree(pathlib.Path(_DPDK_RUN, _prefix(pid)), ignore_errors=True)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGINT)
    command.finish(process, limit_s=_END_S)


# --------------------------------------------------------------------------- its client


@contextlib.contextmanager
def _told(what: str) -> t.Iterator[None]:
    """What the client raises, whatever that is, as an error of ours."""
    try:
        yield
    except (BenchError, ConnectionError):
        raise
    except Exception as error:  # it is a foreign library
        said = " ".join(str(error).split())
        raise BenchError(f"TRex {what}: {said or type(error).__name__}"[:400], code="tool_error") from error


def load_client(folder: str) -> t.Any:
    """TRex's own client.

    :raises BenchError: this Python cannot load it.
    """
    path = os.path.join(folder, CLIENT)
    warnings.simplefilter("ignore")
    sys.path.insert(0, path)
    try:
        return importlib.import_module("trex.stl.api")
    except Exception as error:  # it is a foreign library
        raise BenchError(
            f"Python {platform.python_version()} cannot load the client of TRex: {type(error).__name__}: {error}",
            where=path,
            remedy="Set ansible_python_interpreter to a Python that this release of TRex knows",
            code="trex_client",
        ) from error


class Commander:
    """What is told to the server."""

    def __init__(self, api: t.Any, ports: tuple[int, int]) -> None:
        self._api = api
        with _told("cannot be commanded"):
            self._client = api.STLClient(
                server="127.0.0.1", async_port=ports[0], sync_port=ports[1], verbose_level="none"
            )
            self._client.connect()
            self._client.acquire(ports=[_PORT], force=True)
            self._client.reset(ports=[_PORT])
            self._client.set_global_cfg({"sched_max_stretch": _LATE_S})
            self.version = str(self._client.get_server_version().get("version"))

    def trial(
        self, order: dict[str, t.Any], began: t.Callable[[], None], pause: t.Callable[[float], None] = time.sleep
    ) -> dict[str, t.Any]:
        """Send, and tell what was sent: exactly so many packets, or as many as it gets.

        :param began: called when it sends.
        :param pause: waits so many seconds.
        """
        client, wanted = self._client, order["streams"]
        with _told("does not send"):
            client.remove_all_streams(ports=[_PORT])
            client.add_streams([self._stream(one) for one in wanted if one["packets"] != 0], ports=[_PORT])
            before = self._sent()
            client.start(ports=[_PORT], force=True)
            began_at = time.monotonic()
            began()
            duration_s = float(order["duration_s"])
            pause(duration_s)
            if all(one["packets"] is not None for one in wanted):
                until = began_at + duration_s + max(_GRACE_S, _GRACE * duration_s)
                full = sum(one["packets"] for one in wanted)
                while self._sent() - before < full and time.monotonic() < until:
                    pause(_LOOK_S)
            seconds = time.monotonic() - began_at
            client.stop(ports=[_PORT], rx_delay_ms=0)
            return {"packets": self._still() - before, "seconds": seconds}

    def _stream(self, one: dict[str, t.Any]) -> t.Any:
        api = self._api
        if one["packets"] is None:
            mode = api.STLTXCont(pps=one["pps"])
        else:
            mode = api.STLTXSingleBurst(pps=one["pps"], total_pkts=one["packets"])
        return api.STLStream(
            packet=api.STLPktBuilder(pkt_buffer=bytes.fromhex(one["frame"])),
            mode=mode,
            mac_src_override_by_pkt=True,
            mac_dst_override_mode=api.STLStreamDstMAC_PKT,
        )

    def _sent(self) -> int:
        """Packets that the interface has taken since the server was started."""
        return int(self._client.get_stats(ports=[_PORT])[_PORT]["opackets"])

    def _still(self) -> int:
        """The same when no more are sent."""
        sent, since = self._sent(), time.monotonic()
        while time.monotonic() - since < _STILL_S:
            time.sleep(_LOOK_S)
            now = self._sent()
            if now != sent:
                sent, since = now, time.monotonic()
        return sent

    def close(self) -> None:
        with contextlib.suppress(BenchError), _told("does not end"):
            self._client.disconnect()


# --------------------------------------------------------------------------- the process


def _line(what: dict[str, t.Any]) -> bytes:
    return json.dumps(what).encode() + b"\n"


def _work(place: Place, orders: socket.socket) -> None:
    """The process' own work, until nobody is there any more who gives orders."""
    with orders, contextlib.ExitStack() as stack:
        reader = stack.enter_context(orders.makefile("rb"))

        def answer(what: dict[str, t.Any]) -> None:
            orders.sendall(_line(what))

        def pause(seconds: float) -> None:
            # no order comes while one is carried out: what comes is the end
            if select.select([orders], [], [], seconds)[0]:
                raise ConnectionError

        try:
            with _told("failed"):
                api = load_client(place.folder)
                server = stack.enter_context(Server(place))
                commander = Commander(api, server.ports)
                stack.callback(commander.close)
                answer({"version": commander.version})
                for line in reader:
                    answer(commander.trial(json.loads(line), lambda: answer({"began": True}), pause))
        except BenchError as error:
            answer({"error": error.message, "code": error.code})


class Driver:
    """The process, as its caller sees it."""

    def __init__(self, place: Place) -> None:
        # the process puts it back itself, unless it is killed
        self._put_back = promiscuous.keep(place.way.device)
        self._socket, theirs = socket.socketpair()
        self._pid = os.fork()
        self._waiting = b""
        self._ended = False
        if self._pid == 0:
            code = 1
            try:
                self._socket.close()
                # a signal for the caller's group is none for it: it has to put things back
                os.setsid()
                null = os.open(os.devnull, os.O_RDWR)
                for number in range(3):
                    os.dup2(null, number)
                with contextlib.suppress(OSError):
                    _work(place, theirs)
                    code = 0
            finally:
                # nothing of the module may run in here
                os._exit(code)
        theirs.close()
        try:
            self.version = str(self.answer(_START_S + _ANSWER_S)["version"])
        except BaseException:
            self.close()
            raise

    def order(self, what: dict[str, t.Any]) -> None:
        try:
            self._socket.sendall(_line(what))
        except OSError as error:
            raise BenchError(f"TRex ended: {error.strerror}", code="tool_error") from error

    def answer(self, within_s: float) -> dict[str, t.Any]:
        """:raises BenchError: there is none, or it is that it failed."""
        limit = time.monotonic() + within_s
        while b"\n" not in self._waiting:
            left = limit - time.monotonic()
            if left <= 0 or not select.select([self._socket], [], [], left)[0]:
                raise BenchError(f"TRex did not answer within {within_s:g} s", code="tool_error")
            part = self._socket.recv(_LINE_LIMIT)
            if not part:
                raise BenchError("TRex ended without a word", code="tool_error")
            self._waiting += part
        line, _newline, self._waiting = self._waiting.partition(b"\n")
        said: dict[str, t.Any] = json.loads(line)
        if "error" in said:
            raise BenchError(str(said["error"]), code=str(said["code"]))
        return said

    def close(self) -> None:
        """End the server; the interface is as it was when this returns. It may be asked for twice."""
        self._socket.close()
        limit = time.monotonic() + 2 * _END_S
        while not self._ended:
            if time.monotonic() > limit:
                os.kill(self._pid, signal.SIGKILL)
                limit += _END_S
            self._ended = os.waitpid(self._pid, os.WNOHANG)[0] != 0
            time.sleep(0 if self._ended else _LOOK_S)
        for folder in pathlib.Path(tempfile.gettempdir()).glob(_scratch(self._pid) + "*"):
            shutil.rmtree(folder, ignore_errors=True)
        _forget_run(self._pid)
        self._put_back()
