"""Limits at all thresholds at once, by the public doors."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest, norm
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import IsolationForest
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from prudent import (
    Assumption,
    ConformalDetector,
    LowDensityRejector,
    MinimaxOutlierDetector,
    NeymanPearsonClassifier,
    SelectiveClassifier,
    ThresholdBands,
    certify_thresholds,
)
from prudent.core.binomial import clopper_pearson, simultaneous_limits
from prudent.exceptions import InfeasibleError, PrudentWarning
from prudent.rules.bands import false_alarm_bands
from prudent.rules.rule import Terms

X, y = load_breast_cancer(return_X_y=True)
SEEN = slice(0, 300)
NEW = slice(300, None)


@pytest.fixture(scope="module")
def model():
    return make_pipeline(StandardScaler(), LinearDiscriminantAnalysis()).fit(
        X[SEEN], y[SEEN]
    )


def bounds(promises):
    return {(g.quantity, g.scope): g.bound for g in promises}


@pytest.mark.parametrize(
    ("answered", "wrong", "error", "share"),
    [
        (100, 0, 0.093, 0.143),
        (300, 9, 0.083714, 0.522384),
        (500, 50, 0.151, 0.984),
    ],
)
def test_reference_answers(answered, wrong, error, share):
    n = 500
    scores = np.arange(n) / n
    errs = np.zeros(n, dtype=bool)
    errs[n - answered : n - answered + wrong] = True
    bands = ThresholdBands.from_scores(scores, errs, kind="answers")
    first, second = bands.at(scores[n - answered] - 1e-9)
    digits = 5e-7 if error == 0.083714 else 5e-4
    assert (first.quantity, second.quantity) == (
        "selective error rate",
        "answered share",
    )
    assert (first.sense, second.sense) == ("<=", ">=")
    assert first.bound == pytest.approx(error, abs=digits)
    assert second.bound == pytest.approx(share, abs=digits)


few_values = st.sampled_from([-np.inf, -2.0, 0.0, 0.25, 0.25 + 2**-50, 1.0, np.inf])


@settings(max_examples=150, deadline=None)
@given(
    rows=st.lists(st.tuples(few_values, st.booleans()), min_size=1, max_size=40),
    threshold=few_values,
)
def test_limits_are_those_of_counted_rows(rows, threshold):
    scores = np.array([score for score, _ in rows])
    marked = np.array([mark for _, mark in rows])
    n, n_marked = len(rows), int(marked.sum())
    labels = np.where(marked, "yes", "no")

    def limit(count, m, level):
        return 1.0 if m == 0 else simultaneous_limits(m, level)[count]

    if 0 < n_marked < n:
        alarms = ThresholdBands.from_scores(scores, labels, kind="alarms")
        promised = bounds(alarms.at(threshold))
        miss = limit(int((marked & (scores < threshold)).sum()), n_marked, 0.0125)
        false_alarm = limit(
            int((~marked & (scores >= threshold)).sum()), n - n_marked, 0.0125
        )
        flagged = limit(int((scores >= threshold).sum()), n, 0.0125)
        low, high = clopper_pearson(n_marked, n, level=0.0125)
        assert promised["class error rate", "yes"] == pytest.approx(miss)
        assert promised["class error rate", "no"] == pytest.approx(false_alarm)
        assert promised["flagged share", "yes"] == pytest.approx(flagged)
        shares = np.linspace(low, high, 5)
        worst = (shares * miss + (1 - shares) * false_alarm).max()
        assert promised["error rate", None] == pytest.approx(min(worst, 1.0))
        hits = shares * (1 - miss)
        least = (hits / (hits + (1 - shares) * false_alarm)).min()
        assert promised["precision", "yes"] == pytest.approx(least)
    answers = ThresholdBands.from_scores(scores, marked, kind="answers")
    promised = bounds(answers.at(threshold))
    above = scores > threshold
    error = limit(int((above & marked).sum()), n, 0.025)
    right = 1 - limit(n - int((above & ~marked).sum()), n, 0.0125)
    assert promised["selective error rate", None] == pytest.approx(
        error / (error + right)
    )
    share = 1 - limit(n - int(above.sum()), n, 0.0125)
    assert promised["answered share", None] == pytest.approx(share)


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(
        st.tuples(st.floats(-1e9, 1e9).map(np.float64), st.booleans()),
        min_size=1,
        max_size=60,
    ),
    kind=st.sampled_from(["alarms", "answers"]),
)
def test_explorer_says_what_python_says(rows, kind):
    scores = np.array([score for score, _ in rows])
    marked = np.array([mark for _, mark in rows])
    if kind == "alarms" and len(set(marked)) < 2:
        return
    bands = ThresholdBands.from_scores(scores, marked, kind=kind)
    page = json.loads(json.dumps(bands.to_dict()))
    assert len(page["threshold"]) == len(bands.thresholds)
    for place, exact in enumerate(bands.thresholds):
        _holds_outward(bands, page, place, exact)


def _holds_outward(bands, page, place, exact):
    shown = float(page["threshold"][place])
    at_exact, at_shown = (
        [float(column[0]) for column in bands.limits(np.array([t])).values()]
        for t in (exact, shown)
    )
    assert at_exact == at_shown
    lower = [False, False, False] if page["kind"] == "alarms" else [False, True]
    for value, limit, is_lower in zip(
        page["limit"][place], at_exact, lower, strict=True
    ):
        outward = limit - value if is_lower else value - limit
        assert -1e-15 <= outward <= 1.0001e-4


def test_explorer_of_many_rows_is_short():
    rng = np.random.default_rng(5)
    marked = rng.random(20_000) < 0.1
    bands = ThresholdBands.from_scores(
        marked + rng.normal(size=20_000), marked, kind="alarms"
    )
    page = bands.to_dict()
    assert len(page["threshold"]) == 256
    assert len(json.dumps(page)) < 15_000
    at = bands.thresholds
    for place, shown in enumerate(page["threshold"]):
        exact = at[: np.searchsorted(at, float(shown)) + 1][-1]
        _holds_outward(bands, page, place, exact)
    # The outermost ones are all there.
    assert page["violations"][:3] == [[0, *row[1:]] for row in page["violations"][:3]]
    flagged = [row[2] for row in page["violations"]]
    assert flagged[:32] == list(range(20_000, 20_000 - 32, -1))
    assert flagged[-32:] == list(range(31, -1, -1))


def false_somewhere(kind, rng, n, points):
    """Whether any limit of one draw is false, for a law whose rates are known.

    Scores take `points` values; positive rows (answered wrong) have chances falling or
    rising with the score.
    """
    values = np.arange(points)
    chance = (
        (values + 0.5) / points if kind == "alarms" else 0.4 * (1 - values / points)
    )
    scores = rng.integers(0, points, n)
    marked = rng.random(n) < chance[scores]
    if kind == "alarms" and not 0 < marked.sum() < n:
        return False
    bands = ThresholdBands.from_scores(
        scores.astype(float), marked, kind=kind, confidence=0.95
    )
    of_marked, of_others = chance / points, (1 - chance) / points
    at = np.append(-0.5, values + 0.5)
    limits = bands.limits(at)
    above = values > at[:, None]
    share = above.mean(axis=1)
    if kind == "alarms":
        lower, upper = bands.share
        if not lower <= of_marked.sum() <= upper:
            return True
        truth = {
            "miss rate": (of_marked * ~above).sum(axis=1) / of_marked.sum(),
            "false alarm rate": (of_others * above).sum(axis=1) / of_others.sum(),
            "flagged share": share,
        }
        return any((limits[name] < rate - 1e-12).any() for name, rate in truth.items())
    error = (of_marked * above).sum(axis=1) / np.maximum(share, 1e-300)
    return bool(
        (limits["selective error rate"] < error - 1e-12).any()
        or (limits["answered share"] > share + 1e-12).any()
    )


@pytest.mark.parametrize("kind", ["alarms", "answers"])
@pytest.mark.parametrize(("n", "points"), [(30, 200), (80, 6)])
def test_promises_of_all_thresholds_are_kept(kind, n, points):
    rng = np.random.default_rng(20261123)
    draws = 300
    false = sum(false_somewhere(kind, rng, n, points) for _ in range(draws))
    assert binomtest(false, draws, 0.05, alternative="greater").pvalue > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["alarms", "answers"])
@pytest.mark.parametrize(("n", "points"), [(20, 500), (200, 500), (200, 5)])
def test_promises_of_all_thresholds_are_kept_by_many_draws(kind, n, points):
    rng = np.random.default_rng(7)
    draws = 2000
    false = sum(false_somewhere(kind, rng, n, points) for _ in range(draws))
    assert binomtest(false, draws, 0.05, alternative="greater").pvalue > 1e-4


def test_limits_of_one_threshold_would_be_caught():
    """The same count with pointwise limits is false far too often."""
    rng = np.random.default_rng(11)
    draws, n, false = 300, 50, 0
    for _ in range(draws):
        scores = np.sort(rng.random(n))
        limits = [clopper_pearson(v, n, level=0.1)[1] for v in range(n)]
        false += bool((scores > limits).any())
    assert binomtest(false, draws, 0.05, alternative="greater").pvalue < 1e-10


class TestCertify:
    def test_binary_models_raise_alarms(self, model):
        bands = certify_thresholds(model, X[NEW], y[NEW])
        assert (bands.kind, bands.positive, bands.classes) == ("alarms", 1, (0, 1))
        scores = model.predict_proba(X[NEW])[:, 1]
        same = ThresholdBands.from_scores(scores, y[NEW], kind="alarms")
        assert bounds(bands.at(0.4)) == bounds(same.at(0.4))
        assert set(bands.at(0.4)[0].assumptions) == {
            Assumption.INDEPENDENT,
            Assumption.UNSEEN,
        }

    def test_positive_is_the_class_named(self, model):
        bands = certify_thresholds(model, X[NEW], y[NEW], positive=0)
        scores = model.predict_proba(X[NEW])[:, 0]
        missed, false_alarms, flagged = (
            int(count[0]) for count in bands._counts(np.array([0.3])).values()
        )
        assert missed == ((y[NEW] == 0) & (scores < 0.3)).sum()
        assert false_alarms == ((y[NEW] == 1) & (scores >= 0.3)).sum()
        assert flagged == (scores >= 0.3).sum()

    def test_a_search_and_a_decision_function(self):
        search = GridSearchCV(LinearDiscriminantAnalysis(), {"tol": [1e-4]}, cv=3).fit(
            X[SEEN], y[SEEN]
        )
        bands = certify_thresholds(search, X[NEW], y[NEW])
        assert len(bands.scores) == len(y[NEW])

    def test_several_classes_are_answers(self):
        A, b = load_iris(return_X_y=True)
        lda = LinearDiscriminantAnalysis().fit(A[::2], b[::2])
        bands = certify_thresholds(lda, A[1::2], b[1::2])
        assert bands.kind == "answers"
        with pytest.raises(
            ValueError, match="3 classes; give positive= or kind='answers'"
        ):
            certify_thresholds(lda, A[1::2], b[1::2], kind="alarms")
        one = certify_thresholds(lda, A[1::2], b[1::2], positive=2)
        first, second = one.at(0.5)[:2]
        assert (first.quantity, first.scope) == ("class error rate", 2)
        assert (second.quantity, second.scope) == ("false alarm rate", None)

    def test_selective_models_are_about_their_own_scores(self):
        wrapper = SelectiveClassifier(
            LinearDiscriminantAnalysis(), scoring="margin", random_state=0
        ).fit(X[SEEN], y[SEEN])
        bands = certify_thresholds(wrapper, X[NEW], y[NEW])
        assert bands.kind == "answers"
        answered = wrapper.answers(X[NEW])
        promise = bands.at(wrapper.threshold_)[0]
        assert promise.evidence["answered"] == answered.sum()

    def test_detectors(self):
        forest = IsolationForest(random_state=0).fit(X[SEEN][y[SEEN] == 1])
        truth = np.where(y[NEW] == 1, 1, -1)
        bands = certify_thresholds(forest, X[NEW], truth)
        promises = bands.at(-forest.offset_)
        assert [g.quantity for g in promises] == ["miss rate", "false alarm rate"]
        with pytest.raises(ValueError, match="give `prevalence`"):
            bands.at(0.5, costs=[[0, 1], [5, 0]])
        # Nor do tables say how many future rows are flagged.
        assert "flagged share limit" not in bands.frame().column_names
        assert {len(row) for row in bands.to_dict()["limit"]} == {2}
        more = bands.at(-forest.offset_, prevalence=0.01, costs=[[0, 1], [5, 0]])
        a, b = promises[0].bound, promises[1].bound
        by_name = {g.quantity: g for g in more}
        assert by_name["flagged share"].bound == pytest.approx(0.01 + 0.99 * b)
        assert by_name["error rate"].bound == pytest.approx(0.01 * a + 0.99 * b)
        assert by_name["expected cost"].bound == pytest.approx(0.01 * 5 * a + 0.99 * b)
        precision = 0.01 * (1 - a) / (0.01 * (1 - a) + 0.99 * b)
        assert by_name["precision"].bound == pytest.approx(precision)
        assert Assumption.PREVALENCE in by_name["precision"].assumptions
        assert "the share of positive rows among future rows is 0.01" in str(
            by_name["precision"]
        )

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"kind": "both"}, "`kind` must be"),
            ({"confidence": 1.0}, "`confidence` must lie in"),
            ({"positive": 7}, "`positive` 7 is none of the classes 0, 1"),
            ({"kind": "answers", "positive": 1}, "`positive` is for alarms"),
        ],
    )
    def test_bad_arguments(self, model, change, message):
        with pytest.raises(ValueError, match=message):
            certify_thresholds(model, X[NEW], y[NEW], **change)

    def test_rows_of_the_fit_are_refused(self):
        wrapper = SelectiveClassifier(LinearDiscriminantAnalysis(), random_state=0).fit(
            X[SEEN], y[SEEN]
        )
        with pytest.raises(ValueError, match="were in the fit of the model"):
            certify_thresholds(wrapper, X, y)

    def test_no_row(self, model):
        with pytest.raises(ValueError, match="holds 0 rows"):
            certify_thresholds(model, X[:0], y[:0])


class TestWrappers:
    def test_selective(self):
        wrapper = SelectiveClassifier(LinearDiscriminantAnalysis(), random_state=0).fit(
            X, y
        )
        bands = wrapper.threshold_bands()
        error, _ = bands.at(wrapper.threshold_)
        assert error.evidence["answered"] == wrapper.n_answered_
        assert error.evidence["wrong"] == wrapper.n_wrong_
        assert error.bound >= wrapper.guarantees_[0].bound
        assert error.assumptions == (Assumption.INDEPENDENT,)
        looser = wrapper.with_threshold(0.6)
        assert looser.guarantees_ == bands.at(0.6)
        assert looser.answers(X).sum() >= wrapper.answers(X).sum()
        assert wrapper.guarantees_ != looser.guarantees_
        assert pickle.loads(pickle.dumps(looser)).threshold_ == 0.6
        with pytest.raises(ValueError, match="NaN"):
            wrapper.with_threshold(np.nan)
        # What it says of a threshold that nothing exceeds is about this threshold.
        with pytest.warns(PrudentWarning, match=r"threshold=inf answers none of \d+"):
            none = wrapper.with_threshold(np.inf)
        assert len(none.guarantees_) == 2

    def test_neyman_pearson(self):
        wrapper = NeymanPearsonClassifier(
            LinearDiscriminantAnalysis(), max_class_error={0: 0.05}, random_state=0
        ).fit(X, y)
        bands = wrapper.threshold_bands()
        assert bands.positive == 0
        promise = bands.at(wrapper.thresholds_[0])[0]
        assert (promise.quantity, promise.scope) == ("class error rate", 0)
        assert promise.bound > 0.05
        rank = wrapper.guarantees_[0].evidence["rank"]
        assert promise.evidence["wrong"] == rank - 1
        other = wrapper.threshold_bands(positive=1)
        assert other.positive == 1

    def test_promises_hold_where_rows_have_a_label_that_the_model_does_not_know(self):
        """Scores are uniform and P(1) the score; 15 % are of class 2, at score 0.1."""

        def bands_of(scores, labels):
            rows = norm.ppf(scores)[:, None]
            wrapper.fit(rows, labels)
            try:
                return wrapper.threshold_bands()
            except ValueError:  # they are refused, and this is what to do instead
                return ThresholdBands.from_scores(
                    scores, labels, kind="alarms", positive=1
                )

        frozen = FrozenEstimator(ByFirstColumn().fit([[0], [1]], [0, 1]))
        wrapper = NeymanPearsonClassifier(frozen, max_class_error={1: 0.1})
        flagged, wrongly = 0.85 * 0.7, 0.85 * 0.7**2 / 2  # from the threshold 0.3 on
        truth = {
            ("class error rate", 1): 0.3**2,
            ("class error rate", 0): 0.7**2,
            ("false alarm rate", None): wrongly / (1 - 0.425),
            ("flagged share", 1): flagged,
            ("error rate", None): 0.425 * 0.3**2 + wrongly,
            ("precision", 1): 1 - wrongly / flagged,
        }
        rng, draws, false = np.random.default_rng(20261129), 200, 0
        for _ in range(draws):
            scores = rng.random(600)
            labels = (rng.random(600) < scores).astype(int)
            third = rng.random(600) < 0.15
            scores[third], labels[third] = 0.1, 2
            promises = bands_of(scores, labels).at(0.3)
            assert len(promises) == 5
            false += any(
                (p.bound - truth[p.quantity, p.scope]) * (-1 if p.sense == ">=" else 1)
                < 0
                for p in promises
            )
        assert binomtest(false, draws, 0.05, alternative="greater").pvalue > 1e-3
        with pytest.raises(ValueError, match=f"^{third.sum()} of 600 held-out rows"):
            wrapper.threshold_bands()

    def test_groups_make_promises_about_groups(self):
        groups = np.arange(len(y)) // 2
        wrapper = SelectiveClassifier(LinearDiscriminantAnalysis(), random_state=0).fit(
            X, y, groups=groups
        )
        promise = wrapper.threshold_bands().at(0.9)[0]
        assert promise.unit == "group"
        assert Assumption.GROUPS in promise.assumptions
        with pytest.raises(ValueError, match="of a new group: give `groups`"):
            certify_thresholds(wrapper, X[:9] + 0.1, y[:9])


def test_one_row_of_each_group_counts(model):
    """Ten copies of each row prove no more than the rows themselves."""
    rows, labels = np.repeat(X[NEW], 10, axis=0), np.repeat(y[NEW], 10)
    groups = np.repeat(np.arange(len(y[NEW])), 10)
    for kind in ("alarms", "answers"):
        alone = certify_thresholds(model, X[NEW], y[NEW], kind=kind)
        together = certify_thresholds(model, rows, labels, kind=kind, groups=groups)
        np.testing.assert_array_equal(together.scores, alone.scores)
        promise = together.at(0.9)[0]
        assert promise.bound == alone.at(0.9)[0].bound
        assert Assumption.GROUPS in promise.assumptions


class ByFirstColumn(ClassifierMixin, BaseEstimator):
    """Probability of class 1: the normal law function of the first column."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        positive = norm.cdf(X[:, 0])
        return np.column_stack([1 - positive, positive])

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


