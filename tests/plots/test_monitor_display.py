"""A watched promise, drawn."""

import math

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.figure import Figure

from prudent import Guarantee, PromiseMonitor
from prudent.plots import MonitorDisplay


def monitor(bound=0.05, sense="<=", quantity="error rate", losses=None):
    promise = Guarantee(quantity=quantity, bound=bound, sense=sense)
    found = PromiseMonitor(promise)
    return found.update(np.arange(300) % 30 == 0 if losses is None else losses)


def test_draws_what_the_monitor_saw():
    plt.switch_backend("agg")
    found = monitor()
    display = MonitorDisplay.from_monitor(found)
    assert display.frame().equals(found.frame())
    rows, log_e = display.line_.get_data()
    np.testing.assert_array_equal(rows, found.frame()["row"])
    expected = found.frame()["log_e_value"].to_numpy() / math.log(10)
    np.testing.assert_allclose(log_e, expected)
    evidence, limits = display.axes_
    alarm, *_ = (line for line in evidence.lines if line is not display.line_)
    assert alarm.get_ydata()[0] == pytest.approx(-math.log10(0.05))
    assert limits.lines[0].get_ydata()[0] == 0.05
    assert limits.get_ylabel() == "error rate"
    assert display.figure_ is evidence.figure
    plt.close("all")


def test_an_alarm_is_marked_and_does_not_flatten_what_came_before():
    found = monitor(losses=np.ones(900))
    display = MonitorDisplay.from_monitor(found, ax=Figure().subplots())
    assert display.axes_[0].get_ylim()[1] < 4 * math.log10(20)
    # Evidence beyond the scale runs along its upper edge, and is said to.
    drawn = display.line_.get_ydata()
    assert drawn.max() < display.axes_[0].get_ylim()[1]
    assert drawn[-1] == drawn.max() < found.frame()["log_e_value"][-1].as_py()
    texts = [text.get_text() for text in display.axes_[0].texts]
    assert texts == ["beyond this scale", "alarm"]
    marks = [line.get_xdata()[0] for line in display.axes_[1].lines]
    assert found.alarm_at_ in marks


@pytest.mark.parametrize("bound", [0.0, 0.9])
def test_infinite_evidence_coverage_and_no_rows(bound):
    coverage = monitor(bound, ">=", "coverage")
    MonitorDisplay.from_monitor(coverage, ax=Figure().subplots())
    refuted = monitor(0.0, losses=[1.0])
    assert refuted.e_value == math.inf
    MonitorDisplay.from_monitor(refuted, ax=Figure().subplots())
    empty = monitor(losses=[])
    display = MonitorDisplay.from_monitor(empty, ax=Figure().subplots())
    assert display.frame().num_rows == 0
