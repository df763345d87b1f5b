# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook impairment's way to what ``_bench/tcp_model.py`` knows."""

from __future__ import annotations

import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._bench import tcp_model
from ansible_collections.fastpath.bench.plugins.module_utils._bench.report import impairment


def tcp_expected(
    found: t.Sequence[t.Mapping[str, t.Any]], mss_bytes: int, bandwidth_bps: float
) -> list[dict[str, t.Any]]:
    return tcp_model.expected(found, mss_bytes=int(mss_bytes), bandwidth_bps=float(bandwidth_bps))


def tcp_page(
    rows: t.Sequence[t.Mapping[str, t.Any]], mss_bytes: int, bandwidth_bps: float, about: t.Sequence[str]
) -> str:
    return impairment.page(rows, mss_bytes=int(mss_bytes), bandwidth_bps=float(bandwidth_bps), about=about)


class FilterModule:
    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"tcp_expected": tcp_expected, "tcp_page": tcp_page}
