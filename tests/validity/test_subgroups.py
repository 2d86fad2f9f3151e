"""Promises by subgroup over fresh draws from laws whose truth is a sum.

Subgroups overlap. All tests of a kind share the level 1e-3 (Bonferroni over what is
tested); a count of independent events whose mean probability is at most p exceeds that
of p no more often than a binomial one does (Hoeffding 1956).
"""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
from scipy.stats import binomtest
from sklearn.frozen import FrozenEstimator
from tests.validity.finite_laws import (
    constant_law,
    many_classes_law,
    rare_class_law,
    two_regions_law,
)

from prudent import (
    ConformalClassifier,
    Guarantee,
    NeymanPearsonClassifier,
    PromiseMonitor,
    SelectiveClassifier,
    certify,
)
from prudent.exceptions import InfeasibleError, PrudentWarning
from prudent.rules.boundary import error_boundary
from prudent.rules.make import CellErrors
from prudent.rules.rule import Terms
from prudent.rules.scores import AnswerScores
from prudent.rules.subgroups import Memberships, cell_name

LEVEL = 1e-3
NAMES = ("A", "B", "C")
RATE = 0.15


def laws():
    """Laws, each with three subgroups that overlap; some rows are in none of them."""
    made = []
    for law in (constant_law(RATE), two_regions_law(RATE), rare_class_law()):
        atom = np.arange(len(law.joint))
        third = atom < 0.4 * len(atom)  # by score: the subgroups differ in how hard
        parts = np.column_stack([atom % 2 == 0, atom % 3 == 0, third])
        made.append((law, parts))
    return made


LAWS = laws()
BY_NAME = pytest.mark.parametrize(
    ("law", "parts"), LAWS, ids=[law.name for law, _ in LAWS]
)


class Parts:
    """Which of the subgroups hold the rows of a finite law."""

    def __init__(self, parts):
        self.parts = np.column_stack([parts, ~parts.any(axis=1)])

    def __call__(self, X):
        return self.parts[np.asarray(X)[:, 0].astype(int)]


def exceeds(count, n, rate, n_tests):
    """Whether so many events of n are too many for the rate, all tests together."""
    tested = binomtest(int(count), int(n), rate, alternative="greater")
    return tested.pvalue < LEVEL / n_tests


def missed_share(law, sets, inside, c=None):
    """True share of the rows of some atoms, of one class, whose label is left out."""
    joint = law.joint * inside[:, None]
    joint = joint if c is None else joint * (np.arange(joint.shape[1]) == c)
    return float((joint * ~sets).sum() / joint.sum())


@pytest.mark.slow
@BY_NAME
@pytest.mark.parametrize("condition", [None, "class"])
def test_split_sets_miss_no_more_in_any_subgroup(law, parts, condition):
    random = np.random.default_rng(5)
    inside = Parts(parts)
    n_draws, labels = 500, [None] if condition is None else range(law.joint.shape[1])
    cells = [*itertools.product(range(inside.parts.shape[1]), labels)]
    misses = dict.fromkeys(cells, 0)
    for _ in range(n_draws):
        X, y = law.draw(120, random)
        model = ConformalClassifier(
            law.model, subgroups=inside, condition=condition, level=RATE
        )
        sets = model.fit(X, y).predict_set(law.atoms, allow_empty=True)
        for g, c in cells:
            rate = missed_share(law, sets, inside.parts[:, g], c)
            misses[g, c] += random.random() < rate
    for count in misses.values():
        assert not exceeds(count, n_draws, RATE, len(LAWS) * len(cells))
    assert sum(misses.values()) > 0.01 * n_draws * len(cells)  # not every label


@pytest.mark.slow
@BY_NAME
def test_sets_with_confidence_hold_in_all_subgroups_at_once(law, parts):
    random = np.random.default_rng(6)
    inside, n_draws, false = Parts(parts), 500, 0
    for _ in range(n_draws):
        X, y = law.draw(300, random)
        model = ConformalClassifier(
            law.model, subgroups=inside, level=RATE, confidence=0.8, random_state=0
        ).fit(X, y)
        sets = model.predict_set(law.atoms, allow_empty=True)
        rates = [missed_share(law, sets, own) for own in inside.parts.T]
        false += max(rates) > RATE + 1e-8
    assert not exceeds(false, n_draws, 0.2, len(LAWS))


