"""ConformalDetector: its promise in words, scores, errors, company."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.datasets import load_iris
from sklearn.ensemble import IsolationForest
from sklearn.frozen import FrozenEstimator
from sklearn.neighbors import KernelDensity, LocalOutlierFactor
from sklearn.svm import OneClassSVM

import prudent
from prudent import ConformalDetector
from prudent.core.assumptions import Assumption
from prudent.exceptions import PrudentWarning

X, _ = load_iris(return_X_y=True)
NORMAL, NEW = X[:40], X[[40, 41, 42, 43, 44, 45, 50, 51]]
EXCHANGEABLE = Assumption.TRAINING_EXCHANGEABLE_NORMAL


def test_promise_in_words():
    promise = ConformalDetector().fit(NORMAL).guarantees_[0]
    assert (promise.quantity, promise.sense) == ("false alarm rate", "<=")
    assert promise.bound == 2 / 41
    assert promise.assumptions == (EXCHANGEABLE,)
    assert promise.average_over == "training samples"
    assert dict(promise.evidence) == {"training rows": 40.0, "rank": 2.0}


@pytest.mark.parametrize("ties", ["conservative", "smoothed"])
@pytest.mark.parametrize("kind", ["combined", "distance", "ellipsoid"])
def test_alarms_are_small_p_values(kind, ties):
    detector = ConformalDetector(nonconformity=kind, ties=ties, random_state=0)
    detector.fit(NORMAL)
    rows = np.vstack([NEW, NORMAL * 1.05, NORMAL * 20])
    p_values, alarms = detector.p_value(rows), detector.predict(rows) == -1
    scores = detector.score_samples(rows)
    if ties == "conservative":
        assert detector.offset_ == (detector.k_ + 0.5) / 41
        np.testing.assert_array_equal(alarms, np.rint(p_values * 41) <= detector.k_)
        assert ((p_values - scores >= 0) & (p_values - scores < 1 / 82)).all()
    else:
        assert detector.offset_ == 0.05
        np.testing.assert_array_equal(alarms, p_values < 0.05)
    np.testing.assert_array_equal(
        detector.decision_function(rows), scores - detector.offset_
    )


def test_rows_beyond_all_others_are_ordered_by_distance():
    detector = ConformalDetector().fit(NORMAL)
    far = NORMAL.mean(axis=0) + np.array([10.0, 100.0, 1e6, 1e150])[:, None]
    assert (detector.p_value(far) == 1 / 41).all()
    assert (np.diff(detector.score_samples(far)) <= 0).all()
    assert (np.diff(detector.score_samples(far[:3])) < 0).all()
    assert (detector.predict(far) == -1).all()


def test_rows_too_far_for_a_number_are_the_last():
    detector = ConformalDetector().fit(NORMAL * 1e-10)
    far = np.array([[1.0], [1e300]]) * np.ones(4)
    assert (np.diff(detector.score_samples(far)) <= 0).all()
    assert (detector.predict(far) == -1).all()


class FirstColumn(OutlierMixin, BaseEstimator):
    """The score of a row is its first value."""

    def fit(self, X, y=None):
        self.fitted_ = True
        return self

    def score_samples(self, X):
        return X[:, 0]


@pytest.mark.parametrize(
    ("n", "rate", "confidence"),
    [(27, 0.1, None), (13, 0.2, None), (46, 0.05, None), (93, 0.05, 0.95)],
)
def test_of_each_bag_k_rows_raise_alarms_however_far_they_are(n, rate, confidence):
    bag = 1e-20 * np.random.default_rng(0).normal(size=(n + 1, 1))
    bag[:5, 0] = -(10.0 ** np.arange(5))
    detector = ConformalDetector(
        FrozenEstimator(FirstColumn().fit(bag)),
        false_alarm_rate=rate,
        confidence=confidence,
    )
    alarms = []
    for i in range(n + 1):
        detector.fit(np.delete(bag, i, axis=0))
        alarms.append(detector.predict(bag[[i]])[0] == -1)
        assert alarms[-1] == detector.rule_.alarms(bag[i])[0]
    assert sum(alarms) == detector.k_ == 2


@pytest.mark.parametrize("bandwidth", [1.0, 1e-3])
def test_rows_of_density_zero_have_answers(bandwidth):
    """With the narrow kernel most of the held-out rows have it, too."""
    rows = np.random.default_rng(0).normal(size=(400, 2))
    density = KernelDensity(kernel="tophat", bandwidth=bandwidth)
    detector = ConformalDetector(density, random_state=0).fit(rows)
    new = np.vstack([rows, rows + 20])
    alarms, scores = detector.predict(new) == -1, detector.calibrated_scores(new)
    assert np.isneginf(scores[400:]).all()
    assert np.isfinite(detector.decision_function(new)).all()
    np.testing.assert_array_equal(alarms, detector.rule_.alarms(scores))
    assert (alarms[400:] == (bandwidth == 1.0)).all()


def test_other_rates_without_a_fit():
    detector = ConformalDetector().fit(NORMAL)
    other = detector.with_false_alarm_rate(0.2)
    assert (detector.k_, other.k_) == (2, 8)
    assert other.guarantees_[0].bound == 8 / 41
    with pytest.raises(ValueError, match="false_alarm_rate"):
        detector.with_false_alarm_rate(0)


@pytest.mark.parametrize(
    ("settings", "n", "needed"),
    [
        ({}, 18, 19),
        ({"method": "split"}, 40, 19),
        ({"confidence": 0.95}, 90, 59),
    ],
)
def test_too_few_rows_raise_no_alarm_and_say_so(settings, n, needed):
    rows = np.random.default_rng(0).normal(size=(n, 2))
    with pytest.warns(PrudentWarning, match=f"at least {needed} are needed"):
        detector = ConformalDetector(random_state=0, **settings).fit(rows)
    assert detector.k_ == 0
    assert (detector.predict(rows * 1e3) == 1).all()
    if settings.get("confidence") is None:
        assert detector.guarantees_[0].bound == 0


@pytest.mark.parametrize(
    "estimator",
    [
        None,
        IsolationForest(n_estimators=20, random_state=0),
        LocalOutlierFactor(novelty=True),
        OneClassSVM(),
    ],
)
def test_split_ranks_held_out_rows(estimator):
    rows = np.random.default_rng(0).normal(size=(200, 3))
    detector = ConformalDetector(estimator, method="split", random_state=0).fit(rows)
    assert (detector.n_calibration_, detector.k_) == (60, 3)
    promise = detector.guarantees_[0]
    assert promise.bound == 3 / 61
    assert dict(promise.evidence) == {"calibration rows": 60.0, "rank": 3.0}
    far = np.full((1, 3), 50.0)
    assert detector.p_value(far)[0] == 1 / 61
    assert detector.predict(far)[0] == -1


@pytest.mark.parametrize("ties", ["conservative", "smoothed"])
@pytest.mark.parametrize("method", ["full", "split"])
def test_parameters_changed_after_the_fit_change_no_answer(method, ties):
    rows = np.random.default_rng(0).normal(size=(100, 2))
    detector = ConformalDetector(method=method, ties=ties, random_state=0).fit(rows)
    alarms, p_values = detector.predict(3 * rows), detector.p_value(3 * rows)
    detector.set_params(ties="smoothed", false_alarm_rate=0.5, confidence=0.9)
    np.testing.assert_array_equal(detector.predict(3 * rows), alarms)
    np.testing.assert_array_equal(detector.p_value(3 * rows), p_values)
    if method == "split":
        assert detector.guarantees_ is detector.rule_.guarantees


def test_alarms_of_the_rule_are_those_of_the_detector():
    rows = np.random.default_rng(0).normal(size=(200, 2))
    detector = ConformalDetector(method="split", random_state=0).fit(rows)
    scores = detector.calibrated_scores(3 * rows)
    np.testing.assert_array_equal(
        detector.rule_.alarms(scores), detector.predict(3 * rows) == -1
    )
    assert detector.calibration_scores_ is detector.rule_.calibration.scores.sorted[0]


def test_frozen_detector_ranks_by_every_row():
    rows = np.random.default_rng(0).normal(size=(100, 3))
    frozen = FrozenEstimator(OneClassSVM().fit(rows[:50]))
    detector = ConformalDetector(frozen).fit(rows[50:])
    assert detector.n_calibration_ == 50
    assert detector.guarantees_[0].average_over == "calibration rows"


def test_scores_of_the_other_sign_are_negated():
    class Strange(OneClassSVM):
        """As PyOD has it: high for strange rows, `decision_scores_` of the fit."""

        score_samples = property()  # not there

        def fit(self, X, y=None):
            super().fit(X)
            self.decision_scores_ = self.decision_function(X)
            return self

        def decision_function(self, X):
            return -super().decision_function(X)

    rows = np.random.default_rng(0).normal(size=(100, 3))
    new = rows[:10] * 3
    ours = ConformalDetector(Strange(), random_state=0).fit(rows).p_value(new)
    plain = ConformalDetector(OneClassSVM(), random_state=0).fit(rows).p_value(new)
    np.testing.assert_array_equal(ours, plain)


def test_bad_parameters():
    for settings, message in (
        ({"false_alarm_rate": 1.0}, "false_alarm_rate"),
        ({"method": "cross"}, "method"),
        ({"n_neighbors": 0}, "n_neighbors"),
        ({"nonconformity": "lof"}, "nonconformity"),
        ({"method": "full", "confidence": 0.95}, "split"),
        ({"method": "full", "estimator": OneClassSVM()}, r"'full'.*OneClassSVM"),
    ):
        with pytest.raises(ValueError, match=message):
            ConformalDetector(**settings).fit(NORMAL)
    with pytest.raises(TypeError, match="score_samples"):
        ConformalDetector(LocalOutlierFactor()).fit(NORMAL)
    with pytest.raises(ValueError, match="split"):
        ConformalDetector().fit(NORMAL, groups=np.arange(40))


def test_groups_rank_by_one_row_each():
    groups = np.repeat(np.arange(60), 3)
    rows = np.random.default_rng(0).normal(size=(60, 2))[groups]
    detector = ConformalDetector(method="split", calibration_size=0.35, random_state=0)
    detector.fit(rows, groups=groups)
    assert detector.n_calibration_ == 21  # of ceil(.35 * 60) groups
    assert detector.guarantees_[0].assumptions == (Assumption.GROUPS,)
    assert detector.guarantees_[0].unit == "group"


@pytest.mark.parametrize("settings", [{}, {"method": "split"}, {"ties": "smoothed"}])
def test_stored_detectors_answer_alike(tmp_path, settings):
    rows = np.random.default_rng(0).normal(size=(100, 3))
    detector = ConformalDetector(random_state=0, **settings).fit(rows)
    prudent.save(detector, tmp_path / "detector.prudent")
    new = rows * 2
    for copy in (
        prudent.load(tmp_path / "detector.prudent"),
        pickle.loads(pickle.dumps(detector)),
    ):
        np.testing.assert_array_equal(
            copy.score_samples(new), detector.score_samples(new)
        )
        assert copy.guarantees_ == detector.guarantees_


def test_only_held_out_rows_have_calibrated_scores():
    full = ConformalDetector(method="full").fit(NORMAL)
    assert not hasattr(full, "calibrated_scores")
    with pytest.raises(AttributeError, match="calibrated_scores") as refused:
        full.calibrated_scores(NORMAL)
    assert "method='split'" in str(refused.value.__cause__)
