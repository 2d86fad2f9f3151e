"""Full conformal counts equal those of naive refitting, cell by cell."""

from __future__ import annotations

import numpy as np
import pytest

from conformal import naive
from prudent import ConformalClassifier, ConformalDetector
from prudent.conformal.classifier import groups_of
from prudent.conformal.ridge import KernelRidge, laplace_kernel

SCORES = ("posterior", "margin", "density")
TYPES = ("full", "tied", "diag", "identity")


def by_first_column(X):
    return (np.asarray(X)[:, 0] > 0).astype(int)


def tables():
    """Name -> training rows, labels, new rows."""
    random = np.random.default_rng(0)

    def normal(n, d, K, m=3, shift=1.0):
        y = np.concatenate([np.arange(K), random.integers(0, K, n - K)])
        X = random.normal(size=(n, d)) + shift * y[:, None]
        new = random.normal(size=(m, d)) * 2
        new[-1] *= 50  # a stranger, whose units differ
        return X, y, new

    found = {"two classes": normal(13, 2, 2), "three classes": normal(14, 3, 3)}
    X, y, new = normal(9, 12, 2)
    found["more columns than rows"] = X, y, new
    X, y, new = normal(15, 2, 3, m=3)
    X, new = np.round(X), np.round(new)
    X[5:9] = X[4]
    found["repeated rows"] = X, y, np.vstack([new, X[[4]]])
    X, y, new = normal(12, 4, 2)
    scale = np.array([1e-150, 1e150, 1.0, 1e6])
    found["wild scales"] = X * scale, y, new * scale
    X, y, new = normal(13, 3, 3, m=3)
    y[:] = 0
    y[:4], y[4] = 1, 2
    found["a class of one row"] = X, y, new
    X, y, new = normal(11, 3, 2)
    X[:, 1] = 7.0
    new[:2, 1] = 7.0
    found["a constant column"] = X, y, new
    return found


TABLES = tables()
CONDITIONS = [
    None,
    pytest.param("class", marks=pytest.mark.slow),
    pytest.param(by_first_column, marks=pytest.mark.slow),
]


def gaussian_posterior(*bag, **settings):
    return naive.gaussian_score(*bag, score="posterior", **settings)


def counts_of(model, new):
    rows, ranks = np.asarray(new, dtype=float), model._ranks
    found = ranks.model.counts(
        rows, ranks._wanted(rows, groups_of(rows, model.condition))
    )
    return np.stack(found, axis=-1)


def fitted(X, y, **settings):
    return ConformalClassifier(method="full", **settings).fit(X, y)


@pytest.mark.filterwarnings("ignore::prudent.exceptions.PrudentWarning")
@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("covariance_type", TYPES)
def test_gaussian_counts_equal_refitting(name, covariance_type, score, condition):
    X, y, new = TABLES[name]
    for nu, rho in ((32.0, 1.0), (0.0, 0.5)) if score == "posterior" else ((8.0, 0.5),):
        model = fitted(
            X,
            y,
            model="gaussian",
            covariance_type=covariance_type,
            nonconformity=score,
            condition=condition,
            pooled_rows=nu,
            ridge_rows=rho,
        )
        expected = naive.class_counts(
            X,
            y,
            y.max() + 1,
            new,
            naive.gaussian_score,
            condition=condition,
            score=score,
            covariance_type=covariance_type,
            nu=nu,
            rho=rho,
        )
        np.testing.assert_array_equal(counts_of(model, new), expected)


def rows_of_two_tiles():
    """More rows than the compiled loops take at once; a class lies in both tiles."""
    random = np.random.default_rng(2)
    y = np.repeat([0, 1, 2], [900, 60, 140])
    return random.normal(size=(1100, 2)) + y[:, None], y


@pytest.mark.slow
def test_counts_of_more_rows_than_a_tile_equal_refitting():
    X, y = rows_of_two_tiles()
    new = np.array([[0.9, 1.2]])
    settings = {"covariance_type": "full", "score": "posterior", "nu": 32.0, "rho": 1.0}
    expected = naive.class_counts(X, y, 3, new, naive.gaussian_score, **settings)
    model = fitted(X, y, model="gaussian")
    np.testing.assert_array_equal(counts_of(model, new), expected)


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("covariance_type", TYPES)
def test_counts_do_not_depend_on_where_tiles_end(covariance_type, score):
    X, y = rows_of_two_tiles()
    new = np.random.default_rng(3).normal(size=(7, 2)) + 1
    settings = {"covariance_type": covariance_type, "nonconformity": score}
    settings["model"] = "gaussian"
    one, other = (fitted(X, labels, **settings) for labels in (y, 2 - y))
    found = counts_of(other, new)[:, ::-1]
    np.testing.assert_array_equal(counts_of(one, new), found)


