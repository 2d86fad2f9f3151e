"""The rows of one block, those to learn from and those only judged; their folds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from prudent.calibration.categorical import CategoricalFamily
from prudent.calibration.families import Family
from prudent.calibration.model import Model, prepare
from prudent.calibration.reading import recoded
from prudent.calibration.spread import (
    ColumnMoments,
    Spread,
    column_moments,
    merged_moments,
)
from prudent.core.rows import Block, Rows
from prudent.core.types import BoolArray, FloatArray, IntArray
from prudent.core.validation import Structure


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """The rows of one block that are learned from, and those that are only judged.

    None stands for no rows.
    """

    fitted: Block | None
    held_out: Block | None = None

    def prepared(self, family: Family, merges: bool) -> Self:
        """Rows as the family takes them; equal rows of level codes perhaps once."""
        fitted = self.fitted
        if merges and fitted is not None and isinstance(family, CategoricalFamily):
            fitted = _merged(fitted)
        return type(self)(_prepared(fitted, family), _prepared(self.held_out, family))

    def summary(
        self, n_classes: int, structure: Structure | None, learns_missing: bool
    ) -> tuple[IntArray, float, ColumnMoments] | None:
        """Number of fitted rows of each class, their weight, and their moments."""
        block = self.fitted
        if block is None:
            return None
        moments, weight = [], weights(block)
        if structure is not None:
            moments = column_moments(
                numbers_of(block), weight, structure, learns_missing=learns_missing
            )
        n_rows = np.bincount(block.codes, minlength=n_classes)
        return n_rows, float(weight.sum()), moments

    def ranges(self, columns: IntArray) -> FloatArray | None:
        """Least and largest number of some columns of the fitted rows."""
        if self.fitted is None:
            return None
        X = numbers_of(self.fitted)[:, columns].astype(np.float64)
        return np.array([np.fmin.reduce(X, axis=0), np.fmax.reduce(X, axis=0)])

    def apart(self, is_held_out: BoolArray) -> Trial:
        """The fitted rows, some of which are held out."""
        if self.fitted is None:
            return self
        chosen = (np.flatnonzero(some) for some in (~is_held_out, is_held_out))
        return Trial(
            *(self.fitted.taken(rows) if len(rows) else None for rows in chosen)
        )

    def seen_levels(self, n_levels: IntArray) -> list[BoolArray]:
        """Levels of each categorical feature that occur among the fitted rows."""
        if self.fitted is None:
            return [np.zeros(n, dtype=bool) for n in n_levels]
        codes = getattr(self.fitted.X, "levels", self.fitted.X)
        return [
            np.bincount(codes[codes[:, j] >= 0, j], minlength=n)[:n] > 0
            for j, n in enumerate(n_levels)
        ]

    def recoded(self, seen: Sequence[BoolArray]) -> Trial:
        """The same rows, of which only these levels are known."""
        parts = self.fitted, self.held_out
        return Trial(*(p and replace(p, X=recoded(p.X, seen)) for p in parts))

    def count_wrong(self, model: Model) -> tuple[int, int]:
        """Held-out rows that the model gets wrong, and all of them."""
        if self.held_out is None:
            return 0, 0
        X, codes = self.held_out.X, self.held_out.codes
        return int(np.count_nonzero(model.decide(X) != codes)), len(codes)


def fitted_spread(
    trials: Rows, n_classes: int, structure: Structure | None, *, learns_missing: bool
) -> tuple[IntArray, Spread | None]:
    """Number of rows to learn from, by class, and their spread if it is asked for."""
    found = trials.map(Trial.summary, n_classes, structure, learns_missing)
    n_rows, totals, moments = zip(
        *(summary for summary in found if summary is not None), strict=True
    )
    spread = None
    if structure is not None:
        spread = Spread.of(merged_moments(moments), float(np.sum(totals)))
        if len(spread.suspicious):
            ranges = trials.map(Trial.ranges, spread.suspicious)
            spread.check_ranges([ends for ends in ranges if ends is not None])
    return np.sum(n_rows, axis=0), spread


def weights(block: Block) -> FloatArray:
    """Weight of each row of a block."""
    return np.ones(len(block.codes)) if block.weight is None else block.weight


def numbers_of(block: Block) -> NDArray[Any]:
    """Rows without their levels."""
    return getattr(block.X, "numbers", block.X)


def _prepared(block: Block | None, family: Family) -> Block | None:
    if block is None:
        return None
    return Block(prepare(family, block.X), block.codes, weights(block))


def _merged(block: Block) -> Block:
    """Equal rows as one with the sum of their weights, where that halves them."""
    groups = group_equal_rows(block.X, block.codes)
    _, first = np.unique(groups, return_index=True)
    if 2 * len(first) > len(groups):
        return block
    weight = np.bincount(groups, weights(block)).astype(np.float64)
    return Block(block.X[first], block.codes[first], weight)


# Folds of rows in one block.


def dealt_folds(
    keys: NDArray[Any],
    codes: IntArray,
    n_folds: int,
    seed: int,
    groups: NDArray[Any] | None = None,
) -> list[tuple[IntArray, IntArray]]:
    """Pairs (fit, test) of positions of the rows of each fold.

    Equal rows, or those of a group, share a fold. There are `n_folds` at most, and as
    many as the class with the fewest distinct rows (groups) has of those; none if that
    is one.
    """
    if groups is None:
        units = group_equal_rows(keys, codes)
    else:
        units = np.unique(groups, return_inverse=True)[1]
    n_units = [len(np.unique(units[codes == k])) for k in np.unique(codes)]
    n_folds = min(n_folds, *n_units)
    if n_folds < 2:
        return []
    fold = deal_folds(units, codes, n_folds, np.random.RandomState(seed))
    return [
        (np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(n_folds)
    ]


def group_equal_rows(keys: NDArray[np.generic], codes: IntArray) -> IntArray:
    """Number labelled rows, equal ones alike, in sorted order of (class, row).

    `keys` (m, n_keys) are numbers that tell the rows apart.
    """
    columns = [*keys.T[::-1], codes]
    order = np.lexsort(columns)
    differs = np.zeros(len(codes), dtype=bool)
    for column in columns:
        differs[1:] |= column[order][1:] != column[order][:-1]
    groups = np.empty(len(codes), dtype=np.intp)
    groups[order] = np.cumsum(differs)
    return groups


def deal_folds(
    groups: IntArray, codes: IntArray, n_folds: int, random: np.random.RandomState
) -> IntArray:
    """Fold of each row; rows of a group share one, classes spread evenly.

    The groups 0, 1, ... are permuted within each class and dealt round robin, so that
    with groups of equal rows neither their order nor repetition changes the folds. A
    group of several classes counts for the rarest of them.
    """
    rarest_first = np.argsort(np.bincount(codes)[codes], kind="stable")
    _, first = np.unique(groups[rarest_first], return_index=True)
    class_of_group = codes[rarest_first[first]]
    dealt = np.concatenate(
        [
            random.permutation(np.flatnonzero(class_of_group == k))
            for k in np.unique(codes)
        ]
    )
    fold_of_group = np.empty(len(first), dtype=np.intp)
    fold_of_group[dealt] = np.arange(len(dealt)) % n_folds
    return fold_of_group[groups]
