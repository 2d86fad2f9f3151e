"""Posteriors, preferences and means behind a set, against programs and corners."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine

import prudent
from imprecise.brute_force import log_joint_bounds
from prudent import ImpreciseDiscriminantAnalysis, ImpreciseDiscriminantAnalysisCV
from prudent.imprecise.criteria import CredalSet

TYPES = ("full", "tied", "diag", "identity")
COSTS = np.array([[0.0, 1, 4], [2, 0, 1], [5, 1, 0]])
X_IRIS, Y_IRIS = load_iris(return_X_y=True)
SEEDS = st.integers(0, 2**32 - 1)
quick = settings(max_examples=15, deadline=None)


def sparse_iris(**params):
    return ImpreciseDiscriminantAnalysis(**params).fit(X_IRIS[::5], Y_IRIS[::5])


def ball_program(light, heavy, prior, radius):
    """Constraints on (w, pi, t), sum w = 1: posteriors of all priors and likelihoods.

    The prior is pi / t; every event moves by `radius` at most.
    """
    k = len(prior)
    one, column = np.eye(k), np.zeros((k, 1))
    events = np.array(list(itertools.product([0, 1], repeat=k)))[1:-1]
    mass = (events @ prior)[:, None]
    still = np.zeros_like(events)
    at_most = np.block(
        [
            [-one, np.diag(light), column],
            [one, -np.diag(heavy), column],
            [still, events, -mass - radius],
            [still, -events, mass - radius],
        ]
    )
    equal = np.block(
        [
            [np.ones((1, k)), np.zeros((1, k)), np.zeros((1, 1))],
            [np.zeros((1, k)), np.ones((1, k)), -np.ones((1, 1))],
        ]
    )
    return {
        "A_ub": at_most,
        "b_ub": np.zeros(len(at_most)),
        "A_eq": equal,
        "b_eq": [1.0, 0.0],
        "bounds": (0, None),
    }


def random_case(seed):
    rng = np.random.default_rng(seed)
    k = rng.integers(2, 5)
    lower = rng.normal(size=k)
    upper = lower + rng.exponential(size=k) * rng.choice([0.1, 1.0])
    return lower, upper, rng.dirichlet(np.ones(k)), rng.choice([0.02, 0.1, 0.4, 1.2])


@pytest.mark.parametrize("seed", range(25))
def test_posteriors_under_a_ball_of_priors_are_those_of_the_linear_program(seed):
    lower, upper, prior, radius = random_case(seed)
    program = ball_program(np.exp(lower), np.exp(upper), prior, radius)
    least, most = CredalSet(lower[None], upper[None], prior, radius).log_odds_bounds()
    for k in range(len(prior)):
        goal = np.zeros(2 * len(prior) + 1)
        goal[k] = 1.0
        expected = linprog(goal, **program).fun, -linprog(-goal, **program).fun
        ours = 1 / (1 + np.exp(-least[0, k])), 1 / (1 + np.exp(-most[0, k]))
        np.testing.assert_allclose(ours, expected, atol=1e-9)


@pytest.mark.parametrize("seed", range(25))
def test_expected_costs_under_a_ball_of_priors_are_those_of_the_linear_program(seed):
    lower, upper, prior, radius = random_case(100 + seed)
    costs = np.random.default_rng(seed).normal(size=(len(prior), 2))
    program = ball_program(np.exp(lower), np.exp(upper), prior, radius)
    credal = CredalSet(lower[None], upper[None], prior, radius)
    least, most = credal.expected_cost_bounds(costs)
    for d in range(2):
        goal = np.concatenate([costs[:, d], np.zeros(len(prior) + 1)])
        expected = linprog(goal, **program).fun, -linprog(-goal, **program).fun
        np.testing.assert_allclose((least[0, d], most[0, d]), expected, atol=1e-9)


@pytest.mark.parametrize("zero_one", [True, False])
def test_admissible_decisions_under_a_ball_are_those_of_the_linear_program(zero_one):
    kept = []
    for seed in range(40):
        lower, upper, prior, radius = random_case(200 + seed)
        k = len(prior)
        costs = 1.0 - np.eye(k)
        if not zero_one:
            costs = np.random.default_rng(seed).uniform(size=(k, k))
        program = ball_program(np.exp(lower), np.exp(upper), prior, radius)
        expected = []
        for b in range(k):
            excess = np.hstack([(costs[:, [b]] - costs).T, np.zeros((k, k + 1))])
            better = np.vstack([program["A_ub"], excess])
            limits = np.zeros(len(better))
            answer = linprog(
                np.zeros(2 * k + 1), **(program | {"A_ub": better, "b_ub": limits})
            )
            expected.append(answer.status == 0)
        everything = np.ones((1, k), dtype=bool)
        credal = CredalSet(lower[None], upper[None], prior, radius)
        ours = credal.e_admissible(None if zero_one else costs, everything)
        assert ours[0].tolist() == expected
        kept.append(np.mean(expected))
    assert 0.2 < np.mean(kept) < 0.95


@pytest.mark.parametrize("radius", [0.0, 1.5])
@pytest.mark.parametrize("kind", TYPES)
def test_posterior_bounds_hold_every_corner_and_are_attained(kind, radius):
    model = sparse_iris(covariance_type=kind, imprecision=2, prior_imprecision=radius)
    rows = X_IRIS[50::10]
    lower, upper = model.posterior_bounds(rows)
    likelihoods = np.stack(
        clone(model)
        .set_params(priors=EVEN, prior_imprecision=0)
        .fit(X_IRIS[::5], Y_IRIS[::5])
        .log_joint_bounds(rows)
    )
    corners = np.array(list(itertools.product([0, 1], repeat=3)))
    moves = np.array([[a, b] for a in range(3) for b in range(3)])
    low, high = np.ones_like(lower), np.zeros_like(upper)
    for pick in corners:
        f = np.exp(likelihoods[pick, :, np.arange(3)]).T
        for a, b in moves:  # the ball's corners, while no class runs out of mass
            prior = EVEN.copy()
            prior[a] -= radius / 30
            prior[b] += radius / 30
            posterior = f * prior / (f @ prior)[:, None]
            low, high = np.minimum(low, posterior), np.maximum(high, posterior)
    np.testing.assert_allclose(lower, low, rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(upper, high, rtol=1e-9, atol=1e-15)
    centre = model.predict_proba(rows)
    assert (lower <= centre + 1e-12).all()
    assert (centre <= upper + 1e-12).all()


EVEN = np.full(3, 1 / 3)


@quick
@given(SEEDS, st.sampled_from(TYPES), st.booleans(), st.floats(0, 4), st.floats(0, 6))
def test_dominance_is_a_partial_order_that_explains_the_sets(
    seed, kind, with_costs, radius, c
):
    rng = np.random.default_rng(seed)
    costs = np.abs(rng.normal(size=(3, 3))) * (1 - np.eye(3)) if with_costs else None
    model = sparse_iris(
        covariance_type=kind, imprecision=c, prior_imprecision=radius, costs=costs
    )
    rows = X_IRIS[rng.integers(150, size=12)] + 0.3 * rng.normal(size=(12, 4))
    beats = model.dominance(rows)
    assert not beats[:, np.arange(3), np.arange(3)].any()
    assert not (beats & beats.transpose(0, 2, 1)).any()
    through = (beats[:, :, :, None] & beats[:, None, :, :]).any(axis=2)
    assert (through <= beats).all()
    np.testing.assert_array_equal(~beats.any(axis=1), model.predict_set(rows))


def test_the_order_of_a_precise_model_is_complete_and_that_of_its_posterior():
    """Definition 2, (6)-(7) and Example 1."""
    model = sparse_iris(covariance_type="tied", imprecision=0.0)
    posterior = model.predict_proba(X_IRIS)
    np.testing.assert_array_equal(
        model.dominance(X_IRIS), posterior[:, :, None] > posterior[:, None, :]
    )


@quick
@given(SEEDS, st.sampled_from(TYPES), st.floats(0.1, 4), st.floats(0.1, 8))
def test_criteria_are_nested_under_an_imprecise_prior(seed, kind, radius, c):
    rng = np.random.default_rng(seed)
    model = sparse_iris(covariance_type=kind, imprecision=c, prior_imprecision=radius)
    rows = X_IRIS[rng.integers(150, size=12)] + 0.3 * rng.normal(size=(12, 4))
    maximal = model.predict_set(rows)
    admissible = model.set_params(criterion="e_admissible").predict_set(rows)
    interval = model.set_params(criterion="interval").predict_set(rows)
    assert admissible.any(axis=1).all()
    assert (admissible <= maximal).all()
    assert (maximal <= interval).all()
    chosen = model.predict(rows, "maximax")
    assert maximal[np.arange(12), np.searchsorted(model.classes_, chosen)].all()


@pytest.mark.parametrize("costs", [None, COSTS])
@pytest.mark.parametrize("criterion", ["maximin", "maximax", "hurwicz"])
def test_a_prior_ball_of_no_size_decides_as_the_precise_prior(costs, criterion):
    model = sparse_iris(imprecision=2.0, costs=costs)
    precise = model.predict(X_IRIS, criterion)
    close = model.set_params(prior_imprecision=1e-9).predict(X_IRIS, criterion)
    np.testing.assert_array_equal(precise, close)


@pytest.mark.parametrize("box", ["mean", "natural"])
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("c", [1.5, [0.5, 3.0, 0.0, 1.0]])
def test_extremal_means_attain_the_bounds_within_the_box(kind, box, c):
    model = sparse_iris(covariance_type=kind, box=box, imprecision=c)
    rows = X_IRIS[::15]
    lower, upper = model.log_joint_bounds(rows)
    low, high = model.mean_bounds_
    for bound, means in zip((lower, upper), model.extremal_means(rows), strict=True):
        assert means.shape == (10, 3, 4)
        assert (means >= low - 1e-12).all()
        assert (means <= high + 1e-12).all()
        for i, k in itertools.product(range(10), range(3)):
            density = multivariate_normal(means[i, k], model.covariances_[k])
            expected = np.log(model.priors_[k]) + density.logpdf(rows[i])
            assert bound[i, k] == pytest.approx(expected, rel=1e-9, abs=1e-9)
            if box == "natural":  # (19): mean + S l / n with |l_j| <= c_j / s_j
                shift = np.linalg.solve(model.covariances_[k], means[i, k])
                shift -= np.linalg.solve(model.covariances_[k], model.means_[k])
                assert (np.abs(10 * shift) <= np.array(c) / model.scale_ + 1e-7).all()


@pytest.mark.parametrize("kind", ["full", "tied"])
def test_extremal_means_do_not_depend_on_the_prior(kind):
    model = ImpreciseDiscriminantAnalysis(covariance_type=kind, imprecision=2.0)
    rows = X_IRIS[::15]
    expected = model.fit(X_IRIS, Y_IRIS).extremal_means(rows)
    model.set_params(priors=[0.0, 0.5, 0.5])
    for means, same in zip(
        model.fit(X_IRIS, Y_IRIS).extremal_means(rows), expected, strict=True
    ):
        np.testing.assert_allclose(means, same, atol=1e-9)


@pytest.mark.parametrize("c", [2.0, [2.0, 0.0, 1.0, 0.5]])
def test_mean_bounds_are_those_of_the_paper(c):
    model = sparse_iris(imprecision=c, scale=None)
    low, high = model.mean_bounds_
    np.testing.assert_allclose(low, model.means_ - np.array(c) / 10)  # (20)
    np.testing.assert_allclose(high, model.means_ + np.array(c) / 10)  # (21)
    natural = sparse_iris(imprecision=c, scale=None, box="natural")
    low, high = natural.mean_bounds_
    corners = np.array(list(itertools.product([-1.0, 1.0], repeat=4))) * c
    for k in range(3):
        means = model.means_[k] + corners @ model.covariances_[k] / 10  # (19)
        np.testing.assert_allclose(low[k], means.min(axis=0))
        np.testing.assert_allclose(high[k], means.max(axis=0))


def test_constant_features_stay_and_classes_without_rows_have_no_means():
    X = np.column_stack([X_IRIS, np.full(150, 7.0)])
    model = ImpreciseDiscriminantAnalysis()
    with pytest.warns(UserWarning, match="constant"):
        model.partial_fit(X[50:], Y_IRIS[50:], classes=[0, 1, 2])
    low, high = model.mean_bounds_
    assert np.isnan(low[0]).all()
    assert np.isnan(high[0]).all()
    assert (low[1:, 4] == 7.0).all()
    assert (high[1:, 4] == 7.0).all()
    for means in model.extremal_means(X[:3]):
        assert np.isnan(means[:, 0]).all()
        assert (means[:, 1:, 4] == 7.0).all()
    lower, upper = model.posterior_bounds(X[:3])
    assert (lower[:, 0] == 0.0).all()
    assert (upper[:, 0] == 0.0).all()
    assert not model.dominance(X[:3])[:, 0].any()
    kept = ~model.dominance(X).any(axis=1)
    np.testing.assert_array_equal(kept, model.predict_set(X))


@pytest.mark.parametrize("box", ["mean", "natural"])
def test_one_imprecision_a_feature_equals_all_corners(box):
    rng = np.random.default_rng(0)
    y = np.arange(24) % 2
    X = rng.normal(size=(24, 3)) @ rng.normal(size=(3, 3)) + y[:, None]
    c = np.array([0.5, 2.0, 1.0])
    model = ImpreciseDiscriminantAnalysis(imprecision=c, box=box, scale=None).fit(X, y)
    constants = [
        np.log(0.5) + multivariate_normal(np.zeros(3), S).logpdf(np.zeros(3))
        for S in model.covariances_
    ]
    for x in X[:6]:
        expected = log_joint_bounds(
            x, model.means_, model.covariances_, [12, 12], constants, c, box
        )
        ours = model.log_joint_bounds(x[None])
        np.testing.assert_allclose(np.ravel(ours), np.ravel(expected), rtol=1e-9)


@quick
@given(SEEDS, st.sampled_from(TYPES), st.sampled_from(["mean", "natural"]))
def test_sets_are_nested_in_the_imprecision_of_each_feature(seed, kind, box):
    rng = np.random.default_rng(seed)
    small = rng.exponential(size=4)
    large = small + rng.exponential(size=4) * rng.integers(2, size=4)
    model = sparse_iris(covariance_type=kind, box=box, imprecision=small)
    sets = model.predict_set(X_IRIS[::7])
    assert (sets <= model.set_params(imprecision=large).predict_set(X_IRIS[::7])).all()
    equal = model.set_params(imprecision=[1.7] * 4).predict_set(X_IRIS[::7])
    scalar = model.set_params(imprecision=1.7).predict_set(X_IRIS[::7])
    np.testing.assert_array_equal(equal, scalar)
    nothing = model.set_params(imprecision=np.zeros(4)).predict_set(X_IRIS[::7])
    assert (nothing.sum(axis=1) == 1).all()


def test_an_imprecision_a_feature_is_stored_cloned_and_saved(tmp_path):
    c = np.array([0.5, 2.0, 0.0, 1.0])
    model = sparse_iris(imprecision=c)
    assert model.imprecision is c
    copy = clone(model).fit(X_IRIS[::5], Y_IRIS[::5])
    prudent.save(model, tmp_path / "model.prudent")
    loaded = prudent.load(tmp_path / "model.prudent")
    for other in (copy, loaded):
        np.testing.assert_array_equal(
            model.predict_set(X_IRIS), other.predict_set(X_IRIS)
        )
        np.testing.assert_array_equal(model.mean_bounds_, other.mean_bounds_)
    path = model.critical_imprecision(X_IRIS[:5])
    plain = sparse_iris().critical_imprecision(X_IRIS[:5])
    np.testing.assert_array_equal(path, plain)


def test_the_cv_estimator_gives_the_answers_of_the_model_it_chose():
    model = ImpreciseDiscriminantAnalysisCV(imprecisions=[0.5, 2.0], cv=3)
    model.fit(X_IRIS, Y_IRIS)
    plain = model.estimator_
    for method in ("dominance", "posterior_bounds", "extremal_means"):
        ours, expected = getattr(model, method), getattr(plain, method)
        np.testing.assert_array_equal(ours(X_IRIS[:9]), expected(X_IRIS[:9]))
    np.testing.assert_array_equal(model.mean_bounds_, plain.mean_bounds_)


@pytest.mark.parametrize(
    "params",
    [
        {"costs": COSTS},
        {"costs": COSTS, "criterion": "e_admissible", "prior_imprecision": 2.0},
        {"criterion": "e_admissible", "prior_imprecision": 2.0},
        {"scoring": 2.5},
    ],
)
def test_cross_validation_equals_a_loop_over_folds_and_imprecisions(params):
    X, y = load_wine(return_X_y=True)
    X, y = X[::2], y[::2]
    grid = [0.3, 0.9, 1.5, 4.0]
    folds = [(np.arange(0, 89, 2), np.arange(1, 89, 6))]
    model = ImpreciseDiscriminantAnalysisCV(
        covariance_type="tied", imprecisions=grid, cv=folds, **params
    ).fit(X, y)
    settings = {name: value for name, value in params.items() if name != "scoring"}
    train, test = folds[0]
    plain = ImpreciseDiscriminantAnalysis(covariance_type="tied", **settings)
    plain.fit(X[train], y[train])
    for c, score in zip(grid, model.cv_results_["mean_test_score"], strict=True):
        sets = plain.set_params(imprecision=c).predict_set(X[test])
        alpha = params.get("scoring", 2.2)
        expected = prudent.metrics.utility_score(y[test], sets, plain.classes_, alpha)
        assert score == pytest.approx(expected, abs=1e-12)
    if "costs" in params:
        assert model.predict(X).tolist() == model.estimator_.predict(X).tolist()


def test_a_fold_without_a_class_takes_its_part_of_the_costs():
    train = np.flatnonzero(Y_IRIS != 2)
    test = np.flatnonzero(Y_IRIS == 2)
    model = ImpreciseDiscriminantAnalysisCV(
        imprecisions=[1.0], costs=COSTS, cv=[(train, test)]
    ).fit(X_IRIS, Y_IRIS)
    assert model.best_score_ == 0.0
    with pytest.raises(ValueError, match="`costs` must be finite, of shape"):
        model.set_params(costs=np.eye(2)).fit(X_IRIS, Y_IRIS)


@pytest.mark.parametrize("scoring", [0.5, np.nan, np.inf])
def test_an_alpha_below_one_is_refused(scoring):
    model = ImpreciseDiscriminantAnalysisCV(scoring=scoring)
    with pytest.raises(ValueError, match="`scoring` must be a finite number >= 1, got"):
        model.fit(X_IRIS, Y_IRIS)
