# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._host import background


def idle(control: background.Control) -> None:
    control.ready({"answer": 42})
    while not control.wait(10):
        pass


@pytest.fixture
def workers(tmp_path: pathlib.Path):
    pool = background.Workers(str(tmp_path / "run"))
    yield pool
    for name in pool.names():
        pool.stop(name, within_s=0.2)


def until(condition, within_s: float = 5.0) -> bool:
    limit = time.monotonic() + within_s
    while time.monotonic() < limit:
        if condition():
            return True
        time.sleep(0.01)
    return False


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("7 (python3) S 1 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4711 100 200", ("S", 4711)),
        ("7 (a) b) c) R 1 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4711 100 200", ("R", 4711)),
        ("7 ((sd-pam)) Z 1 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 1 100 200", ("Z", 1)),
    ],
)
def test_process_stat_with_brackets_in_the_name(text, expected):
    assert background.parse_process_stat(text) == expected


def test_starts_is_found_and_ends(workers):
    worker = workers.start("one", idle, lifetime_s=30, title="fp-test")
    assert worker.info == {"answer": 42}
    assert worker.alive()
    assert pathlib.Path(f"/proc/{worker.pid}/comm").read_text(encoding="ascii").strip() == "fp-test"
    assert os.getsid(worker.pid) != os.getsid(0)
    begun = time.monotonic()
    ended = workers.stop("one")
    assert (ended.how, ended.worker, ended.error) == ("asked", worker, None)
    assert time.monotonic() - begun < 1.0
    assert not worker.alive()
    assert workers.find("one") is None
    assert os.listdir(workers.directory) == [".lock"]
    assert workers.stop("one").how == "absent"


def test_second_start_gives_the_first_worker(workers):
    first = workers.start("one", idle, lifetime_s=30, title="t")
    assert workers.start("one", idle, lifetime_s=30, title="t") == first


def test_holds_no_descriptor_of_its_starter(workers, tmp_path):
    with open(tmp_path / "held", "w", encoding="utf-8"):
        worker = workers.start("one", idle, lifetime_s=30, title="t")
    targets = {os.readlink(entry) for entry in pathlib.Path(f"/proc/{worker.pid}/fd").iterdir()}
    assert not [target for target in targets if "held" in target]
    assert {target.split(":")[0] for target in targets} <= {"/dev/null", "pipe", f"{workers.directory}/one.err"}
    # Null twice, errors, the wake-up pipe; the pipe to its starter is closed right after the word was given.
    assert until(lambda: len(os.listdir(f"/proc/{worker.pid}/fd")) == 5)


def test_output_of_the_starter_ends_with_it(workers, tmp_path):
    """What a connection waits for: end of file on stdout and stderr, although the worker lives on."""
    script = tmp_path / "start.py"
    script.write_text(
        f"import sys; sys.path.insert(0, {str(pathlib.Path(__file__).parents[2])!r}); import conftest\n"
        "from ansible_collections.fastpath.bench.plugins.module_utils._host import background\n"
        "def idle(control):\n"
        "    control.ready({})\n"
        "    while not control.wait(10): pass\n"
        f"background.Workers({workers.directory!r}).start('far', idle, lifetime_s=30, title='t')\n"
        "print('done')\n",
        encoding="utf-8",
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=15, check=True)
    assert done.stdout == "done\n"
    worker = workers.find("far")
    assert worker is not None
    assert worker.alive()


def test_ends_by_itself_at_its_deadline(workers):
    worker = workers.start("short", idle, lifetime_s=0.2, title="t")
    assert until(lambda: not worker.alive(), 2)
    assert workers.find("short") is None
    assert workers.stop("short").how == "gone"


def test_a_worker_that_hangs_is_ended_by_the_kernel(workers, monkeypatch):
    monkeypatch.setattr(background, "ALARM_GRACE_S", 1)

    def hang(control: background.Control) -> None:
        control.ready({})
        while True:
            time.sleep(10)

    worker = workers.start("hang", hang, lifetime_s=0.1, title="t")
    assert worker.alive()
    assert until(lambda: not worker.alive(), 3)
    assert workers.sweep() == ["hang"]


