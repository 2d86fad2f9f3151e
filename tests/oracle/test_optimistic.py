"""Scores against generic optimisation over (mu, Sigma) itself, both directions."""

import numpy as np
import pytest
from scipy.optimize import minimize

from prudent.optimistic import (
    covariance_scores,
    gaussian_scores,
    nonparametric_scores,
)

pytestmark = pytest.mark.oracle


def unpack(vector, m, L):
    """(mu, Sigma) = (m + L u, L F F' L') with F lower triangular, diagonal exp."""
    d = len(m)
    F = np.zeros((d, d))
    F[np.tril_indices(d)] = vector[d:]
    np.fill_diagonal(F, np.exp(np.diag(F)))
    return m + L @ vector[:d], L @ F @ F.T @ L.T


def gaussian_objective(mean, covariance, x):
    gap = x - mean
    return -gap @ np.linalg.solve(covariance, gap) - np.linalg.slogdet(covariance)[1]


def distance_objective(mean, covariance, x):
    gap = x - mean
    return gap @ np.linalg.solve(covariance, gap)


def divergence(m, S, mean, covariance):
    """Definition 2.1 as printed."""
    ratio = np.linalg.solve(covariance, S)
    gap = mean - m
    return (
        gap @ np.linalg.solve(covariance, gap)
        + np.trace(ratio)
        - np.linalg.slogdet(ratio)[1]
        - len(m)
    )


def optimum(objective, sign, m, S, x, rho, rng, mean_moves=True):
    """Best value of sign * objective over the ball by SLSQP from random starts."""
    d = len(m)
    L = np.linalg.cholesky(S)
    size = d + d * (d + 1) // 2

    def slack(vector):
        return rho - divergence(m, S, *unpack(vector, m, L))

    best = -np.inf
    for _ in range(4):
        result = minimize(
            lambda v: -sign * objective(*unpack(v, m, L), x),
            0.2 * np.sqrt(rho) * rng.normal(size=size),
            bounds=[(-5 * mean_moves, 5 * mean_moves)] * d + [(-5, 5)] * (size - d),
            constraints={"type": "ineq", "fun": slack},
            method="SLSQP",
            options={"maxiter": 500, "ftol": 1e-12},
        )
        if slack(result.x) >= -1e-8:
            best = max(best, -result.fun)
    return sign * best


def problem(d, seed):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(d, d))
    S = A @ A.T + 0.3 * np.eye(d)
    m = rng.normal(size=d)
    direction = np.linalg.cholesky(S) @ rng.normal(size=d)
    return rng, m, S, direction / np.sqrt(direction @ np.linalg.solve(S, direction))


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("rho", [0.05, 0.8])
@pytest.mark.parametrize("M", [0.5, 6.0])
def test_gaussian_scores_are_the_extremes_over_the_ball(d, rho, M):
    rng, m, S, direction = problem(d, d)
    x = m + np.sqrt(M) * direction
    lower, upper = gaussian_scores(M, d, rho) - np.linalg.slogdet(S)[1]
    found = optimum(gaussian_objective, 1, m, S, x, rho, rng)
    assert upper == pytest.approx(found, rel=1e-6, abs=1e-6)
    found = optimum(gaussian_objective, -1, m, S, x, rho, rng)
    assert lower == pytest.approx(found, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("rho", [0.05, 0.8])
@pytest.mark.parametrize("M", [0.5, 1.0, 6.0])
def test_covariance_scores_are_the_extremes_over_the_covariances(d, rho, M):
    rng, m, S, direction = problem(d, 20 + d)
    x = m + np.sqrt(M) * direction
    lower, upper = covariance_scores(M, d, rho) - np.linalg.slogdet(S)[1]
    for sign, score in ((1, upper), (-1, lower)):
        found = optimum(gaussian_objective, sign, m, S, x, rho, rng, mean_moves=False)
        assert score == pytest.approx(found, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("rho", [0.05, 0.8])
@pytest.mark.parametrize("M", [0.5, 6.0])
def test_nonparametric_scores_are_the_extremes_over_the_ball(d, rho, M):
    rng, m, S, direction = problem(d, 10 + d)
    x = m + np.sqrt(M) * direction
    q_low, q_up = nonparametric_scores(M, rho)
    found = optimum(distance_objective, -1, m, S, x, rho, rng)
    assert q_up == pytest.approx(found, rel=1e-5, abs=1e-6)
    found = optimum(distance_objective, 1, m, S, x, rho, rng)
    assert q_low == pytest.approx(found, rel=1e-6)
