"""The classifier: attributes, sets, seams, degenerate data and messages."""

import math
import warnings

import numpy as np
import pytest
from scipy.stats import chi2, norm
from sklearn.covariance import LedoitWolf
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from prudent import ClassMoments, MinimaxProbabilityClassifier, predict_set
from prudent.exceptions import DegenerateDataError, PrudentWarning

MEANS = [[-1, 0], [1, 2]]
COVARIANCES = [[[1, -0.3], [-0.3, 3]], [[2, 0.5], [0.5, 1]]]
THREE = (
    [[0, 0], [3, 0], [0, 4]],
    [np.eye(2), np.diag([1, 2]), np.diag([2, 1])],
    [1, 1, 1],
)


def reference(**params):
    return MinimaxProbabilityClassifier.from_moments(
        MEANS, COVARIANCES, [100, 100], **params
    )


def blobs(n=60, n_features=3, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    X = rng.normal(size=(n, n_features)) + 2.0 * y[:, None] * np.eye(n_features)[0]
    X[:, 1] += 1.5 * (y == 2)
    return X, y


def test_reference_plane_through_the_moment_seam():
    model = reference()
    np.testing.assert_allclose(model.coef_, [[0.29890693576178, 0.20109306423822]])
    np.testing.assert_allclose(model.intercept_, [-0.14266269194327])
    assert model.kappa_ == pytest.approx(1.0567745822556, rel=1e-12)
    assert model.worst_case_accuracy_ == pytest.approx(0.5275826799349, rel=1e-12)
    assert model.worst_case_error_ == pytest.approx(1 - 0.5275826799349, rel=1e-12)
    assert model.gaussian_accuracy_ == pytest.approx(0.85469276137923, rel=1e-12)
    assert model.duality_gap_ <= 1e-9 * model.kappa_
    np.testing.assert_allclose(model.class_worst_case_error_, 0.4724173200651)


def test_gaussian_accuracy_is_that_of_normal_classes_with_the_moments():
    model = reference()
    for side, mean, S in zip((-1, 1), MEANS, COVARIANCES, strict=True):
        a, score = model.coef_[0], model.decision_function([mean])[0]
        accuracy = norm.cdf(side * score / math.sqrt(a @ S @ a))
        assert model.gaussian_accuracy_ == pytest.approx(accuracy, rel=1e-9)


def test_covariance_radius_is_the_plane_of_covariances_with_rho_added():
    rho = np.array([0.4, 0.2])
    wider = COVARIANCES + rho[:, None, None] * np.eye(2)
    plain = MinimaxProbabilityClassifier.from_moments(MEANS, wider, [100, 100])
    robust = reference(covariance_radius=rho)
    assert robust.kappa_ == pytest.approx(plain.kappa_, rel=1e-12)
    np.testing.assert_allclose(robust.coef_, plain.coef_, rtol=1e-12)
    np.testing.assert_allclose(robust.intercept_, plain.intercept_, rtol=1e-12)


def test_radii_are_in_the_order_of_the_classes():
    # Class 1 is positive: the reference gives (positive, negative).
    model = reference(mean_radius=[0.05, 0.3], covariance_radius=[0.4, 0.2])
    assert model.kappa_ == pytest.approx(0.79171795328401, rel=1e-12)
    np.testing.assert_allclose(model.mean_radius_, [0.05, 0.3])
    np.testing.assert_allclose(model.covariance_radius_, [0.4, 0.2])
    np.testing.assert_allclose(model.covariances_, COVARIANCES)
    model = reference(mean_radius=0.1, covariance_factor=[1.2, 1.5])
    assert model.kappa_ == pytest.approx(0.80524885934233, rel=1e-12)
    np.testing.assert_allclose(model.covariance_factor_, [1.2, 1.5])


def test_scores_of_the_means_lie_one_apart():
    model = reference(mean_radius=0.1)
    scores = model.decision_function(MEANS)
    assert scores[1] - scores[0] == pytest.approx(1)


@pytest.mark.parametrize(
    ("costs", "value", "kappas"),
    [
        ([[0, 1], [2, 0]], 0.68854916176901, (0.6725541782121, 1.3800935639518)),
        ([[0, 3], [1, 0]], 0.7597195438012, (1.7172144950102, 0.5623835055290)),
        ([[5, 6], [3, 1]], 0.68854916176901, (0.6725541782121, 1.3800935639518)),
    ],
)
def test_cost_reference(costs, value, kappas):
    model = reference(objective="cost", costs=costs)
    errors = model.class_worst_case_error_
    weights = np.array([costs[0][1] - costs[0][0], costs[1][0] - costs[1][1]])
    np.testing.assert_allclose(weights * errors, value, rtol=1e-10)
    np.testing.assert_allclose(np.sqrt(1 / errors - 1), kappas, rtol=1e-9)
    assert model.kappa_ == pytest.approx(min(kappas), rel=1e-9)
    assert model.worst_case_error_ == errors.max()


def test_mean_reference():
    model = reference(objective="mean", priors=[0.5, 0.5])
    assert model.worst_case_accuracy_ == pytest.approx(0.53103471536177, rel=1e-10)
    kappas = np.sqrt(1 / model.class_worst_case_error_ - 1)
    np.testing.assert_allclose(kappas, [1.19801347, 0.94682604], rtol=1e-7)


def test_mean_objective_reports_when_the_trivial_rule_is_better():
    with pytest.warns(PrudentWarning, match="always predicting one class"):
        model = reference(objective="mean", priors=[0.7, 0.3])
    assert model.worst_case_accuracy_ == pytest.approx(0.60441107461283, rel=1e-10)
    assert model.guarantees_[0].evidence["trivial_bound"] == pytest.approx(0.7)


def test_three_class_reference():
    model = MinimaxProbabilityClassifier.from_moments(*THREE)
    np.testing.assert_allclose(model.kappa_, [1.5, 2, 2.04372759289], rtol=1e-10)
    np.testing.assert_allclose(
        model.coef_,
        [[1 / 3, 0], [0, 0.25], [-0.11734597, 0.16199052]],
        atol=1e-8,
    )
    np.testing.assert_allclose(model.intercept_, [-0.5, -0.5, -0.17400636], rtol=1e-7)
    np.testing.assert_allclose(
        model.class_worst_case_error_, [0.5076923077, 0.5008609947, 0.3931686870]
    )
    assert model.worst_case_accuracy_ == pytest.approx(1 - 0.5076923077)


def test_exact_bound_reference():
    model = MinimaxProbabilityClassifier.from_moments(*THREE, bound="exact")
    np.testing.assert_allclose(
        model.class_worst_case_error_, [0.497766, 0.450233, 0.321990], atol=1e-6
    )


def test_three_class_prediction_is_the_argmax_of_the_decision():
    X, y = blobs(n_classes=3)
    model = MinimaxProbabilityClassifier().fit(X, y)
    decision = model.decision_function(X)
    assert decision.shape == (60, 3)
    np.testing.assert_array_equal(model.predict(X), decision.argmax(axis=1))
    # Duels won differ from the decision by a tie-break in (-1/2, 1/2).
    won = np.rint(decision)
    np.testing.assert_array_equal(won.sum(axis=1), 3)


def test_tie_break_cannot_overrule_a_duel():
    model = MinimaxProbabilityClassifier.from_moments(*THREE)
    far = model.decision_function([[1e300, 0.0], [0.0, 1e300], [-1e300, -1e300]])
    np.testing.assert_array_equal(far.argmax(axis=1), [1, 2, 0])
    assert (np.abs(far - np.rint(far)) < 0.5).all()


def test_p_values_meet_at_the_plane():
    model = reference()
    on_plane = -model.intercept_[0] * model.coef_ / (model.coef_ @ model.coef_.T)
    p = model.worst_case_p_values(on_plane)
    np.testing.assert_allclose(p, 1 - model.worst_case_accuracy_, rtol=1e-12)


def test_p_values_are_one_behind_the_mean_and_fall_beyond_it():
    model = reference()
    line = np.linspace(-3, 3, 7)[:, None] * np.ones(2)
    p = model.worst_case_p_values(np.vstack([MEANS, line]))
    assert p[0, 0] == p[1, 1] == 1
    assert (np.diff(p[2:, 0]) <= 0).all()
    assert (np.diff(p[2:, 1]) >= 0).all()


def test_robust_p_values_subtract_the_radius():
    model = reference(mean_radius=0.1, covariance_factor=1.5)
    z = np.array([[0.5, 1.0]])
    a = model.coef_[0]
    for k, side in ((0, -1), (1, 1)):
        deviation = math.sqrt(1.5 * a @ np.array(COVARIANCES[k]) @ a)
        distance = max(0, side * (a @ (MEANS[k] - z[0])) / deviation - 0.1)
        wanted = 1 / (1 + distance**2)
        assert model.worst_case_p_values(z)[0, k] == pytest.approx(wanted, rel=1e-12)


def test_set_is_never_empty_and_falls_back_to_the_prediction():
    X, y = blobs(n_classes=3)
    model = MinimaxProbabilityClassifier().fit(X, y)
    sets = model.predict_set(X, level=0.999)
    assert sets.any(axis=1).all()
    alone = (model.worst_case_p_values(X) <= 0.999).all(axis=1)
    assert alone.any()
    np.testing.assert_array_equal(sets[alone].argmax(axis=1), model.predict(X)[alone])


def test_default_level_is_one_minus_confidence():
    X, y = blobs()
    model = MinimaxProbabilityClassifier(confidence=0.8).fit(X, y)
    np.testing.assert_array_equal(
        model.predict_set(X), model.worst_case_p_values(X) > 0.2
    )


@pytest.mark.parametrize("level", [0.0, 1.0, -0.1, np.nan])
def test_level_outside_the_unit_interval_is_refused(level):
    with pytest.raises(ValueError, match="`level` must lie in"):
        reference().predict_set(MEANS, level=level)


def test_frontier_reference():
    frontier = reference().pareto_frontier(5)
    np.testing.assert_allclose(frontier.s, [0, 0.25, 0.5, 0.75, 1])
    np.testing.assert_allclose(
        frontier.kappas[[1, 3]],
        [[0.51067294217369, 1.5341884215934], [1.5319890028227, 0.69694166421716]],
        rtol=1e-12,
    )
    np.testing.assert_allclose(frontier.errors, 1 / (1 + frontier.kappas**2))


def test_frontier_runs_from_one_class_to_the_other():
    frontier = reference().pareto_frontier()
    d = np.array([2, 2])
    assert frontier.kappas[0, 1] ** 2 == pytest.approx(
        d @ np.linalg.solve(COVARIANCES[1], d)
    )
    assert frontier.kappas[0, 0] == frontier.kappas[-1, 1] == 0
    assert frontier.kappas[-1, 0] ** 2 == pytest.approx(
        d @ np.linalg.solve(COVARIANCES[0], d)
    )


def test_frontier_refuses_more_classes_and_too_few_points():
    with pytest.raises(ValueError, match="2 classes, got 3"):
        MinimaxProbabilityClassifier.from_moments(*THREE).pareto_frontier()
    with pytest.raises(ValueError, match="`n_points` must be >= 2"):
        reference().pareto_frontier(1)


def test_separable_classes_have_no_frontier():
    zero = np.zeros((2, 2, 2))
    with pytest.warns(PrudentWarning, match="kappa is infinite"):
        model = MinimaxProbabilityClassifier.from_moments(MEANS, zero, [1, 1])
    with pytest.raises(DegenerateDataError, match="no trade-off"):
        model.pareto_frontier()


@pytest.mark.parametrize("label", [0, 1])
def test_least_favourable_rows_have_the_moments_of_the_class(label):
    rows = reference().least_favourable(label, 200_000, random_state=0)
    np.testing.assert_allclose(rows.mean(axis=0), MEANS[label], atol=0.03)
    np.testing.assert_allclose(np.cov(rows.T), COVARIANCES[label], atol=0.06)


@pytest.mark.parametrize("label", [0, 1])
@pytest.mark.parametrize(
    "params",
    [
        {},
        {"mean_radius": 0.1, "covariance_radius": [0.4, 0.2]},
        {"covariance_factor": [1.2, 1.5]},
        {"objective": "cost", "costs": [[0, 1], [2, 0]]},
    ],
)
def test_least_favourable_rows_attain_the_bound(params, label):
    model = reference(**params)
    n = 100_000
    rows = model.least_favourable(label, n, random_state=1)
    errors = np.count_nonzero(model.predict(rows) != label)
    bound = model.class_worst_case_error_[label]
    assert abs(errors - n * bound) <= 4 * math.sqrt(n * bound * (1 - bound))


def test_least_favourable_refuses_unknown_labels_and_hopeless_classes():
    with pytest.raises(ValueError, match="`class_label` must be one of"):
        reference().least_favourable("ill", 10)
    with pytest.warns(PrudentWarning, match="kappa is infinite"):
        model = MinimaxProbabilityClassifier.from_moments(
            MEANS, np.zeros((2, 2, 2)), [1, 1]
        )
    with pytest.raises(ValueError, match="no rows are drawn where the bound is 0 or 1"):
        model.least_favourable(0, 10)
    with pytest.warns(PrudentWarning, match="at least one class is 1"):
        beyond = reference(mean_radius=5)
    assert beyond.class_worst_case_error_[0] == 1
    with pytest.raises(ValueError, match="no rows are drawn where the bound is 0 or 1"):
        beyond.least_favourable(0, 10)


def test_fit_equals_fit_from_its_moments():
    X, y = blobs()
    fitted = MinimaxProbabilityClassifier().fit(X, y)
    other = MinimaxProbabilityClassifier().fit_moments(ClassMoments.from_arrays(X, y))
    np.testing.assert_array_equal(fitted.coef_, other.coef_)
    np.testing.assert_array_equal(fitted.intercept_, other.intercept_)


def test_partial_fit_in_two_batches_equals_one_fit():
    X, y = blobs()
    whole = MinimaxProbabilityClassifier().fit(X, y)
    parts = MinimaxProbabilityClassifier()
    parts.partial_fit(X[:25], y[:25], classes=[0, 1]).partial_fit(X[25:], y[25:])
    np.testing.assert_allclose(parts.coef_, whole.coef_, rtol=1e-10)
    np.testing.assert_allclose(parts.intercept_, whole.intercept_, rtol=1e-10)


def test_class_declared_but_not_seen_has_its_column_and_is_never_predicted():
    X, y = blobs()
    model = MinimaxProbabilityClassifier().partial_fit(X, y, classes=[-1, 0, 1])
    assert model.decision_function(X).shape == (60, 3)
    assert np.isneginf(model.decision_function(X)[:, 0]).all()
    assert not model.predict_set(X)[:, 0].any()
    assert set(model.predict(X)) == {0, 1}
    assert model.class_worst_case_error_[0] == 1
    two = MinimaxProbabilityClassifier().fit(X, y)
    np.testing.assert_array_equal(model.predict(X), two.predict(X))
    np.testing.assert_allclose(model.worst_case_accuracy_, two.worst_case_accuracy_)


@pytest.mark.filterwarnings("ignore:.*may lie on the wrong side")
def test_partial_fit_waits_until_every_class_has_rows_for_its_radii():
    y = np.tile([0, 1], 40)
    X = np.random.default_rng(0).normal(size=(80, 4)) + 4 * y[:, None]
    whole = MinimaxProbabilityClassifier(uncertainty="gaussian").fit(X, y)
    model = MinimaxProbabilityClassifier(uncertainty="gaussian")
    for start in range(0, 80, 10):  # the first batches have five rows a class
        batch = slice(start, start + 10)
        model.partial_fit(X[batch], y[batch], classes=[0, 1])
    assert [g.bound for g in model.guarantees_] == pytest.approx(
        [g.bound for g in whole.guarantees_]
    )


@pytest.mark.parametrize(
    "params",
    [
        {"kernel": "rbf"},
        {"uncertainty": "bootstrap"},
        {"covariance": LedoitWolf()},
    ],
)
def test_moment_methods_are_absent_when_rows_are_needed(params):
    model = MinimaxProbabilityClassifier(**params)
    assert not hasattr(model, "fit_moments")
    assert not hasattr(model, "partial_fit")
    with pytest.raises(ValueError, match="needs the rows"):
        MinimaxProbabilityClassifier.from_moments(MEANS, COVARIANCES, [9, 9], **params)


def test_integer_weights_equal_repeated_rows():
    X, y = blobs()
    weight = np.arange(60) % 3
    weighted = MinimaxProbabilityClassifier().fit(X, y, sample_weight=weight)
    repeated = MinimaxProbabilityClassifier().fit(
        X.repeat(weight, axis=0), y.repeat(weight)
    )
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-10)


