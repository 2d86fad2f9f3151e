"""The minimax plane of two known classes: reference values and degenerate inputs."""

import math

import numpy as np
import pytest

from prudent.exceptions import DegenerateDataError
from prudent.minimax import solve, solver
from prudent.minimax.curve import Balance, ScaledDuel, shares
from prudent.minimax.solver import lanczos, newton, spectral

MEAN_POS, MEAN_NEG = np.array([1.0, 2.0]), np.array([-1.0, 0.0])
GAP = MEAN_POS - MEAN_NEG
COV_POS = np.array([[2.0, 0.5], [0.5, 1.0]])
COV_NEG = np.array([[1.0, -0.3], [-0.3, 3.0]])
I = np.eye(2)


def random_problem(n, condition, ratio, seed):
    rng = np.random.default_rng(seed)

    def covariance(scale):
        q = np.linalg.qr(rng.normal(size=(n, n)))[0]
        values = np.exp(rng.uniform(0, np.log(condition), n))
        S = scale * (q * values) @ q.T
        return (S + S.T) / 2

    Sx, Sy = covariance(1.0), covariance(ratio)
    return rng.normal(size=n) * np.sqrt(np.diag(Sx)).mean(), Sx, Sy


def test_plain_reference():
    plane = solve(GAP, COV_POS, COV_NEG)
    assert plane.kappa == pytest.approx(1.0567745822556, rel=1e-12)
    assert plane.alpha == pytest.approx(0.5275826799349, rel=1e-12)
    np.testing.assert_allclose(plane.normal, [0.29890693576178, 0.20109306423822])
    assert plane.offset_from(MEAN_POS) == pytest.approx(0.14266269194327, rel=1e-10)
    assert plane.s == pytest.approx(0.55843037229496, rel=1e-10)
    assert plane.class_kappas == (plane.kappa, plane.kappa)


@pytest.mark.parametrize(
    ("rho", "nu", "gamma", "kappa", "normal", "offset"),
    [
        (
            (0.2, 0.4),
            (0.1, 0.1),
            (1, 1),
            0.87335935366527,
            (0.287011272909, 0.212988727091),
            0.18271488019376,
        ),
        (
            (0.2, 0.4),
            (0.3, 0.05),
            (1, 1),
            0.79171795328401,
            (0.274715748537, 0.225284251463),
            0.13856942928538,
        ),
        (
            (0, 0),
            (0.1, 0.1),
            (1.5, 1.2),
            0.80524885934233,
            (0.293013397153, 0.206986602847),
            0.12536121328421,
        ),
    ],
)
def test_robust_reference(rho, nu, gamma, kappa, normal, offset):
    plane = solve(
        GAP,
        COV_POS + rho[0] * I,
        COV_NEG + rho[1] * I,
        mean_radius=nu,
        covariance_factor=gamma,
    )
    assert plane.kappa == pytest.approx(kappa, rel=1e-12)
    np.testing.assert_allclose(plane.normal, normal, rtol=1e-10)
    assert plane.offset_from(MEAN_POS) == pytest.approx(offset, rel=1e-10)


def test_robust_reference_weight_of_the_negative_class():
    plane = solve(GAP, COV_POS + 0.2 * I, COV_NEG + 0.4 * I, mean_radius=(0.3, 0.05))
    assert plane.s == pytest.approx(0.4576703941503, rel=1e-9)
    assert plane.alpha == pytest.approx(0.38530283074154, rel=1e-12)


def test_equal_mean_radii_keep_the_plane_and_lower_kappa_by_the_radius():
    plain = solve(GAP, COV_POS, COV_NEG)
    robust = solve(GAP, COV_POS, COV_NEG, mean_radius=(0.2, 0.2))
    np.testing.assert_allclose(robust.normal, plain.normal, rtol=1e-10)
    assert robust.kappa == pytest.approx(plain.kappa - 0.2, rel=1e-12)


def test_equal_covariances_have_fishers_plane():
    _, S, _ = random_problem(5, 50.0, 1.0, 0)
    d = np.arange(1.0, 6.0)
    plane, fisher = solve(d, S, S), np.linalg.solve(S, d)
    np.testing.assert_allclose(plane.normal, fisher / (fisher @ d), rtol=1e-9)
    assert plane.kappa == pytest.approx(math.sqrt(d @ fisher) / 2, rel=1e-12)


