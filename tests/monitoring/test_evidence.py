"""Evidence from counts: reference values, quadrature, exact laws."""

import math
from pathlib import Path

import mpmath as mp
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp
from scipy.stats import beta, betabinom, binom

from monitoring.exact import alarm_probability, constant, paths, urn
from prudent.monitoring.bets import (
    largest_log_evidence,
    log_beta_ratio,
    log_evidence,
    log_evidence_marginal,
    log_evidence_within,
    rate_limits,
)

REFERENCE = [
    (0, 59, 0.05, -1.5234674352, 1.8579044685),
    (1, 1, 0.05, 1.1484819948, -0.6761954117),
    (5, 50, 0.05, 0.4326737438, -1.3761159335),
    (30, 400, 0.05, 1.1282715650, -2.5121161147),
    (12, 1e4, 0.001, -0.7627083145, -1.5142881926),
    (600, 2000, 0.2, 53.6967546705, -5.3110523881),
    (0.5, 10, 0.05, -0.3482223178, -0.1934443840),
]
MARGINAL = [
    (0, 50, 5, 108, -2.3745015028),
    (10, 60, 5, 108, 2.5865284742),
    (20, 200, 5, 108, 1.1806046462),
    (8, 40, 1, 19, 1.7215570842),
    (200, 2000, 50, 999, 10.2164894836),
]
LIMITS = [
    (0, 100, 0, 0.0525344857),
    (5, 100, 0.0076637092, 0.1451266112),
    (50, 1000, 0.0308536482, 0.0751990803),
    (100, 100, 0.9474655143, 1),
]
LOG20 = math.log(20)


@pytest.mark.parametrize(("K", "n", "b", "over", "within"), REFERENCE)
def test_reference_values(K, n, b, over, within):
    assert log_evidence(K, n, b) == pytest.approx(over, abs=1e-9)
    assert log_evidence_within(K, n, b) == pytest.approx(within, abs=1e-9)


def test_reference_values_at_a_thousand_million_rows():
    assert log_evidence(1e6, 1e9, 0.001) == pytest.approx(-6.68252700, abs=1e-6)
    assert log_evidence_within(1e6, 1e9, 0.001) == pytest.approx(-6.68199646, abs=1e-6)
    assert log_evidence(0, 100, 0) == pytest.approx(-4.6151205168, abs=1e-9)


@pytest.mark.parametrize(("K", "n", "k", "m", "log_e"), MARGINAL)
def test_reference_values_of_a_marginal_promise(K, n, k, m, log_e):
    found = log_evidence_marginal(K, n, k, m, k / (m + 1))
    assert found == pytest.approx(log_e, abs=1e-9)


@pytest.mark.parametrize(("K", "n", "lower", "upper"), LIMITS)
def test_reference_limits(K, n, lower, upper):
    found = rate_limits(K, n, level=0.05)
    assert found == pytest.approx((lower, upper), abs=2e-10)


def by_quadrature(K, n, b):
    """30-digit quadrature of the definition, cut at its mode and at the bound."""
    with mp.workdps(30):
        K, n, b = mp.mpf(K), mp.mpf(n), mp.mpf(b)

        def log_f(p):
            return (
                (K - 2) * mp.log(p)
                + (n - K) * mp.log(1 - p)
                - K * mp.log(b)
                - (n - K) * mp.log(1 - b)
            )

        mode = min(max((K - 2) / (n - 2) if n > 2 else b, b), 1 - mp.mpf(10) ** -12)
        sd = mp.sqrt(mode * (1 - mode) / n)
        cuts = {b, mp.mpf(1), mode}
        cuts |= {mode + i * sd for i in (-60, -20, -8, -3, -1, 1, 3, 8, 20, 60)}
        cuts |= {b + i / n for i in (0.1, 1, 5, 20, 80)}
        cuts |= {b * mp.mpf(10) ** i for i in (0.2, 0.5, 1, 2, 3, 4, 5)}
        top = log_f(mode)
        total = mp.quad(
            lambda p: mp.exp(log_f(p) - top) if 0 < p < 1 else mp.mpf(0),
            sorted(cut for cut in cuts if b <= cut <= 1),
        )
        return float(mp.log(b / (1 - b)) + mp.log(total) + top)