def drawn(n, random, law):
    """Rows of three laws, with a subgroup that is hard."""
    X = np.round(random.normal(size=(n, 2)), 1)
    noise = np.where(X[:, 0] > 0.5, (2.0, 0.8, 3.0)[law], (0.3, 0.8, 0.1)[law])
    if law == 1:
        noise = noise * random.standard_t(1.5, size=n)
    else:
        noise = noise * random.normal(size=n)
    return X, (X[:, 1] + noise > (0.0, 0.3, 0.8)[law]).astype(int)


def quarters(X):
    parts = np.column_stack([X[:, 0] > 0.5, X[:, 1] > 0, X[:, 0] < 0])
    return np.column_stack([parts, ~parts.any(axis=1)])


@pytest.mark.slow
@pytest.mark.parametrize("law", [0, 1, 2])
@pytest.mark.parametrize("condition", [None, "class"])
def test_full_sets_miss_no_more_in_any_subgroup(law, condition):
    random = np.random.default_rng(law)
    n_draws, cells = 250, [*itertools.product(range(4), [None, 0, 1])]
    misses, about = dict.fromkeys(cells, 0), dict.fromkeys(cells, 0)
    for _ in range(n_draws):
        X, y = drawn(45, random, law)
        model = ConformalClassifier(
            method="full",
            model="gaussian",
            subgroups=quarters,
            condition=condition,
            level=RATE,
        )
        if (np.bincount(y, minlength=2) < 2).any():
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrudentWarning)
            model.fit(X, y)
        new, label = drawn(400, random, law)
        inside = quarters(new)
        for g, c in cells:
            of_cell = inside[:, g] & (True if c is None else label == c)
            rows = np.flatnonzero(of_cell)[:1]  # one new row of each kind
            if len(rows) and (c is None) == (condition is None):
                sets = model.predict_set(new[rows], allow_empty=True)
                misses[g, c] += not sets[0, label[rows[0]]]
                about[g, c] += 1
    for cell, count in misses.items():
        if about[cell]:
            assert not exceeds(count, about[cell], RATE, 3 * 8)
    assert sum(misses.values()) > 0


@pytest.mark.slow
@BY_NAME
def test_errors_of_all_cells_and_subgroups_at_once(law, parts):
    random = np.random.default_rng(7)
    inside, n_draws, false, answered = Parts(parts), 500, 0, 0
    predicted = law.model.predict(law.atoms)
    for _ in range(n_draws):
        X, y = law.draw(1500, random)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrudentWarning)
            model = SelectiveClassifier(
                law.model, error_rate=RATE, confidence=0.8, subgroups=inside
            ).fit(X, y)
        given = model.answers(law.atoms)
        answered += given.any()
        wrong = False
        for promise in model.guarantees_:
            about = model.is_about(promise, law.atoms)
            rate = law.error_rate(predicted, given & about)
            wrong |= rate > RATE
        false += wrong
    assert answered
    assert not exceeds(false, n_draws, 0.2, len(LAWS))


@pytest.mark.slow
@BY_NAME
@pytest.mark.parametrize("in_sets", [False, True])
def test_class_errors_in_all_subgroups_at_once(law, parts, in_sets):
    random = np.random.default_rng(8)
    inside, n_draws, false, made = Parts(parts), 400, 0, 0
    n_classes = law.joint.shape[1]
    limits = {0: 0.2} if not in_sets else dict.fromkeys(range(n_classes), 0.2)
    for _ in range(n_draws):
        X, y = law.draw(900, random)
        model = NeymanPearsonClassifier(
            law.model,
            max_class_error=limits,
            abstain=in_sets,
            confidence=0.8,
            subgroups=inside,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrudentWarning)
            try:
                model.fit(X, y)
            except InfeasibleError:
                continue
        made += 1
        sets = model.predict_set(law.atoms)
        rates = [
            missed_share(law, sets, inside.parts[:, g], c)
            for g in range(inside.parts.shape[1])
            for c in limits
        ]
        false += max(rates) > 0.2 + 1e-8
    assert made > 100
    assert not exceeds(false, n_draws, 0.2, 2 * len(LAWS))


