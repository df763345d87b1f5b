# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From the options of the modules to a load and an end: the one place that knows both."""

from __future__ import annotations

import dataclasses
import json
import math
import re
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._common.paths import DPERF_FILE
from ansible_collections.fastpath.bench.plugins.module_utils._host.cpumask import parse_wish
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.dperf_config import (
    CPS,
    LOADS,
    OLD_WORDS,
    PROTOCOLS,
    SLOW_START_S,
    End,
    Load,
    Nic,
    Range,
    Vxlan,
)

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
_TIME = re.compile(r"(\d+(?:\.\d+)?)(us|ms|s)")
_UNITS_US = {"us": 1, "ms": 1000, "s": 1_000_000}
Params = t.Mapping[str, t.Any]


def _range_spec() -> dict[str, t.Any]:
    return {"start": {"type": "str", "required": True}, "count": {"type": "int", "default": 1}}


def _ranges_spec() -> dict[str, t.Any]:
    return {"type": "list", "elements": "dict", "options": _range_spec()}


def trial_spec() -> dict[str, t.Any]:
    """The argument spec of one trial, shared by the client's and the server's module."""
    return {
        "load": {"type": "str", "choices": list(LOADS), "default": CPS},
        "protocol": {"type": "str", "choices": list(PROTOCOLS), "default": "tcp"},
        "direction": {"type": "str", "choices": ["forward"], "default": "forward"},
        "server": {"type": "str"},
        "servers": _ranges_spec(),
        "bind": {"type": "str"},
        "clients": _ranges_spec(),
        "clients_seen": _ranges_spec(),
        "port": {"type": "int", "default": 80},
        "listen_count": {"type": "int", "default": 1},
        "client_ports": {"type": "list", "elements": "int", "default": [1, 65535]},
        "cps": {"type": "int"},
        "concurrent": {"type": "int"},
        "keepalive": {"type": "str"},
        "payload_bytes": {"type": "int"},
        "vlan": {"type": "int"},
        "vxlan": {
            "type": "dict",
            "options": {
                "vni": {"type": "int", "required": True},
                "inner_source_mac": {"type": "str", "required": True},
                "inner_destination_mac": {"type": "str", "required": True},
                "local": {"type": "dict", "required": True, "options": _range_spec()},
                "remote": {"type": "dict", "required": True, "options": _range_spec()},
            },
        },
        "rss": {"type": "bool", "default": False},
        "slow_start_s": {"type": "int"},
        "warmup_s": {"type": "float", "default": 0.0},
        "duration_s": {"type": "float", "default": 10.0},
        "interval_s": {"type": "float", "default": 1.0},
        "retransmit_timeout_s": {"type": "int", "default": 2},
        "tx_burst": {"type": "int"},
        "launch_num": {"type": "int"},
    }


def end_spec() -> dict[str, t.Any]:
    """What belongs to the host; without it, what the role dperf wrote down there."""
    return {
        "program": {"type": "path"},
        "nics": {
            "type": "list",
            "elements": "dict",
            "options": {
                "pci": {"type": "str", "required": True},
                "address": {"type": "str", "required": True},
                "gateway": {"type": "str", "required": True},
                "gateway_mac": {"type": "str"},
            },
        },
        "cpus": {"type": "str"},
        "socket_mem_mb": {"type": "list", "elements": "int"},
        "check_hardware": {"type": "bool"},
    }


@dataclasses.dataclass(frozen=True)
class Trial:
    """A load with its name."""

    id: str
    load: Load


@dataclasses.dataclass(frozen=True)
class HostSide:
    """What dperf has on this host."""

    program: str
    end: End
    #: Whether PCI devices, drivers and hugepages are looked at before a start. Not with virtual devices.
    check_hardware: bool


def keepalive_us(text: str) -> int:
    """``1ms`` in microseconds.

    :raises BenchError: it is no time with a unit.
    """
    match = _TIME.fullmatch(text.strip())
    us = float(match[1]) * _UNITS_US[match[2]] if match else 0.0
    if match is None or us != int(us) or us <= 0:
        raise BenchError(
            f"{text!r} is not a time", where="keepalive", remedy="Write it as 10us, 1ms or 60s", code="bad_option"
        )
    return int(us)


def _whole(name: str, value: float) -> int:
    if not math.isfinite(value) or value != int(value):
        raise BenchError(f"{value:g} is not whole: dperf counts in seconds", where=name, code="bad_option")
    return int(value)


