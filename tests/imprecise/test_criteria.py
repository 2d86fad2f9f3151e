import numpy as np
import pytest
from mpmath import mp, mpf
from sklearn.datasets import load_iris

from imprecise.brute_force import is_admissible
from prudent import ImpreciseDiscriminantAnalysis
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


@pytest.mark.parametrize("radius", [0.0, 0.01])
@pytest.mark.parametrize("spread", [2.0, 16.0, 40.0, 700.0, 1e5])
@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e9])
def test_e_admissible_wherever_likelihoods_lie_and_in_any_unit(radius, spread, unit):
    """The third decision is undominated, and one of the others is always cheaper."""
    costs = unit * np.array([[0.0, 1.0, 0.6], [1.0, 0.0, 0.6], [1.0, 1.0, 0.6]])
    prior = np.array([0.4, 0.4, 0.2])
    lower = np.full((1, 3), -spread)
    upper = np.zeros((1, 3))
    lower[:, 2] = upper[:, 2] = -spread - 10
    credal = CredalSet(lower, upper, prior, radius)
    maximal = ~credal.dominance_by_cost(costs).any(axis=1)
    assert maximal.tolist() == [[True, True, True]]
    admissible = credal.e_admissible(costs, maximal)
    assert admissible.tolist() == [[True, True, False]]


def far_apart(seed):
    """Likelihoods up to e^-100 apart, and costs of which many are equal."""
    rng = np.random.default_rng(seed)
    k = rng.integers(3, 5)
    upper = -rng.choice([1.0, 10, 30]) * rng.exponential(size=k)
    lower = upper - rng.choice([0.1, 1, 10, 30], size=k) * rng.exponential(size=k)
    costs = rng.integers(0, 3, size=(k, k)) * (1.0 - np.eye(k))
    if rng.random() < 0.5:
        costs[0] = costs[0, rng.integers(0, k, size=k)]
    costs[1:] += 0.3 * rng.random((k - 1, k)) * (rng.random((k - 1, 1)) < 0.5)
    return lower, upper, costs


def test_e_admissible_is_exact_however_far_apart_likelihoods_lie():
    """What no model allows is not kept, be it beaten by next to nothing."""
    expected = []
    for seed in range(150):
        lower, upper, costs = far_apart(seed)
        k = len(costs)
        credal = CredalSet(lower[None], upper[None], np.full(k, 1 / k), 0.0)
        ours = credal.e_admissible(costs, np.ones((1, k), dtype=bool))[0]
        for decision in range(k):
            case = np.exp(lower), np.exp(upper), costs, decision
            if is_admissible(*case):
                assert ours[decision]
            elif not is_admissible(*case, tie=1e-8):
                assert not ours[decision]
            expected.append(is_admissible(*case))
    assert 0.3 < np.mean(expected) < 0.8


def test_a_decision_beaten_by_next_to_nothing_under_every_model_is_not_kept():
    """Where class 0 is not the truth, one of the first two costs 1 at most."""
    rng = np.random.default_rng(0)
    X = rng.normal([[0.0]] * 10 + [[7.7]] * 10 + [[8.3]] * 10)
    costs = [[0, 0, 0], [0, 2, 1.1], [2, 0, 1.1]]
    model = ImpreciseDiscriminantAnalysis(
        covariance_type="tied", imprecision=6.0, costs=costs, criterion="e_admissible"
    ).fit(X, np.repeat([0, 1, 2], 10))
    rows = np.linspace(-30, 8, 39)[:, None]
    assert not model.predict_set(rows)[:, 2].any()
    model.set_params(criterion="maximality")
    assert model.predict_set(rows)[:, 2].all()


@pytest.mark.parametrize("spread", [1e3, 1e6, 1e200])
@pytest.mark.parametrize("radius", [0.0, 0.1])
def test_some_decision_is_admissible_beside_impossible_classes(spread, radius):
    rng = np.random.default_rng(int(np.log(spread)))
    for _ in range(40):
        upper = -spread * rng.exponential(size=(1, 5))
        lower = upper - rng.choice([0.0, 1, 1e3]) * rng.exponential(size=(1, 5))
        prior = np.append(rng.dirichlet(np.ones(4)), 0.0)
        upper[0, 0] = lower[0, 0] = -np.inf
        costs = rng.integers(0, 3, size=(5, 5)).astype(float)
        costs[1:3] = costs[1, 0]  # no decision matters for these
        credal = CredalSet(lower, upper, prior, radius)
        maximal = ~credal.dominance_by_cost(costs).any(axis=1)
        assert credal.e_admissible(costs, maximal).any()


@pytest.mark.parametrize("shift", [0.0, -50.0, -1e5])
def test_decisions_that_cost_the_same_stay_together(shift):
    rng = np.random.default_rng(0)
    for _ in range(20):
        joint = shift + rng.normal(size=(1, 3))
        weights, costs = np.exp(joint[0] - shift), rng.random((3, 3))
        costs[2] += (weights @ (costs[:, [0]] - costs)) / weights[2]
        kept = CredalSet(joint, joint, EVEN, 0.0).e_admissible(
            costs, np.ones((1, 3), dtype=bool)
        )
        assert kept.all()


