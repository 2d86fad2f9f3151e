"""From scores to ranks, and from ranks to p-values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prudent.core.types import BoolArray, FloatArray, IntArray

# Scores by different formulas that are equal in exact arithmetic differ by rounding.
TIE = 1e-9


@dataclass(frozen=True, slots=True)
class Counts:
    """Ranking rows that are stranger than a new row, and as strange."""

    # (m,): rows whose score exceeds that of the new row, and rows that tie with it;
    # the new row itself is not counted
    larger: IntArray
    equal: IntArray  # (m,)

    @property
    def not_below(self) -> IntArray:
        """Rows at least as strange as the new row."""
        return self.larger + self.equal

    def p_values(
        self, n: IntArray | int, coins: FloatArray | None = None
    ) -> FloatArray:
        """Share of the bag of `n` + 1 rows that is at least as strange."""
        if coins is None:
            return (self.not_below + 1) / (n + 1)
        return (self.larger + coins * (self.equal + 1)) / (n + 1)


@dataclass(frozen=True, slots=True)
class PairScores:
    """Scores of training rows that depend on whether a new row has their label."""

    own: FloatArray  # (m, n): score of each training row if each new row has its label
    other: FloatArray  # (m, n): and if it has another
    asked: FloatArray  # (m, n_classes): scores of the new rows under each label


def damped(scores: FloatArray) -> FloatArray:
    """Sign times log(1 + size): scores of unlike spread on one scale."""
    return np.copysign(np.log1p(np.abs(scores)), scores)


@dataclass(frozen=True, slots=True)
class Kinds:
    """Which rows rank which new rows: all of them, those of a class, or of a group."""

    # what the kinds are, sorted; None: one kind for all rows
    labels: NDArray[Any] | None
    of_rows: IntArray  # (n,): kind of each row that ranks
    # (n_kinds + 1,): rows of each kind; a last 0 for kinds not seen, whose number is
    # -1
    sizes: IntArray

    @classmethod
    def single(cls, n: int) -> Kinds:
        """All rows of one kind."""
        return cls(None, np.zeros(n, dtype=np.intp), np.array([n, 0]))

    @classmethod
    def of(cls, values: NDArray[Any], labels: NDArray[Any]) -> Kinds:
        """Rows by their values, which are among the sorted `labels`."""
        of_rows = np.searchsorted(labels, values).astype(np.intp)
        sizes = np.bincount(of_rows, minlength=len(labels) + 1)
        return cls(labels, of_rows, sizes.astype(np.intp))

    def find(self, values: NDArray[Any]) -> IntArray:
        """Kind of new rows with these values, -1 where it was not seen."""
        assert self.labels is not None
        places = np.searchsorted(self.labels, values)
        known = np.append(self.labels, self.labels[-1:])[places] == values
        return np.where(known, places, -1).astype(np.intp)


@dataclass(frozen=True, slots=True)
class Ranked:
    """Scores of the rows that rank, sorted within each kind."""

    scores: tuple[FloatArray, ...]

    @classmethod
    def of(cls, scores: FloatArray, of_rows: IntArray, kinds: Kinds) -> Ranked:
        """Scores of rows of the kinds `of_rows`."""
        numbers = range(len(kinds.sizes) - 1)
        return cls(tuple(np.sort(scores[of_rows == number]) for number in numbers))

    def counts(self, scores: FloatArray, wanted: IntArray) -> Counts:
        """Rows stranger than each new row under each label, among the kind wanted."""
        larger, equal = np.zeros((2, *scores.shape), dtype=np.intp)
        for number, ranked in enumerate(self.scores):
            asked = wanted == number
            found = compare(scores[asked], ranked)
            larger[asked], equal[asked] = found.larger, found.equal
        return Counts(larger, equal)


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


def kinds_of(
    codes: IntArray, n_classes: int, condition: Any, groups: NDArray[Any] | None
) -> Kinds:
    """Kinds of the rows that rank: one, the classes, or groups of a `condition`."""
    if groups is not None:
        return Kinds.of(groups, np.unique(groups))
    if condition is None:
        return Kinds.single(len(codes))
    return Kinds.of(codes, np.arange(n_classes))


def groups_of(X: Any, condition: Any) -> NDArray[Any] | None:
    """Integer group of each row; None unless `condition` is a function of rows."""
    if not callable(condition):
        return None
    groups = np.asarray(condition(X))
    if groups.shape != (len(X),) or groups.dtype.kind not in "iub":
        raise ValueError(
            "`condition` must give one integer for each row, got an array of shape "
            f"{groups.shape} and type {groups.dtype}."
        )
    return groups
