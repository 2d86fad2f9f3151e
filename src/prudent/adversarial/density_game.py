"""The rejection game played on an estimated density, its rate kept on held-out rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from prudent.adversarial.divergence import Divergence
from prudent.adversarial.game import solve_game
from prudent.adversarial.levels import group_events, split_levels
from prudent.adversarial.thresholds import scale_to_rate

__all__ = ["DensityGame", "play_on_density"]

FloatArray = NDArray[np.float64]

_SMALLEST = 1e-300  # probability of a cell


@dataclass(frozen=True)
class DensityGame:
    """Rejection probability min(1, t r) as a falling function of the score.

    Attributes
    ----------
    scores : ndarray of shape (n,)
        Rising scores of the rows the game was played on.
    rejection : ndarray of shape (n,)
        r of each.
    scale : float
        t.
    """

    scores: FloatArray
    rejection: FloatArray
    scale: float

    def rejection_at(self, scores: FloatArray) -> FloatArray:
        """Probability at the largest known score not above; at the lowest below."""
        at = np.searchsorted(self.scores, scores, side="right") - 1
        known = self.rejection[np.maximum(at, 0)]
        return np.minimum(1.0, self.scale * known)


def play_on_density(
    fit_scores: FloatArray,
    calibration_scores: FloatArray,
    log_cell_volume: float,
    rate: float,
    bound: float,
) -> DensityGame:
    """Solve the game on the fit rows, then scale it to the false-alarm rate.

    Parameters
    ----------
    fit_scores : ndarray of shape (n,)
        Rising estimates of log p; the row's cell has probability volume times p,
        and the row stands for 1/n of the target.
    calibration_scores : ndarray of shape (m,)
        Of rows that are exchangeable with future ones.
    log_cell_volume : float
        Log volume of a cell, in the units of the density.
    rate : float
        False-alarm rate in (0, 1), kept on average whatever the density.
    bound : float
        Least Kullback-Leibler divergence of an intruder, in bits.

    Raises
    ------
    InfeasibleError
        If no intruder on the fit rows' cells is that far away.
    """
    n = len(fit_scores)
    value = np.exp(fit_scores + log_cell_volume).clip(_SMALLEST, 1.0)
    events = group_events(value, np.full(n, 1 / n))
    levels = split_levels(events.value, events.mass, Divergence("kl"), bound)
    solution = solve_game(levels, rate)
    rejection = events.spread(solution.rejection, 1.0)
    largest = 1 / rejection[rejection > 0].min(initial=1.0)
    unscaled = DensityGame(fit_scores, rejection, 1.0)
    held_out = unscaled.rejection_at(calibration_scores)
    scale = scale_to_rate(held_out, rate, float(largest))
    return DensityGame(fit_scores, rejection, scale)
