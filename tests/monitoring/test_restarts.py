"""The stakes on a change: exact means over every path, and the speed of the alarm."""

import numpy as np
import pytest
from scipy.stats import binom

from monitoring.exact import constant, paths, urn
from prudent.monitoring.bets import ODDS_RATIOS, Restarts
from prudent.monitoring.kernels import BLOCK, fill_reserves


def values(path, bound, *law):
    bets = Restarts(bound, np.inf, *law)
    found = []
    for x in path:
        bets.rows(np.array([x], float))
        found.append(bets.e_value)
    return found


def test_odds_ratios():
    expected = [16 / odd for odd in (15, 13, 11, 9, 7, 5, 3, 1)]
    np.testing.assert_allclose(ODDS_RATIOS, expected, rtol=1e-15)


@pytest.mark.parametrize("b", [1e-6, 0.01, 0.05, 0.5, 0.99])
@pytest.mark.parametrize("blocks", [0, 1, 20, 33, 2000, 10**7])
def test_reserves_of_a_block_of_rows(b, blocks):
    left, n = np.empty(BLOCK), float(blocks * BLOCK)
    fill_reserves(left, n, b)
    one_by_one = 1 / (1 + np.log1p(b * (n + np.arange(BLOCK))))
    np.testing.assert_allclose(left, one_by_one, rtol=0, atol=4e-16)
    assert np.all(np.diff(left) <= 0)


@pytest.mark.parametrize("b", [0.01, 0.05, 0.3, 0.8])
def test_mean_over_all_paths_is_one_at_the_bound(b):
    every = paths(12)
    e = np.array([values(path, b)[-1] for path in every])
    p = np.array([constant(path, b) for path in every])
    assert e @ p == pytest.approx(1, abs=1e-12)
    below = np.array([constant(path, b / 2) for path in every])
    assert e @ below < 1


@pytest.mark.parametrize(("k", "m"), [(1, 19), (5, 108), (2, 4), (3, 3)])
def test_mean_over_all_paths_is_at_most_one_under_urn_and_constant_rate(k, m):
    every = paths(11)
    e = np.array([values(path, k / (m + 1), k, m)[-1] for path in every])
    for law in (
        [urn(path, k, m) for path in every],
        [constant(path, k / (m + 1)) for path in every],
    ):
        assert e @ np.array(law) <= 1 + 1e-12


@pytest.mark.parametrize(("bound", "rank", "m"), [(0.2, 0, 0), (1 / 6, 1, 5)])
def test_ever_reaching_a_value_by_enumeration(bound, rank, m):
    """Ville by brute force: the peak over a path, not only its end."""
    every = paths(12)
    peaks = np.array([max(values(path, bound, rank, m)) for path in every])
    laws = [[constant(path, bound) for path in every]]
    if rank:
        laws.append([urn(path, rank, m) for path in every])
    for law in laws:
        for level in (0.5, 0.2, 0.1, 0.05):
            assert np.array(law) @ (peaks >= 1 / level) <= level


@pytest.mark.parametrize("b", [0.05, 0.4])
@pytest.mark.parametrize("swing", [(0.2, 1.0), (1.0, 0.0, 1.0)])
def test_rates_that_stay_below_the_bound_never_raise_the_mean(b, swing):
    every = paths(10)
    e = np.array([values(path, b)[-1] for path in every])
    rates = np.resize(np.array(swing) * b, 10)
    law = np.prod(np.where(every == 1, rates, 1 - rates), axis=1)
    assert e @ law <= 1 + 1e-12


@pytest.mark.parametrize(
    ("bound", "rank", "m"),
    [(0.1, 0, 0), (0.5, 0, 0), (0.25, 1, 3), (5 / 109, 5, 108)],
)
@pytest.mark.parametrize("sizes", [(4, 4, 4), (1, 7, 2), (10,)])
def test_mean_over_batches(bound, rank, m, sizes):
    """Only the counts of the batches are known; every order of rows is summed."""
    grid = np.stack(np.meshgrid(*[np.arange(s + 1) for s in sizes]), -1)
    mean = {"constant": 0.0, "urn": 0.0}
    for counts in grid.reshape(-1, len(sizes)):
        bets, p_constant, p_urn = Restarts(bound, np.inf, rank, m), 1.0, 1.0
        seen, violations = 0, 0
        for v, n in zip(counts.tolist(), sizes, strict=True):
            bets.batch(v, n)
            p_constant *= binom.pmf(v, n, bound)
            if rank:
                for i in range(n):
                    p = (rank + violations) / (m + 1 + seen)
                    # any one order: the urn is exchangeable
                    p_urn *= p if i < v else 1 - p
                    violations += i < v
                    seen += 1
                p_urn *= binom.pmf(v, n, 0.5) * 2.0**n
        mean["constant"] += p_constant * bets.counts[2]
        mean["urn"] += p_urn * bets.counts[2]
    assert mean["constant"] <= 1 + 1e-12
    if rank:
        assert mean["urn"] <= 1 + 1e-12
    else:
        assert mean["constant"] == pytest.approx(1, abs=1e-12)


def test_huge_evidence_stays_finite():
    bets = Restarts(1e-6, 20.0)
    bets.rows(np.ones(5000))
    assert 1e300 <= bets.counts[2] < np.inf
    bets.batch(10**6, 10**6)
    assert 1e300 <= bets.counts[2] < np.inf
    assert np.isfinite(bets.stakes).all()
    assert bets.counts[4] < 100


def test_e_value_is_at_least_what_is_not_staked():
    bets = Restarts(0.5, 20.0)
    bets.rows(np.zeros(100_000))
    assert bets.counts[2] >= 1 / (1 + np.log1p(50_000))