def test_a_worker_that_ignores_the_request_is_killed(workers):
    def deaf(control: background.Control) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        control.ready({})
        while not control.wait(10):
            pass

    worker = workers.start("deaf", deaf, lifetime_s=30, title="t")
    assert workers.stop("deaf", within_s=0.2).how == "killed"
    assert not worker.alive()


def test_killed_worker_is_seen_as_gone_and_can_be_started_again(workers):
    worker = workers.start("one", idle, lifetime_s=30, title="t")
    os.kill(worker.pid, signal.SIGKILL)
    assert until(lambda: not worker.alive())
    again = workers.start("one", idle, lifetime_s=30, title="t")
    assert again.pid != worker.pid
    os.kill(again.pid, signal.SIGKILL)
    assert until(lambda: not again.alive())
    assert workers.stop("one").how == "gone"


def test_a_recycled_pid_is_not_signalled(workers):
    """The file names a living process, but one that started at another time: ours, so a mistake would end the tests."""
    os.makedirs(workers.directory)
    record = {
        "name": "old",
        "pid": os.getpid(),
        "start_ticks": 1,
        "boot_id": background.boot_id(),
        "started": 0.0,
        "lifetime_s": 1.0,
        "info": {},
    }
    path = pathlib.Path(workers.directory, "old.pid")
    path.write_text(json.dumps(record), encoding="utf-8")
    assert workers.stop("old").how == "gone"
    assert not path.exists()
    record.update(start_ticks=background.start_ticks(os.getpid()), boot_id="another boot")
    path.write_text(json.dumps(record), encoding="utf-8")
    assert workers.stop("old").how == "gone"


def test_torn_pid_file_is_no_worker(workers):
    os.makedirs(workers.directory)
    pathlib.Path(workers.directory, "torn.pid").write_text('{"pid": 1', encoding="utf-8")
    assert workers.find("torn") is None
    assert workers.sweep() == ["torn"]


def test_fault_before_ready_reaches_the_starter(workers):
    def wrong(_control: background.Control) -> None:
        raise BenchError("no such thing", where="option x", remedy="Use another", code="nothing")

    with pytest.raises(BenchError, match=r"option x: no such thing\. Use another\.") as caught:
        workers.start("wrong", wrong, lifetime_s=5, title="t")
    assert caught.value.code == "nothing"


def test_traceback_before_ready_reaches_the_starter(workers):
    def wrong(_control: background.Control) -> None:
        raise RuntimeError("a fault of ours")

    with pytest.raises(BenchError, match="a fault of ours"):
        workers.start("wrong", wrong, lifetime_s=5, title="t")
    assert workers.names() == []


def test_not_ready_in_time(workers, tmp_path):
    def slow(control: background.Control) -> None:
        (tmp_path / "pid").write_text(str(os.getpid()), encoding="ascii")
        control.wait(20)

    with pytest.raises(BenchError, match="did not get ready within") as caught:
        workers.start("slow", slow, lifetime_s=30, title="t", ready_within_s=0.3)
    assert caught.value.code == "worker_not_ready"
    assert background.start_ticks(int((tmp_path / "pid").read_text(encoding="ascii"))) is None


def test_error_after_ready_is_told_at_the_stop(workers):
    def later(control: background.Control) -> None:
        control.ready({})
        raise OSError(28, "No space left on device")

    worker = workers.start("later", later, lifetime_s=5, title="t")
    assert until(lambda: not worker.alive())
    ended = workers.stop("later")
    assert ended.how == "gone"
    assert ended.error is not None
    assert "No space left on device" in ended.error


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".hidden", "a b", "x" * 101, "ä"])
def test_names_that_are_no_file_names(workers, name):
    with pytest.raises(BenchError):
        workers.start(name, idle, lifetime_s=1, title="t")
