"""From scores to ranks, and from ranks to p-values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from prudent.core.types import BoolArray, FloatArray, IntArray

# Scores by different formulas that are equal in exact arithmetic differ by rounding.
TIE = 1e-9


@dataclass(frozen=True, slots=True)
class Counts:
    """Ranking rows that are stranger than a new row, and as strange.

    Attributes
    ----------
    larger, equal : ndarray of int, shape (m,) or (m, n_classes)
        Rows whose score exceeds that of the new row, and rows that tie with it; the
        new row itself is not counted.
    """

    larger: IntArray
    equal: IntArray

    @property
    def not_below(self) -> IntArray:
        """Rows at least as strange as the new row."""
        return self.larger + self.equal

    def p_values(self, n: IntArray | int, coins: FloatArray | None = None) -> FloatArray:
        """Share of the bag of `n` + 1 rows that is at least as strange.

        Parameters
        ----------
        n : int or ndarray
            Rows that rank.
        coins : ndarray of the shape of `larger`, default=None
            Uniform numbers: the share of the ties that counts. None: all count.
        """
        if coins is None:
            return (self.not_below + 1) / (n + 1)
        return (self.larger + coins * (self.equal + 1)) / (n + 1)


def compare(scores: FloatArray, ranked: FloatArray) -> Counts:
    """Count the sorted scores `ranked` above and level with each of `scores`."""
    finite = np.isfinite(scores)
    margin = TIE * (1 + np.abs(np.where(finite, scores, 0.0)))
    low = np.where(finite, scores - margin, scores)
    high = np.where(finite, scores + margin, scores)
    not_below = len(ranked) - np.searchsorted(ranked, low, side="left")
    larger = len(ranked) - np.searchsorted(ranked, high, side="right")
    return Counts(larger.astype(np.intp), (not_below - larger).astype(np.intp))


def sets(counts: Counts, ranks: IntArray | int) -> BoolArray:
    """Labels that are not among the `ranks` strangest, decided on integers."""
    return counts.not_below + 1 > ranks
