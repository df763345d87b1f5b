# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NAT of the kernel: one nftables table of the collection's own, which masquerades what leaves by some interfaces."""

from __future__ import annotations

import json
import time
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common.command import find_program, run
from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._host import conntrack

STATES = ("present", "absent", "gathered", "cleared")
TABLE = "fastpath_bench_nat"
PORTS = ("kept", "random", "fully_random")
_FLAGS = {"random": "random", "fully_random": "fully-random"}
_LIMIT_S = 20.0
_PRIORITY = 100
_CLEAR_TRIES, _SETTLE_S = 5, 0.1


def _nft(*words: str, stdin: str | None = None) -> t.Any:
    program = find_program("nft")
    if program is None:
        raise BenchError(
            "there is no program nft", where="nftables", remedy="Install the package nftables", code="tool_missing"
        )
    return run([program, *words], limit_s=_LIMIT_S, stdin=stdin)


def script(outside: t.Sequence[str], ports: str) -> str:
    """The table, made anew in one step whether it was there or not. Pure."""
    names = ", ".join(f'"{name}"' for name in sorted(outside))
    flag = f" {_FLAGS[ports]}" if ports in _FLAGS else ""
    return f"""\
table ip {TABLE}
delete table ip {TABLE}
table ip {TABLE} {{
  chain postrouting {{
    type nat hook postrouting priority srcnat; policy accept;
    oifname {{ {names} }} masquerade{flag}
  }}
}}
"""


def parse(text: str) -> dict[str, t.Any] | None:
    """What the table does, in the form of the options; ``other`` when it is not as this module makes it. Pure."""
    items = [next(iter(item.items())) for item in json.loads(text)["nftables"]]
    if not any(kind == "table" for kind, _value in items):
        return None
    chains = [value for kind, value in items if kind == "chain"]
    rules = [value["expr"] for kind, value in items if kind == "rule"]
    other = {"outside": [], "ports": "kept", "other": True}
    if len(chains) != 1 or len(rules) != 1 or chains[0].get("hook") != "postrouting":
        return other
    if chains[0].get("prio") != _PRIORITY or len(rules[0]) != 2:
        return other
    match, action = rules[0]
    if match.get("match", {}).get("left") != {"meta": {"key": "oifname"}} or "masquerade" not in action:
        return other
    right = match["match"]["right"]
    outside = [right] if isinstance(right, str) else sorted(right.get("set", []))
    flags = (action["masquerade"] or {}).get("flags") or []
    flags = [flags] if isinstance(flags, str) else list(flags)
    named = {value: name for name, value in _FLAGS.items()}
    return {"outside": outside, "ports": named.get(flags[0], "kept") if flags else "kept"}


def read() -> dict[str, t.Any] | None:
    done = _nft("--json", "list", "table", "ip", TABLE)
    if done.rc != 0:
        if "No such file" in done.stderr:
            return None
        done.check()
    return parse(done.stdout)


def work(state: str, outside: t.Sequence[str], ports: str, *, check_mode: bool) -> dict[str, t.Any]:
    """Everything that the module does. Returns the keyword arguments for ``exit_json``."""
    if state == "cleared":
        return _clear(check_mode=check_mode)
    before = read()
    if state == "gathered":
        return {"changed": False, "nat": before, "connections": conntrack.count().as_result()}
    wanted: dict[str, t.Any] | None = None
    if state == "present":
        if not outside:
            raise BenchError("it is empty", where="outside", remedy="Name the outside interfaces", code="bad_option")
        bad = [name for name in outside if not 0 < len(name.encode()) <= 15 or set(name) & set('"/ \\*')]
        if bad:
            raise BenchError(f"{bad[0]!r} is no name of an interface", where="outside", code="bad_option")
        wanted = {"outside": sorted(set(outside)), "ports": ports}
    result: dict[str, t.Any] = {"changed": before != wanted, "diff": {"before": before or {}, "after": wanted or {}}}
    after = before
    if before != wanted and not check_mode:
        text = script(outside, ports) if wanted is not None else f"delete table ip {TABLE}\n"
        _nft("--file", "-", stdin=text).check()
        after = read()
        if after != wanted:
            raise BenchError(
                f"nft accepted it, but reading back shows {after}", where=f"table ip {TABLE}", code="not_as_asked"
            )
    return {**result, "nat": after, "connections": conntrack.count().as_result() if wanted is not None else None}


def _clear(*, check_mode: bool) -> dict[str, t.Any]:
    before = conntrack.count()
    after = before
    result: dict[str, t.Any] = {"changed": before.translated > 0, "connections_before": before.as_result()}
    result["diff"] = {"before": {"translated": before.translated}, "after": {"translated": 0}}
    if check_mode:
        return {**result, "connections": before.as_result(), "clearing": None}
    command_s, begin = 0.0, time.monotonic()
    for attempt in range(_CLEAR_TRIES):
        if attempt:
            time.sleep(_SETTLE_S)
        # also when none is translated: what is kept costs the same to look up
        asked = time.monotonic()
        conntrack.flush()
        command_s += time.monotonic() - asked
        after = conntrack.count()
        if not after.translated:
            clearing = {"command_s": command_s, "proven_s": time.monotonic() - begin, "tries": attempt + 1}
            return {**result, "connections": after.as_result(), "clearing": clearing}
    raise BenchError(
        f"{after.translated} translated connections were there again after each of {_CLEAR_TRIES} tries",
        where="conntrack",
        remedy="Stop the traffic first: each of its packets opens its connection again",
        code="sessions_left",
    )
