"""Probabilities with exact limits."""

from __future__ import annotations

import pickle

import numpy as np
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, binomtest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from prudent import Assumption, BinnedCalibrationClassifier, certify, load, save
from prudent.estimator_tools.answers import held_against
from prudent.rules.bins import ProbabilityBins, within_limits

X, y = load_breast_cancer(return_X_y=True)


class GivenProbability(ClassifierMixin, BaseEstimator):
    """Column 0 is the probability of class 1."""

    def fit(self, X, y):
        self.classes_ = np.array([0, 1])
        self.n_features_in_ = np.shape(X)[1]
        return self

    def predict_proba(self, X):
        return np.column_stack([1 - np.asarray(X)[:, 0], np.asarray(X)[:, 0]])

    def predict(self, X):
        return (np.asarray(X)[:, 0] >= 0.5).astype(int)


GIVEN = FrozenEstimator(GivenProbability().fit([[0.1], [0.9]], [0, 1]))


def test_reference_cells():
    i = np.arange(60)
    scores = np.round((7 * i % 60) / 60, 2)
    bins = ProbabilityBins(scores, (11 * i % 13) < 12 * scores, 4, 0.95)
    assert bins.edges.tolist() == [0.25, 0.5, 0.75]
    assert bins.n_rows.tolist() == [15, 0, 14, 0, 14, 0, 14]
    assert bins.n_positive.tolist() == [3, 0, 3, 0, 10, 0, 11]
    assert bins.lower[::2] == pytest.approx(
        [0.026068, 0.028053, 0.352328, 0.421809], abs=1e-6
    )
    assert bins.lower[1::2].tolist() == [0, 0, 0]
    assert bins.upper[1::2].tolist() == [1, 1, 1]


few_scores = st.sampled_from([0.0, 0.1, 0.3, 0.3 + 1e-12, 0.7, 1.0])


