"""Promises for parts of the population that may overlap.

Which of G subgroups hold a row is a matrix of bool (n, G). A row of which nothing
like it has been seen is in none of them: False everywhere.

**Ranks.** A label is left out only if every subgroup that holds the row leaves it out:
its p-value is p(x) = max over the g that hold x of p_g(x), its threshold the lowest
of theirs. So a row of g that misses its label has p_g <= level, and
P(miss | g) <= r_g / (m_g + 1), r_g = floor(level (m_g + 1)), with m_g ranking rows in
g: given who is in g these rows and a new one of g are exchangeable. How subgroups
overlap plays no part.

**Cells.** Rows with the same memberships form a cell. Cells are disjoint, so that
given the memberships what one shows is independent of the others: J claims, each with
the confidence (1 - delta)^(1/J), hold at once with 1 - delta. A subgroup is a union of
cells, its error rate a mean of theirs. Which cells take part may be decided by how
many rows they have.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from prudent.core.binomial import fewest_rows
from prudent.core.types import BoolArray, FloatArray, IntArray
from prudent.rules.scores import CalibrationScores


@dataclass(frozen=True, slots=True, eq=False)
class Memberships:
    """Which subgroups hold each row (n, G), and what the subgroups are called."""

    members: BoolArray
    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.members)

    @property
    def count(self) -> IntArray:
        """Rows of each subgroup, (G,)."""
        return np.count_nonzero(self.members, axis=0)

    @property
    def overlap(self) -> bool:
        """Whether a row is in more than one subgroup."""
        return bool((np.count_nonzero(self.members, axis=1) > 1).any())

    def taken(self, rows: IntArray) -> Self:
        """Those of some of the rows."""
        return type(self)(self.members[rows], self.names)


def scores_within(
    own: FloatArray,
    memberships: Memberships,
    codes: IntArray | None = None,
    classes: Sequence[object] = (),
    tolerance: float = 0.0,
) -> CalibrationScores:
    """Own scores (n,) of the rows of each subgroup, so that a row may count often.

    With the places `codes` (n,) of labels among the `classes`, of each subgroup and
    class. The categories are named (subgroup, class), all classes of the first
    subgroup first; without `codes` the class is None.
    """
    labels = [None] if codes is None else list(classes)
    parts = []
    for g in range(len(memberships.names)):
        inside = memberships.members[:, g]
        for c in range(len(labels)):
            at = inside if codes is None else inside & (codes == c)
            parts.append(np.sort(own[at] + 0.0))
    names = tuple((name, label) for name in memberships.names for label in labels)
    return CalibrationScores(tuple(parts), names, tolerance)


def largest_p_values(
    kept: CalibrationScores,
    scores: FloatArray,
    members: BoolArray,
    coins: FloatArray | None = None,
) -> FloatArray:
    """Largest p-value over the subgroups of each row, (n, K); 1 in none of them.

    `kept` are the scores of `scores_within`, for G subgroups or for G K subgroups and
    classes; `scores` (n, K) are those of new rows in the subgroups `members` (n, G),
    `coins` (n,) their uniform numbers, where ties are smoothed.
    """
    largest = np.zeros(scores.shape)
    n_each = len(kept.sorted) // members.shape[1]
    labels = np.arange(scores.shape[1]) if n_each > 1 else 0
    for g in range(members.shape[1]):
        rows = np.flatnonzero(members[:, g])
        coin = None if coins is None else coins[rows, None]
        p_values = kept.p_values(scores[rows], g * n_each + labels, coin)
        largest[rows] = np.maximum(largest[rows], p_values)
    largest[~members.any(axis=1)] = 1.0
    return largest


def lowest_thresholds(thresholds: FloatArray, members: BoolArray) -> FloatArray:
    """Lowest threshold over the subgroups of each row, (n, L); -inf in none of them.

    `thresholds` (G, L) are those of each subgroup, `members` is (n, G).
    """
    lowest = np.full((len(members), thresholds.shape[1]), np.inf)
    for g, own in enumerate(thresholds):
        rows = np.flatnonzero(members[:, g])
        lowest[rows] = np.minimum(lowest[rows], own)
    lowest[~members.any(axis=1)] = -np.inf
    return lowest


def cells_of(members: BoolArray) -> BoolArray:
    """The different memberships (C, G) of rows (n, G) that are in any subgroup."""
    patterns: BoolArray = np.unique(members, axis=0)
    return patterns[patterns.any(axis=1)]


def cell_places(cells: BoolArray, members: BoolArray) -> IntArray:
    """Place (n,) of the cell of each row among the `cells` (C, G), -1 for others."""
    known = {cell.tobytes(): place for place, cell in enumerate(cells)}
    rows = np.ascontiguousarray(members)
    return np.array([known.get(row.tobytes(), -1) for row in rows], dtype=np.intp)


def cells_with_rows_enough(
    counts: IntArray, rate: float, confidence: float
) -> BoolArray:
    """Which cells of so many rows (C,) can prove an error rate, all of them at once.

    While the smallest has fewer than `fewest_rows` at the rate and the J-th root of
    the confidence, J the cells left, it is left out.
    """
    order = np.argsort(-counts, kind="stable")
    kept = np.zeros(len(counts), dtype=bool)
    for n_left in range(len(counts), 0, -1):
        needed = fewest_rows(rate, confidence ** (1 / n_left))
        if counts[order[n_left - 1]] >= needed:
            kept[order[:n_left]] = True
            break
    return kept


def cell_name(cell: BoolArray, names: Sequence[str]) -> str:
    """A cell in words: the subgroups that hold it."""
    held_by = (name for name, inside in zip(names, cell, strict=True) if inside)
    return " and ".join(held_by)


def rows_named(memberships: Memberships, name: str) -> BoolArray:
    """Which rows (n,) are of a subgroup, or of a cell, that has this name."""
    names, members = memberships.names, memberships.members
    if name in names:
        return members[:, names.index(name)]
    cells = cells_of(members)
    named = [cell_name(cell, names) for cell in cells]
    same: BoolArray = np.array([*named, ""])[cell_places(cells, members)] == name
    return same
