"""Drift seen from ranks among reference rows: an urn, and bets against it.

While new rows and the m reference rows are exchangeable, the position (0..m) of a new
value among the reference values follows an urn: it falls into group g of positions
with probability (a_g + N_g) / (m + 1 + n), a_g the positions of the group and N_g the
earlier rows there. A tilt w bets w_g (m + 1 + n) / sum_h (a_h + N_h) w_h, whose mean
is 1. Ties are broken by coins that every row tosses once, reference rows included, so
that they are exact: no two rows are equal.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from prudent.core.types import FloatArray, IntArray
from prudent.monitoring.kernels import positions_among, reserve, urn_rows

SHARES = (0.01, 0.03, 0.0625, 0.125, 0.25, 0.375, 0.5)
SHIFTS = (-1.0, -0.3, 0.3, 1.0)
SPREADS = (2.0, 0.5)
TAIL = 5.0
N_TILTS = len(SHIFTS) + len(SPREADS) + 2
#: A stake is placed as if the alarming rate were one row in so many.
ROWS_PER_UNIT = 20.0


def group_cuts(n_reference: int) -> IntArray:
    """Cuts of the m + 1 positions into at most 14 groups, finer towards the ends."""
    n_positions = n_reference + 1
    lower = np.rint(n_positions * np.array(SHARES)).astype(np.intp)
    return np.unique(
        np.concatenate([[0], lower, n_positions - lower[:-1], [n_positions]])
    )


def tilts(cuts: IntArray) -> FloatArray:
    """Weights (8, G) of the groups: shifts, spreads, and each end.

    Those of a shift d and of a spread s are the ratios of a normal density moved by d,
    or of standard deviation s, to the standard one at the middle of the group.
    """
    z = ndtri((cuts[:-1] + cuts[1:]) / (2 * cuts[-1]))
    shifted = [np.exp(d * z - d**2 / 2) for d in SHIFTS]
    spread = [np.exp(z**2 / 2 * (1 - 1 / s**2)) / s for s in SPREADS]
    first, last = np.ones_like(z), np.ones_like(z)
    first[0] = last[-1] = TAIL
    return np.stack([*shifted, *spread, first, last])


@dataclass
class Urns:
    """One urn a column and the stakes against it; changed in place.

    `reference`, `coins` (m, d): values of the reference rows, each column sorted by
    (value, coin); `stakes`, `totals` (d, 8): stakes, and the sums over the groups of
    size times tilt; `sizes` (d, G): a_g + N_g; `place_sums` (d,): sums of the
    positions of new rows; `counts` (5,): rows, m + 1 + rows, e-value, its peak, rows
    at the first alarm (0: none).
    """

    reference: FloatArray
    coins: FloatArray
    stakes: FloatArray
    totals: FloatArray
    sizes: FloatArray
    place_sums: IntArray
    counts: FloatArray

    def __post_init__(self) -> None:
        self.cuts = group_cuts(len(self.reference))
        self.tilts = tilts(self.cuts)

    @classmethod
    def around(cls, reference: FloatArray, coins: FloatArray) -> Urns:
        """Urns that hold the reference rows (m, d) only."""
        m, d = reference.shape
        order = np.lexsort((coins, reference), axis=0)
        cuts = group_cuts(m)
        sizes = np.tile(np.diff(cuts).astype(np.float64), (d, 1))
        return cls(
            np.take_along_axis(reference, order, axis=0),
            np.take_along_axis(coins, order, axis=0),
            np.zeros((d, N_TILTS)),
            sizes @ tilts(cuts).T,
            sizes,
            np.zeros(d, dtype=np.intp),
            np.array([0.0, m + 1.0, 1.0, 1.0, 0.0]),
        )

    def rows(self, values: FloatArray, coins: FloatArray, *, threshold: float) -> None:
        """Bet on new rows (n, d) in order; `coins` (n, d) in [0, 1) break ties."""
        positions = np.empty(values.shape, dtype=np.intp)
        for j in range(values.shape[1]):
            positions_among(self.reference, self.coins, values, coins, j, positions)
        urn_rows(
            np.searchsorted(self.cuts, positions, side="right") - 1,
            self.stakes,
            self.tilts,
            self.sizes,
            self.totals,
            self.counts,
            ROWS_PER_UNIT,
            threshold,
        )
        self.place_sums += positions.sum(axis=0)

    def column_e_values(self) -> FloatArray:
        """E-value of each column as if it were watched alone."""
        left = reserve(self.counts[0] / ROWS_PER_UNIT)
        return np.asarray(left + len(self.stakes) * self.stakes.sum(axis=1))

    def mean_places(self) -> FloatArray:
        """Mean position of the new rows, as a share: 1/2 without drift."""
        positions = self.counts[1] - self.counts[0]
        mean = self.place_sums / max(self.counts[0], 1.0)
        return np.asarray((mean + 0.5) / positions)
