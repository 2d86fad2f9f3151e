"""How many rows a promise needs, and how many it leaves to people."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context, Decimal
from numbers import Integral, Real

import numpy as np
from scipy.special import bdtr
from scipy.stats import binom

from prudent.core.binomial import (
    binomial_tail,
    check_fraction,
    fewest_rows,
    fewest_rows_for,
    most_wrong,
    queue_length,
    share_of_queue,
)
from prudent.core.guarantee import Guarantee
from prudent.core.types import FloatArray, IntArray
from prudent.core.validation import shown


@dataclass(frozen=True, slots=True)
class Plan:
    """Rows to hold out for a promise.

    Attributes
    ----------
    rows : int
        Held-out rows, answered or not.
    rows_answered : int
        Rows among them that the promise counts: answered ones, or rows of the class.
        With a share below 1 their number is random, and this is its rounded mean.
    wrong_allowed : int
        Wrong ones among `rows_answered` with which the bound is still certified.
    power : float
        Probability that the bound is certified if the true rate is the expected one,
        over the number of rows that count and the number of wrong ones.
    rows_without_errors : int
        Fewest counted rows that certify the bound if none is wrong.
    """

    rows: int
    rows_answered: int
    wrong_allowed: int
    power: float
    rows_without_errors: int


def plan(
    *,
    bound: float = 0.05,
    expected: float = 0.02,
    confidence: float = 0.95,
    power: float = 0.8,
    answered_share: float = 1.0,
    claims: float = 1,
) -> Plan:
    """Fewest held-out rows that certify a rate with a given chance.

    That number and every larger one certify the bound with probability at least
    `power`, if the true rate is `expected`.

    Parameters
    ----------
    bound : float, default=0.05
        Error rate (class error, miss rate, ...) to certify, in (0, 1).
    expected : float, default=0.02
        What the rate is expected to be, in [0, `bound`).
    confidence : float, default=0.95
        Confidence of the promise, in (0, 1).
    power : float, default=0.8
        Chance of getting the promise, in (0, 1).
    answered_share : float, default=1.0
        Probability that the promise counts a row, in (0, 1]: that it is answered, or
        of the class in question.
    claims : float, default=1
        Promises that are to hold at once: each is certified at level
        (1 - `confidence`) / `claims`. For a `SelectiveClassifier` about
        (1 - confidence) / level of its
        :func:`prudent.certification.error_boundary` (4 for 500 rows).

    Returns
    -------
    Plan

    Raises
    ------
    ValueError
        If an argument lies outside its range.

    Notes
    -----
    n rows certify the bound with at most c(n) wrong ones, c(n) the largest c with
    P(Bin(n, bound) <= c) <= level. The power g(n) = P(Bin(n, expected) <= c(n)) is a
    saw: it falls while c stays. The answer is the first rank behind the last tooth
    whose end is below `power`.

    With an `answered_share` below 1 that many rows have to count on average: the answer
    is at least n / share. How many of N rows count is random, Bin(N, share), and the
    power is the mean of g over it: with the mean number alone,
    ``plan(expected=0, answered_share=0.5)`` would be sure of 118 rows that are enough
    in 0.54 of cases.

    Examples
    --------
    >>> from prudent import plan
    >>> plan()
    Plan(rows=286, rows_answered=286, wrong_allowed=8, power=0.8..., rows_without_errors=59)

    To certify the error of a class of 2.6 % of the rows:

    >>> plan(expected=0.01, answered_share=0.026).rows
    5003
    """  # noqa: E501
    check_fraction("bound", bound)
    check_fraction("confidence", confidence)
    check_fraction("power", power)
    if not (isinstance(expected, Real) and 0 <= expected < bound):
        raise ValueError(
            f"`expected` must lie in [0, bound = {bound:g}), got {shown(expected)}: a "
            "rate at or above the bound cannot be certified."
        )
    check_fraction("answered_share", answered_share, "(0, 1]")
    if not (isinstance(claims, Real) and claims >= 1):
        raise ValueError(f"`claims` must be at least 1, got {shown(claims)}.")
    level = (1 - confidence) / claims
    answered = fewest_rows(bound, 1 - level)
    if expected > 0:
        answered = _first_row_of_power(bound, expected, level, power)
    if answered_share < 1:
        on_average = math.ceil(answered / answered_share * (1 - 1e-12))
        rows, reached = _rows_of_random_count(
            bound, expected, level, answered_share, power, fewest=on_average
        )
        answered = round(rows * answered_share)
        wrong = most_wrong(answered, bound, level)
    else:
        rows, wrong = answered, most_wrong(answered, bound, level)
        reached = float(binomial_tail(wrong, rows, expected)) if expected else 1.0
    return Plan(
        rows=rows,
        rows_answered=answered,
        wrong_allowed=wrong,
        power=reached,
        rows_without_errors=fewest_rows(bound, 1 - level),
    )


def rows_of_table(needed: int, share: float, *, chance: float = 0.99) -> int:
    """Rows of a table that hold enough of a part of it in most draws.

    Parameters
    ----------
    needed : int
        Rows of the part, >= 1.
    share : float
        Probability that a row is of the part, in (0, 1].
    chance : float, default=0.99
        Probability that there are enough of them, in (0, 1).

    Returns
    -------
    int
        The smallest n with P(Bin(n, share) >= needed) >= chance.

    Examples
    --------
    >>> rows_of_table(59, 0.02)
    3906
    """
    check_fraction("share", share, "(0, 1]")
    check_fraction("chance", chance)
    if share == 1:
        return needed
    rare = 1 - chance
    return _least(lambda n: bdtr(needed - 1, n, share) <= rare, needed - 1, 2 * needed)


def queue_limit(promise: Guarantee, rows: int = 1000, chance: float = 0.99) -> int:
    """How many of so many new rows a capacity promise leaves to people at most.

    A promised share is that of the population; the number among the rows of a day is
    random, and larger on some days.

    Parameters
    ----------
    promise : Guarantee
        An answered share (at least b: at most 1 - b are handed over) or a flagged share
        (at most b).
    rows : int, default=1000
        New rows, >= 1.
    chance : float, default=0.99
        Probability that no more of them come, in (0, 1).

    Returns
    -------
    int
        The smallest q with P(Bin(rows, share) <= q) >= chance.

    Raises
    ------
    ValueError
        If the promise is about something else, or an argument lies outside its range.

    Examples
    --------
    >>> from prudent import Guarantee, queue_limit
    >>> promise = Guarantee(quantity="answered share", bound=0.96, sense=">=")
    >>> queue_limit(promise, chance=0.95), queue_limit(promise)
    (50, 55)
    """
    share = share_of_people(promise)
    if share is None:
        raise ValueError(
            "queue_limit: the promise must be an answered share >= b or a flagged "
            f"share <= b, got {promise.quantity} {promise.sense} {promise.bound:g}."
        )
    if not (isinstance(rows, Integral) and rows >= 1):
        raise ValueError(f"`rows` must be a whole number >= 1, got {shown(rows)}.")
    check_fraction("chance", chance)
    return queue_length(share, int(rows), chance)


def share_of_people(promise: Guarantee) -> float | None:
    """Share of rows that a capacity promise leaves to people; None of other promises.

    All that are not answered, or all that are flagged.
    """
    return {
        ("answered share", ">="): 1 - promise.bound,
        ("flagged share", "<="): promise.bound,
    }.get((promise.quantity, promise.sense))


def queue_in_words(promise: Guarantee, rows: int = 1000) -> str:
    """What a promised share means for the queue of a day, of so many new rows.

    Examples
    --------
    >>> from prudent import Guarantee
    >>> promise = Guarantee(quantity="answered share", bound=0.96, sense=">=")
    >>> print(queue_in_words(promise))
    handed over <= 4% means at most 50 of 1000 rows on 95 of 100 days and 55 on 99; at
    most 40 on 99 days needs 2.77%
    """
    share = share_of_people(promise)
    assert share is not None
    often, nearly_always = (queue_limit(promise, rows, chance=c) for c in (0.95, 0.99))
    name = "flagged" if promise.quantity == "flagged share" else "handed over"
    mean = round(share * rows)
    needed = share_of_queue(mean, rows, 0.99)
    short = Context(prec=3, rounding=ROUND_FLOOR).plus(Decimal(100 * needed))
    return (
        f"{name} <= {100 * share:.4g}% means at most {often} of {rows} rows on 95 of "
        f"100 days and {nearly_always} on 99; at most {mean} on 99 days needs "
        f"{float(short):g}%"
    )


def _rows_of_random_count(
    bound: float,
    expected: float,
    level: float,
    share: float,
    power: float,
    *,
    fewest: int,
) -> tuple[int, float]:
    """Rows, `fewest` or more, from which on the power suffices if Bin(N, share) count.

    The power there is returned too: the mean of the saw g over the number of rows that
    count. The mean of the ends of the teeth lies below it and rises with the rows: from
    where that suffices on, all do. Backwards from there the power itself is looked at.
    A mean over more than two teeth has no saw left (its ripple is
    exp(-2 (pi width / tooth)^2) of a tooth's height) and is bisected. Else a row less
    costs at most `share` times the steepest rise of g, which says how many rows need no
    look.
    """

    def teeth(first: int, last: int) -> tuple[IntArray, IntArray]:
        """Wrong rows allowed in each tooth of these counts; where the next starts."""
        least = most_wrong(first, bound, level) if first else -1
        most = most_wrong(last, bound, level) if last else -1
        wrong = np.arange(least, most + 1)
        return wrong, fewest_rows_for(wrong + 1, bound, level)

    def likely_counts(n_rows: int) -> tuple[int, int]:
        """Least and largest number of counted rows, but for a chance of 1e-15."""
        return int(binom.ppf(1e-15, n_rows, share)), int(
            binom.isf(1e-15, n_rows, share)
        )

    def power_and_rise(n_rows: int) -> tuple[float, float]:
        """The mean of g over the number of rows that count, and g's steepest rise."""
        first, last = likely_counts(n_rows)
        n = np.arange(first, last + 1)
        wrong, starts = teeth(first, last)
        c = wrong[np.searchsorted(starts, n, side="right")]
        g = np.zeros(len(n))
        g[c >= 0] = binomial_tail(c[c >= 0], n[c >= 0], expected)
        rise = float(np.diff(g, prepend=0.0).max())
        return float(binom.pmf(n, n_rows, share) @ g), max(rise, 1e-9)

    def mean_of_ends(n_rows: int) -> float:
        """The mean of g one row behind the end of the tooth of each count."""
        wrong, starts = teeth(*likely_counts(n_rows))
        weight = np.diff(binom.cdf(starts - 1, n_rows, share), prepend=0.0)
        some = wrong >= 0
        return float(weight[some] @ binomial_tail(wrong[some], starts[some], expected))

    high = _least(lambda n: mean_of_ends(n) >= power, 0, 1)
    width = math.sqrt(high * share * (1 - share))
    if width * bound > 2:
        low, step = high, math.ceil(1 / (bound * share))
        while low > 0 and power_and_rise(low)[0] >= power:
            low, step = max(0, low - step), 2 * step
        high = max(_least(lambda n: power_and_rise(n)[0] >= power, low, high), fewest)
        return high, power_and_rise(high)[0]
    while high > 0:
        mean, rise = power_and_rise(high - 1)
        if mean < power:
            break
        high -= 1 + int((mean - power) / (share * rise))
    high = max(high, fewest)
    return high, power_and_rise(high)[0]


def _least(suffices: Callable[[int], bool], low: int, high: int) -> int:
    """Least number above `low` that suffices, where all behind one that does do."""
    while not suffices(high):
        low, high = high, 2 * high + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if suffices(middle) else (middle, high)
    return high


def _first_row_of_power(
    bound: float, expected: float, level: float, power: float
) -> int:
    """Fewest rows from which on the power P(Bin(n, expected) <= c(n)) suffices.

    Tooth c of the saw ends before the row from which on c + 1 may be wrong. But for
    the rounding of that row to an integer the power there rises with c, and the
    integer is behind it: from the tooth on whose c suffices even one row behind its
    end, every tooth will do. Teeth before it are looked at one by one.
    """

    def power_of(teeth: IntArray, behind_end: int) -> FloatArray:
        ends = fewest_rows_for(teeth + 1, bound, level) - 1
        return np.asarray(binomial_tail(teeth, ends + behind_end, expected))

    high = _least(lambda tooth: power_of(np.array([tooth]), 1)[0] >= power, -1, 0)
    width = 64
    while high > 0:
        teeth = np.arange(max(0, high - width), high)
        failing = teeth[power_of(teeth, 0) < power]
        if len(failing):
            high = int(failing[-1]) + 1
            break
        high, width = int(teeth[0]), 2 * width
    return int(fewest_rows_for(np.array([high]), bound, level)[0])
