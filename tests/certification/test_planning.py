"""Rows that a promise needs."""

import math

import numpy as np
import pytest
from scipy.stats import binom, binomtest

import prudent
from prudent import Guarantee
from prudent.certification.planning import _first_row_of_power, queue_in_words
from prudent.core.binomial import (
    binomial_tail,
    fewest_rows,
    fewest_rows_for,
    most_wrong,
    upper_limit,
)
from prudent.core.shift import bernoulli_divergence

PAIRS = [
    (0.05, 0, 59), (0.05, 0.01, 124), (0.05, 0.02, 286), (0.05, 0.03, 694),
    (0.05, 0.04, 2869), (0.1, 0.02, 61), (0.1, 0.05, 203), (0.02, 0.005, 386),
    (0.02, 0.01, 1091), (0.01, 0.002, 773),
]  # fmt: skip


@pytest.mark.parametrize(("bound", "expected", "rows"), PAIRS)
def test_table(bound, expected, rows):
    assert prudent.plan(bound=bound, expected=expected).rows == rows


@pytest.mark.parametrize(
    ("options", "rows"),
    [({"power": 0.9}, 361), ({"answered_share": 0.6}, 477), ({"claims": 4}, 417)],
)
def test_options(options, rows):
    assert prudent.plan(**options).rows == rows


def by_brute_force(bound, expected, confidence, power, claims, longest):
    """Walk over all numbers of rows, backwards, while the power suffices."""
    n = np.arange(1, longest + 1)
    c = np.array([most_wrong(int(k), bound, (1 - confidence) / claims) for k in n])
    enough = binom.cdf(c, n, expected) >= power
    assert enough[-longest // 3 :].all()
    return int(n[~enough][-1]) + 1


@pytest.mark.parametrize(
    "arguments",
    [
        (0.05, 0.02, 0.95, 0.8, 1, 1500),
        (0.1, 0.05, 0.9, 0.95, 3, 2500),
        (0.3, 0.2, 0.99, 0.5, 1, 1500),
        (0.5, 0.3, 0.8, 0.99, 2.5, 900),
        (0.05, 0.0, 0.95, 0.8, 1, 400),
        (0.05, 1e-7, 0.95, 0.999999, 1, 400),
    ],
)
def test_plan_equals_brute_force(arguments):
    bound, expected, confidence, power, claims, _ = arguments
    found = prudent.plan(
        bound=bound, expected=expected, confidence=confidence, power=power,
        claims=claims,
    )  # fmt: skip
    assert found.rows == by_brute_force(*arguments)
    level = (1 - confidence) / claims
    assert found.wrong_allowed == most_wrong(found.rows_answered, bound, level)
    assert found.rows_without_errors == fewest_rows(bound, 1 - level)
    assert found.power >= power
    assert found.power == pytest.approx(
        binom.cdf(found.wrong_allowed, found.rows_answered, expected)
    )


SHARES = [
    # bound, expected, confidence, power, claims, answered share, longest
    (0.05, 0.02, 0.95, 0.8, 1, 0.6, 900),
    (0.05, 0.02, 0.95, 0.8, 1, 0.99, 700),
    (0.05, 0.02, 0.95, 0.8, 1, 0.999, 700),
    (0.2, 0.05, 0.9, 0.8, 1, 0.9999, 200),
    (0.3, 0.2, 0.99, 0.5, 1, 0.3, 900),  # a smooth mean: bisected
    (0.1, 0.05, 0.9, 0.95, 3, 0.3, 2000),
    (0.5, 0.3, 0.8, 0.99, 2.5, 0.05, 2700),
    (0.05, 0.0, 0.95, 0.8, 1, 0.5, 400),
    (0.05, 1e-7, 0.95, 0.999, 1, 0.9, 400),
]


def planned(bound, expected, confidence, power, claims, share):
    return prudent.plan(
        bound=bound, expected=expected, confidence=confidence, power=power,
        claims=claims, answered_share=share,
    )  # fmt: skip


@pytest.mark.parametrize("arguments", SHARES)
def test_rows_of_which_a_random_number_counts_equal_enumeration(arguments):
    """The binomial law of the count, summed over every count, for every N."""
    bound, expected, confidence, power, claims, share, longest = arguments
    n = np.arange(longest + 1)
    level = (1 - confidence) / claims
    allowed = [most_wrong(int(k), bound, level) if k else -1 for k in n]
    saw = binom.cdf(allowed, n, expected)
    mean = np.array(
        [binom.pmf(n[: k + 1], k, share) @ saw[: k + 1] for k in range(longest + 1)]
    )
    assert (mean[-longest // 4 :] >= power).all()
    plan = planned(*arguments[:-1])
    enough = np.flatnonzero(mean < power)[-1] + 1
    counted = prudent.plan(
        bound=bound, expected=expected, confidence=confidence, power=power,
        claims=claims,
    ).rows  # fmt: skip
    assert plan.rows == max(enough, math.ceil(counted / share))
    assert plan.power == pytest.approx(mean[plan.rows], rel=1e-9)
    assert plan.rows_answered == round(plan.rows * share)
    assert plan.wrong_allowed == most_wrong(plan.rows_answered, bound, level)


@pytest.mark.parametrize("arguments", [SHARES[0], SHARES[5], SHARES[7]])
def test_the_power_is_the_share_of_draws_that_certify(arguments):
    """Rows drawn, counted or not, wrong or not; certified by the limit's own code."""
    bound, expected, confidence, power, claims, share, _ = arguments
    plan = planned(*arguments[:-1])
    rng = np.random.default_rng(31)
    n_draws = 20_000
    counted = rng.binomial(plan.rows, share, size=n_draws)
    wrong = rng.binomial(counted, expected)
    pairs, repeats = np.unique([counted, wrong], axis=1, return_counts=True)
    level = (1 - confidence) / claims
    certified = sum(
        int(times)
        for n, w, times in zip(*pairs, repeats, strict=True)
        if n > 0 and upper_limit(w, n, level=level) <= bound
    )
    assert binomtest(certified, n_draws, plan.power).pvalue > 1e-4
    assert plan.power >= power


def test_a_small_share_of_many_rows_is_planned_at_once():
    plan = planned(0.05, 0.01, 0.95, 0.8, 1, 1e-6)
    assert plan.rows_answered == 130
    assert 0.8 <= plan.power < 0.8 + 1e-6


def rows_that_suffice(bound, expected, level, miss):
    """Rows from which on Chernoff's inequality gives the power, where no saw matters.

    With x between the rates, n KL(x, bound) >= log(1/level) allows floor(x n) wrong
    rows, and n KL(x, expected) >= log(1/miss) makes more of them rare.
    """
    low, high = expected, bound
    for _ in range(50):
        x = (low + high) / 2
        allowed = -math.log(level) / bernoulli_divergence(x, bound, "kl")
        rare = -math.log(miss) / bernoulli_divergence(x, expected, "kl")
        low, high = (x, high) if rare > allowed else (low, x)
    return math.ceil(max(allowed, rare)) + 1


def by_the_whole_saw(bound, expected, level, power):
    """Power at the end of every tooth up to where Chernoff's inequality suffices."""
    enough = rows_that_suffice(bound, expected, level, 1 - power)
    teeth = np.arange(most_wrong(enough, bound, level) + 3)
    starts = fewest_rows_for(teeth, bound, level)
    at_end = binomial_tail(teeth[:-1], starts[1:] - 1, expected)
    failing = np.flatnonzero(at_end < power)
    return int(starts[failing[-1] + 1]) if len(failing) else int(starts[0])


def test_the_tooth_found_is_the_last_that_fails():
    rng = np.random.default_rng(0)
    for _ in range(200):
        bound, level = rng.uniform(0.001, 0.999), 10 ** -rng.uniform(0.1, 4)
        expected = bound * rng.choice([rng.random(), 1 - 10 ** -rng.uniform(0.3, 1.3)])
        power = rng.choice([rng.random(), 1 - 10 ** -rng.uniform(1, 4)])
        asked = float(bound), float(expected), float(level), float(power)
        assert _first_row_of_power(*asked) == by_the_whole_saw(*asked), asked


def test_a_tiny_gap_needs_no_look_at_the_whole_saw():
    assert prudent.plan(bound=0.05, expected=0.049).rows == 293_107
    few = prudent.plan(bound=0.05, expected=0.0499)
    assert few.rows == 29_361_936
    fewer = binomial_tail(few.wrong_allowed - 1, few.rows - 1, 0.0499)
    assert fewer < 0.8 <= few.power


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"expected": 0.05},
            "`expected` must lie in [0, bound = 0.05), got 0.05: a rate at or above "
            "the bound cannot be certified.",
        ),
        ({"bound": 1.5}, "`bound` must lie in (0, 1), got 1.5."),
        ({"power": 1.0}, "`power` must lie in (0, 1), got 1.0."),
        ({"answered_share": 0}, "`answered_share` must lie in (0, 1], got 0."),
        ({"claims": 0}, "`claims` must be at least 1, got 0."),
        ({"claims": "a"}, "`claims` must be at least 1, got 'a'."),
    ],
)
def test_bad_arguments(options, message):
    with pytest.raises(ValueError) as error:
        prudent.plan(**options)
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("rate", "confidence"), [(0.5, 0.75), (0.9, 0.9), (1e-6, 0.95), (0.05, 1 - 1e-12)]
)
def test_fewest_rows(rate, confidence):
    n = fewest_rows(rate, confidence)
    assert most_wrong(n, rate, 1 - confidence) >= 0
    assert n == 1 or most_wrong(n - 1, rate, 1 - confidence) < 0