def test_weights_that_add_up_to_the_rows_leave_no_confidence():
    """The heavy row of a class stands for few draws, whatever the weights sum to."""
    y = np.repeat([0, 1], 40)
    X = np.random.default_rng(0).normal(size=(80, 2)) + 4 * y[:, None]
    weight = np.tile([0.5, 1.5], 40)
    model = MinimaxProbabilityClassifier(uncertainty="gaussian")
    assert model.fit(X, y).guarantees_[0].confidence == 0.95
    by_rows = model.fit(X, y, sample_weight=weight).guarantees_
    halves = [
        ClassMoments.from_arrays(X[part], y[part], weight[part])
        for part in (slice(None, 50), slice(50, None))
    ]
    assert (halves[0] + halves[1]).weight.tolist() == np.bincount(y).tolist()
    by_moments = model.fit_moments(halves[0] + halves[1]).guarantees_
    model = MinimaxProbabilityClassifier(uncertainty="gaussian")
    model.partial_fit(X[:50], y[:50], sample_weight=weight[:50])
    by_parts = model.partial_fit(X[50:], y[50:]).guarantees_
    for guarantees in (by_rows, by_moments, by_parts):
        assert [g.confidence for g in guarantees] == [None, None]


def test_covariance_estimator_is_fitted_per_class():
    X, y = blobs()
    model = MinimaxProbabilityClassifier(covariance=LedoitWolf()).fit(X, y)
    for k in (0, 1):
        wanted = LedoitWolf().fit(X[y == k]).covariance_
        np.testing.assert_allclose(model.covariances_[k], wanted)
    weight = np.full(60, 2.0)
    doubled = MinimaxProbabilityClassifier(covariance=LedoitWolf()).fit(X, y, weight)
    wanted = LedoitWolf().fit(X[y == 0].repeat(2, axis=0)).covariance_
    np.testing.assert_allclose(doubled.covariances_[0], wanted)


