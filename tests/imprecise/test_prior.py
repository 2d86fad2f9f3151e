import numpy as np
import pytest
from scipy.optimize import linprog

from prudent.imprecise import lower_expectation, prior_bounds

PRIOR = np.array([5, 3, 2, 10]) / 20
VALUES = np.array([1.0, -2.0, 0.5, -0.25])


def choquet(values, prior, radius):
    order = np.argsort(values)
    total = values[order[0]]
    for i in range(1, len(values)):
        upper_mass = prior[order[i:]].sum()
        step = values[order[i]] - values[order[i - 1]]
        total += step * max(0.0, upper_mass - radius)
    return total


def test_reference_case_3():
    assert lower_expectation(VALUES, PRIOR, 4 / 20) == pytest.approx(-0.725, abs=1e-12)


@pytest.mark.parametrize("seed", range(10))
def test_equals_the_choquet_integral(seed):
    rng = np.random.default_rng(seed)
    prior = rng.dirichlet(np.ones(5))
    values, radius = rng.normal(size=5), rng.uniform(0, 1.2)
    expected = choquet(values, prior, radius)
    assert lower_expectation(values, prior, radius) == pytest.approx(expected)


@pytest.mark.parametrize("n_classes", [2, 3, 4])
def test_bounds_of_single_classes_are_looser_from_four_classes_on(n_classes):
    rng = np.random.default_rng(0)
    gaps = []
    for _ in range(50):
        prior, radius = rng.dirichlet(np.ones(n_classes)), rng.uniform(0, 0.6)
        values = rng.normal(size=n_classes)
        box = np.column_stack(prior_bounds(prior, radius))
        least = linprog(values, A_eq=np.ones((1, n_classes)), b_eq=1, bounds=box).fun
        gaps.append(lower_expectation(values, prior, radius) - least)
    assert min(gaps) > -1e-9
    assert (max(gaps) < 1e-9) == (n_classes < 4)


def test_no_radius_is_the_plain_expectation():
    assert lower_expectation(VALUES, PRIOR, 0.0) == pytest.approx(VALUES @ PRIOR)


def test_a_huge_radius_is_the_minimum():
    assert lower_expectation(VALUES, PRIOR, 5.0) == pytest.approx(-2.0)


def test_rows_are_independent():
    stacked = lower_expectation(np.stack([VALUES, -VALUES]), PRIOR, 0.2)
    assert stacked[0] == lower_expectation(VALUES, PRIOR, 0.2)
    assert stacked[1] == lower_expectation(-VALUES, PRIOR, 0.2)


def test_prior_bounds_stay_probabilities():
    lower, upper = prior_bounds(PRIOR, 0.6)
    np.testing.assert_allclose(lower, [0, 0, 0, 0])
    np.testing.assert_allclose(upper, [0.85, 0.75, 0.7, 1.0])


@pytest.mark.parametrize(
    ("prior", "radius", "message"),
    [
        ([0.5, 0.6], 0.1, r"`prior` must hold numbers >= 0 that sum to 1, got \[0.5"),
        ([1.5, -0.5], 0.1, "`prior` must hold numbers >= 0"),
        ([[1.0]], 0.1, "`prior` must hold numbers >= 0"),
        ([0.5, 0.5], -0.1, "`radius` must be a number >= 0, got -0.1"),
        ([0.5, 0.5], np.nan, "`radius` must be a number >= 0, got nan"),
    ],
)
def test_bad_balls_are_named(prior, radius, message):
    with pytest.raises(ValueError, match=message):
        prior_bounds(prior, radius)
    with pytest.raises(ValueError, match=message):
        lower_expectation([0.0, 1.0], prior, radius)


@pytest.mark.parametrize("values", [[1.0, 2.0], [1.0, np.nan, 0.0, 0.0], 3.0])
def test_bad_values_are_named(values):
    with pytest.raises(ValueError, match="`values` must be finite, of shape"):
        lower_expectation(values, PRIOR, 0.1)