def test_counts_of_many_rows_are_those_of_each():
    X, y, _ = TABLES["three classes"]
    new = np.random.default_rng(3).normal(size=(1100, 3))
    model = fitted(X, y)
    parts = [counts_of(model, part) for part in np.array_split(new, [3, 1030])]
    np.testing.assert_array_equal(counts_of(model, new), np.concatenate(parts))


@pytest.mark.filterwarnings("ignore::prudent.exceptions.PrudentWarning")
@pytest.mark.parametrize("condition", ["class", by_first_column])
@pytest.mark.parametrize("name", ["three classes", "a class of one row"])
def test_counts_under_a_condition_equal_refitting(name, condition):
    X, y, new = TABLES[name]
    model = fitted(X, y, model="gaussian", condition=condition)
    expected = naive.class_counts(
        X,
        y,
        3,
        new,
        naive.gaussian_score,
        condition=condition,
        score="posterior",
        covariance_type="full",
        nu=32.0,
        rho=1.0,
    )
    np.testing.assert_array_equal(counts_of(model, new), expected)


@pytest.mark.parametrize("covariance_type", TYPES)
def test_counts_without_a_ridge_equal_refitting(covariance_type):
    random = np.random.default_rng(3)
    y = np.arange(24) % 3
    X = random.normal(size=(24, 2)) + y[:, None]
    new = random.normal(size=(5, 2)) * 3
    for score in SCORES:
        model = fitted(
            X,
            y,
            model="gaussian",
            covariance_type=covariance_type,
            nonconformity=score,
            ridge_rows=0,
            pooled_rows=0,
        )
        expected = naive.class_counts(
            X,
            y,
            3,
            new,
            naive.gaussian_score,
            score=score,
            covariance_type=covariance_type,
            nu=0.0,
            rho=0.0,
        )
        np.testing.assert_array_equal(counts_of(model, new), expected)


@pytest.mark.parametrize("covariance_type", ["full", "diag"])
@pytest.mark.parametrize("score", ["posterior", "density"])
def test_equal_rows_tie_under_the_largest_settings(covariance_type, score):
    # Of 10 exchangeable rows at most k may have a p-value up to k / 10: it holds in
    # every bag, and fails as soon as rounding tells equal rows apart.
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 10)
    model = ConformalClassifier(
        method="full",
        model="gaussian",
        condition="class",
        covariance_type=covariance_type,
        nonconformity=score,
        pooled_rows=1e6,
        ridge_rows=1e6,
    )
    for _ in range(10):
        X = rng.integers(0, 3, (20, 2)) + y[:, None] * rng.integers(0, 2)
        p_values = []
        for row in range(10):
            kept = np.arange(20) != row
            model.fit(X[kept], y[kept])
            p_values.append(model.p_values(X[row : row + 1])[0, 0])
        assert (np.sort(p_values) >= np.arange(1, 11) / 10 - 1e-12).all()


@pytest.mark.filterwarnings("ignore::prudent.exceptions.PrudentWarning")
@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("condition", [None, "class", by_first_column])
@pytest.mark.parametrize("covariance_type", ["full", "diag"])
def test_blend_counts_equal_refitting(name, condition, covariance_type):
    X, y, new = TABLES[name]
    model = fitted(X, y, condition=condition, covariance_type=covariance_type)
    expected = naive.class_counts(
        X,
        y,
        y.max() + 1,
        new,
        naive.blend_score,
        condition=condition,
        covariance_type=covariance_type,
        nu=32.0,
        rho=1.0,
    )
    np.testing.assert_array_equal(counts_of(model, new), expected)


