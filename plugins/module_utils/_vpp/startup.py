# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""VPP's ``startup.conf``: rendered from a description, and judged against the host before it is written.

VPP judges it only while it starts, and then ends; what it would refuse is
refused here while the old file still stands. Pure: what the host has is a
value, gathered by ``startup_host``.
"""

from __future__ import annotations

import dataclasses
import re
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
_UNITS = {"": 1, "K": KIB, "M": MIB, "G": GIB}

#: What VPP takes by itself when startup.conf says nothing.
DEFAULT_HEAP_BYTES = GIB
DEFAULT_BUFFERS = 16384
DEFAULT_DATA_BYTES = 2048
#: VPP's own header before the data of each buffer, with the room that it leaves for alignment.
_BUFFER_HEAD_BYTES = 256
#: With all its plugins VPP 26.06 has 110 MB of its heap in use right after its start.
_SMALLEST_HEAP = 128 * MIB
#: Descriptors of a queue of a network card, each of which holds a buffer.
_DESCRIPTORS = 1024
#: Rings that the kernel allocates for an af_packet interface: 1024 frames of 66 KiB to send, 160 blocks of 64 KiB
#: to receive, for each queue.
AF_PACKET_TX_RING, AF_PACKET_RX_RING = 1024 * 67584, 160 * 65536
#: Memory that must stay for the host itself.
_SPARE = 64 * MIB

_PAGE_WORDS = ("default", "default-hugepage")


class StartupRefused(BenchError):
    """VPP would not start with it, or not as asked."""


def parse_size(text: str, *, option: str) -> int:
    """Bytes of ``512M``, ``1G``, ``65536``."""
    found = re.fullmatch(r"(\d+)\s*([KMG]?)(?:i?B)?", str(text).strip(), re.I)
    if not found or int(found[1]) == 0:
        raise StartupRefused(
            f"{text!r} is no size", where=f"option {option}", remedy="Write 512M, 1G, 65536", code="bad_size"
        )
    return int(found[1]) * _UNITS[found[2].upper()]


def format_size(size: int) -> str:
    for unit, factor in (("G", GIB), ("M", MIB), ("K", KIB)):
        if size % factor == 0:
            return f"{size // factor}{unit}"
    return str(size)


def parse_cpus(text: str, *, option: str) -> tuple[int, ...]:
    """``2-4,6`` as (2, 3, 4, 6)."""
    cpus: list[int] = []
    for part in str(text).split(","):
        found = re.fullmatch(r"\s*(\d+)\s*(?:-\s*(\d+)\s*)?", part)
        last = int(found[2] or found[1]) if found else -1
        if not found or last < int(found[1]) or last > 4095:
            raise StartupRefused(
                f"{text!r} is no list of CPUs", where=f"option {option}", remedy="Write 2-4,6", code="bad_cpu_list"
            )
        cpus.extend(range(int(found[1]), last + 1))
    if len(set(cpus)) != len(cpus):
        raise StartupRefused(f"{text!r} names a CPU twice", where=f"option {option}", code="bad_cpu_list")
    return tuple(sorted(cpus))


def format_cpus(cpus: t.Iterable[int]) -> str:
    """The shortest list: ``0-3,6``."""
    runs: list[list[int]] = []
    for cpu in sorted(set(cpus)):
        if runs and cpu == runs[-1][1] + 1:
            runs[-1][1] = cpu
        else:
            runs.append([cpu, cpu])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in runs)


@dataclasses.dataclass(frozen=True)
class Startup:
    """What startup.conf shall say. None leaves it to VPP."""

    main_core: int | None = None
    workers: int | None = None
    corelist_workers: str | None = None
    skip_cores: int | None = None
    main_heap_size: str | None = None
    main_heap_page_size: str | None = None
    default_hugepage_size: str | None = None
    buffers_per_numa: int | None = None
    buffer_data_size: int | None = None
    buffers_page_size: str | None = None
    statseg_size: str | None = "32M"
    per_node_counters: bool = True
    stats_update_interval_s: float | None = 0.5
    plugins_default: str | None = None
    plugins_enabled: tuple[str, ...] = ()
    plugins_disabled: tuple[str, ...] = ()
    plugin_path: str | None = None
    group: str | None = "vpp"
    log_file: str = "/var/log/vpp/vpp.log"
    runtime_dir: str = "/run/vpp"
    cli_socket: str = "/run/vpp/cli.sock"
    api_socket: str = "/run/vpp/api.sock"
    stats_socket: str = "/run/vpp/stats.sock"
    api_prefix: str | None = None
    startup_script: str | None = None
    poll_sleep_usec: int | None = None
    extra: str = ""


@dataclasses.dataclass(frozen=True)
class Planned:
    """The interfaces that VPP shall have, for what depends on their number."""

    interfaces: int = 0
    rx_queues: int = 1
    tx_queues: int = 1
    kind: str = "af_packet"


@dataclasses.dataclass(frozen=True)
class HostFacts:
    """What bears on a start of VPP. None where the host does not tell.

    ``hugepages``: page size in bytes -> (pages in all, free ones, where those that a running VPP holds count as free).
    """

    online: tuple[int, ...]
    allowed: tuple[int, ...]
    memory_bytes: int | None
    page_bytes: int
    default_hugepage_bytes: int | None
    hugepages: dict[int, tuple[int, int]]
    numa_nodes: int = 1
    plugins: frozenset[str] | None = None
    groups: frozenset[str] | None = None


@dataclasses.dataclass
class Judgement:
    """``problems`` refuse the file, ``findings`` are only told."""

    problems: list[tuple[str, str]] = dataclasses.field(default_factory=list)
    findings: list[dict[str, str]] = dataclasses.field(default_factory=list)

    def refuse(self, code: str, text: str) -> None:
        self.problems.append((code, text))

    def tell(self, code: str, evidence: str, remedy: str, severity: str = "warning") -> None:
        self.findings.append({"code": code, "severity": severity, "evidence": evidence, "remedy": remedy})

    def raise_problems(self, where: str) -> None:
        if self.problems:
            raise StartupRefused(
                "; ".join(text for _code, text in self.problems),
                where=where,
                remedy="The old file is kept",
                code=self.problems[0][0],
            )


def judge(startup: Startup, host: HostFacts, planned: Planned | None = None) -> Judgement:
    """All that speaks against this startup.conf on this host."""
    judgement = Judgement()
    _judge_cpus(startup, host, judgement)
    _judge_memory(startup, host, planned or Planned(), judgement)
    _judge_buffers(startup, host, planned or Planned(), judgement)
    _judge_plugins(startup, host, judgement)
    if startup.group and host.groups is not None and startup.group not in host.groups:
        judgement.refuse("group_absent", f"there is no group {startup.group} on this host, and VPP would not start")
    return judgement


# ---------------------------------------------------------------- CPUs


def worker_cpus(startup: Startup, host: HostFacts) -> tuple[int, ...] | None:
    """The CPUs that VPP gives its workers; None when it has too few.

    With ``workers`` VPP takes the first CPUs that are online, CPU 0 last, whether the process may use them or not.
    """
    if startup.corelist_workers:
        return parse_cpus(startup.corelist_workers, option="corelist_workers")
    free = list(host.online[startup.skip_cores or 0 :])
    if startup.main_core in free:
        free.remove(startup.main_core)
    order = [cpu for cpu in free if cpu != 0] + [cpu for cpu in free if cpu == 0]
    count = startup.workers or 0
    return tuple(order[:count]) if count <= len(order) else None


def _judge_cpus(startup: Startup, host: HostFacts, judgement: Judgement) -> None:
    online, allowed = set(host.online), set(host.allowed)
    has = f"this host has CPUs {format_cpus(online)} online"
    may = f"VPP may use CPUs {format_cpus(online & allowed)}"
    if startup.workers and startup.corelist_workers:
        judgement.refuse(
            "workers_twice", "workers and corelist_workers are two spellings of one setting: give one of them"
        )
        return
    if startup.corelist_workers and startup.main_core is None:
        judgement.refuse("main_core_missing", "corelist_workers needs main_core")
    if startup.skip_cores and startup.main_core is None:
        judgement.refuse("main_core_missing", "skip_cores needs main_core")
    if startup.skip_cores and startup.skip_cores >= len(online):
        judgement.refuse("too_few_cpus", f"skip_cores {startup.skip_cores} skips all CPUs: {has}")
        return
    skipped = set(host.online[: startup.skip_cores or 0])
    main = startup.main_core
    if main is not None:
        if main not in online:
            judgement.refuse("cpu_absent", f"main_core {main} does not exist: {has}")
        elif main not in allowed:
            judgement.refuse("cpu_not_allowed", f"main_core {main} is not in the CPU set of the service: {may}")
        elif main in skipped:
            judgement.refuse("cpu_skipped", f"main_core {main} is among the CPUs that skip_cores skips")
    chosen = worker_cpus(startup, host)
    if chosen is None:
        rest = len(online) - len(skipped) - (1 if main is not None and main not in skipped else 0)
        judgement.refuse("too_few_cpus", f"{startup.workers} workers are asked for and {rest} CPUs are left: {has}")
        return
    _judge_worker_list(startup, chosen, (online, allowed, skipped), (has, may), judgement)
    if main is None and host.allowed != host.online:
        judgement.tell(
            "main_core_open", f"main_core is not set, and {may}", "Set main_core and corelist_workers: VPP pins threads"
        )


def _judge_worker_list(
    startup: Startup,
    chosen: tuple[int, ...],
    sets: tuple[set[int], set[int], set[int]],
    texts: tuple[str, str],
    judgement: Judgement,
) -> None:
    online, allowed, skipped = sets
    has, may = texts
    if startup.main_core in chosen:
        judgement.refuse(
            "cpus_overlap",
            f"CPU {startup.main_core} is main_core and in corelist_workers {startup.corelist_workers}: "
            "each thread needs a CPU of its own",
        )
    absent = [cpu for cpu in chosen if cpu not in online]
    if absent:
        judgement.refuse("cpu_absent", f"CPUs {format_cpus(absent)} for workers do not exist: {has}")
    barred = [cpu for cpu in chosen if cpu in online and cpu not in allowed]
    if barred:
        hint = "" if startup.corelist_workers else "; name the CPUs with corelist_workers instead of workers"
        judgement.refuse(
            "cpu_not_allowed",
            f"CPUs {format_cpus(barred)} for workers are not in the CPU set of the service: {may}{hint}",
        )
    passed = [cpu for cpu in chosen if cpu in skipped]
    if passed:
        judgement.refuse("cpu_skipped", f"CPUs {format_cpus(passed)} for workers are among those that skip_cores skips")


# ---------------------------------------------------------------- memory


def page_bytes(text: str, host: HostFacts, *, option: str) -> int:
    """The size of a page that is named by its size or by one of VPP's words."""
    if text == "default":
        return host.page_bytes
    if text == "default-hugepage":
        if host.default_hugepage_bytes is None:
            raise StartupRefused("this kernel has no huge pages", where=f"option {option}", code="page_size_absent")
        return host.default_hugepage_bytes
    return parse_size(text, option=option)


