"""Classes that a training part has too few rows of."""

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

from prudent import NeymanPearsonClassifier
from prudent.evaluation.estimators import FrequentClasses

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 2))
#: One row of class 0 can be learned by nobody.
Y = np.array([0] + [1] * 39)


@pytest.mark.parametrize(
    "estimator", [LogisticRegression(), HistGradientBoostingClassifier()]
)
def test_a_class_that_is_left_alone_is_named_whatever_the_estimator_does(estimator):
    with pytest.raises(ValueError, match="class 1 alone has 2 rows to learn from"):
        FrequentClasses(estimator).fit(X, Y)


def test_what_can_learn_one_class_does():
    model = FrequentClasses(DummyClassifier(strategy="prior")).fit(X, Y)
    assert model.classes_.tolist() == [1]
    assert model.predict_proba(X).shape == (40, 1)


def test_limits_of_the_only_class_learned_are_refused_with_the_reason():
    rows, labels = RNG.normal(size=(200, 2)), np.array([0] * 2 + [1] * 198)
    model = NeymanPearsonClassifier(
        FrequentClasses(DummyClassifier(strategy="prior")),
        max_class_error={1: 0.4},
        random_state=4,
    )
    with pytest.raises(ValueError, match="has learned class 1 alone"):
        model.fit(rows, labels)
