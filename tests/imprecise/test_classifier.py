import itertools
import pickle

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.base import BaseEstimator, clone
from sklearn.covariance import ShrunkCovariance
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning

from prudent import (
    ClassMoments,
    ImpreciseDiscriminantAnalysis,
    ImpreciseDiscriminantAnalysisCV,
    predict_set,
)
from prudent.exceptions import DegenerateDataError, PrudentWarning
from prudent.imprecise.model import CRITERIA

X_REFERENCE = np.array(
    [
        *[(0, 0), (1, 0.5), (0.5, 1.2), (1.5, 1)],
        *[(3, 3), (4, 3.2), (3.3, 4.1), (4.2, 4.4)],
        *[(0.2, 4), (1, 3.5), (0.6, 4.6), (1.4, 4.2)],
    ]
)
Y_REFERENCE = np.repeat([0, 1, 2], 4)
QUERIES = np.array([(1.8, 2.2), (0.8, 2.4), (2.5, 3.7), (0.5, 0.5)])
TYPES = ("full", "tied", "diag", "identity")
SETS = {
    (0.5, "full"): [[0], [0, 2], [1], [0]],
    (0.5, "tied"): [[0], [0, 2], [1], [0]],
    (0.5, "diag"): [[0], [0, 2], [1], [0]],
    (0.5, "identity"): [[0, 2], [0, 2], [1], [0]],
    (1.5, "full"): [[0, 1, 2], [0, 1, 2], [1, 2], [0]],
    (1.5, "tied"): [[0, 1, 2], [0, 2], [1, 2], [0]],
    (1.5, "diag"): [[0, 1, 2], [0, 2], [1, 2], [0]],
    (1.5, "identity"): [[0, 1, 2], [0, 2], [1, 2], [0]],
}
BOUNDS = {
    "tied": (
        [-8.387725656444, -11.200061352242, -17.473594683682],
        [-3.95392199388, -5.574614079691, -7.476779345377],
    ),
    "full": (
        [-8.528131169098, -9.969825157364, -15.561339966567],
        [-3.983273316789, -5.267421940607, -7.146705820225],
    ),
    "diag": (
        [-10.55720388644, -13.188984891682, -17.139814987262],
        [-4.711872474336, -6.552906953278, -7.604207417541],
    ),
    "identity": (
        [-5.756801855077, -7.067739355077, -6.413051855077],
        [-3.825551855077, -4.592739355077, -4.256801855077],
    ),
}


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


def reference(**params):
    model = ImpreciseDiscriminantAnalysis(scale=None, **params)
    return model.fit(X_REFERENCE, Y_REFERENCE)


def as_lists(sets):
    return [np.flatnonzero(row).tolist() for row in sets]


@pytest.mark.parametrize(("c", "kind"), SETS)
def test_reference_case_2_sets(c, kind):
    model = reference(covariance_type=kind, imprecision=c)
    assert as_lists(model.predict_set(QUERIES)) == SETS[c, kind]


@pytest.mark.parametrize("kind", TYPES)
def test_reference_case_2_bounds(kind):
    model = reference(covariance_type=kind, imprecision=1.5)
    lower, upper = model.log_joint_bounds(QUERIES[:1])
    np.testing.assert_allclose(lower[0], BOUNDS[kind][0], atol=1e-10)
    np.testing.assert_allclose(upper[0], BOUNDS[kind][1], atol=1e-10)


def test_precise_prediction_is_the_gaussian_posterior(iris):
    X, y = iris
    model = ImpreciseDiscriminantAnalysis().fit(X, y)
    densities = [
        multivariate_normal(X[y == k].mean(axis=0), np.cov(X[y == k].T)).pdf(X)
        for k in range(3)
    ]
    joint = np.column_stack(densities) / 3
    expected = joint / joint.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(X), expected, atol=1e-12)
    np.testing.assert_array_equal(model.predict(X), expected.argmax(axis=1))
    lower, upper = model.set_params(imprecision=0.0).log_joint_bounds(X)
    np.testing.assert_allclose(lower, np.log(joint), rtol=1e-9)
    np.testing.assert_allclose(lower, upper, rtol=1e-13)
    assert (lower <= upper).all()


