# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Readers of the kernel's text files: pure functions from text to numbers."""

from __future__ import annotations

import dataclasses
import re

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import ParseError

#: Fields of a cpu line in /proc/stat that add up to all time; guest time is contained in user and nice.
CPU_FIELDS = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")

#: Counters of softnet_stat and softirqs are unsigned 32-bit numbers and wrap in normal use.
WRAP_32 = 1 << 32

#: /sys/class/net/<name>/statistics, in the order in which samples carry them.
INTERFACE_COUNTERS = (
    "rx_packets",
    "rx_bytes",
    "tx_packets",
    "tx_bytes",
    "rx_dropped",
    "tx_dropped",
    "rx_errors",
    "tx_errors",
    "rx_missed_errors",
)


def parse_cpu_times(text: str) -> dict[int, tuple[int, ...]]:
    """``/proc/stat``: ticks by CPU number, in the order of :data:`CPU_FIELDS`. Offline CPUs are not in it."""
    times: dict[int, tuple[int, ...]] = {}
    for line in text.splitlines():
        if not line.startswith("cpu"):
            break
        name, *numbers = line.split()
        if name == "cpu":
            continue
        if len(numbers) < len(CPU_FIELDS):
            raise ParseError(f"a cpu line of /proc/stat has fewer than {len(CPU_FIELDS)} numbers", line=line)
        try:
            times[int(name[3:])] = tuple(int(number) for number in numbers[: len(CPU_FIELDS)])
        except ValueError:
            raise ParseError("a cpu line of /proc/stat holds something else than numbers", line=line) from None
    if not times:
        raise ParseError("/proc/stat has no line of a CPU", line=text.split("\n", 1)[0])
    return times


@dataclasses.dataclass(frozen=True)
class SoftnetRow:
    """One CPU's line of ``/proc/net/softnet_stat``. ``cpu`` is None before kernel 5.12, which did not print it."""

    cpu: int | None
    processed: int
    dropped: int
    time_squeeze: int
    received_rps: int
    flow_limit: int


def parse_softnet_row(line: str) -> SoftnetRow:
    try:
        numbers = [int(field, 16) for field in line.split()]
    except ValueError:
        raise ParseError("a line of softnet_stat holds something else than hexadecimal numbers", line=line) from None
    if len(numbers) < 11:
        raise ParseError("a line of softnet_stat has fewer than 11 numbers", line=line)
    return SoftnetRow(
        cpu=numbers[12] if len(numbers) > 12 else None,
        processed=numbers[0],
        dropped=numbers[1],
        time_squeeze=numbers[2],
        received_rps=numbers[9],
        flow_limit=numbers[10],
    )


def parse_softirq_row(line: str) -> tuple[str, list[int]]:
    """One line of ``/proc/softirqs``: its name and a count per possible CPU."""
    name, separator, rest = line.partition(":")
    try:
        if not separator:
            raise ValueError
        return name.strip(), [int(field) for field in rest.split()]
    except ValueError:
        raise ParseError("a line of /proc/softirqs is not 'NAME: count count ...'", line=line) from None


def parse_cpu_list(text: str) -> list[int]:
    """``0-3,8`` as the kernel writes sets of CPUs and nodes; an empty text is an empty set."""
    cpus: list[int] = []
    for part in filter(None, (piece.strip() for piece in text.strip().split(","))):
        first, _dash, last = part.partition("-")
        try:
            cpus.extend(range(int(first), int(last or first) + 1))
        except ValueError:
            raise ParseError("not a list of CPUs", line=text.strip()) from None
    return cpus


#: How drivers name their per-queue packet and byte counters in ``ethtool -S``.
_QUEUE_NAMES = (
    # ixgbe, igb, i40e, ice, mlx4 (newer), virtio_net, and with "xdp_" veth
    re.compile(r"(?P<way>[rt]x)_queue_(?P<queue>\d+)_(?:xdp_)?(?P<unit>packets|bytes)"),
    re.compile(r"(?P<way>[rt]x)-(?P<queue>\d+)\.(?:[rt]x_)?(?P<unit>packets|bytes)"),  # i40e, iavf
    re.compile(r"(?P<way>[rt]x)_?(?P<queue>\d+)_(?P<unit>packets|bytes)"),  # mlx5, virtio_net since 6.9, bnx2x, gve
    re.compile(r"queue_(?P<queue>\d+)_(?P<way>[rt]x)_(?P<unit>cnt|bytes)"),  # ena
    re.compile(r"(?P<way>[rt]x)-?q(?:ueue)?-?(?P<queue>\d+)[ _.-](?P<unit>packets|bytes)"),  # hns3-like, stmmac
    re.compile(r"\[(?P<queue>\d+)\]:? ?(?P<way>[rt]x)_ucast_(?P<unit>packets|bytes)"),  # bnxt
    re.compile(r"(?P<way>[rt]xq)(?P<queue>\d+)_(?P<unit>pktnum|bytes)"),  # hns3, hinic
)
_UNITS = {"packets": "packets", "bytes": "bytes", "cnt": "packets", "pktnum": "packets"}


def queue_counter(name: str) -> tuple[str, int, str] | None:
    """(``rx``|``tx``, queue, ``packets``|``bytes``) when that is what the statistic counts, else None."""
    for pattern in _QUEUE_NAMES:
        match = pattern.fullmatch(name)
        if match:
            return match["way"][:2], int(match["queue"]), _UNITS[match["unit"]]
    return None


def parse_snmp(text: str, group: str, name: str) -> int | None:
    """One counter of ``/proc/net/snmp`` (a line of names, then a line of values, per group)."""
    names: list[str] | None = None
    for line in text.splitlines():
        head, _colon, rest = line.partition(":")
        if head != group:
            continue
        if names is None:
            names = rest.split()
        else:
            values = rest.split()
            return int(values[names.index(name)]) if name in names else None
    return None


def parse_snmp6(text: str, name: str) -> int | None:
    """One counter of ``/proc/net/snmp6`` (name and value on a line)."""
    for line in text.splitlines():
        fields = line.split()
        if len(fields) == 2 and fields[0] == name:
            return int(fields[1])
    return None
