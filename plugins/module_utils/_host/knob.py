# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What one setting of a host is: how it is read, written, compared and put back.

A new kind of setting is one subclass of :class:`Knob` with a ``kind`` of its
own, registered with :func:`register`. The journal, the reconciler and the
restore know no kind by name.
"""

from __future__ import annotations

import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._host.access import Access


class Absent:
    """The setting does not exist, which is neither an empty text nor 0."""

    _only: t.ClassVar[Absent | None] = None

    def __new__(cls) -> Absent:
        if cls._only is None:
            cls._only = super().__new__(cls)
        return cls._only

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: t.Final = Absent()
#: Whatever JSON can carry, or ABSENT.
Value = t.Any

#: How long a value lives: until its network namespace ends, until the machine restarts, or for good.
SCOPES = ("net", "boot", "disk")

#: The order in which settings depend on each other. Applied and restored
#: lowest first: queues exist before their masks, a link is up before it
#: has routes, an MTU that allows IPv6 stands before IPv6 settings, a governor
#: is chosen before what belongs to it. A service that owns settings is stopped
#: before all of them and started after all of them.
RANK_OWNERS_STOP = 5
RANK_QUEUES = 10
RANK_RINGS = 11
RANK_RSS_TABLE = 12
RANK_MTU = 20
RANK_LINK = 30
RANK_FEATURES = 40
RANK_SYSCTL_ALL = 50
RANK_SYSCTL_DEFAULT = 51
RANK_SYSCTL_ONE = 52
RANK_ADDRESSES = 60
RANK_PER_QUEUE = 70
RANK_ROUTES = 80
RANK_BOOST_ALL = 82
RANK_BOOST_ONE = 83
RANK_GOVERNOR = 84
RANK_WITH_GOVERNOR = 85
RANK_FREQUENCY_LIMITS = 86
RANK_WITHIN_LIMITS = 87
RANK_OTHER = 90
RANK_OWNERS_START = 99


class Knob:
    """One setting. Two knobs with the same kind and key are the same setting."""

    kind: t.ClassVar[str] = ""
    scope: t.ClassVar[str] = "net"
    #: Kinds of settings of the same interface that can bring this one into being: queues come with channels.
    made_by: t.ClassVar[frozenset[str]] = frozenset()
    #: It can be away for a time and then comes back with the value it had, as a CPU that is offline does.
    comes_back: t.ClassVar[bool] = False
    #: A wrong value here can cut the host off, so it is not set on the interface that carries the connection.
    risky: t.ClassVar[bool] = False

    def __init__(self, access: Access, key: str) -> None:
        self.access = access
        self.key = key

    # What every kind says

    def read(self) -> Value:
        """The value now, in its normal form; ABSENT when nothing is set. Raises KnobError."""
        raise NotImplementedError

    def write(self, value: Value) -> None:
        """Make it so. Raises KnobError. Whether it worked is found by reading back."""
        raise NotImplementedError

    # What a kind may say

    @property
    def rank(self) -> int:
        return RANK_OTHER

    def rank_to(self, value: Value) -> int:
        """The rank of writing this value, where the direction matters."""
        return self.rank

    @property
    def device(self) -> str | None:
        """The interface this belongs to, when it belongs to one."""
        return None

    def identity(self) -> str | None:
        """Tells one bearer of the name from a later one: an interface made anew is another interface."""
        return None

    def same(self, one: Value, other: Value) -> bool:
        return bool(one == other)

    def resolve(self, current: Value, wish: t.Any) -> Value:
        """The value to reach: what was wished, completed by what is there."""
        return wish

    def satisfied(self, current: Value, wish: t.Any) -> bool:
        """True when the wish is met; other parts of the value are of no concern."""
        return self.same(current, self.resolve(current, wish))

    def check(self, current: Value, wish: t.Any) -> None:
        """Raise BenchError when this wish can never be met here. Runs before the first write."""

    def reduced(self, current: Value, wish: t.Any) -> tuple[t.Any, BenchError | None]:
        """For an optional wish: the part that can be had here, and what tells why the rest cannot."""
        return wish, None

    def collateral(self, current: Value, desired: Value) -> list[Knob]:
        """Other settings that the kernel may change by itself when this one is written."""
        return []

    def __repr__(self) -> str:
        return f"{self.kind} {self.key}"


_KINDS: dict[str, type[Knob]] = {}

K = t.TypeVar("K", bound=type[Knob])


def register(cls: K) -> K:
    """Make a kind known, so that an entry of the journal becomes a knob again."""
    if not cls.kind or cls.kind in _KINDS:
        raise ValueError(f"{cls.__name__} needs a kind of its own, not {cls.kind!r}")
    if cls.scope not in SCOPES:
        raise ValueError(f"{cls.__name__}: scope {cls.scope!r} is none of {', '.join(SCOPES)}")
    _KINDS[cls.kind] = cls
    return cls


def make(access: Access, kind: str, key: str) -> Knob:
    """The knob of an entry of the journal."""
    cls = _KINDS.get(kind)
    if cls is None:
        raise BenchError(
            f"the journal has a setting of the unknown kind {kind!r}",
            where=key,
            remedy="Restore with the version of the collection that wrote it",
            code="unknown_kind",
        )
    return cls(access, key)


def kinds() -> dict[str, type[Knob]]:
    """All known kinds."""
    return dict(_KINDS)
