"""A method chosen in the training part keeps its promise; chosen elsewhere it does not.

Candidates see one coordinate each. Given the label the coordinates are independent, so
that the held-out rows flatter one of equal candidates, and the true rates are sums over
the values of the coordinate of the one that was chosen.
"""

import itertools
import warnings

import numpy as np
import pytest
from scipy.stats import beta, binomtest
from sklearn.base import BaseEstimator, ClassifierMixin

from prudent import BestClassifier, NeymanPearsonClassifier, compare
from prudent.certification import error_boundary
from prudent.core.binomial import fewest_rows, high_probability_rank
from prudent.exceptions import InfeasibleError, PrudentWarning

LEVEL = 1e-3
DELTA = 0.1
N_ROWS, N_TABLES = 300, 1000
# Values of a coordinate are the score of the second label: so fine that few rows tie.
VALUES = (np.arange(400) + 0.5) / 400


def test_no_level_is_passed_on_between_boundaries():
    # Of the first candidate the rows from .43 on are wrong until its error rate is just
    # above .05, where it stays; the second errs just above .05 everywhere.
    rng = np.random.default_rng(0)
    n_draws, m, rate, first_wrong = 20_000, 500, 0.05, 0.43
    exceeds = first_wrong / (1 - rate)
    places = np.sort(rng.random((n_draws, m)), axis=1)
    is_wrong = (places > first_wrong) & (
        (places < exceeds) | (rng.random((n_draws, m)) < rate)
    )
    others_wrong = rng.random((n_draws, m)) < rate
    answered = np.arange(1, m + 1)
    ends = np.column_stack([places[:, 1:], np.ones(n_draws)])

    def outcomes(confidence):
        """Whether each is certified, and whether what is certified is false."""
        boundary = error_boundary(m, rate, confidence=confidence)
        first = boundary.admits(answered, is_wrong.cumsum(axis=1))
        second = boundary.admits(answered, others_wrong.cumsum(axis=1)).any(axis=1)
        return first.any(axis=1), (first & (ends > exceeds)).any(axis=1), second

    certified, first_false, second_false = outcomes(0.975)
    _, first_false_alone, second_false_alone = outcomes(0.95)
    kept = (first_false | second_false).sum()
    passed_on = (
        np.where(second_false, first_false_alone, first_false)
        | np.where(certified, second_false_alone, second_false)
    ).sum()
    assert binomtest(kept, n_draws, 0.05, alternative="greater").pvalue > LEVEL
    assert binomtest(passed_on, n_draws, 0.05, alternative="greater").pvalue < 1e-20
    assert passed_on / n_draws == pytest.approx(0.0687, abs=0.006)
    assert kept / n_draws == pytest.approx(0.0432, abs=0.005)


def test_the_best_of_six_equal_scores_by_held_out_rows_needs_a_sixth_of_the_level():
    # The miss rate given the rows of the class is Beta(k, m + 1 - k); the best of six
    # independent scores is the one whose threshold is highest.
    def false(confidence):
        rank = high_probability_rank(200, 0.05, confidence)
        return 1 - beta.cdf(0.05, rank, 201 - rank) ** 6

    assert false(0.95) == pytest.approx(0.1486, abs=1e-4)
    assert false(1 - 0.05 / 6) == pytest.approx(0.013, abs=0.001)


def test_rows_without_an_error_that_a_share_of_the_level_needs():
    levels = [0.05, 0.04, 0.025, 0.05 / 6, 0.05 / 11]
    assert [fewest_rows(0.05, 1 - d) for d in levels] == [59, 63, 72, 94, 106]


class Coordinate(ClassifierMixin, BaseEstimator):
    """Scores rows by one coordinate, in a way that is known before any row."""

    def __init__(self, number=0):
        self.number = number

    def fit(self, X, y):
        self.classes_ = np.array([0, 1])
        return self

    def predict_proba(self, X):
        second = VALUES[np.asarray(X)[:, self.number].astype(int)]
        return np.column_stack([1 - second, second])

    def predict(self, X):
        return self.predict_proba(X).argmax(axis=1)


