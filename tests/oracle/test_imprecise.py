"""The imprecise decisions against all vertices, SCIP and linear programs."""

import itertools

import numpy as np
import pytest
from scipy.optimize import linprog

from imprecise.brute_force import log_joint_bounds, random_classes
from prudent.imprecise.boxes import Boxes, max_cut_dual
from prudent.imprecise.criteria import CredalSet, lower_expectation
from prudent.imprecise.optima import box_maximum

pytestmark = pytest.mark.oracle


def compare_with_all_vertices(seed, n_cases, n_features):
    rng = np.random.default_rng(seed)
    rows_compared = 0
    for case in range(n_cases):
        size, n_classes = rng.integers(*n_features), rng.integers(2, 5)
        tied, box = case % 3 == 0, ("mean", "natural")[case % 2]
        means, covariances, weights = random_classes(rng, size, n_classes, tied=tied)
        matrix = np.zeros(n_classes, dtype=np.intp) if tied else np.arange(n_classes)
        boxes = Boxes.build(
            means, covariances, matrix, weights, box, np.arange(n_classes)
        )
        constants = np.log(weights / weights.sum()) - 0.5 * boxes.log_determinants
        points = 2 * rng.normal(size=(4, size))
        c = 10 ** rng.uniform(-1, 1)
        kept, unanswered = boxes.posed(constants, constants, 10**6).keep(points, c)
        cautious = [
            boxes.posed(constants, constants, limit).keep(points, c)[0]
            for limit in (0, 1)
        ]
        assert unanswered == 0
        for i, point in enumerate(points):
            lower, upper = log_joint_bounds(
                point, means, covariances[matrix], weights, constants, c, box
            )
            expected = upper >= lower.max()
            clear = np.abs(upper - lower.max()) > 1e-7 * (1 + np.abs(upper))
            np.testing.assert_array_equal(kept[i][clear], expected[clear])
            for sets in cautious:
                assert not (expected & ~sets[i] & clear).any()
            rows_compared += 1
    return rows_compared


def test_sets_equal_all_vertices():
    assert compare_with_all_vertices(0, 120, (1, 9)) == 480


@pytest.mark.slow
def test_sets_equal_all_vertices_on_thousands_of_rows():
    assert compare_with_all_vertices(1, 1000, (1, 10)) == 4000


@pytest.mark.slow
def test_sets_equal_all_vertices_up_to_twelve_features():
    assert compare_with_all_vertices(2, 60, (10, 13)) == 240


def scip_maximum(coupling, field, radius):
    """Largest field's + (radius / 2) s' coupling s over signs, by SCIP."""
    scip = pytest.importorskip("pyscipopt")
    model = scip.Model()
    model.hideOutput()
    model.setParam("limits/gap", 1e-9)
    n = len(field)
    # s = 2 b - 1 with products of binaries: SCIP linearises them exactly.
    b = [model.addVar(vtype="B") for _ in range(n)]
    s = [2 * b[i] - 1 for i in range(n)]
    value = scip.quicksum(field[i] * s[i] for i in range(n))
    value += (
        radius
        / 2
        * scip.quicksum(
            coupling[i, j] * s[i] * s[j]
            for i, j in itertools.product(range(n), repeat=2)
            if i != j
        )
    )
    height = model.addVar(lb=None)
    model.addCons(height <= value)
    model.setObjective(height, "maximize")
    model.optimize()
    return model.getObjVal() + radius / 2 * np.trace(coupling)


@pytest.mark.parametrize("n_features", [12, 18])
def test_one_value_equals_scip(n_features):
    rng = np.random.default_rng(n_features)
    root = rng.normal(size=(n_features, n_features + 1))
    coupling = root @ root.T / n_features
    field, radius = 3 * rng.normal(size=n_features), 1.0
    best = np.where(field < 0, -1.0, 1.0)
    lower, upper, _ = box_maximum(
        coupling,
        max_cut_dual(coupling),
        field,
        radius,
        best,
        -np.inf,
        np.inf,
        10**7,
    )
    assert upper - lower <= 1e-9 * abs(upper)
    assert lower == pytest.approx(scip_maximum(coupling, field, radius), rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("n_features", [30, 45, 60])
def test_one_value_equals_scip_in_many_features(n_features):
    # Strong fields, as rows far from a class have: what SCIP can solve at this size.
    rng = np.random.default_rng(n_features)
    root = rng.normal(size=(n_features, 2 * n_features))
    coupling = root @ root.T / n_features
    field, radius = 5 * rng.normal(size=n_features), 0.5
    best = np.where(field < 0, -1.0, 1.0)
    lower, _, _ = box_maximum(
        coupling,
        max_cut_dual(coupling),
        field,
        radius,
        best,
        -np.inf,
        np.inf,
        10**7,
    )
    assert lower == pytest.approx(scip_maximum(coupling, field, radius), rel=1e-6)


def prior_by_linear_program(values, prior, radius):
    """Smallest expectation over all priors whose every event moves <= radius."""
    n = len(prior)
    events = np.array(list(itertools.product([0, 1], repeat=n)))[1:-1]
    answer = linprog(
        values,
        A_ub=np.vstack([events, -events]),
        b_ub=np.concatenate([events @ prior + radius, -(events @ prior) + radius]),
        A_eq=np.ones((1, n)),
        b_eq=[1.0],
        bounds=(0, 1),
    )
    return answer.fun


@pytest.mark.parametrize("seed", range(15))
def test_total_variation_ball_equals_the_linear_program(seed):
    rng = np.random.default_rng(seed)
    prior = rng.dirichlet(np.ones(4))
    values, radius = rng.normal(size=4), rng.uniform(0, 0.8)
    ours = lower_expectation(values, prior, radius)
    assert ours == pytest.approx(prior_by_linear_program(values, prior, radius))


def test_dominance_by_cost_equals_the_linear_program_over_priors_and_likelihoods():
    rng = np.random.default_rng(3)
    prior, radius = np.array([0.5, 0.3, 0.2]), 0.15
    lower = rng.normal(size=(25, 3))
    upper = lower + rng.exponential(size=(25, 3))
    costs = np.array([[0.0, 1, 4], [2, 0, 1], [5, 1, 0]])
    credal = CredalSet(lower, upper, prior, radius)
    kept = ~credal.dominance_by_cost(costs).any(axis=1)
    for i in range(25):
        corners = np.array(
            list(itertools.product(*np.exp([lower[i], upper[i]]).T.tolist()))
        )
        for b in range(3):
            least = [
                min(
                    prior_by_linear_program(
                        (costs[:, b] - costs[:, a]) * corner, prior, radius
                    )
                    for corner in corners
                )
                for a in range(3)
                if a != b
            ]
            assert kept[i, b] == (max(least) <= 1e-9)
