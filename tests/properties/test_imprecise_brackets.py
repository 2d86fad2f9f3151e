"""What must hold of the cheap bounds of imprecise sets, against all vertices."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from imprecise.brute_force import log_joint_bounds, random_classes, vertices
from prudent.imprecise.box import Boxes
from prudent.imprecise.branch_and_bound import _node, _root, _settle, box_maximum
from prudent.imprecise.max_cut import max_cut_dual
from prudent.imprecise.prior import lower_expectation, prior_bounds
from prudent.imprecise.row import (
    improve_point,
    improve_vertex,
    know_field,
    new_row,
    search_vertex,
    set_imprecision,
    start_row,
    tighten,
)

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

    row = new_row(3, n_features)
    start_row(row, boxes.half_distances(x[None])[0])
    set_imprecision(boxes, row, imprecision, low, up)

    def holds():
        slack = 1e-8 * (1 + np.abs(lower) + np.abs(upper) + row.base)
        assert (row.lower_lo <= lower + slack).all()
        assert (lower <= row.lower_hi + slack).all()
        assert (row.upper_lo <= upper + slack).all()
        assert (upper <= row.upper_hi + slack).all()

    holds()  # distances only
    for k in range(3):
        know_field(boxes, row, x, k)
        tighten(boxes, row, k, imprecision, low, up)
        holds()  # the field as well
        improve_vertex(boxes, row, k, imprecision)
        tighten(boxes, row, k, imprecision, low, up)
        holds()  # a vertex no single flip improves
        search_vertex(boxes, row, k, imprecision, low, np.nan, 10**6)
        improve_point(boxes, row, k, imprecision, up, -np.inf, np.inf)
        holds()  # both solved
    tight = 1e-6 * (1 + np.abs(lower) + np.abs(upper) + row.base)
    assert (row.lower_hi - row.lower_lo <= tight).all()
    assert (row.upper_hi - row.upper_lo <= tight).all()


def problem(seed, n_features, radius):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(n_features, n_features + 1))
    coupling, field = root @ root.T, 5.0 * rng.normal(size=n_features)
    corners = vertices(n_features)
    squares = np.einsum("ij,jk,ik->i", corners, coupling, corners)
    return coupling, field, corners, corners @ field + 0.5 * radius * squares


@quick
@given(SEEDS, st.integers(1, 10), st.floats(1e-3, 3.0))
def test_persistency_never_cuts_the_optimum(seed, n_features, radius):
    coupling, field, corners, values = problem(seed, n_features, radius)
    start = np.ones(n_features)
    stack, _ = _root(coupling, max_cut_dual(coupling), field, radius, start)
    node = _node(stack, 0)
    _settle(coupling, max_cut_dual(coupling), field, radius, node)
    settled = node.sign != 0.0
    agree = (corners[:, settled] == node.sign[settled]).all(axis=1)
    assert values[agree].max() >= values.max() - 1e-10 * (1 + abs(values.max()))


def test_persistency_settles_signs():
    # Without this the property above would hold of a rule that settles nothing.
    coupling, field = np.array([[1.0, 0.2], [0.2, 1.0]]), np.array([1.0, -0.1])
    stack, _ = _root(coupling, max_cut_dual(coupling), field, 1.0, np.ones(2))
    node = _node(stack, 0)
    _settle(coupling, max_cut_dual(coupling), field, 1.0, node)
    assert node.sign.tolist() == [1.0, 1.0]


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
