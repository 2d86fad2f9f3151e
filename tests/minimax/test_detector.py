"""One-class regions and the outlier detector."""

import math

import numpy as np
import pytest
from sklearn.covariance import LedoitWolf

from prudent import ClassMoments, MinimaxOutlierDetector
from prudent.core.assumptions import Assumption
from prudent.core.binomial import high_probability_rank
from prudent.exceptions import (
    DegenerateDataError,
    InfeasibleError,
    PrudentWarning,
    SingularCovarianceError,
)
from prudent.minimax.one_class import halfspace

MEAN = [3, 2]
COVARIANCE = [[2, 0.5], [0.5, 1]]


def given(**params):
    return MinimaxOutlierDetector.from_moments(
        [MEAN], [COVARIANCE], [100], threshold="distribution_free", **params
    )


def rows(n=200, seed=0):
    rng = np.random.default_rng(seed)
    return rng.multivariate_normal(MEAN, COVARIANCE, size=n)


def test_halfspace_reference():
    region = halfspace(MEAN, COVARIANCE)
    assert region.zeta == pytest.approx(2.507132682112, rel=1e-12)
    np.testing.assert_allclose(
        region.weights / region.threshold(0.5), [0.302456652456, 0.378070815570]
    )
    robust = halfspace(MEAN, np.array(COVARIANCE) + 0.2 * np.eye(2))
    assert robust.zeta == pytest.approx(2.385451020046, rel=1e-12)
    np.testing.assert_allclose(
        robust.weights / robust.threshold(0.4, mean_radius=0.1),
        [0.429941984735, 0.479550675282],
    )


def test_halfspace_detector_equals_the_reference():
    detector = given(
        region="halfspace",
        false_alarm_rate=0.4,
        mean_radius=0.1,
        covariance_radius=0.2,
    )
    np.testing.assert_allclose(
        detector.coef_ / detector.offset_, [[0.429941984735, 0.479550675282]]
    )


def test_halfspace_lies_k_standard_deviations_from_the_mean():
    region = halfspace(MEAN, COVARIANCE)
    a = region.weights / region.threshold(0.3)
    k = (a @ MEAN - 1) / math.sqrt(a @ COVARIANCE @ a)
    assert k == pytest.approx(math.sqrt(0.7 / 0.3), rel=1e-12)


def test_infeasible_rate_names_the_smallest_feasible_one():
    zeta = halfspace(MEAN, COVARIANCE).zeta
    least = 1 / (1 + zeta**2)
    with pytest.raises(InfeasibleError, match=f"must exceed {least:.6g}"):
        given(region="halfspace", false_alarm_rate=0.1)
    assert given(region="halfspace", false_alarm_rate=least + 1e-9).offset_ > 0
    with pytest.raises(InfeasibleError):
        given(region="halfspace", false_alarm_rate=least - 1e-9)


def test_infeasible_rate_accounts_for_the_radii():
    zeta = halfspace(MEAN, COVARIANCE).zeta
    reach = zeta / math.sqrt(1.5) - 0.2
    params = {"region": "halfspace", "mean_radius": 0.2, "covariance_factor": 1.5}
    with pytest.raises(InfeasibleError, match=f"{1 / (1 + reach**2):.6g}"):
        given(false_alarm_rate=0.1, **params)


def test_mean_at_the_origin_has_no_halfspace():
    with pytest.raises(InfeasibleError, match="mean is 0"):
        halfspace([0, 0], COVARIANCE)


def test_ellipsoid_radius_with_and_without_uncertainty():
    assert given().offset_ == pytest.approx(-math.sqrt(20))
    uncertain = given(mean_radius=0.3, covariance_factor=4.0)
    assert uncertain.offset_ == pytest.approx(-2 * (math.sqrt(20) + 0.3))


def test_ellipsoid_scores_are_minus_mahalanobis_distances():
    detector = given(covariance_radius=0.5)
    z = np.array([[4.0, 0.0]])
    S = np.array(COVARIANCE) + 0.5 * np.eye(2)
    gap = z[0] - MEAN
    wanted = -math.sqrt(gap @ np.linalg.solve(S, gap))
    assert detector.score_samples(z)[0] == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize("region", ["ellipsoid", "halfspace"])
def test_prediction_is_the_sign_of_the_decision(region):
    X = rows()
    detector = MinimaxOutlierDetector(region=region, random_state=0).fit(X)
    decision = detector.decision_function(X)
    np.testing.assert_array_equal(
        decision, detector.score_samples(X) - detector.offset_
    )
    np.testing.assert_array_equal(detector.predict(X) == 1, decision >= 0)
    assert set(detector.predict(X)) == {-1, 1}


