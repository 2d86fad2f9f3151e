"""An estimate of a log density: rows in, scores out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from prudent.adversarial.density.kernel_density import NormalKernels
from prudent.adversarial.density.reference import (
    GivenReference,
    Reference,
    Standardisation,
)
from prudent.core.types import BoolArray, FloatArray

_OUTSIDE = -1e5  # score of a row outside the reference, less its distance
# Digits of a score, fewer than its rounding errors leave: a row scores the same in
# every batch, alone or among others, so that equal rows are tied.
_DECIMALS, _DIGITS = 5, 9


@dataclass(frozen=True)
class Density:
    """Estimate of a log density from a classifier of rows against artificial rows.

    A classifier and kernel densities err in different places, so their mean errs less.
    """

    standardisation: Standardisation
    #: Known density of the artificial rows; None when every column is constant.
    reference: Reference | GivenReference | None
    #: Log odds of a standardised row against an artificial one.
    log_odds: Callable[[FloatArray], FloatArray] | None
    kernels: tuple[NormalKernels, ...] = ()
    kernel_share: float = 0.0  # weight of each of them in the mean

    def score(self, X: FloatArray) -> FloatArray:
        """Estimate log p up to a constant: log odds plus log u.

        With kernels, the weighted mean of that and of their log densities.
        Rows outside the reference's support score below all inside it, graded by
        their distance from the mean; rows that leave a constant column lower still.
        """
        penalty = self.standardisation.departure(X)
        if self.reference is None or self.log_odds is None:
            return _rounded(-penalty)
        Z = self.standardisation.apply(X)
        log_u = self._log_reference(X, Z)
        inside = np.isfinite(log_u)
        score = _OUTSIDE - np.sqrt(np.einsum("ij,ij->i", Z, Z))
        if inside.any():
            Z, log_u = Z[inside], log_u[inside]
            estimate = self.log_odds(Z) + log_u
            estimate *= 1 - len(self.kernels) * self.kernel_share
            for kernels in self.kernels:
                # A row inside must not score below those outside.
                log_density = np.maximum(kernels.log_density(Z), _OUTSIDE)
                estimate += self.kernel_share * log_density
            score[inside] = estimate
        return _rounded(score - penalty)

    def covers(self, X: FloatArray) -> BoolArray:
        """Whether each row lies in the reference's support."""
        return np.isfinite(self._log_reference(X, self.standardisation.apply(X)))

    def _log_reference(self, X: FloatArray, Z: FloatArray) -> FloatArray:
        if isinstance(self.reference, GivenReference):
            return self.reference.log_density_of_rows(X)
        assert self.reference is not None
        return self.reference.log_density(Z)


def _rounded(scores: FloatArray) -> FloatArray:
    """Scores to 5 decimals, or to 9 significant digits where these are fewer."""
    digits = np.floor(np.log10(np.maximum(np.abs(scores), 1.0)))
    # A power of ten below 1 is not exact: numbers are scaled by whole ones only.
    finer = 10.0 ** np.maximum(_DECIMALS - np.maximum(digits - 3, 0), 0)
    coarser = 10.0 ** np.maximum(digits - (_DIGITS - 1), 0)
    return np.rint(scores / coarser * finer) / finer * coarser
