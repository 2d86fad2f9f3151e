"""OptimisticScoreClassifier: settings, degenerate data, moments, sets."""

import math
import pickle
import tracemalloc
import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2, multivariate_normal
from sklearn.covariance import LedoitWolf, ledoit_wolf
from sklearn.datasets import load_iris, load_wine, make_blobs
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import prudent
from prudent import ClassMoments, OptimisticScoreClassifier
from prudent.exceptions import DegenerateDataError, PrudentWarning
from prudent.optimistic import (
    best_threshold,
    clt_radius,
    covariance_scores,
    gaussian_scores,
    moment_divergence,
    moment_radius,
    nonparametric_scores,
)

FROM_MOMENTS = {"covariance": "empirical", "threshold": "bayes", "radius": 0.1}


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


@pytest.fixture(scope="module")
def binary():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200)
    return rng.normal(size=(200, 3)) + y[:, None] * [1.0, 0.5, 0.0], y


def two_classes(n_features=2, n=40, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    return rng.normal(size=(n, n_features)) + 2.0 * y[:, None], y


# -- what the settings mean --------------------------------------------------------


def test_radius_zero_with_bayes_threshold_is_quadratic_discriminant_analysis(binary):
    X, y = binary
    qda = QuadraticDiscriminantAnalysis(store_covariance=True).fit(X, y)
    model = OptimisticScoreClassifier.from_moments(
        qda.means_,
        qda.covariance_,
        np.bincount(y),
        **{**FROM_MOMENTS, "radius": 0.0},
    )
    np.testing.assert_allclose(
        model.decision_function(X), qda.decision_function(X), rtol=1e-9, atol=1e-9
    )


def test_radius_zero_nonparametric_with_threshold_one_is_the_mahalanobis_rule(binary):
    X, y = binary
    model = OptimisticScoreClassifier(
        likelihood="nonparametric", radius=0.0, threshold=1.0, covariance="empirical"
    ).fit(X, y)
    distances = [
        np.einsum(
            "ij,jk,ik->i",
            X - X[y == c].mean(axis=0),
            np.linalg.inv(np.cov(X[y == c].T, bias=True)),
            X - X[y == c].mean(axis=0),
        )
        for c in (0, 1)
    ]
    np.testing.assert_array_equal(model.predict(X), distances[1] <= distances[0])


def test_covariance_is_ledoit_wolf_on_standardised_columns(iris):
    X, y = iris
    model = OptimisticScoreClassifier(covariance="ledoit_wolf").fit(X, y)
    for c in range(3):
        rows = X[y == c]
        scale = rows.std(axis=0)
        expected = ledoit_wolf((rows - rows.mean(axis=0)) / scale)[0]
        np.testing.assert_allclose(
            model.covariances_[c], expected * np.outer(scale, scale), rtol=1e-9
        )


def test_covariance_estimator_sees_standardised_columns(iris):
    X, y = iris
    by_name = OptimisticScoreClassifier().fit(X, y)
    by_estimator = OptimisticScoreClassifier(covariance=LedoitWolf()).fit(X, y)
    np.testing.assert_allclose(by_estimator.covariances_, by_name.covariances_)


def test_covariance_float_shrinks_to_the_diagonal(iris):
    X, y = iris
    model = OptimisticScoreClassifier(covariance=0.3).fit(X, y)
    S = np.cov(X[y == 0].T, bias=True)
    np.testing.assert_allclose(
        model.covariances_[0], 0.7 * S + 0.3 * np.diag(np.diag(S))
    )


def test_units_of_the_columns_change_nothing(iris):
    X, y = iris
    plain = OptimisticScoreClassifier().fit(X, y)
    scale = np.array([1e-18, 1.0, 1e18, 1e3])
    scaled = OptimisticScoreClassifier().fit(X * scale, y)
    # all scores move by the same log of the units
    differences = [
        np.diff(model.decision_function(rows), axis=1)
        for model, rows in ((scaled, X * scale), (plain, X))
    ]
    np.testing.assert_allclose(*differences, atol=1e-8)


def test_clt_radii_use_class_weights_and_level(iris):
    X, y = iris
    settings = {"radius": "clt", "radius_level": 0.9, "radius_scale": 0.5}
    model = OptimisticScoreClassifier(**settings).fit(X, y)
    assert model.radii_ == pytest.approx(
        0.5 * prudent.optimistic.clt_radius(4, 50, 0.9)
    )


def test_moment_radii_are_those_of_each_class(iris):
    X, y = iris
    model = OptimisticScoreClassifier(radius="moments").fit(X, y)
    expected = [moment_radius(X[y == c]) for c in range(3)]
    assert model.radii_ == pytest.approx(expected)


def test_given_radii_are_not_scaled(iris):
    X, y = iris
    given = [0.1, 0.2, 0.15]
    with pytest.warns(PrudentWarning, match="radius_scale=0.1 has no effect"):
        model = OptimisticScoreClassifier(radius=given, radius_scale=0.1).fit(X, y)
    assert model.radii_ == pytest.approx(given)


def test_bootstrap_radii_repeat_with_the_random_state(iris):
    X, y = iris
    first, second = (
        OptimisticScoreClassifier(radius="bootstrap", random_state=3).fit(X, y).radii_
        for _ in range(2)
    )
    np.testing.assert_array_equal(first, second)


def test_tuned_threshold_is_the_best_of_the_training_ratios(binary):
    X, y = binary
    model = OptimisticScoreClassifier(threshold="tuned").fit(X, y)
    scores = model.optimistic_scores(X)
    best = best_threshold(scores[:, 1] - scores[:, 0], y)
    assert model.log_threshold_ == pytest.approx(best.log_threshold)
    assert model.score(X, y) == best.n_correct / len(y)
    assert model.offsets_ == pytest.approx(
        [best.log_threshold / 2, -best.log_threshold / 2]
    )


def test_threshold_number_is_the_ratio_itself(binary):
    X, y = binary
    model = OptimisticScoreClassifier(threshold=3.0, radius=0.1).fit(X, y)
    scores = model.optimistic_scores(X)
    np.testing.assert_allclose(
        model.decision_function(X), scores[:, 1] - scores[:, 0] - math.log(3.0)
    )


def test_bayes_threshold_is_the_ratio_of_priors(iris):
    X, y = iris
    X, y = X[50:120], y[50:120]
    model = OptimisticScoreClassifier(threshold="bayes", radius=0.1).fit(X, y)
    assert model.log_threshold_ == pytest.approx(math.log(50 / 20))


def test_given_priors_replace_the_frequencies(binary):
    X, y = binary
    model = OptimisticScoreClassifier(threshold="bayes", radius=0.1, priors=[0.2, 0.8])
    model.fit(X, y)
    np.testing.assert_array_equal(model.priors_, [0.2, 0.8])
    assert model.log_threshold_ == pytest.approx(math.log(0.2 / 0.8))


def test_minimax_rule_of_three_classes_has_the_largest_least_posterior(iris):
    X, y = iris
    model = OptimisticScoreClassifier(rule="minimax", radius=0.3).fit(X, y)
    lower, _ = model.posterior_bounds(X)
    # where the bounds are not all 0 to the last bit
    clear = lower.max(axis=1) > 1e-300
    np.testing.assert_array_equal(model.predict(X)[clear], lower.argmax(axis=1)[clear])


def test_minimax_rule_compares_the_class_scores_of_two_classes(binary):
    X, y = binary
    model = OptimisticScoreClassifier(rule="minimax").fit(X, y)
    up, low = model.optimistic_scores(X), model.pessimistic_scores(X)
    score = (up + low) / 2 + np.log(model.priors_)
    np.testing.assert_allclose(model.decision_function(X), score[:, 1] - score[:, 0])
    assert model.log_threshold_ == 0.0
    np.testing.assert_array_equal(model.offsets_, 0.0)


def test_nonparametric_tie_goes_to_the_nearer_class():
    model = OptimisticScoreClassifier.from_moments(
        [[0.0], [1.0]],
        [[[1.0]], [[1.0]]],
        [10, 10],
        likelihood="nonparametric",
        covariance="empirical",
        threshold=1.0,
        radius=1.0,
    )
    X = [[0.3], [0.7]]
    np.testing.assert_array_equal(model.optimistic_scores(X), 0.0)
    np.testing.assert_array_equal(model.predict(X), [0, 1])


def test_offsets_do_not_swallow_the_tie_of_three_classes():
    model = OptimisticScoreClassifier.from_moments(
        [[0.0], [1.0], [9.0]],
        [[[1.0]]] * 3,
        [10, 10, 20],
        likelihood="nonparametric",
        covariance="empirical",
        threshold="bayes",
        radius=1.0,
    )
    X = [[0.3], [0.7]]
    np.testing.assert_array_equal(model.optimistic_scores(X)[:, :2], 0.0)
    assert model.offsets_[0] == model.offsets_[1] != 0
    np.testing.assert_array_equal(model.predict(X), [0, 1])


@pytest.mark.parametrize("likelihood", ["gaussian", "nonparametric"])
def test_the_classifier_compares_the_scores_of_its_likelihood(binary, likelihood):
    """Equations (9) and (12), from distances to each class."""
    X, y = binary
    model = OptimisticScoreClassifier(
        likelihood=likelihood, radius=[0.1, 0.3], threshold=1.5
    )
    with pytest.warns(PrudentWarning, match="radii differ"):
        model.fit(X, y)
    logs = []
    for mean, S, radius in zip(
        model.means_, model.covariances_, model.radii_, strict=True
    ):
        gap = X - mean
        M = np.einsum("ij,ij->i", gap, np.linalg.solve(S, gap.T).T)
        if likelihood == "gaussian":
            _, upper = gaussian_scores(M, 3, radius)
            logs.append((upper - np.linalg.slogdet(S)[1]) / 2)
        else:
            _, q = nonparametric_scores(M, radius)
            logs.append(-np.log1p(q))
    np.testing.assert_allclose(
        model.decision_function(X), logs[1] - logs[0] - math.log(1.5), atol=1e-10
    )


def test_algorithm_1_step_by_step(binary):
    X, y = binary
    logs = []
    for k in (0, 1):
        rows = X[y == k]
        scale = rows.std(axis=0)
        shrunk = ledoit_wolf((rows - rows.mean(axis=0)) / scale)[0]
        S = shrunk * np.outer(scale, scale)
        gap = X - rows.mean(axis=0)
        M = np.einsum("ij,ij->i", gap, np.linalg.solve(S, gap.T).T)
        _, upper = gaussian_scores(M, 3, clt_radius(3, len(rows)))
        logs.append((upper - np.linalg.slogdet(S)[1]) / 2)
    best = best_threshold(logs[1] - logs[0], y)
    model = OptimisticScoreClassifier().fit(X, y)
    assert model.log_threshold_ == pytest.approx(best.log_threshold, abs=1e-9)
    np.testing.assert_array_equal(
        model.predict(X), logs[1] - logs[0] >= best.log_threshold
    )


def test_most_plausible_moments_lie_on_the_sphere_and_attain_the_score(iris):
    X, y = iris
    model = OptimisticScoreClassifier(radius=0.2, threshold="bayes").fit(X, y)
    x = X[60]
    means, covariances = model.most_plausible_moments(x)
    for c in range(3):
        nominal = model.means_[c], model.covariances_[c]
        assert moment_divergence(*nominal, means[c], covariances[c]) == pytest.approx(
            0.2, rel=1e-9
        )
        gap = x - means[c]
        score = -0.5 * (
            gap @ np.linalg.solve(covariances[c], gap)
            + np.linalg.slogdet(covariances[c])[1]
        )
        assert model.optimistic_scores([x])[0, c] == pytest.approx(score, rel=1e-9)


@pytest.mark.parametrize("columns", [slice(0, 4), slice(2, 3)])
def test_the_ball_of_covariances_keeps_the_means(iris, columns):
    X, y = iris[0][:, columns], iris[1]
    d = X.shape[1]
    model = OptimisticScoreClassifier(ball="covariance", radius=0.2, threshold="bayes")
    model.fit(X, y)
    for x in (X[60], model.means_[1]):
        means, covariances = model.most_plausible_moments(x)
        np.testing.assert_array_equal(means, model.means_)
        for c in range(3):
            S, moved = model.covariances_[c], covariances[c]
            distance = (x - means[c]) @ np.linalg.solve(S, x - means[c])
            used = moment_divergence(means[c], S, means[c], moved)
            # One feature need not go to the end of the ball.
            assert used <= 0.2 * (1 + 1e-9)
            assert used == pytest.approx(0.2, rel=1e-9) or d == 1
            log_det = np.linalg.slogdet(S)[1]
            lower, upper = covariance_scores(distance, d, 0.2) - log_det
            gap = x - means[c]
            value = -gap @ np.linalg.solve(moved, gap) - np.linalg.slogdet(moved)[1]
            assert upper == pytest.approx(value, rel=1e-9)
            assert model.optimistic_scores([x])[0, c] == pytest.approx(upper / 2)
            assert model.pessimistic_scores([x])[0, c] == pytest.approx(lower / 2)


def test_the_ball_of_covariances_has_a_limit_law_of_its_own(iris):
    model = OptimisticScoreClassifier(ball="covariance", radius_level=0.9).fit(*iris)
    assert model.radii_ == pytest.approx(chi2.ppf(0.9, 4 * 5 / 2) / 50)


def test_most_plausible_moments_of_radius_zero_are_the_nominal_ones(iris):
    model = OptimisticScoreClassifier(radius=0.0, threshold="bayes").fit(*iris)
    means, covariances = model.most_plausible_moments(iris[0][70])
    np.testing.assert_array_equal(means, model.means_)
    np.testing.assert_array_equal(covariances, model.covariances_)


def test_most_plausible_moments_within_reach_have_the_row_as_mean():
    model = OptimisticScoreClassifier.from_moments(
        [[0.0], [3.0]],
        [[[1.0]], [[1.0]]],
        [10, 10],
        likelihood="nonparametric",
        **FROM_MOMENTS,
    )
    means, covariances = model.most_plausible_moments([0.1])
    assert means[0, 0] == pytest.approx(0.1)
    assert covariances[0, 0, 0] == pytest.approx(1.01)
    assert 3.0 > means[1, 0] > 0.1
    with pytest.raises(ValueError, match="`x` must be one row, got 2"):
        model.most_plausible_moments([[0.1], [0.2]])


# -- sets and posteriors -----------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"likelihood": "nonparametric"},
        {"rule": "minimax"},
        {"threshold": "bayes", "radius": 0.05},
    ],
)
def test_sets_hold_the_prediction_and_are_never_empty(iris, settings):
    X, y = iris
    model = OptimisticScoreClassifier(**settings).fit(X, y)
    sets = model.predict_set(X)
    assert sets.any(axis=1).all()
    assert sets[np.arange(len(X)), model.predict(X)].all()


