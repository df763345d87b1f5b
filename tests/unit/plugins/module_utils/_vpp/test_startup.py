# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What VPP would refuse is refused before the file is written."""

from __future__ import annotations

import dataclasses
import importlib
import os
import pathlib
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._vpp import ready, startup, startup_host
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.errors import VppNoPermission
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.startup import GIB, MIB, HostFacts, Planned, Startup


def host(**changes: object) -> HostFacts:
    facts = HostFacts(
        online=(0, 1, 2, 3),
        allowed=(0, 1, 2, 3),
        memory_bytes=16 * GIB,
        page_bytes=4096,
        default_hugepage_bytes=2 * MIB,
        hugepages={2 * MIB: (2000, 2000), GIB: (0, 0)},
        plugins=frozenset({"linux_cp_plugin.so", "dpdk_plugin.so", "npt66_plugin.so"}),
        groups=frozenset({"vpp"}),
    )
    return dataclasses.replace(facts, **changes)  # type: ignore[arg-type]


def problems(wish: Startup, facts: HostFacts | None = None, planned: Planned | None = None) -> list[tuple[str, str]]:
    return startup.judge(wish, facts or host(), planned).problems


def codes(wish: Startup, facts: HostFacts | None = None, planned: Planned | None = None) -> list[str]:
    return [code for code, _text in problems(wish, facts, planned)]


GOOD = Startup(main_core=0, corelist_workers="1-3", main_heap_size="512M")


def test_a_good_one_has_nothing_against_it():
    judgement = startup.judge(GOOD, host(), Planned(2, 4, 4))
    assert judgement.problems == []
    assert judgement.findings == []


def test_workers_that_the_host_does_not_have_are_named():
    (problem,) = problems(Startup(main_core=0, corelist_workers="3-4"), host(online=(0, 1, 2), allowed=(0, 1, 2)))
    assert problem == ("cpu_absent", "CPUs 3-4 for workers do not exist: this host has CPUs 0-2 online")


def test_main_core_and_workers_must_not_overlap():
    (problem,) = problems(Startup(main_core=2, corelist_workers="2-3"))
    assert problem[0] == "cpus_overlap"
    assert "CPU 2" in problem[1]


def test_cpus_outside_the_set_of_the_service_are_refused():
    facts = host(allowed=(0, 1))
    assert codes(Startup(main_core=0, corelist_workers="1"), facts) == []
    (problem,) = problems(Startup(main_core=0, corelist_workers="1-2"), facts)
    assert problem[0] == "cpu_not_allowed"
    assert "CPUs 0-1" in problem[1]
    assert codes(Startup(main_core=3), facts) == ["cpu_not_allowed"]


def test_by_number_vpp_takes_cpus_that_it_may_not_use():
    """VPP counts the CPUs that are online and looks at no CPU set."""
    (problem,) = problems(Startup(main_core=2, workers=1), host(allowed=(2, 3)))
    assert problem[0] == "cpu_not_allowed"
    assert "corelist_workers instead of workers" in problem[1]


@pytest.mark.parametrize(
    ("wish", "cpus"),
    [
        (Startup(main_core=0, workers=2), (1, 2)),
        (Startup(main_core=1, workers=3), (2, 3, 0)),
        (Startup(main_core=1, workers=4), None),
        (Startup(main_core=2, workers=1, skip_cores=2), (3,)),
        (Startup(main_core=0), ()),
    ],
)
def test_workers_by_number_get_the_cpus_that_vpp_gives_them(wish, cpus):
    assert startup.worker_cpus(wish, host()) == cpus


@pytest.mark.parametrize(
    ("wish", "code"),
    [
        (Startup(main_core=0, workers=2, corelist_workers="1-2"), "workers_twice"),
        (Startup(corelist_workers="1-2"), "main_core_missing"),
        (Startup(skip_cores=1), "main_core_missing"),
        (Startup(main_core=0, workers=4), "too_few_cpus"),
        (Startup(main_core=7), "cpu_absent"),
        (Startup(main_core=0, skip_cores=1), "cpu_skipped"),
        (Startup(main_core=1, skip_cores=4), "too_few_cpus"),
    ],
)
def test_what_vpp_would_end_with_is_refused(wish, code):
    assert code in codes(wish)


def test_a_page_size_that_the_kernel_lacks_is_refused_with_those_it_has():
    facts = host(hugepages={2 * MIB: (10, 10), 512 * MIB: (0, 0)}, page_bytes=65536)
    (problem,) = problems(Startup(main_heap_page_size="1G", buffers_page_size="64K"), facts)
    assert problem[0] == "page_size_absent"
    assert "64K, 2M, 512M" in problem[1]


