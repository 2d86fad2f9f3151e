import numpy as np
import pytest
from sklearn.datasets import load_iris, load_wine

from calibration.rows import FAMILIES, overlapping_clouds
from prudent import RiskCalibratedClassifier

PLAIN = {"stopping": "none", "line_search": False, "covariance_prior_strength": 0.0}


def separable():
    X, y = overlapping_clouds(60, seed=3)
    return X + 20 * y[:, None], y


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("learning_rate", [0.1, 2.0, 10.0])
def test_line_search_never_raises_the_log_loss(family, learning_rate):
    X, y = overlapping_clouds()
    model = RiskCalibratedClassifier(
        family=family, learning_rate=learning_rate, stopping="none"
    ).fit(X, y)
    assert (np.diff(model.loss_curve_) <= 1e-12 * model.loss_curve_[0]).all()
    assert len(model.loss_curve_) <= model.n_iter_ <= 64


@pytest.mark.parametrize("family", ["full", "tied_diag"])
def test_a_large_step_is_tamed(family):
    X, y = load_iris(return_X_y=True)
    model = RiskCalibratedClassifier(
        family=family, learning_rate=10, stopping="none"
    ).fit(X, y)
    assert model.loss_curve_[-1] < 0.0398
    assert np.isfinite(model.predict_proba(X)).all()


def test_a_rejected_step_halves_the_learning_rate():
    X, y = overlapping_clouds()
    model = RiskCalibratedClassifier(
        family="tied_diag", learning_rate=64.0, stopping="none"
    ).fit(X, y)
    ratios = model.learning_rate_curve_ / 64.0
    np.testing.assert_array_equal(ratios, 2.0 ** np.round(np.log2(ratios)))
    assert model.n_iter_ > len(model.loss_curve_)


def test_an_adaptive_step_grows_to_four_times_the_first():
    X, y = overlapping_clouds()
    model = RiskCalibratedClassifier(
        family="tied_diag", step="adaptive", stopping="none"
    ).fit(X, y)
    assert model.learning_rate_curve_[2] == pytest.approx(0.12)
    assert model.learning_rate_curve_.max() == pytest.approx(0.4)


def test_an_adaptive_step_stays_below_the_generative_limit():
    X, y = overlapping_clouds()
    model = RiskCalibratedClassifier(
        learning_rate=0.5, step="adaptive", generative_weight=4.0, stopping="none"
    ).fit(X, y)
    assert model.learning_rate_curve_.max() <= 0.2


@pytest.mark.parametrize("guard", ["halve", "freeze"])
@pytest.mark.parametrize("family", FAMILIES)
def test_parameters_stay_valid_without_line_search(family, guard):
    X, y = load_iris(return_X_y=True)
    model = RiskCalibratedClassifier(
        family=family, guard=guard, learning_rate=20.0, **PLAIN
    ).fit(X, y)
    assert model.n_frozen_ > 0
    assert model.family_.is_valid(model.statistics_).all()
    assert np.isfinite(model.predict_proba(X)).all()


def test_a_frozen_covariance_family_stays_where_it_is():
    X, y = load_iris(return_X_y=True)
    model = RiskCalibratedClassifier(
        family="full", guard="freeze", learning_rate=10.0, **PLAIN
    ).fit(X, y)
    assert model.n_frozen_ == 63
    np.testing.assert_array_equal(model.loss_curve_, model.loss_curve_[0])


def test_separated_classes_end_the_climb():
    X, y = separable()
    model = RiskCalibratedClassifier(stopping="none", max_iter=500).fit(X, y)
    assert model.n_iter_ < 500
    assert model.loss_curve_[-1] < 1e-10
    assert np.isfinite(model.predict_proba(X)).all()


@pytest.mark.parametrize("family", FAMILIES)
def test_the_path_does_not_depend_on_max_iter(family):
    X, y = overlapping_clouds()
    short, long = (
        RiskCalibratedClassifier(family=family, max_iter=n, **PLAIN).fit(X, y)
        for n in (5, 20)
    )
    np.testing.assert_array_equal(short.loss_curve_, long.loss_curve_[:5])


