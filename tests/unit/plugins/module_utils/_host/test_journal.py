# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import errno
import json
import multiprocessing
import os
import stat
import time

import pytest

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._host.access import NotThere
from ansible_collections.fastpath.bench.plugins.module_utils._host.journal import Journal, Surroundings
from ansible_collections.fastpath.bench.plugins.module_utils._host.knob import ABSENT, make
from ansible_collections.fastpath.bench.plugins.module_utils._host.reconcile import Wish, reconcile
from ansible_collections.fastpath.bench.plugins.module_utils._host.restore import restore
from ansible_collections.fastpath.bench.tests.unit.fake_kernel import FakeKernel

HERE = Surroundings("boot-1", "cookie:1")
POLICY = "net/ipv4/fib_multipath_hash_policy"


def journal(folder, owner="run", **more):
    return Journal(str(folder), owner=owner, surroundings=more.pop("surroundings", HERE), **more)


def wish(kernel, kind="sysctl", key=POLICY, value=1):
    return [Wish(make(kernel, kind, key), value)]


def test_the_first_note_stays(tmp_path):
    kernel = FakeKernel()
    for value in (1, 2, 1):
        reconcile(wish(kernel, value=value), journal(tmp_path))
    book = journal(tmp_path)
    book.load()
    (entry,) = book.entries()
    assert (entry.found, entry.applied, entry.state, entry.owner) == ("0", "1", "applied", "run")
    assert restore(book, kernel).as_result()["restored"][0]["after"] == {"value": "0"}
    assert kernel.params[POLICY] == "0"


def test_absent_empty_and_zero_are_three_things(tmp_path):
    kernel = FakeKernel()
    kernel.params["net/ipv4/reserved"] = ""
    kernel.net["eth1"].addresses = []
    route = Wish(make(kernel, "route", "4 main 10.9.0.0/24 0"), {"via": None, "dev": "eth1"})
    reserved = Wish(make(kernel, "sysctl", "net/ipv4/reserved"), "80")
    reconcile([route, reserved, *wish(kernel)], journal(tmp_path))
    stored = {e["kind"] + e["key"]: e["found"] for e in json.loads((tmp_path / "journal.json").read_text())["entries"]}
    assert stored["route4 main 10.9.0.0/24 0"] == {"absent": True}
    assert stored["sysctlnet/ipv4/reserved"] == {"value": ""}
    assert stored["sysctl" + POLICY] == {"value": "0"}
    restore(journal(tmp_path), kernel)
    assert (kernel.params["net/ipv4/reserved"], kernel.params[POLICY], kernel.table) == ("", "0", [])


def test_check_mode_writes_nothing_at_all(tmp_path):
    kernel = FakeKernel()
    folder = tmp_path / "journal"
    assert reconcile(wish(kernel), journal(folder), check_mode=True).changed
    assert kernel.params[POLICY] == "0"
    assert not folder.exists()
    assert restore(journal(folder), kernel, check_mode=True).changes == []
    assert restore(journal(folder), kernel).changes == []
    assert not folder.exists()


def test_the_file_is_for_root_alone(tmp_path):
    reconcile(wish(FakeKernel()), journal(tmp_path / "j"))
    assert stat.S_IMODE((tmp_path / "j" / "journal.json").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "j").stat().st_mode) == 0o700


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_stops_before_anything_is_changed(tmp_path, monkeypatch, number):
    kernel = FakeKernel()
    reconcile(wish(kernel), journal(tmp_path))
    text = (tmp_path / "journal.json").read_text()

    def full(handle):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(BenchError) as told:
        reconcile(wish(kernel, "link.mtu", "eth1", 1400), journal(tmp_path))
    assert told.value.code == "journal_disk_full"
    assert kernel.net["eth1"].mtu == 1500
    assert (tmp_path / "journal.json").read_text() == text
    assert not (tmp_path / "journal.json.new").exists()


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ('{"schema": 2, "entries": []}', "journal_schema"),
        ("[]", "journal_schema"),
        ("{", "journal_unreadable"),
        ("", "journal_unreadable"),
        ('{"schema": 1, "claim": null, "next": 1, "entries": [{"kind": "sysctl"}]}', "journal_unreadable"),
        ('{"schema": 1, "claim": 5, "next": 1, "entries": []}', "journal_unreadable"),
    ],
)
def test_a_journal_that_cannot_be_understood_is_not_overwritten(tmp_path, text, code):
    (tmp_path / "journal.json").write_text(text)
    kernel = FakeKernel()
    for act in (lambda: reconcile(wish(kernel), journal(tmp_path)), lambda: restore(journal(tmp_path), kernel)):
        with pytest.raises(BenchError) as told:
            act()
        assert told.value.code == code
    assert kernel.params[POLICY] == "0"
    assert (tmp_path / "journal.json").read_text() == text


