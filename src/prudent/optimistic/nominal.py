"""Nominal covariances: shrunk on the correlation scale, floored where degenerate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from prudent.core.definiteness import floor_eigenvalues
from prudent.core.distances import row_blocks
from prudent.core.moments import ClassMoments
from prudent.core.shrinkage import ledoit_wolf_shrinkage, oas_shrinkage, shrink
from prudent.exceptions import DegenerateDataError
from prudent.optimistic.class_scores import ClassScores

if TYPE_CHECKING:
    from prudent.optimistic.learning import RadiusRule

__all__ = ["NominalCovariances", "TrainingRows", "nominal_covariances"]

FloatArray = NDArray[np.float64]
#: "empirical", "ledoit_wolf", "oas", an amount of shrinkage in [0, 1], or a function
#: from standardised rows (n, d) to their covariance (d, d).
CovarianceRule = str | float | Callable[[FloatArray], FloatArray]

# A feature constant inside a class gets this share of its variance over all rows.
VARIANCE_FLOOR = 1e-9
# Least eigenvalue of a correlation matrix, relative to the largest.
EIGENVALUE_FLOOR = 1e-12


class FourthMoments(Protocol):
    """Rows known well enough for Ledoit-Wolf shrinkage."""

    def standardised_fourth(
        self, moments: ClassMoments, deviation: FloatArray
    ) -> FloatArray:
        """Sum of w |z|^4 by class over standardised rows z."""


@dataclass(frozen=True, slots=True)
class TrainingRows:
    """Rows behind class moments, for what moments do not tell.

    Attributes
    ----------
    X : ndarray of shape (n, d)
    codes : ndarray of shape (n,)
        Class of each row, 0..K-1.
    weight : ndarray of shape (n,) or None
    """

    X: NDArray[Any]
    codes: NDArray[np.intp]
    weight: FloatArray | None

    def restrict(self, features: NDArray[np.intp]) -> TrainingRows:
        """The rows with some of the features."""
        if len(features) == self.X.shape[1]:
            return self
        return TrainingRows(self.X[:, features], self.codes, self.weight)

    def of_class(self, k: int) -> tuple[FloatArray, FloatArray | None]:
        """Rows of one class and their weights."""
        chosen = self.codes == k
        weight = None if self.weight is None else self.weight[chosen]
        return self.X[chosen].astype(np.float64), weight

    def standardised_fourth(
        self, moments: ClassMoments, deviation: FloatArray
    ) -> FloatArray:
        """Sum of w |z|^4 by class over standardised rows z; Ledoit-Wolf needs it."""
        n_classes, n_features = deviation.shape
        fourth = np.zeros(n_classes)
        for block in row_blocks(len(self.X), n_features):
            codes = self.codes[block]
            Z = self.X[block] - moments.mean[codes]
            Z -= moments.mean_lo[codes]
            Z /= deviation[codes]
            squares = np.einsum("ij,ij->i", Z, Z) ** 2
            if self.weight is not None:
                squares *= self.weight[block]
            fourth += np.bincount(codes, squares, minlength=n_classes)
        return fourth

    def radii(self, rule: RadiusRule, moments: ClassMoments) -> FloatArray:
        """Radius of each class of `moments` by a rule that asks the rows."""
        classes = range(len(moments.weight))
        return np.array([rule.estimate(*self.of_class(k)) for k in classes])

    def compared(
        self, scores: ClassScores
    ) -> tuple[FloatArray, NDArray[np.intp], FloatArray | None]:
        """Scores (n, K) that a threshold compares, with codes and weights."""
        return scores.decision(self.X), self.codes, self.weight


@dataclass(frozen=True, slots=True)
class NominalCovariances:
    """Positive definite class covariances and what was done to get them.

    Attributes
    ----------
    covariances : ndarray of shape (K, d, d)
        In squared units of the features.
    floored_features : tuple of (int, ndarray)
        Class and its features whose variance was floored.
    condition : ndarray of shape (K,)
        Condition number of each correlation matrix before eigenvalues were floored.
    n_floored_eigenvalues : ndarray of shape (K,)
        Eigenvalues of each correlation matrix that were floored.
    """

    covariances: FloatArray
    floored_features: tuple[tuple[int, NDArray[np.intp]], ...]
    condition: FloatArray
    n_floored_eigenvalues: NDArray[np.intp]


def nominal_covariances(
    moments: ClassMoments,
    rule: CovarianceRule,
    rows: FourthMoments | None = None,
    *,
    variances: FloatArray | None = None,
    exact: bool = False,
) -> NominalCovariances:
    """Covariance of each class by `rule`, always positive definite.

    Shrinkage acts on the correlation scale, so that the units of the features do
    not matter.

    Parameters
    ----------
    moments : ClassMoments
        Classes of positive weight; no feature constant over all rows.
    rule : str, float or callable
        "empirical" (divide by n), "ledoit_wolf" (needs `rows`), "oas", an amount
        a for (1 - a) S + a diag(S), or a function of standardised rows (needs
        `TrainingRows`).
    rows : FourthMoments, default=None
        The rows behind `moments`.
    variances : ndarray of shape (d,), default=None
        What the floor of a feature constant inside a class is relative to; by
        default the variance over all rows.
    exact : bool, default=False
        The moments are known, not estimated: any class size will do.

    Raises
    ------
    DegenerateDataError
        If a class has a weight total <= 1, or no more rows than features and the
        rule does not shrink.
    """
    _check_sizes(moments, rule, exact)
    deviation, floored = _deviations(moments, variances)
    correlation = moments.covariance() / (deviation[:, :, None] * deviation[:, None, :])
    if callable(rule):
        assert isinstance(rows, TrainingRows)
        correlation = _fitted(correlation, deviation, moments, rule, rows)
    else:
        amount = _amounts(correlation, deviation, moments, rule, rows)
        features = np.arange(correlation.shape[1])
        correlation[:, features, features] = 1.0
        correlation = shrink(correlation, amount, "diagonal")
    condition, n_clipped = np.empty(len(deviation)), np.zeros(len(deviation), np.intp)
    floor = max(EIGENVALUE_FLOOR, 200 * deviation.shape[1] * np.finfo(float).eps)
    for k, matrix in enumerate(correlation):
        values = np.linalg.eigvalsh(matrix)
        condition[k] = values[-1] / values[0] if values[0] > 0 else np.inf
        if values[0] < floor * values[-1]:
            raised = floor_eigenvalues(matrix, floor * values[-1])
            correlation[k], n_clipped[k] = raised.covariance, raised.n_clipped
    covariances = correlation * deviation[:, :, None] * deviation[:, None, :]
    return NominalCovariances(covariances, floored, condition, n_clipped)


def _check_sizes(moments: ClassMoments, rule: CovarianceRule, exact: bool) -> None:
    n_features = moments.mean.shape[1]
    shrinks = callable(rule) or rule not in ("empirical", 0.0)
    for label, weight in zip(moments.classes.tolist(), moments.weight, strict=True):
        if exact:
            continue
        if weight <= 1:
            raise DegenerateDataError(
                f"class {label!r} has a total weight of {weight:g}, so its "
                "covariance is undefined. Give at least 2 rows per class, or fit "
                "from known moments with `from_moments`."
            )
        if not shrinks and weight <= n_features:
            raise DegenerateDataError(
                f"class {label!r} has {weight:g} rows for {n_features} features, so "
                "its empirical covariance is singular. Use "
                "covariance='ledoit_wolf' or give more rows."
            )


def _deviations(
    moments: ClassMoments, variances: FloatArray | None
) -> tuple[FloatArray, tuple[tuple[int, NDArray[np.intp]], ...]]:
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
    deviation: FloatArray,
    moments: ClassMoments,
    rule: str | float,
    rows: FourthMoments | None,
) -> FloatArray:
    """Amount of shrinkage of each class."""
    n_classes = len(correlation)
    if rule == "empirical":
        return np.zeros(n_classes)
    if not isinstance(rule, str):
        return np.full(n_classes, float(rule))
    if rule == "ledoit_wolf":
        assert rows is not None
        fourth = rows.standardised_fourth(moments, deviation)
    amount = np.zeros(n_classes)
    for k, matrix in enumerate(correlation):
        # a floored feature has correlation 0 by decree and says nothing
        varies = np.diagonal(matrix) > 0
        weight = moments.weight[k : k + 1]
        scatter = weight[0] * matrix[np.ix_(varies, varies)][None]
        if not varies.any():
            continue
        if rule == "oas":
            amount[k] = oas_shrinkage(weight, scatter)[0]
        else:
            amount[k] = ledoit_wolf_shrinkage(weight, scatter, fourth[k : k + 1])[0]
    return amount


def _fitted(
    correlation: FloatArray,
    deviation: FloatArray,
    moments: ClassMoments,
    rule: Callable[[FloatArray], FloatArray],
    rows: TrainingRows,
) -> FloatArray:
    """Covariances of standardised rows by a function of the user."""
    fitted = np.empty_like(correlation)
    for k in range(len(correlation)):
        X, weight = rows.of_class(k)
        if weight is not None and (weight != weight[0]).any():
            raise ValueError(
                "a covariance estimator cannot take `sample_weight`: use "
                "covariance='ledoit_wolf', 'oas', 'empirical' or a number."
            )
        varies = np.diagonal(correlation[k]) > 0
        Z = (X - moments.mean[k])[:, varies] / deviation[k][varies]
        fitted[k] = np.eye(len(varies))
        fitted[k][np.ix_(varies, varies)] = rule(Z)
    return fitted