def law(name):
    """P(value | label) of each coordinate, shape (4, 2, 400)."""
    smooth = np.stack([np.exp(-3.5 * VALUES), np.exp(-3.5 * (1 - VALUES))])
    # The surest rows are right, the next ones all wrong until the error rate exceeds
    # .15, and it stays there.
    place = 1 - np.abs(2 * VALUES - 1)
    wrong = np.where(place < 0.3, 0, np.where(place < 0.3 / 0.85 + 0.005, 1, 0.152))
    second = np.where(VALUES > 0.5, 1 - wrong, wrong)
    steep = np.stack([1 - second, second])
    few = np.where(np.arange(400) % 40 == 20, smooth, 0)
    tables = {
        "equal": [smooth] * 4,
        "steep": [steep] * 4,
        "ties and one good": [smooth, few, np.ones((2, 400)), few],
    }[name]
    return np.array([table / table.sum(axis=1, keepdims=True) for table in tables])


PROMISES = ("error <= 15%", "coverage >= 90% in every class", "missed 1 <= 20%")
LAWS = ("equal", "steep", "ties and one good")
GRID = np.repeat(np.arange(400)[:, None], 4, axis=1)


def drawn(tables, rng):
    """Rows and labels, each class with probability one half."""
    y = rng.integers(0, 2, N_ROWS)
    cumulative = tables.cumsum(axis=2)
    u = rng.random((N_ROWS, 4))
    X = np.stack([(u[:, [j]] > cumulative[j][y]).sum(axis=1) for j in range(4)], axis=1)
    return np.minimum(X, 399), y


def candidates():
    return {str(j): Coordinate(j) for j in range(4)}


def is_false(model, table, promise):
    """Whether the true rate, by the law of the coordinate, is beyond the promise."""
    if promise.startswith("error"):
        answered = model.answers(GRID)
        wrong = model.predict(GRID)[:, None] != [0, 1]
        mass = table[:, answered].sum() / 2
        missed = (table * wrong.T)[:, answered].sum() / 2
        return mass > 0 and missed / mass > 0.15 + 1e-9
    sets = model.predict_set(GRID)
    rates = (table * ~sets.T).sum(axis=1)
    if promise.startswith("missed"):
        return bool(rates[1] > 0.2 + 1e-9)
    return bool(rates.max() > 0.1 + 1e-9)


def false_tables(name, promise, n_tables, fit):
    tables = law(name)
    listed, n_false = candidates(), 0
    for seed in range(n_tables):
        X, y = drawn(tables, np.random.default_rng(seed))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrudentWarning)
            try:
                model, number = fit(listed, promise, X, y, seed)
            except InfeasibleError:
                continue
        n_false += is_false(model, tables[number], promise)
    return n_false


def chosen_by_training_rows(listed, promise, X, y, seed):
    best = BestClassifier(
        listed, promise=promise, confidence=1 - DELTA, cv=2, random_state=seed
    ).fit(X, y)
    return best, int(best.best_name_)


def chosen_by_held_out_rows(listed, promise, X, y, seed):
    """The defect: each candidate at the full level, the best by the held-out rows."""
    models = [
        NeymanPearsonClassifier(
            candidate,
            max_class_error={1: 0.2},
            confidence=1 - DELTA,
            random_state=seed,
        ).fit(X, y)
        for candidate in listed.values()
    ]
    known = [model.rule_.calibration.scores for model in models]
    lost = [
        (rows.scores[rows.codes == 0, 1] >= model.rule_.thresholds[1]).mean()
        for rows, model in zip(known, models, strict=True)
    ]
    return models[int(np.argmin(lost))], int(np.argmin(lost))


