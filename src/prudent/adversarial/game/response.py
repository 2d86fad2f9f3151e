"""The intruder's answer: the distribution that a given rule rejects least.

For every rule and every convex divergence a worst intruder lives on an edge of the
simplex, on at most two events (A2 of the user guide).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from prudent.adversarial.game.levels import Events, Levels
from prudent.core.types import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class Response:
    """Intruder q e_low + (1 - q) e_high; `value` is the rate of rejecting it."""

    value: float
    low: int
    high: int
    q: float


def best_response(levels: Levels, rejection: FloatArray) -> Response:
    """Least rejected intruder against any rule, on an edge of the simplex (A2).

    Parameters
    ----------
    levels : Levels
        Target, split at the bound.
    rejection : ndarray of shape (n_levels,)
        Smallest rejection probability among the events of each level.

    Notes
    -----
    Starts from the best single event and moves to the pair that undercuts it most
    until none does; each search is O(n_levels log n_levels).
    """
    from prudent.adversarial.game.kernels import tightest_pair

    alone = int(np.argmin(rejection[: levels.n_admissible]))
    response = Response(float(rejection[alone]), alone, alone, 1.0)
    if levels.n_low == 0:
        return response
    r_low, r_high = rejection[levels.low], rejection[levels.high]
    # A high level counts only if no lower one is rejected as little: theta rises.
    records = _records(r_high)
    while True:
        usable = records[r_high[records] < response.value]
        if not len(usable):
            return response
        l, at, ratio = tightest_pair(
            levels.code,
            levels.scale,
            levels.excess[levels.low],
            r_low - response.value,
            levels.excess[levels.high][usable],
            response.value - r_high[usable],
        )
        h = levels.n_admissible + int(usable[at])
        q = _edge_share(levels, l, h)
        value = float(rejection[h] + q * (rejection[l] - rejection[h]))
        if ratio >= 1 or value >= response.value:
            return response
        response = Response(value, l, h, q)


def hard_response(levels: Levels, rate: float) -> Response:
    """Best intruder against the rule that rejects the least probable events (A4).

    The lowest accepted level decides, whichever of its events are rejected.
    """
    accepted = int(np.count_nonzero(levels.reached[1:] <= rate * (1 + 1e-12)))
    if rate == 1 or accepted == len(levels.value):
        return Response(1.0, 0, 0, 1.0)
    if accepted < levels.n_admissible:
        return Response(0.0, accepted, accepted, 1.0)
    if levels.n_low == 0:
        return Response(1.0, 0, 0, 1.0)
    q = _edge_share(levels, 0, accepted)
    return Response(q, 0, accepted, q)


def levels_to_reject(levels: Levels, value: float) -> int:
    """Least number of lowest levels whose rejection rejects any intruder so often.

    Every level that may be played alone is one of them, and every higher level that
    leaves too little room: its edge with the lowest level has q < `value`. The q rise
    with the level, so a search by halves finds the first that will do.
    """
    if value <= 0:
        return 0
    if levels.n_low == 0 or levels.lets_all_in:
        return levels.n_admissible
    low, high = levels.n_admissible, len(levels.value)
    while low < high:
        middle = (low + high) // 2
        if _edge_share(levels, 0, middle) >= value * (1 - 1e-12):
            high = middle
        else:
            low = middle + 1
    return low


def soft_response(levels: Levels, value: float) -> Response:
    """Best intruder against the optimal randomised rule of this value, no search.

    The edge between the lowest low and the lowest high level is always tight.
    """
    if levels.n_low == 0 or levels.lets_all_in:
        return Response(value, 0, 0, 1.0)
    q = _edge_share(levels, 0, levels.n_admissible)
    return Response(value, 0, levels.n_admissible, q)


def as_distribution(
    events: Events, rejection: FloatArray, response: Response
) -> FloatArray:
    """Intruder over events: in each of its levels on one that is rejected least."""
    q = np.zeros(len(rejection))
    for level, share in ((response.low, response.q), (response.high, 1 - response.q)):
        members = np.flatnonzero(events.level == level)
        q[members[np.argmin(rejection[members])]] += share
    return q


def _edge_share(levels: Levels, low: int, high: int) -> float:
    """Share q of the low level at which the edge meets the bound."""
    from prudent.adversarial.game.kernels import log_odds

    excess_low, excess_high = levels.excess[low], levels.excess[high]
    x = log_odds(levels.code, levels.scale, excess_low, excess_high, math.nan)
    return 1 / (1 + math.exp(-x))


def _records(sequence: FloatArray) -> IntArray:
    """Positions of the strict running minima."""
    before = np.minimum.accumulate(np.append(np.inf, sequence))[:-1]
    return np.flatnonzero(sequence < before)
