# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The catalog that a testbed's variables and the shipped profiles give together."""

from __future__ import annotations

import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._bench.plan import Catalog
from ansible_collections.fastpath.bench.plugins.module_utils._bench.shape import as_mapping

#: Dictionaries with shipped entries; a user's entry of the same name wins.
_MERGED = ("datapaths", "traffic", "generators", "power", "axes")
_PLAIN = ("duration_s", "warmup_s", "interval_s")


def catalog_of(variables: t.Mapping[str, t.Any], shipped: t.Mapping[str, t.Any]) -> Catalog:
    """A user's ``bench_*`` variables laid over the shipped ones."""
    merged: dict[str, t.Any] = {"topologies": as_mapping(variables.get("bench_topologies", {}), "bench_topologies")}
    for name in _MERGED:
        own = as_mapping(variables.get(f"bench_{name}", {}), f"bench_{name}")
        merged[name] = {**as_mapping(shipped.get(name, {}), f"shipped {name}"), **own}
    for name in _PLAIN:
        if f"bench_{name}" in variables:
            merged[name] = variables[f"bench_{name}"]
    return Catalog(**merged)
