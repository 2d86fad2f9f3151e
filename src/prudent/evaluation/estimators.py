"""Estimators of the comparison: shrunk covariance, frequent classes, rejectors."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.metaestimators import available_if

from prudent.core.guarantee import Guarantee
from prudent.core.validation import shown
from prudent.estimator_tools import check_rows, check_training, model_name


class ShrunkTowardsIdentity(BaseEstimator):
    """Covariance of standardised rows, mixed with the identity.

    (1 - `shrinkage`) S + `shrinkage` I is never singular, whatever the class: two rows,
    equal rows, more columns than rows. For `covariance_estimator=` of scikit-learn.
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
        self.classes_ = classes[counts >= FEWEST_TO_LEARN]
        rows, estimator = _safe_indexing(X, kept), clone(self.estimator)
        if len(self.classes_) > 1:
            self.estimator_ = estimator.fit(rows, labels[kept])
            return self
        alone = f"class {shown(self.classes_[0])} alone has 2 rows to learn from"
        try:
            self.estimator_ = estimator.fit(rows, labels[kept])
        except ValueError as error:  # so classifiers refuse a single class
            raise ValueError(f"{alone}: {error}") from error
        # Some learn it in silence, and tell of two classes later.
        proba = getattr(self.estimator_, "predict_proba", None)
        if proba is not None and np.shape(proba(rows[:1]))[1] != 1:
            raise ValueError(f"{alone}, of which {model_name(estimator)} makes two.")
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


# A rate of 0.05 needs 19 calibration rows; take up to half of a class for them.
CALIBRATION_ROWS = 20
# Of a larger class so many rows are drawn: a density learned from more is hardly
# better, and would take most of the time of a comparison.
MOST_OF_CLASS = 1000


class ClasswiseRejector(ClassifierMixin, BaseEstimator):
    """A `LowDensityRejector` for each class.

    The set of a row holds the classes whose rejector does not raise an alarm; it
    is empty for a row like none of them. The predicted class has the largest
    p-value. Of a class of more than 1000 rows a plain draw of so many is learned from.
    """

    def __init__(
        self, *, false_alarm_rate: float = 0.05, random_state: Any = None
    ) -> None:
        self.false_alarm_rate = false_alarm_rate
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Fit a rejector on the rows of each class."""
        X, y, _ = check_training(self, X, y)
        self.classes_ = np.unique(y)
        random = check_random_state(self.random_state)
        self.rejectors_ = []
        for label in self.classes_:
            rows = np.flatnonzero(y == label)
            if len(rows) > MOST_OF_CLASS:
                rows = np.sort(random.permutation(rows)[:MOST_OF_CLASS])
            self.rejectors_.append(self._fit_class(X[rows]))
        return self

    def _fit_class(self, X: NDArray[Any]) -> Any:
        from prudent.adversarial import LowDensityRejector

        share = min(0.5, max(0.3, CALIBRATION_ROWS / len(X)))
        return LowDensityRejector(
            false_alarm_rate=self.false_alarm_rate,
            calibration_size=share,
            random_state=self.random_state,
        ).fit(X)

    @property
    def _promising_parts(self) -> tuple[Any, ...]:
        """The detectors of which `guarantees_` are."""
        return tuple(self.rejectors_)

    @property
    def guarantees_(self) -> tuple[Guarantee, ...]:
        """False-alarm promises of the rejectors, each with its class as scope."""
        return tuple(
            replace(promise, scope=label)
            for label, rejector in zip(self.classes_, self.rejectors_, strict=True)
            for promise in rejector.guarantees_
        )

    def p_values(self, X: Any) -> NDArray[np.float64]:
        """p-value of each class, shape (n_samples, n_classes), in (0, 1]."""
        X = check_rows(self, X)
        return np.column_stack([rejector.p_value(X) for rejector in self.rejectors_])

    def predict(self, X: Any) -> NDArray[Any]:
        """Class of the largest p-value, the first one on ties."""
        return self.classes_[self.p_values(X).argmax(axis=1)]

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """p-values, which rank the classes; for two classes their difference."""
        p_values = self.p_values(X)
        if len(self.classes_) == 2:
            return p_values[:, 1] - p_values[:, 0]
        return p_values

    def predict_set(self, X: Any) -> NDArray[np.bool_]:
        """Classes whose p-value exceeds the false-alarm rate; may be none."""
        return self.p_values(X) > self.false_alarm_rate
