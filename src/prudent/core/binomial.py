"""Exact binomial intervals and order-statistic levels."""

from __future__ import annotations

import math
from functools import lru_cache
from numbers import Real
from typing import Any, Literal

import numpy as np
from scipy.special import betaincc, betaincinv, gammaln, ndtri
from scipy.stats import binom, hypergeom

from prudent.core.types import FloatArray, IntArray
from prudent.core.validation import shown

# Up to this many rows every rank bounds its order statistic; of more rows 4096 do.
ALL_RANKS = 2048
MANY_RANKS = 4096
# The crossing probability is met to this relative accuracy, from below.
CROSSING_ACCURACY = 1e-4
# Standard deviations above the mean beyond which a bridge of n points has no mass that
# shows. Leaving it out makes the crossing probability larger, never smaller.
NO_MASS = 8.5


def clopper_pearson(
    successes: float, n: float, *, level: float = 0.05
) -> tuple[float, float]:
    """Exact two-sided interval of a proportion, of confidence 1 - `level`.

    P(Bin(n, lower) >= successes) = level / 2 = P(Bin(n, upper) <= successes)
    (Clopper and Pearson 1934).
    """
    _check_counts(successes, n, level)
    lower = (
        0.0
        if successes == 0
        else float(betaincinv(successes, n - successes + 1, level / 2))
    )
    return lower, upper_limit(successes, n, level=level / 2)


def upper_limit(successes: float, n: float, *, level: float = 0.05) -> float:
    """Exact one-sided upper limit of a proportion, of confidence 1 - `level`."""
    _check_counts(successes, n, level)
    if successes == n:
        return 1.0
    return float(betaincinv(successes + 1, n - successes, 1 - level))


def upper_limits(successes: Any, n: Any, *, level: float) -> FloatArray:
    """Exact one-sided limits as `upper_limit`, element by element; 1 of no rows."""
    counts, rows = np.asarray(successes), np.asarray(n)
    limits = np.ones(counts.shape)
    limited = counts < rows
    some = counts[limited]
    limits[limited] = betaincinv(some + 1, rows[limited] - some, 1 - level)
    return limits


def beta_binomial_tails(
    successes: float, n: float, rank: int, n_calibration: int
) -> tuple[float, float]:
    """P(V <= successes) and P(V >= successes), V the count below an order statistic.

    V of `n` new rows score below the `rank`-th smallest of `n_calibration`
    exchangeable scores without ties: the rate is drawn from
    Beta(rank, n_calibration + 1 - rank), V from the binomial law of that rate. Among
    the ranks of all n + n_calibration scores, V >= v says that the first v + rank - 1
    hold fewer than `rank` calibration scores, whose number is hypergeometric; so both
    tails are exact and cost nothing at any n.
    """
    n, below, reached = round(n), math.floor(successes), math.ceil(successes)
    if rank < 1 or rank > n_calibration:  # no row, or every row, scores below
        certain = 0 if rank < 1 else n
        return float(below >= certain), float(reached <= certain)
    total = n + n_calibration
    at_most = hypergeom.sf(rank - 1, total, n_calibration, min(below + rank, total))
    at_least = (
        1.0
        if reached == 0
        else hypergeom.cdf(rank - 1, total, n_calibration, reached + rank - 1)
    )
    return float(at_most), float(at_least)


def mean_rank(n_calibration: int, rate: float) -> int:
    """Largest k with k / (n_calibration + 1) <= rate; 0 if there is none.

    A new exchangeable score lies strictly below the k-th smallest of
    `n_calibration` scores with probability at most k / (n_calibration + 1).
    """
    check_fraction("rate", rate)
    # The product may fall an ulp below the integer it stands for (19 = 0.95 * 20).
    return min(
        n_calibration, math.floor((n_calibration + 1) * rate * (1 + 4e-16) + 1e-12)
    )


def high_probability_rank(n_calibration: int, rate: float, confidence: float) -> int:
    """Largest k whose false-alarm rate is <= rate with probability `confidence`, or 0.

    Given the calibration scores, the chance that a new score lies strictly below
    the k-th smallest is Beta(k, n_calibration + 1 - k); it is at most `rate` with
    probability P(Bin(n_calibration, rate) >= k).
    """
    check_fraction("rate", rate)
    check_fraction("confidence", confidence)
    low, high = 0, n_calibration
    while low < high:
        middle = (low + high + 1) // 2
        if binomial_tail(middle - 1, n_calibration, rate) <= 1 - confidence:
            low = middle
        else:
            high = middle - 1
    return low


def fewest_rows(rate: float, confidence: float | None = None) -> int:
    """Smallest n that permits a cut at rank 1, which none of the rows lies below.

    With `confidence` the smallest n with (1 - rate)^n <= 1 - confidence (`n` rows of
    which none is wrong certify the rate); on average that with 1 / (n + 1) <= rate.

    Examples
    --------
    >>> from prudent.core.binomial import fewest_rows
    >>> fewest_rows(0.05), fewest_rows(0.05, 0.95)
    (19, 59)
    """
    check_fraction("rate", rate)
    if confidence is None:
        return max(1, math.ceil(1 / rate - 1 - 1e-9))
    check_fraction("confidence", confidence)
    level = 1 - confidence
    n = max(1, math.ceil(math.log(level) / math.log1p(-rate)))
    # The quotient may fall an ulp to either side of the integer it stands for.
    while most_wrong(n, rate, level) < 0:
        n += 1
    while n > 1 and most_wrong(n - 1, rate, level) >= 0:
        n -= 1
    return n


