"""`prudent.audit`: exact tests, laws whose truth is known, and what is reported."""

import dataclasses
import itertools
import json
import math
import pickle
import time
from functools import partial
from typing import ClassVar

import numpy as np
import pytest
from scipy.stats import beta, betabinom, binom, nct, norm
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    OutlierMixin,
    is_outlier_detector,
)
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression

import prudent
from auditing.methods import (
    HeldOutError,
    OrderStatistic,
    SplitDetector,
    SureDetector,
)
from prudent import Assumption, ClassMoments, ConformalClassifier, Guarantee
from prudent.auditing import STANDARD, Law
from prudent.auditing.evidence import (
    UNKNOWN,
    at_least,
    betting_log_wealth,
    demands,
    is_about_training_rows,
    rank_sum_p,
)
from prudent.auditing.laws import INDEPENDENT, NORMAL, UNIMODAL
from prudent.evaluation.estimators import ClasswiseRejector
from prudent.minimax import guarantees_of
from prudent.minimax.radii import known_moments

LINE = {"laws": ["line"], "sizes": (20,)}
DETECT = {"answer": "detect", **LINE}

# --- tests --------------------------------------------------------------------------


def test_tail_is_the_binomial_one():
    for n, rate in itertools.product((1, 7, 400), (0.05, 0.5)):
        for k in range(0, n + 1, max(1, n // 7)):
            assert at_least(k, n, rate) == pytest.approx(binom.sf(k - 1, n, rate))


@pytest.mark.parametrize("n_rows", [None, 250])
def test_sum_of_rates_has_its_exact_law(n_rows):
    laws = [(1, 9), (2, 19)]
    if n_rows is None:
        edges = np.arange(201) / 200
        pmf = [np.diff(beta.cdf(edges, k, m + 1 - k)) for k, m in laws]
        rates = np.array([0.1031, 0.2049])
        total = sum(math.floor(rate * 200) for rate in rates)
    else:
        counts = np.arange(251)
        cut = counts * 200 // 250
        pmf = [
            np.bincount(cut, betabinom.pmf(counts, 250, k, m + 1 - k)) for k, m in laws
        ]
        rates = np.array([26, 51]) / 250
        total = 26 * 200 // 250 + 51 * 200 // 250
    expected = np.convolve(*pmf)[total:].sum()
    assert rank_sum_p(rates, laws, n_rows) == pytest.approx(expected, abs=1e-13)


@pytest.mark.parametrize("bound", [0.0, 0.1, 0.5])
def test_bets_are_fair_over_all_paths(bound):
    """E[wealth] <= 1 at every time for rates in {0, 1}, by enumeration of 2^9 paths."""
    for horizon in (9, 400):
        total = np.zeros(9)
        for path in itertools.product((0.0, 1.0), repeat=9):
            chance = math.prod(bound if x else 1 - bound for x in path)
            if chance:
                wealth = betting_log_wealth(
                    np.array(path), np.full(9, bound), horizon=horizon, target=10.0
                )
                total += chance * np.exp(wealth)
        np.testing.assert_allclose(total, 1.0, rtol=1e-12)


@pytest.mark.parametrize("is_given_the_bound", [True, False])
def test_bets_are_fair_where_the_rate_has_its_bound_as_mean_given_that(
    is_given_the_bound,
):
    """Bounds of .2 or .5: that the mean of the rates is theirs, .35, is not enough."""
    total = np.zeros(4)
    for path in itertools.product((0.2, 0.5), (0.0, 1.0), repeat=4):
        bounds, rates = np.array(path[::2]), np.array(path[1::2])
        means = bounds if is_given_the_bound else np.full(4, 0.35)
        chance = np.prod(np.where(rates > 0, means, 1 - means) / 2)
        wealth = betting_log_wealth(rates, bounds, horizon=9, target=10.0)
        total += chance * np.exp(wealth)
    if is_given_the_bound:
        np.testing.assert_allclose(total, 1.0, rtol=1e-12)
    else:
        assert total[0] > 1.1
        assert (np.diff(total) > 0).all()


def test_a_bound_of_zero_that_is_exceeded_is_refuted_for_certain():
    wealth = betting_log_wealth(
        np.array([0.0, 0.1]), np.zeros(2), horizon=400, target=10.0
    )
    assert wealth[1] == math.inf


def test_early_stops_and_holm_keep_the_level():
    """A method at its bound, in many small audits: rarely called broken."""
    coin = Law.finite("coin", [[0.0], [1.0]], [0, 0])

    class Coin:
        def fit(self, X, y):
            self.wrong_ = X[0, 0] == 1
            self.guarantees_ = (
                Guarantee(quantity="error rate", bound=0.5, sense="<=", confidence=0.5),
            )
            return self

        def predict(self, X):
            return np.full(len(X), int(self.wrong_))

    broken = sum(
        prudent.audit(
            Coin, laws=[coin], sizes=(1, 2), budget=60, level=0.1, random_state=seed
        ).verdict == "broken"
        for seed in range(60)
    )  # fmt: skip
    assert binom.sf(broken - 1, 60, 0.1) > 1e-3


class TwoBounds(BaseEstimator):
    """Alarms beyond the largest row, with promises that differ in their bound alone."""

    def fit(self, X):
        self.cut_ = X.max()
        self.guarantees_ = tuple(
            Guarantee(
                quantity="false alarm rate", bound=bound, sense="<=", confidence=0.9
            )
            for bound in self.bounds_of(len(X))
        )
        return self

    def bounds_of(self, n):
        """P(rate beyond b) = (1 - b)^n = 0.1 for the first."""
        return 1 - 0.1 ** (1 / n), 1 - 0.02 ** (1 / n)

    def predict(self, X):
        return np.where(X[:, 0] > self.cut_, -1, 1)


class SecondIsFalse(TwoBounds):
    """The second bound is beaten in most fits."""

    def bounds_of(self, n):
        return 1 - 0.1 ** (1 / n), 1 - 0.6 ** (1 / n)


def test_promises_that_differ_in_their_bound_are_tested_apart():
    """Two true promises of a fit fail together: they are no independent draws."""
    uniform = Law("uniform", lambda n, rng: (rng.uniform(size=(n, 1)), np.zeros(n)))
    given = {"answer": "detect", "laws": [uniform], "sizes": (30,), "budget": 100}
    audit = prudent.audit(TwoBounds(), **given)
    assert [row.claim for row in audit.rows] == [
        "false alarm rate", "false alarm rate (2)"
    ]  # fmt: skip
    assert [row.claims for row in audit.rows] == [100, 100]
    assert audit.verdict == "no violation found"
    wrong = prudent.audit(SecondIsFalse(), **given)
    assert [row.is_refuted for row in wrong.rows] == [False, True]
    assert wrong.worst_case.claim.bound < audit.rows[0].mean_bound


def test_promises_of_subgroups_are_told_apart_by_their_names():
    """Each site has a promise where it looks good: pooled they would be too many."""
    sites = Law("sites", lambda n, rng: (rng.integers(5, size=(n, 1)), np.zeros(n)))

    class Sites(BaseEstimator):
        def fit(self, X, y):
            wrong = np.random.default_rng(int(1e6 * X.mean())).random(5) < 0.3
            self.guarantees_ = tuple(
                Guarantee(
                    quantity="error rate", bound=0.1, sense="<=", confidence=0.5,
                    subgroup=f"site={k}",
                )
                for k in np.flatnonzero(wrong)
            )  # fmt: skip
            return self

        def predict(self, X):
            return np.ones(len(X))  # wrong in every row

        def is_about(self, guarantee, X):
            return X[:, 0] == int(guarantee.subgroup[-1])

    found = prudent.audit(Sites(), laws=[sites], sizes=(50,), budget=60)
    assert {row.claim for row in found.rows} == {
        f"error rate, site={k}" for k in range(5)
    }
    # Each is made, falsely, in 30 % of the fits, where 50 % may be false.
    assert found.verdict == "no violation found"


class OfTheRare(BaseEstimator):
    """Always wrong, with a promise about a class of which few rows are drawn."""

    def fit(self, X, y):
        self.guarantees_ = (
            Guarantee(
                quantity="class error rate", bound=0.1, sense="<=", confidence=0.5,
                scope=1,
            ),
        )  # fmt: skip
        return self

    def predict(self, X):
        return np.full(len(X), 2)


def test_a_promise_about_rare_rows_is_counted_where_more_rows_hold_some():
    """2000 rows hold none of the class in two of three draws, 20 000 do in all."""

    def draw(n, rng):
        y = (rng.random(n) < 5e-4).astype(int)
        y[: min(1, n)] = 0
        return rng.normal(size=(n, 1)), y

    rare = Law("rare", draw)
    found = prudent.audit(OfTheRare(), laws=[rare], sizes=(20,), budget=20)
    (row,) = found.rows
    assert row.claims == row.broken == 20
    assert found.verdict == "broken"


def test_the_model_does_not_draw_the_numbers_of_its_rows():
    """It draws as the law does, and finds none of its rows, old or fresh."""
    uniform = Law("uniform", lambda n, rng: (rng.uniform(size=(n, 1)), np.zeros(n)))
    met = []

    class Guesser(BaseEstimator):
        def __init__(self, random_state=None):
            self.random_state = random_state

        def meets(self, X):
            rng = np.random.default_rng(self.random_state)
            met.append(bool((rng.uniform(size=X.shape) == X).any()))
            return np.zeros(len(X), dtype=bool)

        def fit(self, X):
            self.meets(X)
            return self

    claim = Guarantee(quantity="false alarm rate", bound=0.5, sense="<=")
    for size in (5, 2000):
        prudent.audit(
            Guesser(), claim, answer=Guesser.meets, laws=[uniform], sizes=(size,),
            budget=3,
        )  # fmt: skip
    assert len(met) == 12
    assert not any(met)


class HalfRight:
    """Always right in one half of the rows, always wrong in the other."""

    def __init__(self, half):
        self.half = half

    def fit(self, X, y):
        self.guarantees_ = (
            Guarantee(quantity="error rate", bound=0.6, sense="<=", subgroup=self.half),
        )
        return self

    def predict(self, X):
        return np.zeros(len(X), dtype=int)

    def is_about(self, promise, X):
        return X[:, 0] == (promise.subgroup == "right half")


def test_a_promise_about_a_subgroup_is_held_against_its_own_rows():
    law = Law.finite("halves", [[0.0], [1.0]], [1, 0])
    for half, verdict in (
        ("left half", "broken"),
        ("right half", "no violation found"),
    ):
        made = partial(HalfRight, half)
        audit = prudent.audit(made, laws=[law], sizes=(5,), budget=20)
        assert audit.verdict == verdict


@pytest.mark.parametrize("confidence", [None, 0.9])
def test_conformal_promises_by_group_pass(confidence):
    model = ConformalClassifier(
        LogisticRegression(),
        condition=lambda X: (X[:, 0] > 0).astype(int),
        calibration_size=0.6,
        confidence=confidence,
        level=0.2,
        random_state=0,
    )
    laws = ["six atoms", "imbalance 1:100"]
    audit = prudent.audit(model, laws=laws, sizes=(60,), budget=60)
    assert audit.verdict == "no violation found", str(audit)
    assert len(audit.rows) == 4  # two groups under two laws


# --- laws ---------------------------------------------------------------------------


@pytest.mark.parametrize("law", STANDARD.values(), ids=list(STANDARD))
def test_laws_draw_what_their_truth_says(law):
    X, y = law.draw(60, np.random.default_rng(0))
    again, _ = law.draw(60, np.random.default_rng(0))
    np.testing.assert_array_equal(X, again)
    assert len(X) == len(y) == 60
    assert np.isfinite(X).all()
    if law.truth is not None:
        rows, labels, chances = law.truth
        assert chances.sum() == pytest.approx(1)
        known = {(*row, label) for row, label in zip(rows, labels, strict=True)}
        assert {(*row, label) for row, label in zip(X, y, strict=True)} <= known


def test_two_points_attain_chebyshevs_bound():
    X, y, chances = STANDARD["two points"].truth
    model = prudent.MinimaxProbabilityClassifier.from_moments(
        [np.average(X[y == c], axis=0, weights=chances[y == c]) for c in (0, 1)],
        [np.cov(X[y == c].T, aweights=chances[y == c], ddof=0) for c in (0, 1)],
        [100, 100],
    )
    wrong = model.predict(X) != y
    for promise in model.guarantees_:
        inside = y == promise.scope
        rate = chances[inside & wrong].sum() / chances[inside].sum()
        assert rate == pytest.approx(0.2)
        assert rate <= promise.bound + 1e-9
        assert promise.bound == pytest.approx(0.2, abs=1e-4)


def test_a_table_is_a_population():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(50, 2)), rng.integers(0, 2, 50)
    found = prudent.audit(HeldOutError, laws=(X, y), sizes=(30,), budget=20)
    assert [row.law for row in found.rows] == ["table"]
    assert found.verdict == "no violation found"


def test_draws_beyond_their_bound_are_explained_where_nothing_is_refuted():
    """With confidence .95 some draws of a true promise are broken: it is said why."""
    found = prudent.audit(HeldOutError, laws=["line"], sizes=(60,), budget=400)
    assert found.verdict == "no violation found"
    (row,) = found.rows
    assert 0 < row.broken <= 2 * row.allowed
    (remark,) = found.remarks()
    assert remark.startswith("1 row has draws beyond their bound (broken), which")
    assert remark.endswith(f"at level 0.01 (Holm); the smallest is {row.p_value:.2g}.")
    quiet = prudent.audit(HeldOutError, laws=["line"], sizes=(60,), budget=2)
    assert quiet.rows[0].broken == 0
    assert quiet.remarks() == []


def test_a_law_of_ones_own_is_counted_on_fresh_rows():
    law = Law("own", lambda n, rng: (rng.normal(size=(n, 1)), np.zeros(n, dtype=int)))
    found = prudent.audit(
        partial(SplitDetector, "ceil of the rank"), answer="detect", laws=[law],
        sizes=(30,),
    )  # fmt: skip
    assert found.verdict == "broken"
    (row,) = found.rows
    # k = 2 of 15 rows where 1 is allowed; bets stop early.
    assert row.mean_truth == pytest.approx(2 / 16, abs=0.02)
    assert row.mean_bound == pytest.approx(0.1)


# --- what is counted ----------------------------------------------------------------


class Constant(ClassifierMixin, BaseEstimator):
    """Always one answer."""

    def __init__(self, promises=(), sets=None):
        self.promises, self.sets = promises, sets

    def fit(self, X, y):
        self.classes_ = np.array([0, 1])
        self.guarantees_ = self.promises
        return self

    def predict(self, X):
        return np.zeros(len(X), dtype=int)

    def predict_set(self, X):
        return np.tile(self.sets, (len(X), 1))

    def answers(self, X):
        return X[:, 0] > 0


UNEVEN = Law.finite("uneven", [[0.0], [1.0], [1.0]], [1, 0, 1], [0.5, 0.3, 0.2])


@pytest.mark.parametrize(
    ("promise", "rate"),
    [
        ({"quantity": "error rate", "bound": 0.69, "sense": "<="}, 0.7),
        ({"quantity": "error rate", "bound": 0.71, "sense": ">="}, 0.3),
        ({"quantity": "class error rate", "bound": 0.98, "sense": "<=", "scope": 1}, 1),
        ({"quantity": "coverage", "bound": 0.71, "sense": ">="}, 0.3),
        ({"quantity": "coverage", "bound": 0.69, "sense": "<="}, 0.7),
        ({"quantity": "selective error rate", "bound": 0.39, "sense": "<="}, 0.4),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_rates_are_those_of_the_quantity(promise, rate):
    model = Constant((Guarantee(**promise),), sets=np.array([False, True]))
    found = prudent.audit(model, laws=[UNEVEN], sizes=(5,), budget=20)
    assert found.verdict == "broken"
    (row,) = found.rows
    assert row.mean_truth == pytest.approx(rate)
    slack = 0.02 if promise["sense"] == "<=" else -0.02
    kept = Guarantee(**promise | {"bound": promise["bound"] + slack})
    again = prudent.audit(
        Constant((kept,), model.sets), laws=[UNEVEN], sizes=(5,), budget=20
    )
    assert again.verdict == "no violation found"


def test_miss_rates_are_those_of_anomalies_the_fit_has_not_seen():
    law = Law.finite("two kinds", [[0.0], [9.0], [1.0]], [1, -1, -1], [0.5, 0.2, 0.3])

    class Beyond(SplitDetector):
        def fit(self, X):
            assert (X == 0).all()
            self.guarantees_ = (
                Guarantee(quantity="miss rate", bound=0.59, sense="<="),
                Guarantee(quantity="false alarm rate", bound=0.0, sense="<="),
            )
            return self

        def predict(self, X):
            return np.where(X[:, 0] > 5, -1, 1)

    found = prudent.audit(Beyond, answer="detect", laws=[law], sizes=(20,), budget=LOOK)
    truth = {row.claim: (row.mean_truth, row.is_refuted) for row in found.rows}
    assert truth == {
        "miss rate": (pytest.approx(0.6), True),
        "false alarm rate": (0.0, False),
    }


LOOK = 20


def test_a_promise_about_moments_is_held_to_the_rows_they_come_from():
    found = prudent.audit(
        prudent.MinimaxProbabilityClassifier(), laws=["normal"], sizes=(20,), budget=5
    )
    assert {row.claim for row in found.rows} == {
        *("class error rate, 0", "class error rate, 1"),
        *("class error rate, 0, from moments", "class error rate, 1, from moments"),
    }
    assert found.verdict == "no violation found"
    # What was shrunk is the covariance of no rows: nothing can be tested.
    shrunk = prudent.MinimaxProbabilityClassifier(covariance=0.5)
    found = prudent.audit(shrunk, laws="standard", sizes=(20,), budget=1)
    assert found.verdict == "nothing to test"


ROWS, SAME_LAW = frozenset({INDEPENDENT}), frozenset({INDEPENDENT, UNKNOWN})
MINIMAX, ONE_CLASS = (
    prudent.MinimaxProbabilityClassifier,
    partial(prudent.MinimaxOutlierDetector, threshold="distribution_free"),
)


def fitted(model):
    X, y = STANDARD["normal"].draw(60, np.random.default_rng(0))
    return model.fit(X) if is_outlier_detector(model) else model.fit(X, y)


@pytest.mark.parametrize(
    ("model", "needs", "about_rows"),
    [
        (MINIMAX(), ROWS, True),
        (MINIMAX(mean_radius=0.1), ROWS, True),
        (MINIMAX(covariance_radius=0.1), ROWS, True),
        (MINIMAX(covariance=0.5), SAME_LAW, False),
        (MINIMAX(covariance="oas"), SAME_LAW, False),
        (MINIMAX(covariance=0.5, mean_radius=0.1), SAME_LAW, False),
        (MINIMAX(uncertainty="gaussian"), ROWS | {NORMAL}, False),
        (ONE_CLASS(), ROWS, True),
        (ONE_CLASS(mean_radius=0.1), ROWS, True),
        (ONE_CLASS(covariance="oas"), SAME_LAW, False),
        (ConformalClassifier(), ROWS, False),
        (ConformalClassifier(condition="class"), ROWS, False),
        (ConformalClassifier(condition=lambda X: X[:, 0] > 0), ROWS, False),
        (prudent.LowDensityRejector(false_alarm_rate=0.2, random_state=0), ROWS, False),
        (
            prudent.SelectiveClassifier(
                LogisticRegression(), error_rate=0.3, random_state=0
            ),
            ROWS,
            False,
        ),
    ],
)
def test_what_our_own_sentences_ask_of_a_law(model, needs, about_rows):
    """Fails where a family says otherwise what it assumes than audits understand."""
    promises = fitted(model).guarantees_
    assert promises
    for promise in promises:
        again = pickle.loads(pickle.dumps(promise))
        assert demands(again) == needs, str(promise)
        assert is_about_training_rows(again) == about_rows, str(promise)


@pytest.mark.parametrize("radius", [0.0, 0.1])
def test_given_moments_are_those_of_rows(radius):
    given = [[0.0, 0.0], [2.0, 0.0]], [np.eye(2)] * 2, [30, 30]
    told_apart = MINIMAX.from_moments(*given, classes=[0, 1], mean_radius=radius)
    one = prudent.MinimaxOutlierDetector.from_moments(
        *(part[:1] for part in given),
        threshold="distribution_free",
        mean_radius=radius,
    )
    for promise in (*told_apart.guarantees_, *one.guarantees_):
        assert is_about_training_rows(promise)
        assert demands(promise) == ROWS


def test_floors_of_covariances_leave_the_rows_a_law_of_the_promise():
    """Larger covariances hold for more laws."""
    for covariance, about_rows in [
        ("empirical", True),
        (0.0, True),
        ("oas", False),
        (0.5, False),
    ]:
        assumptions, _ = known_moments(
            "plug-in", covariance, with_radii=False, floor=1e-8
        )
        promise = Guarantee(
            quantity="class error rate",
            bound=0.5,
            sense="<=",
            scope=0,
            assumptions=assumptions,
        )
        assert is_about_training_rows(promise) == about_rows


def test_training_rows_are_no_normal_law_of_their_moments():
    promise = Guarantee(
        quantity="false alarm rate",
        bound=0.05,
        sense="<=",
        assumptions=(Assumption.NORMALITY, Assumption.MOMENTS_PLUG_IN),
    )
    assert not is_about_training_rows(promise)
    assert not demands(promise) <= set(STANDARD["normal"].satisfies)


@pytest.mark.parametrize(
    "assumption",
    [
        Assumption.PREVALENCE,
        Assumption.EVENTS_PLUG_IN,
        Assumption.EVENTS_SMOOTHED,
        Assumption.INTRUDER_FAR,
    ],
)
def test_no_law_is_known_to_have_the_probabilities_that_a_promise_assumes(assumption):
    """Frequencies of a few rows are not the probabilities of the law behind them."""
    promise = Guarantee(
        quantity="false alarm rate", bound=0.0, sense="<=", assumptions=(assumption,)
    )

    def always(model, X):
        return np.ones(len(X), dtype=bool)

    model = prudent.MinimaxOutlierDetector()
    settings = {"answer": always, "sizes": (20,), "budget": 2}
    found = prudent.audit(model, promise, laws="standard", **settings)
    assert found.verdict == "nothing to test"
    assert found.why_nothing.endswith("none about a rate under these laws")
    found = prudent.audit(model, promise, laws=["line"], **settings)
    assert not found.rows
    assert {row.law for row in found.outside} == {"line"}


def test_a_promise_about_unimodal_laws_is_tested_on_laws_known_to_be_so():
    """Vysochanskij and Petunin: at most 1/9 beyond two deviations of a law of one peak.

    Atoms at -1, 0 and 1 have .2 there.
    """
    promise = Guarantee(
        quantity="false alarm rate",
        bound=1 / 9,
        sense="<=",
        assumptions=(Assumption.UNIMODAL,),
    )
    atoms = Law.finite("atoms", [[-1.0], [0.0], [1.0]], [0, 0, 0], [0.1, 0.8, 0.1])
    flat = Law(
        "flat",
        lambda n, rng: (rng.uniform(-1, 1, (n, 1)), np.zeros(n)),
        satisfies=(INDEPENDENT, UNIMODAL),
    )

    def beyond(model, X):
        return np.abs(X[:, 0]) > 2 * np.sqrt(0.2)

    settings = {"answer": beyond, "sizes": (20,), "budget": 5}
    model = prudent.MinimaxOutlierDetector()
    found = prudent.audit(model, promise, laws=[atoms, flat], **settings)
    assert [row.law for row in found.outside] == ["atoms"]
    assert [row.law for row in found.rows] == ["flat"]
    assert found.verdict == "no violation found"
    found = prudent.audit(model, promise, laws=[atoms], **settings)
    assert found.verdict == "nothing to test"
    # To a detector both classes are one law; a classifier's promise is about each.
    found = prudent.audit(model, promise, laws="standard", **settings)
    assert found.verdict == "nothing to test"
    of_a_class = dataclasses.replace(
        promise, quantity="class error rate", scope=0, bound=1.0
    )
    linear = LinearDiscriminantAnalysis()
    found = prudent.audit(linear, of_a_class, laws="standard", sizes=(20,), budget=2)
    assert found.rows
    assert all(NORMAL in STANDARD[row.law].satisfies for row in found.rows)


class NormalLimit:
    """At most 30 % beyond the limit with confidence .95, if all rows are normal."""

    def fit(self, X):
        n = len(X)
        factor = nct.ppf(0.95, n - 1, norm.ppf(0.7) * n**0.5) / n**0.5
        self.limit_ = X[:, 0].mean() + factor * X[:, 0].std(ddof=1)
        return self

    def predict(self, X):
        return np.where(X[:, 0] > self.limit_, -1, 1)


def test_two_normal_classes_are_no_normal_law_for_a_detector():
    promise = Guarantee(
        quantity="false alarm rate",
        bound=0.3,
        sense="<=",
        confidence=0.95,
        assumptions=(Assumption.NORMALITY,),
    )
    one_class = Law(
        "one normal class",
        lambda n, rng: (rng.standard_normal((n, 1)), np.zeros(n)),
        satisfies=(INDEPENDENT, NORMAL),
    )
    settings = {"answer": "detect", "sizes": (200,), "budget": 100}
    found = prudent.audit(NormalLimit, promise, laws="standard", **settings)
    assert found.verdict == "nothing to test"
    found = prudent.audit(NormalLimit, promise, laws=["normal", one_class], **settings)
    assert [row.law for row in found.outside] == ["normal"]
    assert found.outside[0].p_value < 0.01
    assert [row.law for row in found.rows] == ["one normal class"]
    assert found.verdict == "no violation found"
    promise = dataclasses.replace(promise, bound=0.2)
    found = prudent.audit(NormalLimit, promise, laws=[one_class], **settings)
    assert found.verdict == "broken"


def test_linear_promises_are_held_to_the_rows_they_come_from():
    X, y = STANDARD["normal"].draw(60, np.random.default_rng(0))
    linear = LinearDiscriminantAnalysis().fit(X, y)
    for promise in guarantees_of(linear, ClassMoments.from_arrays(X, y)):
        assert is_about_training_rows(promise)
        assert demands(promise) == ROWS


def test_laws_outside_the_assumptions_are_run_on_request_and_stand_apart():
    found = prudent.audit(
        partial(SureDetector, None), answer="detect", laws=["duplicated rows"],
        sizes=(60,), budget=100,
    )  # fmt: skip
    assert found.verdict == "nothing to test"
    assert not found.rows
    (row,) = found.outside
    assert row.broken > 2 * row.allowed
    assert "outside its assumptions" in str(found)
    normal = prudent.MinimaxProbabilityClassifier(uncertainty="gaussian")
    found = prudent.audit(normal, laws=["line"], sizes=(60,), budget=2)
    assert {row.law for row in found.outside} == {"line"}


def test_rows_of_small_laws_are_asked_one_at_a_time():
    asked = []

    class Counts(Constant):
        def predict(self, X):
            asked.append(len(X))
            return super().predict(X)

    promise = Guarantee(quantity="error rate", bound=1.0, sense="<=", confidence=0.9)
    prudent.audit(lambda: Counts((promise,)), laws=[UNEVEN], sizes=(5,), budget=1)
    assert asked == [1, 1, 1]


def test_claims_and_answers_of_methods_without_promises():
    claim = Guarantee(
        quantity="error rate", bound=0.02, sense="<=", average_over="training samples"
    )
    found = prudent.audit(LogisticRegression(), claim, **LINE, budget=60)
    assert found.verdict == "broken"
    by_model = prudent.audit(
        LogisticRegression(), lambda model: claim, **LINE, budget=60,
        answer=lambda model, X: model.predict_proba(X).argmax(axis=1),
    )  # fmt: skip
    assert by_model.rows == found.rows
    sets = Guarantee(quantity="coverage", bound=0.98, sense=">=", confidence=0.9)
    found = prudent.audit(
        LogisticRegression(), sets, **LINE, budget=60,
        answer=lambda model, X: model.predict_proba(X) > 0.4,
    )  # fmt: skip
    assert found.verdict == "broken"
    labels = prudent.audit(
        LogisticRegression(), sets, answer="predict", **LINE, budget=60
    )
    assert labels.verdict == "broken"


def test_draws_without_a_promise_count_as_kept_and_errors_are_told():
    class Sometimes(HeldOutError):
        def fit(self, X, y):
            if y[0]:
                raise ValueError("not today")
            return super().fit(X, y)

    found = prudent.audit(Sometimes, laws=["line"], sizes=(60,), budget=40)
    (row,) = found.rows
    assert row.claims + row.refused == 40
    assert row.refused > 5
    assert row.allowed == pytest.approx(0.1 * 40)
    assert found.refusals == {"ValueError: not today": row.refused}

    def never():
        raise RuntimeError("no such thing")

    found = prudent.audit(never, **LINE, budget=100)
    assert found.verdict == "nothing to test"
    assert (
        found.head
        == "nothing to test: every draw ended in an error, and none in a promise"
    )
    assert "50 draws: RuntimeError: no such thing" in str(found)


def test_a_method_that_promises_nothing_has_nothing_to_test():
    found = prudent.audit(LogisticRegression(), **LINE, budget=100)
    assert (found.verdict, found.rows, found.worst_case) == (
        "nothing to test",
        (),
        None,
    )
    assert found.why_nothing == "it promises nothing by itself under these laws"


# --- what is reported ---------------------------------------------------------------


@pytest.fixture(scope="module")
def broken():
    return prudent.audit(
        partial(OrderStatistic, "rank one too high"), laws=["line", "six atoms"],
        sizes=(60, 100), budget=200,
    )  # fmt: skip


def test_the_worst_case_is_drawn_again_by_its_line(broken):
    assert broken.verdict == "broken"
    worst = broken.worst_case
    refuted = [row.size for row in broken.rows if row.is_refuted]
    assert worst.size == min(refuted)
    factory = partial(OrderStatistic, "rank one too high")
    again = eval(worst.line, {"prudent": prudent, "factory": factory})
    (row,) = again.rows
    assert (row.claims, row.broken) == (1, 1)
    assert again.worst_case == worst
    assert worst.truth > worst.claim.bound


def test_the_line_names_what_was_given_where_it_has_no_text_of_its_own():
    law = Law("skewed", lambda n, rng: (rng.exponential(size=(n, 1)), np.zeros(n)))
    claim = prudent.Guarantee(quantity="false alarm rate", bound=0.001, sense="<=")

    class Largest:
        def fit(self, X):
            self.largest_ = X.max()
            return self

    def answer(model, X):
        return X[:, 0] > model.largest_

    given = {"law": law, "claim": claim, "answer": answer}
    audit = prudent.audit(
        Largest, claim, answer=answer, laws=law, sizes=(20,), budget=50
    )
    worst = audit.worst_case
    assert worst.line == (
        "prudent.audit(factory, claim, answer=answer, laws=[law], sizes=(20,), "
        f"budget=1, random_state={worst.seed})"
    )
    again = eval(worst.line, {"prudent": prudent, "factory": Largest, **given})
    assert again.worst_case == worst
    # A law of one's own that bears the name of a standard one is not that one.
    namesake = dataclasses.replace(law, name="line")
    audit = prudent.audit(
        Largest, claim, answer=answer, laws=namesake, sizes=(20,), budget=50
    )
    assert "laws=[law]" in audit.worst_case.line


def test_the_line_is_the_same_from_other_processes(broken):
    again = prudent.audit(
        partial(OrderStatistic, "rank one too high"), laws=["line", "six atoms"],
        sizes=(60, 100), budget=200, n_jobs=2,
    )  # fmt: skip
    assert again.worst_case == broken.worst_case
    assert again.worst_case.line == broken.worst_case.line


def test_one_table(broken):
    lines = str(broken).splitlines()
    assert lines[0].startswith("broken: 4 rows of at most 200 draws")
    assert lines[1].split() == [
        *("law", "rows", "claim", "claims", "broken", "allowed", "p"),
        *("mean", "bound", "mean", "truth", "sharpness"),
    ]
    assert "worst case: The class error rate of class 1 is at most 0.2" in lines[-1]


def test_frame_and_json(broken):
    table = broken.frame()
    assert table.num_rows == 4
    assert {"law", "size", "claims", "broken", "allowed", "p_value"} <= set(
        table.column_names
    )
    told = json.loads(json.dumps(broken.to_dict(), allow_nan=False))
    assert told["verdict"] == "broken"
    assert told["worst_case"]["line"] == broken.worst_case.line
    row = told["rows"][0]
    assert row["sharpness"] == pytest.approx(row["mean_bound"] / row["mean_truth"])


def test_p_values_are_exact_where_all_draws_are_made():
    found = prudent.audit(SureDetector, answer="detect", laws=["line"], budget=60)
    for row in found.rows:
        assert row.claims == 60
        assert row.p_value == pytest.approx(binom.sf(row.broken - 1, 60, 0.1))


def test_false_promises_cost_few_draws():
    wild = prudent.audit(partial(SureDetector, "ceil of the rank"), **DETECT)
    (row,) = wild.rows
    assert row.is_stopped
    assert row.claims < 100
    assert row.p_value <= 1e-3 / 10


def test_audits_repeat_and_seeds_differ():
    settings = {"budget": 30, **DETECT}
    first = prudent.audit(SplitDetector, **settings)
    assert prudent.audit(SplitDetector, **settings).rows == first.rows
    assert prudent.audit(SplitDetector, random_state=1, **settings).rows != first.rows


@pytest.mark.slow
def test_processes_change_nothing():
    detector = prudent.MinimaxOutlierDetector()
    settings = {"laws": ["line", "normal"], "sizes": (20, 60), "budget": 20}
    alone = prudent.audit(detector, **settings)
    assert prudent.audit(detector, n_jobs=2, **settings).rows == alone.rows


def test_what_makes_no_model_is_refused():
    with pytest.raises(TypeError, match="`factory` must be an estimator or .* got 3"):
        prudent.audit(3)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"budget": 0}, "`budget` must be an integer >= 1, got 0."),
        ({"level": 1.5}, r"`level` must lie in \(0, 1\), got 1.5."),
        ({"sizes": (0,)}, "`sizes` must be integers >= 1"),
        ({"laws": ["nowhere"]}, "no law 'nowhere'; there are normal, "),
        ({"laws": []}, "`laws` is empty"),
        ({"answer": "guess"}, "`answer` must be 'predict', 'predict_set', 'detect'"),
        (
            {"claim": Guarantee(quantity="expected cost", bound=1.0, sense="<=")},
            "an expected cost is not a rate",
        ),
    ],
)
def test_wrong_arguments(settings, message):
    with pytest.raises(ValueError, match=message):
        prudent.audit(LogisticRegression(), **settings)


