"""The test of order on tables: features, classes, and labels of like rows."""

from __future__ import annotations

import time

import numpy as np
import pytest
from scipy.stats import binomtest

from prudent.core.order import order_test
from prudent.estimator_tools.labelled_rows import LabelledRows
from prudent.estimator_tools.order import _columns, order_in_time, ordered_rows


def table(X, y, times):
    return LabelledRows(
        X=X,
        y=y,
        features=tuple(f"x{j}" for j in range(X.shape[1])),
        times=times,
    )


def p_value(rows, seed, n_orders=199):
    columns, _, folds = _columns(rows, ordered_rows(rows, seed), seed)
    found = order_test(columns, folds=folds, n_orders=n_orders, random_state=seed)
    return found.p_value


@pytest.mark.parametrize("n_tables", [120, pytest.param(600, marks=pytest.mark.slow)])
def test_level_with_one_seed_for_all_tables(n_tables):
    """The folds stay; rows of a fold share what was learned of the labels."""
    random = np.random.default_rng(1)
    n_false = 0
    for _ in range(n_tables):
        y = (random.random(60) < 0.4).astype(int)
        rows = table(np.zeros((60, 1)), y, np.arange(60.0))
        n_false += order_in_time(rows, 18).p_value <= 0.1
    assert binomtest(int(n_false), n_tables, 0.1, alternative="greater").pvalue > 1e-3


def test_numbers_whose_squares_overflow_are_put_in_order_like_others():
    X = np.random.default_rng(0).normal(size=(60, 2))
    X[7, 0], X[9, 0] = 1e300, -1e308
    rows = table(X, np.arange(60) % 2, np.arange(60.0))
    with np.errstate(all="raise"):
        assert 0 < order_in_time(rows, 18).p_value <= 1


@pytest.mark.parametrize("n_tables", [60, pytest.param(1000, marks=pytest.mark.slow)])
def test_level_on_exchangeable_tables(n_tables):
    random = np.random.default_rng(0)
    n_false = 0
    for seed in range(n_tables):
        X = random.standard_cauchy((60, 3)) * random.standard_cauchy()
        X[:, 0] = np.round(X[:, 0])
        y = random.integers(3, size=60) * (random.uniform(size=60) < 0.5)
        # Many rows of the same time, in a file sorted by class.
        times, order = random.integers(15, size=60), np.argsort(y, kind="stable")
        rows = table(X[order], y[order], times[order].astype(float))
        n_false += p_value(rows, seed, n_orders=99) <= 0.05
    assert binomtest(int(n_false), n_tables, 0.05, alternative="greater").pvalue > 1e-3


def law(random, n, share=0.5):
    """Eight columns, the means of two of them half a deviation from the middle."""
    y = (random.uniform(size=n) < share).astype(int)
    X = random.normal(size=(n, 8))
    X[:, :2] += 0.5 * (2 * y[:, None] - 1)
    return X, y


def shifted(X, y, random):
    X[:, 3] += 0.5


def wider(X, y, random):
    X[:, 3] *= 1.5


def other_shares(X, y, random):
    X[:], y[:] = law(random, len(y), 0.65)


def flipped(X, y, random):
    y[:] = np.where(random.uniform(size=len(y)) < 0.35, 1 - y, y)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "power"),
    [(shifted, 0.88), (wider, 0.93), (other_shares, 0.43), (flipped, 0.73)],
)
def test_power_against_changes_from_the_half_on(change, power):
    n_found = 0
    for seed in range(40):
        random = np.random.default_rng(seed)
        X, y = law(random, 400)
        change(X[200:], y[200:], random)
        n_found += p_value(table(X, y, np.arange(400.0)), seed) <= 0.05
    assert abs(n_found / 40 - power) <= 0.1


def test_a_large_table_takes_a_second():
    random = np.random.default_rng(0)
    X = random.normal(size=(5000, 30))
    y = (X[:, 0] + random.normal(size=5000) > 0).astype(int)
    rows = table(X, y, np.arange(5000.0))
    start = time.process_time()
    line = str(order_in_time(rows, 1500))
    assert line.startswith("no change with time shown (p = 0.")
    assert time.process_time() - start < 3  # 1 s where nothing else runs
