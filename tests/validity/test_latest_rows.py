"""Promises about rows like the latest ones, which are held out in the order of time."""

from __future__ import annotations

import pickle
import warnings
from datetime import UTC, datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.stats import binomtest
from sklearn import config_context
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from prudent import (
    Assumption,
    BestClassifier,
    ConformalClassifier,
    Guarantee,
    NeymanPearsonClassifier,
    SelectiveClassifier,
)
from prudent.estimator_tools.held_out import fit_inside

N = 400
DAYS = np.datetime64("2026-01-01") + np.arange(N)
FROM = "population of the latest 120 rows (from 2026-10-08)"


def rows(n=N, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 2))
    return X, (X[:, 0] + random.normal(size=n) > 0).astype(int)


def selective(**settings):
    return SelectiveClassifier(LogisticRegression(), error_rate=0.3, **settings)


@pytest.mark.parametrize(
    "time",
    [
        DAYS,
        DAYS.astype("datetime64[ns]"),
        DAYS.astype(str),
        DAYS.astype(str).tolist(),
        [f"{day}T00:00:00Z" for day in DAYS],
        [f"{day}T02:00:00+02:00" for day in DAYS],
        DAYS.tolist(),
        [datetime(d.year, d.month, d.day, tzinfo=UTC) for d in DAYS.tolist()],
        pd.Series(DAYS),
        pd.DatetimeIndex(DAYS, tz="UTC"),
        pd.Series(DAYS).astype(str),
        pl.Series(DAYS),
        pl.Series(DAYS.tolist(), dtype=pl.Date),
    ],
    ids=lambda time: f"{type(time).__name__}",
)
def test_times_are_numbers_or_dates_of_any_library(time):
    X, y = rows()
    (promise,) = selective().fit(X, y, time=time).guarantees_
    assert promise.assumptions == (Assumption.INDEPENDENT_LATEST,)
    assert str(promise).endswith(f"independent draws from the {FROM}.")
    assert Guarantee.from_dict(promise.to_dict()) == promise