def test_a_second_run_is_refused_until_the_restore(tmp_path):
    kernel = FakeKernel()
    reconcile(wish(kernel), journal(tmp_path, "first"))
    for check_mode in (True, False):
        with pytest.raises(BenchError, match=r"in use by first, since \d+ s") as told:
            reconcile(wish(kernel, value=2), journal(tmp_path, "second"), check_mode=check_mode)
        assert told.value.code == "host_in_use"
    with pytest.raises(BenchError, match="in use by first"):
        restore(journal(tmp_path, "second"), kernel)
    restore(journal(tmp_path, "second"), kernel, take_over=True)
    assert kernel.params[POLICY] == "0"
    assert reconcile(wish(kernel, value=2), journal(tmp_path, "second")).changed


def test_a_run_that_holds_a_host_has_it_between_its_set_ups_too(tmp_path):
    kernel = FakeKernel()
    assert not restore(journal(tmp_path, "first"), kernel, hold=True).changes
    reconcile(wish(kernel), journal(tmp_path, "first"))
    restore(journal(tmp_path, "first"), kernel, part="x")
    restore(journal(tmp_path, "first"), kernel, hold=True)
    assert kernel.params[POLICY] == "0"
    with pytest.raises(BenchError, match="in use by first"):
        reconcile(wish(kernel, value=2), journal(tmp_path, "second"))
    with pytest.raises(BenchError, match="in use by first"):
        restore(journal(tmp_path, "second"), kernel, hold=True)
    with pytest.raises(BenchError, match="in use by first"):
        restore(journal(tmp_path, "second"), kernel)
    restarted = journal(tmp_path, "second", surroundings=Surroundings("boot-2", "cookie:1"))
    assert reconcile(wish(kernel, value=2), restarted, check_mode=True).changed
    restore(journal(tmp_path, "first"), kernel)
    assert reconcile(wish(kernel, value=2), journal(tmp_path, "second")).changed


def test_taking_a_host_and_letting_it_go_changes_nothing_on_it(tmp_path):
    kernel = FakeKernel()
    reconcile(wish(kernel), journal(tmp_path, "dead"))
    assert restore(journal(tmp_path, "next"), kernel, hold=True, only_hold=True, take_over=True).remaining == 1
    assert kernel.params[POLICY] == "1"
    with pytest.raises(BenchError, match="in use by next"):
        restore(journal(tmp_path, "dead"), kernel, hold=True, only_hold=True)
    restore(journal(tmp_path, "next"), kernel, only_hold=True)
    restore(journal(tmp_path, "third"), kernel)
    assert kernel.params[POLICY] == "0"


def test_a_held_host_is_let_go_by_whoever_takes_it_over(tmp_path):
    kernel = FakeKernel()
    restore(journal(tmp_path, "dead"), kernel, hold=True)
    restore(journal(tmp_path, ""), kernel, take_over=True)
    assert reconcile(wish(kernel), journal(tmp_path, "next")).changed


def _hold(folder, ready, release):
    with journal(folder, "holder").locked():
        ready.set()
        release.wait(20)


def test_two_calls_at_once_and_a_lock_whose_process_was_killed(tmp_path):
    spawn = multiprocessing.get_context("fork")
    ready, release = spawn.Event(), spawn.Event()
    process = spawn.Process(target=_hold, args=(tmp_path, ready, release))
    process.start()
    assert ready.wait(10)
    kernel = FakeKernel()
    with pytest.raises(BenchError, match=rf"owner holder, process {process.pid}, for \d+ s") as told:
        reconcile(wish(kernel), journal(tmp_path, lock_wait_s=0.1))
    assert told.value.code == "host_locked"
    process.kill()
    process.join(10)
    assert reconcile(wish(kernel), journal(tmp_path, lock_wait_s=0.1)).changed


def test_running_state_of_another_boot_or_namespace_is_void(tmp_path):
    kernel = FakeKernel()
    reconcile(wish(kernel, "link.mtu", "eth1", 1400), journal(tmp_path, "old"))
    for other in (Surroundings("boot-2", "cookie:1"), Surroundings("boot-1", "cookie:2")):
        text = (tmp_path / "journal.json").read_text()
        fresh = FakeKernel()
        # The claim of the dead run holds nothing: another run may go on.
        reconcile(wish(fresh), journal(tmp_path, "new", surroundings=other))
        result = restore(journal(tmp_path, "new", surroundings=other), fresh)
        assert fresh.picture() == FakeKernel().picture() | {"params": fresh.params}
        assert result.changes
        (tmp_path / "journal.json").write_text(text)
        result = restore(journal(tmp_path, "new", surroundings=other), fresh)
        assert [finding["code"] for finding in result.findings] == ["journal_void"]
        (tmp_path / "journal.json").write_text(text)


