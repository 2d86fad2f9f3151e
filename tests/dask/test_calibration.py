"""Calibration on blocks in this process: the numbers of the fit in memory."""

import pickle

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from dask import delayed

from prudent import RiskCalibratedClassifier
from prudent.calibration import DiagonalFamily, PriorStrengths
from prudent.calibration.ascent import Trial
from prudent.core.rows import Block, LocalRows
from prudent.dask import fit, predict
from prudent.dask.fitting import dealt, fold_of, least_draws, with_draws
from prudent.exceptions import PrudentWarning, SingularCovarianceError

pytestmark = pytest.mark.filterwarnings("ignore:chunks are small")
N_ROWS = 400
SEED = {"random_state": 0}


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(2)
    y = rng.integers(0, 3, size=N_ROWS)
    y[:60] = y[:60] % 2  # the first block lacks a class
    X = rng.normal(size=(N_ROWS, 4)) * (1 + y[:, None]) + 0.8 * y[:, None]
    return X * [1e-3, 1.0, 1.0, 1e4] + [0.0, 1e6, 0.0, 5.0], np.array(list("abc"))[y]


@pytest.fixture(scope="module")
def frame(rows):
    X, y = rows
    table = pd.DataFrame(X, columns=list("pqrs"))
    table["p"] = np.where(table.p > 0.001, "high", np.where(table.p > 0, "mid", None))
    table["q"] = pd.Categorical(np.where(table.q > 1e6, "x", "y"))
    table["s"] = table.s > 0
    return table.assign(label=y)


def blocks(X, size=60):
    return da.from_array(X, chunks=(size, X.shape[1]))


def assert_same_fit(ours, plain, X):
    assert ours.best_iteration_ == plain.best_iteration_
    assert ours.n_iter_ == plain.n_iter_
    assert ours.classes_.dtype == plain.classes_.dtype
    assert ours.n_frozen_ == plain.n_frozen_
    assert ours.guarantees_ == plain.guarantees_
    for name in ("loss_curve_", "error_curve_", "learning_rate_curve_"):
        np.testing.assert_allclose(
            getattr(ours, name), getattr(plain, name), rtol=1e-9, atol=1e-12
        )
    np.testing.assert_allclose(ours.predict_proba(X), plain.predict_proba(X), atol=1e-9)
    np.testing.assert_array_equal(ours.constant_features_, plain.constant_features_)


@pytest.mark.parametrize("stopping", ["none", "train", "holdout"])
@pytest.mark.parametrize("family", ["full", "tied", "diag", "tied_diag"])
def test_equals_the_fit_in_memory(rows, family, stopping):
    X, y = rows
    settings = {"family": family, "stopping": stopping, "max_iter": 12} | SEED
    ours = fit(RiskCalibratedClassifier(**settings), blocks(X), y)
    plain = RiskCalibratedClassifier(**settings).fit(X, y)
    assert_same_fit(ours, plain, X)
    for name in ("priors_", "means_", "covariances_", "variances_"):
        if hasattr(plain, name):
            expected = getattr(plain, name)
            np.testing.assert_allclose(getattr(ours, name), expected, rtol=1e-9)


@pytest.mark.parametrize(
    "settings",
    [
        {"loss": "zero_one"},
        {"costs": [[0, 1, 2], [3, 0, 1], [1, 1, 0]]},
        {"generative_weight": 0.3, "family": "tied"},
        {"method": "gd", "family": "tied"},
        {"method": "tm", "family": "diag"},
        {"step": "adaptive", "learning_rate": 5.0},
        {"guard": "freeze", "learning_rate": 3.0, "line_search": False},
    ],
)
def test_other_objectives_and_steps_equal_the_fit_in_memory(rows, settings):
    X, y = rows
    settings = {"stopping": "none", "max_iter": 12} | settings
    ours = fit(RiskCalibratedClassifier(**settings), blocks(X), y)
    assert_same_fit(ours, RiskCalibratedClassifier(**settings).fit(X, y), X)


class Exponential:
    """Independent exponential features, as a plug-in."""

    def statistics(self, X, Q):
        return [Q.sum(axis=0), Q.T @ X]

    def parameters(self, s):
        return np.log(s[0] / s[0].sum()), s[0][:, None] / s[1]

    def log_joint(self, X, parameters):
        log_priors, rates = parameters
        return log_priors + np.log(rates).sum(axis=1) - X @ rates.T

    def is_valid(self, s):
        return (s[0] > 0) & (s[1] > 0).all(axis=1)