def test_covariance_estimator_refuses_fractional_weights():
    X, y = blobs()
    with pytest.raises(ValueError, match="LedoitWolf takes no weights"):
        MinimaxProbabilityClassifier(covariance=LedoitWolf()).fit(
            X, y, np.full(60, 0.5)
        )


@pytest.mark.parametrize("covariance", ["ledoit_wolf", "oas", 0.3, 1])
def test_shrunk_covariances_are_those_of_the_moments(covariance):
    X, y = blobs()
    model = MinimaxProbabilityClassifier(covariance=covariance).fit(X, y)
    moments = ClassMoments.from_arrays(X, y, fourth=True)
    if isinstance(covariance, str):
        wanted = moments.covariance(covariance)
    else:
        wanted = moments.covariance(shrinkage=covariance)
    np.testing.assert_allclose(model.covariances_, wanted, rtol=1e-12)


def test_plain_fit_is_labelled_plug_in():
    X, y = blobs()
    guarantees = MinimaxProbabilityClassifier().fit(X, y).guarantees_
    assert [g.scope for g in guarantees] == [0, 1]
    for g in guarantees:
        assert g.quantity == "class error rate"
        assert g.confidence is None
        assert "plug-in" in " ".join(g.assumptions)
        assert g.source == "Lanckriet et al. 2002, Theorem 2"


