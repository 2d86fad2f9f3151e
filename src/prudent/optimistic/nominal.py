"""Nominal covariances: shrunk on the correlation scale, floored where degenerate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from prudent.core.covariance import (
    ClassCovariances,
    CovarianceRule,
    fitted_covariance,
    invertible,
    shrinkage_amounts,
)
from prudent.core.distances import row_blocks
from prudent.core.moments import ClassMoments
from prudent.core.rows import Block
from prudent.core.shrinkage import shrink
from prudent.core.types import FloatArray, IntArray
from prudent.core.validation import shown
from prudent.exceptions import DegenerateDataError

# A feature constant inside a class gets this share of its variance over all rows.
VARIANCE_FLOOR = 1e-9
# Least eigenvalue of a correlation matrix, relative to the largest.
EIGENVALUE_FLOOR = 1e-12


def nominal_covariances(
    moments: ClassMoments,
    rule: CovarianceRule,
    *,
    fourth_of: Callable[[FloatArray], FloatArray] | None = None,
    rows_of: Callable[[int], tuple[FloatArray, FloatArray | None]] | None = None,
    variances: FloatArray | None = None,
    exact: bool = False,
) -> ClassCovariances:
    """Covariance of each class by `rule`, always positive definite.

    Shrinkage acts on the correlation scale, so that the units of the features do
    not matter.

    Parameters
    ----------
    moments : ClassMoments
        Classes of positive weight; no feature constant over all rows.
    rule : str, float or callable
        "empirical" (divide by n), "ledoit_wolf", "oas", an amount a for
        (1 - a) S + a diag(S), a function of standardised rows, or "pooled": one
        empirical covariance about the class means for all classes.
    fourth_of : callable, default=None
        From standard deviations (K, d) to the sums of w |z|^4 by class over the rows
        standardised by them; "ledoit_wolf" needs it.
    rows_of : callable, default=None
        Rows of class k and their weights; a function of rows needs it.
    variances : ndarray of shape (d,), default=None
        What the floor of a feature constant inside a class is relative to; by
        default the variance over all rows.
    exact : bool, default=False
        The moments are known, not estimated: any class size will do.

    Returns
    -------
    ClassCovariances
        In squared units of the features.

    Raises
    ------
    DegenerateDataError
        If a class has a weight total <= 1, or no more rows than features and the
        rule does not shrink.
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
    found = invertible(correlation, rule, floor, floored_features=floored)
    covariances = found.matrices * deviation[:, :, None] * deviation[:, None, :]
    return replace(found, matrices=covariances)


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
    one = nominal_covariances(
        moments.within(), "empirical", variances=variances, exact=True
    )
    classes = range(n_classes)
    return ClassCovariances(
        matrices=np.repeat(one.matrices, n_classes, axis=0),
        kind="pooled",
        pooled=one.pooled,
        floored_features=tuple(
            (k, features) for k in classes for _, features in one.floored_features
        ),
        condition=np.repeat(one.condition, n_classes),
        n_floored=np.repeat(one.n_floored, n_classes),
        floor=one.floor,
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


def _check_sizes(moments: ClassMoments, rule: CovarianceRule) -> None:
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
    rows_of: Callable[[int], tuple[FloatArray, FloatArray | None]],
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
