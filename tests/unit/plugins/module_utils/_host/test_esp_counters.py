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

import pytest

from ansible_collections.fastpath.bench.plugins.module_utils._host import esp_counters, netlink
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
    series: list[tuple[float, dict[str, list[int] | None]]] = [
        (0.0, {"a>b/0x1": [10, 1000]}),
        (1.0, {"a>b/0x1": [20, 2000]}),
        (2.0, {"a>b/0x1": [25, 2500], "a>b/0x2": [5, 500]}),
        (3.0, {"a>b/0x1": None, "a>b/0x2": [15, 1500]}),
        (4.0, {"a>b/0x2": [3, 300]}),
        (5.0, {"a>b/0x2": [1000, 100_000]}),
    ]
    # worked out by hand: 5 of the old key, 5 and 10 of the new one, 3 of another one by the same number
    made = esp_counters.cut(series, 1, 4)
    assert (made["packets"], made["bytes"], made["counted_s"]) == (23, 2300, 3.0)
    assert made["sas"][1] == {"source": "a", "target": "b", "spi": "0x2", "packets": 18, "bytes": 1800}


def test_no_association_has_carried_nothing() -> None:
    none = esp_counters.cut([(0.0, {}), (1.0, {}), (2.0, {})], 0, 2)
    assert none == {"packets": 0, "bytes": 0, "counted_s": 2.0, "sas": []}


def test_of_thousands_of_associations_only_those_that_carry_are_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = next(messages(bytes.fromhex(json.loads(FIXTURE.read_text())["netlink"][0])))
    carried = struct.unpack_from("=Q", whole, 168)[0]

    def answers(packets: int, spis: t.Iterable[int]) -> list[bytes]:
        """The first one has carried so many more."""
        return [
            whole[:72] + struct.pack("!I", spi) + whole[76:168] + struct.pack("=Q", carried + packets * (spi == 1))
            + whole[176:] for spi in spis
        ]  # fmt: skip

    said = [answers(0, range(1, 3001)), answers(5, range(1, 3001)), answers(5, range(1, 3001)), answers(5, (1,))]
    monkeypatch.setattr(netlink, "ask", lambda *_words, **_more: iter(said.pop(0)))
    sampler = esp_counters.Sampler(0.0)
    records = [sampler.sample(last=True) for _number in range(4)]
    sizes = [len(one) for one in records if one is not None]
    assert sizes == [3000, 1, 0, 2999]
    assert records[3] is not None
    assert set(records[3].values()) == {None}
    series = [(float(at), one) for at, one in enumerate(records) if one is not None]
    assert esp_counters.cut(series, 0, 3)["packets"] == 5
    # each has its row, also when it carried nothing
    assert len(esp_counters.cut(series, 0, 2)["sas"]) == 3000


def recording(readings: dict[int, dict[str, list[int] | None]]) -> Recording:
    """Five seconds, with some readings of the associations among the samples."""

    def record(number: int) -> str:
        esp = {"esp": readings[number]} if number in readings else {}
        return json.dumps({"m": number / 4, "o": 0.0, "stat": "cpu0 1 0 0 0 0 0 0 0 0 0", "if": {}, "softnet": {},
                           "softnet_rows": 0, **esp}) + "\n"  # fmt: skip

    header = {"type": "header", "schema": 1, "interval_s": 0.25, "interfaces": [], "links": {}, "counters": []}
    lines = [json.dumps(header) + "\n", *(record(number) for number in range(21))]
    return Recording(lambda: lines)


def test_it_is_in_the_report_of_each_window() -> None:
    readings: dict[int, dict[str, list[int] | None]] = {
        number: {"a>b/0x1": [100 * number, 1000 * number]} for number in range(1, 21, 2)
    }
    report = recording(readings).cut([Window("one", 1.25, 4.25)])["one"]
    assert report["reason"] is None
    # from sample 5 to 17
    assert (report["esp"]["packets"], report["esp"]["bytes"]) == (1200, 12000)


def test_readings_that_miss_the_window_are_no_word_on_it() -> None:
    # a gateway with so many associations that they are seldom read: what came before the window is not the window's
    seldom = recording({0: {"a>b/0x1": [0, 0]}, 15: {"a>b/0x1": [10, 1000]}, 20: {"a>b/0x1": [90, 9000]}})
    assert seldom.cut([Window("one", 3.0, 4.0)])["one"]["esp"] is None
    assert recording({}).cut([Window("one", 1.0, 4.0)])["one"]["esp"] is None
    often = recording({0: {"a>b/0x1": [0, 0]}, 13: {"a>b/0x1": [10, 1000]}, 16: {"a>b/0x1": [40, 4000]}})
    assert often.cut([Window("one", 3.0, 4.0)])["one"]["esp"]["packets"] == 30