def test_sets_at_radius_zero_are_the_bayes_class(iris):
    X, y = iris
    model = OptimisticScoreClassifier(radius=0.0, threshold="bayes").fit(X, y)
    np.testing.assert_array_equal(model.predict_set(X).sum(axis=1), 1)


def test_posterior_bounds_hold_the_nominal_posterior(iris):
    X, y = iris
    model = OptimisticScoreClassifier(radius=0.1, threshold="bayes").fit(X, y)
    nominal = OptimisticScoreClassifier(radius=0.0, threshold="bayes").fit(X, y)
    lower, upper = model.posterior_bounds(X)
    posterior = nominal.predict_proba(X)
    assert (lower <= posterior + 1e-12).all()
    assert (posterior <= upper + 1e-12).all()


def test_posterior_bounds_are_attained_by_moments_in_the_balls(iris):
    """A class is likeliest by its own best moments and its rivals' worst densities."""
    X, y = iris
    priors = np.array([0.2, 0.5, 0.3])
    model = OptimisticScoreClassifier(
        radius=[0.1, 0.3, 0.2], threshold="bayes", priors=priors
    )
    with pytest.warns(PrudentWarning, match="radii differ"):
        model.fit(X, y)
    for x in X[::15]:
        moments = zip(*model.most_plausible_moments(x), strict=True)
        best = priors * [multivariate_normal(*pair).pdf(x) for pair in moments]
        logs = model.pessimistic_scores([x])[0] - 2 * math.log(2 * math.pi)
        worst = priors * np.exp(logs)
        lower, upper = model.posterior_bounds([x])
        np.testing.assert_allclose(
            upper[0], best / (best + worst.sum() - worst), rtol=1e-9
        )
        np.testing.assert_allclose(
            lower[0], worst / (worst + best.sum() - best), rtol=1e-9, atol=1e-300
        )


