# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host is, and how it is set: all that a measurement on it depends on.

Two parts have a digest each. ``identity`` is hardware and software; ``state``
is what this collection changes and must put back, so that "as before" is a
comparison of two words. What changes by itself (boot, lifetimes, counters) is
in neither digest. Secrets are never read; the kernel's command line, which can
hold some, is shown without them.
"""

from __future__ import annotations

import dataclasses
import glob
import hashlib
import json
import os
import platform
import re
import sys
import time
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common import command
from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError, ParseError
from ansible_collections.fastpath.bench.plugins.module_utils._host import nicinfo
from ansible_collections.fastpath.bench.plugins.module_utils._host.procfs import parse_cpu_list

SCHEMA = 1

#: The sysctls of the state part. A ``*`` stands for each interface (and ``all`` and ``default``).
SYSCTLS = (
    "kernel.numa_balancing",
    "kernel.nmi_watchdog",
    "kernel.sched_rt_runtime_us",
    "kernel.timer_migration",
    "net.core.bpf_jit_enable",
    "net.core.busy_poll",
    "net.core.busy_read",
    "net.core.default_qdisc",
    "net.core.dev_weight",
    "net.core.flow_limit_cpu_bitmap",
    "net.core.flow_limit_table_len",
    "net.core.gro_normal_batch",
    "net.core.netdev_budget",
    "net.core.netdev_budget_usecs",
    "net.core.netdev_max_backlog",
    "net.core.optmem_max",
    "net.core.rmem_default",
    "net.core.rmem_max",
    "net.core.rps_default_mask",
    "net.core.rps_sock_flow_entries",
    "net.core.somaxconn",
    "net.core.wmem_default",
    "net.core.wmem_max",
    "net.ipv4.conf.*.accept_local",
    "net.ipv4.conf.*.accept_redirects",
    "net.ipv4.conf.*.arp_announce",
    "net.ipv4.conf.*.arp_filter",
    "net.ipv4.conf.*.arp_ignore",
    "net.ipv4.conf.*.disable_policy",
    "net.ipv4.conf.*.disable_xfrm",
    "net.ipv4.conf.*.forwarding",
    "net.ipv4.conf.*.proxy_arp",
    "net.ipv4.conf.*.rp_filter",
    "net.ipv4.conf.*.send_redirects",
    "net.ipv4.fib_multipath_hash_fields",
    "net.ipv4.fib_multipath_hash_policy",
    "net.ipv4.fib_multipath_use_neigh",
    "net.ipv4.ip_early_demux",
    "net.ipv4.ip_forward",
    "net.ipv4.ip_forward_use_pmtu",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.ip_no_pmtu_disc",
    "net.ipv4.neigh.default.gc_thresh1",
    "net.ipv4.neigh.default.gc_thresh2",
    "net.ipv4.neigh.default.gc_thresh3",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_ecn",
    "net.ipv4.tcp_mem",
    "net.ipv4.tcp_mtu_probing",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_sack",
    "net.ipv4.tcp_slow_start_after_idle",
    "net.ipv4.tcp_timestamps",
    "net.ipv4.tcp_tw_reuse",
    "net.ipv4.tcp_window_scaling",
    "net.ipv4.tcp_wmem",
    "net.ipv4.udp_mem",
    "net.ipv4.udp_rmem_min",
    "net.ipv4.udp_wmem_min",
    "net.ipv6.conf.*.accept_ra",
    "net.ipv6.conf.*.accept_redirects",
    "net.ipv6.conf.*.autoconf",
    "net.ipv6.conf.*.disable_ipv6",
    "net.ipv6.conf.*.forwarding",
    "net.ipv6.fib_multipath_hash_fields",
    "net.ipv6.fib_multipath_hash_policy",
    "net.ipv6.neigh.default.gc_thresh3",
    "vm.nr_hugepages",
    "vm.nr_overcommit_hugepages",
    "vm.swappiness",
    "vm.zone_reclaim_mode",
)

#: CPU features that decide how fast a data plane can be.
_CPU_FLAGS = (
    "aes", "avx", "avx2", "avx512f", "avx512bw", "avx512_vbmi2", "constant_tsc", "gfni", "hypervisor", "invariant_tsc",
    "nonstop_tsc", "pclmulqdq", "pmull", "sha1", "sha2", "sha_ni", "sse4_2", "sve", "vaes", "vpclmulqdq", "x2apic",
)  # fmt: skip

_TOOLS: dict[str, tuple[str, ...]] = {
    "ethtool": ("ethtool", "--version"),
    "ip": ("ip", "-V"),
    "iperf": ("iperf", "-v"),
    "iperf3": ("iperf3", "--version"),
    "ping": ("ping", "-V"),
    "swanctl": ("swanctl", "--version"),
    "tc": ("tc", "-V"),
}
_PACKAGES = ("vpp",)  # a program that must not be run to learn its version
_SERVICES = ("irqbalance", "tuned", "power-profiles-daemon", "tlp", "auto-cpufreq", "thermald")
_VERSION = re.compile(r"\d+(?:\.\d+)+[\w.+~-]*|\b\d{8}\b")
#: A limit and no wait: they take milliseconds, in a machine that is emulated together some seconds. What is not read in
#: time would look like a setting that was not put back.
_COMMAND_LIMIT_S = 30.0

REDACTED = "<redacted>"
_SECRET_NAME = re.compile(
    r"pass(?!ive|through)|pwd|secret|token|key|cred|auth|psk|\bpin\b|cookie|licen[cs]e|serial", re.IGNORECASE
)
_USERINFO = re.compile(r"//[^/\s]*@|[^\s/:@]+:[^\s/:@]+@")
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_BLOB = re.compile(r"(?=[A-Za-z+/_-]*\d)(?=[\d+/_-]*[A-Za-z])[A-Za-z0-9+/_-]{24,}={0,2}")


def redact_cmdline(text: str) -> str:
    """The kernel's command line without what could be a secret.

    What stands after ``--`` is for the init program, says nothing of the kernel, and is left out altogether.
    """
    words = []
    for word in _split_cmdline(text):
        if word == "--":
            words.append("-- " + REDACTED)
            break
        words.append(_redact_word(word))
    return " ".join(words)


def _split_cmdline(text: str) -> list[str]:
    """At blanks, but for those in double quotes; as the kernel splits it."""
    return re.findall(r'(?:[^\s"]|"[^"]*"?)+', text)


def _redact_word(word: str) -> str:
    name, separator, value = word.partition("=")
    if not separator:
        # A word alone is a switch; but a long one of letters and digits mixed is none.
        return REDACTED if _BLOB.search(word) and "." not in word else word
    suspicious = (
        _SECRET_NAME.search(name)
        or _SECRET_NAME.search(value)
        or _USERINFO.search(value)
        or "?" in value
        or _BLOB.search(_UUID.sub("", value).replace("/", " "))
    )
    return f"{name}={REDACTED}" if suspicious else word


def parse_cpuinfo(text: str) -> dict[str, t.Any]:
    """What is the same for all CPUs, from the first block of ``/proc/cpuinfo``."""
    first: dict[str, str] = {}
    for line in text.split("\n\n", 1)[0].splitlines():
        name, separator, value = line.partition(":")
        if separator:
            first[name.strip()] = value.strip()
    flags = set((first.get("flags") or first.get("Features") or "").split())
    return {
        "model": first.get("model name") or first.get("Hardware"),
        "vendor": first.get("vendor_id") or first.get("CPU implementer"),
        "family": first.get("cpu family") or first.get("CPU architecture"),
        "model_number": first.get("model") or first.get("CPU part"),
        "stepping": first.get("stepping") or first.get("CPU revision"),
        "microcode": first.get("microcode"),
        "flags": sorted(flags.intersection(_CPU_FLAGS)),
        "virtual": "hypervisor" in flags if flags and "flags" in first else None,
    }


def parse_meminfo(text: str) -> dict[str, int]:
    """Bytes by name; counts (of huge pages) as they are."""
    values: dict[str, int] = {}
    for line in text.splitlines():
        match = re.fullmatch(r"([\w()]+):\s+(\d+)(?: (kB))?", line.strip())
        if match:
            values[match[1]] = int(match[2]) * (1024 if match[3] else 1)
    return values


def parse_os_release(text: str) -> dict[str, str]:
    values = {}
    for line in text.splitlines():
        name, separator, value = line.partition("=")
        if separator and not line.startswith("#"):
            values[name.strip()] = value.strip().strip("\"'")
    return values


def parse_cpu_set(text: str | None) -> str | None:
    """A set of CPUs as sysfs prints it. Where none was ever set, some kernels print a null pointer."""
    return "" if text == "(null)" else text


def parse_version(text: str) -> str | None:
    """The first thing that looks like a version: ``iproute2-6.1.0``, ``iputils 20221126``, ``iperf 3.12``."""
    match = _VERSION.search(text)
    if match:
        return match[0].rstrip(".,-")
    match = re.search(r"version (\d+)\b", text)  # a version of one number
    return match[1] if match else None


#: What the kernel may tell the time by; only KVM gives its guests a clock of its own.
_CLOCKS = "sys/devices/system/clocksource/clocksource0/available_clocksource"
#: Makers as the firmware's table names them, in the words of systemd-detect-virt.
_MAKERS = (
    ("KVM", "kvm"),
    ("QEMU", "qemu"),
    ("VMware", "vmware"),
    ("VMW", "vmware"),
    ("innotek GmbH", "oracle"),
    ("VirtualBox", "oracle"),
    ("Xen", "xen"),
    ("Bochs", "bochs"),
    ("Parallels", "parallels"),
    ("BHYVE", "bhyve"),
    ("Hyper-V", "microsoft"),
    ("Amazon EC2", "amazon"),
    ("Google Compute Engine", "google"),
    ("OpenStack", "kvm"),
)


def hypervisor_by_firmware(vendor: str, product: str) -> str | None:
    if vendor.startswith("Microsoft") and product == "Virtual Machine":
        return "microsoft"
    if "metal" in product:
        return None
    for word, name in _MAKERS:
        if word in vendor or word in product:
            return name
    return None


#: Keys of ``ip -json`` that change by themselves, or concern only the moment of adding.
_VOLATILE = (
    "flags", "expires", "age", "used", "users", "valid_life_time", "preferred_life_time", "tentative", "dadfailed",
    "nodad", "cache",
)  # fmt: skip


def stable_routes(routes: list[dict[str, t.Any]]) -> list[dict[str, t.Any]]:
    """Routes that someone has set.

    Not those that the kernel makes of addresses (they come and go with the links), nor those learned from
    announcements.
    """
    kept = [
        {name: value for name, value in route.items() if name not in _VOLATILE}
        for route in routes
        if route and route.get("table") != "local" and route.get("protocol") not in ("kernel", "ra", "redirect")
        and route.get("type") != "multicast"
    ]  # fmt: skip
    return sorted(kept, key=lambda route: json.dumps(route, sort_keys=True))


def stable_addresses(links: list[dict[str, t.Any]]) -> dict[str, list[dict[str, t.Any]]]:
    """Addresses that someone has set: not the kernel's own link-local ones, which appear some time after the link."""
    addresses = {}
    for link in links:
        kept = [
            {name: value for name, value in address.items() if name not in _VOLATILE}
            for address in link.get("addr_info", [])
            if not address.get("temporary")
            and not (address.get("family") == "inet6" and address.get("scope") == "link")
        ]
        addresses[str(link.get("ifname"))] = sorted(kept, key=lambda address: json.dumps(address, sort_keys=True))
    return dict(sorted(addresses.items()))


