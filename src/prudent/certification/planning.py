"""How many rows a promise needs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real

import numpy as np

from prudent.core.binomial import (
    binomial_tail,
    check_fraction,
    fewest_rows,
    fewest_rows_for,
    most_wrong,
)
from prudent.core.shift import bernoulli_divergence
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
        Rows that the promise counts: answered ones, or rows of the class.
    wrong_allowed : int
        Wrong ones among them with which the bound is still certified.
    power : float
        Probability of no more than these if the true rate is the expected one.
    rows_without_errors : int
        Fewest rows that certify the bound if none is wrong.
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
        Share of the rows that the promise counts, in (0, 1]: answered rows, or the
        share of the class in question.
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
    P(Bin(n, bound) <= c) <= level. The power P(Bin(n, expected) <= c(n)) is a saw: it
    falls while c stays. The answer is the first rank behind the last tooth whose end
    is below `power`.

    Examples
    --------
    >>> from prudent import plan
    >>> plan()
    Plan(rows=286, rows_answered=286, wrong_allowed=8, power=0.8..., rows_without_errors=59)
    >>> plan(
    ...     expected=0.01, answered_share=0.026
    ... ).rows  # of a class of 2.6 % of the rows
    4770
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
    if not claims >= 1:
        raise ValueError(f"`claims` must be at least 1, got {shown(claims)}.")
    level = (1 - confidence) / claims
    first = n = fewest_rows(bound, 1 - level)
    if expected > 0:
        n = _first_row_of_power(bound, expected, level, power)
    wrong = most_wrong(n, bound, level)
    return Plan(
        rows=math.ceil(n / answered_share - 1e-9),
        rows_answered=n,
        wrong_allowed=wrong,
        power=float(binomial_tail(wrong, n, expected)) if expected else 1.0,
        rows_without_errors=first,
    )


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
        found: FloatArray = binomial_tail(teeth, ends + behind_end, expected)
        return found

    enough = _rows_that_suffice(bound, expected, level, 1 - power)
    low, high = -1, most_wrong(enough, bound, level) + 2
    while high - low > 1:
        middle = (low + high) // 2
        suffices = power_of(np.array([middle]), 1)[0] >= power
        low, high = (low, middle) if suffices else (middle, high)
    width = 64
    while high > 0:
        teeth = np.arange(max(0, high - width), high)
        failing = teeth[power_of(teeth, 0) < power]
        if len(failing):
            high = int(failing[-1]) + 1
            break
        high, width = int(teeth[0]), 2 * width
    return int(fewest_rows_for(np.array([high]), bound, level)[0])


def _rows_that_suffice(bound: float, expected: float, level: float, miss: float) -> int:
    """Rows from which on Chernoff's inequality gives the power, where no saw matters.

    With x between the rates, n KL(x, bound) >= log(1/level) allows floor(x n) wrong
    rows, and n KL(x, expected) >= log(1/miss) makes more of them rare.
    """
    low, high = expected, bound
    for _ in range(50):
        x = (low + high) / 2
        allowed = -math.log(level) / bernoulli_divergence(x, bound, "kl")
        rare = -math.log(miss) / bernoulli_divergence(x, expected, "kl")
        low, high = (x, high) if rare > allowed else (low, x)
    return math.ceil(max(allowed, rare)) + 1