def test_posterior_bounds_need_a_likelihood(iris):
    model = OptimisticScoreClassifier(likelihood="nonparametric").fit(*iris)
    with pytest.raises(ValueError, match="likelihood='gaussian'"):
        model.posterior_bounds(iris[0])


def test_no_promise_is_made(iris):
    assert OptimisticScoreClassifier().fit(*iris).guarantees_ == ()


# -- moments, weights, partial fits ------------------------------------------------


def test_fit_moments_equals_fit(iris):
    X, y = iris
    model = OptimisticScoreClassifier(**FROM_MOMENTS).fit(X, y)
    again = OptimisticScoreClassifier(**FROM_MOMENTS).fit_moments(
        ClassMoments.from_arrays(X, y)
    )
    np.testing.assert_array_equal(
        model.decision_function(X), again.decision_function(X)
    )


def test_moments_without_covariances_are_refused(iris):
    moments = ClassMoments.from_arrays(*iris, structure="diagonal")
    with pytest.raises(ValueError, match="structure='full'"):
        OptimisticScoreClassifier(**FROM_MOMENTS).fit_moments(moments)


def test_partial_fit_equals_fit(iris):
    X, y = iris
    whole = OptimisticScoreClassifier(**FROM_MOMENTS).fit(X, y)
    parts = OptimisticScoreClassifier(**FROM_MOMENTS)
    for rows in np.array_split(np.random.default_rng(0).permutation(150), 3):
        parts.partial_fit(X[rows], y[rows])
    np.testing.assert_allclose(
        parts.decision_function(X), whole.decision_function(X), atol=1e-9
    )


