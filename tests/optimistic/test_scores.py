"""Scores against pinned values, 40-digit arithmetic and their closed forms."""

import numpy as np
import pytest
from mpmath import mp, mpf

from prudent.optimistic import (
    clt_radius,
    covariance_scores,
    formulas,
    gaussian_scores,
    nonparametric_scores,
    scores,
)
from prudent.optimistic.formulas import Equation
from prudent.optimistic.scores import COMPILED_FROM, solve_arrays

# (M, d, rho): gamma*, L_up; k, L_low; theory page, reference values
GAUSSIAN = [
    (0, 1, 1, 0.465941272385, 1.14619322062058, 0.1884873694345, -1.84140566043696),
    (0, 5, 0.5, 1.937154217467, 2.08110580712511, 1.609717970327, -2.41591584104147),
    (1, 1, 1, 0.504448377155, 0.38165292371983, 1.504448377155, -4.38165292371983),
    (4, 2, 0.3, 2.87404864631, -1.57212604449299, 8.165798593284, -8.35900266485778),
    (10, 5, 0.5, 4.489146116064, -2.93006862324486, 17.43827470291, -24.215152849692),
    (10, 5, 1e-6, 7238.372514244, -9.9855159396466, 7252.007433527, -10.0144986952734),
    (100, 20, 2, 6.215313170102, -5.51188249130388, 128.5349729702, -452.601550113348),
    (1e3, 20, 10, 1.153180750956, 5.19478040644967, 1079.296737005, -13620.8778977236),
    (
        *(1e12, 1000, 1),
        *(188487369433.5, -158594339564.039),
        *(1465941272385, -3146193220621.58),
    ),
    (3, 2, 100, 0.0186259017234, 6.61692318589833, 3.028684709566, -417.252449199183),
]
# (M, rho): gamma*, q_up; q_low
NONPARAMETRIC = [
    (1, 0.5, 0.2481675937555, 0.0219476766597665, 3.53193872686219),
    (1, 0.7, 0, 0, 4.17453342960057),
    (2, 1, 0.07988490529781, 0.0038374920352503, 8.30342272877297),
    (4, 0.3, 3.173662346675, 1.18099327745988, 8.87786048708435),
    (10, 0.5, 4.579777644739, 2.41274063186355, 24.9073060642393),
    (100, 2, 5.511519811979, 4.3798959944988, 454.025519509983),
    (1e6, 10, 16.67451121625, 15.7308118327398, 13610881.2490181),
    (0.01, 0.5, 0, 0, 0.654307996341246),
]


@pytest.fixture(autouse=True)
def forty_digits():
    with mp.workdps(40):
        yield


@pytest.mark.parametrize(("M", "d", "rho", "gamma", "up", "k", "low"), GAUSSIAN)
def test_gaussian_reference_values(M, d, rho, gamma, up, k, low):
    lower, upper = gaussian_scores(M, d, rho)
    assert upper == pytest.approx(up, rel=1e-13, abs=0)
    assert lower == pytest.approx(low, rel=1e-13, abs=0)


@pytest.mark.parametrize(("M", "d", "rho", "gamma", "up", "k", "low"), GAUSSIAN)
def test_gaussian_reference_multipliers(M, d, rho, gamma, up, k, low):
    t = scores.root(formulas.GAUSSIAN_UPPER, M, d, rho)
    e = scores.root(formulas.GAUSSIAN_LOWER, M, d, rho)
    assert 1 / t == pytest.approx(gamma, rel=1e-11)
    assert M + e == pytest.approx(k, rel=1e-11)


@pytest.mark.parametrize(("M", "rho", "gamma", "up", "low"), NONPARAMETRIC)
def test_nonparametric_reference_values(M, rho, gamma, up, low):
    q_low, q_up = nonparametric_scores(M, rho)
    assert q_up == pytest.approx(up, rel=1e-14, abs=1e-15)
    assert q_low == pytest.approx(low, rel=1e-14)


