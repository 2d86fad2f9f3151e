"""What the baselines need beyond scikit-learn."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator


class ShrunkTowardsIdentity(BaseEstimator):
    """Covariance of standardised rows, mixed with the identity.

    Never singular, whatever the class: two rows, equal rows, more columns than
    rows. For `covariance_estimator=` of scikit-learn's discriminants.

    Parameters
    ----------
    shrinkage : float, default=0.1
        Share of the identity, in (0, 1].

    Attributes
    ----------
    covariance_ : ndarray of shape (n_features, n_features)
        (1 - `shrinkage`) S + `shrinkage` I.
    """

    def __init__(self, shrinkage: float = 0.1) -> None:
        self.shrinkage = shrinkage

    def fit(self, X: Any, y: Any = None) -> Self:
        """Estimate from at least one row."""
        centred = X - X.mean(axis=0)
        covariance = centred.T @ centred / max(len(X) - 1, 1)
        identity = np.eye(X.shape[1])
        self.covariance_ = (1 - self.shrinkage) * covariance + self.shrinkage * identity
        return self
