"""Tables and stand-in methods of the comparison's tests."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_iris

from prudent.comparison import protocol
from prudent.evaluation.methods import Method


class Majority(ClassifierMixin, BaseEstimator):
    """Predicts one class; fails, warns or sleeps when told to."""

    def __init__(self, *, trouble=None):
        self.trouble = trouble

    def fit(self, X, y):
        if self.trouble is not None:
            self.trouble(X, y)
        self.classes_, counts = np.unique(y, return_counts=True)
        self.answer_ = self.classes_[counts.argmax()]
        return self

    def predict(self, X):
        return np.full(len(X), self.answer_)


@pytest.fixture(scope="session")
def iris():
    return load_iris(return_X_y=True)


@pytest.fixture
def stand_in(monkeypatch):
    """Make `compare` run the given estimators under names of their own."""

    def use(**estimators):
        chosen = tuple(
            Method(name, lambda _, estimator=estimator: estimator)
            for name, estimator in estimators.items()
        )
        monkeypatch.setattr(protocol, "choose", lambda methods, baselines: chosen)

    return use