def test_one_singular_class_with_the_optimum_inside():
    plane = solve([1, 0.3], I, np.diag([1.0, 0.0]))
    assert plane.kappa == pytest.approx(0.545, rel=1e-12)
    np.testing.assert_allclose(plane.normal, [0.83486238532110, 0.55045871559633])
    assert plane.offset_from([1, 0.3]) == pytest.approx(0.455, rel=1e-12)
    assert plane.s == pytest.approx(0.545, rel=1e-12)


def test_one_singular_class_with_the_optimum_at_its_end():
    plane = solve([1, 3], I, np.diag([1.0, 0.0]))
    assert plane.kappa == pytest.approx(3, rel=2e-9)
    np.testing.assert_allclose(plane.normal, [0, 1 / 3], atol=1e-14)
    assert plane.s == 1
    # The constant class sits at a'0 = 0 and must fall strictly below the plane.
    assert 0 < plane.offset_from([1, 3]) < 2e-9


def test_constant_positive_class_stays_strictly_inside():
    plane = solve([1, 3], np.diag([1.0, 0.0]), I)
    assert plane.s == 0
    assert plane.normal @ np.array([1.0, 3.0]) > plane.offset_from([1, 3])


def test_tie_shift_grows_with_the_rounding_of_large_means():
    mean_pos = np.array([1e9 + 1.0, 3e9 + 3.0])
    plane = solve([1, 3], I, np.diag([1.0, 0.0]))
    mean_neg_score = plane.normal @ (mean_pos - [1, 3])
    assert plane.offset_from(mean_pos) > mean_neg_score


def test_common_null_direction_is_dropped():
    plane = solve([1, 0, 0], np.diag([1.0, 2.0, 0.0]), np.diag([2.0, 1.0, 0.0]))
    assert plane.kappa == pytest.approx(math.sqrt(2) - 1, rel=1e-12)
    np.testing.assert_allclose(plane.normal, [1, 0, 0], atol=1e-14)
    assert plane.offset_from([1, 0, 0]) == pytest.approx(2 - math.sqrt(2), rel=1e-12)


def test_one_class_without_spread():
    plane = solve([2, 0], I, 0 * I)
    assert plane.kappa == pytest.approx(2, rel=2e-9)


def test_separating_null_direction_gives_infinite_kappa():
    plane = solve([1, 1], np.diag([1.0, 0.0]), np.diag([1.0, 0.0]))
    assert plane.kappa == math.inf
    assert plane.alpha == 1
    np.testing.assert_allclose(plane.normal, [0, 1], atol=1e-14)
    assert plane.offset_from([1, 1]) == pytest.approx(0.5)


def test_two_classes_without_spread_give_infinite_kappa():
    plane = solve([3, 4], 0 * I, 0 * I)
    assert plane.kappa == math.inf
    np.testing.assert_allclose(plane.normal, [3 / 25, 4 / 25])


def test_optimum_that_is_not_unique_takes_the_middle():
    plane = solve([1, 1], np.diag([1.0, 0.0]), np.diag([0.0, 1.0]))
    assert plane.s == 0.5
    assert plane.kappa == pytest.approx(1, rel=1e-12)


def test_one_feature():
    plane = solve([3], [[4]], [[1]])
    assert plane.kappa == pytest.approx(1, rel=1e-14)
    # Plane at z = 1: a z = b with a = 1/3.
    assert plane.offset_from([3]) / plane.normal[0] == pytest.approx(1)


@pytest.mark.parametrize("ratio", [1e20, 1e-20])
def test_scale_ratio_of_1e20_between_classes(ratio):
    plane = solve([1, 1], ratio * I, I)
    wanted = math.sqrt(2) / (math.sqrt(ratio) + 1)
    assert plane.kappa == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("unit", [1e-150, 1e-6, 1e6, 1e150])
def test_units_do_not_matter(unit):
    plane = solve(GAP * unit, COV_POS * unit**2, COV_NEG * unit**2)
    assert plane.kappa == pytest.approx(1.0567745822556, rel=1e-12)


def test_features_in_very_different_units():
    units = np.array([1e-6, 1e6])
    outer = np.outer(units, units)
    plane = solve(GAP * units, COV_POS * outer, COV_NEG * outer)
    assert plane.kappa == pytest.approx(1.0567745822556, rel=1e-12)
    assert plane.gap <= 1e-9 * plane.kappa


