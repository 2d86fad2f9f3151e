"""Promises about scores whose last digits depend on how many rows a model is asked.

BLAS sums a row alone in another order than among many, so that rows of discrete columns
which tie with a threshold in the held-out batch may lie on its other side when they
come alone. The truth of each promise is computed from the answers to single rows.
"""

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import binomtest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.frozen import FrozenEstimator
from sklearn.neural_network import MLPClassifier

from prudent import (
    BinnedCalibrationClassifier,
    NeymanPearsonClassifier,
    SelectiveClassifier,
)
from prudent.certification.held_out import answer_scores

ATOMS = np.array([-2.0, -0.75, 0.25, 0.5, 3.0])
MASS = np.array([0.3, 0.2, 0.1, 0.15, 0.25])
POSITIVE = np.array([0.02, 0.3, 0.45, 0.6, 0.99])
WRONG = np.where(ATOMS > 0, 1 - POSITIVE, POSITIVE)
N, DRAWS = 160, 120


class ByBatch(ClassifierMixin, BaseEstimator):
    """Column 0 is the log odds of class 1; of a few rows it is moved by rounding."""

    def __init__(self, moved=0.0):
        self.moved = moved

    def fit(self, X, y):
        self.classes_ = np.array([0, 1])
        return self

    def decision_function(self, X):
        odds = np.asarray(X)[:, 0]
        return odds + self.moved if len(odds) < 5 else odds

    def predict_proba(self, X):
        positive = expit(self.decision_function(X))
        return np.column_stack([1 - positive, positive])

    def predict(self, X):
        return (np.asarray(X)[:, 0] > 0).astype(int)


def fitted(wrapper, rng):
    atom = rng.choice(len(ATOMS), N, p=MASS)
    y = (rng.random(N) < POSITIVE[atom]).astype(int)
    y[:2] = 0, 1
    return wrapper.fit(ATOMS[atom, None], y)


def alone(answer):
    """Answers to each atom, asked by itself."""
    return np.array([answer(np.array([[atom]]))[0] for atom in ATOMS])


def frozen(moved):
    return FrozenEstimator(ByBatch(moved).fit(ATOMS[:, None], [0, 0, 0, 1, 1]))


def assert_rarely(n_false):
    assert binomtest(n_false, DRAWS, 0.05, alternative="greater").pvalue > 1e-3


@pytest.mark.filterwarnings("ignore:.*nothing is answered")
@pytest.mark.parametrize("scoring", ["max_probability", "margin"])
@pytest.mark.parametrize("moved", [-1e-12, 1e-12])
def test_selective_errors(moved, scoring):
    rng, n_false, n_answering = np.random.default_rng(0), 0, 0
    wrapper = SelectiveClassifier(frozen(moved), error_rate=0.08, scoring=scoring)
    for _ in range(DRAWS):
        answered = MASS * alone(fitted(wrapper, rng).answers)
        n_answering += answered.any()
        n_false += (answered * WRONG).sum() > 0.08 * answered.sum()
    assert n_answering > DRAWS / 2
    assert_rarely(n_false)


def in_parts(X):
    """Two subgroups that overlap."""
    odds = np.asarray(X)[:, 0]
    return np.column_stack([odds < 0.4, odds > -1])


@pytest.mark.filterwarnings("ignore::prudent.exceptions.PrudentWarning")
@pytest.mark.parametrize("moved", [-1e-12, 1e-12])
def test_selective_errors_in_subgroups(moved):
    rng, n_false, n_answering = np.random.default_rng(3), 0, 0
    wrapper = SelectiveClassifier(frozen(moved), error_rate=0.12, subgroups=in_parts)
    parts = [np.ones(len(ATOMS), dtype=bool), *in_parts(ATOMS[:, None]).T]
    for _ in range(DRAWS):
        answered = MASS * alone(fitted(wrapper, rng).answers)
        n_answering += answered.any()
        n_false += any(
            (answered * WRONG)[part].sum() > 0.12 * answered[part].sum()
            for part in parts
        )
    assert n_answering > DRAWS / 2
    assert_rarely(n_false)


@pytest.mark.filterwarnings("ignore::prudent.exceptions.PrudentWarning")
@pytest.mark.parametrize("moved", [-1e-12, 1e-12])
def test_answered_shares_and_the_error_among_them(moved):
    rng, n_false, n_promised = np.random.default_rng(4), 0, 0
    wrapper = SelectiveClassifier(frozen(moved), error_rate=None, answered_share=0.4)
    for _ in range(DRAWS):
        model = fitted(wrapper, rng)
        answered = MASS * alone(model.answers)
        bounds = {promise.quantity: promise.bound for promise in model.guarantees_}
        n_promised += bool(bounds)
        error = (answered * WRONG).sum() / max(answered.sum(), 1e-300)
        n_false += (
            error > bounds.get("selective error rate", 1)
            or answered.sum() < bounds.get("answered share", 0) - 1e-12
        )
    assert n_promised > DRAWS / 2
    assert_rarely(n_false)


