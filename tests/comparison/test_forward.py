"""Comparisons in the order of time: forward folds, the latest rows, the order test."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

import prudent
from prudent import BestClassifier, ClassMoments
from prudent.comparison.protocol import DEFAULT_PROMISE
from prudent.estimator_tools.labelled_rows import labelled_rows
from prudent.estimator_tools.order import order_in_time
from prudent.evaluation.choice import ChosenClassifier
from prudent.evaluation.evaluate import make_folds, training_moments

METHODS = {"methods": ["conformal"], "baselines": ["lda"], "best": False}
N = 600
DAYS = np.datetime64("2025-01-01") + np.arange(N) // 3


def rows(seed=0, n=N):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 3))
    y = np.where(X[:, 0] + 0.7 * random.normal(size=n) > 0, "yes", "no")
    return X, y


@given(
    times=st.lists(st.integers(-5, 30), min_size=12, max_size=80),
    n_folds=st.integers(1, 6),
    groups=st.booleans(),
)
def test_forward_folds_learn_from_earlier_rows_only(times, n_folds, groups):
    times = np.array(times)
    distinct = np.unique(times)
    if len(distinct) <= n_folds:
        return
    names = times // 2 if groups else None
    if groups:  # the time of a group is one
        times = names
        if len(np.unique(times)) <= n_folds:
            return
    codes = np.arange(len(times)) % 2
    folds = make_folds(codes, n_folds, 1, 0, names, times)
    assert len(folds) == n_folds
    tested = np.concatenate([fold.held_out for fold in folds])
    assert len(np.unique(tested)) == len(tested)
    for fold, after in zip(folds, [*folds[1:], None], strict=True):
        assert times[fold.train].max() < times[fold.held_out].min()
        # Nothing between them is left out, and nothing is forgotten.
        later = np.setdiff1d(np.arange(len(times)), fold.train)
        assert times[later].min() == times[fold.held_out].min()
        if after is not None:
            both = np.sort(np.concatenate([fold.train, fold.held_out]))
            np.testing.assert_array_equal(both, np.sort(after.train))
    assert len(folds[-1].train) + len(folds[-1].held_out) == len(times)


def test_moments_of_forward_folds_are_those_of_their_training_rows():
    X, y = rows()
    codes = (y == "yes").astype(np.intp)
    folds = make_folds(codes, 4, 1, 0, None, DAYS)
    merged, total = training_moments(X, codes, np.array(["no", "yes"]), folds)
    for fold, moments in zip(folds, merged, strict=True):
        direct = ClassMoments.from_arrays(X[fold.train], y[fold.train])
        np.testing.assert_array_equal(moments.count, direct.count)
        np.testing.assert_allclose(moments.mean, direct.mean, rtol=1e-12)
        np.testing.assert_allclose(moments.scatter, direct.scatter, rtol=1e-10)
    assert total.count.sum() == len(X)


def test_candidates_of_a_choice_are_judged_forward():
    chosen = ChosenClassifier(["lda"], cv=3)
    folds = chosen._folds(N, None, DAYS)
    assert len(folds) == 3
    for train, judged in folds:
        assert DAYS[train].max() < DAYS[judged].min()
    assert len(chosen._folds(4, None, [1, 1, 2, 2])) == 1


def test_a_table_in_time_says_so_and_keeps_its_promise():
    X, y = rows()
    for promise in ("coverage >= 80% in every class", "error <= 20%", "none"):
        found = prudent.compare(X, y, time=DAYS, promise=promise, **METHODS)
        assert "5 folds forward in time, seed 0" in str(found)
        assert "in time: no change with time shown (p = 0." in str(found)
        assert found.data.order.startswith("no change with time shown")
        command = found.settings.command
        assert command.startswith("prudent.compare(X, y, ")
        assert "cv=5, time=time, random_state=0" in command
        assert (f"promise={promise!r}" in command) == (promise != DEFAULT_PROMISE)
        assert found.to_dict()["data"]["order"] == found.data.order
        # The first block is learned from only.
        n_tested = sum(fold.n_test for fold in found.folds) / len(found.rows)
        assert abs(n_tested - 500) <= 3
        assert [row.method for row in found.rows if row.failure] == []
    conformal = next(row for row in found.rows if row.method == "conformal")
    assert conformal.parameters["method"] == "'split'"


def test_changes_are_named_with_column_and_time():
    X, y = rows()
    X[300:, 1] += 1.0
    table = pd.DataFrame(X, columns=["age", "dose", "size"])
    table["site"] = np.where(np.arange(N) % 2, "a", "b")
    table.loc[5, "age"] = np.nan
    found = prudent.compare(table, y, time=DAYS, promise="error <= 20%", **METHODS)
    match = re.fullmatch(
        r"the rows change with time \(p = 0\.005; most: dose, about (.*)\): "
        r"the promise is about rows like the latest 180",
        found.data.order,
    )
    assert match is not None
    assert abs(np.datetime64(match[1]) - DAYS[300]) < np.timedelta64(30, "D")
    grouped = prudent.compare(
        X, y, time=DAYS, groups=np.arange(N) // 2, promise="error <= 30%", **METHODS
    )
    assert grouped.data.order.endswith("about groups like the latest 90")


def fewer_sites(table, y):
    table["site"][late()] = "a"


def gaps(table, y):
    table["age"][late()] = np.nan


def one_class(table, y):
    y[late()] = "yes"


def wider(table, y):
    table["age"][late()] *= 3


def other_labels(table, y):
    flipped = late() & (np.arange(N) % 2 == 0)
    y[flipped] = np.where(y[flipped] == "yes", "no", "yes")


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (fewer_sites, "site"),
        (gaps, "missing age"),
        (one_class, "class (yes|no)"),
        (wider, "spread of age"),
        (other_labels, "labels of like rows"),
    ],
)
def test_what_changes_is_called_by_its_name(change, named):
    X, y = rows(3)
    site = np.random.default_rng(3).choice(["a", "b", "c"], N)
    table = {"age": X[:, 1].copy(), "dose": X[:, 0], "site": site}
    y = y.astype(object)
    change(table, y)
    rows_in_time = labelled_rows(pd.DataFrame(table), y, None, DAYS)
    line = str(order_in_time(rows_in_time, None))
    assert re.search(rf"p = 0.005; most: {named}, about 2025-0", line), line


def late():
    return np.arange(N) > N * 0.6


def test_a_file_sorted_by_class_within_its_times_shows_no_change():
    X, y = rows()
    times = np.arange(N) // 60
    order = np.lexsort((y, times))
    line = str(
        order_in_time(labelled_rows(X[order], y[order], None, times[order]), 180)
    )
    assert line.startswith("no change with time shown")


def test_what_a_table_in_time_cannot_have():
    X, y = rows()
    with pytest.raises(ValueError, match="`n_repeats` must be 1 with `time`, got 2"):
        prudent.compare(X, y, time=DAYS, n_repeats=2)
    with pytest.raises(ValueError, match="time has one value"):
        prudent.compare(X, y, time=np.ones(N))
    # Three times give two folds.
    found = prudent.compare(X, y, time=np.arange(N) // 200, promise="none", **METHODS)
    assert found.settings.n_folds == 2
    assert any("2 folds instead of 5" in note for note in found.data.notes)
    # Two times give one.
    found = prudent.compare(X, y, time=np.arange(N) // 300, promise="none", **METHODS)
    assert any("1 fold instead of 5" in note for note in found.data.notes)


def test_folds_are_so_few_that_the_first_one_learns_from_several_times():
    X, y = rows()
    options = {"promise": "error <= 30%", "methods": ["optimistic"], "best": True}
    months = prudent.compare(X, y, time=np.arange(N) // 50, **options)  # 12 times
    assert months.settings.n_folds == 3
    assert any("3 folds instead of 5: the first" in note for note in months.data.notes)
    assert all(row.failure is None for row in months.rows)
    years = prudent.compare(X, y, time=np.arange(N) // 100, **options)  # 6 times
    assert years.settings.n_folds == 2
    (best,) = (row for row in years.rows if row.chooses)
    assert "no fold can go forward: give finer times" in best.failure.text
    assert all(row.failure is None for row in years.rows if not row.chooses)
    with pytest.raises(ValueError, match="that fold 1 learns from .* finer times.$"):
        prudent.compare(X, y, time=np.arange(N) // 300, promise="error <= 30%")
    # A smaller `cv` would not help: fewer folds were tried.
    with pytest.raises(ValueError, match="that fold 1 learns from .* finer times.$"):
        prudent.compare(X, y, time=np.arange(N) // 200, promise="error <= 30%")
    with pytest.raises(ValueError, match="all rows but the latest, .* have one time"):
        BestClassifier(promise="error <= 30%").fit(X, y, time=np.arange(N) // 300)


@pytest.mark.parametrize("n_times", [4, 6, 7, 8])
@pytest.mark.parametrize("promise", ["error <= 30%", "missed yes <= 20%"])
def test_a_method_that_holds_rows_out_itself_needs_no_second_time(n_times, promise):
    """Of one time left to learn from, it holds rows out at random."""
    X, y = rows()
    given = {"promise": promise, "methods": ["conformal"], "best": False}
    found = prudent.compare(
        X, y, time=np.arange(N) * n_times // N, baselines=["logistic"], **given
    )
    assert [row.failure for row in found.rows] == [None, None]


@pytest.mark.slow
def test_true_promises_are_rarely_broken_by_forward_folds():
    n_tables, n_broken = 200, 0
    for seed in range(n_tables):
        X, y = rows(seed, 240)
        found = prudent.compare(
            X, y, time=np.arange(240), methods=[], baselines=["lda"], best=False,
            promise=["coverage >= 80%", "error <= 25%"][seed % 2], cv=4,
        )  # fmt: skip
        n_broken += found.rows[0].asked.kept == "broken"
    assert binomtest(n_broken, n_tables, 0.05, alternative="greater").pvalue > 1e-3
