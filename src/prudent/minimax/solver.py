"""The minimax plane of two classes with known means and covariances, certified.

Four routes lead to it, each with what its loss costs (medians of CPU time):

- `newton`, a Cholesky factor a step, up to `NEWTON_LIMIT` features: diagonalising
  instead makes a fit of iris 1.2 and of wine 1.9 times slower.
- `lanczos`, one factor and a short recursion, beyond: Newton steps alone make a kernel
  fit 1.1 to 1.2 times slower and `solve` 1.4 (n = 200) to 1.8 times (n = 1000).
- `spectral`, the whole curve: what singular covariances and other objectives need.
- `_compiled.solve_small`, the Newton steps again, for `solve` up to `COMPILED_LIMIT`
  features: 10 us in place of 150 at n = 10. Fits do without: numba takes half a second
  to load.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg.lapack import dpotrf, dpotrs, dtrtrs

from prudent.core.types import FloatArray
from prudent.exceptions import DegenerateDataError, SingularCovarianceError
from prudent.minimax.curve import (
    ACCEPTED_GAP,
    END_LOGIT,
    EPS,
    ROUNDING,
    TIE_SHIFT,
    TINY_PIVOT,
    Balance,
    CurvePoint,
    ParetoCurve,
    ScaledDuel,
    balanced_logit,
    shares,
)

NEWTON_LIMIT, COMPILED_LIMIT = 128, 32
#: Relative residual of a Krylov plane. Ill-conditioned problems need all of it: the
#: certificate measures the residual with the inverse of their covariances.
TOLERANCE = 1e-13
LANCZOS_STEPS = 10
#: Steps before the first test of convergence, which costs as much as two steps below
#: `FEW` features.
FIRST_TEST, FIRST_TEST_OF_FEW, FEW = 6, 8, 300
REFACTORINGS = 4
#: Smallest kappa that is told apart from coinciding means.
SMALLEST_KAPPA = 1e-12
SINGULAR = (
    "the covariances are singular to working precision: set `covariance_radius` > 0, "
    "or shrink them."
)
COINCIDE = (
    "the class means coincide, so no plane separates the classes: drop a class or "
    "add features that differ between them."
)


@dataclass(frozen=True, slots=True)
class MinimaxSolution:
    """The plane a'z = b that keeps both classes apart in their worst case.

    Attributes
    ----------
    normal : ndarray of shape (n_features,)
        Normal a of the plane, scaled so that a'(mean_pos - mean_neg) = 1.
    kappa : float
        Standard deviations between the plane and each class mean that are left in
        the worst case; negative when no plane separates the uncertainty sets.
    alpha : float
        Probability with which each class is classified correctly under every law
        with its moments, kappa^2 / (1 + kappa^2), 0 for kappa < 0.
    gap : float
        Certified: the largest possible kappa lies within `gap` of `kappa`.
    s : float
        Weight of the negative class's covariance: a solves
        ((1 - s) Sx + s Sy) a ~ mean_pos - mean_neg.
    n_iter : int
        Steps of all solver routes taken.
    distance_pos : float
        a'mean_pos - b, in [0, 1].
    class_kappas : tuple of float
        kappa of the positive and of the negative class; equal to `kappa` unless the
        plane serves another objective.
    mean_gap, cov_pos, cov_neg : ndarray
        The moments of the problem.
    """

    normal: FloatArray
    kappa: float
    alpha: float
    gap: float
    s: float
    n_iter: int
    distance_pos: float
    class_kappas: tuple[float, float]
    mean_gap: FloatArray = field(repr=False)
    cov_pos: FloatArray = field(repr=False)
    cov_neg: FloatArray = field(repr=False)

    @property
    def touching_point(self) -> FloatArray:
        """Common point z of the two ellipsoids, from the mean of the negative class.

        It solves the dual problem: the least max over both classes of the Mahalanobis
        distance ``|z - mean|`` in the metric of the class is kappa, up to `gap`; with
        radii, sqrt(gamma) (kappa + nu). The plane touches both ellipsoids there.

        Returns
        -------
        ndarray of shape (n_features,)
            z - mean_neg; take off `mean_gap` for z - mean_pos. Halfway between the
            means where neither class varies along the normal.
        """
        along_pos, along_neg = self.cov_pos @ self.normal, self.cov_neg @ self.normal
        spreads = float(self.normal @ along_pos), float(self.normal @ along_neg)
        if math.isinf(self.kappa) or not max(spreads) > 0:
            return self.mean_gap / 2
        # From the class that varies more along the normal: it is known better.
        if spreads[0] > spreads[1]:
            share = self.distance_pos / spreads[0]
            point: FloatArray = self.mean_gap - share * along_pos
        else:
            point = (1 - self.distance_pos) / spreads[1] * along_neg
        return point

    def offset_from(self, mean_pos: ArrayLike) -> float:
        """Offset b of the plane, from the mean of the positive class.

        Where one class is constant along the normal the plane would run through that
        class; it stands 1e-9 of the distance between the means off it, or as much as
        rounding asks.
        """
        mean = np.asarray(mean_pos, dtype=np.float64)
        distance = self.distance_pos
        if distance in (0.0, 1.0) and math.isinf(max(self.class_kappas)):
            resolution = 64 * EPS * float(np.abs(self.normal) @ np.abs(mean))
            distance = abs(distance - min(max(TIE_SHIFT, resolution), 0.5))
        return float(self.normal @ mean) - distance


def solve(
    mean_gap: ArrayLike,
    cov_pos: ArrayLike,
    cov_neg: ArrayLike,
    *,
    mean_radius: tuple[float, float] = (0.0, 0.0),
    covariance_factor: tuple[float, float] = (1.0, 1.0),
) -> MinimaxSolution:
    """Find the plane with the best worst-case accuracy over all laws.

    Maximises alpha such that both classes are classified correctly with probability
    at least alpha under every law with the given means and covariances. An additive
    covariance radius rho is part of the arguments: pass cov + rho I.

    Parameters
    ----------
    mean_gap : array-like of shape (n_features,)
        Mean of the positive minus mean of the negative class.
    cov_pos, cov_neg : array-like of shape (n_features, n_features)
        Class covariances, symmetric positive semidefinite, in squared units of
        `mean_gap`.
    mean_radius : tuple of float, default=(0, 0)
        Mahalanobis radius nu >= 0 in which the mean of the positive and of the
        negative class is known.
    covariance_factor : tuple of float, default=(1, 1)
        Factor gamma >= 1 by which the covariance of the positive and of the negative
        class may exceed the given one.

    Returns
    -------
    MinimaxSolution
        Normal, kappa, alpha and a certified gap.

    Raises
    ------
    DegenerateDataError
        If the class means coincide.
    SingularCovarianceError
        If the covariances are so nearly singular that rounding decides the plane.
    ValueError
        If shapes disagree, an entry is not finite, a covariance is not symmetric
        positive semidefinite, or a radius is out of range.

    Notes
    -----
    Solves 1/kappa = min sqrt(a'Sx a) + sqrt(a'Sy a) subject to a'd = 1 (Theorem 2) and
    its robust forms (Theorem 3, class by class). One root in one variable; O(n^3), a
    Cholesky factor being the unit: a few for n <= 128, else one and a short Lanczos
    recursion. Above 128 features semidefiniteness is not checked ahead: the recursion
    meets negative eigenvalues that matter to the plane.

    References
    ----------
    Lanckriet, El Ghaoui, Bhattacharyya, Jordan (2002). A robust minimax approach to
    classification. JMLR 3, Theorems 2 and 3.

    Examples
    --------
    >>> from prudent.minimax import solve
    >>> plane = solve([2, 2], [[2, 0.5], [0.5, 1]], [[1, -0.3], [-0.3, 3]])
    >>> round(plane.kappa, 6), round(plane.alpha, 6)
    (1.056775, 0.527583)
    >>> round(plane.offset_from([1, 2]), 6)
    0.142663
    >>> plane.touching_point.round(4).tolist()
    [0.6034, 1.299]
    """
    d = np.asarray(mean_gap, dtype=np.float64)
    if d.ndim != 1 or not len(d):
        raise ValueError(f"`mean_gap` must have shape (n_features,), got {d.shape}.")
    Sx = np.asarray(cov_pos, dtype=np.float64)
    Sy = np.asarray(cov_neg, dtype=np.float64)
    for name, S in (("cov_pos", Sx), ("cov_neg", Sy)):
        if S.shape != (len(d), len(d)):
            raise ValueError(
                f"`{name}` must have shape {(len(d), len(d))}, got {S.shape}."
            )
    balance = _checked_balance(mean_radius, covariance_factor)
    if len(d) <= COMPILED_LIMIT:
        solution = _solve_compiled(d, Sx, Sy, balance)
        if solution is not None:
            return solution
    if not np.isfinite(d).all():
        raise ValueError("`mean_gap` must hold finite numbers.")
    for name, S in (("cov_pos", Sx), ("cov_neg", Sy)):
        _check_symmetric(name, S)
        if len(d) <= NEWTON_LIMIT:
            _check_semidefinite(name, S)
    return solve_validated(d, Sx, Sy, balance)


def _solve_compiled(
    d: FloatArray, Sx: FloatArray, Sy: FloatArray, balance: Balance
) -> MinimaxSolution | None:
    """Answer for few features, None unless the problem is plainly well posed."""
    from prudent.minimax._compiled import solve_small

    normal = np.empty(len(d))
    kappa, gap, s, distance, n_iter = solve_small(
        np.ascontiguousarray(d),
        np.ascontiguousarray(Sx),
        np.ascontiguousarray(Sy),
        balance.widths,
        balance.radii,
        normal,
    )
    if not n_iter:
        return None
    both = (kappa, kappa)
    return MinimaxSolution(
        normal, kappa, alpha_of(kappa), gap, s, n_iter, distance, both, d, Sx, Sy
    )


def solve_validated(
    d: FloatArray, Sx: FloatArray, Sy: FloatArray, balance: Balance
) -> MinimaxSolution:
    """Solve for moments known to be finite, symmetric and semidefinite.

    `d` (n,) is the mean of the positive class x less that of the negative one y, `Sx`
    and `Sy` (n, n) are their covariances with any additive radius, and `balance` holds
    the other radii. The first route whose answer is accepted gives it; else the one of
    the smaller gap.
    """
    duel = _scaled(d, Sx, Sy, balance)
    answer = (newton if len(d) <= NEWTON_LIMIT else lanczos)(duel)
    n_iter = answer.n_iter if answer else 0
    if answer is None or not answer.is_accepted:
        if len(d) > NEWTON_LIMIT:  # not checked ahead: the recursion found it in doubt
            _check_semidefinite("cov_pos", Sx)
            _check_semidefinite("cov_neg", Sy)
        fallback = spectral(duel)
        n_iter += fallback.n_iter
        if answer is None or fallback.is_accepted or fallback.gap < answer.gap:
            answer = fallback
    return _in_given_units(answer, duel, n_iter, (d, Sx, Sy))


def solve_on_curve(
    d: FloatArray,
    Sx: FloatArray,
    Sy: FloatArray,
    balance: Balance,
    choose: Callable[[ParetoCurve, Balance], float],
) -> MinimaxSolution:
    """Plane at the logit that `choose` picks from the curve of trade-offs."""
    duel = _scaled(d, Sx, Sy, balance)
    curve = ParetoCurve.from_moments(duel.d, duel.X, duel.Y)
    if curve.null_normal is not None:
        answer = separable(duel, curve.null_normal)
    else:
        answer = at_logit(duel, curve, choose(curve, duel.balance))
    return _in_given_units(answer, duel, answer.n_iter, (d, Sx, Sy))


def _scaled(
    d: FloatArray, Sx: FloatArray, Sy: FloatArray, balance: Balance
) -> ScaledDuel:
    """The duel in its own units; DegenerateDataError where the means are equal."""
    if not d.any():
        raise DegenerateDataError(COINCIDE)
    return ScaledDuel.from_moments(d, Sx, Sy, balance)


def _in_given_units(
    answer: Answer,
    duel: ScaledDuel,
    n_iter: int,
    moments: tuple[FloatArray, FloatArray, FloatArray],
) -> MinimaxSolution:
    """The solution, unless the means do not lie apart or the normal does not say so."""
    if not answer.plain_kappa >= 0:
        raise SingularCovarianceError(SINGULAR)
    if answer.plain_kappa < SMALLEST_KAPPA:
        raise DegenerateDataError(COINCIDE)
    s, _ = shares(answer.tau + 2 * math.log(duel.spread[0] / duel.spread[1]))
    return MinimaxSolution(
        answer.normal / duel.scale,
        answer.kappa,
        alpha_of(answer.kappa),
        answer.gap,
        s,
        n_iter,
        answer.distance_pos,
        answer.class_kappas or (answer.kappa, answer.kappa),
        *moments,
    )


def alpha_of(kappa: float) -> float:
    """Worst-case probability of a half-space kappa standard deviations away."""
    kappa = max(kappa, 0.0)
    return 1.0 if math.isinf(kappa) else kappa * kappa / (1 + kappa * kappa)


def _check_symmetric(name: str, S: FloatArray) -> None:
    """Refuse a matrix that is not finite, or asymmetric by more than rounding."""
    if not np.isfinite(S).all():
        raise ValueError(f"`{name}` must hold finite numbers.")
    if not np.array_equal(S, S.T):
        asymmetry = float(np.abs(S - S.T).max())
        if asymmetry > 1e-8 * float(np.abs(S).max()):
            raise ValueError(
                f"`{name}` must be symmetric, entries differ by {asymmetry:.3g}; "
                "average it with its transpose."
            )


def _check_semidefinite(name: str, S: FloatArray) -> None:
    """Refuse a matrix with an eigenvalue below -1e-8 of the largest one."""
    # A factor of S + 1e-8 max S_ii I proves the point without eigenvalues.
    shifted = S.copy()
    shifted.flat[:: len(S) + 1] += 1e-8 * float(S.diagonal().max())
    if dpotrf(shifted.T, lower=1, overwrite_a=1)[1] != 0:
        smallest, largest = np.linalg.eigvalsh(S)[[0, -1]]
        if smallest < -1e-8 * largest:
            raise ValueError(
                f"`{name}` must be positive semidefinite, its smallest eigenvalue is "
                f"{smallest:.3g}; `floor_eigenvalues` raises it."
            )


def _checked_balance(
    mean_radius: tuple[float, float], covariance_factor: tuple[float, float]
) -> Balance:
    """Balance condition of two classes: nu >= 0 and sqrt(gamma), gamma >= 1."""
    for name, pair, least in (
        ("mean_radius", mean_radius, 0),
        ("covariance_factor", covariance_factor, 1),
    ):
        is_pair = np.shape(pair) == (2,)
        if not is_pair or not all(least <= value < math.inf for value in pair):
            raise ValueError(
                f"`{name}` must be two finite numbers >= {least}, got {pair!r}."
            )
    (gx, gy), (nx, ny) = covariance_factor, mean_radius
    return Balance((math.sqrt(gx), math.sqrt(gy)), (float(nx), float(ny)))


# --- routes to the balance of a duel, and the certificate that judges them all --------


@dataclass(frozen=True, slots=True)
class Answer:
    """A plane in the units of its duel; `tau` is the logit of its curve."""

    normal: FloatArray
    kappa: float
    plain_kappa: float
    gap: float
    tau: float
    distance_pos: float
    n_iter: int
    class_kappas: tuple[float, float] | None = None

    @property
    def is_accepted(self) -> bool:
        """Whether the gap is closed and the plane stays clear of both class means.

        A plane through a mean belongs to a class that is constant along the normal;
        the spectral route knows it exactly.
        """
        return (
            self.gap <= ACCEPTED_GAP * abs(self.kappa)
            and TIE_SHIFT < self.distance_pos < 1 - TIE_SHIFT
        )


def newton(duel: ScaledDuel) -> Answer | None:
    """Newton steps on the curve, one Cholesky factor each; None if one fails.

    At every logit a = M(s)^-1 d, P = a'Sx a, Q = a'Sy a and R = (Sx a)'M^-1 (Sy a),
    the slopes of kx = (1 - s) sqrt(P) and ky = s sqrt(Q) being -R / sqrt(P) and
    R / sqrt(Q).
    """
    d, X, Y = duel.d, duel.X, duel.Y
    start = duel.balance.start
    factor = a = d

    def evaluate(tau: float) -> CurvePoint:
        nonlocal factor, a
        if abs(tau) > END_LOGIT:
            raise np.linalg.LinAlgError
        s, t = shares(tau)
        factor = _factor(t * X + s * Y, pivots=tau == start)
        a = dpotrs(factor, d, lower=1)[0]
        Xa, Ya = X @ a, Y @ a
        b = dpotrs(factor, Ya, lower=1)[0]
        return float(Xa @ a), float(Ya @ a), float(Xa @ b)

    try:
        tau, n_iter = balanced_logit(evaluate, duel.balance, start)
    except (np.linalg.LinAlgError, ValueError):
        return None
    return _certified(duel, a, tau, n_iter, factor)


def _factor(M: FloatArray, *, pivots: bool = True) -> FloatArray:
    """Cholesky factor, overwriting M; LinAlgError if it fails or a pivot is tiny."""
    diagonal = M.diagonal().copy() if pivots else None
    factor, failed = dpotrf(M.T, lower=1, clean=0, overwrite_a=1)
    if failed or (
        diagonal is not None
        and (factor.diagonal() ** 2 < len(factor) * TINY_PIVOT * diagonal).any()
    ):
        raise np.linalg.LinAlgError
    return factor


def lanczos(duel: ScaledDuel) -> Answer | None:
    """One Cholesky factor and a short Lanczos recursion; refactor if it is slow.

    L L' = (1 - s0) Sx + s0 Sy at the start s0 turns the curve into that of the
    operator C = (1 - s0) L^-1 Sx L^-T, whose spectrum lies in [0, 1], and of L^-1 d.
    """
    tau, n_iter = duel.balance.start, 0
    for _ in range(REFACTORINGS):
        s0, t0 = shares(tau)
        M = t0 * duel.X
        M += s0 * duel.Y
        try:
            factor = _factor(M)
            normal, shift, converged, steps = _krylov_plane(duel, factor, s0, t0)
        except np.linalg.LinAlgError:
            return None
        tau += shift
        n_iter += steps
        if converged:
            break
    return _certified(duel, normal, tau, n_iter, factor)


def _krylov_plane(
    duel: ScaledDuel, factor: FloatArray, s0: float, t0: float
) -> tuple[FloatArray, float, bool, int]:
    """Balance the classes in the Krylov space of C = t0 L^-1 Sx L^-T and L^-1 d.

    Ritz values and weights stand in for the spectrum of C (Gauss quadrature), so the
    balance is exact once the residual of a vanishes: |s - (1 - s)| beta_k |y_k| in
    these coordinates, with y = Z (c / m) and beta_k the last entry beside the diagonal.
    Returns a (n,), the shift of the logit, whether a has converged, and the steps.
    """
    balance = duel.balance.scaled(1 / math.sqrt(t0), 1 / math.sqrt(s0))
    c = dtrtrs(factor, duel.d, lower=1)[0]
    size = float(np.linalg.norm(c))
    tau = balance.start
    first_test = FIRST_TEST_OF_FEW if len(c) < FEW else FIRST_TEST
    V = np.empty((LANCZOS_STEPS + 1, len(c)))
    V[0] = c / size
    T = np.zeros((LANCZOS_STEPS + 1, LANCZOS_STEPS + 1))
    for k in range(1, LANCZOS_STEPS + 1):
        w = dtrtrs(factor, V[k - 1], lower=1, trans=1)[0]
        w = dtrtrs(factor, duel.X @ w, lower=1, overwrite_b=1)[0]
        w *= t0
        along = V[:k] @ w
        T[k - 1, k - 1] = along[-1]
        w -= along @ V[:k]
        w -= (V[:k] @ w) @ V[:k]
        T[k, k - 1] = T[k - 1, k] = beta = float(np.linalg.norm(w))
        exhausted = beta <= EPS
        if not exhausted:
            V[k] = w / beta
            if k < first_test or k % 2:
                continue
        p, Z = np.linalg.eigh(T[:k, :k])
        if p[0] < -ROUNDING or p[-1] > 1 + ROUNDING:
            raise np.linalg.LinAlgError  # a covariance has a negative eigenvalue
        p = np.clip(p, 0.0, 1.0)
        curve = ParetoCurve(p, 1 - p, size * Z[0], Z)
        tau, _ = balanced_logit(curve.point, balance, tau)
        s, t = shares(tau)
        y = Z @ (curve.c / (t * p + s * curve.q))
        residual = abs(s - t) * beta * abs(float(y[-1]))
        converged = exhausted or bool(residual <= TOLERANCE * size)
        if converged:
            break
    a = dtrtrs(factor, y @ V[:k], lower=1, trans=1)[0]
    a *= s * s0 + t * t0
    return a, tau, converged, k


def spectral(duel: ScaledDuel) -> Answer:
    """Solve on the diagonalised problem; takes singular covariances as they are.

    O(n) a step after two decompositions, and exact at the ends of the curve, where one
    class does not vary along the normal.
    """
    curve = ParetoCurve.from_moments(duel.d, duel.X, duel.Y)
    if curve.null_normal is not None:
        return separable(duel, curve.null_normal)
    tau, n_iter = curve.balanced(duel.balance)
    if math.isinf(tau):
        return at_logit(duel, curve, tau)
    a = curve.normal(tau)
    s, t = shares(tau)
    a /= t * (a @ duel.X @ a) + s * (a @ duel.Y @ a)
    return _certified(duel, a, tau, n_iter, basis=curve.basis)


def separable(duel: ScaledDuel, normal: FloatArray) -> Answer:
    """Plane across a direction in which neither class varies: halfway, kappa = inf."""
    normal = normal / (normal @ duel.d)
    return Answer(normal, math.inf, math.inf, 0.0, 0.0, 0.5, 1)


def at_logit(duel: ScaledDuel, curve: ParetoCurve, tau: float) -> Answer:
    """Plane at a point of the curve; the two classes need not be in balance.

    The gap is the residual d - M(s) a / (a'M(s) a) of the curve's condition, in the
    metric of the basis: how far the point may lie from the curve, in deviations.
    """
    a = curve.normal(tau)
    (wx, wy), radii = duel.balance.widths, duel.balance.radii
    kappas = curve.kappas(tau)
    robust = duel.balance.robust(*kappas)
    beta, eta = _root(a @ duel.X @ a), _root(a @ duel.Y @ a)
    resolution = math.sqrt(len(a) * EPS)
    if min(beta, eta) <= resolution * max(beta, eta):
        # One class is constant along a: the plane runs just past it.
        varying, spread = (0, wx * beta) if beta > eta else (1, wy * eta)
        if not spread > 0:
            return separable(duel, a)
        held = (1 - TIE_SHIFT) / spread - radii[varying]
        both = (held, math.inf) if beta > eta else (math.inf, held)
        gap = abs(robust[varying] - (1 / spread - radii[varying]))
        return Answer(a, held, 1 / spread, gap, tau, 1.0 - varying, 1, both)
    s, t = shares(tau)
    length = t * beta * beta + s * eta * eta
    residual = duel.d - (t * (duel.X @ a) + s * (duel.Y @ a)) / length
    return Answer(
        normal=a,
        kappa=min(robust),
        plain_kappa=1 / (wx * beta + wy * eta),
        gap=float(np.linalg.norm(curve.basis.T @ residual)) / min(wx, wy),
        tau=tau,
        distance_pos=kappas[0] * beta,
        n_iter=1,
        class_kappas=robust,
    )


def _certified(
    duel: ScaledDuel,
    a: FloatArray,
    tau: float,
    n_iter: int,
    factor: FloatArray | None = None,
    basis: FloatArray | None = None,
) -> Answer:
    """Bound the optimum from both sides at a ~ M(s)^-1 d, whatever produced it.

    With t = 1 - s, beta^2 = a'Sx a and eta^2 = a'Sy a the plane bounds it from below:

        kappa >= (a'd - nx wx beta - ny wy eta) / (wx beta + wy eta).

    Above, the ellipsoids meet at z = mx - t Sx a up to r = d - t Sx a - s Sy a, which
    is split over both:

        kappa <= max((t beta + |r|) / wx - nx, (s eta + |r|) / wy - ny),

    |r| in a metric not larger than that of Sx + Sy, by the Cholesky `factor` or the
    `basis`. Where rounding of a and r leaves a gap, a is refined.
    """
    (wx, wy), (nx, ny) = duel.balance.widths, duel.balance.radii
    s, t = shares(tau)

    def judged(
        plane: tuple[float, float], point: tuple[float, float], r: FloatArray
    ) -> Answer:
        (beta, eta), (along_x, along_y) = plane, point
        length, total = float(a @ duel.d), wx * beta + wy * eta
        kappa = (length - nx * wx * beta - ny * wy * eta) / total
        white = dtrtrs(factor, r, lower=1)[0] if basis is None else basis.T @ r
        rest = float(np.linalg.norm(white))
        upper = max((t * along_x + rest) / wx - nx, (s * along_y + rest) / wy - ny)
        return Answer(
            normal=a / length,
            kappa=kappa,
            plain_kappa=length / total,
            # A plane with kappa <= 0 promises nothing: only the positive part counts.
            gap=max(max(upper, 0.0) - max(kappa, 0.0), 0.0),
            tau=tau,
            distance_pos=(kappa + nx) * wx * beta / length,
            n_iter=n_iter,
        )

    Xa, Ya = duel.X @ a, duel.Y @ a
    plane = _root(Xa @ a), _root(Ya @ a)
    answer = judged(plane, plane, duel.d - t * Xa - s * Ya)
    if factor is None or answer.gap <= ACCEPTED_GAP * abs(answer.kappa):
        return answer
    # Extended precision, where the machine has it, tells what of r is rounding.
    Xa, Ya = (S @ a.astype(np.longdouble) for S in (duel.X, duel.Y))
    r = (duel.d - t * Xa - s * Ya).astype(np.float64)
    e = dpotrs(factor, r, lower=1)[0]
    Xe, Ye = duel.X @ e, duel.Y @ e
    plane = _root(Xa @ a), _root(Ya @ a)
    point = _root((Xa + Xe) @ a + (Xa + Xe) @ e), _root((Ya + Ye) @ a + (Ya + Ye) @ e)
    refined = judged(plane, point, r - t * Xe - s * Ye)
    return refined if refined.gap < answer.gap else answer


def _root(square: Any) -> float:
    return math.sqrt(max(float(square), 0.0))
