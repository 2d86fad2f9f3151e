import subprocess
import sys

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


SINGLE_ROWS = """
import numpy as np
from prudent import ImpreciseDiscriminantAnalysis

X = np.array(
    [
        [-0.60709953, 1.76519334, 0.22941382],
        [-2.09931517, 1.22619283, 1.22958016],
        [-0.38595578, 0.43649805, -0.45828816],
        [0.69044101, -1.76840591, 1.22067416],
        [-1.83038628, -1.83632123, -1.09323347],
    ],
    dtype=np.float32,
)
y = np.array([1.0, -1.0, 2.0, 0.0, 0.0])
model = ImpreciseDiscriminantAnalysis(covariance="empirical", scale=None).fit(X, y)
critical = model.critical_imprecision(X)
for c in np.geomspace(0.1, 10, 40):
    clear = abs(critical - c) > 1e-4 * c
    kept = model.set_params(imprecision=c).predict_set(X)
    assert (kept[clear] == (critical <= c)[clear]).all(), c
"""


def test_the_path_ends_where_its_start_is_ten_digits_too_large():
    """It took more halvings than a stride of an integer type may be doubled."""
    command = [sys.executable, "-W", "ignore", "-c", SINGLE_ROWS]
    outcome = subprocess.run(command, timeout=240, capture_output=True, text=True)
    assert outcome.returncode == 0, outcome.stderr
