# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Proposals, what ESP adds to a packet, and what kernel and daemon have."""

from __future__ import annotations

import pathlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._ipsec import kernel_crypto, overhead, proposal

FIXTURES = pathlib.Path(__file__).parents[3] / "fixtures" / "ipsec"

GOOD = [
    ("aes128gcm16-prfsha256-x25519", proposal.IKE),
    ("aes256-sha256-modp2048", proposal.IKE),
    ("aes128-sha1-modp2048-ecp256", proposal.IKE),
    ("aes128gcm16", proposal.ESP),
    ("aes128gcm128-noesn", proposal.ESP),
    ("aes128-sha1", proposal.ESP),
    ("chacha20poly1305-x25519", proposal.ESP),
]
BAD = [
    ("aes128gcm16-sha256", proposal.ESP, "takes no sha256"),
    ("aes128gcm16-sha256-x25519", proposal.IKE, "prfsha256"),
    ("aes128gcm16-x25519", proposal.IKE, "cannot derive a PRF"),
    ("aes128gcm16-prfsha256", proposal.IKE, "no key exchange"),
    ("aes128", proposal.ESP, "does not protect integrity"),
    ("aes128gcm16-prfsha256", proposal.ESP, "belongs to IKE"),
    ("aes128-sha1-modp2048-esn", proposal.IKE, "belongs to ESP"),
    ("aes128-aes256-sha1", proposal.ESP, "both of the kind cipher"),
    ("sha1", proposal.ESP, "no encryption algorithm"),
    ("aes129-sha1", proposal.ESP, "'aes129' is no algorithm"),
    ("", proposal.ESP, "is no algorithm"),
    ("null-sha1-modp2048", proposal.IKE, "does not take null"),
]


@pytest.mark.parametrize(("text", "protocol"), GOOD)
def test_words_that_go_together(text, protocol):
    assert proposal.parse(text, protocol).text == text


@pytest.mark.parametrize(("text", "protocol", "why"), BAD)
def test_words_that_do_not(text, protocol, why):
    with pytest.raises(BenchError) as caught:
        proposal.parse(text, protocol)
    assert caught.value.code == "bad_proposal"
    assert why in caught.value.message
    assert text in caught.value.message


def test_cbc_of_ike_takes_the_prf_of_its_hash():
    assert proposal.parse("aes256-sha384-modp3072", proposal.IKE).prf == "PRF_HMAC_SHA2_384"
    assert proposal.parse("aes256-sha384", proposal.ESP).prf is None


def test_two_ends_take_the_first_that_both_have_and_a_mismatch_shows_both():
    one = proposal.parse_all(["aes256gcm16", "aes128-sha1"], proposal.ESP)
    other = proposal.parse_all(["aes128-sha256", "aes-sha"], proposal.ESP)
    assert proposal.agreed(one, other, ("gw1", "gw2")).text == "aes128-sha1"
    with pytest.raises(BenchError) as caught:
        proposal.agreed(one[:1], other, ("gw1", "gw2"))
    assert caught.value.code == "no_proposal_chosen"
    assert "gw1 has aes256gcm16" in caught.value.message
    assert "gw2 has aes128-sha256, aes-sha" in caught.value.message


def test_what_the_daemon_lacks_is_told_before_initiation():
    loaded = {"aead": {"AES_GCM_16"}, "prf": {"PRF_HMAC_SHA2_256"}, "ke": {"MODP_2048"}}
    good = proposal.parse_all(["aes128gcm16-prfsha256-modp2048"], proposal.IKE)
    proposal.check_loaded(good, loaded)
    with pytest.raises(BenchError) as caught:
        proposal.check_loaded(proposal.parse_all(["aes128gcm16-prfsha256-x25519"], proposal.IKE), loaded)
    assert caught.value.code == "algorithm_not_loaded"
    assert "CURVE_25519" in caught.value.message
    assert "MODP_2048" in caught.value.message
    # what ESP encrypts with is the kernel's affair
    proposal.check_loaded(proposal.parse_all(["chacha20poly1305"], proposal.ESP), loaded)


