# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hugepages of this very machine: reserved, handed out, and put back exactly as they were found."""

from __future__ import annotations

import os
import pathlib

import pytest

from ansible_collections.fastpath.bench.plugins.module_utils._host import host_prep, hugepages
from ansible_collections.fastpath.bench.plugins.module_utils._host.access import Access
from ansible_collections.fastpath.bench.plugins.module_utils._host.journal import Journal
from ansible_collections.fastpath.bench.plugins.module_utils._host.reconcile import reconcile
from ansible_collections.fastpath.bench.plugins.module_utils._host.restore import restore

MORE = 2

pytestmark = [
    pytest.mark.lab,
    pytest.mark.skipif(
        os.geteuid() != 0 or not os.access("/proc/sys/vm/nr_hugepages", os.W_OK) or not hugepages.sizes(Access()),
        reason="needs root and a kernel whose hugepages can be set",
    ),
]


def test_pages_are_reserved_handed_out_and_given_back(tmp_path: pathlib.Path) -> None:
    access = Access()
    kb = hugepages.default_kb(access)
    knob = hugepages.HugePages(access, hugepages.key_of(None, kb))
    found, folder = knob.read(), tmp_path / "huge"
    params = {
        "hugepages": [{"size": f"{kb}kB", "count": found + MORE}],
        "mounts": [{"path": str(folder), "size": f"{kb}kB"}],
        "drivers": [],
        "kernel_args": [],
        "cores": None,
    }
    journal = Journal(str(tmp_path / "journal"), part="host_prep")
    try:
        assert reconcile(host_prep.wishes(access, params), journal).changed
        assert knob.read() == found + MORE
        assert hugepages.mounts(access)[str(folder)] == kb
        assert not reconcile(host_prep.wishes(access, params), journal).changed
    finally:
        left = restore(journal, access).remaining
    assert left == 0
    assert knob.read() == found
    assert str(folder) not in hugepages.mounts(access)
    assert not folder.exists()
