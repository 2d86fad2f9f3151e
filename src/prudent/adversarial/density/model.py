"""A fitted detector: rows in; scores, decisions and p-values out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from prudent.adversarial.density.cut import p_values
from prudent.adversarial.density.kernel_density import (
    DecorrelatedKernels,
    NormalKernels,
)
from prudent.adversarial.density.reference import GivenReference, Reference
from prudent.adversarial.density.standardisation import Standardisation
from prudent.core.coins import keyed_uniform
from prudent.core.types import BoolArray, FloatArray

_OUTSIDE = -1e5  # score of a row outside the reference, less its distance
# Digits of a score, fewer than its rounding errors leave: a row scores the same in
# every batch, alone or among others, so that equal rows are tied.
_DECIMALS, _DIGITS = 5, 9


@dataclass(frozen=True)
class Density:
    """Estimate of a log density from a classifier of rows against artificial rows.

    A classifier and kernel densities err in different places, so their mean errs less.

    Attributes
    ----------
    standardisation : Standardisation
    reference : Reference, GivenReference or None
        Known density of the artificial rows; None when every column is constant.
    log_odds : callable or None
        Log odds of a standardised row against an artificial one.
    kernels : tuple of kernel densities
        Further estimates, each of the weight `kernel_share`.
    kernel_share : float
    """

    standardisation: Standardisation
    reference: Reference | GivenReference | None
    log_odds: Callable[[FloatArray], FloatArray] | None
    kernels: tuple[NormalKernels | DecorrelatedKernels, ...] = ()
    kernel_share: float = 0.0

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


@dataclass(frozen=True, slots=True)
class Cut:
    """Reject scores strictly below the threshold.

    Attributes
    ----------
    rank : int
        The threshold is the rank-th smallest calibration score; 0: no cut.
    threshold : float
    """

    rank: int
    threshold: float

    def decision(self, scores: FloatArray, X: FloatArray) -> FloatArray:
        """Score minus threshold."""
        return scores - self.threshold


@dataclass(frozen=True, slots=True)
class SoftRule:
    """Reject with probability min(1, t r), r a falling function of the score.

    Attributes
    ----------
    scores : ndarray of shape (n,)
        Rising scores of the rows the game was played on.
    rejection : ndarray of shape (n,)
        r of each.
    scale : float
        t.
    key : bytes
        Of the coins: the same row gets the same answer.
    """

    scores: FloatArray
    rejection: FloatArray
    scale: float
    key: bytes

    def rejection_at(self, scores: FloatArray) -> FloatArray:
        """Probability at the largest known score not above; at the lowest below."""
        at = np.searchsorted(self.scores, scores, side="right") - 1
        known = self.rejection[np.maximum(at, 0)]
        return np.minimum(1.0, self.scale * known)

    def decision(self, scores: FloatArray, X: FloatArray) -> FloatArray:
        """Coin minus rejection probability."""
        coins = keyed_uniform((row.tobytes() for row in X), self.key)
        return coins - self.rejection_at(scores)


@dataclass(frozen=True)
class Model:
    """Density, the scores it was held to, and the rule they led to.

    Attributes
    ----------
    density : Density
    calibration_scores : ndarray of shape (m,)
        Rising scores of the held-out rows.
    rule : Cut or SoftRule
    """

    density: Density
    calibration_scores: FloatArray
    rule: Cut | SoftRule

    def decision(self, X: FloatArray) -> FloatArray:
        """Negative where a row is rejected."""
        return self.rule.decision(self.density.score(X), X)

    def p_values(self, X: FloatArray) -> FloatArray:
        """Conformal p-value of each row."""
        return p_values(self.calibration_scores, self.density.score(X))


def _rounded(scores: FloatArray) -> FloatArray:
    """Scores to 5 decimals, or to 9 significant digits where these are fewer."""
    digits = np.floor(np.log10(np.maximum(np.abs(scores), 1.0)))
    # A power of ten below 1 is not exact: numbers are scaled by whole ones only.
    finer = 10.0 ** np.maximum(_DECIMALS - np.maximum(digits - 3, 0), 0)
    coarser = 10.0 ** np.maximum(digits - (_DIGITS - 1), 0)
    return np.rint(scores / coarser * finer) / finer * coarser
