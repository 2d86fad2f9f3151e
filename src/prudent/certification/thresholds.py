"""Which rows are answered: thresholds of the scores of held-out rows."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from prudent.certification.boundary import ErrorBoundary
from prudent.core.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class RankedRows:
    """Held-out rows in order of falling score.

    `next_scores[k]` is the score of the row behind the first k, the last one -inf;
    `wrong[k]` counts the wrong rows among the first k.
    """

    next_scores: FloatArray
    wrong: IntArray

    @classmethod
    def from_rows(cls, scores: FloatArray, wrong: BoolArray) -> RankedRows:
        """Rank rows by their scores, which must not be NaN."""
        order = np.argsort(-scores, kind="stable")
        return cls(
            np.append(scores[order], -np.inf),
            np.concatenate([[0], np.cumsum(wrong[order])]),
        )

    @property
    def n_rows(self) -> int:
        """Number of held-out rows."""
        return len(self.wrong) - 1


@dataclass(frozen=True, slots=True)
class Threshold:
    """Rows of a score strictly above `value` are answered; +inf answers none.

    `n_answered` held-out rows are above it, `n_wrong` of them wrong.
    """

    value: float
    n_answered: int
    n_wrong: int


def certified_threshold(rows: RankedRows, boundary: ErrorBoundary) -> Threshold:
    """Threshold that answers most held-out rows among those the boundary admits."""
    ranks = np.arange(1, rows.n_rows + 1)
    admitted = boundary.admits(ranks, rows.wrong[1:])
    # Equal scores are answered together or not at all.
    admitted &= rows.next_scores[:-1] > rows.next_scores[1:]
    found = np.flatnonzero(admitted)
    if not len(found):
        return Threshold(math.inf, 0, 0)
    k = int(found[-1]) + 1
    return Threshold(float(rows.next_scores[k]), k, int(rows.wrong[k]))


def share_threshold(rows: RankedRows, share: float) -> Threshold:
    """Threshold that answers at most a share of the held-out rows.

    The rows strictly above the (k + 1)-th score are independent draws given that
    score, because it depends on the rows not answered only; with the rows equal to
    the k-th score it would depend on answered ones, and an exact limit would not be
    one.
    """
    # The product may fall an ulp below the integer it stands for (29 = 0.29 * 100).
    k = min(rows.n_rows, math.floor(share * rows.n_rows * (1 + 4e-16) + 1e-12))
    cut = float(rows.next_scores[k])
    answered = int(np.count_nonzero(rows.next_scores[:k] > cut))
    return Threshold(cut, answered, int(rows.wrong[answered]))