def test_calibrated_threshold_is_an_order_statistic_of_held_out_scores():
    X = rows(200)
    detector = MinimaxOutlierDetector(
        false_alarm_rate=0.1, calibration_size=0.25, random_state=3
    ).fit(X)
    assert detector.n_calibration_ == 50
    scores = detector.score_samples(X)
    held = ~np.isin(np.arange(200), np.flatnonzero(_in_fit(detector, X)))
    assert detector.offset_ == np.sort(scores[held])[math.floor(0.1 * 51) - 1]


def _in_fit(detector, X):
    order = np.random.RandomState(3).permutation(len(X))
    mask = np.ones(len(X), dtype=bool)
    mask[order[: detector.n_calibration_]] = False
    np.testing.assert_allclose(X[mask].mean(axis=0), detector.means_[0])
    return mask


def test_too_few_calibration_rows_reject_nothing_and_say_so():
    with pytest.warns(PrudentWarning, match="6 held-out rows are too few"):
        detector = MinimaxOutlierDetector(random_state=0).fit(rows(20))
    assert detector.offset_ == -np.inf
    assert (detector.predict([[1e9, 1e9]]) == 1).all()


def test_calibration_needs_rows_to_learn_from():
    with pytest.raises(ValueError, match="leaves 1 of n_samples=2"):
        MinimaxOutlierDetector(calibration_size=0.5).fit(rows(2))


def test_promises_say_on_what_they_rest():
    calibrated = MinimaxOutlierDetector(random_state=0).fit(rows()).guarantees_[0]
    assert calibrated.quantity == "false alarm rate"
    assert calibrated.bound == 6 / 61
    assert calibrated.evidence["calibration rows"] == 60
    assert "exchangeable" in str(calibrated)
    free = MinimaxOutlierDetector(threshold="distribution_free").fit(rows())
    assert "plug-in" in str(free.guarantees_[0])
    assert "exactly those given" in str(given().guarantees_[0])
    assert "within the radii" in str(given(mean_radius=0.1).guarantees_[0])


def test_fit_moments_equals_fit():
    X = rows()
    params = {"threshold": "distribution_free", "covariance": "ledoit_wolf"}
    fitted = MinimaxOutlierDetector(**params).fit(X)
    moments = ClassMoments.from_arrays(X, np.zeros(len(X), dtype=int), fourth=True)
    other = MinimaxOutlierDetector(**params).fit_moments(moments)
    np.testing.assert_array_equal(fitted.score_samples(X), other.score_samples(X))
    assert fitted.offset_ == other.offset_


def test_moment_methods_need_the_distribution_free_threshold():
    assert not hasattr(MinimaxOutlierDetector(), "fit_moments")
    with pytest.raises(ValueError, match="threshold='calibrated' needs the rows"):
        MinimaxOutlierDetector.from_moments([MEAN], [COVARIANCE], [9])
    estimator = MinimaxOutlierDetector(
        threshold="distribution_free", covariance=LedoitWolf()
    )
    assert not hasattr(estimator, "fit_moments")


def test_moments_of_two_classes_are_refused():
    moments = ClassMoments.from_arrays(rows(10), np.arange(10) % 2)
    detector = MinimaxOutlierDetector(threshold="distribution_free")
    with pytest.raises(ValueError, match="must hold one class, got 2"):
        detector.fit_moments(moments)
    with pytest.raises(ValueError, match="must hold one class, got 2"):
        MinimaxOutlierDetector.from_moments(
            [MEAN, MEAN], [COVARIANCE] * 2, [9, 9], threshold="distribution_free"
        )


def test_p_values_rank_a_row_among_the_held_out_ones():
    X = rows(200)
    detector = MinimaxOutlierDetector(false_alarm_rate=0.1, random_state=0).fit(X)
    p = detector.p_value(X)
    assert p.min() >= 1 / 61
    assert p.max() <= 1
    np.testing.assert_array_equal(detector.predict(X) == -1, p < 6 / 61 + 1e-12)
    assert not hasattr(
        MinimaxOutlierDetector(threshold="distribution_free").fit(X), "p_value"
    )


def test_another_rate_needs_no_new_fit():
    X = rows(200)
    detector = MinimaxOutlierDetector(random_state=0).fit(X)
    other = detector.with_false_alarm_rate(0.2)
    fresh = MinimaxOutlierDetector(false_alarm_rate=0.2, random_state=0).fit(X)
    assert other.offset_ == fresh.offset_ > detector.offset_
    assert other.guarantees_ == fresh.guarantees_
    assert detector.guarantees_[0].bound == 6 / 61
    with pytest.raises(ValueError, match="false_alarm_rate"):
        detector.with_false_alarm_rate(1.5)