# by hand: path - outer header (20 or 40) - UDP (8) - SPI and sequence (8) - IV - ICV, down to the block, less the 2
# bytes of pad length and next header
MTUS = [
    ("aes128gcm16", 1500, 4, False, 1446),
    ("aes256gcm16", 1500, 4, False, 1446),
    ("aes128gcm8", 1500, 4, False, 1454),
    ("aes128gcm16", 1500, 4, True, 1438),
    ("aes128gcm16", 1500, 6, False, 1426),
    ("aes128gcm16", 9000, 4, False, 8946),
    ("chacha20poly1305", 1500, 4, False, 1446),
    ("aes128-sha1", 1500, 4, False, 1438),
    ("aes128-sha1", 1500, 4, True, 1422),
    ("aes256-sha256", 1500, 4, False, 1438),
    ("aes256-sha512", 1500, 4, False, 1422),
    ("aes128-sha1", 1500, 6, False, 1422),
    ("aes128ctr-sha1", 1500, 4, False, 1450),
    ("3des-md5", 1500, 4, False, 1446),
]


@pytest.mark.parametrize(("esp", "path", "version", "nat_t", "mtu"), MTUS)
def test_mtu_inside_a_tunnel(esp, path, version, nat_t, mtu):
    one = proposal.parse(esp, proposal.ESP)
    assert overhead.inner_mtu(path, one, outer_version=version, nat_t=nat_t) == mtu


@given(
    esp=st.sampled_from(["aes128gcm16", "aes128-sha1", "aes256-sha512", "3des-md5", "aes128ccm8", "aes128ctr-sha256"]),
    path=st.integers(700, 9200),
    version=st.sampled_from([4, 6]),
    nat_t=st.booleans(),
)
def test_the_largest_packet_fits_and_the_next_one_does_not(esp, path, version, nat_t):
    one = proposal.parse(esp, proposal.ESP)
    mtu = overhead.inner_mtu(path, one, outer_version=version, nat_t=nat_t)
    assert overhead.packet_bytes(mtu, one, outer_version=version, nat_t=nat_t) <= path
    assert overhead.packet_bytes(mtu + 1, one, outer_version=version, nat_t=nat_t) > path


def test_a_full_packet_as_captured():
    # 1446 bytes inside were seen as ESP of 1480 bytes behind an IPv4 header of 20
    assert overhead.packet_bytes(1446, proposal.parse("aes128gcm16", proposal.ESP)) == 1500
    assert overhead.mss(1446) == 1406
    assert overhead.mss(1446, 6) == 1386


def test_a_path_too_small():
    with pytest.raises(BenchError) as caught:
        overhead.inner_mtu(600, proposal.parse("aes128gcm16", proposal.ESP))
    assert caught.value.code == "path_mtu_too_small"


def test_accelerated_drivers_of_a_real_kernel():
    text = (FIXTURES / "proc-crypto-6.1-aesni.txt").read_text()
    esp = proposal.parse_all(["aes128gcm16", "aes128-sha1"], proposal.ESP)
    found = kernel_crypto.survey(esp, read=lambda: text, ask=lambda name: True)
    assert [(one.name, one.accelerated) for one in found] == [
        ("rfc4106(gcm(aes))", True),
        ("cbc(aes)", True),
        ("hmac(sha1)", True),
    ]
    assert found[0].driver == "rfc4106-gcm-aesni"


GENERIC = """
name         : rfc4106(gcm(aes))
driver       : rfc4106(gcm_base(ctr(aes-generic),ghash-generic))
priority     : 100
type         : aead

name         : cbc(aes)
driver       : __cbc-aes-aesni
priority     : 401
internal     : yes

name         : cbc(aes)
driver       : cbc(aes-generic)
priority     : 100
internal     : no
"""


def test_a_kernel_without_acceleration_and_one_that_lacks_the_algorithm():
    esp = proposal.parse_all(["aes128gcm16", "aes128-sha1"], proposal.ESP)
    found = kernel_crypto.survey(esp, read=lambda: GENERIC, ask=lambda name: name != "hmac(sha1)")
    assert [(one.available, one.accelerated) for one in found] == [(True, False), (True, False), (False, None)]


def test_a_kernel_that_cannot_be_asked_leaves_it_open():
    esp = proposal.parse_all(["aes128gcm16"], proposal.ESP)
    found = kernel_crypto.survey(esp, read=lambda: "", ask=lambda name: None)
    assert (found[0].available, found[0].accelerated) == (None, None)


def test_a_driver_that_is_called_generic_and_is_not():
    assert kernel_crypto.accelerated("generic-gcm-aesni") is True
    assert kernel_crypto.accelerated("sha1-lib") is None


def test_the_highest_priority_counts():
    text = GENERIC + "\nname : cbc(aes)\ndriver : cbc-aes-aesni\npriority : 400\n"
    found = kernel_crypto.support("cbc(aes)", kernel_crypto.parse(text), True)
    assert (found.driver, found.accelerated) == ("cbc-aes-aesni", True)
