# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the role changes on a gateway, on a host that answers as iproute2 6.1 and nftables 1.0.6 did."""

from __future__ import annotations

import os
import types

import pytest

from ansible_collections.fastpath.bench.plugins.module_utils._common.command import Result
from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._host.access import Access
from ansible_collections.fastpath.bench.plugins.module_utils._host.knob import ABSENT
from ansible_collections.fastpath.bench.plugins.module_utils._host.route import Route, route_key
from ansible_collections.fastpath.bench.plugins.module_utils._ipsec import knobs, options, proposal, support

XFRM = {"info_kind": "xfrm", "info_data": {"if_id": "0x2a"}}
LINKS = {
    "eth2": {"ifname": "eth2", "mtu": 1500, "flags": ["UP"]},
    "ipsec1": {"ifname": "ipsec1", "link": "eth2", "mtu": 1446, "flags": ["NOARP", "UP"], "linkinfo": XFRM},
}
NFT = """table inet fastpath_ipsec {
\tchain forward {
\t\ttype filter hook forward priority mangle; policy accept;
\t\toifname "ipsec1" tcp flags syn tcp option maxseg size set 1406 comment "fastpath ipsec1 4 1406"
\t}
}
"""


class Host(Access):
    def __init__(self, links=None, routes=(), nft=None):
        super().__init__()
        self.known, self.rows, self.nft, self.changes = dict(links or LINKS), list(routes), nft, []

    def links(self):
        return self.known

    def routes(self):
        return self.rows

    def call(self, argv):
        assert argv[:2] == ["nft", "list"]
        return (0, self.nft, "") if self.nft else (1, "", "Error: No such file or directory")

    def change(self, argv, *, where):
        self.changes.append(" ".join(argv))
        if argv[:3] == ["ip", "link", "del"]:
            del self.known[argv[-1]]
        return ""


WISH = {"if_id": 42, "dev": "eth2", "mtu_bytes": 1446, "up": True}


def test_an_xfrm_interface_is_read_with_its_id_in_whatever_form():
    assert knobs.XfrmLink(Host(), "ipsec1").read() == WISH
    as_number = {**LINKS["ipsec1"], "linkinfo": {"info_kind": "xfrm", "info_data": {"if_id": 42}}}
    assert knobs.XfrmLink(Host({"ipsec1": as_number}), "ipsec1").read()["if_id"] == 42
    assert knobs.XfrmLink(Host(), "ipsec2").read() is ABSENT


def test_it_is_made_changed_and_taken_away():
    host = Host({"eth2": LINKS["eth2"]})
    knobs.XfrmLink(host, "ipsec1").write(WISH)
    add = "ip link add name ipsec1 type xfrm dev eth2 if_id 42"
    assert host.changes == [add, "ip link set dev ipsec1 mtu 1446 up"]
    host = Host()
    knobs.XfrmLink(host, "ipsec1").write({**WISH, "mtu_bytes": 1438})
    assert host.changes == ["ip link set dev ipsec1 mtu 1438 up"]
    host = Host()
    knobs.XfrmLink(host, "ipsec1").write({**WISH, "if_id": 43})
    assert host.changes[:2] == ["ip link del dev ipsec1", "ip link add name ipsec1 type xfrm dev eth2 if_id 43"]
    host = Host()
    knobs.XfrmLink(host, "ipsec1").write(ABSENT)
    assert host.changes == ["ip link del dev ipsec1"]


def test_another_kind_of_interface_and_an_id_that_is_taken_are_refused():
    with pytest.raises(BenchError, match="no xfrm interface"):
        knobs.XfrmLink(Host(), "eth2").read()
    with pytest.raises(BenchError) as caught:
        knobs.XfrmLink(Host(), "ipsec2").check(ABSENT, WISH)
    assert caught.value.code == "if_id_taken"
    with pytest.raises(BenchError):
        knobs.XfrmLink(Host(), "ipsec1").check(WISH, {**WISH, "dev": "eth9"})


def test_the_clamp_is_known_by_its_comments():
    clamp = knobs.MssClamp(Host(nft=NFT), options.MSS_TABLE)
    assert clamp.read() == ["ipsec1 4 1406"]
    assert clamp.satisfied(clamp.read(), ["ipsec1 4 1406"])
    host = Host()
    clamp = knobs.MssClamp(host, options.MSS_TABLE)
    assert clamp.read() is ABSENT
    clamp.write(["10.73.2.0/24 4 1406", "ipsec1 6 1386"])
    assert "ip daddr 10.73.2.0/24 tcp flags syn tcp option maxseg size set 1406" in host.changes[0]
    assert 'oifname "ipsec1" meta nfproto ipv6' in host.changes[0]
    host = Host(nft=NFT)
    knobs.MssClamp(host, options.MSS_TABLE).write(ABSENT)
    assert host.changes == ["nft delete table inet fastpath_ipsec"]