def n_false_by_groups(*, named):
    """Samples of 60 groups of 8 like rows, of 300, with a false limit somewhere."""
    rng, n_false = np.random.default_rng(11), 0
    model = ByFirstColumn().fit(np.zeros((2, 1)), np.arange(2))
    for _ in range(300):
        of_group = rng.integers(0, 2, 60)
        groups = np.repeat(np.arange(60), 8)
        middle = rng.normal(1.5 * of_group - 0.75)
        rows = (middle[groups] + 1e-3 * rng.normal(size=480))[:, None]
        bands = certify_thresholds(
            model, rows, of_group[groups], kind="alarms",
            groups=groups if named else None,
        )  # fmt: skip
        at = bands.thresholds[np.isfinite(bands.thresholds)]
        limits, place = bands.limits(at), norm.ppf(at)  # in units of the column
        spread = np.hypot(1, 1e-3)
        missed = norm.cdf((place - 0.75) / spread) > limits["miss rate"]
        alarmed = norm.sf((place + 0.75) / spread) > limits["false alarm rate"]
        n_false += bool((missed | alarmed).any())
    return n_false


def test_promises_about_groups_hold_at_all_thresholds_of_a_known_law():
    n_false = n_false_by_groups(named=True)
    assert binomtest(n_false, 300, 0.05, alternative="greater").pvalue > 1e-3
    assert n_false_by_groups(named=False) > 150


