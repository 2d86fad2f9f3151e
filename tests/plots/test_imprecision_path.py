import matplotlib as mpl
import numpy as np
import pytest
from sklearn.datasets import load_iris

from prudent import ImpreciseDiscriminantAnalysis, ImpreciseDiscriminantAnalysisCV
from prudent.metrics import u80_score
from prudent.plots import ImprecisionPathDisplay

mpl.use("Agg")


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


def test_scores_are_those_of_the_sets(iris):
    X, y = iris
    model = ImpreciseDiscriminantAnalysis(imprecision=2.0).fit(X, y)
    display = ImprecisionPathDisplay.from_estimator(
        model, X, y, imprecisions=[4.0, 0.5]
    )
    frame = display.frame().to_pydict()
    assert frame["imprecision"] == [0.5, 4.0]
    sets = model.set_params(imprecision=4.0).predict_set(X)
    assert frame["u80"][1] == u80_score(y, sets, model.classes_)
    assert frame["share of classes"][1] == pytest.approx(sets.mean())
    assert frame["coverage"][1] >= frame["coverage"][0]


def test_cross_validation_shows_the_chosen_shrinkage(iris):
    model = ImpreciseDiscriminantAnalysisCV(
        imprecisions=[0.5, 1.0, 2.0], shrinkages=[0.9, "empirical"], cv=3
    ).fit(*iris)
    frame = ImprecisionPathDisplay.from_cross_validation(model).frame().to_pydict()
    assert max(frame["u80"]) == pytest.approx(model.best_score_)
    assert frame["imprecision"][frame["chosen"].index(True)] == model.imprecision_
    assert len(frame["u80 deviation"]) == 3


def test_plot_draws_the_frame(iris):
    X, y = iris
    model = ImpreciseDiscriminantAnalysis(imprecision=2.0).fit(X, y)
    display = ImprecisionPathDisplay.from_estimator(model, X, y)
    assert [line.get_label() for line in display.lines_] == list(display.scores)
    np.testing.assert_array_equal(
        display.lines_[0].get_ydata(), display.frame()["u80"].to_numpy()
    )
    assert display.chosen_line_.get_xdata()[0] == 2.0
    assert display.ax_.get_xlabel() == "imprecision"


def test_plot_uses_the_axes_given_and_draws_the_band(iris):
    import matplotlib.pyplot as plt

    _, ax = plt.subplots()
    model = ImpreciseDiscriminantAnalysisCV(imprecisions=[0.5, 2.0], cv=3).fit(*iris)
    display = ImprecisionPathDisplay.from_cross_validation(model, ax=ax)
    assert display.ax_ is ax
    assert len(ax.collections) == 1