def digest(values: t.Any) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def differences(before: t.Any, after: t.Any, path: str = "") -> list[dict[str, t.Any]]:
    """Where two fingerprints (or parts of them) differ, leaf by leaf."""
    if isinstance(before, dict) and isinstance(after, dict):
        found = []
        for name in sorted(set(before) | set(after), key=str):
            where = f"{path}/{name}" if path else str(name)
            found += differences(before.get(name), after.get(name), where)
        return found
    return [] if before == after else [{"path": path, "before": before, "after": after}]


Answer = tuple[int, str]
Runner = t.Callable[[dict[str, tuple[str, ...]]], dict[str, Answer]]


def run_all(commands: dict[str, tuple[str, ...]]) -> dict[str, Answer]:
    """Run commands side by side; status and words of each. A missing tool has status 127.

    The words are the output, or the error output of one that failed or has no other: some tell their version there.
    """
    started = {name: command.start(argv) for name, argv in commands.items() if command.find_program(argv[0])}
    limit = time.monotonic() + _COMMAND_LIMIT_S
    answers: dict[str, Answer] = {}
    for name in commands:
        if name not in started:
            answers[name] = 127, "not installed"
            continue
        done = command.finish(started[name], limit_s=max(0.01, limit - time.monotonic()))
        if done.timed_out:
            answers[name] = 124, f"no answer within {_COMMAND_LIMIT_S:g} s"
        else:
            answers[name] = done.rc, (done.stderr or done.stdout) if done.rc else (done.stdout or done.stderr)
    return answers