def test_only_files_of_ours_are_touched(tmp_path):
    with pytest.raises(BenchError):
        knobs.OwnFile(Host(), "/etc/swanctl/swanctl.conf")
    path = tmp_path / "fastpath-bench.conf"
    knob = knobs.OwnFile(Host(), str(path))
    assert knob.read() is ABSENT
    knob.write("there")
    assert knob.read() == "there"
    params = {"files": [{"path": str(path), "content": "secret"}]}
    assert options.write_files(params, check_mode=True) == [str(path)]
    assert path.read_text() == ""
    assert options.write_files(params, check_mode=False) == [str(path)]
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("secret", 0o600)
    assert options.write_files(params, check_mode=False) == []
    path.chmod(0o644)
    assert options.write_files(params, check_mode=False) == [str(path)]
    assert path.stat().st_mode & 0o777 == 0o600
    assert os.listdir(tmp_path) == ["fastpath-bench.conf"]
    knob.write(ABSENT)
    assert not path.exists()


def test_a_route_over_several_interfaces():
    links = {**LINKS, "ipsec2": {**LINKS["ipsec1"], "ifname": "ipsec2"}}
    hops = [{"dev": name, "weight": 1, "flags": []} for name in ("ipsec1", "ipsec2")]
    row = {"type": "unicast", "dst": "10.73.2.0/24", "protocol": "static", "flags": [], "family": 4, "nexthops": hops}
    wish = {"devs": ["ipsec1", "ipsec2"]}
    key = route_key("10.73.2.0/24")
    route = Route(Host(links, [row]), key)
    assert route.satisfied(route.read(), wish)
    assert not route.satisfied(route.read(), {"devs": ["ipsec1"]})
    host = Host(links)
    route = Route(host, key)
    route.check(route.read(), wish)
    route.write(route.resolve(ABSENT, wish))
    assert host.changes == [
        "ip -4 route add unicast 10.73.2.0/24 table main proto static"
        " nexthop dev ipsec1 weight 1 nexthop dev ipsec2 weight 1"
    ]
    single = Route(Host(links), key)
    assert single.resolve(ABSENT, {"devs": ["ipsec1"]}) == [{"type": "unicast", "protocol": "static", "dev": "ipsec1"}]
    with pytest.raises(BenchError):
        route.check(ABSENT, {"devs": ["ipsec1", "ipsec9"]})


def kernel(*refused):
    """Answers as this kernel or that one; ``refused`` are words in the command."""

    def run(argv):
        words = " ".join(argv)
        fails = next((answer for word, answer in refused if word in words), None)
        return Result(tuple(argv), 2 if fails else 0, "", fails or "")

    return run


ESP = proposal.parse_all(["aes128gcm16", "aes128-sha1"], proposal.ESP)


def test_what_a_kernel_lacks():
    assert support.why_not(ESP, interfaces=True, run=kernel()) is None
    no_links = kernel(("type xfrm", "Error: Unknown device type."))
    assert "no xfrm interfaces (Error: Unknown device type)" in str(support.why_not(ESP, interfaces=True, run=no_links))
    assert support.why_not(ESP, interfaces=False, run=no_links) is None
    no_gcm = kernel(("rfc4106", "Error: Requested AEAD algorithm not found."))
    assert "ESP with aes128gcm16" in str(support.why_not(ESP, interfaces=True, run=no_gcm))
    # where no namespace can be made it could not be tried, which is no reason
    assert support.why_not(ESP, interfaces=True, run=kernel(("true", "no"), ("rfc4106", "no"))) is None


def test_the_keys_of_the_trial_have_the_right_length():
    gcm, cbc = (support.state_words(one) for one in ESP)
    assert len(gcm[gcm.index("rfc4106(gcm(aes))") + 1]) == 2 + 2 * 20
    assert gcm[-1] == "128"
    assert cbc[cbc.index("auth-trunc") + 3] == "96"
    assert len(cbc[-1]) == 2 + 2 * 16


def test_an_algorithm_that_the_kernel_lacks_stops_before_a_tunnel_is_built(monkeypatch):
    monkeypatch.setattr(options.kernel_crypto, "survey", lambda *_args, **_more: [
        types.SimpleNamespace(name="rfc4106(gcm(aes))", available=False, driver=None, accelerated=None)
    ])  # fmt: skip
    with pytest.raises(BenchError) as caught:
        options.crypto_findings(Host(), ["aes128gcm16"])
    assert caught.value.code == "algorithm_not_in_kernel"
