"""The rejection game on an estimated density, scaled to its false-alarm rate."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from prudent.adversarial.game.divergence import Divergence
from prudent.adversarial.game.solver import group_events, solve_game, split_levels
from prudent.core.guarantee import Guarantee
from prudent.core.rows import keyed_uniform
from prudent.core.types import FloatArray
from prudent.rules.rule import FalseAlarms

_SMALLEST = 1e-300  # probability of a cell


@dataclass(frozen=True, slots=True)
class SoftRule:
    """Reject with probability min(1, t r), r a falling function of the score."""

    scores: FloatArray  # (n,), rising, of the rows the game was played on
    rejection: FloatArray  # (n,), r of each
    scale: float  # t
    key: bytes  # of the coins: the same row gets the same answer
    calibration: FalseAlarms  # what it was scaled by
    guarantees: tuple[Guarantee, ...]

    def rejection_at(self, scores: FloatArray) -> FloatArray:
        """Probability at the largest known score not above; at the lowest below."""
        at = np.searchsorted(self.scores, scores, side="right") - 1
        known = self.rejection[np.maximum(at, 0)]
        return np.minimum(1.0, self.scale * known)

    def decision(self, scores: FloatArray, X: FloatArray) -> FloatArray:
        """Coin minus rejection probability."""
        coins = keyed_uniform((row.tobytes() for row in X), self.key)
        return coins - self.rejection_at(scores)


def play_on_density(
    fit_scores: FloatArray,
    calibration_scores: FloatArray,
    log_cell_volume: float,
    rate: float,
    bound: float,
    key: bytes,
    **known: Any,
) -> SoftRule:
    """Solve the game on the fit rows, then scale it to the false-alarm rate.

    `fit_scores` are rising estimates of log p: the row's cell has probability volume
    times p, and the row stands for 1/n of the target. Intruders are `bound` bits away.
    The rate is kept on average whatever the density. `known` are the other fields of
    the rule.
    """
    n = len(fit_scores)
    value = np.exp(fit_scores + log_cell_volume).clip(_SMALLEST, 1.0)
    events = group_events(value, np.full(n, 1 / n))
    levels = split_levels(events.value, events.mass, Divergence("kl"), bound)
    solution = solve_game(levels, rate)
    rejection = events.spread(solution.rejection, 1.0)
    largest = 1 / rejection[rejection > 0].min(initial=1.0)
    rule = SoftRule(fit_scores, rejection, 1.0, key, **known)
    held_out = rule.rejection_at(calibration_scores)
    return replace(rule, scale=scale_to_rate(held_out, rate, float(largest)))


def scale_to_rate(rejection: FloatArray, rate: float, largest: float) -> float:
    """Largest t <= `largest` with sum_i min(1, t r_i) + 1 <= (m + 1) rate.

    `rejection` (m,) are the r_i of the calibration rows. For exchangeable rows,
    rejecting a new one with probability min(1, t r) then raises false alarms at rate
    `rate` at most on average, because the sum rises with t and one row adds at most 1.
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
