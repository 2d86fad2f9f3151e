"""What a plane does to a class of known moments, rounding of the plane included.

A plane is certified as it predicts: a row z goes to a side by the sign of the floating
point value of a'z - b. That value errs by at most u (|a|'|z| + |b|), and the moments
are known to within rounding themselves, so the certificate bounds

    P{ s (a'z - b) <= u (|a|'|z| + |b|) }

over all laws whose mean and covariance are those given up to rounding. With w = a'S a,
t = s (a'm - b) less the rounding at the mean and W = |a|'|z - m|, whose root mean
square is at most omega = |a|'sigma, Chebyshev's inequality for
(s a'(m - z) + u W + w / t)^2 gives

    P <= (1 + u omega k / sqrt(w (1 + k^2)))^2 / (1 + k^2),    k = t / sqrt(w),

which is Cantelli's bound where nothing rounds (u = 0). The bound of a class that is
unimodal along the normal is smaller, down to 4/9 of it; the user guide proves it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy import sparse
from scipy.special import ndtr

from prudent.core.types import FloatArray

DOUBLE = np.finfo(np.float64)
#: Laws that a bound covers: all, or those that are unimodal along the normal.
Laws = Literal["any", "unimodal"]
#: Entry (i, j) of a covariance, and the mean of feature i, are trusted to this share of
#: sigma_i sigma_j and of sigma_i: the accuracy of accumulated moments.
MOMENT_ROUNDING = 1e-13
#: Relative rounding of an offset, in units of the arithmetic that predicts.
OFFSET_ROUNDINGS = 4
#: Rows further out than this many of their mean deviations count as errors.
NORMAL_REACH = 37.0
SMALLEST_EIGENVALUE = 1e-12
#: Share of a limit that is set aside for rounding of the scores.
SHARE = 1e-7
#: Relative push beyond the plane, so that a tie does not count as right.
PUSH = 1e-9


def varies_along(normal: FloatArray, covariance: FloatArray, size: FloatArray) -> bool:
    """Whether a class varies along a normal (n,) by more than rounding leaves there.

    `size` (n,) is the magnitude of what the normal is a sum of.
    """
    trusted = float(size @ np.sqrt(np.diagonal(covariance)))
    return float(normal @ covariance @ normal) > MOMENT_ROUNDING * trusted**2


@dataclass(frozen=True, slots=True)
class ClassMargin:
    """A class seen along the normal of a plane, in the worst case of its moments.

    `center` is a'm, `deviation` the largest standard deviation of a'z (0 only where no
    feature of the plane varies), `radius` = nu, `doubt` the largest rounding of a'z at
    the mean, `reach` = |a|'sigma, which bounds the root mean square of |a|'|z - m|,
    `blur` the root mean square of what rounding adds beyond the mean, in deviations,
    `rounding` the relative rounding of an offset, and `overflow` bounds the probability
    of a row whose decision value is no number.
    """

    center: float
    deviation: float
    radius: float
    doubt: float
    reach: float
    blur: float
    rounding: float = OFFSET_ROUNDINGS * float(DOUBLE.eps)
    overflow: float = 0.0

    @classmethod
    def along(
        cls,
        normal: FloatArray,
        mean: FloatArray,
        mean_lo: FloatArray,
        covariance: FloatArray,
        radius: float = 0.0,
        factor: float = 1.0,
        *,
        size: FloatArray | None = None,
        arithmetic: np.finfo[Any] = DOUBLE,
    ) -> ClassMargin:
        """View a class, its mean as a pair, along a normal.

        `normal`, `mean` and `mean_lo` (what the mean loses to rounding) have shape
        (n,). `covariance` (n, n) includes every additive radius, `radius` is nu >= 0
        and `factor` gamma >= 1. `size` (n,) is the magnitude of what is multiplied by
        the rows, where the normal is a sum of it, and `arithmetic` describes the
        floating-point numbers in which decision values are predicted.
        """
        width = math.sqrt(factor)
        if size is None:
            size = np.abs(normal)
        sigma = np.sqrt(np.diagonal(covariance))
        reach = width * float(size @ sigma)
        trusted = width * float(np.abs(normal) @ sigma)
        variance = max(factor * float(normal @ covariance @ normal), 0.0)
        deviation = math.sqrt(variance + MOMENT_ROUNDING * trusted * trusted)
        # Of a decision value, of this evaluation, and of the mean's last digits.
        n_roundings = 2 * len(normal) + 16
        unit = n_roundings * float(arithmetic.eps)
        at_mean = float(size @ np.abs(mean)) + radius * reach
        return cls(
            center=math.fsum(normal * mean) + float(normal @ mean_lo),
            deviation=deviation,
            radius=radius,
            doubt=unit * at_mean
            + MOMENT_ROUNDING * trusted
            + n_roundings * float(arithmetic.tiny),
            reach=reach,
            blur=unit * reach / deviation if deviation > 0 else 0.0,
            rounding=OFFSET_ROUNDINGS * float(arithmetic.eps),
            # Markov's inequality for the square of |a|'|z|, whose root mean square is
            # at most |a|'|m| + |a|'sigma.
            overflow=min(1.0, ((at_mean + reach) / float(arithmetic.max)) ** 2),
        )

    def kappa(self, offset: float, side: float, shift: float = 0.0) -> float:
        """Standard deviations between the class and a'z = offset, at least.

        `side` is 1 for a class that is predicted for a'z >= offset, else -1; `shift`
        is the magnitude of what the offset is the difference of, if it is one.
        """
        rounding = self.doubt + self.rounding * max(abs(offset), shift)
        ahead = side * (self.center - offset) - rounding
        if self.deviation > 0:
            return ahead / self.deviation - self.radius
        return math.inf if ahead > 0 else -math.inf

    def error(
        self, offset: float, side: float, shift: float = 0.0, laws: Laws = "any"
    ) -> float:
        """Largest probability of a row that is not predicted on its side.

        A row of a class that is unimodal along the normal is lost if it lies beyond a
        plane that is eta deviations nearer, or if rounding adds more than that, which
        has probability (blur / eta)^2 at most by Chebyshev's inequality.
        """
        kappa = self.kappa(offset, side, shift)
        bound = chebyshev(kappa, self.blur)
        if laws == "unimodal":
            eta = self.blur ** (2 / 3)
            bound = min(bound, vysochanskij_petunin(kappa - eta) + eta)
        return min(1.0, bound + self.overflow)

    def normal_error(self, offset: float, side: float) -> float:
        """Largest probability of a row not on its side, if the class is normal.

        With t = s (a'm - b) >= 0 of the mean used and w the largest variance of a'z, a
        normal class whose mean is nu away at most, in its own metric, and whose
        variance is v <= w, lies beyond the plane with probability Phi(nu - t / sqrt(v))
        <= Phi(nu - t / sqrt(w)). What rounding adds is at most u W, where W/omega is a
        convex combination of absolute standard normals: P(W > x omega) <= 2 exp(-x^2/2)
        by Jensen's inequality for exp.
        """
        kappa = self.kappa(offset, side) - NORMAL_REACH * self.blur
        if not kappa + self.radius >= 0:
            return 1.0
        tail = float(ndtr(-kappa)) * (1 + 1e-12) + 2 * math.exp(-(NORMAL_REACH**2) / 2)
        return min(1.0, tail + self.overflow)

    def offset_for(self, rate: float) -> float:
        """Largest offset b such that at most `rate` of the class has a'z < b."""
        kappa = math.sqrt(max((1 + self.blur) ** 2 / rate - 1, 0.0))
        offset = self.center - self.doubt - self.deviation * (kappa + self.radius)
        return offset - self.rounding * abs(offset)

    def distances(self, scores: FloatArray, side: float) -> FloatArray:
        """Standard deviations, >= 0, of scores a'z beyond the mean, against `side`."""
        beyond = side * (self.center - scores) - self.doubt
        if self.deviation > 0:
            beyond = beyond / self.deviation - self.radius
        else:
            beyond = np.where(beyond > 0, np.inf, 0.0)
        return np.maximum(beyond, 0.0)


def chebyshev(kappa: float, blur: float = 0.0) -> float:
    """Largest probability beyond a plane `kappa` standard deviations away.

    It is 1 / (1 + kappa^2), Cantelli's one-sided form of Chebyshev's inequality.
    `blur` is the root mean square of what rounding adds, in standard deviations.
    """
    if not kappa > 0:
        return 1.0
    if math.isinf(kappa):
        return 0.0
    widened = 1 + blur * kappa / math.hypot(1.0, kappa)
    return min(1.0, (widened / math.hypot(1.0, kappa)) ** 2)


def vysochanskij_petunin(kappa: float) -> float:
    """Largest probability of a unimodal law `kappa` deviations above its mean.

    With c = 1 / (1 + kappa^2), the bound for all laws, it is the larger of 4 c / 9 and
    (4 c - 1) / 3: the first from kappa^2 = 5/3 on. Attained. Mercadier and Strobel
    (2021), A one-sided Vysochanskii-Petunin inequality with financial applications,
    European Journal of Operational Research 295, 374-377.
    """
    c = chebyshev(kappa)
    return max(4 * c / 9, (4 * c - 1) / 3)


def worst_error(laws: Laws) -> Callable[[float], float]:
    """The largest probability of any of these laws, as a function of kappa."""
    return chebyshev if laws == "any" else vysochanskij_petunin


def certified_radius(
    root: FloatArray,
    covariance: FloatArray,
    rate: float,
    radius: float = 0.0,
    factor: float = 1.0,
) -> float:
    """Length of root (z - m) that at most `rate` of a class exceeds, as computed.

    Markov's inequality for the squared length, whose mean is trace(root S root') up to
    rounding of moments and lengths: sqrt(n / rate) for an exact root of S^-1. The
    covariance includes every additive radius; `radius` is nu and `factor` gamma.
    """
    reach = np.abs(root) @ np.sqrt(np.diagonal(covariance))
    whitened = root @ covariance @ root.T
    unit = (2 * len(root) + 16) * float(DOUBLE.eps)
    doubt = MOMENT_ROUNDING * float(reach @ reach)
    spread = math.sqrt(float(np.trace(whitened)) + doubt)
    spread += unit * float(np.linalg.norm(reach))
    length = spread / math.sqrt(rate)
    if radius:
        length += radius * math.sqrt(float(np.linalg.eigvalsh(whitened)[-1]) + doubt)
    return math.sqrt(factor) * length * (1 + unit)


# --- losing any of several duels: the generalised Chebyshev program -------------------
#
# Among all laws with mean 0 and covariance R, the largest probability of leaving
# {x : x_i < d_i for all i} is the least value of E f over quadratics f(x) = x'Px + 2q'x
# + r that are >= 0 everywhere and >= 1 where some x_i >= d_i. Only the scores of a
# class in its own duels matter, so x has K - 1 coordinates.


def certified_exit_probability(
    normals: FloatArray,
    covariance: FloatArray,
    limits: FloatArray,
    *,
    reach: FloatArray,
    blur: FloatArray,
) -> float:
    """Largest probability that some score, as computed, reaches its limit.

    Scores are those of rows less their mean along normals (m, n) of unit deviation,
    limits are in standard deviations; 1 unless all are > 0. `covariance` (n, n)
    includes every radius; `reach` and `blur` as in `ClassMargin`, in deviations.
    """
    if limits.min() <= 0:
        return 1.0
    R = normals @ covariance @ normals.T
    R += np.diag(len(limits) * MOMENT_ROUNDING * reach**2)
    # Rounding beyond SHARE of a limit is a matter of its own.
    rounded = float(np.sum((blur / (SHARE * limits)) ** 2))
    return largest_exit_probability(R, (1 - SHARE) * limits) + rounded


def largest_exit_probability(R: FloatArray, limits: FloatArray) -> float:
    """Largest probability that some x_i >= limits[i], for mean 0 and covariance R.

    R (m, m) has a unit diagonal, the limits (m,) are > 0. A valid upper bound: what the
    solver's quadratic lacks in feasibility is added to its value. ImportError without
    clarabel. Vandenberghe, Boyd and Comanor (2007), Generalized Chebyshev bounds via
    semidefinite programming, SIAM Review 49, 52-64.
    """
    # x = F u with u of covariance I: a singular R would leave the quadratic unbounded.
    values, vectors = np.linalg.eigh(R)
    F = vectors * np.sqrt(np.maximum(values, SMALLEST_EIGENVALUE * values[-1]))
    m, rank = F.shape
    size = rank + 1
    above = np.tril_indices(size)  # of the transpose: the upper triangle by columns
    root = np.where(above[0] == above[1], 1.0, np.sqrt(2.0))

    def packed(matrix: FloatArray) -> FloatArray:
        return matrix[above] * root

    corner = np.zeros((size, size))
    corner[rank, rank] = 1.0
    multipliers = []
    for row, limit in zip(F, limits, strict=True):
        B = -limit * corner
        B[rank, :rank] = B[:rank, rank] = 0.5 * row
        multipliers.append(B)

    n_packed = len(root)
    minus_Z = -sparse.eye_array(n_packed)
    blocks: list[list[Any]] = [[minus_Z, sparse.csc_array((n_packed, m))]]
    right = [np.zeros(n_packed)]
    for i, B in enumerate(multipliers):
        column = sparse.csc_array(
            (packed(B), (np.arange(n_packed), np.full(n_packed, i))), (n_packed, m)
        )
        blocks.append([minus_Z, column])
        right.append(-packed(corner))
    blocks.append([sparse.csc_array((m, n_packed)), -sparse.eye_array(m)])
    right.append(np.zeros(m))
    solution = _solve_cone(
        np.concatenate([packed(np.eye(size)), np.zeros(m)]),
        sparse.block_array(blocks, format="csc"),
        np.concatenate(right),
        [size] * (m + 1),
        m,
    )
    Z = np.zeros((size, size))
    Z[above] = solution[:n_packed] / root
    Z = Z + Z.T - np.diag(np.diag(Z))
    taus = np.maximum(solution[n_packed:], 0.0)
    required = [
        Z,
        *(Z - corner - t * B for t, B in zip(taus, multipliers, strict=True)),
    ]
    lacking = max(0.0, -min(float(np.linalg.eigvalsh(M)[0]) for M in required))
    value = float(np.trace(Z)) + lacking * size
    return min(max(value, 0.0), 1.0)


def _solve_cone(
    objective: FloatArray,
    A: Any,
    b: FloatArray,
    semidefinite: list[int],
    nonnegative: int,
) -> FloatArray:
    """Minimise objective'x with b - A x in semidefinite cones, then x >= 0."""
    try:
        import clarabel
    except ImportError as error:
        raise ImportError(
            "bound='exact' needs clarabel; install it with: "
            "pip install 'prudent[solvers]'"
        ) from error
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    cones = [clarabel.PSDTriangleConeT(n) for n in semidefinite]
    cones.append(clarabel.NonnegativeConeT(nonnegative))
    nothing = sparse.csc_matrix((len(objective), len(objective)))
    solver = clarabel.DefaultSolver(
        nothing, objective, sparse.csc_matrix(A), b, cones, settings
    )
    return np.asarray(solver.solve().x)


# --- laws that attain a bound ---------------------------------------------------------


def least_favourable_rows(
    normal: FloatArray,
    offset: float,
    mean: FloatArray,
    covariance: FloatArray,
    n_samples: int,
    random: np.random.RandomState,
    *,
    positive: bool,
    laws: Laws = "any",
) -> FloatArray:
    """Draw rows with exactly these moments that err as often as any of these laws.

    k is the number of standard deviations from the mean to the plane a'z = b. With
    v = S a / sqrt(a'S a), a row is mean + v t + g: g is normal with covariance
    S - v v' and lies along the plane, t has mean 0 and variance 1. Among all laws t has
    two values, one just beyond the plane with probability 1 / (1 + k^2). Among
    unimodal ones it is a value, the mode, or uniform from there to L on: the mode lies
    1 / k on the own side, or just beyond the plane where k^2 < 5/3, and L is
    3 (1 + k^2) / (2 k) towards the other side. `positive` is the class with a'z >= b;
    it must vary along the normal, and its mean lie strictly on its side. Elsewhere
    there is nothing to draw: the bound is 1 if the mean does not lie there, else, of a
    class that does not vary along the normal, 0.
    Marshall and Olkin (1960), Annals of Mathematical Statistics 31.
    """
    deviation = math.sqrt(max(float(normal @ covariance @ normal), 0.0))
    ahead = (float(normal @ mean) - offset) * (1 if positive else -1)
    if not varies_along(normal, covariance, np.abs(normal)) or not ahead > 0:
        raise ValueError(
            "no rows are drawn where the bound is 0 or 1: the class must vary along "
            "the normal and have its mean on its own side, got deviation "
            f"{deviation:.3g} and distance {ahead:.3g}."
        )
    kappa = ahead / deviation
    v = covariance @ normal / deviation
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    g = random.standard_normal((n_samples, len(mean))) @ root.T
    g -= np.outer(g @ normal / deviation, v)
    g -= np.outer(g @ normal / (normal @ normal), normal)
    rounding = 64 * float(DOUBLE.eps) * float(np.abs(normal) @ np.abs(mean)) / deviation
    outward = -kappa * (1 + PUSH) - rounding
    drawn = random.uniform(size=n_samples)
    if laws == "any":
        t = np.where(drawn < 1 / (1 + kappa * kappa), outward, 1 / kappa)
    else:
        length = 3 * (1 + kappa * kappa) / (2 * kappa)
        is_far = 3 * kappa * kappa >= 5
        mode, end = (1 / kappa, -length) if is_far else (outward, length)
        spread = 2 * abs(mode) / length  # share of the uniform part
        t = mode + end * np.minimum(drawn / spread, 1.0) * (drawn < spread)
    return mean + np.outer(t if positive else -t, v) + g


def worst_moments(
    inward: FloatArray,
    mean: FloatArray,
    covariance: FloatArray,
    mean_radius: float,
    covariance_radius: float,
    covariance_factor: float,
) -> tuple[FloatArray, FloatArray]:
    """Moments within the radii that lie nearest to a plane, relative to their spread.

    `inward` is the normal of the plane, pointing from the plane to the class. The
    covariance radius is spent on a a'/|a|^2, the mean radius along S a.
    """
    S = covariance_factor * (
        covariance + covariance_radius * np.outer(inward, inward) / (inward @ inward)
    )
    deviation = math.sqrt(max(float(inward @ S @ inward), 0.0))
    if deviation > 0:
        mean = mean - mean_radius / deviation * (S @ inward)
    return mean, S