def test_an_interface_made_anew_is_another(tmp_path):
    kernel = FakeKernel()
    reconcile(wish(kernel, "link.mtu", "eth1", 1400), journal(tmp_path))
    kernel.net["eth1"].index = 99
    kernel.net["eth1"].mtu = 9000
    result = restore(journal(tmp_path), kernel)
    assert (result.changes, result.conflicts, kernel.net["eth1"].mtu) == ([], [], 9000)
    assert "made anew" in result.findings[0]["evidence"]


def test_what_someone_else_changed_is_reported_and_left(tmp_path):
    kernel = FakeKernel()
    reconcile([*wish(kernel), *wish(kernel, "link.mtu", "eth1", 1400)], journal(tmp_path))
    kernel.params[POLICY] = "3"
    for _n in range(2):
        result = restore(journal(tmp_path), kernel).as_result()
        assert [(c["key"], c["now"]) for c in result["conflicts"]] == [(POLICY, {"value": "3"})]
        assert not result["complete"]
    assert (kernel.params[POLICY], kernel.net["eth1"].mtu) == ("3", 1500)
    # A new run starts from what it finds.
    second = reconcile(wish(kernel), journal(tmp_path, "next"))
    assert "someone else changed it" in second.findings[0]["evidence"]
    restore(journal(tmp_path, "next"), kernel)
    assert kernel.params[POLICY] == "3"


def test_force_overwrites_what_someone_else_changed(tmp_path):
    kernel = FakeKernel()
    reconcile(wish(kernel), journal(tmp_path))
    kernel.params[POLICY] = "3"
    assert restore(journal(tmp_path), kernel, force=True).remaining == 0
    assert kernel.params[POLICY] == "0"


def test_what_cannot_be_restored_stays_and_is_told(tmp_path):
    kernel = FakeKernel()
    reconcile([*wish(kernel), *wish(kernel, "link.mtu", "eth1", 1400)], journal(tmp_path))
    kernel.read_only.add(POLICY)
    with pytest.raises(BenchError, match=POLICY) as told:
        restore(journal(tmp_path), kernel)
    assert told.value.code == "not_restored"
    assert kernel.net["eth1"].mtu == 1500
    kernel.read_only.clear()
    assert restore(journal(tmp_path), kernel).remaining == 0
    assert kernel.params[POLICY] == "0"


def test_a_kind_of_a_newer_version_is_named(tmp_path):
    kernel = FakeKernel()
    reconcile(wish(kernel), journal(tmp_path))
    path = tmp_path / "journal.json"
    path.write_text(path.read_text().replace('"kind": "sysctl"', '"kind": "flux"'))
    with pytest.raises(BenchError, match="unknown kind 'flux'"):
        restore(journal(tmp_path), kernel)


def test_parts_are_put_back_alone(tmp_path):
    kernel = FakeKernel()
    reconcile([*wish(kernel, "link.mtu", "eth1", 1400), *wish(kernel)], journal(tmp_path, part="topology"))
    both = [*wish(kernel, value=2), *wish(kernel, "link.txqueuelen", "eth1", 5000)]
    reconcile(both, journal(tmp_path, part="router"))
    result = restore(journal(tmp_path), kernel, part="router")
    assert [finding["code"] for finding in result.findings] == ["shared_setting"]
    assert (kernel.net["eth1"].txqlen, kernel.net["eth1"].mtu, kernel.params[POLICY]) == (1000, 1400, "2")
    restore(journal(tmp_path), kernel, part="topology")
    assert (kernel.net["eth1"].mtu, kernel.params[POLICY]) == (1500, "0")


def test_an_entry_survives_the_absent_mark():
    assert repr(ABSENT) == "ABSENT"
    assert type(ABSENT)() is ABSENT


def test_notes_are_one_write_for_one_call(tmp_path, monkeypatch):
    """A call over 64 queues flushes the journal twice, not 64 times."""
    kernel = FakeKernel(queues=64)
    calls = []
    real = os.fsync
    monkeypatch.setattr(os, "fsync", lambda handle: (calls.append(handle), real(handle)))
    begin = time.monotonic()
    reconcile(
        [Wish(make(kernel, "queue.rps", f"eth1/rx-{queue}"), frozenset({1})) for queue in range(64)], journal(tmp_path)
    )
    assert len(calls) == 4  # the file and the folder, before and after
    assert time.monotonic() - begin < 2


def test_missing_interface_names_those_that_are(tmp_path):
    with pytest.raises(NotThere, match="Interfaces that exist here: eth1, eth2"):
        reconcile(wish(FakeKernel(), "link.mtu", "eth9", 1400), journal(tmp_path))