def test_the_latest_rows_are_held_out_whatever_their_order():
    X, y = rows()
    order = np.random.default_rng(1).permutation(N)
    model = selective().fit(X[order], y[order], time=np.arange(N)[order] / 2)
    assert model.n_calibration_ == 120
    assert "the latest 120 rows (from 140)" in str(model.guarantees_[0])
    early = LogisticRegression().fit(X[:280], y[:280])
    np.testing.assert_allclose(model.estimator_.coef_, early.coef_, rtol=1e-3)
    # Equal times stay together: 40 times of 10 rows, and 30 % of the rows are 12.
    ties = selective().fit(X, y, time=(np.arange(N) + 5) // 10)
    assert ties.n_calibration_ == 125
    assert "(from 28)" in str(ties.guarantees_[0])


def test_a_group_stands_at_its_latest_row():
    X, y = rows()
    groups, times = np.arange(N) % 100, np.arange(N)
    # A row of group 3 is among the last ones: 30 groups are, one row of each.
    model = ConformalClassifier(LogisticRegression(), level=0.2, random_state=0)
    model.fit(X, y, groups=groups, time=times)
    assert model.n_calibration_ == 30
    (promise,) = model.guarantees_
    assert promise.assumptions[0] is Assumption.GROUPS_LATEST
    assert promise.unit == "group"
    assert "assuming the latest 30 groups (from 370) are independent" in str(promise)
    early = np.isin(groups, np.arange(70))
    learned = LogisticRegression().fit(X[early], y[early])
    np.testing.assert_allclose(model.estimator_.coef_, learned.coef_, rtol=1e-3)


def test_every_promise_says_it_at_every_rate():
    X, y = rows()
    model = ConformalClassifier(condition="class").fit(X, y, time=DAYS)
    assert model.method_ == "split"
    for fitted in (model, model.with_level(0.2), pickle.loads(pickle.dumps(model))):
        for promise in fitted.guarantees_:
            assert promise.assumptions[0] is Assumption.EXCHANGEABLE_CLASS_LATEST
            assert "those among the latest 120 rows (from 2026-10-08)" in str(promise)
    subgroups = ConformalClassifier(subgroups=lambda X: X > 0).fit(X, y, time=DAYS)
    assert subgroups.guarantees_[0].assumptions[0] is (
        Assumption.EXCHANGEABLE_SUBGROUP_LATEST
    )
    plain = ConformalClassifier().fit(X, y, time=DAYS)
    assert (
        "assuming the new row is exchangeable with the latest 120 rows (from 2026-10-08"
    ) in str(plain.guarantees_[0])
    limited = NeymanPearsonClassifier(LogisticRegression(), max_class_error={0: 0.2})
    limited.fit(X, y, time=DAYS)
    for fitted in (limited, limited.with_class_error({1: 0.3})):
        assert "latest 200 rows (from 2026-07-20)" in str(fitted.guarantees_[0])
    shifted = limited.guarantees_[0].under_shift("total_variation", 0.1)
    assert shifted.assumptions[0] is Assumption.SHIFTED
    # Of a model that was there before, all rows are held out.
    frozen = FrozenEstimator(LogisticRegression().fit(*rows(seed=2)))
    model = SelectiveClassifier(frozen, error_rate=0.3).fit(X, y, time=DAYS)
    assert "latest 400 rows (from 2026-01-01)" in str(model.guarantees_[0])


def test_a_rule_with_its_scores_keeps_the_sentence():
    from prudent import Rule

    X, y = rows()
    model = ConformalClassifier(LogisticRegression(), level=0.2)
    rule = model.fit(X, y, time=DAYS).rule_
    again = Rule.from_json(rule.to_json(keep_scores=True))
    assert again.guarantees == rule.guarantees
    assert again.at(0.3).guarantees == rule.at(0.3).guarantees


def test_candidates_are_judged_by_folds_that_go_forward():
    X, y = rows(600)
    best = BestClassifier(
        ["logistic", "lda"], promise="error <= 40%", cv=3, random_state=0
    )
    best.fit(X, y, time=np.arange(600) // 6)
    assert "latest 180 rows (from 70)" in str(best.guarantees_[0])
    # Rows of the past are no good: what they say of the candidates is not looked at.
    changed = y.copy()
    changed[:100] = 1 - changed[:100]
    other = best.fit(X, changed, time=np.arange(600) // 6)
    assert other.n_calibration_ == 180
    plain = BestClassifier(["logistic", "lda"], promise="none", cv=3, random_state=0)
    assert plain.fit(X, y, time=DAYS.repeat(2)[:600]).best_name_ in ("logistic", "lda")


def test_pipelines_and_wrappers_pass_times_on():
    X, y = rows()
    pipeline = make_pipeline(StandardScaler(), selective())
    pipeline.fit(X, y, selectiveclassifier__time=DAYS)
    assert FROM in str(pipeline[-1].guarantees_[0])
    with config_context(enable_metadata_routing=True):
        asking = make_pipeline(StandardScaler(), selective().set_fit_request(time=True))
        assert FROM in str(asking.fit(X, y, time=DAYS)[-1].guarantees_[0])
    inside = SelectiveClassifier(selective(), error_rate=0.3)
    inside.fit(X, y, time=DAYS)
    assert "latest 84 rows" in str(inside.estimator_.guarantees_[0])


def test_what_is_no_time_is_refused():
    X, y = rows()
    gaps = np.arange(N, dtype=float)
    gaps[:3] = np.nan
    for time, message in [
        (gaps, "time: 3 missing values."),
        ([None, *DAYS.tolist()[1:]], "time: 1 missing value."),
        (np.zeros(N), "time has one value."),
        (["soon"] * N, "time: 'soon' is neither a number nor an ISO date such as"),
        ([1, 2], r"one value for each of the 400 rows, got shape \(2,\)"),
        (np.arange(N) >= 100, "all rows are among the latest 0.8 or as late as these"),
    ]:
        with pytest.raises(ValueError, match=message):
            selective(calibration_size=0.8).fit(X, y, time=time)
    for method in ("full", "cross"):
        with pytest.raises(ValueError, match="`time` needs method='split', got"):
            ConformalClassifier(method=method).fit(X, y, time=DAYS)


def test_dates_of_day_and_minute_are_said_as_they_are():
    X, y = rows()
    hours = np.datetime64("2026-01-01T00:30") + 60 * np.arange(N)
    assert "(from 2026-01-12 16:30)" in str(
        selective().fit(X, y, time=hours).guarantees_[0]
    )


# --- promises over fresh draws, earlier rows of another law ---------------------------

ATOMS = np.linspace(0, 11, 300)[:, None]
NOW = np.exp(-((ATOMS[:, 0] - 6) ** 2) / 18)
NOW /= NOW.sum()
IS_HIGH = 1 / (1 + np.exp(-(ATOMS[:, 0] - 5.5)))  # P(y = 1) of a row of today
ONCE = (ATOMS[:, 0] > 3.5).astype(float)  # and of an earlier one: easy to tell
DRAWS, EARLY, LATE = 1500, 200, 80


def stream(random, late=LATE):
    """Rows whose law changes on the way, at times of which several are equal."""
    early = random.choice(160, EARLY), random.choice(300, late, p=NOW)
    chance = np.concatenate([ONCE[early[0]], IS_HIGH[early[1]]])
    atoms = np.concatenate(early)
    y = (random.uniform(size=len(atoms)) < chance).astype(int)
    return ATOMS[atoms], y, np.arange(len(atoms)) // 4


def true_rate(violated, among):
    """Rate of violations (300, 2), by label, among the pairs that count."""
    joint = NOW[:, None] * np.column_stack([1 - IS_HIGH, IS_HIGH])
    total = joint[among].sum()
    return 0.0 if total == 0 else joint[violated & among].sum() / total


EVERY = np.ones((300, 2), dtype=bool)


def answered_wrong(model):
    wrong = model.predict(ATOMS)[:, None] != np.arange(2)
    answered = np.repeat(model.answers(ATOMS)[:, None], 2, axis=1)
    return true_rate(wrong, answered) - 0.2


def missed(model):
    wrong = model.predict(ATOMS)[:, None] != np.arange(2)
    return true_rate(wrong, np.arange(2) == np.zeros((300, 1))) - 0.2


def uncovered(model):
    return true_rate(~model.predict_set(ATOMS), EVERY) - 0.2


MODEL = LogisticRegression()
SHARE = LATE / (EARLY + LATE)
CONFIDENT = {
    "answers": (
        SelectiveClassifier(
            MODEL, error_rate=0.2, confidence=0.9, calibration_size=SHARE
        ),
        answered_wrong,
    ),
    "class errors": (
        NeymanPearsonClassifier(
            MODEL, max_class_error={0: 0.2}, confidence=0.9, calibration_size=SHARE
        ),
        missed,
    ),
    "coverage": (
        ConformalClassifier(MODEL, level=0.2, confidence=0.9, calibration_size=SHARE),
        uncovered,
    ),
}


def n_false(model, excess, draws, *, in_time, grouped=False):
    false = 0
    for seed in range(draws):
        random = np.random.default_rng(seed)
        X, y, times = stream(random)
        options = {"time": times} if in_time else {}
        if grouped:  # rows of a group are copies, which alone are no new evidence
            X, y, times = (np.repeat(values, 3, axis=0) for values in (X, y, times))
            options = {"groups": np.arange(len(y)) // 3, "time": times}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fitted = model.set_params(random_state=seed).fit(X, y, **options)
        false += excess(fitted) > 1e-12
    return false


@pytest.mark.parametrize("name", CONFIDENT)
@pytest.mark.parametrize("draws", [150, pytest.param(DRAWS, marks=pytest.mark.slow)])
@pytest.mark.parametrize("grouped", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_promises_hold_for_rows_like_the_latest(name, draws, grouped):
    model, excess = CONFIDENT[name]
    false = n_false(model, excess, draws, in_time=True, grouped=grouped)
    assert binomtest(false, draws, 0.1, alternative="greater").pvalue > 1e-3


@pytest.mark.parametrize("name", CONFIDENT)
def test_rows_held_out_at_random_promise_too_much(name):
    model, excess = CONFIDENT[name]
    false = n_false(model, excess, 40, in_time=False)
    assert binomtest(false, 40, 0.1, alternative="greater").pvalue < 1e-6


@pytest.mark.slow
def test_average_coverage_is_that_of_rows_like_the_latest():
    rates, bounds = [], []
    model = ConformalClassifier(MODEL, level=0.2, calibration_size=SHARE)
    for seed in range(DRAWS):
        random = np.random.default_rng(seed)
        X, y, times = stream(random)
        fitted = model.set_params(random_state=seed).fit(X, y, time=times)
        members = fitted.predict_set(ATOMS, allow_empty=True)
        rates.append(true_rate(~members, EVERY))
        bounds.append(1 - fitted.guarantees_[0].bound)
    spread = np.std(rates) / np.sqrt(DRAWS)
    assert np.mean(rates) <= np.mean(bounds) + 3.1 * spread


def test_a_pipeline_in_a_pipeline_hands_times_on():
    """A comparison puts its own preparation in front of a pipeline of the user's."""
    X, y = rows()
    inner = make_pipeline(StandardScaler(), selective())
    outer = make_pipeline(StandardScaler(), inner)
    fit_inside(outer, X, y, time=DAYS)
    assert FROM in str(inner[-1].guarantees_[0])
    groups = np.repeat(np.arange(N // 2), 2)
    fit_inside(outer, X, y, groups=groups)
    assert inner[-1].guarantees_[0].unit == "group"