def test_a_declared_class_without_rows_is_never_predicted(iris):
    X, y = iris
    seen = y < 2
    model = OptimisticScoreClassifier(**FROM_MOMENTS).partial_fit(
        X[seen], y[seen], classes=[0, 1, 2]
    )
    assert model.priors_[2] == 0
    assert (model.optimistic_scores(X)[:, 2] == -np.inf).all()
    assert not model.predict_set(X)[:, 2].any()
    assert (model.predict_proba(X)[:, 2] == 0).all()
    assert (model.posterior_bounds(X)[1][:, 2] == 0).all()
    two = OptimisticScoreClassifier(**FROM_MOMENTS).fit(X[seen], y[seen])
    np.testing.assert_array_equal(model.predict(X), two.predict(X))


def test_partial_fit_with_too_few_rows_is_not_yet_fitted():
    model = OptimisticScoreClassifier(**FROM_MOMENTS)
    model.partial_fit([[0.0, 1.0], [1.0, 0.0]], [0, 1])
    with pytest.raises(NotFittedError):
        model.predict([[0.0, 0.0]])


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({}, "threshold='tuned'"),
        ({"threshold": "bayes"}, "covariance='ledoit_wolf'"),
        ({"rule": "minimax", "covariance": LedoitWolf()}, "LedoitWolf"),
        ({**FROM_MOMENTS, "radius": "moments"}, "radius='moments'"),
    ],
)
def test_settings_that_need_rows_have_no_moment_methods(settings, named):
    model = OptimisticScoreClassifier(**settings)
    for method in ("fit_moments", "partial_fit"):
        assert not hasattr(model, method)
    with pytest.raises(ValueError, match="needs the rows") as error:
        OptimisticScoreClassifier.from_moments(
            [[0.0], [1.0]], [[[1.0]], [[1.0]]], [5, 5], **settings
        )
    assert named in str(error.value)


