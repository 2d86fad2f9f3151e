"""Scales whose squares over- or underflow: the same answer, or a clear error."""

import numpy as np
import pytest

from prudent import ImpreciseDiscriminantAnalysis, OptimisticScoreClassifier

MODELS = [
    OptimisticScoreClassifier(),
    OptimisticScoreClassifier(rule="minimax", covariance="oas"),
    OptimisticScoreClassifier(likelihood="nonparametric"),
    OptimisticScoreClassifier(radius="moments", threshold="bayes"),
    ImpreciseDiscriminantAnalysis(covariance_type="diag"),
    ImpreciseDiscriminantAnalysis(covariance_type="identity", scale="within"),
]


def table():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    return rng.normal(size=(60, 3)) + y[:, None], y


@pytest.mark.parametrize("model", MODELS, ids=str)
@pytest.mark.parametrize("scale", [1e160, 1e-160, 1e-200, 1e-310])
@pytest.mark.parametrize("columns", [[1], [0, 1, 2]])
def test_columns_whose_squares_leave_the_numbers_are_refused(model, scale, columns):
    X, y = table()
    X[:, columns] *= scale
    words = "powers overflow" if scale > 1 else "squares underflow"
    with pytest.raises(ValueError, match=rf"column {columns[0]} .* {words}: rescale"):
        model.fit(X, y)


@pytest.mark.parametrize("model", MODELS, ids=str)
@pytest.mark.parametrize("exponent", [-400, -200, 200, 400])
def test_other_scales_change_no_answer(model, exponent):
    # Powers of two, so that scaled rows are the rows bit for bit.
    X, y = table()
    expected = model.fit(X, y).predict_set(X), model.predict(X)
    scaled = X * [1.0, 2.0**exponent, 1.0]
    np.testing.assert_array_equal(model.fit(scaled, y).predict_set(scaled), expected[0])
    np.testing.assert_array_equal(model.predict(scaled), expected[1])


@pytest.mark.parametrize("value", [0.0, 1e-100, 7.0])
def test_a_constant_column_is_left_out(value):
    X, y = table()
    X[:, 1] = value
    for model in MODELS:
        with pytest.warns(UserWarning, match="constant over all rows"):
            assert model.fit(X, y).constant_features_.tolist() == [1]
