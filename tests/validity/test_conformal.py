"""Conformal promises held against laws of known truth.

Each fit answers for one fresh row, so that the misses of independent fits are binomial.
Exact tests at level 1e-4: two-sided where the rate is known exactly (no ties, or
smoothed ones), from above where the promise is a bound.
"""

import itertools
import warnings

import numpy as np
import pytest
from scipy.stats import binomtest
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

from prudent import ConformalClassifier, ConformalDetector
from prudent.conformal.ranking import cross_bound
from prudent.core.binomial import mean_rank
from prudent.exceptions import PrudentWarning

TEST_LEVEL = 1e-4
MANY = pytest.mark.slow


def two_normals(n, rng):
    y = rng.integers(2, size=n)
    return rng.normal(size=(n, 2)) + 1.2 * y[:, None], y


def skewed(n, rng):
    y = (rng.random(n) < 0.3).astype(int)
    X = rng.exponential(size=(n, 3)) ** 2 * (1 + y[:, None])
    return X * [1.0, 1e6, 1e-6], y


def discrete(n, rng):
    """Columns of few values: rows and scores are tied."""
    y = rng.integers(3, size=n)
    return np.round(rng.normal(size=(n, 2)) + y[:, None]), y


def wild(n, rng):
    """Columns of wild scales with heavy tails."""
    y = rng.integers(2, size=n)
    X = rng.standard_t(2, size=(n, 4)) + y[:, None]
    return X * [1e-120, 1e120, 1.0, 1e8], y


def imbalanced(n, rng):
    y = (rng.random(n) < 0.06).astype(int)
    return rng.normal(size=(n, 2)) + 2.0 * y[:, None], y


def many_labels(n, rng):
    """Twelve labels of falling frequency: some new rows have one not seen."""
    p = 0.6 ** np.arange(12)
    y = rng.choice(12, size=n, p=p / p.sum())
    return rng.normal(size=(n, 2)) + y[:, None], y


def misses(law, n, repetitions, seed, *, of=None, level=None, **settings):
    """Misses and tries, one fresh row a fit; `of`: fresh rows of one class."""
    wrong = tries = 0
    for repetition in range(repetitions):
        rng = np.random.default_rng((seed, repetition))
        X, y = law(n, rng)
        if len(np.unique(y)) < 2:
            continue
        x, truth = law(200, rng)
        first = 0 if of is None else int(np.flatnonzero(truth == of)[0])
        x, truth = x[[first]], truth[first]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrudentWarning)
            fitted = ConformalClassifier(random_state=repetition, **settings).fit(X, y)
        if of is not None and of not in fitted.classes_:
            continue
        chosen = fitted.predict_set(x, level, allow_empty=True)[0]
        tries += 1
        wrong += truth not in fitted.classes_[chosen]
    return wrong, tries


def assert_rate(wrong, tries, rate, alternative):
    result = binomtest(wrong, tries, rate, alternative=alternative)
    assert result.pvalue > TEST_LEVEL, (wrong, tries, rate)


FULL = {
    "default": {},
    "blend, diag": {"covariance_type": "diag"},
    "gaussian": {"model": "gaussian"},
    "tied": {"model": "gaussian", "covariance_type": "tied", "ridge_rows": 0},
    "margin": {"model": "gaussian", "nonconformity": "margin"},
    "density": {"model": "gaussian", "nonconformity": "density"},
}


@pytest.mark.parametrize(
    ("name", "repetitions"),
    [("default", 200), *(pytest.param(name, 2500, marks=MANY) for name in FULL)],
)
def test_full_sets_miss_as_often_as_promised_without_ties(name, repetitions):
    n, level = 29, 0.1  # 3 of 30 rows
    wrong, tries = misses(two_normals, n, repetitions, 1, level=level, **FULL[name])
    # Sets miss exactly at the promised rate where a bag can be had without one of
    # the two classes, which two equal classes and 29 rows practically never are.
    assert_rate(wrong, tries, mean_rank(n, level) / (n + 1), "two-sided")


@pytest.mark.parametrize(
    ("law", "n", "repetitions"),
    [
        (discrete, 14, 300),
        pytest.param(discrete, 30, 1500, marks=MANY),
        pytest.param(skewed, 24, 1500, marks=MANY),
        pytest.param(wild, 24, 1500, marks=MANY),
        pytest.param(imbalanced, 40, 1500, marks=MANY),
        pytest.param(two_normals, 5, 1500, marks=MANY),
    ],
)
@pytest.mark.parametrize("ties", ["conservative", "smoothed"])
def test_full_sets_keep_the_promise_on_any_law(law, n, repetitions, ties):
    level = 0.2
    for settings in ({}, {"model": "gaussian"}):
        wrong, tries = misses(
            law,
            n,
            repetitions,
            2,
            level=level,
            ties=ties,
            **settings,
        )
        if ties == "smoothed":
            # Bags of one label are not drawn, which spares a few rows.
            exact = law not in (imbalanced,) and n > 10
            assert_rate(wrong, tries, level, "two-sided" if exact else "greater")
        else:
            assert_rate(wrong, tries, mean_rank(n, level) / (n + 1), "greater")