@pytest.mark.parametrize("shift", [0.0, -1e5])
def test_a_decision_halfway_between_two_others_ties_with_them_somewhere(shift):
    rng = np.random.default_rng(0)
    lower, upper = np.full((1, 3), shift - 5.0), np.full((1, 3), shift)
    for _ in range(50):
        costs = 1000 + rng.random((3, 3))
        costs[:2, 1] = costs[1::-1, 0]  # each of the first two is the better one once
        costs[:, 2] = (costs[:, 0] + costs[:, 1]) / 2
        kept = CredalSet(lower, upper, EVEN, 0.0).e_admissible(
            costs, np.ones((1, 3), dtype=bool)
        )
        assert kept.all()


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


def smallest_expectation(values, prior, radius):
    """The Choquet integral over the ball of priors, in 60 digits."""
    order = sorted(range(len(values)), key=lambda k: values[k])
    total = values[order[0]]
    for i in range(1, len(values)):
        mass = mp.fsum(mpf(prior[k]) for k in order[i:])
        step = values[order[i]] - values[order[i - 1]]
        total += step * max(mpf(0), mass - mpf(radius))
    return total


def prefers(lower, upper, costs, prior, radius, a, b):
    gain = [mpf(row[b]) - mpf(row[a]) for row in costs]
    ends = [low if d > 0 else up for d, low, up in zip(gain, lower, upper, strict=True)]
    values = [d * mp.exp(mpf(end)) for d, end in zip(gain, ends, strict=True)]
    return bool(smallest_expectation(values, prior, radius) > 0)


@pytest.mark.parametrize("spread", [1.0, 30.0, 1e3, 1e5])
@pytest.mark.parametrize("radius", [0.0, 0.02, 0.9, 0.999, 1.0, 100.0])
def test_dominance_by_cost_is_that_of_sixty_digits(spread, radius):
    rng = np.random.default_rng([int(spread), int(1000 * radius)])
    with mp.workdps(60):
        for _ in range(15):
            k = rng.integers(2, 5)
            lower = spread * rng.normal(size=k)
            upper = lower + rng.exponential(size=k)
            prior = rng.dirichlet(np.ones(k))
            costs = rng.normal(size=(k, 3))
            costs[:, 1] = costs[:, 0] + 10.0 ** -rng.uniform(0, 15, size=k)
            found = CredalSet(lower[None], upper[None], prior, radius)
            expected = [
                [a != b and prefers(lower, upper, costs, prior, radius, a, b)]
                for a in range(3)
                for b in range(3)
            ]
            ours = found.dominance_by_cost(costs)[0]
            np.testing.assert_array_equal(ours, np.reshape(expected, (3, 3)))


@pytest.mark.parametrize("exponent", [-10, -25, -500, -1e6])
def test_no_gain_is_too_small_to_be_preferred(exponent):
    lower = upper = np.array([[0.0, exponent]])
    costs = np.array([[0.0, 1.0], [0.0, 1.0]])  # the first decision is never dearer
    found = CredalSet(lower, upper, np.array([0.5, 0.5]), 1.0).dominance_by_cost(costs)
    assert found[0].tolist() == [[False, True], [False, False]]


def test_what_rounding_leaves_of_a_prior_is_no_preference():
    prior, radius = np.array([0.1, 0.2, 0.7]), 0.3  # in floats 0.1 + 0.2 exceeds 0.3
    costs = np.array([[0.0, 1.0], [0.0, 1.0], [0.0, 0.0]])
    lower = upper = np.zeros((1, 3))
    assert not CredalSet(lower, upper, prior, radius).dominance_by_cost(costs).any()
    smaller = CredalSet(lower, upper, prior, radius - 1e-13)
    assert smaller.dominance_by_cost(costs)[0].tolist() == [[0, 1], [0, 0]]


def test_a_decision_dearer_for_every_class_is_never_kept():
    X, y = load_iris(return_X_y=True)
    costs = np.array([[0.0, 1, 2], [1, 0, 2], [1, 1, 2]])
    model = ImpreciseDiscriminantAnalysis(costs=costs, prior_imprecision=1e4)
    rows = np.vstack([X[::10], X[:3] + 500.0])
    kept = model.fit(X, y).predict_set(rows)
    assert not kept[:, 2].any()
    assert kept.any(axis=1).all()


def test_a_ball_of_all_priors_reaches_the_cost_of_every_class():
    lower = upper = np.array([[0.0, -1e4, -2e4], [-2e4, -1e4, 0.0]])
    credal = CredalSet(lower, upper, EVEN, 1.0)
    least, most = credal.expected_cost_bounds(COSTS)
    np.testing.assert_allclose(least, [COSTS.min(axis=0)] * 2)
    np.testing.assert_allclose(most, [COSTS.max(axis=0)] * 2)
