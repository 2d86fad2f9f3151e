"""Which iterate is kept: folds and the least validation error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prudent.core.types import IntArray


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


def earliest_least_error(curves: Sequence[Sequence[float]], tolerance: float) -> int:
    """Number of updates T with the least total validation error, up to a tolerance.

    The curves are the errors of each fold after 0, 1, ... updates; a shorter one goes
    on at its last value. Of equal totals the earliest wins.
    """
    length = max(len(curve) for curve in curves)
    padded = [np.pad(curve, (0, length - len(curve)), "edge") for curve in curves]
    total = np.sum(padded, axis=0)
    return int(np.argmax(total <= total.min() + tolerance))


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
