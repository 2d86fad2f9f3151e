"""Occupied cells of a grid: a sorted array of hashes."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["CellSet", "choose_cells", "hash_rows"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_SMALLEST_SIZE = 2.0**-7  # of a cell, in standard deviations


@dataclass(frozen=True, slots=True)
class CellSet:
    """Cells floor((x - x0) / g) of a grid that hold at least one row.

    Attributes
    ----------
    origin : ndarray of shape (d,)
        x0.
    size : float
        g, the side of a cell.
    corners : ndarray of shape (n_cells, d)
        Cell numbers (whole, as floats).
    hashes : ndarray of uint64, shape (n_cells,)
        Of the cells, sorted.
    """

    origin: FloatArray
    size: float
    corners: FloatArray
    hashes: NDArray[np.uint64]

    def contains(self, X: FloatArray) -> NDArray[np.bool_]:
        """Whether each row lies in one of the cells; O(d + log n_cells) a row."""
        wanted = hash_rows(_cell_numbers(X, self.origin, self.size))
        at = np.searchsorted(self.hashes, wanted)
        return self.hashes[np.minimum(at, len(self.hashes) - 1)] == wanted


def choose_cells(X: FloatArray, rng: np.random.RandomState) -> CellSet:
    """Least cell size, on a geometric grid, with few cells of a single row.

    Few: at most log n, so that the cells missed by n rows hold little mass
    (Good and Turing). The origin is uniform in the first cell.
    """
    few = math.log(len(X))
    offset = rng.random_sample((X.shape[1],))
    size = _SMALLEST_SIZE
    while True:
        numbers = _cell_numbers(X, offset * size, size)
        hashes, first, count = np.unique(
            hash_rows(numbers), return_index=True, return_counts=True
        )
        if np.count_nonzero(count == 1) <= few:
            return CellSet(offset * size, size, numbers[first], hashes)
        size *= math.sqrt(2)


def hash_rows(numbers: FloatArray) -> NDArray[np.uint64]:
    """64-bit hash of each row of whole numbers: one mixing step a column.

    Two of n rows share a hash by chance with probability about n^2 / 2^65.
    """
    integers = numbers.astype(np.int64).view(np.uint64)
    mixed = np.full(len(numbers), 0x9E3779B97F4A7C15, dtype=np.uint64)
    for column in integers.T:
        mixed ^= column
        mixed *= np.uint64(0xBF58476D1CE4E5B9)
        mixed ^= mixed >> np.uint64(29)
    return mixed


def _cell_numbers(X: FloatArray, origin: FloatArray, size: float) -> FloatArray:
    # Rows far outside the data share the outermost cells, which hold no data.
    return np.clip(np.floor((X - origin) / size), -(2.0**62), 2.0**62)
