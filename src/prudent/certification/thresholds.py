"""Cuts of scores at held-out rows: which rows are answered, which classes reached."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from prudent.core.binomial import high_probability_rank
from prudent.core.types import BoolArray, FloatArray, IntArray
from prudent.rules.boundary import ErrorBoundary


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


@dataclass(frozen=True, slots=True)
class ClassCut:
    """The cut of one class: its rows score below `threshold` rarely enough.

    The `rank`-th smallest score of its `n_rows` held-out rows, -inf where no row is
    cut off, rank 0 where none keeps the limit; classes before took `n_taken` of them.
    """

    threshold: float
    rank: int
    n_rows: int
    n_taken: int


def cut_classes(
    scores: FloatArray,
    labels: IntArray,
    limits: dict[int, float],
    confidence: float,
    *,
    in_turn: bool,
) -> dict[int, ClassCut]:
    """Cut every limited class so that all limits hold at once with `confidence`.

    `limits` are in order of priority; classes have rows of their own, so each of m
    limits may use the m-th root. With `in_turn`, rows that a class takes, scoring at
    least its cut, are lost to later classes and count as the lowest scores there.
    """
    each = confidence ** (1 / max(len(limits), 1))
    taken = np.zeros(len(scores), dtype=bool)
    cuts = {}
    for c, limit in limits.items():
        of_class = labels == c
        own = np.where(taken[of_class], -np.inf, scores[of_class, c])
        rank = high_probability_rank(len(own), limit, each) if len(own) else 0
        cut = float(np.partition(own, rank - 1)[rank - 1]) if rank else -np.inf
        cuts[c] = ClassCut(cut, rank, len(own), int(taken[of_class].sum()))
        if in_turn:
            taken |= scores[:, c] >= cut
    return cuts


def first_reached(
    scores: FloatArray, thresholds: FloatArray, priority: IntArray
) -> IntArray:
    """Class of each row: the first of the limited ones reached, else the best other."""
    others = np.setdiff1d(np.arange(scores.shape[1]), priority)
    chosen = others[scores[:, others].argmax(axis=1)]
    for c in priority[::-1]:
        chosen[scores[:, c] >= thresholds[c]] = c
    return chosen


def reached(scores: FloatArray, thresholds: FloatArray) -> BoolArray:
    """All classes whose threshold a row reaches; all classes where it reaches none."""
    sets: BoolArray = scores >= thresholds
    sets[~sets.any(axis=1)] = True
    return sets


def best_of(sets: BoolArray, scores: FloatArray) -> IntArray:
    """Best-scored class of each set."""
    least = np.finfo(np.float64).min
    best: IntArray = np.where(sets, np.maximum(scores, least), -np.inf).argmax(axis=1)
    return best
