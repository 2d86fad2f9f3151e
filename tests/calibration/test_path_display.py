import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris

from prudent import RiskCalibratedClassifier
from prudent.plots import CalibrationPathDisplay

X, y = load_iris(return_X_y=True)


def fitted():
    return RiskCalibratedClassifier(stopping="train", max_iter=12).fit(X, y)


def test_frame_holds_the_curves_and_marks_the_kept_iterate():
    model = fitted()
    frame = CalibrationPathDisplay.from_estimator(model).frame()
    np.testing.assert_array_equal(frame["log_loss"], model.loss_curve_)
    np.testing.assert_array_equal(frame["error"], model.error_curve_)
    kept = np.flatnonzero(frame["kept"].to_numpy())
    np.testing.assert_array_equal(kept, [model.best_iteration_])


def test_lines_show_the_curves():
    model = fitted()
    display = CalibrationPathDisplay.from_estimator(model)
    np.testing.assert_array_equal(display.error_line_.get_ydata(), model.error_curve_)
    np.testing.assert_array_equal(display.loss_line_.get_ydata(), model.loss_curve_)
    assert display.kept_line_.get_xdata()[0] == model.best_iteration_
    plt.close(display.figure_)


def test_other_rows_add_the_error_of_the_kept_iterate():
    model = fitted()
    display = CalibrationPathDisplay.from_estimator(model, X[:30], y[:30])
    assert display.test_error == 1 - model.score(X[:30], y[:30])
    display.plot()
    labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert "error on other rows" in labels
    plt.close(display.figure_)


def test_plot_draws_on_given_axes():
    figure, ax = plt.subplots()
    display = CalibrationPathDisplay.from_estimator(fitted(), ax=ax)
    assert display.ax_ is ax
    plt.close(figure)