def test_no_imprecision_gives_the_most_probable_class(iris):
    X, y = iris
    model = ImpreciseDiscriminantAnalysis(imprecision=0.0).fit(X, y)
    sets = model.predict_set(X)
    assert (sets.sum(axis=1) == 1).all()
    np.testing.assert_array_equal(model.classes_[sets.argmax(axis=1)], model.predict(X))


def test_prediction_settings_need_no_new_fit(iris):
    X, y = iris
    model = ImpreciseDiscriminantAnalysis().fit(X, y)
    before = model.predict_set(X).sum()
    after = model.set_params(imprecision=10.0).predict_set(X).sum()
    assert after > before


@pytest.mark.parametrize("kind", TYPES)
def test_critical_imprecision_reproduces_the_sets(iris, kind):
    X, y = iris
    model = ImpreciseDiscriminantAnalysis(covariance_type=kind).fit(X, y)
    critical = model.critical_imprecision(X)
    for c in (0.35, 2.05, 7.0):
        sets = model.set_params(imprecision=c).predict_set(X)
        np.testing.assert_array_equal(sets, critical <= c)


def test_critical_imprecision_is_refused_with_costs_or_another_criterion(iris):
    model = ImpreciseDiscriminantAnalysis(costs=1 - np.eye(3)).fit(*iris)
    with pytest.raises(ValueError, match="critical_imprecision is defined for costs"):
        model.critical_imprecision(iris[0])
    model.set_params(costs=None, criterion="interval")
    with pytest.raises(ValueError, match="got none and 'interval'"):
        model.critical_imprecision(iris[0])


def test_node_limit_is_counted_and_warned():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(90, 40)), np.repeat([0, 1, 2], 30)
    X += 0.1 * y[:, None]
    model = ImpreciseDiscriminantAnalysis(covariance_type="tied", imprecision=10.0)
    model.fit(X, y)
    exact = model.predict_set(X)
    assert model.n_unresolved(X) == model.n_unresolved_ == 0
    model.set_params(max_nodes=0)
    counted = r": [1-9]\d* question\(s\) met max_nodes=0.*caution"
    with pytest.warns(ConvergenceWarning, match=counted):
        lower, upper = model.log_joint_bounds(X)
    left = model.n_unresolved_
    assert left > 0
    model.predict(X)  # asks nothing
    assert model.n_unresolved_ == left
    assert np.isfinite(lower).all()
    assert (upper + 1e-9 >= lower).all()
    exact_lower, _ = model.set_params(max_nodes=20000).log_joint_bounds(X)
    assert model.n_unresolved_ == 0
    assert (lower <= exact_lower + 1e-9).all()
    assert exact.any(axis=1).all()


def test_answers_change_nothing_on_the_estimator(iris):
    X, y = iris
    for model in (
        ImpreciseDiscriminantAnalysis(imprecision=3.0),
        ImpreciseDiscriminantAnalysisCV(imprecisions=[1.0, 2.0], cv=2),
    ):
        before = pickle.dumps(model.fit(X, y))
        for method in ("predict", "predict_proba", "predict_set", "dominance"):
            getattr(model, method)(X)
        for method in ("log_joint_bounds", "posterior_bounds", "extremal_means"):
            getattr(model, method)(X[:5])
        model.critical_imprecision(X)
        model.n_unresolved(X)
        assert pickle.dumps(model) == before


# --- costs, prior, criteria -----------------------------------------------------


def test_zero_one_costs_change_nothing(iris):
    X, y = iris
    plain = ImpreciseDiscriminantAnalysis(imprecision=4.0).fit(X, y)
    costly = clone(plain).set_params(costs=1 - np.eye(3)).fit(X, y)
    np.testing.assert_array_equal(plain.predict_set(X), costly.predict_set(X))
    np.testing.assert_array_equal(plain.predict(X), costly.predict(X))
    for criterion in ("maximin", "maximax", "hurwicz"):
        np.testing.assert_array_equal(
            plain.predict(X, criterion), costly.predict(X, criterion)
        )


