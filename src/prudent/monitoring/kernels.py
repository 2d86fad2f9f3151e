"""Loops of the watchers: a continued fraction and two streams of stakes.

They are compiled where a stream is long.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from prudent.core.loops import loop

TINY = 1e-300
LARGEST = 1e300  # of a stake, so that sums stay finite
N_STAKES = 8  # known to the compiler, which then keeps them in registers
BLOCK = 32  # rows for which one logarithm will do


@loop()
def beta_fraction(a: float, b: float, z: float) -> float:
    """Continued fraction F of the incomplete beta: B_z(a, b) = z^a (1-z)^b F / a.

    Modified Lentz; b may be zero or negative, a >= 1, 0 < z < 1.
    """
    c, d = 1.0, 1 - (a + b) * z / (a + 1)
    if abs(d) < TINY:
        d = TINY
    d = 1 / d
    fraction = d
    for m in range(1, 100_000_000):
        even = m * (b - m) * z / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * z / ((a + 2 * m) * (a + 2 * m + 1))
        step = 1.0
        for factor in (even, odd):
            d = 1 + factor * d
            if abs(d) < TINY:
                d = TINY
            c = 1 + factor / c
            if abs(c) < TINY:
                c = TINY
            d = 1 / d
            step *= c * d
        fraction *= step
        if abs(step - 1) < 1e-15:
            break
    return fraction


@loop()
def reserve(elapsed: float) -> float:
    """Stake not yet placed after `elapsed` units: 1 / (1 + log(1 + u))."""
    return 1 / (1 + math.log1p(elapsed))


@loop()
def fill_reserves(left: Any, n: float, per_row: float) -> None:
    """Fill `left` (BLOCK,) with the reserves after n, n + 1, n + 2, ... rows.

    With z = h / (2 + h), log(w + w h) = log w + 2 (z + z^3/3 + z^5/5 + ...): four
    terms are exact for h < 1/32, and no call keeps the loop from running four abreast.
    """
    whole = 1 + n * per_row
    if BLOCK * per_row > whole / 32:
        for j in range(BLOCK):
            left[j] = reserve((n + j) * per_row)
        return
    base, step = 1 + math.log(whole), per_row / whole
    for j in range(BLOCK):
        z = j * step / (2 + j * step)
        square = z * z
        series = 1 + square * (1 / 3 + square * (1 / 5 + square / 7))
        left[j] = 1 / (base + 2 * z * series)


@loop()
def paired_sum(values: Any) -> float:
    """Sum of `N_STAKES` values in two chains, which run side by side."""
    first = second = 0.0
    for i in range(0, N_STAKES, 2):
        first += values[i]
        second += values[i + 1]
    return first + second


@loop()
def add_to_trace(
    trace: Any, n_traced: int, n: float, violations: float, value: float
) -> int:
    """Add a point and return how many there are; a full trace loses every second."""
    trace[n_traced, 0] = n
    trace[n_traced, 1] = violations
    trace[n_traced, 2] = value
    n_traced += 1
    if n_traced == len(trace):
        n_traced //= 2
        for i in range(n_traced):
            trace[i] = trace[2 * i + 1]
    return n_traced


@loop(rows=0)
def restart_rows(
    losses: Any, stakes: Any, counts: Any, trace: Any, ratios: Any, settings: Any
) -> None:
    """Bet on the losses of rows, in order; all but the last two arrays change.

    `stakes` (N_STAKES,); `counts`: rows, violations, e-value, its peak, rows at the
    alarm or 0, spacing of the trace, its points; `trace` (256, 3): rows, violations,
    e-value;
    `settings`: bound, rank (0: no urn), calibration rows + 1, alarm.
    """
    bound, rank, positions, threshold = settings
    if_not = 1 / (1 + (ratios - 1) * bound)
    if_so = ratios * if_not
    factor = if_not.copy()
    n, violations, value, peak, alarm, spacing, n_traced = counts
    reserves, place = np.empty(BLOCK), int(n % BLOCK)
    fill_reserves(reserves, n - place, bound)
    left = reserves[place]
    to_go = int(spacing - n % spacing)  # rows to the next point of the trace
    for t in range(len(losses)):
        loss = losses[t]
        if rank > 0:
            chance = max(bound, (rank + violations) / (positions + n))
            for i in range(N_STAKES):
                if_not[i] = 1 / (1 + (ratios[i] - 1) * chance)
                if_so[i] = ratios[i] * if_not[i]
        n += 1
        place += 1
        if place == BLOCK:
            place = 0
            fill_reserves(reserves, n, bound)
        before, left = left, reserves[place]
        stake = (before - left) / N_STAKES
        if loss == 0:
            for i in range(N_STAKES):
                stakes[i] = (stakes[i] + stake) * if_not[i]
        else:
            for i in range(N_STAKES):
                factor[i] = if_so[i] if loss == 1 else ratios[i] ** loss * if_not[i]
            for i in range(N_STAKES):
                stakes[i] = min((stakes[i] + stake) * factor[i], LARGEST)
        value = left + paired_sum(stakes)
        violations += loss
        peak = max(peak, value)
        if alarm == 0 and value >= threshold:
            alarm = n
        to_go -= 1
        if to_go == 0:
            points = add_to_trace(trace, int(n_traced), n, violations, value)
            if points < n_traced:
                spacing *= 2
            n_traced = points
            to_go = int(spacing - n % spacing)
    counts[0], counts[1], counts[2] = n, violations, value
    counts[3], counts[4], counts[5], counts[6] = peak, alarm, spacing, n_traced


@loop(rows=0)
def urn_rows(
    groups: Any,
    stakes: Any,
    weights: Any,
    sizes: Any,
    totals: Any,
    counts: Any,
    rows_per_unit: float,
    threshold: float,
) -> None:
    """Bet on the groups (n, d) of new rows among reference rows, in order.

    In place: `stakes` (d, J); `sizes` (d, G), reference positions and earlier rows
    of each group; `totals` (d, J), the sums over groups of size times tilt;
    `counts` as in `restart_rows` with the rows of `sizes` in place of violations.
    `weights` (J, G) are the tilts.
    """
    n_rows, n_columns = groups.shape
    n_stakes = stakes.shape[1]
    n, positions = counts[0], counts[1]
    value, peak, alarm = counts[2], counts[3], counts[4]
    left = reserve(n / rows_per_unit)
    for t in range(n_rows):
        n += 1
        before, left = left, reserve(n / rows_per_unit)
        stake = (before - left) / (n_columns * n_stakes)
        value = 0.0
        for j in range(n_columns):
            g = groups[t, j]
            for i in range(n_stakes):
                weight = weights[i, g]
                factor = weight * positions / totals[j, i]
                stakes[j, i] = min((stakes[j, i] + stake) * factor, LARGEST)
                value += stakes[j, i]
                totals[j, i] += weight
            sizes[j, g] += 1
        positions += 1
        value += left
        peak = max(peak, value)
        if alarm == 0 and value >= threshold:
            alarm = n
    counts[0], counts[1], counts[2] = n, positions, value
    counts[3], counts[4] = peak, alarm


@loop(rows=2)
def positions_among(
    reference: Any, reference_coins: Any, values: Any, coins: Any, j: int, found: Any
) -> None:
    """Count the reference rows below each value of column j; equal ones by coins."""
    for t in range(len(values)):
        value, low, high = values[t, j], 0, len(reference)
        while low < high:
            middle = (low + high) // 2
            if reference[middle, j] < value or (
                reference[middle, j] == value
                and reference_coins[middle, j] < coins[t, j]
            ):
                low = middle + 1
            else:
                high = middle
        found[t, j] = low