# --- CPU ----------------------------------------------------------------------------


@pytest.mark.slow
def test_an_audit_costs_at_most_twice_its_fits_and_predictions():
    spent = 0.0

    def clocked(method):
        def run(self, *arguments):
            nonlocal spent
            start = time.process_time()
            try:
                return method(self, *arguments)
            finally:
                spent += time.process_time() - start

        return run

    class FiveMilliseconds(HeldOutError):
        def fit(self, X, y):
            end = time.process_time() + 0.005
            super().fit(X, y)
            while time.process_time() < end:
                pass
            return self

    FiveMilliseconds.fit = clocked(FiveMilliseconds.fit)
    FiveMilliseconds.predict = clocked(HeldOutError.predict)
    prudent.audit(HeldOutError, **LINE, budget=2)
    start = time.process_time()
    laws = ["normal", "line", "six atoms"]
    prudent.audit(FiveMilliseconds, laws=laws, sizes=(60,))
    whole = time.process_time() - start
    assert whole <= 2 * spent


class WithoutItsSets(ClasswiseRejector):
    """Promises of a rejector for each class whose sets leave every class out."""

    def predict_set(self, X):
        return np.zeros((len(X), len(self.classes_)), dtype=bool)


def test_false_alarms_of_each_class_are_counted_by_its_sets():
    given = {"laws": ["line"], "sizes": (60,), "budget": 20, "random_state": 0}
    sound = prudent.audit(ClasswiseRejector(), **given)
    assert sound.verdict == "no violation found"
    assert 0.02 < sound.rows[0].mean_truth < 0.09
    assert prudent.audit(WithoutItsSets(), **given).verdict == "broken"