def broken_tables(name, promise, n_tables):
    """Comparisons of true promises in which a verdict says "broken", of so many."""
    tables, n_broken = law(name), 0
    for seed in range(n_tables):
        X, y = drawn(tables, np.random.default_rng(seed))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrudentWarning)
            found = compare(
                *(X, y),
                methods=candidates(),
                baselines=(),
                promise=promise,
                cv=3,
                random_state=seed,
            )
        assert {row.method for row in found.rows} == {*candidates(), "best"}
        assert all(row.failure is None for row in found.rows)
        n_broken += any(row.asked.kept == "broken" for row in found.rows)
    return n_broken


def test_few_tables_with_a_choice_call_a_true_promise_broken():
    cells = itertools.product(LAWS, PROMISES)
    n_broken = sum(broken_tables(*cell, 2) for cell in cells)
    assert binomtest(n_broken, 18, 0.05, alternative="greater").pvalue > LEVEL


@pytest.mark.slow
@pytest.mark.parametrize("promise", PROMISES)
@pytest.mark.parametrize("name", LAWS)
def test_one_table_in_twenty_at_most_calls_a_true_promise_broken(name, promise):
    n_broken = broken_tables(name, promise, N_TABLES)
    level = LEVEL / (len(LAWS) * len(PROMISES))
    assert binomtest(n_broken, N_TABLES, 0.05, alternative="greater").pvalue > level


def test_a_choice_by_training_rows_keeps_its_promise_in_few_tables():
    n_false = false_tables("equal", PROMISES[2], 100, chosen_by_training_rows)
    assert binomtest(n_false, 100, DELTA, alternative="greater").pvalue > LEVEL


@pytest.mark.slow
@pytest.mark.parametrize("promise", PROMISES)
@pytest.mark.parametrize("name", LAWS)
def test_a_choice_by_training_rows_keeps_its_promise(name, promise):
    n_false = false_tables(name, promise, N_TABLES, chosen_by_training_rows)
    level = LEVEL / (len(LAWS) * len(PROMISES))
    assert binomtest(n_false, N_TABLES, DELTA, alternative="greater").pvalue > level


@pytest.mark.slow
def test_a_choice_by_held_out_rows_is_caught():
    n_false = false_tables("equal", PROMISES[2], N_TABLES, chosen_by_held_out_rows)
    level = LEVEL / (len(LAWS) * len(PROMISES))
    assert binomtest(n_false, N_TABLES, DELTA, alternative="greater").pvalue < level


# --- in every subgroup ----------------------------------------------------------------

N_IN_PARTS, N_ROWS_IN_PARTS, N_EQUAL = 300, 900, 24
# The column behind the coordinates says which of three parts a row is of; the subgroups
# are the first two and the last two.
PART = N_EQUAL


def equal_candidates():
    return {str(j): Coordinate(j) for j in range(N_EQUAL)}


def overlapping(X):
    part = np.asarray(X)[:, PART]
    return np.column_stack([part <= 1, part >= 1])


def law_by_part(name):
    """P(value | label) in each part, (3, 24, 2, 400); all candidates are equal."""
    steepness = {"equal": (3.5, 3.5, 3.5), "one part is hard": (5.0, 1.0, 3.5)}[name]
    smooth = np.stack(
        [[np.exp(-k * VALUES), np.exp(-k * (1 - VALUES))] for k in steepness]
    )
    tables = smooth / smooth.sum(axis=2, keepdims=True)
    return np.repeat(tables[:, None], N_EQUAL, axis=1)


def drawn_by_part(tables, rng):
    part = rng.integers(0, 3, N_ROWS_IN_PARTS)
    y = rng.integers(0, 2, N_ROWS_IN_PARTS)
    cumulative = tables[:, 0].cumsum(axis=2)[part, y]
    u = rng.random((N_EQUAL, N_ROWS_IN_PARTS, 1))
    values = (u > cumulative).sum(axis=2).T
    return np.column_stack([np.minimum(values, 399), part]), y


