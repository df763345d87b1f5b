# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The client's end of a path check: tries each kind of traffic in each direction, and notes what it saw."""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import errno
import hashlib
import json
import os
import select
import socket
import struct
import time
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common import command
from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._host.path_wire import (
    IP_HEADER,
    IP_MTU,
    IP_MTU_DISCOVER,
    IP_RECVERR,
    IPV6_MTU,
    IPV6_MTU_DISCOVER,
    IPV6_RECVERR,
    L4_HEADER,
    MAGIC,
    MOST_BYTES,
    PMTUDISC_PROBE,
    checksum_errors,
    errors_since,
    family_of,
    pattern,
    read_header,
    receive,
    udp_socket,
)

#: A neighbour that did not answer is asked again after 1 s.
_NEIGHBOUR_S = 1.3


@dataclasses.dataclass(frozen=True)
class Probe:
    """What the client tries against one address of the server."""

    address: str
    port: int
    mtu_bytes: int | None = None
    bytes: int = 1024 * 1024
    bind_address: str | None = None
    expected_interface: str | None = None
    expected_server_interface: str | None = None
    expected_hops: int | None = None
    timeout_s: float = 3.0

    def check(self) -> None:
        family = family_of(self.address)
        if self.bind_address is not None and family_of(self.bind_address) != family:
            raise BenchError(
                f"{self.bind_address} and {self.address} are of different families",
                where="option bind_address",
                code="bad_option",
            )
        if not 1 <= self.port <= 65535:
            raise BenchError(f"{self.port} is not a port", where="option port", code="bad_option")
        least = 1280 if family == socket.AF_INET6 else 576
        if self.mtu_bytes is not None and not least <= self.mtu_bytes <= 65535:
            raise BenchError(
                f"{self.mtu_bytes} is not an MTU of this family",
                where="option mtu_bytes",
                remedy=f"Use {least} to 65535",
                code="bad_option",
            )
        if not 1 <= self.bytes <= MOST_BYTES:
            raise BenchError(
                f"{self.bytes} bytes are not possible",
                where="option bytes",
                remedy=f"Use 1 to {MOST_BYTES}",
                code="bad_option",
            )
        if not 0.2 <= self.timeout_s <= 60:
            raise BenchError(
                f"{self.timeout_s:g} s is not possible",
                where="option timeout_s",
                remedy="Use 0.2 to 60",
                code="bad_option",
            )


@dataclasses.dataclass
class Echo:
    """A few ICMP echos of one size. ``size_bytes`` is that of the IP packet."""

    size_bytes: int
    sent: int = 0
    received: int = 0
    rtt_ms: list[float] = dataclasses.field(default_factory=list)
    #: Why nothing could be sent, or what an ICMP error said.
    error: str | None = None
    #: The MTU that the kernel or a hop named, and which hop.
    named_mtu: int | None = None
    named_by: str | None = None

    @property
    def ok(self) -> bool:
        return self.received > 0

    def text(self) -> str:
        said = f"{self.received} of {self.sent} replies at {self.size_bytes} bytes"
        if self.rtt_ms:
            said += f", {min(self.rtt_ms):.2f} to {max(self.rtt_ms):.2f} ms"
        return f"{said} ({self.error})" if self.error else said


@dataclasses.dataclass
class Datagram:
    """A UDP question and its answer. Sizes are those of the IP packets."""

    sent_bytes: int
    reply_bytes: int
    sent: int = 0
    answered: bool = False
    error: str | None = None
    interface: str | None = None
    hops: int | None = None
    answer: dict[str, t.Any] = dataclasses.field(default_factory=dict)

    def text(self) -> str:
        if self.answered:
            return f"answered: {self.sent_bytes} bytes there, {self.reply_bytes} bytes back"
        said = f"no answer to {self.sent} datagrams: {self.sent_bytes} bytes there, {self.reply_bytes} bytes back"
        return f"{said} ({self.error})" if self.error else said


