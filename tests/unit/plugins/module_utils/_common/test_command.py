# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import pathlib
import signal
import time
import typing as t

import pytest

from ansible_collections.fastpath.bench.plugins.module_utils._common import command
from ansible_collections.fastpath.bench.plugins.module_utils._common.command import CommandError


def gone(pid: int) -> bool:
    """Whether a process has ended: it may still be in the table when its parent has not looked."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def until(condition: t.Callable[[], bool], limit_s: float = 5.0) -> bool:
    deadline = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def shell(script: str, limit_s: float = 10.0, **options: t.Any) -> command.Result:
    return command.run(["sh", "-c", script], limit_s=limit_s, **options)


def test_result() -> None:
    done = shell("echo out; echo err >&2; exit 3")
    assert done.argv == ("sh", "-c", "echo out; echo err >&2; exit 3")
    assert (done.rc, done.stdout, done.stderr, done.timed_out) == (3, "out\n", "err\n", False)
    assert done.ended() is done
    assert shell("true").check().rc == 0


def test_failure_has_all_that_is_known() -> None:
    with pytest.raises(CommandError) as caught:
        shell("echo out; echo one >&2; echo two. >&2; exit 3").check()
    error = caught.value
    assert error.argv[:2] == ("sh", "-c")
    assert (error.rc, error.stdout, error.stderr, error.code) == (3, "out\n", "one\ntwo.\n", "tool_failed")
    assert error.message.endswith("exit 3 ended with 3: one / two.")
    result = error.as_result()
    assert (result["cmd"][0], result["rc"], result["stdout"], result["stderr"]) == ("sh", 3, "out\n", "one\ntwo.\n")
    assert result["msg"] == error.message


@pytest.mark.parametrize(
    ("script", "message"),
    [("echo only on stdout; false", "only on stdout"), ("false", "no message"), ("kill -9 $$", "no message")],
)
def test_failure_without_an_error_output(script: str, message: str) -> None:
    with pytest.raises(CommandError, match=f": {message}"):
        shell(script).check()


def test_a_flood_of_words_is_cut_in_the_message_alone() -> None:
    done = shell("yes word | head -c 200000 >&2; echo the end >&2; exit 1")
    assert len(done.stderr) > 200000
    assert len(done.message) < 1100
    assert done.message.endswith("the end")


def test_a_signal_is_told() -> None:
    assert shell("kill -TERM $$").rc == -signal.SIGTERM


def test_tool_that_is_not_there() -> None:
    with pytest.raises(CommandError, match="fastpath-no-such-tool is not installed") as caught:
        command.run(["fastpath-no-such-tool", "--help"], limit_s=1)
    assert (caught.value.rc, caught.value.code) == (None, "tool_absent")
    with pytest.raises(CommandError, match="is not installed"):
        command.spawn(["fastpath-no-such-tool"])
    assert command.find_program("fastpath-no-such-tool") is None


def test_tool_that_cannot_be_run(tmp_path: pathlib.Path) -> None:
    (tmp_path / "tool").write_text("not a program", encoding="utf-8")
    with pytest.raises(CommandError, match="cannot be started: Permission denied") as caught:
        command.run([str(tmp_path / "tool")], limit_s=1)
    assert caught.value.code == "tool_refused"


def test_messages_are_in_one_language(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    monkeypatch.setenv("KEPT", "as it was")
    assert shell('echo "$LC_ALL, $KEPT, $TZ"', env={"TZ": "UTC"}).stdout == "C, as it was, UTC\n"


@pytest.mark.parametrize("path", [None, "", "/opt/own:/usr/bin"])
def test_system_folders_are_searched_last(path: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    if path is None:
        monkeypatch.delenv("PATH")
    else:
        monkeypatch.setenv("PATH", path)
    folders = command.search_path().split(":")
    assert sorted(folders) == sorted(set(command.SYSTEM_PATH.split(":")) | set((path or "").split(":")) - {""})
    assert folders[: len((path or "").split(":"))] == (path.split(":") if path else folders[:1])
    assert shell('echo "$PATH"').stdout.strip() == ":".join(folders)


def test_own_tools_come_first(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = tmp_path / "ls"
    tool.write_text("#!/bin/sh\necho own\n", encoding="utf-8")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert command.find_program("ls") == str(tool)
    assert command.run(["ls"], limit_s=5).stdout == "own\n"


def test_reads_what_it_is_given_and_else_nothing() -> None:
    assert shell("cat", stdin="zwölf \udcff").stdout == "zwölf \ufffd"
    assert shell("cat").stdout == ""
    assert shell("exec <&-; sleep 0.05", stdin="x" * 1_000_000).rc == 0  # one that does not read


def test_bytes_that_are_no_text() -> None:
    assert shell("printf 'a\\377b'").stdout == "a\ufffdb"


def test_ends_at_its_limit_with_all_it_started(tmp_path: pathlib.Path) -> None:
    begun = time.monotonic()
    done = shell(f"echo begun; sleep 60 & echo $! >{tmp_path}/pid; wait", limit_s=0.3)
    assert time.monotonic() - begun < 5
    assert (done.timed_out, done.rc, done.stdout) == (True, -signal.SIGKILL, "begun\n")
    child = int((tmp_path / "pid").read_text(encoding="utf-8"))
    assert until(lambda: gone(child))
    for judge in (done.ended, done.check):
        with pytest.raises(CommandError, match=r"did not end within 0\.3 s") as caught:
            judge()
        assert (caught.value.code, caught.value.stdout) == ("tool_timeout", "begun\n")


def test_a_process_that_left_does_not_hold_the_caller(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "_LAST_WORDS_S", 0.1)
    begun = time.monotonic()
    done = shell(f"echo begun; setsid sh -c 'echo $$ >{tmp_path}/pid; exec sleep 60' & wait", limit_s=0.5)
    try:
        assert time.monotonic() - begun < 5
        assert (done.timed_out, done.stdout) == (True, "begun\n")
    finally:
        os.kill(int((tmp_path / "pid").read_text(encoding="utf-8")), signal.SIGKILL)


def test_ends_with_its_caller(tmp_path: pathlib.Path) -> None:
    class Left(Exception):
        pass

    def leave(*_args: object) -> None:
        raise Left

    before = signal.signal(signal.SIGALRM, leave)
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    try:
        with pytest.raises(Left):
            shell(f"echo $$ >{tmp_path}/pid; exec sleep 60", limit_s=30)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert gone(int((tmp_path / "pid").read_text(encoding="utf-8")))


def test_side_by_side() -> None:
    begun = time.monotonic()
    started = [command.start(["sh", "-c", f"sleep 0.2; echo {number}"]) for number in range(5)]
    assert [command.finish(process, limit_s=5).stdout for process in started] == [f"{n}\n" for n in range(5)]
    assert time.monotonic() - begun < 0.9


def test_background(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "of the caller")
    process = command.spawn(
        ["sh", "-c", f'echo "$PWD, $SECRET, $LC_ALL" >{tmp_path}/new; mv {tmp_path}/new {tmp_path}/said; read x']
    )
    assert process.wait(5) == 1  # there is nothing to read
    assert (tmp_path / "said").read_text(encoding="utf-8") == "/, , C\n"
    process = command.spawn(["sleep", "60"])
    try:
        assert os.getsid(process.pid) == process.pid
        targets = {os.readlink(entry) for entry in pathlib.Path(f"/proc/{process.pid}/fd").iterdir()}
        assert until(lambda: pathlib.Path(f"/proc/{process.pid}/comm").read_text(encoding="utf-8") == "sleep\n")
        assert targets == {"/dev/null"}
    finally:
        command.kill(process)
    assert process.wait(5) == -signal.SIGKILL
    command.kill(process)  # once more does no harm
