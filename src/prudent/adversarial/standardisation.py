"""Columns brought to mean 0 and standard deviation 1; constant ones set apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

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
    def from_rows(cls, X: FloatArray) -> Self:
        """Measure the columns."""
        varies = X.max(axis=0) > X.min(axis=0)
        mean = np.where(varies, X.mean(axis=0), X[0])
        deviation = np.where(varies, X.std(axis=0), 1.0)
        return cls(varies, mean, deviation)

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
