# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook nat_capacity's way to what ``_bench/nat_capacity.py`` knows."""

from __future__ import annotations

import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._bench import nat_capacity


def rows(found: t.Sequence[t.Mapping[str, t.Any]], loss_ratio: float = 0.0) -> list[dict[str, t.Any]]:
    return nat_capacity.rows(found, float(loss_ratio))


class FilterModule:
    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"nat_capacity": rows}
