"""The learned rule: from rows to duels won, worst-case p-values and sets."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prudent.core.classes import spread_over_classes, winner
from prudent.core.types import BoolArray, FloatArray
from prudent.minimax.certificate import ClassMargin


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """Planes a'z = b between every two classes that have rows.

    Rows of the positive class, the second of a pair, have a'z >= b. `normals`
    (pairs, p) are over p features or kernel values, `margins` how both classes are
    seen along them; a class not `seen` wins no duel and is in no set.
    """

    normals: FloatArray
    offsets: FloatArray
    margins: tuple[tuple[ClassMargin, ClassMargin], ...]
    seen: BoolArray

    def decision(self, X: NDArray[Any]) -> FloatArray:
        """Decision value of each row of X (n, p).

        Of two classes it is a'z - b, (n,), >= 0 for the second. Of more it is (n, K):
        the number of duels that a class wins, and a tie-break in (-1/2, 1/2).
        """
        return self._decision(X @ self.normals.T)

    def p_values(self, X: NDArray[Any]) -> FloatArray:
        """Worst-case p-value of each class, (n, K); 0 for a class not seen."""
        return self._p_values(X @ self.normals.T)

    def sets(self, X: NDArray[Any], level: float) -> BoolArray:
        """Classes whose p-value exceeds a level, or the winner alone, (n, K)."""
        scores = X @ self.normals.T
        sets = self._p_values(scores) > level
        empty = np.flatnonzero(~sets.any(axis=1))
        sets[empty, winner(self._decision(scores[empty]))] = True
        return sets

    def _decision(self, scores: FloatArray) -> FloatArray:
        """Decision values of rows by their scores a'z, (n, pairs); see `decision`."""
        beyond = scores - self.offsets
        if len(self.seen) == 2:
            return beyond[:, 0]
        won = np.zeros((len(beyond), np.count_nonzero(self.seen)))
        least = np.full_like(won, np.inf)
        for distance, (k, l), margins in self._duels(beyond):
            won[:, l] += distance >= 0
            won[:, k] += distance < 0
            for c, side, margin in zip((k, l), (-1.0, 1.0), margins, strict=True):
                deviations = side * distance / (margin.deviation or 1.0)
                least[:, c] = np.minimum(least[:, c], deviations)
        # Strictly inside (-1/2, 1/2) even when 1 + |m| rounds to |m|.
        votes = won + (0.5 - 1e-12) * least / (1 + np.abs(least))
        return spread_over_classes(votes, self.seen, -np.inf)

    def _p_values(self, scores: FloatArray) -> FloatArray:
        """1 / (1 + distance^2) is valid under every law with the moments (Cantelli).

        The distance is that beyond the mean of the class towards the other one, in
        deviations less the mean radius, and 0 on the near side. The smallest of the
        K - 1 duels is corrected after Bonferroni.
        """
        n_classes = np.count_nonzero(self.seen)
        p = np.ones((len(scores), n_classes))
        for score, pair, margins in self._duels(scores):
            for c, side, margin in zip(pair, (-1.0, 1.0), margins, strict=True):
                distance = margin.distances(score, side)
                p[:, c] = np.minimum(p[:, c], 1 / (1 + distance * distance))
        return spread_over_classes(np.minimum((n_classes - 1) * p, 1.0), self.seen, 0.0)

    def _duels(
        self, values: FloatArray
    ) -> Iterator[tuple[FloatArray, tuple[int, int], tuple[ClassMargin, ClassMargin]]]:
        """Column, classes (k, l) and their margins of every pair, k < l."""
        pairs = itertools.combinations(range(np.count_nonzero(self.seen)), 2)
        return zip(values.T, pairs, self.margins, strict=True)
