# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The contract with VPP's IPsec: run on the fake and, with the marker vpp, on a real VPP 26.06."""

from __future__ import annotations

import json
import typing as t

import pytest

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._vpp import interface_run, ipsec
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.session import NO_INDEX, Call
from ansible_collections.fastpath.bench.plugins.modules import vpp_ipsec

SECRET = "a secret that nobody may see"
ONE = {
    "number": 1,
    "local": "10.0.1.1",
    "remote": "10.0.1.2",
    "spi_in": 1003,
    "spi_out": 1002,
    "unnumbered": "host-eth1",
    "mtu_bytes": 1446,
    "mss_bytes": 1406,
    "mss6_bytes": 0,
}
TWO = {**ONE, "number": 2, "spi_in": 1005, "spi_out": 1004, "mss_bytes": 0}


class Box:
    """Short words for the tests."""

    def __init__(self, vpp: t.Any) -> None:
        self.vpp = vpp
        config: list[dict[str, t.Any]] = [
            {"type": "af_packet", "host_interface": name, "up": True, "addresses": [f"10.0.{number}.1/24"]}
            for number, name in enumerate(("eth1", "eth2"))
        ]
        with vpp.session() as session:
            interface_run.run(session, config, "merged", links=vpp.links(session))

    def ipsec(self, *items: dict[str, t.Any], state: str = "replaced", **options: t.Any) -> dict[str, t.Any]:
        options = {"secret": SECRET, **options}
        with self.vpp.session() as session:
            result, _found = ipsec.run(session, state, tunnels=ipsec.tunnels_of(items), **options)
        shown = json.dumps(result)  # Ansible could not hand it on otherwise
        for one in items:
            for spi, ends in ((one["spi_out"], ("local", "remote")), (one["spi_in"], ("remote", "local"))):
                keys = ipsec.keys_of(options["secret"], spi, one[ends[0]], one[ends[1]], "aes128gcm16")
                assert keys.key.hex() not in shown
        assert options["secret"] not in shown
        return result

    def raw(self, request: str, **fields: t.Any) -> t.Any:
        with self.vpp.session() as session:
            return session.batch([Call(request, fields, tuple(range(-200, 0)))])[0]


@pytest.fixture
def box(vpp: t.Any) -> Box:
    return Box(vpp)


def refused(code: str, call: t.Callable[..., t.Any], *args: t.Any, **options: t.Any) -> BenchError:
    with pytest.raises(BenchError) as caught:
        call(*args, **options)
    assert caught.value.code == code, caught.value
    return caught.value


def test_tunnels_are_made_read_back_changed_and_taken_away(box: Box) -> None:
    assert box.ipsec(state="gathered")["tunnels"] == []
    planned = box.ipsec(ONE, check_mode=True)
    assert [(one["name"], one["action"]) for one in planned["changes"]] == [("ipsec1", "create")]
    assert box.ipsec(state="gathered")["tunnels"] == []
    made = box.ipsec(ONE)
    assert made["changed"]
    assert made["tunnels"] == [
        {
            "number": 1,
            "interface": "ipsec1",
            "local": "10.0.1.1",
            "remote": "10.0.1.2",
            "spi_in": 1003,
            "spi_out": 1002,
            "algorithm": "aes128gcm16",
            "unnumbered": "host-eth1",
            "mtu_bytes": 1446,
            "mss_bytes": [1406, 0],
            "up": True,
        }
    ]
    assert made["engines"] == ["native"]
    again = box.ipsec(ONE)
    assert not again["changed"]
    assert again["changes"] == []
    # the second one beside it, the first as it is
    more = box.ipsec(ONE, TWO)
    assert [(one["name"], one["action"]) for one in more["changes"]] == [("ipsec2", "create")]
    # and away again
    less = box.ipsec(TWO)
    assert [(one["name"], one["action"]) for one in less["changes"]] == [("ipsec1", "remove")]
    assert box.ipsec(state="deleted")["changed"]
    assert not box.ipsec(state="deleted")["changed"]
    assert box.raw("ipsec_sa_v3_dump", sa_id=NO_INDEX) == []
    assert box.raw("ipsec_itf_dump", sw_if_index=NO_INDEX) == []
    assert box.raw("ip_unnumbered_dump", sw_if_index=NO_INDEX) == []


@pytest.mark.parametrize(
    ("change", "properties"),
    [
        ({"spi_in": 2003}, ["inbound SA"]),
        ({"remote": "10.0.1.3"}, ["outbound SA", "inbound SA"]),
        ({"mtu_bytes": 1400}, ["mtu_bytes"]),
        ({"mss_bytes": 0}, ["mss_bytes"]),
        ({"unnumbered": "host-eth2"}, ["unnumbered"]),
    ],
)
def test_what_differs_is_named_and_made_anew(box: Box, change: dict[str, t.Any], properties: list[str]) -> None:
    box.ipsec(ONE)
    result = box.ipsec({**ONE, **change})
    assert [one["properties"] for one in result["changes"]] == [properties]
    assert not box.ipsec({**ONE, **change})["changed"]