@pytest.mark.parametrize(("M", "rho", "gamma", "up", "low"), NONPARAMETRIC)
def test_nonparametric_reference_multiplier(M, rho, gamma, up, low):
    assert (scores.reach(rho) >= M) == (gamma == 0)
    if gamma:
        s = scores.root(formulas.NONPARAMETRIC_UPPER, M, 1, rho)
        assert M / s - 1 == pytest.approx(gamma, rel=1e-11)


def newton(function, slope, x):
    """Root of an increasing function in 40 digits, from a start near it."""
    for _ in range(8):
        x -= function(x) / slope(x)
    return x


def exact_gaussian(M, d, rho):
    """Both scores from the dual objectives (11d) and its pessimistic twin."""
    M, rho = mpf(M), mpf(rho)

    def phi_slope(g):
        return (
            rho
            + d * (mp.log1p(1 / g) - 1 / g)
            - mp.log1p(M / (1 + g))
            + M / (1 + g + M)
        )

    def phi_bend(g):
        return d / (g * g * (1 + g)) + M * M / ((1 + g) * (1 + g + M) ** 2)

    t = scores.root(formulas.GAUSSIAN_UPPER, float(M), d, float(rho))
    g = newton(phi_slope, phi_bend, 1 / mpf(t))
    upper = (
        g * rho + d * (1 + g) * mp.log1p(1 / g) - (1 + g) * mp.log1p(M / (1 + g)) - d
    )

    def psi_slope(e):
        k = M + e
        return rho - d * (mp.log1p(1 / k) - 1 / (1 + k)) - (M / e - mp.log1p(M / e))

    def psi_bend(e):
        k = M + e
        return d / (k * (1 + k) ** 2) + M * M / (e * e * k)

    e = scores.root(formulas.GAUSSIAN_LOWER, float(M), d, float(rho))
    e = newton(psi_slope, psi_bend, mpf(e))
    k = M + e
    lower = -((k + 1) * rho + d - k * d * mp.log1p(1 / k) + k * mp.log1p(M / e))
    return lower, upper


def exact_nonparametric(M, rho):
    M, rho = mpf(M), mpf(rho)
    v = scores.root(formulas.NONPARAMETRIC_LOWER, float(M), 1, float(rho))
    v = newton(
        lambda v: v - mp.log1p(v) + v * v / (M * (1 + v)) - rho,
        lambda v: v / (1 + v) ** 2 * (1 + v + (v + 2) / M),
        mpf(v),
    )
    q_low = (M * (1 + v) + v) ** 2 / (M * (1 + v))
    if mp.log1p(M) <= rho:
        return q_low, mpf(0)
    s = scores.root(formulas.NONPARAMETRIC_UPPER, float(M), 1, float(rho))
    s = newton(
        lambda s: mp.log1p(s) - s / (1 + s) + s * s / (M * (1 + s)) - rho,
        lambda s: s / (1 + s) ** 2 * (1 + (s + 2) / M),
        mpf(s),
    )
    return q_low, (M - s) ** 2 / (M * (1 + s))


DISTANCES = np.r_[0.0, 10.0 ** np.linspace(-12, 12, 9)]
RADII = 10.0 ** np.linspace(-12, 3, 11)


@pytest.mark.parametrize("d", [1, 20, 1000])
def test_gaussian_scores_match_40_digits(d):
    for rho in RADII:
        lower, upper = gaussian_scores(DISTANCES, d, rho)
        for i, M in enumerate(DISTANCES):
            low, up = exact_gaussian(max(M, 1e-60), d, rho)
            assert abs(lower[i] - low) <= 1.5e-13 * max(1, abs(low)), (M, rho)
            assert abs(upper[i] - up) <= 1.5e-13 * max(1, abs(up)), (M, rho)


def test_nonparametric_scores_match_40_digits():
    for rho in RADII:
        q_low, q_up = nonparametric_scores(DISTANCES, rho)
        for i, M in enumerate(DISTANCES):
            low, up = exact_nonparametric(max(M, 1e-60), rho)
            assert abs(q_low[i] - low) <= 1.5e-13 * max(1, abs(low)), (M, rho)
            assert abs(q_up[i] - up) <= 1.5e-13 * max(1, abs(up)), (M, rho)


