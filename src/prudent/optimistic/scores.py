"""Optimistic and pessimistic scores of rows under uncertain class moments.

Every score depends on a row only through its squared distance M to the class centre:
it is a closed form at the root x of one increasing function D(x) = rho. First come the
scalar equations, then their solution for many rows, the scores of balls that move both
moments, and those of balls that move the covariance alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq, elementwise

from prudent.core.logarithm import LOG2_HIGH, LOG2_LOW, split_log
from prudent.core.types import FloatArray

Likelihood = Literal["gaussian", "nonparametric"]
#: What a ball moves: the mean and the covariance of a class, or its covariance alone.
Ball = Literal["moments", "covariance"]
End = Literal["lower", "upper"]
# Beyond these the squares of the iteration leave the range of float64.
LARGEST_DISTANCE, LARGEST_RADIUS = 1e100, 1e50
# A ball this small moves no score by one rounding error.
SMALLEST_RADIUS = 1e-100
# The pessimistic equations divide by M; below this their value at 0 is reached.
SMALLEST_DISTANCE = 1e-60
# Scores from which the compiled kernel is used; loading it takes about a second once.
COMPILED_FROM = 2**16
ARRAY_BLOCK = 2048
# A fourth-order step below TOLERANCE leaves no error above rounding.
TOLERANCE, MAX_SWEEPS = 1e-4, 30

# --- the scalar equations -------------------------------------------------------------
#
# Each `Equation` holds a start for x, one fourth-order Householder update (a factor of
# x) and the score at the root. All are plain arithmetic, so that the same text serves
# NumPy arrays and, in `prudent.optimistic.kernels`, vectorised machine code. Logarithms
# appear only in A and B below: no term cancels, however small the radius.


class Equation(NamedTuple):
    """Root finding problem of one score.

    `start(M, d, rho, a, b)`, `update(M, x, d, rho)` and `value(M, x, d, rho)`, with
    squared distance M, root x, number of features d, radius rho and two constants
    a, b of (d, rho) that fit the start to its limits in M.
    """

    start: Callable[..., Any]
    update: Callable[..., Any]
    value: Callable[..., Any]


def log1p_excess(z: Any, inverse: Any) -> Any:
    """A(z) = z - log(1 + z) for z >= 0, to full relative accuracy.

    `inverse` is 1/(1 + z), which the callers have: divisions are what a sweep costs.
    """
    u = 1.0 + z
    k, f, tail = split_log(u)
    lost = z - (u - 1.0)  # what rounding took from 1 + z
    return (
        ((u - 1.0) - f - k * LOG2_HIGH)
        + tail
        + (lost * ((z - 0.5 * lost) * inverse) - k * LOG2_LOW)
    )


def log1p_remainder(z: Any, inverse: Any) -> Any:
    """B(z) = log(1 + z) - z/(1 + z) for z >= 0, to full relative accuracy."""
    u = 1.0 + z
    k, f, tail = split_log(u)
    lost = z - (u - 1.0)
    return (
        k * LOG2_HIGH
        + (((f - (u - 1.0)) + f * (u - 1.0)) * inverse - tail)
        + (lost * ((z - 0.5 * lost) * inverse) * inverse + k * LOG2_LOW)
    )


def _householder_step(newton: Any, a: Any, b: Any) -> Any:
    """Fourth-order step for newton = f/f', a = f''/(2 f'), b = f'''/(6 f')."""
    bend = (1.0 - a * newton) / (1.0 - newton * (2.0 * a - b * newton))
    # Far from the root the bend may lose its sign; Newton's direction is right.
    return newton * np.minimum(np.maximum(bend, 0.25), 4.0)


def _factor(newton: Any, a: Any, b: Any) -> Any:
    """Factor of x by the same step with all derivatives relative to x."""
    return np.maximum(1.0 - _householder_step(newton, a, b), 0.05)


# Optimistic Gaussian (Theorem 4.1): x = t = 1/gamma and, with w = M t/(1+t),
# D(t) = d A(t) + B(w).


def gaussian_upper_start(M: Any, d: Any, rho: Any, a: Any, b: Any) -> Any:
    """Limits: gamma = a at M = 0 and b M at infinity."""
    return 1.0 / np.sqrt(a * a + (b * M) * (b * M))


def gaussian_upper_update(M: Any, t: Any, d: Any, rho: Any) -> Any:
    """Factor of t towards D(t) = d A(t) + B(M t / (1 + t)) = rho."""
    i = 1.0 / (1.0 + t)
    w = M * t * i
    c = 1.0 / (1.0 + w)
    r = M * i * c
    excess = d * log1p_excess(t, i) + log1p_remainder(w, c) - rho
    slope = 1.0 / (d + r * r)
    p = 1.0 - i * c
    h = p * (r * r * slope)
    a = 0.5 * i - h
    b = p * h - i * (2.0 * h + t * i) * (1.0 / 3.0)
    return _factor(excess * (1.0 + t) / t * slope / t, a, b)


def gaussian_upper_value(M: Any, t: Any, d: Any, rho: Any) -> Any:
    """L_up + log det S = d t - rho - M (1 + t) / (1 + t + M t)."""
    return d * t - rho - M * ((1.0 + t) / (1.0 + t + M * t))


# Pessimistic Gaussian, the other root of the same equation: t = -1/(1+k) with the
# multiplier k > M; x = e = k - M and D(e) = d B(1/k) + A(M/e).


def gaussian_lower_start(M: Any, d: Any, rho: Any, a: Any, b: Any) -> Any:
    """Limits: k = a at M = 0 and e = b M at infinity."""
    low = np.maximum(a - M, 0.0)
    return np.sqrt(low * low + (b * M) * (b * M))


def gaussian_lower_update(M: Any, e: Any, d: Any, rho: Any) -> Any:
    """Factor of e towards D(e) = d B(1 / k) + A(M / e) = rho, k = M + e."""
    k = M + e
    p = 1.0 / (1.0 + k)
    both = 1.0 / (k * e)
    v = M * k * both
    share = e * e * both
    rest = e * p
    dp = d * p * p
    v2 = v * v
    excess = d * log1p_remainder(e * both, k * p) + log1p_excess(v, e * e * both) - rho
    slope = 1.0 / (dp + v2)
    s1 = -2.0 * (dp * rest + v2) * slope
    s2 = -2.0 * (dp * rest * (1.0 - 3.0 * rest) - 2.0 * v2) * slope
    q = 1.0 - share
    a = 0.5 * (q + s1)
    b = (q * (1.0 - 2.0 * share + 2.0 * s1) + s2) * (1.0 / 6.0)
    newton = -excess * slope * (k * k * both)
    step = np.minimum(np.maximum(_householder_step(newton, a, b), -2.0), 2.0)
    # The unknown is log e: exp(-step) by its (2, 2) Pade form keeps the order.
    even = 1.0 + step * step * (1.0 / 12.0)
    return (even - 0.5 * step) / (even + 0.5 * step)


def gaussian_lower_value(M: Any, e: Any, d: Any, rho: Any) -> Any:
    """L_low + log det S = -(rho + k M / e + d / (k + 1)), k = M + e."""
    k = M + e
    return -(rho + k * (M / e) + d / (k + 1.0))


# Optimistic nonparametric (Theorem 3.1), for rows beyond the reach of the ball,
# M > expm1(rho): x = s in (0, M), gamma = M/s - 1, D(s) = B(s) + s^2/(M (1+s)).


def nonparametric_start(M: Any, d: Any, rho: Any, a: Any, b: Any) -> Any:
    """Values: s = 1/sqrt(a + b) at M = 1 and 1/sqrt(a) at infinity."""
    return 1.0 / np.sqrt(a + b / M)


def nonparametric_upper_update(M: Any, s: Any, d: Any, rho: Any) -> Any:
    """Factor of s towards D(s) = B(s) + s^2 / (M (1 + s)) = rho."""
    inverse = 1.0 / M
    i = 1.0 / (1.0 + s)
    m = 1.0 + inverse
    excess = log1p_remainder(s, i) + s * inverse * (s * i) - rho
    slope = 1.0 / (1.0 + (s + 2.0) * inverse)
    a = (m * i - 0.5) * slope
    b = s * i * (1.0 - 3.0 * m * i) * (slope * (1.0 / 3.0))
    w = (1.0 + s) / s
    return _factor(excess * w * w * slope, a, b)


def nonparametric_upper_value(M: Any, s: Any, d: Any, rho: Any) -> Any:
    """q_up = (M - s)^2 / (M (1 + s))."""
    return (M - s) / M * ((M - s) / (1.0 + s))


# Pessimistic nonparametric, the other root: k = M (1+v)/v, x = v and
# D(v) = A(v) + v^2/(M (1+v)). Its start has the form of the optimistic one.


def nonparametric_lower_update(M: Any, v: Any, d: Any, rho: Any) -> Any:
    """Factor of v towards D(v) = A(v) + v^2 / (M (1 + v)) = rho."""
    inverse = 1.0 / M
    i = 1.0 / (1.0 + v)
    excess = log1p_excess(v, i) + v * inverse * (v * i) - rho
    slope = 1.0 / (1.0 + v + (v + 2.0) * inverse)
    a = (0.5 + inverse * i) * slope
    b = -v * i * (1.0 + 3.0 * inverse * i) * (slope * (1.0 / 3.0))
    w = (1.0 + v) / v
    return _factor(excess * w * w * slope, a, b)


def nonparametric_lower_value(M: Any, v: Any, d: Any, rho: Any) -> Any:
    """q_low = M (1 + v) + 2 v + v^2 / (M (1 + v))."""
    move = v / (1.0 + v)
    return M * (1.0 + v) + 2.0 * v + move * v / M


GAUSSIAN_UPPER = Equation(
    gaussian_upper_start, gaussian_upper_update, gaussian_upper_value
)
GAUSSIAN_LOWER = Equation(
    gaussian_lower_start, gaussian_lower_update, gaussian_lower_value
)
NONPARAMETRIC_UPPER = Equation(
    nonparametric_start, nonparametric_upper_update, nonparametric_upper_value
)
NONPARAMETRIC_LOWER = Equation(
    nonparametric_start, nonparametric_lower_update, nonparametric_lower_value
)


#: The equation of each score, by likelihood and end.
EQUATIONS = {
    ("gaussian", "upper"): GAUSSIAN_UPPER,
    ("gaussian", "lower"): GAUSSIAN_LOWER,
    ("nonparametric", "upper"): NONPARAMETRIC_UPPER,
    ("nonparametric", "lower"): NONPARAMETRIC_LOWER,
}

# --- their solution -------------------------------------------------------------------


def solve(
    equation: Equation,
    M: FloatArray,
    n_features: int,
    radius: float,
    out: FloatArray,
    *,
    compiled: bool,
) -> None:
    """Write the scores of squared distances M (n,) for one radius to `out` (n,).

    ArithmeticError if the iteration does not converge, which has not been seen.
    """
    if radius <= SMALLEST_RADIUS:
        np.copyto(out, M)
        if equation in (GAUSSIAN_LOWER, GAUSSIAN_UPPER):
            np.negative(out, out=out)
        return
    nonparametric = equation is NONPARAMETRIC_UPPER
    floor = reach(radius) if nonparametric else SMALLEST_DISTANCE
    a, b = _start_constants(equation, n_features, radius)
    arguments = np.maximum(M, floor), float(n_features), float(radius), a, b, out
    if compiled:
        from prudent.optimistic.kernels import KERNELS

        converged = KERNELS[equation](*arguments)
    else:
        converged = solve_arrays(equation, *arguments)
    if not converged:
        raise ArithmeticError(
            f"the score equation did not converge in {MAX_SWEEPS} sweeps for "
            f"radius {radius!r} and {n_features} feature(s); please report it."
        )
    if nonparametric:
        np.copyto(out, 0.0, where=np.less_equal(M, floor))


def root(equation: Equation, M: float, n_features: int, radius: float) -> float:
    """Root x of the equation for one squared distance; 0 for radius 0."""
    if radius <= SMALLEST_RADIUS:
        return 0.0
    a, b = _start_constants(equation, n_features, radius)
    x, _ = _root(
        equation, np.array([max(M, SMALLEST_DISTANCE)]), n_features, radius, a, b
    )
    return float(x[0])


def solve_arrays(
    equation: Equation,
    M: FloatArray,
    d: float,
    rho: float,
    a: float,
    b: float,
    out: FloatArray,
) -> bool:
    """Solve for all distances with NumPy, block by block; True when converged."""
    all_converged = True
    for start in range(0, len(M), ARRAY_BLOCK):
        rows = slice(start, start + ARRAY_BLOCK)
        x, converged = _root(equation, M[rows], d, rho, a, b)
        out[rows] = equation.value(M[rows], x, d, rho)
        all_converged &= converged
    return all_converged


def _root(
    equation: Equation, M: FloatArray, d: float, rho: float, a: float, b: float
) -> tuple[FloatArray, bool]:
    """Root x of the equation for every distance M (n,), and whether all have converged.

    At most 30 steps of fourth order, each of which multiplies x by a factor.
    """
    x = equation.start(M, d, rho, a, b)
    for _ in range(MAX_SWEEPS):
        factor = equation.update(M, x, d, rho)
        x *= factor
        if (np.abs(factor - 1.0) <= TOLERANCE).all():
            return x, True
    return x, False


@lru_cache(maxsize=1024)  # the same few classes are asked for at every prediction
def _start_constants(
    equation: Equation, n_features: int, radius: float
) -> tuple[float, float]:
    """The constants (a, b) that fit the start of the iteration to its limits in M.

    At M = 0 and at infinity the equations have solutions in one variable.
    """
    if equation is GAUSSIAN_UPPER:
        return 1 / _inverse_excess(radius / n_features), 1 / _inverse_remainder(radius)
    if equation is GAUSSIAN_LOWER:
        return 1 / _inverse_remainder(radius / n_features), 1 / _inverse_excess(radius)
    if equation is NONPARAMETRIC_LOWER:
        return _inverse_excess(radius) ** -2, 1 / radius
    nearest = reach(radius)
    far = _inverse_remainder(radius) ** -2
    return far, (nearest**-2 - far) * nearest


def reach(radius: float) -> float:
    """Largest M for which the ball holds moments with mean x: exp(rho) - 1.

    Capped beyond the largest distance that is accepted.
    """
    return math.expm1(min(radius, math.log(2 * LARGEST_DISTANCE)))


def _inverse_excess(c: float) -> float:
    """Solve A(p) = c for p > 0: Newton from the right of a convex function."""
    p = c + math.sqrt(2 * c)
    for _ in range(8):
        A = log1p_excess(np.float64(p), 1 / (1 + p))
        p -= float(A - c) * (1 + p) / p
    return p


def _inverse_remainder(c: float) -> float:
    """Solve B(v) = c for v > 0, capped at 1e100: Newton in log(1 + v)."""
    step = c + min(1.0, math.sqrt(2 * c))
    if c > 30:
        return math.exp(min(step, math.log(LARGEST_DISTANCE)))
    for _ in range(8):
        B = log1p_remainder(np.float64(math.expm1(step)), math.exp(-step))
        step -= float(B - c) / -math.expm1(-step)
    return math.expm1(step)


# --- balls that move both moments (Theorems 3.1 and 4.1) ------------------------------


def gaussian_scores(
    distances: ArrayLike, n_features: int, radius: ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """Pessimistic and optimistic Gaussian log scores.

    Over all means mu and covariances Sigma whose divergence from the nominal pair
    (m, S) is at most `radius`, the least and the largest value of

        L(x) = -(x - mu)' Sigma^-1 (x - mu) - log det Sigma,

    twice the Gaussian log density plus d log(2 pi). Both depend on x only through
    M = (x - m)' S^-1 (x - m).

    Parameters
    ----------
    distances : array-like
        Squared Mahalanobis distances M, in [0, 1e100].
    n_features : int
        Number of features d, >= 1.
    radius : array-like, broadcastable to `distances`
        Radius rho of the ambiguity set, in [0, 1e50]; 0 gives -M for both.

    Returns
    -------
    lower, upper : ndarray, shape of `distances`
        Bounds of L + log det S, with lower <= -M <= upper.

    Raises
    ------
    ValueError
        If a distance, a radius or `n_features` is outside its range.

    Notes
    -----
    upper = min over gamma > 0 of gamma rho + d (1+gamma) log(1 + 1/gamma)
    - (1+gamma) log(1 + M/(1+gamma)) - d (Nguyen, Si and Blanchet 2020, Theorem
    4.1, with the constant that the paper leaves out). `lower` solves the same
    stationarity equation at its other root. The absolute error is below
    1.5e-13 max(1, value).

    Examples
    --------
    >>> from prudent.optimistic import gaussian_scores
    >>> lower, upper = gaussian_scores([0.0, 4.0], 2, 0.3)
    >>> lower.round(4).tolist(), upper.round(4).tolist()
    ([-1.2053, -8.359], [1.0039, -1.5721])
    """
    if not n_features >= 1:
        raise ValueError(f"`n_features` must be >= 1, got {n_features!r}.")
    return (
        _scores(GAUSSIAN_LOWER, distances, n_features, radius),
        _scores(GAUSSIAN_UPPER, distances, n_features, radius),
    )


def nonparametric_scores(
    distances: ArrayLike, radius: ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """Pessimistic and optimistic distances of the nonparametric score.

    Over all means mu and covariances Sigma whose divergence from the nominal pair
    is at most `radius`, the largest (`q_low`, pessimistic) and the least (`q_up`)
    value of (x - mu)' Sigma^-1 (x - mu). 1/(1 + q_up) is the largest probability
    that any distribution with such moments gives to the point x (Nguyen, Si and
    Blanchet 2020, Theorem 3.1).

    Parameters
    ----------
    distances : array-like
        Squared Mahalanobis distances M to the nominal moments, in [0, 1e100].
    radius : array-like, broadcastable to `distances`
        Radius rho of the ambiguity set, in [0, 1e50]; 0 gives M for both.

    Returns
    -------
    q_low, q_up : ndarray, shape of `distances`
        q_low >= M >= q_up >= 0; q_up = 0 where log(1 + M) <= rho.

    Raises
    ------
    ValueError
        If a distance or a radius is outside its range.

    Notes
    -----
    1/(1 + q_low) is the worst over moments of the best probability given the
    moments; it is no lower probability (a continuous law gives every point 0).

    Examples
    --------
    >>> from prudent.optimistic import nonparametric_scores
    >>> q_low, q_up = nonparametric_scores([0.5, 4.0], 0.5)
    >>> q_low.round(4).tolist(), q_up.round(4).tolist()
    ([2.2603, 10.7258], [0.0, 0.6973])
    """
    return (
        _scores(NONPARAMETRIC_LOWER, distances, 1, radius),
        _scores(NONPARAMETRIC_UPPER, distances, 1, radius),
    )


def _scores(
    equation: Equation, distances: ArrayLike, n_features: int, radius: ArrayLike
) -> FloatArray:
    """Scores of distances of any shape, for radii that broadcast to them.

    Distances that share a radius are solved together.
    """
    M = in_range("distance", distances, LARGEST_DISTANCE)
    rho = np.broadcast_to(in_range("radius", radius, LARGEST_RADIUS), M.shape)
    scores = np.empty(M.shape)
    compiled = M.size >= COMPILED_FROM
    for value in np.unique(rho).tolist():
        chosen = rho == value
        part = np.empty(np.count_nonzero(chosen))
        solve(equation, M[chosen], int(n_features), value, part, compiled=compiled)
        scores[chosen] = part
    return scores


def in_range(name: str, values: ArrayLike, largest: float) -> FloatArray:
    """Numbers as an array; refuses those outside [0, `largest`]."""
    array = np.asarray(values, dtype=np.float64)
    bad = ~((array >= 0) & (array <= largest))
    if bad.any():
        raise ValueError(
            f"every {name} must be finite and lie in [0, {largest:g}], "
            f"got {float(array[bad].flat[0])!r}."
        )
    return array


# --- balls that move the covariance and keep the mean (KQDA) --------------------------
#
# In coordinates in which the nominal covariance is I, the extreme covariances have one
# variance `along` the row and one `across` it, d - 1 times. Both are functions of one
# unknown, the root of D = rho with
#
#     D = (d - 1) c(across) + c(along),  c(z) = log z + 1/z - 1.

# The worst variances grow like exp(rho), which must stay a float64.
LARGEST_COVARIANCE_RADIUS = 500.0
# Below this a ball of covariances moves no score by one rounding error.
SMALLEST_COVARIANCE_RADIUS = 1e-30


def covariance_scores(
    distances: ArrayLike, n_features: int, radius: ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """Pessimistic and optimistic Gaussian log scores where the mean is known.

    Over all covariances Sigma with tr S Sigma^-1 - log det S Sigma^-1 - d <= `radius`,
    which is `moment_divergence` at equal means, the least and the largest value of

        L(x) = -(x - m)' Sigma^-1 (x - m) - log det Sigma.

    Both depend on x only through M = (x - m)' S^-1 (x - m).

    Parameters
    ----------
    distances : array-like
        Squared Mahalanobis distances M, in [0, 1e100].
    n_features : int
        Number of features d, >= 1.
    radius : array-like, broadcastable to `distances`
        Radius rho of the ball of covariances, in [0, 500]; 0 gives -M for both.

    Returns
    -------
    lower, upper : ndarray, shape of `distances`
        Bounds of L + log det S, with lower <= -M <= upper.

    Raises
    ------
    ValueError
        If a distance, a radius or `n_features` is outside its range.

    Notes
    -----
    The optimistic covariance is (gamma S + (x - m)(x - m)') / (1 + gamma) (Nguyen et
    al. 2019, Calculating optimistic likelihoods using (geodesically) convex
    optimization, NeurIPS), the score of KQDA; the pessimistic one is
    (k S - (x - m)(x - m)') / (k - 1) with k > max(1, M). One feature has the nearest
    variance to M, or the farther end.

    Examples
    --------
    >>> from prudent.optimistic import covariance_scores
    >>> lower, upper = covariance_scores([0.0, 4.0], 2, 0.3)
    >>> lower.round(4).tolist(), upper.round(4).tolist()
    ([-1.2053, -7.333], [1.0039, -2.2635])
    """
    if not n_features >= 1:
        raise ValueError(f"`n_features` must be >= 1, got {n_features!r}.")
    M = in_range("distance", distances, LARGEST_DISTANCE)
    return (
        covariance_score("lower", M, n_features, radius),
        covariance_score("upper", M, n_features, radius),
    )


def covariance_score(
    end: End, M: FloatArray, n_features: int, radius: ArrayLike
) -> FloatArray:
    """One of both `covariance_scores`, of squared distances M in their range."""
    d = n_features
    rho = in_range("radius", radius, LARGEST_COVARIANCE_RADIUS)
    rho = np.broadcast_to(rho, M.shape)
    scores = np.array(-M)
    moved = rho > SMALLEST_COVARIANCE_RADIUS
    if not moved.any():
        return scores
    M, rho = M[moved], rho[moved]
    if d == 1:
        scores[moved] = -_cost(M, *_nearest_variance(end, M, rho))
    elif end == "upper":
        t = _optimistic_root(M, d, rho)
        scores[moved] = (d - 1) * np.log1p(t) - _cost(M, *_along_upper(t, M))
    else:
        # across = k / (k - 1), along = (k - M) / (k - 1), k = max(1, M) + e
        bracket = -rho - 50.0, np.log(1.0 + M) + 80.0
        log_e = elementwise.find_root(_lower_excess, bracket, args=(M, d, rho)).x
        u, wider, narrower = _along_lower(np.exp(log_e), M)
        scores[moved] = -(d - 1) * np.log1p(u) - _cost(M, wider, narrower)
    return scores


def best_variances(M: float, d: int, radius: float) -> tuple[float, float]:
    """Variances (across, along) of the optimistic covariance, where the nominal is I.

    `M` is the squared distance of the row, `d` the number of features.
    """
    if not radius > SMALLEST_COVARIANCE_RADIUS:
        return 1.0, 1.0
    if d == 1:
        narrower, wider = _ends(radius)
        variance = min(max(M, 1.0 / (1.0 + narrower)), 1.0 + wider)
        return variance, variance
    distance, rho = np.array([M]), np.array([radius])
    t = float(_optimistic_root(distance, d, rho)[0])
    return 1.0 / (1.0 + t), (1.0 + M * t) / (1.0 + t)


def _optimistic_root(M: FloatArray, d: int, rho: FloatArray) -> FloatArray:
    """Root t of D = rho, across = 1 / (1 + t), along = (1 + M t) / (1 + t)."""
    bracket = -40.0 - np.log(M + d), np.log(2.0 * rho + 10.0) + 5.0
    root = elementwise.find_root(_upper_excess, bracket, args=(M, d, rho))
    t: FloatArray = np.exp(root.x)
    return t


def _upper_excess(log_t: Any, M: Any, d: Any, rho: Any) -> Any:
    """D - rho of the optimistic covariance, rising in t."""
    t = np.exp(log_t)
    wider, narrower = _along_upper(t, M)
    return (d - 1) * _excess(t) + _remainder(wider) + _excess(narrower) - rho


def _along_upper(t: Any, M: Any) -> tuple[Any, Any]:
    """Variance along the row: how far it is above 1, and its inverse above 1."""
    wider = np.maximum(M - 1.0, 0.0) * (t / (1.0 + t))
    return wider, np.maximum(1.0 - M, 0.0) * t / (1.0 + M * t)


def _lower_excess(log_e: Any, M: Any, d: Any, rho: Any) -> Any:
    """Rho - D of the pessimistic covariance, rising in e."""
    u, wider, narrower = _along_lower(np.exp(log_e), M)
    return rho - (d - 1) * _remainder(u) - _remainder(wider) - _excess(narrower)


def _along_lower(e: Any, M: Any) -> tuple[Any, Any, Any]:
    """1 / (k - 1), and the variance along the row as in `_along_upper`."""
    u = 1.0 / (np.maximum(M - 1.0, 0.0) + e)
    return u, np.maximum(1.0 - M, 0.0) * u, np.maximum(M - 1.0, 0.0) / e


def _nearest_variance(
    end: End, M: FloatArray, rho: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """For d = 1: the variance of the ball nearest to M, or the farther end.

    How far it is above 1, and its inverse above 1, as in `_along_upper`.
    """
    ends = {value: _ends(value) for value in np.unique(rho).tolist()}
    narrower, wider = np.array([ends[value] for value in rho.tolist()]).T
    if end == "lower":
        below = M < 1.0
        return np.where(below, wider, 0.0), np.where(below, 0.0, narrower)
    with np.errstate(divide="ignore"):
        inverse = 1.0 / M
    return np.clip(M - 1.0, 0.0, wider), np.clip(inverse - 1.0, 0.0, narrower)


def _ends(rho: float) -> tuple[float, float]:
    """Inverse of the least variance of the ball and the largest one, above 1."""
    low, high = -50.0, rho + 50.0
    inverse = brentq(lambda x: float(_excess(math.exp(x))) - rho, low, high)
    largest = brentq(lambda x: float(_remainder(math.exp(x))) - rho, low, high)
    return math.exp(inverse), math.exp(largest)


def _cost(M: Any, wider: Any, narrower: Any) -> Any:
    """M / z + log z of the variance z = (1 + wider) / (1 + narrower)."""
    return M * ((1.0 + narrower) / (1.0 + wider)) + np.log1p(wider) - np.log1p(narrower)


def _excess(w: Any) -> Any:
    """c(1 / (1 + w)) = w - log(1 + w)."""
    return log1p_excess(w, 1.0 / (1.0 + w))


def _remainder(z: Any) -> Any:
    """c(1 + z) = log(1 + z) - z / (1 + z)."""
    return log1p_remainder(z, 1.0 / (1.0 + z))
