"""Compiled inner loops, the same functions as in `gaussian` and `ascent`.

Import it lazily: numba takes half a second to load. Divisions follow NumPy: a check
for zero would keep the loops from being vectorised.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from prudent.core.kernels import exponentials, logarithms
from prudent.core.types import FloatArray

_BLOCK = 1024


@njit(cache=True, fastmath=True)
def add_squares(white: FloatArray, sums: FloatArray) -> None:
    """As `gaussian.interpreted_add_squares`."""
    n, r, d = white.shape
    for i in range(n):
        for k in range(r):
            total = 0.0
            for j in range(d):
                total += white[i, k, j] * white[i, k, j]
            sums[k, i] += total


@njit(cache=True, error_model="numpy", fastmath={"contract"})
def log_residual_sums(
    scores: FloatArray, codes: NDArray[Any], weight: FloatArray
) -> tuple[float, float, float]:
    """As `ascent.interpreted_residual_sums`."""
    r, m = scores.shape
    if r == 2:
        return _two_class_residual_sums(scores, codes, weight)
    peak, total, picked = np.empty(_BLOCK), np.empty(_BLOCK), np.empty(_BLOCK)
    best = np.empty(_BLOCK, dtype=np.int64)
    log_loss, error, risk = 0.0, 0.0, 0.0
    for start in range(0, m, _BLOCK):
        n = min(_BLOCK, m - start)
        y, w = codes[start : start + n], weight[start : start + n]
        peak[:n], best[:n] = scores[0, start : start + n], 0
        for k in range(1, r):
            row = scores[k, start : start + n]
            for i in range(n):  # no branch: it would be guessed wrongly
                score, highest, leader = row[i], peak[i], best[i]
                peak[i] = score if score > highest else highest
                best[i] = k if score > highest else leader
        error += _add_up(w, best[:n] != y)
        for i in range(n):
            picked[i] = scores[y[i], start + i] - peak[i]
            total[i] = 0.0
        for k in range(r):
            row = scores[k, start : start + n]
            for i in range(n):
                row[i] -= peak[i]
            exponentials(row)
            for i in range(n):
                total[i] += row[i]
        logarithms(total[:n], peak)
        log_loss += _add_up(w, peak[:n] - picked[:n])
        for i in range(n):
            total[i] = -w[i] / total[i]
        for k in range(r):
            row = scores[k, start : start + n]
            for i in range(n):
                row[i] = row[i] * total[i] + (w[i] if y[i] == k else 0.0)
        for i in range(n):
            risk += scores[y[i], start + i]
    return log_loss, error, risk


@njit(cache=True, error_model="numpy")
def _two_class_residual_sums(
    scores: FloatArray, codes: NDArray[Any], weight: FloatArray
) -> tuple[float, float, float]:
    """Two classes need one exponential a row, that of the difference of the scores."""
    m = scores.shape[1]
    margin, lesser = np.empty(_BLOCK), np.empty(_BLOCK)
    total, logarithm = np.empty(_BLOCK), np.empty(_BLOCK)
    log_loss, error, risk = 0.0, 0.0, 0.0
    for start in range(0, m, _BLOCK):
        n = min(_BLOCK, m - start)
        first, second = scores[0, start : start + n], scores[1, start : start + n]
        y, w = codes[start : start + n], weight[start : start + n]
        for i in range(n):
            margin[i] = (2 * y[i] - 1) * (second[i] - first[i])
            lesser[i] = -abs(margin[i])
        error += _add_up(w, margin[:n] < 0.0) + _add_up(w, (margin[:n] == 0.0) * y)
        exponentials(lesser[:n])
        for i in range(n):
            total[i] = 1.0 + lesser[i]
        logarithms(total[:n], logarithm)
        for i in range(n):
            logarithm[i] += max(-margin[i], 0.0)
            other = (lesser[i] if margin[i] >= 0.0 else 1.0) / total[i]
            second[i] = (2 * y[i] - 1) * w[i] * other
            first[i] = -second[i]
            risk += w[i] * other
        log_loss += _add_up(w, logarithm[:n])
    return log_loss, error, risk


@njit(cache=True, fastmath=True)
def _add_up(weight: FloatArray, values: NDArray[Any]) -> float:
    """Weighted sum, in any order."""
    total = 0.0
    for i in range(len(weight)):
        total += weight[i] * values[i]
    return total
