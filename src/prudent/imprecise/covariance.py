"""Scale and covariance policies: from class scatter to matrices one may invert."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from prudent.core.definiteness import floor_eigenvalues
from prudent.core.shrinkage import ledoit_wolf_shrinkage, oas_shrinkage, shrink
from prudent.exceptions import DegenerateDataError

__all__ = ["ClassCovariances", "Scatter", "class_covariances", "invertible"]

FloatArray = NDArray[np.float64]

_CORRELATION_FLOOR = 1e-6  # times p: below it a matrix counts as ill conditioned
_EIGENVALUE_FLOOR = 1e-9  # of the largest eigenvalue


@dataclass(frozen=True)
class Scatter:
    """Scatter matrices, in units of the feature scale, and what divides them.

    Attributes
    ----------
    weight : ndarray of shape (M,)
        Total weights W.
    divisor : ndarray of shape (M,)
        W - 1 for a class, W - K for all classes in common.
    freedom : ndarray of shape (M,)
        Must exceed the number of features for a matrix of full rank: W for a
        class, W - K for all classes in common.
    matrix : ndarray of shape (M, p, p)
        Sums of w z z' about the class means.
    fourth : ndarray of shape (M,) or None
        Sums of w |z|^4, for Ledoit-Wolf only.
    """

    weight: FloatArray
    divisor: FloatArray
    freedom: FloatArray
    matrix: FloatArray
    fourth: FloatArray | None

    @classmethod
    def of_classes(
        cls, weight: FloatArray, matrix: FloatArray, fourth: FloatArray | None
    ) -> Scatter:
        """One matrix for each class."""
        return cls(weight, weight - 1.0, weight, matrix, fourth)

    def pooled(self) -> Scatter:
        """One matrix for all classes, each about its own mean."""
        total = self.weight.sum(keepdims=True)
        divisor = total - len(self.weight)
        if not divisor[0] > 0:
            raise DegenerateDataError(
                f"{total[0]:g} rows in {len(self.weight)} classes leave nothing to "
                "estimate a covariance from: give at least one class two rows."
            )
        matrix = self.matrix.sum(axis=0, keepdims=True)
        fourth = None if self.fourth is None else self.fourth.sum(keepdims=True)
        return Scatter(total, divisor, divisor, matrix, fourth)

    def covariances(self, rule: str | float) -> FloatArray:
        """Matrices (M, p, p) under a rule; zeros where the divisor is not positive."""
        usable = self.divisor > 0
        divisor = np.where(usable, self.divisor, 1.0)[:, None, None]
        empirical = np.where(usable[:, None, None], self.matrix / divisor, 0.0)
        if rule == "empirical":
            return empirical
        if rule == "oas":
            amount = oas_shrinkage(self.weight, self.matrix)
            return shrink(empirical, amount, "identity")
        if rule == "ledoit_wolf":
            assert self.fourth is not None
            amount = ledoit_wolf_shrinkage(self.weight, self.matrix, self.fourth)
            return shrink(empirical, amount, "identity")
        return shrink(empirical, float(rule), "diagonal")

    def automatic_rule(self, diagonal: bool) -> str:
        """The rule "empirical" if every matrix is well conditioned, else "oas".

        One rule for all classes: densities shrunk differently compare badly.
        """
        if not (self.divisor > 0).all():
            return "oas"
        variances = np.diagonal(self.matrix, axis1=1, axis2=2)
        if not (variances > 0).all():
            return "oas"
        if diagonal:
            return "empirical"
        size = self.matrix.shape[1]
        if not (self.freedom > size).all():
            return "oas"
        deviation = np.sqrt(variances)
        correlation = self.matrix / (deviation[:, :, None] * deviation[:, None, :])
        lowest = np.linalg.eigvalsh(correlation)[:, 0]
        return "empirical" if (lowest > _CORRELATION_FLOOR * size).all() else "oas"


@dataclass(frozen=True)
class ClassCovariances:
    """Positive definite matrices, one a class or one in common.

    Attributes
    ----------
    matrices : ndarray of shape (M, p, p)
        In units of the feature scale.
    kind : str
        The rule behind them.
    pooled : ndarray
        Positions whose own rows could not give a matrix; they have the pooled one.
    floored : ndarray
        Positions whose smallest eigenvalues were raised.
    """

    matrices: FloatArray
    kind: str
    pooled: NDArray[np.intp]
    floored: NDArray[np.intp]


def class_covariances(
    scatter: Scatter, covariance_type: str, rule: str | float
) -> ClassCovariances:
    """Matrices of every class under one rule.

    Parameters
    ----------
    scatter : Scatter
        One matrix for each class.
    covariance_type : {"full", "tied", "diag"}
        "tied" gives one matrix for all classes.
    rule : {"auto", "empirical", "oas", "ledoit_wolf"} or float in [0, 1]
        "auto" is "empirical" where all matrices are well conditioned, else "oas";
        a float a is (1 - a) S + a diag(S).

    Raises
    ------
    DegenerateDataError
        If there are not more rows than classes, or no feature varies in any class.
    """
    diagonal = covariance_type == "diag"
    groups = scatter.pooled() if covariance_type == "tied" else scatter
    chosen = groups.automatic_rule(diagonal) if rule == "auto" else rule
    kind = chosen if isinstance(chosen, str) else f"shrinkage {chosen:g}"
    return invertible(
        groups.covariances(chosen),
        lambda: scatter.pooled().covariances(chosen)[0],
        kind,
        diagonal=diagonal,
    )


def invertible(
    matrices: FloatArray, pooled: Callable[[], FloatArray], kind: str, *, diagonal: bool
) -> ClassCovariances:
    """Repair matrices that cannot be inverted, and say which.

    A matrix of zeros (one row, or all rows equal) is replaced by the pooled one;
    then eigenvalues are raised to at least 1e-9 of the largest.
    """
    lost = np.flatnonzero(~(np.trace(matrices, axis1=1, axis2=2) > 0))
    if len(lost):
        matrices = matrices.copy()
        matrices[lost] = pooled()
    if not (np.trace(matrices, axis1=1, axis2=2) > 0).all():
        raise DegenerateDataError(
            "no feature varies within any class, so there is no covariance: give "
            'rows that differ, or use covariance_type="identity".'
        )
    if diagonal:
        matrices = matrices * np.eye(matrices.shape[1])
    floored = []
    repaired = np.empty_like(matrices)
    for m, matrix in enumerate(matrices):
        largest = float(np.linalg.eigvalsh(matrix)[-1])
        result = floor_eigenvalues(matrix, _EIGENVALUE_FLOOR * largest)
        repaired[m] = result.covariance
        if result.n_clipped:
            floored.append(m)
    return ClassCovariances(repaired, kind, lost, np.array(floored, dtype=np.intp))