def test_radii_set_by_hand_stay_plug_in():
    X, y = blobs()
    model = MinimaxProbabilityClassifier(mean_radius=0.1).fit(X, y)
    assert "within the given radii" in str(model.guarantees_[0])
    assert "plug-in" in str(model.guarantees_[0])


def test_given_moments_are_named_in_the_promise():
    assert reference().guarantees_[0].assumptions == (
        "the class means and covariances are exactly those given",
    )
    assert "within the radii" in str(reference(mean_radius=0.1).guarantees_[0])


@pytest.mark.parametrize("uncertainty", ["gaussian", "bootstrap"])
def test_measured_radii_carry_their_confidence(uncertainty):
    X, y = blobs(n=200)
    model = MinimaxProbabilityClassifier(
        uncertainty=uncertainty, confidence=0.9, random_state=0
    ).fit(X, y)
    plain = MinimaxProbabilityClassifier().fit(X, y)
    assert model.worst_case_accuracy_ < plain.worst_case_accuracy_
    assert (model.mean_radius_ > 0).all()
    widened = model.covariance_factor_ > 1, model.covariance_radius_ > 0
    assert widened[uncertainty == "bootstrap"].all()
    for g in model.guarantees_:
        assert g.confidence == 0.9
        assert "plug-in" not in " ".join(g.assumptions)


