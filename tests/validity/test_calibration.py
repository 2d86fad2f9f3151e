"""The hold-out promise against fresh truth, and the test error of the defaults."""

import re

import numpy as np
import pandas as pd
import pytest
from experiments.calibration_generalisation import (
    FAMILIES,
    data_set,
    mean_error,
    models,
)
from scipy.stats import binomtest

from prudent import RiskCalibratedClassifier
from prudent.calibration.classifier import drawn_seed
from prudent.core.assumptions import Assumption
from prudent.core.binomial import upper_limit
from prudent.core.rows import hold_out

#: Level of each exact test: what a true promise fails by chance.
LEVEL = 1e-3


def assert_at_most(count, n, share):
    assert binomtest(int(count), n, share, alternative="greater").pvalue > LEVEL


def held_out(seed=None, **settings):
    return RiskCalibratedClassifier(stopping="holdout", random_state=seed, **settings)


@pytest.mark.slow
def test_holdout_promise_holds_on_pure_noise():
    """Labels independent of the features: the true error rate is 1/2.

    The plain limit of the iterate that is best on these rows is false far too often.
    """
    broken = plain = 0
    n_fits = 240
    for seed in range(n_fits):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(165, 5)), rng.integers(2, size=165)
        model = RiskCalibratedClassifier(
            family="diag", stopping="holdout", learning_rate=2.0, line_search=False,
            random_state=seed,
        ).fit(X, y)  # fmt: skip
        (promise,) = model.guarantees_
        found = promise.evidence
        limit = upper_limit(found["wrong"], found["calibration rows"], level=0.05)
        broken += promise.bound < 0.5
        plain += limit < 0.5
    assert binomtest(broken, n_fits, 0.05, alternative="greater").pvalue > 1e-4
    assert plain > 0.2 * n_fits


# Held-out rows are unknown to the fit, levels of categorical features included.


def rare_levels(rng, n):
    """The first column names rows of class 1 by one of ten million levels."""
    y = rng.integers(0, 2, n)
    name = np.where(y == 1, rng.integers(10, 10**7, n), rng.integers(0, 5, n))
    X = np.c_[name.astype(str), rng.integers(0, 2, n).astype(str)].astype(object)
    return X, y


@pytest.mark.parametrize("n_fits", [60, pytest.param(600, marks=pytest.mark.slow)])
@pytest.mark.parametrize("family", ["categorical", "mixed"])
def test_rare_levels_break_no_promise(family, n_fits):
    broken = 0
    for seed in range(n_fits):
        rng = np.random.default_rng(seed)
        (X, y), (fresh, truth) = rare_levels(rng, 200), rare_levels(rng, 3000)
        if family == "mixed":
            X, fresh = (
                pd.DataFrame(part, columns=["name", "coin"]) for part in (X, fresh)
            )
        model = held_out(seed, family=family, level_prior_strength=0, max_iter=1)
        model.fit(X, y)
        error = np.mean(model.predict(fresh) != truth)
        broken += error > model.guarantees_[0].bound
    assert_at_most(broken, n_fits, 0.05)


