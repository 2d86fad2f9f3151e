"""Classifiers of rows against artificial rows: the default, and log odds of any."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state

from prudent.core.types import FloatArray
from prudent.estimator_tools import one_thread

_MAX_KERNEL_ROWS = 4000  # of each class
_MAX_COMPONENTS = 200
_BOOSTING_SHARE = 0.25  # of the mean
_CLIP = 1e-6  # probabilities nearer to 0 or 1 than this are not believed
# Below this many rows threads gain nothing, and on a busy machine they wait for one
# another: a fit of 1 s took 19 s.
_THREADED_ROWS = 10_000


@dataclass(frozen=True)
class LogOdds:
    """Log odds of class 1 by a fitted classifier, as a plain function of rows."""

    classifier: Any

    def __call__(self, X: FloatArray) -> FloatArray:
        """Log odds of class 1 of each row (n, d), (n,), from clipped probabilities.

        A classifier without probabilities gives its decision values.
        """
        if hasattr(self.classifier, "predict_proba"):
            probability = self.classifier.predict_proba(X)[:, 1]
            odds: FloatArray = logit(np.clip(probability, _CLIP, 1 - _CLIP))
            return odds
        return np.asarray(self.classifier.decision_function(X), dtype=np.float64)


class MeanLogitClassifier(ClassifierMixin, BaseEstimator):
    """Weighted mean logit of gradient boosting and a kernel logistic regression.

    Boosting follows axis-parallel edges and scales to any number of rows; the
    kernel model is smooth where the boundary is. Both have a proper loss. One part
    boosting to three of the kernel model follows known level sets best; on real
    sets all weights do alike.
    """

    def __init__(self, *, random_state: Any = None) -> None:
        self.random_state = random_state

    def fit(self, X: FloatArray, y: NDArray[Any]) -> Self:
        """Fit both models; labels 0 and 1 in equal numbers."""
        rng = check_random_state(self.random_state)
        self.classes_ = np.array([0, 1])
        boosting = HistGradientBoostingClassifier(
            max_iter=40,
            learning_rate=0.2,
            max_leaf_nodes=8,
            min_samples_leaf=20,
            l2_regularization=1.0,
            early_stopping=False,
            random_state=rng.randint(2**31 - 1),
        )
        chosen = np.concatenate(
            [rng.permutation(np.flatnonzero(y == c))[:_MAX_KERNEL_ROWS] for c in (0, 1)]
        )
        kernel_model = make_pipeline(
            StandardScaler(),
            Nystroem(
                gamma=2.0 / X.shape[1],
                n_components=min(_MAX_COMPONENTS, len(X) // 2),
                random_state=rng.randint(2**31 - 1),
            ),
            LogisticRegression(C=30.0, max_iter=2000),
        )
        with _threads_worth_having(len(X)):
            kernel_model.fit(X[chosen], y[chosen])
            self.models_ = (boosting.fit(X, y), kernel_model)
        return self

    def decision_function(self, X: FloatArray) -> FloatArray:
        """Weighted mean of the clipped log odds of class 1."""
        with _threads_worth_having(len(X)):
            boosting, kernel_model = (LogOdds(model)(X) for model in self.models_)
        return _BOOSTING_SHARE * boosting + (1 - _BOOSTING_SHARE) * kernel_model

    def predict(self, X: FloatArray) -> NDArray[np.int_]:
        """Class 1 where the mean log odds are positive."""
        return (self.decision_function(X) > 0).astype(int)


def _threads_worth_having(n_rows: int) -> AbstractContextManager[Any]:
    """One thread for few rows, else as many as are allowed."""
    return one_thread() if n_rows < _THREADED_ROWS else nullcontext()
