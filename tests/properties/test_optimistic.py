"""Invariants of the scores, the threshold, the classifier and its sets."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.linalg import expm

from prudent import OptimisticScoreClassifier
from prudent.optimistic import (
    best_threshold,
    formulas,
    gaussian_scores,
    moment_divergence,
    nonparametric_scores,
    scores,
)

quick = settings(max_examples=60, deadline=None)
fits = settings(max_examples=15, deadline=None)

distances = st.one_of(st.just(0.0), st.floats(1e-12, 1e12))
radii = st.floats(1e-12, 1e3)
dimensions = st.integers(1, 50)
seeds = st.integers(0, 2**32 - 1)
MODEL = {"covariance": "empirical", "threshold": "bayes"}


def slack(*values):
    return 1e-12 * max(1.0, *(abs(value) for value in values))


@quick
@given(distances, dimensions, radii)
def test_gaussian_scores_enclose_the_nominal_one(M, d, rho):
    lower, upper = gaussian_scores(M, d, rho)
    assert lower <= -M + slack(M)
    assert upper >= -M - slack(M)
    if rho > 1e-9:
        assert lower < -M < upper or M > 1e9


@quick
@given(distances, radii)
def test_nonparametric_scores_enclose_the_nominal_one(M, rho):
    q_low, q_up = nonparametric_scores(M, rho)
    assert 0 <= q_up <= M <= q_low + slack(M)


@quick
@given(distances, dimensions, radii, st.floats(1.0, 10.0))
def test_scores_spread_with_the_radius(M, d, rho, factor):
    narrow, wide = gaussian_scores(M, d, rho), gaussian_scores(M, d, factor * rho)
    assert wide[0] <= narrow[0] + slack(narrow[0])
    assert wide[1] >= narrow[1] - slack(narrow[1])
    narrow, wide = nonparametric_scores(M, rho), nonparametric_scores(M, factor * rho)
    assert wide[0] >= narrow[0] - slack(narrow[0])
    assert wide[1] <= narrow[1] + slack(narrow[1])


@quick
@given(distances, dimensions, radii, st.floats(1.0, 10.0))
def test_scores_fall_with_the_distance(M, d, rho, factor):
    near, far = gaussian_scores(M, d, rho), gaussian_scores(factor * M, d, rho)
    assert far[1] <= near[1] + slack(near[1])
    assert far[0] <= near[0] + slack(near[0])
    near, far = nonparametric_scores(M, rho), nonparametric_scores(factor * M, rho)
    assert far[1] >= near[1] - slack(near[1])
    assert far[0] >= near[0] - slack(near[0])


def random_ball(seed, d):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(d, d))
    return rng, rng.normal(size=d), A @ A.T + 0.2 * np.eye(d)


@quick
@given(seeds, st.integers(1, 4), st.floats(1e-3, 5.0))
def test_no_feasible_moments_beat_the_scores(seed, d, rho):
    rng, m, S = random_ball(seed, d)
    x = m + rng.normal(size=d) * rng.choice([0.1, 1.0, 5.0])
    M = (x - m) @ np.linalg.solve(S, x - m)
    log_det = np.linalg.slogdet(S)[1]
    lower, upper = gaussian_scores(M, d, rho)
    q_low, q_up = nonparametric_scores(M, rho)
    v = rng.normal(size=d)
    A = rng.normal(size=(d, d))
    eigenvalues, vectors = np.linalg.eigh(A + A.T)
    root = np.linalg.cholesky(S) @ vectors

    def ray(s):  # S^1/2 exp(s A) S^T/2
        return m + s * v, (root * np.exp(s * eigenvalues)) @ root.T

    low, high = 0.0, 1.0
    for _ in range(30):
        middle = (low + high) / 2
        inside = moment_divergence(m, S, *ray(middle)) <= rho
        low, high = (middle, high) if inside else (low, middle)
    mean, covariance = ray(low)
    gap = x - mean
    distance = gap @ np.linalg.solve(covariance, gap)
    value = -distance - np.linalg.slogdet(covariance)[1] + log_det
    assert lower - 1e-7 * max(1, abs(lower)) <= value <= upper + 1e-7
    assert q_up - 1e-7 <= distance <= q_low * (1 + 1e-7)


@quick
@given(seeds, st.integers(1, 6), st.floats(1e-6, 50.0))
def test_optimisers_lie_on_the_sphere_and_attain_the_scores(seed, d, rho):
    rng, m, S = random_ball(seed, d)
    gap = rng.normal(size=d) * 3
    M = gap @ np.linalg.solve(S, gap)
    outer = np.outer(gap, gap)
    log_det = np.linalg.slogdet(S)[1]
    lower, upper = gaussian_scores(M, d, rho)
    q_low, q_up = nonparametric_scores(M, rho)
    t = scores.root(formulas.GAUSSIAN_UPPER, M, d, rho)
    k = M + scores.root(formulas.GAUSSIAN_LOWER, M, d, rho)
    v = scores.root(formulas.NONPARAMETRIC_LOWER, M, d, rho)
    k_np = M * (1 + v) / v
    cases = [
        (t / (1 + t) * gap, (S + t / (1 + t) * outer) / (1 + t), upper, True),
        (-gap / k, (1 + 1 / k) * (S - outer / k), lower, True),
        (-gap / k_np, S - outer / k_np, q_low, False),
    ]
    if scores.reach(rho) < M:
        share = scores.root(formulas.NONPARAMETRIC_UPPER, M, d, rho) / M
        cases.append((share * gap, S + share * outer, q_up, False))
    for shift, Sigma, score, gaussian in cases:
        # ill conditioned only where the pessimistic ball is enormous
        assume(np.linalg.cond(Sigma) < 1e7)
        assert moment_divergence(m, S, m + shift, Sigma) == pytest.approx(rho, rel=1e-6)
        left = gap - shift
        value = left @ np.linalg.solve(Sigma, left)
        if gaussian:
            value = -value - np.linalg.slogdet(Sigma)[1] + log_det
        assert value == pytest.approx(score, rel=1e-6, abs=1e-9)


@quick
@given(st.lists(st.tuples(st.floats(-9, 9), st.booleans()), min_size=1, max_size=12))
def test_threshold_is_best_among_all_candidates(pairs):
    ratios = np.array([ratio for ratio, _ in pairs])
    y = np.array([label for _, label in pairs]).astype(int)
    best = best_threshold(ratios, y)
    cuts = [-np.inf, *ratios, np.inf]
    counts = [((ratios >= cut) == (y == 1)).sum() for cut in cuts]
    assert best.n_correct == max(counts)
    a, b = best.interval
    assert a < best.log_threshold <= b or a == -np.inf


def sample(seed, n_classes=3, d=3, n=90):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    X = (
        rng.normal(size=(n, d)) @ rng.normal(size=(d, d))
        + rng.normal(size=(n_classes, d))[y]
    )
    return rng, X, y


@fits
@given(seeds, st.sampled_from(["gaussian", "nonparametric"]))
def test_affine_maps_change_no_prediction(seed, likelihood):
    rng, X, y = sample(seed)
    B = expm(0.3 * rng.normal(size=(3, 3)))
    model = OptimisticScoreClassifier(likelihood=likelihood, radius=0.2, **MODEL)
    plain = model.fit(X, y).optimistic_scores(X)
    mapped = X @ B.T + 3.0
    moved = model.fit(mapped, y).optimistic_scores(mapped)
    shift = -np.linalg.slogdet(B)[1] if likelihood == "gaussian" else 0.0
    np.testing.assert_allclose(moved, plain + shift, rtol=1e-8, atol=1e-8)


@fits
@given(seeds)
def test_relabelling_two_classes_flips_the_sign(seed):
    _, X, y = sample(seed, n_classes=2)
    model = OptimisticScoreClassifier(radius=0.2, **MODEL)
    plain = model.fit(X, y).decision_function(X)
    flipped = model.fit(X, 1 - y).decision_function(X)
    np.testing.assert_allclose(flipped, -plain, atol=1e-9)


@fits
@given(seeds)
def test_row_order_does_not_matter(seed):
    rng, X, y = sample(seed)
    order = rng.permutation(len(X))
    model = OptimisticScoreClassifier()
    plain = model.fit(X, y).optimistic_scores(X)
    shuffled = model.fit(X[order], y[order]).optimistic_scores(X)
    np.testing.assert_allclose(shuffled, plain, rtol=1e-9, atol=1e-9)


@fits
@given(seeds, st.floats(0.01, 2.0))
def test_equal_nonparametric_radii_give_the_mahalanobis_rule_beyond_reach(seed, rho):
    _, X, y = sample(seed, n_classes=2)
    model = OptimisticScoreClassifier(
        likelihood="nonparametric", radius=rho, covariance="empirical", threshold=1.0
    ).fit(X, y)
    precise = OptimisticScoreClassifier(
        likelihood="nonparametric", radius=0.0, covariance="empirical", threshold=1.0
    ).fit(X, y)
    beyond = np.expm1(-precise.optimistic_scores(X)).max(axis=1) > np.expm1(rho)
    np.testing.assert_array_equal(model.predict(X)[beyond], precise.predict(X)[beyond])


@fits
@given(seeds, st.floats(0.001, 1.0), st.floats(1.0, 4.0))
def test_sets_grow_with_the_radius_and_hold_the_qda_and_minimax_class(
    seed, rho, factor
):
    _, X, y = sample(seed)
    rows = np.arange(len(X))

    def model(radius, **changes):
        return OptimisticScoreClassifier(
            **{**MODEL, "rule": "minimax", "radius": radius, **changes}
        ).fit(X, y)

    narrow, wide = model(rho).predict_set(X), model(factor * rho).predict_set(X)
    assert narrow.any(axis=1).all()
    assert (narrow <= wide).all()
    qda = model(0.0, rule="ratio").predict(X)
    assert narrow[rows, qda].all()
    assert narrow[rows, model(rho).predict(X)].all()