@pytest.mark.parametrize("uncertainty", ["gaussian", "bootstrap"])
def test_the_radius_of_a_mean_is_that_of_the_limit_theorem(uncertainty):
    X, y = blobs(n=200)
    model = MinimaxProbabilityClassifier(
        uncertainty=uncertainty, confidence=0.9, random_state=0
    ).fit(X, y)
    # Two classes with a mean and a covariance each share the doubt.
    radius = math.sqrt(chi2.isf(0.1 / 4, 3) / 100)
    np.testing.assert_allclose(model.mean_radius_, radius)


def test_gaussian_radii_need_enough_rows():
    X, y = blobs(n=8, n_features=4)
    with pytest.raises(ValueError, match="class 0 has 4: use .*bootstrap"):
        MinimaxProbabilityClassifier(uncertainty="gaussian").fit(X, y)


@pytest.mark.parametrize(
    ("params", "name"),
    [
        ({"covariance": "oas"}, "covariance"),
        ({"covariance": 0.1}, "covariance"),
        ({"mean_radius": 0.1}, "mean_radius"),
        ({"covariance_radius": [0, 0.1]}, "covariance_radius"),
        ({"covariance_factor": 2}, "covariance_factor"),
        ({"kernel": "rbf"}, "kernel"),
    ],
)
def test_uncertainty_refuses_other_sources_of_radii(params, name):
    X, y = blobs()
    with pytest.raises(ValueError, match=f"uncertainty='gaussian'.*`{name}`"):
        MinimaxProbabilityClassifier(uncertainty="gaussian", **params).fit(X, y)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"objective": "cost"}, "`costs`"),
        ({"costs": [[0, 1], [1, 0]]}, "`costs`"),
        ({"objective": "cost", "costs": [[0, 1]]}, r"of shape .* = \(2, 2\)"),
        ({"objective": "cost", "costs": [[0, 0], [1, 0]]}, "must cost more"),
        ({"objective": "cost", "costs": [[0, np.inf], [1, 0]]}, "must be finite"),
        ({"priors": [0.5, 0.6]}, "`priors` must hold 2 numbers >= 0 that sum to 1"),
        ({"priors": [-0.5, 1.5]}, "`priors` must hold 2 numbers >= 0"),
        ({"priors": [0.2, 0.3, 0.5]}, "one for each class"),
        ({"covariance": "lasso"}, "`covariance` must be one of"),
        ({"covariance": 1.5}, "`covariance` must be one of"),
        ({"mean_radius": -0.1}, "`mean_radius` must be finite and >= 0"),
        ({"mean_radius": [0.1, 0.2, 0.3]}, "`mean_radius` must be one number or one"),
        ({"covariance_radius": np.inf}, "`covariance_radius` must be finite"),
        ({"covariance_factor": 0.5}, "`covariance_factor` must be finite and >= 1"),
        ({"bound": "exact", "mean_radius": 0.1}, "bound='exact'.*mean_radius=0.1"),
        ({"bound": "exact", "uncertainty": "gaussian"}, "bound='exact'"),
        ({"kernel": "nonsense"}, "'kernel' parameter"),
        ({"confidence": 1.0}, "'confidence' parameter"),
    ],
)
def test_contradicting_settings_are_refused(params, message):
    X, y = blobs()
    with pytest.raises(ValueError, match=message):
        MinimaxProbabilityClassifier(**params).fit(X, y)


