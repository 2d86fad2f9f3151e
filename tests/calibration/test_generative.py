"""The model behind the answers: coefficients, density, rows drawn from it, starts."""

import numpy as np
import pytest
from scipy.stats import chi2, invwishart, multivariate_normal
from sklearn.datasets import load_breast_cancer, load_iris

from calibration.rows import FAMILIES, overlapping_clouds
from prudent import RiskCalibratedClassifier

IRIS = load_iris(return_X_y=True)


@pytest.mark.parametrize("method", ["rc", "gd", "tm"])
@pytest.mark.parametrize("family", ["tied", "tied_diag"])
@pytest.mark.parametrize("data", [IRIS, load_breast_cancer(return_X_y=True)])
def test_coefficients_are_those_of_the_decision_function(family, method, data):
    X, y = data
    model = RiskCalibratedClassifier(
        family=family, method=method, stopping="none", max_iter=12
    ).fit(X, y)
    linear = X @ model.coef_.T + model.intercept_
    decision = model.decision_function(X)
    np.testing.assert_allclose(linear.reshape(decision.shape), decision, atol=1e-10)
    rows = (1, X.shape[1]) if len(model.classes_) == 2 else (3, X.shape[1])
    assert model.coef_.shape == rows
    assert model.intercept_.shape == rows[:1]


def test_other_families_have_no_coefficients():
    model = RiskCalibratedClassifier(family="tied", stopping="none").fit(*IRIS)
    assert hasattr(model, "coef_")
    model.set_params(family="full").fit(*IRIS)
    assert not hasattr(model, "coef_")


@pytest.mark.parametrize("family", FAMILIES)
def test_rows_drawn_have_the_moments_of_the_model(family):
    X, y = overlapping_clouds()
    X = np.insert(X, 1, 4.0, axis=1)
    model = RiskCalibratedClassifier(family=family, stopping="none", max_iter=5)
    with pytest.warns(match="constant"):
        model.fit(X, np.array(["a", "b", "c"])[y])
    drawn, labels = model.sample(60_000, random_state=0)
    assert (drawn[:, 1] == 4.0).all()
    for k, label in enumerate("abc"):
        own = drawn[labels == label]
        assert len(own) / 60_000 == pytest.approx(model.priors_[k], abs=0.01)
        np.testing.assert_allclose(own.mean(axis=0), model.means_[k], atol=0.06)
        spread = getattr(model, "covariances_", None)
        if spread is None:
            spread = model.variances_
            variances = spread[k] if spread.ndim == 2 else spread
            np.testing.assert_allclose(own.var(axis=0), variances, rtol=0.06, atol=1e-9)
        else:
            matrix = spread[k] if spread.ndim == 3 else spread
            np.testing.assert_allclose(np.cov(own.T), matrix, atol=0.1)


def test_levels_are_drawn_by_their_probabilities():
    rng = np.random.default_rng(0)
    X = rng.choice(["red", "green", "blue"], size=(90, 2)).astype(object)
    y = np.arange(90) % 2
    model = RiskCalibratedClassifier(family="categorical", stopping="none").fit(X, y)
    drawn, labels = model.sample(40_000, random_state=0)
    levels = ["blue", "green", "red"]
    for k in range(2):
        share = [np.mean(drawn[labels == k, 0] == level) for level in levels]
        np.testing.assert_allclose(share, model.level_probabilities_[0][k], atol=0.015)
    assert model.predict(drawn[:10]).shape == (10,)


def test_probabilities_of_all_rows_of_levels_sum_to_one():
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 3, size=(60, 2)), rng.integers(0, 2, 60)
    model = RiskCalibratedClassifier(family="categorical", stopping="none").fit(X, y)
    grid = np.array([[i, j] for i in range(3) for j in range(3)])
    assert np.exp(model.score_samples(grid)).sum() == pytest.approx(1.0)


def test_no_density_without_a_generative_model():
    model = RiskCalibratedClassifier(family="tied", method="gd")
    assert not hasattr(model, "score_samples")
    assert not hasattr(model, "sample")
    assert not hasattr(RiskCalibratedClassifier(family="mixed"), "sample")