@pytest.mark.slow
@pytest.mark.parametrize(
    "law", [constant_law(0.2), rare_class_law(), many_classes_law()]
)
def test_certified_limits_of_every_claim_in_every_subgroup(law):
    random = np.random.default_rng(9)
    atom = np.arange(len(law.joint))
    inside = Parts(np.column_stack([atom % 2 == 0, atom % 5 < 2]))
    n_draws, false = 500, 0
    predicted = law.model.predict(law.atoms)
    right = predicted[:, None] == np.arange(law.joint.shape[1])
    for _ in range(n_draws):
        X, y = law.draw(250, random)
        found = certify(law.model, X, y, confidence=0.8, subgroups=inside(X))
        names = {f"subgroup {g}": own for g, own in enumerate(inside.parts.T)}
        every = np.ones(len(atom), dtype=bool)
        false += any(
            missed_share(law, right, names.get(claim.subgroup, every), claim.scope)
            > claim.bound + 1e-12
            for claim in found
        )
    assert not exceeds(false, n_draws, 0.2, 3)


@pytest.mark.slow
def test_monitors_of_true_promises_share_one_level():
    # Three overlapping subgroups, each exactly at its bound, watched for life.
    random = np.random.default_rng(10)
    n_runs, level, alarms = 400, 0.2, 0
    for _ in range(n_runs):
        members = random.random((600, 3)) < (0.6, 0.5, 0.3)
        wrong = random.random(600) < 0.1
        monitors = [
            PromiseMonitor(
                Guarantee(quantity="error rate", bound=0.1, sense="<=", subgroup=name),
                level=level / 3,
            )
            for name in NAMES
        ]
        for start in range(0, 600, 100):
            rows = slice(start, start + 100)
            for g, monitor in enumerate(monitors):
                monitor.update_rows(
                    np.zeros(100), wrong[rows].astype(int), subgroups=members[rows, g]
                )
        alarms += any(monitor.verdict == "broken" for monitor in monitors)
    assert not exceeds(alarms, n_runs, level, 1)


@pytest.mark.slow
def test_thresholds_of_overlapping_subgroups_are_caught():
    # B: 11 % of 600 rows, the surest, never wrong, too few for a proof of their own
    # (72 rows). All rows: those of B certify a threshold above which, B left out, too
    # many err: with probability .1629, summed over the size of B and the wrong rows.
    random = np.random.default_rng(11)
    n, n_draws, alpha = 600, 1500, 0.05
    each = 1 - 0.05 / 2
    boundary = error_boundary(n, alpha, confidence=each)
    planted, built = 0, 0
    for _ in range(n_draws):
        sureness = random.random(n)
        of_b = random.random(n) < 0.11
        sureness[of_b] += 1
        wrong = ~of_b & (random.random(n) < 0.0505)
        rows = AnswerScores.from_answers(sureness, wrong)
        admitted = boundary.admits(np.arange(1, n + 1), rows.wrong[1:])
        k = int(np.flatnonzero(admitted).max(initial=-1)) + 1
        own = error_boundary(int(of_b.sum()), alpha, confidence=each)
        # B answers nothing; of all rows those of A alone are, and err too often.
        planted += not len(own.ranks) and k > of_b.sum()
        parts = Memberships(np.column_stack([np.ones(n, dtype=bool), of_b]), ("A", "B"))
        rule = CellErrors.from_answers(
            sureness, wrong, parts, Terms(confidence=0.95)
        ).rule(alpha)
        cells = [cell_name(cell, ("A", "B")) for cell in rule.cells]
        only_a = dict(zip(cells, rule.thresholds, strict=True)).get("A", np.inf)
        built += only_a < np.inf and "A and B" not in cells
    assert exceeds(planted, n_draws, 0.05, 1)
    assert binomtest(planted, n_draws, 0.1629).pvalue > 1e-3
    assert not exceeds(built, n_draws, 0.05, 1)


def test_a_frozen_model_needs_no_rows_of_its_own():
    law, parts = LAWS[0]
    X, y = law.draw(400, np.random.default_rng(0))
    model = ConformalClassifier(law.model, subgroups=Parts(parts)).fit(X, y)
    assert isinstance(model.estimator, FrozenEstimator)
    assert sum(model.subgroup_count_) > 400
