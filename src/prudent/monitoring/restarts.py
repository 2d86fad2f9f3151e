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
from dataclasses import dataclass, field

import numpy as np

from prudent.core.types import FloatArray
from prudent.monitoring.evidence import log_beta_ratio
from prudent.monitoring.kernels import (
    LARGEST,
    N_STAKES,
    add_to_trace,
    reserve,
    restart_rows,
)

MOST_TRACED = 256
#: Odds of the rates staked on, relative to the null: the midpoints of 1/p uniform.
ODDS_RATIOS: FloatArray = 1 / (1 - (np.arange(N_STAKES) + 0.5) / N_STAKES)


@dataclass(frozen=True)
class Null:
    """What is to be refuted: a rate of at most `bound`, or an urn around it.

    Attributes
    ----------
    bound : float
        b in (0, 1).
    rank, calibration_rows : int
        k and m of a promise on average: the chance is then the larger of b and
        (k + K) / (m + 1 + n). 0, 0 where there is no urn.
    """

    bound: float
    rank: int = 0
    calibration_rows: int = 0


def settings_of(null: Null, level: float) -> FloatArray:
    """What the kernel needs: bound, rank, calibration rows + 1, alarm."""
    return np.array([null.bound, null.rank, null.calibration_rows + 1, 1 / level])


@dataclass
class Restarts:
    """The running bet; changed in place.

    Attributes
    ----------
    stakes : ndarray of shape (8,)
        S_i.
    counts : ndarray of shape (7,)
        Rows, violations, e-value, its peak, rows at the first alarm (0: none),
        spacing of the trace in rows, its points.
    trace : ndarray of shape (256, 3)
        Rows, violations, e-value at multiples of the spacing; a full trace loses
        every second point and the spacing doubles.
    """

    stakes: FloatArray = field(default_factory=lambda: np.zeros(N_STAKES))
    counts: FloatArray = field(
        default_factory=lambda: np.array([0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 0.0])
    )
    trace: FloatArray = field(default_factory=lambda: np.zeros((MOST_TRACED, 3)))

    def rows(self, losses: FloatArray, settings: FloatArray) -> None:
        """Bet on the losses of rows, in order; `settings` as `settings_of` gives."""
        restart_rows(
            losses, self.stakes, self.counts, self.trace, ODDS_RATIOS, settings
        )

    def batch(self, violations: float, n: int, *, null: Null, threshold: float) -> None:
        """Bet on `violations` in `n` rows whose order is not known."""
        before, so_far = self.counts[0], self.counts[1]
        after = before + n
        left = reserve(null.bound * after)
        stake = (reserve(null.bound * before) - left) / N_STAKES
        with np.errstate(over="ignore"):
            growth = np.exp(self._log_growth(violations, n, null))
            self.stakes[:] = np.minimum((self.stakes + stake) * growth, LARGEST)
        value = float(self.stakes.sum()) + left
        self.counts[:4] = (
            after,
            so_far + violations,
            value,
            max(self.counts[3], value),
        )
        if self.counts[4] == 0 and value >= threshold:
            self.counts[4] = after

    def record(self) -> None:
        """Add the counts as they are to the trace."""
        n, violations, value = self.counts[:3].tolist()
        before = int(self.counts[6])
        points = add_to_trace(self.trace, before, n, violations, value)
        if points < before:
            self.counts[5] *= 2
        self.counts[6] = points

    def _log_growth(self, violations: float, n: int, null: Null) -> FloatArray:
        others, bound = n - violations, null.bound
        if null.rank < 1:
            return violations * np.log(ODDS_RATIOS) - n * np.log1p(
                (ODDS_RATIOS - 1) * bound
            )
        before, so_far = self.counts[0], self.counts[1]
        urn = (
            null.rank + so_far,
            null.calibration_rows + 1 - null.rank + before - so_far,
        )
        chance = max(bound, urn[0] / (urn[0] + urn[1]))
        rates = ODDS_RATIOS * chance / (1 + (ODDS_RATIOS - 1) * chance)
        constant = (
            violations * np.log(ODDS_RATIOS * (chance / bound))
            + others * math.log((1 - chance) / (1 - bound))
            - n * np.log1p((ODDS_RATIOS - 1) * chance)
        )
        drawn = [-log_beta_ratio(*urn, violations, others, rate) for rate in rates]
        return np.minimum(constant, drawn)
