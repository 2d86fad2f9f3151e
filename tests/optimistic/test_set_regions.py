"""SetRegionDisplay: what is drawn and the figures behind it."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from prudent import ImpreciseDiscriminantAnalysis, OptimisticScoreClassifier
from prudent.plots import SetRegionDisplay


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


def display(X, y, **settings):
    model = OptimisticScoreClassifier(**settings).fit(X, y)
    return model, SetRegionDisplay.from_estimator(model, X, y, grid_size=30)


@pytest.mark.parametrize(
    "model",
    [
        OptimisticScoreClassifier(radius_scale=0.1),
        ImpreciseDiscriminantAnalysis(imprecision=2.0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_sets_of_the_frame_are_those_of_the_estimator(iris, model):
    X, y = iris
    model = model.fit(X[:, :2], y)
    shown = SetRegionDisplay.from_estimator(model, X[:, :2], y, grid_size=30)
    frame = shown.frame()
    points = np.column_stack([frame["feature 0"], frame["feature 1"]])
    sets = np.column_stack([frame[str(c)] for c in range(3)])
    np.testing.assert_array_equal(sets, model.predict_set(points))


def test_undecided_regions_are_hatched_and_only_they(iris):
    X, y = iris
    _, shown = display(X[:, 2:], y, radius_scale=0.1)
    shown.plot(Figure().subplots())
    drawn = np.asarray(shown.regions_.get_array()).reshape(30, 30)
    np.testing.assert_array_equal(drawn == 3, shown.sets.sum(axis=-1) > 1)
    assert shown.hatches_.hatches == ["///"]


def test_the_empty_set_is_drawn_as_no_class_and_named_in_the_legend():
    grid = np.array([0.0, 1.0])
    sets = np.array([[[1, 0], [0, 1]], [[1, 1], [0, 0]]], dtype=bool)
    points, labels = np.array([[0.0, 0.0], [1.0, 0.0]]), np.array(["a", "b"])
    shown = SetRegionDisplay((grid, grid), sets, labels, points, labels, ("x", "y"))
    shown.plot(Figure().subplots())
    drawn = np.asarray(shown.regions_.get_array()).reshape(2, 2)
    assert drawn.tolist() == [[0, 1], [2, 3]]
    colours = shown.regions_.cmap(shown.regions_.norm(np.arange(4)))
    assert len(np.unique(colours, axis=0)) == 4
    texts = [text.get_text() for text in shown.ax_.get_legend().get_texts()]
    assert texts == ["a", "b", "no class"]
    sets[1, 1, 0] = True
    decided = SetRegionDisplay((grid, grid), sets, labels, points, labels, ("x", "y"))
    decided.plot(Figure().subplots())
    texts = [text.get_text() for text in decided.ax_.get_legend().get_texts()]
    assert texts == ["a", "b"]


def test_nothing_is_hatched_where_all_is_decided(iris):
    X, y = iris
    _, shown = display(X[:, 2:], y, radius=0.0, threshold="bayes")
    shown.plot(Figure().subplots())
    assert shown.hatches_ is None


def test_axes_of_more_features_are_those_of_linear_discriminant_analysis(iris):
    X, y = iris
    _, shown = display(X, y)
    lda = LinearDiscriminantAnalysis(solver="eigen").fit(X, y).transform(X)
    for j in range(2):
        correlation = np.corrcoef(shown.points[:, j], lda[:, j])[0, 1]
        assert abs(correlation) == pytest.approx(1, abs=1e-9)


def test_plane_of_two_classes_separates_their_means_on_the_first_axis_only():
    X, y = load_breast_cancer(return_X_y=True)
    _, shown = display(X, y)
    means = [shown.points[y == c].mean(axis=0) for c in (0, 1)]
    gap = np.abs(means[1] - means[0])
    assert gap[0] > 1
    assert gap[1] == pytest.approx(0, abs=1e-6)


def test_coordinates_of_a_point_of_the_plane_come_back(iris):
    from prudent.plots.set_regions import _plane

    origin, into, out, _ = _plane(*iris, None)
    z = np.array([[0.3, -1.0], [5.0, 2.0]])
    rows = origin + z @ out
    np.testing.assert_allclose((rows - origin) @ into, z, atol=1e-9)


def test_frames_keep_their_names_and_pipelines_work(iris):
    X = pd.DataFrame(iris[0][:, :2], columns=["length", "width"])
    model = make_pipeline(StandardScaler(), OptimisticScoreClassifier())
    model.fit(X, iris[1])
    shown = SetRegionDisplay.from_estimator(model, X, iris[1], grid_size=5)
    assert shown.axis_names == ("length", "width")
    assert shown.plot(Figure().subplots()).ax_.get_xlabel() == "length"


def test_a_classifier_without_sets_is_refused(iris):
    X, y = iris
    model = LogisticRegression(max_iter=500).fit(X[:, :2], y)
    with pytest.raises(TypeError, match="no `predict_set`"):
        SetRegionDisplay.from_estimator(model, X[:, :2], y)


def test_one_feature_or_one_class_is_refused(iris):
    X, y = iris
    with pytest.raises(ValueError, match=r"two features, got X of shape \(150, 1\)"):
        SetRegionDisplay.from_estimator(None, X[:, :1], y)
    with pytest.raises(ValueError, match="at least two classes"):
        SetRegionDisplay.from_estimator(None, X, np.zeros(150))


def test_plot_makes_its_own_figure(iris):
    import matplotlib.pyplot as plt

    X, y = iris
    _, shown = display(X[:, :2], y)
    plt.switch_backend("agg")
    assert shown.plot().figure_ is plt.gcf()
    plt.close("all")
