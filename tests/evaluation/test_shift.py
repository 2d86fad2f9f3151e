import numpy as np
import pytest

from prudent import ClassMoments
from prudent.evaluation.evaluate import SHIFTS, shifted_rows


@pytest.fixture
def example():
    rng = np.random.default_rng(0)
    codes = np.repeat([0, 1, 2], 30)
    centres = np.array([[0.0, 0.0], [8.0, 0.0], [0.0, 400.0]])
    X = rng.normal(0, [1.0, 50.0], (90, 2)) + centres[codes]
    return X, codes, ClassMoments.from_arrays(X, codes)


def pooled_deviation(X, codes):
    residuals = np.concatenate(
        [X[codes == k] - X[codes == k].mean(0) for k in range(3)]
    )
    return np.sqrt((residuals**2).mean(axis=0))


def test_no_shift_leaves_the_rows(example):
    X, codes, moments = example
    assert SHIFTS[0] == 0
    np.testing.assert_array_equal(shifted_rows(X, codes, moments)[0], X)


def test_every_row_moves_by_the_length_asked_for(example):
    X, codes, moments = example
    moved = shifted_rows(X, codes, moments)
    standardised = (moved - X) / pooled_deviation(X, codes)
    lengths = np.linalg.norm(standardised, axis=2)
    np.testing.assert_allclose(lengths, np.outer(SHIFTS, np.ones(90)), rtol=1e-9)


def test_rows_move_towards_the_nearest_other_mean(example):
    X, codes, moments = example
    moved = shifted_rows(X, codes, moments)[-1]
    scale = pooled_deviation(X, codes)
    for i in range(90):
        gaps = {k: (moments.mean[k] - X[i]) / scale for k in range(3) if k != codes[i]}
        nearest = min(gaps.values(), key=np.linalg.norm)
        step = (moved[i] - X[i]) / scale
        assert step @ nearest == pytest.approx(
            np.linalg.norm(step) * np.linalg.norm(nearest)
        )


def test_a_row_stops_at_the_mean_it_moves_to(example):
    *_, moments = example
    at_mean = moments.mean[[1]] + [[0.5, 0.0]]
    moved = shifted_rows(at_mean, np.array([0]), moments)
    np.testing.assert_allclose(moved[-1], moments.mean[[1]], rtol=1e-12)


def test_a_constant_feature_stays_where_it_is(example):
    X, codes, _ = example
    wide = np.column_stack([X, np.full(90, 7.0)])
    moments = ClassMoments.from_arrays(wide, codes)
    moved = shifted_rows(wide, codes, moments)
    assert (moved[:, :, 2] == 7.0).all()