@pytest.mark.filterwarnings("ignore::prudent.exceptions.PrudentWarning")
@pytest.mark.parametrize("seed", range(16))
@pytest.mark.parametrize("condition", [None, "class"])
def test_blend_counts_of_degenerate_bags_equal_refitting(seed, condition):
    """Rows twice, constant in a class, collinear, separable, far away, tiny, huge."""
    random = np.random.default_rng(seed)
    n, d, K = random.integers(8, 19), random.integers(1, 15), random.integers(2, 5)
    y = np.concatenate([np.arange(K), random.integers(0, K, n - K)])
    X = random.normal(size=(n, d)) + y[:, None]
    damage = seed % 8
    if damage == 0:
        X = np.round(X)
        X[n // 2 :] = X[: n - n // 2]
    elif damage == 1:
        X[y == 0, 0] = 3.0
    elif damage == 2:
        X[:, -1] = X[:, 0] * 2
    elif damage == 3:
        X += 20 * y[:, None]
    elif damage == 4:
        X = X + 1024.0
        X[0, 0] = 1e4
    elif damage == 5:  # one row in a class
        y = np.where(y == K - 1, 0, y)
        y[-1] = K - 1
    else:
        X *= 1e-150 if damage == 6 else 1e150
    new = np.vstack([random.normal(size=(2, d)) + 1, X[:1], X[:1] * 1e6])
    model = fitted(X, y, condition=condition)
    expected = naive.class_counts(
        X,
        y,
        K,
        new,
        naive.blend_score,
        condition=condition,
        covariance_type="full",
        nu=32.0,
        rho=1.0,
    )
    np.testing.assert_array_equal(counts_of(model, new), expected)
    one_by_one = [counts_of(model, row[None]) for row in new]
    np.testing.assert_array_equal(np.concatenate(one_by_one), expected)
    order = random.permutation(n)
    other = fitted(X[order] * 4, y[order], condition=condition)
    np.testing.assert_array_equal(counts_of(other, new * 4), expected)


@pytest.mark.filterwarnings("ignore::prudent.exceptions.PrudentWarning")
@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize(
    ("model", "score"), [("blend", naive.blend_score), ("gaussian", gaussian_posterior)]
)
def test_a_label_not_seen_ranks_as_stated(name, model, score):
    """The bag with the new row under a label of its own, refitted."""
    X, y, new = TABLES[name]
    settings = {"covariance_type": "full", "nu": 32.0, "rho": 1.0}
    unseen = naive.class_counts(X, y, y.max() + 2, new, score, **settings)[:, -1]
    stated = fitted(X, y, model=model).unseen_label_p_value_
    np.testing.assert_array_equal((1 + unseen.sum(axis=1)) / (len(y) + 1), stated)


def test_the_compiled_loop_is_given_rows_in_one_order():
    """It would be compiled again for each other order, and run across its rows."""
    X, y, new = TABLES["three classes"]
    order = np.argsort(y)
    ridge = KernelRidge.learn(X[order], y[order].astype(np.intp), 3)
    for scores in ridge.deleted_predictions(new):
        assert scores.flags.c_contiguous


@pytest.mark.slow
def test_inverse_and_scores_of_two_thousand_rows_are_exact():
    """Equal rows make the kernel matrix as singular as it can be."""
    random = np.random.default_rng(5)
    X = np.repeat(random.normal(size=(1000, 5)), 2, axis=0)
    y = (X[:, 0] + random.normal(size=2000) > 0).astype(np.intp)
    ridge = KernelRidge.learn(X, y, 2)
    matrix = laplace_kernel(X, X) + 0.3 * np.eye(2000)
    assert np.abs(matrix @ ridge.inverse - np.eye(2000)).max() < 1e-11
    new = random.normal(size=(1, 5))
    own, other, of_new = ridge.deleted_predictions(new)
    for label, held in ((0, own), (1, other)):
        bag, labels = np.vstack([X, new]), np.append(y, label)
        inverse = np.linalg.inv(laplace_kernel(bag, bag) + 0.3 * np.eye(2001))
        targets = np.where(labels[:, None] == [0, 1], 1.0, -1.0)
        deleted = targets - inverse @ targets / np.diag(inverse)[:, None]
        expected = deleted[np.arange(2001), labels]
        held = np.where(y == label, own[0], other[0])
        assert np.abs(held - expected[:-1]).max() < 1e-11
        assert abs(of_new[0, label] - expected[-1]) < 1e-11


@pytest.mark.filterwarnings("ignore::prudent.exceptions.PrudentWarning")
@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("kind", ["combined", "distance", "ellipsoid"])
def test_detector_counts_equal_refitting(name, kind):
    X, _, new = TABLES[name]
    for k, rho in ((1, 1.0), (3, 0.25)):
        detector = ConformalDetector(
            method="full", nonconformity=kind, n_neighbors=k, ridge_rows=rho
        ).fit(X)
        found = detector._ranks.counts(new)
        expected = naive.one_class_counts(X, new, kind, k=k, rho=rho)
        np.testing.assert_array_equal(np.stack(found, axis=-1), expected)


REFERENCE = {
    "blend": ({"model": "blend"}, [[54, 1, 1], [1, 29, 1], [1, 4, 6], [1, 7, 3]]),
    "default": ({}, [[52, 1, 1], [1, 36, 1], [1, 4, 4], [1, 8, 1]]),
    "no pool": ({"pooled_rows": 0}, [[52, 1, 1], [1, 38, 1], [1, 4, 4], [1, 8, 2]]),
    "tied": (
        {"covariance_type": "tied"},
        [[54, 1, 1], [1, 36, 1], [1, 4, 3], [1, 8, 1]],
    ),
    "tied, no ridge": (
        {"covariance_type": "tied", "ridge_rows": 0},
        [[56, 1, 1], [1, 36, 1], [1, 3, 3], [1, 9, 1]],
    ),
    "diag": (
        {"covariance_type": "diag"},
        [[58, 1, 1], [1, 27, 1], [1, 7, 3], [1, 8, 2]],
    ),
    "identity": (
        {"covariance_type": "identity"},
        [[50, 1, 1], [1, 27, 2], [1, 16, 5], [1, 13, 9]],
    ),
    "density": (
        {"nonconformity": "density"},
        [[43, 1, 1], [1, 63, 1], [1, 18, 22], [1, 33, 14]],
    ),
}


def iris_parts():
    from sklearn.datasets import load_iris

    X, y = load_iris(return_X_y=True)
    return X[::2], y[::2], X[[1, 71, 83, 133]]


@pytest.mark.parametrize("name", REFERENCE)
def test_reference_values(name):
    settings, expected = REFERENCE[name]
    X, y, new = iris_parts()
    model = ConformalClassifier(**{"model": "gaussian"} | settings).fit(X, y)
    np.testing.assert_array_equal(model.p_values(new), np.array(expected) / 76)


@pytest.mark.parametrize(
    ("model", "score", "expected"),
    [
        ("blend", "posterior", [[4, 1, 1], [1, 17, 1], [1, 2, 4], [1, 3, 2]]),
        ("gaussian", "posterior", [[2, 1, 1], [1, 21, 1], [1, 2, 3], [1, 4, 1]]),
        ("gaussian", "density", [[7, 1, 1], [1, 22, 1], [1, 8, 11], [1, 14, 7]]),
    ],
)
def test_reference_values_by_class(model, score, expected):
    X, y, new = iris_parts()
    model = ConformalClassifier(model=model, condition="class", nonconformity=score)
    model.fit(X, y)
    np.testing.assert_array_equal(model.p_values(new), np.array(expected) / 26)


def test_reference_decisions_promise_and_unseen_label():
    X, y, new = iris_parts()
    model = ConformalClassifier().fit(X, y)
    np.testing.assert_allclose(
        model.decision_function(new[1:3]),
        [
            [-3.157331785, 2.449148551, -2.463342103],
            [-3.346371941, -0.916762474, 0.942426081],
        ],
        atol=1e-9,
    )
    gaussian = ConformalClassifier(model="gaussian").fit(X, y)
    np.testing.assert_allclose(
        gaussian.decision_function(new[1:3]),
        [
            [-16.047261791, 5.627287895, -1.165757811],
            [-25.635609028, 3.927588608, 4.253839493],
        ],
        atol=1e-9,
    )
    assert round(model.guarantees_[0].bound, 6) == 0.907895
    assert model.unseen_label_p_value_ == 1 / 76


@pytest.mark.parametrize(
    ("kind", "k", "expected"),
    [
        ("combined", 1, [31, 2, 18, 2, 9, 22, 1, 1]),
        ("distance", 1, [30, 7, 39, 19, 11, 26, 1, 1]),
        ("distance", 3, [26, 4, 32, 13, 8, 24, 1, 1]),
        ("ellipsoid", 1, [31, 1, 17, 1, 6, 23, 1, 1]),
    ],
)
def test_reference_values_of_the_detector(kind, k, expected):
    from sklearn.datasets import load_iris

    X, _ = load_iris(return_X_y=True)
    detector = ConformalDetector(nonconformity=kind, n_neighbors=k).fit(X[:40])
    asked = X[[40, 41, 42, 43, 44, 45, 50, 51]]
    np.testing.assert_array_equal(detector.p_value(asked), np.array(expected) / 41)
    assert detector.guarantees_[0].bound == 2 / 41
