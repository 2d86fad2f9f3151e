"""Compiled loops of general use, imported only where rows are many.

Import it lazily: numba takes half a second to load. The disk cache of a compiled
caller watches the caller's file only: touch it after a change here. Loops for few
features hold `LANES` rows side by side, so that the innermost loop runs over rows and
fills the vector registers whatever the number of features.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numba.extending import register_jitable
from numpy.typing import NDArray

from prudent.core.logarithm import LOG2_HIGH, LOG2_LOW, split_log
from prudent.core.types import FloatArray

LANES = 64

_LOG2_E = 1.4426950408889634
_LN2_HIGH, _LN2_LOW = 0.6931471803691238, 1.9082149292705877e-10
#: Adding it rounds to an integer and leaves that in the lowest bits.
_ROUND = 6755399441055744.0
#: exp(x) is zero to every purpose below.
_LOWEST = -700.0

_split = register_jitable(error_model="numpy", fastmath={"contract"})(split_log)


@njit(cache=True, fastmath={"reassoc", "nsz", "contract"})
def add_products(A: Any, B: Any, s1: Any, s2: Any) -> None:  # pragma: no cover
    """Add sum_p a_p and the lower triangle of sum_p a_p b_p' of `LANES` rows.

    Tiles of 2 x 4 features: 6 loads feed 8 multiplications.
    """
    for i in range(0, len(A), 2):
        sum0 = sum1 = 0.0
        for p in range(LANES):
            sum0 += A[i, p]
            sum1 += A[i + 1, p]
        s1[i] += sum0
        s1[i + 1] += sum1
        for j in range(0, i + 2, 4):
            s00 = s01 = s02 = s03 = s10 = s11 = s12 = s13 = 0.0
            for p in range(LANES):
                a0, a1 = A[i, p], A[i + 1, p]
                b0, b1, b2, b3 = B[j, p], B[j + 1, p], B[j + 2, p], B[j + 3, p]
                s00 += a0 * b0
                s01 += a0 * b1
                s02 += a0 * b2
                s03 += a0 * b3
                s10 += a1 * b0
                s11 += a1 * b1
                s12 += a1 * b2
                s13 += a1 * b3
            s2[i, j] += s00
            s2[i, j + 1] += s01
            s2[i, j + 2] += s02
            s2[i, j + 3] += s03
            s2[i + 1, j] += s10
            s2[i + 1, j + 1] += s11
            s2[i + 1, j + 2] += s12
            s2[i + 1, j + 3] += s13


@njit(cache=True, fastmath={"reassoc", "nsz", "contract"})
def add_powers(A: Any, B: Any, third: Any) -> float:  # pragma: no cover
    """Add sum_p (a_p'b_p) b_p to `third`; returns sum_p (a_p'b_p) ||b_p||^2."""
    weighted, squares = np.zeros(LANES), np.zeros(LANES)
    for i in range(len(A)):
        for p in range(LANES):
            weighted[p] += A[i, p] * B[i, p]
            squares[p] += B[i, p] * B[i, p]
    for i in range(len(A)):
        total = 0.0
        for p in range(LANES):
            total += weighted[p] * B[i, p]
        third[i] += total
    fourth = 0.0
    for p in range(LANES):
        fourth += weighted[p] * squares[p]
    return fourth


@njit(cache=True)
def first_rows(
    X: Any, codes: Any, n_classes: int
) -> tuple[FloatArray, NDArray[np.int64]]:  # pragma: no cover
    """First row of each class, and how many rows it has."""
    first = np.zeros((n_classes, X.shape[1]))
    count = np.zeros(n_classes, dtype=np.int64)
    for i in range(len(X)):
        k = codes[i]
        if count[k] == 0:
            first[k] = X[i]
        count[k] += 1
    return first, count


@njit(cache=True)
def class_sums(
    X: Any, codes: Any, weight: Any, origins: Any, s1: Any, s2: Any, s3: Any, s4: Any
) -> None:  # pragma: no cover
    """Add the sums of w b, w b b', w |b|^2 b and w |b|^4 per class, b = x - o.

    Of `s2` (K, p, p) the lower triangles; like `s1` and `s3` (K, p) it is padded:
    p is d rounded up to a multiple of 4. An empty `weight` stands for ones, an
    empty `s4` for leaving out the last two sums.
    """
    n_classes, padded = s1.shape
    n_features = X.shape[1]
    weighted = len(weight) > 0
    # 8 more than LANES: a power of two would put all features in one cache set
    B = np.zeros((n_classes, padded, LANES + 8))
    A = np.zeros_like(B) if weighted else B
    filled = np.zeros(n_classes, dtype=np.int64)
    for i in range(len(X) + n_classes):
        if i < len(X):
            k = codes[i]
            p = filled[k]
            for j in range(n_features):
                B[k, j, p] = X[i, j] - origins[k, j]
            if weighted:
                for j in range(n_features):
                    A[k, j, p] = weight[i] * B[k, j, p]
            filled[k] = p + 1
            if p + 1 < LANES:
                continue
        else:  # what is left of each class, with zeros in the free lanes
            k = i - len(X)
            A[k, :, filled[k] :] = 0.0
            B[k, :, filled[k] :] = 0.0
        add_products(A[k], B[k], s1[k], s2[k])
        if len(s4):
            s4[k] += add_powers(A[k], B[k], s3[k])
        filled[k] = 0


@njit(cache=True, fastmath={"contract"})
def squared_distances(
    X: Any, means: Any, means_lo: Any, factors: Any, out: Any
) -> None:  # pragma: no cover
    """Squared Mahalanobis distances; `factors` (K, p, p) padded like `class_sums`."""
    n_classes, n_features = means.shape
    padded = factors.shape[1]
    rows = np.zeros((padded, LANES))
    B = np.zeros((padded, LANES))
    z0, z1, total = np.empty(LANES), np.empty(LANES), np.empty(LANES)
    for start in range(0, len(X), LANES):
        n_rows = min(LANES, len(X) - start)
        for p in range(n_rows):
            for j in range(n_features):
                rows[j, p] = X[start + p, j]
        for k in range(n_classes):
            for j in range(n_features):
                for p in range(LANES):
                    B[j, p] = (rows[j, p] - means[k, j]) - means_lo[k, j]
            total[:] = 0.0
            for i in range(0, padded, 2):
                z0[:] = 0.0
                z1[:] = 0.0
                for j in range(0, i + 2, 4):
                    u00, u01 = factors[k, i, j], factors[k, i, j + 1]
                    u02, u03 = factors[k, i, j + 2], factors[k, i, j + 3]
                    u10, u11 = factors[k, i + 1, j], factors[k, i + 1, j + 1]
                    u12, u13 = factors[k, i + 1, j + 2], factors[k, i + 1, j + 3]
                    for p in range(LANES):
                        b0, b1, b2, b3 = B[j, p], B[j + 1, p], B[j + 2, p], B[j + 3, p]
                        z0[p] += u00 * b0 + u01 * b1 + u02 * b2 + u03 * b3
                        z1[p] += u10 * b0 + u11 * b1 + u12 * b2 + u13 * b3
                for p in range(LANES):
                    total[p] += z0[p] * z0[p] + z1[p] * z1[p]
            for p in range(n_rows):
                out[start + p, k] = total[p]


# Exponentials and logarithms are written out because neither numba nor NumPy has
# vectorised ones on every processor. Divisions follow NumPy: a check for zero would
# keep the loops from being vectorised.


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
    """Write the natural logarithms of finite numbers > 0."""
    for i in range(len(values)):
        k, f, tail = _split(values[i])
        out[i] = k * LOG2_HIGH + (f - (tail - k * LOG2_LOW))