@pytest.mark.parametrize(
    "settings",
    [{}, {"radius": "moments"}, {"covariance": "empirical"}, {"rule": "minimax"}],
)
def test_weight_is_repetition(iris, settings):
    X, y = iris
    weight = np.random.default_rng(0).integers(0, 3, 150)
    weighted = OptimisticScoreClassifier(**settings).fit(X, y, sample_weight=weight)
    repeated = OptimisticScoreClassifier(**settings).fit(
        np.repeat(X, weight, axis=0), np.repeat(y, weight)
    )
    np.testing.assert_allclose(
        weighted.decision_function(X), repeated.decision_function(X), atol=1e-7
    )
    np.testing.assert_array_equal(weighted.class_count_, repeated.class_count_)


def test_covariance_estimator_takes_whole_weights_as_repetitions(iris):
    X, y = iris
    weight = np.arange(150) % 3
    model = OptimisticScoreClassifier(covariance=LedoitWolf())
    model.fit(X, y, sample_weight=weight)
    repeated = OptimisticScoreClassifier(covariance=LedoitWolf()).fit(
        np.repeat(X, weight, axis=0), np.repeat(y, weight)
    )
    np.testing.assert_allclose(model.covariances_, repeated.covariances_)
    with pytest.raises(ValueError, match="takes no weights, only rows"):
        model.fit(X, y, sample_weight=weight + 0.5)