@pytest.mark.filterwarnings("ignore:.*always predicting one class")
def test_classes_of_prior_zero_do_not_matter_to_the_mean():
    X, y = blobs(90, n_classes=3)
    model = MinimaxProbabilityClassifier(objective="mean", priors=[0, 0, 1])
    model.fit(X, y)
    # Only class 2 counts: its planes run through the means of the others.
    gaps = model.means_[2] - model.means_[:2]
    squared = [gap @ np.linalg.solve(model.covariances_[2], gap) for gap in gaps]
    wanted = sum(1 / (1 + np.array(squared)))
    assert model.worst_case_error_ == pytest.approx(wanted, rel=1e-6)
    assert np.isfinite(model.coef_).all()
    assert model.guarantees_[0].evidence["trivial_bound"] == 1


@pytest.mark.filterwarnings("ignore:.*kappa is infinite")
@pytest.mark.parametrize("uncertainty", [None, "gaussian"])
def test_a_null_direction_proves_nothing_unless_the_moments_are_known(uncertainty):
    flat = np.diag([1.0, 0.0])
    model = MinimaxProbabilityClassifier.from_moments(
        [[0, 0], [1, 1]], [flat, flat], [100, 100], uncertainty=uncertainty
    )
    assert model.kappa_ == np.inf
    # Radii from data mean that the moments are estimates, whoever hands them in.
    assert len(model.guarantees_) == (2 if uncertainty is None else 0)


def test_moments_of_variances_alone_are_refused():
    X, y = blobs()
    moments = ClassMoments.from_arrays(X, y, structure="diagonal")
    with pytest.raises(ValueError, match="structure='full'"):
        MinimaxProbabilityClassifier().fit_moments(moments)


def test_one_class_is_refused():
    with pytest.raises(ValueError, match="at least 2 classes are needed"):
        MinimaxProbabilityClassifier().fit([[0.0], [1.0]], ["a", "a"])


def test_coinciding_means_name_the_classes():
    X = [[0.0], [1.0], [0.0], [1.0]]
    with pytest.raises(
        DegenerateDataError, match="class means coincide for 'a' and 'b'"
    ):
        MinimaxProbabilityClassifier().fit(X, ["a", "a", "b", "b"])


def test_labels_of_object_type_are_named_too():
    y = np.array(["a", "a", "b", "b"], dtype=object)
    with pytest.raises(DegenerateDataError, match="for 'a' and 'b'"):
        MinimaxProbabilityClassifier().fit([[0.0], [1.0], [0.0], [1.0]], y)


def test_coinciding_means_may_predict_the_heavier_class():
    X = np.array([[0.0], [1.0], [0.0], [1.0], [0.5]])
    y = ["a", "a", "b", "b", "b"]
    with pytest.warns(PrudentWarning, match="'a' and 'b' coincide"):
        model = MinimaxProbabilityClassifier(on_degenerate="warn").fit(X, y)
    assert set(model.predict(X)) == {"b"}
    assert model.worst_case_accuracy_ == 0
    np.testing.assert_array_equal(model.class_worst_case_error_, [1, 0])
    np.testing.assert_array_equal(model.worst_case_p_values(X), 1)