def test_huge_pages_of_another_size_bring_their_second_option_along():
    facts = host(hugepages={2 * MIB: (0, 0), GIB: (4, 4)})
    wish = Startup(main_heap_size="1G", main_heap_page_size="1G", buffers_page_size="4K")
    assert codes(wish, facts) == []
    assert startup.needs_default_hugepage(wish, facts) == "1G"
    text = startup.render(wish, default_hugepage_size=startup.needs_default_hugepage(wish, facts))
    assert "  main-heap-page-size 1G\n  default-hugepage-size 1G\n" in text
    assert startup.needs_default_hugepage(dataclasses.replace(wish, main_heap_page_size="2M"), facts) is None


def test_two_sizes_of_huge_pages_are_refused():
    facts = host(hugepages={2 * MIB: (2000, 2000), GIB: (4, 4)})
    wish = Startup(main_heap_size="1G", main_heap_page_size="1G", default_hugepage_size="2M", buffers_page_size="4K")
    assert "page_size_conflict" in codes(wish, facts)
    assert "page_size_conflict" in codes(Startup(main_heap_page_size="1G", buffers_page_size="2M"), facts)


def test_free_pages_of_another_size_do_not_help():
    (problem,) = problems(Startup(main_heap_page_size="1G", buffers_page_size="4K"))
    assert problem[0] == "hugepages_short"
    assert "1 huge pages of 1G are needed, 0 of 0 are free" in problem[1]
    assert "2M: 2000 free" in problem[1]


def test_heap_and_buffers_of_one_pool_are_added_up():
    facts = host(hugepages={2 * MIB: (300, 274)})
    wish = Startup(main_heap_size="512M", main_heap_page_size="2M", buffers_page_size="2M", buffers_per_numa=16384)
    (problem,) = problems(wish, facts)
    assert problem[0] == "hugepages_short"
    assert "275 huge pages of 2M are needed, 274 of 300 are free" in problem[1]
    assert codes(wish, host(hugepages={2 * MIB: (300, 275)})) == []


def test_four_interfaces_with_eight_queues_need_more_than_the_default_buffers():
    (finding,) = startup.judge(
        Startup(main_core=0, buffers_page_size="2M"), host(), Planned(4, 8, 8, "hardware")
    ).findings
    assert finding["code"] == "buffers_short"
    assert "4 interfaces with 8 queues" in finding["evidence"]
    assert "65536" in finding["remedy"]


def test_rings_of_af_packet_count_as_memory():
    wish = Startup(main_core=0, main_heap_size="256M")
    facts = host(memory_bytes=GIB, hugepages={}, default_hugepage_bytes=None)
    assert codes(wish, facts) == []
    (problem,) = problems(wish, facts, Planned(4, 4, 4))
    assert problem[0] == "memory_short"
    assert "rings of 4 af_packet interfaces" in problem[1]


def test_small_pages_make_fewer_buffers_than_asked():
    """VPP 26.06 made 11956 of 16384 with pages of 4 KiB."""
    assert 0.7 * 16384 < startup.usable_buffers(Startup(buffers_page_size="4K"), host()) < 0.8 * 16384
    assert startup.usable_buffers(Startup(buffers_page_size="2M"), host()) > 0.99 * 16384


def test_a_buffer_must_fit_a_page():
    assert codes(Startup(buffers_page_size="4K", buffer_data_size=9216)) == ["buffer_over_page"]


@pytest.mark.parametrize(
    "changes",
    [
        {"workers": -1},
        {"skip_cores": -1},
        {"buffers_per_numa": 0},
        {"buffer_data_size": 0},
        {"stats_update_interval_s": 0.0},
        {"poll_sleep_usec": -1},
    ],
)
def test_numbers_that_vpp_ends_with_are_refused(tmp_path, changes):
    startup.check_numbers(GOOD)
    with pytest.raises(startup.StartupRefused, match="too small") as caught:
        startup.check_numbers(dataclasses.replace(GOOD, **changes))
    assert caught.value.where == f"option {next(iter(changes))}"
    with pytest.raises(startup.StartupRefused, match=r"planned\.rx_queues"):
        startup_host.ensure(GOOD, str(tmp_path / "startup.conf"), planned=Planned(2, rx_queues=0), check_mode=True)