def test_a_family_of_ones_own_equals_the_fit_in_memory(rows):
    y = rows[1]
    X = np.random.default_rng(0).exponential(1 + (y == "b")[:, None], (N_ROWS, 2))
    settings = {"family": Exponential(), "stopping": "train", "max_iter": 12}
    ours = fit(RiskCalibratedClassifier(**settings), blocks(X), y)
    assert_same_fit(ours, RiskCalibratedClassifier(**settings).fit(X, y), X)


def test_a_built_in_family_as_an_object_keeps_its_scale(rows):
    X, y = rows
    family = DiagonalFamily.from_rows(X[:50], np.ones(50), PriorStrengths(means=2.0))
    settings = {"family": family, "stopping": "none", "max_iter": 6}
    ours = fit(RiskCalibratedClassifier(**settings), blocks(X), y)
    assert_same_fit(ours, RiskCalibratedClassifier(**settings).fit(X, y), X)


@pytest.mark.parametrize("stopping", ["train", "holdout"])
@pytest.mark.parametrize("family", ["categorical", "mixed"])
def test_levels_are_gathered_from_all_blocks(frame, family, stopping):
    columns = ["p", "q"] if family == "categorical" else list("pqrs")
    X, y = frame[columns], frame["label"]
    settings = {"family": family, "stopping": stopping, "max_iter": 12} | SEED
    ours = fit(
        RiskCalibratedClassifier(**settings),
        dd.from_pandas(frame[[*columns, "label"]], npartitions=5),
        target="label",
    )
    assert_same_fit(ours, RiskCalibratedClassifier(**settings).fit(X, y), X)
    assert ours.feature_names_in_.tolist() == columns
    lazy = predict(ours, dd.from_pandas(X, npartitions=3), method="predict_proba")
    np.testing.assert_array_equal(lazy.compute(), ours.predict_proba(X))


def test_levels_without_numbers_are_mixed_too(frame):
    columns = ["p", "q", "s"]
    settings = {"family": "mixed", "stopping": "none", "max_iter": 5}
    data = dd.from_pandas(frame[columns], npartitions=4)
    labels = dd.from_pandas(frame["label"], npartitions=4)
    ours = fit(RiskCalibratedClassifier(**settings), data, labels)
    plain = RiskCalibratedClassifier(**settings).fit(frame[columns], frame["label"])
    assert_same_fit(ours, plain, frame[columns])


# Cross-validation: the fold of a row is a hash of its class and values


def drawn(X, y):
    seed = int(np.random.RandomState(0).randint(np.iinfo(np.int32).max))
    _, codes = np.unique(y, return_inverse=True)
    return with_draws(Trial(Block(X, codes, np.ones(len(y)))), seed)


def folds(X, y, n_folds):
    """Fold of each row."""
    rows = drawn(X, y)
    deal = dealt([least_draws(rows, len(np.unique(y)), n_folds)], n_folds)
    return fold_of(rows[1], deal)


@pytest.mark.parametrize("family", ["full", "tied_diag"])
def test_cross_validation_equals_the_fit_in_memory_on_the_same_folds(rows, family):
    X, y = rows
    fold = folds(X, y, 4)
    splits = [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(4)]
    settings = {"family": family, "max_iter": 10} | SEED
    ours = fit(RiskCalibratedClassifier(cv=4, **settings), blocks(X), y)
    plain = RiskCalibratedClassifier(cv=splits, **settings).fit(X, y)
    assert_same_fit(ours, plain, X)


def test_equal_rows_share_a_fold_in_any_order():
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 3, size=(200, 3)) - 1.0, rng.integers(0, 2, size=200)
    fold = folds(X, y, 5)
    order = rng.permutation(200)
    np.testing.assert_array_equal(folds(-0.0 + X[order], y[order], 5), fold[order])
    distinct = np.unique(np.column_stack([y, X, fold]), axis=0)
    assert len(distinct) == len(np.unique(distinct[:, :-1], axis=0))


def test_folds_are_about_equal_and_differ_by_seed():
    X, y = np.random.default_rng(0).normal(size=(5000, 2)), np.arange(5000) % 2
    sizes = np.bincount(folds(X, y, 5))
    assert (abs(sizes - 1000) < 5 * np.sqrt(800)).all()  # standard deviation sqrt(800)
    _, again = with_draws(Trial(Block(X, y, np.ones(5000))), 1)
    assert not np.isin(again, drawn(X, y)[1]).any()


