# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from ansible_collections.fastpath.bench.plugins.module_utils._host import leftovers
from ansible_collections.fastpath.bench.plugins.module_utils._traffic import answerer
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.server import State

BATCH = """
import signal, subprocess, sys
child = subprocess.Popen(["sleep", "60"], start_new_session=True)
def leave(number, frame):
    with open(sys.argv[1], "w") as file:
        file.write("ended before" if child.poll() is not None else "still there")
    child.kill()
    child.wait()
    raise SystemExit(143)
signal.signal(signal.SIGTERM, STUBBORN or leave)
print(child.pid, flush=True)
while True:
    signal.pause()
"""


def start_batch(told, stubborn=False):
    code = BATCH.replace("STUBBORN", "signal.SIG_IGN" if stubborn else "None")
    process = subprocess.Popen([sys.executable, "-c", code, str(told)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, int(process.stdout.readline())


def is_alive(pid):
    return leftovers.start_ticks(pid) is not None


def test_the_process_of_a_batch_is_told_before_its_tool_ends(tmp_path):
    """A tool that is ended first is taken for a trial that failed, and is not measured again."""
    process, tool = start_batch(tmp_path / "told")
    leftovers.end_batch(process.pid)
    assert process.wait(10) == 143
    assert (tmp_path / "told").read_text() == "still there"
    assert not is_alive(tool)


def test_a_batch_that_does_not_end_is_killed_with_its_tool(tmp_path, monkeypatch):
    monkeypatch.setattr(leftovers, "GRACE_S", 0.2)
    process, tool = start_batch(tmp_path / "told", stubborn=True)
    leftovers.end_batch(process.pid)
    assert process.wait(10) == -9
    deadline = time.monotonic() + 5
    while is_alive(tool) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not is_alive(tool)


class Manager:
    """A service manager with some units running."""

    def __init__(self, *active):
        self.active = {f"fastpath-iperf@{name}.service" for name in active}
        self.stopped = []

    def start(self, units):
        raise AssertionError("nothing is to be started")

    def stop(self, units):
        self.stopped += units
        self.active -= set(units)

    def states(self, units):
        return {unit: State(unit in self.active, 1, "success") for unit in units}


@pytest.fixture
def host(tmp_path):
    folders = {}
    for key in ("iperf_dir", "sample_dir", "path_dir"):
        (tmp_path / key).mkdir()
        folders[key] = str(tmp_path / key)
    for name in ("run1.lab-g01-b01-p5201", "run1.lab-g01-b01-p5203", "run2.lab-g01-b01-p5201"):
        for kind in ("env", "out", "err"):
            (tmp_path / "iperf_dir" / f"{name}.{kind}").write_text("x")
    (tmp_path / "sample_dir" / "run1.lab-g01-b01.jsonl").write_text("x")
    return tmp_path, folders


def clean(manager, folders, keep=None, check_mode=False, receiver_dirs=()):
    options = {"keep": keep, "check_mode": check_mode, "receiver_dirs": receiver_dirs}
    return leftovers.clean(manager, batch_file="/nonexistent", **options, **folders)


def test_receivers_are_ended_too_and_their_port_is_free(host):
    path, folders = host
    names = ("run1.lab-g01-b01-p5201", "run2.lab-g01-b01-p5201")
    settings = [answerer.Settings(name, "127.0.0.1", directory=str(path / "receivers")) for name in names]
    for one in settings:
        answerer.ensure_present(one)
    dirs = {"receiver_dirs": [str(path / "receivers")]}
    try:
        assert clean(Manager(), folders, keep="run2", check_mode=True, **dirs) == [f"receiver {names[0]}"]
        assert clean(Manager(), folders, keep="run2", **dirs) == [f"receiver {names[0]}"]
        assert clean(Manager(), folders, **dirs) == [f"receiver {names[1]}"]
        assert clean(Manager(), folders, **dirs) == []
    finally:
        for one in settings:
            answerer.ensure_absent(one)


def test_servers_are_ended_and_what_they_counted_stays_for_a_later_resume(host):
    path, folders = host
    manager = Manager("run1.lab-g01-b01-p5201", "run2.lab-g01-b01-p5201")
    before = sorted(os.listdir(path / "iperf_dir"))
    assert clean(manager, folders, check_mode=True) == [
        "server run1.lab-g01-b01-p5201", "server run2.lab-g01-b01-p5201",
    ]  # fmt: skip
    assert manager.stopped == []
    assert clean(manager, folders, keep="run2") == ["server run1.lab-g01-b01-p5201"]
    assert manager.stopped == ["fastpath-iperf@run1.lab-g01-b01-p5201.service"]
    assert sorted(os.listdir(path / "iperf_dir")) == before
    for entry in (path / "iperf_dir").iterdir():
        os.utime(entry, (time.time() - 2 * 86400,) * 2)
    assert clean(manager, folders, keep="run2") == []
    assert {name.partition("-p")[0] for name in os.listdir(path / "iperf_dir")} == {"run2.lab-g01-b01"}


def test_what_is_recorded_is_forgotten_and_nothing_else(host):
    path, folders = host
    spool = path / "spool" / "run1"
    spool.mkdir(parents=True)
    (spool / "trial.json").write_text("{}")
    (path / "iperf_dir" / "run1.lab-g01-b011-p5201.env").write_text("x")
    del folders["path_dir"]
    named = leftovers.forget(["run1.lab-g01-b01"], check_mode=True, spool=str(spool), **folders)
    assert len(named) == 8
    assert spool.exists()
    assert leftovers.forget(["run1.lab-g01-b01"], check_mode=False, spool=str(spool), **folders) == named
    assert not spool.exists()
    assert os.listdir(path / "sample_dir") == []
    assert {name.partition("-p")[0] for name in os.listdir(path / "iperf_dir")} == {
        "run2.lab-g01-b01", "run1.lab-g01-b011",
    }  # fmt: skip
    assert leftovers.forget(["run1.lab-g01-b01"], check_mode=False, spool=str(spool), **folders) == []