@pytest.mark.parametrize("rho", [1e-40, 1e-20, 1e-9, 0.3, 1e4, 1e12, 1e49])
def test_scores_are_finite_and_ordered_far_outside_ordinary_ranges(rho):
    M = np.r_[0.0, 10.0 ** np.linspace(-99, 100, 200)]
    for d in (1, 1000):
        lower, upper = gaussian_scores(M, d, rho)
        assert np.isfinite(lower).all()
        assert np.isfinite(upper).all()
        slack = 1e-12 * (1 + M)
        assert (lower <= -M + slack).all()
        assert (upper >= -M - slack).all()
    q_low, q_up = nonparametric_scores(M, rho)
    assert np.isfinite(q_low).all()
    assert (q_up >= 0).all()
    assert (q_up <= M).all()


def test_radius_zero_gives_the_distance_exactly():
    M = np.array([0.0, 1e-9, 3.7, 1e30])
    lower, upper = gaussian_scores(M, 3, 0.0)
    q_low, q_up = nonparametric_scores(M, 0.0)
    for found, exact in ((lower, -M), (upper, -M), (q_low, M), (q_up, M)):
        np.testing.assert_array_equal(found, exact)


@pytest.mark.parametrize(("d", "rho"), [(1, 0.2), (20, 3.0), (1000, 40.0)])
def test_scores_at_the_mean_are_lambert_roots(d, rho):
    from scipy.special import lambertw

    lower, upper = gaussian_scores(0.0, d, rho)
    c = -np.exp(-1 - rho / d)
    assert upper == pytest.approx(d * np.log(-lambertw(c, -1).real), rel=1e-9)
    assert lower == pytest.approx(d * np.log(-lambertw(c).real), rel=1e-9)
    q_low, q_up = nonparametric_scores(0.0, rho)
    assert q_up == 0
    assert q_low == pytest.approx(rho, rel=1e-14)


def test_explicit_inverse_of_the_nonparametric_equation():
    for rho in (0.1, 1.0, 5.0):
        M = np.expm1(rho) * np.array([1.1, 3.0, 1e3])
        for distance in M:
            w = 1 + scores.root(formulas.NONPARAMETRIC_UPPER, distance, 1, rho)
            inverse = (w - 1) ** 2 / (w * (rho + 1 - np.log(w)) - 1)
            assert inverse == pytest.approx(distance, rel=1e-9)


def test_radii_broadcast_over_classes():
    M = np.arange(12.0).reshape(4, 3)
    rho = np.array([0.1, 0.5, 0.1])
    lower, upper = gaussian_scores(M, 2, rho)
    for k in range(3):
        one_lower, one_upper = gaussian_scores(M[:, k], 2, rho[k])
        np.testing.assert_array_equal(lower[:, k], one_lower)
        np.testing.assert_array_equal(upper[:, k], one_upper)


def test_inputs_are_left_alone():
    M, rho = np.array([1.0, 2.0]), np.array([0.1, 0.2])
    M.flags.writeable = rho.flags.writeable = False
    gaussian_scores(M, 2, rho)
    nonparametric_scores(M, rho)


@pytest.mark.parametrize("bad", [-1.0, np.nan, np.inf])
def test_distance_or_radius_out_of_range_is_an_error_with_the_value(bad):
    with pytest.raises(ValueError, match=rf"distance .*{bad}"):
        gaussian_scores([1.0, bad], 2, 0.1)
    with pytest.raises(ValueError, match=rf"radius .*{bad}"):
        nonparametric_scores([1.0], bad)


@pytest.mark.parametrize("d", [1, 2, 20])
@pytest.mark.parametrize("rho", [0, 1e-25, 1e-10, 0.05, 30, 400])
def test_covariance_scores_lie_between_the_distance_and_the_larger_ball(d, rho):
    M = np.array([0, 1e-8, 0.3, 0.999, 1, 1.001, 3, 50, 1e6, 1e50, 1e100])
    least, most = gaussian_scores(M, d, rho)
    lower, upper = covariance_scores(M, d, rho)
    slack = 1e-9 * np.maximum(np.abs(lower), 1e-9)
    assert (least <= lower + slack).all()
    assert (lower <= -M + 1e-15 * M).all()
    assert (upper >= -M - 1e-15 * M).all()
    assert (upper <= most + slack).all()


