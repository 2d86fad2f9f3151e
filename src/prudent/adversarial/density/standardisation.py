"""Columns brought to mean 0 and standard deviation 1; constant ones set apart."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from prudent.core.types import BoolArray, FloatArray

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
    exponent : ndarray of int, shape (d,)
        Columns are divided by 2 ** exponent first, which is exact and keeps the
        squares of columns of any scale from over- and underflowing.
    mean, deviation : ndarray of shape (d,)
        Of the divided columns. Deviation is 1 for constant columns.
    """

    varies: BoolArray
    exponent: NDArray[np.intc]
    mean: FloatArray
    deviation: FloatArray

    @classmethod
    def from_rows(cls, X: FloatArray) -> Self:
        """Measure the columns of rows."""
        varies = X.max(axis=0) > X.min(axis=0)
        exponent = np.frexp(np.abs(X).max(axis=0))[1]
        U = np.ldexp(X, -exponent)
        return cls(
            varies=varies,
            exponent=exponent,
            mean=np.where(varies, U.mean(axis=0), U[0]),
            deviation=np.where(varies, U.std(axis=0), 1.0),
        )

    def log_volume(self) -> float:
        """Log volume of the unit cube of standardised rows, in the units of rows."""
        deviation, exponent = self.deviation[self.varies], self.exponent[self.varies]
        return float(np.log(deviation).sum() + math.log(2) * exponent.sum())

    def apply(self, X: FloatArray) -> FloatArray:
        """Standardised values of the varying columns."""
        kept = self.varies
        with np.errstate(over="ignore"):
            U = np.ldexp(X[:, kept], -self.exponent[kept])
            Z = (U - self.mean[kept]) / self.deviation[kept]
        return np.clip(Z, -_FARTHEST, _FARTHEST)

    def departure(self, X: FloatArray) -> FloatArray:
        """Penalty of each row for differing in a constant column; 0 if it does not.

        1e6 (1 + relative difference): below every ordinary score, yet finite, since
        metrics refuse infinite scores.
        """
        constant = ~self.varies
        value = self.mean[constant]
        with np.errstate(over="ignore"):
            U = np.ldexp(X[:, constant], -self.exponent[constant])
            difference = np.abs(U - value) / np.where(value == 0, 1.0, np.abs(value))
        difference = np.minimum(difference, 1e12)
        penalty = _DEPARTURE * (1 + difference)
        return np.where(difference > _ROUNDING, penalty, 0.0).sum(axis=1)
