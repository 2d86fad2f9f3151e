"""The one-class protocol: out-of-fold false alarms, and rows of other classes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binomtest
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.model_selection import KFold

from prudent import Guarantee, MinimaxOutlierDetector
from prudent.evaluation.detection import OWN, build_detector, detect


class Limit(OutlierMixin, BaseEstimator):
    """Flags what exceeds the largest training value; promises half of the bound."""

    def __init__(self, *, bound: float = 0.5) -> None:
        self.bound = bound

    def fit(self, X, y=None):
        self.n_features_in_ = X.shape[1]
        self.largest_ = X.max()
        self.guarantees_ = (
            Guarantee(quantity="false alarm rate", bound=self.bound, sense="<="),
        )
        return self

    def decision_function(self, X):
        return self.largest_ - X[:, 0]

    def predict(self, X):
        return np.where(self.decision_function(X) >= 0, 1, -1)


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 1))
    normal = np.arange(60) < 40
    X[~normal] += 1.5
    return X, normal


def test_false_alarms_are_those_of_folds_not_fitted_on(rows):
    X, normal = rows
    found = detect(Limit(), X, normal, cv=4, random_state=3)
    inside, expected, shares = X[normal], 0, []
    for train, test in KFold(4, shuffle=True, random_state=3).split(inside):
        expected += int((inside[test] > inside[train].max()).sum())
        shares.append((X[~normal] > inside[train].max()).mean())
    assert found.promises[0].violations == expected == 1
    assert found.detected_by_folds == pytest.approx(shares)
    # What is delivered is fitted on all normal rows, and so is its figure.
    assert found.detected == (X[~normal] > inside.max()).mean()
    # It may lie beyond those of the folds, and is one of those that the range is of.
    assert replace(found, detected=0.0).detected_range == (0.0, max(shares))
    assert replace(found, detected=1.0).detected_range == (min(shares), 1.0)
    assert found.own_rates is None


def test_flags_are_those_of_a_fit_on_all_normal_rows(rows):
    X, normal = rows
    found = detect(Limit(), X, normal)
    outlier = found.detector.predict(X) == -1
    np.testing.assert_array_equal(outlier, X[:, 0] > X[normal].max())
    np.testing.assert_array_equal(outlier, found.score < 0)


@pytest.mark.parametrize(
    ("bound", "verdict"), [(0.5, "kept"), (0.05, "consistent"), (0.0, "broken")]
)
def test_promise_is_held_against_held_out_rows(rows, bound, verdict):
    X, normal = rows
    (checked,) = detect(Limit(bound=bound), X, normal).promises
    assert checked.n == 40
    assert checked.check.verdict == verdict


def test_without_other_rows_nothing_is_detected(rows):
    X, normal = rows
    found = detect(Limit(), X[normal], np.ones(40, dtype=bool))
    assert found.detected is None


def test_real_detector_keeps_its_promise():
    rng = np.random.default_rng(1)
    X = np.vstack([rng.normal(size=(2000, 3)), rng.normal(size=(200, 3)) + 6])
    normal = np.arange(2200) < 2000
    found = detect(MinimaxOutlierDetector(random_state=0), X, normal)
    assert found.detected > 0.99
    assert all(promise.check.verdict != "broken" for promise in found.promises)


@pytest.mark.parametrize("confidence", [None, 0.9])
def test_limits_of_the_detector_itself_hold_the_rate_as_often_as_said(confidence):
    rng = np.random.default_rng(2)
    fresh = rng.normal(size=(20_000, 2))
    n_inside = 0
    for seed in range(60):
        detector = build_detector(
            *("minimax", 0.1),
            n_rows=300,
            confidence=confidence,
            random_state=seed,
        )
        X = rng.normal(size=(300, 2))
        found = detect(detector, X, np.ones(300, dtype=bool), cv=2)
        low, high = found.own_rates
        n_inside += low <= np.mean(found.detector.predict(fresh) == -1) <= high
    assert binomtest(n_inside, 60, OWN).pvalue >= 0.001
