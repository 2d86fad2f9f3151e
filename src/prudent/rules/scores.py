"""Scores of calibration rows, and the ranks of new rows among them.

A high score is plausible. If the n own scores of a category and the score s of a new
row under its own label are exchangeable, then p = (1 + #{a <= s}) / (n + 1) has
P(p <= e) <= floor(e (n + 1)) / (n + 1) (Vovk, Gammerman and Shafer 2005, chapter 2).
Equivalently a new row scores below the r-th smallest of them with probability at most
r / (n + 1); given the n scores this probability is drawn from Beta(r, n + 1 - r), or
less with ties.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from prudent.core.types import BoolArray, FloatArray, IntArray

ROUNDING = 1e-9
# Of fewer digits: models of single precision differ by up to 3e-6 (1 + |s|).
COARSE = {"float32": 1e-5, "float16": 1e-2}


@dataclass(frozen=True, slots=True)
class Rounding:
    """How far apart scores may be that are equal in exact arithmetic.

    They differ by different formulas, and by how many rows a model is asked at once:
    by up to `tolerance` (1 + |s|). The `probabilities` p, which are scores in [0, 1],
    differ less towards their ends, by up to `tolerance` min(p, 1 - p) + 1e-15 p: many
    rows of a model that is too sure of itself lie there, and have their order.
    That takes double precision: of p = 1 - 1e-7 single precision knows no digit of
    1 - p, and may give 1. All scores from `top` on are equal to it, which are log odds
    where probabilities are 1.
    """

    tolerance: float
    probabilities: bool = False
    top: float = np.inf

    def lowered(self, scores: Any) -> Any:
        """The smallest number that is equal to each score."""
        return self.raised(scores, -1)

    def raised(self, scores: Any, sign: int = 1) -> Any:
        """The largest number that is equal to each score, with -1 the smallest.

        In steps of which each is monotone.
        """
        if not self.tolerance:
            return scores
        step = sign * self.tolerance
        scores = np.minimum(scores, self.top)
        with np.errstate(over="ignore", invalid="ignore"):
            moved = scores * np.where(scores < 0, 1 - step, 1 + step) + step
            moved = np.where(moved > self.top, np.inf, moved)
            if not self.probabilities:
                return moved
            within = scores + step * np.minimum(scores, 1 - scores)
            within = within * (1 + sign * 1e-15)
        return np.where((scores >= 0) & (scores <= 1), within, moved)

    def levels(self, scores: FloatArray) -> FloatArray:
        """The smallest score of each run of sorted scores that are equal to it."""
        ends = np.searchsorted(scores, self.raised(scores), side="right").tolist()
        begins, place = [], 0
        while place < len(scores):
            begins.append(place)
            place = ends[place]
        return scores[begins]

    def at_levels(self, scores: FloatArray, levels: FloatArray) -> FloatArray:
        """Each score, or the level that it equals; of two the one that is not above."""
        padded = np.concatenate([[-np.inf], levels, [np.inf]])
        place = np.searchsorted(levels, scores, side="right")
        below, above = padded[place], padded[place + 1]
        near = np.where(self.lowered(above) <= scores, above, scores)
        return np.where(scores <= self.raised(below), below, near)


EXACT = Rounding(0.0)
NUMBERS = Rounding(ROUNDING)
PROBABILITIES = Rounding(ROUNDING, probabilities=True)


def rounding_of(values: Any, *, probabilities: bool = False) -> Rounding:
    """How far apart values of a model may be that are equal: by their own type.

    A model that answers in single precision has computed in it.
    """
    tolerance = COARSE.get(np.asarray(values).dtype.name)
    if tolerance is None:
        return PROBABILITIES if probabilities else NUMBERS
    return Rounding(tolerance, top=1.0 if probabilities else np.inf)


class Counts(NamedTuple):
    """Calibration scores below that of a new row, and level with it."""

    below: IntArray
    equal: IntArray

    @property
    def not_above(self) -> IntArray:
        """Calibration scores that are at most that of the new row."""
        return self.below + self.equal

    def p_values(self, n: Any, coins: FloatArray | None = None) -> FloatArray:
        """(1 + #{a <= s}) / (n + 1); with coins u (#{a < s} + u (1 + #{a = s})) / (n + 1)."""  # noqa: E501
        if coins is None:
            return (self.not_above + 1) / (n + 1)
        return (self.below + coins * (self.equal + 1)) / (n + 1)


@dataclass(frozen=True, slots=True, eq=False)
class CalibrationScores:
    """Own scores of the calibration rows, sorted within each category.

    A score a counts as at most s iff a <= s + `tolerance` (1 + |s|), and as below s
    iff a < s - `tolerance` (1 + |s|).
    """

    sorted: tuple[FloatArray, ...]  # one array a category
    names: tuple[Any, ...] = (None,)  # of the categories, sorted; None: all rows
    tolerance: float = 0.0

    @classmethod
    def from_rows(
        cls,
        own: FloatArray,
        category: IntArray | int = 0,
        names: Sequence[Any] | int = (None,),
        tolerance: float = 0.0,
    ) -> Self:
        """Scores (n,) of rows under their own labels, by the category of each row.

        A category is a place among the `names`; so many categories are named 0, 1, ...
        """
        names = range(names) if isinstance(names, int) else names
        kept = np.broadcast_to(category, own.shape)
        # One kind of zero, because sorting leaves the order of 0.0 and -0.0 open.
        scores = tuple(np.sort(own[kept == c] + 0.0) for c in range(len(names)))
        return cls(scores, tuple(names), tolerance)

    @classmethod
    def merged(cls, parts: Sequence[Self]) -> Self:
        """The union of several parts: what one machine would have sorted."""
        scores_by_name: dict[Any, list[FloatArray]] = {}
        for part in parts:
            for name, own in zip(part.names, part.sorted, strict=True):
                scores_by_name.setdefault(name, []).append(own)
        same = all(part.names == parts[0].names for part in parts)
        names = parts[0].names if same else tuple(sorted(scores_by_name))
        scores = tuple(np.sort(np.concatenate(scores_by_name[name])) for name in names)
        return cls(scores, names, max(part.tolerance for part in parts))

    @property
    def sizes(self) -> IntArray:
        """Calibration rows of each category."""
        return np.array([len(own) for own in self.sorted], dtype=np.intp)

    def counts(self, scores: FloatArray, category: IntArray | int = 0) -> Counts:
        """Calibration scores below and level with each score, of the category wanted.

        Nothing is counted for a category that is not among those known, such as -1.
        """
        wanted = np.broadcast_to(category, scores.shape)
        below, not_above = np.zeros((2, *scores.shape), dtype=np.intp)
        rounding = Rounding(self.tolerance)
        for c, own in enumerate(self.sorted):
            at: BoolArray = wanted == c
            asked = scores[at]
            low, high = rounding.lowered(asked), rounding.raised(asked)
            below[at] = np.searchsorted(own, low, side="left")
            not_above[at] = np.searchsorted(own, high, side="right")
        return Counts(below, not_above - below)

    def p_values(
        self,
        scores: FloatArray,
        category: IntArray | int = 0,
        coins: FloatArray | None = None,
    ) -> FloatArray:
        """p-value of each score among those of its category; 1 in an unknown one."""
        wanted = np.broadcast_to(category, scores.shape)
        sizes = np.append(self.sizes, 0)[wanted]
        return self.counts(scores, wanted).p_values(sizes, coins)

    def threshold(self, category: int, rank: int) -> float:
        """Smallest number that counts as at least the `rank`-th smallest score.

        -inf for rank 0. Found by bisection over the doubles, so that s >= threshold
        holds for exactly those s of which `counts` says #{a <= s} >= rank.
        """
        if rank == 0:
            return -np.inf
        own = float(self.sorted[category][rank - 1])
        if not self.tolerance:
            return own
        rounding = Rounding(self.tolerance)
        # Doubles in their order are whole numbers: their bits, those of negative ones
        # turned round.
        turn = np.int64(2**63 - 1)
        ends = np.array([-np.inf, np.inf]).view(np.int64)
        low, high = int(ends[0] ^ turn), int(ends[1])
        while low < high:
            middle = np.int64((low + high) // 2)
            value = (middle ^ turn if middle < 0 else middle).view(np.float64)
            if own <= rounding.raised(value):
                high = int(middle)
            else:
                low = int(middle) + 1
        place = np.int64(low)
        return float((place ^ turn if place < 0 else place).view(np.float64))


def places(values: NDArray[Any], names: Sequence[Any]) -> IntArray:
    """Place of each value among the names, -1 where it is not one of them."""
    known = np.asarray(names)
    order = np.argsort(known)
    nearest = np.append(order, order[-1:])[np.searchsorted(known, values, sorter=order)]
    return np.where(known[nearest] == values, nearest, -1).astype(np.intp)


@dataclass(frozen=True, slots=True, eq=False)
class AnswerScores:
    """Calibration rows in order of falling sureness, with the wrong answers counted.

    `sureness[k]` is that of the row behind the first k, the last one -inf; `wrong[k]`
    counts the wrong answers among the first k. A row is answered where its sureness
    exceeds a cut; `cuts[k]` leaves out the row behind the first k and all that are as
    sure, up to `rounding`.
    """

    sureness: FloatArray
    wrong: IntArray
    rounding: Rounding = EXACT

    @classmethod
    def from_answers(
        cls, sureness: FloatArray, wrong: BoolArray, rounding: Rounding = EXACT
    ) -> Self:
        """Rows by how sure their answers are (n,), never NaN."""
        order = np.argsort(-sureness, kind="stable")
        return cls(
            np.append(sureness[order], -np.inf),
            np.concatenate([[0], np.cumsum(wrong[order])]),
            rounding,
        )

    @property
    def cuts(self) -> FloatArray:
        """The cut behind the first k rows, (n + 1,), for k = 0, ..., n."""
        cuts: FloatArray = self.rounding.raised(self.sureness)
        return cuts

    @property
    def parted(self) -> BoolArray:
        """Whether the cut behind the first k rows answers them, (n,), k = 1, ..., n."""
        parted: BoolArray = self.sureness[:-1] > self.cuts[1:]
        return parted

    @property
    def n_rows(self) -> int:
        """Number of calibration rows."""
        return len(self.wrong) - 1


@dataclass(frozen=True, slots=True, eq=False)
class ClassScores:
    """Scores of calibration rows under every class, and the class of each row."""

    scores: FloatArray  # (n, n_classes)
    codes: IntArray  # (n,): place of the label among the classes, -1 for no class
    classes: NDArray[Any]  # (n_classes,)
    rounding: Rounding = EXACT
