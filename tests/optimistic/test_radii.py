"""Radii against the limit laws, direct formulas and pinned figures."""

import numpy as np
import pytest
from scipy.stats import chi2, multivariate_normal

from prudent.exceptions import DegenerateDataError, SingularCovarianceError
from prudent.optimistic import (
    bootstrap_radius,
    clt_radius,
    gaussian_scores,
    moment_divergence,
    moment_radius,
)


def divergence(m, S, mu, Sigma):
    """Definition 2.1 as printed."""
    inverse = np.linalg.inv(Sigma)
    gap = mu - m
    return (
        gap @ inverse @ gap
        + np.trace(S @ inverse)
        - np.linalg.slogdet(S @ inverse)[1]
        - len(m)
    )


def random_moments(rng, d):
    A = rng.normal(size=(d, d))
    return rng.normal(size=d), A @ A.T + 0.1 * np.eye(d)


@pytest.mark.parametrize("d", [1, 2, 5])
def test_divergence_is_definition_2_1(d):
    rng = np.random.default_rng(d)
    first, second = random_moments(rng, d), random_moments(rng, d)
    assert moment_divergence(*first, *second) == pytest.approx(
        divergence(*first, *second), rel=1e-11
    )


@pytest.mark.parametrize("d", [1, 3])
def test_divergence_is_affine_invariant(d):
    rng = np.random.default_rng(d)
    (m, S), (mu, Sigma) = random_moments(rng, d), random_moments(rng, d)
    A, b = rng.normal(size=(d, d)) + 2 * np.eye(d), rng.normal(size=d)
    mapped = (A @ m + b, A @ S @ A.T), (A @ mu + b, A @ Sigma @ A.T)
    assert moment_divergence(*mapped[0], *mapped[1]) == pytest.approx(
        moment_divergence(m, S, mu, Sigma), rel=1e-10
    )


@pytest.mark.parametrize("d", [1, 2])
def test_divergence_is_twice_the_kullback_leibler_divergence_of_normal_laws(d):
    rng = np.random.default_rng(d)
    first, second = random_moments(rng, d), random_moments(rng, d)
    # Three nodes an axis are exact: the log ratio of the densities is quadratic.
    nodes, weights = np.polynomial.hermite_e.hermegauss(3)
    Z = np.stack(np.meshgrid(*[nodes] * d), axis=-1).reshape(-1, d)
    mass = np.prod(np.meshgrid(*[weights] * d), axis=0).ravel()
    X = first[0] + Z @ np.linalg.cholesky(first[1]).T
    log_ratio = multivariate_normal(*first).logpdf(X)
    log_ratio = log_ratio - multivariate_normal(*second).logpdf(X)
    divergence = mass @ log_ratio / mass.sum()
    assert moment_divergence(*first, *second) == pytest.approx(2 * divergence, rel=1e-9)


def test_divergence_is_zero_only_between_equals():
    rng = np.random.default_rng(0)
    m, S = random_moments(rng, 3)
    assert moment_divergence(m, S, m, S) == pytest.approx(0, abs=1e-12)
    assert moment_divergence(m, S, m + 1e-3, S) > 0


def test_divergence_of_a_singular_covariance_is_an_error():
    with pytest.raises(SingularCovarianceError):
        moment_divergence([0, 0], np.eye(2), [0, 0], np.ones((2, 2)))


def test_clt_radius_is_the_chi_square_quantile():
    assert 100 * clt_radius(20, 100) == pytest.approx(229.333678, rel=1e-8)
    assert clt_radius(2, 50, 0.9) == pytest.approx(chi2.ppf(0.9, 5) / 50)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 10), "`n_features` must be >= 1, got 0"),
        ((2, 0), "`n_rows` must be finite and > 0, got 0"),
        ((2, 10, 1.0), r"`level` must lie in \(0, 1\), got 1.0"),
    ],
)
def test_clt_radius_refuses_arguments_out_of_range(arguments, message):
    with pytest.raises(ValueError, match=message):
        clt_radius(*arguments)


