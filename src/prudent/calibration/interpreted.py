"""Inner loops in NumPy: the reference, and all that small problems need."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["add_squares", "count_active", "log_residual_sums", "weigh"]

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.intp]

_CACHED_NUMBERS = 32_768


def add_squares(white: FloatArray, sums: FloatArray) -> None:
    """Add sum_j white_ikj^2 of white (n, r, d) to sums (r, n)."""
    sums += np.einsum("ikj,ikj->ki", white, white)


def weigh(rows: FloatArray, weights: FloatArray, out: FloatArray) -> None:
    """Write weights_ki rows_ij, of shapes (r, n) and (n, d), to out (n, r, d)."""
    np.multiply(weights.T[:, :, np.newaxis], rows[:, np.newaxis], out=out)


def count_active(weights: FloatArray, negligible: float) -> IntArray:
    """Number of |weights_ki| above `negligible` of each class, shape (r,)."""
    return np.count_nonzero(np.abs(weights) > negligible, axis=1)


def log_residual_sums(
    scores: FloatArray, codes: IntArray, weight: FloatArray
) -> tuple[float, float]:
    """Turn scores (r, m) into W = w (Y - H) in place; log loss and error, summed."""
    log_loss, error = 0.0, 0.0
    step = max(1, _CACHED_NUMBERS // len(scores))
    for start in range(0, scores.shape[1], step):
        block = slice(start, start + step)
        H, y, w = scores[:, block], codes[block], weight[block]
        columns = np.arange(len(y))
        H -= H.max(axis=0)
        picked = H[y, columns]
        np.exp(H, out=H)
        total = H.sum(axis=0)
        log_loss += float(w @ (np.log(total) - picked))
        error += float(w @ _is_wrong(picked, total, H, y))
        H *= -w / total
        H[y, columns] += w
    return log_loss, error


def _is_wrong(
    picked: FloatArray, total: FloatArray, likelihood: FloatArray, codes: IntArray
) -> BoolArray:
    """Whether argmax misses the label, without an argmax over every row.

    `picked` is the true class's score minus the largest one. Two classes can only
    share the largest score where the scaled likelihoods add up to 2 or more.
    """
    wrong = picked < 0
    ties = np.flatnonzero((total >= 2) & ~wrong)
    wrong[ties] = likelihood[:, ties].argmax(axis=0) != codes[ties]
    return wrong
