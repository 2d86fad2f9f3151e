"""Sets that pay on real data, and radii that cover as documented."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.model_selection import StratifiedKFold

from prudent import OptimisticScoreClassifier
from prudent.metrics import u80_score
from prudent.optimistic import (
    bootstrap_radius,
    clt_radius,
    moment_divergence,
    moment_radius,
)

pytestmark = pytest.mark.slow

# u80 of the sets less accuracy of radius 0, as measured when the method was designed
MARGINS = {
    "diabetic": 0.825 - 0.744,
    "mammographic_mass": 0.841 - 0.805,
    "haberman": 0.761 - 0.747,
    "iris": 0.980 - 0.969,
    "heart": 0.843 - 0.840,
}


def folds(X, y):
    for seed in range(3):
        yield from StratifiedKFold(10, shuffle=True, random_state=seed).split(X, y)


@pytest.mark.parametrize("name", MARGINS)
def test_sets_at_a_tenth_of_the_radius_beat_the_precise_rule(name, benchmark_data):
    X, labels = load_iris(return_X_y=True) if name == "iris" else benchmark_data(name)
    y = np.unique(labels, return_inverse=True)[1]
    margins = []
    for train, test in folds(X, y):
        model = OptimisticScoreClassifier(rule="minimax", radius_scale=0.1)
        precise = OptimisticScoreClassifier(rule="minimax", radius=0.0)
        model.fit(X[train], y[train])
        precise.fit(X[train], y[train])
        sets = model.predict_set(X[test])
        qda = precise.predict(X[test])
        rows = np.arange(len(test))
        assert sets.any(axis=1).all()
        assert sets[rows, qda].all()
        assert sets[rows, model.predict(X[test])].all()
        margins.append(
            u80_score(y[test], sets, model.classes_) - (qda == y[test]).mean()
        )
    assert np.mean(margins) >= MARGINS[name] - 0.01


# share of samples whose ball holds the true moments, level 0.9, empirical
# covariance: bootstrap, moments, CLT; from the design of the method (60 repetitions)
COVERAGE = {
    ("gaussian", 3, 60): (0.92, 0.92, 0.92),
    ("gaussian", 5, 200): (0.87, 0.87, 0.87),
    ("skewed", 3, 60): (0.73, 0.72, 0.33),
    ("skewed", 5, 200): (0.82, 0.85, 0.13),
}


@pytest.mark.parametrize(("law", "d", "n"), COVERAGE)
def test_radii_cover_as_documented(law, d, n):
    rng = np.random.default_rng(0)
    repetitions = 60
    held = np.zeros(3)
    for seed in range(repetitions):
        X = (
            rng.normal(size=(n, d))
            if law == "gaussian"
            else (rng.chisquare(1, size=(n, d)) - 1) / np.sqrt(2)
        )
        nominal = X.mean(axis=0), np.cov(X.T, bias=True)
        divergence = moment_divergence(*nominal, np.zeros(d), np.eye(d))
        bootstrap = bootstrap_radius(
            X, 0.9, n_resamples=100, covariance="empirical", random_state=seed
        )
        radii = [bootstrap, moment_radius(X, 0.9), clt_radius(d, n, 0.9)]
        held += divergence <= np.array(radii)
    documented = np.array(COVERAGE[law, d, n])
    # both figures come from 60 repetitions: three standard errors of a difference
    error = np.sqrt(2 * documented * (1 - documented) / repetitions)
    assert (np.abs(held / repetitions - documented) <= 3 * error).all()
