# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The settings of an IPsec gateway as knobs, so that the journal knows them and a restore takes them away.

xfrm interfaces, the clamp of TCP's segment size, the files that are ours, the daemon, and what it has loaded of ours.
"""

from __future__ import annotations

import os
import re
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common.command import CommandError
from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._host.access import (
    Access,
    NotSupported,
    NotThere,
    Refused,
    file_error,
    missing_interface,
)
from ansible_collections.fastpath.bench.plugins.module_utils._host.device import check_name
from ansible_collections.fastpath.bench.plugins.module_utils._host.knob import (
    ABSENT,
    RANK_FEATURES,
    RANK_LINK,
    RANK_OTHER,
    RANK_OWNERS_START,
    RANK_OWNERS_STOP,
    Knob,
    Value,
    register,
)
from ansible_collections.fastpath.bench.plugins.module_utils._ipsec import charon
from ansible_collections.fastpath.bench.plugins.module_utils._ipsec.plan import NAME
from ansible_collections.fastpath.bench.plugins.module_utils._ipsec.vici import Session, ViciError

#: The daemon's services that are known, of Debian and of others.
UNITS = ("strongswan.service", "strongswan-swanctl.service")
_VICI_LIMIT_S = 10.0


@register
class XfrmLink(Knob):
    """An xfrm interface: ``{"if_id", "dev", "mtu_bytes", "up"}``; ABSENT when there is none of the name."""

    kind = "ipsec.xfrm_link"

    def __init__(self, access: Access, key: str) -> None:
        super().__init__(access, check_name(key))

    @property
    def rank(self) -> int:
        return RANK_LINK

    def read(self) -> Value:
        link = self.access.links().get(self.key)
        if link is None:
            return ABSENT
        info = link.get("linkinfo", {})
        if info.get("info_kind") != "xfrm":
            raise Refused(
                "there is an interface of this name, and it is no xfrm interface",
                where=self.key,
                remedy="Take another prefix for the names",
            )
        return {
            "if_id": _number(info.get("info_data", {}).get("if_id", 0)),
            "dev": link.get("link"),
            "mtu_bytes": int(link["mtu"]),
            "up": "UP" in link["flags"],
        }

    def resolve(self, current: Value, wish: t.Any) -> Value:
        return wish if wish is ABSENT else {"dev": None, "up": True, **wish}

    def check(self, current: Value, wish: t.Any) -> None:
        if wish is ABSENT:
            return
        links = self.access.links()
        if wish.get("dev") and wish["dev"] not in links:
            raise missing_interface(wish["dev"], links)
        for name, link in links.items():
            info = link.get("linkinfo", {})
            if name != self.key and info.get("info_kind") == "xfrm":
                taken = _number(info.get("info_data", {}).get("if_id", 0))
                if taken == wish["if_id"]:
                    raise BenchError(
                        f"interface {name} has the interface id {taken} ({taken:#x}) already",
                        where=self.key, remedy="Take other interface ids", code="if_id_taken",
                    )  # fmt: skip

    def write(self, value: Value) -> None:
        now = self.read()
        if now is not ABSENT and (value is ABSENT or (now["if_id"], now["dev"]) != (value["if_id"], value["dev"])):
            self._ip("del", "dev", self.key)
            now = ABSENT
        if value is ABSENT:
            return
        if now is ABSENT:
            lower = ["dev", value["dev"]] if value["dev"] else []
            self._ip("add", "name", self.key, "type", "xfrm", *lower, "if_id", str(value["if_id"]))
        self._ip("set", "dev", self.key, "mtu", str(value["mtu_bytes"]), "up" if value["up"] else "down")

    def _ip(self, *words: str) -> None:
        self.access.change(["ip", "link", *words], where=self.key)


def _number(value: t.Any) -> int:
    """ip tells the id as a number or as text with 0x, by version."""
    return value if isinstance(value, int) else int(str(value), 0)


@register
class MssClamp(Knob):
    """Clamps of TCP's segment size: a table of nftables with a chain of its own.

    The key is the table's name. The value is a list of ``interface version mss`` or ``network version mss`` (with
    policies there is no interface), which is also each rule's comment: nftables writes a rule back in words that differ
    by version. ABSENT when there is no such table.
    """

    kind = "ipsec.mss_clamp"
    _COMMENT = re.compile(r'comment "fastpath ([^"]*)"')

    @property
    def rank(self) -> int:
        return RANK_FEATURES

    def read(self) -> Value:
        try:
            status, out, err = self.access.call(["nft", "list", "table", "inet", self.key])
        except CommandError as error:
            if error.code == "tool_absent":
                return ABSENT  # without the tool there is none of ours
            raise
        if status != 0:
            if "No such file" in err:
                return ABSENT
            raise NotSupported(" ".join(err.split()) or f"nft ended with {status}", where=f"nftables table {self.key}")
        return sorted(self._COMMENT.findall(out))

    def resolve(self, current: Value, wish: t.Any) -> Value:
        return wish if wish is ABSENT else sorted(wish)

    def check(self, current: Value, wish: t.Any) -> None:
        if wish is not ABSENT:
            for row in wish:
                self._rule(row)

    def write(self, value: Value) -> None:
        if self.read() is not ABSENT:
            self._nft(f"delete table inet {self.key}")
        if value is ABSENT:
            return
        rules = "".join(f" {self._rule(row)};" for row in value)
        hook = "type filter hook forward priority mangle;"
        self._nft(f"table inet {self.key} {{ chain forward {{ {hook}{rules} }}; }}")

    def _rule(self, row: str) -> str:
        target, version, mss = row.split(" ")
        family = {"4": "ipv4", "6": "ipv6"}[version]
        if "/" in target:
            match = f"{'ip' if version == '4' else 'ip6'} daddr {target}"
        else:
            match = f'oifname "{check_name(target)}" meta nfproto {family}'
        # the kernel only ever lowers it by this
        return f'{match} tcp flags syn tcp option maxseg size set {int(mss)} comment "fastpath {row}"'

    def _nft(self, script: str) -> None:
        self.access.change(["nft", script], where=f"nftables table {self.key}")


@register
class OwnFile(Knob):
    """A file that is this collection's alone: there or not. What is in it is not noted, as it may be a secret."""

    kind = "ipsec.own_file"
    scope = "disk"

    def __init__(self, access: Access, key: str) -> None:
        super().__init__(access, key)
        if not os.path.isabs(key) or not os.path.basename(key).startswith(NAME):
            raise BenchError("not a file of this collection", where=repr(key), code="bad_key")

    def read(self) -> Value:
        return "there" if os.path.lexists(self.key) else ABSENT

    def write(self, value: Value) -> None:
        try:
            if value is ABSENT:
                os.unlink(self.key)
            else:
                os.close(os.open(self.key, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o600))
        except OSError as err:
            raise file_error(err, self.key) from err


