# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import ParseError
from ansible_collections.fastpath.bench.plugins.module_utils._host import procfs

# Linux 6.18, 2 CPUs
STAT = """cpu  25135 98247 14411 30144 441 0 464 144 0 0
cpu0 10160 49015 7140 17613 179 0 289 73 0 0
cpu1 14974 49231 7270 12530 261 0 175 71 0 0
intr 1150260 0 0 0 0 0
ctxt 1990115
"""
# Linux 6.18: 15 columns, the CPU in the 13th
SOFTNET = (
    "000a4c3b 00000000 00000007 00000000 00000000 00000000 00000000 00000000 00000000 00000012 00000000 00000000 "
    "00000000 00000000 00000000\n"
    "00026300 00000002 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000003 00000000 "
    "00000001 00000000 00000000\n"
)
# Linux 5.10: 11 columns
SOFTNET_OLD = "0000272d 00000000 00000003 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000\n"
SNMP = """Ip: Forwarding DefaultTTL
Ip: 1 64
Tcp: RtoAlgorithm RtoMin RtoMax MaxConn ActiveOpens InErrs OutRsts InCsumErrors
Tcp: 1 200 120000 -1 39 0 8 5
Udp: InDatagrams NoPorts InErrors InCsumErrors
Udp: 12 3 2 1
"""


def test_cpu_times():
    times = procfs.parse_cpu_times(STAT)
    assert times == {
        0: (10160, 49015, 7140, 17613, 179, 0, 289, 73),
        1: (14974, 49231, 7270, 12530, 261, 0, 175, 71),
    }


def test_cpu_times_of_256_cpus_with_one_offline():
    lines = ["cpu  0 0 0 0 0 0 0 0 0 0", *(f"cpu{n} {n} 0 0 9 0 0 1 0 0 0" for n in range(256) if n != 77)]
    times = procfs.parse_cpu_times("\n".join(lines))
    assert len(times) == 255
    assert 77 not in times
    assert times[255] == (255, 0, 0, 9, 0, 0, 1, 0)


@pytest.mark.parametrize(
    "text", ["", "intr 1 2\n", "cpu  1 2 3\n", "cpu0 1 2 3\n", "cpu0 1 2 3 4 5 6 7 x\n", "cpux 1 1 1 1 1 1 1 1"]
)
def test_cpu_times_unreadable(text):
    with pytest.raises(ParseError):
        procfs.parse_cpu_times(text)


def test_softnet():
    first, second = (procfs.parse_softnet_row(line) for line in SOFTNET.splitlines())
    assert first == procfs.SoftnetRow(0, 0xA4C3B, 0, 7, 0x12, 0)
    assert second == procfs.SoftnetRow(1, 0x26300, 2, 0, 0, 3)


def test_softnet_before_it_named_the_cpu():
    assert procfs.parse_softnet_row(SOFTNET_OLD) == procfs.SoftnetRow(None, 0x272D, 0, 3, 0, 0)


@pytest.mark.parametrize("line", ["", "0000 0001", "zz " * 13])
def test_softnet_unreadable(line):
    with pytest.raises(ParseError):
        procfs.parse_softnet_row(line)


def test_softirqs():
    assert procfs.parse_softirq_row("      NET_RX:     166470      63471") == ("NET_RX", [166470, 63471])
    with pytest.raises(ParseError):
        procfs.parse_softirq_row("                    CPU0       CPU1")


@pytest.mark.parametrize(
    ("text", "expected"),
    [("0-3,8", [0, 1, 2, 3, 8]), ("", []), ("\n", []), ("5\n", [5]), ("0-255", list(range(256)))],
)
def test_cpu_list(text, expected):
    assert procfs.parse_cpu_list(text) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("rx_queue_1_xdp_packets", ("rx", 1, "packets")),  # veth
        ("rx_queue_0_xdp_bytes", ("rx", 0, "bytes")),
        ("tx_queue_0_xdp_xmit", None),
        ("rx_queue_0_drops", None),
        ("rx_queue_12_packets", ("rx", 12, "packets")),  # ixgbe, ice, ifb, older virtio_net
        ("tx-3.packets", ("tx", 3, "packets")),  # i40e
        ("tx-3.tx_bytes", ("tx", 3, "bytes")),
        ("rx0_packets", ("rx", 0, "packets")),  # mlx5, newer virtio_net
        ("tx63_bytes", ("tx", 63, "bytes")),
        ("queue_2_rx_cnt", ("rx", 2, "packets")),  # ena
        ("[4]: rx_ucast_packets", ("rx", 4, "packets")),  # bnxt
        ("rxq7_pktnum", ("rx", 7, "packets")),  # hns3
        ("rx_packets", None),
        ("rx64_byte_packets", None),
        ("rx_prio0_bytes", None),
        ("peer_ifindex", None),
    ],
)
def test_queue_counters_by_driver(name, expected):
    assert procfs.queue_counter(name) == expected


def test_snmp():
    assert procfs.parse_snmp(SNMP, "Tcp", "InCsumErrors") == 5
    assert procfs.parse_snmp(SNMP, "Udp", "InCsumErrors") == 1
    assert procfs.parse_snmp(SNMP, "Tcp", "NoSuch") is None
    assert procfs.parse_snmp("", "Tcp", "InCsumErrors") is None
    assert procfs.parse_snmp6("Udp6InCsumErrors \t 3\nx\n", "Udp6InCsumErrors") == 3
    assert procfs.parse_snmp6("", "Udp6InCsumErrors") is None


@given(
    st.text(max_size=300)
    | st.sampled_from([STAT, SOFTNET]).flatmap(lambda text: st.integers(0, len(text)).map(lambda cut: text[:cut]))
)
def test_no_text_gives_an_untyped_error(text):
    for parse in (
        procfs.parse_cpu_times,
        procfs.parse_softnet_row,
        procfs.parse_softirq_row,
        procfs.parse_cpu_list,
    ):
        with contextlib.suppress(ParseError):
            parse(text)