@dataclasses.dataclass
class Transfer:
    """A counted TCP transfer, first to the server, then back, in one connection."""

    wanted_bytes: int
    connected: bool = False
    sent_bytes: int = 0
    #: What the server says it received; None when it did not get to say it.
    server_bytes: int | None = None
    forward_intact: bool | None = None
    received_bytes: int = 0
    reverse_intact: bool | None = None
    forward_s: float | None = None
    reverse_s: float | None = None
    error: str | None = None
    refused: bool = False

    @property
    def forward_ok(self) -> bool:
        return self.server_bytes == self.wanted_bytes and self.forward_intact is True

    @property
    def reverse_ok(self) -> bool:
        return self.received_bytes == self.wanted_bytes and self.reverse_intact is True


@dataclasses.dataclass
class Seen:
    """All that one probe of one address brought to light: the input of :func:`judge`."""

    probe: Probe
    mtu_bytes: int
    route: dict[str, t.Any] = dataclasses.field(default_factory=dict)
    route_error: str | None = None
    route_unknown: str | None = None
    ping: Echo | None = None
    ping_mtu: Echo | None = None
    #: Why there are no pings at all.
    ping_impossible: str | None = None
    udp: Datagram | None = None
    udp_mtu_forward: Datagram | None = None
    udp_mtu_reverse: Datagram | None = None
    tcp: Transfer | None = None
    #: The server's own count, asked without checksums, when TCP did not work.
    without_checksum: Datagram | None = None
    #: The same before anything else was sent, so that only this check's errors count.
    at_first: Datagram | None = None
    checksum_errors: dict[str, int | None] = dataclasses.field(default_factory=dict)
    seconds: float = 0.0
    #: The path's MTU as this host's kernel has learnt it from routers, when that is less than the interface's.
    learned_mtu: int | None = None
    #: The word by which the server knows this check.
    token: str = ""


@dataclasses.dataclass(frozen=True)
class Route:
    """What ``ip route get`` says. ``error``: there is no route; ``unknown``: the tool could not tell."""

    found: dict[str, t.Any] = dataclasses.field(default_factory=dict)
    error: str | None = None
    unknown: str | None = None


def route_to(address: str, bind_address: str | None) -> Route:
    """Device, source and next hop of traffic to an address."""
    argv = ["ip", "-json", "route", "get", address, *(["from", bind_address] if bind_address else [])]
    try:
        done = command.run(argv, limit_s=2).ended()
    except command.CommandError as error:
        return Route(unknown=error.what)
    if done.rc:
        said = done.message.replace("RTNETLINK answers: ", "")
        return Route(error=said or f"ip ended with status {done.rc}")
    try:
        first = json.loads(done.stdout)[0]
    except (ValueError, IndexError):
        return Route(unknown="ip route get printed no JSON")
    return Route(
        {
            "device": first.get("dev"),
            "source": first.get("prefsrc") or first.get("src") or bind_address,
            "via": first.get("gateway") or (first.get("via") or {}).get("host"),
            "mtu": next((int(metric["mtu"]) for metric in first.get("metrics") or [] if "mtu" in metric), None),
        }
    )


def device_mtu(device: str | None) -> int | None:
    if not device:
        return None
    try:
        with open(f"/sys/class/net/{device}/mtu", encoding="ascii") as stream:
            return int(stream.read())
    except (OSError, ValueError):
        return None


class _Ping:
    """ICMP echo through a socket of our own: the size is exact, DF is set, and errors come with who sent them."""

    def __init__(self, probe: Probe) -> None:
        self.family = family_of(probe.address)
        v6 = self.family == socket.AF_INET6
        protocol = socket.IPPROTO_ICMPV6 if v6 else socket.IPPROTO_ICMP
        self.raw = True
        try:
            self.socket = socket.socket(self.family, socket.SOCK_RAW | socket.SOCK_CLOEXEC, protocol)
        except PermissionError:
            # Without privileges many systems allow echo alone (net.ipv4.ping_group_range).
            self.raw = False
            self.socket = socket.socket(self.family, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC, protocol)
        level = socket.IPPROTO_IPV6 if v6 else socket.IPPROTO_IP
        self.socket.setsockopt(level, IPV6_MTU_DISCOVER if v6 else IP_MTU_DISCOVER, PMTUDISC_PROBE)
        self.socket.setsockopt(level, IPV6_RECVERR if v6 else IP_RECVERR, 1)
        if probe.bind_address:
            self.socket.bind((probe.bind_address, 0))
        self.socket.connect((probe.address, 0))
        self.socket.setblocking(False)
        self.identity = int.from_bytes(os.urandom(2), "big")
        self.sequence = 0

    def close(self) -> None:
        self.socket.close()

    def echo(self, size_bytes: int, count: int, spacing_s: float, deadline: float) -> Echo:
        """Send ``count`` echos of that packet size, and wait for their replies, at most to the deadline."""
        result = Echo(size_bytes)
        payload = bytes(max(0, size_bytes - IP_HEADER[self.family] - L4_HEADER))
        pending: dict[int, float] = {}
        for _turn in range(count):
            self.sequence += 1
            try:
                self.socket.send(self._request(payload))
                pending[self.sequence] = time.monotonic()
            except OSError as error:
                result.error = error.strerror
                self._drain_errors(result)
                if error.errno == errno.EMSGSIZE:
                    result.named_by = result.named_by or "this host"
                    break
            result.sent += 1
            self._collect(result, pending, min(deadline, time.monotonic() + spacing_s), all_of_them=False)
        self._collect(result, pending, deadline, all_of_them=True)
        return result

    def _request(self, payload: bytes) -> bytes:
        kind = 128 if self.family == socket.AF_INET6 else 8
        packet = struct.pack("!BBHHH", kind, 0, 0, self.identity, self.sequence & 0xFFFF) + payload
        if self.family == socket.AF_INET6 or not self.raw:
            return packet  # the kernel fills the checksum in
        return packet[:2] + struct.pack("!H", internet_checksum(packet)) + packet[4:]

    def _collect(self, result: Echo, pending: dict[int, float], until: float, *, all_of_them: bool) -> None:
        while pending or not all_of_them:
            left = until - time.monotonic()
            if left <= 0:
                return
            poll = select.poll()
            poll.register(self.socket, select.POLLIN)
            events = poll.poll(left * 1000)
            if not events:
                return
            if events[0][1] & select.POLLERR:
                self._drain_errors(result)
                if all_of_them and result.named_mtu is not None:
                    return  # a hop said that it does not fit: the others will not either
                # The error is taken off; what remains readable is a reply.
            try:
                data = self.socket.recv(65535)
            except BlockingIOError:
                continue
            except OSError as error:
                result.error = error.strerror
                continue
            sequence = self._reply(data)
            sent_at = pending.pop(sequence, None) if sequence is not None else None
            if sent_at is not None:
                result.received += 1
                result.rtt_ms.append(1000 * (time.monotonic() - sent_at))

    def _reply(self, data: bytes) -> int | None:
        if self.family == socket.AF_INET and self.raw:
            data = data[(data[0] & 0x0F) * 4 :]
        if len(data) < 8:
            return None
        kind, _code, _sum, identity, sequence = struct.unpack_from("!BBHHH", data)
        wanted = 129 if self.family == socket.AF_INET6 else 0
        # The kernel chooses the identity of unprivileged echos.
        if kind != wanted or (self.raw and identity != self.identity):
            return None
        return int(sequence)

    def _drain_errors(self, result: Echo) -> None:
        while True:
            try:
                _data, extra, _flags, _peer = self.socket.recvmsg(512, 512, socket.MSG_ERRQUEUE)
            except OSError:
                return
            for _level, kind, value in extra:
                if kind in (IP_RECVERR, IPV6_RECVERR):
                    number, _origin, _type, _code, _pad, info = struct.unpack_from("=IBBBBI", value)
                    result.error = os.strerror(number)
                    if number == errno.EMSGSIZE and info:
                        result.named_mtu = info
                        result.named_by = _offender(value[16:]) or "this host"
                    elif _offender(value[16:]):
                        result.named_by = _offender(value[16:])


def _offender(address: bytes) -> str | None:
    """The sender of an ICMP error, from the socket address after the kernel's error record."""
    if len(address) < 8:
        return None
    (family,) = struct.unpack_from("=H", address)
    if family == socket.AF_INET:
        return socket.inet_ntop(socket.AF_INET, address[4:8])
    if family == socket.AF_INET6 and len(address) >= 24:
        return socket.inet_ntop(socket.AF_INET6, address[8:24])
    return None


def internet_checksum(data: bytes) -> int:
    """RFC 1071."""
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return int(~total & 0xFFFF)


class Prober:
    """Tries one address. Its three kinds of traffic run side by side, so that a dead path costs one time-out."""

    def __init__(self, probe: Probe) -> None:
        self.probe = probe
        self.family = family_of(probe.address)
        self.token = os.urandom(8).hex()
        self._deadline = 0.0

    def run(self) -> Seen:
        begun = time.monotonic()
        before = checksum_errors()
        answer = route_to(self.probe.address, self.probe.bind_address)
        route, route_error = answer.found, answer.error
        mtu = self.probe.mtu_bytes or route.get("mtu") or device_mtu(route.get("device")) or 1500
        seen = Seen(self.probe, min(mtu, 65535), route, route_error, answer.unknown)
        if route_error is None or not route_error.startswith(("Network is unreachable", "No route")):
            # Neighbours that are not known yet are asked for again after a second, above all on links that just came
            # up. That is no fault of the path, and must not use up the time of what follows.
            patience = min(_NEIGHBOUR_S, 0.45 * self.probe.timeout_s)
            seen.at_first = self._ask("first", checksum=False, until=time.monotonic() + patience)
            self._deadline = time.monotonic() + self.probe.timeout_s
            with concurrent.futures.ThreadPoolExecutor(max_workers=3) as pool:
                # Each keeps to the deadline by itself.
                for running in [pool.submit(work, seen) for work in (self._ping, self._udp, self._tcp)]:
                    running.result()
            if seen.tcp is not None and not (seen.tcp.forward_ok and seen.tcp.reverse_ok) and not seen.tcp.refused:
                seen.without_checksum = self._ask("state", checksum=False, until=time.monotonic() + 0.4)
        seen.checksum_errors = errors_since(before)
        seen.seconds = time.monotonic() - begun
        seen.token = self.token
        seen.learned_mtu = self._learned_mtu(device_mtu(route.get("device")))
        return seen

    def _learned_mtu(self, own: int | None) -> int | None:
        """Routers ration their "too big" messages: UDP or TCP may have got the one that ping missed."""
        v6 = self.family == socket.AF_INET6
        with contextlib.suppress(OSError), socket.socket(self.family, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as asked:
            asked.connect((self.probe.address, self.probe.port))
            level, name = (socket.IPPROTO_IPV6, IPV6_MTU) if v6 else (socket.IPPROTO_IP, IP_MTU)
            mtu = asked.getsockopt(level, name)
            return mtu if own is not None and 0 < mtu < own else None
        return None

    def _ping(self, seen: Seen) -> None:
        try:
            ping = _Ping(self.probe)
        except OSError as error:
            seen.ping_impossible = f"no ICMP socket: {error.strerror}"
            return
        try:
            half = self.probe.timeout_s / 2
            now = time.monotonic()
            seen.ping = ping.echo(
                84 if self.family == socket.AF_INET else 104, 3, 0.01, min(self._deadline, now + half)
            )
            now = time.monotonic()
            seen.ping_mtu = ping.echo(seen.mtu_bytes, 2, 0.01, min(self._deadline, now + half))
        finally:
            ping.close()

    def _udp(self, seen: Seen) -> None:
        overhead = IP_HEADER[self.family] + L4_HEADER
        third = self.probe.timeout_s / 3
        full = seen.mtu_bytes - overhead
        seen.udp = self._ask("small", until=time.monotonic() + third)
        seen.udp_mtu_forward = self._ask("forward", size=full, until=time.monotonic() + third)
        seen.udp_mtu_reverse = self._ask("reverse", reply=full, until=time.monotonic() + third)

    def _ask(self, kind: str, *, size: int = 0, reply: int = 0, checksum: bool = True, until: float) -> Datagram:
        """One question, repeated up to three times, and its answer."""
        overhead = IP_HEADER[self.family] + L4_HEADER
        ask = {"magic": MAGIC, "token": self.token, "kind": kind, "reply_bytes": reply, "checksum": checksum}
        head = json.dumps(ask).encode() + b"\n"
        data = head + bytes(max(0, size - len(head)))
        result = Datagram(len(data) + overhead, max(reply, 1) + overhead)
        channel = udp_socket(self.family, checksum=checksum)
        try:
            if self.probe.bind_address:
                channel.bind((self.probe.bind_address, 0))
            channel.connect((self.probe.address, self.probe.port))
            spacing = max(0.05, (until - time.monotonic()) / 3)
            while not result.answered and time.monotonic() < until and result.sent < 3:
                self._send_and_wait(channel, data, kind, result, min(until, time.monotonic() + spacing))
        except OSError as error:
            result.error = error.strerror
        finally:
            channel.close()
        return result

    def _send_and_wait(self, channel: socket.socket, data: bytes, kind: str, result: Datagram, until: float) -> None:
        result.sent += 1
        channel.send(data)
        while True:
            left = until - time.monotonic()
            if left <= 0 or not select.select([channel], [], [], left)[0]:
                return
            arrival = receive(channel)
            try:
                answer = json.loads(arrival.data.split(b"\n", 1)[0])
            except ValueError:
                continue
            if isinstance(answer, dict) and answer.get("token") == self.token and answer.get("kind") == kind:
                result.answered = True
                result.answer = answer
                result.interface, result.hops = arrival.interface, arrival.hops
                result.reply_bytes = len(arrival.data) + IP_HEADER[self.family] + L4_HEADER
                return

    def _tcp(self, seen: Seen) -> None:
        seen.tcp = transfer = Transfer(self.probe.bytes)
        connection = socket.socket(self.family, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        try:
            if self.probe.bind_address:
                connection.bind((self.probe.bind_address, 0))
            self._limit(connection)
            connection.connect((self.probe.address, self.probe.port))
            transfer.connected = True
            self._transfer(connection, transfer)
        except socket.timeout:
            transfer.error = "nothing more came in time"
        except OSError as error:
            transfer.error = error.strerror or str(error)
            transfer.refused = error.errno == errno.ECONNREFUSED
        except (ValueError, KeyError):
            transfer.error = "what answered is not this collection's responder"
        finally:
            connection.close()

    def _limit(self, connection: socket.socket) -> None:
        connection.settimeout(max(0.01, self._deadline - time.monotonic()))

    def _transfer(self, connection: socket.socket, transfer: Transfer) -> None:
        data = pattern(self.token, "forward", transfer.wanted_bytes)
        begun = time.monotonic()
        ask = {"magic": MAGIC, "token": self.token, "up": len(data), "down": transfer.wanted_bytes}
        connection.sendall(json.dumps(ask).encode() + b"\n")
        view = memoryview(data)
        while transfer.sent_bytes < len(data):
            self._limit(connection)
            transfer.sent_bytes += connection.send(view[transfer.sent_bytes : transfer.sent_bytes + 262144])
        self._limit(connection)
        line, rest = read_header(connection)
        answer = json.loads(line)
        transfer.forward_s = time.monotonic() - begun
        transfer.server_bytes = int(answer["received_bytes"])
        transfer.forward_intact = answer["received_sha256"] == hashlib.sha256(data).hexdigest()
        received = hashlib.sha256(rest)
        transfer.received_bytes = len(rest)
        begun = time.monotonic()
        while transfer.received_bytes < transfer.wanted_bytes:
            self._limit(connection)
            part = connection.recv(262144)
            if not part:
                break
            transfer.received_bytes += len(part)
            received.update(part)
        transfer.reverse_s = time.monotonic() - begun
        # Both ends make the bytes themselves, so this also finds a server that sends other bytes.
        expected = hashlib.sha256(pattern(self.token, "reverse", transfer.wanted_bytes)).hexdigest()
        transfer.reverse_intact = received.hexdigest() == expected == answer["sent_sha256"]
