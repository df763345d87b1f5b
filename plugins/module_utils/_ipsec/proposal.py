# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Proposals of IKE and ESP: what the words of strongSwan stand for, and which of them go together.

Pure: nothing here asks a host. An algorithm has a row in one of the tables; all the rest follows from the rows: what
the daemon must have loaded, what the kernel must have, and how many bytes ESP adds to a packet.
"""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError

IKE = "IKE"
ESP = "ESP"


@dataclasses.dataclass(frozen=True)
class Cipher:
    """An encryption algorithm.

    :param name: as the daemon tells it over vici.
    :param kernel: as the kernel's crypto API names it; None when strongSwan uses it for IKE alone.
    :param iv_bytes: sent with each packet (RFC 3602: the block; RFC 4106, 4309 and 7634: 8).
    :param icv_bytes: the tag of an AEAD algorithm, 0 for others.
    :param block_bytes: what the text is padded to; ESP itself wants a multiple of 4 (RFC 4303 section 2.4).
    """

    name: str
    key_bits: int
    kernel: str | None
    iv_bytes: int
    block_bytes: int
    icv_bytes: int = 0

    @property
    def aead(self) -> bool:
        return self.icv_bytes > 0


@dataclasses.dataclass(frozen=True)
class Integrity:
    """An integrity algorithm; where no PRF is named IKE takes the one of the same hash."""

    name: str
    kernel: str
    icv_bytes: int
    prf: str


def _ciphers() -> dict[str, Cipher]:
    found: dict[str, Cipher] = {}
    for bits in (128, 192, 256):
        # the word without a length is 128 bits for CBC and GCM
        for word in (f"aes{bits}", *(("aes",) if bits == 128 else ())):
            found[word] = Cipher("AES_CBC", bits, "cbc(aes)", 16, 16)
        found[f"aes{bits}ctr"] = Cipher("AES_CTR", bits, "rfc3686(ctr(aes))", 8, 1)
        found[f"camellia{bits}"] = Cipher("CAMELLIA_CBC", bits, "cbc(camellia)", 16, 16)
        for tag in (8, 12, 16):
            gcm = Cipher(f"AES_GCM_{tag}", bits, "rfc4106(gcm(aes))", 8, 1, tag)
            ccm = Cipher(f"AES_CCM_{tag}", bits, "rfc4309(ccm(aes))", 8, 1, tag)
            for word in (f"{tag}", f"{tag * 8}"):
                found[f"aes{bits}gcm{word}"] = gcm
                found[f"aes{bits}ccm{word}"] = ccm
        found[f"aes{bits}gcm"] = found[f"aes{bits}gcm16"]
        # GMAC: authenticated, not encrypted; a benchmark of it must not be called one of encryption
        found[f"aes{bits}gmac"] = Cipher("NULL_AES_GMAC", bits, "rfc4543(gcm(aes))", 8, 1, 16)
    found["chacha20poly1305"] = Cipher("CHACHA20_POLY1305", 256, "rfc7539esp(chacha20,poly1305)", 8, 1, 16)
    found["3des"] = Cipher("3DES_CBC", 192, "cbc(des3_ede)", 8, 8)
    found["null"] = Cipher("NULL", 0, "ecb(cipher_null)", 0, 1)
    return found


CIPHERS: t.Mapping[str, Cipher] = _ciphers()
#: These leave the text readable, which is not what a tunnel is measured for.
NOT_ENCRYPTING = ("NULL", "NULL_AES_GMAC")

INTEGRITIES: t.Mapping[str, Integrity] = {
    **dict.fromkeys(("sha1", "sha"), Integrity("HMAC_SHA1_96", "hmac(sha1)", 12, "PRF_HMAC_SHA1")),
    **dict.fromkeys(("sha256", "sha2_256"), Integrity("HMAC_SHA2_256_128", "hmac(sha256)", 16, "PRF_HMAC_SHA2_256")),
    **dict.fromkeys(("sha384", "sha2_384"), Integrity("HMAC_SHA2_384_192", "hmac(sha384)", 24, "PRF_HMAC_SHA2_384")),
    **dict.fromkeys(("sha512", "sha2_512"), Integrity("HMAC_SHA2_512_256", "hmac(sha512)", 32, "PRF_HMAC_SHA2_512")),
    "aesxcbc": Integrity("AES_XCBC_96", "xcbc(aes)", 12, "PRF_AES128_XCBC"),
    "aescmac": Integrity("AES_CMAC_96", "cmac(aes)", 12, "PRF_AES128_CMAC"),
    "md5": Integrity("HMAC_MD5_96", "hmac(md5)", 12, "PRF_HMAC_MD5"),
}

PRFS: t.Mapping[str, str] = {
    "prfsha1": "PRF_HMAC_SHA1",
    "prfsha256": "PRF_HMAC_SHA2_256",
    "prfsha384": "PRF_HMAC_SHA2_384",
    "prfsha512": "PRF_HMAC_SHA2_512",
    "prfaesxcbc": "PRF_AES128_XCBC",
    "prfaescmac": "PRF_AES128_CMAC",
    "prfmd5": "PRF_HMAC_MD5",
}

GROUPS: t.Mapping[str, str] = {
    "modp1024": "MODP_1024",
    "modp1536": "MODP_1536",
    "modp2048": "MODP_2048",
    "modp3072": "MODP_3072",
    "modp4096": "MODP_4096",
    "modp6144": "MODP_6144",
    "modp8192": "MODP_8192",
    "ecp256": "ECP_256",
    "ecp384": "ECP_384",
    "ecp521": "ECP_521",
    "curve25519": "CURVE_25519",
    "x25519": "CURVE_25519",
    "curve448": "CURVE_448",
    "x448": "CURVE_448",
}

#: Extended sequence numbers: part of an ESP proposal.
ESN = {"esn": True, "noesn": False}


@dataclasses.dataclass(frozen=True)
class Proposal:
    """One proposal, judged."""

    text: str
    protocol: str
    cipher: Cipher
    integrity: Integrity | None
    prf: str | None
    groups: tuple[str, ...]
    esn: bool | None

    def needs_loaded(self) -> dict[str, tuple[str, ...]]:
        """What the daemon computes itself, by the sections of its list of algorithms: all of IKE, of ESP the groups."""
        needs: dict[str, tuple[str, ...]] = {"ke": self.groups}
        if self.protocol == IKE:
            needs["aead" if self.cipher.aead else "encryption"] = (self.cipher.name,)
            needs["integrity"] = (self.integrity.name,) if self.integrity else ()
            needs["prf"] = (self.prf,) if self.prf else ()
        return {section: names for section, names in needs.items() if names}

    def needs_kernel(self) -> tuple[str, ...]:
        """What the kernel computes: ESP."""
        if self.protocol == IKE:
            return ()
        names = [self.cipher.kernel, self.integrity.kernel if self.integrity else None]
        return tuple(name for name in names if name)

    @property
    def icv_bytes(self) -> int:
        return self.cipher.icv_bytes or (self.integrity.icv_bytes if self.integrity else 0)


def _refused(text: str, protocol: str, why: str, remedy: str) -> BenchError:
    return BenchError(why, where=f"{protocol} proposal {text}", remedy=remedy, code="bad_proposal")


def parse(text: str, protocol: str) -> Proposal:
    """Read one proposal such as ``aes128gcm16-prfsha256-x25519``.

    :raises BenchError: a word is unknown, or the words do not go together, which strongSwan tells by silence or by a
        connection that is not there.
    """
    words = text.strip().lower().split("-")
    found: dict[str, list[str]] = {"cipher": [], "integrity": [], "prf": [], "group": [], "esn": []}
    tables: tuple[tuple[str, t.Container[str]], ...] = (
        *(("cipher", CIPHERS), ("integrity", INTEGRITIES)),
        *(("prf", PRFS), ("group", GROUPS), ("esn", ESN)),
    )
    for word in words:
        kind = next((kind for kind, table in tables if word in table), None)
        if kind is None:
            raise _refused(
                text, protocol, f"{word!r} is no algorithm that is known here",
                "Write it as aes128gcm16-prfsha256-x25519 for IKE, aes128gcm16 or aes128-sha1 for ESP",
            )  # fmt: skip
        found[kind].append(word)
    for kind, several in found.items():
        if len(several) > 1 and kind != "group":
            raise _refused(
                text, protocol, f"{' and '.join(several)} are both of the kind {kind}",
                "Name one of each kind, so that it is known what is measured; give several proposals as a list",
            )  # fmt: skip
    _check(text, protocol, found)
    cipher = CIPHERS[found["cipher"][0]]
    integrity = INTEGRITIES[found["integrity"][0]] if found["integrity"] else None
    prf = PRFS[found["prf"][0]] if found["prf"] else integrity.prf if integrity and protocol == IKE else None
    groups = tuple(GROUPS[word] for word in found["group"])
    esn = ESN[found["esn"][0]] if found["esn"] else None
    return Proposal("-".join(words), protocol, cipher, integrity, prf, groups, esn)


def _check(text: str, protocol: str, found: t.Mapping[str, list[str]]) -> None:
    if not found["cipher"]:
        raise _refused(text, protocol, "no encryption algorithm is named", "Begin with one, such as aes128gcm16")
    word = found["cipher"][0]
    cipher = CIPHERS[word]
    if cipher.aead and found["integrity"]:
        raise _refused(
            text, protocol, f"{word} protects integrity itself (AEAD) and takes no {found['integrity'][0]} beside it",
            f"Leave out {found['integrity'][0]}"
            + (f", or name the PRF: prf{found['integrity'][0]}" if protocol == IKE else ""),
        )  # fmt: skip
    if not cipher.aead and not found["integrity"]:
        raise _refused(
            text, protocol, f"{word} does not protect integrity, and no algorithm is named that does",
            f"Write {word}-sha256, or take aes128gcm16",
        )  # fmt: skip
    if protocol == IKE:
        if cipher.aead and not found["prf"]:
            raise _refused(
                text, protocol, f"{word} is AEAD, from which IKE cannot derive a PRF", f"Write {word}-prfsha256-..."
            )
        if not found["group"]:
            raise _refused(text, protocol, "no key exchange is named", "End with one, such as x25519 or modp2048")
        if found["esn"]:
            raise _refused(text, protocol, f"{found['esn'][0]} belongs to ESP", "Leave it out")
        if cipher.name in NOT_ENCRYPTING:
            raise _refused(text, protocol, f"IKE does not take {word}", "Name an algorithm that encrypts")
    elif found["prf"]:
        raise _refused(text, protocol, f"ESP has no PRF, {found['prf'][0]} belongs to IKE", "Leave it out")


def parse_all(texts: t.Sequence[str], protocol: str) -> tuple[Proposal, ...]:
    """Read a list of proposals, the first one preferred."""
    if not texts:
        raise BenchError(f"there is no {protocol} proposal", where=f"{protocol} proposals", code="bad_proposal")
    return tuple(parse(text, protocol) for text in texts)


def agreed(one: t.Sequence[Proposal], other: t.Sequence[Proposal], names: tuple[str, str]) -> Proposal:
    """What two ends come to: the first of the one's that the other has too.

    :raises BenchError: they have none in common; the message shows both.
    """
    for proposal in one:
        for theirs in other:
            if _key(proposal) == _key(theirs):
                return proposal
    shown = [", ".join(proposal.text for proposal in side) for side in (one, other)]
    protocol = one[0].protocol
    raise BenchError(
        f"the ends have no {protocol} proposal in common: {names[0]} has {shown[0]}; {names[1]} has {shown[1]}",
        remedy="Give both the same list; IKE would end with NO_PROPOSAL_CHOSEN",
        code="no_proposal_chosen",
    )


def _key(proposal: Proposal) -> tuple[object, ...]:
    # groups of ESP count at a rekey only, and several are a choice
    return (proposal.cipher, proposal.integrity, proposal.prf, frozenset(proposal.groups), bool(proposal.esn))


def not_loaded(proposal: Proposal, loaded: t.Mapping[str, t.Collection[str]]) -> tuple[str, ...]:
    """What a proposal needs and the daemon has not loaded.

    :param loaded: names by section, as :func:`charon.algorithms` gives them.
    """
    needs = proposal.needs_loaded().items()
    return tuple(name for section, names in needs for name in names if name not in loaded.get(section, ()))


def check_loaded(proposals: t.Sequence[Proposal], loaded: t.Mapping[str, t.Collection[str]]) -> None:
    """Refuse proposals that the daemon accepts in a file and cannot carry out: initiation alone would tell."""
    for proposal in proposals:
        missing = not_loaded(proposal, loaded)
        if missing:
            has = sorted({name for section in proposal.needs_loaded() for name in loaded.get(section, ())})
            raise BenchError(
                f"the daemon has not loaded {', '.join(missing)}; it has {', '.join(has) or 'none of these kinds'}",
                where=f"{proposal.protocol} proposal {proposal.text}",
                remedy="Install strongSwan's further plugins (openssl, gcm, curve25519), or name what it has",
                code="algorithm_not_loaded",
            )
