# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host's kernel in memory: what ``ip``, ``ethtool``, /proc/sys and /sys would say and do.

It has the habits that restoring must cope with, each seen on Linux 6.18: a
link that goes down loses IPv6 addresses and routes; an MTU below 1280 loses
IPv6 altogether; the last IPv4 address takes the routes along, a primary one
its secondary ones; one feature drags others; fewer queues forget their
masks; forwarding is copied to each interface; a table of one's own from hash
to queue stands against fewer queues; interrupts are asked for anew with the
queues.
"""

from __future__ import annotations

import copy
import errno
import ipaddress
import json
import re
import struct
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._host.access import (
    Access,
    NotSupported,
    NotThere,
    ReadOnly,
    Refused,
    file_error,
    parse_ip_json,
)
from ansible_collections.fastpath.bench.plugins.module_utils._host.rss import equal_table, weighted_table


class Killed(BaseException):
    """The process was killed here: nothing may catch this."""


FOREVER = 4294967295
#: feature -> (group, needs)
FEATURES: dict[str, tuple[str | None, str | None]] = {
    "rx-checksumming": (None, None),
    "tx-checksum-ip-generic": ("tx-checksumming", None),
    "tx-scatter-gather": ("scatter-gather", None),
    "tx-scatter-gather-fraglist": ("scatter-gather", None),
    "tx-tcp-segmentation": ("tcp-segmentation-offload", "tx-scatter-gather"),
    "tx-tcp6-segmentation": ("tcp-segmentation-offload", "tx-scatter-gather"),
    "generic-segmentation-offload": (None, "tx-scatter-gather"),
    "generic-receive-offload": (None, None),
}
PRINTED = {"tx-generic-segmentation": "generic-segmentation-offload", "rx-gro": "generic-receive-offload"}
PRINTED["rx-checksum"] = "rx-checksumming"
FIXED = {"receive-hashing": False, "highdma": True}
IPV6_LEAVES = {"accept_ra": "1", "forwarding": "0", "disable_ipv6": "0"}
IPV4_LEAVES = {"rp_filter": "0", "forwarding": "0", "accept_redirects": "1"}


#: A letter of ethtool -> what it prints.
HASHED = {"s": "IP SA", "d": "IP DA", "f": "L4 bytes 0 & 1 [TCP/UDP src port]"}
HASHED["n"] = "L4 bytes 2 & 3 [TCP/UDP dst port]"


def hash_text(letters: str) -> str:
    fields = [HASHED[letter] for letter in letters] or ["None"]
    return "\n".join(["UDP over IPV4 flows use these fields for computing Hash flow key:", *fields, "", ""])


def table_text(rings: int, table: list[int]) -> str:
    rows = [f"RX flow hash indirection table for it with {rings} RX ring(s):"]
    rows += [f"{at:5}: " + "".join(f"{q:6}" for q in table[at : at + 8]) for at in range(0, len(table), 8)]
    return "\n".join([*rows, "RSS hash key:", "6d:5a", "RSS hash function:", "    toeplitz: on", ""])


class Link:
    def __init__(self, index: int, queues: int = 4) -> None:
        self.index = index
        self.mtu = 1500
        self.up = True
        self.promisc = False
        self.txqlen = 1000
        self.mac = f"02:00:00:00:00:{index:02x}"
        self.addresses: list[dict[str, t.Any]] = []
        self.wanted = dict.fromkeys(FEATURES, True)
        self.most = {"rx": queues, "tx": queues}
        self.channels = {"rx": queues, "tx": queues}
        self.masks: dict[str, str] = {}
        self.steering = True
        self.rings = {"rx": 256, "tx": 256}
        self.coalesce: dict[str, bool | int] = {"adaptive-rx": False, "rx-usecs": 3, "tx-usecs": 0}
        self.pause = {"autoneg": True, "rx": True, "tx": True}
        self.hashed = {"tcp4": "sdfn", "udp4": "sd"}
        #: None is the driver's own, which follows the number of queues.
        self.table: list[int] | None = None
        self.irqs: dict[int, str] = {}
        self._irqs_anew()

    def _irqs_anew(self) -> None:
        """One interrupt for each receive queue; a number is not used twice."""
        first = max(self.irqs, default=self.index * 1000 - 1) + 1
        self.irqs = {first + number: "0-3" for number in range(self.channels["rx"])}

    @property
    def spread(self) -> list[int]:
        return self.table or [index % self.channels["rx"] for index in range(16)]

    def active(self, name: str) -> bool:
        needs = FEATURES[name][1]
        return self.wanted[name] and (needs is None or self.wanted[needs])


#: An option of ethtool -> what it shows; in capitals it sets it.
PARAMS: dict[str, t.Callable[[Link], dict[str, t.Any]]] = {
    "-g": lambda link: link.rings,
    "-c": lambda link: link.coalesce,
    "-a": lambda link: link.pause,
}


def params_text(option: str, link: Link) -> str:
    values = PARAMS[option](link)
    words = {name: {True: "on", False: "off"}[value] for name, value in values.items() if isinstance(value, bool)}
    if option == "-a":
        return f"Pause parameters for it:\nAutonegotiate:\t{words['autoneg']}\nRX:\t{words['rx']}\nTX:\t{words['tx']}\n"
    if option == "-c":
        usecs = f"rx-usecs: {values['rx-usecs']}\nrx-frames: n/a\n\ntx-usecs: {values['tx-usecs']}\n"
        return f"Coalesce parameters for it:\nAdaptive RX: {words['adaptive-rx']}  TX: n/a\n{usecs}"
    parts = [f"RX:\t{rx}\nRX Mini:\tn/a\nTX:\t{tx}\n" for rx, tx in ((4096, 4096), (values["rx"], values["tx"]))]
    return "Ring parameters for it:\nPre-set maximums:\n" + "Current hardware settings:\n".join(parts)


class FakeKernel(Access):
    def __init__(self, names: t.Sequence[str] = ("eth1", "eth2"), *, cpus: int = 4, queues: int = 4) -> None:
        super().__init__("/proc", "/sys")
        self.cpus = cpus
        self.net = {name: Link(number + 2, queues) for number, name in enumerate(names)}
        self.table: list[dict[str, t.Any]] = []
        self.params: dict[str, str] = {"net/ipv4/fib_multipath_hash_policy": "0", "net/ipv4/reserved": ""}
        self.own_value: set[str] = set()
        self.read_only: set[str] = set()
        self.managed: set[int] = set()
        for name in ("all", "default", *names):
            self.params.update({f"net/ipv4/conf/{name}/{leaf}": value for leaf, value in IPV4_LEAVES.items()})
            self._ipv6_on(name)
        #: Counts down with each change of the host: at 0 the change fails, or the process dies.
        self.fail_in: int | None = None
        self.kill_in: int | None = None
        self.kill_after_effect = False
        self.commands: list[list[str]] = []

    def _ipv6_on(self, name: str) -> None:
        for leaf, value in IPV6_LEAVES.items():
            default = self.params.get(f"net/ipv6/conf/default/{leaf}", value)
            self.params.setdefault(f"net/ipv6/conf/{name}/{leaf}", default)

    def picture(self) -> dict[str, t.Any]:
        """All that must be the same after a restore."""
        links = {}
        for name, link in self.net.items():
            state = dict(vars(link))
            old = [a for a in link.addresses if a["family"] == "inet"]
            new = [a for a in link.addresses if a["family"] == "inet6"]
            state["addresses"] = old + sorted(new, key=lambda a: a["local"])
            state["masks"] = {key: mask for key, mask in sorted(link.masks.items()) if int(mask.replace(",", ""), 16)}
            own = link.spread == equal_table(16, link.channels["rx"])
            # The driver's own table and the same one set by hand cannot be told apart by reading.
            state["table"] = None if own else link.spread
            state["irqs"] = list(link.irqs.values())  # whatever their numbers are by now
            if link.coalesce["adaptive-rx"]:
                state["coalesce"] = {**link.coalesce, "rx-usecs": "moving"}
            links[name] = state
        routes = sorted(json.dumps(row, sort_keys=True) for row in self.table)
        return copy.deepcopy({"links": links, "routes": routes, "params": self.params})

    # What may go wrong

    def _before_change(self, what: str) -> None:
        self.forget()
        if self.fail_in is not None:
            self.fail_in -= 1
            if self.fail_in < 0:
                self.fail_in = None
                raise Refused("the kernel said no", where=what)
        if self.kill_in is not None and not self.kill_after_effect:
            self._count_to_death()

    def _after_change(self) -> None:
        if self.kill_in is not None and self.kill_after_effect:
            self._count_to_death()

    def _count_to_death(self) -> None:
        assert self.kill_in is not None
        self.kill_in -= 1
        if self.kill_in < 0:
            self.kill_in = None
            raise Killed

    # Files

    def _queue(self, path: str) -> tuple[Link, str, str] | None:
        match = re.fullmatch(r"/sys/class/net/([^/]+)/queues/((rx|tx)-(\d+))/(rps_cpus|xps_cpus|rps_flow_cnt)", path)
        if match is None or match[1] not in self.net:
            return None
        link = self.net[match[1]]
        if int(match[4]) >= link.channels[match[3]]:
            return None
        return link, match[2], match[5]

    def read_file(self, path: str) -> str:
        irq = self._irq(path)
        if irq:
            return irq[0].irqs[irq[1]]
        if path in ("/sys/devices/system/cpu/possible", "/sys/devices/system/cpu/online"):
            return f"0-{self.cpus - 1}"
        queue = self._queue(path)
        if queue:
            link, name, leaf = queue
            if leaf == "rps_flow_cnt":
                return str(int(link.masks.get(f"{name}/{leaf}", "0"), 16))
            width = -(-self.cpus // 32)
            value = int(link.masks.get(f"{name}/{leaf}", "0").replace(",", ""), 16)
            groups = [f"{value >> 32 * i & 0xFFFFFFFF:08x}" for i in reversed(range(width))]
            return ",".join(groups) if width > 1 else f"{value:x}"
        key = path[len("/proc/sys/") :]
        if path.startswith("/proc/sys/") and key in self.params:
            return self.params[key]
        raise NotThere("does not exist", where=path)

    def _irq(self, path: str) -> tuple[Link, int] | None:
        match = re.fullmatch(r"/proc/irq/(\d+)/smp_affinity_list", path)
        number = int(match[1]) if match else 0
        return next(((link, number) for link in self.net.values() if number in link.irqs), None)

    def write_file(self, path: str, text: str) -> None:
        queue, irq = self._queue(path), self._irq(path)
        key = path[len("/proc/sys/") :]
        if queue is None and irq is None and key not in self.params:
            raise NotThere("does not exist", where=path)
        self._before_change(path)
        if queue:
            link, name, leaf = queue
            if not link.steering:
                raise NotSupported("the device does not support it", where=path)
            if leaf == "rps_flow_cnt":
                # The kernel's tables are powers of two.
                link.masks[f"{name}/{leaf}"] = f"{1 << (int(text) - 1).bit_length() if int(text) else 0:x}"
            else:
                assert re.fullmatch(r"[0-9a-f]{1,8}(,[0-9a-f]{8})*", text), text
                link.masks[f"{name}/{leaf}"] = f"{int(text.replace(',', ''), 16):x}"
        elif irq:
            if irq[1] in self.managed:
                raise file_error(OSError(errno.EIO, "Input/output error"), path) from OSError(errno.EIO, "")
            irq[0].irqs[irq[1]] = text
        else:
            if key in self.read_only:
                raise ReadOnly("the file system is read-only here", where=path)
            self._set_param(key, text)
        self._after_change()

    def _set_param(self, key: str, text: str) -> None:
        changed = self.params[key] != text
        self.params[key] = text
        self.own_value.add(key)
        match = re.fullmatch(r"net/(ipv4|ipv6)/conf/(all|default)/(\w+)", key)
        if not match or not changed:
            return
        family, which, leaf = match.groups()
        names = [name for name in [*self.net, "default"] if f"net/{family}/conf/{name}/{leaf}" in self.params]
        if which == "all" and leaf == "forwarding":
            for name in names:
                self.params[f"net/{family}/conf/{name}/{leaf}"] = text
            if family == "ipv4":
                self.params["net/ipv4/conf/all/accept_redirects"] = "0" if text == "1" else "1"
        elif which == "default" and family == "ipv4":
            for name in self.net:
                if f"net/ipv4/conf/{name}/{leaf}" not in self.own_value:
                    self.params[f"net/ipv4/conf/{name}/{leaf}"] = text

    def list_dir(self, path: str) -> list[str]:
        match = re.fullmatch(r"/sys/class/net/([^/]+)/queues", path)
        if match and match[1] in self.net:
            link = self.net[match[1]]
            return sorted(f"{kind}-{number}" for kind in ("rx", "tx") for number in range(link.channels[kind]))
        match = re.fullmatch(r"/sys/class/net/([^/]+)/device/msi_irqs", path)
        if match and match[1] in self.net:
            return sorted(map(str, self.net[match[1]].irqs))
        prefix = path[len("/proc/sys/") :].rstrip("/") + "/"
        if path.startswith("/proc/sys/"):
            return sorted({key[len(prefix) :].split("/")[0] for key in self.params if key.startswith(prefix)})
        return []

    def is_writable(self, path: str) -> bool:
        return path[len("/proc/sys/") :] not in self.read_only

    # Tools

    def call(self, argv: t.Sequence[str]) -> tuple[int, str, str]:
        words = list(argv)
        self.commands.append(words)
        try:
            if words == ["ip", "-d", "-json", "address", "show"]:
                return 0, json.dumps([self._link_row(name) for name in self.net]), ""
            if words[0] == "ip" and words[2:4] == ["-d", "-json"]:
                rows = [row for row in self.table if row["family"] == int(words[1][1:])]
                bare = [{key: value for key, value in row.items() if key != "family"} for row in rows]
                return 0, json.dumps(bare) if bare else "", ""
            if words[0] == "ethtool" and words[1].islower():
                return 0, self._shown(words[1], words[2], words[3:]), ""
            return self._change(words)
        except BenchError as err:
            return 2, "", err.what

    def _shown(self, option: str, name: str, more: list[str]) -> str:
        link = self.net[name]
        if option == "-n":
            return hash_text(link.hashed[more[1]])
        if option == "-x":
            return table_text(link.channels["rx"], link.spread)
        if option in PARAMS:
            return params_text(option, link)
        return self._features(name) if option == "-k" else self._channel_text(name)

    def _change(self, words: list[str]) -> tuple[int, str, str]:
        self._before_change(" ".join(words))
        out = ""
        if words[:4] == ["ip", "link", "set", "dev"]:
            self._set_link(words[4], words[5], words[6] if len(words) > 6 else "")
        elif words[0] == "ip" and words[2] == "address":
            self._set_address(int(words[1][1:]), words[3], words[4:])
        elif words[0] == "ip" and words[2] == "route":
            self._set_route(int(words[1][1:]), words[3], words[4:])
        elif words[:2] == ["ethtool", "-K"]:
            out = self._set_features(words[2], words[3:])
        elif words[:2] == ["ethtool", "-L"]:
            self._set_channels(words[2], words[3:])
        elif words[0] == "ethtool" and words[1].lower() in PARAMS:
            self._set_params(words[1].lower(), self.net[words[2]], words[3:])
        elif words[:2] == ["ethtool", "-N"]:
            self.net[words[2]].hashed[words[4]] = words[5]
        elif words[:2] == ["ethtool", "-X"]:
            self._set_table(self.net[words[2]], words[3:])
        else:
            raise AssertionError(f"unknown command {words}")
        self._after_change()
        return 0, out, ""

    def _link_row(self, name: str) -> dict[str, t.Any]:
        link = self.net[name]
        flags = [
            "BROADCAST",
            "MULTICAST",
            *(["UP", "LOWER_UP"] if link.up else []),
            *(["PROMISC"] if link.promisc else []),
        ]
        row: dict[str, t.Any] = {"ifindex": link.index, "ifname": name, "flags": flags, "mtu": link.mtu}
        row.update({"address": link.mac, "min_mtu": 68, "max_mtu": 65535, "inet6_addr_gen_mode": "eui64"})
        if link.txqlen:
            row["txqlen"] = link.txqlen
        return {**row, "addr_info": link.addresses}

    def _set_link(self, name: str, word: str, value: str) -> None:
        link = self.net[name]
        if word in ("up", "down"):
            link.up = word == "up"
            if not link.up:
                link.addresses = [a for a in link.addresses if a["family"] == "inet"]
                self.table = [row for row in self.table if row["dev"] != name]
        elif word == "mtu":
            link.mtu = int(value)
            if link.mtu < 1280:
                link.addresses = [a for a in link.addresses if a["family"] == "inet"]
                self.table = [row for row in self.table if row["dev"] != name or row["family"] == 4]
                for leaf in IPV6_LEAVES:
                    self.params.pop(f"net/ipv6/conf/{name}/{leaf}", None)
            else:
                self._ipv6_on(name)
        elif word == "promisc":
            link.promisc = value == "on"
        elif word == "txqueuelen":
            link.txqlen = int(value)
        else:
            raise AssertionError(word)

    def _set_address(self, family: int, verb: str, words: list[str]) -> None:
        name = words[words.index("dev") + 1]
        link = self.net[name]
        interface = ipaddress.ip_interface(words[0])
        local, length = str(interface.ip), interface.network.prefixlen
        same = [a for a in link.addresses if a["local"] == local and a["prefixlen"] == length]
        if verb == "add":
            if same:
                raise Refused("RTNETLINK answers: File exists")
            if family == 6 and link.mtu < 1280:
                raise Refused("RTNETLINK answers: Invalid argument")
            record = {"family": "inet" if family == 4 else "inet6", "local": local, "prefixlen": length}
            record.update({"scope": "global", "valid_life_time": FOREVER, "preferred_life_time": FOREVER})
            if family == 4:
                record["label"] = name
            if "nodad" in words:
                record["nodad"] = True
            link.addresses.append(record)
            return
        if not same:
            raise Refused("RTNETLINK answers: Cannot assign requested address")
        before = [a for a in link.addresses if a["family"] == "inet"]
        link.addresses.remove(same[0])
        if family == 4:
            network = interface.network
            mates = [a for a in before if ipaddress.ip_interface(f"{a['local']}/{a['prefixlen']}").network == network]
            if mates and mates[0] is same[0]:
                link.addresses = [a for a in link.addresses if a not in mates]
            if not any(a["family"] == "inet" for a in link.addresses):
                self.table = [row for row in self.table if row["dev"] != name or row["family"] == 6]

    def _set_route(self, family: int, verb: str, words: list[str]) -> None:
        options = dict(zip(words[2::2], words[3::2]))
        row: dict[str, t.Any] = {"family": family, "type": words[0], "dst": words[1], "table": options["table"]}
        row["protocol"] = options.get("proto", "boot")
        row["scope"] = "global"
        row["flags"] = []
        if "via" in options:
            row["gateway"] = options["via"]
        if "metric" in options or family == 6:
            row["metric"] = int(options.get("metric", 1024))
        row["dev"] = options.get("dev") or self._device_to(row.get("gateway"))
        if verb != "del" and (row["dev"] is None or not self.net[row["dev"]].up):
            raise Refused("Error: Nexthop has invalid gateway.")
        if verb != "del" and family == 6 and self.net[row["dev"]].mtu < 1280:
            raise Refused("RTNETLINK answers: Network is unreachable")
        names = ("family", "dst", "table", "metric")
        same = [other for other in self.table if all(other.get(name) == row.get(name) for name in names)]
        if verb == "add" and same:
            raise Refused("RTNETLINK answers: File exists")
        if verb == "del":
            if not same:
                raise Refused("RTNETLINK answers: No such process")
            self.table.remove(same[0])
            return
        if verb == "replace":
            self.table = [other for other in self.table if other not in same]
        self.table.append(row)

    def _device_to(self, gateway: str | None) -> str | None:
        for name, link in self.net.items():
            for a in link.addresses:
                network = ipaddress.ip_interface(f"{a['local']}/{a['prefixlen']}").network
                if gateway and link.up and ipaddress.ip_address(gateway) in network:
                    return name
        return None

    def _features(self, name: str) -> str:
        link = self.net[name]
        lines = [f"Features for {name}:"]
        group = None
        for feature, (inside, _needs) in FEATURES.items():
            if inside != group:
                group = inside
                if inside:
                    any_on = any(link.active(f) for f, (g, _needs) in FEATURES.items() if g == inside)
                    lines.append(f"{inside}: {'on' if any_on else 'off'}")
            active = link.active(feature)
            mark = " [requested on]" if link.wanted[feature] and not active else ""
            lines.append(("\t" if inside else "") + f"{feature}: {'on' if active else 'off'}{mark}")
        lines += [f"{feature}: {'on' if state else 'off'} [fixed]" for feature, state in FIXED.items()]
        return "\n".join(lines) + "\n"

    def _set_features(self, name: str, words: list[str]) -> str:
        for feature, state in zip(words[::2], words[1::2]):
            self.net[name].wanted[PRINTED.get(feature, feature)] = state == "on"
        return "Actual changes:\n"

    def _channel_text(self, name: str) -> str:
        link = self.net[name]

        def part(counts: dict[str, int]) -> str:
            return f"RX:\t\t{counts['rx']}\nTX:\t\t{counts['tx']}\nOther:\t\tn/a\nCombined:\tn/a\n"

        current = part(link.channels)
        return (
            f"Channel parameters for {name}:\nPre-set maximums:\n{part(link.most)}Current hardware settings:\n{current}"
        )

    def _set_channels(self, name: str, words: list[str]) -> None:
        link = self.net[name]
        for kind, count in zip(words[::2], words[1::2]):
            if kind == "rx" and link.table and max(link.table) >= int(count):
                raise Refused("netlink error: requested channel counts are too low for existing indirection table")
            link.channels[kind] = int(count)
            if kind == "rx":
                link._irqs_anew()
            for key in list(link.masks):
                queue = key.split("/")[0]
                if queue.startswith(kind) and int(queue.split("-")[1]) >= int(count):
                    del link.masks[key]

    @staticmethod
    def _set_params(option: str, link: Link, words: list[str]) -> None:
        target = PARAMS[option](link)
        for name, value in zip(words[::2], words[1::2]):
            assert name in target, name
            if name == "rx-usecs" and target["adaptive-rx"] and "adaptive-rx" not in words:
                raise Refused("netlink error: Invalid argument")
            target[name] = value == "on" if value in ("on", "off") else int(value)

    def _set_table(self, link: Link, words: list[str]) -> None:
        if words == ["default"]:
            link.table = None
            return
        numbers = [int(word) for word in words[1:]]
        table = equal_table(16, numbers[0]) if words[0] == "equal" else weighted_table(16, numbers)
        self._put_table(link, table)

    @staticmethod
    def _put_table(link: Link, table: list[int]) -> None:
        if max(table) >= link.channels["rx"]:
            raise Refused("Cannot set RX flow hash configuration: Invalid argument")
        link.table = table

    def device_ioctl(self, device: str, request: bytes) -> bytes:
        numbers = struct.unpack(f"={len(request) // 4}I", request)
        assert numbers[:2] == (0x39, len(numbers) - 2)
        self._before_change("ioctl")
        self._put_table(self.net[device], list(numbers[2:]))
        self._after_change()
        return request

    # As the real one, from the same parser

    def told(self, argv: t.Sequence[str], *, where: str) -> str:
        return self.run(argv, where=where)  # a test changes the host behind our back

    def links(self) -> dict[str, dict[str, t.Any]]:
        rows = parse_ip_json(json.dumps([self._link_row(name) for name in self.net]))
        return {row["ifname"]: copy.deepcopy(row) for row in rows}
