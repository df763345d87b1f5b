# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Recorded reports of real releases, and the figures in them. Each is from the tool's own rows or by hand."""

from __future__ import annotations

import dataclasses
import pathlib
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._traffic import iperf2, iperf3
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.record import Measurement
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.steady import Figures, Window, figures

FIXTURES = pathlib.Path(__file__).resolve().parents[3] / "fixtures" / "iperf"


def text(name: str) -> str:
    return (FIXTURES / name).read_text(encoding="utf-8")


def report(name: str, **more: t.Any) -> Measurement:
    """A fixture, read as its name tells."""
    end = "server" if ".server." in name else "client"
    if name.startswith("iperf3"):
        return iperf3.parse(text(name), end=end, interval_s=0.5, **more)
    errors = FIXTURES / name.replace(f".{end}.txt", f".{end}.err.txt")
    stderr = errors.read_text(encoding="utf-8") if errors.exists() else ""
    options: dict[str, t.Any] = {"interval_s": 0.5, "stderr": stderr, "port": None, **more}
    return iperf2.parse(text(name), end=end, **options)


def counted(name: str, direction: str, role: str, window: Window, *, peer: bool = False, **more: t.Any) -> Figures:
    found = figures(report(name, **more), direction, role, window, peer_report=peer)
    assert found is not None
    return found


WHOLE, WHOLE_2 = Window(0, 1.5, 0.5), Window(0, 1.5, 0.5, 2)
STEADY, STEADY_2 = Window(0.5, 1.0, 0.5), Window(0.5, 1.0, 0.5, 2)
SLOW_2, SLOW_4 = Window(0.5, 2.0, 0.5, 2), Window(0.5, 2.0, 0.5, 4)


@dataclasses.dataclass(frozen=True)
class Case:
    file: str
    direction: str
    role: str
    window: Window
    #: Bytes in the tool's rows, seconds they cover.
    size: int
    seconds: float
    packets: int | None = None
    lost: int | None = None
    retransmits: int | None = None
    peer: bool = False