@pytest.mark.parametrize("moved", [-1e-12, 1e-12])
def test_answers_above_every_threshold(moved):
    rng, n_false = np.random.default_rng(5), 0
    # With limits of every threshold at once, the rule itself plays no part.
    wrapper = SelectiveClassifier(frozen(moved), error_rate=0.4)
    for _ in range(DRAWS):
        model = fitted(wrapper, rng)
        bands = model.threshold_bands()
        score = alone(
            lambda row, m=model: answer_scores(m.estimator_, row, "max_probability")[0]
        )
        answered = MASS * (score > bands.thresholds[:, None])
        share, wrong = answered.sum(axis=1), (answered * WRONG).sum(axis=1)
        limits = bands.limits(bands.thresholds)
        n_false += (
            (wrong > limits["selective error rate"] * share + 1e-12)
            | (share < limits["answered share"] - 1e-12)
        ).any()
    assert_rarely(n_false)


@pytest.mark.parametrize("moved", [-1e-12, 1e-12])
def test_alarms_from_every_threshold_on(moved):
    rng, n_false = np.random.default_rng(6), 0
    wrapper = NeymanPearsonClassifier(frozen(moved), max_class_error={1: 0.3})
    ill, well = MASS * POSITIVE, MASS * (1 - POSITIVE)
    for _ in range(DRAWS):
        model = fitted(wrapper, rng)
        bands = model.threshold_bands()
        score = alone(lambda row, m=model: m.estimator_.predict_proba(row)[:, 1])
        flagged = score >= bands.thresholds[:, None]
        limits = bands.limits(bands.thresholds)
        n_false += (
            ((~flagged * ill).sum(axis=1) > limits["miss rate"] * ill.sum() + 1e-12)
            | (
                (flagged * well).sum(axis=1)
                > limits["false alarm rate"] * well.sum() + 1e-12
            )
            | ((flagged * MASS).sum(axis=1) > limits["flagged share"] + 1e-12)
        ).any()
    assert_rarely(n_false)


@pytest.mark.parametrize("moved", [-1e-12, 1e-12])
def test_sets_hold_each_class(moved):
    rng, n_false = np.random.default_rng(7), 0
    limits = {0: 0.2, 1: 0.3}
    wrapper = NeymanPearsonClassifier(
        frozen(moved), max_class_error=limits, abstain=True
    )
    of_class = MASS * np.array([1 - POSITIVE, POSITIVE])
    for _ in range(DRAWS):
        sets = alone(fitted(wrapper, rng).predict_set)
        n_false += any(
            (of_class[c] * ~sets[:, c]).sum() > limit * of_class[c].sum()
            for c, limit in limits.items()
        )
    assert_rarely(n_false)


@pytest.mark.parametrize("moved", [-1e-12, 1e-12])
def test_class_errors(moved):
    rng, n_false = np.random.default_rng(1), 0
    wrapper = NeymanPearsonClassifier(frozen(moved), max_class_error={1: 0.3})
    for _ in range(DRAWS):
        missed = alone(fitted(wrapper, rng).predict) != 1
        of_class = MASS * POSITIVE
        n_false += (of_class * missed).sum() > 0.3 * of_class.sum()
    assert_rarely(n_false)


@pytest.mark.parametrize("moved", [-1e-12, 1e-12])
def test_binned_probabilities(moved):
    rng, n_false = np.random.default_rng(2), 0
    wrapper = BinnedCalibrationClassifier(frozen(moved), n_bins=4)
    for _ in range(DRAWS):
        model = fitted(wrapper, rng)
        false = False
        for promise in model.guarantees_:
            inside = alone(lambda row, g=promise, m=model: m.is_about(g, row))
            if inside.any():
                truth = (MASS * POSITIVE)[inside].sum() / MASS[inside].sum()
                lower = promise.sense == ">="
                false |= truth < promise.bound if lower else truth > promise.bound
        n_false += false
    assert_rarely(n_false)


@pytest.mark.parametrize(
    "model",
    [
        LinearDiscriminantAnalysis(),
        MLPClassifier((8,), max_iter=60, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.filterwarnings("ignore")
def test_rows_alone_are_answered_as_in_their_batch(model):
    n_different = 0
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = rng.integers(0, 3, (300, 3)) * rng.choice([1.0, 0.1, 0.3, 7.7], 3)
        lead = (X - X.mean(axis=0)) @ rng.normal(size=3)
        y = (lead + rng.normal(size=300) > 0).astype(int)
        rows = rng.permutation(X)[:80]
        for wrapper, method in (
            (SelectiveClassifier(model, error_rate=0.3), "answers"),
            (
                NeymanPearsonClassifier(
                    model, max_class_error={0: 0.3, 1: 0.3}, abstain=True
                ),
                "predict_set",
            ),
            (BinnedCalibrationClassifier(model, n_bins=8), "predict_proba_interval"),
        ):
            answer = getattr(wrapper.set_params(random_state=0).fit(X, y), method)
            together, single = answer(rows), [answer(row[None]) for row in rows]
            if method == "predict_proba_interval":
                together, single = together[0], [lower for lower, _ in single]
            n_different += (together != np.concatenate(single)).sum()
    assert n_different == 0