def test_overlapping_uncertainty_sets_promise_nothing():
    plane = solve(GAP, COV_POS, COV_NEG, mean_radius=(2, 2))
    assert plane.kappa == pytest.approx(1.0567745822556 - 2, rel=1e-12)
    assert plane.alpha == 0


def test_one_radius_beyond_every_separation_promises_nothing():
    plane = solve([1, 1], I, I, mean_radius=(5, 0))
    assert plane.kappa < 0
    assert plane.alpha == 0
    assert np.isfinite(plane.normal).all()


@pytest.mark.parametrize("gap", [[0, 0], [1e-14, 0]])
def test_coinciding_means_are_an_error(gap):
    with pytest.raises(DegenerateDataError, match="class means coincide"):
        solve(gap, COV_POS, COV_NEG)


@pytest.mark.parametrize("n", [3, 20, 100, 200])
@pytest.mark.parametrize("ratio", [1.0, 1e3])
def test_routes_agree_and_certify_themselves(n, ratio):
    d, Sx, Sy = random_problem(n, 1e3, ratio, seed=n)
    duel = ScaledDuel.from_moments(d, Sx, Sy, Balance((1.2, 1.0), (0.02, 0.05)))
    answers = [route(duel) for route in (newton, lanczos, spectral)]
    for answer in answers:
        assert answer.kappa == pytest.approx(answers[-1].kappa, rel=1e-12)
        assert 0 <= answer.gap <= 1e-9 * answer.kappa
        np.testing.assert_allclose(answer.normal, answers[-1].normal, rtol=1e-6)


@pytest.mark.parametrize("n", [2, 7, 32])
@pytest.mark.parametrize("ratio", [1.0, 1e3])
def test_compiled_pass_equals_the_numpy_path(n, ratio):
    d, Sx, Sy = random_problem(n, 1e3, ratio, seed=n)
    balance = Balance((1.2, 1.0), (0.02, 0.05))
    compiled = solver._solve_compiled(d, Sx, Sy, balance)
    plain = solver.solve_validated(d, Sx, Sy, balance)
    assert compiled.kappa == pytest.approx(plain.kappa, rel=1e-12)
    assert compiled.s == pytest.approx(plain.s, rel=1e-8)
    assert compiled.distance_pos == pytest.approx(plain.distance_pos, rel=1e-8)
    np.testing.assert_allclose(compiled.normal, plain.normal, rtol=1e-7, atol=1e-12)
    assert compiled.gap <= 1e-9 * compiled.kappa


def test_compiled_pass_leaves_what_is_not_plain_to_the_numpy_path():
    balance = Balance()
    for d, Sx, Sy in (
        (GAP, np.diag([1.0, 0.0]), I),
        (GAP, 0 * I, I),
        (GAP, np.array([[1, 0.1], [0.2, 1]]), I),
        (GAP, np.array([[1, 2.0], [2, 1]]), I),
        (GAP, np.full((2, 2), np.nan), I),
        (0 * GAP, I, I),
        (np.array([1.0, 3.0]), I, np.diag([1.0, 0.0])),
    ):
        assert solver._solve_compiled(d, Sx, Sy, balance) is None


@pytest.mark.parametrize("n", [2, 10, 60, 200])
def test_ill_conditioned_problems_are_certified(n):
    d, Sx, Sy = random_problem(n, 1e6, 1e4, seed=n)
    plane = solve(d, Sx, Sy)
    assert plane.gap <= 1e-9 * plane.kappa


@pytest.mark.skipif(
    np.finfo(np.longdouble).eps > 1e-18, reason="no extended precision here"
)
@pytest.mark.parametrize("seed", range(3))
def test_rounding_of_an_ill_conditioned_plane_leaves_no_gap(seed):
    # Evaluated in double precision the residual alone is a gap of 1e-9 or more.
    d, Sx, Sy = random_problem(150, 1e8, 1e4, seed)
    duel = ScaledDuel.from_moments(d, Sx, Sy, Balance())
    for route in (newton, lanczos):
        answer = route(duel)
        assert answer.gap <= 1e-9 * answer.kappa
        assert answer.kappa == pytest.approx(spectral(duel).kappa, rel=1e-9)


