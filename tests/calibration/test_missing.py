"""Cells that are missing are left out, of the fit and of the posterior."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from calibration.rows import FAMILIES, overlapping_clouds
from prudent import RiskCalibratedClassifier
from prudent.exceptions import PrudentWarning


def covariance_of(model, k):
    variances = model.variances_
    return np.diag(variances[k] if variances.ndim == 2 else variances)


@pytest.mark.parametrize("family", ["diag", "tied_diag"])
@pytest.mark.parametrize("there", [[0, 1, 2], [0, 2], [1], []])
def test_posterior_of_the_cells_that_are_there(family, there):
    """The marginal density of scipy, for every pattern."""
    X, y = overlapping_clouds()
    model = RiskCalibratedClassifier(family=family, stopping="none", max_iter=9)
    model.fit(X * [1, 10, 1] + 3, y)
    rows = np.full_like(X, np.nan)
    rows[:, there] = (X * [1, 10, 1] + 3)[:, there]
    part = np.ix_(there, there)
    log_joint = np.tile(np.log(model.priors_), (len(X), 1))
    if there:
        for k in range(3):
            law = multivariate_normal(
                model.means_[k][there], covariance_of(model, k)[part]
            )
            log_joint[:, k] += law.logpdf(rows[:, there])
    density = logsumexp(log_joint, axis=1)
    np.testing.assert_allclose(model.score_samples(rows), density, atol=1e-10)
    np.testing.assert_allclose(
        model.predict_proba(rows), np.exp(log_joint - density[:, None]), atol=1e-11
    )


@pytest.mark.parametrize("family", ["diag", "tied_diag"])
def test_closed_form_is_the_moments_of_the_cells_that_are_there(family):
    X, y = overlapping_clouds(200)
    X[np.random.default_rng(0).random(X.shape) < 0.25] = np.nan
    model = RiskCalibratedClassifier(
        family=family, max_iter=1, covariance_prior_strength=0.0
    ).fit(X, y)
    means = np.array([np.nanmean(X[y == k], axis=0) for k in range(3)])
    np.testing.assert_allclose(model.means_, means, rtol=1e-10)
    within = np.array([np.nanvar(X[y == k], axis=0) for k in range(3)])
    if family == "tied_diag":
        counts = np.array([(~np.isnan(X[y == k])).sum(axis=0) for k in range(3)])
        within = (counts * within).sum(axis=0) / counts.sum(axis=0)
    np.testing.assert_allclose(model.variances_, within, rtol=1e-10)


@pytest.mark.parametrize("family", ["diag", "tied_diag"])
def test_a_step_is_the_gradient_over_the_cells_that_are_there(family):
    X, y = overlapping_clouds(90)
    X[np.random.default_rng(1).random(X.shape) < 0.25] = np.nan
    settings = {"family": family, "line_search": False, "stopping": "none"}
    start, after = (
        RiskCalibratedClassifier(max_iter=n, **settings).fit(X, y) for n in (1, 2)
    )
    H, Y, seen = start.predict_proba(X), np.eye(3)[y], ~np.isnan(X)
    Z = np.where(seen, (X - start.family_.centre) / start.family_.scale, 0.0)
    s0, s1, *_, counts = start.statistics_
    moved = after.statistics_
    np.testing.assert_allclose(moved[0], s0 + 0.1 * (Y - H).sum(axis=0), atol=1e-9)
    np.testing.assert_allclose(moved[1], s1 + 0.1 * (Y - H).T @ Z, atol=1e-9)
    np.testing.assert_allclose(moved[-1], counts + 0.1 * (Y - H).T @ seen, atol=1e-9)


@pytest.mark.parametrize("family", ["diag", "tied_diag", "categorical"])
def test_a_quarter_of_the_cells_missing_changes_nothing_in_the_limit(family):
    """A law that the family can represent, of known truth."""
    gaps = []
    for n in (500, 40_000):
        rng = np.random.default_rng(0)
        y = rng.integers(0, 3, n)
        means = np.array([[0, 0, 0], [1, 0, 1], [0, 1, -1.0]])
        scale = np.array([[1, 2, 0.5], [1, 1, 1], [2, 0.5, 1]])
        scale = scale[[0, 0, 0]] if family == "tied_diag" else scale
        X = means[y] + scale[y] * rng.normal(size=(n, 3))
        missing = rng.random(X.shape) < 0.25
        if family == "categorical":
            X = np.digitize(X, [-0.5, 0.5]).astype(object)
            gappy = np.where(missing, None, X)
        else:
            gappy = np.where(missing, np.nan, X)
        whole, part = (
            RiskCalibratedClassifier(family=family, stopping="none", max_iter=16)
            .fit(rows, y)
            .predict_proba(X[:500])
            for rows in (X, gappy)
        )
        gaps.append(np.abs(whole - part).mean())
    assert gaps[1] < 0.005
    assert gaps[1] < gaps[0] / 2


@pytest.mark.parametrize("family", ["full", "tied"])
def test_covariances_are_those_of_whole_rows(family):
    X, y = overlapping_clouds()
    model = RiskCalibratedClassifier(family=family).fit(X, y)
    X[3, 1] = np.nan
    refused = r"contains NaN.*`family='diag'`.*impute"
    with pytest.raises(ValueError, match=refused):
        RiskCalibratedClassifier(family=family).fit(X, y)
    for answer in (model.predict, model.decision_function, model.score_samples):
        with pytest.raises(ValueError, match=refused):
            answer(X)


def test_mixed_frames_may_lack_cells_of_both_kinds():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 400)
    size = rng.normal(size=400) + 2 * y
    word = np.where(rng.random(400) < 0.2 + 0.6 * y, "a", "b").astype(object)
    size[rng.random(400) < 0.25] = np.nan
    word[rng.random(400) < 0.25] = None
    frame = pd.DataFrame({"size": size, "word": word})
    model = RiskCalibratedClassifier(family="mixed", random_state=0).fit(frame, y)
    assert model.level_probabilities_[0].shape == (2, 2)
    assert model.score(frame, y) > 0.8
    nothing = pd.DataFrame({"size": [np.nan], "word": np.array([None], dtype=object)})
    np.testing.assert_allclose(model.predict_proba(nothing)[0], model.priors_)


def test_a_column_without_any_cell_is_ignored():
    X, y = overlapping_clouds()
    gappy = np.column_stack([X, np.full(len(y), np.nan)])
    with pytest.warns(PrudentWarning, match="constant"):
        model = RiskCalibratedClassifier(family="diag", stopping="none").fit(gappy, y)
    plain = RiskCalibratedClassifier(family="diag", stopping="none").fit(X, y)
    np.testing.assert_allclose(
        model.predict_proba(gappy), plain.predict_proba(X), atol=1e-10
    )


@pytest.mark.parametrize("family", ["diag", "tied_diag"])
def test_a_class_without_any_cell_of_a_column_has_its_overall_mean(family):
    X, y = overlapping_clouds()
    X[y == 1, 2] = np.nan
    model = RiskCalibratedClassifier(family=family, stopping="none", max_iter=9)
    model.fit(X, y)
    assert model.means_[1, 2] == pytest.approx(np.nanmean(X[:, 2]))
    assert np.isfinite(model.predict_proba(X)).all()


@pytest.mark.parametrize("family", FAMILIES)
def test_batches_learn_from_whole_rows(family):
    X, y = overlapping_clouds()
    model = RiskCalibratedClassifier(family=family).partial_fit(X, y)
    X[0, 0] = np.nan
    with pytest.raises(ValueError, match="NaN.*`partial_fit` whole rows"):
        model.partial_fit(X, y)
    if family in ("full", "tied"):
        with pytest.raises(ValueError, match="NaN: covariance matrices are learned"):
            RiskCalibratedClassifier(family=family).partial_fit(X, y)


@pytest.mark.parametrize("stopping", ["cv", "holdout", "train"])
def test_stopping_rules_take_missing_cells(stopping):
    X, y = overlapping_clouds(200)
    X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    model = RiskCalibratedClassifier(
        family="diag", stopping=stopping, max_iter=8, random_state=0
    ).fit(X, y)
    assert np.isfinite(model.predict_proba(X)).all()


@pytest.mark.parametrize("stopping", ["cv", "none"])
def test_none_in_a_list_is_a_missing_cell(stopping):
    X = [[None, 1.0], [2, 3.0], [1, None], [4, 1], [0, 3], [2, 2.0]] * 3
    y = [0, 1] * 9
    model = RiskCalibratedClassifier(family="diag", stopping=stopping, random_state=0)
    ours = model.fit(X, y).predict_proba(X)
    theirs = model.fit(np.array(X, dtype=float), y).predict_proba(X)
    np.testing.assert_array_equal(ours, theirs)
    for other in ("a", float("inf")):
        with pytest.raises(ValueError, match="could not convert|infinity"):
            model.fit([[other, 1.0], *X[1:]], y)
