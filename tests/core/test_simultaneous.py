"""Limits of a rate that hold for all thresholds at once."""

from __future__ import annotations

from fractions import Fraction
from math import factorial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import betaincinv
from scipy.stats import binomtest

from prudent.core.binomial import (
    _crossing,
    simultaneous_level,
    simultaneous_limits,
    upper_limit,
)


def chance_to_stay(limits):
    """P(U_(i) <= limits_i for all i), exactly: Steck's determinant in fractions."""
    n = len(limits)
    exact = [Fraction(float(limit)) for limit in limits]
    matrix = [
        [
            exact[i] ** (j - i + 1) / factorial(j - i + 1) if j - i + 1 >= 0 else 0
            for j in range(n)
        ]
        for i in range(n)
    ]
    determinant = Fraction(1)
    for column in range(n):  # Gaussian elimination; the matrix is Hessenberg
        determinant *= matrix[column][column]
        for row in range(column + 1, min(column + 2, n)):
            share = matrix[row][column] / matrix[column][column]
            matrix[row] = [
                entry - share * above
                for entry, above in zip(matrix[row], matrix[column], strict=True)
            ]
    return determinant * factorial(n)


@pytest.mark.parametrize("n", [2, 3, 5, 8, 12, 20])
@pytest.mark.parametrize("level", [0.3, 0.02, 1e-5])
def test_crossing_is_exact(n, level):
    ranks = np.arange(1, n + 1)
    limits = betaincinv(ranks, n + 1 - ranks, 1 - level)
    crossing = float(1 - chance_to_stay(limits))
    assert _crossing(n, ranks, level) == pytest.approx(crossing, abs=4e-15 * n)


@pytest.mark.parametrize(
    ("n", "expected"),
    [
        (1, 0.05),
        (2, 0.0271587),
        (10, 0.00794284),
        (50, 0.00328735),
        (100, 0.00246088),
        (300, 0.00168814),
        (3000, 0.000955),
        (100_000, 0.000586245),
    ],
)
def test_reference_levels(n, expected):
    assert simultaneous_level(n, 0.05) == pytest.approx(expected, rel=2e-4)


def test_reference_limits():
    limits = simultaneous_limits(100, 0.05)
    assert limits[[0, 1, 5, 50]] == pytest.approx(
        [0.058304, 0.079386, 0.144259, 0.642259], abs=2e-6
    )
    assert simultaneous_limits(50, 0.05)[1] == pytest.approx(0.1476, abs=5e-5)
    assert simultaneous_limits(300, 0.05)[6] == pytest.approx(0.0566, abs=5e-5)
    assert simultaneous_limits(3000, 0.05)[300] == pytest.approx(0.1181, abs=5e-5)


@settings(max_examples=60, deadline=None)
@given(n=st.integers(1, 400), level=st.floats(1e-6, 0.9))
def test_level_is_met_from_below(n, level):
    pointwise = simultaneous_level(n, level)
    assert level / n * (1 - 1e-9) <= pointwise <= level
    if n > 1:
        crossing = _crossing(n, np.arange(1, n + 1), pointwise)
        assert level * (1 - 2e-4) - 1e-11 <= crossing <= level
    limits = simultaneous_limits(n, level)
    assert (np.diff(limits) > 0).all()
    assert limits[-1] == 1
    assert limits[0] == pytest.approx(upper_limit(0, n, level=pointwise))


@pytest.mark.parametrize("n", [2049, 3000, 20_000])
def test_many_rows_round_the_count_up(n):
    limits = simultaneous_limits(n, 0.05)
    each = betaincinv(
        np.arange(1, n + 1), np.arange(n, 0, -1), 1 - simultaneous_level(n, 0.05)
    )
    assert (limits[:-1] >= each * (1 - 1e-12)).all()
    counts = np.arange(n) + 1 - n * each  # the excess that a limit allows
    assert (limits[:-1] - each <= 0.1 * np.abs(counts) / n + 1e-12).all()


@pytest.mark.parametrize(
    ("n", "draws", "points"), [(20, 4000, None), (100, 4000, None), (60, 4000, 7)]
)
def test_false_somewhere_as_often_as_said(n, draws, points):
    """`points`: scores of a discrete law, where ties only help."""
    rng = np.random.default_rng(20261123 + n)
    limits = simultaneous_limits(n, 0.05)
    false = 0
    for _ in range(draws):
        if points is None:
            scores = np.sort(rng.random(n))
            # The supremum over t is reached just below each score.
            false += bool((scores > limits[:-1]).any())
        else:
            scores = rng.integers(0, points, n)
            at_most = np.searchsorted(np.sort(scores), np.arange(points), "right")
            false += bool(((np.arange(points) + 1) / points > limits[at_most]).any())
    assert binomtest(false, draws, 0.05, alternative="greater").pvalue > 1e-4
    if points is None:
        assert binomtest(false, draws, 0.05).pvalue > 1e-4


def test_limits_each_by_itself_are_false_somewhere():
    rng = np.random.default_rng(3)
    n, draws = 50, 2000
    pointwise = betaincinv(np.arange(1, n + 1), np.arange(n, 0, -1), 0.95)
    false = sum((np.sort(rng.random(n)) > pointwise).any() for _ in range(draws))
    assert binomtest(int(false), draws, 0.40).pvalue > 1e-4


@pytest.mark.parametrize(
    ("n", "level", "message"),
    [
        (0, 0.05, "`n` must be at least 1, got 0."),
        (5, 0.0, "`level` must lie in"),
        (5, 1.5, "`level` must lie in"),
    ],
)
def test_bad_input(n, level, message):
    with pytest.raises(ValueError, match=message):
        simultaneous_level(n, level)