def test_frame_has_a_row_for_each_threshold():
    bands = ThresholdBands.from_scores([0.1, 0.2, 0.2], [0, 1, 0], kind="alarms")
    frame = bands.frame()
    assert frame["threshold"].to_pylist() == [0.1, 0.2, np.inf]
    assert frame["missed"].to_pylist() == [0, 0, 1]
    assert frame["flagged"].to_pylist() == [3, 2, 0]


@pytest.mark.parametrize(
    ("scores", "labels", "change", "message"),
    [
        ([], [], {}, "0 rows"),
        ([0.1, np.nan], [0, 1], {}, "1 of 2 rows have no score"),
        ([0.1, 0.2], [0, 1, 1], {}, "one entry for each row"),
        ([0.1, 0.2], [1, 1], {}, "there are 1 classes: give `positive`"),
        ([0.1, 0.2, 0.3], ["a", "b", "c"], {}, "there are 3 classes"),
        ([0.1, 0.2], ["a", "b"], {"positive": "c"}, "`positive` 'c' is none of"),
        ([0.1, 0.2], [0, 1], {"kind": "sets"}, "`kind` must be 'alarms' or 'answers'"),
        ([0.1, 0.2], [0, 1], {"confidence": 0}, "`confidence` must lie in"),
    ],
)
def test_bad_scores(scores, labels, change, message):
    with pytest.raises(ValueError, match=message):
        ThresholdBands.from_scores(scores, labels, **{"kind": "alarms", **change})


