"""Distances of new rows from training rows, a block of new rows at a time.

They are computed as differences, so that equal rows are at distance 0 exactly.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.spatial import KDTree
from scipy.spatial.distance import cdist

from prudent.core.types import BoolArray, FloatArray, IntArray

# Entries of the largest array of new rows and training rows held at once.
BLOCK_ENTRIES = 2**18
# Arrays of distances and scores that are at work at once.
ARRAYS = 8


def blocks(n_rows: int, entries: int) -> Iterator[slice]:
    """Slices of new rows, each of which needs so many entries."""
    step = max(BLOCK_ENTRIES // entries, 1)
    return (slice(start, start + step) for start in range(0, n_rows, step))


def exponents(rows: FloatArray, training: FloatArray, width: float) -> FloatArray:
    """-D^2 / (2 h^2) of each pair of rows, (m, n)."""
    return -0.5 / width / width * cdist(rows, training, "sqeuclidean")


def least(distances: FloatArray, k: int) -> FloatArray:
    """The k least along the last axis, ascending; inf where there are fewer."""
    if k == 1 <= distances.shape[-1]:
        return distances.min(axis=-1, keepdims=True)
    if distances.shape[-1] > k:
        distances = np.partition(distances, k - 1, axis=-1)[..., :k]
    missing = [(0, 0)] * (distances.ndim - 1) + [(0, k - distances.shape[-1])]
    return np.pad(np.sort(distances, axis=-1), missing, constant_values=np.inf)


def nearest_by_label(rows: FloatArray, codes: IntArray, k: int) -> FloatArray:
    """The k least distances of each row to its label and to others, (2, n, k)."""
    nearest = np.full((2, len(rows), k), np.inf)
    for label in np.unique(codes):
        own = codes == label
        # The nearest of its own label is the row itself.
        nearest[0, own] = _least_to(rows[own], rows[own], range(2, k + 2))
        if not own.all():
            nearest[1, own] = _least_to(rows[~own], rows[own], range(1, k + 1))
    return nearest


def _least_to(training: FloatArray, rows: FloatArray, places: range) -> FloatArray:
    found: FloatArray = KDTree(training).query(rows, k=list(places))[0]
    return found


def with_added(nearest: FloatArray, distances: FloatArray) -> FloatArray:
    """Mean of the finite least distances (n, k) once each new row is there, (m, n)."""
    finite = np.isfinite(nearest)
    found, total = finite.sum(axis=1), np.where(finite, nearest, 0.0).sum(axis=1)
    k, last = nearest.shape[1], nearest[:, -1]
    rest = np.where(finite[:, -1], nearest[:, :-1].sum(axis=1), total)
    nearer = (rest + distances) / np.minimum(found + 1, k)
    return np.where(distances < last, nearer, total / k)


def log_sums(exponents: FloatArray, counted: BoolArray | None = None) -> FloatArray:
    """Log of the sum of exponentials of each row, of those `counted`; -inf of none."""
    if counted is not None:
        exponents = np.where(counted, exponents, -np.inf)
    peak = exponents.max(axis=1, initial=-np.inf, keepdims=True)
    peak = np.where(np.isfinite(peak), peak, 0.0)
    with np.errstate(divide="ignore"):
        sums: FloatArray = np.log(np.exp(exponents - peak).sum(axis=1)) + peak[:, 0]
    return sums


def kernel_sums_by_label(rows: FloatArray, codes: IntArray, width: float) -> FloatArray:
    """Log kernel sums of each row over the others of its label and over others."""
    sums = np.empty((2, len(rows)))
    for block in blocks(len(rows), ARRAYS * len(rows)):
        values = exponents(rows[block], rows, width)
        same = codes[block, None] == codes
        sums[1, block] = log_sums(values, ~same)
        here = np.arange(len(rows))[block]
        same[np.arange(len(here)), here] = False
        sums[0, block] = log_sums(values, same)
    return sums
