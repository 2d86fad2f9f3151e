import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from prudent import ClassMoments
from prudent.comparison.regions import GRID, discriminant_axes, region_map


@pytest.fixture(params=[load_iris, load_breast_cancer], ids=["iris", "breast_cancer"])
def table(request):
    return request.param(return_X_y=True)


def within_covariance(Z, y):
    residuals = np.concatenate(
        [Z[y == k] - Z[y == k].mean(axis=0) for k in np.unique(y)]
    )
    return residuals.T @ residuals / len(Z)


def test_projected_rows_have_unit_uncorrelated_spread(table):
    X, y = table
    Z = X @ discriminant_axes(ClassMoments.from_arrays(X, y))
    np.testing.assert_allclose(within_covariance(Z, y), np.eye(2), atol=2e-3)


def test_first_axis_is_that_of_linear_discriminant_analysis(table):
    X, y = table
    first = X @ discriminant_axes(ClassMoments.from_arrays(X, y))[:, 0]
    model = LinearDiscriminantAnalysis(n_components=1)
    reference = model.fit_transform(X, y)[:, 0]
    assert abs(np.corrcoef(first, reference)[0, 1]) > 1 - 1e-4


def test_second_axis_is_that_of_linear_discriminant_analysis():
    X, y = load_iris(return_X_y=True)
    second = X @ discriminant_axes(ClassMoments.from_arrays(X, y))[:, 1]
    reference = LinearDiscriminantAnalysis().fit_transform(X, y)[:, 1]
    assert abs(np.corrcoef(second, reference)[0, 1]) > 1 - 1e-6


def test_axes_do_not_depend_on_the_order_of_the_classes():
    X, y = load_iris(return_X_y=True)
    axes = discriminant_axes(ClassMoments.from_arrays(X, y))
    turned = discriminant_axes(ClassMoments.from_arrays(X, 2 - y))
    np.testing.assert_allclose(axes, turned, rtol=1e-8)


def test_constant_feature_has_no_part_in_the_axes():
    X, y = load_iris(return_X_y=True)
    X = np.column_stack([X, np.ones(len(X))])
    axes = discriminant_axes(ClassMoments.from_arrays(X, y))
    assert (axes[4] == 0).all()


def test_collinear_features_leave_the_axes_finite():
    X, y = load_iris(return_X_y=True)
    X = np.column_stack([X, X[:, 0] + X[:, 1]])
    assert np.isfinite(discriminant_axes(ClassMoments.from_arrays(X, y))).all()


def test_map_holds_the_decision_at_every_point_of_the_grid():
    X, y = load_iris(return_X_y=True)
    Z = X @ discriminant_axes(ClassMoments.from_arrays(X, y))
    found = region_map(LinearDiscriminantAnalysis(), Z, y, np.unique(y))
    model = LinearDiscriminantAnalysis().fit(Z, y)
    i, j = 3, GRID - 5
    assert found.predicted[i, j] == model.predict([[found.x[j], found.y[i]]])[0]
    assert found.sets.shape == (GRID, GRID, 3)


def test_point_predictions_leave_nothing_undecided():
    X, y = load_iris(return_X_y=True)
    Z = X @ discriminant_axes(ClassMoments.from_arrays(X, y))
    found = region_map(LinearDiscriminantAnalysis(), Z, y, np.unique(y))
    assert found.undecided == 0
    assert sum(found.class_shares) == pytest.approx(1)
