"""Sets that pay on real data, and radii that cover as documented."""

import numpy as np
import pytest
from sklearn.datasets import load_iris, load_wine
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

# u80 of the sets and accuracy of radius 0, as the user guide has them
UTILITIES = {
    "diabetic": (0.820, 0.743),
    "mammographic_mass": (0.841, 0.805),
    "haberman": (0.761, 0.750),
    "iris": (0.978, 0.973),
    "heart": (0.845, 0.849),
    "wine": (0.906, 0.992),
}


def folds(X, y):
    for seed in range(3):
        yield from StratifiedKFold(10, shuffle=True, random_state=seed).split(X, y)


@pytest.mark.parametrize("name", UTILITIES)
def test_sets_at_a_tenth_of_the_radius_are_as_useful_as_documented(
    name, benchmark_data
):
    bundled = {"iris": load_iris, "wine": load_wine}
    if name in bundled:
        X, labels = bundled[name](return_X_y=True)
    else:
        X, labels = benchmark_data(name)
    y = np.unique(labels, return_inverse=True)[1]
    found = []
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
        utility = u80_score(y[test], sets, model.classes_)
        found.append((utility, (qda == y[test]).mean()))
    assert np.mean(found, axis=0) == pytest.approx(UTILITIES[name], abs=0.002)


# share of samples whose ball holds the true moments, level 0.9, empirical
# covariance: bootstrap, moments, CLT; skewed ones of 300, 1000 and 1000 samples, as the
# user guide has them, the others of 60
COVERAGE = {
    ("gaussian", 3, 60): (0.92, 0.92, 0.92),
    ("gaussian", 5, 200): (0.87, 0.87, 0.87),
    ("skewed", 3, 60): (0.84, 0.77, 0.35),
    ("skewed", 5, 200): (0.83, 0.82, 0.21),
    ("skewed", 10, 60): (0.76, 0.59, 0.08),
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
    # no figure comes from fewer repetitions: three standard errors of a difference
    error = np.sqrt(2 * documented * (1 - documented) / repetitions)
    assert (np.abs(held / repetitions - documented) <= 3 * error).all()


@pytest.mark.parametrize(("n", "documented"), [(60, (0.32, 0.01)), (300, (0.81, 0.02))])
def test_radii_of_many_features_cover_as_documented(n, documented):
    d, repetitions = 20, 100
    held = np.zeros(2)
    for seed in range(repetitions):
        rng = np.random.default_rng(seed)
        X = (rng.chisquare(1, size=(n, d)) - 1) / np.sqrt(2)
        nominal = X.mean(axis=0), np.cov(X.T, bias=True)
        divergence = moment_divergence(*nominal, np.zeros(d), np.eye(d))
        held += divergence <= np.array([moment_radius(X, 0.9), clt_radius(d, n, 0.9)])
    assert held / repetitions == pytest.approx(documented, abs=0.12)
