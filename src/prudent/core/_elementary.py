"""Exponentials and logarithms of many numbers, compiled.

Written out because neither numba nor NumPy has vectorised ones on every processor.
Import it lazily: numba takes half a second to load. Divisions follow NumPy: a check
for zero would keep the loops from being vectorised. The disk cache of a caller watches
the caller's file only: touch it after a change here.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from prudent.core.types import FloatArray

_LOG2_E = 1.4426950408889634
_LN2, _LN2_HIGH, _LN2_LOW = np.log(2.0), 0.6931471803691238, 1.9082149292705877e-10
#: Adding it rounds to an integer and leaves that in the lowest bits.
_ROUND = 6755399441055744.0
_ROUND_BITS = np.float64(_ROUND).view(np.uint64)
_SQRT_HALF_BITS = np.sqrt(0.5).view(np.uint64)
_MANTISSA = np.uint64(52)
#: exp(x) is zero to every purpose below.
_LOWEST = -700.0


@njit(cache=True, error_model="numpy", fastmath={"contract"})
def exponentials(values: FloatArray) -> None:
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


@njit(cache=True, error_model="numpy", fastmath={"contract"})
def logarithms(values: FloatArray, out: FloatArray) -> None:
    """Write the natural logarithms of finite numbers >= 1."""
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
        out[i] = e_log_2 + 2.0 * (s + s * q * p)


@njit(cache=True, error_model="numpy", fastmath={"nnan", "nsz", "reassoc", "contract"})
def log_sums(exponents: FloatArray) -> FloatArray:  # pragma: no cover
    """Log of the sum of the exponentials of each row, whose entries it overwrites.

    The largest entry of each row must be finite, the others may be -inf.
    """
    sums, peaks = np.empty(len(exponents)), np.empty(len(exponents))
    for i in range(len(exponents)):
        row = exponents[i]
        peak = row[0]
        for value in row:
            peak = value if value > peak else peak
        for j in range(len(row)):
            row[j] -= peak
        exponentials(row)
        total = 0.0
        for value in row:
            total += value
        sums[i], peaks[i] = total, peak
    logs = np.empty(len(sums))
    logarithms(sums, logs)
    return peaks + logs
