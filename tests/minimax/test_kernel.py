"""Kernel and landmark fits."""

import re

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.metrics.pairwise import rbf_kernel

from prudent import MinimaxOutlierDetector, MinimaxProbabilityClassifier
from prudent.exceptions import PrudentWarning, SingularCovarianceError
from prudent.minimax.kernel import landmark_span, span_of

X_SIX = np.array([0, 0.5, 1, 2, 2.6, 3.5])[:, None]
Y_SIX = np.array([1, 1, 1, 0, 0, 0])


def moons(n=80, seed=0):
    rng = np.random.default_rng(seed)
    angle = np.pi * rng.uniform(size=n)
    y = np.arange(n) % 2
    X = np.column_stack([np.cos(angle) + y, np.sin(angle) * (1 - 2 * y) + 0.3 * y])
    return X + 0.1 * rng.normal(size=(n, 2)), y


def test_kernel_reference():
    model = MinimaxProbabilityClassifier(
        kernel="rbf", gamma=0.5, covariance_radius=0.01
    ).fit(X_SIX, Y_SIX)
    assert model.kappa_ == pytest.approx(4.084717285383, rel=1e-11)
    assert model.intercept_[0] == pytest.approx(-0.081917939944, rel=1e-8)
    np.testing.assert_allclose(
        model.decision_function([[0.25], [1.5], [3]]),
        [0.567571852737, -0.009761540714, -0.572570032711],
        rtol=1e-8,
    )


def test_dual_coefficients_are_over_the_training_rows_in_their_order():
    X, y = moons()
    model = MinimaxProbabilityClassifier(kernel="rbf", gamma=1.0).fit(X, y)
    assert model.dual_coef_.shape == (1, 80)
    K = rbf_kernel(X[:7], X, gamma=1.0)
    np.testing.assert_allclose(
        K @ model.dual_coef_[0] + model.intercept_[0], model.decision_function(X[:7])
    )


def test_a_radius_that_nobody_sets_is_a_share_of_the_diagonal_and_recorded():
    X, y = moons()
    model = MinimaxProbabilityClassifier(kernel="rbf").fit(X, y)
    np.testing.assert_allclose(model.covariance_radius_, 1e-3)
    assert np.isfinite(model.kappa_)
    assert model.guarantees_ == ()


def quadratic(X):
    """Features of the kernel (z'w + 1)^2 in two dimensions, without the constant."""
    root = np.sqrt(2)
    x, z = X.T
    return np.column_stack([root * x, root * z, x * x, z * z, root * x * z])


@pytest.mark.parametrize("radius", [0, [0, 0.2]])
def test_radius_zero_of_a_kernel_is_zero(radius):
    """Theorem 6 as it stands, by a direct search among the planes of the features."""
    X, y = moons()
    model = MinimaxProbabilityClassifier(
        kernel="poly", degree=2, gamma=1.0, coef0=1.0, covariance_radius=radius
    ).fit(X, y)
    np.testing.assert_array_equal(model.covariance_radius_, np.full(2, radius))
    assert model.covariance_floor_ == 0
    Z = quadratic(X)
    gap = Z[y == 1].mean(axis=0) - Z[y == 0].mean(axis=0)
    added = np.broadcast_to(radius, 2)
    spread = [
        np.cov(Z[y == k].T, bias=True) + added[k] * np.eye(Z.shape[1]) for k in (0, 1)
    ]

    def inverse_kappa(a):
        a = a / (a @ gap)
        return sum(np.sqrt(a @ S @ a) for S in spread)

    start = np.linalg.solve(sum(spread), gap)
    least = minimize(inverse_kappa, start, method="BFGS", options={"gtol": 1e-9})
    assert model.kappa_ == pytest.approx(1 / least.fun, rel=1e-8)


def test_radius_zero_of_a_positive_definite_kernel_gives_alpha_1_and_says_so():
    X, y = moons()
    model = MinimaxProbabilityClassifier(kernel="rbf", gamma=1.0, covariance_radius=0)
    with pytest.warns(PrudentWarning, match="kappa is infinite"):
        model.fit(X, y)
    assert model.worst_case_accuracy_ == 1
    np.testing.assert_array_equal(model.covariance_radius_, 0)
    assert model.guarantees_ == ()


def test_radius_zero_of_a_nearly_singular_kernel_is_floored_and_recorded():
    X, y = moons(300)
    model = MinimaxProbabilityClassifier(kernel="rbf", gamma=0.01, covariance_radius=0)
    with pytest.warns(PrudentWarning, match="was added to both"):
        model.fit(X, y)
    assert model.covariance_floor_ > 0
    np.testing.assert_array_equal(model.covariance_radius_, 0)


