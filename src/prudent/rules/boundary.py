"""How many wrong rows each rank may hold, for all error rates above a limit at once.

Held-out rows stand in order of falling score, W_k of the first k are wrong. A corner
(k_j, c_j) stands for the quadrant {wrong <= c_j and right >= k_j - c_j}. If a walk V
of n independent steps, each wrong with probability a, has
P(V_{k_j} <= c_j for some j) <= delta, then with probability 1 - delta no threshold
whose answered rows lie in a quadrant has an error rate above a: for every law, with
ties, and whichever of them is chosen.

The reason is a map of the rows that moves wrong ones back and right ones forward
until each is wrong with probability a independent of its place; wherever the error
rate of the first share v of the population exceeds a, the mapped rows before v have
no more wrong and no fewer right ones, so a mapped walk has entered every quadrant
that the rows have entered.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from prudent.core.binomial import (
    check_fraction,
    fewest_rows,
    fewest_rows_for,
    most_wrong,
)
from prudent.core.types import BoolArray, FloatArray, IntArray

# Any subset of corners is valid; more than twice this many gain nothing measurable.
THINNED = 128
# Masses below this are left out: 1e5 of them do not show in a crossing of 1e-10.
NEGLIGIBLE = 1e-18
# The pointwise level is found to this relative accuracy, from below.
LEVEL_ACCURACY = 1e-3


@dataclass(frozen=True, slots=True, eq=False)
class ErrorBoundary:
    """Corners under which answered rows certify an error rate.

    Attributes
    ----------
    ranks, wrong_allowed : ndarray of int, shape (n_corners,)
        Both strictly increasing: `wrong_allowed[j]` wrong rows among the first
        `ranks[j]` still certify the rate. Empty if there are too few rows.
    level : float
        Pointwise level: each corner alone is crossed with at most this probability.
    crossing : float
        Probability that a walk of constant error rate crosses any corner, at most
        1 - confidence.
    """

    ranks: IntArray
    wrong_allowed: IntArray
    level: float
    crossing: float

    def admits(self, answered: IntArray, wrong: IntArray) -> BoolArray:
        """Which pairs of counts lie in a quadrant.

        The smallest corner that allows the wrong rows asks for fewest right ones.
        """
        if not len(self.ranks):
            return np.zeros(np.shape(answered), dtype=bool)
        corner = np.searchsorted(self.wrong_allowed, wrong)
        right = np.append(self.ranks - self.wrong_allowed, np.iinfo(np.intp).max)
        admitted: BoolArray = answered - wrong >= right[corner]
        return admitted


@lru_cache(maxsize=512)
def error_boundary(
    n_rows: int, error_rate: float, *, confidence: float = 0.95
) -> ErrorBoundary:
    """Corners that certify an error rate on any of the thresholds of n rows at once.

    Parameters
    ----------
    n_rows : int
        Held-out rows, >= 1.
    error_rate : float
        Largest error rate among answered rows, in (0, 1).
    confidence : float, default=0.95
        Probability over the held-out rows that the certified rate is true, in (0, 1).

    Returns
    -------
    ErrorBoundary
        Without corners if `n_rows` is too small for the rate even without an error.

    Raises
    ------
    ValueError
        If an argument lies outside its range.

    Notes
    -----
    Corner c stands at the smallest k with P(Bin(k, error_rate) <= c) <= g. The
    pointwise level g is the largest, to 1e-3, whose crossing probability (exact, by
    the law of the walks that have not crossed) is at most 1 - confidence. Of more
    than 256 corners, 128 in geometric and 128 in equal steps are kept.

    Examples
    --------
    >>> from prudent.certification import error_boundary
    >>> boundary = error_boundary(300, 0.05)
    >>> boundary.ranks[:4], boundary.wrong_allowed[:4]
    (array([ 81, 120, 154, 185]), array([0, 1, 2, 3]))
    """
    if n_rows < 1:
        raise ValueError(f"`n_rows` must be at least 1, got {n_rows}.")
    check_fraction("error_rate", error_rate)
    check_fraction("confidence", confidence)
    delta = 1 - confidence
    level = delta
    corners = _corners(n_rows, error_rate, level)
    if len(corners[0]) <= 1:
        if n_rows >= fewest_rows(error_rate, confidence):
            corners = np.array([fewest_rows(error_rate, confidence)]), np.array([0])
    else:
        level = _largest_level(n_rows, error_rate, delta, len(corners[0]))
        corners = _corners(n_rows, error_rate, level)
    for array in corners:
        array.flags.writeable = False  # shared by all who ask
    return ErrorBoundary(
        *corners, level=level, crossing=crossing_probability(*corners, error_rate)
    )


def crossing_probability(
    ranks: IntArray, wrong_allowed: IntArray, rate: float
) -> float:
    """P(V_{k_j} <= c_j for some j), V a walk of steps that are wrong with `rate`."""
    law, lowest, before, crossed = np.ones(1), 0, 0, 0.0
    for rank, allowed in zip(ranks.tolist(), wrong_allowed.tolist(), strict=True):
        first, steps = _law_of_steps(rank - before, rate)
        law, lowest, before = np.convolve(law, steps), lowest + first, rank
        inside = max(allowed - lowest + 1, 0)
        crossed += float(law[:inside].sum())
        law, lowest = law[inside:], lowest + inside
        kept = np.flatnonzero(law >= NEGLIGIBLE)
        if not len(kept):
            break
        law, lowest = law[kept[0] : kept[-1] + 1], lowest + int(kept[0])
    return crossed


def _largest_level(n: int, rate: float, delta: float, n_corners: int) -> float:
    """Largest pointwise level whose corners are crossed with probability <= delta."""
    low, high = math.log(delta / (n_corners + 1)), math.log(delta)
    while high - low > LEVEL_ACCURACY:
        middle = (low + high) / 2
        corners = _corners(n, rate, math.exp(middle))
        if crossing_probability(*corners, rate) <= delta:
            low = middle
        else:
            high = middle
    return math.exp(low)


def _corners(n: int, rate: float, level: float) -> tuple[IntArray, IntArray]:
    """Ranks and wrong rows allowed of all corners at a level, or of enough of them."""
    n_corners = most_wrong(n, rate, level) + 1
    wrong = np.arange(n_corners)
    if n_corners > 2 * THINNED:
        geometric = np.geomspace(1, n_corners, THINNED) - 1
        equal = np.linspace(0, n_corners - 1, THINNED)
        wrong = np.unique(np.rint(np.concatenate([geometric, equal])).astype(np.intp))
    return fewest_rows_for(wrong, rate, level), wrong


@lru_cache(maxsize=1024)
def _law_of_steps(n: int, rate: float) -> tuple[int, FloatArray]:
    """First value and masses of Bin(n, rate) where they matter, by their ratios."""
    mode = min(n, math.floor((n + 1) * rate))
    # Bernstein: beyond this the masses are below `NEGLIGIBLE`.
    reach = math.ceil(9.2 * math.sqrt(n * rate * (1 - rate)) + 30)
    first, last = max(0, mode - reach), min(n, mode + reach)
    up, down = np.arange(mode, last), np.arange(mode, first, -1)
    odds = rate / (1 - rate)
    rising = np.cumprod((n - up) / (up + 1) * odds)
    falling = np.cumprod(down / (n - down + 1) / odds)
    masses = np.concatenate([falling[::-1], [1.0], rising])
    return first, masses / masses.sum()