def test_costs_move_the_decision():
    always_two = np.array([[0, 1, 0], [1, 0, 0], [1, 1, 0]])
    model = reference(costs=always_two)
    assert (model.predict(QUERIES) == 2).all()


def test_e_admissible_is_within_maximality_and_interval_around_it(iris):
    X, y = iris
    model = ImpreciseDiscriminantAnalysis(imprecision=5.0).fit(X, y)
    maximal = model.predict_set(X)
    np.testing.assert_array_equal(
        maximal, model.set_params(criterion="e_admissible").predict_set(X)
    )
    interval = model.set_params(criterion="interval").predict_set(X)
    assert not (maximal & ~interval).any()
    costs = [[0, 1, 3], [1, 0, 1], [2, 1, 0]]
    model.set_params(criterion="maximality", costs=costs)
    by_cost = model.predict_set(X)
    admissible = model.set_params(criterion="e_admissible").predict_set(X)
    assert not (admissible & ~by_cost).any()
    assert admissible.any(axis=1).all()


def test_an_imprecise_prior_only_adds_classes(iris):
    X, y = iris
    model = ImpreciseDiscriminantAnalysis(imprecision=1.0).fit(X, y)
    before = model.predict_set(X)
    after = model.set_params(prior_imprecision=20.0).predict_set(X)
    assert not (before & ~after).any()
    assert after.sum() > before.sum()
    sure = model.set_params(prior_imprecision=60.0, imprecision=0.0).predict_set(X)
    assert sure.any(axis=1).all()


def test_hurwicz_runs_from_maximin_to_maximax(iris):
    X, y = iris
    model = ImpreciseDiscriminantAnalysis(imprecision=8.0).fit(X, y)
    for name, share in (("maximin", 0.0), ("maximax", 1.0)):
        np.testing.assert_array_equal(
            model.predict(X, name), model.predict(X, "hurwicz", optimism=share)
        )


def test_given_priors_replace_frequencies():
    model = reference(priors=[0.2, 0.3, 0.5], imprecision=0.0)
    lower, upper = model.log_joint_bounds(QUERIES)
    plain, _ = reference(imprecision=0.0).log_joint_bounds(QUERIES)
    np.testing.assert_allclose(lower, upper)
    np.testing.assert_allclose(lower - plain, np.tile(np.log([0.6, 0.9, 1.5]), (4, 1)))


def test_a_prior_of_zero_rules_a_class_out():
    model = reference(priors=[0.0, 0.5, 0.5], imprecision=50.0)
    assert not model.predict_set(QUERIES)[:, 0].any()


# --- scale and covariance --------------------------------------------------------


@pytest.mark.parametrize("kind", TYPES)
def test_default_scale_makes_units_irrelevant(iris, kind):
    X, y = iris
    unit, shift = np.array([1e-6, 3.0, 1e5, 0.2]), np.array([1e3, 0.0, -7.0, 1.0])
    model = ImpreciseDiscriminantAnalysis(covariance_type=kind, imprecision=3.0)
    sets = model.fit(X, y).predict_set(X)
    moved = X * unit + shift
    np.testing.assert_array_equal(sets, model.fit(moved, y).predict_set(moved))


@pytest.mark.parametrize("box", ["mean", "natural"])
@pytest.mark.parametrize("kind", TYPES)
def test_no_finite_row_is_too_far_for_an_answer(iris, kind, box):
    largest = np.finfo(float).max
    rows = np.concatenate(
        [size * np.vstack([iris[0][[0, 68]], np.eye(4)]) for size in (1e154, 1e300)]
    )
    rows = np.vstack([rows, -rows, np.diag(np.full(4, -largest))])
    costs = [[0, 1, 4], [2, 0, 1], [5, 1, 0]]
    model = ImpreciseDiscriminantAnalysis(covariance_type=kind, box=box).fit(*iris)
    for criterion, losses in itertools.product(CRITERIA, [None, costs]):
        if criterion == "interval" and losses is not None:
            continue
        for amount in (0.0, 5.0):
            settings = {"criterion": criterion, "costs": losses}
            model.set_params(**settings, prior_imprecision=amount)
            assert model.predict_set(rows).any(axis=1).all()
            np.testing.assert_allclose(model.predict_proba(rows).sum(axis=1), 1.0)
            assert np.isfinite(model.posterior_bounds(rows)).all()


