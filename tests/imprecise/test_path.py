import numpy as np
import pytest

from imprecise.brute_force import random_classes
from prudent.imprecise.boxes import Boxes, DiagonalBoxes


def models(seed):
    rng = np.random.default_rng(seed)
    n_features, n_classes = rng.integers(1, 8), rng.integers(2, 6)
    means, covariances, weights = random_classes(rng, n_features, n_classes)
    box = ("mean", "natural")[seed % 2]
    labels = np.arange(n_classes)
    variances = np.diagonal(covariances, axis1=1, axis2=2)
    yield Boxes.build(means, covariances, labels, weights, box, labels)
    yield Boxes.build(means, covariances[:1], 0 * labels, weights, box, labels)
    yield DiagonalBoxes.build(means, variances, weights, box)


def questions(boxes, seed):
    rng = np.random.default_rng(seed)
    points = np.vstack([2 * rng.normal(size=(4, boxes.mean.shape[1])), boxes.mean[:1]])
    constants = -0.5 * boxes.log_determinants
    # The two sides of an imprecise prior.
    return points, constants - 0.1 * (seed % 3), constants


@pytest.mark.parametrize("seed", range(12))
def test_critical_values_reproduce_the_sets(seed):
    for boxes in models(seed):
        points, low, up = questions(boxes, seed)
        critical, unanswered = boxes.posed(low, up, 10**6).critical(points)
        assert unanswered == 0
        for c in np.geomspace(0.01, 100, 25):
            kept, _ = boxes.posed(low, up, 10**6).keep(points, c)
            clear = np.abs(critical - c) > 2e-6 * critical + 2e-7
            np.testing.assert_array_equal(kept[clear], (critical <= c)[clear])


@pytest.mark.parametrize("seed", range(8))
def test_critical_values_of_a_row_that_is_the_mean_of_several_classes(seed):
    """As where columns are discrete: their lower bounds fall with c^2 alone."""
    for boxes in models(seed):
        mean = boxes.mean.copy()
        mean[1:] = mean[1]
        boxes = boxes._replace(mean=mean)
        points, constants = mean[1:2], -0.5 * boxes.log_determinants
        posed = boxes.posed(constants, constants, 10**6)
        critical, _ = posed.critical(points)
        assert np.isfinite(critical).all()
        for c in np.geomspace(0.01, 1000, 25):
            kept, _ = posed.keep(points, c)
            clear = np.abs(critical - c) > 2e-6 * critical + 2e-7
            np.testing.assert_array_equal(kept[clear], (critical <= c)[clear])


@pytest.mark.parametrize("seed", range(12))
def test_critical_values_are_sharp(seed):
    for boxes in models(seed):
        points, low, up = questions(boxes, seed)
        critical, _ = boxes.posed(low, up, 10**6).critical(points)
        for i, k in np.argwhere(critical > 1e-5):
            value = critical[i, k]
            row = points[i : i + 1]
            below, _ = boxes.posed(low, up, 10**6).keep(row, value * (1 - 3e-6) - 3e-7)
            above, _ = boxes.posed(low, up, 10**6).keep(row, value * (1 + 1e-7) + 1e-8)
            assert above[0, k]
            assert not below[0, k]


@pytest.mark.parametrize("seed", range(12))
def test_grid_values_lie_between_the_right_grid_points(seed):
    grid = np.unique(np.round(np.geomspace(0.01, 20, 60), 3))
    for boxes in models(seed):
        points, low, up = questions(boxes, seed)
        exact, _ = boxes.posed(low, up, 10**6).critical(points)
        placed, _ = boxes.posed(low, up, 10**6).critical(points, grid)
        near = np.abs(exact[:, :, None] - grid).min(axis=2) <= 2e-6 * exact + 2e-7
        np.testing.assert_array_equal(
            np.searchsorted(grid, exact)[~near], np.searchsorted(grid, placed)[~near]
        )


def test_the_most_probable_class_enters_at_zero():
    for boxes in models(1):
        points, _, up = questions(boxes, 1)
        critical, _ = boxes.posed(up, up, 10**6).critical(points)
        best = (up - boxes.half_distances(points)).argmax(axis=1)
        assert (critical[np.arange(len(points)), best] == 0).all()
        assert ((critical == 0).sum(axis=1) == 1).all()
        assert np.isfinite(critical).all()


def test_two_points_apart_by_hand():
    # One feature, unit variance, equal classes at 0 and d, n = 1, row at 0 < x < d/2:
    # upper of the far class is -(d - x - c)^2 / 2, lower of the near -(x + c)^2 / 2.
    boxes = Boxes.build(
        np.array([[0.0], [3.0]]),
        np.ones((1, 1, 1)),
        np.zeros(2, dtype=np.intp),
        np.ones(2),
        "mean",
        np.arange(2),
    )
    zero = np.zeros(2)
    critical, _ = boxes.posed(zero, zero, 1000).critical(np.array([[1.0]]))
    assert critical[0, 0] == 0
    assert critical[0, 1] == pytest.approx(0.5, rel=2e-6)
