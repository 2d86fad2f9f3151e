"""Squared Mahalanobis distances against direct solves and known values."""

import mpmath
import numpy as np
import pytest

from prudent import ClassMoments
from prudent.core.linalg import MahalanobisFactors, row_blocks
from prudent.exceptions import SingularCovarianceError

X = np.array([[0, 0], [1, 0], [0, 2], [3, 1], [4, 4], [2, 5]])
means = np.array([[0, 0], [3, 3]])
covariances = np.array([[[2, 0.5], [0.5, 1]], [[1, -0.25], [-0.25, 3]]])
DIMENSIONS = [1, 2, 5, 17, 32, 33, 60]


def squared_mahalanobis(X, means, covariances):
    return MahalanobisFactors.from_covariances(means, covariances).squared_distances(X)


def problem(n_rows, n_features, n_classes, seed=0):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n_classes, n_features, n_features))
    C = A @ A.transpose(0, 2, 1) + np.eye(n_features)
    return (
        rng.normal(size=(n_rows, n_features)),
        rng.normal(size=(n_classes, n_features)),
        C,
    )


def solved(X, means, covariances):
    gaps = X[:, None] - means
    return np.array(
        [
            np.einsum("ij,ij->i", gaps[:, k], np.linalg.solve(C, gaps[:, k].T).T)
            for k, C in enumerate(covariances)
        ]
    ).T


def test_reference_distances():
    np.testing.assert_allclose(
        squared_mahalanobis(X, means, covariances),
        [
            [0, 13.787234042553191],
            [0.571428571428571, 8.170212765957448],
            [4.571428571428571, 10.042553191489361],
            [4.571428571428571, 1.361702127659574],
            [18.285714285714286, 1.531914893617021],
            [25.142857142857142, 2.042553191489362],
        ],
        rtol=1e-14,
    )


@pytest.mark.parametrize("n_features", DIMENSIONS)
@pytest.mark.parametrize("n_rows", [1, 63, 64, 65, 5000])
def test_distances_equal_a_linear_solve(n_rows, n_features):
    data, m, C = problem(n_rows, n_features, 3)
    np.testing.assert_allclose(
        squared_mahalanobis(data, m, C), solved(data, m, C), rtol=1e-9
    )


@pytest.mark.parametrize("n_features", DIMENSIONS)
def test_log_determinants_and_inverse_factors(n_features):
    _, m, C = problem(1, n_features, 3)
    factors = MahalanobisFactors.from_covariances(m, C)
    np.testing.assert_allclose(
        factors.log_determinants, np.linalg.slogdet(C)[1], rtol=1e-11
    )
    U = factors.inverse_factors
    np.testing.assert_allclose(
        U @ C @ U.transpose(0, 2, 1),
        np.broadcast_to(np.eye(n_features), C.shape),
        atol=1e-10,
    )
    assert (np.triu(U, 1) == 0).all()


@pytest.mark.parametrize("n_features", [4, 40])
@pytest.mark.parametrize("dtype", [np.float32, np.int16, np.uint8, bool])
def test_narrow_rows_are_measured_in_float64(dtype, n_features):
    data, m, C = problem(100, n_features, 2)
    data = (10 * np.abs(data)).astype(dtype)
    np.testing.assert_array_equal(
        squared_mahalanobis(data, m, C), squared_mahalanobis(data.astype(float), m, C)
    )


@pytest.mark.parametrize("n_features", [4, 40])
def test_memory_layouts(n_features):
    data, m, C = problem(300, n_features, 2)
    expected = squared_mahalanobis(data, m, C)
    strided = np.repeat(np.repeat(data, 2, axis=0), 3, axis=1)[::2, ::3]
    frozen = data.copy()
    frozen.flags.writeable = False
    for given in (np.asfortranarray(data), strided, frozen):
        np.testing.assert_array_equal(squared_mahalanobis(given, m, C), expected)


@pytest.mark.parametrize("n_features", [4, 40])
def test_blocks_cover_the_rows_in_order(n_features):
    data, m, C = problem(20000, n_features, 2)
    factors = MahalanobisFactors.from_covariances(m, C)
    together = np.vstack([D.copy() for _, D in factors.blocks(data)])
    np.testing.assert_array_equal(together, factors.squared_distances(data))
    assert [rows for rows, _ in factors.blocks(data)] == list(
        row_blocks(20000, n_features)
    )


def test_no_rows_have_no_distances():
    _, m, C = problem(1, 3, 2)
    assert squared_mahalanobis(np.empty((0, 3)), m, C).shape == (0, 2)


def test_a_singular_covariance_names_class_and_feature():
    with pytest.raises(SingularCovarianceError, match=r"class 'b' .* feature 1"):
        MahalanobisFactors.from_covariances(
            means,
            np.array([np.eye(2), np.ones((2, 2))]),
            classes=["a", "b"],
        )


@pytest.mark.parametrize("n_features", [5, 40])
def test_means_far_from_the_origin_keep_their_digits(n_features):
    rng = np.random.default_rng(1)
    offset = 2.0**40
    near = rng.integers(-1000, 1000, size=(2000, n_features)) / 2.0**10
    zeros = np.zeros(2000, dtype=int)

    def distances(data):
        moments = ClassMoments.from_arrays(data, zeros)
        factors = MahalanobisFactors.from_covariances(
            moments.mean, moments.covariance(), means_lo=moments.mean_lo
        )
        return factors.squared_distances(data)

    np.testing.assert_allclose(distances(near + offset), distances(near), rtol=1e-11)


def rotated(condition, seed):
    rng = np.random.default_rng(seed)
    Q = np.linalg.qr(rng.normal(size=(6, 6)))[0]
    C = (Q * np.geomspace(1, 1 / condition, 6)) @ Q.T
    return (C + C.T) / 2


@pytest.mark.parametrize(("condition", "tolerance"), [(1e6, 1e-10), (1e12, 1e-4)])
def test_ill_conditioned_distances_against_60_digits(condition, tolerance):
    C = rotated(condition, 2)
    rng = np.random.default_rng(3)
    m = rng.normal(size=6)
    data = m + rng.multivariate_normal(np.zeros(6), C, size=10)
    with mpmath.workdps(60):
        inverse = mpmath.inverse(mpmath.matrix(C.tolist()))
        exact = []
        for row in data:
            gap = mpmath.matrix(row.tolist()) - mpmath.matrix(m.tolist())
            exact.append(float((gap.T * inverse * gap)[0]))
    measured = squared_mahalanobis(data, m[None], C[None])[:, 0]
    np.testing.assert_allclose(measured, exact, rtol=tolerance)


def test_scales_alone_cost_no_digits():
    data, m, C = problem(50, 6, 1)
    scale = np.geomspace(1, 1e12, 6)
    np.testing.assert_allclose(
        squared_mahalanobis(data * scale, m * scale, C * scale[:, None] * scale),
        squared_mahalanobis(data, m, C),
        rtol=1e-12,
    )
