"""Error rates and class errors that are kept in each of several subgroups."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from prudent import (
    ConformalClassifier,
    NeymanPearsonClassifier,
    SelectiveClassifier,
    certify,
)
from prudent.core.binomial import high_probability_rank, upper_limit
from prudent.exceptions import InfeasibleError, PrudentWarning
from prudent.rules.boundary import error_boundary
from prudent.rules.make import CellErrors, ClassErrors, SelectiveError, class_scores_of
from prudent.rules.rule import Terms
from prudent.rules.scores import AnswerScores
from prudent.rules.subgroups import Memberships

TERMS = Terms(confidence=0.95)
NAMES = ("A", "B", "C")


def _answers(n, seed=0):
    random = np.random.default_rng(seed)
    members = np.column_stack(
        [random.random(n) < 0.6, random.random(n) < 0.5, np.ones(n, dtype=bool)]
    )
    sureness = np.round(random.random(n), 2)
    wrong = random.random(n) > 0.6 + 0.4 * sureness
    return members, sureness, wrong


def test_each_cell_has_the_boundary_of_its_rows():
    members, sureness, wrong = _answers(900)
    made = CellErrors.from_answers(sureness, wrong, Memberships(members, NAMES), TERMS)
    rule = made.rule(0.1)
    assert rule.cells.shape == (4, 3)
    each = 0.95 ** (1 / 4)
    for cell, cut in zip(rule.cells, rule.thresholds, strict=True):
        at = (members == cell).all(axis=1)
        rows = AnswerScores.from_answers(sureness[at], wrong[at])
        boundary = error_boundary(rows.n_rows, 0.1, confidence=each)
        admitted = boundary.admits(np.arange(1, rows.n_rows + 1), rows.wrong[1:])
        admitted &= rows.sureness[:-1] > rows.sureness[1:]
        k = np.flatnonzero(admitted)
        assert cut == (rows.sureness[k[-1] + 1] if len(k) else np.inf)
    answered = rule.answers(sureness, members)
    assert answered.sum() == rule.record["answered"]
    assert (answered & wrong).sum() == rule.record["wrong"]
    for promise in rule.guarantees:
        about = np.ones(900, dtype=bool)
        if promise.subgroup in NAMES:
            about = members[:, NAMES.index(promise.subgroup)]
        elif promise.subgroup is not None:
            inside = [name in promise.subgroup.split(" and ") for name in NAMES]
            about = (members == inside).all(axis=1)
        assert promise.evidence["answered"] == (answered & about).sum()
        assert promise.evidence["wrong"] == (answered & wrong & about).sum()
        assert promise.evidence["claims"] == 4
        assert (promise.bound, promise.confidence) == (0.1, 0.95)


def test_cells_that_were_not_seen_or_are_small_get_no_answer():
    members, sureness, wrong = _answers(400)
    members[:, 1] &= np.arange(400) < 30
    rule = CellErrors.from_answers(
        sureness, wrong, Memberships(members, NAMES), TERMS
    ).rule(0.2)
    assert rule.cells.tolist() == [[False, False, True], [True, False, True]]
    small = np.array([[True, True, True], [False, True, False], [False, False, False]])
    assert not rule.answers(np.full(3, 2.0), small).any()


def test_one_subgroup_of_all_rows_is_none():
    _, sureness, wrong = _answers(500)
    every = Memberships(np.ones((500, 1), dtype=bool), ("all",))
    one = CellErrors.from_answers(sureness, wrong, every, TERMS).rule(0.2)
    none = SelectiveError(
        scores=AnswerScores.from_answers(sureness, wrong), terms=TERMS
    )
    assert one.thresholds == none.rule(0.2).thresholds
    codes = wrong.astype(int)
    rows = class_scores_of(
        np.column_stack([1 - sureness, sureness]), codes, np.arange(2)
    )
    for in_sets, limits in ((False, {0: 0.1}), (True, {0: 0.1, 1: 0.2})):
        plain, by_subgroup = (
            ClassErrors(
                scores=rows, in_sets=in_sets, terms=TERMS, memberships=inside
            ).rule(limits)
            for inside in (None, every)
        )
        assert plain.thresholds == by_subgroup.thresholds


def test_a_class_is_cut_at_the_lowest_threshold_of_its_subgroups():
    members, sureness, wrong = _answers(900, seed=1)
    scores = np.column_stack([1 - sureness, sureness])
    rows = class_scores_of(scores, wrong.astype(int), np.arange(2))
    inside = Memberships(members, NAMES)
    made = ClassErrors(scores=rows, terms=TERMS, memberships=inside).rule({1: 0.2})
    cuts = []
    for g in range(3):
        own = np.sort(scores[wrong & members[:, g], 1])
        cuts.append(own[high_probability_rank(len(own), 0.2, 1 - 0.05 / 3) - 1])
    lowest = np.where(members, cuts, np.inf).min(axis=1)
    assert np.array_equal(
        made.labels(scores, members), (sureness >= lowest).astype(int)
    )
    assert [g.subgroup for g in made.guarantees] == list(NAMES)
    # A row of no subgroup gets the class that must not be missed.
    assert made.labels(scores[:5], np.zeros((5, 3), dtype=bool)).tolist() == [1] * 5


def _table(n, seed=0):
    random = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "x": random.normal(size=n),
            "old": random.random(n) < 0.4,
            "site": random.integers(2, size=n),
        }
    )
    noise = np.where(frame["old"], 1.5, 0.4)
    y = (frame["x"] + noise * random.normal(size=n) > 0).astype(int).to_numpy()
    return frame, y


def test_answers_by_subgroup_of_a_table():
    frame, y = _table(3000)
    model = SelectiveClassifier(
        LogisticRegression(),
        error_rate=0.15,
        subgroups=["old", "site"],
        random_state=0,
    )
    with pytest.warns(PrudentWarning, match=r"never answered: old=True\."):
        model.fit(frame, y)
    assert model.subgroups_ == ["old=False", "old=True", "site=0", "site=1"]
    assert model.subgroup_count_[:2].sum() == model.n_calibration_ == 900
    assert model.cells_[0] == "old=True and site=1"
    assert not hasattr(model, "threshold_")
    assert len(model.thresholds_) == 4
    new, label = _table(20_000, seed=1)
    answered = model.answers(new)
    wrong = model.predict(new) != label
    for promise in model.guarantees_:
        about = model.is_about(promise, new) & answered
        assert promise.check(int((about & wrong).sum()), int(about.sum())).verdict != (
            "broken"
        )
    promised = {promise.subgroup for promise in model.guarantees_}
    assert promised >= {None, "old=False", "site=0", "site=1"}
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.answers(new), answered)
    assert not model.answers(new.assign(site=7)).any()
    assert model.with_error_rate(0.3).answers(new).sum() > answered.sum()
    with pytest.raises(ValueError, match="the promise is by old, which the table"):
        model.answers(new.drop(columns="old"))
    with pytest.raises(ValueError, match="no single one has limits"):
        model.threshold_bands()
    both = clone(model).set_params(answered_share=0.5)
    with pytest.raises(ValueError, match="is not promised by subgroups"):
        both.fit(frame, y)


def test_small_cells_are_named_with_the_rows_they_need():
    frame, y = _table(1500)
    frame.loc[:30, "site"] = 2
    model = SelectiveClassifier(
        LogisticRegression(), error_rate=0.2, subgroups=["site"], random_state=0
    )
    with pytest.warns(PrudentWarning, match=r"site=2 \(\d+ held-out rows, needs 19\)"):
        model.fit(frame, y)
    assert model.cells_ == ["site=1", "site=0"]


def test_a_subgroup_of_which_no_row_is_held_out_is_named():
    frame, y = _table(1500)
    frame.loc[0, "site"] = 2
    model = SelectiveClassifier(
        LogisticRegression(), error_rate=0.2, subgroups=["site"], random_state=0
    )
    with pytest.warns(PrudentWarning, match=r"site=2 \(0 held-out rows, needs 19\)"):
        model.fit(frame, y)
    assert model.cells_ == ["site=1", "site=0"]


def test_where_nothing_is_answered_the_warning_counts_every_cell():
    X, sides = np.zeros((40, 2)), np.arange(40) % 2

    def site(rows):
        return np.column_stack([sides[: len(rows)] == 0, sides[: len(rows)] == 1])

    few = SelectiveClassifier(FrozenEstimator(_Given()), error_rate=0.1, subgroups=site)
    with pytest.warns(PrudentWarning) as caught:
        few.fit(X, np.ones(40, dtype=int))
    assert "subgroup 0 (20 held-out rows, needs 29)" in str(caught[0].message)
    assert not few.cells_
    # Rows enough for both at the root of the confidence, but the labels are wrong.
    wrong = clone(few).set_params(error_rate=0.2)
    with pytest.warns(PrudentWarning) as caught:
        wrong.fit(X, np.ones(40, dtype=int))
    assert str(caught[0].message) == (
        "SelectiveClassifier: no threshold certifies an error rate <= 0.2 in any of "
        "the 2 parts that subgroups make, with confidence 0.95 for all of them, on 40 "
        "held-out rows; nothing is answered."
    )
    assert not wrong.answers(X).any()


def test_class_errors_by_subgroup_of_a_table():
    frame, y = _table(3000)
    model = NeymanPearsonClassifier(
        LogisticRegression(),
        max_class_error={1: 0.1},
        subgroups=["old", "site"],
        random_state=0,
    ).fit(frame, y)
    assert model.thresholds_.shape == (4, 2)
    new, label = _table(20_000, seed=1)
    missed = model.predict(new) != label
    for promise in model.guarantees_:
        about = model.is_about(promise, new) & (label == 1)
        found = promise.check(int((about & missed).sum()), int(about.sum()))
        assert found.verdict != "broken"
    sets = clone(model).set_params(abstain=True, max_class_error=0.1).fit(frame, y)
    assert len(sets.guarantees_) == 8
    assert sets.predict_set(new.assign(site=5)).all()
    few = frame.assign(site=np.where(np.arange(3000) < 20, 3, frame["site"]))
    with pytest.raises(InfeasibleError, match=r"class 1 with site=3 has \d+ held-out"):
        clone(model).fit(few, y)
    with pytest.warns(PrudentWarning, match="with site=3 has"):
        clone(sets).fit(few, y)
    capacity = clone(model).set_params(flagged_share=0.9)
    with pytest.raises(ValueError, match="is not promised by subgroups"):
        capacity.fit(frame, y)


class _Given(ClassifierMixin, BaseEstimator):
    """Answers 0 with the sureness that stands in the first column."""

    classes_ = np.array([0, 1])

    def fit(self, X, y):
        return self

    def predict(self, X):
        return np.zeros(len(X), dtype=int)

    def predict_proba(self, X):
        return np.column_stack([0.5 + X[:, 0] / 2, 0.5 - X[:, 0] / 2])

    def __sklearn_is_fitted__(self):
        return True


def _false_promises(fitted, n_draws, n, rate):
    """Draws after which the error rate of some subgroup is above the rate."""
    # Of 20 levels of sureness the error rate is known in each cell.
    sure = (np.arange(20) + 0.5) / 20
    cells = np.array([[1, 0], [1, 1], [0, 1]], dtype=bool)
    risks = np.stack([0.16 * (1 - sure), 0.24 * (1 - sure), 0.08 * (1 - sure) + 0.03])
    shares = np.array([0.4, 0.35, 0.25])
    false = 0
    random = np.random.default_rng(7)
    for _ in range(n_draws):
        cell = random.choice(3, size=n, p=shares)
        level = random.integers(20, size=n)
        wrong = random.random(n) < risks[cell, level]
        cuts = fitted(sure[level], wrong, cells[cell], rate)(cells)
        answered = sure[None, :] > cuts[:, None]
        weight = shares[:, None] * answered
        for part in (*cells.T, np.ones(3, dtype=bool)):
            if weight[part].sum() and (
                (weight * risks)[part].sum() > rate * weight[part].sum()
            ):
                false += 1
                break
    return false


def _by_cells(sureness, wrong, members, rate):
    made = CellErrors.from_answers(
        sureness, wrong, Memberships(members, ("A", "B")), TERMS
    )
    rule = made.rule(rate)

    def cuts(cells):
        pairs = zip(rule.cells, rule.thresholds, strict=True)
        known = {cell.tobytes(): cut for cell, cut in pairs}
        return np.array([known.get(cell.tobytes(), np.inf) for cell in cells])

    return cuts


def test_the_error_rate_is_kept_in_all_subgroups_at_once_in_draws_of_a_known_law():
    false = _false_promises(_by_cells, 200, 400, 0.08)
    assert binomtest(false, 200, 0.05, alternative="greater").pvalue > 1e-3


def _by_own_thresholds(sureness, wrong, members, rate):
    """The planted fault: a threshold for each subgroup, answered above all of them."""
    cuts = []
    for inside in members.T:
        rows = AnswerScores.from_answers(sureness[inside], wrong[inside])
        cuts += SelectiveError(scores=rows, terms=TERMS).rule(rate).thresholds
    return lambda cells: np.where(cells, cuts, -np.inf).max(axis=1)


def _false_where_one_is_never_wrong(fitted, n_draws):
    """Draws of a law in which a subgroup of all rows leans on another within it.

    9 % of the rows are too few for a proof of their own at the whole level.
    """
    random = np.random.default_rng(5)
    cells, false = np.array([[True, False], [True, True]]), 0
    for _ in range(n_draws):
        best = random.random(600) < 0.09
        sureness = random.random(600) + best
        wrong = ~best & (random.random(600) < 0.0505)
        cuts = fitted(sureness, wrong, cells[best.astype(int)], 0.05)(cells)
        others = 0.91 * np.clip(1 - cuts[0], 0, 1)
        best_ones = 0.09 * np.clip(2 - cuts[1], 0, 1)
        false += 0.0505 * others > 0.05 * (others + best_ones)
    return int(false)


def test_own_thresholds_of_overlapping_subgroups_are_caught():
    faulty = _false_where_one_is_never_wrong(_by_own_thresholds, 300)
    assert binomtest(faulty, 300, 0.05, alternative="greater").pvalue < 1e-3
    false = _false_where_one_is_never_wrong(_by_cells, 300)
    assert binomtest(false, 300, 0.05, alternative="greater").pvalue > 1e-3


def test_the_frozen_model_keeps_its_promise_in_each_subgroup():
    random = np.random.default_rng(0)
    X = np.round(random.random((600, 2)), 2)
    y = (random.random(600) < 0.3 * (1 - X[:, 0])).astype(int)
    model = SelectiveClassifier(
        FrozenEstimator(_Given()),
        error_rate=0.2,
        subgroups=lambda X: np.column_stack([X[:, 1] > 0.5, X[:, 1] < 0.8]),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrudentWarning)
        model.fit(X, y)
    assert {g.subgroup for g in model.guarantees_} >= {None, "subgroup 0", "subgroup 1"}


def test_certify_proves_every_claim_in_each_subgroup():
    frame, y = _table(1000)
    plain = LogisticRegression().fit(frame, y)
    new, label = _table(400, seed=1)
    found = certify(plain, new, label, subgroups=["old", "site"])
    names = [None, "old=False", "old=True", "site=0", "site=1"]
    assert [g.subgroup for g in found] == [name for name in names for _ in range(3)]
    wrong = plain.predict(new) != label
    parts = [
        new["old"] >= 0,
        ~new["old"],
        new["old"],
        new["site"] == 0,
        new["site"] > 0,
    ]
    for part, promise in zip(parts, found[::3], strict=True):
        limit = upper_limit(int(wrong[part].sum()), int(part.sum()), level=0.05 / 15)
        assert promise.bound == limit
        assert promise.quantity == "error rate"
    members = np.column_stack(parts[1:])
    given = certify(plain, new, label, subgroups=members)
    assert [g.bound for g in given] == [g.bound for g in found]
    assert given[3].subgroup == "subgroup 0"
    answers = certify(None, plain.predict(new), label, subgroups=members)
    assert [g.bound for g in answers] == [g.bound for g in found]
    with pytest.raises(ValueError, match="399 rows for 400 rows of X"):
        certify(plain, new, label, subgroups=members[1:])


def test_certify_proves_what_a_model_promises_of_its_subgroups():
    frame, y = _table(2000)
    model = ConformalClassifier(
        LogisticRegression(), subgroups=["old"], random_state=0
    ).fit(frame, y)
    new, label = _table(400, seed=1)
    found = certify(model, new, label)
    assert [(g.quantity, g.subgroup) for g in found] == [
        ("coverage", "old=False"),
        ("coverage", "old=True"),
    ]
    missed = ~model.predict_set(new)[np.arange(400), label]
    old = new["old"].to_numpy()
    limit = upper_limit(int(missed[old].sum()), int(old.sum()), level=0.025)
    assert found[1].bound == 1 - limit


def test_what_names_no_columns_is_refused():
    model = SelectiveClassifier(LogisticRegression(), subgroups=1.5)
    with pytest.raises(TypeError, match="`subgroups` must be a list .* got 1.5"):
        model.fit(np.arange(60.0)[:, None], np.arange(60) % 2)