def test_gap_is_honest_for_a_nearly_singular_problem():
    d, Sx, Sy = random_problem(20, 1e12, 1.0, seed=0)
    plane = solve(d, Sx, Sy)
    reference = ScaledDuel.from_moments(d, Sx, Sy, Balance())
    assert abs(plane.kappa - spectral(reference).kappa) <= plane.gap + 1e-9


@pytest.mark.parametrize("tau", [-700.0, -40.0, 0.0, 1e-3, 40.0, 700.0])
def test_shares_keep_relative_accuracy(tau):
    s, t = shares(tau)
    assert s + t == 1
    assert math.log(s) - math.log(t) == pytest.approx(tau, rel=1e-12, abs=1e-15)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[1, 2]], COV_POS, COV_NEG), "`mean_gap` must have shape"),
        (([], COV_POS, COV_NEG), "`mean_gap` must have shape"),
        ((GAP, COV_POS[:1], COV_NEG), "`cov_pos` must have shape"),
        ((GAP, COV_POS, np.eye(3)), "`cov_neg` must have shape"),
        (([np.nan, 1], COV_POS, COV_NEG), "finite"),
        ((GAP, COV_POS * np.inf, COV_NEG), "finite"),
        ((GAP, COV_POS, np.full((2, 2), np.nan)), "finite"),
        ((GAP, [[1, 0.1], [0.2, 1]], COV_NEG), "`cov_pos` must be symmetric"),
        ((GAP, COV_POS, [[1, 2], [2, 1]]), "`cov_neg` must be positive semidefinite"),
        ((GAP, -COV_POS, COV_NEG), "`cov_pos` must be positive semidefinite"),
    ],
)
def test_wrong_moments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        solve(*arguments)


@pytest.mark.parametrize(
    ("radii", "message"),
    [
        ({"mean_radius": (-0.1, 0)}, "`mean_radius`"),
        ({"mean_radius": (np.nan, 0)}, "`mean_radius`"),
        ({"mean_radius": (0.1,)}, "`mean_radius`"),
        ({"covariance_factor": (0.9, 1)}, "`covariance_factor`"),
        ({"covariance_factor": (1, np.inf)}, "`covariance_factor`"),
    ],
)
def test_wrong_radii_are_refused(radii, message):
    with pytest.raises(ValueError, match=message):
        solve(GAP, COV_POS, COV_NEG, **radii)


def test_rounding_below_zero_is_accepted_as_zero():
    S = np.diag([1.0, -1e-12])
    assert solve([1.0, 0.0], S, S).kappa == pytest.approx(0.5, rel=1e-9)


@pytest.mark.parametrize("n", [150, 300])
def test_indefinite_large_covariance_is_refused(n):
    d, Sx, Sy = random_problem(n, 1e2, 1.0, seed=1)
    values, vectors = np.linalg.eigh(Sx)
    values[0] = -0.1 * values[-1]
    Sx = (vectors * values) @ vectors.T
    with pytest.raises(ValueError, match="`cov_pos` must be positive semidefinite"):
        solve(d, (Sx + Sx.T) / 2, Sy)


@pytest.mark.parametrize("seed", range(4))
def test_kappa_is_the_error_of_the_means_that_the_rule_tolerates(seed):
    d, Sx, Sy = random_problem(4, 20.0, 3.0, seed)
    plane = solve(d, Sx, Sy)
    short, beyond = (
        solve(d, Sx, Sy, mean_radius=(factor * plane.kappa,) * 2)
        for factor in (0.99, 1.01)
    )
    assert short.alpha > 0
    assert beyond.alpha == 0
    # A mean that is kappa deviations nearer lies on the plane; no other way is shorter.
    a = plane.normal
    for S, distance in ((Sx, plane.distance_pos), (Sy, 1 - plane.distance_pos)):
        shift = distance * S @ a / (a @ S @ a)
        assert a @ shift == pytest.approx(distance)
        assert shift @ np.linalg.solve(S, shift) == pytest.approx(plane.kappa**2)


@pytest.mark.parametrize("radius", [0.1, (0.1,), (0.1, -1.0), (0.1, math.nan)])
def test_mean_radii_are_two_numbers(radius):
    with pytest.raises(ValueError, match="`mean_radius` must be two finite numbers"):
        solve(GAP, COV_POS, COV_NEG, mean_radius=radius)