def test_one_evaluation_is_the_closed_form_start():
    X, y = overlapping_clouds()
    model = RiskCalibratedClassifier(max_iter=1).fit(X, y)
    assert (model.n_iter_, model.best_iteration_, len(model.loss_curve_)) == (1, 0, 1)


def test_training_rule_keeps_the_least_error_then_the_smaller_log_loss():
    X, y = overlapping_clouds()
    model = RiskCalibratedClassifier(family="diag", stopping="train").fit(X, y)
    best = np.lexsort([model.loss_curve_, model.error_curve_])[0]
    assert model.best_iteration_ == best
    assert 1 - model.score(X, y) == pytest.approx(model.error_curve_[best])


def test_curves_describe_the_kept_model():
    X, y = overlapping_clouds()
    model = RiskCalibratedClassifier(stopping="none").fit(X, y)
    H = model.predict_proba(X)
    assert model.loss_curve_[-1] == pytest.approx(
        -np.log(H[np.arange(len(y)), y]).mean()
    )
    assert model.error_curve_[-1] == pytest.approx(1 - model.score(X, y))


def test_cross_validation_stops_the_final_path_at_its_choice():
    X, y = overlapping_clouds(seed=1)
    model = RiskCalibratedClassifier(family="diag").fit(X, y)
    assert len(model.loss_curve_) == model.best_iteration_ + 1


def test_full_batch_equals_no_batch():
    X, y = overlapping_clouds()
    none, full = (
        RiskCalibratedClassifier(batch_size=size, stopping="none").fit(X, y)
        for size in (None, len(y))
    )
    np.testing.assert_array_equal(none.loss_curve_, full.loss_curve_)


def test_batches_lower_the_log_loss():
    X, y = overlapping_clouds()
    model = RiskCalibratedClassifier(batch_size=20, stopping="none").fit(X, y)
    assert model.loss_curve_[-1] < 0.95 * model.loss_curve_[0]


def test_a_large_generative_weight_stays_at_maximum_likelihood():
    X, y = overlapping_clouds()
    model = RiskCalibratedClassifier(generative_weight=1e6, stopping="none").fit(X, y)
    assert model.loss_curve_[-1] == pytest.approx(model.loss_curve_[0], rel=1e-4)


def test_fixed_point_of_the_generative_weight():
    X, y = overlapping_clouds()
    share = 0.5
    model = RiskCalibratedClassifier(
        family="tied", generative_weight=share, learning_rate=0.5, max_iter=800,
        stopping="none", covariance_prior_strength=0.0,
    ).fit(X, y)  # fmt: skip
    Z, Y = model.family_.prepare(X), np.eye(3)[y]
    labels = model.family_.statistics(Z, Y)
    believed = model.family_.statistics(Z, model.predict_proba(X))
    for full, soft, s in zip(labels, believed, model.statistics_, strict=True):
        np.testing.assert_allclose(full - soft + share * (full - s), 0, atol=1e-5)


def test_zero_one_loss_equals_unit_costs():
    X, y = overlapping_clouds()
    loss = RiskCalibratedClassifier(loss="zero_one", stopping="none").fit(X, y)
    costs = RiskCalibratedClassifier(costs=1 - np.eye(3), stopping="none").fit(X, y)
    np.testing.assert_array_equal(loss.loss_curve_, costs.loss_curve_)
    np.testing.assert_array_equal(loss.predict(X), costs.predict(X))


def test_costs_lower_the_expected_cost():
    X, y = overlapping_clouds()
    costs = np.array([[0, 1, 5], [1, 0, 1], [2, 1, 0]])

    def expected_cost(model):
        return (model.predict_proba(X) * costs[y]).sum(axis=1).mean()

    start, end = (
        RiskCalibratedClassifier(costs=costs, max_iter=n, stopping="none").fit(X, y)
        for n in (1, 64)
    )
    assert expected_cost(end) < 0.95 * expected_cost(start)


