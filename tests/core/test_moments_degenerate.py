"""Degenerate and wrong input to class moments: one row of the table each."""

import numpy as np
import pytest
import scipy.sparse

from prudent import ClassMoments
from prudent.exceptions import PrudentWarning

X = np.arange(12.0).reshape(6, 2)
y = [0, 0, 0, 1, 1, 1]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (np.empty((0, 2)), r"0 sample\(s\)"),
        (np.empty((6, 0)), r"0 feature\(s\)"),
        (np.arange(6.0), "Expected 2D array, got 1D array"),
        ([["a", "b"]] * 6, "real numbers"),
        (X + 1j, "Complex data not supported"),
    ],
)
def test_tables_that_are_not_numbers(table, message):
    with pytest.raises(ValueError, match=message):
        ClassMoments.from_arrays(table, y)


def test_sparse_tables():
    with pytest.raises(TypeError, match="Sparse data"):
        ClassMoments.from_arrays(scipy.sparse.eye(6, format="csr"), y)


def test_numbers_as_objects_are_accepted():
    assert (ClassMoments.from_arrays(X.astype(object), y).count == 3).all()


@pytest.mark.parametrize("fourth", [False, True])
@pytest.mark.parametrize("n_features", [2, 40])
@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.nan, "NaN: column 1, first at row 4"),
        (np.inf, "infinity: column 1, first at row 4"),
        (-np.inf, "infinity: column 1, first at row 4"),
        (1e151, "column 1 of X holds values beyond .*: rescale"),
        (1e200, "column 1 of X holds values beyond .*: rescale"),
    ],
)
def test_values_that_cannot_be_squared(value, message, n_features, fourth):
    table = np.zeros((6, n_features))
    table[4, 1] = value
    with pytest.raises(ValueError, match=message):
        ClassMoments.from_arrays(table, y, fourth=fourth)


def test_a_large_constant_column_is_refused():
    with pytest.raises(ValueError, match=r"column 0 of X .* rescale"):
        ClassMoments.from_arrays(np.full((6, 2), 1e160), y)


def test_fourth_powers_overflow_earlier():
    table = X * 1e74
    assert np.isfinite(ClassMoments.from_arrays(table, y).scatter).all()
    with pytest.raises(ValueError, match="beyond 1e\\+75"):
        ClassMoments.from_arrays(table * 10, y, fourth=True)


def test_large_values_below_the_limit_pass():
    moments = ClassMoments.from_arrays(X * 1e148, y)
    assert np.isfinite(moments.scatter).all()


def test_subnormal_values_need_no_special_case():
    moments = ClassMoments.from_arrays(X * 1e-310, y)
    assert np.isfinite(moments.mean).all()
    assert (moments.scatter == 0).all()


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([0, 0, 1], r"y must have shape \(6,\), got \(3,\)"),
        (np.zeros((6, 1)), "y should be a 1d array"),
        ([0, 0, 0, "a", "a", "a"], "mixes labels of type string and number"),
        (np.array([0, 0, 0, "a", "a", "a"], dtype=object), "mixes labels"),
        ([0.5, 0, 0, 1, 1, 1], "NaN or continuous"),
        ([np.nan, 0, 0, 1, 1, 1], "NaN or continuous"),
        ([np.inf, 0, 0, 1, 1, 1], "infinity"),
        (np.array([None, 0, 0, 1, 1, 1], dtype=object), "cannot be ordered"),
    ],
)
def test_labels_that_are_not_classes(labels, message):
    with pytest.raises(ValueError, match=message):
        ClassMoments.from_arrays(X, labels)


@pytest.mark.parametrize(
    ("classes", "message"),
    [([0], r"outside `classes`: \[1\]"), (["a", "b"], r"outside `classes`: \[0, 1\]")],
)
def test_labels_outside_the_declared_classes(classes, message):
    with pytest.raises(ValueError, match=message):
        ClassMoments.from_arrays(X, y, classes=classes)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([1, 1], r"shape \(6,\), got \(2,\)"),
        ([1, 1, np.nan, 1, 1, 1], "NaN or infinity, first at row 2"),
        ([1, 1, 1, np.inf, 1, 1], "NaN or infinity, first at row 3"),
        ([1, 1, 1, 1, -0.5, 1], "got -0.5 at row 4; signed .* RawMoments"),
    ],
)
def test_weights_that_are_not_repetitions(weight, message):
    with pytest.raises(ValueError, match=message):
        ClassMoments.from_arrays(X, y, weight)


