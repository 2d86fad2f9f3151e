"""Log density of one class, learnt by telling its rows from artificial ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

from prudent.adversarial.reference import Reference, ReferenceName, make_reference
from prudent.adversarial.standardisation import Standardisation

__all__ = ["DensityModel", "learn_density", "log_odds"]

FloatArray = NDArray[np.float64]

_OUTSIDE = -1e5  # score of a row outside the reference, less its distance
_CLIP = 1e-6  # probabilities nearer to 0 or 1 than this are not believed
_DECIMALS = 6  # of a score, so that a row scores the same in every batch


@dataclass(frozen=True)
class DensityModel:
    """Classifier of rows (1) against artificial rows (0) of a known density.

    `classifier` and `reference` are None when every column is constant.
    """

    standardisation: Standardisation
    reference: Reference | None
    classifier: Any

    def score(self, X: FloatArray) -> FloatArray:
        """Estimate log p up to a constant: log odds plus log u.

        Rows outside the reference's support score below all inside it, graded by
        their distance from the mean; rows that leave a constant column lower still.
        """
        penalty = self.standardisation.departure(X)
        if self.reference is None:
            return -penalty
        Z = self.standardisation.apply(X)
        log_u = self.reference.log_density(Z)
        inside = np.isfinite(log_u)
        score = _OUTSIDE - np.sqrt(np.einsum("ij,ij->i", Z, Z))
        if inside.any():
            odds = log_odds(self.classifier, Z[inside])
            score[inside] = odds + log_u[inside]
        rounded: FloatArray = np.round(score - penalty, _DECIMALS)
        return rounded

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
    """
    Z = standardisation.apply(X)
    if not Z.shape[1]:
        return DensityModel(standardisation, None, None)
    density = make_reference(reference, Z, rng)
    artificial = density.sample(len(Z), rng)
    labels = np.repeat([1, 0], len(Z))
    classifier.fit(np.concatenate([Z, artificial]), labels)
    return DensityModel(standardisation, density, classifier)


def log_odds(classifier: Any, X: FloatArray) -> FloatArray:
    """Log odds of class 1; the margin of a classifier that has no more."""
    if hasattr(classifier, "predict_proba"):
        probability = classifier.predict_proba(X)[:, 1]
        odds: FloatArray = logit(np.clip(probability, _CLIP, 1 - _CLIP))
        return odds
    return np.asarray(classifier.decision_function(X), dtype=np.float64)
