# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the kernel can compute, and whether by a driver made for this processor, from /proc/crypto."""

from __future__ import annotations

import dataclasses
import re
import socket
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._ipsec.proposal import Proposal

#: In a driver's name: no instructions for it are used. One of aesni_intel is called generic and is not.
_PLAIN = re.compile(r"generic(?!-gcm-aesni)|-c$|ecb-cipher_null")
#: Whose names tell nothing: newer kernels have the hash functions in a library that takes what the processor has.
_UNKNOWN = re.compile(r"-lib$|^cryptd\(|^__")


@dataclasses.dataclass(frozen=True)
class Entry:
    """One algorithm of /proc/crypto."""

    name: str
    driver: str
    priority: int
    internal: bool


@dataclasses.dataclass(frozen=True)
class Support:
    """What the kernel has of one algorithm. ``accelerated`` is None where that cannot be told."""

    name: str
    available: bool | None
    driver: str | None
    accelerated: bool | None

    def as_result(self) -> dict[str, t.Any]:
        return dataclasses.asdict(self)


def parse(text: str) -> list[Entry]:
    """The entries of /proc/crypto. Those without a driver or with a priority that is no number are left out."""
    entries = []
    for block in re.split(r"\n\s*\n", text):
        rows = dict(line.split(":", 1) for line in block.splitlines() if ":" in line)
        row = {key.strip(): value.strip() for key, value in rows.items()}
        if "name" in row and "driver" in row and row.get("priority", "").lstrip("-").isdigit():
            entries.append(Entry(row["name"], row["driver"], int(row["priority"]), row.get("internal") == "yes"))
    return entries


def accelerated(driver: str) -> bool | None:
    """Whether a driver uses the processor's instructions, or a device, for this algorithm."""
    if _PLAIN.search(driver):
        return False
    return None if _UNKNOWN.search(driver) else True


def _parts(name: str) -> list[str]:
    """What an algorithm that is not in the list is put together from by the kernel."""
    inner = re.match(r"rfc\d+\((.+)\)$", name)
    return [inner.group(1)] if inner else []


def support(name: str, entries: t.Sequence[Entry], available: bool | None) -> Support:
    """What the kernel takes: of an algorithm's drivers the one with the highest priority.

    :param available: whether the kernel made it when it was asked; None when it could not be asked.
    """
    for wanted in (name, *_parts(name)):
        named = [entry for entry in entries if entry.name == wanted and not entry.internal]
        found = sorted(named, key=lambda entry: entry.priority)
        if found:
            return Support(name, True, found[-1].driver, accelerated(found[-1].driver))
    return Support(name, available, None, None)


#: Of an algorithm's name, what AF_ALG calls its type.
_TYPES = (
    (re.compile(r"^(rfc4106|rfc4309|rfc4543|rfc7539esp)"), "aead"),
    (re.compile(r"^(hmac|xcbc|cmac)"), "hash"),
    (re.compile(r""), "skcipher"),
)


def ask_kernel(name: str) -> bool | None:
    """Have the kernel make the algorithm, for which it loads modules; None where it cannot be asked."""
    family = getattr(socket, "AF_ALG", None)
    if family is None:
        return None
    kind = next(kind for pattern, kind in _TYPES if pattern.search(name))
    try:
        with socket.socket(family, socket.SOCK_SEQPACKET, 0) as probe:
            probe.bind((kind, name))
            return True
    except FileNotFoundError:
        return _absent(kind)
    except OSError:
        return None


#: One that is in every kernel that has IPsec, by type: if that is absent too, it is the interface that is.
_ALWAYS = {"hash": "hmac(sha1)", "skcipher": "cbc(aes)"}


def _absent(kind: str) -> bool | None:
    known = _ALWAYS.get(kind)
    if known is None:
        return None
    try:
        with socket.socket(socket.AF_ALG, socket.SOCK_SEQPACKET, 0) as probe:
            probe.bind((kind, known))
            return False
    except OSError:
        return None


def survey(
    proposals: t.Iterable[Proposal],
    *,
    read: t.Callable[[], str],
    ask: t.Callable[[str], bool | None] = ask_kernel,
) -> list[Support]:
    """What the kernel has of what the proposals need."""
    names = list(dict.fromkeys(name for one in proposals for name in one.needs_kernel()))
    answers = {name: ask(name) for name in names}
    entries = parse(read())
    return [support(name, entries, answers[name]) for name in names]
