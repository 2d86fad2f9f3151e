"""Exact binomial intervals and order-statistic levels."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any, Literal

import numpy as np
from scipy.special import betaincc, betaincinv, ndtri
from scipy.stats import hypergeom

from prudent.core.types import IntArray
from prudent.core.validation import shown


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


def binomial_tail(successes: Any, n: Any, rate: Any) -> Any:
    """P(Bin(n, rate) <= successes) for 0 <= successes < n, element by element.

    To 1e-15 relative also at a million rows, where `scipy.special.bdtr` is not.
    """
    return betaincc(successes + 1, n - successes, rate)


def check_fraction(
    name: str, value: Any, interval: Literal["(0, 1)", "(0, 1]", "[0, 1]"] = "(0, 1)"
) -> None:
    """Refuse a parameter that is no number of an interval."""
    inside = isinstance(value, Real) and 0 <= float(value) <= 1
    ends = {0: "[" in interval, 1: "]" in interval}
    if not (inside and ends.get(value, True)):
        raise ValueError(f"`{name}` must lie in {interval}, got {shown(value)}.")


def _check_counts(successes: float, n: float, level: float) -> None:
    if not n > 0:
        raise ValueError(f"`n` must be > 0, got {shown(n)}.")
    if not 0 <= successes <= n:
        raise ValueError(
            f"`successes` must lie in [0, {shown(n)}], got {shown(successes)}."
        )
    check_fraction("level", level)