def breaks_in_some_subgroup(model, joint, promises):
    """Whether a promise is false by the law, `joint` of shape (3, 2, 400)."""
    X = np.column_stack(
        [np.tile(np.arange(400), (N_EQUAL, 3)).T, np.repeat([0, 1, 2], 400)]
    )
    mass = joint.transpose(0, 2, 1).reshape(-1, 2) / 6
    sets, answered = model.predict_set(X), None
    if hasattr(model, "answers"):
        answered = model.answers(X)
        wrong = model.predict(X)[:, None] != [0, 1]
    for promise in promises:
        about = model.is_about(promise, X)
        if promise.quantity == "selective error rate":
            rows = about & answered
            bad, whole = (mass * wrong)[rows].sum(), mass[rows].sum()
            limit = promise.bound
        else:
            labels = [0, 1] if promise.scope is None else [promise.scope]
            bad = (mass * ~sets)[about][:, labels].sum()
            whole = mass[about][:, labels].sum()
            limit = 1 - promise.bound if promise.sense == ">=" else promise.bound
        if whole > 0 and bad / whole > limit + 1e-9:
            return True
    return False


def false_tables_by_part(name, promise, n_tables, fit):
    """Fits of so many with a promise that is false in some subgroup, and all fits."""
    tables, n_false, n_made = law_by_part(name), 0, 0
    for seed in range(n_tables):
        X, y = drawn_by_part(tables, np.random.default_rng([3, seed]))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrudentWarning)
            try:
                model, number = fit(promise, X, y, seed)
            except InfeasibleError:
                continue
        n_made += 1
        n_false += breaks_in_some_subgroup(model, tables[:, number], model.guarantees_)
    return n_false, n_made


def chosen_in_training_part(promise, X, y, seed):
    best = BestClassifier(
        equal_candidates(),
        promise=promise,
        confidence=1 - DELTA,
        subgroups=overlapping,
        cv=2,
        random_state=seed,
    ).fit(X, y)
    assert best.subgroup_count_.sum() > best.n_calibration_
    return best.model_, int(best.best_name_)


def chosen_where_it_is_proved(promise, X, y, seed):
    """The defect: the candidate with the best subgroup, by rows that prove it."""
    limits = {1: 0.2}
    models = [
        NeymanPearsonClassifier(
            candidate,
            max_class_error=limits,
            confidence=1 - DELTA,
            subgroups=overlapping,
            random_state=seed,
        ).fit(X, y)
        for candidate in equal_candidates().values()
    ]
    named = [model.predict_set(X) for model in models]
    others = overlapping(X)[y == 0]
    sizes = [
        min(sets[y == 0, 1][inside].mean() for inside in others.T) for sets in named
    ]
    return models[int(np.argmin(sizes))], int(np.argmin(sizes))


def test_a_choice_keeps_its_promise_in_every_subgroup_of_few_tables():
    n_false, n_made = false_tables_by_part(
        "one part is hard", PROMISES[2], 40, chosen_in_training_part
    )
    assert n_made > 30
    assert binomtest(n_false, n_made, DELTA, alternative="greater").pvalue > LEVEL


@pytest.mark.slow
@pytest.mark.parametrize("promise", PROMISES)
@pytest.mark.parametrize("name", ["equal", "one part is hard"])
def test_a_choice_keeps_its_promise_in_every_subgroup(name, promise):
    n_false, n_made = false_tables_by_part(
        name, promise, N_IN_PARTS, chosen_in_training_part
    )
    assert n_made > N_IN_PARTS / 2
    tested = binomtest(n_false, n_made, DELTA, alternative="greater")
    assert tested.pvalue > LEVEL / 6


@pytest.mark.slow
def test_a_choice_where_the_promise_is_proved_is_caught_in_subgroups_too():
    n_false, n_made = false_tables_by_part(
        "equal", PROMISES[2], N_IN_PARTS, chosen_where_it_is_proved
    )
    tested = binomtest(n_false, n_made, DELTA, alternative="greater")
    assert tested.pvalue < LEVEL
