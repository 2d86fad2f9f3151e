"""What a kernel ridge computes: no inverse matrix where only predictions are wanted."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from prudent.conformal.ridge import KernelRidge, laplace_kernel


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