def test_one_class_halfspace_at_radius_zero_is_theorem_7():
    X, _ = moons()
    settings = {
        "region": "halfspace",
        "threshold": "distribution_free",
        "false_alarm_rate": 0.8,
    }
    detector = MinimaxOutlierDetector(
        kernel="poly", degree=2, gamma=1.0, coef0=0.0, covariance_radius=0, **settings
    ).fit(X)
    Z = quadratic(X)[:, 2:]  # without a constant and linear part
    mean = Z.mean(axis=0)
    weights = np.linalg.solve(np.cov(Z.T, bias=True), mean)
    zeta = np.sqrt(mean @ weights)
    np.testing.assert_allclose(detector.score_samples(X), Z @ weights, rtol=1e-6)
    assert detector.offset_ == pytest.approx(zeta**2 - 0.5 * zeta, rel=1e-9)


@pytest.mark.parametrize(("gamma", "radius"), [(1, 0), (1, 1e-20), (0.1, 0)])
def test_one_class_names_a_radius_that_is_enough(gamma, radius):
    X, _ = moons()
    detector = MinimaxOutlierDetector(
        kernel="rbf",
        gamma=gamma,
        region="halfspace",
        covariance_radius=radius,
        random_state=0,
    )
    with pytest.raises(SingularCovarianceError, match="or more") as refused:
        detector.fit(X)
    named = float(re.search(r"set it to (\S+) or more", str(refused.value))[1])
    assert named < 1e-9
    detector.set_params(covariance_radius=named).fit(X)


def test_one_class_ellipsoid_of_a_kernel_refuses_radius_zero():
    detector = MinimaxOutlierDetector(kernel="rbf", covariance_radius=0)
    with pytest.raises(ValueError, match="infinitely far away"):
        detector.fit(moons()[0])


def test_linear_kernel_equals_the_linear_fit():
    X, y = moons()
    centred = X - X.mean(axis=0)
    linear = MinimaxProbabilityClassifier(covariance_radius=0.1).fit(centred, y)
    kernel = MinimaxProbabilityClassifier(
        kernel="poly", degree=1, gamma=1.0, coef0=0.0, covariance_radius=0.1
    ).fit(centred, y)
    assert kernel.kappa_ == pytest.approx(linear.kappa_, rel=1e-10)
    np.testing.assert_allclose(
        kernel.decision_function(centred), linear.decision_function(centred), atol=1e-8
    )


def test_fewer_rows_than_features_equals_the_primal_with_different_radii():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 60)), np.arange(20) % 2
    radii = {"covariance_radius": [0.3, 0.7], "mean_radius": [0.1, 0.2]}
    linear = MinimaxProbabilityClassifier(**radii).fit(X, y)
    span = MinimaxProbabilityClassifier(
        kernel="poly", degree=1, gamma=1.0, coef0=0.0, **radii
    ).fit(X, y)
    assert span.kappa_ == pytest.approx(linear.kappa_, rel=1e-11)


def test_precomputed_equals_the_named_kernel():
    X, y = moons()
    named = MinimaxProbabilityClassifier(kernel="rbf", gamma=1.0).fit(X, y)
    K = rbf_kernel(X, gamma=1.0)
    precomputed = MinimaxProbabilityClassifier(kernel="precomputed").fit(K, y)
    np.testing.assert_allclose(
        precomputed.decision_function(K), named.decision_function(X), atol=1e-9
    )


def test_precomputed_kernel_drops_rows_of_weight_zero():
    X, y = moons()
    weight = (np.arange(80) % 4 > 0).astype(float)
    K = rbf_kernel(X, gamma=1.0)
    model = MinimaxProbabilityClassifier(kernel="precomputed").fit(K, y, weight)
    kept = weight > 0
    wanted = MinimaxProbabilityClassifier(kernel="rbf", gamma=1.0).fit(X[kept], y[kept])
    np.testing.assert_allclose(
        model.decision_function(K), wanted.decision_function(X), atol=1e-9
    )


def test_precomputed_kernel_must_be_square():
    with pytest.raises(ValueError, match="must be square"):
        MinimaxProbabilityClassifier(kernel="precomputed").fit(X_SIX, Y_SIX)


def test_kernel_weights_equal_repeated_rows():
    X, y = moons(40)
    weight = 1 + np.arange(40) % 2
    model = MinimaxProbabilityClassifier(kernel="rbf", covariance_radius=0.1)
    weighted = model.fit(X, y, weight).decision_function(X)
    repeated = model.fit(X.repeat(weight, axis=0), y.repeat(weight))
    np.testing.assert_allclose(weighted, repeated.decision_function(X), atol=1e-9)