def test_null_direction_promises_nothing_and_says_what_to_do():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(6, 20)), np.arange(6) % 2
    with pytest.warns(PrudentWarning, match="Set `covariance_radius` > 0"):
        model = MinimaxProbabilityClassifier().fit(X, y)
    assert model.kappa_ == math.inf
    assert model.worst_case_accuracy_ == 1
    assert model.guarantees_ == ()
    np.testing.assert_array_equal(model.predict(X), y)


def test_null_direction_of_given_moments_is_a_proof():
    with pytest.warns(PrudentWarning, match="kappa is infinite"):
        model = MinimaxProbabilityClassifier.from_moments(
            MEANS, np.zeros((2, 2, 2)), [1, 1]
        )
    assert [g.bound for g in model.guarantees_] == [0, 0]


def test_overlapping_uncertainty_sets_are_said():
    with pytest.warns(PrudentWarning, match="at least one class is 1"):
        model = reference(mean_radius=2)
    assert model.worst_case_error_ == 1


def test_a_mean_on_the_wrong_side_leaves_the_promise_of_the_other_class():
    costs = [[0, 1e6], [1, 0]]
    with pytest.warns(PrudentWarning, match="at least one class is 1"):
        model = reference(mean_radius=0.3, objective="cost", costs=costs)
    low, high = (promise.bound for promise in model.guarantees_)
    assert low < 0.5
    assert high == 1


def test_class_of_one_row_is_legal():
    X, y = blobs()
    X, y = np.vstack([X, [[9.0, 9.0, 9.0]]]), np.append(y, 2)
    model = MinimaxProbabilityClassifier().fit(X, y)
    assert model.predict([[9.0, 9.0, 9.0]]) == 2


def test_variance_that_is_added_to_a_class_of_one_row_promises_nothing():
    rng = np.random.default_rng(0)
    x, noise, other = rng.normal(size=(3, 60))
    X = np.vstack([np.column_stack([x, x + 1e-7 * noise, other]), [[0, 1e-7, 1]]])
    y = np.append(np.zeros(60), 1)
    with pytest.warns(PrudentWarning, match="was added to both"):
        model = MinimaxProbabilityClassifier().fit(X, y)
    assert model.covariance_floor_ > 0
    assert [promise.scope for promise in model.guarantees_] == [0]
    with_radius = MinimaxProbabilityClassifier(covariance_radius=0.1).fit(X, y)
    assert [promise.scope for promise in with_radius.guarantees_] == [0, 1]


def test_costs_are_balanced_among_planes_with_each_mean_on_its_own_side():
    """Beyond them a plane that always names the dear class has a smaller product."""
    model = reference(objective="cost", costs=[[0, 1], [100, 0]])
    gap = np.subtract(*MEANS)
    farthest = gap @ np.linalg.solve(COVARIANCES[1], gap)  # with the other mean on it
    products = np.array([1, 100]) * model.class_worst_case_error_
    np.testing.assert_allclose(products, [1, 100 / (1 + farthest)], rtol=1e-6)
    assert products.max() > 1  # of every row of class 0 wrong, at cost 1


def test_constant_feature_is_ignored_and_recorded():
    X, y = blobs()
    with_constant = np.insert(X, 1, 7.0, axis=1)
    with pytest.warns(PrudentWarning, match="constant over all rows"):
        model = MinimaxProbabilityClassifier().fit(with_constant, y)
    plain = MinimaxProbabilityClassifier().fit(X, y)
    np.testing.assert_array_equal(model.constant_features_, [1])
    np.testing.assert_allclose(model.coef_[:, [0, 2, 3]], plain.coef_, rtol=1e-12)
    assert model.coef_[0, 1] == 0


def test_gap_that_cannot_be_certified_is_said():
    rng = np.random.default_rng(3)
    q = np.linalg.qr(rng.normal(size=(30, 30)))[0]
    S = [(q * np.logspace(-e, 0, 30)) @ q.T for e in (12.5, 11.5)]
    S = [(M + M.T) / 2 for M in S]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = MinimaxProbabilityClassifier.from_moments(
            [np.zeros(30), rng.normal(size=30)], S, [1, 1]
        )
    said = [w for w in caught if w.category is ConvergenceWarning]
    assert bool(said) == (model.duality_gap_ > 1e-9 * model.kappa_)
    assert said


def test_attributes_that_only_linear_fits_have():
    X, y = blobs()
    model = MinimaxProbabilityClassifier(kernel="rbf").fit(X, y)
    assert not hasattr(model, "coef_")
    assert not hasattr(model, "pareto_frontier")
    assert not hasattr(model, "least_favourable")


def test_string_labels_frames_and_pipelines():
    import pandas as pd

    X, y = blobs()
    labels = np.array(["no", "yes"])[y]
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    search = GridSearchCV(
        make_pipeline(StandardScaler(), MinimaxProbabilityClassifier()),
        {"minimaxprobabilityclassifier__covariance_radius": [0.0, 0.1]},
        cv=3,
    ).fit(frame, labels)
    assert set(search.predict(frame)) == {"no", "yes"}
    assert predict_set(search, frame).shape == (60, 2)


