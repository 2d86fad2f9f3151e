"""Nominal moments: divergence from them, covariances shrunk and floored.

Covariances are shrunk on the correlation scale and floored where degenerate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from prudent.core.linalg import (
    ClassCovariances,
    CovarianceRule,
    MahalanobisFactors,
    fitted_covariance,
    invertible,
    row_blocks,
    shrink,
    shrinkage_amounts,
)
from prudent.core.moments import ClassMoments
from prudent.core.rows import Block
from prudent.core.types import FloatArray, IntArray
from prudent.core.validation import shown
from prudent.exceptions import DegenerateDataError

RowsOf = Callable[[int], tuple[FloatArray, FloatArray | None]]

# A feature constant inside a class gets this share of its variance over all rows.
VARIANCE_FLOOR = 1e-9
# Least eigenvalue of a correlation matrix, relative to the largest.
EIGENVALUE_FLOOR = 1e-12


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
        twice the Kullback-Leibler divergence KL(N(m, S) || N(mu, Sigma)). At least
        0, without unit (Nguyen, Si and Blanchet 2020, Definition 2.1).

    Raises
    ------
    SingularCovarianceError
        If a covariance is not positive definite.
    ValueError
        If shapes disagree, or a number is not finite.

    Examples
    --------
    >>> from prudent.optimistic import moment_divergence
    >>> round(moment_divergence([0.0], [[1.0]], [1.0], [[2.0]]), 6)
    0.693147
    """
    pairs = ("1", mean1, cov1), ("2", mean2, cov2)
    d = np.size(mean1)
    for number, mean, covariance in pairs:
        shapes = np.shape(np.ravel(mean)), np.shape(np.atleast_2d(covariance))
        if shapes != ((d,), (d, d)):
            raise ValueError(
                f"`mean{number}` and `cov{number}` must have shapes {(d,)} and "
                f"{(d, d)}, got {shapes[0]} and {shapes[1]}."
            )
    means = np.array([np.ravel(mean) for _, mean, _ in pairs], dtype=np.float64)
    covariances = np.array([np.atleast_2d(S) for *_, S in pairs], dtype=np.float64)
    if not (np.isfinite(means).all() and np.isfinite(covariances).all()):
        raise ValueError("means and covariances must hold finite numbers.")
    factors = MahalanobisFactors.from_covariances(means, covariances)
    U = factors.inverse_factors[1]
    gap = U @ (means[1] - means[0])
    # singular values of U L1 are the roots of the eigenvalues of S Sigma^-1
    roots = np.linalg.svd(U @ np.linalg.cholesky(covariances[0]), compute_uv=False)
    eigenvalues = roots**2
    return float(gap @ gap + (eigenvalues - 1 - np.log(eigenvalues)).sum())


def nominal_covariances(
    moments: ClassMoments,
    rule: CovarianceRule,
    *,
    fourth_of: Callable[[FloatArray], FloatArray] | None = None,
    rows_of: RowsOf | None = None,
    variances: FloatArray | None = None,
    exact: bool = False,
) -> ClassCovariances:
    """Covariance of each class by `rule`, always positive definite.

    `rule` is that of `estimate_covariances` with n for divisor, shrunk on the
    correlation scale, so that units do not matter; or "pooled", one about the class
    means for all. "ledoit_wolf" needs `fourth_of`: from standard deviations (K, d) to
    sums of w |z|^4 by class over rows standardised by them. A function needs `rows_of`.
    The floor of a feature constant inside a class is relative to `variances`, by
    default those over all rows. `exact` moments are known: any class size will do.
    """
    if rule == "pooled":
        return _pooled(moments, variances, exact=exact)
    if not exact:
        _check_sizes(moments, rule)
    deviation, floored = _deviations(moments, variances)
    products = deviation[:, :, None] * deviation[:, None, :]
    correlation = moments.covariance() / products
    if callable(rule):
        assert rows_of is not None
        correlation = _fitted(correlation, deviation, moments, rule, rows_of)
    else:
        fourth = None
        if rule == "ledoit_wolf":
            assert fourth_of is not None
            fourth = fourth_of(deviation)
        amount = _amounts(correlation, moments, rule, fourth)
        features = np.arange(correlation.shape[1])
        correlation[:, features, features] = 1.0
        correlation = shrink(correlation, amount, "diagonal")
    floor = max(EIGENVALUE_FLOOR, 200 * deviation.shape[1] * np.finfo(float).eps)
    repaired = invertible(correlation, rule, floor, floored_features=floored)
    covariances = repaired.matrices * deviation[:, :, None] * deviation[:, None, :]
    return replace(repaired, matrices=covariances)


