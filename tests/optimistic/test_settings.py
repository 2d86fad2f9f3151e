"""Settings of Nguyen et al. (2020) beyond Algorithm 1: LDA, tau(x), radii of sets."""

import pickle
import warnings

import dask
import dask.array as da
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

import prudent
import prudent.dask
from prudent import ClassMoments, OptimisticScoreClassifier
from prudent.exceptions import DegenerateDataError, PrudentWarning
from prudent.optimistic import clt_radius, gaussian_scores


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


@pytest.fixture(scope="module")
def binary():
    rng = np.random.default_rng(0)
    y = (rng.random(240) < 0.3).astype(int)
    return rng.normal(size=(240, 3)) + y[:, None] * [1.0, 0.5, 0.0], y


# -- one covariance for all classes: the paper's linear discriminant analysis ------


@pytest.mark.parametrize("table", ["iris", "binary"])
def test_pooled_at_radius_zero_is_linear_discriminant_analysis(table, request):
    X, y = request.getfixturevalue(table)
    model = OptimisticScoreClassifier(
        covariance="pooled", radius=0.0, threshold="bayes"
    ).fit(X, y)
    lda = LinearDiscriminantAnalysis(solver="lsqr").fit(X, y)
    ours, theirs = model.decision_function(X), lda.decision_function(X)
    if ours.ndim == 2:  # each row's values up to a constant
        ours, theirs = (v - v.mean(axis=1, keepdims=True) for v in (ours, theirs))
    np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-8)


def test_pooled_nonparametric_with_threshold_one_is_lda_with_equal_priors(binary):
    X, y = binary
    model = OptimisticScoreClassifier(
        likelihood="nonparametric", covariance="pooled", radius=0.0, threshold=1.0
    ).fit(X, y)
    frequencies = OptimisticScoreClassifier(covariance="pooled", radius=0.0).fit(X, y)
    S = sum(np.cov(X[y == c].T, bias=True) * (y == c).sum() for c in (0, 1)) / len(y)
    np.testing.assert_allclose(frequencies.covariances_, [S, S], rtol=1e-10)
    lda = LinearDiscriminantAnalysis(solver="lsqr", priors=[0.5, 0.5]).fit(X, y)
    # scikit-learn weighs the covariances by the priors given: its rule, our matrix
    w = np.linalg.solve(S, lda.means_[1] - lda.means_[0])
    linear = X @ w - lda.means_.mean(axis=0) @ w
    np.testing.assert_array_equal(model.predict(X), linear >= 0)


def test_pooled_from_moments_partial_fits_and_repetitions_agree(iris):
    X, y = iris
    settings = {"covariance": "pooled", "threshold": "bayes", "radius": 0.1}
    whole = OptimisticScoreClassifier(**settings).fit(X, y)
    parts = OptimisticScoreClassifier(**settings)
    for rows in np.array_split(np.random.default_rng(0).permutation(150), 3):
        parts.partial_fit(X[rows], y[rows])
    moments = OptimisticScoreClassifier(**settings).fit_moments(
        ClassMoments.from_arrays(X, y)
    )
    given = OptimisticScoreClassifier.from_moments(
        [X[y == c].mean(axis=0) for c in range(3)],
        [np.cov(X[y == c].T, bias=True) for c in range(3)],
        np.bincount(y),
        **settings,
    )
    expected = whole.decision_function(X)
    for model in (parts, moments, given):
        np.testing.assert_allclose(model.decision_function(X), expected, atol=1e-9)
    weight = np.random.default_rng(1).integers(1, 4, 150)
    weighted = OptimisticScoreClassifier(covariance="pooled").fit(X, y, weight)
    repeated = OptimisticScoreClassifier(covariance="pooled").fit(
        np.repeat(X, weight, axis=0), np.repeat(y, weight)
    )
    np.testing.assert_allclose(
        weighted.decision_function(X), repeated.decision_function(X), atol=1e-9
    )


def test_pooled_takes_classes_of_one_row_but_needs_rows_for_its_rank():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 4)), np.repeat([0, 1, 2], [1, 20, 9])
    model = OptimisticScoreClassifier(covariance="pooled", radius=0.1).fit(X, y)
    assert np.isfinite(model.decision_function(X)).all()
    with pytest.raises(DegenerateDataError, match="6 rows of 3 classes .* needs 7 row"):
        OptimisticScoreClassifier(covariance="pooled").fit(
            X[[0, 1, 2, 3, -1, -2]], y[[0, 1, 2, 3, -1, -2]]
        )


def test_pooled_floors_a_feature_that_varies_between_classes_only():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)), np.arange(40) % 2
    X[:, 1] = y
    with pytest.warns(PrudentWarning, match="constant inside"):
        model = OptimisticScoreClassifier(covariance="pooled", radius=0.1).fit(X, y)
    assert [label for label, _ in model.floored_features_] == [0, 1]
    assert model.covariances_[0, 1, 1] == pytest.approx(1e-9 * y.var())
    assert model.score(X, y) == 1.0