@pytest.mark.parametrize("n_distinct", [2, 3])
def test_a_class_of_few_distinct_rows_is_in_every_fold(n_distinct):
    X = np.random.default_rng(1).normal(size=(100, 2))
    y = (np.arange(100) < 8).astype(int)
    X[:8] = X[np.arange(8) % n_distinct]
    fold = folds(X, y, 5)
    assert set(fold[:8]) == set(range(n_distinct)) == set(fold)
    fit(RiskCalibratedClassifier(family="diag", max_iter=4), blocks(X, 30), y)


def test_a_class_of_one_distinct_row_stops_early(rows):
    X, y = rows[0][:90].copy(), np.repeat(["a", "b"], [85, 5])
    X[85:] = X[85]
    with pytest.warns(PrudentWarning, match="single distinct row.*after 8 updates"):
        model = fit(RiskCalibratedClassifier(family="diag"), blocks(X), y)
    assert model.best_iteration_ == 8


def test_blocks_of_any_size_give_the_same_choice(rows):
    X, y = rows
    coarse, fine = (
        fit(RiskCalibratedClassifier(max_iter=10, random_state=0), blocks(X, size), y)
        for size in (N_ROWS, 37)
    )
    assert_same_fit(fine, coarse, X)


@pytest.mark.parametrize("stopping", ["holdout", "cv"])
def test_only_sums_and_hashes_of_rows_come_to_the_driver(stopping, monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20_000, 3)), rng.integers(0, 2, size=20_000)
    sizes, map_blocks = [], LocalRows.map

    def measured(self, function, *arguments, **each):
        found = map_blocks(self, function, *arguments, **each)
        sizes.append(len(pickle.dumps(found)))
        return found

    def unmeasured(self, function, *arguments, **each):
        return LocalRows(map_blocks(self, function, *arguments, **each))

    monkeypatch.setattr(LocalRows, "map", measured)
    monkeypatch.setattr(LocalRows, "transform", unmeasured)  # its blocks stay
    fit(RiskCalibratedClassifier(stopping=stopping, max_iter=3), blocks(X, 5000), y)
    heads, *passes = sizes
    n_keys = len(X) + 3 * len(X)  # of the rows, and of the cells of the first 5000
    assert heads < 8 * n_keys + 10_000
    assert max(passes) < 10_000


# Blocks that lack something


@pytest.mark.parametrize("stopping", ["none", "holdout", "cv"])
def test_empty_blocks_are_neutral(rows, stopping):
    X, y = rows
    kept = (np.arange(N_ROWS) < 100) | (np.arange(N_ROWS) >= 200)
    gaps = da.from_array(X, chunks=(50, 4))[kept], da.from_array(y, chunks=50)[kept]
    settings = {"stopping": stopping, "max_iter": 6} | SEED
    ours = fit(RiskCalibratedClassifier(**settings), *gaps)
    whole = fit(RiskCalibratedClassifier(**settings), blocks(X[kept]), y[kept])
    assert_same_fit(ours, whole, X)


def test_no_row_at_all_is_refused(rows):
    X, y = rows
    none = np.zeros(N_ROWS, dtype=bool)
    gaps = da.from_array(X, chunks=(50, 4))[none], da.from_array(y, chunks=50)[none]
    with pytest.raises(ValueError, match="no row: every block is empty"):
        fit(RiskCalibratedClassifier(), *gaps)


def test_one_class_is_refused(rows):
    with pytest.raises(ValueError, match="got one class: 'a'"):
        fit(RiskCalibratedClassifier(), blocks(rows[0]), np.full(N_ROWS, "a"))


def test_a_class_without_a_row_to_fit_is_refused(rows):
    X, y = rows
    y = np.where(np.arange(N_ROWS) == 7, "z", y)
    model = RiskCalibratedClassifier(
        stopping="holdout", validation_fraction=0.99, random_state=0
    )
    with pytest.raises(ValueError, match="class 'z' has no row"):
        fit(model, blocks(X), y)


def test_words_beside_numbers_are_refused(rows):
    X, words = blocks(rows[0], 200), da.from_array(rows[1], chunks=200)
    numbers = da.from_delayed(delayed(np.arange(200) % 2), (200,), dtype=words.dtype)
    y = da.concatenate([words.blocks[0], numbers])
    with pytest.raises(ValueError, match="[Mm]ix of"):
        fit(RiskCalibratedClassifier(), X, y)


