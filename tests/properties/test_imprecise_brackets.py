"""What must hold of the cheap bounds of imprecise sets, against all vertices."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from imprecise.brute_force import log_joint_bounds, random_classes, vertices
from prudent.imprecise import kernels, optima
from prudent.imprecise.boxes import Boxes, max_cut_dual
from prudent.imprecise.criteria import lower_expectation, prior_bounds
from prudent.imprecise.optima import bound_node, box_maximum, start_node

SEEDS = st.integers(0, 2**32 - 1)
FEATURES = st.integers(1, 8)
BOXES = st.sampled_from(["mean", "natural"])
quick = settings(max_examples=40, deadline=None)


@quick
@given(SEEDS, FEATURES, BOXES, st.booleans(), st.floats(1e-3, 50.0))
def test_brackets_hold_at_every_step(seed, n_features, box, tied, imprecision):
    rng = np.random.default_rng(seed)
    means, matrices, weights = random_classes(
        rng, n_features, 3, tied=tied, ridge=10.0 ** -rng.integers(0, 4)
    )
    matrix = np.zeros(3, dtype=np.intp) if tied else np.arange(3)
    boxes = Boxes.build(means, matrices, matrix, weights, box, np.arange(3))
    x = means[0] + 2.0 * rng.normal(size=n_features)
    low = rng.normal(size=3)
    up = low + rng.uniform(size=3)
    covariances = matrices[matrix]
    lower, _ = log_joint_bounds(x, means, covariances, weights, low, imprecision, box)
    _, upper = log_joint_bounds(x, means, covariances, weights, up, imprecision, box)

    state = boxes.posed(low, up).state()
    _, wide, narrow = state
    kernels.start_row(wide, narrow, x[None], boxes.half_distances(x[None]), 0)
    for k in range(3):
        kernels.know(*state, k, imprecision, kernels.AFRESH)
    base = narrow[kernels.BASE]
    lower_lo, lower_hi = narrow[kernels.LOWER_LO], narrow[kernels.LOWER_HI]
    upper_lo, upper_hi = narrow[kernels.UPPER_LO], narrow[kernels.UPPER_HI]

    def holds():
        slack = 1e-8 * (1 + np.abs(lower) + np.abs(upper) + base)
        assert (lower_lo <= lower + slack).all()
        assert (lower <= lower_hi + slack).all()
        assert (upper_lo <= upper + slack).all()
        assert (upper <= upper_hi + slack).all()

    holds()  # distances only
    for k in range(3):
        kernels.know(*state, k, imprecision, kernels.WITH_FIELD)
        holds()  # the field as well
        kernels.know(*state, k, imprecision, kernels.WITH_VERTEX)
        holds()  # a vertex no single flip improves
        kernels.search_vertex(*state, k, imprecision, np.nan, 10**6)
        kernels.improve_point(*state, k, imprecision, -np.inf, np.inf)
        holds()  # both solved
    tight = 1e-6 * (1 + np.abs(lower) + np.abs(upper) + base)
    assert (lower_hi - lower_lo <= tight).all()
    assert (upper_hi - upper_lo <= tight).all()


def problem(seed, n_features, radius):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(n_features, n_features + 1))
    coupling, field = root @ root.T, 5.0 * rng.normal(size=n_features)
    corners = vertices(n_features)
    squares = np.einsum("ij,jk,ik->i", corners, coupling, corners)
    return coupling, field, corners, corners @ field + 0.5 * radius * squares


def signs_settled(coupling, field, radius):
    """Signs that are known before any branching; 0 for the others."""
    dual, start = max_cut_dual(coupling), np.ones(len(field))
    node = np.empty((5, len(field)))
    start_node(coupling, dual, field, radius, start, node)
    bound_node(coupling, dual, field, radius, node, np.inf)  # any bound will do
    return node[optima.SIGN]


@quick
@given(SEEDS, st.integers(1, 10), st.floats(1e-3, 3.0))
def test_persistency_never_cuts_the_optimum(seed, n_features, radius):
    coupling, field, corners, values = problem(seed, n_features, radius)
    sign = signs_settled(coupling, field, radius)
    settled = sign != 0.0
    agree = (corners[:, settled] == sign[settled]).all(axis=1)
    assert values[agree].max() >= values.max() - 1e-10 * (1 + abs(values.max()))


def test_persistency_settles_signs():
    # Without this the property above would hold of a rule that settles nothing.
    coupling, field = np.array([[1.0, 0.2], [0.2, 1.0]]), np.array([1.0, -0.1])
    assert signs_settled(coupling, field, 1.0).tolist() == [1.0, 1.0]


@quick
@given(SEEDS, st.integers(1, 10), st.floats(1e-3, 10.0))
def test_a_search_to_the_end_finds_the_best_vertex(seed, n_features, radius):
    coupling, field, _, values = problem(seed, n_features, radius)
    best = np.where(field < 0, -1.0, 1.0)
    lower, upper, _ = box_maximum(
        coupling, max_cut_dual(coupling), field, radius, best, -np.inf, np.inf, 10**6
    )
    slack = 1e-9 * (1 + abs(values.max()))
    assert abs(lower - values.max()) <= slack
    assert abs(upper - values.max()) <= slack
    reached = field @ best + 0.5 * radius * best @ coupling @ best
    assert abs(reached - values.max()) <= slack


@quick
@given(SEEDS, st.integers(2, 6))
def test_a_prior_ball_of_radius_zero_is_the_prior(seed, n_classes):
    rng = np.random.default_rng(seed)
    prior = rng.dirichlet(np.ones(n_classes))
    lower, upper = prior_bounds(prior, 0.0)
    assert lower.tolist() == upper.tolist() == prior.tolist()
    values = rng.normal(size=(5, n_classes))
    expected = values @ prior
    np.testing.assert_allclose(
        lower_expectation(values, prior, 0.0), expected, rtol=0, atol=1e-14
    )