def _asked_page(text: str | None, host: HostFacts, judgement: Judgement, option: str) -> int | None:
    """The page size of an option, refused when the kernel has no pages of it."""
    if text is None:
        return None
    size = page_bytes(text, host, option=option)
    if size == host.page_bytes or size in host.hugepages:
        return size
    there = ", ".join(format_size(known) for known in [host.page_bytes, *sorted(host.hugepages)])
    judgement.refuse("page_size_absent", f"{option} {text}: this kernel has pages of {there}")
    return None


def needs_default_hugepage(startup: Startup, host: HostFacts) -> str | None:
    """VPP takes huge pages of another size than the kernel's default only when that is named too."""
    if startup.default_hugepage_size:
        return startup.default_hugepage_size
    for text, option in (
        (startup.main_heap_page_size, "main_heap_page_size"),
        (startup.buffers_page_size, "buffers_page_size"),
    ):
        if text is None or text in _PAGE_WORDS:
            continue
        size = page_bytes(text, host, option=option)
        if size != host.page_bytes and size in host.hugepages and size != host.default_hugepage_bytes:
            return text
    return None


def _judge_memory(startup: Startup, host: HostFacts, planned: Planned, judgement: Judgement) -> None:
    heap_page = _asked_page(startup.main_heap_page_size, host, judgement, "main_heap_page_size")
    buffer_page = _asked_page(startup.buffers_page_size, host, judgement, "buffers_page_size")
    if startup.default_hugepage_size:
        named = _asked_page(startup.default_hugepage_size, host, judgement, "default_hugepage_size")
        for option, page in (("main_heap_page_size", heap_page), ("buffers_page_size", buffer_page)):
            if named and page and page not in (host.page_bytes, named):
                judgement.refuse(
                    "page_size_conflict",
                    f"{option} {format_size(page)} and default_hugepage_size {format_size(named)} are two sizes of "
                    "huge pages: VPP takes one",
                )
    huge = {page for page in (heap_page, buffer_page) if page and page != host.page_bytes}
    if len(huge) > 1:
        sizes = " and ".join(format_size(page) for page in sorted(huge))
        judgement.refuse("page_size_conflict", f"heap and buffers ask for huge pages of {sizes}: VPP takes one size")
    heap = parse_size(startup.main_heap_size, option="main_heap_size") if startup.main_heap_size else DEFAULT_HEAP_BYTES
    if heap < _SMALLEST_HEAP:
        judgement.refuse(
            "heap_small", f"main_heap_size {startup.main_heap_size} is too small to start, 128M is the least"
        )
    needs: list[tuple[str, int, int | None]] = [
        ("heap", heap, heap_page or host.page_bytes),
        ("buffers", buffer_bytes(startup, host, buffer_page), buffer_page),
    ]
    _judge_pools(needs, host, judgement)
    statseg = parse_size(startup.statseg_size, option="statseg_size") if startup.statseg_size else 32 * MIB
    plain = [(what, size) for what, size, page in needs if page in (None, host.page_bytes)]
    plain.append(("statistics", statseg))
    if planned.interfaces and planned.kind == "af_packet":
        rings = planned.tx_queues * AF_PACKET_TX_RING + planned.rx_queues * AF_PACKET_RX_RING
        plain.append((f"rings of {planned.interfaces} af_packet interfaces", planned.interfaces * rings))
    total = sum(size for _what, size in plain)
    if host.memory_bytes is not None and total + _SPARE > host.memory_bytes:
        parts = ", ".join(f"{what} {size // MIB} MiB" for what, size in plain)
        judgement.refuse(
            "memory_short",
            f"VPP would need {total // MIB} MiB ({parts}) and {host.memory_bytes // MIB} MiB are available",
        )


