"""What a kernel ridge computes: no inverse matrix where only predictions are wanted."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.spatial.distance import cdist

from prudent.conformal import ridge as module
from prudent.conformal.ridge import (
    KernelRidge,
    city_block_distances,
    laplace_kernel,
)


@pytest.fixture
def ridge():
    random = np.random.default_rng(0)
    rows, codes = random.normal(size=(60, 3)), random.integers(0, 3, size=60)
    return KernelRidge.learn(rows, codes, 3)


def test_predictions_need_no_inverse(ridge):
    ridge.predictions(np.zeros((1, 3)))
    assert "inverse" not in vars(ridge)


def test_weights_are_those_of_the_inverse(ridge):
    matrix = laplace_kernel(ridge.rows, ridge.rows) + 0.3 * np.eye(60)
    assert_allclose(ridge.inverse @ matrix, np.eye(60), atol=1e-10)
    targets = np.where(ridge.codes[:, None] == np.arange(3), 1.0, -1.0)
    assert_allclose(ridge.weights, ridge.inverse @ targets, atol=1e-10)


@pytest.mark.parametrize("shape", [(7, 90, 3), (1, 1, 1), (33, 40, 10), (5, 64, 61)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_compiled_distances_are_those_of_scipy_to_the_last_bit(
    shape, order, monkeypatch
):
    pytest.importorskip("numba")
    monkeypatch.setattr(module, "COMPILED_FROM", 0)
    monkeypatch.setattr(module, "cdist", None)  # the loop alone is asked
    m, n, d = shape
    random = np.random.default_rng(0)
    rows, others = (
        random.normal(size=(k, d)) * 10.0 ** random.integers(-8, 9, d) for k in (m, n)
    )
    rows, others = (np.asarray(table, order=order) for table in (rows, others))
    others[0] = rows[0]
    expected = cdist(rows, others, "cityblock")
    assert np.array_equal(city_block_distances(rows, others), expected)
    assert expected[0, 0] == 0.0
