# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kernel parameters under /proc/sys, in the network namespace of the caller.

The key is the path below /proc/sys (``net/ipv4/conf/eth0.100/rp_filter``),
as dots belong to interface names too.
"""

from __future__ import annotations

import fnmatch
import os
import re
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._host.access import Access, KnobError, NotThere, ReadOnly
from ansible_collections.fastpath.bench.plugins.module_utils._host.knob import (
    RANK_SYSCTL_ALL,
    RANK_SYSCTL_DEFAULT,
    RANK_SYSCTL_ONE,
    Knob,
    Value,
    register,
)

_WITH_INTERFACE = re.compile(r"(net)\.(ipv4|ipv6|mpls)\.(conf|neigh)\.(.+)\.([^.]+)")
_CONF = re.compile(r"net/(ipv4|ipv6)/conf/([^/]+)/([^/]+)")
#: Both names of one kernel variable; the journal must know it under one.
_ALIASES = {"net/ipv4/ip_forward": "net/ipv4/conf/all/forwarding"}
#: Part of the path -> the module without which it does not exist. Only names that today's kernels have.
_MODULES = (
    ("net/netfilter/nf_conntrack", "nf_conntrack"),
    ("net/nf_conntrack", "nf_conntrack"),
    ("net/ipv4/netfilter/ip_conntrack", "nf_conntrack"),
    ("net/bridge/bridge-nf", "br_netfilter"),
    ("net/ipv4/vs", "ip_vs"),
    ("net/mpls", "mpls_router"),
)


def canonical(key: str) -> str:
    """The path of a key: dotted or with slashes, interface names with dots included.

    As in sysctl(8): when the first separator is a slash, dots are literal;
    when it is a dot, a slash stands for a dot within a name.
    """
    text = key.strip()
    first = next((char for char in text if char in "./"), None)
    if first == "/":
        path = text.strip("/")
    else:
        match = _WITH_INTERFACE.fullmatch(text)
        if match:
            family = "/".join(match.group(1, 2, 3))
            path = f"{family}/{match[4].replace('/', '.')}/{match[5]}"
        else:
            path = text.translate(str.maketrans("./", "/."))
    parts = path.split("/")
    if len(parts) < 2 or any(part in ("", ".", "..") for part in parts) or re.search(r"\s", path):
        raise BenchError("this is not the name of a kernel parameter", where=repr(key), code="bad_key")
    return _ALIASES.get(path, path)


def normal(value: t.Any) -> str:
    """A value as text: True is 1, blanks and tabs between numbers are one blank."""
    if isinstance(value, bool):
        return str(int(value))
    return " ".join(str(value).split())


def module_of(path: str) -> str | None:
    """The kernel module that brings this parameter, when it is one of those that matter here."""
    return next((module for prefix, module in _MODULES if path.startswith(prefix)), None)


def expand(access: Access, key: str) -> list[str]:
    """The paths that a key with wildcards stands for, now; a key without is itself."""
    path = canonical(key)
    if not any(char in path for char in "*?["):
        return [path]
    found = [""]
    for part in path.split("/"):
        following = []
        for stem in found:
            if any(char in part for char in "*?["):
                names = access.list_dir(os.path.join(access.proc, "sys", stem))
                following += [f"{stem}/{name}".lstrip("/") for name in names if fnmatch.fnmatchcase(name, part)]
            else:
                following.append(f"{stem}/{part}".lstrip("/"))
        found = following
    return found


#: Of these the larger one of ``all`` and the interface's own counts.
_LARGER_COUNTS = (
    "rp_filter", "arp_ignore", "arp_announce", "arp_filter", "log_martians", "send_redirects", "proxy_arp",
    "accept_local", "route_localnet", "src_valid_mark",
)  # fmt: skip


def outvoted(access: Access, path: str, value: str, everywhere: str | None = None) -> str | None:
    """What the kernel does on an interface instead of its own value, when ``all`` has a larger one that counts.

    :param everywhere: what ``all`` will have; else what it has.
    """
    match = _CONF.fullmatch(path)
    if match is None or match[1] != "ipv4" or match[2] in ("all", "default") or match[3] not in _LARGER_COUNTS:
        return None
    try:
        path = os.path.join(access.proc, "sys/net/ipv4/conf/all", match[3])
        other = everywhere or normal(access.read_file(path))
        return other if int(other) > int(value) else None
    except (KnobError, ValueError):
        return None


@register
class Sysctl(Knob):
    """One file under /proc/sys."""

    kind = "sysctl"
    scope = "net"

    def __init__(self, access: Access, key: str) -> None:
        super().__init__(access, canonical(key))

    #: An MTU that allows IPv6 brings its parameters.
    made_by = frozenset({"link.mtu"})

    @property
    def path(self) -> str:
        return os.path.join(self.access.proc, "sys", self.key)

    @property
    def device(self) -> str | None:
        match = _CONF.fullmatch(self.key)
        return match[2] if match and match[2] not in ("all", "default") else None

    @property
    def rank(self) -> int:
        match = _CONF.fullmatch(self.key)
        if match is None:
            return RANK_SYSCTL_ONE
        return {"all": RANK_SYSCTL_ALL, "default": RANK_SYSCTL_DEFAULT}.get(match[2], RANK_SYSCTL_ONE)

    def read(self) -> Value:
        try:
            return normal(self.access.read_file(self.path))
        except NotThere as err:
            raise self._not_there() from err

    def _not_there(self) -> NotThere:
        module = module_of(self.key)
        if module is not None:
            return NotThere(
                "this kernel parameter does not exist",
                where=self.key,
                remedy=f"The kernel module {module} is not loaded: load it first (community.general.modprobe)",
            )
        match = _CONF.fullmatch(self.key)
        if match and match[2] not in ("all", "default"):
            folder = os.path.join(self.access.proc, "sys/net", match[1], "conf")
            names = [name for name in self.access.list_dir(folder) if name not in ("all", "default")]
            if match[2] not in names:
                return NotThere(
                    f"interface {match[2]} has no parameters here",
                    where=self.key,
                    remedy=f"Interfaces that have: {', '.join(names) or 'none'}",
                )
        return NotThere(
            "this kernel parameter does not exist here",
            where=self.key,
            remedy="The kernel has it not, or only once for the machine and not in a network namespace",
        )

    def write(self, value: Value) -> None:
        try:
            self.access.write_file(self.path, value)
        except NotThere as err:
            raise self._not_there() from err
        except KnobError as err:
            raise type(err)(f"value {value!r}: {err.what}", where=self.key, remedy=err.remedy) from err

    def resolve(self, current: Value, wish: t.Any) -> Value:
        return normal(wish)

    def check(self, current: Value, wish: t.Any) -> None:
        if isinstance(wish, (dict, list)) or wish is None:
            raise BenchError(f"{wish!r} is not a value", where=self.key, code="bad_value")
        if normal(wish) != current and not self.access.is_writable(self.path):
            raise ReadOnly("it can only be read here", where=self.key)

    def collateral(self, current: Value, desired: Value) -> list[Knob]:
        """What the kernel writes itself.

        For IPv4, ``conf/default`` is copied to each interface that has
        no value of its own yet. ``conf/all/forwarding`` of both families is
        copied to all, and for IPv4 it also turns accept_redirects.
        """
        match = _CONF.fullmatch(self.key)
        if match is None or match[2] not in ("all", "default"):
            return []
        family, leaf = match[1], match[3]
        folder = f"net/{family}/conf"
        names = self.access.list_dir(os.path.join(self.access.proc, "sys", folder))
        others = [f"{folder}/{name}/{leaf}" for name in names]
        if self.key == "net/ipv4/conf/all/forwarding":
            others.append("net/ipv4/conf/all/accept_redirects")
        return [Sysctl(self.access, path) for path in others if path != self.key]