@pytest.mark.parametrize(("costly", "cheap"), [(0, 1), (1, 0)])
def test_extreme_costs_give_all_the_room_to_one_class(costly, cheap):
    costs = np.zeros((2, 2))
    costs[costly, cheap], costs[cheap, costly] = 1e6, 1.0
    model = reference(objective="cost", costs=costs)
    d = np.array([2, 2])
    most = d @ np.linalg.solve(COVARIANCES[costly], d)
    assert model.class_worst_case_error_[costly] == pytest.approx(1 / (1 + most))
    assert model.class_worst_case_error_[cheap] == pytest.approx(1)


@pytest.mark.parametrize(
    "params", [{"objective": "mean"}, {"objective": "cost", "costs": [[0, 1], [2, 0]]}]
)
def test_every_objective_knows_degenerate_classes(params):
    with pytest.raises(DegenerateDataError, match="class means coincide"):
        MinimaxProbabilityClassifier.from_moments(
            [[0, 0], [0, 0]], COVARIANCES, [1, 1], **params
        )
    with pytest.warns(PrudentWarning, match="kappa is infinite"):
        model = MinimaxProbabilityClassifier.from_moments(
            MEANS, np.zeros((2, 2, 2)), [1, 1], **params
        )
    assert model.worst_case_accuracy_ == 1


@pytest.mark.parametrize(
    "params", [{"objective": "mean"}, {"objective": "cost", "costs": [[0, 1], [2, 0]]}]
)
def test_every_objective_runs_its_plane_beside_a_constant_class(params):
    model = MinimaxProbabilityClassifier.from_moments(
        [[0, 0], [1, 3]], [np.diag([1.0, 0.0]), np.eye(2)], [1, 1], **params
    )
    assert model.class_worst_case_error_[1] == pytest.approx(0.1, rel=1e-6)
    assert model.predict([[5.0, 0.0]]) == 0


def test_the_exact_bound_knows_a_class_that_never_wins_a_duel():
    """Its mean is the mean of another, from which its score does not vary: it loses."""
    X = np.array([-1, 1, -1, -1, 1, 1, 5, 7.0])[:, None]
    y = np.array([0, 0, 1, 1, 1, 1, 2, 2])
    model = MinimaxProbabilityClassifier(on_degenerate="warn", bound="exact")
    with pytest.warns(PrudentWarning):
        model.fit(X, y)
    assert 0 not in model.predict(X)
    np.testing.assert_allclose(model.class_worst_case_error_[:2], [1.0, 0.1])
    assert model.worst_case_accuracy_ == 0
    assert model.guarantees_[0].bound == 1


@pytest.mark.parametrize("seed", range(40))
def test_no_exact_bound_lies_below_the_error_on_the_rows_of_the_fit(seed):
    """The rows are a law with the moments used, also where means coincide."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 5, 3)
    y = np.repeat([0, 1, 2], sizes)
    X = rng.integers(-2, 3, size=(len(y), 1 + seed % 2)).astype(float)
    model = MinimaxProbabilityClassifier(on_degenerate="warn", bound="exact")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model.fit(X, y)
        except DegenerateDataError:
            return
    wrong = model.predict(X) != y
    for k, bound in enumerate(model.class_worst_case_error_):
        assert wrong[y == k].mean() <= bound + 1e-9


@pytest.mark.filterwarnings("ignore::prudent.exceptions.PrudentWarning")
def test_a_floor_that_takes_rounding_away_is_taken_for_the_mean_of_the_errors():
    """Though the larger error, of the other class, is a little smaller without it."""
    model = MinimaxProbabilityClassifier.from_moments(
        [[0.0, 0.0], [0.5, 0.5]],
        [1e-4 * np.array([[1.0, -1.0], [-1.0, 1.0]]), 1e4 * np.eye(2)],
        [75, 25],
        objective="mean",
        priors=[0.75, 0.25],
    )
    assert model.worst_case_accuracy_ > 0.7
    assert model.covariance_floor_ > 0


@pytest.mark.filterwarnings("ignore::prudent.exceptions.PrudentWarning")
def test_the_gaussian_accuracy_of_a_class_that_is_never_answered_is_0():
    X, y = np.array([[0.0], [1.0], [0.0], [1.0], [0.5]]), [0, 0, 1, 1, 1]
    model = MinimaxProbabilityClassifier(on_degenerate="warn").fit(X, y)
    assert len(set(model.predict(X))) == 1
    assert model.gaussian_accuracy_ == 0
