"""Every theorem of the minimax family against a generic conic solver."""

import math

import numpy as np
import pytest

from prudent import MinimaxProbabilityClassifier
from prudent.minimax import solve
from prudent.minimax.certificate import largest_exit_probability
from prudent.minimax.one_class import halfspace

cp = pytest.importorskip("cvxpy")
pytestmark = pytest.mark.oracle


def problem(n, seed, condition=100.0):
    rng = np.random.default_rng(seed)

    def covariance():
        q = np.linalg.qr(rng.normal(size=(n, n)))[0]
        return (q * np.exp(rng.uniform(0, np.log(condition), n))) @ q.T

    return 2 * rng.normal(size=n), covariance(), covariance()


def root(S):
    values, vectors = np.linalg.eigh(S)
    return (vectors * np.sqrt(np.maximum(values, 0))).T


def least(objective, constraints):
    return cp.Problem(cp.Minimize(objective), constraints).solve(solver="CLARABEL")


@pytest.mark.parametrize(("n", "seed"), [(2, 0), (5, 1), (12, 2), (30, 3)])
def test_theorem_2_minimax_plane(n, seed):
    d, Sx, Sy = problem(n, seed)
    a = cp.Variable(n)
    spread = cp.norm(root(Sx) @ a) + cp.norm(root(Sy) @ a)
    kappa = 1 / least(spread, [a @ d == 1])
    plane = solve(d, Sx, Sy)
    assert plane.kappa == pytest.approx(kappa, rel=1e-7)
    np.testing.assert_allclose(plane.normal, a.value, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("seed", range(3))
def test_theorem_2_dual_the_ellipsoids_touch(seed):
    d, Sx, Sy = problem(4, seed)
    z, kappa = cp.Variable(4), cp.Variable()
    inverse = [np.linalg.inv(root(S).T) for S in (Sx, Sy)]
    touching = least(
        kappa,
        [cp.norm(inverse[0] @ (z - d)) <= kappa, cp.norm(inverse[1] @ z) <= kappa],
    )
    assert solve(d, Sx, Sy).kappa == pytest.approx(touching, rel=1e-7)


def robust_kappa(d, Sx, Sy, nu, gamma):
    """Bisection on kappa: each step is a second-order cone feasibility problem."""
    a = cp.Variable(len(d))
    scale = [cp.Parameter(nonneg=True), cp.Parameter(nonneg=True)]
    spread = scale[0] * cp.norm(root(Sx) @ a) + scale[1] * cp.norm(root(Sy) @ a)
    task = cp.Problem(cp.Minimize(spread), [a @ d == 1])
    low, high = 0.0, 20.0
    for _ in range(45):
        kappa = 0.5 * (low + high)
        for parameter, radius, factor in zip(scale, nu, gamma, strict=True):
            parameter.value = (kappa + radius) * math.sqrt(factor)
        task.solve(solver="CLARABEL")
        low, high = (kappa, high) if task.value <= 1 else (low, kappa)
    return low


@pytest.mark.parametrize(
    ("nu", "rho", "gamma"),
    [
        ((0.2, 0.2), (0.0, 0.0), (1.0, 1.0)),
        ((0.3, 0.05), (0.2, 0.4), (1.0, 1.0)),
        ((0.1, 0.2), (0.3, 0.0), (1.5, 1.1)),
    ],
)
def test_theorem_3_robust_plane_class_by_class(nu, rho, gamma):
    d, Sx, Sy = problem(4, 7, condition=10)
    Sx, Sy = Sx + rho[0] * np.eye(4), Sy + rho[1] * np.eye(4)
    plane = solve(d, Sx, Sy, mean_radius=nu, covariance_factor=gamma)
    assert plane.kappa > 0
    assert plane.kappa == pytest.approx(robust_kappa(d, Sx, Sy, nu, gamma), rel=1e-7)


@pytest.mark.parametrize("seed", range(3))
def test_points_of_the_frontier_are_biased_minimax_machines(seed):
    """Huang et al. (2004): hold one class's error, make the other's least."""
    d, Sx, Sy = problem(4, seed, condition=10)
    moments = ([np.zeros(4), d], [Sy, Sx], [9, 9])
    frontier = MinimaxProbabilityClassifier.from_moments(*moments).pareto_frontier(6)
    a = cp.Variable(4)
    for kappas, errors in zip(
        frontier.kappas[1:-1], frontier.errors[1:-1], strict=True
    ):
        held = kappas[1] * cp.norm(root(Sx) @ a)
        kappa = 1 / least(cp.norm(root(Sy) @ a), [a @ d - held >= 1])
        assert kappas[0] == pytest.approx(kappa, rel=1e-6)
        machine = MinimaxProbabilityClassifier.from_moments(
            *moments, objective="cost", costs=[[0, 1 / errors[0]], [1 / errors[1], 0]]
        )
        np.testing.assert_allclose(machine.class_worst_case_error_, errors, rtol=1e-8)


@pytest.mark.parametrize("share", [0.3, 0.5])
def test_the_mean_objective_is_the_minimum_error_machine(share):
    """Huang et al. (2004): the largest weighted mean of both worst-case accuracies."""
    d, Sx, Sy = problem(4, 1, condition=10)
    machine = MinimaxProbabilityClassifier.from_moments(
        [np.zeros(4), 3 * d],
        [Sy, Sx],
        [9, 9],
        objective="mean",
        priors=[1 - share, share],
    )
    errors = machine.pareto_frontier(100_001).errors
    assert machine.worst_case_error_ == pytest.approx(
        (errors @ [1 - share, share]).min(), rel=1e-7
    )


def test_additive_covariance_set_is_a_ridge():
    # max a'Sa over |S - S0|_F <= rho and S semidefinite equals a'(S0 + rho I)a.
    _, S0, _ = problem(3, 4)
    a, rho = np.array([1.0, -0.5, 2.0]), 0.8
    S = cp.Variable((3, 3), PSD=True)
    task = cp.Problem(
        cp.Maximize(cp.sum(cp.multiply(S, np.outer(a, a)))),
        [cp.norm(S - S0, "fro") <= rho],
    )
    task.solve(solver="CLARABEL")
    assert task.value == pytest.approx(a @ (S0 + rho * np.eye(3)) @ a, rel=1e-6)


def test_mean_set_moves_a_score_by_nu_standard_deviations():
    _, S, _ = problem(3, 5)
    a, nu = np.array([1.0, -0.5, 2.0]), 0.7
    x = cp.Variable(3)
    task = cp.Problem(cp.Minimize(a @ x), [cp.norm(np.linalg.inv(root(S).T) @ x) <= nu])
    task.solve(solver="CLARABEL")
    assert task.value == pytest.approx(-nu * math.sqrt(a @ S @ a), rel=1e-6)


@pytest.mark.parametrize("rate", [0.3, 0.5])
@pytest.mark.parametrize(("nu", "rho"), [(0.0, 0.0), (0.2, 0.3)])
def test_theorem_4_halfspace(rate, nu, rho):
    # min sqrt(a'Sa) s.t. a'm - 1 >= k sqrt(a'(S + rho I)a).
    mean = np.array([3.0, 2.0, -1.0])
    S = np.diag([0.5, 1.0, 0.3]) + 0.1 + rho * np.eye(3)
    k = math.sqrt((1 - rate) / rate) + nu
    a = cp.Variable(3)
    spread = cp.norm(root(S) @ a)
    least(spread, [mean @ a - 1 >= k * spread])
    region = halfspace(mean, S)
    np.testing.assert_allclose(
        region.weights / region.threshold(rate, nu), a.value, rtol=1e-5
    )


def kernel_problem():
    x, y = np.array([0, 0.5, 1]), np.array([2, 2.6, 3.5])
    t = np.r_[x, y]
    return t[:, None], np.exp(-((t[:, None] - t) ** 2) / 2)


def kernel_moments(K):
    """Means l and matrices L'L of Theorem 6, class of the first three rows first."""
    means = np.stack([K[:3].mean(axis=0), K[3:].mean(axis=0)])
    L = (K[:3] - means[0], K[3:] - means[1])
    return means, np.stack([part.T @ part / 3 for part in L])


def kernel_kappa(means, forms):
    """Least sum of roots of the quadratic forms, over coefficients of the rows."""
    g = cp.Variable(6)
    spread = cp.norm(root(forms[0]) @ g) + cp.norm(root(forms[1]) @ g)
    return 1 / least(spread, [g @ (means[0] - means[1]) == 1])


@pytest.mark.parametrize("rho", [(0.01, 0.01), (0.05, 0.2)])
def test_theorem_6_kernel_plane(rho):
    t, K = kernel_problem()
    means, spreads = kernel_moments(K)
    kappa = kernel_kappa(means, spreads + np.multiply.outer(rho, K))
    model = MinimaxProbabilityClassifier(
        kernel="rbf", gamma=0.5, covariance_radius=rho[::-1]
    ).fit(t, [1, 1, 1, 0, 0, 0])
    assert model.kappa_ == pytest.approx(kappa, rel=1e-6)


def test_section_5_3_a_kernel_matrix_with_a_ridge():
    """K + ridge I in place of K: in the coordinates of the rows and in the radius."""
    _, K = kernel_problem()
    ridge, rho = 0.1, 0.02
    regular = K + ridge * np.eye(6)
    means, spreads = kernel_moments(regular)
    kappa = kernel_kappa(means, spreads + rho * regular)
    model = MinimaxProbabilityClassifier(kernel="precomputed", covariance_radius=rho)
    model.fit(regular, [1, 1, 1, 0, 0, 0])
    assert model.kappa_ == pytest.approx(kappa, rel=1e-6)


@pytest.mark.parametrize("rho", [0.0, 0.02])
def test_section_5_3_a_ridge_on_the_coefficients(rho):
    """L'L + rho K + ridge I: the moments of kernel values, with a radius `ridge`."""
    _, K = kernel_problem()
    ridge = 0.1
    means, spreads = kernel_moments(K)
    forms = spreads + rho * K
    kappa = kernel_kappa(means, forms + ridge * np.eye(6))
    model = MinimaxProbabilityClassifier.from_moments(
        means[::-1], forms[::-1], counts=[3, 3], covariance_radius=ridge
    )
    assert model.kappa_ == pytest.approx(kappa, rel=1e-6)
    if not rho:  # the rows of K are all that is needed
        rows = MinimaxProbabilityClassifier(covariance_radius=ridge)
        assert rows.fit(K, [1, 1, 1, 0, 0, 0]).kappa_ == pytest.approx(kappa, rel=1e-6)


@pytest.mark.parametrize("nu", [0.0, 0.1])
def test_theorem_7_kernel_halfspace_closed_form(nu):
    from prudent import MinimaxOutlierDetector

    t, K = kernel_problem()
    rho, rate = 0.05, 0.5
    K = K[:3, :3]
    mean = K.mean(axis=0)
    L = (K - mean) / math.sqrt(3)
    direction = np.linalg.solve(L.T @ L + rho * K, mean)
    zeta = math.sqrt(mean @ direction)
    k = math.sqrt((1 - rate) / rate) + nu
    detector = MinimaxOutlierDetector(
        kernel="rbf",
        gamma=0.5,
        mean_radius=nu,
        covariance_radius=rho,
        region="halfspace",
        threshold="distribution_free",
        false_alarm_rate=rate,
    ).fit(t[:3])
    np.testing.assert_allclose(
        detector.dual_coef_[0] / detector.offset_,
        direction / (zeta**2 - k * zeta),
        rtol=1e-9,
    )


@pytest.mark.parametrize("costs", [(2.0, 1.0), (1.0, 3.0), (1.0, 1.0)])
def test_cost_objective_against_brute_force_over_planes(costs):
    # class 1 positive; costs of an error of class 1 and of class 0.
    means = np.array([[-1.0, 0.0], [1.0, 2.0]])
    covariances = np.array([[[1, -0.3], [-0.3, 3]], [[2, 0.5], [0.5, 1]]])
    angles = np.linspace(0, 2 * np.pi, 4001)
    A = np.column_stack([np.cos(angles), np.sin(angles)])
    gap = A @ (means[1] - means[0])
    A, gap = A[gap > 0], gap[gap > 0]
    deviation = np.sqrt(np.einsum("ij,kjl,il->ki", A, covariances, A))
    split = np.linspace(0, 1, 2001)[:, None]
    error_1 = 1 / (1 + (split * gap / deviation[1]) ** 2)
    error_0 = 1 / (1 + ((1 - split) * gap / deviation[0]) ** 2)
    best = np.maximum(costs[0] * error_1, costs[1] * error_0).min()
    model = MinimaxProbabilityClassifier.from_moments(
        means,
        covariances,
        [1, 1],
        objective="cost",
        costs=[[0, costs[1]], [costs[0], 0]],
    )
    value = max(np.array([costs[1], costs[0]]) * model.class_worst_case_error_)
    assert value <= best + 1e-12
    assert value == pytest.approx(best, rel=1e-3)


@pytest.mark.filterwarnings("ignore:.*always predicting one class")
@pytest.mark.parametrize("seed", range(6))
def test_mean_objective_against_brute_force_over_planes(seed):
    rng = np.random.default_rng(seed)
    roots = rng.normal(size=(2, 2, 2))
    covariances = roots @ roots.transpose(0, 2, 1) + 0.05 * np.eye(2)
    means = np.array([[0.0, 0.0], 1.5 * rng.normal(size=2)])
    prior = rng.uniform(0.2, 0.8)
    angles = np.linspace(0, 2 * np.pi, 4001)
    A = np.column_stack([np.cos(angles), np.sin(angles)])
    gap = A @ (means[1] - means[0])
    A, gap = A[gap > 0], gap[gap > 0]
    deviation = np.sqrt(np.einsum("ij,kjl,il->ki", A, covariances, A))
    split = np.linspace(0, 1, 2001)[:, None]
    error_1 = 1 / (1 + (split * gap / deviation[1]) ** 2)
    error_0 = 1 / (1 + ((1 - split) * gap / deviation[0]) ** 2)
    best = (prior * error_1 + (1 - prior) * error_0).min()
    model = MinimaxProbabilityClassifier.from_moments(
        means, covariances, [1, 1], objective="mean", priors=[1 - prior, prior]
    )
    assert model.worst_case_error_ <= best + 1e-9
    assert model.worst_case_error_ == pytest.approx(best, abs=2e-3)


def test_exact_bound_against_the_program_in_cvxpy():
    R = np.array([[1.0, 0.4, -0.2], [0.4, 1.0, 0.3], [-0.2, 0.3, 1.0]])
    limits = np.array([1.5, 2.0, 1.2])
    Z = cp.Variable((4, 4), symmetric=True)
    taus = cp.Variable(3, nonneg=True)
    corner = np.zeros((4, 4))
    corner[3, 3] = 1
    constraints = [Z >> 0]
    for i, limit in enumerate(limits):
        B = -limit * corner
        B[i, 3] = B[3, i] = 0.5
        constraints.append(Z - corner - taus[i] * B >> 0)
    moments = corner.copy()
    moments[:3, :3] = R
    value = least(cp.trace(Z @ moments), constraints)
    assert largest_exit_probability(R, limits) == pytest.approx(value, abs=1e-6)
