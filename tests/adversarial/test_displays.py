"""Displays of the family: the data in the artists and in `frame`."""

import matplotlib as mpl
import numpy as np
import pytest

from prudent import LowDensityRejector, RejectionGame
from prudent.plots import FalseAlarmDisplay, SecurityCurveDisplay

mpl.use("Agg")


@pytest.fixture
def ax():
    from matplotlib import pyplot

    figure, ax = pyplot.subplots()
    yield ax
    pyplot.close(figure)


@pytest.fixture(scope="module")
def game():
    return RejectionGame(divergence_bound=3).fit([0.01, 0.04, 0.15, 0.3, 0.5])


@pytest.fixture(scope="module")
def normals():
    return np.random.default_rng(0).normal(size=(800, 2))


def test_security_curve_draws_what_the_frame_holds(game, ax):
    display = SecurityCurveDisplay.from_estimator(
        game, false_alarm_rates=[0.5, 0.1, 0.9], ax=ax
    )
    frame = display.frame()
    assert frame["false_alarm_rate"].to_pylist() == [0.1, 0.5, 0.9]
    soft, hard, uniform = display.lines_
    np.testing.assert_array_equal(soft.get_ydata(), frame["soft_miss_rate"])
    np.testing.assert_array_equal(hard.get_ydata(), frame["hard_miss_rate"])
    np.testing.assert_array_equal(uniform.get_ydata(), [0.9, 0.5, 1 - 0.9])
    assert display.ax_ is ax


def test_security_curve_makes_its_own_axes_and_covers_all_rates(game):
    from matplotlib import pyplot

    display = SecurityCurveDisplay.from_estimator(game)
    assert display.frame().num_rows == 101
    assert (
        display.curve.soft_miss_rates <= display.curve.hard_miss_rates + 1e-12
    ).all()
    pyplot.close(display.figure_)


def test_false_alarms_are_those_of_the_refitted_rates(normals, ax):
    detector = LowDensityRejector(random_state=0).fit(normals[:300])
    display = FalseAlarmDisplay.from_estimator(
        detector, normals[300:], false_alarm_rates=[0.3, 0.1]
    )
    frame = display.plot(ax).frame()
    for i, rate in enumerate((0.1, 0.3)):
        rejected = detector.with_false_alarm_rate(rate).predict(normals[300:]) < 0
        assert frame["measured"][i].as_py() == np.mean(rejected)
        assert frame["lower"][i].as_py() < np.mean(rejected) < frame["upper"][i].as_py()
    np.testing.assert_array_equal(display.line_.get_xdata(), [0.1, 0.3])
    np.testing.assert_array_equal(display.line_.get_ydata(), frame["measured"])


def test_false_alarm_display_makes_its_own_axes(normals):
    from matplotlib import pyplot

    detector = LowDensityRejector(random_state=0).fit(normals[:300])
    display = FalseAlarmDisplay.from_estimator(detector, normals[300:])
    assert display.frame().num_rows == 20
    pyplot.close(display.figure_)


def test_security_curve_shows_what_knowing_the_intruder_is_worth(game, ax):
    q = game.adversary_
    display = SecurityCurveDisplay.from_estimator(
        game, false_alarm_rates=[0.1, 0.5], known=q, ax=ax
    )
    known = display.frame()["known_miss_rate"].to_numpy()
    np.testing.assert_array_equal(display.lines_[3].get_ydata(), known)
    assert (known <= display.curve.soft_miss_rates + 1e-12).all()
