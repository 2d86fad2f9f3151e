"""Promises about a model that was there before assume that the rows are new to it."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import IsolationForest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from prudent import (
    Assumption,
    ConformalClassifier,
    ConformalDetector,
    LowDensityRejector,
    NeymanPearsonClassifier,
    SelectiveClassifier,
    certify,
)


def two_classes(seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=200)
    return rng.normal(size=(200, 2)) + 2.0 * y[:, None], y


X, Y = two_classes(0)
GIVEN = FrozenEstimator(LogisticRegression().fit(X, Y))
HOLDERS = {
    "coverage": ConformalClassifier(GIVEN),
    "coverage of classes": ConformalClassifier(GIVEN, condition="class"),
    "alarms": ConformalDetector(
        FrozenEstimator(IsolationForest(random_state=0).fit(X))
    ),
    "selective error": SelectiveClassifier(GIVEN, error_rate=0.3),
    "class error": NeymanPearsonClassifier(GIVEN, max_class_error={1: 0.3}),
    "density": LowDensityRejector(estimator=GIVEN, random_state=0),
}


@pytest.mark.parametrize("estimator", HOLDERS.values(), ids=HOLDERS)
def test_rows_are_assumed_to_be_unseen(estimator):
    promises = clone(estimator).fit(*two_classes(1)).guarantees_
    assert promises
    assert all(Assumption.UNSEEN in promise.assumptions for promise in promises)
    assert "not used to fit, choose or tune the model" in str(promises[0])


def test_rows_of_a_certificate_are_assumed_to_be_unseen():
    for promise in certify(GIVEN, *two_classes(1)):
        assert Assumption.UNSEEN in promise.assumptions