def most_wrong(n: int, rate: float, level: float) -> int:
    """Largest c with P(Bin(n, rate) <= c) <= level; -1 if there is none.

    Among `n` rows at most that many may be wrong for a test at `level` to refute
    every error rate above `rate`.
    """
    check_fraction("rate", rate)
    low, high = -1, n
    while low < high - 1:
        middle = (low + high) // 2
        if binomial_tail(middle, n, rate) <= level:
            low = middle
        else:
            high = middle
    return low


def fewest_answered(n: int, share: float, level: float) -> int:
    """Smallest k with P(Bin(n, share) >= k) <= level; n + 1 if there is none.

    If at least so many of `n` rows lie above a threshold that is chosen after looking,
    a share above it of at least `share` is promised wrongly with probability at most
    `level`: wherever the share is smaller, these rows are among those of the first
    `share` of the population.
    """
    check_fraction("share", share, "(0, 1]")
    return n + 1 if share == 1 else n - most_wrong(n, 1 - share, level)


def queue_length(share: float, rows: int, chance: float) -> int:
    """Smallest q with P(Bin(rows, share) <= q) >= chance."""
    return int(binom.ppf(chance, rows, share))


def share_of_queue(length: int, rows: int, chance: float) -> float:
    """Largest share with P(Bin(rows, share) <= length) >= chance."""
    return 1.0 if length >= rows else upper_limit(length, rows, level=chance)


