"""Promises of the minimax family held against simulated classes."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from prudent import MinimaxOutlierDetector, MinimaxProbabilityClassifier

pytestmark = pytest.mark.slow

CONFIDENCE = 0.95


def true_classes(n_features):
    rng = np.random.default_rng(n_features)
    roots = rng.normal(size=(2, n_features, n_features)) / math.sqrt(n_features)
    covariances = roots @ roots.transpose(0, 2, 1) + 0.3 * np.eye(n_features)
    direction = rng.normal(size=n_features)
    means = np.outer([-1.0, 1.0], 1.5 * direction / np.linalg.norm(direction))
    return means, covariances


def draw(rng, law, mean, covariance, n):
    Z = rng.multivariate_normal(np.zeros(len(mean)), covariance, size=n)
    if law == "t5":
        # Variance of t5 is 5/3: scaled back to the covariance asked for.
        Z *= np.sqrt(3 / rng.chisquare(5, size=(n, 1)))
    return mean + Z


def true_worst_case_accuracy(model, means, covariances):
    """Accuracy of the fitted plane in the worst law with the true moments."""
    a, b = model.coef_[0], -model.intercept_[0]
    ahead = np.array([-1.0, 1.0]) * (means @ a - b)
    kappa = ahead / np.sqrt(np.einsum("i,kij,j->k", a, covariances, a))
    errors = 1 / (1 + np.maximum(kappa, 0) ** 2)
    return 1 - errors.max()


@pytest.mark.filterwarnings("ignore:.*worst-case error of at least one class is 1")
@pytest.mark.parametrize("n_rows", [50, 500])
@pytest.mark.parametrize("n_features", [2, 10])
@pytest.mark.parametrize("law", ["normal", "t5"])
@pytest.mark.parametrize("uncertainty", ["gaussian", "bootstrap"])
def test_stated_accuracy_holds_at_its_confidence(uncertainty, law, n_features, n_rows):
    means, covariances = true_classes(n_features)
    runs, kept = 60, 0
    y = np.repeat([0, 1], n_rows)
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        X = np.vstack(
            [draw(rng, law, means[k], covariances[k], n_rows) for k in (0, 1)]
        )
        model = MinimaxProbabilityClassifier(
            uncertainty=uncertainty, confidence=CONFIDENCE, random_state=seed
        ).fit(X, y)
        truth = true_worst_case_accuracy(model, means, covariances)
        kept += model.worst_case_accuracy_ <= truth + 1e-12
    # Exact binomial test of "kept in at least 95 % of runs".
    assert binom.cdf(kept, runs, CONFIDENCE) > 1e-4
    assert kept >= CONFIDENCE * runs


@pytest.mark.parametrize("law", ["normal", "t5"])
@pytest.mark.parametrize("n_rows", [30, 100])
def test_plain_fits_break_the_bound_and_are_labelled_plug_in(n_rows, law):
    means, covariances = true_classes(10)
    y = np.repeat([0, 1], n_rows)
    kept = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        X = np.vstack(
            [draw(rng, law, means[k], covariances[k], n_rows) for k in (0, 1)]
        )
        model = MinimaxProbabilityClassifier().fit(X, y)
        assert all("plug-in" in str(g) for g in model.guarantees_)
        truth = true_worst_case_accuracy(model, means, covariances)
        kept += model.worst_case_accuracy_ <= truth
    assert kept <= 0.1 * 60


@pytest.mark.parametrize("n_features", [2, 10])
def test_least_favourable_errors_equal_the_bound(n_features):
    rng = np.random.default_rng(0)
    means, covariances = true_classes(n_features)
    X = np.vstack([draw(rng, "normal", means[k], covariances[k], 300) for k in (0, 1)])
    model = MinimaxProbabilityClassifier().fit(X, np.repeat([0, 1], 300))
    n = 50_000
    for k in (0, 1):
        rows = model.least_favourable(k, n, random_state=k)
        errors = np.count_nonzero(model.predict(rows) != k)
        bound = model.class_worst_case_error_[k]
        tail = min(binom.cdf(errors, n, bound), binom.sf(errors - 1, n, bound))
        assert tail > 1e-4


@pytest.mark.parametrize("law", ["normal", "t5"])
@pytest.mark.parametrize("region", ["ellipsoid", "halfspace"])
def test_calibrated_false_alarm_rate(region, law):
    mean, covariance = np.array([4.0, 3.0]), np.array([[2, 0.5], [0.5, 1]])
    alarms, total = 0, 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        X = draw(rng, law, mean, covariance, 120)
        fresh = draw(rng, law, mean, covariance, 50)
        detector = MinimaxOutlierDetector(
            region=region, false_alarm_rate=0.1, random_state=seed
        ).fit(X)
        alarms += np.count_nonzero(detector.predict(fresh) == -1)
        total += 50
    # Given its calibration rows a rate is Beta(3, 34): 200 of them and 50 rows each.
    spread = math.sqrt((0.081 * 0.919 / 38 + 0.081 * 0.919 / 50) / 200)
    assert abs(alarms / total - 3 / 37) <= 4 * spread
    assert 3 / 37 <= 0.1


def test_distribution_free_threshold_is_attained_by_the_worst_law():
    # Mass rate on +-sqrt(n / rate) times the axes, the rest on the mean.
    rate, n = 0.2, 3
    detector = MinimaxOutlierDetector.from_moments(
        [np.zeros(n)],
        [np.eye(n)],
        [1],
        threshold="distribution_free",
        false_alarm_rate=rate,
    )
    axes = math.sqrt(n / rate) * np.vstack([np.eye(n), -np.eye(n)])
    second = rate * axes.T @ axes / len(axes)
    np.testing.assert_allclose(second, np.eye(n), rtol=1e-12)
    assert (detector.predict(axes * (1 + 1e-9)) == -1).all()
    assert detector.predict(np.zeros((1, n))) == 1
