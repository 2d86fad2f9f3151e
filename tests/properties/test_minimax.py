"""Invariants of the minimax family, for any problem."""

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from prudent import MinimaxProbabilityClassifier
from prudent.minimax import solve
from prudent.minimax.curve import ParetoCurve

FAST = settings(deadline=None, max_examples=30)


@st.composite
def problems(draw, largest=6):
    """Random mean gap and positive definite covariances of moderate condition."""
    n = draw(st.integers(1, largest))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    spread = 10.0 ** draw(st.floats(-2, 2))
    roots = rng.normal(size=(2, n, n + 2))
    Sx, Sy = roots @ roots.transpose(0, 2, 1) / n
    return rng.normal(size=n) + 0.1, Sx, spread * Sy, rng


@FAST
@given(problems())
def test_certificate_holds(problem):
    d, Sx, Sy, rng = problem
    plane = solve(d, Sx, Sy)
    assert 0 <= plane.gap <= 1e-9 * plane.kappa
    # Lower bounds: no plane beats it; upper bounds: no point is nearer to both.
    A = rng.normal(size=(50, len(d)))
    spread = np.sqrt(np.einsum("ij,jk,ik->i", A, Sx, A))
    spread += np.sqrt(np.einsum("ij,jk,ik->i", A, Sy, A))
    assert (np.abs(A @ d) / spread <= plane.kappa * (1 + 1e-9)).all()
    Z = d * rng.uniform(size=(50, 1)) + 0.1 * rng.normal(size=(50, len(d)))
    to_x = np.einsum("ij,ij->i", Z - d, np.linalg.solve(Sx, (Z - d).T).T)
    to_y = np.einsum("ij,ij->i", Z, np.linalg.solve(Sy, Z.T).T)
    assert (np.sqrt(np.maximum(to_x, to_y)) >= plane.kappa * (1 - 1e-9)).all()


@FAST
@given(problems())
def test_affine_maps_change_nothing(problem):
    d, Sx, Sy, rng = problem
    n = len(d)
    A = rng.normal(size=(n, n)) + 3 * np.eye(n)
    mapped = solve(A @ d, A @ Sx @ A.T, A @ Sy @ A.T)
    plain = solve(d, Sx, Sy)
    assert math.isclose(mapped.kappa, plain.kappa, rel_tol=1e-8)
    np.testing.assert_allclose(A.T @ mapped.normal, plain.normal, rtol=1e-4, atol=1e-6)


@FAST
@given(problems())
def test_swapping_the_classes_mirrors_the_plane(problem):
    d, Sx, Sy, _ = problem
    plane, mirrored = solve(d, Sx, Sy), solve(-d, Sy, Sx)
    assert math.isclose(plane.kappa, mirrored.kappa, rel_tol=1e-12)
    assert math.isclose(plane.s, 1 - mirrored.s, rel_tol=1e-6, abs_tol=1e-9)
    np.testing.assert_allclose(plane.normal, -mirrored.normal, rtol=1e-6, atol=1e-9)


@FAST
@given(problems(), st.floats(0.01, 100))
def test_scaling_both_covariances_divides_kappa(problem, factor):
    d, Sx, Sy, _ = problem
    scaled = solve(d, factor**2 * Sx, factor**2 * Sy)
    assert math.isclose(scaled.kappa * factor, solve(d, Sx, Sy).kappa, rel_tol=1e-10)


@FAST
@given(problems(), st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))
def test_kappa_falls_with_every_radius(problem, rho, nu, extra):
    d, Sx, Sy, _ = problem
    I = np.eye(len(d))
    plain = solve(d, Sx, Sy).kappa
    allowed = plain * (1 + 1e-9)
    assert solve(d, Sx + rho * I, Sy).kappa <= allowed
    assert solve(d, Sx, Sy, mean_radius=(nu, 0)).kappa <= allowed
    assert solve(d, Sx, Sy, covariance_factor=(1, 1 + extra)).kappa <= allowed


@FAST
@given(problems(), st.floats(0, 0.3), st.floats(0, 0.3), st.floats(1, 2))
def test_plane_is_kappa_robust_deviations_from_both_classes(problem, nx, ny, gamma):
    d, Sx, Sy, _ = problem
    plane = solve(d, Sx, Sy, mean_radius=(nx, ny), covariance_factor=(gamma, 1))
    if plane.kappa <= 0:
        return
    a = plane.normal
    beta = math.sqrt(gamma * (a @ Sx @ a))
    eta = math.sqrt(a @ Sy @ a)
    assert math.isclose(plane.distance_pos / beta - nx, plane.kappa, rel_tol=1e-7)
    assert math.isclose((1 - plane.distance_pos) / eta - ny, plane.kappa, rel_tol=1e-7)


@FAST
@given(problems())
def test_kappa_between_the_fisher_and_the_one_class_bounds(problem):
    d, Sx, Sy, _ = problem
    kappa = solve(d, Sx, Sy).kappa
    fisher = math.sqrt(d @ np.linalg.solve(Sx + Sy, d))
    assert kappa >= fisher / math.sqrt(2) * (1 - 1e-9)
    assert kappa <= math.sqrt(d @ np.linalg.solve(Sx, d)) * (1 + 1e-9)
    assert kappa <= math.sqrt(d @ np.linalg.solve(Sy, d)) * (1 + 1e-9)