def _range(item: Params) -> Range:
    return Range(item["start"], item["count"])


def _ranges(params: Params, many: str, one: str) -> tuple[Range, ...]:
    if params.get(many):
        return tuple(_range(item) for item in params[many])
    if params.get(one):
        return (Range(params[one]),)
    raise BenchError(f"{many} or {one} must be given", where=many, code="bad_option")


def load_from(params: Params) -> Load:
    """The load of a trial's parameters, which passed :func:`trial_spec`."""
    tunnel = params.get("vxlan")
    ports = params["client_ports"]
    if len(ports) != 2:
        raise BenchError("two ports are needed, the first and the last", where="client_ports", code="bad_option")
    warmup = max(SLOW_START_S[0], _whole("warmup_s", params["warmup_s"]))
    return Load(
        kind=params["load"],
        clients=_ranges(params, "clients", "bind"),
        servers=_ranges(params, "servers", "server"),
        protocol=params["protocol"],
        cps=params.get("cps"),
        concurrent=params.get("concurrent"),
        keepalive_us=keepalive_us(params["keepalive"]) if params.get("keepalive") else None,
        payload_bytes=params.get("payload_bytes"),
        listen_port=params["port"],
        listen_count=params["listen_count"],
        client_ports=(ports[0], ports[1]),
        clients_seen=tuple(_range(item) for item in params.get("clients_seen") or ()),
        vlan=params.get("vlan"),
        vxlan=None
        if tunnel is None
        else Vxlan(
            tunnel["vni"],
            tunnel["inner_source_mac"],
            tunnel["inner_destination_mac"],
            _range(tunnel["local"]),
            _range(tunnel["remote"]),
        ),
        rss=params["rss"],
        slow_start_s=params["slow_start_s"] if params.get("slow_start_s") is not None else warmup,
        duration_s=_whole("duration_s", params["duration_s"]),
        retransmit_timeout_s=params["retransmit_timeout_s"],
        tx_burst=params.get("tx_burst"),
        launch_num=params.get("launch_num"),
    )


def trial_from(params: Params, name: str) -> Trial:
    if not _ID.fullmatch(name):
        raise BenchError(
            f"{name!r} is no name for a file", where="id",
            remedy="Use letters, digits, dot, dash and underscore", code="bad_option",
        )  # fmt: skip
    try:
        return Trial(name, load_from(params))
    except BenchError as error:
        where = f"trial {name}: {error.where}" if error.where else f"trial {name}"
        raise BenchError(error.what, where=where, remedy=error.remedy, code=error.code) from error


def trials_from(items: t.Iterable[Params], key: str) -> list[Trial]:
    """All of them; a name may be there once."""
    found: dict[str, Trial] = {}
    for item in items:
        if item[key] in found:
            raise BenchError(f"{item[key]} is given twice", where=key, code="bad_option")
        found[item[key]] = trial_from(item, item[key])
    return list(found.values())


def end_from(params: Params, *, path: str = DPERF_FILE) -> HostSide:
    """What dperf has on this host: from the module's parameters, and from the file of the role for the others."""
    known = {key: params[key] for key in end_spec() if params.get(key) is not None}
    if not {"program", "nics", "cpus"} <= set(known):
        known = {**_noted(path), **known}
    missing = [key for key in ("program", "nics", "cpus") if not known.get(key)]
    if missing:
        raise BenchError(
            f"{', '.join(missing)} of dperf on this host: not known",
            where=path,
            remedy="Apply the role fastpath.bench.dperf to this host, or give the options",
            code="not_prepared",
        )
    nics = tuple(
        Nic(item["pci"].lower(), item["address"], item["gateway"], item.get("gateway_mac")) for item in known["nics"]
    )
    memory = tuple(known.get("socket_mem_mb") or ())
    end = End(nics, tuple(sorted(parse_wish(known["cpus"]))), memory)
    return HostSide(known["program"], end, bool(known.get("check_hardware", True)))


def _noted(path: str) -> dict[str, t.Any]:
    try:
        with open(path, encoding="utf-8") as stream:
            noted = json.load(stream)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise BenchError(f"cannot be read: {error}", where=path, code="not_prepared") from error
    if not isinstance(noted, dict):
        raise BenchError("holds something else than settings", where=path, code="not_prepared")
    return noted


def old_word(name: str) -> str | None:
    """What dperf's own or older word for an option is called here."""
    return OLD_WORDS.get(name)
