"""Published summary statistics: names and their order, deviations, refusals."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_iris

import prudent
from prudent import ClassMoments

NAMES = ["sepal length", "sepal width", "petal length", "petal width"]
FAMILIES = {
    "minimax": lambda **means: prudent.MinimaxProbabilityClassifier.from_moments(
        **means
    ),
    "optimistic": lambda **means: prudent.OptimisticScoreClassifier.from_moments(
        covariance="empirical", threshold="bayes", radius=0.1, **means
    ),
    "imprecise": lambda **means: prudent.ImpreciseDiscriminantAnalysis.from_moments(
        **means
    ),
}


@pytest.fixture(scope="module")
def rows():
    X, y = load_iris(return_X_y=True)
    labels = np.array(["setosa", "versicolor", "virginica"])[y]
    return pd.DataFrame(X, columns=NAMES), labels


@pytest.fixture(scope="module")
def published(rows):
    X, y = rows
    groups = X.groupby(y)
    return {
        "means": groups.mean(),
        "covariances": groups.cov(),
        "counts": groups.size(),
        "deviations": groups.std(),
        "correlations": groups.corr(),
    }


def plain(published):
    """The same as arrays."""
    return {
        "means": published["means"].to_numpy(),
        "covariances": published["covariances"].to_numpy().reshape(3, 4, 4),
        "counts": published["counts"].to_numpy(),
        "classes": list(published["means"].index),
    }


def same(a, b):
    np.testing.assert_array_equal(a.classes, b.classes)
    for name in ("count", "weight", "mean"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
    np.testing.assert_allclose(a.scatter, b.scatter, rtol=1e-13, atol=1e-13)


def test_frames_of_pandas_are_read_with_their_labels(published):
    expected = ClassMoments.from_covariances(**plain(published))
    names = ("means", "covariances", "counts")
    same(ClassMoments.from_covariances(*(published[n] for n in names)), expected)
    frames = [published["covariances"].loc[label] for label in expected.classes]
    same(
        ClassMoments.from_covariances(published["means"], frames, published["counts"]),
        expected,
    )


def test_standard_deviations_and_correlations_are_covariances(published):
    expected = ClassMoments.from_covariances(**plain(published))
    moments = ClassMoments.from_covariances(
        published["means"],
        counts=published["counts"],
        standard_deviations=published["deviations"],
        correlations=published["correlations"],
    )
    same(moments, expected)


def test_one_correlation_matrix_serves_all_classes():
    R = np.array([[1.0, -0.5], [-0.5, 1.0]])
    sd = np.array([[1.0, 2.0], [3.0, 4.0]])
    moments = ClassMoments.from_covariances(
        [[0, 0], [1, 1]], counts=[5, 6], standard_deviations=sd, correlations=R
    )
    expected = [[[1, -1], [-1, 4]], [[9, -6], [-6, 16]]]
    np.testing.assert_allclose(moments.covariance(), expected)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_keeps_names_and_checks_their_order(rows, published, family):
    X, _ = rows
    two = ["versicolor", "virginica"]
    kept = {name: table.loc[two] for name, table in published.items()}
    arguments = {
        "means": kept["means"],
        "counts": kept["counts"],
        "standard_deviations": kept["deviations"],
        "correlations": kept["correlations"],
    }
    model = FAMILIES[family](**arguments)
    assert model.feature_names_in_.tolist() == NAMES
    assert model.classes_.tolist() == two
    assert set(model.predict(X)) == set(two)
    with pytest.raises(ValueError, match="same order"):
        model.predict(X[NAMES[::-1]])
    arguments["standard_deviations"] = kept["deviations"][NAMES[::-1]]
    with pytest.raises(ValueError, match="`standard_deviations` has the feature names"):
        FAMILIES[family](**arguments)


def test_the_detector_keeps_names_too(published):
    one = published["means"].iloc[[0]]
    detector = prudent.MinimaxOutlierDetector.from_moments(
        one,
        counts=[50],
        standard_deviations=published["deviations"].iloc[[0]],
        correlations=published["correlations"].loc["setosa"],
        threshold="distribution_free",
    )
    assert detector.feature_names_in_.tolist() == NAMES
    assert detector.predict(one)[0] == 1


def test_polars_frames_have_names_and_no_labels(published):
    means = pl.DataFrame(published["means"].to_numpy(), schema=NAMES)
    model = FAMILIES["imprecise"](
        means=means, covariances=plain(published)["covariances"], counts=[50] * 3
    )
    assert model.feature_names_in_.tolist() == NAMES
    assert model.classes_.tolist() == [0, 1, 2]


@pytest.mark.parametrize("turned", ["means", "counts", "standard_deviations"])
def test_classes_0_and_1_in_two_orders_are_refused(rows, turned):
    """Their sorted labels look like a count of the rows."""
    X, labels = rows
    groups = X.groupby((labels == "virginica").astype(int))
    tables = {
        "means": groups.mean(),
        "counts": groups.size(),
        "standard_deviations": groups.std(ddof=0),
    }
    pooled = X.corr()
    tables[turned] = tables[turned].loc[[1, 0]]
    with pytest.raises(ValueError, match="the class names in another order"):
        FAMILIES["minimax"](**tables, correlations=pooled)
    for name in tables:  # rows that are only counted stand in the order of the means
        kept = name == turned == "means"
        tables[name] = tables[name] if kept else tables[name].reset_index(drop=True)
    FAMILIES["minimax"](**tables, correlations=pooled)


def refusals():
    two, unit = [[0.0, 0.0], [1.0, 1.0]], [np.eye(2)] * 2
    frame = pd.DataFrame(two, columns=["a", "b"], index=["x", "y"])
    turned = pd.DataFrame(np.eye(2), columns=["b", "a"], index=["b", "a"])
    other = pd.DataFrame(np.eye(2), columns=["a", "c"], index=["a", "c"])
    size = pd.Series([5, 6], index=["y", "x"])
    sd = {"standard_deviations": two}
    return [
        ({"means": two, "covariances": unit}, "`counts` is needed"),
        ({"means": two, "counts": [5, 6]}, "give either `covariances`, or"),
        (
            {"means": two, "covariances": unit, "counts": [5, 6], **sd},
            "give either `covariances`, or",
        ),
        ({"means": two, "counts": [5, 6], **sd}, "alone tell no covariance"),
        (
            {
                "means": two,
                "covariances": unit,
                "counts": [5, 6],
                "correlations": np.eye(2),
            },
            "go with `standard_deviations` only",
        ),
        (
            {"means": two, "counts": [5, 6], "correlations": 2 * np.eye(2), **sd},
            r"must lie in \[-1, 1\], with 1 on the diagonal",
        ),
        (
            {
                "means": two,
                "counts": [5, 6],
                "standard_deviations": [[1, 1], [1, -2.5]],
                "correlations": np.eye(2),
            },
            "finite and >= 0, got .*-2.5",
        ),
        (
            {"means": two, "counts": [5, 6], "correlations": np.eye(3), **sd},
            r"`correlations` must have shape \(2, 2, 2\)",
        ),
        (
            {"means": frame, "covariances": [turned] * 2, "counts": [5, 6]},
            "`covariances` has the feature names in another order: 'b', 'a', expected",
        ),
        (
            {"means": frame, "covariances": [other] * 2, "counts": [5, 6]},
            "`covariances` has other feature names: 'a', 'c', expected 'a', 'b'",
        ),
        (
            {"means": frame, "covariances": unit, "counts": size},
            "`counts` has the class names in another order: 'y', 'x', expected",
        ),
        (
            {
                "means": frame,
                "covariances": unit,
                "counts": [5, 6],
                "classes": ["y", "x"],
            },
            "`means` has the class names in another order",
        ),
        (
            {"means": two, "covariances": [np.eye(2), np.eye(3)], "counts": [5, 6]},
            "`covariances` must be an array of numbers, the same shape",
        ),
        (
            {"means": [["a", "b"]], "covariances": unit, "counts": [5, 6]},
            "`means` must be an array of numbers",
        ),
    ]


@pytest.mark.parametrize(("arguments", "message"), refusals())
def test_what_does_not_agree_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        ClassMoments.from_covariances(**arguments)


@given(st.integers(1, 4), st.integers(1, 5), st.integers(0, 100))
def test_deviations_and_correlations_are_the_covariances(n_classes, d, seed):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n_classes, d, d + 2)) * 10.0 ** rng.integers(
        -3, 4, size=(d, 1)
    )
    C = A @ np.swapaxes(A, 1, 2)
    sd = np.sqrt(np.diagonal(C, axis1=1, axis2=2))
    R = np.clip(C / (sd[:, :, None] * sd[:, None, :]), -1, 1)
    R[:, np.arange(d), np.arange(d)] = 1.0
    means, counts = rng.normal(size=(n_classes, d)), rng.integers(2, 50, n_classes)
    printed = ClassMoments.from_covariances(
        means, counts=counts, standard_deviations=sd, correlations=R
    )
    np.testing.assert_allclose(
        printed.covariance(), C, rtol=1e-9, atol=1e-12 * np.abs(C).max()
    )
