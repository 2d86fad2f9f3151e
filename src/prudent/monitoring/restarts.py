"""Stakes placed at every row on "it changes now": the alarm of a life-long watch.

With g(u) = 1 / (1 + log(1 + u)) the part g(b t) of the initial 1 is still unplaced
after t rows; what row t places is spread over J rates above the bound and grows by
their likelihood ratios,

    S_i <- (S_i + [g(b (t-1)) - g(b t)] / J) L_i(x_t),    E_t = g(b t) + sum_i S_i,
    L_i(x) = rho_i^x / (1 + (rho_i - 1) pi),

so E is a nonnegative supermartingale that starts at 1 while the chance of a violation
stays at most pi, and yet a change after a long good stretch is seen almost as fast as
one at the start: the price is log(b t), not log t.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from prudent.core.types import FloatArray
from prudent.monitoring.bets import Bets
from prudent.monitoring.evidence import log_beta_ratio
from prudent.monitoring.kernels import LARGEST, N_STAKES, reserve, restart_rows

#: Odds of the rates staked on, relative to the null: the midpoints of 1/p uniform.
ODDS_RATIOS: FloatArray = 1 / (1 - (np.arange(N_STAKES) + 0.5) / N_STAKES)


@dataclass
class Restarts(Bets):
    """The e-value E_t of the stakes."""

    def __post_init__(self) -> None:
        bound, rank = self.null.bound, self.null.rank
        positions = self.null.calibration_rows + 1
        self.settings = np.array([bound, rank, positions, self.threshold])

    @property
    def e_value(self) -> float:
        """Evidence now."""
        return float(self.counts[2])

    def rows(self, losses: FloatArray) -> None:
        """Bet on the losses of rows, in order."""
        restart_rows(
            losses, self.stakes, self.counts, self.trace, ODDS_RATIOS, self.settings
        )

    def _look(self, violations: float, n: int) -> None:
        before, so_far = self.counts[:2].tolist()
        left = reserve(self.null.bound * (before + n))
        stake = (reserve(self.null.bound * before) - left) / N_STAKES
        with np.errstate(over="ignore"):
            growth = np.exp(self._log_growth(violations, n))
            self.stakes[:] = np.minimum((self.stakes + stake) * growth, LARGEST)
        value = float(self.stakes.sum()) + left
        self.counts[:3] = before + n, so_far + violations, value
        self._raise_peak(value)

    def _log_growth(self, violations: float, n: int) -> FloatArray:
        """Smaller one of the likelihood ratios to a constant rate and to the urn."""
        others, null = n - violations, self.null
        if null.rank < 1:
            return violations * np.log(ODDS_RATIOS) - n * np.log1p(
                (ODDS_RATIOS - 1) * null.bound
            )
        before, so_far = self.counts[:2].tolist()
        urn = (
            null.rank + so_far,
            null.calibration_rows + 1 - null.rank + before - so_far,
        )
        chance = max(null.bound, urn[0] / (urn[0] + urn[1]))
        rates = ODDS_RATIOS * chance / (1 + (ODDS_RATIOS - 1) * chance)
        constant = (
            violations * np.log(ODDS_RATIOS * (chance / null.bound))
            + others * math.log((1 - chance) / (1 - null.bound))
            - n * np.log1p((ODDS_RATIOS - 1) * chance)
        )
        drawn = [-log_beta_ratio(*urn, violations, others, rate) for rate in rates]
        return np.minimum(constant, drawn)
