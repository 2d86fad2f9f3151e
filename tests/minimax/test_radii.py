"""Radii from data, the exact bound and worst moments."""

import builtins
import math

import numpy as np
import pytest
from scipy.stats import binom, chi2

from prudent.minimax.certificate import largest_exit_probability, worst_moments
from prudent.minimax.radii import (
    bootstrap_covariance_radius,
    covariance_factor,
    mean_radius,
)


def test_mean_radius_is_a_chi_square_quantile():
    # Quantile of chi2 with 2 degrees of freedom: -2 log(level).
    assert mean_radius(2, 100, 0.01) == pytest.approx(
        math.sqrt(-2 * math.log(0.01) / 100)
    )


@pytest.mark.parametrize("n_rows", [3, 5, 8, 20, 60, 1000])
def test_covariance_factor_of_one_feature_is_never_below_the_exact_one(n_rows):
    """The scatter over the variance is chi-squared: a simulated cut is on one side."""
    for level in (0.0005, 0.0025, 0.0125, 0.025, 0.05):
        factor = covariance_factor(1, n_rows, level)
        share = chi2.cdf(n_rows / factor, n_rows - 1) / level
        assert 0.1 < share <= 1
        if level >= 0.0125:
            assert share > 0.5


@pytest.mark.parametrize(("n", "n_rows"), [(2, 11), (2, 50), (6, 40), (10, 13)])
def test_covariance_factor_fails_at_its_level_at_most(n, n_rows):
    rng = np.random.default_rng(1)
    factor, n_draws, broken = covariance_factor(n, n_rows, 0.05), 20_000, 0
    for _ in range(20):
        Z = rng.normal(size=(n_draws // 20, n_rows, n))
        Z -= Z.mean(axis=1, keepdims=True)
        smallest = np.linalg.eigvalsh(Z.transpose(0, 2, 1) @ Z)[:, 0]
        broken += np.count_nonzero(n_rows / smallest > factor)
    assert binom.sf(broken - 1, n_draws, 0.05) > 1e-3
    assert broken > 0.5 * 0.05 * n_draws


def test_bootstrap_radius_covers_the_error_of_a_covariance():
    rng = np.random.default_rng(0)
    covered = 0
    for seed in range(60):
        X = rng.normal(size=(100, 3))
        rho = bootstrap_covariance_radius(
            X, np.ones(100), 0.05, np.random.RandomState(seed)
        )
        covered += np.linalg.norm(np.cov(X.T, bias=True) - np.eye(3)) <= rho
    assert covered >= 48  # 0.95 * 60 less four standard deviations, and bias


def test_bootstrap_radius_counts_weights_as_repetitions():
    X = np.random.default_rng(0).normal(size=(50, 2))
    once = bootstrap_covariance_radius(X, np.ones(50), 0.05, np.random.RandomState(0))
    tenfold = bootstrap_covariance_radius(
        X, np.full(50, 10.0), 0.05, np.random.RandomState(0)
    )
    assert tenfold == pytest.approx(once / math.sqrt(10), rel=0.2)


def test_exit_probability_of_one_limit_is_cantelli():
    for limit in (0.5, 1.0, 3.0):
        value = largest_exit_probability(np.eye(1), np.array([limit]))
        assert value == pytest.approx(1 / (1 + limit**2), abs=1e-7)


def test_exit_probability_of_opposite_limits_is_chebyshev():
    R = np.array([[1.0, -1.0], [-1.0, 1.0]])
    value = largest_exit_probability(R, np.array([2.0, 2.0]))
    assert value == pytest.approx(1 / 4, abs=1e-6)


def test_exit_probability_is_at_most_one():
    assert largest_exit_probability(np.eye(3), np.full(3, 0.1)) <= 1


def test_exact_bound_without_clarabel_says_what_to_install(monkeypatch):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name == "clarabel":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r"prudent\[solvers\]"):
        largest_exit_probability(np.eye(1), np.ones(1))


def test_worst_moments_lie_on_the_boundary_of_their_sets():
    a, m, S = np.array([1.0, 2.0]), np.array([3.0, 3.0]), np.diag([1.0, 2.0])
    mean, covariance = worst_moments(a, m, S, 0.5, 0.3, 1.2)
    assert np.linalg.norm(covariance / 1.2 - S) == pytest.approx(0.3)
    shift = mean - m
    assert math.sqrt(shift @ np.linalg.solve(covariance, shift)) == pytest.approx(0.5)
    deviation = math.sqrt(a @ covariance @ a)
    assert a @ shift == pytest.approx(-0.5 * deviation)
    assert deviation**2 == pytest.approx(1.2 * a @ (S + 0.3 * np.eye(2)) @ a)