def moment_radius_by_eigenvalues(X, level):
    """The same law from the eigenvalues of the explicit covariance of zeta."""
    n, d = X.shape
    S = np.cov(X.T, bias=True).reshape(d, d)
    eta = (X - X.mean(axis=0)) @ np.linalg.inv(np.linalg.cholesky(S)).T
    outer = np.einsum("ni,nj->nij", eta, eta) - np.eye(d)
    zeta = np.hstack([eta, outer.reshape(n, -1) / np.sqrt(2)])
    eigenvalues = np.linalg.eigvalsh(np.cov(zeta.T, bias=True))
    mean, variance = eigenvalues.sum(), 2 * (eigenvalues**2).sum()
    law = chi2(2 * mean**2 / variance, scale=variance / (2 * mean))
    return law.ppf(level) / n


@pytest.mark.parametrize("shape", [(200, 2), (40, 10)], ids=["covariance", "gram"])
def test_moment_radius_matches_the_eigenvalues_of_zeta(shape):
    X = np.random.default_rng(0).chisquare(2, size=shape)
    assert moment_radius(X, 0.7) == pytest.approx(
        moment_radius_by_eigenvalues(X, 0.7), rel=1e-9
    )


def test_moment_radius_is_affine_invariant():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(100, 3))
    A = rng.normal(size=(3, 3))
    assert moment_radius(X @ A + 5) == pytest.approx(moment_radius(X), rel=1e-9)


def test_moment_radius_weight_is_repetition():
    rng = np.random.default_rng(2)
    X, weight = rng.normal(size=(60, 2)), rng.integers(1, 4, 60)
    assert moment_radius(X, sample_weight=weight) == pytest.approx(
        moment_radius(np.repeat(X, weight, axis=0)), rel=1e-12
    )


def test_satterthwaite_median_at_the_law_of_figure_1():
    # limit law: mean 350, variance 2700; matched law's median against 345.62
    mean, variance = 350.0, 2700.0
    median = chi2.ppf(0.5, 2 * mean**2 / variance) * variance / (2 * mean)
    assert median == pytest.approx(347.43, abs=0.01)


def test_moment_radius_of_skewed_rows_exceeds_the_gaussian_one():
    X = np.random.default_rng(3).chisquare(1, size=(1000, 20))
    assert 300 < 1000 * moment_radius(X) < 350
    assert 1000 * clt_radius(20, 1000) < 230


def test_bootstrap_radius_of_gaussian_rows_is_near_the_limit():
    X = np.random.default_rng(4).normal(size=(400, 3))
    radius = bootstrap_radius(X, covariance="empirical", random_state=0)
    assert radius == pytest.approx(clt_radius(3, 400), rel=0.25)


def test_bootstrap_radius_repeats_and_grows_with_the_level():
    X = np.random.default_rng(5).normal(size=(50, 2))
    low, high = (bootstrap_radius(X, q, random_state=1) for q in (0.3, 0.9))
    assert low < high
    assert low == bootstrap_radius(X, 0.3, random_state=1)


def test_bootstrap_radius_uses_the_asked_covariance():
    X = np.random.default_rng(6).normal(size=(30, 4))
    radii = {
        rule: bootstrap_radius(X, covariance=rule, random_state=0, n_resamples=50)
        for rule in ("empirical", "ledoit_wolf", "oas", 0.9)
    }
    assert len(set(radii.values())) == 4
    assert radii[0.9] < radii["empirical"]


def test_bootstrap_takes_a_function_of_standardised_rows():
    X = np.random.default_rng(7).normal(size=(40, 2)) * [1.0, 1e6]
    by_function = bootstrap_radius(
        X, covariance=lambda Z: Z.T @ Z / len(Z), random_state=0
    )
    by_name = bootstrap_radius(X, covariance="empirical", random_state=0)
    assert by_function == pytest.approx(by_name, rel=1e-9)


