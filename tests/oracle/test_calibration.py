"""The calibration against loops, scikit-learn's closed forms and lbfgs."""

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.datasets import load_iris
from sklearn.discriminant_analysis import (
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import CategoricalNB, GaussianNB
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from calibration.rows import FAMILIES, calibrate_by_loops, overlapping_clouds
from prudent import RiskCalibratedClassifier
from prudent.calibration import Family, PriorStrengths, TiedFamily
from prudent.calibration.ascent import Objective
from prudent.core.rows import Block

pytestmark = pytest.mark.oracle
ML = {"covariance_prior_strength": 0.0, "line_search": False, "stopping": "none"}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("n_updates", [0, 1, 12])
def test_posteriors_equal_the_loops_of_algorithm_1(family, n_updates):
    X, y = overlapping_clouds(90)
    model = RiskCalibratedClassifier(family=family, max_iter=n_updates + 1, **ML)
    np.testing.assert_allclose(
        model.fit(X, y).predict_proba(X),
        calibrate_by_loops(family, X, y, n_updates),
        atol=1e-10,
    )


@pytest.mark.parametrize(
    ("family", "reference"),
    [
        ("diag", GaussianNB(var_smoothing=0)),
        ("tied", LinearDiscriminantAnalysis()),
        ("full", QuadraticDiscriminantAnalysis()),
    ],
)
def test_start_equals_the_closed_form_classifier(family, reference):
    X, y = overlapping_clouds()
    start = RiskCalibratedClassifier(
        family=family, init="closed_form", max_iter=1, **ML
    ).fit(X, y)
    np.testing.assert_allclose(
        start.predict_proba(X), reference.fit(X, y).predict_proba(X), atol=1e-12
    )


def test_categorical_start_equals_categorical_naive_bayes():
    rng = np.random.default_rng(0)
    X, y = rng.integers(4, size=(100, 3)), rng.integers(3, size=100)
    model = RiskCalibratedClassifier(
        family="categorical", max_iter=1, level_prior_strength=4.0
    ).fit(X, y)
    np.testing.assert_allclose(
        model.predict_proba(X), CategoricalNB(alpha=1).fit(X, y).predict_proba(X),
        atol=1e-12,
    )  # fmt: skip


@pytest.mark.parametrize("family", FAMILIES)
def test_fixed_points_are_logistic_regressions(family):
    X, y = overlapping_clouds(150, d=2, gap=0.4)
    features = {
        "full": PolynomialFeatures(2, include_bias=False).fit_transform(X),
        "diag": np.column_stack([X, X**2]),
    }.get(family, X)
    model = RiskCalibratedClassifier(
        family=family, learning_rate=1.0, max_iter=1000, **ML
    ).fit(X, y)
    Z = StandardScaler().fit_transform(features)
    logistic = LogisticRegression(C=1e10, tol=1e-12, max_iter=20_000).fit(Z, y)
    np.testing.assert_allclose(
        model.predict_proba(X), logistic.predict_proba(Z), atol=1e-5
    )


def test_calibration_of_the_identity_mapping_is_gradient_descent():
    """Proposition 1: statistics phi(x, y), theta(s) = s / m, same learning rate."""
    X, y = overlapping_clouds()
    m = len(y)

    class Identity(Family):
        def statistics(self, X, Q):
            return [Q.sum(axis=0), Q.T @ X]

        def parameters(self, statistics):
            return np.column_stack(statistics) / m

        def log_joint(self, X, parameters):
            return parameters[:, 0] + X @ parameters[:, 1:].T

        def is_valid(self, statistics):
            return np.ones(3, dtype=bool)

    model = RiskCalibratedClassifier(
        family=Identity(), learning_rate=0.3, max_iter=21, **ML
    ).fit(X, y)
    rows = np.column_stack([np.ones(m), X])
    theta = np.eye(3)[y].T @ rows / m
    for _ in range(20):
        H = softmax(rows @ theta.T, axis=1)
        theta = theta - 0.3 / m * (H - np.eye(3)[y]).T @ rows
    H = softmax(rows @ theta.T, axis=1)
    np.testing.assert_allclose(model.predict_proba(X), H, atol=1e-14)


def test_second_moment_of_tied_families_grows_by_batches():
    X, _ = overlapping_clouds()
    whole = TiedFamily.from_rows(X, np.ones(len(X)), PriorStrengths())
    Z, weight = whole.prepare(X), np.ones(len(X))
    empty = TiedFamily(
        whole.centre, whole.scale, whole.kept, PriorStrengths(), np.zeros(0), 0.0
    )
    parts = empty.with_rows(Z[:50], weight[:50]).with_rows(Z[50:], weight[50:])
    np.testing.assert_allclose(parts.second_moment, whole.second_moment, atol=1e-14)
    assert parts.total == whole.total


def test_generative_objective_is_the_joint_likelihood():
    """The line search's objective, recomputed from scipy's normal density."""
    from scipy.stats import multivariate_normal

    X, y = load_iris(return_X_y=True)
    family = TiedFamily.from_rows(X, np.ones(len(y)), PriorStrengths())
    Z = family.prepare(X)
    problem = Objective.from_block(family, Block(Z, y), 3, generative_weight=2.0)
    evaluation = problem.evaluate(problem.closed_form())
    parameters = evaluation.parameters
    joint = np.array(
        [
            parameters.log_priors[k]
            + multivariate_normal(parameters.means[k], parameters.covariances).logpdf(z)
            for k, z in zip(y, Z[:, 1:], strict=True)
        ]
    )
    constant = 0.5 * 4 * np.log(2 * np.pi)  # left out: it has no parameter
    expected = evaluation.losses.mean.log_loss - 2.0 * (joint.mean() + constant)
    assert evaluation.losses.mean.objective == pytest.approx(expected, rel=1e-12)