def test_another_secret_is_seen_and_not_shown(box: Box) -> None:
    box.ipsec(ONE)
    result = box.ipsec(ONE, secret="quite another secret")
    assert result["changes"][0]["properties"] == ["outbound keys", "inbound keys"]
    assert SECRET not in json.dumps(result)


def test_another_engine(box: Box) -> None:
    result = box.ipsec(ONE, engine="openssl")
    assert result["engines"] == ["openssl"]
    assert not box.ipsec(ONE, engine="any")["changed"]
    assert box.ipsec(ONE)["engines"] == ["native"]


def test_what_others_made_is_left_alone(box: Box) -> None:
    box.raw("ipsec_itf_create", itf={"user_instance": 1, "mode": 0, "sw_if_index": 0})
    refused("interface_taken", box.ipsec, ONE)
    box.ipsec(TWO)
    box.ipsec(state="deleted")
    assert len(box.raw("ipsec_itf_dump", sw_if_index=NO_INDEX)) == 1


def test_an_interface_that_is_not_there(box: Box) -> None:
    refused("no_interface", box.ipsec, {**ONE, "unnumbered": "host-eth9"})


@pytest.mark.vpp
def test_the_script_makes_the_same(request: pytest.FixtureRequest, tmp_path: t.Any) -> None:
    real = request.getfixturevalue("real_vpp")
    box = Box(real)
    file = tmp_path / "ipsec.cli"
    both = {**ONE, "mss6_bytes": 1386}
    file.write_text(ipsec.script(ipsec.tunnels_of([both, TWO]), SECRET, "aes128gcm16"))
    said = real.process.vppctl(f"exec {file}")
    assert "error" not in said.lower(), said
    result = box.ipsec(both, TWO)
    assert not result["changed"], result["changes"]


# Without a VPP


def test_both_ends_have_the_same_keys_and_each_direction_its_own() -> None:
    out = ipsec.keys_of(SECRET, 1002, "10.0.1.1", "10.0.1.2", "aes128gcm16")
    assert out == ipsec.keys_of(SECRET, 1002, "10.0.1.1", "10.0.1.2", "aes128gcm16")
    others = [
        ipsec.keys_of(SECRET, 1003, "10.0.1.2", "10.0.1.1", "aes128gcm16"),
        ipsec.keys_of(SECRET + "x", 1002, "10.0.1.1", "10.0.1.2", "aes128gcm16"),
        ipsec.keys_of(SECRET, 1002, "10.0.1.1", "10.0.1.2", "aes256gcm16"),
    ]
    assert len({out.key, *(one.key[:16] for one in others)}) == 4
    assert [len(out.key), len(others[-1].key)] == [16, 32]
    assert out.key.hex() not in repr(out)


@pytest.mark.parametrize(
    "change",
    [
        {"spi_in": 255},
        {"remote": "fd00::1"},
        {"remote": "10.0.1.1"},
        {"local": "nowhere"},
        {"number": 64},
        {"spi_in": 1002},
        {"mtu_bytes": 20},
    ],
)
def test_bad_options_are_refused(change: dict[str, t.Any]) -> None:
    refused("bad_option", ipsec.tunnels_of, [{**ONE, **change}])


def test_counters_rise_or_begin_anew() -> None:
    before = [{"child": "ipsec1", "spi_in": 1, "spi_out": 2, "packets_in": 5, "packets_out": 7, "bytes_in": 50,
               "bytes_out": 70}]  # fmt: skip
    grown = [{**before[0], "packets_in": 15, "packets_out": 17}]
    assert ipsec.risen(before, grown)["ipsec1"]["packets_in"] == 10
    anew = [{**before[0], "packets_in": 3}]
    assert ipsec.risen(before, anew)["ipsec1"]["packets_in"] == 3
    ipsec.prove(ipsec.risen(before, grown), 10)
    refused("plaintext_path", ipsec.prove, ipsec.risen(before, grown), 11)


def test_the_script_is_for_root_alone(tmp_path: t.Any) -> None:
    file = tmp_path / "fastpath-ipsec.cli"
    assert vpp_ipsec._write_script(str(file), b"key", check_mode=True)
    assert not file.exists()
    assert vpp_ipsec._write_script(str(file), b"key", check_mode=False)
    assert file.stat().st_mode & 0o777 == 0o600
    assert not vpp_ipsec._write_script(str(file), b"key", check_mode=False)
    file.chmod(0o644)
    assert vpp_ipsec._write_script(str(file), b"key", check_mode=False)
    assert file.stat().st_mode & 0o777 == 0o600
    assert vpp_ipsec._write_script(str(file), None, check_mode=False)
    assert not file.exists()
    assert not vpp_ipsec._write_script(str(file), None, check_mode=False)