@register
class Daemon(Knob):
    """Whether the service of strongSwan runs."""

    kind = "ipsec.daemon"
    scope = "boot"

    def __init__(self, access: Access, key: str) -> None:
        if key not in UNITS:
            raise BenchError("not a service of strongSwan", where=repr(key), code="bad_key")
        super().__init__(access, key)

    @property
    def rank(self) -> int:
        return RANK_OWNERS_STOP

    def rank_to(self, value: Value) -> int:
        return RANK_OWNERS_START if value else RANK_OWNERS_STOP

    def read(self) -> Value:
        try:
            _status, out, _err = self.access.call(["systemctl", "is-active", self.key])
        except CommandError as error:
            raise NotThere(error.what, where=self.key) from error
        return out.strip() in ("active", "activating", "reloading")

    def write(self, value: Value) -> None:
        verb = "start" if value else "stop"
        self.access.change(["systemctl", verb, self.key], where=self.key)


@register
class Connections(Knob):
    """Whether the daemon has connections of this collection. A daemon that is not there has none."""

    kind = "ipsec.connections"
    scope = "boot"

    @property
    def rank(self) -> int:
        return RANK_OTHER

    def rank_to(self, value: Value) -> int:
        # taken away while the daemon still runs
        return RANK_OTHER if value else RANK_OWNERS_STOP - 1

    def read(self) -> Value:
        with Session(limit_s=_VICI_LIMIT_S) as session:
            try:
                session.connect(0.0)
            except ViciError as err:
                if err.code == "charon_absent":
                    return False
                raise Refused(err.what, where="strongSwan", remedy=err.remedy) from err
            return bool(charon.own_connections(session))

    def write(self, value: Value) -> None:
        with Session(limit_s=_VICI_LIMIT_S) as session:
            session.connect(_VICI_LIMIT_S)
            if value:
                charon.load(session, (), limit_s=3 * _VICI_LIMIT_S)
            else:
                charon.unload(session)