def test_pooled_has_no_bootstrap_radius(iris):
    model = OptimisticScoreClassifier(covariance="pooled", radius="bootstrap")
    with pytest.raises(ValueError, match="resamples the rows of one class"):
        model.fit(*iris)


@given(st.integers(0, 200), st.sampled_from(["gaussian", "nonparametric"]))
@settings(max_examples=30, deadline=None)
def test_pooled_decisions_do_not_depend_on_the_axes(seed, likelihood):
    rng = np.random.default_rng(seed)
    y = np.arange(60) % 3
    X = rng.normal(size=(60, 3)) + rng.normal(size=(3, 3))[y]
    B = rng.normal(size=(3, 3)) + 3 * np.eye(3)
    decisions = []
    for rows in (X, X @ B.T + rng.normal(size=3)):
        model = OptimisticScoreClassifier(
            likelihood=likelihood, covariance="pooled", threshold="bayes", radius=0.3
        )
        decision = model.fit(rows, y).decision_function(rows)
        decisions.append(decision - decision[:, :1])
    np.testing.assert_allclose(*decisions, rtol=1e-6, atol=1e-7)


# -- tau(x) ------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:the radii differ")
def test_a_constant_function_is_the_number(binary):
    X, y = binary
    number = OptimisticScoreClassifier(threshold=2.5).fit(X, y)
    function = OptimisticScoreClassifier(threshold=lambda X: np.full(len(X), 2.5))
    function.fit(X, y)
    assert function.log_threshold_ is None
    for method in ("decision_function", "predict_proba", "predict_set", "predict"):
        np.testing.assert_allclose(
            getattr(function, method)(X), getattr(number, method)(X), atol=1e-12
        )


@pytest.mark.filterwarnings("ignore:the radii differ")
def test_the_threshold_of_proposition_1_1_gives_the_minimax_action(binary):
    X, y = binary
    minimax = OptimisticScoreClassifier(rule="minimax").fit(X, y)

    def tau(rows):
        low = minimax.pessimistic_scores(rows)
        odds = 2 * np.log(minimax.priors_[0] / minimax.priors_[1])
        return np.exp(odds + low[:, 0] - low[:, 1])

    ratio = OptimisticScoreClassifier(threshold=tau).fit(X, y)
    np.testing.assert_array_equal(ratio.predict(X), minimax.predict(X))
    np.testing.assert_allclose(
        ratio.decision_function(X), 2 * minimax.decision_function(X), atol=1e-9
    )


def test_nonparametric_scores_with_a_threshold_function_are_bayesian_lda(binary):
    X, y = binary
    lda = LinearDiscriminantAnalysis(solver="lsqr").fit(X, y)
    S, log_odds = lda.covariance_, np.log(lda.priors_[0] / lda.priors_[1])

    def tau(rows):
        gaps = rows[:, None] - lda.means_
        M = np.einsum("nki,ij,nkj->nk", gaps, np.linalg.inv(S), gaps)
        rest = 1 + M[:, 0] - 2 * log_odds
        return np.where(rest > 0, (1 + M[:, 0]) / np.where(rest > 0, rest, 1), np.inf)

    model = OptimisticScoreClassifier(
        likelihood="nonparametric", covariance="pooled", radius=0.0, threshold=tau
    ).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), lda.predict(X))
    assert 0.05 < model.predict(X).mean() < 0.5


def test_the_function_sees_all_columns_in_their_units(binary):
    X, y = binary
    wide = np.insert(X, 0, 7.0, axis=1)
    seen = []

    def tau(rows):
        seen.append(rows)
        return np.exp(rows[:, 1])

    with pytest.warns(PrudentWarning, match="constant over all rows"):
        model = OptimisticScoreClassifier(threshold=tau, radius=0.1).fit(
            pd.DataFrame(wide, columns=list("abcd")), y
        )
    with_names = model.decision_function(pd.DataFrame(wide, columns=list("abcd")))
    np.testing.assert_array_equal(seen[-1], wide)
    plain = OptimisticScoreClassifier(threshold=1.0, radius=0.1).fit(X, y)
    np.testing.assert_allclose(with_names, plain.decision_function(X) - X[:, 0])


def make_tau(X):
    return 1.0 + X[:, 0] ** 2


def test_a_threshold_function_needs_no_rows_is_cloned_and_pickled(binary):
    X, y = binary
    settings = {"covariance": "empirical", "radius": 0.1, "threshold": make_tau}
    model = OptimisticScoreClassifier(**settings).partial_fit(X, y)
    again = pickle.loads(pickle.dumps(clone(model).fit(X, y)))
    np.testing.assert_allclose(again.decision_function(X), model.decision_function(X))
    model.set_params(threshold="bayes")  # what was learned stays
    np.testing.assert_allclose(again.decision_function(X), model.decision_function(X))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda X: 1.0, r"each of the 240 rows, got shape \(\)"),
        (lambda X: np.ones((len(X), 1)), r"got shape \(240, 1\)"),
        (lambda X: np.zeros(len(X)), "ratios > 0, got 0.0 at row 0"),
        (lambda X: np.where(np.arange(len(X)) == 3, np.nan, 1.0), "got nan at row 3"),
    ],
)
def test_bad_threshold_functions_are_errors(binary, function, message):
    X, y = binary
    model = OptimisticScoreClassifier(threshold=function).fit(X, y)
    with pytest.raises(ValueError, match=message):
        model.predict(X)