def test_bad_questions():
    alarms = ThresholdBands.from_scores([0.1, 0.2], [0, 1], kind="alarms")
    with pytest.raises(ValueError, match="`prevalence` must lie in"):
        alarms.at(0.1, prevalence=2)
    with pytest.raises(ValueError, match=r"finite of shape \(2, 2\)"):
        alarms.at(0.1, costs=[[0, 1, 2], [1, 0, 2]])
    with pytest.raises(ValueError, match="`threshold` is NaN"):
        alarms.at(np.nan)
    answers = ThresholdBands.from_scores([0.1, 0.2], [0, 1], kind="answers")
    with pytest.raises(ValueError, match="are for alarms"):
        answers.at(0.1, prevalence=0.1)


class TestFind:
    scores = np.random.default_rng(5).random(600)
    fraud = np.random.default_rng(6).random(600) < scores**2
    bands = ThresholdBands.from_scores(scores, fraud, kind="alarms")

    def best(self, figure, allowed, *, bands=None, **given):
        """By brute force over `at` of every threshold."""
        bands = bands or self.bands
        values = {}
        for t in bands.thresholds:
            by_name = {(g.quantity, g.scope): g.bound for g in bands.at(t, **given)}
            if all(compare(by_name[key], limit) for key, limit, compare in allowed):
                values[t] = by_name[figure]
        return min(values.values())

    def test_least_flagged_share_that_keeps_an_error(self):
        t = self.bands.find(minimise="flagged share", class_error=0.3)
        by_name = bounds(self.bands.at(t))
        assert by_name["class error rate", True] <= 0.3
        least = self.best(
            ("flagged share", True), [(("class error rate", True), 0.3, np.less_equal)]
        )
        assert by_name["flagged share", True] == least

    def test_costs_and_prevalence(self):
        costs, given = [[0, 1], [5, 0]], {"prevalence": 0.1}
        t = self.bands.find(minimise="cost", costs=costs, **given)
        cost = bounds(self.bands.at(t, costs=costs, **given))["expected cost", None]
        assert cost == self.best(("expected cost", None), [], costs=costs, **given)

    def test_answers(self):
        bands = ThresholdBands.from_scores(self.scores, self.fraud, kind="answers")
        t = bands.find(minimise="handed over", error=0.5)
        by_name = bounds(bands.at(t))
        assert by_name["selective error rate", None] <= 0.5
        largest = max(
            bounds(bands.at(s))["answered share", None]
            for s in bands.thresholds
            if bounds(bands.at(s))["selective error rate", None] <= 0.5
        )
        assert by_name["answered share", None] == largest
        t = bands.find(minimise="error", answered_share=0.3)
        assert bounds(bands.at(t))["answered share", None] >= 0.3

    def test_limits_that_no_threshold_keeps(self):
        least = min(
            bounds(self.bands.at(t))["class error rate", True]
            for t in self.bands.thresholds
        )
        with pytest.raises(InfeasibleError) as caught:
            self.bands.find(minimise="flagged share", class_error=0.001)
        said = str(caught.value)
        assert said.startswith("no threshold keeps class_error <= 0.001; least limit ")
        number = float(said.rsplit(" ", 1)[1])
        assert least <= number <= least * 1.01
        self.bands.find(minimise="flagged share", class_error=number)
        with pytest.raises(
            InfeasibleError,
            match=r"keeps flagged_share <= 0.1 where class_error <= 0.3; least limit",
        ):
            self.bands.find(minimise="error", class_error=0.3, flagged_share=0.1)
        with pytest.raises(InfeasibleError, match=r"precision >= 0.999; largest limit"):
            self.bands.find(minimise="error", precision=0.999)

    @pytest.mark.parametrize(
        "asked",
        [
            {"minimise": "precision"},
            {"minimise": "happiness"},
            {"minimise": "error", "answered_share": 0.5},
            {"minimise": "cost"},
        ],
    )
    def test_names_that_are_not_known(self, asked):
        with pytest.raises(ValueError, match="`minimise` may be class error, false"):
            self.bands.find(**asked)