def test_moments_given_to_a_detector_are_those_of_the_ordinary_rows():
    """Anomalies in the middle make the moments smaller, and a true promise false."""
    X = np.concatenate([np.repeat([-1.0, 1.0], 4), np.linspace(-0.05, 0.05, 92)])
    labels = np.zeros(100, dtype=int)
    labels[8:63] = -1
    detector = prudent.MinimaxOutlierDetector(
        false_alarm_rate=0.1, threshold="distribution_free", region="ellipsoid"
    )
    found = prudent.audit(
        detector, laws=[(X[:, None], labels)], sizes=(200,), budget=20
    )
    assert len(found.rows) == 2  # by a fit, and by the moments
    assert found.verdict == "no violation found"


class SeesAnomalies(OutlierMixin, BaseEstimator):
    """A detector that counts the anomalies among the rows that it is fitted to."""

    seen: ClassVar[list[int]] = []

    def fit(self, X, y=None):
        self.seen.append(int((X[:, 0] > 50).sum()))
        return self

    def predict(self, X):
        return np.where(X[:, 0] > 50, -1, 1)


@pytest.mark.parametrize("quantity", ["miss rate", "flagged share", "precision"])
def test_a_detector_sees_no_anomalies_whatever_its_claim_is_about(quantity):
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(80, 1)), np.full((20, 1), 100.0)])
    y = np.repeat([0, -1], [80, 20])
    claim = prudent.Guarantee(
        quantity=quantity,
        bound=0.9,
        sense="<=",
        confidence=0.95,
        assumptions=(INDEPENDENT,),
        source="none",
    )
    SeesAnomalies.seen.clear()
    prudent.audit(SeesAnomalies(), claim=claim, laws=[(X, y)], sizes=(40,), budget=5)
    assert SeesAnomalies.seen
    assert set(SeesAnomalies.seen) == {0}
