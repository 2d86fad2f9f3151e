"""The test of order in time, and splits by time."""

from __future__ import annotations

import time
from itertools import permutations

import numpy as np
import pytest
from scipy.stats import binomtest, rankdata

from prudent.core.order import (
    checked_times,
    forward_folds,
    latest_rows,
    order_test,
)

PLACE = np.arange(40)


def test_reference_values():
    values = 7 * PLACE % 11 + 4 * (PLACE >= 24)
    found = order_test(values[:, None])
    assert found.statistic == pytest.approx(3.40464801, abs=5e-9)
    assert (found.column, found.row, found.of_spread) == (0, 23, False)
    # The statistic of the squares is smaller, by the formula written out.
    ranks = rankdata(values)
    squares = ((ranks - ranks.mean()) / ranks.std()) ** 2
    scaled = (squares - squares.mean()) / squares.std()
    t = np.arange(2, 39)
    sums = np.abs(np.cumsum(scaled)[t - 1]) / np.sqrt(t * (40 - t) / 40)
    assert sums.max() == pytest.approx(1.21683534, abs=5e-9)


def test_no_order_of_a_few_rows_is_preferred():
    # All 120 orders of five rows: the p-value is at most e in at most e of them.
    rows = np.array([[0.0, 1], [1, 1], [1, 5], [3, 2], [9, 9]])
    p_values = np.array(
        [
            order_test(rows[list(order)], n_orders=39, random_state=seed).p_value
            for seed, order in enumerate(permutations(range(5)))
        ]
    )
    for level in (0.1, 0.2, 0.5):
        n_below = int((p_values <= level).sum())
        assert binomtest(n_below, 120, level, alternative="greater").pvalue > 1e-3


@pytest.mark.parametrize("n_tables", [120, pytest.param(1000, marks=pytest.mark.slow)])
def test_level_on_exchangeable_heavy_tailed_rows(n_tables):
    random = np.random.default_rng(0)
    n_false = 0
    for seed in range(n_tables):
        rows = random.standard_cauchy((60, 4)) * random.standard_cauchy()
        rows[:, 0] = np.round(rows[:, 0])
        n_false += order_test(rows, n_orders=99, random_state=seed).p_value <= 0.05
    assert binomtest(int(n_false), n_tables, 0.05, alternative="greater").pvalue > 1e-3


def _power(change, n_streams=40):
    random = np.random.default_rng(1)
    n_found = 0
    for seed in range(n_streams):
        rows = random.normal(size=(400, 8))
        change(rows[200:], random)
        n_found += order_test(rows, random_state=seed).p_value <= 0.05
    return n_found / n_streams


def test_power_against_shifts_and_spread():
    def shifted(rows, random):
        rows[:, 0] += 0.5

    def wider(rows, random):
        rows[:, 0] *= 1.5

    assert _power(shifted) >= 0.78
    assert _power(wider) >= 0.83


def test_a_large_table_takes_every_kth_row_and_a_second():
    random = np.random.default_rng(2)
    rows = random.normal(size=(5000, 30))
    start = time.process_time()
    order_test(rows)
    assert time.process_time() - start < 3  # 1 s where nothing else runs
    more = np.repeat(rows[:2000, :2], 3, axis=0)
    more[3000:, 1] += 1
    found = order_test(more)
    assert (found.column, found.row, found.p_value) == (1, 3000, 0.005)


def test_constant_columns_show_nothing():
    assert order_test(np.ones((30, 2))).p_value == 1
    with pytest.raises(ValueError, match=r"at least 4 rows, got .* \(3, 1\)"):
        order_test(np.zeros((3, 1)))


def test_folds_go_forward_and_keep_equal_times_together():
    random = np.random.default_rng(3)
    times = random.integers(30, size=200)
    folds = forward_folds(times, 4)
    assert len(folds) == 4
    tested = np.concatenate([test for _, test in folds])
    assert len(np.unique(tested)) == len(tested)
    for j, (train, test) in enumerate(folds, start=1):
        assert times[train].max() < times[test].min()
        assert abs(len(train) - 40 * j) <= 10
        assert abs(len(test) - 40) <= 14
    assert len(folds[-1][0]) + len(folds[-1][1]) == 200
    few = [len(test) for _, test in forward_folds(np.array([1, 1, 1, 1, 2, 3]), 2)]
    assert few == [1, 1]
    with pytest.raises(ValueError, match="3 distinct values, 4 are needed for 3 folds"):
        forward_folds(np.array([1, 1, 2, 3]), 3)


def test_the_latest_rows_reach_back_to_a_change_of_time():
    times = np.array([5, 1, 3, 3, 3, 2, 4, 1, 1, 1])
    early, late = latest_rows(times, 0.3)
    assert late.tolist() == [0, 2, 3, 4, 6]
    assert sorted([*early, *late]) == list(range(10))
    dates = np.array(["2026-01-02", "2026-01-01", "2026-01-03"], dtype="datetime64[D]")
    assert latest_rows(dates, 0.3)[1].tolist() == [2]
    with pytest.raises(ValueError, match="none is left to learn from"):
        latest_rows(np.array([2, 2, 2]), 0.3)
    with pytest.raises(ValueError, match="none is left to learn from"):
        latest_rows(np.array([2]), 0.3)


def test_times_of_groups_and_times_that_lack():
    times = np.array([1.0, 9.0, 2.0, 3.0])
    groups = np.array(["a", "a", "b", "b"])
    assert checked_times(times, groups).tolist() == [9, 9, 3, 3]
    with pytest.raises(ValueError, match="time: 2 missing values"):
        checked_times(np.array([1.0, np.nan, np.nan]))
    with pytest.raises(ValueError, match="time: 1 missing value"):
        checked_times(np.array(["2026-01-01", "NaT"], dtype="datetime64[D]"))
    with pytest.raises(ValueError, match="time has one value"):
        checked_times(np.array([4, 4]))


def test_rows_change_places_within_their_folds_alone():
    """What a whole fold has in common, as a model of the others, shows no change."""
    folds = np.repeat([0, 1], 20)
    column = 5.0 * folds[:, None]
    assert order_test(column).p_value < 0.05
    assert order_test(column, folds=folds).p_value == 1
    rising = np.arange(40)
    assert order_test(rising[:, None], folds=rising % 2).p_value < 0.05