def buffer_slot_bytes(startup: Startup) -> int:
    """The room that one buffer takes."""
    return (startup.buffer_data_size or DEFAULT_DATA_BYTES) + _BUFFER_HEAD_BYTES


def buffer_bytes(startup: Startup, host: HostFacts, page: int | None) -> int:
    """Memory for the buffers of all NUMA nodes: a buffer never crosses a page."""
    page = page or host.default_hugepage_bytes or host.page_bytes
    per_page = max(1, page // buffer_slot_bytes(startup))
    pages = -(-(startup.buffers_per_numa or DEFAULT_BUFFERS) // per_page)
    return pages * page * host.numa_nodes


def _judge_pools(needs: list[tuple[str, int, int | None]], host: HostFacts, judgement: Judgement) -> None:
    """Each size of huge pages is a pool of its own: free pages of another size do not help."""
    wanted: dict[int, int] = {}
    for _what, size, page in needs:
        if page is not None and page != host.page_bytes and page in host.hugepages:
            wanted[page] = wanted.get(page, 0) + -(-size // page)
    for page, count in sorted(wanted.items()):
        total, free = host.hugepages[page]
        if count > free:
            others = ", ".join(
                f"{format_size(size)}: {pool[1]} free" for size, pool in sorted(host.hugepages.items()) if size != page
            )
            judgement.refuse(
                "hugepages_short",
                f"{count} huge pages of {format_size(page)} are needed, {free} of {total} are free"
                + (f" (other pools do not help: {others})" if others else ""),
            )


def usable_buffers(startup: Startup, host: HostFacts) -> int:
    """About how many buffers VPP makes of what is asked for.

    It lays them one after the other and leaves out those that would cross a page, which costs a part of them when a
    page holds hardly more than one.
    """
    asked = startup.buffers_per_numa or DEFAULT_BUFFERS
    page = host.page_bytes
    if startup.buffers_page_size:
        page = page_bytes(startup.buffers_page_size, host, option="buffers_page_size")
    elif host.default_hugepage_bytes and host.hugepages.get(host.default_hugepage_bytes, (0, 0))[1]:
        page = host.default_hugepage_bytes
    slot = buffer_slot_bytes(startup)
    per_page = max(1, page // slot)
    return min(asked, int(-(-asked // per_page) * page / slot * max(0.0, (page - slot) / page)))


def _judge_buffers(startup: Startup, host: HostFacts, planned: Planned, judgement: Judgement) -> None:
    slot = buffer_slot_bytes(startup)
    if startup.buffers_page_size:
        page = page_bytes(startup.buffers_page_size, host, option="buffers_page_size")
        if slot > page:
            judgement.refuse(
                "buffer_over_page", f"a buffer of {slot} bytes is larger than a page of {format_size(page)}"
            )
            return
    usable = usable_buffers(startup, host)
    asked = startup.buffers_per_numa or DEFAULT_BUFFERS
    if usable < 0.9 * asked:
        judgement.tell(
            "buffers_fewer",
            f"of {asked} buffers VPP will make about {usable}: a page of this size holds one or two",
            "Use huge pages for the buffers, or ask for more of them",
            "info",
        )
    if planned.interfaces:
        queues = planned.interfaces * max(planned.rx_queues, planned.tx_queues)
        need = queues * _DESCRIPTORS
        if need > usable:
            judgement.tell(
                "buffers_short",
                f"{planned.interfaces} interfaces with {queues // planned.interfaces} queues may hold {need} buffers "
                f"at once, and there are about {usable} for each NUMA node",
                f"Set buffers_per_numa to {_next_power(need * 2)}, or use fewer queues",
            )


def _next_power(number: int) -> int:
    return 1 << (number - 1).bit_length()


def _judge_plugins(startup: Startup, host: HostFacts, judgement: Judgement) -> None:
    both = sorted(set(map(plugin_file, startup.plugins_enabled)) & set(map(plugin_file, startup.plugins_disabled)))
    if both:
        judgement.refuse("plugin_twice", f"{', '.join(both)}: enabled and disabled")
    if host.plugins is None:
        if startup.plugins_enabled:
            judgement.tell("plugins_unseen", "the folder of VPP's plugins was not found", "Give plugin_path")
        return
    missing = sorted(set(map(plugin_file, startup.plugins_enabled)) - host.plugins)
    if missing:
        judgement.refuse(
            "plugin_absent", f"this VPP has no plugin {', '.join(missing)} among its {len(host.plugins)} plugins"
        )


def plugin_file(name: str) -> str:
    """``linux_cp`` and ``linux_cp_plugin.so`` are the same."""
    if name.endswith(".so"):
        return name
    return name + ".so" if name.endswith("_plugin") else name + "_plugin.so"


# ---------------------------------------------------------------- the text


def render(startup: Startup, *, default_hugepage_size: str | None = None, head: str = "") -> str:
    """The text of startup.conf, each item on a line of its own."""
    sections: list[tuple[str, list[str]]] = [
        (
            "unix",
            [
                "nodaemon",
                f"log {startup.log_file}",
                f"runtime-dir {startup.runtime_dir}",
                f"cli-listen {startup.cli_socket}",
                *_item("gid", startup.group),
                *_item("startup-config", startup.startup_script),
                *_item("poll-sleep-usec", startup.poll_sleep_usec),
            ],
        ),
        ("api-trace", ["on"]),
        ("api-segment", [*_item("gid", startup.group), *_item("prefix", startup.api_prefix)]),
        ("socksvr", [f"socket-name {startup.api_socket}"]),
        (
            "statseg",
            [
                f"socket-name {startup.stats_socket}",
                *_item("size", startup.statseg_size),
                f"per-node-counters {'on' if startup.per_node_counters else 'off'}",
                *_item("update-interval", startup.stats_update_interval_s),
            ],
        ),
        (
            "cpu",
            [
                *_item("main-core", startup.main_core),
                *_item("skip-cores", startup.skip_cores),
                *_item("workers", startup.workers),
                *_item("corelist-workers", startup.corelist_workers),
            ],
        ),
        (
            "memory",
            [
                *_item("main-heap-size", startup.main_heap_size),
                *_item("main-heap-page-size", startup.main_heap_page_size),
                *_item("default-hugepage-size", default_hugepage_size or startup.default_hugepage_size),
            ],
        ),
        (
            "buffers",
            [
                *_item("buffers-per-numa", startup.buffers_per_numa),
                *_item("default data-size", startup.buffer_data_size),
                *_item("page-size", startup.buffers_page_size),
            ],
        ),
        ("plugins", _plugin_lines(startup)),
    ]
    lines = [f"# {line}" for line in head.splitlines()]
    for name, items in sections:
        if items:
            lines += [f"{name} {{", *(f"  {item}" for item in items), "}"]
    if startup.extra.strip():
        lines += [startup.extra.strip()]
    return "\n".join(lines) + "\n"


def _item(word: str, value: t.Any) -> list[str]:
    if value is None:
        return []
    return [f"{word} {value:g}" if isinstance(value, float) else f"{word} {value}"]


def _plugin_lines(startup: Startup) -> list[str]:
    lines = _item("path", startup.plugin_path)
    if startup.plugins_default:
        lines.append(f"plugin default {{ {startup.plugins_default} }}")
    lines += [f"plugin {plugin_file(name)} {{ enable }}" for name in startup.plugins_enabled]
    lines += [f"plugin {plugin_file(name)} {{ disable }}" for name in startup.plugins_disabled]
    return lines


def check_words(startup: Startup) -> None:
    """A value that ends its section or line would make another file of it."""
    for field in dataclasses.fields(startup):
        value = getattr(startup, field.name)
        if field.name == "extra":
            _check_braces(value)
            _check_own(value)
            continue
        for word in value if isinstance(value, tuple) else (value,):
            if isinstance(word, str) and (not word or re.search(r"[\s{}#]", word)):
                raise StartupRefused(
                    f"{word!r} holds a blank, a brace or a comment sign, or is empty",
                    where=f"option {field.name}",
                    code="bad_option",
                )


#: The least that a number can be. VPP ends at its start with less, or takes it for none given.
_LEAST = {
    "workers": 0,
    "skip_cores": 0,
    "buffers_per_numa": 1,
    "buffer_data_size": 128,
    "stats_update_interval_s": 0.001,
    "poll_sleep_usec": 0,
    "interfaces": 0,
    "rx_queues": 1,
    "tx_queues": 1,
}


def check_numbers(wish: Startup | Planned) -> None:
    for field in dataclasses.fields(wish):
        value, least = getattr(wish, field.name), _LEAST.get(field.name)
        if least is not None and value is not None and value < least:
            raise StartupRefused(
                f"{value} is too small",
                where=f"option {'planned.' if isinstance(wish, Planned) else ''}{field.name}",
                remedy=f"Give {least} or more",
                code="bad_option",
            )


#: What has an option of its own, by section and word. VPP reads two sections of one name as one and takes the later
#: word, so that a second one in ``extra`` would go past the checks.
_OWN: t.Final[dict[str, dict[str, str]]] = {
    "unix": {
        "cli-listen": "cli_socket",
        "gid": "group",
        "startup-config": "startup_script",
        "exec": "startup_script",
        "poll-sleep-usec": "poll_sleep_usec",
    },
    "api-segment": {"gid": "group", "prefix": "api_prefix"},
    "socksvr": {"socket-name": "api_socket", "default": "api_socket"},
    "statseg": {
        "socket-name": "stats_socket",
        "default": "stats_socket",
        "size": "statseg_size",
        "per-node-counters": "per_node_counters",
        "update-interval": "stats_update_interval_s",
    },
    "cpu": {
        "main-core": "main_core",
        "skip-cores": "skip_cores",
        "workers": "workers",
        "corelist-workers": "corelist_workers",
    },
    "memory": {
        "main-heap-size": "main_heap_size",
        "main-heap-page-size": "main_heap_page_size",
        "default-hugepage-size": "default_hugepage_size",
    },
    "buffers": {
        "buffers-per-numa": "buffers_per_numa",
        "data-size": "buffer_data_size",
        "page-size": "buffers_page_size",
    },
    "plugins": {"path": "plugin_path", "plugin": "plugins_enabled or plugins_disabled"},
}


def _check_own(text: str) -> None:
    path: list[str] = []
    word = ""
    for sign in re.findall(r"[{}]|[^\s{}]+", re.sub(r"#.*", "", text)):
        if sign == "{":
            path.append(word)
        elif sign == "}":
            path.pop()
        else:
            word = sign
            option = _OWN.get(path[0], {}).get(word) if len(path) == 1 else None
            if option is not None:
                raise StartupRefused(
                    f"{word} in the section {path[0]} has an option of its own, which is checked",
                    where="option extra",
                    remedy=f"Give {option}",
                    code="bad_option",
                )


def _check_braces(text: str) -> None:
    depth = 0
    for sign in re.sub(r"#.*", "", text):
        depth += {"{": 1, "}": -1}.get(sign, 0)
        if depth < 0:
            break
    if depth:
        raise StartupRefused("its braces do not match", where="option extra", code="bad_option")
