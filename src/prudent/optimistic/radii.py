"""Radii of the ambiguity sets: limit theorem, fourth moments, bootstrap."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import chi2

from prudent.core.distances import MahalanobisFactors, row_blocks
from prudent.core.moments import ClassMoments
from prudent.exceptions import DegenerateDataError
from prudent.optimistic.nominal import (
    CovarianceRule,
    TrainingRows,
    nominal_covariances,
)

__all__ = [
    "N_RESAMPLES",
    "bootstrap_radius",
    "check_more_rows_than_features",
    "clt_radius",
    "limit_covariance",
    "matched_radius",
    "moment_divergence",
    "moment_radius",
]

FloatArray = NDArray[np.float64]

N_RESAMPLES = 200


def moment_divergence(
    mean1: ArrayLike, cov1: ArrayLike, mean2: ArrayLike, cov2: ArrayLike
) -> float:
    """Divergence of moments (mu, Sigma) = pair 2 from the nominal pair 1.

    Parameters
    ----------
    mean1, mean2 : array-like of shape (d,)
        Means m (nominal) and mu.
    cov1, cov2 : array-like of shape (d, d)
        Covariances S (nominal) and Sigma, symmetric positive definite.

    Returns
    -------
    float
        (mu - m)' Sigma^-1 (mu - m) + tr(S Sigma^-1) - log det(S Sigma^-1) - d,
        twice the Kullback-Leibler divergence of N(mu, Sigma) from N(m, S). At
        least 0, without unit.

    Raises
    ------
    SingularCovarianceError
        If a covariance is not positive definite.

    References
    ----------
    Nguyen, Si and Blanchet (2020), "Robust Bayesian classification using an
    optimistic score ratio", ICML, Definition 2.1.

    Examples
    --------
    >>> from prudent.optimistic import moment_divergence
    >>> round(moment_divergence([0.0], [[1.0]], [1.0], [[2.0]]), 6)
    0.693147
    """
    means = np.atleast_2d([np.ravel(mean1), np.ravel(mean2)]).astype(np.float64)
    covariances = np.array([np.atleast_2d(cov1), np.atleast_2d(cov2)], dtype=np.float64)
    factors = MahalanobisFactors.from_covariances(means, covariances)
    U = factors.inverse_factors[1]
    gap = U @ (means[1] - means[0])
    # singular values of U L1 are the roots of the eigenvalues of S Sigma^-1
    roots = np.linalg.svd(U @ np.linalg.cholesky(covariances[0]), compute_uv=False)
    eigenvalues = roots**2
    return float(gap @ gap + (eigenvalues - 1 - np.log(eigenvalues)).sum())


def clt_radius(n_features: int, n_rows: float, level: float = 0.5) -> float:
    """Radius from the limit law for Gaussian data.

    n times the divergence of the sample moments tends to a chi-square law with
    d (d + 3) / 2 degrees of freedom.

    Parameters
    ----------
    n_features : int
        Number of features d, >= 1.
    n_rows : float
        Rows (or weight) of the class, > 0.
    level : float, default=0.5
        Nominal probability that the ball holds the true moments, in (0, 1). Not
        a promise: it needs Gaussian data, the sample covariance and many rows.

    Returns
    -------
    float
        Radius rho, already divided by `n_rows`.

    Raises
    ------
    ValueError
        If an argument is outside its range.

    References
    ----------
    Nguyen, Si and Blanchet (2020), Corollary 2.3.

    Examples
    --------
    >>> from prudent.optimistic import clt_radius
    >>> round(clt_radius(20, 100), 4)
    2.2933
    """
    if not n_features >= 1:
        raise ValueError(f"`n_features` must be >= 1, got {n_features!r}.")
    if not 0 < n_rows < np.inf:
        raise ValueError(f"`n_rows` must be finite and > 0, got {n_rows!r}.")
    _check_level(level)
    return float(chi2.ppf(level, n_features * (n_features + 3) / 2) / n_rows)


def moment_radius(
    X: ArrayLike, level: float = 0.5, *, sample_weight: ArrayLike | None = None
) -> float:
    """Radius from the limit law without Gaussianity, by the rows' own fourth moments.

    Parameters
    ----------
    X : array-like of shape (n, d)
        Rows of one class, n > d.
    level : float, default=0.5
        Nominal probability that the ball holds the true moments, in (0, 1).
    sample_weight : array-like of shape (n,), default=None
        Weights >= 0, read as repetitions.

    Returns
    -------
    float
        Radius rho, already divided by the number of rows.

    Raises
    ------
    DegenerateDataError
        If there are no more rows than features, or the covariance is singular.
    ValueError
        If `level` is outside (0, 1).

    Notes
    -----
    The limit of n D is sum_k lambda_k chi2_1 with lambda the eigenvalues of the
    covariance of zeta = (eta, vec(eta eta' - I) / sqrt 2), eta a standardised row
    (Nguyen et al. 2020, Theorem 2.2). Its mean (E|eta|^4 + d) / 2 and variance
    2 sum lambda^2 are matched by a scaled chi-square law (Satterthwaite 1946). For
    heavy tails the plug-in is biased low: on 20 features with chi-square(1) noise
    the mean comes out as 282, 319, 337 at n = 100, 300, 1000 for a true 350.

    Examples
    --------
    >>> import numpy as np
    >>> from prudent.optimistic import moment_radius
    >>> X = np.random.default_rng(0).normal(size=(2000, 2))
    >>> round(2000 * moment_radius(X), 1)  # chi-square(5) median: 4.35
    4.2
    """
    _check_level(level)
    X, weight = _class_rows(X, sample_weight)
    total = weight.sum()
    check_more_rows_than_features(X.shape[1], total, "`moment_radius`")
    share = weight / total
    centred = X - share @ X
    covariance = (share[:, None] * centred).T @ centred
    mean = np.zeros((1, X.shape[1]))
    U = MahalanobisFactors.from_covariances(mean, covariance[None]).inverse_factors[0]
    eta = centred @ U.T
    squares = np.einsum("ij,ij->i", eta, eta)
    limit_mean = (share @ squares**2 + X.shape[1]) / 2
    limit_variance = 2 * _sum_of_squared_eigenvalues(eta, squares, share)
    return matched_radius(limit_mean, limit_variance, total, level)


def matched_radius(mean: float, variance: float, n_rows: float, level: float) -> float:
    """Quantile of the scaled chi-square law of this mean and variance, over n."""
    scale, freedom = variance / (2 * mean), 2 * mean**2 / variance
    return float(scale * chi2.ppf(level, freedom) / n_rows)


def _sum_of_squared_eigenvalues(
    eta: FloatArray, squares: FloatArray, share: FloatArray
) -> float:
    """Sum of lambda^2 = sum over pairs i, j of p_i p_j (zeta_i' zeta_j)^2.

    By the covariance of zeta, or by the products of all pairs where rows are fewer.
    """
    n_rows, d = eta.shape
    if d * (d + 3) // 2 <= n_rows:
        return float((limit_covariance(eta, share) ** 2).sum())
    total = 0.0
    for block in row_blocks(n_rows, n_rows):
        G = eta[block] @ eta.T
        kernel = G + (G * G - squares[block, None] - squares + d) / 2
        total += float(share[block] @ (kernel * kernel) @ share)
    return total


def limit_covariance(eta: FloatArray, weight: FloatArray) -> FloatArray:
    """Sum of w zeta zeta' over standardised rows eta; additive over blocks of rows.

    With weights of sum 1 its trace and twice its sum of squares are the mean and
    the variance of the limit law in `moment_radius`.
    """
    d = eta.shape[1]
    dimension = d * (d + 3) // 2
    total = np.zeros((dimension, dimension))
    first, second = np.triu_indices(d)
    factor = np.where(first == second, np.sqrt(0.5), 1.0)
    for block in row_blocks(len(eta), dimension):
        rows = eta[block]
        products = rows[:, first] * rows[:, second] - (first == second)
        zeta = np.hstack([rows, products * factor])
        total += (weight[block, None] * zeta).T @ zeta
    return total


def bootstrap_radius(
    X: ArrayLike,
    level: float = 0.5,
    *,
    n_resamples: int = N_RESAMPLES,
    covariance: CovarianceRule = "ledoit_wolf",
    sample_weight: ArrayLike | None = None,
    random_state: int | np.random.RandomState | None = None,
) -> float:
    """Radius as a quantile of the divergence of resampled moments from the nominal.

    Parameters
    ----------
    X : array-like of shape (n, d)
        Rows of one class.
    level : float, default=0.5
        Quantile, in (0, 1).
    n_resamples : int, default=200
        Number of resamples, >= 1.
    covariance : {"ledoit_wolf", "oas", "empirical"}, float or callable, \
default="ledoit_wolf"
        Covariance estimator, the same for the nominal and the resampled moments.
    sample_weight : array-like of shape (n,), default=None
        Weights >= 0, read as repetitions.
    random_state : int, RandomState or None, default=None
        Source of the resamples.

    Returns
    -------
    float
        Radius rho.

    Raises
    ------
    DegenerateDataError
        If a feature is constant, or the empirical covariance is asked of no more
        rows than features.
    ValueError
        If `level` or `n_resamples` is outside its range.

    Examples
    --------
    >>> import numpy as np
    >>> from prudent.optimistic import bootstrap_radius
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> 3 < 200 * bootstrap_radius(X, random_state=0) < 6
    True
    """
    _check_level(level)
    if not n_resamples >= 1:
        raise ValueError(f"`n_resamples` must be >= 1, got {n_resamples!r}.")
    X, weight = _class_rows(X, sample_weight)
    if covariance in ("empirical", 0.0):
        check_more_rows_than_features(
            X.shape[1], weight.sum(), "covariance='empirical'"
        )
    random = (
        random_state
        if isinstance(random_state, np.random.RandomState)
        else np.random.RandomState(random_state)
    )
    # Standardised, so that a feature constant in a resample is floored relative to
    # its variance in all rows; the divergence does not see the change of scale.
    X = X - np.average(X, axis=0, weights=weight)
    X /= np.sqrt(np.average(X**2, axis=0, weights=weight))
    nominal = _moments(X, weight, covariance)
    size = max(2, round(weight.sum()))
    divergences = np.empty(n_resamples)
    for b in range(n_resamples):
        rows = X[random.choice(len(X), size=size, p=weight / weight.sum())]
        resampled = _moments(rows, np.ones(size), covariance)
        divergences[b] = moment_divergence(*resampled, *nominal)
    return float(np.quantile(divergences, level))


def _moments(
    X: FloatArray, weight: FloatArray, rule: CovarianceRule
) -> tuple[FloatArray, FloatArray]:
    """Mean and covariance of one class of standardised rows."""
    codes = np.zeros(len(X), dtype=np.intp)
    moments = ClassMoments.from_rows(X, codes, 1, weight)
    rows = TrainingRows(X, codes, weight)
    nominal = nominal_covariances(moments, rule, rows, variances=np.ones(X.shape[1]))
    return moments.mean[0], nominal.covariances[0]


def _class_rows(
    X: ArrayLike, sample_weight: ArrayLike | None
) -> tuple[FloatArray, FloatArray]:
    X = np.asarray(X, dtype=np.float64)
    if X.ndim != 2 or X.size == 0 or not np.isfinite(X).all():
        raise ValueError(
            "`X` must be a finite table of shape (n, d), not empty, got shape "
            f"{X.shape}."
        )
    constant = np.flatnonzero(np.ptp(X, axis=0) == 0)
    if len(constant):
        raise DegenerateDataError(
            f"feature(s) {constant[:5].tolist()} are constant: leave them out, they "
            "have no covariance."
        )
    if sample_weight is None:
        return X, np.ones(len(X))
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != (len(X),) or not (weight >= 0).all() or not weight.sum() > 0:
        raise ValueError("`sample_weight` must hold one weight >= 0 per row.")
    return X, weight


def check_more_rows_than_features(n_features: int, n_rows: float, what: str) -> None:
    """Raise DegenerateDataError where a covariance would be singular."""
    if n_rows <= n_features:
        raise DegenerateDataError(
            f"{what} needs more rows than features, got {n_rows:g} rows for "
            f"{n_features} features; use covariance='ledoit_wolf' and radius='clt'."
        )


def _check_level(level: float) -> None:
    if not 0 < level < 1:
        raise ValueError(f"`level` must lie in (0, 1), got {level!r}.")
