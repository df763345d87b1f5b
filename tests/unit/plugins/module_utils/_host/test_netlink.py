# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The end of a dump, which the kernel may have broken off half way."""

from __future__ import annotations

import errno
import socket
import struct
import typing as t

import pytest

from ansible_collections.fastpath.bench.plugins.module_utils._host import netlink

_ERROR, _DONE, _ENTRY = 2, 3, 16


def message(kind: int, body: bytes) -> bytes:
    return struct.pack("=IHHII", 16 + len(body), kind, 0, 1, 0) + body


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> t.Iterator[socket.socket]:
    """The kernel's end of the socket."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    monkeypatch.setattr(netlink.socket, "socket", lambda *_args: ours)
    with ours, theirs:
        yield theirs


def asked() -> list[bytes]:
    return list(netlink.ask(6, 0x12, netlink.DUMP, b"", timeout_s=2.0))


def test_a_dump_to_its_end(kernel: socket.socket) -> None:
    kernel.send(message(_ENTRY, b"some") + message(_ENTRY, b"more"))
    kernel.send(message(_DONE, struct.pack("=i", 0)))
    assert asked() == [b"some", b"more"]


@pytest.mark.parametrize("kind", [_ERROR, _DONE])
def test_a_dump_that_broke_off_is_no_whole_one(kernel: socket.socket, kind: int) -> None:
    kernel.send(message(_ENTRY, b"some"))
    kernel.send(message(kind, struct.pack("=i", -errno.ENOBUFS)))
    with pytest.raises(OSError, match="No buffer space") as caught:
        asked()
    assert caught.value.errno == errno.ENOBUFS


def test_what_is_no_message_is_not_waited_on_for_ever(kernel: socket.socket) -> None:
    kernel.send(bytes(32))
    with pytest.raises(OSError, match="Bad message"):
        asked()