# -- degenerate data ---------------------------------------------------------------


def test_feature_constant_over_all_rows_is_ignored_and_recorded():
    X, y = two_classes(3)
    wide = np.insert(X, 1, 7.0, axis=1)
    with pytest.warns(PrudentWarning, match="constant over all rows"):
        model = OptimisticScoreClassifier().fit(wide, y)
    np.testing.assert_array_equal(model.constant_features_, [1])
    narrow = OptimisticScoreClassifier().fit(X, y)
    np.testing.assert_array_equal(
        model.decision_function(wide), narrow.decision_function(X)
    )
    means, covariances = model.most_plausible_moments(wide[0])
    assert means.shape == (2, 4)
    np.testing.assert_array_equal(covariances[:, 1], 0.0)
    np.testing.assert_array_equal(means[:, 1], 7.0)


def test_all_features_constant_is_an_error():
    with pytest.raises(DegenerateDataError, match="all features are constant"):
        OptimisticScoreClassifier().fit(np.ones((6, 2)), [0, 1, 0, 1, 0, 1])


def test_feature_constant_inside_a_class_gets_the_documented_variance():
    X, y = two_classes(2)
    X[y == 0, 1] = 0.5
    with pytest.warns(PrudentWarning, match="class 0: 1 feature"):
        model = OptimisticScoreClassifier().fit(X, y)
    assert model.covariances_[0, 1, 1] == pytest.approx(1e-9 * X[:, 1].var())
    assert model.covariances_[0, 0, 1] == 0.0
    ((label, features),) = model.floored_features_
    assert label == 0
    np.testing.assert_array_equal(features, [1])


def test_covariance_estimator_skips_features_constant_inside_a_class():
    X, y = two_classes(3)
    X[y == 1, 2] = 4.0
    model = OptimisticScoreClassifier(covariance=LedoitWolf())
    with pytest.warns(PrudentWarning, match="class 1: 1 feature"):
        model.fit(X, y)
    expected = ledoit_wolf(StandardScaler().fit_transform(X[y == 1, :2]))[0]
    scale = X[y == 1, :2].std(axis=0)
    np.testing.assert_allclose(
        model.covariances_[1][:2, :2], expected * np.outer(scale, scale)
    )


def test_equal_rows_in_a_class_are_floored_not_refused():
    X, y = two_classes(2)
    X[y == 0] = [0.1, 0.2]
    with pytest.warns(PrudentWarning, match="class 0: 2 feature"):
        model = OptimisticScoreClassifier().fit(X, y)
    assert model.score(X, y) == 1.0


def test_equal_rows_in_a_class_have_an_estimated_radius_of_zero():
    X, y = two_classes(2)
    X[y == 0] = [0.1, 0.2]
    with pytest.warns(PrudentWarning):
        model = OptimisticScoreClassifier(radius="bootstrap", random_state=0).fit(X, y)
    assert model.radii_[0] == 0.0