@pytest.mark.parametrize("kind", ["full", "tied", "diag"])
@pytest.mark.parametrize("unit", [1e-100, 1e120])
def test_how_far_is_too_far_depends_on_no_unit(iris, kind, unit):
    X, y = iris
    model = ImpreciseDiscriminantAnalysis(
        covariance_type=kind, scale=None, imprecision=0.0
    )
    rows = np.vstack([X, 1e170 * np.eye(4)])
    expected = model.fit(X, y).predict_proba(rows)
    ours = model.fit(unit * X, y).predict_proba(unit * rows)
    np.testing.assert_allclose(ours, expected, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize(
    ("scale", "expected"),
    [
        ("std", X_REFERENCE.std(axis=0)),
        ("range", np.ptp(X_REFERENCE, axis=0)),
        (None, [1.0, 1.0]),
        ([2.0, 3.0], [2.0, 3.0]),
    ],
)
def test_scales(scale, expected):
    model = ImpreciseDiscriminantAnalysis(scale=scale).fit(X_REFERENCE, Y_REFERENCE)
    np.testing.assert_allclose(model.scale_, expected)


def test_scale_within_is_the_pooled_deviation():
    model = ImpreciseDiscriminantAnalysis(scale="within", covariance_type="tied")
    model.fit(X_REFERENCE, Y_REFERENCE)
    variances = model.covariances_[0].diagonal()
    np.testing.assert_allclose(model.scale_**2, variances)


def test_empirical_covariances_have_denominator_n_minus_1():
    model = reference()
    expected = [np.cov(X_REFERENCE[k == Y_REFERENCE].T) for k in range(3)]
    np.testing.assert_allclose(model.covariances_, expected)
    assert model.covariance_kind_ == "empirical"
    tied = reference(covariance_type="tied").covariances_
    np.testing.assert_allclose(tied, np.tile(np.mean(expected, axis=0), (3, 1, 1)))
    diag = reference(covariance_type="diag").covariances_
    np.testing.assert_allclose(diag, np.array(expected) * np.eye(2))


def test_identity_is_the_identity_in_scaled_units():
    model = ImpreciseDiscriminantAnalysis(covariance_type="identity")
    model.fit(X_REFERENCE, Y_REFERENCE)
    expected = np.diag(X_REFERENCE.var(axis=0))
    np.testing.assert_allclose(model.covariances_, np.tile(expected, (3, 1, 1)))
    assert model.covariance_kind_ == "identity"


def test_auto_shrinks_all_classes_when_one_is_ill_conditioned():
    X, y = X_REFERENCE.copy(), Y_REFERENCE
    X[:4, 1] = 2 * X[:4, 0]
    model = ImpreciseDiscriminantAnalysis().fit(X, y)
    assert model.covariance_kind_ == "oas"
    empirical = np.cov(X[y == 2].T)
    assert not np.allclose(model.covariances_[2], empirical)


@pytest.mark.parametrize("rule", ["ledoit_wolf", "oas", 0.3, "empirical"])
@pytest.mark.parametrize("kind", ["full", "tied", "diag"])
def test_rules_give_positive_definite_matrices_and_say_so(rule, kind):
    model = ImpreciseDiscriminantAnalysis(covariance=rule, covariance_type=kind)
    model.fit(X_REFERENCE, Y_REFERENCE)
    assert (np.linalg.eigvalsh(model.covariances_) > 0).all()
    assert model.covariance_kind_ == (
        rule if isinstance(rule, str) else "shrinkage 0.3"
    )


class TowardsIdentity(BaseEstimator):
    def __init__(self, alpha=0.5):
        self.alpha = alpha

    def fit(self, X, y=None):
        S = X.T @ X / max(len(X) - 1, 1)
        self.covariance_ = self.alpha * S + (1 - self.alpha) * np.eye(len(S))
        return self


@pytest.mark.parametrize("alpha", [0.0, 0.3, 0.9])
def test_a_covariance_towards_the_identity_is_rqda(alpha):
    model = ImpreciseDiscriminantAnalysis(
        imprecision=0.0, covariance=TowardsIdentity(alpha), scale=None
    ).fit(X_REFERENCE[:-2], Y_REFERENCE[:-2])
    joint = []
    for k in range(3):
        rows = X_REFERENCE[:-2][Y_REFERENCE[:-2] == k]
        S = alpha * np.cov(rows.T) + (1 - alpha) * np.eye(2)  # (40)
        np.testing.assert_allclose(model.covariances_[k], S)
        density = multivariate_normal(rows.mean(axis=0), S).pdf(QUERIES)
        joint.append(len(rows) * density)
    expected = np.transpose(joint) / np.sum(joint, axis=0)[:, None]
    np.testing.assert_allclose(model.predict_proba(QUERIES), expected)


@pytest.mark.parametrize("kind", TYPES)
def test_equal_classes_stay_together_and_predict_takes_the_first(kind):
    X = np.vstack([X_REFERENCE[:4], -X_REFERENCE[:4]])
    model = ImpreciseDiscriminantAnalysis(covariance_type=kind, imprecision=0.0)
    model.fit(X, np.repeat(["b", "a"], 4))
    middle = np.zeros((1, 2))
    assert model.predict_set(middle).tolist() == [[True, True]]
    assert model.predict(middle).tolist() == ["a"]


def test_ledoit_wolf_equals_scikit_learns_in_scaled_units():
    from sklearn.covariance import ledoit_wolf

    model = ImpreciseDiscriminantAnalysis(covariance="ledoit_wolf")
    model.fit(X_REFERENCE, Y_REFERENCE)
    scale = X_REFERENCE.std(axis=0)
    for k in range(3):
        rows = X_REFERENCE[k == Y_REFERENCE] / scale
        expected = ledoit_wolf(rows)[0] * 4 / 3 * np.outer(scale, scale)
        np.testing.assert_allclose(model.covariances_[k], expected)


def test_a_covariance_estimator_sees_scaled_centred_rows():
    model = ImpreciseDiscriminantAnalysis(covariance=ShrunkCovariance(shrinkage=0.2))
    model.fit(X_REFERENCE, Y_REFERENCE)
    scale = X_REFERENCE.std(axis=0)
    rows = X_REFERENCE[Y_REFERENCE == 1] / scale
    expected = ShrunkCovariance(shrinkage=0.2).fit(rows).covariance_
    np.testing.assert_allclose(model.covariances_[1], expected * np.outer(scale, scale))
    assert model.covariance_kind_ == "ShrunkCovariance"
    once = model.covariances_
    model.fit(X_REFERENCE, Y_REFERENCE, sample_weight=np.ones(12))
    np.testing.assert_array_equal(model.covariances_, once)
    with pytest.raises(ValueError, match="takes no weights, only rows"):
        model.fit(X_REFERENCE, Y_REFERENCE, sample_weight=np.full(12, 0.5))


def test_a_singular_empirical_matrix_is_floored_with_a_warning():
    X, y = X_REFERENCE.copy(), Y_REFERENCE
    X[:4, 1] = 2 * X[:4, 0]
    model = ImpreciseDiscriminantAnalysis(covariance="empirical")
    with pytest.warns(PrudentWarning, match=r"covariance of class\(es\) \[0\]"):
        model.fit(X, y)
    values = np.linalg.eigvalsh(model.covariances_[0] / np.outer(*2 * [model.scale_]))
    assert values[0] / values[1] == pytest.approx(1e-9, rel=1e-3)
    assert np.isfinite(model.predict_proba(X)).all()


def test_a_class_with_one_row_uses_the_pooled_matrix():
    X, y = X_REFERENCE[:9], Y_REFERENCE[:9]
    model = ImpreciseDiscriminantAnalysis()
    with pytest.warns(PrudentWarning, match=r"class\(es\) \[2\] have no covariance"):
        model.fit(X, y)
    assert model.predict(X[8:])[0] == 2


def test_equal_rows_in_a_class_use_the_pooled_matrix():
    X = X_REFERENCE.copy()
    X[8:] = X[8]
    with pytest.warns(PrudentWarning, match="equal rows"):
        model = ImpreciseDiscriminantAnalysis().fit(X, Y_REFERENCE)
    assert np.isfinite(model.predict_proba(X)).all()


def test_a_constant_feature_is_ignored():
    X = np.column_stack([X_REFERENCE[:, 0], np.full(12, 5.0), X_REFERENCE[:, 1]])
    with pytest.warns(PrudentWarning, match="feature"):
        model = ImpreciseDiscriminantAnalysis(imprecision=1.5).fit(X, Y_REFERENCE)
    assert model.constant_features_.tolist() == [1]
    assert model.scale_[1] == 1.0
    plain = ImpreciseDiscriminantAnalysis(imprecision=1.5)
    plain.fit(X_REFERENCE, Y_REFERENCE)
    for ours, expected in zip(
        model.log_joint_bounds(X), plain.log_joint_bounds(X_REFERENCE), strict=True
    ):
        np.testing.assert_allclose(ours, expected)


# --- degenerate input and bad settings -------------------------------------------


def test_one_class_is_refused():
    with pytest.raises(ValueError, match="2 classes are needed, got one class: 'a'"):
        ImpreciseDiscriminantAnalysis().fit([[0.0], [1.0]], ["a", "a"])


def test_only_constant_features_are_refused():
    with pytest.raises(DegenerateDataError, match="all features are constant"):
        ImpreciseDiscriminantAnalysis().fit(np.ones((6, 2)), [0, 0, 0, 1, 1, 1])


def test_as_many_classes_as_rows_are_refused():
    with pytest.raises(DegenerateDataError, match="3 rows in 3 classes"):
        ImpreciseDiscriminantAnalysis().fit([[0.0], [1.0], [3.0]], [0, 1, 2])


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"imprecision": -1.0}, "imprecision"),
        ({"imprecision": np.inf}, "imprecision"),
        ({"imprecision": np.nan}, "imprecision"),
        ({"prior_imprecision": np.inf}, "prior_imprecision"),
        ({"covariance": 1.5}, r"`covariance` must be .* got 1.5"),
        ({"covariance": "svd"}, r"`covariance` must be .* got 'svd'"),
        ({"scale": [1.0]}, "`scale` must be n_features = 2"),
        ({"scale": [1.0, 0.0]}, "`scale` must be n_features = 2"),
        ({"priors": [0.5, 0.5]}, "`priors` must hold 3 numbers"),
        ({"priors": [0.5, 0.6, 0.1]}, "sum to 1"),
        ({"costs": np.zeros((2, 3))}, r"`costs` must .* got \[\[0"),
        ({"costs": 1 - np.eye(3), "criterion": "interval"}, "knows no `costs`"),
        ({"imprecision": [1.0, -1.0]}, r"must hold 2 numbers .* got \[1.0, -1.0\]"),
        ({"imprecision": [1.0, np.nan]}, "`imprecision` must hold 2 numbers from 0"),
        ({"imprecision": [1.0, 1.0, 1.0]}, "one for each feature, got"),
        ({"imprecision": ["a", "b"]}, "`imprecision` must hold 2 numbers"),
        ({"max_nodes": -1}, "max_nodes"),
        ({"criterion": "minimax"}, "criterion"),
    ],
)
def test_bad_settings_are_named(params, message):
    with pytest.raises(ValueError, match=message):
        ImpreciseDiscriminantAnalysis(**params).fit(X_REFERENCE, Y_REFERENCE)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"imprecision": np.nan}, "`imprecision` must be a number .* got nan"),
        ({"imprecision": 1e200}, r"from 0 to 1e\+100, got 1e\+200"),
        ({"max_nodes": 1.5}, "`max_nodes` must be an integer"),
        ({"criterion": "nearest"}, "`criterion` must be one of"),
    ],
)
def test_settings_changed_after_the_fit_are_checked(params, message):
    model = reference().set_params(**params)
    with pytest.raises(ValueError, match=message):
        model.predict_set(QUERIES)


