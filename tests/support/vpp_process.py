# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A VPP of one's own for a test: in its own network namespace and folder, small, and gone afterwards.

Nothing here builds or fetches VPP. Where there is none, :func:`find_vpp` gives
None and the tests are skipped by name.
"""

from __future__ import annotations

import contextlib
import importlib.util
import itertools
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import typing as t

_NUMBER = itertools.count()
_START_S = 30.0

_STARTUP = """\
unix {{
  nodaemon
  log {folder}/vpp.log
  cli-listen {folder}/cli.sock
  runtime-dir {folder}/run
  gid {gid}
  poll-sleep-usec {poll_sleep_usec}
}}
api-segment {{ prefix {name} gid {gid} }}
socksvr {{ socket-name {folder}/api.sock }}
statseg {{ socket-name {folder}/stats.sock size 32M }}
memory {{ main-heap-size 512M main-heap-page-size 4k }}
buffers {{ buffers-per-numa 16384 page-size 4K }}
cpu {{ workers {workers} }}
plugins {{
  plugin default {{ {default} }}
  plugin unittest_plugin.so {{ disable }}
  plugin linux_cp_unittest_plugin.so {{ disable }}
  {plugins}
}}
"""


def find_vpp() -> str | None:
    """The program: VPP_BIN (it or its folder), the PATH, /opt/vpp/bin."""
    asked = os.environ.get("VPP_BIN")
    if asked:
        path = os.path.join(asked, "vpp") if os.path.isdir(asked) else asked
        return path if os.access(path, os.X_OK) else None
    return shutil.which("vpp") or shutil.which("vpp", path="/opt/vpp/bin")


def why_not(*, papi: bool = True) -> str | None:
    """Why no VPP can be started here; None when one can. ``papi``: this Python itself is to speak to it."""
    if find_vpp() is None:
        return "no vpp: set VPP_BIN, or have it in the PATH or in /opt/vpp/bin"
    if os.geteuid() != 0:
        return "VPP is started as root only"
    if papi and importlib.util.find_spec("vpp_papi") is None:
        return "no vpp_papi for this Python"
    return None


class VppProcess:
    """One VPP, and the network namespace that it sees.

    It sleeps between two polls unless told otherwise: one that polls takes a CPU from every other test of the run.
    """

    def __init__(
        self,
        *,
        workers: int = 0,
        without: t.Sequence[str] = (),
        only: t.Sequence[str] = (),
        poll_sleep_usec: int = 100,
    ) -> None:
        self.name = f"fpv-{os.getpid()}-{next(_NUMBER)}"
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix=f"{self.name}-"))
        self.api_socket = str(self.folder / "api.sock")
        self.cli_socket = str(self.folder / "cli.sock")
        self.process: subprocess.Popen[bytes] | None = None
        lines = [f"plugin {plugin} {{ disable }}" for plugin in without]
        lines += [f"plugin {plugin} {{ enable }}" for plugin in only]
        text = _STARTUP.format(
            folder=self.folder,
            name=self.name,
            gid=os.getegid(),
            workers=workers,
            default="disable" if only else "enable",
            poll_sleep_usec=poll_sleep_usec,
            plugins="\n  ".join(lines),
        )
        (self.folder / "startup.conf").write_text(text, encoding="utf-8")
        _run("ip", "netns", "add", self.name)
        _run("ip", "-n", self.name, "link", "set", "lo", "up")

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def start(self) -> None:
        """Start it, and wait until its API answers connections."""
        binary = find_vpp()
        assert binary is not None
        for path in (self.api_socket, self.cli_socket):
            pathlib.Path(path).unlink(missing_ok=True)
        with open(self.folder / "out", "ab") as out:
            self.process = subprocess.Popen(
                # exec: the process that is started here is VPP itself in the end
                ["ip", "netns", "exec", self.name, binary, "-c", str(self.folder / "startup.conf")],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        deadline = time.monotonic() + _START_S
        while not self._listens():
            if self.process.poll() is not None:
                raise RuntimeError(f"vpp ended with {self.process.returncode}: {self.log()}")
            if time.monotonic() > deadline:
                self.kill()
                raise RuntimeError(f"vpp was not up within {_START_S:g} s: {self.log()}")
            time.sleep(0.02)

    def _listens(self) -> bool:
        for path in (self.api_socket, self.cli_socket):
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
                try:
                    probe.connect(path)
                except OSError:
                    return False
        return True

    def log(self) -> str:
        with contextlib.suppress(OSError):
            return (self.folder / "out").read_text(encoding="utf-8", errors="replace")[-2000:]
        return ""

    def kill(self) -> None:
        """End it the hard way, as a crash does."""
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                self.process.send_signal(signal.SIGCONT)
                self.process.kill()
            self.process.wait(timeout=10)
            self.process = None

    def restart(self) -> None:
        self.kill()
        self.start()

    @contextlib.contextmanager
    def frozen(self) -> t.Iterator[None]:
        """It holds its sockets and answers nothing."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.process.send_signal(signal.SIGCONT)

    def close(self) -> None:
        self.kill()
        # the shared memory of its API, which VPP leaves when it is killed
        for path in pathlib.Path("/dev/shm").glob(f"{self.name}-*"):
            path.unlink(missing_ok=True)
        _run("ip", "netns", "del", self.name)
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> VppProcess:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # The kernel's side

    def add_veth(self, name: str, *, mtu_bytes: int = 1500, queues: int = 4) -> None:
        """A pair of devices in the namespace, both up: ``name`` and ``name`` with a p behind it."""
        many = ("numrxqueues", str(queues), "numtxqueues", str(queues))
        self.ip("link", "add", name, *many, "type", "veth", "peer", "name", f"{name}p", *many)
        for end in (name, f"{name}p"):
            self.ip("link", "set", end, "mtu", str(mtu_bytes), "up")

    def settle(self, still_s: float = 0.25, timeout_s: float = 20.0) -> None:
        """Wait until no interface counts another packet."""
        began = since = time.monotonic()
        before = self.vppctl("show interface")
        while time.monotonic() - since < still_s and time.monotonic() - began < timeout_s:
            time.sleep(0.05)
            now = self.vppctl("show interface")
            if now != before:
                before, since = now, time.monotonic()

    def ip(self, *words: str) -> str:
        return _run("ip", "-n", self.name, *words)

    def vppctl(self, command: str) -> str:
        binary = pathlib.Path(find_vpp() or "").with_name("vppctl")
        return _run(str(binary), "-s", self.cli_socket, *command.split())


def _run(*argv: str) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, timeout=30, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(argv)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout
