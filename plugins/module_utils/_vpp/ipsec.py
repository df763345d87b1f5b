# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""IPsec tunnels of VPP with static keys: two security associations and an ipsec interface for each.

Both ends work their keys out from one secret, so that the ends cannot differ, and no key is an option, an answer or a
line of a log. Keys that stay the same are for measurements alone: ESP with AES-GCM counts its packets, and one that
begins to count anew under the same key gives the key away (RFC 4106 forbids static keys for that).
"""

from __future__ import annotations

import dataclasses
import hashlib
import hmac
import ipaddress
import re
import time
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._ipsec import charon
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.errors import VppError, message_missing
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.runtime import IPSEC_COUNTERS
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.session import NO_INDEX, Call, Session
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.statseg import Segment

STATES = ("replaced", "deleted", "gathered")
#: An engine of VPP's that computes, or whichever VPP chose.
ENGINES = ("native", "openssl", "any")
TUNNELS_MAX = 64
#: The ids of the security associations that are this collection's: two for each number of a tunnel.
FIRST_SA = 2_606_000
#: Those below are reserved (RFC 4303).
_LEAST_SPI = 256
_MAX_U32 = 0xFFFFFFFF
_MTU = (68, 9000)
#: vnet/ipsec/ipsec_types.api of VPP 26.06, and what its other interfaces have for the same.
_ESP, _IS_TUNNEL, _IS_INBOUND, _HOP_LIMIT = 50, 0x04, 0x40, 0
_FLAGS_TOLD = _IS_TUNNEL | _IS_INBOUND
_P2P = 0
_ADMIN_UP = 1
_BOTH_WAYS = 3
_IN_ONE_BUFFER = 0
_KEY_BYTES = 128
_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_PING_INTERVAL_S, _PING_WAIT_S = 0.1, 5.0


@dataclasses.dataclass(frozen=True)
class Algorithm:
    """One algorithm of ESP in the words of VPP."""

    #: Number in the API, name on the command line, and how its names among the crypto handlers begin.
    number: int
    cli: str
    handler: str
    key_bytes: int


#: By strongSwan's names, as everywhere in this collection.
ALGORITHMS = {
    "aes128gcm16": Algorithm(7, "aes-gcm-128", "aes-128-gcm", 16),
    "aes192gcm16": Algorithm(8, "aes-gcm-192", "aes-192-gcm", 24),
    "aes256gcm16": Algorithm(9, "aes-gcm-256", "aes-256-gcm", 32),
}


@dataclasses.dataclass(frozen=True)
class Tunnel:
    """One tunnel as this end sees it."""

    number: int
    local: str
    remote: str
    spi_in: int
    spi_out: int
    #: The interface whose address the ipsec interface takes, so that it handles IP.
    unnumbered: str
    mtu_bytes: int
    #: Largest TCP segment for IPv4 and IPv6; 0 leaves them alone.
    mss_bytes: tuple[int, int] = (0, 0)

    @property
    def name(self) -> str:
        return f"ipsec{self.number}"

    @property
    def sa_out(self) -> int:
        return FIRST_SA + 2 * self.number

    @property
    def sa_in(self) -> int:
        return self.sa_out + 1


@dataclasses.dataclass(frozen=True)
class Keys:
    """Key and salt of one security association. Never shown."""

    key: bytes = dataclasses.field(repr=False)
    salt: int = dataclasses.field(repr=False)


def keys_of(secret: str, spi: int, source: str, target: str, algorithm: str) -> Keys:
    """Worked out from the secret and what both ends know of the direction."""

    def derived(what: str) -> bytes:
        text = f"{what}|{algorithm}|{spi}|{source}|{target}"
        return hmac.new(secret.encode(), text.encode(), hashlib.sha256).digest()

    return Keys(derived("key")[: ALGORITHMS[algorithm].key_bytes], int.from_bytes(derived("salt")[:4], "big"))


def tunnels_of(items: t.Sequence[t.Mapping[str, t.Any]]) -> list[Tunnel]:
    """The option ``tunnels``."""
    found = [_tunnel_of(item) for item in items]
    numbers = [one.number for one in found]
    spis = [spi for one in found for spi in (one.spi_in, one.spi_out)]
    for what, values in (("number", numbers), ("SPI", spis)):
        twice = sorted({value for value in values if values.count(value) > 1})
        if twice:
            raise _bad(f"{what} {', '.join(map(str, twice))} is given twice", "tunnels")
    return found


def _tunnel_of(item: t.Mapping[str, t.Any]) -> Tunnel:
    where = f"tunnel {item['number']}"
    try:
        ends = [ipaddress.ip_address(item[name]) for name in ("local", "remote")]
    except ValueError as err:
        raise _bad(str(err), where) from err
    if ends[0].version != ends[1].version or ends[0] == ends[1]:
        raise _bad(f"{ends[0]} and {ends[1]} are no pair of addresses", where)
    for name, low, high in (
        ("number", 0, TUNNELS_MAX - 1),
        ("spi_in", _LEAST_SPI, _MAX_U32),
        ("spi_out", _LEAST_SPI, _MAX_U32),
        ("mtu_bytes", *_MTU),
        ("mss_bytes", 0, 65535),
        ("mss6_bytes", 0, 65535),
    ):
        if not low <= item[name] <= high:
            raise _bad(f"{name} is {item[name]}, it can be {low} to {high}", where)
    return Tunnel(
        number=item["number"],
        local=str(ends[0]),
        remote=str(ends[1]),
        spi_in=item["spi_in"],
        spi_out=item["spi_out"],
        unnumbered=item["unnumbered"],
        mtu_bytes=item["mtu_bytes"],
        mss_bytes=(item["mss_bytes"], item["mss6_bytes"]),
    )


def _bad(what: str, where: str, remedy: str | None = None) -> BenchError:
    return BenchError(what, where=where, remedy=remedy, code="bad_option")


# What a running VPP has


@dataclasses.dataclass(frozen=True)
class _Sa:
    id: int
    spi: int
    algorithm: int
    keys: Keys
    flags: int
    source: str
    target: str
    counter: int


@dataclasses.dataclass(frozen=True)
class Handler:
    """Which engine computes an algorithm."""

    active: frozenset[str]
    there: frozenset[str]
    names: tuple[str, ...]


def parse_handlers(text: str, prefix: str) -> Handler:
    """Of ``show crypto handlers`` the engines of the algorithms whose names begin so; the active one has a star.

    Of packets in one buffer, that is: those in chains of buffers are none that fit into an MTU of 1500 bytes, and the
    native engine does not do them.
    """
    active: set[str] = set()
    there: set[str] = set()
    names: list[str] = []
    name = ""
    for raw in text.splitlines():
        line = _ANSI.sub("", raw)
        cells = re.split(r" {2,}", line.strip())
        # a row without a name goes on with the algorithm above it
        if line[:1] not in (" ", ""):
            name = cells.pop(0)
        if not name.startswith(prefix) or len(cells) < 2:
            continue
        if name not in names:
            names.append(name)
        for word in cells[1].split():
            engine = word.rstrip("*")
            if engine in ENGINES:
                there.add(engine)
                if word.endswith("*"):
                    active.add(engine)
    return Handler(frozenset(active), frozenset(there), tuple(names))


class Ipsec:
    """Reads and changes it."""

    def __init__(self, session: Session) -> None:
        for request in ("ipsec_sad_entry_add", "ipsec_itf_create", "ipsec_tunnel_protect_update"):
            if not session.has(request):
                raise message_missing(request, session.version())
        self.session = session
        self.clamps = session.has("mss_clamp_get")
        self.sas: dict[int, _Sa] = {}
        self.itfs: dict[int, int] = {}
        self.names: dict[str, int] = {}
        self.rows: dict[int, t.Any] = {}
        self.protects: dict[int, t.Any] = {}
        self.lenders: dict[int, int] = {}
        self.mss: dict[int, tuple[int, int]] = {}
        self.handlers = ""

    def read(self) -> None:
        calls = [
            Call("ipsec_sa_v3_dump", {"sa_id": NO_INDEX}),
            Call("ipsec_itf_dump", {"sw_if_index": NO_INDEX}),
            Call("sw_interface_dump", {"sw_if_index": NO_INDEX}),
            Call("ipsec_tunnel_protect_dump", {"sw_if_index": NO_INDEX}),
            Call("ip_unnumbered_dump", {"sw_if_index": NO_INDEX}),
            Call("cli_inband", {"cmd": "show crypto handlers"}, (-1,)),
        ]
        if self.clamps:
            calls.append(Call("mss_clamp_get", {"cursor": 0, "sw_if_index": NO_INDEX}))
        sas, itfs, rows, protects, lenders, handlers, *clamps = self.session.batch(calls)
        self.sas = {sa.id: sa for sa in map(_sa_of, sas) if FIRST_SA <= sa.id < FIRST_SA + 2 * TUNNELS_MAX}
        self.itfs = {row.itf.user_instance: row.itf.sw_if_index for row in itfs}
        self.rows = {row.sw_if_index: row for row in rows}
        self.names = {row.interface_name: row.sw_if_index for row in rows}
        self.protects = {row.tun.sw_if_index: row.tun for row in protects}
        self.lenders = {row.sw_if_index: row.ip_sw_if_index for row in lenders}
        rows_of_clamps = clamps[0] if clamps else []
        self.mss = {
            row.sw_if_index: (
                row.ipv4_mss if int(row.ipv4_direction) else 0,
                row.ipv6_mss if int(row.ipv6_direction) else 0,
            )
            for row in rows_of_clamps
        }
        self.handlers = handlers.reply

    def handler(self, algorithm: str) -> Handler:
        return parse_handlers(self.handlers, ALGORITHMS[algorithm].handler)

    @property
    def own(self) -> list[int]:
        """The numbers of the tunnels that are this collection's: those that have one of its SAs."""
        return sorted({(sa - FIRST_SA) // 2 for sa in self.sas})

    def differs(self, tunnel: Tunnel, secret: str, algorithm: str) -> list[str]:
        """In what a tunnel is not as asked; empty when it is. Secrets are named and not shown."""
        index = self.itfs.get(tunnel.number)
        if index is None or not {tunnel.sa_in, tunnel.sa_out} <= set(self.sas):
            return ["there"]
        wrong = []
        ways = ((tunnel.sa_out, tunnel.spi_out, tunnel.local, tunnel.remote, 0),
                (tunnel.sa_in, tunnel.spi_in, tunnel.remote, tunnel.local, _IS_INBOUND))  # fmt: skip
        for number, spi, source, target, inbound in ways:
            sa = self.sas[number]
            asked = (spi, ALGORITHMS[algorithm].number, source, target, _IS_TUNNEL | inbound)
            if (sa.spi, sa.algorithm, sa.source, sa.target, sa.flags & _FLAGS_TOLD) != asked:
                wrong.append("inbound SA" if inbound else "outbound SA")
            elif not _same(sa.keys, keys_of(secret, spi, source, target, algorithm)):
                wrong.append("inbound keys" if inbound else "outbound keys")
        protect = self.protects.get(index)
        sas_in = list(protect.sa_in[: protect.n_sa_in]) if protect is not None else []
        if protect is None or (protect.sa_out, sas_in) != (tunnel.sa_out, [tunnel.sa_in]):
            wrong.append("protection")
        row = self.rows[index]
        if not int(row.flags) & _ADMIN_UP:
            wrong.append("up")
        if row.mtu[0] != tunnel.mtu_bytes:
            wrong.append("mtu_bytes")
        if self.lenders.get(index) != self.names.get(tunnel.unnumbered, -1):
            wrong.append("unnumbered")
        if self.clamps and self.mss.get(index, (0, 0)) != tunnel.mss_bytes:
            wrong.append("mss_bytes")
        return wrong

    def remove(self, number: int) -> list[Call]:
        calls: list[Call] = []
        index = self.itfs.get(number)
        if index is not None:
            where = f"ipsec{number}"
            if index in self.protects:
                nobody = {"af": 0, "un": {"ip4": "0.0.0.0"}}
                calls.append(Call("ipsec_tunnel_protect_del", {"sw_if_index": index, "nh": nobody}, where=where))
            if any(self.mss.get(index, (0, 0))):
                calls.append(_clamp(index, (0, 0), where))
            if index in self.lenders:
                calls.append(_unnumbered(self.lenders[index], index, False, where))
            calls.append(Call("ipsec_itf_delete", {"sw_if_index": index}, where=where))
        calls += [
            Call("ipsec_sad_entry_del", {"id": sa}, where=f"SA {sa}")
            for sa in (FIRST_SA + 2 * number, FIRST_SA + 2 * number + 1)
            if sa in self.sas
        ]
        return calls

    def create(self, tunnel: Tunnel, secret: str, algorithm: str) -> None:
        if tunnel.unnumbered not in self.names:
            there = ", ".join(sorted(name for name in self.names if name != "local0")) or "none"
            raise VppError(
                f"VPP has no interface {tunnel.unnumbered}", where=tunnel.name, remedy=f"There are: {there}",
                code="no_interface",
            )  # fmt: skip
        ends = (tunnel.local, tunnel.remote)
        out = keys_of(secret, tunnel.spi_out, tunnel.local, tunnel.remote, algorithm)
        back = keys_of(secret, tunnel.spi_in, tunnel.remote, tunnel.local, algorithm)
        replies = self.session.batch(
            [
                _sa_add(tunnel.sa_out, tunnel.spi_out, ends, algorithm, out),
                _sa_add(tunnel.sa_in, tunnel.spi_in, ends[::-1], algorithm, back, flags=_IS_INBOUND),
                Call(
                    "ipsec_itf_create",
                    {"itf": {"user_instance": tunnel.number, "mode": _P2P, "sw_if_index": 0}},
                    where=tunnel.name,
                ),
            ]
        )
        index = replies[-1].sw_if_index
        protect = {
            "sw_if_index": index,
            "nh": {"af": 0, "un": {"ip4": "0.0.0.0"}},
            "sa_out": tunnel.sa_out,
            "n_sa_in": 1,
            "sa_in": [tunnel.sa_in],
        }
        calls = [
            _unnumbered(self.names[tunnel.unnumbered], index, True, tunnel.name),
            Call("sw_interface_set_mtu", {"sw_if_index": index, "mtu": [tunnel.mtu_bytes, 0, 0, 0]}, where=tunnel.name),
            Call("ipsec_tunnel_protect_update", {"tunnel": protect}, where=tunnel.name),
            Call("sw_interface_set_flags", {"sw_if_index": index, "flags": _ADMIN_UP}, where=tunnel.name),
        ]
        if self.clamps and any(tunnel.mss_bytes):
            calls.append(_clamp(index, tunnel.mss_bytes, tunnel.name))
        self.session.batch(calls)

    def shown(self, number: int) -> dict[str, t.Any]:
        """A tunnel as it is, without its keys."""
        index = self.itfs.get(number)
        out, back = (self.sas.get(FIRST_SA + 2 * number + side) for side in (0, 1))
        names = {algorithm.number: name for name, algorithm in ALGORITHMS.items()}
        lender = self.lenders.get(index) if index is not None else None
        row = self.rows.get(index) if index is not None else None
        return {
            "number": number,
            "interface": f"ipsec{number}" if index is not None else None,
            "local": out.source if out else None,
            "remote": out.target if out else None,
            "spi_in": back.spi if back else None,
            "spi_out": out.spi if out else None,
            "algorithm": names.get(out.algorithm) if out else None,
            "unnumbered": self.rows[lender].interface_name if lender in self.rows else None,
            "mtu_bytes": row.mtu[0] if row is not None else None,
            "mss_bytes": list(self.mss.get(index, (0, 0))) if index is not None else None,
            "up": bool(int(row.flags) & _ADMIN_UP) if row is not None else None,
        }


def _same(held: Keys, asked: Keys) -> bool:
    # VPP tells the salt in the other order of its bytes
    swapped = int.from_bytes(asked.salt.to_bytes(4, "big"), "little")
    return hmac.compare_digest(held.key, asked.key) and held.salt in (asked.salt, swapped)


def _sa_of(row: t.Any) -> _Sa:
    entry = row.entry
    return _Sa(
        id=entry.sad_id,
        spi=entry.spi,
        algorithm=int(entry.crypto_algorithm),
        keys=Keys(bytes(entry.crypto_key.data[: entry.crypto_key.length]), entry.salt),
        flags=int(entry.flags),
        source=str(entry.tunnel.src),
        target=str(entry.tunnel.dst),
        counter=row.stat_index,
    )


def _sa_add(number: int, spi: int, ends: tuple[str, str], algorithm: str, keys: Keys, *, flags: int = 0) -> Call:
    entry = {
        "sad_id": number,
        "spi": spi,
        "protocol": _ESP,
        "crypto_algorithm": ALGORITHMS[algorithm].number,
        "crypto_key": {"length": len(keys.key), "data": keys.key.ljust(_KEY_BYTES, b"\0")},
        "integrity_algorithm": 0,
        "integrity_key": {"length": 0, "data": bytes(_KEY_BYTES)},
        "flags": _IS_TUNNEL | flags,
        "tunnel": {
            "instance": NO_INDEX,
            "src": ends[0],
            "dst": ends[1],
            "sw_if_index": NO_INDEX,
            "table_id": 0,
            "encap_decap_flags": 0,
            "mode": 0,
            "flags": 0,
            "dscp": 0,
            "hop_limit": _HOP_LIMIT,
        },
        "salt": keys.salt,
        "udp_src_port": 4500,
        "udp_dst_port": 4500,
    }
    return Call("ipsec_sad_entry_add", {"entry": entry}, where=f"SA {number}")


def _unnumbered(lender: int, borrower: int, add: bool, where: str) -> Call:
    fields = {"sw_if_index": lender, "unnumbered_sw_if_index": borrower, "is_add": add}
    return Call("sw_interface_set_unnumbered", fields, where=where)


def _clamp(index: int, mss: tuple[int, int], where: str) -> Call:
    fields = {
        "sw_if_index": index,
        "ipv4_mss": mss[0],
        "ipv6_mss": mss[1],
        "ipv4_direction": _BOTH_WAYS if mss[0] else 0,
        "ipv6_direction": _BOTH_WAYS if mss[1] else 0,
    }
    return Call("mss_clamp_enable_disable", fields, where=where)


# Counters


def counters(sas: t.Mapping[int, _Sa], stats_socket: str) -> list[dict[str, t.Any]]:
    """What each tunnel carried, as VPP's statistics count it by security association."""
    if not sas:
        return []
    with Segment.open(stats_socket) as segment:
        rows = segment.counters(IPSEC_COUNTERS) or []
    found = []
    for number in sorted({(sa - FIRST_SA) // 2 for sa in sas}):
        ways = {"out": sas.get(FIRST_SA + 2 * number), "in": sas.get(FIRST_SA + 2 * number + 1)}
        row: dict[str, t.Any] = {"child": f"ipsec{number}"}
        for way, sa in ways.items():
            pairs = [(one[2 * sa.counter], one[2 * sa.counter + 1]) for one in rows if len(one) > 2 * sa.counter + 1] \
                if sa is not None else []  # fmt: skip
            row[f"spi_{way}"] = sa.spi if sa is not None else None
            row[f"packets_{way}"] = sum(packets for packets, _bytes in pairs)
            row[f"bytes_{way}"] = sum(count for _packets, count in pairs)
        found.append(row)
    return found


def risen(
    before: t.Sequence[t.Mapping[str, t.Any]], now: t.Sequence[t.Mapping[str, t.Any]]
) -> dict[str, dict[str, int]]:
    """By tunnel, what it carried since. A tunnel that was made anew counts from 0."""
    old = {(row["child"], row["spi_in"], row["spi_out"]): row for row in before}
    names = ("packets_in", "packets_out", "bytes_in", "bytes_out")
    found = {}
    for row in now:
        was = old.get((row["child"], row["spi_in"], row["spi_out"]), {})
        grown = {name: row[name] - int(was.get(name, 0)) for name in names}
        found[row["child"]] = row if min(grown.values()) < 0 else grown
    return {child: {name: int(row[name]) for name in names} for child, row in found.items()}


prove = charon.prove


def ping(
    session: Session,
    sas: t.Mapping[int, _Sa],
    address: str,
    packets: int,
    stats_socket: str,
    *,
    sleep: t.Callable[[float], None] = time.sleep,
) -> dict[str, dict[str, int]]:
    """Have VPP ping an address; what the tunnels carried until all of it was counted, or until the time was over."""
    if not session.has("want_ping_finished_events"):
        raise message_missing("want_ping_finished_events", session.version())
    before = counters(sas, stats_socket)
    fields = {"address": address, "repeat": packets, "interval": _PING_INTERVAL_S}
    session.batch([Call("want_ping_finished_events", fields, where=address)])
    left_s = packets * _PING_INTERVAL_S + _PING_WAIT_S
    while True:
        carried = risen(before, counters(sas, stats_socket))
        least = [min(row["packets_in"], row["packets_out"]) for row in carried.values()]
        if sum(least) >= packets or left_s <= 0:
            return carried
        sleep(_PING_INTERVAL_S)
        left_s -= _PING_INTERVAL_S


# The module


def run(
    session: Session,
    state: str,
    *,
    tunnels: t.Sequence[Tunnel] = (),
    secret: str = "",
    algorithm: str = "aes128gcm16",
    engine: str = "native",
    check_mode: bool = False,
) -> tuple[dict[str, t.Any], Ipsec]:
    """Make it so, or in check mode tell what that would change. The keyword arguments for ``exit_json``."""
    ipsec = Ipsec(session)
    ipsec.read()
    before = {number: ipsec.shown(number) for number in ipsec.own}
    changes = _changes(ipsec, state, tunnels, secret, algorithm)
    findings = []
    if state == "replaced":
        changes += _engine_changes(ipsec, algorithm, engine)
        if not ipsec.clamps and any(any(one.mss_bytes) for one in tunnels):
            findings.append(
                {
                    "code": "no_mss_clamp",
                    "severity": "warning",
                    "evidence": "this VPP has not loaded the plugin mss_clamp",
                    "remedy": "Have it loaded, or TCP has to learn the tunnel's MTU from ICMP",
                }
            )
    if changes and not check_mode:
        _apply(ipsec, changes, {one.number: one for one in tunnels}, secret, algorithm)
        ipsec.read()
        left = _changes(ipsec, state, tunnels, secret, algorithm)
        left += _engine_changes(ipsec, algorithm, engine) if state == "replaced" else []
        if left:
            raise VppError(
                f"VPP took it and does not have it: {_told(left)}",
                remedy="Somebody else may have changed it meanwhile; run it again",
                code="not_as_asked",
            )
    after = {number: ipsec.shown(number) for number in ipsec.own}
    if check_mode and changes:
        after = {one.number: _as_it_would_be(one, algorithm) for one in tunnels} if state == "replaced" else {}
    result = {
        "changed": bool(changes),
        "changes": changes,
        "diff": {"before": {f"ipsec{n}": row for n, row in before.items()},
                 "after": {f"ipsec{n}": row for n, row in after.items()}},
        "tunnels": list(after.values()),
        "engines": sorted(ipsec.handler(algorithm).active),
        "findings": findings,
    }  # fmt: skip
    return result, ipsec


def _changes(
    ipsec: Ipsec, state: str, tunnels: t.Sequence[Tunnel], secret: str, algorithm: str
) -> list[dict[str, t.Any]]:
    if state == "gathered":
        return []
    wanted = {} if state == "deleted" else {one.number: one for one in tunnels}
    changes = [{"name": f"ipsec{number}", "number": number, "action": "remove"} for number in ipsec.own
               if number not in wanted]  # fmt: skip
    for number, tunnel in wanted.items():
        wrong = ipsec.differs(tunnel, secret, algorithm)
        if wrong == ["there"] and number not in ipsec.own and number in ipsec.itfs:
            raise VppError(
                f"VPP has an interface {tunnel.name} that is not of this collection", where=tunnel.name,
                remedy="Take other numbers for the tunnels", code="interface_taken",
            )  # fmt: skip
        if wrong:
            action = "set" if number in ipsec.own else "create"
            changes.append({"name": tunnel.name, "number": number, "action": action, "properties": wrong})
    return changes


def _engine_changes(ipsec: Ipsec, algorithm: str, engine: str) -> list[dict[str, t.Any]]:
    if engine == "any":
        return []
    handler = ipsec.handler(algorithm)
    if handler.active == {engine}:
        return []
    if engine not in handler.there:
        raise VppError(
            f"VPP has no engine {engine} for {algorithm}; there are {', '.join(sorted(handler.there)) or 'none'}",
            where="engine",
            remedy="The native engine needs a processor with AES instructions, and a guest that is let see them; "
            "engine any takes what VPP chose",
            code="engine_absent",
        )
    return [{"name": "crypto engine", "action": "set", "property": algorithm, "before": sorted(handler.active),
             "after": [engine], "handlers": list(handler.names)}]  # fmt: skip


def _told(changes: t.Sequence[t.Mapping[str, t.Any]]) -> str:
    return "; ".join(f"{one['name']} {', '.join(one.get('properties', [one['action']]))}" for one in changes)


def _apply(
    ipsec: Ipsec,
    changes: t.Sequence[t.Mapping[str, t.Any]],
    tunnels: t.Mapping[int, Tunnel],
    secret: str,
    algorithm: str,
) -> None:
    for change in changes:
        if change["name"] == "crypto engine":
            fields = {"engine": change["after"][0], "oct": _IN_ONE_BUFFER, "is_async": 0}
            ipsec.session.batch(
                [Call("crypto_set_handler", {**fields, "alg_name": name}) for name in change["handlers"]]
            )
    ours = [change for change in changes if "number" in change]
    # one whose parts differ is made anew: what an SA is cannot be changed
    ipsec.session.batch([call for change in ours for call in ipsec.remove(change["number"])])
    for change in ours:
        if change["action"] != "remove":
            ipsec.create(tunnels[change["number"]], secret, algorithm)


def _as_it_would_be(tunnel: Tunnel, algorithm: str) -> dict[str, t.Any]:
    shown = dataclasses.asdict(tunnel)
    return {**shown, "interface": tunnel.name, "algorithm": algorithm, "mss_bytes": list(tunnel.mss_bytes), "up": True}


def script(tunnels: t.Sequence[Tunnel], secret: str, algorithm: str) -> str:
    """Commands of VPP's that make the same from nothing; for a file that only root reads. Pure."""
    known = ALGORITHMS[algorithm]
    # the secret too, so that it is kept where the keys are
    lines = ["# Written by the roles of fastpath.bench. It holds keys.", f"# secret {secret}"]
    for one in tunnels:
        ways = ((one.sa_out, one.spi_out, one.local, one.remote, ""),
                (one.sa_in, one.spi_in, one.remote, one.local, " inbound"))  # fmt: skip
        for number, spi, source, target, inbound in ways:
            keys = keys_of(secret, spi, source, target, algorithm)
            lines.append(
                f"ipsec sa add {number} spi {spi} esp crypto-alg {known.cli} crypto-key {keys.key.hex()} "
                f"salt 0x{keys.salt:08x}{inbound} tunnel src {source} dst {target}"
            )
        lines += [
            f"ipsec itf create instance {one.number}",
            f"set interface unnumbered {one.name} use {one.unnumbered}",
            f"set interface mtu packet {one.mtu_bytes} {one.name}",
            f"ipsec tunnel protect {one.name} sa-in {one.sa_in} sa-out {one.sa_out}",
            f"set interface state {one.name} up",
        ]
        if any(one.mss_bytes):
            words = [
                f"ip{family} {'enable' if mss else 'disable'} ip{family}-mss {mss}"
                for family, mss in zip((4, 6), one.mss_bytes)
            ]
            lines.append(f"set interface tcp-mss-clamp {one.name} {' '.join(words)}")
    return "\n".join(lines) + "\n"