def test_class_with_one_row_is_an_error_that_names_it():
    X, y = two_classes(2, n=7)
    labels = np.array(["benign", "malignant"])[y]
    labels[0] = "rare"
    with pytest.raises(
        DegenerateDataError, match="class 'rare' has a total weight of 1"
    ):
        OptimisticScoreClassifier().fit(X, labels)


def test_one_class_only_is_an_error():
    with pytest.raises(ValueError, match="one class: 1"):
        OptimisticScoreClassifier().fit([[0.0], [1.0]], [1, 1])


def test_empirical_covariance_with_too_few_rows_names_counts_and_remedy():
    X, y = two_classes(5, n=8)
    with pytest.raises(DegenerateDataError, match="4 rows for 5 features.*ledoit_wolf"):
        OptimisticScoreClassifier(covariance="empirical").fit(X, y)


def test_collinear_features_are_floored_and_warned():
    X, y = two_classes(2, n=60)
    X = np.column_stack([X, X.sum(axis=1)])
    with pytest.warns(PrudentWarning, match="condition number"):
        model = OptimisticScoreClassifier(covariance="empirical").fit(X, y)
    np.testing.assert_array_equal(model.n_floored_eigenvalues_, 1)
    assert np.isfinite(model.decision_function(X)).all()


def test_a_row_at_astronomic_distance_is_an_error_not_a_nan(iris):
    model = OptimisticScoreClassifier().fit(*iris)
    with pytest.raises(ValueError, match="1e50 standard deviations"):
        model.predict(np.full((1, 4), 1e60))


def test_untuned_ratio_with_unequal_radii_warns(iris):
    X, y = iris
    with pytest.warns(PrudentWarning, match="differ by more than a factor of 2"):
        OptimisticScoreClassifier(radius=[0.1, 0.1, 0.3], threshold="bayes").fit(X, y)


@pytest.mark.parametrize(
    "settings", [{}, {"rule": "minimax"}, {"threshold": "bayes", "radius": 0.2}]
)
def test_healthy_data_give_no_warning(settings):
    X, y = load_wine(return_X_y=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        OptimisticScoreClassifier(**settings).fit(X, y).predict_set(X)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"likelihood": "laplace"}, "laplace"),
        ({"rule": "maximin"}, "maximin"),
        ({"radius": -1.0}, "-1.0"),
        ({"radius": np.nan}, "nan"),
        ({"radius": np.inf}, "inf"),
        ({"radius": [0.1, -0.5, 0.1]}, "-0.5"),
        ({"radius": [0.1, 0.5]}, r"shape \(2,\)"),
        ({"radius": [0.1, "wide", 0.2]}, r"3 classes, got \[0.1, 'wide'"),
        ({"radius_level": 1.0}, "1.0"),
        ({"radius_scale": -0.1}, "-0.1"),
        ({"covariance": "shrunk"}, "shrunk"),
        ({"covariance": 1.5}, "1.5"),
        ({"threshold": 0.0}, "0.0"),
        ({"threshold": 2.0}, "two classes only, got 2.0 for 3 classes"),
        ({"priors": [0.5, 0.4]}, r"3 numbers >= 0 that sum to 1, .* got \[0.5, 0.4\]"),
        ({"priors": [0.5, 0.4, 0.2]}, "sum to 1"),
        ({"rule": "minimax", "likelihood": "nonparametric"}, "likelihood='gaussian'"),
        ({"ball": "means"}, "means"),
        ({"ball": "covariance", "likelihood": "nonparametric"}, "needs likelihood="),
        ({"ball": "covariance", "radius": "moments"}, "got radius='moments'"),
        ({"ball": "covariance", "radius": 501.0}, r"lie in \[0, 500\], got 501"),
    ],
)
def test_bad_settings_are_errors_with_the_value(iris, settings, message):
    with pytest.raises(ValueError, match=message):
        OptimisticScoreClassifier(**settings).fit(*iris)


# -- as a citizen of scikit-learn --------------------------------------------------


