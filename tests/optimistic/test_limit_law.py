"""Theorem 2.2's law: against its definition, known laws, quantiles and samples."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest, chi2, ks_2samp, kstest

from prudent import ClassMoments
from prudent.exceptions import DegenerateDataError
from prudent.optimistic import (
    moment_divergence,
    moment_radius,
    radius_limit_law,
)

ALPHA = 1e-4  # of each exact test; seeds are fixed


def independent(d, skewness, kurtosis):
    """Third and fourth moments of independent features of mean 0 and variance 1."""
    i = np.arange(d)
    third, I = np.zeros((d, d, d)), np.eye(d)
    third[i, i, i] = skewness
    fourth = sum(
        np.einsum(f"{a},{b}->ijkl", I, I)
        for a, b in [("ij", "kl"), ("ik", "jl"), ("il", "jk")]
    )
    fourth[i, i, i, i] = kurtosis
    return third, fourth


def sampled_by_the_theorem(third, fourth, n_samples, rng):
    """H'H + Tr(Z^2)/2 with H and Z drawn as the theorem says."""
    d = len(third)
    pairs = [(j, k) for j in range(d) for k in range(j, d)]
    covariance = np.zeros((d + len(pairs),) * 2)
    covariance[:d, :d] = np.eye(d)
    for a, (j, k) in enumerate(pairs):
        for i in range(d):
            covariance[i, d + a] = covariance[d + a, i] = third[i, j, k]
        for b, (u, v) in enumerate(pairs):
            covariance[d + a, d + b] = fourth[j, k, u, v] - (j == k) * (u == v)
    draws = rng.multivariate_normal(np.zeros(len(covariance)), covariance, n_samples)
    values = (draws[:, :d] ** 2).sum(axis=1)
    Z = np.zeros((n_samples, d, d))
    for a, (j, k) in enumerate(pairs):
        Z[:, j, k] = Z[:, k, j] = draws[:, d + a]
    return values + np.einsum("nij,nji->n", Z, Z) / 2


@pytest.mark.parametrize("d", [1, 3])
@pytest.mark.parametrize("shape", [(0.0, 3.0), (8**0.5, 15.0), (-1.0, 4.0)])
def test_draws_have_the_law_of_the_theorem(d, shape):
    moments = independent(d, *shape)
    ours = radius_limit_law(moments, 20_000, 1)
    theirs = sampled_by_the_theorem(*moments, 20_000, np.random.default_rng(2))
    assert ks_2samp(ours, theirs).pvalue > ALPHA


@pytest.mark.parametrize("d", [1, 2, 6])
def test_gaussian_moments_give_the_chi_square_law_of_corollary_2_3(d):
    draws = radius_limit_law(independent(d, 0.0, 3.0), 20_000, 3)
    assert kstest(draws, chi2(d * (d + 3) / 2).cdf).pvalue > ALPHA


def test_one_skewed_feature_has_the_integrated_distribution():
    a, b = 4 + 13**0.5, 4 - 13**0.5  # eigenvalues at skewness sqrt(8), kurtosis 15

    nodes, shares = np.polynomial.legendre.leggauss(400)
    u_share, shares = (nodes + 1) / 2, shares / 2

    def cdf(t):
        t = np.ravel(t)[:, None]
        end = (t / b) ** 0.5
        u = end * u_share
        inner = chi2.cdf((t - b * u * u) / a, 1) * np.exp(-u * u / 2)
        return (end * inner) @ shares * (2 / np.pi) ** 0.5

    assert cdf(1e3) == pytest.approx(1, abs=1e-6)
    draws = radius_limit_law(independent(1, 8**0.5, 15.0), 4000, 4)
    assert kstest(draws, cdf).pvalue > ALPHA


def test_quantiles_of_the_law_of_figure_1():
    draws = radius_limit_law(independent(20, 8**0.5, 15.0), 20_000, 5)
    quantiles = 272.705265, 313.171806, 345.619523, 382.069896, 442.244375
    for level, quantile in zip((0.05, 0.25, 0.5, 0.75, 0.95), quantiles, strict=True):
        below = int((draws <= quantile).sum())
        assert binomtest(below, len(draws), level).pvalue > ALPHA
    assert draws.mean() == pytest.approx(350, abs=5 * 2700**0.5 / len(draws) ** 0.5)


