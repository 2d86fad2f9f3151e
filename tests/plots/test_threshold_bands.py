"""The picture of limits at all thresholds."""

import matplotlib as mpl

mpl.use("Agg")

import numpy as np
import pytest
from matplotlib import pyplot
from sklearn.datasets import load_breast_cancer
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from prudent.core.binomial import upper_limit
from prudent.plots import ThresholdBandsDisplay

X, y = load_breast_cancer(return_X_y=True)


@pytest.mark.parametrize(("kind", "n_rates"), [("alarms", 3), ("answers", 2)])
def test_limits_of_all_thresholds_lie_beyond_single_ones(kind, n_rates):
    model = LinearDiscriminantAnalysis().fit(X[:300], y[:300])
    _, ax = pyplot.subplots()
    display = ThresholdBandsDisplay.from_estimator(
        model, X[300:], y[300:], kind=kind, ax=ax
    )
    assert display.ax_ is ax
    assert len(display.lines_) == 3 * n_rates
    for i in range(n_rates):
        every, single, measured = (
            line.get_ydata() for line in display.lines_[3 * i : 3 * i + 3]
        )
        is_lower = "answered share" in display.lines_[3 * i].get_label()
        known = ~np.isnan(measured)
        sign = -1 if is_lower else 1
        assert (sign * (every - single) >= -1e-12)[known].all()
        assert (sign * (single - measured) >= -1e-12)[known].all()
    frame = display.frame()
    assert len(frame) == len(display.lines_[0].get_xdata())
    if kind == "alarms":
        missed = frame["missed"].to_pylist()
        n = int((y[300:] == 1).sum())
        single = display.lines_[1].get_ydata()
        assert single[5] == pytest.approx(upper_limit(missed[5], n, level=0.05))
    pyplot.close("all")