CASES = [
    Case("iperf-2.1.8_tcp_fwd.client.txt", "forward", "sender", WHOLE, 2950955068, 1.5092, retransmits=0),
    Case("iperf-2.1.8_tcp_fwd.client.txt", "forward", "sender", STEADY, 1038614528 + 1013841920, 1.0, retransmits=0),
    Case("iperf-2.1.8_tcp_fwd.server.txt", "forward", "receiver", WHOLE, 2950955068, 1.4999),
    Case("iperf-2.1.8_tcp_fwd.server.txt", "forward", "receiver", STEADY, 1039138816 + 1019740160, 0.9999),
    Case("iperf-2.1.8_tcp_rev.client.txt", "reverse", "receiver", WHOLE, 3140616192, 1.4998),
    Case("iperf-2.1.8_tcp_rev.server.txt", "reverse", "sender", WHOLE, 3140616192, 1.5068, retransmits=45),
    # the streams end at 1.6324 and 1.6471; the tool's own sum over them is what counts
    Case("iperf-2.1.8_tcp_p2.client.txt", "forward", "sender", WHOLE_2, 3542483064, 1.5019, retransmits=1016),
    Case(
        "iperf-2.1.8_tcp_p2.client.txt", "forward", "sender", STEADY_2, 1346371584 + 1137967104, 1.0, retransmits=1011,
    ),
    Case("iperf-2.1.8_tcp_p2.server.txt", "forward", "receiver", STEADY_2, 1348558952 + 1138967552, 1.0),
    Case("iperf-2.1.8_tcp_p2_rev.client.txt", "reverse", "receiver", STEADY_2, 1331340440 + 1305739264, 1.0),
    Case(
        "iperf-2.1.8_tcp_p2_rev.server.txt", "reverse", "sender", STEADY_2, 1351614464 + 1313079296, 1.0,
        retransmits=578,
    ),
    # full duplex: neither [FD1] nor [SUM] is one direction
    Case("iperf-2.1.8_tcp_fd.client.txt", "forward", "sender", WHOLE, 1511260220, 1.5001, retransmits=2096),
    Case("iperf-2.1.8_tcp_fd.client.txt", "reverse", "receiver", WHOLE, 1110441984, 1.5006),
    Case("iperf-2.1.8_tcp_fd.server.txt", "forward", "receiver", WHOLE, 1511260220, 1.5009),
    Case("iperf-2.1.8_tcp_fd.server.txt", "reverse", "sender", WHOLE, 1110441984, 1.5004, retransmits=1691),
    Case(
        "iperf-2.1.8_tcp_p2_fd.client.txt", "forward", "sender", WHOLE_2, 828112956 + 694157372, 1.5034,
        retransmits=2134,
    ),
    Case("iperf-2.1.8_tcp_p2_fd.client.txt", "reverse", "receiver", WHOLE_2, 1048707072 + 729677824, 1.5418),
    Case("iperf-2.1.8_udp_fwd.client.txt", "forward", "sender", WHOLE, 14952652, 1.5, packets=233634),
    Case("iperf-2.1.8_udp_fwd.client.txt", "forward", "receiver", WHOLE, 9685388, 1.4963, 151334, 82301, peer=True),
    Case("iperf-2.1.8_udp_fwd.server.txt", "forward", "receiver", WHOLE, 9685388, 1.4963, 151334, 82301),
    Case(
        "iperf-2.1.8_udp_fwd.server.txt", "forward", "receiver", STEADY, 3457408 + 3149632, 0.9963,
        75072 - 21050 + 75422 - 26209, 21050 + 26209,
    ),
    Case("iperf-2.1.8_udp_p2.client.txt", "forward", "receiver", WHOLE_2, 17154380, 1.4925, 268037, 124870, peer=True),
    Case("iperf-2.1.8_udp_p2.server.txt", "forward", "receiver", WHOLE_2, 17154380, 1.4925, 268037, 124870),
    Case("iperf-2.1.8_udp_rev.client.txt", "reverse", "receiver", WHOLE, 8546240, 1.4996, 133535, 79293),
    Case("iperf-2.1.8_udp_rev.server.txt", "reverse", "sender", WHOLE, 13620992, 1.5, packets=212828),
    Case("iperf-2.1.8_udp_fd.server.txt", "forward", "receiver", WHOLE, 7182988, 1.5, 112234, 79338),
    Case("iperf-2.1.8_udp_fd.server.txt", "reverse", "sender", WHOLE, 13218624, 1.5, packets=206541),
    # an emulated machine, hopelessly slow: rows before their connection, sums that mix intervals, ends that come late
    Case("iperf-2.1.8_slow_tcp_p4.client.txt", "forward", "sender", SLOW_4, 6815744, 2.0, retransmits=0),
    Case("iperf-2.1.8_slow_udp_p2.client.txt", "forward", "sender", SLOW_2, 111872, 2.0, packets=1748),
    Case("iperf-2.1.8_slow_udp_p2.server.txt", "forward", "receiver", SLOW_2, 111744, 2.0, 1746, 0),
    Case("iperf-2.1.8_slow_udp_p2_fd.client.txt", "reverse", "receiver", SLOW_2, 436480, 2.0, 6820, 1148),
    Case("iperf-2.0.5_tcp_p3.client.txt", "forward", "sender", Window(0, 2, 1, 3), 176 * 2**20, 2.0),
    Case(
        "iperf-2.0.5_udp.client.txt", "forward", "receiver", Window(0, 10, 10), int(1.25 * 2**20), 10.0, 891, 2,
        peer=True,
    ),
    # A6: the longest stream's time, not the sum of the rates (1209)
    Case("iperf-2.0.9_tcp_unaligned.client.txt", "forward", "sender", Window(0, 5, 1, 3), 738 * 2**20, 5.24),
    Case(
        "iperf-2.0.13_udp_p2.server.txt", "forward", "receiver", Window(0, 10, 1, 2), int(2.5 * 2**20), 10.0, 1785, 1,
    ),
    Case(
        "iperf-2.1.8_csv_tcp_p2.client.txt", "forward", "sender", Window(0.5, 0.5, 0.5, 2), 978714624 + 806354944, 0.5,
    ),
    Case("iperf-2.1.8_csv_udp.client.txt", "forward", "sender", Window(0.5, 0.5, 0.5), 624750, 0.5, packets=425),
    Case("iperf-2.1.9_csv_tcp.client.txt", "forward", "sender", Window(0, 2, 1), 10348134460, 2.0),
    Case("iperf-2.2.0_csv_tcp.client.txt", "forward", "sender", Window(1, 1, 1), 7550795776, 1.0),
    Case("iperf3-3.12_tcp.json", "forward", "sender", Window(0, 1, 0.5), 2030305280, 1.000804, retransmits=0),
    Case("iperf3-3.12_tcp.json", "forward", "receiver", Window(0, 1, 0.5), 2028994560, 1.002669, peer=True),
    Case("iperf3-3.12_tcpR.json", "reverse", "receiver", Window(0, 1, 0.5), 1665138688, 1.000717),
    Case(
        "iperf3-3.12_tcpR.json", "reverse", "sender", Window(0, 1, 0.5), 1668546560, 1.001021, retransmits=1216,
        peer=True,
    ),
    Case("iperf3-3.12_tcpB.json", "forward", "receiver", Window(0, 1, 0.5), 776584304, 1.000372, peer=True),
    Case("iperf3-3.12_tcpB.json", "reverse", "receiver", Window(0, 1, 0.5), 749338624, 1.000372),
    Case("iperf3-3.12_udp0.json", "forward", "receiver", Window(0, 1, 0.5), 5902592, 1.00046, 92228, 69532, peer=True),
    Case("iperf3-3.12_udp0.json", "forward", "sender", Window(0, 1, 0.5), 10352640, 1.00046, packets=161760),
]  # fmt: skip
