"""The curve (kx(s), ky(s)) of best trade-offs between two classes.

For 0 < s < 1 let M(s) = (1 - s) Sx + s Sy and a(s) = M(s)^-1 d with d = mx - my. No
plane keeps class x more than kx(s) = (1 - s) sqrt(a'Sx a) standard deviations away
while it keeps class y more than ky(s) = s sqrt(a'Sy a) away, and the plane with normal
a(s) does both. Every variant of the minimax probability machine is one point of this
curve. All functions take the logit tau = log(s / (1 - s)), so that s and 1 - s are both
known to full relative accuracy.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh, solve_triangular
from scipy.linalg.lapack import dpotrf
from scipy.optimize import brentq, minimize_scalar

from prudent.core.types import BoolArray, FloatArray
from prudent.core.validation import shown
from prudent.exceptions import DegenerateDataError

EPS = float(np.finfo(np.float64).eps)
MAX_LOGIT = 60.0
MAX_STEPS = 60
#: Relative gap at which an answer is accepted.
ACCEPTED_GAP = 1e-9
#: Share of a'd by which a plane leaves the point where a constant class sits.
TIE_SHIFT = 1e-9
#: A pivot below this, times the number of features, is rounding.
TINY_PIVOT = 100 * EPS
#: Negative eigenvalues of a covariance that may be rounding, as a share of the largest.
ROUNDING = 1e-8
#: A logit this far out is on its way to an end of the curve, the spectral route's.
END_LOGIT = 45.0


def shares(tau: float) -> tuple[float, float]:
    """Return s and 1 - s of a logit, each to full relative accuracy."""
    small = math.exp(-abs(tau))
    large, small = 1.0 / (1.0 + small), small / (1.0 + small)
    return (large, small) if tau >= 0 else (small, large)


#: Largest error of a class whose mean lies so many standard deviations from the plane.
WorstCaseError = Callable[[float], float]
#: P = a'Sx a, Q = a'Sy a and R = a'Sx M^-1 Sy a at a logit.
CurvePoint = tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class Balance:
    """The point sought: kx / wx - nx = ky / wy - ny.

    `widths` = (wx, wy) are the square roots of the covariance factors, `radii` =
    (nx, ny) the mean radii, each for the positive and the negative class.
    """

    widths: tuple[float, float] = (1.0, 1.0)
    radii: tuple[float, float] = (0.0, 0.0)

    def scaled(self, x: float, y: float) -> Balance:
        """Return the same condition when kx is measured x and ky y times larger."""
        return Balance((self.widths[0] * x, self.widths[1] * y), self.radii)

    @property
    def start(self) -> float:
        """A logit near it: exact for proportional covariances of average variance 1."""
        return math.log(self.widths[1] / self.widths[0])

    def robust(self, kx: float, ky: float) -> tuple[float, float]:
        """Standard deviations that are left to each class in its worst case."""
        (wx, wy), (nx, ny) = self.widths, self.radii
        return kx / wx - nx, ky / wy - ny

    def excess(self, kx: float, ky: float) -> float:
        """Advantage of class x over class y; falls along the curve."""
        robust_x, robust_y = self.robust(kx, ky)
        return robust_x - robust_y


def balanced_logit(
    evaluate: Callable[[float], CurvePoint], balance: Balance, start: float
) -> tuple[float, int]:
    """Solve the balance condition by safeguarded Newton steps; logit and steps.

    The steps are those in tau on log((kx/wx + ny) / (ky/wy + nx)) = 0. The logarithm is
    linear in tau for proportional covariances: one step is exact there, and half as
    many are needed elsewhere. `evaluate` was last called at the returned logit. The
    excess is certified by the caller; steps end when it is below 1e-11 or has stalled
    at rounding level.
    """
    low, high = -MAX_LOGIT, MAX_LOGIT
    tau = min(max(start, low), high)
    recent = [math.inf] * 3
    n_iter = 0
    (wx, wy), (nx, ny) = balance.widths, balance.radii
    while n_iter < MAX_STEPS:
        n_iter += 1
        s, t = shares(tau)
        P, Q, R = evaluate(tau)
        kx, ky = t * math.sqrt(P), s * math.sqrt(Q)
        excess = balance.excess(kx, ky)
        relative = abs(excess) / (kx / wx + ky / wy)
        stalled = relative <= 1e-10 and relative > 0.5 * recent[0]
        if not relative > 1e-11 or stalled or high - low < 1e-15 * abs(tau):
            break
        recent = [*recent[1:], relative]
        low, high = (tau, high) if excess > 0 else (low, tau)
        if P > 0 and Q > 0 and R > 0:
            # dkx/ds = -R / sqrt(P), dky/ds = R / sqrt(Q), ds/dtau = s t
            x, y = kx / wx + ny, ky / wy + nx
            slopes = 1 / (math.sqrt(P) * wx * x) + 1 / (math.sqrt(Q) * wy * y)
            tau += math.log(x / y) / (s * t * R * slopes)
        if not low < tau < high:  # nor has a step been taken
            tau = 0.5 * (low + high)
    return tau, n_iter


@dataclass(frozen=True, slots=True)
class ScaledDuel:
    """Two classes in units in which pivots and radii compare with 1.

    Features are divided by `scale`, the covariances Sx and Sy by the squares of
    `spread`, so that both have average variance 1.
    """

    d: FloatArray
    X: FloatArray
    Y: FloatArray
    balance: Balance
    scale: FloatArray
    spread: tuple[float, float]

    @classmethod
    def from_moments(
        cls, d: FloatArray, Sx: FloatArray, Sy: FloatArray, balance: Balance
    ) -> ScaledDuel:
        """Scale a duel given in the units of the features."""
        variances = np.diag(Sx), np.diag(Sy)
        total = variances[0] + variances[1]
        varies = total > 0
        scale = np.sqrt(np.where(varies, total, 1.0))
        # Features that vary in neither class keep their units, unless d'd overflows.
        size = float(np.abs(d[~varies]).max(initial=0.0))
        scale[~varies] = size if size > 0 and not 1e-100 < size < 1e100 else 1.0
        spread, scaled = [], []
        for S, variance in zip((Sx, Sy), variances, strict=True):
            average = float(np.mean(variance / scale / scale))
            deviation = math.sqrt(average) if average > 0 else 1.0
            factor = 1.0 / (scale * deviation)
            copy = S * factor
            copy *= factor[:, None]
            spread.append(deviation)
            scaled.append(copy)
        (X, Y), (x, y) = scaled, spread
        return cls(d / scale, X, Y, balance.scaled(x, y), scale, (x, y))


@dataclass(frozen=True, slots=True)
class ParetoCurve:
    """The whole curve in coordinates that make both covariances diagonal.

    `basis` (n, r) satisfies basis' Sx basis = diag(p) and basis' Sy basis =
    diag(q), q = 1 - p; `c` = basis' d. `null_normal` is a direction in which neither
    class varies but the means differ, or None.
    """

    p: FloatArray
    q: FloatArray
    c: FloatArray
    basis: FloatArray
    null_normal: FloatArray | None = None

    @classmethod
    def from_moments(cls, d: FloatArray, X: FloatArray, Y: FloatArray) -> ParetoCurve:
        """Diagonalise scaled covariances together, without common null directions.

        A whitening W of X + Y, W'(X + Y) W = I, by its Cholesky factor or, where that
        is singular, by its eigenvectors; then the eigenvectors of W'X W, with
        eigenvalues p in [0, 1]; those within rounding of 0 or 1 are set there.
        """
        n, B = len(d), X + Y
        null_normal = None
        L, info = dpotrf(B, lower=1)
        if info == 0 and (np.diag(L) ** 2 >= 100 * n * EPS * np.diag(B)).all():
            whiten = solve_triangular(L, np.eye(n), lower=True, check_finite=False).T
        else:
            values, vectors = eigh(B, driver="evd", check_finite=False)
            kept = values > n * EPS * max(values[-1], 0.0)
            null = vectors[:, ~kept]
            # Rounding alone leaves a null part of order eps in d.
            null_part = null.T @ d
            if null_part @ null_part > n * EPS * (d @ d):
                null_normal = null @ null_part
            whiten = vectors[:, kept] / np.sqrt(values[kept])
        if not whiten.shape[1]:
            nothing = np.empty(0)
            return cls(nothing, nothing, nothing, whiten, null_normal)
        p, V = eigh(whiten.T @ X @ whiten, driver="evd", check_finite=False)
        p[p < 50 * n * EPS] = 0.0
        p[p > 1 - 50 * n * EPS] = 1.0
        basis = whiten @ V
        return cls(p, 1.0 - p, basis.T @ d, basis, null_normal)

    def point(self, tau: float) -> CurvePoint:
        """P, Q and R at a finite logit, in O(n).

        With m = (1 - s) p + s q they are the sums of p c^2 / m^2, q c^2 / m^2 and
        p q c^2 / m^3.
        """
        s, t = shares(tau)
        m = t * self.p + s * self.q
        weight = (self.c / m) ** 2
        P, Q = float(self.p @ weight), float(self.q @ weight)
        return P, Q, float((self.p * self.q / m) @ weight)

    def kappas(self, tau: float) -> tuple[float, float]:
        """Return kx and ky in standard deviations; `tau` may be infinite.

        At the end s = 1 they are the roots of the sums of c^2 / p over q = 0 and of
        c^2 / q over q > 0, at s = 0 with p and q exchanged.
        """
        if not math.isinf(tau):
            s, t = shares(tau)
            P, Q, _ = self.point(tau)
            return t * math.sqrt(P), s * math.sqrt(Q)
        fixed, other = (self.q, self.p) if tau > 0 else (self.p, self.q)
        at_end = fixed == 0
        held = math.sqrt(float(np.sum(self.c[at_end] ** 2 / other[at_end])))
        free = math.sqrt(float(np.sum(self.c[~at_end] ** 2 / fixed[~at_end])))
        return (held, free) if tau > 0 else (free, held)

    def achieved(self, tau: float) -> tuple[float, float]:
        """As `kappas`, but infinite for a class that is constant along the normal.

        The plane runs just past such a class, which it then never gets wrong.
        """
        kx, ky = self.kappas(tau)
        if not math.isinf(tau):
            return (kx or math.inf), (ky or math.inf)
        if self._separates((self.q if tau > 0 else self.p) == 0):
            return (kx, math.inf) if tau > 0 else (math.inf, ky)
        return kx, ky

    def _separates(self, chosen: BoolArray) -> bool:
        """Whether the means differ, beyond rounding, along the chosen coordinates."""
        across = float(np.linalg.norm(self.c[chosen]))
        return across > math.sqrt(len(self.c) * EPS) * float(np.linalg.norm(self.c))

    def normal(self, tau: float) -> FloatArray:
        """Normal of the plane at a logit, scaled to a'd = 1.

        At an end where one class does not vary in some direction that separates the
        means, the plane lies across that direction.
        """
        if not math.isinf(tau):
            s, t = shares(tau)
            coefficients = self.c / (t * self.p + s * self.q)
        else:
            fixed, other = (self.q, self.p) if tau > 0 else (self.p, self.q)
            chosen, divisor = fixed == 0, other
            if not self._separates(chosen):  # the limit is Sy^-1 d (or Sx^-1 d)
                chosen, divisor = ~chosen, fixed
            coefficients = np.divide(
                self.c, divisor, where=chosen, out=np.zeros_like(self.c)
            )
        return self.basis @ coefficients / (coefficients @ self.c)

    def balanced(self, balance: Balance) -> tuple[float, int]:
        """Logit where the balance condition holds, infinite at an end, and steps.

        At an end if the class that gains towards it stays behind all along the curve.
        """
        at_start = balance.excess(*self.kappas(-math.inf)) <= 0
        at_end = balance.excess(*self.kappas(math.inf)) >= 0
        if at_start and at_end:
            return 0.0, 1  # the optimum is not unique
        if at_start or at_end:
            return (-math.inf if at_start else math.inf), 1
        return balanced_logit(self.point, balance, balance.start)

    def cheapest(
        self, balance: Balance, costs: tuple[float, float], error: WorstCaseError
    ) -> float:
        """Logit that minimises max(cx error(kx), cy error(ky)).

        Along the curve the first rises and the second falls: where they meet, or at the
        end where one stays the larger.
        """

        def advantage(tau: float) -> float:
            x, y = balance.robust(*self.kappas(tau))
            return math.log(costs[0] / costs[1] * (error(x) / error(y)))

        if advantage(-math.inf) >= 0 or advantage(-MAX_LOGIT) >= 0:
            return -math.inf
        if advantage(math.inf) <= 0 or advantage(MAX_LOGIT) <= 0:
            return math.inf
        return float(brentq(advantage, -MAX_LOGIT, MAX_LOGIT, xtol=1e-14, rtol=1e-14))

    def best_mean(self, balance: Balance, prior: float, error: WorstCaseError) -> float:
        """Logit that minimises prior error(kx) + (1 - prior) error(ky).

        The value may have up to five stationary points for 1 / (1 + kappa^2), so a grid
        brackets them all and each bracket is refined.
        """

        def loss(tau: float) -> float:
            x, y = balance.robust(*self.achieved(tau))
            return prior * error(x) + (1 - prior) * error(y)

        grid = np.linspace(-MAX_LOGIT / 2, MAX_LOGIT / 2, 513)
        values = np.array([loss(tau) for tau in grid])
        candidates = [-math.inf, math.inf, *grid[[0, -1]]]
        inner = values[1:-1]
        lowest = np.flatnonzero((inner <= values[:-2]) & (inner <= values[2:])) + 1
        for i in lowest:
            bounds, options = (grid[i - 1], grid[i + 1]), {"xatol": 1e-10}
            refined = minimize_scalar(
                loss, bounds=bounds, method="bounded", options=options
            )
            candidates.append(float(refined.x))
        return min(candidates, key=loss)


@dataclass(frozen=True, slots=True, eq=False)
class ParetoFrontier:
    """Best trade-offs between two classes; columns: negative, positive class.

    Attributes
    ----------
    s : ndarray of shape (n_points,)
        Parameter of the curve, from 0 to 1: weight of the negative class.
    kappas : ndarray of shape (n_points, 2)
        Standard deviations between the plane and the class means.
    errors : ndarray of shape (n_points, 2)
        Worst-case errors 1 / (1 + kappa^2).
    """

    s: FloatArray
    kappas: FloatArray
    errors: FloatArray


def pareto_frontier(
    d: FloatArray, Sx: FloatArray, Sy: FloatArray, n_points: int
) -> ParetoFrontier:
    """Trade-offs of two classes at `n_points` values of s, evenly spaced in [0, 1].

    d (n,) is the mean of the positive class less that of the negative one; Sx (n, n)
    is the covariance of the positive class, Sy that of the negative one.
    """
    if n_points < 2:
        raise ValueError(f"`n_points` must be >= 2, got {shown(n_points)}.")
    duel = ScaledDuel.from_moments(d, Sx, Sy, Balance())
    curve = ParetoCurve.from_moments(duel.d, duel.X, duel.Y)
    if curve.null_normal is not None:
        raise DegenerateDataError(
            "there is no trade-off: neither class varies in a direction that separates "
            "their means. Set `covariance_radius` > 0 or shrink the `covariance`."
        )
    s = np.linspace(0.0, 1.0, n_points)
    with np.errstate(divide="ignore"):
        taus = np.log(s) - np.log1p(-s)
    # The curve's own parameter belongs to covariances of average variance 1.
    taus += 2 * math.log(duel.spread[1] / duel.spread[0])
    kappas = np.array([curve.kappas(tau)[::-1] for tau in taus])
    kappas /= duel.spread[::-1]
    return ParetoFrontier(s, kappas, 1 / (1 + kappas**2))
