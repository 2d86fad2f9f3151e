"""Fits with times say whether their rows change: `order_test_` of every estimator."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from scipy.stats import binom
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import prudent
from prudent import (
    BestClassifier,
    BinnedCalibrationClassifier,
    ConformalClassifier,
    NeymanPearsonClassifier,
    SelectiveClassifier,
)
from prudent.estimator_tools.labelled_rows import labelled_rows
from prudent.estimator_tools.order import order_in_time
from prudent.persistence import load, save

N = 300
DAYS = np.datetime64("2025-01-01") + np.arange(N)
SELECTIVE = SelectiveClassifier(LogisticRegression(), error_rate=0.3)
ESTIMATORS = [
    SELECTIVE,
    NeymanPearsonClassifier(LogisticRegression(), max_class_error={"yes": 0.3}),
    BinnedCalibrationClassifier(LogisticRegression()),
    ConformalClassifier(LogisticRegression()),
    BestClassifier({"logistic": LogisticRegression()}, promise="error <= 30%"),
]


def rows(change=0.0):
    random = np.random.default_rng(4)
    frame = pd.DataFrame(random.normal(size=(N, 2)), columns=["age", "dose"])
    y = np.where(frame["age"] + 0.3 * random.normal(size=N) > 0, "yes", "no")
    frame.loc[N // 2 :, "dose"] += change
    return frame, y


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_every_fit_with_times_says_whether_its_rows_change(estimator, tmp_path):
    X, y = rows(1.0)
    estimator = clone(estimator)
    found = estimator.set_params(random_state=0).fit(X, y, time=DAYS).order_test_
    assert found.p_value == 0.005
    assert found.changed == "dose"
    assert abs(np.datetime64(found.when) - DAYS[N // 2]) < np.timedelta64(30, "D")
    n_latest = estimator.n_calibration_
    assert found == order_in_time(labelled_rows(X, y, None, DAYS), n_latest)
    assert str(found).endswith(f"the promise is about rows like the latest {n_latest}")
    assert pickle.loads(pickle.dumps(estimator)).order_test_ == found
    save(estimator, tmp_path / "model")
    assert load(tmp_path / "model").order_test_ == found
    # What is said of other rows, or of none, is not left behind.
    still = estimator.fit(*rows(), time=DAYS).order_test_
    assert still.p_value > 0.05
    assert str(still).startswith("no change with time shown (p = 0.")
    assert not hasattr(estimator.fit(X, y), "order_test_")


def test_a_full_fit_forgets_the_test_of_an_earlier_one_with_times():
    X, y = rows()
    model = ConformalClassifier(model="gaussian").fit(X, y, time=DAYS)
    assert hasattr(model, "order_test_")
    full = model.set_params(method="full").fit(X, y)
    assert not hasattr(full, "order_test_")
    assert not hasattr(full, "rule_")


def test_the_test_uses_up_no_draw_and_changes_nothing_of_a_fit():
    X, y = rows()
    groups = np.arange(N) // 2
    for seed in (0, np.random.RandomState(0)):
        models = []
        for tests_order in (True, False):
            model = SelectiveClassifier(
                LogisticRegression(), error_rate=0.3, random_state=pickle.loads(
                    pickle.dumps(seed)
                )
            )  # fmt: skip
            model._tests_order = tests_order
            models.append(model.fit(X, y, groups=groups, time=DAYS))
        tested, other = models
        assert tested.threshold_ == other.threshold_
        assert tested.guarantees_ == other.guarantees_
        assert "groups like the latest" in tested.order_test_.latest
        assert not hasattr(other, "order_test_")


def test_of_what_is_no_table_the_classes_alone_are_looked_at():
    X, y = rows()
    y[2 * N // 3 :: 2] = "yes"
    words = np.where(X["age"] > 0, "old sick", "young well").tolist()
    of_words = make_pipeline(CountVectorizer(), LogisticRegression())
    for table, estimator in (
        (csr_array(X.to_numpy()), LogisticRegression()),
        (words, of_words),
    ):
        model = SelectiveClassifier(estimator, error_rate=0.5, random_state=0)
        found = model.fit(table, y, time=DAYS).order_test_
        assert found.p_value == 0.005
        assert found.changed in ("class yes", "class no")


def test_of_many_features_every_kth_is_looked_at():
    random = np.random.default_rng(0)
    X = random.normal(size=(100, 700))
    y = random.integers(2, size=100)
    X[50:, 3] += 3
    X[50:, 1] += 9
    found = order_in_time(labelled_rows(X, y, None, np.arange(100)), None)
    assert (found.p_value, found.changed) == (0.005, "x3")


def test_a_comparison_tests_the_order_once(monkeypatch):
    import prudent.estimator_tools.order as order

    calls = []
    known = order.order_test
    monkeypatch.setattr(
        order, "order_test", lambda *a, **k: calls.append(1) or known(*a, **k)
    )
    X, y = rows()
    found = prudent.compare(
        X, y, time=DAYS, promise="error <= 30%", methods=["conformal"],
        baselines=["logistic"], best=False,
    )  # fmt: skip
    assert found.data.order
    assert len(calls) == 1


def power_against(change, n_streams):
    """Share of streams of 400 rows in which a change from the half on is seen."""
    n_found = 0
    for seed in range(n_streams):
        random = np.random.default_rng([seed, 77])
        late = np.arange(400) >= 200
        share = np.where(late, 0.65, 0.5) if change == "share" else 0.5
        y = (random.random(400) < share).astype(int)
        X = random.normal(size=(400, 8))
        X[:, :2] += 1.5 * (y[:, None] - 0.5)
        if change != "share":
            y = np.where((random.random(400) < change) & late, 1 - y, y)
        told = labelled_rows(X, y, None, np.arange(400))
        n_found += order_in_time(told, None, seed).p_value <= 0.05
    return n_found / n_streams


@pytest.mark.parametrize(
    ("change", "power"), [("share", 0.4), (0.15, 0.17), (0.35, 0.97)]
)
def test_changed_classes_and_flipped_labels_are_seen(change, power):
    # Power as measured on 400 streams; fewer are seen by chance with probability 1e-3.
    assert 80 * power_against(change, 80) >= binom.ppf(1e-3, 80, power)


def test_labels_that_keep_their_law_are_seldom_called_changed():
    assert power_against(0.0, 100) <= 0.13  # of level .05; more with chance 1e-3
