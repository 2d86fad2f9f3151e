import subprocess
import sys

import numpy as np
import pytest

from prudent.calibration import kernels
from prudent.calibration.ascent import interpreted_residual_sums
from prudent.calibration.gaussian import (
    interpreted_add_squares,
    squared_distances,
    whitening_bands,
)

LOOPS = [kernels.log_residual_sums, interpreted_residual_sums]


def rows_with_ones(m, d, seed=0):
    return np.column_stack(
        [np.ones(m), np.random.default_rng(seed).normal(size=(m, d))]
    )


@pytest.mark.parametrize("d", [1, 2, 7, 30, 80])
def test_squared_distances_by_solving(d):
    rng = np.random.default_rng(d)
    Z, means = rows_with_ones(500, d), rng.normal(size=(3, d))
    factors = rng.normal(size=(3, d, 2 * d))
    covariances = factors @ factors.transpose(0, 2, 1) / d
    bands = whitening_bands(means, np.linalg.cholesky(covariances))
    expected = [
        ((Z[:, 1:] - mean) * np.linalg.solve(covariance, (Z[:, 1:] - mean).T).T).sum(1)
        for mean, covariance in zip(means, covariances, strict=True)
    ]
    np.testing.assert_allclose(squared_distances(Z, bands), expected, rtol=1e-9)


@pytest.mark.parametrize(("r", "m"), [(2, 1500), (5, 1023), (9, 2048)])
def test_compiled_softmax_equals_the_interpreted_one(r, m):
    rng = np.random.default_rng(r)
    scores = np.where(rng.random((r, m)) < 0.1, -np.inf, 30 * rng.normal(size=(r, m)))
    codes, weight = rng.integers(r, size=m), rng.random(m) + 0.5
    scores[codes, np.arange(m)] = rng.normal(size=m)  # the truth is possible
    mine, reference = scores.copy(), scores.copy()
    losses = kernels.log_residual_sums(mine, codes, weight)
    expected = interpreted_residual_sums(reference, codes, weight)
    np.testing.assert_allclose(losses, expected, rtol=1e-13)
    np.testing.assert_allclose(mine, reference, rtol=1e-11, atol=1e-15)


@pytest.mark.parametrize("residual_sums", LOOPS)
def test_a_tie_is_won_by_the_first_class(residual_sums):
    scores = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 2.0], [0.0, 1.0, 2.0]])
    codes, weight = np.array([1, 0, 2]), np.array([1.0, 10.0, 100.0])
    assert residual_sums(scores, codes, weight)[1] == 101.0


@pytest.mark.parametrize("residual_sums", LOOPS)
def test_residuals_are_weighted_labels_minus_posteriors(residual_sums):
    scores = np.log(np.array([[0.2, 0.5], [0.8, 0.5]])) + 7.0
    codes, weight = np.array([0, 1]), np.array([1.0, 3.0])
    log_loss, error, risk = residual_sums(scores, codes, weight)
    assert error == 4.0  # the tie is won by the first class
    np.testing.assert_array_equal(scores[0], -scores[1])
    np.testing.assert_allclose(scores, [[0.8, -1.5], [-0.8, 1.5]], rtol=1e-14)
    assert log_loss == pytest.approx(-np.log(0.2) - 3 * np.log(0.5), rel=1e-14)
    assert risk == pytest.approx(0.8 + 1.5, rel=1e-14)


def test_compiled_squares_equal_the_interpreted_ones():
    white = np.random.default_rng(0).normal(size=(40, 3, 6))
    sums = np.zeros((2, 3, 40))
    kernels.add_squares(white, sums[0])
    interpreted_add_squares(white, sums[1])
    np.testing.assert_allclose(sums[0], sums[1], rtol=1e-13)


def test_small_problems_need_no_compiled_loops():
    """A process that fits a small table never imports numba's loops of this family."""
    code = (
        "import sys, numpy as np; from prudent import RiskCalibratedClassifier as C; "
        "g = np.random.default_rng(0); y = np.arange(60) % 2; "
        "C(max_iter=3, cv=2).fit(g.normal(size=(60, 3)) + y[:, None], y); "
        "print('prudent.calibration.kernels' in sys.modules)"
    )
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert out.stdout.strip() == "False"
