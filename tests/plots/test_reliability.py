"""The picture of probabilities with limits."""

import matplotlib as mpl

mpl.use("Agg")

import numpy as np
import pytest
from matplotlib import pyplot
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from prudent import BinnedCalibrationClassifier
from prudent.plots import ReliabilityDisplay


def model():
    return make_pipeline(StandardScaler(), LogisticRegression())


def test_boxes_are_the_limits_of_the_model():
    X, y = load_breast_cancer(return_X_y=True)
    fitted = BinnedCalibrationClassifier(model(), n_bins=4, random_state=0).fit(X, y)
    _, ax = pyplot.subplots()
    display = ReliabilityDisplay.from_estimator(fitted, ax=ax)
    assert display.ax_ is ax
    cells = [row for row in fitted.bins_.to_pylist() if row["rows"]]
    assert len(display.boxes_) == len(cells)
    for box, cell in zip(display.boxes_, cells, strict=True):
        assert box.get_y() == cell["lower"]
        assert box.get_y() + box.get_height() == pytest.approx(cell["upper"])
        assert box.get_x() >= 0
        assert box.get_x() + box.get_width() <= 1 + 1e-12
    np.testing.assert_allclose(
        display.line_.get_ydata(), [c["positive"] / c["rows"] for c in cells]
    )
    assert display.frame().num_rows == len(fitted.bins_)
    pyplot.close(ax.figure)


def test_one_of_several_classes():
    X, y = load_iris(return_X_y=True)
    fitted = BinnedCalibrationClassifier(model(), n_bins=2, random_state=0).fit(X, y)
    display = ReliabilityDisplay.from_estimator(fitted, label=2)
    assert set(display.frame()["class"].to_pylist()) == {2}
    assert "of 2" in display.ax_.get_xlabel()
    with pytest.raises(ValueError, match="`label` 7 has no cells; there are 0, 1, 2"):
        ReliabilityDisplay.from_estimator(fitted, label=7)
    pyplot.close("all")


def test_numbers_of_any_model():
    rng = np.random.default_rng(0)
    numbers = rng.random(500)
    truth = rng.random(500) < numbers
    display = ReliabilityDisplay.from_predictions(truth, numbers, n_bins=5)
    frame = display.frame().to_pandas()
    assert frame["rows"].sum() >= 496  # lone edges count none
    filled = frame[frame["rows"] > 0]
    share = filled["positive"] / filled["rows"]
    assert (filled["lower"] <= share).all()
    assert (share <= filled["upper"]).all()
    assert len(display.boxes_) == len(filled)
    assert len(ReliabilityDisplay.from_predictions(truth, numbers).boxes_) == 8
    pyplot.close("all")


@pytest.mark.parametrize(
    ("truth", "numbers", "message"),
    [
        ([1, 0], [0.5], "inconsistent numbers of samples"),
        ([], [], "at least 1 row"),
        ([1, 0], [0.5, np.nan], "1 of 2 rows have no number"),
    ],
)
def test_bad_numbers(truth, numbers, message):
    with pytest.raises(ValueError, match=message):
        ReliabilityDisplay.from_predictions(truth, numbers)


def test_probabilities_of_all_classes_are_refused_with_what_to_give():
    with pytest.raises(ValueError, match=r"shape \(3, 2\): give the column of True"):
        ReliabilityDisplay.from_predictions([True, False, True], np.full((3, 2), 0.5))
