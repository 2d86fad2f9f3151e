"""The scalar equations behind the scores, for arrays and for the compiler.

Every score depends on a row only through its squared distance M to the class centre:
it is a closed form at the root x of one increasing function D(x) = rho. Each
`Equation` holds a start for x, one fourth-order Householder update (a factor of x)
and the score at the root. All are plain arithmetic, so that the same text serves
NumPy arrays and, in `prudent.optimistic.kernels`, vectorised machine code. Logarithms
appear only in A and B below: no term cancels, however small the radius.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from prudent.core.logarithm import LOG2_HIGH, LOG2_LOW, split_log

# A fourth-order step below TOLERANCE leaves no error above rounding.
TOLERANCE, MAX_SWEEPS = 1e-4, 30


class Equation(NamedTuple):
    """Root finding problem of one score.

    `start(M, d, rho, a, b)`, `update(M, x, d, rho)` and `value(M, x, d, rho)`, with
    squared distance M, root x, number of features d, radius rho and two constants
    a, b of (d, rho) that fit the start to its limits in M.
    """

    start: Callable[..., Any]
    update: Callable[..., Any]
    value: Callable[..., Any]


def log1p_excess(z: Any, inverse: Any) -> Any:
    """A(z) = z - log(1 + z) for z >= 0, to full relative accuracy.

    `inverse` is 1/(1 + z), which the callers have: divisions are what a sweep costs.
    """
    u = 1.0 + z
    k, f, tail = split_log(u)
    lost = z - (u - 1.0)  # what rounding took from 1 + z
    return (
        ((u - 1.0) - f - k * LOG2_HIGH)
        + tail
        + (lost * ((z - 0.5 * lost) * inverse) - k * LOG2_LOW)
    )


def log1p_remainder(z: Any, inverse: Any) -> Any:
    """B(z) = log(1 + z) - z/(1 + z) for z >= 0, to full relative accuracy."""
    u = 1.0 + z
    k, f, tail = split_log(u)
    lost = z - (u - 1.0)
    return (
        k * LOG2_HIGH
        + (((f - (u - 1.0)) + f * (u - 1.0)) * inverse - tail)
        + (lost * ((z - 0.5 * lost) * inverse) * inverse + k * LOG2_LOW)
    )


def _householder_step(newton: Any, a: Any, b: Any) -> Any:
    """Fourth-order step for newton = f/f', a = f''/(2 f'), b = f'''/(6 f')."""
    bend = (1.0 - a * newton) / (1.0 - newton * (2.0 * a - b * newton))
    # Far from the root the bend may lose its sign; Newton's direction is right.
    return newton * np.minimum(np.maximum(bend, 0.25), 4.0)


def _factor(newton: Any, a: Any, b: Any) -> Any:
    """Factor of x by the same step with all derivatives relative to x."""
    return np.maximum(1.0 - _householder_step(newton, a, b), 0.05)


# Optimistic Gaussian (Theorem 4.1): x = t = 1/gamma and, with w = M t/(1+t),
# D(t) = d A(t) + B(w).


def gaussian_upper_start(M: Any, d: Any, rho: Any, a: Any, b: Any) -> Any:
    """Limits: gamma = a at M = 0 and b M at infinity."""
    return 1.0 / np.sqrt(a * a + (b * M) * (b * M))


def gaussian_upper_update(M: Any, t: Any, d: Any, rho: Any) -> Any:
    """Factor of t towards D(t) = d A(t) + B(M t / (1 + t)) = rho."""
    i = 1.0 / (1.0 + t)
    w = M * t * i
    c = 1.0 / (1.0 + w)
    r = M * i * c
    excess = d * log1p_excess(t, i) + log1p_remainder(w, c) - rho
    slope = 1.0 / (d + r * r)
    p = 1.0 - i * c
    h = p * (r * r * slope)
    a = 0.5 * i - h
    b = p * h - i * (2.0 * h + t * i) * (1.0 / 3.0)
    return _factor(excess * (1.0 + t) / t * slope / t, a, b)


def gaussian_upper_value(M: Any, t: Any, d: Any, rho: Any) -> Any:
    """L_up + log det S = d t - rho - M (1 + t) / (1 + t + M t)."""
    return d * t - rho - M * ((1.0 + t) / (1.0 + t + M * t))


# Pessimistic Gaussian, the other root of the same equation: t = -1/(1+k) with the
# multiplier k > M; x = e = k - M and D(e) = d B(1/k) + A(M/e).


def gaussian_lower_start(M: Any, d: Any, rho: Any, a: Any, b: Any) -> Any:
    """Limits: k = a at M = 0 and e = b M at infinity."""
    low = np.maximum(a - M, 0.0)
    return np.sqrt(low * low + (b * M) * (b * M))


def gaussian_lower_update(M: Any, e: Any, d: Any, rho: Any) -> Any:
    """Factor of e towards D(e) = d B(1 / k) + A(M / e) = rho, k = M + e."""
    k = M + e
    p = 1.0 / (1.0 + k)
    both = 1.0 / (k * e)
    v = M * k * both
    share = e * e * both
    rest = e * p
    dp = d * p * p
    v2 = v * v
    excess = d * log1p_remainder(e * both, k * p) + log1p_excess(v, e * e * both) - rho
    slope = 1.0 / (dp + v2)
    s1 = -2.0 * (dp * rest + v2) * slope
    s2 = -2.0 * (dp * rest * (1.0 - 3.0 * rest) - 2.0 * v2) * slope
    q = 1.0 - share
    a = 0.5 * (q + s1)
    b = (q * (1.0 - 2.0 * share + 2.0 * s1) + s2) * (1.0 / 6.0)
    newton = -excess * slope * (k * k * both)
    step = np.minimum(np.maximum(_householder_step(newton, a, b), -2.0), 2.0)
    # The unknown is log e: exp(-step) by its (2, 2) Pade form keeps the order.
    even = 1.0 + step * step * (1.0 / 12.0)
    return (even - 0.5 * step) / (even + 0.5 * step)


def gaussian_lower_value(M: Any, e: Any, d: Any, rho: Any) -> Any:
    """L_low + log det S = -(rho + k M / e + d / (k + 1)), k = M + e."""
    k = M + e
    return -(rho + k * (M / e) + d / (k + 1.0))


# Optimistic nonparametric (Theorem 3.1), for rows beyond the reach of the ball,
# M > expm1(rho): x = s in (0, M), gamma = M/s - 1, D(s) = B(s) + s^2/(M (1+s)).


def nonparametric_start(M: Any, d: Any, rho: Any, a: Any, b: Any) -> Any:
    """Values: s = 1/sqrt(a + b) at M = 1 and 1/sqrt(a) at infinity."""
    return 1.0 / np.sqrt(a + b / M)


def nonparametric_upper_update(M: Any, s: Any, d: Any, rho: Any) -> Any:
    """Factor of s towards D(s) = B(s) + s^2 / (M (1 + s)) = rho."""
    inverse = 1.0 / M
    i = 1.0 / (1.0 + s)
    m = 1.0 + inverse
    excess = log1p_remainder(s, i) + s * inverse * (s * i) - rho
    slope = 1.0 / (1.0 + (s + 2.0) * inverse)
    a = (m * i - 0.5) * slope
    b = s * i * (1.0 - 3.0 * m * i) * (slope * (1.0 / 3.0))
    w = (1.0 + s) / s
    return _factor(excess * w * w * slope, a, b)


def nonparametric_upper_value(M: Any, s: Any, d: Any, rho: Any) -> Any:
    """q_up = (M - s)^2 / (M (1 + s))."""
    return (M - s) / M * ((M - s) / (1.0 + s))


# Pessimistic nonparametric, the other root: k = M (1+v)/v, x = v and
# D(v) = A(v) + v^2/(M (1+v)). Its start has the form of the optimistic one.


def nonparametric_lower_update(M: Any, v: Any, d: Any, rho: Any) -> Any:
    """Factor of v towards D(v) = A(v) + v^2 / (M (1 + v)) = rho."""
    inverse = 1.0 / M
    i = 1.0 / (1.0 + v)
    excess = log1p_excess(v, i) + v * inverse * (v * i) - rho
    slope = 1.0 / (1.0 + v + (v + 2.0) * inverse)
    a = (0.5 + inverse * i) * slope
    b = -v * i * (1.0 + 3.0 * inverse * i) * (slope * (1.0 / 3.0))
    w = (1.0 + v) / v
    return _factor(excess * w * w * slope, a, b)


def nonparametric_lower_value(M: Any, v: Any, d: Any, rho: Any) -> Any:
    """q_low = M (1 + v) + 2 v + v^2 / (M (1 + v))."""
    move = v / (1.0 + v)
    return M * (1.0 + v) + 2.0 * v + move * v / M


GAUSSIAN_UPPER = Equation(
    gaussian_upper_start, gaussian_upper_update, gaussian_upper_value
)
GAUSSIAN_LOWER = Equation(
    gaussian_lower_start, gaussian_lower_update, gaussian_lower_value
)
NONPARAMETRIC_UPPER = Equation(
    nonparametric_start, nonparametric_upper_update, nonparametric_upper_value
)
NONPARAMETRIC_LOWER = Equation(
    nonparametric_start, nonparametric_lower_update, nonparametric_lower_value
)


#: The equation of each score, by likelihood and end.
EQUATIONS = {
    ("gaussian", "upper"): GAUSSIAN_UPPER,
    ("gaussian", "lower"): GAUSSIAN_LOWER,
    ("nonparametric", "upper"): NONPARAMETRIC_UPPER,
    ("nonparametric", "lower"): NONPARAMETRIC_LOWER,
}