@settings(max_examples=100, deadline=None)
@given(
    rows=st.lists(st.tuples(few_scores, st.booleans()), min_size=1, max_size=50),
    n_bins=st.integers(2, 9),
)
def test_cells_are_those_of_counted_rows(rows, n_bins):
    scores = np.array([s for s, _ in rows])
    positive = np.array([p for _, p in rows])
    bins = ProbabilityBins(scores, positive, n_bins, 0.9)
    ends = np.concatenate([[-np.inf], bins.edges, [np.inf]])
    filled = np.count_nonzero(bins.n_rows)
    for cell in range(len(bins.lower)):
        if cell % 2:
            inside = scores == bins.edges[cell // 2]
            inside &= inside.sum() >= 2
        else:
            inside = (scores > ends[cell // 2]) & (scores < ends[cell // 2 + 1])
        n, w = int(inside.sum()), int((inside & positive).sum())
        assert (bins.n_rows[cell], bins.n_positive[cell]) == (n, w)
        if n:
            tail = (1 - 0.9 ** (1 / filled)) / 2
            limits = binomtest(w, n).proportion_ci(1 - 2 * tail, method="exact")
            assert (bins.lower[cell], bins.upper[cell]) == pytest.approx(tuple(limits))
        assert (bins.cells(scores[inside]) == cell).all()
    # Tails of the binomial law at the limits are what they should be.
    some = np.flatnonzero((bins.n_positive > 0) & (bins.n_rows > 0))
    tails = binom.sf(bins.n_positive[some] - 1, bins.n_rows[some], bins.lower[some])
    assert tails == pytest.approx(
        np.full(len(some), (1 - 0.9 ** (1 / max(filled, 1))) / 2)
    )


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 10_000), K=st.integers(2, 6))
def test_quoted_numbers_sum_to_one_within_limits(seed, K):
    rng = np.random.default_rng(seed)
    numbers = rng.dirichlet(np.full(K, 0.2), 20)
    numbers[rng.random((20, K)) < 0.2] = 0
    lower, upper = np.sort(rng.random((2, 20, K)) ** 2, axis=0)
    quoted = within_limits(numbers, lower, upper)
    assert quoted.sum(axis=1) == pytest.approx(np.ones(20))
    possible = (lower.sum(axis=1) <= 1) & (upper.sum(axis=1) >= 1)
    assert (quoted >= lower - 1e-9)[possible].all()
    assert (quoted <= upper + 1e-9)[possible].all()
    over, under = lower.sum(axis=1) > 1, upper.sum(axis=1) < 1
    for side, rows in ((lower, over), (upper, under)):
        expected = side[rows] / side[rows].sum(axis=1, keepdims=True)
        assert quoted[rows] == pytest.approx(expected)


def test_numbers_that_lie_within_are_left_alone():
    numbers = np.array([[0.2, 0.3, 0.5]])
    quoted = within_limits(numbers, np.zeros((1, 3)), np.ones((1, 3)))
    assert quoted == pytest.approx(numbers)


@pytest.mark.parametrize("values", [None, 7])
def test_limits_hold_in_all_cells_at_once(values):
    """`values`: scores of so many values, cells by value; None: continuous ones."""
    rng = np.random.default_rng(20261123)
    draws, m, false = 500, 120, 0
    for _ in range(draws):
        scores = rng.random(m)
        if values is not None:
            scores = np.floor(scores * values) / values
        positive = rng.random(m) < scores**2
        bins = ProbabilityBins(scores, positive, 5, 0.95)
        ends = np.concatenate([[0.0], bins.edges, [1.0]])
        for cell in np.flatnonzero(bins.n_rows):
            low, high = ends[cell // 2], ends[cell // 2 + 1]
            if cell % 2:
                truth = bins.edges[cell // 2] ** 2
            elif values is None:
                truth = (high**3 - low**3) / (3 * (high - low))
            else:
                inside = np.arange(values) / values
                first = cell == 0  # the lowest cell holds the value 0 too
                inside = inside[((inside > low) | first) & (inside < high)]
                truth = (inside**2).mean()
            if not bins.lower[cell] <= truth <= bins.upper[cell]:
                false += 1
                break
    assert binomtest(false, draws, 0.05, alternative="greater").pvalue > 1e-3


def test_limits_of_both_classes_hold_where_rows_have_a_third_label():
    """Scores are uniform; 8 % of the rows have the label 2, else P(1) is the score."""
    rng = np.random.default_rng(20261129)
    draws, false = 200, 0
    for _ in range(draws):
        scores = rng.random((600, 1))
        labels = (rng.random(600) < scores[:, 0]).astype(int)
        labels[rng.random(600) < 0.08] = 2
        model = BinnedCalibrationClassifier(GIVEN, n_bins=3).fit(scores, labels)
        bins = model.bins_.filter(pc.greater(model.bins_["rows"], 0)).to_pydict()
        middle = np.mean(np.clip([bins["from"], bins["to"]], 0, 1), axis=0)
        truth = 0.92 * np.column_stack([1 - middle, middle])
        lower, upper = model.predict_proba_interval(middle[:, None])
        false += bool(((truth < lower) | (upper < truth)).any())
        assert (upper[:, 1] == bins["upper"]).all()
    assert binomtest(false, draws, 0.05, alternative="greater").pvalue > 1e-3


def test_limits_of_each_cell_by_itself_would_be_caught():
    rng = np.random.default_rng(1)
    draws, m, n_bins, false = 100, 400, 8, 0
    for _ in range(draws):
        scores = rng.random(m)
        positive = rng.random(m) < 0.5
        cell = np.floor(scores * n_bins).astype(int)
        false += any(
            not ci.low <= 0.5 <= ci.high
            for ci in (
                binomtest(
                    int(positive[cell == c].sum()), int((cell == c).sum())
                ).proportion_ci(0.95, method="exact")
                for c in range(n_bins)
            )
        )
    assert binomtest(false, draws, 0.05, alternative="greater").pvalue < 1e-6


class TestEstimator:
    def test_two_classes(self):
        model = BinnedCalibrationClassifier(GaussianNB(), random_state=0).fit(X, y)
        assert model.n_calibration_ == 171
        assert model.n_bins_ == 6
        lower, upper = model.predict_proba_interval(X)
        quoted = model.predict_proba(X)
        assert ((lower <= quoted + 1e-12) & (quoted <= upper + 1e-12)).all()
        assert lower[:, 0] == pytest.approx(1 - upper[:, 1])
        numbers = model.estimator_.predict_proba(X)
        same = (numbers > lower) & (numbers < upper)
        assert quoted[same] == pytest.approx(numbers[same])
        assert {g.scope for g in model.guarantees_} == {1}
        low, high = model.guarantees_[:2]
        assert (low.quantity, low.sense, high.sense) == ("probability", ">=", "<=")
        assert low.subgroup.startswith("score")
        assert low.assumptions == (Assumption.INDEPENDENT,)
        assert "The probability of class 1 among rows with score" in str(low)
        assert low.check(violations=0, n=50).verdict in {"kept", "consistent", "broken"}

    def test_frequencies(self):
        model = BinnedCalibrationClassifier(
            GIVEN, quote="frequency", n_bins=2, random_state=0
        )
        scores = np.linspace(0.01, 0.99, 101)[:, None]
        labels = (np.arange(101) % 3 == 0).astype(int)
        model.fit(scores, labels)
        table = model.bins_.to_pydict()
        first = model.predict_proba(scores[:1])[0, 1]
        assert first == (table["positive"][0] + 0.5) / (table["rows"][0] + 1)
        assert Assumption.UNSEEN in model.guarantees_[0].assumptions

    def test_several_classes(self):
        A, b = load_iris(return_X_y=True)
        model = BinnedCalibrationClassifier(
            LogisticRegression(max_iter=500), random_state=0, calibration_size=0.5
        ).fit(A, b)
        lower, upper = model.predict_proba_interval(A)
        quoted = model.predict_proba(A)
        assert quoted.sum(axis=1) == pytest.approx(np.ones(len(A)))
        possible = (lower.sum(axis=1) <= 1) & (upper.sum(axis=1) >= 1)
        inside = (quoted >= lower - 1e-9) & (quoted <= upper + 1e-9)
        assert inside[possible].all()
        assert {g.scope for g in model.guarantees_} == {0, 1, 2}
        # The level is shared by the classes.
        table = model.bins_.to_pydict()
        first = [c == 0 for c in table["class"]]
        filled = sum(n > 0 for n, f in zip(table["rows"], first, strict=True) if f)
        n, w = table["rows"][0], table["positive"][0]
        each = 1 - (1 - (1 - 0.05 / 3) ** (1 / filled))
        limits = binomtest(w, n).proportion_ci(each, method="exact")
        assert (table["lower"][0], table["upper"][0]) == pytest.approx(tuple(limits))

    def test_saved_and_pickled(self, tmp_path):
        model = BinnedCalibrationClassifier(
            LogisticRegression(max_iter=5000), random_state=0
        ).fit(X, y)
        save(model, tmp_path / "m.prudent")
        for other in (load(tmp_path / "m.prudent"), pickle.loads(pickle.dumps(model))):
            assert (other.predict_proba(X) == model.predict_proba(X)).all()
            assert other.guarantees_ == model.guarantees_

    def test_promises_are_held_against_rows_of_their_cells(self):
        rng = np.random.default_rng(4)
        scores = rng.random((400, 1))
        labels = (rng.random(400) < scores[:, 0]).astype(int)
        model = BinnedCalibrationClassifier(GIVEN, n_bins=4).fit(scores, labels)
        new = rng.random((2000, 1))
        truth = (rng.random(2000) < new[:, 0]).astype(int)
        held = list(held_against(model, model.guarantees_, new, truth))
        assert len(held) == 8
        assert sum(n for _, _, n in held) == 2 * 2000
        assert sum(count for _, count, _ in held) == 2 * truth.sum()
        for promise, count, n in held:
            check = promise.judge(count, n)
            assert check.measured == count / n
            assert check.verdict != "broken"
            worse = 0 if promise.sense == ">=" else n
            assert promise.judge(worse, n).verdict == "broken" or promise.bound < 0.01

    def test_a_model_of_one_class_has_one_column(self):
        rows = np.arange(50.0)[:, None]
        tree = FrozenEstimator(DecisionTreeClassifier().fit(rows, np.zeros(50)))
        labels = np.arange(50) // 40  # ten rows of a class that the model lacks
        model = BinnedCalibrationClassifier(tree, n_bins=2).fit(rows, labels)
        lower, upper = model.predict_proba_interval(rows)
        limits = binomtest(40, 50).proportion_ci(0.95, method="exact")
        assert lower == pytest.approx(np.full((50, 1), limits.low))
        assert upper == pytest.approx(np.full((50, 1), limits.high))
        assert model.predict_proba(rows).tolist() == [[1.0]] * 50

    def test_cells_are_not_certified_by_subgroup(self):
        model = BinnedCalibrationClassifier(GaussianNB(), n_bins=2, random_state=0)
        model.fit(X[:300], y[:300])
        with pytest.raises(ValueError, match="cells are certified over all rows only"):
            certify(model, X[300:], y[300:], subgroups=X[300:, :1] > 14)
        (error, *_) = certify(None, model.predict(X), y, subgroups=X[:, :1] > 14)
        assert error.quantity == "error rate"

    def test_groups(self):
        model = BinnedCalibrationClassifier(GaussianNB(), random_state=0)
        model.fit(X, y, groups=np.arange(len(y)) // 3)
        assert {g.unit for g in model.guarantees_} == {"group"}

    @pytest.mark.parametrize(
        ("change", "error", "message"),
        [
            ({"n_bins": 1}, ValueError, "`n_bins` must be 'auto' or a whole number"),
            ({"n_bins": "many"}, ValueError, "`n_bins` must be 'auto'"),
            ({"quote": "isotonic"}, ValueError, "`quote` must be"),
            ({"confidence": 0}, ValueError, "`confidence` must lie in"),
            ({"estimator": LinearSVC()}, TypeError, "LinearSVC has no predict_proba"),
        ],
    )
    def test_bad_parameters(self, change, error, message):
        model = BinnedCalibrationClassifier(GaussianNB()).set_params(**change)
        with pytest.raises(error, match=message):
            model.fit(X, y)

    def test_parameters_changed_after_fit_change_nothing(self):
        model = BinnedCalibrationClassifier(GaussianNB(), random_state=0).fit(X, y)
        before = model.predict_proba(X)
        model.set_params(quote="frequency", n_bins=3, confidence=0.5)
        assert (model.predict_proba(X) == before).all()