def test_tm_is_full_steps_of_maximum_likelihood():
    X, y = overlapping_clouds()
    tm = RiskCalibratedClassifier(family="tied", method="tm", stopping="none").fit(X, y)
    rc = RiskCalibratedClassifier(family="tied", learning_rate=1.0, **PLAIN).fit(X, y)
    np.testing.assert_array_equal(tm.loss_curve_, rc.loss_curve_)


def test_gradient_descent_starts_at_the_discriminant():
    X, y = overlapping_clouds()
    gd, rc = (
        RiskCalibratedClassifier(family="tied", method=method, stopping="none").fit(
            X, y
        )
        for method in ("gd", "rc")
    )
    assert gd.loss_curve_[0] == pytest.approx(rc.loss_curve_[0], rel=1e-12)
    assert not hasattr(gd, "means_")


def test_gradient_descent_steps_along_the_gradient():
    X, y = overlapping_clouds()
    settings = {"family": "tied_diag", "method": "gd"} | PLAIN
    before, after = (
        RiskCalibratedClassifier(max_iter=n, **settings).fit(X, y) for n in (1, 2)
    )
    Z, n = before.family_.prepare(X), len(y)
    theta = before.statistics_[0] / n
    H = before.predict_proba(X)
    expected = theta - 0.1 / n * (H - np.eye(3)[y]).T @ Z
    np.testing.assert_allclose(after.statistics_[0] / n, expected, rtol=1e-12)


def test_frozen_counts_stay_while_the_others_move():
    """With pseudo counts a level that a class lacks is pushed below its range."""
    codes = np.array([[0], [0], [1], [1], [2], [2], [0], [1]])
    y = np.array([0, 0, 0, 0, 1, 1, 1, 1])
    model = RiskCalibratedClassifier(
        family="categorical", guard="freeze", learning_rate=4.0, stopping="none",
        line_search=False, level_prior_strength=0.3, max_iter=40,
    ).fit(codes, y)  # fmt: skip
    assert 0 < model.n_frozen_ <= 39
    assert model.loss_curve_[-1] < model.loss_curve_[0]
    assert (model.level_probabilities_[0] >= 0).all()


def test_frozen_mixed_families_stay_valid():
    pd = pytest.importorskip("pandas")
    X, y = load_iris(return_X_y=True)
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame["size"] = np.where(X[:, 0] > 5.8, "big", "small")
    model = RiskCalibratedClassifier(
        family="mixed", guard="freeze", learning_rate=30.0, stopping="none",
        line_search=False,
    ).fit(frame, y)  # fmt: skip
    assert model.n_frozen_ > 0
    assert np.isfinite(model.predict_proba(frame)).all()


def test_a_class_that_cannot_move_keeps_its_statistics():
    X, y = overlapping_clouds()
    starts = []

    class Still:
        """Only the start of class 0 is valid."""

        def statistics(self, rows, Q):
            starts.append([Q.sum(axis=0), Q.T @ rows])
            return [part.copy() for part in starts[-1]]

        def parameters(self, s):
            return s[1] / s[0][:, None]

        def log_joint(self, rows, means):
            return -((rows[:, None] - means) ** 2).sum(axis=2)

        def is_valid(self, s):
            valid = s[0] > 0
            valid[0] &= s[0][0] == 40.0
            return valid

    model = RiskCalibratedClassifier(
        family=Still(), stopping="none", max_iter=3, line_search=False
    ).fit(X, y)
    assert model.n_frozen_ == 2
    np.testing.assert_array_equal(model.statistics_[1][0], starts[0][1][0])
    assert not np.array_equal(model.statistics_[1][1], X[y == 1].sum(axis=0))


def test_equal_training_errors_are_told_apart_by_the_log_loss():
    X, y = load_wine(return_X_y=True)
    model = RiskCalibratedClassifier(family="full", stopping="train").fit(X[:, :5], y)
    errors = model.error_curve_
    ties = np.flatnonzero(errors == errors.min())
    assert model.best_iteration_ > errors.argmin()
    assert model.best_iteration_ == ties[model.loss_curve_[ties].argmin()]
