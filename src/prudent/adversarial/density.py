"""Log density of one class, learnt by telling its rows from artificial ones.

A classifier and kernel densities err in different places, so their mean errs less.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

from prudent.adversarial.kernel_density import DecorrelatedKernels, NormalKernels
from prudent.adversarial.reference import Reference, ReferenceName, make_reference
from prudent.adversarial.standardisation import Standardisation

__all__ = ["DensityModel", "learn_density", "log_odds"]

FloatArray = NDArray[np.float64]

_OUTSIDE = -1e5  # score of a row outside the reference, less its distance
_CLIP = 1e-6  # probabilities nearer to 0 or 1 than this are not believed
_MAX_CENTRES = 1000
_MOST_ROWS_FOR_KERNELS = 10_000  # more teach the classifier what no kernel says
# Digits of a score, fewer than its rounding errors leave: a row scores the same in
# every batch, alone or among others, so that equal rows are tied.
_DECIMALS, _DIGITS = 5, 9


@dataclass(frozen=True)
class DensityModel:
    """Classifier of rows (1) against artificial rows (0) of a known density.

    `classifier` and `reference` are None when every column is constant. `kernels`
    are further estimates of the density; each has the weight `kernel_share`.
    """

    standardisation: Standardisation
    reference: Reference | None
    classifier: Any
    kernels: tuple[NormalKernels | DecorrelatedKernels, ...] = ()
    kernel_share: float = 0.0

    def score(self, X: FloatArray) -> FloatArray:
        """Estimate log p up to a constant: log odds plus log u.

        With kernels, the weighted mean of that and of their log densities.
        Rows outside the reference's support score below all inside it, graded by
        their distance from the mean; rows that leave a constant column lower still.
        """
        penalty = self.standardisation.departure(X)
        if self.reference is None:
            return _rounded(-penalty)
        Z = self.standardisation.apply(X)
        log_u = self.reference.log_density(Z)
        inside = np.isfinite(log_u)
        score = _OUTSIDE - np.sqrt(np.einsum("ij,ij->i", Z, Z))
        if inside.any():
            Z, log_u = Z[inside], log_u[inside]
            estimate = log_odds(self.classifier, Z) + log_u
            estimate *= 1 - len(self.kernels) * self.kernel_share
            for kernels in self.kernels:
                # A row inside must not score below those outside.
                log_density = np.maximum(kernels.log_density(Z), _OUTSIDE)
                estimate += self.kernel_share * log_density
            score[inside] = estimate
        return _rounded(score - penalty)

    def covers(self, X: FloatArray) -> NDArray[np.bool_]:
        """Whether each row lies in the reference's support."""
        assert self.reference is not None
        return np.isfinite(self.reference.log_density(self.standardisation.apply(X)))


def learn_density(
    X: FloatArray,
    standardisation: Standardisation,
    classifier: Any,
    reference: ReferenceName,
    rng: np.random.RandomState,
    *,
    with_kernels: bool,
) -> DensityModel:
    """Fit `classifier` to the rows and as many artificial ones.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Rows of the class.
    standardisation : Standardisation
        Of the class.
    classifier : classifier
        Fitted in place, on standardised rows.
    reference : str
        Name of the artificial density.
    rng : RandomState
        Draws the reference and its sample.
    with_kernels : bool
        Add kernel densities to the estimate, up to 10 000 rows.
    """
    Z = standardisation.apply(X)
    if not Z.shape[1]:
        return DensityModel(standardisation, None, None)
    density = make_reference(reference, Z, rng)
    artificial = density.sample(len(Z), rng)
    labels = np.repeat([1, 0], len(Z))
    classifier.fit(np.concatenate([Z, artificial]), labels)
    if not with_kernels or len(Z) > _MOST_ROWS_FOR_KERNELS:
        return DensityModel(standardisation, density, classifier)
    centres = Z[rng.permutation(len(Z))[:_MAX_CENTRES]]
    # Round kernels are better for independent columns, shaped ones for correlated
    # columns; their mean is better than either on most real sets.
    kernels = (
        NormalKernels.of_likeliest_width(centres),
        DecorrelatedKernels.of_likeliest_width(centres, Z.T @ Z / len(Z)),
    )
    # Every estimate counts by the number of rows it learns from.
    share = len(centres) / (len(Z) + len(kernels) * len(centres))
    return DensityModel(standardisation, density, classifier, kernels, share)


def log_odds(classifier: Any, X: FloatArray) -> FloatArray:
    """Log odds of class 1; the margin of a classifier that has no more."""
    if hasattr(classifier, "predict_proba"):
        probability = classifier.predict_proba(X)[:, 1]
        odds: FloatArray = logit(np.clip(probability, _CLIP, 1 - _CLIP))
        return odds
    return np.asarray(classifier.decision_function(X), dtype=np.float64)


def _rounded(scores: FloatArray) -> FloatArray:
    """Scores to 5 decimals, or to 9 significant digits where these are fewer."""
    digits = np.floor(np.log10(np.maximum(np.abs(scores), 1.0)))
    # A power of ten below 1 is not exact: numbers are scaled by whole ones only.
    finer = 10.0 ** np.maximum(_DECIMALS - np.maximum(digits - 3, 0), 0)
    coarser = 10.0 ** np.maximum(digits - (_DIGITS - 1), 0)
    return np.rint(scores / coarser * finer) / finer * coarser
