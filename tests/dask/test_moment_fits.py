"""Estimators that learn from moments: one pass, the same bits on any workers."""

import itertools

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

import prudent
from prudent import ClassMoments
from prudent.dask import fit, predict
from prudent.exceptions import PrudentWarning

pytestmark = pytest.mark.filterwarnings("ignore:chunks are small")
CHUNKS = (70, 50, 90, 40, 50)


ESTIMATORS = {
    "minimax": lambda: prudent.MinimaxProbabilityClassifier(),
    "certified": lambda: prudent.MinimaxProbabilityClassifier(uncertainty="gaussian"),
    "optimistic": lambda: prudent.OptimisticScoreClassifier(
        covariance="oas", threshold="bayes", radius=0.1
    ),
    "imprecise": lambda: prudent.ImpreciseDiscriminantAnalysis(),
}


@pytest.fixture(params=ESTIMATORS)
def estimator(request):
    return ESTIMATORS[request.param]()


@pytest.fixture
def rows():
    rng = np.random.default_rng(5)
    y = np.array(["a", "b", "c"])[np.arange(300) % 3]
    y[:70] = np.where(y[:70] == "c", "a", y[:70])  # the first block lacks a class
    return rng.normal(size=(300, 4)) + 5 * np.array(
        [y == "b", y == "c", y == "b", y == "c"]
    ).T, y


def block_slices():
    edges = np.cumsum((0, *CHUNKS))
    return [slice(a, b) for a, b in itertools.pairwise(edges)]


def test_equals_the_tree_reduction_bit_for_bit(estimator, rows):
    X, y = rows
    fit(estimator, da.from_array(X, chunks=(CHUNKS, 4)), y)
    expected = ClassMoments.reduce(
        ClassMoments.from_arrays(X[part], y[part]) for part in block_slices()
    )
    for name in ("weight", "mean", "mean_lo", "scatter"):
        assert getattr(estimator.moments_, name).tobytes() == (
            getattr(expected, name).tobytes()
        )


def test_predicts_without_dask_and_like_the_fit_in_memory(estimator, rows):
    X, y = rows
    fit(estimator, da.from_array(X, chunks=(64, 2)), y)
    plain = estimator.__class__(**estimator.get_params()).fit(X, y)
    np.testing.assert_array_equal(estimator.predict(X), plain.predict(X))


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("likelihood", ["gaussian", "nonparametric"])
def test_the_default_optimistic_rule_equals_the_fit_in_memory(
    rows, n_classes, likelihood
):
    X, y = rows
    X, y = X[y < "abcd"[n_classes]], y[y < "abcd"[n_classes]]
    model = prudent.OptimisticScoreClassifier(likelihood=likelihood)
    plain = prudent.OptimisticScoreClassifier(likelihood=likelihood).fit(X, y)
    fit(model, da.from_array(X, chunks=(64, 4)), y)
    np.testing.assert_allclose(model.covariances_, plain.covariances_, rtol=1e-12)
    np.testing.assert_allclose(model.offsets_, plain.offsets_, rtol=1e-9)
    np.testing.assert_array_equal(model.predict(X), plain.predict(X))


def test_many_blocks_reduce_like_one_tree():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(777, 2)), np.arange(777) % 2
    model = prudent.MinimaxProbabilityClassifier()
    fit(model, da.from_array(X, chunks=(7, 2)), y)
    expected = ClassMoments.reduce(
        ClassMoments.from_arrays(X[i : i + 7], y[i : i + 7]) for i in range(0, 777, 7)
    )
    assert model.moments_.scatter.tobytes() == expected.scatter.tobytes()


def test_empty_block_is_neutral(rows):
    X, y = rows
    kept = np.ones(300, dtype=bool)
    kept[100:150] = False
    blocks, labels = da.from_array(X, chunks=(50, 4)), da.from_array(y, chunks=50)
    model = fit(prudent.MinimaxProbabilityClassifier(), blocks[kept], labels[kept])
    np.testing.assert_allclose(
        model.moments_.mean, ClassMoments.from_arrays(X[kept], y[kept]).mean, rtol=1e-12
    )


