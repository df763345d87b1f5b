# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from ansible_collections.fastpath.bench.plugins.module_utils._common.metric import metric


def test_a_metric_carries_unit_layer_and_kind_of_its_name():
    key, value = metric("goodput", "forward", 9.4e9, peak=9.5e9)
    assert key == "goodput_forward"
    assert value.as_dict() == {
        "value": 9.4e9, "unit": "bit/s", "layer": "L4", "direction": "forward", "kind": "received", "peak": 9.5e9,
    }


def test_the_sum_of_both_directions_is_called_total():
    assert metric("forwarding_rate", "both", None, why="no receiver report")[0] == "forwarding_rate_total"


@pytest.mark.parametrize("direction", ["", "up", "total"])
def test_an_unknown_direction_is_refused(direction):
    with pytest.raises(ValueError, match="is none of"):
        metric("goodput", direction, 1)