@FAST
@given(problems())
def test_curve_is_monotone_convex_and_has_the_stated_slopes(problem):
    d, Sx, Sy, _ = problem
    scale = np.sqrt(np.diag(Sx + Sy))
    curve = ParetoCurve.from_moments(
        d / scale, Sx / np.outer(scale, scale), Sy / np.outer(scale, scale)
    )
    s = np.linspace(0.02, 0.98, 49)
    taus = np.log(s / (1 - s))
    kx, ky = np.transpose([curve.kappas(tau) for tau in taus])
    P, Q, R = np.transpose([curve.point(tau) for tau in taus])
    assert (np.diff(kx) <= 1e-12 * kx.max()).all()
    assert (np.diff(ky) >= -1e-12 * ky.max()).all()
    slope_x, slope_y = -R / np.sqrt(P), R / np.sqrt(Q)
    h = 1e-5
    for k, (values, slopes) in enumerate(((kx, slope_x), (ky, slope_y))):
        v = s[24]
        ends = [curve.kappas(math.log((v + e) / (1 - v - e)))[k] for e in (-h, h)]
        difference = (ends[1] - ends[0]) / (2 * h)
        assert math.isclose(difference, slopes[24], rel_tol=1e-4, abs_tol=1e-7), values
    # Slope dky/dkx = -sqrt(P)/sqrt(Q) of the frontier falls as kx falls: convex.
    frontier = -np.sqrt(P) / np.sqrt(Q)
    assert (np.diff(frontier) <= 1e-9 * np.abs(frontier).max()).all()


@FAST
@given(problems())
def test_column_of_zeros_changes_nothing(problem):
    d, Sx, Sy, _ = problem
    padded = [np.pad(S, (0, 1)) for S in (Sx, Sy)]
    plane, plain = solve(np.append(d, 0.0), *padded), solve(d, Sx, Sy)
    assert math.isclose(plane.kappa, plain.kappa, rel_tol=1e-10)
    assert abs(plane.normal[-1]) <= 1e-12 * np.abs(plane.normal).max()


@st.composite
def samples(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_classes = draw(st.integers(2, 4))
    y = np.arange(20 * n_classes) % n_classes
    X = rng.normal(size=(len(y), 2)) + 2 * rng.normal(size=(n_classes, 2))[y]
    return X, y, rng


@FAST
@given(samples())
def test_row_order_changes_nothing(sample):
    X, y, rng = sample
    order = rng.permutation(len(y))
    plain = MinimaxProbabilityClassifier().fit(X, y)
    shuffled = MinimaxProbabilityClassifier().fit(X[order], y[order])
    np.testing.assert_allclose(shuffled.coef_, plain.coef_, rtol=1e-7, atol=1e-10)
    np.testing.assert_allclose(shuffled.kappa_, plain.kappa_, rtol=1e-9)


@FAST
@given(samples())
def test_integer_weights_equal_repetition(sample):
    X, y, rng = sample
    weight = rng.integers(1, 4, len(y))
    weighted = MinimaxProbabilityClassifier().fit(X, y, weight)
    repeated = MinimaxProbabilityClassifier().fit(
        X.repeat(weight, axis=0), y.repeat(weight)
    )
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-7, atol=1e-10)


@FAST
@given(samples(), st.floats(0.01, 0.5), st.floats(0.01, 0.5))
def test_sets_shrink_as_the_level_rises(sample, level, other):
    X, y, _ = sample
    model = MinimaxProbabilityClassifier().fit(X, y)
    low, high = sorted((level, other))
    wide, narrow = model.predict_set(X, level=low), model.predict_set(X, level=high)
    assert wide.any(axis=1).all()
    assert narrow.any(axis=1).all()
    p = model.worst_case_p_values(X)
    kept = (p > high).any(axis=1)
    assert (narrow[kept] <= wide[kept]).all()


@FAST
@given(samples(), st.floats(0.01, 0.99))
def test_cantelli_covers_the_rows_whose_moments_it_uses(sample, level):
    # The rows themselves are a law with these moments: the bound must hold for them.
    X, y, _ = sample
    model = MinimaxProbabilityClassifier().fit(X, y)
    p = model.worst_case_p_values(X)
    for k in range(len(model.classes_)):
        assert np.mean(p[y == k, k] <= level) <= level + 1e-9
        wrong = np.mean(model.predict(X[y == k]) != k)
        assert wrong <= model.class_worst_case_error_[k] + 1e-9


@FAST
@given(problems(), st.floats(0.05, 0.95))
def test_two_point_law_attains_the_bound(problem, position):
    d, Sx, _, _ = problem
    a = np.linalg.solve(Sx, d)
    beta = math.sqrt(a @ Sx @ a)
    b = position * (a @ d)
    k = (a @ d - b) / beta
    chance = 1 / (1 + k * k)
    values = np.array([a @ d - k * beta, a @ d + beta / k])
    masses = np.array([chance, 1 - chance])
    assert math.isclose(values @ masses, a @ d, rel_tol=1e-9)
    assert math.isclose(masses @ (values - a @ d) ** 2, beta**2, rel_tol=1e-9)
    assert math.isclose(values[0], b, rel_tol=1e-9)