def fewest_rows_for(wrong: IntArray, rate: float, level: float) -> IntArray:
    """Smallest n with P(Bin(n, rate) <= c) <= level, for each c of `wrong`.

    Near the n of the normal law with its correction for skewness.
    """
    z, odd = -ndtri(level), 1 - 2 * rate
    shifted = np.maximum(wrong + 0.5 - (z**2 - 1) * odd / 6, 0)
    spread = z * math.sqrt(rate * (1 - rate))
    root = spread + np.sqrt(spread**2 + 4 * rate * shifted)
    guess = np.rint((root / (2 * rate)) ** 2).astype(np.intp)
    low, high = np.maximum(guess - 2, wrong), np.maximum(guess + 2, wrong + 1)
    step = 4
    while (few := binomial_tail(wrong, high, rate) > level).any():
        low, high, step = np.where(few, high, low), high + step * few, 2 * step
    step = 4
    while True:  # of n = c rows as many may be wrong: always too few
        above = np.maximum(low, wrong + 1)
        many = (low > wrong) & (binomial_tail(wrong, above, rate) <= level)
        if not many.any():
            break
        high = np.where(many, low, high)
        low, step = np.where(many, np.maximum(low - step, wrong), low), 2 * step
    while (high - low > 1).any():
        middle = np.where(high - low > 1, (low + high) // 2, high)
        enough = binomial_tail(wrong, middle, rate) <= level
        high, low = np.where(enough, middle, high), np.where(enough, low, middle)
    return high


@lru_cache(maxsize=256)
def simultaneous_level(n: int, level: float) -> float:
    """Pointwise level at which the upper limits of all n + 1 counts hold at once.

    Parameters
    ----------
    n : int
        Rows, >= 1.
    level : float
        Probability that any of the limits is false, in (0, 1).

    Returns
    -------
    float
        The largest g (to 1e-4 of its crossing probability, from below) with
        P(U_(i) > u_i for some i) <= level, where U_(1) <= ... <= U_(n) are the order
        statistics of n uniform numbers and u_i = betaincinv(i, n + 1 - i, 1 - g). Of
        more than 2048 rows only the ranks of `simultaneous_limits` count.

    Notes
    -----
    The uniform numbers are the events before time 1 of a Poisson process of intensity
    n, given that there are n. They stay below u_1 <= ... <= u_n iff at each u_i at
    least i events have happened; the law of the paths that have stayed is convolved
    with the events between one limit and the next (Noe 1972; Moscovich and Nadler
    2017).

    Examples
    --------
    >>> from prudent.core.binomial import simultaneous_level
    >>> print(f"{simultaneous_level(100, 0.05):.5f}")
    0.00246
    """
    if n < 1:
        raise ValueError(f"`n` must be at least 1, got {shown(n)}.")
    check_fraction("level", level)
    if n == 1:
        return level
    ranks = _bounded_ranks(n)
    # Between a union bound over the ranks and one rank alone. In logarithms the
    # crossing is nearly a straight line of the level, so that a few secant steps meet
    # it; they aim a little below, where the answer must lie.
    below, above = math.log(level / len(ranks)), math.log(level)
    aim = -CROSSING_ACCURACY / 2
    pointwise, slope = (below + above) / 2, 1.0
    last: tuple[float, float] | None = None
    while True:
        crossing = _crossing(n, ranks, math.exp(pointwise))
        excess = math.log(crossing / level)
        if 2 * aim <= excess <= 0:
            return math.exp(pointwise)
        if excess > 0:
            above = pointwise
        else:
            below = pointwise
        if last is not None:
            slope = (excess - last[1]) / (pointwise - last[0])
        last = pointwise, excess
        pointwise += (aim - excess) / slope
        if not below < pointwise < above:
            pointwise = (below + above) / 2


@lru_cache(maxsize=64)
def simultaneous_limits(n: int, level: float) -> FloatArray:
    """Upper limits of a rate for each count of n rows, at all thresholds at once.

    Parameters
    ----------
    n : int
        Rows, >= 1.
    level : float
        Probability that any of the limits is false, in (0, 1).

    Returns
    -------
    ndarray of shape (n + 1,)
        `limits[v]` bounds the rate of rows on one side of a threshold (itself on either
        side), where v of the n rows are: U(v, n, g) = betaincinv(v + 1, n - v, 1 - g)
        with g of `simultaneous_level`, and 1 for v = n. With probability 1 - `level`
        all limits hold at all thresholds; ties only help. Of more than 2048 rows v + 1
        is rounded up to one of 4096 ranks. Not to be written to.

    Notes
    -----
    Scores are quantiles F^{-1}(U_i) of uniform numbers. If v rows lie beyond t, then
    the rate F(t) is at most that of the (v + 1)-th score, U_(v+1), which stays below
    its limit.
    """
    level = simultaneous_level(n, level)
    ranks = _bounded_ranks(n)
    used = ranks[np.searchsorted(ranks, np.arange(1, n + 1))]
    limits = np.append(betaincinv(used, n + 1 - used, 1 - level), 1.0)
    limits.flags.writeable = False
    return limits


def _bounded_ranks(n: int) -> IntArray:
    """Ranks whose order statistics are bounded, rising, shape (at most 4098,).

    All of few rows; of many rows they are denser at both ends, in proportion to the
    spread of the order statistics.
    """
    if n <= ALL_RANKS:
        return np.arange(1, n + 1)
    angles = np.pi * np.arange(1, MANY_RANKS + 1) / (2 * (MANY_RANKS + 1))
    ranks = np.rint((n + 1) * np.sin(angles) ** 2).astype(np.intp)
    return np.unique(np.clip(np.concatenate([[1], ranks, [n]]), 1, n))


def _crossing(n: int, ranks: IntArray, level: float) -> float:
    """P(U_(i) > u_i for some i of `ranks`), u_i the upper limit at `level`."""
    limits = betaincinv(ranks, n + 1 - ranks, 1 - level)
    means = n * np.diff(limits, prepend=0.0, append=1.0)
    spread = np.sqrt(n * limits * (1 - limits))
    most = np.minimum(np.ceil(n * limits + NO_MASS * (spread + 4)), n).astype(np.intp)
    log_factorials = gammaln(np.arange(n + 1) + 1.0)
    # law[j] is the probability of first + j events, on paths that have stayed.
    first, law = 0, np.ones(1)
    for rank, last, mean in zip(
        np.append(ranks, n), np.append(most, n), means, strict=True
    ):
        farthest = min(last - first, math.ceil(mean + NO_MASS * (math.sqrt(mean) + 4)))
        events = np.arange(farthest + 1)
        step = np.exp(events * math.log(mean) - mean - log_factorials[: farthest + 1])
        law = np.convolve(law, step)[rank - first : last - first + 1]
        first = rank
    unconditional = math.exp(n * math.log(n) - n - log_factorials[n])
    return 1 - float(law[0]) / unconditional


def binomial_tail(successes: Any, n: Any, rate: Any) -> Any:
    """P(Bin(n, rate) <= successes) for 0 <= successes < n, element by element.

    To 1e-15 relative also at a million rows, where `scipy.special.bdtr` is not.
    """
    return betaincc(successes + 1, n - successes, rate)


def check_fraction(
    name: str, value: Any, interval: Literal["(0, 1)", "(0, 1]", "[0, 1]"] = "(0, 1)"
) -> None:
    """Refuse a parameter that is no number of an interval."""
    # As it is: a whole number may be larger than any double.
    number: Any = value if isinstance(value, Real) else math.nan
    inside = 0 <= number <= 1
    ends = {0: "[" in interval, 1: "]" in interval}
    if not (inside and ends.get(value, True)):
        raise ValueError(f"`{name}` must lie in {interval}, got {shown(value)}.")


def _check_counts(successes: float, n: float, level: float) -> None:
    """Refuse counts outside 0 <= successes <= n, n > 0, and levels outside (0, 1)."""
    if not n > 0:
        raise ValueError(f"`n` must be > 0, got {shown(n)}.")
    if not 0 <= successes <= n:
        raise ValueError(
            f"`successes` must lie in [0, {shown(n)}], got {shown(successes)}."
        )
    check_fraction("level", level)
