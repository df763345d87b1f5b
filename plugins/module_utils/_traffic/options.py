# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a traffic trial is asked for, as one typed record; and what each tool of which version can do."""

from __future__ import annotations

import dataclasses
import ipaddress
import re
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.record import BOTH, FORWARD, REVERSE
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.steady import Window

TOOLS = ("iperf2", "iperf3")
PROTOCOLS = ("tcp", "udp")
DIRECTIONS = (FORWARD, REVERSE, BOTH)

#: (tool, feature) -> the first release that has it, and where that is written.
FIRST_RELEASE: dict[tuple[str, str], tuple[tuple[int, ...], str]] = {
    ("iperf2", "enhanced reports (-e)"): ((2, 0, 8), "release notes of 2.0.8"),
    ("iperf2", "a rate in packets per second (rate_pps)"): ((2, 0, 8), "release notes of 2.0.8"),
    ("iperf2", "direction reverse (--reverse)"): ((2, 1, 0), "release notes of 2.1.0"),
    ("iperf2", "direction both (--full-duplex)"): ((2, 1, 0), "release notes of 2.1.0"),
    ("iperf2", "rate_pps with direction reverse or both"): ((2, 1, 4), "release notes of 2.1.4"),
    ("iperf2", "a port for each stream (port_per_stream)"): ((2, 1, 5), "release notes of 2.1.1 and 2.1.5"),
    ("iperf3", "a JSON report (-J)"): ((3, 0), "release notes of 3.0"),
    ("iperf3", "the server's report (--get-server-output)"): ((3, 1), "release notes of 3.1"),
    ("iperf3", "direction both (--bidir)"): ((3, 7), "release notes of 3.7"),
}
_OLDEST = {"iperf2": (2, 0, 5), "iperf3": (3, 1)}
#: What each tool itself takes when no port is given.
DEFAULT_PORTS = {"iperf2": 5001, "iperf3": 5201}
_RATE = re.compile(r"^(?P<number>\d+(?:\.\d+)?)(?P<unit>[kKmMgG]?)(?P<pps>pps)?$")
_VERSION = re.compile(r"\biperf(?: version)? (\d+(?:\.\d+)+)([a-z]\w*)?")


