"""Routes to the balance of a duel, and the certificate that judges them all.

Why there are four, each with what its loss costs (medians of CPU time):

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
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs, dtrtrs

from prudent.core.types import FloatArray
from prudent.minimax.curve import (
    EPS,
    CurvePoint,
    ParetoCurve,
    ScaledDuel,
    balanced_logit,
    shares,
)

NEWTON_LIMIT, COMPILED_LIMIT = 128, 32
#: Relative gap at which an answer is accepted.
ACCEPTED_GAP = 1e-9
#: Share of a'd by which a plane leaves the point where a constant class sits.
TIE_SHIFT = 1e-9
#: Relative residual of a Krylov plane. Ill-conditioned problems need all of it: the
#: certificate measures the residual with the inverse of their covariances.
TOLERANCE = 1e-13
LANCZOS_STEPS = 10
#: Steps before the first test of convergence, which costs as much as two steps below
#: `FEW` features.
FIRST_TEST, FIRST_TEST_OF_FEW, FEW = 6, 8, 300
REFACTORINGS = 4
TINY_PIVOT = 100 * EPS
ROUNDING = 1e-8
#: A logit this far out is on its way to an end of the curve, the spectral route's.
END_LOGIT = 45.0


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
    """Newton steps on the curve, one Cholesky factor each; None if one fails."""
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
        return CurvePoint(s, t, float(Xa @ a), float(Ya @ a), float(Xa @ b))

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
    """One Cholesky factor and a short Lanczos recursion; refactor if it is slow."""
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
    balance is exact once the residual of a vanishes.
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
    """Solve on the diagonalised problem; takes singular covariances as they are."""
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
    """Plane at a point of the curve; the two classes need not be in balance."""
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

    The plane bounds it from below. Above, the ellipsoids meet at z = mx - t Sx a up to
    the residual r, whose norm the Cholesky `factor` or the `basis` takes in a metric
    not larger than Sx + Sy. Where rounding of a and r leaves a gap, a is refined.
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
