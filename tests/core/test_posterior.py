"""Posterior bounds, sets and minimax action against enumeration of the balls."""

import itertools

import numpy as np
import pytest

from prudent.core.classes import (
    dominance_sets,
    minimax_scores,
    posterior_bounds,
)


def random_bounds(n_classes, seed, spread=1.5):
    rng = np.random.default_rng(seed)
    lower = rng.normal(size=(20, n_classes), scale=2)
    return lower, lower + spread * rng.random((20, n_classes))


def posteriors_at_the_corners(lower, upper):
    """Posteriors of all choices of low or up densities, (2^K, n, K)."""
    corners = []
    for choice in itertools.product((False, True), repeat=lower.shape[1]):
        joint = np.exp(np.where(choice, upper, lower))
        corners.append(joint / joint.sum(axis=1, keepdims=True))
    return np.array(corners)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_posterior_bounds_are_the_extreme_posteriors(n_classes):
    lower, upper = random_bounds(n_classes, n_classes)
    corners = posteriors_at_the_corners(lower, upper)
    low, high = posterior_bounds(lower, upper)
    np.testing.assert_allclose(low, corners.min(axis=0), rtol=1e-12)
    np.testing.assert_allclose(high, corners.max(axis=0), rtol=1e-12)


def test_posterior_bounds_survive_huge_log_densities():
    low, high = posterior_bounds(
        np.array([[-1e6, 1e6]]), np.array([[-1e6 + 1, 1e6 + 1]])
    )
    np.testing.assert_array_equal(low, [[0.0, 1.0]])
    np.testing.assert_array_equal(high, [[0.0, 1.0]])


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_minimax_action_has_the_least_worst_case_error(n_classes):
    lower, upper = random_bounds(n_classes, 10 + n_classes)
    worst_error = 1 - posteriors_at_the_corners(lower, upper).min(axis=0)
    np.testing.assert_array_equal(
        minimax_scores(lower, upper).argmax(axis=1), worst_error.argmin(axis=1)
    )


@pytest.mark.parametrize("n_classes", [2, 4])
def test_sets_keep_what_no_class_beats_at_every_corner(n_classes):
    lower, upper = random_bounds(n_classes, 20 + n_classes, spread=3.0)
    corners = posteriors_at_the_corners(lower, upper)
    # [i, c, o]: at some corner class c is at least as probable as class o
    unbeaten = (corners[:, :, :, None] >= corners[:, :, None, :]).any(axis=0)
    kept = unbeaten.all(axis=2)
    np.testing.assert_array_equal(dominance_sets(lower, upper), kept)


def test_an_impossible_class_is_in_no_set_and_changes_no_bound():
    lower, upper = random_bounds(2, 0)
    absent = np.full((len(lower), 1), -np.inf)
    wide = posterior_bounds(np.hstack([lower, absent]), np.hstack([upper, absent]))
    for bound, expected in zip(wide, posterior_bounds(lower, upper), strict=True):
        np.testing.assert_allclose(bound[:, :2], expected)
        assert (bound[:, 2] == 0).all()
    sets = dominance_sets(np.hstack([lower, absent]), np.hstack([upper, absent]))
    assert not sets[:, 2].any()


def test_a_class_stays_impossible_where_all_others_may_be():
    lower = np.array([[-np.inf, -np.inf, 0.0]])
    upper = np.array([[-np.inf, 1.0, 1.0]])
    low, high = posterior_bounds(lower, upper)
    assert low[0, 0] == high[0, 0] == 0.0
    assert high[0, 2] == 1.0