def test_most_wrong_is_the_quantile():
    for n in (1, 7, 100, 4321):
        for rate in (0.01, 0.3, 0.97):
            c = most_wrong(n, rate, 0.05)
            assert c < n
            assert c == -1 or binom.cdf(c, n, rate) <= 0.05
            assert binom.cdf(c + 1, n, rate) > 0.05


def test_fewest_rows_for_is_the_inverse():
    wrong = np.arange(40)
    n = fewest_rows_for(wrong, 0.07, 0.02)
    assert all(most_wrong(int(k), 0.07, 0.02) == c for k, c in zip(n, wrong))  # noqa: B905
    assert all(most_wrong(int(k) - 1, 0.07, 0.02) == c - 1 for k, c in zip(n, wrong))  # noqa: B905


def test_queue_in_words_is_that_of_the_binomial_law():
    promise = Guarantee(quantity="answered share", bound=0.96, sense=">=")
    assert queue_in_words(promise) == (
        "handed over <= 4% means at most 50 of 1000 rows on 95 of 100 days and 55 on "
        "99; at most 40 on 99 days needs 2.77%"
    )
    flagged = Guarantee(quantity="flagged share", bound=0.1, sense="<=")
    assert queue_in_words(flagged, 100).startswith(
        f"flagged <= 10% means at most {int(binom.ppf(0.95, 100, 0.1))} of 100 rows"
    )
    # The share that is needed is rounded down, so that it suffices.
    assert binom.cdf(40, 1000, 0.0277) >= 0.99 > binom.cdf(40, 1000, 0.0278)
