"""The hold-out promise against fresh truth, and the test error of the defaults."""

import numpy as np
import pytest
from experiments.calibration_generalisation import (
    FAMILIES,
    data_set,
    mean_error,
    models,
)
from scipy.stats import binomtest

from prudent import RiskCalibratedClassifier

pytestmark = pytest.mark.slow


def test_holdout_promise_holds_on_pure_noise():
    """Labels independent of the features: the true error rate is 1/2."""
    broken, n_fits = 0, 240
    for seed in range(n_fits):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(165, 5)), rng.integers(2, size=165)
        model = RiskCalibratedClassifier(
            family="diag", stopping="holdout", learning_rate=2.0, step="adaptive",
            line_search=False, random_state=seed,
        ).fit(X, y)  # fmt: skip
        broken += model.guarantees_[0].bound < 0.5
    assert binomtest(broken, n_fits, 0.05, alternative="greater").pvalue > 1e-4


def test_slack_of_the_promise_is_small():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=1800)
    X = rng.normal(size=(1800, 4)) + 0.8 * y[:, np.newaxis]
    model = RiskCalibratedClassifier(family="diag", stopping="holdout").fit(X, y)
    (promise,) = model.guarantees_
    assert promise.evidence["n_validation"] == 360
    assert promise.bound - promise.evidence["wrong"] / 360 <= 0.09


@pytest.mark.parametrize("name", ["heart", "sonar", "wine", "vehicle"])
def test_defaults_do_not_overfit(benchmark_data, name):
    X, y = data_set(name)
    for family in FAMILIES:
        start, calibrated = (mean_error(model, X, y) for model in models(family))
        assert calibrated <= start + 0.015
