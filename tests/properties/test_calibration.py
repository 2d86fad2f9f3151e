"""Invariants of the calibration for any data."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from calibration.rows import FAMILIES, overlapping_clouds
from prudent import RiskCalibratedClassifier

few = settings(max_examples=8, deadline=None)
seeds = st.integers(0, 10_000)
families = st.sampled_from(FAMILIES)
ML = {"covariance_prior_strength": 0.0, "stopping": "none", "max_iter": 12}


def clouds(seed, m=60, r=3):
    return overlapping_clouds(m, d=3, r=r, seed=seed, gap=0.6)


def loss_curve(family, X, y, weight=None, **others):
    model = RiskCalibratedClassifier(family=family, **ML | others)
    return model.fit(X, y, sample_weight=weight).loss_curve_


@few
@given(seeds, families)
def test_totals_of_the_statistics_stay(seed, family):
    X, y = clouds(seed)
    model = RiskCalibratedClassifier(family=family, line_search=False, **ML).fit(X, y)
    if model.n_frozen_:
        return
    Z = model.family_.prepare(X)
    s0, s1, *rest = model.statistics_
    if family == "full":
        # Every step may leave out weights up to 1e-10.
        slack = 1e-10 * len(model.loss_curve_) * len(y)
        np.testing.assert_allclose(s0.sum(), len(y), atol=slack)
        slack *= np.abs(Z).max() ** 2
        np.testing.assert_allclose(s1.sum(axis=0), Z[:, 1:].sum(axis=0), atol=slack)
        np.testing.assert_allclose(
            rest[0].sum(axis=0), Z[:, 1:].T @ Z[:, 1:], atol=slack
        )
        return
    np.testing.assert_allclose(s0.sum(), len(y), rtol=1e-12)
    np.testing.assert_allclose(s1.sum(axis=0), Z[:, 1:].sum(axis=0), atol=1e-10)
    if family == "diag":
        np.testing.assert_allclose(
            rest[0].sum(axis=0), (Z[:, 1:] ** 2).sum(axis=0), atol=1e-10
        )


@few
@given(seeds, families)
def test_posteriors_sum_to_one(seed, family):
    X, y = clouds(seed)
    H = RiskCalibratedClassifier(family=family, **ML).fit(X, y).predict_proba(X)
    np.testing.assert_allclose(H.sum(axis=1), 1, rtol=1e-12)
    assert (H >= 0).all()


@few
@given(seeds, st.sampled_from(["full", "tied"]))
def test_affine_maps_change_nothing(seed, family):
    X, y = clouds(seed)
    rng = np.random.default_rng(seed)
    moved = X @ (rng.normal(size=(3, 3)) + 3 * np.eye(3)) + 10 * rng.normal(size=3)
    np.testing.assert_allclose(
        loss_curve(family, moved, y), loss_curve(family, X, y), rtol=1e-8
    )


@few
@given(seeds, st.sampled_from(["diag", "tied_diag"]))
def test_scaling_columns_changes_nothing(seed, family):
    X, y = clouds(seed)
    scales = 10.0 ** np.random.default_rng(seed).uniform(-6, 6, size=3)
    np.testing.assert_allclose(
        loss_curve(family, X * scales, y), loss_curve(family, X, y), rtol=1e-10
    )


@few
@given(seeds, families)
def test_order_of_rows_columns_and_classes_changes_nothing(seed, family):
    X, y = clouds(seed)
    rng = np.random.default_rng(seed)
    rows, columns, classes = (rng.permutation(n) for n in (len(y), 3, 3))
    permuted = loss_curve(family, X[rows][:, columns], classes[y[rows]])
    np.testing.assert_allclose(permuted, loss_curve(family, X, y), rtol=1e-10)


@few
@given(seeds, families)
def test_weights_are_repetitions(seed, family):
    X, y = clouds(seed)
    weight = np.random.default_rng(seed).integers(1, 4, size=len(y))
    np.testing.assert_allclose(
        loss_curve(family, X, y, weight),
        loss_curve(family, np.repeat(X, weight, axis=0), np.repeat(y, weight)),
        rtol=1e-10,  # the share of the largest weight up to which a row may be left out
        atol=1e-12,  # rounding of log joints of tens, in a loss of hundredths
    )


@few
@given(seeds, families, st.floats(1e-3, 1e3))
def test_scale_of_the_weights_does_not_matter(seed, family, scale):
    X, y = clouds(seed)
    np.testing.assert_allclose(
        loss_curve(family, X, y, np.full(len(y), scale)),
        loss_curve(family, X, y),
        rtol=1e-10,
    )


@few
@given(seeds, families, st.floats(0.05, 20))
def test_line_search_is_monotone_and_statistics_stay_valid(seed, family, rate):
    X, y = clouds(seed)
    model = RiskCalibratedClassifier(
        family=family, learning_rate=rate, stopping="none", max_iter=20
    ).fit(X, y)
    assert (np.diff(model.loss_curve_) <= 1e-12 * model.loss_curve_[0]).all()
    assert model.family_.is_valid(model.statistics_).all()


@few
@given(seeds)
def test_level_probabilities_stay_probabilities(seed):
    rng = np.random.default_rng(seed)
    codes, y = rng.integers(3, size=(40, 3)), np.arange(40) % 2
    model = RiskCalibratedClassifier(
        family="categorical", learning_rate=2.0, stopping="none"
    ).fit(codes, y)
    for probabilities in model.level_probabilities_:
        assert (probabilities >= 0).all()
        np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-12)


@settings(max_examples=4, deadline=None)
@given(seeds, families)
def test_defaults_ignore_row_order_and_repetition(seed, family):
    X, y = clouds(seed, m=36)
    weight = np.random.default_rng(seed).integers(1, 4, size=len(y))
    rows = np.random.default_rng(seed).permutation(np.repeat(np.arange(36), weight))
    model = RiskCalibratedClassifier(family=family, max_iter=12, random_state=seed)
    weighted = model.fit(X, y, sample_weight=weight).predict_proba(X)
    repeated = model.fit(X[rows], y[rows]).predict_proba(X)
    np.testing.assert_allclose(weighted, repeated, atol=1e-9)
