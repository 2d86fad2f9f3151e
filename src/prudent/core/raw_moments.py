"""Sums of soft weights about one fixed origin, and back to means and scatters."""

from __future__ import annotations

import warnings
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prudent.core.statistics import two_sum
from prudent.core.types import FloatArray
from prudent.exceptions import PrudentWarning

LARGEST_LOSS = 1e-8
# Numbers of a block that stay in the cache with their weighted copy.
CACHED = 2**15
# With a smaller share of rows that matter it is cheaper to gather them.
GATHER_BELOW = 0.6
FEATURES_PER_BAND, MOST_BANDS = 16, 4


def central_moments(
    origin: FloatArray, s0: FloatArray, s1: FloatArray, s2: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Mean, as a pair, and scatter of sums about an origin."""
    absent = s0 == 0
    moved = absent & ((s1 != 0).any(axis=1) | (s2 != 0).any(axis=(1, 2)))
    if moved.any():
        raise ValueError(
            f"class {np.flatnonzero(moved)[0]} has a weight total of 0 and so no mean, "
            "although its signed sums are not 0: take a smaller step."
        )
    shift = s1 / np.where(absent, 1.0, s0)[:, None]
    mean, mean_lo = two_sum(np.where(absent[:, None], 0.0, origin), shift)
    scatter = s2 - s1[:, :, None] * shift[:, None, :]
    scatter = (scatter + scatter.transpose(0, 2, 1)) / 2
    raw = np.trace(s2, axis1=1, axis2=2)
    central = np.abs(np.trace(scatter, axis1=1, axis2=2))
    lost = (raw > 0) & (np.finfo(np.float64).eps * raw > LARGEST_LOSS * central)
    if lost.any():
        warnings.warn(
            f"class {int(np.flatnonzero(lost)[0])} lies so far from the origin of its "
            f"raw moments that its scatter lost more than {LARGEST_LOSS:g} relative: "
            "use an origin nearer to the class.",
            PrudentWarning,
            stacklevel=3,
        )
    return mean, mean_lo, scatter


def soft_sums(
    X: NDArray[Any], H: NDArray[Any], origin: FloatArray, negligible: float
) -> tuple[FloatArray, FloatArray]:
    """Sums of h b and h b b' over rows b = x - o, class by class and block by block.

    Features run along the rows of a block, so that every product is long; bands of
    them leave out most of what symmetry makes superfluous.
    """
    n_classes, n_features = H.shape[1], X.shape[1]
    s1 = np.zeros((n_classes, n_features))
    s2 = np.zeros((n_classes, n_features, n_features))
    weights = np.ascontiguousarray(H.T, dtype=np.float64)
    active = weights != 0
    if negligible:
        size = np.abs(weights)
        active = size > negligible * size.max(initial=0.0)
    few = np.count_nonzero(active, axis=1) < GATHER_BELOW * len(X)
    bands, step = _bands(n_features), max(256, CACHED // n_features)
    for start in range(0, len(X), step):
        rows = slice(start, start + step)
        B, h = _about(X[rows], origin), weights[:, rows]
        s1 += h @ B.T
        buffer = np.empty_like(B)
        for k in np.flatnonzero(~few):
            _add_products(B, np.multiply(B, h[k], out=buffer), bands, s2[k])
    for k in np.flatnonzero(few):
        chosen = np.flatnonzero(active[k])
        for start in range(0, len(chosen), step):
            own = chosen[start : start + step]
            B = _about(X[own], origin)
            _add_products(B, B * weights[k, own], bands, s2[k])
    for first, last in bands:
        s2[:, last:, first:last] = s2[:, first:last, last:].transpose(0, 2, 1)
        corner = s2[:, first:last, first:last]
        corner[:] = np.tril(corner) + np.tril(corner, -1).transpose(0, 2, 1)
    return s1, s2


def _about(rows: NDArray[Any], origin: FloatArray) -> FloatArray:
    """Features of the rows about the origin, shape (d, n)."""
    return np.subtract(rows.T, origin[:, None], order="C", dtype=np.float64)


def _add_products(
    B: FloatArray, weighted: FloatArray, bands: list[tuple[int, int]], s2: FloatArray
) -> None:
    """Add B times the weighted B', in bands on and above the diagonal."""
    for first, last in bands:
        s2[first:last, first:] += weighted[first:last] @ B[first:].T


def _bands(n_features: int) -> list[tuple[int, int]]:
    """Cuts of the features: more bands save more flops but make smaller products."""
    n_bands = min(MOST_BANDS, 1 + n_features // FEATURES_PER_BAND)
    edges = [n_features * band // n_bands for band in range(n_bands + 1)]
    return list(pairwise(edges))
