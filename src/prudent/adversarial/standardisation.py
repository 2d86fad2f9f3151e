"""Columns brought to mean 0 and standard deviation 1; constant ones set apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from prudent.core.moments import ClassMoments

__all__ = ["Standardisation"]

FloatArray = NDArray[np.float64]

_ROUNDING = 1e-12  # relative; a constant column's rows differ by no more
_FARTHEST = 1e100  # standard deviations; squares stay finite
_DEPARTURE = 1e6  # lost by a score for leaving a constant column: below all others


@dataclass(frozen=True, slots=True)
class Standardisation:
    """Affine map of the varying columns, and the values of the constant ones.

    Attributes
    ----------
    varies : ndarray of bool, shape (d,)
        Columns that take more than one value in the rows it was made from.
    mean, deviation : ndarray of shape (d,)
        Deviation is 1 for constant columns, the mean their value.
    """

    varies: NDArray[np.bool_]
    mean: FloatArray
    deviation: FloatArray

    @classmethod
    def from_rows(cls, X: FloatArray, moments: ClassMoments | None = None) -> Self:
        """Measure the columns of rows.

        Parameters
        ----------
        X : ndarray of shape (n, d)
            The rows.
        moments : ClassMoments, default=None
            Of one class, of which X is a sample: mean and deviation are the
            class's. By default those of X.
        """
        varies = X.max(axis=0) > X.min(axis=0)
        if moments is None:
            mean, deviation = X.mean(axis=0), X.std(axis=0)
        else:
            mean = moments.mean[0]
            deviation = np.sqrt(np.diagonal(moments.covariance()[0]))
        return cls(
            varies, np.where(varies, mean, X[0]), np.where(varies, deviation, 1.0)
        )

    def apply(self, X: FloatArray) -> FloatArray:
        """Standardised values of the varying columns."""
        kept = self.varies
        with np.errstate(over="ignore"):
            Z = (X[:, kept] - self.mean[kept]) / self.deviation[kept]
        return np.clip(Z, -_FARTHEST, _FARTHEST)

    def departure(self, X: FloatArray) -> FloatArray:
        """Penalty of each row for differing in a constant column; 0 if it does not.

        1e6 (1 + relative difference): below every ordinary score, yet finite, since
        metrics refuse infinite scores.
        """
        value = self.mean[~self.varies]
        scale = np.where(value == 0, 1.0, np.abs(value))
        difference = np.abs(X[:, ~self.varies] - value) / scale
        difference = np.minimum(difference, 1e12)
        penalty = _DEPARTURE * (1 + difference)
        return np.where(difference > _ROUNDING, penalty, 0.0).sum(axis=1)
