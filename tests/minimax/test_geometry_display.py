"""The picture of two ellipsoids that touch."""

import matplotlib as mpl
import numpy as np
import pytest

from prudent import MinimaxProbabilityClassifier
from prudent.plots import MinimaxGeometryDisplay

mpl.use("agg")

MEANS = [[-1, 0], [1, 2]]
COVARIANCES = [[[1, -0.3], [-0.3, 3]], [[2, 0.5], [0.5, 1]]]


def model(**params):
    return MinimaxProbabilityClassifier.from_moments(
        MEANS, COVARIANCES, [9, 9], **params
    )


def many_features(n=5):
    rng = np.random.default_rng(0)
    y = np.arange(80) % 2
    X = rng.normal(size=(80, n)) @ rng.normal(size=(n, n)) + 2.0 * y[:, None]
    return X, y


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"mean_radius": [0.1, 0.2], "covariance_radius": 0.3},
        {"covariance_factor": [1.2, 1.5]},
        {"objective": "cost", "costs": [[0, 1], [2, 0]]},
    ],
)
def test_ellipses_touch_on_the_plane(params):
    fitted = model(**params)
    display = MinimaxGeometryDisplay.from_estimator(fitted)
    scores = [fitted.decision_function(outline) for outline in display.outlines]
    # One lies below the plane, one above, and both reach it (to the outline's grid).
    assert -2e-3 <= scores[0].max() <= 1e-9
    assert -1e-9 <= scores[1].min() <= 2e-3
    assert fitted.decision_function([display.touching])[0] == pytest.approx(0, abs=1e-9)
    np.testing.assert_allclose(fitted.decision_function(display.line), 0, atol=1e-9)


def test_shadows_of_many_features_touch_on_the_line():
    X, y = many_features()
    fitted = MinimaxProbabilityClassifier().fit(X, y)
    display = MinimaxGeometryDisplay.from_estimator(fitted, X, y)
    offset = -fitted.intercept_[0]
    np.testing.assert_allclose(display.line[:, 0], offset)
    assert display.outlines[0][:, 0].max() == pytest.approx(offset, abs=1e-3)
    assert display.outlines[1][:, 0].min() == pytest.approx(offset, abs=1e-3)
    assert display.touching[0] == pytest.approx(offset)
    assert [len(rows) for rows in display.points] == [40, 40]


def test_plot_draws_what_the_frame_holds():
    display = MinimaxGeometryDisplay.from_estimator(model())
    frame = display.frame()
    assert frame.column_names == ["class", "feature 0", "feature 1"]
    for k, line in enumerate(display.lines_[:2]):
        chosen = np.array(frame["class"]) == str(k)
        np.testing.assert_array_equal(
            line.get_xdata(), np.array(frame["feature 0"])[chosen]
        )
    assert display.ax_.figure is display.figure_
    mpl.pyplot.close(display.figure_)


def test_the_set_of_the_mean_lies_inside_its_ellipsoid():
    fitted = model(mean_radius=[0.1, 0.2], covariance_factor=[1.2, 1.5])
    display = MinimaxGeometryDisplay.from_estimator(fitted)
    assert len(display.ax_.lines) == 6  # two of each kind, the plane, the point
    for k, (inner, outer) in enumerate(
        zip(display.mean_outlines, display.outlines, strict=True)
    ):
        nu = fitted.mean_radius_[k]
        sizes = (inner - MEANS[k]) / (outer - MEANS[k])
        np.testing.assert_allclose(sizes, nu / (fitted.kappa_ + nu), rtol=1e-6)
    mpl.pyplot.close(display.figure_)
    plain = MinimaxGeometryDisplay.from_estimator(model())
    assert len(plain.ax_.lines) == 4
    mpl.pyplot.close(plain.figure_)


def test_kernel_fits_are_refused():
    X, y = many_features()
    fitted = MinimaxProbabilityClassifier(kernel="rbf").fit(X, y)
    with pytest.raises(ValueError, match="linear fit of two"):
        MinimaxGeometryDisplay.from_estimator(fitted)


@pytest.mark.filterwarnings("ignore:.*kappa is infinite")
def test_classes_without_spread_are_refused():
    fitted = MinimaxProbabilityClassifier.from_moments(
        MEANS, np.zeros((2, 2, 2)), [9, 9]
    )
    with pytest.raises(ValueError, match="no size"):
        MinimaxGeometryDisplay.from_estimator(fitted)


def test_one_feature_and_three_classes_are_refused():
    X, y = many_features()
    with pytest.raises(ValueError, match="at least 2 features"):
        MinimaxGeometryDisplay.from_estimator(
            MinimaxProbabilityClassifier().fit(X[:, :1], y)
        )
    with pytest.raises(ValueError, match="two classes"):
        MinimaxGeometryDisplay.from_estimator(
            MinimaxProbabilityClassifier().fit(X, np.arange(80) % 3)
        )
