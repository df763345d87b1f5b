# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the kernel's ESP carried: read from the kernel's own bytes, and cut to windows."""

from __future__ import annotations

import json
import pathlib
import re
import struct
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._host import esp_counters
from ansible_collections.fastpath.bench.plugins.module_utils._host.sample_cut import Recording, Window

#: A gateway with four tunnels: the kernel's answers, and what ``ip -s xfrm state`` printed; keys are zeroed.
FIXTURE = pathlib.Path(__file__).parents[3] / "fixtures" / "ipsec" / "xfrm-state-6.1.json"


def messages(data: bytes) -> t.Iterator[bytes]:
    at = 0
    while at < len(data):
        length, _kind = struct.unpack_from("=IH", data, at)
        yield data[at + 16 : at + length]
        at += (length + 3) & ~3


def test_the_kernels_answers_are_read_as_ip_reads_them() -> None:
    told = json.loads(FIXTURE.read_text())
    found = [esp_counters.read_state(one) for data in told["netlink"] for one in messages(bytes.fromhex(data))]
    text = "\n".join(told["ip_s_xfrm_state"])
    printed = re.findall(
        r"src (\S+) dst (\S+)\n.*?spi 0x(\w+)\(.*?lifetime current:\n\s+(\d+)\(bytes\), (\d+)\(packets\)", text, re.S
    )
    assert len(printed) == 8
    assert [one for one in found if one is not None] == [
        (source, target, int(spi, 16), int(packets), int(size)) for source, target, spi, size, packets in printed
    ]


def test_what_is_not_esp_or_cut_off_is_left_out() -> None:
    whole = next(messages(bytes.fromhex(json.loads(FIXTURE.read_text())["netlink"][0])))
    assert esp_counters.read_state(whole) is not None
    assert esp_counters.read_state(whole[:213]) is None
    ah = bytearray(whole)
    ah[76] = 51
    assert esp_counters.read_state(bytes(ah)) is None


def test_what_grew_in_a_window_with_keys_renewed_and_used_again() -> None:
    series = [
        (0.0, {"a>b/0x1": [10, 1000]}),
        (1.0, {"a>b/0x1": [20, 2000]}),
        (2.0, {"a>b/0x1": [25, 2500], "a>b/0x2": [5, 500]}),
        (3.0, {"a>b/0x2": [15, 1500]}),
        (4.0, {"a>b/0x2": [3, 300]}),
        (5.0, {"a>b/0x2": [1000, 100_000]}),
    ]
    # worked out by hand: 5 of the old key, 5 and 10 of the new one, 3 of another one by the same number
    made = esp_counters.cut(series, 1.0, 4.0)
    assert made is not None
    assert (made["packets"], made["bytes"], made["counted_s"]) == (23, 2300, 3.0)
    assert made["sas"][1] == {"source": "a", "target": "b", "spi": "0x2", "packets": 18, "bytes": 1800}


def test_no_association_has_carried_nothing_and_no_reading_is_not_known() -> None:
    none = esp_counters.cut([(0.0, {}), (1.0, {}), (2.0, {})], 0.5, 2.0)
    assert none == {"packets": 0, "bytes": 0, "counted_s": 2.0, "sas": []}
    assert esp_counters.cut([], 0.0, 1.0) is None
    assert esp_counters.cut([(0.5, {"a>b/0x1": [1, 1]})], 0.0, 1.0) is None


def test_it_is_in_the_report_of_each_window() -> None:
    def record(number: int) -> str:
        esp = {"esp": {"a>b/0x1": [100 * number, 1000 * number]}} if number % 2 else {}
        return json.dumps({"m": number / 4, "o": 0.0, "stat": "cpu0 1 0 0 0 0 0 0 0 0 0", "if": {}, "softnet": {},
                           "softnet_rows": 0, **esp}) + "\n"  # fmt: skip

    header = {"type": "header", "schema": 1, "interval_s": 0.25, "interfaces": [], "links": {}, "counters": []}
    lines = [json.dumps(header) + "\n", *(record(number) for number in range(21))]
    report = Recording(lambda: lines).cut([Window("one", 1.25, 4.25)])["one"]
    assert report["reason"] is None
    # from sample 5 to 17
    assert (report["esp"]["packets"], report["esp"]["bytes"]) == (1200, 12000)