def test_objective_curve_is_the_error_of_answers_drawn_from_the_posterior():
    X, y = overlapping_clouds()
    model = RiskCalibratedClassifier(stopping="none", max_iter=7).fit(X, y)
    H = model.predict_proba(X)
    assert len(model.objective_curve_) == len(model.loss_curve_)
    assert model.objective_curve_[-1] == pytest.approx(
        1 - H[np.arange(len(y)), y].mean()
    )
    costs = np.array([[0, 1, 4], [2, 0, 1], [1, 1, 0.0]])
    model.set_params(costs=costs).fit(X, y)
    expected = (model.predict_proba(X) * costs[y]).sum(axis=1).mean()
    assert model.objective_curve_[-1] == pytest.approx(expected)


@pytest.mark.parametrize("family", FAMILIES)
def test_own_priors_pull_means_and_covariances(family):
    X, y = overlapping_clouds()
    mean, matrix = np.array([5.0, -3.0, 1.0]), np.diag([4.0, 1.0, 9.0])
    matrix[0, 1] = matrix[1, 0] = 0.5
    settings = {"family": family, "max_iter": 1, "covariance_prior_strength": 0.0}
    plain = RiskCalibratedClassifier(**settings).fit(X, y)
    settings |= {"covariance_prior_strength": 30.0, "mean_prior_strength": 10.0}
    pulled = RiskCalibratedClassifier(
        mean_prior=mean, covariance_prior=matrix, **settings
    ).fit(X, y)
    np.testing.assert_allclose(
        pulled.means_, (40 * plain.means_ + 10 * mean) / 50, rtol=1e-10
    )
    rows = 120 if family.startswith("tied") else 40
    name = "variances_" if family.endswith("diag") else "covariances_"
    towards = np.diag(matrix) if name == "variances_" else matrix
    np.testing.assert_allclose(
        getattr(pulled, name),
        (rows * getattr(plain, name) + 30 * towards) / (rows + 30),
        rtol=1e-9, atol=1e-10,
    )  # fmt: skip


def test_class_strength_is_rows_shared_by_the_classes():
    X, y = IRIS[0][:120], IRIS[1][:120]  # 50, 50 and 20 rows
    model = RiskCalibratedClassifier(class_prior_strength=30.0, max_iter=1).fit(X, y)
    np.testing.assert_allclose(model.priors_, [60 / 150, 60 / 150, 30 / 150])


def log_posterior(S, X, mean, m1, m2):
    """Of a covariance, up to a constant: the rows are jointly normal given it."""
    n, d = X.shape
    joint = np.kron(np.eye(n) + np.ones((n, n)) / m1, S)
    rows = multivariate_normal(np.tile(mean, n), joint).logpdf(X.ravel())
    return rows + invwishart(m2 - d - 1, m2 * np.eye(d)).logpdf(S)


@pytest.mark.parametrize("family", ["full", "diag"])
def test_exact_map_is_the_mode_of_the_normal_inverse_wishart_posterior(family):
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 7)
    X = rng.normal(size=(14, 2)) + 3.0 * y[:, None]
    mean, m1, m2 = np.array([-2.0, 4.0]), 3.0, 12.0
    model = RiskCalibratedClassifier(
        family=family, max_iter=1, exact_map=True,
        mean_prior_strength=m1, covariance_prior_strength=m2,
        mean_prior=mean, covariance_prior=np.ones(2),
    ).fit(X, y)  # fmt: skip
    columns = [[0, 1]] if family == "full" else [[0], [1]]
    for k in range(2):
        for used in columns:
            if family == "full":
                mode = model.covariances_[k]
            else:
                mode = model.variances_[k][used][:, None]
            given = X[y == k][:, used], mean[used], m1, m2
            best = log_posterior(mode, *given)
            for _ in range(60):
                step = 0.02 * rng.normal(size=mode.shape)
                other = mode + (step + step.T) * mode.diagonal().mean()
                assert log_posterior(other, *given) < best