@settings(max_examples=20, deadline=None)
@given(
    size=st.floats(0, 6),
    log_b=st.floats(-6, -0.03),
    share=st.one_of(
        st.floats(0.2, 3), st.sampled_from(["0", "1", ".5", "almost", "n"])
    ),
)
def test_closed_form_equals_quadrature(size, log_b, share):
    n, b = int(10**size), 10**log_b
    named = {"0": 0, "1": 1, ".5": 0.5, "almost": sum([0.1] * 10), "n": n}
    K = named[share] if isinstance(share, str) else round(n * b * share)
    K = min(K, n)
    expected = by_quadrature(K, n, b)
    assert log_evidence(K, n, b) == pytest.approx(
        expected, abs=2e-10 * max(1, abs(expected))
    )


@pytest.mark.parametrize("more", [-1e-8, 2**-52, 1e-14, 1e-11, 1e-9, 1e-7, 1e-5, 2e-3])
@pytest.mark.parametrize(
    ("n", "b"), [(2, 0.3), (2, 0.625), (3, 0.33), (10, 0.09), (50, 0.05), (10**6, 9e-7)]
)
def test_losses_that_sum_to_almost_one_violation(n, b, more):
    """A complement of 1 has no digits there: the evidence was up to a third off."""
    found = log_evidence(1 + more, n, b)
    assert found == pytest.approx(by_quadrature(1 + more, n, b), abs=2e-10)


@settings(max_examples=100, deadline=None)
@given(
    n=st.integers(1, 3000),
    b=st.floats(1e-6, 0.95),
    data=st.data(),
)
def test_rises_with_violations_and_falls_with_the_bound(n, b, data):
    K = data.draw(st.integers(0, n - 1))
    assert log_evidence(K + 1, n, b) > log_evidence(K, n, b)
    counts, rows = np.array([K, K + 1.0]), np.array([n, n], float)
    largest = largest_log_evidence(counts, rows, b)
    assert log_evidence(K, n, b) <= largest[0]
    assert log_evidence(K + 1, n, b) <= largest[1]
    if n * b >= K:
        assert log_evidence(K, n, b) <= 1e-12
    else:
        assert log_evidence(K, n, b / 2) >= log_evidence(K, n, b)


@pytest.mark.parametrize("b", [1e-3, 0.05, 0.2, 0.9])
@pytest.mark.parametrize("n", [1, 2, 7, 60])
def test_mean_is_one_at_the_bound_and_less_below(n, b):
    K = np.arange(n + 1)
    log_e = [log_evidence(k, n, b) for k in K]
    mean = logsumexp(log_e + binom.logpmf(K, n, b))
    assert mean == pytest.approx(0, abs=1e-9)
    assert logsumexp(log_e + binom.logpmf(K, n, b / 3)) < 0
    within = [log_evidence_within(k, n, b) for k in K]
    assert logsumexp(within + binom.logpmf(K, n, b)) == pytest.approx(0, abs=1e-9)


@settings(max_examples=200, deadline=None)
@given(
    b=st.floats(0.01, 0.9),
    rates=st.lists(st.floats(0, 1), min_size=1, max_size=9),
)
def test_mean_is_at_most_one_for_rates_that_swing_around_the_bound(b, rates):
    """The average null: for fixed p the factors multiply to at most 1 by AM-GM."""
    rates = np.array(rates)
    if rates.mean() > b:
        rates *= b / rates.mean()
    law = np.ones(1)
    for r in rates:
        law = np.convolve(law, [1 - r, r])
    n = len(rates)
    mean = sum(p * math.exp(log_evidence(K, n, b)) for K, p in enumerate(law))
    assert mean <= 1 + 1e-9


@settings(max_examples=100, deadline=None)
@given(
    b=st.floats(0.01, 0.9),
    values=st.lists(st.floats(0, 1), min_size=2, max_size=2),
    n=st.integers(1, 6),
)
@example(b=0.625, values=[1.0, 1e-11], n=2)
def test_fractional_losses_only_lower_the_mean(b, values, n):
    low, high = sorted(values)
    if not low < b < high:
        return
    p = (b - low) / (high - low)
    mean = sum(
        constant(path, p)
        * math.exp(log_evidence(float(np.where(path, high, low).sum()), n, b))
        for path in paths(n)
    )
    assert mean <= 1 + 1e-9


@pytest.mark.parametrize(("b", "expected"), [(0.05, 0.0292), (0.2, 0.0330)])
def test_exact_probability_of_a_wrong_alarm(b, expected):
    found = alarm_probability(
        lambda K, n: log_evidence(K, n, b),
        lambda K, n: np.full(len(K), b),
        2000,
        LOG20,
    )
    assert found == pytest.approx(expected, abs=5e-5)


