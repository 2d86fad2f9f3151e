import numpy as np
from scipy.optimize import lsq_linear

from prudent.imprecise.boxes import Boxes


def test_upper_bounds_keep_their_digits_beside_huge_distances():
    # Far from the centre along a nearly impossible direction that the box covers:
    # the distance is 1e9, the bound is about 1.
    rng = np.random.default_rng(0)
    vectors = np.linalg.qr(rng.normal(size=(6, 6)))[0]
    covariance = (vectors * np.array([1, 1, 1, 1, 1, 1e-9])) @ vectors.T
    means = np.zeros((2, 6))
    boxes = Boxes.build(
        means,
        covariance[None],
        np.zeros(2, dtype=np.intp),
        np.ones(2),
        "mean",
        np.arange(2),
    )
    points = 0.8 * vectors[:, 5] + 0.01 * rng.normal(size=(20, 6))
    zero = np.zeros(2)
    lower, upper, _ = boxes.posed(zero, zero, 10**5).bounds(points, 0.5)
    assert (boxes.half_distances(points) > 1e7).all()
    root = np.linalg.cholesky(np.linalg.inv(covariance)).T
    for i, point in enumerate(points):
        best = lsq_linear(0.5 * root, root @ point, (-1, 1), "bvls", tol=1e-15)
        assert abs(-upper[i, 0] - best.cost) <= 1e-6 * (1 + best.cost)
        assert lower[i, 0] < upper[i, 0]
