"""The rejection game played on an estimated density, its rate kept on held-out rows."""

from __future__ import annotations

import numpy as np

from prudent.adversarial.density.cut import scale_to_rate
from prudent.adversarial.density.model import SoftRule
from prudent.adversarial.game.divergence import Divergence
from prudent.adversarial.game.levels import group_events, split_levels
from prudent.adversarial.game.solver import solve_game
from prudent.core.types import FloatArray

_SMALLEST = 1e-300  # probability of a cell


def play_on_density(
    fit_scores: FloatArray,
    calibration_scores: FloatArray,
    log_cell_volume: float,
    rate: float,
    bound: float,
    key: bytes,
) -> SoftRule:
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
    key : bytes
        Of the coins.

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
    unscaled = SoftRule(fit_scores, rejection, 1.0, key)
    held_out = unscaled.rejection_at(calibration_scores)
    scale = scale_to_rate(held_out, rate, float(largest))
    return SoftRule(fit_scores, rejection, scale, key)
