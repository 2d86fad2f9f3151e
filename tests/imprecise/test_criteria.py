import numpy as np
import pytest

from prudent.core.classes import posterior_bounds
from prudent.imprecise.criteria import CredalSet

LOWER = np.log([[0.2, 0.1, 0.05]])
UPPER = np.log([[0.5, 0.3, 0.12]])
COSTS = np.array([[0.0, 1, 4], [2, 0, 1], [5, 1, 0]])
ZERO_ONE = 1.0 - np.eye(3)
EVEN = np.full(3, 1 / 3)


def undominated_by_cost(lower, upper, costs, prior, radius):
    found = CredalSet(lower, upper, prior, radius).dominance_by_cost(costs)
    return ~found.any(axis=1)


def random_bounds(seed, n=20, k=4):
    rng = np.random.default_rng(seed)
    lower = rng.normal(size=(n, k))
    return lower, lower + rng.exponential(size=(n, k))


def extreme_posteriors(lower, upper):
    """Posteriors at all vertices of the box of weights."""
    k = len(lower)
    picks = (np.arange(2**k)[:, None] >> np.arange(k)) & 1
    weights = np.exp(np.where(picks, upper, lower))
    return weights / weights.sum(axis=1, keepdims=True)


def test_reference_case_4_posteriors():
    low, high = posterior_bounds(LOWER, UPPER)
    np.testing.assert_allclose(
        low[0], [0.322580645161, 0.138888888889, 0.058823529412], atol=1e-12
    )
    np.testing.assert_allclose(
        high[0], [0.769230769231, 0.545454545455, 0.285714285714], atol=1e-12
    )


def test_reference_case_4_costs():
    low, high = CredalSet(LOWER, UPPER, EVEN, 0.0).expected_cost_bounds(COSTS)
    np.testing.assert_allclose(
        high[0], [1.935483870968, 0.861111111111, 3.230769230769], atol=1e-12
    )
    np.testing.assert_allclose(
        low[0], [0.692307692308, 0.454545454545, 1.774193548387], atol=1e-12
    )


def test_posterior_bounds_are_those_of_all_vertices():
    lower, upper = random_bounds(0)
    low, high = posterior_bounds(lower, upper)
    for i in range(len(lower)):
        corners = extreme_posteriors(lower[i], upper[i])
        np.testing.assert_allclose(low[i], corners.min(axis=0))
        np.testing.assert_allclose(high[i], corners.max(axis=0))


def test_cost_bounds_are_those_of_all_vertices():
    lower, upper = random_bounds(1)
    costs = np.random.default_rng(2).uniform(size=(4, 4))
    low, high = CredalSet(lower, upper, np.full(4, 0.25), 0.0).expected_cost_bounds(
        costs
    )
    for i in range(len(lower)):
        expected = extreme_posteriors(lower[i], upper[i]) @ costs
        np.testing.assert_allclose(low[i], expected.min(axis=0))
        np.testing.assert_allclose(high[i], expected.max(axis=0))


def test_zero_one_costs_are_one_minus_the_posterior():
    low, high = posterior_bounds(LOWER, UPPER)
    least, most = CredalSet(LOWER, UPPER, EVEN, 0.0).expected_cost_bounds(ZERO_ONE)
    np.testing.assert_allclose(least, 1 - high)
    np.testing.assert_allclose(most, 1 - low)


def test_very_unlikely_rows_lose_no_digits():
    shifted = posterior_bounds(LOWER - 1e4, UPPER - 1e4)
    np.testing.assert_allclose(shifted, posterior_bounds(LOWER, UPPER), rtol=1e-9)


def test_interval_dominance_keeps_all_maximal_classes_and_sometimes_more():
    lower, upper = random_bounds(3, n=500)
    interval = CredalSet(lower, upper, np.full(4, 0.25), 0.0).interval_undominated()
    maximal = upper >= lower.max(axis=1, keepdims=True)
    assert not (maximal & ~interval).any()
    assert (interval & ~maximal).any()


def test_zero_one_costs_give_plain_maximality():
    lower, upper = random_bounds(4, n=200)
    prior = np.array([0.4, 0.3, 0.2, 0.1])
    kept = undominated_by_cost(lower, upper, 1 - np.eye(4), prior, 0.0)
    joint = np.log(prior)
    expected = upper + joint >= (lower + joint).max(axis=1, keepdims=True)
    np.testing.assert_array_equal(kept, expected)


def test_zero_one_costs_and_prior_ball_give_the_closed_form():
    lower, upper = random_bounds(5, n=200)
    prior, radius = np.array([0.4, 0.3, 0.25, 0.05]), 0.1
    kept = undominated_by_cost(lower, upper, 1 - np.eye(4), prior, radius)
    with np.errstate(divide="ignore"):
        low = lower + np.log(np.maximum(prior - radius, 0))
    up = upper + np.log(np.minimum(prior + radius, 1))
    np.testing.assert_array_equal(kept, up >= low.max(axis=1, keepdims=True))


def test_e_admissible_is_found_by_sampling_the_weights():
    rng = np.random.default_rng(6)
    lower, upper = random_bounds(7, n=15, k=3)
    prior = np.ones(3) / 3
    maximal = undominated_by_cost(lower, upper, COSTS, prior, 0.0)
    admissible = CredalSet(lower, upper, EVEN, 0.0).e_admissible(COSTS, maximal)
    assert not (admissible & ~maximal).any()
    assert admissible.any(axis=1).all()
    for i in range(15):
        weights = rng.uniform(np.exp(lower[i]), np.exp(upper[i]), size=(20000, 3))
        optimal = np.bincount((weights @ COSTS).argmin(axis=1), minlength=3)
        assert admissible[i][optimal > 0].all()
        assert (optimal[admissible[i]] > 0).sum() >= admissible[i].sum() - 1


def test_e_admissible_equals_maximality_for_zero_one_costs():
    lower, upper = random_bounds(8, n=40, k=3)
    maximal = upper >= lower.max(axis=1, keepdims=True)
    np.testing.assert_array_equal(
        CredalSet(lower, upper, EVEN, 0.0).e_admissible(ZERO_ONE, maximal), maximal
    )


def test_a_decision_that_is_never_best_is_dominated():
    costs = np.column_stack([ZERO_ONE[:, :2], np.full(3, 3.0)])
    kept = undominated_by_cost(LOWER, UPPER, costs, np.ones(3) / 3, 0.2)
    assert not kept[0, 2]


@pytest.mark.parametrize("function", [posterior_bounds])
def test_impossible_classes_have_probability_zero(function):
    lower, upper = LOWER.copy(), UPPER.copy()
    lower[0, 2] = upper[0, 2] = -np.inf
    low, high = function(lower, upper)
    assert low[0, 2] == high[0, 2] == 0
