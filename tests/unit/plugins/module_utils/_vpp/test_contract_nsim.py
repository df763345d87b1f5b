# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The contract with VPP's network simulator: run on the fake and, with the marker vpp, on a real VPP 26.06."""

from __future__ import annotations

import json
import typing as t

import pytest

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError, ParseError
from ansible_collections.fastpath.bench.plugins.module_utils._vpp import interface_run, nsim
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.session import NO_INDEX, Call
from ansible_collections.fastpath.bench.plugins.modules import vpp_nsim

ANY = tuple(range(-200, 0))
ASKED = nsim.Settings(delay_us=10_000, bandwidth_bps=1_000_000_000, packets_per_drop=50)


class Box:
    """Short words for the tests."""

    def __init__(self, vpp: t.Any) -> None:
        self.vpp = vpp
        self.slept: list[float] = []
        config: list[dict[str, t.Any]] = [
            {"type": "af_packet", "host_interface": name, "up": True, "addresses": [f"10.0.{number}.1/24"]}
            for number, name in enumerate(("eth1", "eth2"))
        ]
        config.append({"type": "vlan", "parent": "host-eth1", "vlan_id": 5})
        with vpp.session() as session:
            interface_run.run(session, config, "merged", links=vpp.links(session))

    def nsim(self, settings: nsim.Settings | None = None, state: str = "merged", **options: t.Any) -> dict[str, t.Any]:
        with self.vpp.session() as session:
            result = nsim.run(session, state, settings=settings, sleep=self.slept.append, **options)
        json.dumps(result)  # Ansible could not hand it on otherwise
        return result

    def raw(self, request: str, **fields: t.Any) -> t.Any:
        """The answer, whatever its retval."""
        with self.vpp.session() as session:
            return session.batch([Call(request, fields, ANY)])[0]

    def index(self, name: str) -> int:
        rows = self.raw("sw_interface_dump", sw_if_index=NO_INDEX)
        return next(row.sw_if_index for row in rows if row.interface_name == name)

    def output(self, name: str, on: bool) -> int:
        fields = {"enable_disable": on, "sw_if_index": self.index(name)}
        return int(self.raw("nsim_output_feature_enable_disable", **fields).retval)


@pytest.fixture
def box(vpp: t.Any) -> Box:
    return Box(vpp)


def refused(code: str, call: t.Callable[..., t.Any], *args: t.Any, **options: t.Any) -> BenchError:
    with pytest.raises(BenchError) as caught:
        call(*args, **options)
    assert caught.value.code == code, caught.value
    return caught.value


def test_it_is_set_read_back_changed_and_switched_off(box: Box) -> None:
    off = box.nsim(state="gathered")["nsim"]
    assert off == {"configured": False, "output": [], "cross_connect": []}
    first = box.nsim(ASKED, output=["host-eth2"])
    assert first["changed"]
    assert first["nsim"] == {
        "configured": True,
        "delay_us": 10_000,
        "bandwidth_bps": 1e9,
        "packet_bytes": 1500,
        "loss_ratio": 0.02,
        "reorder_ratio": 0.0,
        "wheel_packets": 834,
        # one worker: without it a packet of the main thread would end VPP
        "poll_main_thread": True,
        "output": ["host-eth2"],
        "cross_connect": [],
    }
    again = box.nsim(ASKED, output=["host-eth2"])
    assert (again["changed"], again["changes"]) == (False, [])
    more = box.nsim(nsim.Settings(20_000, 500_000_000, 1000, 0, 100), output=["host-eth1"])
    assert [one["name"] for one in more["changes"]] == ["settings", "host-eth1"]
    assert more["nsim"]["output"] == ["host-eth1", "host-eth2"]
    assert (more["nsim"]["loss_ratio"], more["nsim"]["reorder_ratio"]) == (0.0, 0.01)
    # what was under way had the old delay to leave
    assert box.slept == [pytest.approx(0.06)]
    only = box.nsim(state="replaced", output=["host-eth1"])
    assert only["changes"] == [{"name": "host-eth2", "action": "remove"}]
    gone = box.nsim(state="deleted")
    assert (gone["nsim"]["output"], gone["nsim"]["configured"]) == ([], True)
    assert not box.nsim(state="deleted")["changed"]


def test_a_pair_is_connected_and_taken_apart(box: Box) -> None:
    pair = ["host-eth1", "host-eth2"]
    assert box.nsim(ASKED, cross_connect=pair)["nsim"]["cross_connect"] == pair
    assert not box.nsim(ASKED, cross_connect=pair)["changed"]
    # new settings, same pair
    assert box.nsim(nsim.Settings(5000, 10**9))["nsim"]["cross_connect"] == pair
    assert box.nsim(state="deleted")["nsim"]["cross_connect"] == []
    assert not box.nsim(state="deleted")["changed"]


def test_check_mode_says_it_and_does_nothing(box: Box) -> None:
    told = box.nsim(ASKED, output=["host-eth1"], check_mode=True)
    assert (told["changed"], told["nsim"]["output"], told["nsim"]["loss_ratio"]) == (True, ["host-eth1"], 0.02)
    assert not box.nsim(state="gathered")["nsim"]["configured"]


