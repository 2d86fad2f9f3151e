"""Classes seen and declared, priors, costs: one behaviour for all families."""

import numpy as np
import pytest

from prudent import ClassMoments
from prudent.core.classes import (
    check_two_classes,
    class_costs,
    class_priors,
    classes_seen,
    constant_features,
    error_costs,
    restrict,
    spread_over_classes,
    varying_features,
)
from prudent.exceptions import DegenerateDataError

ROWS = np.array([[0.0, 7.0, 1.0], [2.0, 7.0, 0.0], [1.0, 7.0, 3.0], [5.0, 7.0, 1.0]])
LABELS = ["a", "a", "c", "c"]


def moments(**options):
    return ClassMoments.from_arrays(ROWS, LABELS, classes=["a", "b", "c"], **options)


def test_a_declared_class_without_rows_is_not_seen():
    assert classes_seen(moments()).tolist() == [True, False, True]


def test_rows_of_one_class_are_refused_with_its_name():
    alone = ClassMoments.from_arrays(ROWS, ["a"] * 4, classes=["a", "b"])
    with pytest.raises(ValueError, match="at least 2 classes .* one class: 'a'"):
        classes_seen(alone)


@pytest.mark.parametrize("structure", ["full", "diagonal"])
def test_features_that_vary_and_their_moments(structure):
    given = moments(structure=structure)
    assert constant_features(given).tolist() == [1]
    assert varying_features(given).tolist() == [0, 2]
    part = restrict(given, classes_seen(given), varying_features(given))
    expected = ClassMoments.from_arrays(ROWS[:, [0, 2]], LABELS, structure=structure)
    assert part.classes.tolist() == ["a", "c"]
    np.testing.assert_array_equal(part.scatter, expected.scatter)
    np.testing.assert_array_equal(part.mean, expected.mean)


def test_no_feature_that_varies():
    flat = ClassMoments.from_arrays(np.ones((4, 2)), LABELS)
    with pytest.raises(DegenerateDataError, match="all features are constant"):
        varying_features(flat)


WEIGHT = np.array([3.0, 0.0, 1.0])


def test_priors_are_frequencies_or_as_given():
    assert class_priors(None, WEIGHT).tolist() == [0.75, 0.0, 0.25]
    given = class_priors([0.25, 0.25, 0.5], np.ones(3))
    assert given.tolist() == [0.25, 0.25, 0.5]


def test_a_prior_of_zero_is_allowed_and_a_class_without_rows_has_none():
    assert class_priors([0.0, 0.5, 0.5], WEIGHT).tolist() == [0.0, 0.0, 1.0]


@pytest.mark.parametrize(
    "priors",
    [
        [0.5, 0.5],
        [0.5, 0.6, 0.1],
        [1.1, 0.0, -0.1],
        [np.nan, 0.5, 0.5],
        [0.2, 0.3, 0.5 + 2e-8],
    ],
)
def test_priors_that_are_no_probabilities(priors):
    with pytest.raises(ValueError, match="`priors` must hold 3 numbers >= 0 that sum"):
        class_priors(priors, WEIGHT)


def test_priors_may_miss_one_by_rounding():
    assert class_priors([0.2, 0.3, 0.5 + 9e-9], np.ones(3))[2] > 0.5


def test_priors_that_leave_nothing_for_the_classes_with_rows():
    with pytest.raises(ValueError, match="at least one class that has rows"):
        class_priors([0.0, 1.0, 0.0], WEIGHT)


def test_costs():
    costs = [[1.0, 3.0], [2.0, 0.0]]
    assert class_costs(costs, 2).tolist() == costs
    assert error_costs(costs, 2).tolist() == [[0.0, 2.0], [2.0, 0.0]]


@pytest.mark.parametrize("costs", [[[0, 1]], [[0, np.inf], [1, 0]], 3.0])
def test_costs_of_another_shape_or_not_finite(costs):
    with pytest.raises(ValueError, match=r"n_classes\) = \(2, 2\), rows = truth; got"):
        class_costs(costs, 2)


@pytest.mark.parametrize("costs", [{0: {1: 5}}, {("a", "b"): 1.0}])
def test_costs_as_a_mapping_are_refused(costs):
    with pytest.raises(ValueError, match=r"`costs` must be an array .* got a mapping"):
        class_costs(costs, 2)


def test_costs_that_are_no_numbers_are_refused():
    with pytest.raises(ValueError, match="array of numbers .* got 'high'"):
        class_costs("high", 2)


def test_an_error_must_cost_more_than_the_right_answer():
    with pytest.raises(ValueError, match="each error in `costs` must cost more"):
        error_costs([[0, 1], [0, 0]], 2)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_values_are_spread_over_all_classes(axis):
    values = np.arange(4.0).reshape(2, 2)
    seen = np.array([True, False, True])
    everything = spread_over_classes(values, seen, -np.inf, axis=axis)
    np.testing.assert_array_equal(np.compress(seen, everything, axis=axis), values)
    assert (np.compress(~seen, everything, axis=axis) == -np.inf).all()
    assert spread_over_classes(values, np.ones(2, bool), 0.0) is values


@pytest.mark.parametrize(
    "dtype", [f"{sign}int{size}" for sign in ("", "u") for size in (8, 16, 32, 64)]
)
@pytest.mark.parametrize("width", [2, 200, 2**15])
def test_classes_of_every_integer_type_keep_label_and_type(dtype, width):
    limits = np.iinfo(dtype)
    for low in (limits.min, limits.max - min(width, limits.max - limits.min)):
        labels = np.array(
            [low, min(low + width, limits.max), low, low + 1], dtype=dtype
        )
        moments = ClassMoments.from_arrays(ROWS, labels)
        expected, counts = np.unique(labels, return_counts=True)
        assert moments.classes.dtype == np.dtype(dtype)
        assert moments.classes.tolist() == expected.tolist()
        assert moments.weight.tolist() == counts.tolist()


def test_no_rows_are_not_one_class():
    with pytest.raises(ValueError, match=r"2 classes are needed, got no rows\."):
        check_two_classes([])