@pytest.mark.parametrize("words", ["object", "string"])
def test_an_empty_partition_of_words_is_neutral(rows, words):
    """The labels of a partition without rows have no kind."""
    X, y = rows
    frame = pd.DataFrame(X, columns=list("pqrs")).assign(
        label=pd.Series(y, dtype=words)
    )
    frame = frame.sort_values("p", ignore_index=True)
    parts = dd.from_pandas(frame, npartitions=5)
    some = parts[parts["p"] > frame["p"][100]]
    assert next(len(part) for part in some.partitions) == 0
    model = fit(prudent.MinimaxProbabilityClassifier(), some, target="label")
    assert model.classes_.tolist() == ["a", "b", "c"]
    answers = predict(model, some.drop(columns="label")).compute()
    np.testing.assert_array_equal(answers, model.predict(frame[101:][list("pqrs")]))


def test_data_frame_with_target_column(rows):
    X, y = rows
    frame = pd.DataFrame(X, columns=list("pqrs")).assign(label=y)
    model = fit(
        prudent.MinimaxProbabilityClassifier(),
        dd.from_pandas(frame, npartitions=4),
        target="label",
    )
    assert model.feature_names_in_.tolist() == list("pqrs")
    features = frame.drop(columns="label")
    predicted = predict(model, dd.from_pandas(features, npartitions=3)).compute()
    np.testing.assert_array_equal(predicted, model.predict(features))


def test_data_frame_with_labels_as_series(rows):
    X, y = rows
    frame = dd.from_pandas(pd.DataFrame(X, columns=list("pqrs")), npartitions=4)
    labels = dd.from_pandas(pd.Series(y), npartitions=4)
    model = fit(prudent.MinimaxProbabilityClassifier(), frame, labels)
    assert model.classes_.tolist() == ["a", "b", "c"]


@pytest.mark.parametrize("method", ["predict", "predict_set", "decision_function"])
def test_predict_applies_a_method_to_every_block(method, rows):
    X, y = rows
    model = prudent.MinimaxProbabilityClassifier().fit(X, y)
    lazy = predict(model, da.from_array(X, chunks=(77, 3)), method=method)
    assert isinstance(lazy, da.Array)
    expected = getattr(model, method)(X)
    assert lazy.shape == expected.shape
    np.testing.assert_array_equal(lazy.compute(), expected)


def test_small_chunks_are_warned_about():
    X = da.random.default_rng(0).normal(size=(100, 2), chunks=(10, 2))
    with pytest.warns(PrudentWarning, match="chunks are small .20 values"):
        fit(prudent.MinimaxProbabilityClassifier(), X, np.arange(100) % 2)


def test_other_data_are_refused(rows):
    X, y = rows
    with pytest.raises(TypeError, match="dask array or data frame, got ndarray"):
        fit(prudent.MinimaxProbabilityClassifier(), X, y)
    model = prudent.MinimaxProbabilityClassifier().fit(X, y)
    with pytest.raises(TypeError, match="got ndarray; call the estimator"):
        predict(model, X)


def test_settings_that_need_all_rows_are_refused(rows):
    X, y = rows
    kernel = prudent.MinimaxProbabilityClassifier(kernel="rbf")
    with pytest.raises(TypeError, match="kernel='rbf'.*cannot learn from blocks"):
        fit(kernel, da.from_array(X), y)


def test_labels_given_twice_or_by_an_absent_column_are_refused(rows):
    X, y = rows
    frame = dd.from_pandas(pd.DataFrame(X, columns=list("pqrs")), npartitions=2)
    model = prudent.MinimaxProbabilityClassifier()
    with pytest.raises(ValueError, match="not both"):
        fit(model, frame, y, target="s")
    with pytest.raises(ValueError, match="no column 'label'"):
        fit(model, frame, target="label")


def test_predict_answers_tuples_with_tuples():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(90, 3)), np.arange(90) % 3
    model = prudent.ImpreciseDiscriminantAnalysis().fit(X + y[:, None], y)
    blocks = da.from_array(X, chunks=((40, 0, 50), (3,)))
    lazy = predict(model, blocks, "log_joint_bounds")
    assert isinstance(lazy, tuple)
    for ours, plain in zip(lazy, model.log_joint_bounds(X), strict=True):
        np.testing.assert_array_equal(ours.compute(), plain)


def test_predict_refuses_answers_that_are_not_by_row():
    X, y = np.random.default_rng(0).normal(size=(60, 2)), np.arange(60) % 2
    model = prudent.OptimisticScoreClassifier(radius=0.1).fit(X, y)
    model.count = lambda rows: len(rows)
    with pytest.raises(
        TypeError, match="'count' of OptimisticScoreClassifier does not"
    ):
        predict(model, da.from_array(X), "count")