def test_bad_decision_criteria_are_named():
    model = reference()
    with pytest.raises(ValueError, match=r"one of \['maximin'.*got 'leximin'"):
        model.predict(QUERIES, "leximin")
    with pytest.raises(ValueError, match="`optimism` must lie"):
        model.predict(QUERIES, "hurwicz", optimism=1.5)


# --- moments ---------------------------------------------------------------------


@pytest.mark.parametrize("kind", TYPES)
def test_from_moments_equals_fit(kind):
    fitted = reference(covariance_type=kind, imprecision=1.5)
    covariances = [np.cov(X_REFERENCE[k == Y_REFERENCE].T) for k in range(3)]
    published = ImpreciseDiscriminantAnalysis.from_moments(
        fitted.means_,
        covariances,
        [4, 4, 4],
        covariance_type=kind,
        imprecision=1.5,
        scale=None,
    )
    for ours, expected in zip(
        published.log_joint_bounds(QUERIES),
        fitted.log_joint_bounds(QUERIES),
        strict=True,
    ):
        np.testing.assert_allclose(ours, expected)


def test_scale_std_comes_from_moments_too():
    moments = ClassMoments.from_arrays(X_REFERENCE, Y_REFERENCE)
    model = ImpreciseDiscriminantAnalysis().fit_moments(moments)
    np.testing.assert_allclose(model.scale_, X_REFERENCE.std(axis=0))


