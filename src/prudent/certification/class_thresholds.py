"""Cuts of class scores that keep the error of a class below its limit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from prudent.core.binomial import high_probability_rank
from prudent.core.types import BoolArray, FloatArray, IntArray


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