def test_what_was_switched_on_twice_is_put_right(box: Box) -> None:
    box.nsim(ASKED, output=["host-eth1"])
    assert box.output("host-eth1", True) == 0
    assert box.output("host-eth1", False) == 0
    # VPP counts: it is still on
    assert box.nsim(state="gathered")["nsim"]["output"] == ["host-eth1"]
    box.output("host-eth1", True)
    put_right = box.nsim(ASKED, output=["host-eth1"])
    assert put_right["changes"] == [
        {"name": "host-eth1", "action": "set", "property": "times", "before": 2, "after": 1}
    ]
    assert not box.nsim(ASKED, output=["host-eth1"])["changed"]
    box.output("host-eth1", True)
    assert box.nsim(state="deleted")["nsim"]["output"] == []


def test_vpp_says_what_it_does_not_take(box: Box) -> None:
    assert box.output("host-eth1", True) == -100
    fields = {**ASKED.fields}
    for field, retval in (
        ("bandwidth_in_bits_per_second", -7),
        ("delay_in_usec", -8),
        ("average_packet_size", -150),
    ):
        assert box.raw("nsim_configure2", **{**fields, field: 0}).retval == retval
    box.nsim(ASKED)
    assert box.output("host-eth1.5", True) == -2
    refused("no_interface", box.nsim, output=["host-eth1.5"])
    refused("no_interface", box.nsim, output=["nothing"])


def test_without_settings_nothing_is_switched_on(box: Box) -> None:
    refused("nsim_not_configured", box.nsim, output=["host-eth1"])
    assert not box.nsim(state="deleted")["changed"]


@pytest.mark.parametrize(
    "other",
    [
        nsim.Settings(10_000, 1_000_000_000),
        nsim.Settings(10_000, 1_000_000_000, packets_per_drop=1_000_000),
        nsim.Settings(10_010, 1_000_000_000, packets_per_drop=50),
        nsim.Settings(10_000, 1_010_000_000, packets_per_drop=50),
        nsim.Settings(10_000, 1_000_000_000, packets_per_drop=51),
        nsim.Settings(999, 999, 64),
        nsim.Settings(1_234_567, 12_345, 9000, 1, 1),
        nsim.Settings(12_345, 1_234_567, 1500, 3, 7),
    ],
)
def test_small_differences_are_seen_in_what_vpp_rounds(box: Box, other: nsim.Settings) -> None:
    box.nsim(ASKED)
    assert box.nsim(other)["changed"]
    assert not box.nsim(other)["changed"]
    assert box.nsim(ASKED)["changed"]


@pytest.mark.vpp
def test_a_packet_of_the_main_thread_goes_through_it(real_vpp: t.Any) -> None:
    """Without a wheel for the main thread VPP ends here."""
    box = Box(real_vpp)
    real_vpp.process.ip("addr", "replace", "10.0.0.2/24", "dev", "eth1p")
    box.nsim(nsim.Settings(20_000, 10**9), output=["host-eth1"])
    answer = real_vpp.process.vppctl("ping 10.0.0.2 repeat 3")
    assert " received" in answer
    assert box.nsim(state="gathered")["nsim"]["output"] == ["host-eth1"]


# No VPP is needed


def test_ratios_and_numbers_of_packets() -> None:
    names = ("loss_ratio", "packets_per_drop")
    assert nsim.packets_of(0.02, None, names) == 50
    assert nsim.packets_of(None, 7, names) == 7
    assert nsim.packets_of(None, None, names) == nsim.packets_of(0.0, None, names) == 0
    assert "0.333333, 0.5 and 1" in str(refused("bad_option", nsim.packets_of, 0.45, None, names).remedy)
    refused("bad_option", nsim.packets_of, 0.5, 2, names)
    refused("bad_option", nsim.packets_of, 1.5, None, names)
    refused("bad_option", nsim.packets_of, -0.5, None, names)
    refused("bad_option", nsim.packets_of, 1e-12, None, names)


@pytest.mark.parametrize("field", ["delay_us", "bandwidth_bps", "packet_bytes", "packets_per_drop"])
def test_values_that_vpp_could_not_take_are_refused_first(field: str) -> None:
    values = {"delay_us": 1, "bandwidth_bps": 1, field: -1}
    refused("bad_option", nsim.Settings(**values).check)


def test_another_text_is_no_guess() -> None:
    with pytest.raises(ParseError):
        nsim.parse("something else\n")


def test_the_modules_options_become_settings() -> None:
    params: dict[str, t.Any] = dict.fromkeys(vpp_nsim.argument_spec())
    assert vpp_nsim.settings_from(params) is None
    params.update(delay_us=5, bandwidth_bps=7, packet_bytes=100, loss_ratio=0.01, packets_per_reorder=9)
    assert vpp_nsim.settings_from(params) == nsim.Settings(5, 7, 100, 100, 9)