@pytest.mark.slow
def test_divergences_of_large_samples_have_the_law():
    rng, d, n = np.random.default_rng(6), 2, 4000
    found = []
    for _ in range(2000):
        X = (rng.standard_normal((n, d)) ** 2 - 1) / 2**0.5
        mean, S = X.mean(axis=0), np.cov(X.T, bias=True)
        found.append(n * moment_divergence(mean, S, np.zeros(d), np.eye(d)))
    law = radius_limit_law(independent(d, 8**0.5, 15.0), 20_000, 7)
    # the limit is not reached at any n: a distance, not a test
    assert ks_2samp(found, law).statistic < 0.04


def exact_quantile_error(X, level):
    law = radius_limit_law(X, 200_000, 8)
    return len(X) * moment_radius(X, level) / np.quantile(law, level) - 1


@pytest.mark.parametrize("level", [0.5, 0.75, 0.95])
def test_moment_radius_errs_as_it_says(level):
    rng = np.random.default_rng(9)
    for X in (
        rng.chisquare(1, (400, 1)),
        rng.laplace(size=(400, 3)),
        rng.exponential(size=(60, 12)),
    ):
        assert -0.04 < exact_quantile_error(X, level) < 0.05


def test_few_rows_and_many_features_use_products_of_rows():
    X = np.random.default_rng(10).exponential(size=(40, 10))  # 65 > 40
    S = np.cov(X.T, bias=True)
    eta = (X - X.mean(axis=0)) @ np.linalg.inv(np.linalg.cholesky(S)).T
    pair = (
        np.einsum("ni,nj,nk->ijk", eta, eta, eta) / 40,
        np.einsum("ni,nj,nk,nl->ijkl", eta, eta, eta, eta) / 40,
    )
    from_rows, from_pair = (radius_limit_law(m, 20_000, 11) for m in (X, pair))
    np.testing.assert_allclose(from_rows.mean(), from_pair.mean(), rtol=0.02)
    assert ks_2samp(from_rows, radius_limit_law(pair, 20_000, 12)).pvalue > ALPHA


@given(st.integers(1, 4), st.integers(0, 50))
@settings(max_examples=25, deadline=None)
def test_the_law_is_affine_invariant_and_repeats(d, seed):
    rng = np.random.default_rng(seed)
    X = rng.exponential(size=(30, d))
    A = rng.normal(size=(d, d)) + 3 * np.eye(d)
    law = radius_limit_law(X, 500, 0)
    assert (law >= 0).all()
    np.testing.assert_array_equal(law, radius_limit_law(X, 500, 0))
    np.testing.assert_allclose(
        np.quantile(law, 0.5), np.quantile(radius_limit_law(X @ A + 2, 500, 0), 0.5)
    )


def test_weights_are_repetitions():
    rng = np.random.default_rng(13)
    X, weight = rng.exponential(size=(30, 2)), rng.integers(0, 3, 30)
    np.testing.assert_allclose(
        radius_limit_law(X, 50, 1, sample_weight=weight),
        radius_limit_law(np.repeat(X, weight, axis=0), 50, 1),
    )


def test_what_has_no_law_is_refused():
    with pytest.raises(ValueError, match="`n_samples` must be >= 1, got 0"):
        radius_limit_law(np.eye(3), 0)
    with pytest.raises(TypeError, match="no joint third and fourth moments"):
        radius_limit_law(ClassMoments.from_arrays([[0.0], [1.0]], [0, 0]))
    with pytest.raises(DegenerateDataError, match="3 rows for 3 features"):
        radius_limit_law(np.eye(3))
    third, fourth = independent(2, 0.0, 3.0)
    with pytest.raises(ValueError, match=r"shapes \(d, d, d\) and \(d, d, d, d\)"):
        radius_limit_law((third, fourth[0]))
    with pytest.raises(ValueError, match="no law has these third and fourth moments"):
        radius_limit_law(independent(2, 2.0, 3.0))  # kurtosis >= skewness^2 + 1
    third[0, 0, 0] = np.nan
    with pytest.raises(ValueError, match="no law has these"):
        radius_limit_law((third, fourth))