@dataclasses.dataclass(frozen=True)
class TrialOptions:
    """One trial. Rates are the sum over the parallel streams of one direction; None is as fast as it goes."""

    id: str
    server: str
    port: int
    tool: str = "iperf2"
    protocol: str = "tcp"
    direction: str = FORWARD
    parallel: int = 1
    length_bytes: int | None = None
    mss_bytes: int | None = None
    window_bytes: int | None = None
    port_per_stream: bool = False
    rate_bps: int | None = None
    rate_pps: int | None = None
    duration_s: float = 10.0
    warmup_s: float = 0.0
    interval_s: float = 0.5
    bind_address: str | None = None
    tos: int | None = None
    congestion_control: str | None = None
    link_speed_bps: int | None = None
    #: What a trial may take beyond its traffic.
    extra_s: float = 15.0

    def __post_init__(self) -> None:
        if not re.match(r"^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$", self.id):
            raise self._bad("id", f"{self.id!r} is no name for a file", "Use letters, digits, dot, dash and underscore")
        for name, choices in (("tool", TOOLS), ("protocol", PROTOCOLS), ("direction", DIRECTIONS)):
            if getattr(self, name) not in choices:
                raise self._bad(name, f"{getattr(self, name)!r} is not known", f"Choose one of {', '.join(choices)}")
        self._range("port", 1, 65535)
        self._range("parallel", 1, 1024)
        self._range("interval_s", 0.1, 3600)
        self._range("duration_s", 0.1, 7 * 86400)
        self._range("warmup_s", 0, 3600)
        if self.mss_bytes is not None:
            # what Linux takes: TCP_MIN_MSS to MAX_TCP_WINDOW, include/net/tcp.h
            self._range("mss_bytes", 88, 32767)
        for name in ("length_bytes", "window_bytes", "link_speed_bps"):
            if getattr(self, name) is not None:
                self._range(name, 1, 2**40)
        self._check_rate()
        if self.port_per_stream and (self.tool != "iperf2" or self.ports[-1] > 65535):
            raise self._bad("port_per_stream", "not possible with this tool and port", "Leave it out")
        if self.tos is not None:
            self._range("tos", 0, 255)
        if self.mss_bytes and self.protocol == "udp":
            raise self._bad("mss_bytes", "UDP has no segment size", "Use length_bytes")
        if self.protocol == "udp" and self.length_bytes is not None:
            # the smallest that holds iperf2's sequence number and time stamps
            self._range("length_bytes", 16, 65507)
        self.window()

    def _check_rate(self) -> None:
        if self.rate_bps and self.rate_pps:
            raise self._bad("rate_pps", "both rate_bps and rate_pps are given", "Give one of them")
        if self.rate_pps and self.protocol == "tcp":
            raise self._bad("rate_pps", "TCP has no packet rate of its own", "Use rate_bps")
        for name in ("rate_bps", "rate_pps"):
            value = getattr(self, name)
            if value is not None and value < 0:
                raise self._bad(name, f"{value} is negative", "0 means as fast as it goes")
            if value and value < self.parallel:
                raise self._bad(name, f"{value} cannot be shared by {self.parallel} streams", "Ask for more")

    def _bad(self, name: str, what: str, remedy: str) -> BenchError:
        return BenchError(what, where=f"trial {self.id}: {name}", remedy=remedy, code="bad_option")

    def _range(self, name: str, low: float, high: float) -> None:
        value = getattr(self, name)
        if not low <= value <= high:
            raise self._bad(name, f"{value:g} is out of range", f"Use {low:g} to {high:g}")

    def window(self) -> Window:
        return Window(self.warmup_s, self.duration_s, self.interval_s, self.parallel)

    @property
    def total_s(self) -> float:
        return self.warmup_s + self.duration_s

    @property
    def limit_s(self) -> float:
        return self.total_s + self.extra_s

    @property
    def ipv6(self) -> bool:
        try:
            return ipaddress.ip_address(self.server.partition("%")[0]).version == 6
        except ValueError:
            return False

    @property
    def directions(self) -> tuple[str, ...]:
        return (FORWARD, REVERSE) if self.direction == BOTH else (self.direction,)

    @property
    def ports(self) -> range:
        """The server's ports that the trial uses."""
        return range(self.port, self.port + (self.parallel if self.port_per_stream else 1))

    def offered_pps(self) -> float | None:
        """Datagrams per second that were asked for; None without a limit or for TCP."""
        if self.protocol != "udp":
            return None
        if self.rate_pps:
            return float(self.rate_pps)
        if self.rate_bps:
            return self.rate_bps / 8 / self.datagram_bytes
        return None

    def target_bps(self) -> float | None:
        """The asked rate as payload bit/s."""
        if self.rate_bps:
            return float(self.rate_bps)
        if self.rate_pps:
            return float(self.rate_pps) * 8 * self.datagram_bytes
        return None

    @property
    def datagram_bytes(self) -> int:
        if self.length_bytes is not None:
            return self.length_bytes
        return 1450 if self.ipv6 else 1470


@dataclasses.dataclass(frozen=True)
class ToolVersion:
    tool: str
    numbers: tuple[int, ...]
    text: str


def parse_version(text: str) -> ToolVersion:
    """The release from the output of --version."""
    match = _VERSION.search(text)
    if match is None:
        raise BenchError(f"the version of iperf cannot be read from {text.strip()[:80]!r}", code="unknown_version")
    numbers = tuple(int(part) for part in match[1].split("."))
    tool = "iperf3" if numbers[0] == 3 else "iperf2"
    return ToolVersion(tool, numbers, match[1] + (match[2] or ""))


def needed_features(options: TrialOptions) -> list[str]:
    """The features of FIRST_RELEASE that a trial needs."""
    if options.tool == "iperf3":
        names = ["a JSON report (-J)"]
        return names + (["direction both (--bidir)"] if options.direction == BOTH else [])
    names = []
    if options.direction == REVERSE:
        names.append("direction reverse (--reverse)")
    if options.direction == BOTH:
        names.append("direction both (--full-duplex)")
    if options.port_per_stream and options.parallel > 1:
        names.append("a port for each stream (port_per_stream)")
    if options.rate_pps:
        names.append("a rate in packets per second (rate_pps)")
        if options.direction != FORWARD:
            names.append("rate_pps with direction reverse or both")
    return names