def test_a_threshold_function_is_for_two_classes(iris):
    with pytest.raises(ValueError, match="a function for two classes only"):
        OptimisticScoreClassifier(threshold=make_tau).fit(*iris)


# -- radii of sets -----------------------------------------------------------------


@pytest.mark.parametrize("rule", ["ratio", "minimax"])
def test_sets_have_a_tenth_of_the_ball_unless_the_scale_is_given(iris, rule):
    X, y = iris
    model = OptimisticScoreClassifier(rule=rule).fit(X, y)
    assert model.radii_ == pytest.approx(clt_radius(4, 50))
    assert model.set_radii_ == pytest.approx(0.1 * clt_radius(4, 50))
    for chosen in ({"radius_scale": 1.0}, {"radius_scale": 0.3}, {"radius": 0.2}):
        other = OptimisticScoreClassifier(rule=rule, **chosen).fit(X, y)
        np.testing.assert_array_equal(other.set_radii_, other.radii_)
    small = OptimisticScoreClassifier(rule=rule, radius_scale=0.1).fit(X, y)
    expected = small.predict_set(X)
    expected[np.arange(150), model.predict(X)] = True
    np.testing.assert_array_equal(model.predict_set(X), expected)


@pytest.mark.parametrize("load", [load_wine, load_breast_cancer])
def test_default_sets_decide_rows(load):
    X, y = load(return_X_y=True)
    by_default = OptimisticScoreClassifier().fit(X, y).predict_set(X)
    whole = OptimisticScoreClassifier(radius_scale=1.0).fit(X, y).predict_set(X)
    assert (by_default.sum(axis=1) == 1).mean() > 0.3
    assert (whole.sum(axis=1) == 1).mean() < 0.1


@pytest.mark.filterwarnings("ignore:the radii differ")
def test_sets_follow_from_the_scores_at_their_radii(binary):
    X, y = binary
    model = OptimisticScoreClassifier(threshold="bayes").fit(X, y)
    joint = []
    for c in (0, 1):
        S, gap = model.covariances_[c], X - model.means_[c]
        M = np.einsum("ni,ij,nj->n", gap, np.linalg.inv(S), gap)
        ends = gaussian_scores(M, 3, model.set_radii_[c])
        log_det = np.linalg.slogdet(S)[1]
        joint.append([(end - log_det) / 2 + np.log(model.priors_[c]) for end in ends])
    (low0, up0), (low1, up1) = joint
    expected = np.column_stack([up0 >= low1, up1 >= low0])
    expected[np.arange(len(y)), model.predict(X)] = True
    np.testing.assert_array_equal(model.predict_set(X), expected)


# -- blocks of rows ----------------------------------------------------------------


@pytest.mark.parametrize("threshold", ["tuned", "bayes", make_tau])
def test_pooled_learns_from_blocks_as_from_rows(binary, threshold):
    X, y = binary
    model = OptimisticScoreClassifier(
        covariance="pooled", threshold=threshold, radius=0.2
    )
    plain = clone(model).fit(X, y)
    blocks = da.from_array(X, chunks=(90, 3)), da.from_array(y, chunks=90)
    with dask.config.set(scheduler="synchronous"), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "chunks are small")
        found = prudent.dask.fit(model, *blocks)
    np.testing.assert_allclose(
        found.decision_function(X), plain.decision_function(X), atol=1e-9
    )
    np.testing.assert_array_equal(found.predict_set(X), plain.predict_set(X))


@pytest.mark.parametrize("chosen", [{"covariance": "pooled"}, {"radius_scale": None}])
def test_new_settings_are_saved(binary, chosen, tmp_path):
    X, y = binary
    model = OptimisticScoreClassifier(**chosen).fit(X, y)
    prudent.save(model, tmp_path / "model.prudent")
    again = prudent.load(tmp_path / "model.prudent")
    np.testing.assert_array_equal(again.predict_set(X), model.predict_set(X))


def test_a_dominated_class_that_a_threshold_predicts_leaves_at_a_larger_radius():
    """At x = 2 the narrow class is denser, and gains more from a larger ball."""

    def sets(radius, **changes):
        model = OptimisticScoreClassifier.from_moments(
            [[0.0], [0.0]],
            [[[100.0]], [[1.0]]],
            [50, 50],
            covariance="empirical",
            radius=radius,
            **changes,
        )
        return model.predict_set([[2.0]])[0].tolist()

    assert sets(0.0, threshold=np.exp(0.3226)) == [True, True]  # 0 by the threshold
    assert sets(1e-3, threshold=np.exp(0.3226)) == [False, True]
    for changes in ({"threshold": "bayes"}, {"rule": "minimax"}):
        found = [sets(radius, **changes) for radius in (0.0, 1e-3, 1e-2, 0.1)]
        assert found == [[False, True], [False, True], [True, True], [True, True]]