def test_a_feature_constant_in_a_resample_leaves_the_radius_finite():
    X = np.random.default_rng(8).normal(size=(12, 2))
    X[:, 1] = 0.0
    X[0, 1] = 1.0  # a third of the resamples miss this row
    assert np.isfinite(bootstrap_radius(X, 0.9, random_state=0))


@pytest.mark.parametrize("radius", [moment_radius, bootstrap_radius])
def test_bad_rows_are_errors(radius):
    with pytest.raises(ValueError, match="finite table"):
        radius([[1.0, np.nan], [2.0, 1.0]])
    with pytest.raises(DegenerateDataError, match=r"feature\(s\) \[1\] are constant"):
        radius([[1.0, 2.0], [2.0, 2.0], [4.0, 2.0]])
    with pytest.raises(ValueError, match=r"`level` must lie in \(0, 1\), got 0"):
        radius([[1.0], [2.0], [4.0]], 0)
    with pytest.raises(ValueError, match="one weight >= 0 per row"):
        radius([[1.0], [2.0], [4.0]], sample_weight=[1.0, -1.0, 1.0])


def test_too_few_rows_for_an_empirical_covariance_is_an_error():
    X = np.random.default_rng(0).normal(size=(3, 3))
    with pytest.raises(DegenerateDataError, match="3 rows for 3 features"):
        moment_radius(X)
    with pytest.raises(DegenerateDataError, match="3 rows for 3 features"):
        bootstrap_radius(X, covariance="empirical")
    with pytest.raises(ValueError, match="`n_resamples` must be >= 1, got 0"):
        bootstrap_radius(X, n_resamples=0)


@pytest.mark.parametrize("covariance", ["pooled", "best", 1.5, -0.1])
def test_bootstrap_refuses_a_covariance_that_it_does_not_know(covariance):
    X = np.random.default_rng(0).normal(size=(20, 2))
    with pytest.raises(ValueError, match=f"a function of rows, got {covariance!r}"):
        bootstrap_radius(X, covariance=covariance)


def log_likelihood(x, mean, S):
    """Log density of a normal law, plus d / 2 log(2 pi)."""
    gap = x - mean
    return -(gap @ np.linalg.solve(S, gap) + np.linalg.slogdet(S)[1]) / 2


def test_scores_bound_the_likelihood_of_every_law_that_the_radius_leaves_open():
    """A synthetic likelihood, and the largest of a composite hypothesis."""
    rng = np.random.default_rng(0)
    radius = clt_radius(2, 50, level=0.9)
    L = np.linalg.cholesky([[2.0, 0.6], [0.6, 1.0]])
    n_inside, x = 0, np.array([1.5, -2.0])
    for _ in range(200):
        simulated = rng.normal(size=(50, 2)) @ L.T
        mean, S = simulated.mean(axis=0), np.cov(simulated.T, bias=True)
        gap = x - mean
        ends = gaussian_scores(gap @ np.linalg.solve(S, gap), 2, radius)
        low, high = ((end - np.linalg.slogdet(S)[1]) / 2 for end in ends)
        if moment_divergence(mean, S, np.zeros(2), L @ L.T) <= radius:
            n_inside += 1
            assert low <= log_likelihood(x, np.zeros(2), L @ L.T) <= high
    assert 165 <= n_inside <= 195  # nine of ten, and the bias of 50 rows


def test_a_ball_that_there_is_not_is_refused():
    with pytest.raises(ValueError, match="`ball` must be 'moments' or 'covariance'"):
        clt_radius(2, 50, ball="means")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0.0, 1.0], np.eye(1), [0.0, 1.0], np.eye(2)), "`cov1`.*got .2,. and .1, 1."),
        (([0.0, 1.0], np.eye(2), [0.0], np.eye(2)), "`mean2`.*got .1,. and .2, 2."),
        (([0.0, np.nan], np.eye(2), [0.0, 1.0], np.eye(2)), "finite numbers"),
    ],
)
def test_moments_that_do_not_fit_have_no_divergence(arguments, message):
    with pytest.raises(ValueError, match=message):
        moment_divergence(*arguments)
