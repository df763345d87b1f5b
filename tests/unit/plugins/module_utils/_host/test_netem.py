# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""netem as a setting of a host: set, read back, taken off, and where it cannot be."""

from __future__ import annotations

import json
import pathlib
import typing as t

import pytest

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._host.access import Access
from ansible_collections.fastpath.bench.plugins.module_utils._host.journal import Journal
from ansible_collections.fastpath.bench.plugins.module_utils._host.knob import ABSENT
from ansible_collections.fastpath.bench.plugins.module_utils._host.netem import Netem, Settings, settings_of
from ansible_collections.fastpath.bench.plugins.module_utils._host.reconcile import Wish, reconcile
from ansible_collections.fastpath.bench.plugins.module_utils._host.restore import restore

OWN = {"kind": "fq_codel", "handle": "0:", "root": True, "options": {}}
ASKED = {"delay_us": 10_000, "loss_ratio": 0.02, "reorder_ratio": 0.0, "bandwidth_bps": 100_000_000}


class Kernel(Access):
    """An interface, and what tc tells of it."""

    def __init__(self, root: dict[str, t.Any] | None = None, *, known: bool = True) -> None:
        super().__init__()
        self.root: dict[str, t.Any] = root or OWN
        self.known = known
        self.asked: list[list[str]] = []

    def links(self) -> dict[str, dict[str, t.Any]]:
        return {"eth2": {"ifname": "eth2", "ifindex": 7, "flags": ["UP"]}}

    def call(self, argv: t.Sequence[str]) -> tuple[int, str, str]:
        words = list(argv)
        if "show" in words:
            return 0, json.dumps([self.root]), ""
        self.asked.append(words)
        if words[2] == "del":
            self.root = OWN
        elif not self.known:
            return 2, "", "Error: Specified qdisc kind is unknown.\n"
        else:
            self.root = {"kind": "netem", "handle": "8001:", "root": True, "options": self._options(words)}
        return 0, "", ""

    @staticmethod
    def _options(words: list[str]) -> dict[str, t.Any]:
        options: dict[str, t.Any] = {"limit": int(words[words.index("limit") + 1])}
        if "delay" in words:
            # in ticks
            options["delay"] = {"delay": float(words[words.index("delay") + 1][:-2]) / 1e6 * 1.0001, "jitter": 0.0}
        if "loss" in words:
            options["loss-random"] = {"loss": float(words[words.index("random") + 1][:-1]) / 100, "correlation": 0.0}
        if "rate" in words:
            options["rate"] = {"rate": int(words[words.index("rate") + 1][:-3]) // 8}
        return options


def test_it_is_set_kept_and_put_back(tmp_path: pathlib.Path) -> None:
    kernel = Kernel()
    wish = Wish(Netem(kernel, "eth2"), ASKED)
    assert reconcile([wish], Journal(str(tmp_path)), check_mode=True).changed
    assert kernel.asked == []
    assert reconcile([wish], Journal(str(tmp_path)), check_mode=False).changed
    words = "netem limit 1000 delay 10000us loss random 2.000000% rate 100000000bit"
    assert " ".join(kernel.asked[0]).endswith(f"dev eth2 root {words}")
    assert not reconcile([wish], Journal(str(tmp_path)), check_mode=False).changed
    restore(Journal(str(tmp_path)), kernel)
    assert kernel.root == OWN


def test_what_somebody_has_set_stays(tmp_path: pathlib.Path) -> None:
    kernel = Kernel({"kind": "htb", "handle": "1:", "root": True, "options": {}})
    with pytest.raises(BenchError, match="htb"):
        reconcile([Wish(Netem(kernel, "eth2"), ASKED)], Journal(str(tmp_path)), check_mode=False)
    assert kernel.asked == []
    assert Netem(kernel, "eth2").read() is ABSENT


def test_a_kernel_without_it_is_said(tmp_path: pathlib.Path) -> None:
    kernel = Kernel(known=False)
    with pytest.raises(BenchError) as caught:
        reconcile([Wish(Netem(kernel, "eth2"), ASKED)], Journal(str(tmp_path)), check_mode=False)
    assert caught.value.code == "netem_unsupported"


def test_room_for_what_is_under_way() -> None:
    assert Settings(delay_us=100_000, bandwidth_bps=10**9).limit == 16_666
    assert Settings(loss_ratio=0.1).limit == 1000
    assert settings_of({"options": {}}) == {"delay_us": 0, "loss_ratio": 0.0, "reorder_ratio": 0.0, "bandwidth_bps": 0}


@pytest.mark.parametrize(
    "wrong", [{"loss_ratio": 1.5}, {"delay_us": -1}, {"reorder_ratio": 0.5}, {"bandwidth_bps": -1}]
)
def test_what_cannot_be_is_refused(wrong: dict[str, t.Any]) -> None:
    with pytest.raises(BenchError) as caught:
        Settings(**wrong).check()
    assert caught.value.code == "bad_option"