@pytest.mark.parametrize("family", ["categorical", "mixed"])
def test_a_fit_does_not_depend_on_what_is_held_out(family):
    """Other values in the rows held out, new levels and scales: the same model."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"word": rng.choice(list("abc"), 80), "flag": rng.choice(["x", "y"], 80)}
    )
    if family == "mixed":
        frame["size"] = rng.normal(size=80)
    y = rng.integers(0, 2, 80)
    plain = held_out(5, family=family, max_iter=6).fit(frame, y)
    seed = drawn_seed(RiskCalibratedClassifier(random_state=5))
    rows = hold_out(80, 0.2, np.random.RandomState(seed))[1]
    other = frame.copy()
    other.loc[rows, "word"] = [f"new{i}" for i in range(len(rows))]
    if family == "mixed":
        other.loc[rows, "size"] = 1e6
    moved = held_out(5, family=family, max_iter=6).fit(other, y)
    for ours, theirs in zip(
        moved.level_probabilities_, plain.level_probabilities_, strict=True
    ):
        assert ours.shape == theirs.shape
    steps = min(len(plain.loss_curve_), len(moved.loss_curve_))
    np.testing.assert_array_equal(moved.loss_curve_[:steps], plain.loss_curve_[:steps])


# Weights and groups


def test_weights_manufacture_no_confidence():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), rng.integers(0, 2, 60)
    for weight in (np.full(60, 100.0), rng.integers(1, 3, 60), np.full(60, 0.5)):
        assert held_out(0).fit(X, y, sample_weight=weight).guarantees_ == ()


def grouped_rows(rng, n_groups, size):
    """Rows near the place of their group, whose label is a coin: the error is 1/2."""
    group = np.repeat(np.arange(n_groups), size)
    X = 10 * rng.normal(size=(n_groups, 2))[group]
    X += 0.01 * rng.normal(size=X.shape)
    y = np.where(rng.random(len(X)) < 0.05, 1, 0) ^ rng.integers(0, 2, n_groups)[group]
    return X, y, group


@pytest.mark.parametrize("n_fits", [100, pytest.param(1000, marks=pytest.mark.slow)])
def test_groups_of_ten_rows_keep_the_promise(n_fits):
    broken = ignored = 0
    for seed in range(n_fits):
        X, y, group = grouped_rows(np.random.default_rng(seed), 25, 10)
        settings = {"family": "full", "max_iter": 16, "validation_fraction": 0.4}
        model = held_out(seed, **settings).fit(X, y, groups=group)
        (promise,) = model.guarantees_
        assert promise.evidence["calibration rows"] == 10
        assert promise.assumptions == (Assumption.GROUPS,)
        broken += promise.bound < 0.5
        plain = held_out(seed, **settings).fit(X, y)
        ignored += plain.guarantees_[0].bound < 0.5
    assert_at_most(broken, n_fits, 0.05)
    assert ignored > 0.4 * n_fits  # what rows as groups would have promised


# What `check` says of true promises


def discrete_law(rng):
    """Atoms with masses and class probabilities: the exact error of any rule."""
    n_atoms, d = rng.integers(2, 12), rng.integers(1, 4)
    atoms = rng.integers(-2, 3, size=(n_atoms, d)) * 10.0 ** rng.integers(-8, 9)
    mass = rng.dirichlet(np.full(n_atoms, 0.7))
    return atoms, mass, rng.random(n_atoms) ** rng.integers(1, 4)


@pytest.mark.filterwarnings("ignore::prudent.exceptions.PrudentWarning")
@pytest.mark.parametrize("n_laws", [150, pytest.param(2000, marks=pytest.mark.slow)])
def test_true_promises_are_seldom_called_broken(n_laws):
    broken = false = made = 0
    refusals = set()
    for seed in range(n_laws):
        rng = np.random.default_rng(seed)
        atoms, mass, share = discrete_law(rng)
        row = rng.choice(len(mass), size=rng.integers(8, 80), p=mass)
        y = (rng.random(len(row)) < share[row]).astype(int)
        family = rng.choice(["full", "diag", "tied", "tied_diag", "categorical"])
        model = held_out(
            seed, family=family, max_iter=4, learning_rate=1.0, validation_fraction=0.5
        )
        try:
            model.fit(atoms[row], y)
        except ValueError as refusal:
            refusals.add(re.sub(r"\d", "k", str(refusal))[:30])
            continue
        made += 1
        # One row at a time: no other row may change the answer.
        said = np.concatenate([model.predict(atom[None]) for atom in atoms])
        error = mass @ np.where(said == 1, 1 - share, share)
        (promise,) = model.guarantees_
        false += error > promise.bound + 1e-12
        wrong = rng.binomial(500, min(error, 1.0))
        broken += promise.check(wrong, 500).verdict == "broken"
    assert made > 0.5 * n_laws
    assert refusals <= {
        "class k has no row in the part",
        "rows of at least k classes are",
    }
    assert_at_most(false, made, 0.05)
    assert_at_most(broken, made, 0.05 + 0.05)


def test_a_false_promise_is_called_broken():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 2)), (rng.random(400) < 0.05).astype(int)
    (promise,) = held_out(0, family="tied").fit(X, y).guarantees_
    wrong = rng.binomial(2000, 2 * promise.bound, size=200)
    verdicts = [promise.check(count, 2000).verdict for count in wrong]
    assert verdicts.count("broken") >= 190


@pytest.mark.slow
def test_slack_of_the_promise_is_small():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=1800)
    X = rng.normal(size=(1800, 4)) + 0.8 * y[:, np.newaxis]
    (promise,) = held_out(0, family="diag").fit(X, y).guarantees_
    assert promise.evidence["calibration rows"] == 360
    assert promise.bound - promise.evidence["wrong"] / 360 <= 0.09


@pytest.mark.slow
@pytest.mark.parametrize("name", ["heart", "sonar", "wine", "vehicle"])
def test_defaults_do_not_overfit(benchmark_data, name):
    X, y = data_set(name)
    for family in FAMILIES:
        start, calibrated = (mean_error(model, X, y) for model in models(family))
        assert calibrated <= start + 0.015
