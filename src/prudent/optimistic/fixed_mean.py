"""Scores in the ball that moves the covariance and keeps the mean (KQDA).

In coordinates in which the nominal covariance is I, the extreme covariances have one
variance `along` the row and one `across` it, d - 1 times. Both are functions of one
unknown, the root of D = rho with

    D = (d - 1) c(across) + c(along),  c(z) = log z + 1/z - 1.
"""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq, elementwise

from prudent.core.types import FloatArray
from prudent.optimistic.formulas import log1p_excess, log1p_remainder
from prudent.optimistic.scores import LARGEST_DISTANCE, in_range

End = Literal["lower", "upper"]
# The worst variances grow like exp(rho), which must stay a float64.
LARGEST_RADIUS = 500.0
# Below this a ball moves no score by one rounding error.
SMALLEST_RADIUS = 1e-30


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
    rho = np.broadcast_to(in_range("radius", radius, LARGEST_RADIUS), M.shape)
    return _scores("lower", M, n_features, rho), _scores("upper", M, n_features, rho)


class CovarianceScore:
    """One score of one class, as `ScoreFunction`, in the ball of covariances."""

    def __init__(self, end: End, n_features: int, radius: float) -> None:
        self.end, self.n_features = end, n_features
        self.radius = in_range("radius", radius, LARGEST_RADIUS)

    def __call__(self, M: FloatArray, out: FloatArray, *, compiled: bool) -> None:
        """Write the scores of the distances `M` (n,) to `out` (n,)."""
        radii = np.full(M.shape, self.radius)
        np.copyto(out, _scores(self.end, M, self.n_features, radii))


def best_variances(M: float, d: int, radius: float) -> tuple[float, float]:
    """Variances (across, along) of the optimistic covariance, where the nominal is I.

    `M` is the squared distance of the row, `d` the number of features.
    """
    if not radius > SMALLEST_RADIUS:
        return 1.0, 1.0
    if d == 1:
        narrower, wider = _ends(radius)
        variance = min(max(M, 1.0 / (1.0 + narrower)), 1.0 + wider)
        return variance, variance
    distance, rho = np.array([M]), np.array([radius])
    t = float(_optimistic_root(distance, d, rho)[0])
    return 1.0 / (1.0 + t), (1.0 + M * t) / (1.0 + t)


def _scores(end: End, M: FloatArray, d: int, rho: FloatArray) -> FloatArray:
    """Scores of distances, for radii of the same shape."""
    scores = np.array(-M)
    moved = rho > SMALLEST_RADIUS
    if moved.any():
        solve = _of_one_feature if d == 1 else _of_more_features
        scores[moved] = solve(end, M[moved], d, rho[moved])
    return scores


def _of_more_features(end: End, M: FloatArray, d: int, rho: FloatArray) -> FloatArray:
    """Scores for d >= 2."""
    if end == "upper":
        return _upper_value(_optimistic_root(M, d, rho), M, d)
    # across = k / (k - 1), along = (k - M) / (k - 1), k = max(1, M) + e
    bracket = -rho - 50.0, np.log(1.0 + M) + 80.0
    root = elementwise.find_root(_lower_excess, bracket, args=(M, d, rho))
    return _lower_value(np.exp(root.x), M, d)


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


def _upper_value(t: FloatArray, M: FloatArray, d: int) -> FloatArray:
    wider, narrower = _along_upper(t, M)
    score: FloatArray = (d - 1) * np.log1p(t) - _cost(M, wider, narrower)
    return score


def _along_upper(t: Any, M: Any) -> tuple[Any, Any]:
    """Variance along the row: how far it is above 1, and its inverse above 1."""
    wider = np.maximum(M - 1.0, 0.0) * (t / (1.0 + t))
    return wider, np.maximum(1.0 - M, 0.0) * t / (1.0 + M * t)


def _lower_excess(log_e: Any, M: Any, d: Any, rho: Any) -> Any:
    """Rho - D of the pessimistic covariance, rising in e."""
    u, wider, narrower = _along_lower(np.exp(log_e), M)
    return rho - (d - 1) * _remainder(u) - _remainder(wider) - _excess(narrower)


def _lower_value(e: FloatArray, M: FloatArray, d: int) -> FloatArray:
    u, wider, narrower = _along_lower(e, M)
    score: FloatArray = -(d - 1) * np.log1p(u) - _cost(M, wider, narrower)
    return score


def _along_lower(e: Any, M: Any) -> tuple[Any, Any, Any]:
    """1 / (k - 1), and the variance along the row as in `_along_upper`."""
    u = 1.0 / (np.maximum(M - 1.0, 0.0) + e)
    return u, np.maximum(1.0 - M, 0.0) * u, np.maximum(M - 1.0, 0.0) / e


def _of_one_feature(end: End, M: FloatArray, d: int, rho: FloatArray) -> FloatArray:
    """Scores for d = 1: of the variance of the ball nearest to M, or of an end."""
    ends = {value: _ends(value) for value in np.unique(rho).tolist()}
    narrower, wider = np.array([ends[value] for value in rho.tolist()]).T
    if end == "lower":
        below = M < 1.0
        wider, narrower = np.where(below, wider, 0.0), np.where(below, 0.0, narrower)
    else:
        wider = np.clip(M - 1.0, 0.0, wider)
        with np.errstate(divide="ignore"):
            narrower = np.clip(1.0 / M - 1.0, 0.0, narrower)
    scores: FloatArray = -_cost(M, wider, narrower)
    return scores


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
