# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import math
import random
import statistics
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from ansible_collections.fastpath.bench.plugins.module_utils._bench import stats
from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError

# Student's own data ("The probable error of a mean", 1908): hours of sleep gained by two drugs, n = 10 each.
DRUG_1 = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0]
DRUG_2 = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]


@pytest.mark.parametrize(
    ("freedom", "table"),
    [(1, 12.706), (2, 4.303), (4, 2.776), (9, 2.262), (30, 2.042), (120, 1.980)],
)
def test_quantiles_are_those_of_the_printed_t_table(freedom, table):
    assert stats.t_quantile(freedom) == pytest.approx(table, abs=5e-4)


def test_the_interval_of_students_sleep_data():
    # Published: mean 0.75, standard deviation 1.789, 95 % interval -0.53 to 2.03.
    summary = stats.summarise(DRUG_1)
    assert summary.mean == pytest.approx(0.75)
    assert summary.cv == pytest.approx(1.789 / 0.75, rel=1e-3)
    assert (summary.ci95_low, summary.ci95_high) == pytest.approx((-0.5298, 2.0298), abs=1e-4)


def test_welch_on_students_sleep_data():
    # R's t.test(extra ~ group, data = sleep): df = 17.776, 95 % interval of the difference -3.365483 to 0.205483.
    difference = stats.difference([math.exp(x) for x in DRUG_1], [math.exp(x) for x in DRUG_2])
    assert math.log1p(difference.low_percent / 100) == pytest.approx(-3.365483, abs=1e-5)
    assert math.log1p(difference.high_percent / 100) == pytest.approx(0.205483, abs=1e-5)
    shares = [statistics.variance(drug) / 10 for drug in (DRUG_1, DRUG_2)]
    assert stats.welch_freedom(shares[0], 10, shares[1], 10) == pytest.approx(17.776, abs=1e-3)
    assert not difference.shown


def test_paired_on_students_sleep_data():
    # R's t.test(..., paired = TRUE): 95 % interval -2.4598858 to -0.7001142; in pairs the drugs do differ.
    difference = stats.paired_difference([(math.exp(a), math.exp(b)) for a, b in zip(DRUG_1, DRUG_2)])
    assert math.log1p(difference.low_percent / 100) == pytest.approx(-2.4598858, abs=1e-6)
    assert math.log1p(difference.high_percent / 100) == pytest.approx(-0.7001142, abs=1e-6)
    assert difference.shown


def test_welch_agrees_with_scipy_for_uneven_series():
    rng = random.Random(7)
    ours = [rng.lognormvariate(3, 0.02) for _n in range(4)]
    theirs = [rng.lognormvariate(2.9, 0.2) for _n in range(9)]
    expected = scipy_stats.ttest_ind(
        [math.log(x) for x in ours], [math.log(x) for x in theirs], equal_var=False
    ).confidence_interval(0.95)
    difference = stats.difference(ours, theirs)
    assert difference.low_percent == pytest.approx(100 * math.expm1(expected.low))
    assert difference.high_percent == pytest.approx(100 * math.expm1(expected.high))


def test_a_difference_and_its_mirror_are_one_statement():
    ours, theirs = [12.0, 12.2, 11.9], [10.0, 10.1, 9.8]
    up, down = stats.difference(ours, theirs), stats.difference(theirs, ours)
    assert (1 + up.percent / 100) * (1 + down.percent / 100) == pytest.approx(1)
    assert (1 + up.low_percent / 100) * (1 + down.high_percent / 100) == pytest.approx(1)


def test_known_values():
    summary = stats.summarise([10.0, 30.0, 20.0, 40.0], [11.0, None, 45.0, 21.0])
    assert summary.as_dict() == {
        "n": 4, "median": 25.0, "mean": 25.0, "min": 10.0, "max": 40.0, "peak": 45.0,
        "cv": pytest.approx(0.51640, abs=1e-5),
        "ci95_low": pytest.approx(4.457, abs=1e-3), "ci95_high": pytest.approx(45.543, abs=1e-3),
    }  # fmt: skip


def test_one_value_has_no_spread_and_no_interval():
    summary = stats.summarise([5.0])
    assert (summary.n, summary.median, summary.cv, summary.ci95_low) == (1, 5.0, None, None)


def test_no_value_is_unknown_not_zero():
    assert stats.summarise([]).as_dict() == {
        "n": 0, "median": None, "mean": None, "min": None, "max": None, "peak": None,
        "cv": None, "ci95_low": None, "ci95_high": None,
    }  # fmt: skip


def test_only_zeros_have_no_relative_spread():
    assert stats.summarise([0.0, 0.0]).cv is None


@pytest.mark.parametrize(
    ("ours", "theirs", "reason"),
    [
        ([1.0], [1.0, 2.0], "at least 2 repetitions on both sides, has 1 and 2"),
        ([1.0, 2.0], [], "has 2 and 0"),
        ([1.0, 0.0], [1.0, 2.0], "zero or negative"),
        ([1.0, 2.0], [1.0, -2.0], "zero or negative"),
        ([10.0, 10.2, 9.9], [10.1, 9.8, 10.0], "holds 0"),
    ],
)
def test_what_the_evidence_does_not_carry_is_not_shown(ours, theirs, reason):
    difference = stats.difference(ours, theirs)
    assert not difference.shown
    assert reason in difference.reason


def test_equal_repetitions_give_a_point_as_interval():
    difference = stats.difference([2.0, 2.0], [1.0, 1.0])
    assert (difference.percent, difference.low_percent, difference.high_percent) == (pytest.approx(100),) * 3
    assert difference.shown
    assert not stats.difference([2.0, 2.0], [2.0, 2.0]).shown


VALUES = st.lists(st.floats(min_value=1e-3, max_value=1e13), min_size=1, max_size=30)


@given(VALUES)
def test_a_summary_lies_within_what_was_measured(values):
    summary = stats.summarise(values)
    assert summary.min <= summary.median <= summary.max
    assert summary.min <= summary.mean <= summary.max
    if summary.n > 1:
        assert summary.cv >= 0
        assert summary.ci95_low <= summary.mean <= summary.ci95_high


@given(VALUES, VALUES)
def test_a_shown_difference_lies_in_its_interval_and_the_interval_has_no_zero(ours, theirs):
    difference = stats.difference(ours, theirs)
    if difference.percent is not None:
        assert -100 <= difference.low_percent <= difference.percent <= difference.high_percent
        assert difference.shown == (not difference.low_percent <= 0 <= difference.high_percent)
    assert difference.shown == (difference.reason is None)


def test_the_module_imports_where_scipy_and_matplotlib_are_absent():
    code = (
        "import sys, pathlib; sys.path.insert(0, sys.argv[1]); import conftest\n"
        "class Absent:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name.split('.')[0] in ('scipy', 'numpy', 'matplotlib'): raise ImportError(name)\n"
        "sys.meta_path.insert(0, Absent())\n"
        "from ansible_collections.fastpath.bench.plugins.module_utils._bench import stats, findings, summary, store\n"
        "assert stats.summarise([1.0]).n == 1\n"
        "try: stats.summarise([1.0, 2.0])\n"
        "except stats.BenchError as error: print(error.message)\n"
    )
    root = __file__.split("/plugins/", maxsplit=1)[0]
    done = subprocess.run([sys.executable, "-c", code, root], capture_output=True, text=True, check=True)
    assert "python3 -m pip install scipy" in done.stdout


def test_the_error_for_a_missing_library_is_typed():
    assert isinstance(stats.missing_library("x"), BenchError)