def test_a_plugin_is_enabled_and_disabled_by_two_spellings():
    wish = dataclasses.replace(GOOD, plugins_enabled=("linux_cp",), plugins_disabled=("linux_cp_plugin.so",))
    assert "plugin_twice" in {code for code, _text in startup.judge(wish, host(), None).problems}


def test_plugins_must_be_there_and_are_known_by_both_names():
    assert codes(Startup(plugins_enabled=("linux_cp", "npt66_plugin.so"))) == []
    (problem,) = problems(Startup(plugins_enabled=("linux_cp", "nope")))
    assert problem == ("plugin_absent", "this VPP has no plugin nope_plugin.so among its 3 plugins")
    assert codes(Startup(plugins_enabled=("a",), plugins_disabled=("a",)), host(plugins=None)) == ["plugin_twice"]


def test_a_missing_group_is_refused():
    assert codes(Startup(), host(groups=frozenset())) == ["group_absent"]
    assert codes(Startup(group=None), host(groups=frozenset())) == []


@pytest.mark.parametrize("text", ["", "x", "1-", "3-2", "1,1", "1,,2", "99999"])
def test_bad_lists_of_cpus_are_refused(text):
    with pytest.raises(BenchError):
        startup.parse_cpus(text, option="x")


@given(st.sets(st.integers(0, 300), min_size=1))
def test_lists_of_cpus_survive_the_round_trip(cpus):
    assert startup.parse_cpus(startup.format_cpus(cpus), option="x") == tuple(sorted(cpus))


@given(st.text(max_size=12))
def test_any_text_is_a_size_or_refused(text):
    try:
        size = startup.parse_size(text, option="x")
    except BenchError:
        return
    assert size > 0


def test_the_text_has_each_item_on_a_line_of_its_own():
    text = startup.render(dataclasses.replace(GOOD, plugins_default="enable", plugins_disabled=("dpdk",)), head="Ours")
    assert text.startswith("# Ours\nunix {\n  nodaemon\n")
    assert "cpu {\n  main-core 0\n  corelist-workers 1-3\n}\n" in text
    assert "  per-node-counters on\n  update-interval 0.5\n" in text
    assert "plugins {\n  plugin default { enable }\n  plugin dpdk_plugin.so { disable }\n}\n" in text
    assert text.count("{") == text.count("}")


@pytest.mark.parametrize(
    "changes",
    [
        {"log_file": "/a b"},
        {"group": "x}"},
        {"plugins_enabled": ("a { enable }",)},
        {"extra": "a { b"},
        {"extra": "}{"},
    ],
)
def test_words_that_would_make_another_file_are_refused(changes):
    with pytest.raises(BenchError):
        startup.check_words(dataclasses.replace(GOOD, **changes))


@pytest.mark.parametrize(
    ("extra", "option"),
    [
        ("cpu { main-core 1 }", "main_core"),
        ("unix { full-coredump } memory {\n main-heap-size 1G\n}", "main_heap_size"),
        ("plugins { plugin nat_plugin.so { enable } }", "plugins_enabled"),
        ("buffers { default data-size 4096 }", "buffer_data_size"),
    ],
)
def test_a_section_that_says_again_what_has_an_option_is_refused(extra, option):
    with pytest.raises(BenchError) as caught:
        startup.check_words(dataclasses.replace(GOOD, extra=extra))
    assert option in str(caught.value)


def test_sections_and_words_without_an_option_are_taken_as_they_are():
    extra = "unix { full-coredump }\nlogging { default-log-level debug } # cpu { main-core 1 }\n"
    extra += "dpdk { dev 0000:00:01.0 { workers 2 } }"
    startup.check_words(dataclasses.replace(GOOD, extra=extra))
    assert extra in startup.render(dataclasses.replace(GOOD, extra=extra))


# ---------------------------------------------------------------- the host and the file


