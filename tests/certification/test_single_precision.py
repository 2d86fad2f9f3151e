"""Models that compute in single precision answer equal rows alike in every batch."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from prudent import (
    ConformalClassifier,
    ConformalDetector,
    NeymanPearsonClassifier,
    SelectiveClassifier,
)
from prudent.exceptions import PrudentWarning
from prudent.rules.scores import NUMBERS, PROBABILITIES, rounding_of

BATCHES = (1, 2, 3)
# Of three distinct rows; the last one is the one to leave alone.
CHANCE_OF_ONE = np.array([0.01, 0.995, 0.3])


def three_distinct_rows(n_columns, seed, n_rows, chance=CHANCE_OF_ONE):
    rng = np.random.default_rng(seed)
    distinct = rng.normal(size=(3, n_columns)).astype(np.float32)
    rng = np.random.default_rng([seed, n_rows])
    kind = rng.choice(3, n_rows, p=[0.4, 0.3, 0.3])
    return distinct[kind], (rng.random(n_rows) < chance[kind]).astype(int)


def in_batches(answer, X, size):
    parts = [answer(X[start : start + size]) for start in range(0, len(X), size)]
    return np.concatenate(parts)


def logistic():
    return LogisticRegression(max_iter=300)


@pytest.mark.parametrize("scoring", ["max_probability", "margin", "own"])
@pytest.mark.parametrize(("n_columns", "seed"), [(17, 0), (29, 4)])
def test_answers_are_those_of_every_batch(n_columns, seed, scoring):
    if scoring == "own":

        def scoring(model, X):
            return model.predict_proba(X).max(axis=1)

    X, y = three_distinct_rows(n_columns, seed, 2000)
    model = SelectiveClassifier(logistic(), scoring=scoring, random_state=0).fit(X, y)
    X, y = three_distinct_rows(n_columns, seed, 600)
    wrong = model.estimator_.predict(X) != y
    together = model.answers(X)
    assert together.any()
    for size in BATCHES:
        answered = in_batches(model.answers, X, size)
        np.testing.assert_array_equal(answered, together)
        assert wrong[answered].mean() <= 0.05
    np.testing.assert_array_equal(model.answers(X.astype(np.float64)), together)


@pytest.mark.parametrize(("n_columns", "seed"), [(17, 0), (64, 1)])
def test_labels_are_those_of_every_batch(n_columns, seed):
    chance = np.array([0.01, 0.9, 0.3])
    X, y = three_distinct_rows(n_columns, seed, 2000, chance)
    model = NeymanPearsonClassifier(
        logistic(), max_class_error={1: 0.05}, random_state=0
    ).fit(X, y)
    X, y = three_distinct_rows(n_columns, seed, 600, chance)
    together = model.predict(X)
    for size in BATCHES:
        labels = in_batches(model.predict, X, size)
        np.testing.assert_array_equal(labels, together)
        assert (labels[y == 1] == 0).mean() <= 0.05
    np.testing.assert_array_equal(model.predict(X.astype(np.float64)), together)


@pytest.mark.parametrize(("n_columns", "seed"), [(17, 0), (29, 4)])
@pytest.mark.parametrize("nonconformity", ["posterior", "margin"])
def test_sets_are_those_of_every_batch(n_columns, seed, nonconformity):
    X, y = three_distinct_rows(n_columns, seed, 2000)
    model = ConformalClassifier(
        logistic(),
        method="split",
        nonconformity=nonconformity,
        level=0.05,
        random_state=0,
    ).fit(X, y)
    X, y = three_distinct_rows(n_columns, seed, 600)
    together = model.predict_set(X)
    for size in BATCHES:
        sets = in_batches(model.predict_set, X, size)
        np.testing.assert_array_equal(sets, together)
        assert sets[np.arange(len(y)), y].mean() >= 0.93
    np.testing.assert_array_equal(model.predict_set(X.astype(np.float64)), together)


class ByBatch(ClassifierMixin, BaseEstimator):
    """Column 0 is the probability of 1, in single precision; of few rows it is more."""

    classes_ = np.array([0, 1])

    def fit(self, X, y=None):
        self.fitted_ = True
        return self

    def predict_proba(self, X):
        one = np.asarray(X)[:, 0].astype(np.float32)
        if len(one) < 5:
            one = np.minimum(one + np.float32(1e-6), np.float32(1))
        return np.column_stack([1 - one, one])

    def predict(self, X):
        return (self.predict_proba(X)[:, 1] > 0.5).astype(int)

    def score_samples(self, X):
        return self.predict_proba(X)[:, 0]


def test_rows_that_reach_a_limit_together_reach_it_alone():
    rng = np.random.default_rng(0)
    p = rng.choice([0.1, 0.4, 0.8], 1000)
    y = (rng.random(1000) < p).astype(int)
    model = NeymanPearsonClassifier(
        FrozenEstimator(ByBatch().fit(p)), max_class_error={0: 0.2}
    ).fit(p[:, None], y)
    together = model.predict(p[:, None])
    assert len(np.unique(together)) == 2
    np.testing.assert_array_equal(in_batches(model.predict, p[:, None], 1), together)


def test_alarms_of_a_detector_are_those_of_every_batch():
    p = np.random.default_rng(0).choice([0.1, 0.4, 0.8], 1000)[:, None]
    model = ConformalDetector(
        FrozenEstimator(ByBatch().fit(p)), false_alarm_rate=0.4
    ).fit(p)
    together = model.p_value(p)
    np.testing.assert_array_equal(in_batches(model.p_value, p, 1), together)


def test_what_rounds_to_one_is_no_surer_than_what_lies_below():
    rng = np.random.default_rng(0)
    p = rng.choice([1.0, 1 - 2.0**-24], 1000)
    y = (rng.random(1000) < np.where(p < 1, 0.8, 1.0)).astype(int)
    frozen = FrozenEstimator(ByBatch().fit(p[:, None], y))
    # Rows of 1 alone could be answered, but rows below 1 may look like them.
    with pytest.warns(PrudentWarning, match="nothing is answered"):
        model = SelectiveClassifier(frozen, error_rate=0.05).fit(p[:, None], y)
    assert not in_batches(model.answers, p[:, None], 1).any()
    assert not model.answers(p[:, None]).any()


def test_the_type_of_the_values_tells_how_they_round():
    values = np.array([0.0, 0.3, 1.0])
    assert rounding_of(values) == NUMBERS
    assert rounding_of(values, probabilities=True) == PROBABILITIES
    single = rounding_of(values.astype(np.float32), probabilities=True)
    half = rounding_of(values.astype(np.float16))
    assert NUMBERS.tolerance < single.tolerance < half.tolerance
    # Log odds stand in for probabilities that are 1.
    assert single.raised(1 - 6e-8) == np.inf
    assert single.lowered(40.0) == single.lowered(1.0) < 1 - 1e-6
    assert single.raised(0.5) == pytest.approx(0.5, abs=2e-5)
    assert single.raised(-np.inf) == -np.inf
