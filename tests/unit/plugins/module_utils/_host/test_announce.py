# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The frames, byte by byte."""

from __future__ import annotations

import ipaddress
import struct

import pytest

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._host import announce

MAC = bytes.fromhex("02fe46560f11")


def test_a_gratuitous_arp_asks_for_its_own_address():
    data = announce.arp_frame(MAC, ipaddress.IPv4Address("192.0.2.1"))
    assert len(data) == 60
    assert data[:14] == b"\xff" * 6 + MAC + b"\x08\x06"
    assert data[14:22] == bytes.fromhex("0001080006040001")
    assert data[22:28] == MAC
    assert data[28:32] == data[38:42] == bytes([192, 0, 2, 1])


def test_an_advertisement_overrides_and_has_a_valid_checksum():
    address = ipaddress.IPv6Address("2001:db8::1")
    data = announce.advertisement_frame(MAC, address, router=True)
    assert data[:14] == bytes.fromhex("333300000001") + MAC + b"\x86\xdd"
    packet, body = data[14:54], data[54:]
    assert (packet[6], packet[7]) == (58, 255)
    assert packet[8:24] == body[8:24] == address.packed
    assert body[0] == 136
    assert struct.unpack("!I", body[4:8])[0] == 0xA0000000
    assert body[24:] == b"\x02\x01" + MAC
    pseudo = packet[8:40] + struct.pack("!IxxxB", len(body), 58)
    assert announce._checksum(pseudo + body) == 0
    assert struct.unpack("!I", announce.advertisement_frame(MAC, address, router=False)[58:62])[0] == 0x20000000


class Links:
    def link(self, name: str) -> dict:
        return {
            "ifname": name,
            "address": "02:00:00:00:00:09",
            "addr_info": [{"local": "192.0.2.1", "scope": "global"}, {"local": "127.0.0.9", "scope": "host"}],
        }


def test_what_is_not_given_is_the_kernels_own():
    given = {"name": "eth1", "addresses": ["192.0.2.7/24"], "mac": "02:fe:00:00:00:01"}
    assert announce.wanted(Links(), [given, {"name": "eth2"}]) == [  # type: ignore[arg-type]
        announce.Announcement("eth1", "192.0.2.7/24", "02:fe:00:00:00:01"),
        announce.Announcement("eth2", "192.0.2.1", "02:00:00:00:00:09"),
    ]


@pytest.mark.parametrize(("address", "mac"), [("192.0.2.300", "02:fe:00:00:00:01"), ("192.0.2.1", "02:fe")])
def test_bad_input_is_named(address, mac):
    with pytest.raises(BenchError, match=r"interface eth1"):
        announce.frame(announce.Announcement("eth1", address, mac), router=True)