@pytest.fixture
def fake_root(tmp_path: pathlib.Path) -> pathlib.Path:
    files = {
        "sys/devices/system/cpu/online": "0-3\n",
        "sys/devices/system/cpu/isolated": "\n",
        "sys/devices/system/node/node0/cpulist": "0-3\n",
        "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages": "10\n",
        "sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages": "4\n",
        "proc/meminfo": "MemAvailable:    2048000 kB\nHugepagesize:       2048 kB\n",
        "proc/self/status": "Name:\tx\nCpus_allowed_list:\t0-1\n",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_what_the_host_has_is_read(fake_root):
    facts = startup_host.gather(None, Startup(), "vpp.service", None, str(fake_root))
    assert (facts.online, facts.allowed) == ((0, 1, 2, 3), (0, 1))
    assert facts.memory_bytes == 2048000 * 1024
    assert facts.hugepages == {2 * MIB: (10, 4)}
    assert facts.plugins is None
    running = startup_host.Running(1, 0.0, 100 * MIB, 8 * MIB)
    after = startup_host.gather(None, Startup(), "vpp.service", running, str(fake_root))
    assert after.hugepages == {2 * MIB: (10, 8)}
    assert after.memory_bytes == 2048000 * 1024 + 100 * MIB


def test_the_cpu_set_and_memory_of_the_service_win(fake_root):
    group = fake_root / "sys/fs/cgroup/system.slice/vpp.service"
    group.mkdir(parents=True)
    (group / "cpuset.cpus.effective").write_text("2-3\n")
    (group / "memory.max").write_text(f"{512 * MIB}\n")
    facts = startup_host.gather(None, Startup(), "vpp.service", None, str(fake_root))
    assert facts.allowed == (2, 3)
    assert facts.memory_bytes == 512 * MIB


def test_isolated_cpus_may_be_used_although_no_process_starts_there(fake_root):
    (fake_root / "sys/devices/system/cpu/isolated").write_text("2-3\n")
    assert startup_host.allowed_cpus(str(fake_root), "vpp.service", (0, 1, 2, 3)) == (0, 1, 2, 3)


@pytest.fixture
def program(tmp_path: pathlib.Path) -> str:
    path = tmp_path / "bin" / "vpp"
    path.parent.mkdir()
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return str(path)


def test_written_once_refused_with_the_old_file_kept_and_put_back(tmp_path, program):
    conf, kept = tmp_path / "etc" / "startup.conf", str(tmp_path / "kept")
    conf.parent.mkdir()
    conf.write_text("# the package's own\n")
    wish = Startup(group=None, main_heap_size="128M", buffers_per_numa=1024, buffers_page_size="4K")

    def ensure(wanted: Startup, **options: object) -> startup_host.Result:
        return startup_host.ensure(wanted, str(conf), vpp_bin=program, kept=kept, **options)  # type: ignore[arg-type]

    checked = ensure(wish, check_mode=True)
    assert (checked.changed, checked.restart_needed) == (True, True)
    assert conf.read_text() == "# the package's own\n"
    written = ensure(wish)
    assert written.changed
    assert written.program == program
    assert conf.read_text() == written.after != written.before
    assert os.stat(conf).st_mode & 0o777 == 0o644
    assert not ensure(wish).changed
    with pytest.raises(BenchError, match="The old file is kept"):
        ensure(dataclasses.replace(wish, main_core=4000))
    assert conf.read_text() == written.after
    assert startup_host.restore(str(conf), kept=kept).changed
    assert conf.read_text() == "# the package's own\n"
    assert not startup_host.restore(str(conf), kept=kept).changed


def test_a_file_that_was_not_there_is_taken_away_again(tmp_path, program):
    conf, kept = str(tmp_path / "etc" / "startup.conf"), str(tmp_path / "kept")
    wish = Startup(group=None, main_heap_size="128M", buffers_per_numa=1024, buffers_page_size="4K")
    startup_host.ensure(wish, conf, vpp_bin=program, kept=kept)
    startup_host.restore(conf, kept=kept)
    assert not os.path.exists(conf)


def test_a_folder_that_a_removed_package_left_is_no_papi(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.delitem(sys.modules, "vpp_papi", raising=False)
    assert not startup_host._has_papi()
    (tmp_path / "vpp_papi" / "__pycache__").mkdir(parents=True)
    importlib.invalidate_caches()
    assert not startup_host._has_papi()
    (tmp_path / "vpp_papi" / "__init__.py").write_text("")
    importlib.invalidate_caches()
    assert startup_host._has_papi()


def test_an_older_process_needs_a_restart_and_a_younger_does_not(tmp_path):
    conf = tmp_path / "startup.conf"
    conf.write_text("x")
    age = os.stat(conf).st_mtime
    running = startup_host.Running(1, age - 60, 0, 0)
    assert "newer" in (startup_host._restart(running, str(conf), "x", "x", False) or "")
    assert startup_host._restart(dataclasses.replace(running, started=age + 1), str(conf), "x", "x", False) is None
    assert startup_host._restart(None, str(conf), "x", "x", False) == "VPP does not run"


# ---------------------------------------------------------------- whether it came up


class Unit:
    """A service whose states come one after the other."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, states: list[ready.UnitState], pids: list[int | None]) -> None:
        self.states, self.pids, self.now = states, pids, 0.0
        monkeypatch.setattr(ready, "unit_state", lambda _unit: self._next(self.states))
        monkeypatch.setattr(ready, "_ask", lambda _wish, _timeout: ("26.06", "api", self._next(self.pids)))
        monkeypatch.setattr(ready, "log_tail", lambda _unit, _log: "cpu 3 is not available")
        monkeypatch.setattr(ready.time, "monotonic", lambda: self.now)
        monkeypatch.setattr(ready.time, "sleep", self._sleep)
        monkeypatch.setattr(ready.os.path, "exists", lambda _path: True)

    @staticmethod
    def _next(queue: list) -> object:
        return queue.pop(0) if len(queue) > 1 else queue[0]

    def _sleep(self, seconds: float) -> None:
        self.now += seconds


def up(pid: int = 7, restarts: int = 0) -> ready.UnitState:
    return ready.UnitState("loaded", "active", "running", "success", restarts, pid, f"{pid}00")


def test_up_means_the_same_process_for_a_while(monkeypatch):
    Unit(monkeypatch, [up()], [7])
    result = ready.wait(ready.Wish(stable_s=3.0))
    assert result["version"] == "26.06"
    assert result["stable_s"] >= 3.0


def test_without_a_unit_another_process_starts_the_watch_anew(monkeypatch):
    unit = Unit(monkeypatch, [up()], [7, 8, 8])
    result = ready.wait(ready.Wish(unit=None, stable_s=3.0))
    assert result["pid"] == 8
    assert unit.now >= 6.0


def test_a_crash_loop_is_not_up(monkeypatch):
    states = [up(7 + n, n) for n in range(40)]
    Unit(monkeypatch, states, [7 + n for n in range(40)])
    with pytest.raises(ready.NotUp, match=r"again and again.*cpu 3 is not available") as caught:
        ready.wait(ready.Wish())
    assert caught.value.code == "crash_loop"


def test_a_unit_that_failed_or_is_not_there_is_said_at_once(monkeypatch):
    unit = Unit(monkeypatch, [dataclasses.replace(up(), active="failed", result="exit-code")], [None])
    with pytest.raises(ready.NotUp, match="exit-code"):
        ready.wait(ready.Wish())
    assert unit.now == 0.0
    Unit(monkeypatch, [dataclasses.replace(up(), load="not-found")], [None])
    with pytest.raises(ready.NotUp, match="no unit"):
        ready.wait(ready.Wish())


def test_one_restart_on_the_way_starts_the_watch_anew(monkeypatch):
    unit = Unit(monkeypatch, [up()] * 20 + [up(8, 1)], [7, 8])
    result = ready.wait(ready.Wish(stable_s=3.0))
    assert result["pid"] == 8
    assert unit.now > 4.5


def test_who_may_not_use_the_socket_is_told_soon(monkeypatch):
    unit = Unit(monkeypatch, [up()], [7])

    def denied(_wish, _timeout):
        raise VppNoPermission("user nobody must not", code="vpp_no_permission")

    monkeypatch.setattr(ready, "_ask", denied)
    with pytest.raises(VppNoPermission, match="nobody"):
        ready.wait(ready.Wish())
    assert 1.0 < unit.now < 5.0


@pytest.mark.parametrize(
    ("active", "runs"),
    [("active", True), ("activating", True), ("deactivating", True), ("inactive", False), ("failed", False)],
)
def test_a_vpp_that_answers_nobody_or_is_started_again_and_again_runs(monkeypatch, active, runs):
    monkeypatch.setattr(ready, "unit_state", lambda _unit: dataclasses.replace(up(), active=active))
    assert ready.running("vpp.service") is runs
    assert ready.running(None) is None

    def no_systemd(_unit):
        raise BenchError("no systemd", code="no_systemd")

    monkeypatch.setattr(ready, "unit_state", no_systemd)
    assert ready.running("vpp.service") is None


def test_a_unit_is_read_from_what_systemctl_shows():
    text = "LoadState=loaded\nActiveState=active\nSubState=running\nResult=success\nNRestarts=3\nMainPID=44\n"
    assert ready.parse_unit(text).mark == (3, 44, "")
    assert ready.parse_unit("NRestarts=[not set]\n").restarts == 0
