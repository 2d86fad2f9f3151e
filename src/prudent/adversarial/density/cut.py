"""Cuts of held-out scores whose false-alarm rate is known in advance."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from prudent.core.binomial import high_probability_rank, mean_rank
from prudent.core.types import FloatArray

GuaranteeKind = Literal["mean", "high_probability", "exact"]


def choose_rank(
    kind: GuaranteeKind, n_scores: int, rate: float, confidence: float, coin: float
) -> int:
    """Rank k: reject below the k-th smallest of `n_scores` held-out scores.

    Parameters
    ----------
    kind : {"mean", "high_probability", "exact"}
        False-alarm rate at most `rate` on average, with probability `confidence`
        over the held-out scores, or exactly `rate` on average.
    n_scores : int
        Size m of the calibration set.
    rate : float
        In (0, 1).
    confidence : float
        In (0, 1), for "high_probability".
    coin : float
        Uniform in [0, 1), for "exact": k is rounded up from (m + 1) rate with
        probability its fractional part.

    Returns
    -------
    int
        0: no cut keeps the promise, reject nothing.
    """
    if kind == "high_probability":
        return high_probability_rank(n_scores, rate, confidence)
    rank = mean_rank(n_scores, rate)
    if kind == "exact" and coin < (n_scores + 1) * rate - rank:
        return upper_rank(n_scores, rate)
    return rank


def upper_rank(n_scores: int, rate: float) -> int:
    """Larger of the two ranks of "exact": (m + 1) rate rounded up, at most m."""
    rank = mean_rank(n_scores, rate)
    is_whole = (n_scores + 1) * rate - rank <= 1e-12 * n_scores
    return rank if is_whole else min(rank + 1, n_scores)


def fewest_scores(kind: GuaranteeKind, rate: float, confidence: float) -> int:
    """Smallest calibration set that permits a cut (rank 1) at all.

    Examples
    --------
    >>> from prudent.adversarial.density.cut import fewest_scores
    >>> fewest_scores("mean", 0.05, 0.95), fewest_scores("high_probability", 0.05, 0.95)
    (19, 59)
    """
    if kind == "high_probability":
        return math.ceil(math.log(1 - confidence) / math.log1p(-rate) - 1e-9)
    return max(1, math.ceil(1 / rate - 1 - 1e-9))


def p_values(sorted_scores: FloatArray, scores: FloatArray) -> FloatArray:
    """Share (1 + #{s_i <= s}) / (m + 1) of the held-out scores not above each."""
    not_above = np.searchsorted(sorted_scores, scores, side="right")
    return (1 + not_above) / (len(sorted_scores) + 1)


def scale_to_rate(rejection: FloatArray, rate: float, largest: float) -> float:
    """Largest t <= `largest` with sum_i min(1, t r_i) + 1 <= (m + 1) rate.

    For exchangeable rows, rejecting a new one with probability min(1, t r) then
    raises false alarms at rate `rate` at most on average, because the sum rises
    with t and one row adds at most 1.

    Parameters
    ----------
    rejection : ndarray of shape (m,)
        r_i of the calibration rows, in [0, 1].
    rate : float
        In (0, 1).
    largest : float
        Cap of t, > 0.

    Returns
    -------
    float
        0 when (m + 1) rate < 1.
    """
    budget = (len(rejection) + 1) * rate * (1 + 4e-16) - 1
    if budget <= 0:
        return 0.0
    rising = np.sort(rejection[rejection > 0])
    if len(rising) <= budget:
        return largest
    # sum_i min(1, t r_i) <= j + t (sum without the j largest), with equality for
    # the right j: the largest root of these lines.
    rest = np.cumsum(rising)[::-1]
    return min(largest, float(np.max((budget - np.arange(len(rest))) / rest)))