def test_covariance_scores_refuse_what_is_out_of_range():
    with pytest.raises(ValueError, match="`n_features` must be >= 1, got 0"):
        covariance_scores([1.0], 0, 0.1)
    with pytest.raises(ValueError, match="every radius must be finite"):
        covariance_scores([1.0], 2, 501)


def test_no_features_is_an_error():
    with pytest.raises(ValueError, match="`n_features` must be >= 1, got 0"):
        gaussian_scores([1.0], 0, 0.1)


@pytest.mark.parametrize(
    "equation",
    [
        formulas.GAUSSIAN_UPPER,
        formulas.GAUSSIAN_LOWER,
        formulas.NONPARAMETRIC_UPPER,
        formulas.NONPARAMETRIC_LOWER,
    ],
    ids=["gaussian_upper", "gaussian_lower", "np_upper", "np_lower"],
)
def test_compiled_kernel_equals_numpy(equation):
    M = 10.0 ** np.random.default_rng(0).uniform(-6, 6, 3000)
    for rho in (1e-6, 0.3, 20.0):
        arrays, compiled = np.empty(len(M)), np.empty((len(M), 2))[:, 1]
        scores.solve(equation, M, 7, rho, arrays, compiled=False)
        scores.solve(equation, M, 7, rho, compiled, compiled=True)
        np.testing.assert_allclose(compiled, arrays, rtol=2e-13, atol=2e-13)


def test_large_input_takes_the_compiled_path_to_the_same_values():
    M = np.random.default_rng(1).chisquare(5, COMPILED_FROM)
    large = gaussian_scores(M, 5, 0.2)
    small = gaussian_scores(M[:100], 5, 0.2)
    for whole, part in zip(large, small, strict=True):
        np.testing.assert_allclose(whole[:100], part, rtol=1e-13, atol=1e-13)


def test_an_equation_that_does_not_converge_is_an_error_not_a_number():
    stuck = Equation(lambda M, *_: M, lambda M, *_: 2.0 + 0 * M, lambda M, *_: M)
    with pytest.raises(ArithmeticError, match="did not converge"):
        scores.solve(stuck, np.ones(3), 1, 0.5, np.empty(3), compiled=False)
    assert not solve_arrays(stuck, np.ones(3), 1.0, 0.5, 0.0, 0.0, np.empty(3))


@pytest.mark.parametrize("z", [1e-100, 1e-9, 1e-3, 0.2, 1.0, 30.0, 1e5, 1e90])
def test_log_terms_have_full_relative_accuracy(z):
    with mp.workdps(250):
        exact = mpf(z)
        excess = exact - mp.log1p(exact)
        remainder = mp.log1p(exact) - exact / (1 + exact)
    inverse = 1 / (1 + z)
    found = formulas.log1p_excess(np.float64(z), inverse)
    assert float(found) == pytest.approx(float(excess), rel=2e-15, abs=0)
    found = formulas.log1p_remainder(np.float64(z), inverse)
    assert float(found) == pytest.approx(float(remainder), rel=4e-15, abs=0)


@pytest.mark.parametrize("n_features", [1.5, float("inf")])
def test_a_part_of_a_feature_is_refused(n_features):
    for ask in (gaussian_scores, covariance_scores):
        with pytest.raises(ValueError, match="`n_features` must be a whole number"):
            ask([1.0], n_features, 0.1)
    with pytest.raises(ValueError, match="`n_features` must be a whole number"):
        clt_radius(n_features, 50)


def test_a_whole_number_of_features_may_be_written_as_a_float():
    assert gaussian_scores(4.0, 2.0, 0.3) == gaussian_scores(4.0, 2, 0.3)
