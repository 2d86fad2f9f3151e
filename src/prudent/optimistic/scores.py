"""Optimistic and pessimistic scores of rows under uncertain class moments.

First come balls that move the mean and the covariance of a class, whose equations
`formulas` holds, then balls that move the covariance alone.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq, elementwise

from prudent.core.types import FloatArray
from prudent.core.validation import shown
from prudent.optimistic.formulas import (
    GAUSSIAN_LOWER,
    GAUSSIAN_UPPER,
    MAX_SWEEPS,
    NONPARAMETRIC_LOWER,
    NONPARAMETRIC_UPPER,
    TOLERANCE,
    Equation,
    log1p_excess,
    log1p_remainder,
)

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

# --- the equation of a score, solved for many rows ------------------------------------


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
    n_features = whole_features(n_features)
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
        solve(equation, M[chosen], n_features, value, part, compiled=compiled)
        scores[chosen] = part
    return scores


def whole_features(n_features: float) -> int:
    """Number of features d, a whole number >= 1."""
    if not n_features >= 1:
        raise ValueError(f"`n_features` must be >= 1, got {shown(n_features)}.")
    if not float(n_features).is_integer():
        raise ValueError(
            f"`n_features` must be a whole number, got {shown(n_features)}."
        )
    return int(n_features)


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
    n_features = whole_features(n_features)
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
