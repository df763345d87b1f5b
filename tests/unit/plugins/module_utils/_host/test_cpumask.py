# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._host import cpumask

CPUS = st.frozensets(st.integers(0, 511))


@pytest.mark.parametrize(
    ("cpus", "mask"),
    [
        ([], "00000000"),
        ([0], "00000001"),
        (range(18, 36), "0000000f,fffc0000"),
        (range(96), "ffffffff,ffffffff,ffffffff"),
        ([32], "00000001,00000000"),
        (range(256), ",".join(["ffffffff"] * 8)),
        ([255], "80000000," + ",".join(["00000000"] * 7)),
    ],
)
def test_masks_as_the_kernel_reads_them(cpus, mask):
    assert cpumask.format_mask(cpus) == mask
    assert cpumask.parse_mask(mask) == frozenset(cpus)


@pytest.mark.parametrize("text", ["00000000,0000000f,fffc0000\n", "f,fffc0000", "F,FFFC0000", "0f,fffc0000"])
def test_padding_makes_no_difference(text):
    assert cpumask.same_mask(text, "0000000f,fffc0000")


@pytest.mark.parametrize("text", ["0x00ffffff,,,0x0", "f,,f", "", ",f", "123456789", "g", "f f", "-1"])
def test_what_is_no_mask(text):
    with pytest.raises(BenchError, match="CPU mask"):
        cpumask.parse_mask(text)


@pytest.mark.parametrize(
    ("wish", "cpus"),
    [
        ("", []),
        ([], []),
        ("0-3,8", [0, 1, 2, 3, 8]),
        ("10", [10]),
        (10, [10]),
        ("mask:f,fffc0000", range(18, 36)),
        ("0xf", range(4)),
        ([5, 1], [1, 5]),
        ("0-31:2/8", [0, 1, 8, 9, 16, 17, 24, 25]),
    ],
)
def test_what_a_user_may_write(wish, cpus):
    assert cpumask.parse_wish(wish) == frozenset(cpus)


@pytest.mark.parametrize(
    "wish", [True, "3-1", "all", "1,,2", [-1], ["1"], -1, "0-99999999", "0x", "mask:", None, 1.5, {0: 1}]
)
def test_what_a_user_may_not_write(wish):
    with pytest.raises(BenchError):
        cpumask.parse_wish(wish)


@given(CPUS)
def test_there_and_back(cpus):
    assert cpumask.parse_mask(cpumask.format_mask(cpus)) == cpus
    assert cpumask.parse_list(cpumask.format_list(cpus)) == cpus
    assert all(len(group) == 8 for group in cpumask.format_mask(cpus).split(","))


@given(st.text(max_size=30))
def test_garbage_is_one_typed_error(text):
    for read in (cpumask.parse_mask, cpumask.parse_list, cpumask.parse_wish):
        try:
            read(text)
        except BenchError:
            continue