def _pooled(
    moments: ClassMoments, variances: FloatArray | None, *, exact: bool
) -> ClassCovariances:
    """The covariance about the class means, as that of each class."""
    n_classes, n_features = moments.mean.shape
    total = float(moments.weight.sum())
    if not exact and total - n_classes < n_features:
        raise DegenerateDataError(
            f"{total:g} rows of {n_classes} classes have no pooled covariance of "
            f"{n_features} features: it needs {n_classes + n_features} rows. Use "
            "covariance='ledoit_wolf' or give more rows."
        )
    if variances is None:
        variances = np.diagonal(moments.pooled().covariance()[0])
    pooled = nominal_covariances(
        moments.within(), "empirical", variances=variances, exact=True
    )
    return replace(
        pooled,
        matrices=np.repeat(pooled.matrices, n_classes, axis=0),
        kind="pooled",
        floored_features=tuple(
            (k, features)
            for k in range(n_classes)
            for _, features in pooled.floored_features
        ),
        condition=np.repeat(pooled.condition, n_classes),
        n_floored=np.repeat(pooled.n_floored, n_classes),
    )


def standardised_fourth(
    block: Block, moments: ClassMoments, deviation: FloatArray
) -> FloatArray:
    """Sum of w |z|^4 by class over the standardised rows z of a block."""
    n_classes, n_features = deviation.shape
    fourth = np.zeros(n_classes)
    for rows in row_blocks(len(block), n_features):
        codes = block.codes[rows]
        Z = block.X[rows] - moments.mean[codes]
        Z -= moments.mean_lo[codes]
        Z /= deviation[codes]
        squares = np.einsum("ij,ij->i", Z, Z) ** 2
        if block.weight is not None:
            squares *= block.weight[rows]
        fourth += np.bincount(codes, squares, minlength=n_classes)
    return fourth


def class_deviations(moments: ClassMoments) -> FloatArray:
    """Standard deviations (K, d) by class; 0 where a feature does not vary."""
    variance: FloatArray = np.diagonal(moments.covariance(), axis1=1, axis2=2)
    return np.sqrt(variance)


def standardised(block: Block, k: int, moments: ClassMoments) -> FloatArray:
    """Rows of a class less its mean, over its deviations; 0 where it is constant."""
    X, _ = block.of_class(k)
    deviation = class_deviations(moments)[k]
    Z: FloatArray = (X - moments.mean[k]) - moments.mean_lo[k]
    return Z / np.where(deviation > 0, deviation, 1.0)


def _check_sizes(moments: ClassMoments, rule: CovarianceRule) -> None:
    """Refuse classes too small for their covariance, by name."""
    n_features = moments.mean.shape[1]
    shrinks = callable(rule) or rule not in ("empirical", 0.0)
    for label, weight in zip(moments.classes, moments.weight, strict=True):
        if weight <= 1:
            raise DegenerateDataError(
                f"class {shown(label)} has a total weight of {weight:g}, so its "
                "covariance is undefined. Give at least 2 rows per class, or fit "
                "from known moments with `from_moments`."
            )
        if not shrinks and weight <= n_features:
            raise DegenerateDataError(
                f"class {shown(label)} has {weight:g} rows for {n_features} features, "
                "so its empirical covariance is singular. Use "
                "covariance='ledoit_wolf' or give more rows."
            )


def _deviations(
    moments: ClassMoments, variances: FloatArray | None
) -> tuple[FloatArray, tuple[tuple[int, IntArray], ...]]:
    """Standard deviations by class, floored where a feature does not vary."""
    variance = np.diagonal(moments.covariance(), axis1=1, axis2=2).copy()
    flat = variance <= 0
    if flat.any():
        if variances is None:
            variances = np.diagonal(moments.pooled().covariance()[0])
        variance = np.where(flat, VARIANCE_FLOOR * variances, variance)
    floored = tuple(
        (int(k), np.flatnonzero(flat[k])) for k in np.flatnonzero(flat.any(axis=1))
    )
    return np.sqrt(variance), floored


def _amounts(
    correlation: FloatArray,
    moments: ClassMoments,
    rule: str | float,
    fourth: FloatArray | None,
) -> FloatArray:
    """Amount of shrinkage of each class, from the features that vary in it."""
    amount = np.zeros(len(correlation))
    for k, matrix in enumerate(correlation):
        # a floored feature has correlation 0 by decree and says nothing
        varies = np.diagonal(matrix) > 0
        if varies.any():
            weight = moments.weight[k : k + 1]
            scatter = weight[0] * matrix[np.ix_(varies, varies)][None]
            own = None if fourth is None else fourth[k : k + 1]
            amount[k] = shrinkage_amounts(rule, weight, scatter, own)[0]
    return amount


def _fitted(
    correlation: FloatArray,
    deviation: FloatArray,
    moments: ClassMoments,
    rule: Callable[[FloatArray], FloatArray],
    rows_of: RowsOf,
) -> FloatArray:
    """Covariances of standardised rows by a function of the user."""
    fitted = np.empty_like(correlation)
    for k in range(len(correlation)):
        X, weight = rows_of(k)
        varies = np.diagonal(correlation[k]) > 0
        Z = (X - moments.mean[k])[:, varies] / deviation[k][varies]
        fitted[k] = np.eye(len(varies))
        if varies.any():
            own = np.ix_(varies, varies)
            fitted[k][own] = fitted_covariance(rule, Z, weight)
    return fitted