@pytest.mark.parametrize("repetitions", [200, pytest.param(1500, marks=MANY)])
def test_labels_not_seen_count_among_the_promised_misses(repetitions):
    wrong = tries = counted = 0
    for repetition in range(repetitions):
        rng = np.random.default_rng((3, repetition))
        X, y = many_labels(40, rng)
        model = ConformalClassifier(level=0.2).fit(X, y)
        promise = model.guarantees_[0]
        if len(promise.assumptions) == 2:  # this bag assumes known labels
            continue
        counted += 1
        x, truth = many_labels(1, rng)
        chosen = model.classes_[model.predict_set(x, allow_empty=True)[0]]
        wrong, tries = wrong + (truth[0] not in chosen), tries + 1
    assert counted > repetitions / 2
    assert_rate(wrong, tries, mean_rank(40, 0.2) / 41, "greater")


@pytest.mark.parametrize(
    "repetitions", [pytest.param(200), pytest.param(1200, marks=MANY)]
)
@pytest.mark.parametrize("law", [imbalanced, discrete])
def test_sets_by_class_keep_the_promise_in_the_rare_class(law, repetitions):
    wrong, tries = misses(
        law,
        60,
        repetitions,
        4,
        of=1,
        level=0.2,
        condition="class",
    )
    assert_rate(wrong, tries, 0.2, "greater")


@pytest.mark.slow
@pytest.mark.parametrize("law", [two_normals, discrete])
def test_sets_by_group_keep_the_promise_in_each_group(law):
    def side(X):
        return (np.asarray(X)[:, 0] > 0).astype(int)

    for group in (0, 1):
        wrong = tries = 0
        for repetition in range(1500):
            rng = np.random.default_rng((5, repetition))
            X, y = law(40, rng)
            x, truth = law(100, rng)
            first = np.flatnonzero(side(x) == group)[0]
            model = ConformalClassifier(condition=side, level=0.2).fit(X, y)
            chosen = model.predict_set(x[[first]], allow_empty=True)[0]
            wrong += truth[first] not in model.classes_[chosen]
            tries += 1
        assert_rate(wrong, tries, 0.2, "greater")


@pytest.mark.parametrize("repetitions", [60, pytest.param(2000, marks=MANY)])
@pytest.mark.parametrize("estimator", [GaussianNB(), KNeighborsClassifier(3), None])
def test_split_sets_keep_the_promise(estimator, repetitions):
    for law in (two_normals, discrete):
        wrong, tries = misses(
            law,
            40,
            repetitions,
            6,
            level=0.25,
            estimator=estimator,
            method="split",
        )
        bound = mean_rank(12, 0.25) / 13
        exact = law is two_normals and not isinstance(estimator, KNeighborsClassifier)
        assert_rate(wrong, tries, bound, "two-sided" if exact else "greater")


@pytest.mark.parametrize("repetitions", [25, pytest.param(1000, marks=MANY)])
def test_cross_sets_keep_the_theorem(repetitions):
    for law, estimator in itertools.product(
        (two_normals, discrete), (GaussianNB(), KNeighborsClassifier(1), None)
    ):
        wrong, tries = misses(
            law,
            20,
            repetitions,
            7,
            level=0.2,
            estimator=estimator,
            method="cross",
            cv=4,
        )
        assert_rate(wrong, tries, cross_bound(20, 4, mean_rank(20, 0.2)), "greater")


class FirstColumn(OutlierMixin, BaseEstimator):
    """Ordinary rows have a large first column."""

    def fit(self, X, y=None):
        self.fitted_ = True
        return self

    def score_samples(self, X):
        return np.asarray(X)[:, 0]

    def predict(self, X):
        return np.ones(len(X))


@pytest.mark.parametrize("m", [29, 100])
def test_high_probability_holds_given_the_calibration_rows(m):
    """Of uniform scores the rate of a fit is its cut, so each fit can be judged."""
    rng = np.random.default_rng(m)
    above = 0
    for _ in range(1000):
        X = rng.random((m, 1))
        detector = ConformalDetector(
            FrozenEstimator(FirstColumn().fit(X)),
            confidence=0.95,
            false_alarm_rate=0.1,
        ).fit(X)
        rate = np.sort(X[:, 0])[detector.k_ - 1]
        assert detector.predict([[rate - 1e-6], [rate + 1e-6]]).tolist() == [
            -1,
            1,
        ]
        above += rate > 0.1
    assert_rate(above, 1000, 0.05, "greater")
    if m == 29:  # .9^29 = .0471: the promise could not be kept with less slack
        assert_rate(above, 1000, 0.9**29, "two-sided")


