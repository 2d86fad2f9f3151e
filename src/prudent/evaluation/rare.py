"""A classifier that learns the classes it has rows of."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import _safe_indexing
from sklearn.utils.metaestimators import available_if

# Rows of a class that a training part must have for it to be learned.
FEWEST_TO_LEARN = 2


def _inner_has(method: str) -> Any:
    return available_if(
        lambda wrapper: hasattr(
            getattr(wrapper, "estimator_", wrapper.estimator), method
        )
    )


class FrequentClasses(ClassifierMixin, BaseEstimator):
    """Leaves out classes of fewer than two rows, which few classifiers can learn.

    Such a class is missing in `classes_`, so a wrapper around this one knows that
    its rows will be missed and counts them so.

    Parameters
    ----------
    estimator : classifier
        What learns the other classes.

    Attributes
    ----------
    classes_ : ndarray of shape (n_frequent_classes,)
        Labels that were learned.
    estimator_ : classifier
        Fitted to their rows.
    """

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Fit to the rows of all classes that have two rows."""
        labels = np.asarray(y)
        classes, codes, counts = np.unique(
            labels, return_inverse=True, return_counts=True
        )
        kept = np.flatnonzero((counts >= FEWEST_TO_LEARN)[codes])
        if len(kept) == 0:
            raise ValueError("no class has 2 rows, so none can be learned.")
        self.estimator_ = clone(self.estimator).fit(
            _safe_indexing(X, kept), labels[kept]
        )
        self.classes_ = classes[counts >= FEWEST_TO_LEARN]
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Label of each row, among those learned."""
        return np.asarray(self.estimator_.predict(X))

    @_inner_has("predict_proba")
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probabilities of the classes learned."""
        return np.asarray(self.estimator_.predict_proba(X))

    @_inner_has("decision_function")
    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Decision values of the classes learned."""
        return np.asarray(self.estimator_.decision_function(X))