class TestDetectorBands:
    rows = np.random.default_rng(0).normal(size=(400, 2))

    @pytest.mark.parametrize(
        "detector",
        [
            LowDensityRejector(random_state=0),
            MinimaxOutlierDetector(random_state=0),
            ConformalDetector(method="split", random_state=0),
            ConformalDetector(method="split", ties="smoothed", random_state=0),
        ],
        ids=lambda d: type(d).__name__,
    )
    def test_limits_are_those_of_held_out_rows(self, detector):
        fitted = clone(detector).fit(self.rows)
        bands = fitted.threshold_bands()
        m = fitted.n_calibration_
        assert (bands.kind, bands.detects, bands.confidence) == ("alarms", True, 0.95)
        assert len(bands.scores) == m
        t = float(np.sort(-fitted.calibration_scores_)[m - 5])  # five alarms
        (promise,) = bands.at(t)  # nothing is said of misses
        assert (promise.quantity, promise.scope) == ("false alarm rate", None)
        assert promise.bound == simultaneous_limits(m, 1 - 0.95)[5]
        assert promise.evidence["claims"] == 1
        assert Assumption.UNSEEN not in promise.assumptions
        alarms = -fitted.calibrated_scores(self.rows) >= t
        assert 0 < alarms.mean() < 0.1
        chosen = bands.find(minimise="false alarm", false_alarm=0.1)
        assert bounds(bands.at(chosen))["false alarm rate", None] <= 0.1
        flagged = bounds(bands.at(t, prevalence=0.01))["flagged share", None]
        assert flagged == pytest.approx(0.01 + 0.99 * promise.bound)
        assert fitted.threshold_bands(confidence=0.5).at(t)[0].bound < promise.bound

    def test_confidence_of_the_detector(self):
        fitted = MinimaxOutlierDetector(confidence=0.9, random_state=0).fit(self.rows)
        assert fitted.threshold_bands().confidence == 0.9

    def test_detectors_that_hold_nothing_out(self):
        full = ConformalDetector(method="full").fit(self.rows[:50])
        with pytest.raises(ValueError, match="holds out no rows as it is set"):
            full.threshold_bands()
        worst = MinimaxOutlierDetector(threshold="distribution_free").fit(self.rows)
        assert not hasattr(worst, "threshold_bands")

    def test_false_alarms_are_within_their_limits_at_all_thresholds(self):
        """Fresh draws of one uniform score: the rate above t is 1 - t."""
        rng, draws, false = np.random.default_rng(8), 300, 0
        for _ in range(draws):
            bands = false_alarm_bands(-rng.random(30), 0.9, Terms(confidence=0.9))
            at = np.nextafter(np.append(0, bands.scores), 2)  # worst behind a row
            limits = bands.limits(at)["false alarm rate"]
            false += bool((limits < 1 - at).any())
        assert binomtest(false, draws, 0.1, alternative="greater").pvalue > 1e-3
        assert binomtest(false, draws, 0.1, alternative="less").pvalue > 1e-6


