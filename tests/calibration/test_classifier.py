import pickle
import warnings

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from calibration.rows import FAMILIES, overlapping_clouds
from prudent import RiskCalibratedClassifier
from prudent.calibration import DiagonalFamily, PriorStrengths
from prudent.calibration.ascent import deal_folds, dealt_folds
from prudent.exceptions import (
    DegenerateDataError,
    PrudentWarning,
    SingularCovarianceError,
)

IRIS = load_iris(return_X_y=True)


class PoissonFamily:
    """Plug-in: naive Bayes of Poisson counts."""

    def statistics(self, X, Q):
        return [Q.sum(axis=0), Q.T @ X]

    def parameters(self, s):
        return np.log(s[0] / s[0].sum()), s[1] / s[0][:, None]

    def log_joint(self, X, parameters):
        log_priors, rates = parameters
        return log_priors + X @ np.log(rates).T - rates.sum(axis=1)

    def is_valid(self, s):
        return (s[0] > 0) & (s[1] > 0).all(axis=1)


def counts(m=200, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(m) % 2
    return rng.poisson(np.where(y[:, None] == 1, [3.0, 4.0], [2.0, 5.0])), y


# Degenerate inputs, one per row of the specification.


def test_one_class_is_an_error_that_names_it():
    with pytest.raises(ValueError, match="one class: 'only'"):
        RiskCalibratedClassifier().fit([[0.0], [1.0]], ["only", "only"])


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_missing_and_infinite_numbers_are_errors(bad):
    X, y = overlapping_clouds()
    X[2, 1] = bad
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        RiskCalibratedClassifier().fit(X, y)


def test_fewer_rows_than_features_work_by_shrinkage():
    X, y = overlapping_clouds(12, d=8)
    model = RiskCalibratedClassifier().fit(X, y)
    assert np.isfinite(model.predict_proba(X)).all()


def test_collinear_columns_work_by_shrinkage():
    X, y = overlapping_clouds()
    X = np.column_stack([X, X[:, 0] + X[:, 1]])
    assert np.isfinite(RiskCalibratedClassifier().fit(X, y).predict_proba(X)).all()


def test_singular_covariance_without_shrinkage_names_class_and_remedy():
    X, y = overlapping_clouds(12, d=8)
    model = RiskCalibratedClassifier(covariance_prior_strength=0.0, stopping="none")
    with pytest.raises(
        SingularCovarianceError,
        match=r"class 0 \(4 rows\).*`covariance_prior_strength`.*`family='tied'`",
    ):
        model.fit(X, y)


def test_singular_shared_covariance_is_an_error():
    X, y = overlapping_clouds()
    X = np.column_stack([X, X[:, 0] + X[:, 1]])
    model = RiskCalibratedClassifier(family="tied", covariance_prior_strength=0.0)
    with pytest.raises(SingularCovarianceError, match="shared by all classes"):
        model.fit(X, y)


@pytest.mark.parametrize("value", [2.0, np.array([0.3, 0.1 + 0.2])[np.arange(120) % 2]])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_constant_column_changes_nothing(family, value):
    X, y = overlapping_clouds()
    wider = np.insert(X, 1, value, axis=1)
    with pytest.warns(PrudentWarning, match=r"feature\(s\) 1 are constant"):
        model = RiskCalibratedClassifier(family=family, stopping="none").fit(wider, y)
    plain = RiskCalibratedClassifier(family=family, stopping="none").fit(X, y)
    np.testing.assert_array_equal(model.constant_features_, [1])
    np.testing.assert_allclose(
        model.predict_proba(wider), plain.predict_proba(X), atol=1e-12
    )
    spread = model.covariances_ if hasattr(model, "covariances_") else model.variances_
    assert not spread[..., 1].any()


def test_all_columns_constant_predicts_the_class_probabilities():
    with pytest.warns(PrudentWarning, match="constant"):
        model = RiskCalibratedClassifier(stopping="none").fit(
            np.ones((10, 2)), [0] * 6 + [1] * 4
        )
    np.testing.assert_allclose(model.predict_proba([[1.0, 1.0]]), [[0.6, 0.4]])


def test_column_constant_within_a_class_needs_shrinkage():
    X, y = overlapping_clouds()
    X[y == 1, 0] = 0.5
    RiskCalibratedClassifier(family="diag", stopping="none").fit(X, y)
    with pytest.raises(SingularCovarianceError, match="class 1"):
        RiskCalibratedClassifier(family="diag", covariance_prior_strength=0.0).fit(X, y)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(
    ("scale", "offset"),
    [(1.0, 1e8), (1e8, 0.0), (1e-8, 0.0), ([1e-6, 1.0, 1e6], 0.0)],
)
def test_units_do_not_matter(family, scale, offset):
    X, y = overlapping_clouds()
    moved = X * scale + offset
    # The moved rows as standardised data: what rounding to float64 left of them.
    standardised = (moved - offset) / scale
    model, plain = (
        RiskCalibratedClassifier(family=family, stopping="none").fit(rows, y)
        for rows in (moved, standardised)
    )
    np.testing.assert_allclose(model.loss_curve_, plain.loss_curve_, rtol=1e-7)
    np.testing.assert_array_equal(model.predict(moved), plain.predict(standardised))


def test_class_without_weight_vanishes():
    X, y = overlapping_clouds()
    weight = (y != 1).astype(float)
    weighted = RiskCalibratedClassifier().fit(X, y, sample_weight=weight)
    dropped = RiskCalibratedClassifier().fit(X[y != 1], y[y != 1])
    np.testing.assert_array_equal(weighted.classes_, [0, 2])
    np.testing.assert_array_equal(weighted.predict_proba(X), dropped.predict_proba(X))


def test_all_weights_zero_is_an_error():
    X, y = overlapping_clouds()
    with pytest.raises(ValueError, match=r"(?i)sample.weight.*zero"):
        RiskCalibratedClassifier().fit(X, y, sample_weight=np.zeros(len(y)))


def test_class_of_one_row_stops_after_a_few_updates():
    X, y = overlapping_clouds()
    keep = np.concatenate([np.flatnonzero(y != 1), [1]])
    with pytest.warns(PrudentWarning, match="stops after 8 updates"):
        model = RiskCalibratedClassifier().fit(X[keep], y[keep])
    assert model.best_iteration_ == 8


def test_few_evaluations_bound_the_updates_of_a_class_of_one_row():
    X, y = overlapping_clouds()
    keep = np.concatenate([np.flatnonzero(y != 1), [1]])
    with pytest.warns(PrudentWarning, match="stops after 3 updates"):
        RiskCalibratedClassifier(max_iter=4).fit(X[keep], y[keep])


@pytest.mark.parametrize("n_rows", [2, 3, 4])
def test_class_of_few_rows_takes_that_many_folds(n_rows):
    X, y = overlapping_clouds()
    keep = np.concatenate([np.flatnonzero(y != 1), np.flatnonzero(y == 1)[:n_rows]])
    model = RiskCalibratedClassifier(random_state=0).fit(X[keep], y[keep])
    same = RiskCalibratedClassifier(cv=n_rows, random_state=0).fit(X[keep], y[keep])
    np.testing.assert_array_equal(model.loss_curve_, same.loss_curve_)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(
    ("scale", "what"), [(1e160, "overflow: rescale"), (1e-200, "underflows: multiply")]
)
def test_numbers_whose_squares_leave_the_range_are_an_error(family, scale, what):
    X, y = overlapping_clouds()
    with pytest.raises(ValueError, match=f"column 2 .*{what}"):
        RiskCalibratedClassifier(family=family).fit(X * [1, 1, scale], y)
    X[0, 2] = 1e200
    with pytest.raises(ValueError, match="column 2"):
        RiskCalibratedClassifier(family=family).fit(X, y)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("scale", [1e-150, 1e-13, 1e149])
def test_far_scales_give_the_same_answers(family, scale):
    X, y = overlapping_clouds()
    plain, scaled = (
        RiskCalibratedClassifier(family=family, random_state=0).fit(rows, y)
        for rows in (X, X * scale)
    )
    np.testing.assert_allclose(
        scaled.predict_proba(X * scale), plain.predict_proba(X), atol=1e-9
    )
    assert len(scaled.constant_features_) == 0
    spread = "covariances_" if hasattr(plain, "covariances_") else "variances_"
    np.testing.assert_allclose(
        getattr(scaled, spread) / scale / scale, getattr(plain, spread), rtol=1e-6
    )


@pytest.mark.parametrize("family", FAMILIES)
def test_rows_at_any_distance_have_probabilities(family):
    X, y = overlapping_clouds()
    model = RiskCalibratedClassifier(family=family, stopping="none").fit(X, y)
    far = np.array([[1e308, 0, 0], [-1e308, 1e200, 0], [1e160, 1e160, 1e160]])
    H = model.predict_proba(far)
    np.testing.assert_allclose(H.sum(axis=1), 1)
    assert np.isfinite(model.decision_function(far)).all()


@pytest.mark.parametrize("costs", [None, [[0, 1], [1, 0]]])
@pytest.mark.parametrize("family", [*FAMILIES, "categorical"])
def test_ties_do_not_depend_on_the_batch(family, costs):
    """Classes that mirror each other: the answers to the rows between are ties."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        d = rng.integers(1, 12)
        half = rng.integers(-3, 4, (20, d))
        scale = 10.0 ** rng.integers(-3, 4, d)
        X, y = np.concatenate([half, -half]) * scale, np.repeat([0, 1], 20)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrudentWarning)
            model = RiskCalibratedClassifier(
                family=family, stopping="none", max_iter=9, costs=costs
            ).fit(X, y)
        rows = np.concatenate([X, np.zeros((5, d)), rng.integers(-3, 4, (60, d))])
        one_by_one = np.concatenate([model.predict(row[None]) for row in rows])
        np.testing.assert_array_equal(model.predict(rows), one_by_one)


@pytest.mark.parametrize("seed", range(20))
def test_a_fold_that_takes_all_rows_of_a_class_does_not_decide(seed):
    """Each of three groups holds rows of class 1, two of them class 0 as well."""
    groups = np.repeat([0, 1, 2], [6, 6, 2])
    y = np.array([0] * 5 + [1] + [0] * 5 + [1, 1, 1])
    X = np.random.default_rng(seed).normal(size=(14, 2))
    pairs = dealt_folds(X, y, 5, seed, groups)
    assert all(set(y[fit]) == {0, 1} for fit, _ in pairs)
    model = RiskCalibratedClassifier(family="diag", max_iter=4, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert model.fit(X, y, groups=groups).n_iter_ >= 0
    everything = np.repeat([0, 1], 7)  # no fold can learn from both classes
    assert dealt_folds(X, everything, 5, seed, everything) == []


def test_groups_share_a_fold():
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(30), 6)
    y = rng.integers(0, 2, 30)[group]
    X = 5 * rng.normal(size=(30, 2))[group] + 0.01 * rng.normal(size=(180, 2))
    fold = deal_folds(group, y, 5, np.random.RandomState(0))
    assert all(len(set(fold[group == g])) == 1 for g in range(30))
    settings = {"learning_rate": 1.0, "max_iter": 30, "random_state": 0}
    apart = RiskCalibratedClassifier(**settings).fit(X, y, groups=group)
    mixed = RiskCalibratedClassifier(**settings).fit(X, y)
    # Rows of the same group in both parts hide that the labels are coins.
    assert apart.best_iteration_ < mixed.best_iteration_


def test_a_class_in_one_group_cannot_be_validated():
    X, y = overlapping_clouds(60)
    group = np.where(y == 1, 100, np.arange(60))
    with pytest.warns(PrudentWarning, match="stops after 8 updates"):
        RiskCalibratedClassifier().fit(X, y, groups=group)


@pytest.mark.parametrize("stopping", ["cv", "holdout"])
def test_groups_must_match_the_rows(stopping):
    X, y = overlapping_clouds(60)
    model = RiskCalibratedClassifier(stopping=stopping)
    with pytest.raises(ValueError, match="one label for each of the 60 rows, got 59"):
        model.fit(X, y, groups=np.arange(59))
    with pytest.raises(ValueError, match="at least 2 groups"):
        model.fit(X, y, groups=np.zeros(60))


def test_repeated_rows_on_both_sides_are_warned_about():
    X, y = overlapping_clouds(60)
    model = RiskCalibratedClassifier(stopping="holdout", max_iter=2, random_state=0)
    with pytest.warns(PrudentWarning, match="stand among the rows learned from"):
        model.fit(np.repeat(X, 2, axis=0), np.repeat(y, 2))


def test_no_seed_is_fresh_randomness():
    X, y = overlapping_clouds()
    model = RiskCalibratedClassifier(stopping="holdout", max_iter=3)
    curves = {model.fit(X, y).loss_curve_[0] for _ in range(5)}
    assert len(curves) > 1


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("family", "quadratic"),
        ("learning_rate", 0.0),
        ("max_iter", 0),
        ("stopping", "early"),
        ("validation_fraction", 1.0),
        ("guard", "stop"),
        ("step", "big"),
        ("loss", "hinge"),
        ("generative_weight", -1.0),
        ("class_prior_strength", -1.0),
        ("mean_prior_strength", -1.0),
        ("covariance_prior_strength", "none"),
        ("level_prior_strength", -1.0),
        ("batch_size", 0),
        ("method", "newton"),
        ("costs", [[0.0, 1.0], [1.0, 0.0]]),
        ("cv", 1),
    ],
)
def test_bad_setting_is_named_with_its_value(setting, value):
    with pytest.raises(ValueError, match=setting) as error:
        RiskCalibratedClassifier(**{setting: value}).fit(*IRIS)
    assert str(value) in str(error.value)


def test_gradient_descent_needs_a_tied_family():
    with pytest.raises(ValueError, match="'tied' or 'tied_diag', got 'full'"):
        RiskCalibratedClassifier(method="gd").fit(*IRIS)


# Stopping by held-out rows.


def test_holdout_promises_an_error_rate():
    X, y = overlapping_clouds(300)
    model = RiskCalibratedClassifier(stopping="holdout", random_state=0).fit(X, y)
    (promise,) = model.guarantees_
    assert (promise.quantity, promise.sense) == ("error rate", "<=")
    assert promise.confidence == 0.95
    assert promise.evidence["calibration rows"] == 60
    assert promise.evidence["claims"] == 64
    assert promise.evidence["pointwise level"] == pytest.approx(0.05 / 64)
    from scipy.stats import beta

    wrong = promise.evidence["wrong"]
    assert promise.bound == pytest.approx(
        beta.ppf(1 - 0.05 / 64, wrong + 1, 60 - wrong)
    )


def test_weights_other_than_0_and_1_lose_the_promise():
    X, y = overlapping_clouds()
    model = RiskCalibratedClassifier(stopping="holdout", random_state=0)
    plain = model.fit(X, y).guarantees_
    assert model.fit(X, y, sample_weight=np.ones(len(y))).guarantees_ == plain
    kept = np.arange(len(y)) % 7 > 0
    some = model.fit(X[kept], y[kept]).guarantees_
    assert model.fit(X, y, sample_weight=kept.astype(float)).guarantees_ == some != ()
    assert model.fit(X, y, sample_weight=np.full(len(y), 3.0)).guarantees_ == ()
    assert model.fit(X, y, sample_weight=1.0 + (y == 0)).guarantees_ == ()


@pytest.mark.parametrize("stopping", ["cv", "train", "none"])
def test_other_rules_promise_nothing(stopping):
    assert RiskCalibratedClassifier(stopping=stopping).fit(*IRIS).guarantees_ == ()


def test_holdout_that_takes_a_whole_class_is_an_error():
    X, y = overlapping_clouds(30)
    rows = np.concatenate([np.flatnonzero(y != 1), [1]])
    refused, refusals = 0, set()
    for seed in range(20):
        model = RiskCalibratedClassifier(
            stopping="holdout", validation_fraction=0.5, random_state=seed
        )
        try:
            model.fit(X[rows], y[rows])
        except ValueError as error:
            refusals.add(str(error))
            refused += 1
    assert 3 <= refused <= 17  # the class has one row: half of the draws take it
    (refusal,) = refusals
    assert "class 1 has no row" in refusal
    assert "`stopping='cv'`" in refusal


def test_fold_without_a_class_is_an_error():
    X, y = overlapping_clouds(30)
    with pytest.raises(ValueError, match="class 0 has no row"):
        RiskCalibratedClassifier(cv=[(np.flatnonzero(y != 0), np.arange(30))]).fit(X, y)


def test_splitters_and_their_positions_are_the_same():
    X, y = overlapping_clouds()
    splitter = KFold(4, shuffle=True, random_state=1)
    by_splitter = RiskCalibratedClassifier(cv=splitter).fit(X, y)
    by_list = RiskCalibratedClassifier(cv=list(splitter.split(X))).fit(X, y)
    np.testing.assert_array_equal(by_splitter.loss_curve_, by_list.loss_curve_)


# Predictions.


def test_binary_decision_is_the_log_odds():
    X, y = overlapping_clouds(r=2)
    model = RiskCalibratedClassifier(stopping="none").fit(X, y)
    H = model.predict_proba(X)
    np.testing.assert_allclose(
        model.decision_function(X), np.log(H[:, 1] / H[:, 0]), atol=1e-9
    )


def test_decision_of_more_classes_is_the_log_posterior():
    model = RiskCalibratedClassifier(stopping="none").fit(*IRIS)
    np.testing.assert_allclose(
        np.exp(model.decision_function(IRIS[0])), model.predict_proba(IRIS[0])
    )


@pytest.mark.parametrize("r", [2, 3])
def test_costs_decide_by_expected_cost(r):
    X, y = overlapping_clouds(r=r)
    costs = np.arange(r * r, dtype=float).reshape(r, r) % 5
    np.fill_diagonal(costs, 0)
    model = RiskCalibratedClassifier(costs=costs, stopping="none").fit(X, y)
    expected = model.predict_proba(X) @ costs
    np.testing.assert_array_equal(model.predict(X), expected.argmin(axis=1))
    decision = model.decision_function(X)
    np.testing.assert_allclose(
        decision, expected[:, 0] - expected[:, 1] if r == 2 else -expected, atol=1e-12
    )
    assert model.error_curve_[-1] == pytest.approx(np.mean(model.predict(X) != y))


def test_labels_of_any_type_are_returned():
    X, y = IRIS
    names = np.array(["setosa", "versicolor", "virginica"])
    model = RiskCalibratedClassifier(stopping="none").fit(X, names[y])
    assert set(model.predict(X)) == set(names)


def test_pickle_keeps_the_predictions():
    model = RiskCalibratedClassifier().fit(*IRIS)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(
        again.predict_proba(IRIS[0]), model.predict_proba(IRIS[0])
    )


def test_works_in_a_pipeline_and_a_search():
    search = GridSearchCV(
        make_pipeline(StandardScaler(), RiskCalibratedClassifier(stopping="none")),
        {"riskcalibratedclassifier__family": ["diag", "full"]},
        cv=3,
    ).fit(*IRIS)
    assert search.best_score_ > 0.94


# Plug-in families.


def test_plug_in_reaches_logistic_regression_on_the_counts():
    from sklearn.linear_model import LogisticRegression

    X, y = counts()
    model = RiskCalibratedClassifier(
        family=PoissonFamily(), learning_rate=1.0, max_iter=3000, stopping="none"
    ).fit(X, y)
    logistic = LogisticRegression(C=1e10, tol=1e-10, max_iter=2000).fit(X, y)
    np.testing.assert_allclose(
        model.predict_proba(X), logistic.predict_proba(X), atol=1e-5
    )


def test_plug_in_with_invalid_start_is_an_error():
    X, y = counts()
    X[y == 1, 0] = 0
    with pytest.raises(DegenerateDataError, match="PoissonFamily.*class 1"):
        RiskCalibratedClassifier(family=PoissonFamily()).fit(X, y)


def test_plug_in_with_wrong_statistics_is_an_error():
    class Wrong(PoissonFamily):
        def statistics(self, X, Q):
            return [Q.sum(axis=0), X.sum(axis=0)[:1]]

    with pytest.raises(DegenerateDataError, match=r"one block per class \(2\)"):
        RiskCalibratedClassifier(family=Wrong()).fit(*counts())


def test_plug_in_with_wrong_scores_is_an_error():
    class Wrong(PoissonFamily):
        def log_joint(self, X, parameters):
            return super().log_joint(X, parameters)[:, :1]

    with pytest.raises(ValueError, match=r"must return shape \(\d+, 2\)"):
        RiskCalibratedClassifier(family=Wrong()).fit(*counts())


def test_plug_in_with_missing_scores_is_an_error():
    class Wrong(PoissonFamily):
        def log_joint(self, X, parameters):
            return np.full((len(X), 2), np.nan)

    with pytest.raises(ValueError, match="returned NaN"):
        RiskCalibratedClassifier(family=Wrong(), stopping="none").fit(*counts())


def test_built_in_family_can_be_passed_as_an_object():
    X, y = IRIS
    family = DiagonalFamily.from_rows(
        X, np.ones(len(X)), PriorStrengths(covariances=None)
    )
    by_object = RiskCalibratedClassifier(family=family, stopping="none").fit(X, y)
    by_name = RiskCalibratedClassifier(family="diag", stopping="none").fit(X, y)
    np.testing.assert_array_equal(by_object.loss_curve_, by_name.loss_curve_)


# Progress.


def test_callbacks_hear_every_evaluation():
    pytest.importorskip("sklearn.callback")

    class Count:
        begun = ended = 0

        def setup(self, estimator, context):
            pass

        def teardown(self, estimator, context):
            pass

        def on_fit_task_begin(self, estimator, context):
            self.begun += 1

        def on_fit_task_end(self, estimator, context):
            self.ended += 1
            return False

    count = Count()
    model = RiskCalibratedClassifier(stopping="none", max_iter=7)
    model.set_callbacks(count).fit(*IRIS)
    assert count.ended == 7
    assert count.begun == 8  # the fit itself, too
