"""`solve` for few features in one compiled pass; the steps are those of `solver`.

Whatever is not plainly well posed (singular, asymmetric, not finite, no certificate) is
left to the NumPy path, which takes it or says what is wrong. Imported lazily: numba is
slow to load. Loops instead of array expressions: they compile several times faster.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from prudent.minimax.curve import (
    ACCEPTED_GAP,
    END_LOGIT,
    MAX_LOGIT,
    MAX_STEPS,
    ROUNDING,
    TIE_SHIFT,
    TINY_PIVOT,
)

SMALLEST_KAPPA = 1e-12

compiled = njit(cache=True, error_model="numpy")


@compiled
def factorise(M: Any) -> float:  # pragma: no cover
    """Overwrite the lower triangle with its Cholesky factor; the least pivot ratio."""
    least = np.inf
    for j in range(len(M)):
        diagonal = M[j, j]
        pivot = diagonal
        for k in range(j):
            pivot -= M[j, k] * M[j, k]
        if not pivot > 0:
            return -1.0
        least = min(least, pivot / diagonal)
        root = math.sqrt(pivot)
        M[j, j] = root
        for i in range(j + 1, len(M)):
            value = M[i, j]
            for k in range(j):
                value -= M[i, k] * M[j, k]
            M[i, j] = value / root
    return least


@compiled
def forward(L: Any, b: Any, out: Any) -> None:  # pragma: no cover
    """Set out = L^-1 b."""
    for i in range(len(b)):
        value = b[i]
        for k in range(i):
            value -= L[i, k] * out[k]
        out[i] = value / L[i, i]


@compiled
def backward(L: Any, b: Any, out: Any) -> None:  # pragma: no cover
    """Set out = L^-T b."""
    for i in range(len(b) - 1, -1, -1):
        value = b[i]
        for k in range(i + 1, len(b)):
            value -= L[k, i] * out[k]
        out[i] = value / L[i, i]


@compiled
def dot(a: Any, b: Any) -> float:  # pragma: no cover
    """Inner product."""
    total = 0.0
    for i in range(len(a)):
        total += a[i] * b[i]
    return total


@compiled
def scaled(S: Any, scale: Any, out: Any, work: Any) -> float:  # pragma: no cover
    """Scale features, then to average variance 1; the deviation, or -1 if unsound."""
    n = len(S)
    average, largest = 0.0, 0.0
    for i in range(n):
        average += S[i, i] / scale[i] / scale[i] / n
        largest = max(largest, S[i, i])
    if not average > 0:
        return -1.0
    for i in range(n):
        for j in range(n):
            if not abs(S[i, j] - S[j, i]) <= ROUNDING * largest:
                return -1.0
            out[i, j] = work[i, j] = S[i, j] / scale[i] / scale[j] / average
        work[i, i] += ROUNDING
    return math.sqrt(average) if factorise(work) > 0 else -1.0


@compiled
def balance(  # pragma: no cover
    d: Any, X: Any, Y: Any, widths: Any, radii: Any, L: Any, work: Any
) -> tuple[float, float, float, float, float, int]:
    """s, 1 - s, P, Q, tau and steps of the balance; 0 steps if it has no factor.

    Rows of `work` become a, X a and Y a.
    """
    n = len(d)
    (wx, wy), (nx, ny) = widths, radii
    a, Xa, Ya, u, v = work[0], work[1], work[2], work[3], work[4]
    low, high, tau = -MAX_LOGIT, MAX_LOGIT, math.log(wy / wx)
    before = [np.inf, np.inf, np.inf]
    n_iter = 0
    while True:
        n_iter += 1
        small = math.exp(-abs(tau))
        s, t = 1 / (1 + small), small / (1 + small)
        if tau < 0:
            s, t = t, s
        for i in range(n):
            for j in range(i + 1):
                L[i, j] = t * X[i, j] + s * Y[i, j]
        pivot = factorise(L)
        least = n * TINY_PIVOT if n_iter == 1 else 0.0
        if not pivot > 0 or pivot < least or abs(tau) > END_LOGIT:
            return s, t, 0.0, 0.0, tau, 0
        forward(L, d, u)
        backward(L, u, a)
        for i in range(n):
            Xa[i], Ya[i] = dot(X[i], a), dot(Y[i], a)
        forward(L, Xa, u)
        forward(L, Ya, v)
        P, Q, R = dot(Xa, a), dot(Ya, a), dot(u, v)
        kx, ky = t * math.sqrt(P), s * math.sqrt(Q)
        excess = (kx / wx - nx) - (ky / wy - ny)
        relative = abs(excess) / (kx / wx + ky / wy)
        stalled = relative <= 1e-10 and relative > 0.5 * before[0]
        if not relative > 1e-11 or stalled or n_iter == MAX_STEPS:
            return s, t, P, Q, tau, n_iter
        before[0], before[1], before[2] = before[1], before[2], relative
        if excess > 0:
            low = tau
        else:
            high = tau
        x, y = kx / wx + ny, ky / wy + nx
        slope = s * t * R * (1 / (math.sqrt(P) * wx * x) + 1 / (math.sqrt(Q) * wy * y))
        tau += math.log(x / y) / slope
        if not (low < tau and tau < high):
            tau = 0.5 * (low + high)


@compiled
def solve_small(  # pragma: no cover
    d: Any, Sx: Any, Sy: Any, widths: Any, radii: Any, normal: Any
) -> tuple[float, float, float, float, int]:
    """Plane of a well-posed duel, written to `normal`.

    Returns kappa, gap, s, distance_pos and the number of steps; 0 steps mean that
    the NumPy path must take over.
    """
    n = len(d)
    X, Y, L = np.empty((n, n)), np.empty((n, n)), np.empty((n, n))
    work, scale, unit_gap = np.empty((5, n)), np.empty(n), np.empty(n)
    for i in range(n):
        scale[i] = math.sqrt(Sx[i, i] + Sy[i, i])
        unit_gap[i] = d[i] / scale[i]
    spread_x, spread_y = scaled(Sx, scale, X, L), scaled(Sy, scale, Y, L)
    if not (spread_x > 0 and spread_y > 0):
        return 0.0, 0.0, 0.0, 0.0, 0
    wx, wy = widths[0] * spread_x, widths[1] * spread_y
    s, t, P, Q, tau, n_iter = balance(unit_gap, X, Y, (wx, wy), radii, L, work)
    a, Xa, Ya, u, v = work[0], work[1], work[2], work[3], work[4]
    beta, eta, length = math.sqrt(P), math.sqrt(Q), dot(a, unit_gap)
    total = wx * beta + wy * eta
    kappa = (length - radii[0] * wx * beta - radii[1] * wy * eta) / total
    for i in range(n):
        u[i] = unit_gap[i] - t * Xa[i] - s * Ya[i]
    forward(L, u, v)
    residual = math.sqrt(dot(v, v))
    upper = max(
        (t * beta + residual) / wx - radii[0], (s * eta + residual) / wy - radii[1]
    )
    gap = max(max(upper, 0.0) - max(kappa, 0.0), 0.0)
    distance = (kappa + radii[0]) * wx * beta / length
    closed = gap <= ACCEPTED_GAP * abs(kappa) and length / total >= SMALLEST_KAPPA
    if not (closed and distance > TIE_SHIFT and distance < 1 - TIE_SHIFT):
        return 0.0, 0.0, 0.0, 0.0, 0
    for i in range(n):
        normal[i] = a[i] / length / scale[i]
    odds = math.exp(tau) * (spread_x / spread_y) ** 2
    return kappa, gap, odds / (1 + odds), distance, n_iter
