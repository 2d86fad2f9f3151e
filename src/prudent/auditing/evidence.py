"""Exact tests of promises: counts, sums of rates, and bets."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft
from scipy.special import betainc
from scipy.stats import betabinom

from prudent.core.types import FloatArray

# Steps into which a rate is cut where sums of rates are tested.
GRID = 200
# Below it the transform has no digits left.
LEAST_P = 1e-12
LARGEST_BET = 0.9


def at_least(successes: float, n: float, rate: float) -> float:
    """P(Bin(n, rate) >= successes).

    Examples
    --------
    >>> from prudent.auditing.evidence import at_least
    >>> round(at_least(64, 400, 0.1), 6)
    0.000125
    """
    if successes <= 0 or rate >= 1:
        return 1.0
    return float(betainc(successes, n - successes + 1, rate))


def rank_sum_p(
    rates: FloatArray, laws: Sequence[tuple[int, int]], n_rows: int | None
) -> float:
    """P-value of "each rate is drawn from Beta(k, m + 1 - k), or stochastically less".

    `laws` holds (k, m) of each draw; `n_rows` is the number of rows on which every rate
    was counted, None where rates are exact. Each rate is cut down to a multiple of
    1 / 200, whose law is known exactly; the laws are convolved.

    Examples
    --------
    >>> import numpy as np
    >>> from prudent.auditing.evidence import rank_sum_p
    >>> round(rank_sum_p(np.full(20, 0.08), [(1, 19)] * 20, None), 4)
    0.0039
    """
    if n_rows is None:
        units = np.floor(rates * GRID).astype(int)
    else:
        units = np.rint(rates * n_rows).astype(int) * GRID // n_rows
    size = next_fast_len(len(rates) * GRID + 1, real=True)
    product = np.ones(size // 2 + 1, dtype=complex)
    for (rank, m), times in Counter(laws).items():
        product *= rfft(_cut_law(rank, m, n_rows), size) ** times
    law = irfft(product, size)
    return min(1.0, max(LEAST_P, float(law[int(units.sum()) :].sum())))


def _cut_law(rank: int, m: int, n_rows: int | None) -> FloatArray:
    """Probabilities of 0 to GRID, the rate times GRID rounded down."""
    if rank < 1 or rank > m:
        return np.eye(GRID + 1)[0 if rank < 1 else GRID]
    if n_rows is None:
        at_most = betainc(rank, m + 1 - rank, np.arange(GRID + 1) / GRID)
        return np.append(np.diff(at_most), 0.0)
    counts = np.arange(n_rows + 1)
    chances = betabinom.pmf(counts, n_rows, rank, m + 1 - rank)
    law = np.bincount(counts * GRID // n_rows, chances, GRID + 1)
    return np.asarray(law, dtype=np.float64)


def betting_log_wealth(
    rates: FloatArray, bounds: FloatArray, *, horizon: int, target: float
) -> FloatArray:
    """Log wealth of bets that the mean of rates in [0, 1] lies above their bounds.

    While the mean of each rate is at most its bound the wealth is a nonnegative
    supermartingale from 1, so that it ever reaches 1/a with probability at most a.

    A bet knows the rates before it and its bound. Laid out for `horizon` draws and a
    log wealth of `target` by then, it is sqrt(2 target / (horizon v)) with v the
    variance of the rates so far, at most 0.9 / bound (Waudby-Smith and Ramdas 2024),
    and three times as much: the wealth is the mean of both.

    Examples
    --------
    >>> import numpy as np
    >>> from prudent.auditing.evidence import betting_log_wealth
    >>> rates = np.tile([0.0, 0.3], 30)
    >>> log_wealth = betting_log_wealth(rates, np.full(60, 0.1), horizon=60, target=7.0)
    >>> round(float(log_wealth[-1]), 2)
    2.56
    """
    bounds = np.broadcast_to(bounds, rates.shape)
    seen = np.arange(1, len(rates) + 1)
    start = max(float(bounds[0] * (1 - bounds[0])), 1e-4) / 4
    mean = (bounds[0] + np.cumsum(rates)) / (seen + 1)
    variance = (start + np.cumsum((rates - mean) ** 2)) / (seen + 1)
    before = np.concatenate([[start], variance[:-1]])
    bets = np.sqrt(2 * target / (horizon * before))
    with np.errstate(divide="ignore"):
        largest = LARGEST_BET / bounds
    wealth = []
    for times in (1.0, 3.0):
        stakes = np.minimum(times * bets, largest)
        # A bound of 0 that is exceeded is refuted for certain.
        gains = np.where((bounds == 0) & (rates > 0), np.inf, stakes * (rates - bounds))
        wealth.append(np.cumsum(np.log1p(gains)))
    return np.logaddexp(*wealth) - math.log(2)