@pytest.mark.parametrize("fourth", [False, True])
@pytest.mark.parametrize("n_features", [2, 40])
def test_a_class_of_weight_zero_is_kept_and_empty(n_features, fourth):
    table = np.random.default_rng(0).normal(size=(6, n_features))
    moments = ClassMoments.from_arrays(table, y, [1, 1, 1, 0, 0, 0], fourth=fourth)
    assert moments.classes.tolist() == [0, 1]
    assert moments.weight.tolist() == [3, 0]
    assert moments.count.tolist() == [3, 0]
    for field in (moments.mean, moments.mean_lo, moments.scatter):
        assert (field[1] == 0).all()


def test_rows_of_weight_zero_are_not_looked_at():
    table = X.copy()
    table[0] = 1e12
    with_zero = ClassMoments.from_arrays(table, y, [0, 1, 1, 1, 1, 1])
    without = ClassMoments.from_arrays(table[1:], y[1:], np.ones(5))
    np.testing.assert_array_equal(with_zero.scatter, without.scatter)
    np.testing.assert_array_equal(with_zero.count, without.count)


@pytest.mark.parametrize("value", [0.1, -3.7, 1e12 / 3, 0.0])
@pytest.mark.parametrize("n_features", [3, 40])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_constant_feature_has_scatter_exactly_zero(value, n_features, weighted):
    rng = np.random.default_rng(1)
    table, labels = rng.normal(size=(5000, n_features)), rng.integers(0, 2, 5000)
    table[:, 1] = value
    weight = rng.random(5000) if weighted else None
    moments = ClassMoments.from_arrays(table, labels, weight, block_rows=300)
    moments = moments + ClassMoments.from_arrays(table[:77], labels[:77])
    assert (moments.scatter[:, 1, :] == 0).all()
    assert (moments.scatter[:, :, 1] == 0).all()
    assert (moments.mean[:, 1] == value).all()
    assert (moments.mean_lo[:, 1] == 0).all()


def test_scatter_matrices_larger_than_the_memory_warn(monkeypatch):
    monkeypatch.setattr("os.sysconf", lambda name: 10)
    with pytest.warns(PrudentWarning, match="use structure='diagonal'"):
        ClassMoments.from_arrays(X, y)


def test_unknown_memory_is_no_error(monkeypatch):
    def unknown(name):
        raise ValueError(name)

    monkeypatch.setattr("os.sysconf", unknown)
    assert (ClassMoments.from_arrays(X, y).count == 3).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"structure": "banded"}, "`structure` must be 'full' or 'diagonal'"),
        ({"structure": "diagonal", "fourth": True}, "needs structure='full'"),
        ({"block_rows": 0}, "`block_rows` must be >= 1, got 0"),
    ],
)
def test_options_are_checked(options, message):
    with pytest.raises(ValueError, match=message):
        ClassMoments.from_arrays(X, y, **options)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (ClassMoments.empty([0], 3), "numbers of features: 2 and 3"),
        (ClassMoments.empty([0], 2, fourth=True), "`fourth`: False and True"),
        (ClassMoments.empty([0], 2, structure="diagonal"), "structures: full and"),
        (ClassMoments.empty(["a"], 2), "mix strings and numbers"),
    ],
)
def test_parts_that_do_not_fit(other, message):
    with pytest.raises(ValueError, match=message):
        ClassMoments.from_arrays(X, y) + other


@pytest.mark.parametrize("other", [1, None, X])
def test_other_types_do_not_add(other):
    with pytest.raises(TypeError):
        ClassMoments.from_arrays(X, y) + other
    with pytest.raises(TypeError):
        ClassMoments.from_arrays(X, y) - other


def test_nothing_to_reduce():
    with pytest.raises(ValueError, match="no moments to add"):
        ClassMoments.reduce([])


def test_unknown_classes_cannot_be_selected():
    with pytest.raises(ValueError, match=r"unknown classes \[7\]"):
        ClassMoments.from_arrays(X, y).select([0, 7])


@pytest.mark.parametrize("factor", [0, -1, np.inf, np.nan])
def test_scale_needs_a_positive_factor(factor):
    with pytest.raises(ValueError, match="`factor` must be finite and > 0"):
        ClassMoments.from_arrays(X, y).scale(factor)


def test_signed_weights_of_one_class_that_cancel():
    with pytest.raises(ValueError, match="use RawMoments"):
        ClassMoments.from_rows(X[:2], np.array([0, 0]), 1, np.array([1.0, -1.0]))


def test_signed_parts_that_cancel():
    plus = ClassMoments.from_rows(X[:1], np.array([0]), 1, np.array([1.0]))
    minus = ClassMoments.from_rows(X[1:2], np.array([0]), 1, np.array([-1.0]))
    with pytest.raises(ValueError, match="use RawMoments"):
        plus + minus
