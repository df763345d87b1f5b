# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a host can be an IPsec gateway at all: tried in a network namespace that is gone afterwards."""

from __future__ import annotations

import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common import command
from ansible_collections.fastpath.bench.plugins.module_utils._ipsec.proposal import Proposal

_LIMIT_S = 20.0
_IN_NEW_NAMESPACE = ("unshare", "--net", "--")
#: Bytes that an AEAD algorithm takes after its key, by the kernel's name (RFC 4106, 4309, 7634).
_SALT_BYTES = (("rfc4106", 4), ("rfc4309", 3), ("rfc7539esp", 4), ("rfc3686", 4), ("rfc4543", 4))

Run = t.Callable[[t.Sequence[str]], command.Result]


def _run(argv: t.Sequence[str]) -> command.Result:
    return command.run(argv, limit_s=_LIMIT_S).ended()


def state_words(proposal: Proposal) -> list[str]:
    """A security association that the kernel can be asked to take, as ``ip xfrm state`` wants it; its keys are zero."""
    cipher = proposal.cipher
    kernel = cipher.kernel or ""
    salt = next((size for name, size in _SALT_BYTES if kernel.startswith(name)), 0)
    key = "0x" + "00" * (cipher.key_bits // 8 + salt)
    words = ["src", "127.0.0.1", "dst", "127.0.0.2", "proto", "esp", "spi", "0x100", "mode", "tunnel"]
    if cipher.aead:
        return [*words, "aead", kernel, key, str(cipher.icv_bytes * 8)]
    integrity = proposal.integrity
    if integrity is None:
        return words
    size = 16 if "aes" in integrity.kernel else 32
    auth = ["auth-trunc", integrity.kernel, "0x" + "00" * size, str(integrity.icv_bytes * 8)]
    return [*words, *auth, "enc", kernel, key]


def why_not(proposals: t.Sequence[Proposal], *, interfaces: bool, run: Run = _run) -> str | None:
    """What the kernel lacks; None when nothing, or when it could not be tried.

    :param interfaces: whether xfrm interfaces are needed.
    """
    if run([*_IN_NEW_NAMESPACE, "true"]).rc != 0:
        return None
    if interfaces:
        tried = run([*_IN_NEW_NAMESPACE, "ip", "link", "add", "name", "fastpath", "type", "xfrm", "if_id", "1"])
        if tried.rc != 0:
            return f"the kernel has no xfrm interfaces ({tried.message})"
    for one in proposals:
        tried = run([*_IN_NEW_NAMESPACE, "ip", "xfrm", "state", "add", *state_words(one)])
        if tried.rc != 0:
            return f"the kernel does not take ESP with {one.text} ({tried.message})"
    return None