def test_groups_are_held_out_whole_and_only_where_rows_are():
    X, groups = rows(120), np.repeat(np.arange(12), 10)
    detector = MinimaxOutlierDetector(
        false_alarm_rate=0.2, random_state=0, calibration_size=0.5
    )
    promise = detector.fit(X, groups=groups).guarantees_[0]
    assert promise.evidence == {"calibration rows": 6, "rank": 1}
    assert promise.assumptions == (Assumption.GROUPS,)
    with pytest.raises(ValueError, match="use threshold='calibrated'"):
        MinimaxOutlierDetector(threshold="distribution_free").fit(X, groups=groups)


def test_singular_covariance_names_the_feature():
    X = np.column_stack([rows(), rows()[:, 0] * 2])
    with pytest.raises(SingularCovarianceError, match="feature 2"):
        MinimaxOutlierDetector(random_state=0).fit(X)
    assert MinimaxOutlierDetector(covariance="oas", random_state=0).fit(X).offset_ < 0


def test_constant_feature_is_ignored():
    X = rows()
    with pytest.warns(PrudentWarning, match="constant over all rows"):
        detector = MinimaxOutlierDetector(random_state=0).fit(
            np.insert(X, 1, 5.0, axis=1)
        )
    plain = MinimaxOutlierDetector(random_state=0).fit(X)
    np.testing.assert_array_equal(detector.constant_features_, [1])
    assert detector.offset_ == pytest.approx(plain.offset_)


def test_rows_that_are_all_equal_are_refused():
    with pytest.raises(DegenerateDataError, match="all rows are equal"):
        MinimaxOutlierDetector().fit(np.ones((10, 2)))


def test_kernel_ellipsoid_without_a_diagonal_is_refused():
    with pytest.raises(ValueError, match="use region='halfspace'"):
        MinimaxOutlierDetector(kernel="precomputed").fit(np.eye(10))
    with pytest.raises(ValueError, match="is undefined"):
        MinimaxOutlierDetector(kernel="rbf", threshold="distribution_free").fit(rows())


def test_precomputed_halfspace_equals_the_named_kernel():
    from sklearn.metrics.pairwise import rbf_kernel

    X = rows(60)
    params = {"region": "halfspace", "random_state": 0}
    K = rbf_kernel(X, gamma=0.5)
    own = MinimaxOutlierDetector(kernel="precomputed", **params).fit(K)
    named = MinimaxOutlierDetector(kernel="rbf", gamma=0.5, **params).fit(X)
    np.testing.assert_allclose(own.score_samples(K), named.score_samples(X), rtol=1e-6)


def test_dask_is_refused():
    import dask.array as da

    with pytest.raises(TypeError, match="dask"):
        MinimaxOutlierDetector().fit(da.ones((10, 2)))


def test_the_promise_is_that_of_the_rank():
    never = MinimaxOutlierDetector(false_alarm_rate=0.01, random_state=0)
    with pytest.warns(PrudentWarning, match="too few for false_alarm_rate=0.01"):
        (promise,) = never.fit(rows()).guarantees_
    assert (promise.bound, promise.evidence["rank"]) == (0, 0)  # true, if useless
    assert never.rule_.guarantees == (promise,)
    sure = MinimaxOutlierDetector(confidence=0.9, random_state=0).fit(rows())
    (promise,) = sure.guarantees_
    assert (promise.bound, promise.confidence, promise.average_over) == (0.1, 0.9, None)
    assert promise.evidence["rank"] == high_probability_rank(60, 0.1, 0.9)
    moments = MinimaxOutlierDetector(threshold="distribution_free", confidence=0.9)
    with pytest.raises(ValueError, match="`confidence` needs threshold='calibrated'"):
        moments.fit(rows())


def test_parameters_changed_after_the_fit_change_no_answer():
    detector = MinimaxOutlierDetector(random_state=0).fit(rows())
    alarms = detector.predict(rows())
    detector.set_params(false_alarm_rate=0.5, confidence=0.9)
    np.testing.assert_array_equal(detector.predict(rows()), alarms)
    np.testing.assert_array_equal(
        alarms == -1, detector.rule_.alarms(detector.score_samples(rows()))
    )
    assert detector.guarantees_ is detector.rule_.guarantees


def test_a_singular_covariance_is_one_of_the_normal_rows():
    wide = np.random.default_rng(0).normal(size=(20, 30))
    with pytest.raises(SingularCovarianceError, match="matrix of class 'normal'"):
        MinimaxOutlierDetector(random_state=0).fit(wide)


def test_an_offset_of_all_features_changes_no_distance():
    rows = np.random.default_rng(0).integers(0, 50, size=(60, 2)) / 8
    here = MinimaxOutlierDetector(kernel="rbf", random_state=0).fit(rows)
    far = MinimaxOutlierDetector(kernel="rbf", random_state=0).fit(rows + 2.0**30)
    expected = here.score_samples(rows)
    assert np.allclose(far.score_samples(rows + 2.0**30), expected, rtol=1e-6)
    assert far.score_samples(rows[:1] + 2.0**30) == far.score_samples(rows + 2.0**30)[0]
