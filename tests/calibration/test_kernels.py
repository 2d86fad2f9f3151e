import numpy as np
import pytest

from prudent.calibration import compiled, interpreted
from prudent.calibration.kernels import (
    Whitening,
    inner_loops,
    squared_distances,
    weighted_scatter,
)


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
    whitening = Whitening.from_cholesky(means, np.linalg.cholesky(covariances))
    expected = [
        ((Z[:, 1:] - mean) * np.linalg.solve(covariance, (Z[:, 1:] - mean).T).T).sum(1)
        for mean, covariance in zip(means, covariances, strict=True)
    ]
    np.testing.assert_allclose(squared_distances(Z, whitening), expected, rtol=1e-9)


@pytest.mark.parametrize("d", [0, 1, 7, 30, 80])
@pytest.mark.parametrize("share", [1.0, 0.3])
def test_weighted_scatter_by_einsum(d, share):
    rng = np.random.default_rng(d)
    Z, W = rows_with_ones(700, d), rng.normal(size=(3, 700))
    W[0, rng.random(700) > share] = 0.0  # one class gathered, the others dense
    expected = np.einsum("ki,ia,ib->kab", W, Z, Z)
    np.testing.assert_allclose(weighted_scatter(Z, W), expected, atol=1e-11)


def test_scatter_of_zero_weights_is_zero():
    assert not weighted_scatter(rows_with_ones(5, 2), np.zeros((2, 5))).any()


def test_negligible_weights_are_left_out():
    Z, W = rows_with_ones(100, 2), np.full((1, 100), 1e-12)
    W[0, 0] = 1.0
    np.testing.assert_allclose(
        weighted_scatter(Z, W)[0], np.outer(Z[0], Z[0]), atol=1e-15
    )


@pytest.mark.parametrize(("r", "m"), [(2, 1500), (5, 1023), (9, 2048)])
def test_compiled_softmax_equals_the_interpreted_one(r, m):
    rng = np.random.default_rng(r)
    scores = np.where(rng.random((r, m)) < 0.1, -np.inf, 30 * rng.normal(size=(r, m)))
    codes, weight = rng.integers(r, size=m), rng.random(m) + 0.5
    scores[codes, np.arange(m)] = rng.normal(size=m)  # the truth is possible
    mine, reference = scores.copy(), scores.copy()
    losses = compiled.log_residual_sums(mine, codes, weight)
    expected = interpreted.log_residual_sums(reference, codes, weight)
    np.testing.assert_allclose(losses, expected, rtol=1e-13)
    np.testing.assert_allclose(mine, reference, rtol=1e-11, atol=1e-15)


@pytest.mark.parametrize("loops", [compiled, interpreted])
def test_a_tie_is_won_by_the_first_class(loops):
    scores = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 2.0], [0.0, 1.0, 2.0]])
    codes, weight = np.array([1, 0, 2]), np.array([1.0, 10.0, 100.0])
    assert loops.log_residual_sums(scores, codes, weight)[1] == 101.0


@pytest.mark.parametrize("loops", [compiled, interpreted])
def test_residuals_are_weighted_labels_minus_posteriors(loops):
    scores = np.log(np.array([[0.2, 0.5], [0.8, 0.5]])) + 7.0
    log_loss, _ = loops.log_residual_sums(
        scores, np.array([0, 1]), np.array([1.0, 3.0])
    )
    np.testing.assert_allclose(scores, [[0.8, -1.5], [-0.8, 1.5]], rtol=1e-14)
    assert log_loss == pytest.approx(-np.log(0.2) - 3 * np.log(0.5), rel=1e-14)


def test_compiled_loops_equal_the_interpreted_ones():
    rng = np.random.default_rng(0)
    rows, weights = rng.normal(size=(40, 6)), rng.normal(size=(3, 40))
    out = np.empty((2, 40, 3, 6))
    sums = np.zeros((2, 3, 40))
    for k, loops in enumerate((compiled, interpreted)):
        loops.weigh(rows, weights, out[k])
        loops.add_squares(out[k], sums[k])
    np.testing.assert_allclose(out[0], out[1], rtol=1e-15)
    np.testing.assert_allclose(sums[0], sums[1], rtol=1e-13)
    np.testing.assert_array_equal(
        compiled.count_active(weights, 0.5), interpreted.count_active(weights, 0.5)
    )


def test_only_large_problems_import_the_compiled_loops():
    assert inner_loops(1000) is interpreted
    assert inner_loops(1_000_000) is compiled