@pytest.mark.parametrize("params", [{"scale": "range"}, {"covariance": "ledoit_wolf"}])
def test_settings_that_need_rows_have_no_partial_fit(params):
    model = ImpreciseDiscriminantAnalysis(**params)
    assert not hasattr(model, "partial_fit")
    assert not hasattr(model, "fit_moments")
    with pytest.raises(ValueError, match="needs the rows"):
        ImpreciseDiscriminantAnalysis.from_moments(
            np.eye(2), [np.eye(2), np.eye(2)], [5, 5], **params
        )


def test_partial_fit_with_a_class_not_yet_seen():
    model = ImpreciseDiscriminantAnalysis(imprecision=100.0)
    model.partial_fit(X_REFERENCE[:8], Y_REFERENCE[:8], classes=[0, 1, 2])
    sets = model.predict_set(QUERIES)
    assert sets.shape == (4, 3)
    assert not sets[:, 2].any()
    lower, upper = model.log_joint_bounds(QUERIES)
    assert (lower[:, 2] == -np.inf).all()
    assert (upper[:, 2] == -np.inf).all()
    assert (model.critical_imprecision(QUERIES)[:, 2] == np.inf).all()
    assert model.priors_[2] == 0
    assert model.covariances_.shape == (3, 2, 2)
    model.partial_fit(X_REFERENCE[8:], Y_REFERENCE[8:])
    whole = ImpreciseDiscriminantAnalysis(imprecision=100.0)
    whole.fit(X_REFERENCE, Y_REFERENCE)
    np.testing.assert_allclose(
        model.log_joint_bounds(QUERIES), whole.log_joint_bounds(QUERIES)
    )


def test_predict_set_works_through_a_pipeline(iris):
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    X, y = iris
    plain = ImpreciseDiscriminantAnalysis(imprecision=3.0).fit(X, y)
    piped = make_pipeline(StandardScaler(), clone(plain)).fit(X, y)
    np.testing.assert_array_equal(predict_set(piped, X), plain.predict_set(X))


def test_nothing_is_promised(iris):
    assert ImpreciseDiscriminantAnalysis().fit(*iris).guarantees_ == ()
