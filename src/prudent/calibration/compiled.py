"""Compiled inner loops, the same functions as in `interpreted`.

Import it lazily: numba takes half a second to load. The exponential and the logarithm
are written out because neither numba nor NumPy has vectorised ones on every processor,
and they would cost more than the matrix products of a linear family. Divisions follow
NumPy: a check for zero would keep the loops from being vectorised.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = ["add_squares", "count_active", "log_residual_sums", "weigh"]

FloatArray = NDArray[np.float64]

_BLOCK = 1024
_LOG2_E = 1.4426950408889634
_LN2, _LN2_HIGH, _LN2_LOW = np.log(2.0), 0.6931471803691238, 1.9082149292705877e-10
#: Adding it rounds to an integer and leaves that in the lowest bits.
_ROUND = 6755399441055744.0
_ROUND_BITS = np.float64(_ROUND).view(np.uint64)
_SQRT_HALF_BITS = np.sqrt(0.5).view(np.uint64)
_MANTISSA = np.uint64(52)
#: exp(x) is zero to every purpose below.
_LOWEST = -700.0


@njit(cache=True, fastmath=True)
def add_squares(white: FloatArray, sums: FloatArray) -> None:
    """As `interpreted.add_squares`."""
    n, r, d = white.shape
    for i in range(n):
        for k in range(r):
            total = 0.0
            for j in range(d):
                total += white[i, k, j] * white[i, k, j]
            sums[k, i] += total


@njit(cache=True)
def weigh(rows: FloatArray, weights: FloatArray, out: FloatArray) -> None:
    """As `interpreted.weigh`."""
    n, r, d = out.shape
    for i in range(n):
        for k in range(r):
            weight = weights[k, i]
            for j in range(d):
                out[i, k, j] = weight * rows[i, j]


@njit(cache=True)
def count_active(weights: FloatArray, negligible: float) -> NDArray[Any]:
    """As `interpreted.count_active`."""
    counts = np.zeros(len(weights), dtype=np.int64)
    for k in range(len(weights)):
        count = 0
        for weight in weights[k]:
            count += abs(weight) > negligible
        counts[k] = count
    return counts


@njit(cache=True, error_model="numpy", fastmath={"contract"})
def log_residual_sums(
    scores: FloatArray, codes: NDArray[Any], weight: FloatArray
) -> tuple[float, float]:
    """As `interpreted.log_residual_sums`."""
    r, m = scores.shape
    if r == 2:
        return _two_class_residual_sums(scores, codes, weight)
    peak, total, picked = np.empty(_BLOCK), np.empty(_BLOCK), np.empty(_BLOCK)
    log_loss, error = 0.0, 0.0
    for start in range(0, m, _BLOCK):
        n = min(_BLOCK, m - start)
        peak[:n] = scores[0, start : start + n]
        for k in range(1, r):
            row = scores[k, start : start + n]
            for i in range(n):  # no branch: it would be guessed wrongly
                peak[i] = row[i] if row[i] > peak[i] else peak[i]
        for i in range(n):
            picked[i] = scores[codes[start + i], start + i] - peak[i]
            total[i] = 0.0
        for k in range(r):
            row = scores[k, start : start + n]
            for i in range(n):
                row[i] -= peak[i]
            _exponentials(row)
            for i in range(n):
                total[i] += row[i]
        w = weight[start : start + n]
        error += _add_up(w, picked[:n] < 0.0)
        n_ties = 0
        for i in range(n):
            n_ties += (picked[i] == 0.0) & (total[i] >= 2.0)
        if n_ties:
            error += _lost_ties(scores[:, start : start + n], codes[start:], total, w)
        _logarithms(total[:n], peak)
        log_loss += _add_up(w, peak[:n] - picked[:n])
        for i in range(n):
            total[i] = -w[i] / total[i]
        for k in range(r):
            row = scores[k, start : start + n]
            for i in range(n):
                row[i] *= total[i]
        for i in range(n):
            scores[codes[start + i], start + i] += w[i]
    return log_loss, error


@njit(cache=True, error_model="numpy")
def _two_class_residual_sums(
    scores: FloatArray, codes: NDArray[Any], weight: FloatArray
) -> tuple[float, float]:
    """Two classes need one exponential a row, that of the difference of the scores."""
    m = scores.shape[1]
    margin, lesser = np.empty(_BLOCK), np.empty(_BLOCK)
    total, logarithm = np.empty(_BLOCK), np.empty(_BLOCK)
    log_loss, error = 0.0, 0.0
    for start in range(0, m, _BLOCK):
        n = min(_BLOCK, m - start)
        first, second = scores[0, start : start + n], scores[1, start : start + n]
        y, w = codes[start : start + n], weight[start : start + n]
        for i in range(n):
            margin[i] = (2 * y[i] - 1) * (second[i] - first[i])
            lesser[i] = -abs(margin[i])
        error += _add_up(w, margin[:n] < 0.0) + _add_up(w, (margin[:n] == 0.0) * y)
        _exponentials(lesser[:n])
        for i in range(n):
            total[i] = 1.0 + lesser[i]
        _logarithms(total[:n], logarithm)
        for i in range(n):
            logarithm[i] += max(-margin[i], 0.0)
            other = (lesser[i] if margin[i] >= 0.0 else 1.0) / total[i]
            second[i] = (2 * y[i] - 1) * w[i] * other
            first[i] = -second[i]
        log_loss += _add_up(w, logarithm[:n])
    return log_loss, error


@njit(cache=True, error_model="numpy", fastmath={"contract"})
def _exponentials(values: FloatArray) -> None:
    """Replace finite numbers <= 0, or -inf, by their exponentials."""
    n = len(values)
    rounded = np.empty(n)
    integers = rounded.view(np.int64)
    for i in range(n):  # exp(x) = 2^j exp(f), |f| <= ln 2 / 2
        x = max(values[i], _LOWEST)
        rounded[i] = x * _LOG2_E + _ROUND
        j = rounded[i] - _ROUND
        f = (x - j * _LN2_HIGH) - j * _LN2_LOW
        values[i] = _exp_near_zero(f) * (x > _LOWEST)
    for i in range(n):  # 2^j from its bits
        integers[i] = (integers[i] + 1023) << 52
    for i in range(n):
        values[i] *= rounded[i]


@njit(cache=True, fastmath={"contract"}, inline="always")
def _exp_near_zero(f: float) -> float:
    """Taylor polynomial of degree 13, exact to rounding for |f| <= ln 2 / 2."""
    p = 1.0 / 6227020800.0
    p = p * f + 1.0 / 479001600.0
    p = p * f + 1.0 / 39916800.0
    p = p * f + 1.0 / 3628800.0
    p = p * f + 1.0 / 362880.0
    p = p * f + 1.0 / 40320.0
    p = p * f + 1.0 / 5040.0
    p = p * f + 1.0 / 720.0
    p = p * f + 1.0 / 120.0
    p = p * f + 1.0 / 24.0
    p = p * f + 1.0 / 6.0
    p = p * f + 0.5
    return (p * f + 1.0) * f + 1.0


@njit(cache=True)
def _lost_ties(
    likelihoods: FloatArray, codes: NDArray[Any], total: FloatArray, weight: FloatArray
) -> float:
    """Weight of the rows whose class shares the peak with an earlier one."""
    lost = 0.0
    for i in range(len(weight)):
        if total[i] >= 2.0 and likelihoods[codes[i], i] == 1.0:
            for k in range(codes[i]):
                if likelihoods[k, i] == 1.0:
                    lost += weight[i]
                    break
    return lost


@njit(cache=True, fastmath=True)
def _add_up(weight: FloatArray, values: NDArray[Any]) -> float:
    """Weighted sum, in any order."""
    total = 0.0
    for i in range(len(weight)):
        total += weight[i] * values[i]
    return total


@njit(cache=True, error_model="numpy", fastmath={"contract"})
def _logarithms(values: FloatArray, logarithms: FloatArray) -> None:
    """Natural logarithms of finite numbers >= 1."""
    n = len(values)
    fractions, exponents = values.copy(), np.empty(n)
    # Unsigned, because processors shift no signed numbers in parallel.
    bits, integers = fractions.view(np.uint64), exponents.view(np.uint64)
    for i in range(n):  # t = 2^e f, sqrt(1/2) <= f < sqrt(2)
        e = (bits[i] - _SQRT_HALF_BITS) >> _MANTISSA
        bits[i] -= e << _MANTISSA
        integers[i] = e + _ROUND_BITS
    for i in range(n):  # log f = 2 artanh s, s = (f - 1) / (f + 1)
        s = (fractions[i] - 1.0) / (fractions[i] + 1.0)
        q = s * s
        p = q / 21.0 + 1.0 / 19.0
        p = p * q + 1.0 / 17.0
        p = p * q + 1.0 / 15.0
        p = p * q + 1.0 / 13.0
        p = p * q + 1.0 / 11.0
        p = p * q + 1.0 / 9.0
        p = p * q + 1.0 / 7.0
        p = p * q + 1.0 / 5.0
        p = p * q + 1.0 / 3.0
        e_log_2 = (exponents[i] - _ROUND) * _LN2
        logarithms[i] = e_log_2 + 2.0 * (s + s * q * p)