def test_missing_numbers_are_refused(rows):
    X, y = rows
    X = np.where(np.arange(N_ROWS)[:, None] == 210, np.nan, X)
    with pytest.raises(ValueError, match="contains NaN"):
        fit(RiskCalibratedClassifier(), blocks(X), y)


def test_numbers_whose_square_overflows_are_refused(rows):
    X, y = rows
    X = np.where(np.arange(N_ROWS)[:, None] == 210, 1e200, X)
    with pytest.raises(ValueError, match="column 0 .*overflow: rescale"):
        fit(RiskCalibratedClassifier(), blocks(X), y)


def test_singular_covariance_is_refused(rows):
    X, y = rows
    model = RiskCalibratedClassifier(covariance_prior_strength=0, stopping="none")
    with pytest.raises(SingularCovarianceError, match="covariance of class 'a'"):
        fit(model, blocks(X[:, [0, 1, 1]]), y)


def test_constant_features_are_ignored(rows):
    X, y = rows
    X = np.column_stack([X[:, 0], np.full(N_ROWS, 0.3), X[:, 1]])
    model = RiskCalibratedClassifier(family="tied", stopping="none", max_iter=4)
    with pytest.warns(PrudentWarning, match="constant"):
        fit(model, blocks(X), y)
    assert model.constant_features_.tolist() == [1]
    with pytest.warns(PrudentWarning, match="constant"):
        plain = RiskCalibratedClassifier(**model.get_params()).fit(X, y)
    assert_same_fit(model, plain, X)


# Settings, and what is left in the estimator


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"batch_size": 50}, "batch_size=50 picks rows across blocks; leave it None"),
        ({"cv": [([0, 1], [2])]}, "cv=.*position.*give the number of folds"),
    ],
)
def test_settings_that_need_one_array_are_refused(rows, settings, message):
    with pytest.raises(TypeError, match=message):
        fit(RiskCalibratedClassifier(**settings), blocks(rows[0]), rows[1])


def test_mixed_needs_a_data_frame(rows):
    with pytest.raises(ValueError, match="must be a pandas or polars data frame"):
        fit(RiskCalibratedClassifier(family="mixed"), blocks(rows[0]), rows[1])


def test_settings_out_of_range_are_refused(rows):
    with pytest.raises(ValueError, match="'learning_rate'"):
        fit(RiskCalibratedClassifier(learning_rate=-1), blocks(rows[0]), rows[1])


def test_frames_of_numbers_and_narrow_numbers(rows):
    X, y = rows[0].astype(np.float32), rows[1]
    settings = {"stopping": "none", "max_iter": 5}
    table = pd.DataFrame(X, columns=list("pqrs")).assign(label=y)
    data = dd.from_pandas(table, npartitions=4)
    ours = fit(RiskCalibratedClassifier(**settings), data, target="label")
    assert ours.feature_names_in_.tolist() == list("pqrs")
    narrow = fit(RiskCalibratedClassifier(**settings), blocks(X), y)
    np.testing.assert_allclose(narrow.means_, ours.means_, rtol=1e-12)
    assert ours.n_features_in_ == narrow.n_features_in_ == 4


def test_the_result_needs_no_dask_and_can_be_fitted_again(rows):
    X, y = rows
    model = RiskCalibratedClassifier(family="diag", stopping="none", max_iter=5)
    model.partial_fit(X[:100], y[:100])
    fit(model, blocks(X), y)
    clone = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(clone.predict(X), model.predict(X))
    assert b"dask" not in pickle.dumps(model)
    plain = RiskCalibratedClassifier(**model.get_params()).fit(X, y)
    assert_same_fit(model, plain, X)


def test_callbacks_hear_every_evaluation(rows):
    pytest.importorskip("sklearn.callback")

    class Count:
        ended = 0

        def setup(self, estimator, context):
            pass

        def teardown(self, estimator, context):
            pass

        def on_fit_task_begin(self, estimator, context):
            pass

        def on_fit_task_end(self, estimator, context):
            self.ended += 1
            return False

    count = Count()
    model = RiskCalibratedClassifier(stopping="none", max_iter=7).set_callbacks(count)
    fit(model, blocks(rows[0]), rows[1])
    assert count.ended == 7