@pytest.mark.parametrize("family", FAMILIES)
def test_exact_map_adds_the_scatter_of_the_means(family):
    X, y = overlapping_clouds()
    mean = np.array([5.0, -3.0, 1.0])
    settings = {"family": family, "max_iter": 1, "covariance_prior_strength": 30.0}
    plain = RiskCalibratedClassifier(**settings).fit(X, y)
    settings |= {"mean_prior": mean, "mean_prior_strength": 10.0}
    neglected = RiskCalibratedClassifier(**settings).fit(X, y)
    exact = RiskCalibratedClassifier(exact_map=True, **settings).fit(X, y)
    np.testing.assert_array_equal(exact.means_, neglected.means_)
    name = "variances_" if family.endswith("diag") else "covariances_"
    gaps = plain.means_ - mean
    terms = 10 * 40 / 50 * gaps[:, :, None] * gaps[:, None, :]
    if family.startswith("tied"):
        added = terms.sum(axis=0) / (120 + 30)
    else:
        added = terms / (40 + 30)
    if name == "variances_":
        added = np.diagonal(added, axis1=-2, axis2=-1)
    ours = getattr(exact, name) - getattr(neglected, name)
    np.testing.assert_allclose(ours, added, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("mean_prior", [1.0, 2.0]),
        ("covariance_prior", [[1.0]]),
        ("covariance_prior", (-np.eye(4)).tolist()),
    ],
)
def test_priors_of_another_shape_are_refused(setting, value):
    with pytest.raises(ValueError, match=f"`{setting}` must"):
        RiskCalibratedClassifier(**{setting: value}).fit(*IRIS)


@pytest.mark.parametrize("family", FAMILIES)
def test_random_starts_climb_to_the_same_place(family):
    X, y = overlapping_clouds(150, gap=0.5)
    settings = {"family": family, "learning_rate": 1.0, "max_iter": 600}
    closed = RiskCalibratedClassifier(stopping="none", **settings).fit(X, y)
    drawn = RiskCalibratedClassifier(
        stopping="none", init="random", random_state=0, **settings
    ).fit(X, y)
    assert drawn.loss_curve_[0] > closed.loss_curve_[0]
    assert drawn.loss_curve_[-1] == pytest.approx(closed.loss_curve_[-1], abs=0.02)


def test_the_best_of_several_random_starts_is_kept():
    X, y = overlapping_clouds()
    settings = {"init": "random", "stopping": "none", "max_iter": 3, "random_state": 0}
    one, five = (
        RiskCalibratedClassifier(n_init=n, **settings).fit(X, y) for n in (1, 5)
    )
    assert five.loss_curve_[-1] <= one.loss_curve_[-1]


def test_a_bootstrap_start_redraws_the_rows_of_each_class():
    X = np.array([0.0, 1, 10, 100, 200, 201, 210, 300])[:, None]
    y = np.repeat([0, 1], 4)
    settings = {"max_iter": 1, "stopping": "none", "covariance_prior_strength": 1.0}
    labels = RiskCalibratedClassifier(**settings).fit(X, y)
    starts = set()
    for seed in range(8):
        model = RiskCalibratedClassifier(
            init="bootstrap", random_state=seed, **settings
        ).fit(X, y)
        np.testing.assert_array_equal(model.priors_, labels.priors_)
        sums = np.round(4 * model.means_[:, 0], 6)
        for k, total in enumerate(sums):
            own = X[y == k, 0]
            draws = np.stack(np.meshgrid(own, own, own, own)).reshape(4, -1)
            assert np.isclose(draws.sum(axis=0), total).any()
        starts.add(tuple(sums))
    assert len(starts) > 4


def test_a_bootstrap_start_redraws_as_many_rows_of_levels_as_there_are():
    """Equal rows are merged into one of their weight; few draws would vary too much."""
    X, y = np.tile([0, 1], 500)[:, None], np.repeat([0, 1], 500)
    counts = []
    for seed in range(200):
        model = RiskCalibratedClassifier(
            family="categorical",
            init="bootstrap",
            stopping="none",
            max_iter=1,
            learning_rate=1e-9,
            random_state=seed,
        ).fit(X, y)
        counts.append(model.statistics_[1][0, 0])
    assert chi2.cdf(199 * np.var(counts, ddof=1) / 125, 199) < 0.9999  # n p (1 - p)


def test_the_best_of_several_bootstrap_starts_is_kept():
    X, y = overlapping_clouds()
    settings = {"init": "bootstrap", "stopping": "none", "max_iter": 3}
    losses = [
        RiskCalibratedClassifier(n_init=n, random_state=0, **settings)
        .fit(X, y)
        .loss_curve_[-1]
        for n in (1, 2, 6)
    ]
    assert losses[0] >= losses[1] >= losses[2]
    assert losses[0] > losses[2]