@pytest.mark.parametrize("repetitions", [100, pytest.param(3000, marks=MANY)])
@pytest.mark.parametrize("kind", ["combined", "distance", "ellipsoid"])
def test_alarms_come_at_the_promised_rate(kind, repetitions):
    for rows, exact in (
        (lambda n, rng: rng.normal(size=(n, 3)) ** 3 * [1, 1e100, 1e-100], True),
        (lambda n, rng: np.round(rng.normal(size=(n, 2))), False),
    ):
        for ties in ("conservative", "smoothed"):
            alarms = 0
            for repetition in range(repetitions):
                rng = np.random.default_rng((8, repetition))
                X, x = rows(19, rng), rows(1, rng)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", PrudentWarning)
                    detector = ConformalDetector(
                        nonconformity=kind,
                        false_alarm_rate=0.1,
                        ties=ties,
                        random_state=repetition,
                    ).fit(X)
                alarms += detector.predict(x)[0] < 0
            # The ranks of "combined" tie even where scores do not.
            sharp = ties == "smoothed" or (exact and kind != "combined")
            side = "two-sided" if sharp else "greater"
            assert_rate(alarms, repetitions, 0.1, side)


@pytest.mark.parametrize("repetitions", [300, pytest.param(3000, marks=MANY)])
def test_groups_keep_the_promise_for_a_random_row_of_a_new_group(repetitions):
    """Rows of a group are alike: rows without groups would promise too much."""
    wrong = 0
    for repetition in range(repetitions):
        rng = np.random.default_rng((9, repetition))
        sizes = rng.integers(1, 15, size=31)
        groups = np.repeat(np.arange(31), sizes)
        y = rng.integers(2, size=31)[groups]
        X = (rng.normal(size=(31, 2)) * 2)[groups] + y[:, None]
        X += 0.01 * rng.normal(size=X.shape)
        new = rng.choice(np.flatnonzero(groups == 30))
        old = groups < 30
        if len(np.unique(y[old])) < 2:
            continue
        model = ConformalClassifier(
            LogisticRegression(), method="split", level=0.2, random_state=repetition
        ).fit(X[old], y[old], groups=groups[old])
        chosen = model.predict_set(X[[new]], allow_empty=True)[0]
        wrong += y[new] not in model.classes_[chosen]
    assert_rate(wrong, repetitions, 0.2, "greater")


def matchings(items, size):
    """All partitions into sets of `size`."""
    if not items:
        yield ()
        return
    for rest in itertools.combinations(items[1:], size - 1):
        first = (items[0], *rest)
        left = [item for item in items if item not in first]
        for others in matchings(left, size):
            yield (first, *others)


def worst_miss_rate(n_folds, size, rank, steps, seed):
    """Miss rate of the worst ranking rule found, over all orders of n + 1 items.

    A clone is determined by the rows outside a fold and the new row, and may rank
    those size + 1 rows in any way: a search over all such rules, which is the worst
    case over symmetric algorithms and exchangeable laws of n + 1 distinct rows.
    """
    rng = np.random.default_rng(seed)
    n = n_folds * size
    subsets = list(itertools.combinations(range(n + 1), size + 1))
    number = {subset: i for i, subset in enumerate(subsets)}
    cases = [
        (x, [number[tuple(sorted((*fold, x)))] for fold in folds])
        for x in range(n + 1)
        for folds in matchings([i for i in range(n + 1) if i != x], size)
    ]
    asked = np.array([x for x, _ in cases])
    used = np.array([subset for _, subset in cases])
    above = np.zeros((len(subsets), n + 1), dtype=int)

    def reorder(i):
        above[i, list(rng.permutation(subsets[i]))] = np.arange(size + 1)

    def missed(chosen):
        return np.sum(above[used[chosen], asked[chosen, None]].sum(axis=1) < rank)

    for i in range(len(subsets)):
        reorder(i)
    of = [np.flatnonzero((used == i).any(axis=1)) for i in range(len(subsets))]
    now = best = missed(np.arange(len(cases)))
    for step in range(steps):
        i = rng.integers(len(subsets))
        before, old = missed(of[i]), above[i].copy()
        reorder(i)
        gain = missed(of[i]) - before
        if gain >= 0 or rng.random() < np.exp(gain / (2 - 1.999 * step / steps)):
            now += gain
            best = max(best, now)
        else:
            above[i] = old
    return best / len(cases)


@pytest.mark.parametrize(
    ("n_folds", "size"),
    [
        (2, 2),
        *(pytest.param(*case, marks=MANY) for case in ((3, 2), (2, 3), (4, 2), (3, 3))),
    ],
)
def test_no_ranking_rule_breaks_the_bounds_of_cross(n_folds, size):
    for rank in (1, 2, 3):
        worst = worst_miss_rate(n_folds, size, rank, 4000 * (size - 1), rank)
        bound = cross_bound(n_folds * size, n_folds, rank)
        assert worst <= bound + 1e-12
        if (n_folds, size, rank) in (
            (2, 2, 1),
            (2, 2, 2),
        ):  # and it is reached: no better bound is true
            assert worst == pytest.approx(bound)