def test_latest_rows_are_among_the_assumptions():
    terms = Terms(confidence=0.9, latest={"latest rows": 30.0, "first time": 3.0})
    (promise,) = false_alarm_bands(-np.arange(30.0), 0.9, terms).at(12.0)
    assert promise.assumptions == (Assumption.INDEPENDENT_LATEST,)
    assert promise.evidence["latest rows"] == 30


def test_a_label_may_be_called_the_rest():
    rng = np.random.default_rng(0)
    labels = np.array(["a", "b", "the rest"])[rng.integers(0, 3, size=300)]
    settings = {"kind": "alarms", "positive": "the rest"}
    named = ThresholdBands.from_scores(rng.random(300), labels, **settings).at(0.5)
    assert named[0].scope == "the rest"
    renamed = np.where(labels == "the rest", "c", labels)
    rng = np.random.default_rng(0)
    rng.integers(0, 3, size=300)
    others = ThresholdBands.from_scores(
        rng.random(300), renamed, **settings | {"positive": "c"}
    )
    assert [p.bound for p in named] == [p.bound for p in others.at(0.5)]


@pytest.mark.parametrize("cell", [None, np.nan, "b", 2])
def test_answers_are_wrong_or_not(cell):
    # None counted as right, and a label as wrong.
    wrong = np.array([cell, 0, 1, 1], dtype=object)
    with pytest.raises(ValueError, match=f"must be True or False, got {cell!r}"):
        ThresholdBands.from_scores(np.arange(4) / 4, wrong, kind="answers")


def test_rows_without_a_label_are_not_taken_for_negative_ones():
    labels = np.array([1.0, np.nan, 0.0, 1.0])
    with pytest.raises(ValueError, match="holds no label in 1 of 4 rows"):
        ThresholdBands.from_scores(np.arange(4) / 4, labels, kind="alarms", positive=1)


def test_what_is_no_threshold_or_limit_is_refused_by_its_name():
    bands = ThresholdBands.from_scores(
        np.arange(9) / 9, np.arange(9) > 5, kind="alarms"
    )
    with pytest.raises(ValueError, match="`threshold` must be a number, got 'a'"):
        bands.at("a")
    with pytest.raises(ValueError, match="`class_error` must be a number, got 'a'"):
        bands.find(minimise="false alarm", class_error="a")
    with pytest.raises(ValueError, match="`class_error` must be a number, got nan"):
        bands.find(minimise="false alarm", class_error=np.nan)
    for look in (bands.limits, bands.figures):
        with pytest.raises(ValueError, match=r"must be a list of numbers, got .* \(\)"):
            look(0.5)
        with pytest.raises(ValueError, match="`thresholds` are NaN in 1 of 2 rows"):
            look([0.5, np.nan])