def test_callable_kernel_takes_its_parameters():
    def scaled(a, b, scale):
        return np.exp(-scale * np.sum((a - b) ** 2))

    X, y = moons(20)
    own = MinimaxProbabilityClassifier(kernel=scaled, kernel_params={"scale": 1.0}).fit(
        X, y
    )
    named = MinimaxProbabilityClassifier(kernel="rbf", gamma=1.0).fit(X, y)
    np.testing.assert_allclose(
        own.decision_function(X), named.decision_function(X), atol=1e-8
    )


def test_landmarks_approach_the_exact_fit():
    X, y = moons(300)
    exact = MinimaxProbabilityClassifier(kernel="rbf", gamma=1.0).fit(X, y)
    model = MinimaxProbabilityClassifier(
        kernel="rbf", gamma=1.0, n_components=60, random_state=0
    ).fit(X, y)
    assert model.dual_coef_.shape == (1, 60)
    assert np.mean(model.predict(X) == exact.predict(X)) > 0.98


def test_landmarks_of_a_precomputed_kernel():
    X, y = moons()
    K = rbf_kernel(X, gamma=1.0)
    params = {"n_components": 30, "random_state": 0}
    named = MinimaxProbabilityClassifier(kernel="rbf", gamma=1.0, **params).fit(X, y)
    own = MinimaxProbabilityClassifier(kernel="precomputed", **params).fit(K, y)
    np.testing.assert_allclose(
        own.decision_function(K), named.decision_function(X), atol=1e-7
    )


def test_three_classes_with_a_kernel():
    rng = np.random.default_rng(0)
    y = np.arange(90) % 3
    centres = np.array([[0, 0], [3, 0], [0, 3]])
    X = centres[y] + rng.normal(size=(90, 2)) * 0.5
    model = MinimaxProbabilityClassifier(kernel="rbf", gamma=0.5).fit(X, y)
    assert model.dual_coef_.shape == (3, 90)
    assert model.score(X, y) == 1


def test_span_reproduces_the_gram_matrix():
    X, _ = moons(50)
    K = rbf_kernel(X, gamma=0.2)
    span = span_of(K)
    assert span.rows.shape[1] < 50
    np.testing.assert_allclose(span.rows @ span.rows.T, K, atol=1e-12)
    np.testing.assert_allclose(span.coordinates(K), span.rows, atol=1e-5)


def test_span_refuses_a_kernel_without_positive_diagonal():
    with pytest.raises(ValueError, match="no positive diagonal"):
        span_of(np.zeros((3, 3)))


def test_landmark_span_is_the_nystroem_approximation():
    X, _ = moons(50)
    K = rbf_kernel(X, gamma=0.2)
    span = landmark_span(K[:, :10], K[:10, :10])
    wanted = K[:, :10] @ np.linalg.solve(K[:10, :10] + 1e-10 * np.eye(10), K[:10])
    np.testing.assert_allclose(span.rows @ span.rows.T, wanted, atol=1e-6)


def test_one_class_kernel_reference():
    detector = MinimaxOutlierDetector(
        kernel="rbf",
        gamma=0.5,
        covariance_radius=0.05,
        region="halfspace",
        threshold="distribution_free",
        false_alarm_rate=0.5,
    ).fit(X_SIX[:3])
    np.testing.assert_allclose(
        detector.dual_coef_ / detector.offset_,
        [[0.813244656684, -0.025729077113, 0.813244656684]],
        rtol=1e-9,
    )


def test_kernel_ellipsoid_measures_what_leaves_the_span():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 2))
    params = {"kernel": "rbf", "gamma": 0.5, "random_state": 0}
    detector = MinimaxOutlierDetector(**params).fit(X)
    away = MinimaxOutlierDetector(region="halfspace", **params).fit(X)
    # phi(z) is orthogonal to the span: |phi(z)|^2 / rho, and the mean's own distance
    # zeta to the origin, w'm = zeta^2.
    far = detector.score_samples([[50.0, 50.0]])[0]
    zeta_squared = away.score_samples(away._kernel.rows).mean()
    assert far**2 == pytest.approx(1 / 1e-3 + zeta_squared, rel=1e-6)


@pytest.mark.filterwarnings("ignore:(overflow|invalid value):RuntimeWarning")
@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_kernel_values_that_overflow_ask_for_other_columns_and_decide_nothing(kernel):
    X, y = moons()
    large = X * [1e160, 1]
    for model in (
        MinimaxProbabilityClassifier(kernel=kernel),
        MinimaxProbabilityClassifier(kernel=kernel, n_components=20, random_state=0),
        MinimaxOutlierDetector(kernel=kernel, random_state=0),
    ):
        with pytest.raises(ValueError, match="not finite: rescale the columns"):
            model.fit(large, y)
    fitted = MinimaxProbabilityClassifier(kernel="poly").fit(X, y)
    with pytest.raises(ValueError, match="rescale the columns"):
        fitted.predict([[1e200, 0.0]])
