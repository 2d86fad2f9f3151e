"""Compiled inner loops of the rejection game.

Imported on first use only, because it loads numba. The `py_func` of each kernel is
the same loop run by the interpreter; the tests hold the two against each other.

The excess of a level is its point divergence minus the bound: > 0 for the `low`
levels (small probability), < 0 for the `high` ones.
"""

from __future__ import annotations

import math

from numba import njit

from prudent.core.types import FloatArray

KL, L2, CHI2 = 0, 1, 2  # positions in divergence.DIVERGENCES


@njit(cache=True)
def log_odds(code: int, scale: float, low: float, high: float, start: float) -> float:
    """Log odds ln(q / (1 - q)) at which q e_low + (1 - q) e_high meets the bound.

    `low` > 0 and `high` < 0 are the excess divergences of the two events, `scale`
    is 1 + bound for chi2 and 1 - bound for hellinger, `start` a guess or nan.
    """
    if code == KL:
        return _kl_log_odds(low, high, start)
    if code == L2:
        gap = (low - high) / 2  # p_high - p_low
        q = (1 - gap + math.sqrt((1 - gap) ** 2 - 2 * high)) / 2
        rest = low / (1 + gap + math.sqrt((1 + gap) ** 2 - 2 * low))
        return math.log(q / rest)
    if code == CHI2:
        root = math.hypot(scale, math.sqrt(low) * math.sqrt(-high))  # no overflow
        return math.log((scale + root) / low)
    # hellinger: sqrt(p) of the two events are scale - low and scale - high
    cross = (scale - low) * (scale - high)
    root = math.sqrt((scale - low) ** 2 - high * (2 * scale - high))
    return 2 * math.log((cross + scale * root) / (low * (2 * scale - low)))


@njit(cache=True)
def _kl_log_odds(low: float, high: float, start: float) -> float:
    """Root x of F = q (low + ln q) + (1 - q) (high + ln(1 - q)), q = 1/(1 + e^-x).

    F is convex in q, at most 0 at the root of its chord and positive at q = 1:
    Newton inside that bracket, with dF/dx = q (1 - q) (low - high + x).
    """
    left, right = math.log(-high / low), math.inf
    x = left if math.isnan(start) else max(start, left)
    for _ in range(200):
        e = math.exp(-abs(x))
        c = math.log1p(e)
        if x > 0:
            scaled = (low - c) + e * (high - x - c)  # (1 + e) F
        else:
            scaled = e * (low + x - c) + (high - c)
        if scaled > 0:
            right = x
        else:
            left = x
        slope = e * (low - high + x)
        step = -scaled * (1 + e) / slope if slope > 0 else 1.0
        if not left <= x + step <= right:
            x = (left + right) / 2 if right < math.inf else left + 1.0
            continue
        x += step
        if abs(step) <= 3e-8 * max(1.0, abs(x)):
            break  # the error left is of the order step ** 2
    return x


@njit(cache=True, error_model="numpy")
def fill(
    code: int,
    scale: float,
    excess: FloatArray,
    mass: FloatArray,
    n_low: int,
    first_high: int,
    bought: float,
    rejection: FloatArray,
) -> tuple[int, float, float]:
    """Ship the supply of the low levels to the high ones by the north-west corner.

    A unit of demand of level h costs theta_lh units of level l; `bought` units are
    added to the lowest level. With the prices a_l (1 for the lowest level) and b_h
    along the path, and z = price / (1 + price) for the last of them, writes the rule
    r_l = z + (1 - z) a_l, r_h = z - (1 - z) b_h into `rejection` (n_levels,).
    Returns the level at which the supply ran out, the demand of it that is served and
    its price; (n_levels, 0, inf) when all are served.
    """
    l, h, n_levels = 0, first_high, len(mass)
    x = log_odds(code, scale, excess[l], excess[h], math.nan)
    theta = math.exp(x)
    a, b = 1.0, theta
    rejection[l], rejection[h] = a, b
    # What level h was served is summed: as a difference from its mass it would vanish
    # where the low levels are tiny.
    capacity, served = mass[l] + bought, 0.0
    while True:
        needed = max(0.0, mass[h] - served) * theta
        # The guesses follow the tangent of ln theta (kl): one Newton step is left
        # when the levels are close.
        if needed <= capacity:
            capacity -= needed
            h += 1
            if h == n_levels:
                rejection[:] = 1.0
                return n_levels, 0.0, math.inf
            served = 0.0
            slope = (1 + 1 / theta) / (excess[l] - excess[h - 1] + x)
            guess = x - (excess[h] - excess[h - 1]) * slope
            x = log_odds(code, scale, excess[l], excess[h], guess)
            theta = math.exp(x)
            b = theta * a
            rejection[h] = b
        else:
            served += capacity / theta
            l += 1
            if l == n_low:
                break
            capacity = mass[l]
            slope = (1 + theta) / (excess[l - 1] - excess[h] + x)
            guess = x - (excess[l] - excess[l - 1]) * slope
            x = log_odds(code, scale, excess[l], excess[h], guess)
            theta = math.exp(x)
            a = b / theta
            rejection[l] = a
    z = b / (1 + b)
    for l in range(n_low):
        rejection[l] = z + rejection[l] / (1 + b)
    rejection[n_low:first_high] = z
    for i in range(first_high, h):
        rejection[i] = max(0.0, b - rejection[i]) / (1 + b)
    rejection[h:] = 0.0
    return h, served, b


@njit(cache=True)
def tightest_pair(
    code: int,
    scale: float,
    low: FloatArray,
    above: FloatArray,
    high: FloatArray,
    below: FloatArray,
) -> tuple[int, int, float]:
    """Pair (l, h) of least theta_lh * above[l] / below[h], and that ratio.

    ln theta is submodular, so the best h of a row never falls with l: the rows are
    halved, O((n_low + n_high) log n_low) instead of n_low * n_high.
    """
    best_l, best_h, best = 0, 0, math.inf
    stack = [(0, len(low), 0, len(high) - 1)]
    while len(stack) > 0:
        start, stop, left, right = stack.pop()
        if start >= stop:
            continue
        middle = (start + stop) // 2
        row_h, row_best = left, math.inf
        x = math.nan
        for h in range(left, right + 1):
            x = log_odds(code, scale, low[middle], high[h], x)
            ratio = math.exp(x) * above[middle] / below[h]
            if ratio < row_best:
                row_h, row_best = h, ratio
        if row_best < best:
            best_l, best_h, best = middle, row_h, row_best
        stack.append((start, middle, left, row_h))
        stack.append((middle + 1, stop, row_h, right))
    return best_l, best_h, best
