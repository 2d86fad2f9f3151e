"""Exact intervals and order-statistic levels against scipy and brute force."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import betabinom, binom, binomtest

from prudent.core.binomial import (
    beta_binomial_tails,
    clopper_pearson,
    high_probability_rank,
    mean_rank,
    upper_limit,
)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 3000), st.data(), st.sampled_from([0.01, 0.05, 0.3]))
def test_interval_equals_scipys_exact_one(n, data, level):
    k = data.draw(st.integers(0, n))
    expected = binomtest(k, n).proportion_ci(1 - level, method="exact")
    assert clopper_pearson(k, n, level=level) == pytest.approx(
        (expected.low, expected.high), rel=1e-9, abs=1e-12
    )


@pytest.mark.parametrize(("wrong", "n"), [(0, 5), (3, 40), (39, 40), (40, 40)])
def test_upper_limit_is_where_the_lower_tail_equals_the_level(wrong, n):
    bound = upper_limit(wrong, n, level=0.05)
    if wrong == n:
        assert bound == 1.0
    else:
        assert binom.cdf(wrong, n, bound) == pytest.approx(0.05, rel=1e-9)


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 2000), st.integers(1, 999))
def test_mean_rank_is_the_largest_that_keeps_the_rate(m, per_mille):
    k = mean_rank(m, per_mille / 1000)
    assert k * 1000 <= (m + 1) * per_mille
    assert k == m or (k + 1) * 1000 > (m + 1) * per_mille


def brute_force_rank(m, rate, confidence):
    ranks = [k for k in range(1, m + 1) if binom.cdf(k - 1, m, rate) <= 1 - confidence]
    return max(ranks, default=0)


@pytest.mark.parametrize("m", [10, 58, 59, 100, 299, 500])
@pytest.mark.parametrize("rate", [0.01, 0.05, 0.1])
def test_high_probability_rank_equals_brute_force(m, rate):
    assert high_probability_rank(m, rate, 0.95) == brute_force_rank(m, rate, 0.95)


@pytest.mark.parametrize(
    ("m", "rate", "k"),
    [(100, 0.05, 2), (100, 0.1, 5), (500, 0.01, 2), (500, 0.05, 17), (500, 0.1, 39),
     (2000, 0.01, 13), (2000, 0.05, 84), (2000, 0.1, 178)],
)  # fmt: skip
def test_high_probability_rank_reference_values(m, rate, k):
    assert high_probability_rank(m, rate, 0.95) == k


def test_high_probability_rank_needs_log_over_log_rows():
    for rate, rows in ((0.05, 59), (0.01, 299)):
        assert math.ceil(math.log(0.05) / math.log(1 - rate)) == rows
        assert high_probability_rank(rows, rate, 0.95) == 1
        assert high_probability_rank(rows - 1, rate, 0.95) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [((1, 0), "`n` must be > 0, got 0"), ((-1, 5), r"in \[0, 5\], got -1"),
     ((6, 5), r"in \[0, 5\], got 6"), ((float("nan"), 5), "got nan")],
)  # fmt: skip
def test_bad_counts_name_the_value(arguments, message):
    with pytest.raises(ValueError, match=message):
        clopper_pearson(*arguments)


@pytest.mark.parametrize("level", [0, 1, -0.1, float("nan")])
def test_bad_level_names_the_value(level):
    with pytest.raises(ValueError, match="`level` must lie in"):
        clopper_pearson(1, 5, level=level)
    with pytest.raises(ValueError, match="`rate` must lie in"):
        mean_rank(10, level)


@pytest.mark.parametrize(
    ("n", "m", "k"), [(1, 1, 1), (7, 19, 1), (60, 108, 5), (9, 4, 4)]
)
def test_beta_binomial_tails_are_sums_of_the_law(n, m, k):
    mass = betabinom.pmf(np.arange(n + 1), n, k, m + 1 - k)
    for v in range(n + 1):
        at_most, at_least = beta_binomial_tails(v, n, k, m)
        assert at_most == pytest.approx(mass[: v + 1].sum(), rel=1e-9)
        assert at_least == pytest.approx(mass[v:].sum(), rel=1e-9)


def test_beta_binomial_without_a_rank_is_certain():
    assert beta_binomial_tails(0, 10, 0, 5) == (1.0, 1.0)
    assert beta_binomial_tails(1, 10, 0, 5) == (1.0, 0.0)
    assert beta_binomial_tails(9, 10, 6, 5) == (0.0, 1.0)