def has(version: ToolVersion, feature: str) -> bool:
    return version.numbers >= FIRST_RELEASE[(version.tool, feature)][0]


def check_version(options: TrialOptions, version: ToolVersion) -> None:
    """Refuse a trial that the installed release cannot do, before any traffic."""
    if version.tool != options.tool:
        raise BenchError(
            f"{options.tool} was asked for and the program is {version.tool} {version.text}",
            where=f"trial {options.id}",
            code="wrong_tool",
        )
    if version.numbers < _OLDEST[version.tool]:
        raise _too_old(options, version, "this module", _OLDEST[version.tool], "the oldest whose output is known")
    for feature in needed_features(options):
        first, source = FIRST_RELEASE[(options.tool, feature)]
        if version.numbers < first:
            raise _too_old(options, version, feature, first, source)


def _too_old(
    options: TrialOptions, version: ToolVersion, feature: str, first: tuple[int, ...], source: str
) -> BenchError:
    needed = ".".join(str(number) for number in first)
    return BenchError(
        f"{version.tool} {version.text} is too old for {feature}: {needed} is needed ({source})",
        where=f"trial {options.id}",
        remedy=f"Install {version.tool} {needed} or newer, or leave the option out",
        code="tool_too_old",
    )


def per_stream(total: int, parallel: int) -> int:
    """The tools take the rate of one stream."""
    return max(1, round(total / parallel))


def parse_rate(text: str) -> tuple[int | None, int | None]:
    """Bits per second and packets per second of a rate such as ``100M``, ``5000pps`` or ``0`` (no limit)."""
    match = _RATE.match(text.strip())
    if match is None:
        raise BenchError(
            f"{text!r} is no rate",
            where="rate",
            remedy="Write bit/s as 2500000, 10M or 1.5G, packets per second as 5000pps, and 0 for no limit",
            code="bad_option",
        )
    value = round(float(match["number"]) * {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}[match["unit"].lower()])
    if value == 0:
        return None, None
    return (None, value) if match["pps"] else (value, None)


def trial_spec() -> dict[str, t.Any]:
    """The argument spec of one trial, shared by the client's and the server's module."""
    return {
        "server": {"type": "str"},
        "port": {"type": "int"},
        "tool": {"type": "str", "choices": list(TOOLS), "default": "iperf2"},
        "protocol": {"type": "str", "choices": list(PROTOCOLS), "default": "tcp"},
        "direction": {"type": "str", "choices": list(DIRECTIONS), "default": FORWARD},
        "parallel": {"type": "int", "default": 1},
        "port_per_stream": {"type": "bool", "default": False},
        "length_bytes": {"type": "int"},
        "mss_bytes": {"type": "int"},
        "window_bytes": {"type": "int"},
        "rate": {"type": "str", "default": "0"},
        "duration_s": {"type": "float", "default": 10.0},
        "warmup_s": {"type": "float", "default": 0.0},
        "interval_s": {"type": "float", "default": 0.5},
        "bind": {"type": "str"},
        "tos": {"type": "int"},
        "congestion_control": {"type": "str"},
        "link_speed_bps": {"type": "int"},
    }


def from_params(params: t.Mapping[str, t.Any], **more: t.Any) -> TrialOptions:
    """Options from parameters that passed :func:`trial_spec`; absent ones keep their defaults."""
    names = {field.name for field in dataclasses.fields(TrialOptions)}
    values = {key: value for key, value in {**params, **more}.items() if key in names and value is not None}
    values.setdefault("port", DEFAULT_PORTS[values.get("tool", "iperf2")])
    if params.get("bind"):
        values["bind_address"] = params["bind"]
    values["rate_bps"], values["rate_pps"] = parse_rate(params.get("rate") or "0")
    return TrialOptions(**values)


def flags(pairs: t.Iterable[tuple[str, t.Any]]) -> list[str]:
    """Command line words for those options that are set; True stands for an option without a value."""
    words: list[str] = []
    for flag, value in pairs:
        if value is True:
            words.append(flag)
        elif value is not None and value is not False:
            words += [flag, str(value)]
    return words