@pytest.mark.parametrize("family", [*FAMILIES, "categorical"])
def test_given_statistics_continue_a_path(family):
    X, y = overlapping_clouds()
    if family == "categorical":
        X = np.clip(np.round(X), -1, 1)
    settings = {"family": family, "stopping": "none", "line_search": False}
    whole = RiskCalibratedClassifier(max_iter=9, **settings).fit(X, y)
    first = RiskCalibratedClassifier(max_iter=5, **settings).fit(X, y)
    start = [7.0 * part for part in first.statistics_]  # brought to the rows' weight
    rest = RiskCalibratedClassifier(init=start, max_iter=5, **settings).fit(X, y)
    np.testing.assert_allclose(rest.loss_curve_, whole.loss_curve_[4:], rtol=1e-9)
    np.testing.assert_allclose(rest.statistics_[1], whole.statistics_[1], atol=1e-8)


@pytest.mark.parametrize("spoil", ["shape", "nan", "weight"])
def test_statistics_that_cannot_start_are_refused(spoil):
    model = RiskCalibratedClassifier(stopping="none", max_iter=2).fit(*IRIS)
    start = [part.copy() for part in model.statistics_]
    if spoil == "shape":
        start[1] = start[1][:, :2]
    elif spoil == "nan":
        start[2][0, 0, 0] = np.nan
    else:
        start[0][:] = 0.0
    with pytest.raises(ValueError, match="`init` must hold finite statistics"):
        RiskCalibratedClassifier(init=start).fit(*IRIS)


def test_gradient_descent_starts_from_no_statistics():
    model = RiskCalibratedClassifier(family="tied", init=[np.ones(3)], method="gd")
    with pytest.raises(ValueError, match="`method='gd'` starts from labels"):
        model.fit(*IRIS)


def test_a_promise_pays_for_every_start():
    X, y = overlapping_clouds(300)
    model = RiskCalibratedClassifier(
        init="random", n_init=3, stopping="holdout", max_iter=5, random_state=0
    ).fit(X, y)
    assert model.guarantees_[0].evidence["claims"] == 15


def test_statistics_that_may_know_the_held_out_rows_lose_the_promise():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 15)), rng.integers(0, 2, size=200)  # error rate 1/2
    settings = {"covariance_prior_strength": 0.01, "random_state": 0}
    fitted = RiskCalibratedClassifier(stopping="none", max_iter=200, **settings)
    start = fitted.fit(X, y).statistics_
    model = RiskCalibratedClassifier(stopping="holdout", max_iter=1, **settings)
    assert model.fit(X, y).guarantees_[0].bound > 0.5
    assert model.set_params(init=start).fit(X, y).guarantees_ == ()


def test_frequency_estimate_raises_the_true_class_only():
    rng = np.random.default_rng(0)
    codes, y = rng.integers(0, 3, size=(80, 2)), np.arange(80) % 2
    settings = {
        "family": "categorical", "method": "dfe", "line_search": False,
        "stopping": "none",
    }  # fmt: skip
    start, after = (
        RiskCalibratedClassifier(max_iter=n, **settings).fit(codes, y) for n in (1, 2)
    )
    gains = 1 - start.predict_proba(codes)[np.arange(80), y]
    expected = start.statistics_[0] + 0.1 * np.bincount(y, gains)
    np.testing.assert_allclose(after.statistics_[0], expected, rtol=1e-12)
    assert (after.statistics_[1] >= start.statistics_[1]).all()


def test_a_batch_of_the_frequency_estimate_raises_true_classes_only():
    X, y = IRIS
    settings = {"family": "diag", "method": "dfe", "line_search": False}
    model = RiskCalibratedClassifier(max_iter=2, stopping="none", **settings)
    whole = model.fit(X, y).statistics_
    batch = RiskCalibratedClassifier(**settings).partial_fit(X, y).statistics_
    for one_batch, all_rows in zip(batch, whole, strict=True):
        np.testing.assert_allclose(one_batch, all_rows, atol=1e-10)
    assert batch[0].sum() > len(y)
