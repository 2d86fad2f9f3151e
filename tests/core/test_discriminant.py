import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from prudent import ClassMoments
from prudent.core.classes import discriminant_axes


@pytest.fixture(params=[load_iris, load_breast_cancer], ids=["iris", "breast_cancer"])
def table(request):
    return request.param(return_X_y=True)


def project(X, y):
    into, _ = discriminant_axes(ClassMoments.from_arrays(X, y))
    return X @ into


def within_covariance(Z, y):
    residuals = np.concatenate(
        [Z[y == k] - Z[y == k].mean(axis=0) for k in np.unique(y)]
    )
    return residuals.T @ residuals / len(Z)


def test_projected_rows_have_unit_uncorrelated_spread(table):
    X, y = table
    Z = project(X, y)
    np.testing.assert_allclose(within_covariance(Z, y), np.eye(2), atol=1e-9)


def test_first_axis_is_that_of_linear_discriminant_analysis(table):
    X, y = table
    first = project(X, y)[:, 0]
    model = LinearDiscriminantAnalysis(n_components=1)
    reference = model.fit_transform(X, y)[:, 0]
    assert abs(np.corrcoef(first, reference)[0, 1]) > 1 - 1e-4


def test_second_axis_is_that_of_linear_discriminant_analysis():
    X, y = load_iris(return_X_y=True)
    second = project(X, y)[:, 1]
    reference = LinearDiscriminantAnalysis().fit_transform(X, y)[:, 1]
    assert abs(np.corrcoef(second, reference)[0, 1]) > 1 - 1e-6


def test_axes_do_not_depend_on_the_order_of_the_classes():
    X, y = load_iris(return_X_y=True)
    axes, _ = discriminant_axes(ClassMoments.from_arrays(X, y))
    turned, _ = discriminant_axes(ClassMoments.from_arrays(X, 2 - y))
    np.testing.assert_allclose(axes, turned, rtol=1e-8)


def test_constant_feature_has_no_part_in_the_axes():
    X, y = load_iris(return_X_y=True)
    X = np.column_stack([X, np.ones(len(X))])
    axes, _ = discriminant_axes(ClassMoments.from_arrays(X, y))
    assert (axes[4] == 0).all()


def test_collinear_features_leave_the_axes_finite():
    X, y = load_iris(return_X_y=True)
    X = np.column_stack([X, X[:, 0] + X[:, 1]])
    assert np.isfinite(project(X, y)).all()


def test_plane_points_come_back_to_themselves(table):
    X, y = table
    into, out = discriminant_axes(ClassMoments.from_arrays(X, y))
    np.testing.assert_allclose(out @ into, np.eye(2), atol=1e-9)


def test_second_axis_of_two_classes_shows_their_spreads_most():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 2000)
    X = rng.normal(size=(4000, 3))
    X[y == 1, 0] += 3
    X[y == 1, 2] *= 4
    into, _ = discriminant_axes(ClassMoments.from_arrays(X, y))
    assert np.abs(into[:, 1]).argmax() == 2


def test_one_direction_of_spread_gives_one_axis():
    X, y = load_iris(return_X_y=True)
    X = np.column_stack([X[:, 0], np.ones(len(X))])
    into, _ = discriminant_axes(ClassMoments.from_arrays(X, y))
    assert into.shape == (2, 1)


def test_features_without_spread_give_no_axis():
    into, _ = discriminant_axes(ClassMoments.from_arrays(np.ones((4, 2)), [0, 0, 1, 1]))
    assert into.shape == (2, 0)


def test_one_class_is_refused():
    with pytest.raises(ValueError, match="at least two classes"):
        discriminant_axes(ClassMoments.from_arrays(np.eye(3), [0, 0, 0]))
