"""Bars of the usefulness of candidates."""

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from sklearn.linear_model import LogisticRegression

from prudent.plots import ChoiceDisplay
from prudent.plots.display import GREEN, GREY

RESULTS = {
    "name": np.array(["a", "b", "c"]),
    "usefulness": np.array([0.25, np.nan, 0.5]),
    "second": np.array([-0.1, np.nan, -0.2]),
    "rank": np.array([2, 0, 1]),
    "failed": np.array(["", "no licence", ""]),
}


def test_the_chosen_one_is_marked_and_those_that_failed_come_last():
    display = ChoiceDisplay(RESULTS).plot(Figure().add_subplot())
    names = [label.get_text() for label in display.ax_.get_yticklabels()]
    assert names == display.frame()["name"].to_pylist() == ["c", "a", "b"]
    assert [bar.get_width() for bar in display.bars_] == [0.5, 0.25, 0]
    colours = [to_hex(bar.get_facecolor()) for bar in display.bars_]
    assert (colours[0], colours[2]) == (GREEN, GREY)
    texts = [text.get_text() for text in display.ax_.texts]
    assert texts == ["0.5  chosen", "0.25", "failed"]


def test_a_model_that_chose_nothing_is_refused():
    with pytest.raises(ValueError, match="LogisticRegression chose nothing"):
        ChoiceDisplay.from_estimator(LogisticRegression().fit([[0], [1]], [0, 1]))