@dataclasses.dataclass
class _Host:
    """Where to read: a real host, or a folder with the same files."""

    root: str
    unknown: dict[str, str] = dataclasses.field(default_factory=dict)

    def path(self, path: str) -> str:
        return os.path.join(self.root, path)

    def text(self, path: str, key: str | None = None) -> str | None:
        """A file's text; None when it is not there or cannot be read. With a key the reason is noted."""
        try:
            with open(self.path(path), encoding="utf-8", errors="replace") as stream:
                return stream.read().strip()
        except OSError as error:
            if key is not None:
                self.unknown[key] = f"/{path}: {error.strerror}"
            return None

    def number(self, path: str, key: str | None = None) -> int | None:
        text = self.text(path, key)
        if text is None:
            return None
        try:
            return int(text)
        except ValueError:
            self.unknown[key or path] = f"/{path}: not a number"
            return None

    def names(self, path: str) -> list[str]:
        try:
            return sorted(os.listdir(self.path(path)), key=_by_number)
        except OSError:
            return []

    def glob(self, pattern: str) -> list[str]:
        found = glob.glob(os.path.join(glob.escape(self.root), pattern))
        return sorted((os.path.relpath(path, self.root) for path in found), key=_by_number)


def _by_number(name: str) -> list[t.Any]:
    """``rx-2`` before ``rx-10``."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]


class Collector:
    """Gathers a fingerprint. The three ways out to the host can be replaced."""

    def __init__(
        self,
        *,
        root: str = "/",
        run: Runner = run_all,
        ask: nicinfo.Ioctl | None = None,
        interfaces: t.Sequence[str] = (),
    ) -> None:
        self.host = _Host(root)
        self._run = run
        self._ask = ask
        self._asked = tuple(interfaces)

    @property
    def unknown(self) -> dict[str, str]:
        return self.host.unknown

    def collect(self) -> dict[str, t.Any]:
        commands = {
            **_TOOLS,
            "address": ("ip", "-json", "address", "show"),
            "route4": ("ip", "-4", "-json", "route", "show", "table", "all"),
            "route6": ("ip", "-6", "-json", "route", "show", "table", "all"),
            "rule4": ("ip", "-4", "-json", "rule", "show"),
            "rule6": ("ip", "-6", "-json", "rule", "show"),
            "vm": ("systemd-detect-virt", "--vm"),
            "container": ("systemd-detect-virt", "--container"),
            **{f"deb {name}": ("dpkg-query", "-W", "-f", "${Version}", name) for name in _PACKAGES},
            **{f"rpm {name}": ("rpm", "-q", "--qf", "%{VERSION}-%{RELEASE}", name) for name in _PACKAGES},
        }
        answers = self._run(commands)
        running = self._running()
        names = self._interfaces()
        cpu = self._cpu()
        kernel = self._kernel()
        identity: dict[str, t.Any] = {
            "hypervisor": self._hypervisor(answers["vm"], cpu),
            "container": self._container(answers["container"]),
            "firmware": self._firmware(),
            "os": self._os(),
            "kernel": kernel,
            "cpu": cpu,
            "memory": self._memory(),
            "interfaces": {name: self._nic_identity(name) for name in names},
            "tools": self._tools(answers),
            "python": {"version": platform.python_version(), "executable": sys.executable},
        }
        state = {
            "sysctls": self._sysctls(names),
            "interfaces": {name: self._nic_state(name, "irqbalance" in running) for name in names},
            "addresses": self._addresses(answers["address"], names),
            "routes": self._routes(answers["route4"], answers["route6"]),
            "rules": self._rules(answers["rule4"], answers["rule6"]),
            "power": self._power(),
            "memory": self._memory_state(),
            "clocksource": self._clocksource(),
            "services": {name: name in running for name in _SERVICES},
            "tuned_profile": self.host.text("etc/tuned/active_profile"),
        }
        return {
            "schema": SCHEMA,
            **identity,
            "machine": self._machine(identity["container"], kernel),
            # There as soon as something loads its module, so it is no part of the state that must come back.
            "conntrack": {
                name: self.host.number(f"proc/sys/net/netfilter/nf_conntrack_{name}")
                for name in ("max", "buckets", "count")
            },
            "state": state,
            "digests": {"identity": digest(identity), "state": digest(state)},
            "unknown": dict(sorted(self.unknown.items())),
        }

    # -- identity

    def _machine(self, container: str | None, kernel: dict[str, t.Any]) -> dict[str, t.Any]:
        """Words that are the same for hosts which share one kernel."""
        started = None
        for line in (self.host.text("proc/stat") or "").splitlines():
            if line.startswith("btime "):
                started = int(line.split()[1])
        boot_id = self.host.text("proc/sys/kernel/random/boot_id", "machine.boot_id")
        if container == "systemd-nspawn":
            # Such a container sees a made-up boot id of its own.
            boot_id = None
            self.unknown["machine.boot_id"] = "systemd-nspawn shows its containers another one than the kernel's"
        words = [kernel["release"], kernel["version"], kernel["cmdline"], started]
        return {
            "boot_id": boot_id,
            "booted": started,
            "kernel_instance": digest(words)[:16] if started is not None else None,
        }

    def _hypervisor(self, answer: Answer, cpu: dict[str, t.Any]) -> str | None:
        status, output = answer
        word = output.strip()
        if status in (0, 1) and re.fullmatch(r"[a-z0-9-]+", word):
            return None if word == "none" else word
        vendor = self.host.text("sys/class/dmi/id/sys_vendor") or ""
        product = self.host.text("sys/class/dmi/id/product_name") or ""
        name = self.host.text("sys/hypervisor/type") or hypervisor_by_firmware(vendor, product)
        # QEMU's firmware names itself with KVM too
        if name == "qemu" and "kvm-clock" in (self.host.text(_CLOCKS) or "").split():
            name = "kvm"
        if name is None and cpu["virtual"]:
            name = "unknown"
        if name is None and cpu["virtual"] is None and not vendor:
            self.unknown["hypervisor"] = "neither systemd-detect-virt nor the firmware nor the CPU tells"
        return name

    def _container(self, answer: Answer) -> str | None:
        status, output = answer
        word = output.strip()
        if status in (0, 1) and re.fullmatch(r"[a-z0-9-]+", word):
            return None if word == "none" else word
        manager = self.host.text("run/systemd/container")
        if manager:
            return manager
        if os.path.exists(self.host.path(".dockerenv")):
            return "docker"
        if os.path.exists(self.host.path("run/.containerenv")):
            return "podman"
        return None

    def _firmware(self) -> dict[str, str | None]:
        # Serial numbers and UUIDs lie beside these, and are left there.
        names = ("sys_vendor", "product_name", "board_name", "bios_vendor", "bios_version", "bios_date")
        return {name: self.host.text(f"sys/class/dmi/id/{name}") for name in names}

    def _os(self) -> dict[str, str | None]:
        text = self.host.text("etc/os-release") or self.host.text("usr/lib/os-release") or ""
        values = parse_os_release(text)
        return {
            "id": values.get("ID"),
            "version": values.get("VERSION_ID"),
            "name": values.get("PRETTY_NAME"),
        }

    def _kernel(self) -> dict[str, t.Any]:
        cmdline = self.host.text("proc/cmdline", "kernel.cmdline")
        return {
            "release": self.host.text("proc/sys/kernel/osrelease", "kernel.release"),
            "version": self.host.text("proc/sys/kernel/version", "kernel.version"),
            "architecture": platform.machine(),
            "cmdline": redact_cmdline(cmdline) if cmdline is not None else None,
            "isolated_cpus": self.host.text("sys/devices/system/cpu/isolated"),
            "nohz_full_cpus": parse_cpu_set(self.host.text("sys/devices/system/cpu/nohz_full")),
        }

    def _cpu(self) -> dict[str, t.Any]:
        base = "sys/devices/system/cpu"
        cpu = parse_cpuinfo(self.host.text("proc/cpuinfo", "cpu") or "")
        if cpu["microcode"] is None:
            cpu["microcode"] = self.host.text(f"{base}/cpu0/microcode/version")
        if cpu["microcode"] is None:
            self.unknown["cpu.microcode"] = "neither /proc/cpuinfo nor sysfs tells"
        online = self._cpus(f"{base}/online")
        cores, packages = set(), set()
        for number in online or ():
            package = self.host.text(f"{base}/cpu{number}/topology/physical_package_id")
            core = self.host.text(f"{base}/cpu{number}/topology/core_id")
            if package is not None and core is not None:
                packages.add(package)
                cores.add((package, core))
        nodes = {
            os.path.basename(path)[len("node") :]: self.host.text(f"{path}/cpulist")
            for path in self.host.glob("sys/devices/system/node/node[0-9]*")
        }
        cpu.update(
            threads=len(online) if online is not None else None,
            cores=len(cores) or None,
            sockets=len(packages) or None,
            smt=self.host.text(f"{base}/smt/control"),
            online=self.host.text(f"{base}/online", "cpu.online"),
            numa_nodes=nodes or None,
            max_frequency_khz=self.host.number(f"{base}/cpu0/cpufreq/cpuinfo_max_freq"),
            vulnerabilities={
                name: self.host.text(f"{base}/vulnerabilities/{name}")
                for name in self.host.names(f"{base}/vulnerabilities")
            },
        )
        return cpu

    def _cpus(self, path: str) -> list[int] | None:
        text = self.host.text(path)
        if text is None:
            return None
        try:
            return parse_cpu_list(text)
        except ParseError as error:
            self.unknown[path] = error.what
            return None

    def _memory(self) -> dict[str, t.Any]:
        info = parse_meminfo(self.host.text("proc/meminfo", "memory") or "")
        return {"total_bytes": info.get("MemTotal"), "default_hugepage_bytes": info.get("Hugepagesize")}

    def _interfaces(self) -> list[str]:
        """Those asked for, else all but the loopback; only real devices (bonding_masters is a plain file)."""
        there = [name for name in self.host.names("sys/class/net") if self.host.text(f"sys/class/net/{name}/ifindex")]
        missing = [name for name in self._asked if name not in there]
        if missing:
            raise BenchError(
                f"there is no interface {', '.join(missing)}",
                where="option interfaces",
                remedy=f"This host has {', '.join(there)}",
                code="interface_absent",
            )
        return sorted(set(self._asked)) if self._asked else [name for name in there if name != "lo"]

    def _nic(self, name: str) -> nicinfo.Nic | None:
        return nicinfo.Nic(name, self._ask) if self._ask is not None else None

    def _nic_identity(self, name: str) -> dict[str, t.Any]:
        base = f"sys/class/net/{name}"
        nic = self._nic(name)
        told = (nic.driver() if nic else None) or {}
        link = self.host.path(f"{base}/device")
        bus = os.path.basename(os.path.realpath(link)) if os.path.exists(link) else None
        driver = told.get("driver")
        if driver is None and os.path.exists(f"{link}/driver"):
            driver = os.path.basename(os.path.realpath(f"{link}/driver"))
        speed = self.host.number(f"{base}/speed") if os.path.exists(self.host.path(f"{base}/speed")) else None
        features = nic.features() if nic else None
        return {
            "driver": driver,
            "version": told.get("version"),
            "firmware": told.get("firmware"),
            "bus": told.get("bus") or bus,
            "numa_node": self.host.number(f"{base}/device/numa_node") if bus else None,
            # -1 where the driver does not know; virtual devices often have none.
            "speed_bps": speed * 1_000_000 if speed is not None and speed > 0 else None,
            "duplex": self.host.text(f"{base}/duplex"),
            "fixed_offloads": sorted(features[1]) if features else None,
            "rx_queues": sum(1 for queue in self.host.names(f"{base}/queues") if queue.startswith("rx-")),
            "tx_queues": sum(1 for queue in self.host.names(f"{base}/queues") if queue.startswith("tx-")),
        }

    def _tools(self, answers: dict[str, Answer]) -> dict[str, str | None]:
        versions: dict[str, str | None] = {}
        for name in _TOOLS:
            status, output = answers[name]
            # Some print their version and end with a status of 1 (iperf 2.0).
            versions[name] = parse_version(output) if status not in (124, 126, 127) else None
            if versions[name] is None:
                self.unknown[f"tools.{name}"] = output.strip()[:200] or f"ended with status {status}"
        for name in _PACKAGES:
            found = [
                output.strip()
                for kind in ("deb", "rpm")
                for status, output in [answers[f"{kind} {name}"]]
                if not status
            ]
            versions[name] = next((version for version in found if version), None)
            if versions[name] is None:
                self.unknown[f"tools.{name}"] = "there is no package of it"
        return dict(sorted(versions.items()))

    # -- state

    def _sysctls(self, interfaces: list[str]) -> dict[str, str]:
        """Values by name; a sysctl that this kernel lacks is not in it."""
        values: dict[str, str] = {}
        for name in SYSCTLS:
            head, star, tail = name.partition(".*.")
            paths = [f"proc/sys/{name.replace('.', '/')}"]
            if star:
                folder = f"proc/sys/{head.replace('.', '/')}"
                paths = [f"{folder}/{who}/{tail}" for who in ("all", "default", *interfaces)]
            for path in paths:
                value = self.host.text(path)
                if value is not None:
                    # An interface's name can hold a dot, so such names keep the form that sysctl(8) takes for them.
                    values[path[len("proc/sys/") :]] = " ".join(value.split())
        return dict(sorted(values.items()))

    def _nic_state(self, name: str, irqs_move: bool) -> dict[str, t.Any]:
        base = f"sys/class/net/{name}"
        nic = self._nic(name)
        flags = int(self.host.text(f"{base}/flags") or "0", 16)
        features = nic.features() if nic else None
        queues: dict[str, dict[str, str]] = {}
        for queue in self.host.names(f"{base}/queues"):
            knobs = ("rps_cpus", "rps_flow_cnt") if queue.startswith("rx-") else ("xps_cpus", "xps_rxqs")
            values = {knob: self.host.text(f"{base}/queues/{queue}/{knob}") for knob in knobs}
            # Devices with one queue have the file of its XPS mask, but it cannot be read.
            queues[queue] = {knob: value for knob, value in values.items() if value is not None}
        affinity = None
        if not irqs_move:
            affinity = {
                irq: self.host.text(f"proc/irq/{irq}/smp_affinity_list")
                for irq in self.host.names(f"{base}/device/msi_irqs")
            }
        fixed = set(features[1]) if features else set()
        return {
            "up": bool(flags & 0x1),
            "promiscuous": bool(flags & 0x100),
            "mtu_bytes": self.host.number(f"{base}/mtu"),
            "txqueuelen": self.host.number(f"{base}/tx_queue_len"),
            "gro_flush_timeout": self.host.number(f"{base}/gro_flush_timeout"),
            "napi_defer_hard_irqs": self.host.number(f"{base}/napi_defer_hard_irqs"),
            "threaded": self.host.text(f"{base}/threaded")
            if os.path.exists(self.host.path(f"{base}/threaded"))
            else None,
            "offloads": {key: on for key, on in sorted(features[0].items()) if key not in fixed} if features else None,
            "rings": nic.rings() if nic else None,
            "channels": nic.channels() if nic else None,
            "coalesce": nic.coalesce() if nic else None,
            "pause": nic.pause() if nic else None,
            "hash_fields": nic.hash_fields() if nic else None,
            "queues": queues,
            # Moved by irqbalance at its own will while that runs.
            "irq_affinity": affinity or None,
        }

    def _json(self, answer: Answer, key: str) -> list[dict[str, t.Any]] | None:
        status, output = answer
        if status == 0:
            try:
                value = json.loads(output or "[]")
                if isinstance(value, list):
                    return value
            except ValueError:
                output = "not JSON"
        self.unknown[key] = f"ip: {output.strip()[:200] or f'ended with status {status}'}"
        return None

    def _addresses(self, answer: Answer, interfaces: list[str]) -> dict[str, t.Any] | None:
        links = self._json(answer, "state.addresses")
        if links is None:
            return None
        return {name: found for name, found in stable_addresses(links).items() if name in interfaces}

    def _routes(self, *answers: Answer) -> list[dict[str, t.Any]] | None:
        parts = [self._json(answer, "state.routes") for answer in answers]
        if any(part is None for part in parts):
            return None
        return [route for part in parts for route in stable_routes(part or [])]

    def _rules(self, *answers: Answer) -> list[dict[str, t.Any]] | None:
        parts = [self._json(answer, "state.rules") for answer in answers]
        if any(part is None for part in parts):
            return None
        return [rule for part in parts for rule in part or []]

    def _power(self) -> dict[str, t.Any]:
        base = "sys/devices/system/cpu"
        policies = {}
        knobs = ("scaling_driver", "scaling_governor", "energy_performance_preference", "scaling_min_freq",
                 "scaling_max_freq", "boost")  # fmt: skip
        for path in self.host.glob(f"{base}/cpufreq/policy*"):
            policies[os.path.basename(path)] = {knob: self.host.text(f"{path}/{knob}") for knob in knobs}
        if not policies:
            self.unknown["state.power.policies"] = "this host has no cpufreq (often so in a virtual machine)"
        disabled = {
            os.path.relpath(os.path.dirname(path), base): self.host.text(path)
            for path in self.host.glob(f"{base}/cpu[0-9]*/cpuidle/state*/disable")
        }
        return {
            "policies": policies or None,
            "boost": self.host.text(f"{base}/cpufreq/boost"),
            "no_turbo": self.host.text(f"{base}/intel_pstate/no_turbo"),
            "intel_pstate": self.host.text(f"{base}/intel_pstate/status"),
            "amd_pstate": self.host.text(f"{base}/amd_pstate/status"),
            "idle_driver": self.host.text(f"{base}/cpuidle/current_driver"),
            "idle_governor": self.host.text(f"{base}/cpuidle/current_governor"),
            "idle_states_disabled": sorted(name for name, value in disabled.items() if value not in ("0", None)),
        }

    def _memory_state(self) -> dict[str, t.Any]:
        pools = {}
        for path in self.host.glob("sys/kernel/mm/hugepages/hugepages-*kB"):
            size = re.search(r"-(\d+)kB$", path)
            if size:
                pools[str(int(size[1]) * 1024)] = self.host.number(f"{path}/nr_hugepages")
        nodes: dict[str, dict[str, int | None]] = {}
        for path in self.host.glob("sys/devices/system/node/node[0-9]*/hugepages/hugepages-*kB"):
            node, size_text = re.findall(r"node(\d+)/.*-(\d+)kB$", path)[0]
            nodes.setdefault(node, {})[str(int(size_text) * 1024)] = self.host.number(f"{path}/nr_hugepages")
        return {
            "hugepages": pools or None,
            "hugepages_by_node": nodes or None,
            "transparent_hugepages": self._chosen("sys/kernel/mm/transparent_hugepage/enabled"),
        }

    def _chosen(self, path: str) -> str | None:
        """The word in brackets of ``always [madvise] never``."""
        match = re.search(r"\[(\w+)\]", self.host.text(path) or "")
        return match[1] if match else None

    def _clocksource(self) -> str | None:
        return self.host.text("sys/devices/system/clocksource/clocksource0/current_clocksource", "state.clocksource")

    def _running(self) -> set[str]:
        """Which of the services that change the host behind one's back run, by their processes' names."""
        wanted = {name[:15]: name for name in _SERVICES}
        running = set()
        for entry in self.host.names("proc"):
            if entry.isdigit():
                name = self.host.text(f"proc/{entry}/comm")
                if name in wanted:
                    running.add(wanted[name])
        return running


def collect(interfaces: t.Sequence[str] = ()) -> dict[str, t.Any]:
    """The fingerprint of this host."""
    return Collector(ask=nicinfo.kernel_ioctl(), interfaces=interfaces).collect()