@pytest.mark.parametrize(("k", "m", "expected"), [(1, 19, 0.0172), (5, 108, 0.0189)])
def test_exact_probability_of_a_wrong_alarm_for_a_marginal_promise(k, m, expected):
    def law(K, n):
        return (k + K) / (m + 1 + n)

    def log_e(K, n):
        return log_evidence_marginal(K, n, k, m, k / (m + 1))

    found = alarm_probability(log_e, law, 2000, LOG20)
    assert found == pytest.approx(expected, abs=5e-5)
    # The same rate for ever is no more often accused than one drawn from its law.
    fixed = alarm_probability(
        log_e, lambda K, n: np.full(len(K), k / (m + 1)), 2000, LOG20
    )
    assert fixed <= 0.05


@pytest.mark.parametrize(("k", "m", "expected"), [(1, 19, 0.29), (5, 108, 0.25)])
def test_the_trap_a_marginal_promise_watched_as_if_conditional(k, m, expected):
    found = alarm_probability(
        lambda K, n: log_evidence(K, n, k / (m + 1)),
        lambda K, n: (k + K) / (m + 1 + n),
        2000,
        LOG20,
    )
    assert found == pytest.approx(expected, abs=0.006)


def test_page_says_how_many_correct_detectors_exceed_a_promise_on_average():
    page = Path(__file__).parents[2] / "docs" / "user_guide" / "monitoring.rst"
    words = " ".join(page.read_text(encoding="utf-8").split())
    exceeding = f"{100 * beta.sf(5 / 109, 5, 104):.0f} %"
    assert f"({exceeding} for k = 5, m = 108)" in words


@pytest.mark.parametrize(("k", "m"), [(1, 19), (5, 108), (3, 3), (2, 5)])
@pytest.mark.parametrize("n", [1, 5, 40])
def test_mean_of_marginal_evidence_is_at_most_one(k, m, n):
    K = np.arange(n + 1)
    e = np.exp([log_evidence_marginal(v, n, k, m, k / (m + 1)) for v in K])
    assert e @ betabinom.pmf(K, n, k, m + 1 - k) <= 1 + 1e-9
    assert e @ binom.pmf(K, n, k / (m + 1)) <= 1 + 1e-9
    assert np.all(np.diff(e) >= 0)


def test_ratio_of_beta_functions():
    for x, y, v, w, p in [
        (3, 7, 2, 5, 0.2),
        (5, 104, 1e6, 2e7, 0.05),
        (1, 1, 0, 9, 0.5),
    ]:
        with mp.workdps(40):
            expected = mp.log(mp.beta(x + v, y + w) / mp.beta(x, y))
            expected -= v * mp.log(mp.mpf(p)) + w * mp.log(1 - mp.mpf(p))
        found = log_beta_ratio(x, y, v, w, p)
        assert found == pytest.approx(float(expected), rel=1e-10, abs=1e-9)
    path = np.array([0.0, 1, 0, 0, 1])
    together = log_beta_ratio(2, 4, 2, 3, 0.5) + 5 * math.log(0.5)
    assert math.exp(together) == pytest.approx(urn(path, 2, 5), rel=1e-12)


def test_degenerate_counts_and_bounds():
    assert log_evidence(0, 0, 0.1) == log_evidence_within(0, 0, 0.1) == 0
    assert log_evidence(3, 5, 1.0) == log_evidence_within(3, 5, 0.0) == 0
    assert log_evidence(1, 5, 0.0) == log_evidence_within(4, 5, 1.0) == math.inf
    assert log_evidence_within(5, 5, 1.0) == -math.log(6)
    assert log_evidence_marginal(9, 10, 4, 4, 0.8) == 0
    assert log_evidence_marginal(3, 10, 0, 4, 0.0) == math.inf
    assert rate_limits(0, 0, level=0.05) == (0, 1)


@settings(max_examples=60, deadline=None)
@given(n=st.integers(1, 10**6), data=st.data(), level=st.floats(1e-6, 0.5))
def test_limits_are_where_the_evidence_says(n, data, level):
    K = data.draw(st.integers(0, n))
    lower, upper = rate_limits(K, n, level=level)
    assert 0 <= lower <= K / n <= upper <= 1
    target = math.log(2 / level)
    if lower > 1e-290:
        assert log_evidence(K, n, lower) >= target - 1e-8
        above = lower * (1 + 1e-9)
        assert log_evidence(K, n, above) < target or above >= K / n
    assert upper == 1 - rate_limits(n - K, n, level=level)[0]