def test_works_in_pipeline_and_grid_search(iris):
    X, y = iris
    search = GridSearchCV(
        make_pipeline(StandardScaler(), OptimisticScoreClassifier(threshold="bayes")),
        {"optimisticscoreclassifier__radius": [0.0, 0.1, 1.0]},
        cv=3,
    ).fit(X, y)
    assert search.score(X, y) > 0.95
    assert prudent.predict_set(search, X).shape == (150, 3)


def test_frames_and_string_labels(iris):
    X, y = iris
    frame = pd.DataFrame(X, columns=list("abcd"))
    labels = np.array(["setosa", "versicolor", "virginica"])[y]
    model = OptimisticScoreClassifier().fit(frame, labels)
    np.testing.assert_array_equal(model.feature_names_in_, list("abcd"))
    assert model.score(frame, labels) > 0.97


def test_pickle_keeps_decisions(iris):
    X, y = iris
    model = OptimisticScoreClassifier().fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(
        again.decision_function(X), model.decision_function(X)
    )


def test_float32_rows_give_the_scores_of_their_values():
    X, y = make_blobs(300, 4, centers=3, random_state=0)
    X32 = X.astype(np.float32)
    narrow = OptimisticScoreClassifier().fit(X32, y)
    wide = OptimisticScoreClassifier().fit(X32.astype(np.float64), y)
    np.testing.assert_allclose(
        narrow.optimistic_scores(X32), wide.optimistic_scores(X32.astype(float))
    )


@pytest.mark.parametrize("data", ["iris", "binary"])
def test_proba_agrees_with_predict(data, request):
    X, y = request.getfixturevalue(data)
    model = OptimisticScoreClassifier().fit(X, y)
    proba = model.predict_proba(X)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    np.testing.assert_array_equal(proba.argmax(axis=1), model.predict(X))


def peak_memory_beside_output(function, X):
    tracemalloc.start()
    output = function(X)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    parts = output if isinstance(output, tuple) else (output,)
    return peak - sum(part.nbytes for part in parts)


@pytest.mark.parametrize(
    "method", ["scores", "decision", "probabilities", "sets", "posterior_bounds"]
)
def test_memory_of_scoring_does_not_grow_with_the_rows(method):
    X, y = two_classes(5, n=999)
    y[::3] = 2
    # below the estimator: scikit-learn's check of the rows has its own needs
    function = getattr(OptimisticScoreClassifier().fit(X, y)._model, method)
    if method == "scores":
        function = partial(function, end="upper")
    few, many = np.tile(X, (40, 1)), np.tile(X, (160, 1))
    function(many)  # load the kernel
    small, large = (peak_memory_beside_output(function, rows) for rows in (few, many))
    assert large <= 1.2 * small


@pytest.mark.parametrize("impossible", [0, 1, 2])
@pytest.mark.parametrize(
    "settings", [{"threshold": "bayes"}, {"rule": "minimax"}, {"threshold": "tuned"}]
)
def test_a_prior_of_zero_rules_a_class_out(iris, impossible, settings):
    X, y = iris
    priors = np.full(3, 0.5)
    priors[impossible] = 0.0
    model = OptimisticScoreClassifier(priors=priors, radius=0.1, **settings).fit(X, y)
    lower, upper = model.posterior_bounds(X)
    assert (upper[:, impossible] == 0).all()
    assert np.isfinite(lower).all()
    probabilities = model.predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    if settings != {"threshold": "tuned"}:  # which knows no priors
        assert (model.predict(X) != impossible).all()
        assert not model.predict_set(X)[:, impossible].any()
        assert (probabilities[:, impossible] == 0).all()


@pytest.mark.parametrize("impossible", [0, 1])
def test_a_prior_of_zero_of_two_classes(impossible):
    X, y = two_classes(2)
    priors = [1.0, 1.0]
    priors[impossible] = 0.0
    model = OptimisticScoreClassifier(priors=priors, threshold="bayes", radius=0.1)
    model.fit(X, y)
    assert (model.predict(X) == 1 - impossible).all()
    assert (model.predict_proba(X)[:, 1 - impossible] == 1).all()
    assert not model.predict_set(X)[:, impossible].any()
